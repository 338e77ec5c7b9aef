//! Where Responses has the parameters that dialects share.

use super::Responses;
use crate::json::{JsonRef, ObjectWriter};
use crate::provider::request::{Parameter, flat_schema, nested_schema};
use crate::provider::spec::{DefaultsContext, ParameterCodec};

impl ParameterCodec for Responses {
    /// As in the provider's reference. What is missing here has another meaning or other values.
    fn place(&self, parameter: Parameter) -> Option<&'static str> {
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

    fn value(&self, parameter: Parameter, value: JsonRef<'_>) -> String {
        if parameter == Parameter::ResponseFormat { flat_schema(value) } else { nested_schema(value) }
    }

    fn write_defaults(&self, object: &mut ObjectWriter<'_>, context: &mut DefaultsContext<'_>) {
        if context.request.stream {
            object.bool("stream", true);
        }
    }
}
