//! The form of one item.

use super::parts::{ANSWER_PARTS, SYSTEM_PARTS, USER_PARTS, fix_parts};
use crate::finding::FindingCode;
use crate::json::{JsonKind, JsonRef};
use crate::provider::openai_chat::rules::call_form::{CalledTool, fix_arguments};
use crate::provider::openai_chat::rules::ids::MAX_ID;
use crate::provider::openai_responses::kinds::{CUSTOM, kind_of};
use crate::provider::rules::{
    BodyPiece, Fields, Plan, Violation, as_quoted, name_fit, name_valid, names_model, quoted, role_code,
};

const MAX_NAME: usize = 128;

/// Fixes an item that is no object. Returns a user message for a string, and none for anything else: it is removed.
pub(super) fn fix_non_object<'a>(plan: &mut Plan<'a, '_>, value: JsonRef<'a>) -> Option<BodyPiece> {
    let sentence = "Invalid type for 'input[{at}]': expected an object.";
    let violation = Violation::error(FindingCode::Malformed, sentence).at(value);
    if value.kind() != JsonKind::String {
        plan.report(violation.dropped());
        return None;
    }
    plan.report(violation.rewritten());
    Some(plan.as_text("{\"role\":\"user\",\"content\":", value))
}

/// Returns an item's `type`. A missing one is guessed from the members, and written if the endpoint requires it.
pub(super) fn type_of<'a>(plan: &mut Plan<'a, '_>, fields: &Fields<'a>) -> String {
    let written_type = fields.owned_text("type");
    if !written_type.is_empty() {
        return written_type;
    }
    let guess = match kind_of(fields.object) {
        guess if !guess.is_empty() => guess,
        _ => "message".into(),
    };
    // A message and a reference need no type. That of a reference may be null.
    let has_type = if guess == "item_reference" { fields.find("type") } else { fields.get("type") }.is_some();
    if has_type || !["message", "item_reference"].contains(&&*guess) {
        let sentence = "Missing required parameter: 'input[{at}].type'.";
        let violation = Violation::error(FindingCode::Malformed, sentence);
        plan.rewrite(violation.at_member(fields.object, "type"), quoted(&guess));
    }
    guess.into_owned()
}

/// Who sent a message.
pub(super) enum Sender {
    Model,
    /// The user or the system.
    Other,
}

/// Fixes a message. Returns none if it is removed. `moved_parts` receives the parts that only a user message may hold.
pub(super) fn fix_message<'a>(
    plan: &mut Plan<'a, '_>,
    fields: &Fields<'a>,
    moved_parts: &mut Vec<BodyPiece>,
) -> Option<Sender> {
    let role = fields.owned_text("role");
    let is_model = names_model(&role);
    let part_rules = match role.as_str() {
        _ if is_model => &ANSWER_PARTS,
        "system" | "developer" => &SYSTEM_PARTS,
        _ => &USER_PARTS,
    };
    if !["assistant", "user", "system", "developer"].contains(&role.as_str()) {
        let sentence = "Invalid value: '{}'. Supported values are: 'assistant', 'system', 'developer', and 'user'.";
        let violation = Violation::error(role_code(&role), sentence).at_member(fields.object, "role").quoting(&role);
        plan.rewrite(violation, quoted(if is_model { "assistant" } else { "user" }));
    }
    let Some(content) = fields.find("content") else {
        let sentence = "Missing required parameter: 'content' of a message.";
        plan.report(Violation::error(FindingCode::EmptyContent, sentence).at(fields.object).dropped());
        return None;
    };
    match content.kind() {
        JsonKind::String => {}
        JsonKind::Array => fix_parts(plan, content, part_rules, moved_parts),
        _ => {
            let sentence = "Invalid type for 'content': expected one of a string or array of content parts.";
            let violation = Violation::error(FindingCode::Malformed, sentence);
            plan.rewrite(violation.at_member(fields.object, "content"), as_quoted(content));
        }
    }
    Some(if is_model { Sender::Model } else { Sender::Other })
}

/// Fixes the name and arguments of a call of a function or custom tool.
pub(super) fn fix_call<'a>(plan: &mut Plan<'a, '_>, item_type: &str, fields: &Fields<'a>) {
    let name = fields.owned_text("name");
    if !name_valid(&name, MAX_NAME) {
        let sentence = "Invalid name '{}': Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.";
        let violation = Violation::error(FindingCode::Malformed, sentence);
        plan.rewrite(violation.at_member(fields.object, "name").quoting(&name), quoted(&name_fit(&name, MAX_NAME)));
    }
    let tool = if item_type == CUSTOM.kind { CalledTool::Custom } else { CalledTool::Function };
    fix_arguments(plan, fields, tool, false);
}

/// Fixes the id of an item that needs none, since calls and outputs pair by `call_id` (laravel/ai#1052): an invalid one
/// is removed. `prefix` is how OpenAI's ids begin. `accepts_any`: the model is not OpenAI's. Returns true if an id
/// stays.
pub(super) fn fix_id<'a>(plan: &mut Plan<'a, '_>, fields: &Fields<'a>, prefix: &str, accepts_any: bool) -> bool {
    let Some(value) = fields.find("id") else { return false };
    let id = value.as_text().unwrap_or_default();
    // Some clients put the call id there (nodetool#4252).
    let is_call_id = prefix != "msg" && (id.is_empty() || id.starts_with("call_"));
    let is_valid = accepts_any || id.starts_with(prefix) && id.chars().count() <= MAX_ID;
    if is_valid && !is_call_id {
        return !id.is_empty();
    }
    let sentence = "Invalid 'id': '{}'. Expected an ID that begins with 'msg', 'fc' or 'ctc', as its type does, of at most 64 characters.";
    let violation = Violation::error(FindingCode::InvalidCallId, sentence);
    plan.report(violation.at_member(fields.object, "id").quoting(&id).dropped());
    plan.edits.remove(fields.object, "id");
    false
}

/// Fixes the `output` of a function or custom tool: a string or a list of parts.
pub(super) fn fix_output<'a>(plan: &mut Plan<'a, '_>, fields: &Fields<'a>) {
    let output = fields.find("output");
    match output.map(|output| (output, output.kind())) {
        Some((_, JsonKind::String)) => return,
        Some((list, JsonKind::Array)) => return fix_parts(plan, list, &USER_PARTS, &mut Vec::new()),
        _ => {}
    }
    let text = output.map_or_else(|| "\"\"".into(), as_quoted);
    let sentence = "Invalid type for 'output': expected one of a string or array of content parts.";
    plan.rewrite(Violation::error(FindingCode::EmptyContent, sentence).at_member(fields.object, "output"), text);
}
