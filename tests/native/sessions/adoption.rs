//! Adoption of the other sides of conflicts, which stores without compare-and-append have (R38, R47).

use super::annotations::{note, notes};
use super::branches::siblings;
use super::erasure::{Kind, Service, append, ids, turn};
use super::scripted_host::*;
use super::unshown_branches::{append_to, body};
use super::virtual_host::{Process, World};
use super::{in_mode, run_ids, start};
use rethread::error::ErrorCode;
use rethread::json::Json;
use rethread::run::Persistence;
use rethread::session::{
    AppendOrigin, Branch, BranchKind, OpenSession, SessionSettings, branch_log, branches, delete_messages, switch_to,
};
use rethread::store::{AuditRow, Query, RecordKind, Table, open_record};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::rc::Rc;

fn opened(world: &World, process: &Process) -> Rc<OpenSession> {
    world.run(process.session(SessionSettings::default()))
}

fn says(text: &str) -> Value {
    json!([{ "role": "user", "content": text }])
}

/// Neutral messages with ids of the application.
fn with_ids(world: &World, session: &OpenSession, messages: &[(&str, &str)]) {
    let messages: Vec<_> = messages
        .iter()
        .map(|(id, text)| json!({ "id": id, "role": "user", "parts": [{ "type": "text", "text": text }] }))
        .collect();
    let origin = session.origin(AppendOrigin::default());
    world.run(session.append(&Json::parse(&json!(messages).to_string()).unwrap(), None, (&origin, None))).unwrap();
}

/// Two writers that did not see each other's appends.
struct Parted {
    world: Rc<World>,
    service: Service,
    /// The process whose appends are the other side.
    near: (Process, Rc<OpenSession>),
    /// The process whose appends are the history.
    far: (Process, Rc<OpenSession>),
}

impl Parted {
    /// The side is what `on_side` appends; the history gets more.
    fn new(before: impl FnOnce(&World, &Rc<OpenSession>), on_side: impl FnOnce(&World, &Rc<OpenSession>)) -> Self {
        Self::with_history(before, on_side, |world, session| {
            (0..8).for_each(|at| append(world, session, &turn(20 + at, "plain")));
        })
    }

    fn with_history(
        before: impl FnOnce(&World, &Rc<OpenSession>),
        on_side: impl FnOnce(&World, &Rc<OpenSession>),
        in_history: impl FnOnce(&World, &Rc<OpenSession>),
    ) -> Self {
        let (world, service) = (World::new(false), Service::new(Kind::WriteOnce));
        let (first, second) = (service.process(&world), service.process(&world));
        let side = opened(&world, &first);
        before(&world, &side);
        let other = opened(&world, &second);
        let known = service.appends();
        on_side(&world, &side);
        service.hide_appends_but(&known);
        in_history(&world, &other);
        service.show_all();
        world.run(other.refresh()).unwrap();
        Self { world, service, near: (first, side), far: (second, other) }
    }

    fn listed(&self, session: &OpenSession) -> Vec<Branch> {
        self.world.run(branches(session)).unwrap()
    }

    /// The name of the only conflict.
    fn side(&self) -> String {
        let conflicts = self.listed(&self.far.1).into_iter().filter(|branch| branch.kind == BranchKind::Conflict);
        let [side] = &conflicts.collect::<Vec<_>>()[..] else { panic!("not one conflict") };
        side.id.clone()
    }

    fn fresh(&self) -> (Process, Rc<OpenSession>) {
        let process = self.service.process(&self.world);
        let session = opened(&self.world, &process);
        (process, session)
    }

    fn adopt(&self) -> String {
        let side = self.side();
        self.world.run(switch_to(&self.far.1, &side)).unwrap();
        side
    }
}

fn names(branches: &[Branch]) -> Vec<(&str, BranchKind)> {
    branches.iter().map(|branch| (branch.id.as_str(), branch.kind)).collect()
}

/// The messages and calls of the shown branch, with notes and results, and what was set aside.
fn content(session: &OpenSession) -> [Vec<String>; 4] {
    let log = session.log.borrow();
    let call = |call: &rethread::tool::ToolInvocation| {
        format!("{} {} {:?} {:?}", call.id, call.call_id, call.status, call.result)
    };
    let calls = log.history.invocations().iter().map(call).collect();
    let messages = log.history.messages().iter().map(|message| {
        let message = rethread::message::Message { late_results: Vec::new(), ..message.clone() };
        format!("{message:?}")
    });
    let messages = messages.collect();
    let set_aside = log.history.set_aside().iter().map(|item| format!("{item:?}")).collect();
    drop(log);
    [messages, calls, notes(session).iter().map(|note| format!("{note:?}")).collect(), set_aside]
}

const MAIN_AND_FORK: [(&str, BranchKind); 2] = [("main", BranchKind::Main), ("fork-1", BranchKind::Fork)];

/// A side with results and notes of what both share, a call with its result in two appends, and notes of its own.
fn parted_with_everything() -> Parted {
    let open_call = json!({ "id": "open", "type": "function", "function": { "name": "get", "arguments": "{}" } });
    let asks = json!([{ "role": "user", "content": "look" },
        { "role": "assistant", "content": "I look", "tool_calls": [open_call] }]);
    let found = json!([{ "role": "tool", "tool_call_id": "open", "content": "found at last" }]);
    let later = json!({ "id": "later", "type": "function", "function": { "name": "get", "arguments": "{}" } });
    Parted::new(
        |world, session| {
            append(world, session, &turn(0, "plain"));
            append(world, session, &asks);
        },
        |world, session| {
            let shared = ids(session);
            append(world, session, &found);
            world.run(note(session, &shared[0], &json!("of the side"))).unwrap();
            append(world, session, &turn(1, "plain"));
            append(
                world,
                session,
                &json!([{ "role": "user", "content": "again" },
                { "role": "assistant", "content": "Yes", "tool_calls": [later] }]),
            );
            append(world, session, &json!([{ "role": "tool", "tool_call_id": "later", "content": "late" }]));
            append(world, session, &turn(2, "plain"));
            let own = ids(session);
            world.run(note(session, &own[7], &json!({ "thumb": "up" }))).unwrap();
        },
    )
}

/// The calls of the shown branch have rows in the audit.
fn check_audit(world: &World, process: &Process, session: &OpenSession) {
    let rows = world.run(process.open.context.store.read("s", Query::all(Table::ToolInvocations))).unwrap();
    let rows: Vec<AuditRow> = rows.iter().map(|row| open_record(RecordKind::Audit, &row.value).unwrap()).collect();
    let rows: BTreeMap<_, _> = rows.iter().map(|row| (row.id.as_str(), row)).collect();
    for call in session.log.borrow().history.invocations() {
        let row = rows[call.id.as_str()];
        let size = call.result.as_ref().map(|result| result.content.as_str().len() as u64);
        assert_eq!((row.status, row.result_bytes, row.turn), (call.status, size, call.turn), "{}", call.call_id);
        assert!(row.result_record.unwrap_or(row.record) >> 32 == u64::from(call.turn > 0), "{}", call.call_id);
    }
}

#[test]
fn r38_r47_the_other_side_of_a_conflict_becomes_a_branch_with_all_that_it_has() {
    let parted = parted_with_everything();
    let Parted { world, service, far: (process, session), .. } = &parted;
    let (main, side) = (ids(session), parted.side());
    let beside = world.run(session.at_branch(Some(&side))).unwrap();
    let (wanted, wanted_body) = (content(&beside), body(world, &beside, CHAT));
    let wanted_ids = ids(&beside);
    drop(beside);
    world.run(switch_to(session, &side)).unwrap();
    for session in [session, &parted.fresh().1] {
        assert_eq!(session.branch_name(), "fork-1");
        assert_eq!((ids(session), content(session)), (wanted_ids.clone(), wanted.clone()));
        assert_eq!(body(world, session, CHAT), wanted_body);
        assert!(session.log.borrow().findings.is_empty());
        let listed = parted.listed(session);
        assert_eq!(names(&listed), MAIN_AND_FORK, "the side is listed as the branch alone");
        assert_eq!((listed[1].adopted.as_ref(), listed[0].adopted.as_ref()), (Some(&side), None));
        assert_eq!((listed[1].forked_after.as_ref(), listed[1].message_count), (Some(&main[4]), 13));
        assert_eq!(siblings(session, 5), (vec![main[5].clone(), wanted_ids[5].clone()], 1));
    }
    check_audit(world, process, session);
    // The history stays as it was, but has the result and the note of what both share.
    world.run(switch_to(session, "main")).unwrap();
    assert_eq!((ids(session), notes(session)), (main, vec![(0, "\"of the side\"".into())]));
    let answered = session.log.borrow().history.invocations()[1].result.is_some();
    assert!(answered, "a result is in every branch that has the call");
    // Its name still leads to the branch, and reads the side.
    world.run(switch_to(session, &side)).unwrap();
    assert_eq!((session.branch_name(), parted.listed(session).len()), ("fork-1".into(), 2));
    let read = world.run(branch_log(session, &side)).unwrap();
    assert_eq!(read.history.messages().len(), wanted_ids.len());
    append(world, session, &turn(9, "plain"));
    assert_eq!(ids(&parted.fresh().1).len(), wanted_ids.len() + 3);
    assert!(service.places_of(b"found at last").len() > 1);
}

#[test]
fn r38_r47_an_adoption_that_is_killed_at_any_step_is_done_once() {
    let (mut before, mut after) = (0, 0);
    for steps in 0.. {
        let parted = Parted::new(
            |world, session| append(world, session, &turn(0, "plain")),
            |world, session| append(world, session, &turn(1, "plain")),
        );
        let side = parted.side();
        let Parted { world, far: (process, session), .. } = &parted;
        let ended = world.run_steps(switch_to(session, &side), steps).is_some();
        process.kill();
        let (_process, opened) = parted.fresh();
        let listed = parted.listed(&opened);
        let is_adopted = names(&listed) == MAIN_AND_FORK;
        assert!(is_adopted || listed[1].kind == BranchKind::Conflict && listed.len() == 2, "{:?}", names(&listed));
        if is_adopted {
            after += 1
        } else {
            before += 1
        }
        for _ in 0..2 {
            world.run(switch_to(&opened, &side)).unwrap();
            assert_eq!(names(&parted.listed(&opened)), MAIN_AND_FORK, "{steps}");
            assert_eq!((opened.branch_name(), ids(&opened).len()), ("fork-1".into(), 6), "{steps}");
        }
        if ended {
            assert!(is_adopted);
            break;
        }
    }
    assert!(before > 2 && after > 0, "{before} {after}");
}

#[test]
fn r38_r47_an_adoption_whose_reply_was_lost_is_repeated() {
    let parted = Parted::new(
        |world, session| append(world, session, &turn(0, "plain")),
        |world, session| append(world, session, &turn(1, "plain")),
    );
    let side = parted.side();
    let Parted { world, service, far: (_, session), .. } = &parted;
    service.lose_replies(true);
    assert!(world.run(switch_to(session, &side)).is_err());
    service.lose_replies(false);
    world.run(switch_to(session, &side)).unwrap();
    assert_eq!((session.branch_name(), ids(session).len()), ("fork-1".into(), 6));
    assert_eq!(names(&parted.listed(session)), MAIN_AND_FORK);
}

#[test]
fn r38_r47_two_that_adopt_one_side_at_once_make_one_branch() {
    // Of the second one some steps come first.
    for steps in 0..40 {
        let parted = Parted::new(
            |world, session| append(world, session, &turn(0, "plain")),
            |world, session| append(world, session, &turn(1, "plain")),
        );
        let side = parted.side();
        let Parted { world, service, far: (_, session), .. } = &parted;
        let (second, other) = parted.fresh();
        let own = (other.clone(), side.clone());
        let mut work: rethread::session::LocalFuture<'static, ()> =
            Box::pin(async move { switch_to(&own.0, &own.1).await.unwrap() });
        if world.run_steps(&mut work, steps).is_none() {
            second.open.context.host.spawn(work);
        }
        world.run(switch_to(session, &side)).unwrap();
        world.pass(60_000);
        one_branch_is_there(&parted, &[session, &other], steps);
        assert!(service.places_of(b"answer 1").len() > 1);
    }
}

fn one_branch_is_there(parted: &Parted, sessions: &[&Rc<OpenSession>], steps: usize) {
    for session in sessions {
        parted.world.run(session.refresh()).unwrap();
        assert_eq!((session.branch_name(), ids(session).len()), ("fork-1".into(), 6), "{steps}");
        assert_eq!(names(&parted.listed(session)), MAIN_AND_FORK, "{steps}");
    }
    assert_eq!(names(&parted.listed(&parted.fresh().1)), MAIN_AND_FORK, "{steps}");
}

#[test]
fn r38_r47_an_adoption_that_another_one_did_not_see_is_no_conflict_of_its_own() {
    for goes_on in [false, true] {
        let parted = Parted::new(
            |world, session| append(world, session, &turn(0, "plain")),
            |world, session| append(world, session, &turn(1, "plain")),
        );
        let side = parted.side();
        let Parted { world, service, far: (_, session), .. } = &parted;
        let (_second, other) = parted.fresh();
        let known = service.appends();
        world.run(switch_to(&other, &side)).unwrap();
        if goes_on {
            append(world, &other, &says("in the other adoption"));
        }
        service.hide_appends_but(&known);
        world.run(switch_to(session, &side)).unwrap();
        (0..2).for_each(|_| append(world, session, &says("on")));
        service.show_all();
        for session in [session, &other, &parted.fresh().1] {
            world.run(session.refresh()).unwrap();
            let listed = parted.listed(session);
            assert_eq!(names(&listed)[..2], MAIN_AND_FORK, "{goes_on}");
            assert_eq!((listed.len(), ids(session).len()), (if goes_on { 3 } else { 2 }, 8));
        }
        if goes_on {
            // What came after it is a conflict, and its branch shares what was adopted.
            let grown = parted.adopt();
            let listed = parted.listed(session);
            assert_eq!(listed[2].adopted.as_ref(), Some(&grown));
            let adopted = ids(session);
            assert_eq!((listed.len(), adopted.len()), (3, 7));
            let on = listed[2].forked_after.as_ref();
            assert_eq!(on, Some(&adopted[5]));
            assert_eq!(siblings(session, 6).0.len(), 2);
        }
    }
}

#[test]
fn r38_r47_a_side_that_grows_after_its_adoption_shares_what_was_adopted() {
    for renames in [false, true] {
        let on_side = |world: &World, session: &Rc<OpenSession>| with_ids(world, session, &[("own", "one")]);
        let in_history = |world: &World, session: &Rc<OpenSession>| {
            with_ids(world, session, &[(if renames { "own" } else { "far" }, "two")]);
            (0..9).for_each(|at| append(world, session, &turn(20 + at, "plain")));
        };
        let parted =
            Parted::with_history(|world, session| append(world, session, &turn(0, "plain")), on_side, in_history);
        let Parted { world, service, near: (_, grower), far: (_, session) } = &parted;
        let before = service.appends();
        parted.adopt();
        let adopted = ids(session);
        assert_eq!(adopted[3], if renames { "own-2" } else { "own" });
        // The writer of the side still sees nothing else.
        let near: Vec<_> = before.iter().filter(|key| !key.ends_with(":w2")).cloned().collect();
        service.hide_appends_but(&near);
        append(world, grower, &says("grown"));
        service.show_all();
        world.run(session.refresh()).unwrap();
        assert_eq!(parted.listed(session).len(), 3);
        parted.adopt();
        let grown = ids(session);
        assert_eq!((grown.len(), &grown[..4]), (5, &adopted[..]), "{renames}");
        let listed = parted.listed(session);
        assert_eq!((listed.len(), &listed[2].id), (3, &session.branch_name()));
        assert_eq!(listed[2].forked_after.as_ref(), Some(&adopted[3]));
    }
}

#[test]
fn r47_r59_ids_that_both_sides_used_are_replaced_and_erased_on_both() {
    let parted = Parted::with_history(
        |world, session| append(world, session, &turn(0, "plain")),
        |world, session| with_ids(world, session, &[("m", "a SECRET"), ("n", "mine")]),
        |world, session| {
            with_ids(world, session, &[("m", "theirs")]);
            (0..3).for_each(|at| append(world, session, &turn(20 + at, "plain")));
        },
    );
    let Parted { world, service, far: (_, session), .. } = &parted;
    parted.adopt();
    assert_eq!(ids(session)[3..], ["m-2", "n"], "an id that nothing else has stays");
    assert_eq!(siblings(session, 3), (vec!["m".into(), "m-2".into()], 1));
    assert!(service.places_of(b"SECRET").len() > 1, "on the side and in the branch");
    world.run(delete_messages(session, &["m-2".into()])).unwrap();
    assert_eq!(service.places_of(b"SECRET"), Vec::<String>::new());
    assert!(!service.places_of(b"theirs").is_empty());
    // One that kept its id.
    assert!(service.places_of(b"mine").len() > 1);
    world.run(delete_messages(session, &["n".into()])).unwrap();
    assert_eq!(service.places_of(b"mine"), Vec::<String>::new());
    world.run(switch_to(session, "main")).unwrap();
    assert!(ids(session).contains(&"m".to_owned()));
    assert_eq!(names(&parted.listed(session)), MAIN_AND_FORK);
}

#[test]
fn r38_r47_what_both_sides_stored_alike_is_shared() {
    // Two processes resumed one run: its question has one id and one time.
    let question = ("asked", "What now?");
    let parted = Parted::with_history(
        |world, session| append(world, session, &turn(0, "plain")),
        |world, session| {
            with_ids(world, session, &[question]);
            append(world, session, &json!([{ "role": "assistant", "content": "This." }]));
        },
        |world, session| {
            with_ids(world, session, &[question]);
            append(world, session, &json!([{ "role": "assistant", "content": "That." }]));
            append(world, session, &turn(20, "plain"));
        },
    );
    let (main, session) = (ids(&parted.far.1), &parted.far.1);
    parted.adopt();
    let adopted = ids(session);
    assert_eq!((&adopted[..4], adopted.len()), (&main[..4], 5));
    assert_eq!(siblings(session, 4), (vec![main[4].clone(), adopted[4].clone()], 1));
}

#[test]
fn r38_r18_an_unfinished_run_of_a_side_is_not_adopted_and_its_call_takes_a_result() {
    let call = json!({ "id": "open", "type": "function", "function": { "name": "get", "arguments": "{}" } });
    let parted = Parted::new(
        |world, session| append(world, session, &turn(0, "plain")),
        |world, session| {
            append(
                world,
                session,
                &json!([{ "role": "user", "content": "look" },
                { "role": "assistant", "content": "I look", "tool_calls": [call] }]),
            );
            world.run(start(session, in_mode(Persistence::Run, CHAT), "cut off")).unwrap();
        },
    );
    let Parted { world, far: (process, session), .. } = &parted;
    parted.adopt();
    assert_eq!((ids(session).len(), run_ids(session).len()), (5, 0));
    let found = json!([{ "role": "tool", "tool_call_id": "open", "content": "found" }]);
    append(world, session, &found);
    assert!(session.log.borrow().history.open_calls().next().is_none());
    let run = world.run(start(session, in_mode(Persistence::Run, CHAT), "go on")).unwrap();
    world.run(process.drive(&run, &|_| Answer::Say(text("Yes."))));
    assert_eq!(ids(session).len(), 7);
}

#[test]
fn r38_r47_an_append_to_the_other_side_of_a_conflict_adopts_it_and_leaves_what_is_shown() {
    let parted = Parted::new(
        |world, session| append(world, session, &turn(0, "plain")),
        |world, session| append(world, session, &turn(1, "plain")),
    );
    let Parted { world, far: (_, session), .. } = &parted;
    let (main, side) = (ids(session), parted.side());
    let beside = world.run(session.at_branch(Some(&side))).unwrap();
    assert!(String::from_utf8(body(world, &beside, CHAT)).unwrap().contains("question 1"));
    let stale = world.run(append_to(session, &side, &says("x"), Some(session.revision() - 1))).unwrap_err();
    assert_eq!((stale.code, parted.listed(session).len()), (ErrorCode::Conflict, 2));
    assert_eq!(parted.listed(session)[1].kind, BranchKind::Conflict, "nothing was adopted");
    world.run(append_to(session, &side, &says("x"), Some(session.revision()))).unwrap();
    world.run(append_to(session, &side, &says("y"), Some(session.revision()))).unwrap();
    for session in [session, &parted.fresh().1] {
        assert_eq!((session.branch_name(), ids(session)), ("main".into(), main.clone()));
        let listed = parted.listed(session);
        assert_eq!((names(&listed), listed[1].message_count), (MAIN_AND_FORK.to_vec(), 8));
    }
}

#[test]
fn r38_r47_a_side_that_begins_the_session_otherwise_is_adopted() {
    let parted = Parted::new(|_, _| {}, |world, session| append(world, session, &turn(1, "plain")));
    let Parted { world, far: (_, session), .. } = &parted;
    let main = ids(session);
    parted.adopt();
    assert_eq!(names(&parted.listed(session)), MAIN_AND_FORK);
    let adopted = ids(session);
    assert_eq!(siblings(session, 0), (vec![main[0].clone(), adopted[0].clone()], 1));
    assert_eq!(adopted.len(), 3);
    world.run(switch_to(session, &main[0])).unwrap();
    assert_eq!(ids(session), main);
}

#[test]
fn r38_r47_a_side_that_cannot_be_read_is_not_adopted() {
    let parted = Parted::new(
        |world, session| append(world, session, &turn(0, "plain")),
        |world, session| {
            append(world, session, &turn(1, "plain"));
            append(world, session, &turn(2, "plain"));
        },
    );
    let side = parted.side();
    let Parted { world, service, .. } = &parted;
    // Its first append: a damaged one names none before it.
    service.damage(service.appends().iter().filter(|key| key.ends_with(":w1")).nth(1).unwrap());
    let (_process, fresh) = parted.fresh();
    let error = world.run(switch_to(&fresh, &side)).unwrap_err();
    assert_eq!(error.code, ErrorCode::CorruptRecord, "{}", error.message);
    assert_eq!(parted.listed(&fresh).len(), 2);
}

#[test]
fn r38_r57_a_side_that_has_only_a_note_is_adopted() {
    let on_side = |world: &World, session: &Rc<OpenSession>| {
        let first = ids(session)[0].clone();
        world.run(note(session, &first, &json!({ "thumb": "up" }))).unwrap();
    };
    let parted = Parted::new(|world, session| append(world, session, &turn(1, "plain")), on_side);
    let session = &parted.far.1;
    assert!(notes(session).is_empty());
    parted.adopt();
    assert_eq!(names(&parted.listed(session)), MAIN_AND_FORK);
    let noted = |session: &OpenSession| notes(session).iter().any(|(at, note)| *at == 0 && note.contains("thumb"));
    assert!(noted(session), "{:?}", notes(session));
    let (_process, fresh) = parted.fresh();
    parted.world.run(switch_to(&fresh, "fork-1")).unwrap();
    assert!(noted(&fresh), "{:?}", notes(&fresh));
}

/// The writer of the side goes on, and still sees nothing else.
fn grow(parted: &Parted, go_on: impl FnOnce(&World, &Rc<OpenSession>)) {
    let Parted { world, service, near: (_, grower), far: (_, session) } = parted;
    let near: Vec<_> = service.appends().into_iter().filter(|key| !key.ends_with(":w2")).collect();
    service.hide_appends_but(&near);
    go_on(world, grower);
    service.show_all();
    world.run(session.refresh()).unwrap();
}

#[test]
fn r38_r47_r57_a_note_that_is_made_on_an_adopted_side_is_adopted_later() {
    for renames in [false, true] {
        let parted = Parted::with_history(
            |world, session| append(world, session, &turn(0, "plain")),
            |world, session| with_ids(world, session, &[("own", "one")]),
            |world, session| {
                with_ids(world, session, &[(if renames { "own" } else { "far" }, "two")]);
                (0..9).for_each(|at| append(world, session, &turn(20 + at, "plain")));
            },
        );
        let Parted { world, far: (_, session), .. } = &parted;
        parted.adopt();
        let adopted = ids(session)[3].clone();
        for thumb in ["up", "down"] {
            grow(&parted, |world, grower| world.run(note(grower, "own", &json!({ "thumb": thumb }))).unwrap());
            parted.adopt();
            assert_eq!(notes(session), [(3, json!({ "thumb": thumb }).to_string())], "{renames}");
            assert_eq!(ids(session)[3], adopted);
        }
        // A person removes it in the branch: the side has not changed it since.
        world.run(note(session, &adopted, &Value::Null)).unwrap();
        grow(&parted, |world, grower| append(world, grower, &says("grown")));
        parted.adopt();
        assert_eq!((notes(session), ids(session).len()), (Vec::new(), 5), "{renames}");
    }
}

#[test]
fn r38_r47_a_side_that_changed_in_its_head_alone_is_adopted_once() {
    let parted = Parted::new(
        |world, session| append(world, session, &turn(0, "plain")),
        |world, session| {
            append(world, session, &turn(1, "plain"));
            append(world, session, &json!([{ "role": "tool", "tool_call_id": "c1", "content": "a second one" }]));
            append(world, session, &json!([{ "role": "tool", "tool_call_id": "c0", "content": "and for this" }]));
        },
    );
    let Parted { world, service, far: (_, session), .. } = &parted;
    let first = parted.adopt();
    let (wanted, appends) = (content(session), service.appends().len());
    assert_eq!(wanted[3].len(), 2, "{wanted:?}");
    grow(&parted, |world, grower| {
        world.run(grower.update(Box::new(|head| head.title = Some("Other".into())))).unwrap();
    });
    let second = parted.adopt();
    assert_ne!(first, second);
    assert_eq!((session.branch_name(), content(session)), ("fork-1".into(), wanted));
    assert_eq!(service.appends().len(), appends + 1, "nothing but the title was written");
    assert_eq!(names(&parted.listed(session))[..2], MAIN_AND_FORK);
    assert_eq!(world.run(branches(session)).unwrap().len(), 3);
}

#[test]
fn r47_r59_what_both_sides_stored_alike_under_two_ids_is_erased_and_annotated_as_one() {
    let question = |id: &'static str| {
        move |world: &World, session: &Rc<OpenSession>| {
            with_ids(world, session, &[(id, "What SECRET?")]);
            append(world, session, &json!([{ "role": "assistant", "content": id }]));
        }
    };
    let parted = Parted::with_history(
        |world, session| append(world, session, &turn(0, "plain")),
        |world, session| {
            question("near")(world, session);
            world.run(note(session, "near", &json!("noted"))).unwrap();
        },
        |world, session| {
            question("far")(world, session);
            (0..3).for_each(|at| append(world, session, &turn(20 + at, "plain")));
        },
    );
    let Parted { world, service, far: (_, session), .. } = &parted;
    parted.adopt();
    assert_eq!((&ids(session)[3], notes(session)), (&"far".to_owned(), vec![(3, "\"noted\"".into())]));
    assert!(service.places_of(b"SECRET").len() > 1);
    world.run(delete_messages(session, &["far".into()])).unwrap();
    assert_eq!(service.places_of(b"SECRET"), Vec::<String>::new());
    assert_eq!(service.places_of(b"noted"), Vec::<String>::new());
}

#[test]
fn r47_r59_the_erasure_of_an_adopted_message_leaves_others_of_its_former_id() {
    for erased in ["m-2", "m-3", "m"] {
        let (world, service) = (World::new(false), Service::new(Kind::WriteOnce));
        let processes = [1, 2, 3].map(|_| service.process(&world));
        let sessions = processes.each_ref().map(|process| opened(&world, process));
        append(&world, &sessions[0], &turn(0, "plain"));
        for session in &sessions[1..] {
            world.run(session.refresh()).unwrap();
        }
        let known = service.appends();
        let texts = ["of-one", "of-two", "of-history"];
        for (session, text) in sessions.iter().zip(texts) {
            service.hide_appends_but(&known);
            with_ids(&world, session, &[("m", &format!("ask {text}"))]);
            let call = json!({ "id": "x", "type": "function",
                "function": { "name": "get", "arguments": json!({ "mark": text }).to_string() } });
            append(&world, session, &json!([{ "role": "assistant", "content": text, "tool_calls": [call] }]));
            append(&world, session, &json!([{ "role": "tool", "tool_call_id": "x", "content": text }]));
            if text == "of-history" {
                (0..3).for_each(|at| append(&world, session, &turn(20 + at, "plain")));
            }
            service.show_all();
        }
        let session = &sessions[2];
        world.run(session.refresh()).unwrap();
        for text in &texts[..2] {
            let conflicts = world.run(branches(session)).unwrap();
            let conflicts = conflicts.into_iter().filter(|branch| branch.kind == BranchKind::Conflict);
            let of_text = |side: &Branch| {
                let log = world.run(branch_log(session, &side.id)).unwrap();
                log.history.messages().iter().any(|message| format!("{message:?}").contains(text))
            };
            let side = conflicts.into_iter().find(of_text).unwrap();
            world.run(switch_to(session, &side.id)).unwrap();
        }
        // Others have the text of the answer, which stays.
        let count = |text: &str| service.places_of(format!("ask {text}").as_bytes()).len();
        let before = texts.map(count);
        assert!(before[..2].iter().all(|count| *count > 1), "{before:?}");
        world.run(delete_messages(session, &[erased.into()])).unwrap();
        let gone = usize::from(erased == "m-3") + 2 * usize::from(erased == "m");
        for (at, text) in texts.iter().enumerate() {
            let wanted = if at == gone { 0 } else { before[at] };
            assert_eq!(count(text), wanted, "{erased} {text}: {before:?}");
        }
    }
}
