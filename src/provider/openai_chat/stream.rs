//! Assembles a Chat Completions response, streamed or whole, as OpenAI and the many compatible servers send it.

mod calls;
mod object_end;

use super::encode::thought;
use crate::json::{ArrayWriter, Json, JsonRef, JsonStr, ObjectWriter};
use crate::message::Usage;
use crate::provider::stream::{
    AnswerReader, StreamedFields, StreamedValue, StringBuffer, inside, non_empty_text, read_error,
};
use crate::provider::stream::{AnswerStatus, Assembled, StreamEvent, WireError};
use crate::provider::stream::{ResponseMeta, malformed};
use calls::{Call, Calls};

/// The members that carry readable reasoning, as servers name them.
const REASONING: [&str; 4] = ["reasoning_content", "reasoning", "reasoning_text", "thinking"];
/// The list of reasoning blocks.
const DETAILS: &str = "reasoning_details";

/// An answer as it grows.
#[derive(Default)]
pub(crate) struct ChatAnswer {
    meta: ResponseMeta,
    said: Pieced,
    refusal: StringBuffer,
    reasoning: StreamedFields,
    /// Which reasoning member is told as events: servers send the same words under two names.
    lead: Option<String>,
    details: Vec<StreamedFields>,
    extra: StreamedFields,
    calls: Calls,
    /// Which call's arguments grew last, where it was not the text.
    grew: Option<usize>,
    whole: bool,
    /// The content of a message with calls and no words.
    blank: &'static str,
}

/// A text that grows, with what stands between its words.
#[derive(Default)]
struct Pieced {
    text: StringBuffer,
    /// Only where it came as a list that holds more than text.
    pieces: Vec<Piece>,
}

/// One part of a content that is a list.
enum Piece {
    /// A range of the text.
    Text { from: usize, to: usize },
    /// Mistral's reasoning part: its words, and its other members.
    Thinking { said: Pieced, rest: StreamedFields },
    /// As it came.
    Other(String),
}

impl Pieced {
    fn append(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let from = self.text.inside().len();
        self.text.append(text);
        let end = from + text.len();
        match self.pieces.last_mut() {
            Some(Piece::Text { to, .. }) => *to = end,
            Some(_) => self.pieces.push(Piece::Text { from, to: end }),
            None => {}
        }
    }

    fn push(&mut self, piece: Piece) {
        let to = self.text.inside().len();
        if self.pieces.is_empty() && to > 0 {
            self.pieces.push(Piece::Text { from: 0, to });
        }
        self.pieces.push(piece);
    }

    fn write(&self, out: &mut String) {
        if self.pieces.is_empty() {
            return out.push_str(&thought(&self.text.to_str()));
        }
        let mut parts = ArrayWriter::new(out);
        for piece in &self.pieces {
            if let Piece::Other(raw) = piece {
                parts.item().push_str(raw);
                continue;
            }
            let mut part = ObjectWriter::new(parts.item());
            match piece {
                Piece::Text { from, to } => {
                    let text = JsonStr::from_inside(self.text.inside().get(*from..*to).unwrap_or_default());
                    part.text("type", "text").token("text", &text);
                }
                Piece::Thinking { said, rest } => {
                    said.write(part.text("type", "thinking").key("thinking"));
                    rest.write(&mut part);
                }
                Piece::Other(_) => {}
            }
            part.end();
        }
        parts.end();
    }
}

impl AnswerReader for ChatAnswer {
    fn event<'a>(&mut self, name: &str, chunk: JsonRef<'a>, out: &mut Vec<StreamEvent>) -> Option<&'a str> {
        if self.meta.error.is_some() {
            return None;
        }
        self.chunk(name, chunk, out)
    }

    fn again(&mut self, fragment: &str, out: &mut Vec<StreamEvent>) {
        match self.grew {
            Some(place) => self.calls.append(place, fragment, out),
            None => {
                self.said.append(fragment);
                self.said.text.emit(StreamEvent::TextDelta, out);
            }
        }
    }

    fn whole(&mut self, body: JsonRef<'_>) {
        self.whole = true;
        self.chunk("", body, &mut Vec::new());
        let choices = body.get("choices").is_some_and(|choices| choices.items().next().is_some());
        let answered = choices || body.get("message").is_some_and(JsonRef::is_object);
        if !answered && self.meta.error.is_none() {
            let words = body.find("message").or_else(|| body.find("detail")).and_then(|_| read_error(body));
            self.meta.set_error(words.unwrap_or_else(|| malformed("the response has no choices")));
        }
    }

    fn meta(&mut self) -> &mut ResponseMeta {
        &mut self.meta
    }

    fn assemble(&self, stopped: bool) -> Assembled {
        let status = self.status(stopped);
        let complete = status == AnswerStatus::Complete;
        let mut calls = Vec::new();
        for call in self.calls.iter() {
            calls.push(call.assemble(complete));
        }
        let mut answer = self.meta.assembled(status, self.said.text.inside(), calls, self.wire(complete));
        if let (AnswerStatus::Failed, None, Some(reason)) = (status, &answer.error, &answer.finish_reason) {
            let message = format!("the provider ended the response with the reason {reason}");
            answer.error = Some(WireError { code: Some(reason.clone()), message });
        }
        answer
    }
}

impl ChatAnswer {
    pub(crate) fn new(blank: &'static str) -> Self {
        Self { blank, ..Self::default() }
    }

    /// Gives the fragment by which it lengthened one string, if it did nothing else.
    fn chunk<'a>(&mut self, name: &str, chunk: JsonRef<'a>, out: &mut Vec<StreamEvent>) -> Option<&'a str> {
        let mut fragment = None;
        let (mut error, mut choices, mut message, mut usage, mut native) = (None, None, None, None, false);
        for (key, value) in chunk.entries() {
            match inside(key).unwrap_or_default() {
                "choices" => choices = Some(value),
                "message" => message = Some(value),
                "usage" => usage = read_usage(value).or(usage),
                // Groq's place for it.
                "x_groq" => usage = value.get("usage").and_then(read_usage).or(usage),
                "error" => error = Some(value),
                "object" if value.is_text("error") => error = Some(chunk),
                "done" => native = value.as_bool() == Some(true),
                _ => {}
            }
        }
        if self.meta.id.is_none() || self.meta.model.is_none() {
            self.meta.set_id_and_model(chunk, "id", "model");
        }
        if let Some(choices) = choices {
            // One answer: where several were asked for, the others are not this message.
            for choice in choices.items() {
                if let Some(grown) = self.choice(choice, &mut usage, &mut error, out) {
                    fragment = grown;
                    break;
                }
            }
        } else if let Some(message) = message.filter(|message| message.is_object()) {
            // Ollama's own shape: a line a piece, `done` on the last.
            _ = self.delta(message, self.whole, out);
            if native {
                self.ended(non_empty_text(chunk.get("done_reason")).as_deref().unwrap_or("done"), out);
                let count = |name| chunk.get(name).and_then(JsonRef::as_u64);
                if let (Some(input), Some(output)) = (count("prompt_eval_count"), count("eval_count")) {
                    usage = Some(Usage { input, output, ..Usage::default() });
                }
            }
        }
        self.meta.update_usage(usage, out);
        let error = error.or_else(|| (name == "error").then_some(chunk)).and_then(read_error);
        if let Some(error) = error {
            self.meta.report_error(error, out);
            return None;
        }
        fragment
    }

    /// None for a choice that is not the first.
    fn choice<'a>(
        &mut self,
        choice: JsonRef<'a>,
        usage: &mut Option<Usage>,
        error: &mut Option<JsonRef<'a>>,
        out: &mut Vec<StreamEvent>,
    ) -> Option<Option<&'a str>> {
        let (mut delta, mut message, mut reason, mut own_usage, mut failure) = (None, None, None, None, None);
        for (key, value) in choice.entries() {
            match inside(key).unwrap_or_default() {
                "index" if value.as_u64().is_some_and(|index| index > 0) => return None,
                "delta" => delta = Some(value).filter(|value| value.is_object()),
                "message" => message = Some(value).filter(|value| value.is_object()),
                "finish_reason" => reason = non_empty_text(Some(value)),
                // Moonshot's place for it.
                "usage" => own_usage = read_usage(value),
                "error" => failure = Some(value).filter(|value| !value.is_null()),
                _ => {}
            }
        }
        *usage = own_usage.or(*usage);
        *error = error.or(failure);
        // A whole message beside or after deltas repeats them.
        let fragment = match (delta, message) {
            (Some(delta), _) => self.delta(delta, false, out),
            (None, Some(message)) if self.whole || (self.said.text.is_empty() && self.calls.is_empty()) => {
                self.delta(message, true, out).filter(|_| false)
            }
            _ => None,
        };
        let Some(reason) = reason else { return Some(fragment) };
        self.ended(&reason, out);
        Some(None)
    }

    /// Some servers send an empty reason with every chunk, and some the reason twice.
    fn ended(&mut self, reason: &str, out: &mut Vec<StreamEvent>) {
        // Once the provider has said that it was cut, nothing takes that back.
        if self.meta.finish_reason.as_deref().is_none_or(|earlier| status_of(earlier) == AnswerStatus::Complete) {
            self.meta.finish_reason = Some(reason.to_owned());
        }
        self.calls.ready(out);
    }

    /// Gives the fragment by which it lengthened one string, if it did nothing else.
    fn delta<'a>(&mut self, delta: JsonRef<'a>, whole: bool, out: &mut Vec<StreamEvent>) -> Option<&'a str> {
        let (mut content, mut details, mut calls, mut function) = (None, None, None, None);
        let mut other = whole;
        for (key, value) in delta.entries() {
            if value.is_null() {
                continue;
            }
            let known = content.is_some() || calls.is_some();
            match inside(key).unwrap_or_default() {
                // `channel` names the part of a harmony answer that the chunk is from; no request carries it.
                "role" | "channel" => continue,
                "content" => {
                    content = Some(value);
                    other |= known;
                    continue;
                }
                "tool_calls" => {
                    calls = Some(value);
                    other |= known;
                    continue;
                }
                "function_call" => function = Some(value),
                "refusal" => self.refusal.append(inside(value).unwrap_or_default()),
                DETAILS => details = Some(value),
                name if REASONING.contains(&name) && inside(value).is_some() => self.reasoning.merge(key, value, true),
                // A request names an earlier answer's audio by its id alone.
                "audio" => {
                    if let Some(id) = value.find("id") {
                        let audio = ObjectWriter::build(|object| _ = object.json("id", id));
                        self.extra.put("audio", StreamedValue::Raw(audio.as_str().to_owned()));
                    }
                }
                _ => self.extra.merge(key, value, false),
            }
            other = true;
        }
        self.tell_reasoning(out);
        for detail in details.unwrap_or_default().items() {
            self.detail(detail, whole, out);
        }
        let mut fragment = None;
        if let Some(content) = content {
            self.content(content, out);
            self.said.text.emit(StreamEvent::TextDelta, out);
            (self.grew, fragment) = (None, inside(content));
        }
        self.calls.next_chunk();
        for (place, call) in calls.unwrap_or_default().items().filter(|call| call.is_object()).enumerate() {
            let grown = self.calls.delta(call, whole, out);
            other |= place > 0;
            (self.grew, fragment) = grown.unzip();
        }
        if let Some(function) = function {
            self.calls.function(function, out);
        }
        fragment.filter(|_| !other)
    }

    fn tell_reasoning(&mut self, out: &mut Vec<StreamEvent>) {
        if self.lead.is_none() {
            let said = |name: &&str| self.reasoning.text(name).is_some_and(|text| !text.is_empty());
            self.lead = REASONING.into_iter().find(said).map(str::to_owned);
        }
        let Some(lead) = &self.lead else { return };
        if let Some(text) = self.reasoning.text_mut(lead) {
            text.emit(StreamEvent::ReasoningDelta, out);
        }
    }

    /// Content is a text, or a list of parts.
    fn content(&mut self, content: JsonRef<'_>, out: &mut Vec<StreamEvent>) {
        if let Some(text) = inside(content) {
            self.said.append(text);
            return;
        }
        for part in content.items() {
            match (inside(part), non_empty_text(part.get("type")).as_deref()) {
                (Some(text), _) => self.said.append(text),
                (None, Some("text" | "output_text") | None) => {
                    self.said.append(part.get("text").and_then(inside).unwrap_or_default());
                }
                (None, Some("refusal")) => {
                    self.refusal.append(part.get("refusal").and_then(inside).unwrap_or_default());
                }
                (None, Some("thinking")) if !self.whole => self.thinking(part, out),
                (None, Some(_)) => self.said.push(Piece::Other(part.as_raw().to_owned())),
            }
        }
    }

    fn thinking(&mut self, part: JsonRef<'_>, out: &mut Vec<StreamEvent>) {
        // Every chunk may say that it is closed (recorded): a signature alone ends a part.
        let unsigned = |rest: &StreamedFields| rest.get("signature").is_none_or(StreamedValue::says_nothing);
        let goes_on = |piece: &Piece| matches!(piece, Piece::Thinking { rest, .. } if unsigned(rest));
        if !self.said.pieces.last().is_some_and(goes_on) {
            self.said.push(Piece::Thinking { said: Pieced::default(), rest: StreamedFields::default() });
        }
        let Some(Piece::Thinking { said, rest }) = self.said.pieces.last_mut() else { return };
        for (key, value) in part.entries().filter(|(key, _)| !key.is_text("type")) {
            if !key.is_text("thinking") {
                rest.merge(key, value, false);
                continue;
            }
            said.append(inside(value).unwrap_or_default());
            for item in value.items() {
                match item.get("text").and_then(inside) {
                    Some(text) => said.append(text),
                    None => said.push(Piece::Other(item.as_raw().to_owned())),
                }
            }
        }
        said.text.emit(StreamEvent::ReasoningDelta, out);
    }

    /// OpenRouter's list of reasoning blocks: in a stream, fragments of one block come one after the other.
    fn detail(&mut self, detail: JsonRef<'_>, whole: bool, out: &mut Vec<StreamEvent>) {
        let same = |own: Option<&StreamedValue>, name: &str| match (own, detail.find(name)) {
            (Some(StreamedValue::Raw(own)), Some(new)) => own == new.as_raw() || own == "null",
            (Some(StreamedValue::Text(own)), Some(new)) => inside(new) == Some(own.inside()),
            _ => true,
        };
        // Without an index only text is a fragment: an encrypted block is whole.
        let fragment = !whole && (detail.find("index").is_some() || detail.find("data").is_none());
        let continues = |last: &&mut StreamedFields| {
            let indexed = last.get("index").is_some_and(|index| !index.says_nothing());
            fragment
                && indexed == detail.find("index").is_some()
                && ["type", "index", "id"].iter().all(|name| same(last.get(name), name))
        };
        match self.details.last_mut().filter(continues) {
            Some(last) => detail.entries().for_each(|(key, value)| {
                let goes_on = matches!(inside(key), Some("text" | "summary" | "data"));
                last.merge(key, value, goes_on);
            }),
            None if detail.is_object() => self.details.push(StreamedFields::read(detail)),
            None => {}
        }
        let lead = self.lead.as_deref();
        if lead.is_none_or(|lead| lead == DETAILS) {
            let last = self.details.last_mut();
            let news =
                last.and_then(|last| ["text", "summary"].iter().find_map(|name| last.text_mut(name)?.take_unemitted()));
            if let Some(news) = news {
                self.lead = Some(DETAILS.to_owned());
                out.push(StreamEvent::ReasoningDelta(news));
            }
        }
    }

    fn status(&self, stopped: bool) -> AnswerStatus {
        let said_reason = self.meta.finish_reason.as_deref().map(status_of);
        match said_reason {
            _ if self.meta.error.is_some() => AnswerStatus::Failed,
            _ if stopped => AnswerStatus::Truncated,
            // The end of a whole body is proof enough; a stream's end is none.
            None if !self.whole => AnswerStatus::Truncated,
            Some(cut) if cut != AnswerStatus::Complete => cut,
            _ if !self.refusal.is_empty() && self.said.text.is_empty() && self.calls.is_empty() => {
                AnswerStatus::Refused
            }
            _ => AnswerStatus::Complete,
        }
    }

    fn wire(&self, complete: bool) -> Option<Json> {
        let named = |call: &&Call| complete && call.is_named();
        let has_calls = self.calls.iter().any(|call| named(&call));
        let mut out = String::new();
        let mut message = ObjectWriter::new(&mut out);
        message.text("role", "assistant");
        let mut says = has_calls;
        if !self.said.pieces.is_empty() {
            self.said.write(message.key("content"));
            says = true;
        } else if self.said.text.is_empty() && (has_calls || !self.refusal.is_empty()) {
            message.raw("content", self.blank);
        } else {
            message.token("content", &self.said.text.to_str());
            says |= !self.said.text.is_empty();
        }
        if !self.refusal.is_empty() {
            message.token("refusal", &self.refusal.to_str());
            says = true;
        }
        // An empty one, too: DeepSeek wants the member back that it sent.
        self.reasoning.write(&mut message);
        says |= self.reasoning.entries().iter().any(|(_, value)| !value.says_nothing());
        if !self.details.is_empty() {
            let mut list = ArrayWriter::new(message.key(DETAILS));
            for detail in &self.details {
                let mut object = ObjectWriter::new(list.item());
                detail.write(&mut object);
                object.end();
            }
            list.end();
            says = true;
        }
        says |= self.extra.write_said(&mut message);
        if has_calls {
            let mut list = ArrayWriter::new(message.key("tool_calls"));
            for call in self.calls.iter().filter(named) {
                let mut object = ObjectWriter::new(list.item());
                call.write(&mut object);
                object.end();
            }
            list.end();
        }
        message.end();
        says.then(|| Json::trusted(out))
    }
}

/// What a finish reason says. The calls are trusted, not the reason: `stop` and `tool_calls` say the same.
fn status_of(reason: &str) -> AnswerStatus {
    match reason {
        "length" | "max_tokens" | "model_length" | "insufficient_system_resource" | "abort" => AnswerStatus::Incomplete,
        "content_filter" | "sensitive" => AnswerStatus::Blocked,
        "error" | "network_error" => AnswerStatus::Failed,
        _ => AnswerStatus::Complete,
    }
}

/// Counts under the names of either of OpenAI's endpoints.
pub(crate) fn read_usage(usage: JsonRef<'_>) -> Option<Usage> {
    let (mut input, mut output, mut found) = (None, None, Usage::default());
    for (key, value) in usage.entries() {
        match inside(key).unwrap_or_default() {
            "prompt_tokens" | "input_tokens" => input = value.as_u64().or(input),
            "completion_tokens" | "output_tokens" => output = value.as_u64().or(output),
            "prompt_tokens_details" | "input_tokens_details" => {
                found.cached_input = value.get("cached_tokens").and_then(JsonRef::as_u64).or(found.cached_input);
                found.cache_write = value.get("cache_write_tokens").and_then(JsonRef::as_u64).or(found.cache_write);
            }
            "completion_tokens_details" | "output_tokens_details" => {
                found.reasoning = value.get("reasoning_tokens").and_then(JsonRef::as_u64).or(found.reasoning);
            }
            // DeepSeek's, Moonshot's and Mistral's names for it.
            "prompt_cache_hit_tokens" | "cached_tokens" | "num_cached_tokens" => {
                found.cached_input = found.cached_input.or(value.as_u64())
            }
            _ => {}
        }
    }
    input.or(output)?;
    Some(Usage { input: input.unwrap_or(0), output: output.unwrap_or(0), ..found })
}
