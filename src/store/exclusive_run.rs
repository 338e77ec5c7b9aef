//! A run beside which no other run of its session may be under way.

use crate::clock::Ms;
use crate::error::{Error, ErrorCode, Result};
use crate::session_head::{RunEntry, SessionHead};

/// The condition of an append that begins or continues such a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExclusiveRun {
    /// The run's id.
    pub id: String,
    /// The ids of runs whose leases this process left behind: nobody holds them.
    pub left_behind: Vec<String>,
    /// True if the run was under way, and its lease has ended: another run may have begun since. Then the
    /// run's writes fail with `conflict`.
    pub is_late: bool,
}

impl ExclusiveRun {
    /// Checks that no other run of a session has a lease. Done for each attempt of an append, so that of two processes
    /// that begin at once one succeeds.
    ///
    /// # Errors
    /// `busy`, with the end of the lease as `leaseUntil`; `conflict` for a run that is late.
    pub(super) fn check(&self, head: &SessionHead, now: Ms) -> Result<()> {
        // A question that waits sends nothing.
        let is_other = |run: &&RunEntry| {
            run.id != self.id && !self.left_behind.contains(&run.id) && (!run.is_queued() || run.is_next)
        };
        match head.runs.iter().filter(is_other).find(|run| run.lease_until > now) {
            Some(_) if self.is_late => Err(Self::lost()),
            Some(run) => Err(Self::busy().with(|details| _ = details.number("leaseUntil", run.lease_until))),
            None => Ok(()),
        }
    }

    /// Returns the error of a run that another one has replaced.
    fn lost() -> Error {
        let sentence = "this run was suspended for longer than its lease, and another run of this session has begun in another tab or process \
                        meanwhile; the service keeps one conversation for both, so resume this run or discard it when that one is over";
        Error::new(ErrorCode::Conflict, sentence)
    }

    /// Returns the error of a run that another one excludes.
    #[must_use]
    pub fn busy() -> Error {
        let sentence = "a run of this session is under way in another tab or process, and the service keeps one conversation for both; send it \
                        again when that run is over, or with `whenBusy: \"queue\"`";
        Error::new(ErrorCode::Busy, sentence)
    }
}
