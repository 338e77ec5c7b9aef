//! A history: messages in order, the calls that they contain, and the results of these calls.

use super::annotation::Annotation;
use super::early_results::EarlyResults;
use super::entry::{HistoryEntry, ResultEntry, SetAsideItem};
use super::ids::synthesized_call_id;
use super::late_results::{LateResult, LateResults};
use super::open_call_index::{CallPosition, OpenCallIndex};
use super::overtaken_results::{OvertakenResult, OvertakenResults};
use super::sources::{scan_sources, visit_sources};
use super::summary_index::SummaryIndex;
use crate::finding::FindingCode;
use crate::id::{IdMap, Seed};
use crate::json::Json;
use crate::message::{Message, MessageStatus, PartBody, Role};
use crate::tool::{InvocationStatus, ToolInvocation};
use std::cell::Cell;
use std::collections::BTreeSet;

/// Messages and their tool invocations, folded from [`HistoryEntry`]s in log order.
#[derive(Clone, Debug)]
pub struct History {
    messages: Vec<Message>,
    invocations: Vec<ToolInvocation>,
    set_aside: Vec<SetAsideItem>,
    message_at: IdMap<usize>,
    invocation_at: IdMap<usize>,
    /// The number of invocations of each call id.
    call_id_uses: IdMap<usize>,
    /// The invocations that take a result.
    open: OpenCallIndex,
    /// Indexes of the invocations whose results contain sources, in the order in which the results were stored.
    with_sources: Vec<usize>,
    /// The highest source number in any result so far.
    highest_source: Option<u64>,
    /// The `seq` below which no chain of responses is continued.
    chain_cut: u64,
    /// The `seq` of the first message that the branch does not share.
    own_from: u64,
    /// The position of the next message.
    position: TurnPosition,
    /// The ids of the invocations that wait for an approval, in the live turn of a run.
    awaiting_approval: BTreeSet<String>,
    /// What requests may contain instead of the beginning.
    summaries: SummaryIndex,
    late_results: LateResults,
    overtaken_results: OvertakenResults,
    /// The index of the newest answer.
    last_answer_at: Option<usize>,
    /// Results that came before their calls.
    early_results: EarlyResults,
    /// The number of annotations of each message that has any.
    annotations: IdMap<u32>,
}

/// The turn and round of the next message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TurnPosition {
    /// The number of turns so far.
    pub turns: u32,
    /// True if the last turn has an answer, so that the next user message begins a new turn.
    pub answered: bool,
    /// The number of rounds of calls in the last turn.
    pub rounds: u32,
}

impl TurnPosition {
    /// Advances past a message; returns the message's turn.
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

impl History {
    /// Creates an empty history whose maps use `seed`.
    #[must_use]
    pub fn new(seed: Seed) -> Self {
        Self {
            messages: Vec::new(),
            invocations: Vec::new(),
            set_aside: Vec::new(),
            message_at: IdMap::with_seed(seed),
            invocation_at: IdMap::with_seed(seed),
            call_id_uses: IdMap::with_seed(seed),
            open: OpenCallIndex::default(),
            with_sources: Vec::new(),
            highest_source: None,
            chain_cut: 0,
            own_from: 0,
            position: TurnPosition::default(),
            awaiting_approval: BTreeSet::new(),
            summaries: SummaryIndex::default(),
            late_results: LateResults::default(),
            overtaken_results: OvertakenResults::default(),
            last_answer_at: None,
            early_results: EarlyResults::default(),
            annotations: IdMap::with_seed(seed),
        }
    }

    /// Reserves memory for so many messages and invocations, instead of moving those that are there as it grows.
    pub fn reserve(&mut self, messages: usize, invocations: usize) {
        self.messages.reserve(messages);
        self.message_at.reserve(messages);
        self.summaries.reserve(messages);
        self.invocations.reserve(invocations);
        self.invocation_at.reserve(invocations);
        self.call_id_uses.reserve(invocations);
    }

    /// Returns the hash seed of its maps.
    #[must_use]
    pub fn seed(&self) -> Seed {
        self.message_at.seed()
    }

    /// Returns all messages, in order.
    #[must_use]
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Returns all tool invocations, in order.
    #[must_use]
    pub fn invocations(&self) -> &[ToolInvocation] {
        &self.invocations
    }

    /// Returns the items that were set aside: stored and reported, but never sent.
    #[must_use]
    pub fn set_aside(&self) -> &[SetAsideItem] {
        &self.set_aside
    }

    /// Returns the message with this id.
    #[must_use]
    pub fn message(&self, id: &str) -> Option<&Message> {
        self.messages.get(*self.message_at.get(id)?)
    }

    /// Returns the index of a message in [`messages`](Self::messages).
    #[must_use]
    pub fn message_index(&self, id: &str) -> Option<usize> {
        self.message_at.get(id).copied()
    }

    /// Returns the invocation with this id.
    #[must_use]
    pub fn invocation(&self, id: &str) -> Option<&ToolInvocation> {
        self.invocations.get(*self.invocation_at.get(id)?)
    }

    /// Returns the invocation with this id for modification, in the live turn of a run.
    pub fn invocation_mut(&mut self, id: &str) -> Option<&mut ToolInvocation> {
        self.invocations.get_mut(*self.invocation_at.get(id)?)
    }

    /// Returns true if the call waits for an approval.
    #[must_use]
    pub fn awaits_approval(&self, invocation: &str) -> bool {
        self.awaiting_approval.contains(invocation)
    }

    /// Returns the number of calls that wait for an approval.
    #[must_use]
    pub fn awaited_approvals(&self) -> u64 {
        self.awaiting_approval.len() as u64
    }

    /// Sets whether a call of the live turn waits for an approval. Its result ends the wait.
    pub fn set_awaits_approval(&mut self, invocation: &str, awaits: bool) {
        if awaits {
            self.awaiting_approval.insert(invocation.to_owned());
        } else {
            self.awaiting_approval.remove(invocation);
        }
    }

    /// Ends every wait for an approval: the run is over.
    pub fn end_approvals(&mut self) {
        self.awaiting_approval.clear();
    }

    /// Returns the number of invocations with this call id.
    #[must_use]
    pub fn call_id_uses(&self, call_id: &str) -> usize {
        self.call_id_uses.get(call_id).copied().unwrap_or(0)
    }

    /// Iterates over the invocations without a result, oldest first.
    pub fn open_calls(&self) -> impl Iterator<Item = &ToolInvocation> {
        self.open.open().filter_map(|at| self.invocations.get(at))
    }

    /// Returns the calls that take a result, and all invocations, which the index refers to.
    pub(super) fn open_call_index(&self) -> (&OpenCallIndex, &[ToolInvocation]) {
        (&self.open, &self.invocations)
    }

    fn index_open_call(&mut self, at: usize) {
        let Some(call) = self.invocations.get(at) else { return };
        let message = self.message_at.get(&call.message_id).copied();
        let dialect = message.and_then(|index| self.messages.get(index)).and_then(|message| message.dialect);
        self.open.update(call, CallPosition::new(message.unwrap_or(0), at), dialect);
    }

    /// Returns the indexes of the invocations whose results contain sources, in the order in which the results were
    /// stored.
    #[must_use]
    pub fn with_sources(&self) -> &[usize] {
        &self.with_sources
    }

    /// Returns the index of an invocation in [`invocations`](Self::invocations).
    #[must_use]
    pub fn invocation_index(&self, invocation: &str) -> Option<usize> {
        self.invocation_at.get(invocation).copied()
    }

    /// Returns the highest source number so far. The next tool continues numbering after it (R9).
    #[must_use]
    pub fn highest_source(&self) -> Option<u64> {
        self.highest_source
    }

    /// Raises the highest source number to at least `number`, for results that this history does not contain:
    /// unreadable or never stored ones.
    pub fn raise_highest_source(&mut self, number: Option<u64>) {
        self.highest_source = self.highest_source.max(number);
    }

    /// Returns the `seq` below which a chain of responses has an erased message, so that no request continues it there.
    #[must_use]
    pub fn chain_cut(&self) -> u64 {
        self.chain_cut
    }

    /// Sets the [`chain_cut`](Self::chain_cut).
    pub fn set_chain_cut(&mut self, seq: u64) {
        self.chain_cut = seq;
    }

    /// Returns the `seq` of the first message that the branch does not share with another one.
    #[must_use]
    pub fn own_from(&self) -> u64 {
        self.own_from
    }

    /// Sets [`own_from`](Self::own_from).
    pub fn set_own_from(&mut self, seq: u64) {
        self.own_from = seq;
    }

    fn index_sources(&mut self, at: usize) {
        let Some(result) = self.invocations.get(at).and_then(|call| call.result.as_ref()) else { return };
        let (has_sources, highest) = scan_sources(result);
        if has_sources {
            self.with_sources.push(at);
            self.raise_highest_source(highest);
        }
    }

    /// Returns the results that came after the conversation had gone on without them.
    #[must_use]
    pub fn late_results(&self) -> &LateResults {
        &self.late_results
    }

    /// Sets which late results end the request of a turn that this is the beginning of.
    pub(super) fn set_end(&mut self, invocations: Vec<String>) {
        self.late_results.set_end(invocations);
    }

    /// Returns the results that came after a later answer than that of their call.
    #[must_use]
    pub fn overtaken_results(&self) -> &OvertakenResults {
        &self.overtaken_results
    }

    /// Returns a hash of the results that were stored after their calls, which tells later what came since; 0 without
    /// any.
    #[must_use]
    pub fn late_results_hash(&self) -> u64 {
        self.summaries.late_results_hash()
    }

    /// Returns the results that the answer at an index does not know, although it stands for all messages before it,
    /// with the index of the message before which each is sent, ascending. Those that a request of the hash
    /// `known_results` knows are left out.
    ///
    /// The answer knows what its request contained. If that is not known here, as after a merge of two logs, it knows
    /// none: a result that is sent twice does less harm than one that is never sent.
    #[must_use]
    pub fn results_unknown_to(&self, answer: usize, known_results: u64) -> Vec<(usize, &LateResult)> {
        if self.overtaken_results.is_empty() {
            return Vec::new();
        }
        let meta = self.messages.get(answer).and_then(|message| message.answer.as_ref());
        let known = meta.map_or(0, |meta| self.summaries.count_of_hash(meta.known_results));
        self.overtaken_results.after(answer, known.max(self.summaries.count_of_hash(known_results)))
    }

    /// Returns the result of a call that history does not have yet.
    #[must_use]
    pub fn early_result(&self, invocation: &str) -> Option<&ResultEntry> {
        self.early_results.get(invocation)
    }

    /// Iterates over the results of calls that history does not have yet.
    pub fn early_results(&self) -> impl Iterator<Item = &ResultEntry> {
        self.early_results.iter()
    }

    pub(super) fn summaries(&self) -> &SummaryIndex {
        &self.summaries
    }

    pub(super) fn summaries_mut(&mut self) -> &mut SummaryIndex {
        &mut self.summaries
    }

    /// Returns the position of the next message.
    #[must_use]
    pub fn position(&self) -> TurnPosition {
        self.position
    }

    /// Moves the position after a message.
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

    /// Iterates over the calls of a message, in order.
    pub fn calls_of<'h>(&'h self, message: &'h Message) -> impl Iterator<Item = &'h ToolInvocation> {
        message.parts.iter().filter_map(|part| match &part.body {
            PartBody::ToolCall { invocation, .. } => self.invocation(invocation),
            _ => None,
        })
    }

    /// Returns the invocation with this id to a reader that goes from call to call: `next` is the place after the one
    /// that it read last, where this one usually is.
    pub fn next_invocation(&self, id: &str, next: &Cell<usize>) -> Option<&ToolInvocation> {
        let is_next = self.invocations.get(next.get()).is_some_and(|call| call.id == id);
        let at = if is_next { next.get() } else { *self.invocation_at.get(id)? };
        next.set(at + 1);
        self.invocations.get(at)
    }

    /// Returns true if a message has calls.
    #[must_use]
    pub fn has_calls(&self, message: &Message) -> bool {
        self.calls_of(message).next().is_some()
    }

    /// Returns the newest assistant message.
    #[must_use]
    pub fn last_answer(&self) -> Option<&Message> {
        self.messages.iter().rev().find(|message| message.role == Role::Assistant)
    }

    /// Gives a message the metadata of an annotation. One of a message that is not here changes nothing.
    pub fn annotate(&mut self, annotation: Annotation) {
        let at = self.message_at.get(&annotation.message).copied();
        let Some(message) = at.and_then(|at| self.messages.get_mut(at)) else { return };
        message.metadata = annotation.metadata;
        *self.annotations.get_or_insert(&annotation.message, 0) += 1;
    }

    /// Gives a message another status. A message that is not here changes nothing.
    pub fn set_status(&mut self, message: &str, status: MessageStatus) {
        let at = self.message_at.get(message).copied();
        if let Some(message) = at.and_then(|at| self.messages.get_mut(at)) {
            message.status = status;
        }
    }

    /// Returns the number of annotations that a message has got: it tells whether its metadata changed.
    #[must_use]
    pub fn annotation_count(&self, message: &str) -> u32 {
        self.annotations.get(message).copied().unwrap_or(0)
    }

    /// Applies one entry. An entry whose id is known changes nothing.
    pub fn apply(&mut self, entry: HistoryEntry) {
        match entry {
            HistoryEntry::Message(message) => self.apply_message(message),
            HistoryEntry::Invocation(invocation) => self.apply_invocation(invocation),
            HistoryEntry::Result(result) => self.apply_result(result),
            HistoryEntry::SetAside(item) => {
                if item.is_early_result() {
                    item.invocation.as_ref().and_then(|call| self.early_results.take(call));
                }
                self.set_aside.push(item);
            }
        }
    }

    fn apply_message(&mut self, message: Message) {
        if !self.message_at.insert_new(&message.id, self.messages.len()) {
            return;
        }
        self.advance(&message);
        self.summaries.add_message(&message.id);
        self.late_results.add_message(&message);
        if message.role == Role::Assistant {
            self.last_answer_at = Some(self.messages.len());
        }
        self.messages.push(message);
    }

    fn apply_invocation(&mut self, mut invocation: ToolInvocation) {
        let at = self.invocations.len();
        if !self.invocation_at.insert_new(&invocation.id, at) {
            return;
        }
        let uses = self.call_id_uses.get_or_insert(&invocation.call_id, 0);
        *uses += 1;
        // `join` renames repeated call ids within a session. A turn that another writer's turn precedes, or a merged
        // log, may repeat one all the same.
        if invocation.replay_id.is_none() && *uses > 1 {
            invocation.replay_id = Some(synthesized_call_id(&invocation.id));
        }
        self.invocations.push(invocation);
        self.index_open_call(at);
        self.index_sources(at);
        self.index_late_result(at);
        self.apply_early_result(at);
    }

    /// Applies the result of a call that was stored before the call. One that is not the call's own is set aside.
    fn apply_early_result(&mut self, at: usize) {
        let Some(call) = self.invocations.get(at) else { return };
        let Some(early) = self.early_results.take(&call.id) else { return };
        if call.takes_result() {
            return self.apply_result(early);
        }
        let own = call.result.as_ref().map(|result| &result.content);
        if let Some(result) = early.result.filter(|result| own != Some(&result.content)) {
            let at = early.finished_at.unwrap_or_default();
            let item = SetAsideItem::result(FindingCode::DuplicateResult, result, at);
            self.set_aside.push(SetAsideItem { invocation: Some(early.invocation), ..item });
        }
    }

    /// Adds the result of a call to the late ones, if the conversation went on without it.
    fn index_late_result(&mut self, at: usize) {
        let Some(call) = self.invocations.get(at).filter(|call| call.is_deferred) else { return };
        let dialect = self.message(&call.message_id).and_then(|message| message.dialect);
        if let Some(late) = LateResult::of(call, self.messages.last(), dialect) {
            self.late_results.add(late);
        }
    }

    fn apply_result(&mut self, entry: ResultEntry) {
        let Some(at) = self.invocation_at.get(&entry.invocation).copied() else { return self.early_results.add(entry) };
        self.awaiting_approval.remove(&entry.invocation);
        let Some(invocation) = self.invocations.get_mut(at) else { return };
        if entry.is_deferral {
            invocation.is_deferred = true;
            invocation.started_at = entry.started_at.or(invocation.started_at);
            // Whoever has the result may have stored it first. From now on it has the place of a late one.
            self.overtaken_results.remove(&entry.invocation);
            return self.index_late_result(at);
        }
        if !takes_result(invocation, &entry) {
            return;
        }
        let had_result = invocation.result.is_some();
        invocation.status = entry.status;
        invocation.started_at = entry.started_at.or(invocation.started_at);
        invocation.finished_at = entry.finished_at;
        invocation.append_freshness = entry.freshness.or(invocation.append_freshness);
        invocation.has_redacted_result |= entry.is_redacted;
        invocation.result = entry.result;
        if let Some(message) = self.message_at.get(&invocation.message_id) {
            // A deferred result is sent in a place of its own: a summary that covers the call does not hide it.
            let covered = if invocation.is_deferred { usize::MAX } else { *message };
            self.summaries.add_late_result(&entry.invocation, covered);
        }
        self.index_open_call(at);
        if !(had_result && entry.is_replacement) {
            self.index_sources(at);
        }
        self.index_late_result(at);
        self.index_overtaken_result(at);
    }

    /// Notes the result of a call if a later answer precedes it.
    fn index_overtaken_result(&mut self, at: usize) {
        let Some(call) = self.invocations.get(at).filter(|call| !call.is_deferred) else { return };
        let Some(call_index) = self.message_at.get(&call.message_id).copied() else { return };
        if self.last_answer_at.is_none_or(|last| last <= call_index) {
            return;
        }
        let dialect = self.messages.get(call_index).and_then(|message| message.dialect);
        if let Some(late) = LateResult::of(call, self.messages.last(), dialect) {
            let (stored_after, number) = (self.messages.len(), self.summaries.late_result_count().saturating_sub(1));
            self.overtaken_results.add(OvertakenResult { late, call_index, stored_after, number });
        }
    }

    /// Returns true if a message or an invocation has this id.
    #[must_use]
    pub fn has_id(&self, id: &str) -> bool {
        self.message(id).is_some() || self.invocation(id).is_some()
    }

    /// Returns the number of messages and invocations.
    #[must_use]
    pub fn id_count(&self) -> usize {
        self.messages.len() + self.invocations.len()
    }

    /// Calls `visit` with the number and the item of each source in all results, to show what `[source3]` stands for.
    /// An item without a `content` string is skipped; of two items with one number the later counts. `content_id` is
    /// copied to `id` if there is none.
    pub fn each_source(&self, visit: &mut dyn FnMut(u64, Json)) {
        let calls = self.with_sources.iter().filter_map(|at| self.invocations.get(*at));
        for result in calls.filter_map(|call| call.result.as_ref()) {
            visit_sources(result, visit);
        }
    }
}

/// Returns true if the entry's result becomes that of the call. A result replaces the note "interrupted"; nothing else
/// replaces a result, except an entry that says so.
fn takes_result(invocation: &ToolInvocation, entry: &ResultEntry) -> bool {
    match entry.is_replacement {
        true => !invocation.is_withheld(),
        false => invocation.result.is_none() || invocation.status == InvocationStatus::Interrupted,
    }
}
