//! Values across the boundary. Structured ones cross as JSON text, bodies as bytes; nothing else does.

use super::error::thrown;
use crate::error::{Code, Error, Result};
use crate::json::{ArrayWriter, Json, JsonRef, ObjectWriter};
use js_sys::{Array, Reflect, Uint8Array};
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
/// `invalid_input` for what JSON cannot say: a cycle, a BigInt.
pub fn to_json(value: &JsValue) -> Result<Json> {
    let text = js_sys::JSON::stringify(value)
        .map_err(|error| thrown(Code::InvalidInput, "a value cannot be written as JSON", &error))?;
    // `stringify` gives undefined for what JSON leaves out.
    let text = text.as_string().unwrap_or_else(|| "null".into());
    Json::parse(&text).map_err(|error| Error::invalid(format!("a value is not JSON at byte {}", error.at)))
}

/// The text of a body given as an object, a string or bytes. A string or bytes are taken as they are, so that no digit is lost.
///
/// # Errors
/// `invalid_input` when it is no JSON.
pub fn wire_text(value: &JsValue) -> Result<Json> {
    let bad = |at: usize| Error::invalid(format!("the body is not valid JSON (at byte {at})"));
    if let Some(text) = value.as_string() {
        return Json::parse(&text).map_err(|error| bad(error.at));
    }
    if let Some(bytes) = value.dyn_ref::<Uint8Array>() {
        let text = String::from_utf8(bytes.to_vec()).map_err(|error| {
            Error::invalid(format!("the body is not UTF-8 (at byte {})", error.utf8_error().valid_up_to()))
        })?;
        return Json::parse(&text).map_err(|error| bad(error.at));
    }
    if value.is_object() {
        to_json(value)
    } else {
        Err(Error::invalid("a body is an object, JSON text, or bytes of it"))
    }
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

/// A text.
///
/// # Errors
/// `invalid_input` when it is something else.
pub fn text(object: &JsValue, key: &str) -> Result<Option<String>> {
    given(object, key)
        .map(|value| value.as_string().ok_or_else(|| Error::invalid(format!("`{key}` is a string"))))
        .transpose()
}

/// A number.
///
/// # Errors
/// `invalid_input` when it is something else.
pub fn number(object: &JsValue, key: &str) -> Result<Option<f64>> {
    given(object, key)
        .map(|value| value.as_f64().ok_or_else(|| Error::invalid(format!("`{key}` is a number"))))
        .transpose()
}

/// A whole number that is not negative.
///
/// # Errors
/// `invalid_input` when it is something else.
pub fn whole(object: &JsValue, key: &str) -> Result<Option<u64>> {
    number(object, key)?
        .map(|number| {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            if number >= 0.0 && number.fract() == 0.0 && number < 9_007_199_254_740_992.0 {
                Ok(number as u64)
            } else {
                Err(Error::invalid(format!("`{key}` is a whole number, not negative")))
            }
        })
        .transpose()
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
    given(object, key)
        .map(|value| value.dyn_into().map_err(|_| Error::invalid(format!("`{key}` is a function"))))
        .transpose()
}

/// The own members of an object, in order.
pub fn members(object: &JsValue) -> Vec<(String, JsValue)> {
    let Some(object) = object.dyn_ref::<js_sys::Object>() else { return Vec::new() };
    js_sys::Object::entries(object)
        .iter()
        .filter_map(|entry| {
            let entry: Array = entry.dyn_into().ok()?;
            Some((entry.get(0).as_string()?, entry.get(1)))
        })
        .collect()
}

/// A page of items.
pub fn page(items: &str, cursor: Option<&str>) -> JsValue {
    object_to_js(&|out| {
        out.raw("items", items).text_or_null("cursor", cursor);
    })
}
