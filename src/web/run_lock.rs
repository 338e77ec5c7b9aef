//! The locks of a run: one owner among all tabs.

use super::platform::{LockOutcome, WebLock, request_lock, try_acquire_lock};
use super::session_inner::SessionInner;
use super::store_context::StoreContext;
use crate::error::{Error, ErrorCode, Result};
use crate::session_head::RunEntry;

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

/// The locks of a run's owner. They are released in the order of the fields, so a tab that waits for the liveness lock can acquire the
/// other one.
pub struct RunLock {
    _owner: WebLock,
    _liveness: Option<WebLock>,
}

/// How this tab owns a run: its epoch in the head, and the lock, if the platform has locks.
pub struct RunOwnership {
    pub epoch: u32,
    pub lock: Option<RunLock>,
}

/// Acquires the lock of a run, or returns none if the platform has no locks.
///
/// # Errors
/// `busy` if another tab, or another call in this one, owns the run.
pub async fn acquire_run_lock(session: &SessionInner, run: &str) -> Result<Option<RunLock>> {
    let context = &session.context;
    let name = lock_name(context, &session.id, run);
    let outcome = if context.live.borrow().contains(&name) {
        LockOutcome::HeldElsewhere
    } else if context.has_tabs() {
        try_acquire_lock(&name).await
    } else {
        LockOutcome::Unsupported
    };
    match outcome {
        LockOutcome::Acquired(lock) => {
            Ok(Some(RunLock { _owner: lock, _liveness: request_lock(&liveness_lock_name(context, &session.id, run)) }))
        }
        LockOutcome::HeldElsewhere => {
            Err(Error::new(ErrorCode::Busy, "the run lives elsewhere: another tab, or another call here, owns it"))
        }
        LockOutcome::Unsupported => Ok(None),
    }
}

/// Returns true if a run of another owner is live: its lock is held, or, on a platform without locks, its lease has not run out.
/// `held` are the names of all locks that are held in any tab.
pub fn held_by_other_tabs(context: &StoreContext, held: Option<&[String]>, lock_name: &String, run: &RunEntry) -> bool {
    held.map_or(run.lease_until > context.now(), |held| held.contains(lock_name))
}
