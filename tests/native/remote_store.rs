//! Stores of another instance: what crosses as bytes is the whole contract.

use crate::kv_store::service::{MemoryKv, block_on, let_others_go_first};
use crate::sql_store::sqlite::{SqliteDriver, TestFolder};
use bytes::Bytes;
use rethread::error::{Error, ErrorCode, Result};
use rethread::store::conformance::check_all;
use rethread::store::kv::{KvStore, WriteOnceStore};
use rethread::store::remote::{RemoteStore, Responder, SelectorLink, StoreLink, answer, store_facts};
use rethread::store::sql::SqlStore;
use rethread::store::{Batch, LogStore, MemoryStore, Query, Record, StoreFuture, Table};
use std::cell::Cell;
use std::rc::Rc;

/// A link to a store of this process. Others go first before each call and before each reply.
struct Loopback {
    store: Rc<dyn LogStore>,
    calls: Rc<Cell<u64>>,
    is_closed: Cell<bool>,
}

impl StoreLink for Loopback {
    fn call(&self, call: Vec<u8>, responder: Option<Responder>) -> StoreFuture<'_, Bytes> {
        self.calls.set(self.calls.get() + 1);
        Box::pin(async move {
            let_others_go_first().await;
            let selector = responder
                .map(|respond| -> SelectorLink { Box::new(move |question| Ok(respond(question.into()).into())) });
            let reply = answer(&*self.store, call.into(), selector).await;
            let_others_go_first().await;
            reply.map(Into::into)
        })
    }

    fn send(&self, call: Vec<u8>) {
        block_on(self.call(call, None)).unwrap();
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        self.is_closed.set(true);
        self.store.close()
    }
}

fn remote(store: Rc<dyn LogStore>) -> RemoteStore<Loopback> {
    let facts = store_facts(&*store, "kind").into();
    RemoteStore::new(Loopback { store, calls: Rc::default(), is_closed: Cell::new(false) }, facts).unwrap()
}

fn conforms(open: &dyn Fn() -> StoreFuture<'static, Rc<dyn LogStore>>) {
    let open_remote = || -> StoreFuture<'static, Rc<dyn LogStore>> {
        let opening = open();
        Box::pin(async move { Ok(Rc::new(remote(opening.await?)) as Rc<dyn LogStore>) })
    };
    block_on(check_all("remote", &open_remote)).unwrap();
}

#[test]
fn r46_a_remote_memory_store_conforms() {
    let store = MemoryStore::default();
    conforms(&|| {
        let store: Rc<dyn LogStore> = Rc::new(store.clone());
        Box::pin(async move { Ok(store) })
    });
}

#[test]
fn r46_a_remote_sqlite_store_conforms() {
    let folder = TestFolder::new();
    let file = folder.file("chat.sqlite");
    SqliteDriver::open(&file).execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF");
    conforms(&|| {
        let driver = SqliteDriver::open(&file);
        driver.execute("PRAGMA synchronous = OFF");
        Box::pin(async move { Ok(Rc::new(SqlStore::open(driver).await?) as Rc<dyn LogStore>) })
    });
}

#[test]
fn r46_a_remote_key_value_store_conforms() {
    let service = MemoryKv::default();
    conforms(&|| {
        let driver = Rc::new(service.clone());
        Box::pin(async move { Ok(Rc::new(KvStore::open(driver).await?) as Rc<dyn LogStore>) })
    });
}

fn plain() -> MemoryKv {
    MemoryKv { is_plain: true, ..MemoryKv::default() }
}

#[test]
fn r46_a_remote_write_once_store_conforms() {
    let (service, writers) = (plain(), Cell::new(0));
    conforms(&|| {
        writers.set(writers.get() + 1);
        let (driver, writer) = (Rc::new(service.clone()), format!("writer{}", writers.get()));
        Box::pin(async move { Ok(Rc::new(WriteOnceStore::open(driver, writer).await?) as Rc<dyn LogStore>) })
    });
}

fn batch(key: u64) -> Batch {
    let value = Bytes::from(format!("value {key}"));
    let record = Record { table: Table::Log, key, last_key: None, index: None, value };
    Batch { head: Bytes::from(format!("head {key}")), put: vec![record], ..Batch::default() }
}

#[test]
fn r47_a_remote_store_shows_the_forks_of_its_latest_reply() {
    let service = plain();
    let open = |service: &MemoryKv, writer: &str| {
        Rc::new(block_on(WriteOnceStore::open(Rc::new(service.clone()), writer.into())).unwrap())
    };
    // What one of them writes is hidden from the other one at first.
    let far = MemoryKv { hidden: Rc::default(), ..service.clone() };
    let (near_store, far_store) = (open(&service, "near"), open(&far, "far"));
    let (near, other) = (remote(near_store.clone()), remote(far_store.clone()));
    assert!(!near.capabilities().compare_and_append);
    block_on(near.append("s", 0, batch(0), "first")).unwrap();
    block_on(other.head("s")).unwrap();
    let before: Vec<String> = service.keys.borrow().keys().cloned().collect();
    for key in 1..=3 {
        block_on(near.append("s", key, batch(key), &format!("near {key}"))).unwrap();
    }
    let hidden = service.keys.borrow().keys().filter(|key| !before.contains(key)).cloned().collect();
    far.hidden.replace(hidden);
    block_on(other.append("s", 1, batch(9), "far")).unwrap();
    far.hidden.replace(Default::default());
    let agree = || {
        for (remote, store) in [(&near, &near_store), (&other, &far_store)] {
            let own = (store.lineage("s"), store.fork_count("s"), store.needs_packing("s"));
            assert_eq!((remote.lineage("s"), remote.fork_count("s"), remote.needs_packing("s")), own);
        }
    };
    agree();
    assert_eq!(near.fork_count("s"), 0);
    // The store has met the fork; the handle says so with the reply that shows it.
    block_on(near_store.head("s")).unwrap();
    assert_eq!((near_store.fork_count("s"), near.fork_count("s")), (1, 0));
    block_on(near.head("s")).unwrap();
    block_on(other.head("s")).unwrap();
    agree();
    assert_eq!((near.fork_count("s"), other.fork_count("s")), (1, 1));
    assert_eq!(near.lineage("s") + other.lineage("s"), 1, "one of them went over to the other side");
    assert_eq!(block_on(near.branches("s")).unwrap(), block_on(near_store.branches("s")).unwrap());
    // Nothing is kept of a session that nobody holds any more, or that is deleted.
    near.drop_cached_values("s");
    block_on(other.delete_session("s")).unwrap();
    assert_eq!((near.fork_count("s"), other.fork_count("s")), (0, 0));
}

#[test]
fn r46_only_a_store_that_keeps_values_is_told_to_drop_them() {
    let calls = |store: Rc<dyn LogStore>| {
        let facts = store_facts(&*store, "kind").into();
        let calls = Rc::new(Cell::new(0));
        let link = Loopback { store, calls: calls.clone(), is_closed: Cell::new(false) };
        let remote = RemoteStore::new(link, facts).unwrap();
        block_on(remote.append("s", 0, batch(0), "first")).unwrap();
        remote.drop_cached_values("s");
        calls.get()
    };
    assert_eq!(calls(Rc::new(MemoryStore::default())), 1);
    assert_eq!(calls(Rc::new(block_on(WriteOnceStore::open(Rc::new(plain()), "w".into())).unwrap())), 2);
}

#[test]
fn r62_a_selector_that_does_not_answer_is_an_error_and_no_empty_log() {
    let service = MemoryKv::default();
    let store = block_on(KvStore::open(Rc::new(service))).unwrap();
    block_on(store.append("s", 0, batch(0), "first")).unwrap();
    /// A link that passes each call on with the selector that `answers` makes.
    struct Broken<'a>(&'a KvStore, fn() -> Result<Bytes>);
    impl StoreLink for Broken<'_> {
        fn call(&self, call: Vec<u8>, _responder: Option<Responder>) -> StoreFuture<'_, Bytes> {
            let selector: SelectorLink = Box::new({
                let answer = self.1;
                move |_| answer()
            });
            Box::pin(async move { answer(self.0, call.into(), Some(selector)).await.map(Into::into) })
        }

        fn send(&self, _call: Vec<u8>) {}

        fn close(&self) -> StoreFuture<'_, ()> {
            Box::pin(async { Ok(()) })
        }
    }
    let answers: [fn() -> Result<Bytes>; 2] =
        [|| Err(Error::new(ErrorCode::Internal, "stopped")), || Ok(Bytes::from_static(b"no query"))];
    for selector in answers {
        let remote = RemoteStore::new(Broken(&store, selector), store_facts(&store, "kv").into()).unwrap();
        let read = block_on(remote.head_and_records("s", Box::new(|_| Some(Query::all(Table::Log)))));
        assert_eq!(read.unwrap_err().code, ErrorCode::Internal);
    }
}

#[test]
fn r62_replies_and_facts_that_were_cut_off_are_an_error() {
    let store = MemoryStore::default();
    block_on(store.append("s", 0, batch(0), "first")).unwrap();
    /// A link that returns the beginning of each reply.
    struct Cutting(MemoryStore, usize);
    impl StoreLink for Cutting {
        fn call(&self, call: Vec<u8>, _responder: Option<Responder>) -> StoreFuture<'_, Bytes> {
            Box::pin(async move {
                let reply = Bytes::from(answer(&self.0, call.into(), None).await?);
                Ok(reply.slice(..self.1.min(reply.len() - 1)))
            })
        }

        fn send(&self, _call: Vec<u8>) {}

        fn close(&self) -> StoreFuture<'_, ()> {
            Box::pin(async { Ok(()) })
        }
    }
    let facts = Bytes::from(store_facts(&store, "memory"));
    for length in 0..facts.len() {
        let remote = RemoteStore::new(Cutting(store.clone(), 0), facts.slice(..length));
        assert_eq!(remote.err().unwrap().code, ErrorCode::Internal);
    }
    for length in 0..200 {
        let remote = RemoteStore::new(Cutting(store.clone(), length), facts.clone()).unwrap();
        assert_eq!(block_on(remote.head("s")).unwrap_err().code, ErrorCode::Internal);
        assert_eq!(block_on(remote.read("s", Query::all(Table::Log))).unwrap_err().code, ErrorCode::Internal);
        assert_eq!(block_on(remote.sessions(None, 0, None)).unwrap_err().code, ErrorCode::Internal);
    }
}

/// Returns the names of the methods that stand in a block of Rust.
fn methods(source: &str) -> Vec<&str> {
    let names = source.split("    fn ").skip(1).map(|rest| rest.split(['<', '(']).next().unwrap());
    names.collect()
}

#[test]
fn r46_every_method_of_the_contract_crosses() {
    let (_, contract) = include_str!("../../src/store/mod.rs").split_once("pub trait LogStore {").unwrap();
    let (_, remote) = include_str!("../../src/store/remote.rs").split_once("LogStore for RemoteStore<Link> {").unwrap();
    let remote = methods(remote);
    let missing: Vec<_> = methods(contract).into_iter().filter(|name| !remote.contains(name)).collect();
    // No SQL or key-value store has these: the defaults call methods that cross.
    assert_eq!(
        missing,
        ["was_evicted", "has_replaced_key", "read_parts", "heads", "head_changes", "search_index_store"]
    );
}
