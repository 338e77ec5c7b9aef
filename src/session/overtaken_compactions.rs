//! [`OvertakenCompactions`]: how often a session asks for a compaction that runs overtake.

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
    /// Notes one that was overtaken. After each, twice as many runs are left out: 1, 2, 4, up to 16.
    pub fn add(&self) {
        self.runs_left.set(1 << self.count.get().min(MAX_EXPONENT));
        self.count.set(self.count.get() + 1);
    }

    /// Notes one that was stored.
    pub fn clear(&self) {
        self.count.set(0);
        self.runs_left.set(0);
    }

    /// Returns true for a large run that no compaction follows, and counts it.
    pub fn leaves_out_run(&self) -> bool {
        let left = self.runs_left.get();
        self.runs_left.set(left.saturating_sub(1));
        left > 0
    }
}
