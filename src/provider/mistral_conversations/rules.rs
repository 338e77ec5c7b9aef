//! What the endpoint rejects, and the edit that fixes each violation.
//!
//! Sources: the schema of entries (client-python, `InputEntries` and what it is a union of, read on 2026-11-28), and
//! the answer of Mistral's agents to calls without results, which is that of its chat endpoint: "Not the same number of
//! function calls and responses", code 3230 (client-python#234). So results follow their calls here, too. The chat
//! endpoint's rule of call ids is confirmed neither by the schema, where an id is any text, nor by other clients, which
//! send `search-1` (vercel/ai, `convert-to-mistral-conversation-inputs.ts`): a remedy has it, and no rule. Other rules
//! of the chat endpoint are not documented for entries, and are none here.

mod entry_reader;

use super::entry::{CALL_ID, RESULT};
use super::parameters::continues_conversation;
use crate::finding::FindingCode;
use crate::json::JsonRef;
use crate::provider::mistral::rules::{self, DANGLING, DUPLICATE_RESULT};
use crate::provider::rules::{
    ErrorTemplates, IdRule, ListMessage, ListMessageKind, ListPlacement, Pairing, Pairs, Plan, Violation, WireCall,
    place_messages, quoted,
};
use entry_reader::{EntryReader, ReadEntry};
use std::collections::BTreeSet;

const ERRORS: ErrorTemplates = ErrorTemplates {
    dangling: DANGLING,
    orphan: "Unexpected tool call id {} in tool results: a result must answer a call of the entries before it.",
    duplicate: DUPLICATE_RESULT,
};

/// An id is any text. A new one fits the chat endpoint, too.
const IDS: IdRule = IdRule {
    valid: |_| true,
    missing: "inputs.{at}.function.call.tool_call_id: Input should be a valid string",
    invalid: "inputs.{at}.function.call.tool_call_id: Input should be a valid string, but was {}",
    ..rules::IDS
};

/// Plans the repair of a body.
pub(super) fn plan<'a>(plan: &mut Plan<'a, '_>, list: JsonRef<'a>) {
    let result_text = quoted(plan.options.text());
    remove_model_beside_agent(plan);
    let continues_conversation = continues_conversation(plan.body.object);
    let mut reader = EntryReader::new(plan, list, result_text.clone());
    for (at, value) in list.items().enumerate() {
        reader.read(at, value);
        if reader.plan.is_over_budget() {
            return;
        }
    }
    let EntryReader { plan, entries, mut pairs, .. } = reader;
    pairs.resolve(plan, &IDS);
    if plan.is_over_budget() {
        return;
    }
    if continues_conversation {
        keep_results_of_held_calls(&mut pairs);
    }
    pairs.write_ids(plan, &|_, _| CALL_ID, "Missing or invalid 'tool_call_id': it must be that of its call.");
    let messages = messages_of(entries, &pairs);
    let synthetic_result = |call: &WireCall<'_>| {
        let id = quoted(&call.new_id);
        format!("{{\"type\":\"{RESULT}\",\"{CALL_ID}\":{id},\"result\":{result_text}}}")
    };
    report_late_results(plan, &messages, &pairs);
    let templates = &ERRORS;
    let placement =
        ListPlacement { list, messages, templates, synthesize: &synthetic_result, held_results_first: true };
    place_messages(plan, &pairs, placement);
}

/// Removes the model of a request to an agent, which has one: "Only one for model or agent_id should be set"
/// (client-python, `run/context.py`, read on 2026-11-29).
fn remove_model_beside_agent(plan: &mut Plan<'_, '_>) {
    let body = plan.body.object;
    if plan.body.find("model").is_none() || plan.body.find("agent_id").is_none() {
        return;
    }
    let sentence = "Only one of model or agent_id should be set.";
    plan.report(Violation::error(FindingCode::Malformed, sentence).at_member(body, "model").dropped());
    plan.edits.remove(body, "model");
}

/// Reports results of calls that the service keeps, after other entries. They move before them.
fn report_late_results<'a>(plan: &mut Plan<'a, '_>, messages: &[ListMessage], pairs: &Pairs<'a>) {
    let mut is_late = false;
    let mut results = pairs.results.iter();
    for message in messages {
        match message.kind {
            ListMessageKind::ToolResult => {
                let held = results.next().filter(|result| result.pairing == Pairing::HeldByServer);
                if let Some(result) = held.filter(|_| is_late) {
                    let sentence = "Cannot append other inputs while function results are still missing. Provide function results first for: ['{}']";
                    let violation = Violation::error(FindingCode::InterposedMessage, sentence).at(result.value);
                    plan.report(violation.quoting(result.id.as_deref().unwrap_or_default()).moved());
                }
            }
            ListMessageKind::ToolCalls(_) | ListMessageKind::Other => is_late = true,
            ListMessageKind::Removed => {}
        }
    }
}

/// Keeps the results of calls that are not in the body: the service has them. Each has one result.
fn keep_results_of_held_calls(pairs: &mut Pairs<'_>) {
    let mut seen = BTreeSet::new();
    for result in pairs.results.iter_mut().filter(|result| result.pairing == Pairing::Orphan && result.has_valid_id) {
        let is_first = seen.insert(result.id.clone());
        result.pairing = if is_first { Pairing::HeldByServer } else { Pairing::Duplicate };
    }
}

/// Returns the entries as the list is arranged. The results of an answer's calls follow its last entry.
fn messages_of(entries: Vec<ReadEntry>, pairs: &Pairs<'_>) -> Vec<ListMessage> {
    let mut messages = Vec::with_capacity(entries.len());
    // The group of the answer that the entry before belongs to, and the index of its last entry that stays.
    let mut last: Option<(usize, usize)> = None;
    for ReadEntry { mut message, call, answer } in entries {
        if call.and_then(|call| pairs.calls.get(call)).is_some_and(|call| call.omitted) {
            message.kind = ListMessageKind::Removed;
        }
        if let Some(group) = answer.filter(|_| message.kind != ListMessageKind::Removed) {
            if last.is_some_and(|(before, _)| before != group) {
                end_answer(&mut messages, last.take(), pairs);
            }
            last = Some((group, messages.len()));
        }
        messages.push(message);
    }
    end_answer(&mut messages, last, pairs);
    messages
}

/// Marks the last entry of an answer with calls: their results follow it.
fn end_answer(messages: &mut [ListMessage], last: Option<(usize, usize)>, pairs: &Pairs<'_>) {
    let Some((group, at)) = last.filter(|(group, _)| !pairs.calls_of(*group).is_empty()) else { return };
    if let Some(message) = messages.get_mut(at) {
        message.kind = ListMessageKind::ToolCalls(group);
    }
}
