//! Sets aside new results of calls that another writer has answered in the meantime.
//!
//! `History::apply` keeps the first result of a call, so without this the second one would be lost, and its audit row would describe a
//! result that nobody sees.

use crate::clock::Ms;
use crate::finding::FindingCode;
use crate::history::{History, HistoryEntry, ResultEntry, SetAsideItem};
use crate::tool::InvocationStatus;

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
        *entry = HistoryEntry::SetAside(SetAsideItem {
            reason: FindingCode::DuplicateResult.as_str().to_owned(),
            dialect: result.dialect,
            value: result.content,
            at,
        });
        true
    });
}

/// Returns true if the call has a result that no other replaces.
fn is_answered(history: &History, second: &ResultEntry) -> bool {
    let call = history.invocation(&second.invocation);
    call.is_some_and(|call| call.result.is_some() && call.status != InvocationStatus::Interrupted)
}
