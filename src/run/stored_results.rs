//! Calls of a run that other writers answer (R75).

use super::late_results::take_stored_results;
use super::machine::Run;
use super::setup::ToolTiming;
use crate::history::History;
use crate::tool::ToolInvocation;

impl Run {
    /// Returns true if the run itself waits for the result of a call: its tool is not asynchronous.
    #[must_use]
    pub fn awaits_tool(&self, call: &ToolInvocation) -> bool {
        let settings = self.turn.setup().tool_settings.get(&call.name);
        !call.is_deferred && settings.is_none_or(|settings| settings.timing == ToolTiming::InRun)
    }

    /// Adds to the turn the results of its open calls that other writers have stored, for a view. The next request
    /// contains them.
    pub fn take_stored_results(&mut self, history: &History) {
        take_stored_results(&mut self.turn, history);
    }
}
