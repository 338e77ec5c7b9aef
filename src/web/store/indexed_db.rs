//! The store of browsers: IndexedDB.
//!
//! Every append is one transaction that compares the head and writes; the transaction is the lock between tabs, and
//! nothing is awaited inside it. After a lost connection the store opens a new one once and repeats the call, which is
//! safe because an append has an operation name.

mod changes;
mod connection;
mod failure;
mod head;
mod options;
mod pages;
mod parts;
mod read;
mod recent;
mod rows;
mod scan;
mod search_index;
mod transaction;
mod upgrade;
mod wait;
mod write;

pub use connection::delete_database;
pub use options::{Durability, IndexedDbOptions};

use crate::error::{ErrorCode, Result};
use crate::store::{
    Appended, AuditQuery, Batch, Capabilities, HeadChanges, LogStore, MAX_KEY, MAX_RECORD_BYTES, Page, Query,
    RecencyQuery, Record, RecordSelector, RecordSink, SearchIndexStore, SessionRow, StoreFuture, StoredHead,
};
use changes::ChangesScript;
use connection::{DatabaseOrigin, EvictionMarker, IdbConnection};
use failure::IdbFailure;
use head::{HeadOperation, HeadScript};
use pages::PageScript;
use parts::PartsScript;
use read::RangeReadScript;
use recent::RecentScript;
use rows::{HeadRow, SessionKeys};
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use transaction::{Script, SharedScript};
use write::AppendRequest;

/// The store over one IndexedDB database.
pub struct IndexedDbStore {
    name: String,
    options: IndexedDbOptions,
    connection: RefCell<Option<Rc<IdbConnection>>>,
    /// The database was open once: if it must be created again, the browser has evicted it.
    opened: Cell<bool>,
    evicted: Cell<bool>,
    closed: Cell<bool>,
    uses_newest_api: Cell<bool>,
    /// The mark that the database exists was set since the store was opened.
    is_marked: Cell<bool>,
    /// The heads that were written last, by session: an append to one of them writes without waiting for the head.
    written_heads: RefCell<Vec<(String, HeadRow)>>,
    /// The number of the newest change that this handle made.
    newest_change: Cell<u64>,
    /// The number of connections that were opened, and the one on which the newest mark of changes was read.
    connections: Cell<u64>,
    marked_connection: Cell<u64>,
    /// False once the disk was full: what an index takes belongs to the sessions.
    stores_index: Cell<bool>,
}

/// Number of heads that are remembered.
const REMEMBERED_HEADS: usize = 8;

impl IndexedDbStore {
    /// Opens the database of this name, or creates it.
    ///
    /// # Errors
    /// As [`open_with`](Self::open_with).
    pub async fn open(name: &str, durability: Durability) -> Result<Self> {
        Self::open_with(name, IndexedDbOptions { durability, ..IndexedDbOptions::default() }).await
    }

    /// Opens the database of this name, or creates it.
    ///
    /// # Errors
    /// `store_error` where there is no IndexedDB, `upgrade_blocked` while another tab keeps it from opening,
    /// `unsupported_version` if a newer version created it, and `evicted`, once, if the browser has removed it.
    pub async fn open_with(name: &str, options: IndexedDbOptions) -> Result<Self> {
        let store = Self {
            name: name.into(),
            options,
            connection: RefCell::default(),
            opened: Cell::new(false),
            evicted: Cell::new(false),
            closed: Cell::new(false),
            uses_newest_api: Cell::new(true),
            is_marked: Cell::new(false),
            written_heads: RefCell::default(),
            newest_change: Cell::new(0),
            connections: Cell::new(0),
            marked_connection: Cell::new(0),
            stores_index: Cell::new(true),
        };
        store.connection().await.map_err(|failure| failure.error)?;
        Ok(store)
    }

    /// Closes the connection without notice, as browsers do. For tests.
    #[doc(hidden)]
    pub fn lose_connection(&self) {
        if let Some(connection) = &*self.connection.borrow() {
            connection.database().close();
        }
    }

    /// Reads without `getAllRecords`, as in older browsers. For tests.
    #[doc(hidden)]
    pub fn read_as_older_browsers(&self) {
        self.uses_newest_api.set(false);
    }

    async fn connection(&self) -> std::result::Result<Rc<IdbConnection>, IdbFailure> {
        if let Some(open) = self.connection.borrow().as_ref().filter(|open| !open.is_closed()) {
            return Ok(Rc::clone(open));
        }
        if self.closed.get() {
            return Err(IdbFailure::new(ErrorCode::Closed, "the store was closed; `open` again"));
        }
        let (connection, origin) = IdbConnection::open(&self.name, &self.options).await?;
        let connection = Rc::new(connection);
        self.connection.replace(Some(Rc::clone(&connection)));
        self.connections.set(self.connections.get() + 1);
        let was_open = self.opened.replace(true);
        let cause = match origin {
            // The first access to localStorage waits for the browser, and a database that is there was not evicted.
            DatabaseOrigin::Existing => return Ok(connection),
            DatabaseOrigin::Created if !self.mark_existence() && !was_open => return Ok(connection),
            DatabaseOrigin::Created => "the browser removed this site's database".to_owned(),
            DatabaseOrigin::Replaced(reason) => {
                self.mark_existence();
                format!("the browser found this site's database damaged and removed it ({reason})")
            }
        };
        self.evicted.set(true);
        let message = format!(
            "{cause}, and the chats in it are gone; a new one is open now: repeat the call to continue with it"
        );
        Err(IdbFailure::new(ErrorCode::Evicted, message))
    }

    /// Marks that the database exists. Returns true if it was marked before.
    fn mark_existence(&self) -> bool {
        let marker = EvictionMarker::of(&self.name);
        let was_set = marker.is_set();
        marker.set();
        self.is_marked.set(true);
        was_set
    }

    /// Runs a script, on a new connection if the first is lost.
    fn transact(&self, script: SharedScript, write: bool) -> StoreFuture<'_, ()> {
        Box::pin(async move { self.transacted(script, write).await.map_err(|failure| failure.error) })
    }

    async fn transacted(&self, script: SharedScript, write: bool) -> std::result::Result<(), IdbFailure> {
        let mut ended = self.attempt(&script, write).await;
        if ended.as_ref().is_err_and(|failure| failure.lost) {
            script.borrow_mut().restart();
            ended = self.attempt(&script, write).await;
        }
        ended
    }

    async fn attempt(&self, script: &SharedScript, write: bool) -> std::result::Result<(), IdbFailure> {
        let connection = self.connection().await?;
        let stores = script.borrow().stores();
        let ended = match connection.begin(&stores, write.then_some(self.options.durability)) {
            Ok(transaction) => transaction::run(transaction, Rc::clone(script), self.options.busy_after, write).await,
            Err(failure) => Err(failure),
        };
        if ended.as_ref().is_err_and(|failure| failure.lost) {
            self.connection.borrow_mut().take_if(|open| Rc::ptr_eq(open, &connection));
        }
        ended
    }

    fn run_on_head<'a>(&'a self, session: &str, operation: HeadOperation) -> StoreFuture<'a, Rc<RefCell<HeadScript>>> {
        let write = !matches!(operation, HeadOperation::Read);
        let script = Rc::new(RefCell::new(HeadScript::new(session, operation, self.next_change())));
        Box::pin(async move {
            self.transact(script.clone(), write).await?;
            if write {
                self.remember_change(script.borrow().change);
            }
            Ok(script)
        })
    }

    /// Returns a number for a change, above those that this handle made.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn next_change(&self) -> u64 {
        let now = js_sys::Date::now() as u64; // proof: only the host adapter may read the clock
        now.max(self.newest_change.get().saturating_add(1))
    }

    fn remember_change(&self, change: u64) {
        self.newest_change.set(self.newest_change.get().max(change));
    }

    /// Returns the head of a session as this store wrote it last, and forgets it.
    fn take_written_head(&self, session: &str) -> Option<HeadRow> {
        let mut heads = self.written_heads.borrow_mut();
        let at = heads.iter().position(|(id, _)| id == session)?;
        Some(heads.remove(at).1)
    }

    fn remember_written_head(&self, session: &str, row: HeadRow) {
        let mut heads = self.written_heads.borrow_mut();
        if heads.len() >= REMEMBERED_HEADS {
            heads.remove(0);
        }
        heads.push((session.to_owned(), row));
    }

    /// Deletes a session on a full disk. Its tombstone is written afterwards, in the space that this freed.
    async fn erase(&self, session: &str) -> Result<()> {
        // Without a tombstone there is no change by which an index would lose the session.
        self.stores_index.set(false);
        let Some(tombstone) =
            self.run_on_head(session, HeadOperation::Erase).await?.borrow_mut().unwritten_tombstone.take()
        else {
            return Ok(());
        };
        match self.run_on_head(session, HeadOperation::WriteTombstone(tombstone)).await {
            // The session is deleted. A writer that knew it finds no head, which is a conflict as well.
            Err(error) if error.code == ErrorCode::QuotaExceeded => Ok(()),
            ended => ended.map(drop),
        }
    }
}

impl LogStore for IndexedDbStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            compare_and_append: true,
            atomic_batch: true,
            read_your_writes: true,
            max_value_bytes: MAX_RECORD_BYTES as u64,
            durable: true,
        }
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        self.closed.set(true);
        // Transactions under way end first.
        drop(self.connection.take());
        Box::pin(async { Ok(()) })
    }

    fn was_evicted(&self) -> bool {
        self.evicted.get()
    }

    fn head<'a>(&'a self, session: &'a str) -> StoreFuture<'a, Option<StoredHead>> {
        Box::pin(async move { Ok(self.run_on_head(session, HeadOperation::Read).await?.borrow_mut().head.take()) })
    }

    fn append<'a>(
        &'a self,
        session: &'a str,
        expected: u64,
        batch: Batch,
        operation: &'a str,
    ) -> StoreFuture<'a, Appended> {
        Box::pin(async move {
            batch.check(operation, self.capabilities().max_value_bytes)?;
            let append = AppendRequest { expected, batch, operation: operation.into() };
            let remembered = self.take_written_head(session);
            let script =
                Rc::new(RefCell::new(HeadScript::append_after(session, (append, self.next_change()), remembered)));
            let mut ended = self.transacted(script.clone(), true).await;
            if ended.is_err() && script.borrow().is_stale {
                script.borrow_mut().restart();
                ended = self.transacted(script.clone(), true).await;
            }
            let is_full = ended.as_ref().is_err_and(|failure| failure.error.code == ErrorCode::QuotaExceeded);
            if is_full && self.give_up_index().await {
                script.borrow_mut().restart();
                ended = self.transacted(script.clone(), true).await;
            }
            match ended {
                Err(failure) if failure.occupied => return Ok(Appended::Occupied),
                ended => ended.map_err(|failure| failure.error)?,
            }
            if let Some(row) = script.borrow_mut().written_row.take() {
                self.remember_change(row.change);
                self.remember_written_head(session, row);
            }
            if !self.is_marked.get() {
                self.mark_existence();
            }
            let appended = script.borrow().appended;
            appended.ok_or_else(|| IdbFailure::found_nothing().error)
        })
    }

    fn read<'a>(&'a self, session: &'a str, query: Query) -> StoreFuture<'a, Vec<Record>> {
        Box::pin(async move {
            if query.from > query.to || query.from > MAX_KEY {
                return Ok(Vec::new());
            }
            let read = Rc::new(RefCell::new(RangeReadScript::new(
                SessionKeys::of(session),
                query,
                self.uses_newest_api.get(),
            )));
            self.transact(read.clone(), false).await?;
            Ok(std::mem::take(&mut read.borrow_mut().records))
        })
    }

    fn head_and_records<'a>(
        &'a self,
        session: &'a str,
        select: RecordSelector,
    ) -> StoreFuture<'a, Option<(StoredHead, Vec<Record>)>> {
        Box::pin(async move {
            let read = RangeReadScript::after_head(SessionKeys::of(session), select, self.uses_newest_api.get());
            let read = Rc::new(RefCell::new(read));
            self.transact(read.clone(), false).await?;
            let mut read = read.borrow_mut();
            Ok(read.head.take().map(|head| (head, std::mem::take(&mut read.records))))
        })
    }

    fn read_parts<'a>(&'a self, session: &'a str, query: Query, take: RecordSink<'a>) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            if query.from > query.to || query.from > MAX_KEY {
                return Ok(());
            }
            let parts = Rc::new(RefCell::new(PartsScript::new(SessionKeys::of(session), query)));
            let mut reading = self.transact(parts.clone(), false);
            // More is requested before this future is woken.
            poll_fn(|context| {
                let ended = reading.as_mut().poll(context);
                let records = parts.borrow_mut().take_arrived(context.waker());
                if !records.is_empty() {
                    take(records);
                }
                ended
            })
            .await
        })
    }

    fn sessions<'a>(
        &'a self,
        cursor: Option<&'a str>,
        limit: usize,
        channel: Option<&'a str>,
    ) -> StoreFuture<'a, Page<SessionRow>> {
        let pages = PageScript::sessions(cursor, limit, channel, self.uses_newest_api.get());
        Box::pin(async move {
            let pages = Rc::new(RefCell::new(pages));
            self.transact(pages.clone(), false).await?;
            Ok(pages.borrow_mut().page_of_sessions())
        })
    }

    fn heads<'a>(
        &'a self,
        cursor: Option<&'a str>,
        limit: usize,
        channel: Option<&'a str>,
    ) -> StoreFuture<'a, Page<SessionRow>> {
        let pages = PageScript::heads(cursor, limit, channel, self.uses_newest_api.get());
        Box::pin(async move {
            let pages = Rc::new(RefCell::new(pages));
            self.transact(pages.clone(), false).await?;
            Ok(pages.borrow_mut().page_of_sessions())
        })
    }

    fn head_changes(&self, since: Option<u64>) -> Option<StoreFuture<'_, HeadChanges>> {
        Some(Box::pin(async move {
            let changes = Rc::new(RefCell::new(ChangesScript::new(since)));
            self.transact(changes.clone(), false).await?;
            let read = changes.borrow_mut().take();
            let HeadChanges { mark, changed } = read.ok_or_else(|| IdbFailure::found_nothing().error)?;
            // While a connection is open, nobody can put another database in the place of its own.
            let is_same = self.marked_connection.replace(self.connections.get()) == self.connections.get();
            Ok(HeadChanges { mark, changed: changed.filter(|_| is_same) })
        }))
    }

    fn search_index_store(&self) -> Option<&dyn SearchIndexStore> {
        self.stores_index.get().then_some(self)
    }

    fn recent_sessions<'a>(&'a self, query: &'a RecencyQuery) -> Option<StoreFuture<'a, Page<SessionRow>>> {
        Some(Box::pin(async move {
            let recent = Rc::new(RefCell::new(RecentScript::new(query)?));
            self.transact(recent.clone(), false).await?;
            let Some(after) = recent.borrow().unlisted_after() else { return Ok(recent.borrow_mut().page(Vec::new())) };
            let pages = PageScript::unlisted(after.as_deref(), query.limit, self.uses_newest_api.get());
            let pages = Rc::new(RefCell::new(pages));
            self.transact(pages.clone(), false).await?;
            let unlisted = pages.borrow_mut().take_sessions();
            let page = recent.borrow_mut().page(unlisted);
            Ok(page)
        }))
    }

    fn invocations<'a>(&'a self, query: &'a AuditQuery) -> StoreFuture<'a, Page<(String, Record)>> {
        let pages = PageScript::audit(query, self.uses_newest_api.get());
        Box::pin(async move {
            let pages = Rc::new(RefCell::new(pages?));
            self.transact(pages.clone(), false).await?;
            Ok(pages.borrow_mut().page_of_rows())
        })
    }

    fn delete_session<'a>(&'a self, session: &'a str) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            match self.run_on_head(session, HeadOperation::Delete).await {
                // On a full disk Chromium rejects every transaction that writes, but not one that only deletes.
                Err(error) if error.code == ErrorCode::QuotaExceeded => self.erase(session).await,
                ended => ended.map(drop),
            }
        })
    }
}
