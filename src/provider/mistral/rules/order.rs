//! Mistral's rules of order.

use crate::finding::FindingCode;
use crate::json::JsonRef;
use crate::provider::openai_chat::rules::{ChatList, PendingAssistant};
use crate::provider::rules::{ListMessage, ListMessageKind, Plan, Violation, quoted};

/// Plans what Mistral requires of the order of messages.
pub(super) fn check_order<'a>(plan: &mut Plan<'a, '_>, read: &ChatList<'a, '_>) {
    fix_prefixes(plan, read);
    fix_system_messages(plan, read.list, read.messages);
}

/// Turns system messages after an answer or a result into user messages: "Unexpected role 'system' after role
/// 'assistant'", and after 'tool' (hosted, 2024-08 and 2025-08). Their content keeps its place.
fn fix_system_messages<'a>(plan: &mut Plan<'a, '_>, list: JsonRef<'a>, messages: &[ListMessage]) {
    let mut previous = "";
    for (value, message) in list.items().zip(messages) {
        previous = match message.kind {
            // Its results are placed after it.
            ListMessageKind::ToolCalls(_) => "tool",
            ListMessageKind::ToolResult | ListMessageKind::Removed => continue,
            ListMessageKind::Other => {
                if message.role == "system" && matches!(previous, "assistant" | "tool") {
                    let sentence = "Unexpected role 'system' after role '{}'";
                    let violation = Violation::error(FindingCode::RoleOrder, sentence);
                    plan.rewrite(violation.at_member(value, "role").quoting(previous), quoted("user"));
                }
                message.role
            }
        };
    }
}

/// Gives an assistant message at the end the member `"prefix":true`, and takes it from every other: "Expected last role
/// User or Tool (or Assistant with prefix True) for serving but got assistant", and "Assistant message with prefix True
/// must be last message".
fn fix_prefixes<'a>(plan: &mut Plan<'a, '_>, read: &ChatList<'a, '_>) {
    let ChatList { messages, assistants, pairs, .. } = *read;
    let stays = |message: &ListMessage| matches!(message.kind, ListMessageKind::Other | ListMessageKind::ToolCalls(_));
    let last = messages.iter().rposition(stays);
    for assistant in assistants.iter().filter(|assistant| Some(assistant.at) != last) {
        let is_kept = |message: &ListMessage| message.kind != ListMessageKind::Removed && message.piece.is_source();
        if messages.get(assistant.at).is_some_and(is_kept) && has_prefix(assistant) {
            let sentence = "Assistant message with prefix True must be last message";
            let violation = Violation::error(FindingCode::RoleOrder, sentence);
            plan.rewrite(violation.at_member(assistant.value, "prefix"), "false".into());
        }
    }
    let Some(assistant) = assistants.iter().rev().find(|assistant| Some(assistant.at) == last) else { return };
    let has_calls = assistant.calls(pairs).iter().any(|call| !call.omitted);
    let is_unchanged = |message: &ListMessage| message.moved_parts.is_empty() && message.piece.is_source();
    let stays_last = !has_calls && messages.get(assistant.at).is_some_and(is_unchanged);
    if stays_last && !has_prefix(assistant) {
        let sentence = "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant";
        plan.report(Violation::error(FindingCode::RoleOrder, sentence).at(assistant.value).rewritten());
        plan.edits.set(assistant.value, "prefix", "true".into());
    }
}

fn has_prefix(assistant: &PendingAssistant<'_>) -> bool {
    assistant.value.get("prefix").and_then(JsonRef::as_bool) == Some(true)
}
