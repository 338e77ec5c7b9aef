//! The open call that an answer names, in history or in the turn of an unfinished run, which history does not have
//! (R75).

use super::entry::ResultEntry;
use super::fold::History;
use super::open_call_index::StoredCalls;
use super::open_calls::Selection;
use crate::tool::{InvocationStatus, ToolInvocation};

/// What an answer may do with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answerable<R> {
    /// It is answered.
    Yes,
    /// It is not, for this reason.
    No(R),
    /// It is another one's to judge.
    Unseen,
}

/// The outcome of a search for the call of an answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CallSearch<'h, R> {
    /// The call that is answered.
    Open(&'h ToolInvocation),
    /// There are calls of this name, and none is answered: why the newest one is not.
    Closed(R),
    /// There is no call of this name.
    None,
}

/// Finds the call that an answer names, by the id of its invocation or by a call id, of which the newest answerable one
/// counts.
pub fn find_call<'h, R>(
    history: &'h History,
    name: &str,
    judge: &dyn Fn(&ToolInvocation) -> Answerable<R>,
) -> CallSearch<'h, R> {
    let is_open = |call: &ToolInvocation| matches!(judge(call), Answerable::Yes);
    let select = |call: &ToolInvocation| if is_open(call) { Selection::Take } else { Selection::Discard };
    let by_id = history.invocation(name);
    let open = by_id.filter(|call| is_open(call));
    if let Some(call) = open.or_else(|| StoredCalls::default().take_newest(history.open_call_index(), name, &select)) {
        return CallSearch::Open(call);
    }
    let has_uses = history.call_id_uses(name) > 0;
    let by_call_id = history.invocations().iter().rev().filter(|call| has_uses && call.call_id == name);
    let mut refusals = by_id.into_iter().chain(by_call_id).filter_map(|call| match judge(call) {
        Answerable::No(reason) => Some(reason),
        Answerable::Yes | Answerable::Unseen => None,
    });
    refusals.next().map_or(CallSearch::None, CallSearch::Closed)
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
        is_redacted: call.has_redacted_result,
        ..ResultEntry::default()
    })
}

/// Returns the results that history has of the calls of a turn that wait for one.
#[must_use]
pub fn stored_results(turn: &History, history: &History) -> Vec<ResultEntry> {
    let waiting = turn.open_calls().filter(|call| call.awaits_result());
    waiting.filter_map(|call| stored_result(history, &call.id)).collect()
}
