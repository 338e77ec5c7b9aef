//! Which messages of a history are sent.

use crate::clock::Ms;
use crate::finding::Report;
use crate::history::History;
use crate::provider::extra_content;
use crate::replay::{DraftOrigin, HistoryScope, Policy, ReducerCache, ReducerReplies, ReplayInput, replay};

/// Returns the indices of the stored messages that a request contains, in order. With a reducer that asks the
/// application these are all messages: what it would reply is not known here. All messages, too, if a compaction
/// applies, since its summary is not a message of the history.
#[must_use]
pub fn replayed_messages(history: &History, live: &History, policy: &Policy, now: Ms) -> Vec<usize> {
    let (cache, replies) = (ReducerCache::default(), ReducerReplies::default());
    let input = ReplayInput {
        history,
        live: Some(live),
        trimmed: None,
        delta: None,
        dialect: None,
        compaction: history.compaction_for(None),
        compacted_before: 0,
        extra_content,
        policy,
        handoffs: &[],
        scope: HistoryScope::Whole,
        sent: None,
        now,
        cache: &cache,
        replies: &replies,
    };
    let Ok(draft) = replay(&input, &mut Report::new()) else { return (0..history.messages().len()).collect() };
    if history.compaction().is_some() || draft.messages.iter().any(|item| item.origin == DraftOrigin::Replacement) {
        return (0..history.messages().len()).collect();
    }
    let mut indices = Vec::new();
    for item in &draft.messages {
        if let DraftOrigin::Stored(index) = item.origin {
            indices.push(index);
        }
    }
    indices
}
