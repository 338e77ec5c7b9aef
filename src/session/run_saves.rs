//! Commits the saves of a run: at once, or coalesced where a store charges for each write (R21).
//!
//! With `flushMs` the entries of a run's journal are gathered for that long and written as one batch; a kill loses what
//! was gathered and no more. The end of a run is never deferred: what `saved` reports is stored. Nor is a decision
//! about a call: a person is not asked twice. Nor is the result of an asynchronous tool: another process may have
//! answered the call first. Without `flushMs`, the default, nothing is deferred.

use super::deferred_saves::{is_deferrable, step_of};
use super::run_driver::RunDriver;
use crate::error::{Error, ErrorCode, Result};
use crate::run::{RunEvent, RunInput};
use crate::store::{Change, JournalStep};
use std::rc::Rc;

impl RunDriver {
    /// Writes the change of a save, after those that were deferred, or defers it, unless it is urgent or the run's
    /// lease has ended. `has_happened`: it says what a tool did, so it is written even if another run has replaced this
    /// one. Returns the revision of the history.
    pub(super) async fn commit_save(
        &self,
        make: &dyn Fn() -> Result<Change>,
        is_urgent: bool,
        has_happened: bool,
    ) -> Result<u64> {
        let change = make()?;
        let is_late = self.is_superseded() || self.condition_of_late_write().is_some();
        if !is_urgent && !is_late && self.session.flush_ms.get() > 0 && is_deferrable(&change) {
            self.deferred.push(change);
            self.flush_later();
            return Ok(self.session.revision());
        }
        let commit =
            async { if has_happened { self.commit_record(make).await } else { self.commit_now(change).await } };
        if self.deferred.is_empty() {
            return commit.await;
        }
        let _turn = self.deferred.order.enter().start().await;
        if matches!(step_of(&make()?), Some(JournalStep::End)) {
            self.deferred.drop_entries();
        }
        self.write_deferred().await?;
        commit.await
    }

    /// Ends the run, whose saves fail, with the newest save's error. Whoever finds the run in the store resumes it.
    pub async fn abandon_saves(self: &Rc<Self>) {
        let error =
            self.save_error.take().unwrap_or_else(|| Error::new(ErrorCode::StoreError, "the store did not answer"));
        let message = format!(
            "{}; the run's last steps are not stored: resume it, or its snapshot, when the store works again",
            error.message
        );
        // The run's events report the failure.
        let _ = self.handle(RunInput::AbandonSaves(error.with_message(message))).await;
        let run = self.clone();
        // Not awaited: the store may not answer.
        self.session.context.spawn(async move { run.end_lease().await });
    }

    /// Writes what was deferred.
    pub async fn flush(&self) -> Result<()> {
        if self.deferred.is_empty() {
            return Ok(());
        }
        let _turn = self.deferred.order.enter().start().await;
        self.write_deferred().await
    }

    /// Writes what was deferred before the stored session is read. A run that another holder took over fails instead:
    /// what it deferred is no part of the session.
    pub async fn flush_before_read(&self) -> Result<()> {
        match self.flush().await {
            Err(error) if is_hold_lost(&error) => {
                self.on_failed_flush(error);
                Ok(())
            }
            Ok(()) => {
                self.end_soon_if_superseded();
                Ok(())
            }
            failed => failed,
        }
    }

    fn end_soon_if_superseded(&self) {
        let run = self.weak_self.upgrade().filter(|_| self.is_superseded());
        if let Some(run) = run {
            self.session.context.spawn(async move { run.end_if_superseded().await });
        }
    }

    async fn write_deferred(&self) -> Result<()> {
        let no_batch = || Error::new(ErrorCode::Internal, "no batch of the journal waits");
        while !self.deferred.is_empty() {
            let outcome = self.commit_record(&|| self.deferred.next_batch().ok_or_else(no_batch)).await;
            if outcome.as_ref().err().is_none_or(|error| error.code == ErrorCode::Conflict) {
                self.deferred.attempted.take();
            }
            outcome?;
        }
        Ok(())
    }

    /// Writes a change, unless another run has replaced this one.
    pub(super) async fn commit_now(&self, mut change: Change) -> Result<u64> {
        if let Some(error) = self.superseded.borrow().clone() {
            return Err(error);
        }
        if change.exclusive.is_none() {
            change.exclusive = self.condition_of_late_write();
        }
        self.commit_change(change).await
    }

    pub(super) async fn commit_change(&self, mut change: Change) -> Result<u64> {
        // A write that was under way when the run was given up does not lease it again.
        if let Some(journal) = change.journal.as_mut().filter(|_| self.given_up.get()) {
            journal.lease_until = 0;
        }
        let revision = self.session.commit(change).await?;
        self.keep_lease();
        // The pending runs changed, in this tab and in others.
        self.session.context.announce_append(&self.session.id, revision);
        Ok(revision)
    }

    /// Writes what was deferred when `flushMs` have passed. What fails is written with the next save.
    fn flush_later(&self) {
        if self.deferred.has_timer.replace(true) {
            return;
        }
        let run = self.weak_self.clone();
        let pause = self.session.context.host.sleep(self.session.flush_ms.get());
        self.session.context.spawn(async move {
            let has_timers = pause.await;
            let Some(run) = run.upgrade() else { return };
            run.deferred.has_timer.set(false);
            // Without timers nothing but the next save writes it.
            if has_timers && run.is_under_way() {
                run.flush_now().await;
            }
        });
    }

    /// Reports that what was deferred could not be written, and writes it later; the run fails if this tab has lost it.
    pub fn on_failed_flush(&self, error: Error) {
        if !is_hold_lost(&error) {
            self.events.borrow_mut().push(RunEvent::SaveFailed { error });
            self.signal_change();
            return self.flush_later();
        }
        let run = self.weak_self.clone();
        self.session.context.spawn(async move {
            if let Some(run) = run.upgrade() {
                run.lose(error).await;
            }
        });
    }

    async fn flush_now(self: Rc<Self>) {
        match self.flush().await {
            Ok(()) => {
                self.release_while_waiting().await;
                self.end_if_superseded().await;
            }
            Err(error) if is_hold_lost(&error) => self.lose(error).await,
            Err(_) => self.flush_later(),
        }
    }
}

/// Returns true for the error of a write whose run another holder took over, or whose session was deleted.
fn is_hold_lost(error: &Error) -> bool {
    matches!(error.code, ErrorCode::Conflict | ErrorCode::NotFound)
}
