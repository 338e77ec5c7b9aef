//! Where Converse has the parameters that dialects share.

use super::tools::{TOOL_CHOICE_MEMBERS, TOOL_CONFIG};
use super::{Bedrock, inference_config};
use crate::finding::{Finding, FindingCode};
use crate::json::{JsonRef, ObjectWriter};
use crate::provider::request::{Parameter, nested_schema, stop_list};
use crate::provider::spec::{DefaultsContext, ParameterCodec, TranslateForeign};

/// Members that name the model. In a request the URL does.
const MODEL_MEMBERS: [&str; 2] = ["model", "modelId"];

impl ParameterCodec for Bedrock {
    /// As in the provider's reference. What is missing here has another meaning or other values, or belongs to
    /// `additionalModelRequestFields`, whose members differ by model.
    fn place(&self, parameter: Parameter) -> Option<&'static str> {
        Some(match parameter {
            Parameter::MaxTokens | Parameter::MaxTokensLegacy => "inferenceConfig.maxTokens",
            Parameter::Temperature => "inferenceConfig.temperature",
            Parameter::TopP => "inferenceConfig.topP",
            Parameter::Stop => "inferenceConfig.stopSequences",
            Parameter::Model
            | Parameter::Stream
            | Parameter::TopK
            | Parameter::Seed
            | Parameter::FrequencyPenalty
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
            | Parameter::Store
            | Parameter::ServiceTier
            | Parameter::PromptCacheKey
            | Parameter::SafetyIdentifier
            | Parameter::TopLogprobs => return None,
        })
    }

    fn is_moved(&self, name: &str, translate: TranslateForeign<'_>) -> bool {
        MODEL_MEMBERS.contains(&name)
            || name == TOOL_CONFIG
            || TOOL_CHOICE_MEMBERS.contains(&name)
            || inference_config::contains_parameter(name, translate)
    }

    fn value(&self, parameter: Parameter, value: JsonRef<'_>) -> String {
        if parameter == Parameter::Stop { stop_list(value) } else { nested_schema(value) }
    }

    fn write_defaults(&self, object: &mut ObjectWriter<'_>, context: &mut DefaultsContext<'_>) {
        inference_config::write(context.request.params.view(), object, context.translate);
        let path = context.request.url.split(['?', '#']).next().unwrap_or_default();
        if context.request.stream && path.ends_with("/converse") {
            context.report.push(Finding::info(
                FindingCode::UnsupportedKey,
                "Bedrock streams if the URL ends with `/converse-stream` instead of `/converse`",
            ));
        }
    }
}
