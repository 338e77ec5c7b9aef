//! The input of a run or a render, and the types of options in JavaScript.

use super::convert::{body_json, to_json};
use super::option_reader::{BoundFunction, FlagOrFunction, UnreadObject, UnreadValue};
use super::untrusted_value;
use crate::error::{Error, Result};
use crate::history::{Incoming, IncomingMessage, IncomingPart, read_part};
use crate::json::{Json, JsonStr};
use crate::message::{Dialect, Part, PartBody, Role};
use crate::options::{FlagOrCallback, OptionTypes};
use crate::provider::{check_input_body, decode_body};
use wasm_bindgen::JsValue;

/// Maximum number of parts of an input.
const MAX_INPUT_PARTS: u32 = 100_000;

/// The options of JavaScript.
#[derive(Default)]
pub struct JsOptions;

impl OptionTypes for JsOptions {
    type Value = UnreadValue;
    type Object = UnreadObject;
    type Function = BoundFunction;
    type HostOnlyFunction = BoundFunction;
    type FlagOrFunction = FlagOrFunction;

    fn value_to_json(value: &UnreadValue) -> Result<Json> {
        to_json(&value.0)
    }

    fn object_to_json(object: &UnreadObject) -> Result<Json> {
        to_json(&object.0)
    }

    fn input_items(input: Option<&UnreadValue>, dialect: Dialect) -> Result<Vec<Incoming>> {
        input_items(input, dialect)
    }
}

impl From<FlagOrFunction> for FlagOrCallback {
    fn from(given: FlagOrFunction) -> Self {
        match given {
            FlagOrFunction::Flag(flag) => Self::Flag(flag),
            FlagOrFunction::Function(function) => Self::Callback(function.into()),
        }
    }
}

/// Reads an input: a text, a list of parts, or a body of the dialect.
fn input_items(input: Option<&UnreadValue>, dialect: Dialect) -> Result<Vec<Incoming>> {
    let Some(UnreadValue(input)) = input else { return Ok(Vec::new()) };
    if input.is_string() {
        // Through JSON, which keeps a lone surrogate.
        let text = to_json(input)?.view().as_json_str().unwrap_or_else(|| JsonStr::new(""));
        if text.is_empty() {
            return Err(Error::invalid("`input` is empty; leave it out to answer the stored messages"));
        }
        return Ok(user_message(vec![IncomingPart::Part(PartBody::Text(text).into())]));
    }
    if let Some(list) = untrusted_value::items("`input`", input, MAX_INPUT_PARTS)? {
        if list.is_empty() {
            return Err(Error::invalid("`input` has no part; leave it out to answer the stored messages"));
        }
        let parts = list.iter().map(|part| input_part(part).map(IncomingPart::Part)).collect::<Result<_>>()?;
        return Ok(user_message(parts));
    }
    if input.is_object() {
        let body = body_json(input)?;
        check_input_body(dialect, body.view())?;
        return decode_body(dialect, body.view());
    }
    Err(Error::invalid("`input` must be a text, a list of parts, or a body of the dialect"))
}

fn user_message(parts: Vec<IncomingPart>) -> Vec<Incoming> {
    vec![Incoming::Message(IncomingMessage { role: Role::User, parts, dialect: None, template: None })]
}

fn input_part(part: &JsValue) -> Result<Part> {
    let part = read_part(to_json(part)?.view())?;
    match part.body {
        PartBody::Text(_) | PartBody::Image(_) | PartBody::File(_) => Ok(part),
        _ => Err(Error::invalid("a part of an input is \"text\", \"image\" or \"file\"")),
    }
}
