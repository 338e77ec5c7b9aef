//! Approvals of a run's tool calls (R29). Nobody holds a run that can only wait for a person: the tab releases it, so
//! that another tab or process may take it over, and acquires it again for a decision.

use super::live_run::LiveRun;
use super::resume::lock_waiting_run;
use super::run_driver::RunDriver;
use super::run_lock::lock_name;
use crate::error::{ErrorCode, Result};
use crate::run::{ApprovalDecision, RunInput, RunStatus};
use std::rc::Rc;

impl RunDriver {
    /// Passes a person's decision about a call to the run, which this tab acquires before if nobody holds it.
    ///
    /// # Errors `wrong_state` or `not_found` if the call does not wait, `invalid_input` if several calls have the id,
    /// those of [`hold_if_waiting`](Self::hold_if_waiting), and those of the store.
    pub async fn decide(self: &Rc<Self>, id: String, decision: ApprovalDecision) -> Result<()> {
        self.check_not_disposed()?;
        self.machine.borrow().check_waiting(&id)?;
        self.hold_if_waiting().await?;
        let outcome = self.handle(RunInput::Decide { id, decision }).await;
        // Another decision about the same call was faster.
        self.release_while_waiting().await;
        outcome
    }

    /// Calls `needsApproval` of tools whose calls were received. Not awaited: other tools run meanwhile.
    pub fn call_approval_callbacks(self: &Rc<Self>) {
        loop {
            let question = self.machine.borrow_mut().take_approval_question();
            let Some(question) = question else { return };
            let run = self.clone();
            self.session.context.spawn(async move {
                let asked = run.session.context.host.needs_approval(&question);
                // The wait is ended for a run that needs no answer any more.
                let Ok(reply) = run.callbacks.answered(asked).await else { return };
                // The run's events report a failure.
                let _ = run.handle(RunInput::ApprovalReply(question.invocation, reply)).await;
            });
        }
    }

    fn can_be_released(&self) -> bool {
        self.is_holder.get() && !self.given_up.get() && self.machine.borrow().status() == RunStatus::WaitingApproval
    }

    /// Releases a run that waits for an approval, after what was deferred is written.
    pub async fn release_while_waiting(&self) {
        if !self.can_be_released() {
            return;
        }
        let _turn = self.holding.enter().start().await;
        if !self.can_be_released() {
            return;
        }
        // What cannot be written now is kept by the holder of the run, which writes it later.
        if let Err(error) = self.flush().await {
            return self.on_failed_flush(error);
        }
        self.end_lease().await;
        if self.can_be_released() {
            self.release_hold();
            let session = &self.session;
            session.keep_waiting_run(self.weak_self.clone());
            let revision = session.log.borrow().head.history_revision;
            session.context.announce_change(&session.id, revision);
            session.notify();
        }
    }

    /// Acquires a run that waits for an approval and that nobody holds, as its holder so far.
    ///
    /// # Errors `busy` if another run of the session is under way here, or another tab has this one at the moment.
    /// `conflict` if another holder took the run over, and `not_found` if the run has ended elsewhere; it has failed
    /// then. `closed`.
    pub async fn hold_if_waiting(self: &Rc<Self>) -> Result<()> {
        self.check_not_disposed()?;
        if self.is_holder.get() && self.machine.borrow().status() != RunStatus::WaitingApproval {
            return Ok(());
        }
        let _turn = self.holding.enter().start().await;
        if self.is_holder.get() || self.machine.borrow().status().is_over() {
            return Ok(());
        }
        let session = &self.session;
        session.context.check_open()?;
        session.reserve_run()?;
        let outcome = lock_waiting_run(session, &self.id, self.epoch.get()).await;
        let held = outcome.is_ok().then(|| self.clone() as Rc<dyn LiveRun>);
        if held.is_some() {
            session.context.live.borrow_mut().insert(lock_name(&session.context, &session.id, &self.id));
            self.is_holder.set(true);
        }
        session.set_run(held);
        match outcome {
            Ok(lock) => {
                *self.lock.borrow_mut() = lock;
                self.keep_lease();
                Ok(())
            }
            Err(error) => {
                if matches!(error.code, ErrorCode::Conflict | ErrorCode::NotFound) {
                    // The run's events report the failure.
                    let _ = self.handle(RunInput::Lost(error.clone())).await;
                }
                Err(error)
            }
        }
    }
}
