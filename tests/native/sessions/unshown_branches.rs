//! Appends to branches that are not shown, and requests of them (R38).

use super::branches::siblings;
use super::erasure::{KINDS, Kind, Service, append, ids, turn};
use super::scripted_host::*;
use super::virtual_host::{Process, World};
use rethread::error::{Error, ErrorCode};
use rethread::json::Json;
use rethread::message::Dialect;
use rethread::render::RenderRequest;
use rethread::replay::PolicyLayer;
use rethread::session::{AppendOrigin, OpenSession, SessionSettings, branches, fork, switch_to};
use rethread::store::MemoryStore;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::rc::Rc;

fn opened(world: &World, process: &Process) -> Rc<OpenSession> {
    world.run(process.session(SessionSettings::default()))
}

/// Appends to a branch; returns the revision.
pub(super) async fn append_to(
    session: &Rc<OpenSession>,
    branch: &str,
    messages: &Value,
    expected: Option<u64>,
) -> Result<u64, Error> {
    let origin = session.origin(AppendOrigin::default());
    let body = Json::parse(&messages.to_string()).unwrap();
    let (_, revision, _) = session.append_to(Some(branch), (&body, Some(CHAT)), (&origin, expected)).await?;
    Ok(revision)
}

fn said(text: &str) -> Value {
    json!([{ "role": "user", "content": text }])
}

fn stored(world: &World, session: &OpenSession, branch: &str) -> Vec<Value> {
    let page = world.run(session.message_page(Some(branch), 1_000, u64::MAX)).unwrap();
    serde_json::from_str::<Vec<Value>>(&page.items).unwrap()
}

#[test]
fn r38_an_append_to_a_branch_that_is_not_shown_leaves_what_is_shown() {
    for kind in KINDS {
        let (world, service) = (World::new(false), Service::new(kind));
        let process = service.process(&world);
        let session = opened(&world, &process);
        (0..2).for_each(|at| append(&world, &session, &turn(at, "plain")));
        let all = ids(&session);
        // The branch ends with a call without a result.
        let name = world.run(fork(&session, Some(&all[0]))).unwrap();
        let call = json!({ "id": "late", "type": "function", "function": { "name": "get", "arguments": "{}" } });
        let asks = json!([{ "role": "assistant", "content": null, "tool_calls": [call] }]);
        let first = world.run(append_to(&session, &name, &asks, Some(session.revision()))).unwrap();
        assert_eq!(first, session.revision(), "{kind:?}: the revision is the session's");
        let result = json!([{ "role": "tool", "tool_call_id": "late", "content": "found" }]);
        world.run(append_to(&session, &name, &result, None)).unwrap();
        assert_eq!((session.branch_name(), ids(&session)), ("main".into(), all.clone()), "{kind:?}");
        let conflict = world.run(append_to(&session, &name, &said("x"), Some(first))).unwrap_err();
        assert_eq!(conflict.code, ErrorCode::Conflict);
        let unknown = world.run(append_to(&session, "fork-7", &said("x"), None)).unwrap_err();
        assert_eq!(unknown.code, ErrorCode::NotFound);
        // What is shown goes on, and so does the branch.
        append(&world, &session, &turn(5, "plain"));
        world.run(append_to(&session, &name, &said("and?"), None)).unwrap();
        world.run(append_to(&session, "main", &said("shown"), None)).unwrap();
        let (main, branch) = (ids(&session), stored(&world, &session, &name));
        assert_eq!((main.len(), branch.len()), (all.len() + 4, 3));
        assert_eq!(branch[1]["parts"][0]["result"]["content"], "found");
        // Another process opens the session with the branch that was shown, and finds both.
        let fresh = opened(&world, &service.process(&world));
        assert_eq!((fresh.branch_name(), ids(&fresh)), ("main".into(), main), "{kind:?}");
        assert_eq!(stored(&world, &fresh, &name), branch);
        world.run(switch_to(&fresh, &name)).unwrap();
        append(&world, &fresh, &said("more"));
        assert_eq!(ids(&fresh).len(), 4);
        let counts: Vec<_> = world.run(branches(&fresh)).unwrap().iter().map(|branch| branch.message_count).collect();
        assert_eq!(counts, [all.len() as u64 + 4, 4]);
        // Nor does it move a session that shows the branch, or is at it in the store.
        world.run(session.refresh()).unwrap();
        world.run(append_to(&session, &name, &said("once more"), None)).unwrap();
        world.run(fresh.refresh()).unwrap();
        assert_eq!((ids(&fresh).len(), session.branch_name()), (5, "main".into()));
        assert!(process.heard.borrow().warnings.is_empty());
    }
}

#[test]
fn r38_a_view_shows_the_sibling_that_another_process_appended_to_an_empty_fork() {
    let (world, data) = (World::new(false), MemoryStore::default());
    let (near, far) = (Process::new(&world, &data, 1), Process::new(&world, &data, 2));
    let session = opened(&world, &near);
    (0..2).for_each(|at| append(&world, &session, &turn(at, "plain")));
    let all = ids(&session);
    let name = world.run(fork(&session, Some(&all[2]))).unwrap();
    let other = opened(&world, &far);
    world.run(append_to(&other, &name, &said("beside"), None)).unwrap();
    let own = stored(&world, &other, &name)[3]["id"].as_str().unwrap().to_owned();
    let replaced = near.heard.borrow().replaced;
    for (session, is_far) in [(&session, false), (&other, true)] {
        world.run(session.refresh()).unwrap();
        assert_eq!(siblings(session, 3), (vec![all[3].clone(), own.clone()], 0), "far: {is_far}");
    }
    assert_eq!(near.heard.borrow().replaced, replaced + 1, "the message has a sibling now");
    assert_eq!(other.branch_name(), "main");
}

#[test]
fn r38_two_processes_append_to_one_branch_that_neither_shows() {
    for kind in [Kind::Memory, Kind::KeyValue] {
        for steps in 0..60 {
            let (world, service) = (World::new(false), Service::new(kind));
            let both = [service.process(&world), service.process(&world)];
            let sessions = both.each_ref().map(|process| opened(&world, process));
            append(&world, &sessions[0], &turn(0, "plain"));
            let name = world.run(fork(&sessions[0], None)).unwrap();
            let own = (sessions[1].clone(), name.clone());
            let far: rethread::session::LocalFuture<'static, ()> = Box::pin(async move {
                append_to(&own.0, &own.1, &said("far"), None).await.unwrap();
            });
            let mut far = far;
            if world.run_steps(&mut far, steps).is_none() {
                both[1].open.context.host.spawn(far);
            }
            world.run(append_to(&sessions[0], &name, &said("near"), None)).unwrap();
            world.pass(60_000);
            let mut texts: Vec<_> =
                stored(&world, &sessions[0], &name).iter().map(|m| m["parts"][0]["text"].to_string()).collect();
            texts.sort();
            assert_eq!(texts, ["\"far\"", "\"near\""], "{kind:?} {steps}");
            assert_eq!(ids(&sessions[0]).len(), 3);
        }
    }
}

pub(super) fn body(world: &World, session: &OpenSession, dialect: Dialect) -> Vec<u8> {
    let (provider, policy) = (provider(dialect, false), session.policy(PolicyLayer::default(), BTreeMap::new()));
    let request = RenderRequest { provider: &provider, instructions: None, tools: &[], policy: &policy };
    let mut body = Vec::new();
    world.run(session.render(&request, (words("And?"), Vec::new(), 1_000_000), &mut body)).unwrap();
    valid(&serde_json::from_slice(&body).unwrap(), dialect);
    body
}

#[test]
fn r38_a_request_of_a_branch_that_is_not_shown_is_that_of_the_branch() {
    let (world, data) = (World::new(false), MemoryStore::default());
    let process = Process::new(&world, &data, 1);
    let session = opened(&world, &process);
    (0..3).for_each(|at| append(&world, &session, &turn(at, "plain")));
    let name = world.run(fork(&session, Some(&ids(&session)[2]))).unwrap();
    world.run(append_to(&session, &name, &turn(7, "other"), None)).unwrap();
    for dialect in [CHAT, Dialect::Anthropic] {
        let shown = body(&world, &session, dialect);
        let beside = world.run(session.at_branch(Some(&name))).unwrap();
        let of_branch = body(&world, &beside, dialect);
        assert_ne!(of_branch, shown);
        drop(beside);
        assert_eq!((body(&world, &session, dialect), session.branch_name()), (shown, "main".into()));
        world.run(switch_to(&session, &name)).unwrap();
        assert_eq!(body(&world, &session, dialect), of_branch, "{dialect:?}");
        world.run(switch_to(&session, "main")).unwrap();
    }
    let unknown = world.run(session.at_branch(Some("fork-9"))).err().map(|error| error.code);
    assert_eq!(unknown, Some(ErrorCode::NotFound));
}
