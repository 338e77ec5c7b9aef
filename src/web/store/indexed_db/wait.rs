//! Waiting for an event: a slot that a handler fills, and a timer.

use super::failure::Failure;
use crate::clock::Ms;
use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};
use wasm_bindgen::prelude::*;

/// A value that comes once. Every handle is to the same one.
pub(super) struct Signal<T>(Rc<Slot<T>>);

struct Slot<T> {
    value: RefCell<Option<T>>,
    waker: RefCell<Option<Waker>>,
}

impl<T> Clone for Signal<T> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl<T> Signal<T> {
    pub(super) fn new() -> Self {
        Self(Rc::new(Slot { value: RefCell::new(None), waker: RefCell::new(None) }))
    }

    /// Gives the value. The first one counts.
    pub(super) fn set(&self, value: T) {
        self.0.value.borrow_mut().get_or_insert(value);
        let waker = self.0.waker.borrow_mut().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// The value, if it came and nobody has it.
    pub(super) fn take(&self) -> Option<T> {
        self.0.value.borrow_mut().take()
    }

    pub(super) async fn wait(&self) -> T {
        poll_fn(|context| match self.take() {
            Some(value) => Poll::Ready(value),
            None => {
                self.0.waker.replace(Some(context.waker().clone()));
                Poll::Pending
            }
        })
        .await
    }
}

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(catch, js_name = setTimeout)]
    fn set_timeout(handler: &JsValue, ms: f64) -> Result<JsValue, JsValue>;
    #[wasm_bindgen(js_name = clearTimeout)]
    fn clear_timeout(timer: &JsValue);
}

/// Calls back after a time, unless dropped before.
pub(super) struct Timer {
    id: JsValue,
    _ring: Closure<dyn FnMut()>,
}

impl Timer {
    pub(super) fn start(after: Ms, ring: impl FnMut() + 'static) -> Result<Self, Failure> {
        let ring = Closure::<dyn FnMut()>::new(ring);
        // Above 2^31 - 1 a timer fires at once.
        let id = set_timeout(ring.as_ref(), after.min(0x7fff_ffff) as f64)?;
        Ok(Self { id, _ring: ring })
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        clear_timeout(&self.id);
    }
}
