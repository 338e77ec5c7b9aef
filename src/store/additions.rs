//! Additions: results and annotations that are stored of a message when several branches share it already.
//!
//! The branch in which one is made has it in a record of its own, as without other branches. An addition repeats it for
//! the others: a log record with a key above those of all branches, which names the branch that has the message. A
//! reader of any branch applies the additions to messages that it has, each after what its branch had stored before.

use super::{LogStore, PAGE_BYTES, Query, Record, Table};
use crate::branch_path::{ADDITIONS, BranchPath, DIRECTORY};
use crate::error::Result;
use crate::history::{Annotation, History, HistoryEntry, LogRecord};
use std::collections::VecDeque;

/// Additions in the order in which they were stored, beside the records of a branch that is folded.
#[derive(Default)]
pub(super) struct WaitingAdditions {
    waiting: VecDeque<LogRecord>,
    /// Those whose messages were not there when they were applied. A writer that took another side of a conflict for
    /// history may have counted otherwise.
    unplaced: Vec<LogRecord>,
}

impl WaitingAdditions {
    pub(super) fn push(&mut self, addition: LogRecord) {
        self.waiting.push_back(addition);
    }

    /// Applies those that were stored before a revision. What the history has already changes nothing.
    pub(super) fn apply_before(&mut self, revision: u64, history: &mut History, path: &BranchPath) {
        while let Some(addition) = self.waiting.pop_front_if(|addition| addition.mark.revision < revision) {
            self.unplaced.extend(apply_addition(addition, history, path));
        }
    }

    /// Applies those that are left: they were stored after all records of the branch. Those to messages that the branch
    /// does not have change nothing.
    pub(super) fn apply_rest(&mut self, history: &mut History, path: &BranchPath) {
        for addition in std::mem::take(&mut self.unplaced).into_iter().chain(std::mem::take(&mut self.waiting)) {
            apply_addition(addition, history, path);
        }
    }
}

/// Applies what an addition has of messages of a branch. Returns the rest; none if nothing is left.
fn apply_addition(mut addition: LogRecord, history: &mut History, path: &BranchPath) -> Option<LogRecord> {
    let of_branch = addition.take_additions_to(history, path);
    of_branch.entries.into_iter().for_each(|entry| history.apply(entry));
    of_branch.annotations.into_iter().for_each(|annotation| history.annotate(annotation));
    (!addition.entries.is_empty() || !addition.annotations.is_empty()).then_some(addition)
}

impl LogRecord {
    /// Returns an empty addition to messages of a branch, which is stored with this record.
    pub(super) fn addition_to(&self, branch: u64) -> Self {
        Self {
            operation: self.operation.clone(),
            run: None,
            at: self.at,
            mark: self.mark.clone(),
            entries: Vec::new(),
            run_continues: false,
            summaries: Vec::new(),
            annotations: Vec::new(),
            added_to: branch,
        }
    }

    /// Returns an addition with what this one has of messages of a branch, and removes that.
    pub(super) fn take_additions_to(&mut self, history: &History, path: &BranchPath) -> Self {
        let branch = self.added_to;
        let has = |id: &str| is_of_branch(history, path, (id, branch));
        let has_call = |id: &str| history.invocation(id).is_some_and(|call| has(&call.message_id));
        let is_known = |entry: &HistoryEntry| entry_call(entry).is_some_and(has_call);
        let (entries, left) = std::mem::take(&mut self.entries).into_iter().partition(is_known);
        let (annotations, unknown) = std::mem::take(&mut self.annotations)
            .into_iter()
            .partition(|annotation: &Annotation| has(&annotation.message));
        let known = Self { entries, annotations, ..self.addition_to(branch) };
        (self.entries, self.annotations) = (left, unknown);
        known
    }
}

/// Returns true if a branch has a message, and has it of the branch of this number.
pub(super) fn is_of_branch(history: &History, path: &BranchPath, (id, branch): (&str, u64)) -> bool {
    history.message(id).is_some_and(|message| path.branch_of(message.seq) == branch)
}

/// Returns the call that an entry is the result of.
fn entry_call(entry: &HistoryEntry) -> Option<&str> {
    match entry {
        HistoryEntry::Result(result) => Some(&result.invocation),
        _ => None,
    }
}

/// What a log has read of the additions.
#[derive(Default)]
pub(super) struct Additions {
    /// The number of those that were read or written, and of those before them that are missing.
    pub(super) count: u64,
    /// The number of those that are missing and were not reported yet.
    pub(super) missing: u64,
    pub(super) waiting: WaitingAdditions,
}

/// Reads the additions from a number to before another.
///
/// # Errors
/// The store's own.
pub(super) async fn read_additions(store: &dyn LogStore, id: &str, (from, past): (u64, u64)) -> Result<Vec<Record>> {
    let (mut key, end) = (ADDITIONS + from, ADDITIONS.saturating_add(past).min(DIRECTORY));
    let mut additions = Vec::new();
    while key < end {
        let query = Query { from: key, to: end - 1, limit_bytes: PAGE_BYTES, ..Query::all(Table::Log) };
        let records = store.read(id, query).await?;
        let Some(last) = records.last() else { break };
        key = last.key + 1;
        additions.extend(records);
    }
    Ok(additions)
}

/// Returns true for a record of the log that is an addition.
pub(super) fn is_addition(record: &Record) -> bool {
    record.table == Table::Log && (ADDITIONS..DIRECTORY).contains(&record.key)
}
