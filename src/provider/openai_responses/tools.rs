//! Tools and the tool choice of a Responses request:
//! `{"type":"function","name":"search","parameters":{…},"strict":false}`.

use super::Responses;
use super::kinds::ASYNC;
use crate::json::{JsonKind, JsonRef, ObjectWriter};
use crate::provider::name_charset::plain;
use crate::provider::request::{TOOL_CHOICE, ToolChoice, ToolDefinition};
use crate::provider::spec::ToolCodec;

/// The type of a choice among some tools:
/// `{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"search"}]}`.
const ALLOWED_TOOLS: &str = "allowed_tools";

/// Returns true if the host runs a tool of that type. The provider runs those of all other types.
fn is_called(kind: &str) -> bool {
    matches!(kind, "function" | "custom")
}

impl ToolCodec for Responses {
    /// The member `type` may be absent. A custom tool, whose input is a text, becomes a function.
    fn read_tools(&self, entry: JsonRef<'_>) -> Vec<ToolDefinition> {
        let is_called = entry.text("type").is_none_or(|kind| is_called(&kind));
        ToolDefinition::from_object(entry, "parameters").filter(|_| is_called).into_iter().collect()
    }

    fn write_tool(&self, out: &mut ObjectWriter<'_>, tool: &ToolDefinition) {
        out.text("type", "function").text("name", &tool.name);
        if let Some(description) = &tool.description {
            out.text("description", description);
        }
        // The default is `true`, unlike in every other dialect, and makes every parameter required.
        out.json("parameters", tool.schema().view()).bool("strict", tool.strict);
        if tool.is_async {
            out.bool(ASYNC, true);
        }
    }

    /// Its plain words are those of Chat Completions.
    fn read_tool_choice<'a>(&self, choice: JsonRef<'a>) -> Option<ToolChoice<'a>> {
        let name = |object: JsonRef<'_>| {
            let name = object.text("name").filter(|_| object.text("type").is_some_and(|kind| is_called(&kind)))?;
            Some(name.into_owned())
        };
        if choice.has_text("type", ALLOWED_TOOLS) {
            let tools = choice.get("tools").unwrap_or_default().items();
            let names: Vec<String> = tools.filter_map(name).map(|name| plain(&name, 64)).collect();
            return (!names.is_empty())
                .then(|| ToolChoice::Among { names, required: choice.has_text("mode", "required") });
        }
        match choice.as_text().as_deref() {
            Some("auto") => Some(ToolChoice::Auto),
            Some("none") => Some(ToolChoice::None),
            Some("required") => Some(ToolChoice::Any),
            _ => name(choice).map(|name| ToolChoice::Named(name.into())),
        }
    }

    fn is_native_tool_choice(&self, choice: JsonRef<'_>) -> bool {
        match choice.kind() {
            JsonKind::String => !choice.is_text("any"),
            _ => choice.text("type").is_some_and(|kind| match &*kind {
                "auto" | "any" | "none" | "tool" => false,
                // Chat Completions nest the choice: `{"type":"function","function":{"name":"…"}}`.
                kind => choice.get(kind).is_none(),
            }),
        }
    }

    fn write_tool_choice(&self, object: &mut ObjectWriter<'_>, choice: &ToolChoice<'_>) -> bool {
        match choice {
            ToolChoice::Auto => object.text(TOOL_CHOICE, "auto"),
            ToolChoice::None => object.text(TOOL_CHOICE, "none"),
            ToolChoice::Any => object.text(TOOL_CHOICE, "required"),
            ToolChoice::Named(name) => {
                object.object(TOOL_CHOICE, |out| _ = out.text("type", "function").text("name", name))
            }
            ToolChoice::Among { names, required } => object.object(TOOL_CHOICE, |out| {
                out.text("type", ALLOWED_TOOLS).text("mode", if *required { "required" } else { "auto" });
                out.array("tools", |tools| {
                    for name in names {
                        let mut tool = ObjectWriter::new(tools.item());
                        tool.text("type", "function").text("name", name);
                        tool.end();
                    }
                });
            }),
        };
        true
    }
}
