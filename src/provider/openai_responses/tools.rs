//! Tools and the tool choice of a Responses request: `{"type":"function","name":"search","parameters":{…},"strict":false}`.

use crate::json::{JsonRef, ObjectWriter};
use crate::provider::name_charset::plain;
use crate::provider::request::{TOOL_CHOICE, ToolChoice, ToolDefinition};

/// The type of a choice among some tools:
/// `{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"search"}]}`.
const ALLOWED_TOOLS: &str = "allowed_tools";

/// Returns true if the host runs a tool of that type. The provider runs those of all other types.
fn is_called(kind: &str) -> bool {
    matches!(kind, "function" | "custom")
}

/// Reads an entry of `tools`. The member `type` may be absent. A custom tool, whose input is a text, becomes a function.
pub(super) fn read_tool(entry: JsonRef<'_>) -> Option<ToolDefinition> {
    let is_called = entry.text("type").is_none_or(|kind| is_called(&kind));
    ToolDefinition::from_object(entry, "parameters").filter(|_| is_called)
}

/// Reads a tool choice. Its plain words are those of Chat Completions.
pub(super) fn read_tool_choice(choice: JsonRef<'_>) -> Option<ToolChoice<'_>> {
    let name = |object: JsonRef<'_>| {
        let name = object.text("name").filter(|_| object.text("type").is_some_and(|kind| is_called(&kind)))?;
        Some(name.into_owned())
    };
    if choice.has_text("type", ALLOWED_TOOLS) {
        let tools = choice.get("tools").unwrap_or_default().items();
        let names: Vec<String> = tools.filter_map(name).map(|name| plain(&name, 64)).collect();
        return (!names.is_empty()).then(|| ToolChoice::Among { names, required: choice.has_text("mode", "required") });
    }
    match choice.as_text().as_deref() {
        Some("auto") => Some(ToolChoice::Auto),
        Some("none") => Some(ToolChoice::None),
        Some("required") => Some(ToolChoice::Any),
        _ => name(choice).map(|name| ToolChoice::Named(name.into())),
    }
}

/// Writes the member `tool_choice`.
pub(super) fn write_tool_choice(object: &mut ObjectWriter<'_>, choice: &ToolChoice<'_>) {
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
}
