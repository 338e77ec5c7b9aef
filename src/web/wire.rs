//! `validate`, `repair` and `convert`.

use crate::error::{Error, Result};
use crate::finding::{Finding, Report};
use crate::json::JsonRef;
use crate::options::words;
use crate::provider::{Dangling, RepairOptions, leave_out_refused};
use crate::web::assembler::dialect;
use crate::web::conversion::convert::{list_to_js, set};
use crate::web::conversion::option_reader::{UnreadValue, read_optional};
use crate::web::conversion::untrusted_value::{self, last_items, string};
use js_sys::{Object, Uint8Array};
use serde::de::{Error as _, Unexpected};
use serde::{Deserialize, Deserializer};
use wasm_bindgen::prelude::*;

/// Converts findings to a JavaScript array.
pub fn report_to_js(report: &[Finding]) -> JsValue {
    if report.is_empty() {
        return js_sys::Array::new().into();
    }
    list_to_js(&|list| {
        for finding in report {
            list.object(|out| finding.write(out));
        }
    })
}

/// Returns the bytes of a body that is an object, a string or bytes. They may be invalid JSON.
fn body_bytes(body: &JsValue) -> Result<Vec<u8>> {
    let bytes = if let Some(text) = untrusted_value::string("the body", body)? {
        text.into_bytes()
    } else if let Some(bytes) = untrusted_value::bytes("the body", body)? {
        bytes
    } else {
        crate::web::conversion::convert::to_json(body)?.as_str().as_bytes().to_vec()
    };
    untrusted_value::check_memory("the body", &bytes)?;
    Ok(bytes)
}

/// Returns the findings about a body.
#[wasm_bindgen(skip_typescript)]
pub fn validate(body: &JsValue, name: &str) -> std::result::Result<JsValue, JsValue> {
    Ok(report_to_js(&crate::provider::validate(&body_bytes(body)?, dialect(name)?)))
}

/// Repairs a body.
#[wasm_bindgen(skip_typescript)]
pub fn repair(body: &JsValue, name: &str, options: &JsValue) -> std::result::Result<JsValue, JsValue> {
    let (bytes, dialect) = (body_bytes(body)?, dialect(name)?);
    let (options, refused) = repair_options(options)?;
    let (repaired, report) = match leave_out_refused(&bytes, dialect, &refused, &options) {
        Some(repaired) => repaired,
        None => crate::provider::repair(&bytes, dialect, &options)?,
    };
    // A text that is as it was is not decoded again.
    if body.is_string() && repaired == bytes {
        return Ok(body_and_report(body, &report).into());
    }
    Ok(repaired_to_js(body, (repaired, report)).into())
}

/// Repairs a body that its provider refused, if its error answer is a known one; otherwise returns null.
#[wasm_bindgen(skip_typescript)]
pub fn heal(body: &JsValue, name: &str, answer: &JsValue, options: &JsValue) -> std::result::Result<JsValue, JsValue> {
    let (options, _) = repair_options(options)?;
    let answer = body_bytes(answer)?;
    let Some(healed) = crate::provider::heal(&body_bytes(body)?, dialect(name)?, &answer, &options) else {
        return Ok(JsValue::NULL);
    };
    let out = repaired_to_js(body, (healed.body, healed.report));
    let refused = healed.refused.iter().map(|mark| JsValue::from_str(mark)).collect::<js_sys::Array>();
    set(&out, "refused", &refused);
    Ok(out.into())
}

/// Converts a body to another dialect and repairs it.
#[wasm_bindgen(skip_typescript)]
pub fn convert(body: &JsValue, from: &str, to: &str, options: &JsValue) -> std::result::Result<JsValue, JsValue> {
    let bytes = body_bytes(body)?;
    let (options, _) = repair_options(options)?;
    let converted = crate::render::convert(&bytes, dialect(from)?, dialect(to)?, &options)?;
    Ok(repaired_to_js(body, converted).into())
}

/// Returns the text of a member of a JSON object as it is written, if there is one. For the command line.
#[wasm_bindgen(js_name = memberText, skip_typescript)]
pub fn member_text(object: &str, name: &str) -> Option<String> {
    JsonRef::parse(object).ok()?.get(name).map(|member| member.as_raw().to_owned())
}

/// Returns the texts of a JSON array's items as they are written. For the command line.
#[wasm_bindgen(js_name = itemTexts, skip_typescript)]
pub fn item_texts(array: &str) -> Vec<String> {
    JsonRef::parse(array)
        .map_or_else(|_| Vec::new(), |list| list.items().map(|item| item.as_raw().to_owned()).collect())
}

/// Returns the rule that an error of a provider is about, if it is one that `heal` knows. For the command line.
#[wasm_bindgen(js_name = refusedRule, skip_typescript)]
pub fn refused_rule(answer: &str, name: &str) -> std::result::Result<Option<String>, JsValue> {
    Ok(crate::provider::refused_rule(answer.as_bytes(), dialect(name)?).map(str::to_owned))
}

/// The options of `repair` and `convert`.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct WireOptions {
    dangling_calls: Option<DanglingOption>,
    dangling_text: Option<String>,
    refused: NewestMarks,
}

words!(
    /// `danglingCalls`.
    DanglingOption: Dangling { "synthesize" => Dangling::Synthesize, "omit" => Dangling::Omit }
);

/// The newest marks of what a provider refused: each item of a body is compared with all of them.
#[derive(Default)]
struct NewestMarks(Vec<String>);

/// As many as a session and `repairing` remember.
const MAX_MARKS: u32 = 1000;

impl<'de> Deserialize<'de> for NewestMarks {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let UnreadValue(value) = UnreadValue::deserialize(deserializer)?;
        let refused = |error: Error| D::Error::custom(error.into_message());
        if value.is_undefined() || value.is_null() {
            return Ok(Self::default());
        }
        let marks = last_items("it", &value, MAX_MARKS).map_err(refused)?;
        let marks = marks.ok_or_else(|| D::Error::invalid_type(Unexpected::Other("a value"), &"a list"))?;
        let read = |mark: &JsValue| {
            let mark = string("it", mark).map_err(refused)?;
            mark.ok_or_else(|| D::Error::invalid_type(Unexpected::Other("an item"), &"a list of strings"))
        };
        marks.iter().map(read).collect::<std::result::Result<_, _>>().map(Self)
    }
}

/// Reads the options, and the marks of what the provider refused.
fn repair_options(options: &JsValue) -> Result<(RepairOptions, Vec<String>)> {
    let options: WireOptions = read_optional("the last argument, the options,", options)?;
    let dangling = options.dangling_calls.map(|option| option.0).unwrap_or_default();
    Ok((RepairOptions { dangling, dangling_text: options.dangling_text }, options.refused.0))
}

/// Makes `{ body, report }`, with the body in the form of the one that was given: an object, a string or bytes.
fn repaired_to_js(given: &JsValue, (bytes, report): (Vec<u8>, Report)) -> Object {
    let body = if given.is_string() {
        JsValue::from_str(&String::from_utf8_lossy(&bytes))
    } else if untrusted_value::is_bytes(given) {
        Uint8Array::from(bytes.as_slice()).into()
    } else {
        js_sys::JSON::parse(&String::from_utf8_lossy(&bytes)).unwrap_or_else(|_| given.clone())
    };
    body_and_report(&body, &report)
}

fn body_and_report(body: &JsValue, report: &Report) -> Object {
    let out = Object::new();
    set(&out, "body", body);
    set(&out, "report", &report_to_js(report));
    out
}
