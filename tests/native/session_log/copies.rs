//! Copies of logs with segments, damaged records and summaries (R37).

use super::compaction::{compaction, store_compaction};
use super::*;
use rethread::session_head::UnfinishedErasure;
use rethread::store::{MergeOutcome, SessionArchive, SessionCopy, merge_oldest};
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

/// A store with a copy of the session "s" up to a message.
fn copied(store: &dyn LogStore, until: Option<&str>) -> MemoryStore {
    let (archive, _) = block_on(SessionArchive::read(store, "s", SEED)).unwrap();
    let (until, operation) = (until.map(ToOwned::to_owned), "copy".to_owned());
    let copy = archive.copy_branch(&SessionCopy { branch: 0, until, operation, at: 9_000, seed: SEED }).unwrap();
    let target = MemoryStore::default();
    block_on(copy.restore(&target, "copy", ("restore", None))).unwrap();
    target
}

fn ids(log: &RefCell<SessionLog>) -> Vec<String> {
    log.borrow().history.messages().iter().map(|message| message.id.clone()).collect()
}

#[test]
fn r37_a_copy_of_segments_has_segments_up_to_the_cut() {
    let spy = Spy::default();
    spy.limit.set(Some(2048));
    let log = open(&spy, "s");
    for at in 0..120 {
        append(&spy, &log, &format!("n{at}"), &said(&format!("text {at}"))).unwrap();
    }
    while block_on(merge_oldest(&spy, &log, &format!("merge {}", log.borrow().revision))).unwrap()
        == MergeOutcome::Progress
    {}
    let all = ids(&log);
    assert_eq!(all.len(), 240);
    let segments = |store: &MemoryStore, session: &str| {
        let records = block_on(store.read(session, Query::all(Table::Log))).unwrap();
        records.into_iter().filter(|record| record.last_key.is_some()).collect::<Vec<_>>()
    };
    let before = segments(&spy.data, "s");
    assert!(before.len() > 3, "{} segments", before.len());
    for count in (1..=all.len()).step_by(17) {
        let target = copied(&spy, Some(&all[count - 1]));
        let copy = open(&target, "copy");
        assert_eq!(ids(&copy), all[..count]);
        assert!(copy.borrow().findings.is_empty());
        assert_eq!(copy.borrow().head.message_count(), count as u64);
        let mine = segments(&target, "copy");
        // The last one may be cut.
        let whole = mine.len().saturating_sub(1);
        assert_eq!(mine[..whole], before[..whole]);
        assert_eq!(copy.borrow().head.merged_until, mine.last().map_or(0, |last| last.last_key.unwrap() + 1));
        append(&target, &copy, "more", &said("more")).unwrap();
        assert_eq!(ids(&open(&target, "copy")).len(), count + 2);
    }
    let whole = copied(&spy, None);
    assert_eq!(segments(&whole, "copy"), before);
    assert_eq!(open(&whole, "copy").borrow().head.log_bytes, log.borrow().head.log_bytes);
}

#[test]
fn r37_what_is_damaged_is_copied_as_it_is() {
    let store = MemoryStore::default();
    let log = open(&store, "s");
    for at in 0..6 {
        append(&store, &log, &format!("n{at}"), &said(&format!("text {at}"))).unwrap();
    }
    let mut damaged = block_on(store.read("s", Query::all(Table::Log))).unwrap()[2].clone();
    let mut bytes = damaged.value.to_vec();
    *bytes.last_mut().unwrap() ^= 1;
    damaged.value = bytes.into();
    tamper(&store, "s", vec![damaged.clone()], Vec::new(), |head| head);
    let all = ids(&open(&store, "s"));
    assert_eq!(all.len(), 10);
    let target = copied(&store, Some(&all[6]));
    let copy = open(&target, "copy");
    assert_eq!((ids(&copy), copy.borrow().findings.len()), (all[..7].to_vec(), 1));
    assert_eq!(block_on(target.read("copy", Query::all(Table::Log))).unwrap()[2].value, damaged.value);
    // Before it there is no damage.
    let target = copied(&store, Some(&all[3]));
    assert!(open(&target, "copy").borrow().findings.is_empty());
}

#[test]
fn r37_r36_a_summary_is_copied_if_it_was_stored_before_the_cut() {
    let store = MemoryStore::default();
    let log = open(&store, "s");
    for at in 0..4 {
        append(&store, &log, &format!("n{at}"), &said(&format!("text {at}"))).unwrap();
    }
    let summary = compaction(&log, "<early>").unwrap();
    store_compaction(&store, &log, "early", summary).unwrap();
    append(&store, &log, "later", &said("later")).unwrap();
    let summary = compaction(&log, "<late>").unwrap();
    store_compaction(&store, &log, "late", summary).unwrap();
    let all = ids(&log);
    let of = |until: Option<&String>| {
        let copy = open(&copied(&store, until.map(String::as_str)), "copy");
        let log = copy.borrow();
        log.history.compaction().map(|active| format!("{:?}", active.stored.message.parts))
    };
    assert!(of(all.last()).unwrap().contains("<late>") && of(None).unwrap().contains("<late>"));
    assert!(of(Some(&all[8])).unwrap().contains("<early>"));
    assert!(of(Some(&all[7])).unwrap().contains("<early>"), "stored directly after the message");
    assert_eq!(of(Some(&all[6])), None);
}

#[test]
fn r37_r59_an_erasure_that_was_cut_off_goes_on_in_the_copy() {
    let store = MemoryStore::default();
    let log = open(&store, "s");
    append(&store, &log, "one", &said("one")).unwrap();
    append(&store, &log, "two", &said("two")).unwrap();
    let all = ids(&log);
    let (mut archive, _) = block_on(SessionArchive::read(&store, "s", SEED)).unwrap();
    let pending = vec![all[0].clone(), all[3].clone()];
    archive.head.erasing = UnfinishedErasure { pending, messages: vec!["gone".into()], ..UnfinishedErasure::default() };
    let copy = SessionCopy { branch: 0, until: Some(all[1].clone()), operation: "copy".into(), at: 1, seed: SEED };
    let expected = UnfinishedErasure { pending: vec![all[0].clone()], ..UnfinishedErasure::default() };
    assert_eq!(archive.copy_branch(&copy).unwrap().head.erasing, expected);
}
