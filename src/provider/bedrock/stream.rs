//! Assembles a response of Converse or ConverseStream.
//!
//! The name of an event is the type of its frame, or the member of the object that the AWS SDK returns for it:
//! `{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"text":"Hi"}}}`.

mod block;
#[cfg(test)]
mod tests;
mod usage;

use super::frames::{EXCEPTION, EventFrames};
use crate::json::{JsonKind, JsonRef};
use crate::provider::stream::{
    AnswerBlock, AnswerReader, AnswerStatus, Assembled, FrameReader, LatestPositions, ResponseMeta, StreamEvent,
    WireError, malformed, message_of, non_empty_text, read_error,
};
use block::{StreamBlock, StreamBlockKind};

/// The types of events.
const EVENTS: [&str; 6] =
    ["messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata"];

/// A response in progress.
#[derive(Default)]
pub(crate) struct BedrockAssembler {
    meta: ResponseMeta,
    blocks: Vec<StreamBlock>,
    positions: LatestPositions,
    call_count: u32,
    /// The position of the block that the last delta extended.
    last_extended: usize,
    /// `messageStop` arrived, or the body was a whole response.
    stopped: bool,
}

impl AnswerReader for BedrockAssembler {
    fn read_event<'a>(&mut self, name: &str, data: JsonRef<'a>, out: &mut Vec<StreamEvent>) -> Option<&'a str> {
        if self.meta.error.is_some() {
            return None;
        }
        let is_event = |name: &str| EVENTS.contains(&name) || name.ends_with(EXCEPTION);
        if is_event(name) {
            return self.read_named(name, data, out);
        }
        let member = data.entries().filter(|(_, value)| value.is_object()).find_map(|(key, value)| {
            let key = key.as_text()?;
            is_event(&key).then_some((key, value))
        });
        if let Some((name, value)) = member {
            return self.read_named(&name, value, out);
        }
        if let Some(output) = data.find("output") {
            self.read_response(data, output, out);
        } else if let Some(error) = data.find("error") {
            self.meta.report_error_object(error, out);
        } else if name == "error" {
            self.meta.report_error(error_of(data), out);
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
        match body.find("output") {
            Some(output) => self.read_response(body, output, out),
            None if EVENTS.iter().any(|event| body.find(event).is_some()) => _ = self.read_event("", body, out),
            None => {
                let exception = body.entries().find_map(|(key, value)| {
                    let key = key.as_text().filter(|key| key.ends_with(EXCEPTION))?;
                    Some((key.into_owned(), value))
                });
                match (exception, body.find("error")) {
                    (Some((name, value)), _) => _ = self.read_named(&name, value, out),
                    (None, Some(error)) => self.meta.report_error_object(error, out),
                    (None, None) => self.meta.set_error(error_of(body)),
                }
                self.meta.error.get_or_insert_with(|| malformed("the response has no output"));
            }
        }
    }

    fn frames(&self) -> Option<Box<dyn FrameReader>> {
        Some(Box::new(EventFrames::default()))
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

    fn assemble(&self, stopped: bool) -> Assembled {
        let status = self.status(stopped);
        let complete = status == AnswerStatus::Complete;
        let (mut text, mut calls, mut blocks) = (String::new(), Vec::new(), Vec::new());
        for block in &self.blocks {
            text.push_str(block.visible_text());
            if matches!(block.kind, StreamBlockKind::ToolCall(_)) {
                calls.push(block.assemble_call(complete));
            }
            blocks.extend(block.to_wire(complete));
        }
        self.meta.assembled(status, &text, calls, message_of("assistant", "content", &blocks))
    }
}

/// Returns the error that a body or an exception describes: `{"message":"…"}`, `{"Message":"…"}`, or
/// `{"__type":"com.amazon.coral.service#ValidationException","message":"…"}`.
fn error_of(body: JsonRef<'_>) -> WireError {
    let message = non_empty_text(body.get("message")).or_else(|| non_empty_text(body.get("Message")));
    let kind = non_empty_text(body.get("__type")).or_else(|| non_empty_text(body.get("code")));
    let code = kind.as_deref().map(|kind| kind.rsplit('#').next().unwrap_or_default().to_owned());
    match message {
        Some(message) => WireError { code, message: message.into_owned() },
        None => read_error(body).filter(|_| code.is_some()).unwrap_or_else(|| malformed("the response has no output")),
    }
}

impl BedrockAssembler {
    /// Reads an event by its name.
    fn read_named<'a>(&mut self, name: &str, data: JsonRef<'a>, out: &mut Vec<StreamEvent>) -> Option<&'a str> {
        let index = data.get("contentBlockIndex").and_then(JsonRef::as_u64);
        match name {
            // Counts follow the end of the message.
            "metadata" => self.meta.update_usage(usage::read(data.get("usage")), out),
            _ if name.ends_with(EXCEPTION) => {
                let error = error_of(data);
                self.meta.report_error(WireError { code: Some(name.to_owned()), ..error }, out);
            }
            // Other events after the end belong to another response.
            _ if self.stopped => {}
            "contentBlockDelta" => return self.apply_delta(index, data.get("delta")?, out),
            "contentBlockStart" => {
                if let Some(start) = data.get("start").filter(|start| start.is_object()) {
                    self.add(StreamBlock::started(index, start, self.call_count), out);
                }
            }
            "contentBlockStop" => {
                if let Some(block) = self.block_mut(index) {
                    block.close(out);
                }
            }
            "messageStop" => {
                self.meta.finish_reason = non_empty_text(data.get("stopReason")).map(Into::into);
                self.stop(out);
            }
            _ => {}
        }
        None
    }

    fn stop(&mut self, out: &mut Vec<StreamEvent>) {
        self.stopped = true;
        self.blocks.iter_mut().for_each(|block| block.close(out));
    }

    /// Reads a whole response.
    fn read_response(&mut self, body: JsonRef<'_>, output: JsonRef<'_>, out: &mut Vec<StreamEvent>) {
        let message = output.find("message").unwrap_or_default();
        let content = message.get("content").filter(|content| content.kind() == JsonKind::Array).unwrap_or_default();
        for block in content.items().filter(|block| block.is_object()) {
            self.add(StreamBlock::whole(block, self.call_count), out);
        }
        if self.meta.finish_reason.is_none() {
            self.meta.finish_reason = non_empty_text(body.get("stopReason")).map(Into::into);
        }
        self.meta.update_usage(usage::read(body.get("usage")), out);
        self.stop(out);
    }

    fn add(&mut self, mut block: StreamBlock, out: &mut Vec<StreamEvent>) {
        if matches!(block.kind, StreamBlockKind::ToolCall(_)) {
            self.call_count += 1;
        }
        block.emit_start(out);
        if let Some(index) = block.index {
            self.positions.record_index(index, self.blocks.len());
        }
        self.blocks.push(block);
    }

    /// Returns the block with that index, the latest one if an index is used twice; without an index the last block.
    fn block_mut(&mut self, index: Option<u64>) -> Option<&mut StreamBlock> {
        self.last_extended = match index {
            Some(index) => self.positions.with_index(index)?,
            None => self.blocks.len().checked_sub(1)?,
        };
        self.blocks.get_mut(self.last_extended)
    }

    /// Applies a delta. Texts and reasoning have no start. Returns the fragment that it appended to the block's
    /// string if that was its only effect.
    fn apply_delta<'a>(
        &mut self,
        index: Option<u64>,
        delta: JsonRef<'a>,
        out: &mut Vec<StreamEvent>,
    ) -> Option<&'a str> {
        if self.block_mut(index).is_none() {
            // A call cannot be started here: its name is unknown.
            let block = StreamBlock::of_delta(index, delta)?;
            self.add(block, out);
        }
        let block = self.block_mut(index)?;
        let fragment = block.apply_delta(delta);
        block.emit_new_text(out);
        fragment
    }

    fn status(&self, stopped: bool) -> AnswerStatus {
        match self.meta.finish_reason.as_deref() {
            _ if self.meta.error.is_some() => AnswerStatus::Failed,
            _ if stopped || !self.stopped => AnswerStatus::Truncated,
            Some("max_tokens" | "model_context_window_exceeded") => AnswerStatus::Incomplete,
            Some("guardrail_intervened" | "content_filtered") => AnswerStatus::Blocked,
            Some("refusal") => AnswerStatus::Refused,
            // No call of it may run.
            Some("malformed_model_output" | "malformed_tool_use") => AnswerStatus::Failed,
            _ => AnswerStatus::Complete,
        }
    }
}
