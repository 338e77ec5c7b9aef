//! A run on which a change depends.

use crate::clock::Ms;
use crate::session_head::SessionHead;

/// A run on whose state a change depends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedRun {
    /// The run's id.
    pub id: String,
    /// The epoch of its owner; `None` if the run has ended.
    pub epoch: Option<u32>,
    /// The number of records that its journal must have. `None` if later ones do not matter.
    pub records: Option<u64>,
    /// Set if the change needs the owner to be dead: the lease must have ended by then.
    pub lease_ended_by: Option<Ms>,
}

impl ExpectedRun {
    /// Returns true if the run ended, was taken over or has written to its journal, or if its holder is alive after
    /// all.
    #[must_use]
    pub fn has_moved(&self, head: &SessionHead) -> bool {
        let run = head.run(&self.id);
        let is_owned = run.zip(self.lease_ended_by).is_some_and(|(run, by)| run.lease_until > by);
        let has_written = run.zip(self.records).is_some_and(|(run, records)| run.entries != records);
        run.map(|run| run.epoch) != self.epoch || has_written || is_owned
    }
}
