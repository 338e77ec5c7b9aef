//! The join: gives incoming items their ids, turns and rounds, and every result its call.

use super::entry::{HistoryEntry, ResultEntry, SetAsideItem};
use super::fold::{History, TurnPosition};
use super::ids::{free_id, synthesized_call_id};
use super::incoming::{Incoming, IncomingCall, IncomingMessage, IncomingPart, IncomingResult};
use super::open_call_index::{StoredCalls, name_key, pairs_by_name};
use super::open_calls::{OpenCalls, Selection};
use crate::clock::Ms;
use crate::finding::{Action, Finding, FindingCode, Report, limit_report};
use crate::id::{IdMap, IdSource};
use crate::message::{Dialect, Message, MessageStatus, Part, PartBody, Role, Source};
use crate::synthetic_result::{is_missing, is_placeholder};
use crate::tool::{InvocationStatus, ToolInvocation, ToolResult, Window};

/// What all items of one append have in common.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// The time stamp of messages and results.
    pub at: Ms,
    /// Where the items come from.
    pub source: Source,
    /// The run that made them.
    pub run_id: Option<String>,
    /// The session's channel.
    pub channel: Option<String>,
    /// Ids for the first messages, in order; the other messages get new ids.
    pub message_ids: Vec<String>,
    /// The freshness window of the results, if the append sets one (R10).
    pub freshness: Option<Window>,
    /// The late results that are sent before the first message (R75).
    pub late_results: Vec<String>,
}

/// What incoming items are joined to.
#[derive(Clone, Copy, Debug)]
pub struct JoinBase<'h> {
    /// The history before a live turn. Its ids and call ids are taken; its calls get no results.
    pub before: Option<&'h History>,
    /// The history, or the live turn, that contains the open calls.
    pub history: &'h History,
}

impl<'h> JoinBase<'h> {
    /// Joins to a history.
    #[must_use]
    pub fn history(history: &'h History) -> Self {
        Self { before: None, history }
    }

    /// Joins to a live turn that is not in `before` yet.
    #[must_use]
    pub fn live(before: &'h History, live: &'h History) -> Self {
        Self { before: Some(before), history: live }
    }

    fn has_id(&self, id: &str) -> bool {
        self.history.has_id(id) || self.before.is_some_and(|before| before.has_id(id))
    }

    fn id_count(&self) -> usize {
        self.history.id_count() + self.before.map_or(0, History::id_count)
    }

    fn uses_call_id(&self, call_id: &str) -> bool {
        self.history.call_id_uses(call_id) > 0 || self.before.is_some_and(|before| before.call_id_uses(call_id) > 0)
    }
}

/// The entries of an append.
#[derive(Clone, Debug, Default)]
pub struct JoinedEntries {
    /// The entries, ready to be numbered and appended.
    pub entries: Vec<HistoryEntry>,
    /// The ids of the new messages, in order.
    pub message_ids: Vec<String>,
    /// The message ids that the caller chose.
    pub caller_ids: Vec<String>,
    /// Every rename, and every item that was set aside.
    pub report: Report,
}

/// Joins `incoming` to a history.
///
/// A result goes to the newest open call with its id (or, without an id, of its tool), whether the call is stored
/// already, comes earlier in `incoming`, or comes later. A result without an open call is set aside (R2, R5).
pub fn join(base: JoinBase<'_>, incoming: Vec<Incoming>, origin: &Origin, ids: &dyn IdSource) -> JoinedEntries {
    let mut joiner = Joiner::new(base, &incoming, origin, ids);
    let mut message_ids = origin.message_ids.iter();
    for item in incoming {
        match item {
            Incoming::Message(message) => {
                let id = joiner.unused_id(message_ids.next().cloned().unwrap_or_else(|| ids.new_id()));
                joiner.add_message(message, id);
            }
            Incoming::Result(result) => joiner.add_result(result, true),
            Incoming::LateResult(invocation) => joiner.late_results.push(invocation),
            Incoming::Unknown(value) => {
                joiner.joined.report.push(
                    Finding::warning(
                        FindingCode::Malformed,
                        "an item is no message of this dialect; it is stored and never sent",
                    )
                    .with_action(Action::Kept),
                );
                joiner.set_aside(FindingCode::Malformed, value, None);
            }
        }
    }
    joiner.join_late_results();
    limit_report(&mut joiner.joined.report);
    joiner.joined
}

/// The state of one join.
struct Joiner<'h> {
    base: JoinBase<'h>,
    origin: &'h Origin,
    ids: &'h dyn IdSource,
    joined: JoinedEntries,
    /// Which open calls of the history are candidates, by the call id or the tool name of an incoming result.
    stored: IdMap<StoredCalls>,
    /// Invocations that are answered by an entry of its own: stored ones, and those that the conversation goes on
    /// without.
    answered: IdMap<()>,
    /// Open calls of the incoming items, as indexes into `joined.entries`, by call id or by tool name.
    new_calls: IdMap<OpenCalls<usize>>,
    /// Call ids of the incoming items.
    new_call_ids: IdMap<()>,
    /// By call id: the number of incoming results with it that are not joined yet.
    pending_results: IdMap<usize>,
    /// An incoming result names its tool and no call: calls are indexed by name in every dialect.
    has_named_results: bool,
    /// Results whose call has not come yet.
    late: Vec<IncomingResult>,
    /// The late results that are sent before the next message.
    late_results: Vec<String>,
    /// By call id or tool name: the entry whose result is a placeholder, as index into `joined.entries`, if the last
    /// result is one.
    placeholders: IdMap<Option<usize>>,
    position: TurnPosition,
    /// Ids that this append uses.
    new_ids: IdMap<()>,
}

impl<'h> Joiner<'h> {
    fn new(base: JoinBase<'h>, incoming: &[Incoming], origin: &'h Origin, ids: &'h dyn IdSource) -> Self {
        let seed = base.history.seed();
        let mut joiner = Self {
            base,
            origin,
            ids,
            joined: JoinedEntries::default(),
            stored: IdMap::with_seed(seed),
            answered: IdMap::with_seed(seed),
            new_calls: IdMap::with_seed(seed),
            new_call_ids: IdMap::with_seed(seed),
            pending_results: IdMap::with_seed(seed),
            has_named_results: false,
            late: Vec::new(),
            late_results: origin.late_results.clone(),
            placeholders: IdMap::with_seed(seed),
            position: base.history.position(),
            new_ids: IdMap::with_seed(seed),
        };
        for item in incoming {
            let Incoming::Result(result) = item else { continue };
            joiner.has_named_results |= result.call_id.is_empty() && result.name.is_some();
            if !result.call_id.is_empty() {
                *joiner.pending_results.get_or_insert(&result.call_id, 0) += 1;
            }
        }
        joiner
    }

    /// Returns the keys by which a result may refer to a call: the call's id and, in a dialect that pairs by name or if
    /// results do, the tool's name.
    fn pairing_keys(&self, dialect: Option<Dialect>, call_id: &str, name: &str) -> Vec<String> {
        let mut keys = Vec::new();
        let by_name = pairs_by_name(dialect);
        if !by_name || !call_id.is_empty() {
            keys.push(call_id.to_owned());
        }
        if by_name || self.has_named_results {
            keys.push(name_key(name));
        }
        keys
    }

    fn add_message(&mut self, incoming: IncomingMessage, id: String) {
        let turn = self.position.advance(incoming.role);
        let round = self.position.rounds;
        let mut calls: Vec<ToolInvocation> = Vec::new();
        let mut parts = Vec::with_capacity(incoming.parts.len());
        let mut place = 0;
        for part in incoming.parts {
            match part {
                IncomingPart::Part(part) => parts.push(part),
                IncomingPart::Call(call) => {
                    let invocation = self.invocation(call, incoming.dialect);
                    let part = PartBody::ToolCall { invocation: invocation.id.clone(), round, place };
                    parts.push(Part::from(part));
                    calls.push(ToolInvocation { message_id: id.clone(), turn, round, place, ..invocation });
                    place += 1;
                }
            }
        }
        if place > 0 {
            self.position.rounds += 1;
        }
        self.joined.message_ids.push(id.clone());
        self.joined.entries.push(HistoryEntry::Message(Message {
            id,
            seq: 0,
            turn,
            role: incoming.role,
            parts,
            created_at: self.origin.at,
            source: self.origin.source.clone(),
            run_id: self.origin.run_id.clone(),
            status: MessageStatus::Complete,
            parent_id: None,
            metadata: None,
            answer: None,
            dialect: incoming.dialect,
            template: incoming.template,
            late_results: std::mem::take(&mut self.late_results),
        }));
        for call in calls {
            for key in self.pairing_keys(incoming.dialect, &call.call_id, &call.name) {
                let open = self.new_calls.get_or_insert(&key, OpenCalls::default());
                open.push(&call.message_id, self.joined.entries.len());
            }
            self.joined.entries.push(HistoryEntry::Invocation(call));
        }
    }

    /// Creates the invocation of a call. The caller sets its message, turn, round and place.
    fn invocation(&mut self, call: IncomingCall, dialect: Option<Dialect>) -> ToolInvocation {
        let id = self.unused_id(call.id.unwrap_or_else(|| self.ids.new_id()));
        let replay_id = self.replay_id(dialect, &call.call_id, &id);
        ToolInvocation {
            id,
            number: 0,
            record: 0,
            message_id: String::new(),
            turn: 0,
            call_id: call.call_id,
            replay_id,
            name: call.name,
            arguments: call.arguments,
            round: 0,
            place: 0,
            status: InvocationStatus::Pending,
            started_at: None,
            finished_at: None,
            stored_at: self.origin.at,
            redacted: false,
            channel: self.origin.channel.clone(),
            freshness: None,
            append_freshness: self.origin.freshness,
            result: None,
            stored_during_run: false,
            // Until its result comes, before the next message.
            is_deferred: call.is_async,
            has_persist: false,
            is_async: false,
            has_redacted_result: false,
            template: call.template,
        }
    }

    /// Returns `id`, with a suffix if it is in use: a repeated id must not replace a message.
    fn unused_id(&mut self, id: String) -> String {
        let count = self.base.id_count() + self.new_ids.count();
        let unused = free_id(id, count, &|id| self.new_ids.contains_key(id) || self.base.has_id(id));
        self.new_ids.insert(unused.clone(), ());
        unused
    }

    /// Returns the id that call and result are sent with if the call's own id is missing or was used before.
    fn replay_id(&mut self, dialect: Option<Dialect>, call_id: &str, invocation: &str) -> Option<String> {
        let is_repeated = self.new_call_ids.insert(call_id.to_owned(), ()).is_some() || self.base.uses_call_id(call_id);
        if !call_id.is_empty() && !is_repeated {
            return None;
        }
        let code = if call_id.is_empty() { FindingCode::InvalidCallId } else { FindingCode::DuplicateCallId };
        let replay_id = Some(synthesized_call_id(invocation));
        if call_id.is_empty() && pairs_by_name(dialect) {
            return replay_id;
        }
        self.joined.report.push(
            Finding::warning(code, "a call's id is missing or was used before; call and result are sent with a new id")
                .of_call(call_id)
                .with_action(Action::Renamed),
        );
        replay_id
    }

    /// Joins the results that came before their calls. Results with a call id come first; the others are paired with
    /// the remaining calls.
    fn join_late_results(&mut self) {
        let (with_id, without_id): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.late).into_iter().partition(|result| !result.call_id.is_empty());
        for result in with_id {
            self.add_result(result, false);
        }
        self.new_calls.values_mut().for_each(OpenCalls::restore_deferred);
        self.stored.values_mut().for_each(StoredCalls::restore_deferred);
        for result in without_id {
            self.add_result(result, false);
        }
    }

    /// Pairs a result with its call. If `may_wait`, a result without an open call waits for a later call.
    fn add_result(&mut self, result: IncomingResult, may_wait: bool) {
        let call_id = result.call_id.clone();
        let by_name = result.name.as_ref().map(|name| name_key(name));
        let key = by_name.as_ref().filter(|_| call_id.is_empty()).unwrap_or(&call_id).clone();
        // Some clients synthesize ids for calls that have none; then the tool's name tells which call a result answers.
        let second_key = by_name.filter(|_| !may_wait && !call_id.is_empty());
        let unpaired = match second_key {
            None => self.pair(&key, result, false),
            Some(name) => self.pair(&key, result, false).and_then(|result| self.pair(&name, result, true)),
        };
        match unpaired {
            Some(result) => self.add_unpaired(result, may_wait),
            None => {
                if let Some(count) = self.pending_results.get_mut(&call_id) {
                    *count -= 1;
                }
            }
        }
    }

    /// Stores a result with the newest open call of `key`; if `without_id`, only with a call that has no call id.
    /// Returns the result if there is no such call.
    fn pair(&mut self, key: &str, result: IncomingResult, without_id: bool) -> Option<IncomingResult> {
        let pending = &self.pending_results;
        // A result without an id does not answer a call for which a result with its id follows.
        let select = |call_id: &str| {
            let waits = result.call_id.is_empty() && pending.get(call_id).is_some_and(|left| *left > 0);
            if waits || without_id && !call_id.is_empty() { Selection::Defer } else { Selection::Take }
        };
        let answered = &self.answered;
        let newest_message = self.joined.message_ids.last();
        let entries = &mut self.joined.entries;
        let new_call = self.new_calls.get_mut(key).and_then(|calls| {
            calls.take_newest(&|at| match entries.get(*at) {
                Some(HistoryEntry::Invocation(call)) if call.result.is_none() && !answered.contains_key(&call.id) => {
                    select(&call.call_id)
                }
                _ => Selection::Discard,
            })
        });
        if let Some((at, HistoryEntry::Invocation(call))) = new_call.and_then(|at| Some((at, entries.get_mut(at)?))) {
            if call.is_deferred && newest_message != Some(&call.message_id) {
                let invocation = call.id.clone();
                self.answered.insert(invocation.clone(), ());
                self.late_results.push(invocation.clone());
                entries.push(HistoryEntry::Result(result_entry(invocation, result, self.origin)));
                return None;
            }
            self.placeholders.insert(key.to_owned(), Some(at).filter(|_| is_placeholder(result.content.view())));
            call.is_deferred = false;
            call.status = status_of(&result);
            call.finished_at = Some(self.origin.at);
            call.result = Some(stored_result(result));
            return None;
        }
        let (history, answered, has_named_results) = (self.base.history, &self.answered, self.has_named_results);
        let is_named = |call: &ToolInvocation| {
            let dialect = || history.message(&call.message_id).and_then(|message| message.dialect);
            !without_id || has_named_results || pairs_by_name(dialect())
        };
        let select_stored = |call: &ToolInvocation| {
            let is_candidate = call.result.is_none() && !answered.contains_key(&call.id) && is_named(call);
            if is_candidate { select(&call.call_id) } else { Selection::Discard }
        };
        let stored = self.stored.get_or_insert(key, StoredCalls::default());
        let Some(call) = stored.take_newest(history.open_call_index(), key, &select_stored) else {
            return self.replace_placeholder(key, result);
        };
        let invocation = call.id.clone();
        self.answered.insert(invocation.clone(), ());
        if call.is_deferred {
            self.late_results.push(invocation.clone());
        }
        self.placeholders.insert(key.to_owned(), Some(entries.len()).filter(|_| is_placeholder(result.content.view())));
        entries.push(HistoryEntry::Result(result_entry(invocation, result, self.origin)));
        None
    }

    /// Puts a tool's result in the place of a text that stood for it. Returns the result if there is none.
    fn replace_placeholder(&mut self, key: &str, result: IncomingResult) -> Option<IncomingResult> {
        if is_placeholder(result.content.view()) {
            return Some(result);
        }
        let at = self.placeholders.get_mut(key).and_then(Option::take);
        match at.and_then(|at| self.joined.entries.get_mut(at)) {
            Some(HistoryEntry::Invocation(call)) => {
                (call.status, call.result) = (status_of(&result), Some(stored_result(result)));
            }
            Some(HistoryEntry::Result(entry)) => {
                (entry.status, entry.result) = (status_of(&result), Some(stored_result(result)));
            }
            _ => return Some(result),
        }
        None
    }

    /// Keeps a result without an open call for later if `may_wait`; otherwise sets it aside.
    fn add_unpaired(&mut self, result: IncomingResult, may_wait: bool) {
        let known = self.base.history.call_id_uses(&result.call_id) > 0 || self.new_calls.contains_key(&result.call_id);
        if result.stands_alone && !known {
            let parts = vec![IncomingPart::Part(PartBody::Opaque(result.raw).into())];
            let message = IncomingMessage { role: Role::Assistant, parts, dialect: result.dialect, template: None };
            let id = self.unused_id(self.ids.new_id());
            return self.add_message(message, id);
        }
        if may_wait {
            self.late.push(result);
            return;
        }
        let (code, message) = if known {
            (
                FindingCode::DuplicateResult,
                "a call has two results; the first one is used, this one is stored and never sent",
            )
        } else {
            (FindingCode::OrphanResult, "a result answers no call; it is stored and never sent")
        };
        self.joined.report.push(Finding::warning(code, message).of_call(&result.call_id).with_action(Action::Kept));
        self.set_aside(code, result.raw, result.dialect);
    }

    fn set_aside(&mut self, reason: FindingCode, value: crate::json::Json, dialect: Option<Dialect>) {
        let at = self.origin.at;
        self.joined.entries.push(HistoryEntry::SetAside(SetAsideItem {
            reason: reason.as_str().into(),
            dialect,
            value,
            at,
            invocation: None,
        }));
    }
}

/// Returns the entry that gives a stored call its result.
pub(super) fn result_entry(invocation: String, result: IncomingResult, origin: &Origin) -> ResultEntry {
    ResultEntry {
        invocation,
        status: status_of(&result),
        started_at: None,
        finished_at: Some(origin.at),
        freshness: origin.freshness,
        result: Some(stored_result(result)),
        ..ResultEntry::default()
    }
}

/// Returns the status of a call with this result. One that says that there is none can still be replaced by the tool's.
fn status_of(result: &IncomingResult) -> InvocationStatus {
    match result.is_error {
        _ if is_missing(result.content.view()) => InvocationStatus::Interrupted,
        true => InvocationStatus::Error,
        false => InvocationStatus::Ok,
    }
}

fn stored_result(result: IncomingResult) -> ToolResult {
    ToolResult {
        content: result.content,
        is_error: result.is_error,
        dialect: result.dialect,
        template: result.template,
    }
}
