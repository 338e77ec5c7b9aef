//! Assembles an Anthropic Messages response, streamed or whole.

mod block;
mod usage;

use crate::id::{IdMap, Seed};
use crate::json::{JsonKind, JsonRef, JsonStr};
use crate::provider::stream::LatestPositions;
use crate::provider::stream::{AnswerBlock, AnswerReader, inside, non_empty_text};
use crate::provider::stream::{AnswerStatus, Assembled, StreamEvent};
use crate::provider::stream::{InputTransformation, TransformationEffect, TransformedPlace};
use crate::provider::stream::{MetaMembers, ResponseMeta, malformed, message_of};
use block::{StreamBlock, StreamBlockKind, empty_thinking_block, text_block};
use std::borrow::Cow;
use usage::AnthropicUsage;

const META_MEMBERS: MetaMembers = MetaMembers { id: "id", model: "model" };

/// An Anthropic response in progress.
#[derive(Default)]
pub(crate) struct AnthropicAssembler {
    meta: ResponseMeta,
    blocks: Vec<StreamBlock>,
    positions: LatestPositions,
    call_count: u32,
    /// The position of the block that the last delta extended.
    last_extended: usize,
    /// `message_stop` arrived, or the body was a whole message.
    stopped: bool,
    usage: AnthropicUsage,
    container: Option<String>,
}

/// The members of one event of the stream.
#[derive(Default)]
struct AnthropicEvent<'a> {
    kind: Option<Cow<'a, str>>,
    index: Option<u64>,
    delta: Option<JsonRef<'a>>,
    block: Option<JsonRef<'a>>,
    message: Option<JsonRef<'a>>,
    usage: Option<JsonRef<'a>>,
    error: Option<JsonRef<'a>>,
    transformations: Option<JsonRef<'a>>,
}

impl<'a> AnthropicEvent<'a> {
    fn new(data: JsonRef<'a>) -> Self {
        let mut event = Self::default();
        for (key, value) in data.entries() {
            match inside(key).unwrap_or_default() {
                "type" => event.kind = value.as_text(),
                "index" => event.index = value.as_u64(),
                "delta" => event.delta = Some(value),
                "content_block" => event.block = Some(value),
                "message" => event.message = Some(value),
                "usage" => event.usage = Some(value),
                "error" => event.error = Some(value),
                "input_transformations" => event.transformations = Some(value),
                _ => {}
            }
        }
        event
    }
}

impl AnthropicAssembler {
    /// Reports an error. A 400 has a code of its own in its details: `"details":{"error_code":"thread_not_found"}`.
    fn report_error(&mut self, error: JsonRef<'_>, out: &mut Vec<StreamEvent>) {
        let code = error.get("details").and_then(|details| details.text("error_code"));
        self.meta.report_coded_error(error, code.map(Cow::into_owned), out);
    }
}

impl AnswerReader for AnthropicAssembler {
    fn read_event<'a>(&mut self, name: &str, data: JsonRef<'a>, out: &mut Vec<StreamEvent>) -> Option<&'a str> {
        // Events after the end belong to another response.
        if self.stopped || self.meta.error.is_some() {
            return None;
        }
        let event = AnthropicEvent::new(data);
        match event.kind.as_deref().unwrap_or(name) {
            "content_block_delta" => return self.apply_block_delta(&event, out),
            "content_block_start" => {
                if let Some(block) = event.block.filter(|block| block.is_object()) {
                    self.start_block(event.index, block, out);
                }
            }
            "content_block_stop" => {
                if let Some(block) = self.block_mut(event.index) {
                    block.close(out);
                }
            }
            "message_start" => self.start_message(event.message.unwrap_or(data), out),
            "message_delta" => {
                if let Some(reason) = event.delta.and_then(|delta| non_empty_text(delta.get("stop_reason"))) {
                    self.meta.finish_reason = Some(reason.into_owned());
                }
                self.read_container(event.delta.unwrap_or_default());
                self.read_transformations(event.transformations);
                self.merge_usage(event.usage, out);
            }
            "message_stop" => {
                self.stopped = true;
                self.blocks.iter_mut().for_each(|block| block.close(out));
            }
            // Some gateways send the whole message as one event.
            "message" => self.read_message(data, out),
            "error" => self.report_error(event.error.unwrap_or(data), out),
            _ => self.report_error(event.error.unwrap_or_default(), out),
        }
        None
    }

    fn read_fragment(&mut self, fragment: &str, out: &mut Vec<StreamEvent>) {
        if let Some(block) = self.blocks.get_mut(self.last_extended) {
            block.append_fragment(fragment);
            block.emit_new_text(out);
        }
    }

    fn read_body(&mut self, body: JsonRef<'_>) {
        let out = &mut Vec::new();
        if let Some(error) = body.find("error").or_else(|| Some(body).filter(|body| body.get("content").is_none())) {
            self.report_error(error, out);
            if self.meta.error.is_none() || error == body && body.get("message").is_none() {
                self.meta.error = Some(malformed("the response has no content"));
            }
        } else {
            self.read_message(body, out);
        }
    }

    fn meta(&self) -> &ResponseMeta {
        &self.meta
    }

    fn meta_mut(&mut self) -> &mut ResponseMeta {
        &mut self.meta
    }

    fn visit_blocks(&self, visit: &mut dyn FnMut(AnswerBlock<'_>)) {
        for (key, block) in (0..).zip(&self.blocks) {
            block.visit(key, visit);
        }
    }

    fn container(&self) -> Option<&str> {
        self.container.as_deref()
    }

    fn assemble(&self, stopped: bool) -> Assembled {
        let status = self.status(stopped);
        let complete = status == AnswerStatus::Complete;
        let (mut text, mut calls, mut blocks) = (String::new(), Vec::new(), Vec::new());
        // After a `fallback` block another model wrote the answer. The thinking and calls before it are neither run nor
        // sent back; the text is.
        let fallback_at = self.blocks.iter().rposition(|block| block.has_type(&["fallback"])).unwrap_or(0);
        // The server executes an open call of its own tools when a paused answer is continued.
        let server_continues = complete || status == AnswerStatus::Incomplete && self.is_paused();
        let omits_text = self.has_only_blank_text(complete);
        let mut result_ids = IdMap::with_seed(Seed::default());
        for id in self.blocks.iter().filter_map(|block| block.string_member("tool_use_id")) {
            result_ids.insert_new(id, ());
        }
        for (at, block) in self.blocks.iter().enumerate() {
            let before_fallback = at < fallback_at;
            match block.kind {
                StreamBlockKind::Text => text.push_str(block.string_member("text").unwrap_or_default()),
                StreamBlockKind::ToolCall(_) if !before_fallback => calls.push(block.assemble_call(complete)),
                _ => {}
            }
            let is_abandoned_server_call = (before_fallback || !server_continues)
                && block.has_type(&["server_tool_use", "mcp_tool_use"])
                && !block.string_member("id").is_some_and(|id| result_ids.contains_key(id));
            let is_omitted = is_abandoned_server_call
                || omits_text && block.kind == StreamBlockKind::Text
                || before_fallback && block.has_type(&["thinking", "redacted_thinking", "tool_use"]);
            if !is_omitted {
                blocks.extend(block.to_wire(complete));
            }
        }
        self.meta.assembled(status, &text, calls, message_of("assistant", "content", &blocks))
    }
}

impl AnthropicAssembler {
    /// Reads the message of a `message_start` event. Some gateways send a second one: it only fills in what is missing,
    /// and updates the counts.
    fn start_message(&mut self, message: JsonRef<'_>, out: &mut Vec<StreamEvent>) {
        self.meta.set_id_and_model(message, &META_MEMBERS);
        if self.blocks.is_empty() {
            self.read_content(message.get("content"), out);
        }
        self.merge_usage(message.get("usage"), out);
        self.read_container(message);
        self.read_transformations(message.get("input_transformations"));
    }

    /// Reads what became of thinking in the request, from a message or, if another model went on with the answer, from
    /// its last delta: `{"type":"thinking_dropped","path":"messages.1.content.0","reason":"prefix_binding_mismatch"}`.
    /// Other types are ignored.
    fn read_transformations(&mut self, list: Option<JsonRef<'_>>) {
        let Some(list) = list.filter(|list| list.kind() == JsonKind::Array) else { return };
        let read = |entry: JsonRef<'_>| {
            let effect = match &*entry.text("type")? {
                "thinking_dropped" => TransformationEffect::Dropped,
                "thinking_mismatch_allowed" => TransformationEffect::Kept,
                _ => return None,
            };
            let place = InputTransformation::pointer(&entry.text("path")?).map(TransformedPlace::Path);
            let reason = InputTransformation::word(&entry.string("reason"));
            Some(InputTransformation { place: place.unwrap_or_default(), reason, effect })
        };
        self.meta.transformations = list.items().filter_map(read).collect();
    }

    /// Reads the id of the code execution container, `"container":{"id":"container_01…"}`, from a message or its last
    /// delta.
    fn read_container(&mut self, message: JsonRef<'_>) {
        if let Some(id) = message.find("container").and_then(|container| non_empty_text(container.get("id"))) {
            self.container = Some(id.into_owned());
        }
    }

    /// Reads a whole message.
    fn read_message(&mut self, message: JsonRef<'_>, out: &mut Vec<StreamEvent>) {
        self.start_message(message, out);
        if let Some(reason) = non_empty_text(message.get("stop_reason")) {
            self.meta.finish_reason = Some(reason.into_owned());
        }
        self.stopped = true;
    }

    fn read_content(&mut self, content: Option<JsonRef<'_>>, out: &mut Vec<StreamEvent>) {
        let Some(content) = content else { return };
        if let Some(text) = content.as_json_str() {
            self.start_block(None, text_block(&text).view(), out);
        }
        content.items().filter(|block| block.is_object()).for_each(|block| self.start_block(None, block, out));
        self.blocks.iter_mut().for_each(|block| block.close(out));
    }

    fn merge_usage(&mut self, usage: Option<JsonRef<'_>>, out: &mut Vec<StreamEvent>) {
        let Some(usage) = usage else { return };
        self.usage.merge(usage);
        self.meta.update_usage(self.usage.total(), out);
    }

    fn start_block(&mut self, index: Option<u64>, block: JsonRef<'_>, out: &mut Vec<StreamEvent>) {
        let mut block = StreamBlock::new(index, block, self.call_count);
        if matches!(block.kind, StreamBlockKind::ToolCall(_)) {
            self.call_count += 1;
        }
        block.emit_start(out);
        if let Some(index) = block.index {
            self.positions.record_index(index, self.blocks.len());
        }
        self.blocks.push(block);
    }

    /// Returns the block with that stream index, the latest one if an index is used twice; without an index the last
    /// block.
    fn block_mut(&mut self, index: Option<u64>) -> Option<&mut StreamBlock> {
        self.last_extended = match index {
            Some(index) => self.positions.with_index(index)?,
            None => self.blocks.len().checked_sub(1)?,
        };
        self.blocks.get_mut(self.last_extended)
    }

    /// Applies a `content_block_delta`. Returns the fragment that it appended to the block's string if that was its
    /// only effect.
    fn apply_block_delta<'a>(&mut self, event: &AnthropicEvent<'a>, out: &mut Vec<StreamEvent>) -> Option<&'a str> {
        let delta = event.delta?;
        if self.block_mut(event.index).is_none() {
            // Some gateways send no `content_block_start`. A call cannot be started here: its name is unknown.
            let start = match non_empty_text(delta.get("type")).as_deref() {
                Some("text_delta") => text_block(&JsonStr::new("")),
                Some("thinking_delta") => empty_thinking_block(),
                _ => return None,
            };
            self.start_block(event.index, start.view(), out);
        }
        let block = self.block_mut(event.index)?;
        let fragment = block.apply_delta(delta);
        block.emit_new_text(out);
        fragment
    }

    /// Returns true if the message has no content beside text of white space only, which Anthropic rejects in a message
    /// without other text and without a call. A call counts only if `complete`: otherwise it is omitted.
    fn has_only_blank_text(&self, complete: bool) -> bool {
        self.blocks.iter().all(|block| match block.kind {
            StreamBlockKind::Text => block.is_blank_text(),
            StreamBlockKind::ToolCall(_) => !complete,
            StreamBlockKind::Thinking | StreamBlockKind::Other => true,
        })
    }

    /// Returns true if the answer is to be sent back unchanged, so that the server continues it.
    fn is_paused(&self) -> bool {
        matches!(self.meta.finish_reason.as_deref(), Some("pause_turn" | "compaction"))
    }

    fn status(&self, stopped: bool) -> AnswerStatus {
        match self.meta.finish_reason.as_deref() {
            _ if self.meta.error.is_some() => AnswerStatus::Failed,
            _ if stopped || !self.stopped => AnswerStatus::Truncated,
            _ if self.is_paused() => AnswerStatus::Incomplete,
            Some("max_tokens" | "model_context_window_exceeded") => AnswerStatus::Incomplete,
            Some("refusal") => AnswerStatus::Refused,
            _ => AnswerStatus::Complete,
        }
    }
}
