//! Where the newest entry of an index or of an id stands in a list: a server names thousands of items in any order.

use std::collections::BTreeMap;

/// Places by index and by id. The newest entry of a name counts.
#[derive(Debug, Default)]
pub(crate) struct Newest {
    by_index: BTreeMap<u64, usize>,
    by_id: BTreeMap<String, usize>,
}

impl Newest {
    /// The entry at `place` has this index.
    pub(crate) fn has_index(&mut self, index: u64, place: usize) {
        let newest = self.by_index.entry(index).or_insert(place);
        *newest = place.max(*newest);
    }

    /// The entry at `place` has this id; an empty one names nothing.
    pub(crate) fn has_id(&mut self, id: &str, place: usize) {
        if id.is_empty() {
            return;
        }
        match self.by_id.get_mut(id) {
            Some(newest) => *newest = place.max(*newest),
            None => _ = self.by_id.insert(id.to_owned(), place),
        }
    }

    /// The place of the newest entry of that index.
    pub(crate) fn of_index(&self, index: u64) -> Option<usize> {
        self.by_index.get(&index).copied()
    }

    /// The place of the newest entry of that id.
    pub(crate) fn of_id(&self, id: &str) -> Option<usize> {
        self.by_id.get(id).copied()
    }
}
