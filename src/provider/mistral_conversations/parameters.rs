//! Where a conversation has the parameters that dialects share.

use super::{MistralConversations, completion_args};
use crate::json::ObjectWriter;
use crate::provider::request::Parameter;
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
            Parameter::Prediction => "completion_args.prediction",
            Parameter::TopK
            | Parameter::CandidateCount
            | Parameter::ParallelToolCalls
            | Parameter::SerialToolChoice
            | Parameter::ReasoningEffort
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

    fn write_defaults(&self, object: &mut ObjectWriter<'_>, context: &mut DefaultsContext<'_>) {
        if context.request.stream {
            object.bool("stream", true);
        }
    }
}
