//! The store of the world `stored`: a bucket of `wasi:keyvalue`.

use super::super::bindings::wasi::keyvalue::{atomics, store};
use super::host::ComponentHost;
use crate::clock::Ms;
use crate::error::{Error, ErrorCode, Result};
use crate::store::LogStore;
use crate::store::kv::{Bucket, BucketDriver, HostTimer, KvStore, WriteOnceStore, find_swap};
use bytes::Bytes;
use std::future::Future;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// A bucket of the host.
struct HostBucket {
    bucket: store::Bucket,
    has_swap: bool,
}

fn failure(error: store::Error, writes: bool) -> Error {
    let refused = |message: &str| Error::new(ErrorCode::StoreError, message);
    match error {
        store::Error::NoSuchStore => refused("wasi:keyvalue has no bucket of this name"),
        store::Error::AccessDenied => refused("wasi:keyvalue denies access to the bucket"),
        store::Error::Other(message) if writes => Error::unavailable(format!("wasi:keyvalue failed: {message}"), true),
        store::Error::Other(message) => refused(&format!("wasi:keyvalue failed: {message}")),
    }
}

impl Bucket for HostBucket {
    fn get(&self, key: &str) -> Result<Option<Bytes>> {
        let value = self.bucket.get(key).map_err(|error| failure(error, false))?;
        Ok(value.map(Bytes::from))
    }

    fn set(&self, key: &str, value: &[u8]) -> Result<()> {
        self.bucket.set(key, value).map_err(|error| failure(error, true))
    }

    fn delete(&self, key: &str) -> Result<()> {
        self.bucket.delete(key).map_err(|error| failure(error, true))
    }

    fn key_page(&self, cursor: Option<u64>) -> Result<(Vec<String>, Option<u64>)> {
        let page = self.bucket.list_keys(cursor).map_err(|error| failure(error, false))?;
        Ok((page.keys, page.cursor))
    }

    fn has_swap(&self) -> bool {
        self.has_swap
    }

    fn swap(&self, key: &str, next: &mut dyn FnMut(Option<Bytes>) -> Result<Option<Bytes>>) -> Result<bool> {
        let cas = atomics::Cas::new(&self.bucket, key).map_err(|error| failure(error, false))?;
        let current = cas.current().map_err(|error| failure(error, false))?;
        let Some(value) = next(current.map(Bytes::from))? else { return Ok(false) };
        match atomics::swap(cas, &value) {
            Ok(()) => Ok(true),
            Err(atomics::CasError::CasFailed(_)) => Ok(false),
            Err(atomics::CasError::StoreError(error)) => Err(failure(error, true)),
        }
    }
}

/// The timer of an engine, for requests that are repeated.
struct EngineTimer(Rc<ComponentHost>);

impl HostTimer for EngineTimer {
    fn now(&self) -> Ms {
        self.0.executor.now()
    }

    fn sleep(&self, ms: Ms) -> Pin<Box<dyn Future<Output = bool> + '_>> {
        let sleep = self.0.executor.sleep(ms);
        Box::pin(async move {
            sleep.await;
            true
        })
    }

    fn random(&self) -> u32 {
        // The upper half.
        u32::try_from(self.0.random.next() >> 32).unwrap_or_default()
    }
}

/// Opens the store in a bucket.
///
/// # Errors `config_invalid` for a bucket whose keys somebody else wrote; `unavailable` for one that was written by
/// swaps while the host's atomics fail; the host's own.
pub fn open_bucket(name: &str, host: &Rc<ComponentHost>) -> Result<Rc<dyn LogStore>> {
    let bucket = store::open(name).map_err(|error| failure(error, false))?;
    let mut bucket = HostBucket { bucket, has_swap: false };
    // A host without atomics has the functions, and they fail.
    let probe = || {
        let read = atomics::Cas::new(&bucket.bucket, "schema").and_then(|cas| cas.current());
        read.map(drop).map_err(|error| failure(error, true))
    };
    let has_swap = find_swap(&bucket, &probe)?;
    bucket.has_swap = has_swap;
    let bucket = Rc::new(bucket);
    let numbers = host.clone();
    let timer = Rc::new(EngineTimer(host.clone()));
    let driver = Rc::new(BucketDriver::new(bucket, Rc::new(move || numbers.random.next()), Some(timer)));
    let writer = host.random.id();
    at_once(async move {
        Ok(match has_swap {
            true => Rc::new(KvStore::open(driver).await?) as Rc<dyn LogStore>,
            false => Rc::new(WriteOnceStore::open(driver, writer).await?),
        })
    })
}

/// Returns the outcome of work that waits for nothing: the calls of a bucket answer at once.
fn at_once<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    match pin!(work).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => Err(Error::new(ErrorCode::Busy, "the bucket asks for a pause; open it again in a moment")),
    }
}
