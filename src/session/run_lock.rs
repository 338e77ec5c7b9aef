//! The holder of a run: one among all tabs and processes.

use super::context::StoreContext;
use super::host::{HeldLocks, LockOutcome, RunLock, RunLockNames};
use crate::clock::Ms;
use crate::error::{Error, ErrorCode, Result};
use crate::session_head::RunEntry;
use std::collections::BTreeSet;
use std::rc::Rc;

/// Returns the name of a run's lock, unique in all tabs of an origin. It contains the session, since an application's
/// id source may give runs of two sessions one id; the lengths keep the parts apart.
pub fn lock_name(context: &StoreContext, session: &str, run: &str) -> String {
    let name = &context.settings.name;
    let (database, place) = (name.len(), session.len());
    format!("rethread:{database}:{name}:{place}:{session}:run:{run}")
}

/// Returns the name of the lock that a run's holder has so that other tabs can wait for its end.
pub fn liveness_lock_name(context: &StoreContext, session: &str, run: &str) -> String {
    format!("{}:alive", lock_name(context, session, run))
}

/// Returns the names of the lock that a run of a session's queue has while it waits and begins.
pub fn queue_lock_names(context: &StoreContext, session: &str) -> RunLockNames {
    let name = &context.settings.name;
    let (database, place) = (name.len(), session.len());
    let holder = format!("rethread:{database}:{name}:{place}:{session}:queue");
    RunLockNames { liveness: format!("{holder}:alive"), holder }
}

/// How a run is held here: its epoch in the head, and the lock. Without a lock the run has a lease.
pub struct RunHold {
    /// The epoch of its holder.
    pub epoch: u32,
    /// The lock, if there are locks and the run has it already.
    pub lock: Option<RunLock>,
    /// False if it has a lease.
    pub has_lock: bool,
}

impl RunHold {
    /// Makes the hold of a run that has this lock, or else a lease.
    pub fn of_lock(epoch: u32, lock: Option<RunLock>) -> Self {
        let has_lock = lock.is_some();
        Self { epoch, lock, has_lock }
    }
}

/// Marks a run that is taken over here, or of which is written what is left, until it is dropped. Meanwhile no other
/// call takes its lease for one that was left behind.
pub struct RunClaim {
    context: Rc<StoreContext>,
    name: String,
}

impl RunClaim {
    /// Claims a run; none if it is claimed already.
    pub fn new(context: &Rc<StoreContext>, session: &str, run: &str) -> Option<Self> {
        let context = context.clone();
        let name = lock_name(&context, session, run);
        let is_new = context.claimed.borrow_mut().insert(name.clone());
        is_new.then_some(Self { context, name })
    }
}

impl Drop for RunClaim {
    fn drop(&mut self) {
        self.context.claimed.borrow_mut().remove(&self.name);
    }
}

/// Acquires the lock of a run, or returns none if nothing but a lease can show that its holder is alive.
///
/// # Errors
/// `busy` if another tab, or another call in this one, holds the run.
pub async fn acquire_run_lock(context: &StoreContext, session: &str, run: &str) -> Result<Option<RunLock>> {
    let holder = lock_name(context, session, run);
    if context.live.borrow().contains(&holder) {
        return Err(held_elsewhere());
    }
    let names = RunLockNames { holder, liveness: liveness_lock_name(context, session, run) };
    match context.host.lock_run(&names).await? {
        LockOutcome::Acquired(lock) => Ok(Some(lock)),
        LockOutcome::HeldElsewhere => Err(held_elsewhere()),
        LockOutcome::Unsupported => Ok(None),
    }
}

fn held_elsewhere() -> Error {
    Error::new(ErrorCode::Busy, "the run lives elsewhere: another tab, or another call here, owns it")
}

/// Tells which runs have a live holder in another tab or process.
pub struct LiveHolders {
    /// The locks that are held; none if only leases tell.
    held: Option<HeldLocks>,
    now: Ms,
    /// The name of this open store, and the lock names of the runs that it is busy with.
    origin: String,
    busy_here: BTreeSet<String>,
}

impl LiveHolders {
    /// Asks the host which locks are held.
    pub async fn query(context: &StoreContext) -> Self {
        let held = context.host.held_locks().await;
        let busy_here = context.live.borrow().union(&context.claimed.borrow()).cloned().collect();
        Self { held, now: context.now(), origin: context.origin(), busy_here }
    }

    /// Returns true if nothing but leases tells.
    pub fn are_known_by_leases(&self) -> bool {
        self.held.is_none()
    }

    /// Returns true if the run's lock is held, or, where nothing but a lease tells, its lease has not run out. A lease
    /// of this open store that no run of it has was left behind: the reply to its write was lost, or it could not be
    /// ended.
    pub fn has_holder(&self, lock_name: &str, run: &RunEntry) -> bool {
        match &self.held {
            Some(is_held) => is_held(lock_name),
            None => {
                let is_left_behind = run.is_held_by(&self.origin) && !self.busy_here.contains(lock_name);
                run.lease_until > self.now && !is_left_behind
            }
        }
    }
}
