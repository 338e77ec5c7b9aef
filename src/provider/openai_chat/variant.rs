//! Where the dialects of the Chat Completions family differ.

use crate::provider::request::Parameter;
use crate::provider::spec::ContentProfile;
#[cfg(test)]
use crate::provider::spec::Recognition;

/// A dialect of the Chat Completions family: OpenAI's own (and that of the many compatible servers), or Mistral's.
pub(crate) struct ChatVariant {
    /// What messages may contain. Those that were decoded from its dialect are encoded in their original form.
    pub content: ContentProfile,
    /// Returns the place of a parameter.
    pub parameter: fn(Parameter) -> Option<&'static str>,
    /// The model may be limited to some tools by `"tool_choice":{"type":"allowed_tools",…}`.
    pub has_allowed_tools: bool,
    /// The `tool_choice` that makes the model call some tool: `"required"` (OpenAI) or `"any"` (Mistral).
    pub any_tool_choice: &'static str,
    /// A stream reports usage only if the body has `"stream_options":{"include_usage":true}`.
    pub usage_on_request: bool,
    /// A body may end in an assistant message, and a system message may follow one.
    pub free_order: bool,
    /// The JSON of `content` in a message that has calls and no text: `null` (OpenAI) or `""` (Mistral).
    pub empty_content: &'static str,
    /// Mistral's content chunks: reasoning is a chunk of the content (`{"type":"thinking","thinking":[…]}`), documents
    /// are referenced by URL, and a tool message holds chunks of any type. This also means that `system` is the only
    /// role for instructions, that a call's arguments may be an object, and that `tool_calls` may be empty.
    pub content_chunks: bool,
    /// Returns the name of the service that a host belongs to.
    pub service_of: fn(&str) -> Option<&'static str>,
    /// How JavaScript recognizes the dialect.
    #[cfg(test)]
    pub recognition: Recognition,
}
