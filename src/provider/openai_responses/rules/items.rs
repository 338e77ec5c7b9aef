//! The shape of one item.

use crate::finding::Action;
use crate::json::{JsonRef, Kind};
use crate::provider::rules::{Fields, Piece, Plan, as_quoted, name_fit, name_valid, quoted};

const MAX_NAME: usize = 128;

/// What an item is, by its type or, where it has none, by its keys. "gone" for one that cannot stay.
pub(super) fn kind<'a>(
    plan: &mut Plan<'a, '_>,
    at: usize,
    value: JsonRef<'a>,
    path: &str,
) -> (String, Fields<'a>, Piece) {
    let fields = Fields::of(value);
    let piece = plan.edits.source(value);
    if !value.is_object() {
        let text = value.kind() == Kind::String;
        let action = if text { Action::Rewritten } else { Action::Dropped };
        plan.error("malformed", path, action, format!("Invalid type for 'input[{at}]': expected an object."));
        let wrapped = Piece::Wrapped("{\"role\":\"user\",\"content\":".into(), vec![piece], "}".into());
        // Its role is told from its keys, of which it has none.
        return if text { ("text".into(), fields, wrapped) } else { ("gone".into(), fields, wrapped) };
    }
    if let Some(kind) = fields.text("type").filter(|kind| !kind.is_empty()) {
        return (kind.into_owned(), fields, piece);
    }
    let has = |key: &str| fields.find(key).is_some();
    let guess = match () {
        () if has("role") => "message",
        () if has("call_id") && has("output") => "function_call_output",
        () if has("name") && (has("call_id") || has("arguments")) => "function_call",
        () if has("content") => "message",
        () => "gone",
    };
    // A message needs no type.
    let spare = fields.get("type").is_none() && guess == "message";
    if !spare {
        let action = if guess == "gone" { Action::Dropped } else { Action::Rewritten };
        plan.error(
            "malformed",
            format!("{path}/type"),
            action,
            format!("Missing required parameter: 'input[{at}].type'."),
        );
        if guess != "gone" {
            plan.edits.set(value, fields.get("type"), "type", format!("\"{guess}\""));
        }
    }
    (guess.into(), fields, piece)
}

/// Mends a message. None where it cannot stay; else whether the model says it.
pub(super) fn message<'a>(
    plan: &mut Plan<'a, '_>,
    path: &str,
    value: JsonRef<'a>,
    fields: &Fields<'a>,
) -> Option<bool> {
    let given = fields.text("role").unwrap_or_default();
    let model =
        match &*given {
            "assistant" => true,
            "user" | "system" | "developer" => false,
            other => {
                let model = matches!(other, "model" | "ai" | "bot" | "agent");
                plan.error("role_order", format!("{path}/role"), Action::Rewritten, format!(
                "Invalid value: '{other}'. Supported values are: 'assistant', 'system', 'developer', and 'user'."));
                plan.edits.set(
                    value,
                    fields.get("role"),
                    "role",
                    if model { "\"assistant\"".into() } else { "\"user\"".into() },
                );
                model
            }
        };
    let here = format!("{path}/content");
    match fields.get("content").map(|content| (content, content.kind())) {
        Some((_, Kind::String)) => {}
        Some((content, Kind::Array)) => parts(plan, content, &here, model),
        None | Some((_, Kind::Null)) => {
            plan.error("empty_content", path, Action::Dropped, "Missing required parameter: 'content' of a message.");
            return None;
        }
        Some((content, _)) => {
            plan.error(
                "malformed",
                here,
                Action::Rewritten,
                "Invalid type for 'content': expected one of a string or array of content parts.",
            );
            plan.edits.replace(content, Piece::New(as_quoted(content)));
        }
    }
    Some(model)
}

/// Text has a type of its own for each side: `output_text` in a user's message fails the schema.
fn parts<'a>(plan: &mut Plan<'a, '_>, content: JsonRef<'a>, path: &str, model: bool) {
    let own = if model { "output_text" } else { "input_text" };
    let (mut items, mut same) = (Vec::new(), true);
    for (place, part) in content.items().enumerate() {
        let here = format!("{path}/{place}");
        if part.is_object() {
            let fields = Fields::of(part);
            let kind = fields.text("type").unwrap_or_default();
            if kind != own
                && matches!(&*kind, "text" | "input_text" | "output_text" | "")
                && fields.text("text").is_some()
            {
                plan.error(
                    "unsupported_part",
                    format!("{here}/type"),
                    Action::Rewritten,
                    format!("Invalid value: '{kind}'. Supported values here: '{own}'."),
                );
                plan.edits.set(part, fields.get("type"), "type", format!("\"{own}\""));
            }
            items.push(plan.edits.source(part));
            continue;
        }
        same = false;
        let drop = part.is_null();
        plan.error(
            "malformed",
            here,
            if drop { Action::Dropped } else { Action::Rewritten },
            "Invalid type for a content part: expected an object.",
        );
        if !drop {
            let token = if part.kind() == Kind::String { plan.edits.source(part) } else { Piece::New(as_quoted(part)) };
            items.push(Piece::Wrapped(format!("{{\"type\":\"{own}\",\"text\":"), vec![token], "}".into()));
        }
    }
    if !same {
        plan.edits.rebuild(content, items);
    }
}

/// Mends a call's name, arguments and item id.
pub(super) fn call<'a>(plan: &mut Plan<'a, '_>, kind: &str, path: &str, value: JsonRef<'a>, fields: &Fields<'a>) {
    let custom = kind == "custom_tool_call";
    let name = fields.text("name").unwrap_or_default();
    if !name_valid(&name, MAX_NAME) {
        plan.error(
            "malformed",
            format!("{path}/name"),
            Action::Rewritten,
            format!("Invalid name '{name}': Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."),
        );
        plan.edits.set(value, fields.get("name"), "name", quoted(&name_fit(&name, MAX_NAME)));
    }
    let key = if custom { "input" } else { "arguments" };
    let here = format!("{path}/{key}");
    let arguments = fields.get(key);
    match arguments.filter(|value| value.kind() == Kind::String).and_then(JsonRef::as_text) {
        Some(text) => {
            if !custom && crate::json::check(&text).is_err() {
                plan.warn(
                    "invalid_arguments",
                    here,
                    "The arguments are not JSON: accepted as text, yet no tool can read them.",
                );
            }
        }
        None => {
            let text = arguments
                .filter(|value| !value.is_null())
                .map_or_else(|| if custom { "\"\"".into() } else { "\"{}\"".into() }, as_quoted);
            plan.error(
                "invalid_arguments",
                here,
                Action::Rewritten,
                format!("Invalid type for '{key}': expected a string."),
            );
            plan.edits.set(value, arguments, key, text);
        }
    }
    // A call id is no item id (nodetool#4252); pairing goes by call_id alone (laravel/ai#1052).
    if let Some(id) = fields.find("id") {
        let text = id.as_text();
        if text.as_ref().is_none_or(|id| id.is_empty() || id.starts_with("call_")) {
            plan.error(
                "invalid_call_id",
                format!("{path}/id"),
                Action::Dropped,
                format!("Invalid 'id': '{}'. Expected an ID that begins with 'fc'.", text.unwrap_or_default()),
            );
            plan.edits.remove(value, "id");
        }
    }
}

/// Mends an output.
pub(super) fn output<'a>(plan: &mut Plan<'a, '_>, path: &str, value: JsonRef<'a>, fields: &Fields<'a>) {
    let given = fields.get("output");
    if matches!(given.map(JsonRef::kind), Some(Kind::String | Kind::Array)) {
        return;
    }
    let text = given.filter(|value| !value.is_null()).map_or_else(|| "\"\"".into(), as_quoted);
    plan.error(
        "empty_content",
        format!("{path}/output"),
        Action::Rewritten,
        "Invalid type for 'output': expected one of a string or array of content parts.",
    );
    plan.edits.set(value, given, "output", text);
}
