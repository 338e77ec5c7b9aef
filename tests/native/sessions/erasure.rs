//! Erasure of messages: physically, in every branch, by whole rounds (R59).

use super::scripted_host::*;
use super::virtual_host::{Fault, Process, World};
use super::{in_mode, start};
use crate::kv_store::service::MemoryKv;
use bytes::Bytes;
use rethread::error::{Error, ErrorCode};
use rethread::history::History;
use rethread::json::Json;
use rethread::run::{Persistence, RunStatus};
use rethread::session::{
    AppendOrigin, CompactionMode, CompactionRequest, OpenSession, SessionSettings, branches, compact, delete_messages,
    discard_run, fork, switch_to,
};
use rethread::session_head::SessionHead;
use rethread::store::kv::{KvLimits, KvStore, WriteOnceStore};
use rethread::store::{
    ErasureReceipt, LogStore, MemoryStore, MergeOutcome, Query, RecordKind, Table, merge_oldest, open_record,
    seal_payload,
};
use serde_json::{Value, json};
use std::cell::Cell;
use std::rc::Rc;

pub(super) const SECRET: &[u8] = b"SECRET";

/// What a store is kept in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Memory,
    KeyValue,
    WriteOnce,
}

pub(super) const KINDS: [Kind; 3] = [Kind::Memory, Kind::KeyValue, Kind::WriteOnce];

/// A service, and handles of its store.
pub(super) struct Service {
    kind: Kind,
    memory: MemoryStore,
    keys: MemoryKv,
    writers: Cell<u32>,
}

impl Service {
    pub(super) fn new(kind: Kind) -> Self {
        let limits =
            KvLimits { max_value_bytes: if kind == Kind::KeyValue { 3000 } else { 4 << 20 }, ..KvLimits::default() };
        let keys = MemoryKv { is_plain: kind == Kind::WriteOnce, limits, ..MemoryKv::default() };
        Self { kind, memory: MemoryStore::default(), keys, writers: Cell::new(0) }
    }

    fn store(&self, world: &World) -> Rc<dyn LogStore> {
        let driver = Rc::new(self.keys.clone());
        self.writers.set(self.writers.get() + 1);
        match self.kind {
            Kind::Memory => Rc::new(self.memory.clone()),
            Kind::KeyValue => Rc::new(world.run(KvStore::open(driver)).unwrap()),
            Kind::WriteOnce => {
                Rc::new(world.run(WriteOnceStore::open(driver, format!("w{}", self.writers.get()))).unwrap())
            }
        }
    }

    pub(super) fn process(&self, world: &Rc<World>) -> Process {
        let store = self.store(world);
        Process::over(world, store, self.writers.get())
    }

    /// Hides the newest append of a service whose reads may be stale.
    pub(super) fn hide_newest_append(&self) {
        let newest = self.keys.keys.borrow().keys().rfind(|key| key.starts_with("append:")).cloned().unwrap();
        self.keys.hidden.borrow_mut().insert(newest);
    }

    /// The keys of all appends.
    pub(super) fn appends(&self) -> Vec<String> {
        self.keys.keys.borrow().keys().filter(|key| key.starts_with("append:")).cloned().collect()
    }

    /// Hides all other appends.
    pub(super) fn hide_appends_but(&self, known: &[String]) {
        self.keys.hidden.borrow_mut().extend(self.appends().into_iter().filter(|key| !known.contains(key)));
    }

    /// Applies writes, and returns an error.
    pub(super) fn lose_replies(&self, loses: bool) {
        self.keys.loses_replies.set(loses);
    }

    pub(super) fn damage(&self, key: &str) {
        self.keys.set(key, b"rotten");
    }

    pub(super) fn show_all(&self) {
        self.keys.hidden.borrow_mut().clear();
    }

    /// Returns the places that have these bytes.
    pub(super) fn places_of(&self, part: &[u8]) -> Vec<String> {
        let mut places = Vec::new();
        let mut look = |place: String, value: &[u8]| {
            if value.windows(part.len()).any(|window| window == part) {
                places.push(place);
            }
        };
        for (key, (value, _)) in self.keys.keys.borrow().iter() {
            look(key.clone(), key.as_bytes());
            look(key.clone(), value);
        }
        if let Some(head) = block_on(self.memory.head("s")).unwrap() {
            look("head".into(), &head.value);
        }
        for table in [Table::Log, Table::ToolInvocations, Table::Runs] {
            for record in block_on(self.memory.read("s", Query::all(table))).unwrap() {
                look(format!("{table:?} {}", record.key), &record.value);
                look(format!("{table:?} {}", record.key), format!("{:?}", record.index).as_bytes());
            }
        }
        places
    }
}

fn wire(text: &str) -> Json {
    Json::parse(text).unwrap()
}

pub(super) fn append(world: &World, session: &OpenSession, messages: &Value) {
    let origin = session.origin(AppendOrigin::default());
    world.run(session.append(&wire(&messages.to_string()), Some(CHAT), (&origin, None))).unwrap();
}

/// A turn with a call. `mark` is in the question, the arguments and the result.
pub(super) fn turn(at: usize, mark: &str) -> Value {
    let call = json!({ "id": format!("c{at}"), "type": "function",
        "function": { "name": "get", "arguments": json!({ "mark": mark }).to_string() } });
    json!([
        { "role": "user", "content": format!("question {at} {mark}") },
        { "role": "assistant", "content": format!("I look {mark}"), "tool_calls": [call] },
        { "role": "tool", "tool_call_id": format!("c{at}"), "content": format!("found {mark}") },
        { "role": "assistant", "content": format!("answer {at}") },
    ])
}

pub(super) fn ids(session: &OpenSession) -> Vec<String> {
    session.log.borrow().history.messages().iter().map(|message| message.id.clone()).collect()
}

fn seqs(session: &OpenSession) -> Vec<u64> {
    session.log.borrow().history.messages().iter().map(|message| message.seq).collect()
}

fn calls(history: &History) -> Vec<String> {
    history.invocations().iter().map(|call| call.call_id.clone()).collect()
}

fn erase(world: &World, session: &OpenSession, ids: &[&String]) -> Result<ErasureReceipt, Error> {
    let ids: Vec<String> = ids.iter().map(|id| (*id).clone()).collect();
    world.run(delete_messages(session, &ids))
}

/// Runs a turn: the body that the model gets is checked by the rules of its provider.
fn ask(world: &World, process: &Process, session: &Rc<OpenSession>, input: &str) -> Value {
    let run = world.run(start(session, in_mode(Persistence::Run, CHAT), input)).unwrap();
    assert_eq!(world.run(process.drive(&run, &|_| Answer::Say(text("Yes.")))).status, RunStatus::Finished);
    process.heard.borrow().asked.last().unwrap().clone()
}

fn summary(world: &World, session: &Rc<OpenSession>) {
    let summarize = rethread::replay::Callback { id: 0, hook: Rc::new(()) };
    let request = Rc::new(CompactionRequest {
        mode: CompactionMode::Auto,
        is_forced: true,
        tokens: None,
        summarize,
        provider: None,
    });
    world.run(compact(session, request)).unwrap();
    assert!(session.log.borrow().history.compaction().is_some());
}

/// Eight turns, of which the fourth has the secret, a summary of all, a branch that has it too, and one that has not.
fn filled(world: &Rc<World>, service: &Service) -> (Process, Rc<OpenSession>) {
    let process = service.process(world);
    let session = world.run(process.session(SessionSettings::default()));
    for at in 0..8 {
        append(world, &session, &turn(at, if at == 3 { "SECRET" } else { "plain" }));
        // An ended run leaves its journal in the values of a store that keeps them.
        ask(world, &process, &session, if at == 3 { "and SECRET?" } else { "and?" });
    }
    let all = ids(&session);
    summary(world, &session);
    let after_secret = world.run(fork(&session, Some(&all[19]))).unwrap();
    world.run(switch_to(&session, &after_secret)).unwrap();
    append(world, &session, &turn(20, "plain"));
    world.run(fork(&session, Some(&all[4]))).unwrap();
    world.run(switch_to(&session, "main")).unwrap();
    (process, session)
}

/// The ids of the messages that have the secret.
fn secrets(session: &OpenSession) -> Vec<String> {
    let all = ids(session);
    vec![all[15].clone(), all[16].clone(), all[18].clone()]
}

#[test]
fn r59_no_byte_of_a_store_has_an_erased_message_and_the_rest_is_there() {
    for kind in KINDS {
        let (world, service) = (World::new(false), Service::new(kind));
        let (process, session) = filled(&world, &service);
        let (all, secret) = (ids(&session), secrets(&session));
        assert!(!service.places_of(SECRET).is_empty() && !service.places_of(b"What was said before").is_empty());
        let next_seq = session.log.borrow().head.next_seq;
        let receipt = world.run(delete_messages(&session, &secret)).unwrap();
        assert_eq!((receipt.messages, receipt.invocations), (secret.clone(), 1), "{kind:?}");
        assert!(receipt.bytes > 100 && receipt.records["log"] >= 2, "{kind:?}: {:?}", receipt.records);
        assert_eq!(receipt.records["tool_invocations"], 1);
        assert_eq!(receipt.records.contains_key("copies"), kind == Kind::WriteOnce);
        assert_eq!(service.places_of(SECRET), Vec::<String>::new(), "{kind:?}");
        assert_eq!(service.places_of(b"What was said before"), Vec::<String>::new(), "{kind:?}: what is made of it");
        assert!(!service.places_of(b"question 4 plain").is_empty());
        // Here, and in a process that opens it.
        let kept: Vec<_> = all.iter().filter(|id| !secret.contains(id)).cloned().collect();
        let other = service.process(&world);
        let opened = world.run(other.session(SessionSettings::default()));
        for (process, session) in [(&process, &session), (&other, &opened)] {
            assert_eq!(ids(session), kept, "{kind:?}");
            assert_eq!(calls(&session.log.borrow().history), ["c0", "c1", "c2", "c4", "c5", "c6", "c7"]);
            assert!(session.log.borrow().history.compaction().is_none());
            assert!(session.log.borrow().findings.is_empty(), "{:?}", session.log.borrow().findings);
            assert!(process.heard.borrow().warnings.is_empty());
        }
        let body = ask(&world, &process, &session, "more").to_string();
        assert!(!body.contains("SECRET") && body.contains("question 4 plain") && body.contains("answer 3"));
        // No number is used twice.
        assert_eq!(seqs(&session)[kept.len()], next_seq);
        assert_eq!(session.log.borrow().head.message_count(), kept.len() as u64 + 2);
        // The branches have what they had.
        world.run(switch_to(&session, "fork-1")).unwrap();
        assert_eq!(ids(&session).len(), 20 - 3 + 3, "{kind:?}");
        let listed = world.run(branches(&session)).unwrap();
        let counts: Vec<_> = listed.iter().map(|branch| branch.message_count).collect();
        assert_eq!(counts, [kept.len() as u64 + 2, 20, 5], "{kind:?}");
        let body = ask(&world, &process, &session, "more").to_string();
        assert!(!body.contains("SECRET") && body.contains("answer 20"));
    }
}

#[test]
fn r59_r79_no_list_shows_an_erased_text_and_none_of_its_answers_is_unread() {
    for kind in KINDS {
        let (world, service) = (World::new(false), Service::new(kind));
        let process = service.process(&world);
        let session = world.run(process.session(SessionSettings::default()));
        let store = process.open.context.store.clone();
        let overview = || {
            let head: SessionHead =
                open_record(RecordKind::Head, &block_on(store.head("s")).unwrap().unwrap().value).unwrap();
            (head.overview.preview.map(|preview| preview.text), head.overview.unread)
        };
        append(&world, &session, &turn(0, "plain"));
        ask(&world, &process, &session, "Go on");
        // Of three branches the newest text is the secret, twice in a row and, in another branch, of what is shared.
        append(&world, &session, &json!([{ "role": "assistant", "content": "a SECRET" }]));
        let all = ids(&session);
        let branch = world.run(fork(&session, all.last().map(String::as_str))).unwrap();
        append(&world, &session, &json!([{ "role": "assistant", "content": "the last SECRET" }]));
        let secrets = [all.last().unwrap().clone(), ids(&session).last().unwrap().clone()];
        assert_eq!(overview(), (Some("the last SECRET".into()), 5));
        world.run(session.update(Box::new(|head| head.is_archived = true))).unwrap();
        world.run(delete_messages(&session, &secrets[1..])).unwrap();
        assert_eq!(overview(), (Some("a SECRET".into()), 4), "{kind:?}");
        assert_eq!(service.places_of(b"the last"), Vec::<String>::new(), "{kind:?}");
        world.run(delete_messages(&session, &secrets[..1])).unwrap();
        assert_eq!(overview(), (Some("Yes.".into()), 3), "{kind:?}");
        assert_eq!(service.places_of(SECRET), Vec::<String>::new(), "{kind:?}");
        world.run(switch_to(&session, &branch)).unwrap();
        assert_eq!(overview(), (Some("Yes.".into()), 3), "{kind:?}");
        let other = service.process(&world);
        let opened = world.run(other.session(SessionSettings::default()));
        append(&world, &opened, &json!([{ "role": "user", "content": "And now?" }]));
        assert_eq!(overview(), (Some("And now?".into()), 3), "{kind:?}");
    }
}

#[test]
fn r59_the_messages_of_a_segment_and_of_packs_are_erased_like_others() {
    for kind in KINDS {
        let (world, service) = (World::new(false), Service::new(kind));
        let process = service.process(&world);
        let session = world.run(process.session(SessionSettings::default()));
        let long = "long ".repeat(3_000);
        for at in 0..70 {
            append(&world, &session, &turn(at, if at == 5 || at == 60 { "SECRET" } else { &long }));
        }
        let store = process.open.context.store.clone();
        let mut merged = 0;
        while world.run(merge_oldest(&*store, &session.log, &format!("merge {merged}"))).unwrap()
            == MergeOutcome::Progress
        {
            merged += 1;
        }
        world.run(store.pack("s")).unwrap();
        // Stores without compare-and-append have no segments.
        assert_eq!(merged > 2, kind != Kind::WriteOnce, "{merged}");
        let all = ids(&session);
        let packs =
            |service: &Service| service.keys.keys.borrow().keys().filter(|key| key.starts_with("pack:")).count();
        assert_eq!(packs(&service) > 0, kind == Kind::WriteOnce);
        let targets: Vec<_> = [15, 16, 180, 181].iter().map(|at| all[*at].clone()).collect();
        let receipt = world.run(delete_messages(&session, &targets)).unwrap();
        assert_eq!(receipt.invocations, 2);
        assert_eq!(service.places_of(SECRET), Vec::<String>::new(), "{kind:?}");
        let requests = service.keys.traffic.requests();
        let other = service.process(&world);
        let opened = world.run(other.session(SessionSettings::default()));
        world.run(opened.refresh()).unwrap();
        assert_eq!(ids(&opened).len(), all.len() - 4);
        assert!(opened.log.borrow().findings.is_empty());
        assert_eq!(packs(&service) > 0, kind == Kind::WriteOnce, "the packs are still there");
        if kind == Kind::WriteOnce {
            assert!(service.keys.traffic.requests() - requests < 45, "and are used");
        }
        ask(&world, &other, &opened, "more");
    }
}

#[test]
fn r59_an_erasure_that_was_killed_at_any_step_is_finished_by_the_next_open_or_never_began() {
    for kind in KINDS {
        let (mut finished, mut untouched) = (0, 0);
        for steps in 0.. {
            let (world, service) = (World::new(false), Service::new(kind));
            let (_process, session) = filled(&world, &service);
            let (secret, all) = (secrets(&session), ids(&session));
            if world.run_steps(delete_messages(&session, &secret), steps).is_some() {
                break;
            }
            drop(session);
            let other = service.process(&world);
            let opened = world.run(other.session(SessionSettings::default()));
            world.run(opened.refresh()).unwrap();
            if ids(&opened) == all {
                untouched += 1;
                world.run(delete_messages(&opened, &secret)).unwrap();
            } else {
                finished += 1;
                assert_eq!(ids(&opened).len(), all.len() - 3, "{kind:?} {steps}");
            }
            assert!(opened.log.borrow().head.erasing.is_finished(), "{kind:?} {steps}");
            assert_eq!(service.places_of(SECRET), Vec::<String>::new(), "{kind:?} {steps}");
            assert!(opened.log.borrow().findings.is_empty());
        }
        // In memory the store waits for nothing.
        assert!(kind == Kind::Memory || untouched > 3, "{kind:?}: {untouched} kills before the append");
        assert!(kind != Kind::WriteOnce || finished > 10, "{finished} kills after it");
    }
}

#[test]
fn r59_a_refused_or_unanswered_append_erases_nothing_or_all() {
    for fault in [Fault::Refused, Fault::ReplyLost] {
        for count in [1, 2] {
            let (world, data) = (World::new(false), MemoryStore::default());
            let left = Rc::new(Cell::new(0));
            let faults = left.clone();
            let process = Process::with_faults(
                &world,
                &data,
                1,
                Box::new(move || {
                    faults.set(faults.get() - 1);
                    (faults.get() >= 0).then_some(fault)
                }),
            );
            let session = world.run(process.session(SessionSettings::default()));
            left.set(0);
            append(&world, &session, &turn(0, "SECRET"));
            let all = ids(&session);
            left.set(count);
            let erased = erase(&world, &session, &[&all[0], &all[1]]);
            left.set(0);
            let service = Service { memory: data, ..Service::new(Kind::Memory) };
            // The append is repeated once, under its name.
            let is_done = count == 1;
            assert_eq!(erased.is_ok(), is_done, "{fault:?} {count}: {erased:?}");
            world.run(session.refresh()).unwrap();
            let is_erased = is_done || fault == Fault::ReplyLost;
            assert_eq!(
                (ids(&session).len(), service.places_of(SECRET).is_empty()),
                (if is_erased { 1 } else { 3 }, is_erased)
            );
        }
    }
}

#[test]
fn r59_another_process_reads_the_session_anew_and_its_late_result_is_set_aside() {
    for kind in KINDS {
        let (world, service) = (World::new(false), Service::new(kind));
        let (first, second) = (service.process(&world), service.process(&world));
        let session = world.run(first.session(SessionSettings::default()));
        append(&world, &session, &turn(0, "plain"));
        let open = json!([
            { "role": "user", "content": "SECRET" },
            { "role": "assistant", "content": null, "tool_calls": [{ "id": "open", "type": "function",
                "function": { "name": "get", "arguments": "{}" } }] },
        ]);
        append(&world, &session, &open);
        let other = world.run(second.session(SessionSettings::default()));
        assert_eq!(ids(&other).len(), 5);
        let (call, generation) = {
            let log = other.log.borrow();
            (log.history.invocations()[1].id.clone(), log.generation)
        };
        let all = ids(&session);
        erase(&world, &session, &[&all[3], &all[4]]).unwrap();
        // It has not read that yet.
        let result = rethread::history::ResultEntry {
            invocation: call,
            status: rethread::tool::InvocationStatus::Ok,
            result: Some(rethread::tool::ToolResult {
                content: wire(r#""late""#),
                is_error: false,
                dialect: None,
                template: None,
            }),
            ..rethread::history::ResultEntry::default()
        };
        let entries = vec![rethread::history::HistoryEntry::Result(result)];
        world.run(other.commit(rethread::store::Change { entries, ..other.new_change() })).unwrap();
        let warnings = second.heard.borrow().warnings.clone();
        assert_eq!(warnings.iter().map(|found| found.code.as_str()).collect::<Vec<_>>(), ["orphan_result"], "{kind:?}");
        let log = other.log.borrow();
        assert!(log.generation > generation, "{kind:?}");
        assert_eq!((log.history.messages().len(), log.history.set_aside().len()), (3, 1));
        assert_eq!(service.places_of(SECRET), Vec::<String>::new(), "{kind:?}");
    }
}

fn code<T>(result: Result<T, Error>) -> Option<ErrorCode> {
    result.err().map(|error| error.code)
}

#[test]
fn r59_what_cannot_be_erased_is_an_error_and_changes_nothing() {
    let (world, data) = (World::new(false), MemoryStore::default());
    let (first, second) = (Process::new(&world, &data, 1), Process::new(&world, &data, 2));
    let session = world.run(first.session(SessionSettings::default()));
    append(&world, &session, &turn(0, "plain"));
    let all = ids(&session);
    let revision = session.revision();
    assert_eq!(code(erase(&world, &session, &[])), Some(ErrorCode::InvalidInput));
    assert_eq!(code(erase(&world, &session, &[&all[0], &"nobody".into()])), Some(ErrorCode::NotFound));
    // A run under way, here and elsewhere, and one that was cut off.
    let run = world.run(start(&session, in_mode(Persistence::Result, CHAT), "Go")).unwrap();
    let other = world.run(second.session(SessionSettings::default()));
    assert!(world.run_steps(first.drive(&run, &super::hangs_after(1)), 1_000).is_none());
    assert_eq!(code(erase(&world, &session, &[&all[0]])), Some(ErrorCode::Busy));
    assert_eq!(code(erase(&world, &other, &[&all[0]])), Some(ErrorCode::Busy));
    first.kill();
    world.pass(60_000);
    let refused = erase(&world, &other, &[&all[0]]).unwrap_err();
    assert_eq!(refused.code, ErrorCode::WrongState);
    assert!(refused.message.contains("discard"), "{}", refused.message);
    assert_eq!(ids(&other)[..3], all[..]);
    world.run(discard_run(&other, &run.id, true)).unwrap();
    erase(&world, &other, &[&all[0]]).unwrap();
    assert!(other.revision() > revision && !ids(&other).contains(&all[0]));
}

#[test]
fn r59_a_record_that_cannot_be_read_refuses_the_erasure() {
    for (value, expected) in [
        (seal_payload(RecordKind::Log, b"?"), ErrorCode::CorruptRecord),
        (Bytes::from_static(b"\x07\x07\x02\0\0\0\0"), ErrorCode::UnsupportedVersion),
    ] {
        let (world, data) = (World::new(false), MemoryStore::default());
        let process = Process::new(&world, &data, 1);
        let session = world.run(process.session(SessionSettings::default()));
        append(&world, &session, &turn(0, "SECRET"));
        append(&world, &session, &turn(1, "plain"));
        let all = ids(&session);
        let head = block_on(data.head("s")).unwrap().unwrap();
        let mut record = block_on(data.read("s", Query::all(Table::Log))).unwrap()[1].clone();
        record.value = value;
        let batch = rethread::store::Batch { head: head.value, replace: vec![record], ..Default::default() };
        block_on(data.append("s", head.revision, batch, "damage")).unwrap();
        let refused = erase(&world, &session, &[&all[0]]).unwrap_err();
        assert_eq!(refused.code, expected);
        let service = Service { memory: data, ..Service::new(Kind::Memory) };
        assert!(!service.places_of(SECRET).is_empty());
    }
}

#[test]
fn r59_the_other_side_of_a_conflict_loses_the_message_too() {
    for is_on_side in [false, true] {
        let (world, service) = (World::new(false), Service::new(Kind::WriteOnce));
        let (first, second) = (service.process(&world), service.process(&world));
        let session = world.run(first.session(SessionSettings::default()));
        append(&world, &session, &turn(0, if is_on_side { "plain" } else { "SECRET" }));
        let other = world.run(second.session(SessionSettings::default()));
        // Both append after the same one: neither sees the key of the other.
        append(&world, &session, &turn(1, if is_on_side { "SECRET" } else { "plain" }));
        service.hide_newest_append();
        append(&world, &other, &turn(2, "plain"));
        append(&world, &other, &turn(3, "plain"));
        service.show_all();
        let targets = ids(&session);
        let at = if is_on_side { 3 } else { 0 };
        let targets = [targets[at].clone(), targets[at + 1].clone()];
        world.run(other.refresh()).unwrap();
        let sides = world.run(branches(&other)).unwrap();
        assert_eq!(sides.len(), 2, "{sides:?}", sides = sides.iter().map(|side| &side.id).collect::<Vec<_>>());
        let receipt = world.run(delete_messages(&other, &targets)).unwrap();
        assert_eq!((receipt.messages.len(), receipt.invocations), (2, 1));
        assert_eq!(service.places_of(SECRET), Vec::<String>::new());
        assert!(!service.places_of(b"question 1").is_empty() || is_on_side);
        let fresh = service.process(&world);
        let opened = world.run(fresh.session(SessionSettings::default()));
        assert_eq!(ids(&opened).len(), if is_on_side { 9 } else { 7 });
        let side = world.run(branches(&opened)).unwrap().pop().unwrap();
        let side = world.run(rethread::session::branch_log(&opened, &side.id)).unwrap();
        assert_eq!(side.history.messages().len(), 4);
        assert!(side.findings.is_empty() && opened.log.borrow().findings.is_empty());
    }
}

#[test]
fn r59_siblings_are_named_by_the_messages_that_are_left() {
    let (world, data) = (World::new(false), MemoryStore::default());
    let process = Process::new(&world, &data, 1);
    let session = world.run(process.session(SessionSettings::default()));
    for at in 0..3 {
        append(&world, &session, &turn(at, "plain"));
    }
    let main = ids(&session);
    let name = world.run(fork(&session, Some(&main[2]))).unwrap();
    world.run(switch_to(&session, &name)).unwrap();
    append(&world, &session, &turn(7, "plain"));
    let branch = ids(&session);
    // The place of the fork, the message beside it, and the first of the branch.
    erase(&world, &session, &[&main[2], &main[3], &branch[3]]).unwrap();
    for session in [session, world.run(Process::new(&world, &data, 2).session(SessionSettings::default()))] {
        let log = session.log.borrow();
        let row = log.directory().row(1).unwrap();
        assert_eq!((row.forked_after.as_ref(), row.beside.as_ref()), (Some(&main[1]), Some(&main[4])));
        assert_eq!(row.first.as_ref(), Some(&branch[4]));
        assert_eq!(log.alternatives().of(Some(&main[1]), &branch[4]), (vec![main[4].as_str(), &branch[4]], 1));
        drop(log);
        world.run(switch_to(&session, &main[4])).unwrap();
        assert_eq!(ids(&session), [&main[..2], &main[4..]].concat());
        world.run(switch_to(&session, &name)).unwrap();
        assert_eq!(ids(&session), [&main[..2], &branch[4..]].concat());
    }
}

#[test]
fn r59_many_messages_are_erased_in_parts() {
    for kind in [Kind::Memory, Kind::WriteOnce] {
        let (world, service) = (World::new(false), Service::new(kind));
        let process = service.process(&world);
        let session = world.run(process.session(SessionSettings::default()));
        for at in 0..450 {
            append(&world, &session, &json!([{ "role": "user", "content": format!("SECRET {at}") }]));
        }
        append(&world, &session, &turn(1, "plain"));
        let all = ids(&session);
        let receipt = world.run(delete_messages(&session, &all[..450])).unwrap();
        assert_eq!((receipt.messages.as_slice(), receipt.records["log"]), (&all[..450], 450));
        assert_eq!(session.log.borrow().head.erasures, 2);
        assert_eq!((ids(&session), service.places_of(SECRET)), (all[450..].to_vec(), vec![]));
    }
}

#[test]
fn r59_a_result_that_was_stored_later_goes_with_its_call() {
    for kind in KINDS {
        let (world, service) = (World::new(false), Service::new(kind));
        let process = service.process(&world);
        let session = world.run(process.session(SessionSettings::default()));
        let all = turn(0, "plain");
        append(&world, &session, &json!([all[0], all[1]]));
        append(&world, &session, &json!([{ "role": "tool", "tool_call_id": "c0", "content": "found SECRET" }]));
        let answer = ids(&session)[1].clone();
        erase(&world, &session, &[&answer]).unwrap();
        assert_eq!(service.places_of(SECRET), Vec::<String>::new(), "{kind:?}");
        let log = session.log.borrow();
        assert_eq!((log.history.messages().len(), log.history.early_results().count()), (1, 0));
    }
}
