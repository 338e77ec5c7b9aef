//! One step of an interaction in progress.

use crate::json::{Json, JsonRef, JsonStr, ObjectWriter};
use crate::message::PartBody;
use crate::provider::gemini_interactions::media::decode_content;
use crate::provider::gemini_interactions::step::{
    CONTENT_TYPES, FUNCTION_CALL, FUNCTION_RESULT, MODEL_OUTPUT, SIGNATURE, StepKind, THOUGHT,
};
use crate::provider::stream::{
    AnswerBlock, AssembledCall, BlockBody, StreamEvent, StreamedFields, StringBuffer, WireError, inside,
    keep_lone_surrogates, read_error,
};

/// What the assembler does with a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StreamStepKind {
    ModelOutput,
    Thought,
    /// A call of the application's tool, with its position among the calls of the answer.
    Call(u32),
    /// A step of Google's own tools, or of an unknown type.
    Other,
}

/// An entry of `content` or `summary`.
struct StreamContent {
    /// Its members; a text arrives in fragments.
    fields: StreamedFields,
    /// A text, to which the next delta may append.
    is_text: bool,
    /// Its JSON, if it is no text.
    whole: String,
}

impl StreamContent {
    fn read(content: JsonRef<'_>) -> Self {
        let is_text = content.has_text("type", "text") && content.get("text").is_none_or(|text| inside(text).is_some());
        let whole = if is_text { String::new() } else { content.as_raw().to_owned() };
        Self { fields: StreamedFields::read(content), is_text, whole }
    }

    fn text(&self) -> Option<&StringBuffer> {
        self.fields.text("text").filter(|_| self.is_text)
    }

    /// Emits the text that arrived since the last call.
    fn emit(&mut self, event: fn(JsonStr) -> StreamEvent, out: &mut Vec<StreamEvent>) {
        if let Some(text) = self.fields.text_mut("text").filter(|_| self.is_text) {
            text.emit(event, out);
        }
    }

    fn to_json(&self) -> String {
        if !self.is_text {
            return self.whole.clone();
        }
        let mut out = String::new();
        let mut object = ObjectWriter::new(&mut out);
        self.fields.write(&mut object);
        object.end();
        out
    }
}

/// A step of an interaction in progress.
pub(super) struct StreamStep {
    /// The `index` of its events.
    pub index: Option<u64>,
    kind: StreamStepKind,
    /// The members of the step but its list and its arguments.
    fields: StreamedFields,
    contents: Vec<StreamContent>,
    /// The JSON text of the arguments of a call, as it arrives.
    arguments: StringBuffer,
    /// The JSON of the arguments that arrived in one piece.
    whole_arguments: Option<String>,
    /// A fragment of the arguments could not be read.
    has_lost_arguments: bool,
    closed: bool,
    /// `StreamEvent::CallReady` was emitted.
    is_ready: bool,
}

impl StreamStep {
    /// Creates a step, from its start or as a whole. `call_count` is the number of calls before it. A content in place
    /// of a step is the older form.
    pub fn new(index: Option<u64>, step: JsonRef<'_>, call_count: u32) -> Self {
        let kind = match StepKind::of(step) {
            StepKind::ModelOutput | StepKind::Content => StreamStepKind::ModelOutput,
            StepKind::Thought => StreamStepKind::Thought,
            StepKind::FunctionCall => StreamStepKind::Call(call_count),
            _ => StreamStepKind::Other,
        };
        let mut new = Self {
            index,
            kind,
            fields: StreamedFields::default(),
            contents: Vec::new(),
            arguments: StringBuffer::default(),
            whole_arguments: None,
            has_lost_arguments: false,
            closed: false,
            is_ready: false,
        };
        if StepKind::of(step) == StepKind::Content {
            new.contents.push(StreamContent::read(step));
            return new;
        }
        for (key, value) in step.entries() {
            match (inside(key).unwrap_or_default(), new.kind) {
                ("type", StreamStepKind::ModelOutput | StreamStepKind::Thought | StreamStepKind::Call(_)) => {}
                ("content", StreamStepKind::ModelOutput) | ("summary", StreamStepKind::Thought) => {
                    // One content may stand in place of a list.
                    let single = Some(value).filter(|value| value.is_object());
                    let contents = single.into_iter().chain(value.items()).filter(|it| it.is_object());
                    new.contents = contents.map(StreamContent::read).collect();
                }
                ("arguments", StreamStepKind::Call(_)) => new.set_arguments(value),
                // Recorded streams begin calls with an empty one.
                (SIGNATURE, _) if value.is_text("") => {}
                _ => new.fields.set(key, value),
            }
        }
        new
    }

    /// Creates the step that a delta begins, without applying it; none for one whose step is unknown.
    pub fn of_delta(index: Option<u64>, delta: JsonRef<'_>, call_count: u32) -> Option<Self> {
        let delta_type = delta.text("type")?;
        let step_type = match delta_type.as_ref() {
            "thought_summary" | "thought_signature" => THOUGHT,
            FUNCTION_CALL => FUNCTION_CALL,
            content if CONTENT_TYPES.contains(&content) => MODEL_OUTPUT,
            _ => return None,
        };
        let step = ObjectWriter::build(|step| _ = step.text("type", step_type));
        Some(Self::new(index, step.view(), call_count))
    }

    pub fn is_call(&self) -> bool {
        matches!(self.kind, StreamStepKind::Call(_))
    }

    /// Returns the error of the step.
    pub fn error(&self) -> Option<WireError> {
        let mut error = String::new();
        self.fields.get("error")?.write(&mut error);
        JsonRef::parse(&error).ok().filter(|error| !error.is_null()).and_then(read_error)
    }

    /// Returns the id that a call and its result share; none for another step.
    pub fn pairing_id(&self) -> Option<String> {
        let id = match self.kind {
            StreamStepKind::Call(_) => self.call_id(),
            StreamStepKind::Other if self.fields.decoded("type") == FUNCTION_RESULT => self.fields.decoded("call_id"),
            _ => return None,
        };
        Some(id).filter(|id| !id.is_empty())
    }

    /// Sets the arguments that came in one piece. Those of a start, `{}`, are a placeholder if deltas follow.
    fn set_arguments(&mut self, value: JsonRef<'_>) {
        match inside(value) {
            Some(text) => self.arguments = StringBuffer::new(text),
            None if value.is_null() => {}
            None => self.whole_arguments = Some(value.as_raw().to_owned()),
        }
    }

    /// Emits the start of a call, and the text that the step contains already.
    pub fn emit_start(&mut self, out: &mut Vec<StreamEvent>) {
        if let StreamStepKind::Call(index) = self.kind {
            out.push(StreamEvent::CallStarted { index, call_id: self.call_id(), name: self.fields.decoded("name") });
            return self.emit_new_text(out);
        }
        let event = self.text_event();
        for content in &mut self.contents {
            content.emit(event, out);
        }
    }

    /// Returns what the texts of the step are emitted as.
    fn text_event(&self) -> fn(JsonStr) -> StreamEvent {
        if self.kind == StreamStepKind::Thought { StreamEvent::ReasoningDelta } else { StreamEvent::TextDelta }
    }

    fn call_id(&self) -> String {
        self.fields.decoded("id")
    }

    /// Appends a fragment to the string that most deltas of the step extend.
    pub fn append_fragment(&mut self, fragment: &str) {
        let text = match self.kind {
            StreamStepKind::Call(_) => Some(&mut self.arguments),
            _ => self.contents.last_mut().and_then(|content| content.fields.text_mut("text")),
        };
        if let Some(text) = text {
            text.append(fragment);
        }
    }

    /// Applies a delta. Returns the fragment if appending it to the step's string was its only effect.
    pub fn apply_delta<'a>(&mut self, delta: JsonRef<'a>) -> Option<&'a str> {
        let delta_type = delta.text("type").unwrap_or_default();
        match (delta_type.as_ref(), self.kind) {
            ("text", StreamStepKind::ModelOutput) => self.append_content(delta),
            ("thought_summary", StreamStepKind::Thought) => {
                self.append_content(delta.get("content").unwrap_or_default());
                None
            }
            // The second is that of streams before 2026-06-08.
            ("text_annotation_delta" | "text_annotation", StreamStepKind::ModelOutput) => {
                self.annotate(delta.get("annotations").unwrap_or_default());
                None
            }
            ("arguments_delta", StreamStepKind::Call(_)) => self.append_arguments(delta),
            (content, StreamStepKind::ModelOutput) if CONTENT_TYPES.contains(&content) => {
                self.contents.push(StreamContent::read(delta));
                None
            }
            _ => {
                self.merge(delta);
                None
            }
        }
    }

    /// Appends a fragment of the arguments: `arguments`, or `partial_arguments` in Google's SDK for Python. A call of which
    /// a fragment cannot be read may not run: the rest is not what the model wrote.
    fn append_arguments<'a>(&mut self, delta: JsonRef<'a>) -> Option<&'a str> {
        let value = delta.find("arguments").or_else(|| delta.find("partial_arguments"));
        if let Some(fragment) = value.and_then(inside) {
            self.arguments.append(fragment);
            return Some(fragment);
        }
        match value.filter(|value| value.is_object()) {
            Some(whole) => self.set_arguments(whole),
            None => self.has_lost_arguments = true,
        }
        None
    }

    /// Appends a text to the last one, or adds a content.
    fn append_content<'a>(&mut self, content: JsonRef<'a>) -> Option<&'a str> {
        if !content.is_object() {
            return None;
        }
        let is_text = content.has_text("type", "text");
        let fragment = content.get("text").and_then(inside);
        match (self.contents.last_mut().filter(|last| last.is_text && is_text), fragment) {
            (Some(last), Some(fragment)) => {
                match last.fields.text_mut("text") {
                    Some(text) => text.append(fragment),
                    None => last.fields = StreamedFields::read(content),
                }
                for annotation in content.get("annotations").unwrap_or_default().items() {
                    last.fields.push_item("annotations", annotation);
                }
                Some(fragment).filter(|_| content.entries().count() == 2)
            }
            _ => {
                self.contents.push(StreamContent::read(content));
                None
            }
        }
    }

    fn annotate(&mut self, annotations: JsonRef<'_>) {
        if let Some(last) = self.contents.last_mut().filter(|last| last.is_text) {
            annotations.items().for_each(|annotation| last.fields.push_item("annotations", annotation));
        }
    }

    /// Takes the members of a delta that the step has: a signature, the arguments or the result of a server's tool, a
    /// call in one piece. A member that a known step does not have would be rejected in the next request.
    fn merge(&mut self, delta: JsonRef<'_>) {
        for (key, value) in delta.entries() {
            match (inside(key).unwrap_or_default(), self.kind) {
                ("type", _) | (_, StreamStepKind::ModelOutput) => {}
                ("arguments", StreamStepKind::Call(_)) => self.set_arguments(value),
                (SIGNATURE, _) if value.is_text("") => {}
                (SIGNATURE, _) | (_, StreamStepKind::Other) | ("id" | "name", StreamStepKind::Call(_)) => {
                    self.fields.merge(key, value, false);
                }
                _ => {}
            }
        }
    }

    /// Emits the text that arrived since the last call. Only the last content grows.
    pub fn emit_new_text(&mut self, out: &mut Vec<StreamEvent>) {
        if let StreamStepKind::Call(index) = self.kind {
            let id = self.call_id();
            return self.arguments.emit_arguments(index, &id, out);
        }
        let event = self.text_event();
        if let Some(content) = self.contents.last_mut() {
            content.emit(event, out);
        }
    }

    /// Ends the step.
    pub fn close(&mut self, out: &mut Vec<StreamEvent>) {
        self.closed = true;
        let StreamStepKind::Call(index) = self.kind else { return };
        if std::mem::replace(&mut self.is_ready, true) {
            return;
        }
        if self.arguments.is_empty() {
            self.arguments.replace(self.whole_arguments.as_deref().unwrap_or("{}"));
            self.emit_new_text(out);
        }
        out.push(StreamEvent::CallReady { index, call: self.to_call(true) });
    }

    /// Returns the JSON text of the arguments.
    fn arguments_text(&self) -> String {
        if self.arguments.is_empty() {
            return self.whole_arguments.clone().unwrap_or_else(|| "{}".into());
        }
        JsonStr::from_inside(&keep_lone_surrogates(self.arguments.inside())).decode().into_owned()
    }

    fn to_call(&self, is_complete: bool) -> AssembledCall {
        let arguments = self.arguments_text();
        let name = self.fields.decoded("name");
        let is_object = JsonRef::parse(&arguments).is_ok_and(JsonRef::is_object);
        let executable = is_complete && self.closed && is_object && !self.has_lost_arguments && !name.is_empty();
        AssembledCall { call_id: self.call_id(), name, arguments: JsonStr::new(&arguments), executable }
    }

    /// Returns the call that the step is.
    pub fn assemble_call(&self, is_complete: bool) -> Option<AssembledCall> {
        self.is_call().then(|| self.to_call(is_complete))
    }

    /// Appends the visible text.
    pub fn push_text(&self, out: &mut String) {
        if self.kind == StreamStepKind::ModelOutput {
            self.contents.iter().filter_map(StreamContent::text).for_each(|text| out.push_str(text.inside()));
        }
    }

    /// Visits the blocks of the step. Keys begin at `key`.
    pub fn visit(&self, key: u64, visit: &mut dyn FnMut(AnswerBlock<'_>)) {
        for (key, content) in (key..).zip(&self.contents) {
            match (content.text().map(StringBuffer::inside), self.kind) {
                (Some(text), StreamStepKind::Thought) => visit(AnswerBlock::new(key, BlockBody::Reasoning(text))),
                (Some(text), _) => visit(AnswerBlock::new(key, BlockBody::Text(text))),
                (None, StreamStepKind::ModelOutput) => {
                    visit(AnswerBlock::new(key, BlockBody::Other(&|| body_of(&content.whole, true))));
                }
                _ => {}
            }
        }
        if self.kind == StreamStepKind::Other {
            visit(AnswerBlock::new(key, BlockBody::Other(&|| body_of(&self.to_json(), false))));
        }
    }

    /// Returns true if the step is a part of the next request. A call that may not run is not, nor a step of nothing.
    pub fn is_sent(&self, is_complete: bool) -> bool {
        match self.kind {
            StreamStepKind::Call(_) => self.to_call(is_complete).executable,
            StreamStepKind::ModelOutput => {
                self.contents.iter().any(|content| content.text().is_none_or(|text| !text.is_empty()))
            }
            // Without its signature, a thought is only its summary, which the service does not read.
            StreamStepKind::Thought => self.fields.text(SIGNATURE).is_some_and(|signature| !signature.is_empty()),
            StreamStepKind::Other => is_complete || self.closed,
        }
    }

    /// Writes the step.
    pub fn write(&self, out: &mut String) {
        let mut step = ObjectWriter::new(out);
        let contents = || self.contents.iter().map(StreamContent::to_json).collect::<Vec<_>>();
        match self.kind {
            StreamStepKind::ModelOutput => {
                step.text("type", MODEL_OUTPUT);
                self.fields.write(&mut step);
                step.list("content", &contents());
            }
            StreamStepKind::Thought => {
                step.text("type", THOUGHT);
                self.fields.write(&mut step);
                if !self.contents.is_empty() {
                    step.list("summary", &contents());
                }
            }
            StreamStepKind::Call(_) => {
                step.text("type", FUNCTION_CALL);
                self.fields.write(&mut step);
                step.raw("arguments", self.arguments_text().trim());
            }
            StreamStepKind::Other => self.fields.write(&mut step),
        }
        step.end();
    }

    fn to_json(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }
}

/// Returns the body of the part that a content, or a step, becomes.
fn body_of(json: &str, is_content: bool) -> PartBody {
    match JsonRef::parse(json) {
        Ok(content) if is_content => decode_content(content).body,
        _ => PartBody::Opaque(Json::trusted(json.to_owned())),
    }
}
