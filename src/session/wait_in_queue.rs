//! The queue of a session's runs over all tabs and processes (`whenBusy: "queue"`): a question that is sent while
//! another one is being answered is stored after that answer.

use super::host::{LockOutcome, RunLock, RunLockNames};
use super::open_session::OpenSession;
use super::pending_runs::{MAX_LIVENESS_WAITS, awaited_lock};
use super::queued_question::QueuedQuestion;
use super::run_lock::{LiveHolders, lock_name, queue_lock_names};
use crate::clock::Ms;
use crate::error::{Error, ErrorCode, Result};

/// Longest time between two looks at a run that only a lease shows, in milliseconds: it may end before its lease does.
const LONGEST_PAUSE: Ms = 500;

impl OpenSession {
    /// Waits until no run of the session is under way in another tab or process, and shows the question meanwhile.
    /// Until the lock that it returns is dropped, no other run of the queue begins; without locks, two that wait for
    /// one run may begin at once.
    ///
    /// # Errors
    /// The store's own, `closed`, and `busy` where nothing can be waited for.
    pub(super) async fn wait_in_queue(&self, question: &QueuedQuestion<'_>) -> Result<Option<RunLock>> {
        let lock = self.lock_queue(question).await?;
        let mut awaited = (String::new(), 0_u32);
        loop {
            self.refresh().await?;
            let Some(run) = self.run_elsewhere().await else { return Ok(lock) };
            question.show();
            awaited = if awaited.0 == run { (run, awaited.1.saturating_add(1)) } else { (run, 0) };
            self.await_holder(&awaited.0, awaited.1).await?;
        }
    }

    async fn lock_queue(&self, question: &QueuedQuestion<'_>) -> Result<Option<RunLock>> {
        let names: RunLockNames = queue_lock_names(&self.context, &self.id);
        let mut attempt = 0_u32;
        loop {
            match self.context.host.lock_run(&names).await? {
                LockOutcome::Acquired(lock) => return Ok(Some(lock)),
                LockOutcome::Unsupported => return Ok(None),
                LockOutcome::HeldElsewhere => {
                    question.show();
                    // As for the holder of a run, of which see `awaited_lock`.
                    let name = if attempt < MAX_LIVENESS_WAITS { &names.liveness } else { &names.holder };
                    self.wait_for_lock(name, LONGEST_PAUSE).await?;
                    attempt = attempt.saturating_add(1);
                }
            }
        }
    }

    /// Returns the id of a run with a holder in another tab or process.
    pub(super) async fn run_elsewhere(&self) -> Option<String> {
        if self.log.borrow().head.runs.is_empty() {
            return None;
        }
        let holders = LiveHolders::query(&self.context).await;
        let log = self.log.borrow();
        let is_elsewhere = |name: &str| !self.context.live.borrow().contains(name);
        let found = log.head.runs.iter().find(|entry| {
            let name = lock_name(&self.context, &self.id, &entry.id);
            is_elsewhere(&name) && holders.has_holder(&name, entry)
        });
        found.map(|entry| entry.id.clone())
    }

    /// Waits for the end of a run's holder, or for [`LONGEST_PAUSE`] where there are no locks.
    async fn await_holder(&self, run: &str, attempt: u32) -> Result<()> {
        let name = awaited_lock(&self.context, (&self.id, run), attempt);
        let left = self.remaining_lease(run).unwrap_or(0);
        self.wait_for_lock(&name, left.saturating_add(1).min(LONGEST_PAUSE)).await
    }

    /// Waits until nobody holds a lock, or for `pause` milliseconds where there are no locks; a process stays for it.
    async fn wait_for_lock(&self, name: &str, pause: Ms) -> Result<()> {
        let host = &self.context.host;
        let wait = async { host.lock_released(name).await || host.time_limit(pause).await };
        let waited = self.run_queue.closed.unless_given(wait).await;
        self.context.check_open()?;
        if waited == Some(true) {
            return Ok(());
        }
        let sentence =
            "a run of this session is under way elsewhere, and nothing can be waited for here; send it again later";
        Err(Error::new(ErrorCode::Busy, sentence))
    }
}
