//! What Anthropic's Messages endpoint rejects, and the edit that fixes each violation.
//!
//! Sources: the error messages of the API (claude-code#2697, #13460, #59812, #64383, cua#524, language-servers#1235,
//! opencode#3077, forgecode#1853), corrected by recorded exchanges. Those show that Anthropic accepts an id that a
//! later turn uses again, an assistant message in the first place, consecutive assistant messages (as one turn), text
//! after results, ids of other providers, a server call without a result next to a client call, and system messages
//! among the others.

mod cache_marks;
mod compaction;
mod content;
mod last_message;
mod model_limits;
mod server_tools;

pub(crate) use cache_marks::MAX_CACHE_MARKS;
pub(crate) use content::EMPTY_ERROR_TEXT;
pub(super) use model_limits::accepted_kind;

use super::threads::{THREAD, is_continued};
use crate::finding::FindingCode;
use crate::id::short_name;
use crate::json::{JsonKind, JsonRef};
use crate::provider::models::ModelFacts;
use crate::provider::rules::{
    Block, BlockKind, ErrorTemplates, Fields, FoundCall, FoundResult, IdRule, Pairing, Pairs, PlacementRules, Plan,
    Speaker, TurnGrammar, TurnReader, Violation, WireCall, as_quoted, name_fit, name_valid, object_text, place_blocks,
    quoted, rename_system_turns, write_turns,
};
use content::TEXT_BLOCK_START;
use last_message::Ending;

const IDS: IdRule = IdRule {
    optional: false,
    valid: |id| name_valid(id, usize::MAX),
    fit: |id| name_fit(id, usize::MAX),
    derive: |seed| format!("toolu_{}", short_name(seed, 24)),
    variant: |base, count| format!("{base}_{count}"),
    missing: "tool_use.id: Field required: String should have at least 1 character.",
    invalid: "tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$': '{}'.",
    duplicate: "`tool_use` ids must be unique: '{}'.",
};

const ERROR_TEMPLATES: ErrorTemplates = ErrorTemplates {
    dangling: "`tool_use` ids were found without `tool_result` blocks immediately after: {}. Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
    orphan: "unexpected `tool_use_id` found in `tool_result` blocks: {}. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.",
    duplicate: "each tool_use must have a single result. Found multiple `tool_result` blocks with id: {}",
};

/// A member that a result repeats from its call.
pub(crate) const TOOLSET_NAME: &str = "toolset_name";

const GRAMMAR: TurnGrammar = TurnGrammar {
    user: "{\"role\":\"user\",\"content\":[",
    model: "{\"role\":\"assistant\",\"content\":[",
    close: "]}",
    text: TEXT_BLOCK_START,
    role: "assistant",
    roles: &[("user", Speaker::User), ("assistant", Speaker::Model), ("system", Speaker::System)],
    has_loose_roles: false,
    merges_user_turns: true,
    unknown_role: "messages.{at}.role: Input should be 'user' or 'assistant'",
    not_a_turn: "messages.{at}: Input should be a valid dictionary or object to extract fields from",
    misplaced: "messages.{at}: `{}` blocks can only be in `assistant` messages",
    only_model: |_, kind| {
        ["tool_use", "thinking", "redacted_thinking", "server_tool_use", "mcp_tool_use"].contains(&kind)
    },
    content: read_content,
    keeps_block: content::is_kept,
    block: read_block,
};

/// The longest name of a tool.
const MAX_NAME_LENGTH: usize = 128;

/// Plans the repair of an Anthropic body.
pub(crate) fn plan<'a>(plan: &mut Plan<'a, '_>, list: JsonRef<'a>, facts: &ModelFacts) {
    let closing_text = quoted(plan.options.text());
    let TurnReader { plan, mut pairs, mut turns, .. } = TurnReader::read(plan, list, closing_text.clone(), &GRAMMAR);
    if plan.is_over_budget() {
        return;
    }
    if !facts.allows_system_messages {
        rename_system_turns(plan, &mut turns);
    }
    pairs.resolve(plan, &IDS);
    if plan.is_over_budget() {
        return;
    }
    // `"thread":{"type":"continue",…}`: the server has the turns before those of the list.
    let has_held_turns = plan.body.find(THREAD).is_some_and(is_continued);
    if has_held_turns {
        keep_results_of_held_calls(&mut pairs);
    }
    let sentence = "tool_result.tool_use_id: Field required: the id of its `tool_use` block.";
    pairs.write_ids(plan, &|_, is_call| if is_call { "id" } else { "tool_use_id" }, sentence);
    let synthesize = |call: &WireCall<'_>| synthesize_result(call, &closing_text);
    let placement = PlacementRules { templates: &ERROR_TEMPLATES, synthesize: &synthesize, separate: false };
    let mut turns = place_blocks(plan, turns, &pairs, &placement);
    if plan.is_over_budget() {
        return;
    }
    content::remove_blank_texts(plan, &mut turns);
    server_tools::remove_unpaired(plan, &mut turns, has_held_turns);
    compaction::repair(plan, &mut turns);
    content::remove_empty_system_texts(plan);
    let thinking = model_limits::repair(plan, facts);
    let ending = Ending { thinking, facts, has_held_turns };
    last_message::repair(plan, &mut turns, &ending);
    cache_marks::remove_excess(plan, list, &turns);
    write_turns(plan, list, &mut turns, &GRAMMAR);
}

/// Marks results without a call as answers to calls that the server has.
fn keep_results_of_held_calls(pairs: &mut Pairs<'_>) {
    for result in &mut pairs.results {
        if result.pairing == Pairing::Orphan && result.has_valid_id {
            result.pairing = Pairing::HeldByServer;
        }
    }
}

/// Returns an error result for a call without a result. `text` is a JSON string.
fn synthesize_result(call: &WireCall<'_>, text: &str) -> String {
    let id = quoted(&call.new_id);
    let toolset = match call.value.find(TOOLSET_NAME) {
        Some(name) => format!(",\"{TOOLSET_NAME}\":{}", name.as_raw()),
        None => String::new(),
    };
    format!("{{\"type\":\"tool_result\",\"tool_use_id\":{id},\"content\":{text},\"is_error\":true{toolset}}}")
}

/// Reads a message's content, a text or a list of blocks, into the last turn.
fn read_content<'a>(reader: &mut TurnReader<'_, 'a, '_>, fields: &Fields<'a>) {
    let content = fields.get("content");
    if let Some(turn) = reader.turns.last_mut() {
        turn.content = content;
    }
    let Some(content) = content else { return read_empty_message(reader, fields) };
    match content.kind() {
        JsonKind::Null => read_empty_message(reader, fields),
        JsonKind::String if content.is_text("") => read_empty_message(reader, fields),
        JsonKind::Array if content.items().next().is_none() => read_empty_message(reader, fields),
        JsonKind::String => {
            reader.text(content);
            let text = reader.turns.last_mut().and_then(|turn| turn.blocks.last_mut());
            if let Some(text) = text.filter(|_| content::is_blank(Some(content))) {
                text.kind = BlockKind::EmptyText;
            }
        }
        JsonKind::Array => reader.blocks(fields, content),
        JsonKind::Object => {
            let sentence = "messages.{at}.content: Input should be a valid list";
            let violation = Violation::error(FindingCode::Malformed, sentence).at_member(fields.object, "content");
            reader.plan.report(violation.rewritten());
            reader.plan.edits.wrap(content, "[", "]");
            reader.blocks(fields, content);
        }
        JsonKind::Number | JsonKind::Bool => {
            let sentence = "messages.{at}.content: Input should be a valid string or list";
            let violation = Violation::error(FindingCode::Malformed, sentence).at_member(fields.object, "content");
            reader.plan.rewrite(violation, as_quoted(content));
            reader.text(content);
        }
    }
}

/// Removes a message without content. Anthropic accepts an empty assistant message as the last one, if no result is
/// added after it, and an empty system message with an `output_config`.
fn read_empty_message<'a>(reader: &mut TurnReader<'_, 'a, '_>, fields: &Fields<'a>) {
    let speaker = reader.turns.last().map(|turn| turn.speaker);
    let extends_calls =
        reader.last == Some(Speaker::Model) && reader.pairs.calls.last().is_some_and(|call| call.group == reader.run);
    let is_final_answer = reader.is_last() && speaker == Some(Speaker::Model) && !extends_calls;
    let has_settings = speaker == Some(Speaker::System) && fields.find("output_config").is_some();
    if is_final_answer && fields.find("content").is_some() || has_settings {
        return;
    }
    let sentence =
        "messages.{at}: all messages must have non-empty content except for the optional final assistant message";
    reader.plan.report(Violation::error(FindingCode::EmptyContent, sentence).at(fields.object).dropped());
    reader.drop_turn();
}

/// Reads a block that is kept.
fn read_block<'a>(
    reader: &mut TurnReader<'_, 'a, '_>,
    fields: &Fields<'a>,
    kind: &str,
    speaker: Speaker,
) -> Option<Block<'a>> {
    let value = fields.object;
    if kind == "tool_result" {
        content::repair_result(reader.plan, fields);
        let (id, content) = (fields.get("tool_use_id"), fields.get("content"));
        let found = FoundResult { value, id, reply_to: reader.reply_to, content, ..FoundResult::default() };
        let result = reader.pairs.add_result(found);
        let piece = reader.plan.edits.source(value);
        return Some(Block { kind: BlockKind::ToolResult(result), value: Some(value), piece });
    }
    // Results after any other block are not at the place of a reply.
    reader.reply_to = None;
    let kind = match kind {
        "tool_use" => {
            repair_call(reader.plan, fields);
            let found = FoundCall { value, id: fields.get("id"), group: reader.run, ..FoundCall::default() };
            BlockKind::ToolCall(reader.pairs.add_call(found))
        }
        "thinking" | "redacted_thinking" => BlockKind::Thinking,
        "fallback" => {
            allow_open_calls(reader);
            BlockKind::Other
        }
        "text" if content::is_blank(fields.get("text")) => BlockKind::EmptyText,
        "server_tool_use" | "mcp_tool_use" if fields.text("id").is_some() => BlockKind::ServerCall,
        "server_tool_use" | "mcp_tool_use" => BlockKind::Other,
        _ if speaker == Speaker::Model && kind.ends_with("_tool_result") => BlockKind::ServerResult,
        _ => {
            let piece = content::repair_block(reader.plan, fields, kind, speaker == Speaker::Model);
            return Some(Block { kind: BlockKind::Other, value: Some(value), piece });
        }
    };
    Some(Block { kind, value: Some(value), piece: reader.plan.edits.source(value) })
}

/// Lets the calls of an answer stay open that another model continued: "no `tool_result` is sent" for some blocks
/// before the last `fallback` block (@anthropic-ai/sdk 1.12.0, `BetaFallbackBlockParam`).
fn allow_open_calls(reader: &mut TurnReader<'_, '_, '_>) {
    let run = reader.pairs.calls_of(reader.run);
    for call in reader.pairs.calls.get_mut(run).unwrap_or_default() {
        call.may_stay_open = true;
    }
}

/// Repairs the `name` and the `input` of a call.
fn repair_call<'a>(plan: &mut Plan<'a, '_>, fields: &Fields<'a>) {
    let name = fields.owned_text("name");
    if !name_valid(&name, MAX_NAME_LENGTH) {
        let sentence = "messages.{at}.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$': '{}'";
        let violation = Violation::error(FindingCode::Malformed, sentence).at_member(fields.object, "name");
        plan.rewrite(violation.quoting(&name), quoted(&name_fit(&name, MAX_NAME_LENGTH)));
    }
    let input = fields.get("input");
    if !input.is_some_and(JsonRef::is_object) {
        let sentence = "messages.{at}.tool_use.input: Input should be a valid dictionary";
        let violation = Violation::error(FindingCode::InvalidArguments, sentence).at_member(fields.object, "input");
        plan.rewrite(violation, object_text(input));
    }
}
