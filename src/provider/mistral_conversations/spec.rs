//! Mistral's conversations as a dialect.

use super::completion_args::CHOICE_PLACE;
use super::content::CONTENT;
use super::service_state::{CONVERSATION, SERVICE_STATE};
use super::system::{INSTRUCTIONS, SYSTEM};
use super::{MistralConversations, decode, parameters, remedies, rules, stream};
use crate::message::Dialect;
use crate::provider::request::TOOL_CHOICE;
use crate::provider::spec::{BodyProfile, DialectSpec, ItemFormat, ModelTable, PromptCache, RuleSet, SHORT_CACHE_LIFE};

/// The format of `POST /v1/conversations`.
pub(crate) static SPEC: DialectSpec = DialectSpec {
    body: BodyProfile {
        placeholder_message: r#"{"type":"message.input","role":"user","content":"."}"#,
        reserved_members: &["inputs", INSTRUCTIONS, CONVERSATION],
        credential_members: &[&["tools", "*", "authorization"], &["tools", "*", "headers"]],
        // Members of the bodies of other dialects. Mistral rejects what its schema does not name: "Extra inputs are not
        // permitted".
        rejected_members: &[
            "anthropic_beta",
            "anthropic_version",
            "context_management",
            "generationConfig",
            "include",
            "input",
            "logit_bias",
            "logprobs",
            "max_tool_calls",
            "messages",
            "modalities",
            "n",
            "parallel_tool_calls",
            "previous_response_id",
            "prompt_cache_key",
            "prompt_mode",
            "reasoning",
            "safe_prompt",
            "safety_identifier",
            "service_tier",
            "stream_options",
            "system",
            "text",
            "thinking",
            "top_k",
            "top_logprobs",
            "truncation",
            "user",
            "verbosity",
        ],
        may_lack_list: parameters::continues_without_inputs,
        tool_choice_members: &[TOOL_CHOICE, CHOICE_PLACE],
        ..BodyProfile::COMMON
    },
    content: &CONTENT,
    items: ItemFormat {
        dialect: Dialect::MistralConversations,
        family: Dialect::MistralConversations,
        list: "inputs",
        decode_text: Some(decode::decode_text),
        takes_single_item: false,
        recognizer: &MistralConversations,
    },
    messages: &MistralConversations,
    tools: &MistralConversations,
    parameters: &MistralConversations,
    reasoning: &MistralConversations,
    models: ModelTable::NONE,
    rules: RuleSet {
        plan: rules::plan,
        // Its OpenAPI has 422 for a body that does not fit the schema (client-python, `docs/sdks/conversations`,
        // `HTTPValidationError`, read on 2026-11-29). 400 is the chat endpoint's.
        refusal_statuses: &[400, 422],
        remedies: remedies::REMEDIES,
        leave_out_refused: remedies::leave_out_refused,
        general_refusals: &[],
        missing_reasoning: None,
        unique_names: None,
    },
    prompt_cache: PromptCache { breakpoints: None, life: |_| SHORT_CACHE_LIFE },
    answer_reader: || Box::new(stream::ConversationAssembler::default()),
    system: Some(SYSTEM),
    sdk_request: None,
    reasoning_dropping: None,
    service_state: Some(SERVICE_STATE),
    provider_compaction: None,
    paused_turns: None,
    resumable_answers: None,
    #[cfg(test)]
    recognition: super::recognition::RECOGNITION,
};
