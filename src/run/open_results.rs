//! Results of the run's tools that are not stored yet.

use super::machine::Run;

impl Run {
    /// Returns true if a tool runs, or a result of one waits to be stored by another save than `save`.
    #[must_use]
    pub fn has_open_results(&self, save: Option<u64>) -> bool {
        self.state.tools().is_some_and(|tools| tools.has_open_results(save))
    }

    /// Returns true for a save that says what happened in the present round of tools, and starts none.
    #[must_use]
    pub fn is_record_of_tools(&self, save: u64) -> bool {
        self.state.tools().is_some_and(|tools| tools.is_record(save))
    }
}
