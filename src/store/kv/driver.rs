//! What the store runs on: a key-value service behind a few functions.

use crate::clock::Ms;
use crate::error::{Error, ErrorCode, Result};
use crate::store::StoreFuture;
use bytes::Bytes;
use std::future::Future;
use std::pin::Pin;

/// Limits of a key-value service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KvLimits {
    /// The largest value, in bytes. Larger ones are split.
    pub max_value_bytes: usize,
    /// The least time between two writes of one key, in milliseconds.
    pub min_rewrite_ms: u64,
    /// True if a read after a write returns what was written.
    pub read_your_writes: bool,
}

/// A smaller value has no room for the description of a record.
const MIN_VALUE_BYTES: usize = 1024;

impl KvLimits {
    /// # Errors
    /// `config_invalid` for values that hold no record.
    pub fn check(self) -> Result<()> {
        if self.max_value_bytes < MIN_VALUE_BYTES {
            return Err(Error::config(format!(
                "a key-value store takes values of at least {MIN_VALUE_BYTES} bytes; its `limits.maxValueBytes` is {}",
                self.max_value_bytes
            )));
        }
        Ok(())
    }
}

impl Default for KvLimits {
    fn default() -> Self {
        Self { max_value_bytes: 1024 * 1024, min_rewrite_ms: 0, read_your_writes: true }
    }
}

/// A value and its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KvEntry {
    /// The bytes.
    pub value: Bytes,
    /// Changes with every write of the key. None if the service has no versions.
    pub version: Option<String>,
}

/// A page of keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KvPage {
    /// In key order if the service has one.
    pub keys: Vec<String>,
    /// Where the next page begins; none after the last one.
    pub cursor: Option<String>,
}

/// What a key must be for a commit to be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KvCheck {
    /// The key.
    pub key: String,
    /// The version that was read; none for an absent key.
    pub version: Option<String>,
}

/// A write of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KvWrite {
    /// The key.
    pub key: String,
    /// The new value; none deletes the key.
    pub value: Option<Bytes>,
}

/// The host's clock, timers and randomness.
pub trait HostTimer {
    /// Returns the time.
    fn now(&self) -> Ms;

    /// Resolves after so many milliseconds, to false at once on a platform without timers.
    fn sleep(&self, ms: Ms) -> Pin<Box<dyn Future<Output = bool> + '_>>;

    /// Returns a random number.
    fn random(&self) -> u32;
}

/// A key-value service. Does not interpret keys or values.
pub trait KvDriver {
    /// The name of the service, for messages and `status()`.
    fn name(&self) -> &str;

    /// Returns what the service can hold.
    fn limits(&self) -> KvLimits {
        KvLimits::default()
    }

    /// Returns true if [`commit`](Self::commit) is supported.
    fn has_commit(&self) -> bool;

    /// Returns the host's timer. Without one, a request that the service refuses because of its rate is not repeated.
    fn timer(&self) -> Option<&dyn HostTimer> {
        None
    }

    /// Returns the value of a key, with its version if commits are supported.
    ///
    /// # Errors
    /// If the service cannot be read.
    fn get(&self, key: String) -> StoreFuture<'_, Option<KvEntry>>;

    /// Returns the values of these keys, in their order.
    ///
    /// # Errors
    /// If the service cannot be read.
    fn get_many(&self, keys: Vec<String>) -> StoreFuture<'_, Vec<Option<Bytes>>>;

    /// Returns a page of at most `limit` keys that begin with `prefix`.
    ///
    /// # Errors
    /// If the service cannot be read.
    fn list<'a>(&'a self, prefix: &'a str, cursor: Option<&'a str>, limit: usize) -> StoreFuture<'a, KvPage>;

    /// Writes a value.
    ///
    /// # Errors
    /// If the service cannot be written to, or the outcome is unknown.
    fn put(&self, key: String, value: Bytes) -> StoreFuture<'_, ()>;

    /// Removes a key. An absent one is ignored.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    fn delete(&self, key: String) -> StoreFuture<'_, ()>;

    /// Returns true if a commit sends its notice to the other users of the keys.
    fn has_change_feed(&self) -> bool {
        false
    }

    /// Applies every write, if each checked key has its version, and sends the notice; else applies none and returns
    /// false. There is a notice only if the driver [has a change feed](Self::has_change_feed).
    ///
    /// # Errors
    /// As [`put`](Self::put). All writes were applied, or none.
    fn commit(&self, checks: Vec<KvCheck>, writes: Vec<KvWrite>, notice: Option<String>) -> StoreFuture<'_, bool>;

    /// Returns the keys that commits wrote whose outcome nobody knows, and that the session's head does not name. A
    /// service whose commits are transactions has none. They may be removed after a commit to the head as it was
    /// before: then those commits have failed.
    ///
    /// # Errors
    /// If the service cannot be read.
    fn abandoned<'a>(&'a self, _head_key: &'a str) -> StoreFuture<'a, Vec<String>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    /// Closes the connection, if the driver opened it.
    ///
    /// # Errors
    /// The driver's own.
    fn close(&self) -> StoreFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }
}

/// How often a read or a write that others interrupted begins again.
pub(super) const ATTEMPTS: usize = 100;

/// The error of an operation that others interrupted [`ATTEMPTS`] times.
pub(super) fn too_busy(driver: &dyn KvDriver) -> Error {
    let message =
        format!("the {} store: others write to the session all the time; try again in a moment", driver.name());
    Error::new(ErrorCode::Busy, message)
}
