//! Finds and adds the summaries of a history.

use super::fold::History;
use super::stored_summary::{Coverage, StoredSummary};
use super::summary_index::ActiveSummary;
use crate::message::Dialect;

impl History {
    /// Returns what a summary of the messages before the index `end` covers; `None` if there are none.
    #[must_use]
    pub fn coverage(&self, end: usize) -> Option<Coverage> {
        let last = end.checked_sub(1)?;
        self.summaries().coverage(last, &self.messages().get(last)?.id)
    }

    /// Returns true if a summary of these messages applies: all of them are here, and none of their calls was answered
    /// later.
    #[must_use]
    pub fn covers(&self, coverage: &Coverage) -> bool {
        self.summaries().covered_end(coverage).is_some()
    }

    /// Returns the compaction that applies.
    #[must_use]
    pub fn compaction(&self) -> Option<&ActiveSummary> {
        self.summary_of(None)
    }

    /// Returns the newest compaction that applies and that a request of the dialect may contain.
    #[must_use]
    pub fn compaction_for(&self, dialect: Option<Dialect>) -> Option<&ActiveSummary> {
        self.compaction_where(&|summary| summary.is_for(dialect))
    }

    /// Returns the newest compaction that applies and for which `reads` returns true.
    #[must_use]
    pub fn compaction_where(&self, reads: &dyn Fn(&ActiveSummary) -> bool) -> Option<&ActiveSummary> {
        self.summaries().compaction_where(reads)
    }

    /// Returns the summary that applies: that of the reducer, or with `None` the compaction.
    #[must_use]
    pub fn summary_of(&self, reducer_hash: Option<u64>) -> Option<&ActiveSummary> {
        self.summaries().newest_of(reducer_hash)
    }

    /// Returns true if a summary applies, and covers more messages than the current one of the same kind.
    #[must_use]
    pub fn accepts_summary(&self, summary: &StoredSummary) -> bool {
        self.accepted_end(summary).is_some()
    }

    /// Returns the index after the last message that a summary covers, if the history accepts it.
    fn accepted_end(&self, summary: &StoredSummary) -> Option<usize> {
        let current = self.summary_of(summary.reducer_hash).map_or(0, |current| current.end);
        self.summaries().covered_end(&summary.coverage).filter(|end| *end > current)
    }

    /// Adds a summary, if it applies.
    pub fn apply_summary(&mut self, stored: StoredSummary) {
        let Some(end) = self.accepted_end(&stored) else { return };
        let first = self.messages().iter().take_while(|message| message.is_system()).count();
        self.summaries_mut().add(ActiveSummary { stored, first, end });
    }
}
