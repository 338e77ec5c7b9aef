//! The store contract: a log a session, appended atomically if the head is as expected.
//!
//! A store keeps bytes and compares revisions; it knows nothing of what the bytes say. The contract
//! is async and knows no executor. Every store passes the suite in [`conformance`].

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod memory;
mod record;

pub use memory::MemoryStore;
pub use record::{Kind, MAX_RECORD_BYTES, open_record, seal_record};

use crate::clock::Ms;
use crate::error::Result;
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
    pub value: Vec<u8>,
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
    pub head: Vec<u8>,
    /// The session's channel, for listing by it.
    pub channel: Option<String>,
    /// Records to write; one of the same key is replaced.
    pub put: Vec<Record>,
    /// Records to remove; absent ones are no error.
    pub remove: Vec<(Table, u64)>,
}

/// How an append ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Appended {
    /// Written; the head has this revision now, one more than was expected.
    Revision(u64),
    /// Nothing was written: the head has this revision.
    Conflict(u64),
}

/// A head and its revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Counts appends, from 1.
    pub revision: u64,
    /// The bytes.
    pub value: Vec<u8>,
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
    pub limit: usize,
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
    pub head: Head,
}

/// The contract. Revision 0 is an absent session; deleting leaves a tombstone that keeps counting, so
/// that a stale writer cannot bring a session back by appending to what it last saw.
pub trait LogStore {
    /// What this store can do.
    fn capabilities(&self) -> Capabilities;

    /// The head; none for a session that is absent or deleted.
    ///
    /// # Errors
    /// When the store cannot be read; never an empty answer instead.
    fn head<'a>(&'a self, session: &'a str) -> StoreFuture<'a, Option<Head>>;

    /// Writes the batch if the head's revision is `expected` (0: absent, or deleted and known to be: then the
    /// tombstone's revision is what [`Appended::Conflict`] gives and what to expect next).
    /// Repeating an `operation` gives its first outcome.
    ///
    /// # Errors
    /// `quota_exceeded`, `too_large`, `busy` and `store_error`, each with nothing written, or with an outcome that is
    /// unknown: repeat it with the same `operation`.
    fn append<'a>(&'a self, session: &'a str, expected: u64, batch: Batch, operation: &'a str) -> StoreFuture<'a, Appended>;

    /// Every record whose `[key, last_key]` meets the range, in key order or reversed.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn read<'a>(&'a self, session: &'a str, query: Query) -> StoreFuture<'a, Vec<Record>>;

    /// Sessions in the order of their ids.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn sessions<'a>(&'a self, cursor: Option<&'a str>, limit: usize, channel: Option<&'a str>) -> StoreFuture<'a, Page<SessionRow>>;

    /// Audit rows over all sessions, by session and key.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn invocations<'a>(&'a self, query: &'a AuditQuery) -> StoreFuture<'a, Page<(String, Record)>>;

    /// Removes a session's records and leaves a tombstone.
    ///
    /// # Errors
    /// When the store cannot be written.
    fn delete_session<'a>(&'a self, session: &'a str) -> StoreFuture<'a, ()>;
}
