//! [`Delta`]: what a service that owns the conversation has not acknowledged.

use super::state_owner::StateOwner;
use crate::error::{Error, ErrorCode, Result};
use crate::history::{ActiveSummary, History};
use crate::message::{Dialect, KeptHead, Message, ServiceMark};
use std::collections::{BTreeMap, BTreeSet};

/// What of a message is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unacknowledged {
    /// The message, its calls and their results.
    Message,
    /// The results of its calls, of those that [`Delta::is_pending_result`] names.
    Results,
}

/// What a service has not acknowledged of a history that a live turn follows.
///
/// It is found from the newest answer with a mark, so it costs as much as what is new. A result is identified by its
/// invocation: a call id that is used again hides no result.
#[derive(Clone, Debug)]
pub struct Delta<'h> {
    history: &'h History,
    live: Option<&'h History>,
    /// The newest acknowledged answer.
    newest: Option<AcknowledgedAnswer<'h>>,
    /// The newest answer of each other run that wrote to the conversation meanwhile: its `seq`, by run.
    concurrent: BTreeMap<&'h str, u64>,
    /// The ids that the mark of `newest` lists as not sent.
    pending: BTreeSet<&'h str>,
    /// The indexes of the system messages that every request repeats: stored ones, and of the live turn.
    repeated: BTreeSet<usize>,
    repeated_live: BTreeSet<usize>,
    /// What is sent instead of the messages that it covers: the service has none of the conversation, or the chain is
    /// restarted with it.
    compaction: Option<&'h ActiveSummary>,
    /// True if a request of another run contained the live turn's newest answer, and closed its calls.
    calls_are_closed: bool,
    /// True if the next request continues an answer that is not finished: nothing else is sent with it.
    continues_answer: bool,
}

/// An answer with the mark of the service.
#[derive(Clone, Copy, Debug)]
struct AcknowledgedAnswer<'h> {
    message: &'h Message,
    mark: &'h ServiceMark,
    /// Its index in the live turn, or `None` if it is stored only.
    live_index: Option<usize>,
}

impl AcknowledgedAnswer<'_> {
    /// Returns the `seq` up to which the service has the stored messages. A copy of the session may number them
    /// otherwise: then it is at most that of the answer.
    fn until(&self) -> u64 {
        if self.live_index.is_some() { self.mark.until } else { self.mark.until.min(self.message.seq) }
    }
}

impl<'h> Delta<'h> {
    /// Finds what the owner's service has not acknowledged, in the dialect of the next request. Everything, if the
    /// owner is no service.
    #[must_use]
    pub fn new(owner: &StateOwner, dialect: Dialect, history: &'h History, live: Option<&'h History>) -> Self {
        Self::with_compaction(owner, dialect, (history, live), history.compaction_for(Some(dialect)))
    }

    /// As [`new`](Self::new), with the newest compaction that the provider of the next request can read.
    #[must_use]
    pub fn with_compaction(
        owner: &StateOwner,
        dialect: Dialect,
        (history, live): (&'h History, Option<&'h History>),
        compaction: Option<&'h ActiveSummary>,
    ) -> Self {
        let service = OwnerService { owner, dialect };
        let in_live = service.newest_answer(live, true).map(|(index, answer)| (Some(index), answer));
        let is_elsewhere = in_live.is_none() && live.is_some_and(|live| service.answered_elsewhere(live));
        let from =
            compaction.filter(|compaction| owner.replaces_chain(compaction)).map_or(0, |compaction| compaction.end);
        let in_history =
            || service.newest_answer(Some(history), false).filter(|(index, _)| *index >= from && !is_elsewhere);
        let newest = in_live.or_else(|| in_history().map(|(_, answer)| (None, answer)));
        let newest = newest.map(|(live_index, (message, mark))| AcknowledgedAnswer { message, mark, live_index });
        let newest = newest.filter(|newest| !newest.mark.ends_chain);
        let compaction = compaction.filter(|_| newest.is_none());
        let (concurrent, pending) = (BTreeMap::new(), BTreeSet::new());
        let (repeated, repeated_live, calls_are_closed) = (BTreeSet::new(), BTreeSet::new(), false);
        let mut delta = Self {
            history,
            live,
            newest,
            concurrent,
            pending,
            repeated,
            repeated_live,
            compaction,
            calls_are_closed,
            continues_answer: newest.is_some_and(|newest| newest.message.is_unfinished()),
        };
        if let Some(newest) = newest {
            delta.pending.extend(newest.mark.pending.iter().map(String::as_str));
            if owner.is_conversation() {
                delta.find_concurrent_answers(service, newest);
            }
            // A chain branches at the live turn's newest answer, whose calls are open there. An answer that was given
            // under another owner came into the chain with a request of another run, which closed its calls.
            if owner.is_conversation() || newest.live_index.is_none() {
                delta.calls_are_closed = delta.has_closed_calls(service);
            }
        }
        delta
    }

    /// Selects the system messages that `is_outside_list` says are sent beside the list of messages, wherever they are
    /// in the conversation: they are no part of what the service keeps as messages, so each request has all of them.
    /// The second argument is true if only system messages precede the message.
    #[must_use]
    pub fn repeating(mut self, is_outside_list: &dyn Fn(&Message, bool) -> bool) -> Self {
        let live = self.live.map_or(&[][..], History::messages);
        let mut is_leading = true;
        let mut select = |messages: &[Message], selected: &mut BTreeSet<usize>| {
            for (index, message) in messages.iter().enumerate() {
                if message.is_system() && is_outside_list(message, is_leading) {
                    selected.insert(index);
                }
                is_leading &= message.is_system();
            }
        };
        select(self.history.messages(), &mut self.repeated);
        select(live, &mut self.repeated_live);
        if self.continues_answer {
            // The service goes on with the instructions that it began the answer with.
            let is_sent = |index: &usize| self.history.messages().get(*index).is_some_and(|one| self.has_stored(one));
            let repeated: BTreeSet<usize> = self.repeated.iter().copied().filter(is_sent).collect();
            self.repeated = repeated;
        }
        self
    }

    /// Returns true for a stored message that every request repeats.
    #[must_use]
    pub fn is_repeated(&self, index: usize) -> bool {
        self.repeated.contains(&index)
    }

    /// Returns true for a message of the live turn that every request repeats.
    #[must_use]
    pub fn is_repeated_live(&self, index: usize) -> bool {
        self.repeated_live.contains(&index)
    }

    /// Returns the system messages that every request repeats, of which no acknowledged request had any.
    pub fn new_repeated(&self) -> impl Iterator<Item = &'h Message> + '_ {
        let stored = self.repeated.iter().filter_map(|index| self.history.messages().get(*index));
        let live = self.live.map_or(&[][..], History::messages);
        let answered = self.answered_live_count();
        let new_live = self.repeated_live.iter().filter(move |index| **index >= answered);
        stored.filter(|message| !self.has_stored(message)).chain(new_live.filter_map(|index| live.get(*index)))
    }

    /// Finds the newest answer of each other run that wrote to the conversation since the newest answer's request was
    /// built.
    fn find_concurrent_answers(&mut self, service: OwnerService<'_>, newest: AcknowledgedAnswer<'h>) {
        let history = self.history;
        for message in history.messages().iter().rev().take_while(|message| message.seq >= newest.until()) {
            let Some(run) = message.run_id.as_deref() else { continue };
            if message.run_id != newest.message.run_id && service.mark_in(newest.mark, message).is_some() {
                self.concurrent.entry(run).or_insert(message.seq);
            }
        }
    }

    /// Returns true if the live turn's newest answer has calls, and a request of another run contained it or its place
    /// in history: a service refuses a request that leaves a call open, so that request closed them.
    fn has_closed_calls(&self, service: OwnerService<'_>) -> bool {
        let answer = self.live.and_then(|live| live.last_answer().filter(|answer| live.has_calls(answer)));
        let Some(stored) = answer.and_then(|answer| self.history.message(&answer.id)) else { return false };
        let Some(newest) = self.newest else { return false };
        let is_later = |message: &Message| {
            let mark = service.mark_in(newest.mark, message);
            message.run_id != stored.run_id && mark.is_some_and(|mark| mark.until > stored.seq)
        };
        self.history.messages().iter().rev().take_while(|message| message.seq > stored.seq).any(is_later)
    }

    /// Fails if the results of the live turn cannot be sent, since a request of another run closed their calls.
    ///
    /// # Errors
    /// `conflict`.
    pub fn check_calls_are_open(&self) -> Result<()> {
        if !self.calls_are_closed {
            return Ok(());
        }
        let message = "a request of another run contained this run's last answer and closed its calls, so their results cannot be sent; discard \
                       this run";
        Err(Error::new(ErrorCode::Conflict, message))
    }

    /// Returns the id of the response that the next request continues.
    #[must_use]
    pub fn response_id(&self) -> Option<&'h str> {
        self.newest?.message.answer.as_ref()?.response_id.as_deref()
    }

    /// Returns what the service keeps of the request that began the chain, besides its messages.
    #[must_use]
    pub fn kept_head(&self) -> Option<KeptHead> {
        self.newest?.mark.kept_head
    }

    /// Returns true if the next request continues an answer that is not finished: nothing else is sent with it.
    #[must_use]
    pub fn continues_answer(&self) -> bool {
        self.continues_answer
    }

    /// Returns the index after the newest answer of the chain of responses, if the service has everything before it,
    /// and the turn of the answer is over.
    #[must_use]
    pub fn chain_end(&self) -> Option<usize> {
        let newest = self.newest.filter(|newest| newest.live_index.is_none())?.message;
        let end = self.history.message_index(&newest.id)? + 1;
        let is_over = !self.history.has_calls(newest)
            && self.history.messages().get(end).is_none_or(|next| next.turn != newest.turn);
        let is_sent = |(index, sent): &(usize, Unacknowledged)| *index >= end || *sent == Unacknowledged::Results;
        let has_all = self.pending.is_empty() && self.stored().iter().all(is_sent);
        (is_over && has_all).then_some(end)
    }

    /// Returns what is sent instead of the messages that it covers.
    #[must_use]
    pub fn compaction(&self) -> Option<&'h ActiveSummary> {
        self.compaction
    }

    /// Returns the indexes of the stored messages of which something may be sent, ascending, and what of each.
    #[must_use]
    pub fn stored(&self) -> Vec<(usize, Unacknowledged)> {
        if self.continues_answer {
            return self.repeated.iter().map(|index| (*index, Unacknowledged::Message)).collect();
        }
        let messages = self.history.messages();
        let compacted = self.compaction.map_or(0, |compaction| compaction.end);
        // Counted from the end: the cost follows what is new.
        let is_new = |newest: AcknowledgedAnswer<'_>, message: &&Message| message.seq >= newest.until();
        let new_count = |newest| messages.iter().rev().take_while(|message| is_new(newest, message)).count();
        let first = self.newest.map_or(compacted, |newest| messages.len() - new_count(newest));
        let is_system = |index: &usize| messages.get(*index).is_some_and(Message::is_system);
        let mut indexes: Vec<usize> = (0..compacted).filter(is_system).chain(self.repeated.iter().copied()).collect();
        indexes.extend(self.pending_indexes(self.history));
        indexes.extend(self.newest.and_then(|newest| self.history.message_index(&newest.message.id)));
        indexes.extend(first..messages.len());
        let select = |index: usize| {
            let message = messages.get(index)?;
            let is_whole = self.is_repeated(index) || !self.has_stored(message);
            Some((index, if is_whole { Unacknowledged::Message } else { Unacknowledged::Results }))
        };
        ascending(indexes).filter_map(select).collect()
    }

    /// Returns the indexes of the messages of the live turn of which something may be sent, ascending, and what of
    /// each.
    #[must_use]
    pub fn live(&self) -> Vec<(usize, Unacknowledged)> {
        let Some(live) = self.live else { return Vec::new() };
        if self.continues_answer {
            return self.repeated_live.iter().map(|index| (*index, Unacknowledged::Message)).collect();
        }
        let last = self.newest.and_then(|newest| newest.live_index);
        let mut indexes: Vec<usize> = (last.unwrap_or(0)..live.messages().len()).collect();
        indexes.extend(self.pending_indexes(live));
        indexes.extend(self.repeated_live.iter().copied());
        let select = |index: usize| {
            let message = live.messages().get(index)?;
            let is_acknowledged = match last {
                _ if self.repeated_live.contains(&index) => false,
                Some(last) => index <= last && !self.is_pending(message),
                // A request of another run contained what the history has of this turn.
                None => self.history.message(&message.id).is_some_and(|stored| self.has_stored(stored)),
            };
            Some((index, if is_acknowledged { Unacknowledged::Results } else { Unacknowledged::Message }))
        };
        ascending(indexes).filter_map(select).collect()
    }

    /// Returns the indexes of the messages that are pending, and of those whose calls have pending results.
    fn pending_indexes<'a>(&'a self, history: &'a History) -> impl Iterator<Item = usize> + 'a {
        self.pending.iter().flat_map(|id| {
            let of_call = history.invocation(id).and_then(|call| history.message_index(&call.message_id));
            history.message_index(id).into_iter().chain(of_call)
        })
    }

    /// Returns the number of messages of the live turn up to the newest acknowledged answer.
    #[must_use]
    pub fn answered_live_count(&self) -> usize {
        self.newest.and_then(|newest| newest.live_index).map_or(0, |index| index + 1)
    }

    fn is_pending(&self, message: &Message) -> bool {
        self.pending.contains(message.id.as_str())
    }

    /// Returns true if the service has a stored message.
    fn has_stored(&self, message: &Message) -> bool {
        let Some(newest) = self.newest.filter(|_| !self.is_pending(message)) else { return false };
        let run = message.run_id.as_deref();
        let is_of_newest_run = run.is_some() && message.run_id == newest.message.run_id;
        message.seq < newest.until()
            || is_of_newest_run && newest.live_index.is_none() && message.seq <= newest.message.seq
            || run.and_then(|run| self.concurrent.get(run)).is_some_and(|last| message.seq <= *last)
    }

    /// Returns true if the service has a call of this message, and not its result: the message is the newest answer, or
    /// the result was held back.
    #[must_use]
    pub fn is_pending_result(&self, message: &Message, invocation: &str) -> bool {
        let is_newest = self.newest.is_some_and(|newest| newest.message.id == message.id);
        let run = message.run_id.as_deref();
        let is_newest_of_run = run.and_then(|run| self.concurrent.get(run)).is_some_and(|last| message.seq == *last);
        is_newest || is_newest_of_run || self.pending.contains(invocation)
    }
}

/// Sorts indexes and removes repeated ones.
fn ascending(mut indexes: Vec<usize>) -> impl Iterator<Item = usize> {
    indexes.sort_unstable();
    indexes.dedup();
    indexes.into_iter()
}

type MarkedAnswer<'h> = (&'h Message, &'h ServiceMark);

/// The owner's service, as requests of a dialect reach it.
#[derive(Clone, Copy)]
struct OwnerService<'o> {
    owner: &'o StateOwner,
    dialect: Dialect,
}

impl OwnerService<'_> {
    /// Returns the newest answer with a mark of the service, and its index. One that is not finished is continued by
    /// the run whose turn it ends, and by no other request.
    fn newest_answer<'h>(self, history: Option<&'h History>, is_turn: bool) -> Option<(usize, MarkedAnswer<'h>)> {
        let history = history.filter(|_| self.owner.is_stateful())?;
        let cut = match self.owner {
            // A conversation of the service has no other beginning.
            StateOwner::Conversation { .. } => 0,
            // The branch that a fork left goes on in the conversation that both share.
            StateOwner::BegunConversation { .. } => history.chain_cut().max(history.own_from()),
            _ => history.chain_cut(),
        };
        let mut messages = history.messages().iter().enumerate().rev().take_while(|(_, message)| message.seq >= cut);
        if let Some((index, part)) = messages.clone().next().filter(|_| is_turn)
            && let Some(mark) = self.owner.mark_of_part(part).filter(|_| part.dialect == Some(self.dialect))
        {
            return Some((index, (part, mark)));
        }
        if matches!(self.owner, StateOwner::BegunConversation { .. }) {
            // The conversation may have a request without an answer, of which another owner's answer then took the
            // place.
            let (index, newest) = messages.find(|(_, message)| message.answer.is_some())?;
            return Some((index, (newest, self.mark_of(newest)?)));
        }
        messages.find_map(|(index, message)| Some((index, (message, self.mark_of(message)?))))
    }

    /// Returns true if a live turn has an answer of another owner, after which a conversation of the session is not
    /// continued.
    fn answered_elsewhere(self, live: &History) -> bool {
        let begins = matches!(self.owner, StateOwner::BegunConversation { .. });
        begins && live.messages().iter().any(|message| message.answer.is_some())
    }

    /// Returns the mark of an answer of the conversation that another mark names.
    fn mark_in<'m>(self, newest: &ServiceMark, message: &'m Message) -> Option<&'m ServiceMark> {
        self.mark_of(message).filter(|mark| mark.conversation == newest.conversation)
    }

    fn mark_of(self, message: &Message) -> Option<&ServiceMark> {
        if message.dialect == Some(self.dialect) { self.owner.mark_of(message) } else { None }
    }
}
