//! Branches: edits, regenerated answers, forks and switches (R38, R57).

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::scripted_host::*;
use super::virtual_host::{Fault, Process, World};
use super::{MODES, in_mode, resume, roles, run_ids, start};
use rethread::error::{Error, ErrorCode};
use rethread::history::{Annotation, History};
use rethread::id::Seed;
use rethread::json::Json;
use rethread::message::{PartBody, Role};
use rethread::run::{Persistence, RunSetup, RunStatus};
use rethread::session::{
    AppendOrigin, BranchKind, NewRun, OpenSession, RunDriver, SessionSettings, annotate, branches, discard_run, fork,
    switch_to,
};
use rethread::store::{Batch, LogStore, MemoryStore, merge_oldest, open_session};
use serde_json::{Value, json};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Starts a run beside a message: with another input, or without one.
pub(super) async fn replace(
    session: &Rc<OpenSession>,
    setup: RunSetup,
    id: &str,
    input: Option<&str>,
) -> Result<Rc<RunDriver>, Error> {
    let new = NewRun {
        setup,
        input: input.map(words).unwrap_or_default(),
        input_id: None,
        branch: None,
        replace: Some(id.into()),
        provide: None,
        store: None,
    };
    let begun = RunDriver::begin(session, |id| Ok(NewRun { setup: RunSetup { id, ..new.setup }, ..new }));
    RunDriver::launch(session, begun).await
}

/// Says which user message it answers, and how many messages there are.
fn echo(body: &Value) -> Answer {
    let messages = body["messages"].as_array().unwrap();
    let texts: Vec<_> = messages.iter().filter(|m| m["role"] != "system").map(|m| m["content"].to_string()).collect();
    Answer::Say(text(&format!("{} messages, last {}", texts.len(), texts.last().unwrap())))
}

fn texts(history: &History) -> Vec<String> {
    let text = |part: &rethread::message::Part| match &part.body {
        PartBody::Text(text) => text.decode().into_owned(),
        PartBody::ToolCall { .. } => "call".to_owned(),
        _ => String::new(),
    };
    history.messages().iter().map(|message| message.parts.iter().map(text).collect::<Vec<_>>().join(",")).collect()
}

fn shown(session: &OpenSession) -> Vec<String> {
    texts(&session.log.borrow().history)
}

fn ids(session: &OpenSession) -> Vec<String> {
    session.log.borrow().history.messages().iter().map(|message| message.id.clone()).collect()
}

pub(super) fn siblings(session: &OpenSession, at: usize) -> (Vec<String>, usize) {
    let log = session.log.borrow();
    let messages = log.history.messages();
    let before = at.checked_sub(1).map(|at| messages[at].id.as_str());
    let (ids, index) = log.alternatives().of(before, &messages[at].id);
    (ids.into_iter().map(ToOwned::to_owned).collect(), index)
}

fn ask(world: &World, process: &Process, session: &Rc<OpenSession>, mode: Persistence, input: &str) {
    let run = world.run(start(session, in_mode(mode, CHAT), input)).unwrap();
    assert_eq!(world.run(process.drive(&run, &echo)).status, RunStatus::Finished);
}

fn edit(world: &World, process: &Process, session: &Rc<OpenSession>, id: &str, input: Option<&str>) -> RunStatus {
    let run = world.run(replace(session, in_mode(Persistence::Run, CHAT), id, input)).unwrap();
    world.run(process.drive(&run, &echo)).status
}

#[test]
fn r38_r57_an_edit_and_another_answer_are_branches_beside_what_was_there() {
    for mode in MODES {
        let (world, data) = (World::new(false), MemoryStore::default());
        let process = Process::new(&world, &data, 1);
        let session = world.run(process.session(SessionSettings::default()));
        ask(&world, &process, &session, mode, "one");
        ask(&world, &process, &session, mode, "two");
        let before = (ids(&session), shown(&session));
        // Another answer to the second question.
        let run = world.run(replace(&session, in_mode(mode, CHAT), &before.0[3], None)).unwrap();
        assert_eq!(session.branch_name(), "main", "{mode:?}");
        assert_eq!(shown(&session).len(), 3, "{mode:?}: what is before the answer");
        let outcome = world.run(process.drive(&run, &echo));
        assert_eq!((outcome.status, outcome.branch), (RunStatus::Finished, 1));
        assert_eq!(session.branch_name(), "fork-1");
        assert_eq!(shown(&session)[..3], before.1[..3]);
        assert_eq!(shown(&session)[3], before.1[3], "the model saw the same conversation");
        assert_ne!(ids(&session)[3], before.0[3]);
        assert_eq!(siblings(&session, 3), (vec![before.0[3].clone(), ids(&session)[3].clone()], 1));
        // An edit of the first question shares nothing.
        let first_fork = ids(&session);
        let run = world.run(replace(&session, in_mode(mode, CHAT), &before.0[0], Some("uno"))).unwrap();
        assert_eq!(world.run(process.drive(&run, &echo)).status, RunStatus::Finished);
        assert_eq!(shown(&session), ["uno", "1 messages, last \"uno\""]);
        assert_eq!(siblings(&session, 0), (vec![before.0[0].clone(), ids(&session)[0].clone()], 1));
        // Each is there in this process and in the next.
        let fresh = Process::new(&world, &data, 2);
        let other = world.run(fresh.session(SessionSettings::default()));
        assert_eq!(shown(&other), ["uno", "1 messages, last \"uno\""], "opened with the branch that was written last");
        for (target, wanted) in [("main", &before.0), ("fork-1", &first_fork), (before.0[3].as_str(), &before.0)] {
            for session in [&session, &other] {
                world.run(switch_to(session, target)).unwrap();
                assert_eq!(&ids(session), wanted, "{mode:?} {target}");
            }
        }
        let all = world.run(branches(&session)).unwrap();
        let all: Vec<_> = all.iter().map(|b| (b.id.as_str(), b.kind, b.parent.as_deref(), b.message_count)).collect();
        assert_eq!(
            all,
            [
                ("main", BranchKind::Main, None, 4),
                ("fork-1", BranchKind::Fork, Some("main"), 4),
                ("fork-2", BranchKind::Fork, None, 2)
            ]
        );
        assert!(process.heard.borrow().warnings.is_empty() && fresh.heard.borrow().warnings.is_empty());
    }
}

#[test]
fn r38_a_run_that_fails_leaves_no_branch_and_can_be_resumed_into_one() {
    let (world, data) = (World::new(false), MemoryStore::default());
    let process = Process::new(&world, &data, 1);
    let session = world.run(process.session(SessionSettings::default()));
    ask(&world, &process, &session, Persistence::Run, "one");
    let before = ids(&session);
    let run = world.run(replace(&session, in_mode(Persistence::Run, CHAT), &before[0], Some("uno"))).unwrap();
    let fails = |_: &Value| Answer::Status(400, Vec::new(), r#"{"error":{"message":"no"}}"#.into());
    assert_eq!(world.run(process.drive(&run, &fails)).status, RunStatus::Failed);
    world.pass(1_000);
    assert_eq!((ids(&session), session.branch_name()), (before.clone(), "main".to_owned()));
    assert_eq!(world.run(branches(&session)).unwrap().len(), 1);
    let resumed = world.run(resume(&session, &run.id, in_mode(Persistence::Run, CHAT))).unwrap();
    assert_eq!(world.run(process.drive(&resumed, &echo)).status, RunStatus::Finished);
    assert_eq!(shown(&session)[0], "uno");
    assert_eq!(world.run(branches(&session)).unwrap().len(), 2);
    world.run(switch_to(&session, "main")).unwrap();
    assert_eq!(ids(&session), before);
}

/// What a process leaves that is killed in an edit is resumed by the next one. Returns false if it was not killed.
fn edit_killed_at(step: usize, mode: Persistence) -> bool {
    let (world, data) = (World::new(false), MemoryStore::default());
    let first = Process::new(&world, &data, 1);
    let session = world.run(first.session(SessionSettings::default()));
    ask(&world, &first, &session, mode, "one");
    ask(&world, &first, &session, mode, "two");
    let before = ids(&session);
    let turn = async {
        let run = replace(&session, in_mode(mode, CHAT), &before[2], Some("dos")).await.unwrap();
        first.drive(&run, &three_tools).await
    };
    if world.run_steps(turn, step).is_some() {
        return false;
    }
    first.kill();
    world.pass(31_000);
    let second = Process::new(&world, &data, 2);
    let session = world.run(second.session(SessionSettings::default()));
    if let Some(id) = run_ids(&session).first().cloned() {
        let run = world.run(resume(&session, &id, in_mode(mode, CHAT))).unwrap();
        assert_eq!(world.run(second.drive(&run, &three_tools)).status, RunStatus::Finished, "step {step}");
        assert_eq!(shown(&session)[..3], ["one", "1 messages, last \"one\"", "dos"], "step {step} {mode:?}");
        assert_eq!(shown(&session).len(), 6, "step {step} {mode:?}: {:?}", shown(&session));
    }
    // Whatever happened, the branch before is as it was.
    world.run(switch_to(&session, "main")).unwrap();
    assert_eq!(ids(&session), before, "step {step} {mode:?}");
    let forks = world.run(branches(&session)).unwrap().len();
    assert!(forks <= 2, "step {step} {mode:?}: the edit was doubled");
    true
}

#[test]
fn r38_r18_an_edit_that_is_killed_anywhere_is_resumed_in_its_branch() {
    for mode in MODES {
        let kills = (0..).take_while(|step| edit_killed_at(*step, mode)).count();
        assert!(kills > 20, "{kills}");
    }
}

#[test]
fn r38_r58_a_branch_whose_reply_was_lost_is_born_once() {
    for (mode, at, refreshes) in MODES.into_iter().flat_map(|mode| (0..8).map(move |at| (mode, at / 2, at % 2 == 0))) {
        let (world, data) = (World::new(false), MemoryStore::default());
        let (armed, count) = (Rc::new(Cell::new(false)), Rc::new(Cell::new(0)));
        let (is_armed, counted) = (armed.clone(), count.clone());
        let fault = move || {
            counted.set(counted.get() + u32::from(is_armed.get()));
            (is_armed.get() && counted.get() == at + 1).then_some(Fault::ReplyLost)
        };
        let process = Process::with_faults(&world, &data, 1, Box::new(fault));
        let session = world.run(process.session(SessionSettings::default()));
        ask(&world, &process, &session, mode, "one");
        let before = ids(&session);
        let run = world.run(replace(&session, in_mode(mode, CHAT), &before[0], Some("uno"))).unwrap();
        armed.set(true);
        if refreshes {
            // Another process writes, so that this one reads again between the attempts.
            let other = Process::new(&world, &data, 2);
            let shown = world.run(other.session(SessionSettings::default()));
            ask(&world, &other, &shown, Persistence::Run, "elsewhere");
            world.run(session.refresh()).unwrap();
        }
        let outcome = world.run(process.drive(&run, &echo));
        assert_eq!(outcome.status, RunStatus::Finished, "{mode:?} {at}");
        assert_eq!(shown(&session).len(), 2, "{mode:?} {at} {refreshes}: {:?}", shown(&session));
        let fresh = Process::new(&world, &data, 3);
        let again = world.run(fresh.session(SessionSettings::default()));
        let all = world.run(branches(&again)).unwrap();
        assert_eq!(all.len(), 2, "{mode:?} {at} {refreshes}");
        world.run(switch_to(&again, "fork-1")).unwrap();
        assert_eq!(ids(&again), ids(&session), "{mode:?} {at} {refreshes}");
        world.run(switch_to(&again, "main")).unwrap();
        assert_eq!(ids(&again)[..2], before, "{mode:?} {at} {refreshes}");
    }
}

#[test]
fn r38_what_is_written_beside_history_leaves_the_branch_that_was_chosen() {
    let (world, data) = (World::new(false), MemoryStore::default());
    let (one, two) = (Process::new(&world, &data, 1), Process::new(&world, &data, 2));
    let session = world.run(one.session(SessionSettings::default()));
    ask(&world, &one, &session, Persistence::Run, "one");
    let name = world.run(fork(&session, None)).unwrap();
    let other = world.run(two.session(SessionSettings::default()));
    world.run(switch_to(&other, &name)).unwrap();
    let title = Box::new(|head: &mut rethread::session_head::SessionHead| head.title = Some("named".into()));
    world.run(session.update(title)).unwrap();
    let opened = block_on(open_session(&data, "s", Seed(7), 1)).unwrap();
    assert_eq!(opened.branch_number(), 1, "a title is no choice of a branch");
    assert_eq!((session.branch_name(), shown(&session).len()), ("main".to_owned(), 2));
    world.run(other.refresh()).unwrap();
    assert_eq!(other.log.borrow().head.title.as_deref(), Some("named"));
    ask(&world, &one, &session, Persistence::Run, "two");
    let opened = block_on(open_session(&data, "s", Seed(7), 1)).unwrap();
    assert_eq!((opened.branch_number(), opened.history.messages().len()), (0, 4));
}

#[test]
fn r38_two_processes_that_edit_one_message_make_two_siblings() {
    let (world, data) = (World::new(false), MemoryStore::default());
    let (one, two) = (Process::new(&world, &data, 1), Process::new(&world, &data, 2));
    let session = world.run(one.session(SessionSettings::default()));
    ask(&world, &one, &session, Persistence::Run, "one");
    let other = world.run(two.session(SessionSettings::default()));
    let question = ids(&session)[0].clone();
    let here = world.run(replace(&session, in_mode(Persistence::Run, CHAT), &question, Some("uno"))).unwrap();
    let there = world.run(replace(&other, in_mode(Persistence::Call, CHAT), &question, Some("eins"))).unwrap();
    assert_eq!(world.run(two.drive(&there, &echo)).status, RunStatus::Finished);
    assert_eq!(world.run(one.drive(&here, &echo)).status, RunStatus::Finished);
    assert_eq!(shown(&session)[0], "uno");
    assert_eq!(shown(&other)[0], "eins");
    world.run(other.refresh()).unwrap();
    assert_eq!(shown(&other)[0], "eins", "what another process chooses does not move this one");
    assert_eq!(siblings(&other, 0).0.len(), 3);
    assert_eq!(siblings(&session, 0), (vec![question.clone(), ids(&other)[0].clone(), ids(&session)[0].clone()], 2));
    // Both go on in their branches.
    ask(&world, &two, &other, Persistence::Run, "weiter");
    ask(&world, &one, &session, Persistence::Run, "sigue");
    assert_eq!((shown(&session)[2].as_str(), shown(&other)[2].as_str()), ("sigue", "weiter"));
    assert_eq!((shown(&session).len(), shown(&other).len()), (4, 4));
}

#[test]
fn r38_a_fork_is_not_shown_until_it_is_chosen() {
    let (world, data) = (World::new(false), MemoryStore::default());
    let process = Process::new(&world, &data, 1);
    let session = world.run(process.session(SessionSettings::default()));
    ask(&world, &process, &session, Persistence::Run, "one");
    ask(&world, &process, &session, Persistence::Run, "two");
    let before = ids(&session);
    let name = world.run(fork(&session, Some(&before[1]))).unwrap();
    assert_eq!((name.as_str(), ids(&session)), ("fork-1", before.clone()));
    let unknown = world.run(fork(&session, Some("nobody"))).unwrap_err();
    assert_eq!(unknown.code, ErrorCode::NotFound);
    ask(&world, &process, &session, Persistence::Run, "three");
    world.run(switch_to(&session, &name)).unwrap();
    assert_eq!(ids(&session), before[..2]);
    ask(&world, &process, &session, Persistence::Run, "zwei");
    assert_eq!(shown(&session).len(), 4);
    world.run(switch_to(&session, "main")).unwrap();
    assert_eq!(ids(&session).len(), 6);
    assert_eq!(world.run(switch_to(&session, "fork-7")).unwrap_err().code, ErrorCode::NotFound);
}

#[test]
fn r38_a_switch_waits_for_the_run_that_is_under_way() {
    let (world, data) = (World::new(false), MemoryStore::default());
    let process = Process::new(&world, &data, 1);
    let session = world.run(process.session(SessionSettings::default()));
    ask(&world, &process, &session, Persistence::Run, "one");
    let name = world.run(fork(&session, None)).unwrap();
    let run = world.run(start(&session, in_mode(Persistence::Run, CHAT), "two")).unwrap();
    assert_eq!(world.run(switch_to(&session, &name)).unwrap_err().code, ErrorCode::Busy);
    assert_eq!(world.run(process.drive(&run, &echo)).status, RunStatus::Finished);
    world.run(switch_to(&session, &name)).unwrap();
    assert!(ids(&session).is_empty());
}

#[test]
fn r57_an_input_in_place_of_an_answer_is_refused() {
    let (world, data) = (World::new(false), MemoryStore::default());
    let process = Process::new(&world, &data, 1);
    let session = world.run(process.session(SessionSettings::default()));
    ask(&world, &process, &session, Persistence::Run, "one");
    let all = ids(&session);
    let refused = world.run(replace(&session, in_mode(Persistence::Run, CHAT), &all[1], Some("x"))).err().unwrap();
    assert_eq!(refused.code, ErrorCode::InvalidInput);
    let unknown = world.run(replace(&session, in_mode(Persistence::Run, CHAT), "nobody", None)).err().unwrap();
    assert_eq!(unknown.code, ErrorCode::NotFound);
    assert_eq!((ids(&session), session.branch_name()), (all, "main".to_owned()));
}

/// Writes another head past the log, as a disk that rots does.
pub(super) fn damage_head(data: &MemoryStore) {
    let head = block_on(data.head("s")).unwrap().unwrap();
    let mut bytes = head.value.to_vec();
    *bytes.last_mut().unwrap() ^= 0x10;
    let batch = Batch { head: bytes.into(), ..Batch::default() };
    block_on(data.append("s", head.revision, batch, "damage")).unwrap();
}

#[test]
fn r38_messages_of_a_fork_are_siblings_of_what_it_was_forked_before() {
    let (world, data) = (World::new(false), MemoryStore::default());
    let process = Process::new(&world, &data, 1);
    let session = world.run(process.session(SessionSettings::default()));
    ask(&world, &process, &session, Persistence::Run, "one");
    ask(&world, &process, &session, Persistence::Run, "two");
    let before = ids(&session);
    let name = world.run(fork(&session, Some(&before[1]))).unwrap();
    world.run(switch_to(&session, &name)).unwrap();
    ask(&world, &process, &session, Persistence::Run, "zwei");
    let own = ids(&session)[2].clone();
    assert_eq!(siblings(&session, 2), (vec![before[2].clone(), own.clone()], 1));
    world.run(switch_to(&session, &before[2])).unwrap();
    assert_eq!(siblings(&session, 2), (vec![before[2].clone(), own.clone()], 0));
    world.run(switch_to(&session, &own)).unwrap();
    assert_eq!(session.branch_name(), name);
}

#[test]
fn r38_r18_a_head_that_is_rebuilt_counts_the_messages_of_its_branch() {
    let (world, data) = (World::new(false), MemoryStore::default());
    let first = Process::new(&world, &data, 1);
    let session = world.run(first.session(SessionSettings::default()));
    ask(&world, &first, &session, Persistence::Run, "one");
    ask(&world, &first, &session, Persistence::Run, "two");
    let before = ids(&session);
    world.run(replace(&session, in_mode(Persistence::Run, CHAT), &before[0], Some("uno"))).unwrap();
    first.kill();
    damage_head(&data);
    world.pass(31_000);
    let second = Process::new(&world, &data, 2);
    let session = world.run(second.session(SessionSettings::default()));
    assert_eq!((session.log.borrow().head.next_seq, ids(&session)), (4, before.clone()));
    ask(&world, &second, &session, Persistence::Run, "three");
    let seqs: Vec<_> = session.log.borrow().history.messages().iter().map(|message| message.seq).collect();
    assert_eq!(seqs, [0, 1, 2, 3, 4, 5]);
    // The edit is resumed into a branch of its own all the same.
    let id = run_ids(&session)[0].clone();
    let run = world.run(resume(&session, &id, in_mode(Persistence::Run, CHAT))).unwrap();
    assert_eq!(world.run(second.drive(&run, &echo)).status, RunStatus::Finished);
    assert_eq!(shown(&session)[0], "uno");
    world.run(switch_to(&session, "main")).unwrap();
    assert_eq!(ids(&session)[..4], before);
}

#[test]
fn r38_a_run_never_writes_to_another_branch_than_its_own() {
    let (world, data) = (World::new(false), MemoryStore::default());
    let process = Process::new(&world, &data, 1);
    let session = world.run(process.session(SessionSettings::default()));
    ask(&world, &process, &session, Persistence::Run, "one");
    let before = ids(&session);
    let run = world.run(replace(&session, in_mode(Persistence::Run, CHAT), &before[0], Some("uno"))).unwrap();
    // The head is damaged while the run is under way: the session is read anew, and shows the main branch.
    damage_head(&data);
    let outcome = world.run(process.drive(&run, &echo));
    world.run(session.refresh()).unwrap();
    let main = world.run(session.message_page(Some("main"), 10, u64::MAX)).unwrap();
    assert!(!main.items.contains("uno"), "the edit is in the branch that it replaces: {:?}", outcome.status);
}

#[test]
fn r38_a_run_that_is_discarded_leaves_the_branch_before() {
    let (world, data) = (World::new(false), MemoryStore::default());
    let first = Process::new(&world, &data, 1);
    let session = world.run(first.session(SessionSettings::default()));
    ask(&world, &first, &session, Persistence::Run, "one");
    let before = ids(&session);
    for keep in [false, true] {
        let run = world.run(replace(&session, in_mode(Persistence::Run, CHAT), &before[0], Some("uno"))).unwrap();
        run.give_up();
        world.pass(31_000);
        assert_eq!((ids(&session), session.branch_name()), (before.clone(), "main".to_owned()));
        world.run(discard_run(&session, &run.id, keep)).unwrap();
        world.pass(1_000);
        assert_eq!(run_ids(&session).len(), 0);
        assert_eq!(session.branch_name(), if keep { "fork-1" } else { "main" });
        assert_eq!(shown(&session)[0], if keep { "uno" } else { "one" });
    }
}

/// The branches of a session as a model knows them: the texts of each.
type Model = BTreeMap<String, Vec<String>>;

/// The notes of the messages of each branch, by their ids.
type Notes = BTreeMap<String, BTreeMap<String, String>>;

/// Notes that a new branch begins with.
fn shared_notes(notes: &Notes, from: &str, shared: &[String]) -> BTreeMap<String, String> {
    let mut of_branch = notes.get(from).cloned().unwrap_or_default();
    of_branch.retain(|id, _| shared.contains(id));
    of_branch
}

/// What the branches of a session have.
struct Known {
    texts: Model,
    notes: Notes,
}

fn check(world: &Rc<World>, data: &MemoryStore, process: u32, known: &Known, seed: u64) {
    let fresh = Process::new(world, data, process);
    let session = world.run(fresh.session(SessionSettings::default()));
    for (name, wanted) in &known.texts {
        world.run(switch_to(&session, name)).unwrap();
        assert_eq!(&shown(&session), wanted, "seed {seed} {name}");
        let page = world.run(session.message_page(Some(name), 1_000, u64::MAX)).unwrap();
        let page: Value = serde_json::from_str(&page.items).unwrap();
        assert_eq!(page.as_array().unwrap().len(), wanted.len());
        let noted = page.as_array().unwrap().iter().filter(|message| !message["metadata"].is_null());
        let noted = noted.map(|message| (message["id"].as_str().unwrap(), message["metadata"].as_str().unwrap()));
        let known = known.notes.get(name).into_iter().flatten().map(|(id, note)| (id.as_str(), note.as_str()));
        assert_eq!(noted.collect::<BTreeMap<_, _>>(), known.collect(), "seed {seed} {name}");
        for message in page.as_array().unwrap() {
            let place = message["siblings"]["index"].as_u64().unwrap();
            assert_eq!(message["siblings"]["ids"][usize::try_from(place).unwrap()], message["id"], "seed {seed}");
        }
    }
    assert!(fresh.heard.borrow().warnings.is_empty(), "seed {seed}: {:?}", fresh.heard.borrow().warnings);
}

impl Known {
    fn fork(&mut self, world: &World, session: &Rc<OpenSession>, after: &str) {
        let (from, known) = (session.branch_name(), ids(session));
        let name = world.run(fork(session, Some(after))).unwrap();
        let until = known.iter().position(|id| id == after).unwrap() + 1;
        self.notes.insert(name.clone(), shared_notes(&self.notes, &from, &known[..until]));
        self.texts.insert(name, shown(session)[..until].to_vec());
    }

    fn edit(&mut self, world: &Rc<World>, process: &Process, session: &Rc<OpenSession>, (id, input): (&str, &str)) {
        let from = session.branch_name();
        let is_question = roles(session)[ids(session).iter().position(|other| other == id).unwrap()] == Role::User;
        edit(world, process, session, id, is_question.then_some(input));
        self.texts.insert(session.branch_name(), shown(session));
        self.notes.insert(session.branch_name(), shared_notes(&self.notes, &from, &ids(session)));
    }

    fn append_beside(&mut self, world: &World, session: &Rc<OpenSession>, name: &str, said: String) {
        let body = Json::parse(&json!([{ "role": "user", "content": said }]).to_string()).unwrap();
        let origin = session.origin(AppendOrigin::default());
        world.run(session.append_to(Some(name), (&body, Some(CHAT)), (&origin, None))).unwrap();
        self.texts.get_mut(name).unwrap().push(said);
    }

    /// The ids of the messages of each branch.
    fn ids_by_branch(&self, world: &World, session: &Rc<OpenSession>) -> BTreeMap<String, Vec<String>> {
        let ids_of = |name: &String| {
            let page = world.run(session.message_page(Some(name), 1_000, u64::MAX)).unwrap();
            let page: Value = serde_json::from_str(&page.items).unwrap();
            let ids = page.as_array().unwrap().iter().map(|message| message["id"].as_str().unwrap().to_owned());
            (name.clone(), ids.collect())
        };
        self.texts.keys().map(ids_of).collect()
    }

    fn annotate(&mut self, world: &World, session: &Rc<OpenSession>, id: String, said: String) {
        let metadata = Json::parse(&json!(said).to_string()).unwrap();
        world.run(annotate(session, &Annotation::new(&id, metadata))).unwrap();
        // Ids are unique here, so that a branch that has the id shares the message.
        for (name, has) in self.ids_by_branch(world, session) {
            if has.contains(&id) {
                self.notes.entry(name).or_default().insert(id.clone(), said.clone());
            }
        }
    }
}

/// Two processes do what people do, and each branch stays what it was made.
fn anything_is_kept(seed: u64) {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below as u64).unwrap()
    };
    let (world, data) = (World::new(false), MemoryStore::default());
    let processes = [Process::new(&world, &data, 1), Process::new(&world, &data, 2)];
    let sessions = processes.each_ref().map(|process| world.run(process.session(SessionSettings::default())));
    let mut known = Known { texts: Model::from([("main".to_owned(), Vec::new())]), notes: Notes::new() };
    for turn in 0..14 {
        let at = random(2);
        let (process, session) = (&processes[at], &sessions[at]);
        world.run(session.refresh()).unwrap();
        let stored = ids(session);
        let pick = |n: usize| stored.get(n % stored.len().max(1)).cloned();
        match (random(8), stored.is_empty()) {
            (0, false) => known.fork(&world, session, &pick(random(100)).unwrap()),
            (1, _) => {
                let names: Vec<_> = known.texts.keys().cloned().collect();
                let name = &names[random(names.len())];
                world.run(switch_to(session, name)).unwrap();
                assert_eq!(shown(session), known.texts[name], "seed {seed} turn {turn}");
            }
            (2 | 3, false) => {
                let (id, input) = (pick(random(100)).unwrap(), format!("edit {turn}"));
                known.edit(&world, process, session, (&id, &input));
            }
            (5, _) => {
                let names: Vec<_> = known.texts.keys().cloned().collect();
                known.append_beside(&world, session, &names[random(names.len())], format!("beside {turn}"));
            }
            (6, false) => {
                known.annotate(&world, session, pick(random(100)).unwrap(), format!("note {turn}"));
            }
            (4, false) => {
                let operation = format!("merge{turn}");
                world.run(merge_oldest(&*process.store, &session.log, &operation)).unwrap();
            }
            _ => {
                let mode = MODES[random(3)];
                ask(&world, process, session, mode, &format!("turn {turn}"));
                known.texts.insert(session.branch_name(), shown(session));
            }
        }
        // The other process may show the branch too.
        let other = &sessions[1 - at];
        world.run(other.refresh()).unwrap();
        assert_eq!(shown(other), known.texts[&other.branch_name()], "seed {seed} turn {turn}");
        if let Some(wanted) = known.texts.get(&session.branch_name()) {
            assert_eq!(&shown(session), wanted, "seed {seed} turn {turn}");
        }
    }
    check(&world, &data, 3, &known, seed);
    // The head is lost: it is rebuilt from the log and the directory.
    damage_head(&data);
    let rebuilt = block_on(open_session(&data, "s", Seed(7), 1)).unwrap();
    let name = rethread::store::branch_name(rebuilt.branch_number());
    assert_eq!(texts(&rebuilt.history), known.texts[&name], "seed {seed}");
    assert_eq!(rebuilt.head.branch_count as usize + 1, known.texts.len(), "seed {seed}");
}

#[test]
fn r38_whatever_two_processes_do_each_branch_stays_what_it_was_made() {
    let seeds = if std::env::var("RETHREAD_LONG").is_ok() { 3_000 } else { 60 };
    for seed in 1..=seeds {
        anything_is_kept(seed);
    }
}
