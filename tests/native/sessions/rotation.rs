//! The keys of all sessions are wrapped anew after the application's key was replaced (R80).

use super::both;
use super::scripted_host::*;
use super::virtual_host::{Process, World};
use crate::encrypted_store::{Key, ONE, TWO, over, over_memory};
use rethread::error::ErrorCode;
use rethread::json::Json;
use rethread::session::{AppendOrigin, OpenSession, SessionSettings, rotate_keys, rotate_keys_soon};
use rethread::session_head::SessionHead;
use rethread::store::{
    Batch, LogStore, MemoryStore, RecencyQuery, RecordKind, open_record, recent_sessions, seal_record,
};
use serde_json::json;
use std::rc::Rc;

const SESSIONS: usize = 120;

fn process(world: &Rc<World>, data: &MemoryStore, number: u32, keys: &[Key]) -> Process {
    Process::over(world, over(Rc::new(data.clone()), keys), number)
}

async fn say(session: &OpenSession, text: &str) {
    let body = Json::parse(&json!([{ "role": "user", "content": text }]).to_string()).unwrap();
    let origin = session.origin(AppendOrigin::default());
    session.append(&body, Some(CHAT), (&origin, None)).await.unwrap();
}

async fn opened(process: &Process, id: &str) -> Rc<OpenSession> {
    process.open.open_session(id, SessionSettings::default()).await.unwrap()
}

/// Sessions with two messages each, all with the first key.
fn filled(world: &Rc<World>, data: &MemoryStore, sessions: usize) {
    let process = process(world, data, 1, &[ONE]);
    for at in 0..sessions {
        world.pass(10);
        world.run(async {
            let session = opened(&process, &format!("s{at:03}")).await;
            say(&session, "one").await;
            say(&session, &format!("text {at}")).await;
        });
    }
}

fn texts(world: &World, process: &Process, id: &str) -> Vec<String> {
    let session = world.run(opened(process, id));
    world.run(session.refresh()).unwrap();
    let log = session.log.borrow();
    let text = |message: &rethread::message::Message| format!("{:?}", message.parts);
    log.history.messages().iter().map(text).collect()
}

fn listed(world: &World, process: &Process) -> Vec<String> {
    let query = RecencyQuery { limit: 200, ..RecencyQuery::default() };
    let page = world.run(recent_sessions(&*process.open.context.store, &query)).unwrap();
    page.items.into_iter().map(|row| row.id).collect()
}

/// Asserts that the second key alone opens all sessions, each with so many messages and the order that they had.
fn assert_rotated(world: &Rc<World>, data: &MemoryStore, sessions: usize) {
    let new = process(world, data, 7, &[TWO]);
    for at in 0..sessions {
        let texts = texts(world, &new, &format!("s{at:03}"));
        assert!(texts.len() == 2 && texts[1].contains(&format!("text {at}")), "{at}: {texts:?}");
    }
    let newest_first: Vec<String> = (0..sessions).rev().map(|at| format!("s{at:03}")).collect();
    assert_eq!(listed(world, &new), newest_first);
    let old = process(world, data, 8, &[ONE]);
    let refused = world.run(old.open.open_session("s000", SessionSettings::default())).err();
    assert_eq!(refused.map(|error| error.code), Some(ErrorCode::WrongKey));
}

#[test]
fn r80_a_rotation_wraps_each_key_anew_and_the_new_key_alone_opens_all() {
    let (world, data) = (World::new(false), MemoryStore::default());
    filled(&world, &data, SESSIONS);
    let both_keys = process(&world, &data, 2, &[TWO, ONE]);
    let rotated = world.run(rotate_keys(&both_keys.open.context)).unwrap();
    assert_eq!((rotated.rotated, rotated.failed.len()), (SESSIONS as u64, 0));
    assert_rotated(&world, &data, SESSIONS);
    let revision = world.run(data.head("s000")).unwrap().unwrap().revision;
    let again = world.run(rotate_keys(&both_keys.open.context)).unwrap();
    assert_eq!((again.rotated, again.failed.len()), (0, 0));
    assert_eq!(world.run(data.head("s000")).unwrap().unwrap().revision, revision, "nothing is written twice");
}

#[test]
fn r80_a_rotation_begins_a_second_after_the_opening_and_ends_with_the_store() {
    for is_closed in [false, true] {
        let (world, data) = (World::new(false), MemoryStore::default());
        filled(&world, &data, 3);
        // Closing a store in memory empties it, this one not.
        let store = Process::new(&world, &data, 2).store;
        let both_keys = Process::over(&world, over(store, &[TWO, ONE]), 2);
        let before = world.run(data.head("s000")).unwrap();
        rotate_keys_soon(&both_keys.open);
        world.pass(900);
        assert_eq!(world.run(data.head("s000")).unwrap(), before);
        if is_closed {
            world.run(async {
                both_keys.open.context.disconnect();
                both_keys.open.close().await.unwrap();
            });
        }
        world.pass(1_000);
        if is_closed {
            assert_eq!(world.run(data.head("s000")).unwrap(), before);
        } else {
            assert_rotated(&world, &data, 3);
        }
        assert!(both_keys.heard.borrow().warnings.is_empty());
    }
}

#[test]
fn r80_a_damaged_head_needs_no_replaced_key_after_a_rotation() {
    let (world, data) = (World::new(false), MemoryStore::default());
    filled(&world, &data, 1);
    let both_keys = process(&world, &data, 2, &[TWO, ONE]);
    world.run(rotate_keys(&both_keys.open.context)).unwrap();
    let head = world.run(data.head("s000")).unwrap().unwrap();
    let damaged = Batch { head: vec![9; 40].into(), ..Batch::default() };
    world.run(data.append("s000", head.revision, damaged, "damage")).unwrap();
    let new = process(&world, &data, 3, &[TWO]);
    assert_eq!(texts(&world, &new, "s000").len(), 2);
}

#[test]
fn r80_a_session_that_cannot_be_rotated_is_named_and_the_others_are_rotated() {
    const OTHER: Key = [3; 32];
    let (world, data) = (World::new(false), MemoryStore::default());
    filled(&world, &data, 3);
    let other = process(&world, &data, 4, &[OTHER]);
    world.run(async {
        let session = opened(&other, "foreign").await;
        say(&session, "of another application").await;
    });
    let both_keys = process(&world, &data, 2, &[TWO, ONE]);
    let rotated = world.run(rotate_keys(&both_keys.open.context)).unwrap();
    assert_eq!(rotated.rotated, 3);
    let failed: Vec<_> = rotated.failed.iter().map(|(id, error)| (id.as_str(), error.code)).collect();
    assert_eq!(failed, [("foreign", ErrorCode::WrongKey)]);
    assert_eq!(texts(&world, &other, "foreign").len(), 1);
    rotate_keys_soon(&both_keys.open);
    world.pass(2_000);
    let warnings = both_keys.heard.borrow().warnings.clone();
    assert!(warnings.len() == 1 && warnings[0].message.contains("\"foreign\""), "{warnings:?}");
}

#[test]
fn r80_what_other_processes_append_during_a_rotation_is_kept() {
    let (world, data) = (World::new(false), MemoryStore::default());
    filled(&world, &data, 1);
    // A store whose operations take time, so that reads and writes of both interleave.
    for pause in 0..12 {
        let keys = if pause % 2 == 0 { [TWO, ONE] } else { [ONE, TWO] };
        let slow = |number| Process::new(&world, &data, number).store;
        let rotating = Process::over(&world, over(slow(20 + pause), &keys), 20 + pause);
        let talking = Process::over(&world, over(slow(60 + pause), &keys), 60 + pause);
        world.run(both(
            async {
                let session = opened(&talking, "s000").await;
                for word in ["a", "b", "c"] {
                    say(&session, &format!("{word}{pause}")).await;
                }
            },
            async {
                world.sleep(u64::from(pause)).await;
                assert!(rotate_keys(&rotating.open.context).await.unwrap().failed.is_empty());
            },
        ));
        assert_eq!(texts(&world, &talking, "s000").len(), 2 + 3 * (pause as usize + 1));
    }
}

#[test]
fn r80_without_encryption_there_is_nothing_to_rotate() {
    let (world, data) = (World::new(false), MemoryStore::default());
    let head = seal_record(RecordKind::Head, &SessionHead::new("plain", 1));
    world.run(data.append("plain", 0, Batch { head, ..Batch::default() }, "first")).unwrap();
    let plain = Process::new(&world, &data, 1);
    assert_eq!(world.run(rotate_keys(&plain.open.context)).unwrap().rotated, 0);
    let encrypted = Process::over(&world, over_memory(&data), 2);
    assert_eq!(world.run(rotate_keys(&encrypted.open.context)).unwrap().rotated, 0);
    let stored = world.run(data.head("plain")).unwrap().unwrap();
    assert_eq!(stored.revision, 1);
    assert!(open_record::<SessionHead>(RecordKind::Head, &stored.value).is_ok());
}
