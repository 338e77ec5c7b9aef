//! The beginning of a history.

use super::entry::HistoryEntry;
use super::fold::History;

impl History {
    /// Returns a history of the first `count` messages, with their calls as they are now, as the request had it that the
    /// next message answers: of the late results that these messages do not list, those of the next one end it.
    #[must_use]
    pub fn beginning(&self, count: usize) -> Self {
        let mut beginning = Self::new(self.seed());
        for message in self.messages().iter().take(count) {
            beginning.apply(HistoryEntry::Message(message.clone()));
            for call in self.calls_of(message) {
                beginning.apply(HistoryEntry::Invocation(call.clone()));
            }
        }
        let end = self.messages().get(count).map(|next| next.late_results.clone()).unwrap_or_default();
        beginning.set_end(end);
        beginning
    }
}
