//! Calls that a run goes on without, and the late results that its requests end with (R75).

use super::outcome::OpenCall;
use crate::history::History;
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

/// Returns the late results that no message lists, by the ids of their invocations. `stored`: the history, if requests contain it.
pub(super) fn unplaced_results(live: &History, stored: Option<&History>) -> Vec<String> {
    let placed = live.late_results();
    let mut unplaced = placed.unplaced_ids();
    if let Some(stored) = stored.map(History::late_results) {
        unplaced.retain(|id| stored.get(id).is_none() && stored.place(id).is_none());
        unplaced.extend(stored.unplaced_ids().into_iter().filter(|id| placed.place(id).is_none()));
    }
    unplaced
}
