//! The class `SessionView`: snapshots of a session for a page (R56).
//!
//! A message becomes a JavaScript object once, and again only when something about it changes (`view_message.rs`); the
//! snapshot is the same object until anything does.

use crate::clock::Ms;
use crate::history::{Alternatives, History};
use crate::message::Message;
use crate::run::{PartialAnswer, Run};
use crate::session::{OpenSession, PendingRun, PendingState};
use crate::web::conversion::convert::{object_to_js, set};
use crate::web::conversion::view_message::{MessageForm, PartSource, ShownMessage, ViewMessage};
use crate::web::host::view_state::{ViewState, WINDOW};
use crate::web::promise::promise;
use js_sys::{Array, Function, Promise};
use std::collections::BTreeMap;
use std::rc::Rc;
use wasm_bindgen::prelude::*;

/// Makes the last snapshot of a session whose store is closed, if a page shows it, and drops everything else.
pub fn release_view(inner: &Rc<OpenSession>) {
    let surface = inner.web_surface();
    let shown = !surface.view.borrow().messages.is_empty();
    let kept = shown.then(|| surface.view.borrow().snapshot.clone()).flatten();
    let last = if shown { Some(kept.unwrap_or_else(|| snapshot(inner))) } else { None };
    *surface.view.borrow_mut() = ViewState { snapshot: last, released: true, ..ViewState::default() };
}

/// The view of a session.
#[wasm_bindgen(js_name = SessionView, skip_typescript)]
pub struct JsSessionView {
    inner: Rc<OpenSession>,
}

impl JsSessionView {
    pub fn of(inner: Rc<OpenSession>) -> Self {
        Self { inner }
    }
}

#[wasm_bindgen(js_class = SessionView)]
impl JsSessionView {
    /// Returns the snapshot: the same object until something changes.
    #[wasm_bindgen(js_name = getSnapshot)]
    pub fn get_snapshot(&self) -> JsValue {
        let surface = self.inner.web_surface();
        if let Some(kept) = &surface.view.borrow().snapshot {
            return kept.clone();
        }
        let snapshot = snapshot(&self.inner);
        surface.view.borrow_mut().snapshot = Some(snapshot.clone());
        snapshot
    }

    /// Adds a listener to changes; returns the function that removes it.
    pub fn subscribe(&self, listener: Function) -> Function {
        self.inner.subscribe(listener)
    }

    /// Shows older messages. Resolves to false if there are none.
    pub fn older(&self) -> Promise {
        let inner = self.inner.clone();
        promise(async move {
            inner.read_readable().await?;
            let surface = inner.web_surface();
            let more = inner.log.borrow().history.messages().len() > surface.view.borrow().window;
            if more {
                // Grows with the window, since each snapshot lists the whole window: paging to the end must not cost
                // its square.
                let mut view = surface.view.borrow_mut();
                view.window += WINDOW.max(view.window / 2);
                drop(view);
                inner.notify();
            }
            Ok(more.into())
        })
    }
}

fn snapshot(inner: &Rc<OpenSession>) -> JsValue {
    // The clock may be a function of the application, which may read the view.
    let now = inner.context.now();
    inner.read_branches_soon();
    inner.show_stored_results();
    let run = inner.live_run();
    let log = inner.log.borrow();
    let all_pending = inner.pending.borrow();
    let pending = inner.shown_pending(&all_pending, &log.head);
    let machine = run.as_ref().map(|run| run.machine());
    // Of a turn that goes on, history has a part (modes `call` and `result`): the turn knows more of its calls.
    let mut turns: Vec<(&str, &History)> =
        pending.iter().filter_map(|run| Some((run.id.as_str(), run.turn()?))).collect();
    turns.extend(machine.as_ref().map(|machine| (machine.id(), machine.live())));
    let surface = inner.web_surface();
    let mut view = surface.view.borrow_mut();
    let mut builder = SnapshotBuilder::new(inner, log.alternatives(), std::mem::take(&mut view.messages));
    let is_whole = log.is_whole();
    let failure = inner.read_failure.borrow();
    let is_loading = !is_whole && failure.is_none();
    let first = builder.stored(&log.history, &turns, (view.window, is_loading));
    let mut shown_run = JsValue::NULL;
    for pending in pending {
        if let Some(turn) = pending.turn() {
            builder.turn(&log.history, turn);
            if let Some(partial) = &pending.partial {
                let source = PartSource::Answer { revision: pending.partial_revision };
                builder.partial(&log.history, turn, (partial, source), pending.state == PendingState::Live);
            }
        }
        shown_run = pending_run_to_js(pending);
    }
    if let Some((run, machine)) = run.as_ref().zip(machine) {
        builder.live_turn(&log.history, &machine, now);
        shown_run = live_run_to_js(&machine);
        set(&shown_run, "cancel", &surface.cancel_function(run));
    }
    let items = builder.items;
    view.messages = builder.new;
    let mut queue = SnapshotBuilder::new(inner, log.alternatives(), std::mem::take(&mut view.queued));
    inner.visit_queued(&all_pending, &mut |question| queue.turn(&log.history, question));
    view.queued = queue.new;
    let value = object_to_js(&|out| {
        #[allow(clippy::cast_precision_loss)]
        out.bool("loading", is_loading)
            .number("revision", log.head.history_revision)
            .text("branch", &inner.branch_name())
            .bool("hasOlder", first > 0 || !is_whole);
        if let Some(failure) = &*failure {
            out.object("readError", |out| {
                out.text("code", failure.code.as_str()).text("message", &failure.message);
            });
        }
    });
    set(&value, "messages", &items);
    set(&value, "queued", &queue.items);
    set(&value, "run", &shown_run);
    value
}

/// The run of this tab, for the snapshot.
fn live_run_to_js(machine: &Run) -> JsValue {
    object_to_js(&|out| {
        out.text("id", machine.id()).text("status", machine.status().as_str());
        if let Some(at) = machine.retry_at() {
            out.number("retryAt", at);
        }
    })
}

fn pending_run_to_js(run: &PendingRun) -> JsValue {
    object_to_js(&|out| {
        out.text("id", &run.id).text("status", run.state.as_str());
        if let PendingState::Failed(code, message) = &run.state {
            out.object("error", |out| {
                out.text("code", code).text("message", message);
            });
        }
    })
}

/// Builds a snapshot and reuses the objects of unchanged messages.
struct SnapshotBuilder<'v> {
    /// The session's id.
    id: &'v str,
    alternatives: &'v Alternatives,
    old: Vec<ViewMessage>,
    /// The index at which the next message is expected: messages keep their order.
    at: usize,
    /// Indexes of the old messages by id, built when one is not at the expected index.
    indexes: Option<BTreeMap<String, usize>>,
    new: Vec<ViewMessage>,
    items: Array,
}

impl<'v> SnapshotBuilder<'v> {
    /// Creates a builder that reuses `old`, the messages of the last snapshot.
    fn new(session: &'v OpenSession, alternatives: &'v Alternatives, old: Vec<ViewMessage>) -> Self {
        let (new, items) = (Vec::new(), Array::new());
        Self { id: &session.id, alternatives, old, at: 0, indexes: None, new, items }
    }

    /// Adds the newest messages of history that fit into the window, and returns the index of the first one. Of a turn
    /// that goes on, `turns` knows more than history does.
    fn stored(&mut self, stored: &History, turns: &[(&str, &History)], (window, is_loading): (usize, bool)) -> usize {
        let all = stored.messages();
        // The first message of a log that was read by its end waits for the one before it, which it refers to.
        let first = all.len().saturating_sub(window).max(usize::from(is_loading)).min(all.len());
        let mut before = first.checked_sub(1).and_then(|at| all.get(at)).map(|message| message.id.as_str());
        for message in all.get(first..).unwrap_or(&[]) {
            let run = message.run_id.as_deref();
            let turn = turns.iter().find(|(id, turn)| Some(*id) == run && turn.message(&message.id).is_some());
            let history = turn.map_or(stored, |(_, turn)| turn);
            self.message(&ShownMessage {
                message,
                source: PartSource::Message,
                history,
                session: self.id,
                previous: before,
                form: MessageForm { saved: true, streaming: false },
                alternatives: self.alternatives,
                annotations: stored.annotation_count(&message.id),
            });
            before = Some(&message.id);
        }
        first
    }

    /// Adds the turn of this tab's run, and its answer as far as it has come.
    fn live_turn(&mut self, stored: &History, machine: &Run, now: Ms) {
        self.turn(stored, machine.live());
        match machine.partial_answer(now) {
            Some(PartialAnswer::Incoming(answer)) => {
                let source = PartSource::Incoming(&answer);
                self.partial(stored, machine.live(), (&answer.message(), source), true);
            }
            Some(PartialAnswer::Cut(message)) => {
                self.partial(stored, machine.live(), (message, PartSource::Answer { revision: 0 }), true);
            }
            None => {}
        }
    }

    /// Adds a turn that history does not hold.
    fn turn(&mut self, stored: &History, turn: &History) {
        for message in turn.messages().iter().filter(|message| !message.source.is_of_provider()) {
            self.unsaved(stored, turn, (message, PartSource::Message), false);
        }
    }

    /// Adds the answer of a turn that is coming in, or was cut.
    fn partial(&mut self, stored: &History, turn: &History, answer: (&Message, PartSource<'_>), live: bool) {
        if turn.message(&answer.0.id).is_none() {
            self.unsaved(stored, turn, answer, live);
        }
    }

    fn unsaved(
        &mut self,
        stored: &History,
        history: &History,
        (message, source): (&Message, PartSource<'_>),
        streaming: bool,
    ) {
        // The turn is appended before the run knows.
        if stored.message(&message.id).is_none() {
            let before = self.new.last().map(|shown| shown.id.clone());
            let (session, previous, form) = (self.id, before.as_deref(), MessageForm { saved: false, streaming });
            let alternatives = self.alternatives;
            let shown =
                ShownMessage { message, source, history, session, previous, form, alternatives, annotations: 0 };
            self.message(&shown);
        }
    }

    /// Returns the index of a message in the last snapshot.
    fn index_of(&mut self, id: &str) -> Option<usize> {
        // It is the next one, except after a change in the middle.
        if self.old.get(self.at).is_some_and(|old| old.id == id) {
            return Some(self.at);
        }
        let old = &self.old;
        let indexes = self.indexes.get_or_insert_with(|| {
            let mut indexes = BTreeMap::new();
            indexes.extend(old.iter().enumerate().map(|(at, shown)| (shown.id.clone(), at)));
            indexes
        });
        indexes.get(id).copied()
    }

    fn message(&mut self, shown: &ShownMessage<'_>) {
        let found = self.index_of(&shown.message.id);
        self.at = found.map_or(self.at, |at| at + 1);
        let new = shown.build(found.and_then(|at| self.old.get(at)));
        self.items.push(&new.value);
        self.new.push(new);
    }
}
