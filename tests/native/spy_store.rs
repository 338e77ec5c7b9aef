//! A store that counts what is asked of it, and fails when it is told to.

use bytes::Bytes;
use rethread::branch_path::DIRECTORY;
use rethread::error::{Error, ErrorCode};
use rethread::store::{
    Appended, AuditQuery, Batch, Capabilities, HeadChanges, LogStore, MemoryStore, Page, Query, Record,
    SearchIndexStore, SessionRow, StoreFuture, StoredHead, Table,
};
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// Nothing is written.
    Refuses(ErrorCode),
    /// It is written, and nobody learns of it.
    LosesReply,
    /// Another writer is faster.
    Conflicts,
}

#[derive(Default)]
pub struct Spy {
    pub data: MemoryStore,
    pub heads: Cell<u32>,
    pub reads: Cell<u32>,
    /// Reads that are under way, and the most that were at once.
    pub reading: Cell<u32>,
    pub most_reading: Cell<u32>,
    /// Records that were read, and bytes of heads and records.
    pub records: Cell<usize>,
    pub bytes: Cell<usize>,
    pub appends: Cell<u32>,
    /// Heads that were returned by lists and as changed.
    pub listed_heads: Cell<usize>,
    /// Records of the directory of branches that were read.
    pub directory_rows: Cell<usize>,
    /// What the next appends do; none in a place is an append that works.
    pub faults: RefCell<Vec<Option<Fault>>>,
    pub reading_fails: Cell<bool>,
    /// A read of log records fails if it would reach one of these keys.
    pub unreadable: RefCell<Vec<u64>>,
    /// The code of that error, `store_error` if it is not set.
    pub unreadable_code: Cell<Option<ErrorCode>>,
    pub limit: Cell<Option<u64>>,
    /// Every append lets another future go first.
    pub slow: Cell<bool>,
    /// Every operation waits once before it is done, and once before its reply arrives.
    pub waits: Cell<bool>,
    /// What is kept of a search's index; none if the store keeps none. Spies may share it.
    pub index: Option<Rc<RefCell<Option<Bytes>>>>,
    /// The index can neither be read nor written.
    pub index_fails: Cell<bool>,
    pub index_writes: Cell<u32>,
    /// What happens between the search and the write of its index.
    pub before_index_write: RefCell<Option<Box<dyn FnOnce()>>>,
    /// Every byte that was ever to be written.
    pub written: RefCell<Vec<u8>>,
}

impl Spy {
    pub fn new(data: &MemoryStore) -> Self {
        Self { data: data.clone(), ..Self::default() }
    }

    fn drop_index(&self) {
        if let Some(index) = &self.index {
            index.take();
        }
    }

    async fn wait(&self) {
        if self.waits.get() {
            let_others_go().await;
        }
    }

    fn readable(&self) -> Result<(), Error> {
        if self.reading_fails.get() { Err(Error::new(ErrorCode::StoreError, "the disk is on fire")) } else { Ok(()) }
    }
}

async fn let_others_go() {
    let mut waited = false;
    poll_fn(|_| if std::mem::replace(&mut waited, true) { Poll::Ready(()) } else { Poll::Pending }).await;
}

impl LogStore for Spy {
    fn capabilities(&self) -> Capabilities {
        let own = self.data.capabilities();
        Capabilities { max_value_bytes: self.limit.get().unwrap_or(own.max_value_bytes), ..own }
    }

    fn head<'a>(&'a self, session: &'a str) -> StoreFuture<'a, Option<StoredHead>> {
        self.heads.set(self.heads.get() + 1);
        Box::pin(async move {
            self.readable()?;
            self.wait().await;
            let head = self.data.head(session).await;
            self.wait().await;
            let bytes = head.iter().flatten().map(|head| head.value.len()).sum::<usize>();
            self.bytes.set(self.bytes.get() + bytes);
            head
        })
    }

    fn append<'a>(
        &'a self,
        session: &'a str,
        expected: u64,
        batch: Batch,
        operation: &'a str,
    ) -> StoreFuture<'a, Appended> {
        self.appends.set(self.appends.get() + 1);
        let mut written = self.written.borrow_mut();
        written.extend_from_slice(&batch.head);
        batch.put.iter().for_each(|record| written.extend_from_slice(&record.value));
        let mut faults = self.faults.borrow_mut();
        let fault = if faults.is_empty() { None } else { faults.remove(0) };
        Box::pin(async move {
            if self.slow.get() {
                let_others_go().await;
            }
            if let Some(Fault::Refuses(code)) = fault {
                return Err(Error::new(code, "refused"));
            }
            self.wait().await;
            if fault == Some(Fault::Conflicts) {
                let head = self.data.head(session).await?.unwrap();
                let batch = Batch { head: head.value, ..Batch::default() };
                self.data.append(session, head.revision, batch, &format!("other {}", head.revision)).await?;
            }
            let erases = batch.erases;
            let appended = self.data.append(session, expected, batch, operation).await?;
            if erases && matches!(appended, Appended::Revision(_)) {
                self.drop_index();
            }
            self.wait().await;
            if fault == Some(Fault::LosesReply) {
                Err(Error::new(ErrorCode::StoreError, "the reply was lost"))
            } else {
                Ok(appended)
            }
        })
    }

    fn read<'a>(&'a self, session: &'a str, query: Query) -> StoreFuture<'a, Vec<Record>> {
        self.reads.set(self.reads.get() + 1);
        Box::pin(async move {
            self.readable()?;
            self.reading.set(self.reading.get() + 1);
            self.most_reading.set(self.most_reading.get().max(self.reading.get()));
            self.wait().await;
            self.reading.set(self.reading.get() - 1);
            let records = self.data.read(session, query).await;
            let is_of_directory = |record: &&Record| record.table == Table::Log && record.key >= DIRECTORY;
            let rows = records.iter().flatten().filter(is_of_directory).count();
            self.directory_rows.set(self.directory_rows.get() + rows);
            self.records.set(self.records.get() + records.iter().flatten().count());
            let bytes = records.iter().flatten().map(|record| record.value.len()).sum::<usize>();
            self.bytes.set(self.bytes.get() + bytes);
            let reaches = |key: &u64| records.iter().flatten().any(|record| record.spans(*key));
            if query.table == Table::Log && self.unreadable.borrow().iter().any(reaches) {
                let code = self.unreadable_code.get().unwrap_or(ErrorCode::StoreError);
                return Err(Error::new(code, "a sector is gone"));
            }
            self.wait().await;
            records
        })
    }

    fn sessions<'a>(
        &'a self,
        cursor: Option<&'a str>,
        limit: usize,
        channel: Option<&'a str>,
    ) -> StoreFuture<'a, Page<SessionRow>> {
        Box::pin(async move {
            let page = self.data.sessions(cursor, limit, channel).await?;
            self.listed_heads.set(self.listed_heads.get() + page.items.len());
            Ok(page)
        })
    }

    fn head_changes(&self, since: Option<u64>) -> Option<StoreFuture<'_, HeadChanges>> {
        let changes = self.data.head_changes(since)?;
        Some(Box::pin(async move {
            self.readable()?;
            let changes = changes.await?;
            self.listed_heads.set(self.listed_heads.get() + changes.changed.iter().flatten().count());
            self.wait().await;
            Ok(changes)
        }))
    }

    fn search_index_store(&self) -> Option<&dyn SearchIndexStore> {
        self.index.as_ref().map(|_| self as &dyn SearchIndexStore)
    }

    fn invocations<'a>(&'a self, query: &'a AuditQuery) -> StoreFuture<'a, Page<(String, Record)>> {
        self.data.invocations(query)
    }

    fn delete_session<'a>(&'a self, session: &'a str) -> StoreFuture<'a, ()> {
        self.drop_index();
        self.data.delete_session(session)
    }
}

impl SearchIndexStore for Spy {
    fn read_index(&self) -> StoreFuture<'_, Option<Bytes>> {
        Box::pin(async move {
            self.readable()?;
            if self.index_fails.get() {
                return Err(Error::new(ErrorCode::StoreError, "Failed to read large IndexedDB value"));
            }
            self.wait().await;
            Ok(self.index.as_ref().and_then(|index| index.borrow().clone()))
        })
    }

    fn write_index(&self, mark: u64, record: Bytes) -> StoreFuture<'_, bool> {
        Box::pin(async move {
            if let Some(happens) = self.before_index_write.take() {
                happens();
            }
            self.index_writes.set(self.index_writes.get() + 1);
            if self.index_fails.get() {
                return Err(Error::new(ErrorCode::QuotaExceeded, "the disk is full"));
            }
            let newest = self.data.head_changes(None).unwrap().await?.mark;
            if newest == mark {
                self.index.as_ref().unwrap().replace(Some(record));
            }
            Ok(newest == mark)
        })
    }

    fn remove_index(&self) -> StoreFuture<'_, ()> {
        self.drop_index();
        Box::pin(async { Ok(()) })
    }
}
