//! Errors, as JavaScript throws them: `RethreadError`, with its code.

use super::foreign::reason_of;
use crate::error::{Code, Error};
use std::cell::RefCell;
use std::mem::ManuallyDrop;
use wasm_bindgen::prelude::*;

thread_local! {
    /// The class of the package, so that `instanceof` holds. Not dropped: the thread lives as long as the page.
    static CLASS: ManuallyDrop<RefCell<Option<js_sys::Function>>> = const { ManuallyDrop::new(RefCell::new(None)) };
}

/// Tells the class that errors are made of. Called once by the package's entry.
#[wasm_bindgen(js_name = setErrorClass, skip_typescript)]
pub fn set_error_class(class: js_sys::Function) {
    CLASS.with(|own| *own.borrow_mut() = Some(class));
}

impl From<Error> for JsValue {
    fn from(error: Error) -> Self {
        let details = error
            .details
            .as_ref()
            .and_then(|details| js_sys::JSON::parse(details.as_str()).ok())
            .unwrap_or_else(|| js_sys::Object::new().into());
        let code = JsValue::from_str(error.code.as_str());
        let class = CLASS.with(|class| class.borrow().clone());
        if let Some(made) = class.and_then(|class| {
            js_sys::Reflect::construct(&class, &js_sys::Array::of3(&code, &JsValue::from_str(&error.message), &details))
                .ok()
        }) {
            return made;
        }
        let plain = js_sys::Error::new(&error.message);
        for (key, value) in [("code", &code), ("details", &details)] {
            super::convert::set(&plain, key, value);
        }
        plain.into()
    }
}

/// A failure that JavaScript threw, with its text.
pub fn error_from_thrown(code: Code, what: &str, value: &JsValue) -> Error {
    Error::new(code, format!("{what}: {}", reason_of(value)))
}
