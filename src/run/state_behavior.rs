//! What each state of a run does when something happens that can happen in all of them.

use super::context::RunContext;
use super::effect::EffectReply;
use super::handoff::Handoff;
use super::journal::JournalEntry;
use super::next_state::{EarlyStop, FinalResult, NextState, wrong_state};
use super::outcome::RunStatus;
use super::turn::RunData;
use crate::clock::Ms;
use crate::error::{Error, Result};

/// The behavior of a state of a run. The default of what a state may await is that it does not: a state that returns
/// true from [`awaits`](Self::awaits) says what its success and failure lead to. The default of what ends a run is that it
/// ends; the states at its end have their own.
pub(super) trait StateBehavior {
    /// Returns the status of the run.
    fn status(&self) -> RunStatus {
        RunStatus::Running
    }

    /// Returns true if the run cannot continue before this save is done.
    fn awaits(&self, _save: u64) -> bool {
        false
    }

    /// Handles the success of a save that it awaits.
    fn saved(&mut self, _done: DoneSave, _turn: &mut RunData, _context: &RunContext<'_>) -> Option<NextState> {
        None
    }

    /// Handles the failure of a save that it awaits.
    fn save_failed(&self, _save: u64, _turn: &mut RunData, _failure: Error) -> Option<NextState> {
        None
    }

    /// Notes the failure of a save that it does not await, and that nobody repeats.
    fn note_unsaved(&mut self, _save: u64, _turn: &mut RunData, _failure: &Error) {}

    /// Handles the host's reply to an open effect.
    ///
    /// # Errors
    /// `wrong_state` for a reply that does not fit; nothing has changed then.
    fn reply(
        &mut self,
        _turn: &mut RunData,
        _answered: AnsweredEffect<'_>,
        _context: &RunContext<'_>,
    ) -> Result<Option<NextState>> {
        Ok(None)
    }

    /// Accepts a handoff, which takes effect with the next model call.
    ///
    /// # Errors
    /// `wrong_state`, and those of the handoff.
    fn hand_off(&mut self, turn: &mut RunData, handoff: Handoff, _now: Ms) -> Result<()> {
        turn.accept_handoff(handoff)
    }

    /// Ends the run by the user's wish.
    fn cancel(&mut self, _turn: &mut RunData, _context: &RunContext<'_>) -> Option<NextState> {
        Some(EarlyStop::cancelled().into())
    }

    /// Ends the run because another holder took it over, or its session was deleted.
    fn lose(&self, error: Error) -> Option<NextState> {
        Some(NextState::Done(FinalResult::failed(error)))
    }

    /// Ends the run because its saves keep failing.
    fn abandon(&self, error: Error) -> Option<NextState> {
        self.lose(error)
    }

    /// Returns the entry of the answer that ends the turn and is being saved, for the snapshot of a run with this
    /// journal.
    fn completion(&self, _turn: &RunData, _journal: &[JournalEntry]) -> Option<JournalEntry> {
        None
    }

    /// Checks that something is left to resume.
    ///
    /// # Errors
    /// `wrong_state`.
    fn check_resumable(&self) -> Result<()> {
        Ok(())
    }
}

/// A save that is done.
#[derive(Clone, Copy)]
pub(super) struct DoneSave {
    pub id: u64,
    /// The revision of history after it.
    pub revision: u64,
}

/// The reply to an open effect.
pub(super) struct AnsweredEffect<'e> {
    pub effect: &'e str,
    pub reply: EffectReply,
}

/// The error of a handoff to a run that calls no model any more.
pub(super) fn no_model_call() -> Error {
    wrong_state("the run is over; there is no model call that another agent could get")
}
