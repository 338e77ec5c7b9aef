//! What a log reads and writes of additions.

use super::additions::is_of_branch;
use super::log::{Change, SessionLog};
use super::record::{RecordKind, is_of_newer_build, open_record, seal_record};
use super::{Batch, Record, Table};
use crate::branch_path::ADDITIONS;
use crate::error::ErrorCode;
use crate::history::{HistoryEntry, LogRecord, ResultEntry};
use crate::session_head::SessionHead;
use crate::tool::InvocationStatus;
use std::collections::BTreeMap;

impl SessionLog {
    /// Returns the number of additions that were read or written.
    pub(super) fn addition_count(&self) -> u64 {
        self.additions.count
    }

    /// Sets the number of additions to that of a head that was written.
    pub(super) fn note_additions(&mut self, head: &SessionHead) {
        self.additions.count = self.additions.count.max(head.additions);
    }

    /// Adds additions that were read. Each is applied when the records before it are folded.
    pub(super) fn queue_additions(&mut self, records: &[Record]) {
        for record in records {
            let Some(number) = record.key.checked_sub(ADDITIONS).filter(|number| *number >= self.additions.count)
            else {
                continue;
            };
            self.additions.missing += number - self.additions.count;
            self.additions.count = number + 1;
            self.has_newer_records |= is_of_newer_build(&record.value);
            match open_record::<LogRecord>(RecordKind::Log, &record.value) {
                Ok(addition) => {
                    self.replace_carried(&addition);
                    self.additions.waiting.push(addition);
                }
                Err(error) => {
                    if error.code == ErrorCode::UnsupportedVersion {
                        self.read_only = Some(error.clone());
                    }
                    self.warn(format!(
                        "log record {}, with a result or an annotation of what branches of session \"{}\" share, cannot \
                         be read: {}",
                        record.key, self.head.id, error.message
                    ));
                }
            }
        }
    }

    /// Applies the additions that were stored before a revision.
    pub(super) fn apply_additions_before(&mut self, revision: u64) {
        self.additions.waiting.apply_before(revision, &mut self.history, &self.head.branch);
    }

    /// Applies the additions that are left, after all records were folded, and reports those that are missing of the
    /// `count` that the head has.
    pub(super) fn apply_last_additions(&mut self, count: u64) {
        let additions = &mut self.additions;
        let missing = std::mem::take(&mut additions.missing) + count.saturating_sub(additions.count);
        additions.count = additions.count.max(count);
        if missing > 0 {
            self.warn(format!(
                "{missing} log records with results or annotations of what branches of session \"{}\" share are gone; \
                 the branches in which they were made have them",
                self.head.id
            ));
        }
        self.additions.waiting.apply_rest(&mut self.history, &self.head.branch);
    }

    /// The first record of a branch, which comes later, must not bring an older annotation back.
    fn replace_carried(&mut self, addition: &LogRecord) {
        for annotation in &addition.annotations {
            if is_of_branch(&self.history, &self.head.branch, (&annotation.message, addition.added_to)) {
                self.carried.replace(annotation);
            }
        }
    }

    /// Adds to a batch what its record has of messages that other branches have, too.
    pub(super) fn write_additions(&self, head: &mut SessionHead, batch: &mut Batch, record: &LogRecord) {
        if head.branch_count == 0 && !head.runs.iter().any(|run| run.branch.is_unborn()) {
            return;
        }
        let mut additions: BTreeMap<u64, LogRecord> = BTreeMap::new();
        for entry in &record.entries {
            let HistoryEntry::Result(result) = entry else { continue };
            let call = self.history.invocation(&result.invocation).filter(|_| is_late_result(result));
            if let Some(branch) = call.and_then(|call| self.sharing_branch(&call.message_id, head)) {
                additions.entry(branch).or_insert_with(|| record.addition_to(branch)).entries.push(entry.clone());
            }
        }
        for annotation in &record.annotations {
            if let Some(branch) = self.sharing_branch(&annotation.message, head) {
                let addition = additions.entry(branch).or_insert_with(|| record.addition_to(branch));
                addition.annotations.push(annotation.clone());
            }
        }
        for addition in additions.values() {
            let value = seal_record(RecordKind::Log, addition);
            let key = ADDITIONS + head.additions;
            batch.put.push(Record { table: Table::Log, key, last_key: None, index: None, value });
            head.additions += 1;
        }
    }

    /// Returns the number of the branch that has a message, if other branches have it, too, or a run is of a branch
    /// that is not stored yet and will have it.
    fn sharing_branch(&self, message: &str, head: &SessionHead) -> Option<u64> {
        let seq = self.history.message(message)?.seq;
        let (own, branch) = (&self.head.branch, self.head.branch.branch_of(seq));
        let is_forked_later = || {
            let unborn = head.runs.iter().map(|run| &run.branch).filter(|path| path.is_unborn());
            let of_runs = unborn.filter_map(|path| path.shared_until(branch)).max();
            self.directory.shared_until(branch).max(of_runs).is_some_and(|until_seq| seq < until_seq)
        };
        (branch != own.number || is_forked_later()).then_some(branch)
    }
}

/// Returns true for a change that needs to know which messages other branches share.
pub(super) fn may_have_additions(change: &Change) -> bool {
    let is_late = |entry: &HistoryEntry| matches!(entry, HistoryEntry::Result(result) if is_late_result(result));
    !change.annotations.is_empty() || change.entries.iter().any(is_late)
}

/// Returns true for a result that came after its call. That a conversation goes on without one, or that nobody waits
/// for one, is said by its branch alone, and so is what a run stored in part and stores again.
fn is_late_result(result: &ResultEntry) -> bool {
    let has_outcome = result.result.is_some() || result.is_redacted;
    has_outcome && !result.is_deferral && !result.is_replacement && result.status != InvocationStatus::Interrupted
}
