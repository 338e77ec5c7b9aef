//! A run whose lease ended, and beside which another run has begun in the conversation that a service keeps (R22). It
//! sends nothing any more. What its tools return meanwhile is stored before it ends: a tool ran once.

use super::run_driver::RunDriver;
use crate::error::{Error, ErrorCode, Result};
use crate::run::{EffectKind, EffectReply, RunInput, RunWriter, Save, change_for};
use crate::store::Change;
use std::rc::Rc;

impl RunDriver {
    /// Returns true if another run has replaced this one.
    pub(super) fn is_superseded(&self) -> bool {
        self.superseded.borrow().is_some()
    }

    /// Returns true for the error of a write that failed because another run has begun since the lease ended.
    fn is_late_conflict(&self, error: &Error) -> bool {
        error.code == ErrorCode::Conflict && !self.is_superseded() && self.condition_of_late_write().is_some()
    }

    /// Ends the run, whose write failed because it is held elsewhere or another run has replaced it; then its tools
    /// return first.
    pub(super) async fn lose(self: &Rc<Self>, error: Error) {
        if self.is_late_conflict(&error) {
            self.superseded.replace(Some(error));
            return self.end_if_superseded().await;
        }
        // The run's events report the failure.
        let _ = self.handle(RunInput::Lost(error)).await;
    }

    /// Ends the run if another one has replaced it, and all results of its tools are stored.
    pub(super) async fn end_if_superseded(self: &Rc<Self>) {
        if !self.is_superseded() || self.machine.borrow().has_open_results(None) {
            return;
        }
        // What cannot be written now is lost, as after a kill.
        let _ = self.flush().await;
        let error = self.superseded.borrow().clone().filter(|_| self.is_under_way());
        if let Some(error) = error {
            // The run's events report the failure.
            let _ = self.handle(RunInput::Lost(error)).await;
        }
    }

    /// Looks before a reply is handled whether another run has replaced this one, unless the reply is what a tool
    /// returned.
    ///
    /// # Errors
    /// `conflict` if a tool would be started.
    pub(super) async fn check_superseded(self: &Rc<Self>, effect: &str, reply: &EffectReply) -> Result<()> {
        let is_start = matches!(reply, EffectReply::Started);
        if is_start || !self.is_tool(effect) {
            self.renew_ended_lease().await;
        }
        match &*self.superseded.borrow() {
            Some(error) if is_start => Err(error.clone()),
            _ => Ok(()),
        }
    }

    fn is_tool(&self, effect: &str) -> bool {
        let machine = self.machine.borrow();
        let is_it = machine.effects().into_iter().find(|open| open.id == effect);
        is_it.is_some_and(|open| matches!(open.kind, EffectKind::RunTool { .. }))
    }

    /// Writes a save of the machine. Returns the revision of the history.
    pub(super) async fn write_save(&self, save: &Save) -> Result<u64> {
        let make = || {
            let (now, lease_until) = (self.session.context.now(), self.lease_end());
            let writer = RunWriter { run: &self.id, name: &self.name, epoch: self.epoch.get(), now, lease_until };
            change_for(save, &writer).map(|change| self.with_conditions(change))
        };
        let has_happened = self.machine.borrow().is_record_of_tools(save.id);
        self.commit_save(&make, save.is_urgent(), has_happened).await
    }

    /// Ends the run, if another one has replaced it, before the step that the success of this save would cause.
    pub(super) fn end_before_step(&self, save: u64) -> Result<()> {
        if self.machine.borrow().has_open_results(Some(save)) {
            return Ok(());
        }
        let error = self.superseded.borrow().clone();
        error.map_or(Ok(()), |error| self.step(RunInput::Lost(error)))
    }

    /// Commits what has happened already. If another run has replaced this one, it is written nevertheless, and the
    /// lease is not renewed.
    pub(super) async fn commit_record(&self, make: &dyn Fn() -> Result<Change>) -> Result<u64> {
        if !self.is_superseded() {
            match self.commit_now(make()?).await {
                Err(error) if self.is_late_conflict(&error) => _ = self.superseded.replace(Some(error)),
                outcome => return outcome,
            }
        }
        let mut change = make()?;
        if let Some(journal) = &mut change.journal {
            journal.lease_until = 0;
        }
        self.commit_change(change).await
    }
}
