//! Assembles an Anthropic Messages response, streamed or whole.
//!
//! A block is kept as it came with its deltas applied, so that kinds of block that nobody knows yet return
//! unchanged. Only `tool_use` is a call of ours.

use crate::json::{Json, JsonRef, JsonStr, ObjectWriter};
use crate::message::Usage;
use crate::provider::assembled::{AnswerStatus, Assembled, AssembledCall, StreamEvent};
use crate::provider::assembler::{Assembling, Fields, Growing, Value, inside, said};
use crate::provider::facts::{Facts, malformed, message_of};
use crate::provider::latest_positions::LatestPositions;
use crate::text::has;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// An answer as it grows.
#[derive(Default)]
pub(crate) struct MessageAnswer {
    facts: Facts,
    blocks: Vec<Block>,
    positions: LatestPositions,
    calls: u32,
    /// Which block grew last.
    grew: usize,
    /// `message_stop` has come, or the body was whole.
    stopped: bool,
    counts: Counts,
    container: Option<String>,
}

/// What a block is to us.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BlockKind {
    Text,
    Thinking,
    /// A call, and its place among the calls.
    ToolUse(u32),
    Other,
}

struct Block {
    index: Option<u64>,
    kind: BlockKind,
    fields: Fields,
    /// The text of `input`, where it comes in pieces.
    input: Growing,
    closed: bool,
    /// The call has been told as whole.
    told: bool,
}

/// The token counts as the provider splits them: each event may bring some of them anew.
#[derive(Default)]
struct Counts {
    input: Option<u64>,
    output: Option<u64>,
    cache_read: Option<u64>,
    cache_write: Option<u64>,
    thinking: Option<u64>,
}

impl Assembling for MessageAnswer {
    fn event<'a>(&mut self, name: &str, data: JsonRef<'a>, out: &mut Vec<StreamEvent>) -> Option<&'a str> {
        // What follows the end is another response.
        if self.stopped || self.facts.error.is_some() {
            return None;
        }
        let mut event = Event::default();
        for (key, value) in data.entries() {
            match inside(key).unwrap_or_default() {
                "type" => event.kind = value.as_text(),
                "index" => event.index = value.as_u64(),
                "delta" => event.delta = Some(value),
                "content_block" => event.block = Some(value),
                "message" => event.message = Some(value),
                "usage" => event.usage = Some(value),
                "error" => event.error = Some(value),
                _ => {}
            }
        }
        match event.kind.as_deref().unwrap_or(name) {
            "content_block_delta" => return self.block_delta(&event, out),
            "content_block_start" => {
                if let Some(block) = event.block.filter(|block| block.is_object()) {
                    self.block_start(event.index, block, out);
                }
            }
            "content_block_stop" => {
                if let Some(block) = self.block(event.index) {
                    block.close(out);
                }
            }
            "message_start" => self.message_start(event.message.unwrap_or(data), out),
            "message_delta" => {
                if let Some(reason) = event.delta.and_then(|delta| said(delta.get("stop_reason"))) {
                    self.facts.reason = Some(reason.into_owned());
                }
                self.runs_in(event.delta.unwrap_or_default());
                self.count(event.usage, out);
            }
            "message_stop" => {
                self.stopped = true;
                self.blocks.iter_mut().for_each(|block| block.close(out));
            }
            // A gateway that sends the whole message as one event.
            "message" => self.read(data, out),
            "error" => self.facts.failed_as(event.error.unwrap_or(data), out),
            _ => self.facts.failed_as(event.error.unwrap_or_default(), out),
        }
        None
    }

    fn again(&mut self, fragment: &str, out: &mut Vec<StreamEvent>) {
        if let Some(block) = self.blocks.get_mut(self.grew) {
            if let Some(own) = block.growing() {
                own.append(fragment);
            }
            block.tell(out);
        }
    }

    fn whole(&mut self, body: JsonRef<'_>) {
        let out = &mut Vec::new();
        if let Some(error) = body.find("error").or_else(|| Some(body).filter(|body| body.get("content").is_none())) {
            self.facts.failed_as(error, out);
            if self.facts.error.is_none() || error == body && body.get("message").is_none() {
                self.facts.error = Some(malformed("the response has no content"));
            }
        } else {
            self.read(body, out);
        }
    }

    fn facts(&mut self) -> &mut Facts {
        &mut self.facts
    }

    fn container(&self) -> Option<&str> {
        self.container.as_deref()
    }

    fn assemble(&self, stopped: bool) -> Assembled {
        let status = self.status(stopped);
        let complete = status == AnswerStatus::Complete;
        let (mut text, mut calls, mut blocks) = (String::new(), Vec::new(), Vec::new());
        // What a model thought and called before another took over is neither run nor sent back; what it said is.
        let taken_over = self.blocks.iter().rposition(|block| block.is(&["fallback"])).unwrap_or(0);
        // A server goes on with its own call in an answer that goes on.
        let goes_on = complete || status == AnswerStatus::Incomplete && self.pauses();
        // White space is refused where no other words and no call stand beside it.
        let mute = self.blocks.iter().all(|block| match block.kind {
            BlockKind::Text => block.fields.decoded("text").trim().is_empty(),
            BlockKind::ToolUse(_) => !complete,
            _ => true,
        });
        let answered: BTreeSet<&str> = self.blocks.iter().filter_map(|block| block.inside("tool_use_id")).collect();
        for (at, block) in self.blocks.iter().enumerate() {
            let before = at < taken_over;
            match block.kind {
                BlockKind::Text => text.push_str(block.fields.text("text").map_or("", Growing::inside)),
                BlockKind::ToolUse(_) if !before => calls.push(block.assemble(complete)),
                _ => {}
            }
            let open = (before || !goes_on)
                && block.is(&["server_tool_use", "mcp_tool_use"])
                && !block.inside("id").is_some_and(|id| answered.contains(id));
            if !(open
                || mute && block.kind == BlockKind::Text
                || before && block.is(&["thinking", "redacted_thinking", "tool_use"]))
            {
                blocks.extend(block.wire(complete));
            }
        }
        self.facts.assembled(status, &text, calls, message_of("assistant", "content", &blocks))
    }
}

/// The members of one event.
#[derive(Default)]
struct Event<'a> {
    kind: Option<Cow<'a, str>>,
    index: Option<u64>,
    delta: Option<JsonRef<'a>>,
    block: Option<JsonRef<'a>>,
    message: Option<JsonRef<'a>>,
    usage: Option<JsonRef<'a>>,
    error: Option<JsonRef<'a>>,
}

impl MessageAnswer {
    /// A second one in a response is tolerated: it adds nothing but what is still unknown, and its counts.
    fn message_start(&mut self, message: JsonRef<'_>, out: &mut Vec<StreamEvent>) {
        self.facts.name(message, "id", "model");
        if self.blocks.is_empty() {
            self.content(message.get("content"), out);
        }
        self.count(message.get("usage"), out);
        self.runs_in(message);
    }

    /// Where code was run, said at the start or at the end.
    fn runs_in(&mut self, message: JsonRef<'_>) {
        if let Some(id) = message.find("container").and_then(|container| said(container.get("id"))) {
            self.container = Some(id.into_owned());
        }
    }

    /// A whole message.
    fn read(&mut self, message: JsonRef<'_>, out: &mut Vec<StreamEvent>) {
        self.message_start(message, out);
        if let Some(reason) = said(message.get("stop_reason")) {
            self.facts.reason = Some(reason.into_owned());
        }
        self.stopped = true;
    }

    fn content(&mut self, content: Option<JsonRef<'_>>, out: &mut Vec<StreamEvent>) {
        let Some(content) = content else { return };
        if let Some(text) = content.as_json_str() {
            self.block_start(None, text_block(&text).view(), out);
        }
        content.items().filter(|block| block.is_object()).for_each(|block| self.block_start(None, block, out));
        self.blocks.iter_mut().for_each(|block| block.close(out));
    }

    fn count(&mut self, usage: Option<JsonRef<'_>>, out: &mut Vec<StreamEvent>) {
        let Some(usage) = usage else { return };
        self.counts.merge(usage);
        self.facts.count(self.counts.sum(), out);
    }

    fn block_start(&mut self, index: Option<u64>, block: JsonRef<'_>, out: &mut Vec<StreamEvent>) {
        let fields = Fields::read(block);
        let kind = match fields.text("type").map(Growing::inside) {
            Some("text") => BlockKind::Text,
            Some("thinking") => BlockKind::Thinking,
            Some("tool_use") => {
                self.calls += 1;
                BlockKind::ToolUse(self.calls - 1)
            }
            _ => BlockKind::Other,
        };
        let mut block = Block { index, kind, fields, input: Growing::default(), closed: false, told: false };
        if let BlockKind::ToolUse(index) = kind {
            let (call_id, name) = (block.fields.decoded("id"), block.fields.decoded("name"));
            out.push(StreamEvent::CallStarted { index, call_id, name });
        }
        block.tell(out);
        if let Some(index) = block.index {
            self.positions.record_index(index, self.blocks.len());
        }
        self.blocks.push(block);
    }

    /// The block of that index; of reused ones the last. Without an index the last block.
    fn block(&mut self, index: Option<u64>) -> Option<&mut Block> {
        self.grew = match index {
            Some(index) => self.positions.with_index(index)?,
            None => self.blocks.len().checked_sub(1)?,
        };
        self.blocks.get_mut(self.grew)
    }

    /// Gives the fragment by which it lengthened the one string of the block that grows, if it did nothing else.
    fn block_delta<'a>(&mut self, event: &Event<'a>, out: &mut Vec<StreamEvent>) -> Option<&'a str> {
        let delta = event.delta?;
        if self.block(event.index).is_none() {
            // A gateway that never opens its blocks. What a call without a start is called, nobody knows.
            let blank = JsonStr::new("");
            let start = match said(delta.get("type")).as_deref() {
                Some("text_delta") => text_block(&blank),
                Some("thinking_delta") => ObjectWriter::build(|block| {
                    block.text("type", "thinking").token("thinking", &blank).token("signature", &blank);
                }),
                _ => return None,
            };
            self.block_start(event.index, start.view(), out);
        }
        let block = self.block(event.index)?;
        let fragment = block.apply(delta);
        block.tell(out);
        fragment
    }

    /// Whether the server is to go on with the answer as it stands.
    fn pauses(&self) -> bool {
        matches!(self.facts.reason.as_deref(), Some("pause_turn" | "compaction"))
    }

    fn status(&self, stopped: bool) -> AnswerStatus {
        match self.facts.reason.as_deref() {
            _ if self.facts.error.is_some() => AnswerStatus::Failed,
            _ if stopped || !self.stopped => AnswerStatus::Truncated,
            _ if self.pauses() => AnswerStatus::Incomplete,
            Some("max_tokens" | "model_context_window_exceeded") => AnswerStatus::Incomplete,
            Some("refusal") => AnswerStatus::Refused,
            _ => AnswerStatus::Complete,
        }
    }
}

impl Block {
    /// Whether it is of one of these types.
    fn is(&self, kinds: &[&str]) -> bool {
        self.inside("type").is_some_and(|kind| kinds.contains(&kind))
    }

    /// The inside of a member's token.
    fn inside(&self, name: &str) -> Option<&str> {
        self.fields.text(name).map(Growing::inside)
    }

    /// The string that most of the block's deltas lengthen.
    fn growing(&mut self) -> Option<&mut Growing> {
        match self.kind {
            BlockKind::Text => self.fields.text_mut("text"),
            BlockKind::Thinking => self.fields.text_mut("thinking"),
            BlockKind::ToolUse(_) | BlockKind::Other => Some(&mut self.input),
        }
    }

    /// Any delta: strings go on, arrays too, and what is neither replaces.
    fn apply<'a>(&mut self, delta: JsonRef<'a>) -> Option<&'a str> {
        let (mut members, mut fragment) = (0, None);
        for (key, value) in delta.entries() {
            members += usize::from(!key.is_text("type"));
            match (inside(key).unwrap_or_default(), self.kind) {
                ("text", BlockKind::Text)
                | ("thinking", BlockKind::Thinking)
                | ("partial_json", BlockKind::ToolUse(_) | BlockKind::Other) => fragment = inside(value),
                _ => {}
            }
            match inside(key).unwrap_or_default() {
                "type" => {}
                "partial_json" => self.input.append(inside(value).unwrap_or_default()),
                "citation" => self.fields.push_item("citations", value),
                // A signature is one value, not a text.
                "signature" => self.fields.merge(key, value, false),
                // What else a delta counts (`estimated_tokens`) is no member of the block: it would be refused.
                name if name != "thinking" && self.kind == BlockKind::Thinking => {}
                _ => self.fields.merge(key, value, true),
            }
        }
        fragment.filter(|_| members == 1)
    }

    /// Tells what is new in it.
    fn tell(&mut self, out: &mut Vec<StreamEvent>) {
        match self.kind {
            BlockKind::Text => {
                if let Some(text) = self.fields.text_mut("text") {
                    text.tell(StreamEvent::TextDelta, out);
                }
            }
            BlockKind::Thinking => {
                if let Some(text) = self.fields.text_mut("thinking") {
                    text.tell(StreamEvent::ReasoningDelta, out);
                }
            }
            BlockKind::ToolUse(index) => {
                self.input.tell_arguments(index, &self.fields.decoded("id"), out);
            }
            BlockKind::Other => {}
        }
    }

    fn close(&mut self, out: &mut Vec<StreamEvent>) {
        self.closed = true;
        if let (BlockKind::ToolUse(index), false) = (self.kind, self.told) {
            self.told = true;
            out.push(StreamEvent::CallReady { index, call: self.assemble(false) });
        }
    }

    /// The pieces of `input`, joined: JSON text that the model wrote. A lone surrogate stands in it as its escape,
    /// since no text can hold it.
    fn written(&self) -> String {
        JsonStr::from_inside(&keep_lone_surrogates(self.input.inside())).decode().into_owned()
    }

    /// The text of `input`, if it is an object. The block begins with a placeholder, `{}`; so no pieces mean that.
    fn input(&self) -> Option<String> {
        let written = self.written();
        if !written.trim().is_empty() {
            return JsonRef::parse(&written)
                .ok()
                .filter(|value| value.is_object())
                .map(|value| value.as_raw().to_owned());
        }
        match self.fields.get("input") {
            None => Some("{}".to_owned()),
            Some(Value::Raw(raw)) if raw == "null" => Some("{}".to_owned()),
            Some(Value::Raw(raw)) if raw.starts_with('{') => Some(raw.clone()),
            Some(_) => None,
        }
    }

    fn assemble(&self, complete: bool) -> AssembledCall {
        let input = self.input();
        let name = self.fields.decoded("name");
        AssembledCall {
            executable: complete && self.closed && input.is_some() && !name.is_empty(),
            call_id: self.fields.decoded("id"),
            name,
            arguments: JsonStr::new(&input.unwrap_or_else(|| self.written())),
        }
    }

    /// The block as a next request may carry it; none where it may not.
    fn wire(&self, complete: bool) -> Option<String> {
        let blank = |name| self.fields.text(name).is_none_or(Growing::is_empty);
        // The API refuses an empty text, and thinking without its signature, which comes last.
        let left_out = match self.kind {
            BlockKind::Text => blank("text"),
            BlockKind::Thinking => !self.closed && blank("signature"),
            BlockKind::ToolUse(_) => !self.assemble(complete).executable,
            BlockKind::Other => !self.closed && self.fields.get("input").is_some(),
        };
        if left_out {
            return None;
        }
        let input = match self.kind {
            BlockKind::ToolUse(_) => Some(self.input()?),
            _ if self.input.is_empty() => None,
            _ => Some(self.input()?),
        };
        let mut out = String::new();
        let mut block = ObjectWriter::new(&mut out);
        let mut written = false;
        for (key, value) in self.fields.entries() {
            if let (Some(input), "input") = (&input, key.as_str()) {
                block.raw("input", input);
                written = true;
            } else if !(key == "citations" && self.kind == BlockKind::Text && value.says_nothing()) {
                value.write(block.key_inside(key));
            }
        }
        if let (Some(input), false) = (&input, written) {
            block.raw("input", input);
        }
        block.end();
        Some(out)
    }
}

impl Counts {
    fn merge(&mut self, usage: JsonRef<'_>) {
        for (key, value) in usage.entries() {
            let own = match inside(key).unwrap_or_default() {
                "input_tokens" => &mut self.input,
                "output_tokens" => &mut self.output,
                "cache_read_input_tokens" => &mut self.cache_read,
                "cache_creation_input_tokens" => &mut self.cache_write,
                "output_tokens_details" => {
                    self.thinking = value.get("thinking_tokens").and_then(JsonRef::as_u64).or(self.thinking);
                    continue;
                }
                _ => continue,
            };
            *own = value.as_u64().or(*own);
        }
    }

    /// The provider leaves the cached tokens out of its `input_tokens`.
    fn sum(&self) -> Option<Usage> {
        self.input.or(self.output)?;
        let parts = [self.input, self.cache_read, self.cache_write];
        Some(Usage {
            input: parts.into_iter().flatten().fold(0, u64::saturating_add),
            output: self.output.unwrap_or(0),
            cached_input: self.cache_read,
            cache_write: self.cache_write,
            reasoning: self.thinking,
        })
    }
}

fn text_block(text: &JsonStr) -> Json {
    ObjectWriter::build(|block| _ = block.text("type", "text").token("text", text))
}

/// JSON text inside a JSON string: doubles the backslash of each lone surrogate's escape, so that decoding the
/// string leaves the escape standing in the text, where it means the same.
fn keep_lone_surrogates(inside: &str) -> Cow<'_, str> {
    if !has(inside, "\\ud") && !has(inside, "\\uD") {
        return Cow::Borrowed(inside);
    }
    let unit = |text: &str| u32::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok();
    let mut out = String::with_capacity(inside.len());
    let mut rest = inside;
    while let Some((before, tail)) = rest.find('\\').and_then(|at| rest.split_at_checked(at)) {
        out.push_str(before);
        let low_follows = || tail.get(6..).and_then(unit).is_some_and(|low| (0xdc00..0xe000).contains(&low));
        let used = match unit(tail) {
            Some(0xd800..0xdc00) if low_follows() => 12,
            Some(0xd800..0xe000) => {
                out.push('\\');
                6
            }
            Some(_) => 6,
            None => 2,
        };
        let (escape, after) = tail.split_at_checked(used).unwrap_or((tail, ""));
        out.push_str(escape);
        rest = after;
    }
    out.push_str(rest);
    Cow::Owned(out)
}
