//! The turns of a session's pending runs, by which results from outside are judged (R75).

use super::open_session::OpenSession;
use super::run_lock::{LiveHolders, lock_name};
use crate::error::{Error, ErrorCode, Result};
use crate::history::{History, JoinedEntries};
use crate::run::{AnsweredCall, AppendedResults, PendingTurn, RunHolder};
use crate::session_head::RunEntry;
use crate::store::{ExpectedRun, read_journal_from};

/// Judges calls by the history and the turns of the pending runs.
type Judge<'j, T> = &'j dyn Fn(&History, &[PendingTurn<'_>]) -> Result<T>;

impl OpenSession {
    /// Judges calls by the turns of the pending runs. Also returns the holders of the runs, if there are any elsewhere.
    pub async fn judge_by_turns<T>(&self, judge: Judge<'_, T>) -> Result<(T, Option<LiveHolders>)> {
        let live = self.live_run();
        let (runs, holders) = self.read_pending_runs().await?;
        if let Some(run) = &live {
            // A result would be lost with a call that only memory has.
            run.flush_before_read().await?;
        }
        let log = self.log.borrow();
        let journals = self.journals.borrow();
        let machine = live.as_ref().map(|run| run.machine());
        let here = machine.as_ref().map(|machine| PendingTurn {
            run: machine.id(),
            turn: machine.live(),
            records: log.head.run(machine.id()).map_or(0, |entry| entry.entries),
            holder: RunHolder::Here(machine),
        });
        let elsewhere = runs.iter().filter_map(|entry| {
            let name = lock_name(&self.context, &self.id, &entry.id);
            let is_owned = holders.as_ref().is_some_and(|holders| holders.has_holder(&name, entry));
            let is_live = self.context.live.borrow().contains(&name) || is_owned;
            let holder = if is_live { RunHolder::Elsewhere } else { RunHolder::Nobody };
            Some(PendingTurn { run: &entry.id, turn: journals.turn(entry)?, records: entry.entries, holder })
        });
        let turns: Vec<_> = here.into_iter().chain(elsewhere).collect();
        let judged = judge(&log.history, &turns)?;
        drop(turns);
        Ok((judged, holders))
    }

    /// Returns the run that must not move before the result of a call is stored.
    pub fn expected_run(&self, found: &AnsweredCall, holders: Option<&LiveHolders>) -> Option<ExpectedRun> {
        let id = found.run.clone()?;
        let now = self.context.now();
        let log = self.log.borrow();
        // Another process may have renewed a lease since the head was read. Where locks show who is alive, leases do
        // not matter.
        let is_leased = found.needs_dead_holder && holders.is_some_and(LiveHolders::are_known_by_leases);
        let entry = log.head.run(&id);
        // A lease that this tab has left behind is nobody's.
        let own = entry.filter(|entry| entry.is_held_by(&self.context.origin())).map_or(0, |entry| entry.lease_until);
        let epoch = entry.map(|entry| entry.epoch);
        let lease_ended_by = is_leased.then(|| now.max(own));
        Some(ExpectedRun { id, epoch, records: found.records, lease_ended_by })
    }

    /// Checks the results of an append whose calls pending runs may have. Returns the runs that must not move before
    /// they are stored.
    ///
    /// # Errors
    /// `wrong_state` if a run takes the result of its tool itself, and the errors of the store.
    pub async fn check_appended_results(&self, joined: &JoinedEntries) -> Result<Vec<ExpectedRun>> {
        let results = AppendedResults::of(&self.log.borrow().history, joined);
        if results.is_empty() {
            return Ok(Vec::new());
        }
        let (calls, holders) = self.judge_by_turns(&|history, turns| results.check(history, turns)).await?;
        let runs: Vec<_> = calls.iter().filter_map(|call| self.expected_run(call, holders.as_ref())).collect();
        runs.iter().try_for_each(|run| self.check_branch_of(run))?;
        Ok(runs)
    }

    /// Checks that the session shows the branch of the run that has an answered call.
    ///
    /// # Errors
    /// `wrong_state`.
    pub fn check_branch_of(&self, run: &ExpectedRun) -> Result<()> {
        let entry = self.log.borrow().head.run(&run.id).cloned();
        if entry.is_none_or(|entry| self.shows_branch_of(&entry)) {
            return Ok(());
        }
        let sentence = "the call is of a run in another branch; resume the run, which shows its branch, then answer";
        Err(Error::new(ErrorCode::WrongState, sentence))
    }

    /// Reads what is new in the journals of the pending runs that are not under way here. Returns those that could be
    /// read, the newest first, and their holders.
    async fn read_pending_runs(&self) -> Result<(Vec<RunEntry>, Option<LiveHolders>)> {
        let live = self.live_run();
        // A cancelled run has ended, whatever its journal says.
        let all: Vec<RunEntry> = self.log.borrow().head.pending_runs().cloned().collect();
        self.journals.borrow_mut().retain(&all);
        let mut runs = Vec::new();
        for entry in all.into_iter().rev().filter(|entry| live.as_ref().is_none_or(|run| run.id() != entry.id)) {
            let from = self.journals.borrow().next_record(&entry);
            let added = if from == entry.entries {
                Ok(())
            } else {
                let records = read_journal_from(&*self.context.store, &self.id, &entry, from).await;
                records.and_then(|records| self.journals.borrow_mut().add(&entry, &records, self.context.settings.seed))
            };
            match added {
                Ok(()) => runs.push(entry),
                // It ended meanwhile, or nobody can resume it.
                Err(error) if matches!(error.code, ErrorCode::CorruptRecord | ErrorCode::UnsupportedVersion) => {}
                Err(error) => return Err(error),
            }
        }
        let holders = if runs.is_empty() { None } else { Some(LiveHolders::query(&self.context).await) };
        Ok((runs, holders))
    }
}
