//! Copies of a session up to a message: `Rethread.copy` (R37).

use super::branches::replace;
use super::erasure::{KINDS, Service, append, ids, turn};
use super::scripted_host::*;
use super::virtual_host::{Process, World};
use super::{in_mode, start};
use crate::encrypted_store::over_memory;
use rethread::error::ErrorCode;
use rethread::json::Json;
use rethread::owner::StateOwner;
use rethread::run::{ARCHIVE_DESCRIPTIONS, Persistence, RunStatus};
use rethread::session::{OpenSession, SessionSettings, copy_session, read_archive, search_sessions, switch_to};
use rethread::store::{AuditRow, LogStore, MemoryStore, Query, RecencyQuery, RecordKind, Table, open_record};
use rethread::tool::InvocationStatus;
use serde_json::{Value, json};
use std::rc::Rc;

fn opened(world: &World, process: &Process, id: &str) -> Rc<OpenSession> {
    world.run(process.open.open_session(id, SessionSettings::default())).unwrap()
}

/// Copies the session "s" under an id, and opens the copy.
fn copied(world: &World, process: &Process, until: Option<&str>, id: &str) -> Result<Rc<OpenSession>, ErrorCode> {
    let open = process.open.session("s");
    let copying = copy_session(&process.open.context, (open.as_deref(), "s"), until.map(Into::into), Some(id.into()));
    let id = world.run(copying).map_err(|error| error.code)?;
    Ok(opened(world, process, &id))
}

/// What the lines of an export have of stored records.
fn exported(world: &World, process: &Process, id: &str) -> Vec<Value> {
    let open = process.open.session(id);
    let archive = world.run(read_archive(&process.open.context, open.as_deref(), id)).unwrap();
    let lines = archive.to_json_lines(&ARCHIVE_DESCRIPTIONS);
    let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let records = lines.filter(|line| line["table"].is_string());
    // The words for people name the session.
    records.map(|line| json!([line["table"], line["key"], line["index"], line["value"]])).collect()
}

/// A process with a session of three turns with calls, each an append.
fn chat(world: &Rc<World>, process: &Process) -> Rc<OpenSession> {
    let session = opened(world, process, "s");
    for at in 0..3 {
        world.pass(1_000);
        append(world, &session, &turn(at, &format!("mark{at}")));
    }
    world
        .run(session.update(Box::new(|head| {
            head.title = Some("Weather".into());
            head.channel = Some("mail".into());
            head.metadata = Some(Json::parse("{\"n\":1}").unwrap());
            head.state = vec![("memory".into(), Json::parse("1.50").unwrap())];
            head.owner = StateOwner::Caller.to_stored();
            head.is_archived = true;
        })))
        .unwrap();
    session
}

fn assert_prefix(whole: &OpenSession, copy: &OpenSession, count: usize) {
    let (whole, copy) = (whole.log.borrow(), copy.log.borrow());
    assert_eq!(copy.history.messages(), &whole.history.messages()[..count]);
    let is_copied = |id: &str| copy.history.message(id).is_some();
    let calls: Vec<_> = whole.history.invocations().iter().filter(|call| is_copied(&call.message_id)).collect();
    assert_eq!(copy.history.invocations().iter().collect::<Vec<_>>(), calls);
    assert!(copy.findings.is_empty(), "{:?}", copy.findings);
}

#[test]
fn r37_a_copy_has_what_the_session_has_up_to_a_message() {
    for kind in KINDS {
        let (world, service) = (World::new(true), Service::new(kind));
        let process = service.process(&world);
        let session = chat(&world, &process);
        let before = exported(&world, &process, "s");
        let all = ids(&session);
        for count in 1..=all.len() {
            world.pass(1_000);
            let id = format!("copy{count}");
            let copy = copied(&world, &process, Some(&all[count - 1]), &id).unwrap();
            assert_prefix(&session, &copy, count);
            let head = copy.log.borrow().head.clone();
            assert_eq!((head.title.as_deref(), head.channel.as_deref()), (Some("Weather"), Some("mail")));
            assert_eq!((head.metadata.unwrap().as_str(), head.state[0].1.as_str()), ("{\"n\":1}", "1.50"));
            assert_eq!((head.owner, head.is_archived), (StateOwner::Session.to_stored(), false));
            assert_eq!((head.created_at, head.updated_at), (world.now.get(), world.now.get()));
            // Whole appends are the bytes of the original, and so are the audit rows.
            let lines = exported(&world, &process, &id);
            let is_whole = |line: &&Value| line[0] == "log" && before.contains(line);
            assert_eq!(lines.iter().filter(is_whole).count(), count / 3, "{kind:?} {count}");
            let rows: Vec<_> = lines.iter().filter(|line| line[0] == "tool_invocations").collect();
            let expected = before.iter().filter(|line| line[0] == "tool_invocations");
            assert_eq!(rows, expected.take((count + 1) / 3).collect::<Vec<_>>(), "{kind:?} {count}");
        }
        let whole = copied(&world, &process, None, "whole").unwrap();
        assert_prefix(&session, &whole, all.len());
        assert_eq!(exported(&world, &process, "whole"), before);
        assert_eq!(exported(&world, &process, "s"), before, "the original is as it was");
    }
}

#[test]
fn r37_a_copy_goes_on_alone_and_is_found_by_its_texts() {
    let (world, data) = (World::new(true), MemoryStore::default());
    let process = Process::new(&world, &data, 1);
    let session = chat(&world, &process);
    let all = ids(&session);
    world.pass(1_000);
    let copy = copied(&world, &process, Some(&all[2]), "copy").unwrap();
    assert_eq!(copy.log.borrow().head.known_overview().unwrap().preview.as_ref().unwrap().text, "answer 0");
    assert_eq!(copy.log.borrow().head.message_count(), 3);
    let found = |text: &str| {
        let query = RecencyQuery { limit: 10, archived: None, ..RecencyQuery::default() };
        let page = world.run(search_sessions(&process.open.context, text, &query)).unwrap();
        page.items.into_iter().map(|hit| hit.head.id).collect::<Vec<_>>()
    };
    assert_eq!((found("mark0"), found("mark1")), (vec!["copy".to_owned(), "s".into()], vec!["s".to_owned()]));
    let run = world.run(start(&copy, in_mode(Persistence::Run, CHAT), "And then?")).unwrap();
    assert_eq!(world.run(process.drive(&run, &|_| Answer::Say(text("Rain.")))).status, RunStatus::Finished);
    let asked = process.heard.borrow().asked.last().unwrap().to_string();
    assert!(asked.contains("found mark0") && !asked.contains("mark1"), "{asked}");
    assert_eq!((ids(&copy).len(), ids(&session)), (5, all));
    // The next process reads both.
    let next = Process::new(&world, &data, 2);
    assert_eq!(ids(&opened(&world, &next, "copy")), ids(&copy));
}

#[test]
fn r37_what_cannot_be_copied_is_an_error_and_nothing_is_written() {
    let (world, data) = (World::new(true), MemoryStore::default());
    let process = Process::new(&world, &data, 1);
    let session = chat(&world, &process);
    let first = ids(&session)[0].clone();
    let failed = |until: Option<&str>, id: &str| copied(&world, &process, until, id).err();
    assert_eq!(failed(Some("unknown"), "copy"), Some(ErrorCode::NotFound));
    assert_eq!(failed(Some(&first), "s"), Some(ErrorCode::Conflict));
    assert_eq!(failed(None, ""), Some(ErrorCode::InvalidInput));
    let context = &process.open.context;
    let unknown = world.run(copy_session(context, (None, "nobody"), None, None)).err();
    assert_eq!(unknown.map(|error| error.code), Some(ErrorCode::NotFound));
    assert_eq!(block_on(data.head("copy")).unwrap(), None);
    // Without an id the copy gets a new one.
    let drawn = [(); 2].map(|()| world.run(copy_session(context, (None, "s"), None, None)).unwrap());
    assert_ne!(drawn[0], drawn[1]);
    assert_eq!(ids(&opened(&world, &process, &drawn[0])), ids(&session));
}

/// Which messages each audit row is of, and where the log has its call.
fn rows(data: &dyn LogStore, session: &str) -> Vec<(String, u64, Option<u64>)> {
    let records = block_on(data.read(session, Query::all(Table::ToolInvocations))).unwrap();
    let rows = records.iter().map(|record| open_record::<AuditRow>(RecordKind::Audit, &record.value).unwrap());
    rows.map(|row| (row.call_id, row.record, row.result_record)).collect()
}

#[test]
fn r37_r38_a_copy_of_a_fork_has_its_path_as_the_main_branch() {
    let (world, data) = (World::new(true), MemoryStore::default());
    let process = Process::new(&world, &data, 1);
    let session = chat(&world, &process);
    let main = ids(&session);
    world.run(session.update(Box::new(|head| head.owner = StateOwner::Session.to_stored()))).unwrap();
    let run = world.run(replace(&session, in_mode(Persistence::Run, CHAT), &main[3], Some("other"))).unwrap();
    assert_eq!(world.run(process.drive(&run, &three_tools)).status, RunStatus::Finished);
    let fork = ids(&session);
    assert_eq!((fork.len(), session.branch_name()), (7, "fork-1".to_owned()));
    for count in 1..=fork.len() {
        let copy = copied(&world, &process, Some(&fork[count - 1]), &format!("copy{count}")).unwrap();
        let (whole, part) = (session.log.borrow(), copy.log.borrow());
        assert_eq!(part.history.messages(), &whole.history.messages()[..count]);
        assert_eq!((part.head.branch_count, copy.branch_name()), (0, "main".to_owned()));
        // The keys are those of the copy.
        for call in part.history.invocations() {
            let found =
                block_on(data.read(&copy.id, Query { from: call.record, to: call.record, ..Query::all(Table::Log) }));
            assert_eq!(found.unwrap().len(), 1, "{count} {}", call.id);
        }
        let keys = rows(&data, &copy.id);
        assert_eq!(keys.len(), part.history.invocations().len());
        assert!(keys.iter().all(|(_, record, _)| *record < part.head.next_record), "{keys:?}");
    }
    // The other branch is copied when it is shown.
    assert_eq!(copied(&world, &process, Some(&main[5]), "x").err(), Some(ErrorCode::NotFound));
    world.run(switch_to(&session, "main")).unwrap();
    assert_eq!(ids(&copied(&world, &process, None, "main").unwrap()), main);
}

#[test]
fn r37_a_copy_lacks_the_unfinished_run_and_has_what_history_has() {
    for mode in super::MODES {
        let (world, data) = (World::new(true), MemoryStore::default());
        let process = Process::new(&world, &data, 1);
        let session = opened(&world, &process, "s");
        append(&world, &session, &turn(0, "one"));
        let run = world.run(start(&session, in_mode(mode, CHAT), "Go")).unwrap();
        let hangs = super::hangs_after(2);
        assert!(world.run_steps(process.drive(&run, &hangs), 2_000).is_none());
        let copy = copied(&world, &process, None, "copy").unwrap();
        let log = copy.log.borrow();
        assert_eq!((log.head.runs.len(), block_on(data.read("copy", Query::all(Table::Runs))).unwrap().len()), (0, 0));
        assert_eq!(log.history.messages(), session.log.borrow().history.messages(), "{mode:?}");
        drop(log);
        let run = world.run(start(&copy, in_mode(mode, CHAT), "Stop")).unwrap();
        let said = |_: &Value| Answer::Say(text("Stopped."));
        assert_eq!(world.run(process.drive(&run, &said)).status, RunStatus::Finished);
    }
}

#[test]
fn r37_a_result_that_came_later_is_copied_with_its_call() {
    let (world, data) = (World::new(true), MemoryStore::default());
    let process = Process::new(&world, &data, 1);
    let session = opened(&world, &process, "s");
    let call = |id: &str| json!({ "id": id, "type": "function", "function": { "name": "get", "arguments": "{}" } });
    append(
        &world,
        &session,
        &json!([
            { "role": "user", "content": "both" },
            { "role": "assistant", "content": null, "tool_calls": [call("a"), call("b")] },
        ]),
    );
    append(&world, &session, &json!([{ "role": "tool", "tool_call_id": "a", "content": "first" }]));
    append(&world, &session, &json!([{ "role": "user", "content": "well?" }]));
    append(&world, &session, &json!([{ "role": "tool", "tool_call_id": "b", "content": "second" }]));
    let all = ids(&session);
    let copy = copied(&world, &process, Some(&all[1]), "copy").unwrap();
    {
        let log = copy.log.borrow();
        let results: Vec<_> =
            log.history.invocations().iter().map(|call| (call.status, call.result.clone().unwrap())).collect();
        let contents: Vec<_> = results.iter().map(|(status, result)| (*status, result.content.as_str())).collect();
        assert_eq!(contents, [(InvocationStatus::Ok, "\"first\""), (InvocationStatus::Ok, "\"second\"")]);
    }
    // The first result has the record that it had, the second one that of the copy.
    assert_eq!(rows(&data, "copy"), [("a".into(), 0, Some(1)), ("b".into(), 0, Some(2))]);
    let asked = world.run(start(&copy, in_mode(Persistence::Run, CHAT), "go on")).unwrap();
    assert_eq!(world.run(process.drive(&asked, &|_| Answer::Say(text("Yes.")))).status, RunStatus::Finished);
    // Without its call a result is not copied.
    let question = copied(&world, &process, Some(&all[0]), "question").unwrap();
    assert_eq!(question.log.borrow().history.invocations().len(), 0);
    assert_eq!(question.log.borrow().history.early_results().count(), 0);
}

#[test]
fn r37_r80_a_copy_of_an_encrypted_session_has_a_key_of_its_own() {
    let (world, data) = (World::new(true), MemoryStore::default());
    let process = Process::over(&world, over_memory(&data), 1);
    let session = chat(&world, &process);
    let until = ids(&session)[2].clone();
    let copy = copied(&world, &process, Some(&until), "copy").unwrap();
    assert_prefix(&session, &copy, 3);
    let value = |session: &str| block_on(data.read(session, Query::all(Table::Log))).unwrap()[0].value.clone();
    // Each value begins with the wrapped key.
    assert_ne!(value("s")[..40], value("copy")[..40]);
    assert!(!value("copy").windows(5).any(|part| part == b"mark0"));
    let next = Process::over(&world, over_memory(&data), 2);
    assert_eq!(ids(&opened(&world, &next, "copy")).len(), 3);
}
