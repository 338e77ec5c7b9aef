//! The run waits for the save of an answer.

use crate::error::{Error, ErrorCode};
use crate::message::Message;
use crate::run::event::RunEvent;
use crate::run::journal::JournalEntry;
use crate::run::next_state::{NextState, RunEnd, is_ownership_lost};
use crate::run::setup::Persistence;
use crate::run::turn::Turn;
use crate::tool::ToolInvocation;
use std::collections::BTreeMap;

/// The run waits for the save of an answer. Until then its tools must not run, and the call must not be continued.
pub struct AwaitingAnswerSave {
    save: u64,
    /// True if the answer calls tools; otherwise the model continues it.
    has_calls: bool,
}

impl AwaitingAnswerSave {
    /// Queues the save of an answer, which the turn has already.
    pub fn enter(turn: &mut Turn, message: Message, invocations: Vec<ToolInvocation>) -> Self {
        let has_calls = !invocations.is_empty();
        let save = turn.save_answer(JournalEntry::Answered { message, invocations });
        Self { save, has_calls }
    }

    /// Returns true if the state waits for the save.
    pub fn awaits(&self, save: u64) -> bool {
        self.save == save
    }

    /// Handles the success of the save.
    pub fn saved(&self, turn: &mut Turn, revision: u64) -> NextState {
        if turn.setup().persistence != Persistence::Run {
            turn.emit(RunEvent::Saved { revision });
        }
        if self.has_calls { NextState::RunTools(BTreeMap::new()) } else { NextState::CallModel }
    }

    /// Handles the failure of the save.
    pub fn save_failed(turn: &mut Turn, failure: Error) -> Option<NextState> {
        // Another writer has stored a message or a call with one of these ids, to which later entries refer.
        if is_ownership_lost(&failure) || failure.code == ErrorCode::InvalidInput {
            return Some(NextState::End(RunEnd::failed(failure)));
        }
        turn.emit(RunEvent::SaveFailed { error: failure });
        None
    }
}
