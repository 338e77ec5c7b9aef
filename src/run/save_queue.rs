//! The saves of a run: those that wait to be written, and those that failed.

use super::effect::{Save, SaveKind};
use std::collections::VecDeque;

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
    /// Queues a save, and returns its id.
    pub fn push(&mut self, kind: SaveKind, sources: Option<u64>) -> u64 {
        self.count += 1;
        self.waiting.push_back(Save { id: self.count, kind, sources });
        self.count
    }

    /// Returns the next save.
    pub fn front(&self) -> Option<&Save> {
        self.waiting.front()
    }

    /// Takes the next save.
    pub fn take(&mut self) -> Option<Save> {
        self.waiting.pop_front()
    }

    /// Keeps a save that failed.
    pub fn keep_failed(&mut self, save: Save) {
        self.failed.push_back(save);
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

    /// Drops the saves that failed.
    pub fn drop_failed(&mut self) {
        self.failed.clear();
    }

    /// Drops all saves.
    pub fn clear(&mut self) {
        self.waiting.clear();
        self.failed.clear();
    }
}
