//! The unfinished runs of a session that are not under way here, as the view shows them (R69): interrupted, failed, stopped, or
//! under way in another tab. A run that ended here is shown from memory, any other one from its journal.

use super::pending::{is_over, journal_of};
use super::platform::{held_locks, sleep, wait_until_released};
use super::promise::in_background;
use super::run::{RunInner, liveness_lock_name, lock_name};
use super::session::SessionInner;
use crate::history::History;
use crate::message::{Message, MessageStatus, PartBody};
use crate::run::{RecoveredRun, RunStatus, mark_open_calls, without_calls};
use crate::session_head::{RunEntry, SessionHead};
use crate::store::read_journal_from;
use crate::tool::InvocationStatus;

/// Number of waits for a run's liveness lock before waiting for its owner lock.
const MAX_LIVENESS_WAITS: u32 = 8;

/// The state of an unfinished run.
#[derive(Clone, Debug, PartialEq)]
pub enum UnfinishedState {
    /// Another tab drives it.
    Live,
    /// Nobody drives it.
    Interrupted,
    /// The user stopped it.
    Stopped,
    /// It failed: the error's code and sentence.
    Failed(String, String),
}

impl UnfinishedState {
    fn of(entry: &RunEntry, live: bool) -> Self {
        match &entry.failed {
            _ if live => Self::Live,
            Some(_) if entry.is_stopped() => Self::Stopped,
            Some((code, message)) => Self::Failed(code.clone(), message.clone()),
            None => Self::Interrupted,
        }
    }

    /// The name in the public types.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Live => "running",
            Self::Interrupted => "interrupted",
            Self::Stopped => "cancelled",
            Self::Failed(..) => "failed",
        }
    }

    /// The status of calls that were started and have no result.
    fn open_calls(&self) -> Option<InvocationStatus> {
        match self {
            Self::Live => None,
            Self::Stopped => Some(InvocationStatus::Aborted),
            Self::Interrupted | Self::Failed(..) => Some(InvocationStatus::Interrupted),
        }
    }

    /// The status of an answer that was cut.
    fn cut_answer(&self) -> MessageStatus {
        match self {
            Self::Live | Self::Interrupted => MessageStatus::Truncated,
            Self::Stopped => MessageStatus::Stopped,
            Self::Failed(..) => MessageStatus::Failed,
        }
    }
}

/// An unfinished run and its turn.
pub struct UnfinishedRun {
    pub id: String,
    /// Its number in the session; the highest for one that was never written.
    number: u64,
    pub state: UnfinishedState,
    /// A copy of the turn so far with the status of open calls set; none while `source` holds the turn unchanged.
    marked: Option<History>,
    /// The answer that was coming in, or is.
    pub partial: Option<Message>,
    source: RunSource,
}

enum RunSource {
    /// It ended here: the turn is what the user saw. `epoch` is the owner's in the head, none if it is not there.
    Here { epoch: Option<u32>, next_run: u64 },
    /// It was read from its journal: the first `read` entries.
    Journal { recovered: Box<RecoveredRun>, read: u64, epoch: u32 },
}

/// How much of a run is known without reading its journal.
enum JournalProgress {
    /// The run ended here and has no other owner since: memory holds more of it than the journal does.
    InMemory,
    /// The first entries of its journal, this many.
    Entries(u64),
    Unread,
}

impl UnfinishedRun {
    fn journal_progress(&self, entry: &RunEntry, state: &UnfinishedState) -> JournalProgress {
        match &self.source {
            RunSource::Here { epoch, .. } if *epoch == Some(entry.epoch) && *state != UnfinishedState::Live => {
                JournalProgress::InMemory
            }
            RunSource::Journal { read, .. } if *read <= entry.entries => JournalProgress::Entries(*read),
            RunSource::Here { .. } | RunSource::Journal { .. } => JournalProgress::Unread,
        }
    }

    /// Whether the view shows the run: until it is resumed or discarded, or the next run starts.
    fn is_shown(&self, head: &SessionHead) -> bool {
        let entry = head.run(&self.id);
        match &self.source {
            RunSource::Here { epoch, next_run } => {
                entry.map(|entry| entry.epoch) == *epoch && head.next_run <= *next_run
            }
            RunSource::Journal { .. } => {
                entry.is_some() && (self.state == UnfinishedState::Live || self.number + 1 == head.next_run)
            }
        }
    }

    /// The turn so far, if it is known.
    pub fn turn(&self) -> Option<&History> {
        match (&self.marked, &self.source) {
            (None, RunSource::Journal { recovered, .. }) => Some(&recovered.live),
            (marked, _) => marked.as_ref(),
        }
    }

    fn mark(&mut self) {
        if let (Some(status), Some(turn)) = (self.state.open_calls(), &mut self.marked) {
            mark_open_calls(turn, status);
        }
        if let Some(partial) = &mut self.partial {
            partial.status = self.state.cut_answer();
        }
    }

    /// Updates the shown turn from the journal entries read so far.
    fn show_journal(&mut self) {
        let RunSource::Journal { recovered, .. } = &self.source else { return };
        // A run that goes on grows by each entry of its journal: it is not copied.
        self.marked = self.state.open_calls().map(|_| recovered.live.clone());
        if !matches!(self.state, UnfinishedState::Live | UnfinishedState::Interrupted) {
            self.partial.clone_from(&recovered.partial);
        }
        self.mark();
    }
}

impl SessionInner {
    /// Keeps the turn of a run that ended here or was given up without being appended, so that the view still shows it.
    pub fn keep_ended_run(&self, run: &RunInner) {
        let (status, error, saved) = {
            let outcome = run.machine.borrow().outcome();
            (outcome.status, outcome.error, outcome.saved)
        };
        let state = match (status, error) {
            (RunStatus::Finished, _) => return,
            _ if saved => return,
            (RunStatus::Cancelled, _) => UnfinishedState::Stopped,
            (RunStatus::Failed, Some(error)) => {
                UnfinishedState::Failed(error.code.as_str().to_owned(), error.message.clone())
            }
            _ => UnfinishedState::Interrupted,
        };
        let partial = run.partial().and_then(without_calls);
        let marked = Some(run.machine.borrow().live().clone());
        let log = self.log.borrow();
        let entry = log.head.run(&run.id);
        let (epoch, number) = (entry.map(|entry| entry.epoch), entry.map_or(u64::MAX, |entry| entry.number));
        let source = RunSource::Here { epoch, next_run: log.head.next_run };
        let mut ended = UnfinishedRun { id: run.id.clone(), number, state, marked, partial, source };
        ended.mark();
        let mut unfinished = self.unfinished.borrow_mut();
        unfinished.retain(|other| other.id != run.id);
        unfinished.push(ended);
    }

    /// Forgets a run that ended here and was never written; false if there is none of that id.
    pub fn forget_unwritten(&self, id: &str) -> bool {
        let mut unfinished = self.unfinished.borrow_mut();
        let before = unfinished.len();
        unfinished.retain(|run| run.id != id || !matches!(run.source, RunSource::Here { epoch: None, .. }));
        unfinished.len() < before
    }

    /// Calls `paint` with each unfinished run that the view shows, in the order in which they began.
    pub fn each_unfinished(&self, head: &SessionHead, paint: &mut dyn FnMut(&UnfinishedRun)) {
        let live_here = self.live_run();
        for run in &*self.unfinished.borrow() {
            let own = live_here.as_ref().is_some_and(|live| live.id == run.id);
            // The run here is the next turn.
            let superseded = live_here.is_some() && run.state != UnfinishedState::Live;
            if !own && !superseded && run.is_shown(head) {
                paint(run);
            }
        }
    }

    /// Updates the list of unfinished runs, their states and their journals. Returns true if anything changed.
    pub async fn update_unfinished(&self) -> bool {
        if self.updating_unfinished.replace(true) {
            self.update_unfinished_again.set(true);
            return false;
        }
        let mut changed = false;
        loop {
            self.update_unfinished_again.set(false);
            changed |= self.update_unfinished_once().await;
            if !self.update_unfinished_again.get() {
                break;
            }
        }
        self.updating_unfinished.set(false);
        changed
    }

    async fn update_unfinished_once(&self) -> bool {
        let runs = self.log.borrow().head.runs.clone();
        if runs.is_empty() && self.unfinished.borrow().is_empty() {
            *self.runs_at_last_update.borrow_mut() = runs;
            return false;
        }
        let asks = self.context.is_durable() && !runs.is_empty();
        let held = if asks { held_locks().await } else { None };
        let now = self.context.now();
        let mut changed = false;
        for entry in &runs {
            let name = lock_name(&self.context, &self.id, &entry.id);
            if self.context.live.borrow().contains(&name) {
                continue;
            }
            let live = held.as_ref().map_or(entry.lease_until > now, |held| held.contains(&name));
            let newest = entry.number + 1 == self.log.borrow().head.next_run;
            if live || newest {
                changed |= self.update_unfinished_run(entry, UnfinishedState::of(entry, live)).await;
            }
            if live {
                self.await_release(&entry.id);
            }
        }
        let log = self.log.borrow();
        let mut unfinished = self.unfinished.borrow_mut();
        let before = unfinished.len();
        unfinished.retain(|run| run.is_shown(&log.head));
        changed |= unfinished.len() != before;
        *self.runs_at_last_update.borrow_mut() = runs;
        changed
    }

    /// Looks after the step that is under way, and notifies if anything changed.
    pub fn update_unfinished_soon(&self) {
        let session = self.own.clone();
        in_background(Box::pin(async move {
            let Some(session) = session.upgrade() else { return };
            if session.context.check_open().is_ok() && session.update_unfinished().await {
                session.notify();
            }
        }));
    }

    /// Whether runs began, went on or ended since the last look.
    pub fn runs_changed(&self) -> bool {
        *self.runs_at_last_update.borrow() != self.log.borrow().head.runs
    }

    /// Brings what is shown of one run up to date. Until its journal is read, it is shown as before.
    async fn update_unfinished_run(&self, entry: &RunEntry, state: UnfinishedState) -> bool {
        let known = self
            .unfinished
            .borrow()
            .iter()
            .find(|run| run.id == entry.id)
            .map(|run| run.journal_progress(entry, &state));
        let more = match known.unwrap_or(JournalProgress::Unread) {
            JournalProgress::InMemory => None,
            JournalProgress::Entries(from) if from == entry.entries => Some(Ok(Vec::new())),
            JournalProgress::Entries(from) => {
                Some(read_journal_from(&*self.context.store, &self.id, entry, from).await)
            }
            JournalProgress::Unread => return self.show_from_journal(entry, state).await,
        };
        let mut unfinished = self.unfinished.borrow_mut();
        let Some(run) = unfinished.iter_mut().find(|run| run.id == entry.id) else { return false };
        let RunSource::Journal { recovered, read, epoch } = &mut run.source else { return false };
        let grows = match more {
            Some(Ok(records)) if !records.is_empty() && recovered.extend(&records).is_ok() => {
                *read = entry.entries;
                true
            }
            // What cannot be read now is read at the next change.
            _ => false,
        };
        let taken_over = std::mem::replace(epoch, entry.epoch) != entry.epoch;
        let moved = run.state != state;
        if !grows && !taken_over && !moved {
            return false;
        }
        if taken_over {
            run.partial = None;
        }
        run.state = state;
        run.show_journal();
        let asks = run.state == UnfinishedState::Live && (taken_over || moved);
        drop(unfinished);
        if asks {
            self.context.ask_for_answer(&self.id, &entry.id);
        }
        true
    }

    /// Shows a run of which nothing was read yet.
    async fn show_from_journal(&self, entry: &RunEntry, state: UnfinishedState) -> bool {
        let Some(mut run) = self.read_run(entry).await else { return false };
        run.state = state;
        run.show_journal();
        let asks = run.state == UnfinishedState::Live;
        let mut unfinished = self.unfinished.borrow_mut();
        unfinished.retain(|other| other.id != entry.id);
        let at = unfinished.iter().position(|other| other.number > run.number).unwrap_or(unfinished.len());
        unfinished.insert(at, run);
        drop(unfinished);
        if asks {
            self.context.ask_for_answer(&self.id, &entry.id);
        }
        true
    }

    /// Reads a run's journal; none if the run ended meanwhile.
    async fn read_run(&self, entry: &RunEntry) -> Option<UnfinishedRun> {
        let recovered = match journal_of(&self.context, &self.id, entry).await {
            Ok(recovered) => recovered,
            Err(_) if is_over(&self.context, &self.id, &entry.id).await.unwrap_or(false) => return None,
            Err(error) => {
                let (id, why) = (&entry.id, &error.message);
                self.context.report_unreadable(format!("the journal of run {id} cannot be read: {why}"));
                return Some(self.unreadable_run(entry));
            }
        };
        let source = RunSource::Journal { recovered: Box::new(recovered), read: entry.entries, epoch: entry.epoch };
        Some(UnfinishedRun { source, ..self.unreadable_run(entry) })
    }

    /// A run whose journal cannot be read: how it stands is known from the head.
    fn unreadable_run(&self, entry: &RunEntry) -> UnfinishedRun {
        let source = RunSource::Here { epoch: Some(entry.epoch), next_run: self.log.borrow().head.next_run };
        UnfinishedRun {
            id: entry.id.clone(),
            number: entry.number,
            state: UnfinishedState::of(entry, false),
            marked: None,
            partial: None,
            source,
        }
    }

    /// Calls [`update_unfinished`](Self::update_unfinished) after the run's owner has released it or died. Waiting does not compete for the ownership.
    fn await_release(&self, run: &str) {
        if !self.awaited.borrow_mut().insert(run.to_owned(), ()) {
            return;
        }
        let (session, run) = (self.own.clone(), run.to_owned());
        let (sign, lock) =
            (liveness_lock_name(&self.context, &self.id, &run), lock_name(&self.context, &self.id, &run));
        in_background(Box::pin(async move {
            for attempt in 0_u32.. {
                // A waiter on the liveness lock does not block a new owner. An owner without one holds the owner lock only.
                let name = if attempt < MAX_LIVENESS_WAITS { &sign } else { &lock };
                if !wait_until_released(name).await {
                    // No locks here: the lease says how long the owner counts as alive.
                    let Some(left) = session.upgrade().and_then(|session| session.lease_left(&run)) else { break };
                    sleep(left + 1).await;
                }
                let Some(session) = session.upgrade() else { return };
                if session.context.check_open().is_err() || session.owner_left(&run).await {
                    break;
                }
            }
            if let Some(session) = session.upgrade() {
                session.awaited.borrow_mut().remove(&run);
            }
        }));
    }

    /// How long the lease of a run still counts, in milliseconds; none if the run is over.
    fn lease_left(&self, run: &str) -> Option<u64> {
        let until = self.log.borrow().head.run(run)?.lease_until;
        Some(until.saturating_sub(self.context.now()))
    }

    /// Looks again after a run's lock was free for a moment; false if another owner has it already.
    async fn owner_left(&self, run: &str) -> bool {
        // A store that cannot be read now is read at the next change.
        let refreshed = self.refresh().await.unwrap_or(false);
        if self.update_unfinished().await || refreshed {
            self.notify();
            let revision = self.log.borrow().head.history_revision;
            self.context.announce_change_here(&self.id, revision);
        }
        !self.unfinished.borrow().iter().any(|other| other.id == run && other.state == UnfinishedState::Live)
    }

    /// The owner of a run sent the answer that is coming in, or said that there is none.
    pub fn take_answer(&self, run: &str, message: Option<Message>) {
        self.with_live(run, &mut |run| {
            run.partial = message.clone();
            true
        });
    }

    /// The owner of a run sent what follows of that answer.
    pub fn extend_answer(&self, run: &str, message: &str, more: &PartBody) {
        self.with_live(run, &mut |run| {
            let Some(partial) = run.partial.as_mut().filter(|partial| partial.id == message) else { return false };
            partial.append(more);
            true
        });
    }

    fn with_live(&self, run: &str, change: &mut dyn FnMut(&mut UnfinishedRun) -> bool) {
        let changed = {
            let mut unfinished = self.unfinished.borrow_mut();
            let live = unfinished.iter_mut().find(|other| other.id == run && other.state == UnfinishedState::Live);
            live.is_some_and(change)
        };
        if changed {
            self.notify();
        }
    }
}
