//! Approvals (R29): whether a person must approve a tool call before its tool runs, and what a rejection tells the
//! model.

use crate::json::Json;
use crate::replay::Callback;
use crate::synthetic_result::RERUN_REJECTED;
use crate::tool::InvocationStatus;
use std::collections::{BTreeMap, BTreeSet};

/// A question to the application: does this call need an approval?
#[derive(Clone, Debug, PartialEq)]
pub struct ApprovalQuestion {
    /// The function to call.
    pub callback: Callback,
    /// The id of the invocation.
    pub invocation: String,
    /// The call's arguments, as its tool gets them.
    pub arguments: Json,
}

/// The application's reply: whether a call needs an approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApprovalReply {
    /// It does.
    Needed,
    /// Its tool may run.
    NotNeeded,
    /// The function threw or returned something else: the call needs an approval.
    Failed(String),
}

/// A person's decision about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApprovalDecision {
    /// Its tool runs.
    Approve,
    /// Its tool does not run, and the model gets an error result with this reason.
    Reject(Option<String>),
}

/// A call that waits for an approval.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct WaitingCall {
    /// The id of the invocation, which no other call has.
    pub invocation: String,
    pub call_id: String,
    pub name: String,
    /// As its tool will get them.
    pub arguments: Json,
}

/// What the journal has of the calls of a resumed run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResumedCalls {
    /// The started calls, with the number of attempts.
    pub attempts: BTreeMap<String, u32>,
    /// The calls that were approved and not started since.
    pub approved: BTreeSet<String>,
    /// True if another run closed the calls at the service, so that their results cannot be sent.
    pub are_closed_elsewhere: bool,
}

/// Returns the status and the result of a rejected call. `was_started`: an earlier attempt may have run.
pub(super) fn rejection(reason: Option<&str>, was_started: bool) -> (InvocationStatus, String) {
    let (status, text) = if was_started {
        (InvocationStatus::Interrupted, RERUN_REJECTED)
    } else {
        (InvocationStatus::Rejected, "Error: the call was rejected, so the tool did not run")
    };
    let text = match reason.filter(|reason| !reason.is_empty()) {
        Some(reason) => format!("{text}: {reason}"),
        None => format!("{text}."),
    };
    (status, text)
}
