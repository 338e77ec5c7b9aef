//! The data of a run, and the steps that its transitions share.

use super::credential_filter::CredentialFilter;
use super::effect::{EffectKind, Save, SaveKind};
use super::event::RunEvent;
use super::model_call::ModelCall;
use super::open_effects::OpenEffects;
use super::outcome::{RunOutcome, RunStatus};
use super::persist::Redactions;
use super::setup::RunSetup;
use super::tool_round::ToolRound;
use crate::clock::Ms;
use crate::error::{Error, ErrorCode, Result};
use crate::finding::{Finding, Report};
use crate::history::History;
use crate::json::JsonStr;
use crate::message::{Message, Usage};
use crate::replay::{ReducerQuestion, ReducerReplies};
use std::collections::VecDeque;

/// A run: one turn, from its input to the answer that ends it.
pub struct Run {
    pub(super) setup: RunSetup,
    /// The turn so far. It is not in history yet.
    pub(super) live: History,
    pub(super) state: RunState,
    pub(super) effects: OpenEffects,
    pub(super) saves: VecDeque<Save>,
    pub(super) events: Vec<RunEvent>,
    /// The id of the next save; operations are named after it.
    pub(super) next_save: u64,
    /// The number of model calls.
    pub(super) model_calls: u32,
    pub(super) usage: Option<Usage>,
    pub(super) report: Report,
    /// The text of the newest answer.
    pub(super) text: JsonStr,
    pub(super) response_id: Option<String>,
    /// The server's container of the newest answer, in which its code runs.
    pub(super) container: Option<String>,
    /// Saves that failed, in order. They are retried: the model calls that produced them are paid for (R58).
    pub(super) unsaved: VecDeque<Save>,
    /// Removes the request's credentials from the provider's error texts.
    pub(super) credential_filter: CredentialFilter,
    /// What is stored instead of arguments and results (R12).
    pub(super) redactions: Redactions,
    /// The incomplete answer of a run that failed or was stopped.
    pub(super) cut_answer: Option<Message>,
}

/// The state of a run: what it waits for.
pub(super) enum RunState {
    /// The save of the journal's first entry.
    AwaitingJournal { save: u64, cancelled: bool },
    /// The application's reply to a reducer's question, before a model call.
    AwaitingReducer(Box<PendingRender>),
    /// The model's response.
    AwaitingModel(Box<ModelCall>),
    /// The end of the pause before a model call is repeated.
    AwaitingRetry { call: Box<ModelCall> },
    /// The save of the answer's journal entry.
    AwaitingAnswerSave { save: u64, then: AfterAnswer },
    /// The results of tools, and their saves.
    AwaitingTools(ToolRound),
    /// The save that appends the turn or ends the journal.
    AwaitingEndSave { save: u64, status: RunStatus, error: Option<Error>, appends: bool },
    /// Nothing: the run is over.
    Done(Box<RunOutcome>),
}

/// What follows a saved answer.
#[derive(Clone, Copy)]
pub(super) enum AfterAnswer {
    Tools,
    CallAgain,
}

/// A model call whose body cannot be rendered until the application replies to a reducer's question.
pub(super) struct PendingRender {
    /// The replies so far.
    pub replies: ReducerReplies,
    /// The time for which the body is built.
    pub at: Ms,
    pub question: ReducerQuestion,
    /// True if the binding has taken the question.
    pub is_taken: bool,
}

impl Run {
    /// Creates a run that has done nothing yet.
    pub(super) fn new(setup: RunSetup, live: History) -> Self {
        let redactions = Redactions::new(live.seed());
        Self {
            credential_filter: CredentialFilter::new(&setup.provider),
            setup,
            live,
            state: RunState::AwaitingJournal { save: 0, cancelled: false },
            effects: OpenEffects::default(),
            saves: VecDeque::new(),
            events: Vec::new(),
            next_save: 1,
            model_calls: 0,
            usage: None,
            report: Report::new(),
            text: JsonStr::new(""),
            response_id: None,
            container: None,
            unsaved: VecDeque::new(),
            redactions,
            cut_answer: None,
        }
    }

    /// Returns true if the effect waits for a reply.
    ///
    /// # Errors
    /// `unknown_effect` for an id that was never offered.
    pub(super) fn is_open(&self, effect: &str) -> Result<bool> {
        self.effects.is_open(effect).ok_or_else(|| {
            Error::new(
                ErrorCode::UnknownEffect,
                format!("this run offered no effect \"{effect}\"; use the id of one of its effects"),
            )
        })
    }

    /// Reports that an answer begins.
    pub(super) fn report_message_started(&mut self) {
        let RunState::AwaitingModel(call) = &self.state else { return };
        let position = self.live.position();
        self.events.push(RunEvent::MessageStarted {
            message_id: call.message_id.clone(),
            turn: self.model_calls.saturating_sub(1),
            round: position.rounds,
        });
    }

    /// Adds a finding to the report and emits it as a warning event.
    pub(super) fn warn(&mut self, finding: Finding) {
        self.report.push(finding.clone());
        self.events.push(RunEvent::Warning(finding));
    }

    /// Offers an effect; returns its id.
    pub(super) fn offer(&mut self, kind: EffectKind) -> String {
        self.effects.offer(kind)
    }

    /// Queues a save for the binding to write, and returns its id.
    pub(super) fn save(&mut self, kind: SaveKind) -> u64 {
        let id = self.next_save;
        self.next_save += 1;
        let sources = self.live.highest_source();
        self.saves.push_back(Save { id, kind, sources });
        id
    }

    /// Returns true if the run cannot continue before this save is done.
    pub(super) fn awaits(&self, id: u64) -> bool {
        match &self.state {
            RunState::AwaitingJournal { save, .. }
            | RunState::AwaitingAnswerSave { save, .. }
            | RunState::AwaitingEndSave { save, .. } => *save == id,
            RunState::AwaitingTools(tasks) => tasks.awaits(id),
            RunState::AwaitingReducer(_)
            | RunState::AwaitingModel(_)
            | RunState::AwaitingRetry { .. }
            | RunState::Done(_) => false,
        }
    }

    /// Keeps a save that failed until [`RunInput::RetrySave`](super::RunInput::RetrySave).
    pub fn keep_unsaved(&mut self, save: Save) {
        if self.awaits(save.id) {
            self.unsaved.push_back(save);
        }
    }

    /// Drops the run's data. The run stays in a state that no save completes, so it never finishes.
    pub fn release(&mut self) {
        self.live = History::new(self.live.seed());
        self.effects.clear();
        self.saves.clear();
        self.unsaved.clear();
        self.events.clear();
        self.state = RunState::AwaitingJournal { save: u64::MAX, cancelled: false };
    }

    /// Ends the run.
    pub(super) fn done(&mut self, status: RunStatus, error: Option<Error>, revision: u64, saved: bool) {
        self.effects.clear();
        self.saves.clear();
        self.unsaved.clear();
        let outcome = self.outcome_as(status, error, revision, saved);
        self.events.push(RunEvent::Finished(Box::new(outcome.clone())));
        self.state = RunState::Done(Box::new(outcome));
    }

    /// Returns the outcome so far with this status.
    pub(super) fn outcome_as(&self, status: RunStatus, error: Option<Error>, revision: u64, saved: bool) -> RunOutcome {
        RunOutcome {
            status,
            error,
            text: self.text.clone(),
            model_calls: self.model_calls,
            usage: self.usage,
            report: self.report.clone(),
            revision,
            saved,
            message_ids: self.live.messages().iter().map(|message| message.id.clone()).collect(),
            response_id: self.response_id.clone(),
        }
    }
}

/// Creates the error of an input that the current state does not allow.
pub(super) fn wrong_state(message: &str) -> Error {
    Error::new(ErrorCode::WrongState, message)
}
