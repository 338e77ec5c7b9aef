//! What a search needs of each session, kept in memory between searches.

use super::kept_index::{open_index, seal_index};
use super::query::title_hashes;
use crate::clock::Ms;
use crate::encoding::encode_fields;
use crate::session_head::SessionHead;
use crate::store::{ListedBy, RecordKind, StoredHead, open_record};
use crate::term_filter::TermFilter;
use bytes::Bytes;
use std::collections::BTreeMap;

/// Maximum size of what is kept, in bytes. Of more sessions than fit, all heads are read for each search.
pub(super) const MAX_KEPT_BYTES: usize = 32 * 1024 * 1024;

/// Fewer sessions are not written to the store: reading their heads takes no time to speak of.
pub(super) const MIN_WRITTEN: usize = 512;

/// After so many changes the index is written again: the next open reads as many heads, and reads all if there are more
/// than [`MAX_CHANGED_HEADS`](crate::store::MAX_CHANGED_HEADS).
const MAX_UNWRITTEN: usize = 256;

/// About what the allocations of a session in the index need besides its texts and terms.
const OVERHEAD: usize = 64;

/// What a search needs of a session before it reads texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchedSession {
    /// The session's id.
    pub id: String,
    /// When its history changed last.
    pub updated_at: Ms,
    /// The hashes of the terms of its title, sorted.
    pub title_hashes: Vec<u32>,
    /// Its channel.
    pub channel: Option<String>,
    /// True if lists leave it out.
    pub is_archived: bool,
    /// The terms of its texts; none if they are not known, and the texts are to be read.
    pub terms: Option<TermFilter>,
}
encode_fields!(struct SearchedSession {
    0 => id,
    1 => updated_at,
    2 => title_hashes: list,
    3 => channel,
    4 => is_archived,
    5 => terms,
});

impl SearchedSession {
    /// Returns what the head of a session says.
    #[must_use]
    pub fn of(head: SessionHead) -> Self {
        Self {
            updated_at: ListedBy::of(&head).updated_at,
            terms: head.term_filter.covers(head.history_revision).then_some(head.term_filter),
            title_hashes: head.title.as_deref().map(title_hashes).unwrap_or_default(),
            id: head.id,
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
        let channel = self.channel.as_ref().map_or(0, String::len);
        let terms = self.terms.as_ref().map_or(0, TermFilter::byte_length);
        size_of::<Self>() + OVERHEAD + 2 * self.id.len() + channel + size_of_val(self.title_hashes.as_slice()) + terms
    }

    /// Returns true if it has terms that the session has no more.
    fn has_lost(&self, now: Option<&Self>) -> bool {
        let length = |session: &Self| session.terms.as_ref().map(TermFilter::byte_length);
        now.is_none_or(|now| length(now) < length(self))
    }
}

/// All sessions of a store, as of one change of a head.
///
/// It is what was read of the heads, nothing more: whoever uses it brings it up to date first, by the changes that the
/// store numbers. Texts and titles are not in it, so that no erased one is found by it.
#[derive(Debug, Default)]
pub struct SearchIndex {
    /// The number of that change; none while nothing is kept.
    mark: Option<u64>,
    /// By id. None for a session whose head is damaged: it is read for each search.
    sessions: BTreeMap<String, Option<SearchedSession>>,
    bytes: usize,
    /// True if there was more than is kept.
    is_too_large: bool,
    /// How many sessions have changed since it was written to the store; none if it is to be written.
    changed_since_written: Option<usize>,
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
                self.changed_since_written = None;
            }
            return;
        };
        let session = SearchedSession::of_stored(head);
        let before = self.sessions.get(&id).and_then(Option::as_ref);
        let has_lost = before.is_some_and(|before| before.has_lost(session.as_ref()));
        self.changed_since_written = self.changed_since_written.filter(|_| !has_lost).map(|count| count + 1);
        self.keep(id, session);
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

    /// Returns the record of an index that the store should have in place of its own, and the change of its mark. It
    /// counts as written then.
    pub fn record_to_write(&mut self) -> Option<(u64, Bytes)> {
        let is_recent = self.changed_since_written.is_some_and(|count| count < MAX_UNWRITTEN);
        // A head that cannot be read may be one for which another tab has the key.
        let is_whole = || self.sessions.values().all(Option::is_some);
        let mark = self.mark.filter(|_| !is_recent && self.sessions.len() >= MIN_WRITTEN && is_whole())?;
        let sessions = self.sessions.values().flatten().cloned().collect();
        self.changed_since_written = Some(0);
        Some((mark, seal_index(mark, sessions)))
    }

    /// Notes that the record was not written.
    pub fn set_unwritten(&mut self) {
        self.changed_since_written = None;
    }

    /// Reads a record that [`record_to_write`](Self::record_to_write) made; none if it is damaged, or of a build that
    /// compares other terms.
    #[must_use]
    pub fn of_record(record: &Bytes) -> Option<Self> {
        let (mark, sessions) = open_index(record)?;
        let mut index = Self { changed_since_written: Some(0), ..Self::starting_at(mark) };
        for session in sessions {
            index.keep(session.id.clone(), Some(session));
        }
        Some(index)
    }

    /// The size of what is kept, in bytes.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}
