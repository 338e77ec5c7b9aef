//! The latest operations of a session, by which a repeated append is recognized.

use super::Appended;

/// Number of operations that a store remembers per session. An append is repeated immediately or not at all.
pub const REMEMBERED_OPERATIONS: usize = 16;

/// The latest operations of a session, with the revision of each. Conflicts are not kept: revisions only rise, so a
/// repeated append conflicts again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Operations(pub(crate) Vec<(String, u64)>);

impl Operations {
    /// Returns the outcome of an append that must not be written: a repeated or a conflicting one.
    pub(crate) fn outcome(&self, revision: u64, expected: u64, operation: &str) -> Option<Appended> {
        if let Some((_, made)) = self.0.iter().find(|(name, _)| name == operation) {
            return Some(Appended::Revision(*made));
        }
        (revision != expected).then_some(Appended::Conflict(revision))
    }

    /// Adds an operation and removes the oldest.
    pub(crate) fn note(&mut self, operation: &str, made: u64) {
        while self.0.len() >= REMEMBERED_OPERATIONS {
            self.0.remove(0);
        }
        self.0.push((operation.to_owned(), made));
    }
}
