//! The store contract, [`LogStore`]: a log per session, appended to atomically if the head has the expected revision.
//!
//! A store keeps bytes and compares revisions; it does not interpret the bytes. The contract is async and independent
//! of an executor. Every store passes the suite in [`conformance`].

mod additions;
mod adopted_entries;
mod adoption;
mod append;
mod appended;
mod archive;
mod archive_lines;
mod audit;
mod audit_pages;
mod audit_query;
mod backup;
mod branch_appends;
mod branch_directory;
mod branch_write;
mod branching;
mod capabilities;
mod clear;
mod conflict_side;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod copy;
mod delete;
mod encrypted;
mod erasure;
mod exclusive_run;
mod expected_run;
mod head_changes;
mod id_collisions;
mod journal;
pub mod kv;
mod listing;
mod log;
mod log_additions;
mod log_tail;
mod memory;
mod merge;
mod merge_queue;
mod newest;
mod numbering;
mod open;
mod operations;
mod overview;
mod partial_read;
mod queue_turn;
mod read_mark;
mod rebuild;
mod recency;
mod record;
pub mod remote;
mod reply_checks;
mod rotation;
mod search;
mod second_results;
mod segment;
pub mod sql;
mod stored_head;

pub use adoption::{adopt_conflict_side, is_repeated_adoption};
pub use append::{Committed, commit};
pub use appended::Appended;
pub use archive::SessionArchive;
pub use archive_lines::ArchiveDescriptions;
pub use audit::AuditRow;
pub use audit_pages::AuditPages;
pub use audit_query::{AuditIndex, AuditQuery};
pub(crate) use audit_query::{audit_cursor, open_audit_cursor};
pub use backup::{BackupItem, BackupReader, BackupWriter};
pub use branch_directory::{AdoptedSide, BranchDirectory, BranchRow, MAIN_BRANCH, RenamedId, branch_name};
pub use branching::{open_fork, read_all_branches, read_branch, refresh_directory, reopen_fork};
pub use capabilities::Capabilities;
pub use clear::clear_session;
pub use conflict_side::open_conflict_side;
pub use copy::SessionCopy;
pub use delete::delete_session;
pub use encrypted::{Cipher, EncryptedStore, PlacedValue, UnwrappedKey};
pub use erasure::{Erasure, ErasureReceipt, Unreached, erase_messages, finish_erasure, messages_erased_with};
pub use exclusive_run::ExclusiveRun;
pub use expected_run::ExpectedRun;
pub use head_changes::{ChangedHead, HeadChanges, MAX_CHANGED_HEADS};
pub use journal::{JournalChange, JournalMark, JournalStep, check_lease, read_journal, read_journal_from};
pub use listing::{ListedBy, RecencyQuery};
pub use log::{Change, ConflictPause, HeadEdit, NoticeText, SessionLog};
pub use memory::MemoryStore;
pub use merge::{MergeOutcome, merge_oldest};
pub use open::{open_session, open_session_tail, read_head, read_older, refresh, unreadable_head};
pub(crate) use operations::Operations;
pub use operations::REMEMBERED_OPERATIONS;
pub use partial_read::ReadFailure;
pub use queue_turn::QueueTurn;
pub use read_mark::ReadMark;
pub use recency::{RecentSessions, SessionPosition, recent_sessions};
#[cfg(any(test, feature = "conformance"))]
pub use record::seal_payload;
pub use record::{MAX_RECORD_BYTES, RecordKind, StoredValue, open_record, open_whole_record, seal_record};
pub use reply_checks::{MIN_VALUE_BYTES, check_page, check_records};
pub use rotation::rotate_key;
pub use search::{Excerpt, MessageExcerpt, SearchHit, SearchIndex, SearchedSession, SessionSearch};
pub use segment::split_segment;
pub use stored_head::StoredHead;

use crate::error::{Error, ErrorCode, Result};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;

/// A future that need not be `Send`.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + 'a>>;

/// Returns the query of the records that are read together with a head, if there are any to read.
pub type RecordSelector = Box<dyn Fn(&StoredHead) -> Option<Query>>;

/// Takes records as they arrive.
pub type RecordSink<'a> = &'a mut (dyn FnMut(Vec<Record>) + 'a);

/// The tables beside the heads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Table {
    /// What happened.
    Log,
    /// The audit table.
    ToolInvocations,
    /// Journals of unfinished runs.
    Runs,
}

impl Table {
    /// Returns the name that databases and JavaScript have for the table.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::ToolInvocations => "tool_invocations",
            Self::Runs => "runs",
        }
    }

    /// Returns the table of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Log, Self::ToolInvocations, Self::Runs].into_iter().find(|table| table.as_str() == name)
    }
}

/// A stored record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The table.
    pub table: Table,
    /// The key within session and table, at most [`MAX_KEY`].
    pub key: u64,
    /// The last key of a segment; `key` is the first. Only the log has segments.
    pub last_key: Option<u64>,
    /// The indexed fields of an audit row.
    pub index: Option<AuditIndex>,
    /// The bytes.
    pub value: Bytes,
}

impl Record {
    /// Returns true if the record has the key: as its own, or as one of its segment.
    #[must_use]
    pub fn spans(&self, key: u64) -> bool {
        (self.key..=self.last_key.unwrap_or(self.key)).contains(&key)
    }
}

/// Names a log record of a session.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogKey {
    /// The session's id.
    pub session: String,
    /// The key in its log.
    pub key: u64,
}

/// What one append writes. It is written as a whole or not at all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// The new head.
    pub head: Bytes,
    /// The session's channel, for listing by it.
    pub channel: Option<String>,
    /// What else the session is listed by.
    pub listed_by: ListedBy,
    /// The lowest revision that the append may have. A rebuilt head continues above all revisions that a reader may
    /// have seen.
    pub at_least: u64,
    /// New records. They never overwrite a record: see [`Appended::Occupied`].
    pub put: Vec<Record>,
    /// Records that replace those of the same key and their index, if there are any.
    pub replace: Vec<Record>,
    /// Records to remove before others are written. Absent ones are ignored.
    pub remove: Vec<(Table, u64)>,
    /// True if it erases or replaces messages: [a copy of heads](SearchIndexStore) is removed with it.
    pub erases: bool,
    /// Text for the store's other users, of a store that [sends notices](LogStore::sends_notices): sent if the batch is
    /// written.
    pub notice: Option<String>,
}

impl Batch {
    /// Checks that a store can keep the batch, before anything is written.
    ///
    /// # Errors `too_large` for a value above the store's limit; `invalid_input` for a key above [`MAX_KEY`], a segment
    /// whose last key is below its first, or an empty operation name.
    pub fn check(&self, operation: &str, max_value_bytes: u64) -> Result<()> {
        if operation.is_empty() {
            return Err(Error::invalid("an append needs the name of its operation, so that it can be repeated"));
        }
        let written = || self.put.iter().chain(&self.replace);
        let large = written().find(|record| record.value.len() as u64 > max_value_bytes);
        let large = large.map_or(self.head.len(), |record| record.value.len()) as u64;
        if large > max_value_bytes {
            return Err(Error::new(
                ErrorCode::TooLarge,
                format!(
                    "a record of {large} bytes is above this store's limit of {max_value_bytes}; nothing was written"
                ),
            ));
        }
        for record in written() {
            check_keys(record.key, record.last_key.unwrap_or(record.key))?;
        }
        for (_, key) in &self.remove {
            check_keys(*key, *key)?;
        }
        Ok(())
    }

    /// Returns the records that the batch writes, in the order of tables and keys. Of several with one key the last one
    /// is written.
    pub(crate) fn written(&self) -> Vec<&Record> {
        let mut records = BTreeMap::new();
        for record in self.put.iter().chain(&self.replace) {
            records.insert((record.table, record.key), record);
        }
        records.into_values().collect()
    }
}

fn check_keys(key: u64, last: u64) -> Result<()> {
    if last <= MAX_KEY && last >= key {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "a record cannot have the keys {key} to {last}; they rise and stay at or below {MAX_KEY}"
    )))
}

/// Size of the pages in which records are read, in bytes.
pub(crate) const PAGE_BYTES: u64 = 1024 * 1024;

/// Size of the parts in which a log is read, in bytes.
const PART_BYTES: u64 = 4 * 1024 * 1024;

/// Which records to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Query {
    /// The table.
    pub table: Table,
    /// The first key, inclusive.
    pub from: u64,
    /// The last key, inclusive.
    pub to: u64,
    /// Newest first.
    pub reverse: bool,
    /// Stops after the record with which the values reach this size, in bytes. At least one record is returned, if
    /// there is one.
    pub limit_bytes: u64,
    /// Number of records that are expected to be enough, 0 if unknown. A hint for the size of a store's first request.
    pub expected_records: u64,
}

impl Query {
    /// All records of a table.
    #[must_use]
    pub fn all(table: Table) -> Self {
        Self { table, from: 0, to: MAX_KEY, reverse: false, limit_bytes: u64::MAX, expected_records: 0 }
    }
}

/// The largest key, 2^53 - 1: exact as a JavaScript number.
pub const MAX_KEY: u64 = (1 << 53) - 1;

/// Number of items in a page if the caller sets no limit.
pub const PAGE: usize = 100;

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// In key order.
    pub items: Vec<T>,
    /// Opaque position of the next page; none for the last page.
    pub cursor: Option<String>,
}

/// A session in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRow {
    /// The session's id.
    pub id: String,
    /// Its head.
    pub head: StoredHead,
}

/// A side of a fork that is not the session's history. Only stores without compare-and-append have any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredBranch {
    /// Names the side; it changes when the side grows.
    pub id: String,
    /// Its head.
    pub head: Bytes,
    /// The head where the sides part; none if they share nothing.
    pub fork_head: Option<Bytes>,
    /// The log records that are on this side alone.
    pub log: Vec<Record>,
}

/// An append as a store keeps it that writes each value once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RetainedAppend {
    /// Names the append in its session. A side of a fork has the name of its last append.
    pub id: String,
    /// The name of the append that it follows.
    pub parent: Option<String>,
    /// True if it is not part of the session's history, but of another side of a fork.
    pub is_of_conflict: bool,
    /// True if its value cannot be read: it has no content.
    pub is_damaged: bool,
    /// The head that it wrote.
    pub head: Bytes,
    /// The records that it wrote.
    pub records: Vec<Record>,
}

/// A store that has one record of a search's index beside the sessions. What [deletes](LogStore::delete_session) a
/// session, and an append that [erases](Batch::erases), removes it in the same transaction. Errors are the store's own.
pub trait SearchIndexStore {
    /// Returns the record; none if there is none.
    fn read_index(&self) -> StoreFuture<'_, Option<Bytes>>;

    /// Writes the record of an index that has all changes up to `mark`, in place of the one before. Returns false, and
    /// writes nothing, if a head has changed since: what it was may be erased by now.
    fn write_index(&self, mark: u64, record: Bytes) -> StoreFuture<'_, bool>;

    /// Removes the record.
    fn remove_index(&self) -> StoreFuture<'_, ()>;
}

/// The contract of a store. Revision 0 is an absent session. Deleting a session leaves a tombstone whose revision goes
/// on, so that a stale writer cannot restore the session by appending to the revision that it read last.
pub trait LogStore {
    /// Returns what this store can do.
    fn capabilities(&self) -> Capabilities;

    /// Returns true if the platform has removed the data since the store was opened.
    fn was_evicted(&self) -> bool {
        false
    }

    /// Returns true if an append sends the [notice](Batch::notice) of its batch, in the same transaction.
    fn sends_notices(&self) -> bool {
        false
    }

    /// Counts how often the session's history was replaced by another side of a fork, as far as this handle has read.
    /// Always 0 where [`Capabilities::compare_and_append`] is true.
    fn lineage(&self, _session: &str) -> u64 {
        0
    }

    /// Returns the other sides of the session's forks.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn branches<'a>(&'a self, _session: &'a str) -> StoreFuture<'a, Vec<StoredBranch>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    /// Drops from memory what can be read again of a session that nobody holds any more.
    fn drop_cached_values(&self, _session: &str) {}

    /// Counts the forks that this handle has met in the session: places where two writers appended at once.
    fn fork_count(&self, _session: &str) -> u64 {
        0
    }

    /// Returns true if a replaced key of the application had wrapped the key of the head that was read last; none if
    /// that is not known any more.
    fn has_replaced_key(&self, _session: &str) -> Option<bool> {
        Some(false)
    }

    /// Returns true if [`pack`](Self::pack) is worth its writes.
    fn needs_packing(&self, _session: &str) -> bool {
        false
    }

    /// Writes the session's newest appends once more in a form that is read with fewer requests. Changes nothing else;
    /// for idle moments.
    ///
    /// # Errors
    /// If the store cannot be written to.
    fn pack<'a>(&'a self, _session: &'a str) -> StoreFuture<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    /// Returns a page of the values of earlier appends, of a store that writes each value once and keeps it: those of
    /// other sides of forks, too. Where values are overwritten there are none.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn retained<'a>(&'a self, _session: &'a str, _cursor: Option<&'a str>) -> StoreFuture<'a, Page<RetainedAppend>> {
        Box::pin(async { Ok(Page { items: Vec::new(), cursor: None }) })
    }

    /// Replaces the values of earlier appends. The session stays as it is: replaced are only records that later appends
    /// have replaced or removed.
    ///
    /// # Errors
    /// If the store cannot be written to. Some values may be replaced; repeat the call.
    fn rewrite_retained<'a>(&'a self, _session: &'a str, _changed: Vec<RetainedAppend>) -> StoreFuture<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    /// Removes what the store still has of values that were overwritten, as far as it can: copies, a log of changes.
    ///
    /// # Errors
    /// If the store cannot be written to.
    fn erase_overwritten<'a>(&'a self, _session: &'a str) -> StoreFuture<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    /// Releases memory and connections. Calls in progress end; there are none afterwards.
    ///
    /// # Errors
    /// The error of the connection that could not be closed. The store counts as closed nevertheless.
    fn close(&self) -> StoreFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    /// Returns the head; none for an absent or deleted session. A damaged session has a head without bytes.
    ///
    /// # Errors
    /// If the store cannot be read. The result is never empty instead.
    fn head<'a>(&'a self, session: &'a str) -> StoreFuture<'a, Option<StoredHead>>;

    /// Writes the batch if the head has the revision `expected`; 0 for an absent session. For a deleted one,
    /// [`Appended::Conflict`] returns the tombstone's revision, which is to be expected next. Repeating an `operation`
    /// returns its revision again, as long as fewer than [`REMEMBERED_OPERATIONS`] others followed.
    ///
    /// # Errors `quota_exceeded`, `too_large`, `busy`, `unavailable` and `store_error`. Nothing was written, or the
    /// outcome is unknown: repeat the append with the same `operation`.
    fn append<'a>(
        &'a self,
        session: &'a str,
        expected: u64,
        batch: Batch,
        operation: &'a str,
    ) -> StoreFuture<'a, Appended>;

    /// Returns every record whose `[key, last_key]` overlaps the range, in key order or reversed.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn read<'a>(&'a self, session: &'a str, query: Query) -> StoreFuture<'a, Vec<Record>>;

    /// Returns the head, as [`head`](Self::head) does, and the records of the query that `select` makes of it. A store
    /// that has transactions may read both in one.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn head_and_records<'a>(
        &'a self,
        session: &'a str,
        select: RecordSelector,
    ) -> StoreFuture<'a, Option<(StoredHead, Vec<Record>)>> {
        Box::pin(async move {
            let Some(head) = self.head(session).await? else { return Ok(None) };
            let records = match select(&head) {
                Some(query) => self.read(session, query).await?,
                None => Vec::new(),
            };
            Ok(Some((head, records)))
        })
    }

    /// Reads a range in key order, whatever its size, and passes the records on in parts. A store may request the next
    /// part before `take` gets one.
    ///
    /// # Errors
    /// If the store cannot be read. `take` may have got some records.
    fn read_parts<'a>(&'a self, session: &'a str, query: Query, take: RecordSink<'a>) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let mut from = query.from;
            while from <= query.to {
                let part = Query { from, limit_bytes: PART_BYTES, reverse: false, ..query };
                let records = self.read(session, part).await?;
                let Some(last) = records.last() else { break };
                from = last.last_key.unwrap_or(last.key).saturating_add(1);
                take(records);
            }
            Ok(())
        })
    }

    /// Returns a page of sessions in a stable order, mostly that of their ids. Damaged ones are included if no channel
    /// is given. `limit` 0 means [`PAGE`].
    ///
    /// # Errors
    /// If the store cannot be read.
    fn sessions<'a>(
        &'a self,
        cursor: Option<&'a str>,
        limit: usize,
        channel: Option<&'a str>,
    ) -> StoreFuture<'a, Page<SessionRow>>;

    /// As [`sessions`](Self::sessions), but may leave out those whose head is lost.
    fn heads<'a>(
        &'a self,
        cursor: Option<&'a str>,
        limit: usize,
        channel: Option<&'a str>,
    ) -> StoreFuture<'a, Page<SessionRow>> {
        self.sessions(cursor, limit, channel)
    }

    /// Returns the heads that have changed since a mark, by every append and deletion that was done before this call,
    /// of any handle. A session may be among them that has not changed. None if the store does not number changes;
    /// what was read of heads is read again then.
    fn head_changes(&self, _since: Option<u64>) -> Option<StoreFuture<'_, HeadChanges>> {
        None
    }

    /// Returns where the index of a search is stored; none if the store has no place for one.
    fn search_index_store(&self) -> Option<&dyn SearchIndexStore> {
        None
    }

    /// Returns a page of sessions by recency, as [`SessionPosition`] orders them. Its cursors are those of the last
    /// session's position. Damaged ones are included where [`sessions`](Self::sessions) has them; one whose head is lost
    /// is among the oldest. None if the store has no index of times; [`recent_sessions`] then finds the order.
    fn recent_sessions<'a>(&'a self, _query: &'a RecencyQuery) -> Option<StoreFuture<'a, Page<SessionRow>>> {
        None
    }

    /// Returns the log records that have these keys, each with its session: the payloads of a page of audit rows. A
    /// segment is returned once for all its keys if they follow each other; keys without a record are left out. A
    /// database reads them with a join.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn log_records<'a>(&'a self, keys: &'a [LogKey]) -> StoreFuture<'a, Vec<(String, Record)>> {
        Box::pin(async move {
            let mut found: Vec<(String, Record)> = Vec::new();
            for LogKey { session, key } in keys {
                if found.last().is_some_and(|(of, record)| of == session && record.spans(*key)) {
                    continue;
                }
                let query = Query { from: *key, to: *key, ..Query::all(Table::Log) };
                let records = self.read(session, query).await?;
                found.extend(records.into_iter().map(|record| (session.clone(), record)));
            }
            Ok(found)
        })
    }

    /// Returns a page of audit rows of all sessions, ordered by session and key.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn invocations<'a>(&'a self, query: &'a AuditQuery) -> StoreFuture<'a, Page<(String, Record)>>;

    /// Returns a page of audit rows of all sessions, the newest first: by the time in their index, then by session and
    /// key. Its cursors are the positions of rows in this order. None if the store has no index of times;
    /// [`AuditPages`] then finds the order.
    fn newest_invocations<'a>(&'a self, _query: &'a AuditQuery) -> Option<StoreFuture<'a, Page<(String, Record)>>> {
        None
    }

    /// Removes a session's records and leaves a tombstone, whose revision is one higher. An absent session stays
    /// absent; a damaged one is removed like any other.
    ///
    /// # Errors
    /// If the store cannot be written to.
    fn delete_session<'a>(&'a self, session: &'a str) -> StoreFuture<'a, ()>;
}
