//! What browsers, disks and other tabs do to a database, done to the IndexedDB store in a real browser.
#![cfg(target_arch = "wasm32")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use rethread::ErrorCode;
use rethread::store::{
    Appended, AuditQuery, Batch, ListedBy, LogStore, Query, RecencyQuery, Record, StoredHead, Table, recent_sessions,
};
use rethread::web::store::{Durability, IndexedDbStore, delete_database};
use std::task::{Context, Waker};
use support::{
    abort_get, abort_next, all, batch, close, count, erase, exception, fresh, fresh_with, hasty, hold, key_of, log,
    odd, open, put, release, remove, remove_at_once, sleep,
};
use wasm_bindgen_test::{wasm_bindgen_test, wasm_bindgen_test_configure};

wasm_bindgen_test_configure!(run_in_browser);

/// The version of the databases that the store makes.
const OURS: u32 = 3;

#[wasm_bindgen_test]
async fn r48_a_connection_that_the_browser_closed_is_reopened() {
    let store = fresh("r48-closed").await;
    for at in 0..5_u64 {
        store.lose_connection();
        let appended = store.append("s", at, batch(vec![log(at, b"v")]), &format!("op {at}")).await.unwrap();
        assert_eq!(appended, Appended::Revision(at + 1));
        store.lose_connection();
        assert_eq!(all(&store, "s").await.len() as u64, at + 1);
    }
    store.lose_connection();
    assert_eq!(store.head("s").await.unwrap().unwrap().revision, 5);
    store.lose_connection();
    store.delete_session("s").await.unwrap();
    store.lose_connection();
    assert!(store.sessions(None, 10, None).await.unwrap().items.is_empty());
}

#[wasm_bindgen_test]
async fn r48_a_deleted_database_is_reported_once() {
    let store = fresh("r48-evicted").await;
    store.append("s", 0, batch(vec![log(0, b"v")]), "one").await.unwrap();
    // Does not have to wait: the store closes when another tab wants the database.
    remove("r48-evicted").await.unwrap();
    assert_eq!(store.head("s").await.unwrap_err().code, ErrorCode::Evicted);
    assert!(store.head("s").await.unwrap().is_none());
    assert_eq!(store.append("s", 0, batch(vec![]), "two").await.unwrap(), Appended::Revision(1));
    // Taken away while nobody was there.
    drop(store);
    remove("r48-evicted").await.unwrap();
    let opened = IndexedDbStore::open("r48-evicted", Durability::Relaxed).await;
    assert_eq!(opened.err().unwrap().code, ErrorCode::Evicted);
    assert!(IndexedDbStore::open("r48-evicted", Durability::Relaxed).await.is_ok());
    // Deleted on purpose is not evicted.
    delete_database("r48-evicted").await.unwrap();
    assert!(IndexedDbStore::open("r48-evicted", Durability::Relaxed).await.is_ok());
}

#[wasm_bindgen_test]
async fn r48_a_newer_database_is_rejected_and_unchanged() {
    let store = fresh("r48-newer").await;
    store.append("s", 0, batch(vec![log(0, b"v")]), "one").await.unwrap();
    let newer = open("r48-newer", OURS + 1).await.unwrap();
    for error in [
        store.head("s").await.unwrap_err(),
        store.append("s", 1, batch(vec![]), "two").await.unwrap_err(),
        IndexedDbStore::open("r48-newer", Durability::Relaxed).await.err().unwrap(),
    ] {
        assert_eq!(error.code, ErrorCode::UnsupportedVersion, "{error}");
    }
    assert_eq!(count(&newer, "log").await.as_f64(), Some(1.0));
    close(&newer);
    delete_database("r48-newer").await.unwrap();
}

#[wasm_bindgen_test]
async fn r48_a_blocked_open_is_an_error_and_leaves_no_connection() {
    drop(fresh("r48-blocked").await);
    // A tab that does not give way, and one that wants the database gone: whoever opens now has to wait.
    let stubborn = open("r48-blocked", OURS).await.unwrap();
    let mut removal = Box::pin(remove("r48-blocked"));
    let _ = removal.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    let error = IndexedDbStore::open_with("r48-blocked", hasty()).await.err().unwrap();
    assert_eq!(error.code, ErrorCode::UpgradeBlocked, "{error}");
    close(&stubborn);
    removal.await.unwrap();
    // What we had asked for opens now, with nobody waiting, and must not block others in turn.
    sleep(200).await;
    assert!(remove_at_once("r48-blocked").await.is_ok(), "an open that was given up blocks others");
    delete_database("r48-blocked").await.unwrap();
    assert!(IndexedDbStore::open("r48-blocked", Durability::Relaxed).await.is_ok());
}

#[wasm_bindgen_test]
async fn r48_a_blocked_deletion_is_an_error() {
    drop(fresh("r48-deletion").await);
    let stubborn = open("r48-deletion", OURS).await.unwrap();
    let error = delete_database("r48-deletion").await.unwrap_err();
    assert_eq!(error.code, ErrorCode::UpgradeBlocked, "{error}");
    close(&stubborn);
    delete_database("r48-deletion").await.unwrap();
}

#[wasm_bindgen_test]
async fn r48_a_held_lock_is_busy_and_nothing_is_written() {
    let store = fresh_with("r48-busy", hasty()).await;
    store.append("s", 0, batch(vec![log(0, b"v")]), "one").await.unwrap();
    let other = open("r48-busy", OURS).await.unwrap();
    let held = hold(&other, "heads");
    let error = store.append("s", 1, batch(vec![log(1, b"never")]), "two").await.unwrap_err();
    assert_eq!(error.code, ErrorCode::Busy, "{error}");
    assert_eq!(store.head("s").await.unwrap_err().code, ErrorCode::Busy);
    release(&held);
    close(&other);
    sleep(100).await;
    assert_eq!(all(&store, "s").await, [log(0, b"v")]);
    assert_eq!(store.append("s", 1, batch(vec![log(1, b"now")]), "two").await.unwrap(), Appended::Revision(2));
}

#[wasm_bindgen_test]
async fn r48_a_damaged_row_affects_no_other_row() {
    let store = fresh("r48-damaged").await;
    store.append("s", 0, batch((0..8).map(|key| log(key, b"v")).collect()), "one").await.unwrap();
    let raw = open("r48-damaged", OURS).await.unwrap();
    for which in 0..6 {
        put(&raw, "log", &key_of("s", which), &odd(which)).await.unwrap();
        put(&raw, "tool_invocations", &key_of("s", which), &odd(which)).await.unwrap();
    }
    put(&raw, "log", &"not an array".into(), &odd(1)).await.unwrap();
    put(&raw, "log", &key_of("s", 0), &odd(0)).await.unwrap();
    let records = all(&store, "s").await;
    assert_eq!(records.iter().map(|record| record.key).collect::<Vec<_>>(), (0..8).collect::<Vec<_>>());
    assert_eq!(records.iter().map(|record| record.value.len()).collect::<Vec<_>>(), [0, 0, 0, 0, 0, 1, 1, 1]);
    store.invocations(&AuditQuery::default()).await.unwrap();
    // A head that is none is a damaged one, never an empty chat; other sessions stay, and this one can be deleted.
    store.append("t", 0, batch(vec![log(0, b"other")]), "one").await.unwrap();
    for which in 0..6 {
        put(&raw, "heads", &"s".into(), &odd(which)).await.unwrap();
        assert_eq!(store.head("s").await.unwrap(), Some(StoredHead { revision: 0, value: vec![].into() }));
        assert_eq!(store.append("s", 0, batch(vec![log(3, b"over")]), "two").await.unwrap(), Appended::Occupied);
        let listed = store.sessions(None, 10, None).await.unwrap().items;
        assert_eq!(listed.iter().map(|row| row.id.as_str()).collect::<Vec<_>>(), ["s", "t"]);
        assert_eq!(store.head("t").await.unwrap().unwrap().revision, 1);
    }
    assert_eq!(all(&store, "s").await.len(), 8);
    store.delete_session("s").await.unwrap();
    assert!(store.head("s").await.unwrap().is_none() && all(&store, "s").await.is_empty());
    close(&raw);
}

#[wasm_bindgen_test]
async fn r48_a_session_with_a_missing_head_is_still_listed() {
    let store = fresh("r48-headless").await;
    let raw = open("r48-headless", OURS).await.unwrap();
    let ids: Vec<String> = (10..40).map(|at| format!("s{at}")).collect();
    let run = || Record { table: Table::Runs, ..log(7, b"run") };
    for (at, id) in ids.iter().enumerate() {
        let record = if at % 4 == 0 { run() } else { log(0, b"v") };
        store.append(id, 0, batch(vec![record]), "one").await.unwrap();
    }
    store.append("s15", 1, batch(vec![]), "two").await.unwrap();
    store.delete_session("s25").await.unwrap();
    // In a row, first, last, and before one that is deleted.
    for id in ["s10", "s11", "s12", "s24", "s38", "s39"] {
        erase(&raw, "heads", &id.into()).await.unwrap();
    }
    let want: Vec<_> = ids.iter().filter(|id| *id != "s25").collect();
    for limit in [1, 2, 3, 7, 28, 29, 100] {
        let (mut listed, mut cursor) = (Vec::new(), None);
        loop {
            let page = store.sessions(cursor.as_deref(), limit, None).await.unwrap();
            assert!(page.items.len() <= limit);
            listed.extend(page.items);
            cursor = page.cursor;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(listed.iter().map(|row| &row.id).collect::<Vec<_>>(), want, "in pages of {limit}");
        let lost = listed.iter().filter(|row| row.head == StoredHead { revision: 0, value: vec![].into() }).count();
        assert_eq!(lost, 6);
        // Nothing is known of the time of any of them.
        for archived in [None, Some(false)] {
            assert_eq!(recent(&store, archived, limit).await, want.iter().map(|id| id.as_str()).collect::<Vec<_>>());
        }
        assert!(recent(&store, Some(true), limit).await.is_empty());
    }
    for id in ["s10", "s12"] {
        assert_eq!(store.head(id).await.unwrap(), Some(StoredHead { revision: 0, value: vec![].into() }));
        store.delete_session(id).await.unwrap();
        assert!(store.head(id).await.unwrap().is_none(), "its records went with it");
    }
    close(&raw);
}

/// The ids on all pages of `limit`.
async fn recent(store: &IndexedDbStore, archived: Option<bool>, limit: usize) -> Vec<String> {
    let (mut ids, mut cursor) = (Vec::new(), None);
    loop {
        let query = RecencyQuery { archived, cursor, limit, ..RecencyQuery::default() };
        let page = recent_sessions(store, &query).await.unwrap();
        ids.extend(page.items.into_iter().map(|row| row.id));
        cursor = page.cursor;
        if cursor.is_none() {
            return ids;
        }
    }
}

#[wasm_bindgen_test]
async fn r79_a_foreign_head_is_listed_by_recency() {
    let store = fresh("r79-foreign-head").await;
    let raw = open("r79-foreign-head", OURS).await.unwrap();
    for (at, id) in (1..).zip(["a", "b", "c", "d"]) {
        let mut listed = batch(vec![log(0, b"v")]);
        listed.listed_by = ListedBy { updated_at: at, is_archived: id == "c" };
        store.append(id, 0, listed, "one").await.unwrap();
    }
    for which in 0..6 {
        put(&raw, "heads", &"b".into(), &odd(which)).await.unwrap();
        for limit in [1, 2, 100] {
            assert_eq!(recent(&store, Some(false), limit).await, ["d", "a", "b"], "a head that is {which}");
            assert_eq!(recent(&store, None, limit).await, ["d", "c", "a", "b"]);
            assert_eq!(recent(&store, Some(true), limit).await, ["c"]);
        }
    }
    close(&raw);
}

#[wasm_bindgen_test]
async fn r48_a_foreign_database_is_an_error() {
    delete_database("r48-foreign").await.unwrap();
    close(&open("r48-foreign", 1).await.unwrap());
    let error = IndexedDbStore::open("r48-foreign", Durability::Relaxed).await.err().unwrap();
    assert_eq!(error.code, ErrorCode::ConfigInvalid);
    assert!(error.message.contains("indexeddb") && error.message.contains("r48-foreign"), "{error}");
    // It is not kept open either.
    delete_database("r48-foreign").await.unwrap();
}

#[wasm_bindgen_test]
async fn r48_a_failure_within_the_transaction_rolls_all_of_it_back() {
    let store = fresh("r48-abort").await;
    store.append("s", 0, batch(vec![log(0, b"v")]), "one").await.unwrap();
    let cases = [
        ("QuotaExceededError", ErrorCode::QuotaExceeded),
        ("DataError", ErrorCode::StoreError),
        ("ConstraintError", ErrorCode::StoreError),
    ];
    for (name, code) in cases {
        // Removal is asked for before the put fails.
        let torn = Batch { remove: vec![(Table::Log, 0)], ..batch(vec![log(1, b"never")]) };
        abort_next(&exception(name));
        let error = store.append("s", 1, torn, name).await.unwrap_err();
        assert_eq!(error.code, code, "{error}");
        assert!(error.message.contains(name), "{error}");
        assert_eq!(all(&store, "s").await, [log(0, b"v")]);
        assert_eq!(store.head("s").await.unwrap().unwrap().revision, 1);
    }
    // What means a lost connection is tried once more, and then succeeds here.
    for (at, name) in (1..).zip(["InvalidStateError", "UnknownError", "TransactionInactiveError"]) {
        abort_next(&exception(name));
        assert_eq!(store.append("s", at, batch(vec![log(at, b"w")]), name).await.unwrap(), Appended::Revision(at + 1));
    }
    assert_eq!(all(&store, "s").await.len(), 4);
}

/// What the index of a search takes belongs to the sessions.
#[wasm_bindgen_test]
async fn r48_a_full_disk_takes_the_space_of_the_search_index() {
    let store = fresh("r48-index").await;
    store.append("s", 0, batch(vec![log(0, b"v")]), "one").await.unwrap();
    let index = store.search_index_store().unwrap();
    let mark = store.head_changes(None).unwrap().await.unwrap().mark;
    assert!(index.write_index(mark, b"index".as_slice().into()).await.unwrap());
    abort_next(&exception("QuotaExceededError"));
    let appended = store.append("s", 1, batch(vec![log(1, b"w")]), "two").await.unwrap();
    assert_eq!(appended, Appended::Revision(2));
    assert_eq!(index.read_index().await.unwrap(), None);
    assert!(store.search_index_store().is_none(), "the index would take the space again");
    // There is nothing left to give up.
    abort_next(&exception("QuotaExceededError"));
    let error = store.append("s", 2, batch(vec![log(2, b"never")]), "three").await.unwrap_err();
    assert_eq!(error.code, ErrorCode::QuotaExceeded);
    assert_eq!(all(&store, "s").await.len(), 2);
    delete_database("r48-index").await.unwrap();
}

#[wasm_bindgen_test]
async fn r48_a_read_in_parts_goes_on_after_a_lost_connection() {
    let store = fresh("r48-parts").await;
    let segments = (0..20).map(|at| Record { last_key: Some(at * 10 + 9), ..log(at * 10, &[7; 70_000]) });
    let singles = (200..500).map(|key| log(key, b"single"));
    store.append("s", 0, batch(segments.chain(singles).collect()), "one").await.unwrap();
    let whole = all(&store, "s").await;
    // Of 20 segments, the read fails at the first request, in the middle, and at the last one.
    for (lost, count) in [(true, 1), (true, 12), (true, 20), (false, 12)] {
        let mut records = Vec::new();
        abort_get(&exception(if lost { "UnknownError" } else { "DataError" }), count);
        let read = store.read_parts("s", Query::all(Table::Log), &mut |part| records.extend(part)).await;
        assert_eq!(read.is_ok(), lost, "{read:?}");
        assert!(records == whole || !lost && whole.starts_with(&records) && records.len() < 20, "{count}");
    }
    let mut some = Vec::new();
    store
        .read_parts("s", Query { from: 15, to: 210, ..Query::all(Table::Log) }, &mut |part| some.extend(part))
        .await
        .unwrap();
    assert_eq!(some, whole[1..31]);
    delete_database("r48-parts").await.unwrap();
}

#[wasm_bindgen_test]
async fn r48_a_dropped_future_leaves_the_store_consistent() {
    let store = fresh("r48-dropped").await;
    let mut revision = 0;
    for polls in 0..8_u64 {
        let operation = format!("dropped {polls}");
        let mut call =
            store.append("s", revision, batch((0..50).map(|key| log(polls * 100 + key, b"v")).collect()), &operation);
        for poll in 0..polls {
            let ended = call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
            assert!(!ended || poll > 0, "an append ended before its transaction could");
            // A call that has ended must not be polled again; how many polls it takes is the browser's pace.
            if ended {
                break;
            }
            sleep(0).await;
        }
        drop(call);
        let mut read = store.read("s", Query::all(Table::Log));
        let _ = read.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        drop(read);
        drop(IndexedDbStore::open("r48-dropped", Durability::Relaxed));
        let records = all(&store, "s").await;
        assert_eq!(records.len() % 50, 0, "half a batch is there");
        revision = store.head("s").await.unwrap().map_or(0, |head| head.revision);
        assert_eq!(records.len() as u64, revision * 50);
    }
    delete_database("r48-dropped").await.unwrap();
}

/// A value above what one message between a browser's processes holds, 128 MB in Chromium.
#[wasm_bindgen_test]
async fn r48_a_huge_value_is_stored_or_rejected() {
    let store = fresh("r48-huge").await;
    let huge = vec![7; 150_000_000];
    match store.append("s", 0, batch(vec![log(0, &huge)]), "one").await {
        Ok(appended) => {
            assert_eq!(appended, Appended::Revision(1));
            assert!(all(&store, "s").await[0].value == huge);
        }
        Err(error) => {
            assert!(matches!(error.code, ErrorCode::TooLarge | ErrorCode::QuotaExceeded), "{error}");
            assert!(store.head("s").await.unwrap().is_none());
        }
    }
    delete_database("r48-huge").await.unwrap();
}
