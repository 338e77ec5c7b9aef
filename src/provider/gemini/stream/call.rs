//! One function call of a Gemini response.

use super::partial_arguments::PartialArguments;
use crate::json::{Json, JsonRef, JsonStr, ObjectWriter};
use crate::provider::gemini::part::NamedPart;
use crate::provider::stream::{AssembledCall, StreamEvent};
use crate::provider::stream::{inside, non_empty_text};

/// A call, whose arguments may arrive in pieces (`streamFunctionCallArguments`).
pub(super) struct GeminiCall {
    index: u32,
    id: String,
    name: String,
    /// The part that started the call.
    wire: Json,
    /// The pieces of the arguments; `None` if they arrived whole.
    partial: Option<PartialArguments>,
    closed: bool,
}

impl GeminiCall {
    /// Starts the call of a part. `index` is its position among the calls of the response.
    pub(super) fn start(
        index: u32,
        NamedPart { part, named: call }: NamedPart<'_>,
        out: &mut Vec<StreamEvent>,
    ) -> Self {
        let is_partial = continues(call) || call.find("partialArgs").is_some();
        let mut started = Self {
            index,
            id: non_empty_text(call.get("id")).unwrap_or_default().into_owned(),
            name: non_empty_text(call.get("name")).unwrap_or_default().into_owned(),
            wire: part.to_owned(),
            partial: is_partial.then(PartialArguments::default),
            closed: false,
        };
        out.push(StreamEvent::CallStarted { index, call_id: started.id.clone(), name: started.name.clone() });
        started.extend(call, out);
        started
    }

    /// Returns true if more pieces of the arguments are to come.
    pub(super) fn is_open(&self) -> bool {
        !self.closed && self.partial.is_some()
    }

    /// Returns true if the arguments are incomplete or invalid.
    pub(super) fn is_cut(&self) -> bool {
        !self.closed || self.partial.as_ref().is_some_and(|partial| partial.to_json_text().is_none())
    }

    /// Adds the pieces of a `functionCall` object that continues this call, and closes the call unless more are
    /// announced.
    pub(super) fn extend(&mut self, call: JsonRef<'_>, out: &mut Vec<StreamEvent>) {
        if let Some(partial) = &mut self.partial {
            for piece in call.find("partialArgs").unwrap_or_default().items() {
                partial.add(piece);
            }
        }
        if !continues(call) {
            self.closed = true;
            self.emit_ready(out);
        }
    }

    /// Emits the arguments as a whole: pieces by path are not fragments of their JSON text.
    fn emit_ready(&mut self, out: &mut Vec<StreamEvent>) {
        let index = self.index;
        let call = self.assemble(false);
        if !call.arguments.is_empty() {
            out.push(StreamEvent::ArgumentsDelta {
                index,
                call_id: call.call_id.clone(),
                json: call.arguments.clone(),
            });
        }
        out.push(StreamEvent::CallReady { index, call });
    }

    /// Returns the `functionCall` object of the part that started the call.
    fn wire_call(&self) -> Option<JsonRef<'_>> {
        self.wire.view().get("functionCall")
    }

    /// Returns the JSON text of the arguments, or `None` if they are not an object.
    fn arguments(&self) -> Option<String> {
        if let Some(partial) = &self.partial {
            return partial.to_json_text();
        }
        match self.wire_call().and_then(|call| call.find("args")) {
            None => Some("{}".to_owned()),
            Some(args) => args.is_object().then(|| args.as_raw().to_owned()),
        }
    }

    /// Returns the call. `complete`: the response ended normally, so that its calls may run.
    pub(super) fn assemble(&self, complete: bool) -> AssembledCall {
        let arguments = self.arguments();
        let raw_args = || self.wire_call().and_then(|call| call.find("args")).map_or("", JsonRef::as_raw).to_owned();
        AssembledCall {
            call_id: self.id.clone(),
            name: self.name.clone(),
            executable: complete && self.closed && arguments.is_some() && !self.name.is_empty(),
            arguments: JsonStr::new(&arguments.unwrap_or_else(raw_args)),
        }
    }

    /// Appends the part's JSON: as it arrived, or with `args` in place of the pieces.
    pub(super) fn write(&self, out: &mut String) {
        let (Some(_), Some(wire_call)) = (&self.partial, self.wire_call()) else {
            return out.push_str(self.wire.as_str());
        };
        let mut part = ObjectWriter::new(out);
        for (key, value) in self.wire.view().entries() {
            if value != wire_call {
                part.copy(key, value);
                continue;
            }
            let mut call = ObjectWriter::new(part.key_token(key.as_raw()));
            for (key, value) in wire_call.entries() {
                if !matches!(inside(key), Some("willContinue" | "partialArgs" | "args")) {
                    call.copy(key, value);
                }
            }
            call.raw("args", &self.arguments().unwrap_or_else(|| "{}".to_owned()));
            call.end();
        }
        part.end();
    }
}

fn continues(call: JsonRef<'_>) -> bool {
    call.get("willContinue").and_then(JsonRef::as_bool) == Some(true)
}
