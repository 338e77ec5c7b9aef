//! The end of a large log, which is read first.

use super::log::{SessionLog, UnreadRecords};
use super::segment::split_segment;
use super::{LogStore, Query, Record, Table};
use crate::branch_path::BranchPath;
use crate::session_head::SessionHead;
use bytes::Bytes;

/// Size of the end of a log that is read first, in bytes: more than a page of messages on a screen.
pub(super) const TAIL_BYTES: u64 = 128 * 1024;

/// Reads the end of what a branch shares, if it has too few records of its own. `records` are these, newest first.
/// Returns false if there is nothing to show, or the store fails to read it.
pub(super) async fn extend_tail(store: &dyn LogStore, head: &SessionHead, records: &mut Vec<Record>) -> bool {
    let branch = &head.branch;
    let mut bytes: u64 = records.iter().map(|record| bytes_in_branch(branch, record)).sum();
    let shared = head.branch.ranges(head.next_record.min(head.branch.first_own_key())).rev();
    for (from, past) in shared {
        let mut end = past;
        // Of the last segment the branch may share little.
        while bytes < TAIL_BYTES && from < end {
            let limit_bytes = TAIL_BYTES - bytes;
            let query = Query { from, to: end - 1, reverse: true, limit_bytes, ..Query::all(Table::Log) };
            let Ok(more) = store.read(&head.id, query).await else {
                records.clear();
                return false;
            };
            let Some(oldest) = more.last() else { break };
            end = oldest.key;
            bytes += more.iter().map(|record| bytes_in_branch(branch, record)).sum::<u64>();
            records.extend(more);
        }
    }
    !records.is_empty()
}

/// Returns the records of a record or segment that belong whole to a branch; none if its index cannot be read.
fn records_in_branch(branch: &BranchPath, record: &Record) -> Option<Vec<(u64, Bytes)>> {
    let past = branch.range_end(record.key).unwrap_or(0);
    let mut records = split_segment(record).ok()?.records;
    records.retain(|(key, _)| *key < past && branch.until_seq(*key).is_none());
    Some(records)
}

fn bytes_in_branch(branch: &BranchPath, record: &Record) -> u64 {
    let records = records_in_branch(branch, record).unwrap_or_default();
    records.iter().map(|(_, value)| value.len() as u64).sum()
}

/// Folds the newest records of a log, newest first. Folds only the last [`TAIL_BYTES`] of a segment.
pub(super) fn add_tail(log: &mut SessionLog, mut tail: Vec<Record>, past: u64) {
    tail.reverse();
    let Some(end) = tail.first().map(|record| record.key) else { return };
    let mut next = tail_start(&log.head.branch, &tail).unwrap_or(end);
    if log.head.branch.count_keys(0, next) > 0 {
        log.unread = Some(UnreadRecords { end, tail: tail.clone() });
    }
    log.add_records(&tail, &mut next, past);
    log.check_end(next, past);
}

/// Returns the key from which records of a branch, in key order, have [`TAIL_BYTES`]; none if they are smaller
/// together.
fn tail_start(branch: &BranchPath, tail: &[Record]) -> Option<u64> {
    let mut bytes = 0;
    for record in tail.iter().rev() {
        // An index that cannot be read is reported when the records are folded.
        for (key, value) in records_in_branch(branch, record)?.iter().rev() {
            bytes += value.len() as u64;
            if bytes >= TAIL_BYTES {
                return Some(*key);
            }
        }
    }
    None
}
