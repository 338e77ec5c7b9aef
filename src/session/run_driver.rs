//! A run under way here: the state machine and the loop that does its writes and asks its questions.

use super::answer_broadcast::{AnswerBroadcast, AnswerSource};
use super::application::LocalFuture;
use super::branching::show_target;
use super::compaction_state::RequestSetup;
use super::context::concerns_settings;
use super::deferred_saves::DeferredSaves;
use super::host::RunLock;
use super::live_run::LiveRun;
use super::new_run::NewRun;
use super::open_session::OpenSession;
use super::pending_callbacks::PendingCallbacks;
use super::queue_begin::QueueBegin;
use super::run_lock::{RunClaim, RunHold, acquire_run_lock, lock_name};
use super::signal::Signal;
use super::write_queue::WriteQueue;
use crate::error::{Error, ErrorCode, Result};
use crate::finding::{Finding, FindingCode};
use crate::history::History;
use crate::message::Message;
use crate::replay::Callback;
use crate::run::{EffectReply, Handoff, Run, RunEvent, RunInput, RunStatus, SnapshotOrigin, TurnInput};
use bytes::Bytes;
use std::cell::{Cell, Ref, RefCell};
use std::rc::{Rc, Weak};

/// The epoch of a run's first holder.
pub const FIRST_EPOCH: u32 = 1;

/// A run under way here.
pub struct RunDriver {
    /// A weak reference to itself, for background work, which must not keep the run.
    pub weak_self: Weak<RunDriver>,
    /// Its session.
    pub session: Rc<OpenSession>,
    /// Its id.
    pub id: String,
    /// The prefix of the operation names of its appends.
    pub(super) name: String,
    /// Its state machine.
    pub machine: RefCell<Run>,
    /// The epoch of its holder.
    pub epoch: Cell<u32>,
    /// Its number in the session; none until it is stored.
    number: Cell<Option<u64>>,
    /// Its events that nobody has taken.
    pub events: RefCell<Vec<RunEvent>>,
    /// Effects that were closed, until who offers them has taken them.
    closed_effects: RefCell<Vec<u64>>,
    /// Given at the next change of effects, events or status.
    changed: RefCell<Signal>,
    /// Its lock while it is held here.
    pub lock: RefCell<Option<RunLock>>,
    /// The tabs that show the answer.
    broadcast: AnswerBroadcast,
    /// False if it has a lease.
    pub has_lock: bool,
    /// This tab gave the run up, so it must not write the journal any more.
    pub given_up: Cell<bool>,
    /// The run's lease is renewed in the background.
    pub keeps_lease: Cell<bool>,
    /// The run is held here. Nobody holds a run that waits for an approval.
    pub is_holder: Cell<bool>,
    /// Orders the changes of `is_holder`.
    pub holding: WriteQueue,
    /// Journal writes that are gathered.
    pub deferred: DeferredSaves,
    /// Its functions of the application that have not answered yet.
    pub callbacks: PendingCallbacks,
    /// The error of the newest save that failed.
    pub save_error: RefCell<Option<Error>>,
    /// The error of a run that another one has replaced, while its tools still run.
    pub(super) superseded: RefCell<Option<Error>>,
    /// How a run that was sent to the queue begins.
    pub(super) queue_begin: RefCell<Option<QueueBegin>>,
    /// True from a call of `cancel` on.
    pub(super) is_cancelled: Cell<bool>,
    /// Gives the turn to the history providers when the run is over.
    pub store_hook: RefCell<Option<Callback>>,
    /// True if the run is over and waits for no reducer, filter or approval any more.
    has_ended_questions: Cell<bool>,
}

impl RunDriver {
    /// Makes a new run. `read` reads what it begins with, for the id that it is given.
    ///
    /// # Errors
    /// Those of `read`, of the start of a run and of the store.
    pub async fn begin(session: &Rc<OpenSession>, read: impl FnOnce(String) -> Result<NewRun>) -> Result<Rc<Self>> {
        session.context.host.draw_ids();
        let drawn = session.context.ids().new_id();
        // Checked before anything is written or read.
        let new_run = read(drawn.clone())?;
        Self::begin_held(session, (drawn, None), new_run).await
    }

    /// As [`begin`](Self::begin), of what was read, with its id. `hold`: how it is held here, if it is queued.
    pub(super) async fn begin_held(
        session: &Rc<OpenSession>,
        (id, hold): (String, Option<RunHold>),
        new_run: NewRun,
    ) -> Result<Rc<Self>> {
        session.leave_unborn_branch().await?;
        let begun = Self::begin_in_branch(session, (id, hold), new_run).await;
        if begun.is_err() {
            // A failure is met by the next call.
            let _ = session.leave_unborn_branch().await;
        }
        begun
    }

    async fn begin_in_branch(
        session: &Rc<OpenSession>,
        (drawn, hold): (String, Option<RunHold>),
        new_run: NewRun,
    ) -> Result<Rc<Self>> {
        let NewRun { mut setup, input, input_id, branch, replace, provide, store } = new_run;
        if let Some(branch) = branch.filter(|branch| *branch != session.branch_name()) {
            show_target(session, &branch).await?;
        }
        // The request contains what other tabs appended.
        session.refresh().await?;
        let begins_branch = replace.is_some();
        if let Some(id) = replace {
            if input_id.as_ref() == Some(&id) {
                return Err(Error::invalid(
                    "`inputId` is the id of the message that is replaced; give the input another",
                ));
            }
            session.show_replacing(&id, !input.is_empty()).await?;
        }
        let provided = session.ask_providers(provide.as_ref(), &input).await?;
        let (id, hold) = match hold {
            Some(hold) => (drawn, hold),
            None => {
                let (id, lock) = Self::acquire_new_run_lock(session, drawn).await?;
                (id, RunHold::of_lock(FIRST_EPOCH, lock))
            }
        };
        setup.id.clone_from(&id);
        let machine = {
            let mut borrows = session.borrow_for_step();
            borrows.log.writable()?;
            if begins_branch && !borrows.log.is_unborn() {
                let message = "messages were erased while the run was to begin, and the place of its branch with them; send it again";
                return Err(Error::new(ErrorCode::Conflict, message));
            }
            let input = TurnInput { input, input_id, provided };
            Run::start(setup, input, &mut borrows.run_context())?
        };
        let run = Self::new(session, id, machine, hold);
        run.store_hook.replace(store);
        Ok(run)
    }

    /// Acquires the lock of a new run and returns its id: `drawn`, with a random suffix if another run has that id.
    pub(super) async fn acquire_new_run_lock(
        session: &OpenSession,
        drawn: String,
    ) -> Result<(String, Option<RunLock>)> {
        if !session.has_run(&drawn) {
            match acquire_run_lock(&session.context, &session.id, &drawn).await {
                Ok(lock) => return Ok((drawn, lock)),
                Err(error) if error.code == ErrorCode::Busy => {}
                Err(error) => return Err(error),
            }
        }
        let id = format!("{drawn}-{}", session.context.host.random_id());
        let lock = acquire_run_lock(&session.context, &session.id, &id).await?;
        Ok((id, lock))
    }

    /// Makes a run of a machine that was started or resumed.
    pub fn new(session: &Rc<OpenSession>, id: String, machine: Run, hold: RunHold) -> Rc<Self> {
        let RunHold { epoch, lock, has_lock } = hold;
        session.context.live.borrow_mut().insert(lock_name(&session.context, &session.id, &id));
        session.last_request_setup.replace(Some(RequestSetup::of_run(machine.setup())));
        Rc::new_cyclic(|weak_self| Self {
            weak_self: weak_self.clone(),
            name: session.context.host.random_id(),
            session: session.clone(),
            machine: RefCell::new(machine),
            id: id.clone(),
            number: Cell::new(session.run_number(&id)),
            epoch: Cell::new(epoch),
            events: RefCell::default(),
            closed_effects: RefCell::default(),
            changed: RefCell::default(),
            has_lock,
            lock: RefCell::new(lock),
            given_up: Cell::new(false),
            keeps_lease: Cell::new(false),
            is_holder: Cell::new(true),
            holding: WriteQueue::default(),
            deferred: DeferredSaves::default(),
            callbacks: session.context.callbacks.for_new_run(),
            save_error: RefCell::default(),
            superseded: RefCell::default(),
            queue_begin: RefCell::default(),
            is_cancelled: Cell::default(),
            store_hook: RefCell::default(),
            has_ended_questions: Cell::default(),
            broadcast: AnswerBroadcast::default(),
        })
    }

    /// Cancels the run.
    ///
    /// # Errors Those of [`hold_if_waiting`](Self::hold_if_waiting), and `store_error` if the store does not answer for
    /// a run that waits for an approval.
    pub async fn cancel(self: Rc<Self>) -> Result<()> {
        self.is_cancelled.set(true);
        if self.machine.borrow().status().is_over() {
            // It waits for `store` of its providers at most.
            self.callbacks.end_of_run();
        }
        let context = &self.session.context;
        let (cancelled, is_late) = (self.clone(), Rc::new(Cell::new(false)));
        let waits_on = is_late.clone();
        let cancelled = async move {
            if cancelled.check_not_disposed().is_ok() {
                cancelled.hold_if_waiting().await?;
            }
            if waits_on.get() {
                // The caller was told that the run waits on.
                cancelled.release_while_waiting().await;
                return Ok(());
            }
            // An event reports what cannot be written.
            let _ = cancelled.handle(RunInput::Cancel).await;
            Ok(())
        };
        match context.outcome_in_time(Box::pin(cancelled)).await {
            Some(outcome) => outcome,
            None if self.machine.borrow().status() == RunStatus::WaitingApproval => {
                is_late.set(true);
                let sentence = "the store did not answer: the run still waits for an approval; cancel it again";
                Err(Error::unanswered(sentence, true))
            }
            None => {
                // What the store was asked to write may be written all the same.
                let abandoned = self.clone();
                let abandoned = async move {
                    abandoned.abandon_saves().await;
                    Ok(())
                };
                let _ = context.outcome_in_time(Box::pin(abandoned)).await;
                Ok(())
            }
        }
    }

    /// Checks that the run was not disposed.
    ///
    /// # Errors
    /// `closed`.
    pub fn check_not_disposed(&self) -> Result<()> {
        if self.given_up.get() {
            return Err(Error::new(
                ErrorCode::Closed,
                "this run was disposed before its end; it is in `pendingRuns()`, and `resume` continues it",
            ));
        }
        Ok(())
    }

    pub(super) fn step(&self, input: RunInput) -> Result<()> {
        self.check_not_disposed()?;
        let mut borrows = self.session.borrow_for_step();
        self.machine.borrow_mut().handle(input, &mut borrows.run_context())
    }

    /// Does a step, and then the writes that it needs.
    ///
    /// # Errors
    /// Those of the step, and of the first write that failed.
    pub async fn handle(self: &Rc<Self>, input: RunInput) -> Result<()> {
        self.step(input)?;
        self.write_pending().await
    }

    /// Takes the answer to an effect. Resolves when everything is stored that must be stored before the next effect.
    ///
    /// # Errors `unknown_effect`, `wrong_state` or `closed` if the answer is not expected. If the start of a tool
    /// cannot be written, the store's own: the tool must not run. The event `save_failed` reports any other failure.
    pub async fn answer(self: &Rc<Self>, effect: String, reply: EffectReply) -> Result<()> {
        self.check_superseded(&effect, &reply).await?;
        let strict = matches!(reply, EffectReply::Started);
        match self.handle(RunInput::Answer { effect, reply }).await {
            Err(error) if strict || is_misuse(&error) => Err(error),
            _ => Ok(()),
        }
    }

    /// Takes bytes of a streamed response, or that it is too large.
    ///
    /// # Errors
    /// As [`answer`](Self::answer).
    pub async fn feed(self: &Rc<Self>, input: RunInput) -> Result<()> {
        match self.handle(input).await {
            Err(error) if is_misuse(&error) => Err(error),
            // An event reports any other failure.
            _ => Ok(()),
        }
    }

    /// Hands the run off to another agent, and returns what writes it.
    ///
    /// # Errors `closed`, `config_invalid`, `handoff_filter_not_supported`, and `wrong_state` if the run waits for an
    /// approval, is over or is handed off already; nothing has changed then.
    pub fn hand_off(self: &Rc<Self>, handoff: Handoff) -> Result<impl Future<Output = Result<()>> + use<>> {
        self.session.context.check_open()?;
        self.step(RunInput::HandOff(Box::new(handoff)))?;
        let run = self.clone();
        Ok(async move { run.write_pending().await })
    }

    /// Returns a snapshot of the unfinished run.
    pub fn snapshot(&self) -> Result<Bytes> {
        let mut snapshot = {
            let mut borrows = self.session.borrow_for_step();
            self.machine.borrow().snapshot(&self.session.id, &borrows.run_context())?
        };
        snapshot.origin = Some(SnapshotOrigin::new(&self.session.log.borrow().head, self.number.get()));
        Ok(snapshot.seal())
    }

    /// Does the machine's writes until none is left, and then asks its question, if there is one. Returns the error of
    /// the first failed write.
    pub(super) async fn write_pending(self: &Rc<Self>) -> Result<()> {
        let mut failure = None;
        let mut wrote = false;
        while !self.given_up.get() {
            self.call_replay_callback();
            self.call_persist_callbacks();
            let save = self.machine.borrow_mut().take_save();
            let Some(save) = save else { break };
            let outcome = self.write_save(&save).await;
            let id = save.id;
            if save.owner.is_some() && outcome.is_ok() {
                self.session.drop_owner_field();
            }
            match &outcome {
                Ok(_) => {
                    wrote = true;
                    self.remember_number();
                    // Before the step, which would send what comes next.
                    if let Err(error) = self.end_before_step(id) {
                        failure.get_or_insert(error);
                    }
                }
                Err(error) => {
                    failure.get_or_insert_with(|| error.clone());
                    self.save_error.replace(Some(error.clone()));
                    if error.code != ErrorCode::Conflict {
                        self.machine.borrow_mut().keep_unsaved(save);
                    }
                }
            }
            if let Err(error) = self.step(RunInput::Saved { save: id, outcome }) {
                failure.get_or_insert(error);
            }
        }
        self.call_body_callbacks();
        self.call_approval_callbacks();
        self.release_while_waiting().await;
        if self.machine.borrow().status().is_over() {
            if !self.has_ended_questions.replace(true) {
                // Functions of the application whose answers nobody needs any more.
                self.callbacks.end_of_run();
            }
            if let Err(error) = self.store_in_providers().await {
                failure.get_or_insert(error);
            }
        }
        self.publish(wrote);
        failure.map_or(Ok(()), Err)
    }

    /// Remembers the run's number, which the head has until the run ends.
    pub(super) fn remember_number(&self) {
        if let Some(number) = self.session.run_number(&self.id) {
            self.number.set(Some(number));
        }
    }

    /// Calls the reducer or the filter on which the next request depends.
    fn call_body_callbacks(self: &Rc<Self>) {
        let reducer = self.machine.borrow_mut().take_reducer_question();
        let filter = self.machine.borrow_mut().take_body_filter_question();
        if reducer.is_none() && filter.is_none() {
            return;
        }
        let run = self.clone();
        // Not awaited: the run can be cancelled meanwhile.
        self.session.context.spawn(async move {
            let host = &run.session.context.host;
            let input = match (reducer, filter) {
                (Some(question), _) => run.callbacks.answered(host.reduce(&question)).await.map(RunInput::ReducerReply),
                (None, Some(question)) => {
                    run.callbacks.answered(host.filter_body(&question)).await.map(RunInput::BodyFilterReply)
                }
                (None, None) => return,
            };
            // The wait is ended for a run that needs no answer any more.
            let Ok(input) = input else { return };
            // The run's events report a failure.
            let _ = run.handle(input).await;
        });
    }

    /// Calls `persist` of the tools whose calls are written next.
    fn call_persist_callbacks(&self) {
        loop {
            let ask = self.machine.borrow_mut().take_persist_question();
            let Some(ask) = ask else { return };
            let reply = self.session.context.host.persist(&ask);
            // The reply only changes what is stored, so the step cannot fail.
            let _ = self.step(RunInput::PersistReply(ask, reply));
        }
    }

    /// Asks the application whether a failed request may be sent again. A function that fails does not approve it.
    fn call_replay_callback(&self) {
        let ask = self.machine.borrow_mut().take_replay_question();
        let Some(ask) = ask else { return };
        let approved = self.session.context.host.approves_replay(&ask).unwrap_or_else(|error| {
            self.session.context.warn(&[Finding::warning(FindingCode::CallbackFailed, error.into_message())]);
            false
        });
        // A run that was given up meanwhile does not need the reply.
        let _ = self.step(RunInput::ReplayReply(approved));
    }

    /// Publishes the events of the machine, frees the session's place if the run is over, and notifies listeners.
    fn publish(self: &Rc<Self>, wrote: bool) {
        let events = self.machine.borrow_mut().take_events();
        let shows = wrote || !events.is_empty();
        self.broadcast.send_events(&self.answer_source(&|| self.partial()), &events);
        let mut warnings = Vec::new();
        for event in &events {
            match event {
                RunEvent::Warning(finding) => warnings.push(finding.clone()),
                RunEvent::ModelCalled { report, .. } => {
                    warnings.extend(report.iter().filter(|finding| concerns_settings(finding)).cloned());
                }
                _ => {}
            }
        }
        self.events.borrow_mut().extend(events);
        let closed = self.machine.borrow_mut().take_closed_effects();
        self.closed_effects.borrow_mut().extend(closed);
        if self.machine.borrow().status().is_over() {
            self.release_hold();
        }
        self.session.context.warn(&warnings);
        // Only for changes: a listener that calls back would otherwise be called forever.
        if shows {
            self.session.notify();
        }
        self.signal_change();
    }

    /// Releases the run's lock and its place in the session, if the run is held here.
    pub fn release_hold(&self) {
        if self.is_holder.replace(false) {
            let context = &self.session.context;
            context.live.borrow_mut().remove(&lock_name(context, &self.session.id, &self.id));
            *self.lock.borrow_mut() = None;
            self.session.on_run_ended(self);
        }
    }

    /// Releases the run's lock, as a kill would: whoever opens the store may resume it.
    fn release_lock(&self) {
        *self.lock.borrow_mut() = None;
        self.signal_change();
    }

    /// Gives up a run that is under way: its lock and its place in the session are free, and it can be resumed.
    pub fn give_up(self: &Rc<Self>) {
        self.callbacks.end_of_run();
        if self.given_up.get() || self.machine.borrow().status().is_over() {
            return;
        }
        self.given_up.set(true);
        if !self.is_holder.get() {
            return self.signal_change();
        }
        self.release_hold();
        self.signal_change();
        let run = self.clone();
        // Whoever resumes it here reads what it still writes.
        let claim = RunClaim::new(&self.session.context, &self.session.id, &self.id);
        self.session.context.spawn(async move {
            run.announce_given_up().await;
            drop(claim);
        });
    }

    /// Ends the lease, if there is one, and notifies listeners and other tabs.
    async fn announce_given_up(&self) {
        let session = &self.session;
        self.write_last().await;
        session.update_pending().await;
        let revision = session.log.borrow().head.history_revision;
        session.context.announce_change(&session.id, revision);
        session.notify();
    }

    fn answer_source<'r>(&'r self, partial: &'r dyn Fn() -> Option<Message>) -> AnswerSource<'r> {
        AnswerSource { session: &self.session, run: &self.id, partial }
    }

    /// Returns what is given at the next change of effects, events or status.
    #[must_use]
    pub fn next_change(&self) -> Signal {
        self.changed.borrow().clone()
    }

    /// Takes the numbers of the effects that were closed.
    #[must_use]
    pub fn take_closed_effects(&self) -> Vec<u64> {
        self.closed_effects.take()
    }

    /// Tells who waits that something changed.
    pub fn signal_change(&self) {
        self.changed.take().give();
    }
}

impl LiveRun for RunDriver {
    fn id(&self) -> &str {
        &self.id
    }

    fn machine(&self) -> Ref<'_, Run> {
        self.machine.borrow()
    }

    fn take_stored_results(&self, history: &History) {
        // In a step of the run, the next snapshot shows them.
        if let Ok(mut machine) = self.machine.try_borrow_mut() {
            machine.take_stored_results(history);
        }
    }

    fn partial(&self) -> Option<Message> {
        let now = self.session.context.now();
        self.machine.borrow().partial_answer(now).map(|answer| answer.to_message())
    }

    fn cancel(self: Rc<Self>) -> LocalFuture<'static, Result<()>> {
        Box::pin(RunDriver::cancel(self))
    }

    fn send_answer(&self) {
        self.broadcast.start(&self.answer_source(&|| self.partial()));
    }

    fn flush_before_read(&self) -> LocalFuture<'_, Result<()>> {
        Box::pin(RunDriver::flush_before_read(self))
    }

    fn write_last(&self) -> LocalFuture<'_, ()> {
        Box::pin(RunDriver::write_last(self))
    }

    fn lose_session(&self, error: Error) {
        let run = self.weak_self.clone();
        self.session.context.spawn(async move {
            if let Some(run) = run.upgrade() {
                run.lose(error).await;
            }
        });
    }

    fn release(&self) {
        self.release_lock();
        self.machine.borrow_mut().release();
        self.events.take();
    }
}

/// Returns true for the error of a call that is not allowed now and had no effect.
fn is_misuse(error: &Error) -> bool {
    matches!(error.code, ErrorCode::UnknownEffect | ErrorCode::WrongState | ErrorCode::Closed)
}
