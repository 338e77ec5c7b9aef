//! Waits for asynchronous functions of the application. One may never answer, so a wait ends when the store is closed or the run is disposed.

use super::promise::{adopted, deferred};
use crate::error::{Error, ErrorCode, Result};
use js_sys::{Array, Function, Promise};
use std::cell::RefCell;
use std::rc::Rc;
use wasm_bindgen::JsValue;
use wasm_bindgen_futures::JsFuture;

/// What a function returned or threw.
pub type CallResult = std::result::Result<JsValue, JsValue>;

/// The functions of an open store, or of one run in it, that have not answered yet.
#[derive(Default)]
pub struct PendingCallbacks {
    waits: Rc<RefCell<CallbackWaits>>,
    /// The number of the run; 0 for calls that belong to no run.
    run: u32,
}

/// The waits of an open store.
#[derive(Default)]
struct CallbackWaits {
    open: Vec<CallbackWait>,
    last_number: u32,
    last_run: u32,
    is_closed: bool,
}

struct CallbackWait {
    number: u32,
    run: u32,
    /// Resolves the promise that ends the wait.
    end: Function,
}

impl CallbackWaits {
    /// Removes a wait. Returns false if it was ended.
    fn remove(&mut self, number: u32) -> bool {
        let before = self.open.len();
        self.open.retain(|wait| wait.number != number);
        self.open.len() < before
    }
}

impl PendingCallbacks {
    /// Returns those of a new run.
    pub fn for_new_run(&self) -> Self {
        let mut waits = self.waits.borrow_mut();
        waits.last_run += 1;
        Self { waits: self.waits.clone(), run: waits.last_run }
    }

    /// Awaits what a called function returned, unless it threw.
    ///
    /// # Errors
    /// `closed` if the store is closed, or the run disposed, before the function answers.
    pub async fn settled(&self, called: CallResult) -> Result<CallResult> {
        let returned = match called {
            Ok(returned) => adopted(&returned),
            Err(thrown) => return Ok(Err(thrown)),
        };
        let (ended, end) = deferred();
        let number = self.add(end);
        let settled = JsFuture::from(Promise::race(&Array::of2(&returned, &ended))).await;
        if self.waits.borrow_mut().remove(number) {
            return Ok(settled);
        }
        Err(Error::new(
            ErrorCode::Closed,
            "this rethread was closed before a function of the application answered; `open` again",
        ))
    }

    /// Adds a wait, and returns its number. After [`close`](Self::close) it ends at once.
    fn add(&self, end: Option<Function>) -> u32 {
        let mut waits = self.waits.borrow_mut();
        waits.last_number += 1;
        let number = waits.last_number;
        if let Some(end) = end {
            waits.open.push(CallbackWait { number, run: self.run, end });
        }
        if waits.is_closed {
            drop(waits);
            self.end(&|wait| wait.number == number);
        }
        number
    }

    /// Ends the waits of this run.
    pub fn end_of_run(&self) {
        self.end(&|wait| wait.run == self.run);
    }

    /// Ends all waits of the store, and those that begin later.
    pub fn close(&self) {
        self.waits.borrow_mut().is_closed = true;
        self.end(&|_| true);
    }

    fn end(&self, selects: &dyn Fn(&CallbackWait) -> bool) {
        let open = std::mem::take(&mut self.waits.borrow_mut().open);
        let (ended, open): (Vec<_>, Vec<_>) = open.into_iter().partition(selects);
        self.waits.borrow_mut().open = open;
        for wait in ended {
            // Resolving a promise does not throw.
            let _ = wait.end.call0(&JsValue::NULL);
        }
    }
}
