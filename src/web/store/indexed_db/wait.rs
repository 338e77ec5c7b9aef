//! Waiting for an event: a slot that a handler fills, and a timer.

use super::failure::IdbFailure;
use crate::clock::Ms;
use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};
use wasm_bindgen::prelude::*;

/// What is waited for, or why it did not come.
type SignalResult<T> = Result<T, IdbFailure>;

/// A value that comes once.
pub(super) struct OneShot<T> {
    value: RefCell<Option<SignalResult<T>>>,
    waker: RefCell<Option<Waker>>,
}

impl<T> OneShot<T> {
    pub(super) fn new() -> Self {
        Self { value: RefCell::new(None), waker: RefCell::new(None) }
    }

    /// Gives the value. The first one counts.
    pub(super) fn set(&self, value: SignalResult<T>) {
        self.value.borrow_mut().get_or_insert(value);
        let waker = self.waker.borrow_mut().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// The value, if it came and nobody has it.
    pub(super) fn take(&self) -> Option<SignalResult<T>> {
        self.value.borrow_mut().take()
    }

    pub(super) async fn wait(&self) -> SignalResult<T> {
        poll_fn(|context| match self.take() {
            Some(value) => Poll::Ready(value),
            None => {
                self.waker.replace(Some(context.waker().clone()));
                Poll::Pending
            }
        })
        .await
    }
}

/// A function that JavaScript calls at an event, until it is dropped.
pub(super) type EventHandler = Closure<dyn FnMut()>;

/// A handler that does this to what it shares with others.
pub(super) fn handler<T: 'static>(shared: &Rc<T>, act: fn(&Rc<T>)) -> EventHandler {
    let shared = Rc::clone(shared);
    Closure::new(move || act(&shared))
}

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(catch, js_name = setTimeout)]
    fn set_timeout(handler: &JsValue, ms: f64) -> Result<JsValue, JsValue>;
    #[wasm_bindgen(js_name = clearTimeout)]
    fn clear_timeout(timer: &JsValue);
}

/// Calls back after a time, unless dropped before.
pub(super) struct Timeout {
    id: JsValue,
    _ring: EventHandler,
}

impl Timeout {
    pub(super) fn start(after: Ms, ring: EventHandler) -> Result<Self, IdbFailure> {
        // Above 2^31 - 1 a timer fires at once.
        let id = set_timeout(ring.as_ref(), after.min(0x7fff_ffff) as f64)?;
        Ok(Self { id, _ring: ring })
    }
}

impl Drop for Timeout {
    fn drop(&mut self) {
        clear_timeout(&self.id);
    }
}
