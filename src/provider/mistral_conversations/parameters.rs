//! Where a conversation has the parameters that dialects share.

use super::service_state::{CONVERSATION, STORE};
use super::{MistralConversations, completion_args};
use crate::json::{JsonRef, ObjectWriter};
use crate::provider::request::{Parameter, nested_schema};
use crate::provider::spec::{DefaultsContext, ParameterCodec, TranslateForeign};

impl ParameterCodec for MistralConversations {
    /// As in the provider's SDK. What is missing here has another meaning or other values.
    fn place(&self, parameter: Parameter) -> Option<&'static str> {
        Some(match parameter {
            Parameter::Model => "model",
            Parameter::Stream => "stream",
            Parameter::Store => "store",
            Parameter::Metadata => "metadata",
            Parameter::MaxTokens | Parameter::MaxTokensLegacy => "completion_args.max_tokens",
            Parameter::Temperature => "completion_args.temperature",
            Parameter::TopP => "completion_args.top_p",
            Parameter::Stop => "completion_args.stop",
            Parameter::Seed => "completion_args.random_seed",
            Parameter::FrequencyPenalty => "completion_args.frequency_penalty",
            Parameter::PresencePenalty => "completion_args.presence_penalty",
            Parameter::ResponseFormat => "completion_args.response_format",
            // In the schema since 2026 (vercel/ai, `mistral-conversation-language-model.ts`).
            Parameter::ReasoningEffort => "completion_args.reasoning_effort",
            Parameter::Prediction => "completion_args.prediction",
            Parameter::TopK
            | Parameter::CandidateCount
            | Parameter::ParallelToolCalls
            | Parameter::SerialToolChoice
            | Parameter::Verbosity
            | Parameter::User
            | Parameter::ServiceTier
            | Parameter::PromptCacheKey
            | Parameter::SafetyIdentifier
            | Parameter::TopLogprobs => return None,
        })
    }

    fn is_moved(&self, name: &str, translate: TranslateForeign<'_>) -> bool {
        completion_args::contains_parameter(name, translate)
    }

    /// Models take `none` and `high` and refuse the rest of the schema's values: "reasoning_effort='medium' is not
    /// supported for this model" (SmartHopper#647, celeste-python#311 of 2026-07-15). vercel/ai sends `high`, too.
    fn value(&self, parameter: Parameter, value: JsonRef<'_>) -> String {
        let is_effort = parameter == Parameter::ReasoningEffort && value.as_text().is_some_and(|word| word != "none");
        if is_effort { "\"high\"".to_owned() } else { nested_schema(value) }
    }

    fn write_defaults(&self, object: &mut ObjectWriter<'_>, context: &mut DefaultsContext<'_>) {
        if context.request.stream {
            object.bool("stream", true);
        }
        // Each request has the whole conversation: the service has no use for a copy of each. Clients that send it
        // whole do the same (vercel/ai, inspect_ai).
        if !context.named.iter().any(|name| name == STORE) {
            object.bool(STORE, false);
        }
    }
}

/// The members of a request that continues a conversation (client-ts, `ConversationAppendRequest` and
/// `ConversationRestartRequest`), and its conversation.
const CONTINUING: [&str; 10] = [
    CONVERSATION,
    STORE,
    "stream",
    "handoff_execution",
    "completion_args",
    "tool_confirmations",
    "guardrails",
    "metadata",
    "from_entry_id",
    "agent_version",
];

/// Returns true for the body of a request that continues a conversation without new entries.
pub(super) fn continues_without_inputs(body: JsonRef<'_>) -> bool {
    let is_own = |key: JsonRef<'_>| key.as_text().is_some_and(|key| is_continuing(&key));
    body.entries().next().is_some() && body.entries().all(|(key, _)| is_own(key))
}

/// Returns true for a member that a request has, beside its entries, that continues a conversation.
pub(super) fn is_continuing(member: &str) -> bool {
    CONTINUING.contains(&member)
}

/// Returns true for the body of a request that continues a conversation, whose calls the service may have: only one
/// that begins a conversation names a model or an agent (client-python, `ConversationAppendRequest` and
/// `ConversationRestartRequest`).
pub(super) fn continues_conversation(body: JsonRef<'_>) -> bool {
    body.is_object() && body.find("model").is_none() && body.find("agent_id").is_none()
}
