//! The types of steps.
//!
//! Sources: the types of @google/genai 3.1.0 (2026-11), and Google's "Interactions API: breaking changes" (May 2026),
//! by which steps replaced `outputs` and lists of turns; those were removed on 2026-06-08.

use crate::json::{JsonKind, JsonRef};
use crate::provider::rules::Fields;
use std::borrow::Cow;

pub(super) const USER_INPUT: &str = "user_input";
pub(super) const MODEL_OUTPUT: &str = "model_output";
pub(super) const THOUGHT: &str = "thought";
pub(super) const FUNCTION_CALL: &str = "function_call";
pub(super) const FUNCTION_RESULT: &str = "function_result";

/// The member of a thought, or of a step of Google's own tools, that the service checks.
pub(super) const SIGNATURE: &str = "signature";

/// The types of content.
pub(super) const CONTENT_TYPES: [&str; 5] = ["text", "image", "audio", "document", "video"];

/// What an item of `input` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StepKind {
    UserInput,
    ModelOutput,
    Thought,
    FunctionCall,
    FunctionResult,
    /// A call or a result of a tool that Google runs, or a step of a type that is not known here.
    Other,
    /// A content without a step around it: `[{"type":"text","text":"Hi"}]` is a message of the user.
    Content,
    /// A turn, as the API had it until 2026-06-08: `{"role":"user","content":"Hi"}`.
    UserTurn,
    ModelTurn,
    /// No step.
    Unknown,
}

impl StepKind {
    /// Returns the kind of an item.
    pub fn of(item: JsonRef<'_>) -> Self {
        Self::by(item.text("type"), item.text("role"), item.find("content").is_some())
    }

    /// As [`of`](Self::of), for an item whose members are read.
    pub fn of_fields(item: &Fields<'_>) -> Self {
        Self::by(item.text("type"), item.text("role"), item.find("content").is_some())
    }

    fn by(item_type: Option<Cow<'_, str>>, role: Option<Cow<'_, str>>, has_content: bool) -> Self {
        let Some(item_type) = item_type.filter(|item_type| !item_type.is_empty()) else {
            return match role.as_deref().filter(|_| has_content) {
                Some("user") => Self::UserTurn,
                Some("model") => Self::ModelTurn,
                _ => Self::Unknown,
            };
        };
        match item_type.as_ref() {
            USER_INPUT => Self::UserInput,
            MODEL_OUTPUT => Self::ModelOutput,
            THOUGHT => Self::Thought,
            FUNCTION_CALL => Self::FunctionCall,
            FUNCTION_RESULT => Self::FunctionResult,
            content if CONTENT_TYPES.contains(&content) => Self::Content,
            _ if role.is_some() => Self::Unknown,
            _ => Self::Other,
        }
    }

    /// Returns true for a step of the model.
    pub fn is_of_model(self) -> bool {
        matches!(self, Self::ModelOutput | Self::Thought | Self::FunctionCall | Self::Other | Self::ModelTurn)
    }
}

/// Returns the signature of a step. An empty one is none: recorded streams have it in calls (2026-05-15).
pub(super) fn signature_of(step: JsonRef<'_>) -> Option<JsonRef<'_>> {
    step.find(SIGNATURE).filter(|signature| signature.kind() == JsonKind::String && !signature.is_text(""))
}

/// Returns true for the type of a step of Google's own tools: `google_search_call`, `url_context_result`.
pub(super) fn is_of_server(item_type: &str) -> bool {
    !matches!(item_type, FUNCTION_CALL | FUNCTION_RESULT)
        && (item_type.ends_with("_call") || item_type.ends_with("_result"))
}
