//! What every store must do, as checks that run on it. Native stores block on them, browsers await them.
//!
//! Whoever writes a store calls [`check_all`] with a function that opens it. A store that calls itself durable is opened
//! again within the checks, and must then show what it was given before.

mod appends;
mod checks;

pub use checks::CHECKS;

use super::{Appended, AuditIndex, AuditQuery, Batch, LogStore, Page, Query, Record, SessionRow, StoreFuture, Table};
use crate::error::{Code, Error, Result};
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

/// Opens the store. Of a durable store every call is another connection to the same data.
pub type OpenStore<'o> = &'o dyn Fn() -> StoreFuture<'static, Rc<dyn LogStore>>;

/// A check's body.
pub type StoreCheck = for<'b> fn(&'b StoreCheckContext) -> StoreFuture<'b, ()>;

/// What a check works on: the store, a second handle, and names that no other check uses.
pub struct StoreCheckContext {
    /// The store.
    pub store: Rc<dyn LogStore>,
    /// The same data, through a second connection where there can be one.
    pub other: Rc<dyn LogStore>,
    prefix: String,
    operations: Cell<u64>,
}

/// Runs every check, each with sessions of its own. `run` names the sessions: give another one if the store outlives the run.
///
/// # Errors
/// `internal`, naming every check that failed and what it saw.
pub async fn check_all(run: &str, open: OpenStore<'_>) -> Result<()> {
    let mut failures = Vec::new();
    for (name, check) in CHECKS {
        if let Err(error) = check_one(run, name, *check, open).await {
            failures.push(format!("{name}: {error}"));
        }
    }
    if failures.is_empty() { Ok(()) } else { Err(Error::new(Code::Internal, failures.join("\n"))) }
}

/// Runs one check.
///
/// # Errors
/// What the check saw, or the store's own error.
pub async fn check_one(run: &str, name: &str, check: StoreCheck, open: OpenStore<'_>) -> Result<()> {
    let store = open().await?;
    let other = if store.capabilities().durable { open().await? } else { store.clone() };
    let context = StoreCheckContext { store, other, prefix: format!("{run}/{name}/"), operations: Cell::new(0) };
    check(&context).await
}

/// Fails a check, saying what it saw.
macro_rules! ensure {
    ($holds:expr, $($told:tt)+) => {
        if !$holds {
            return Err(Error::new(Code::Internal, format!($($told)+)));
        }
    };
}
use ensure;

impl StoreCheckContext {
    fn session(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    fn operation(&self) -> String {
        self.operations.set(self.operations.get().saturating_add(1));
        format!("{}operation-{}", self.prefix, self.operations.get())
    }

    async fn append(&self, session: &str, expected: u64, batch: Batch) -> Result<Appended> {
        self.store.append(session, expected, batch, &self.operation()).await
    }

    /// Appends and insists on success.
    async fn written(&self, session: &str, expected: u64, batch: Batch) -> Result<()> {
        let got = self.append(session, expected, batch).await?;
        let want = Appended::Revision(expected.saturating_add(1));
        ensure!(got == want, "append to {session:?} at {expected} gave {got:?}");
        Ok(())
    }

    async fn keys(&self, session: &str, query: Query) -> Result<Vec<u64>> {
        Ok(self.store.read(session, query).await?.iter().map(|record| record.key).collect())
    }

    /// Insists on exactly these log records, through both handles.
    async fn holds(&self, session: &str, want: &[Record]) -> Result<()> {
        for store in [&self.store, &self.other] {
            let got = store.read(session, Query::all(Table::Log)).await?;
            ensure!(got == want, "the log of {session:?} has {}, and should have {}", told(&got), told(want));
        }
        Ok(())
    }

    /// All pages of sessions, as far as they are this check's.
    async fn listed(&self, limit: usize, channel: Option<&str>) -> Result<Vec<SessionRow>> {
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

    /// All pages of audit rows, as far as they are this check's: the session's name without the prefix, and the key.
    async fn audited(&self, mut query: AuditQuery) -> Result<Vec<(String, u64)>> {
        let mut rows = Vec::new();
        loop {
            let Page { items, cursor } = self.store.invocations(&query).await?;
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

/// A record that says little of a large one.
fn told(records: &[Record]) -> String {
    let told = |record: &Record| {
        format!("{}..={} of {} bytes", record.key, record.last_key.unwrap_or(record.key), record.value.len())
    };
    let shown: Vec<_> = records.iter().take(20).map(told).collect();
    format!("{} records ({})", records.len(), shown.join(", "))
}

fn log(key: u64, value: &[u8]) -> Record {
    Record { table: Table::Log, key, last_key: None, index: None, value: value.to_vec().into() }
}

fn segment(key: u64, last: u64, value: &[u8]) -> Record {
    Record { last_key: Some(last), ..log(key, value) }
}

fn audit(key: u64, tool: &str, status: &str, channel: Option<&str>, at: u64) -> Record {
    let index = AuditIndex { tool: tool.into(), status: status.into(), channel: channel.map(Into::into), at };
    Record {
        table: Table::ToolInvocations,
        key,
        last_key: None,
        index: Some(index),
        value: format!("row {key} of {tool}").into(),
    }
}

fn batch(head: &[u8], put: Vec<Record>) -> Batch {
    Batch { head: head.to_vec().into(), put, ..Batch::default() }
}

fn replacement(head: &[u8], replace: Vec<Record>) -> Batch {
    Batch { head: head.to_vec().into(), replace, ..Batch::default() }
}

fn range(from: u64, to: u64) -> Query {
    Query { from, to, ..Query::all(Table::Log) }
}

/// Appends `count` records of one writer, reading the head again whenever another was faster. Gives the conflicts.
///
/// # Errors
/// The store's own, or that no append succeeded in a thousand rounds.
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

/// Insists that writers 0 and 1 each find their `count` records, in their order, without a gap.
///
/// # Errors
/// What is missing or doubled.
pub async fn nothing_lost(store: &dyn LogStore, session: &str, count: u8) -> Result<()> {
    let records = store.read(session, Query::all(Table::Log)).await?;
    let both = u64::from(count).saturating_mul(2);
    ensure!(records.iter().map(|record| record.key).eq(0..both), "{both} appends left {}", told(&records));
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

/// Awaits two futures in turn, without an executor.
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
