//! Packs of appends: how many requests a long session costs, and that nothing but their number depends on packs.

use super::service::{MemoryKv, TestTimer, block_on};
use super::{connection, keys, plain, put, write_once};
use rethread::error::ErrorCode;
use rethread::store::kv::WriteOnceStore;
use rethread::store::{Appended, LogStore, Query, Table};
use std::rc::Rc;

/// A session with so many appends by one writer.
fn long_session(service: &MemoryKv, count: u64) -> WriteOnceStore {
    let store = write_once(service, "one");
    for revision in 0..count {
        assert_eq!(put(&store, revision, revision), Appended::Revision(revision + 1));
    }
    store
}

fn keys_of(service: &MemoryKv, prefix: &str) -> Vec<String> {
    service.keys.borrow().keys().filter(|key| key.starts_with(prefix)).cloned().collect()
}

/// Opens the session anew. Returns how many requests it took, with one for each value.
fn open_requests(service: &MemoryKv, count: u64) -> u64 {
    let before = service.traffic.requests();
    let store = write_once(&connection(service), "reader");
    assert_eq!(block_on(store.head("s")).unwrap().unwrap().revision, count);
    assert_eq!(keys(&store), (0..count).collect::<Vec<_>>());
    service.traffic.requests() - before
}

#[test]
fn r46_an_append_costs_the_same_and_opening_few_requests_at_any_length() {
    let service = plain();
    let store = write_once(&service, "one");
    let (mut all, mut most) = (0, 0);
    let mut costs = Vec::new();
    for revision in 0..10_000 {
        let before = service.traffic.requests();
        put(&store, revision, revision);
        let cost = service.traffic.requests() - before;
        (all, most) = (all + cost, most.max(cost));
        if [100, 9_998].contains(&revision) {
            costs.push(cost);
        }
    }
    // A list and a write; one in 64 writes a pack and the manifest too, and merges packs.
    assert_eq!(costs, [2, 2]);
    assert!(all < 10_000 * 5 / 2 && most < 50, "{all} requests, at most {most} for one append");
    let requests = open_requests(&service, 10_000);
    println!("{all} requests for 10,000 appends, {most} at most for one, {requests} to open");
    assert!(requests < 100, "{requests} requests to open 10,000 appends");
}

#[test]
fn r48_only_the_number_of_requests_depends_on_the_manifest() {
    let service = plain();
    long_session(&service, 3_000);
    let usual = open_requests(&service, 3_000);
    let (current, _) = service.keys.borrow()["manifest:s"].clone();
    let damaged: Vec<u8> = current.iter().enumerate().map(|(at, byte)| byte ^ u8::from(at == 30)).collect();
    let early = plain();
    long_session(&early, 200);
    let (stale, _) = early.keys.borrow()["manifest:s"].clone();
    for (name, value) in
        [("missing", None), ("damaged", Some(damaged)), ("empty", Some(vec![])), ("stale", Some(stale.to_vec()))]
    {
        match value {
            Some(value) => service.set("manifest:s", &value),
            None => drop(service.keys.borrow_mut().remove("manifest:s")),
        }
        let requests = open_requests(&service, 3_000);
        assert!(requests < usual + 20, "{name}: {requests} requests, and {usual} with the manifest");
    }
}

#[test]
fn r48_a_pack_that_is_missing_or_damaged_costs_requests_alone() {
    for damage in ["missing", "cut", "flipped", "another session's"] {
        let service = plain();
        long_session(&service, 600);
        for key in keys_of(&service, "pack:") {
            let (value, _) = service.keys.borrow()[&key].clone();
            match damage {
                "missing" => drop(service.keys.borrow_mut().remove(&key)),
                "cut" => service.set(&key, &value[..value.len() / 2]),
                "flipped" => {
                    // In the values and in the description.
                    let flip = |(at, byte): (usize, &u8)| byte ^ u8::from(at % 997 == 40);
                    service.set(&key, &value.iter().enumerate().map(flip).collect::<Vec<_>>());
                }
                _ => {
                    let other = plain();
                    let store = write_once(&other, "one");
                    for revision in 0..64 {
                        let batch = super::batch(b"h", vec![]);
                        block_on(store.append("t", revision, batch, &format!("t{revision}"))).unwrap();
                    }
                    let [pack] = &keys_of(&other, "pack:")[..] else { panic!("not one pack") };
                    service.set(&key, &other.keys.borrow()[pack].0.clone());
                }
            }
        }
        assert!(open_requests(&service, 600) < 700, "{damage}");
    }
}

#[test]
fn r48_a_damaged_append_in_a_pack_is_read_from_its_own_key() {
    let service = plain();
    long_session(&service, 64);
    let [pack] = &keys_of(&service, "pack:")[..] else { panic!("not one pack") };
    let (value, _) = service.keys.borrow()[pack].clone();
    let mut damaged = value.to_vec();
    let last = damaged.len() - 40;
    damaged[last] ^= 1;
    service.set(pack, &damaged);
    open_requests(&service, 64);
}

#[test]
fn r47_two_packers_of_one_session_keep_everything() {
    let service = plain();
    let (one, two) = (write_once(&connection(&service), "one"), write_once(&connection(&service), "two"));
    for revision in 0..700 {
        let store = if revision % 3 == 0 { &two } else { &one };
        assert_eq!(put(store, revision, revision), Appended::Revision(revision + 1));
    }
    for store in [&one, &two] {
        block_on(store.pack("s")).unwrap();
        assert_eq!(keys(store), (0..700).collect::<Vec<_>>());
    }
    let requests = open_requests(&service, 700);
    assert!(requests < 100, "{requests} requests");
    // The same appends in one pack have one name.
    let (far, near) = (write_once(&connection(&service), "far"), write_once(&connection(&service), "near"));
    let before = keys_of(&service, "pack:");
    for revision in 700..732 {
        put(&far, revision, revision);
    }
    assert_eq!(keys(&near).len(), 732);
    block_on(far.pack("s")).unwrap();
    let packed = keys_of(&service, "pack:");
    block_on(near.pack("s")).unwrap();
    assert!(packed.len() > before.len() && keys_of(&service, "pack:").len() <= packed.len() + 1);
}

#[test]
fn r48_a_reader_who_knows_a_merged_pack_finds_its_appends() {
    let service = plain();
    let store = long_session(&service, 500);
    let (manifest, _) = service.keys.borrow()["manifest:s"].clone();
    for revision in 500..2_000 {
        put(&store, revision, revision);
    }
    assert!(keys_of(&service, "pack:").len() < 30, "merged packs are left");
    service.set("manifest:s", &manifest);
    assert!(open_requests(&service, 2_000) < 100);
}

#[test]
fn r46_no_log_record_is_kept_in_memory_twice() {
    let service = plain();
    let store = write_once(&service, "one");
    let value = vec![7; 5_000];
    let write = |revision: u64| {
        let batch = super::batch(b"h", vec![super::record(Table::Log, revision, &value)]);
        block_on(store.append("s", revision, batch, &format!("{revision}"))).unwrap()
    };
    for revision in 0..640 {
        assert_eq!(write(revision), Appended::Revision(revision + 1));
    }
    // Only what waits for a pack.
    assert!(store.held_bytes("s") < 65 * 6_000, "{} bytes", store.held_bytes("s"));
    let reader = write_once(&connection(&service), "reader");
    for _ in 0..2 {
        for store in [&store, &reader] {
            let records = block_on(store.read("s", Query::all(Table::Log))).unwrap();
            assert_eq!((records.len(), records.iter().all(|record| record.value == value)), (640, true));
        }
    }
    // The values of the reader are those that it gave, not copies.
    let read = || block_on(reader.read("s", Query::all(Table::Log))).unwrap();
    assert!(read().iter().zip(&read()).all(|(one, other)| one.value.as_ptr() == other.value.as_ptr()));
    assert!(store.held_bytes("s") < 65 * 6_000, "{} bytes", store.held_bytes("s"));
    // The size of a page counts what is not in memory.
    let page = Query { limit_bytes: 15_000, reverse: true, ..Query::all(Table::Log) };
    let page: Vec<_> = block_on(store.read("s", page)).unwrap().iter().map(|record| record.key).collect();
    assert_eq!(page, [639, 638, 637]);
    // What nobody holds any more leaves memory, and is read again, and packed.
    for store in [&store, &reader] {
        store.drop_cached_values("s");
        assert_eq!(store.held_bytes("s"), 0);
        assert_eq!(block_on(store.read("s", Query::all(Table::Log))).unwrap().len(), 640);
    }
    for revision in 640..700 {
        assert_eq!(write(revision), Appended::Revision(revision + 1));
        store.drop_cached_values("s");
    }
    block_on(store.pack("s")).unwrap();
    assert!(!store.needs_packing("s"));
    let lister = write_once(&connection(&service), "lister");
    assert_eq!(block_on(lister.sessions(None, 0, None)).unwrap().items.len(), 1);
    assert!(lister.held_bytes("s") < 65 * 6_000, "{} bytes", lister.held_bytes("s"));
}

#[test]
fn r49_a_deleted_session_leaves_no_pack() {
    let service = plain();
    let store = long_session(&service, 300);
    assert!(keys_of(&service, "pack:").len() > 1);
    block_on(store.delete_session("s")).unwrap();
    assert_eq!((keys_of(&service, "pack:").len(), keys_of(&service, "manifest:").len()), (0, 0));
    assert_eq!(keys_of(&service, "append:").len(), 1);
    // What another process left is removed by a repeated deletion.
    service.set("pack:s:left", b"over");
    block_on(write_once(&service, "two").delete_session("s")).unwrap();
    assert_eq!(keys_of(&service, "pack:").len(), 0);
    // The next session of that id begins anew.
    for revision in 301..401 {
        assert_eq!(put(&store, revision, revision), Appended::Revision(revision + 1));
    }
    assert_eq!(keys(&write_once(&service, "three")).len(), 100);
}

#[test]
fn r48_a_manifest_is_written_at_most_once_a_second() {
    let timer = Rc::new(TestTimer::default());
    let service = MemoryKv { timer: Some(timer), ..plain() };
    let store = long_session(&service, 1_000);
    // The clock has not moved since the first one.
    let (first, _) = service.keys.borrow()["manifest:s"].clone();
    assert!(first.len() < 200, "the manifest names more than the first pack");
    assert!(store.needs_packing("s"));
    open_requests(&service, 1_000);
}

#[test]
fn r48_a_merge_removes_only_packs_that_an_earlier_one_replaced() {
    let service = plain();
    let store = write_once(&service, "one");
    let mut before = Vec::new();
    for revision in 0..2_048 {
        put(&store, revision, revision);
        if revision % 32 == 31 {
            before = keys_of(&service, "pack:");
            block_on(store.pack("s")).unwrap();
        }
    }
    // The last call merged twice: eight packs of 32, then eight of 256. The seventh merge of the first kind replaced
    // eight.
    let after = keys_of(&service, "pack:");
    assert_eq!(before.iter().filter(|key| !after.contains(key)).count(), 8);
    open_requests(&service, 2_048);
}

#[test]
fn r48_merged_packs_stay_while_the_manifest_names_them() {
    let timer = Rc::new(TestTimer::default());
    let service = MemoryKv { timer: Some(timer.clone()), ..plain() };
    let store = write_once(&service, "one");
    for revision in 0..768 {
        put(&store, revision, revision);
        if revision == 767 {
            // Of 23 packs and two merged ones none was removed: the manifest is still the first one.
            assert_eq!(keys_of(&service, "pack:").len(), 25);
            timer.advance(1_000);
        }
        if revision % 32 == 31 {
            block_on(store.pack("s")).unwrap();
        }
    }
    assert_eq!(keys_of(&service, "pack:").len(), 24 + 3 - 16);
}

#[test]
fn r48_a_pack_that_cannot_be_written_fails_no_append() {
    let service = plain();
    let store = long_session(&service, 63);
    service.refused_prefix.borrow_mut().replace("pack:".into());
    for revision in 63..200 {
        assert_eq!(put(&store, revision, revision), Appended::Revision(revision + 1));
    }
    assert_eq!(block_on(store.pack("s")).unwrap_err().code, ErrorCode::QuotaExceeded);
    service.refused_prefix.take();
    open_requests(&service, 200);
    block_on(store.pack("s")).unwrap();
    assert!(open_requests(&service, 200) < 20);
}
