//! The content of one block.

use crate::finding::Action;
use crate::json::{JsonRef, Kind, ObjectWriter};
use crate::provider::rules::{Block, BlockKind, Fields, Piece, Plan, as_quoted, quoted};

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
/// Up to this size a block that cannot stay is kept as its JSON text.
const QUOTABLE: usize = 4096;
/// An error result must say something.
pub(crate) const SILENT_ERROR: &str = "The tool reported an error without a text.";

/// Whether a block stays at all; reports it otherwise.
pub(super) fn stays<'a>(
    plan: &mut Plan<'a, '_>,
    block: JsonRef<'a>,
    fields: &Fields<'a>,
    kind: &str,
    path: &str,
    at: usize,
) -> bool {
    if !block.is_object() {
        if block.is_null() || block.is_text("") {
            plan.error(
                "malformed",
                path,
                Action::Dropped,
                format!("messages.{at}.content: Input should be a valid dictionary or object to extract fields from"),
            );
            return false;
        }
        return true;
    }
    let text = |name: &str| fields.get(name).filter(|value| value.kind() == Kind::String && !value.is_text(""));
    match kind {
        "text" if fields.find("text").is_none_or(|text| text.is_text("")) => {
            plan.error("empty_content", path, Action::Dropped, "messages: text content blocks must be non-empty");
            false
        }
        // A block from another provider, or from a stream that was cut, has no signature.
        "thinking"
            if text("signature").is_none() || fields.get("thinking").is_none_or(|text| text.kind() != Kind::String) =>
        {
            plan.error(
                "unsigned_thinking",
                path,
                Action::Dropped,
                format!(
                    "messages.{at}.content.thinking.signature: Field required: Invalid `signature` in `thinking` block"
                ),
            );
            false
        }
        "redacted_thinking" if text("data").is_none() => {
            plan.error(
                "unsigned_thinking",
                path,
                Action::Dropped,
                format!("messages.{at}.content.redacted_thinking.data: Field required"),
            );
            false
        }
        "" if fields.iter().next().is_none() => {
            plan.error("malformed", path, Action::Dropped, format!("messages.{at}.content.type: Field required"));
            false
        }
        _ => true,
    }
}

fn text_piece(plan: &Plan<'_, '_>, text: JsonRef<'_>) -> Piece {
    let token = if text.kind() == Kind::String { plan.edits.source(text) } else { Piece::New(as_quoted(text)) };
    Piece::Wrapped("{\"type\":\"text\",\"text\":".into(), vec![token], "}".into())
}

/// A block that is neither call nor result nor thinking.
pub(super) fn block<'a>(
    plan: &mut Plan<'a, '_>,
    value: JsonRef<'a>,
    fields: &Fields<'a>,
    kind: &str,
    path: &str,
    at: usize,
) -> Block<'a> {
    let made = |piece| Block { kind: BlockKind::Other, value: Some(value), piece };
    if !value.is_object() {
        plan.error(
            "malformed",
            path,
            Action::Rewritten,
            format!("messages.{at}.content: Input should be a valid dictionary or object to extract fields from"),
        );
        return made(text_piece(plan, value));
    }
    if kind == "text" {
        if let Some(text) = fields.find("text").filter(|text| text.kind() != Kind::String) {
            plan.error(
                "malformed",
                format!("{path}/text"),
                Action::Rewritten,
                format!("messages.{at}.content.text: Input should be a valid string"),
            );
            plan.edits.replace(text, Piece::New(as_quoted(text)));
        }
        return made(plan.edits.source(value));
    }
    if !kind.is_empty() && !FOREIGN.contains(&kind) {
        return made(plan.edits.source(value));
    }
    let what = if kind.is_empty() {
        format!("messages.{at}.content.type: Field required")
    } else {
        format!("messages.{at}.content: Input tag '{kind}' found using 'type' does not match any of the expected tags")
    };
    plan.error("unsupported_part", path, Action::Rewritten, what);
    let text = ["text", "refusal"]
        .iter()
        .filter_map(|name| fields.get(name))
        .find(|text| text.kind() == Kind::String && !text.is_text(""));
    made(match text {
        Some(text) => text_piece(plan, text),
        None => Piece::New(image(fields).unwrap_or_else(|| note(value, kind))),
    })
}

fn note(value: JsonRef<'_>, kind: &str) -> String {
    let left_out = format!("[A block of type '{kind}' was left out: the model cannot read it.]");
    let text = if value.as_raw().len() <= QUOTABLE { value.as_raw() } else { &left_out };
    ObjectWriter::build(|o| {
        o.text("type", "text").text("text", text);
    })
    .as_str()
    .to_owned()
}

/// OpenAI's image part as Anthropic's block.
fn image(fields: &Fields<'_>) -> Option<String> {
    let image = fields.get("image_url")?;
    let url = image.text("url").or_else(|| image.as_text())?;
    let source = |fill: &dyn Fn(&mut ObjectWriter<'_>)| {
        Some(
            ObjectWriter::build(|o| {
                o.text("type", "image").object("source", |o| fill(o));
            })
            .as_str()
            .to_owned(),
        )
    };
    if url.starts_with("http") {
        return source(&|o| {
            o.text("type", "url").text("url", &url);
        });
    }
    let (media, data) = crate::text::cut(url.strip_prefix("data:")?, ";base64,")?;
    source(&|o| {
        o.text("type", "base64").text("media_type", media).text("data", data);
    })
}

/// A result's own content.
pub(super) fn result<'a>(plan: &mut Plan<'a, '_>, value: JsonRef<'a>, fields: &Fields<'a>, path: &str) {
    let failed = match fields.get("is_error").map(|flag| (flag, flag.as_bool())) {
        None => false,
        Some((_, Some(failed))) => failed,
        Some((flag, None)) => {
            plan.error(
                "malformed",
                format!("{path}/is_error"),
                Action::Rewritten,
                "tool_result.is_error: Input should be a valid boolean",
            );
            let failed = !flag.is_null() && !flag.is_text("false") && !flag.is_text("") && flag.as_u64() != Some(0);
            plan.edits.replace(flag, Piece::New(failed.to_string()));
            failed
        }
    };
    let here = format!("{path}/content");
    let given = fields.get("content");
    let mut empty = true;
    match given.map(|content| (content, content.kind())) {
        None => {}
        Some((content, Kind::String)) => empty = content.is_text(""),
        Some((content, Kind::Array)) => {
            let (mut items, mut same) = (Vec::new(), true);
            for (k, part) in content.items().enumerate() {
                let inner = Fields::of(part);
                let kind = inner.text("type").unwrap_or_default();
                let here = format!("{here}/{k}");
                if !stays(plan, part, &inner, &kind, &here, k) {
                    same = false;
                    continue;
                }
                let block = block(plan, part, &inner, &kind, &here, k);
                same &= matches!(block.piece, Piece::Source(_));
                items.push(block.piece);
            }
            empty = items.is_empty();
            if !(same || empty && failed) {
                plan.edits.rebuild(content, items);
            }
        }
        Some((content, Kind::Null)) => {
            plan.error(
                "malformed",
                here.clone(),
                Action::Rewritten,
                "tool_result.content: Input should be a valid list",
            );
            if !failed {
                plan.edits.replace(content, Piece::New("\"\"".into()));
            }
        }
        Some((content, _)) => {
            empty = false;
            plan.error(
                "malformed",
                here.clone(),
                Action::Rewritten,
                "tool_result.content: Input should be a valid list",
            );
            plan.edits.replace(content, Piece::New(as_quoted(content)));
        }
    }
    if failed && empty {
        plan.error(
            "empty_content",
            here,
            Action::Rewritten,
            "tool_result: content cannot be empty if `is_error` is true",
        );
        plan.edits.set(value, given, "content", quoted(SILENT_ERROR));
    }
}
