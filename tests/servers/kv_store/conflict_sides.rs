//! The other side of a conflict, where sides have branches.

use super::service::{MemoryKv, block_on};
use super::{connection, plain, write_once};
use rethread::history::{Annotation, HistoryEntry};
use rethread::id::Seed;
use rethread::json::Json;
use rethread::message::{Message, Role};
use rethread::store::kv::WriteOnceStore;
use rethread::store::{
    Change, LogStore, SessionLog, commit, open_conflict_side, open_fork, open_session, read_branch, refresh,
};
use std::cell::RefCell;

fn open(store: &WriteOnceStore) -> RefCell<SessionLog> {
    RefCell::new(block_on(open_session(store, "s", Seed(7), 1)).unwrap())
}

fn append(store: &WriteOnceStore, log: &RefCell<SessionLog>, id: &str) {
    let message = Message { id: id.to_owned(), ..Message::from_text(Role::User, id) };
    let change =
        Change { operation: id.to_owned(), entries: vec![HistoryEntry::Message(message)], ..Change::default() };
    block_on(commit(store, log, &change)).unwrap();
}

/// Returns the log of a branch that is born with the next append.
fn forked(store: &WriteOnceStore, log: &RefCell<SessionLog>, until_seq: u64) -> RefCell<SessionLog> {
    RefCell::new(block_on(open_fork(store, log, until_seq)).unwrap())
}

/// Two writers, of which the second one does not see what the first one writes from now on.
fn part(service: &MemoryKv, far: &MemoryKv, write: impl FnOnce()) {
    let before: Vec<String> = service.keys.borrow().keys().cloned().collect();
    write();
    let hidden = service.keys.borrow().keys().filter(|key| !before.contains(key)).cloned().collect();
    far.hidden.replace(hidden);
}

/// Reads the only other side of the session.
fn other_side(service: &MemoryKv) -> SessionLog {
    let reader = write_once(&connection(service), "reader");
    let shown = open(&reader);
    assert!(shown.borrow().findings.is_empty());
    let [side] = &block_on(reader.branches("s")).unwrap()[..] else { panic!("not one side") };
    let log = block_on(open_conflict_side(&reader, "s", side, (Seed(7), 1))).unwrap();
    assert!(log.findings.is_empty(), "{:?}", log.findings);
    log
}

fn ids(log: &SessionLog) -> Vec<&str> {
    log.history.messages().iter().map(|message| message.id.as_str()).collect()
}

#[test]
fn r38_r47_branches_of_both_sides_of_a_conflict_stay_apart() {
    let service = plain();
    let far = connection(&service);
    let (one, two) = (write_once(&service, "one"), write_once(&far, "two"));
    let here = open(&one);
    for id in ["m0", "m1", "m2"] {
        append(&one, &here, id);
    }
    let there = open(&two);
    // Both fork, so that both write records of branches 1 and 2 with the same keys.
    part(&service, &far, || {
        let fork = forked(&one, &here, 1);
        for id in ["a1", "a2", "a3"] {
            append(&one, &fork, id);
        }
        let nested = forked(&one, &fork, 2);
        append(&one, &nested, "a4");
    });
    let fork = forked(&two, &there, 2);
    append(&two, &fork, "b2");
    let nested = forked(&two, &fork, 3);
    append(&two, &nested, "c3");
    far.hidden.borrow_mut().clear();
    let side = other_side(&service);
    assert_eq!(ids(&side), ["m0", "m1", "b2", "c3"]);
    assert_eq!(side.alternatives().of(Some("m1"), "b2"), (vec!["m2", "b2"], 1));
    assert_eq!(side.alternatives().of(Some("m0"), "m1"), (vec!["m1"], 0));
}

#[test]
fn r38_r47_a_side_that_goes_on_in_an_earlier_branch_has_all_of_it() {
    let service = plain();
    let far = connection(&service);
    let (one, two) = (write_once(&service, "one"), write_once(&far, "two"));
    let here = open(&one);
    append(&one, &here, "m0");
    append(&one, &here, "m1");
    let fork = forked(&one, &here, 1);
    append(&one, &fork, "f1");
    block_on(refresh(&one, &here)).unwrap();
    append(&one, &here, "m2");
    let there = open(&two);
    part(&service, &far, || {
        for id in ["m3", "m4", "m5"] {
            append(&one, &here, id);
        }
        block_on(refresh(&one, &fork)).unwrap();
        append(&one, &fork, "f2");
    });
    let earlier = RefCell::new(block_on(read_branch(&two, &there, 1)).unwrap());
    append(&two, &earlier, "g2");
    append(&two, &earlier, "g3");
    far.hidden.borrow_mut().clear();
    let side = other_side(&service);
    assert_eq!(ids(&side), ["m0", "f1", "g2", "g3"]);
    assert_eq!(side.alternatives().of(Some("m0"), "f1"), (vec!["m1", "f1"], 1));
}

#[test]
fn r38_r47_a_record_of_one_side_never_stands_for_a_damaged_one_of_the_other() {
    let service = plain();
    let far = connection(&service);
    let (one, two) = (write_once(&service, "one"), write_once(&far, "two"));
    let here = open(&one);
    append(&one, &here, "m0");
    append(&one, &here, "m1");
    append(&one, &forked(&one, &here, 1), "f1");
    block_on(refresh(&one, &here)).unwrap();
    append(&one, &here, "m2");
    let there = open(&two);
    part(&service, &far, || {
        let fork = RefCell::new(block_on(read_branch(&one, &here, 1)).unwrap());
        ["f2", "f3", "f4", "f5"].iter().for_each(|id| append(&one, &fork, id));
    });
    let fork = RefCell::new(block_on(read_branch(&two, &there, 1)).unwrap());
    append(&two, &fork, "g2");
    append(&two, &fork, "g3");
    far.hidden.borrow_mut().clear();
    let damaged = service.keys.borrow().keys().find(|key| key.ends_with(":two")).cloned().unwrap();
    service.set(&damaged, b"rotten");
    let reader = write_once(&connection(&service), "reader");
    let [side] = &block_on(reader.branches("s")).unwrap()[..] else { panic!("not one side") };
    let log = block_on(open_conflict_side(&reader, "s", side, (Seed(7), 1))).unwrap();
    assert_eq!((ids(&log), log.findings.len()), (vec!["m0", "f1", "g3"], 1));
}

#[test]
fn r38_r47_a_note_of_one_side_of_a_conflict_is_in_the_branches_of_that_side() {
    let service = plain();
    let far = connection(&service);
    let (one, two) = (write_once(&service, "one"), write_once(&far, "two"));
    let here = open(&one);
    append(&one, &here, "m0");
    append(&one, &here, "m1");
    append(&one, &forked(&one, &here, 1), "f1");
    block_on(refresh(&one, &here)).unwrap();
    annotate(&one, &here, "before");
    let there = open(&two);
    // Both sides store an addition with the same key.
    part(&service, &far, || {
        annotate(&one, &here, "one");
        ["m2", "m3", "m4", "m5"].iter().for_each(|id| append(&one, &here, id));
    });
    annotate(&two, &there, "two");
    let fork = RefCell::new(block_on(read_branch(&two, &there, 1)).unwrap());
    append(&two, &fork, "g2");
    far.hidden.borrow_mut().clear();
    let side = other_side(&service);
    assert_eq!((ids(&side), note_of(&side)), (vec!["m0", "f1", "g2"], Some("two".into())));
    let reader = write_once(&connection(&service), "reader");
    let shown = open(&reader);
    for number in [0, 1] {
        let branch = block_on(read_branch(&reader, &shown, number)).unwrap();
        assert_eq!(note_of(&branch), Some("one".into()), "branch {number}");
    }
}

fn annotate(store: &WriteOnceStore, log: &RefCell<SessionLog>, note: &str) {
    let annotations = vec![Annotation::new("m0", Json::parse(&format!("\"{note}\"")).unwrap())];
    block_on(commit(store, log, &Change { operation: note.to_owned(), annotations, ..Change::default() })).unwrap();
}

/// The note of the first message.
fn note_of(log: &SessionLog) -> Option<String> {
    let metadata = log.history.message("m0")?.metadata.as_ref()?;
    Some(metadata.as_str().trim_matches('"').to_owned())
}
