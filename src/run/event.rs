//! The events of a run.

use super::outcome::RunOutcome;
use crate::clock::Ms;
use crate::error::Error;
use crate::finding::{Finding, Report};
use crate::json::Json;
use crate::provider::StreamEvent;
use crate::render::PrefixReuse;

/// An event of a run.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum RunEvent {
    /// A part of the answer was received.
    Stream { message_id: String, event: StreamEvent },
    /// A model call was offered, with the report of building it.
    ModelCalled { turn: u32, report: Report, prefix: PrefixReuse },
    /// An answer begins.
    MessageStarted { message_id: String, turn: u32, round: u32 },
    /// A tool is about to run.
    ToolStarted { call_id: String, name: String },
    /// A tool has returned.
    ToolFinished { call_id: String, is_error: bool, result: Json, duration_ms: Ms },
    /// The run goes on without the result of a call, which comes later.
    ToolPending { call_id: String, invocation: String, name: String },
    /// A call waits for an approval. A resumed run emits it again.
    ApprovalNeeded { call_id: String, invocation: String, name: String, arguments: Json },
    /// History holds the turn.
    Saved { revision: u64 },
    /// A save failed. Its content is in memory, and `save` repeats it.
    SaveFailed { error: Error },
    /// The model call will be repeated at time `at`.
    Retrying { attempt: u32, at: Ms, error: Error },
    /// A finding of the run.
    Warning(Finding),
    /// The run is over.
    Finished(Box<RunOutcome>),
}
