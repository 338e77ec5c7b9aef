//! Where Anthropic Messages has the parameters that dialects share.

use crate::provider::request::Parameter;

/// True to allow one call an answer. Other dialects have the opposite, `parallel_tool_calls`.
const NO_PARALLEL: &str = "tool_choice.disable_parallel_tool_use";

/// Returns the place of a parameter in the body, as in the provider's reference. What is missing here has another meaning or other values.
pub(crate) fn parameter(parameter: Parameter) -> Option<&'static str> {
    Some(match parameter {
        Parameter::Model => "model",
        Parameter::Stream => "stream",
        Parameter::MaxTokens | Parameter::MaxTokensLegacy => "max_tokens",
        Parameter::Temperature => "temperature",
        Parameter::TopP => "top_p",
        Parameter::TopK => "top_k",
        Parameter::Stop => "stop_sequences",
        Parameter::SerialToolChoice => NO_PARALLEL,
        Parameter::Seed
        | Parameter::FrequencyPenalty
        | Parameter::PresencePenalty
        | Parameter::CandidateCount
        | Parameter::ParallelToolCalls
        | Parameter::ResponseFormat
        | Parameter::ReasoningEffort
        | Parameter::Verbosity
        | Parameter::User
        | Parameter::Metadata
        | Parameter::Prediction
        | Parameter::Store
        | Parameter::ServiceTier
        | Parameter::PromptCacheKey
        | Parameter::SafetyIdentifier
        | Parameter::TopLogprobs => return None,
    })
}
