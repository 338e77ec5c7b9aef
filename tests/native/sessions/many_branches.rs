//! Sessions with so many branches that they are opened without them.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::branches::siblings;
use super::unshown_branches::append_to;
use super::virtual_host::{Process, World};
use crate::spy_store::Spy;
use rethread::branch_path::DIRECTORY;
use rethread::error::ErrorCode;
use rethread::session::{OpenSession, SessionSettings, branches, fork, switch_to};
use rethread::store::MemoryStore;
use serde_json::{Value, json};
use std::rc::Rc;

/// Two messages, and 70 forks after the first one, of which the last has a message of its own: "main" is shown.
fn forked() -> (Rc<World>, MemoryStore) {
    let (world, data) = (World::new(false), MemoryStore::default());
    let process = Process::new(&world, &data, 1);
    let session = world.run(process.session(SessionSettings::default()));
    world.run(append_to(&session, "main", &said("one"), None)).unwrap();
    world.run(append_to(&session, "main", &said("two"), None)).unwrap();
    let first = ids(&session).remove(0);
    let mut last = String::new();
    for _ in 0..70 {
        last = world.run(fork(&session, Some(&first))).unwrap();
    }
    world.run(append_to(&session, &last, &said("zwei"), None)).unwrap();
    (world, data)
}

fn said(text: &str) -> Value {
    json!([{ "role": "user", "content": text }])
}

fn ids(session: &OpenSession) -> Vec<String> {
    session.log.borrow().history.messages().iter().map(|message| message.id.clone()).collect()
}

/// A process whose reads are counted, and its session.
fn opened(world: &Rc<World>, data: &MemoryStore, number: u32) -> (Rc<Spy>, Process, Rc<OpenSession>) {
    let spy = Rc::new(Spy::new(data));
    let process = Process::over(world, spy.clone(), number);
    let session = world.run(process.session(SessionSettings::default()));
    assert!(session.log.borrow().has_unread_branches());
    (spy, process, session)
}

#[test]
fn r38_r57_a_view_of_many_branches_gets_the_siblings_soon_and_messages_at_once() {
    let (world, data) = forked();
    let (spy, process, session) = opened(&world, &data, 2);
    assert_eq!((siblings(&session, 1).0.len(), spy.directory_rows.get()), (1, 0));
    for _ in 0..3 {
        session.read_branches_soon();
    }
    world.pass(10);
    assert_eq!((siblings(&session, 1).0.len(), siblings(&session, 1).1), (2, 0));
    assert_eq!((process.heard.borrow().replaced, spy.directory_rows.get()), (1, 70));
    session.read_branches_soon();
    world.pass(10);
    assert_eq!(process.heard.borrow().replaced, 1, "nothing is left to read");
    // What another call has read is shown, too.
    let (_, process, session) = opened(&world, &data, 3);
    session.read_branches_soon();
    let page = world.run(session.message_page(None, 10, u64::MAX)).unwrap();
    let page: Vec<Value> = serde_json::from_str(&page.items).unwrap();
    assert_eq!(page[1]["siblings"]["ids"].as_array().unwrap().len(), 2);
    world.pass(10);
    assert_eq!(process.heard.borrow().replaced, 1);
}

#[test]
fn r38_branches_are_found_by_name_and_message_among_many() {
    let (world, data) = forked();
    let names = |session: &Rc<OpenSession>| {
        let all = world.run(branches(session)).unwrap();
        all.into_iter().map(|branch| (branch.id, branch.forked_after, branch.message_count)).collect::<Vec<_>>()
    };
    let (_, _, session) = opened(&world, &data, 2);
    let all = names(&session);
    assert_eq!((all.len(), all[70].0.as_str(), all[70].2), (71, "fork-70", 2));
    let (_, _, session) = opened(&world, &data, 3);
    let page = world.run(session.message_page(Some("fork-70"), 10, u64::MAX)).unwrap();
    let page: Vec<Value> = serde_json::from_str(&page.items).unwrap();
    let own = page[1]["id"].as_str().unwrap();
    let (_, _, session) = opened(&world, &data, 4);
    world.run(switch_to(&session, own)).unwrap();
    assert_eq!((session.branch_name(), ids(&session)[1].as_str()), ("fork-70".into(), own));
    world.run(append_to(&opened(&world, &data, 5).2, "fork-69", &said("x"), None)).unwrap();
    let (_, _, session) = opened(&world, &data, 6);
    let unknown = world.run(append_to(&session, "fork-71", &said("x"), None)).unwrap_err();
    assert_eq!(unknown.code, ErrorCode::NotFound);
    world.run(switch_to(&session, "main")).unwrap();
    let mut after = names(&session);
    assert_eq!(std::mem::replace(&mut after[69].2, 1), 2, "the append");
    assert_eq!(after, all);
}

#[test]
fn r38_r07_branches_that_cannot_be_read_are_reported_and_the_messages_are_shown() {
    let (world, data) = forked();
    let (spy, process, session) = opened(&world, &data, 2);
    spy.unreadable.borrow_mut().push(DIRECTORY + 3);
    session.read_branches_soon();
    world.pass(10);
    assert_eq!((process.heard.borrow().replaced, process.heard.borrow().warnings.len()), (0, 1));
    let page = world.run(session.message_page(None, 10, u64::MAX)).unwrap();
    assert_eq!(serde_json::from_str::<Vec<Value>>(&page.items).unwrap().len(), 2);
    assert!(session.read_failure.borrow().is_some());
    assert_eq!(world.run(branches(&session)).err().unwrap().code, ErrorCode::StoreError);
    assert_eq!(world.run(switch_to(&session, "fork-1")).unwrap_err().code, ErrorCode::StoreError);
    spy.unreadable.borrow_mut().clear();
    session.read_branches_soon();
    world.pass(10);
    assert_eq!((process.heard.borrow().replaced, siblings(&session, 1).0.len()), (1, 2));
    world.run(switch_to(&session, "fork-1")).unwrap();
    assert!(world.run(session.refresh()).is_ok() && session.read_failure.borrow().is_none());
}
