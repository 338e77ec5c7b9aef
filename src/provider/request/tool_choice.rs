//! The tool choice of a request, in the neutral form.

use crate::json::{JsonRef, JsonStr, ObjectWriter};
use crate::provider::name_charset::plain;
use std::borrow::Cow;

/// Which tool the model must call.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolChoice<'a> {
    /// The model decides.
    Auto,
    /// No tool.
    None,
    /// At least one, of any name.
    Any,
    /// The tool of this name.
    Named(Cow<'a, str>),
    /// A choice that only the dialect of the request has.
    Other(JsonRef<'a>),
}

impl<'a> ToolChoice<'a> {
    /// Reads a `tool_choice` of any dialect, or Gemini's `toolConfig`.
    #[must_use]
    pub fn of(choice: JsonRef<'a>) -> Self {
        let gemini = choice.get("functionCallingConfig").or_else(|| choice.get("function_calling_config"));
        let word = choice
            .as_text()
            .or_else(|| gemini.and_then(|config| config.text("mode")))
            .or_else(|| choice.text("type"))
            .unwrap_or_default();
        let only = gemini
            .and_then(|config| config.get("allowedFunctionNames").or_else(|| config.get("allowed_function_names")));
        let only = only.and_then(|names| {
            let mut names = names.items();
            names.next().filter(|_| names.next().is_none())?.as_text()
        });
        let name = choice.get("function").and_then(|function| function.text("name")).or_else(|| choice.text("name"));
        match word.as_ref() {
            "auto" | "AUTO" => Self::Auto,
            "none" | "NONE" => Self::None,
            "any" | "ANY" | "required" => only.map_or(Self::Any, Self::Named),
            "function" | "tool" | "custom" => name.map_or(Self::Other(choice), Self::Named),
            _ => Self::Other(choice),
        }
    }
}

/// The form of a choice among some tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AllowedToolsForm {
    /// `{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"f"}}]}}`
    Nested,
    /// `{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"f"}]}`
    Flat,
}

/// Writes a choice among some tools in that form. Returns false if `choice` is not one, or names no tool that the target has.
pub(super) fn write_allowed_tools(
    object: &mut ObjectWriter<'_>,
    choice: JsonRef<'_>,
    form: Option<AllowedToolsForm>,
) -> bool {
    let Some(form) = form.filter(|_| choice.has_text("type", "allowed_tools")) else { return false };
    let nested = form == AllowedToolsForm::Nested;
    let [open, tool_open, tool_close, close] = if nested {
        [r#""allowed_tools":{"mode":"#, r#""function":{"name":"#, "}}", "]}}"]
    } else {
        [r#""mode":"#, r#""name":"#, "}", "]}"]
    };
    let given = choice.get("allowed_tools").unwrap_or(choice);
    let mode = given.get("mode").map_or("\"auto\"", JsonRef::as_raw);
    // A custom tool of Responses is sent to chat as a function. Tools that the provider executes have no place there.
    let is_sent = |tool: &JsonRef<'_>| tool.has_text("type", "function") || nested && tool.has_text("type", "custom");
    let name = |tool: JsonRef<'_>| {
        let name = tool.get("function").unwrap_or(tool).text("name")?;
        Some(JsonStr::new(&plain(&name, 64)))
    };
    let names: Vec<_> = given.get("tools").unwrap_or_default().items().filter(is_sent).filter_map(name).collect();
    if names.is_empty() {
        return false;
    }
    let out = object.key("tool_choice");
    for piece in [r#"{"type":"allowed_tools","#, open, mode, r#","tools":["#] {
        out.push_str(piece);
    }
    let mut comma = "";
    for name in &names {
        for piece in [comma, r#"{"type":"function","#, tool_open, name.token(), tool_close] {
            out.push_str(piece);
        }
        comma = ",";
    }
    out.push_str(close);
    true
}
