//! Events of a streamed response, and the assembled response, with their JSON as the TypeScript types declare it.

use crate::history::write_usage;
use crate::json::{Json, JsonStr, ObjectWriter};
use crate::message::Usage;

/// An event that a chunk of a stream completed.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamEvent {
    /// A fragment of the answer's text. Never ends inside a surrogate pair.
    TextDelta(JsonStr),
    /// A fragment of the model's reasoning.
    ReasoningDelta(JsonStr),
    /// The start of a call.
    CallStarted {
        /// The position of the call among those of the response.
        index: u32,
        /// The id that the provider gave it; may be empty.
        call_id: String,
        /// The name of the tool.
        name: String,
    },
    /// A fragment of a call's arguments.
    ArgumentsDelta {
        /// The position of the call among those of the response.
        index: u32,
        /// The id of the call.
        call_id: String,
        /// The fragment of JSON text, as a string token.
        json: JsonStr,
    },
    /// A call is complete. Whether it may be executed is known only at the end of the stream.
    CallReady {
        /// The position of the call among those of the response.
        index: u32,
        /// The call.
        call: AssembledCall,
    },
    /// The token counts so far; they replace earlier ones.
    Usage(Usage),
    /// An error that the provider reported inside the stream.
    Error(WireError),
}

/// An error that a provider reported, or the reason why bytes are not a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireError {
    /// The provider's code, type or status.
    pub code: Option<String>,
    /// The provider's message.
    pub message: String,
}

/// How a response ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerStatus {
    /// The answer is complete.
    Complete,
    /// The stream ended before the answer, or the application stopped it.
    Truncated,
    /// The provider ended the answer early: token limit, context window, paused turn.
    Incomplete,
    /// The model refused.
    Refused,
    /// A filter of the provider blocked the answer or the prompt.
    Blocked,
    /// The provider reported an error, or sent bytes that are not a response.
    Failed,
}

impl AnswerStatus {
    /// Returns the name in the public types.
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

/// A call of a response.
#[derive(Clone, Debug, PartialEq)]
pub struct AssembledCall {
    /// The id that the provider gave it; may be empty.
    pub call_id: String,
    /// The name of the tool.
    pub name: String,
    /// The JSON text that the model wrote, as a string token: decode it to get the JSON.
    pub arguments: JsonStr,
    /// False if the response or the call is incomplete or invalid: then the call must not run.
    pub executable: bool,
}

/// What a provider did with reasoning of the request, as its answer says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputTransformation {
    /// Where the reasoning is in the request.
    pub place: TransformedPlace,
    /// The provider's word for why, such as `prefix_mismatch`.
    pub reason: String,
    /// What it did.
    pub effect: TransformationEffect,
}

impl InputTransformation {
    /// Returns a provider's word for why; "other" for what is none. Findings show it, and a server's text may repeat a
    /// key (R68).
    pub(crate) fn word(reason: &str) -> String {
        let is_of_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        let is_word = !reason.is_empty() && reason.len() <= MAX_WORD && reason.bytes().all(is_of_word);
        if is_word { reason.to_owned() } else { "other".to_owned() }
    }

    /// Returns the JSON pointer of a path with dots, `messages.1.content.0`; `None` for what is none.
    pub(crate) fn pointer(path: &str) -> Option<String> {
        let is_step = |step: &str| Self::word(step) == step;
        path.split('.').all(is_step).then(|| format!("/{}", path.replace('.', "/")))
    }
}

/// The length of a provider's longest word, in bytes.
const MAX_WORD: usize = 64;

/// Where something is in a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TransformedPlace {
    /// Nowhere that is known.
    #[default]
    Unknown,
    /// The JSON pointer.
    Path(String),
    /// The id of the item in the list.
    Item(String),
}

/// What a provider did with reasoning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransformationEffect {
    /// It left it out, so that the model did not see it.
    Dropped,
    /// It left it out, as it does in each conversation.
    DroppedByDesign,
    /// It used it, although it did not match.
    Kept,
}

/// An assembled response.
#[derive(Clone, Debug, PartialEq)]
pub struct Assembled {
    /// How the response ended.
    pub status: AnswerStatus,
    /// The provider's finish or stop reason, as sent.
    pub finish_reason: Option<String>,
    /// The provider's id of the response.
    pub response_id: Option<String>,
    /// The id of the conversation to which the provider added the response.
    pub conversation_id: Option<String>,
    /// The token by which the provider continues the answer, which it has not finished.
    pub continuation: Option<String>,
    /// The name of the model, as the provider reports it.
    pub model: Option<String>,
    /// All text of the answer.
    pub text: JsonStr,
    /// All calls, in order. `wire` has only those that are executable.
    pub calls: Vec<AssembledCall>,
    /// The token counts.
    pub usage: Option<Usage>,
    /// The error, if there was one.
    pub error: Option<WireError>,
    /// What the provider did with reasoning of the request.
    pub transformations: Vec<InputTransformation>,
    /// True if the service works on the answer in the background, so that it can be picked up.
    pub is_background: bool,
    /// The assistant message in the dialect's format, for the next request. `None` if there is no content.
    pub wire: Option<Json>,
}

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
