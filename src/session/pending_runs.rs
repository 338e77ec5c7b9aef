//! Finds the pending runs of a session that are not under way in this tab, and keeps them up to date (R69).

use super::context::StoreContext;
use super::host::AnswerNews;
use super::journals::{is_journal_over, journal_of};
use super::live_run::LiveRun;
use super::open_session::OpenSession;
use super::pending_run::{JournalProgress, PendingRun, PendingState, TurnSource};
use super::run_lock::{LiveHolders, liveness_lock_name, lock_name};
use super::run_queue::QueueRank;
use crate::clock::Ms;
use crate::history::History;
use crate::message::{Message, PartBody};
use crate::run::{RunStatus, without_calls};
use crate::session_head::{RunEntry, SessionHead};
use crate::store::read_journal_from;

/// Number of waits for a run's liveness lock before waiting for its holder's lock.
pub const MAX_LIVENESS_WAITS: u32 = 8;

/// Returns the name of the lock to wait for until a run's holder has released it or died. A waiter on the liveness lock
/// does not block a new holder; a holder without one has the holder's lock only.
pub fn awaited_lock(context: &StoreContext, (session, run): (&str, &str), attempt: u32) -> String {
    let name = if attempt < MAX_LIVENESS_WAITS { liveness_lock_name } else { lock_name };
    name(context, session, run)
}

impl OpenSession {
    /// Keeps the turn of a run that ended in this tab, waits for an approval or was given up, without being appended:
    /// the view still shows it. Of a run that failed and whose turn history keeps, only the error is kept.
    pub fn keep_ended_run(&self, run: &dyn LiveRun) {
        let (status, error, saved) = {
            let outcome = run.machine().outcome();
            (outcome.status, outcome.error, outcome.saved)
        };
        let state = match (status, error) {
            (RunStatus::Finished, _) => return,
            (RunStatus::Cancelled, _) if saved => return,
            (RunStatus::WaitingApproval, _) => PendingState::WaitingApproval,
            (RunStatus::Cancelled, _) => PendingState::Stopped,
            (RunStatus::Failed, Some(error)) => {
                PendingState::Failed(error.code.as_str().to_owned(), error.message.clone())
            }
            _ => PendingState::Interrupted,
        };
        let partial = run.partial().and_then(without_calls).filter(|_| !saved);
        let marked = Some(run.machine().live().clone()).filter(|_| !saved);
        let log = self.log.borrow();
        let entry = log.head.run(run.id());
        let (epoch, number) = (entry.map(|entry| entry.epoch), entry.map_or(u64::MAX, |entry| entry.number));
        let source = TurnSource::Memory { epoch, next_run: log.head.next_run };
        let mut ended =
            PendingRun { id: run.id().to_owned(), number, state, marked, partial, partial_revision: 0, source };
        ended.mark();
        let mut pending = self.pending.borrow_mut();
        pending.retain(|other| other.id != run.id());
        pending.push(ended);
        drop((log, pending));
        self.update_hold();
    }

    /// Removes a run that ended in this tab and was never written. Returns false if there is none of this id.
    pub fn remove_unwritten_run(&self, id: &str) -> bool {
        let mut pending = self.pending.borrow_mut();
        let before = pending.len();
        pending.retain(|run| run.id != id || !matches!(run.source, TurnSource::Memory { epoch: None, .. }));
        pending.len() < before
    }

    /// Removes a run that ended in this tab, and of which another one takes the place.
    pub(super) fn remove_run_of_memory(&self, id: &str) {
        self.pending.borrow_mut().retain(|run| run.id != id || !matches!(run.source, TurnSource::Memory { .. }));
    }

    /// Returns the pending runs that the view shows, oldest first. `pending` are those of this session.
    pub fn shown_pending<'u>(&self, pending: &'u [PendingRun], head: &SessionHead) -> Vec<&'u PendingRun> {
        let live_here = self.live_run();
        let is_of_branch = |run: &PendingRun| head.run(&run.id).is_none_or(|entry| self.shows_branch_of(entry));
        let is_shown = |run: &&PendingRun| {
            let is_live_here = live_here.as_ref().is_some_and(|live| live.id() == run.id);
            // The run of this tab is the next turn.
            let superseded = live_here.is_some() && run.state.is_superseded_by_next();
            run.state != PendingState::Queued && !is_live_here && !superseded && run.is_shown(head) && is_of_branch(run)
        };
        pending.iter().filter(is_shown).collect()
    }

    /// Visits the questions that wait for the runs before them, the first one first: those of this tab, and those that
    /// are stored. `pending` are the pending runs of this session.
    pub fn visit_queued(&self, pending: &[PendingRun], visit: &mut dyn FnMut(&History)) {
        let own = self.run_queue.questions();
        let mut questions: Vec<(QueueRank, &History)> =
            own.iter().map(|(rank, question)| (*rank, &**question)).collect();
        let log = self.log.borrow();
        let waits = |run: &PendingRun| log.head.run(&run.id).is_some_and(|entry| entry.number == run.number);
        let is_elsewhere = |run: &&PendingRun| {
            run.state == PendingState::Queued && self.run_queue.held(&run.id).is_none() && waits(run)
        };
        let stored = pending.iter().filter(is_elsewhere);
        questions.extend(stored.filter_map(|run| Some(((run.number, 0), run.turn()?))));
        questions.sort_by_key(|(rank, _)| *rank);
        questions.into_iter().for_each(|(_, question)| visit(question));
    }

    /// Shows the results that other writers have stored of open calls, also of runs whose turns history does not have.
    pub fn show_stored_results(&self) {
        let log = self.log.borrow();
        if let Some(run) = self.live_run() {
            run.take_stored_results(&log.history);
        }
        self.pending.borrow_mut().iter_mut().for_each(|run| run.show_stored_results(&log.history));
    }

    /// Updates the list of pending runs, their states and their journals. Returns true if anything changed.
    pub async fn update_pending(&self) -> bool {
        if !self.pending_update.try_begin() {
            self.update_pending_again.set(true);
            return false;
        }
        let mut changed = false;
        loop {
            self.update_pending_again.set(false);
            changed |= self.update_pending_once().await;
            if !self.update_pending_again.get() {
                break;
            }
        }
        self.pending_update.end();
        changed
    }

    async fn update_pending_once(&self) -> bool {
        let runs = self.log.borrow().head.runs.clone();
        if runs.is_empty() && self.pending.borrow().is_empty() {
            *self.runs_at_last_update.borrow_mut() = runs;
            return false;
        }
        let holders = LiveHolders::query(&self.context).await;
        let mut changed = false;
        for entry in &runs {
            let name = lock_name(&self.context, &self.id, &entry.id);
            if self.context.live.borrow().contains(&name) {
                continue;
            }
            let live = holders.has_holder(&name, entry);
            let newest = entry.number + 1 == self.log.borrow().head.next_run;
            if live || newest || entry.failed.is_none() {
                changed |= self.update_pending_run(entry, PendingState::of(entry, live)).await;
            }
            // A question that waits is shown as such whether or not somebody holds it.
            if live && !entry.is_queued() {
                self.await_release(&entry.id);
            }
        }
        let log = self.log.borrow();
        let mut pending = self.pending.borrow_mut();
        let before = pending.len();
        pending.retain(|run| run.is_shown(&log.head));
        changed |= pending.len() != before;
        self.journals.borrow_mut().retain(&runs);
        *self.runs_at_last_update.borrow_mut() = runs;
        drop((log, pending));
        self.update_hold();
        changed
    }

    /// Updates the list in the background, and notifies if anything changed.
    pub fn update_pending_soon(&self) {
        let session = self.weak_self.clone();
        self.context.spawn(async move {
            let Some(session) = session.upgrade() else { return };
            if session.context.check_open().is_ok() && session.update_pending().await {
                session.notify();
            }
        });
    }

    /// Returns true if runs began, continued or ended since the last update.
    pub fn runs_changed(&self) -> bool {
        *self.runs_at_last_update.borrow() != self.log.borrow().head.runs
    }

    /// Updates one run. Until its journal is read, it is shown as before. Returns true if anything changed.
    async fn update_pending_run(&self, entry: &RunEntry, state: PendingState) -> bool {
        // A question that has begun has another number, and another journal.
        let is_it = |run: &&PendingRun| run.id == entry.id && run.is_of_journal(entry);
        let known = self.pending.borrow().iter().find(is_it).map(|run| run.journal_progress(entry, &state));
        let more = match known.unwrap_or(JournalProgress::Unread) {
            JournalProgress::NotNeeded => None,
            JournalProgress::Read(from) if from == entry.entries => Some(Ok(Vec::new())),
            JournalProgress::Read(from) => Some(read_journal_from(&*self.context.store, &self.id, entry, from).await),
            JournalProgress::Unread => return self.show_from_journal(entry, state).await,
        };
        let mut pending = self.pending.borrow_mut();
        let Some(run) = pending.iter_mut().find(|run| run.id == entry.id) else { return false };
        let TurnSource::Journal { stored, read, epoch } = &mut run.source else { return false };
        let has_more = match more {
            Some(Ok(records)) if !records.is_empty() && stored.extend(&records).is_ok() => {
                *read = entry.entries;
                true
            }
            // An unreadable entry is read again at the next change.
            _ => false,
        };
        let state = state.by_journal(stored);
        let taken_over = std::mem::replace(epoch, entry.epoch) != entry.epoch;
        let state_changed = run.state != state;
        if !has_more && !taken_over && !state_changed {
            return false;
        }
        if taken_over {
            run.partial = None;
        }
        run.state = state;
        run.show_journal();
        let request = run.state == PendingState::Live && (taken_over || state_changed);
        drop(pending);
        if request {
            self.context.host.send_answer(&self.id, &entry.id, AnswerNews::Request);
        }
        true
    }

    /// Adds a run whose journal was not read yet.
    async fn show_from_journal(&self, entry: &RunEntry, state: PendingState) -> bool {
        let Some(mut run) = self.read_run(entry).await else { return false };
        run.state = match &run.source {
            TurnSource::Journal { stored, .. } => state.by_journal(stored),
            TurnSource::Memory { .. } | TurnSource::Unreadable { .. } => state,
        };
        run.show_journal();
        let request = run.state == PendingState::Live;
        let mut pending = self.pending.borrow_mut();
        pending.retain(|other| other.id != entry.id);
        let at = pending.iter().position(|other| other.number > run.number).unwrap_or(pending.len());
        pending.insert(at, run);
        drop(pending);
        if request {
            self.context.host.send_answer(&self.id, &entry.id, AnswerNews::Request);
        }
        true
    }

    /// Reads the journal of a run. Returns none if it ended meanwhile, or began: then the head has changed, and the
    /// next update reads it.
    async fn read_run(&self, entry: &RunEntry) -> Option<PendingRun> {
        let stored = match journal_of(&self.context, &self.id, entry).await {
            Ok(stored) => stored,
            Err(_) if is_journal_over(&self.context, &self.id, entry).await.unwrap_or(false) => return None,
            Err(error) => {
                let (id, why) = (&entry.id, &error.message);
                self.context.report_unreadable(format!("the journal of run {id} cannot be read: {why}"));
                return Some(self.unreadable_run(entry));
            }
        };
        let source = TurnSource::Journal { stored: Box::new(stored), read: entry.entries, epoch: entry.epoch };
        Some(PendingRun { source, ..self.unreadable_run(entry) })
    }

    /// A run whose journal cannot be read: the head's entry is all that is known of it.
    fn unreadable_run(&self, entry: &RunEntry) -> PendingRun {
        let source = TurnSource::Unreadable { epoch: entry.epoch, next_run: self.log.borrow().head.next_run };
        PendingRun {
            id: entry.id.clone(),
            number: entry.number,
            state: PendingState::of(entry, false),
            marked: None,
            partial: None,
            partial_revision: 0,
            source,
        }
    }

    /// Calls [`update_pending`](Self::update_pending) after the run's holder has released it or died. Waiting does not
    /// compete for its lock.
    fn await_release(&self, run: &str) {
        if !self.awaited_runs.borrow_mut().insert(run.to_owned()) {
            return;
        }
        let (session, run) = (self.weak_self.clone(), run.to_owned());
        let (context, id) = (self.context.clone(), self.id.clone());
        let host = self.context.host.clone();
        self.context.spawn(async move {
            for attempt in 0_u32.. {
                if !host.lock_released(&awaited_lock(&context, (&id, &run), attempt)).await {
                    // No locks here: the lease says how long the holder counts as alive.
                    let Some(left) = session.upgrade().and_then(|session| session.remaining_lease(&run)) else { break };
                    if !host.sleep(left + 1).await {
                        break;
                    }
                }
                let Some(session) = session.upgrade() else { return };
                if session.context.check_open().is_err() || session.on_holder_released(&run).await {
                    break;
                }
            }
            if let Some(session) = session.upgrade() {
                session.awaited_runs.borrow_mut().remove(&run);
            }
        });
    }

    /// Returns the rest of a run's lease in milliseconds, and none if the run is over.
    pub fn remaining_lease(&self, run: &str) -> Option<Ms> {
        let until = self.log.borrow().head.run(run)?.lease_until;
        // A run that is registered with its driver has no lease, and its end is announced.
        Some(if self.context.host.has_leases() {
            until.saturating_sub(self.context.now())
        } else {
            self.context.settings.lease_ms
        })
    }

    /// Updates the list after a run's lock was released. Returns false if somebody else has acquired it already.
    async fn on_holder_released(&self, run: &str) -> bool {
        // A store that cannot be read now is read again at the next change.
        let refreshed = self.refresh().await.unwrap_or(false);
        if self.update_pending().await || refreshed {
            self.notify();
            let revision = self.log.borrow().head.history_revision;
            self.context.announce_change_here(&self.id, revision);
        }
        !self.pending.borrow().iter().any(|other| other.id == run && other.state == PendingState::Live)
    }

    /// Sets the answer of a run of another tab, as its holder sent it; none if there is no answer.
    pub fn set_partial_answer(&self, run: &str, message: Option<Message>) {
        self.change_live_run(run, &mut |run| {
            run.partial.clone_from(&message);
            run.partial_revision += 1;
            true
        });
    }

    /// Appends to the answer of a run of another tab.
    pub fn extend_partial_answer(&self, run: &str, message: &str, more: &PartBody) {
        self.change_live_run(run, &mut |run| {
            let Some(partial) = run.partial.as_mut().filter(|partial| partial.id == message) else { return false };
            partial.append(more);
            true
        });
    }

    fn change_live_run(&self, run: &str, change: &mut dyn FnMut(&mut PendingRun) -> bool) {
        let changed = {
            let mut pending = self.pending.borrow_mut();
            let live = pending.iter_mut().find(|other| other.id == run && other.state == PendingState::Live);
            live.is_some_and(change)
        };
        if changed {
            self.notify();
        }
    }
}
