//! Results and calls that are stored in another order than they were made: sets aside new results of calls that another
//! writer has answered in the meantime.
//!
//! `History::apply` keeps the first result of a call, so without this the second one would be lost, and its audit row
//! would describe a result that nobody sees.

use crate::clock::Ms;
use crate::finding::FindingCode;
use crate::history::{History, HistoryEntry, ResultEntry, SetAsideItem};
use crate::tool::{InvocationStatus, ToolResult};
use std::collections::BTreeSet;

/// Replaces each result whose call has one in `history` by a set-aside item.
pub(super) fn set_aside_second_results(history: &History, entries: &mut Vec<HistoryEntry>, at: Ms) {
    entries.retain_mut(|entry| {
        let HistoryEntry::Result(second) = entry else { return true };
        if second.is_replacement {
            return is_answered(history, second);
        }
        if second.is_deferral || !is_answered(history, second) {
            return true;
        }
        let Some(result) = second.result.take() else { return false };
        // A run has taken over what another writer stored.
        if is_stored(history, &second.invocation, &result) {
            return false;
        }
        let item = second_result(&second.invocation, result, at);
        if history.set_aside().iter().any(|known| SetAsideItem { at: known.at, ..item.clone() } == *known) {
            // An earlier owner of the run has set it aside.
            return false;
        }
        *entry = HistoryEntry::SetAside(item);
        true
    });
}

fn second_result(invocation: &str, result: ToolResult, at: Ms) -> SetAsideItem {
    let item = SetAsideItem::result(FindingCode::DuplicateResult, result, at);
    SetAsideItem { invocation: Some(invocation.to_owned()), ..item }
}

fn is_stored(history: &History, invocation: &str, result: &ToolResult) -> bool {
    let early = || history.early_result(invocation).and_then(|early| early.result.as_ref());
    let stored = history.invocation(invocation).map_or_else(early, |call| call.result.as_ref());
    stored.is_some_and(|stored| stored.content == result.content && stored.is_error == result.is_error)
}

/// Gives new calls the results that were stored before them (R75). Another result of such a call is set aside.
pub(super) fn complete_answered_calls(history: &History, entries: &mut Vec<HistoryEntry>, at: Ms) {
    let mut second = Vec::new();
    for entry in entries.iter_mut() {
        let HistoryEntry::Invocation(call) = entry else { continue };
        let Some(early) = history.early_result(&call.id).filter(|_| !call.is_withheld()) else { continue };
        if !call.takes_result()
            && let Some(result) = call.result.take().filter(|result| !is_stored(history, &call.id, result))
        {
            second.push(HistoryEntry::SetAside(second_result(&call.id, result, at)));
        }
        call.complete_with(early);
    }
    entries.append(&mut second);
}

/// Sets aside the results that were stored before their calls, if the runs of these calls end and none of the new
/// entries is the call (R75). Returns how many. Of one whose content `persist` withheld nothing is left to set aside.
pub(super) fn set_aside_results_without_calls(
    history: &History,
    ended: &[&str],
    entries: &mut Vec<HistoryEntry>,
    at: Ms,
) -> usize {
    let is_of_ended = |early: &&ResultEntry| early.run.as_deref().is_some_and(|run| ended.contains(&run));
    let mut early = history.early_results().filter(is_of_ended).peekable();
    if early.peek().is_none() {
        return 0;
    }
    let calls = entries.iter().filter_map(|entry| match entry {
        HistoryEntry::Invocation(call) => Some(call.id.clone()),
        _ => None,
    });
    let calls: BTreeSet<String> = calls.collect();
    let before = entries.len();
    entries.extend(early.filter(|early| !calls.contains(&early.invocation)).filter_map(|early| {
        let item = SetAsideItem::result(FindingCode::OrphanResult, early.result.clone()?, at);
        Some(HistoryEntry::SetAside(SetAsideItem { invocation: Some(early.invocation.clone()), ..item }))
    }));
    entries.len() - before
}

/// Sets aside results of stored calls that were erased in the meantime. Returns how many.
pub(super) fn set_aside_results_of_erased_calls(history: &History, entries: &mut Vec<HistoryEntry>, at: Ms) -> usize {
    let calls = entries.iter().filter_map(|entry| match entry {
        HistoryEntry::Invocation(call) => Some(call.id.clone()),
        _ => None,
    });
    let calls: BTreeSet<String> = calls.collect();
    let mut count = 0;
    entries.retain_mut(|entry| {
        let HistoryEntry::Result(late) = entry else { return true };
        // The call of one with a run comes with the end of that run.
        if late.run.is_some() || history.invocation(&late.invocation).is_some() || calls.contains(&late.invocation) {
            return true;
        }
        let Some(result) = late.result.take() else { return false };
        count += 1;
        let item = SetAsideItem::result(FindingCode::OrphanResult, result, at);
        *entry = HistoryEntry::SetAside(SetAsideItem { invocation: Some(late.invocation.clone()), ..item });
        true
    });
    count
}

/// Returns true if the call has a result that no other replaces.
fn is_answered(history: &History, second: &ResultEntry) -> bool {
    let Some(call) = history.invocation(&second.invocation) else {
        return history.early_result(&second.invocation).is_some();
    };
    call.result.is_some() && call.status != InvocationStatus::Interrupted
}
