//! The driver over a bucket, as `wasi:keyvalue` has it, with and without a compare-and-swap, and with faults.

use super::service::block_on;
use bytes::Bytes;
use rethread::error::{Error, ErrorCode, Result};
use rethread::store::conformance::{check_all, nothing_lost, write_with_retry};
use rethread::store::kv::{Bucket, BucketDriver, KvStore, WriteOnceStore, find_swap};
use rethread::store::{Batch, LogStore, Query, Record, StoreFuture, Table};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// A bucket in memory. Clones are handles on the same keys.
#[derive(Clone, Default)]
struct MemoryBucket {
    keys: Rc<RefCell<BTreeMap<String, Bytes>>>,
    has_no_swap: bool,
    /// Returns the cursor after one, of a host whose pages never end.
    endless_pages: Option<fn(Option<u64>) -> u64>,
    /// Counts calls that write; the call of this number fails, as told.
    fault: Rc<Cell<Option<(u32, Fault)>>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    /// Nothing is written.
    Refused,
    /// It is written, and nobody learns of it.
    ReplyLost,
    /// It fails, and so does everything after it: the process was killed.
    Killed,
    /// A swap is made, and reported as failed: the host has repeated it, since the first reply was lost.
    Denied,
}

impl MemoryBucket {
    /// Returns what goes wrong with this write.
    fn fault(&self) -> Option<Fault> {
        match self.fault.get() {
            Some((0, Fault::Killed)) => Some(Fault::Killed),
            Some((0, fault)) => {
                self.fault.set(None);
                Some(fault)
            }
            Some((left, fault)) => {
                self.fault.set(Some((left - 1, fault)));
                None
            }
            None => None,
        }
    }

    fn write<T>(&self, work: impl FnOnce(&mut BTreeMap<String, Bytes>) -> T) -> Result<T> {
        match self.fault() {
            None | Some(Fault::Denied) => Ok(work(&mut self.keys.borrow_mut())),
            Some(Fault::Refused) => Err(Error::new(ErrorCode::StoreError, "the bucket is full")),
            Some(Fault::ReplyLost) => {
                work(&mut self.keys.borrow_mut());
                Err(Error::unanswered("the reply was lost", true))
            }
            Some(Fault::Killed) => Err(Error::unanswered("the process was killed", true)),
        }
    }
}

impl Bucket for MemoryBucket {
    fn get(&self, key: &str) -> Result<Option<Bytes>> {
        Ok(self.keys.borrow().get(key).cloned())
    }

    fn set(&self, key: &str, value: &[u8]) -> Result<()> {
        self.write(|keys| drop(keys.insert(key.into(), value.to_vec().into())))
    }

    fn delete(&self, key: &str) -> Result<()> {
        self.write(|keys| drop(keys.remove(key)))
    }

    /// Pages of three keys.
    fn key_page(&self, cursor: Option<u64>) -> Result<(Vec<String>, Option<u64>)> {
        let first = usize::try_from(cursor.unwrap_or(0)).unwrap();
        if let Some(pages) = &self.endless_pages {
            return Ok((Vec::new(), Some(pages(cursor))));
        }
        let keys = self.keys.borrow();
        let page = keys.keys().skip(first).take(3).cloned().collect();
        Ok((page, (keys.len() > first + 3).then_some(first as u64 + 3)))
    }

    fn has_swap(&self) -> bool {
        !self.has_no_swap
    }

    fn swap(&self, key: &str, next: &mut dyn FnMut(Option<Bytes>) -> Result<Option<Bytes>>) -> Result<bool> {
        let current = self.keys.borrow().get(key).cloned();
        let Some(value) = next(current)? else { return Ok(false) };
        let is_denied = self.fault.get().is_some_and(|fault| fault == (0, Fault::Denied));
        self.write(|keys| keys.insert(key.into(), value))?;
        Ok(!is_denied)
    }
}

fn driver(bucket: &MemoryBucket) -> Rc<BucketDriver> {
    thread_local! {
        static NUMBERS: Cell<u64> = const { Cell::new(0) };
    }
    let number = || NUMBERS.with(|numbers| numbers.replace(numbers.get() + 1));
    Rc::new(BucketDriver::new(Rc::new(bucket.clone()), Rc::new(number), None))
}

fn open(bucket: &MemoryBucket) -> Rc<dyn LogStore> {
    if bucket.has_no_swap {
        thread_local! {
            static WRITERS: Cell<u32> = const { Cell::new(0) };
        }
        let writer = WRITERS.with(|writers| writers.replace(writers.get() + 1));
        Rc::new(block_on(WriteOnceStore::open(driver(bucket), format!("w{writer}"))).unwrap())
    } else {
        Rc::new(block_on(KvStore::open(driver(bucket))).unwrap())
    }
}

fn conforms(bucket: &MemoryBucket) {
    let opened: &dyn Fn() -> StoreFuture<'static, Rc<dyn LogStore>> = &|| {
        let store = open(bucket);
        Box::pin(async move { Ok(store) })
    };
    block_on(check_all("bucket", opened)).unwrap();
}

#[test]
fn r46_a_bucket_that_swaps_conforms() {
    conforms(&MemoryBucket::default());
}

#[test]
fn r46_a_bucket_without_a_swap_conforms() {
    conforms(&MemoryBucket { has_no_swap: true, ..MemoryBucket::default() });
}

#[test]
fn r46_a_bucket_is_opened_as_it_was_written() {
    let bucket = MemoryBucket::default();
    open(&bucket);
    let other = MemoryBucket { has_no_swap: true, ..bucket };
    let refused = block_on(WriteOnceStore::open(driver(&other), "w".into())).err().unwrap();
    assert_eq!(refused.code, ErrorCode::ConfigInvalid);
}

fn batch(key: u64) -> Batch {
    let record = Record { table: Table::Log, key, last_key: None, index: None, value: Bytes::from(format!("r{key}")) };
    Batch { head: Bytes::from(format!("h{key}")), put: vec![record], ..Batch::default() }
}

/// The keys of some ids have what other stores use as marks.
#[test]
fn r49_any_id_is_found_again_in_a_bucket() {
    for has_no_swap in [false, true] {
        let bucket = MemoryBucket { has_no_swap, ..MemoryBucket::default() };
        let ids = ["s", "t:1", "tA", "t 1", "t:", "a::b", "::0123456789abcdef", ":t=0123456789abcdef"];
        for id in ids {
            block_on(open(&bucket).append(id, 0, batch(1), "one")).unwrap();
        }
        let store = open(&bucket);
        for id in ids {
            assert_eq!(block_on(store.read(id, Query::all(Table::Log))).unwrap().len(), 1, "{id}");
            block_on(store.append(id, 1, batch(2), "two")).unwrap();
        }
        let listed = block_on(store.sessions(None, 100, None)).unwrap().items;
        assert_eq!(listed.len(), ids.len(), "{:?}", listed.iter().map(|row| &row.id).collect::<Vec<_>>());
    }
}

/// Whatever write of an append fails, the append is whole or absent, and repeating it makes it whole.
#[test]
fn r46_a_fault_at_any_write_of_a_bucket_leaves_a_whole_append_or_none() {
    for fault in [Fault::Refused, Fault::ReplyLost, Fault::Killed, Fault::Denied] {
        let mut faults = 0;
        for at in 0.. {
            let bucket = MemoryBucket::default();
            let store = open(&bucket);
            block_on(store.append("s", 0, batch(1), "one")).unwrap();
            bucket.fault.set(Some((at, fault)));
            let first = block_on(store.append("s", 1, batch(2), "two"));
            if bucket.fault.take().is_some_and(|(left, _)| left > 0) {
                first.unwrap();
                break;
            }
            faults += 1;
            let store = open(&bucket);
            let head = block_on(store.head("s")).unwrap().unwrap();
            let rows = block_on(store.read("s", Query::all(Table::Log))).unwrap();
            let keys: Vec<_> = rows.iter().map(|row| row.key).collect();
            assert_eq!(keys, (1..=head.revision).collect::<Vec<_>>(), "{fault:?} at {at}");
            assert_eq!(head.value, format!("h{}", head.revision), "{fault:?} at {at}");
            block_on(store.append("s", 1, batch(2), "two")).unwrap();
            assert_eq!(block_on(store.read("s", Query::all(Table::Log))).unwrap().len(), 2, "{fault:?} at {at}");
            assert_eq!(block_on(store.head("s")).unwrap().unwrap().revision, 2, "{fault:?} at {at}");
        }
        assert!(faults >= 2, "{fault:?}: {faults} writes");
    }
}

/// A session whose first append was killed before its swap is absent, not damaged.
#[test]
fn r46_a_killed_first_append_to_a_bucket_leaves_no_session() {
    let bucket = MemoryBucket::default();
    let store = open(&bucket);
    bucket.fault.set(Some((1, Fault::Killed)));
    block_on(store.append("s", 0, batch(1), "one")).unwrap_err();
    bucket.fault.set(None);
    let store = open(&bucket);
    assert_eq!(block_on(store.head("s")).unwrap(), None);
    assert!(block_on(store.sessions(None, 0, None)).unwrap().items.is_empty());
    block_on(store.append("s", 0, batch(1), "one")).unwrap();
}

#[test]
fn r46_what_a_bucket_does_not_need_any_more_is_removed() {
    let bucket = MemoryBucket::default();
    let (one, other) = (open(&bucket), open(&bucket));
    assert_eq!(block_on(write_with_retry(&*one, "s", 0, 20)).unwrap(), 0);
    block_on(write_with_retry(&*other, "s", 1, 20)).unwrap();
    block_on(nothing_lost(&*one, "s", 20)).unwrap();
    // The layout, the head, and a key for each record of which the conflicting writers have none left.
    let keys = bucket.keys.borrow().len();
    let records = block_on(one.read("s", Query::all(Table::Log))).unwrap().len();
    assert!(keys <= records + 3, "{keys} keys, {records} records");
    block_on(one.delete_session("s")).unwrap();
    assert!(bucket.keys.borrow().len() <= 2, "{:?}", bucket.keys.borrow().keys());
}

/// Whatever write of an append or a deletion fails, nothing of the session is left after it was deleted again.
#[test]
fn r46_a_deletion_removes_what_a_commit_of_unknown_outcome_left_in_a_bucket() {
    for fault in [Fault::ReplyLost, Fault::Killed, Fault::Denied] {
        for (before, at) in [0, 1].into_iter().flat_map(|before| (0..8).map(move |at| (before, at))) {
            let bucket = MemoryBucket::default();
            let store = open(&bucket);
            block_on(store.append("other", 0, batch(1), "one")).unwrap();
            if before == 1 {
                block_on(store.append("s", 0, batch(1), "one")).unwrap();
            }
            bucket.fault.set(Some((at, fault)));
            let _ = block_on(store.append("s", before, batch(2), "two"));
            let _ = block_on(store.delete_session("s"));
            bucket.fault.set(None);
            block_on(open(&bucket).delete_session("s")).unwrap();
            let keys = bucket.keys.borrow();
            let left: Vec<_> = keys.keys().filter(|key| key.contains(":s:")).collect();
            assert!(left.is_empty(), "{fault:?} at {at} after {before}: {left:?}");
            drop(keys);
            assert_eq!(block_on(store.read("other", Query::all(Table::Log))).unwrap().len(), 1);
        }
    }
}

/// A deletion that finds the values of a commit under way does not break it: one of both comes first.
#[test]
fn r47_an_append_that_a_deletion_interrupts_in_a_bucket_is_whole_or_fails() {
    let bucket = MemoryBucket::default();
    let (one, other) = (open(&bucket), open(&bucket));
    // The first append writes its record, and the second process deletes the session that is not there yet.
    bucket.fault.set(Some((1, Fault::Killed)));
    block_on(one.append("s", 0, batch(1), "one")).unwrap_err();
    bucket.fault.set(None);
    block_on(other.delete_session("s")).unwrap();
    assert_eq!(block_on(other.head("s")).unwrap(), None);
    block_on(one.append("s", 0, batch(1), "one")).unwrap();
    assert_eq!(block_on(other.read("s", Query::all(Table::Log))).unwrap().len(), 1);
}

#[test]
fn r51_a_bucket_whose_pages_of_keys_never_end_is_an_error() {
    let endless: [fn(Option<u64>) -> u64; 3] = [
        |cursor| cursor.unwrap_or(7),
        |cursor| if cursor == Some(1) { 2 } else { 1 },
        |cursor| cursor.map_or(1, |cursor| cursor + 1),
    ];
    for pages in endless {
        let bucket = MemoryBucket { endless_pages: Some(pages), ..MemoryBucket::default() };
        let refused = block_on(KvStore::open(driver(&bucket))).err().unwrap();
        assert_eq!(refused.code, ErrorCode::StoreError, "{refused:?}");
    }
}

#[test]
fn r46_an_outage_of_the_atomics_does_not_decide_what_a_bucket_is() {
    let outage = || Err(Error::unavailable("no atomics now", true));
    let denied = || Err(Error::new(ErrorCode::StoreError, "denied"));
    let bucket = MemoryBucket::default();
    let tries = Cell::new(0);
    let recovers = || if tries.replace(tries.get() + 1) < 2 { outage() } else { Ok(()) };
    assert!(find_swap(&bucket, &recovers).unwrap(), "a new bucket whose second probe succeeds");
    assert!(!find_swap(&bucket, &outage).unwrap(), "a new bucket of a host without atomics");
    assert_eq!(find_swap(&bucket, &denied).unwrap_err().code, ErrorCode::StoreError);
    open(&bucket);
    assert!(find_swap(&bucket, &|| Ok(())).unwrap());
    assert_eq!(find_swap(&bucket, &outage).unwrap_err().code, ErrorCode::Unavailable);
    let written_once = MemoryBucket { has_no_swap: true, ..MemoryBucket::default() };
    open(&written_once);
    assert!(!find_swap(&written_once, &|| Ok(())).unwrap(), "opened as it was written");
}
