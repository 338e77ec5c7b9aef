//! Results of appended messages whose calls an unfinished run has (R75): the rules are those of an answer.

use super::answered_call::{AnsweredCall, PendingTurn, find_answered_call, is_known_to_history};
use crate::error::{Error, ErrorCode, Result};
use crate::finding::{Finding, FindingCode};
use crate::history::{History, HistoryEntry, JoinedEntries};

/// The calls of an append's results of which history alone does not say whether they take one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AppendedResults {
    /// The invocations of calls in history.
    stored: Vec<String>,
    /// The call ids of results whose calls history does not have.
    unpaired: Vec<String>,
}

impl AppendedResults {
    /// Finds these calls in joined entries.
    #[must_use]
    pub fn of(history: &History, joined: &JoinedEntries) -> Self {
        // The call of a late result may be in the same append.
        let is_open = |call: &str| history.invocation(call).is_some() && !is_known_to_history(history, call);
        let stored = joined.entries.iter().filter_map(|entry| match entry {
            HistoryEntry::Result(result) if is_open(&result.invocation) => Some(result.invocation.clone()),
            _ => None,
        });
        let is_unpaired = |finding: &&Finding| finding.code == FindingCode::OrphanResult;
        let unpaired = joined.report.iter().filter(is_unpaired).filter_map(|finding| finding.call_id.clone());
        Self { stored: stored.collect(), unpaired: unpaired.filter(|call_id| !call_id.is_empty()).collect() }
    }

    /// Returns true if history says all of it: no turn of an unfinished run has to be read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.stored.is_empty() && self.unpaired.is_empty()
    }

    /// Returns the calls in history that take their results.
    ///
    /// # Errors
    /// `wrong_state` if a call takes none, or if only the turn of an unfinished run has it.
    pub fn check(&self, history: &History, turns: &[PendingTurn<'_>]) -> Result<Vec<AnsweredCall>> {
        for call_id in &self.unpaired {
            if turns.iter().all(|pending| pending.turn.call_id_uses(call_id) == 0) {
                continue;
            }
            let found = find_answered_call(history, turns, call_id)?;
            let message = format!(
                "the call \"{call_id}\" of the tool \"{}\" is in the turn of a run that is not over, so history does not have it yet; store its \
                 result with `Session.answer`",
                found.call.name
            );
            return Err(Error::new(ErrorCode::WrongState, message));
        }
        self.stored.iter().map(|invocation| find_answered_call(history, turns, invocation)).collect()
    }
}
