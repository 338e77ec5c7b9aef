//! Writes stream events and assembled responses as the TypeScript types declare them.

use super::{Assembled, AssembledCall, StreamEvent, WireError};
use crate::history::write_usage;
use crate::json::ObjectWriter;

impl StreamEvent {
    /// Writes the members of a `StreamEvent`.
    pub fn write(&self, out: &mut ObjectWriter<'_>) {
        match self {
            Self::TextDelta(text) => out.text("type", "text_delta").token("text", text),
            Self::ReasoningDelta(text) => out.text("type", "reasoning_delta").token("text", text),
            Self::CallStarted { index, call_id, name } => out
                .text("type", "tool_call_started")
                .number("index", u64::from(*index))
                .text("callId", call_id)
                .text("name", name),
            Self::ArgumentsDelta { index, call_id, json } => out
                .text("type", "tool_arguments_delta")
                .number("index", u64::from(*index))
                .text("callId", call_id)
                .token("json", json),
            Self::CallReady { index, call } => out
                .text("type", "tool_call_ready")
                .number("index", u64::from(*index))
                .object("call", |out| call.write(out)),
            Self::Usage(usage) => {
                write_usage(out.text("type", "usage"), "usage", Some(*usage));
                out
            }
            Self::Error(error) => out.text("type", "error").object("error", |out| error.write(out)),
        };
    }
}

impl AssembledCall {
    /// Writes the members of a `ToolCall`.
    pub fn write(&self, out: &mut ObjectWriter<'_>) {
        out.text("callId", &self.call_id)
            .text("name", &self.name)
            .token("arguments", &self.arguments)
            .bool("executable", self.executable);
    }
}

impl WireError {
    /// Writes the members of an error.
    pub fn write(&self, out: &mut ObjectWriter<'_>) {
        if let Some(code) = &self.code {
            out.text("code", code);
        }
        out.text("message", &self.message);
    }
}

impl Assembled {
    /// Writes the members of an `AssembledResponse`.
    pub fn write(&self, out: &mut ObjectWriter<'_>) {
        out.text("status", self.status.as_str())
            .text_or_null("finishReason", self.finish_reason.as_deref())
            .text_or_null("responseId", self.response_id.as_deref())
            .token("text", &self.text)
            .array("toolCalls", |calls| {
                for call in &self.calls {
                    calls.object(|out| call.write(out));
                }
            });
        write_usage(out, "usage", self.usage);
        match &self.error {
            Some(error) => out.object("error", |out| error.write(out)),
            None => out.raw("error", "null"),
        };
        match &self.wire {
            Some(wire) => out.json("wire", wire.view()),
            None => out.raw("wire", "null"),
        };
    }
}
