//! The end of a run that can store nothing any more: another holder has it, its session is gone, or its saves keep
//! failing.

use super::machine::{Run, RunState};
use super::next_state::{FinalResult, NextState};
use crate::error::Error;

impl Run {
    /// Ends the run because another holder took it over, or its session was deleted.
    pub(super) fn lose_run(&self, error: Error) -> Option<NextState> {
        match &self.state {
            RunState::AwaitingJournal(_)
            | RunState::AwaitingBody(_)
            | RunState::AwaitingModel(_)
            | RunState::AwaitingRetry(_)
            | RunState::AwaitingAnswerSave(_)
            | RunState::AwaitingTools(_) => Some(NextState::Done(FinalResult::failed(error))),
            // A run that is ending learns it from its last save.
            RunState::AwaitingEndSave(_) | RunState::Done(_) | RunState::Released => None,
        }
    }

    /// Ends the run because its saves fail. A snapshot of it has what they contain.
    pub(super) fn abandon_saves(&mut self, error: Error) -> Option<NextState> {
        let end = match &self.state {
            RunState::AwaitingEndSave(state) => Some(state),
            _ => None,
        };
        if let Ok(mut journal) = self.turn.journal() {
            journal.extend(end.and_then(|state| state.completion(&self.turn, &journal)));
            self.turn.replace_journal(&journal);
        }
        if let RunState::AwaitingEndSave(state) = &self.state {
            return Some(NextState::Done(state.abandoned(error)));
        }
        self.lose_run(error)
    }
}
