//! What a run tells: how it stands, what it wants done, what it came to. Nothing here changes where it stands.

use super::effect::{Effect, Save};
use super::event::RunEvent;
use super::model_call::ModelResponse;
use super::outcome::{RunOutcome, RunStatus};
use super::state::RunState;
use super::{Run, RunContext};
use crate::error::Error;
use crate::history::History;
use crate::json::JsonStr;
use crate::message::{Dialect, Message, MessageStatus, PartBody};

impl Run {
    /// How it stands.
    #[must_use]
    pub fn status(&self) -> RunStatus {
        match &self.state {
            RunState::Done(outcome) => outcome.status,
            _ => RunStatus::Running,
        }
    }

    /// The run's id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.setup.id
    }

    /// The wire format of its requests.
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        self.setup.provider.dialect
    }

    /// The turn so far, not in history yet.
    #[must_use]
    pub fn live(&self) -> &History {
        &self.live
    }

    /// The answer that is coming in, as far as it is there; of a run that ended early, the answer that was cut.
    #[must_use]
    pub fn partial(&self, context: &RunContext<'_>) -> Option<Message> {
        let RunState::Calling(call) = &self.state else { return self.cut_answer.clone() };
        let ModelResponse::Streaming(assembler) = &call.response else { return None };
        let assembled = assembler.partial();
        let (message, _) =
            self.message_of(&assembled, &call.message_id, MessageStatus::Complete, call.asked_at, context)?;
        Some(message)
    }

    /// What the host must do now.
    #[must_use]
    pub fn effects(&self) -> Vec<&Effect> {
        self.effects.all()
    }

    /// The open effects that were offered after the one of that number, with their numbers, which count from 1.
    #[must_use]
    pub fn effects_after(&self, number: u64) -> Vec<(u64, &Effect)> {
        self.effects.after(number)
    }

    /// The numbers of the effects that were closed since the last call: answered, or given up.
    pub fn take_closed_effects(&mut self) -> Vec<u64> {
        self.effects.take_closed()
    }

    /// The next write for the binding, without what must not be stored. Before it come the questions of
    /// [`take_persist_question`](Self::take_persist_question).
    pub fn take_save(&mut self) -> Option<Save> {
        let mut save = self.saves.pop_front()?;
        self.redact(&mut save.kind);
        Some(save)
    }

    /// What has happened since the last time.
    pub fn take_events(&mut self) -> Vec<RunEvent> {
        std::mem::take(&mut self.events)
    }

    /// What it came to; while it runs, how far it is.
    #[must_use]
    pub fn outcome(&self) -> RunOutcome {
        match &self.state {
            RunState::Done(outcome) => (**outcome).clone(),
            _ => self.outcome_as(RunStatus::Running, None, 0, false),
        }
    }

    /// Whether an answer waits to be stored.
    #[must_use]
    pub fn has_unsaved(&self) -> bool {
        !self.unsaved.is_empty()
    }

    /// When the model is asked again, if it waits for that: the length of the wait, in milliseconds.
    #[must_use]
    pub fn waits(&self) -> bool {
        matches!(self.state, RunState::Waiting { .. })
    }

    pub(super) fn outcome_as(&self, status: RunStatus, error: Option<Error>, revision: u64, saved: bool) -> RunOutcome {
        RunOutcome {
            status,
            error,
            text: self.text.clone(),
            turns: self.turns,
            usage: self.usage,
            report: self.report.clone(),
            revision,
            saved,
            message_ids: self.live.messages().iter().map(|message| message.id.clone()).collect(),
            response_id: self.response_id.clone(),
        }
    }
}

/// All text of an answer.
pub(super) fn said(message: &Message) -> JsonStr {
    let mut inside = String::new();
    for part in &message.parts {
        if let PartBody::Text(text) = &part.body {
            inside.push_str(text.inside());
        }
    }
    JsonStr::from_inside(&inside)
}
