//! Shortened results: the beginning of a result, and a note that the rest is missing.

use crate::finding::{Action, Finding, FindingCode, Report};
use crate::json::JsonStr;
use crate::replay::request_draft::{DraftCall, DraftMessage, DraftResult};
use crate::synthetic_result::SHORTENED;

/// The number of bytes of a result that are sent, and the reason that the report gives for the limit.
pub(super) struct ResultLimit {
    pub max_bytes: u32,
    pub reason: &'static str,
}

impl ResultLimit {
    /// Shortens the result of the call at index `call` of a message, if it is longer. Returns true if it was.
    pub fn apply(&self, item: &mut DraftMessage<'_>, call: usize, report: &mut Report) -> bool {
        // A limit below the length of the note leaves no room for the result.
        let bytes = self.max_bytes.max(u32::try_from(SHORTENED.len()).unwrap_or(u32::MAX));
        let Some(call) = item.calls.get_mut(call) else { return false };
        if result_bytes(call) <= usize::try_from(bytes).unwrap_or(usize::MAX) {
            return false;
        }
        let (Some(DraftResult::Stored(result)) | Some(DraftResult::Cut { result, .. })) = call.result else {
            return false;
        };
        call.result = Some(DraftResult::Cut { result, bytes });
        let finding = Finding::info(FindingCode::Reduced, self.reason)
            .of_message(&item.message.id)
            .of_call(&call.invocation.call_id);
        report.push(finding.with_action(Action::Rewritten));
        true
    }
}

/// Returns the number of bytes of a call's result that are sent, as JSON.
pub(super) fn result_bytes(call: &DraftCall<'_>) -> usize {
    match call.result {
        Some(DraftResult::Stored(result)) => result.content.as_str().len(),
        Some(DraftResult::Cut { bytes, .. }) => usize::try_from(bytes).unwrap_or(usize::MAX),
        Some(DraftResult::Closing(text) | DraftResult::Placeholder(text)) => text.len(),
        None => 0,
    }
}

/// Returns the beginning of the concatenated texts, followed by [`SHORTENED`]: `bytes` bytes in all, or less.
#[must_use]
pub fn shortened(texts: &[JsonStr], bytes: u32) -> String {
    let room = usize::try_from(bytes).unwrap_or(usize::MAX).saturating_sub(SHORTENED.len());
    let mut out = String::new();
    for text in texts {
        let text = text.decode();
        let end = text.floor_char_boundary(room - out.len());
        out.push_str(text.get(..end).unwrap_or(""));
        if end < text.len() {
            break;
        }
    }
    out.push_str(SHORTENED);
    out
}
