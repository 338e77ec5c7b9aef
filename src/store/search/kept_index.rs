//! The index of a search in the store, so that the first search after `open` need not read all heads.
//!
//! It is a copy of what heads say, and may be removed at any time. It has hashes of terms and no texts.

use super::index::SearchedSession;
use crate::encoding::encode_fields;
use crate::error::Result;
use crate::store::{RecordKind, StoreFuture, open_record, seal_record};
use crate::term_filter::TermFilter;
use bytes::Bytes;

/// A store that keeps one record of an index, of all sessions, beside them.
///
/// What [deletes](crate::store::LogStore::delete_session) a session or [erases](crate::store::LogStore::erase_overwritten)
/// what was overwritten removes the record.
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
}

/// What the record has.
#[derive(Default)]
struct KeptIndex {
    /// The [`FORM`](TermFilter::FORM) of all terms in it.
    form: u32,
    /// The newest change that it has.
    mark: u64,
    sessions: Vec<SearchedSession>,
}
encode_fields!(struct KeptIndex {
    0 => form,
    1 => mark,
    2 => sessions: list,
});

/// Makes the record.
pub(super) fn seal_index(mark: u64, sessions: Vec<SearchedSession>) -> Bytes {
    seal_record(RecordKind::SearchIndex, &KeptIndex { form: TermFilter::FORM, mark, sessions })
}

/// Reads the record; none if this build cannot use it.
pub(super) fn open_index(record: &Bytes) -> Option<(u64, Vec<SearchedSession>)> {
    let read: Result<KeptIndex> = open_record(RecordKind::SearchIndex, record);
    read.ok().filter(|index| index.form == TermFilter::FORM).map(|index| (index.mark, index.sessions))
}
