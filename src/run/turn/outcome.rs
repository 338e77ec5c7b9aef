//! The outcome of a run, from its turn.

use super::RunData;
use crate::history::{History, stored_result};
use crate::run::late_results::open_calls;
use crate::run::outcome::{RunOutcome, RunStatus};

impl RunData {
    /// Returns the outcome so far with this status.
    pub fn outcome(&self, status: RunStatus) -> RunOutcome {
        RunOutcome {
            status,
            error: None,
            text: self.totals.text.clone(),
            model_calls: self.totals.model_calls,
            usage: self.totals.usage,
            report: self.report.clone(),
            revision: 0,
            branch: 0,
            saved: false,
            message_ids: self.own_messages().map(|message| message.id.clone()).collect(),
            response_id: self.totals.response_id.clone(),
            conversation_id: self.conversation_id(),
            open_calls: open_calls(&self.live),
            replay: None,
        }
    }

    /// Returns the outcome without the open calls that another writer has answered.
    pub fn outcome_without_answered_calls(&self, status: RunStatus, history: &History) -> RunOutcome {
        let mut outcome = self.outcome(status);
        outcome.open_calls.retain(|call| stored_result(history, &call.invocation).is_none());
        outcome
    }

    fn conversation_id(&self) -> Option<String> {
        self.totals.conversation_id.clone().or_else(|| self.setup.owner.conversation_id().map(ToOwned::to_owned))
    }
}
