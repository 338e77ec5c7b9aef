//! Erasure of what the compaction in a later answer repeats (R59, R78).

use super::erasure::{KINDS, Kind, SECRET, Service, append, ids, turn};
use super::scripted_host::*;
use super::virtual_host::{Process, World};
use super::{in_mode, start};
use rethread::json::Json;
use rethread::message::Dialect;
use rethread::run::{Persistence, RunStatus};
use rethread::session::{
    AppendOrigin, OpenSession, PruneRequest, SessionSettings, delete_messages, fork, prune, switch_to,
};
use serde_json::{Value, json};
use std::rc::Rc;

/// An answer with what stands for all before it, first or in its middle; Anthropic's with or without a signature.
fn compaction(dialect: Dialect, is_first: bool) -> Answer {
    let answer = if dialect == CLAUDE {
        let mut block = json!({ "type": "compaction", "content": "SECRET of before" });
        if is_first {
            block["signature"] = json!("<sealed>");
        }
        json!({ "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
            "content": [block, { "type": "text", "text": "<well>" }], "usage": { "input_tokens": 1, "output_tokens": 1 } })
    } else {
        let item = json!({ "type": "compaction", "id": "cmp_1", "encrypted_content": "SECRET of before" });
        let message = json!({ "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
            "content": [{ "type": "output_text", "annotations": [], "text": "<well>" }] });
        let output = if is_first { json!([item, message]) } else { json!([message, item]) };
        json!({ "id": "resp_1", "object": "response", "model": "m", "status": "completed", "error": null, "output": output })
    };
    Answer::Status(200, Vec::new(), answer.to_string())
}

fn ask(
    world: &World,
    process: &Process,
    session: &Rc<OpenSession>,
    (dialect, input): (Dialect, &str),
    model: &dyn Fn(&Value) -> Answer,
) -> Value {
    let run = world.run(start(session, in_mode(Persistence::Run, dialect), input)).unwrap();
    assert_eq!(world.run(process.drive(&run, model)).status, RunStatus::Finished, "{input}");
    process.heard.borrow().asked.last().unwrap().clone()
}

fn well(_: &Value) -> Answer {
    Answer::Say(text("Well."))
}

/// Three turns: the first one has the secret, and the answer of the second one a compaction.
fn filled(
    world: &Rc<World>,
    service: &Service,
    dialect: Dialect,
    is_first: bool,
) -> (Process, Rc<OpenSession>, Vec<String>) {
    let process = service.process(world);
    let session = world.run(process.session(SessionSettings::default()));
    ask(world, &process, &session, (dialect, "a SECRET"), &well);
    ask(world, &process, &session, (dialect, "<two>"), &|_| compaction(dialect, is_first));
    ask(world, &process, &session, (dialect, "<three>"), &well);
    let all = ids(&session);
    (process, session, all)
}

#[test]
fn r59_r78_the_compaction_in_a_later_answer_is_erased_with_what_it_repeats() {
    for kind in KINDS {
        for (dialect, is_first) in [(CLAUDE, true), (CLAUDE, false), (RESPONSES, true), (RESPONSES, false)] {
            let (world, service) = (World::new(false), Service::new(kind));
            let (process, session, all) = filled(&world, &service, dialect, is_first);
            // What comes after the compaction is not in it.
            let receipt = world.run(delete_messages(&session, &all[5..])).unwrap();
            assert_eq!(receipt.messages, all[5..]);
            assert!(!service.places_of(SECRET).is_empty());
            let receipt = world.run(delete_messages(&session, &all[..1])).unwrap();
            assert_eq!(receipt.messages, [all[0].clone(), all[3].clone()], "{kind:?} {dialect:?} {is_first}");
            assert_eq!(service.places_of(SECRET), Vec::<String>::new(), "{kind:?} {dialect:?} {is_first}");
            assert_eq!(ids(&session), [&all[1..3], &all[4..5]].concat());
            let body = ask(&world, &process, &session, (dialect, "<four>"), &well).to_string();
            assert!(body.contains("<two>") && body.contains("<four>") && !body.contains("compaction\""), "{body}");
        }
    }
}

#[test]
fn r59_r78_a_compaction_in_a_branch_without_the_erased_message_stays() {
    for kind in KINDS {
        let (world, service) = (World::new(false), Service::new(kind));
        let (process, session, all) = filled(&world, &service, RESPONSES, true);
        let branch = world.run(fork(&session, Some(&all[1]))).unwrap();
        world.run(switch_to(&session, &branch)).unwrap();
        ask(&world, &process, &session, (RESPONSES, "<beside>"), &well);
        ask(&world, &process, &session, (RESPONSES, "<compacted>"), &|_| compaction(RESPONSES, true));
        let beside = ids(&session);
        // Only the other branch has it.
        let receipt = world.run(delete_messages(&session, &all[2..3])).unwrap();
        assert_eq!(receipt.messages, all[2..4], "{kind:?}");
        assert_eq!(ids(&session), beside);
        // Both have this one.
        let receipt = world.run(delete_messages(&session, &all[..1])).unwrap();
        assert_eq!(receipt.messages, [all[0].clone(), beside[5].clone()], "{kind:?}");
        assert_eq!(service.places_of(SECRET), Vec::<String>::new(), "{kind:?}");
    }
}

#[test]
fn r59_r78_old_turns_go_with_the_compactions_that_repeat_them() {
    for kind in [Kind::Memory, Kind::WriteOnce] {
        let (world, service) = (World::new(false), Service::new(kind));
        let (process, session, all) = filled(&world, &service, RESPONSES, true);
        for is_dry_run in [true, false] {
            let request = PruneRequest { keep_newest_turns: 2, is_dry_run, ..PruneRequest::default() };
            let pruned = world.run(prune(&process.open, &request)).unwrap();
            let counts: Vec<_> = pruned.sessions.iter().map(|session| (session.removed, session.left)).collect();
            assert_eq!((counts, pruned.failed.len()), (vec![(3, 3)], 0), "{kind:?} {is_dry_run}");
        }
        assert_eq!(ids(&session), [&all[2..3], &all[4..]].concat());
        assert_eq!(service.places_of(SECRET), Vec::<String>::new(), "{kind:?}");
    }
}

#[test]
fn r59_r78_a_dry_run_names_the_compactions_on_the_other_side_of_a_conflict_too() {
    let (world, service) = (World::new(false), Service::new(Kind::WriteOnce));
    let (first, second) = (service.process(&world), service.process(&world));
    let session = world.run(first.session(SessionSettings::default()));
    append(&world, &session, &turn(0, "SECRET"));
    let other = world.run(second.session(SessionSettings::default()));
    let items = json!([{ "role": "user", "content": "<two>" },
        { "type": "compaction", "id": "cmp_1", "encrypted_content": "SECRET of before" },
        { "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
            "content": [{ "type": "output_text", "annotations": [], "text": "<well>" }] }]);
    let origin = session.origin(AppendOrigin::default());
    let items = Json::parse(&items.to_string()).unwrap();
    world.run(session.append(&items, Some(RESPONSES), (&origin, None))).unwrap();
    // Both append after the same one.
    service.hide_newest_append();
    append(&world, &other, &turn(2, "plain"));
    append(&world, &other, &turn(3, "plain"));
    service.show_all();
    world.run(other.refresh()).unwrap();
    let turns = ids(&other).len() as u64 / 3;
    let counts = |is_dry_run| {
        let request = PruneRequest { keep_newest_turns: 2, is_dry_run, ..PruneRequest::default() };
        let pruned = world.run(prune(&second.open, &request)).unwrap();
        assert!(pruned.failed.is_empty(), "{:?}", pruned.failed);
        pruned.sessions.iter().map(|session| (session.removed, session.left)).collect::<Vec<_>>()
    };
    let planned = counts(true);
    assert_eq!((turns, planned.clone()), (3, vec![(4, 6)]), "the first turn, and the compaction of the other side");
    assert_eq!(counts(false), planned);
    assert_eq!(service.places_of(SECRET), Vec::<String>::new());
}
