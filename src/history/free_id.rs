//! An id that nothing in a history has yet.

use super::History;

/// So many suffixes are tried one after the other.
const TRIED_IN_ORDER: usize = 9;

/// Returns `id`, or `id-2`, `id-3` and so on, the first that is not taken. `count` is how many ids there are: suffixes after the
/// first few go on from there, so that an id source that always says the same costs no search.
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
        suffix = if suffix == TRIED_IN_ORDER { count.max(suffix) + 1 } else { suffix + 1 };
    }
}

impl History {
    /// Whether a message or an invocation has that id.
    #[must_use]
    pub fn has_id(&self, id: &str) -> bool {
        self.message(id).is_some() || self.invocation(id).is_some()
    }

    /// How many ids of messages and invocations there are.
    #[must_use]
    pub fn id_count(&self) -> usize {
        self.messages.len() + self.invocations.len()
    }
}
