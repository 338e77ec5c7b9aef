//! The run waits for the save of an answer, or of what its requests contain of history.

use crate::error::Error;
use crate::message::Message;
use crate::run::approval::ResumedCalls;
use crate::run::context::RunContext;
use crate::run::event::RunEvent;
use crate::run::journal::JournalEntry;
use crate::run::next_state::{FinalResult, NextState, is_permanent};
use crate::run::replay_safety::RequestDelivery;
use crate::run::setup::Persistence;
use crate::run::state_behavior::{DoneSave, StateBehavior};
use crate::run::turn::RunData;
use crate::tool::ToolInvocation;

/// The run waits for a save. Until then the tools of an answer must not run, its call must not be continued, and no
/// request is sent.
pub struct AwaitingAnswerSave {
    save: u64,
    after: AfterSave,
}

/// What follows the save.
enum AfterSave {
    /// The tools of the answer.
    Tools,
    /// The next model call: the model continues the answer.
    Continuation,
    /// The request with what was chosen of history; `None` once it is sent.
    Request(Option<Box<NextState>>),
}

impl AwaitingAnswerSave {
    /// Queues the save of an answer, which the turn has already.
    pub fn enter(turn: &mut RunData, message: Message, invocations: Vec<ToolInvocation>) -> Self {
        let after = if invocations.is_empty() { AfterSave::Continuation } else { AfterSave::Tools };
        let save = turn.save_answer(JournalEntry::Answered { message, invocations });
        Self { save, after }
    }

    /// Waits for the save of what the run has chosen of history.
    pub fn of_choice(save: u64, next: Box<NextState>) -> Self {
        Self { save, after: AfterSave::Request(Some(next)) }
    }
}

impl StateBehavior for AwaitingAnswerSave {
    fn awaits(&self, save: u64) -> bool {
        self.save == save
    }

    fn saved(&mut self, done: DoneSave, turn: &mut RunData, _context: &RunContext<'_>) -> Option<NextState> {
        if let AfterSave::Request(next) = &mut self.after {
            return next.take().map(|next| *next);
        }
        turn.set_request_delivery(RequestDelivery::Answered);
        if turn.setup().persistence != Persistence::Run {
            turn.emit(RunEvent::Saved { revision: done.revision });
        }
        let has_calls = matches!(self.after, AfterSave::Tools);
        Some(if has_calls { NextState::RunTools(ResumedCalls::default()) } else { NextState::CallModel })
    }

    fn save_failed(&self, _save: u64, turn: &mut RunData, failure: Error) -> Option<NextState> {
        if is_permanent(&failure) {
            return Some(NextState::Done(FinalResult::failed(failure)));
        }
        turn.emit(RunEvent::SaveFailed { error: failure });
        None
    }
}
