//! One content block of a response.

use crate::json::{Json, JsonRef, JsonStr, ObjectWriter, list_of};
use crate::provider::bedrock::block::{
    CITATIONS, IMAGE, REASONING, TEXT, TOOL_RESULT, TOOL_USE, is_server_call, kind_of,
};
use crate::provider::bedrock::decode::decode_block;
use crate::provider::bedrock::media::joined_text;
use crate::provider::stream::{
    AnswerBlock, AssembledCall, BlockBody, StreamEvent, StreamedFields, StringBuffer, inside, keep_lone_surrogates,
};

/// How the assembler treats a block.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamBlockKind {
    Text,
    Reasoning,
    /// A call of the application's tool, with its position among the calls of the response.
    ToolCall(u32),
    /// A call of a tool that the service runs.
    ServerCall,
    /// The result of such a tool.
    ServerResult,
    /// A block that is kept as it arrived.
    Verbatim,
}

/// A content block of a response in progress.
pub(super) struct StreamBlock {
    /// The `contentBlockIndex` of its events.
    pub index: Option<u64>,
    pub kind: StreamBlockKind,
    /// The members of a call or a result, as its start has them.
    fields: StreamedFields,
    /// A text, reasoning, the JSON text of `input`, or the text of a block that is kept as it arrived.
    text: StringBuffer,
    /// The JSON of `input` that arrived in one piece.
    input: Option<String>,
    /// The string token of the signature of reasoning.
    signature: Option<String>,
    /// The string tokens of encrypted reasoning.
    redacted: Vec<String>,
    /// The sources of a text, or the blocks of a server's result.
    items: Vec<String>,
    /// The block as it arrived.
    whole: Option<String>,
    /// `contentBlockStop` arrived, or the block came in one piece.
    closed: bool,
    /// `StreamEvent::CallReady` was emitted.
    ready_emitted: bool,
}

/// Returns the source that arrived in pieces: the bytes of one after the other, in base64, which only the last one
/// pads. Of others the last one counts.
fn joined_sources(sources: &[String]) -> Option<String> {
    let last = sources.last()?;
    let bytes = |source: &String| {
        let source = JsonRef::parse(source).ok()?;
        Some(source.get("bytes")?.as_text()?.into_owned())
    };
    let pieces: Option<Vec<String>> = sources.iter().map(bytes).collect();
    let is_joined = |pieces: &Vec<String>| {
        let before = pieces.len().saturating_sub(1);
        pieces.iter().take(before).all(|piece| piece.len() % 4 == 0 && !piece.ends_with('='))
    };
    Some(match pieces.filter(is_joined) {
        Some(pieces) => ObjectWriter::build(|out| _ = out.text("bytes", &pieces.concat())).as_str().to_owned(),
        None => last.clone(),
    })
}

impl StreamBlock {
    fn new(index: Option<u64>, kind: StreamBlockKind) -> Self {
        Self {
            index,
            kind,
            fields: StreamedFields::default(),
            text: StringBuffer::default(),
            input: None,
            signature: None,
            redacted: Vec::new(),
            items: Vec::new(),
            whole: None,
            closed: false,
            ready_emitted: false,
        }
    }

    /// Creates the block of a `contentBlockStart` event. `call_count` is the number of calls before it.
    pub(super) fn started(index: Option<u64>, start: JsonRef<'_>, call_count: u32) -> Self {
        let (kind, inner) = kind_of(start).unwrap_or_default();
        let kind = match kind {
            TOOL_USE if is_server_call(inner) => StreamBlockKind::ServerCall,
            TOOL_USE => StreamBlockKind::ToolCall(call_count),
            TOOL_RESULT => StreamBlockKind::ServerResult,
            _ => return Self { whole: Some(start.as_raw().to_owned()), ..Self::new(index, StreamBlockKind::Verbatim) },
        };
        Self { fields: StreamedFields::read(inner), ..Self::new(index, kind) }
    }

    /// Creates the block that a delta begins, without applying it; none for the delta of a call, whose name is unknown.
    pub(super) fn of_delta(index: Option<u64>, delta: JsonRef<'_>) -> Option<Self> {
        let kind = delta.entries().find_map(|(key, _)| match inside(key)? {
            TEXT | "citation" => Some(StreamBlockKind::Text),
            REASONING => Some(StreamBlockKind::Reasoning),
            _ => None,
        });
        Some(Self::new(index, kind?))
    }

    /// Creates a block of a whole response.
    pub(super) fn whole(block: JsonRef<'_>, call_count: u32) -> Self {
        let (kind, inner) = kind_of(block).unwrap_or_default();
        let verbatim = || Self { whole: Some(block.as_raw().to_owned()), ..Self::new(None, StreamBlockKind::Verbatim) };
        match kind {
            TEXT => {
                let text = StringBuffer::new(inside(inner).unwrap_or_default());
                Self { text, ..Self::new(None, StreamBlockKind::Text) }
            }
            TOOL_USE if !is_server_call(inner) => {
                let kind = StreamBlockKind::ToolCall(call_count);
                let input = inner.find("input");
                let (text, input) = match input.and_then(|input| inside(input)) {
                    Some(text) => (StringBuffer::new(text), None),
                    None => (StringBuffer::default(), input.map(|input| input.as_raw().to_owned())),
                };
                Self { fields: StreamedFields::read(inner), text, input, ..Self::new(None, kind) }
            }
            REASONING if inner.find("reasoningText").is_some() => {
                let reasoning = inner.get("reasoningText").unwrap_or_default();
                let text = StringBuffer::new(reasoning.get(TEXT).and_then(inside).unwrap_or_default());
                let signature = reasoning.find("signature").map(|value| value.as_raw().to_owned());
                Self { text, signature, ..Self::new(None, StreamBlockKind::Reasoning) }
            }
            CITATIONS => {
                let text = inner.get("content").and_then(joined_text).unwrap_or_else(|| JsonStr::new(""));
                Self { text: StringBuffer::new(text.inside()), ..verbatim() }
            }
            _ => verbatim(),
        }
    }

    /// Emits the start of a call, and the text that the block contains already.
    pub(super) fn emit_start(&mut self, out: &mut Vec<StreamEvent>) {
        if let StreamBlockKind::ToolCall(index) = self.kind {
            out.push(StreamEvent::CallStarted { index, call_id: self.call_id(), name: self.fields.decoded("name") });
        }
        self.emit_new_text(out);
    }

    fn call_id(&self) -> String {
        self.fields.decoded("toolUseId")
    }

    /// Appends a fragment to the string that most deltas of the block extend.
    pub(super) fn append_fragment(&mut self, fragment: &str) {
        self.text.append(fragment);
    }

    /// Applies a delta. Returns the fragment if appending it to the block's string was its only effect.
    ///
    /// ```json
    /// {"text":" world"}
    /// {"toolUse":{"input":"{\"city\": \"Par"}}
    /// {"reasoningContent":{"text":"Hm"}}
    /// ```
    pub(super) fn apply_delta<'a>(&mut self, delta: JsonRef<'a>) -> Option<&'a str> {
        let mut fragment = None;
        let mut members = 0;
        for (key, value) in delta.entries() {
            members += 1;
            match (inside(key).unwrap_or_default(), self.kind) {
                (TEXT, StreamBlockKind::Text) => fragment = self.append(value),
                (TOOL_USE, StreamBlockKind::ToolCall(_) | StreamBlockKind::ServerCall) => {
                    let input = value.get("input").unwrap_or_default();
                    fragment = self.append(input);
                    if input.is_object() {
                        self.input = Some(input.as_raw().to_owned());
                    }
                }
                (REASONING, StreamBlockKind::Reasoning) => fragment = self.append_reasoning(value),
                ("citation", StreamBlockKind::Text) => self.items.push(value.as_raw().to_owned()),
                (IMAGE, StreamBlockKind::Verbatim) => {
                    self.items.extend(value.find("source").map(|source| source.as_raw().to_owned()));
                }
                (TOOL_RESULT, StreamBlockKind::ServerResult) => {
                    self.items.extend(value.items().map(|item| item.as_raw().to_owned()));
                }
                _ => {}
            }
        }
        fragment.filter(|_| members == 1)
    }

    fn append<'a>(&mut self, value: JsonRef<'a>) -> Option<&'a str> {
        let fragment = inside(value)?;
        self.text.append(fragment);
        Some(fragment)
    }

    /// Applies a delta of reasoning: a text, the signature, or encrypted reasoning.
    fn append_reasoning<'a>(&mut self, delta: JsonRef<'a>) -> Option<&'a str> {
        let (mut fragment, mut members) = (None, 0);
        for (key, value) in delta.entries() {
            members += 1;
            match inside(key).unwrap_or_default() {
                TEXT => fragment = self.append(value),
                // A signature arrives as one value; a second one replaces the first.
                "signature" if inside(value).is_some_and(|text| !text.is_empty()) => {
                    self.signature = Some(value.as_raw().to_owned());
                }
                "redactedContent" if inside(value).is_some() => self.redacted.push(value.as_raw().to_owned()),
                _ => {}
            }
        }
        fragment.filter(|_| members == 1)
    }

    /// Emits the text that arrived since the last call.
    pub(super) fn emit_new_text(&mut self, out: &mut Vec<StreamEvent>) {
        match self.kind {
            StreamBlockKind::Text | StreamBlockKind::Verbatim => self.text.emit(StreamEvent::TextDelta, out),
            StreamBlockKind::Reasoning => self.text.emit(StreamEvent::ReasoningDelta, out),
            StreamBlockKind::ToolCall(index) => self.text.emit_arguments(index, &self.call_id(), out),
            StreamBlockKind::ServerCall | StreamBlockKind::ServerResult => {}
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

    /// Returns the content of the string token of the text that the answer shows.
    pub(super) fn visible_text(&self) -> &str {
        match self.kind {
            StreamBlockKind::Text | StreamBlockKind::Verbatim => self.text.inside(),
            _ => "",
        }
    }

    /// Returns the JSON text of the arguments. A lone surrogate is kept as its escape, since a Rust string cannot hold
    /// it.
    fn input_text(&self) -> String {
        match &self.input {
            Some(input) => input.clone(),
            None => JsonStr::from_inside(&keep_lone_surrogates(self.text.inside())).decode().into_owned(),
        }
    }

    /// Returns the JSON text of the arguments if it is an object; `{}` without fragments.
    fn input_object(&self) -> Option<String> {
        let text = self.input_text();
        if text.trim().is_empty() || text == "null" {
            return Some("{}".to_owned());
        }
        JsonRef::parse(&text).ok().filter(|value| value.is_object()).map(|value| value.as_raw().to_owned())
    }

    /// Returns the block as a call. `complete`: the response ended normally, so that its calls may run.
    pub(super) fn assemble_call(&self, complete: bool) -> AssembledCall {
        let input = self.input_object();
        let name = self.fields.decoded("name");
        AssembledCall {
            executable: complete && self.closed && input.is_some() && !name.is_empty(),
            call_id: self.call_id(),
            name,
            arguments: JsonStr::new(&input.unwrap_or_else(|| self.input_text())),
        }
    }

    /// Visits the block, if an application sees something of it.
    pub(super) fn visit(&self, key: u64, visit: &mut dyn FnMut(AnswerBlock<'_>)) {
        let text = self.text.inside();
        match self.kind {
            StreamBlockKind::Text | StreamBlockKind::Verbatim if !text.is_empty() => {
                visit(AnswerBlock::new(key, BlockBody::Text(text)));
            }
            StreamBlockKind::Reasoning if self.redacted.is_empty() && (self.closed || !text.is_empty()) => {
                visit(AnswerBlock::new(key, BlockBody::Reasoning(text)));
            }
            StreamBlockKind::ToolCall(_) | StreamBlockKind::Text => {}
            _ if self.closed => {
                let decode = || {
                    let wire = self.to_wire(false).map_or_else(Json::null, Json::trusted);
                    decode_block(wire.view()).body
                };
                visit(AnswerBlock::new(key, BlockBody::Other(&decode)));
            }
            _ => {}
        }
    }

    /// Returns the block's JSON for the next request, or `None` if the service would reject it there. `complete` as in
    /// [`assemble_call`](Self::assemble_call).
    pub(super) fn to_wire(&self, complete: bool) -> Option<String> {
        match self.kind {
            StreamBlockKind::Verbatim => self.verbatim_wire(),
            StreamBlockKind::Text => self.text_wire(),
            StreamBlockKind::Reasoning => self.reasoning_wire(),
            StreamBlockKind::ToolCall(_) if !self.assemble_call(complete).executable => None,
            StreamBlockKind::ServerCall | StreamBlockKind::ServerResult if !self.closed => None,
            StreamBlockKind::ToolCall(_) | StreamBlockKind::ServerCall => {
                let input = self.input_object()?;
                Some(self.with_members(TOOL_USE, ("input", &input)))
            }
            StreamBlockKind::ServerResult => Some(self.with_members(TOOL_RESULT, ("content", &list_of(&self.items)))),
        }
    }

    /// Writes a block that is kept as it arrived. The source of an image arrives after its start; without one the image
    /// is left out, since a request cannot have it.
    fn verbatim_wire(&self) -> Option<String> {
        let whole = self.whole.as_deref()?;
        let parsed = JsonRef::parse(whole).unwrap_or_default();
        let Some(image) = parsed.find(IMAGE) else { return Some(whole.to_owned()) };
        if image.find("source").is_some() {
            return Some(whole.to_owned());
        }
        let source = joined_sources(&self.items)?;
        let mut out = String::new();
        let mut block = ObjectWriter::new(&mut out);
        block.object(IMAGE, |inner| {
            for (key, value) in image.entries().filter_map(|(key, value)| Some((key.as_text()?, value))) {
                inner.json(&key, value);
            }
            inner.raw("source", &source);
        });
        block.end();
        Some(out)
    }

    /// Writes a text; one with sources as a list of texts and sources.
    fn text_wire(&self) -> Option<String> {
        let text = self.text.to_str();
        if text.decode().trim().is_empty() && self.items.is_empty() {
            return None;
        }
        let mut out = String::new();
        let mut block = ObjectWriter::new(&mut out);
        if self.items.is_empty() {
            block.token(TEXT, &text);
        } else {
            block.object(CITATIONS, |inner| {
                inner.array("content", |list| list.object(|object| _ = object.token(TEXT, &text)));
                inner.list("citations", &self.items);
            });
        }
        block.end();
        Some(out)
    }

    /// Writes reasoning. Of a stream that was cut, reasoning without its signature is left out.
    fn reasoning_wire(&self) -> Option<String> {
        let mut blocks = Vec::new();
        for data in &self.redacted {
            blocks.push(format!("{{\"{REASONING}\":{{\"redactedContent\":{data}}}}}"));
        }
        let has_text = self.signature.is_some() || !self.text.is_empty();
        if has_text && (self.closed || self.signature.is_some()) {
            let mut out = String::new();
            let mut block = ObjectWriter::new(&mut out);
            block.object(REASONING, |inner| {
                inner.object("reasoningText", |inner| {
                    inner.token(TEXT, &self.text.to_str());
                    if let Some(signature) = &self.signature {
                        inner.raw("signature", signature);
                    }
                });
            });
            block.end();
            blocks.push(out);
        }
        (!blocks.is_empty()).then(|| blocks.join(","))
    }

    /// Writes a call or a result with the members of its start. Answers of Claude have a `type` on calls that requests
    /// do not have (`ToolUseType` has only `server_tool_use`).
    fn with_members(&self, kind: &str, last: (&str, &str)) -> String {
        let mut out = String::new();
        let mut block = ObjectWriter::new(&mut out);
        block.object(kind, |inner| {
            for (key, value) in self.fields.entries() {
                let is_own = key == last.0 || key == "type" && matches!(self.kind, StreamBlockKind::ToolCall(_));
                if !is_own && !value.is_vacant() {
                    value.write(inner.key_inside(key));
                }
            }
            inner.raw(last.0, last.1);
        });
        block.end();
        out
    }
}
