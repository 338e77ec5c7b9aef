//! What an append writes of a log's branch.

use super::branch_directory::{AdoptedSide, BranchRow};
use super::record::{RecordKind, seal_record};
use crate::history::{Annotation, History, HistoryEntry, LogRecord, ResultEntry};
use crate::session_head::SessionHead;
use bytes::Bytes;

/// The place of a fork.
#[derive(Clone, Debug, Default)]
pub(super) struct ForkPlace {
    /// The id of the last message that is shared.
    pub(super) after: Option<String>,
    /// The id of the message in whose place the branch has another one.
    pub(super) beside: Option<String>,
    /// The other side of a conflict whose content the branch is born with.
    pub(super) adopted: Option<AdoptedSide>,
}

/// What an append writes of the log's branch.
#[derive(Default)]
pub(super) struct BranchWrite {
    /// The branch gets its number.
    pub(super) is_birth: bool,
    /// A log record is written.
    pub(super) has_record: bool,
    /// The head stays with the branch that it has: nothing is written of this one but what is beside history, such as a
    /// lease or a title.
    pub(super) stays: bool,
    /// The record of the branch in the directory.
    pub(super) row: Option<BranchRow>,
}

impl BranchWrite {
    /// Returns true if the append may write a log record: a branch without a number has no key for one.
    pub(super) fn has_keys(&self, head: &SessionHead) -> bool {
        self.is_birth || !head.branch.is_unborn()
    }
}

/// What the first record of a new branch repeats of the branch that it was forked from: what was stored of shared
/// messages after the place of the fork.
#[derive(Clone, Debug, Default)]
pub(super) struct CarriedContent {
    /// Results of shared calls.
    results: Vec<HistoryEntry>,
    /// The metadata of shared messages.
    annotations: Vec<Annotation>,
}

impl CarriedContent {
    /// Returns what `whole`, the history of the forked branch, has of the messages in `shared` beyond that.
    pub(super) fn of(shared: &History, whole: &History) -> Self {
        let known = |call: &str| {
            let call = whole.invocation(call)?;
            call.result.as_ref()?;
            Some(HistoryEntry::Result(ResultEntry {
                invocation: call.id.clone(),
                status: call.status,
                started_at: call.started_at,
                finished_at: call.finished_at,
                freshness: call.freshness,
                result: call.result.clone(),
                is_redacted: call.is_redacted(),
                ..ResultEntry::default()
            }))
        };
        let results = shared.open_calls().filter_map(|call| known(&call.id)).collect();
        Self { results, annotations: later_annotations(shared, whole) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.results.is_empty() && self.annotations.is_empty()
    }

    /// Adds an annotation, or replaces that of the same message.
    pub(super) fn add(&mut self, annotation: Annotation) {
        self.annotations.retain(|carried| carried.message != annotation.message);
        self.annotations.push(annotation);
    }

    /// Adds what was stored later. Of two annotations of one message the later one counts.
    pub(super) fn extend(&mut self, later: Self) {
        self.results.extend(later.results);
        later.annotations.into_iter().for_each(|annotation| self.add(annotation));
    }

    /// Replaces the annotation of a message, if there is one.
    pub(super) fn replace(&mut self, annotation: &Annotation) {
        let of_message = self.annotations.iter_mut().filter(|carried| carried.message == annotation.message);
        of_message.for_each(|carried| carried.metadata.clone_from(&annotation.metadata));
    }

    /// Applies it to a history.
    pub(super) fn apply(&self, history: &mut History) {
        self.results.iter().for_each(|entry| history.apply(entry.clone()));
        self.annotations.iter().for_each(|annotation| history.annotate(annotation.clone()));
    }

    /// Encodes a record, with what is carried before its own content.
    pub(super) fn seal_before(&self, record: &mut LogRecord) -> Bytes {
        record.entries.splice(0..0, self.results.iter().cloned());
        record.annotations.splice(0..0, self.annotations.iter().cloned());
        let value = seal_record(RecordKind::Log, &*record);
        record.entries.drain(..self.results.len());
        record.annotations.drain(..self.annotations.len());
        value
    }
}

/// Returns the annotations of the messages in `shared` that only the whole history of the branch has.
pub(super) fn later_annotations(shared: &History, whole: &History) -> Vec<Annotation> {
    let mut later = Vec::new();
    for message in shared.messages() {
        let metadata = whole.message(&message.id).map(|known| &known.metadata);
        if let Some(metadata) = metadata.filter(|metadata| **metadata != message.metadata) {
            later.push(Annotation { message: message.id.clone(), metadata: metadata.clone() });
        }
    }
    later
}
