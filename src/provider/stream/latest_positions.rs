//! Finds the latest item of a stream by the index or the id that an event names, without a scan: a server may open
//! thousands of items and continue them in any order.

use std::collections::BTreeMap;

/// Positions in a list of items, by stream index and by id. If several items share an index or an id, the last one
/// counts.
#[derive(Debug, Default)]
pub(crate) struct LatestPositions {
    by_index: BTreeMap<u64, usize>,
    by_id: BTreeMap<String, usize>,
}

impl LatestPositions {
    /// Records that the item at `position` has this index.
    pub(crate) fn record_index(&mut self, index: u64, position: usize) {
        let latest = self.by_index.entry(index).or_insert(position);
        *latest = position.max(*latest);
    }

    /// Records that the item at `position` has this id. An empty id is ignored.
    pub(crate) fn record_id(&mut self, id: &str, position: usize) {
        if id.is_empty() {
            return;
        }
        match self.by_id.get_mut(id) {
            Some(latest) => *latest = position.max(*latest),
            None => _ = self.by_id.insert(id.to_owned(), position),
        }
    }

    /// Returns the position of the latest item with that index.
    pub(crate) fn with_index(&self, index: u64) -> Option<usize> {
        self.by_index.get(&index).copied()
    }

    /// Returns the position of the latest item with that id.
    pub(crate) fn with_id(&self, id: &str) -> Option<usize> {
        self.by_id.get(id).copied()
    }
}
