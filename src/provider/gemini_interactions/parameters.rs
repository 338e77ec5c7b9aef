//! Where the Interactions API has the parameters that dialects share.

use super::background::is_asked_for;
use super::service_state::STORE;
use super::{Interactions, generation_config};
use crate::json::{JsonRef, ObjectWriter};
use crate::provider::request::{Parameter, nested_schema, stop_list};
use crate::provider::spec::{DefaultsContext, ParameterCodec, TranslateForeign};

impl ParameterCodec for Interactions {
    /// As in the types of @google/genai 3.1.0. What is missing here has another meaning or other values. The service
    /// also accepts `top_k`, and rejects penalties (vercel/ai#17937, recorded).
    fn place(&self, parameter: Parameter) -> Option<&'static str> {
        Some(match parameter {
            Parameter::Model => "model",
            Parameter::Stream => "stream",
            Parameter::Store => STORE,
            Parameter::MaxTokens | Parameter::MaxTokensLegacy => "generation_config.max_output_tokens",
            Parameter::Temperature => "generation_config.temperature",
            Parameter::TopP => "generation_config.top_p",
            Parameter::Stop => "generation_config.stop_sequences",
            Parameter::Seed => "generation_config.seed",
            Parameter::TopK => "generation_config.top_k",
            Parameter::FrequencyPenalty
            | Parameter::PresencePenalty
            | Parameter::CandidateCount
            | Parameter::ParallelToolCalls
            | Parameter::SerialToolChoice
            | Parameter::ResponseFormat
            | Parameter::ReasoningEffort
            | Parameter::Verbosity
            | Parameter::User
            | Parameter::Metadata
            | Parameter::Prediction
            | Parameter::ServiceTier
            | Parameter::PromptCacheKey
            | Parameter::SafetyIdentifier
            | Parameter::TopLogprobs => return None,
        })
    }

    fn is_moved(&self, name: &str, translate: TranslateForeign<'_>) -> bool {
        generation_config::contains_parameter(name, translate)
    }

    fn value(&self, parameter: Parameter, value: JsonRef<'_>) -> String {
        if parameter == Parameter::Stop { stop_list(value) } else { nested_schema(value) }
    }

    /// The body has the whole history, so Google need not keep it, but for an answer that is picked up there.
    fn write_defaults(&self, object: &mut ObjectWriter<'_>, context: &mut DefaultsContext<'_>) {
        if context.request.stream {
            object.bool("stream", true);
        }
        let is_given = |member: &str| context.named.iter().any(|name| name == member);
        if !is_given(STORE) {
            object.bool(STORE, is_asked_for(context.request.params.view()));
        }
    }
}
