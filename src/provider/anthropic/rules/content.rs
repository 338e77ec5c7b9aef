//! The content of Anthropic's blocks.

use crate::finding::FindingCode;
use crate::json::{JsonKind, JsonRef};
use crate::provider::foreign_format::is_provider_type;
use crate::provider::rules::{Block, BlockKind, BodyPiece, Fields, Plan, Turn, Violation, as_quoted, quoted};

/// The start of a text block, before the token of its text.
pub(super) const TEXT_BLOCK_START: &str = "{\"type\":\"text\",\"text\":";

/// Block types of other formats, which Anthropic rejects. Types that are in neither list are kept, since Anthropic
/// often adds some.
const FOREIGN_TYPES: &[&str] = &[
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

/// Block types that Anthropic accepts, in addition to the results of its server tools (`*_tool_result`).
const KNOWN_TYPES: &[&str] = &[
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
    "fallback",
    "mcp_tool_listing",
    "tool_addition",
    "tool_removal",
    "tool_reference",
];

/// The largest block, in bytes, whose JSON becomes a text when Anthropic rejects the block.
const MAX_QUOTED_BYTES: usize = 4096;

/// The content of an error result that has none: Anthropic rejects it empty.
pub(crate) const EMPTY_ERROR_TEXT: &str = "The tool reported an error without a text.";

const NOT_A_BLOCK: &str = "messages.{at}.content: Input should be a valid dictionary or object to extract fields from";
const NO_TYPE: &str = "messages.{at}.content.type: Field required";
const NO_SIGNATURE: &str =
    "messages.{at}.content.thinking.signature: Field required: Invalid `signature` in `thinking` block";

/// Returns true if a block can be kept. Otherwise reports why it is removed.
pub(super) fn is_kept<'a>(plan: &mut Plan<'a, '_>, fields: &Fields<'a>, kind: &str) -> bool {
    let block = fields.object;
    let has_text =
        |name: &str| fields.get(name).is_some_and(|value| value.kind() == JsonKind::String && !value.is_text(""));
    let (code, sentence) = match kind {
        _ if !block.is_object() => {
            if !block.is_null() && !block.is_text("") {
                return true;
            }
            (FindingCode::Malformed, NOT_A_BLOCK)
        }
        "text" if fields.find("text").is_none_or(|text| text.is_text("")) => {
            (FindingCode::EmptyContent, "messages: text content blocks must be non-empty")
        }
        // Thinking of another provider, or of a stream that was cut, has no signature.
        "thinking"
            if !has_text("signature") || fields.get("thinking").is_none_or(|text| text.kind() != JsonKind::String) =>
        {
            (FindingCode::UnsignedThinking, NO_SIGNATURE)
        }
        "redacted_thinking" if !has_text("data") => {
            (FindingCode::UnsignedThinking, "messages.{at}.content.redacted_thinking.data: Field required")
        }
        "" if fields.members().is_empty() => (FindingCode::Malformed, NO_TYPE),
        _ => return true,
    };
    plan.report(Violation::error(code, sentence).at(block).dropped());
    false
}

/// Returns the token of the text of a text block, or of a message's content that is a string.
pub(super) fn text_token(value: JsonRef<'_>) -> Option<JsonRef<'_>> {
    match value.kind() {
        JsonKind::String => Some(value),
        _ if value.text("type")? == "text" => value.get("text").filter(|text| text.kind() == JsonKind::String),
        _ => None,
    }
}

/// Returns true if a text is white space only.
pub(super) fn is_blank(text: Option<JsonRef<'_>>) -> bool {
    // The first byte rules out most texts without decoding them.
    let text = text.filter(|text| matches!(text.as_raw().as_bytes().get(1), Some(b' ' | b'\\' | 0x80..)));
    text.and_then(JsonRef::as_text).is_some_and(|text| text.trim().is_empty())
}

/// Removes blank texts from messages without other text and without a call of the client (home-assistant/core#175637).
/// Recorded requests show that Anthropic accepts blank text beside those.
pub(super) fn remove_blank_texts<'a>(plan: &mut Plan<'a, '_>, turns: &mut [Turn<'a>]) {
    for turn in turns.iter_mut().filter(|turn| !turn.removed) {
        let permits_blank = |block: &Block<'a>| match block.kind {
            BlockKind::ToolCall(_) => true,
            BlockKind::Other => block.value.is_some_and(|value| text_token(value).is_some()),
            _ => false,
        };
        let is_blank = |block: &&Block<'a>| block.kind == BlockKind::EmptyText;
        if !turn.blocks.iter().any(|block| is_blank(&block)) || turn.blocks.iter().any(permits_blank) {
            continue;
        }
        for value in turn.blocks.iter().filter(is_blank).filter_map(|block| block.value) {
            let sentence = "messages: text content blocks must contain non-whitespace text";
            plan.report(Violation::error(FindingCode::EmptyContent, sentence).at(value).dropped());
        }
        turn.remove_blocks(BlockKind::EmptyText);
        turn.removed = turn.is_hollow();
    }
}

/// Removes empty texts from the top-level `system`.
pub(super) fn remove_empty_system_texts(plan: &mut Plan<'_, '_>) {
    let Some(system) = plan.body.get("system").filter(|system| system.kind() == JsonKind::Array) else { return };
    let (mut items, count) = (Vec::new(), system.items().count());
    for item in system.items() {
        if text_token(item).is_some_and(|text| text.is_text("")) {
            let sentence = "system: text content blocks must be non-empty";
            plan.report(Violation::error(FindingCode::EmptyContent, sentence).at(item).dropped());
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

/// Returns what is written for a block that is neither a call, a result nor thinking. `in_answer`: it is in an
/// assistant message.
pub(super) fn repair_block<'a>(plan: &mut Plan<'a, '_>, fields: &Fields<'a>, kind: &str, in_answer: bool) -> BodyPiece {
    let value = fields.object;
    if !value.is_object() {
        plan.report(Violation::error(FindingCode::Malformed, NOT_A_BLOCK).at(value).rewritten());
        return plan.as_text(TEXT_BLOCK_START, value);
    }
    if kind == "text"
        && let Some(text) = fields.find("text").filter(|text| text.kind() != JsonKind::String)
    {
        let sentence = "messages.{at}.content.text: Input should be a valid string";
        plan.rewrite(Violation::error(FindingCode::Malformed, sentence).at_member(value, "text"), as_quoted(text));
    }
    let is_answer_image = in_answer && kind == "image";
    let is_unknown = plan.is_foreign_block(fields) || !kind.is_empty() && !is_provider_type(kind);
    let is_rejected = kind.is_empty() || is_answer_image || is_unknown || FOREIGN_TYPES.contains(&kind);
    if !is_rejected {
        if !KNOWN_TYPES.contains(&kind) && !kind.ends_with("_tool_result") {
            let sentence = "Blocks of type '{}' are not known here: kept, because the provider may take them.";
            plan.report(Violation::warning(FindingCode::UnknownShape, sentence).at(value).quoting(kind));
        }
        return plan.edits.source(value);
    }
    let sentence = if kind.is_empty() {
        NO_TYPE
    } else if is_answer_image {
        "messages.{at}.content: '{}' blocks are not permitted within assistant turns"
    } else {
        "messages.{at}.content: Input tag '{}' found using 'type' does not match any of the expected tags"
    };
    let code = if is_unknown { FindingCode::UnknownShape } else { FindingCode::UnsupportedPart };
    plan.report(Violation::error(code, sentence).at(value).quoting(kind).rewritten());
    for name in ["text", "refusal"] {
        if let Some(text) = fields.get(name).filter(|text| text.kind() == JsonKind::String && !text.is_text("")) {
            return plan.as_text(TEXT_BLOCK_START, text);
        }
    }
    let image = convert_openai_image(fields).filter(|_| !in_answer);
    BodyPiece::New(image.unwrap_or_else(|| quote_block(value, kind)))
}

/// Returns a text block with the JSON of a block, or with a note if that is too long.
fn quote_block(value: JsonRef<'_>, kind: &str) -> String {
    let note = format!("[A block of type '{kind}' was left out: the model cannot read it.]");
    let text = if value.as_raw().len() <= MAX_QUOTED_BYTES { value.as_raw() } else { &note };
    format!("{TEXT_BLOCK_START}{}}}", quoted(text))
}

/// Converts an image part of OpenAI's format:
///
/// ```json
/// {"type":"image_url","image_url":{"url":"https://example.com/a.png"}}
/// ```
///
/// becomes `{"type":"image","source":{"type":"url","url":"https://example.com/a.png"}}`.
fn convert_openai_image(fields: &Fields<'_>) -> Option<String> {
    let image = fields.get("image_url")?;
    let url = image.text("url").or_else(|| image.as_text())?;
    let source = if url.starts_with("http") {
        format!("\"url\",\"url\":{}", quoted(&url))
    } else {
        let (media_type, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
        format!("\"base64\",\"media_type\":{},\"data\":{}", quoted(media_type), quoted(data))
    };
    Some(format!("{{\"type\":\"image\",\"source\":{{\"type\":{source}}}}}"))
}

/// Repairs the `is_error` and the `content` of a result.
pub(super) fn repair_result<'a>(plan: &mut Plan<'a, '_>, fields: &Fields<'a>) {
    let is_error = repair_error_flag(plan, fields);
    let is_empty = repair_result_content(plan, fields, is_error);
    if is_error && is_empty {
        let sentence = "tool_result: content cannot be empty if `is_error` is true";
        let violation = Violation::error(FindingCode::EmptyContent, sentence).at_member(fields.object, "content");
        plan.rewrite(violation, quoted(EMPTY_ERROR_TEXT));
    }
}

/// Returns the value of `is_error`; one that is not a boolean is rewritten.
fn repair_error_flag<'a>(plan: &mut Plan<'a, '_>, fields: &Fields<'a>) -> bool {
    let Some(flag) = fields.get("is_error") else { return false };
    if let Some(is_error) = flag.as_bool() {
        return is_error;
    }
    let is_false = flag.is_null() || flag.is_text("false") || flag.is_text("") || flag.as_u64() == Some(0);
    let sentence = "tool_result.is_error: Input should be a valid boolean";
    let violation = Violation::error(FindingCode::Malformed, sentence).at_member(fields.object, "is_error");
    plan.rewrite(violation, (!is_false).to_string());
    !is_false
}

/// Repairs the `content` of a result. Returns true if it is empty after that, or missing; then that of an error is left
/// to the caller.
fn repair_result_content<'a>(plan: &mut Plan<'a, '_>, fields: &Fields<'a>, is_error: bool) -> bool {
    let Some(content) = fields.get("content") else { return true };
    match content.kind() {
        JsonKind::String => content.is_text(""),
        JsonKind::Array => repair_result_blocks(plan, content, is_error),
        kind => {
            let sentence = "tool_result.content: Input should be a valid list";
            plan.report(
                Violation::error(FindingCode::Malformed, sentence).at_member(fields.object, "content").rewritten(),
            );
            let is_empty = kind == JsonKind::Null;
            if !(is_empty && is_error) {
                let text = if is_empty { "\"\"".into() } else { as_quoted(content) };
                plan.edits.replace(content, BodyPiece::New(text));
            }
            is_empty
        }
    }
}

/// Repairs a result's list of blocks. Returns true if none is left.
fn repair_result_blocks<'a>(plan: &mut Plan<'a, '_>, content: JsonRef<'a>, is_error: bool) -> bool {
    let (mut pieces, mut is_unchanged) = (Vec::new(), true);
    let message_at = plan.at;
    for (at, block) in content.items().enumerate() {
        if plan.is_over_budget() {
            break;
        }
        let fields = Fields::of(block);
        let kind = fields.owned_text("type");
        plan.at = at;
        if !is_kept(plan, &fields, &kind) {
            is_unchanged = false;
            continue;
        }
        let piece = repair_block(plan, &fields, &kind, false);
        is_unchanged &= piece.is_source();
        pieces.push(piece);
    }
    plan.at = message_at;
    let is_empty = pieces.is_empty();
    if !(is_unchanged || is_empty && is_error) {
        plan.edits.rebuild(content, pieces);
    }
    is_empty
}
