//! What stays or goes as one: a message with its calls and their results, and the reasoning that leads to them.

use super::dropped;
use crate::finding::Report;
use crate::message::{PartBody, Role};
use crate::replay::draft::{Draft, DraftMessage, DraftOrigin};

/// Neighbours in a draft that stay or go as one.
pub(super) struct MessageGroup {
    /// Where it begins in the draft; it ends where the next one begins.
    pub start: usize,
    /// A system message: it counts for nothing.
    pub system: bool,
    /// The user speaks.
    pub user: bool,
    /// It has calls.
    pub round: bool,
    /// It stands in for older ones.
    pub summary: bool,
    /// Its turn in this draft, from 0: a turn begins where the user speaks after an answer.
    pub turn: usize,
}

/// A draft in groups, and which of them stay.
pub(super) struct MessageGroups {
    pub list: Vec<MessageGroup>,
    /// By group.
    pub keep: Vec<bool>,
    /// The group of the user's newest message.
    pub newest_user: Option<usize>,
    /// The newest group that is no system message.
    pub newest: Option<usize>,
}

impl MessageGroups {
    /// Of a draft; all of them stay.
    pub fn of(draft: &Draft<'_>) -> Self {
        let mut list: Vec<MessageGroup> = Vec::new();
        let (mut turn, mut answered, mut thinking) = (0, false, false);
        let (mut newest_user, mut newest) = (None, None);
        for (start, item) in draft.messages.iter().enumerate() {
            let role = item.message.role;
            let (system, user) = (matches!(role, Role::System | Role::Developer), role == Role::User);
            if user && answered {
                turn += 1;
                answered = false;
            }
            let summary = item.origin == DraftOrigin::Summary;
            answered |= role == Role::Assistant;
            match list.last_mut().filter(|_| thinking && role == Role::Assistant) {
                Some(open) => open.round |= !item.calls.is_empty(),
                None => list.push(MessageGroup { start, system, user, round: !item.calls.is_empty(), summary, turn }),
            }
            if !system {
                newest = Some(list.len() - 1);
            }
            if user && !summary && item.has_words() {
                newest_user = Some(list.len() - 1);
            }
            thinking = role == Role::Assistant && item.calls.is_empty() && only_thinks(item);
        }
        Self { keep: vec![true; list.len()], newest_user, newest, list }
    }

    /// How many turns there are.
    pub fn turns(&self) -> usize {
        self.list.last().map_or(0, |last| last.turn + 1)
    }

    /// The groups that are no system message, with their places.
    pub fn spoken(&self) -> impl DoubleEndedIterator<Item = (usize, &MessageGroup)> {
        self.list.iter().enumerate().filter(|(_, group)| !group.system)
    }

    /// Whether a group never goes: the user's newest message, and the newest of all, on which the run may go on.
    pub fn is_pinned(&self, at: usize) -> bool {
        self.newest_user == Some(at) || self.newest == Some(at)
    }

    /// Says of a group that it goes, if it may: what is pinned stays, and so does a system message. True when it goes.
    pub fn give_up(&mut self, at: usize) -> bool {
        if self.is_pinned(at) || self.list.get(at).is_none_or(|group| group.system) {
            return false;
        }
        self.keep.get_mut(at).is_some_and(|keep| std::mem::replace(keep, false))
    }

    /// Gives up all that stands before that one.
    pub fn keep_from(&mut self, oldest: usize) {
        for at in 0..oldest {
            self.give_up(at);
        }
    }

    /// Takes what does not stay out of the draft. A round that would come first has lost the question it belongs to, and
    /// some providers refuse a call there: it goes, too.
    pub fn apply(mut self, draft: &mut Draft<'_>, why: &'static str, report: &mut Report) {
        if self.keep.iter().all(|keep| *keep) {
            return;
        }
        let shorter = self.list.iter().zip(&self.keep).any(|(group, keep)| !group.system && !keep);
        for at in 0..if shorter { self.list.len() } else { 0 } {
            let pinned = self.is_pinned(at);
            let (Some(group), Some(keep)) = (self.list.get(at), self.keep.get_mut(at)) else { break };
            if *keep && !group.system {
                if !group.round || pinned {
                    break;
                }
                *keep = false;
            }
        }
        let (mut at, mut next, mut keep) = (0, 0, true);
        draft.retain(&mut |item| {
            if self.list.get(next).is_some_and(|group| group.start == at) {
                keep = self.keep.get(next) == Some(&true);
                next += 1;
            }
            at += 1;
            if !keep {
                report.push(dropped(item, why));
            }
            keep
        });
    }
}

/// Whether a message is reasoning and nothing else: it belongs to the one behind it.
fn only_thinks(item: &DraftMessage<'_>) -> bool {
    !item.has_words() && item.message.parts.iter().any(|part| matches!(part.body, PartBody::Reasoning(_)))
}
