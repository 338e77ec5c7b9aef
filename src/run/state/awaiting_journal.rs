//! The first state: the run waits for the save of its journal's first entries.

use crate::error::Error;
use crate::run::context::RunContext;
use crate::run::effect::SaveKind;
use crate::run::journal::JournalEntry;
use crate::run::next_state::{EarlyStop, FinalResult, NextState};
use crate::run::state_behavior::{DoneSave, StateBehavior};
use crate::run::turn::RunData;

/// The run waits for the save of its journal's first entries.
pub struct AwaitingJournal {
    save: u64,
    is_cancelled: bool,
}

impl AwaitingJournal {
    /// Queues the save.
    pub fn enter(turn: &mut RunData, entries: Vec<JournalEntry>) -> Self {
        Self { save: turn.save(SaveKind::Begin(entries)), is_cancelled: false }
    }
}

impl StateBehavior for AwaitingJournal {
    fn awaits(&self, save: u64) -> bool {
        self.save == save
    }

    /// Cancels the run as soon as its journal is saved.
    fn cancel(&mut self, _turn: &mut RunData, _context: &RunContext<'_>) -> Option<NextState> {
        self.is_cancelled = true;
        None
    }

    fn saved(&mut self, _done: DoneSave, _turn: &mut RunData, _context: &RunContext<'_>) -> Option<NextState> {
        Some(if self.is_cancelled { EarlyStop::cancelled().into() } else { NextState::CallModel })
    }

    fn save_failed(&self, _save: u64, _turn: &mut RunData, failure: Error) -> Option<NextState> {
        Some(NextState::Done(FinalResult::failed(failure)))
    }
}
