//! The turn of a queued question: it begins when nothing before it is under way.

use super::ExclusiveRun;
use crate::clock::Ms;
use crate::error::{Error, ErrorCode, Result};
use crate::session_head::{RunEntry, SessionHead};
use std::cell::Cell;
use std::rc::Rc;

/// The condition of an append that begins a run when its turn has come. Done for each attempt of an append, so of two
/// tabs or processes that begin at once one succeeds, also where there are no locks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueTurn {
    /// The run's id.
    pub id: String,
    /// Its number, if it is queued.
    pub queued: Option<u64>,
    /// The runs before it that nobody holds, as of the last look. One that has changed has a holder after all.
    pub unheld: Vec<RunEntry>,
    /// Set if the append is refused since its turn has not come: nothing was written. An error of a store may have the
    /// same code.
    pub refused: Rc<Cell<bool>>,
}

impl QueueTurn {
    /// Checks that no run is in the way of the one that begins.
    ///
    /// # Errors
    /// Those of [`check`](Self::check) and [`ExclusiveRun::check`].
    pub(super) fn check_begin(
        turn: Option<&Self>,
        exclusive: Option<&ExclusiveRun>,
        (head, now): (&SessionHead, Ms),
    ) -> Result<()> {
        let exclusive = exclusive.map_or(Ok(()), |run| run.check(head, now));
        let checked = exclusive.and_then(|()| turn.map_or(Ok(()), |turn| turn.check(head)));
        if let (Err(_), Some(turn)) = (&checked, turn) {
            turn.refused.set(true);
        }
        checked
    }

    /// Returns its number, and whether it is the next one already.
    #[must_use]
    pub fn place_in(&self, head: &SessionHead) -> Option<(u64, bool)> {
        self.queued.map(|number| (number, head.run(&self.id).is_some_and(|entry| entry.is_next)))
    }

    /// Checks that no run has begun, was resumed or was queued before it since the last look.
    ///
    /// # Errors
    /// `busy`.
    fn check(&self, head: &SessionHead) -> Result<()> {
        let place = self.place_in(head);
        let is_before =
            |run: &&RunEntry| run.id != self.id && run.precedes(place) && !self.unheld.iter().any(|seen| seen == *run);
        if !head.runs.iter().any(|run| is_before(&run)) {
            return Ok(());
        }
        let sentence = "a run of this session began in another tab or process at the same time; send it again";
        Err(Error::new(ErrorCode::Busy, sentence))
    }
}
