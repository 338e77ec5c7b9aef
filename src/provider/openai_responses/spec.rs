//! OpenAI Responses as a dialect.

use super::background::BACKGROUND_ANSWERS;
use super::content::CONTENT;
use super::provider_compaction::PROVIDER_COMPACTION;
use super::service_state::{CONVERSATION, PREVIOUS_RESPONSE, SERVICE_STATE};
use super::system::{INSTRUCTIONS, SYSTEM};
use super::unknown_params::UNKNOWN_PARAMS;
use super::{Responses, decode, models, remedies, rules, stream};
use crate::message::Dialect;
use crate::provider::request::{ProviderRequest, Settings};
use crate::provider::spec::{
    BAD_REQUEST, BodyProfile, DialectSpec, ItemFormat, ModelTable, PromptCache, RuleSet, retained_cache_life,
};

/// The member with the options of a stream, which is rejected in any other request.
const STREAM_OPTIONS: &str = "stream_options";

/// Parts of model names: these models are not OpenAI's and have item ids and rules of their own (recorded).
const FOREIGN_MODELS: [&str; 2] = ["deepseek", "grok"];

/// OpenAI Responses.
pub(crate) static SPEC: DialectSpec = DialectSpec {
    body: BodyProfile {
        // The last two refer to a history that the server stores. Beside the one in `input`, every message would be
        // sent twice.
        reserved_members: &["input", INSTRUCTIONS, PREVIOUS_RESPONSE, CONVERSATION],
        credential_members: &[
            &["tools", "*", "authorization"],
            &["tools", "*", "headers"],
            &["tools", "*", "container", "network_policy", "domain_secrets"],
            &["tools", "*", "environment", "network_policy", "domain_secrets"],
        ],
        rejected_members: &UNKNOWN_PARAMS,
        // The endpoint has `stream_options`, but without `include_usage`.
        rejected_inner_members: &[(STREAM_OPTIONS, "include_usage")],
        stream_members: &[STREAM_OPTIONS],
        bound_instructions: Some(INSTRUCTIONS),
        has_phases: true,
        ..BodyProfile::COMMON
    },
    content: &CONTENT,
    items: ItemFormat {
        dialect: Dialect::OpenAiResponses,
        family: Dialect::OpenAiResponses,
        list: "input",
        decode_text: Some(decode::decode_text),
        takes_single_item: false,
        recognizer: &Responses,
    },
    messages: &Responses,
    tools: &Responses,
    parameters: &Responses,
    reasoning: &Responses,
    models: ModelTable { facts: models::model_facts, settings },
    rules: RuleSet {
        plan: rules::plan,
        refusal_statuses: BAD_REQUEST,
        remedies: remedies::REMEDIES,
        general_refusals: &[],
        leave_out_refused: remedies::leave_out_refused,
        missing_reasoning: None,
        unique_names: None,
    },
    prompt_cache: PromptCache { breakpoints: None, life: retained_cache_life },
    answer_reader: || Box::new(stream::ResponsesAssembler::default()),
    system: Some(SYSTEM),
    sdk_request: None,
    reasoning_dropping: None,
    service_state: Some(SERVICE_STATE),
    provider_compaction: Some(PROVIDER_COMPACTION),
    paused_turns: None,
    resumable_answers: Some(BACKGROUND_ANSWERS),
    #[cfg(test)]
    recognition: super::recognition::RECOGNITION,
};

fn settings(request: &ProviderRequest) -> Settings {
    let named = request.params.view().text("model").unwrap_or_default();
    let model = FOREIGN_MODELS.into_iter().find(|own| named.contains(own)).unwrap_or_default();
    Settings { model, ..request.settings }
}
