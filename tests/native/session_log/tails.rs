//! Sessions that are opened by the end of their log.

use super::*;
use rethread::store::{merge_oldest, open_session_tail, read_older};
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

fn open_tail(store: &dyn LogStore) -> RefCell<SessionLog> {
    RefCell::new(block_on(open_session_tail(store, "s", SEED, 1)).unwrap())
}

/// A session of 300 turns, 1.2 MB, merged or not.
fn large(merges: bool) -> (Spy, RefCell<SessionLog>) {
    let spy = Spy::default();
    let log = open(&spy, "s");
    for at in 0..300 {
        append(&spy, &log, &format!("n{at}"), &said(&format!("{at} {}", "x".repeat(4000)))).unwrap();
    }
    let mut at = 0;
    while merges && log.borrow().has_unmerged() {
        at += 1;
        block_on(merge_oldest(&spy, &log, &format!("merge {at}"))).unwrap();
    }
    (spy, log)
}

#[test]
fn r06_a_large_session_opens_with_its_newest_records() {
    for merges in [false, true] {
        let (spy, log) = large(merges);
        spy.reads.set(0);
        spy.heads.set(0);
        let tail = open_tail(&spy);
        assert!(!tail.borrow().is_whole());
        assert!(spy.reads.get() <= 2 && spy.heads.get() == 1);
        {
            let (tail, log) = (tail.borrow(), log.borrow());
            let (some, all) = (tail.history.messages(), log.history.messages());
            assert!(some.len() >= 50 && some.len() < 200, "{} messages are read first", some.len());
            assert_eq!(some, &all[all.len() - some.len()..]);
            assert!(tail.findings.is_empty());
        }
        block_on(read_older(&spy, &tail)).unwrap();
        assert!(tail.borrow().is_whole());
        assert_eq!(tail.borrow().history.messages(), log.borrow().history.messages());
        assert!(tail.borrow().findings.is_empty());
        assert_eq!(tail.borrow().has_unmerged(), log.borrow().has_unmerged());
        assert!(u64::from(spy.reads.get() + spy.heads.get()) <= 1 + log.borrow().head.log_bytes.div_ceil(256 * 1024));
        // A small one is read whole at once.
        assert!(open_tail(&Spy::new(&three_turns())).borrow().is_whole());
    }
}

#[test]
fn r47_an_append_to_a_partly_read_session_reads_the_rest_first() {
    for merges in [false, true] {
        let (spy, log) = large(merges);
        let tail = open_tail(&spy);
        append(&spy, &log, "other", &said("other")).unwrap();
        if !merges {
            // Another process merges what this one has not read, and what it has.
            while log.borrow().has_unmerged() {
                block_on(merge_oldest(&spy, &log, &format!("merge {}", log.borrow().revision))).unwrap();
            }
        }
        let change = Change {
            entries: Vec::new(),
            operation: "t".into(),
            at: 5,
            edit: Some(Box::new(|head| head.title = Some("T".into()))),
            ..Change::default()
        };
        written(commit(&spy, &tail, &change)).unwrap();
        assert!(tail.borrow().is_whole());
        assert_eq!(texts(&tail), texts(&open(&spy, "s")));
        assert_eq!(texts(&tail).len(), 301);
    }
}

#[test]
fn r48_a_failed_read_of_older_records_is_an_error_and_is_retried() {
    let (spy, log) = large(true);
    let tail = open_tail(&spy);
    spy.reading_fails.set(true);
    assert_eq!(block_on(read_older(&spy, &tail)).unwrap_err().code, ErrorCode::StoreError);
    assert_eq!(block_on(refresh(&spy, &tail)).unwrap_err().code, ErrorCode::StoreError);
    assert!(!tail.borrow().is_whole());
    spy.reading_fails.set(false);
    block_on(refresh(&spy, &tail)).unwrap();
    assert_eq!(texts(&tail), texts(&log));
}

#[test]
fn r48_damage_in_older_records_is_reported_when_they_are_read() {
    let (spy, _) = large(false);
    let mut broken = log_record(&spy.data, 5);
    broken.value = flipped(&broken.value, 30, 1);
    tamper(&spy.data, "s", vec![broken], vec![(Table::Log, 9)], |head| head);
    let tail = open_tail(&spy);
    assert!(tail.borrow().findings.is_empty());
    block_on(read_older(&spy, &tail)).unwrap();
    let whole = open(&spy, "s");
    assert_eq!(tail.borrow().findings, whole.borrow().findings);
    assert_eq!((texts(&tail).len(), tail.borrow().findings.len()), (298, 2));
}

#[test]
fn r48_a_session_deleted_while_it_is_read_is_empty_not_damaged() {
    let (spy, _) = large(true);
    let (tail, other) = (open_tail(&spy), open_tail(&spy));
    block_on(spy.delete_session("s")).unwrap();
    block_on(read_older(&spy, &tail)).unwrap();
    assert!(tail.borrow().is_deleted() && tail.borrow().findings.is_empty());
    append(&spy, &open(&spy, "s"), "new", &said("new")).unwrap();
    block_on(read_older(&spy, &other)).unwrap();
    assert_eq!(texts(&other), ["new"]);
    assert!(other.borrow().findings.is_empty());
}
