//! The form of a call: its type, name and arguments.

use crate::finding::FindingCode;
use crate::json::{JsonKind, JsonRef};
use crate::provider::rules::{Fields, Plan, Violation, as_quoted, name_fit, name_valid, quoted};

const MAX_NAME: usize = 64;

/// What a call calls.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum CalledTool {
    /// A function: its arguments are a string of JSON text.
    Function,
    /// A custom tool: its input is a string of free text.
    Custom,
}

impl CalledTool {
    /// The call's `type`, and the member that holds name and arguments.
    fn name(self) -> &'static str {
        match self {
            Self::Function => "function",
            Self::Custom => "custom",
        }
    }

    fn arguments_member(self) -> &'static str {
        match self {
            Self::Function => "arguments",
            Self::Custom => "input",
        }
    }

    /// Returns arguments in the form that the provider requires: a string. A value that is none becomes its JSON text.
    fn arguments_text(self, value: Option<JsonRef<'_>>) -> String {
        match (value.filter(|value| !value.is_null()), self) {
            (Some(value), _) => as_quoted(value),
            (None, Self::Custom) => "\"\"".into(),
            (None, Self::Function) => "\"{}\"".into(),
        }
    }
}

/// Fixes a call. `lenient`: it may lack a type and have an object as arguments (Mistral).
pub(super) fn fix_call<'a>(plan: &mut Plan<'a, '_>, call: &Fields<'a>, lenient: bool) {
    let object = |name: &str| call.get(name).filter(|inner| inner.is_object());
    let given_type = call.owned_text("type");
    let has_only_custom = object("custom").is_some() && object("function").is_none();
    let is_custom = given_type == "custom" || given_type != "function" && has_only_custom;
    let tool = if is_custom { CalledTool::Custom } else { CalledTool::Function };
    // Kimi's server runs such a tool itself. Its name begins with `$`.
    let is_kimi_builtin = given_type == "builtin_function" && !lenient && object("function").is_some();
    let may_lack_type = lenient && call.find("type").is_none();
    if given_type != tool.name() && !is_kimi_builtin && !may_lack_type {
        let sentence = "Invalid value: '{}' in 'type'. Supported values are: 'function' and 'custom'.";
        let violation = Violation::error(FindingCode::Malformed, sentence);
        plan.rewrite(violation.at_member(call.object, "type").quoting(&given_type), quoted(tool.name()));
    }
    let Some(inner) = object(tool.name()) else { return fix_flat_call(plan, call, tool) };
    let inner = Fields::of(inner);
    let name = inner.owned_text("name");
    if !is_kimi_builtin && !name_valid(&name, MAX_NAME) {
        let sentence = "Invalid call name '{}': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$', 64 at most.";
        let violation = Violation::error(FindingCode::Malformed, sentence);
        plan.rewrite(violation.at_member(inner.object, "name").quoting(&name), quoted(&name_fit(&name, MAX_NAME)));
    }
    fix_arguments(plan, &inner, tool, lenient);
}

/// Fixes a call without an inner object, such as Workers AI's `{"name":"search","arguments":{…}}`. Its members move:
/// some models reject a call that has members which the format does not have.
fn fix_flat_call<'a>(plan: &mut Plan<'a, '_>, call: &Fields<'a>, tool: CalledTool) {
    let name = quoted(&name_fit(&call.owned_text("name"), MAX_NAME));
    let is_input = call.find("arguments").is_none() && call.find("input").is_some();
    let given_as = if is_input { "input" } else { "arguments" };
    let arguments = tool.arguments_text(call.find(given_as));
    let sentence = match tool {
        CalledTool::Custom => "Missing required parameter: 'custom' must be an object with a name and input.",
        CalledTool::Function => "Missing required parameter: 'function' must be an object with a name and arguments.",
    };
    let violation = Violation::error(FindingCode::Malformed, sentence).at_member(call.object, tool.name());
    plan.rewrite(violation, format!("{{\"name\":{name},\"{}\":{arguments}}}", tool.arguments_member()));
    plan.edits.remove(call.object, "name");
    plan.edits.remove(call.object, given_as);
}

/// Fixes the arguments of a call of Chat Completions or Responses; `call` is the object that holds them. `lenient`:
/// they may be an object.
pub(crate) fn fix_arguments<'a>(plan: &mut Plan<'a, '_>, call: &Fields<'a>, tool: CalledTool, lenient: bool) {
    let member = tool.arguments_member();
    let arguments = call.get(member);
    match arguments.map(JsonRef::kind) {
        Some(JsonKind::String) => {
            // OpenAI accepts any text here; the tool's own parser does not.
            let text = arguments.and_then(JsonRef::as_text).unwrap_or_default();
            if tool == CalledTool::Function && crate::json::check(&text).is_err() {
                let sentence =
                    "The arguments are not JSON: the provider accepts them as text, but no tool can read them.";
                let violation = Violation::warning(FindingCode::InvalidArguments, sentence);
                plan.report(violation.at_member(call.object, member));
            }
        }
        Some(JsonKind::Object) if lenient => {}
        _ => {
            let sentence = "Invalid type for '{}': expected a string.";
            let violation = Violation::error(FindingCode::InvalidArguments, sentence);
            plan.rewrite(violation.at_member(call.object, member).quoting(member), tool.arguments_text(arguments));
        }
    }
}
