//! Assembles a Gemini generateContent response, streamed or whole.
//!
//! Each event of a stream is a complete response object with the parts that are new. Consecutive text parts of the same
//! kind are joined, except for signed ones: a `thoughtSignature` belongs to its own part. Other parts are kept as they
//! arrived.

mod call;
mod partial_arguments;
mod usage;

use super::decode::decode_part;
use super::part::NamedPart;
use crate::json::{Json, JsonRef, ObjectWriter};
use crate::provider::stream::{AnswerBlock, AnswerReader, BlockBody, StringBuffer, inside, non_empty_text};
use crate::provider::stream::{AnswerStatus, Assembled, StreamEvent, WireError};
use crate::provider::stream::{MetaMembers, ResponseMeta, malformed, message_of};
use call::GeminiCall;
use usage::GeminiUsage;

const META_MEMBERS: MetaMembers = MetaMembers { id: "responseId", model: "modelVersion" };

/// A Gemini response in progress.
#[derive(Default)]
pub(crate) struct GeminiAssembler {
    meta: ResponseMeta,
    parts: Vec<AnswerPart>,
    call_count: u32,
    /// Gemini blocked the prompt: there is no answer.
    prompt_blocked: bool,
    /// The response came as one body, not as a stream.
    whole: bool,
    usage: GeminiUsage,
}

/// A part of the answer.
enum AnswerPart {
    /// Text without a signature, to which the next event may append.
    Text(AnswerText),
    Call(GeminiCall),
    /// A part that is kept as it arrived: signed text (then with `text`), code, a file, a call of a server tool.
    Verbatim {
        wire: Json,
        text: Option<AnswerText>,
    },
}

/// A text of the answer, or of the model's reasoning (`"thought":true`).
struct AnswerText {
    text: StringBuffer,
    thought: bool,
}

impl AnswerReader for GeminiAssembler {
    fn read_event<'a>(&mut self, _name: &str, data: JsonRef<'a>, out: &mut Vec<StreamEvent>) -> Option<&'a str> {
        if self.meta.error.is_none() {
            self.read(data, out);
        }
        None
    }

    /// Never called, since [`read_event`](Self::read_event) returns no fragment: nearly every event of Gemini has other
    /// token counts.
    fn read_fragment(&mut self, _fragment: &str, _out: &mut Vec<StreamEvent>) {}

    fn read_body(&mut self, body: JsonRef<'_>) {
        self.whole = true;
        self.read(body, &mut Vec::new());
        if self.meta.error.is_none() && !self.prompt_blocked && body.get("candidates").and_then(candidate).is_none() {
            self.meta.error = Some(malformed("the response has no candidates"));
        }
    }

    fn meta(&self) -> &ResponseMeta {
        &self.meta
    }

    fn meta_mut(&mut self) -> &mut ResponseMeta {
        &mut self.meta
    }

    fn visit_blocks(&self, visit: &mut dyn FnMut(AnswerBlock<'_>)) {
        for (key, part) in (0..).zip(&self.parts) {
            match part {
                AnswerPart::Text(AnswerText { text, thought }) => {
                    let text = text.inside();
                    let body = if *thought { BlockBody::Reasoning(text) } else { BlockBody::Text(text) };
                    visit(AnswerBlock::new(key, body));
                }
                AnswerPart::Verbatim { wire, .. } => {
                    visit(AnswerBlock::new(key, BlockBody::Other(&|| decode_part(wire.view()).body)));
                }
                AnswerPart::Call(_) => {}
            }
        }
    }

    fn accepts_array(&self) -> bool {
        true
    }

    fn assemble(&self, stopped: bool) -> Assembled {
        let status = self.status(stopped);
        let complete = status == AnswerStatus::Complete;
        let (mut text, mut calls, mut parts) = (String::new(), Vec::new(), Vec::new());
        for part in &self.parts {
            match part {
                AnswerPart::Text(answer) | AnswerPart::Verbatim { text: Some(answer), .. } if !answer.thought => {
                    text.push_str(answer.text.inside());
                }
                AnswerPart::Call(call) => calls.push(call.assemble(complete)),
                AnswerPart::Text(_) | AnswerPart::Verbatim { .. } => {}
            }
            parts.extend(part.to_wire(complete));
        }
        self.meta.assembled(status, &text, calls, message_of("model", "parts", &parts))
    }
}

impl GeminiAssembler {
    /// Reads a response object: a whole one, or an event of a stream.
    fn read(&mut self, data: JsonRef<'_>, out: &mut Vec<StreamEvent>) {
        let (mut answer, mut feedback, mut usage, mut error) = (None, None, None, None);
        for (key, value) in data.entries() {
            match inside(key).unwrap_or_default() {
                "candidates" => answer = candidate(value),
                "promptFeedback" => feedback = Some(value),
                "usageMetadata" => usage = Some(value),
                "error" => error = Some(value),
                _ => {}
            }
        }
        self.meta.set_id_and_model(data, &META_MEMBERS);
        if let Some(usage) = usage {
            self.usage.merge(usage);
            self.meta.update_usage(self.usage.total(), out);
        }
        if let Some(answer) = answer {
            self.read_candidate(answer, out);
        }
        if let Some(reason) = feedback.and_then(|feedback| non_empty_text(feedback.get("blockReason")))
            && self.meta.finish_reason.is_none()
        {
            self.prompt_blocked = true;
            self.meta.finish_reason = Some(reason.into_owned());
        }
        if let Some(error) = error {
            self.meta.report_error_object(error, out);
        }
    }

    fn read_candidate(&mut self, candidate: JsonRef<'_>, out: &mut Vec<StreamEvent>) {
        let parts = candidate.get("content").and_then(|content| content.get("parts"));
        for (at, part) in parts.unwrap_or_default().items().filter(|part| part.is_object()).enumerate() {
            self.read_part(part, at == 0, out);
        }
        if let Some(reason) = non_empty_text(candidate.get("finishReason")) {
            let message = non_empty_text(candidate.get("finishMessage"));
            self.finish(&reason, message.as_deref(), out);
        }
    }

    fn finish(&mut self, reason: &str, message: Option<&str>, out: &mut Vec<StreamEvent>) {
        self.meta.finish_reason = Some(reason.to_owned());
        if status_of(reason) == AnswerStatus::Failed {
            let message = message.map_or_else(|| format!("Gemini ended its answer: {reason}"), str::to_owned);
            self.meta.report_error(WireError { code: Some(reason.to_owned()), message }, out);
        }
    }

    /// Reads a part. `may_extend`: it is the first part of its event, and may extend the last part of the event before.
    fn read_part(&mut self, part: JsonRef<'_>, may_extend: bool, out: &mut Vec<StreamEvent>) {
        if let Some(call) = part.get("functionCall").filter(|call| call.is_object()) {
            return self.read_call(NamedPart { part, named: call }, out);
        }
        let (mut text, mut thought, mut only_text, mut signed) = (None, false, true, false);
        for (key, value) in part.entries() {
            match inside(key).unwrap_or_default() {
                "text" => text = inside(value),
                "thought" => thought = value.as_bool() == Some(true),
                "thoughtSignature" if !value.is_null() && !value.is_text("") => signed = true,
                _ => only_text = false,
            }
        }
        match text {
            Some("") if only_text && !signed => {}
            Some(fragment) if only_text && !signed => match self.parts.last_mut() {
                Some(AnswerPart::Text(last)) if may_extend && last.thought == thought => last.append(fragment, out),
                _ => self.parts.push(AnswerPart::Text(AnswerText::new(fragment, thought, out))),
            },
            _ => {
                let text = text.map(|text| AnswerText::new(text, thought, out));
                self.parts.push(AnswerPart::Verbatim { wire: part.to_owned(), text });
            }
        }
    }

    /// Reads a part with a `functionCall`. One without a name continues the call of the part before.
    fn read_call(&mut self, call: NamedPart<'_>, out: &mut Vec<StreamEvent>) {
        if non_empty_text(call.named.get("name")).is_none()
            && let Some(AnswerPart::Call(last)) = self.parts.last_mut()
            && last.is_open()
        {
            return last.extend(call.named, out);
        }
        self.parts.push(AnswerPart::Call(GeminiCall::start(self.call_count, call, out)));
        self.call_count += 1;
    }

    fn status(&self, stopped: bool) -> AnswerStatus {
        if self.meta.error.is_some() {
            return AnswerStatus::Failed;
        }
        let status = match self.meta.finish_reason.as_deref() {
            Some(_) if self.prompt_blocked => AnswerStatus::Blocked,
            Some(reason) => status_of(reason),
            None if self.whole => AnswerStatus::Complete,
            None => AnswerStatus::Truncated,
        };
        // A stream may end in the middle of a call in spite of its finish reason, or pieces of the call were lost.
        let is_cut = |part: &AnswerPart| matches!(part, AnswerPart::Call(call) if call.is_cut());
        let call_is_cut = status == AnswerStatus::Complete && self.parts.iter().any(is_cut);
        if stopped || call_is_cut { AnswerStatus::Truncated } else { status }
    }
}

/// Returns the candidate with index 0, which need not be the first of the list. An omitted index is 0.
fn candidate(candidates: JsonRef<'_>) -> Option<JsonRef<'_>> {
    candidates.items().find(|one| one.find("index").and_then(JsonRef::as_u64).unwrap_or(0) == 0)
}

/// Returns the status that a `finishReason` of Gemini stands for. An answer with calls ends with STOP, too; mock
/// servers and gateways use FUNCTION_CALL and TOOL_CALLS.
fn status_of(reason: &str) -> AnswerStatus {
    match reason {
        "STOP" | "FUNCTION_CALL" | "TOOL_CALLS" => AnswerStatus::Complete,
        // A `continuationToken` belongs to the next request, not to the message. It is not supported.
        "MAX_TOKENS" | "CONTINUATION" => AnswerStatus::Incomplete,
        "SAFETY"
        | "RECITATION"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "LANGUAGE"
        | "MODEL_ARMOR"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION" => AnswerStatus::Blocked,
        // MALFORMED_FUNCTION_CALL, UNEXPECTED_TOOL_CALL, OTHER, and reasons that are unknown here: no call of it may
        // run.
        _ => AnswerStatus::Failed,
    }
}

impl AnswerText {
    fn new(fragment: &str, thought: bool, out: &mut Vec<StreamEvent>) -> Self {
        let mut text = Self { text: StringBuffer::default(), thought };
        text.append(fragment, out);
        text
    }

    /// Appends the content of a string token and emits it.
    fn append(&mut self, fragment: &str, out: &mut Vec<StreamEvent>) {
        self.text.append(fragment);
        let event = if self.thought { StreamEvent::ReasoningDelta } else { StreamEvent::TextDelta };
        self.text.emit(event, out);
    }
}

impl AnswerPart {
    /// Returns the part's JSON for the next request, or `None` for a call that is not executable. `complete`: the
    /// response ended normally.
    fn to_wire(&self, complete: bool) -> Option<String> {
        let mut out = String::new();
        match self {
            Self::Text(AnswerText { text, thought }) => {
                let mut part = ObjectWriter::new(&mut out);
                part.token("text", &text.to_str());
                if *thought {
                    part.bool("thought", true);
                }
                part.end();
            }
            Self::Verbatim { wire, .. } => out.push_str(wire.as_str()),
            Self::Call(call) if call.assemble(complete).executable => call.write(&mut out),
            Self::Call(_) => return None,
        }
        Some(out)
    }
}
