//! The status and the outcome of a run, with its JSON as the TypeScript types declare it.

use crate::error::Error;
use crate::finding::{Finding, Report};
use crate::history::write_usage;
use crate::json::{Json, ObjectWriter};
use crate::message::Usage;
use crate::store::branch_name;

/// The status of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum RunStatus {
    Running,
    /// No effect is open, and calls wait for an approval. The run has no holder meanwhile.
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
    /// The number of the branch that it continued.
    pub branch: u64,
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

impl RunOutcome {
    /// Writes the members of a `RunResult`.
    pub fn write(&self, out: &mut ObjectWriter<'_>) {
        out.text("status", self.status.as_str());
        match &self.error {
            Some(error) => write_error(out, "error", error),
            None => {
                out.raw("error", "null");
            }
        }
        out.token("text", &self.text).number("turns", u64::from(self.model_calls));
        write_usage(out, "usage", self.usage);
        write_report(out, &self.report);
        out.number("revision", self.revision)
            .text("branch", &branch_name(self.branch))
            .bool("saved", self.saved)
            .array("messageIds", |ids| {
                for id in &self.message_ids {
                    ids.text(id);
                }
            });
        out.text_or_null("conversationId", self.conversation_id.as_deref())
            .text_or_null("responseId", self.response_id.as_deref())
            .array("openCalls", |calls| {
                for OpenCall { call_id, invocation, name } in &self.open_calls {
                    calls.object(|out| {
                        _ = out.text("callId", call_id).text("invocationId", invocation).text("name", name)
                    });
                }
            })
            .raw("replay", self.replay.as_ref().map_or("null", Json::as_str));
    }
}

/// Writes an error as a member.
pub(super) fn write_error(out: &mut ObjectWriter<'_>, key: &str, error: &Error) {
    out.object(key, |out| {
        out.text("code", error.code.as_str()).text("message", &error.message);
        if let Some(details) = &error.details {
            out.json("details", details.view());
        }
    });
}

/// Writes the member `report`.
pub(super) fn write_report(out: &mut ObjectWriter<'_>, report: &[Finding]) {
    out.array("report", |items| {
        for finding in report {
            items.object(|out| finding.write(out));
        }
    });
}
