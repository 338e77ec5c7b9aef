//! Calls that a run goes on without, and the late results that its requests end with (R75).

use super::outcome::OpenCall;
use super::turn::RunData;
use crate::history::{History, stored_results};
use crate::owner::StateOwner;
use crate::tool::ToolInvocation;

/// Returns the calls of a turn whose results come later.
pub(super) fn open_calls(live: &History) -> Vec<OpenCall> {
    let open = live.invocations().iter().filter(|call| call.awaits_result());
    let open_call = |call: &ToolInvocation| OpenCall {
        call_id: call.wire_id().to_owned(),
        invocation: call.id.clone(),
        name: call.name.clone(),
    };
    open.map(open_call).collect()
}

/// Adds to the turn the results of its open calls that other writers have stored.
pub(super) fn take_stored_results(turn: &mut RunData, history: &History) {
    for result in stored_results(turn.live(), history) {
        turn.add_stored_result(result);
    }
}

/// Records which late results end the body that was built.
pub(super) fn prepare_late_results(turn: &mut RunData, history: &History) {
    if !turn.open_parts().is_empty() {
        // The first part lists those of the request that all parts answer.
        return turn.set_late_results(Vec::new());
    }
    let is_held = turn.setup().owner == StateOwner::Caller;
    let unplaced = unplaced_results(turn.live(), Some(history).filter(|_| !is_held));
    turn.set_late_results(unplaced);
}

/// Returns the late results that no message lists, by the ids of their invocations. `stored`: the history, if requests
/// contain it.
fn unplaced_results(live: &History, stored: Option<&History>) -> Vec<String> {
    let placed = live.late_results();
    let of_live = placed.unplaced_ids().into_iter();
    let Some(stored) = stored.map(History::late_results) else { return of_live.collect() };
    // In the order of the request.
    let of_stored = stored.unplaced_ids().into_iter().filter(|id| placed.place(id).is_none());
    of_stored.chain(of_live.filter(|id| stored.get(id).is_none() && stored.place(id).is_none())).collect()
}
