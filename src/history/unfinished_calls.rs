//! The open calls of an unfinished run's turn, which history does not have (R75).

use super::entry::ResultEntry;
use super::fold::History;
use super::open_call_index::StoredCalls;
use super::open_calls::Selection;
use crate::error::{Error, ErrorCode, Result};
use crate::tool::{InvocationStatus, ToolInvocation};

/// Finds the open call of the turn of an unfinished run that an answer names, by the id of its invocation or by a call id, of which the newest open one
/// counts. Returns the invocation; `None` if the turn has no such call, or if `stored`, the history, has it.
///
/// # Errors
/// `wrong_state` if the call is answered, or its tool was not started.
pub fn find_unfinished_call<'t>(turn: &'t History, stored: &History, name: &str) -> Result<Option<&'t ToolInvocation>> {
    let is_unstored = |call: &ToolInvocation| stored.invocation(&call.id).is_none();
    let has_begun = |call: &ToolInvocation| call.awaits_result() || call.started_at.is_some();
    let is_open = |call: &ToolInvocation| {
        is_unstored(call) && call.takes_result() && has_begun(call) && stored.early_result(&call.id).is_none()
    };
    let select = |call: &ToolInvocation| if is_open(call) { Selection::Take } else { Selection::Discard };
    let named = turn.invocation(name).filter(|call| is_open(call));
    let open = named.or_else(|| StoredCalls::default().take_newest(turn.open_call_index(), name, &select));
    if open.is_some() {
        return Ok(open);
    }
    let is_named = |call: &&ToolInvocation| call.id == name || call.call_id == name;
    match turn.invocations().iter().rev().filter(is_named).find(|call| is_unstored(call)) {
        None => Ok(None),
        Some(call) if call.takes_result() && stored.early_result(&call.id).is_none() => {
            let sentence = "the tool of this call was not started yet; answer the call when its run has started it";
            Err(Error::new(ErrorCode::WrongState, sentence))
        }
        Some(_) => Err(Error::new(
            ErrorCode::WrongState,
            format!("the call \"{name}\" has its result already, or its content is withheld from the store"),
        )),
    }
}

/// Returns the result that history has of a call, also if it has only the result.
#[must_use]
pub fn stored_result(history: &History, invocation: &str) -> Option<ResultEntry> {
    let Some(call) = history.invocation(invocation) else { return history.early_result(invocation).cloned() };
    let is_answered = matches!(call.status, InvocationStatus::Ok | InvocationStatus::Error);
    is_answered.then(|| ResultEntry {
        invocation: call.id.clone(),
        status: call.status,
        started_at: call.started_at,
        finished_at: call.finished_at,
        freshness: call.append_freshness,
        result: call.result.clone(),
        is_replacement: false,
        is_deferral: false,
    })
}

/// Returns the results that history has of the calls of a turn that wait for one.
#[must_use]
pub fn stored_results(turn: &History, history: &History) -> Vec<ResultEntry> {
    let waiting = turn.open_calls().filter(|call| call.awaits_result());
    waiting.filter_map(|call| stored_result(history, &call.id)).collect()
}
