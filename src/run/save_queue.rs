//! The saves of a run: those that wait to be written, and those that failed.

use super::effect::{Save, SaveKind};
use crate::history::{History, HistoryEntry};
use std::collections::{BTreeSet, VecDeque};

/// The saves of a run, in order.
#[derive(Default)]
pub(super) struct SaveQueue {
    waiting: VecDeque<Save>,
    /// Saves that failed. They are retried: the model calls that produced them are paid for (R58).
    failed: VecDeque<Save>,
    /// The number of saves so far. Their ids, after which operations are named, count from 1.
    count: u64,
}

impl SaveQueue {
    /// Queues a save of this turn, and returns its id.
    pub fn push(&mut self, kind: SaveKind, live: &History) -> u64 {
        self.count += 1;
        self.waiting.push_back(Save {
            id: self.count,
            kind,
            sources: live.highest_source(),
            approvals: live.awaited_approvals(),
            owner: None,
            last_request: None,
            has_dropped: false,
            has_async_result: false,
        });
        self.count
    }

    /// Returns the next save.
    pub fn front(&self) -> Option<&Save> {
        self.waiting.front().filter(|next| !self.must_wait(next))
    }

    /// Takes the next save.
    pub fn take(&mut self) -> Option<Save> {
        self.front()?;
        self.waiting.pop_front()
    }

    /// Returns true if a save may hold results of calls that only a failed save contains: history ignores a result
    /// before its call.
    fn must_wait(&self, next: &Save) -> bool {
        matches!(next.kind, SaveKind::Store { .. }) && self.failed.iter().flat_map(stored_calls).next().is_some()
    }

    /// Keeps a save that failed.
    pub fn keep_failed(&mut self, save: Save) {
        self.failed.push_back(save);
    }

    /// Iterates over the saves that wait to be written.
    pub fn waiting(&self) -> impl Iterator<Item = &Save> {
        self.waiting.iter()
    }

    /// Returns true if a save failed and was not retried.
    pub fn has_failed(&self) -> bool {
        !self.failed.is_empty()
    }

    /// Iterates over the saves that failed and were not retried.
    pub fn failed(&self) -> impl Iterator<Item = &Save> {
        self.failed.iter()
    }

    /// Queues the failed saves again. They come before later ones: a journal is read in its order.
    pub fn retry_failed(&mut self) {
        self.failed.append(&mut self.waiting);
        std::mem::swap(&mut self.failed, &mut self.waiting);
    }

    /// Drops the saves that failed, and the results of their calls in later saves. Returns the ids of these calls.
    pub fn drop_failed(&mut self) -> BTreeSet<String> {
        let dropped: BTreeSet<String> = self.failed.iter().flat_map(stored_calls).cloned().collect();
        self.failed.clear();
        for save in &mut self.waiting {
            if let SaveKind::Store { history, .. } = &mut save.kind {
                history.retain(|entry| match entry {
                    HistoryEntry::Result(result) => !dropped.contains(&result.invocation),
                    HistoryEntry::Message(_) | HistoryEntry::Invocation(_) | HistoryEntry::SetAside(_) => true,
                });
            }
        }
        dropped
    }

    /// Drops all saves.
    pub fn clear(&mut self) {
        self.waiting.clear();
        self.failed.clear();
    }
}

/// Iterates over the ids of the calls that a save adds to history.
fn stored_calls(save: &Save) -> impl Iterator<Item = &String> {
    let history: &[HistoryEntry] = if let SaveKind::Store { history, .. } = &save.kind { history } else { &[] };
    history.iter().filter_map(|entry| if let HistoryEntry::Invocation(call) = entry { Some(&call.id) } else { None })
}
