//! The index of a search in the store, so that the first search after `open` need not read all heads.
//!
//! It is a copy of what heads say, and may be removed at any time. It has hashes of terms and no texts.

use super::index::SearchedSession;
use crate::encoding::encode_fields;
use crate::error::Result;
use crate::store::{RecordKind, StoreFuture, open_record, seal_record};
use crate::term_filter::TermFilter;
use bytes::Bytes;

/// Counts the changes of [`SearchedSession`] and of the hashes in it. A record of another form is not read: a field that
/// it lacks, or has in addition, would be missed.
const FORM: u32 = 1;

/// A store that has one record of an index, of all sessions, beside them.
///
/// What [deletes](crate::store::LogStore::delete_session) a session, and an append that
/// [erases](crate::store::Batch::erases), removes the record in the same transaction.
pub trait SearchIndexStore {
    /// Returns the record; none if there is none.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn read_index(&self) -> StoreFuture<'_, Option<Bytes>>;

    /// Writes the record of an index that has all changes up to `mark`, in place of the one before. Returns false, and
    /// writes nothing, if a head has changed since: what it was may be erased by now.
    ///
    /// # Errors
    /// If the store cannot be written to.
    fn write_index(&self, mark: u64, record: Bytes) -> StoreFuture<'_, bool>;

    /// Removes the record.
    ///
    /// # Errors
    /// If the store cannot be written to.
    fn remove_index(&self) -> StoreFuture<'_, ()>;
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
pub(super) fn seal_index(mark: u64, sessions: Vec<SearchedSession>) -> Bytes {
    let index = StoredIndex { form: FORM, terms_form: TermFilter::FORM, mark, sessions };
    seal_record(RecordKind::SearchIndex, &index)
}

/// Reads the record; none if this build cannot use it.
pub(super) fn open_index(record: &Bytes) -> Option<(u64, Vec<SearchedSession>)> {
    let read: Result<StoredIndex> = open_record(RecordKind::SearchIndex, record);
    let index = read.ok().filter(|index| (index.form, index.terms_form) == (FORM, TermFilter::FORM))?;
    Some((index.mark, index.sessions))
}
