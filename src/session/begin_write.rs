//! The write that begins a run which was sent to the queue. A question is neither lost nor asked twice, so what became
//! of a write that failed is read from the head: only the queue's own refusal says that nothing was written.

use super::open_session::OpenSession;
use super::queue_begin::QueueBegin;
use super::run_driver::RunDriver;
use super::run_lock::lock_name;
use super::run_queue::{LONGEST_DOUBT, LONGEST_PAUSE, MAX_LOOKS};
use crate::error::{Error, ErrorCode, Result};
use crate::run::RunInput;
use crate::store::{Change, JournalStep};
use std::rc::Rc;

impl OpenSession {
    /// Returns the number of a pending run; none of a question that waits, whose run has none yet.
    pub(super) fn run_number(&self, run: &str) -> Option<u64> {
        self.log.borrow().head.run(run).filter(|entry| !entry.is_queued()).map(|entry| entry.number)
    }
}

impl RunDriver {
    /// Returns the change that begins the run with the conditions of a run that excludes others, and of one that was
    /// sent to the queue.
    pub(super) fn with_conditions(&self, mut change: Change) -> Change {
        let Some(journal) = &mut change.journal else { return change };
        let JournalStep::Begin(entries) = &journal.step else { return change };
        match &*self.queue_begin.borrow() {
            None => {}
            Some(QueueBegin::InTurn(turn)) => change.turn = Some(turn.clone()),
            Some(QueueBegin::Queued) => journal.step = JournalStep::BeginQueued(entries.clone()),
        }
        change.exclusive = self.session.exclusive_run(&self.id);
        change
    }

    /// Writes the beginning of a run that was sent to the queue. Returns false if another run is under way: nothing was
    /// written. A run whose question did not wait fails as one without a queue does, and its events report that.
    ///
    /// # Errors
    /// The store's own. Of a question that did not wait nothing is stored then, or the error says that this is unknown;
    /// one that waited waits on, or its run has begun and the next look finds it. `aborted` if the run was cancelled
    /// meanwhile, `conflict` if another process has it.
    pub(super) async fn write_begin(self: &Rc<Self>) -> Result<bool> {
        let Some(save) = self.machine.borrow_mut().take_save() else { return Ok(true) };
        let written = self.write_save(&save).await;
        let begin = self.queue_begin.take();
        let is_refused = matches!(&begin, Some(QueueBegin::InTurn(turn)) if turn.refused.get());
        let is_queued = matches!(begin, Some(QueueBegin::Queued));
        let outcome = match written {
            Err(_) if is_refused => return self.withdraw().map(|()| false),
            Err(error) => match self.find_begin(&error, is_queued).await {
                FoundBegin::Begun => {
                    self.keep_lease();
                    self.session.context.announce_append(&self.session.id, self.session.revision());
                    Ok(self.session.revision())
                }
                FoundBegin::TakenOver => return self.withdraw().and_then(|()| Err(taken_over())),
                FoundBegin::Unknown if !is_queued => {
                    // That it is unknown matters more than that it was cancelled.
                    let _ = self.withdraw();
                    self.session.context.check_open()?;
                    return Err(unknown_begin(&error));
                }
                _ if is_queued || error.code == ErrorCode::Busy => return self.withdraw().and(Err(error)),
                _ => Err(error),
            },
            outcome => outcome,
        };
        if outcome.is_ok() && self.is_cancelled.get() && !self.is_holder.get() {
            // It was given up before the store answered.
            self.session.remove_own_run((&self.id, self.epoch.get()), self.has_lock, &aborted()).await?;
            return self.withdraw().map(|()| false);
        }
        match &outcome {
            Ok(_) if save.owner.is_some() => self.session.drop_owner_field(),
            Ok(_) => {}
            Err(error) => _ = self.save_error.replace(Some(error.clone())),
        }
        self.remember_number();
        // A run that was given up meanwhile takes no step. Its journal is stored.
        let _ = self.step(RunInput::Saved { save: save.id, outcome });
        Ok(true)
    }

    /// Finds out what became of a begin whose write failed.
    async fn find_begin(&self, error: &Error, is_queued: bool) -> FoundBegin {
        let (session, context) = (&self.session, &self.session.context);
        // A write that comes late does nothing after another append.
        let mut may_come = !is_queued && (error.may_have_written() || error.code == ErrorCode::Busy);
        let mut is_known = false;
        let end = context.now().saturating_add(LONGEST_DOUBT);
        for _ in 0..MAX_LOOKS {
            if context.check_open().is_err() {
                return FoundBegin::Unknown;
            }
            is_known = session.refresh().await.is_ok();
            if is_known {
                match self.look_for_begin(error) {
                    FoundBegin::Absent if may_come => {}
                    found => return found,
                }
                context.host.draw_ids();
                if session.log.borrow().head.born == 0 {
                    // An append would create the session.
                    return if error.may_have_written() { FoundBegin::Unknown } else { FoundBegin::Absent };
                }
                may_come = session.commit(session.new_change()).await.is_err();
                if !may_come {
                    continue;
                }
            }
            // A question that waits looks again anyway.
            let is_over = is_queued || self.is_cancelled.get() || context.now() >= end;
            if is_over || !context.host.time_limit(LONGEST_PAUSE).await {
                break;
            }
        }
        if is_known && !error.may_have_written() { FoundBegin::Absent } else { FoundBegin::Unknown }
    }

    fn look_for_begin(&self, error: &Error) -> FoundBegin {
        let log = self.session.log.borrow();
        match log.head.run(&self.id) {
            Some(entry) if entry.is_queued() => FoundBegin::Absent,
            Some(entry) if entry.epoch == self.epoch.get() && self.session.is_own_entry(entry, self.has_lock) => {
                FoundBegin::Begun
            }
            // Another run has its id.
            _ if error.code == ErrorCode::Conflict => FoundBegin::Absent,
            Some(_) => FoundBegin::TakenOver,
            None => FoundBegin::Absent,
        }
    }

    /// Drops a run of which nothing is stored, so that another one may begin with its question.
    ///
    /// # Errors
    /// `aborted` if it was cancelled.
    fn withdraw(&self) -> Result<()> {
        let (session, context) = (&self.session, &self.session.context);
        self.given_up.set(true);
        self.callbacks.end_of_run();
        if self.is_holder.replace(false) {
            context.live.borrow_mut().remove(&lock_name(context, &session.id, &self.id));
            *self.lock.borrow_mut() = None;
            session.set_run(None);
        } else {
            // It was cancelled, and the store did not answer in time.
            session.remove_run_of_memory(&self.id);
        }
        self.signal_change();
        if self.is_cancelled.get() { Err(aborted()) } else { Ok(()) }
    }
}

/// What became of a begin whose write failed.
enum FoundBegin {
    Begun,
    /// Nothing of it is stored, and nothing will be.
    Absent,
    /// It had begun, and another process has taken the run over.
    TakenOver,
    /// The store does not say.
    Unknown,
}

fn aborted() -> Error {
    Error::new(ErrorCode::Aborted, "the run was cancelled before it began: nothing of it is stored")
}

fn taken_over() -> Error {
    let sentence = "another tab or process has taken the run over: it is in `pendingRuns()`, so do not send it again";
    Error::new(ErrorCode::Conflict, sentence)
}

fn unknown_begin(error: &Error) -> Error {
    let why = &error.message;
    let sentence = format!(
        "the store does not say whether the run has begun; look in `pendingRuns()` before you send it again: {why}"
    );
    Error::unanswered(sentence, true)
}
