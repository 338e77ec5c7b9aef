//! Up to where a person has read a branch (R79).

/// Up to where a person has read a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadMark {
    /// [`SessionHead::born`](crate::session_head::SessionHead::born) of the session.
    pub born: u64,
    /// The number of the branch.
    pub branch: u64,
    /// The `seq` after the last message that was read.
    pub until: u64,
}
