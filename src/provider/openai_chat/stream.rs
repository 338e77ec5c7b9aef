//! Assembles a Chat Completions response, streamed or whole, as OpenAI and the many compatible servers send it.

mod content;
mod object_end;
mod reasoning;
mod streamed_calls;
mod usage;

use crate::json::{ArrayWriter, Json, JsonRef, ObjectWriter};
use crate::message::Usage;
use crate::provider::stream::{
    AnswerBlock, AnswerReader, AnswerStatus, Assembled, BlockBody, MetaMembers, ResponseMeta, StreamEvent,
    StreamedFields, StreamedValue, StringBuffer, WireError, inside, malformed, non_empty_text, read_error,
};
pub(crate) use content::ChunkedText;
use reasoning::{DETAILS, StreamedReasoning};
use streamed_calls::{ChatCall, ChatCalls};
use usage::read_ollama_usage;
pub(crate) use usage::read_usage;

/// The keys of the content's first block and of the refusal. Reasoning comes first.
const CONTENT_KEY: u64 = 1 << 32;
const REFUSAL_KEY: u64 = 1 << 48;

const META_MEMBERS: MetaMembers = MetaMembers { id: "id", model: "model" };

/// An answer while it is streamed.
#[derive(Default)]
pub(crate) struct ChatAssembler {
    meta: ResponseMeta,
    content: ChunkedText,
    refusal: StringBuffer,
    reasoning: StreamedReasoning,
    /// Members of the message that this file does not know. They are returned to the server.
    extra: StreamedFields,
    calls: ChatCalls,
    /// The position of the call whose arguments the last chunk appended to; none if it appended to the content.
    growing_call: Option<usize>,
    /// The response is not streamed.
    whole: bool,
    /// The JSON of `content` in a message that has calls and no text.
    empty_content: &'static str,
}

/// The members of a chunk.
#[derive(Default)]
struct ChatChunk<'a> {
    choices: Option<JsonRef<'a>>,
    /// The message of Ollama's own API: one chunk a line, `"done":true` in the last.
    message: Option<JsonRef<'a>>,
    usage: Option<Usage>,
    error: Option<JsonRef<'a>>,
    done: bool,
}

impl<'a> ChatChunk<'a> {
    fn read(chunk: JsonRef<'a>) -> Self {
        let mut members = Self::default();
        for (key, value) in chunk.entries() {
            match inside(key).unwrap_or_default() {
                "choices" => members.choices = Some(value),
                "message" => members.message = Some(value),
                "usage" => members.usage = read_usage(value).or(members.usage),
                // Groq's place for usage.
                "x_groq" => members.usage = value.get("usage").and_then(read_usage).or(members.usage),
                "error" => members.error = Some(value),
                "object" if value.is_text("error") => members.error = Some(chunk),
                "done" => members.done = value.as_bool() == Some(true),
                _ => {}
            }
        }
        members
    }
}

/// What a choice of a chunk did.
enum ChoiceResult<'a> {
    /// Nothing: it is not the first choice. Of several answers only the first is assembled.
    Ignored,
    /// It appended this fragment to one string, if it did nothing else.
    Read(Option<&'a str>),
}

impl AnswerReader for ChatAssembler {
    fn read_event<'a>(&mut self, name: &str, chunk: JsonRef<'a>, out: &mut Vec<StreamEvent>) -> Option<&'a str> {
        if self.meta.error.is_some() {
            return None;
        }
        self.chunk(name, chunk, out)
    }

    fn read_fragment(&mut self, fragment: &str, out: &mut Vec<StreamEvent>) {
        match self.growing_call {
            Some(position) => self.calls.append_arguments(position, fragment, out),
            None => {
                self.content.append(fragment);
                self.content.text.emit(StreamEvent::TextDelta, out);
            }
        }
    }

    fn read_body(&mut self, body: JsonRef<'_>) {
        self.whole = true;
        self.chunk("", body, &mut Vec::new());
        let has_choices = body.get("choices").is_some_and(|choices| choices.items().next().is_some());
        let has_answer = has_choices || body.get("message").is_some_and(JsonRef::is_object);
        if !has_answer && self.meta.error.is_none() {
            let error = body.find("message").or_else(|| body.find("detail")).and_then(|_| read_error(body));
            self.meta.set_error(error.unwrap_or_else(|| malformed("the response has no choices")));
        }
    }

    fn meta(&self) -> &ResponseMeta {
        &self.meta
    }

    fn meta_mut(&mut self) -> &mut ResponseMeta {
        &mut self.meta
    }

    fn visit_blocks(&self, visit: &mut dyn FnMut(AnswerBlock<'_>)) {
        self.reasoning.visit_texts(visit);
        self.content.visit(CONTENT_KEY, visit);
        if !self.refusal.is_empty() {
            visit(AnswerBlock::new(REFUSAL_KEY, BlockBody::Refusal(self.refusal.inside())));
        }
    }

    fn assemble(&self, stopped: bool) -> Assembled {
        let status = self.status(stopped);
        let complete = status == AnswerStatus::Complete;
        let calls = self.calls.iter().map(|call| call.assemble(complete)).collect();
        let mut answer = self.meta.assembled(status, self.content.text.inside(), calls, self.wire(complete));
        if let (AnswerStatus::Failed, None, Some(reason)) = (status, &answer.error, &answer.finish_reason) {
            let message = format!("the provider ended the response with the reason {reason}");
            answer.error = Some(WireError { code: Some(reason.clone()), message });
        }
        answer
    }
}

impl ChatAssembler {
    pub(crate) fn new(empty_content: &'static str) -> Self {
        Self { empty_content, ..Self::default() }
    }

    /// Applies a chunk. Returns the fragment that it appended to one string, if it did nothing else.
    fn chunk<'a>(&mut self, event_name: &str, chunk: JsonRef<'a>, out: &mut Vec<StreamEvent>) -> Option<&'a str> {
        let mut members = ChatChunk::read(chunk);
        if self.meta.id.is_none() || self.meta.model.is_none() {
            self.meta.set_id_and_model(chunk, &META_MEMBERS);
        }
        let mut fragment = None;
        if let Some(choices) = members.choices {
            for choice in choices.items() {
                if let ChoiceResult::Read(appended) = self.choice(choice, &mut members, out) {
                    fragment = appended;
                    break;
                }
            }
        } else if let Some(message) = members.message.filter(|message| message.is_object()) {
            _ = self.delta(message, self.whole, out);
            if members.done {
                self.finish(non_empty_text(chunk.get("done_reason")).as_deref().unwrap_or("done"), out);
                members.usage = read_ollama_usage(chunk).or(members.usage);
            }
        }
        self.meta.update_usage(members.usage, out);
        let error = members.error.or_else(|| (event_name == "error").then_some(chunk)).and_then(read_error);
        if let Some(error) = error {
            self.meta.report_error(error, out);
            return None;
        }
        fragment
    }

    /// Applies a choice. Usage and error that it holds are recorded in the `chunk`.
    fn choice<'a>(
        &mut self,
        choice: JsonRef<'a>,
        chunk: &mut ChatChunk<'a>,
        out: &mut Vec<StreamEvent>,
    ) -> ChoiceResult<'a> {
        let (mut delta, mut message, mut reason, mut usage, mut error) = (None, None, None, None, None);
        for (key, value) in choice.entries() {
            match inside(key).unwrap_or_default() {
                "index" if value.as_u64().is_some_and(|index| index > 0) => return ChoiceResult::Ignored,
                "delta" => delta = Some(value).filter(|value| value.is_object()),
                "message" => message = Some(value).filter(|value| value.is_object()),
                "finish_reason" => reason = non_empty_text(Some(value)),
                // Moonshot's place for usage.
                "usage" => usage = read_usage(value),
                "error" => error = Some(value).filter(|value| !value.is_null()),
                _ => {}
            }
        }
        chunk.usage = usage.or(chunk.usage);
        chunk.error = chunk.error.or(error);
        // A whole message beside or after deltas repeats them.
        let is_first = self.content.text.is_empty() && self.calls.is_empty();
        let fragment = match (delta, message) {
            (Some(delta), _) => self.delta(delta, false, out),
            (None, Some(message)) if self.whole || is_first => {
                _ = self.delta(message, true, out);
                None
            }
            _ => None,
        };
        let Some(reason) = reason else { return ChoiceResult::Read(fragment) };
        self.finish(&reason, out);
        ChoiceResult::Read(None)
    }

    /// Records a finish reason. Some servers send it twice. A reason that says that the answer was cut is final.
    fn finish(&mut self, reason: &str, out: &mut Vec<StreamEvent>) {
        if self.meta.finish_reason.as_deref().is_none_or(|earlier| status_of(earlier) == AnswerStatus::Complete) {
            self.meta.finish_reason = Some(reason.to_owned());
        }
        self.calls.complete(out);
    }

    /// Applies a delta, or a `whole` message. Returns the fragment that it appended to one string, if it did nothing
    /// else.
    fn delta<'a>(&mut self, delta: JsonRef<'a>, whole: bool, out: &mut Vec<StreamEvent>) -> Option<&'a str> {
        let (mut content, mut details, mut calls, mut function) = (None, None, None, None);
        let mut did_more = whole;
        for (key, value) in delta.entries().filter(|(_, value)| !value.is_null()) {
            let is_second = content.is_some() || calls.is_some();
            match inside(key).unwrap_or_default() {
                // `channel` names the part of a harmony answer that the chunk is from; no request has it.
                "role" | "channel" => {}
                "content" => {
                    content = Some(value);
                    did_more |= is_second;
                }
                "tool_calls" => {
                    calls = Some(value);
                    did_more |= is_second;
                }
                name => {
                    did_more = true;
                    match name {
                        "function_call" => function = Some(value),
                        DETAILS => details = Some(value),
                        _ => self.member(name, key, value),
                    }
                }
            }
        }
        self.reasoning.emit_text(out);
        for detail in details.unwrap_or_default().items() {
            self.reasoning.apply_detail(detail, whole, out);
        }
        let mut fragment = None;
        if let Some(content) = content {
            self.content(content, out);
            self.content.text.emit(StreamEvent::TextDelta, out);
            (self.growing_call, fragment) = (None, inside(content));
        }
        self.calls.next_chunk();
        for (entry, call) in calls.unwrap_or_default().items().filter(|call| call.is_object()).enumerate() {
            let appended = self.calls.apply(call, whole, out);
            did_more |= entry > 0;
            (self.growing_call, fragment) = appended.unzip();
        }
        if let Some(function) = function {
            self.calls.apply_legacy(function, out);
        }
        fragment.filter(|_| !did_more)
    }

    /// Applies a member of a delta other than content and calls.
    fn member(&mut self, name: &str, key: JsonRef<'_>, value: JsonRef<'_>) {
        match name {
            "refusal" => self.refusal.append(inside(value).unwrap_or_default()),
            // A request refers to the audio of an earlier answer by its id alone.
            "audio" => {
                if let Some(id) = value.find("id") {
                    let audio = ObjectWriter::build(|object| _ = object.json("id", id));
                    self.extra.put("audio", StreamedValue::Raw(audio.as_str().to_owned()));
                }
            }
            _ if self.reasoning.apply_text(name, key, value) => {}
            _ => self.extra.merge(key, value, false),
        }
    }

    /// Applies content: a string, or a list of parts.
    fn content(&mut self, content: JsonRef<'_>, out: &mut Vec<StreamEvent>) {
        if let Some(text) = inside(content) {
            self.content.append(text);
            return;
        }
        for part in content.items() {
            match (inside(part), non_empty_text(part.get("type")).as_deref()) {
                (Some(text), _) => self.content.append(text),
                (None, Some("text" | "output_text") | None) => {
                    self.content.append(part.get("text").and_then(inside).unwrap_or_default());
                }
                (None, Some("refusal")) => {
                    self.refusal.append(part.get("refusal").and_then(inside).unwrap_or_default());
                }
                (None, Some("thinking")) if !self.whole => {
                    if let Some(text) = self.content.apply_thinking(part) {
                        text.emit(StreamEvent::ReasoningDelta, out);
                    }
                }
                (None, Some(_)) => self.content.push_other(part),
            }
        }
    }

    fn status(&self, stopped: bool) -> AnswerStatus {
        match self.meta.finish_reason.as_deref().map(status_of) {
            _ if self.meta.error.is_some() => AnswerStatus::Failed,
            _ if stopped => AnswerStatus::Truncated,
            // A whole body is complete without a finish reason; a stream is not.
            None if !self.whole => AnswerStatus::Truncated,
            Some(cut) if cut != AnswerStatus::Complete => cut,
            _ if self.has_only_refusal() => AnswerStatus::Refused,
            _ => AnswerStatus::Complete,
        }
    }

    fn has_only_refusal(&self) -> bool {
        !self.refusal.is_empty() && self.content.text.is_empty() && self.calls.is_empty()
    }

    /// Returns the assistant message for the next request; none if it would be empty. Calls are in it only if the
    /// answer is `complete`.
    fn wire(&self, complete: bool) -> Option<Json> {
        let is_sent = |call: &&ChatCall| complete && call.is_named();
        let has_calls = self.calls.iter().any(|call| is_sent(&call));
        let mut out = String::new();
        let mut message = ObjectWriter::new(&mut out);
        message.text("role", "assistant");
        let mut has_content = has_calls;
        if !self.content.is_plain() {
            self.content.write(message.key("content"));
            has_content = true;
        } else if self.content.text.is_empty() && (has_calls || !self.refusal.is_empty()) {
            message.raw("content", self.empty_content);
        } else {
            message.token("content", &self.content.text.to_str());
            has_content |= !self.content.text.is_empty();
        }
        if !self.refusal.is_empty() {
            message.token("refusal", &self.refusal.to_str());
            has_content = true;
        }
        has_content |= self.reasoning.write_texts(&mut message);
        has_content |= self.reasoning.write_details(&mut message);
        has_content |= self.extra.write_occupied(&mut message);
        if has_calls {
            let mut list = ArrayWriter::new(message.key("tool_calls"));
            for call in self.calls.iter().filter(is_sent) {
                let mut object = ObjectWriter::new(list.item());
                call.write(&mut object);
                object.end();
            }
            list.end();
        }
        message.end();
        has_content.then(|| Json::trusted(out))
    }
}

/// Returns what a finish reason says about completeness. `stop` and `tool_calls` are not distinguished: servers confuse
/// them, and the calls themselves tell.
fn status_of(reason: &str) -> AnswerStatus {
    match reason {
        "length" | "max_tokens" | "model_length" | "insufficient_system_resource" | "abort" => AnswerStatus::Incomplete,
        "content_filter" | "sensitive" => AnswerStatus::Blocked,
        "error" | "network_error" => AnswerStatus::Failed,
        _ => AnswerStatus::Complete,
    }
}
