//! Gemini generateContent as a dialect.

use super::content::CONTENT;
use super::model_version::version_settings;
use super::{Gemini, decode, encode, remedies, rules, sdk_request, stream};
use crate::message::{Dialect, Role};
use crate::provider::spec::{
    BAD_REQUEST, BodyProfile, DialectSpec, ItemFormat, ModelTable, PromptCache, RuleSet, SHORT_CACHE_LIFE, SystemMember,
};

/// Gemini generateContent.
pub(crate) static SPEC: DialectSpec = DialectSpec {
    body: BodyProfile {
        placeholder_message: r#"{"role":"user","parts":[{"text":"."}]}"#,
        reserved_members: &["contents", "systemInstruction", "system_instruction"],
        credential_members: &[
            &["tools", "*", "mcpServers", "*", "streamableHttpTransport", "headers"],
            &["tools", "*", "retrieval", "externalApi", "apiAuth"],
            &["tools", "*", "retrieval", "externalApi", "authConfig"],
            &["tools", "*", "googleMaps", "authConfig"],
            &["tools", "*", "parallelAiSearch", "apiKey"],
            &["tools", "*", "exaAiSearch", "apiKey"],
        ],
        // Gemini rejects any unknown key: "Invalid JSON payload received. Unknown name".
        rejected_members: &[
            "anthropic_version",
            "anthropic_beta",
            "context_management",
            "include",
            "instructions",
            "input",
            "logit_bias",
            "logprobs",
            "max_tool_calls",
            "messages",
            "metadata",
            "modalities",
            "parallel_tool_calls",
            "prediction",
            "previous_response_id",
            "prompt_cache_key",
            "prompt_mode",
            "reasoning",
            "reasoning_effort",
            "response_format",
            "safe_prompt",
            "safety_identifier",
            "service_tier",
            "store",
            "stream_options",
            "system",
            "text",
            "thinking",
            "top_logprobs",
            "truncation",
            "user",
            "verbosity",
        ],
        tool_choice_members: &["toolConfig", "tool_config"],
        has_strict_tools: false,
        ..BodyProfile::COMMON
    },
    content: &CONTENT,
    items: ItemFormat {
        dialect: Dialect::Gemini,
        family: Dialect::Gemini,
        list: "contents",
        decode_text: None,
        // As in Google's own examples: `"contents":{"parts":[{"text":"hi"}]}`.
        takes_single_item: true,
        recognizer: &Gemini,
    },
    messages: &Gemini,
    tools: &Gemini,
    parameters: &Gemini,
    reasoning: &Gemini,
    models: ModelTable { settings: version_settings, ..ModelTable::NONE },
    rules: RuleSet {
        plan: rules::plan,
        refusal_statuses: BAD_REQUEST,
        remedies: remedies::REMEDIES,
        general_refusals: &[],
        leave_out_refused: remedies::leave_out_refused,
        missing_reasoning: None,
        unique_names: None,
    },
    prompt_cache: PromptCache { breakpoints: None, life: |_| SHORT_CACHE_LIFE },
    answer_reader: || Box::new(stream::GeminiAssembler::default()),
    system: Some(SystemMember {
        name: "systemInstruction",
        holds: |message, _| matches!(message.role, Role::System | Role::Developer),
        encode: encode::system_instruction,
        decode: decode::decode_system,
    }),
    sdk_request: Some(sdk_request::api_request),
    reasoning_dropping: None,
    service_state: None,
    provider_compaction: None,
    paused_turns: None,
    resumable_answers: None,
    #[cfg(test)]
    recognition: super::recognition::RECOGNITION,
};
