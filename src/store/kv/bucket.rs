//! A bucket of keys with one compare-and-swap, as `wasi:keyvalue` has it, as a driver.
//!
//! Where the bucket swaps, a commit is one swap: of the head's key, which is the only one that a commit checks. The
//! other values are written before, each under a key that no other commit writes, and the head's value says which of
//! them count. So a commit that loses, or that a crash ends, changes nothing that anybody reads. What it wrote is
//! removed. If it crashed, or nobody knows whether the swap was made, its values are [abandoned](KvDriver::abandoned):
//! nobody reads them, and the session's deletion removes them.

use super::driver::{HostTimer, KvCheck, KvDriver, KvEntry, KvLimits, KvPage, KvWrite};
use super::key::HEAD_PREFIX;
use crate::error::{Error, ErrorCode, Result};
use crate::store::StoreFuture;
use bytes::Bytes;
use minicbor::{Decode, Encode};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// A bucket of keys. Its calls answer at once.
pub trait Bucket {
    /// Returns the value of a key.
    ///
    /// # Errors
    /// If the bucket cannot be read.
    fn get(&self, key: &str) -> Result<Option<Bytes>>;

    /// Writes a value.
    ///
    /// # Errors
    /// If it may not be written.
    fn set(&self, key: &str, value: &[u8]) -> Result<()>;

    /// Removes a key. An absent one is ignored.
    ///
    /// # Errors
    /// If it may not be removed.
    fn delete(&self, key: &str) -> Result<()>;

    /// Returns a page of all keys, and the cursor of the next page.
    ///
    /// # Errors
    /// If the bucket cannot be read.
    fn key_page(&self, cursor: Option<u64>) -> Result<(Vec<String>, Option<u64>)>;

    /// Returns true if [`swap`](Self::swap) is supported.
    fn has_swap(&self) -> bool;

    /// Replaces the value of a key by what `next` makes of the current one. Returns false if `next` makes none, or if
    /// the key was written meanwhile: then nothing is written.
    ///
    /// # Errors
    /// If the outcome is unknown, or the bucket refuses.
    fn swap(&self, key: &str, next: &mut dyn FnMut(Option<Bytes>) -> Result<Option<Bytes>>) -> Result<bool>;
}

/// The most pages in a row that may have no new key.
const MAX_FRUITLESS_PAGES: usize = 1000;

/// Returns all keys of a bucket.
///
/// # Errors
/// `store_error` if its pages never end, and the bucket's own.
pub(super) fn all_keys(bucket: &dyn Bucket) -> Result<BTreeSet<String>> {
    let (mut keys, mut cursors) = (BTreeSet::new(), BTreeSet::new());
    let (mut cursor, mut fruitless) = (None, 0);
    loop {
        let (page, next) = bucket.key_page(cursor)?;
        let known = keys.len();
        keys.extend(page);
        fruitless = if keys.len() == known { fruitless + 1 } else { 0 };
        let Some(next) = next else { return Ok(keys) };
        if !cursors.insert(next) || fruitless > MAX_FRUITLESS_PAGES {
            let message =
                "the bucket's pages of keys never end: a cursor came twice, or page after page has no new key";
            return Err(Error::new(ErrorCode::StoreError, message));
        }
        cursor = Some(next);
    }
}

/// The source of numbers that no other commit has.
pub type CommitNumbers = Rc<dyn Fn() -> u64>;

/// A driver over a bucket.
pub struct BucketDriver {
    bucket: Rc<dyn Bucket>,
    numbers: CommitNumbers,
    timer: Option<Rc<dyn HostTimer>>,
}

/// What comes after a key, with the number of the commit that wrote its value. No key contains it: the part of a
/// session is not empty.
const COMMIT_MARK: &str = "::";

/// The value of a head's key.
#[derive(Clone, Debug, Default, Encode, Decode)]
struct CommittedHead {
    /// The commit that wrote it.
    #[n(0)]
    commit: u64,
    /// The other keys that the session has, and which commit wrote each.
    #[n(1)]
    keys: BTreeMap<String, u64>,
    /// The head.
    #[cbor(n(2), with = "minicbor::bytes")]
    value: Vec<u8>,
}

impl CommittedHead {
    fn open(bytes: &[u8]) -> Result<Self> {
        minicbor::decode(bytes).map_err(|_| {
            let message = "the bucket has a value in a head's key that rethread did not write";
            Error::new(ErrorCode::CorruptRecord, message)
        })
    }

    fn seal(&self) -> Result<Bytes> {
        // Writing to memory does not fail.
        minicbor::to_vec(self).map(Bytes::from).map_err(|error| Error::new(ErrorCode::Internal, error.to_string()))
    }

    fn version(&self) -> String {
        format!("{:016x}", self.commit)
    }
}

fn written_key(key: &str, commit: u64) -> String {
    format!("{key}{COMMIT_MARK}{commit:016x}")
}

/// Returns a key without the number of its commit.
fn read_key(key: &str) -> &str {
    key.rsplit_once(COMMIT_MARK).map_or(key, |(key, _)| key)
}

/// Returns the key of the head of the session that a key belongs to; none for the layout's key.
fn head_of(key: &str) -> Option<String> {
    let mut parts = key.split(':');
    let (_, session) = (parts.next()?, parts.next()?);
    Some(format!("{HEAD_PREFIX}{session}"))
}

impl BucketDriver {
    /// Makes a driver. `numbers` are random.
    #[must_use]
    pub fn new(bucket: Rc<dyn Bucket>, numbers: CommitNumbers, timer: Option<Rc<dyn HostTimer>>) -> Self {
        Self { bucket, numbers, timer }
    }

    fn head(&self, key: &str) -> Result<Option<CommittedHead>> {
        self.bucket.get(key)?.map(|bytes| CommittedHead::open(&bytes)).transpose()
    }

    /// Returns the values of keys, in their order, as the sessions' heads are now.
    fn values(&self, keys: &[String]) -> Result<Vec<Option<KvEntry>>> {
        let mut heads: BTreeMap<String, Option<CommittedHead>> = BTreeMap::new();
        let mut values = Vec::with_capacity(keys.len());
        for key in keys {
            let plain = |value: Option<Bytes>| value.map(|value| KvEntry { value, version: Some(String::new()) });
            let Some(head_key) = head_of(key).filter(|_| self.bucket.has_swap()) else {
                values.push(plain(self.bucket.get(key)?));
                continue;
            };
            if !heads.contains_key(&head_key) {
                heads.insert(head_key.clone(), self.head(&head_key)?);
            }
            let head = heads.get(&head_key).and_then(Option::as_ref);
            values.push(match head {
                Some(head) if *key == head_key => {
                    Some(KvEntry { value: head.value.clone().into(), version: Some(head.version()) })
                }
                Some(head) => match head.keys.get(key) {
                    Some(commit) => plain(self.bucket.get(&written_key(key, *commit))?),
                    None => None,
                },
                None => None,
            });
        }
        Ok(values)
    }

    /// Returns the keys with a prefix, in order.
    fn keys(&self, prefix: &str) -> Result<Vec<String>> {
        let head = head_of(prefix).filter(|_| self.bucket.has_swap() && !prefix.starts_with(HEAD_PREFIX));
        let keys: Vec<String> = match head {
            Some(head) => self.head(&head)?.map(|head| head.keys.into_keys().collect()).unwrap_or_default(),
            None => all_keys(&*self.bucket)?.into_iter().collect(),
        };
        let wanted: BTreeSet<_> = keys.iter().map(|key| read_key(key)).filter(|key| key.starts_with(prefix)).collect();
        Ok(wanted.into_iter().map(str::to_owned).collect())
    }

    /// Commits writes to one session, if its head is as it was checked.
    fn commit_to(&self, check: &KvCheck, writes: Vec<KvWrite>) -> Result<bool> {
        let commit = (self.numbers)();
        let (heads, others): (Vec<_>, Vec<_>) = writes.into_iter().partition(|write| write.key == check.key);
        let is_of_session = |write: &KvWrite| head_of(&write.key).as_ref() == Some(&check.key);
        let (Some(KvWrite { value: Some(value), .. }), true) = (heads.first(), others.iter().all(is_of_session)) else {
            return Err(Error::new(ErrorCode::Internal, "a commit to a bucket writes one session and its head"));
        };
        let made: Vec<_> = others.iter().filter(|write| write.value.is_some()).collect();
        for write in &made {
            let key = written_key(&write.key, commit);
            if let Err(failure) = self.bucket.set(&key, write.value.as_deref().unwrap_or_default()) {
                self.remove(made.iter().map(|write| written_key(&write.key, commit)));
                return Err(failure);
            }
        }
        let mut replaced = Vec::new();
        let mut was_tried = false;
        let is_committed = self.bucket.swap(&check.key, &mut |current| {
            let current = current.map(|bytes| CommittedHead::open(&bytes)).transpose()?;
            if current.as_ref().map(CommittedHead::version) != check.version {
                return Ok(None);
            }
            let mut head = CommittedHead { commit, value: value.to_vec(), ..current.unwrap_or_default() };
            for write in &others {
                let before = match write.value {
                    Some(_) => head.keys.insert(write.key.clone(), commit),
                    None => head.keys.remove(&write.key),
                };
                replaced.extend(before.map(|before| written_key(&write.key, before)));
            }
            was_tried = true;
            head.seal().map(Some)
        })?;
        if is_committed {
            self.remove(replaced.into_iter());
            return Ok(true);
        }
        // A host that repeats a swap whose reply was lost finds its own value, and says that the swap failed.
        let head = if was_tried { self.head_after_swap(&check.key)? } else { None };
        let is_used = |key: &String| head.as_ref().is_some_and(|head| head.keys.get(key) == Some(&commit));
        self.remove(made.iter().filter(|write| !is_used(&write.key)).map(|write| written_key(&write.key, commit)));
        Ok(head.is_some_and(|head| head.commit == commit))
    }

    /// Returns the head after a swap that may have been made.
    fn head_after_swap(&self, key: &str) -> Result<Option<CommittedHead>> {
        self.head(key).map_err(|failure| Error::unavailable(failure.into_message(), true))
    }

    /// Removes values that nobody reads. What cannot be removed now stays.
    fn remove(&self, keys: impl Iterator<Item = String>) {
        for key in keys {
            let _ = self.bucket.delete(&key);
        }
    }

    /// Returns the keys of values that are a session's and that its head does not name.
    fn abandoned_values(&self, head_key: &str) -> Result<Vec<String>> {
        // Listed first: a value of a commit that is made in between is in the head that is read then.
        let keys = all_keys(&*self.bucket)?;
        let head = self.head(head_key)?.unwrap_or_default();
        let is_abandoned = |key: &String| {
            head_of(key).as_deref() == Some(head_key)
                && key
                    .rsplit_once(COMMIT_MARK)
                    .is_some_and(|(of, _)| head.keys.get(of).is_none_or(|commit| written_key(of, *commit) != *key))
        };
        Ok(keys.into_iter().filter(is_abandoned).collect())
    }

    /// Writes the layout's key, if it is absent.
    fn commit_layout(&self, check: &KvCheck, writes: &[KvWrite]) -> Result<bool> {
        let value = writes.iter().find(|write| write.key == check.key).and_then(|write| write.value.clone());
        self.bucket.swap(&check.key, &mut |current| Ok(value.clone().filter(|_| current.is_none())))
    }
}

impl KvDriver for BucketDriver {
    fn name(&self) -> &str {
        "wasi:keyvalue"
    }

    fn limits(&self) -> KvLimits {
        KvLimits::default()
    }

    fn has_commit(&self) -> bool {
        self.bucket.has_swap()
    }

    fn timer(&self) -> Option<&dyn HostTimer> {
        self.timer.as_deref()
    }

    fn get(&self, key: String) -> StoreFuture<'_, Option<KvEntry>> {
        Box::pin(async move { Ok(self.values(&[key])?.pop().flatten()) })
    }

    fn get_many(&self, keys: Vec<String>) -> StoreFuture<'_, Vec<Option<Bytes>>> {
        Box::pin(
            async move { Ok(self.values(&keys)?.into_iter().map(|entry| entry.map(|entry| entry.value)).collect()) },
        )
    }

    fn list<'a>(&'a self, prefix: &'a str, cursor: Option<&'a str>, limit: usize) -> StoreFuture<'a, KvPage> {
        Box::pin(async move {
            let mut keys = self.keys(prefix)?;
            keys.retain(|key| cursor.is_none_or(|cursor| key.as_str() > cursor));
            let has_more = keys.len() > limit;
            keys.truncate(limit);
            let cursor = keys.last().filter(|_| has_more).cloned();
            Ok(KvPage { keys, cursor })
        })
    }

    fn abandoned<'a>(&'a self, head_key: &'a str) -> StoreFuture<'a, Vec<String>> {
        Box::pin(async move { if self.bucket.has_swap() { self.abandoned_values(head_key) } else { Ok(Vec::new()) } })
    }

    fn put(&self, key: String, value: Bytes) -> StoreFuture<'_, ()> {
        Box::pin(async move { self.bucket.set(&key, &value) })
    }

    fn delete(&self, key: String) -> StoreFuture<'_, ()> {
        Box::pin(async move { self.bucket.delete(&key) })
    }

    fn commit(&self, checks: Vec<KvCheck>, writes: Vec<KvWrite>, _: Option<String>) -> StoreFuture<'_, bool> {
        Box::pin(async move {
            match checks.as_slice() {
                [check] if head_of(&check.key).is_some() => self.commit_to(check, writes),
                [check] => self.commit_layout(check, &writes),
                _ => Err(Error::new(ErrorCode::Internal, "a commit to a bucket checks one key")),
            }
        })
    }
}
