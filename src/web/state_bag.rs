//! The class `StateBag`.

use super::convert::{to_js, to_json};
use crate::session::OpenSession;
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
        if let Some(value) = self.inner.state.borrow().get(key) {
            return to_js(value.view());
        }
        self.inner
            .log
            .borrow()
            .head
            .state
            .iter()
            .find(|(name, _)| name == key)
            .map_or(JsValue::UNDEFINED, |(_, value)| to_js(value.view()))
    }

    /// Sets the value of a key. It must be representable in JSON.
    pub fn set(&self, key: String, value: &JsValue) -> std::result::Result<(), JsValue> {
        let value = to_json(value)?;
        self.inner.state.borrow_mut().insert(key, value);
        self.inner.update_hold();
        Ok(())
    }

    /// Returns all keys, sorted.
    pub fn keys(&self) -> Array {
        let (log, unsaved) = (self.inner.log.borrow(), self.inner.state.borrow());
        // Stored values are sorted by key.
        let mut keys: Vec<&str> = log.head.state.iter().map(|(key, _)| key.as_str()).collect();
        for key in unsaved.keys() {
            if let Err(at) = keys.binary_search(&key.as_str()) {
                keys.insert(at, key);
            }
        }
        let list = Array::new();
        for key in keys {
            list.push(&JsValue::from_str(key));
        }
        list
    }
}
