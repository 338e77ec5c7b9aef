//! The lease of a run. Where no lock shows who is alive, the head says until when the holder of a run counts as alive.
//!
//! The holder renews the lease while the run is under way, whenever a third of it has passed. Times are those of the
//! holder's clock, so a process whose clock is ahead by more than two thirds of a lease resumes a run too early. That
//! does no harm: the run's epoch rises, and the former holder's writes conflict.

use super::context::StoreContext;
use super::run_driver::RunDriver;
use crate::clock::Ms;
use crate::error::{ErrorCode, Result};
use crate::store::{Change, ExclusiveRun, JournalChange, JournalStep};
use std::rc::Rc;

/// Returns true if nothing but a lease shows other processes that a run's holder is alive. A memory store has no other
/// processes.
pub fn is_leased(context: &StoreContext, has_lock: bool) -> bool {
    !has_lock && context.is_durable()
}

/// Returns the end of a lease that begins now; 0 if the run has no lease.
pub fn lease_end(context: &StoreContext, has_lock: bool) -> Ms {
    if is_leased(context, has_lock) { context.now().saturating_add(context.settings.lease_ms) } else { 0 }
}

impl RunDriver {
    /// Returns true if the run has a lease.
    fn is_leased(&self) -> bool {
        is_leased(&self.session.context, self.has_lock)
    }

    /// Returns the end of a lease that begins now; 0 if the run has no lease.
    pub fn lease_end(&self) -> Ms {
        lease_end(&self.session.context, self.has_lock)
    }

    /// Renews the run's lease from now on, until the run is over or released, or its store is closed. Must be called
    /// when the run is in the head.
    pub fn keep_lease(&self) {
        if !self.is_leased() || self.keeps_lease.replace(true) {
            return;
        }
        let (run, host) = (self.weak_self.clone(), self.session.context.host.clone());
        self.session.context.spawn(async move {
            loop {
                let Some(holder) = run.upgrade() else { return };
                let Some(wait) = holder.time_to_renewal() else { return holder.keeps_lease.set(false) };
                drop(holder);
                // Without timers the lease runs out, and the run's writes renew it.
                if !host.sleep(wait).await {
                    return;
                }
                let Some(holder) = run.upgrade() else { return };
                if !holder.is_under_way() {
                    return holder.keeps_lease.set(false);
                }
                holder.renew_lease().await;
            }
        });
    }

    /// Returns true if the run is held here, and it is not over.
    pub fn is_under_way(&self) -> bool {
        self.is_holder.get()
            && !self.machine.borrow().status().is_over()
            && !self.given_up.get()
            && self.session.context.check_open().is_ok()
    }

    /// Returns how long the lease need not be renewed, in milliseconds; none if the run is over, or another one has
    /// replaced it.
    fn time_to_renewal(&self) -> Option<Ms> {
        if !self.is_under_way() || self.is_superseded() {
            return None;
        }
        let (lease, now) = (self.session.context.settings.lease_ms, self.session.context.now());
        let until = self.session.log.borrow().head.run(&self.id).map_or(0, |entry| entry.lease_until);
        // At most a third: a clock may be set back. At least a tenth: a renewal that failed is not repeated at once.
        Some(until.saturating_sub(now).saturating_sub(lease / 3 * 2).clamp(lease / 10, lease / 3))
    }

    /// Renews the lease, unless a write of the run has just done so. The run fails with `conflict` if another holder
    /// has taken it over, and when its tools have returned if another run has replaced it.
    async fn renew_lease(self: &Rc<Self>) {
        if self.time_to_renewal().is_none_or(|wait| wait > self.session.context.settings.lease_ms / 10) {
            return;
        }
        let revision = self.session.revision();
        match self.write_lease(self.lease_end()).await {
            Err(error) if matches!(error.code, ErrorCode::Conflict | ErrorCode::NotFound) => self.lose(error).await,
            // It was given up or released meanwhile.
            Ok(()) if self.given_up.get() || !self.is_holder.get() => self.end_lease().await,
            // A store that cannot be written to now is asked again.
            _ => {}
        }
        if self.session.revision() != revision {
            self.session.notify();
        }
    }

    /// Returns the condition of a write of the run, if its lease has ended and a service keeps the conversation: this
    /// process was suspended, or cut off from its store, and another run may have begun meanwhile.
    pub(super) fn condition_of_late_write(&self) -> Option<ExclusiveRun> {
        if !self.has_ended_lease() {
            return None;
        }
        let exclusive = self.session.exclusive_run(&self.id)?;
        Some(ExclusiveRun { is_late: true, ..exclusive })
    }

    fn has_ended_lease(&self) -> bool {
        let until = self.session.log.borrow().head.run(&self.id).map_or(0, |entry| entry.lease_until);
        self.is_leased() && until != 0 && until <= self.session.context.now()
    }

    /// Renews a lease that has ended, if a service keeps the conversation. The run is superseded if another run has
    /// begun meanwhile: it sends nothing any more.
    pub(super) async fn renew_ended_lease(self: &Rc<Self>) {
        if self.is_under_way() && self.has_ended_lease() && self.session.has_conversation() {
            self.renew_lease().await;
        }
    }

    /// Ends the lease, so that others may resume the run at once.
    pub async fn end_lease(&self) {
        if self.is_leased() {
            // If this fails, the lease runs out.
            let _ = self.write_lease(0).await;
        }
    }

    /// Writes what was deferred and ends the lease: the run is given up, or its store is being closed.
    pub async fn write_last(&self) {
        // What cannot be written now is lost, as after a kill.
        let _ = self.flush().await;
        self.end_lease().await;
    }

    async fn write_lease(&self, lease_until: Ms) -> Result<()> {
        let journal = JournalChange {
            run: self.id.clone(),
            epoch: self.epoch.get(),
            lease_until,
            lease_ended_by: None,
            step: JournalStep::Renew,
        };
        let run = Some(self.id.clone());
        let change = Change {
            operation: self.session.context.host.random_id(),
            run,
            at: self.session.context.now(),
            journal: Some(journal),
            exclusive: if lease_until > 0 { self.condition_of_late_write() } else { None },
            ..Change::default()
        };
        self.session.commit_lease(change).await
    }
}
