//! An unfinished run, or a question that waits, in the head.

use crate::branch_path::BranchPath;
use crate::clock::Ms;
use crate::encoding::{UnknownFields, encode_with_unknown_fields};
use crate::error::{Error, ErrorCode};

/// The number of the first queued question, above those of all runs: questions that wait have numbers of their own, so
/// the number of a run says which runs began before it.
pub const FIRST_QUEUED: u64 = 1 << 32;

/// An unfinished run in the head. Its journal is in the table `runs`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunEntry {
    /// The run's id.
    pub id: String,
    /// The number in the session, which the keys of its journal begin with; from [`FIRST_QUEUED`] on that of a question
    /// which waits for the runs before it.
    pub number: u64,
    /// Number of journal entries.
    pub entries: u64,
    /// Number of holders so far. A resume increments it, and writes of the previous holder conflict (R18).
    pub epoch: u32,
    /// End of the holder's lease: until then it is considered alive, where the platform has no locks.
    pub lease_until: Ms,
    /// When it began.
    pub started_at: Ms,
    /// Code and message of the error of a failed run, which waits to be resumed or discarded. The code is `aborted` if
    /// the user stopped it.
    pub failed: Option<(String, String)>,
    /// The epoch and the name of the open store that wrote the lease, such as `2:k3v9`. A rebuilt head lacks it. The
    /// epoch is part of it, since a build that does not know the field leaves it as it was.
    pub holder: Option<String>,
    /// The branch that it continues; for one that has no record yet, what the branch shares with others.
    pub branch: BranchPath,
    /// Number of its calls that wait for an approval. A rebuilt head lacks it until the next write of the run.
    pub approvals: u64,
    /// True if it is queued, and its holder is about to begin it: others wait for it as for a run under way. A rebuilt
    /// head lacks it.
    pub is_next: bool,
    /// Fields that a newer build wrote.
    pub unknown: UnknownFields,
}
encode_with_unknown_fields!(struct RunEntry {
    0 => id,
    1 => number,
    2 => entries,
    3 => epoch,
    4 => lease_until,
    5 => started_at,
    6 => failed,
    7 => holder,
    8 => branch,
    9 => approvals,
    10 => is_next,
});

impl RunEntry {
    /// Returns true for a question that waits for the runs before it (`whenBusy: "queue"`): of its turn there is nothing
    /// but the question.
    #[must_use]
    pub fn is_queued(&self) -> bool {
        self.number >= FIRST_QUEUED
    }

    /// Returns true if a question waits while this run has a holder. `queued` is the question's number, and whether it
    /// is the next one already; `None`: it is not queued yet. A next one waits for no other question that is not:
    /// otherwise each would wait for the other.
    #[must_use]
    pub fn precedes(&self, queued: Option<(u64, bool)>) -> bool {
        let is_lower = queued.is_none_or(|(number, _)| self.number < number);
        let is_before = match queued {
            Some((_, true)) => self.is_next && is_lower,
            _ => self.is_next || is_lower,
        };
        !self.is_queued() || is_before
    }

    /// Returns true if the open store of that name wrote the present lease.
    #[must_use]
    pub fn is_held_by(&self, name: &str) -> bool {
        let holder = self.holder.as_deref().and_then(|holder| holder.split_once(':'));
        self.lease_until > 0 && holder.is_some_and(|(epoch, holder)| holder == name && epoch.parse() == Ok(self.epoch))
    }

    /// Returns true if the user stopped the run. It is not pending, and is kept only until the next run begins.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.failed.as_ref().is_some_and(|(code, _)| code == ErrorCode::Aborted.as_str())
    }

    /// Returns the error of resuming a run that the user stopped.
    #[must_use]
    pub fn cancelled_error() -> Error {
        let message =
            "the run was cancelled, which ended it; send the input again, or discard the run to store or drop its turn";
        Error::new(ErrorCode::Conflict, message)
    }
}
