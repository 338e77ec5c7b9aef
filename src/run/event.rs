//! What an application may watch.

use super::outcome::RunOutcome;
use crate::clock::Ms;
use crate::error::Error;
use crate::finding::{Finding, Report};
use crate::json::Json;
use crate::provider::StreamEvent;

/// Something that happened in a run.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum RunEvent {
    /// More of the answer.
    Stream { message_id: String, event: StreamEvent },
    /// A model call was offered, with what was done to build it.
    ModelCalled { turn: u32, report: Report },
    /// An answer begins.
    MessageStarted { message_id: String, turn: u32, round: u32 },
    /// A tool is about to run.
    ToolStarted { call_id: String, name: String },
    /// A tool has returned.
    ToolFinished { call_id: String, is_error: bool, result: Json, duration_ms: Ms },
    /// History holds the turn.
    Saved { revision: u64 },
    /// The turn could not be stored; it is in memory, and `save` tries again.
    SaveFailed { error: Error },
    /// The model is asked again at that time.
    Retrying { attempt: u32, at: Ms, error: Error },
    /// Something to know.
    Warning(Finding),
    /// The run is over.
    Finished(Box<RunOutcome>),
}
