//! What an append writes of a log's branch.

use super::branch_directory::BranchRow;
use crate::session_head::SessionHead;

/// The place of a fork.
#[derive(Clone, Debug, Default)]
pub(super) struct ForkPlace {
    /// The id of the last message that is shared.
    pub(super) after: Option<String>,
    /// The id of the message in whose place the branch has another one.
    pub(super) beside: Option<String>,
}

/// What an append writes of the log's branch.
#[derive(Default)]
pub(super) struct BranchWrite {
    /// The branch gets its number.
    pub(super) is_birth: bool,
    /// A log record is written.
    pub(super) has_record: bool,
    /// The head stays with the branch that it has: nothing is written of this one but what is beside history, such as a
    /// lease or a title.
    pub(super) stays: bool,
    /// The record of the branch in the directory.
    pub(super) row: Option<BranchRow>,
}

impl BranchWrite {
    /// Returns true if the append may write a log record: a branch without a number has no key for one.
    pub(super) fn has_keys(&self, head: &SessionHead) -> bool {
        self.is_birth || !head.branch.is_unborn()
    }
}
