//! A store that counts what another one returns, and fails where a check wants it to.

use crate::error::{Error, ErrorCode};
use crate::store::{
    Appended, AuditQuery, Batch, Capabilities, LogStore, Page, Query, Record, SessionRow, StoreFuture, StoredHead,
    Table,
};
use std::cell::Cell;
use std::rc::Rc;

/// A store that counts the records that reads of it return. Reads of the log fail if they would return the record of a
/// key.
pub(super) struct ObservedStore {
    store: Rc<dyn LogStore>,
    /// The records that were returned, by all reads.
    pub records: Cell<usize>,
    /// The reads that succeeded.
    pub reads: Cell<usize>,
    /// The key of the record of the log that cannot be read.
    pub unreadable: Cell<Option<u64>>,
}

impl ObservedStore {
    pub fn new(store: &Rc<dyn LogStore>) -> Self {
        let (records, reads, unreadable) = (Cell::default(), Cell::default(), Cell::default());
        Self { store: store.clone(), records, reads, unreadable }
    }

    fn count(&self, records: usize) {
        self.records.set(self.records.get().saturating_add(records));
        self.reads.set(self.reads.get().saturating_add(1));
    }
}

impl LogStore for ObservedStore {
    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }

    fn lineage(&self, session: &str) -> u64 {
        self.store.lineage(session)
    }

    fn head<'a>(&'a self, session: &'a str) -> StoreFuture<'a, Option<StoredHead>> {
        self.store.head(session)
    }

    fn append<'a>(
        &'a self,
        session: &'a str,
        expected: u64,
        batch: Batch,
        operation: &'a str,
    ) -> StoreFuture<'a, Appended> {
        self.store.append(session, expected, batch, operation)
    }

    fn read<'a>(&'a self, session: &'a str, query: Query) -> StoreFuture<'a, Vec<Record>> {
        Box::pin(async move {
            let records = self.store.read(session, query).await?;
            let reaches = |key: u64| query.table == Table::Log && records.iter().any(|record| record.spans(key));
            if self.unreadable.get().is_some_and(reaches) {
                return Err(Error::new(ErrorCode::StoreError, "the record cannot be read"));
            }
            self.count(records.len());
            Ok(records)
        })
    }

    fn sessions<'a>(
        &'a self,
        cursor: Option<&'a str>,
        limit: usize,
        channel: Option<&'a str>,
    ) -> StoreFuture<'a, Page<SessionRow>> {
        self.store.sessions(cursor, limit, channel)
    }

    fn invocations<'a>(&'a self, query: &'a AuditQuery) -> StoreFuture<'a, Page<(String, Record)>> {
        Box::pin(async move {
            let page = self.store.invocations(query).await?;
            self.count(page.items.len());
            Ok(page)
        })
    }

    fn newest_invocations<'a>(&'a self, query: &'a AuditQuery) -> Option<StoreFuture<'a, Page<(String, Record)>>> {
        let page = self.store.newest_invocations(query)?;
        Some(Box::pin(async move {
            let page = page.await?;
            self.count(page.items.len());
            Ok(page)
        }))
    }

    fn delete_session<'a>(&'a self, session: &'a str) -> StoreFuture<'a, ()> {
        self.store.delete_session(session)
    }
}
