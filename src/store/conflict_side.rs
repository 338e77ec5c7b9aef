//! Reads the other side of a conflict as a session of its own.

use super::additions::{is_addition, read_additions};
use super::branch_directory::{BranchDirectory, read_rows};
use super::log::SessionLog;
use super::merge_queue::MergeQueue;
use super::record::{RecordKind, open_record};
use super::{LogStore, Query, Record, StoredBranch, Table};
use crate::branch_path::{BranchPath, DIRECTORY};
use crate::clock::Ms;
use crate::error::Result;
use crate::history::LogRecord;
use crate::id::Seed;
use crate::session_head::SessionHead;
use std::collections::BTreeMap;

/// Returns the log of a side: the branch that it was at, with what it shares with the session's history and what it
/// alone has. It cannot be appended to.
///
/// # Errors
/// If the store cannot be read.
pub async fn open_conflict_side(
    store: &dyn LogStore,
    id: &str,
    side: &StoredBranch,
    (seed, now): (Seed, Ms),
) -> Result<SessionLog> {
    let mut log = SessionLog::new(id, seed, now, MergeQueue::new(store));
    let read = |head| open_record::<SessionHead>(RecordKind::Head, head);
    let head = read(&side.head)?;
    let fork_head = side.fork_head.as_ref().map(read).transpose()?;
    log.head.branch = head.branch.clone();
    let count = fork_head.as_ref().map_or(0, |head| head.additions);
    log.queue_additions(&read_additions(store, id, (0, count)).await?);
    log.queue_additions(&side.log.iter().filter(|record| is_addition(record)).cloned().collect::<Vec<_>>());
    let (mut records, mut directory) = (BTreeMap::new(), BranchDirectory::default());
    if let Some(fork_head) = fork_head {
        let shared = read_shared(store, id, (&head, &fork_head)).await?;
        records.extend(shared.into_iter().map(|record| (record.key, record)));
        if fork_head.branch_count > 0 {
            let range = (DIRECTORY, DIRECTORY + fork_head.branch_count);
            log.findings.extend(read_rows(store, id, &mut directory, range).await?);
        }
    }
    log.findings.extend(directory.add(id, &side.log));
    log.set_directory(directory);
    // Both sides have records of the same keys.
    records.extend(side.log.iter().map(|record| (record.key, record.clone())));
    let records: Vec<_> = records.into_values().collect();
    let mut next = 0;
    log.add_records(&records, &mut next, head.next_record);
    log.check_end(next, head.next_record);
    log.apply_last_additions();
    log.set_head(head);
    Ok(log)
}

/// Reads the records of a side's branch that were written before the sides parted. Those that the session's history
/// has from later on are not of this side.
async fn read_shared(
    store: &dyn LogStore,
    id: &str,
    (head, fork_head): (&SessionHead, &SessionHead),
) -> Result<Vec<Record>> {
    let mut shared = Vec::new();
    for (from, past) in ranges_before(&head.branch, head.next_record, fork_head) {
        let records = store.read(id, Query { from, to: past - 1, ..Query::all(Table::Log) }).await?;
        shared.extend(records.into_iter().filter(|record| is_before(record, fork_head)));
    }
    Ok(shared)
}

/// Returns the ranges of keys of a branch before `end`. The counter of the head where the sides parted says where the
/// shared records of its branch end.
fn ranges_before(branch: &BranchPath, end: u64, fork_head: &SessionHead) -> Vec<(u64, u64)> {
    let parted = (fork_head.branch.first_own_key(), fork_head.next_record);
    let cut = |(from, past): (u64, u64)| if from == parted.0 { (from, past.min(parted.1)) } else { (from, past) };
    branch.ranges(end).map(cut).filter(|(from, past)| from < past).collect()
}

/// Returns true for a record that was written before the sides parted. One that cannot be read is reported as damaged.
fn is_before(record: &Record, fork_head: &SessionHead) -> bool {
    let log = open_record::<LogRecord>(RecordKind::Log, &record.value);
    log.map_or(true, |log| log.mark.history_revision <= fork_head.history_revision)
}
