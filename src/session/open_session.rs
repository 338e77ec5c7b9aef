//! The state of an open session, shared by what shows it and its runs.

use super::compaction_state::{CompactionState, RequestSetup};
use super::context::StoreContext;
use super::head_fields::HeadFields;
use super::host::SessionSurface;
use super::left_out::LeftOut;
use super::live_run::LiveRun;
use super::pending_run::{PendingRun, TurnSource};
use super::read_error::ReadError;
use super::run_queue::RunQueue;
use super::shared_task::SharedTask;
use super::unsaved_request::{UnsavedRequest, edit_after};
use super::write_queue::{WriteQueue, WriteTurn};
use crate::clock::Ms;
use crate::error::{Error, ErrorCode, Result};
use crate::finding::{Action, Finding, FindingCode};
use crate::history::StoredSummary;
use crate::json::Json;
use crate::owner::{OnConflict, StateOwner};
use crate::render::Renderer;
use crate::replay::{Callback, Policy, PolicyLayer};
use crate::run::{JournalCache, OnStop, Persistence, RunStatus};
use crate::session_head::{RunEntry, SessionHead};
use crate::store::{Change, Committed, ConflictPause, HeadEdit, SessionLog, refresh};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::{Rc, Weak};

/// An open session.
pub struct OpenSession {
    /// The store that it is in.
    pub context: Rc<StoreContext>,
    /// Its id.
    pub id: String,
    /// What is read of it.
    pub log: RefCell<SessionLog>,
    /// Composes its requests.
    pub renderer: RefCell<Renderer>,
    /// What shows it.
    pub surface: Rc<dyn SessionSurface>,
    /// What is stored of a run that is cancelled, unless the run says otherwise.
    pub on_stop: Cell<OnStop>,
    /// When history is written, unless a run says otherwise.
    pub persistence: Cell<Persistence>,
    /// True if a result that ends a run is not stored.
    pub trim_trailing_results: Cell<bool>,
    /// What happens if a service keeps the conversation although the owner is another one.
    on_conflict: Cell<Option<OnConflict>>,
    /// The application chose the owner.
    has_chosen_owner: Cell<bool>,
    /// How long journal writes of its runs are gathered, in milliseconds.
    pub flush_ms: Cell<Ms>,
    /// Orders appends, updates and saves.
    pub writes: WriteQueue,
    /// Orders the commits of this process. Two at once would conflict, and a journal is read in the order in which it
    /// was written.
    commits: WriteQueue,
    generation: Cell<u64>,
    policy: RefCell<PolicyLayer>,
    head_fields: RefCell<HeadFields>,
    /// Values of the state bag that are not stored yet.
    pub state: RefCell<BTreeMap<String, Json>>,
    run: RefCell<Option<Rc<dyn LiveRun>>>,
    /// Runs of this tab that were released while they wait for an approval.
    waiting_runs: RefCell<Vec<Weak<dyn LiveRun>>>,
    /// For background work, which must not keep the session.
    pub weak_self: Weak<OpenSession>,
    /// The session itself, while it must stay in memory although no object of the application holds it.
    hold: RefCell<Option<Rc<OpenSession>>>,
    /// Pending runs that are not under way in this tab, oldest first.
    pub pending: RefCell<Vec<PendingRun>>,
    /// The head's runs when [`update_pending`](Self::update_pending) last read them.
    pub runs_at_last_update: RefCell<Vec<RunEntry>>,
    /// The update of `pending` that is under way.
    pub pending_update: SharedTask,
    /// Another update was asked for meanwhile.
    pub update_pending_again: Cell<bool>,
    /// Live runs of other tabs whose release this tab waits for.
    pub awaited_runs: RefCell<BTreeSet<String>>,
    /// Another change was announced while `refreshing`.
    refresh_again: Cell<bool>,
    refreshing: Cell<bool>,
    /// The reads of what was left out when it was opened.
    pub left_out: LeftOut,
    /// The last read failed: what is shown may lack something (R7).
    pub read_failure: RefCell<Option<ReadError>>,
    /// How many forks of the session were reported.
    pub reported_forks: Cell<u64>,
    /// A background task merges old records, or waits for the session to be idle.
    pub is_merging: Cell<bool>,
    /// The `run` calls that wait for the run before them.
    pub run_queue: RunQueue,
    /// A send has reserved the run, and its run does not exist yet.
    is_starting_run: Cell<bool>,
    /// What the last request was made for: a compaction asks the same model.
    pub last_request_setup: RefCell<Option<RequestSetup>>,
    /// Its compaction.
    pub compaction: CompactionState,
    /// `persist` of the tools of its runs, by tool: a result that comes later is asked about, too.
    pub persist_callbacks: RefCell<BTreeMap<String, Callback>>,
    /// What `answer` read of the journals of pending runs.
    pub journals: RefCell<JournalCache>,
    /// The number of the branch that was shown before that of a run which is not born yet.
    pub forked_branch: Cell<u64>,
    /// True while `titleSession` has not answered.
    pub is_being_titled: Cell<bool>,
    /// The number of its branch, if another session shows the one that it is opened with.
    unshown_branch: Option<u64>,
}

impl OpenSession {
    /// Returns true if the session was deleted after it was opened: in this tab, in another, or with the database.
    pub fn is_deleted(&self) -> bool {
        self.log.borrow().is_deleted()
    }

    /// Makes a session of its log.
    pub fn new(context: &Rc<StoreContext>, id: &str, log: SessionLog) -> Rc<Self> {
        Self::of_log(context, id, (log, None))
    }

    /// Makes a session of the log of another branch, with the settings of this one.
    pub(super) fn beside(&self, log: SessionLog) -> Rc<Self> {
        let branch = log.branch_number();
        let session = Self::of_log(&self.context, &self.id, (log, Some(branch)));
        session.policy.replace(self.policy.borrow().clone());
        session.compaction.automatic.replace(self.compaction.automatic.borrow().clone());
        // Others of its fields are written with the next append to the branch that is shown.
        session.head_fields.borrow_mut().owner.clone_from(&self.head_fields.borrow().owner);
        session
    }

    fn of_log(context: &Rc<StoreContext>, id: &str, (log, unshown_branch): (SessionLog, Option<u64>)) -> Rc<Self> {
        Rc::new_cyclic(|weak_self| Self {
            unshown_branch,
            weak_self: weak_self.clone(),
            context: context.clone(),
            id: id.to_owned(),
            generation: Cell::new(log.generation),
            log: RefCell::new(log),
            renderer: RefCell::default(),
            surface: context.host.surface(),
            on_stop: Cell::default(),
            persistence: Cell::default(),
            trim_trailing_results: Cell::default(),
            on_conflict: Cell::default(),
            has_chosen_owner: Cell::default(),
            flush_ms: Cell::default(),
            writes: WriteQueue::default(),
            commits: WriteQueue::default(),
            policy: RefCell::default(),
            head_fields: RefCell::default(),
            state: RefCell::default(),
            run: RefCell::default(),
            waiting_runs: RefCell::default(),
            hold: RefCell::default(),
            pending: RefCell::default(),
            runs_at_last_update: RefCell::default(),
            pending_update: SharedTask::default(),
            update_pending_again: Cell::new(false),
            awaited_runs: RefCell::default(),
            refreshing: Cell::new(false),
            refresh_again: Cell::new(false),
            is_merging: Cell::new(false),
            left_out: LeftOut::default(),
            read_failure: RefCell::default(),
            reported_forks: Cell::new(0),
            run_queue: RunQueue::default(),
            is_starting_run: Cell::new(false),
            last_request_setup: RefCell::default(),
            compaction: CompactionState::default(),
            persist_callbacks: RefCell::default(),
            journals: RefCell::default(),
            forked_branch: Cell::new(0),
            is_being_titled: Cell::new(false),
        })
    }

    /// Returns true if another session shows the branch that this session is opened with.
    pub fn is_unshown(&self) -> bool {
        self.unshown_branch.is_some()
    }

    /// Sets the options with which the session was opened. Absent ones keep their value.
    pub fn configure(&self, fields: HeadFields, policy: Option<PolicyLayer>, on_stop: Option<OnStop>) {
        if let Some(policy) = policy {
            self.policy.replace(policy);
        }
        if let Some(on_stop) = on_stop {
            self.on_stop.set(on_stop);
        }
        self.head_fields.borrow_mut().replace_with(fields);
        self.apply_fields(&mut self.log.borrow_mut().head);
    }

    /// Changes fields of the head. The caller has a turn of the session's writes.
    ///
    /// # Errors
    /// The store's own.
    pub async fn update(&self, edit: HeadEdit) -> Result<()> {
        self.context.host.draw_ids();
        {
            // Those that were given when the session was opened are replaced: all but the owner.
            let mut fields = self.head_fields.borrow_mut();
            *fields = HeadFields { owner: fields.owner.take(), ..HeadFields::default() };
        }
        self.commit(Change { edit: Some(edit), ..self.new_change() }).await?;
        self.notify();
        Ok(())
    }

    /// Writes the fields that were given when the session was opened to a head.
    pub fn apply_fields(&self, head: &mut SessionHead) {
        self.head_fields.borrow().apply(head);
    }

    /// Sets what happens if a service keeps the conversation too, and whether the application chose the owner.
    pub fn configure_owner(&self, on_conflict: Option<OnConflict>, has_chosen_owner: bool) {
        if on_conflict.is_some() {
            self.on_conflict.set(on_conflict);
        }
        if has_chosen_owner {
            self.has_chosen_owner.set(true);
        }
    }

    /// Returns what happens if a service keeps the conversation too. A session that configured nothing is warned at
    /// most (R26).
    pub fn on_conflict(&self) -> OnConflict {
        let is_chosen = self.has_chosen_owner.get() || self.owner().is_ok_and(|owner| owner != StateOwner::Session);
        let default = if is_chosen { OnConflict::Throw } else { OnConflict::Warn };
        self.on_conflict.get().unwrap_or(default)
    }

    /// Returns the owner of the conversation's state.
    ///
    /// # Errors
    /// `unsupported_version` for an owner that a newer build gave it.
    pub fn owner(&self) -> Result<StateOwner> {
        match &self.head_fields.borrow().owner {
            Some(requested) => StateOwner::from_stored(requested),
            None => StateOwner::from_stored(&self.log.borrow().head.owner),
        }
    }

    /// Drops the owner that was given when the session was opened: a run changes it.
    pub fn drop_owner_field(&self) {
        self.head_fields.borrow_mut().owner = None;
    }

    /// Returns the session's channel.
    pub fn channel(&self) -> Option<String> {
        self.log.borrow().head.channel.clone()
    }

    /// Returns all levels of replay settings, with those of one call.
    pub fn policy(&self, call: PolicyLayer, tools: BTreeMap<String, crate::tool::Window>) -> Policy {
        let named = self.channel();
        let layer = self.context.settings.channels.iter().find(|(channel, _)| Some(channel) == named.as_ref());
        let channel = layer.map(|(_, layer)| layer.clone()).unwrap_or_default();
        Policy {
            call,
            tools,
            session: self.policy.borrow().clone(),
            channel,
            global: self.context.settings.global.clone(),
            fallback: self.compaction.fallback(),
            has_dropped: self.log.borrow().head.has_dropped || self.renderer.borrow().has_unsaved_drop(),
        }
    }

    /// Reads what other writers appended. Returns true if anything changed.
    pub async fn refresh(&self) -> Result<bool> {
        self.read_older().await?;
        let known = self.known_branches();
        let changed = refresh(&*self.context.store, &self.log).await?;
        self.note_new_branches(known);
        let is_healed = self.read_failure.take().is_some();
        self.warn_of_second_writer();
        if changed {
            let findings = self.log.borrow().findings.clone();
            self.context.report_damage(&findings);
            self.drop_views_of_replaced_history();
            self.end_run_without_session();
            self.apply_fields(&mut self.log.borrow_mut().head);
            self.merge_when_idle();
        }
        // A write of this tab may have read what another tab wrote before it.
        let runs_changed = changed || self.runs_changed();
        let is_visible = (runs_changed && self.update_pending().await) || changed || is_healed;
        if is_visible {
            self.run_deferred_compaction();
        }
        Ok(is_visible)
    }

    /// Ends the run of this tab if its session was deleted elsewhere, or lost by the store: nothing of it could be
    /// stored.
    fn end_run_without_session(&self) {
        let Err(error) = self.log.borrow().writable() else { return };
        if error.code == ErrorCode::Evicted {
            self.context.was_emptied.set(true);
        }
        if let Some(run) = self.live_run().filter(|_| self.is_deleted()) {
            run.lose_session(error);
        }
    }

    /// Returns true if a pending run or a run in history has this id.
    pub fn has_run(&self, run: &str) -> bool {
        self.log.borrow().head.run(run).is_some() || self.has_stored_part(run)
    }

    /// Returns true if history has messages of this run.
    pub fn has_stored_part(&self, run: &str) -> bool {
        self.log.borrow().history.messages().iter().any(|message| message.run_id.as_deref() == Some(run))
    }

    /// Reads the session again after a change in another tab or process. Further changes during the read cause one more
    /// read.
    pub fn on_change_elsewhere(self: &Rc<Self>) {
        if self.refreshing.replace(true) {
            self.refresh_again.set(true);
            return;
        }
        let session = self.clone();
        self.context.spawn(async move {
            loop {
                session.refresh_again.set(false);
                // The announcement is a hint. The next call reads again and reports a failure.
                if session.refresh().await.unwrap_or(false) {
                    session.notify();
                }
                if !session.refresh_again.get() {
                    break;
                }
            }
            session.refreshing.set(false);
        });
    }

    /// Drops what was made of an earlier history: after the session was deleted, cleared, or replaced by another side
    /// of a fork.
    pub fn drop_views_of_replaced_history(&self) {
        let generation = self.log.borrow().generation;
        if self.generation.replace(generation) != generation {
            self.renderer.borrow_mut().clear();
            self.surface.on_history_replaced();
        }
    }

    /// Writes a change on top of what other writers appended meanwhile. Returns the new revision.
    pub async fn commit(&self, change: Change) -> Result<u64> {
        Ok(self.append_change(change).await?.revision)
    }

    /// Writes a change, and the values of the state bag that are not stored yet, on top of what other writers appended
    /// meanwhile.
    pub async fn append_change(&self, mut change: Change) -> Result<Committed> {
        let turn = self.commits.enter().start().await;
        self.context.check_open()?;
        self.read_older().await?;
        let state = Rc::new(self.state.borrow().clone());
        if !state.is_empty() {
            change.edit = Some(with_state(change.edit.take(), state.clone()));
        }
        change.notice = self.context.notice_of(&self.id);
        change.holder = Some(self.context.origin());
        let saved = self.add_unsaved_summaries(&mut change);
        let of_render = UnsavedRequest::add_to(&mut change, &self.renderer.borrow(), &self.log.borrow().head);
        let adds_messages = !change.entries.is_empty();
        let is_visible =
            adds_messages || change.edit.is_some() || change.read.is_some() || !change.summaries.is_empty();
        let is_visible = is_visible || !change.annotations.is_empty();
        let committed = self.commit_and_note_branches(&change).await;
        if committed.is_err() {
            // It may have read that the session is gone.
            self.end_run_without_session();
        }
        let committed = committed?;
        self.warn_of_orphan_results(committed.orphan_results);
        self.read_failure.take();
        self.renderer.borrow_mut().on_summaries_saved(&saved);
        of_render.note_saved(&mut self.renderer.borrow_mut());
        drop(turn);
        self.warn_of_second_writer();
        let findings = self.log.borrow().findings.clone();
        self.context.report_damage(&findings);
        // Values that were set meanwhile are written by the next change.
        self.state.borrow_mut().retain(|key, value| state.get(key) != Some(value));
        self.update_hold();
        self.drop_views_of_replaced_history();
        if is_visible {
            self.context.announce_append(&self.id, committed.revision);
        }
        self.merge_when_idle();
        // The write may have read that another tab ended the turn.
        if is_visible {
            self.run_deferred_compaction();
        }
        Ok(committed)
    }

    /// Reports results that were set aside since the run of their calls ended without them.
    fn warn_of_orphan_results(&self, count: usize) {
        if count > 0 {
            let text = format!(
                "{count} results answer calls of a run that was discarded or cancelled; they are stored and never sent"
            );
            self.context.warn(&[Finding::warning(FindingCode::OrphanResult, text).with_action(Action::Kept)]);
        }
    }

    /// Adds to a change the summaries of reducers that are not stored yet; returns these. Neither a run's journal nor a
    /// compaction waits for them.
    fn add_unsaved_summaries(&self, change: &mut Change) -> Vec<StoredSummary> {
        if change.entries.is_empty() && (change.journal.is_some() || !change.summaries.is_empty()) {
            return Vec::new();
        }
        let unsaved = self.renderer.borrow().unsaved_summaries();
        change.summaries.extend_from_slice(&unsaved);
        unsaved
    }

    /// Writes a change of a run's lease, also while the store is being closed. Nothing else is written with it.
    pub async fn commit_lease(&self, mut change: Change) -> Result<()> {
        change.holder = Some(self.context.origin());
        let turn = self.commits.enter().start().await;
        self.commit_and_note_branches(&change).await?;
        drop(turn);
        self.drop_views_of_replaced_history();
        Ok(())
    }

    /// Waits until this process commits nothing. No commit begins while the turn is held.
    pub async fn commit_turn(&self) -> WriteTurn {
        self.commits.enter().start().await
    }

    /// Returns the revision of the history as it was last read.
    pub fn revision(&self) -> u64 {
        self.log.borrow().head.history_revision
    }

    /// Returns a change without content, with its operation name and time.
    pub fn new_change(&self) -> Change {
        let host = self.context.host.clone();
        let pause: ConflictPause = Box::new(move |longest| host.random_pause(longest));
        Change {
            operation: self.context.host.random_id(),
            at: self.context.now(),
            pause: Some(pause),
            begins_branch: self.log.borrow().is_unborn(),
            unshown_branch: self.unshown_branch,
            ..Change::default()
        }
    }

    /// Keeps the session in memory while it has something that reading it again would not give: listeners, values that
    /// are not stored yet, a turn that only this tab has, and the reason why it cannot be written to, which `status`
    /// reports.
    pub fn update_hold(&self) {
        let has_own_turn = || self.pending.borrow().iter().any(|run| matches!(run.source, TurnSource::Memory { .. }));
        let is_read_only = || !self.is_deleted() && self.log.borrow().writable().is_err();
        let is_needed = self.surface.has_listeners()
            || !self.state.borrow().is_empty()
            || self.compaction.is_deferred()
            || has_own_turn()
            || is_read_only();
        let held = if is_needed { self.weak_self.upgrade() } else { None };
        drop(self.hold.replace(held));
    }

    /// Tells what shows the session that it changed.
    pub fn notify(&self) {
        self.surface.on_change();
    }

    /// Returns the run that is under way in this tab.
    pub fn live_run(&self) -> Option<Rc<dyn LiveRun>> {
        self.run.borrow().clone()
    }

    /// Returns true if a run is under way in this tab.
    pub fn has_live_run(&self) -> bool {
        self.run.borrow().is_some()
    }

    /// Returns true if a run is under way in this tab, or about to be.
    pub fn is_run_active(&self) -> bool {
        self.has_live_run() || self.is_starting_run.get()
    }

    /// Reserves the place of the session's only run.
    ///
    /// # Errors
    /// `busy` if a run is under way here, or waits.
    pub fn reserve_run(&self) -> Result<()> {
        if self.run_queue.has_waiting() || !self.try_reserve_run() {
            let sentence = "a run of this session is under way here, or waits for one in another tab; wait for it, cancel it, or pass `whenBusy: \"queue\"`";
            return Err(Error::new(ErrorCode::Busy, sentence));
        }
        Ok(())
    }

    /// Reserves the place of the session's only run, also if others wait for it. Returns false if one is under way.
    pub(super) fn try_reserve_run(&self) -> bool {
        let is_free = !self.is_run_active();
        self.is_starting_run.set(self.is_starting_run.get() || is_free);
        is_free
    }

    /// Fills the reserved place with its run, or frees it if the run could not be started.
    pub fn set_run(&self, run: Option<Rc<dyn LiveRun>>) {
        let failed = run.is_none();
        *self.run.borrow_mut() = run;
        self.is_starting_run.set(false);
        if failed {
            self.admit_next_run();
        }
    }

    /// Keeps a reference to a run that was released while it waits for an approval, to release it wholly when the store
    /// is closed.
    pub fn keep_waiting_run(&self, run: Weak<dyn LiveRun>) {
        let mut runs = self.waiting_runs.borrow_mut();
        runs.retain(|other| other.strong_count() > 0 && !other.ptr_eq(&run));
        runs.push(run);
    }

    /// Frees the place of a run that is over, and admits the next send.
    pub fn on_run_ended(&self, run: &dyn LiveRun) {
        let is_live = self.run.borrow().as_ref().is_some_and(|live| live.id() == run.id());
        if is_live {
            *self.run.borrow_mut() = None;
            if run.machine().status() != RunStatus::WaitingApproval {
                self.leave_unborn_branch_soon();
            }
            if run.machine().status() == RunStatus::Finished {
                self.ask_for_title();
                self.request_automatic_compaction();
            }
            self.keep_ended_run(run);
            self.update_pending_soon();
            self.admit_next_run();
            self.run_deferred_compaction();
        }
    }

    /// Releases the live run and drops what was read, because the store was closed. Queued runs reject with `closed`.
    pub fn close(&self) {
        let run = self.run.borrow_mut().take();
        if let Some(run) = run {
            run.release();
        }
        for run in self.waiting_runs.take().iter().filter_map(Weak::upgrade) {
            // One that is over keeps its result.
            if !run.machine().status().is_over() {
                run.release();
            }
        }
        self.run_queue.close();
        self.surface.drop_listeners();
        self.compaction.drop_deferred();
        self.log.borrow_mut().release();
        self.renderer.borrow_mut().clear();
        self.pending.borrow_mut().clear();
        self.journals.take();
        self.head_fields.take();
        *self.state.borrow_mut() = BTreeMap::new();
        drop(self.hold.take());
    }

    fn admit_next_run(&self) {
        self.run_queue.wake_all();
    }
}

impl Drop for OpenSession {
    fn drop(&mut self) {
        if self.unshown_branch.is_none() {
            self.context.store.drop_cached_values(&self.id);
        }
    }
}

/// Returns an edit that does `edit` and writes values of the state bag.
fn with_state(edit: Option<HeadEdit>, state: Rc<BTreeMap<String, Json>>) -> HeadEdit {
    edit_after(edit, move |head| {
        for (key, value) in state.iter() {
            let at = head.state.partition_point(|(name, _)| name < key);
            match head.state.get_mut(at).filter(|(name, _)| name == key) {
                Some((_, stored)) => stored.clone_from(value),
                None => head.state.insert(at, (key.clone(), value.clone())),
            }
        }
    })
}
