//! Tools and the tool choice of a Gemini request:
//! `"tools":[{"functionDeclarations":[{"name":"search","parameters":{…}}]}]` and
//! `"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["search"]}}`.

use super::Gemini;
use super::encode::function_name;
use crate::json::{ArrayWriter, Json, JsonKind, JsonRef, ObjectWriter};
use crate::provider::request::{ToolChoice, ToolDefinition};
use crate::provider::spec::ToolCodec;
use std::borrow::Cow;

/// The member of an entry of `tools` that holds definitions.
const DECLARATIONS: &str = "functionDeclarations";

/// The members of a definition that may hold the schema of its arguments.
const SCHEMAS: [&str; 3] = ["parameters", "parametersJsonSchema", "parameters_json_schema"];

/// The names of types in a schema of OpenAPI's form. JSON Schema has them in lower case.
const TYPES: [&str; 7] = ["OBJECT", "ARRAY", "STRING", "NUMBER", "INTEGER", "BOOLEAN", "NULL"];

/// The depth down to which the types of a schema are converted.
const MAX_SCHEMA_DEPTH: u32 = 64;

/// Returns the member under the first of two names that the object has: the camel case of the reference, or snake case.
fn either<'a>(object: JsonRef<'a>, names: [&str; 2]) -> Option<JsonRef<'a>> {
    names.into_iter().find_map(|name| object.get(name))
}

/// Returns the definitions in an entry of `tools`; `None` for a tool that Google runs.
fn declarations(entry: JsonRef<'_>) -> Option<JsonRef<'_>> {
    either(entry, [DECLARATIONS, "function_declarations"])
}

impl ToolCodec for Gemini {
    fn read_tools(&self, entry: JsonRef<'_>) -> Vec<ToolDefinition> {
        declarations(entry).unwrap_or_default().items().filter_map(read_tool).collect()
    }

    fn tool_names(&self, entry: JsonRef<'_>) -> Vec<String> {
        declarations(entry).unwrap_or_default().items().map(|tool| tool.string("name")).collect()
    }

    fn has_callable_tool(&self, entry: JsonRef<'_>) -> bool {
        declarations(entry).is_some()
    }

    /// Writes the schema as `parametersJsonSchema`, which accepts any JSON Schema; `parameters` accepts a subset of
    /// OpenAPI's.
    fn write_tool(&self, out: &mut ObjectWriter<'_>, tool: &ToolDefinition) {
        out.text("name", &self.tool_name(&tool.name));
        if let Some(description) = &tool.description {
            out.text("description", description);
        }
        if let Some(schema) = &tool.parameters {
            out.json("parametersJsonSchema", schema.view());
        }
    }

    fn tool_entries(&self, definitions: String) -> String {
        format!("{{\"{DECLARATIONS}\":[{definitions}]}}")
    }

    fn tool_name<'n>(&self, name: &'n str) -> Cow<'n, str> {
        function_name(name)
    }

    fn name_before_change<'n>(&self, name: &'n str) -> Option<&'n str> {
        name.strip_prefix('_')
    }

    /// Reads a `toolConfig`, or its mode alone.
    fn read_tool_choice<'a>(&self, choice: JsonRef<'a>) -> Option<ToolChoice<'a>> {
        let config = either(choice, ["functionCallingConfig", "function_calling_config"]);
        let mode = choice.as_text().or_else(|| config.and_then(|config| config.text("mode")))?;
        match &*mode.to_ascii_uppercase() {
            "AUTO" => Some(ToolChoice::Auto),
            "NONE" => Some(ToolChoice::None),
            "ANY" => {
                let names =
                    config.and_then(|config| either(config, ["allowedFunctionNames", "allowed_function_names"]));
                let mut names = names.unwrap_or_default().items();
                let only = names.next().filter(|_| names.next().is_none()).and_then(JsonRef::as_text);
                Some(only.map_or(ToolChoice::Any, ToolChoice::Named))
            }
            _ => None,
        }
    }

    fn is_native_tool_choice(&self, _choice: JsonRef<'_>) -> bool {
        false
    }

    fn write_tool_choice(&self, object: &mut ObjectWriter<'_>, choice: &ToolChoice<'_>) -> bool {
        let mode = match choice {
            ToolChoice::Auto => "AUTO",
            ToolChoice::None => "NONE",
            ToolChoice::Any | ToolChoice::Named(_) => "ANY",
            ToolChoice::Among { .. } => return false,
        };
        object.object("toolConfig", |config| {
            config.object("functionCallingConfig", |config| {
                config.text("mode", mode);
                if let ToolChoice::Named(name) = choice {
                    config.array("allowedFunctionNames", |names| names.text(&self.tool_name(name)));
                }
            });
        });
        true
    }
}

fn read_tool(declaration: JsonRef<'_>) -> Option<ToolDefinition> {
    let schema = SCHEMAS.into_iter().find(|name| declaration.get(name).is_some()).unwrap_or_default();
    let mut tool = ToolDefinition::from_object(declaration, schema)?;
    tool.parameters = tool.parameters.map(|schema| {
        let mut out = String::new();
        write_schema(&mut out, schema.view(), MAX_SCHEMA_DEPTH);
        Json::trusted(out)
    });
    Some(tool)
}

/// Copies a schema, with the names of its types in lower case down to `levels` levels.
fn write_schema(out: &mut String, schema: JsonRef<'_>, levels: u32) {
    match schema.kind() {
        JsonKind::Object if levels > 0 => {
            let mut object = ObjectWriter::new(out);
            for (key, value) in schema.entries() {
                let slot = object.key_token(key.as_raw());
                if key.is_text("type") && TYPES.iter().any(|name| value.is_text(name)) {
                    slot.push_str(&value.as_raw().to_ascii_lowercase());
                } else {
                    write_schema(slot, value, levels - 1);
                }
            }
            object.end();
        }
        JsonKind::Array if levels > 0 => {
            let mut array = ArrayWriter::new(out);
            schema.items().for_each(|item| write_schema(array.item(), item, levels - 1));
            array.end();
        }
        _ => out.push_str(schema.as_raw()),
    }
}
