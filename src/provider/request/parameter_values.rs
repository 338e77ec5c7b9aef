//! Values of parameters that dialects write in different forms.

use crate::json::{JsonRef, ObjectWriter};

/// Returns the value with a schema as Chat Completions has it, in an object of its own:
/// `{"type":"json_schema","json_schema":{"name":"n","schema":{}}}`.
pub(crate) fn nested_schema(value: JsonRef<'_>) -> String {
    if !value.has_text("type", "json_schema") || schema_of(value).is_some() {
        return value.as_raw().to_owned();
    }
    ObjectWriter::build(|object| {
        object.text("type", "json_schema").object("json_schema", |inner| inner.copy_all(value, "type"));
    })
    .as_str()
    .to_owned()
}

/// Returns the value with a schema as Responses has it, its members beside the type:
/// `{"type":"json_schema","name":"n","schema":{}}`.
pub(crate) fn flat_schema(value: JsonRef<'_>) -> String {
    match schema_of(value).filter(|_| value.has_text("type", "json_schema")) {
        Some(schema) => {
            ObjectWriter::build(|object| object.text("type", "json_schema").copy_all(schema, "")).as_str().to_owned()
        }
        None => value.as_raw().to_owned(),
    }
}

/// Returns stop sequences as a list: `["x"]` for `"x"`.
pub(crate) fn stop_list(value: JsonRef<'_>) -> String {
    if value.as_json_str().is_some() { format!("[{}]", value.as_raw()) } else { nested_schema(value) }
}

fn schema_of(value: JsonRef<'_>) -> Option<JsonRef<'_>> {
    value.get("json_schema").filter(|schema| schema.is_object())
}
