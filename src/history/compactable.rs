//! Selects the part of a history that a compaction may cover: completed turns (R30).

use super::fold::History;
use crate::message::{Message, PartBody, Role};

/// The part of a history that a compaction would cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compactable {
    /// Every turn that is over is covered already, or there is none.
    Nothing,
    /// The newest turn waits for the results of its calls, or for the model's answer to them.
    Unfinished,
    /// Turns that are over.
    Turns {
        /// The index after their last message.
        end: usize,
        /// The number of answers, calls and results in them that no compaction covers. Messages of the user do not
        /// count.
        item_count: usize,
    },
}

impl History {
    /// Returns what a compaction would cover: all turns before the first that is not over, or that belongs to a run for
    /// which `is_pending` returns true.
    #[must_use]
    pub fn compactable(&self, is_pending: &dyn Fn(&str) -> bool) -> Compactable {
        let messages = self.messages();
        let Some(last) = messages.iter().rev().find(|message| !message.is_system()) else {
            return Compactable::Nothing;
        };
        let is_open = self.open_calls().any(|call| call.turn == last.turn);
        // A run that is over calls the model no more: a tool has ended it.
        let is_continued = last.run_id.as_deref().is_none_or(is_pending);
        if is_open || last.role == Role::Assistant && self.has_calls(last) && is_continued {
            return Compactable::Unfinished;
        }
        let start = self.compaction().map_or(0, |compaction| compaction.end);
        let mut end = messages.len();
        if last.role != Role::Assistant {
            end = messages.partition_point(|message| message.turn < last.turn);
        }
        let of_run = |message: &Message| message.run_id.as_deref().is_some_and(is_pending);
        let new = messages.get(start..end).unwrap_or_default();
        if let Some(pending) = new.iter().find(|message| of_run(message)) {
            end = messages.partition_point(|message| message.turn < pending.turn);
        }
        let new = messages.get(start..end).unwrap_or_default();
        if new.iter().all(Message::is_system) {
            return Compactable::Nothing;
        }
        Compactable::Turns { end, item_count: new.iter().map(|message| self.count_items(message)).sum() }
    }

    /// Returns 1 for an answer with content, plus 1 for each of its calls and for each result.
    fn count_items(&self, message: &Message) -> usize {
        if message.role != Role::Assistant {
            return 0;
        }
        let has_content = message.parts.iter().any(|part| !matches!(part.body, PartBody::ToolCall { .. }));
        let calls = self.calls_of(message).map(|call| 1 + usize::from(call.result.is_some()));
        usize::from(has_content) + calls.sum::<usize>()
    }
}
