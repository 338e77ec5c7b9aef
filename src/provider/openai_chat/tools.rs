//! Tools and the tool choice of a Chat Completions request: `{"type":"function","function":{"name":"search","parameters":{…}}}`.

use super::variant::ChatVariant;
use crate::json::{JsonRef, ObjectWriter};
use crate::provider::name_charset::plain;
use crate::provider::request::{TOOL_CHOICE, ToolChoice, ToolDefinition};

/// The type of a choice among some tools, and the member that holds it:
/// `{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"search"}}]}}`.
const ALLOWED_TOOLS: &str = "allowed_tools";

/// Returns the name of the function that an object of the type `function` names.
fn function_name(object: JsonRef<'_>) -> Option<String> {
    let name = object.get("function")?.text("name")?;
    object.has_text("type", "function").then(|| name.into_owned())
}

/// Returns the name in an entry of `tools`.
pub(super) fn tool_name(entry: JsonRef<'_>) -> String {
    entry.get("function").unwrap_or(entry).string("name")
}

/// Reads an entry of `tools`. The member `type` may be absent.
pub(super) fn read_tool(entry: JsonRef<'_>) -> Option<ToolDefinition> {
    let is_function = entry.text("type").is_none_or(|kind| kind == "function");
    ToolDefinition::from_object(entry.get("function").filter(|_| is_function)?, "parameters")
}

/// Reads a tool choice. Mistral's word for `required` is `any`.
pub(super) fn read_tool_choice(choice: JsonRef<'_>) -> Option<ToolChoice<'_>> {
    if choice.has_text("type", ALLOWED_TOOLS) {
        let allowed = choice.get(ALLOWED_TOOLS)?;
        let tools = allowed.get("tools").unwrap_or_default().items();
        let names: Vec<String> = tools.filter_map(function_name).map(|name| plain(&name, 64)).collect();
        return (!names.is_empty())
            .then(|| ToolChoice::Among { names, required: allowed.has_text("mode", "required") });
    }
    match &*choice.as_text().or_else(|| choice.text("type"))? {
        "auto" => Some(ToolChoice::Auto),
        "none" => Some(ToolChoice::None),
        "required" | "any" => Some(ToolChoice::Any),
        "function" => Some(ToolChoice::Named(choice.get("function")?.text("name")?)),
        _ => None,
    }
}

/// Writes the member `tool_choice`. Returns false if the variant cannot express the choice.
pub(super) fn write_tool_choice(variant: &ChatVariant, object: &mut ObjectWriter<'_>, choice: &ToolChoice<'_>) -> bool {
    let write_function = |out: &mut ObjectWriter<'_>, name: &str| {
        out.text("type", "function").object("function", |function| _ = function.text("name", name));
    };
    match choice {
        ToolChoice::Auto => object.text(TOOL_CHOICE, "auto"),
        ToolChoice::None => object.text(TOOL_CHOICE, "none"),
        ToolChoice::Any => object.text(TOOL_CHOICE, variant.any_tool_choice),
        ToolChoice::Named(name) => object.object(TOOL_CHOICE, |out| write_function(out, name)),
        ToolChoice::Among { .. } if !variant.has_allowed_tools => return false,
        ToolChoice::Among { names, required } => object.object(TOOL_CHOICE, |out| {
            out.text("type", ALLOWED_TOOLS).object(ALLOWED_TOOLS, |out| {
                out.text("mode", if *required { "required" } else { "auto" }).array("tools", |tools| {
                    for name in names {
                        let mut tool = ObjectWriter::new(tools.item());
                        write_function(&mut tool, name);
                        tool.end();
                    }
                });
            });
        }),
    };
    true
}
