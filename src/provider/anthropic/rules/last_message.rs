//! What Anthropic requires of the last message, and of the tool loop that is still running. Checked when all blocks are
//! in their final places.

use super::content::{TEXT_BLOCK_START, text_token};
use super::model_limits;
use crate::finding::{Action, FindingCode};
use crate::json::{JsonKind, JsonRef};
use crate::provider::models::{ModelFacts, ThinkingKind};
use crate::provider::rules::{Block, BlockKind, BodyPiece, Plan, Speaker, Turn, Violation, end_with_user};

const THINKING_DISABLED: &str = "When thinking is disabled, an `assistant` message in the final position cannot contain `thinking`. To use thinking blocks, enable `thinking` in your request.";
const THINKING_LAST: &str = "The final block in an assistant message cannot be `thinking`.";
const THINKING_MISSING: &str = "Expected `thinking` or `redacted_thinking`, but found `{}`. When `thinking` is enabled, a final `assistant` message must start with a thinking block. To avoid this requirement, disable `thinking`.";
const TRAILING_SPACE: &str = "messages: final assistant content cannot end with trailing whitespace";

/// What decides how a body may end.
pub(super) struct Ending<'f> {
    /// The kind of thinking that the repaired body asks for.
    pub thinking: Option<ThinkingKind>,
    pub facts: &'f ModelFacts,
    /// The server has turns before those of the list.
    pub has_held_turns: bool,
}

/// Repairs the last assistant message, or lets the user speak after it if the model continues none, and disables
/// thinking if the running tool loop does not start with a thinking block.
pub(super) fn repair<'a>(plan: &mut Plan<'a, '_>, turns: &mut Vec<Turn<'a>>, ending: &Ending<'_>) {
    let kind = ending.thinking;
    // Newer models think unless the request disables it.
    trim_last_message(plan, turns, kind == Some(ThinkingKind::Disabled));
    // With `compaction` the service summarizes the list, and answers nothing.
    let is_answered = !ending.facts.allows_prefill && plan.body.find("compaction").is_none();
    if is_answered && end_with_user(plan, turns, TEXT_BLOCK_START, is_resumed) {
        return;
    }
    let Some(thinking) = plan.body.find("thinking").filter(|_| kind == Some(ThinkingKind::Budget)) else { return };
    let Some(found) = first_block_instead_of_thinking(turns, ending.has_held_turns) else { return };
    // Thinking cannot be synthesized. Anthropic accepts the loop as it is without thinking (opencode#3077), and where
    // the model decides.
    let violation = Violation::error(FindingCode::UnsignedThinking, THINKING_MISSING);
    plan.report(violation.at(thinking).quoting(&found).rewritten());
    let accepted = model_limits::without_thinking(ending.facts);
    model_limits::write_kind(plan, thinking, accepted);
    trim_last_message(plan, turns, accepted == ThinkingKind::Disabled);
}

/// Returns true for the last block of an answer that the service continues: `pause_turn` in the loop of its own tools,
/// and `compaction` after a summary.
fn is_resumed(block: &Block<'_>) -> bool {
    matches!(block.kind, BlockKind::ServerCall | BlockKind::ServerResult)
        || block.value.is_some_and(|value| value.has_text("type", "compaction"))
}

/// Removes from a final assistant message what Anthropic rejects there. If no block is left, the message is removed,
/// and the one before it becomes the last.
fn trim_last_message<'a>(plan: &mut Plan<'a, '_>, turns: &mut [Turn<'a>], thinking_disabled: bool) {
    for turn in turns.iter_mut().rev().filter(|turn| !turn.removed) {
        if turn.speaker != Speaker::Model {
            return;
        }
        let count = turn.blocks.len();
        if thinking_disabled && turn.blocks.iter().any(|block| block.kind == BlockKind::Thinking) {
            let violation = Violation::error(FindingCode::OrphanReasoning, THINKING_DISABLED);
            plan.report(violation.at_member(turn.about, "content").dropped());
            turn.remove_blocks(BlockKind::Thinking);
        }
        remove_trailing_blocks(plan, turn);
        turn.touched |= turn.blocks.len() != count;
        if !turn.blocks.is_empty() || !turn.touched {
            return;
        }
        turn.removed = true;
    }
}

/// Removes thinking, blank text and trailing white space from the end of a turn.
fn remove_trailing_blocks<'a>(plan: &mut Plan<'a, '_>, turn: &mut Turn<'a>) {
    while let Some(last) = turn.blocks.last() {
        if last.kind == BlockKind::Thinking {
            let violation = Violation::error(FindingCode::OrphanReasoning, THINKING_LAST);
            plan.report(violation.at_member(turn.about, "content").dropped());
            turn.blocks.pop();
            continue;
        }
        let Some(text) = text_of_block(last) else { return };
        let Some(trimmed) = without_trailing_space(text) else { return };
        // The last message is checked twice if thinking gets disabled. A replaced text was trimmed the first time.
        if plan.edits.is_replaced(text) {
            return;
        }
        let action = if trimmed.is_empty() { Action::Dropped } else { Action::Rewritten };
        let violation = Violation::error(FindingCode::EmptyContent, TRAILING_SPACE);
        plan.report(violation.at_member(turn.about, "content").with_action(action));
        if !trimmed.is_empty() {
            plan.edits.replace(text, BodyPiece::New(format!("\"{trimmed}\"")));
            return;
        }
        turn.blocks.pop();
    }
}

fn text_of_block<'a>(block: &Block<'a>) -> Option<JsonRef<'a>> {
    let is_text = matches!(block.kind, BlockKind::Other | BlockKind::EmptyText);
    block.value.filter(|_| is_text).and_then(text_token)
}

/// Returns the content of a string token without the white space at its end, escaped white space included. Returns
/// `None` if it has none there.
fn without_trailing_space(token: JsonRef<'_>) -> Option<&str> {
    let content = token.as_raw().get(1..token.as_raw().len().saturating_sub(1))?;
    let (mut trimmed_length, mut at) = (0, 0);
    let mut rest = content;
    while let Some(first) = rest.chars().next() {
        let (length, is_space) = if first == '\\' {
            match rest.as_bytes().get(1) {
                Some(b'n' | b'r' | b't' | b'f') => (2, true),
                Some(b'u') => {
                    let unit = rest.get(2..6).and_then(|hex| u32::from_str_radix(hex, 16).ok());
                    (6, unit.and_then(char::from_u32).is_some_and(is_white_space))
                }
                _ => (2, false),
            }
        } else {
            (first.len_utf8(), is_white_space(first))
        };
        at += length;
        if !is_space {
            trimmed_length = at;
        }
        rest = content.get(at..)?;
    }
    if trimmed_length == content.len() { None } else { content.get(..trimmed_length) }
}

fn is_white_space(c: char) -> bool {
    c.is_whitespace() || c == '\u{feff}'
}

/// The kind and value of the block that an assistant message starts with.
type FirstBlock<'a> = (BlockKind, Option<JsonRef<'a>>);

/// Returns the type of the block with which the running tool loop, or a final assistant message, starts instead of
/// thinking. Returns `None` if it starts with thinking.
///
/// The loop reaches back over all user messages that have only results: a model need not think again before its next
/// call. So this loop starts with thinking:
///
/// ```json
/// {"role":"user","content":"Weather?"},
/// {"role":"assistant","content":[{"type":"thinking",…},{"type":"tool_use","id":"toolu_1",…}]},
/// {"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1"}]},
/// {"role":"assistant","content":[{"type":"tool_use","id":"toolu_2",…}]},
/// {"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_2"}]}
/// ```
///
/// `has_held_turns`: a loop that reaches back to the beginning of the list began at the server.
fn first_block_instead_of_thinking(turns: &[Turn<'_>], has_held_turns: bool) -> Option<String> {
    let mut began_at_server = has_held_turns;
    // The first block of the assistant messages in a row that are being read, and of the last such row.
    let (mut first, mut last_first): (Option<FirstBlock<'_>>, Option<FirstBlock<'_>>) = (None, None);
    for (from_end, turn) in turns.iter().rev().filter(|turn| !turn.removed).enumerate() {
        match turn.speaker {
            Speaker::Model => first = first_block(turn).or(first),
            Speaker::User => {
                if matches!(first, Some((BlockKind::Thinking, _))) {
                    return None;
                }
                last_first = last_first.or(first.take());
                let is_result = |block: &Block<'_>| matches!(block.kind, BlockKind::ToolResult(_));
                let has_results = turn.blocks.iter().any(|block| is_result(block) || block.value.is_none());
                // The last user message may have text after its results.
                if !has_results || from_end > 0 && !turn.is_results() {
                    began_at_server = false;
                    break;
                }
            }
            Speaker::System => {}
        }
    }
    let (kind, value) = last_first.or(first).filter(|_| !began_at_server)?;
    if kind == BlockKind::Thinking || matches!(first, Some((BlockKind::Thinking, _))) {
        return None;
    }
    Some(value.and_then(|value| value.text("type")).map_or_else(|| "text".into(), std::borrow::Cow::into_owned))
}

/// Returns the first block of an assistant message that is not a note of the server.
fn first_block<'a>(turn: &Turn<'a>) -> Option<FirstBlock<'a>> {
    if turn.blocks.is_empty() && turn.content.is_some_and(|content| content.kind() == JsonKind::String) {
        return Some((BlockKind::Other, turn.content));
    }
    let is_note = |value: JsonRef<'_>| {
        value.text("type").is_some_and(|kind| matches!(&*kind, "compaction" | "fallback" | "mcp_tool_listing"))
    };
    let first = turn.blocks.iter().find(|block| !block.value.is_some_and(is_note))?;
    Some((first.kind, first.value))
}
