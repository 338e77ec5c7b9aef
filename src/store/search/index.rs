//! What a search needs of each session: kept in memory between searches, and as a record in the store, so that the
//! first search after `open` need not read all heads.

use super::query::title_hashes;
use crate::clock::Ms;
use crate::encoding::encode_fields;
use crate::error::Result;
use crate::session_head::SessionHead;
use crate::store::{ListedBy, RecordKind, StoredHead, open_record, seal_record};
use crate::term_filter::TermFilter;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum size of what is kept, in bytes. Of more sessions than fit, all heads are read for each search.
pub(super) const MAX_KEPT_BYTES: usize = 32 * 1024 * 1024;

/// An index of fewer sessions is not stored: their heads are read in some 40 ms (Chromium, November 2026).
pub(super) const MIN_STORED_SESSIONS: usize = 512;

/// The size in memory of the largest index that is stored, in bytes: as much of the quota is taken from the chats.
pub(super) const MAX_STORED_BYTES: usize = 8 * 1024 * 1024;

/// When so many sessions have changed the index is stored again. The first search after the next `open` reads their
/// heads; of more than [`MAX_CHANGED_HEADS`](crate::store::MAX_CHANGED_HEADS) it would read all.
const MAX_UNSTORED_CHANGES: usize = 256;

/// Counts the changes of [`SearchedSession`] and of the hashes in it. A record of another form is not read: a field that
/// it lacks, or has in addition, would be missed.
const FORM: u32 = 1;

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
    /// The revision at which its history began, and how often messages were erased from it.
    pub born: u64,
    /// See `born`.
    pub erasures: u64,
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
    6 => born,
    7 => erasures,
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
            born: head.born,
            erasures: head.erasures,
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

    /// Returns true if the session has no more what this has of its texts and its title.
    fn has_more_than(&self, now: Option<&Self>) -> bool {
        let Some(now) = now else { return true };
        let is_kept = |hash: &u32| now.title_hashes.binary_search(hash).is_ok();
        (now.born, now.erasures) != (self.born, self.erasures)
            || self.terms.is_some() && now.terms.is_none()
            || !self.title_hashes.iter().all(is_kept)
    }
}

/// How the index in the store differs from this one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Stored {
    /// Nothing is known of it, or it is to be replaced.
    #[default]
    Unknown,
    /// It has what was erased or replaced since.
    Excessive,
    /// It lacks the changes of these sessions.
    Behind(BTreeSet<String>),
}

impl Stored {
    fn is_old(&self) -> bool {
        match self {
            Self::Unknown => false,
            Self::Excessive => true,
            Self::Behind(changed) => changed.len() >= MAX_UNSTORED_CHANGES,
        }
    }
}

/// All sessions of a store, as of one change of a head.
///
/// It is what was read of the heads, nothing more: whoever uses it brings it up to date first, by the changes that the
/// store numbers. Texts and titles are not in it, only hashes of their terms: what it selects is read before it is
/// found.
#[derive(Debug, Default)]
pub struct SearchIndex {
    /// The number of that change; none while nothing is kept.
    mark: Option<u64>,
    /// By id. None for a session whose head is damaged: it is read for each search.
    sessions: BTreeMap<String, Option<SearchedSession>>,
    bytes: usize,
    /// True if there was more than is kept.
    is_too_large: bool,
    stored: Stored,
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
            self.stored = Stored::Excessive;
            return;
        };
        let session = SearchedSession::of_stored(head);
        let before = self.sessions.get(&id).and_then(Option::as_ref);
        if before.is_some_and(|before| before.has_more_than(session.as_ref())) {
            self.stored = Stored::Excessive;
        } else if let Stored::Behind(changed) = &mut self.stored {
            changed.insert(id.clone());
        }
        self.keep(id, session);
    }

    /// Keeps what was read of the head of a session; none if it is damaged.
    pub fn keep(&mut self, id: String, session: Option<SearchedSession>) {
        self.bytes += kept_bytes(session.as_ref());
        if let Some(before) = self.sessions.insert(id, session) {
            self.bytes = self.bytes.saturating_sub(kept_bytes(before.as_ref()));
        }
        if self.bytes > MAX_KEPT_BYTES {
            *self = Self { is_too_large: true, stored: Stored::Excessive, ..Self::default() };
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

    /// Begins an index of all heads after this one could not be brought up to date.
    #[must_use]
    pub fn begin_again(&self, mark: u64) -> Self {
        let stored = if self.stored == Stored::Unknown { Stored::Unknown } else { Stored::Excessive };
        Self { stored, ..Self::starting_at(mark) }
    }

    /// Returns true if the store should have this index in place of its own.
    #[must_use]
    pub fn is_to_be_stored(&self) -> bool {
        let has_size = self.sessions.len() >= MIN_STORED_SESSIONS && self.bytes <= MAX_STORED_BYTES;
        let is_due = self.stored == Stored::Unknown || self.stored.is_old();
        // A head that cannot be read may be one for which another tab has the key.
        is_due && has_size && self.mark.is_some() && self.sessions.values().all(Option::is_some)
    }

    /// Returns true if the store has an old index, and this one is not to be stored instead.
    #[must_use]
    pub fn is_to_be_removed(&self) -> bool {
        self.stored.is_old() && !self.is_to_be_stored()
    }

    /// Makes the record for the store, and returns it with the change that it has. It counts as stored then.
    pub fn take_record(&mut self) -> Option<(u64, Bytes)> {
        let mark = self.mark?;
        self.set_stored();
        Some((mark, seal_index(mark, self.sessions.values().flatten().cloned().collect())))
    }

    /// Notes that the store has this index, or none.
    pub fn set_stored(&mut self) {
        self.stored = Stored::Behind(BTreeSet::new());
    }

    /// Notes that the store has another index than this one.
    pub fn set_unstored(&mut self) {
        self.stored = Stored::Excessive;
    }

    /// Reads a record that [`take_record`](Self::take_record) made; none if it is damaged, or of a build that
    /// compares other terms.
    #[must_use]
    pub fn of_record(record: &Bytes) -> Option<Self> {
        let (mark, sessions) = open_index(record)?;
        let mut index = Self::starting_at(mark);
        index.set_stored();
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

/// The content of the record.
#[derive(Default)]
struct StoredIndex {
    form: u32,
    /// The [`FORM`](TermFilter::FORM) of the terms.
    terms_form: u32,
    /// The newest change that it has.
    mark: u64,
    sessions: Vec<SearchedSession>,
}
encode_fields!(struct StoredIndex {
    0 => form,
    1 => terms_form,
    2 => mark,
    3 => sessions: list,
});

/// Makes the record.
fn seal_index(mark: u64, sessions: Vec<SearchedSession>) -> Bytes {
    let index = StoredIndex { form: FORM, terms_form: TermFilter::FORM, mark, sessions };
    seal_record(RecordKind::SearchIndex, &index)
}

/// Reads the record; none if this build cannot use it.
fn open_index(record: &Bytes) -> Option<(u64, Vec<SearchedSession>)> {
    let read: Result<StoredIndex> = open_record(RecordKind::SearchIndex, record);
    let index = read.ok().filter(|index| (index.form, index.terms_form) == (FORM, TermFilter::FORM))?;
    Some((index.mark, index.sessions))
}
