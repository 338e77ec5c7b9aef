//! Runs a transaction without ever awaiting inside it.
//!
//! An IndexedDB transaction takes requests only during the callbacks of its own requests, and a Rust future is woken by such
//! a callback, not run in it. So what a transaction does is a [`Script`], called in the callback itself; the one thing that is
//! awaited is the transaction's end.

use super::failure::IdbFailure;
use super::wait::{EventHandler, OneShot, Timeout, handler};
use crate::clock::Ms;
use crate::error::{Code, Error};
use crate::web::convert::set;
use std::cell::RefCell;
use std::rc::Rc;
use wasm_bindgen::prelude::*;
use web_sys::{IdbRequest, IdbTransaction};

#[wasm_bindgen]
extern "C" {
    type TransactionExt;
    #[wasm_bindgen(method, catch)]
    fn commit(this: &TransactionExt) -> Result<(), JsValue>;
}

/// What a script does next.
pub(super) enum ScriptStep {
    /// Goes on when all of these are answered, with the answers in their order.
    Ask(Vec<IdbRequest>),
    /// Everything is asked for; it wrote so many bytes.
    Done(u64),
}

/// What a transaction does. What it finds it keeps.
pub(super) trait Script {
    /// The object stores that it needs: every one named is locked in all tabs.
    fn stores(&self) -> Vec<&'static str>;

    /// Begins anew, in another transaction.
    fn restart(&mut self) {}

    /// Called first without answers, then each time with those to what it asked.
    fn step(&mut self, transaction: &IdbTransaction, answers: &[JsValue]) -> Result<ScriptStep, IdbFailure>;
}

/// A script that its transaction and who reads what it found share.
pub(super) type SharedScript = Rc<RefCell<dyn Script>>;

/// Runs a script to the transaction's end. Dropped before, it takes no further step: what it wrote is whole
/// or not there, since a script writes in its last step.
///
/// `patience` is how long one step may take; writing gets a second more for each megabyte.
pub(super) async fn run(transaction: IdbTransaction, script: SharedScript, patience: Ms) -> Result<(), IdbFailure> {
    let running = Rc::new(RunningTransaction {
        transaction,
        patience,
        script: RefCell::new(Some(script)),
        asked: RefCell::default(),
        answered: RefCell::default(),
        failure: RefCell::default(),
        timer: RefCell::default(),
        end: OneShot::new(),
    });
    let _handlers = TransactionHandlers::attach(&running);
    running.step(&[]);
    running.end.wait().await
}

struct RunningTransaction {
    transaction: IdbTransaction,
    patience: Ms,
    /// Gone when its last step is taken.
    script: RefCell<Option<SharedScript>>,
    asked: RefCell<Vec<IdbRequest>>,
    /// The handler of every request, as JavaScript has it; [`TransactionHandlers`] owns it.
    answered: RefCell<JsValue>,
    /// Why it is being aborted.
    failure: RefCell<Option<IdbFailure>>,
    timer: RefCell<Option<Timeout>>,
    end: OneShot<()>,
}

impl RunningTransaction {
    fn step(self: &Rc<Self>, answers: &[JsValue]) {
        let Some(script) = self.script.take() else { return };
        let step = script.borrow_mut().step(&self.transaction, answers);
        let patience = match step {
            Ok(ScriptStep::Ask(requests)) => {
                // Requests are answered in their order, so the last one answers for all.
                let Some(last) = requests.last() else {
                    return self.fail(IdbFailure::new(Code::Internal, "a transaction asked for nothing"));
                };
                set(last, "onsuccess", &self.answered.borrow());
                self.asked.replace(requests);
                self.script.replace(Some(script));
                self.patience
            }
            Ok(ScriptStep::Done(written)) => {
                // Saves a round through the event loop, and frees the lock if the page is frozen now. Where it cannot be
                // called, the transaction commits by itself, so a failure says nothing.
                let _ = self.transaction.unchecked_ref::<TransactionExt>().commit();
                self.patience.saturating_add(written / 1024)
            }
            Err(failure) => return self.fail(failure),
        };
        match Timeout::start(patience, handler(self, Self::give_up)) {
            Ok(timer) => drop(self.timer.replace(Some(timer))),
            Err(failure) => self.fail(failure),
        }
    }

    fn answer(self: &Rc<Self>) {
        let mut answers = Vec::new();
        for request in self.asked.take() {
            match request.result() {
                Ok(answer) => answers.push(answer),
                Err(thrown) => return self.fail(thrown.into()),
            }
        }
        self.step(&answers);
    }

    /// Rolls back; the failure is given when that is done.
    fn fail(&self, failure: IdbFailure) {
        let failure = self.failure.borrow_mut().get_or_insert(failure).clone();
        if self.transaction.abort().is_err() {
            self.end.set(Err(failure)); // over already: no event will come
        }
    }

    fn completed(self: &Rc<Self>) {
        let whole = self.script.borrow().is_none();
        self.end.set(if whole { Ok(()) } else { Err(IdbFailure::found_nothing()) });
    }

    fn aborted(self: &Rc<Self>) {
        let said = || {
            let error = self.transaction.error();
            error.map_or_else(IdbFailure::ended, |error| IdbFailure::of_transaction(&JsValue::from(error)))
        };
        let failure = self.failure.take().unwrap_or_else(said);
        self.end.set(Err(failure));
    }

    /// It took too long: another tab holds the lock, or the disk does not answer. Waits for no event, for none may come.
    fn give_up(self: &Rc<Self>) {
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
struct TransactionHandlers {
    running: Rc<RunningTransaction>,
    _answered: EventHandler,
    _completed: EventHandler,
    _aborted: EventHandler,
}

impl TransactionHandlers {
    fn attach(running: &Rc<RunningTransaction>) -> Self {
        let answered = handler(running, RunningTransaction::answer);
        let completed = handler(running, RunningTransaction::completed);
        let aborted = handler(running, RunningTransaction::aborted);
        running.answered.replace(answered.as_ref().clone());
        set(&running.transaction, "oncomplete", completed.as_ref());
        set(&running.transaction, "onabort", aborted.as_ref());
        Self { running: Rc::clone(running), _answered: answered, _completed: completed, _aborted: aborted }
    }
}

impl Drop for TransactionHandlers {
    fn drop(&mut self) {
        let running = &self.running;
        set(&running.transaction, "oncomplete", &JsValue::NULL);
        set(&running.transaction, "onabort", &JsValue::NULL);
        if let Some(last) = running.asked.take().last() {
            set(last, "onsuccess", &JsValue::NULL);
        }
        drop(running.script.take());
        drop(running.timer.take());
    }
}
