//! One content block of an Anthropic response.
//!
//! A block is kept as it arrived, with its deltas applied, so that block types which are unknown here are sent back
//! unchanged.

use crate::json::{Json, JsonRef, JsonStr, ObjectWriter};
use crate::provider::anthropic::decode::decode_block;
use crate::provider::stream::{AnswerBlock, AssembledCall, BlockBody, StreamEvent};
use crate::provider::stream::{StreamedFields, StreamedValue, StringBuffer, inside, keep_lone_surrogates};

/// How the assembler treats a block.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamBlockKind {
    Text,
    Thinking,
    /// A `tool_use` block, with its position among the calls of the response.
    ToolCall(u32),
    /// Any other type, among them the calls and results of Anthropic's server tools.
    Other,
}

/// A content block of a response in progress.
pub(super) struct StreamBlock {
    /// The `index` of the `content_block_start` event.
    pub index: Option<u64>,
    pub kind: StreamBlockKind,
    fields: StreamedFields,
    /// The JSON text of `input`, joined from the `partial_json` fragments.
    input: StringBuffer,
    /// `content_block_stop` arrived, or the block came in one piece.
    closed: bool,
    /// `StreamEvent::CallReady` was emitted.
    ready_emitted: bool,
}

impl StreamBlock {
    /// Creates the block of a `content_block_start` event, or of a whole message. `call_count` is the number of calls
    /// before it.
    pub(super) fn new(index: Option<u64>, block: JsonRef<'_>, call_count: u32) -> Self {
        let fields = StreamedFields::read(block);
        let kind = match fields.text("type").map(StringBuffer::inside) {
            Some("text") => StreamBlockKind::Text,
            Some("thinking") => StreamBlockKind::Thinking,
            Some("tool_use") => StreamBlockKind::ToolCall(call_count),
            _ => StreamBlockKind::Other,
        };
        Self { index, kind, fields, input: StringBuffer::default(), closed: false, ready_emitted: false }
    }

    /// Emits the start of a call, and the text that the block contains already.
    pub(super) fn emit_start(&mut self, out: &mut Vec<StreamEvent>) {
        if let StreamBlockKind::ToolCall(index) = self.kind {
            let (call_id, name) = (self.fields.decoded("id"), self.fields.decoded("name"));
            out.push(StreamEvent::CallStarted { index, call_id, name });
        }
        self.emit_new_text(out);
    }

    /// Returns true if the block's type is one of `types`.
    pub(super) fn has_type(&self, types: &[&str]) -> bool {
        self.string_member("type").is_some_and(|kind| types.contains(&kind))
    }

    /// Returns the content of the string token of a member.
    pub(super) fn string_member(&self, name: &str) -> Option<&str> {
        self.fields.text(name).map(StringBuffer::inside)
    }

    /// Returns true if the block has no text other than white space.
    pub(super) fn is_blank_text(&self) -> bool {
        self.fields.decoded("text").trim().is_empty()
    }

    /// Returns the string that most deltas of the block extend.
    fn buffer_mut(&mut self) -> Option<&mut StringBuffer> {
        match self.kind {
            StreamBlockKind::Text => self.fields.text_mut("text"),
            StreamBlockKind::Thinking => self.fields.text_mut("thinking"),
            StreamBlockKind::ToolCall(_) | StreamBlockKind::Other => Some(&mut self.input),
        }
    }

    /// Appends a fragment to the string that most deltas of the block extend.
    pub(super) fn append_fragment(&mut self, fragment: &str) {
        if let Some(buffer) = self.buffer_mut() {
            buffer.append(fragment);
        }
    }

    /// Applies a delta: string members are extended, list members too, other members replaced. Returns the fragment if
    /// extending the string of [`buffer_mut`](Self::buffer_mut) was its only effect.
    ///
    /// ```json
    /// {"type":"text_delta","text":" world"}
    /// {"type":"input_json_delta","partial_json":"{\"city\": \"Par"}
    /// ```
    pub(super) fn apply_delta<'a>(&mut self, delta: JsonRef<'a>) -> Option<&'a str> {
        let (mut members, mut fragment) = (0, None);
        for (key, value) in delta.entries() {
            members += usize::from(!key.is_text("type"));
            match (inside(key).unwrap_or_default(), self.kind) {
                ("text", StreamBlockKind::Text)
                | ("thinking", StreamBlockKind::Thinking)
                | ("partial_json", StreamBlockKind::ToolCall(_) | StreamBlockKind::Other) => fragment = inside(value),
                _ => {}
            }
            match inside(key).unwrap_or_default() {
                "type" => {}
                "partial_json" => self.input.append(inside(value).unwrap_or_default()),
                "citation" => self.fields.push_item("citations", value),
                // A signature arrives as one value; a second one replaces the first.
                "signature" => self.fields.merge(key, value, false),
                // Other members of a thinking delta (`estimated_tokens`) belong to the event. Anthropic rejects them in
                // a block.
                name if name != "thinking" && self.kind == StreamBlockKind::Thinking => {}
                _ => self.fields.merge(key, value, true),
            }
        }
        fragment.filter(|_| members == 1)
    }

    /// Emits the text that arrived since the last call.
    pub(super) fn emit_new_text(&mut self, out: &mut Vec<StreamEvent>) {
        match self.kind {
            StreamBlockKind::Text => {
                if let Some(text) = self.fields.text_mut("text") {
                    text.emit(StreamEvent::TextDelta, out);
                }
            }
            StreamBlockKind::Thinking => {
                if let Some(text) = self.fields.text_mut("thinking") {
                    text.emit(StreamEvent::ReasoningDelta, out);
                }
            }
            StreamBlockKind::ToolCall(index) => {
                self.input.emit_arguments(index, &self.fields.decoded("id"), out);
            }
            StreamBlockKind::Other => {}
        }
    }

    /// Marks the block as complete and emits its call, once.
    pub(super) fn close(&mut self, out: &mut Vec<StreamEvent>) {
        self.closed = true;
        if let (StreamBlockKind::ToolCall(index), false) = (self.kind, self.ready_emitted) {
            self.ready_emitted = true;
            out.push(StreamEvent::CallReady { index, call: self.assemble_call(false) });
        }
    }

    /// Returns the JSON text that the `partial_json` fragments form. A lone surrogate is kept as its escape, since a
    /// Rust string cannot hold it.
    fn input_text(&self) -> String {
        JsonStr::from_inside(&keep_lone_surrogates(self.input.inside())).decode().into_owned()
    }

    /// Returns the JSON text of `input` if it is an object. Without fragments it is the `input` that the block started
    /// with, as a rule the placeholder `{}`.
    fn input_object(&self) -> Option<String> {
        let text = self.input_text();
        if !text.trim().is_empty() {
            return JsonRef::parse(&text).ok().filter(|value| value.is_object()).map(|value| value.as_raw().to_owned());
        }
        match self.fields.get("input") {
            None => Some("{}".to_owned()),
            Some(StreamedValue::Raw(raw)) if raw == "null" => Some("{}".to_owned()),
            Some(StreamedValue::Raw(raw)) if raw.starts_with('{') => Some(raw.clone()),
            Some(_) => None,
        }
    }

    /// Returns the block as a call. `complete`: the response ended normally, so that its calls may run.
    pub(super) fn assemble_call(&self, complete: bool) -> AssembledCall {
        let input = self.input_object();
        let name = self.fields.decoded("name");
        AssembledCall {
            executable: complete && self.closed && input.is_some() && !name.is_empty(),
            call_id: self.fields.decoded("id"),
            name,
            arguments: JsonStr::new(&input.unwrap_or_else(|| self.input_text())),
        }
    }

    /// Visits the block, if an application sees something of it: thinking before its signature, too.
    pub(super) fn visit(&self, key: u64, visit: &mut dyn FnMut(AnswerBlock<'_>)) {
        let text = |name| self.string_member(name).unwrap_or_default();
        match self.kind {
            StreamBlockKind::Text if !text("text").is_empty() => {
                visit(AnswerBlock::new(key, BlockBody::Text(text("text"))));
            }
            StreamBlockKind::Thinking if self.closed || !text("thinking").is_empty() => {
                visit(AnswerBlock::new(key, BlockBody::Reasoning(text("thinking"))));
            }
            StreamBlockKind::Other if self.closed => {
                let decode = || {
                    let wire = self.to_wire(false).map_or_else(Json::null, Json::trusted);
                    decode_block(wire.view()).body
                };
                visit(AnswerBlock::new(key, BlockBody::Other(&decode)));
            }
            _ => {}
        }
    }

    /// Returns the block's JSON for the next request, or `None` if Anthropic would reject it there. `complete` as in
    /// [`assemble_call`](Self::assemble_call).
    pub(super) fn to_wire(&self, complete: bool) -> Option<String> {
        let is_empty = |name| self.fields.text(name).is_none_or(StringBuffer::is_empty);
        // Anthropic rejects an empty text, and thinking without its signature, which is the last delta of the block.
        let rejected = match self.kind {
            StreamBlockKind::Text => is_empty("text"),
            StreamBlockKind::Thinking => !self.closed && is_empty("signature"),
            StreamBlockKind::ToolCall(_) => !self.assemble_call(complete).executable,
            StreamBlockKind::Other => !self.closed && self.fields.get("input").is_some(),
        };
        if rejected {
            return None;
        }
        let input = match self.kind {
            StreamBlockKind::ToolCall(_) => Some(self.input_object()?),
            _ if self.input.is_empty() => None,
            _ => Some(self.input_object()?),
        };
        let mut out = String::new();
        let mut block = ObjectWriter::new(&mut out);
        let mut input_written = false;
        for (key, value) in self.fields.entries() {
            if let (Some(input), "input") = (&input, key.as_str()) {
                block.raw("input", input);
                input_written = true;
            } else if !(key == "citations" && self.kind == StreamBlockKind::Text && value.is_vacant()) {
                value.write(block.key_inside(key));
            }
        }
        if let (Some(input), false) = (&input, input_written) {
            block.raw("input", input);
        }
        block.end();
        Some(out)
    }
}

/// Returns a text block.
pub(super) fn text_block(text: &JsonStr) -> Json {
    ObjectWriter::build(|block| _ = block.text("type", "text").token("text", text))
}

/// Returns a thinking block as Anthropic's streams start it: empty and unsigned.
pub(super) fn empty_thinking_block() -> Json {
    let empty = JsonStr::new("");
    ObjectWriter::build(|block| {
        block.text("type", "thinking").token("thinking", &empty).token("signature", &empty);
    })
}
