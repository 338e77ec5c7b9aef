//! Finds what is new in a body that continues a stored conversation, such as a checkpoint of a loop that the
//! application drives (R19).
//!
//! Both sides are compared as sequences of units: texts, media and calls. Units that a request may lack or that differ
//! from request to request (system messages, reasoning, blocks without a neutral meaning) are compared too, but either
//! side may lack them. Calls of earlier turns may be missing in the body, since a request leaves out stale ones.
//! Results have no place in the sequence: each is given to its call.

use super::entry::{HistoryEntry, ResultEntry};
use super::fold::History;
use super::incoming::{Incoming, IncomingMessage, IncomingPart, IncomingResult};
use super::join::{JoinBase, JoinedEntries, Origin, join, result_entry};
use crate::id::{IdMap, IdSource, Seed, hash_words};
use crate::message::{Media, PartBody, Role};
use crate::synthetic_result::{LATE_RESULT, is_missing, is_placeholder};
use crate::tool::{InvocationStatus, ToolInvocation};
use std::collections::VecDeque;

/// What a body adds to a conversation.
#[derive(Debug, Default)]
pub struct Continuation {
    /// Messages and the results of their calls, ready to be joined to the history.
    pub items: Vec<Incoming>,
    /// Results of stored calls that had none, with the ids of the invocations.
    pub answers: Vec<(String, IncomingResult)>,
    /// The ids of stored calls whose missing result the model was told of, and answered: nobody waits for them any
    /// more.
    pub interrupted: Vec<String>,
}

impl Continuation {
    /// Returns the number of new items.
    #[must_use]
    pub fn count(&self) -> usize {
        self.items.len() + self.answers.len()
    }

    /// Adds a result of the body. A result of the tool takes the place of a text that stood for it in an earlier
    /// request.
    fn add_result(
        &mut self,
        result: IncomingResult,
        history: &History,
        results: &mut ResultRouter,
    ) -> Result<(), NoContinuation> {
        match results.route(&result)? {
            ResultRoute::Known => {}
            ResultRoute::Stored(invocation) => {
                results.keep_place(&result, PlaceholderPlace::Answer(self.answers.len()));
                if history.invocation(&invocation).is_some_and(|call| call.is_deferred) {
                    self.items.push(Incoming::LateResult(invocation.clone()));
                }
                self.answers.push((invocation, result));
            }
            ResultRoute::New => {
                results.keep_place(&result, PlaceholderPlace::Item(self.items.len()));
                self.items.push(Incoming::Result(result));
            }
            ResultRoute::Replacing(PlaceholderPlace::Answer(at)) => {
                if let Some((_, placeholder)) = self.answers.get_mut(at) {
                    *placeholder = result;
                }
            }
            ResultRoute::Replacing(PlaceholderPlace::Item(at)) => {
                if let Some(placeholder) = self.items.get_mut(at) {
                    *placeholder = Incoming::Result(result);
                }
            }
        }
        Ok(())
    }

    /// Joins the new items to the history that they continue.
    #[must_use]
    pub fn join(self, history: &History, origin: &Origin, ids: &dyn IdSource) -> JoinedEntries {
        let answers = self.answers.into_iter().map(|(invocation, result)| result_entry(invocation, result, origin));
        let mut entries: Vec<HistoryEntry> = answers.map(HistoryEntry::Result).collect();
        entries.extend(self.interrupted.into_iter().map(|call| HistoryEntry::Result(ResultEntry::interrupted(call))));
        // The body was composed with them.
        let late_results = history.late_results().unplaced_ids();
        let origin = &Origin { late_results, ..origin.clone() };
        let mut joined = join(JoinBase::history(history), self.items, origin, ids);
        entries.append(&mut joined.entries);
        JoinedEntries { entries, ..joined }
    }
}

/// Why a body is no continuation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoContinuation {
    /// It lacks a stored message, or has another one in its place.
    Diverges,
    /// It has a result of a call that neither history nor the body has.
    OrphanResult {
        /// The call id of the result.
        call_id: String,
    },
}

/// A conversation as the sequence of its units.
#[derive(Clone, Debug, Default)]
pub struct ConversationUnits(Vec<Unit>);

/// One unit of a conversation.
#[derive(Clone, Debug)]
struct Unit {
    kind: UnitKind,
    /// A hash of the content.
    hash: u64,
    /// For a call: hashes under other ids that it may be sent with.
    aliases: Vec<u64>,
    /// True if a continuation may lack it.
    may_be_missing: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UnitKind {
    /// Text or media of the user or the model.
    Content,
    /// A call.
    Call,
    /// What a request may lack.
    Optional,
}

impl Unit {
    fn new(kind: UnitKind, hash: u64) -> Self {
        Self { kind, hash, aliases: Vec::new(), may_be_missing: kind == UnitKind::Optional }
    }

    /// Returns true if a unit of the body is this one.
    fn matches(&self, body: &Self) -> bool {
        self.kind == body.kind && (self.hash == body.hash || self.aliases.contains(&body.hash))
    }
}

impl ConversationUnits {
    /// Returns the units of a history. `wire_id` returns the id that a request in the body's dialect has for a call.
    #[must_use]
    pub fn of_history(history: &History, wire_id: &dyn Fn(&ToolInvocation) -> String) -> Self {
        let hasher = UnitHasher(history.seed());
        let mut units = Vec::with_capacity(history.messages().len());
        let turns = history.position().turns;
        for message in history.messages() {
            // A request leaves out calls of earlier turns whose results are stale.
            let is_earlier = message.turn + 1 < turns;
            for part in &message.parts {
                if let PartBody::ToolCall { invocation, .. } = &part.body {
                    let call = history.invocation(invocation).map(|call| hasher.stored_call(call, wire_id));
                    units.extend(call.map(|unit| Unit { may_be_missing: is_earlier, ..unit }));
                } else {
                    units.extend(hasher.part(message.role, &part.body));
                }
            }
        }
        Self(units)
    }

    /// Returns the units of decoded items.
    #[must_use]
    pub fn of_items(items: &[Incoming], seed: Seed) -> Self {
        Self(located_units(items, UnitHasher(seed)).into_iter().map(|(unit, _)| unit).collect())
    }

    /// Returns true if there is a text, media or a call.
    #[must_use]
    pub fn has_content(&self) -> bool {
        self.0.iter().any(|unit| unit.kind != UnitKind::Optional)
    }

    /// Removes the last unit.
    #[must_use]
    pub fn without_last(mut self) -> Self {
        self.0.pop();
        self
    }

    /// Returns the number of units at the beginning of `body` that are these units; `None` if the body does not
    /// continue them.
    fn aligned(&self, body: &[(Unit, PartPlace)]) -> Option<usize> {
        let (mut known, mut required) = (0, 0);
        for unit in &self.0 {
            // What is only in the body may stand before a unit that both have.
            let at = if unit.kind == UnitKind::Optional { known } else { required.max(known) };
            let skipped = body.get(at..).unwrap_or(&[]).iter();
            let skipped = skipped
                .take_while(|(candidate, _)| unit.kind != UnitKind::Optional && candidate.kind == UnitKind::Optional);
            let at = at + skipped.count();
            if unit.kind != UnitKind::Optional {
                required = at;
            }
            match body.get(at) {
                Some((candidate, _)) if unit.matches(candidate) => known = at + 1,
                _ if unit.may_be_missing => {}
                Some(_) | None => return None,
            }
        }
        Some(known)
    }
}

/// The place of a part: the index of its item, and its index in the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PartPlace {
    item: usize,
    part: usize,
}

fn located_units(items: &[Incoming], hasher: UnitHasher) -> Vec<(Unit, PartPlace)> {
    let mut units = Vec::with_capacity(items.len());
    for (item, incoming) in items.iter().enumerate() {
        let Incoming::Message(message) = incoming else { continue };
        for (part, content) in message.parts.iter().enumerate() {
            let unit = match content {
                _ if is_late_result(message.role, content) => None,
                IncomingPart::Part(part) => hasher.part(message.role, &part.body),
                IncomingPart::Call(call) => {
                    Some(Unit::new(UnitKind::Call, hasher.call(&call.call_id, &call.name, &call.arguments.text())))
                }
            };
            units.extend(unit.map(|unit| (unit, PartPlace { item, part })));
        }
    }
    units
}

/// Returns true for a text that a request had for a late result (R75).
fn is_late_result(role: Role, part: &IncomingPart) -> bool {
    let IncomingPart::Part(part) = part else { return false };
    role == Role::User && matches!(&part.body, PartBody::Text(text) if text.inside().starts_with(LATE_RESULT))
}

/// Removes the texts that a request had for late results, which the history has as results.
fn without_late_results(item: Incoming) -> Option<Incoming> {
    let Incoming::Message(mut message) = item else { return Some(item) };
    let count = message.parts.len();
    message.parts.retain(|part| !is_late_result(message.role, part));
    if message.parts.len() < count {
        // The slots of the template refer to parts by their indexes.
        message.template = None;
    }
    (message.parts.len() == count || !message.parts.is_empty()).then_some(Incoming::Message(message))
}

/// Hashes the content of units.
#[derive(Clone, Copy)]
struct UnitHasher(Seed);

impl UnitHasher {
    fn hash(self, tag: u64, bytes: &[u8]) -> u64 {
        hash_words(self.0.0 ^ tag.wrapping_mul(0x9e37_79b9_7f4a_7c15), bytes)
    }

    /// Returns the unit of a part that is no call; none for empty text and for data of the application, which is never
    /// sent.
    fn part(self, role: Role, part: &PartBody) -> Option<Unit> {
        let is_instruction = matches!(role, Role::System | Role::Developer);
        let kind = if is_instruction { UnitKind::Optional } else { UnitKind::Content };
        let speaker = u64::from(role == Role::Assistant);
        match part {
            // A refusal is sent as text to a dialect that has no refusals.
            PartBody::Text(text) | PartBody::Refusal(text) => {
                let text = text.decode();
                let text = text.trim();
                (!text.is_empty()).then(|| Unit::new(kind, self.hash(speaker, text.as_bytes())))
            }
            PartBody::Image(media) | PartBody::File(media) => Some(Unit::new(kind, self.media(speaker, media))),
            PartBody::Reasoning(text) => {
                Some(Unit::new(UnitKind::Optional, self.hash(4, text.decode().trim().as_bytes())))
            }
            PartBody::Opaque(value) => Some(Unit::new(UnitKind::Optional, self.hash(5, value.as_str().as_bytes()))),
            PartBody::Data { .. } | PartBody::ToolCall { .. } => None,
        }
    }

    fn media(self, speaker: u64, media: &Media) -> u64 {
        let content = media.data.as_ref().or(media.url.as_ref()).or(media.file_id.as_ref());
        self.hash(2 + speaker, content.map(|content| content.decode()).unwrap_or_default().as_bytes())
    }

    /// Returns the hash of a call: of its id and its tool, or of tool and arguments if it has no id.
    fn call(self, id: &str, name: &str, arguments: &str) -> u64 {
        let tool = self.hash(6, name.as_bytes());
        if id.is_empty() {
            // Another writer of the same arguments may use other spaces.
            let text: String = arguments.split_ascii_whitespace().collect();
            return hash_words(tool, text.as_bytes());
        }
        hash_words(tool ^ 1, id.as_bytes())
    }

    fn stored_call(self, call: &ToolInvocation, wire_id: &dyn Fn(&ToolInvocation) -> String) -> Unit {
        let arguments = call.arguments.text();
        let mut unit = Unit::new(UnitKind::Call, self.call(&call.call_id, &call.name, &arguments));
        unit.aliases = [call.wire_id(), &wire_id(call)].map(|id| self.call(id, &call.name, &arguments)).to_vec();
        unit
    }
}

/// Returns what a body adds to the conversation `stored`, which `history` contains.
///
/// # Errors
/// If the body does not continue it.
pub fn continuation(
    history: &History,
    stored: &ConversationUnits,
    body: Vec<Incoming>,
    wire_id: &dyn Fn(&ToolInvocation) -> String,
) -> Result<Continuation, NoContinuation> {
    let body: Vec<Incoming> = body.into_iter().filter_map(without_late_results).collect();
    let units = located_units(&body, UnitHasher(history.seed()));
    let known = stored.aligned(&units).ok_or(NoContinuation::Diverges)?;
    let end = KnownEnd::of(&units, known, history.messages().is_empty());
    let mut results = ResultRouter::new(history, wire_id);
    results.index_calls(&body, &end);
    let mut found = Continuation::default();
    for (at, item) in body.into_iter().enumerate() {
        match item {
            Incoming::Message(message) => {
                results.pass_message(&message, at, &end);
                found.items.extend(end.new_part(at, message).map(Incoming::Message));
            }
            Incoming::Result(result) => found.add_result(result, history, &mut results)?,
            // An item that is no message is rejected when the body is decoded.
            Incoming::LateResult(_) | Incoming::Unknown(_) => {}
        }
    }
    if found.items.iter().any(is_answer) {
        // A call that the conversation went on without is not interrupted.
        let is_pending = |call: &ToolInvocation| call.status == InvocationStatus::Pending && !call.is_deferred;
        let is_open = |id: &String| history.invocation(id).is_some_and(is_pending);
        found.interrupted = results.missing;
        found.interrupted.retain(|id| is_open(id) && found.answers.iter().all(|(answered, _)| answered != id));
    }
    Ok(found)
}

fn is_answer(item: &Incoming) -> bool {
    matches!(item, Incoming::Message(message) if message.role == Role::Assistant)
}

/// Where the known part of a body ends.
struct KnownEnd {
    /// The last known part.
    last: Option<PartPlace>,
    /// True if the item of the last known part has new content after it.
    splits_item: bool,
    /// Items before this index are instructions of the request, which is not the first of the conversation.
    first_item: usize,
    /// The indexes of the items that have a unit. The others have no content.
    with_units: Vec<usize>,
}

impl KnownEnd {
    fn of(units: &[(Unit, PartPlace)], known: usize, is_first: bool) -> Self {
        let (before, after) = units.split_at(known.min(units.len()));
        let last = before.last().map(|(_, place)| *place);
        let is_content = |unit: &Unit| unit.kind != UnitKind::Optional;
        let splits_item = last.is_some_and(|last| {
            after.iter().take_while(|(_, place)| place.item == last.item).any(|(unit, _)| is_content(unit))
        });
        let begins = after.iter().find(|(unit, _)| is_content(unit)).map_or(usize::MAX, |(_, place)| place.item);
        let with_units = units.iter().map(|(_, place)| place.item).collect();
        Self { last, splits_item, first_item: if is_first || last.is_some() { 0 } else { begins }, with_units }
    }

    /// Returns true if a part is known.
    fn covers(&self, place: PartPlace) -> bool {
        if place.item < self.first_item {
            return true;
        }
        let Some(last) = self.last else { return false };
        place.item < last.item || place.item == last.item && (place.part <= last.part || !self.splits_item)
    }

    /// Returns the new parts of a message; none if there are none.
    fn new_part(&self, item: usize, mut message: IncomingMessage) -> Option<IncomingMessage> {
        self.with_units.binary_search(&item).ok()?;
        let count = message.parts.len();
        let known = (0..count).take_while(|part| self.covers(PartPlace { item, part: *part })).count();
        if known > 0 {
            message.parts.drain(..known);
            // The slots of the template refer to parts by their indexes.
            message.template = None;
        }
        (known < count).then_some(message)
    }
}

/// Where a result of a body belongs.
enum ResultRoute {
    /// It is stored already.
    Known,
    /// To a stored call without a result.
    Stored(String),
    /// To a new call.
    New,
    /// To the call of a placeholder before it.
    Replacing(PlaceholderPlace),
}

/// The place of a placeholder in a [`Continuation`], by its index.
#[derive(Clone, Copy, Debug)]
enum PlaceholderPlace {
    Item(usize),
    Answer(usize),
}

/// Gives the results of a body to their calls, in the order of the body.
struct ResultRouter {
    /// Calls of the body that were passed and not answered since, by call id or tool name: true for a known call.
    passed: IdMap<VecDeque<bool>>,
    /// The keys of the passed calls, by tool name: a result without an id may name its tool alone.
    passed_by_name: IdMap<Vec<String>>,
    /// All call ids and tool names of the body: true if a new call has it.
    in_body: IdMap<bool>,
    /// Stored calls that take a result, by call id or tool name.
    open: IdMap<VecDeque<String>>,
    /// The newest result of each call id, if it is a placeholder.
    placeholders: IdMap<Option<PlaceholderPlace>>,
    /// Stored calls for which the body says that there is no result.
    missing: Vec<String>,
}

impl ResultRouter {
    fn new(history: &History, wire_id: &dyn Fn(&ToolInvocation) -> String) -> Self {
        let seed = history.seed();
        let mut open: IdMap<VecDeque<String>> = IdMap::with_seed(seed);
        for call in history.invocations().iter().filter(|call| call.takes_result()) {
            let mut keys = vec![call_key(&call.call_id, &call.name), call.wire_id().to_owned(), wire_id(call)];
            keys.sort();
            keys.dedup();
            for key in keys.iter().filter(|key| !key.is_empty()) {
                open.get_or_insert(key, VecDeque::new()).push_back(call.id.clone());
            }
        }
        Self {
            passed: IdMap::with_seed(seed),
            passed_by_name: IdMap::with_seed(seed),
            in_body: IdMap::with_seed(seed),
            open,
            placeholders: IdMap::with_seed(seed),
            missing: Vec::new(),
        }
    }

    fn index_calls(&mut self, body: &[Incoming], end: &KnownEnd) {
        for (item, incoming) in body.iter().enumerate() {
            let Incoming::Message(message) = incoming else { continue };
            for (part, key) in calls_of(message) {
                *self.in_body.get_or_insert(&key, false) |= !end.covers(PartPlace { item, part });
            }
        }
    }

    fn pass_message(&mut self, message: &IncomingMessage, item: usize, end: &KnownEnd) {
        for (part, key) in calls_of(message) {
            let is_known = end.covers(PartPlace { item, part });
            self.passed.get_or_insert(&key, VecDeque::new()).push_back(is_known);
            if let Some(IncomingPart::Call(call)) = message.parts.get(part) {
                self.passed_by_name.get_or_insert(&call.name, Vec::new()).push(key);
            }
        }
    }

    /// Returns the key of the newest passed call of a tool that no result has answered since.
    fn newest_of_tool(&mut self, name: &str) -> Option<String> {
        let keys = self.passed_by_name.get_mut(name)?;
        while let Some(key) = keys.pop() {
            if self.passed.get(&key).is_some_and(|calls| !calls.is_empty()) {
                return Some(key);
            }
        }
        None
    }

    /// Remembers where a placeholder is.
    fn keep_place(&mut self, result: &IncomingResult, place: PlaceholderPlace) {
        let place = Some(place).filter(|_| is_placeholder(result.content.view()));
        self.placeholders.insert(result.call_id.clone(), place);
    }

    fn route(&mut self, result: &IncomingResult) -> Result<ResultRoute, NoContinuation> {
        let is_missing = is_missing(result.content.view());
        let by_name = result.name.as_ref().map(|name| call_key("", name));
        // Some clients synthesize ids for calls that have none; then the tool's name tells which call a result answers.
        let named = result.name.as_ref().filter(|_| result.call_id.is_empty());
        let own_key = match named {
            // In the order of the calls, where calls have no ids.
            Some(name) if !self.passed.contains_key(&call_key("", name)) => self.newest_of_tool(name),
            _ => Some(result.call_id.clone()).filter(|id| !id.is_empty()),
        };
        let keys = [own_key, by_name];
        let keys: Vec<String> = keys.into_iter().flatten().collect();
        for key in &keys {
            match self.passed.get_mut(key).and_then(VecDeque::pop_front) {
                Some(false) => return Ok(ResultRoute::New),
                // What says that there is no result answers no stored call.
                Some(true) if is_missing => {
                    let open = self.open.get(key).and_then(VecDeque::front);
                    self.missing.extend(open.filter(|id| !self.missing.contains(id)).cloned());
                    return Ok(ResultRoute::Known);
                }
                Some(true) => return Ok(self.take_open(key).map_or(ResultRoute::Known, ResultRoute::Stored)),
                None => {}
            }
        }
        if !is_placeholder(result.content.view())
            && let Some(place) = self.placeholders.get_mut(&result.call_id).and_then(Option::take)
        {
            return Ok(ResultRoute::Replacing(place));
        }
        for key in &keys {
            if let Some(invocation) = self.take_open(key).filter(|_| !is_missing) {
                return Ok(ResultRoute::Stored(invocation));
            }
            match self.in_body.get(key) {
                Some(true) => return Ok(ResultRoute::New),
                Some(false) => return Ok(ResultRoute::Known),
                None => {}
            }
        }
        Err(NoContinuation::OrphanResult { call_id: result.call_id.clone() })
    }

    fn take_open(&mut self, key: &str) -> Option<String> {
        self.open.get_mut(key)?.pop_front()
    }
}

/// Iterates over the calls of a message: the index of the part, and the key by which results name the call.
fn calls_of(message: &IncomingMessage) -> impl Iterator<Item = (usize, String)> {
    message.parts.iter().enumerate().filter_map(|(at, part)| match part {
        IncomingPart::Call(call) => Some((at, call_key(&call.call_id, &call.name))),
        IncomingPart::Part(_) => None,
    })
}

/// Returns the key of a call: its id or, without one, its tool's name. No call id begins with the first character of
/// the latter.
fn call_key(id: &str, name: &str) -> String {
    if id.is_empty() { format!("\u{1}{name}") } else { id.to_owned() }
}
