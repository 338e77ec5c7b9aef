//! Removes the history of a session.

use super::archive::{TABLES, read_table};
use super::journal::check_lease;
use super::log::{NoticeText, SessionLog};
use super::open::refresh;
use super::record::{RecordKind, seal_record};
use super::{Appended, Batch, LogStore};
use crate::branch_path::BranchPath;
use crate::clock::Ms;
use crate::error::{Error, ErrorCode, Result};
use crate::session_head::{Overview, SessionHead, UnfinishedErasure};
use crate::term_filter::TermFilter;
use std::cell::RefCell;

/// Conflicts after which clearing fails with `busy`.
const MAX_CONFLICTS: u32 = 20;

/// Removes all messages, invocations and unfinished runs of a session in one append. Title, channel, metadata, owner
/// and state bag stay. For other writers the session is a new one: their open appends fail with `not_found`, and a
/// refresh shows it empty. `operation` is the unique name of the append; `owned_runs` are the unfinished runs that the
/// caller owns, and nobody else; `notice` makes its [notice](Batch::notice).
///
/// # Errors `busy` while another tab or process owns a run, or if others write all the time; those of
/// [`SessionLog::writable`]; the store's own. Nothing is removed then.
pub async fn clear_session(
    store: &dyn LogStore,
    cell: &RefCell<SessionLog>,
    (operation, now): (&str, Ms),
    (owned_runs, notice): (&[String], Option<NoticeText>),
) -> Result<()> {
    for attempt in 0..MAX_CONFLICTS {
        refresh(store, cell).await?;
        let (head, expected, at_least) = {
            let log = cell.borrow();
            log.writable()?;
            (log.head.clone(), log.stored_revision, log.min_revision)
        };
        if cell.borrow().revision == 0 {
            return Ok(());
        }
        head.runs.iter().try_for_each(|run| check_lease(run, now))?;
        if head.runs.iter().any(|run| !owned_runs.contains(&run.id)) {
            return Err(Error::new(
                ErrorCode::Busy,
                "a run of the session began meanwhile; try again when it has ended",
            ));
        }
        let mut records = Vec::new();
        for table in TABLES {
            read_table(store, &head.id, table, &mut records).await?;
        }
        let cleared = cleared_head(&head, (expected + 1).max(at_least), now);
        let mut batch = Batch {
            head: seal_record(RecordKind::Head, &cleared),
            at_least,
            notice: notice.as_ref().and_then(|notice| notice(cleared.history_revision)),
            erases: true,
            remove: records.iter().map(|record| (record.table, record.key)).collect(),
            ..Batch::default()
        };
        batch.describe(&cleared);
        match store.append(&head.id, expected, batch, &format!("{operation}.{attempt}")).await? {
            Appended::Revision(_) => {
                refresh(store, cell).await?;
                return Ok(());
            }
            Appended::Conflict(_) | Appended::Occupied => {}
        }
    }
    Err(Error::new(ErrorCode::Busy, "other writers keep changing the session; try again in a moment"))
}

/// Returns what is left of an erasure when all records are removed: the copies that a store keeps of earlier appends.
fn left_to_erase(left: &UnfinishedErasure) -> UnfinishedErasure {
    let mut copies = left.clone();
    let pending = std::mem::take(&mut copies.pending);
    copies.messages.extend(pending);
    copies
}

/// Returns the head of the emptied session. Numbers of runs and sources continue, so that none is used twice.
fn cleared_head(head: &SessionHead, revision: u64, now: Ms) -> SessionHead {
    SessionHead {
        born: revision,
        updated_at: head.updated_at.max(now),
        history_revision: head.history_revision + 1,
        next_seq: 0,
        next_record: 0,
        next_invocation: 0,
        turns: 0,
        log_bytes: 0,
        runs: Vec::new(),
        merged_until: 0,
        has_deferred_compaction: false,
        last_request: None,
        branch: BranchPath::default(),
        branch_count: 0,
        additions: 0,
        erasing: left_to_erase(&head.erasing),
        erased: 0,
        chain_cut: 0,
        term_filter: TermFilter::empty(head.history_revision + 1),
        overview: Overview::default(),
        ..head.clone()
    }
}
