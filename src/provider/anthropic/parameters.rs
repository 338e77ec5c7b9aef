//! Where Anthropic Messages has the parameters that dialects share.

use super::Anthropic;
use crate::finding::{Finding, FindingCode};
use crate::json::{JsonRef, ObjectWriter};
use crate::provider::request::{Parameter, nested_schema, stop_list};
use crate::provider::spec::{DefaultsContext, ParameterCodec};

/// The value of `max_tokens`, which Anthropic requires, in a request whose parameters have none.
const DEFAULT_MAX_TOKENS: u64 = 4096;

/// True to allow one call an answer. Other dialects have the opposite, `parallel_tool_calls`.
const NO_PARALLEL: &str = "tool_choice.disable_parallel_tool_use";

impl ParameterCodec for Anthropic {
    /// As in the provider's reference. What is missing here has another meaning or other values.
    fn place(&self, parameter: Parameter) -> Option<&'static str> {
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

    fn value(&self, parameter: Parameter, value: JsonRef<'_>) -> String {
        if parameter == Parameter::Stop { stop_list(value) } else { nested_schema(value) }
    }

    fn write_defaults(&self, object: &mut ObjectWriter<'_>, context: &mut DefaultsContext<'_>) {
        if context.request.stream {
            object.bool("stream", true);
        }
        if !context.named.iter().any(|name| name == "max_tokens") {
            object.number("max_tokens", DEFAULT_MAX_TOKENS);
            context.report.push(Finding::info(
                FindingCode::UnsupportedKey,
                "Anthropic requires `max_tokens`; the request has none, so it is set to 4096",
            ));
        }
    }
}
