//! The status and the outcome of a run.

use crate::error::Error;
use crate::finding::Report;
use crate::message::Usage;

/// The status of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum RunStatus {
    Running,
    /// No effect is open, and calls wait for an approval. The run has no owner meanwhile.
    WaitingApproval,
    Finished,
    Failed,
    Cancelled,
}

impl RunStatus {
    /// Returns true if the run has ended.
    #[must_use]
    pub fn is_over(self) -> bool {
        matches!(self, Self::Finished | Self::Failed | Self::Cancelled)
    }

    /// Returns the name in the TypeScript types.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::WaitingApproval => "waiting_approval",
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// A call that the run went on without.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct OpenCall {
    pub call_id: String,
    /// The id of the invocation, which no other call has.
    pub invocation: String,
    pub name: String,
}

/// The outcome of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunOutcome {
    /// The status at the end.
    pub status: RunStatus,
    /// The error of a failed run.
    pub error: Option<Error>,
    /// The text of the last answer, as a JSON string.
    pub text: crate::json::JsonStr,
    /// The number of model calls.
    pub model_calls: u32,
    /// The sum of the token usage of all calls.
    pub usage: Option<Usage>,
    /// The findings of building the requests.
    pub report: Report,
    /// The session's revision after the run.
    pub revision: u64,
    /// True if history contains the turn.
    pub saved: bool,
    /// The ids of the turn's messages, in order.
    pub message_ids: Vec<String>,
    /// The provider's id of the last response.
    pub response_id: Option<String>,
    /// The id of the conversation that the provider keeps.
    pub conversation_id: Option<String>,
    /// The calls whose results come later.
    pub open_calls: Vec<OpenCall>,
    /// What the application gives as the input of its next run, if it holds the conversation and the run finished.
    pub replay: Option<crate::json::Json>,
}
