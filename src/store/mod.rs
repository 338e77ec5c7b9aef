//! The store contract: a log a session, appended atomically if the head is as expected.
//!
//! A store keeps bytes and compares revisions; it knows nothing of what the bytes say. The contract
//! is async and knows no executor. Every store passes the suite in [`conformance`].

mod audit;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod distinct;
mod journal;
mod log;
mod memory;
mod numbering;
mod rebuild;
mod record;
pub mod sql;

pub use audit::AuditRow;
pub use journal::{JournalChange, JournalMark, JournalStep, read_journal, read_journal_from};
pub use log::{Change, Committed, HeadEdit, SessionLog, commit, open_session, read_head, refresh, unreadable_head};
pub use memory::MemoryStore;
#[cfg(any(test, feature = "conformance"))]
pub use record::seal_payload;
pub use record::{MAX_RECORD_BYTES, RecordKind, StoredValue, open_record, open_whole_record, seal_record};

use crate::clock::Ms;
use crate::error::{Code, Error, Result};
use bytes::Bytes;
use std::future::Future;
use std::pin::Pin;

/// A future that may stay on its thread: in a browser everything does.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + 'a>>;

/// What a store can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// An append fails, changing nothing, when the head is not as expected.
    pub compare_and_append: bool,
    /// A batch is written whole or not at all.
    pub atomic_batch: bool,
    /// A read after a write sees it.
    pub read_your_writes: bool,
    /// The largest value, in bytes.
    pub max_value_bytes: u64,
    /// Whether it outlives the process.
    pub durable: bool,
}

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

/// A stored record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its table.
    pub table: Table,
    /// Its key within session and table; below 2^53, so that it is exact in JavaScript too.
    pub key: u64,
    /// Of a segment: the last key it holds.
    pub last_key: Option<u64>,
    /// What an audit row is found by.
    pub index: Option<AuditIndex>,
    /// The bytes.
    pub value: Bytes,
}

/// What an audit row is found by, without reading it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditIndex {
    /// The tool's name.
    pub tool: String,
    /// The status's name.
    pub status: String,
    /// The channel.
    pub channel: Option<String>,
    /// Finish, else start, else storing.
    pub at: Ms,
}

/// What one append writes: all of it or nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// The new head.
    pub head: Bytes,
    /// The session's channel, for listing by it.
    pub channel: Option<String>,
    /// The revision is at least this afterwards: a head that was rebuilt goes on beyond what anybody may have seen.
    pub at_least: u64,
    /// Records to write where there is none. A store never overwrites one for them: see [`Appended::Occupied`].
    pub put: Vec<Record>,
    /// Records to write in the place of those of the same key, if there are any; their indexes too.
    pub replace: Vec<Record>,
    /// Records to remove, before any is written; absent ones are no error.
    pub remove: Vec<(Table, u64)>,
}

impl Batch {
    /// Refuses what no store can keep, before anything is written.
    ///
    /// # Errors
    /// `too_large` for a value above the store's limit; `invalid_input` for a key that JavaScript cannot hold, a segment
    /// that ends before it begins, or an operation without a name.
    pub fn check(&self, operation: &str, max_value_bytes: u64) -> Result<()> {
        if operation.is_empty() {
            return Err(Error::invalid("an append needs the name of its operation, so that it can be repeated"));
        }
        let written = || self.put.iter().chain(&self.replace);
        let large = written().find(|record| record.value.len() as u64 > max_value_bytes);
        let large = large.map_or(self.head.len(), |record| record.value.len()) as u64;
        if large > max_value_bytes {
            return Err(Error::new(
                Code::TooLarge,
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
}

fn check_keys(key: u64, last: u64) -> Result<()> {
    if last <= MAX_KEY && last >= key {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "a record cannot have the keys {key} to {last}; they rise and stay at or below {MAX_KEY}"
    )))
}

/// So much is read at once.
pub(crate) const PAGE_BYTES: u64 = 1024 * 1024;

/// How many operations of a session a store remembers: a repetition comes at once or not at all.
pub const REMEMBERED_OPERATIONS: usize = 16;

/// The latest operations of a session and the revision that each made. A conflict changes nothing, so it is not kept:
/// revisions only rise, and what conflicted conflicts again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Operations(pub(crate) Vec<(String, u64)>);

impl Operations {
    /// The outcome, if nothing is to be written.
    pub(crate) fn outcome(&self, revision: u64, expected: u64, operation: &str) -> Option<Appended> {
        if let Some((_, made)) = self.0.iter().find(|(name, _)| name == operation) {
            return Some(Appended::Revision(*made));
        }
        (revision != expected).then_some(Appended::Conflict(revision))
    }

    /// Remembers one, and forgets the oldest.
    pub(crate) fn note(&mut self, operation: &str, made: u64) {
        while self.0.len() >= REMEMBERED_OPERATIONS {
            self.0.remove(0);
        }
        self.0.push((operation.to_owned(), made));
    }
}

/// How an append ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Appended {
    /// Written; the head has this revision now: one more than was expected, or what the batch wants at least.
    Revision(u64),
    /// Nothing was written: the head has this revision.
    Conflict(u64),
    /// Nothing was written: a record is in the place of one that was put, so the head is behind its tables.
    Occupied,
}

/// A head and its revision. Where a store has records of a session and no head, or cannot make out what is in the head's
/// place, it gives a head without bytes, of revision 0 if that is lost, too: such a session is damaged, not empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredHead {
    /// Counts appends, from 1.
    pub revision: u64,
    /// The bytes.
    pub value: Bytes,
}

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
    /// Stop after the record with which the values reach so many bytes. At least one record comes, if there is one.
    pub limit_bytes: u64,
}

impl Query {
    /// All records of a table.
    #[must_use]
    pub fn all(table: Table) -> Self {
        Self { table, from: 0, to: MAX_KEY, reverse: false, limit_bytes: u64::MAX }
    }
}

/// The largest key: exact as a JavaScript number.
pub const MAX_KEY: u64 = (1 << 53) - 1;

/// Which audit rows to read. Absent fields match all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct AuditQuery {
    pub session: Option<String>,
    pub tool: Option<String>,
    pub status: Option<String>,
    pub channel: Option<String>,
    /// Inclusive.
    pub since: Option<Ms>,
    /// Inclusive.
    pub until: Option<Ms>,
    pub cursor: Option<String>,
    /// The most rows in a page; 0 means [`PAGE`].
    pub limit: usize,
}

impl AuditQuery {
    /// Whether a row of this session and index is asked for.
    #[must_use]
    pub fn matches(&self, session: &str, index: &AuditIndex) -> bool {
        let wanted = |asked: &Option<String>, is: Option<&str>| asked.as_deref().is_none_or(|asked| Some(asked) == is);
        wanted(&self.session, Some(session))
            && wanted(&self.tool, Some(&index.tool))
            && wanted(&self.status, Some(&index.status))
            && wanted(&self.channel, index.channel.as_deref())
            && self.since.is_none_or(|since| index.at >= since)
            && self.until.is_none_or(|until| index.at <= until)
    }
}

/// How many items a page has when the caller names no limit.
pub const PAGE: usize = 100;

/// A place in the audit table as a cursor: the last row that was given.
pub(crate) fn audit_cursor(session: &str, key: u64) -> String {
    format!("{key}:{session}")
}

/// Reads what [`audit_cursor`] wrote.
pub(crate) fn open_audit_cursor(cursor: &str) -> Result<(&str, u64)> {
    let parts = cursor.split_once(':').and_then(|(key, session)| Some((session, key.parse().ok()?)));
    parts.ok_or_else(|| Error::invalid("this is no cursor that a page of tool invocations gave"))
}

/// Some of many, and where to go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// In key order.
    pub items: Vec<T>,
    /// Opaque; none when this was the last page.
    pub cursor: Option<String>,
}

/// A session as a list has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRow {
    /// The session's id.
    pub id: String,
    /// Its head.
    pub head: StoredHead,
}

/// The contract. Revision 0 is an absent session; deleting leaves a tombstone that keeps counting, so
/// that a stale writer cannot bring a session back by appending to what it last saw.
pub trait LogStore {
    /// What this store can do.
    fn capabilities(&self) -> Capabilities;

    /// Whether the platform has removed the data since the store was opened.
    fn was_evicted(&self) -> bool {
        false
    }

    /// Lets go of what the store holds in memory, connections with it. What is under way ends; no call comes after.
    fn close(&self) {}

    /// The head; none for a session that is absent or deleted. One that is damaged has a head without bytes.
    ///
    /// # Errors
    /// When the store cannot be read; never an empty answer instead.
    fn head<'a>(&'a self, session: &'a str) -> StoreFuture<'a, Option<StoredHead>>;

    /// Writes the batch if the head's revision is `expected` (0: absent, or deleted and known to be: then the
    /// tombstone's revision is what [`Appended::Conflict`] gives and what to expect next).
    /// Repeating an `operation` that was written gives its revision again, up to [`REMEMBERED_OPERATIONS`] later.
    ///
    /// # Errors
    /// `quota_exceeded`, `too_large`, `busy` and `store_error`, each with nothing written, or with an outcome that is
    /// unknown: repeat it with the same `operation`.
    fn append<'a>(
        &'a self,
        session: &'a str,
        expected: u64,
        batch: Batch,
        operation: &'a str,
    ) -> StoreFuture<'a, Appended>;

    /// Every record whose `[key, last_key]` meets the range, in key order or reversed.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn read<'a>(&'a self, session: &'a str, query: Query) -> StoreFuture<'a, Vec<Record>>;

    /// Sessions in an order that stays, damaged ones with them where no channel is asked for; `limit` 0 means [`PAGE`].
    ///
    /// # Errors
    /// When the store cannot be read.
    fn sessions<'a>(
        &'a self,
        cursor: Option<&'a str>,
        limit: usize,
        channel: Option<&'a str>,
    ) -> StoreFuture<'a, Page<SessionRow>>;

    /// Audit rows over all sessions, by session and key.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn invocations<'a>(&'a self, query: &'a AuditQuery) -> StoreFuture<'a, Page<(String, Record)>>;

    /// Removes a session's records and leaves a tombstone, one revision on. An absent session stays absent, and a damaged one
    /// is removed like any other.
    ///
    /// # Errors
    /// When the store cannot be written.
    fn delete_session<'a>(&'a self, session: &'a str) -> StoreFuture<'a, ()>;
}
