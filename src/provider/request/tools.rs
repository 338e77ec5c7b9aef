//! Tool definitions: the neutral form, and the list of a request.

use crate::json::{ArrayWriter, Json, JsonKind, JsonRef, ObjectWriter};
use crate::provider::name_charset::plain;
use std::borrow::Cow;

/// The definition of a tool for the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolDefinition {
    /// `[A-Za-z0-9_-]{1,64}` for every provider.
    pub name: String,
    /// The description that the model reads.
    pub description: Option<String>,
    /// JSON Schema of its arguments.
    pub parameters: Option<Json>,
    /// True to make arguments match the schema exactly, if the provider supports it.
    pub strict: bool,
}

impl ToolDefinition {
    /// Reads an entry of `tools` of any dialect, which may hold several functions. Other tools add nothing.
    pub(crate) fn read(tool: JsonRef<'_>, tools: &mut Vec<Self>) {
        if let Some(list) = declared(tool, "functionDeclarations") {
            return list.items().for_each(|tool| Self::read(tool, tools));
        }
        let own = tool.get("function").unwrap_or(tool);
        let is_function = tool.text("type").is_none_or(|kind| matches!(&*kind, "function" | "custom"));
        let Some(name) = own.text("name").filter(|name| is_function && !name.is_empty()) else { return };
        let schema = ["parameters", "input_schema", "parametersJsonSchema", "parameters_json_schema"]
            .iter()
            .find_map(|key| own.get(key));
        let parameters = schema.filter(|schema| schema.is_object()).map(|schema| {
            // Gemini accepts the names of types in capitals, JSON Schema does not.
            let mut out = String::new();
            write_schema(&mut out, schema, 64);
            Json::trusted(out)
        });
        tools.push(Self {
            name: plain(&name, 64),
            description: own.text("description").map(Cow::into_owned),
            parameters,
            strict: own.get("strict").and_then(JsonRef::as_bool) == Some(true),
        });
    }

    /// Returns the schema of the arguments; without one, that of an empty object.
    pub(crate) fn schema(&self) -> Json {
        self.parameters.clone().unwrap_or_else(|| Json::trusted(r#"{"type":"object","properties":{}}"#.into()))
    }
}

/// Copies a schema, with the names of its types in lower case down to `levels` levels.
fn write_schema(out: &mut String, schema: JsonRef<'_>, levels: u32) {
    match schema.kind() {
        JsonKind::Object if levels > 0 => {
            let mut object = ObjectWriter::new(out);
            for (key, value) in schema.entries() {
                let slot = object.key_token(key.as_raw());
                match value.as_raw() {
                    "\"OBJECT\"" | "\"ARRAY\"" | "\"STRING\"" | "\"NUMBER\"" | "\"INTEGER\"" | "\"BOOLEAN\""
                    | "\"NULL\""
                        if key.is_text("type") =>
                    {
                        slot.push_str(&value.as_raw().to_ascii_lowercase());
                    }
                    _ => write_schema(slot, value, levels - 1),
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

/// Returns the definitions in an entry of `tools`, in the member of that name or of its name in snake case.
pub(super) fn declared<'a>(tool: JsonRef<'a>, wrap: &str) -> Option<JsonRef<'a>> {
    tool.get(wrap).or_else(|| tool.get("function_declarations"))
}
