//! [`OvertakenCompactions`]: how often a session asks for a compaction that runs overtake.

use super::compaction_state::CompactionOutcome;
use crate::error::Result;
use std::cell::Cell;

/// The highest number of runs that are left out, as a power of two.
const MAX_EXPONENT: u32 = 4;

/// Counts the compactions of a session that could not be stored since the conversation had gone on: each is paid. In a
/// chain of responses every run that continues the chain meanwhile does that.
#[derive(Default)]
pub struct OvertakenCompactions {
    /// Those since one was stored.
    count: Cell<u32>,
    /// The number of large runs that no compaction follows.
    runs_left: Cell<u32>,
}

impl OvertakenCompactions {
    /// Notes how a compaction ended. After each that was overtaken, twice as many runs are left out: 1, 2, 4, up to 16.
    pub fn note(&self, outcome: &Result<CompactionOutcome>) {
        match outcome {
            Ok(CompactionOutcome::Superseded) => {
                self.runs_left.set(1 << self.count.get().min(MAX_EXPONENT));
                self.count.set(self.count.get() + 1);
            }
            Ok(CompactionOutcome::Threshold | CompactionOutcome::Forced | CompactionOutcome::WasDeferred) => {
                self.count.set(0);
                self.runs_left.set(0);
            }
            _ => {}
        }
    }

    /// Returns true for a large run that no compaction follows, and counts it.
    pub fn leaves_out_run(&self) -> bool {
        let left = self.runs_left.get();
        self.runs_left.set(left.saturating_sub(1));
        left > 0
    }
}
