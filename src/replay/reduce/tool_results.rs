//! Results of older turns are cut; calls and messages stay.

use super::CUT_NOTE;
use super::groups::MessageGroups;
use crate::finding::{Action, Finding, FindingCode, Report};
use crate::json::JsonStr;
use crate::replay::draft::{Draft, DraftCall, DraftMessage, DraftResult};

pub(super) fn reduce(draft: &mut Draft<'_>, keep_newest_turns: usize, max_bytes: u32, report: &mut Report) {
    let groups = MessageGroups::of(draft);
    let first = groups.turns().saturating_sub(keep_newest_turns);
    let end = groups.list.iter().find(|group| group.turn >= first).map_or(draft.messages.len(), |group| group.start);
    for item in draft.messages.iter_mut().take(end) {
        for call in 0..item.calls.len() {
            cut(item, call, max_bytes, "older than the newest turns, and longer than `tool_results` allows", report);
        }
    }
}

/// What of a result's JSON is shown, in bytes.
pub(super) fn shown_bytes(call: &DraftCall<'_>) -> usize {
    match call.result {
        Some(DraftResult::Stored(result)) => result.content.as_str().len(),
        Some(DraftResult::Cut { bytes, .. }) => usize::try_from(bytes).unwrap_or(usize::MAX),
        Some(DraftResult::Closing(text) | DraftResult::Placeholder(text)) => text.len(),
        None => 0,
    }
}

/// Cuts a result that is longer; true when it was.
pub(super) fn cut(
    item: &mut DraftMessage<'_>,
    call: usize,
    max_bytes: u32,
    why: &'static str,
    report: &mut Report,
) -> bool {
    // Shorter than its note it would say nothing.
    let bytes = max_bytes.max(u32::try_from(CUT_NOTE.len()).unwrap_or(u32::MAX));
    let Some(call) = item.calls.get_mut(call) else { return false };
    if shown_bytes(call) <= usize::try_from(bytes).unwrap_or(usize::MAX) {
        return false;
    }
    let (Some(DraftResult::Stored(result)) | Some(DraftResult::Cut { result, .. })) = call.result else { return false };
    call.result = Some(DraftResult::Cut { result, bytes });
    let finding =
        Finding::info(FindingCode::Reduced, why).of_message(&item.message.id).of_call(&call.invocation.call_id);
    report.push(finding.with_action(Action::Rewritten));
    true
}

/// The beginning of these texts, in so many bytes, and a note that it is one.
#[must_use]
pub fn shortened(texts: &[JsonStr], bytes: u32) -> String {
    let room = usize::try_from(bytes).unwrap_or(usize::MAX).saturating_sub(CUT_NOTE.len());
    let mut out = String::new();
    for text in texts {
        let text = text.decode();
        let end = text.floor_char_boundary(room - out.len());
        out.push_str(text.get(..end).unwrap_or(""));
        if end < text.len() {
            break;
        }
    }
    out.push_str(CUT_NOTE);
    out
}
