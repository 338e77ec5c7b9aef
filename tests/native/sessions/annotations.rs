//! Annotations: labels and notes on stored messages (R57).

use super::branches::replace;
use super::erasure::{KINDS, Kind, SECRET, Service, append, ids, turn};
use super::in_mode;
use super::scripted_host::*;
use super::virtual_host::{Process, World};
use rethread::error::{Error, ErrorCode};
use rethread::history::Annotation;
use rethread::json::Json;
use rethread::render::RenderRequest;
use rethread::replay::PolicyLayer;
use rethread::run::{ARCHIVE_DESCRIPTIONS, Persistence, RunStatus};
use rethread::session::{
    OpenSession, SessionSettings, annotate, branches, copy_session, delete_messages, fork, read_archive,
    restore_archive, switch_to,
};
use rethread::session_head::SessionHead;
use rethread::store::{LogStore, MemoryStore, Query, RecordKind, SessionArchive, Table, merge_oldest, open_record};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::rc::Rc;

pub(super) async fn note(session: &OpenSession, message: &str, metadata: &Value) -> Result<(), Error> {
    annotate(session, &Annotation::new(message, Json::parse(&metadata.to_string()).unwrap())).await
}

/// The metadata of each message that has any, by the place of the message.
pub(super) fn notes(session: &OpenSession) -> Vec<(usize, String)> {
    let log = session.log.borrow();
    let messages = log.history.messages().iter().enumerate();
    messages.filter_map(|(at, message)| Some((at, message.metadata.as_ref()?.as_str().to_owned()))).collect()
}

fn body(world: &World, session: &OpenSession) -> Vec<u8> {
    let (provider, policy) = (provider(CHAT, false), session.policy(PolicyLayer::default(), BTreeMap::new()));
    let request = RenderRequest { provider: &provider, instructions: None, tools: &[], policy: &policy };
    let mut body = Vec::new();
    world.run(session.render(&request, (words("And?"), Vec::new(), 1_000_000), &mut body)).unwrap();
    body
}

fn opened(world: &World, process: &Process) -> Rc<OpenSession> {
    world.run(process.session(SessionSettings::default()))
}

#[test]
fn r57_the_newest_note_of_a_message_is_there_for_every_reader() {
    for kind in KINDS {
        let (world, service) = (World::new(false), Service::new(kind));
        let (near, far) = (service.process(&world), service.process(&world));
        let session = opened(&world, &near);
        (0..3).for_each(|at| append(&world, &session, &turn(at, "plain")));
        let other = opened(&world, &far);
        let all = ids(&session);
        for metadata in [json!({ "thumb": "down" }), json!({ "thumb": "up", "labels": ["x"] })] {
            world.run(note(&session, &all[2], &metadata)).unwrap();
        }
        world.run(note(&session, &all[4], &json!("note"))).unwrap();
        world.run(note(&session, &all[4], &Value::Null)).unwrap();
        let wanted = [(2, r#"{"thumb":"up","labels":["x"]}"#.to_owned())];
        assert_eq!(notes(&session), wanted, "{kind:?}");
        assert!(world.run(other.refresh()).unwrap(), "listeners are told");
        assert_eq!(notes(&other), wanted, "{kind:?}: another process");
        let (mine, others) = (session.log.borrow(), other.log.borrow());
        assert_eq!(mine.history.annotation_count(&all[2]), others.history.annotation_count(&all[2]));
        drop((mine, others));
        let fresh = opened(&world, &service.process(&world));
        assert_eq!(notes(&fresh), wanted, "{kind:?}: opened anew");
        let error = world.run(note(&session, "unknown", &json!(1))).unwrap_err();
        assert_eq!(error.code, ErrorCode::NotFound);
        assert!(far.heard.borrow().warnings.is_empty() && near.heard.borrow().warnings.is_empty());
    }
}

fn head_of(world: &World, process: &Process) -> SessionHead {
    let stored = world.run(process.open.context.store.head("s")).unwrap().unwrap();
    open_record(RecordKind::Head, &stored.value).unwrap()
}

#[test]
fn r57_a_note_costs_one_small_append_and_changes_nothing_else() {
    let sizes = [2, 200].map(|turns| {
        let (world, data) = (World::new(false), MemoryStore::default());
        let process = Process::new(&world, &data, 1);
        let session = opened(&world, &process);
        let all: Vec<Value> = (0..turns).flat_map(|at| turn(at, "plain").as_array().unwrap().clone()).collect();
        append(&world, &session, &json!(all));
        let (first, before, sent) = (ids(&session)[1].clone(), head_of(&world, &process), body(&world, &session));
        let (appends, renderer) = (process.store.appends.get(), session.renderer.borrow().unsaved_summaries().len());
        world.pass(60_000);
        world.run(note(&session, &first, &json!({ "note": "x" }))).unwrap();
        assert_eq!(process.store.appends.get() - appends, 1);
        let after = head_of(&world, &process);
        assert_eq!((after.history_revision, after.updated_at), (before.history_revision, before.updated_at));
        assert_eq!(after.overview.unread, before.overview.unread);
        assert_eq!(after.term_filter, before.term_filter);
        assert_eq!(body(&world, &session), sent, "the next request is the same");
        assert_eq!(session.renderer.borrow().unsaved_summaries().len(), renderer);
        // An append that expects the revision from before is no conflict.
        let origin = session.origin(rethread::session::AppendOrigin::default());
        let more = Json::parse(r#"[{"role":"user","content":"more"}]"#).unwrap();
        world.run(session.append(&more, Some(CHAT), (&origin, Some(before.history_revision)))).unwrap();
        let record = block_on(data.read("s", Query { from: before.next_record, ..Query::all(Table::Log) })).unwrap();
        record[0].value.len()
    });
    assert!(sizes[0] < 200 && sizes[0].abs_diff(sizes[1]) < 16, "{sizes:?}");
}

#[test]
fn r57_a_note_survives_a_merge_an_archive_an_export_and_a_lost_head() {
    let (world, data) = (World::new(false), MemoryStore::default());
    let process = Process::new(&world, &data, 1);
    let session = opened(&world, &process);
    for at in 0..60 {
        append(&world, &session, &turn(at, &"plain ".repeat(200)));
    }
    let all = ids(&session);
    world.run(note(&session, &all[1], &json!("early"))).unwrap();
    world.run(note(&session, &all[100], &json!("late"))).unwrap();
    let wanted = [(1, r#""early""#.to_owned()), (100, r#""late""#.to_owned())];
    for at in 0..20 {
        world.run(merge_oldest(&*process.store, &session.log, &format!("merge{at}"))).unwrap();
    }
    assert!(block_on(data.read("s", Query::all(Table::Log))).unwrap().iter().any(|record| record.last_key.is_some()));
    assert_eq!(notes(&opened(&world, &Process::new(&world, &data, 2))), wanted);
    let archive = world.run(read_archive(&process.open.context, Some(&session), "s")).unwrap();
    let lines = archive.to_json_lines(&ARCHIVE_DESCRIPTIONS);
    assert!(lines.contains(&format!(r#""annotations":[{{"messageId":"{}","metadata":"early"}}]"#, all[1])), "{lines}");
    let archives = [SessionArchive::open(&archive.seal()).unwrap(), SessionArchive::from_json_lines(&lines).unwrap()];
    for (number, archive) in (3..).zip(archives) {
        let target = Process::new(&world, &MemoryStore::default(), number);
        world.run(restore_archive(&target.open.context, archive, None)).unwrap();
        assert_eq!(notes(&opened(&world, &target)), wanted);
    }
    // Without a head, what the log says is there.
    super::branches::damage_head(&data);
    let rebuilt = opened(&world, &Process::new(&world, &data, 5));
    world.run(rebuilt.read_older()).unwrap();
    assert_eq!(notes(&rebuilt), wanted);
}

#[test]
fn r57_r37_a_copy_has_the_notes_of_its_messages() {
    let (world, data) = (World::new(false), MemoryStore::default());
    let process = Process::new(&world, &data, 1);
    let session = opened(&world, &process);
    (0..2).for_each(|at| append(&world, &session, &turn(at, "plain")));
    let all = ids(&session);
    world.run(note(&session, &all[1], &json!("before the cut"))).unwrap();
    append(&world, &session, &turn(2, "plain"));
    world.run(note(&session, &all[0], &json!("after it"))).unwrap();
    world.run(note(&session, &all[4], &json!("of a later message"))).unwrap();
    for (until, count) in [(Some(all[2].clone()), 2), (None, 3)] {
        let id = format!("copy{count}");
        let copying = copy_session(&process.open.context, (Some(&*session), "s"), until, Some(id.clone()));
        let id = world.run(copying).unwrap();
        let copy = world.run(process.open.open_session(&id, SessionSettings::default())).unwrap();
        assert_eq!(notes(&copy), notes(&session)[..count]);
        assert!(copy.log.borrow().findings.is_empty());
    }
}

#[test]
fn r57_r38_a_note_is_in_each_branch_that_has_its_message() {
    let (world, data) = (World::new(false), MemoryStore::default());
    let process = Process::new(&world, &data, 1);
    let session = opened(&world, &process);
    (0..2).for_each(|at| append(&world, &session, &turn(at, "plain")));
    let all = ids(&session);
    let earlier = world.run(fork(&session, Some(&all[2]))).unwrap();
    world.run(note(&session, &all[1], &json!("a"))).unwrap();
    world.run(note(&session, &all[4], &json!("b"))).unwrap();
    let later = world.run(fork(&session, Some(&all[2]))).unwrap();
    let deeper = {
        world.run(switch_to(&session, &later)).unwrap();
        assert_eq!(notes(&session), [(1, r#""a""#.to_owned())]);
        append(&world, &session, &turn(9, "plain"));
        world.run(note(&session, &all[0], &json!("c"))).unwrap();
        world.run(fork(&session, Some(&all[1]))).unwrap()
    };
    let fresh = opened(&world, &Process::new(&world, &data, 2));
    for (branch, wanted) in [
        ("main", vec![(0, r#""c""#), (1, r#""a""#), (4, r#""b""#)]),
        (earlier.as_str(), vec![(0, r#""c""#), (1, r#""a""#)]),
        (later.as_str(), vec![(0, r#""c""#), (1, r#""a""#)]),
        (deeper.as_str(), vec![(0, r#""c""#), (1, r#""a""#)]),
    ] {
        world.run(switch_to(&fresh, branch)).unwrap();
        let found = notes(&fresh);
        let found: Vec<_> = found.iter().map(|(at, note)| (*at, note.as_str())).collect();
        assert_eq!(found, wanted, "{branch}");
    }
}

#[test]
fn r57_r38_a_note_that_is_taken_while_a_run_edits_is_in_both_branches() {
    for is_killed in [false, true] {
        let (world, data) = (World::new(false), MemoryStore::default());
        let process = Process::new(&world, &data, 1);
        let session = opened(&world, &process);
        (0..2).for_each(|at| append(&world, &session, &turn(at, "plain")));
        let all = ids(&session);
        let setup = in_mode(Persistence::Run, CHAT);
        let run = world.run(replace(&session, setup, &all[3], Some("other"))).unwrap();
        assert!(session.log.borrow().is_unborn());
        world.run(note(&session, &all[1], &json!("while it runs"))).unwrap();
        let error = world.run(note(&session, &all[4], &json!("gone"))).unwrap_err();
        assert_eq!(error.code, ErrorCode::NotFound, "the edited branch has no such message");
        let wanted = [(1, r#""while it runs""#.to_owned())];
        assert_eq!(notes(&session), wanted);
        let (process, session) = if is_killed {
            process.kill();
            world.pass(31_000);
            let next = Process::new(&world, &data, 2);
            let session = opened(&world, &next);
            let resumed = world.run(super::resume(&session, &run.id, in_mode(Persistence::Run, CHAT))).unwrap();
            let outcome = world.run(next.drive(&resumed, &|_| Answer::Say(text("Yes."))));
            assert_eq!(outcome.status, RunStatus::Finished);
            (next, session)
        } else {
            assert_eq!(world.run(process.drive(&run, &|_| Answer::Say(text("Yes.")))).status, RunStatus::Finished);
            (process, session)
        };
        assert_eq!((session.branch_name(), notes(&session)), ("fork-1".into(), wanted.to_vec()));
        let fresh = opened(&world, &Process::new(&world, &data, 3));
        for branch in ["fork-1", "main"] {
            world.run(switch_to(&fresh, branch)).unwrap();
            assert_eq!(notes(&fresh), wanted, "{branch}, killed: {is_killed}");
        }
        assert!(process.heard.borrow().warnings.is_empty());
    }
}

#[test]
fn r57_r59_the_notes_of_an_erased_message_are_in_no_byte() {
    for kind in KINDS {
        let (world, service) = (World::new(false), Service::new(kind));
        let process = service.process(&world);
        let session = opened(&world, &process);
        (0..3).for_each(|at| append(&world, &session, &turn(at, "plain")));
        let all = ids(&session);
        for note_of in [&all[3], &all[3], &all[1]] {
            let metadata = if *note_of == all[1] { json!("kept") } else { json!({ "note": "SECRET" }) };
            world.run(note(&session, note_of, &metadata)).unwrap();
        }
        // A branch repeats it.
        world.run(fork(&session, Some(&all[4]))).unwrap();
        world.run(note(&session, &all[3], &Value::Null)).unwrap();
        assert!(!service.places_of(SECRET).is_empty());
        world.run(delete_messages(&session, &all[3..4])).unwrap();
        assert_eq!(service.places_of(SECRET), Vec::<String>::new(), "{kind:?}");
        let error = world.run(note(&session, &all[3], &json!("SECRET"))).unwrap_err();
        assert_eq!((error.code, service.places_of(SECRET)), (ErrorCode::NotFound, Vec::new()));
        let fresh = opened(&world, &service.process(&world));
        assert_eq!(notes(&fresh), [(1, r#""kept""#.to_owned())]);
        assert!(fresh.log.borrow().findings.is_empty());
    }
}

#[test]
fn r57_r59_a_note_that_meets_a_killed_erasure_brings_nothing_back() {
    for kind in [Kind::KeyValue, Kind::WriteOnce] {
        let mut outcomes = BTreeMap::new();
        for steps in 0.. {
            let (world, service) = (World::new(false), Service::new(kind));
            let (process, other) = (service.process(&world), service.process(&world));
            let session = opened(&world, &process);
            (0..3).for_each(|at| append(&world, &session, &turn(at, if at == 1 { "SECRET" } else { "plain" })));
            let all = ids(&session);
            let stale = opened(&world, &other);
            let targets = all[3..5].to_vec();
            if world.run_steps(delete_messages(&session, &targets), steps).is_some() {
                break;
            }
            drop(session);
            process.kill();
            let noted = world.run(note(&stale, &all[3], &json!("SECRET")));
            drop(stale);
            let fresh = opened(&world, &service.process(&world));
            world.run(fresh.refresh()).unwrap();
            let is_there = ids(&fresh).contains(&all[3]);
            assert!(is_there || !notes(&fresh).iter().any(|(_, note)| note.contains("SECRET")));
            if is_there {
                world.run(delete_messages(&fresh, &targets)).unwrap();
            }
            let sides = world.run(branches(&fresh)).unwrap();
            assert_eq!(service.places_of(SECRET), Vec::<String>::new(), "{kind:?} {steps}, {} branches", sides.len());
            *outcomes.entry((noted.is_ok(), is_there)).or_insert(0) += 1;
        }
        assert!(outcomes.len() > 1, "{kind:?}: {outcomes:?}");
    }
}
