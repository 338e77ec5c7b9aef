//! Assembles a generateContent response, streamed or whole.
//!
//! Each event is a whole response with the parts that are new. Texts of one kind that follow each other are one text,
//! unless one of them is signed: a signature belongs to its part alone. Anything else returns as it came.

mod pieces;

use crate::json::{Json, JsonRef, JsonStr, ObjectWriter};
use crate::message::Usage;
use crate::provider::assembled::{AnswerStatus, Assembled, AssembledCall, StreamEvent, WireError};
use crate::provider::assembler::{Assembling, Growing, inside, said};
use crate::provider::facts::{Facts, malformed, message_of};
use pieces::Pieces;

/// An answer as it grows.
#[derive(Default)]
pub(crate) struct ContentAnswer {
    facts: Facts,
    parts: Vec<Piece>,
    calls: u32,
    /// The prompt was not let through: there is no answer.
    withheld: bool,
    /// It came as one body.
    whole: bool,
    counts: Counts,
}

/// A part of the answer.
enum Piece {
    /// Text without a signature, or with `thought` the model's reasoning: it may go on.
    Text { text: Growing, thought: bool },
    /// A call.
    Call(Call),
    /// Kept as it came: a signed text (then with what it says and whether it is a thought), code, files, server tools.
    Other { wire: Json, text: Option<(Growing, bool)> },
}

/// A call, which may come in pieces (`streamFunctionCallArguments`).
struct Call {
    index: u32,
    id: String,
    name: String,
    /// The part as it began.
    wire: Json,
    /// The pieces of its arguments; none where it came whole.
    pieces: Option<Pieces>,
    closed: bool,
}

/// The token counts as they came last.
#[derive(Default)]
struct Counts {
    prompt: Option<u64>,
    tools: Option<u64>,
    output: Option<u64>,
    thoughts: Option<u64>,
    cached: Option<u64>,
}

impl Assembling for ContentAnswer {
    fn event<'a>(&mut self, _name: &str, data: JsonRef<'a>, out: &mut Vec<StreamEvent>) -> Option<&'a str> {
        if self.facts.error.is_none() {
            self.read(data, out);
        }
        None
    }

    /// Nearly every event has other counts: none is asked for again.
    fn again(&mut self, _fragment: &str, _out: &mut Vec<StreamEvent>) {}

    fn whole(&mut self, body: JsonRef<'_>) {
        self.whole = true;
        self.read(body, &mut Vec::new());
        if self.facts.error.is_none() && !self.withheld && body.get("candidates").and_then(first).is_none() {
            self.facts.error = Some(malformed("the response has no candidates"));
        }
    }

    fn facts(&mut self) -> &mut Facts {
        &mut self.facts
    }

    fn takes_lists(&self) -> bool {
        true
    }

    fn assemble(&self, stopped: bool) -> Assembled {
        let status = self.status(stopped);
        let complete = status == AnswerStatus::Complete;
        let (mut text, mut calls, mut parts) = (String::new(), Vec::new(), Vec::new());
        for part in &self.parts {
            match part {
                Piece::Text { text: own, thought: false } | Piece::Other { text: Some((own, false)), .. } => {
                    text.push_str(own.inside());
                }
                Piece::Call(call) => calls.push(call.assemble(complete)),
                _ => {}
            }
            parts.extend(part.wire(complete));
        }
        self.facts.assembled(status, &text, calls, message_of("model", "parts", &parts))
    }
}

impl ContentAnswer {
    fn read(&mut self, data: JsonRef<'_>, out: &mut Vec<StreamEvent>) {
        let (mut candidate, mut feedback, mut usage, mut error) = (None, None, None, None);
        for (key, value) in data.entries() {
            match inside(key).unwrap_or_default() {
                "candidates" => candidate = first(value),
                "promptFeedback" => feedback = Some(value),
                "usageMetadata" => usage = Some(value),
                "error" => error = Some(value),
                _ => {}
            }
        }
        self.facts.name(data, "responseId", "modelVersion");
        if let Some(usage) = usage {
            self.counts.take(usage);
            self.facts.count(self.counts.sum(), out);
        }
        if let Some(candidate) = candidate {
            let parts = candidate.get("content").and_then(|content| content.get("parts"));
            let mut goes_on = true;
            for part in parts.unwrap_or_default().items().filter(|part| part.is_object()) {
                self.part(part, goes_on, out);
                goes_on = false;
            }
            if let Some(reason) = said(candidate.get("finishReason")) {
                let words = said(candidate.get("finishMessage"));
                self.finish(&reason, words.as_deref(), out);
            }
        }
        if let Some(reason) = feedback.and_then(|feedback| said(feedback.get("blockReason")))
            && self.facts.reason.is_none()
        {
            self.withheld = true;
            self.facts.reason = Some(reason.into_owned());
        }
        if let Some(error) = error {
            self.facts.failed_as(error, out);
        }
    }

    fn finish(&mut self, reason: &str, words: Option<&str>, out: &mut Vec<StreamEvent>) {
        self.facts.reason = Some(reason.to_owned());
        if ends_in(reason) == AnswerStatus::Failed {
            let message = words.map_or_else(|| format!("Gemini ended its answer: {reason}"), str::to_owned);
            self.facts.failed(WireError { code: Some(reason.to_owned()), message }, out);
        }
    }

    /// A part; the first of an event may go on where the event before ended.
    fn part(&mut self, part: JsonRef<'_>, goes_on: bool, out: &mut Vec<StreamEvent>) {
        if let Some(call) = part.get("functionCall").filter(|call| call.is_object()) {
            return self.call(part, call, out);
        }
        let (mut text, mut thought, mut plain, mut signed) = (None, false, true, false);
        for (key, value) in part.entries() {
            match inside(key).unwrap_or_default() {
                "text" => text = inside(value),
                "thought" => thought = value.as_bool() == Some(true),
                "thoughtSignature" if !value.is_null() && !value.is_text("") => signed = true,
                _ => plain = false,
            }
        }
        match text {
            Some("") if plain && !signed => {}
            Some(text) if plain && !signed => {
                let fits = matches!(self.parts.last(), Some(Piece::Text { thought: own, .. }) if *own == thought);
                if !(goes_on && fits) {
                    self.parts.push(Piece::Text { text: Growing::default(), thought });
                }
                if let Some(Piece::Text { text: own, .. }) = self.parts.last_mut() {
                    own.append(text);
                    tell(own, thought, out);
                }
            }
            _ => {
                let text = text.map(|inside| {
                    let mut text = Growing::default();
                    text.append(inside);
                    tell(&mut text, thought, out);
                    (text, thought)
                });
                self.parts.push(Piece::Other { wire: part.to_owned(), text });
            }
        }
    }

    fn call(&mut self, part: JsonRef<'_>, inner: JsonRef<'_>, out: &mut Vec<StreamEvent>) {
        let name = said(inner.get("name"));
        let goes_on = inner.get("willContinue").and_then(JsonRef::as_bool) == Some(true);
        let partial = inner.find("partialArgs");
        if name.is_none()
            && let Some(Piece::Call(open @ Call { closed: false, pieces: Some(_), .. })) = self.parts.last_mut()
        {
            open.go_on(partial, goes_on, out);
            return;
        }
        let index = self.calls;
        self.calls += 1;
        let mut call = Call {
            index,
            id: said(inner.get("id")).unwrap_or_default().into_owned(),
            name: name.unwrap_or_default().into_owned(),
            wire: part.to_owned(),
            pieces: (goes_on || partial.is_some()).then(Pieces::default),
            closed: false,
        };
        out.push(StreamEvent::CallStarted { index, call_id: call.id.clone(), name: call.name.clone() });
        call.go_on(partial, goes_on, out);
        self.parts.push(Piece::Call(call));
    }

    fn status(&self, stopped: bool) -> AnswerStatus {
        if self.facts.error.is_some() {
            return AnswerStatus::Failed;
        }
        let ended = match self.facts.reason.as_deref() {
            Some(_) if self.withheld => AnswerStatus::Blocked,
            Some(reason) => ends_in(reason),
            None if self.whole => AnswerStatus::Complete,
            None => AnswerStatus::Truncated,
        };
        // It may stop in the middle of a call, too, or pieces of one were lost.
        let cut = ended == AnswerStatus::Complete && self.parts.iter().any(Piece::is_cut);
        if stopped || cut { AnswerStatus::Truncated } else { ended }
    }
}

/// The first of several candidates, which need not come first.
fn first(candidates: JsonRef<'_>) -> Option<JsonRef<'_>> {
    candidates.items().find(|one| one.find("index").and_then(JsonRef::as_u64).unwrap_or(0) == 0)
}

fn tell(text: &mut Growing, thought: bool, out: &mut Vec<StreamEvent>) {
    let event = if thought { StreamEvent::ReasoningDelta } else { StreamEvent::TextDelta };
    text.tell(event, out);
}

/// What a finish reason means. Calls end with STOP, too; a mock and some gateways have a word of their own for them.
fn ends_in(reason: &str) -> AnswerStatus {
    match reason {
        "STOP" | "FUNCTION_CALL" | "TOOL_CALLS" => AnswerStatus::Complete,
        // Its `continuationToken` belongs to the next request, not to the message: nothing here takes it.
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
        // MALFORMED_FUNCTION_CALL, UNEXPECTED_TOOL_CALL, OTHER, and what comes to be: nothing in it may run.
        _ => AnswerStatus::Failed,
    }
}

impl Piece {
    fn is_cut(&self) -> bool {
        matches!(self, Self::Call(call) if !call.closed || call.pieces.as_ref().is_some_and(|pieces| pieces.text().is_none()))
    }

    /// The part as a next request may carry it; none where it may not.
    fn wire(&self, complete: bool) -> Option<String> {
        let mut out = String::new();
        match self {
            Self::Text { text, thought } => {
                let mut part = ObjectWriter::new(&mut out);
                part.token("text", &text.to_str());
                if *thought {
                    part.bool("thought", true);
                }
                part.end();
            }
            Self::Other { wire, .. } => out.push_str(wire.as_str()),
            Self::Call(call) if call.assemble(complete).executable => call.write(&mut out),
            Self::Call(_) => return None,
        }
        Some(out)
    }
}

impl Call {
    fn go_on(&mut self, partial: Option<JsonRef<'_>>, goes_on: bool, out: &mut Vec<StreamEvent>) {
        if let Some(pieces) = &mut self.pieces {
            for piece in partial.unwrap_or_default().items() {
                pieces.add(piece);
            }
        }
        if goes_on {
            return;
        }
        self.closed = true;
        self.tell_end(out);
    }

    /// Tells the arguments, once: pieces that come by path are no pieces of their text.
    fn tell_end(&mut self, out: &mut Vec<StreamEvent>) {
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

    fn inner(&self) -> Option<JsonRef<'_>> {
        self.wire.view().get("functionCall")
    }

    /// The text of the arguments; none where they are no object.
    fn arguments(&self) -> Option<String> {
        if let Some(pieces) = &self.pieces {
            return pieces.text();
        }
        match self.inner().and_then(|inner| inner.find("args")) {
            None => Some("{}".to_owned()),
            Some(args) => args.is_object().then(|| args.as_raw().to_owned()),
        }
    }

    fn assemble(&self, complete: bool) -> AssembledCall {
        let arguments = self.arguments();
        let written = || self.inner().and_then(|inner| inner.find("args")).map_or("", JsonRef::as_raw).to_owned();
        AssembledCall {
            call_id: self.id.clone(),
            name: self.name.clone(),
            executable: complete && self.closed && arguments.is_some() && !self.name.is_empty(),
            arguments: JsonStr::new(&arguments.unwrap_or_else(written)),
        }
    }

    /// As it came; of pieces what they come to.
    fn write(&self, out: &mut String) {
        let (Some(_), Some(inner)) = (&self.pieces, self.inner()) else { return out.push_str(self.wire.as_str()) };
        let mut part = ObjectWriter::new(out);
        for (key, value) in self.wire.view().entries() {
            if value != inner {
                part.copy(key, value);
                continue;
            }
            let mut call = ObjectWriter::new(part.key_token(key.as_raw()));
            for (key, value) in inner.entries() {
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

impl Counts {
    /// Those of the prompt begin a count anew: a step of the server's own tools has none of what the one before had.
    fn take(&mut self, usage: JsonRef<'_>) {
        if usage.find("promptTokenCount").is_some() {
            *self = Self::default();
        }
        for (key, value) in usage.entries() {
            let own = match inside(key).unwrap_or_default() {
                "promptTokenCount" => &mut self.prompt,
                "toolUsePromptTokenCount" => &mut self.tools,
                "candidatesTokenCount" => &mut self.output,
                "thoughtsTokenCount" => &mut self.thoughts,
                "cachedContentTokenCount" => &mut self.cached,
                _ => continue,
            };
            *own = value.as_u64().or(*own);
        }
    }

    /// The cached tokens are among those of the prompt.
    fn sum(&self) -> Option<Usage> {
        self.prompt.or(self.output)?;
        let add = |a: Option<u64>, b: Option<u64>| a.unwrap_or(0).saturating_add(b.unwrap_or(0));
        Some(Usage {
            input: add(self.prompt, self.tools),
            output: add(self.output, self.thoughts),
            cached_input: self.cached,
            cache_write: None,
            reasoning: self.thoughts,
        })
    }
}
