//! The key-value store over a service in memory.

#[path = "kv_store/audit.rs"]
mod audit;
#[path = "kv_store/bucket.rs"]
mod bucket;
#[path = "kv_store/conflict_sides.rs"]
mod conflict_sides;
#[path = "kv_store/packs.rs"]
mod packs;
#[path = "kv_store/rate_limits.rs"]
mod rate_limits;
#[path = "kv_store/service.rs"]
pub mod service;

use rethread::error::{Error, ErrorCode};
use rethread::history::{JoinBase, Origin, join};
use rethread::id::{CountingIds, Seed};
use rethread::json::JsonRef;
use rethread::message::Dialect;
use rethread::provider::decode_body;
use rethread::store::conformance::{both, check_all, nothing_lost, nothing_returns_after_deletion, write_with_retry};
use rethread::store::kv::{KvLimits, KvStore, WriteOnceStore};
use rethread::store::{
    Appended, AuditIndex, AuditQuery, Batch, Change, LogStore, Query, Record, StoreFuture, StoredHead, Table, commit,
    open_session,
};
use service::{MemoryKv, block_on, let_others_go_first};
use std::cell::RefCell;
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
fn r46_a_key_value_store_conforms() {
    conforms(&MemoryKv::default());
}

#[test]
fn r46_a_key_value_store_with_small_values_and_unordered_keys_conforms() {
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

#[test]
fn r47_two_writers_begin_a_session_at_once() {
    for delay in 0..8 {
        let service = MemoryKv::default();
        let (one, two) = (store(&service), store(&service));
        let late = async {
            for _ in 0..delay {
                let_others_go_first().await;
            }
            write_with_retry(&two, "s", 1, 3).await
        };
        let (first, second) = block_on(both(write_with_retry(&one, "s", 0, 3), late));
        assert!(first.is_ok() && second.is_ok(), "{first:?} {second:?} after {delay}");
        block_on(nothing_lost(&one, "s", 3)).unwrap();
    }
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
fn large_values_leave_no_orphaned_parts() {
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
fn r07_a_damaged_head_loses_no_record() {
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
fn r07_nothing_returns_after_the_deletion_of_a_session_with_a_damaged_head() {
    for is_lost in [true, false] {
        let service = MemoryKv::default();
        let (one, two) = (store(&service), store(&service));
        let damaged = service.clone();
        let damage = move |session: String| -> StoreFuture<'static, ()> {
            let key = format!("head:{}", session.replace(' ', "=20"));
            if is_lost {
                damaged.keys.borrow_mut().remove(&key).unwrap();
            } else {
                damaged.set(&key, b"\x01\0\0\0broken");
            }
            Box::pin(async { Ok(()) })
        };
        block_on(nothing_returns_after_deletion((&one, &two), "s", &damage)).unwrap();
    }
}

#[test]
fn r07_nothing_returns_after_the_deletion_of_a_session_with_damaged_appends() {
    for damages_all in [true, false] {
        let service = plain();
        let (one, two) = (write_once(&connection(&service), "one"), write_once(&connection(&service), "two"));
        let damaged = service.clone();
        let damage = move |session: String| -> StoreFuture<'static, ()> {
            let prefix = format!("append:{}:", session.replace(' ', "=20"));
            let mut keys: Vec<_> =
                damaged.keys.borrow().keys().filter(|key| key.starts_with(&prefix)).cloned().collect();
            assert!(!keys.is_empty());
            if !damages_all {
                keys = keys.split_off(keys.len() - 1);
            }
            keys.iter().for_each(|key| damaged.set(key, b"\x01\0\0\0broken"));
            Box::pin(async { Ok(()) })
        };
        block_on(nothing_returns_after_deletion((&one, &two), "s", &damage)).unwrap();
    }
}

/// A session of so many appends of one message of this size.
pub fn chat(store: &dyn LogStore, count: usize, size: usize) -> u64 {
    let (log, ids) = (RefCell::new(block_on(open_session(store, "s", Seed(1), 1)).unwrap()), CountingIds::default());
    for at in 0..count {
        let text = format!(r#"[{{"role":"user","content":"{at} {}"}}]"#, "x".repeat(size));
        let items = decode_body(Dialect::OpenAiChat, JsonRef::parse(&text).unwrap()).unwrap();
        let joined = join(JoinBase::history(&log.borrow().history), items, &Origin::default(), &ids);
        let change = Change { operation: format!("{at}"), at: 1, entries: joined.entries, ..Change::default() };
        block_on(commit(store, &log, &change)).unwrap();
    }
    log.into_inner().head.log_bytes
}

#[test]
fn r06_opening_a_session_of_a_key_value_store_reads_a_hundred_records_at_once() {
    for (count, size) in [(1, 10), (1, 3_000_000), (90, 2_000), (40, 100_000), (250, 100)] {
        let service = MemoryKv::default();
        let bytes = chat(&store(&service), count, size);
        let opened = store(&service);
        let before = service.traffic.reads.get();
        assert_eq!(block_on(open_session(&opened, "s", Seed(1), 1)).unwrap().history.messages().len(), count);
        let reads = service.traffic.reads.get() - before;
        let (bound, records) = (1 + bytes.div_ceil(256 * 1024), (count as u64).div_ceil(100));
        assert!(reads <= bound.max(1 + records), "{reads} reads for {count} records, {bytes} bytes");
    }
    // Whether a session is absent or has lost its head, a list says.
    let service = MemoryKv::default();
    let opened = store(&service);
    let before = (service.traffic.reads.get(), service.traffic.lists.get());
    assert!(block_on(opened.head("none")).unwrap().is_none());
    assert_eq!((service.traffic.reads.get() - before.0, service.traffic.lists.get() - before.1), (1, 1));
}

#[test]
fn r07_a_damaged_or_missing_record_affects_no_other_record() {
    let service = MemoryKv::default();
    let store = store(&service);
    append(&store, "s", 0, batch(b"h", (0..5).map(|key| record(Table::Log, key, b"v")).collect()));
    service.set("record:s:l:00000000000001", b"\xff\xff\xff\xff");
    service.keys.borrow_mut().remove("record:s:l:00000000000003");
    assert_eq!(log_keys(&store, "s"), [0, 1, 2, 4]);
}

#[test]
fn r48_keys_of_other_applications_and_newer_versions_are_rejected() {
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
    let slow = MemoryKv { limits: KvLimits { min_rewrite_ms: 1_000, ..SMALL }, ..MemoryKv::default() };
    assert_eq!(refused(&slow).code, ErrorCode::ConfigInvalid);
    assert_eq!(refused(&MemoryKv { is_plain: true, ..MemoryKv::default() }).code, ErrorCode::ConfigInvalid);
    let closed = store(&MemoryKv::default());
    block_on(closed.close()).unwrap();
    assert_eq!(block_on(closed.head("s")).unwrap_err().code, ErrorCode::Closed);
}

#[test]
fn r49_a_long_id_with_the_hash_of_another_is_rejected() {
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

fn plain() -> MemoryKv {
    MemoryKv { is_plain: true, ..MemoryKv::default() }
}

/// A connection of its own, which may see less than others.
fn connection(service: &MemoryKv) -> MemoryKv {
    MemoryKv { hidden: Rc::default(), ..service.clone() }
}

fn write_once(service: &MemoryKv, writer: &str) -> WriteOnceStore {
    block_on(WriteOnceStore::open(Rc::new(service.clone()), writer.into())).unwrap()
}

#[test]
fn r46_a_service_without_commits_conforms() {
    let (service, writers) = (plain(), std::cell::Cell::new(0));
    block_on(check_all("kv", &|| {
        writers.set(writers.get() + 1);
        let (driver, writer) = (Rc::new(service.clone()), format!("writer{}", writers.get()));
        Box::pin(async move { Ok(Rc::new(WriteOnceStore::open(driver, writer).await?) as Rc<dyn LogStore>) })
    }))
    .unwrap();
}

fn put(store: &dyn LogStore, expected: u64, key: u64) -> Appended {
    let operation = format!("{key} at {expected}");
    let head = format!("head {key}");
    block_on(store.append("s", expected, batch(head.as_bytes(), vec![record(Table::Log, key, b"v")]), &operation))
        .unwrap()
}

fn keys(store: &dyn LogStore) -> Vec<u64> {
    block_on(store.read("s", Query::all(Table::Log))).unwrap().iter().map(|record| record.key).collect()
}

#[test]
fn r47_a_second_writer_is_detected_and_both_sides_are_kept() {
    let service = plain();
    let (near, far) = (connection(&service), connection(&service));
    let (one, two) = (write_once(&near, "one"), write_once(&far, "two"));
    assert_eq!(put(&one, 0, 0), Appended::Revision(1));
    assert_eq!(keys(&two), [0]);
    // Each writes what the other one does not see: two appends here, one there.
    assert_eq!(put(&one, 1, 10), Appended::Revision(2));
    assert_eq!(put(&one, 2, 11), Appended::Revision(3));
    far.hidden
        .borrow_mut()
        .extend(service.keys.borrow().keys().filter(|key| key.contains(":one") && !key.contains("0001:")).cloned());
    assert_eq!(put(&two, 1, 20), Appended::Revision(2));
    assert_eq!(keys(&two), [0, 20]);
    far.hidden.borrow_mut().clear();
    // The longer side is the history for everybody; the writer of the other one learns of it by a conflict.
    let third = write_once(&connection(&service), "three");
    let Appended::Conflict(is) = put(&two, 2, 21) else { panic!("no conflict") };
    for store in [&one, &two, &third] {
        assert_eq!(keys(store), [0, 10, 11]);
        let [branch] = &block_on(store.branches("s")).unwrap()[..] else { panic!("not one branch") };
        assert_eq!((branch.head.as_ref(), branch.fork_head.as_deref()), (&b"head 20"[..], Some(&b"head 0"[..])));
        assert_eq!(branch.log.iter().map(|record| record.key).collect::<Vec<_>>(), [20]);
    }
    assert_eq!((one.lineage("s"), two.lineage("s")), (0, 1));
    // For its callers revisions only rise, and it goes on after the history.
    assert!(is > 2);
    assert_eq!(put(&two, is, 12), Appended::Revision(is + 1));
    assert_eq!(keys(&one), [0, 10, 11, 12]);
    assert_eq!(put(&one, 3, 13), Appended::Conflict(4));
}

#[test]
fn r47_of_two_equally_long_sides_every_reader_chooses_the_same() {
    let service = plain();
    let (near, far) = (connection(&service), connection(&service));
    let (one, two) = (write_once(&near, "b"), write_once(&far, "a"));
    assert_eq!(put(&one, 0, 0), Appended::Revision(1));
    assert_eq!((keys(&two), put(&one, 1, 1)), (vec![0], Appended::Revision(2)));
    far.hidden.borrow_mut().extend(service.keys.borrow().keys().filter(|key| key.ends_with("2:b")).cloned());
    assert_eq!(put(&two, 1, 2), Appended::Revision(2));
    far.hidden.borrow_mut().clear();
    let third = write_once(&connection(&service), "c");
    for store in [&one, &two, &third] {
        assert_eq!(block_on(store.head("s")).unwrap().unwrap().value, "head 2");
        assert_eq!(block_on(store.branches("s")).unwrap().len(), 1);
    }
}

#[test]
fn r47_two_appends_of_one_process_at_once_use_different_keys() {
    let service = plain();
    let store = write_once(&service, "one");
    let (first, second) = block_on(both(write_with_retry(&store, "s", 0, 20), write_with_retry(&store, "s", 1, 20)));
    assert!(first.unwrap() + second.unwrap() > 0, "they never met");
    block_on(nothing_lost(&write_once(&service, "two"), "s", 20)).unwrap();
}

#[test]
fn r48_a_stale_read_never_shortens_the_history() {
    let service = plain();
    let (near, far) = (connection(&service), connection(&service));
    let (one, two) = (write_once(&near, "one"), write_once(&far, "two"));
    for revision in 0..3 {
        assert_eq!(put(&one, revision, revision), Appended::Revision(revision + 1));
    }
    assert_eq!(keys(&two), [0, 1, 2]);
    // What was read once stays, whatever a list shows later.
    far.hidden.borrow_mut().extend(service.keys.borrow().keys().cloned());
    assert_eq!((keys(&two), block_on(two.head("s")).unwrap().unwrap().revision), (vec![0, 1, 2], 3));
    // A new reader whose list lacks the middle says so, and shows no shorter history as if it were whole.
    let third = connection(&service);
    let reader = write_once(&third, "three");
    third.hidden.borrow_mut().extend(service.keys.borrow().keys().filter(|key| key.contains("0002:")).cloned());
    assert_eq!(block_on(reader.head("s")).unwrap_err().code, ErrorCode::MaybeStale);
    third.hidden.borrow_mut().clear();
    assert_eq!(keys(&reader), [0, 1, 2]);
}

#[test]
fn r48_a_lost_reply_and_a_stale_list_overwrite_nothing() {
    let service = plain();
    let near = connection(&service);
    let (one, two) = (write_once(&near, "one"), write_once(&connection(&service), "two"));
    assert_eq!(put(&one, 0, 0), Appended::Revision(1));
    service.loses_replies.set(true);
    let lost = batch(b"lost", vec![record(Table::Log, 1, b"v")]);
    assert_eq!(block_on(one.append("s", 1, lost, "lost")).unwrap_err().code, ErrorCode::StoreError);
    service.loses_replies.set(false);
    assert_eq!(keys(&two), [0, 1]);
    near.hidden.borrow_mut().extend(service.keys.borrow().keys().filter(|key| key.contains("0002:")).cloned());
    assert_eq!(put(&one, 1, 2), Appended::Revision(2));
    near.hidden.borrow_mut().clear();
    // What was acknowledged is the history for everybody, and the other one is kept beside it.
    for store in [&one, &two, &write_once(&connection(&service), "three")] {
        assert_eq!(keys(store), [0, 2]);
        assert_eq!(block_on(store.branches("s")).unwrap().len(), 1);
    }
}

#[test]
fn r48_a_stale_list_does_not_restore_a_deleted_session() {
    let service = plain();
    let (one, two) = (write_once(&connection(&service), "one"), write_once(&connection(&service), "two"));
    assert_eq!((put(&one, 0, 0), put(&one, 1, 1)), (Appended::Revision(1), Appended::Revision(2)));
    let before = service.keys.borrow().clone();
    assert_eq!(keys(&two), [0, 1]);
    block_on(one.delete_session("s")).unwrap();
    service.keys.borrow_mut().extend(before);
    for store in [&one, &two, &write_once(&connection(&service), "three")] {
        assert_eq!((block_on(store.head("s")).unwrap(), keys(store)), (None, vec![]));
        assert_eq!(put(store, 2, 2), Appended::Conflict(3));
    }
}

#[test]
fn r07_a_damaged_append_affects_no_other_append() {
    let service = plain();
    let one = write_once(&service, "one");
    for revision in 0..3 {
        assert_eq!(put(&one, revision, revision), Appended::Revision(revision + 1));
    }
    service.set("append:s:00000000000002:one", b"\x01\0\0\0broken");
    let two = write_once(&service, "two");
    assert_eq!(keys(&two), [0, 2]);
    assert_eq!(block_on(two.head("s")).unwrap(), Some(StoredHead { revision: 3, value: "head 2".into() }));
    assert_eq!(put(&two, 3, 3), Appended::Revision(4));
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
