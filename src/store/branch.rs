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
    let shared = branch.fork_head.as_ref().map(read).transpose()?.map_or(0, |head| head.next_record);
    let mut records = Vec::new();
    if let Some(to) = shared.checked_sub(1) {
        records = store.read(id, Query { to, ..Query::all(Table::Log) }).await?;
    }
    records.extend(branch.log.iter().cloned());
    let head = read(&branch.head)?;
    log.add_records(&records, &mut 0, head.next_record);
    log.set_head(head);
    Ok(log)
}
