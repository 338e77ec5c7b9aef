//! The run waits for the save of an answer.

use crate::error::Error;
use crate::message::Message;
use crate::run::approval::ResumedCalls;
use crate::run::event::RunEvent;
use crate::run::journal::JournalEntry;
use crate::run::next_state::{FinalResult, NextState, is_permanent};
use crate::run::replay_safety::RequestDelivery;
use crate::run::setup::Persistence;
use crate::run::turn::RunData;
use crate::tool::ToolInvocation;

/// The run waits for the save of an answer. Until then its tools must not run, and the call must not be continued.
pub struct AwaitingAnswerSave {
    save: u64,
    /// True if the answer calls tools; otherwise the model continues it.
    has_calls: bool,
}

impl AwaitingAnswerSave {
    /// Queues the save of an answer, which the turn has already.
    pub fn enter(turn: &mut RunData, message: Message, invocations: Vec<ToolInvocation>) -> Self {
        let has_calls = !invocations.is_empty();
        let save = turn.save_answer(JournalEntry::Answered { message, invocations });
        Self { save, has_calls }
    }

    /// Returns true if the state waits for the save.
    pub fn awaits(&self, save: u64) -> bool {
        self.save == save
    }

    /// Handles the success of the save.
    pub fn saved(&self, turn: &mut RunData, revision: u64) -> NextState {
        turn.set_request_delivery(RequestDelivery::Answered);
        if turn.setup().persistence != Persistence::Run {
            turn.emit(RunEvent::Saved { revision });
        }
        if self.has_calls { NextState::RunTools(ResumedCalls::default()) } else { NextState::CallModel }
    }

    /// Handles the failure of the save.
    pub fn save_failed(turn: &mut RunData, failure: Error) -> Option<NextState> {
        if is_permanent(&failure) {
            return Some(NextState::Done(FinalResult::failed(failure)));
        }
        turn.emit(RunEvent::SaveFailed { error: failure });
        None
    }
}
