//! Healing of a run's requests (R74): what the provider refused with a known error is repaired and sent once more.

use crate::finding::Report;
use crate::message::Dialect;
use crate::provider::{Healed, RepairOptions, heal, leave_out_refused};

/// What a run knows of the requests that were refused.
#[derive(Debug, Default)]
pub(super) struct RunHealing {
    /// The marks of what was refused in this run. Those of the session's other runs are in its head.
    refused: Vec<String>,
    /// The number of the model call that was healed last. A call is healed once.
    healed_call: Option<u32>,
    /// True if the run has reported that something is left out.
    is_reported: bool,
}

impl RunHealing {
    /// Creates the state of a run in which this was refused.
    pub fn of(refused: Vec<String>) -> Self {
        Self { refused, ..Self::default() }
    }

    /// Repairs the body of model call number `call`, which was refused with this answer. Returns `None` if the error is
    /// not a known one, or the call was healed before.
    pub fn heal(&mut self, call: u32, (body, dialect): (&[u8], Dialect), answer: &[u8]) -> Option<Healed> {
        if self.healed_call == Some(call) {
            return None;
        }
        let healed = heal(body, dialect, answer, &RepairOptions::default())?;
        self.healed_call = Some(call);
        self.is_reported = true;
        self.refused.extend(healed.refused.iter().cloned());
        Some(healed)
    }

    /// Returns true if something was refused, in this run or another one of the session.
    pub fn has_refused(&self, of_session: &[String]) -> bool {
        !(self.refused.is_empty() && of_session.is_empty())
    }

    /// Returns a body without what was refused before, in this run or another one of the session; `None` if it contains
    /// none of that. The report is empty if the run has reported it already.
    pub fn leave_out(&mut self, body: &[u8], dialect: Dialect, of_session: &[String]) -> Option<(Vec<u8>, Report)> {
        let refused = [&self.refused, of_session].concat();
        let (body, report) = leave_out_refused(body, dialect, &refused, &RepairOptions::default())?;
        let is_new = !std::mem::replace(&mut self.is_reported, true);
        Some((body, if is_new { report } else { Report::new() }))
    }
}
