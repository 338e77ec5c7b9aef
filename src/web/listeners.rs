//! Listeners of an application.

use js_sys::Function;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use wasm_bindgen::prelude::*;

/// Functions that are called at a change.
#[derive(Default)]
pub struct Listeners(Rc<RefCell<BTreeMap<u32, Function>>>);

impl Listeners {
    /// Adds a listener; returns the function that removes it.
    pub fn add(&self, listener: Function) -> Function {
        let key = self.0.borrow().last_key_value().map_or(0, |(key, _)| key + 1);
        self.0.borrow_mut().insert(key, listener);
        let all = self.0.clone();
        Closure::<dyn FnMut()>::new(move || {
            all.borrow_mut().remove(&key);
        })
        .into_js_value()
        .unchecked_into()
    }

    /// Removes all listeners.
    pub fn clear(&self) {
        drop(self.0.take());
    }

    /// Calls all listeners. They may call back, so the list is not borrowed meanwhile.
    pub fn call(&self, value: &JsValue) {
        let all: Vec<Function> = self.0.borrow().values().cloned().collect();
        for listener in all {
            // What a listener throws has nobody to go to.
            let _ = listener.call1(&JsValue::NULL, value);
        }
    }
}
