//! The state of an open session, shared by its class, its view and its runs.

use super::listeners::Listeners;
use super::live_run::LiveRun;
use super::platform::random_id;
use super::promise::{Work, deferred, in_background};
use super::store_context::StoreContext;
use super::unfinished_run::UnfinishedRun;
use super::view_state::ViewState;
use super::write_queue::WriteQueue;
use crate::error::{Code, Error, Result};
use crate::json::Json;
use crate::render::Renderer;
use crate::replay::{Policy, PolicyLayer};
use crate::run::OnStop;
use crate::session_head::RunEntry;
use crate::sorted::Sorted;
use crate::store::{Change, Committed, HeadEdit, SessionLog, commit, refresh};
use js_sys::Function;
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

/// An open session.
pub struct SessionInner {
    pub context: Rc<StoreContext>,
    pub id: String,
    pub log: RefCell<SessionLog>,
    pub renderer: RefCell<Renderer>,
    pub view: RefCell<ViewState>,
    pub listeners: Listeners,
    pub on_stop: Cell<OnStop>,
    /// The order of appends, updates and saves.
    pub writes: WriteQueue,
    generation: Cell<u64>,
    policy: RefCell<PolicyLayer>,
    head_fields: RefCell<HeadFields>,
    pub state: RefCell<Sorted<String, Json>>,
    run: RefCell<Option<Rc<dyn LiveRun>>>,
    /// A weak reference to itself, for background work.
    pub own: Weak<SessionInner>,
    /// Unfinished runs that are not under way here, in the order in which they began.
    pub unfinished: RefCell<Vec<UnfinishedRun>>,
    /// The head's runs when [`update_unfinished`](Self::update_unfinished) last read them.
    pub runs_at_last_update: RefCell<Vec<RunEntry>>,
    pub updating_unfinished: Cell<bool>,
    pub update_unfinished_again: Cell<bool>,
    /// Runs of other tabs whose end is waited for.
    pub awaited: RefCell<Sorted<String, ()>>,
    /// A change in another tab was announced while an earlier one is being read.
    refresh_again: Cell<bool>,
    refreshing: Cell<bool>,
    /// Sends that wait for the run before them.
    queue: RefCell<Vec<Function>>,
    /// A send that has been let in and has no run yet.
    entering: Cell<bool>,
}

/// Fields of the head that were given when the session was opened. They are written with the next append.
#[derive(Default)]
pub struct HeadFields {
    pub title: Option<String>,
    pub channel: Option<String>,
    pub metadata: Option<Json>,
}

impl SessionInner {
    /// Whether the session was deleted after it was opened: here, in another tab, or with the database.
    pub fn is_deleted(&self) -> bool {
        self.log.borrow().is_deleted()
    }

    /// Makes an open session of what was read.
    pub fn new(context: &Rc<StoreContext>, id: &str, log: SessionLog) -> Rc<Self> {
        Rc::new_cyclic(|own| Self {
            own: own.clone(),
            context: context.clone(),
            id: id.to_owned(),
            generation: Cell::new(log.generation),
            log: RefCell::new(log),
            renderer: RefCell::default(),
            view: RefCell::default(),
            listeners: Listeners::default(),
            on_stop: Cell::default(),
            writes: WriteQueue::default(),
            policy: RefCell::default(),
            head_fields: RefCell::default(),
            state: RefCell::default(),
            run: RefCell::default(),
            unfinished: RefCell::default(),
            runs_at_last_update: RefCell::default(),
            updating_unfinished: Cell::new(false),
            update_unfinished_again: Cell::new(false),
            awaited: RefCell::default(),
            refreshing: Cell::new(false),
            refresh_again: Cell::new(false),
            queue: RefCell::default(),
            entering: Cell::new(false),
        })
    }

    /// Takes the options with which the session was opened. Absent ones keep their value.
    pub fn configure(&self, fields: HeadFields, policy: Option<PolicyLayer>, on_stop: Option<OnStop>) {
        if let Some(policy) = policy {
            self.policy.replace(policy);
        }
        if let Some(on_stop) = on_stop {
            self.on_stop.set(on_stop);
        }
        self.head_fields.replace(fields);
        self.apply_fields_to_head();
    }

    /// Drops the fields that were given when the session was opened: `update` replaces them.
    pub fn drop_head_fields(&self) {
        self.head_fields.take();
    }

    fn apply_fields_to_head(&self) {
        let fields = self.head_fields.borrow();
        let head = &mut self.log.borrow_mut().head;
        if fields.title.is_some() {
            head.title.clone_from(&fields.title);
        }
        if fields.channel.is_some() {
            head.channel.clone_from(&fields.channel);
        }
        if fields.metadata.is_some() {
            head.metadata.clone_from(&fields.metadata);
        }
    }

    /// The session's channel.
    pub fn channel(&self) -> Option<String> {
        self.log.borrow().head.channel.clone()
    }

    /// All levels of replay settings, with those of one call.
    pub fn policy(&self, call: PolicyLayer, tools: Sorted<String, crate::tool::Window>) -> Policy {
        let channel =
            self.channel().and_then(|channel| self.context.channels.get(&channel).cloned()).unwrap_or_default();
        Policy { call, tools, session: self.policy.borrow().clone(), channel, global: self.context.global.clone() }
    }

    /// Reads what others appended; true when something changed.
    pub fn refresh(&self) -> Work<'_, Result<bool>> {
        Box::pin(async {
            let changed = refresh(&*self.context.store, &self.log).await?;
            if changed {
                let found = self.log.borrow().findings.clone();
                self.context.report_damage(&found);
                self.history_moved();
                self.apply_fields_to_head();
            }
            // A write of ours may have read what another tab wrote before it.
            let looks = changed || self.runs_changed();
            Ok((looks && self.update_unfinished().await) || changed)
        })
    }

    /// Whether an unfinished run or one of history has that id.
    pub fn has_run(&self, run: &str) -> bool {
        let log = self.log.borrow();
        log.head.run(run).is_some()
            || log.history.messages().iter().any(|message| message.run_id.as_deref() == Some(run))
    }

    /// Reads the session again after a change in another tab. Further changes during the read cause one more read.
    pub fn on_change_elsewhere(self: &Rc<Self>) {
        if self.refreshing.replace(true) {
            self.refresh_again.set(true);
            return;
        }
        let session = self.clone();
        in_background(Box::pin(async move {
            loop {
                session.refresh_again.set(false);
                // A hint only: who reads next reads for sure, and hears of the failure then.
                if session.refresh().await.unwrap_or(false) {
                    session.notify();
                }
                if !session.refresh_again.get() {
                    break;
                }
            }
            session.refreshing.set(false);
        }));
    }

    fn history_moved(&self) {
        let generation = self.log.borrow().generation;
        if self.generation.replace(generation) != generation {
            self.renderer.borrow_mut().clear();
            self.view.borrow_mut().clear();
        }
    }

    /// Writes a change, whatever other writers appended in the meantime; gives the revision.
    pub fn commit(&self, change: Change) -> Work<'_, Result<u64>> {
        let committing = self.append_change(change);
        Box::pin(async move { Ok(committing.await?.revision) })
    }

    /// Writes a change, whatever other writers appended in the meantime.
    pub fn append_change(&self, mut change: Change) -> Work<'_, Result<Committed>> {
        Box::pin(async move {
            self.context.check_open()?;
            let state = Rc::new(self.state.borrow().clone());
            if !state.is_empty() {
                change.edit = Some(with_state(change.edit.take(), state.clone()));
            }
            let shows = !change.entries.is_empty() || change.edit.is_some();
            let committed = commit(&*self.context.store, &self.log, &change).await?;
            let found = self.log.borrow().findings.clone();
            self.context.report_damage(&found);
            // What was set while this was being written waits for the next one.
            self.state.borrow_mut().retain(|key, value| state.get(key) != Some(value));
            self.history_moved();
            if shows {
                self.context.announce_change(&self.id, committed.revision, false);
            }
            Ok(committed)
        })
    }

    /// A change that changes nothing yet.
    pub fn change(&self) -> Change {
        Change { operation: random_id(), at: self.context.now(), ..Change::default() }
    }

    /// Tells whoever watches this session.
    pub fn notify(&self) {
        self.view.borrow_mut().touch();
        self.listeners.call(&JsValue::UNDEFINED);
    }

    /// The run that lives here.
    pub fn live_run(&self) -> Option<Rc<dyn LiveRun>> {
        self.run.borrow().clone()
    }

    pub fn has_live_run(&self) -> bool {
        self.run.borrow().is_some()
    }

    /// Lets a send in when no other run is under way here.
    ///
    /// # Errors
    /// `busy`, unless it may queue.
    pub async fn enter(&self, may_queue: bool) -> Result<()> {
        while self.run.borrow().is_some() || self.entering.get() {
            if !may_queue {
                return Err(Error::new(
                    Code::Busy,
                    "a run of this session is under way here; wait for it, cancel it, or pass `whenBusy: \"queue\"`",
                ));
            }
            let (turn, resolve) = deferred();
            self.queue.borrow_mut().extend(resolve);
            // A resolved promise does not fail.
            let _ = JsFuture::from(turn).await;
            self.context.check_open()?;
        }
        self.entering.set(true);
        Ok(())
    }

    /// The send that was let in has its run, or has failed.
    pub fn entered(&self, run: Option<Rc<dyn LiveRun>>) {
        let failed = run.is_none();
        *self.run.borrow_mut() = run;
        self.entering.set(false);
        if failed {
            self.next_in_queue();
        }
    }

    /// The run is over: the next send may come.
    pub fn left(&self, run: &dyn LiveRun) {
        let own = self.run.borrow().as_ref().is_some_and(|live| live.id() == run.id());
        if own {
            *self.run.borrow_mut() = None;
            self.keep_ended_run(run);
            self.update_unfinished_soon();
            self.next_in_queue();
        }
    }

    /// The store was closed: the run here is nobody's any more, and who waits hears of it. What was read is freed; a page goes on
    /// painting what it has.
    pub fn close(&self) {
        let run = self.run.borrow_mut().take();
        if let Some(run) = run {
            run.release();
        }
        for waiting in self.queue.take() {
            // Resolving a promise does not throw.
            let _ = waiting.call0(&JsValue::NULL);
        }
        self.listeners.clear();
        self.log.borrow_mut().release();
        self.renderer.borrow_mut().clear();
        self.unfinished.borrow_mut().clear();
        self.drop_head_fields();
        *self.state.borrow_mut() = Sorted::new();
    }

    fn next_in_queue(&self) {
        let next = if self.queue.borrow().is_empty() { None } else { Some(self.queue.borrow_mut().remove(0)) };
        if let Some(next) = next {
            // Resolving a promise does not throw.
            let _ = next.call0(&JsValue::NULL);
        }
    }
}

/// An edit that writes the state bag, too.
fn with_state(edit: Option<HeadEdit>, state: Rc<Sorted<String, Json>>) -> HeadEdit {
    Box::new(move |head| {
        if let Some(edit) = &edit {
            edit(head);
        }
        for (key, value) in state.entries() {
            let at = head.state.partition_point(|(own, _)| own < key);
            match head.state.get_mut(at).filter(|(own, _)| own == key) {
                Some((_, own)) => own.clone_from(value),
                None => head.state.insert(at, (key.clone(), value.clone())),
            }
        }
    })
}
