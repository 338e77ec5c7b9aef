//! Results that came after a later answer than that of their call.
//!
//! A request contains such a result at its call, like any other. One that begins with a compaction which came between
//! call and result has no call, and what the compaction says of it is out of date: the result follows as a message.

use super::late_results::LateResult;
use std::collections::BTreeMap;

/// The results of a history that came after a later answer than that of their call, by invocation.
#[derive(Clone, Debug, Default)]
pub struct OvertakenResults(BTreeMap<String, OvertakenResult>);

/// A result that came after a later answer than that of its call.
#[derive(Clone, Debug)]
pub(super) struct OvertakenResult {
    /// The messages that are sent in place of the result.
    pub late: LateResult,
    /// The index of the message that has the call.
    pub call_index: usize,
    /// The number of messages that were stored before it.
    pub stored_after: usize,
    /// Its number among the results that were stored after their calls, from 0.
    pub number: usize,
}

impl OvertakenResults {
    /// Adds a result, or replaces the one of the same call.
    pub(super) fn add(&mut self, result: OvertakenResult) {
        self.0.insert(result.late.invocation.clone(), result);
    }

    /// Removes the result of a call.
    pub(super) fn remove(&mut self, invocation: &str) {
        self.0.remove(invocation);
    }

    /// Returns true if there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the result of a call.
    #[must_use]
    pub fn get(&self, invocation: &str) -> Option<&LateResult> {
        Some(&self.0.get(invocation)?.late)
    }

    /// Returns the number of messages that were stored before the result of a call.
    #[must_use]
    pub fn stored_after(&self, invocation: &str) -> Option<usize> {
        Some(self.0.get(invocation)?.stored_after)
    }

    /// Returns the results of calls before the index `answer`, except the first `known` of those that were stored after
    /// their calls, with the index of the message before which each is sent, ascending.
    pub(super) fn after(&self, answer: usize, known: usize) -> Vec<(usize, &LateResult)> {
        let is_unknown = |result: &&OvertakenResult| result.call_index < answer && result.number >= known;
        let mut unknown: Vec<_> = self.0.values().filter(is_unknown).collect();
        unknown.sort_by_key(|result| result.number);
        unknown.into_iter().map(|result| (result.stored_after.max(answer + 1), &result.late)).collect()
    }
}
