//! What views and lists show of branches that other processes made.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::in_mode;
use super::scripted_host::*;
use super::start;
use super::virtual_host::{Process, World};
use rethread::branch_path::DIRECTORY;
use rethread::error::ErrorCode;
use rethread::run::{Persistence, RunStatus};
use rethread::session::{OpenSession, SessionSettings, branches, fork, switch_to};
use rethread::store::{Batch, LogStore, MemoryStore, Query, Table};
use std::rc::Rc;

fn ask(world: &World, process: &Process, session: &Rc<OpenSession>, input: &str) {
    let run = world.run(start(session, in_mode(Persistence::Run, CHAT), input)).unwrap();
    let outcome = world.run(process.drive(&run, &|_| Answer::Say(text("Yes."))));
    assert_eq!(outcome.status, RunStatus::Finished);
}

#[test]
fn r38_a_view_shows_siblings_that_an_append_met() {
    let (world, data) = (World::new(false), MemoryStore::default());
    let (near, far) = (Process::new(&world, &data, 1), Process::new(&world, &data, 2));
    let session = world.run(near.session(SessionSettings::default()));
    ask(&world, &near, &session, "one");
    let other = world.run(far.session(SessionSettings::default()));
    world.run(fork(&other, None)).unwrap();
    assert_eq!(near.heard.borrow().replaced, 0);
    // The append conflicts with the fork, and reads of it.
    world.run(session.update(Box::new(|head| head.title = Some("T".into())))).unwrap();
    assert_eq!((session.log.borrow().head.branch_count, near.heard.borrow().replaced), (1, 1));
    world.run(session.update(Box::new(|head| head.title = Some("U".into())))).unwrap();
    assert_eq!(near.heard.borrow().replaced, 1, "nothing new");
    // A renewed lease may meet one, too.
    world.run(fork(&other, None)).unwrap();
    world.run(session.commit_lease(session.new_change())).unwrap();
    assert_eq!((session.log.borrow().head.branch_count, near.heard.borrow().replaced), (2, 2));
}

/// Damages the record of a branch in the directory.
fn damage_row(data: &MemoryStore, number: u64) {
    let key = DIRECTORY + number;
    let mut row = block_on(data.read("s", Query { from: key, to: key, ..Query::all(Table::Log) })).unwrap().remove(0);
    let mut value = row.value.to_vec();
    *value.last_mut().unwrap() ^= 0x10;
    row.value = value.into();
    let head = block_on(data.head("s")).unwrap().unwrap();
    let batch = Batch { head: head.value, replace: vec![row], ..Batch::default() };
    block_on(data.append("s", head.revision, batch, "damage")).unwrap();
}

#[test]
fn r38_r48_a_branch_whose_record_is_damaged_is_listed_as_damaged() {
    let (world, data) = (World::new(false), MemoryStore::default());
    let process = Process::new(&world, &data, 1);
    let session = world.run(process.session(SessionSettings::default()));
    ask(&world, &process, &session, "one");
    for _ in 0..2 {
        world.run(fork(&session, None)).unwrap();
    }
    damage_row(&data, 1);
    for session in [session, world.run(Process::new(&world, &data, 2).session(SessionSettings::default()))] {
        let all = world.run(branches(&session)).unwrap();
        let names: Vec<_> = all.iter().map(|branch| branch.id.as_str()).collect();
        assert_eq!(names, ["main", "fork-1", "fork-2"]);
        assert_eq!(all.iter().map(|branch| branch.is_damaged).collect::<Vec<_>>(), [false, true, false]);
        let refused = world.run(switch_to(&session, "fork-1")).unwrap_err();
        assert_eq!(refused.code, ErrorCode::CorruptRecord);
        let unread = world.run(session.message_page(Some("fork-1"), 10, u64::MAX)).err().unwrap();
        assert_eq!(unread.code, ErrorCode::CorruptRecord);
        world.run(switch_to(&session, "fork-2")).unwrap();
        world.run(switch_to(&session, "main")).unwrap();
    }
}
