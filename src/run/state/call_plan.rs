//! What happens to an open call.

use crate::history::ResultEntry;
use crate::json::{Json, JsonKind, JsonRef};
use crate::run::approval::{ApprovalQuestion, ResumedCalls};
use crate::run::setup::{OnInterrupted, RunSetup};
use crate::run::turn::RunData;
use crate::synthetic_result::INTERRUPTED;
use crate::tool::{Arguments, InvocationStatus, ToolInvocation};

/// What happens to an open call.
pub(super) enum CallPlan {
    /// Its tool runs, with these arguments.
    Run { arguments: Json },
    /// It waits for an approval.
    AwaitApproval { arguments: Json },
    /// The application is asked whether it needs an approval.
    AskApplication(ApprovalQuestion),
    /// It was answered while nobody had the run (R75).
    Answered(ResultEntry),
    /// Its result is known without running a tool.
    Close { status: InvocationStatus, text: String },
}

impl CallPlan {
    /// Decides about a call. `resumed` is what the journal of a resumed run has of the calls.
    pub fn new(call: &ToolInvocation, turn: &RunData, resumed: &ResumedCalls) -> Self {
        let setup = turn.setup();
        let tool_settings = setup.tool_settings.get(&call.name).copied();
        let interrupted = || Self::Close { status: InvocationStatus::Interrupted, text: INTERRUPTED.to_owned() };
        // The stored arguments are not those of the model (R12).
        if call.redacted {
            return interrupted();
        }
        let is_approved = resumed.approved.contains(&call.id);
        let awaits_approval = turn.live().awaits_approval(&call.id);
        if resumed.are_closed_elsewhere && !awaits_approval {
            return interrupted();
        }
        let was_interrupted = resumed.attempts.contains_key(&call.id) && !is_approved && !awaits_approval;
        let on_interrupted = tool_settings.unwrap_or_default().on_interrupted;
        if was_interrupted && on_interrupted == OnInterrupted::Report {
            return interrupted();
        }
        let Some(tool_settings) = tool_settings else {
            return Self::Close { status: InvocationStatus::Error, text: unknown_tool(call, setup) };
        };
        let arguments = match parse_arguments(call) {
            Ok(arguments) => arguments,
            Err(text) => return Self::Close { status: InvocationStatus::Error, text },
        };
        let asks_again = was_interrupted && on_interrupted == OnInterrupted::Ask;
        // A start ends the approval, so an interrupted call needs another one.
        if awaits_approval || asks_again || !is_approved && tool_settings.needs_approval {
            return Self::AwaitApproval { arguments };
        }
        match setup.approval_callbacks.get(&call.name).filter(|_| !is_approved) {
            Some(callback) => {
                let (callback, invocation) = (callback.clone(), call.id.clone());
                Self::AskApplication(ApprovalQuestion { callback, invocation, arguments })
            }
            None => Self::Run { arguments },
        }
    }
}

fn unknown_tool(call: &ToolInvocation, setup: &RunSetup) -> String {
    let names: Vec<&str> = setup.tool_settings.keys().map(String::as_str).collect();
    let names = if names.is_empty() { "none".into() } else { names.join(", ") };
    format!("Error: there is no tool \"{}\". The tools are: {names}.", call.name)
}

/// Returns the arguments that the call's tool gets, or the error result of a call whose arguments are not a JSON
/// object.
pub(super) fn parse_arguments(call: &ToolInvocation) -> std::result::Result<Json, String> {
    let text = call.arguments.text();
    match JsonRef::parse(if text.trim().is_empty() { "{}" } else { &text }) {
        Ok(value) if value.is_object() || value.is_null() => Ok(value.to_owned()),
        // The input of a custom tool is a string.
        Ok(value) if value.kind() == JsonKind::String && matches!(call.arguments, Arguments::Value(_)) => {
            Ok(value.to_owned())
        }
        Ok(_) => Err("Error: the arguments are not a JSON object. Call the tool again with a JSON object.".into()),
        Err(invalid) => Err(format!(
            "Error: the arguments are not valid JSON (at byte {}). Call again with a JSON object.",
            invalid.at
        )),
    }
}
