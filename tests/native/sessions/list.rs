//! The list of sessions: by recency, with what is archived (R79).

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::scripted_host::*;
use super::virtual_host::{Process, World};
use super::{in_mode, start};
use rethread::json::Json;
use rethread::run::{ARCHIVE_DESCRIPTIONS, Persistence, RunStatus};
use rethread::session::{AppendOrigin, OpenSession, SessionSettings, clear, read_archive, restore_archive};
use rethread::session_head::SessionHead;
use rethread::store::{LogStore, MemoryStore, RecencyQuery, SessionArchive, recent_sessions};
use std::rc::Rc;

fn opened(world: &World, process: &Process, id: &str) -> Rc<OpenSession> {
    world.run(process.open.open_session(id, SessionSettings::default())).unwrap()
}

fn say(world: &World, session: &OpenSession, text: &str) {
    world.pass(1_000);
    let origin = session.origin(AppendOrigin::default());
    let part = serde_json::json!([{ "role": "user", "parts": [{ "type": "text", "text": text }] }]);
    world.run(session.append(&Json::parse(&part.to_string()).unwrap(), None, (&origin, None))).unwrap();
}

fn edit(world: &World, session: &OpenSession, edit: impl Fn(&mut SessionHead) + 'static) {
    world.pass(1_000);
    world.run(session.update(Box::new(edit))).unwrap();
}

/// The ids on all pages of `limit`.
fn listed(store: &dyn LogStore, archived: Option<bool>, limit: usize) -> Vec<String> {
    let (mut ids, mut cursor) = (Vec::new(), None);
    loop {
        let query = RecencyQuery { archived, cursor, limit, ..RecencyQuery::default() };
        let page = block_on(recent_sessions(store, &query)).unwrap();
        ids.extend(page.items.into_iter().map(|row| row.id));
        cursor = page.cursor;
        if cursor.is_none() {
            return ids;
        }
    }
}

fn open_ids(process: &Process) -> String {
    listed(&process.store.data, Some(false), 2).join("")
}

/// A process with sessions "a", "b" and "c", of which "c" was written last.
fn filled(world: &Rc<World>) -> (Process, [Rc<OpenSession>; 3]) {
    let process = Process::new(world, &MemoryStore::default(), 1);
    let sessions = ["a", "b", "c"].map(|id| opened(world, &process, id));
    sessions.iter().for_each(|session| say(world, session, "Hello"));
    (process, sessions)
}

#[test]
fn r79_a_session_moves_to_the_front_when_its_history_changes_and_by_nothing_else() {
    let world = World::new(false);
    let (process, [a, b, _]) = filled(&world);
    assert_eq!(open_ids(&process), "cba");
    say(&world, &a, "And?");
    assert_eq!(open_ids(&process), "acb");
    // A title, the state and a run that has stored nothing in history yet.
    edit(&world, &b, |head| head.title = Some("Last".into()));
    edit(&world, &b, |head| head.state = vec![("key".into(), Json::parse("1").unwrap())]);
    edit(&world, &b, |head| head.is_archived = false);
    let run = world.run(start(&b, in_mode(Persistence::Run, CHAT), "Go")).unwrap();
    assert!(world.run_steps(process.drive(&run, &|_| Answer::Hang), 1_000).is_none());
    world.pass(120_000);
    assert_eq!(open_ids(&process), "acb");
    assert_eq!(b.log.borrow().head.updated_at, 1_002_000);
    process.kill();

    let process = Process::new(&world, &process.store.data, 2);
    let c = opened(&world, &process, "c");
    let run = world.run(start(&c, in_mode(Persistence::Run, CHAT), "Go")).unwrap();
    assert_eq!(world.run(process.drive(&run, &|_| Answer::Say(text("Yes.")))).status, RunStatus::Finished);
    assert_eq!(open_ids(&process), "cab");
    world.pass(1_000);
    world.run(clear(&opened(&world, &process, "a"))).unwrap();
    assert_eq!(open_ids(&process), "acb");
}

#[test]
fn r79_an_archived_session_is_listed_when_asked_for_and_stays_archived() {
    let world = World::new(false);
    let (process, [a, b, c]) = filled(&world);
    edit(&world, &b, |head| head.is_archived = true);
    let data = &process.store.data;
    assert_eq!(open_ids(&process), "ca");
    assert_eq!(listed(data, Some(true), 5), ["b"]);
    assert_eq!(listed(data, None, 1), ["c", "b", "a"]);
    // A message moves it to the front of the archived ones, where it stays.
    edit(&world, &c, |head| head.is_archived = true);
    assert_eq!(listed(data, Some(true), 5), ["c", "b"]);
    say(&world, &b, "Still there?");
    assert_eq!((open_ids(&process), listed(data, Some(true), 5)), ("a".into(), vec!["b".into(), "c".into()]));
    world.run(clear(&b)).unwrap();
    edit(&world, &c, |head| head.is_archived = false);
    assert_eq!((open_ids(&process), listed(data, Some(true), 5)), ("ca".into(), vec!["b".into()]));
    drop(a);
}

#[test]
fn r79_a_session_that_is_moved_keeps_its_place_in_the_list() {
    let world = World::new(false);
    let (process, [a, b, _]) = filled(&world);
    edit(&world, &b, |head| head.is_archived = true);
    let target = Process::new(&world, &MemoryStore::default(), 2);
    say(&world, &opened(&world, &target, "newest"), "Hello");
    for session in [&a, &b] {
        let archive = world.run(read_archive(&process.open.context, Some(session), &session.id)).unwrap();
        let lines = archive.to_json_lines(&ARCHIVE_DESCRIPTIONS);
        let archive = SessionArchive::from_json_lines(&lines).unwrap();
        world.pass(1_000);
        world.run(restore_archive(&target.open.context, archive, None)).unwrap();
    }
    assert_eq!(listed(&target.store.data, None, 2), ["newest", "b", "a"]);
    assert_eq!(listed(&target.store.data, Some(true), 2), ["b"]);
}

#[test]
fn r79_a_store_without_an_index_of_times_is_listed_alike() {
    let world = World::new(false);
    let (process, [a, b, c]) = filled(&world);
    say(&world, &a, "And?");
    edit(&world, &b, |head| head.is_archived = true);
    edit(&world, &c, |head| head.channel = Some("web".into()));
    // The slow store of a process has no index.
    let slow: &dyn LogStore = &*process.store;
    assert!(slow.recent_sessions(&RecencyQuery::default()).is_none());
    for archived in [None, Some(true), Some(false)] {
        for limit in [1, 2, 100] {
            assert_eq!(listed(slow, archived, limit), listed(&process.store.data, archived, limit));
        }
    }
    let web = RecencyQuery { channel: Some("web".into()), ..RecencyQuery::default() };
    assert_eq!(block_on(recent_sessions(slow, &web)).unwrap().items.len(), 1);
}
