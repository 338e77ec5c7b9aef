//! Stores that fail to read a part of a log (R7).

use super::*;
use rethread::store::{delete_session, merge_oldest, open_session_tail, read_older};
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

/// A session of turns "0", "1", …, each a record of this many bytes.
fn turns(count: usize, size: usize) -> Spy {
    let spy = Spy::default();
    let log = open(&spy, "s");
    for at in 0..count {
        append(&spy, &log, &format!("n{at}"), &said(&format!("{at} {}", "x".repeat(size)))).unwrap();
    }
    spy
}

fn numbers(log: &RefCell<SessionLog>) -> Vec<usize> {
    texts(log).iter().map(|text| text.split(' ').next().unwrap().parse().unwrap()).collect()
}

/// Checks that everything except for `gone` is readable, that nothing can be written, and that a later read heals it.
fn expect_rest(spy: &Spy, log: &RefCell<SessionLog>, count: usize, gone: &[u64]) {
    let rest: Vec<_> = (0..count).filter(|at| !gone.contains(&(*at as u64))).collect();
    assert_eq!(numbers(log), rest);
    assert!(!log.borrow().is_whole());
    let head = log.borrow().head.clone();
    assert_eq!((head.next_record, head.turns), (count as u64, count as u32), "numbering is that of the whole log");
    assert!(log.borrow().findings.is_empty(), "what cannot be read is not gone: {:?}", log.borrow().findings);
    let finding = log.borrow().read_failure().unwrap().finding("s");
    assert_eq!(finding.code.as_str(), "read_failed");
    assert!(finding.message.contains("a sector is gone"), "{}", finding.message);
    // What is missing may have the call of a result, or an id: nothing is written onto a part.
    let before = block_on(spy.data.read("s", Query::all(Table::Log))).unwrap();
    assert_eq!(append(spy, log, "lost", &said("lost")).unwrap_err().code, ErrorCode::StoreError);
    assert_eq!(block_on(refresh(spy, log)).unwrap_err().code, ErrorCode::StoreError);
    assert!(!log.borrow().has_unmerged());
    assert_eq!(block_on(spy.data.read("s", Query::all(Table::Log))).unwrap(), before);
    assert_eq!(numbers(log), rest);
    spy.unreadable.take();
    let generation = log.borrow().generation;
    append(spy, log, "more", &said(&format!("{count} more"))).unwrap();
    assert!(log.borrow().is_whole() && log.borrow().read_failure().is_none() && log.borrow().findings.is_empty());
    assert!(log.borrow().generation > generation, "what was made of the part is made again");
    assert_eq!(numbers(log), (0..=count).collect::<Vec<_>>());
    let whole = open(&spy.data, "s");
    assert_eq!(log.borrow().history.messages(), whole.borrow().history.messages());
    assert_eq!(log.borrow().head, whole.borrow().head);
}

#[test]
fn r07_a_record_that_cannot_be_read_costs_that_record_alone_and_a_retry_heals_it() {
    for gone in [&[0_u64][..], &[29], &[7, 8, 20], &[0, 15, 29], &[2, 15]] {
        let spy = turns(30, 10);
        spy.unreadable.replace(gone.to_vec());
        let log = open(&spy, "s");
        expect_rest(&spy, &log, 30, gone);
    }
}

#[test]
fn r07_a_failing_segment_costs_that_segment_alone() {
    let spy = turns(400, 2000);
    let log = open(&spy, "s");
    while log.borrow().has_unmerged() {
        let operation = format!("merge {}", log.borrow().revision);
        block_on(merge_oldest(&spy, &log, &operation)).unwrap();
    }
    let segments = block_on(spy.data.read("s", Query::all(Table::Log))).unwrap();
    let segment = segments.iter().filter(|record| record.last_key.is_some()).nth(1).unwrap();
    spy.unreadable.replace(vec![segment.key]);
    for log in [open(&spy, "s"), RefCell::new(block_on(open_session_tail(&spy, "s", SEED, 1)).unwrap())] {
        if log.borrow().read_failure().is_none() {
            assert!(block_on(read_older(&spy, &log)).is_err());
        }
        let gone = segment.key as usize..=segment.last_key.unwrap() as usize;
        let read = numbers(&log);
        assert!(read.iter().all(|number| !gone.contains(number)));
        assert_eq!((read.first(), read.last()), (Some(&0), Some(&399)));
        // The store is asked a limited number of times, so records beside the segment may be left out.
        assert!(read.len() + gone.clone().count() >= 380, "{} of 400 are read", read.len());
    }
}

#[test]
fn r07_the_newest_messages_stay_readable_while_older_ones_are_not() {
    for gone in [&[3_u64][..], &[40, 41], &[0]] {
        let spy = turns(300, 4000);
        let log = RefCell::new(block_on(open_session_tail(&spy, "s", SEED, 1)).unwrap());
        assert!(log.borrow().read_failure().is_none());
        spy.unreadable.replace(gone.to_vec());
        let generation = log.borrow().generation;
        assert_eq!(block_on(read_older(&spy, &log)).unwrap_err().code, ErrorCode::StoreError);
        assert!(log.borrow().generation > generation, "messages appear before those that were shown");
        expect_rest(&spy, &log, 300, gone);
        // A record of the end that is read first.
        spy.unreadable.replace(vec![299]);
        let log = RefCell::new(block_on(open_session_tail(&spy, "s", SEED, 1)).unwrap());
        assert_eq!(numbers(&log), (0..299).chain([300]).collect::<Vec<_>>());
    }
}

#[test]
fn r07_while_nothing_can_be_read_the_end_that_was_read_stays_and_reads_are_few() {
    let spy = turns(300, 4000);
    let log = RefCell::new(block_on(open_session_tail(&spy, "s", SEED, 1)).unwrap());
    let shown = numbers(&log);
    assert!(!shown.is_empty() && shown.len() < 300);
    spy.reading_fails.set(true);
    spy.reads.set(0);
    assert!(block_on(read_older(&spy, &log)).is_err());
    assert!(spy.reads.get() <= 32, "{} reads of a dead store", spy.reads.get());
    spy.reads.set(0);
    assert!(block_on(read_older(&spy, &log)).is_err());
    assert_eq!(spy.reads.get(), 1, "one read asks whether it is still dead");
    assert_eq!(numbers(&log), shown);
    assert!(log.borrow().read_failure().is_some());
    assert!(
        block_on(open_session_tail(&spy, "s", SEED, 1)).is_err(),
        "nothing can be read: an error, not an empty chat"
    );
    spy.reading_fails.set(false);
    block_on(read_older(&spy, &log)).unwrap();
    assert!(log.borrow().read_failure().is_none());
    assert_eq!(numbers(&log), (0..300).collect::<Vec<_>>());
}

#[test]
fn r07_a_deletion_while_a_part_cannot_be_read_is_a_deletion() {
    let spy = turns(30, 10);
    spy.unreadable.replace(vec![5]);
    let log = open(&spy, "s");
    assert_eq!(numbers(&log).len(), 29);
    block_on(spy.data.delete_session("s")).unwrap();
    block_on(refresh(&spy, &log)).unwrap();
    assert!(log.borrow().is_deleted() && log.borrow().is_whole() && log.borrow().read_failure().is_none());
    assert!(texts(&log).is_empty());
}

#[test]
fn r07_a_log_of_which_nothing_can_be_read_is_an_error_and_no_empty_history() {
    let spy = turns(30, 10);
    spy.unreadable.replace((0..30).collect());
    // The head can be read.
    assert_eq!(block_on(open_session(&spy, "s", SEED, 1)).err().unwrap().code, ErrorCode::StoreError);
    assert_eq!(block_on(open_session_tail(&spy, "s", SEED, 1)).err().unwrap().code, ErrorCode::StoreError);
    spy.unreadable.take();
    assert_eq!(numbers(&open(&spy, "s")).len(), 30);
}

#[test]
fn r07_r09_source_numbers_that_only_the_head_has_stay_taken_when_older_records_are_read() {
    let spy = turns(300, 4000);
    let log = open(&spy, "s");
    let taken = Change { operation: "taken".into(), sources: Some(41), ..change(&log, "taken", &said("300 x")) };
    block_on(commit(&spy, &log, &taken)).unwrap();
    let tail = RefCell::new(block_on(open_session_tail(&spy, "s", SEED, 1)).unwrap());
    assert_eq!((tail.borrow().is_whole(), tail.borrow().history.highest_source()), (false, Some(41)));
    block_on(read_older(&spy, &tail)).unwrap();
    assert_eq!((tail.borrow().is_whole(), tail.borrow().history.highest_source()), (true, Some(41)));
}

#[test]
fn r07_a_session_of_which_nothing_can_be_read_is_deleted_for_all_who_knew_it() {
    let spy = turns(3, 10);
    let old = open(&spy, "s");
    spy.data.lose_head("s");
    spy.unreadable.replace(vec![0, 1, 2]);
    block_on(delete_session(&spy, "s", SEED, "delete")).unwrap();
    spy.unreadable.take();
    let new = open(&spy, "s");
    for at in 3..7 {
        append(&spy, &new, &format!("new{at}"), &said(&format!("{at} new"))).unwrap();
        assert!(new.borrow().revision > old.borrow().revision, "one revision never stands for two histories");
    }
    block_on(refresh(&spy, &old)).unwrap();
    assert_eq!(numbers(&old), [3, 4, 5, 6]);
}

#[test]
fn r07_an_error_that_another_read_would_meet_too_is_met_once_and_what_was_read_before_it_is_shown() {
    let (count, gone) = (60, 55);
    for (code, is_read_around) in [
        (ErrorCode::StoreError, true),
        (ErrorCode::CorruptRecord, true),
        (ErrorCode::TooLarge, true),
        (ErrorCode::Unavailable, false),
    ] {
        // More than a page, so that the first read succeeds.
        let spy = turns(count, 100_000);
        spy.unreadable.replace(vec![gone as u64]);
        spy.unreadable_code.set(Some(code));
        spy.reads.set(0);
        let log = open(&spy, "s");
        let read = numbers(&log);
        let end = if is_read_around { gone } else { read.len() };
        assert!(end > 20 && end <= gone, "{code:?} {read:?}");
        let after = if is_read_around { gone + 1..count } else { 0..0 };
        assert_eq!(read, (0..end).chain(after).collect::<Vec<_>>(), "{code:?}");
        let finding = log.borrow().read_failure().unwrap().finding("s");
        let missing = if is_read_around { 1 } else { count - end };
        let text = format!("failed to read {missing} log records");
        assert!(finding.message.contains(&text) && finding.message.contains("a sector is gone"), "{finding:?}");
        assert!(is_read_around || spy.reads.get() <= 5, "{} reads of a store that is away", spy.reads.get());
        assert_eq!(block_on(read_older(&spy, &log)).unwrap_err().code, code);
        spy.unreadable.take();
        block_on(read_older(&spy, &log)).unwrap();
        assert_eq!(numbers(&log), (0..count).collect::<Vec<_>>(), "{code:?}");
        assert!(log.borrow().read_failure().is_none() && log.borrow().findings.is_empty());
    }
}

#[test]
fn r07_a_record_that_is_gone_beside_one_that_cannot_be_read_is_reported_as_gone() {
    let spy = turns(30, 10);
    tamper(&spy.data, "s", Vec::new(), vec![(Table::Log, 14)], |head| head);
    spy.unreadable.replace(vec![15]);
    let log = open(&spy, "s");
    assert_eq!(numbers(&log), (0..14).chain(16..30).collect::<Vec<_>>());
    let log = log.borrow();
    assert_eq!(log.findings.len(), 1, "{:?}", log.findings);
    assert!(log.findings[0].message.starts_with("1 log records"), "{:?}", log.findings);
    assert!(log.read_failure().unwrap().finding("s").message.contains("failed to read 1 log records"));
}

#[test]
fn r07_a_damaged_segment_that_is_found_by_several_reads_is_reported_once() {
    let spy = turns(400, 2000);
    let log = open(&spy, "s");
    while log.borrow().has_unmerged() {
        let operation = format!("merge {}", log.borrow().revision);
        block_on(merge_oldest(&spy, &log, &operation)).unwrap();
    }
    let segments = block_on(spy.data.read("s", Query::all(Table::Log))).unwrap();
    // The one that both halves of the log reach.
    let mut segment = segments.into_iter().find(|record| record.spans(199) && record.spans(200)).unwrap();
    let (first, last) = (segment.key as usize, segment.last_key.unwrap() as usize);
    segment.value = flipped(&segment.value, 0, 0x40);
    tamper(&spy.data, "s", vec![segment], Vec::new(), |head| head);
    spy.unreadable.replace(vec![399]);
    let log = open(&spy, "s");
    assert_eq!(numbers(&log), (0..first).chain(last + 1..399).collect::<Vec<_>>());
    assert_eq!(log.borrow().findings.len(), 1, "{:?}", log.borrow().findings);
}

#[test]
fn r07_a_log_with_many_records_that_cannot_be_read_is_read_a_limited_number_of_times() {
    let spy = turns(1_000, 10);
    spy.unreadable.replace((200..1_000).filter(|key| key % 2 == 1).collect());
    spy.reads.set(0);
    let log = open(&spy, "s");
    assert!(numbers(&log).len() >= 100 && log.borrow().read_failure().is_some());
    assert!(spy.reads.get() <= 200, "{} reads", spy.reads.get());
}
