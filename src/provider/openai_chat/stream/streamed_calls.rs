//! The calls of a streamed Chat Completions answer: which delta belongs to which call.
//!
//! A delta normally names its call by `index`:
//!
//! ```json
//! {"index":0,"id":"call_1","function":{"name":"search","arguments":""}}
//! {"index":0,"function":{"arguments":"{\"q\":"}}
//! ```
//!
//! Some servers omit the index, give every call the same one, or let it drift on deltas that have only arguments. Ids
//! and names then tell the calls apart.

use super::object_end::ObjectEnd;
use crate::json::{JsonRef, JsonStr, ObjectWriter, check};
use crate::provider::stream::{
    AssembledCall, LatestPositions, StreamEvent, StreamedFields, StringBuffer, inside, non_empty_text,
};

/// All calls of an answer, in the order in which they were opened.
#[derive(Default)]
pub(crate) struct ChatCalls {
    calls: Vec<ChatCall>,
    positions: LatestPositions,
    /// The number of chunks so far. Two entries of one chunk with the same id or name are two calls.
    chunk: u64,
}

/// A call while it is streamed.
#[derive(Default)]
pub(crate) struct ChatCall {
    /// The chunk that opened it.
    opened_in: u64,
    id: String,
    name: String,
    /// The call's `type`; empty if no delta has one.
    kind: String,
    /// It calls a custom tool: its input is free text.
    custom: bool,
    arguments: StringBuffer,
    end: ObjectEnd,
    /// Whether the arguments parse as JSON; none until `end` has found the closing bracket.
    is_valid_json: Option<bool>,
    /// Unknown members of the call.
    extra: StreamedFields,
    /// Unknown members of its `function` or `custom` object.
    function_extra: StreamedFields,
    /// `CallStarted` was emitted.
    started: bool,
    /// `CallReady` was emitted.
    ready: bool,
}

/// One entry of a delta's `tool_calls`. Empty strings are read as absent.
#[derive(Default)]
struct CallDelta<'a> {
    index: Option<u64>,
    id: Option<String>,
    name: Option<String>,
    kind: Option<String>,
    custom: bool,
    arguments: Option<JsonRef<'a>>,
    /// The object that holds name and arguments.
    function: Option<JsonRef<'a>>,
    /// The entry, or its `function`, has members that no other field holds.
    has_unknown_members: bool,
}

impl<'a> CallDelta<'a> {
    fn read(entry: JsonRef<'a>) -> Self {
        let mut delta = Self::default();
        let mut custom = None;
        for (key, value) in entry.entries() {
            match inside(key).unwrap_or_default() {
                "index" => delta.index = value.as_u64(),
                // Mistral sends the id "null" for a call without an id.
                "id" => delta.id = non_empty_text(Some(value)).filter(|id| id != "null").map(Into::into),
                "type" => delta.kind = non_empty_text(Some(value)).map(Into::into),
                "function" => delta.function = Some(value).filter(|value| value.is_object()),
                "custom" => custom = Some(value).filter(|value| value.is_object()),
                _ => delta.has_unknown_members |= !value.is_null(),
            }
        }
        // Some servers send both members, one of them blank.
        if delta.function.is_none() || delta.kind.as_deref() == Some("custom") {
            delta.custom = custom.is_some();
            delta.function = custom.or(delta.function);
        }
        for (key, value) in non_null_members(delta.function.unwrap_or_default()) {
            match inside(key).unwrap_or_default() {
                "name" => delta.name = non_empty_text(Some(value)).map(Into::into),
                "arguments" | "input" => delta.arguments = Some(value),
                _ => delta.has_unknown_members = true,
            }
        }
        delta
    }

    /// Returns true if the delta has arguments that are more than white space.
    fn has_arguments(&self) -> bool {
        self.arguments.is_some_and(|value| inside(value).is_none_or(|text| !text.trim().is_empty()))
    }
}

fn non_null_members(object: JsonRef<'_>) -> impl Iterator<Item = (JsonRef<'_>, JsonRef<'_>)> {
    object.entries().filter(|(_, value)| !value.is_null())
}

impl ChatCalls {
    pub(crate) fn iter(&self) -> std::slice::Iter<'_, ChatCall> {
        self.calls.iter()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Starts a chunk: the deltas until the next call of this method belong to it.
    pub(crate) fn next_chunk(&mut self) {
        self.chunk += 1;
    }

    /// Applies one entry of `tool_calls`. In a `whole` message each entry is a call of its own. If the entry did
    /// nothing but append to an open call's arguments, returns the call's position and the appended text.
    pub(crate) fn apply<'a>(
        &mut self,
        entry: JsonRef<'a>,
        whole: bool,
        out: &mut Vec<StreamEvent>,
    ) -> Option<(usize, &'a str)> {
        let delta = CallDelta::read(entry);
        let count = self.calls.len();
        let position = if whole { self.open(&delta) } else { self.position_of(&delta)? };
        self.fill(position, &delta, out);
        if !delta.has_unknown_members {
            let is_append = position < count && delta.id.is_none() && delta.name.is_none();
            return delta.arguments.and_then(inside).filter(|_| is_append).map(|text| (position, text));
        }
        let call = self.calls.get_mut(position)?;
        for (key, value) in non_null_members(entry) {
            if !matches!(inside(key), Some("index" | "id" | "type" | "function" | "custom")) {
                call.extra.merge(key, value, false);
            }
        }
        for (key, value) in non_null_members(delta.function.unwrap_or_default()) {
            if !matches!(inside(key), Some("name" | "arguments" | "input")) {
                call.function_extra.merge(key, value, false);
            }
        }
        None
    }

    /// Appends to a call's arguments.
    pub(crate) fn append_arguments(&mut self, position: usize, arguments: &str, out: &mut Vec<StreamEvent>) {
        let Some(call) = self.calls.get_mut(position) else { return };
        call.arguments.append(arguments);
        if call.is_named() {
            call.emit(event_index(position), out);
        }
    }

    /// Applies a delta of the deprecated `function_call`: an answer's only call, without an id.
    pub(crate) fn apply_legacy(&mut self, function: JsonRef<'_>, out: &mut Vec<StreamEvent>) {
        let delta = CallDelta {
            index: Some(0),
            name: non_empty_text(function.get("name")).map(Into::into),
            arguments: function.find("arguments"),
            ..CallDelta::default()
        };
        if let Some(position) = self.position_of(&delta) {
            self.fill(position, &delta, out);
        }
    }

    /// Returns the position of the delta's call, opening it if it is new; none if the delta is empty.
    fn position_of(&mut self, delta: &CallDelta<'_>) -> Option<usize> {
        let nameless = delta.name.is_none();
        let by_id = delta.id.as_deref().filter(|_| nameless).and_then(|id| self.positions.with_id(id));
        let last = self.calls.len().checked_sub(1);
        let Some(index) = delta.index else { return self.position_without_index(delta, by_id) };
        if let Some(position) = self.positions.with_index(index) {
            let is_new = self.calls.get_mut(position).is_some_and(|call| starts_new_call(call, delta));
            return Some(if is_new { self.open(delta) } else { position });
        }
        // A new index opens a call, unless the index drifted: such a delta has no name, and no id or a known one.
        if by_id.is_some() {
            return by_id;
        }
        match (nameless && delta.id.is_none(), last) {
            (true, Some(last)) => Some(last),
            (true, None) if !delta.has_arguments() => None,
            _ => Some(self.open(delta)),
        }
    }

    fn position_without_index(&mut self, delta: &CallDelta<'_>, by_id: Option<usize>) -> Option<usize> {
        let chunk = self.chunk;
        let continues_last = match (&delta.id, &delta.name, self.calls.last_mut()) {
            (None, None, Some(_)) => true,
            (None, None, None) => return delta.has_arguments().then(|| self.open(delta)),
            (Some(id), name, Some(call)) if *id == call.id => name.is_none() || call.opened_in != chunk,
            (Some(_), _, _) | (_, _, None) => false,
            // The same name without an id: the same call as long as its arguments are incomplete.
            (None, Some(name), Some(call)) => {
                *name == call.name && call.opened_in != chunk && !starts_new_call(call, delta)
            }
        };
        if continues_last {
            return self.calls.len().checked_sub(1);
        }
        by_id.or_else(|| Some(self.open(delta)))
    }

    /// Opens a call and returns its position.
    fn open(&mut self, delta: &CallDelta<'_>) -> usize {
        let position = self.calls.len();
        self.calls.push(ChatCall { opened_in: self.chunk, ..ChatCall::default() });
        if let Some(index) = delta.index {
            self.positions.record_index(index, position);
        }
        position
    }

    fn fill(&mut self, position: usize, delta: &CallDelta<'_>, out: &mut Vec<StreamEvent>) {
        let Some(call) = self.calls.get_mut(position) else { return };
        if call.id.is_empty() {
            self.positions.record_id(delta.id.as_deref().unwrap_or_default(), position);
        }
        set_if_empty(&mut call.id, &delta.id);
        set_if_empty(&mut call.name, &delta.name);
        set_if_empty(&mut call.kind, &delta.kind);
        call.custom |= delta.custom;
        match delta.arguments.map(|value| (value, inside(value))) {
            Some((_, Some(text))) => call.arguments.append(text),
            // Some servers send an object instead of a string. Its text is kept, so no digit is lost.
            Some((object, None)) => {
                call.arguments.replace(object.as_raw());
                (call.end, call.is_valid_json) = (ObjectEnd::default(), None);
            }
            None => {}
        }
        if !call.name.is_empty() {
            call.emit(event_index(position), out);
        }
    }

    /// Marks every call as complete and emits `CallReady` for each: the provider has sent a finish reason.
    pub(crate) fn complete(&mut self, out: &mut Vec<StreamEvent>) {
        for (position, call) in self.calls.iter_mut().enumerate().filter(|(_, call)| !call.ready) {
            let index = event_index(position);
            call.ready = true;
            call.emit(index, out);
            out.push(StreamEvent::CallReady { index, call: call.assemble(false) });
        }
    }
}

/// Later deltas repeat a value or send `""`; the first one counts.
fn set_if_empty(current: &mut String, new: &Option<String>) {
    if let (true, Some(new)) = (current.is_empty(), new) {
        current.clone_from(new);
    }
}

/// Returns true if a delta with an open call's index (or name) begins another call.
fn starts_new_call(call: &mut ChatCall, delta: &CallDelta<'_>) -> bool {
    match (&delta.id, &delta.name) {
        (Some(id), _) if *id == call.id => false,
        (Some(_), Some(_)) if !call.id.is_empty() => true,
        // A new id without a name may be an id that drifts; after complete arguments it is a new call.
        (Some(_), None) if !call.id.is_empty() => call.has_complete_arguments(),
        (_, Some(_)) => !call.name.is_empty() && delta.has_arguments() && call.has_complete_arguments(),
        _ => false,
    }
}

/// The index of a call in [`StreamEvent`]s.
fn event_index(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}

impl ChatCall {
    pub(crate) fn is_named(&self) -> bool {
        !self.name.is_empty()
    }

    /// Returns true if the arguments so far are one complete JSON object. Called for every delta, so no byte is scanned
    /// or parsed twice.
    fn has_complete_arguments(&mut self) -> bool {
        let arguments = &self.arguments;
        self.end.is_reached(arguments.inside())
            && *self.is_valid_json.get_or_insert_with(|| {
                let text = arguments.to_str();
                check(&text.decode()).is_ok()
            })
    }

    /// Emits `CallStarted` once, then the arguments that were not emitted yet.
    fn emit(&mut self, index: u32, out: &mut Vec<StreamEvent>) {
        if !self.started {
            self.started = true;
            out.push(StreamEvent::CallStarted { index, call_id: self.id.clone(), name: self.name.clone() });
        }
        self.arguments.emit_arguments(index, &self.id, out);
    }

    /// Returns the call. It is executable if the answer is `complete` and it has a name; its arguments are not checked
    /// here.
    pub(crate) fn assemble(&self, complete: bool) -> AssembledCall {
        AssembledCall {
            call_id: self.id.clone(),
            name: self.name.clone(),
            arguments: self.arguments.to_str(),
            executable: complete && self.is_named(),
        }
    }

    /// Writes the members of an entry of `tool_calls`.
    pub(crate) fn write(&self, object: &mut ObjectWriter<'_>) {
        let kind = if self.custom { "custom" } else { "function" };
        object.text("id", &self.id);
        object.text("type", if self.kind.is_empty() { kind } else { &self.kind });
        object.object(kind, |function| {
            let arguments: JsonStr = self.arguments.to_str();
            function.text("name", &self.name);
            function.token(if self.custom { "input" } else { "arguments" }, &arguments);
            self.function_extra.write(function);
        });
        self.extra.write(object);
    }
}
