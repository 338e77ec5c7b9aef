//! Encryption at rest, over real SQLite and other stores, with a cipher of its own (R80).

#[path = "encrypted_store/keys.rs"]
mod keys;

use crate::kv_store::chat;
use crate::kv_store::service::MemoryKv;
use crate::sql_store::sqlite::{SqliteDriver, TestFolder, block_on};
use aes_gcm::aead::{Aead, KeyInit, Payload};
use aes_gcm::{Aes256Gcm, Nonce};
use bytes::Bytes;
use rethread::error::{ErrorCode, Result};
use rethread::id::Seed;
use rethread::session_head::SessionHead;
use rethread::store::conformance::check_all;
use rethread::store::kv::{KvLimits, KvStore, WriteOnceStore};
use rethread::store::sql::SqlStore;
use rethread::store::{
    Appended, AuditIndex, AuditQuery, Batch, Cipher, EncryptedStore, LogStore, MemoryStore, PlacedValue, Query,
    RecencyQuery, Record, RecordKind, StoreFuture, Table, UnwrappedKey, open_record, open_session, recent_sessions,
    seal_record,
};
use std::cell::Cell;
use std::path::Path;
use std::rc::Rc;

pub type Key = [u8; 32];

/// Keys of the application, the current one first.
#[derive(Clone)]
struct TestCipher(Vec<Key>);

/// Numbers that are never used again.
fn number() -> u64 {
    thread_local! {
        static NUMBERS: Cell<u64> = const { Cell::new(0) };
    }
    NUMBERS.with(|numbers| {
        numbers.set(numbers.get() + 1);
        numbers.get()
    })
}

fn encrypt(key: &Key, place: &[u8], plain: &[u8]) -> Bytes {
    let mut sealed = vec![0; 4];
    sealed.extend(number().to_be_bytes());
    let nonce = *Nonce::from_slice(&sealed);
    sealed.extend(Aes256Gcm::new(key.into()).encrypt(&nonce, Payload { msg: plain, aad: place }).unwrap());
    sealed.into()
}

fn decrypt(key: &Key, place: &[u8], sealed: &[u8]) -> Option<Bytes> {
    let (nonce, rest) = sealed.split_at_checked(12)?;
    let payload = Payload { msg: rest, aad: place };
    Aes256Gcm::new(key.into()).decrypt(Nonce::from_slice(nonce), payload).ok().map(Bytes::from)
}

fn ready<'a, T: 'a>(value: T) -> StoreFuture<'a, T> {
    Box::pin(async move { Ok(value) })
}

impl Cipher for TestCipher {
    type Key = Key;
    const SEALED_BYTES: usize = 28;

    fn generate(&self, place: Bytes) -> StoreFuture<'_, (Key, Bytes)> {
        let mut key = [7; 32];
        key[..8].copy_from_slice(&number().to_be_bytes());
        ready((key, encrypt(&self.0[0], &place, &key)))
    }

    fn unwrap_key(&self, wrapped: Bytes, place: Bytes) -> StoreFuture<'_, Option<UnwrappedKey<Key>>> {
        let opened = self.0.iter().enumerate().find_map(|(at, key)| Some((at, decrypt(key, &place, &wrapped)?)));
        ready(opened.map(|(at, key)| UnwrappedKey {
            key: key.as_ref().try_into().unwrap(),
            rewrapped: (at > 0).then(|| encrypt(&self.0[0], &place, &key)),
        }))
    }

    fn seal(&self, values: Vec<PlacedValue<Key>>) -> StoreFuture<'_, Vec<Bytes>> {
        ready(values.iter().map(|value| encrypt(&value.key, &value.place, &value.value)).collect())
    }

    fn open(&self, values: Vec<PlacedValue<Key>>) -> StoreFuture<'_, Vec<Option<Bytes>>> {
        ready(values.iter().map(|value| decrypt(&value.key, &value.place, &value.value)).collect())
    }
}

pub const ONE: Key = [1; 32];
pub const TWO: Key = [2; 32];

fn encrypted(store: &Rc<dyn LogStore>, keys: &[Key]) -> EncryptedStore<TestCipher> {
    EncryptedStore::new(store.clone(), TestCipher(keys.to_vec()))
}

/// An encrypted store over memory.
pub fn over_memory(data: &MemoryStore) -> Rc<dyn LogStore> {
    over(Rc::new(data.clone()), &[ONE])
}

/// An encrypted store over another one, with keys of the application, the current one first.
pub fn over(store: Rc<dyn LogStore>, keys: &[Key]) -> Rc<dyn LogStore> {
    Rc::new(encrypted(&store, keys))
}

fn conforms(name: &str, open: impl Fn() -> Result<Rc<dyn LogStore>>) {
    block_on(check_all(name, &|| {
        let store = open().map(|store| Rc::new(encrypted(&store, &[ONE])) as Rc<dyn LogStore>);
        Box::pin(async move { store })
    }))
    .unwrap();
}

#[test]
fn r46_r80_an_encrypted_memory_store_conforms() {
    conforms("encrypted", || Ok(Rc::new(MemoryStore::default())));
}

fn open_sqlite(file: &Path) -> Result<Rc<dyn LogStore>> {
    let driver = SqliteDriver::open(file);
    driver.execute("PRAGMA synchronous = OFF");
    Ok(Rc::new(block_on(SqlStore::open(driver))?))
}

#[test]
fn r46_r80_encrypted_sqlite_conforms_with_two_connections_on_one_file() {
    let folder = TestFolder::new();
    let file = folder.file("chat.sqlite");
    SqliteDriver::open(&file).execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF");
    conforms("encrypted", || open_sqlite(&file));
}

#[test]
fn r46_r80_an_encrypted_key_value_store_conforms() {
    let service = MemoryKv::default();
    conforms("encrypted", || Ok(Rc::new(block_on(KvStore::open(Rc::new(service.clone())))?)));
}

#[test]
fn r46_r80_an_encrypted_service_without_commits_conforms() {
    // One check writes almost as much at once as the usual limit allows, and it counts what is encrypted.
    let limits = KvLimits { max_value_bytes: 2 * 1024 * 1024, ..KvLimits::default() };
    let service = MemoryKv { is_plain: true, limits, ..MemoryKv::default() };
    conforms("encrypted", || {
        let driver = Rc::new(service.clone());
        Ok(Rc::new(block_on(WriteOnceStore::open(driver, format!("w{}", number())))?))
    });
}

const MARK: &str = "Lisbon, in confidence";

fn record(table: Table, key: u64) -> Record {
    let index = AuditIndex { tool: "look".into(), status: "done".into(), channel: None, at: 5 };
    let index = (table == Table::ToolInvocations).then_some(index);
    Record { table, key, last_key: None, index, value: format!("{MARK} {key}").into() }
}

fn batch(key: u64) -> Batch {
    let put = [Table::Log, Table::ToolInvocations, Table::Runs].map(|table| record(table, key)).into();
    Batch { head: format!("{MARK} head {key}").into(), put, ..Batch::default() }
}

fn appended(store: &dyn LogStore, session: &str, expected: u64) {
    let batch = batch(expected + 1);
    let appended = block_on(store.append(session, expected, batch, &format!("o{}", number()))).unwrap();
    assert_eq!(appended, Appended::Revision(expected + 1));
}

fn log(store: &dyn LogStore, session: &str) -> Vec<Record> {
    block_on(store.read(session, Query::all(Table::Log))).unwrap()
}

#[test]
fn r80_no_byte_of_a_database_has_a_text_of_a_chat() {
    let folder = TestFolder::new();
    let file = folder.file("chat.sqlite");
    let store = encrypted(&open_sqlite(&file).unwrap(), &[ONE]);
    appended(&store, "visible-id", 0);
    appended(&store, "visible-id", 1);
    assert_eq!(log(&store, "visible-id"), [record(Table::Log, 1), record(Table::Log, 2)]);
    let rows = block_on(store.invocations(&AuditQuery { tool: Some("look".into()), ..AuditQuery::default() })).unwrap();
    assert_eq!(rows.items[1], ("visible-id".into(), record(Table::ToolInvocations, 2)));
    let bytes: Vec<u8> = std::fs::read_dir(file.parent().unwrap())
        .unwrap()
        .flat_map(|entry| std::fs::read(entry.unwrap().path()).unwrap())
        .collect();
    let finds = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(finds("visible-id") && finds("look"), "the search finds what stays readable");
    assert!(!finds(MARK));
}

#[test]
fn r80_a_wrong_key_is_an_error_and_changes_nothing() {
    let inner: Rc<dyn LogStore> = Rc::new(MemoryStore::default());
    appended(&encrypted(&inner, &[ONE]), "s", 0);
    let before = (block_on(inner.head("s")).unwrap(), log(&*inner, "s"));
    let other = encrypted(&inner, &[TWO]);
    let code = |failed: Result<()>| failed.unwrap_err().code;
    assert_eq!(code(block_on(other.head("s")).map(drop)), ErrorCode::WrongKey);
    assert_eq!(code(block_on(other.read("s", Query::all(Table::Log))).map(drop)), ErrorCode::WrongKey);
    assert_eq!(code(block_on(other.append("s", 1, batch(2), "x")).map(drop)), ErrorCode::WrongKey);
    assert_eq!(code(block_on(other.sessions(None, 0, None)).map(drop)), ErrorCode::WrongKey);
    assert_eq!(code(block_on(other.invocations(&AuditQuery::default())).map(drop)), ErrorCode::WrongKey);
    // With a wrong key or none, a session is no empty chat.
    for store in [&other as &dyn LogStore, &*inner] {
        let opened = block_on(open_session(store, "s", Seed(1), 1)).map(drop);
        assert_eq!(code(opened), ErrorCode::WrongKey);
    }
    assert_eq!((block_on(inner.head("s")).unwrap(), log(&*inner, "s")), before);
    appended(&encrypted(&inner, &[ONE]), "s", 1);
}

#[test]
fn r80_a_replaced_key_opens_what_it_wrapped_and_the_next_write_wraps_anew() {
    let inner: Rc<dyn LogStore> = Rc::new(MemoryStore::default());
    appended(&encrypted(&inner, &[ONE]), "s", 0);
    appended(&encrypted(&inner, &[TWO, ONE]), "s", 1);
    // The old key is gone, and all that was written with it is readable.
    for _ in 0..2 {
        let store = encrypted(&inner, &[TWO]);
        assert_eq!(log(&store, "s"), [record(Table::Log, 1), record(Table::Log, 2)]);
        assert!(block_on(store.head("s")).unwrap().unwrap().value.starts_with(MARK.as_bytes()));
    }
    appended(&encrypted(&inner, &[TWO]), "s", 2);
    assert_eq!(block_on(encrypted(&inner, &[ONE]).head("s")).unwrap_err().code, ErrorCode::WrongKey);
}

#[test]
fn r80_a_value_that_was_moved_or_changed_is_damaged_and_costs_itself_alone() {
    let inner: Rc<dyn LogStore> = Rc::new(MemoryStore::default());
    let store = encrypted(&inner, &[ONE]);
    for session in ["s", "t"] {
        (0..4).for_each(|expected| appended(&store, session, expected));
    }
    let head = block_on(inner.head("s")).unwrap().unwrap().value;
    let (own, foreign) = (log(&*inner, "s"), log(&*inner, "t"));
    let runs = block_on(inner.read("s", Query::all(Table::Runs))).unwrap();
    let mut changed = own[3].clone();
    let mut bytes = changed.value.to_vec();
    *bytes.last_mut().unwrap() ^= 1;
    changed.value = bytes.into();
    // Of another session, of another key, of another table.
    let moved = [(1, &foreign[0]), (2, &own[2]), (3, &runs[2])];
    let mut replace: Vec<_> =
        moved.iter().map(|(key, from)| Record { value: from.value.clone(), ..record(Table::Log, *key) }).collect();
    replace[1].value = own[0].value.clone();
    replace.push(changed);
    block_on(inner.append("s", 4, Batch { head, replace, ..Batch::default() }, "moved")).unwrap();
    let store = encrypted(&inner, &[ONE]);
    assert!(log(&store, "s").iter().all(|record| record.value.is_empty()), "{:?}", log(&store, "s"));
    assert_eq!(log(&store, "t").len(), 4);
    assert!(block_on(store.read("s", Query::all(Table::Runs))).unwrap().iter().all(|row| !row.value.is_empty()));
}

#[test]
fn r07_r80_a_damaged_head_is_rebuilt_from_the_records_which_have_the_key() {
    let inner: Rc<dyn LogStore> = Rc::new(MemoryStore::default());
    chat(&encrypted(&inner, &[ONE]), 2, 10);
    let StoredBytes(revision, head) = StoredBytes::of(&inner);
    // The sealed value, and then the wrapped key, which the records have as well.
    for (at, is_lost) in [(head.len() - 1, true), (10, false)] {
        let mut damaged = head.to_vec();
        damaged[at] ^= 1;
        let now = StoredBytes::of(&inner).0;
        let batch = Batch { head: damaged.into(), ..Batch::default() };
        block_on(inner.append("s", now, batch, &format!("o{}", number()))).unwrap();
        let store = encrypted(&inner, &[ONE]);
        assert_eq!(block_on(store.head("s")).unwrap().unwrap().value.is_empty(), is_lost);
        let opened = block_on(open_session(&store, "s", Seed(1), 1)).unwrap();
        assert_eq!((opened.history.messages().len(), opened.findings.is_empty()), (2, !is_lost));
        let other = encrypted(&inner, &[TWO]);
        assert_eq!(block_on(other.head("s")).unwrap_err().code, ErrorCode::WrongKey);
    }
    assert!(StoredBytes::of(&inner).0 > revision);
}

struct StoredBytes(u64, Bytes);

impl StoredBytes {
    fn of(store: &Rc<dyn LogStore>) -> Self {
        let head = block_on(store.head("s")).unwrap().unwrap();
        Self(head.revision, head.value)
    }
}

#[test]
fn r80_a_session_that_began_without_a_key_is_encrypted_by_its_next_writes() {
    let inner: Rc<dyn LogStore> = Rc::new(MemoryStore::default());
    appended(&*inner, "s", 0);
    let store = encrypted(&inner, &[ONE]);
    assert_eq!(log(&store, "s"), [record(Table::Log, 1)]);
    appended(&store, "s", 1);
    let store = encrypted(&inner, &[ONE]);
    assert_eq!(log(&store, "s"), [record(Table::Log, 1), record(Table::Log, 2)]);
    assert_eq!(block_on(store.head("s")).unwrap().unwrap().value, format!("{MARK} head 2"));
    let raw = log(&*inner, "s");
    assert!(raw[0].value.starts_with(MARK.as_bytes()) && !raw[1].value.starts_with(MARK.as_bytes()));
}

#[test]
fn r80_a_deleted_session_begins_with_another_key() {
    let inner: Rc<dyn LogStore> = Rc::new(MemoryStore::default());
    let (one, other) = (encrypted(&inner, &[ONE]), encrypted(&inner, &[ONE]));
    appended(&one, "s", 0);
    block_on(other.head("s")).unwrap();
    block_on(one.delete_session("s")).unwrap();
    let Appended::Conflict(tombstone) = block_on(other.append("s", 1, batch(2), "late")).unwrap() else { panic!() };
    appended(&one, "s", tombstone);
    assert_eq!(log(&other, "s").len(), 1);
    assert!(!log(&other, "s")[0].value.is_empty());
}

#[test]
fn r79_an_encrypted_list_has_the_order_of_times_that_stay_readable() {
    let service = MemoryKv::default();
    let kv: Rc<dyn LogStore> = Rc::new(block_on(KvStore::open(Rc::new(service))).unwrap());
    let memory: Rc<dyn LogStore> = Rc::new(MemoryStore::default());
    for (inner, has_index) in [(memory, true), (kv, false)] {
        let store = encrypted(&inner, &[ONE]);
        for (id, updated_at, is_archived) in [("a", 30, false), ("b", 40, true), ("c", 10, false), ("d", 20, false)] {
            let head = SessionHead { updated_at, is_archived, title: Some(MARK.into()), ..SessionHead::new(id, 1) };
            let mut batch = Batch { head: seal_record(RecordKind::Head, &head), ..Batch::default() };
            batch.describe(&head);
            block_on(store.append(id, 0, batch, id)).unwrap();
        }
        let open = RecencyQuery { archived: Some(false), limit: 2, ..RecencyQuery::default() };
        let ids = |store: &dyn LogStore, query: &RecencyQuery| -> Result<(Vec<String>, Option<String>)> {
            let page = block_on(recent_sessions(store, query))?;
            Ok((page.items.into_iter().map(|row| row.id).collect(), page.cursor))
        };
        let (first, cursor) = ids(&store, &open).unwrap();
        assert_eq!(first, ["a", "d"]);
        assert_eq!(ids(&store, &RecencyQuery { cursor, ..open.clone() }).unwrap(), (vec!["c".into()], None));
        let archived = RecencyQuery { archived: Some(true), ..open.clone() };
        let page = block_on(recent_sessions(&store, &archived)).unwrap();
        let head: SessionHead = open_record(RecordKind::Head, &page.items[0].head.value).unwrap();
        assert_eq!((head.id.as_str(), head.title.as_deref()), ("b", Some(MARK)));
        // Without the key an index tells the order, and no list is an empty one.
        assert_eq!(ids(&encrypted(&inner, &[TWO]), &open).unwrap_err().code, ErrorCode::WrongKey);
        let sealed = ids(&*inner, &open).unwrap().0;
        assert_eq!(sealed, if has_index { ["a", "d"] } else { ["a", "b"] });
    }
}
