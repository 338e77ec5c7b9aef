//! What OpenAI's Responses endpoint rejects, and the edit that fixes each violation.
//!
//! Sources: its error messages (CLIProxyAPI#2368, vscode#320060, continue#8933, nodetool#4252, codex#42088), corrected
//! by recorded exchanges: reasoning may follow reasoning and may be absent, calls need no `fc_` id, and an output may
//! answer a tool search. Calls and outputs pair by `call_id`; messages of the model may stand between them. Calls of
//! OpenAI's own tools that a client runs pair as functions do ("No tool output found for shell call",
//! agent-framework#8663), and so do approvals ("The following MCP approval requests do not have an approval"). A call
//! of an asynchronous tool may be open, or answered later.

mod async_tools;
mod input_context;
mod input_item;
mod input_reader;
mod items;
mod order;
mod parts;
mod synthetic;

use super::kinds::id_name;
use crate::json::JsonRef;
use crate::provider::openai_chat::rules::ids;
use crate::provider::rules::{ErrorTemplates, IdRule, Pairing, Pairs, Plan, WireCall, quoted, report_pairs};
use async_tools::pair_named_outputs;
use input_context::InputContext;
use input_reader::{InputReader, PairContext, takes_parts};
use order::OutputPlacement;

const IDS: IdRule = IdRule {
    fit: ids::shortened,
    missing: "Missing required parameter: 'call_id' of a function call.",
    invalid: "Invalid 'call_id' '{}': expected a string with maximum length 64 (string_above_max_length).",
    duplicate: "Duplicate call_id '{}' among the calls of one response.",
    ..ids::IDS
};

const ERRORS: ErrorTemplates = ErrorTemplates {
    dangling: "No tool output, or approval, found for call {}.",
    orphan: "No tool call found for tool call output with call_id {}.",
    duplicate: "More than one output for call {}: each call has one.",
};

/// Plans the repair of a Responses body.
pub(crate) fn plan<'a>(plan: &mut Plan<'a, '_>, list: JsonRef<'a>) {
    let (context, async_tools) = InputContext::read(plan, list);
    let output_text = quoted(plan.options.text());
    let mut reader = InputReader::new(plan, context, async_tools, output_text.clone());
    let mut items = Vec::new();
    for (at, value) in list.items().enumerate() {
        reader.plan.at = at;
        items.push(reader.item(value));
        if reader.plan.is_over_budget() {
            return;
        }
    }
    let InputReader { plan, mut pairs, calls, outputs, named_outputs, .. } = reader;
    pairs.pair();
    pair_named_outputs(&mut pairs, &named_outputs);
    pairs.choose_ids(plan, &IDS);
    if plan.is_over_budget() {
        return;
    }
    for call in &mut pairs.calls {
        // A screenshot cannot be synthesized.
        call.omitted |= call.result.is_none() && call.label == "computer_call";
    }
    check_outputs(&mut pairs, &calls, &outputs, context);
    let sentence = "Missing or invalid parameter: 'call_id' must be that of its call.";
    pairs.write_ids(plan, &id_name, sentence);
    report_pairs(plan, &pairs, &ERRORS);
    if plan.is_over_budget() {
        return;
    }
    let synthetic_output = |call: &WireCall<'a>| synthetic::output(call, &output_text);
    let calls_without_reasoning =
        OutputPlacement { pairs: &pairs, synthetic_output: &synthetic_output }.apply(plan, list, items);
    // "… was provided without its required 'reasoning' item" (continue PR#11785): without its id, a call needs no
    // reasoning.
    for call in calls_without_reasoning.iter().filter_map(|index| pairs.calls.get(*index)) {
        if call.value.text("id").is_some_and(|id| id.starts_with("fc_")) {
            plan.edits.remove(call.value, "id");
        }
    }
}

/// Decides which outputs may keep their place, and which need no call in the body.
fn check_outputs(pairs: &mut Pairs<'_>, calls: &[PairContext], outputs: &[PairContext], context: InputContext) {
    for (output, result) in outputs.iter().zip(&mut pairs.results) {
        result.reply_to = None;
        let is_stored = context.has_stored_history && result.pairing == Pairing::Orphan;
        let is_opaque = output.may_answer_opaque_call && matches!(result.pairing, Pairing::Orphan | Pairing::Duplicate);
        if (is_opaque || is_stored) && result.has_valid_id {
            result.pairing = Pairing::HeldByServer;
        }
        let Pairing::Paired(index) = result.pairing else { continue };
        let (Some(call), Some(position)) = (pairs.calls.get(index), calls.get(index)) else { continue };
        // Whether OpenAI's own tools allow a message between call and output is unknown, so such an output stays.
        let in_section = position.section == output.section || !takes_parts(&call.label);
        let has_message_between = context.is_deepseek && output.answer_messages > position.answer_messages;
        let stays = call.order < result.order && (call.may_stay_open || in_section && !has_message_between);
        result.reply_to = stays.then_some(call.group);
    }
}
