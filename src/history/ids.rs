//! Ids that are unique within a history.

use crate::id::short_name;

/// The last suffix that is tried in sequence.
const LAST_SEQUENTIAL_SUFFIX: usize = 9;

/// Returns the first of `id`, `id-2`, `id-3` and so on that is not taken. After `-9` the suffix continues from `count`,
/// the number of ids in use, so that an id source that returns the same id each time does not cause a linear search.
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

/// Returns a call id for a call that cannot use its own: derived from the invocation's id, so it is the same in every
/// build (R5).
pub(super) fn synthesized_call_id(invocation: &str) -> String {
    format!("call_{}", short_name(invocation, 20))
}
