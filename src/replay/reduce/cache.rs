//! Replies of the application that are kept from one render to the next.

use super::question::{
    QuestionKind, RecordedReply, ReducerQuestion, ReducerReplies, ReducerReply, SelectedMessages, is_message_list,
};
use crate::history::{Coverage, History, StoredSummary, summary_message};
use crate::id::{IdMap, Seed};
use crate::message::Message;
use std::cell::OnceCell;
use std::rc::Rc;

/// The number of functions whose replies are kept. An application may create a new function for each call; its cache
/// must not grow.
const MAX_FUNCTIONS: usize = 8;

/// Token counts and summaries, kept from one render to the next.
#[derive(Clone, Debug, Default)]
pub struct ReducerCache {
    /// By the number of the function.
    counts: Vec<(u32, TokenCounts)>,
    summaries: Vec<CachedSummary>,
    /// Summaries that are not stored yet.
    unsaved: Vec<StoredSummary>,
}

impl ReducerCache {
    /// Removes everything, when the history was replaced.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Returns the token counts of a function.
    pub(super) fn counts(&self, callback: u32) -> Option<&TokenCounts> {
        self.counts.iter().find(|(id, _)| *id == callback).map(|(_, counts)| counts)
    }

    /// Returns the summary for a reducer.
    pub(super) fn summary(&self, reducer_hash: u64) -> Option<&CachedSummary> {
        self.summaries.iter().find(|summary| summary.reducer_hash == reducer_hash)
    }

    /// Returns the summaries that are not stored yet.
    #[must_use]
    pub fn unsaved_summaries(&self) -> &[StoredSummary] {
        &self.unsaved
    }

    /// Removes summaries that are stored from those to store.
    pub fn on_saved(&mut self, stored: &[StoredSummary]) {
        self.unsaved.retain(|summary| !stored.contains(summary));
    }

    /// Takes a reply. Each reducer asks once in a render; it is skipped if the reply is not of the kind that it asked
    /// for.
    pub fn take_reply(&mut self, question: ReducerQuestion, reply: ReducerReply, replies: &mut ReducerReplies) {
        let source = question.source;
        let recorded = match (&question.question, reply) {
            (_, ReducerReply::Failed(reason)) => RecordedReply::Failed(reason),
            (QuestionKind::Count(texts), ReducerReply::Counts(counts)) if counts.len() == texts.len() => {
                self.add_counts(question, counts);
                RecordedReply::Cached
            }
            (QuestionKind::Summarize(_), ReducerReply::Summary(text)) if !text.trim().is_empty() => {
                self.add_summary(&question, &text);
                RecordedReply::Cached
            }
            (QuestionKind::Reduce(_), ReducerReply::Messages(messages)) if is_message_list(&messages) => {
                RecordedReply::Selected(Rc::new(SelectedMessages { messages, decoded: OnceCell::new() }))
            }
            _ => RecordedReply::Failed("it gave something else than what it was asked for".into()),
        };
        replies.push(source, recorded);
    }

    fn add_counts(&mut self, question: ReducerQuestion, counts: Vec<u64>) {
        let callback = question.callback.id;
        if self.counts(callback).is_none() {
            if self.counts.len() >= MAX_FUNCTIONS {
                self.counts.remove(0);
            }
            self.counts.push((callback, TokenCounts::new(question.seed)));
        }
        if let Some((_, cached)) = self.counts.iter_mut().find(|(id, _)| *id == callback) {
            for ((key, signature), tokens) in question.counted.into_iter().zip(counts) {
                cached.insert(key, signature, tokens);
            }
        }
    }

    fn add_summary(&mut self, question: &ReducerQuestion, text: &str) {
        let message = summary_message(question.role, text);
        let reducer_hash = question.reducer_hash;
        self.summaries.retain(|summary| summary.reducer_hash != reducer_hash);
        self.unsaved.retain(|summary| summary.reducer_hash != Some(reducer_hash));
        if self.summaries.len() >= MAX_FUNCTIONS {
            self.summaries.remove(0);
        }
        if self.unsaved.len() >= MAX_FUNCTIONS {
            self.unsaved.remove(0);
        }
        if let Some(coverage) = question.coverage.as_ref().filter(|_| question.is_stored) {
            let (coverage, message) = (coverage.clone(), message.clone());
            self.unsaved.push(StoredSummary { coverage, message, reducer_hash: Some(reducer_hash), chain_start: None });
        }
        let (last_message_id, coverage) = (question.last_message_id.clone(), question.coverage.clone());
        self.summaries.push(CachedSummary { reducer_hash, last_message_id, coverage, message });
    }
}

/// The token counts of one function, by message id or invocation id.
///
/// The counted text may change: a result arrives late, or is shortened. A count is valid for one signature of the text.
#[derive(Clone, Debug)]
pub(super) struct TokenCounts {
    /// The index in `list`.
    indices: IdMap<usize>,
    /// Signature and tokens.
    list: Vec<(u64, u64)>,
}

impl TokenCounts {
    fn new(seed: Seed) -> Self {
        Self { indices: IdMap::with_seed(seed), list: Vec::new() }
    }

    fn insert(&mut self, key: String, signature: u64, tokens: u64) {
        let index = *self.indices.get_or_insert(&key, self.list.len());
        match self.list.get_mut(index) {
            Some(count) => *count = (signature, tokens),
            None => self.list.push((signature, tokens)),
        }
    }

    pub fn get(&self, key: &str, signature: u64) -> Option<u64> {
        let (counted, tokens) = self.list.get(*self.indices.get(key)?)?;
        (*counted == signature).then_some(*tokens)
    }
}

/// A summary of the beginning of a history.
#[derive(Clone, Debug)]
pub(super) struct CachedSummary {
    /// The hash of the reducer that asked for it, with its settings.
    reducer_hash: u64,
    /// The id of the last message that it covers. It covers all messages before that one, too.
    pub last_message_id: String,
    /// The stored messages that it covers; `None` if the last of them was not stored when it was made.
    coverage: Option<Coverage>,
    /// The message that is sent instead.
    pub message: Message,
}

impl CachedSummary {
    /// Returns false if a covered message is missing, or a covered call was answered later.
    pub fn applies_to(&self, history: &History) -> bool {
        self.coverage.as_ref().is_none_or(|coverage| history.covers(coverage))
    }
}
