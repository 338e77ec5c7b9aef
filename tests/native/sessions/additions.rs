//! Late results and annotations of messages that several branches share (R38, R57).

use super::annotations::note;
use super::branches::damage_head;
use super::erasure::{KINDS, SECRET, Service, append, ids, turn};
use super::scripted_host::*;
use super::virtual_host::{Process, World};
use super::{MODES, in_mode, start};
use crate::encrypted_store::{ONE, over};
use rethread::branch_path::{ADDITIONS, DIRECTORY};
use rethread::history::{NewResult, Origin};
use rethread::json::Json;
use rethread::render::RenderRequest;
use rethread::replay::PolicyLayer;
use rethread::run::{ARCHIVE_DESCRIPTIONS, Persistence, RunStatus, ToolSettings, ToolTiming};
use rethread::session::{
    Answer as LateAnswer, OpenSession, SessionSettings, copy_session, delete_messages, fork, read_archive,
    restore_archive, switch_to,
};
use rethread::store::{LogStore, MemoryStore, Query, SessionArchive, Table, merge_oldest};
use rethread::tool::ToolResult;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::rc::Rc;

fn opened(world: &World, process: &Process) -> Rc<OpenSession> {
    world.run(process.session(SessionSettings::default()))
}

/// A question, and an answer whose call has no result.
fn asked(call: &str) -> Value {
    let call = json!({ "id": call, "type": "function", "function": { "name": "get", "arguments": "{}" } });
    json!([{ "role": "user", "content": "look" }, { "role": "assistant", "content": "I look", "tool_calls": [call] }])
}

fn found(call: &str, content: &str) -> Value {
    json!([{ "role": "tool", "tool_call_id": call, "content": content }])
}

fn says(content: &str) -> Value {
    json!([{ "role": "user", "content": content }])
}

/// What is shown of each call, and the note of each message that has any, by its place.
fn additions_of(session: &OpenSession) -> (Vec<String>, Vec<(usize, String)>) {
    let log = session.log.borrow();
    let result = |call: &rethread::tool::ToolInvocation| {
        let content = call.result.as_ref().map_or("open", |result| result.content.as_str());
        format!("{}: {}", call.call_id, content)
    };
    let results = log.history.invocations().iter().map(result).collect();
    drop(log);
    (results, super::annotations::notes(session))
}

fn answer(call: &str, content: &str) -> LateAnswer {
    let content = Json::parse(&json!(content).to_string()).unwrap();
    let result = ToolResult { content, is_error: false, dialect: None, template: None };
    let result = NewResult { call: call.into(), result, finished_at: Some(1_000_000) };
    LateAnswer { result, origin: Origin::default(), expected: None, persist: Vec::new() }
}

fn body(world: &World, session: &OpenSession) -> String {
    let (provider, policy) = (provider(CHAT, false), session.policy(PolicyLayer::default(), BTreeMap::new()));
    let request = RenderRequest { provider: &provider, instructions: None, tools: &[], policy: &policy };
    let mut body = Vec::new();
    world.run(session.render(&request, (words("And?"), Vec::new(), 1_000_000), &mut body)).unwrap();
    String::from_utf8(body).unwrap()
}

/// The branches of a session whose call "c" is answered late: "main", one that was forked after the call, one that was
/// forked from that, and one that shares no call.
struct Branches {
    all: Vec<String>,
    names: [String; 4],
}

impl Branches {
    /// Forks after an answer with an open call. The call is the last message of `main`.
    fn make(world: &World, session: &Rc<OpenSession>) -> Self {
        append(world, session, &turn(0, "plain"));
        append(world, session, &asked("c"));
        let all = ids(session);
        let before = world.run(fork(session, Some(&all[1]))).unwrap();
        let earlier = world.run(fork(session, all.last().map(String::as_str))).unwrap();
        world.run(switch_to(session, &earlier)).unwrap();
        append(world, session, &says("in the first fork"));
        let last = ids(session).last().cloned();
        let deeper = world.run(fork(session, last.as_deref())).unwrap();
        world.run(switch_to(session, &deeper)).unwrap();
        append(world, session, &says("deeper"));
        world.run(switch_to(session, "main")).unwrap();
        Self { all, names: ["main".into(), earlier, deeper, before] }
    }

    /// Asserts what each branch has of additions, in the order of `names`, in a session that is open and a new one.
    fn check(&self, world: &World, sessions: &[&Rc<OpenSession>], (result, notes): (&str, &[(usize, &str)])) {
        let wanted: Vec<_> = notes.iter().map(|(at, note)| (*at, format!("\"{note}\""))).collect();
        for session in sessions {
            for (at, name) in self.names.iter().enumerate() {
                world.run(switch_to(session, name)).unwrap();
                let (results, notes) = additions_of(session);
                let has_call = at < 3;
                assert_eq!(results.get(1).map(String::as_str), has_call.then_some(result), "{name}");
                let shared = if has_call { usize::MAX } else { 2 };
                let wanted: Vec<_> = wanted.iter().filter(|(at, _)| *at < shared).cloned().collect();
                assert_eq!(notes, wanted, "{name}");
            }
        }
    }
}

#[test]
fn r38_r57_a_late_result_and_a_note_of_what_branches_share_are_in_each_of_them() {
    for kind in KINDS {
        let (world, service) = (World::new(false), Service::new(kind));
        let (near, far) = (service.process(&world), service.process(&world));
        let session = opened(&world, &near);
        let known = Branches::make(&world, &session);
        // A process shows another branch all the time.
        let other = opened(&world, &far);
        world.run(switch_to(&other, &known.names[1])).unwrap();
        append(&world, &session, &found("c", "SECRET"));
        world.run(note(&session, &known.all[4], &json!("of the call"))).unwrap();
        world.run(other.refresh()).unwrap();
        assert_eq!(additions_of(&other).0[1], r#"c: "SECRET""#, "{kind:?}");
        // A note of the other branch replaces it in each, and so does one of main.
        world.run(note(&other, &known.all[4], &json!("second"))).unwrap();
        world.run(note(&other, &known.all[0], &json!("first message"))).unwrap();
        world.run(session.refresh()).unwrap();
        world.run(note(&session, &known.all[4], &json!("third"))).unwrap();
        assert_eq!(session.log.borrow().head.additions, 5, "{kind:?}");
        let wanted: &[_] = &[(0, "first message"), (4, "third")];
        let (last, third) = (service.process(&world), service.process(&world));
        let fresh = opened(&world, &last);
        known.check(&world, &[&session, &other, &fresh], (r#"c: "SECRET""#, wanted));
        // Another result of the call is that of no branch.
        world.run(switch_to(&other, &known.names[2])).unwrap();
        let late = world.run(other.append_answer(answer("c", "again")));
        assert!(late.is_err(), "{kind:?}: the call has its result");
        known.check(&world, &[&other], (r#"c: "SECRET""#, wanted));
        // What is erased is in no byte.
        assert!(!service.places_of(SECRET).is_empty(), "{kind:?}");
        world.run(delete_messages(&fresh, &[known.all[4].clone()])).unwrap();
        for text in [SECRET, b"third".as_slice(), b"of the call"] {
            assert_eq!(service.places_of(text), Vec::<String>::new(), "{kind:?}");
        }
        let after = opened(&world, &third);
        for name in &known.names {
            world.run(switch_to(&after, name)).unwrap();
            let (results, notes) = additions_of(&after);
            assert_eq!((results.len(), notes), (1, vec![(0, r#""first message""#.to_owned())]), "{kind:?} {name}");
        }
        assert!([&near, &far, &last, &third].iter().all(|process| process.heard.borrow().warnings.is_empty()));
    }
}

#[test]
fn r38_r57_what_is_stored_of_a_shared_message_does_not_grow_with_the_number_of_branches() {
    let written = [2, 60].map(|count| {
        let (world, data) = (World::new(false), MemoryStore::default());
        let process = Process::new(&world, &data, 1);
        let session = opened(&world, &process);
        append(&world, &session, &asked("c"));
        let call = ids(&session)[1].clone();
        (0..count).for_each(|_| drop(world.run(fork(&session, Some(&call))).unwrap()));
        let log = || block_on(data.read("s", Query { to: DIRECTORY - 1, ..Query::all(Table::Log) })).unwrap();
        let sizes = || log().iter().map(|record| record.value.len()).collect::<Vec<_>>();
        let before = sizes();
        append(&world, &session, &found("c", "found"));
        world.run(note(&session, &call, &json!("note"))).unwrap();
        // What only this branch has is no addition.
        append(&world, &session, &asked("d"));
        append(&world, &session, &found("d", "found"));
        world.run(note(&session, ids(&session).last().unwrap(), &json!("note"))).unwrap();
        let additions = log().iter().filter(|record| record.key >= ADDITIONS).count();
        assert_eq!((sizes().len() - before.len(), additions, session.log.borrow().head.additions), (7, 2, 2));
        sizes().iter().sum::<usize>()
    });
    assert!(written[0].abs_diff(written[1]) < 64, "{written:?}");
}

#[test]
#[allow(clippy::too_many_lines)] // one history is moved in each way
fn r38_r37_late_results_of_shared_calls_survive_merges_archives_copies_and_a_lost_head() {
    for is_encrypted in [false, true] {
        let (world, data) = (World::new(false), MemoryStore::default());
        let over = |data: &MemoryStore| -> Rc<dyn LogStore> {
            if is_encrypted { over(Rc::new(data.clone()), &[ONE]) } else { Rc::new(data.clone()) }
        };
        let process = Process::over(&world, over(&data), 1);
        let session = opened(&world, &process);
        let known = Branches::make(&world, &session);
        append(&world, &session, &found("c", "found"));
        world.run(note(&session, &known.all[3], &json!("note"))).unwrap();
        // So much that the log is opened by its end.
        (0..80).for_each(|at| append(&world, &session, &says(&format!("{at} {}", "x".repeat(8_000)))));
        for at in 0..20 {
            world.run(merge_oldest(&*process.open.context.store, &session.log, &format!("merge{at}"))).unwrap();
        }
        let records = block_on(data.read("s", Query::all(Table::Log))).unwrap();
        assert!(records.iter().any(|record| record.last_key.is_some()));
        let wanted: (&str, &[_]) = (r#"c: "found""#, &[(3, "note")]);
        known.check(&world, &[&opened(&world, &Process::over(&world, over(&data), 2)), &session], wanted);
        world.run(session.refresh()).unwrap();
        let archive = world.run(read_archive(&process.open.context, Some(&session), "s")).unwrap();
        let lines = archive.to_json_lines(&ARCHIVE_DESCRIPTIONS);
        let archives =
            [SessionArchive::open(&archive.seal()).unwrap(), SessionArchive::from_json_lines(&lines).unwrap()];
        for (number, archive) in (3..).zip(archives) {
            let target = Process::over(&world, over(&MemoryStore::default()), number);
            world.run(restore_archive(&target.open.context, archive, None)).unwrap();
            known.check(&world, &[&opened(&world, &target)], wanted);
        }
        for (at, name) in known.names.iter().enumerate() {
            world.run(switch_to(&session, name)).unwrap();
            for until in [None, Some(ids(&session)[1].clone())] {
                let is_whole = until.is_none() && at < 3;
                let id = format!("copy {name} {}", until.is_some());
                world
                    .run(copy_session(&process.open.context, (Some(&*session), "s"), until, Some(id.clone())))
                    .unwrap();
                let copy = world.run(process.open.open_session(&id, SessionSettings::default())).unwrap();
                world.run(copy.read_older()).unwrap();
                let (results, notes) = additions_of(&copy);
                assert_eq!(results.get(1).map(String::as_str), is_whole.then_some(wanted.0), "{id}");
                assert_eq!(notes.len(), usize::from(is_whole), "{id}");
                let foreign = block_on(process.open.context.store.read(&id, Query::all(Table::Log))).unwrap();
                let foreign = foreign.iter().filter(|record| record.key >= ADDITIONS).count() as u64;
                assert_eq!(foreign, copy.log.borrow().head.additions, "{id}");
                assert_eq!(foreign > 0, is_whole && at > 0, "{id}: nothing of what is not copied, and nothing twice");
                if until_is_whole(&copy, &session) {
                    assert_eq!(body(&world, &copy), body(&world, &session), "{id}");
                }
            }
        }
        // The head is rebuilt, and the next addition has a number of its own.
        damage_head(&data);
        let last = Process::over(&world, over(&data), 6);
        let rebuilt = opened(&world, &last);
        world.run(rebuilt.read_older()).unwrap();
        assert_eq!(rebuilt.log.borrow().head.additions, 2);
        known.check(&world, &[&rebuilt], wanted);
        world.run(switch_to(&rebuilt, &known.names[2])).unwrap();
        world.run(note(&rebuilt, &known.all[3], &json!("again"))).unwrap();
        let wanted: (&str, &[_]) = (wanted.0, &[(3, "again")]);
        known.check(&world, &[&rebuilt, &opened(&world, &Process::over(&world, over(&data), 7))], wanted);
    }
}

fn until_is_whole(copy: &OpenSession, session: &OpenSession) -> bool {
    copy.log.borrow().history.messages().len() == session.log.borrow().history.messages().len()
}

#[test]
fn r38_r75_a_late_result_has_the_same_place_in_each_branch_for_every_reader() {
    for mode in MODES {
        let (world, data) = (World::new(false), MemoryStore::default());
        let process = Process::new(&world, &data, 1);
        let session = opened(&world, &process);
        let later = || {
            let mut setup = in_mode(mode, CHAT);
            let settings = ToolSettings { timing: ToolTiming::Later, ..ToolSettings::default() };
            setup.tool_settings.insert("look".into(), settings);
            setup
        };
        let model = |body: &Value| {
            let is_first = body.to_string().matches("\"role\":\"user\"").count() == 1;
            if is_first && rounds_in(body) == 0 {
                Answer::Say(calls(&[("c", "look", "{}")]))
            } else {
                Answer::Say(text("Later."))
            }
        };
        let ask = |session: &Rc<OpenSession>, process: &Process, input: &str| {
            let run = world.run(start(session, later(), input)).unwrap();
            assert_eq!(world.run(process.drive(&run, &model)).status, RunStatus::Finished, "{mode:?}");
        };
        ask(&session, &process, "Go");
        let last = ids(&session).last().cloned();
        let name = world.run(fork(&session, last.as_deref())).unwrap();
        // Another process goes on in the fork while this one gets the result in main.
        let far = Process::new(&world, &data, 2);
        let other = opened(&world, &far);
        world.run(switch_to(&other, &name)).unwrap();
        ask(&other, &far, "in the fork");
        world.run(session.append_answer(answer("c", "zebra"))).unwrap();
        world.run(other.refresh()).unwrap();
        ask(&other, &far, "after the result");
        ask(&session, &process, "in main");
        for (session, name) in [(&session, "main"), (&other, name.as_str())] {
            let fresh = opened(&world, &Process::new(&world, &data, 3));
            world.run(switch_to(&fresh, name)).unwrap();
            assert_eq!(additions_of(session).0, [r#"c: "zebra""#], "{mode:?} {name}");
            let (live, read) = (body(&world, session), body(&world, &fresh));
            assert!(live.contains("zebra"), "{mode:?} {name}: {live}");
            assert_eq!(live, read, "{mode:?} {name}");
        }
        let (text, found) = (body(&world, &other), |text: &str, part: &str| text.find(part).unwrap());
        let places = ["in the fork", "zebra", "after the result"].map(|part| found(&text, part));
        assert!(places.is_sorted(), "{mode:?}: {text}");
    }
}

#[test]
fn r38_what_another_process_stores_while_a_branch_begins_is_in_it() {
    for mode in [Persistence::Run, Persistence::Result] {
        let (world, data) = (World::new(false), MemoryStore::default());
        let (near, far) = (Process::new(&world, &data, 1), Process::new(&world, &data, 2));
        let session = opened(&world, &near);
        append(&world, &session, &asked("c"));
        append(&world, &session, &says("after it"));
        let (other, all) = (opened(&world, &far), ids(&session));
        // Between the begin of the run and the first append of its branch.
        let run = world.run(super::branches::replace(&session, in_mode(mode, CHAT), &all[2], Some("other"))).unwrap();
        world.run(other.append_answer(answer("c", "found"))).unwrap();
        world.run(note(&other, &all[0], &json!("note"))).unwrap();
        assert_eq!(world.run(near.drive(&run, &|_| Answer::Say(text("Yes.")))).status, RunStatus::Finished);
        let fresh = opened(&world, &Process::new(&world, &data, 3));
        for session in [&session, &fresh] {
            for name in ["fork-1", "main"] {
                world.run(switch_to(session, name)).unwrap();
                assert_eq!(
                    additions_of(session),
                    (vec![r#"c: "found""#.into()], vec![(0, r#""note""#.into())]),
                    "{name}"
                );
            }
        }
    }
}

#[test]
fn r38_a_note_of_a_message_is_not_that_of_another_with_its_id_in_another_branch() {
    let (world, data) = (World::new(false), MemoryStore::default());
    let process = Process::new(&world, &data, 1);
    let session = opened(&world, &process);
    append(&world, &session, &says("one"));
    let first = ids(&session)[0].clone();
    let names = [0, 1].map(|_| world.run(fork(&session, Some(&first))).unwrap());
    for name in &names {
        world.run(switch_to(&session, name)).unwrap();
        let own = Json::parse(
            &json!([{ "id": "mine", "role": "user", "parts": [{ "type": "text", "text": "x" }] }]).to_string(),
        );
        let origin = session.origin(rethread::session::AppendOrigin::default());
        world.run(session.append(&own.unwrap(), None, (&origin, None))).unwrap();
    }
    assert_eq!(ids(&session)[1], "mine");
    // The message of the second branch is shared with a third one.
    let third = world.run(fork(&session, Some("mine"))).unwrap();
    world.run(note(&session, "mine", &json!("of the second"))).unwrap();
    assert_eq!(session.log.borrow().head.additions, 1);
    let fresh = opened(&world, &Process::new(&world, &data, 2));
    for (name, count) in [(&names[0], 0), (&names[1], 1), (&third, 1)] {
        world.run(switch_to(&fresh, name)).unwrap();
        assert_eq!((ids(&fresh)[1].as_str(), additions_of(&fresh).1.len()), ("mine", count), "{name}");
    }
}

#[test]
fn r38_r07_additions_that_are_gone_are_reported() {
    // The first of two, and the last one.
    for gone in [ADDITIONS, ADDITIONS + 1] {
        let (world, data) = (World::new(false), MemoryStore::default());
        let process = Process::new(&world, &data, 1);
        let session = opened(&world, &process);
        let known = Branches::make(&world, &session);
        for at in [0, 1] {
            world.run(note(&session, &known.all[at], &json!("note"))).unwrap();
        }
        let head = block_on(data.head("s")).unwrap().unwrap();
        let remove = vec![(Table::Log, gone)];
        let batch = rethread::store::Batch { head: head.value, remove, ..Default::default() };
        block_on(data.append("s", head.revision, batch, "lost")).unwrap();
        let process = Process::new(&world, &data, 2);
        let fresh = opened(&world, &process);
        let warnings = || process.heard.borrow().warnings.len();
        assert_eq!((additions_of(&fresh).1.len(), warnings()), (2, 1), "main has both in records of its own");
        // What comes later has another number, and the same loss is not reported again.
        world.run(note(&fresh, &known.all[2], &json!("later"))).unwrap();
        append(&world, &fresh, &says("on"));
        assert_eq!(warnings(), 1);
        world.run(switch_to(&fresh, &known.names[1])).unwrap();
        assert_eq!(additions_of(&fresh).1.len(), 2, "another branch has the later one, and one of the two");
    }
}

#[test]
fn r38_r07_an_addition_that_is_damaged_is_reported_and_the_others_are_read() {
    let (world, data) = (World::new(false), MemoryStore::default());
    let session = opened(&world, &Process::new(&world, &data, 1));
    let known = Branches::make(&world, &session);
    for at in [0, 1] {
        world.run(note(&session, &known.all[at], &json!("note"))).unwrap();
    }
    let mut record =
        block_on(data.read("s", Query { from: ADDITIONS, to: ADDITIONS, ..Query::all(Table::Log) })).unwrap();
    let mut bytes = record[0].value.to_vec();
    *bytes.last_mut().unwrap() ^= 0x10;
    record[0].value = bytes.into();
    let head = block_on(data.head("s")).unwrap().unwrap();
    let batch = rethread::store::Batch { head: head.value, replace: record, ..Default::default() };
    block_on(data.append("s", head.revision, batch, "damage")).unwrap();
    let process = Process::new(&world, &data, 2);
    let fresh = opened(&world, &process);
    assert_eq!(additions_of(&fresh).1.len(), 2, "main has both in records of its own");
    assert_eq!(process.heard.borrow().warnings.len(), 1);
    world.run(switch_to(&fresh, &known.names[1])).unwrap();
    assert_eq!(additions_of(&fresh).1, [(1, r#""note""#.to_owned())]);
}
