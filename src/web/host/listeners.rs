//! Listeners of an application.

use js_sys::Function;
use std::cell::RefCell;
use std::rc::Rc;
use wasm_bindgen::prelude::*;

/// Functions that are called at a change, in the order in which they were added, each with its number.
#[derive(Default)]
pub struct Listeners(Rc<RefCell<Vec<(u32, Function)>>>);

impl Listeners {
    /// Adds a listener; returns the function that removes it and then calls `removed`.
    pub fn add(&self, listener: Function, removed: Box<dyn Fn()>) -> Function {
        let number = self.0.borrow().last().map_or(0, |(number, _)| number + 1);
        self.0.borrow_mut().push((number, listener));
        let all = self.0.clone();
        Closure::<dyn FnMut()>::new(move || {
            all.borrow_mut().retain(|(other, _)| *other != number);
            removed();
        })
        .into_js_value()
        .unchecked_into()
    }

    pub fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// Removes all listeners.
    pub fn clear(&self) {
        drop(self.0.take());
    }

    /// Calls all listeners. They may call back, so the list is not borrowed meanwhile.
    pub fn call(&self, value: &JsValue) {
        let all: Vec<Function> = self.0.borrow().iter().map(|(_, listener)| listener.clone()).collect();
        for listener in all {
            // What a listener throws has nobody to go to.
            let _ = listener.call1(&JsValue::NULL, value);
        }
    }
}
