//! What Anthropic asks of the end of a conversation: it depends on what stands last once everything is in its place.

use crate::finding::{Action, FindingCode};
use crate::json::{JsonRef, Kind};
use crate::provider::rules::{BlockKind, BodyPiece, Plan, Speaker, Turn, Violation};

/// Mends the last turn, and the thinking that a running tool loop must begin with.
pub(super) fn mend<'a>(plan: &mut Plan<'a, '_>, turns: &mut [Turn<'a>]) {
    let thinking = plan.body.find("thinking");
    let kind = thinking.and_then(|thinking| thinking.text("type"));
    // Newer models think unless they are told not to.
    tidy_last(plan, turns, kind.as_deref() == Some("disabled"));
    let Some(thinking) = thinking.filter(|_| kind.as_deref() == Some("enabled")) else { return };
    let Some(found) = loop_without_thinking(turns) else { return };
    // Thinking cannot be made up: only without it does the provider take the loop as it stands (opencode#3077).
    plan.report(Violation::error(FindingCode::UnsignedThinking, "Expected `thinking` or `redacted_thinking`, but found `{}`. When `thinking` is enabled, a final `assistant` message must start with a thinking block. To avoid this requirement, disable `thinking`.").at(thinking).quoting(&found).rewritten());
    plan.edits.replace(thinking, BodyPiece::New("{\"type\":\"disabled\"}".into()));
    tidy_last(plan, turns, true);
}

/// Takes from a final assistant message what may not end a conversation; one that is left without a block goes.
fn tidy_last<'a>(plan: &mut Plan<'a, '_>, turns: &mut [Turn<'a>], off: bool) {
    for turn in turns.iter_mut().rev().filter(|turn| !turn.removed) {
        if turn.speaker != Speaker::Model {
            return;
        }
        let before = turn.blocks.len();
        if off && turn.blocks.iter().any(|block| block.kind == BlockKind::Thinking) {
            plan.report(Violation::error(FindingCode::OrphanReasoning, "When thinking is disabled, an `assistant` message in the final position cannot contain `thinking`. To use thinking blocks, enable `thinking` in your request.").at_member(turn.about, "content").dropped());
            turn.remove_blocks(BlockKind::Thinking);
        }
        while let Some(last) = turn.blocks.last() {
            if last.kind == BlockKind::Thinking {
                plan.report(
                    Violation::error(
                        FindingCode::OrphanReasoning,
                        "The final block in an assistant message cannot be `thinking`.",
                    )
                    .at_member(turn.about, "content")
                    .dropped(),
                );
                turn.blocks.pop();
                continue;
            }
            let text =
                last.value.filter(|_| matches!(last.kind, BlockKind::Other | BlockKind::EmptyText)).and_then(text_of);
            let Some(text) = text else { break };
            let Some(kept) = trimmed(text) else { break };
            // Trimmed before: this is the second look at the same turn.
            if plan.edits.replaced(text) {
                break;
            }
            let action = if kept.is_empty() { Action::Dropped } else { Action::Rewritten };
            let sentence = "messages: final assistant content cannot end with trailing whitespace";
            plan.report(
                Violation::error(FindingCode::EmptyContent, sentence)
                    .at_member(turn.about, "content")
                    .with_action(action),
            );
            if !kept.is_empty() {
                plan.edits.replace(text, BodyPiece::New(format!("\"{kept}\"")));
                break;
            }
            turn.blocks.pop();
        }
        turn.touched |= turn.blocks.len() != before;
        if !turn.blocks.is_empty() || !turn.touched {
            return;
        }
        turn.removed = true;
    }
}

/// The text token of a text block, or of a message that is one text.
pub(super) fn text_of(value: JsonRef<'_>) -> Option<JsonRef<'_>> {
    match value.kind() {
        Kind::String => Some(value),
        _ if value.text("type")? == "text" => value.get("text").filter(|text| text.kind() == Kind::String),
        _ => None,
    }
}

/// A string token's inside without the white space at its end; none where there is no such.
fn trimmed(token: JsonRef<'_>) -> Option<&str> {
    let inside = token.as_raw().get(1..token.as_raw().len().saturating_sub(1))?;
    let (mut kept, mut at) = (0, 0);
    let mut rest = inside;
    while let Some(first) = rest.chars().next() {
        let (used, blank) = if first == '\\' {
            match rest.as_bytes().get(1) {
                Some(b'n' | b'r' | b't' | b'f') => (2, true),
                Some(b'u') => {
                    let unit = rest.get(2..6).and_then(|hex| u32::from_str_radix(hex, 16).ok());
                    (6, unit.and_then(char::from_u32).is_some_and(is_blank))
                }
                _ => (2, false),
            }
        } else {
            (first.len_utf8(), is_blank(first))
        };
        at += used;
        if !blank {
            kept = at;
        }
        rest = inside.get(at..)?;
    }
    if kept == inside.len() { None } else { inside.get(..kept) }
}

fn is_blank(c: char) -> bool {
    c.is_whitespace() || c == '\u{feff}'
}

/// What a running tool loop, or a final assistant message, begins with instead of thinking: as far back as only results stand
/// between, for the model need not think again before its next call.
fn loop_without_thinking(turns: &[Turn<'_>]) -> Option<String> {
    let notes = |value: JsonRef<'_>| {
        value.text("type").is_some_and(|kind| matches!(&*kind, "compaction" | "fallback" | "mcp_tool_listing"))
    };
    // What the assistant turn begins with that is read now, and the last one does.
    let (mut opening, mut found) = (None, None);
    for (back, turn) in turns.iter().rev().filter(|turn| !turn.removed).enumerate() {
        let answers =
            turn.blocks.iter().any(|block| matches!(block.kind, BlockKind::ToolResult(_)) || block.value.is_none());
        match turn.speaker {
            Speaker::Model => {
                let first = turn.blocks.iter().find(|block| !block.value.is_some_and(notes));
                opening = first.map(|block| (block.kind, block.value)).or(opening);
                if turn.blocks.is_empty() && turn.content.is_some_and(|content| content.kind() == Kind::String) {
                    opening = Some((BlockKind::Other, turn.content));
                }
            }
            Speaker::User => {
                if matches!(opening, Some((BlockKind::Thinking, _))) {
                    return None;
                }
                found = found.or(opening.take());
                if !answers || back > 0 && !turn.is_results() {
                    break;
                }
            }
            Speaker::System => {}
        }
    }
    let (kind, value) = found.or(opening)?;
    if kind == BlockKind::Thinking || matches!(opening, Some((BlockKind::Thinking, _))) {
        return None;
    }
    Some(value.and_then(|value| value.text("type")).map_or_else(|| "text".into(), std::borrow::Cow::into_owned))
}
