//! The content and the status of results.

use super::content::{self, TEXT_BLOCK_START};
use crate::finding::FindingCode;
use crate::json::{JsonKind, JsonRef};
use crate::provider::bedrock::block::{JSON, kind_of};
use crate::provider::rules::{BodyPiece, Fields, Plan, Violation, quoted};

/// The content of an error result that has none: Converse rejects it empty.
pub(in crate::provider::bedrock) const EMPTY_ERROR_TEXT: &str = "The tool reported an error without a text.";

const NOT_A_LIST: &str = "Value at 'messages.{at}.toolResult.content' failed to satisfy constraint: a list of ToolResultContentBlock objects";

/// Repairs the `status` and the `content` of a result.
pub(super) fn repair<'a>(plan: &mut Plan<'a, '_>, fields: &Fields<'a>) {
    let is_error = repair_status(plan, fields);
    let content = fields.get("content").unwrap_or_default();
    let error_blocks = || format!("[{TEXT_BLOCK_START}{}}}]", quoted(EMPTY_ERROR_TEXT));
    let is_blank = content.is_null() || content.as_text().is_some_and(|text| text.trim().is_empty());
    match content.kind() {
        JsonKind::Array => repair_blocks(plan, fields, content, is_error),
        JsonKind::Object => {
            plan.report(
                Violation::error(FindingCode::Malformed, NOT_A_LIST).at_member(fields.object, "content").rewritten(),
            );
            plan.edits.wrap(content, "[", "]");
        }
        _ if is_blank => {
            let value = if is_error { error_blocks() } else { "[]".into() };
            plan.rewrite(
                Violation::error(FindingCode::Malformed, NOT_A_LIST).at_member(fields.object, "content"),
                value,
            );
        }
        _ => {
            plan.report(
                Violation::error(FindingCode::Malformed, NOT_A_LIST).at_member(fields.object, "content").rewritten(),
            );
            let text = plan.as_text(TEXT_BLOCK_START, content);
            plan.edits.enclose(content, BodyPiece::wrapped("[", vec![text], "]"));
        }
    }
}

/// Returns true if the result is an error; a `status` that Converse does not have is rewritten.
fn repair_status<'a>(plan: &mut Plan<'a, '_>, fields: &Fields<'a>) -> bool {
    let Some(status) = fields.find("status") else { return false };
    if status.is_text("error") || status.is_text("success") {
        return status.is_text("error");
    }
    let text = status.as_text().unwrap_or_default().to_ascii_lowercase();
    let is_error = text.contains("error") || text.contains("fail");
    let sentence = "Value '{}' at 'messages.{at}.toolResult.status' failed to satisfy constraint: Member must satisfy enum value set: [success, error]";
    let violation = Violation::error(FindingCode::Malformed, sentence).at_member(fields.object, "status");
    plan.rewrite(violation.quoting(status.as_raw()), quoted(if is_error { "error" } else { "success" }));
    is_error
}

/// Repairs a result's list of blocks.
fn repair_blocks<'a>(plan: &mut Plan<'a, '_>, fields: &Fields<'a>, content: JsonRef<'a>, is_error: bool) {
    let (mut pieces, mut is_unchanged) = (Vec::new(), true);
    for block in content.items() {
        if plan.is_over_budget() {
            return;
        }
        let block_fields = Fields::of(block);
        if !content::is_kept(plan, &block_fields, "") {
            is_unchanged = false;
            continue;
        }
        let piece = match kind_of(block) {
            Some((JSON, value)) if !value.is_object() => {
                let sentence = "The format of the value at messages.{at}.toolResult.content.json is invalid. Provide a json object for the field and try again.";
                plan.report(Violation::error(FindingCode::Malformed, sentence).at_member(block, JSON).rewritten());
                plan.as_text(TEXT_BLOCK_START, value)
            }
            _ => content::repair_block(plan, &block_fields),
        };
        is_unchanged &= piece.is_source();
        pieces.push(piece);
    }
    if pieces.is_empty() && is_error {
        let sentence = "The content field at messages.{at}.toolResult cannot be empty when status value is error.";
        let violation = Violation::error(FindingCode::EmptyContent, sentence).at_member(fields.object, "content");
        plan.report(violation.rewritten());
        pieces.push(BodyPiece::New(format!("{TEXT_BLOCK_START}{}}}", quoted(EMPTY_ERROR_TEXT))));
        is_unchanged = false;
    }
    if !is_unchanged {
        plan.edits.rebuild(content, pieces);
    }
}
