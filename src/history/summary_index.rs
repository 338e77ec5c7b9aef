//! [`SummaryIndex`]: the summaries that apply to a history, and the hashes that decide whether a stored summary
//! applies.

use super::stored_summary::{Coverage, StoredSummary};
use crate::id::{HASH_START, hash_on};
use crate::message::Dialect;

/// The number of compactions that a history keeps: if the newest one does not apply any more, an older one may.
const MAX_COMPACTIONS: usize = 4;

/// The number of summaries of reducers that a history keeps, one of each reducer.
const MAX_REDUCER_SUMMARIES: usize = 8;

/// A summary that applies to a history.
#[derive(Clone, Debug)]
pub struct ActiveSummary {
    /// The summary.
    pub stored: StoredSummary,
    /// The index of the first message that it covers: system messages before it stay.
    pub first: usize,
    /// The index after the last message that it covers. System messages before it stay, too.
    pub end: usize,
}

impl ActiveSummary {
    /// Returns true if a request of the dialect may contain the summary: a service's is of one dialect.
    #[must_use]
    pub fn is_for(&self, dialect: Option<Dialect>) -> bool {
        self.stored.message.dialect.is_none_or(|own| Some(own) == dialect)
    }
}

/// The summaries that apply to a history, and the hashes that decide whether a stored summary applies.
#[derive(Clone, Debug, Default)]
pub(super) struct SummaryIndex {
    /// In the order in which they were stored.
    active: Vec<ActiveSummary>,
    /// By index of a message: the hash of the ids up to it.
    ids_hashes: Vec<u64>,
    /// In the order in which they were stored.
    late_results: Vec<LateResult>,
}

/// A result that was stored after its call.
#[derive(Clone, Copy, Debug)]
struct LateResult {
    /// The hash of the ids of the invocations of the late results up to this one.
    hash: u64,
    /// The index of the message that has the call.
    message_index: usize,
}

impl SummaryIndex {
    pub fn reserve(&mut self, messages: usize) {
        self.ids_hashes.reserve(messages);
    }

    /// Adds the next message of the history.
    pub fn add_message(&mut self, id: &str) {
        self.ids_hashes.push(hash_with_id(self.ids_hashes.last().copied(), id));
    }

    /// Adds a result that was stored after its call. A summary that covers the call does not contain it.
    pub fn add_late_result(&mut self, invocation: &str, message_index: usize) {
        let hash = hash_with_id(self.late_results.last().map(|result| result.hash), invocation);
        self.late_results.push(LateResult { hash, message_index });
        self.active.retain(|summary| summary.end <= message_index);
    }

    /// Returns the number of results that were stored after their calls.
    pub fn late_result_count(&self) -> usize {
        self.late_results.len()
    }

    /// Returns the hash of the results that were stored after their calls; 0 without any.
    pub fn late_results_hash(&self) -> u64 {
        self.late_results.last().map_or(0, |result| result.hash)
    }

    /// Returns the number of results that had this hash; 0 if they are not the first ones of this history.
    pub fn count_of_hash(&self, hash: u64) -> usize {
        self.late_results.iter().position(|result| result.hash == hash).map_or(0, |last| last + 1)
    }

    /// Returns the summary that applies: that of the reducer, or with `None` the compaction.
    pub fn newest_of(&self, reducer_hash: Option<u64>) -> Option<&ActiveSummary> {
        self.active.iter().rev().find(|summary| summary.stored.reducer_hash == reducer_hash)
    }

    /// Returns the newest compaction for which `reads` returns true.
    pub fn compaction_where(&self, reads: &dyn Fn(&ActiveSummary) -> bool) -> Option<&ActiveSummary> {
        self.active.iter().rev().find(|summary| summary.stored.reducer_hash.is_none() && reads(summary))
    }

    /// Returns what a summary of the messages up to the one at the index `last` covers.
    pub fn coverage(&self, last: usize, id: &str) -> Option<Coverage> {
        Some(Coverage {
            message_count: last as u64 + 1,
            ids_hash: *self.ids_hashes.get(last)?,
            late_result_count: self.late_results.len() as u64,
            late_results_hash: self.late_results_hash(),
            last_message_id: id.to_owned(),
        })
    }

    /// Adds a summary that applies. Removes the former one of the same reducer, and the oldest one if there are too
    /// many: a compaction if it is one, else that of a reducer.
    pub fn add(&mut self, summary: ActiveSummary) {
        let reducer_hash = summary.stored.reducer_hash;
        let limit = if reducer_hash.is_none() { MAX_COMPACTIONS } else { MAX_REDUCER_SUMMARIES };
        let is_of_kind = |other: &ActiveSummary| other.stored.reducer_hash.is_some() == reducer_hash.is_some();
        if reducer_hash.is_some() {
            self.active.retain(|other| other.stored.reducer_hash != reducer_hash);
        }
        if self.active.iter().filter(|other| is_of_kind(other)).count() >= limit
            && let Some(oldest) = self.active.iter().position(is_of_kind)
        {
            self.active.remove(oldest);
        }
        self.active.push(summary);
    }

    /// Returns the index after the last message that a summary covers, if it applies.
    pub fn covered_end(&self, coverage: &Coverage) -> Option<usize> {
        let end = usize::try_from(coverage.message_count).ok().filter(|end| *end > 0)?;
        if self.ids_hashes.get(end - 1) != Some(&coverage.ids_hash) {
            return None;
        }
        let late_results = usize::try_from(coverage.late_result_count).ok()?;
        let has_results = match late_results.checked_sub(1) {
            None => true,
            Some(last) => self.late_results.get(last).is_some_and(|result| result.hash == coverage.late_results_hash),
        };
        let answered_since = self.late_results.get(late_results..)?;
        (has_results && answered_since.iter().all(|result| result.message_index >= end)).then_some(end)
    }
}

/// Returns the hash of a list of ids from that of the ids before the last one.
fn hash_with_id(before: Option<u64>, id: &str) -> u64 {
    // The end of an id is part of the hash: "a", "bc" differs from "ab", "c".
    hash_on(hash_on(before.unwrap_or(HASH_START), id.as_bytes()), &[0xff])
}
