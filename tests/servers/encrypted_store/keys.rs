//! Which key a session is written with, and what becomes of values that no key of the application opens (R80).

use super::*;
use crate::spy_store::{Fault, Spy};
use rethread::store::{AuditQuery, Capabilities, Page, SessionRow, StoredHead, read_head};
use std::collections::BTreeSet;

/// The key of the first record of a session's directory of branches.
const DIRECTORY: u64 = ((1 << 21) - 1) << 32;

fn head_of(store: &dyn LogStore, session: &str) -> StoredHead {
    block_on(store.head(session)).unwrap().unwrap()
}

/// The key in its wrapped form that a stored value begins with.
fn wrapped(value: &Bytes) -> Bytes {
    value.slice(4..4 + usize::from(u16::from_be_bytes([value[2], value[3]])))
}

/// The different keys of a session's values, in their wrapped forms.
fn keys_of(inner: &dyn LogStore, session: &str) -> BTreeSet<Bytes> {
    let mut values = vec![head_of(inner, session).value];
    for table in [Table::Log, Table::ToolInvocations, Table::Runs] {
        let records = block_on(inner.read(session, Query::all(table))).unwrap();
        values.extend(records.into_iter().map(|record| record.value));
    }
    values.iter().map(wrapped).collect()
}

fn changed(value: &Bytes, at: usize) -> Bytes {
    let mut bytes = value.to_vec();
    bytes[at] ^= 1;
    bytes.into()
}

/// Replaces the head, as damage or another build may.
fn set_head(inner: &dyn LogStore, session: &str, head: Bytes) {
    let revision = head_of(inner, session).revision;
    let batch = Batch { head, ..Batch::default() };
    block_on(inner.append(session, revision, batch, &format!("o{}", number()))).unwrap();
}

fn replace(inner: &dyn LogStore, session: &str, key: u64, value: Bytes) {
    let StoredHead { revision, value: head } = head_of(inner, session);
    let batch = Batch { head, replace: vec![Record { value, ..record(Table::Log, key) }], ..Batch::default() };
    block_on(inner.append(session, revision, batch, &format!("o{}", number()))).unwrap();
}

#[test]
fn r80_a_session_whose_first_reply_was_lost_has_one_key() {
    // The append is repeated by the process that lost the reply, or by another one.
    for is_another in [false, true] {
        let spy = Rc::new(Spy::default());
        spy.faults.borrow_mut().push(Some(Fault::LosesReply));
        let inner: Rc<dyn LogStore> = spy;
        let mut store = encrypted(&inner, &[ONE]);
        assert_eq!(block_on(store.head("s")).unwrap(), None);
        block_on(store.append("s", 0, batch(1), "first")).unwrap_err();
        if is_another {
            store = encrypted(&inner, &[ONE]);
        }
        assert_eq!(block_on(store.append("s", 0, batch(1), "first")).unwrap(), Appended::Revision(1));
        appended(&store, "s", 1);
        assert_eq!(keys_of(&*inner, "s").len(), 1);
    }
}

#[test]
fn r80_a_session_that_two_writers_begin_at_once_goes_on_with_the_key_of_its_head() {
    let service = MemoryKv { is_plain: true, ..MemoryKv::default() };
    let late = MemoryKv { hidden: Rc::default(), ..service.clone() };
    let open = |service: &MemoryKv, writer: &str| -> Rc<dyn LogStore> {
        Rc::new(block_on(WriteOnceStore::open(Rc::new(service.clone()), writer.into())).unwrap())
    };
    for (one, other) in [("a", "b"), ("d", "c")] {
        let inner = [open(&service, one), open(&late, other)];
        let [first, second] = [0, 1].map(|at: usize| encrypted(&inner[at], &[ONE]));
        appended(&first, one, 0);
        late.hidden.borrow_mut().extend(service.keys.borrow().keys().cloned());
        appended(&second, one, 0);
        late.hidden.borrow_mut().clear();
        // The handle has read the head itself, and the store has met the other side meanwhile.
        let mut revision = 1;
        while let Appended::Conflict(actual) =
            block_on(second.append(one, revision, batch(7), &format!("o{}", number()))).unwrap()
        {
            revision = actual;
        }
        let fresh = open(&service, "reader");
        assert_eq!(keys_of(&*fresh, one).len(), 1, "the history is of {one} or of {other}");
    }
}

#[test]
fn r80_a_head_that_counts_as_unencrypted_by_damage_costs_no_second_key() {
    let inner: Rc<dyn LogStore> = Rc::new(MemoryStore::default());
    appended(&encrypted(&inner, &[ONE]), "s", 0);
    for at in [0, 2] {
        let StoredHead { revision, value } = head_of(&*inner, "s");
        set_head(&*inner, "s", changed(&value, at));
        let other = block_on(encrypted(&inner, &[TWO]).append("s", revision + 1, batch(9), "x"));
        assert_eq!(other.unwrap_err().code, ErrorCode::WrongKey);
        appended(&encrypted(&inner, &[ONE]), "s", revision + 1);
        assert_eq!(keys_of(&*inner, "s").len(), 1);
    }
}

#[test]
fn r80_a_process_with_the_old_key_alone_does_not_undo_a_rotation() {
    let inner: Rc<dyn LogStore> = Rc::new(MemoryStore::default());
    let old = encrypted(&inner, &[ONE]);
    appended(&old, "s", 0);
    block_on(old.head("s")).unwrap();
    // The title was changed, say: no record has the key as the new one has wrapped it.
    let update = Batch { head: "renamed".into(), ..Batch::default() };
    block_on(encrypted(&inner, &[TWO, ONE]).append("s", 1, update, "rename")).unwrap();
    let rotated = head_of(&*inner, "s");
    // It reads on with the key that it has, and writes nothing.
    assert_eq!(head_of(&old, "s").value, "renamed");
    assert_eq!(log(&old, "s"), [record(Table::Log, 1)]);
    for store in [&old, &encrypted(&inner, &[ONE])] {
        let failed = block_on(store.append("s", 2, batch(2), "late")).unwrap_err();
        assert_eq!(failed.code, ErrorCode::WrongKey);
    }
    assert_eq!(head_of(&*inner, "s"), rotated);
    // One that has never read the session cannot: that its key has written records is no proof of damage.
    let stranger = encrypted(&inner, &[ONE]);
    for _ in 0..3 {
        assert_eq!(block_on(stranger.head("s")).unwrap_err().code, ErrorCode::WrongKey);
        // What it finds out when it reads records changes nothing.
        block_on(stranger.read("s", Query::all(Table::Log))).unwrap();
    }
    // The old key is no longer needed.
    let new = encrypted(&inner, &[TWO]);
    assert_eq!((head_of(&new, "s").value, log(&new, "s").len()), ("renamed".into(), 1));
    assert_eq!(log(&new, "s"), [record(Table::Log, 1)]);
}

#[test]
fn r80_a_later_form_of_encryption_is_another_version_and_nothing_is_written_over_it() {
    let inner: Rc<dyn LogStore> = Rc::new(MemoryStore::default());
    chat(&encrypted(&inner, &[ONE]), 2, 10);
    let StoredHead { value, .. } = head_of(&*inner, "s");
    let mut later = value.to_vec();
    later[1] = 2;
    set_head(&*inner, "s", later.into());
    let before = head_of(&*inner, "s");
    let store = encrypted(&inner, &[ONE]);
    let code = |failed: Result<()>| failed.unwrap_err().code;
    assert_eq!(code(block_on(open_session(&store, "s", Seed(1), 1)).map(drop)), ErrorCode::UnsupportedVersion);
    assert_eq!(code(block_on(store.sessions(None, 0, None)).map(drop)), ErrorCode::UnsupportedVersion);
    let append = store.append("s", before.revision, batch(9), "x");
    assert_eq!(code(block_on(append).map(drop)), ErrorCode::UnsupportedVersion);
    assert_eq!(head_of(&*inner, "s"), before);
    // A record of a later form.
    set_head(&*inner, "s", value);
    let mut record = log(&*inner, "s")[1].value.to_vec();
    record[1] = 2;
    replace(&*inner, "s", 1, record.into());
    assert_eq!(code(block_on(store.read("s", Query::all(Table::Log))).map(drop)), ErrorCode::UnsupportedVersion);
}

#[test]
fn r80_a_list_has_the_other_sessions_and_reports_the_one_whose_head_is_damaged() {
    let inner: Rc<dyn LogStore> = Rc::new(MemoryStore::default());
    let writer = encrypted(&inner, &[ONE]);
    // It has a head alone, and the list begins with it.
    let only_head = Batch { head: "title".into(), ..Batch::default() };
    block_on(writer.append("a", 0, only_head, "a")).unwrap();
    chat(&writer, 1, 10);
    let head = head_of(&*inner, "a").value;
    for damaged in [changed(&head, 10), head.slice(..3), changed(&head, 2), changed(&head, head.len() - 1)] {
        set_head(&*inner, "a", damaged);
        for limit in [0, 1] {
            let store = encrypted(&inner, &[ONE]);
            let rows = block_on(store.sessions(None, limit, None)).unwrap().items;
            assert_eq!((rows[0].id.as_str(), rows[0].head.value.len()), ("a", 0));
            let (head, findings) = block_on(read_head(&store, "a", &rows[0].head, Seed(1))).unwrap();
            assert_eq!((head.id.as_str(), head.next_seq, findings.len()), ("a", 0, 1), "{findings:?}");
            assert!(findings[0].message.contains("\"a\""), "{findings:?}");
            if let Some(row) = rows.get(1) {
                let (head, findings) = block_on(read_head(&store, "s", &row.head, Seed(1))).unwrap();
                assert_eq!((head.next_seq, findings.len()), (1, 0));
            }
        }
        let other = encrypted(&inner, &[TWO]);
        assert_eq!(block_on(other.sessions(None, 0, None)).unwrap_err().code, ErrorCode::WrongKey);
    }
}

#[test]
fn r80_the_key_of_a_damaged_head_is_found_below_the_directory_and_before_a_damaged_record() {
    let inner: Rc<dyn LogStore> = Rc::new(MemoryStore::default());
    let store = encrypted(&inner, &[ONE]);
    let put = [1, 2, 3, DIRECTORY].map(|key| record(Table::Log, key)).into();
    block_on(store.append("s", 0, Batch { head: "head".into(), put, ..Batch::default() }, "a")).unwrap();
    for key in [3, DIRECTORY] {
        let found = log(&*inner, "s").into_iter().find(|record| record.key == key).unwrap();
        replace(&*inner, "s", key, changed(&found.value, 10));
    }
    let damaged = changed(&head_of(&*inner, "s").value, 11);
    set_head(&*inner, "s", damaged);
    assert_eq!(head_of(&encrypted(&inner, &[ONE]), "s").value, "head");
    let StoredHead { revision, .. } = head_of(&*inner, "s");
    // The next write repairs the head.
    let fresh = encrypted(&inner, &[ONE]);
    block_on(fresh.append("s", revision, Batch { head: "next".into(), ..Batch::default() }, "b")).unwrap();
    assert_eq!(wrapped(&head_of(&*inner, "s").value), wrapped(&log(&*inner, "s")[0].value));
}

/// Counts how often it was asked to decrypt.
struct CountingCipher(TestCipher, Rc<Cell<u64>>);

impl Cipher for CountingCipher {
    type Key = Key;
    const SEALED_BYTES: usize = TestCipher::SEALED_BYTES;

    fn generate(&self, place: Bytes) -> StoreFuture<'_, (Key, Bytes)> {
        self.0.generate(place)
    }

    fn unwrap_key(&self, wrapped: Bytes, place: Bytes) -> StoreFuture<'_, Option<UnwrappedKey<Key>>> {
        self.1.set(self.1.get() + 1);
        self.0.unwrap_key(wrapped, place)
    }

    fn seal(&self, values: Vec<PlacedValue<Key>>) -> StoreFuture<'_, Vec<Bytes>> {
        self.0.seal(values)
    }

    fn open(&self, values: Vec<PlacedValue<Key>>) -> StoreFuture<'_, Vec<Option<Bytes>>> {
        assert!(values.len() <= 64, "as many are decrypted at once as there are");
        self.1.set(self.1.get() + 1);
        self.0.open(values)
    }
}

#[test]
fn r80_records_that_a_forgotten_key_wrapped_are_decrypted_together_and_in_order() {
    let inner: Rc<dyn LogStore> = Rc::new(MemoryStore::default());
    let writer = encrypted(&inner, &[ONE]);
    (0..150).for_each(|expected| appended(&writer, "s", expected));
    appended(&encrypted(&inner, &[TWO, ONE]), "s", 150);
    let calls = Rc::new(Cell::new(0));
    let store = EncryptedStore::new(inner, CountingCipher(TestCipher(vec![TWO]), calls.clone()));
    let expected: Vec<_> = (1..=151).map(|key| record(Table::Log, key)).collect();
    assert_eq!(log(&store, "s"), expected);
    assert!(calls.get() < 10, "{} calls", calls.get());
}

/// A store whose history is another side of a fork each time that something was decrypted.
struct ForkingStore(MemoryStore, Rc<Cell<u64>>);

impl LogStore for ForkingStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities { compare_and_append: false, ..self.0.capabilities() }
    }

    fn lineage(&self, _: &str) -> u64 {
        self.1.get()
    }

    fn head<'a>(&'a self, session: &'a str) -> StoreFuture<'a, Option<StoredHead>> {
        self.0.head(session)
    }

    fn append<'a>(
        &'a self,
        session: &'a str,
        expected: u64,
        batch: Batch,
        operation: &'a str,
    ) -> StoreFuture<'a, Appended> {
        self.0.append(session, expected, batch, operation)
    }

    fn read<'a>(&'a self, session: &'a str, query: Query) -> StoreFuture<'a, Vec<Record>> {
        self.0.read(session, query)
    }

    fn sessions<'a>(
        &'a self,
        cursor: Option<&'a str>,
        limit: usize,
        channel: Option<&'a str>,
    ) -> StoreFuture<'a, Page<SessionRow>> {
        self.0.sessions(cursor, limit, channel)
    }

    fn invocations<'a>(&'a self, query: &'a AuditQuery) -> StoreFuture<'a, Page<(String, Record)>> {
        self.0.invocations(query)
    }

    fn delete_session<'a>(&'a self, session: &'a str) -> StoreFuture<'a, ()> {
        self.0.delete_session(session)
    }
}

#[test]
fn r80_the_lineage_is_that_of_the_head_that_was_read() {
    let calls = Rc::new(Cell::new(0));
    let inner: Rc<dyn LogStore> = Rc::new(ForkingStore(MemoryStore::default(), calls.clone()));
    appended(&encrypted(&inner, &[ONE]), "s", 0);
    let store = EncryptedStore::new(inner, CountingCipher(TestCipher(vec![ONE]), calls.clone()));
    for _ in 0..3 {
        let before = calls.get();
        head_of(&store, "s");
        assert!(calls.get() > before);
        assert_eq!(store.lineage("s"), before);
        let before = calls.get();
        let select = Box::new(|_: &StoredHead| Some(Query::all(Table::Log)));
        block_on(store.head_and_records("s", select)).unwrap().unwrap();
        assert_eq!(store.lineage("s"), before);
    }
}

#[test]
fn r80_of_more_sessions_than_are_kept_the_key_that_was_used_longest_ago_is_unwrapped_again() {
    let inner: Rc<dyn LogStore> = Rc::new(MemoryStore::default());
    let writer = encrypted(&inner, &[ONE]);
    let sessions: Vec<_> = (0..257).map(|at| format!("s{at}")).collect();
    sessions.iter().for_each(|session| appended(&writer, session, 0));
    let calls = Rc::new(Cell::new(0));
    let store = EncryptedStore::new(inner, CountingCipher(TestCipher(vec![ONE]), calls.clone()));
    let cost = |session: &str| {
        let before = calls.get();
        head_of(&store, session);
        calls.get() - before
    };
    assert!(sessions.iter().all(|session| cost(session) == 2), "one to unwrap the key, and one to decrypt");
    assert_eq!((cost("s1"), cost("s256"), cost("s0")), (1, 1, 2));
    // Session 1 was used since session 2.
    assert_eq!((cost("s1"), cost("s2")), (1, 2));
}
