//! The neutral form of tool definitions.

use crate::json::{Json, JsonRef};
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
    /// True if the conversation may go on before its result, in dialects that have such tools (R75).
    pub is_async: bool,
}

/// The member of a body that holds the tools, in every dialect.
pub(crate) const TOOLS: &str = "tools";

impl ToolDefinition {
    /// Creates the definition of a tool of which only the calls are known: any arguments.
    #[must_use]
    pub fn of_called(name: &str) -> Self {
        let parameters = Some(Json::trusted(r#"{"type":"object"}"#.to_owned()));
        Self { name: plain(name, 64), description: None, parameters, strict: false, is_async: false }
    }

    /// Reads an object with the members `name`, `description` and `strict`, whose member `schema` is the JSON Schema of
    /// the arguments. Returns `None` if it has no name.
    pub(crate) fn from_object(object: JsonRef<'_>, schema: &str) -> Option<Self> {
        let name = object.text("name").filter(|name| !name.is_empty())?;
        Some(Self {
            name: plain(&name, 64),
            description: object.text("description").map(Cow::into_owned),
            parameters: object.get(schema).filter(|schema| schema.is_object()).map(JsonRef::to_owned),
            strict: object.get("strict").and_then(JsonRef::as_bool) == Some(true),
            is_async: object.get("async").and_then(JsonRef::as_bool) == Some(true),
        })
    }

    /// Returns the schema of the arguments; without one, that of an empty object.
    pub(crate) fn schema(&self) -> Json {
        self.parameters.clone().unwrap_or_else(|| Json::trusted(r#"{"type":"object","properties":{}}"#.into()))
    }
}
