//! `tool_results`: the results of older turns are shortened; calls and messages are kept.

use super::groups::MessageGroups;
use super::shorten::ResultLimit;
use crate::finding::Report;
use crate::replay::request_draft::RequestDraft;

/// Shortens the results before the newest `keep_newest_turns` turns to `max_bytes` bytes each.
pub(super) fn reduce(draft: &mut RequestDraft<'_>, keep_newest_turns: usize, max_bytes: u32, report: &mut Report) {
    let groups = MessageGroups::of(draft);
    let first = groups.turns().saturating_sub(keep_newest_turns);
    let end = groups.list.iter().find(|group| group.turn >= first).map_or(draft.messages.len(), |group| group.start);
    let limit = ResultLimit { max_bytes, reason: "older than the newest turns, and longer than `tool_results` allows" };
    for item in draft.messages.iter_mut().take(end) {
        for call in 0..item.calls.len() {
            limit.apply(item, call, report);
        }
    }
}
