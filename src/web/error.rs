//! Converts core errors to the JavaScript class `RethreadError`.

use crate::error::Error;
use std::cell::RefCell;
use std::mem::ManuallyDrop;
use wasm_bindgen::prelude::*;

thread_local! {
    /// The class `RethreadError` of the package, so that `instanceof` works. Never dropped: the thread lives as long as
    /// the page.
    static CLASS: ManuallyDrop<RefCell<Option<js_sys::Function>>> = const { ManuallyDrop::new(RefCell::new(None)) };
}

/// Sets the class of errors. Called once, when the instance starts.
#[wasm_bindgen(js_name = setErrorClass, skip_typescript)]
pub fn set_error_class(class: js_sys::Function) {
    CLASS.with(|slot| *slot.borrow_mut() = Some(class));
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
        if let Some(error) = class.and_then(|class| {
            js_sys::Reflect::construct(&class, &js_sys::Array::of3(&code, &JsValue::from_str(&error.message), &details))
                .ok()
        }) {
            return error;
        }
        let plain = js_sys::Error::new(&error.message);
        for (key, value) in [("code", &code), ("details", &details)] {
            crate::web::conversion::convert::set(&plain, key, value);
        }
        plain.into()
    }
}
