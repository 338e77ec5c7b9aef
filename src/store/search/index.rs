//! What a search needs of each session, kept in memory between searches.

use crate::clock::Ms;
use crate::session_head::SessionHead;
use crate::store::{ListedBy, RecordKind, StoredHead, open_record};
use crate::term_filter::TermFilter;
use std::collections::BTreeMap;

/// Maximum size of what is kept, in bytes. Of more sessions than fit, all heads are read for each search.
pub(super) const MAX_KEPT_BYTES: usize = 32 * 1024 * 1024;

/// About what the allocations of a session in the index need besides its texts and terms.
const OVERHEAD: usize = 64;

/// What a search needs of a session before it reads texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchedSession {
    /// The session's id.
    pub id: String,
    /// When its history changed last.
    pub updated_at: Ms,
    /// Its title.
    pub title: Option<String>,
    /// Its channel.
    pub channel: Option<String>,
    /// True if lists leave it out.
    pub is_archived: bool,
    /// The terms of its texts; none if they are not known, and the texts are to be read.
    pub terms: Option<TermFilter>,
}

impl SearchedSession {
    /// Returns what the head of a session says.
    #[must_use]
    pub fn of(head: SessionHead) -> Self {
        Self {
            updated_at: ListedBy::of(&head).updated_at,
            terms: head.term_filter.covers(head.history_revision).then_some(head.term_filter),
            id: head.id,
            title: head.title,
            channel: head.channel,
            is_archived: head.is_archived,
        }
    }

    /// Reads a stored head; none if it is damaged.
    #[must_use]
    pub fn of_stored(head: &StoredHead) -> Option<Self> {
        open_record::<SessionHead>(RecordKind::Head, &head.value).ok().map(Self::of)
    }

    fn kept_bytes(&self) -> usize {
        let texts = [&self.title, &self.channel].into_iter().flatten().map(String::len).sum::<usize>();
        let terms = self.terms.as_ref().map_or(0, TermFilter::byte_length);
        size_of::<Self>() + OVERHEAD + 2 * self.id.len() + texts + terms
    }
}

/// All sessions of a store, as of one change of a head.
///
/// It is what was read of the heads, nothing more: whoever uses it brings it up to date first, by the changes that the
/// store numbers. Texts are not in it, so that an erased text cannot be found by it.
#[derive(Debug, Default)]
pub struct SearchIndex {
    /// The number of that change; none while nothing is kept.
    mark: Option<u64>,
    /// By id. None for a session whose head is damaged: it is read for each search.
    sessions: BTreeMap<String, Option<SearchedSession>>,
    bytes: usize,
    /// True if there was more than is kept.
    is_too_large: bool,
}

/// The size of what is kept of a session; none of one whose head is damaged.
fn kept_bytes(session: Option<&SearchedSession>) -> usize {
    session.map_or(OVERHEAD, SearchedSession::kept_bytes)
}

impl SearchIndex {
    /// Begins an index of all sessions that the store has after this change.
    #[must_use]
    pub fn starting_at(mark: u64) -> Self {
        Self { mark: Some(mark), ..Self::default() }
    }

    /// Returns the change up to which the index has all sessions; none if it has nothing.
    #[must_use]
    pub fn mark(&self) -> Option<u64> {
        self.mark
    }

    /// Returns true if nothing is kept because there was too much.
    #[must_use]
    pub fn is_too_large(&self) -> bool {
        self.is_too_large
    }

    /// Sets a session, or removes one that has no head.
    pub fn set(&mut self, id: String, head: Option<&StoredHead>) {
        let Some(head) = head else {
            if let Some(removed) = self.sessions.remove(&id) {
                self.bytes = self.bytes.saturating_sub(kept_bytes(removed.as_ref()));
            }
            return;
        };
        self.keep(id, SearchedSession::of_stored(head));
    }

    /// Keeps what was read of the head of a session; none if it is damaged.
    pub fn keep(&mut self, id: String, session: Option<SearchedSession>) {
        self.bytes += kept_bytes(session.as_ref());
        if let Some(before) = self.sessions.insert(id, session) {
            self.bytes = self.bytes.saturating_sub(kept_bytes(before.as_ref()));
        }
        if self.bytes > MAX_KEPT_BYTES {
            *self = Self { is_too_large: true, ..Self::default() };
        }
    }

    /// Sets the change up to which the index has all sessions, if it has any.
    pub fn move_to(&mut self, mark: u64) {
        self.mark = self.mark.map(|_| mark);
    }

    /// Returns the sessions.
    pub fn sessions(&self) -> impl Iterator<Item = &SearchedSession> {
        self.sessions.values().flatten()
    }

    /// Returns the ids of those whose head is damaged.
    #[must_use]
    pub fn damaged(&self) -> Vec<String> {
        self.sessions.iter().filter(|(_, session)| session.is_none()).map(|(id, _)| id.clone()).collect()
    }

    /// The size of what is kept, in bytes.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}
