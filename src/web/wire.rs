//! `validate`, `repair` and `convert`.

use super::assembler::dialect;
use super::convert::{list_to_js, set, text};
use super::foreign;
use crate::error::{Error, Result};
use crate::finding::{Finding, Report};
use crate::provider::{Dangling, RepairOptions};
use js_sys::{Object, Uint8Array};
use wasm_bindgen::prelude::*;

/// Findings as a JavaScript array.
pub fn report_to_js(report: &[Finding]) -> JsValue {
    list_to_js(&|list| {
        for finding in report {
            list.object(|out| finding.write(out));
        }
    })
}

/// The bytes of a body: an object's JSON, a string's or the bytes themselves, valid or not.
fn body_bytes(body: &JsValue) -> Result<Vec<u8>> {
    let bytes = if let Some(text) = foreign::string("the body", body)? {
        text.into_bytes()
    } else if let Some(bytes) = foreign::bytes("the body", body)? {
        bytes
    } else {
        super::convert::to_json(body)?.as_str().as_bytes().to_vec()
    };
    foreign::check_memory("the body", &bytes)?;
    Ok(bytes)
}

/// What is wrong with the body.
#[wasm_bindgen(skip_typescript)]
pub fn validate(body: &JsValue, name: &str) -> std::result::Result<JsValue, JsValue> {
    Ok(report_to_js(&crate::provider::validate(&body_bytes(body)?, dialect(name)?)))
}

/// The nearest valid body, in the form in which it was given.
#[wasm_bindgen(skip_typescript)]
pub fn repair(body: &JsValue, name: &str, options: &JsValue) -> std::result::Result<JsValue, JsValue> {
    let repaired = crate::provider::repair(&body_bytes(body)?, dialect(name)?, &wanted(options)?)?;
    Ok(outcome(body, repaired))
}

/// The body in another dialect, repaired, in the form in which it was given.
#[wasm_bindgen(skip_typescript)]
pub fn convert(body: &JsValue, from: &str, to: &str, options: &JsValue) -> std::result::Result<JsValue, JsValue> {
    let bytes = body_bytes(body)?;
    let converted = crate::render::convert(&bytes, dialect(from)?, dialect(to)?, &wanted(options)?)?;
    Ok(outcome(body, converted))
}

fn wanted(options: &JsValue) -> Result<RepairOptions> {
    let mut wanted = RepairOptions::default();
    match text(options, "danglingCalls")?.as_deref() {
        None | Some("synthesize") => {}
        Some("omit") => wanted.dangling = Dangling::Omit,
        Some(other) => {
            return Err(Error::config(format!("`danglingCalls` is \"synthesize\" or \"omit\", not \"{other}\"")));
        }
    }
    wanted.dangling_text = text(options, "danglingText")?;
    Ok(wanted)
}

/// `{ body, report }`, the body in the form of the one that was given.
fn outcome(given: &JsValue, (bytes, report): (Vec<u8>, Report)) -> JsValue {
    let body = if given.is_string() {
        JsValue::from_str(&String::from_utf8_lossy(&bytes))
    } else if foreign::is_bytes(given) {
        Uint8Array::from(bytes.as_slice()).into()
    } else {
        js_sys::JSON::parse(&String::from_utf8_lossy(&bytes)).unwrap_or_else(|_| given.clone())
    };
    let out = Object::new();
    set(&out, "body", &body);
    set(&out, "report", &report_to_js(&report));
    out.into()
}
