//! The newest messages stay. A round with its results counts as one message; system messages stay and count for nothing.

use super::groups::MessageGroups;
use crate::finding::{Action, Finding, FindingCode, Report};
use crate::replay::draft::Draft;

const OLDER: &str = "older than the newest messages that `message_count` keeps";
const ROUND: &str = "`message_count` keeps no tool calls of earlier turns";
const SYSTEM: &str = "`message_count` keeps the first system message only";

pub(super) fn reduce(
    draft: &mut Draft<'_>,
    count: usize,
    keep_tools: bool,
    first_system_only: bool,
    report: &mut Report,
) {
    if !keep_tools {
        drop_calls(draft, report);
    }
    if first_system_only {
        let mut groups = MessageGroups::of(draft);
        let first = groups.list.iter().position(|group| group.system);
        for (at, keep) in groups.keep.iter_mut().enumerate() {
            *keep = first == Some(at) || !groups.list.get(at).is_some_and(|group| group.system);
        }
        groups.apply(draft, SYSTEM, report);
    }
    let mut groups = MessageGroups::of(draft);
    let Some(oldest) = groups.spoken().rev().nth(count.max(1) - 1).map(|(at, _)| at) else { return };
    groups.keep_from(oldest);
    groups.apply(draft, OLDER, report);
}

/// Takes the calls of earlier turns out and leaves the words beside them. Those of the running turn stay: the model would ask
/// for the same again.
fn drop_calls(draft: &mut Draft<'_>, report: &mut Report) {
    let groups = MessageGroups::of(draft);
    let running = groups.newest_user.or(groups.newest);
    let end = running.and_then(|at| groups.list.get(at)).map_or(0, |group| group.start);
    for item in draft.messages.iter_mut().take(end) {
        for call in item.calls.drain(..) {
            let finding = Finding::info(FindingCode::Reduced, ROUND).of_message(&item.message.id);
            report.push(finding.of_call(&call.invocation.call_id).with_action(Action::Dropped));
        }
    }
    // What had nothing but calls goes with them.
    let mut at = 0;
    draft.retain(&mut |item| {
        at += 1;
        at > end || item.says(true)
    });
}
