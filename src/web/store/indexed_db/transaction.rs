//! Runs a transaction without ever awaiting inside it.
//!
//! An IndexedDB transaction accepts requests only during the callbacks of its own requests, and such a callback wakes a
//! Rust future but does not run it. So a transaction is a [`Script`] that is called in the callback; only the
//! transaction's end is awaited.

use super::failure::IdbFailure;
use super::wait::{EventHandler, OneShot, Timeout, handler};
use crate::clock::Ms;
use crate::error::{Error, ErrorCode};
use crate::web::conversion::convert::set;
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

/// The next step of a script.
pub(super) enum ScriptStep {
    /// Continue with the answers to these requests, in their order.
    Request(Vec<IdbRequest>),
    /// The script is finished, and wrote so many bytes.
    Done(u64),
}

/// What a transaction does. A script keeps what it finds.
pub(super) trait Script {
    /// The object stores that the script needs. They are locked in all tabs.
    fn stores(&self) -> Vec<&'static str>;

    /// Restarts the script, for another transaction.
    fn restart(&mut self) {}

    /// Called first without answers, then with the answers to the last requests.
    fn step(&mut self, transaction: &IdbTransaction, answers: &[JsValue]) -> Result<ScriptStep, IdbFailure>;
}

/// A script, shared by its transaction and the reader of its findings.
pub(super) type SharedScript = Rc<RefCell<dyn Script>>;

/// Runs a script to the transaction's end. If the future is dropped, the script takes no further step; since a script
/// writes in its last step, everything is written or nothing. An append that writes ahead of its last step rolls back
/// unless that step confirms it.
///
/// `patience` is the maximum time of a step. Writing takes up to a second more for each megabyte. A transaction that
/// does not write is not awaited further than its last answer.
pub(super) async fn run(
    transaction: IdbTransaction,
    script: SharedScript,
    patience: Ms,
    writes: bool,
) -> Result<(), IdbFailure> {
    let handlers = begin(transaction, script, patience, writes);
    handlers.running.end.wait().await
}

/// Begins to run a script in a transaction whose end somebody else awaits. What is returned must be kept until then.
pub(super) fn begin(
    transaction: IdbTransaction,
    script: SharedScript,
    patience: Ms,
    writes: bool,
) -> TransactionHandlers {
    let running = Rc::new(RunningTransaction {
        transaction,
        patience,
        writes,
        script: RefCell::new(Some(script)),
        requests: RefCell::default(),
        answered: RefCell::default(),
        failure: RefCell::default(),
        timer: RefCell::default(),
        end: OneShot::new(),
    });
    let handlers = TransactionHandlers::attach(&running);
    running.step(&[]);
    handlers
}

struct RunningTransaction {
    transaction: IdbTransaction,
    patience: Ms,
    writes: bool,
    /// None after the last step.
    script: RefCell<Option<SharedScript>>,
    requests: RefCell<Vec<IdbRequest>>,
    /// The handler of every request, as JavaScript has it; [`TransactionHandlers`] owns it.
    answered: RefCell<JsValue>,
    /// The reason of the abort that is under way.
    failure: RefCell<Option<IdbFailure>>,
    timer: RefCell<Option<Timeout>>,
    end: OneShot<()>,
}

impl RunningTransaction {
    fn step(self: &Rc<Self>, answers: &[JsValue]) {
        let Some(script) = self.script.take() else { return };
        let step = script.borrow_mut().step(&self.transaction, answers);
        let patience = match step {
            Ok(ScriptStep::Request(requests)) => {
                // Requests are answered in their order, so the last answer is the signal.
                let Some(last) = requests.last() else {
                    return self.fail(IdbFailure::new(ErrorCode::Internal, "a transaction made no request"));
                };
                set(last, "onsuccess", &self.answered.borrow());
                self.requests.replace(requests);
                self.script.replace(Some(script));
                self.patience
            }
            Ok(ScriptStep::Done(written)) => {
                // Saves a turn of the event loop, and releases the lock even if the page is frozen now. Without this
                // call the transaction commits by itself, so a failure does not matter.
                let _ = self.transaction.unchecked_ref::<TransactionExt>().commit();
                if !self.writes {
                    return self.end.set(Ok(()));
                }
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
        for request in self.requests.take() {
            match request.result() {
                Ok(answer) => answers.push(answer),
                Err(thrown) => return self.fail(thrown.into()),
            }
        }
        self.step(&answers);
    }

    /// Rolls back. The failure is reported when that is done.
    fn fail(&self, failure: IdbFailure) {
        let failure = self.failure.borrow_mut().get_or_insert(failure).clone();
        if self.transaction.abort().is_err() {
            self.end.set(Err(failure)); // it is over already, so no event will arrive
        }
    }

    fn completed(self: &Rc<Self>) {
        let whole = self.script.borrow().is_none();
        self.end.set(if whole { Ok(()) } else { Err(IdbFailure::found_nothing()) });
    }

    fn aborted(self: &Rc<Self>) {
        let reason = || {
            let error = self.transaction.error();
            error.map_or_else(IdbFailure::ended, |error| IdbFailure::of_transaction(&JsValue::from(error)))
        };
        let failure = self.failure.take().unwrap_or_else(reason);
        self.end.set(Err(failure));
    }

    /// Ends a step that took too long: another tab holds the lock, or the disk does not answer. Waits for no event,
    /// since none may arrive.
    fn give_up(self: &Rc<Self>) {
        let message = match self.transaction.abort() {
            Ok(()) => {
                "the store was busy for too long, perhaps held by a tab that is frozen; nothing was written, try again"
            }
            // A commit under way cannot be stopped.
            Err(_) => {
                "the store did not confirm a write in time; whether it was written is unknown, repeat it with the same operation"
            }
        };
        self.end.set(Err(Error::new(ErrorCode::Busy, message).into()));
    }
}

/// The closures that a transaction calls, kept until it ended.
pub(super) struct TransactionHandlers {
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
        if let Some(last) = running.requests.take().last() {
            set(last, "onsuccess", &JsValue::NULL);
        }
        if running.script.take().is_some() {
            // Nothing that was written ahead may be committed. A transaction that is over already cannot be aborted.
            let _ = running.transaction.abort();
        }
        drop(running.timer.take());
    }
}
