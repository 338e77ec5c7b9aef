//! What is old is summed up by the application; the summary stands in for it. It is made once and kept until the history has
//! grown by the threshold again; then it is summed up with what came since.

use super::groups::MessageGroups;
use super::pending::{Callback, PendingQuestion, QuestionKind, ReducerQuestion};
use super::{ReducerContext, dropped};
use crate::finding::{Action, Finding, FindingCode, Report};
use crate::message::{Message, Role};
use crate::replay::draft::{Draft, DraftMessage, DraftOrigin};
use crate::replay::pairing;

/// A summary, and what it stands in for.
#[derive(Clone, Debug)]
pub(super) struct Summary {
    /// The function that made it, and its reducer's place.
    pub by: (u32, usize),
    /// The last message that it covers; all before it are covered, too.
    last: String,
    message: Message,
}

impl Summary {
    pub fn new(ask: &ReducerQuestion, text: &str) -> Self {
        let text = format!("Summary of the conversation before this:\n{text}");
        Self { by: ask.asker(), last: ask.last.clone(), message: Message::made(ask.role, &text) }
    }
}

pub(super) fn reduce<'h>(
    draft: &mut Draft<'h>,
    target: usize,
    threshold: usize,
    callback: &Callback,
    context: &ReducerContext<'h, '_>,
    report: &mut Report,
) -> Result<Option<String>, Box<PendingQuestion<'h>>> {
    if let Some(kept) = context.memory.summaries.iter().find(|summary| summary.by == (callback.id, context.place)) {
        stand_in(draft, kept, report);
    }
    let groups = MessageGroups::of(draft);
    // What was said since the last summary.
    let mut spoken = Vec::new();
    for (at, group) in groups.spoken() {
        if group.summary {
            spoken.clear();
        } else {
            spoken.push(at);
        }
    }
    if spoken.len() <= target.saturating_add(threshold) {
        return Ok(None);
    }
    if let Some(why) = context.progress.failure(context.place) {
        return Ok(Some(why));
    }
    let Some(cut) = cut_at(&groups, &spoken, target, threshold) else { return Ok(None) };
    if context.progress.told(context.place).is_some() {
        return Ok(None);
    }
    let group = |at: usize| groups.list.get(at);
    let end = group(cut).map_or(0, |group| group.start);
    let mut covered = Draft::default();
    for item in draft.messages.iter().take(end).filter(|item| !is_system(item)) {
        covered.messages.push(item.clone());
    }
    // What has no id of its own would not be known again.
    while covered.messages.last().is_some_and(|item| item.message.id.is_empty()) {
        covered.messages.pop();
    }
    let Some(last) = covered.messages.last() else { return Ok(None) };
    let mut ask = ReducerQuestion::new(context.place, callback, QuestionKind::Summarize(Vec::new()), context.history);
    ask.last = last.message.id.clone();
    // Before the user's words it is the assistant who sums up; before an answer, the user.
    ask.role = if group(cut).is_some_and(|group| group.user) { Role::Assistant } else { Role::User };
    pairing::pairing(&mut covered, context.policy, &mut Report::new());
    Err(ask.pending(Some(covered)))
}

/// The first group that stays: the newest `target` do, and then back to where the user speaks, if that is not too far. The
/// user's newest message stays, and what follows it.
fn cut_at(groups: &MessageGroups, spoken: &[usize], target: usize, threshold: usize) -> Option<usize> {
    let usual = spoken.len().saturating_sub(target.max(1));
    let newest = spoken.iter().position(|at| groups.newest_user == Some(*at)).unwrap_or(usize::MAX);
    let usual = usual.min(newest);
    let begins = |place: &usize| spoken.get(*place).and_then(|at| groups.list.get(*at)).is_some_and(|group| group.user);
    let place =
        (usual.saturating_sub(threshold)..=usual).rev().find(begins).filter(|place| *place > 0).unwrap_or(usual);
    (place > 0).then(|| spoken.get(place).copied()).flatten()
}

fn is_system(item: &DraftMessage<'_>) -> bool {
    matches!(item.message.role, Role::System | Role::Developer)
}

/// Puts a summary in the place of what it covers. Nothing where that is not here any more.
fn stand_in<'h>(draft: &mut Draft<'h>, summary: &'h Summary, report: &mut Report) {
    let Some(end) = draft.messages.iter().position(|item| item.message.id == summary.last).map(|at| at + 1) else {
        return;
    };
    let mut place = None;
    let mut at = 0;
    let mut kept = 0;
    draft.retain(&mut |item| {
        let goes = at < end && !is_system(item);
        at += 1;
        if goes {
            place.get_or_insert(kept);
            if item.origin != DraftOrigin::Summary {
                report.push(dropped(item, "older than what `summarize` keeps; its summary stands in for it"));
            }
        } else {
            kept += 1;
        }
        !goes
    });
    if let Some(place) = place {
        let made = DraftMessage {
            message: &summary.message,
            origin: DraftOrigin::Summary,
            calls: Vec::new(),
            results_go_on: false,
        };
        draft.messages.insert(place, made);
        report
            .push(Finding::info(FindingCode::Reduced, "older messages are summed up").with_action(Action::Synthesized));
    }
}
