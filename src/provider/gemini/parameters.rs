//! Where Gemini has the parameters that dialects share.

use crate::provider::request::Parameter;

/// Returns the place of a parameter in the body, as in the provider's reference. What is missing here has another meaning or other values.
pub(crate) fn parameter(parameter: Parameter) -> Option<&'static str> {
    Some(match parameter {
        Parameter::MaxTokens | Parameter::MaxTokensLegacy => "generationConfig.maxOutputTokens",
        Parameter::Temperature => "generationConfig.temperature",
        Parameter::TopP => "generationConfig.topP",
        Parameter::TopK => "generationConfig.topK",
        Parameter::Stop => "generationConfig.stopSequences",
        Parameter::Seed => "generationConfig.seed",
        Parameter::FrequencyPenalty => "generationConfig.frequencyPenalty",
        Parameter::PresencePenalty => "generationConfig.presencePenalty",
        Parameter::CandidateCount => "generationConfig.candidateCount",
        Parameter::Model
        | Parameter::Stream
        | Parameter::ParallelToolCalls
        | Parameter::SerialToolChoice
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
