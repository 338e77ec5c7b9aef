//! The turn of a queued question: it begins when nothing before it is under way.

use crate::error::{Error, ErrorCode, Result};
use crate::session_head::{RunEntry, SessionHead};

/// The condition of an append that begins a run when its turn has come. Done for each attempt of an append, so of two
/// tabs or processes that begin at once one succeeds, also where there are no locks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueTurn {
    /// The run's id.
    pub id: String,
    /// Its number, if it is queued.
    pub queued: Option<u64>,
    /// The ids and the epochs of the runs before it that nobody holds, as of the last look.
    pub unheld: Vec<(String, u32)>,
}

impl QueueTurn {
    /// Checks that no run has begun, was resumed or was queued before it since the last look.
    ///
    /// # Errors
    /// `busy`.
    pub(super) fn check(&self, head: &SessionHead) -> Result<()> {
        let is_unheld = |run: &RunEntry| self.unheld.iter().any(|(id, epoch)| *id == run.id && *epoch == run.epoch);
        let is_before = |run: &&RunEntry| run.id != self.id && run.precedes(self.queued) && !is_unheld(run);
        if !head.runs.iter().any(|run| is_before(&run)) {
            return Ok(());
        }
        let sentence = "a run of this session began in another tab or process at the same time; send it again";
        Err(Error::new(ErrorCode::Busy, sentence))
    }
}
