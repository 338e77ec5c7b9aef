//! Groups of messages that reducers keep or drop as one: a message with its calls and their results, and the reasoning
//! before it.

use super::context::dropped;
use crate::finding::Report;
use crate::message::{PartBody, Role};
use crate::replay::request_draft::{DraftMessage, DraftOrigin, RequestDraft};

/// Consecutive messages of a draft that are kept or dropped as one.
pub(super) struct MessageGroup {
    /// The index of its first message in the draft. It ends where the next group starts.
    pub start: usize,
    /// True for a system message. It is not counted.
    pub is_system: bool,
    /// True for a message of the user.
    pub is_user: bool,
    /// True if it has calls.
    pub has_calls: bool,
    /// True for a summary of older messages.
    pub is_summary: bool,
    /// Its turn in this draft, from 0. A turn begins at the user's first message after an answer.
    pub turn: usize,
}

/// The groups of a draft, and which of them are kept.
pub(super) struct MessageGroups {
    pub list: Vec<MessageGroup>,
    /// By group: true if it is kept.
    pub keep: Vec<bool>,
    /// The index of the group with the user's newest message.
    pub newest_user: Option<usize>,
    /// The index of the newest group that is not a system message.
    pub newest: Option<usize>,
}

impl MessageGroups {
    /// Groups a draft. All groups are kept.
    pub fn of(draft: &RequestDraft<'_>) -> Self {
        let mut list: Vec<MessageGroup> = Vec::new();
        let (mut turn, mut answered, mut after_reasoning) = (0, false, false);
        let (mut newest_user, mut newest) = (None, None);
        for (start, item) in draft.messages.iter().enumerate() {
            let role = item.message.role;
            let is_user = role == Role::User && item.origin != DraftOrigin::LateResult;
            if is_user && answered {
                turn += 1;
                answered = false;
            }
            let is_summary = item.origin == DraftOrigin::Replacement;
            let has_calls = !item.calls.is_empty();
            answered |= role == Role::Assistant;
            match list.last_mut().filter(|_| after_reasoning && role == Role::Assistant) {
                Some(group) => group.has_calls |= has_calls,
                None => {
                    list.push(MessageGroup {
                        start,
                        is_system: item.is_system(),
                        is_user,
                        has_calls,
                        is_summary,
                        turn,
                    });
                }
            }
            if !item.is_system() {
                newest = Some(list.len() - 1);
            }
            if is_user && !is_summary && item.has_content() {
                newest_user = Some(list.len() - 1);
            }
            after_reasoning = role == Role::Assistant && !has_calls && is_reasoning_only(item);
        }
        Self { keep: vec![true; list.len()], newest_user, newest, list }
    }

    /// Returns the number of turns.
    pub fn turns(&self) -> usize {
        self.list.last().map_or(0, |last| last.turn + 1)
    }

    /// Returns the groups that are not system messages, with their indices.
    pub fn counted(&self) -> impl DoubleEndedIterator<Item = (usize, &MessageGroup)> {
        self.list.iter().enumerate().filter(|(_, group)| !group.is_system)
    }

    /// Returns true for a group that no reducer drops: the user's newest message, and the newest of all, which the run
    /// continues.
    pub fn is_pinned(&self, at: usize) -> bool {
        self.newest_user == Some(at) || self.newest == Some(at)
    }

    /// Drops a group, unless it is pinned or a system message. Returns true if it was dropped now.
    pub fn drop_group(&mut self, at: usize) -> bool {
        if self.is_pinned(at) || self.list.get(at).is_none_or(|group| group.is_system) {
            return false;
        }
        self.keep.get_mut(at).is_some_and(|keep| std::mem::replace(keep, false))
    }

    /// Drops the groups before the index `oldest`, except those that [`drop_group`](Self::drop_group) keeps.
    pub fn drop_before(&mut self, oldest: usize) {
        for at in 0..oldest {
            self.drop_group(at);
        }
    }

    /// Removes the dropped groups from the draft.
    pub fn apply(mut self, draft: &mut RequestDraft<'_>, reason: &'static str, report: &mut Report) {
        if self.keep.iter().all(|keep| *keep) {
            return;
        }
        if self.list.iter().zip(&self.keep).any(|(group, keep)| !group.is_system && !keep) {
            self.drop_leading_rounds();
        }
        let (mut at, mut next, mut keep) = (0, 0, true);
        draft.retain(&mut |item| {
            if self.list.get(next).is_some_and(|group| group.start == at) {
                keep = self.keep.get(next) == Some(&true);
                next += 1;
            }
            at += 1;
            if !keep {
                report.push(dropped(item, reason));
            }
            keep
        });
    }

    /// Drops the rounds that would begin the conversation: the question that they belong to is dropped, and some
    /// providers (Gemini) reject a conversation that begins with a call.
    fn drop_leading_rounds(&mut self) {
        for at in 0..self.list.len() {
            let is_pinned = self.is_pinned(at);
            let (Some(group), Some(keep)) = (self.list.get(at), self.keep.get_mut(at)) else { break };
            if *keep && !group.is_system {
                if !group.has_calls || is_pinned {
                    break;
                }
                *keep = false;
            }
        }
    }
}

/// Returns true if a message is reasoning and nothing else. It belongs to the message after it.
fn is_reasoning_only(item: &DraftMessage<'_>) -> bool {
    !item.has_content() && item.message.parts.iter().any(|part| matches!(part.body, PartBody::Reasoning(_)))
}
