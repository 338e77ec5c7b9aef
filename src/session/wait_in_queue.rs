//! The queue of a session's runs over all tabs and processes (`whenBusy: "queue"`): a question that is sent while
//! another one is being answered is stored after that answer.

use super::application::LocalFuture;
use super::host::Host;
use super::open_session::OpenSession;
use super::pending_runs::awaited_lock;
use super::queued_question::QueuedQuestion;
use super::queued_run::QueuedRun;
use super::run_lock::{LiveHolders, lock_name};
use super::run_queue::LONGEST_PAUSE;
use crate::clock::Ms;
use crate::error::{Error, ErrorCode, Result};
use crate::run::RunSetup;
use crate::session_head::RunEntry;
use crate::store::QueueTurn;
use std::rc::Rc;

impl OpenSession {
    /// Reserves the place of the session's run when no run is under way in this tab, and no other send of it is before
    /// this one.
    ///
    /// # Errors
    /// `closed`; those of [`QueuedRun::entry`].
    pub(super) async fn reserve_in_turn(
        &self,
        (place, queued): (&QueuedQuestion<'_>, Option<&QueuedRun>),
    ) -> Result<()> {
        loop {
            self.context.check_open()?;
            if let Some(queued) = queued
                && queued.entry()?.is_next
            {
                place.set_next(queued.number);
            }
            if place.is_first() && self.try_reserve_run() {
                return Ok(());
            }
            self.run_queue.wait().await;
        }
    }

    /// Returns the turn of a run if nothing before it is under way in any tab or process, else the id of what is.
    ///
    /// # Errors
    /// The store's own.
    pub(super) async fn look_for_turn(
        &self,
        id: &str,
        queued: Option<&QueuedRun>,
    ) -> Result<std::result::Result<QueueTurn, String>> {
        self.refresh().await?;
        let holders = LiveHolders::query(&self.context).await;
        let log = self.log.borrow();
        let queued = queued.map(|queued| queued.number);
        let mut turn = QueueTurn { id: id.to_owned(), queued, unheld: Vec::new(), refused: Rc::default() };
        let place = turn.place_in(&log.head);
        for entry in log.head.runs.iter().filter(|entry| entry.id != id && entry.precedes(place)) {
            let name = lock_name(&self.context, &self.id, &entry.id);
            if self.context.live.borrow().contains(&name) || holders.has_holder(&name, entry) {
                return Ok(Err(entry.id.clone()));
            }
            turn.unheld.push(entry.clone());
        }
        Ok(Ok(turn))
    }

    /// Returns the id of a run with a holder in another tab or process.
    pub(super) async fn run_elsewhere(&self) -> Option<String> {
        if self.log.borrow().head.runs.is_empty() {
            return None;
        }
        let holders = LiveHolders::query(&self.context).await;
        let log = self.log.borrow();
        let is_elsewhere = |name: &str| !self.context.live.borrow().contains(name);
        // A question that waits sends nothing.
        let may_send = |entry: &&RunEntry| !entry.is_queued() || entry.is_next;
        let found = log.head.runs.iter().filter(may_send).find(|entry| {
            let name = lock_name(&self.context, &self.id, &entry.id);
            is_elsewhere(&name) && holders.has_holder(&name, entry)
        });
        found.map(|entry| entry.id.clone())
    }

    /// Waits before another look at what cannot be waited for: an append or a read that failed, or a run that has just
    /// begun elsewhere.
    ///
    /// # Errors
    /// `closed`, and `busy` without timers.
    pub(super) async fn pause_in_queue(&self, pause: Ms, queued: Option<&QueuedRun>) -> Result<()> {
        let host: &dyn Host = &*self.context.host;
        self.wait_in_queue(host.time_limit(pause), queued).await
    }

    /// Waits for the end of a run's holder, or for [`LONGEST_PAUSE`] where there are no locks; a process stays for it.
    ///
    /// # Errors
    /// `closed`, and `busy` where nothing can be waited for.
    pub(super) async fn await_holder(&self, (run, attempt): (&str, u32), queued: Option<&QueuedRun>) -> Result<()> {
        let name = awaited_lock(&self.context, (&self.id, run), attempt);
        let pause = self.remaining_lease(run).unwrap_or(0).saturating_add(1).min(LONGEST_PAUSE);
        let host: &dyn Host = &*self.context.host;
        let released = async { host.lock_released(&name).await || host.time_limit(pause).await };
        self.wait_in_queue(Box::pin(released), queued).await
    }

    /// Waits until the question is discarded, or for the end of something; false if that cannot be waited for.
    async fn wait_in_queue(&self, end: LocalFuture<'_, bool>, queued: Option<&QueuedRun>) -> Result<()> {
        let wait = async {
            match queued {
                Some(queued) => queued.discarded.unless_given(end).await.unwrap_or(true),
                None => end.await,
            }
        };
        let waited = self.run_queue.closed.unless_given(wait).await;
        self.context.check_open()?;
        if waited == Some(true) {
            return Ok(());
        }
        let sentence =
            "a run of this session is under way elsewhere, and nothing can be waited for here; send it again later";
        Err(Error::new(ErrorCode::Busy, sentence))
    }

    /// Sets what the runs before it may have changed of a setup that was read before they ended.
    ///
    /// # Errors
    /// `unsupported_version` for an owner that a newer build gave the session.
    pub(super) fn renew_setup(&self, setup: &mut RunSetup) -> Result<()> {
        setup.owner = self.owner()?;
        setup.channel = self.channel();
        setup.policy = self.policy(setup.policy.call.clone(), setup.policy.tools.clone());
        Ok(())
    }
}
