//! Values across the boundary. Structured ones cross as JSON text, bodies as bytes; nothing else does.

use super::error::error_from_thrown;
use super::foreign;
use crate::error::{Code, Error, Result};
use crate::json::{ArrayWriter, Json, JsonRef, ObjectWriter};
use js_sys::Reflect;
use wasm_bindgen::prelude::*;

/// A JSON value as a JavaScript one.
pub fn to_js(json: JsonRef<'_>) -> JsValue {
    parsed(json.as_raw())
}

/// An object as a JavaScript one.
pub fn object_to_js(fill: &dyn Fn(&mut ObjectWriter<'_>)) -> JsValue {
    to_js(ObjectWriter::build(fill).view())
}

/// A list as a JavaScript one.
pub fn list_to_js(fill: &dyn Fn(&mut ArrayWriter<'_>)) -> JsValue {
    let mut text = String::new();
    let mut list = ArrayWriter::new(&mut text);
    fill(&mut list);
    list.end();
    parsed(&text)
}

/// A text that is JSON.
pub fn parsed(text: &str) -> JsValue {
    js_sys::JSON::parse(text).unwrap_or(JsValue::NULL)
}

/// Sets a member of an object that we made: it takes any.
pub fn set(object: &JsValue, key: &str, value: &JsValue) {
    let _ = Reflect::set(object, &JsValue::from_str(key), value);
}

/// Any JavaScript value as JSON; `undefined` and functions are `null`.
///
/// # Errors
/// `invalid_input` for what JSON cannot say: a cycle, a BigInt. `too_large`.
pub fn to_json(value: &JsValue) -> Result<Json> {
    let text = js_sys::JSON::stringify(value)
        .map_err(|error| error_from_thrown(Code::InvalidInput, "a value cannot be written as JSON", &error))?;
    // `stringify` gives undefined for what JSON leaves out.
    let text = foreign::string("a value, written as JSON,", &text)?.unwrap_or_else(|| "null".into());
    foreign::check_memory("a value, written as JSON,", text.as_bytes())?;
    Json::parse(&text).map_err(|error| Error::invalid(format!("a value is not JSON at byte {}", error.at)))
}

/// The text of a body given as an object, a string or bytes. A string or bytes are taken as they are, so that no digit is lost.
///
/// # Errors
/// `invalid_input` when it is no JSON, `too_large`.
pub fn wire_text(value: &JsValue) -> Result<Json> {
    let text = if let Some(text) = foreign::string("the body", value)? {
        text
    } else if let Some(bytes) = foreign::bytes("the body", value)? {
        String::from_utf8(bytes).map_err(|error| {
            Error::invalid(format!("the body is not UTF-8 (at byte {})", error.utf8_error().valid_up_to()))
        })?
    } else if value.is_object() {
        return to_json(value);
    } else {
        return Err(Error::invalid("a body is an object, JSON text, or bytes of it"));
    };
    foreign::check_memory("the body", text.as_bytes())?;
    Json::parse(&text).map_err(|error| Error::invalid(format!("the body is not valid JSON (at byte {})", error.at)))
}

/// A member; `undefined` where there is none.
pub fn member(object: &JsValue, key: &str) -> JsValue {
    if !object.is_object() {
        return JsValue::UNDEFINED;
    }
    Reflect::get(object, &JsValue::from_str(key)).unwrap_or(JsValue::UNDEFINED)
}

/// A member that is there: neither `undefined` nor `null`.
pub fn given(object: &JsValue, key: &str) -> Option<JsValue> {
    Some(member(object, key)).filter(|value| !value.is_undefined() && !value.is_null())
}

/// As [`given`], for a reader that can fail.
///
/// # Errors
/// `invalid_input` when the member cannot be read.
fn optional(object: &JsValue, key: &str) -> Result<Option<JsValue>> {
    let value = foreign::member_of(object, key)?;
    Ok(Some(value).filter(|value| !value.is_undefined() && !value.is_null()))
}

/// A text.
///
/// # Errors
/// `invalid_input` when it is something else.
pub fn text(object: &JsValue, key: &str) -> Result<Option<String>> {
    let Some(value) = optional(object, key)? else { return Ok(None) };
    let text = foreign::string(key, &value)?;
    if text.is_none() {
        return Err(wrong(key, "a string"));
    }
    Ok(text)
}

fn wrong(key: &str, what: &str) -> Error {
    Error::invalid(format!("`{key}` is {what}"))
}

/// A value that JSON can say.
///
/// # Errors
/// As [`to_json`].
pub fn json_at(object: &JsValue, key: &str) -> Result<Option<Json>> {
    match optional(object, key)? {
        Some(value) => to_json(&value).map(Some),
        None => Ok(None),
    }
}

/// A number.
///
/// # Errors
/// `invalid_input` when it is something else.
pub fn number(object: &JsValue, key: &str) -> Result<Option<f64>> {
    let Some(value) = optional(object, key)? else { return Ok(None) };
    let number = value.as_f64();
    if number.is_none() {
        return Err(wrong(key, "a number"));
    }
    Ok(number)
}

/// A whole number that is not negative.
///
/// # Errors
/// `invalid_input` when it is something else.
pub fn whole(object: &JsValue, key: &str) -> Result<Option<u64>> {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    match number(object, key)? {
        None => Ok(None),
        Some(number) if number >= 0.0 && number.fract() == 0.0 && number < 9_007_199_254_740_992.0 => {
            Ok(Some(number as u64))
        }
        Some(_) => Err(wrong(key, "a whole number, not negative")),
    }
}

/// A flag; false where it is not given.
pub fn flag(object: &JsValue, key: &str) -> bool {
    member(object, key).is_truthy()
}

/// A function.
///
/// # Errors
/// `invalid_input` when it is something else.
pub fn function(object: &JsValue, key: &str) -> Result<Option<js_sys::Function>> {
    let Some(value) = optional(object, key)? else { return Ok(None) };
    if !value.is_function() {
        return Err(wrong(key, "a function"));
    }
    Ok(Some(value.unchecked_into()))
}

/// A page of items.
pub fn page(items: &str, cursor: Option<&str>) -> JsValue {
    object_to_js(&|out| {
        out.raw("items", items).text_or_null("cursor", cursor);
    })
}
