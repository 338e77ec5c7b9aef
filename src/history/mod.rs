//! What happened: messages in their order, the calls they asked for, and the results joined to them.
//!
//! A history is folded from [`HistoryEntry`]s, as the log holds them. It is never rewritten: a result that
//! comes later is an entry of its own, and a message names its calls, it does not hold them.

mod entry;
mod free_id;
mod incoming;
mod join;
mod new_message;
mod new_result;
mod open_calls;
mod sources;
mod to_json;

pub use entry::{HistoryEntry, LogRecord, ResultEntry, SetAsideItem};
pub use free_id::free_id;
pub use incoming::{Incoming, IncomingCall, IncomingMessage, IncomingPart, IncomingResult};
pub use join::{JoinedEntries, Origin, join};
pub use new_message::{NewCall, NewItem, NewMessage, NewPart, join_new, read_part};
pub use new_result::{NewResult, join_results};
pub use sources::{change_sources, highest_source, source_number};
pub use to_json::{MessageFormat, write_invocation, write_message, write_payload, write_usage};

use crate::id::{IdMap, Seed, short_name};
use crate::message::{Message, PartBody, Role};
use crate::tool::{InvocationStatus, ToolInvocation};
use std::collections::BTreeSet;

/// Messages and invocations, joined.
#[derive(Clone, Debug)]
pub struct History {
    messages: Vec<Message>,
    invocations: Vec<ToolInvocation>,
    set_aside: Vec<SetAsideItem>,
    message_at: IdMap<usize>,
    invocation_at: IdMap<usize>,
    /// How often each call id was used.
    call_ids: IdMap<usize>,
    /// Invocations without a result, oldest first.
    open: BTreeSet<usize>,
    /// Invocations whose results hold sources, in the order in which these came.
    sourced: Vec<usize>,
    /// The highest source number there ever was.
    highest_source: Option<u64>,
    /// The position of the next message.
    position: TurnPosition,
}

/// Where the next message would stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TurnPosition {
    /// How many turns have begun.
    pub turns: u32,
    /// Whether the last turn has an answer, so that the next input begins a new one.
    pub answered: bool,
    /// How many rounds of calls the last turn has.
    pub rounds: u32,
}

impl TurnPosition {
    /// Moves on over a message; gives its turn.
    pub fn advance(&mut self, role: Role) -> u32 {
        if self.turns == 0 || (role == Role::User && self.answered) {
            self.turns += 1;
            self.answered = false;
            self.rounds = 0;
        }
        self.answered |= role == Role::Assistant;
        self.turns - 1
    }
}

/// The id by which a call goes out whose own cannot serve: from its invocation's, the same in every build (R5).
fn own_call_id(invocation: &str) -> String {
    format!("call_{}", short_name(invocation, 20))
}

impl History {
    /// An empty history.
    #[must_use]
    pub fn new(seed: Seed) -> Self {
        Self {
            messages: Vec::new(),
            invocations: Vec::new(),
            set_aside: Vec::new(),
            message_at: IdMap::with_seed(seed),
            invocation_at: IdMap::with_seed(seed),
            call_ids: IdMap::with_seed(seed),
            open: BTreeSet::new(),
            sourced: Vec::new(),
            highest_source: None,
            position: TurnPosition::default(),
        }
    }

    /// The seed of its maps.
    #[must_use]
    pub fn seed(&self) -> Seed {
        self.message_at.seed()
    }

    /// All messages, in their order.
    #[must_use]
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// All invocations, in their order.
    #[must_use]
    pub fn invocations(&self) -> &[ToolInvocation] {
        &self.invocations
    }

    /// What was given and belongs to nothing: kept, never sent.
    #[must_use]
    pub fn set_aside(&self) -> &[SetAsideItem] {
        &self.set_aside
    }

    /// The message of that id.
    #[must_use]
    pub fn message(&self, id: &str) -> Option<&Message> {
        self.messages.get(*self.message_at.get(id)?)
    }

    /// The invocation of that id.
    #[must_use]
    pub fn invocation(&self, id: &str) -> Option<&ToolInvocation> {
        self.invocations.get(*self.invocation_at.get(id)?)
    }

    /// The invocation of that id, to be changed while a run lives.
    pub fn invocation_mut(&mut self, id: &str) -> Option<&mut ToolInvocation> {
        self.invocations.get_mut(*self.invocation_at.get(id)?)
    }

    /// How often a call id was used.
    #[must_use]
    pub fn uses_of(&self, call_id: &str) -> usize {
        self.call_ids.get(call_id).copied().unwrap_or(0)
    }

    /// Invocations without a result, oldest first.
    pub fn open(&self) -> impl Iterator<Item = &ToolInvocation> {
        self.open.iter().filter_map(|at| self.invocations.get(*at))
    }

    /// The places of invocations whose results hold sources, in the order in which these came.
    #[must_use]
    pub fn sourced(&self) -> &[usize] {
        &self.sourced
    }

    /// The place of an invocation among all.
    #[must_use]
    pub fn place_of(&self, invocation: &str) -> Option<usize> {
        self.invocation_at.get(invocation).copied()
    }

    /// The highest source number there ever was: the next tool numbers on from it (R9).
    #[must_use]
    pub fn highest_source(&self) -> Option<u64> {
        self.highest_source
    }

    /// There was a source of that number, in what cannot be read, was never stored, or is not here yet.
    pub fn note_source(&mut self, number: Option<u64>) {
        self.highest_source = self.highest_source.max(number);
    }

    fn note_result(&mut self, at: usize) {
        let Some(result) = self.invocations.get(at).and_then(|call| call.result.as_ref()) else { return };
        let (any, highest) = sources::survey(result);
        if any {
            self.sourced.push(at);
            self.note_source(highest);
        }
    }

    /// The position of the next message.
    #[must_use]
    pub fn position(&self) -> TurnPosition {
        self.position
    }

    /// Moves `position` after a message.
    fn advance(&mut self, message: &Message) {
        if self.position.turns != message.turn + 1 || self.messages.is_empty() {
            self.position = TurnPosition { turns: message.turn + 1, ..TurnPosition::default() };
        }
        self.position.answered |= message.role == Role::Assistant;
        for part in &message.parts {
            if let PartBody::ToolCall { round, .. } = part.body {
                self.position.rounds = self.position.rounds.max(round + 1);
            }
        }
    }

    /// The calls of a message, in their places.
    pub fn calls_of<'h>(&'h self, message: &'h Message) -> impl Iterator<Item = &'h ToolInvocation> {
        message.parts.iter().filter_map(|part| match &part.body {
            PartBody::ToolCall { invocation, .. } => self.invocation(invocation),
            _ => None,
        })
    }

    /// Whether a message has calls.
    #[must_use]
    pub fn has_calls(&self, message: &Message) -> bool {
        self.calls_of(message).next().is_some()
    }

    /// The newest message of the assistant.
    #[must_use]
    pub fn last_answer(&self) -> Option<&Message> {
        self.messages.iter().rev().find(|message| message.role == Role::Assistant)
    }

    /// Folds one entry in. An entry that was folded in before (the same id) changes nothing.
    pub fn apply(&mut self, entry: HistoryEntry) {
        match entry {
            HistoryEntry::Message(message) => {
                if self.message_at.contains_key(&message.id) {
                    return;
                }
                self.advance(&message);
                self.message_at.insert(message.id.clone(), self.messages.len());
                self.messages.push(message);
            }
            HistoryEntry::Invocation(mut invocation) => {
                if self.invocation_at.contains_key(&invocation.id) {
                    return;
                }
                // The join sees to it within a session; a turn that was appended behind another writer's, or a log put
                // together from several, may use an id again.
                if invocation.replay_id.is_none() && self.uses_of(&invocation.call_id) > 0 {
                    invocation.replay_id = Some(own_call_id(&invocation.id));
                }
                let at = self.invocations.len();
                self.invocation_at.insert(invocation.id.clone(), at);
                *self.call_ids.get_or_insert(&invocation.call_id, 0) += 1;
                // What is withheld waits for nothing.
                if invocation.result.is_none() && !invocation.is_withheld() {
                    self.open.insert(at);
                }
                self.invocations.push(invocation);
                self.note_result(at);
            }
            HistoryEntry::Result(entry) => {
                let Some(at) = self.invocation_at.get(&entry.invocation).copied() else { return };
                let Some(invocation) = self.invocations.get_mut(at) else { return };
                // A real result replaces the note that nothing was known; nothing replaces a real one.
                if invocation.result.is_some() && invocation.status != InvocationStatus::Interrupted {
                    return;
                }
                invocation.status = entry.status;
                invocation.started_at = entry.started_at.or(invocation.started_at);
                invocation.finished_at = entry.finished_at;
                invocation.append_freshness = entry.freshness.or(invocation.append_freshness);
                invocation.result = entry.result;
                if invocation.result.is_some() {
                    self.open.remove(&at);
                }
                self.note_result(at);
            }
            HistoryEntry::SetAside(set_aside) => self.set_aside.push(set_aside),
        }
    }
}

#[cfg(test)]
mod tests;
