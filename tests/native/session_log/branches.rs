//! What is read of a log's branches, and how much.

use super::*;
use rethread::branch_path::DIRECTORY;
use rethread::history::{Annotation, HistoryEntry};
use rethread::json::Json;
use rethread::message::{Message, Role};
use rethread::session_head::SessionHead;
use rethread::store::{merge_oldest, open_fork, open_session_tail, read_branch, seal_record};
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

pub(super) fn say(store: &dyn LogStore, log: &RefCell<SessionLog>, id: &str, bytes: usize) {
    let message = Message { id: id.into(), ..Message::from_text(Role::User, &"x".repeat(bytes)) };
    let entries = vec![HistoryEntry::Message(message)];
    written(commit(store, log, &Change { operation: id.into(), at: 1_000, entries, ..Change::default() })).unwrap();
}

pub(super) fn fork(store: &dyn LogStore, log: &RefCell<SessionLog>, until_seq: u64) -> RefCell<SessionLog> {
    RefCell::new(block_on(open_fork(store, log, until_seq)).unwrap())
}

pub(super) fn branch(store: &dyn LogStore, log: &RefCell<SessionLog>, number: u64) -> RefCell<SessionLog> {
    RefCell::new(block_on(read_branch(store, log, number)).unwrap())
}

pub(super) fn ids(log: &RefCell<SessionLog>) -> Vec<String> {
    log.borrow().history.messages().iter().map(|message| message.id.clone()).collect()
}

/// `main` with "a", "b", "c" and two forks after "a"; the second one, with "y", was written last.
fn forked(store: &dyn LogStore) -> RefCell<SessionLog> {
    let main = open(store, "s");
    ["a", "b", "c"].iter().for_each(|id| say(store, &main, id, 1));
    for id in ["x", "y"] {
        let fork = fork(store, &main, 1);
        say(store, &fork, id, 1);
        say(store, &fork, &format!("{id}2"), 1);
        block_on(refresh(store, &main)).unwrap();
    }
    main
}

pub(super) fn damage_row(store: &MemoryStore, number: u64) {
    let mut row = log_record(store, DIRECTORY + number);
    row.value = flipped(&row.value, row.value.len() - 1, 0x10);
    tamper(store, "s", vec![row], Vec::new(), |head| head);
}

#[test]
fn r38_r48_a_branch_is_read_although_the_head_is_damaged() {
    let spy = Spy::default();
    forked(&spy);
    let log = open(&spy, "s");
    tamper(&spy.data, "s", Vec::new(), Vec::new(), |head| flipped(&head, 20, 1).to_vec());
    for (number, wanted) in [(0, ["a", "b", "c"]), (1, ["a", "x", "x2"]), (2, ["a", "y", "y2"])] {
        let read = branch(&spy, &log, number);
        assert_eq!((ids(&read), read.borrow().head.next_seq), (wanted.map(String::from).to_vec(), 3));
        assert!(!read.borrow().findings.is_empty(), "the damage is reported");
    }
    assert_eq!(block_on(read_branch(&spy, &log, 7)).err().unwrap().code, ErrorCode::NotFound);
    // The first append writes a head again, and the row of the branch that it displaces.
    let first = branch(&spy, &log, 1);
    say(&spy, &first, "x3", 1);
    let fresh = open(&spy, "s");
    assert_eq!((ids(&fresh), fresh.borrow().branch_number()), (["a", "x", "x2", "x3"].map(String::from).to_vec(), 1));
    assert_eq!(ids(&branch(&spy, &fresh, 2)), ["a", "y", "y2"]);
    assert_eq!(ids(&branch(&spy, &fresh, 0)), ["a", "b", "c"]);
    assert_eq!(fresh.borrow().head.branch_count, 2);
}

#[test]
fn r38_r48_main_is_read_although_its_row_is_damaged() {
    let spy = Spy::default();
    forked(&spy);
    damage_row(&spy.data, 0);
    let log = open(&spy, "s");
    let main = branch(&spy, &log, 0);
    assert_eq!((ids(&main), main.borrow().head.next_seq), (["a", "b", "c"].map(String::from).to_vec(), 3));
    say(&spy, &main, "d", 1);
    let fresh = open(&spy, "s");
    assert_eq!((ids(&fresh).len(), fresh.borrow().branch_number()), (4, 0));
    assert_eq!(ids(&branch(&spy, &fresh, 2)), ["a", "y", "y2"]);
}

#[test]
fn r38_r48_a_branch_whose_row_is_damaged_is_no_branch_that_never_was() {
    let spy = Spy::default();
    forked(&spy);
    damage_row(&spy.data, 1);
    let log = open(&spy, "s");
    assert_eq!(block_on(read_branch(&spy, &log, 1)).err().unwrap().code, ErrorCode::CorruptRecord);
    assert_eq!(block_on(read_branch(&spy, &log, 3)).err().unwrap().code, ErrorCode::NotFound);
}

#[test]
fn r38_a_head_that_counts_branches_without_end_costs_nothing() {
    let store = MemoryStore::default();
    forked(&store);
    for count in [1 << 40, u64::MAX] {
        tamper(&store, "s", Vec::new(), Vec::new(), |head| {
            let head: SessionHead = open_record(RecordKind::Head, &head.to_vec().into()).unwrap();
            seal_record(RecordKind::Head, &SessionHead { branch_count: count, ..head }).to_vec()
        });
        let log = open(&store, "s");
        assert_eq!(log.borrow().highest_branch(), 102);
        let number = |name| log.borrow().branch_of_name(name);
        assert_eq!((number("fork-2"), number("main")), (Some(2), Some(0)));
        for unknown in ["fork-0", "fork-02", "fork-1000000000000", "fork-", "other"] {
            assert_eq!(number(unknown), None, "{unknown}");
        }
    }
}

#[test]
fn r38_only_new_rows_of_the_directory_are_read_again() {
    let spy = Spy::default();
    let main = forked(&spy);
    let (near, far) = (open(&spy, "s"), RefCell::new(block_on(open_session(&spy, "s", SEED, 1)).unwrap()));
    let near = branch(&spy, &near, 0);
    for at in 0..40 {
        say(&spy, &fork(&spy, &main, 2), &format!("f{at}"), 1);
        block_on(refresh(&spy, &main)).unwrap();
    }
    block_on(refresh(&spy, &near)).unwrap();
    block_on(refresh(&spy, &far)).unwrap();
    // One more fork elsewhere, and changes of its branch.
    spy.directory_rows.set(0);
    let fork = fork(&spy, &main, 2);
    for id in ["g0", "g1", "g2"] {
        say(&spy, &fork, id, 1);
        block_on(refresh(&spy, &near)).unwrap();
    }
    assert!(spy.directory_rows.get() <= 8, "{} rows are read", spy.directory_rows.get());
    assert_eq!(near.borrow().directory().rows().count(), 44);
    // What others wrote to the branch that is shown is read, however its row changed.
    let other = branch(&spy, &far, 0);
    say(&spy, &other, "d", 1);
    say(&spy, &branch(&spy, &other, 2), "y3", 1);
    block_on(refresh(&spy, &near)).unwrap();
    assert_eq!((ids(&near), near.borrow().head.next_seq), (["a", "b", "c", "d"].map(String::from).to_vec(), 4));
}

#[test]
fn r06_r38_the_end_of_a_branch_that_was_forked_inside_of_a_segment_is_long_enough() {
    let spy = Spy::default();
    let main = open(&spy, "s");
    (0..400).for_each(|at| say(&spy, &main, &format!("m{at}"), 2_000));
    while main.borrow().has_unmerged() {
        let operation = format!("merge {}", main.borrow().revision);
        block_on(merge_oldest(&spy, &main, &operation)).unwrap();
    }
    for until_seq in [280, 290, 300, 310, 399] {
        let fork = fork(&spy, &main, until_seq);
        say(&spy, &fork, &format!("f{until_seq}"), 10);
        let tail = block_on(open_session_tail(&spy, "s", SEED, 1)).unwrap();
        let (some, all) = (tail.history.messages().len(), fork.borrow().history.messages().len());
        assert!((60..200).contains(&some), "{some} of {all} messages, forked before {until_seq}");
        assert_eq!(tail.history.messages(), &fork.borrow().history.messages()[all - some..]);
        assert!(tail.findings.is_empty());
        let tail = RefCell::new(tail);
        block_on(rethread::store::read_older(&spy, &tail)).unwrap();
        assert_eq!(ids(&tail), ids(&fork));
        assert!(tail.borrow().findings.is_empty());
        block_on(refresh(&spy, &main)).unwrap();
    }
}

/// Stores a note of the message "a".
pub(super) fn annotate(store: &dyn LogStore, log: &RefCell<SessionLog>, note: &str) {
    let annotations = vec![Annotation::new("a", Json::parse(note).unwrap())];
    written(commit(store, log, &Change { operation: note.into(), annotations, ..Change::default() })).unwrap();
}

pub(super) fn note(log: &RefCell<SessionLog>) -> Option<String> {
    let log = log.borrow();
    log.history.message("a")?.metadata.as_ref().map(|note| note.as_str().to_owned())
}

#[test]
fn r38_a_branch_begins_with_what_another_writer_stored_just_before() {
    let store = Spy::default();
    let main = open(&store, "s");
    ["a", "b"].iter().for_each(|id| say(&store, &main, id, 1));
    let (unborn, other) = (fork(&store, &main, 1), open(&store, "s"));
    annotate(&store, &other, "1");
    say(&store, &unborn, "x", 1);
    assert_eq!(unborn.borrow().head.additions, 0, "nobody else knew of the branch");
    for log in [&unborn, &branch(&store, &main, 1)] {
        assert_eq!(note(log).as_deref(), Some("1"));
    }
}

#[test]
fn r38_what_a_branch_begins_with_is_no_older_than_what_branches_share() {
    let store = Spy::default();
    let main = open(&store, "s");
    ["a", "b"].iter().for_each(|id| say(&store, &main, id, 1));
    annotate(&store, &main, "1");
    let (unborn, other) = (fork(&store, &main, 1), open(&store, "s"));
    assert_eq!(note(&unborn).as_deref(), Some("1"));
    say(&store, &fork(&store, &other, 1), "x", 1);
    block_on(refresh(&store, &other)).unwrap();
    annotate(&store, &other, "2");
    assert_eq!(other.borrow().head.additions, 1);
    say(&store, &unborn, "y", 1);
    for log in [&unborn, &branch(&store, &main, 1), &branch(&store, &main, 2), &branch(&store, &main, 0)] {
        assert_eq!(note(log).as_deref(), Some("2"));
    }
}
