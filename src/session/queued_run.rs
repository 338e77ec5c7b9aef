//! A question of this tab that is stored while it waits for the runs before it: the run that will answer it has its id,
//! its lock or lease, and an entry in the head.

use super::context::StoreContext;
use super::host::RunLock;
use super::lease::{is_leased, lease_end};
use super::new_run::NewRun;
use super::open_session::OpenSession;
use super::queued_question::QueuedQuestion;
use super::run_driver::{FIRST_EPOCH, RunDriver};
use super::run_lock::{RunClaim, RunHold};
use super::run_queue::{HeldQuestion, LONGEST_DOUBT, LONGEST_PAUSE, MAX_LOOKS};
use super::signal::Signal;
use crate::clock::Ms;
use crate::error::{Error, ErrorCode, Result};
use crate::history::{Incoming, IncomingPart};
use crate::owner::StateOwner;
use crate::run::JournalEntry;
use crate::session_head::RunEntry;
use crate::store::{Change, JournalChange, JournalStep, QueueTurn};
use std::cell::RefCell;
use std::rc::Rc;

/// A question of this tab that is stored while it waits.
pub(super) struct QueuedRun {
    session: Rc<OpenSession>,
    /// The id of its run.
    pub id: String,
    /// Its number.
    pub number: u64,
    epoch: u32,
    lock: RefCell<Option<RunLock>>,
    has_lock: bool,
    /// Given when it was discarded here.
    pub discarded: Signal,
    /// Given when it waits no more.
    over: Signal,
    /// Shows other calls in this tab that it waits here.
    _claim: RunClaim,
}

impl OpenSession {
    /// Returns true if a question can be stored while it waits: its branch is stored, and it has messages without
    /// calls.
    pub(super) fn can_queue(&self, new_run: &NewRun) -> bool {
        let is_part = |part: &IncomingPart| matches!(part, IncomingPart::Part(_));
        let is_plain =
            |item: &Incoming| matches!(item, Incoming::Message(message) if message.parts.iter().all(is_part));
        let is_shown = new_run.branch.as_ref().is_none_or(|branch| *branch == self.branch_name());
        let is_stored = new_run.replace.is_none() && is_shown && !self.log.borrow().is_unborn();
        let is_held = new_run.setup.owner == StateOwner::Caller;
        is_stored && !is_held && !new_run.input.is_empty() && new_run.input.iter().all(is_plain)
    }
}

impl OpenSession {
    /// Returns the entry of a question that waits here, as its holder.
    pub(super) fn held_entry(&self, id: &str) -> Option<RunEntry> {
        let held = self.run_queue.held(id)?;
        let entry = self.log.borrow().head.run(id).cloned();
        entry.filter(|entry| entry.is_queued() && entry.epoch == held.epoch)
    }

    /// Ends the leases of the questions that wait here, because the store is about to be closed.
    pub(super) async fn end_leases_of_queue(&self) {
        for held in self.run_queue.all_held() {
            held.over.give();
            self.end_lease_of_question((&held.id, held.epoch), held.has_lock).await;
        }
    }

    /// Returns true if this open store wrote the present lease of an entry, or has its lock.
    pub(super) fn is_own_entry(&self, entry: &RunEntry, has_lock: bool) -> bool {
        !is_leased(&self.context, has_lock) || entry.is_held_by(&self.context.origin())
    }

    fn has_own_question(&self, id: &str, has_lock: bool) -> bool {
        let log = self.log.borrow();
        let is_own =
            |entry: &RunEntry| entry.is_queued() && entry.epoch == FIRST_EPOCH && self.is_own_entry(entry, has_lock);
        log.head.run(id).is_some_and(is_own)
    }

    /// Removes a question of this tab from the store, and its run if that has begun after all. Repeated, so that a
    /// question whose send was rejected with `why` is not asked later. One that was taken over is left to its holder.
    ///
    /// # Errors
    /// `closed`; an error that says that the question is still stored.
    pub(super) async fn remove_own_run(&self, held: (&str, u32), has_lock: bool, why: &Error) -> Result<()> {
        let end = self.context.now().saturating_add(LONGEST_DOUBT);
        for _ in 0..MAX_LOOKS {
            self.context.check_open()?;
            let is_read = self.refresh().await.is_ok();
            if is_read && self.log.borrow().head.run(held.0).is_none_or(|entry| entry.epoch != held.1) {
                return Ok(());
            }
            self.context.host.draw_ids();
            if let Ok(revision) = self.commit(change_of(self, held, JournalStep::End, has_lock)).await {
                self.context.announce_append(&self.id, revision);
                return Ok(());
            }
            if self.context.now() >= end || !self.context.host.time_limit(LONGEST_PAUSE).await {
                break;
            }
        }
        let (run, why) = (held.0, &why.message);
        let sentence = format!(
            "the question could not be sent, and the store does not remove it: run {run} is in `pendingRuns()`, so \
             resume it or discard it, and do not send it again: {why}"
        );
        Err(Error::unanswered(sentence, true))
    }

    async fn end_lease_of_question(&self, held: (&str, u32), has_lock: bool) {
        if is_leased(&self.context, has_lock) {
            self.context.host.draw_ids();
            let mut change = change_of(self, held, JournalStep::Renew, has_lock);
            if let Some(journal) = &mut change.journal {
                journal.lease_until = 0;
            }
            // If this fails, the lease runs out.
            let _ = self.commit_lease(change).await;
        }
    }
}

impl QueuedRun {
    /// Stores a question that has to wait.
    ///
    /// # Errors
    /// The store's own; nothing is stored then, or the error says that this is unknown.
    pub(super) async fn store(
        session: &Rc<OpenSession>,
        place: &QueuedQuestion<'_>,
        new_run: &mut NewRun,
    ) -> Result<Self> {
        let (id, lock) = RunDriver::acquire_new_run_lock(session, new_run.setup.id.clone()).await?;
        new_run.setup.id.clone_from(&id);
        let claim = RunClaim::new(&session.context, &session.id, &id).ok_or_else(held_here)?;
        session.context.host.draw_ids();
        let entries = JournalEntry::of_queued(&new_run.setup, session.context.now(), place.question());
        let (mut looks, end) = (0, session.context.now().saturating_add(LONGEST_DOUBT));
        loop {
            session.context.check_open()?;
            let step = JournalStep::Queue(entries.clone());
            let Err(error) = session.commit(change_of(session, (&id, FIRST_EPOCH), step, lock.is_some())).await else {
                break;
            };
            let is_known = session.refresh().await.is_ok();
            if is_known && session.has_own_question(&id, lock.is_some()) {
                // The reply was lost.
                break;
            }
            let may_pass = matches!(error.code, ErrorCode::Busy | ErrorCode::Conflict);
            if is_known && !error.may_have_written() && !may_pass {
                return Err(error);
            }
            looks += 1;
            // Repeated with the same id, so it is stored once.
            let is_over = looks == MAX_LOOKS || session.context.now() >= end;
            if is_over || !session.context.host.time_limit(LONGEST_PAUSE).await {
                let is_absent = is_known && !error.may_have_written();
                return Err(if is_absent { refused_for_good(error) } else { unknown_question(&error) });
            }
        }
        Self::of(session, (id, FIRST_EPOCH), lock, claim)
    }

    /// Makes the question of an entry that is stored and held here.
    pub(super) fn of(
        session: &Rc<OpenSession>,
        (id, epoch): (String, u32),
        lock: Option<RunLock>,
        claim: RunClaim,
    ) -> Result<Self> {
        let number = session.log.borrow().head.run(&id).map(|entry| entry.number).ok_or_else(gone)?;
        let discarded = Signal::default();
        let (has_lock, over) = (lock.is_some(), Signal::default());
        let held = HeldQuestion { id: id.clone(), epoch, has_lock, discarded: discarded.clone(), over: over.clone() };
        session.run_queue.hold(number, held);
        let lock = RefCell::new(lock);
        let queued =
            Self { session: session.clone(), id, number, epoch, lock, has_lock, discarded, over, _claim: claim };
        queued.keep_lease();
        session.context.announce_append(&session.id, session.revision());
        Ok(queued)
    }

    /// Returns its entry in the head; that of its run if a write whose reply was lost has begun it.
    ///
    /// # Errors
    /// `not_found` if it was discarded here or its session deleted, `conflict` if another tab or process has taken it
    /// over: it may have answered it.
    pub(super) fn entry(&self) -> Result<RunEntry> {
        let taken_over = |sentence| Err(Error::new(ErrorCode::Conflict, sentence));
        match self.session.log.borrow().head.run(&self.id) {
            Some(entry) if entry.epoch == self.epoch => Ok(entry.clone()),
            Some(_) => taken_over(
                "another tab or process has taken the question over: it is in `pendingRuns()`, so do not send it again",
            ),
            None if self.discarded.is_given() || self.session.is_deleted() => Err(gone()),
            None if self.session.has_stored_part(&self.id) => taken_over(
                "another tab or process has taken the question over and ended its run: it is in history, so do not \
                 send it again",
            ),
            None => taken_over(
                "another tab or process has taken the question over, and its run is over: it was answered, maybe in \
                 another branch, or discarded there; look in the history before you send it again",
            ),
        }
    }

    /// Makes it the next one that begins.
    ///
    /// # Errors
    /// `busy` if its turn has not come after all; the store's own.
    pub(super) async fn admit(&self, turn: QueueTurn) -> Result<()> {
        let change = self.change(JournalStep::Admit);
        self.session.commit(Change { turn: Some(turn), ..change }).await.map(drop)
    }

    /// Returns how its run is held here. The lock stays here until the run has begun.
    pub(super) fn hold(&self) -> RunHold {
        RunHold { epoch: self.epoch, lock: None, has_lock: self.has_lock }
    }

    /// Gives the lock to its run, which has begun.
    pub(super) fn give_lock(&self, run: &RunDriver) {
        if run.is_holder.get() {
            run.lock.replace(self.lock.take());
        }
    }

    /// Removes it from the store, since its send is rejected with this error.
    ///
    /// # Errors
    /// As [`OpenSession::remove_own_run`].
    pub(super) async fn remove(&self, why: &Error) -> Result<()> {
        self.session.remove_own_run((&self.id, self.epoch), self.has_lock, why).await?;
        self.over.give();
        Ok(())
    }

    /// Ends its lease, so that others may take it over at once.
    pub(super) async fn release(&self) {
        self.over.give();
        self.session.end_lease_of_question((&self.id, self.epoch), self.has_lock).await;
        self.session.context.announce_append(&self.session.id, self.session.revision());
    }

    fn change(&self, step: JournalStep) -> Change {
        self.session.context.host.draw_ids();
        change_of(&self.session, (&self.id, self.epoch), step, self.has_lock)
    }

    /// Renews its lease while it waits, if it has one.
    fn keep_lease(&self) {
        let context: &Rc<StoreContext> = &self.session.context;
        if !is_leased(context, self.has_lock) {
            return;
        }
        let (session, over, host) = (self.session.weak_self.clone(), self.over.clone(), context.host.clone());
        let (id, epoch, pause) = (self.id.clone(), self.epoch, context.settings.lease_ms / 3);
        context.spawn(async move {
            // Without timers the lease runs out.
            while over.unless_given(host.sleep(pause)).await == Some(true) {
                let Some(session) = session.upgrade() else { return };
                if session.context.check_open().is_err() {
                    return;
                }
                host.draw_ids();
                // A store that cannot be written to now is asked again; one who took it over is met by the next look.
                let _ = session.commit_lease(change_of(&session, (&id, epoch), JournalStep::Renew, false)).await;
            }
        });
    }
}

impl Drop for QueuedRun {
    fn drop(&mut self) {
        self.over.give();
        self.session.run_queue.let_go(self.number);
    }
}

fn change_of(session: &OpenSession, (id, epoch): (&str, u32), step: JournalStep, has_lock: bool) -> Change {
    let lease_until: Ms = lease_end(&session.context, has_lock);
    let journal = JournalChange { run: id.to_owned(), epoch, lease_until, lease_ended_by: None, step };
    Change { run: Some(id.to_owned()), journal: Some(journal), ..session.new_change() }
}

fn gone() -> Error {
    Error::new(ErrorCode::NotFound, "the question waits no more: it was discarded, or its session was deleted")
}

/// Returns the error of a question that is not stored, or is still held here: `conflict` would say that it was taken
/// over.
pub(super) fn refused_for_good(error: Error) -> Error {
    if error.code != ErrorCode::Conflict {
        return error;
    }
    let sentence = format!("the question cannot be sent, its write conflicts each time: {}", error.message);
    Error::new(ErrorCode::StoreError, sentence)
}

fn unknown_question(error: &Error) -> Error {
    let why = &error.message;
    let sentence = format!(
        "the store does not say whether the question is stored; look in `pendingRuns()` before you send it again: {why}"
    );
    Error::unanswered(sentence, true)
}

fn held_here() -> Error {
    Error::new(ErrorCode::Busy, "the question waits here already")
}
