//! The pauses of a question that is stored while its run cannot begin.

use super::run_queue::LONGEST_PAUSE;
use crate::clock::Ms;
use crate::error::ErrorCode;

/// The longest pause after failures that ask history providers again each time.
const LONGEST_BACKOFF: Ms = 8_000;

/// The pauses between attempts to begin a run.
#[derive(Default)]
pub(super) struct BeginBackoff {
    /// The last failure, with the revision of the session, and the pause after it.
    last: Option<(ErrorCode, u64, Ms)>,
}

impl BeginBackoff {
    /// Returns the pause after a failure at this revision. Each attempt of a run with history providers asks them, so
    /// its pause doubles while the same failure repeats and the session is as it was.
    pub fn pause_after(&mut self, failure: ErrorCode, revision: u64, asks_providers: bool) -> Ms {
        let pause = match self.last {
            Some((code, at, pause)) if asks_providers && (code, at) == (failure, revision) => {
                pause.saturating_mul(2).min(LONGEST_BACKOFF)
            }
            _ => LONGEST_PAUSE,
        };
        self.last = Some((failure, revision, pause));
        pause
    }
}
