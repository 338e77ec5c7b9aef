//! What OpenAI's Chat Completions rejects, and the edit that fixes each violation. Mistral's bodies are read by the
//! same code, with [`ChatRules`] of its own.
//!
//! Sources: OpenAI's schema and its error messages (cai#111, litellm#10083, smarter#264, agentao#321, dify#32222),
//! corrected by recorded exchanges: `content` may be absent, null or empty beside calls, a later turn may use an id
//! again, and results may be in any order.

mod assistant;
pub(crate) mod call_form;
mod chat_rules;
pub(crate) mod ids;
mod message_reader;
mod missing_reasoning;
pub(crate) mod parts;

use crate::json::JsonRef;
use crate::provider::rules::{ErrorTemplates, ListPlacement, Plan, WireCall, place_messages, quoted};
pub(crate) use assistant::PendingAssistant;
pub(crate) use chat_rules::{ChatList, ChatRules};
use message_reader::ChatMessageReader;
pub(super) use missing_reasoning::find_missing_reasoning;

const OPENAI: ChatRules = ChatRules {
    ids: ids::IDS,
    errors: ErrorTemplates {
        dangling: "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: {}",
        orphan: "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'. No such call: '{}'.",
        duplicate: "Invalid parameter: Duplicate value for 'tool_call_id' of '{}': each call has exactly one tool message.",
    },
    lenient: false,
    allowed_parts: parts::allowed_by_openai,
    developer_role: true,
    empty_answer: None,
    checks_result_names: false,
    check_order: |_, _| {},
};

/// Plans the repair of an OpenAI body.
pub(crate) fn plan<'a>(plan: &mut Plan<'a, '_>, list: JsonRef<'a>) {
    plan_as(plan, list, &OPENAI);
    missing_reasoning::report_missing_reasoning(plan, list);
}

/// Plans the repair of a body with the rules of a provider.
pub(crate) fn plan_as<'a>(plan: &mut Plan<'a, '_>, list: JsonRef<'a>, rules: &ChatRules) {
    let result_text = quoted(plan.options.text());
    let mut reader = ChatMessageReader::new(plan, rules, result_text.clone());
    for (at, value) in list.items().enumerate() {
        reader.read(at, value);
        if reader.plan.is_over_budget() {
            return;
        }
    }
    let ChatMessageReader { plan, mut messages, mut pairs, assistants, .. } = reader;
    pairs.resolve(plan, &rules.ids);
    if plan.is_over_budget() {
        return;
    }
    for assistant in &assistants {
        if let Some(message) = messages.get_mut(assistant.at) {
            assistant.settle(plan, &pairs, message, rules.empty_answer);
        }
    }
    (rules.check_order)(plan, &ChatList { list, messages: &messages, assistants: &assistants, pairs: &pairs });
    let sentence = "Missing or invalid parameter: 'tool_call_id' must be the id of its call.";
    pairs.write_ids(plan, &|_, is_call| if is_call { "id" } else { "tool_call_id" }, sentence);
    let synthetic_result = |call: &WireCall<'_>| {
        format!("{{\"role\":\"tool\",\"tool_call_id\":{},\"content\":{result_text}}}", quoted(&call.new_id))
    };
    let placement = ListPlacement {
        list,
        messages,
        templates: &rules.errors,
        synthesize: &synthetic_result,
        held_results_first: false,
    };
    place_messages(plan, &pairs, placement);
}
