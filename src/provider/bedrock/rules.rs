//! What Bedrock's Converse rejects, and the edit that fixes each violation. As of 2026-11-26.
//!
//! Sources: error messages of the API in aws-bedrock-js-plugin#664 and camel#3954 (calls without results),
//! strands harness-sdk#1435 (results without calls) and #1223 (text beside results), dify#17545 and pentagi#160
//! (`toolConfig`), sample-multi-agent-orchestration#15 (errors without content), OpenHands#5339 (blank text),
//! Portkey gateway#748 and semantic-kernel#10281 (order of roles), archestra#4220 and bifrost#5817 (documents, empty
//! content), opencode#38482 and bifrost#7003 (names of documents); the reference of `Message` and `ToolConfiguration`; corrected by recorded exchanges. Those show that Nova
//! and Claude accept text and documents after results, ids with `.` and `:`, and calls and results of the service's own
//! tools in one answer.

mod content;
mod documents;
mod ending;
mod results;
mod tool_config;
mod turn_order;

pub(super) use content::{DOCUMENT_TEXT, has_document_without_text};
pub(super) use documents::repeats_a_name;
pub(super) use results::EMPTY_ERROR_TEXT;

use super::block::{REASONING, TOOL_RESULT, TOOL_USE, is_server_call, is_server_result, kind_of};
use super::content::{MAX_ID_LENGTH, is_valid_id};
use super::models::{Vendor, model_facts, named_model};
use crate::finding::FindingCode;
use crate::id::short_name;
use crate::json::{JsonKind, JsonRef};
use crate::provider::name_charset::plain_id_of;
use crate::provider::rules::{
    Block, BlockKind, ErrorTemplates, Fields, FoundCall, FoundResult, IdRule, PlacementRules, Plan, Speaker,
    TurnGrammar, TurnReader, Violation, WireCall, end_with_user, name_fit, name_valid, object_text, place_blocks,
    quoted, rename_system_turns, write_turns,
};
use content::TEXT_BLOCK_START;

const IDS: IdRule = IdRule {
    optional: false,
    valid: is_valid_id,
    fit: plain_id_of,
    derive: |seed| format!("tooluse_{}", short_name(seed, 22)),
    variant: variant_of,
    missing: "The toolUse.toolUseId field is required: Member must not be null.",
    invalid: "Value '{}' at 'toolUse.toolUseId' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_.:-]+, and have length less than or equal to 64",
    duplicate: "The toolUse blocks contain duplicate Ids: {}",
};

const ERROR_TEMPLATES: ErrorTemplates = ErrorTemplates {
    dangling: "Expected toolResult blocks for the following Ids: {}",
    orphan: "The number of toolResult blocks exceeds the number of toolUse blocks of previous turn. No such call: {}",
    duplicate: "The toolResult blocks contain duplicate Ids: {}",
};

const GRAMMAR: TurnGrammar = TurnGrammar {
    user: "{\"role\":\"user\",\"content\":[",
    model: "{\"role\":\"assistant\",\"content\":[",
    close: "]}",
    text: TEXT_BLOCK_START,
    role: "assistant",
    roles: &[("user", Speaker::User), ("assistant", Speaker::Model), ("system", Speaker::System)],
    has_loose_roles: false,
    merges_user_turns: true,
    unknown_role: "Value at 'messages.{at}.role' failed to satisfy constraint: Member must satisfy enum value set: [user, assistant]",
    not_a_turn: "Value at 'messages.{at}' is no Message object",
    misplaced: "messages.{at}: User messages cannot contain reasoning content or tool uses.",
    only_model: |fields, _| kind_of(fields.object).is_some_and(|(kind, _)| [TOOL_USE, REASONING].contains(&kind)),
    content: read_content,
    keeps_block: content::is_kept,
    block: read_block,
};

/// The longest name of a tool.
const MAX_NAME_LENGTH: usize = 64;

/// Returns the nth variant of an id, not longer than ids may be.
fn variant_of(base: &str, count: usize) -> String {
    let suffix = format!("_{count}");
    let kept: String = base.chars().take(MAX_ID_LENGTH.saturating_sub(suffix.len())).collect();
    kept + &suffix
}

/// Plans the repair of a body.
pub(super) fn plan<'a>(plan: &mut Plan<'a, '_>, list: JsonRef<'a>) {
    let closing_text = quoted(plan.options.text());
    let closing_content = format!("[{TEXT_BLOCK_START}{closing_text}}}]");
    let model = named_model(&plan.body);
    let vendor = Vendor::of(&model);
    let TurnReader { plan, mut pairs, mut turns, .. } = TurnReader::read(plan, list, closing_content.clone(), &GRAMMAR);
    if plan.is_over_budget() {
        return;
    }
    documents::repair_names(plan, list);
    if !model_facts(&model).allows_system_messages {
        rename_system_turns(plan, &mut turns);
    }
    pairs.resolve(plan, &IDS);
    if plan.is_over_budget() {
        return;
    }
    let sentence = "The toolResult.toolUseId field must be the id of a toolUse block.";
    pairs.write_ids(plan, &|_, _| "toolUseId", sentence);
    let synthesize = |call: &WireCall<'_>| {
        let id = quoted(&call.new_id);
        format!("{{\"toolResult\":{{\"toolUseId\":{id},\"content\":{closing_content},\"status\":\"error\"}}}}")
    };
    let placement = PlacementRules { templates: &ERROR_TEMPLATES, synthesize: &synthesize, separate: false };
    let mut turns = place_blocks(plan, turns, &pairs, &placement);
    if plan.is_over_budget() {
        return;
    }
    if vendor == Vendor::Claude {
        content::remove_unsigned(plan, &mut turns);
    }
    turn_order::alternate(plan, list, &mut turns);
    content::repair_system(plan);
    if vendor == Vendor::Other {
        turn_order::separate_results(plan, list, &mut turns);
    }
    content::add_document_texts(plan, &mut turns);
    if vendor == Vendor::Claude {
        ending::trim_last_message(plan, &mut turns);
        if !model_facts(&model).allows_prefill {
            let is_resumed = |block: &Block<'_>| matches!(block.kind, BlockKind::ServerCall | BlockKind::ServerResult);
            end_with_user(plan, &mut turns, TEXT_BLOCK_START, is_resumed);
        }
    }
    tool_config::repair(plan, &turns, &pairs);
    write_turns(plan, list, &mut turns, &GRAMMAR);
}

/// Reads a message's content, which is a list of blocks, into the last turn.
fn read_content<'a>(reader: &mut TurnReader<'_, 'a, '_>, fields: &Fields<'a>) {
    let content = fields.get("content").unwrap_or_default();
    let is_blank = content.is_null() || content.as_text().is_some_and(|text| text.trim().is_empty());
    if is_blank || content.kind() == JsonKind::Array && content.items().next().is_none() {
        let sentence = "The content field in the Message object at messages.{at} is empty. Add a ContentBlock object to the content field and try again.";
        reader.plan.report(Violation::error(FindingCode::EmptyContent, sentence).at(fields.object).dropped());
        return reader.drop_turn();
    }
    if content.kind() == JsonKind::Array {
        return reader.blocks(fields, content);
    }
    let sentence = "Value at 'messages.{at}.content' failed to satisfy constraint: a list of ContentBlock objects";
    let violation = Violation::error(FindingCode::Malformed, sentence).at_member(fields.object, "content");
    reader.plan.report(violation.rewritten());
    if content.is_object() {
        reader.plan.edits.wrap(content, "[", "]");
        return reader.blocks(fields, content);
    }
    let piece = reader.plan.as_text(TEXT_BLOCK_START, content);
    reader.text(content);
    if let Some(turn) = reader.turns.last_mut() {
        turn.touched = true;
        if let Some(block) = turn.blocks.last_mut() {
            block.piece = piece;
        }
    }
}

/// Reads a block that is kept.
fn read_block<'a>(
    reader: &mut TurnReader<'_, 'a, '_>,
    fields: &Fields<'a>,
    _type: &str,
    speaker: Speaker,
) -> Option<Block<'a>> {
    let value = fields.object;
    let (kind, inner) = kind_of(value).filter(|(_, inner)| inner.is_object()).unwrap_or_default();
    let is_model = speaker == Speaker::Model;
    if kind == TOOL_RESULT && !(is_model && is_server_result(inner)) {
        let inner_fields = Fields::of(inner);
        results::repair(reader.plan, &inner_fields);
        let (id, content) = (inner_fields.get("toolUseId"), inner_fields.get("content"));
        let found = FoundResult { value: inner, id, reply_to: reader.reply_to, content, ..FoundResult::default() };
        let result = reader.pairs.add_result(found);
        let piece = content::repair_block(reader.plan, fields);
        return Some(Block { kind: BlockKind::ToolResult(result), value: Some(value), piece });
    }
    // Results after any other block are not at the place of a reply. A cache point belongs to what it follows.
    if kind != super::block::CACHE_POINT {
        reader.reply_to = None;
    }
    let block_kind = match kind {
        TOOL_USE if is_model && is_server_call(inner) => BlockKind::ServerCall,
        TOOL_RESULT => BlockKind::ServerResult,
        TOOL_USE => {
            let inner_fields = Fields::of(inner);
            repair_call(reader.plan, &inner_fields);
            let id = inner_fields.get("toolUseId");
            let found = FoundCall { value: inner, id, group: reader.run, ..FoundCall::default() };
            BlockKind::ToolCall(reader.pairs.add_call(found))
        }
        REASONING => BlockKind::Thinking,
        _ => BlockKind::Other,
    };
    Some(Block { kind: block_kind, value: Some(value), piece: content::repair_block(reader.plan, fields) })
}

/// Repairs the `name` and the `input` of a call.
fn repair_call<'a>(plan: &mut Plan<'a, '_>, fields: &Fields<'a>) {
    let name = fields.owned_text("name");
    if !name_valid(&name, MAX_NAME_LENGTH) {
        let sentence = "Value '{}' at 'messages.{at}.toolUse.name' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_-]+, and have length less than or equal to 64";
        let violation = Violation::error(FindingCode::Malformed, sentence).at_member(fields.object, "name");
        plan.rewrite(violation.quoting(&name), quoted(&name_fit(&name, MAX_NAME_LENGTH)));
    }
    let input = fields.get("input");
    if !input.is_some_and(JsonRef::is_object) {
        let sentence = "The format of the value at messages.{at}.toolUse.input is invalid. Provide a json object for the field and try again.";
        let violation = Violation::error(FindingCode::InvalidArguments, sentence).at_member(fields.object, "input");
        plan.rewrite(violation, object_text(input));
    }
}
