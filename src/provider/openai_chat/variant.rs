//! Where the dialects of the Chat Completions family differ.

use crate::json::JsonRef;
use crate::message::Dialect;
use crate::provider::healing::Remedy;
use crate::provider::request::Parameter;
use crate::provider::rules::Plan;

/// A dialect of the Chat Completions family: OpenAI's own (and that of the many compatible servers), or Mistral's.
pub(crate) struct ChatVariant {
    /// The dialect. Messages that were decoded from it are encoded in their original form.
    pub dialect: Dialect,
    /// Returns true if the provider accepts a call by that id.
    pub accepts_call_id: fn(&str) -> bool,
    /// Plans the repairs of a body, by the variant's own rules.
    pub plan_repairs: for<'a> fn(&mut Plan<'a, '_>, JsonRef<'a>),
    /// Returns true if the model of a body rejects an answer with calls, in the running tool loop, without its reasoning.
    pub demands_reasoning: fn(JsonRef<'_>) -> bool,
    /// Returns the place of a parameter.
    pub parameter: fn(Parameter) -> Option<&'static str>,
    /// The errors that can be cured.
    pub remedies: &'static [Remedy],
    /// The model may be limited to some tools by `"tool_choice":{"type":"allowed_tools",…}`.
    pub has_allowed_tools: bool,
    /// The dialect of the same provider, which knows the same file ids.
    pub shares_files_with: Option<Dialect>,
    /// Derives an accepted id from one that is not. The same input gives the same id.
    pub legal_call_id: fn(&str) -> String,
    /// Members of a body that the provider rejects: parameters of other dialects.
    pub unknown_params: &'static [&'static str],
    /// The `tool_choice` that makes the model call some tool: `"required"` (OpenAI) or `"any"` (Mistral).
    pub any_tool_choice: &'static str,
    /// A stream reports usage only if the body has `"stream_options":{"include_usage":true}`.
    pub usage_on_request: bool,
    /// A body may end in an assistant message, and a system message may follow one.
    pub free_order: bool,
    /// The JSON of `content` in a message that has calls and no text: `null` (OpenAI) or `""` (Mistral).
    pub empty_content: &'static str,
    /// Mistral's content chunks: reasoning is a chunk of the content (`{"type":"thinking","thinking":[…]}`), documents
    /// are referenced by URL, and a tool message holds chunks of any type. This also means that a refusal is text, that
    /// `system` is the only role for instructions, that a call's arguments may be an object, and that `tool_calls` may be empty.
    pub content_chunks: bool,
    /// Returns the name of the service that a host belongs to.
    pub service_of: fn(&str) -> Option<&'static str>,
}

/// A dialect of the family. It implements [`Codec`](crate::provider::dialect::Codec) by its variant.
pub(crate) trait ChatDialect: Sync {
    /// Returns the differences from the other dialects of the family.
    fn variant(&self) -> &ChatVariant;
}

impl ChatDialect for ChatVariant {
    fn variant(&self) -> &ChatVariant {
        self
    }
}
