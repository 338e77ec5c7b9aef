//! Gemini's Interactions API as a dialect.

use super::background::BACKGROUND_ANSWERS;
use super::content::CONTENT;
use super::continuation::{CONTINUATION_TOKEN, PAUSED_TURNS};
use super::service_state::{PREVIOUS_INTERACTION, SERVICE_STATE};
use super::system::{SYSTEM, SYSTEM_INSTRUCTION};
use super::{Interactions, decode, remedies, rules, stream};
use crate::message::Dialect;
use crate::provider::gemini::model_version::version_settings;
use crate::provider::request::TOOL_CHOICE;
use crate::provider::spec::{
    BAD_REQUEST, BodyProfile, DialectSpec, ItemFormat, ModelTable, PromptCache, RuleSet, SHORT_CACHE_LIFE,
};

/// Interactions, with the whole history in `input`, or what is new of one that the service keeps.
pub(crate) static SPEC: DialectSpec = DialectSpec {
    body: BodyProfile {
        placeholder_message: r#"{"type":"user_input","content":[{"type":"text","text":"."}]}"#,
        // The last two refer to a history that the service stores. Beside the one in `input`, every step would be
        // sent twice.
        reserved_members: &["input", SYSTEM_INSTRUCTION, PREVIOUS_INTERACTION, CONTINUATION_TOKEN],
        // `transform` has headers that are added to the requests of a sandbox, `env` its variables.
        credential_members: &[
            &["tools", "*", "headers"],
            &["webhook_config"],
            &["environment", "network", "allowlist", "*", "transform"],
            &["environment", "env", "*"],
        ],
        // Members of the bodies of other dialects. Google's APIs reject any key that they do not know.
        rejected_members: &[
            "anthropic_beta",
            "anthropic_version",
            "context_management",
            "frequency_penalty",
            "generationConfig",
            "include",
            "instructions",
            "logit_bias",
            "logprobs",
            "max_tool_calls",
            "messages",
            "metadata",
            "modalities",
            "n",
            "parallel_tool_calls",
            "prediction",
            "presence_penalty",
            "previous_response_id",
            "prompt_cache_key",
            "prompt_mode",
            "random_seed",
            "reasoning",
            "reasoning_effort",
            "safe_prompt",
            "safety_identifier",
            "stream_options",
            "system",
            "text",
            "thinking",
            "top_logprobs",
            "truncation",
            "user",
            "verbosity",
        ],
        tool_choice_members: &[TOOL_CHOICE, "generation_config.tool_choice"],
        // A request that goes on with a stored answer has only its token (@google/genai 3.1.0, `automatic_continuation`).
        may_lack_list: |body| body.find(CONTINUATION_TOKEN).is_some(),
        has_strict_tools: false,
        ..BodyProfile::COMMON
    },
    content: &CONTENT,
    items: ItemFormat {
        dialect: Dialect::GeminiInteractions,
        family: Dialect::GeminiInteractions,
        list: "input",
        decode_text: Some(decode::decode_text),
        // One content: `"input":{"type":"text","text":"Hi"}`.
        takes_single_item: true,
        recognizer: &Interactions,
    },
    messages: &Interactions,
    tools: &Interactions,
    parameters: &Interactions,
    reasoning: &Interactions,
    models: ModelTable { settings: version_settings, ..ModelTable::NONE },
    rules: RuleSet {
        plan: rules::plan,
        refusal_statuses: BAD_REQUEST,
        remedies: remedies::REMEDIES,
        general_refusals: remedies::GENERAL_REFUSALS,
        leave_out_refused: remedies::leave_out_refused,
        missing_reasoning: None,
        unique_names: None,
    },
    prompt_cache: PromptCache { breakpoints: None, life: |_| SHORT_CACHE_LIFE },
    answer_reader: || Box::new(stream::InteractionsAssembler::default()),
    system: Some(SYSTEM),
    sdk_request: None,
    reasoning_dropping: None,
    service_state: Some(SERVICE_STATE),
    provider_compaction: None,
    paused_turns: Some(PAUSED_TURNS),
    resumable_answers: Some(BACKGROUND_ANSWERS),
    #[cfg(test)]
    recognition: super::recognition::RECOGNITION,
};
