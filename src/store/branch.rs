//! Reads the other side of a fork as a session of its own.

use super::log::SessionLog;
use super::merge_queue::MergeQueue;
use super::record::{RecordKind, open_record};
use super::{LogStore, Query, StoredBranch, Table};
use crate::clock::Ms;
use crate::error::Result;
use crate::id::Seed;
use crate::session_head::SessionHead;

/// Returns the log of a side: what it shares with the session's history, and what it alone has. It cannot be appended
/// to.
///
/// # Errors
/// If the store cannot be read.
pub async fn open_branch(
    store: &dyn LogStore,
    id: &str,
    branch: &StoredBranch,
    (seed, now): (Seed, Ms),
) -> Result<SessionLog> {
    let mut log = SessionLog::new(id, seed, now, MergeQueue::new(store));
    let read = |head| open_record::<SessionHead>(RecordKind::Head, head);
    let head = read(&branch.head)?;
    let fork_head = branch.fork_head.as_ref().map(read).transpose()?.unwrap_or_default();
    // A side that went on in another branch has all records of that one.
    let is_same = fork_head.branch == head.branch;
    let shared_end = if is_same { fork_head.next_record } else { head.branch.first_own_key() };
    log.head.branch = head.branch.clone();
    let mut records = Vec::new();
    for (from, past) in head.branch.ranges(shared_end) {
        records.extend(store.read(id, Query { from, to: past - 1, ..Query::all(Table::Log) }).await?);
    }
    records.extend(branch.log.iter().cloned());
    log.add_records(&records, &mut 0, head.next_record);
    log.set_head(head);
    Ok(log)
}
