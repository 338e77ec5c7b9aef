//! Merging: replaces runs of small log records by segments, in the background.
//!
//! A merge changes no history. It is one guarded append that writes the segment and removes its records, so it is done
//! whole or not at all, and a writer that is faster wins: the merge is tried again later.

use super::log::SessionLog;
use super::merge_queue::MergeWindow;
use super::record::{RecordKind, open_record, seal_record};
use super::segment::seal_segment;
use super::{Appended, Batch, LogStore, Query, Record, Table};
use crate::error::Result;
use crate::session_head::SessionHead;
use std::cell::RefCell;

/// The outcome of a merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeOutcome {
    /// Nothing waits to be merged.
    Nothing,
    /// A segment was written, or records that cannot be merged were dropped from the queue.
    Progress,
    /// Another writer was faster. The records are merged later, after a refresh.
    Conflict,
}

impl SessionLog {
    /// Returns true if records wait to be merged.
    #[must_use]
    pub fn has_unmerged(&self) -> bool {
        self.is_whole() && self.writable().is_ok() && !self.merge_queue.is_empty()
    }
}

/// Merges the oldest records that wait for it into a segment. `operation` is the unique name of the append.
///
/// # Errors
/// The store's own. The records stay as they are, or are merged, and can be read either way.
pub async fn merge_oldest(store: &dyn LogStore, cell: &RefCell<SessionLog>, operation: &str) -> Result<MergeOutcome> {
    let Some((id, expected, window)) = next_window(&cell.borrow()) else { return Ok(MergeOutcome::Nothing) };
    let Some(stored) = store.head(&id).await?.filter(|head| head.revision == expected) else {
        return Ok(MergeOutcome::Conflict);
    };
    // A damaged head is written by an append, with what an open session knows of it.
    let head = open_record::<SessionHead>(RecordKind::Head, &stored.value).ok();
    let is_shown = |head: &SessionHead| head.branch == cell.borrow().head.branch && head.next_record > window.last;
    let Some(mut head) = head.filter(is_shown) else { return Ok(MergeOutcome::Conflict) };
    let query = Query { from: window.first, to: window.last, ..Query::all(Table::Log) };
    let records = store.read(&id, query).await?;
    let segment = if records.len() as u64 == window.count { seal_segment(&records) } else { None };
    let spans = |segment: &Record| segment.key == window.first && segment.last_key == Some(window.last);
    let Some(segment) = segment.filter(spans) else {
        // Another process has merged them, or one was damaged since it was read.
        cell.borrow_mut().merge_queue.remove(window);
        return Ok(MergeOutcome::Progress);
    };
    if window.first >= head.branch.first_own_key() {
        head.merged_until = head.merged_until.max(window.last + 1);
    }
    let mut batch = Batch {
        head: seal_record(RecordKind::Head, &head),
        put: vec![segment],
        remove: records.iter().map(|record| (Table::Log, record.key)).collect(),
        ..Batch::default()
    };
    batch.describe(&head);
    match store.append(&id, expected, batch, operation).await? {
        Appended::Revision(revision) => {
            let mut log = cell.borrow_mut();
            log.merge_queue.remove(window);
            log.on_merged(expected, revision, head.merged_until);
            Ok(MergeOutcome::Progress)
        }
        Appended::Conflict(_) => Ok(MergeOutcome::Conflict),
        Appended::Occupied => {
            cell.borrow_mut().merge_queue.remove(window);
            Ok(MergeOutcome::Progress)
        }
    }
}

/// Returns the session's id, the revision at which the merge is done, and the records.
fn next_window(log: &SessionLog) -> Option<(String, u64, MergeWindow)> {
    if !log.has_unmerged() {
        return None;
    }
    Some((log.head.id.clone(), log.stored_revision, log.merge_queue.oldest()?))
}
