//! Tools and the tool choice of a Chat Completions request:
//! `{"type":"function","function":{"name":"search","parameters":{…}}}`.

use super::variant::ChatVariant;
use crate::json::{JsonKind, JsonRef, ObjectWriter};
use crate::provider::name_charset::plain;
use crate::provider::request::{TOOL_CHOICE, ToolChoice, ToolDefinition};
use crate::provider::spec::ToolCodec;

/// The type of a choice among some tools, and the member that holds it:
/// `{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"search"}}]}}`.
const ALLOWED_TOOLS: &str = "allowed_tools";

/// Returns the name of the function that an object of the type `function` names.
fn function_name(object: JsonRef<'_>) -> Option<String> {
    let name = object.get("function")?.text("name")?;
    object.has_text("type", "function").then(|| name.into_owned())
}

impl ToolCodec for ChatVariant {
    /// The member `type` may be absent.
    fn read_tools(&self, entry: JsonRef<'_>) -> Vec<ToolDefinition> {
        let is_function = entry.text("type").is_none_or(|kind| kind == "function");
        let function = entry.get("function").filter(|_| is_function);
        function.and_then(|function| ToolDefinition::from_object(function, "parameters")).into_iter().collect()
    }

    fn tool_names(&self, entry: JsonRef<'_>) -> Vec<String> {
        vec![entry.get("function").unwrap_or(entry).string("name")]
    }

    fn write_tool(&self, out: &mut ObjectWriter<'_>, tool: &ToolDefinition) {
        out.text("type", "function").object("function", |function| {
            function.text("name", &tool.name);
            if let Some(description) = &tool.description {
                function.text("description", description);
            }
            function.json("parameters", tool.schema().view());
            if tool.strict {
                function.bool("strict", true);
            }
        });
    }

    /// Mistral's word for `required` is `any`.
    fn read_tool_choice<'a>(&self, choice: JsonRef<'a>) -> Option<ToolChoice<'a>> {
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

    fn is_native_tool_choice(&self, choice: JsonRef<'_>) -> bool {
        match choice.kind() {
            JsonKind::String => !choice.is_text("any") || self.any_tool_choice == "any",
            _ => {
                let kinds = ["function", "custom", "allowed_tools"];
                let is_typed = choice.get("type").is_some();
                // Without a `type`, a choice among tools is that of Gemini's interactions.
                let has = |kind: &&str| choice.get(kind).is_some() && (is_typed || *kind != "allowed_tools");
                kinds.iter().take(if self.content_chunks { 1 } else { 3 }).any(has)
            }
        }
    }

    fn write_tool_choice(&self, object: &mut ObjectWriter<'_>, choice: &ToolChoice<'_>) -> bool {
        let write_function = |out: &mut ObjectWriter<'_>, name: &str| {
            out.text("type", "function").object("function", |function| _ = function.text("name", name));
        };
        match choice {
            ToolChoice::Auto => object.text(TOOL_CHOICE, "auto"),
            ToolChoice::None => object.text(TOOL_CHOICE, "none"),
            ToolChoice::Any => object.text(TOOL_CHOICE, self.any_tool_choice),
            ToolChoice::Named(name) => object.object(TOOL_CHOICE, |out| write_function(out, name)),
            ToolChoice::Among { .. } if !self.has_allowed_tools => return false,
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
}
