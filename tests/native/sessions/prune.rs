//! Old turns are erased, by age and number (R39, R59).

use super::branches::replace;
use super::erasure::{KINDS, SECRET, Service, append, ids, turn};
use super::scripted_host::*;
use super::virtual_host::{Process, World};
use super::{in_mode, start};
use rethread::error::ErrorCode;
use rethread::json::Json;
use rethread::run::{Persistence, RunStatus};
use rethread::session::{
    AppendOrigin, LocalFuture, OpenSession, PruneRequest, Pruned, SessionSettings, discard_run, prune, switch_to,
};
use rethread::store::MemoryStore;
use serde_json::json;
use std::rc::Rc;

fn opened(world: &World, process: &Process, id: &str) -> Rc<OpenSession> {
    world.run(process.open.open_session(id, SessionSettings::default())).unwrap()
}

fn pruned(world: &World, process: &Process, request: &PruneRequest) -> Pruned {
    world.run(prune(&process.open, request)).unwrap()
}

/// What each session lost and has left.
fn counts(pruned: &Pruned) -> Vec<(&str, u64, u64)> {
    pruned.sessions.iter().map(|session| (session.id.as_str(), session.removed, session.left)).collect()
}

/// Four turns with a call each, a second apart. The first two have the secret.
fn fill(world: &World, session: &OpenSession) -> [u64; 4] {
    [0, 1, 2, 3].map(|at| {
        world.pass(1_000);
        append(world, session, &turn(at, if at < 2 { "SECRET" } else { "plain" }));
        session.log.borrow().head.updated_at
    })
}

#[test]
fn r39_r59_old_turns_go_whole_by_age_and_number_and_leave_no_byte() {
    for kind in KINDS {
        let (world, service) = (World::new(false), Service::new(kind));
        let process = service.process(&world);
        let session = opened(&world, &process, "s");
        let times = fill(&world, &session);
        let all = ids(&session);
        let dry = PruneRequest { until: Some(times[1]), is_dry_run: true, ..PruneRequest::default() };
        assert_eq!(counts(&pruned(&world, &process, &dry)), [("s", 6, 6)], "{kind:?}");
        assert_eq!(ids(&session), all, "nothing is erased yet");
        // Of the two old turns the newer one is among the newest three.
        let kept = PruneRequest { keep_newest_turns: 3, is_dry_run: false, ..dry.clone() };
        assert_eq!(counts(&pruned(&world, &process, &kept)), [("s", 3, 9)]);
        assert_eq!(ids(&session), all[3..]);
        assert!(!service.places_of(SECRET).is_empty());
        let by_age = PruneRequest { is_dry_run: false, ..dry };
        assert_eq!(counts(&pruned(&world, &process, &by_age)), [("s", 3, 6)]);
        assert_eq!(service.places_of(SECRET), [""; 0], "{kind:?}");
        assert!(pruned(&world, &process, &by_age).sessions.is_empty());
        let newest = PruneRequest { keep_newest_turns: 1, ..PruneRequest::default() };
        assert_eq!(counts(&pruned(&world, &process, &newest)), [("s", 3, 3)]);
        assert_eq!(ids(&session), all[9..]);
        // What is left goes on: the rules of the provider check the body.
        let run = world.run(start(&session, in_mode(Persistence::Run, CHAT), "And?")).unwrap();
        assert_eq!(world.run(process.drive(&run, &|_| Answer::Say(text("Yes.")))).status, RunStatus::Finished);
    }
}

#[test]
fn r59_sessions_are_pruned_by_channel_and_what_fails_is_named() {
    let world = World::new(false);
    let process = Process::new(&world, &MemoryStore::default(), 1);
    for id in ["a", "b", "c"] {
        let session = opened(&world, &process, id);
        fill(&world, &session);
        if id != "a" {
            world.run(session.update(Box::new(|head| head.channel = Some("mail".into())))).unwrap();
        }
    }
    let c = opened(&world, &process, "c");
    let run = world.run(start(&c, in_mode(Persistence::Run, CHAT), "Go")).unwrap();
    assert!(world.run_steps(process.drive(&run, &|_| Answer::Hang), 1_000).is_none());
    let id = run.id.clone();
    process.kill();

    let process = Process::new(&world, &process.store.data, 2);
    world.pass(120_000);
    let mail = PruneRequest { keep_newest_turns: 2, channel: Some("mail".into()), ..PruneRequest::default() };
    let outcome = pruned(&world, &process, &mail);
    assert_eq!(counts(&outcome), [("b", 6, 6)]);
    let failed: Vec<_> = outcome.failed.iter().map(|(id, error)| (id.as_str(), error.code)).collect();
    assert_eq!(failed, [("c", ErrorCode::WrongState)]);
    let c = opened(&world, &process, "c");
    assert_eq!(ids(&c).len(), 12, "it is as it was");
    world.run(discard_run(&c, &id, false)).unwrap();
    assert_eq!(counts(&pruned(&world, &process, &mail)), [("c", 6, 6)]);
    let one = PruneRequest { session: Some("a".into()), channel: None, ..mail };
    assert_eq!(counts(&pruned(&world, &process, &one)), [("a", 6, 6)]);
    let missing = PruneRequest { session: Some("none".into()), ..one };
    assert!(pruned(&world, &process, &missing).sessions.is_empty());
    // Everything is old: the session stays, empty.
    let all = PruneRequest { until: Some(u64::MAX), session: Some("b".into()), ..PruneRequest::default() };
    assert_eq!(counts(&pruned(&world, &process, &all)), [("b", 6, 0)]);
    assert!(ids(&opened(&world, &process, "b")).is_empty());
}

#[test]
fn r59_what_another_branch_keeps_stays() {
    let world = World::new(false);
    let process = Process::new(&world, &MemoryStore::default(), 1);
    let session = opened(&world, &process, "s");
    for input in ["one", "two", "three"] {
        let run = world.run(start(&session, in_mode(Persistence::Run, CHAT), input)).unwrap();
        assert_eq!(world.run(process.drive(&run, &|_| Answer::Say(text("Yes.")))).status, RunStatus::Finished);
    }
    let main = ids(&session);
    // A branch beside the second turn, which has two turns.
    let run = world.run(replace(&session, in_mode(Persistence::Run, CHAT), &main[2], Some("zwei"))).unwrap();
    assert_eq!(world.run(process.drive(&run, &|_| Answer::Say(text("Ja.")))).status, RunStatus::Finished);
    let fork = ids(&session);
    let two = PruneRequest { keep_newest_turns: 2, ..PruneRequest::default() };
    assert!(pruned(&world, &process, &two).sessions.is_empty(), "the first turn is one of the newest two of the fork");
    let one = PruneRequest { keep_newest_turns: 1, ..PruneRequest::default() };
    assert_eq!(counts(&pruned(&world, &process, &one)), [("s", 4, 4)]);
    assert_eq!(ids(&session), fork[2..]);
    world.run(switch_to(&session, "main")).unwrap();
    assert_eq!(ids(&session), main[4..]);
}

#[test]
fn r59_r75_a_turn_whose_call_has_no_result_yet_stays_with_those_after_it() {
    let world = World::new(false);
    let process = Process::new(&world, &MemoryStore::default(), 1);
    let session = opened(&world, &process, "s");
    append(&world, &session, &turn(0, "plain"));
    let open = json!([
        { "role": "user", "content": "Order it" },
        { "role": "assistant", "content": null, "tool_calls": [
            { "id": "open", "type": "function", "function": { "name": "order", "arguments": "{}" } }] },
    ]);
    append(&world, &session, &open);
    append(&world, &session, &turn(1, "plain"));
    let all = ids(&session);
    let old = PruneRequest { until: Some(u64::MAX), ..PruneRequest::default() };
    assert_eq!(counts(&pruned(&world, &process, &old)), [("s", 3, 5)]);
    assert_eq!(ids(&session), all[3..]);
    let result = Json::parse(r#"[{"role":"tool","tool_call_id":"open","content":"Ordered."}]"#).unwrap();
    let origin = session.origin(AppendOrigin::default());
    world.run(session.append(&result, Some(CHAT), (&origin, None))).unwrap();
    assert_eq!(counts(&pruned(&world, &process, &old)), [("s", 5, 0)]);
}

#[test]
fn r59_r15_an_answer_that_arrives_meanwhile_keeps_its_question() {
    for steps in 0..40 {
        let (world, data) = (World::new(false), MemoryStore::default());
        let [one, other] = [1, 2].map(|number| Process::new(&world, &data, number));
        let [asked, answered] = [&one, &other].map(|process| opened(&world, process, "s"));
        append(&world, &asked, &json!([{ "role": "user", "content": "Still there?" }]));
        let until = Some(asked.log.borrow().head.updated_at);
        let (question, open) = (ids(&asked), one.open.clone());
        world.pass(10_000);
        let mut pruning: LocalFuture<'static, ()> = Box::pin(async move {
            prune(&open, &PruneRequest { until, ..PruneRequest::default() }).await.unwrap();
        });
        let has_ended = world.run_steps(&mut pruning, steps).is_some();
        let was_erased = ids(&opened(&world, &Process::new(&world, &data, 3), "s")).is_empty();
        append(&world, &answered, &json!([{ "role": "assistant", "content": "Yes." }]));
        if !has_ended {
            one.open.context.host.spawn(pruning);
        }
        world.pass(1_000);
        world.run(answered.refresh()).unwrap();
        let left = ids(&answered);
        assert_eq!(left.len(), if was_erased { 1 } else { 2 }, "{steps} steps");
        assert_eq!(left[0] == question[0], !was_erased, "{steps} steps");
    }
}

#[test]
fn r59_a_request_that_would_erase_everything_is_refused() {
    let world = World::new(false);
    let process = Process::new(&world, &MemoryStore::default(), 1);
    let refused = world.run(prune(&process.open, &PruneRequest::default())).err().map(|error| error.code);
    assert_eq!(refused, Some(ErrorCode::ConfigInvalid));
}
