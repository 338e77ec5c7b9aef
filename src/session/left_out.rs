//! What is being read of what was left out when a session was opened.

use super::shared_task::SharedTask;
use std::cell::Cell;

/// The reads of what was left out when a session was opened.
#[derive(Default)]
pub struct LeftOut {
    /// That of the records before the end of the log.
    pub(super) records: SharedTask,
    /// That of the rows of other branches.
    pub(super) branches: SharedTask,
    /// A view waits for these rows.
    pub(super) is_view_waiting: Cell<bool>,
}
