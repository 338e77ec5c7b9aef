//! The shape of one call: its type, name and arguments.

use crate::finding::Action;
use crate::json::{JsonRef, Kind, ObjectWriter};
use crate::provider::rules::{Fields, Plan, name_fit, name_valid, quoted};

const MAX_NAME: usize = 64;

/// Mends a call where the provider would refuse it; `loose` for Mistral, which needs no type and takes object arguments.
pub(super) fn mend<'a>(plan: &mut Plan<'a, '_>, value: JsonRef<'a>, fields: &Fields<'a>, path: &str, loose: bool) {
    let object = |name: &str| fields.get(name).filter(|inner| inner.is_object());
    let given = fields.text("type").unwrap_or_default();
    let custom =
        given == "custom" || (given != "function" && object("custom").is_some() && object("function").is_none());
    let kind = if custom { "custom" } else { "function" };
    if given != kind && !(loose && fields.find("type").is_none()) {
        plan.error(
            "malformed",
            format!("{path}/type"),
            Action::Rewritten,
            format!("Invalid value: '{given}' in 'type'. Supported values are: 'function' and 'custom'."),
        );
        plan.edits.set(value, fields.get("type"), "type", format!("\"{kind}\""));
    }
    let argument = if custom { "input" } else { "arguments" };
    let Some(inner) = object(kind) else {
        // Flat calls ({name, arguments}) come from Workers AI and the like.
        let name = fields.text("name").unwrap_or_default();
        let arguments = argument_text(fields.find("arguments").or_else(|| fields.find("input")), custom);
        let text = ObjectWriter::build(|o| {
            o.text("name", &name_fit(&name, MAX_NAME)).raw(argument, &arguments);
        });
        plan.error(
            "malformed",
            format!("{path}/{kind}"),
            Action::Rewritten,
            format!("Missing required parameter: '{kind}' must be an object with a name and {argument}."),
        );
        plan.edits.set(value, fields.get(kind), kind, text.as_str().to_owned());
        return;
    };
    let inside = Fields::of(inner);
    let name = inside.text("name").unwrap_or_default();
    if !name_valid(&name, MAX_NAME) {
        plan.error("malformed", format!("{path}/{kind}/name"), Action::Rewritten, format!(
            "Invalid call name '{name}': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$', 64 at most."));
        plan.edits.set(inner, inside.get("name"), "name", quoted(&name_fit(&name, MAX_NAME)));
    }
    let here = format!("{path}/{kind}/{argument}");
    let arguments = inside.get(argument);
    match arguments.map(JsonRef::kind) {
        Some(Kind::String) => {
            // OpenAI takes any text here; the tool's own parser will not.
            let text = arguments.and_then(JsonRef::as_text).unwrap_or_default();
            if !custom && crate::json::check(&text).is_err() {
                plan.warn(
                    "invalid_arguments",
                    here,
                    "The arguments are not JSON: accepted as text, yet no tool can read them.",
                );
            }
        }
        Some(Kind::Object) if loose => {}
        _ => {
            plan.error(
                "invalid_arguments",
                here,
                Action::Rewritten,
                format!("Invalid type for '{argument}': expected a string."),
            );
            plan.edits.set(inner, arguments, argument, argument_text(arguments, custom));
        }
    }
}

/// Arguments as the string that the format wants: a value's own JSON text, in quotes.
fn argument_text(value: Option<JsonRef<'_>>, custom: bool) -> String {
    match value.filter(|value| !value.is_null()) {
        None => {
            if custom {
                "\"\"".into()
            } else {
                "\"{}\"".into()
            }
        }
        Some(value) => crate::provider::rules::as_quoted(value),
    }
}
