//! Waits and tries again when the service limits the rate of requests.

use super::driver::{HostTimer, KvCheck, KvDriver, KvEntry, KvLimits, KvPage, KvWrite};
use crate::clock::Ms;
use crate::error::{Error, ErrorCode, Result};
use crate::store::StoreFuture;
use bytes::Bytes;
use std::rc::Rc;

/// How often a request that the service refused is repeated.
const MAX_REPEATS: u32 = 5;

/// The wait before the first repetition, in milliseconds; each further one is twice as long.
const FIRST_WAIT_MS: Ms = 250;

/// The longest wait that the service may ask for, in milliseconds. With a longer one the request fails at once.
const MAX_WAIT_MS: Ms = 30_000;

/// A driver whose requests are repeated when the service limits their rate. A rejected request was not executed, so
/// repeating it duplicates nothing.
pub(super) struct RetryingDriver(Rc<dyn KvDriver>);

/// Returns the wait before a repetition: half of the doubled wait is random, so that clients which were refused
/// together do not come back together.
fn wait_before(repeat: u32, random: u32) -> Ms {
    let wait = FIRST_WAIT_MS.saturating_mul(1 << repeat);
    (wait / 2).saturating_add(u64::from(random) * (wait / 2) / u64::from(u32::MAX))
}

/// Returns the wait that the service asked for.
fn retry_after(error: &Error) -> Ms {
    let asked = error.details.as_ref().and_then(|details| details.view().get("retryAfterMs")?.as_u64());
    asked.unwrap_or(0)
}

impl RetryingDriver {
    pub(super) fn new(driver: Rc<dyn KvDriver>) -> Self {
        Self(driver)
    }

    /// Writes a value without a repetition: what is not worth a wait.
    pub(super) fn put_without_retry(&self, key: String, value: Bytes) -> StoreFuture<'_, ()> {
        self.0.put(key, value)
    }

    /// Waits before a repetition. Returns the error if there is none.
    async fn wait(&self, repeat: u32, error: Error) -> Result<()> {
        let asked = retry_after(&error);
        let Some(timer) = self.0.timer().filter(|_| repeat < MAX_REPEATS && asked <= MAX_WAIT_MS) else {
            return Err(error);
        };
        if timer.sleep(wait_before(repeat, timer.random()).max(asked)).await { Ok(()) } else { Err(error) }
    }

    async fn repeat<'a, T>(&'a self, request: impl Fn() -> StoreFuture<'a, T> + 'a) -> Result<T> {
        let mut repeats = 0;
        loop {
            match request().await {
                Err(error) if error.code == ErrorCode::RateLimited => self.wait(repeats, error).await?,
                settled => return settled,
            }
            repeats += 1;
        }
    }
}

impl KvDriver for RetryingDriver {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn limits(&self) -> KvLimits {
        self.0.limits()
    }

    fn has_commit(&self) -> bool {
        self.0.has_commit()
    }

    fn timer(&self) -> Option<&dyn HostTimer> {
        self.0.timer()
    }

    fn get(&self, key: String) -> StoreFuture<'_, Option<KvEntry>> {
        Box::pin(self.repeat(move || self.0.get(key.clone())))
    }

    fn get_many(&self, keys: Vec<String>) -> StoreFuture<'_, Vec<Option<Bytes>>> {
        Box::pin(self.repeat(move || self.0.get_many(keys.clone())))
    }

    fn list<'a>(&'a self, prefix: &'a str, cursor: Option<&'a str>, limit: usize) -> StoreFuture<'a, KvPage> {
        Box::pin(self.repeat(move || self.0.list(prefix, cursor, limit)))
    }

    fn put(&self, key: String, value: Bytes) -> StoreFuture<'_, ()> {
        Box::pin(self.repeat(move || self.0.put(key.clone(), value.clone())))
    }

    fn delete(&self, key: String) -> StoreFuture<'_, ()> {
        Box::pin(self.repeat(move || self.0.delete(key.clone())))
    }

    fn has_change_feed(&self) -> bool {
        self.0.has_change_feed()
    }

    fn commit(&self, checks: Vec<KvCheck>, writes: Vec<KvWrite>, notice: Option<String>) -> StoreFuture<'_, bool> {
        Box::pin(self.repeat(move || self.0.commit(checks.clone(), writes.clone(), notice.clone())))
    }

    fn abandoned<'a>(&'a self, head_key: &'a str) -> StoreFuture<'a, Vec<String>> {
        Box::pin(self.repeat(move || self.0.abandoned(head_key)))
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        self.0.close()
    }
}
