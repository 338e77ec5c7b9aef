//! A signal between tasks of one thread, without an executor.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Poll, Waker};

/// A signal that is given at most once. Its clones are one signal.
#[derive(Clone, Default)]
pub struct Signal(Rc<SignalState>);

#[derive(Default)]
struct SignalState {
    is_given: Cell<bool>,
    waiting: RefCell<Vec<Waker>>,
}

impl Signal {
    /// Gives the signal, and wakes the tasks that wait for it.
    pub fn give(&self) {
        self.0.is_given.set(true);
        // Taken first: a waker may run its task at once.
        for waker in self.0.waiting.take() {
            waker.wake();
        }
    }

    /// Returns true if the signal was given.
    #[must_use]
    pub fn is_given(&self) -> bool {
        self.0.is_given.get()
    }

    /// Waits until the signal is given.
    pub async fn given(&self) {
        poll_fn(|task| {
            if self.is_given() {
                return Poll::Ready(());
            }
            self.wake_later(task.waker());
            Poll::Pending
        })
        .await;
    }

    /// Does work unless the signal is given before it ends: then it is dropped, and none is returned. It is begun in
    /// any case.
    pub async fn unless_given<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        poll_fn(|task| {
            let polled = work.as_mut().poll(task);
            if self.is_given() {
                return Poll::Ready(None);
            }
            if polled.is_pending() {
                self.wake_later(task.waker());
            }
            polled.map(Some)
        })
        .await
    }

    fn wake_later(&self, waker: &Waker) {
        let mut waiting = self.0.waiting.borrow_mut();
        if !waiting.iter().any(|other| other.will_wake(waker)) {
            waiting.push(waker.clone());
        }
    }
}
