//! How a run stands and how it ended.

use crate::error::Error;
use crate::finding::Report;
use crate::message::Usage;

/// How a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum RunStatus {
    Running,
    Finished,
    Failed,
    Cancelled,
}

impl RunStatus {
    /// The name in the public types.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// What a run came to.
#[derive(Clone, Debug, PartialEq)]
pub struct RunOutcome {
    /// How it ended.
    pub status: RunStatus,
    /// Why, if it failed or was cancelled.
    pub error: Option<Error>,
    /// The text of the last answer, as a JSON string.
    pub text: crate::json::JsonStr,
    /// How many model calls it took.
    pub turns: u32,
    /// The sum of its calls.
    pub usage: Option<Usage>,
    /// Everything that building the requests found and did.
    pub report: Report,
    /// The session's revision after it.
    pub revision: u64,
    /// Whether history holds it.
    pub saved: bool,
    /// The ids of its messages, the input's first.
    pub message_ids: Vec<String>,
    /// The provider's id of the last response.
    pub response_id: Option<String>,
}
