//! The reads that the opening of a session has put off.

use super::shared_task::SharedTask;
use std::cell::Cell;

/// The reads that the opening of a session has put off.
#[derive(Default)]
pub struct LeftOut {
    /// That of the records before the end of the log.
    pub(super) records: SharedTask,
    /// That of the rows of other branches.
    pub(super) branches: SharedTask,
    /// A view waits for these rows.
    pub(super) is_view_waiting: Cell<bool>,
    /// The last snapshot of a view was made without these rows.
    pub(super) view_lacks_siblings: Cell<bool>,
}
