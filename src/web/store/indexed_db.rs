//! IndexedDB: where a browser keeps chats.
//!
//! Every append is one transaction that compares the head and writes; the transaction is the lock between tabs, and nothing
//! is awaited inside it. A connection that is lost is opened again once, and the call repeated, which its operation makes safe.

mod connection;
mod failure;
mod read;
mod rows;
mod scan;
mod transaction;
mod wait;
mod write;

pub use connection::delete_database;

use crate::clock::Ms;
use crate::error::{Code, Error, Result};
use crate::store::{
    Appended, AuditQuery, Batch, Capabilities, Head, LogStore, MAX_RECORD_BYTES, PAGE, Page, Query, Record, SessionRow,
    StoreFuture, Table, audit_cursor, open_audit_cursor,
};
use connection::{Connection, Sentinel};
use failure::Failure;
use read::Read;
use rows::{HEADS, HeadRow, Keys, table_name};
use scan::{End, Scan};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use transaction::{Script, Step};
use wasm_bindgen::JsValue;
use write::{Append, bury};

/// When a write counts as done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// When the operating system has it: outlives the tab and the browser, and may lose the last moments to a power cut.
    #[default]
    Relaxed,
    /// When the disk has it.
    Strict,
}

impl Durability {
    fn as_str(self) -> &'static str {
        match self {
            Self::Relaxed => "relaxed",
            Self::Strict => "strict",
        }
    }
}

/// How an [`IndexedDbStore`] is opened.
#[derive(Clone, Copy, Debug)]
pub struct IndexedDbOptions {
    /// When a write counts as done.
    pub durability: Durability,
    /// How long to wait for another tab to give way or for a disk, in milliseconds, before `busy`.
    pub busy_after: Ms,
    /// How long to wait for other tabs to close an old version, in milliseconds, before `upgrade_blocked`.
    pub blocked_after: Ms,
}

impl Default for IndexedDbOptions {
    fn default() -> Self {
        Self { durability: Durability::Relaxed, busy_after: 10_000, blocked_after: 3_000 }
    }
}

/// The store over one IndexedDB database.
pub struct IndexedDbStore {
    name: String,
    options: IndexedDbOptions,
    connection: RefCell<Option<Rc<Connection>>>,
    /// Whether it was ever open: a database that has to be made again then was taken away.
    opened: Cell<bool>,
    newest: Cell<bool>,
}

/// Where a script leaves what it found.
type Found<T> = Rc<RefCell<Option<T>>>;

impl IndexedDbStore {
    /// Opens the database of this name, or makes it.
    ///
    /// # Errors
    /// As [`open_with`](Self::open_with).
    pub async fn open(name: &str, durability: Durability) -> Result<Self> {
        Self::open_with(name, IndexedDbOptions { durability, ..IndexedDbOptions::default() }).await
    }

    /// Opens the database of this name, or makes it.
    ///
    /// # Errors
    /// `store_error` where there is no IndexedDB, `upgrade_blocked` while another tab keeps it from opening,
    /// `unsupported_version` when a newer version made it, and `evicted`, once, when it was there and is gone.
    pub async fn open_with(name: &str, options: IndexedDbOptions) -> Result<Self> {
        let store = Self {
            name: name.into(),
            options,
            connection: RefCell::default(),
            opened: Cell::new(false),
            newest: Cell::new(true),
        };
        store.connection().await.map_err(|failure| failure.error)?;
        Ok(store)
    }

    /// Closes the connection behind the store's back, as browsers do.
    #[doc(hidden)]
    pub fn lose_connection(&self) {
        if let Some(connection) = &*self.connection.borrow() {
            connection.database().close();
        }
    }

    /// Reads as browsers do that lack `getAllRecords`.
    #[doc(hidden)]
    pub fn read_as_older_browsers(&self) {
        self.newest.set(false);
    }

    async fn connection(&self) -> std::result::Result<Rc<Connection>, Failure> {
        if let Some(open) = self.connection.borrow().as_ref().filter(|open| !open.is_closed()) {
            return Ok(Rc::clone(open));
        }
        let sentinel = Sentinel::of(&self.name);
        let (connection, made) = Connection::open(&self.name, &self.options).await?;
        let connection = Rc::new(connection);
        self.connection.replace(Some(Rc::clone(&connection)));
        let was_there = self.opened.replace(true) || sentinel.is_set();
        sentinel.set();
        if made && was_there {
            let message = "the browser removed this site's database, and the chats in it are gone; a new one is open now: repeat the call to go on with it";
            return Err(Failure::new(Code::Evicted, message));
        }
        Ok(connection)
    }

    /// Runs a transaction, on a new connection if the first is lost. `script` is made anew for each.
    async fn transact<T: 'static>(
        &self,
        stores: &[&str],
        write: Option<Durability>,
        script: impl Fn(Found<T>) -> Script,
    ) -> Result<T> {
        let mut again = false;
        loop {
            let found: Found<T> = Rc::default();
            let connection = self.connection().await;
            let run = async {
                let transaction = connection.as_ref().map_err(Failure::clone)?.begin(stores, write)?;
                transaction::run(transaction, script(Rc::clone(&found)), self.options.busy_after).await
            };
            let Err(failure) = run.await else {
                let found = found.take();
                return found
                    .ok_or_else(|| Error::new(Code::Internal, "an IndexedDB transaction ended and found nothing"));
            };
            if !failure.lost {
                return Err(failure.error);
            }
            if let Ok(lost) = &connection {
                self.connection.borrow_mut().take_if(|open| Rc::ptr_eq(open, lost));
            }
            if std::mem::replace(&mut again, true) {
                return Err(failure.error);
            }
        }
    }

    /// A transaction that reads the head's row and goes on from there at once.
    async fn with_head<T: 'static>(
        &self,
        keys: Keys,
        stores: &[&str],
        write: Option<Durability>,
        then: impl Fn(&Keys, &web_sys::IdbTransaction, &JsValue) -> std::result::Result<(T, u64), Failure> + 'static,
    ) -> Result<T> {
        let shared = Rc::new((keys, then));
        self.transact(stores, write, |found| {
            let shared = Rc::clone(&shared);
            Box::new(move |transaction, answers| {
                let (keys, then) = &*shared;
                let Some(row) = answers.first() else {
                    return Ok(Step::Ask(vec![transaction.object_store(HEADS)?.get(keys.session())?]));
                };
                let (outcome, written) = then(keys, transaction, row)?;
                found.replace(Some(outcome));
                Ok(Step::Done(written))
            })
        })
        .await
    }

    /// A page of what a scan finds: `pick` takes what is wanted, `cursor` names an item's place.
    async fn page<T: 'static>(
        &self,
        store: &'static str,
        limit: usize,
        ends: (Option<End>, Option<End>),
        pick: impl Fn(&JsValue, &JsValue) -> std::result::Result<Option<T>, Failure> + 'static,
        cursor: fn(&T) -> String,
    ) -> Result<Page<T>> {
        let limit = if limit == 0 { PAGE } else { limit };
        let pick = Rc::new(pick);
        self.transact(&[store], None, |found: Found<Page<T>>| {
            let pick = Rc::clone(&pick);
            let mut items = Vec::new();
            let mut scan = Scan::new(store, self.newest.get());
            (scan.lower, scan.upper) = ends.clone();
            // One more than the page shows whether there is a next.
            scan.count = u32::try_from(limit.saturating_add(1)).unwrap_or(u32::MAX).clamp(32, 256);
            Box::new(move |transaction, answers| {
                if answers.is_empty() {
                    return scan.ask(transaction);
                }
                for (key, value) in scan.rows(answers)? {
                    items.extend(pick(&key, &value)?);
                }
                if items.len() <= limit && !scan.ended() {
                    return scan.ask(transaction);
                }
                let more = items.len() > limit;
                let mut items = std::mem::take(&mut items);
                items.truncate(limit);
                let cursor = items.last().filter(|_| more).map(cursor);
                found.replace(Some(Page { items, cursor }));
                Ok(Step::Done(0))
            })
        })
        .await
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

    fn head<'a>(&'a self, session: &'a str) -> StoreFuture<'a, Option<Head>> {
        Box::pin(self.with_head(Keys::of(session), &[HEADS], None, |_, _, row| {
            Ok((HeadRow::read(row)?.and_then(HeadRow::head), 0))
        }))
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
            let append = Append { expected, batch, operation: operation.into() };
            let stores = append.stores();
            self.with_head(Keys::of(session), &stores, Some(self.options.durability), move |keys, transaction, row| {
                append.write(keys, transaction, row)
            })
            .await
        })
    }

    fn read<'a>(&'a self, session: &'a str, query: Query) -> StoreFuture<'a, Vec<Record>> {
        Box::pin(async move {
            if query.from > query.to || query.from > crate::store::MAX_KEY {
                return Ok(Vec::new());
            }
            let stores = Read::stores(&query);
            self.transact(&stores, None, |found| {
                let mut read = Read::new(session, query, self.newest.get());
                Box::new(move |transaction, answers| {
                    let step = read.step(transaction, answers)?;
                    if matches!(step, Step::Done(_)) {
                        found.replace(Some(read.records()));
                    }
                    Ok(step)
                })
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
        let channel = channel.map(str::to_owned);
        let after = cursor.map(|cursor| End::beyond(JsValue::from_str(cursor)));
        let pick = move |key: &JsValue, value: &JsValue| {
            let (Some(id), Some(row)) = (key.as_string(), HeadRow::read(value)?) else { return Ok(None) };
            let wanted = channel.is_none() || row.channel == channel;
            Ok(row.head().filter(|_| wanted).map(|head| SessionRow { id, head }))
        };
        Box::pin(self.page(HEADS, limit, (after, None), pick, |row| row.id.clone()))
    }

    fn invocations<'a>(&'a self, query: &'a AuditQuery) -> StoreFuture<'a, Page<(String, Record)>> {
        Box::pin(async move {
            let after = query.cursor.as_deref().map(open_audit_cursor).transpose()?;
            let session = query.session.as_deref().map(Keys::of);
            let lower = match (after, &session) {
                (Some((session, key)), _) => Some(End::beyond(Keys::of(session).past(key))),
                (None, Some(keys)) => Some(End::at(keys.start())),
                (None, None) => None,
            };
            // A cursor from another session's rows may lie behind this session's, where no range may end.
            let same = after.is_none_or(|(session, _)| query.session.as_deref() == Some(session));
            let upper = session.filter(|_| same).map(|keys| End::at(keys.end()));
            let wanted = query.clone();
            let pick = move |key: &JsValue, value: &JsValue| {
                let (Some((session, key, last)), Some(index)) = (rows::place(key), rows::index_of(value)) else {
                    return Ok(None);
                };
                let wanted = wanted.matches(&session, &index);
                Ok(wanted.then(|| (session, rows::read(Table::ToolInvocations, key, last, value))))
            };
            self.page(table_name(Table::ToolInvocations), query.limit, (lower, upper), pick, |(session, record)| {
                audit_cursor(session, record.key)
            })
            .await
        })
    }

    fn delete_session<'a>(&'a self, session: &'a str) -> StoreFuture<'a, ()> {
        let stores = [HEADS, table_name(Table::Log), table_name(Table::ToolInvocations), table_name(Table::Runs)];
        Box::pin(async move {
            let bury = |keys: &Keys, transaction: &web_sys::IdbTransaction, row: &JsValue| {
                Ok((bury(keys, transaction, row)?, 0))
            };
            self.with_head(Keys::of(session), &stores, Some(self.options.durability), bury).await
        })
    }
}
