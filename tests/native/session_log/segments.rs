//! Log records that are merged into segments: the history stays what it is, whatever happens meanwhile.

use super::*;
use proptest::prelude::*;
use rethread::store::{MergeOutcome, merge_oldest, split_segment};
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

/// A limit of values with which a few records are a segment.
const SMALL: u64 = 2048;

fn spy() -> Spy {
    let spy = Spy::default();
    spy.limit.set(Some(SMALL));
    spy
}

fn filled(spy: &Spy, count: usize) -> RefCell<SessionLog> {
    let log = open(spy, "s");
    for at in 0..count {
        append(spy, &log, &format!("n{at}"), &said(&format!("text {at}"))).unwrap();
    }
    log
}

/// Merges until nothing is left to merge. Returns the number of steps.
fn merge_all(spy: &Spy, log: &RefCell<SessionLog>) -> usize {
    let mut steps = 0;
    while block_on(merge_oldest(spy, log, &format!("merge {}", log.borrow().revision))).unwrap()
        == MergeOutcome::Progress
    {
        steps += 1;
        assert!(steps < 1000, "it merges forever");
    }
    steps
}

fn stored(spy: &Spy) -> Vec<Record> {
    block_on(spy.data.read("s", Query::all(Table::Log))).unwrap()
}

/// The keys and values of all log records, in segments or not.
fn parts(spy: &Spy) -> Vec<(u64, bytes::Bytes)> {
    stored(spy).iter().flat_map(|record| split_segment(record).unwrap().records).collect()
}

#[test]
fn r46_a_merge_keeps_every_record_and_the_revision_of_history() {
    let spy = spy();
    let log = filled(&spy, 100);
    let (before, history) = (parts(&spy), log.borrow().history.messages().to_vec());
    let revision = log.borrow().head.history_revision;
    assert!(merge_all(&spy, &log) >= 5);
    assert!(!log.borrow().has_unmerged());
    let records = stored(&spy);
    assert!(records.len() < 30, "{} records are left", records.len());
    assert!(records.iter().all(|record| record.value.len() as u64 <= SMALL));
    assert_eq!(parts(&spy), before);
    let again = open(&spy, "s");
    assert_eq!(again.borrow().history.messages(), history);
    assert!(again.borrow().findings.is_empty());
    assert_eq!((again.borrow().head.history_revision, log.borrow().head.history_revision), (revision, revision));
    // Both go on, from the same numbers.
    append(&spy, &log, "after", &said("after")).unwrap();
    block_on(refresh(&spy, &again)).unwrap();
    assert_eq!(again.borrow().history.messages(), log.borrow().history.messages());
    let merged = stored(&spy);
    merge_all(&spy, &open(&spy, "s"));
    assert_eq!(stored(&spy), merged, "what is merged is merged");
}

#[test]
fn r06_merged_records_are_read_in_few_reads() {
    let spy = Spy::default();
    let log = filled(&spy, 900);
    merge_all(&spy, &log);
    let records = stored(&spy);
    let segments: Vec<_> = records.iter().filter(|record| record.last_key.is_some()).collect();
    assert!(!segments.is_empty() && segments.iter().all(|segment| segment.value.len() <= 256 * 1024));
    spy.reads.set(0);
    assert_eq!(open(&spy, "s").borrow().history.messages().len(), 1800);
    assert_eq!(spy.reads.get(), 1);
}

#[test]
fn r47_a_reader_with_an_older_position_continues_inside_a_segment() {
    for seen in [0, 1, 7, 50, 99] {
        let spy = spy();
        let log = filled(&spy, seen);
        let older = open(&spy, "s");
        for at in seen..100 {
            append(&spy, &log, &format!("n{at}"), &said(&format!("text {at}"))).unwrap();
        }
        merge_all(&spy, &log);
        // The one that appends without a refresh learns of the merge by the conflict.
        append(&spy, &older, "late", &said("late")).unwrap();
        let again = open(&spy, "s");
        assert_eq!(texts(&older).len(), 101, "position {seen}");
        assert_eq!(older.borrow().history.messages(), again.borrow().history.messages());
        assert!(older.borrow().findings.is_empty(), "{:?}", older.borrow().findings);
        let merged = stored(&spy);
        merge_all(&spy, &older);
        assert_eq!(stored(&spy), merged, "what is merged is merged");
    }
}

#[test]
fn r48_a_merge_keeps_unreadable_records_unchanged() {
    let spy = spy();
    drop(filled(&spy, 40));
    let mut broken = log_record(&spy.data, 11);
    broken.value = flipped(&broken.value, 30, 1);
    tamper(&spy.data, "s", vec![broken.clone()], vec![(Table::Log, 25)], |head| head);
    let log = open(&spy, "s");
    let (read, findings) = (texts(&log), log.borrow().findings.clone());
    assert_eq!((read.len(), findings.len()), (38, 2));
    assert!(merge_all(&spy, &log) > 0);
    assert!(stored(&spy).contains(&broken), "the damaged record is where it was");
    let again = open(&spy, "s");
    assert_eq!((texts(&again), again.borrow().findings.clone()), (read, findings));
}

#[test]
fn r48_a_record_damaged_after_it_was_read_is_not_merged() {
    let spy = spy();
    let log = filled(&spy, 40);
    let mut broken = log_record(&spy.data, 3);
    broken.value = flipped(&broken.value, 30, 1);
    tamper(&spy.data, "s", vec![broken.clone()], Vec::new(), |head| head);
    block_on(refresh(&spy, &log)).unwrap();
    merge_all(&spy, &log);
    assert!(stored(&spy).contains(&broken));
    assert_eq!(texts(&open(&spy, "s")).len(), 39);
}

#[test]
fn r48_damage_in_a_segment_loses_one_record_and_in_its_index_the_segment() {
    for (at, lost) in [(500, 1), (20, 0)] {
        let spy = spy();
        let log = filled(&spy, 40);
        merge_all(&spy, &log);
        let segment = stored(&spy).into_iter().find(|record| record.last_key.is_some()).unwrap();
        let lost = if lost > 0 { lost } else { split_segment(&segment).unwrap().records.len() };
        let damaged = Record { value: flipped(&segment.value, at, 1), ..segment };
        tamper(&spy.data, "s", vec![damaged.clone()], Vec::new(), |head| head);
        let again = open(&spy, "s");
        assert_eq!(texts(&again).len(), 40 - lost);
        assert_eq!(again.borrow().findings.len(), 1);
        append(&spy, &again, "d", &said("d")).unwrap();
        assert_eq!(again.borrow().history.messages().last().unwrap().turn, 40, "numbers are not used again");
        merge_all(&spy, &again);
        assert!(stored(&spy).contains(&damaged));
    }
}

#[test]
fn r48_a_lost_head_is_rebuilt_from_segments() {
    let spy = spy();
    let log = filled(&spy, 60);
    merge_all(&spy, &log);
    spy.data.lose_head("s");
    let again = open(&spy, "s");
    assert_eq!(again.borrow().history.messages(), log.borrow().history.messages());
    append(&spy, &again, "after", &said("after")).unwrap();
    assert_eq!(texts(&open(&spy, "s")).len(), 61);
}

#[test]
fn records_close_to_the_size_limit_are_not_merged() {
    let spy = spy();
    let log = open(&spy, "s");
    for at in 0..20 {
        append(&spy, &log, &format!("n{at}"), &said(&"x".repeat(1500))).unwrap();
    }
    assert!(!log.borrow().has_unmerged());
    assert_eq!(block_on(merge_oldest(&spy, &log, "m")).unwrap(), MergeOutcome::Nothing);
}

/// What happens next, in the property test.
#[derive(Clone, Debug)]
enum Happening {
    /// A writer appends; the reply may be lost, and then it appends the same again.
    Append {
        writer: usize,
        reply_lost: bool,
    },
    Refresh {
        writer: usize,
    },
    Reopen {
        writer: usize,
    },
    /// A merge by one writer. After `waits` of its waits another one appends, and then the merge is finished or killed.
    Merge {
        writer: usize,
        waits: usize,
        append: bool,
        killed: bool,
    },
}

fn happening() -> impl Strategy<Value = Happening> {
    let writer = 0_usize..2;
    prop_oneof![
        4 => (writer.clone(), any::<bool>()).prop_map(|(writer, reply_lost)| Happening::Append { writer, reply_lost }),
        1 => writer.clone().prop_map(|writer| Happening::Refresh { writer }),
        1 => writer.clone().prop_map(|writer| Happening::Reopen { writer }),
        4 => (writer, 0_usize..8, any::<bool>(), any::<bool>())
            .prop_map(|(writer, waits, append, killed)| Happening::Merge { writer, waits, append, killed }),
    ]
}

/// Appends the next text, and adds it to the expected ones.
fn append_next(spy: &Spy, log: &RefCell<SessionLog>, expected: &mut Vec<String>) {
    let text = format!("text {}", expected.len());
    append(spy, log, &text, &said(&text)).unwrap();
    expected.push(text);
}

fn merge_interrupted(
    spy: &Spy,
    logs: &[RefCell<SessionLog>],
    (writer, waits, killed): (usize, usize, bool),
    between: &mut dyn FnMut(&RefCell<SessionLog>),
) {
    spy.waits.set(true);
    let operation = format!("merge {} {}", writer, spy.appends.get());
    let mut merging = pin!(merge_oldest(spy, &logs[writer], &operation));
    let mut context = Context::from_waker(Waker::noop());
    let done = (0..waits).any(|_| merging.as_mut().poll(&mut context).is_ready());
    spy.waits.set(false);
    // Another process, or another call in this one.
    between(&logs[1 - writer]);
    between(&logs[writer]);
    if !done && !killed {
        block_on(merging).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn r47_appends_merges_and_kills_in_any_order_give_the_same_history(
        filled_with in 0_usize..40,
        happenings in proptest::collection::vec(happening(), 1..40),
    ) {
        let spy = spy();
        let mut logs = [filled(&spy, 0), open(&spy, "s")];
        let mut expected = Vec::new();
        for _ in 0..filled_with {
            append_next(&spy, &logs[0], &mut expected);
        }
        for happening in happenings {
            match happening {
                Happening::Append { writer, reply_lost: false } => append_next(&spy, &logs[writer], &mut expected),
                Happening::Append { writer, reply_lost: true } => {
                    block_on(refresh(&spy, &logs[writer])).unwrap();
                    let text = format!("text {}", expected.len());
                    let change = change(&logs[writer], &text, &said(&text));
                    spy.faults.borrow_mut().push(Some(Fault::LosesReply));
                    prop_assert!(block_on(commit(&spy, &logs[writer], &change)).is_err());
                    block_on(merge_oldest(&spy, &logs[1 - writer], &format!("merge after {text}"))).unwrap();
                    block_on(commit(&spy, &logs[writer], &change)).unwrap();
                    expected.push(text);
                }
                Happening::Refresh { writer } => drop(block_on(refresh(&spy, &logs[writer])).unwrap()),
                Happening::Reopen { writer } => logs[writer] = open(&spy, "s"),
                Happening::Merge { writer, waits, append, killed } => {
                    merge_interrupted(&spy, &logs, (writer, waits, killed), &mut |log| {
                        if append {
                            append_next(&spy, log, &mut expected);
                        }
                    });
                }
            }
            prop_assert_eq!(parts(&spy).iter().map(|(key, _)| *key).collect::<Vec<_>>(), (0..expected.len() as u64).collect::<Vec<_>>());
        }
        let reopened = open(&spy, "s");
        prop_assert_eq!(&texts(&reopened), &expected);
        prop_assert!(reopened.borrow().findings.is_empty());
        for log in &logs {
            block_on(refresh(&spy, log)).unwrap();
            prop_assert_eq!(&texts(log), &expected);
            prop_assert!(log.borrow().findings.is_empty());
            merge_all(&spy, log);
        }
        prop_assert_eq!(&texts(&open(&spy, "s")), &expected);
    }
}
