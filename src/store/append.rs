//! Appends a change to a session.
//!
//! An append is prepared from the known state and written if the head still has the expected revision. Otherwise it is
//! prepared again after what the other writer appended: whole, never dropped and never interleaved (R15).

use super::audit::keep_unknown_fields;
use super::branching::{adopt_born_branch, carry_anew, read_all_branches};
use super::journal::{JournalChange, JournalStep};
use super::log::{Change, SessionLog};
use super::log_additions::may_have_additions;
use super::open::{read_older, refresh, refresh_log};
use super::{Appended, LogStore};
use crate::clock::Ms;
use crate::error::{Error, ErrorCode, Result};
use crate::history::HistoryEntry;
use std::cell::RefCell;

/// Conflicts after which an append fails with `busy`.
const MAX_CONFLICTS: u32 = 200;

/// Maximum time between two attempts, in milliseconds.
const MAX_PAUSE: Ms = 64;

/// Waits after an attempt that conflicted. Does not wait after the first conflict: usually the only other writer has
/// finished.
async fn pause(change: &Change, attempt: u32) {
    if let (Some(pause), 1..) = (&change.pause, attempt) {
        pause(1_u64.checked_shl(attempt).unwrap_or(MAX_PAUSE).min(MAX_PAUSE)).await;
    }
}

/// The outcome of an append.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The revision of history after it.
    pub revision: u64,
    /// The ids of its messages as stored, in order; empty if an earlier attempt had stored them.
    pub message_ids: Vec<String>,
    /// The number of results that it has set aside because the run of their calls ended without them; 0 if an earlier
    /// attempt did.
    pub orphan_results: usize,
}

impl Change {
    /// Returns true if it is the begin of a run in a branch that was not stored yet.
    fn begins_run_in_branch(&self) -> bool {
        let begins = |journal: &JournalChange| matches!(journal.step, JournalStep::Begin(_));
        self.begins_branch && self.journal.as_ref().is_some_and(begins)
    }
}

/// Appends a change after what other writers have appended since the last refresh.
///
/// # Errors `conflict` if history is not at the expected revision, or the run has another holder; `invalid_input` if
/// another writer has stored a message with one of the caller's ids; `unsupported_version`, `not_found` if the session
/// cannot be written; and the errors of the store. Nothing is written then.
pub async fn commit(store: &dyn LogStore, cell: &RefCell<SessionLog>, change: &Change) -> Result<Committed> {
    read_older(store, cell).await?;
    let (born, begins_branch) = (cell.borrow().head.born, cell.borrow().is_unborn() || change.begins_run_in_branch());
    for attempt in 0..MAX_CONFLICTS {
        if adopt_born_branch(store, cell, &change.operation).await? || cell.borrow().has_applied(change) {
            return Ok(Committed {
                revision: cell.borrow().head.history_revision,
                message_ids: Vec::new(),
                orphan_results: 0,
            });
        }
        if begins_branch && !cell.borrow().is_unborn() {
            let message =
                "messages were erased while the branch was to begin, so its place may be another one; begin it again";
            return Err(Error::new(ErrorCode::Conflict, message));
        }
        if may_have_additions(change) {
            read_all_branches(store, cell).await?;
        }
        let mut prepared = cell.borrow().prepare(change)?;
        let id = prepared.head.id.clone();
        // The store remembers the outcome of an operation, so each attempt has a name of its own.
        let operation = format!("{}.{attempt}", change.operation);
        prepared.batch.check(&operation, store.capabilities().max_value_bytes)?;
        let mut batch = std::mem::take(&mut prepared.batch);
        if cell.borrow().has_newer_records {
            keep_unknown_fields(store, &id, &mut batch.replace).await?;
        }
        match store.append(&id, prepared.expected, batch, &operation).await? {
            Appended::Revision(revision) => {
                let message_ids = message_ids(&prepared.entries);
                let (history_revision, orphan_results) = (prepared.head.history_revision, prepared.orphans);
                cell.borrow_mut().applied(revision, &change.operation, prepared);
                return Ok(Committed { revision: history_revision, message_ids, orphan_results });
            }
            Appended::Occupied => refresh_log(store, cell).await?,
            Appended::Conflict(actual) => {
                let fresh = prepared.expected == 0;
                pause(change, attempt).await;
                refresh(store, cell).await?;
                if cell.borrow().is_unknown_branch() {
                    carry_anew(store, cell).await?;
                }
                let mut log = cell.borrow_mut();
                // The head is a tombstone. A session that was opened after the deletion is created again; one opened
                // before is not.
                if log.revision == 0 && fresh && log.read_only.is_none() {
                    change.when_deleted.clone().map_or(Ok(()), Err)?;
                    log.set_revision(actual);
                } else if born != 0 && log.head.born != born {
                    log.writable()?;
                    return Err(Error::new(
                        ErrorCode::NotFound,
                        "the session was cleared or deleted in the meantime, and created again; append again to continue in the new session",
                    ));
                }
            }
        }
    }
    Err(Error::new(ErrorCode::Busy, "the append conflicted with other writers too often; try again in a moment"))
}

fn message_ids(entries: &[HistoryEntry]) -> Vec<String> {
    let mut ids = Vec::new();
    for entry in entries {
        if let HistoryEntry::Message(message) = entry {
            ids.push(message.id.clone());
        }
    }
    ids
}
