//! `summarize`: the application summarizes old messages, and the summary is sent instead of them. It is kept until the
//! history has grown by the threshold; then the summary is summarized with the messages after it.

use super::context::{ReducerContext, dropped};
use super::groups::MessageGroups;
use super::question::{PendingQuestion, QuestionKind, ReducerQuestion};
use super::reducer::{Callback, Reducer};
use crate::finding::{Action, Finding, FindingCode, Report};
use crate::history::ActiveSummary;
use crate::id::{hash, hash_on};
use crate::message::{Message, Role};
use crate::replay::pairing::pair_results;
use crate::replay::request_draft::{DraftMessage, DraftOrigin, RequestDraft};

/// The settings of the reducer.
pub(super) struct Summarizer<'r> {
    /// The number of the newest messages that are kept.
    pub target: usize,
    /// The number of messages over `target` at which the next summary is made.
    pub threshold: usize,
    pub callback: &'r Callback,
}

impl Summarizer<'_> {
    /// Reduces a draft. Returns the reason why the reducer was skipped, if its callback failed.
    ///
    /// # Errors
    /// A question if a summary must be written first.
    pub fn reduce<'h>(
        &self,
        draft: &mut RequestDraft<'h>,
        context: &ReducerContext<'h, '_>,
        report: &mut Report,
    ) -> Result<Option<String>, Box<PendingQuestion<'h>>> {
        let input = context.input;
        let is_shared = is_shared(context);
        let reducer_hash = self.reducer_hash(context);
        let cached = input.cache.summary(reducer_hash).filter(|summary| summary.applies_to(input.history));
        if let Some(summary) = cached {
            insert_summary(draft, &summary.last_message_id, &summary.message, report);
        } else if !is_shared {
            // What a function removed must not come back with the summary of another request.
        } else if let Some(ActiveSummary { stored, .. }) = input.history.summary_of(Some(reducer_hash)) {
            insert_summary(draft, &stored.coverage.last_message_id, &stored.message, report);
        }
        let groups = MessageGroups::of(draft);
        let unsummarized = groups_after_summary(&groups);
        if unsummarized.len() <= self.target.saturating_add(self.threshold) {
            return Ok(None);
        }
        if let Some(reason) = input.replies.failure(context.source()) {
            return Ok(Some(reason));
        }
        let Some(first_kept) = self.first_kept(&groups, &unsummarized) else { return Ok(None) };
        if input.replies.get(context.source()).is_some() {
            return Ok(None);
        }
        let first_kept = groups.list.get(first_kept);
        let mut covered = covered_messages(draft, first_kept.map_or(0, |group| group.start));
        let Some(last) = covered.messages.last() else { return Ok(None) };
        let kind = QuestionKind::Summarize(Vec::new());
        let mut question = ReducerQuestion::new(context.source(), self.callback, kind, input.history);
        question.last_message_id = last.message.id.clone();
        question.reducer_hash = reducer_hash;
        let last_stored = input.history.message_index(&question.last_message_id);
        question.coverage = last_stored.and_then(|index| input.history.coverage(index + 1));
        question.is_stored = is_shared;
        // Roles alternate: the summary is the assistant's before a message of the user, and the user's before an
        // answer.
        question.role = if first_kept.is_some_and(|group| group.is_user) { Role::Assistant } else { Role::User };
        pair_results(&mut covered, input, &mut Report::new());
        Err(question.pending(Some(covered)))
    }

    /// Returns the hash that identifies the reducer across reloads, since functions cannot be stored: of its place,
    /// `target` and `threshold`, and of what changes the messages before it.
    fn reducer_hash(&self, context: &ReducerContext<'_, '_>) -> u64 {
        let settings = [context.reducer, self.target, self.threshold];
        let own =
            settings.into_iter().fold(hash(b"summarize"), |sum, number| hash_on(sum, &(number as u64).to_le_bytes()));
        let earlier =
            context.input.policy.all_reducers().take(context.reducer).fold(own, |sum, reducer| reducer.hash_on(sum));
        let filters = context.input.handoffs.iter().filter_map(|handoff| handoff.filter.as_ref());
        filters.fold(earlier, |sum, filter| hash_on(sum, &filter.id.to_le_bytes()))
    }

    /// Returns the index of the first group that is kept: the newest `target` groups are, and those before them back to
    /// a message of the user, at most `threshold` more. The user's newest message is kept, with all after it.
    fn first_kept(&self, groups: &MessageGroups, unsummarized: &[usize]) -> Option<usize> {
        let newest_user = unsummarized.iter().position(|at| groups.newest_user == Some(*at)).unwrap_or(usize::MAX);
        let latest = unsummarized.len().saturating_sub(self.target.max(1)).min(newest_user);
        let is_user = |index: &usize| {
            unsummarized.get(*index).and_then(|at| groups.list.get(*at)).is_some_and(|group| group.is_user)
        };
        let index = (latest.saturating_sub(self.threshold)..=latest)
            .rev()
            .find(is_user)
            .filter(|index| *index > 0)
            .unwrap_or(latest);
        (index > 0).then(|| unsummarized.get(index).copied()).flatten()
    }
}

/// Returns true if other requests of the session may contain the summary: no function of the application has selected
/// messages before.
fn is_shared(context: &ReducerContext<'_, '_>) -> bool {
    let is_filtered = context.input.handoffs.iter().any(|handoff| handoff.filter.is_some());
    let mut earlier = context.input.policy.all_reducers().take(context.reducer);
    !is_filtered && !earlier.any(|reducer| matches!(reducer, Reducer::Custom { .. }))
}

/// Returns the indices of the groups after the last summary, without system messages.
fn groups_after_summary(groups: &MessageGroups) -> Vec<usize> {
    let mut indices = Vec::new();
    for (at, group) in groups.counted() {
        if group.is_summary {
            indices.clear();
        } else {
            indices.push(at);
        }
    }
    indices
}

/// Returns the messages before the index `end`, without system messages.
fn covered_messages<'h>(draft: &RequestDraft<'h>, end: usize) -> RequestDraft<'h> {
    let mut covered = RequestDraft::default();
    for item in draft.messages.iter().take(end).filter(|item| !item.is_system()) {
        covered.messages.push(item.clone());
    }
    // The summary is found again by the id of the last message that it covers.
    while covered.messages.last().is_some_and(|item| item.message.id.is_empty()) {
        covered.messages.pop();
    }
    covered
}

/// Replaces the messages that a summary covers. Does nothing if they are not in the draft any more.
fn insert_summary<'h>(draft: &mut RequestDraft<'h>, last_message_id: &str, message: &'h Message, report: &mut Report) {
    let last = draft.messages.iter().position(|item| item.message.id == last_message_id);
    let Some(end) = last.map(|index| index + 1) else {
        return;
    };
    let mut position = None;
    let mut at = 0;
    let mut kept = 0;
    draft.retain(&mut |item| {
        let is_covered = at < end && !item.is_system();
        at += 1;
        if is_covered {
            position.get_or_insert(kept);
            if item.origin != DraftOrigin::Replacement {
                report.push(dropped(item, "older than what `summarize` keeps; its summary replaces it"));
            }
        } else {
            kept += 1;
        }
        !is_covered
    });
    if let Some(position) = position {
        draft.messages.insert(position, DraftMessage::created(message, DraftOrigin::Replacement));
        report.push(
            Finding::info(FindingCode::Reduced, "a summary replaces older messages").with_action(Action::Synthesized),
        );
    }
}
