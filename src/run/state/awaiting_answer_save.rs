//! The run waits for the save of an answer.

use crate::error::Error;
use crate::message::Message;
use crate::run::effect::SaveKind;
use crate::run::event::RunEvent;
use crate::run::journal::JournalEntry;
use crate::run::next_state::{NextState, RunEnd, is_ownership_lost};
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
        let save = turn.save(SaveKind::Write(vec![JournalEntry::Answered { message, invocations }]));
        Self { save, has_calls }
    }

    /// Returns true if the state waits for the save.
    pub fn awaits(&self, save: u64) -> bool {
        self.save == save
    }

    /// Handles the success of the save.
    pub fn saved(&self) -> NextState {
        if self.has_calls { NextState::RunTools(BTreeMap::new()) } else { NextState::CallModel }
    }

    /// Handles the failure of the save.
    pub fn save_failed(turn: &mut Turn, failure: Error) -> Option<NextState> {
        if is_ownership_lost(&failure) {
            return Some(NextState::End(RunEnd::failed(failure)));
        }
        turn.emit(RunEvent::SaveFailed { error: failure });
        None
    }
}
