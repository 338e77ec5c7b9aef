//! Where Chat Completions has the parameters that dialects share.

use crate::provider::request::Parameter;

/// Returns the place of a parameter in the body, as in the provider's reference. What is missing here has another meaning or other values.
pub(crate) fn parameter(parameter: Parameter) -> Option<&'static str> {
    Some(match parameter {
        Parameter::Model => "model",
        Parameter::Stream => "stream",
        Parameter::MaxTokens => "max_completion_tokens",
        Parameter::MaxTokensLegacy => "max_tokens",
        Parameter::Temperature => "temperature",
        Parameter::TopP => "top_p",
        Parameter::Stop => "stop",
        Parameter::Seed => "seed",
        Parameter::FrequencyPenalty => "frequency_penalty",
        Parameter::PresencePenalty => "presence_penalty",
        Parameter::CandidateCount => "n",
        Parameter::ParallelToolCalls | Parameter::SerialToolChoice => "parallel_tool_calls",
        Parameter::ResponseFormat => "response_format",
        Parameter::ReasoningEffort => "reasoning_effort",
        Parameter::Verbosity => "verbosity",
        Parameter::User => "user",
        Parameter::Metadata => "metadata",
        Parameter::Prediction => "prediction",
        Parameter::Store => "store",
        Parameter::ServiceTier => "service_tier",
        Parameter::PromptCacheKey => "prompt_cache_key",
        Parameter::SafetyIdentifier => "safety_identifier",
        Parameter::TopLogprobs => "top_logprobs",
        Parameter::TopK => return None,
    })
}
