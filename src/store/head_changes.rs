//! Which heads have changed, of a store that numbers the changes: what has been read of them is brought up to date
//! without reading all again.

use super::stored_head::StoredHead;

/// The most heads that a store returns as changed; of more, a reader reads all heads.
pub const MAX_CHANGED_HEADS: usize = 512;

/// The heads that have changed since a mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadChanges {
    /// The number of the newest change: the mark from which a later call goes on. 0 if there is none.
    pub mark: u64,
    /// The sessions, each once. None if no mark was given, or if more than [`MAX_CHANGED_HEADS`] have changed.
    pub changed: Option<Vec<ChangedHead>>,
}

/// A session whose head has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedHead {
    /// The session's id.
    pub id: String,
    /// Its head; none if the session was deleted.
    pub head: Option<StoredHead>,
}

impl HeadChanges {
    /// Returns the changes up to a mark, unless they are too many.
    #[must_use]
    pub fn limited(mark: u64, changed: Option<Vec<ChangedHead>>) -> Self {
        Self { mark, changed: changed.filter(|changed| changed.len() <= MAX_CHANGED_HEADS) }
    }
}
