//! Where Responses has the parameters that dialects share.

use crate::provider::request::Parameter;

/// Returns the place of a parameter in the body, as in the provider's reference. What is missing here has another meaning or other values.
pub(crate) fn parameter(parameter: Parameter) -> Option<&'static str> {
    Some(match parameter {
        Parameter::Model => "model",
        Parameter::Stream => "stream",
        Parameter::MaxTokens | Parameter::MaxTokensLegacy => "max_output_tokens",
        Parameter::Temperature => "temperature",
        Parameter::TopP => "top_p",
        Parameter::ParallelToolCalls | Parameter::SerialToolChoice => "parallel_tool_calls",
        Parameter::ResponseFormat => "text.format",
        Parameter::ReasoningEffort => "reasoning.effort",
        Parameter::Verbosity => "text.verbosity",
        Parameter::User => "user",
        Parameter::Metadata => "metadata",
        Parameter::Store => "store",
        Parameter::ServiceTier => "service_tier",
        Parameter::PromptCacheKey => "prompt_cache_key",
        Parameter::SafetyIdentifier => "safety_identifier",
        Parameter::TopLogprobs => "top_logprobs",
        Parameter::TopK
        | Parameter::Stop
        | Parameter::Seed
        | Parameter::FrequencyPenalty
        | Parameter::PresencePenalty
        | Parameter::CandidateCount
        | Parameter::Prediction => return None,
    })
}
