//! What a state of a run returns: the next state, with the data that it starts with.

use super::approval::ResumedCalls;
use super::background_answer::BackgroundAnswer;
use super::outcome::RunStatus;
use super::retry::ReplayQuestion;
use crate::clock::Ms;
use crate::error::{Error, ErrorCode};
use crate::finding::Report;
use crate::message::{Message, MessageStatus, PrefixMark};
use crate::render::{BodyLedger, FilterableBody, PrefixReuse};
use crate::replay::{Callback, ReducerQuestion, ReducerReplies};
use crate::tool::ToolInvocation;
use std::rc::Rc;

/// The next state of a run. The run enters it, and it may lead to another one at once.
pub(super) enum NextState {
    /// Calls the model, unless it was called as often as it may.
    CallModel,
    /// Calls the model in an attempt that follows a pause of an earlier process.
    ResumeCall(CallAttempt),
    /// Builds the body of the next request.
    Render(RenderPlan),
    /// Asks the application a reducer's question.
    AskReducer(RenderPlan, ReducerQuestion),
    /// Asks the application's filter what is sent.
    AskBodyFilter(BodyFilterPlan),
    /// Saves what the requests contain of history, before anything is sent.
    SaveChoice(Box<NextState>),
    /// Sends a body that nobody filters.
    SendComposed(ComposedRequest),
    /// Sends a request to the model.
    Send(ModelRequest),
    /// Picks up the answer on which the service works in the background, after the pause with this end.
    PickUp(Box<BackgroundAnswer>, Option<Ms>),
    /// Pauses before it repeats a request.
    Pause(RetryPause),
    /// Asks the application whether a request may be repeated, after the pause.
    AskReplay(RetryPause, ReplayQuestion),
    /// Saves an answer with calls, or one that the model continues.
    SaveAnswer(Message, Vec<ToolInvocation>),
    /// Runs the tools of the last answer, with what the journal of a resumed run has of its calls.
    RunTools(ResumedCalls),
    /// Saves what history lacks of the turn, and ends the run.
    SaveTurn(TurnEnd),
    /// Ends the run before its turn is complete.
    StopEarly(EarlyStop),
    /// Ends the run; nothing is left to save.
    Done(FinalResult),
}

/// What a turn ends with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TurnEnd {
    /// The model's answer.
    Answer,
    /// The results of tools, which the model does not see.
    Results,
}

/// A body that is being built.
pub(super) struct RenderPlan {
    /// The application's replies so far.
    pub replies: ReducerReplies,
    /// The time for which the body is built.
    pub at: Ms,
    /// The attempt that sends it.
    pub attempt: CallAttempt,
}

/// A body that was composed, and that the application's filter may change before it is sent.
pub(super) struct BodyFilterPlan {
    pub callback: Callback,
    pub filterable: FilterableBody,
    pub composed: ComposedRequest,
    /// The answers in the body, of which reasoning may be left out after the filter.
    pub ledger: Option<Box<BodyLedger>>,
}

/// A request whose body was composed.
#[derive(Clone)]
pub(super) struct ComposedRequest {
    /// The attempt that sends it.
    pub attempt: CallAttempt,
    pub body: Rc<Vec<u8>>,
    /// The findings of composing it.
    pub report: Report,
    /// How much of the last body it repeats.
    pub prefix: PrefixReuse,
    /// What it contains, for its answer.
    pub mark: Option<PrefixMark>,
}

/// A request to the model.
#[derive(Clone)]
pub(super) struct ModelRequest {
    pub attempt: CallAttempt,
    /// The body; a retry sends it unchanged.
    pub body: Rc<Vec<u8>>,
    /// True if the request changes a conversation that the service keeps.
    pub is_stateful: bool,
}

/// An attempt of a model call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CallAttempt {
    /// Its number, from 1.
    pub number: u32,
    /// The time before which the request must not be sent, if the host did not wait for it.
    pub not_before: Option<Ms>,
}

impl CallAttempt {
    /// The first attempt.
    pub const FIRST: Self = Self { number: 1, not_before: None };
}

/// A pause before the next attempt of a model call.
pub(super) struct RetryPause {
    /// The number of the next attempt.
    pub attempt: u32,
    /// The end of the pause.
    pub not_before: Ms,
    /// The request that failed; `None` in a resumed run, which builds it after the pause.
    pub request: Option<ModelRequest>,
    /// The save of the pause, until it is done.
    pub save: Option<u64>,
    /// True if the journal says when the pause ends, so that nothing was sent yet. For a conversation it says before
    /// the request that this may have been sent: the clock of the next process may be behind.
    pub is_before_sending: bool,
}

/// Why a run ends before its turn is complete.
pub(super) struct EarlyStop {
    /// `Failed` or `Cancelled`.
    pub status: RunStatus,
    pub error: Error,
    /// The incomplete answer.
    pub partial: Option<Message>,
}

impl EarlyStop {
    /// Stops a run that failed.
    pub fn failed(error: Error) -> Self {
        Self { status: RunStatus::Failed, error, partial: None }
    }

    /// Stops a run that the user cancelled.
    pub fn cancelled() -> Self {
        let error = Error::new(ErrorCode::Aborted, "the run was cancelled");
        Self { status: RunStatus::Cancelled, error, partial: None }
    }

    /// Returns the status of a message that the run leaves incomplete.
    pub fn message_status(&self) -> MessageStatus {
        if self.status == RunStatus::Cancelled { MessageStatus::Stopped } else { MessageStatus::Failed }
    }

    /// Keeps an incomplete answer.
    #[must_use]
    pub fn with(self, partial: Option<Message>) -> Self {
        Self { partial, ..self }
    }
}

/// How a run ended.
pub(super) struct FinalResult {
    pub status: RunStatus,
    pub error: Option<Error>,
    /// The revision of history.
    pub revision: u64,
    /// True if history contains the turn.
    pub saved: bool,
}

impl FinalResult {
    /// Ends a run that failed, with nothing of its last steps saved.
    pub fn failed(error: Error) -> Self {
        Self::unsaved(RunStatus::Failed, Some(error))
    }

    /// Ends a run whose turn is not in history.
    pub fn unsaved(status: RunStatus, error: Option<Error>) -> Self {
        Self { status, error, revision: 0, saved: false }
    }
}

impl From<EarlyStop> for NextState {
    fn from(stop: EarlyStop) -> Self {
        Self::StopEarly(stop)
    }
}

/// Returns true if a save failed because another holder took the run over, who alone may write now, or the session was
/// deleted.
pub(super) fn is_run_lost(failure: &Error) -> bool {
    matches!(failure.code, ErrorCode::Conflict | ErrorCode::NotFound)
}

/// Returns true if the save of an answer or a result fails in every attempt: another holder has the run or the
/// session is gone, or another writer has stored a message or a call with one of its ids, to which later entries refer.
pub(super) fn is_permanent(failure: &Error) -> bool {
    is_run_lost(failure) || failure.code == ErrorCode::InvalidInput
}

/// Creates the error of an input that the current state does not allow.
pub(super) fn wrong_state(message: &str) -> Error {
    Error::new(ErrorCode::WrongState, message)
}
