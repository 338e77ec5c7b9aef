//! Simulated stores: one whose operations or whose driver's calls fail by plan, and stores with a defect.

use super::drivers::{FaultyKv, FaultySqlite};
use super::faults::{Fault, FaultPlan};
use super::service::MemoryKv;
use super::sqlite::{SqliteDriver, block_on};
use rethread::error::Result;
use rethread::store::kv::{KvLimits, KvStore, WriteOnceStore};
use rethread::store::sql::{SqlLimits, SqlStore};
use rethread::store::{
    Appended, AuditQuery, Batch, Capabilities, LogStore, MemoryStore, Page, Query, Record, SessionRow, StoreFuture,
    StoredHead,
};
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::task::Poll;

/// What the simulation runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// The memory store. Its operations fail.
    Memory,
    /// The SQL store over SQLite. Its transactions fail, also in the middle.
    Sqlite,
    /// The key-value store over a service with commits. The service's calls fail.
    Kv,
    /// The write-once store over a service without commits. The service's calls fail, and a write that is interrupted
    /// leaves a part of the value.
    WriteOnce,
    /// The memory store with a defect.
    Broken(Defect),
}

/// What a broken store does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    /// Appends at whatever revision the head has.
    ForgetsTheRevision,
    /// Does not recognize a repeated operation.
    ForgetsTheOperation,
    /// Writes the head, and then the records.
    WritesTheHeadFirst,
    /// Writes the records, and then the head.
    WritesTheHeadLast,
    /// Acknowledges an append that it then loses.
    AcknowledgesTooEarly,
    /// Writes over records that are there.
    Overwrites,
    /// Removes a session and leaves no tombstone.
    LeavesNoTombstone,
}

impl Defect {
    pub const ALL: [Self; 7] = [
        Self::ForgetsTheRevision,
        Self::ForgetsTheOperation,
        Self::WritesTheHeadFirst,
        Self::WritesTheHeadLast,
        Self::AcknowledgesTooEarly,
        Self::Overwrites,
        Self::LeavesNoTombstone,
    ];
}

/// So small that a few records fill a segment.
const MAX_VALUE_BYTES: u64 = 4096;

type OpenHandle = Box<dyn Fn() -> Result<Rc<dyn LogStore>>>;

/// A store that fails by plan. The process that uses it can die: [`reopen`](Self::reopen) takes a new handle of the
/// same data.
pub struct SimulatedStore {
    handle: RefCell<Rc<dyn LogStore>>,
    open: OpenHandle,
    pub plan: Rc<FaultPlan>,
    /// False if a layer beneath fails instead.
    fails: bool,
    /// Every operation lets other futures run before and after it.
    pub yields: Cell<bool>,
}

impl SimulatedStore {
    pub fn new(backend: Backend, plan: FaultPlan) -> Self {
        let plan = Rc::new(plan);
        let open: OpenHandle = match backend {
            Backend::Memory => {
                let data = MemoryStore::default();
                Box::new(move || Ok(Rc::new(data.clone())))
            }
            Backend::Sqlite => {
                let database = SqliteDriver::in_memory(SqlLimits { max_value_bytes: 600, ..SqlLimits::default() });
                let plan = plan.clone();
                Box::new(move || {
                    let driver = FaultySqlite { database: database.clone(), plan: plan.clone() };
                    Ok(Rc::new(block_on(SqlStore::open(Rc::new(driver)))?))
                })
            }
            Backend::Kv => {
                let limits = KvLimits { max_value_bytes: 1024, ..KvLimits::default() };
                let service = MemoryKv { limits, ..MemoryKv::default() };
                let plan = plan.clone();
                Box::new(move || {
                    let driver = FaultyKv { service: service.clone(), plan: plan.clone() };
                    Ok(Rc::new(block_on(KvStore::open(Rc::new(driver)))?))
                })
            }
            Backend::WriteOnce => {
                // An append is one value here, of records that are as large as everywhere in the simulation.
                let limits = KvLimits { max_value_bytes: 128 * 1024, ..KvLimits::default() };
                let service = MemoryKv { limits, is_plain: true, ..MemoryKv::default() };
                let (plan, writers) = (plan.clone(), Cell::new(0));
                Box::new(move || {
                    writers.set(writers.get() + 1);
                    let driver = FaultyKv { service: service.clone(), plan: plan.clone() };
                    Ok(Rc::new(block_on(WriteOnceStore::open(Rc::new(driver), format!("writer{}", writers.get())))?))
                })
            }
            Backend::Broken(defect) => {
                let store = Rc::new(BrokenStore {
                    data: RefCell::default(),
                    defect,
                    plan: plan.clone(),
                    appends: Cell::new(0),
                });
                Box::new(move || Ok(store.clone()))
            }
        };
        let fails = backend == Backend::Memory;
        let handle = RefCell::new(plan.paused(&open).unwrap());
        Self { handle, open, plan, fails, yields: Cell::new(false) }
    }

    /// Takes a new handle of the same data.
    pub fn reopen(&self) -> Result<()> {
        self.handle.replace((self.open)()?);
        Ok(())
    }

    /// A new handle of the same data, past this one.
    pub fn handle(&self) -> Rc<dyn LogStore> {
        self.plan.paused(&self.open).unwrap()
    }

    async fn operate<T, F: Future<Output = Result<T>>>(&self, operation: impl Fn(Rc<dyn LogStore>) -> F) -> Result<T> {
        if self.yields.get() {
            let_others_run().await;
        }
        let handle = self.handle.borrow().clone();
        let fault = if self.fails { self.plan.next() } else { None };
        let reply = match fault {
            None => operation(handle).await,
            Some(Fault::Before | Fault::During) => Err(self.plan.error(Fault::Before)),
            Some(Fault::After) => {
                operation(handle).await?;
                Err(self.plan.error(Fault::After))
            }
            Some(Fault::Twice) => {
                operation(handle.clone()).await?;
                operation(handle).await
            }
        };
        if self.yields.get() {
            let_others_run().await;
        }
        reply
    }
}

async fn let_others_run() {
    let mut waited = false;
    poll_fn(|_| if std::mem::replace(&mut waited, true) { Poll::Ready(()) } else { Poll::Pending }).await;
}

impl LogStore for SimulatedStore {
    fn capabilities(&self) -> Capabilities {
        let of_handle = self.handle.borrow().capabilities();
        Capabilities { max_value_bytes: of_handle.max_value_bytes.min(MAX_VALUE_BYTES), ..of_handle }
    }

    fn head<'a>(&'a self, session: &'a str) -> StoreFuture<'a, Option<StoredHead>> {
        Box::pin(self.operate(move |store| async move { store.head(session).await }))
    }

    fn append<'a>(
        &'a self,
        session: &'a str,
        expected: u64,
        batch: Batch,
        operation: &'a str,
    ) -> StoreFuture<'a, Appended> {
        Box::pin(async move {
            self.operate(|store| {
                let batch = batch.clone();
                async move { store.append(session, expected, batch, operation).await }
            })
            .await
        })
    }

    fn read<'a>(&'a self, session: &'a str, query: Query) -> StoreFuture<'a, Vec<Record>> {
        Box::pin(self.operate(move |store| async move { store.read(session, query).await }))
    }

    fn sessions<'a>(
        &'a self,
        cursor: Option<&'a str>,
        limit: usize,
        channel: Option<&'a str>,
    ) -> StoreFuture<'a, Page<SessionRow>> {
        Box::pin(self.operate(move |store| async move { store.sessions(cursor, limit, channel).await }))
    }

    fn invocations<'a>(&'a self, query: &'a AuditQuery) -> StoreFuture<'a, Page<(String, Record)>> {
        Box::pin(self.operate(move |store| async move { store.invocations(query).await }))
    }

    fn delete_session<'a>(&'a self, session: &'a str) -> StoreFuture<'a, ()> {
        Box::pin(self.operate(move |store| async move { store.delete_session(session).await }))
    }

    fn lineage(&self, session: &str) -> u64 {
        self.handle.borrow().lineage(session)
    }
}

/// A store with a defect, for showing that the simulation finds it.
struct BrokenStore {
    data: RefCell<MemoryStore>,
    defect: Defect,
    plan: Rc<FaultPlan>,
    appends: Cell<u64>,
}

impl BrokenStore {
    fn revision(&self, session: &str) -> u64 {
        block_on(self.data.borrow().head(session)).unwrap().map_or(0, |head| head.revision)
    }

    /// The two halves of a batch that is written in two steps.
    fn halves(&self, session: &str, batch: Batch) -> (Batch, Batch) {
        let head = Batch { put: Vec::new(), replace: Vec::new(), remove: Vec::new(), ..batch.clone() };
        if self.defect == Defect::WritesTheHeadFirst {
            return (head, batch);
        }
        let old = block_on(self.data.borrow().head(session)).unwrap().map_or_else(Default::default, |head| head.value);
        (Batch { head: old, ..batch }, head)
    }

    async fn apply(&self, session: &str, expected: u64, mut batch: Batch, operation: &str) -> Result<Appended> {
        self.appends.set(self.appends.get() + 1);
        let name = format!("{operation}#{}", self.appends.get());
        let data = self.data.borrow().clone();
        match self.defect {
            Defect::ForgetsTheRevision => data.append(session, self.revision(session), batch, operation).await,
            Defect::ForgetsTheOperation => data.append(session, expected, batch, &name).await,
            Defect::Overwrites => {
                let put = std::mem::take(&mut batch.put);
                batch.replace.extend(put);
                data.append(session, self.revision(session), batch, operation).await
            }
            Defect::WritesTheHeadFirst | Defect::WritesTheHeadLast => {
                let (first, second) = self.halves(session, batch);
                let appended = data.append(session, expected, first, &name).await?;
                let Appended::Revision(revision) = appended else { return Ok(appended) };
                if self.plan.next() == Some(Fault::During) {
                    return Err(self.plan.error(Fault::During));
                }
                data.append(session, revision, second, operation).await
            }
            Defect::AcknowledgesTooEarly | Defect::LeavesNoTombstone => {
                data.append(session, expected, batch, operation).await
            }
        }
    }
}

impl LogStore for BrokenStore {
    fn capabilities(&self) -> Capabilities {
        self.data.borrow().capabilities()
    }

    fn head<'a>(&'a self, session: &'a str) -> StoreFuture<'a, Option<StoredHead>> {
        let data = self.data.borrow().clone();
        Box::pin(async move { data.head(session).await })
    }

    fn append<'a>(
        &'a self,
        session: &'a str,
        expected: u64,
        batch: Batch,
        operation: &'a str,
    ) -> StoreFuture<'a, Appended> {
        Box::pin(async move {
            match self.plan.next() {
                Some(Fault::Before) => Err(self.plan.error(Fault::Before)),
                Some(Fault::During) if self.defect == Defect::AcknowledgesTooEarly => {
                    let revision = self.revision(session);
                    Ok(if revision == expected {
                        Appended::Revision(expected + 1)
                    } else {
                        Appended::Conflict(revision)
                    })
                }
                Some(Fault::After) => {
                    self.apply(session, expected, batch, operation).await?;
                    Err(self.plan.error(Fault::After))
                }
                Some(Fault::Twice) => {
                    self.apply(session, expected, batch.clone(), operation).await?;
                    self.apply(session, expected, batch, operation).await
                }
                Some(Fault::During) | None => self.apply(session, expected, batch, operation).await,
            }
        })
    }

    fn read<'a>(&'a self, session: &'a str, query: Query) -> StoreFuture<'a, Vec<Record>> {
        let data = self.data.borrow().clone();
        Box::pin(async move { data.read(session, query).await })
    }

    fn sessions<'a>(
        &'a self,
        cursor: Option<&'a str>,
        limit: usize,
        channel: Option<&'a str>,
    ) -> StoreFuture<'a, Page<SessionRow>> {
        let data = self.data.borrow().clone();
        Box::pin(async move { data.sessions(cursor, limit, channel).await })
    }

    fn invocations<'a>(&'a self, query: &'a AuditQuery) -> StoreFuture<'a, Page<(String, Record)>> {
        let data = self.data.borrow().clone();
        Box::pin(async move { data.invocations(query).await })
    }

    fn delete_session<'a>(&'a self, session: &'a str) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            if self.defect != Defect::LeavesNoTombstone {
                let data = self.data.borrow().clone();
                return data.delete_session(session).await;
            }
            // Everything but the session goes to new data.
            let (old, new) = (self.data.borrow().clone(), MemoryStore::default());
            for row in old.sessions(None, 100, None).await?.items {
                if row.id == session {
                    continue;
                }
                let mut put = Vec::new();
                for table in
                    [rethread::store::Table::Log, rethread::store::Table::ToolInvocations, rethread::store::Table::Runs]
                {
                    put.append(&mut old.read(&row.id, Query::all(table)).await?);
                }
                let batch = Batch { head: row.head.value, at_least: row.head.revision, put, ..Batch::default() };
                new.append(&row.id, 0, batch, "copied").await?;
            }
            self.data.replace(new);
            Ok(())
        })
    }
}
