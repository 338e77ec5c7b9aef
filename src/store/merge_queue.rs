//! Which records of a log wait to be merged into segments.

use super::LogStore;
use super::segment::{INDEX_ENTRY_BYTES, MAX_SEGMENT_RECORDS, SEGMENT_BYTES, SEGMENT_FRAME_BYTES};
use std::collections::VecDeque;

/// Number of records from which a merge is worth it even if they are small together.
const MIN_RECORDS: u64 = 16;

/// Records next to each other that fit in one segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct MergeWindow {
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) count: u64,
    /// Size in a segment.
    bytes: u64,
}

/// The records of a log that wait to be merged.
#[derive(Default)]
pub(super) struct MergeQueue {
    /// Maximum size of a segment; 0 if the store's batches are not atomic, so that nothing is merged.
    limit: u64,
    /// Records that a segment would be filled with.
    ready: VecDeque<MergeWindow>,
    /// The newest records, which do not fill a segment yet.
    newest: MergeWindow,
}

impl MergeQueue {
    pub(super) fn new(store: &dyn LogStore) -> Self {
        let capabilities = store.capabilities();
        let swaps = capabilities.compare_and_append && capabilities.atomic_batch && capabilities.read_your_writes;
        Self { limit: if swaps { SEGMENT_BYTES.min(capabilities.max_value_bytes) } else { 0 }, ..Self::default() }
    }

    /// Returns an empty queue for the same store.
    pub(super) fn emptied(&self) -> Self {
        Self { limit: self.limit, ..Self::default() }
    }

    /// Adds a readable record, the newest one.
    pub(super) fn add(&mut self, key: u64, bytes: u64) {
        let bytes = bytes.saturating_add(INDEX_ENTRY_BYTES);
        let full = self.newest.bytes.saturating_add(bytes).saturating_add(SEGMENT_FRAME_BYTES) > self.limit;
        if full || self.newest.count >= MAX_SEGMENT_RECORDS {
            self.add_boundary();
        }
        if bytes.saturating_add(SEGMENT_FRAME_BYTES) > self.limit {
            return;
        }
        let window = &mut self.newest;
        if window.count == 0 {
            window.first = key;
        }
        window.last = key;
        window.count += 1;
        window.bytes += bytes;
    }

    /// Ends the newest window: what follows is a segment, a record that cannot be read, or does not fit.
    pub(super) fn add_boundary(&mut self) {
        let window = std::mem::take(&mut self.newest);
        if window.count >= MIN_RECORDS || window.count > 1 && window.bytes.saturating_mul(2) >= self.limit {
            self.ready.push_back(window);
        }
    }

    /// Returns the oldest records that wait.
    pub(super) fn oldest(&self) -> Option<MergeWindow> {
        self.ready.front().copied()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ready.is_empty()
    }

    pub(super) fn remove(&mut self, window: MergeWindow) {
        self.ready.retain(|other| *other != window);
    }
}
