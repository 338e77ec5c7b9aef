//! Key-value services: where a browser, a server or a Worker keeps chats without a SQL database.
//!
//! A [`KvDriver`] gets, lists and writes values; keys, values and what they mean are here. With [`KvDriver::commit`]
//! every append is one commit that is applied if the head is as it was read, and [`KvStore`] keeps the whole contract.
//! Without, [`WriteOnceStore`] keeps what one writer needs, and detects a second one.

mod append_commit;
mod append_tree;
mod bucket;
mod bucket_probe;
mod directory;
mod driver;
mod key;
mod list;
mod load;
mod pack;
mod pack_io;
mod packing;
mod rate_limit;
mod retained_io;
mod schema;
mod stored_append;
mod value;
mod write_once;

pub use bucket::{Bucket, BucketDriver, CommitNumbers};
pub use bucket_probe::find_swap;
pub use driver::{HostTimer, KvCheck, KvDriver, KvEntry, KvLimits, KvPage, KvWrite};
pub use write_once::WriteOnceStore;

use super::{
    Appended, AuditQuery, Batch, Capabilities, LogStore, MAX_KEY, MAX_RECORD_BYTES, Page, Query, Record,
    RecordSelector, SessionRow, StoreFuture, StoredHead,
};
use crate::error::{Error, ErrorCode, Result};
use append_commit::SessionCommit;
use driver::{ATTEMPTS, too_busy};
use key::head_key;
use list::{list_invocations, list_sessions};
use load::{LoadedSession, load_session, read_range};
use rate_limit::RetryingDriver;
use schema::prepare;
use std::cell::Cell;
use std::rc::Rc;

/// A store over a key-value service with atomic commits.
pub struct KvStore {
    driver: RetryingDriver,
    closed: Cell<bool>,
}

impl KvStore {
    /// Opens the store.
    ///
    /// # Errors `unsupported_version` if a newer version wrote the keys, `config_invalid` if somebody else did, or the
    /// driver has no `commit` or too narrow limits, and the driver's own. Nothing is written then.
    pub async fn open(driver: Rc<dyn KvDriver>) -> Result<Self> {
        if !driver.has_commit() {
            return Err(Error::config(format!("the {} store: its driver has no `commit`", driver.name())));
        }
        if driver.limits().min_rewrite_ms > 0 {
            return Err(Error::config(format!(
                "the {} store: an append writes the head's key again, so a driver with `commit` has no `limits.minRewriteMs`; leave one of them out",
                driver.name()
            )));
        }
        let driver = RetryingDriver::new(driver);
        prepare(&driver).await?;
        Ok(Self { driver, closed: Cell::new(false) })
    }

    fn check_open(&self) -> Result<()> {
        if self.closed.get() {
            let message = format!("the {} store was closed; `open` again", self.driver.name());
            return Err(Error::new(ErrorCode::Closed, message));
        }
        Ok(())
    }

    async fn load(&self, session: &str) -> Result<LoadedSession> {
        self.check_open()?;
        load_session(&self.driver, session).await
    }

    /// Returns a session without records that a deletion left behind.
    async fn load_swept(&self, session: &str) -> Result<LoadedSession> {
        loop {
            let loaded = self.load(session).await?;
            if loaded.head.is_live || !loaded.head.has_records() {
                return Ok(loaded);
            }
            self.bury(&loaded).await?;
        }
    }

    /// Removes what commits to a session without records left behind, whose outcome nobody knows. Returns false if
    /// somebody else wrote to the session in between.
    async fn remove_abandoned(&self, loaded: &LoadedSession) -> Result<bool> {
        let abandoned = self.driver.abandoned(&head_key(&loaded.key)).await?;
        if abandoned.is_empty() {
            return Ok(true);
        }
        // The head is written again, so that a commit under way which wrote these values fails.
        if !self.bury(loaded).await? {
            return Ok(false);
        }
        for key in abandoned {
            self.driver.delete(key).await?;
        }
        Ok(true)
    }

    /// Returns false if somebody else wrote to the session in between: then nothing was written.
    async fn bury(&self, loaded: &LoadedSession) -> Result<bool> {
        let mut commit = SessionCommit::new(loaded, self.driver.limits().max_value_bytes);
        commit.bury()?;
        let (checks, writes) = commit.into_commit();
        self.driver.commit(checks, writes, None).await
    }
}

impl LogStore for KvStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            compare_and_append: true,
            atomic_batch: true,
            read_your_writes: true,
            max_value_bytes: MAX_RECORD_BYTES as u64,
            durable: true,
        }
    }

    fn sends_notices(&self) -> bool {
        self.driver.has_change_feed()
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move { if self.closed.replace(true) { Ok(()) } else { self.driver.close().await } })
    }

    fn head<'a>(&'a self, session: &'a str) -> StoreFuture<'a, Option<StoredHead>> {
        Box::pin(async move {
            let loaded = self.load(session).await?;
            let head = StoredHead { revision: loaded.head.revision, value: loaded.value };
            Ok(loaded.head.is_live.then_some(head))
        })
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
            for _ in 0..ATTEMPTS {
                let loaded = self.load_swept(session).await?;
                if let Some(outcome) = loaded.head.operations().outcome(loaded.head.revision, expected, operation) {
                    return Ok(outcome);
                }
                let mut commit = SessionCommit::new(&loaded, self.driver.limits().max_value_bytes);
                if commit.is_occupied(&batch) {
                    return Ok(Appended::Occupied);
                }
                let revision = commit.append(&batch, operation)?;
                let (checks, writes) = commit.into_commit();
                let notice = batch.notice.clone().filter(|_| self.sends_notices());
                if self.driver.commit(checks, writes, notice).await? {
                    return Ok(Appended::Revision(revision));
                }
            }
            Err(too_busy(&self.driver))
        })
    }

    fn read<'a>(&'a self, session: &'a str, query: Query) -> StoreFuture<'a, Vec<Record>> {
        Box::pin(async move {
            if query.from > query.to || query.from > MAX_KEY {
                return Ok(Vec::new());
            }
            for attempt in 1..=ATTEMPTS {
                let loaded = self.load(session).await?;
                if !loaded.head.is_live {
                    return Ok(Vec::new());
                }
                if let Some(records) = read_range(&self.driver, &loaded, query, attempt == ATTEMPTS).await? {
                    return Ok(records);
                }
            }
            Err(too_busy(&self.driver))
        })
    }

    fn head_and_records<'a>(
        &'a self,
        session: &'a str,
        select: RecordSelector,
    ) -> StoreFuture<'a, Option<(StoredHead, Vec<Record>)>> {
        Box::pin(async move {
            for attempt in 1..=ATTEMPTS {
                let loaded = self.load(session).await?;
                if !loaded.head.is_live {
                    return Ok(None);
                }
                let head = StoredHead { revision: loaded.head.revision, value: loaded.value.clone() };
                let Some(query) = select(&head) else { return Ok(Some((head, Vec::new()))) };
                if let Some(records) = read_range(&self.driver, &loaded, query, attempt == ATTEMPTS).await? {
                    return Ok(Some((head, records)));
                }
            }
            Err(too_busy(&self.driver))
        })
    }

    fn sessions<'a>(
        &'a self,
        cursor: Option<&'a str>,
        limit: usize,
        channel: Option<&'a str>,
    ) -> StoreFuture<'a, Page<SessionRow>> {
        Box::pin(async move {
            self.check_open()?;
            list_sessions(&self.driver, cursor, limit, channel).await
        })
    }

    fn invocations<'a>(&'a self, query: &'a AuditQuery) -> StoreFuture<'a, Page<(String, Record)>> {
        Box::pin(async move {
            self.check_open()?;
            list_invocations(&self.driver, query).await
        })
    }

    fn delete_session<'a>(&'a self, session: &'a str) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            for _ in 0..ATTEMPTS {
                let loaded = self.load_swept(session).await?;
                if loaded.head.is_live {
                    self.bury(&loaded).await?;
                } else if self.remove_abandoned(&loaded).await? {
                    return Ok(());
                }
            }
            Err(too_busy(&self.driver))
        })
    }
}
