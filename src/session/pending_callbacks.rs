//! Waits for asynchronous functions of the application. One may never answer, so a wait ends when the store is closed
//! or the run is disposed.

use super::signal::Signal;
use crate::error::{Error, ErrorCode, Result};
use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;

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
    /// Given when the wait ends, whatever the function does.
    end: Signal,
}

impl PendingCallbacks {
    /// Returns those of a new run.
    #[must_use]
    pub fn for_new_run(&self) -> Self {
        let mut waits = self.waits.borrow_mut();
        waits.last_run += 1;
        Self { waits: self.waits.clone(), run: waits.last_run }
    }

    /// Calls a function and awaits its answer.
    ///
    /// # Errors
    /// `closed` if the store is closed, or the run disposed, before the function answers.
    pub async fn answered<T>(&self, call: impl Future<Output = T>) -> Result<T> {
        let (number, end) = self.add();
        let answer = end.unless_given(call).await;
        self.waits.borrow_mut().open.retain(|wait| wait.number != number);
        answer.ok_or_else(|| {
            Error::new(
                ErrorCode::Closed,
                "this rethread was closed before a function of the application answered; `open` again",
            )
        })
    }

    /// Adds a wait. After [`close`](Self::close) it ends at once.
    fn add(&self) -> (u32, Signal) {
        let mut waits = self.waits.borrow_mut();
        waits.last_number += 1;
        let (number, end) = (waits.last_number, Signal::default());
        if waits.is_closed {
            end.give();
        } else {
            waits.open.push(CallbackWait { number, run: self.run, end: end.clone() });
        }
        (number, end)
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
            wait.end.give();
        }
    }
}
