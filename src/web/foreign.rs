//! Defensive reads of JavaScript values that an application passes or throws (R62).
//!
//! A getter may throw, a proxy may be revoked, a buffer may be detached, an error's `message` may be no string. An exception that
//! leaves an import without `catch` unwinds past Rust frames and ends the instance, so all reads here use imports with `catch`.

use super::convert::member;
use super::error::error_from_thrown;
#[cfg(feature = "web")]
use super::promise::deferred;
use crate::error::{Code, Error, Result};
use crate::json::fits_memory;
use js_sys::{Array, JsString, Object, Reflect, Uint8Array};
use wasm_bindgen::prelude::*;
#[cfg(feature = "web")]
use wasm_bindgen_futures::JsFuture;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = Array, js_name = isArray, catch)]
    fn is_array_or_throws(value: &JsValue) -> std::result::Result<bool, JsValue>;

    #[wasm_bindgen(js_namespace = Object, js_name = entries, catch)]
    fn entries_or_throws(object: &JsValue) -> std::result::Result<Array, JsValue>;

    #[wasm_bindgen(js_namespace = Reflect, js_name = get, catch)]
    fn get_with_receiver(target: &JsValue, key: &JsValue, receiver: &JsValue) -> std::result::Result<JsValue, JsValue>;
}

/// The most bytes that one value may have when it crosses into the wasm: reading it takes several times its size, and wasm has 4 GB.
pub const MAX_VALUE_BYTES: u32 = 256 * 1024 * 1024;

/// Checks the size of a value before it is copied into the wasm. A character counts as a byte: most bodies are ASCII.
///
/// # Errors
/// `too_large`.
pub fn check_size(what: &str, size: u32) -> Result<()> {
    if size <= MAX_VALUE_BYTES {
        return Ok(());
    }
    let message = format!("{what} has {size} bytes, and at most {MAX_VALUE_BYTES} can be read; give less at once");
    Err(Error::new(Code::TooLarge, message).with(|details| {
        details.number("maxBytes", u64::from(MAX_VALUE_BYTES));
    }))
}

/// Checks that there is memory to work on a JSON text.
///
/// # Errors
/// `too_large`.
pub fn check_memory(what: &str, text: &[u8]) -> Result<()> {
    if fits_memory(text) {
        return Ok(());
    }
    Err(Error::new(Code::TooLarge, format!("{what} has more items than there is memory for; give less at once")))
}

/// The length of a string or of bytes; none of any other value.
pub fn size(value: &JsValue) -> Option<u32> {
    match value.dyn_ref::<JsString>() {
        Some(text) => Some(text.length()),
        None => is_bytes(value).then(|| value.unchecked_ref::<Uint8Array>().length()),
    }
}

/// The text of a string that is not too large; none of any other value.
///
/// # Errors
/// `too_large`.
pub fn string(what: &str, value: &JsValue) -> Result<Option<String>> {
    if let Some(text) = value.dyn_ref::<JsString>() {
        check_size(what, text.length())?;
    }
    Ok(value.as_string())
}

/// Whether a value is a `Uint8Array`, not one in name only: its tag is read by the getter that all typed arrays share.
pub fn is_bytes(value: &JsValue) -> bool {
    let read = || {
        let typed_array = Reflect::get_prototype_of(&Object::get_prototype_of(&Uint8Array::new_with_length(0)).into())?;
        get_with_receiver(&typed_array, &js_sys::Symbol::to_string_tag(), value)
    };
    value.is_object() && read().is_ok_and(|tag: JsValue| tag == "Uint8Array")
}

/// A copy of the bytes of a `Uint8Array`; none of any other value.
///
/// # Errors
/// `too_large`.
pub fn bytes(what: &str, value: &JsValue) -> Result<Option<Vec<u8>>> {
    if !is_bytes(value) {
        return Ok(None);
    }
    let bytes: &Uint8Array = value.unchecked_ref();
    check_size(what, bytes.length())?;
    // A detached one can be asked for its length and for nothing else.
    Ok(Some(if bytes.length() == 0 { Vec::new() } else { bytes.to_vec() }))
}

/// The items of an array of at most `most` items; none of any other value.
///
/// # Errors
/// `invalid_input` when it cannot be read or has more items.
pub fn items(what: &str, value: &JsValue, most: u32) -> Result<Option<Vec<JsValue>>> {
    let unreadable = |error: JsValue| error_from_thrown(Code::InvalidInput, &format!("{what} cannot be read"), &error);
    if !is_array_or_throws(value).map_err(unreadable)? {
        return Ok(None);
    }
    let length = Reflect::get(value, &JsValue::from_str("length")).map_err(unreadable)?.as_f64().unwrap_or(0.0);
    if length > f64::from(most) {
        return Err(Error::invalid(format!("{what} has {length} items, at most {most} can be read")));
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let length = length as u32;
    (0..length).map(|at| Reflect::get_u32(value, at).map_err(unreadable)).collect::<Result<_>>().map(Some)
}

/// The own members of an object, in order; none of what is no object.
///
/// # Errors
/// `invalid_input` when it cannot be read.
pub fn members(what: &str, object: &JsValue) -> Result<Vec<(String, JsValue)>> {
    if !object.is_object() {
        return Ok(Vec::new());
    }
    let entries = entries_or_throws(object)
        .map_err(|error| error_from_thrown(Code::InvalidInput, &format!("{what} cannot be read"), &error))?;
    let mut members = Vec::new();
    for entry in entries.iter() {
        let entry: Array = entry.unchecked_into();
        if let Some(key) = entry.get(0).as_string() {
            members.push((key, entry.get(1)));
        }
    }
    Ok(members)
}

/// Awaits a callback's return value. An internal promise adopts it, since a getter for `then` may throw.
#[cfg(feature = "web")]
pub async fn await_settled(given: JsValue) -> std::result::Result<JsValue, JsValue> {
    let (promise, resolve) = deferred();
    if let Some(resolve) = resolve {
        resolve.call1(&JsValue::NULL, &given)?;
    }
    JsFuture::from(promise).await
}

/// A member of an object; `undefined` where there is none, or no object.
///
/// # Errors
/// `invalid_input` when it cannot be read.
pub fn member_of(object: &JsValue, key: &str) -> Result<JsValue> {
    if !object.is_object() && !object.is_function() {
        return Ok(JsValue::UNDEFINED);
    }
    Reflect::get(object, &JsValue::from_str(key))
        .map_err(|error| error_from_thrown(Code::InvalidInput, &format!("`{key}` cannot be read"), &error))
}

/// The text of what was thrown.
pub fn reason_of(value: &JsValue) -> String {
    let text = value.as_string().or_else(|| member(value, "message").as_string());
    text.filter(|text| !text.is_empty()).unwrap_or_else(|| "no reason given".into())
}
