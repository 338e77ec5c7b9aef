//! The content of one block.

use super::TEXT;
use super::end::text_of;
use crate::finding::FindingCode;
use crate::json::{JsonRef, Kind};
use crate::provider::foreign_format::is_provider_type;
use crate::provider::rules::{Block, BlockKind, BodyPiece, Fields, Plan, Turn, Violation, as_quoted, quoted};

/// Blocks of other wire formats. New blocks of Anthropic's own keep coming, so only these are refused.
const FOREIGN: &[&str] = &[
    "image_url",
    "input_audio",
    "file",
    "input_text",
    "output_text",
    "input_image",
    "input_file",
    "refusal",
    "function_call",
    "function_call_output",
    "reasoning",
];
/// Blocks that the endpoint is known to take, beside results of a server's tools.
const KNOWN: &[&str] = &[
    "text",
    "image",
    "document",
    "search_result",
    "tool_use",
    "tool_result",
    "thinking",
    "redacted_thinking",
    "server_tool_use",
    "mcp_tool_use",
    "container_upload",
    "compaction",
    "tool_addition",
    "tool_reference",
];
/// Up to this size a block that cannot stay is kept as its JSON text.
const QUOTABLE: usize = 4096;
/// An error result must say something.
pub(crate) const EMPTY_ERROR_TEXT: &str = "The tool reported an error without a text.";

/// Whether a block stays at all; reports it otherwise.
pub(super) fn stays<'a>(plan: &mut Plan<'a, '_>, fields: &Fields<'a>, kind: &str) -> bool {
    let block = fields.object;
    let text = |name: &str| fields.get(name).filter(|value| value.kind() == Kind::String && !value.is_text(""));
    let (code, sentence) = match kind {
        _ if !block.is_object() => {
            if !block.is_null() && !block.is_text("") {
                return true;
            }
            (FindingCode::Malformed, NO_BLOCK)
        }
        "text" if fields.find("text").is_none_or(|text| text.is_text("")) => {
            (FindingCode::EmptyContent, "messages: text content blocks must be non-empty")
        }
        // A block from another provider, or from a stream that was cut, has no signature.
        "thinking"
            if text("signature").is_none() || fields.get("thinking").is_none_or(|text| text.kind() != Kind::String) =>
        {
            (
                FindingCode::UnsignedThinking,
                "messages.{at}.content.thinking.signature: Field required: Invalid `signature` in `thinking` block",
            )
        }
        "redacted_thinking" if text("data").is_none() => {
            (FindingCode::UnsignedThinking, "messages.{at}.content.redacted_thinking.data: Field required")
        }
        "" if fields.members().is_empty() => (FindingCode::Malformed, NO_TYPE),
        _ => return true,
    };
    plan.report(Violation::error(code, sentence).at(block).dropped());
    false
}

const NO_BLOCK: &str = "messages.{at}.content: Input should be a valid dictionary or object to extract fields from";
const NO_TYPE: &str = "messages.{at}.content.type: Field required";

/// Whether a text is white space alone.
pub(super) fn is_blank(text: Option<JsonRef<'_>>) -> bool {
    // Most texts say so by how they begin.
    let text = text.filter(|text| matches!(text.as_raw().as_bytes().get(1), Some(b' ' | b'\\' | 0x80..)));
    text.and_then(JsonRef::as_text).is_some_and(|text| text.trim().is_empty())
}

/// Leaves out texts of white space alone (home-assistant/core#175637), where neither other words nor a client's call stand
/// beside them: with those the provider was seen to take them.
pub(super) fn leave_blank<'a>(plan: &mut Plan<'a, '_>, turns: &mut [Turn<'a>]) {
    for turn in turns.iter_mut().filter(|turn| !turn.removed) {
        let keeps = |block: &Block<'a>| match block.kind {
            BlockKind::ToolCall(_) => true,
            BlockKind::Other => block.value.is_some_and(|value| text_of(value).is_some()),
            _ => false,
        };
        if !turn.blocks.iter().any(|block| block.kind == BlockKind::EmptyText) || turn.blocks.iter().any(keeps) {
            continue;
        }
        for value in
            turn.blocks.iter().filter(|block| block.kind == BlockKind::EmptyText).filter_map(|block| block.value)
        {
            let sentence = "messages: text content blocks must contain non-whitespace text";
            plan.report(Violation::error(FindingCode::EmptyContent, sentence).at(value).dropped());
        }
        turn.remove_blocks(BlockKind::EmptyText);
        turn.removed = turn.is_hollow();
    }
}

/// Leaves out the empty texts of the top-level `system`.
pub(super) fn leave_empty(plan: &mut Plan<'_, '_>) {
    let Some(system) = plan.body.get("system").filter(|system| system.kind() == Kind::Array) else { return };
    let (mut items, count) = (Vec::new(), system.items().count());
    for item in system.items() {
        if text_of(item).is_some_and(|text| text.is_text("")) {
            plan.report(
                Violation::error(FindingCode::EmptyContent, "system: text content blocks must be non-empty")
                    .at(item)
                    .dropped(),
            );
        } else {
            items.push(plan.edits.source(item));
        }
    }
    if items.is_empty() && count > 0 {
        plan.edits.remove(plan.body.object, "system");
    } else if items.len() < count {
        plan.edits.rebuild(system, items);
    }
}

/// What stands for a block that is neither call nor result nor thinking.
pub(super) fn block<'a>(plan: &mut Plan<'a, '_>, fields: &Fields<'a>, kind: &str, model: bool) -> BodyPiece {
    let value = fields.object;
    if !value.is_object() {
        plan.report(Violation::error(FindingCode::Malformed, NO_BLOCK).at(value).rewritten());
        return plan.as_text(TEXT, value);
    }
    if kind == "text"
        && let Some(text) = fields.find("text").filter(|text| text.kind() != Kind::String)
    {
        let sentence = "messages.{at}.content.text: Input should be a valid string";
        plan.rewrite(Violation::error(FindingCode::Malformed, sentence).at_member(value, "text"), as_quoted(text));
    }
    let image_of_model = model && kind == "image";
    let unknown = plan.is_foreign_block(fields) || !kind.is_empty() && !is_provider_type(kind);
    if !kind.is_empty() && !FOREIGN.contains(&kind) && !image_of_model && !unknown {
        if !KNOWN.contains(&kind) && !kind.ends_with("_tool_result") {
            let sentence = "Blocks of type '{}' are not known here: kept, because the provider may take them.";
            plan.report(Violation::warning(FindingCode::UnknownShape, sentence).at(value).quoting(kind));
        }
        return plan.edits.source(value);
    }
    let sentence = if kind.is_empty() {
        NO_TYPE
    } else if image_of_model {
        "messages.{at}.content: '{}' blocks are not permitted within assistant turns"
    } else {
        "messages.{at}.content: Input tag '{}' found using 'type' does not match any of the expected tags"
    };
    let code = if unknown { FindingCode::UnknownShape } else { FindingCode::UnsupportedPart };
    plan.report(Violation::error(code, sentence).at(value).quoting(kind).rewritten());
    for name in ["text", "refusal"] {
        if let Some(text) = fields.get(name).filter(|text| text.kind() == Kind::String && !text.is_text("")) {
            return plan.as_text(TEXT, text);
        }
    }
    BodyPiece::New(image(fields).filter(|_| !model).unwrap_or_else(|| note(value, kind)))
}

fn note(value: JsonRef<'_>, kind: &str) -> String {
    let left_out = format!("[A block of type '{kind}' was left out: the model cannot read it.]");
    let text = if value.as_raw().len() <= QUOTABLE { value.as_raw() } else { &left_out };
    format!("{TEXT}{}}}", quoted(text))
}

/// OpenAI's image part as Anthropic's block.
fn image(fields: &Fields<'_>) -> Option<String> {
    let image = fields.get("image_url")?;
    let url = image.text("url").or_else(|| image.as_text())?;
    let source = if url.starts_with("http") {
        format!("\"url\",\"url\":{}", quoted(&url))
    } else {
        let (media, data) = crate::text::cut(url.strip_prefix("data:")?, ";base64,")?;
        format!("\"base64\",\"media_type\":{},\"data\":{}", quoted(media), quoted(data))
    };
    Some(format!("{{\"type\":\"image\",\"source\":{{\"type\":{source}}}}}"))
}

/// A result's own content.
pub(super) fn result<'a>(plan: &mut Plan<'a, '_>, fields: &Fields<'a>) {
    let value = fields.object;
    let flag = fields.get("is_error");
    let failed = match flag.map(|flag| (flag, flag.as_bool())) {
        None => false,
        Some((_, Some(failed))) => failed,
        Some((flag, None)) => {
            let failed = !flag.is_null() && !flag.is_text("false") && !flag.is_text("") && flag.as_u64() != Some(0);
            let sentence = "tool_result.is_error: Input should be a valid boolean";
            plan.rewrite(
                Violation::error(FindingCode::Malformed, sentence).at_member(value, "is_error"),
                failed.to_string(),
            );
            failed
        }
    };
    let mut empty = true;
    if let Some(content) = fields.get("content") {
        let kind = content.kind();
        match kind {
            Kind::String => empty = content.is_text(""),
            Kind::Array => {
                let (mut items, mut same, at) = (Vec::new(), true, plan.at);
                for (k, part) in content.items().enumerate() {
                    let inner = Fields::of(part);
                    let kind = inner.owned_text("type");
                    plan.at = k;
                    if !stays(plan, &inner, &kind) {
                        same = false;
                        continue;
                    }
                    let piece = block(plan, &inner, &kind, false);
                    same &= piece.is_source();
                    items.push(piece);
                }
                plan.at = at;
                empty = items.is_empty();
                if !(same || empty && failed) {
                    plan.edits.rebuild(content, items);
                }
            }
            _ => {
                let sentence = "tool_result.content: Input should be a valid list";
                plan.report(Violation::error(FindingCode::Malformed, sentence).at_member(value, "content").rewritten());
                empty = kind == Kind::Null;
                if !(empty && failed) {
                    let text = if empty { "\"\"".into() } else { as_quoted(content) };
                    plan.edits.replace(content, BodyPiece::New(text));
                }
            }
        }
    }
    if failed && empty {
        let sentence = "tool_result: content cannot be empty if `is_error` is true";
        plan.rewrite(
            Violation::error(FindingCode::EmptyContent, sentence).at_member(value, "content"),
            quoted(EMPTY_ERROR_TEXT),
        );
    }
}
