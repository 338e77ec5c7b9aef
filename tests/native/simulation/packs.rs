//! One process after another on a long session of a write-once store, whose service fails while appends are packed.

use super::drivers::FaultyKv;
use super::faults::{FaultPlan, Random, Schedule, is_injected};
use super::service::{MemoryKv, block_on};
use rethread::store::kv::{KvLimits, WriteOnceStore};
use rethread::store::{Appended, Batch, LogStore, Query, Record, Table};
use std::rc::Rc;

/// Appends enough for packs, and for a merge of packs.
const APPENDS: u64 = 560;

struct Processes {
    service: MemoryKv,
    plan: Rc<FaultPlan>,
    started: u64,
}

impl Processes {
    /// Starts a process, as often as it takes.
    fn start(&mut self) -> WriteOnceStore {
        loop {
            self.started += 1;
            let driver = FaultyKv { service: self.service.clone(), plan: self.plan.clone() };
            match block_on(WriteOnceStore::open(Rc::new(driver), format!("writer{}", self.started))) {
                Ok(store) => return store,
                Err(error) => assert!(is_injected(&error), "{error:?}"),
            }
        }
    }
}

fn append(store: &WriteOnceStore, expected: u64, key: u64, attempt: u64) -> rethread::error::Result<Appended> {
    let value = format!("record {key} ").repeat(8).into();
    let record = Record { table: Table::Log, key, last_key: None, index: None, value };
    let batch = Batch { head: format!("head {key}").into(), put: vec![record], ..Batch::default() };
    block_on(store.append("s", expected, batch, &format!("{key}.{attempt}")))
}

fn keys(store: &WriteOnceStore) -> Vec<u64> {
    block_on(store.read("s", Query::all(Table::Log))).unwrap().iter().map(|record| record.key).collect()
}

/// Runs the seed. Returns the number of faults and of packs.
pub fn run(seed: u64) -> (u64, usize) {
    let plan = Rc::new(FaultPlan::new(Schedule::OneIn([6, 12, 40][(seed % 3) as usize]), seed));
    let limits = KvLimits { max_value_bytes: 1024 * 1024, ..KvLimits::default() };
    let service = MemoryKv { limits, is_plain: true, ..MemoryKv::default() };
    let mut processes = Processes { service, plan: plan.clone(), started: 0 };
    let mut random = Random::new(seed ^ 0x9ac4);
    let mut store = processes.start();
    let (mut key, mut expected, mut attempt) = (0, 0, 0);
    while key < APPENDS {
        match append(&store, expected, key, attempt) {
            Ok(Appended::Revision(revision)) => (key, expected, attempt) = (key + 1, revision, 0),
            Ok(Appended::Conflict(revision)) => (expected, attempt) = (revision, attempt + 1),
            // It was written, and the reply was lost.
            Ok(Appended::Occupied) => (key, attempt) = (key + 1, 0),
            Err(error) => assert!(is_injected(&error), "{error:?}"),
        }
        if random.one_in(60) {
            store = processes.start();
        }
        if random.one_in(40) {
            let _ = block_on(store.pack("s"));
        }
    }
    let packs = processes.service.keys.borrow().keys().filter(|key| key.starts_with("pack:")).count();
    plan.paused(|| {
        let reader = processes.start();
        for reader in [&reader, &store] {
            assert_eq!(block_on(reader.head("s")).unwrap().unwrap().value, format!("head {}", APPENDS - 1));
            assert_eq!(keys(reader), (0..APPENDS).collect::<Vec<_>>());
        }
    });
    (plan.counts().1, packs)
}
