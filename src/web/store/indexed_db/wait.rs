//! Waits for an event: a slot that a handler fills, and a timeout.

use super::failure::IdbFailure;
use crate::clock::Ms;
use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};
use wasm_bindgen::prelude::*;

/// The value of a signal, or the failure instead of it.
type SignalResult<T> = Result<T, IdbFailure>;

/// A value that is set once and awaited.
pub(super) struct OneShot<T> {
    value: RefCell<Option<SignalResult<T>>>,
    waker: RefCell<Option<Waker>>,
}

impl<T> OneShot<T> {
    pub(super) fn new() -> Self {
        Self { value: RefCell::new(None), waker: RefCell::new(None) }
    }

    /// Sets the value, unless it is set.
    pub(super) fn set(&self, value: SignalResult<T>) {
        self.value.borrow_mut().get_or_insert(value);
        let waker = self.waker.borrow_mut().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Takes the value if it is set.
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

/// An event handler, called with the event. JavaScript calls it until it is dropped.
pub(super) type EventHandler = Closure<dyn FnMut(JsValue)>;

/// Makes a handler that calls `react` with `shared`.
pub(super) fn handler<T: 'static>(shared: &Rc<T>, react: fn(&Rc<T>)) -> EventHandler {
    let shared = Rc::clone(shared);
    Closure::new(move |_event| react(&shared))
}

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(catch, js_name = setTimeout)]
    fn set_timeout(handler: &JsValue, ms: f64) -> Result<JsValue, JsValue>;
    #[wasm_bindgen(js_name = clearTimeout)]
    fn clear_timeout(timer: &JsValue);
}

/// Calls its handler after a time, unless it is dropped before.
pub(super) struct Timeout {
    id: JsValue,
    _ring: EventHandler,
}

impl Timeout {
    pub(super) fn start(after: Ms, ring: EventHandler) -> Result<Self, IdbFailure> {
        // A timer of more than 2^31 - 1 ms fires at once.
        let id = set_timeout(ring.as_ref(), after.min(0x7fff_ffff) as f64)?;
        Ok(Self { id, _ring: ring })
    }
}

impl Drop for Timeout {
    fn drop(&mut self) {
        clear_timeout(&self.id);
    }
}
