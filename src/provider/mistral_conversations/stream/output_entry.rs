//! One entry of an answer.

use crate::json::{Json, JsonKind, JsonRef, JsonStr, ObjectWriter, push_text};
use crate::message::PartBody;
use crate::provider::mistral_conversations::entry::{
    CALL, CALL_ID, CONFIRMATION, EXECUTION, HANDOFF, HANDOFF_MEMBERS, OUTPUT, is_type,
};
use crate::provider::openai_chat::stream::ChunkedText;
use crate::provider::stream::{
    AnswerBlock, AssembledCall, BlockBody, StreamEvent, StreamedFields, StringBuffer, inside, keep_lone_surrogates,
};

/// Members of an answer that are not part of the conversation.
const LEFT_OUT: [&str; 5] = ["object", "created_at", "completed_at", "output_index", "content_index"];

/// Members that are written anew.
const WRITTEN: [&str; 4] = ["type", "role", "content", "arguments"];

/// How an entry is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EntryForm {
    Message,
    /// A call, with its position among the calls of the answer.
    Call(u32),
    /// A call of a tool that Mistral runs.
    Execution,
    /// An entry that has no texts: a handoff, or a type that is newer than this code.
    Other,
}

/// An entry of an answer in progress.
pub(super) struct OutputEntry {
    entry_type: String,
    form: EntryForm,
    /// The members beside its texts.
    fields: StreamedFields,
    /// The content of a message.
    content: ChunkedText,
    /// The arguments of a call, if they are a text.
    arguments: StringBuffer,
    /// The arguments of a call that are an object.
    object: Option<String>,
    /// Nothing of it is missing.
    closed: bool,
    ready_emitted: bool,
}

impl OutputEntry {
    /// Creates the entry of its first event, without the texts of the event. `calls` is the number of calls before it.
    pub fn begun(entry_type: &str, data: JsonRef<'_>, calls: u32) -> Self {
        let form = match entry_type {
            OUTPUT => EntryForm::Message,
            CALL => EntryForm::Call(calls),
            EXECUTION => EntryForm::Execution,
            _ => EntryForm::Other,
        };
        let mut entry = Self {
            entry_type: entry_type.to_owned(),
            form,
            fields: StreamedFields::default(),
            content: ChunkedText::default(),
            arguments: StringBuffer::default(),
            object: None,
            closed: false,
            ready_emitted: false,
        };
        entry.read_fields(data);
        entry
    }

    /// Reads the texts of an entry of a whole response.
    pub fn read_whole(&mut self, data: JsonRef<'_>, out: &mut Vec<StreamEvent>) {
        match data.get("content").filter(|_| self.form == EntryForm::Message) {
            Some(list) if list.kind() == JsonKind::Array => {
                for chunk in list.items() {
                    self.append_content(chunk, out);
                }
            }
            Some(content) => _ = self.append_content(content, out),
            None => {}
        }
        self.append_arguments(data);
        self.emit(out);
        self.mark_done();
    }

    pub fn is_of(&self, entry_type: &str) -> bool {
        self.entry_type == entry_type
    }

    pub fn entry_type(&self) -> &str {
        &self.entry_type
    }

    /// Returns true if a member has this value, or none yet.
    pub fn names(&self, member: &str, value: &str) -> bool {
        self.fields.get(member).is_none() || self.fields.decoded(member) == value
    }

    pub fn is_call(&self) -> bool {
        matches!(self.form, EntryForm::Call(_))
    }

    /// Reads the members beside the texts. An event has those of its entry, and its own.
    pub fn read_fields(&mut self, data: JsonRef<'_>) {
        for (key, value) in data.entries().filter(|(_, value)| !value.is_null()) {
            let name = inside(key).unwrap_or_default();
            let is_written = name == "type" || self.form != EntryForm::Other && WRITTEN.contains(&name);
            if is_written || LEFT_OUT.contains(&name) {
                continue;
            }
            // Each event has the whole list.
            if value.kind() == JsonKind::Array {
                self.fields.set(key, value);
            } else {
                self.fields.merge(key, value, false);
            }
        }
    }

    /// Emits the start of a call.
    pub fn emit_start(&self, out: &mut Vec<StreamEvent>) {
        if let Some(index) = self.call_index() {
            out.push(StreamEvent::CallStarted { index, call_id: self.call_id(), name: self.fields.decoded("name") });
        }
    }

    /// Returns the position of a call among those of the answer. Mistral itself runs a call with a confirmation: it
    /// waits for `tool_confirmations`, and never for a result.
    fn call_index(&self) -> Option<u32> {
        match self.form {
            EntryForm::Call(index) if !self.needs_confirmation() => Some(index),
            _ => None,
        }
    }

    fn needs_confirmation(&self) -> bool {
        self.fields.get(CONFIRMATION).is_some()
    }

    fn call_id(&self) -> String {
        self.fields.decoded(CALL_ID)
    }

    /// Applies an event. Returns the fragment that it appended to a string.
    pub fn extend<'a>(&mut self, data: JsonRef<'a>, out: &mut Vec<StreamEvent>) -> Option<&'a str> {
        let fragment = match data.get("content").filter(|_| self.form == EntryForm::Message) {
            Some(content) => self.append_content(content, out),
            None => self.append_arguments(data),
        };
        self.emit(out);
        fragment
    }

    /// Appends a fragment to the string that the last event extended.
    pub fn append_fragment(&mut self, fragment: &str, out: &mut Vec<StreamEvent>) {
        match self.form {
            EntryForm::Message => self.content.append(fragment),
            _ => self.arguments.append(fragment),
        }
        self.emit(out);
    }

    /// Appends a chunk of the content, or a text. Returns the text.
    fn append_content<'a>(&mut self, content: JsonRef<'a>, out: &mut Vec<StreamEvent>) -> Option<&'a str> {
        let is_plain_text = content.has_text("type", "text") && content.entries().count() == 2;
        let text = inside(content).or_else(|| content.get("text").filter(|_| is_plain_text).and_then(inside));
        if let Some(text) = text {
            self.content.append(text);
            return Some(text);
        }
        if content.has_text("type", "thinking") {
            self.emit(out);
            if let Some(text) = self.content.apply_thinking(content) {
                text.emit(StreamEvent::ReasoningDelta, out);
            }
        } else if content.is_object() {
            self.content.push_other(content);
        }
        None
    }

    /// Appends the arguments of a call. Returns them if they are a text.
    fn append_arguments<'a>(&mut self, data: JsonRef<'a>) -> Option<&'a str> {
        let arguments = data.find("arguments")?;
        match inside(arguments) {
            Some(text) => {
                self.arguments.append(text);
                Some(text)
            }
            None => {
                self.object = Some(arguments.as_raw().to_owned());
                None
            }
        }
    }

    /// Emits what arrived since the last call.
    fn emit(&mut self, out: &mut Vec<StreamEvent>) {
        self.content.text.emit(StreamEvent::TextDelta, out);
        if let Some(index) = self.call_index() {
            let call_id = self.call_id();
            self.arguments.emit_arguments(index, &call_id, out);
        }
    }

    /// Marks an entry as complete whose own end arrived.
    pub fn mark_done(&mut self) {
        self.closed = true;
    }

    /// Ends the entry with the answer. A call has no end of its own: this one completes it, and emits it, once.
    pub fn end(&mut self, out: &mut Vec<StreamEvent>) {
        self.closed |= self.is_call();
        if let (Some(index), false) = (self.call_index(), self.ready_emitted)
            && let Some(call) = self.assemble_call(false)
        {
            self.ready_emitted = true;
            out.push(StreamEvent::CallReady { index, call });
        }
    }

    /// Returns the text of the answer, as the content of a string token.
    pub fn text(&self) -> &str {
        self.content.text.inside()
    }

    /// Returns the JSON text of the arguments. A lone surrogate is kept as its escape, since a Rust string cannot hold
    /// it.
    fn arguments_text(&self) -> String {
        match &self.object {
            Some(object) => object.clone(),
            None => JsonStr::from_inside(&keep_lone_surrogates(self.arguments.inside())).decode().into_owned(),
        }
    }

    /// Returns the JSON text of the arguments if it is an object; `{}` if it is empty.
    fn arguments_object(&self) -> Option<String> {
        let text = self.arguments_text();
        if text.trim().is_empty() {
            return Some("{}".to_owned());
        }
        JsonRef::parse(&text).is_ok_and(JsonRef::is_object).then_some(text)
    }

    /// Returns the entry as a call that the application runs, if it is one. `complete`: the answer ended normally, so
    /// that its calls may run.
    pub fn assemble_call(&self, complete: bool) -> Option<AssembledCall> {
        self.call_index()?;
        let arguments = self.arguments_object();
        let name = self.fields.decoded("name");
        Some(AssembledCall {
            executable: complete && self.closed && arguments.is_some() && !name.is_empty(),
            call_id: self.call_id(),
            name,
            arguments: JsonStr::new(&arguments.unwrap_or_else(|| self.arguments_text())),
        })
    }

    /// Visits the parts that an application sees. `key` is that of the first one.
    pub fn visit(&self, key: u64, visit: &mut dyn FnMut(AnswerBlock<'_>)) {
        self.content.visit(key, visit);
        if self.is_opaque() && self.is_complete() {
            let wire = self.to_wire(true).map_or_else(Json::null, Json::trusted);
            visit(AnswerBlock::new(key, BlockBody::Other(&|| PartBody::Opaque(wire.clone()))));
        }
    }

    /// Returns true if the entry has no neutral form.
    fn is_opaque(&self) -> bool {
        self.form != EntryForm::Message && self.call_index().is_none()
    }

    /// Returns true if an entry without a neutral form has all that a request must have of it.
    fn is_complete(&self) -> bool {
        let has = |name: &str| !self.fields.decoded(name).is_empty();
        self.closed
            && match self.form {
                EntryForm::Call(_) => has(CALL_ID) && has("name"),
                EntryForm::Execution => has("name") || has("function"),
                _ if self.entry_type != HANDOFF => is_type(&self.entry_type),
                _ => HANDOFF_MEMBERS.iter().all(|name| has(name)),
            }
    }

    /// Returns the entry's JSON for the next request; `None` if it has nothing that a request may have. `complete` as in
    /// [`assemble_call`](Self::assemble_call).
    pub fn to_wire(&self, complete: bool) -> Option<String> {
        let is_sent = match self.assemble_call(complete) {
            Some(call) => call.executable,
            None if self.form == EntryForm::Message => !self.content.text.is_empty() || !self.content.is_plain(),
            None => self.is_complete(),
        };
        if !is_sent {
            return None;
        }
        let mut out = String::new();
        let mut object = ObjectWriter::new(&mut out);
        object.text("type", &self.entry_type);
        self.fields.write(&mut object);
        match self.form {
            EntryForm::Message => self.write_content(object.text("role", "assistant")),
            EntryForm::Call(_) | EntryForm::Execution => self.write_arguments(object.key("arguments")),
            EntryForm::Other => {}
        }
        object.end();
        Some(out)
    }

    /// Writes the arguments. Those of an execution are a text.
    fn write_arguments(&self, out: &mut String) {
        match &self.object {
            Some(value) if self.form != EntryForm::Execution => out.push_str(value),
            _ => push_text(out, &self.arguments_object().unwrap_or_else(|| self.arguments_text())),
        }
    }

    /// Writes the content: a text, or a list of chunks.
    fn write_content(&self, object: &mut ObjectWriter<'_>) {
        if self.content.is_plain() {
            object.token("content", &self.content.text.to_str());
        } else {
            self.content.write(object.key("content"));
        }
    }
}
