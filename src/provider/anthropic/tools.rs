//! Tools and the tool choice of an Anthropic request: `{"name":"search","description":"…","input_schema":{…}}` and
//! `{"type":"tool","name":"search"}`.

use super::Anthropic;
use crate::json::{Json, JsonRef, ObjectWriter};
use crate::provider::request::{ToolChoice, ToolDefinition};
use crate::provider::spec::ToolCodec;

/// True in a tool choice allows one call an answer.
const NO_PARALLEL: &str = "disable_parallel_tool_use";

impl ToolCodec for Anthropic {
    /// The tools that Anthropic runs have a type with a version.
    fn read_tools(&self, entry: JsonRef<'_>) -> Vec<ToolDefinition> {
        let is_custom = entry.text("type").is_none_or(|kind| kind == "custom");
        ToolDefinition::from_object(entry, "input_schema").filter(|_| is_custom).into_iter().collect()
    }

    fn write_tool(&self, out: &mut ObjectWriter<'_>, tool: &ToolDefinition) {
        out.text("name", &tool.name);
        if let Some(description) = &tool.description {
            out.text("description", description);
        }
        let schema = tool.schema();
        // Anthropic rejects a schema without `type`.
        if schema.view().get("type").is_some() {
            out.json("input_schema", schema.view());
            return;
        }
        out.object("input_schema", |inner| {
            inner.text("type", "object");
            inner.copy_all(schema.view(), "");
        });
    }

    fn read_tool_choice<'a>(&self, choice: JsonRef<'a>) -> Option<ToolChoice<'a>> {
        match &*choice.text("type")? {
            "auto" => Some(ToolChoice::Auto),
            "none" => Some(ToolChoice::None),
            "any" => Some(ToolChoice::Any),
            "tool" => Some(ToolChoice::Named(choice.text("name")?)),
            _ => None,
        }
    }

    fn is_native_tool_choice(&self, choice: JsonRef<'_>) -> bool {
        choice.text("type").is_some_and(|kind| matches!(&*kind, "auto" | "any" | "none" | "tool"))
    }

    fn forbids_parallel_calls(&self, choice: JsonRef<'_>) -> bool {
        choice.get(NO_PARALLEL).and_then(JsonRef::as_bool) == Some(true)
    }

    /// The SDK's types have the member for every choice but "none", which allows no call at all.
    fn serial_tool_choice(&self, choice: &ToolChoice<'_>) -> Option<Json> {
        if *choice == ToolChoice::None {
            return None;
        }
        let kind = choice_type(choice)?;
        Some(ObjectWriter::build(|out| {
            write_choice(out, kind, choice);
            out.bool(NO_PARALLEL, true);
        }))
    }

    fn write_tool_choice(&self, object: &mut ObjectWriter<'_>, choice: &ToolChoice<'_>) -> bool {
        let Some(kind) = choice_type(choice) else { return false };
        object.object("tool_choice", |out| write_choice(out, kind, choice));
        true
    }
}

/// Returns the `type` of a tool choice; `None` for one that Anthropic does not have.
fn choice_type(choice: &ToolChoice<'_>) -> Option<&'static str> {
    Some(match choice {
        ToolChoice::Auto => "auto",
        ToolChoice::None => "none",
        ToolChoice::Any => "any",
        ToolChoice::Named(_) => "tool",
        ToolChoice::Among { .. } => return None,
    })
}

fn write_choice(out: &mut ObjectWriter<'_>, kind: &str, choice: &ToolChoice<'_>) {
    out.text("type", kind);
    if let ToolChoice::Named(name) = choice {
        out.text("name", name);
    }
}
