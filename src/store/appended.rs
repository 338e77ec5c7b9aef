//! [`Appended`]: the outcome of an append.

/// The outcome of an append to a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Appended {
    /// It was written. The head has this revision: one more than expected, or the batch's
    /// [`at_least`](super::Batch::at_least).
    Revision(u64),
    /// Nothing was written: the head has this revision.
    Conflict(u64),
    /// Nothing was written: a record has the key of a new one, so the head is older than its tables.
    Occupied,
}
