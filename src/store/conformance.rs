//! The behavior that the contract demands of every store, as checks. Native stores block on them, browsers await them.
//!
//! A store's tests call [`check_all`] with a function that opens the store. A durable store is opened a second time
//! within each check, and both handles must show the same data.

mod appends;
mod audit_pages;
mod branches;
mod checks;
mod context;
mod damage;
mod forks;
mod observed_store;
mod recency;
mod segments;
mod sessions;

pub use checks::CHECKS;
pub use context::{StoreCheck, StoreCheckContext, both, nothing_lost, write_with_retry};
pub use damage::nothing_returns_after_deletion;

use super::{LogStore, StoreFuture};
use crate::error::{Error, ErrorCode, Result};
use std::rc::Rc;

/// Opens the store. For a durable store, every call returns another connection to the same data.
pub type OpenStore<'o> = &'o dyn Fn() -> StoreFuture<'static, Rc<dyn LogStore>>;

/// Runs every check, each with sessions of its own. `run` is part of the sessions' ids, so a store that outlives the
/// run needs another `run` each time.
///
/// # Errors
/// `internal`, naming every failed check and its reason.
pub async fn check_all(run: &str, open: OpenStore<'_>) -> Result<()> {
    let mut failures = Vec::new();
    for (name, check) in CHECKS {
        if let Err(error) = check_one(run, name, *check, open).await {
            failures.push(format!("{name}: {error}"));
        }
    }
    if failures.is_empty() { Ok(()) } else { Err(Error::new(ErrorCode::Internal, failures.join("\n"))) }
}

/// Runs one check.
///
/// # Errors
/// `internal` with the reason why the check failed, or the store's own error.
pub async fn check_one(run: &str, name: &str, check: StoreCheck, open: OpenStore<'_>) -> Result<()> {
    let store = open().await?;
    let other = if store.capabilities().durable { open().await? } else { store.clone() };
    check(&StoreCheckContext::new(store, other, format!("{run}/{name}/"))).await
}
