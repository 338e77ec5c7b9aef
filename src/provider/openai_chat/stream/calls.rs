//! The calls of a streamed Chat Completions answer: which fragment belongs to which call.
//!
//! The tool index is the key where a server gives one. Servers leave it out, give every call the same,
//! or let it drift on fragments that name nothing; ids and names then tell calls apart.

use super::object_end::ObjectEnd;
use crate::json::{JsonRef, JsonStr, ObjectWriter, check};
use crate::provider::stream::LatestPositions;
use crate::provider::stream::{AssembledCall, StreamEvent};
use crate::provider::stream::{StreamedFields, StringBuffer, inside, non_empty_text};

/// All calls, in the order they opened.
#[derive(Default)]
pub(crate) struct Calls {
    calls: Vec<Call>,
    positions: LatestPositions,
    /// Counts the chunks: two entries of one chunk are two calls unless something says otherwise.
    chunk: u64,
}

/// One call as it grows.
#[derive(Default)]
pub(crate) struct Call {
    opened_in: u64,
    id: String,
    name: String,
    kind: String,
    /// A custom tool's: its input is free text.
    custom: bool,
    arguments: StringBuffer,
    end: ObjectEnd,
    /// Whether the arguments parse as JSON; none until `end` has found the closing bracket.
    is_valid_json: Option<bool>,
    extra: StreamedFields,
    function_extra: StreamedFields,
    started: bool,
    ready: bool,
}

/// One entry of a delta.
#[derive(Default)]
struct Fragment<'a> {
    index: Option<u64>,
    id: Option<String>,
    name: Option<String>,
    kind: Option<String>,
    custom: bool,
    arguments: Option<JsonRef<'a>>,
    function: Option<JsonRef<'a>>,
}

impl Fragment<'_> {
    /// Whether it brings argument text that is more than white space.
    fn argues(&self) -> bool {
        self.arguments.is_some_and(|value| inside(value).is_none_or(|text| !text.trim().is_empty()))
    }
}

impl Calls {
    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Call> {
        self.calls.iter()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    pub(crate) fn next_chunk(&mut self) {
        self.chunk += 1;
    }

    /// One entry of `tool_calls`; in a whole message each entry is a call of its own. Where all that it did was to
    /// lengthen a call's arguments, it gives that call's place and the fragment.
    pub(crate) fn delta<'a>(
        &mut self,
        entry: JsonRef<'a>,
        whole: bool,
        out: &mut Vec<StreamEvent>,
    ) -> Option<(usize, &'a str)> {
        let mut fragment = Fragment::default();
        let (mut other, mut custom) = (false, None);
        for (key, value) in entry.entries() {
            match inside(key).unwrap_or_default() {
                "index" => fragment.index = value.as_u64(),
                // Mistral's word for a call without an id.
                "id" => fragment.id = non_empty_text(Some(value)).filter(|id| id != "null").map(Into::into),
                "type" => fragment.kind = non_empty_text(Some(value)).map(Into::into),
                "function" => fragment.function = Some(value).filter(|value| value.is_object()),
                "custom" => custom = Some(value).filter(|value| value.is_object()),
                _ => other |= !value.is_null(),
            }
        }
        // Some servers send both members, one of them blank.
        if fragment.function.is_none() || fragment.kind.as_deref() == Some("custom") {
            fragment.custom = custom.is_some();
            fragment.function = custom.or(fragment.function);
        }
        if let Some(function) = fragment.function {
            for (key, value) in function.entries().filter(|(_, value)| !value.is_null()) {
                match inside(key).unwrap_or_default() {
                    "name" => fragment.name = non_empty_text(Some(value)).map(Into::into),
                    "arguments" | "input" => fragment.arguments = Some(value),
                    _ => other = true,
                }
            }
        }
        let count = self.calls.len();
        let place = self.place(&fragment, whole)?;
        self.fill(place, &fragment, out);
        if !other {
            let plain = place < count && fragment.id.is_none() && fragment.name.is_none();
            return fragment.arguments.and_then(inside).filter(|_| plain).map(|text| (place, text));
        }
        let call = self.calls.get_mut(place)?;
        for (key, value) in entry.entries().filter(|(_, value)| !value.is_null()) {
            if !matches!(inside(key), Some("index" | "id" | "type" | "function" | "custom")) {
                call.extra.merge(key, value, false);
            }
        }
        for (key, value) in fragment.function.unwrap_or_default().entries().filter(|(_, value)| !value.is_null()) {
            if !matches!(inside(key), Some("name" | "arguments" | "input")) {
                call.function_extra.merge(key, value, false);
            }
        }
        None
    }

    /// More of a call's arguments.
    pub(crate) fn append(&mut self, place: usize, arguments: &str, out: &mut Vec<StreamEvent>) {
        let Some(call) = self.calls.get_mut(place) else { return };
        call.arguments.append(arguments);
        if call.is_named() {
            call.emit(index_of(place), out);
        }
    }

    /// The older `function_call`: one call, without an id.
    pub(crate) fn function(&mut self, function: JsonRef<'_>, out: &mut Vec<StreamEvent>) {
        let fragment = Fragment {
            index: Some(0),
            name: non_empty_text(function.get("name")).map(Into::into),
            arguments: function.find("arguments"),
            ..Fragment::default()
        };
        if let Some(place) = self.place(&fragment, false) {
            self.fill(place, &fragment, out);
        }
    }

    /// The call that the fragment belongs to, opened if it is a new one; none for a fragment that says nothing.
    fn place(&mut self, fragment: &Fragment<'_>, whole: bool) -> Option<usize> {
        if whole {
            return Some(self.open(fragment));
        }
        let nameless = fragment.name.is_none();
        let by_id = fragment.id.as_deref().filter(|_| nameless).and_then(|id| self.positions.with_id(id));
        let last = self.calls.len().checked_sub(1);
        if let Some(index) = fragment.index {
            if let Some(at) = self.positions.with_index(index) {
                let new = self.calls.get_mut(at).is_some_and(|call| starts_anew(call, fragment));
                return Some(if new { self.open(fragment) } else { at });
            }
            // A new index opens a call, unless it drifted: then nothing, or only a known id, stands beside it.
            if let Some(at) = by_id {
                return Some(at);
            }
            return match (nameless && fragment.id.is_none(), last) {
                (true, Some(last)) => Some(last),
                (true, None) if !fragment.argues() => None,
                _ => Some(self.open(fragment)),
            };
        }
        let chunk = self.chunk;
        let call = last.and_then(|last| self.calls.get_mut(last));
        let continues = match (&fragment.id, &fragment.name, call) {
            (None, None, Some(_)) => true,
            (None, None, None) => return fragment.argues().then(|| self.open(fragment)),
            (Some(id), name, Some(call)) if *id == call.id => name.is_none() || call.opened_in != chunk,
            (Some(_), _, _) | (_, _, None) => false,
            // The name again, without an id: the same call as long as it is not whole.
            (None, Some(name), Some(call)) => {
                *name == call.name && call.opened_in != chunk && !starts_anew(call, fragment)
            }
        };
        if continues {
            return last;
        }
        match by_id {
            Some(at) => Some(at),
            None => Some(self.open(fragment)),
        }
    }

    fn open(&mut self, fragment: &Fragment<'_>) -> usize {
        let place = self.calls.len();
        self.calls.push(Call { opened_in: self.chunk, ..Call::default() });
        if let Some(index) = fragment.index {
            self.positions.record_index(index, place);
        }
        place
    }

    fn fill(&mut self, place: usize, fragment: &Fragment<'_>, out: &mut Vec<StreamEvent>) {
        let Some(call) = self.calls.get_mut(place) else { return };
        // What is known stays: later fragments repeat it, or say `""`.
        let keep = |own: &mut String, new: &Option<String>| {
            if let (true, Some(new)) = (own.is_empty(), new) {
                own.clone_from(new);
            }
        };
        if call.id.is_empty() {
            self.positions.record_id(fragment.id.as_deref().unwrap_or_default(), place);
        }
        keep(&mut call.id, &fragment.id);
        keep(&mut call.name, &fragment.name);
        keep(&mut call.kind, &fragment.kind);
        call.custom |= fragment.custom;
        match fragment.arguments.map(|value| (value, inside(value))) {
            Some((_, Some(text))) => call.arguments.append(text),
            // An object, where the wire asks for its text: kept to the digit.
            Some((object, None)) => {
                call.arguments.replace(object.as_raw());
                (call.end, call.is_valid_json) = (ObjectEnd::default(), None);
            }
            None => {}
        }
        if !call.name.is_empty() {
            call.emit(index_of(place), out);
        }
    }

    /// The provider said that it is done: every call is whole.
    pub(crate) fn ready(&mut self, out: &mut Vec<StreamEvent>) {
        for (place, call) in self.calls.iter_mut().enumerate().filter(|(_, call)| !call.ready) {
            call.ready = true;
            call.emit(index_of(place), out);
            out.push(StreamEvent::CallReady { index: index_of(place), call: call.assemble(false) });
        }
    }
}

/// Whether a fragment at a call's index begins another call.
fn starts_anew(call: &mut Call, fragment: &Fragment<'_>) -> bool {
    match (&fragment.id, &fragment.name) {
        (Some(id), _) if *id == call.id => false,
        (Some(_), Some(_)) if !call.id.is_empty() => true,
        // A new id alone may be an id that drifts; behind a whole call it is a new one.
        (Some(_), None) if !call.id.is_empty() => call.is_whole(),
        (_, Some(_)) => !call.name.is_empty() && fragment.argues() && call.is_whole(),
        _ => false,
    }
}

fn index_of(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}

impl Call {
    pub(crate) fn is_named(&self) -> bool {
        !self.name.is_empty()
    }

    /// Whether the arguments so far are one complete JSON object. Called for every fragment, so no byte is scanned or parsed twice.
    fn is_whole(&mut self) -> bool {
        let arguments = &self.arguments;
        self.end.is_reached(arguments.inside())
            && *self.is_valid_json.get_or_insert_with(|| {
                let text = arguments.to_str();
                check(&text.decode()).is_ok()
            })
    }

    fn emit(&mut self, index: u32, out: &mut Vec<StreamEvent>) {
        if !self.started {
            self.started = true;
            out.push(StreamEvent::CallStarted { index, call_id: self.id.clone(), name: self.name.clone() });
        }
        self.arguments.emit_arguments(index, &self.id, out);
    }

    /// A call of a whole answer may run; what its arguments are worth is for the run to find out.
    pub(crate) fn assemble(&self, complete: bool) -> AssembledCall {
        AssembledCall {
            call_id: self.id.clone(),
            name: self.name.clone(),
            arguments: self.arguments.to_str(),
            executable: complete && self.is_named(),
        }
    }

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
