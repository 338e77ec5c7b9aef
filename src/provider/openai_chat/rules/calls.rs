//! The shape of one call: its type, name and arguments.

use crate::finding::FindingCode;
use crate::json::{JsonRef, Kind};
use crate::provider::rules::{Fields, Plan, Violation, as_quoted, name_fit, name_valid, quoted};

const MAX_NAME: usize = 64;

/// Mends a call where the provider would refuse it; `loose` for Mistral, which needs no type and takes object arguments.
pub(super) fn mend<'a>(plan: &mut Plan<'a, '_>, fields: &Fields<'a>, loose: bool) {
    let value = fields.object;
    let object = |name: &str| fields.get(name).filter(|inner| inner.is_object());
    let given = fields.owned_text("type");
    let custom =
        given == "custom" || (given != "function" && object("custom").is_some() && object("function").is_none());
    // Kimi's server runs such a tool itself; its name begins with a `$`.
    let builtin = given == "builtin_function" && !loose && object("function").is_some();
    let (kind, argument) = if custom { ("custom", "input") } else { ("function", "arguments") };
    if given != kind && !builtin && !(loose && fields.find("type").is_none()) {
        let sentence = "Invalid value: '{}' in 'type'. Supported values are: 'function' and 'custom'.";
        plan.rewrite(
            Violation::error(FindingCode::Malformed, sentence).at_member(value, "type").quoting(&given),
            quoted(kind),
        );
    }
    let Some(inner) = object(kind) else {
        // Flat calls ({name, arguments}) come from Workers AI and the like.
        let name = quoted(&name_fit(&fields.owned_text("name"), MAX_NAME));
        let arguments = argument_text(fields.find("arguments").or_else(|| fields.find("input")), custom);
        let sentence = if custom {
            "Missing required parameter: 'custom' must be an object with a name and input."
        } else {
            "Missing required parameter: 'function' must be an object with a name and arguments."
        };
        let text = format!("{{\"name\":{name},\"{argument}\":{arguments}}}");
        plan.rewrite(Violation::error(FindingCode::Malformed, sentence).at_member(value, kind), text);
        return;
    };
    let inside = Fields::of(inner);
    let name = inside.owned_text("name");
    if !builtin && !name_valid(&name, MAX_NAME) {
        let sentence = "Invalid call name '{}': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$', 64 at most.";
        plan.rewrite(
            Violation::error(FindingCode::Malformed, sentence).at_member(inner, "name").quoting(&name),
            quoted(&name_fit(&name, MAX_NAME)),
        );
    }
    arguments_of(plan, &inside, custom, loose);
}

/// Mends a call's arguments, in either format of OpenAI's.
pub(crate) fn arguments_of<'a>(plan: &mut Plan<'a, '_>, fields: &Fields<'a>, custom: bool, loose: bool) {
    let (value, key) = (fields.object, if custom { "input" } else { "arguments" });
    let arguments = fields.get(key);
    match arguments.map(JsonRef::kind) {
        Some(Kind::String) => {
            // OpenAI takes any text here; the tool's own parser will not.
            let text = arguments.and_then(JsonRef::as_text).unwrap_or_default();
            if !custom && crate::json::check(&text).is_err() {
                let sentence = "The arguments are not JSON: accepted as text, yet no tool can read them.";
                plan.report(Violation::warning(FindingCode::InvalidArguments, sentence).at_member(value, key));
            }
        }
        Some(Kind::Object) if loose => {}
        _ => {
            let sentence = "Invalid type for '{}': expected a string.";
            plan.rewrite(
                Violation::error(FindingCode::InvalidArguments, sentence).at_member(value, key).quoting(key),
                argument_text(arguments, custom),
            );
        }
    }
}

/// Arguments as the string that the format wants: a value's own JSON text, in quotes.
fn argument_text(value: Option<JsonRef<'_>>, custom: bool) -> String {
    match value.filter(|value| !value.is_null()) {
        Some(value) => as_quoted(value),
        None if custom => "\"\"".into(),
        None => "\"{}\"".into(),
    }
}
