//! What the checks are written with: the context that each gets, builders of records and batches, and expectations.

use crate::error::{Error, ErrorCode, Result};
use crate::store::{
    Appended, AuditIndex, AuditPages, AuditQuery, Batch, LogStore, Page, Query, Record, SessionRow, StoreFuture, Table,
};
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

/// The body of a check.
pub type StoreCheck = for<'b> fn(&'b StoreCheckContext) -> StoreFuture<'b, ()>;

/// What a check gets: the store, a second handle of it, and names that no other check uses.
pub struct StoreCheckContext {
    /// The store.
    pub store: Rc<dyn LogStore>,
    /// The same data, through a second connection where there can be one.
    pub other: Rc<dyn LogStore>,
    prefix: String,
    operations: Cell<u64>,
}

/// Fails the check with a message unless the condition is true.
macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err(Error::new(ErrorCode::Internal, format!($($message)+)));
        }
    };
}
pub(super) use ensure;

impl StoreCheckContext {
    /// Creates a context whose names begin with `prefix`.
    pub(super) fn new(store: Rc<dyn LogStore>, other: Rc<dyn LogStore>, prefix: String) -> Self {
        Self { store, other, prefix, operations: Cell::new(0) }
    }

    /// Returns the id of a session of this check.
    pub(super) fn session(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// Returns a new name of an operation.
    pub(super) fn operation(&self) -> String {
        self.operations.set(self.operations.get().saturating_add(1));
        format!("{}operation-{}", self.prefix, self.operations.get())
    }

    /// Appends under a new operation name.
    pub(super) async fn append(&self, session: &str, expected: u64, batch: Batch) -> Result<Appended> {
        self.store.append(session, expected, batch, &self.operation()).await
    }

    /// Appends, and fails unless the append succeeds.
    pub(super) async fn written(&self, session: &str, expected: u64, batch: Batch) -> Result<()> {
        let got = self.append(session, expected, batch).await?;
        let want = Appended::Revision(expected.saturating_add(1));
        ensure!(got == want, "append to {session:?} at {expected} gave {got:?}");
        Ok(())
    }

    /// Returns the keys of the records that the query finds.
    pub(super) async fn keys(&self, session: &str, query: Query) -> Result<Vec<u64>> {
        Ok(self.store.read(session, query).await?.iter().map(|record| record.key).collect())
    }

    /// Fails unless the log has exactly these records, through both handles.
    pub(super) async fn expect_log(&self, session: &str, want: &[Record]) -> Result<()> {
        for store in [&self.store, &self.other] {
            let got = store.read(session, Query::all(Table::Log)).await?;
            ensure!(got == want, "the log of {session:?} has {}, and should have {}", summary(&got), summary(want));
        }
        Ok(())
    }

    /// Returns the rows of this check's sessions, from all pages.
    pub(super) async fn listed(&self, limit: usize, channel: Option<&str>) -> Result<Vec<SessionRow>> {
        let mut rows = Vec::new();
        let mut cursor = None;
        loop {
            let Page { items, cursor: next } = self.store.sessions(cursor.as_deref(), limit, channel).await?;
            ensure!(items.len() <= limit, "a page of {limit} sessions has {}", items.len());
            rows.extend(items.into_iter().filter(|row| row.id.starts_with(&self.prefix)));
            ensure!(next.is_none() || next != cursor, "the cursor {next:?} leads to itself");
            if next.is_none() {
                return Ok(rows);
            }
            cursor = next;
        }
    }

    /// Returns this check's audit rows, from all pages: the session's name without the prefix, and the row's key.
    pub(super) async fn audited(&self, query: AuditQuery) -> Result<Vec<(String, u64)>> {
        self.audited_rows(query, false).await
    }

    /// Returns what [`audited`](Self::audited) does, the newest rows first.
    pub(super) async fn audited_newest(&self, query: AuditQuery) -> Result<Vec<(String, u64)>> {
        self.audited_rows(query, true).await
    }

    async fn audited_rows(&self, mut query: AuditQuery, is_newest_first: bool) -> Result<Vec<(String, u64)>> {
        let mut rows = Vec::new();
        let pages = AuditPages::default();
        loop {
            let Page { items, cursor } = if is_newest_first {
                pages.read(&*self.store, &query, None).await?
            } else {
                self.store.invocations(&query).await?
            };
            ensure!(
                query.limit == 0 || items.len() <= query.limit,
                "a page of {} rows has {}",
                query.limit,
                items.len()
            );
            rows.extend(
                items.iter().filter_map(|(id, record)| Some((id.strip_prefix(&self.prefix)?.to_owned(), record.key))),
            );
            ensure!(cursor.is_none() || cursor != query.cursor, "the cursor {cursor:?} leads to itself");
            if cursor.is_none() {
                return Ok(rows);
            }
            query.cursor = cursor;
        }
    }
}

/// Describes records by their keys and sizes, at most 20 of them.
pub(super) fn summary(records: &[Record]) -> String {
    let describe = |record: &Record| {
        format!("{}..={} of {} bytes", record.key, record.last_key.unwrap_or(record.key), record.value.len())
    };
    let shown: Vec<_> = records.iter().take(20).map(describe).collect();
    format!("{} records ({})", records.len(), shown.join(", "))
}

/// Builds a log record.
pub(super) fn log(key: u64, value: &[u8]) -> Record {
    Record { table: Table::Log, key, last_key: None, index: None, value: value.to_vec().into() }
}

/// Builds a segment of the keys `key` to `last`.
pub(super) fn segment(key: u64, last: u64, value: &[u8]) -> Record {
    Record { last_key: Some(last), ..log(key, value) }
}

/// Builds an audit row.
pub(super) fn audit(key: u64, tool: &str, status: &str, channel: Option<&str>, at: u64) -> Record {
    let index = AuditIndex { tool: tool.into(), status: status.into(), channel: channel.map(Into::into), at };
    Record {
        table: Table::ToolInvocations,
        key,
        last_key: None,
        index: Some(index),
        value: format!("row {key} of {tool}").into(),
    }
}

/// Builds a batch that puts records.
pub(super) fn batch(head: &[u8], put: Vec<Record>) -> Batch {
    Batch { head: head.to_vec().into(), put, ..Batch::default() }
}

/// Builds a batch that replaces records.
pub(super) fn replacement(head: &[u8], replace: Vec<Record>) -> Batch {
    Batch { head: head.to_vec().into(), replace, ..Batch::default() }
}

/// Builds a query for the log records `from` to `to`, inclusive.
pub(super) fn range(from: u64, to: u64) -> Query {
    Query { from, to, ..Query::all(Table::Log) }
}

/// Appends `count` records of one writer, and tries again at the new revision after each conflict. Returns the number
/// of conflicts.
///
/// # Errors
/// The store's own, or `internal` after a thousand conflicts.
pub async fn write_with_retry(store: &dyn LogStore, session: &str, writer: u8, count: u8) -> Result<u64> {
    let (mut revision, mut conflicts) = (0, 0_u64);
    for at in 0..count {
        loop {
            let operation = format!("{writer}-{at}-{revision}");
            match store
                .append(session, revision, batch(&[writer], vec![log(revision, &[writer, at])]), &operation)
                .await?
            {
                Appended::Revision(made) => {
                    revision = made;
                    break;
                }
                Appended::Occupied => ensure!(false, "writer {writer} found a record in its place"),
                Appended::Conflict(is) => {
                    revision = is;
                    conflicts = conflicts.saturating_add(1);
                    ensure!(conflicts < 1000, "writer {writer} had a thousand conflicts");
                }
            }
        }
    }
    Ok(conflicts)
}

/// Fails unless the log has `count` records of each of the writers 0 and 1, in their order and without a gap.
///
/// # Errors
/// `internal`, naming what is missing or duplicated.
pub async fn nothing_lost(store: &dyn LogStore, session: &str, count: u8) -> Result<()> {
    let records = store.read(session, Query::all(Table::Log)).await?;
    let both = u64::from(count).saturating_mul(2);
    ensure!(records.iter().map(|record| record.key).eq(0..both), "{both} appends left {}", summary(&records));
    for writer in [0, 1] {
        let own = records
            .iter()
            .filter(|record| record.value.first() == Some(&writer))
            .map(|record| record.value.get(1).copied());
        ensure!(own.eq((0..count).map(Some)), "writer {writer} lost a record or its order");
    }
    let head = store.head(session).await?;
    ensure!(head.as_ref().is_some_and(|head| head.revision == both), "{both} appends left the head {head:?}");
    Ok(())
}

/// Awaits two futures concurrently, without an executor.
pub async fn both<A, B>(one: impl Future<Output = A>, two: impl Future<Output = B>) -> (A, B) {
    let (mut one, mut two) = (pin!(one), pin!(two));
    let (mut first, mut second) = (None, None);
    poll_fn(move |context| {
        if first.is_none()
            && let Poll::Ready(value) = one.as_mut().poll(context)
        {
            first = Some(value);
        }
        if second.is_none()
            && let Poll::Ready(value) = two.as_mut().poll(context)
        {
            second = Some(value);
        }
        match (first.take(), second.take()) {
            (Some(one), Some(two)) => Poll::Ready((one, two)),
            (one, two) => {
                (first, second) = (one, two);
                Poll::Pending
            }
        }
    })
    .await
}
