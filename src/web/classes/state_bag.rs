//! The class `StateBag`.

use crate::session::OpenSession;
use crate::web::conversion::convert::{to_js, to_json};
use js_sys::Array;
use std::rc::Rc;
use wasm_bindgen::prelude::*;

/// Provider-scoped state of a session, stored with its next append or by `save`.
#[wasm_bindgen(js_name = StateBag, skip_typescript)]
pub struct JsStateBag {
    inner: Rc<OpenSession>,
}

impl JsStateBag {
    pub fn of(inner: Rc<OpenSession>) -> Self {
        Self { inner }
    }
}

#[wasm_bindgen(js_class = StateBag)]
impl JsStateBag {
    /// Returns the value of a key.
    pub fn get(&self, key: &str) -> JsValue {
        self.inner.state_value(key).map_or(JsValue::UNDEFINED, |value| to_js(value.view()))
    }

    /// Sets the value of a key. It must be representable in JSON.
    pub fn set(&self, key: String, value: &JsValue) -> std::result::Result<(), JsValue> {
        let value = to_json(value)?;
        self.inner.set_state_value(key, value);
        Ok(())
    }

    /// Returns all keys, sorted.
    pub fn keys(&self) -> Array {
        self.inner.state_keys().iter().map(|key| JsValue::from_str(key)).collect()
    }
}
