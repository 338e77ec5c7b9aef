//! Sessions with many branches: what is read of them, and when.

use super::branches::{annotate, branch, damage_row, fork, ids, note, say};
use super::*;
use rethread::branch_path::{BranchPath, DIRECTORY};
use rethread::history::HistoryEntry;
use rethread::message::{Message, Role};
use rethread::session_head::{BranchState, SessionHead};
use rethread::store::{BranchRow, open_fork, open_session_tail, read_all_branches, read_branch, seal_record};
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

fn opened(store: &dyn LogStore) -> RefCell<SessionLog> {
    RefCell::new(block_on(open_session_tail(store, "s", SEED, 1)).unwrap())
}

/// `main` with "a" and "b", and so many forks after "a".
fn with_forks(store: &dyn LogStore, count: u64) -> RefCell<SessionLog> {
    let main = opened(store);
    ["a", "b"].iter().for_each(|id| say(store, &main, id, 100));
    (0..count).for_each(|_| empty_fork(store, &main));
    main
}

fn empty_fork(store: &dyn LogStore, main: &RefCell<SessionLog>) {
    let forked = fork(store, main, 1);
    let operation = format!("fork {}", main.borrow().head.branch_count + 1);
    written(commit(store, &forked, &Change { operation, at: 1_000, is_fork: true, ..Change::default() })).unwrap();
    block_on(refresh(store, main)).unwrap();
}

fn show(store: &dyn LogStore, log: &RefCell<SessionLog>, number: u64) -> RefCell<SessionLog> {
    let shown = branch(store, log, number);
    let operation = format!("switch {number} {}", log.borrow().revision);
    written(commit(store, &shown, &Change { operation, is_switch: true, ..Change::default() })).unwrap();
    shown
}

/// Adds branches as `fork` makes them, without making each: a session has `count` forks then.
fn add_forks(data: &MemoryStore, count: u64) {
    let row: BranchRow = open_record(RecordKind::Branch, &log_record(data, DIRECTORY + 1).value).unwrap();
    let rows = (2..=count).map(|number| {
        let path = BranchPath { number, ..row.state.path.clone() };
        let state = BranchState { next_record: path.first_own_key(), path, ..row.state.clone() };
        let value = seal_record(RecordKind::Branch, &BranchRow { state, ..row.clone() });
        Record { table: Table::Log, key: DIRECTORY + number, last_key: None, index: None, value }
    });
    tamper(data, "s", rows.collect(), Vec::new(), |head| {
        let head: SessionHead = open_record(RecordKind::Head, &head.into()).unwrap();
        seal_record(RecordKind::Head, &SessionHead { branch_count: count, ..head }).to_vec()
    });
}

/// Heads, reads, records, rows of the directory and bytes.
fn costs(spy: &Spy) -> [usize; 5] {
    let small = |count: &std::cell::Cell<u32>| count.replace(0) as usize;
    [small(&spy.heads), small(&spy.reads), spy.records.take(), spy.directory_rows.take(), spy.bytes.take()]
}

#[test]
fn r38_r63_opening_a_session_reads_as_much_with_1001_branches_as_with_one() {
    let open_costs = |spy: &Spy| {
        costs(spy);
        let log = opened(spy);
        let cost = costs(spy);
        assert_eq!(log.borrow().findings, []);
        (log, cost)
    };
    let alone = Spy::default();
    with_forks(&alone, 0);
    let (_, of_one) = open_costs(&alone);
    let spy = Spy::default();
    with_forks(&spy, 1);
    add_forks(&spy.data, 1_000);
    let (main, of_many) = open_costs(&spy);
    assert_eq!((of_many[..4].to_vec(), ids(&main)), (of_one[..4].to_vec(), ["a", "b"].map(String::from).to_vec()));
    assert!(of_many[4] <= of_one[4] + 16, "{of_many:?} {of_one:?}");
    // A fork is opened with its row.
    show(&spy, &main, 700);
    let (shown, of_fork) = open_costs(&spy);
    assert_eq!((ids(&shown), shown.borrow().branch_number(), of_fork[3]), (vec!["a".into()], 700, 1));
    assert!(of_fork[1] <= of_one[1] + 2 && of_fork[4] < of_one[4] + 500, "{of_fork:?} {of_one:?}");
    // What happens in the branch that is shown reads no other one.
    say(&spy, &shown, "c", 100);
    say(&spy, &opened(&spy), "d", 100);
    block_on(refresh(&spy, &shown)).unwrap();
    assert_eq!((ids(&shown).join(" "), costs(&spy)[3]), ("a c d".into(), 1));
    // What needs all branches reads them once.
    for _ in 0..2 {
        block_on(read_all_branches(&spy, &shown)).unwrap();
    }
    let rows = costs(&spy)[3];
    assert_eq!((rows, shown.borrow().directory().rows().count()), (1_001, 1_001));
    assert_eq!(shown.borrow().highest_branch(), 1_000);
}

#[test]
fn r38_few_branches_are_known_when_a_session_is_opened() {
    let store = MemoryStore::default();
    with_forks(&store, 1);
    for (count, is_unread) in [(64, false), (65, true)] {
        add_forks(&store, count);
        assert_eq!(opened(&store).borrow().has_unread_branches(), is_unread, "{count}");
    }
}

#[test]
fn r38_r57_a_note_of_a_session_of_many_branches_is_in_each_that_shares_the_message() {
    let store = MemoryStore::default();
    with_forks(&store, 1);
    add_forks(&store, 100);
    let main = opened(&store);
    annotate(&store, &main, "1");
    assert_eq!(main.borrow().head.additions, 1);
    for number in [0, 1, 50, 100] {
        assert_eq!(note(&branch(&store, &opened(&store), number)).as_deref(), Some("1"), "{number}");
    }
    // Another process forks at a message that was not shared when the branches were read.
    let (near, far) = (opened(&store), opened(&store));
    block_on(read_all_branches(&store, &near)).unwrap();
    let forked = fork(&store, &far, 2);
    say(&store, &forked, "x", 1);
    let annotations = vec![rethread::history::Annotation::new("b", rethread::json::Json::parse("2").unwrap())];
    written(commit(&store, &near, &Change { operation: "n".into(), annotations, ..Change::default() })).unwrap();
    let metadata = |log: &RefCell<SessionLog>| log.borrow().history.message("b").unwrap().metadata.clone();
    assert_eq!(metadata(&branch(&store, &far, 101)), metadata(&near));
}

#[test]
fn r38_a_fork_without_a_message_gets_its_first_one_among_many_branches() {
    let store = MemoryStore::default();
    let main = with_forks(&store, 1);
    add_forks(&store, 100);
    show(&store, &main, 80);
    let (near, far) = (opened(&store), opened(&store));
    assert!(near.borrow().has_unread_branches());
    say(&store, &near, "x", 1);
    let first = |log: &RefCell<SessionLog>| log.borrow().directory().row(80).and_then(|row| row.first.clone());
    assert_eq!((first(&near).as_deref(), near.borrow().head.begun_forks), (Some("x"), 1));
    // Another process learns of it, with the branch that it shows and the messages.
    block_on(refresh(&store, &far)).unwrap();
    say(&store, &far, "y", 1);
    assert_eq!((first(&far).as_deref(), far.borrow().head.begun_forks), (Some("x"), 1));
    let all = opened(&store);
    block_on(read_all_branches(&store, &all)).unwrap();
    assert_eq!((first(&all).as_deref(), ids(&all).join(" ")), (Some("x"), "a x y".into()));
}

#[test]
fn r38_a_branch_that_is_left_keeps_its_row_among_many() {
    let store = MemoryStore::default();
    let main = with_forks(&store, 1);
    add_forks(&store, 100);
    let rows = |log: &RefCell<SessionLog>| {
        block_on(read_all_branches(&store, log)).unwrap();
        let log = log.borrow();
        let row = |row: &BranchRow| (row.number(), row.forked_after.clone(), row.beside.clone(), row.created_at);
        log.directory().rows().map(row).collect::<Vec<_>>()
    };
    show(&store, &main, 70);
    let before = rows(&opened(&store));
    // Another process chooses other branches, while this one goes on with the one that it shows.
    let near = opened(&store);
    show(&store, &opened(&store), 20);
    say(&store, &near, "x", 1);
    assert!(!near.borrow().has_unread_branches());
    assert_eq!((ids(&near).join(" "), near.borrow().branch_number()), ("a x".into(), 70));
    show(&store, &opened(&store), 0);
    block_on(refresh(&store, &near)).unwrap();
    say(&store, &near, "y", 1);
    assert_eq!((rows(&opened(&store)), rows(&near)), (before.clone(), before));
    assert_eq!(ids(&branch(&store, &opened(&store), 70)).join(" "), "a x y");
    assert_eq!(ids(&branch(&store, &opened(&store), 0)).join(" "), "a b");
}

#[test]
fn r38_r07_rows_that_cannot_be_read_fail_what_needs_them_and_are_reported_then() {
    let spy = Spy::default();
    with_forks(&spy, 1);
    add_forks(&spy.data, 100);
    damage_row(&spy.data, 60);
    spy.unreadable.borrow_mut().push(DIRECTORY + 50);
    let log = opened(&spy);
    assert_eq!((log.borrow().findings.len(), ids(&log).join(" ")), (0, "a b".into()));
    for _ in 0..2 {
        assert_eq!(block_on(read_all_branches(&spy, &log)).unwrap_err().code, ErrorCode::StoreError);
        assert_eq!(block_on(open_fork(&spy, &log, 1)).err().unwrap().code, ErrorCode::StoreError);
        assert_eq!(block_on(read_branch(&spy, &log, 70)).err().unwrap().code, ErrorCode::StoreError);
        let note = vec![rethread::history::Annotation::new("a", rethread::json::Json::parse("1").unwrap())];
        let change = Change { operation: "n".into(), annotations: note, ..Change::default() };
        assert_eq!(written(commit(&spy, &log, &change)).unwrap_err().code, ErrorCode::StoreError);
    }
    say(&spy, &log, "c", 1);
    spy.unreadable.borrow_mut().clear();
    block_on(read_all_branches(&spy, &log)).unwrap();
    let messages: Vec<_> = log.borrow().findings.iter().map(|finding| finding.message.clone()).collect();
    assert!(messages.len() == 1 && messages[0].contains("\"fork-60\""), "{messages:?}");
    assert_eq!(block_on(read_branch(&spy, &log, 60)).err().unwrap().code, ErrorCode::CorruptRecord);
}

#[test]
fn r38_rows_that_are_read_while_the_session_is_refreshed_or_written_are_as_new_as_what_is_known() {
    let store = MemoryStore::default();
    let main = with_forks(&store, 1);
    add_forks(&store, 100);
    show(&store, &main, 80);
    let mut context = Context::from_waker(Waker::noop());
    let mut polls = |work: &mut std::pin::Pin<&mut dyn Future<Output = bool>>, count: usize| {
        (0..count).any(|_| work.as_mut().poll(&mut context) == Poll::Ready(true))
    };
    for at in 0..12_u64 {
        let (near, spy) = (opened(&store), Spy { waits: true.into(), ..Spy::new(&store) });
        // Another process forks, and this one begins to refresh, and to read the rows.
        say(&store, &fork(&store, &opened(&store), 1), &format!("x{at}"), 1);
        show(&store, &opened(&store), 80);
        let mut refreshing = pin!(async { refresh(&spy, &near).await.is_ok() });
        let mut reading = pin!(async { read_all_branches(&spy, &near).await.is_ok() });
        let (refreshing, reading): (&mut std::pin::Pin<&mut dyn Future<Output = bool>>, _) =
            (&mut (refreshing.as_mut() as _), &mut (reading.as_mut() as _));
        let is_refreshed = polls(refreshing, usize::try_from(at).unwrap());
        assert!(polls(reading, 1_000));
        assert!(is_refreshed || polls(refreshing, 1_000));
        let rows = |log: &RefCell<SessionLog>| log.borrow().directory().rows().count() as u64;
        assert!(near.borrow().has_unread_branches() || rows(&near) == 102 + at, "{at}: {}", rows(&near));
        block_on(read_all_branches(&store, &near)).unwrap();
        assert_eq!((near.borrow().head.branch_count, rows(&near)), (101 + at, 102 + at), "{at}");
    }
    // Another process gives an empty fork its first message while the rows are read, and this one sees that.
    let (near, spy) = (opened(&store), Spy { waits: true.into(), ..Spy::new(&store) });
    let empty = branch(&store, &opened(&store), 70);
    let mut reading = pin!(async { read_all_branches(&spy, &near).await.is_ok() });
    let reading: &mut std::pin::Pin<&mut dyn Future<Output = bool>> = &mut (reading.as_mut() as _);
    while spy.directory_rows.get() < 80 {
        assert!(!polls(reading, 1));
    }
    let message = Message { id: "z".into(), ..Message::from_text(Role::User, "z") };
    let entries = vec![HistoryEntry::Message(message)];
    let change = Change { operation: "z".into(), at: 1, entries, unshown_branch: Some(70), ..Change::default() };
    written(commit(&store, &empty, &change)).unwrap();
    block_on(refresh(&store, &near)).unwrap();
    assert!(polls(reading, 1_000));
    assert_eq!(near.borrow().directory().row(70).unwrap().first.as_deref(), Some("z"));
    // The fork that is shown gets its first message while the rows are read.
    let (near, spy) = (opened(&store), Spy { waits: true.into(), ..Spy::new(&store) });
    let mut reading = pin!(async { read_all_branches(&spy, &near).await.is_ok() });
    let reading: &mut std::pin::Pin<&mut dyn Future<Output = bool>> = &mut (reading.as_mut() as _);
    while spy.directory_rows.get() == 0 {
        assert!(!polls(reading, 1));
    }
    say(&store, &near, "y", 1);
    assert!(polls(reading, 1_000));
    assert_eq!(near.borrow().directory().row(80).unwrap().first.as_deref(), Some("y"));
}
