//! `StateBag`: provider-scoped state of a session.

use super::convert::{to_js, to_json};
use super::session::SessionInner;
use crate::sorted::Sorted;
use std::rc::Rc;
use wasm_bindgen::prelude::*;

/// Provider-scoped state of a session, stored with its next append or by `save`.
#[wasm_bindgen(skip_typescript)]
pub struct StateBag {
    inner: Rc<SessionInner>,
}

impl StateBag {
    pub fn of(inner: Rc<SessionInner>) -> Self {
        Self { inner }
    }
}

#[wasm_bindgen]
impl StateBag {
    /// The value under a key.
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
            .find(|(own, _)| own == key)
            .map_or(JsValue::UNDEFINED, |(_, value)| to_js(value.view()))
    }

    /// Sets the value under a key: anything that JSON can say.
    pub fn set(&self, key: String, value: &JsValue) -> std::result::Result<(), JsValue> {
        let value = to_json(value)?;
        self.inner.state.borrow_mut().insert(key, value);
        Ok(())
    }

    /// All keys, sorted.
    pub fn keys(&self) -> Vec<String> {
        let mut keys: Sorted<String, ()> =
            self.inner.log.borrow().head.state.iter().map(|(key, _)| (key.clone(), ())).collect();
        for key in self.inner.state.borrow().keys() {
            keys.insert(key.clone(), ());
        }
        keys.keys().cloned().collect()
    }
}
