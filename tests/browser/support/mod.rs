//! What other tabs, other programs and the browser do to a database, and what all these tests need.
#![allow(dead_code, clippy::unwrap_used)] // not every test file needs all of it

use rethread::store::conformance::check_all;
use rethread::store::{Batch, LogStore, Query, Record, StoreFuture, Table};
use rethread::web::store::{Durability, IndexedDbOptions, IndexedDbStore, delete_database};
use std::rc::Rc;
use wasm_bindgen::prelude::*;

#[wasm_bindgen(inline_js = r#"
    const settled = (request) => new Promise((resolve, reject) => {
        request.onsuccess = () => resolve(request.result);
        request.onerror = () => reject(request.error);
    });
    export function open(name, version) {
        const request = indexedDB.open(name, version);
        request.onupgradeneeded = () => { if (request.result.objectStoreNames.length === 0) request.result.createObjectStore("theirs"); };
        return settled(request);
    }
    export const close = (database) => database.close();
    export const remove = (name) => settled(indexedDB.deleteDatabase(name));
    export function removeAtOnce(name) {
        const request = indexedDB.deleteDatabase(name);
        return new Promise((resolve, reject) => { request.onblocked = () => reject("blocked"); settled(request).then(resolve, reject); });
    }
    export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
    export function put(database, store, key, value) {
        const transaction = database.transaction(store, "readwrite");
        transaction.objectStore(store).put(value, key);
        return new Promise((resolve, reject) => { transaction.oncomplete = resolve; transaction.onabort = () => reject(transaction.error); });
    }
    export function erase(database, store, key) {
        const transaction = database.transaction(store, "readwrite");
        transaction.objectStore(store).delete(key);
        return new Promise((resolve, reject) => { transaction.oncomplete = resolve; transaction.onabort = () => reject(transaction.error); });
    }
    export const count = (database, store) => settled(database.transaction(store).objectStore(store).count());
    // Keeps a lock with endless requests, as a tab does that is frozen within a transaction.
    export function hold(database, store) {
        const transaction = database.transaction(store, "readwrite");
        let held = true;
        const again = () => { if (held) transaction.objectStore(store).get("none").onsuccess = again; };
        again();
        return () => { held = false; };
    }
    export const release = (held) => held();
    // A value that is damaged in a chosen way.
    export const odd = (which) => [7, "text", null, { v: "no bytes", t: 5 }, [1, 2], new Uint8Array([9])][which];
    export const keyOf = (session, key) => [session, key];
    export const exception = (name) => new DOMException("as a browser says it", name);
    // The request of so many gets from now fails.
    export function abortGet(error, count) {
        const get = IDBObjectStore.prototype.get;
        IDBObjectStore.prototype.get = function (key) {
            count -= 1;
            if (count > 0) return get.call(this, key);
            IDBObjectStore.prototype.get = get;
            throw error;
        };
    }
    export function abortNext(error) {
        const put = IDBObjectStore.prototype.put;
        IDBObjectStore.prototype.put = function () { IDBObjectStore.prototype.put = put; throw error; };
    }
"#)]
extern "C" {
    #[wasm_bindgen(catch)]
    pub async fn open(name: &str, version: u32) -> Result<JsValue, JsValue>;
    pub fn close(database: &JsValue);
    #[wasm_bindgen(catch)]
    pub async fn remove(name: &str) -> Result<JsValue, JsValue>;
    #[wasm_bindgen(catch, js_name = removeAtOnce)]
    pub async fn remove_at_once(name: &str) -> Result<JsValue, JsValue>;
    pub async fn sleep(ms: u32);
    #[wasm_bindgen(catch)]
    pub async fn put(database: &JsValue, store: &str, key: &JsValue, value: &JsValue) -> Result<JsValue, JsValue>;
    #[wasm_bindgen(catch)]
    pub async fn erase(database: &JsValue, store: &str, key: &JsValue) -> Result<JsValue, JsValue>;
    pub async fn count(database: &JsValue, store: &str) -> JsValue;
    pub fn hold(database: &JsValue, store: &str) -> JsValue;
    pub fn release(held: &JsValue);
    pub fn odd(which: u32) -> JsValue;
    #[wasm_bindgen(js_name = keyOf)]
    pub fn key_of(session: &str, key: u32) -> JsValue;
    pub fn exception(name: &str) -> JsValue;
    #[wasm_bindgen(js_name = abortNext)]
    pub fn abort_next(error: &JsValue);
    #[wasm_bindgen(js_name = abortGet)]
    pub fn abort_get(error: &JsValue, count: u32);
}

pub async fn fresh(name: &str) -> IndexedDbStore {
    fresh_with(name, IndexedDbOptions::default()).await
}

pub async fn fresh_with(name: &str, options: IndexedDbOptions) -> IndexedDbStore {
    delete_database(name).await.unwrap();
    IndexedDbStore::open_with(name, options).await.unwrap()
}

pub fn hasty() -> IndexedDbOptions {
    IndexedDbOptions { busy_after: 400, blocked_after: 200, ..IndexedDbOptions::default() }
}

pub fn log(key: u64, value: &[u8]) -> Record {
    Record { table: Table::Log, key, last_key: None, index: None, value: value.to_vec().into() }
}

pub fn batch(put: Vec<Record>) -> Batch {
    Batch { head: b"head".as_slice().into(), put, ..Batch::default() }
}

pub async fn all(store: &IndexedDbStore, session: &str) -> Vec<Record> {
    store.read(session, Query::all(Table::Log)).await.unwrap()
}

/// Runs the suite, each check on two connections of its own.
pub async fn conforms(name: &'static str, durability: Durability, older: bool) {
    delete_database(name).await.unwrap();
    check_all(name, &move || -> StoreFuture<'static, Rc<dyn LogStore>> {
        Box::pin(async move {
            let store = IndexedDbStore::open(name, durability).await?;
            if older {
                store.read_as_older_browsers();
            }
            let store: Rc<dyn LogStore> = Rc::new(store);
            Ok(store)
        })
    })
    .await
    .unwrap();
    delete_database(name).await.unwrap();
}
