//! Anthropic Messages as a dialect.

use super::content::CONTENT;
use super::paused_turns::PAUSED_TURNS;
use super::provider_compaction::PROVIDER_COMPACTION;
use super::reasoning::DROPPING;
use super::rules::MAX_CACHE_MARKS;
use super::system::SYSTEM;
use super::threads::{SERVICE_STATE, THREAD};
use super::{Anthropic, models, remedies, rules, stream};
use crate::clock::Ms;
use crate::json::JsonRef;
use crate::message::Dialect;
use crate::provider::spec::{
    BAD_REQUEST, BodyProfile, CacheBreakpoints, DialectSpec, ItemFormat, ModelTable, PromptCache, RuleSet,
    SHORT_CACHE_LIFE,
};

/// Anthropic Messages.
pub(crate) static SPEC: DialectSpec = DialectSpec {
    body: BodyProfile {
        reserved_members: &["messages", "system", THREAD],
        credential_members: &[&["mcp_servers", "*", "authorization_token"], &["mcp_servers", "*", "headers"]],
        rejected_members: &[
            "stream_options",
            "n",
            "frequency_penalty",
            "presence_penalty",
            "logit_bias",
            "logprobs",
            "top_logprobs",
            "response_format",
            "seed",
            "parallel_tool_calls",
            "user",
            "store",
            "max_completion_tokens",
            "reasoning_effort",
            "stop",
            "modalities",
            "prediction",
        ],
        bound_instructions: Some("system"),
        has_strict_tools: false,
        required_headers: &[("anthropic-version", "2023-06-01")],
        ..BodyProfile::COMMON
    },
    content: &CONTENT,
    items: ItemFormat {
        dialect: Dialect::Anthropic,
        family: Dialect::Anthropic,
        list: "messages",
        decode_text: None,
        takes_single_item: false,
        recognizer: &Anthropic,
    },
    messages: &Anthropic,
    tools: &Anthropic,
    parameters: &Anthropic,
    reasoning: &Anthropic,
    models: ModelTable { facts: models::model_facts, ..ModelTable::NONE },
    rules: RuleSet {
        plan: |plan, list| {
            let facts = models::model_facts(&plan.body.text("model").unwrap_or_default());
            rules::plan(plan, list, &facts);
        },
        refusal_statuses: BAD_REQUEST,
        remedies: remedies::REMEDIES,
        general_refusals: &[],
        leave_out_refused: remedies::leave_out_refused,
        missing_reasoning: None,
        unique_names: None,
    },
    prompt_cache: PromptCache {
        breakpoints: Some(CacheBreakpoints { member: "\"cache_control\"", limit: MAX_CACHE_MARKS }),
        life: cache_life,
    },
    answer_reader: || Box::new(stream::AnthropicAssembler::default()),
    system: Some(SYSTEM),
    sdk_request: None,
    reasoning_dropping: Some(DROPPING),
    service_state: Some(SERVICE_STATE),
    provider_compaction: Some(PROVIDER_COMPACTION),
    paused_turns: Some(PAUSED_TURNS),
    resumable_answers: None,
    #[cfg(test)]
    recognition: super::recognition::RECOGNITION,
};

fn cache_life(params: JsonRef<'_>) -> Ms {
    let ttl = params.get("cache_control").and_then(|control| control.text("ttl"));
    if ttl.is_some_and(|ttl| ttl == "1h") { 3_600_000 } else { SHORT_CACHE_LIFE }
}
