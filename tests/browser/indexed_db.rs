//! The IndexedDB store in a real browser, under the suite that every store passes.
#![cfg(target_arch = "wasm32")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use rethread::store::conformance::{
    CHECKS, both, check_one, nothing_lost, nothing_returns_after_deletion, write_with_retry,
};
use rethread::store::{Appended, LogStore, StoreFuture};
use rethread::web::store::{Durability, IndexedDbStore, delete_database, storage_status};
use std::rc::Rc;
use support::{all, batch, close, conforms, erase, fresh, log, open};
use wasm_bindgen_test::{wasm_bindgen_test, wasm_bindgen_test_configure};

wasm_bindgen_test_configure!(run_in_browser);

#[wasm_bindgen_test]
async fn r46_indexed_db_conforms() {
    conforms("r46", Durability::Relaxed, false).await;
}

#[wasm_bindgen_test]
async fn r46_indexed_db_conforms_when_strict() {
    conforms("r46-strict", Durability::Strict, false).await;
}

#[wasm_bindgen_test]
async fn r46_indexed_db_conforms_without_get_all_records() {
    conforms("r46-older", Durability::Relaxed, true).await;
}

#[wasm_bindgen_test]
async fn r46_data_survives_reopening() {
    let store = fresh("r46-again").await;
    let records: Vec<_> = (0..20).map(|key| log(key, &[7; 100])).collect();
    assert_eq!(store.append("s", 0, batch(records.clone()), "one").await.unwrap(), Appended::Revision(1));
    drop(store);
    let store = IndexedDbStore::open("r46-again", Durability::Relaxed).await.unwrap();
    assert_eq!(all(&store, "s").await, records);
    assert_eq!(store.append("s", 0, batch(vec![log(99, b"twice")]), "one").await.unwrap(), Appended::Revision(1));
    assert_eq!(store.append("s", 1, batch(vec![log(20, b"on")]), "two").await.unwrap(), Appended::Revision(2));
    assert_eq!(all(&store, "s").await.len(), 21);
}

#[wasm_bindgen_test]
async fn r07_nothing_returns_after_the_deletion_of_a_session_whose_head_was_lost_in_indexed_db() {
    let store = fresh("r07-lost").await;
    let other = IndexedDbStore::open("r07-lost", Durability::Relaxed).await.unwrap();
    let damage = |session: String| -> StoreFuture<'static, ()> {
        Box::pin(async move {
            let raw = open("r07-lost", 3).await.unwrap();
            erase(&raw, "heads", &session.into()).await.unwrap();
            close(&raw);
            Ok(())
        })
    };
    nothing_returns_after_deletion((&store, &other), "s", &damage).await.unwrap();
}

#[wasm_bindgen_test]
async fn r49_sessions_are_isolated() {
    delete_database("r49").await.unwrap();
    let (name, check) = CHECKS.iter().find(|(name, _)| *name == "no_session_reaches_another").unwrap();
    let open = || -> StoreFuture<'static, Rc<dyn LogStore>> {
        Box::pin(async {
            let store: Rc<dyn LogStore> = Rc::new(IndexedDbStore::open("r49", Durability::Relaxed).await?);
            Ok(store)
        })
    };
    check_one("", name, *check, &open).await.unwrap();
}

#[wasm_bindgen_test]
async fn r47_two_connections_lose_nothing() {
    let one = fresh("r47").await;
    let two = IndexedDbStore::open("r47", Durability::Strict).await.unwrap();
    let (first, second) = both(write_with_retry(&one, "s", 0, 100), write_with_retry(&two, "s", 1, 100)).await;
    let conflicts = first.unwrap() + second.unwrap();
    assert!(conflicts > 0, "the writers never met");
    nothing_lost(&one, "s", 100).await.unwrap();
    nothing_lost(&two, "s", 100).await.unwrap();
}

#[wasm_bindgen_test]
async fn r47_overlapping_calls_on_one_connection_all_succeed() {
    let store = fresh("r47-overlap").await;
    let (first, second) = both(write_with_retry(&store, "s", 0, 50), write_with_retry(&store, "s", 1, 50)).await;
    first.unwrap();
    second.unwrap();
    nothing_lost(&store, "s", 50).await.unwrap();
}

#[wasm_bindgen_test]
async fn storage_estimate_and_persistence_come_from_the_browser() {
    let status = storage_status().await;
    assert!(status.quota.unwrap() > 0.0 && status.usage.is_some() && status.persisted.is_some(), "{status:?}");
}
