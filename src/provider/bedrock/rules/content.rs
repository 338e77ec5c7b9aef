//! The content of blocks that are neither calls nor results.

use crate::finding::FindingCode;
use crate::json::{JsonKind, JsonRef};
use crate::message::{Media, PartBody};
use crate::provider::bedrock::block::{DOCUMENT, REASONING, TEXT, kind_of};
use crate::provider::bedrock::media::write_media;
use crate::provider::rules::{Block, BlockKind, BodyPiece, Fields, Plan, Speaker, Turn, Violation, quoted};

/// The start of a text block, before the token of its text.
pub(super) const TEXT_BLOCK_START: &str = "{\"text\":";

/// The text block that is added beside a document without text.
pub(in crate::provider::bedrock) const DOCUMENT_TEXT: &str = "{\"text\":\".\"}";

/// The largest block, in bytes, whose JSON becomes a text when Converse rejects the block.
const MAX_QUOTED_BYTES: usize = 4096;

const BLANK_TEXT: &str = "The text field in the ContentBlock object at messages.{at}.content is blank. Add text to the text field, and try again.";
const NOT_A_BLOCK: &str = "Value at 'messages.{at}.content' failed to satisfy constraint: a ContentBlock object";
const UNKNOWN_MEMBER: &str = "Value at 'messages.{at}.content' failed to satisfy constraint: a ContentBlock object has one member, and no `type`: '{}'";

/// Returns true if a value has no text but white space.
fn is_blank(text: JsonRef<'_>) -> bool {
    text.as_text().is_some_and(|text| text.trim().is_empty())
}

/// Returns true if a block can be kept. Otherwise reports why it is removed.
pub(super) fn is_kept<'a>(plan: &mut Plan<'a, '_>, fields: &Fields<'a>, _type: &str) -> bool {
    let block = fields.object;
    let (code, sentence) = match kind_of(block) {
        _ if !block.is_object() => {
            if !block.is_null() && !is_blank(block) {
                return true;
            }
            (FindingCode::Malformed, NOT_A_BLOCK)
        }
        None if fields.members().iter().all(|(key, value)| value.is_null() || key.is_text("type")) => {
            (FindingCode::Malformed, NOT_A_BLOCK)
        }
        Some((TEXT, text)) if is_blank(text) => (FindingCode::EmptyContent, BLANK_TEXT),
        _ => return true,
    };
    plan.report(Violation::error(code, sentence).at(block).dropped());
    false
}

/// Removes reasoning without a signature, of a stream that was cut or of another provider, which Claude rejects. Other
/// models have no signatures.
pub(super) fn remove_unsigned<'a>(plan: &mut Plan<'a, '_>, turns: &mut [Turn<'a>]) {
    for (at, turn) in turns.iter_mut().enumerate().filter(|(_, turn)| !turn.removed) {
        let count = turn.blocks.len();
        turn.blocks.retain(|block| {
            let Some(value) = block.value.filter(|value| block.kind == BlockKind::Thinking && is_unsigned(*value))
            else {
                return true;
            };
            let sentence = format!("messages.{at}.content.reasoningContent.reasoningText.signature: Field required");
            plan.report(Violation::error(FindingCode::UnsignedThinking, sentence).at(value).dropped());
            false
        });
        if turn.blocks.len() < count {
            turn.touched = true;
            turn.removed = turn.is_hollow();
        }
    }
}

fn is_unsigned(block: JsonRef<'_>) -> bool {
    let text = block.find(REASONING).and_then(|reasoning| reasoning.find("reasoningText"));
    text.is_some_and(|text| text.text("signature").is_none_or(|mark| mark.is_empty()))
}

/// Returns what is written for a block.
pub(super) fn repair_block<'a>(plan: &mut Plan<'a, '_>, fields: &Fields<'a>) -> BodyPiece {
    let value = fields.object;
    if !value.is_object() {
        plan.report(Violation::error(FindingCode::Malformed, NOT_A_BLOCK).at(value).rewritten());
        return plan.as_text(TEXT_BLOCK_START, value);
    }
    let kind = fields.owned_text("type");
    match kind_of(value) {
        Some((TEXT, text)) if text.kind() != JsonKind::String => {
            plan.report(Violation::error(FindingCode::Malformed, NOT_A_BLOCK).at(value).rewritten());
            plan.as_text(TEXT_BLOCK_START, text)
        }
        Some((known, inner)) if known != TEXT && !inner.is_object() => {
            plan.report(Violation::error(FindingCode::Malformed, NOT_A_BLOCK).at(value).rewritten());
            BodyPiece::New(quote_block(value))
        }
        Some(_) => {
            if fields.get("type").is_some() {
                let violation = Violation::error(FindingCode::Malformed, UNKNOWN_MEMBER).at_member(value, "type");
                plan.report(violation.quoting(&kind).dropped());
                plan.edits.remove(value, "type");
            }
            plan.edits.source(value)
        }
        None if kind.is_empty() && fields.members().iter().any(|(_, inner)| inner.is_object()) => {
            let sentence = "A block of this kind is not known here: kept, because the service may take it.";
            plan.report(Violation::warning(FindingCode::UnknownShape, sentence).at(value));
            plan.edits.source(value)
        }
        None => {
            let violation = Violation::error(FindingCode::UnsupportedPart, UNKNOWN_MEMBER).at(value);
            plan.report(violation.quoting(&kind).rewritten());
            let own_text = ["refusal", "thinking"].into_iter().find_map(|name| fields.find(name));
            match own_text.filter(|text| text.kind() == JsonKind::String && !is_blank(*text)) {
                Some(text) => plan.as_text(TEXT_BLOCK_START, text),
                None => BodyPiece::New(convert_openai_image(fields).unwrap_or_else(|| quote_block(value))),
            }
        }
    }
}

/// Converts an image part of OpenAI's format whose bytes are in its URL: `data:image/png;base64,iVBORw0…`.
fn convert_openai_image(fields: &Fields<'_>) -> Option<String> {
    let image = fields.get("image_url")?;
    let url = image.json_str("url").or_else(|| image.as_json_str());
    let mut block = String::new();
    write_media(&mut block, &PartBody::Image(Media { url, ..Media::default() }).into()).then_some(block)
}

/// Returns a text block with the JSON of a block, or with a note if that is too long.
fn quote_block(value: JsonRef<'_>) -> String {
    let note = "[A block was left out: the model cannot read it.]";
    let text = if value.as_raw().len() <= MAX_QUOTED_BYTES { value.as_raw() } else { note };
    format!("{TEXT_BLOCK_START}{}}}", quoted(text))
}

/// Returns true if encoded blocks have a document and no text.
pub(in crate::provider::bedrock) fn has_document_without_text(blocks: &[String]) -> bool {
    let starts = |member: &str| {
        blocks.iter().any(|block| block.strip_prefix("{\"").is_some_and(|rest| rest.starts_with(member)))
    };
    starts("document\"") && !starts("text\"")
}

/// Adds a text beside documents: "A text block must be included when using documents."
pub(super) fn add_document_texts<'a>(plan: &mut Plan<'a, '_>, turns: &mut [Turn<'a>]) {
    for turn in turns.iter_mut().filter(|turn| !turn.removed && turn.speaker == Speaker::User) {
        let has = |kind: &str| turn.blocks.iter().filter_map(|block| kind_of(block.value?)).any(|(own, _)| own == kind);
        // A block that was rewritten is a text.
        let has_text = has(TEXT) || turn.blocks.iter().any(|block| is_new_text(block));
        if !has(DOCUMENT) || has_text {
            continue;
        }
        let sentence = "A text block must be included when using documents.";
        plan.report(Violation::error(FindingCode::EmptyContent, sentence).at(turn.about).synthesized());
        turn.blocks.push(Block::synthetic(DOCUMENT_TEXT.into()));
        turn.touched = true;
    }
}

fn is_new_text(block: &Block<'_>) -> bool {
    match &block.piece {
        BodyPiece::New(text) => text.starts_with(TEXT_BLOCK_START),
        BodyPiece::Wrapped(parts) => parts.0 == TEXT_BLOCK_START,
        _ => false,
    }
}

/// Repairs `system`, a list of blocks without blank texts.
pub(super) fn repair_system(plan: &mut Plan<'_, '_>) {
    let Some(system) = plan.body.get("system").filter(|system| !system.is_null()) else { return };
    if system.kind() != JsonKind::Array {
        let sentence = "Value at 'system' failed to satisfy constraint: a list of SystemContentBlock objects";
        let violation = Violation::error(FindingCode::Malformed, sentence).at_member(plan.body.object, "system");
        plan.report(violation.rewritten());
        match system.kind() {
            JsonKind::Object => plan.edits.wrap(system, "[", "]"),
            JsonKind::String if !is_blank(system) => {
                let text = plan.as_text(TEXT_BLOCK_START, system);
                plan.edits.enclose(system, BodyPiece::wrapped("[", vec![text], "]"));
            }
            _ => plan.edits.remove(plan.body.object, "system"),
        }
        return;
    }
    let (mut items, mut is_unchanged) = (Vec::new(), true);
    for item in system.items() {
        let text = if item.kind() == JsonKind::String { Some(item) } else { item.get(TEXT) };
        if text.is_some_and(is_blank) {
            let sentence = "The text field in the SystemContentBlock object at system is blank. Add text to the text field, and try again.";
            plan.report(Violation::error(FindingCode::EmptyContent, sentence).at(item).dropped());
            is_unchanged = false;
            continue;
        }
        let piece = repair_block(plan, &Fields::of(item));
        is_unchanged &= piece.is_source();
        items.push(piece);
    }
    if !is_unchanged {
        plan.edits.rebuild(system, items);
    }
}
