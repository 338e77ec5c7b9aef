//! SQL databases: where a server or a Worker keeps chats.
//!
//! A [`SqlDriver`] runs statements; tables, statements and what they mean are here. Every append is one batch that
//! changes nothing unless the head is at the expected revision, so a driver needs no more than "all of these in one
//! transaction".

mod append_statements;
mod driver;
mod key_ranges;
mod list;
mod log_join;
mod read;
mod recent;
mod schema;
mod statement;
mod tables;

pub use driver::{SqlDialect, SqlDriver, SqlLimits, SqlRow, SqlStatement, SqlValue};

use super::{
    Appended, AuditQuery, Batch, Capabilities, LogKey, LogStore, MAX_KEY, MAX_RECORD_BYTES, Page, Query, RecencyQuery,
    Record, SessionRow, StoreFuture, StoredHead,
};
use crate::error::{Error, ErrorCode, Result};
use append_statements::{AppendPlan, delete_statements};
use list::{AuditList, AuditOrder, SessionList, page_size};
use log_join::{joined_records, keys_of_statement, log_join_statement};
use read::{RangeRead, ReadPage, ReadProgress, head_statement, read_head_rows};
use recent::RecentList;
use std::cell::Cell;
use std::rc::Rc;

/// How often a read that was interrupted by writes begins again, before it reads everything in one statement.
const READ_ATTEMPTS: usize = 3;

/// A store over a SQL database.
pub struct SqlStore {
    driver: Rc<dyn SqlDriver>,
    closed: Cell<bool>,
}

impl SqlStore {
    /// Opens the store, and makes its tables where there are none.
    ///
    /// # Errors `unsupported_version` if a newer version made the tables, `config_invalid` if somebody else did or the
    /// driver's limits are too narrow, and the driver's own. Nothing is written then.
    pub async fn open(driver: Rc<dyn SqlDriver>) -> Result<Self> {
        driver.limits().check()?;
        schema::prepare(&*driver).await?;
        Ok(Self { driver, closed: Cell::new(false) })
    }

    /// The SQL of the database.
    #[must_use]
    pub fn dialect(&self) -> SqlDialect {
        self.driver.dialect()
    }

    /// Runs statements, and insists on a result for each.
    async fn transaction(&self, statements: Vec<SqlStatement>) -> Result<Vec<Vec<SqlRow>>> {
        if self.closed.get() {
            let message = format!("the {} store was closed; `open` again", self.dialect().as_str());
            return Err(Error::new(ErrorCode::Closed, message));
        }
        let count = statements.len();
        let results = self.driver.transaction(statements).await?;
        if results.len() != count {
            return Err(Error::new(
                ErrorCode::StoreError,
                format!(
                    "the driver of the {} store returned {} results for {count} statements",
                    self.dialect().as_str(),
                    results.len()
                ),
            ));
        }
        Ok(results)
    }

    /// Runs one statement.
    async fn rows(&self, statement: SqlStatement) -> Result<Vec<SqlRow>> {
        Ok(self.transaction(vec![statement]).await?.pop().unwrap_or_default())
    }

    /// Reads a range in pages; none if it was written in between.
    async fn read_range(&self, session: &str, query: Query, page: ReadPage) -> Result<Option<Vec<Record>>> {
        let mut read = RangeRead::new(query, page);
        loop {
            let rows = self.rows(read.statement(self.dialect(), session)).await?;
            match read.take(self.dialect(), &rows)? {
                ReadProgress::More => {}
                ReadProgress::Ended => return Ok(Some(read.records)),
                ReadProgress::Changed => return Ok(None),
            }
        }
    }
}

impl LogStore for SqlStore {
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
        self.dialect() == SqlDialect::Postgres && self.driver.has_change_feed()
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move { if self.closed.replace(true) { Ok(()) } else { self.driver.close().await } })
    }

    fn erase_overwritten<'a>(&'a self, _session: &'a str) -> StoreFuture<'a, ()> {
        self.driver.erase_overwritten()
    }

    fn head<'a>(&'a self, session: &'a str) -> StoreFuture<'a, Option<StoredHead>> {
        Box::pin(async move {
            let rows = self.rows(head_statement(self.dialect(), session)).await?;
            read_head_rows(self.dialect(), &rows)
        })
    }

    fn append<'a>(
        &'a self,
        session: &'a str,
        expected: u64,
        mut batch: Batch,
        operation: &'a str,
    ) -> StoreFuture<'a, Appended> {
        Box::pin(async move {
            batch.check(operation, self.capabilities().max_value_bytes)?;
            if !self.sends_notices() {
                batch.notice = None;
            }
            let (dialect, limits) = (self.dialect(), self.driver.limits());
            let plan = AppendPlan { dialect, limits, session, operation, expected, batch: &batch };
            let results = match self.transaction(plan.statements()?).await {
                // The reply was lost. The operation is remembered, so a second attempt writes nothing if the first one
                // did.
                Err(error) if error.may_have_written() => {
                    self.transaction(plan.statements()?).await.map_err(|_| error)?
                }
                ended => ended?,
            };
            plan.outcome(&results)
        })
    }

    fn read<'a>(&'a self, session: &'a str, query: Query) -> StoreFuture<'a, Vec<Record>> {
        Box::pin(async move {
            if query.from > query.to || query.from > MAX_KEY {
                return Ok(Vec::new());
            }
            for _ in 1..READ_ATTEMPTS {
                if let Some(records) = self.read_range(session, query, ReadPage::USUAL).await? {
                    return Ok(records);
                }
            }
            Ok(self.read_range(session, query, ReadPage::WHOLE).await?.unwrap_or_default())
        })
    }

    fn sessions<'a>(
        &'a self,
        cursor: Option<&'a str>,
        limit: usize,
        channel: Option<&'a str>,
    ) -> StoreFuture<'a, Page<SessionRow>> {
        Box::pin(async move {
            let list = SessionList { dialect: self.dialect(), cursor, channel, limit: page_size(limit) };
            let heads = list.read_heads(&self.rows(list.heads()).await?)?;
            // A session without a head has no channel.
            let headless = if channel.is_some() { Vec::new() } else { self.rows(list.headless(&heads)).await? };
            list.page(heads, &headless)
        })
    }

    fn recent_sessions<'a>(&'a self, query: &'a RecencyQuery) -> Option<StoreFuture<'a, Page<SessionRow>>> {
        Some(Box::pin(async move {
            let list = RecentList::new(self.dialect(), query)?;
            let heads = list.read_heads(&self.rows(list.heads()).await?)?;
            let headless = match list.headless(&heads) {
                Some(statement) => self.rows(statement).await?,
                None => Vec::new(),
            };
            list.page(heads, &headless)
        }))
    }

    fn log_records<'a>(&'a self, keys: &'a [LogKey]) -> StoreFuture<'a, Vec<(String, Record)>> {
        Box::pin(async move {
            if keys.is_empty() {
                return Ok(Vec::new());
            }
            let key_batches = keys.chunks(keys_of_statement(self.driver.limits()));
            let statements = key_batches.clone().map(|keys| log_join_statement(self.dialect(), keys)).collect();
            let results = self.transaction(statements).await?;
            let mut found = Vec::new();
            for (keys, rows) in key_batches.zip(&results) {
                found.append(&mut joined_records(self.dialect(), keys, rows)?);
            }
            Ok(found)
        })
    }

    fn invocations<'a>(&'a self, query: &'a AuditQuery) -> StoreFuture<'a, Page<(String, Record)>> {
        Box::pin(async move {
            let list = AuditList { dialect: self.dialect(), order: AuditOrder::SessionAndKey, query };
            let rows = self.rows(list.statement()?).await?;
            list.page(&rows)
        })
    }

    fn newest_invocations<'a>(&'a self, query: &'a AuditQuery) -> Option<StoreFuture<'a, Page<(String, Record)>>> {
        Some(Box::pin(async move {
            let list = AuditList { dialect: self.dialect(), order: AuditOrder::NewestFirst, query };
            let rows = self.rows(list.statement()?).await?;
            list.page(&rows)
        }))
    }

    fn delete_session<'a>(&'a self, session: &'a str) -> StoreFuture<'a, ()> {
        Box::pin(async move { self.transaction(delete_statements(self.dialect(), session)).await.map(drop) })
    }
}
