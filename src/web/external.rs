//! The class `ExternalLoop`: a loop that the application drives and checkpoints here (R19).

use super::assembler::dialect;
use super::convert::body_json;
use super::option_reader::read_optional;
use super::options::ExternalOptions;
use super::promise::promise;
use super::provider_hooks::ProviderHooks;
use super::session::JsSession;
use crate::error::{Error, ErrorCode, Result};
use crate::history::JoinedEntries;
use crate::replay::{Callback, PolicyLayer};
use crate::run::{ExternalBody, ExternalContext, ExternalLoop};
use crate::session::{AppendOrigin, AppendedContent, MAX_JOIN_ATTEMPTS, OpenSession};
use js_sys::Promise;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use wasm_bindgen::prelude::*;

/// A loop that the application drives.
#[wasm_bindgen(js_name = ExternalLoop, skip_typescript)]
pub struct JsExternalLoop {
    session: Rc<OpenSession>,
    state: Rc<RefCell<ExternalLoop>>,
    /// The revision of the history that the loop continues.
    known: Rc<Cell<u64>>,
    /// Gives what it stores to the history providers.
    store: Option<Callback>,
}

#[wasm_bindgen(js_class = Session)]
impl JsSession {
    /// Begins a loop that the application drives.
    pub fn external(&self, options: &JsValue, hooks: &JsValue) -> std::result::Result<JsExternalLoop, JsValue> {
        self.inner.context.check_open()?;
        let options: ExternalOptions = read_optional("the options", options)?;
        let persistence = options.persistence.map_or(self.inner.persistence.get(), |option| option.0);
        let state = Rc::new(RefCell::new(ExternalLoop::new(persistence)));
        let known = Rc::new(Cell::new(self.inner.revision()));
        let ProviderHooks { store, .. } = ProviderHooks::read(hooks);
        Ok(JsExternalLoop { session: self.inner.clone(), state, known, store })
    }
}

#[wasm_bindgen(js_class = ExternalLoop)]
impl JsExternalLoop {
    /// Stores what the body adds to the session, or keeps it for `end` in mode `run`.
    pub fn checkpoint(&self, body: &JsValue, dialect_name: &str) -> Promise {
        let (session, state, known) = (self.session.clone(), self.state.clone(), self.known.clone());
        let store = self.store.clone();
        // Read at the call: the caller may change it while this waits.
        let body = dialect(dialect_name).and_then(|dialect| ExternalBody::decode(dialect, body_json(body)?.view()));
        let turn = session.writes.enter();
        promise(async move {
            let turn = turn.start().await;
            let body = body?;
            state.borrow().check_open()?;
            session.read_older().await?;
            let outcome = if state.borrow().stores_checkpoints() {
                session.store_checkpoint(&state, &body).await
            } else {
                // Checked now, stored at the end.
                session.join_checkpoint(&state, &body).await.map(|_| AppendedContent::default())
            };
            let content = outcome.map_err(|error| session.conflict_of_loops(error, known.get()))?;
            known.set(session.revision());
            state.borrow_mut().accept(body, &session.log.borrow().history);
            drop(turn);
            session.give_to_providers(store.as_ref(), &content).await;
            Ok(JsValue::UNDEFINED)
        })
    }

    /// Ends the loop, and in mode `run` stores its last checkpoint.
    pub fn end(&self) -> Promise {
        let (session, state, known) = (self.session.clone(), self.state.clone(), self.known.clone());
        let store = self.store.clone();
        let turn = session.writes.enter();
        promise(async move {
            let turn = turn.start().await;
            let mut content = AppendedContent::default();
            let pending = state.borrow().pending();
            if let Some(body) = pending {
                session.read_older().await?;
                let stored = session.store_checkpoint(&state, &body).await;
                content = stored.map_err(|error| session.conflict_of_loops(error, known.get()))?;
            }
            let warning = state.borrow_mut().end();
            session.context.warn(warning.as_slice());
            drop(turn);
            session.give_to_providers(store.as_ref(), &content).await;
            Ok(JsValue::UNDEFINED)
        })
    }
}

impl OpenSession {
    /// Appends what a checkpoint adds, if it adds anything, and returns it.
    async fn store_checkpoint(&self, state: &RefCell<ExternalLoop>, body: &ExternalBody) -> Result<AppendedContent> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let mut joined = self.join_checkpoint(state, body).await?;
            if joined.entries.is_empty() {
                return Ok(AppendedContent::default());
            }
            // Of two processes that checkpoint one loop the second appends only what the first has not.
            let expected = self.log.borrow().head.history_revision;
            let change = self.joined_change(&mut joined, Some(expected));
            let content = AppendedContent::of(&change.entries);
            match self.append_change(change).await {
                Err(error) if error.code == ErrorCode::Conflict && attempts < MAX_JOIN_ATTEMPTS => {}
                outcome => {
                    let message_ids = outcome?.message_ids;
                    self.context.warn(&joined.report);
                    self.notify();
                    return Ok(AppendedContent { message_ids, ..content });
                }
            }
        }
    }

    /// Returns the error of a checkpoint that does not continue history: a conflict, if another writer has appended since `known`.
    fn conflict_of_loops(&self, error: Error, known: u64) -> Error {
        let revision = self.revision();
        if error.code != ErrorCode::InvalidInput || revision == known {
            return error;
        }
        let message = "another writer has appended since this loop's last checkpoint, and the checkpoint does not continue that; read the \
                       session again, and begin another loop from there";
        Error::new(ErrorCode::Conflict, message).with(|details| {
            details.number("expected", known).number("revision", revision);
        })
    }

    /// Joins a checkpoint to the history; if it does not continue that, to the history as other processes have left it.
    async fn join_checkpoint(&self, state: &RefCell<ExternalLoop>, body: &ExternalBody) -> Result<JoinedEntries> {
        match self.try_join_checkpoint(state, body) {
            Err(_) if self.refresh().await? => self.try_join_checkpoint(state, body),
            outcome => outcome,
        }
    }

    fn try_join_checkpoint(&self, state: &RefCell<ExternalLoop>, body: &ExternalBody) -> Result<JoinedEntries> {
        // The callbacks `now` and `newId` are called before anything is borrowed.
        self.context.host.draw_ids();
        let origin = self.origin(AppendOrigin::default());
        let policy = self.policy(PolicyLayer::default(), BTreeMap::new());
        let log = self.log.borrow();
        let mut context = ExternalContext {
            history: &log.history,
            policy: &policy,
            now: origin.at,
            origin: &origin,
            ids: self.context.ids(),
        };
        state.borrow().join(body, &mut context)
    }
}
