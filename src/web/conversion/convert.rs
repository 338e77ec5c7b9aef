//! Conversion between JavaScript values and JSON text. Bodies cross the boundary as bytes.

use super::untrusted_value::{self, error_from_thrown, get};
use crate::error::{Error, ErrorCode, Result};
use crate::json::{ArrayWriter, Json, JsonRef, ObjectWriter};
use crate::session::JsonPage;
use js_sys::Reflect;
use wasm_bindgen::prelude::*;

/// Converts a JSON value to a JavaScript value.
pub fn to_js(json: JsonRef<'_>) -> JsValue {
    parse_json(json.as_raw())
}

/// Writes a JSON object and converts it to a JavaScript value.
pub fn object_to_js(fill: &dyn Fn(&mut ObjectWriter<'_>)) -> JsValue {
    to_js(ObjectWriter::build(fill).view())
}

/// Writes a JSON array and converts it to a JavaScript value.
pub fn list_to_js(fill: &dyn Fn(&mut ArrayWriter<'_>)) -> JsValue {
    let mut text = String::new();
    let mut list = ArrayWriter::new(&mut text);
    fill(&mut list);
    list.end();
    parse_json(&text)
}

/// Parses a text that is valid JSON.
pub fn parse_json(text: &str) -> JsValue {
    js_sys::JSON::parse(text).unwrap_or(JsValue::NULL)
}

/// Sets a member of an object that was made here, which cannot fail.
pub fn set(object: &JsValue, key: &str, value: &JsValue) {
    let _ = Reflect::set(object, &JsValue::from_str(key), value);
}

/// Converts any JavaScript value to JSON; `undefined` and functions become `null`.
///
/// # Errors
/// `invalid_input` for values that JSON cannot represent: a cycle, a BigInt. `too_large`.
pub fn to_json(value: &JsValue) -> Result<Json> {
    let text = js_sys::JSON::stringify(value)
        .map_err(|error| error_from_thrown(ErrorCode::InvalidInput, "a value cannot be written as JSON", &error))?;
    // `stringify` returns undefined for functions and the like.
    let text = untrusted_value::string("a value, written as JSON,", &text)?.unwrap_or_else(|| "null".into());
    untrusted_value::check_memory("a value, written as JSON,", text.as_bytes())?;
    Json::parse(&text).map_err(|error| Error::invalid(format!("a value is not JSON at byte {}", error.at)))
}

/// Checks that the content of a tool's result is there: JSON has `{}` for a promise.
///
/// # Errors
/// `invalid_input` if it is a promise.
pub fn settled_content(answer: &JsValue) -> Result<()> {
    let content = if answer.is_object() { get(answer, "content")? } else { JsValue::UNDEFINED };
    if content.is_object() && get(&content, "then")?.is_function() {
        return Err(Error::invalid("`content` is a promise; await it first"));
    }
    Ok(())
}

/// Reads a body: an object, a string or bytes. Text is not parsed by JavaScript, so no digit is lost.
///
/// # Errors
/// `invalid_input` when it is not JSON, `too_large`.
pub fn body_json(value: &JsValue) -> Result<Json> {
    let text = if let Some(text) = untrusted_value::string("the body", value)? {
        text
    } else if let Some(bytes) = untrusted_value::bytes("the body", value)? {
        String::from_utf8(bytes).map_err(|error| {
            Error::invalid(format!("the body is not UTF-8 (at byte {})", error.utf8_error().valid_up_to()))
        })?
    } else if value.is_object() {
        return to_json(value);
    } else {
        return Err(Error::invalid("a body is an object, JSON text, or bytes of it"));
    };
    untrusted_value::check_memory("the body", text.as_bytes())?;
    Json::parse(&text).map_err(|error| Error::invalid(format!("the body is not valid JSON (at byte {})", error.at)))
}

/// Converts a page.
pub fn page(page: &JsonPage) -> JsValue {
    object_to_js(&|out| {
        out.raw("items", &page.items).text_or_null("cursor", page.cursor.as_deref());
    })
}
