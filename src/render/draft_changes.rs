//! What the passes of a replay changed in a draft, to name it when reasoning is left out or a cached prefix is lost.

use crate::finding::{Finding, FindingCode, PrefixChange};
use crate::history::{History, LateResult};
use crate::message::{Part, PartBody};
use crate::replay::{DraftMessage, DraftOrigin, DraftResult, RequestDraft};
use std::collections::BTreeMap;
use std::ops::Range;

/// The changes of a draft, from its first message on.
pub struct DraftChanges<'d, 'h> {
    draft: &'d RequestDraft<'h>,
    /// The stored messages, to name what became of those that are missing.
    history: Option<&'d History>,
    /// What removed something of a message, by the message's id.
    removed_by: BTreeMap<&'d str, PrefixChange>,
    /// The first change of all.
    first: Option<PrefixChange>,
    /// The first change since the newest answer whose prefix was the same as before.
    since_match: Option<PrefixChange>,
    /// The number of messages that were looked at.
    seen: usize,
    /// The index in history after the newest stored message that was looked at.
    next_stored: usize,
}

impl<'d, 'h> DraftChanges<'d, 'h> {
    /// Looks at a draft and the report of its passes.
    pub fn new(draft: &'d RequestDraft<'h>, history: Option<&'d History>, report: &'d [Finding]) -> Self {
        let mut removed_by = BTreeMap::new();
        for finding in report {
            if let (Some(id), Some(change)) = (finding.message_id.as_deref(), change_of(finding.code)) {
                removed_by.entry(id).or_insert(change);
            }
        }
        Self { draft, history, removed_by, first: None, since_match: None, seen: 0, next_stored: 0 }
    }

    /// Returns the first change before the message at an index of the draft.
    pub fn before(&mut self, index: usize) -> Option<PrefixChange> {
        self.look_at_until(index);
        let is_provided = self.draft.messages.get(index).is_some_and(DraftMessage::is_provided);
        // Messages that came together changed nothing before each other.
        self.first.filter(|change| !(is_provided && *change == PrefixChange::HistoryProvider))
    }

    /// Returns the first change between the newest match and the message at an index of the draft.
    pub fn since_match(&mut self, index: usize) -> Option<PrefixChange> {
        self.look_at_until(index);
        self.since_match
    }

    /// Notes that what precedes the message at an index of the draft is what it was.
    pub fn note_match(&mut self, index: usize) {
        self.look_at_until(index);
        self.since_match = None;
    }

    /// Returns what changed a call of an answer that precedes reasoning of the same answer.
    pub fn inside(&self, index: usize) -> Option<PrefixChange> {
        let item = self.draft.messages.get(index)?;
        let change = |part: &Part| match (&part.body, item.call(&part.body)) {
            (PartBody::ToolCall { .. }, None) => Some(self.change_of(item).unwrap_or(PrefixChange::Branch)),
            (PartBody::ToolCall { .. }, Some(call)) if call.invocation.redacted => Some(PrefixChange::Redaction),
            // The model used an id a second time.
            (PartBody::ToolCall { .. }, Some(call)) if call.invocation.replay_id.is_some() => {
                Some(PrefixChange::Repair)
            }
            _ => None,
        };
        let mut parts = item.message.parts.iter();
        let change = parts.find_map(change)?;
        let has_reasoning = parts.any(|part| matches!(part.body, PartBody::Reasoning(_) | PartBody::Opaque(_)));
        has_reasoning.then_some(change)
    }

    fn look_at_until(&mut self, index: usize) {
        while self.seen < index {
            if let Some(item) = self.draft.messages.get(self.seen) {
                let change = self.change_before(item).or_else(|| self.change_of(item));
                self.first = self.first.or(change);
                self.since_match = self.since_match.or(change);
            }
            self.seen += 1;
        }
        if let Some(item) = self.draft.messages.get(index) {
            let change = self.change_before(item);
            self.first = self.first.or(change);
            self.since_match = self.since_match.or(change);
        }
    }

    /// Returns the change at the message at an index of the draft, or after the last one.
    pub fn at(&self, index: usize) -> Option<PrefixChange> {
        let stored = |item: &DraftMessage<'_>| match item.origin {
            DraftOrigin::Stored(index) => Some(index),
            _ => None,
        };
        let earlier = self.draft.messages.get(..index).unwrap_or_default();
        let from = earlier.iter().rev().find_map(stored).map_or(0, |index| index + 1);
        let Some(item) = self.draft.messages.get(index) else {
            return self.missing_in(from..self.history?.messages().len());
        };
        let before = stored(item).and_then(|index| self.missing_in(from..index));
        before.or_else(|| self.change_of(item))
    }

    /// Returns what became of the stored messages that should precede a message.
    fn change_before(&mut self, item: &DraftMessage<'_>) -> Option<PrefixChange> {
        let DraftOrigin::Stored(index) = item.origin else { return None };
        let missing = std::mem::replace(&mut self.next_stored, index + 1)..index;
        self.missing_in(missing)
    }

    fn missing_in(&self, missing: Range<usize>) -> Option<PrefixChange> {
        if !missing.is_empty() && missing.start < self.draft.compacted_before {
            return Some(PrefixChange::Compaction);
        }
        let history = self.history?;
        let mut missing = history.messages().get(missing).unwrap_or_default().iter().peekable();
        missing.peek()?;
        Some(
            missing
                .find_map(|message| self.removed_by.get(message.id.as_str()).copied())
                .unwrap_or(PrefixChange::Branch),
        )
    }

    /// Returns what differs in a message from what is stored of it.
    fn change_of(&self, item: &DraftMessage<'_>) -> Option<PrefixChange> {
        match item.origin {
            DraftOrigin::Replacement => return Some(self.replacement()),
            DraftOrigin::Created => return Some(PrefixChange::Reducer),
            DraftOrigin::LateResult => return self.expired_result(item),
            DraftOrigin::Stored(_) | DraftOrigin::Live(_) => {}
        }
        if item.is_provided() {
            return Some(PrefixChange::HistoryProvider);
        }
        let is_call = |part: &&Part| matches!(part.body, PartBody::ToolCall { .. });
        if item.message.parts.iter().filter(is_call).count() > item.calls.len() {
            return Some(self.removed_by.get(item.message.id.as_str()).copied().unwrap_or(PrefixChange::Branch));
        }
        item.calls.iter().find_map(|call| match call.result {
            Some(DraftResult::Placeholder(_)) => Some(PrefixChange::Freshness),
            Some(DraftResult::Cut { .. }) => Some(PrefixChange::Reducer),
            Some(DraftResult::Stored(shown)) => {
                let stored = call.invocation.result.as_ref();
                let is_whole = stored.is_some_and(|stored| std::ptr::eq(stored, shown));
                let change = if call.invocation.redacted { PrefixChange::Redaction } else { PrefixChange::Citation };
                (!is_whole || call.invocation.redacted).then_some(change)
            }
            Some(DraftResult::Closing(_)) | None => Some(PrefixChange::Branch),
        })
    }

    /// A late result was not in an earlier request and stays at its place, until a note replaces it.
    fn expired_result(&self, item: &DraftMessage<'_>) -> Option<PrefixChange> {
        let id = LateResult::invocation_of(item.message)?;
        let late = self.history?.late_results().get(id)?;
        std::ptr::eq(item.message, &late.expired).then_some(PrefixChange::Freshness)
    }

    /// Returns what a message that replaces others is.
    fn replacement(&self) -> PrefixChange {
        let is_compacted = self.history.is_some_and(|history| history.compaction().is_some());
        if is_compacted { PrefixChange::Compaction } else { PrefixChange::Reducer }
    }
}

/// Returns what a pass that reports this code changes.
fn change_of(code: FindingCode) -> Option<PrefixChange> {
    match code {
        FindingCode::Stale => Some(PrefixChange::Freshness),
        FindingCode::Reduced => Some(PrefixChange::Reducer),
        FindingCode::Redacted => Some(PrefixChange::Redaction),
        FindingCode::Uncited => Some(PrefixChange::Citation),
        _ => None,
    }
}
