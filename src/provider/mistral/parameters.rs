//! Where Mistral has the parameters that dialects share.

use crate::provider::request::Parameter;

/// Returns the place of a parameter in the body, as in the provider's reference. What is missing here has another
/// meaning or other values.
pub(crate) fn parameter(parameter: Parameter) -> Option<&'static str> {
    Some(match parameter {
        Parameter::Model => "model",
        Parameter::Stream => "stream",
        Parameter::MaxTokens | Parameter::MaxTokensLegacy => "max_tokens",
        Parameter::Temperature => "temperature",
        Parameter::TopP => "top_p",
        Parameter::Stop => "stop",
        Parameter::Seed => "random_seed",
        Parameter::FrequencyPenalty => "frequency_penalty",
        Parameter::PresencePenalty => "presence_penalty",
        Parameter::CandidateCount => "n",
        Parameter::ParallelToolCalls | Parameter::SerialToolChoice => "parallel_tool_calls",
        Parameter::ResponseFormat => "response_format",
        Parameter::ReasoningEffort => "reasoning_effort",
        Parameter::Metadata => "metadata",
        Parameter::Prediction => "prediction",
        Parameter::PromptCacheKey => "prompt_cache_key",
        Parameter::TopK
        | Parameter::Verbosity
        | Parameter::User
        | Parameter::Store
        | Parameter::ServiceTier
        | Parameter::SafetyIdentifier
        | Parameter::TopLogprobs => return None,
    })
}
