//! The join: gives incoming items their ids, turns and rounds, and every result its call.

use super::open_calls::{OpenCalls, Selection};
use super::{
    History, HistoryEntry, Incoming, IncomingMessage, IncomingPart, IncomingResult, ResultEntry, SetAsideItem,
    TurnPosition, free_id, own_call_id,
};
use crate::clock::Ms;
use crate::finding::{Action, Finding, FindingCode, Report};
use crate::id::IdMap;
use crate::id::IdSource;
use crate::message::{CallMatching, Dialect, Message, MessageStatus, Part, PartBody, Role, Source};
use crate::tool::{InvocationStatus, ToolInvocation, ToolResult, Window};

/// What all items of one append have in common.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// The stamp of messages and results.
    pub at: Ms,
    /// Where they came from.
    pub source: Source,
    /// The run that made them.
    pub run_id: Option<String>,
    /// The session's channel.
    pub channel: Option<String>,
    /// Ids for the messages, in order, where the caller has some.
    pub message_ids: Vec<String>,
    /// The freshness window of their results, if the append names one (R10).
    pub freshness: Option<Window>,
}

/// What the join makes.
#[derive(Clone, Debug, Default)]
pub struct JoinedEntries {
    /// Entries, ready to be numbered and appended.
    pub entries: Vec<HistoryEntry>,
    /// The new messages' ids, in order.
    pub message_ids: Vec<String>,
    /// Of these, the ids that the caller chose.
    pub caller_ids: Vec<String>,
    /// What was found and done.
    pub report: Report,
}

/// Joins `incoming` to `history`: each result goes to the newest open call of its id, in its round, whether the call
/// is stored, comes earlier in the same items, or comes later. What finds no call is set aside (R2, R5).
///
/// `history` may be a live turn; then `before` is what it stands behind, whose call ids are taken too.
pub fn join(
    before: Option<&History>,
    history: &History,
    incoming: Vec<Incoming>,
    origin: &Origin,
    ids: &dyn IdSource,
) -> JoinedEntries {
    let (mut stored, mut pending_results) = (IdMap::with_seed(history.seed()), IdMap::with_seed(history.seed()));
    let results =
        incoming.iter().filter_map(|item| if let Incoming::Result(result) = item { Some(result) } else { None });
    for result in results.clone().filter(|result| !result.call_id.is_empty()) {
        *pending_results.get_or_insert(&result.call_id, 0) += 1;
    }
    for call in history.open().filter(|_| results.clone().next().is_some()) {
        let dialect = history.message(&call.message_id).and_then(|message| message.dialect);
        for key in keys_of(dialect, &call.call_id, &call.name) {
            stored.get_or_insert(&key, OpenCalls::default()).push(&call.message_id, call.id.clone());
        }
    }
    let joined = JoinedEntries::default();
    let mut work = Join {
        before,
        history,
        origin,
        joined,
        stored,
        answered: IdMap::with_seed(history.seed()),
        fresh: IdMap::with_seed(history.seed()),
        call_ids: IdMap::with_seed(history.seed()),
        pending_results,
        late: Vec::new(),
        position: history.position(),
        taken: IdMap::with_seed(history.seed()),
    };
    let mut given = origin.message_ids.iter();
    for item in incoming {
        match item {
            Incoming::Message(message) => {
                let id = work.untaken(given.next().cloned().unwrap_or_else(|| ids.new_id()));
                work.message(message, id, ids);
            }
            Incoming::Result(result) => work.result(result, true, ids),
            Incoming::Unknown(value) => {
                work.joined.report.push(
                    Finding::warning(
                        FindingCode::Malformed,
                        "an item is no message of this dialect; it is stored and never sent",
                    )
                    .with_action(Action::Kept),
                );
                work.set_aside(FindingCode::Malformed, value, None);
            }
        }
    }
    work.join_late(ids);
    work.joined
}

struct Join<'h> {
    before: Option<&'h History>,
    history: &'h History,
    origin: &'h Origin,
    joined: JoinedEntries,
    /// Open calls of the history, by call id or by tool name.
    stored: IdMap<OpenCalls<String>>,
    /// Which of them these items answer.
    answered: IdMap<()>,
    /// Open calls of these items, as indexes of `joined.entries`, by call id or by tool name.
    fresh: IdMap<OpenCalls<usize>>,
    /// Call ids of these items.
    call_ids: IdMap<()>,
    /// By call id: how many results of these items have it and are not joined yet.
    pending_results: IdMap<usize>,
    /// Results whose call has not come yet.
    late: Vec<IncomingResult>,
    position: TurnPosition,
    /// Ids of this append.
    taken: IdMap<usize>,
}

impl<'h> Join<'h> {
    fn message(&mut self, incoming: IncomingMessage, id: String, ids: &dyn IdSource) {
        let turn = self.position.advance(incoming.role);
        let round = self.position.rounds;
        let mut place = 0;
        let mut calls: Vec<ToolInvocation> = Vec::new();
        let mut parts = Vec::with_capacity(incoming.parts.len());
        for part in incoming.parts {
            let call = match part {
                IncomingPart::Part(part) => {
                    parts.push(part);
                    continue;
                }
                IncomingPart::Call(call) => call,
            };
            let invocation = self.untaken(ids.new_id());
            let replay_id = self.replay_id(incoming.dialect, &call.call_id, &invocation);
            parts.push(Part::from(PartBody::ToolCall { invocation: invocation.clone(), round, place }));
            calls.push(ToolInvocation {
                id: invocation,
                number: 0,
                record: 0,
                message_id: id.clone(),
                turn,
                call_id: call.call_id,
                replay_id,
                name: call.name,
                arguments: call.arguments,
                round,
                place,
                status: InvocationStatus::Pending,
                started_at: None,
                finished_at: None,
                stored_at: self.origin.at,
                redacted: false,
                channel: self.origin.channel.clone(),
                freshness: None,
                append_freshness: self.origin.freshness,
                result: None,
                template: call.template,
            });
            place += 1;
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
        }));
        for call in calls {
            for key in keys_of(incoming.dialect, &call.call_id, &call.name) {
                let open = self.fresh.get_or_insert(&key, OpenCalls::default());
                open.push(&call.message_id, self.joined.entries.len());
            }
            self.joined.entries.push(HistoryEntry::Invocation(call));
        }
    }

    /// An id source that repeats itself, or an id that the caller gave twice, must not make a message vanish.
    fn untaken(&mut self, id: String) -> String {
        let before = self.before.map_or(0, History::id_count);
        let count = before + self.history.id_count() + self.taken.count();
        let own = free_id(id, count, &|id| {
            self.taken.contains_key(id)
                || self.history.has_id(id)
                || self.before.is_some_and(|before| before.has_id(id))
        });
        self.taken.insert(own.clone(), 0);
        own
    }

    /// An id that cannot serve gets another one, once and for all: the same in call and result, the same in every build.
    fn replay_id(&mut self, dialect: Option<Dialect>, call_id: &str, invocation: &str) -> Option<String> {
        let used = self.before.is_some_and(|before| before.uses_of(call_id) > 0)
            || self.history.uses_of(call_id) > 0
            || self.call_ids.insert(call_id.to_owned(), ()).is_some();
        if !call_id.is_empty() && !used {
            return None;
        }
        let code = if call_id.is_empty() { FindingCode::InvalidCallId } else { FindingCode::DuplicateCallId };
        let own = Some(own_call_id(invocation));
        if call_id.is_empty() && pairs_by_name(dialect) {
            return own;
        }
        self.joined.report.push(
            Finding::warning(
                code,
                "a call's id is missing or was used before; call and result go out under one of their own",
            )
            .of_call(call_id)
            .with_action(Action::Renamed),
        );
        own
    }

    /// Joins the results that stood before their calls. Those with a call id come first; the others are paired with the calls that
    /// are left.
    fn join_late(&mut self, ids: &dyn IdSource) {
        let (with_id, without_id): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.late).into_iter().partition(|result| !result.call_id.is_empty());
        for result in with_id {
            self.result(result, false, ids);
        }
        self.fresh.values_mut().for_each(OpenCalls::restore_deferred);
        self.stored.values_mut().for_each(OpenCalls::restore_deferred);
        for result in without_id {
            self.result(result, false, ids);
        }
    }

    fn result(&mut self, result: IncomingResult, may_wait: bool, ids: &dyn IdSource) {
        let call_id = result.call_id.clone();
        let by_name = result.name.as_ref().map(|name| name_key(name));
        let key = by_name.as_ref().filter(|_| result.call_id.is_empty()).unwrap_or(&result.call_id).clone();
        // A client that makes up ids for calls that have none: the name says which call it means.
        let second = by_name.filter(|_| !may_wait && !result.call_id.is_empty());
        let unpaired = match second {
            None => self.pair(&key, result, false),
            Some(name) => self.pair(&key, result, false).and_then(|result| self.pair(&name, result, true)),
        };
        match unpaired {
            Some(result) => self.unpaired(result, may_wait, ids),
            None => {
                if let Some(left) = self.pending_results.get_mut(&call_id) {
                    *left -= 1;
                }
            }
        }
    }

    /// Stores a result with the newest open call under `key`, if `without_id` one that has no call id. Returns the result if there is no
    /// such call.
    fn pair(&mut self, key: &str, result: IncomingResult, without_id: bool) -> Option<IncomingResult> {
        let pending = &self.pending_results;
        // A result without an id does not answer a call for which a result with its id follows.
        let select = |call_id: &str| {
            let waits = result.call_id.is_empty() && pending.get(call_id).is_some_and(|left| *left > 0);
            if waits || without_id && !call_id.is_empty() { Selection::Defer } else { Selection::Take }
        };
        let entries = &mut self.joined.entries;
        let fresh = self.fresh.get_mut(key).and_then(|calls| {
            calls.take_newest(&|at| match entries.get(*at) {
                Some(HistoryEntry::Invocation(call)) if call.result.is_none() => select(&call.call_id),
                _ => Selection::Discard,
            })
        });
        if let Some(HistoryEntry::Invocation(call)) = fresh.and_then(|at| entries.get_mut(at)) {
            call.status = status_of(&result);
            call.finished_at = Some(self.origin.at);
            call.result = Some(stored(result));
            return None;
        }
        let (history, answered) = (self.history, &self.answered);
        let invocation = self.stored.get_mut(key).and_then(|calls| {
            calls.take_newest(&|id| match history.invocation(id) {
                Some(call) if !answered.contains_key(id) => select(&call.call_id),
                _ => Selection::Discard,
            })
        });
        let Some(invocation) = invocation else { return Some(result) };
        self.answered.insert(invocation.clone(), ());
        entries.push(HistoryEntry::Result(ResultEntry {
            invocation,
            status: status_of(&result),
            started_at: None,
            finished_at: Some(self.origin.at),
            freshness: self.origin.freshness,
            result: Some(stored(result)),
        }));
        None
    }

    /// Keeps a result without an open call for later if `may_wait`, else sets it aside.
    fn unpaired(&mut self, result: IncomingResult, may_wait: bool, ids: &dyn IdSource) {
        let known = self.history.uses_of(&result.call_id) > 0 || self.fresh.contains_key(&result.call_id);
        if result.apart && !known {
            let parts = vec![IncomingPart::Part(PartBody::Opaque(result.raw).into())];
            let message = IncomingMessage { role: Role::Assistant, parts, dialect: result.dialect, template: None };
            let id = self.untaken(ids.new_id());
            return self.message(message, id, ids);
        }
        if may_wait {
            self.late.push(result);
            return;
        }
        let (code, message) = if known {
            (
                FindingCode::DuplicateResult,
                "a call that is answered already got another result; the first one counts, this one is stored and never sent",
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
        }));
    }
}

/// Returns true if calls of the dialect need no id.
fn pairs_by_name(dialect: Option<Dialect>) -> bool {
    dialect.is_some_and(|dialect| dialect.call_matching() == CallMatching::ByName)
}

/// Returns the keys by which a result may name a call: its id and, where ids are optional, the name of its tool.
fn keys_of(dialect: Option<Dialect>, call_id: &str, name: &str) -> Vec<String> {
    let mut keys = Vec::new();
    let named = pairs_by_name(dialect);
    if !named || !call_id.is_empty() {
        keys.push(call_id.to_owned());
    }
    if named {
        keys.push(name_key(name));
    }
    keys
}

/// No id begins so.
fn name_key(name: &str) -> String {
    format!("\u{1}{name}")
}

fn status_of(result: &IncomingResult) -> InvocationStatus {
    if result.is_error { InvocationStatus::Error } else { InvocationStatus::Ok }
}

fn stored(result: IncomingResult) -> ToolResult {
    ToolResult {
        content: result.content,
        is_error: result.is_error,
        dialect: result.dialect,
        template: result.template,
    }
}
