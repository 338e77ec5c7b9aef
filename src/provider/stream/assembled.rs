//! What a response, streamed or whole, comes to.

use crate::json::{Json, JsonStr};
use crate::message::Usage;

/// What the bytes of a stream completed.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamEvent {
    /// More of the answer's text. Never ends inside a surrogate pair.
    TextDelta(JsonStr),
    /// More of the model's reasoning.
    ReasoningDelta(JsonStr),
    /// A call begins.
    CallStarted {
        /// Counts the calls of this response, from 0.
        index: u32,
        /// As the provider gave it; may be empty.
        call_id: String,
        /// The tool.
        name: String,
    },
    /// More of a call's arguments: JSON text, or a piece of it.
    ArgumentsDelta {
        /// Which call.
        index: u32,
        /// Its id.
        call_id: String,
        /// The piece.
        json: JsonStr,
    },
    /// A call is whole. Only the end of the stream says whether it may be executed.
    CallReady {
        /// Which call.
        index: u32,
        /// The call.
        call: AssembledCall,
    },
    /// Tokens so far; the last one counts.
    Usage(Usage),
    /// The provider reported a failure inside the stream.
    Error(WireError),
}

/// A failure in the provider's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireError {
    /// The provider's code or type.
    pub code: Option<String>,
    /// Its message.
    pub message: String,
}

/// How a response ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerStatus {
    /// Whole.
    Complete,
    /// The stream ended before the provider said that it was done.
    Truncated,
    /// The provider stopped it: length, context window, a paused turn.
    Incomplete,
    /// The model refused.
    Refused,
    /// A filter withheld it.
    Blocked,
    /// The provider reported a failure, or sent what is no response.
    Failed,
}

impl AnswerStatus {
    /// The name in the public types.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Truncated => "truncated",
            Self::Incomplete => "incomplete",
            Self::Refused => "refused",
            Self::Blocked => "blocked",
            Self::Failed => "failed",
        }
    }
}

/// A call as it came.
#[derive(Clone, Debug, PartialEq)]
pub struct AssembledCall {
    /// As the provider gave it; may be empty.
    pub call_id: String,
    /// The tool.
    pub name: String,
    /// JSON text as the model wrote it, as a string token (its `decode` is the JSON text).
    pub arguments: JsonStr,
    /// False where the response was cut: such a call must never run.
    pub executable: bool,
}

/// A whole response.
#[derive(Clone, Debug, PartialEq)]
pub struct Assembled {
    /// How it ended.
    pub status: AnswerStatus,
    /// The provider's own reason, as sent.
    pub finish_reason: Option<String>,
    /// The provider's id of the response.
    pub response_id: Option<String>,
    /// The model that answered, as it names itself.
    pub model: Option<String>,
    /// All text of the answer.
    pub text: JsonStr,
    /// The calls, in order. Calls that are not executable are here, and not in `wire`.
    pub calls: Vec<AssembledCall>,
    /// What it cost.
    pub usage: Option<Usage>,
    /// The failure, if there was one.
    pub error: Option<WireError>,
    /// The assistant message in the dialect's own shape, ready to be part of the next body; none where nothing came.
    pub wire: Option<Json>,
}
