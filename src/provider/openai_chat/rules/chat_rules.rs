//! Where the rules of OpenAI and Mistral differ.

use super::assistant::PendingAssistant;
use crate::json::JsonRef;
use crate::provider::rules::{ErrorTemplates, IdRule, ListMessage, Pairs, Plan};

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
    /// The error about an assistant message with empty text and no calls; none if the provider accepts it.
    pub empty_answer: Option<&'static str>,
    /// The name of a result's tool must have the form of a name.
    pub checks_result_names: bool,
    /// Plans what only this provider's rules of order require, once calls and results are paired.
    pub check_order: for<'a> fn(&mut Plan<'a, '_>, &ChatList<'a, '_>),
}

/// The messages of a body, as the rules have read them.
pub(crate) struct ChatList<'a, 'r> {
    /// The list in the body.
    pub list: JsonRef<'a>,
    /// The messages in it, in its order.
    pub messages: &'r [ListMessage],
    pub assistants: &'r [PendingAssistant<'a>],
    pub pairs: &'r Pairs<'a>,
}
