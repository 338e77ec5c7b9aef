//! The status of a run: what its owner can read and take without changing its state.

use super::context::RunContext;
use super::effect::{Effect, Save};
use super::event::RunEvent;
use super::model_call::ModelResponse;
use super::outcome::{RunOutcome, RunStatus};
use super::state::{Run, RunState};
use crate::history::History;
use crate::message::{Dialect, Message, MessageStatus};

impl Run {
    /// Returns the status.
    #[must_use]
    pub fn status(&self) -> RunStatus {
        match &self.state {
            RunState::Done(outcome) => outcome.status,
            _ => RunStatus::Running,
        }
    }

    /// Returns the run's id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.setup.id
    }

    /// Returns the dialect of its requests.
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        self.setup.provider.dialect
    }

    /// Returns the turn so far, which is not in history yet.
    #[must_use]
    pub fn live(&self) -> &History {
        &self.live
    }

    /// Returns the received part of the current answer or, after a run that ended early, the incomplete answer.
    #[must_use]
    pub fn partial(&self, context: &RunContext<'_>) -> Option<Message> {
        let RunState::AwaitingModel(call) = &self.state else { return self.cut_answer.clone() };
        let ModelResponse::Streaming(assembler) = &call.response else { return None };
        let assembled = assembler.partial();
        let (message, _) = self.message_of(&assembled, call.answered(), MessageStatus::Complete, context)?;
        Some(message)
    }

    /// Returns the open effects: what the host must do now.
    #[must_use]
    pub fn effects(&self) -> Vec<&Effect> {
        self.effects.all()
    }

    /// Returns the open effects with numbers above `number`, and their numbers, which count from 1.
    #[must_use]
    pub fn effects_after(&self, number: u64) -> Vec<(u64, &Effect)> {
        self.effects.after(number)
    }

    /// Takes the numbers of the effects that were closed since the last call: answered, or no longer needed.
    pub fn take_closed_effects(&mut self) -> Vec<u64> {
        self.effects.take_closed()
    }

    /// Takes the next save, redacted. The binding answers the questions of
    /// [`take_persist_question`](Self::take_persist_question) first.
    pub fn take_save(&mut self) -> Option<Save> {
        let mut save = self.saves.pop_front()?;
        self.redact(&mut save.kind);
        Some(save)
    }

    /// Takes the events since the last call.
    pub fn take_events(&mut self) -> Vec<RunEvent> {
        std::mem::take(&mut self.events)
    }

    /// Returns the outcome; of a run in progress, the outcome so far.
    #[must_use]
    pub fn outcome(&self) -> RunOutcome {
        match &self.state {
            RunState::Done(outcome) => (**outcome).clone(),
            _ => self.outcome_as(RunStatus::Running, None, 0, false),
        }
    }

    /// Returns true if a failed save waits to be repeated.
    #[must_use]
    pub fn has_unsaved(&self) -> bool {
        !self.unsaved.is_empty()
    }

    /// Returns true if the run pauses before it repeats a model call.
    #[must_use]
    pub fn waits(&self) -> bool {
        matches!(self.state, RunState::AwaitingRetry { .. })
    }
}
