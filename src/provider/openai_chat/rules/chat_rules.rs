//! Where the rules of OpenAI and Mistral differ.

use crate::provider::rules::{ErrorTemplates, IdRule};

/// The rules of a provider of the Chat Completions format.
pub(crate) struct ChatRules {
    /// The form of call ids.
    pub ids: IdRule,
    /// The provider's error messages about calls and results.
    pub errors: ErrorTemplates,
    /// `tool_calls` and `content` may be empty lists, and a call may lack its type or have an object as arguments
    /// (Mistral).
    pub lenient: bool,
    /// Returns the types of content parts that a message of the role may hold, for the model; none if any may.
    pub allowed_parts: fn(role: &str, model: &str) -> Option<&'static [&'static str]>,
    /// There is a role `developer`.
    pub developer_role: bool,
    /// Mistral's rules of order: an assistant message at the end needs `"prefix":true` and no other may have it, an
    /// assistant message must have content or calls, and no system message follows one or its results.
    pub strict_order: bool,
}
