//! The index of a search that a store keeps (R79): what the first search after `open` reads.

use super::erasure::ids;
use super::scripted_host::*;
use super::search::{found, opened, say, titled};
use super::virtual_host::{Process, World};
use crate::encrypted_store::{ONE, TWO, over};
use crate::spy_store::Spy;
use bytes::Bytes;
use rethread::error::ErrorCode;
use rethread::session::{clear, delete_messages, rotate_keys, search_sessions};
use rethread::store::{Batch, LogStore, MAX_CHANGED_HEADS, MemoryStore, RecencyQuery, SearchIndex};
use std::cell::RefCell;
use std::rc::Rc;

type Kept = Rc<RefCell<Option<Bytes>>>;

/// As many sessions as an index is kept of, and some more.
const SESSIONS: usize = 520;

/// Sessions s000 to s519, each with a word of its own; s007 has a title.
fn many(world: &Rc<World>, data: &MemoryStore) {
    let process = Process::new(world, data, 1);
    for at in 0..SESSIONS {
        say(world, &opened(world, &process, &format!("s{at:03}")), "user", &format!("t{at:03} and weather"));
    }
    titled(world, &opened(world, &process, "s007"), "T519 by title");
}

/// Searches, and lets the index be written.
fn find(world: &World, process: &Process, text: &str) -> Vec<String> {
    let ids = found(world, process, text);
    world.pass(1);
    ids
}

/// A store that keeps an index here.
fn with_index(data: &MemoryStore, kept: &Kept) -> Rc<Spy> {
    Rc::new(Spy { index: Some(kept.clone()), ..Spy::new(data) })
}

/// A process that has not searched yet, and its store.
fn fresh(world: &Rc<World>, data: &MemoryStore, kept: &Kept, number: u32) -> (Process, Rc<Spy>) {
    let spy = with_index(data, kept);
    (Process::over(world, spy.clone(), number), spy)
}

fn mark_of(kept: &Kept) -> Option<u64> {
    kept.borrow().as_ref().and_then(|record| SearchIndex::of_record(record)?.mark())
}

#[test]
fn r79_the_first_search_after_open_reads_the_index_and_the_heads_that_have_changed() {
    let (world, data, kept) = (World::new(false), MemoryStore::default(), Kept::default());
    many(&world, &data);
    let (first, spy) = fresh(&world, &data, &kept, 2);
    let expected = ["s007", "s519"];
    assert_eq!(find(&world, &first, "t519"), expected);
    assert_eq!(spy.listed_heads.take(), SESSIONS, "the store has no index yet");
    let written = mark_of(&kept).unwrap();
    let (next, spy) = fresh(&world, &data, &kept, 3);
    assert_eq!(find(&world, &next, "t519"), expected, "a title first");
    let newest: Vec<_> = (420..520).rev().map(|at| format!("s{at}")).collect();
    assert_eq!(find(&world, &next, "weather"), newest);
    assert_eq!(spy.listed_heads.take(), 0);
    let other = Process::new(&world, &data, 4);
    say(&world, &opened(&world, &other, "s003"), "user", "Snow");
    titled(&world, &opened(&world, &other, "s004"), "Snow");
    let (next, spy) = fresh(&world, &data, &kept, 5);
    assert_eq!(find(&world, &next, "snow"), ["s004", "s003"]);
    assert_eq!((spy.listed_heads.take(), mark_of(&kept)), (2, Some(written)), "it is not written for two changes");
    // More than a store returns as changed: all heads are read, and the index is written anew.
    for round in 0..=MAX_CHANGED_HEADS {
        say(&world, &opened(&world, &other, &format!("s{round:03}")), "assistant", "Rain");
    }
    let (next, spy) = fresh(&world, &data, &kept, 6);
    assert_eq!(find(&world, &next, "t300 rain"), ["s300"]);
    assert_eq!(spy.listed_heads.take(), SESSIONS);
    assert!(mark_of(&kept) > Some(written));
}

#[test]
fn r79_r62_an_index_that_cannot_be_used_is_made_anew() {
    let (world, data, kept) = (World::new(false), MemoryStore::default(), Kept::default());
    many(&world, &data);
    for record in [&b""[..], b"no index", &[1; 80]] {
        kept.replace(Some(Bytes::copy_from_slice(record)));
        let (process, spy) = fresh(&world, &data, &kept, 2);
        assert_eq!(find(&world, &process, "t011"), ["s011"]);
        assert_eq!(spy.listed_heads.take(), SESSIONS);
        assert!(mark_of(&kept).is_some());
    }
    // Of a store that has lost its changes: their numbers are lower than the mark.
    let other = MemoryStore::default();
    say(&world, &opened(&world, &Process::new(&world, &other, 3), "x"), "user", "t011");
    let (process, _) = fresh(&world, &other, &kept, 4);
    assert_eq!(find(&world, &process, "t011"), ["x"]);
}

#[test]
fn r79_r59_an_index_has_no_text_and_goes_with_what_is_deleted() {
    let (world, data, kept) = (World::new(false), MemoryStore::default(), Kept::default());
    many(&world, &data);
    let (process, _) = fresh(&world, &data, &kept, 2);
    assert_eq!(find(&world, &process, "t011"), ["s011"]);
    let record = kept.borrow().clone().unwrap();
    for text in ["weather", "title", "t011"] {
        let lower = record.to_ascii_lowercase();
        assert!(!lower.windows(text.len()).any(|bytes| bytes == text.as_bytes()), "{text} is in the index");
    }
    // By another process, which knows nothing of the index: the next search writes it again.
    let other = Process::new(&world, &data, 3);
    world.run(other.open.delete_session("s011")).unwrap();
    assert!(find(&world, &process, "t011").is_empty());
    let has = |id: &str| {
        let index = SearchIndex::of_record(kept.borrow().as_ref()?)?;
        Some(index.sessions().any(|session| session.id == id))
    };
    assert_eq!((has("s011"), has("s012")), (Some(false), Some(true)));
    let s012 = opened(&world, &other, "s012");
    world.run(delete_messages(&s012, &ids(&s012))).unwrap();
    assert!(find(&world, &process, "t012").is_empty());
    let index = SearchIndex::of_record(kept.borrow().as_ref().unwrap()).unwrap();
    let erased = index.sessions().find(|session| session.id == "s012").unwrap();
    assert!(erased.terms.as_ref().is_none_or(|terms| terms.byte_length() == 0), "{erased:?}");
    // By one that knows it.
    world.run(process.open.delete_session("s013")).unwrap();
    assert!(kept.borrow().is_none());
    assert!(find(&world, &process, "t013").is_empty());
    assert_eq!(has("s013"), Some(false));
    let s014 = opened(&world, &process, "s014");
    world.run(delete_messages(&s014, &ids(&s014))).unwrap();
    assert!(kept.borrow().is_none());
}

/// The title hashes, and whether there are terms, that the stored index has of a session.
fn indexed(kept: &Kept, id: &str) -> (usize, bool) {
    let index = SearchIndex::of_record(kept.borrow().as_ref().unwrap()).unwrap();
    let session = index.sessions().find(|session| session.id == id).unwrap();
    (session.title_hashes.len(), session.terms.as_ref().is_some_and(|terms| terms.byte_length() > 0))
}

#[test]
fn r79_r59_what_another_process_replaces_leaves_the_index_with_the_next_search() {
    let (world, data, kept) = (World::new(false), MemoryStore::default(), Kept::default());
    many(&world, &data);
    let (process, _) = fresh(&world, &data, &kept, 2);
    let other = Process::new(&world, &data, 3);
    assert_eq!(find(&world, &process, "t007"), ["s007"]);
    let before = indexed(&kept, "s007");
    titled(&world, &opened(&world, &other, "s007"), "Snow");
    assert_eq!(find(&world, &process, "snow"), ["s007"]);
    assert!(indexed(&kept, "s007").0 < before.0, "the title");
    let s008 = opened(&world, &other, "s008");
    world.run(clear(&s008)).unwrap();
    assert!(find(&world, &process, "t008").is_empty());
    assert!(!indexed(&kept, "s008").1, "a history that was cleared");
}

#[test]
fn r79_an_index_is_made_only_of_heads_that_have_not_changed() {
    let (world, data, kept) = (World::new(false), MemoryStore::default(), Kept::default());
    many(&world, &data);
    let (process, spy) = fresh(&world, &data, &kept, 2);
    let change = |operation: &'static str| {
        let data = data.clone();
        move || {
            let head = block_on(data.head("s001")).unwrap().unwrap();
            let batch = Batch { head: head.value, ..Batch::default() };
            block_on(data.append("s001", head.revision, batch, operation)).unwrap();
        }
    };
    // Between the search and the task that stores its index.
    assert_eq!(found(&world, &process, "t001"), ["s001"]);
    change("before")();
    world.pass(1);
    assert_eq!(spy.index_writes.get(), 0, "it is not even tried");
    spy.before_index_write.replace(Some(Box::new(change("meanwhile"))));
    assert_eq!(find(&world, &process, "t001"), ["s001"]);
    assert_eq!((spy.index_writes.take(), kept.borrow().is_some()), (1, false));
    assert_eq!(find(&world, &process, "t001"), ["s001"]);
    assert_eq!((spy.index_writes.take(), kept.borrow().is_some()), (1, true), "the next search stores it");
}

#[test]
fn r79_r07_an_index_that_cannot_be_read_or_written_ends_no_search() {
    let (world, data, kept) = (World::new(false), MemoryStore::default(), Kept::default());
    many(&world, &data);
    let (process, spy) = fresh(&world, &data, &kept, 2);
    spy.index_fails.set(true);
    for _ in 0..3 {
        assert_eq!(find(&world, &process, "t001"), ["s001"]);
    }
    assert_eq!((spy.listed_heads.take(), spy.index_writes.take()), (SESSIONS, 1), "one try for each opening");
    spy.reading_fails.set(true);
    let (process, failing) = fresh(&world, &data, &kept, 3);
    failing.reading_fails.set(true);
    let query = RecencyQuery::default();
    let failed = world.run(search_sessions(&process.open.context, "t001", &query)).unwrap_err();
    assert_eq!(failed.code, ErrorCode::StoreError);
}

#[test]
fn r79_a_head_that_cannot_be_read_keeps_the_index_from_the_store() {
    let (world, data, kept) = (World::new(false), MemoryStore::default(), Kept::default());
    many(&world, &data);
    let revision = block_on(data.head("s020")).unwrap().unwrap().revision;
    let damaged = Batch { head: Bytes::from_static(b"no head"), ..Batch::default() };
    block_on(data.append("s020", revision, damaged, "damage")).unwrap();
    let (process, _) = fresh(&world, &data, &kept, 2);
    assert_eq!(find(&world, &process, "t020"), ["s020"]);
    assert!(kept.borrow().is_none());
}

#[test]
fn r79_r80_the_index_of_an_encrypted_store_is_sealed() {
    let (world, data, kept) = (World::new(false), MemoryStore::default(), Kept::default());
    let sealed = |key, number| {
        let spy = with_index(&data, &kept);
        (Process::over(&world, over(spy.clone(), &[key]), number), spy)
    };
    let (process, _) = sealed(ONE, 1);
    for at in 0..SESSIONS {
        say(&world, &opened(&world, &process, &format!("s{at:03}")), "user", &format!("t{at:03}"));
    }
    assert_eq!(find(&world, &process, "t011"), ["s011"]);
    let record = kept.borrow().clone().unwrap();
    assert!(SearchIndex::of_record(&record).is_none() && !record.windows(4).any(|bytes| bytes == b"s011"));
    let (process, spy) = sealed(ONE, 2);
    assert_eq!(find(&world, &process, "t012"), ["s012"]);
    assert_eq!(spy.listed_heads.take(), 0);
    // Without the key no head is read, and the index stays as it is.
    let query = RecencyQuery::default();
    let (foreign, _) = sealed(TWO, 3);
    let refused = world.run(search_sessions(&foreign.open.context, "t012", &query)).unwrap_err();
    assert_eq!(refused.code, ErrorCode::WrongKey);
    let plain = Process::over(&world, with_index(&data, &kept), 4);
    let refused = world.run(search_sessions(&plain.open.context, "t012", &query)).err();
    assert!(refused.is_some() && kept.borrow().as_ref() == Some(&record));
}

#[test]
fn r79_r80_a_rotation_removes_an_index_of_a_replaced_key() {
    let (world, data, kept) = (World::new(false), MemoryStore::default(), Kept::default());
    let opened_with = |keys: &[_], number| Process::over(&world, over(with_index(&data, &kept), keys), number);
    let process = opened_with(&[ONE], 1);
    for at in 0..SESSIONS {
        say(&world, &opened(&world, &process, &format!("s{at:03}")), "user", &format!("t{at:03}"));
    }
    assert_eq!(find(&world, &process, "t011"), ["s011"]);
    let old = kept.borrow().clone().unwrap();
    let process = opened_with(&[TWO, ONE], 2);
    world.run(rotate_keys(&process.open.context)).unwrap();
    assert!(kept.borrow().is_none());
    assert_eq!(find(&world, &process, "t011"), ["s011"]);
    // One that was left behind is not read, and replaced.
    kept.replace(Some(old.clone()));
    assert_eq!(find(&world, &opened_with(&[TWO, ONE], 3), "t011"), ["s011"]);
    assert_ne!(kept.borrow().as_ref(), Some(&old));
    assert_eq!(find(&world, &opened_with(&[TWO], 4), "t012"), ["s012"]);
}
