//! Which texts of a session are searched, and the filter of their terms, which the append keeps up to date.

use super::query::hash_terms;
use crate::history::HistoryEntry;
use crate::json::JsonStr;
use crate::message::{Message, PartBody, Role};
use crate::session_head::SessionHead;
use crate::store::SessionLog;
use crate::term_filter::TermFilter;
use std::collections::BTreeSet;

/// Returns the texts of a message that are searched: what the user or the model said. Reasoning, and what tools were
/// called with and returned, is left out.
pub fn searched_texts(message: &Message) -> impl DoubleEndedIterator<Item = &JsonStr> {
    let is_said = matches!(message.role, Role::User | Role::Assistant);
    message.parts.iter().filter(move |_| is_said).filter_map(|part| match &part.body {
        PartBody::Text(text) => Some(text),
        _ => None,
    })
}

fn add_terms_of(message: &Message, hashes: &mut BTreeSet<u32>) {
    searched_texts(message).for_each(|text| hash_terms(&text.decode(), hashes));
}

/// Returns the filter of a session that has these messages alone, at this revision of its history.
pub fn filter_of(messages: &[Message], history_revision: u64) -> TermFilter {
    let mut hashes = BTreeSet::new();
    messages.iter().for_each(|message| add_terms_of(message, &mut hashes));
    let mut filter = TermFilter::default();
    filter.add(&hashes.into_iter().collect::<Vec<_>>());
    filter.set_revision(history_revision);
    filter
}

impl SessionLog {
    /// Brings the filter of the new head up to date with the entries of an append.
    ///
    /// A filter that does not cover the history before, which an older build wrote or an erasure dropped, is made anew
    /// of the whole history; not where there are other branches, whose texts this log does not have. Without one, a
    /// search reads the texts.
    pub(in crate::store) fn add_terms(&self, head: &mut SessionHead, entries: &[HistoryEntry]) {
        let is_covered = self.head.term_filter.covers(self.head.history_revision);
        // What cannot be read now may be readable later.
        let is_complete = self.is_whole() && self.findings.is_empty() && self.read_failure().is_none();
        let is_complete = is_complete && head.branch_count == 0;
        if entries.is_empty() || !is_covered && !is_complete {
            return;
        }
        let mut hashes = BTreeSet::new();
        let mut add = |message: &Message| add_terms_of(message, &mut hashes);
        if !is_covered {
            head.term_filter = TermFilter::default();
            self.history.messages().iter().for_each(&mut add);
        }
        for entry in entries {
            if let HistoryEntry::Message(message) = entry {
                add(message);
            }
        }
        let hashes: Vec<u32> = hashes.into_iter().collect();
        head.term_filter.add(&hashes);
        head.term_filter.set_revision(head.history_revision);
    }
}
