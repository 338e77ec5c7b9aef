//! The head of a session as a store has it.

use bytes::Bytes;

/// A head and its revision. If a store has records of a session but no head, or a head of a wrong type, it returns a
/// head without bytes, and revision 0 if that is lost too: the session is damaged, not empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredHead {
    /// Counts appends, from 1.
    pub revision: u64,
    /// The bytes.
    pub value: Bytes,
}
