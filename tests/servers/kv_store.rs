//! The key-value store over a service in memory.
#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

#[path = "kv_store/service.rs"]
mod service;

use rethread::error::{Error, ErrorCode};
use rethread::store::conformance::{both, check_all, nothing_lost, write_with_retry};
use rethread::store::kv::{KvLimits, KvStore};
use rethread::store::{Appended, AuditIndex, AuditQuery, Batch, LogStore, Query, Record, StoredHead, Table};
use service::{MemoryKv, block_on};
use std::rc::Rc;

fn store(service: &MemoryKv) -> KvStore {
    block_on(KvStore::open(Rc::new(service.clone()))).unwrap()
}

fn refused(service: &MemoryKv) -> Error {
    block_on(KvStore::open(Rc::new(service.clone()))).err().unwrap()
}

fn conforms(service: &MemoryKv) {
    block_on(check_all("kv", &|| {
        let driver = Rc::new(service.clone());
        Box::pin(async move { Ok(Rc::new(KvStore::open(driver).await?) as Rc<dyn LogStore>) })
    }))
    .unwrap();
}

const SMALL: KvLimits = KvLimits { max_value_bytes: 64 * 1024, min_rewrite_ms: 0, read_your_writes: true };
const TINY: KvLimits = KvLimits { max_value_bytes: 1024, ..SMALL };

fn tiny() -> MemoryKv {
    MemoryKv { limits: TINY, ..MemoryKv::default() }
}

#[test]
fn r46_it_conforms() {
    conforms(&MemoryKv::default());
}

#[test]
fn r46_it_conforms_with_small_values_and_keys_in_any_order() {
    let service = MemoryKv { limits: SMALL, is_unordered: true, ..MemoryKv::default() };
    // Sessions are listed in the service's order, which one check does not expect.
    let failures = block_on(check_all("kv", &|| {
        let driver = Rc::new(service.clone());
        Box::pin(async move { Ok(Rc::new(KvStore::open(driver).await?) as Rc<dyn LogStore>) })
    }))
    .unwrap_err()
    .message
    .lines()
    .map(|line| line.split(':').next().unwrap_or_default().to_owned())
    .collect::<Vec<_>>();
    assert!(
        failures.iter().all(|name| matches!(name.as_str(), "sessions_are_listed_once_each" | "audit_rows_are_found")),
        "{failures:?}"
    );
}

#[test]
fn r47_two_writers_lose_nothing() {
    let service = MemoryKv::default();
    let (one, two) = (store(&service), store(&service));
    let (first, second) = block_on(both(write_with_retry(&one, "s", 0, 200), write_with_retry(&two, "s", 1, 200)));
    assert!(first.unwrap() + second.unwrap() > 0, "they never met");
    block_on(nothing_lost(&one, "s", 200)).unwrap();
}

fn record(table: Table, key: u64, value: &[u8]) -> Record {
    let index = (table == Table::ToolInvocations).then(|| AuditIndex {
        tool: "t".into(),
        status: "ok".into(),
        channel: None,
        at: key,
    });
    Record { table, key, last_key: None, index, value: value.to_vec().into() }
}

fn append(store: &KvStore, session: &str, expected: u64, batch: Batch) {
    let appended = block_on(store.append(session, expected, batch, &format!("{session} {expected}"))).unwrap();
    assert_eq!(appended, Appended::Revision(expected + 1));
}

fn batch(head: &[u8], put: Vec<Record>) -> Batch {
    Batch { head: head.to_vec().into(), put, ..Batch::default() }
}

fn log_keys(store: &KvStore, session: &str) -> Vec<u64> {
    block_on(store.read(session, Query::all(Table::Log))).unwrap().iter().map(|record| record.key).collect()
}

#[test]
fn large_values_leave_no_parts_behind() {
    let (service, large) = (tiny(), [7; 5_000]);
    let store = store(&service);
    append(&store, "s", 0, batch(&large, vec![record(Table::Log, 1, &large), record(Table::Runs, 1, &large)]));
    let parts = || service.keys.borrow().keys().filter(|key| key.starts_with("part:")).count();
    assert_eq!(parts(), 12);
    let replace = vec![record(Table::Log, 1, b"small")];
    append(&store, "s", 1, Batch { replace, remove: vec![(Table::Runs, 1)], ..batch(&large, vec![]) });
    assert_eq!(parts(), 4);
    append(&store, "s", 2, batch(b"h", vec![record(Table::Log, 2, &large)]));
    block_on(store.delete_session("s")).unwrap();
    assert_eq!(service.keys.borrow().keys().map(String::as_str).collect::<Vec<_>>(), ["head:s", "schema"]);
}

#[test]
fn a_session_of_many_records_is_removed_in_several_commits() {
    let service = MemoryKv::default();
    let first = store(&service);
    append(&first, "s", 0, batch(b"h", (0..1_800).map(|key| record(Table::Log, key, b"v")).collect()));
    let before = service.traffic.commits.get();
    block_on(first.delete_session("s")).unwrap();
    assert_eq!(service.traffic.commits.get() - before, 4);
    assert_eq!(service.keys.borrow().len(), 2);
    assert_eq!(block_on(first.append("s", 0, Batch::default(), "late")).unwrap(), Appended::Conflict(2));
    append(&first, "s", 2, batch(b"again", vec![record(Table::Log, 3, b"v")]));
    assert_eq!(log_keys(&first, "s"), [3]);
}

#[test]
fn r7_a_damaged_head_costs_no_record() {
    for damage in ["lost", "flipped"] {
        let service = tiny();
        let store = store(&service);
        let segment = Record { last_key: Some(9), ..record(Table::Log, 2, &[5; 3_000]) };
        let row = record(Table::ToolInvocations, 4, b"row");
        append(&store, "s", 0, batch(b"h", vec![record(Table::Log, 1, b"one"), segment.clone(), row.clone()]));
        if damage == "lost" {
            service.keys.borrow_mut().remove("head:s");
        } else {
            let (value, version) = service.keys.borrow()["head:s"].clone();
            let mut flipped = value.to_vec();
            flipped[20] ^= 1;
            service.keys.borrow_mut().insert("head:s".into(), (flipped.into(), version + 1_000));
        }
        assert_eq!(
            block_on(store.head("s")).unwrap(),
            Some(StoredHead { revision: 0, value: vec![].into() }),
            "{damage}"
        );
        assert_eq!(
            block_on(store.read("s", Query::all(Table::Log))).unwrap(),
            [record(Table::Log, 1, b"one"), segment.clone()]
        );
        let rows = block_on(store.invocations(&AuditQuery { session: Some("s".into()), ..AuditQuery::default() }));
        assert_eq!(rows.unwrap().items, [("s".to_owned(), row)]);
        let over = batch(b"over", vec![record(Table::Log, 1, b"over")]);
        assert_eq!(block_on(store.append("s", 0, over, "over")).unwrap(), Appended::Occupied);
        let later = Batch { at_least: 7, ..batch(b"again", vec![record(Table::Log, 10, b"ten")]) };
        assert_eq!(block_on(store.append("s", 0, later, "later")).unwrap(), Appended::Revision(7));
        assert_eq!(log_keys(&store, "s"), [1, 2, 10]);
    }
}

#[test]
fn r7_a_damaged_or_missing_record_costs_itself() {
    let service = MemoryKv::default();
    let store = store(&service);
    append(&store, "s", 0, batch(b"h", (0..5).map(|key| record(Table::Log, key, b"v")).collect()));
    service.set("record:s:l:00000000000001", b"\xff\xff\xff\xff");
    service.keys.borrow_mut().remove("record:s:l:00000000000003");
    assert_eq!(log_keys(&store, "s"), [0, 1, 2, 4]);
}

#[test]
fn r48_keys_of_others_and_of_newer_versions_are_refused() {
    let cases: [(&str, &[u8], ErrorCode); 5] = [
        ("schema", b"rethread records 2", ErrorCode::UnsupportedVersion),
        ("schema", b"rethread appends 1", ErrorCode::ConfigInvalid),
        ("schema", b"{\"version\":1}", ErrorCode::ConfigInvalid),
        ("schema", b"\xff", ErrorCode::ConfigInvalid),
        ("user:1", b"somebody else's", ErrorCode::ConfigInvalid),
    ];
    for (key, value, code) in cases {
        let service = MemoryKv::default();
        service.set(key, value);
        let error = refused(&service);
        assert_eq!((error.code, error.message.contains("memory-kv")), (code, true), "{error}");
        assert_eq!(service.keys.borrow().len(), 1, "something was written");
    }
    let narrow = MemoryKv { limits: KvLimits { max_value_bytes: 100, ..SMALL }, ..MemoryKv::default() };
    assert_eq!(refused(&narrow).code, ErrorCode::ConfigInvalid);
    assert_eq!(refused(&MemoryKv { is_plain: true, ..MemoryKv::default() }).code, ErrorCode::ConfigInvalid);
    let closed = store(&MemoryKv::default());
    block_on(closed.close()).unwrap();
    assert_eq!(block_on(closed.head("s")).unwrap_err().code, ErrorCode::Closed);
}

#[test]
fn r49_a_long_id_with_the_hash_of_another_is_refused() {
    let service = MemoryKv::default();
    let store = store(&service);
    let (long, other) = ("a".repeat(300), "b".repeat(300));
    append(&store, &long, 0, batch(b"h", vec![record(Table::Log, 0, b"v")]));
    let key = |id: &str| {
        service.keys.borrow().keys().find(|key| key.starts_with(&format!("head:{}", &id[..100]))).cloned().unwrap()
    };
    append(&store, &other, 0, batch(b"h", vec![]));
    let value = service.keys.borrow()[&key(&long)].clone();
    let other_key = key(&other);
    service.keys.borrow_mut().insert(other_key, value);
    assert_eq!(block_on(store.head(&other)).unwrap_err().code, ErrorCode::InvalidInput);
}

/// Operations of one turn, which must not grow with the session.
#[test]
fn an_append_costs_the_same_at_any_length() {
    let service = MemoryKv::default();
    let store = store(&service);
    let mut costs = Vec::new();
    for revision in 0..10_000 {
        let before = (service.traffic.gets.get(), service.traffic.lists.get(), service.traffic.written_bytes.get());
        append(&store, "s", revision, batch(&[0; 300], vec![record(Table::Log, revision, &[1; 2_000])]));
        let cost = (service.traffic.gets.get() - before.0, service.traffic.lists.get() - before.1);
        if [100, 9_999].contains(&revision) {
            costs.push((cost, (service.traffic.written_bytes.get() - before.2) / 1_000));
        }
    }
    assert_eq!(costs[0], costs[1]);
    assert_eq!(costs[0].0, (1, 0));
    assert_eq!(log_keys(&store, "s").len(), 10_000);
}
