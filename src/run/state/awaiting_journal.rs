//! The first state: the run waits for the save of its journal's first entries.

use crate::error::Error;
use crate::run::effect::SaveKind;
use crate::run::journal::JournalEntry;
use crate::run::next_state::{EarlyStop, FinalResult, NextState};
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

    /// Returns true if the state waits for the save.
    pub fn awaits(&self, save: u64) -> bool {
        self.save == save
    }

    /// Cancels the run as soon as its journal is saved.
    pub fn cancel(&mut self) {
        self.is_cancelled = true;
    }

    /// Handles the success of the save.
    pub fn saved(&self) -> NextState {
        if self.is_cancelled { EarlyStop::cancelled().into() } else { NextState::CallModel }
    }

    /// Handles the failure of the save.
    pub fn save_failed(failure: Error) -> NextState {
        NextState::Done(FinalResult::failed(failure))
    }
}
