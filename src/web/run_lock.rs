//! The owner of a run: one among all tabs and processes.

use super::owned_runs::RegisteredRun;
use super::platform::{LockOutcome, WebLock, held_locks, request_lock, try_acquire_lock};
use super::session_inner::SessionInner;
use super::store_context::StoreContext;
use crate::clock::Ms;
use crate::error::{Error, ErrorCode, Result};
use crate::session_head::RunEntry;
use std::collections::BTreeSet;
use std::rc::Rc;

/// Returns the name of a run's lock, unique in all tabs of an origin. It contains the session, since an application's id source may
/// give runs of two sessions one id; the lengths keep the parts apart.
pub fn lock_name(context: &StoreContext, session: &str, run: &str) -> String {
    let (name, database, place) = (&context.name, context.name.len(), session.len());
    format!("rethread:{database}:{name}:{place}:{session}:run:{run}")
}

/// Returns the name of the lock that a run's owner holds so that other tabs can wait for its end.
pub fn liveness_lock_name(context: &StoreContext, session: &str, run: &str) -> String {
    format!("{}:alive", lock_name(context, session, run))
}

/// What shows that a run's owner is alive, until it is dropped.
pub enum RunLock {
    /// Web Locks. They are released in the order of the fields, so a tab that waits for the liveness lock can acquire the other one.
    WebLocks { _owner: WebLock, _liveness: Option<WebLock> },
    /// The run is registered with the driver of a database that only this process can have open.
    Registered { _run: RegisteredRun },
}

/// How this tab owns a run: its epoch in the head, and the lock. Without a lock the run has a lease.
pub struct RunOwnership {
    pub epoch: u32,
    pub lock: Option<RunLock>,
}

/// Marks a run that this tab takes over, or of which it writes what is left, until it is dropped. Meanwhile no other call takes its lease for
/// one that was left behind.
pub struct RunClaim {
    context: Rc<StoreContext>,
    name: String,
}

impl RunClaim {
    /// Claims a run; none if it is claimed already.
    pub fn new(session: &SessionInner, run: &str) -> Option<Self> {
        let context = session.context.clone();
        let name = lock_name(&context, &session.id, run);
        let is_new = context.claimed.borrow_mut().insert(name.clone());
        is_new.then_some(Self { context, name })
    }
}

impl Drop for RunClaim {
    fn drop(&mut self) {
        self.context.claimed.borrow_mut().remove(&self.name);
    }
}

/// Acquires the lock of a run, or returns none if nothing but a lease can show that its owner is alive.
///
/// # Errors
/// `busy` if another tab, or another call in this one, owns the run.
pub async fn acquire_run_lock(session: &SessionInner, run: &str) -> Result<Option<RunLock>> {
    let context = &session.context;
    let name = lock_name(context, &session.id, run);
    if context.live.borrow().contains(&name) {
        return Err(owned_elsewhere());
    }
    if let Some(owned) = &context.owned_runs {
        let run = owned.register(&name)?.ok_or_else(owned_elsewhere)?;
        return Ok(Some(RunLock::Registered { _run: run }));
    }
    let outcome = if context.has_tabs() { try_acquire_lock(&name).await } else { LockOutcome::Unsupported };
    match outcome {
        LockOutcome::Acquired(lock) => {
            let liveness = request_lock(&liveness_lock_name(context, &session.id, run));
            Ok(Some(RunLock::WebLocks { _owner: lock, _liveness: liveness }))
        }
        LockOutcome::HeldElsewhere => Err(owned_elsewhere()),
        LockOutcome::Unsupported => Ok(None),
    }
}

fn owned_elsewhere() -> Error {
    Error::new(ErrorCode::Busy, "the run lives elsewhere: another tab, or another call here, owns it")
}

/// Tells which runs have a live owner in another tab or process.
pub struct LiveOwners {
    /// The names of all locks that are held; none if only leases tell.
    held: Option<Vec<String>>,
    owned_runs: Option<super::owned_runs::OwnedRuns>,
    now: Ms,
    /// The name of this open store, and the lock names of the runs that it is busy with.
    origin: String,
    busy_here: BTreeSet<String>,
}

impl LiveOwners {
    /// Asks the platform which locks are held.
    pub async fn query(context: &StoreContext) -> Self {
        let held = if context.has_tabs() { held_locks().await } else { None };
        let busy_here = context.live.borrow().union(&context.claimed.borrow()).cloned().collect();
        Self { held, owned_runs: context.owned_runs.clone(), now: context.now(), origin: context.origin(), busy_here }
    }

    /// Returns true if nothing but leases tells.
    pub fn are_known_by_leases(&self) -> bool {
        self.owned_runs.is_none() && self.held.is_none()
    }

    /// Returns true if the run's lock is held, or, where nothing but a lease tells, its lease has not run out. A lease of this open store that
    /// no run of it has was left behind: the reply to its write was lost, or it could not be ended.
    pub fn owns(&self, lock_name: &String, run: &RunEntry) -> bool {
        match (&self.owned_runs, &self.held) {
            (Some(owned), _) => owned.has(lock_name),
            (None, Some(held)) => held.contains(lock_name),
            (None, None) => {
                let is_left_behind = run.is_held_by(&self.origin) && !self.busy_here.contains(lock_name);
                run.lease_until > self.now && !is_left_behind
            }
        }
    }
}
