//! Where Gemini has the parameters that dialects share.

use super::{Gemini, config};
use crate::finding::{Finding, FindingCode};
use crate::json::{JsonRef, ObjectWriter};
use crate::provider::request::{Parameter, nested_schema, stop_list};
use crate::provider::spec::{DefaultsContext, ParameterCodec, TranslateForeign};
use std::borrow::Cow;

impl ParameterCodec for Gemini {
    /// As in the provider's reference. What is missing here has another meaning or other values.
    fn place(&self, parameter: Parameter) -> Option<&'static str> {
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

    /// Names in snake case are read, too.
    fn spelled<'n>(&self, name: &'n str) -> Cow<'n, str> {
        Cow::Owned(config::camel_case(name))
    }

    fn is_moved(&self, name: &str, translate: TranslateForeign<'_>) -> bool {
        // The model is named in the URL.
        name == "model" || config::contains_parameter(name, translate)
    }

    fn value(&self, parameter: Parameter, value: JsonRef<'_>) -> String {
        if parameter == Parameter::Stop { stop_list(value) } else { nested_schema(value) }
    }

    fn write_defaults(&self, object: &mut ObjectWriter<'_>, context: &mut DefaultsContext<'_>) {
        config::write(context.request.params.view(), object, context.translate);
        if context.request.stream
            && !context.request.url.contains(":streamGenerateContent")
            && context.request.url.contains(":generateContent")
        {
            context.report.push(Finding::info(
                FindingCode::UnsupportedKey,
                "Gemini streams if the URL ends with `:streamGenerateContent?alt=sse` instead of `:generateContent`",
            ));
        }
    }
}
