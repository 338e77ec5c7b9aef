//! The events of a run, with their JSON as the TypeScript types declare it.

use super::outcome::{RunOutcome, write_error, write_report};
use crate::clock::Ms;
use crate::error::Error;
use crate::finding::{Finding, Report};
use crate::json::{Json, ObjectWriter};
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

impl RunEvent {
    /// Writes the members of a `RunEvent`.
    pub fn write(&self, out: &mut ObjectWriter<'_>) {
        match self {
            Self::Stream { message_id, event } => {
                event.write(out);
                out.text("messageId", message_id);
            }
            Self::ModelCalled { turn, report, prefix } => {
                out.text("type", "model_called").number("turn", u64::from(*turn));
                write_report(out, report);
                out.object("prefix", |out| prefix.write(out));
            }
            Self::MessageStarted { message_id, turn, round } => {
                out.text("type", "message_started")
                    .text("messageId", message_id)
                    .number("turn", u64::from(*turn))
                    .number("round", u64::from(*round));
            }
            Self::ToolStarted { call_id, name } => {
                out.text("type", "tool_started").text("callId", call_id).text("name", name);
            }
            Self::ToolFinished { call_id, is_error, result, duration_ms } => {
                out.text("type", "tool_finished")
                    .text("callId", call_id)
                    .bool("isError", *is_error)
                    .json("result", result.view())
                    .number("durationMs", *duration_ms);
            }
            Self::ToolPending { call_id, invocation, name } => {
                out.text("type", "tool_pending")
                    .text("callId", call_id)
                    .text("invocationId", invocation)
                    .text("name", name);
            }
            Self::ApprovalNeeded { call_id, invocation, name, arguments } => {
                out.text("type", "approval_needed")
                    .text("callId", call_id)
                    .text("invocationId", invocation)
                    .text("name", name)
                    .json("arguments", arguments.view());
            }
            Self::Saved { revision } => {
                out.text("type", "saved").number("revision", *revision);
            }
            Self::SaveFailed { error } => write_error(out.text("type", "save_failed"), "error", error),
            Self::Retrying { attempt, at, error } => {
                out.text("type", "retrying").number("attempt", u64::from(*attempt)).number("at", *at);
                write_error(out, "error", error);
            }
            Self::Warning(finding) => {
                out.text("type", "warning").object("finding", |out| finding.write(out));
            }
            Self::Finished(outcome) => {
                out.text("type", "finished").object("result", |out| outcome.write(out));
            }
        }
    }
}
