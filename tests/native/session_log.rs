//! The session log over a store that is counted, torn, refused and shared.

mod archive;
mod branches;
mod compaction;
mod conflicts;
mod copies;
mod many_branches;
mod partial_reads;
mod segments;
mod tails;

use crate::scripted_host;
use crate::spy_store;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use rethread::error::{Error, ErrorCode};
use rethread::history::{Incoming, JoinBase, Origin, join};
use rethread::json::JsonRef;
use rethread::provider::decode_body;
use rethread::store::{
    Batch, Change, Committed, LogStore, MemoryStore, Query, Record, RecordKind, SessionLog, Table, commit, open_record,
    open_session, refresh,
};
use scripted_host::{CHAT, Host, SEED, block_on};
use spy_store::{Fault, Spy};
use std::cell::RefCell;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

fn open(store: &dyn LogStore, session: &str) -> RefCell<SessionLog> {
    RefCell::new(block_on(open_session(store, session, SEED, 1)).unwrap())
}

fn items(messages: &str) -> Vec<Incoming> {
    decode_body(CHAT, JsonRef::parse(messages).unwrap()).unwrap()
}

/// An append as the bindings make it. `name` keeps the ids apart.
fn change(log: &RefCell<SessionLog>, name: &str, messages: &str) -> Change {
    let log = log.borrow();
    let joined = join(
        JoinBase::history(&log.history),
        items(messages),
        &Origin { at: 1_000, ..Origin::default() },
        &Named(name, 0.into()),
    );
    Change { operation: name.into(), at: 1_000, entries: joined.entries, ..Change::default() }
}

struct Named<'n>(&'n str, std::cell::Cell<u32>);

impl rethread::id::IdSource for Named<'_> {
    fn new_id(&self) -> String {
        self.1.set(self.1.get() + 1);
        format!("{}-{}", self.0, self.1.get())
    }
}

/// The revision after a commit.
fn written(committing: impl Future<Output = Result<Committed, Error>>) -> Result<u64, Error> {
    block_on(committing).map(|committed| committed.revision)
}

fn append(store: &dyn LogStore, log: &RefCell<SessionLog>, name: &str, messages: &str) -> Result<u64, Error> {
    let change = change(log, name, messages);
    written(commit(store, log, &change))
}

fn said(text: &str) -> String {
    format!(r#"[{{"role":"user","content":"{text}"}},{{"role":"assistant","content":"yes"}}]"#)
}

fn texts(log: &RefCell<SessionLog>) -> Vec<String> {
    let user = |m: &&rethread::message::Message| m.role == rethread::message::Role::User;
    log.borrow()
        .history
        .messages()
        .iter()
        .filter(user)
        .map(|m| {
            if let rethread::message::PartBody::Text(t) = &m.parts[0].body {
                t.decode().into_owned()
            } else {
                String::new()
            }
        })
        .collect()
}

/// Writes past the log, as a disk that rots does.
fn tamper(
    store: &MemoryStore,
    session: &str,
    put: Vec<Record>,
    remove: Vec<(Table, u64)>,
    head: impl Fn(Vec<u8>) -> Vec<u8>,
) {
    let now = block_on(store.head(session)).unwrap().unwrap();
    let batch = Batch { head: head(now.value.to_vec()).into(), replace: put, remove, ..Batch::default() };
    block_on(store.append(session, now.revision, batch, &format!("tamper{}", now.revision))).unwrap();
}

fn log_record(store: &MemoryStore, key: u64) -> Record {
    block_on(store.read("s", Query { from: key, to: key, ..Query::all(Table::Log) })).unwrap().remove(0)
}

fn three_turns() -> MemoryStore {
    let store = MemoryStore::default();
    let log = open(&store, "s");
    for name in ["a", "b", "c"] {
        append(&store, &log, name, &said(name)).unwrap();
    }
    store
}

#[test]
fn r06_opening_an_empty_session_reads_only_its_head() {
    let spy = Spy::default();
    let log = open(&spy, "s");
    assert_eq!((spy.heads.get(), spy.reads.get()), (1, 0));
    assert_eq!(log.borrow().revision, 0);
    // A session with a title and no message is empty, too.
    let titled = Change {
        operation: "t".into(),
        at: 5,
        edit: Some(Box::new(|head| head.title = Some("T".into()))),
        ..Change::default()
    };
    written(commit(&spy, &log, &titled)).unwrap();
    let spy = Spy::new(&spy.data);
    assert_eq!(open(&spy, "s").borrow().head.title.as_deref(), Some("T"));
    assert_eq!((spy.heads.get(), spy.reads.get()), (1, 0));
}

#[test]
fn r06_the_number_of_reads_at_opening_is_bounded_by_the_bytes() {
    for (count, size) in [(1, 10), (1, 3_000_000), (40, 100_000), (300, 2_000)] {
        let store = MemoryStore::default();
        let log = open(&store, "s");
        for at in 0..count {
            append(&store, &log, &format!("n{at}"), &said(&"x".repeat(size))).unwrap();
        }
        let bytes: u64 = block_on(store.read("s", Query::all(Table::Log)))
            .unwrap()
            .iter()
            .map(|record| record.value.len() as u64)
            .sum();
        assert_eq!(log.borrow().head.log_bytes, bytes);
        let spy = Spy::new(&store);
        let opened = open(&spy, "s");
        assert_eq!(opened.borrow().history.messages(), log.borrow().history.messages());
        let reads = u64::from(spy.heads.get() + spy.reads.get());
        assert!(reads <= 1 + bytes.div_ceil(256 * 1024), "{reads} reads for {bytes} bytes");
    }
}

#[test]
fn r07_a_corrupt_record_affects_no_other_record() {
    for broken in 0..3 {
        let store = three_turns();
        let mut record = log_record(&store, broken);
        let middle = record.value.len() / 2;
        record.value = flipped(&record.value, middle, 0x40);
        tamper(&store, "s", vec![record.clone()], Vec::new(), |head| head);
        let log = open(&store, "s");
        let want: Vec<_> = ["a", "b", "c"]
            .iter()
            .enumerate()
            .filter(|(at, _)| *at as u64 != broken)
            .map(|(_, name)| (*name).to_owned())
            .collect();
        assert_eq!(texts(&log), want);
        assert_eq!(
            log.borrow().findings.iter().map(|finding| finding.code.as_str()).collect::<Vec<_>>(),
            ["malformed"]
        );
        // Numbering goes on behind what cannot be read, and what cannot be read is left as it is.
        append(&store, &log, "d", &said("d")).unwrap();
        let last = log.borrow().history.messages().last().unwrap().clone();
        assert_eq!((last.seq, last.turn), (7, 3));
        assert_eq!(log_record(&store, broken), record);
        let again = open(&store, "s");
        assert_eq!(again.borrow().history.messages(), log.borrow().history.messages());
    }
}

#[test]
fn r07_a_missing_record_is_reported() {
    for gone in 0..3 {
        let store = three_turns();
        let stale = open(&store, "s");
        tamper(&store, "s", Vec::new(), vec![(Table::Log, gone)], |head| head);
        let log = open(&store, "s");
        assert_eq!(texts(&log).len(), 2);
        assert_eq!(log.borrow().findings.len(), 1, "record {gone}");
        append(&store, &log, "d", &said("d")).unwrap();
        assert_eq!(log.borrow().history.messages().last().unwrap().turn, 3);
        // The one that has it in memory goes on from there.
        block_on(refresh(&store, &stale)).unwrap();
        assert_eq!(texts(&stale), ["a", "b", "c", "d"]);
    }
}

#[test]
fn r07_a_missing_last_record_is_reported_to_another_tab() {
    let store = MemoryStore::default();
    let log = open(&store, "s");
    append(&store, &log, "a", &said("a")).unwrap();
    let other = open(&store, "s");
    append(&store, &log, "b", &said("b")).unwrap();
    tamper(&store, "s", Vec::new(), vec![(Table::Log, 1)], |head| head);
    block_on(refresh(&store, &other)).unwrap();
    assert_eq!(other.borrow().findings.len(), 1);
    assert_eq!(other.borrow().head.next_record, 2);
}

fn flipped(bytes: &[u8], at: usize, bits: u8) -> bytes::Bytes {
    let mut bytes = bytes.to_vec();
    bytes[at] ^= bits;
    bytes.into()
}

#[test]
fn r07_a_newer_schema_is_read_only_and_readable() {
    // A newer record.
    let store = three_turns();
    let mut record = log_record(&store, 1);
    record.value = flipped(&record.value, 0, 2);
    tamper(&store, "s", vec![record], Vec::new(), |head| head);
    let log = open(&store, "s");
    assert_eq!(texts(&log), ["a", "c"]);
    assert_eq!(log.borrow().writable().unwrap_err().code, ErrorCode::UnsupportedVersion);
    assert_eq!(append(&store, &log, "d", &said("d")).unwrap_err().code, ErrorCode::UnsupportedVersion);
    // A newer head.
    let store = three_turns();
    let newer = |mut head: Vec<u8>| {
        head[0] += 1;
        head
    };
    let stale = open(&store, "s");
    tamper(&store, "s", Vec::new(), Vec::new(), newer);
    let log = open(&store, "s");
    assert_eq!(texts(&log), ["a", "b", "c"]);
    let before = block_on(store.head("s")).unwrap();
    assert_eq!(append(&store, &log, "d", &said("d")).unwrap_err().code, ErrorCode::UnsupportedVersion);
    // Nor does one write that had it open before the update.
    assert_eq!(append(&store, &stale, "e", &said("e")).unwrap_err().code, ErrorCode::UnsupportedVersion);
    assert_eq!(block_on(store.head("s")).unwrap(), before);
}

#[test]
fn r48_an_unreadable_store_is_an_error_not_an_empty_chat() {
    let spy = Spy::new(&three_turns());
    spy.reading_fails.set(true);
    assert_eq!(block_on(open_session(&spy, "s", SEED, 1)).err().unwrap().code, ErrorCode::StoreError);
    spy.reading_fails.set(false);
    let log = open(&spy, "s");
    let other = open(&spy.data, "s");
    append(&spy.data, &other, "d", &said("d")).unwrap();
    spy.reading_fails.set(true);
    // The conflict cannot be resolved: nothing is written, nothing is forgotten.
    assert_eq!(append(&spy, &log, "e", &said("e")).unwrap_err().code, ErrorCode::StoreError);
    assert_eq!(texts(&log), ["a", "b", "c"]);
    spy.reading_fails.set(false);
    append(&spy, &log, "e", &said("e")).unwrap();
    assert_eq!(texts(&log), ["a", "b", "c", "d", "e"]);
}

#[test]
fn r48_a_rejected_write_changes_nothing() {
    let spy = Spy::new(&three_turns());
    let log = open(&spy, "s");
    let before = block_on(spy.data.read("s", Query::all(Table::Log))).unwrap();
    for code in [ErrorCode::QuotaExceeded, ErrorCode::StoreError, ErrorCode::Busy] {
        spy.faults.borrow_mut().push(Some(Fault::Refuses(code)));
        assert_eq!(append(&spy, &log, "d", &said("d")).unwrap_err().code, code);
        assert_eq!((texts(&log).len(), log.borrow().revision, log.borrow().head.next_record), (3, 3, 3));
    }
    spy.limit.set(Some(500));
    assert_eq!(append(&spy, &log, "d", &said(&"x".repeat(1_000))).unwrap_err().code, ErrorCode::TooLarge);
    assert_eq!(block_on(spy.data.read("s", Query::all(Table::Log))).unwrap(), before);
}

#[test]
fn r47_a_lost_reply_duplicates_nothing() {
    let spy = Spy::new(&three_turns());
    let log = open(&spy, "s");
    let change = change(&log, "d", &said("d"));
    spy.faults.borrow_mut().push(Some(Fault::LosesReply));
    assert_eq!(written(commit(&spy, &log, &change)).unwrap_err().code, ErrorCode::StoreError);
    assert_eq!(written(commit(&spy, &log, &change)).unwrap(), 4);
    assert_eq!(texts(&log), ["a", "b", "c", "d"]);
    assert_eq!(block_on(spy.data.read("s", Query::all(Table::Log))).unwrap().len(), 4);
    append(&spy, &log, "e", &said("e")).unwrap();
    assert_eq!(texts(&open(&spy.data, "s")), ["a", "b", "c", "d", "e"]);
}

/// Polls two futures in turn until both are done.
fn in_turn(one: impl Future<Output = ()>, two: impl Future<Output = ()>) {
    let (mut one, mut two) = (pin!(one), pin!(two));
    let mut done = [false, false];
    while done != [true, true] {
        let context = &mut Context::from_waker(Waker::noop());
        done[0] = done[0] || matches!(one.as_mut().poll(context), Poll::Ready(()));
        done[1] = done[1] || matches!(two.as_mut().poll(context), Poll::Ready(()));
    }
}

#[test]
fn r47_two_writers_lose_and_duplicate_nothing() {
    let data = MemoryStore::default();
    let (one, two) = (Spy::new(&data), Spy::new(&data));
    one.slow.set(true);
    two.slow.set(true);
    let (log_one, log_two) = (open(&one, "s"), open(&two, "s"));
    let orphan = r#",{"role":"tool","tool_call_id":"nobody","content":"x"}]"#;
    let write = async |store: &Spy, log: &RefCell<SessionLog>, who: &str| {
        for at in 0..100 {
            let messages = said(&format!("{who}{at}")).replace("}]", &format!("}}{orphan}"));
            let change = change(log, &format!("{who}{at}"), &messages);
            commit(store, log, &change).await.unwrap();
        }
    };
    in_turn(write(&one, &log_one, "one"), write(&two, &log_two, "two"));
    assert!(one.appends.get() + two.appends.get() > 250, "they hardly met");
    for (store, log) in [(&one, &log_one), (&two, &log_two)] {
        block_on(refresh(store, log)).unwrap();
    }
    let all = open(&data, "s");
    let (a, b, c) = (log_one.borrow(), log_two.borrow(), all.borrow());
    assert_eq!(c.history.messages().len(), 400);
    for other in [&a, &b] {
        assert_eq!(
            (other.history.messages(), other.head.clone(), other.revision),
            (c.history.messages(), c.head.clone(), c.revision)
        );
        assert_eq!(other.history.set_aside().len(), 200);
        assert!(other.findings.is_empty());
    }
    let seqs: Vec<_> = c.history.messages().iter().map(|message| message.seq).collect();
    assert_eq!(seqs, (0..400).collect::<Vec<_>>());
    // Each append is whole and in its writer's order.
    for who in ["one", "two"] {
        let own: Vec<_> = texts(&all).into_iter().filter(|text| text.starts_with(who)).collect();
        assert_eq!(own, (0..100).map(|at| format!("{who}{at}")).collect::<Vec<_>>());
    }
    assert!(
        c.history
            .messages()
            .chunks(2)
            .all(|pair| pair[0].turn == pair[1].turn && pair[0].id.split('-').next() == pair[1].id.split('-').next())
    );
}

#[test]
fn r47_a_writer_with_an_outdated_expected_revision_gets_conflict() {
    let store = three_turns();
    let (one, two) = (open(&store, "s"), open(&store, "s"));
    let expecting = |log: &RefCell<SessionLog>, name: &str, expected| Change {
        expected: Some(expected),
        ..change(log, name, &said(name))
    };
    let first = expecting(&one, "d", 3);
    assert_eq!(written(commit(&store, &one, &first)).unwrap(), 4);
    // It has not seen the other's append yet.
    let second = expecting(&two, "e", 3);
    let error = written(commit(&store, &two, &second)).unwrap_err();
    assert_eq!(error.code, ErrorCode::Conflict);
    assert!(error.details.as_ref().unwrap().as_str().contains("\"revision\":4"));
    assert_eq!(texts(&two), ["a", "b", "c", "d"]);
    // A title is no history and leaves its revision; one from the future may not append.
    let titled = Change {
        operation: "t".into(),
        at: 5,
        edit: Some(Box::new(|head| head.title = Some("T".into()))),
        ..Change::default()
    };
    assert_eq!(written(commit(&store, &one, &titled)).unwrap(), 4);
    let future = expecting(&two, "f", 6);
    assert_eq!(written(commit(&store, &two, &future)).unwrap_err().code, ErrorCode::Conflict);
    let third = expecting(&two, "g", 4);
    assert_eq!(written(commit(&store, &two, &third)).unwrap(), 5);
    assert_eq!(two.borrow().head.title.as_deref(), Some("T"));
    // A session that must not be there yet.
    let fresh = open(&store, "new");
    let created = expecting(&fresh, "h", 0);
    assert_eq!(written(commit(&store, &fresh, &created)).unwrap(), 1);
    let late = open(&MemoryStore::default(), "new");
    let late = expecting(&late, "i", 0);
    assert_eq!(written(commit(&store, &fresh, &late)).unwrap_err().code, ErrorCode::Conflict);
}

#[test]
fn r48_an_open_handle_does_not_restore_a_deleted_session() {
    let store = three_turns();
    let stale = open(&store, "s");
    block_on(store.delete_session("s")).unwrap();
    assert_eq!(append(&store, &stale, "d", &said("d")).unwrap_err().code, ErrorCode::NotFound);
    assert!(texts(&stale).is_empty());
    assert!(block_on(store.head("s")).unwrap().is_none());
    // Opened after the deletion it is a new one.
    let fresh = open(&store, "s");
    append(&store, &fresh, "n", &said("new")).unwrap();
    assert_eq!(texts(&open(&store, "s")), ["new"]);
    assert_eq!((fresh.borrow().head.born, fresh.borrow().revision), (5, 5));
    // Who expects a revision of the deleted one is told.
    assert_eq!(fresh.borrow().head.history_revision, 5);
}

#[test]
fn r48_a_recreated_session_is_a_different_session() {
    let store = three_turns();
    let (writer, reader) = (open(&store, "s"), open(&store, "s"));
    block_on(store.delete_session("s")).unwrap();
    let fresh = open(&store, "s");
    for name in ["p", "q", "r", "t"] {
        append(&store, &fresh, name, &said(name)).unwrap();
    }
    // Who had the old one open neither mixes the two nor writes to the new one unseen.
    assert_eq!(append(&store, &writer, "d", &said("d")).unwrap_err().code, ErrorCode::NotFound);
    let generation = reader.borrow().generation;
    assert!(block_on(refresh(&store, &reader)).unwrap());
    assert_eq!(texts(&reader), ["p", "q", "r", "t"]);
    assert!(reader.borrow().generation > generation);
    assert_eq!(texts(&open(&store, "s")), ["p", "q", "r", "t"]);
    append(&store, &reader, "u", &said("u")).unwrap();
    assert_eq!(reader.borrow().history.messages().last().unwrap().turn, 4);
}

#[test]
fn r05_an_id_that_another_writer_used_meanwhile_is_replaced() {
    let store = MemoryStore::default();
    let (one, two) = (open(&store, "s"), open(&store, "s"));
    let turn = r#"[{"role":"user","content":"go"},{"role":"assistant","content":null,"tool_calls":[{"id":"call_0","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"call_0","content":"r"},{"role":"assistant","content":"done"}]"#;
    let late = change(&two, "two", turn);
    append(&store, &one, "one", turn).unwrap();
    written(commit(&store, &two, &late)).unwrap();
    let log = two.borrow();
    let ids: Vec<_> =
        log.history.invocations().iter().map(|call| (call.number, call.turn, call.wire_id().to_owned())).collect();
    assert_eq!((ids[0].0, ids[0].1, ids[0].2.as_str()), (0, 0, "call_0"));
    assert_eq!((ids[1].0, ids[1].1), (1, 1));
    assert_ne!(ids[1].2, "call_0");
    drop(log);
    Host::open(&store, "s", "r").render(CHAT);
}

#[test]
fn r01_a_later_result_updates_its_audit_row() {
    let store = MemoryStore::default();
    let log = open(&store, "s");
    append(&store, &log, "one", r#"[{"role":"user","content":"go"},{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]}]"#).unwrap();
    let rows = || -> Vec<rethread::store::AuditRow> {
        let records = block_on(store.read("s", Query::all(Table::ToolInvocations))).unwrap();
        records.iter().map(|record| open_record(RecordKind::Audit, &record.value).unwrap()).collect()
    };
    assert_eq!(
        (rows()[0].status.as_str(), rows()[0].record, rows()[0].result_record, rows()[0].arguments_bytes),
        ("pending", 0, None, 7)
    );
    append(&store, &log, "two", r#"[{"role":"tool","tool_call_id":"c","content":"done"}]"#).unwrap();
    let row = &rows()[0];
    assert_eq!(rows().len(), 1);
    assert_eq!(
        (row.status.as_str(), row.record, row.result_record, row.result_bytes, row.finished_at),
        ("ok", 0, Some(1), Some(6), Some(1_000))
    );
}

/// A change whose ids come from a source that returns the same ids after a reload.
fn repeating(log: &RefCell<SessionLog>, operation: &str, messages: &str) -> Change {
    Change { operation: operation.into(), ..change(log, "same", messages) }
}

#[test]
fn r47_ids_that_another_writer_used_are_replaced_and_nothing_is_lost() {
    let store = MemoryStore::default();
    let (one, two) = (open(&store, "s"), open(&store, "s"));
    let call = |id: &str, result: &str| {
        format!(
            r#"[{{"role":"user","content":"{id}"}},{{"role":"assistant","tool_calls":[{{"id":"{id}","type":"function","function":{{"name":"f","arguments":"{{}}"}}}}]}},{{"role":"tool","tool_call_id":"{id}","content":"{result}"}},{{"role":"assistant","content":"{result}!"}}]"#
        )
    };
    // Both are joined to the empty session, under the same ids of messages and invocations.
    let first = repeating(&one, "first", &call("a", "one"));
    let second = repeating(&two, "second", &call("b", "two"));
    let made = block_on(commit(&store, &one, &first)).unwrap();
    let late = block_on(commit(&store, &two, &second)).unwrap();
    assert_eq!(made.message_ids.len(), 3);
    assert!(late.message_ids.iter().all(|id| !made.message_ids.contains(id)), "{late:?} after {made:?}");
    for log in [&two, &open(&store, "s")] {
        let log = log.borrow();
        assert_eq!(log.history.messages().len(), 6);
        let results: Vec<_> = (log.history.messages().iter())
            .flat_map(|message| log.history.calls_of(message))
            .map(|call| (call.call_id.clone(), call.result.as_ref().unwrap().content.as_str().to_owned()))
            .collect();
        assert_eq!(results, [("a".into(), "\"one\"".into()), ("b".into(), "\"two\"".to_owned())]);
        let stored: Vec<_> = log.history.messages().iter().map(|message| message.id.clone()).collect();
        assert_eq!(stored, [made.message_ids.clone(), late.message_ids.clone()].concat());
    }
}

#[test]
fn r47_a_duplicate_id_given_by_the_caller_is_rejected_not_replaced() {
    let store = MemoryStore::default();
    let (one, two) = (open(&store, "s"), open(&store, "s"));
    let named = |log: &RefCell<SessionLog>, operation: &str| {
        let change = repeating(log, operation, &said(operation));
        let Some(rethread::history::HistoryEntry::Message(first)) = change.entries.first() else {
            panic!("no message")
        };
        Change { caller_ids: vec![first.id.clone()], ..change }
    };
    let (first, second) = (named(&one, "first"), named(&two, "second"));
    written(commit(&store, &one, &first)).unwrap();
    assert_eq!(written(commit(&store, &two, &second)).unwrap_err().code, ErrorCode::InvalidInput);
    assert_eq!(texts(&open(&store, "s")), ["first"]);
}

#[test]
fn r47_a_lost_reply_duplicates_nothing_after_other_writers() {
    let spy = Spy::new(&three_turns());
    let log = open(&spy, "s");
    let change = change(&log, "d", &said("d"));
    spy.faults.borrow_mut().push(Some(Fault::LosesReply));
    assert_eq!(written(commit(&spy, &log, &change)).unwrap_err().code, ErrorCode::StoreError);
    // More appends than a store remembers operations, and all of them seen here.
    let other = open(&spy.data, "s");
    for at in 0..20 {
        append(&spy.data, &other, &format!("o{at}"), &said(&format!("o{at}"))).unwrap();
    }
    block_on(refresh(&spy, &log)).unwrap();
    assert_eq!(written(commit(&spy, &log, &change)).unwrap(), 24);
    assert_eq!(texts(&open(&spy.data, "s")).iter().filter(|text| *text == "d").count(), 1);
}

#[test]
fn r47_of_two_results_of_one_call_the_second_is_set_aside() {
    let store = MemoryStore::default();
    let (one, two) = (open(&store, "s"), open(&store, "s"));
    append(&store, &one, "call", r#"[{"role":"user","content":"go"},{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}]"#).unwrap();
    block_on(refresh(&store, &two)).unwrap();
    // Neither knows of the other's result.
    let late = change(&two, "second", r#"[{"role":"tool","tool_call_id":"c","content":"the second, longer"}]"#);
    append(&store, &one, "first", r#"[{"role":"tool","tool_call_id":"c","content":"first"}]"#).unwrap();
    let row = || block_on(store.read("s", Query::all(Table::ToolInvocations))).unwrap();
    let before = row();
    written(commit(&store, &two, &late)).unwrap();
    assert_eq!(row(), before, "the audit row describes the result that is used");
    for log in [&two, &open(&store, "s")] {
        let log = log.borrow();
        let result = log.history.invocations()[0].result.as_ref().unwrap();
        assert_eq!(result.content.as_str(), r#""first""#);
        let set_aside: Vec<_> =
            log.history.set_aside().iter().map(|item| (&*item.reason, item.value.as_str())).collect();
        assert_eq!(set_aside, [("duplicate_result", r#""the second, longer""#)]);
    }
}
