//! Bedrock's Converse as a dialect.

use super::content::CONTENT;
use super::system::SYSTEM;
use super::tools::TOOL_CONFIG;
use super::{Bedrock, models, remedies, rules, stream};
use crate::message::Dialect;
use crate::provider::spec::{
    BAD_REQUEST, BodyProfile, DialectSpec, ItemFormat, ModelTable, PromptCache, RuleSet, SHORT_CACHE_LIFE, UniqueNames,
};

/// Converse and ConverseStream.
pub(crate) static SPEC: DialectSpec = DialectSpec {
    body: BodyProfile {
        placeholder_message: r#"{"role":"user","content":[{"text":"."}]}"#,
        reserved_members: &["messages", "system"],
        credential_members: &[
            &["additionalModelRequestFields", "mcp_servers", "*", "authorization_token"],
            &["additionalModelRequestFields", "mcp_servers", "*", "headers"],
        ],
        // Members of the bodies of other dialects. What a model accepts beyond the reference is in
        // `additionalModelRequestFields`.
        rejected_members: &[
            "anthropic_beta",
            "anthropic_version",
            "context_management",
            "frequency_penalty",
            "generationConfig",
            "include",
            "instructions",
            "input",
            "logit_bias",
            "logprobs",
            "max_tool_calls",
            "metadata",
            "modalities",
            "n",
            "parallel_tool_calls",
            "prediction",
            "presence_penalty",
            "previous_response_id",
            "prompt_cache_key",
            "random_seed",
            "reasoning",
            "reasoning_effort",
            "response_format",
            "safe_prompt",
            "safety_identifier",
            "seed",
            "service_tier",
            "store",
            "stream_options",
            "thinking",
            "top_k",
            "top_logprobs",
            "truncation",
            "user",
            "verbosity",
        ],
        tool_choice_members: &[TOOL_CONFIG, "toolChoice"],
        bound_instructions: Some("system"),
        required_with_calls: Some((
            TOOL_CONFIG,
            r#"{"tools":[{"toolSpec":{"name":"any","inputSchema":{"json":{"type":"object"}}}}]}"#,
        )),
        ..BodyProfile::COMMON
    },
    content: &CONTENT,
    items: ItemFormat {
        dialect: Dialect::Bedrock,
        family: Dialect::Bedrock,
        list: "messages",
        decode_text: None,
        takes_single_item: false,
        recognizer: &Bedrock,
    },
    messages: &Bedrock,
    tools: &Bedrock,
    parameters: &Bedrock,
    reasoning: &Bedrock,
    models: ModelTable { facts: models::model_facts, settings: models::settings },
    rules: RuleSet {
        plan: rules::plan,
        refusal_statuses: BAD_REQUEST,
        remedies: remedies::REMEDIES,
        general_refusals: &[],
        leave_out_refused: remedies::leave_out_refused,
        missing_reasoning: None,
        unique_names: Some(UniqueNames { mark: "\"document\":", repeats: rules::repeats_a_name }),
    },
    prompt_cache: PromptCache { breakpoints: None, life: |_| SHORT_CACHE_LIFE },
    answer_reader: || Box::new(stream::BedrockAssembler::default()),
    system: Some(SYSTEM),
    sdk_request: None,
    reasoning_dropping: None,
    service_state: None,
    provider_compaction: None,
    paused_turns: None,
    resumable_answers: None,
    #[cfg(test)]
    recognition: super::recognition::RECOGNITION,
};
