//! Runs a transaction without ever awaiting inside it.
//!
//! An IndexedDB transaction takes requests only during the callbacks of its own requests, and a Rust future is woken by such
//! a callback, not run in it. So what a transaction does is a [`Script`], called in the callback itself; the one thing that is
//! awaited is the transaction's end.

use super::failure::Failure;
use super::wait::{Signal, Timer};
use crate::clock::Ms;
use crate::error::{Code, Error};
use std::cell::RefCell;
use std::rc::Rc;
use wasm_bindgen::prelude::*;
use web_sys::{IdbRequest, IdbTransaction};

#[wasm_bindgen]
extern "C" {
    type Committing;
    #[wasm_bindgen(method, catch)]
    fn commit(this: &Committing) -> Result<(), JsValue>;
}

/// What a script does next.
pub(super) enum Step {
    /// Goes on when all of these are answered, with the answers in their order.
    Ask(Vec<IdbRequest>),
    /// Everything is asked for; it wrote so many bytes.
    Done(u64),
}

/// Called first without answers, then each time with those to what it asked.
pub(super) type Script = Box<dyn FnMut(&IdbTransaction, &[JsValue]) -> Result<Step, Failure>>;

/// Runs a script to the transaction's end. Dropped before, it takes no further step: what it wrote is whole
/// or not there, since a script writes in its last step.
///
/// `patience` is how long one step may take; writing gets a second more for each megabyte.
pub(super) async fn run(transaction: IdbTransaction, script: Script, patience: Ms) -> Result<(), Failure> {
    let running = Rc::new(Running {
        transaction,
        patience,
        script: RefCell::new(Some(script)),
        asked: RefCell::default(),
        answered: RefCell::default(),
        failure: RefCell::default(),
        timer: RefCell::default(),
        end: Signal::new(),
    });
    let _handlers = Handlers::attach(&running);
    running.step(&[]);
    running.end.wait().await
}

struct Running {
    transaction: IdbTransaction,
    patience: Ms,
    script: RefCell<Option<Script>>,
    asked: RefCell<Vec<IdbRequest>>,
    /// The handler of every request, as JavaScript has it; [`Handlers`] owns it.
    answered: RefCell<Option<js_sys::Function>>,
    /// Why it is being aborted.
    failure: RefCell<Option<Failure>>,
    timer: RefCell<Option<Timer>>,
    end: Signal<Result<(), Failure>>,
}

impl Running {
    fn step(self: &Rc<Self>, answers: &[JsValue]) {
        let Some(mut script) = self.script.take() else { return };
        let patience = match script(&self.transaction, answers) {
            Ok(Step::Ask(requests)) => {
                // Requests are answered in their order, so the last one answers for all.
                let Some(last) = requests.last() else {
                    return self.fail(Failure::new(Code::Internal, "a transaction asked for nothing"));
                };
                last.set_onsuccess(self.answered.borrow().as_ref());
                self.asked.replace(requests);
                self.script.replace(Some(script));
                self.patience
            }
            Ok(Step::Done(written)) => {
                // Saves a round through the event loop, and frees the lock if the page is frozen now. Where it cannot be
                // called, the transaction commits by itself, so a failure says nothing.
                let _ = self.transaction.unchecked_ref::<Committing>().commit();
                self.patience.saturating_add(written / 1024)
            }
            Err(failure) => return self.fail(failure),
        };
        let weak = Rc::downgrade(self);
        let timer = Timer::start(patience, move || {
            if let Some(running) = weak.upgrade() {
                running.give_up();
            }
        });
        match timer {
            Ok(timer) => drop(self.timer.replace(Some(timer))),
            Err(failure) => self.fail(failure),
        }
    }

    fn answer(self: &Rc<Self>) {
        let answers: Result<Vec<_>, JsValue> = self.asked.take().iter().map(IdbRequest::result).collect();
        match answers {
            Ok(answers) => self.step(&answers),
            Err(thrown) => self.fail(thrown.into()),
        }
    }

    /// Rolls back; the failure is given when that is done.
    fn fail(&self, failure: Failure) {
        let failure = self.failure.borrow_mut().get_or_insert(failure).clone();
        if self.transaction.abort().is_err() {
            self.end.set(Err(failure)); // over already: no event will come
        }
    }

    fn aborted(&self) {
        let said = || self.transaction.error().map_or_else(Failure::ended, |error| JsValue::from(error).into());
        let failure = self.failure.take().unwrap_or_else(said);
        self.end.set(Err(failure));
    }

    /// It took too long: another tab holds the lock, or the disk does not answer. Waits for no event, for none may come.
    fn give_up(&self) {
        let message = match self.transaction.abort() {
            Ok(()) => {
                "the store was busy for too long, perhaps held by a tab that is frozen; nothing was written, try again"
            }
            // It was committing, which cannot be stopped.
            Err(_) => {
                "the store did not confirm a write in time; whether it was written is unknown, repeat it with the same operation"
            }
        };
        self.end.set(Err(Error::new(Code::Busy, message).into()));
    }
}

/// The closures that a transaction calls, kept until it ended.
struct Handlers {
    running: Rc<Running>,
    _answered: Closure<dyn FnMut()>,
    _completed: Closure<dyn FnMut()>,
    _aborted: Closure<dyn FnMut()>,
}

impl Handlers {
    fn attach(running: &Rc<Running>) -> Self {
        let handler = |act: fn(&Rc<Running>)| {
            let running = Rc::clone(running);
            Closure::<dyn FnMut()>::new(move || act(&running))
        };
        let answered = handler(Running::answer);
        let completed = handler(|running| running.end.set(Ok(())));
        let aborted = handler(|running| running.aborted());
        running.answered.replace(Some(answered.as_ref().unchecked_ref::<js_sys::Function>().clone()));
        running.transaction.set_oncomplete(Some(completed.as_ref().unchecked_ref()));
        running.transaction.set_onabort(Some(aborted.as_ref().unchecked_ref()));
        Self { running: Rc::clone(running), _answered: answered, _completed: completed, _aborted: aborted }
    }
}

impl Drop for Handlers {
    fn drop(&mut self) {
        let running = &self.running;
        running.transaction.set_oncomplete(None);
        running.transaction.set_onabort(None);
        if let Some(last) = running.asked.take().last() {
            last.set_onsuccess(None);
        }
        drop(running.script.take());
        drop(running.timer.take());
    }
}
