//! Appends to a session: results are joined to their calls, and again if another writer was faster.

use super::open_session::OpenSession;
use super::provider_turns::AppendedContent;
use crate::clock::Ms;
use crate::error::{Error, ErrorCode, Result};
use crate::finding::FindingCode;
use crate::history::{HistoryEntry, JoinBase, JoinedEntries, NewItem, Origin, join, join_new};
use crate::json::Json;
use crate::message::{Dialect, Source};
use crate::provider::decode_body;
use crate::replay::{CompletedTurns, PolicyLayer};
use crate::store::{Change, Committed, ExpectedRun};
use crate::tool::Window;
use std::collections::BTreeMap;

/// Where appended messages come from, as far as the application says so.
#[derive(Clone, Debug, Default)]
pub struct AppendOrigin {
    /// When they were made; now unless it is set.
    pub at: Option<Ms>,
    /// What made them.
    pub source: Source,
    /// How long they are replayed.
    pub freshness: Option<Window>,
}

/// Number of attempts to join an append that answers calls while other writers append.
pub const MAX_JOIN_ATTEMPTS: u32 = 20;

impl OpenSession {
    /// Returns the origin of appended messages.
    pub fn origin(&self, given: AppendOrigin) -> Origin {
        let AppendOrigin { at, source, freshness } = given;
        let at = at.unwrap_or_else(|| self.context.now());
        Origin { at, source, channel: self.channel(), freshness, ..Origin::default() }
    }

    /// Appends messages of a dialect, or neutral ones, which are JSON. `expected` is the revision that the history must
    /// have.
    ///
    /// # Errors `invalid_input` for messages that cannot be read, and for a result without an open call; `conflict`;
    /// the store's own.
    pub async fn append(
        &self,
        given: &Json,
        dialect: Option<Dialect>,
        (origin, expected): (&Origin, Option<u64>),
    ) -> Result<(u64, AppendedContent)> {
        let join = || self.join(given, dialect, origin).map_err(to_invalid_input);
        self.append_joined(&join, expected, None).await
    }

    /// Appends the outcome of `join`. Calls `join` again after another writer has appended a missing call or has
    /// answered an open one, or if a run on which a result depends went on. `run`: the one that an answer depends on,
    /// if any.
    pub async fn append_joined(
        &self,
        join: &dyn Fn() -> Result<JoinedEntries>,
        expected: Option<u64>,
        run: Option<&ExpectedRun>,
    ) -> Result<(u64, AppendedContent)> {
        self.read_older().await?;
        let mut attempts = 0;
        loop {
            attempts += 1;
            self.context.host.draw_ids();
            let mut joined = match join() {
                outcome if misses_call(&outcome) => {
                    // Even if this finds nothing new: another refresh may have read the call meanwhile.
                    self.refresh().await?;
                    join()?
                }
                outcome => outcome?,
            };
            // A result was paired with a call that was open at this revision.
            let answers = joined.entries.iter().any(|entry| matches!(entry, HistoryEntry::Result(_)));
            let joined_at = self.log.borrow().head.history_revision;
            let runs = match run {
                Some(run) => vec![run.clone()],
                None => self.check_appended_results(&joined).await?,
            };
            let mut change = self.joined_change(&mut joined, expected.or(answers.then_some(joined_at)));
            change.expected_runs.clone_from(&runs);
            let content = AppendedContent::of(&change.entries);
            match self.append_change(change).await {
                // `expectedRevision` allows another try only if the store refused the change for a run.
                Err(error)
                    if error.code == ErrorCode::Conflict
                        && attempts < MAX_JOIN_ATTEMPTS
                        && (expected.is_none() || runs.iter().any(|run| self.has_moved(run))) => {}
                outcome => {
                    let Committed { revision, message_ids, .. } = outcome?;
                    self.context.warn(&joined.report);
                    self.notify();
                    return Ok((revision, AppendedContent { message_ids, ..content }));
                }
            }
        }
    }

    /// Joins messages, of a dialect or neutral, to the history.
    fn join(&self, given: &Json, dialect: Option<Dialect>, origin: &Origin) -> Result<JoinedEntries> {
        // Appended messages follow the late results that are stored.
        let late_results = self.log.borrow().history.late_results().unplaced_ids();
        let origin = &Origin { late_results, ..origin.clone() };
        let Some(dialect) = dialect else {
            let messages = NewItem::read_all(given.view())?;
            let log = self.log.borrow();
            let mut joined = join_new(&log.history, messages, origin, self.context.ids())?;
            for entry in &mut joined.entries {
                if let HistoryEntry::Message(message) = entry {
                    // A run of this session stores its messages itself.
                    message.run_id.take_if(|run| log.head.run(run).is_some());
                }
            }
            return Ok(joined);
        };
        let items = decode_body(dialect, given.view())?;
        Ok(join(JoinBase::history(&self.log.borrow().history), items, origin, self.context.ids()))
    }

    /// Returns the change that appends joined entries.
    pub fn joined_change(&self, joined: &mut JoinedEntries, expected: Option<u64>) -> Change {
        let policy = self.policy(PolicyLayer::default(), BTreeMap::new());
        let mut change = self.new_change();
        let log = self.log.borrow();
        // What `persist` has replaced stays as it returned it.
        let completed = CompletedTurns { known: &log.history, may_replace: &|call| !call.is_redacted() };
        change.sources = completed.drop_uncited_sources(&mut joined.entries, &policy, &mut joined.report);
        change.entries = std::mem::take(&mut joined.entries);
        change.caller_ids = std::mem::take(&mut joined.caller_ids);
        change.expected = expected;
        change
    }
}

/// Reports a result without an open call as invalid input of an append.
fn to_invalid_input(mut error: Error) -> Error {
    if matches!(error.code, ErrorCode::NotFound | ErrorCode::WrongState) {
        error.code = ErrorCode::InvalidInput;
    }
    error
}

/// Returns true if a result may have found no call.
fn misses_call(joined: &Result<JoinedEntries>) -> bool {
    match joined {
        Ok(joined) => joined.report.iter().any(|finding| finding.code == FindingCode::OrphanResult),
        Err(error) => matches!(error.code, ErrorCode::NotFound | ErrorCode::InvalidInput),
    }
}
