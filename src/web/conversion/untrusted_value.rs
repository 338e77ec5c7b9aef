//! Defensive reads of JavaScript values that an application passes or throws (R62).
//!
//! A getter may throw, a proxy may be revoked, a buffer may be detached, an error's `message` may be no string. An
//! exception that leaves an import without `catch` unwinds past Rust frames and ends the instance, so all reads here
//! use imports with `catch`.

use crate::error::{Error, ErrorCode, Result};
use crate::json::fits_memory;
use js_sys::{Array, JsString, Object, Reflect, Uint8Array};
use wasm_bindgen::prelude::*;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = Array, js_name = isArray, catch)]
    fn is_array_or_throws(value: &JsValue) -> std::result::Result<bool, JsValue>;

    #[wasm_bindgen(js_namespace = Object, js_name = entries, catch)]
    fn entries_or_throws(object: &JsValue) -> std::result::Result<Array, JsValue>;

    #[wasm_bindgen(js_namespace = Object, js_name = keys, catch)]
    fn keys_or_throws(object: &JsValue) -> std::result::Result<Array, JsValue>;

    type TextEncoder;

    #[wasm_bindgen(constructor, catch)]
    fn new() -> std::result::Result<TextEncoder, JsValue>;

    #[wasm_bindgen(method, catch)]
    fn encode(this: &TextEncoder, text: &JsString) -> std::result::Result<Uint8Array, JsValue>;

    #[wasm_bindgen(js_namespace = Reflect, js_name = get, catch)]
    fn get_with_receiver(target: &JsValue, key: &JsValue, receiver: &JsValue) -> std::result::Result<JsValue, JsValue>;
}

/// Maximum size in bytes of a value that is copied into the wasm: reading it takes several times its size, and wasm has
/// 4 GB.
pub const MAX_VALUE_BYTES: u32 = 256 * 1024 * 1024;

/// Length of a text, in UTF-16 units, above which the platform's encoder is faster than the loop of wasm-bindgen.
const LONG_TEXT: u32 = 4096;

/// Checks the size of a value before it is copied into the wasm. A character counts as a byte: most bodies are ASCII.
///
/// # Errors
/// `too_large`.
pub fn check_size(what: &str, size: u32) -> Result<()> {
    if size <= MAX_VALUE_BYTES {
        return Ok(());
    }
    let message = format!("{what} has {size} bytes, and at most {MAX_VALUE_BYTES} can be read; give less at once");
    Err(Error::new(ErrorCode::TooLarge, message).with(|details| {
        details.number("maxBytes", u64::from(MAX_VALUE_BYTES));
    }))
}

/// Checks that there is enough memory to parse a JSON text.
///
/// # Errors
/// `too_large`.
pub fn check_memory(what: &str, text: &[u8]) -> Result<()> {
    if fits_memory(text) {
        return Ok(());
    }
    Err(Error::new(ErrorCode::TooLarge, format!("{what} has more items than there is memory for; give less at once")))
}

/// Returns the length of a string or of bytes, and none for any other value.
pub fn size(value: &JsValue) -> Option<u32> {
    match value.dyn_ref::<JsString>() {
        Some(text) => Some(text.length()),
        None => is_bytes(value).then(|| value.unchecked_ref::<Uint8Array>().length()),
    }
}

/// Returns the text of a string, and none for any other value.
///
/// # Errors
/// `too_large`.
pub fn string(what: &str, value: &JsValue) -> Result<Option<String>> {
    let Some(text) = value.dyn_ref::<JsString>() else { return Ok(None) };
    check_size(what, text.length())?;
    let encoded = (text.length() > LONG_TEXT).then(|| encoded(text)).flatten();
    Ok(encoded.or_else(|| value.as_string()))
}

/// Returns a text by way of the platform's encoder, if it has one.
fn encoded(text: &JsString) -> Option<String> {
    let bytes = TextEncoder::new().ok()?.encode(text).ok()?;
    String::from_utf8(bytes.to_vec()).ok()
}

/// Returns true if the value is a real `Uint8Array`. Reads its tag with the getter that all typed arrays share, since
/// `instanceof` only looks at the prototype.
pub fn is_bytes(value: &JsValue) -> bool {
    let read = || {
        let typed_array = Reflect::get_prototype_of(&Object::get_prototype_of(&Uint8Array::new_with_length(0)).into())?;
        get_with_receiver(&typed_array, &js_sys::Symbol::to_string_tag(), value)
    };
    value.is_object() && read().is_ok_and(|tag: JsValue| tag == "Uint8Array")
}

/// Returns a copy of the bytes of a `Uint8Array`, and none for any other value.
///
/// # Errors
/// `too_large`.
pub fn bytes(what: &str, value: &JsValue) -> Result<Option<Vec<u8>>> {
    if !is_bytes(value) {
        return Ok(None);
    }
    let bytes: &Uint8Array = value.unchecked_ref();
    check_size(what, bytes.length())?;
    // Reading the bytes of a detached buffer throws.
    Ok(Some(if bytes.length() == 0 { Vec::new() } else { bytes.to_vec() }))
}

/// Returns the items of an array, and none for any other value.
///
/// # Errors
/// `invalid_input` when it cannot be read or has more items.
pub fn items(what: &str, value: &JsValue, most: u32) -> Result<Option<Vec<JsValue>>> {
    let unreadable = |error: JsValue| read_error(what, &error);
    if !is_array_or_throws(value).map_err(unreadable)? {
        return Ok(None);
    }
    let length = Reflect::get(value, &JsValue::from_str("length")).map_err(unreadable)?.as_f64().unwrap_or(0.0);
    if length > f64::from(most) {
        // Without the number: formatting a float would add 19 KB to the wasm, here alone.
        return Err(Error::invalid(format!("{what} has too many items, at most {most} can be read")));
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let length = length as u32;
    (0..length).map(|at| Reflect::get_u32(value, at).map_err(unreadable)).collect::<Result<_>>().map(Some)
}

/// Returns the last items of an array, at most `most`, and none for any other value. The items before them are not
/// read.
///
/// # Errors
/// `invalid_input` when it cannot be read.
#[cfg(feature = "formats")]
pub fn last_items(what: &str, value: &JsValue, most: u32) -> Result<Option<Vec<JsValue>>> {
    let unreadable = |error: JsValue| read_error(what, &error);
    if !is_array_or_throws(value).map_err(unreadable)? {
        return Ok(None);
    }
    let length = Reflect::get(value, &JsValue::from_str("length")).map_err(unreadable)?.as_f64().unwrap_or(0.0);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let length = length as u32;
    let last = length.saturating_sub(most)..length;
    last.map(|at| Reflect::get_u32(value, at).map_err(unreadable)).collect::<Result<_>>().map(Some)
}

/// Returns the own enumerable members of an object, in order, and none for any other value.
///
/// # Errors
/// `invalid_input` when it cannot be read.
pub fn members(what: &str, object: &JsValue) -> Result<Vec<(String, JsValue)>> {
    if !object.is_object() {
        return Ok(Vec::new());
    }
    let entries = entries_or_throws(object).map_err(|error| read_error(what, &error))?;
    let mut members = Vec::new();
    for entry in entries.iter() {
        let entry: Array = entry.unchecked_into();
        if let Some(key) = entry.get(0).as_string() {
            members.push((key, entry.get(1)));
        }
    }
    Ok(members)
}

/// The value of a member, inherited or not; `undefined` if there is none or `object` is no object.
///
/// # Errors
/// `invalid_input` when it cannot be read.
pub fn get(object: &JsValue, key: &str) -> Result<JsValue> {
    if !object.is_object() && !object.is_function() {
        return Ok(JsValue::UNDEFINED);
    }
    Reflect::get(object, &JsValue::from_str(key))
        .map_err(|error| error_from_thrown(ErrorCode::InvalidInput, &format!("`{key}` cannot be read"), &error))
}

/// The value of a member; `undefined` if there is none or it cannot be read.
pub fn member(object: &JsValue, key: &str) -> JsValue {
    if !object.is_object() {
        return JsValue::UNDEFINED;
    }
    Reflect::get(object, &JsValue::from_str(key)).unwrap_or(JsValue::UNDEFINED)
}

/// Returns true if the value may hold options: an object that is no array and no bytes.
///
/// # Errors
/// `invalid_input` when it cannot be read.
pub fn is_options_object(value: &JsValue) -> Result<bool> {
    let is_array = is_array_or_throws(value).map_err(|error| read_error("it", &error))?;
    Ok(value.is_object() && !is_array && !is_bytes(value))
}

/// Maximum length of the chain of prototypes that is searched for options.
const MAX_PROTOTYPES: usize = 16;

/// Returns the keys of all enumerable members of an object, inherited ones included. Returns none for an instance of a
/// class, which may have fields of its own.
///
/// # Errors
/// `invalid_input` when they cannot be read.
pub fn keys_of_options(object: &JsValue) -> Result<Vec<String>> {
    let mut keys = Vec::new();
    let mut level = object.clone();
    for _ in 0..MAX_PROTOTYPES {
        let prototype: JsValue = Reflect::get_prototype_of(&level).map_err(|error| read_error("it", &error))?.into();
        let is_root = prototype.is_null() && !keys.is_empty();
        if is_root || is_class_prototype(&level)? {
            return Ok(if prototype.is_null() { keys } else { Vec::new() });
        }
        let own = keys_or_throws(&level).map_err(|error| read_error("it", &error))?;
        keys.extend(own.iter().filter_map(|key| key.as_string()));
        if prototype.is_null() {
            break;
        }
        level = prototype;
    }
    Ok(keys)
}

/// Returns true for the prototype of a class and for `Object.prototype`: its member `constructor` is a function with
/// this prototype. An option may have that name, too.
fn is_class_prototype(value: &JsValue) -> Result<bool> {
    let object: &Object = value.unchecked_ref();
    let descriptor = Reflect::get_own_property_descriptor(object, &JsValue::from_str("constructor"));
    let constructor = member(&descriptor.map_err(|error| read_error("it", &error))?, "value");
    Ok(constructor.is_function() && get(&constructor, "prototype")? == *value)
}

fn read_error(what: &str, error: &JsValue) -> Error {
    error_from_thrown(ErrorCode::InvalidInput, &format!("{what} cannot be read"), error)
}

/// Makes the error of an operation in which JavaScript code threw `value`.
pub fn error_from_thrown(code: ErrorCode, what: &str, value: &JsValue) -> Error {
    Error::new(code, format!("{what}: {}", reason_of(value)))
}

/// Makes the error of a callback that threw `value`.
#[cfg(feature = "web")]
pub fn callback_failed(what: &str, value: &JsValue) -> Error {
    error_from_thrown(ErrorCode::CallbackFailed, what, value)
}

/// Returns the message of a thrown value.
pub fn reason_of(value: &JsValue) -> String {
    let text = value.as_string().or_else(|| member(value, "message").as_string());
    text.filter(|text| !text.is_empty()).unwrap_or_else(|| "no reason given".into())
}
