//! What Anthropic's messages endpoint refuses, and the edit that mends it.
//!
//! Sources: the sentences that its API answers with (claude-code#2697, #13460, #59812, #64383, cua#524,
//! language-servers#1235, opencode#3077, forgecode#1853), corrected by recorded exchanges: an id may come again in a later
//! turn, an assistant message may be first, assistant messages in a row are one turn, text may follow the results, foreign
//! ids pass, a server's call may stand unpaired beside a client's, system messages may stand in the middle.

mod content;
mod end;
mod marks;
mod server;

pub(crate) use content::EMPTY_ERROR_TEXT;
pub(crate) use marks::MAX_CACHE_MARKS;

use crate::finding::FindingCode;
use crate::id::short_name;
use crate::json::{JsonRef, Kind};
use crate::provider::rules::{
    Block, BlockKind, ErrorTemplates, Fields, IdRule, Pairing, Plan, Speaker, TurnGrammar, TurnReader, Violation,
    WireCall, as_quoted, name_fit, name_valid, object_text, place_blocks, quoted, write_turns,
};

const IDS: IdRule = IdRule {
    optional: false,
    valid: |id| name_valid(id, usize::MAX),
    fit: |id| name_fit(id, usize::MAX),
    derive: |seed| format!("toolu_{}", short_name(seed, 24)),
    variant: |base, count| format!("{base}_{count}"),
    missing: "tool_use.id: Field required: String should have at least 1 character.",
    invalid: "tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$': '{}'.",
    double: "`tool_use` ids must be unique: '{}'.",
};

const ERROR_TEMPLATES: ErrorTemplates = ErrorTemplates {
    dangling: "`tool_use` ids were found without `tool_result` blocks immediately after: {}. Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
    orphan: "unexpected `tool_use_id` found in `tool_result` blocks: {}. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.",
    duplicate: "each tool_use must have a single result. Found multiple `tool_result` blocks with id: {}",
};

/// A member that a result repeats from its call.
pub(crate) const TOOLSET_NAME: &str = "toolset_name";

/// How a text block begins.
const TEXT: &str = "{\"type\":\"text\",\"text\":";

const GRAMMAR: TurnGrammar = TurnGrammar {
    user: "{\"role\":\"user\",\"content\":[",
    model: "{\"role\":\"assistant\",\"content\":[",
    close: "]}",
    text: TEXT,
    role: "assistant",
    roles: &[("user", Speaker::User), ("assistant", Speaker::Model), ("system", Speaker::System)],
    lax: false,
    joined: true,
    no_role: "messages.{at}.role: Input should be 'user' or 'assistant'",
    no_turn: "messages.{at}: Input should be a valid dictionary or object to extract fields from",
    misplaced: "messages.{at}: `{}` blocks can only be in `assistant` messages",
    only_model: |_, kind| {
        ["tool_use", "thinking", "redacted_thinking", "server_tool_use", "mcp_tool_use"].contains(&kind)
    },
    content: message,
    stays: content::stays,
    block,
};

const MAX_NAME: usize = 128;

/// Plans the repair of an Anthropic body.
pub(crate) fn plan<'a>(plan: &mut Plan<'a, '_>, list: JsonRef<'a>) {
    let text = quoted(plan.options.text());
    let TurnReader { plan, mut pairs, turns, .. } = TurnReader::read(plan, list, text.clone(), &GRAMMAR);
    pairs.settle(plan, &IDS);
    // The server holds the turns before these.
    let held = plan.body.find("thread").is_some_and(|thread| thread.says("type", "continue"));
    for answer in
        pairs.results.iter_mut().filter(|answer| held && answer.pairing == Pairing::Orphan && answer.has_valid_id)
    {
        answer.pairing = Pairing::HeldByServer;
    }
    let sentence = "tool_result.tool_use_id: Field required: the id of its `tool_use` block.";
    pairs.write_ids(plan, &|_, calls| if calls { "id" } else { "tool_use_id" }, sentence);
    let made = |call: &WireCall<'_>| {
        let id = quoted(&call.new_id);
        let toolset = call
            .value
            .find(TOOLSET_NAME)
            .map_or_else(String::new, |name| format!(",\"{TOOLSET_NAME}\":{}", name.as_raw()));
        format!("{{\"type\":\"tool_result\",\"tool_use_id\":{id},\"content\":{text},\"is_error\":true{toolset}}}")
    };
    let mut turns = place_blocks(plan, list, turns, &pairs, &ERROR_TEMPLATES, &made, false);
    content::leave_blank(plan, &mut turns);
    server::mend(plan, &mut turns, held);
    content::leave_empty(plan);
    end::mend(plan, &mut turns);
    marks::mend(plan, list, &turns);
    write_turns(plan, list, &mut turns, &GRAMMAR);
}

/// A message's content: a text or a list of blocks.
fn message<'a>(reader: &mut TurnReader<'_, 'a, '_>, fields: &Fields<'a>) {
    let given = fields.get("content");
    if let Some(turn) = reader.turns.last_mut() {
        turn.content = given;
    }
    let Some(content) = given else { return empty(reader, fields) };
    let (value, sentence) = (fields.object, "messages.{at}.content: Input should be a valid list");
    match content.kind() {
        Kind::Null => empty(reader, fields),
        Kind::String if content.is_text("") => empty(reader, fields),
        Kind::Array if content.items().next().is_none() => empty(reader, fields),
        Kind::String => {
            reader.text(content);
            let text = reader.turns.last_mut().and_then(|turn| turn.blocks.last_mut());
            if let Some(text) = text.filter(|_| content::is_blank(Some(content))) {
                text.kind = BlockKind::EmptyText;
            }
        }
        Kind::Array => reader.blocks(fields, content),
        Kind::Object => {
            reader
                .plan
                .report(Violation::error(FindingCode::Malformed, sentence).at_member(value, "content").rewritten());
            reader.plan.edits.wrap(content, "[", "]");
            reader.blocks(fields, content);
        }
        _ => {
            let sentence = "messages.{at}.content: Input should be a valid string or list";
            reader.plan.rewrite(
                Violation::error(FindingCode::Malformed, sentence).at_member(value, "content"),
                as_quoted(content),
            );
            reader.text(content);
        }
    }
}

/// A message without content goes, unless it is the assistant's and the last, where nothing will stand behind it.
fn empty<'a>(reader: &mut TurnReader<'_, 'a, '_>, fields: &Fields<'a>) {
    let calls =
        reader.last == Some(Speaker::Model) && reader.pairs.calls.last().is_some_and(|call| call.group == reader.run);
    let model = reader.turns.last().is_some_and(|turn| turn.speaker == Speaker::Model);
    let directs = fields.find("output_config").is_some();
    let aside = reader.turns.last().is_some_and(|turn| turn.speaker == Speaker::System);
    if reader.is_last() && model && !calls && fields.find("content").is_some() || aside && directs {
        return;
    }
    reader.plan.report(
        Violation::error(
            FindingCode::EmptyContent,
            "messages.{at}: all messages must have non-empty content except for the optional final assistant message",
        )
        .at(fields.object)
        .dropped(),
    );
    reader.drop_turn();
}

fn block<'a>(
    reader: &mut TurnReader<'_, 'a, '_>,
    fields: &Fields<'a>,
    kind: &str,
    speaker: Speaker,
) -> Option<Block<'a>> {
    let value = fields.object;
    let kind = match kind {
        "tool_result" => {
            content::result(reader.plan, fields);
            let id = fields.get("tool_use_id");
            let content = fields.get("content");
            let near = reader.reply_to;
            BlockKind::ToolResult(reader.pairs.add_result(value, id, "", near, String::new(), content))
        }
        // The reply that is read now ends, for results, at its first block that is none.
        _ => {
            reader.reply_to = None;
            match kind {
                "tool_use" => {
                    call(reader.plan, fields);
                    BlockKind::ToolCall(reader.pairs.add_call(value, fields.get("id"), "", reader.run, String::new()))
                }
                "thinking" | "redacted_thinking" => BlockKind::Thinking,
                "text" if content::is_blank(fields.get("text")) => BlockKind::EmptyText,
                "server_tool_use" | "mcp_tool_use" if fields.text("id").is_some() => BlockKind::ServerCall,
                "server_tool_use" | "mcp_tool_use" => BlockKind::Other,
                _ if speaker == Speaker::Model && kind.ends_with("_tool_result") => BlockKind::ServerResult,
                _ => {
                    let piece = content::block(reader.plan, fields, kind, speaker == Speaker::Model);
                    return Some(Block { kind: BlockKind::Other, value: Some(value), piece });
                }
            }
        }
    };
    Some(Block { kind, value: Some(value), piece: reader.plan.edits.source(value) })
}

/// Mends a call's name and arguments.
fn call<'a>(plan: &mut Plan<'a, '_>, fields: &Fields<'a>) {
    let name = fields.owned_text("name");
    if !name_valid(&name, MAX_NAME) {
        let sentence = "messages.{at}.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$': '{}'";
        plan.rewrite(
            Violation::error(FindingCode::Malformed, sentence).at_member(fields.object, "name").quoting(&name),
            quoted(&name_fit(&name, MAX_NAME)),
        );
    }
    let input = fields.get("input");
    if !input.is_some_and(JsonRef::is_object) {
        let sentence = "messages.{at}.tool_use.input: Input should be a valid dictionary";
        plan.rewrite(
            Violation::error(FindingCode::InvalidArguments, sentence).at_member(fields.object, "input"),
            object_text(input),
        );
    }
}
