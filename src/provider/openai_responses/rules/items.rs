//! The shape of one item.

use crate::finding::{Action, FindingCode};
use crate::json::{JsonRef, Kind};
use crate::provider::foreign_format::is_provider_type;
use crate::provider::openai_chat::rules::{MAX_ID, calls::arguments_of};
use crate::provider::openai_responses::kinds::kind_of;
use crate::provider::rules::{
    BodyPiece, Fields, Plan, Violation, as_quoted, name_fit, name_valid, names_model, quoted, role_code,
};

const MAX_NAME: usize = 128;

/// What stands for an item that is no object: a user's message where it is a text, otherwise nothing.
pub(super) fn text<'a>(plan: &mut Plan<'a, '_>, value: JsonRef<'a>) -> Option<BodyPiece> {
    let text = value.kind() == Kind::String;
    let action = if text { Action::Rewritten } else { Action::Dropped };
    plan.report(
        Violation::error(FindingCode::Malformed, "Invalid type for 'input[{at}]': expected an object.")
            .at(value)
            .with_action(action),
    );
    text.then(|| plan.as_text("{\"role\":\"user\",\"content\":", value))
}

/// What an item is, by its type or, where it has none, by its keys.
pub(super) fn kind<'a>(plan: &mut Plan<'a, '_>, fields: &Fields<'a>) -> String {
    let kind = fields.owned_text("type");
    if !kind.is_empty() {
        return kind;
    }
    let guess = match kind_of(fields.object) {
        kind if !kind.is_empty() => kind,
        _ => "message".into(),
    };
    // A message needs no type, nor does a reference, and that may say so.
    let typed = if guess == "item_reference" { fields.find("type") } else { fields.get("type") };
    if typed.is_some() || !["message", "item_reference"].contains(&&*guess) {
        let sentence = "Missing required parameter: 'input[{at}].type'.";
        plan.rewrite(
            Violation::error(FindingCode::Malformed, sentence).at_member(fields.object, "type"),
            quoted(&guess),
        );
    }
    guess.into_owned()
}

/// Mends a message. None where it cannot stay; else whether the model says it. `spill` takes the parts that only a user's holds.
pub(super) fn message<'a>(plan: &mut Plan<'a, '_>, fields: &Fields<'a>, spill: &mut Vec<BodyPiece>) -> Option<bool> {
    let value = fields.object;
    let role = fields.owned_text("role");
    let model = names_model(&role);
    let holds = match role.as_str() {
        _ if model => &MODEL,
        "system" | "developer" => &SYSTEM,
        _ => &USER,
    };
    if !["assistant", "user", "system", "developer"].contains(&role.as_str()) {
        let sentence = "Invalid value: '{}'. Supported values are: 'assistant', 'system', 'developer', and 'user'.";
        let role_due = if model { "\"assistant\"" } else { "\"user\"" };
        plan.rewrite(
            Violation::error(role_code(&role), sentence).at_member(value, "role").quoting(&role),
            role_due.into(),
        );
    }
    let Some(content) = fields.find("content") else {
        let sentence = "Missing required parameter: 'content' of a message.";
        plan.report(Violation::error(FindingCode::EmptyContent, sentence).at(value).dropped());
        return None;
    };
    match content.kind() {
        Kind::String => {}
        Kind::Array => parts(plan, content, holds, spill),
        _ => {
            let sentence = "Invalid type for 'content': expected one of a string or array of content parts.";
            plan.rewrite(
                Violation::error(FindingCode::Malformed, sentence).at_member(value, "content"),
                as_quoted(content),
            );
        }
    }
    Some(model)
}

/// What a list of parts may hold.
struct Holds {
    /// Text has a type of its own for each side: `output_text` in a user's message fails the schema.
    text: &'static str,
    open: &'static str,
    /// Images and files too.
    media: bool,
    sentence: &'static str,
}

const USER: Holds = Holds {
    text: "input_text",
    open: "{\"type\":\"input_text\",\"text\":",
    media: true,
    sentence: "Invalid value: '{}'. Supported values are: 'input_text', 'input_image', and 'input_file'.",
};

const SYSTEM: Holds =
    Holds { media: false, sentence: "Invalid value: '{}'. Supported values are: 'input_text'.", ..USER };

const MODEL: Holds = Holds {
    text: "output_text",
    open: "{\"type\":\"output_text\",\"text\":",
    media: false,
    sentence: "Invalid value: '{}'. Supported values are: 'output_text' and 'refusal'.",
};

/// A part of a chat message, as this endpoint has it.
fn from_chat(fields: &Fields<'_>, kind: &str) -> Option<String> {
    let inner = fields.get(kind)?;
    match kind {
        "image_url" => {
            let url = inner.get("url").unwrap_or(inner).as_json_str()?;
            let detail = inner.get("detail").map(|detail| format!(",\"detail\":{}", detail.as_raw()));
            let detail = detail.unwrap_or_default();
            Some(format!("{{\"type\":\"input_image\",\"image_url\":{}{detail}}}", url.token()))
        }
        // Its members have the same names here.
        "file" => {
            inner.entries().next()?;
            Some(format!("{{\"type\":\"input_file\",{}", inner.as_raw().get(1..)?))
        }
        _ => None,
    }
}

/// Mends a list of parts. Those of an unknown type stay: new ones come.
fn parts<'a>(plan: &mut Plan<'a, '_>, content: JsonRef<'a>, holds: &Holds, spill: &mut Vec<BodyPiece>) {
    let (mut items, mut same) = (Vec::new(), true);
    for part in content.items() {
        if part.is_object() {
            let fields = Fields::of(part);
            let kind = fields.owned_text("type");
            if plan.is_foreign_block(&fields) || !kind.is_empty() && !is_provider_type(&kind) {
                plan.report(
                    Violation::error(FindingCode::UnknownShape, holds.sentence)
                        .at_member(part, "type")
                        .quoting(&kind)
                        .rewritten(),
                );
                let text = fields.get("text").filter(|text| text.kind() == Kind::String).unwrap_or(part);
                let text = BodyPiece::New(format!("{}{}}}", holds.open, as_quoted(text)));
                plan.edits.replace(part, text);
                items.push(plan.edits.source(part));
                continue;
            }
            let of_text = ["text", "input_text", "output_text", ""].contains(&kind.as_str());
            if of_text && kind != holds.text && fields.text("text").is_some() {
                plan.rewrite(
                    Violation::error(FindingCode::UnsupportedPart, holds.sentence)
                        .at_member(part, "type")
                        .quoting(&kind),
                    quoted(holds.text),
                );
            }
            if of_text && !fix_text(plan, &fields) {
                same = false;
                continue;
            }
            let chat = from_chat(&fields, &kind);
            let moves = !holds.media && (chat.is_some() || kind == "input_image" || kind == "input_file");
            if moves || chat.is_some() {
                let action = if moves { Action::Moved } else { Action::Rewritten };
                plan.report(
                    Violation::error(FindingCode::UnsupportedPart, holds.sentence)
                        .at_member(part, "type")
                        .quoting(&kind)
                        .with_action(action),
                );
            }
            if let Some(text) = chat {
                plan.edits.replace(part, BodyPiece::New(text));
            }
            same &= !moves;
            let to = if moves { &mut *spill } else { &mut items };
            to.push(plan.edits.source(part));
            continue;
        }
        same = false;
        let drop = part.is_null();
        let action = if drop { Action::Dropped } else { Action::Rewritten };
        plan.report(
            Violation::error(FindingCode::Malformed, "Invalid type for a content part: expected an object.")
                .at(part)
                .with_action(action),
        );
        if !drop {
            items.push(plan.as_text(holds.open, part));
        }
    }
    if !same {
        plan.edits.rebuild(content, items);
    }
}

/// Fixes the `text` of a text part: a value that is no string becomes its JSON. Returns false if there is none; the part is dropped.
fn fix_text<'a>(plan: &mut Plan<'a, '_>, fields: &Fields<'a>) -> bool {
    let Some(text) = fields.find("text") else {
        let sentence = "Missing required parameter: 'text' of a content part.";
        plan.report(Violation::error(FindingCode::EmptyContent, sentence).at(fields.object).dropped());
        return false;
    };
    if text.kind() != Kind::String {
        let sentence = "Invalid type for 'text': expected a string.";
        plan.rewrite(
            Violation::error(FindingCode::Malformed, sentence).at_member(fields.object, "text"),
            as_quoted(text),
        );
    }
    true
}

/// Mends a call's name and arguments.
pub(super) fn call<'a>(plan: &mut Plan<'a, '_>, kind: &str, fields: &Fields<'a>) {
    let value = fields.object;
    let name = fields.owned_text("name");
    if !name_valid(&name, MAX_NAME) {
        let sentence = "Invalid name '{}': Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.";
        plan.rewrite(
            Violation::error(FindingCode::Malformed, sentence).at_member(value, "name").quoting(&name),
            quoted(&name_fit(&name, MAX_NAME)),
        );
    }
    arguments_of(plan, fields, kind == "custom_tool_call", false);
}

/// Mends the id of an item that may go without: pairing goes by call_id alone (laravel/ai#1052). `prefix`: how OpenAI's begin;
/// `loose` where the model is not OpenAI's. Gives whether it has one that stays.
pub(super) fn id<'a>(plan: &mut Plan<'a, '_>, fields: &Fields<'a>, prefix: &str, loose: bool) -> bool {
    let Some(id) = fields.find("id") else { return false };
    let text = id.as_text().unwrap_or_default();
    // A call id is no item id (nodetool#4252).
    let call = prefix != "msg" && (text.is_empty() || text.starts_with("call_"));
    if !call && (loose || text.starts_with(prefix) && text.chars().count() <= MAX_ID) {
        return !text.is_empty();
    }
    let sentence = "Invalid 'id': '{}'. Expected an ID that begins with 'msg', 'fc' or 'ctc', as its type does, of at most 64 characters.";
    plan.report(
        Violation::error(FindingCode::InvalidCallId, sentence).at_member(fields.object, "id").quoting(&text).dropped(),
    );
    plan.edits.remove(fields.object, "id");
    false
}

/// Mends an output.
pub(super) fn output<'a>(plan: &mut Plan<'a, '_>, fields: &Fields<'a>) {
    let given = fields.find("output");
    match given.map(|given| (given, given.kind())) {
        Some((_, Kind::String)) => return,
        Some((list, Kind::Array)) => return parts(plan, list, &USER, &mut Vec::new()),
        _ => {}
    }
    let text = given.map_or_else(|| "\"\"".into(), as_quoted);
    let sentence = "Invalid type for 'output': expected one of a string or array of content parts.";
    plan.rewrite(Violation::error(FindingCode::EmptyContent, sentence).at_member(fields.object, "output"), text);
}
