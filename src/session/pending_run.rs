//! A pending run as the view shows it: interrupted, waiting for an approval, failed, stopped, or under way in another
//! tab. A run that ended in this tab is shown from memory, any other from its journal.

use crate::history::{History, HistoryEntry, stored_result};
use crate::message::{Message, MessageStatus};
use crate::run::{StoredRun, mark_open_calls};
use crate::session_head::{RunEntry, SessionHead};
use crate::tool::InvocationStatus;

/// The state of a pending run.
#[derive(Clone, Debug, PartialEq)]
pub enum PendingState {
    /// Another tab drives it.
    Live,
    /// It is a question that waits for the runs before it.
    Queued,
    /// Nobody drives it.
    Interrupted,
    /// Nobody drives it, and it continues when a person decides about its calls.
    WaitingApproval,
    /// The user stopped it.
    Stopped,
    /// It failed: the error's code and sentence.
    Failed(String, String),
}

impl PendingState {
    /// Returns the state of a run of the head. `live` says whether another tab drives it.
    pub fn of(entry: &RunEntry, live: bool) -> Self {
        match &entry.failed {
            _ if entry.is_queued() => Self::Queued,
            _ if live => Self::Live,
            Some(_) if entry.is_stopped() => Self::Stopped,
            Some((code, message)) => Self::Failed(code.clone(), message.clone()),
            None => Self::Interrupted,
        }
    }

    /// Returns the state of a run by its journal, which says whether an interrupted run waits for an approval.
    pub fn by_journal(self, stored: &StoredRun) -> Self {
        if self == Self::Interrupted && stored.waits_for_approval() { Self::WaitingApproval } else { self }
    }

    /// The name in the public types.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Live => "running",
            Self::Queued => "queued",
            Self::Interrupted => "interrupted",
            Self::WaitingApproval => "waiting_approval",
            Self::Stopped => "cancelled",
            Self::Failed(..) => "failed",
        }
    }

    /// Returns true if the next run takes the place of this one in the view. Others stay until they are resumed or
    /// discarded.
    pub fn is_superseded_by_next(&self) -> bool {
        matches!(self, Self::Stopped | Self::Failed(..))
    }

    /// The status of calls that were started and have no result.
    fn open_calls(&self) -> Option<InvocationStatus> {
        match self {
            Self::Live | Self::Queued | Self::WaitingApproval => None,
            Self::Stopped => Some(InvocationStatus::Aborted),
            Self::Interrupted | Self::Failed(..) => Some(InvocationStatus::Interrupted),
        }
    }

    /// The status of an answer that was cut.
    fn cut_answer(&self) -> MessageStatus {
        match self {
            Self::Live | Self::Queued | Self::Interrupted | Self::WaitingApproval => MessageStatus::Truncated,
            Self::Stopped => MessageStatus::Stopped,
            Self::Failed(..) => MessageStatus::Failed,
        }
    }
}

/// A pending run and its turn.
pub struct PendingRun {
    /// Its id.
    pub id: String,
    /// Its number in the session; the highest for one that was never written.
    pub number: u64,
    /// Its state.
    pub state: PendingState,
    /// A copy of the turn so far with the status of open calls set; none while `source` holds the turn unchanged.
    pub marked: Option<History>,
    /// The answer that was coming in, or is.
    pub partial: Option<Message>,
    /// How often `partial` was replaced.
    pub partial_revision: u32,
    /// Where its turn comes from.
    pub source: TurnSource,
}

/// Where the turn of a pending run comes from.
pub enum TurnSource {
    /// The run ended in this tab, and the turn is what the user saw. `epoch` is the holder's in the head; none if the
    /// run was never written. `next_run` is the head's at that time.
    Memory { epoch: Option<u32>, next_run: u64 },
    /// The first `read` entries of the run's journal.
    Journal { stored: Box<StoredRun>, read: u64, epoch: u32 },
    /// The journal of the holder `epoch` cannot be read, so only the head's entry is shown, without a turn.
    Unreadable { epoch: u32, next_run: u64 },
}

/// How much of a run is known without reading its journal.
pub enum JournalProgress {
    /// Nothing is read: memory holds more of the run than its journal, or this holder's journal is known to be
    /// unreadable.
    NotNeeded,
    /// The first entries of its journal were read; the number is how many.
    Read(u64),
    /// Nothing of the journal was read.
    Unread,
}

impl PendingRun {
    /// Returns how much of the run's journal is known.
    pub fn journal_progress(&self, entry: &RunEntry, state: &PendingState) -> JournalProgress {
        match &self.source {
            TurnSource::Memory { epoch, .. } if *epoch == Some(entry.epoch) && *state != PendingState::Live => {
                JournalProgress::NotNeeded
            }
            TurnSource::Unreadable { epoch, .. } if *epoch == entry.epoch && *state != PendingState::Live => {
                JournalProgress::NotNeeded
            }
            TurnSource::Journal { read, .. } if *read <= entry.entries => JournalProgress::Read(*read),
            TurnSource::Memory { .. } | TurnSource::Journal { .. } | TurnSource::Unreadable { .. } => {
                JournalProgress::Unread
            }
        }
    }

    /// Returns false if what is known of it is of another journal than the head's entry.
    pub fn is_of_journal(&self, entry: &RunEntry) -> bool {
        self.number == entry.number || matches!(self.source, TurnSource::Memory { .. })
    }

    /// Returns true if the view shows the run: until it is resumed or discarded, and one that failed or was stopped
    /// until the next run starts.
    pub fn is_shown(&self, head: &SessionHead) -> bool {
        let entry = head.run(&self.id);
        let stays = entry.is_some() && !self.state.is_superseded_by_next();
        match &self.source {
            TurnSource::Memory { epoch, next_run } => {
                entry.map(|entry| entry.epoch) == *epoch && (stays || head.next_run <= *next_run)
            }
            TurnSource::Unreadable { epoch, next_run } => {
                entry.is_some_and(|entry| entry.epoch == *epoch) && (stays || head.next_run <= *next_run)
            }
            TurnSource::Journal { .. } => stays || (entry.is_some() && self.number + 1 == head.next_run),
        }
    }

    /// The turn so far, if it is known.
    pub fn turn(&self) -> Option<&History> {
        match (&self.marked, &self.source) {
            (None, TurnSource::Journal { stored, .. }) => Some(&stored.live),
            (marked, _) => marked.as_ref(),
        }
    }

    /// Sets the status of open calls and of a cut answer.
    pub fn mark(&mut self) {
        if let (Some(status), Some(turn)) = (self.state.open_calls(), &mut self.marked) {
            mark_open_calls(turn, status);
        }
        if let (PendingState::Stopped | PendingState::Failed(..), Some(turn)) = (&self.state, &mut self.marked) {
            turn.end_approvals();
        }
        if let Some(partial) = &mut self.partial {
            partial.status = self.state.cut_answer();
        }
    }

    /// Shows the results that history has of the turn's open calls.
    pub fn show_stored_results(&mut self, history: &History) {
        if let TurnSource::Journal { stored, .. } = &mut self.source {
            if stored.take_stored_results(history) {
                self.show_journal();
            }
        } else if let Some(turn) = &mut self.marked {
            let results: Vec<_> = turn.open_calls().filter_map(|call| stored_result(history, &call.id)).collect();
            results.into_iter().for_each(|result| turn.apply(HistoryEntry::Result(result)));
        }
    }

    /// Updates the shown turn from the journal entries read so far.
    pub fn show_journal(&mut self) {
        let TurnSource::Journal { stored, .. } = &self.source else { return };
        // A run that continues grows by each entry of its journal: it is not copied.
        self.marked = self.state.open_calls().map(|_| stored.live.clone());
        if matches!(self.state, PendingState::Stopped | PendingState::Failed(..)) {
            self.partial.clone_from(&stored.partial);
            self.partial_revision += 1;
        }
        self.mark();
    }
}
