//! Stored summaries: what a request contains instead of the beginning of a history (R30, R36). The messages that a summary covers stay
//! stored, and everything but replay shows them.
//!
//! A summary stands in for exactly the messages that it was made of. It does not apply to a history in which one of them is missing (another
//! side of a fork, an erased message, a damaged record), or in which a call of theirs was answered after the summary was made: then the
//! request contains the messages. So no summary can hide a message or a result that it does not contain.

use crate::encoding::encode_fields;
use crate::id::hash_on;
use crate::json::Json;
use crate::message::{Dialect, Message, PartBody, Role};

/// The number of compactions that a history keeps: if the newest one does not apply any more, an older one may.
const MAX_COMPACTIONS: usize = 4;

/// The number of summaries of reducers that a history keeps, one of each reducer.
const MAX_REDUCER_SUMMARIES: usize = 8;

/// A summary as it is stored, in the record of an append.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredSummary {
    /// The messages that it covers.
    pub coverage: Coverage,
    /// The message that is sent instead of them.
    pub message: Message,
    /// A hash of the settings of the reducer that asked for it; `None` for a compaction.
    pub reducer: Option<u64>,
    /// The response that the application gave as the beginning of the service's chain of responses, if the summary contains that chain.
    pub chain_start: Option<String>,
}
encode_fields!(struct StoredSummary {
    0 => coverage: required,
    1 => message: required,
    2 => reducer,
    3 => chain_start,
});

impl StoredSummary {
    /// Creates a compaction from the model's text. Its message is the user's, so that every provider accepts it at the beginning, and alone.
    #[must_use]
    pub fn compaction(coverage: Coverage, text: &str, chain_start: Option<String>) -> Self {
        Self { coverage, message: summary_message(Role::User, text), reducer: None, chain_start }
    }

    /// Creates a compaction from the items that a service of this dialect returned instead of its chain of responses.
    #[must_use]
    pub fn of_items(coverage: Coverage, (dialect, items): (Dialect, Vec<Json>), chain_start: Option<String>) -> Self {
        let parts = items.into_iter().map(|item| PartBody::Opaque(item).into()).collect();
        let message = Message { parts, dialect: Some(dialect), ..summary_message(Role::Assistant, "") };
        Self { coverage, message, reducer: None, chain_start }
    }
}

impl ActiveSummary {
    /// Returns true if a request of the dialect may contain the summary: a service's is of one dialect.
    #[must_use]
    pub fn is_for(&self, dialect: Option<Dialect>) -> bool {
        self.stored.message.dialect.is_none_or(|own| Some(own) == dialect)
    }
}

/// Returns the message that is sent instead of those that a summary covers.
#[must_use]
pub fn summary_message(role: Role, text: &str) -> Message {
    Message::from_text(role, &format!("Summary of the conversation before this:\n{text}"))
}

/// Identifies the messages that a summary covers: the beginning of a history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// The number of messages.
    pub count: u64,
    /// The hash of their ids.
    pub digest: u64,
    /// The number of results in the whole history that were stored after their calls.
    pub results: u64,
    /// The hash of the ids of the invocations of these results.
    pub results_digest: u64,
    /// The id of the last message.
    pub last: String,
}
encode_fields!(struct Coverage {
    0 => count,
    1 => digest,
    2 => results,
    3 => results_digest,
    4 => last,
});

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

/// The summaries of a history, and what tells whether one applies.
#[derive(Clone, Debug, Default)]
pub(super) struct SummaryIndex {
    /// In the order in which they were stored.
    active: Vec<ActiveSummary>,
    /// By index of a message: the hash of the ids up to it.
    digests: Vec<u64>,
    /// Of each result that was stored after its call, in order: the hash of the ids of the invocations up to it, and the index of its message.
    late_results: Vec<(u64, usize)>,
}

impl SummaryIndex {
    pub fn reserve(&mut self, messages: usize) {
        self.digests.reserve(messages);
    }

    /// Adds the next message of the history.
    pub fn add_message(&mut self, id: &str) {
        self.digests.push(next_digest(self.digests.last(), id));
    }

    /// Adds a result that was stored after its call. A summary that covers the call does not contain it.
    pub fn add_late_result(&mut self, invocation: &str, message: usize) {
        let digest = next_digest(self.late_results.last().map(|(digest, _)| digest), invocation);
        self.late_results.push((digest, message));
        self.active.retain(|summary| summary.end <= message);
    }

    /// Returns the summary that applies: of the reducer with this hash of its settings, or the compaction.
    pub fn newest_of(&self, reducer: Option<u64>) -> Option<&ActiveSummary> {
        self.active.iter().rev().find(|summary| summary.stored.reducer == reducer)
    }

    /// Returns the newest compaction that a request of the dialect may contain.
    pub fn compaction_for(&self, dialect: Option<Dialect>) -> Option<&ActiveSummary> {
        self.active.iter().rev().find(|summary| summary.stored.reducer.is_none() && summary.is_for(dialect))
    }

    /// Returns what a summary of the messages up to the one at the index `last` covers.
    pub fn coverage(&self, last: usize, id: &str) -> Option<Coverage> {
        Some(Coverage {
            count: last as u64 + 1,
            digest: *self.digests.get(last)?,
            results: self.late_results.len() as u64,
            results_digest: self.late_results.last().map_or(0, |(digest, _)| *digest),
            last: id.to_owned(),
        })
    }

    /// Adds a summary that applies. Removes the oldest one of the same kind at its limit.
    pub fn add(&mut self, summary: ActiveSummary) {
        let is_same = |other: &ActiveSummary| other.stored.reducer == summary.stored.reducer;
        let most = if summary.stored.reducer.is_none() { MAX_COMPACTIONS } else { 1 };
        if self.active.iter().filter(|other| is_same(other)).count() >= most {
            let oldest = self.active.iter().position(is_same);
            if let Some(at) = oldest {
                self.active.remove(at);
            }
        }
        if self.active.len() >= MAX_COMPACTIONS + MAX_REDUCER_SUMMARIES {
            self.active.remove(0);
        }
        self.active.push(summary);
    }

    /// Returns the index after the last message that a summary covers, if it applies.
    pub fn covered_end(&self, coverage: &Coverage) -> Option<usize> {
        let end = usize::try_from(coverage.count).ok().filter(|end| *end > 0)?;
        if self.digests.get(end - 1) != Some(&coverage.digest) {
            return None;
        }
        let results = usize::try_from(coverage.results).ok()?;
        let has_results = match results.checked_sub(1) {
            None => true,
            Some(last) => self.late_results.get(last).is_some_and(|(digest, _)| *digest == coverage.results_digest),
        };
        let answered_since = self.late_results.get(results..)?;
        (has_results && answered_since.iter().all(|(_, message)| *message >= end)).then_some(end)
    }
}

fn next_digest(before: Option<&u64>, id: &str) -> u64 {
    // The end of an id is part of the hash: "a", "bc" differs from "ab", "c".
    let digest = before.map_or(0xcbf2_9ce4_8422_2325, |digest| *digest);
    hash_on(hash_on(digest, id.as_bytes()), &[0xff])
}
