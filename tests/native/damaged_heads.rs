//! Heads that are damaged, lost or behind their log: what is known of the session is rebuilt, and nothing is written
//! over.

use crate::scripted_host;

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use rethread::error::ErrorCode;
use rethread::run::RunStatus;
use rethread::session_head::SessionHead;
use rethread::store::conformance::nothing_returns_after_deletion;
use rethread::store::{
    Batch, Change, LogStore, MemoryStore, Query, Record, RecordKind, SessionLog, StoreFuture, Table, commit,
    open_record, open_session, read_head, refresh, seal_record,
};
use scripted_host::{Answer, CHAT, Host, SEED, block_on, calls, setup, text};
use serde_json::{Value, json};
use std::cell::RefCell;

fn open(store: &dyn LogStore) -> RefCell<SessionLog> {
    RefCell::new(block_on(open_session(store, "s", SEED, 1)).unwrap())
}

/// Writes another head past the log, as a disk that rots does.
fn set_head(store: &MemoryStore, change: impl Fn(Vec<u8>) -> Vec<u8>) {
    let head = block_on(store.head("s")).unwrap().unwrap();
    let batch = Batch { head: change(head.value.to_vec()).into(), ..Batch::default() };
    block_on(store.append("s", head.revision, batch, &format!("damage{}", head.revision))).unwrap();
}

fn flipped(bytes: &[u8], at: usize, bits: u8) -> bytes::Bytes {
    let mut bytes = bytes.to_vec();
    bytes[at] ^= bits;
    bytes.into()
}

fn flip(store: &MemoryStore, at: usize) {
    set_head(store, |mut head| {
        let length = head.len();
        head[at % length] ^= 0x10;
        head
    });
}

fn records(store: &MemoryStore, table: Table) -> Vec<Record> {
    block_on(store.read("s", Query::all(table))).unwrap()
}

/// Calls a tool, then says so.
fn two_rounds(body: &Value) -> Answer {
    let tools = body["messages"].as_array().unwrap().iter().rev().take_while(|m| m["role"] != "user").count();
    Answer::Say(if tools == 0 { calls(&[("a", "look", r#"{"at":1}"#), ("b", "find", "{}")]) } else { text("Done.") })
}

/// A session with a title, two turns with calls and sources, and an unfinished run.
fn filled(store: &MemoryStore, writes: Option<usize>) {
    let mut host = Host::open(store, "s", "h");
    let titled = Change {
        operation: "title".into(),
        at: 5,
        edit: Some(Box::new(|head| (head.title, head.channel) = (Some("Title".into()), Some("mail".into())))),
        ..Change::default()
    };
    block_on(commit(store, &host.log, &titled)).unwrap();
    for run in ["one", "two"] {
        host.tool = Box::new(|_, _| {
            let sources = json!([{ "source_number": 7, "content": "x" }, { "source_number": 3, "content": "y" }]);
            (rethread::json::Json::parse(&sources.to_string()).unwrap(), false)
        });
        assert_eq!(host.ask(setup(run, CHAT, false), "Go", two_rounds).status, RunStatus::Finished);
    }
    if writes.is_some() {
        host.start(setup("cut", CHAT, false), "And?").unwrap();
        host.writes_left = writes;
        assert!(host.drive(two_rounds).is_none());
    }
}

/// What must be the same of a head that was rebuilt; counts of runs that are over and the time of writing may differ.
fn facts(head: &SessionHead) -> Value {
    json!([
        (&head.id, head.created_at, head.born, &head.title, &head.channel, head.history_revision),
        (head.next_seq, head.next_record, head.next_invocation, head.next_run, head.turns),
        (head.log_bytes, head.source_high_water),
        head.runs.iter().map(|run| json!([run.id, run.number, run.entries, run.epoch, run.failed])).collect::<Vec<_>>(),
    ])
}

#[test]
fn r07_a_flipped_byte_in_a_head_loses_no_turn_and_no_run() {
    let whole = MemoryStore::default();
    filled(&whole, Some(4));
    let before = open(&whole);
    let length = block_on(whole.head("s")).unwrap().unwrap().value.len();
    for at in 0..length {
        let store = MemoryStore::default();
        filled(&store, Some(4));
        flip(&store, at);
        let log = open(&store);
        assert_eq!(log.borrow().findings.len(), 1, "byte {at}");
        assert_eq!(facts(&log.borrow().head), facts(&before.borrow().head), "byte {at}");
        assert_eq!(log.borrow().history.messages(), before.borrow().history.messages());
        // A search for runs needs no open session.
        let stored = block_on(store.head("s")).unwrap().unwrap();
        let (head, findings) = block_on(read_head(&store, "s", &stored, SEED)).unwrap();
        assert_eq!((head.runs.len(), findings.len()), (1, 1));
        // The version's byte says that a newer build wrote it, which may be true.
        if at == 0 {
            assert_eq!(log.borrow().writable().unwrap_err().code, ErrorCode::UnsupportedVersion);
            continue;
        }
        let mut host = Host::open(&store, "s", "second");
        host.resume(setup("cut", CHAT, false)).unwrap();
        assert_eq!(host.drive(two_rounds).unwrap().status, RunStatus::Finished, "byte {at}");
        let healed = open(&store);
        assert!(healed.borrow().findings.is_empty(), "the next append writes the head anew");
        assert_eq!(healed.borrow().head.title.as_deref(), Some("Title"));
        assert!(records(&store, Table::Runs).is_empty());
    }
}

#[test]
fn r07_a_lost_head_is_rebuilt_after_every_write_of_a_run() {
    let mut kills = 0;
    for writes in 1.. {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        host.start(setup("cut", CHAT, false), "Go").unwrap();
        host.writes_left = Some(writes);
        if host.drive(two_rounds).is_some() {
            break;
        }
        kills += 1;
        let before = open(&store);
        store.lose_head("s");
        let listed = block_on(store.sessions(None, 10, None)).unwrap().items;
        assert_eq!(listed.len(), 1, "a session without a head is listed");
        let log = open(&store);
        assert_eq!(facts(&log.borrow().head), facts(&before.borrow().head), "after {writes}");
        assert_eq!(log.borrow().findings.len(), 1);
        assert!(log.borrow().revision > before.borrow().revision);
        let mut host = Host::open(&store, "s", "second");
        host.resume(setup("cut", CHAT, false)).unwrap();
        let outcome = host.drive(two_rounds).unwrap();
        assert_eq!(outcome.status, RunStatus::Finished, "after {writes}: {:?}", outcome.error);
        assert_eq!((records(&store, Table::Log).len(), records(&store, Table::Runs).len()), (1, 0));
    }
    assert!(kills > 5, "only {kills} kills");
}

#[test]
fn r18_run_owners_survive_a_damaged_head() {
    let store = MemoryStore::default();
    filled(&store, Some(3));
    let mut second = Host::open(&store, "s", "second");
    second.writes_left = Some(1);
    second.resume(setup("cut", CHAT, false)).unwrap();
    let entry = open(&store).borrow().head.runs[0].clone();
    assert_eq!(entry.epoch, 1);
    store.lose_head("s");
    let log = open(&store);
    assert_eq!((log.borrow().head.runs[0].epoch, log.borrow().head.runs[0].entries), (1, entry.entries));
}

#[test]
fn r18_a_failed_run_stays_pending_with_its_error() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let outcome = host.ask(setup("one", CHAT, false), "Go", |_| Answer::Status(400, Vec::new(), "{}".into()));
    assert_eq!(outcome.status, RunStatus::Failed);
    let before = open(&store).borrow().head.runs[0].failed.clone();
    assert!(before.is_some());
    store.lose_head("s");
    assert_eq!(open(&store).borrow().head.runs[0].failed, before);
}

#[test]
fn r47_after_a_damaged_head_the_next_append_overwrites_nothing() {
    // The head is as it was a turn ago: whole, and behind its log.
    let store = MemoryStore::default();
    filled(&store, None);
    let early = block_on(store.head("s")).unwrap().unwrap().value;
    let mut host = Host::open(&store, "s", "third");
    host.ask(setup("three", CHAT, false), "More", two_rounds);
    let before = records(&store, Table::Log);
    set_head(&store, |_| early.to_vec());
    let mut host = Host::open(&store, "s", "fourth");
    assert_eq!(host.log.borrow().history.messages().len(), 6);
    assert_eq!(host.ask(setup("four", CHAT, false), "Again", two_rounds).status, RunStatus::Finished);
    let after = records(&store, Table::Log);
    assert_eq!((after.len(), &after[..3]), (4, &before[..]));
    let log = open(&store);
    assert_eq!(log.borrow().history.messages().len(), 12);
    assert_eq!(log.borrow().head.title.as_deref(), Some("Title"));
    let turns: Vec<_> = log.borrow().history.messages().iter().map(|message| message.turn).collect();
    assert_eq!(turns, [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]);
    assert_eq!(records(&store, Table::ToolInvocations).len(), 8);
}

#[test]
fn r47_a_tab_that_had_read_the_lost_head_continues() {
    let store = MemoryStore::default();
    filled(&store, None);
    let (one, two) = (open(&store), open(&store));
    let stated = Change {
        operation: "state".into(),
        edit: Some(Box::new(|head| head.state = vec![("k".into(), rethread::json::Json::parse("1").unwrap())])),
        ..Change::default()
    };
    block_on(commit(&store, &one, &stated)).unwrap();
    block_on(refresh(&store, &two)).unwrap();
    let revision = two.borrow().head.history_revision;
    store.lose_head("s");
    // It appends, expecting history as it was, and what only its head held is stored again.
    let entry = |id: &str| {
        let first = one.borrow().history.messages()[0].clone();
        rethread::history::HistoryEntry::Message(rethread::message::Message { id: id.into(), run_id: None, ..first })
    };
    let append = |name: &str, expected| Change {
        operation: name.into(),
        at: 9,
        entries: vec![entry(name)],
        expected,
        ..Change::default()
    };
    block_on(commit(&store, &two, &append("x", Some(revision)))).unwrap();
    assert_eq!(two.borrow().head.state.len(), 1);
    assert_eq!(block_on(commit(&store, &one, &append("y", Some(revision)))).unwrap_err().code, ErrorCode::Conflict);
    block_on(commit(&store, &one, &append("z", None))).unwrap();
    let log = open(&store);
    let ids: Vec<_> = log.borrow().history.messages().iter().skip(6).map(|message| message.id.clone()).collect();
    assert_eq!(ids, ["x", "z"]);
    assert_eq!((log.borrow().head.state.len(), log.borrow().head.title.as_deref()), (1, Some("Title")));
}

#[test]
fn r07_numbering_continues_after_the_head_and_the_last_record_are_lost() {
    let store = MemoryStore::default();
    filled(&store, None);
    let mut last = records(&store, Table::Log).pop().unwrap();
    let middle = last.value.len() / 2;
    last.value = flipped(&last.value, middle, 1);
    let head = block_on(store.head("s")).unwrap().unwrap();
    let batch = Batch { head: head.value, replace: vec![last.clone()], ..Batch::default() };
    block_on(store.append("s", head.revision, batch, "rot")).unwrap();
    store.lose_head("s");
    let mut host = Host::open(&store, "s", "later");
    assert_eq!(host.log.borrow().findings.len(), 2);
    assert_eq!(host.ask(setup("three", CHAT, false), "More", two_rounds).status, RunStatus::Finished);
    let log = open(&store);
    let message = log.borrow().history.messages().last().unwrap().clone();
    assert!(message.turn >= 2 && message.seq >= 8, "{} {}", message.turn, message.seq);
    assert_eq!(records(&store, Table::ToolInvocations).len(), 6, "no audit row was written over");
    assert_eq!(records(&store, Table::Log)[1], last);
    assert_eq!(log.borrow().head.source_high_water, 7);
}

/// Flips a byte in the marks of entries of a journal, as a disk that rots does.
fn rot(store: &MemoryStore, records: &[Record]) {
    let rotten = records.iter().map(|record| Record { value: flipped(&record.value, 12, 1), ..record.clone() });
    let head = block_on(store.head("s")).unwrap().unwrap();
    let batch = Batch { head: head.value, replace: rotten.collect(), ..Batch::default() };
    block_on(store.append("s", head.revision, batch, "rot")).unwrap();
}

#[test]
fn r07_an_unreadable_entry_of_a_journal_counts_after_the_head_is_lost() {
    let store = MemoryStore::default();
    filled(&store, Some(4));
    let before = open(&store).borrow().head.runs[0].clone();
    let (last, others) =
        records(&store, Table::Runs).split_last().map(|(last, rest)| (last.clone(), rest.to_vec())).unwrap();
    rot(&store, &[last]);
    store.lose_head("s");
    let log = open(&store);
    assert_eq!(log.borrow().findings.len(), 2);
    let run = log.borrow().head.runs[0].clone();
    assert_eq!((run.id, run.entries), (before.id, before.entries), "a missing entry may mean that a tool ran");

    // Of a journal that cannot be read at all the number stays in use.
    rot(&store, &others);
    let left = records(&store, Table::Runs);
    store.lose_head("s");
    let mut host = Host::open(&store, "s", "later");
    assert!(host.log.borrow().head.next_run > before.number);
    assert_eq!(host.ask(setup("three", CHAT, false), "More", two_rounds).status, RunStatus::Finished);
    assert_eq!(records(&store, Table::Runs), left, "nothing is written over");
}

#[test]
fn r07_a_run_that_is_in_the_log_does_not_return_with_its_journal() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    host.start(setup("cut", CHAT, false), "Go").unwrap();
    host.writes_left = Some(3);
    assert!(host.drive(two_rounds).is_none());
    let journal = records(&store, Table::Runs);
    let mut host = Host::open(&store, "s", "second");
    host.resume(setup("cut", CHAT, false)).unwrap();
    assert_eq!(host.drive(two_rounds).unwrap().status, RunStatus::Finished);
    assert!(!journal.is_empty() && records(&store, Table::Runs).is_empty());
    // A store that writes a batch in parts was interrupted before it removed the journal.
    let head = block_on(store.head("s")).unwrap().unwrap();
    let batch = Batch { head: head.value, put: journal, ..Batch::default() };
    block_on(store.append("s", head.revision, batch, "half")).unwrap();
    store.lose_head("s");
    assert_eq!(open(&store).borrow().head.runs, []);
}

#[test]
fn r07_a_session_with_an_unreadable_head_can_be_deleted() {
    for bytes in [Vec::new(), vec![0; 3], b"not a head of ours".to_vec()] {
        let store = MemoryStore::default();
        filled(&store, Some(2));
        set_head(&store, |_| bytes.clone());
        assert_eq!(open(&store).borrow().history.messages().len(), 6);
        block_on(store.delete_session("s")).unwrap();
        assert!(block_on(store.head("s")).unwrap().is_none());
    }
    let store = MemoryStore::default();
    filled(&store, Some(2));
    store.lose_head("s");
    block_on(store.delete_session("s")).unwrap();
    assert!(block_on(store.head("s")).unwrap().is_none() && records(&store, Table::Runs).is_empty());
}

#[test]
fn r07_nothing_returns_after_the_deletion_of_a_session_whose_head_was_lost() {
    let store = MemoryStore::default();
    let losing = store.clone();
    let damage = move |session: String| -> StoreFuture<'static, ()> {
        losing.lose_head(&session);
        Box::pin(async { Ok(()) })
    };
    block_on(nothing_returns_after_deletion((&store, &store), "s", &damage)).unwrap();
}

#[test]
fn r07_a_head_of_a_newer_build_makes_the_session_readable_and_read_only() {
    let store = MemoryStore::default();
    filled(&store, Some(4));
    set_head(&store, |head| {
        let session = open_record::<SessionHead>(RecordKind::Head, &head.into()).unwrap();
        let mut newer = seal_record(RecordKind::Head, &session).to_vec();
        newer[0] += 1;
        newer
    });
    let log = open(&store);
    assert_eq!((log.borrow().history.messages().len(), log.borrow().head.runs.len()), (6, 1));
    assert_eq!(log.borrow().writable().unwrap_err().code, ErrorCode::UnsupportedVersion);
}
