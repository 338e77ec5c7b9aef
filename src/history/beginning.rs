//! The beginning of a history.

use super::entry::HistoryEntry;
use super::fold::History;

impl History {
    /// Returns a history of the first messages, so many, with their calls as they are now.
    #[must_use]
    pub fn beginning(&self, count: usize) -> Self {
        let mut beginning = Self::new(self.seed());
        for message in self.messages().iter().take(count) {
            beginning.apply(HistoryEntry::Message(message.clone()));
            for call in self.calls_of(message) {
                beginning.apply(HistoryEntry::Invocation(call.clone()));
            }
        }
        beginning
    }
}
