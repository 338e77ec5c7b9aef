//! Results that came after a later answer than that of their call.
//!
//! A request contains such a result at its call, like any other. One that begins with a compaction which came between
//! call and result has no call, and what the compaction says of it is out of date: the result follows as a message.

use super::late_results::LateResult;
use crate::clock::Ms;
use crate::message::Message;
use std::collections::BTreeMap;

/// The results of a history that came after a later answer than that of their call.
#[derive(Clone, Debug, Default)]
pub struct OvertakenResults {
    list: Vec<OvertakenResult>,
    /// The index in `list`, by invocation.
    index: BTreeMap<String, usize>,
}

/// A result that came after a later answer than that of its call.
#[derive(Clone, Debug)]
pub(super) struct OvertakenResult {
    /// The messages that are sent in place of the result.
    pub late: LateResult,
    /// The index of the message that has the call.
    pub call_index: usize,
    /// The number of messages that were stored before it.
    pub stored_after: usize,
    /// When it came, if that is known.
    pub came_at: Option<Ms>,
}

impl OvertakenResults {
    /// Adds a result, or replaces the one of the same call.
    pub(super) fn add(&mut self, result: OvertakenResult) {
        if let Some(known) = self.index.get(&result.late.invocation).and_then(|at| self.list.get_mut(*at)) {
            *known = result;
            return;
        }
        self.index.insert(result.late.invocation.clone(), self.list.len());
        self.list.push(result);
    }

    /// Returns true if there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns the result of a call.
    #[must_use]
    pub fn get(&self, invocation: &str) -> Option<&LateResult> {
        Some(&self.find(invocation)?.late)
    }

    /// Returns the number of messages that were stored before the result of a call.
    #[must_use]
    pub fn stored_after(&self, invocation: &str) -> Option<usize> {
        Some(self.find(invocation)?.stored_after)
    }

    fn find(&self, invocation: &str) -> Option<&OvertakenResult> {
        self.list.get(*self.index.get(invocation)?)
    }

    /// Returns the results that an answer at an index does not know, although it stands for all messages before it,
    /// with the index of the message before which each is sent, ascending.
    #[must_use]
    pub fn unknown_to(&self, answer: usize, messages: &[Message]) -> Vec<(usize, &LateResult)> {
        if self.list.is_empty() {
            return Vec::new();
        }
        // The messages of a run are stored after what came while it was under way, and what its requests have of
        // history is that of its beginning.
        let run = messages.get(answer).and_then(|answer| answer.run_id.as_ref());
        let until = messages.get(..=answer).unwrap_or_default();
        let is_of_run = |message: &&Message| run.is_some() && message.run_id.as_ref() == run;
        let first = until.len() - until.iter().rev().take_while(is_of_run).count();
        let began_at = messages.get(first).filter(|_| first < until.len()).map(|message| message.created_at);
        let is_known = |result: &OvertakenResult| {
            let came_before = || result.came_at.zip(began_at).is_some_and(|(came_at, began_at)| came_at < began_at);
            result.stored_after < first || result.stored_after <= answer && (began_at.is_none() || came_before())
        };
        let unknown = self.list.iter().filter(|result| result.call_index < answer && !is_known(result));
        let mut unknown: Vec<_> = unknown.map(|result| (result.stored_after.max(answer + 1), &result.late)).collect();
        unknown.sort_by_key(|(place, _)| *place);
        unknown
    }
}
