//! A loop that the application drives and checkpoints in a session (R19).

use super::append::{AppendOrigin, MAX_JOIN_ATTEMPTS};
use super::open_session::OpenSession;
use super::provider_turns::AppendedContent;
use crate::error::{Error, ErrorCode, Result};
use crate::history::JoinedEntries;
use crate::replay::PolicyLayer;
use crate::run::{ExternalBody, ExternalContext, ExternalLoop, Persistence};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// A loop of the application, and the session in which its checkpoints are stored. Its methods are called with a turn
/// of the session's writes.
pub struct OpenLoop {
    /// The session.
    pub session: Rc<OpenSession>,
    state: RefCell<ExternalLoop>,
    /// The revision of the history that the loop continues.
    known: Cell<u64>,
}

impl OpenLoop {
    /// Begins a loop.
    #[must_use]
    pub fn new(session: Rc<OpenSession>, persistence: Option<Persistence>) -> Rc<Self> {
        let persistence = persistence.unwrap_or(session.persistence.get());
        let known = Cell::new(session.revision());
        Rc::new(Self { session, state: RefCell::new(ExternalLoop::new(persistence)), known })
    }

    /// Stores what the body adds to the session, or keeps it for [`end`](Self::end) in mode `run`. Returns what was
    /// stored.
    ///
    /// # Errors `closed`; `invalid_input` if the body does not continue what is stored, `conflict` if another writer is
    /// the reason; the store's own.
    pub async fn checkpoint(&self, body: ExternalBody) -> Result<AppendedContent> {
        let Self { session, state, known } = self;
        state.borrow().check_open()?;
        session.read_older().await?;
        let outcome = if state.borrow().stores_checkpoints() {
            session.store_checkpoint(state, &body).await
        } else {
            // Checked now, stored at the end.
            session.join_checkpoint(state, &body).await.map(|_| AppendedContent::default())
        };
        let content = outcome.map_err(|error| session.conflict_of_loops(error, known.get()))?;
        known.set(session.revision());
        state.borrow_mut().accept(body, &session.log.borrow().history);
        Ok(content)
    }

    /// Ends the loop, and in mode `run` stores its last checkpoint. Returns what was stored.
    ///
    /// # Errors
    /// As [`checkpoint`](Self::checkpoint).
    pub async fn end(&self) -> Result<AppendedContent> {
        let Self { session, state, known } = self;
        let mut content = AppendedContent::default();
        let pending = state.borrow().pending();
        if let Some(body) = pending {
            session.read_older().await?;
            let stored = session.store_checkpoint(state, &body).await;
            content = stored.map_err(|error| session.conflict_of_loops(error, known.get()))?;
        }
        let warning = state.borrow_mut().end();
        session.context.warn(warning.as_slice());
        Ok(content)
    }
}

impl OpenSession {
    /// Appends what a checkpoint adds, if it adds anything, and returns it.
    async fn store_checkpoint(&self, state: &RefCell<ExternalLoop>, body: &ExternalBody) -> Result<AppendedContent> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let mut joined = self.join_checkpoint(state, body).await?;
            if joined.entries.is_empty() {
                return Ok(AppendedContent::default());
            }
            // Of two processes that checkpoint one loop the second appends only what the first has not.
            let expected = self.log.borrow().head.history_revision;
            let change = self.joined_change(&mut joined, Some(expected));
            let content = AppendedContent::of(&change.entries);
            match self.append_change(change).await {
                Err(error) if error.code == ErrorCode::Conflict && attempts < MAX_JOIN_ATTEMPTS => {}
                outcome => {
                    let message_ids = outcome?.message_ids;
                    self.context.warn(&joined.report);
                    self.notify();
                    return Ok(AppendedContent { message_ids, ..content });
                }
            }
        }
    }

    /// Returns the error of a checkpoint that does not continue history: a conflict, if another writer has appended
    /// since `known`.
    fn conflict_of_loops(&self, error: Error, known: u64) -> Error {
        let revision = self.revision();
        if error.code != ErrorCode::InvalidInput || revision == known {
            return error;
        }
        let message = "another writer has appended since this loop's last checkpoint, and the checkpoint does not continue that; read the \
                       session again, and begin another loop from there";
        Error::new(ErrorCode::Conflict, message).with(|details| {
            details.number("expected", known).number("revision", revision);
        })
    }

    /// Joins a checkpoint to the history; if it does not continue that, to the history as other processes have left it.
    async fn join_checkpoint(&self, state: &RefCell<ExternalLoop>, body: &ExternalBody) -> Result<JoinedEntries> {
        match self.try_join_checkpoint(state, body) {
            Err(_) => {
                // Even if this finds nothing new: another refresh may have read the rest meanwhile.
                self.refresh().await?;
                self.try_join_checkpoint(state, body)
            }
            joined => joined,
        }
    }

    fn try_join_checkpoint(&self, state: &RefCell<ExternalLoop>, body: &ExternalBody) -> Result<JoinedEntries> {
        // The callbacks `now` and `newId` are called before anything is borrowed.
        self.context.host.draw_ids();
        let origin = self.origin(AppendOrigin::default());
        let policy = self.policy(PolicyLayer::default(), BTreeMap::new());
        let log = self.log.borrow();
        let mut context = ExternalContext {
            history: &log.history,
            policy: &policy,
            now: origin.at,
            origin: &origin,
            ids: self.context.ids(),
        };
        state.borrow().join(body, &mut context)
    }
}
