//! `message_count`: keeps the newest messages. A round with its results counts as one message; system messages are kept
//! and not counted.

use super::groups::MessageGroups;
use crate::finding::{Action, Finding, FindingCode, Report};
use crate::replay::request_draft::RequestDraft;

const OLDER: &str = "older than the newest messages that `message_count` keeps";
const ROUND: &str = "`message_count` keeps no tool calls of earlier turns";
const SYSTEM: &str = "`message_count` keeps the first system message only";

/// The settings of the reducer.
pub(super) struct MessageCountLimit {
    pub count: usize,
    /// False drops the calls of earlier turns.
    pub keep_tools: bool,
    /// True drops all system messages but the first.
    pub first_system_only: bool,
}

impl MessageCountLimit {
    /// Reduces a draft.
    pub fn reduce(&self, draft: &mut RequestDraft<'_>, report: &mut Report) {
        if !self.keep_tools {
            drop_calls(draft, report);
        }
        if self.first_system_only {
            let mut groups = MessageGroups::of(draft);
            let first = groups.list.iter().position(|group| group.is_system);
            for (at, keep) in groups.keep.iter_mut().enumerate() {
                *keep = first == Some(at) || !groups.list.get(at).is_some_and(|group| group.is_system);
            }
            groups.apply(draft, SYSTEM, report);
        }
        let mut groups = MessageGroups::of(draft);
        let Some(oldest) = groups.counted().rev().nth(self.count.max(1) - 1).map(|(at, _)| at) else { return };
        groups.drop_before(oldest);
        groups.apply(draft, OLDER, report);
    }
}

/// Drops the calls of earlier turns and keeps the text beside them. The running turn keeps its calls: the model would
/// repeat them.
fn drop_calls(draft: &mut RequestDraft<'_>, report: &mut Report) {
    let groups = MessageGroups::of(draft);
    let running = groups.newest_user.or(groups.newest);
    let end = running.and_then(|at| groups.list.get(at)).map_or(0, |group| group.start);
    for item in draft.messages.iter_mut().take(end) {
        for call in item.calls.drain(..) {
            let finding = Finding::info(FindingCode::Reduced, ROUND).of_message(&item.message.id);
            report.push(finding.of_call(&call.invocation.call_id).with_action(Action::Dropped));
        }
    }
    // A message with nothing but calls is empty now.
    let mut at = 0;
    draft.retain(&mut |item| {
        at += 1;
        at > end || item.is_sendable(true)
    });
}
