//! Drivers of databases and services that fail by plan.

use super::faults::{Fault, FaultPlan};
use super::service::MemoryKv;
use super::sqlite::SqliteDriver;
use bytes::Bytes;
use rethread::error::Result;
use rethread::store::StoreFuture;
use rethread::store::kv::{KvCheck, KvDriver, KvEntry, KvLimits, KvPage, KvWrite};
use rethread::store::sql::{SqlDialect, SqlDriver, SqlLimits, SqlRow, SqlStatement};
use std::future::Future;
use std::rc::Rc;

/// Runs an operation that is atomic, and fails as the plan says.
async fn fail_by<T, F: Future<Output = Result<T>>>(plan: &FaultPlan, operation: impl Fn() -> F) -> Result<T> {
    match plan.next() {
        None => operation().await,
        Some(fault @ (Fault::Before | Fault::During)) => Err(plan.error(fault)),
        Some(Fault::After) => {
            operation().await?;
            Err(plan.error(Fault::After))
        }
        Some(Fault::Twice) => {
            operation().await?;
            operation().await
        }
    }
}

/// SQLite whose transactions fail. An interrupted one is rolled back by SQLite itself.
pub struct FaultySqlite {
    pub database: Rc<SqliteDriver>,
    pub plan: Rc<FaultPlan>,
}

impl SqlDriver for FaultySqlite {
    fn dialect(&self) -> SqlDialect {
        self.database.dialect()
    }

    fn limits(&self) -> SqlLimits {
        self.database.limits()
    }

    fn transaction<'a>(&'a self, statements: Vec<SqlStatement>) -> StoreFuture<'a, Vec<Vec<SqlRow>>> {
        Box::pin(async move {
            match self.plan.next() {
                None => self.database.transaction(statements).await,
                Some(Fault::Before) => Err(self.plan.error(Fault::Before)),
                Some(Fault::During) => {
                    self.database.fail_at.set(Some(self.plan.position(statements.len())));
                    self.database.transaction(statements).await
                }
                Some(Fault::After) => {
                    self.database.transaction(statements).await?;
                    Err(self.plan.error(Fault::After))
                }
                Some(Fault::Twice) => {
                    self.database.transaction(statements.clone()).await?;
                    self.database.transaction(statements).await
                }
            }
        })
    }
}

/// A key-value service whose calls fail. Its commits are atomic, as the contract says; a service without them may write
/// a part of a value.
pub struct FaultyKv {
    pub service: MemoryKv,
    pub plan: Rc<FaultPlan>,
}

impl KvDriver for FaultyKv {
    fn name(&self) -> &str {
        self.service.name()
    }

    fn limits(&self) -> KvLimits {
        self.service.limits()
    }

    fn has_commit(&self) -> bool {
        self.service.has_commit()
    }

    fn get(&self, key: String) -> StoreFuture<'_, Option<KvEntry>> {
        Box::pin(async move { fail_by(&self.plan, || self.service.get(key.clone())).await })
    }

    fn get_many(&self, keys: Vec<String>) -> StoreFuture<'_, Vec<Option<Bytes>>> {
        Box::pin(async move { fail_by(&self.plan, || self.service.get_many(keys.clone())).await })
    }

    fn list<'a>(&'a self, prefix: &'a str, cursor: Option<&'a str>, limit: usize) -> StoreFuture<'a, KvPage> {
        Box::pin(async move { fail_by(&self.plan, || self.service.list(prefix, cursor, limit)).await })
    }

    fn put(&self, key: String, value: Bytes) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let tear = |value: &Bytes| value.slice(..self.plan.position(value.len()));
            match self.plan.next() {
                None => self.service.put(key, value).await,
                Some(Fault::Before) => Err(self.plan.error(Fault::Before)),
                Some(Fault::During) => {
                    self.service.put(key, tear(&value)).await?;
                    Err(self.plan.error(Fault::During))
                }
                Some(Fault::After) => {
                    self.service.put(key, value).await?;
                    Err(self.plan.error(Fault::After))
                }
                Some(Fault::Twice) => {
                    self.service.put(key.clone(), value.clone()).await?;
                    self.service.put(key, value).await
                }
            }
        })
    }

    fn delete(&self, key: String) -> StoreFuture<'_, ()> {
        Box::pin(async move { fail_by(&self.plan, || self.service.delete(key.clone())).await })
    }

    fn commit(&self, checks: Vec<KvCheck>, writes: Vec<KvWrite>, notice: Option<String>) -> StoreFuture<'_, bool> {
        let apply = move || self.service.commit(checks.clone(), writes.clone(), notice.clone());
        Box::pin(async move { fail_by(&self.plan, apply).await })
    }
}
