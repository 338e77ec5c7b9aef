//! Starts a run when no other run of its session is in the way.

use super::host::{LockOutcome, RunLock};
use super::live_run::LiveRun;
use super::open_session::OpenSession;
use super::run_driver::RunDriver;
use super::run_lock::{lock_name, queue_lock_names};
use crate::error::{ErrorCode, Result};
use crate::owner::StateOwner;
use crate::store::ExclusiveRun;
use std::rc::Rc;

impl RunDriver {
    /// Starts a run if no other one of the session is under way in this tab.
    ///
    /// # Errors
    /// `busy` if another run is in the way, also one of another tab or process if a service keeps the conversation;
    /// those of `starting`.
    pub async fn launch(session: &OpenSession, starting: impl Future<Output = Result<Rc<Self>>>) -> Result<Rc<Self>> {
        session.reserve_run()?;
        let started = match session.lock_conversation().await {
            Ok(lock) => starting.await.map(|run| (run, lock)),
            Err(error) => Err(error),
        };
        session.set_run(started.as_ref().ok().map(|(run, _)| run.clone() as Rc<dyn LiveRun>));
        let (run, conversation_lock) = started?;
        // The run's events report what could not be written.
        let written = run.write_pending().await;
        drop(conversation_lock);
        session.context.check_open()?;
        match written {
            // Nothing was stored of it, and nothing sent.
            Err(error) if error.code == ErrorCode::Busy && session.remove_unwritten_run(&run.id) => {
                session.notify();
                Err(error)
            }
            _ => Ok(run),
        }
    }
}

impl OpenSession {
    /// Returns the condition under which a run may begin or go on, if a service keeps the conversation: there, the
    /// request of one run would close the open calls of another.
    pub(super) fn exclusive_run(&self, id: &str) -> Option<ExclusiveRun> {
        if !self.has_conversation() {
            return None;
        }
        let (context, log) = (&self.context, self.log.borrow());
        let origin = context.origin();
        let is_busy_here = |run: &str| {
            let name = lock_name(context, &self.id, run);
            context.live.borrow().contains(&name) || context.claimed.borrow().contains(&name)
        };
        let left_behind = log.head.runs.iter().filter(|run| run.is_held_by(&origin) && !is_busy_here(&run.id));
        let left_behind = left_behind.map(|run| run.id.clone()).collect();
        Some(ExclusiveRun { id: id.to_owned(), left_behind, is_late: false })
    }

    pub(super) fn has_conversation(&self) -> bool {
        self.owner().is_ok_and(|owner| StateOwner::is_conversation(&owner))
    }

    /// Checks, if a service keeps the conversation, that no run of the session is under way in another tab or process.
    /// Until the lock that it returns is dropped, none begins. Where there are no locks, the first append of the run
    /// checks it.
    ///
    /// # Errors
    /// `busy`; the store's own.
    pub(super) async fn lock_conversation(&self) -> Result<Option<RunLock>> {
        if !self.has_conversation() {
            return Ok(None);
        }
        let lock = match self.try_lock_queue().await? {
            LockOutcome::Acquired(lock) => Some(lock),
            LockOutcome::HeldElsewhere => return Err(ExclusiveRun::busy()),
            LockOutcome::Unsupported => None,
        };
        self.refresh().await?;
        if self.run_elsewhere().await.is_some() { Err(ExclusiveRun::busy()) } else { Ok(lock) }
    }
    /// Acquires the lock under which runs begin in a conversation that a service keeps. Other sessions have none.
    ///
    /// # Errors
    /// The host's own.
    pub(super) async fn try_lock_queue(&self) -> Result<LockOutcome> {
        if !self.has_conversation() {
            return Ok(LockOutcome::Unsupported);
        }
        self.context.host.lock_run(&queue_lock_names(&self.context, &self.id)).await
    }
}
