//! Makes ids unique by a numeric suffix.

use super::History;

/// The last suffix that is tried in sequence.
const LAST_SEQUENTIAL_SUFFIX: usize = 9;

/// Returns the first of `id`, `id-2`, `id-3` and so on that is not taken. After `-9` the suffix continues from `count`, the number of
/// ids in use, so that an id source that returns the same id each time does not cause a linear search.
pub fn free_id(id: String, count: usize, is_taken: &dyn Fn(&str) -> bool) -> String {
    if !is_taken(&id) {
        return id;
    }
    let mut suffix = 2;
    loop {
        let free = format!("{id}-{suffix}");
        if !is_taken(&free) {
            return free;
        }
        suffix = if suffix == LAST_SEQUENTIAL_SUFFIX { count.max(suffix) + 1 } else { suffix + 1 };
    }
}

impl History {
    /// Whether a message or an invocation has this id.
    #[must_use]
    pub fn has_id(&self, id: &str) -> bool {
        self.message(id).is_some() || self.invocation(id).is_some()
    }

    /// Returns the number of messages and invocations.
    #[must_use]
    pub fn id_count(&self) -> usize {
        self.messages.len() + self.invocations.len()
    }
}
