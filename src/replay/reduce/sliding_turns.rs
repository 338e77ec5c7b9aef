//! `sliding_turns`: keeps the newest turns, each as a whole, and all system messages.

use super::groups::MessageGroups;
use crate::finding::Report;
use crate::replay::request_draft::RequestDraft;

/// Drops all but the newest `turns` turns.
pub(super) fn reduce(draft: &mut RequestDraft<'_>, turns: usize, report: &mut Report) {
    let mut groups = MessageGroups::of(draft);
    let first = groups.turns().saturating_sub(turns.max(1));
    groups.drop_before(groups.list.iter().take_while(|group| group.turn < first).count());
    groups.apply(draft, "older than the newest turns that `sliding_turns` keeps", report);
}
