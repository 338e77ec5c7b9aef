//! A key-value service in memory, which lets others go first at every call.

use bytes::Bytes;
use rethread::error::{Error, ErrorCode, Result};
use rethread::store::StoreFuture;
use rethread::store::kv::{HostTimer, KvCheck, KvDriver, KvEntry, KvLimits, KvPage, KvWrite};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return value;
        }
    }
}

pub async fn let_others_go_first() {
    let mut waited = false;
    poll_fn(|task| {
        if std::mem::replace(&mut waited, true) {
            return Poll::Ready(());
        }
        task.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// How often each function was called, and the bytes that it moved.
#[derive(Default, Debug)]
pub struct Traffic {
    pub gets: Cell<u64>,
    /// Requests that read values: of one key, or of many at once.
    pub reads: Cell<u64>,
    pub lists: Cell<u64>,
    pub commits: Cell<u64>,
    pub written_bytes: Cell<u64>,
}

impl Traffic {
    /// All requests so far, with one for each value.
    pub fn requests(&self) -> u64 {
        self.gets.get() + self.lists.get() + self.commits.get()
    }
}

/// A timer whose waits are over at once, and are counted.
#[derive(Default, Debug)]
pub struct TestTimer {
    pub waits: RefCell<Vec<u64>>,
    now: Cell<u64>,
    random: Cell<u32>,
}

impl TestTimer {
    pub fn advance(&self, ms: u64) {
        add(&self.now, ms);
    }
}

impl HostTimer for TestTimer {
    fn now(&self) -> u64 {
        self.now.get()
    }

    fn sleep(&self, ms: u64) -> Pin<Box<dyn Future<Output = bool> + '_>> {
        self.waits.borrow_mut().push(ms);
        add(&self.now, ms);
        Box::pin(async { true })
    }

    fn random(&self) -> u32 {
        self.random.set(self.random.get().wrapping_mul(747_796_405).wrapping_add(2_891_336_453));
        self.random.get()
    }
}

fn add(count: &Cell<u64>, more: u64) {
    count.set(count.get() + more);
}

/// The service; a clone is another connection to the same keys.
#[derive(Clone, Default)]
pub struct MemoryKv {
    pub keys: Rc<RefCell<BTreeMap<String, (Bytes, u64)>>>,
    pub traffic: Rc<Traffic>,
    pub limits: KvLimits,
    /// Lists keys in another order than their own.
    pub is_unordered: bool,
    /// Has no commit.
    pub is_plain: bool,
    /// Keys that this connection does not see yet.
    pub hidden: Rc<RefCell<BTreeSet<String>>>,
    /// Writes are applied, and return an error.
    pub loses_replies: Rc<Cell<bool>>,
    /// How many of the next requests are refused because of their rate, and the wait that the service asks for.
    pub refusals: Rc<Cell<(u32, Option<u64>)>>,
    pub timer: Option<Rc<TestTimer>>,
    /// There is no space for keys that begin with this.
    pub refused_prefix: Rc<RefCell<Option<String>>>,
    /// Every write of this key is refused because of its rate.
    pub refused_key: Rc<RefCell<Option<String>>>,
}

impl MemoryKv {
    pub fn set(&self, key: &str, value: &[u8]) {
        self.keys.borrow_mut().insert(key.into(), (value.to_vec().into(), u64::MAX));
    }

    /// Refuses a request if too many were sent.
    fn check_rate(&self) -> Result<()> {
        let (refusals, wait) = self.refusals.get();
        let Some(left) = refusals.checked_sub(1) else { return Ok(()) };
        self.refusals.set((left, wait));
        let error = Error::new(ErrorCode::RateLimited, "429 Too Many Requests");
        Err(match wait {
            Some(wait) => error.with(|details| {
                details.number("retryAfterMs", wait);
            }),
            None => error,
        })
    }

    fn listed(&self, prefix: &str) -> Vec<String> {
        let all = self.keys.borrow();
        let listed = all.range(prefix.to_owned()..).map(|(key, _)| key).take_while(|key| key.starts_with(prefix));
        let mut keys: Vec<_> = listed.cloned().collect();
        if self.is_unordered {
            keys.sort_by_cached_key(|key| (rethread::id::hash(key.as_bytes()), key.clone()));
        }
        keys
    }
}

impl MemoryKv {
    async fn fetch(&self, key: String) -> Result<Option<KvEntry>> {
        let_others_go_first().await;
        add(&self.traffic.gets, 1);
        self.check_rate()?;
        let stored = self.keys.borrow();
        let found = stored.get(&key).filter(|_| !self.hidden.borrow().contains(&key));
        Ok(found.map(|(value, version)| KvEntry { value: value.clone(), version: Some(version.to_string()) }))
    }
}

impl KvDriver for MemoryKv {
    fn name(&self) -> &str {
        "memory-kv"
    }

    fn limits(&self) -> KvLimits {
        self.limits
    }

    fn has_commit(&self) -> bool {
        !self.is_plain
    }

    fn timer(&self) -> Option<&dyn HostTimer> {
        self.timer.as_deref().map(|timer| timer as &dyn HostTimer)
    }

    fn get(&self, key: String) -> StoreFuture<'_, Option<KvEntry>> {
        add(&self.traffic.reads, 1);
        Box::pin(self.fetch(key))
    }

    fn get_many(&self, keys: Vec<String>) -> StoreFuture<'_, Vec<Option<Bytes>>> {
        add(&self.traffic.reads, 1);
        Box::pin(async move {
            let mut values = Vec::new();
            for key in keys {
                values.push(self.fetch(key).await?.map(|entry| entry.value));
            }
            Ok(values)
        })
    }

    fn list<'a>(&'a self, prefix: &'a str, cursor: Option<&'a str>, limit: usize) -> StoreFuture<'a, KvPage> {
        Box::pin(async move {
            let_others_go_first().await;
            add(&self.traffic.lists, 1);
            self.check_rate()?;
            let mut all = self.listed(prefix);
            all.retain(|key| !self.hidden.borrow().contains(key));
            let from = cursor.map_or(0, |last| all.iter().position(|key| key == last).map_or(0, |at| at + 1));
            let keys: Vec<_> = all.iter().skip(from).take(limit).cloned().collect();
            let cursor = keys.last().filter(|_| from + keys.len() < all.len()).cloned();
            Ok(KvPage { keys, cursor })
        })
    }

    fn put(&self, key: String, value: Bytes) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let_others_go_first().await;
            add(&self.traffic.commits, 1);
            self.check_rate()?;
            add(&self.traffic.written_bytes, value.len() as u64);
            if self.refused_prefix.borrow().as_ref().is_some_and(|prefix| key.starts_with(prefix)) {
                return Err(Error::new(ErrorCode::QuotaExceeded, "no space"));
            }
            if self.refused_key.borrow().as_ref() == Some(&key) {
                return Err(Error::new(ErrorCode::RateLimited, "429 Too Many Requests"));
            }
            self.set(&key, &value);
            if self.loses_replies.get() {
                return Err(Error::new(ErrorCode::StoreError, "the reply was lost"));
            }
            Ok(())
        })
    }

    fn delete(&self, key: String) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let_others_go_first().await;
            self.keys.borrow_mut().remove(&key);
            Ok(())
        })
    }

    fn commit(&self, checks: Vec<KvCheck>, writes: Vec<KvWrite>, _: Option<String>) -> StoreFuture<'_, bool> {
        Box::pin(async move {
            let_others_go_first().await;
            add(&self.traffic.commits, 1);
            self.check_rate()?;
            let mut keys = self.keys.borrow_mut();
            let holds = |check: &KvCheck| keys.get(&check.key).map(|(_, version)| version.to_string()) == check.version;
            if !checks.iter().all(holds) {
                return Ok(false);
            }
            let version = keys.values().map(|(_, version)| *version).filter(|version| *version < u64::MAX).max();
            let version = version.unwrap_or(0) + 1;
            for KvWrite { key, value } in writes {
                match value {
                    Some(value) => {
                        assert!(value.len() <= self.limits.max_value_bytes, "{key} has {} bytes", value.len());
                        add(&self.traffic.written_bytes, value.len() as u64);
                        keys.insert(key, (value, version));
                    }
                    None => drop(keys.remove(&key)),
                }
            }
            Ok(true)
        })
    }
}
