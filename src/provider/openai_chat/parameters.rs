//! Where Chat Completions has the parameters that dialects share.

use super::variant::ChatVariant;
use crate::json::ObjectWriter;
use crate::provider::request::Parameter;
use crate::provider::spec::{DefaultsContext, ParameterCodec};

/// The member with the options of a stream, which is rejected in any other request.
pub(super) const STREAM_OPTIONS: &str = "stream_options";

impl ParameterCodec for ChatVariant {
    fn place(&self, parameter: Parameter) -> Option<&'static str> {
        (self.parameter)(parameter)
    }

    fn write_defaults(&self, object: &mut ObjectWriter<'_>, context: &mut DefaultsContext<'_>) {
        if !context.request.stream {
            return;
        }
        object.bool("stream", true);
        if self.usage_on_request
            && !context.request.settings.no_stream_usage
            && !context.named.iter().any(|name| name == STREAM_OPTIONS)
        {
            object.raw(STREAM_OPTIONS, r#"{"include_usage":true}"#);
        }
    }
}

/// Returns the place of a parameter in a body of OpenAI, as in the provider's reference. What is missing here has
/// another meaning or other values.
pub(super) fn parameter(parameter: Parameter) -> Option<&'static str> {
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
