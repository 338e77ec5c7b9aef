//! The class `StreamAssembler`.

use crate::error::{Error, ErrorCode, Result};
use crate::message::Dialect;
use crate::web::conversion::convert::{list_to_js, object_to_js};
use crate::web::conversion::untrusted_value;
use std::cell::RefCell;
use wasm_bindgen::prelude::*;

/// Parses the name of a dialect.
///
/// # Errors
/// `config_invalid` with the names of all dialects.
pub fn dialect(name: &str) -> Result<Dialect> {
    Dialect::read(name)
}

/// Assembles a streamed response. Feed raw bytes in any split.
#[wasm_bindgen(js_name = StreamAssembler, skip_typescript)]
pub struct JsStreamAssembler {
    inner: RefCell<Option<crate::provider::StreamAssembler>>,
}

#[wasm_bindgen(js_class = StreamAssembler)]
impl JsStreamAssembler {
    /// Makes an assembler for one response of the dialect.
    #[wasm_bindgen(constructor)]
    pub fn new(name: &str) -> std::result::Result<Self, JsValue> {
        Ok(Self { inner: RefCell::new(Some(crate::provider::StreamAssembler::new(dialect(name)?))) })
    }

    /// Returns the events that the bytes completed, in order.
    pub fn push(&self, bytes: &JsValue) -> std::result::Result<JsValue, JsValue> {
        let bytes = untrusted_value::bytes("the argument of `push`", bytes)?
            .ok_or_else(|| Error::invalid("the argument of `push` must be a Uint8Array"))?;
        let mut events = Vec::new();
        self.inner.borrow_mut().as_mut().ok_or_else(already_finished)?.push(&bytes, &mut events);
        Ok(list_to_js(&|list| {
            for event in &events {
                list.object(|out| event.write(out));
            }
        }))
    }

    /// Ends the stream and returns the response.
    pub fn finish(&self) -> std::result::Result<JsValue, JsValue> {
        let assembled = self.inner.borrow_mut().take().ok_or_else(already_finished)?.finish();
        Ok(object_to_js(&|out| assembled.write(out)))
    }
}

fn already_finished() -> Error {
    Error::new(ErrorCode::WrongState, "this stream was finished already; make a new assembler for the next response")
}
