//! One entry of an answer.

use crate::json::{ArrayWriter, Json, JsonKind, JsonRef, JsonStr, ObjectWriter, push_text};
use crate::provider::mistral_conversations::decode::decode_block;
use crate::provider::mistral_conversations::entry::{CALL, CALL_ID, EXECUTION, OUTPUT, thinking_texts};
use crate::provider::stream::{
    AnswerBlock, AssembledCall, BlockBody, StreamEvent, StreamedFields, StringBuffer, inside, keep_lone_surrogates,
};

/// Members that an answer has and that tell nothing of the conversation, and those that are written anew.
const LEFT_OUT: [&str; 9] =
    ["object", "type", "created_at", "completed_at", "output_index", "content_index", "role", "content", "arguments"];

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

/// A chunk of a message.
enum Chunk {
    Text(StringBuffer),
    Thinking(StringBuffer),
    /// As it arrived.
    Whole(String),
}

/// An entry of an answer in progress.
pub(super) struct OutputEntry {
    kind: String,
    form: EntryForm,
    /// The members beside its texts.
    fields: StreamedFields,
    /// The chunks of a message, each with its `content_index`.
    chunks: Vec<(u64, Chunk)>,
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
    pub fn begun(kind: &str, data: JsonRef<'_>, calls: u32) -> Self {
        let form = match kind {
            OUTPUT => EntryForm::Message,
            CALL => EntryForm::Call(calls),
            EXECUTION => EntryForm::Execution,
            _ => EntryForm::Other,
        };
        let mut entry = Self {
            kind: kind.to_owned(),
            form,
            fields: StreamedFields::default(),
            chunks: Vec::new(),
            arguments: StringBuffer::default(),
            object: None,
            closed: false,
            ready_emitted: false,
        };
        entry.read_fields(data);
        entry
    }

    /// Creates an entry of a whole response.
    pub fn whole(data: JsonRef<'_>, calls: u32) -> Self {
        // A message is the only entry that a server may leave without its type.
        let kind = data.text("type").unwrap_or(OUTPUT.into());
        let mut entry = Self::begun(&kind, data, calls);
        match data.get("content") {
            Some(list) if list.kind() == JsonKind::Array => {
                for (index, chunk) in (0..).zip(list.items()) {
                    entry.append_chunk(index, chunk);
                }
            }
            Some(content) => _ = entry.append_chunk(0, content),
            None => {}
        }
        entry.append_arguments(data);
        entry
    }

    pub fn is_of(&self, kind: &str) -> bool {
        self.kind == kind
    }

    pub fn is_call(&self) -> bool {
        matches!(self.form, EntryForm::Call(_))
    }

    /// Reads the members beside the texts. An event has those of its entry, and its own.
    fn read_fields(&mut self, data: JsonRef<'_>) {
        for (key, value) in data.entries().filter(|(_, value)| !value.is_null()) {
            if !LEFT_OUT.contains(&inside(key).unwrap_or_default()) {
                self.fields.merge(key, value, false);
            }
        }
    }

    /// Emits the start of a call, and the texts that the entry has already.
    pub fn emit_start(&mut self, out: &mut Vec<StreamEvent>) {
        if let EntryForm::Call(index) = self.form {
            out.push(StreamEvent::CallStarted { index, call_id: self.call_id(), name: self.fields.decoded("name") });
        }
        self.emit(out);
    }

    fn call_id(&self) -> String {
        self.fields.decoded(CALL_ID)
    }

    /// Applies an event. Returns the fragment that it appended to a string.
    pub fn extend<'a>(&mut self, data: JsonRef<'a>, out: &mut Vec<StreamEvent>) -> Option<&'a str> {
        self.read_fields(data);
        let index = data.get("content_index").and_then(JsonRef::as_u64).unwrap_or(0);
        let fragment = match data.get("content").filter(|_| self.form == EntryForm::Message) {
            Some(content) => self.append_chunk(index, content),
            None => self.append_arguments(data),
        };
        self.emit(out);
        fragment
    }

    /// Appends a fragment to the string that the last event extended.
    pub fn append_fragment(&mut self, fragment: &str, out: &mut Vec<StreamEvent>) {
        match self.chunks.last_mut() {
            Some((_, Chunk::Text(text) | Chunk::Thinking(text))) => text.append(fragment),
            _ => self.arguments.append(fragment),
        }
        self.emit(out);
    }

    /// Appends a chunk of the content, or a text. Returns the fragment that extended a text that is there.
    fn append_chunk<'a>(&mut self, index: u64, content: JsonRef<'a>) -> Option<&'a str> {
        let is_here = self.chunks.last().is_some_and(|(last, _)| *last == index);
        let last = self.chunks.last_mut().map(|(_, chunk)| chunk).filter(|_| is_here);
        let is_plain_text = content.has_text("type", "text") && content.entries().count() == 2;
        let text = inside(content).or_else(|| content.get("text").filter(|_| is_plain_text).and_then(inside));
        if let Some(text) = text {
            if let Some(Chunk::Text(own)) = last {
                own.append(text);
                return Some(text);
            }
            self.chunks.push((index, Chunk::Text(StringBuffer::new(text))));
            return None;
        }
        match thinking_texts(content).filter(|_| content.entries().count() == 2) {
            Some(texts) => {
                let joined: String = texts.into_iter().filter_map(inside).collect();
                match last {
                    Some(Chunk::Thinking(own)) => own.append(&joined),
                    _ => self.chunks.push((index, Chunk::Thinking(StringBuffer::new(&joined)))),
                }
            }
            None if content.is_object() => self.chunks.push((index, Chunk::Whole(content.as_raw().to_owned()))),
            None => {}
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
        for (_, chunk) in &mut self.chunks {
            match chunk {
                Chunk::Text(text) => text.emit(StreamEvent::TextDelta, out),
                Chunk::Thinking(text) => text.emit(StreamEvent::ReasoningDelta, out),
                Chunk::Whole(_) => {}
            }
        }
        if let EntryForm::Call(index) = self.form {
            let call_id = self.call_id();
            self.arguments.emit_arguments(index, &call_id, out);
        }
    }

    /// Marks the entry as complete and emits its call, once.
    pub fn close(&mut self, out: &mut Vec<StreamEvent>) {
        self.closed = true;
        if let (EntryForm::Call(index), false) = (self.form, self.ready_emitted)
            && let Some(call) = self.assemble_call(false)
        {
            self.ready_emitted = true;
            out.push(StreamEvent::CallReady { index, call });
        }
    }

    /// Returns the texts of the answer, as the contents of string tokens.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.chunks.iter().filter_map(|(_, chunk)| match chunk {
            Chunk::Text(text) => Some(text.inside()),
            _ => None,
        })
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

    /// Returns the entry as a call, if it is one. `complete`: the answer ended normally, so that its calls may run.
    pub fn assemble_call(&self, complete: bool) -> Option<AssembledCall> {
        if !self.is_call() {
            return None;
        }
        let arguments = self.arguments_object();
        let name = self.fields.decoded("name");
        Some(AssembledCall {
            executable: complete && self.closed && arguments.is_some() && !name.is_empty(),
            call_id: self.call_id(),
            name,
            arguments: JsonStr::new(&arguments.unwrap_or_else(|| self.arguments_text())),
        })
    }

    /// Visits the chunks that an application sees. `key` is that of the first one.
    pub fn visit(&self, key: u64, visit: &mut dyn FnMut(AnswerBlock<'_>)) {
        for (key, (_, chunk)) in (key..).zip(&self.chunks) {
            match chunk {
                Chunk::Text(text) if !text.is_empty() => visit(AnswerBlock::new(key, BlockBody::Text(text.inside()))),
                Chunk::Thinking(text) if !text.is_empty() => {
                    visit(AnswerBlock::new(key, BlockBody::Reasoning(text.inside())));
                }
                Chunk::Text(_) | Chunk::Thinking(_) => {}
                Chunk::Whole(chunk) => {
                    let decode = || decode_block(JsonRef::parse(chunk).unwrap_or_default()).body;
                    visit(AnswerBlock::new(key, BlockBody::Other(&decode)));
                }
            }
        }
        if self.closed && matches!(self.form, EntryForm::Execution | EntryForm::Other) {
            let wire = self.to_wire(true).map_or_else(Json::null, Json::trusted);
            let decode = || crate::message::PartBody::Opaque(wire.clone());
            visit(AnswerBlock::new(key, BlockBody::Other(&decode)));
        }
    }

    /// Returns the entry's JSON for the next request; `None` if it has nothing that a request may have. `complete` as in
    /// [`assemble_call`](Self::assemble_call).
    pub fn to_wire(&self, complete: bool) -> Option<String> {
        match self.form {
            EntryForm::Message if !self.has_content() => return None,
            EntryForm::Call(_) if !self.assemble_call(complete).is_some_and(|call| call.executable) => return None,
            EntryForm::Execution | EntryForm::Other if !self.closed => return None,
            _ => {}
        }
        let mut out = String::new();
        let mut object = ObjectWriter::new(&mut out);
        object.text("type", &self.kind);
        self.fields.write(&mut object);
        match self.form {
            EntryForm::Message => self.write_content(object.text("role", "assistant")),
            EntryForm::Call(_) | EntryForm::Execution => {
                let arguments = object.key("arguments");
                match &self.object {
                    Some(value) => arguments.push_str(value),
                    None => push_text(arguments, &self.arguments_object().unwrap_or_else(|| self.arguments_text())),
                }
            }
            EntryForm::Other => {}
        }
        object.end();
        Some(out)
    }

    fn has_content(&self) -> bool {
        self.chunks.iter().any(|(_, chunk)| match chunk {
            Chunk::Text(text) | Chunk::Thinking(text) => !text.is_empty(),
            Chunk::Whole(_) => true,
        })
    }

    /// Writes the content: a text, or a list of chunks.
    fn write_content(&self, object: &mut ObjectWriter<'_>) {
        if let [(_, Chunk::Text(text))] = self.chunks.as_slice() {
            object.token("content", &text.to_str());
            return;
        }
        object.array("content", |list| {
            for (_, chunk) in &self.chunks {
                write_chunk(list, chunk);
            }
        });
    }
}

fn write_chunk(list: &mut ArrayWriter<'_>, chunk: &Chunk) {
    match chunk {
        Chunk::Text(text) if !text.is_empty() => {
            list.object(|out| _ = out.text("type", "text").token("text", &text.to_str()));
        }
        Chunk::Thinking(text) if !text.is_empty() => list.object(|out| {
            out.text("type", "thinking").array("thinking", |texts| {
                texts.object(|out| _ = out.text("type", "text").token("text", &text.to_str()));
            });
        }),
        Chunk::Text(_) | Chunk::Thinking(_) => {}
        Chunk::Whole(chunk) => list.item().push_str(chunk),
    }
}
