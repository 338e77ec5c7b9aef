//! The host of the component as the host of an open store: it tells the time and performs the effects. It has no
//! locks and no other tabs.

use super::effects::Effects;
use super::executor::Executor;
use super::random::Random;
use crate::clock::{Clock, Ms};
use crate::error::Result;
use crate::finding::{Finding, Report};
use crate::id::IdSource;
use crate::session::{
    AnswerNews, Audience, HeldLocks, Host, LocalFuture, LockOutcome, RunLockNames, SessionChange, SessionSurface,
};
use crate::store::NoticeText;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

/// The runs under way, if only this engine uses the store.
type OwnedRuns = Rc<RefCell<BTreeSet<String>>>;

/// The host of one engine.
#[derive(Default)]
pub struct ComponentHost {
    /// Its tasks and timers.
    pub executor: Rc<Executor>,
    /// What it performs.
    pub effects: Rc<Effects>,
    /// Its random numbers.
    pub random: Random,
    owned_runs: Option<OwnedRuns>,
    warnings: RefCell<Report>,
}

impl ComponentHost {
    /// Makes a host. `is_exclusive`: no other engine uses the store.
    pub fn new(is_exclusive: bool) -> Rc<Self> {
        Rc::new(Self { owned_runs: is_exclusive.then(OwnedRuns::default), ..Self::default() })
    }

    /// Takes the findings that were reported.
    pub fn take_warnings(&self) -> Report {
        self.warnings.take()
    }
}

impl Clock for ComponentHost {
    fn now(&self) -> Ms {
        self.executor.now()
    }
}

impl IdSource for ComponentHost {
    fn new_id(&self) -> String {
        self.random.id()
    }
}

/// A run under way, until it is dropped.
struct OwnedRun {
    runs: OwnedRuns,
    name: String,
}

impl Drop for OwnedRun {
    fn drop(&mut self) {
        self.runs.borrow_mut().remove(&self.name);
    }
}

/// Nothing shows a session: the host asks for what it wants to see.
struct NoSurface;

impl SessionSurface for NoSurface {
    fn on_change(&self) {}

    fn on_history_replaced(&self) {}

    fn has_listeners(&self) -> bool {
        false
    }

    fn drop_listeners(&self) {}
}

impl Host for ComponentHost {
    fn draw_ids(&self) {}

    fn random_id(&self) -> String {
        self.random.id()
    }

    fn spawn(&self, work: LocalFuture<'static, ()>) {
        self.executor.spawn(work);
    }

    fn sleep(&self, ms: Ms) -> LocalFuture<'static, bool> {
        let sleep = self.executor.sleep(ms);
        Box::pin(async move {
            sleep.await;
            true
        })
    }

    fn time_limit(&self, ms: Ms) -> LocalFuture<'static, bool> {
        self.sleep(ms)
    }

    fn random_pause(&self, longest: Ms) -> LocalFuture<'static, ()> {
        Box::pin(self.executor.sleep(self.random.next() % longest.saturating_add(1).max(1)))
    }

    fn lock_run<'h>(&'h self, names: &'h RunLockNames) -> LocalFuture<'h, Result<LockOutcome>> {
        Box::pin(async {
            let Some(runs) = self.owned_runs.clone() else { return Ok(LockOutcome::Unsupported) };
            let name = names.holder.clone();
            if !runs.borrow_mut().insert(name.clone()) {
                return Ok(LockOutcome::HeldElsewhere);
            }
            Ok(LockOutcome::Acquired(Box::new(OwnedRun { runs, name })))
        })
    }

    fn held_locks(&self) -> LocalFuture<'_, Option<HeldLocks>> {
        Box::pin(async {
            let runs = self.owned_runs.clone()?;
            Some(Box::new(move |name: &str| runs.borrow().contains(name)) as HeldLocks)
        })
    }

    fn lock_released<'h>(&'h self, _: &'h str) -> LocalFuture<'h, bool> {
        Box::pin(async { false })
    }

    fn has_leases(&self) -> bool {
        self.owned_runs.is_none()
    }

    fn listen(&self) {}

    fn announce(&self, _: &SessionChange<'_>, _: Audience) {}

    fn notice_of(&self, _: &str, _: &str) -> NoticeText {
        Box::new(|_| None)
    }

    fn send_answer(&self, _: &str, _: &str, _: AnswerNews<'_>) {}

    fn warn(&self, findings: &[Finding]) {
        self.warnings.borrow_mut().extend_from_slice(findings);
    }

    fn surface(&self) -> Rc<dyn SessionSurface> {
        Rc::new(NoSurface)
    }

    fn disconnect(&self) {}

    fn drop_listeners(&self) {}
}
