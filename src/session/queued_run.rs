//! A question of this tab that is stored while it waits for the runs before it: the run that will answer it has its id,
//! its lock or lease, and an entry in the head.

use super::context::StoreContext;
use super::host::RunLock;
use super::lease::{is_leased, lease_end};
use super::new_run::NewRun;
use super::open_session::OpenSession;
use super::queued_question::QueuedQuestion;
use super::run_driver::{FIRST_EPOCH, RunDriver};
use super::run_lock::{RunClaim, RunHold};
use super::run_queue::HeldQuestion;
use super::signal::Signal;
use crate::clock::Ms;
use crate::error::{Error, ErrorCode, Result};
use crate::history::{Incoming, IncomingPart};
use crate::owner::StateOwner;
use crate::run::JournalEntry;
use crate::session_head::RunEntry;
use crate::store::{Change, JournalChange, JournalStep, QueueTurn};
use std::cell::RefCell;
use std::rc::Rc;

/// A question of this tab that is stored while it waits.
pub(super) struct QueuedRun {
    session: Rc<OpenSession>,
    /// The id of its run.
    pub id: String,
    /// Its number.
    pub number: u64,
    epoch: u32,
    lock: RefCell<Option<RunLock>>,
    has_lock: bool,
    /// Given when it was discarded here.
    pub discarded: Signal,
    /// Given when it waits no more.
    over: Signal,
    /// Shows other calls in this tab that it waits here.
    _claim: RunClaim,
}

impl OpenSession {
    /// Returns true if a question can be stored while it waits: its branch is stored, and it has messages without
    /// calls.
    pub(super) fn can_queue(&self, new_run: &NewRun) -> bool {
        let is_part = |part: &IncomingPart| matches!(part, IncomingPart::Part(_));
        let is_plain =
            |item: &Incoming| matches!(item, Incoming::Message(message) if message.parts.iter().all(is_part));
        let is_shown = new_run.branch.as_ref().is_none_or(|branch| *branch == self.branch_name());
        let is_stored = new_run.replace.is_none() && is_shown && !self.log.borrow().is_unborn();
        let is_held = new_run.setup.owner == StateOwner::Caller;
        is_stored && !is_held && !new_run.input.is_empty() && new_run.input.iter().all(is_plain)
    }
}

impl QueuedRun {
    /// Stores a question that has to wait.
    ///
    /// # Errors
    /// The store's own; nothing is stored then, or the store does not say whether it is.
    pub(super) async fn store(
        session: &Rc<OpenSession>,
        place: &QueuedQuestion<'_>,
        new_run: &mut NewRun,
    ) -> Result<Self> {
        let (id, lock) = RunDriver::acquire_new_run_lock(session, new_run.setup.id.clone()).await?;
        new_run.setup.id.clone_from(&id);
        let claim = RunClaim::new(&session.context, &session.id, &id).ok_or_else(held_here)?;
        session.context.host.draw_ids();
        let entries = JournalEntry::of_queued(&new_run.setup, session.context.now(), place.question());
        let change = change_of(session, (&id, FIRST_EPOCH), JournalStep::Queue(entries), lock.is_some());
        if let Err(error) = session.commit(change).await {
            // The reply may have been lost.
            let is_known = session.refresh().await.is_ok();
            if !is_known || session.log.borrow().head.run(&id).is_none() {
                return Err(error);
            }
        }
        Self::of(session, (id, FIRST_EPOCH), lock, claim)
    }

    /// Makes the question of an entry that is stored and held here.
    pub(super) fn of(
        session: &Rc<OpenSession>,
        (id, epoch): (String, u32),
        lock: Option<RunLock>,
        claim: RunClaim,
    ) -> Result<Self> {
        let number = session.log.borrow().head.run(&id).map(|entry| entry.number).ok_or_else(gone)?;
        let discarded = Signal::default();
        session.run_queue.hold(number, HeldQuestion { id: id.clone(), discarded: discarded.clone() });
        let (has_lock, over) = (lock.is_some(), Signal::default());
        let lock = RefCell::new(lock);
        let queued =
            Self { session: session.clone(), id, number, epoch, lock, has_lock, discarded, over, _claim: claim };
        queued.keep_lease();
        session.context.announce_append(&session.id, session.revision());
        Ok(queued)
    }

    /// Returns its entry in the head.
    ///
    /// # Errors
    /// `not_found` if it waits no more, `conflict` if another tab or process has taken it over.
    pub(super) fn entry(&self) -> Result<RunEntry> {
        let entry = self.session.log.borrow().head.run(&self.id).cloned().ok_or_else(gone)?;
        if entry.epoch != self.epoch || !entry.is_queued() {
            let sentence = "another tab or process has taken the question over; it is in `pendingRuns()`";
            return Err(Error::new(ErrorCode::Conflict, sentence));
        }
        Ok(entry)
    }

    /// Makes it the next one that begins.
    ///
    /// # Errors
    /// `busy` if its turn has not come after all; the store's own.
    pub(super) async fn admit(&self, turn: QueueTurn) -> Result<()> {
        let change = self.change(JournalStep::Admit);
        self.session.commit(Change { turn: Some(turn), ..change }).await.map(drop)
    }

    /// Returns how its run is held here. Called once.
    pub(super) fn take_hold(&self) -> RunHold {
        RunHold { epoch: self.epoch, lock: self.lock.take() }
    }

    /// Removes it from the store.
    pub(super) async fn remove(&self) {
        self.over.give();
        // What cannot be removed now is in `pendingRuns`.
        if let Ok(revision) = self.session.commit(self.change(JournalStep::End)).await {
            self.session.context.announce_append(&self.session.id, revision);
        }
    }

    /// Ends its lease, so that others may take it over at once.
    pub(super) async fn release(&self) {
        self.over.give();
        if is_leased(&self.session.context, self.has_lock) {
            let mut change = self.change(JournalStep::Renew);
            if let Some(journal) = &mut change.journal {
                journal.lease_until = 0;
            }
            // If this fails, the lease runs out.
            let _ = self.session.commit_lease(change).await;
        }
        self.session.context.announce_append(&self.session.id, self.session.revision());
    }

    fn change(&self, step: JournalStep) -> Change {
        self.session.context.host.draw_ids();
        change_of(&self.session, (&self.id, self.epoch), step, self.has_lock)
    }

    /// Renews its lease while it waits, if it has one.
    fn keep_lease(&self) {
        let context: &Rc<StoreContext> = &self.session.context;
        if !is_leased(context, self.has_lock) {
            return;
        }
        let (session, over, host) = (self.session.weak_self.clone(), self.over.clone(), context.host.clone());
        let (id, epoch, pause) = (self.id.clone(), self.epoch, context.settings.lease_ms / 3);
        context.spawn(async move {
            // Without timers the lease runs out.
            while over.unless_given(host.sleep(pause)).await == Some(true) {
                let Some(session) = session.upgrade() else { return };
                if session.context.check_open().is_err() {
                    return;
                }
                host.draw_ids();
                // A store that cannot be written to now is asked again; one who took it over is met by the next look.
                let _ = session.commit_lease(change_of(&session, (&id, epoch), JournalStep::Renew, false)).await;
            }
        });
    }
}

impl Drop for QueuedRun {
    fn drop(&mut self) {
        self.over.give();
        self.session.run_queue.let_go(self.number);
    }
}

fn change_of(session: &OpenSession, (id, epoch): (&str, u32), step: JournalStep, has_lock: bool) -> Change {
    let lease_until: Ms = lease_end(&session.context, has_lock);
    let journal = JournalChange { run: id.to_owned(), epoch, lease_until, lease_ended_by: None, step };
    Change { run: Some(id.to_owned()), journal: Some(journal), ..session.new_change() }
}

fn gone() -> Error {
    Error::new(ErrorCode::NotFound, "the question waits no more: it was discarded, or its session was deleted")
}

fn held_here() -> Error {
    Error::new(ErrorCode::Busy, "the question waits here already")
}
