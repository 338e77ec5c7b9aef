//! The interface `wire`: the stream assembler.

use super::bindings::exports::rethread::history::wire as wit;
use super::finding::dialect;
use crate::json::JsonStr;
use crate::provider::{AnswerStatus, Assembled, AssembledCall, StreamAssembler, StreamEvent, WireError};
use std::cell::RefCell;

/// The resource `stream-assembler`. A component has one thread, and its calls do not overlap.
pub struct StreamResource(RefCell<StreamAssembler>);

impl wit::GuestStreamAssembler for StreamResource {
    fn start(name: wit::Dialect) -> Result<wit::StreamAssembler, wit::Error> {
        let inner = StreamAssembler::new(dialect(&name)?);
        Ok(wit::StreamAssembler::new(Self(RefCell::new(inner))))
    }

    fn push(&self, bytes: Vec<u8>) -> Vec<wit::StreamEvent> {
        let mut events = Vec::new();
        self.0.borrow_mut().push(&bytes, &mut events);
        events.into_iter().map(Into::into).collect()
    }

    fn finish(assembler: wit::StreamAssembler) -> wit::Assembled {
        assembler.into_inner::<Self>().0.into_inner().finish().into()
    }
}

fn text(token: &JsonStr) -> String {
    token.decode().into_owned()
}

impl From<AssembledCall> for wit::ToolCall {
    fn from(call: AssembledCall) -> Self {
        Self { arguments: text(&call.arguments), call_id: call.call_id, name: call.name, executable: call.executable }
    }
}

impl From<WireError> for wit::WireError {
    fn from(error: WireError) -> Self {
        Self { code: error.code, message: error.message }
    }
}

impl From<StreamEvent> for wit::StreamEvent {
    fn from(event: StreamEvent) -> Self {
        match event {
            StreamEvent::TextDelta(token) => Self::TextDelta(text(&token)),
            StreamEvent::ReasoningDelta(token) => Self::ReasoningDelta(text(&token)),
            StreamEvent::CallStarted { index, call_id, name } => {
                Self::ToolCallStarted(wit::ToolCallStart { index, call_id, name })
            }
            StreamEvent::ArgumentsDelta { index, call_id, json } => {
                Self::ToolArguments(wit::ToolArgumentsDelta { index, call_id, json: text(&json) })
            }
            StreamEvent::CallReady { index, call } => {
                Self::ToolCallReady(wit::ToolCallEnd { index, call: call.into() })
            }
            StreamEvent::Usage(usage) => Self::Usage(usage.into()),
            StreamEvent::Error(error) => Self::Error(error.into()),
        }
    }
}

impl From<Assembled> for wit::Assembled {
    fn from(response: Assembled) -> Self {
        Self {
            status: match response.status {
                AnswerStatus::Complete => wit::AnswerStatus::Complete,
                AnswerStatus::Truncated => wit::AnswerStatus::Truncated,
                AnswerStatus::Incomplete => wit::AnswerStatus::Incomplete,
                AnswerStatus::Refused => wit::AnswerStatus::Refused,
                AnswerStatus::Blocked => wit::AnswerStatus::Blocked,
                AnswerStatus::Failed => wit::AnswerStatus::Failed,
            },
            finish_reason: response.finish_reason,
            response_id: response.response_id,
            text: text(&response.text),
            tool_calls: response.calls.into_iter().map(Into::into).collect(),
            usage: response.usage.map(Into::into),
            error: response.error.map(Into::into),
            wire: response.wire.map(|wire| wire.as_str().to_owned()),
        }
    }
}
