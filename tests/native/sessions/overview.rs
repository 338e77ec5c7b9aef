//! What a list shows of a session without opening it: preview, unread answers and pending approvals (R79).

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::scripted_host::*;
use super::virtual_host::{Process, World};
use super::{MODES, in_mode, resume, start};
use rethread::json::Json;
use rethread::run::{ARCHIVE_DESCRIPTIONS, ApprovalDecision, Persistence, RunSetup, RunStatus, ToolSettings};
use rethread::session::{
    AppendOrigin, NewRun, OpenSession, RunDriver, SessionSettings, clear, discard_run, fork, mark_read, read_archive,
    restore_archive, switch_to,
};
use rethread::session_head::{Preview, SessionHead};
use rethread::store::{Batch, LogStore, MemoryStore, RecordKind, SessionArchive, open_record};
use serde_json::{Value, json};
use std::rc::Rc;

fn opened(world: &World, process: &Process) -> Rc<OpenSession> {
    world.run(process.session(SessionSettings::default()))
}

/// Appends messages of these roles and texts.
fn say(world: &World, session: &OpenSession, messages: &[(&str, &str)]) {
    world.pass(1_000);
    let messages: Vec<Value> = messages.iter().map(|(role, text)| json!({ "role": role, "content": text })).collect();
    let origin = session.origin(AppendOrigin::default());
    let body = Json::parse(&json!(messages).to_string()).unwrap();
    world.run(session.append(&body, Some(CHAT), (&origin, None))).unwrap();
}

fn read(world: &World, session: &OpenSession) {
    let mark = session.log.borrow().read_mark();
    if let Some(mark) = mark {
        world.run(mark_read(session, mark)).unwrap();
    }
}

/// The head as a list reads it.
fn stored(data: &MemoryStore, id: &str) -> SessionHead {
    open_record(RecordKind::Head, &block_on(data.head(id)).unwrap().unwrap().value).unwrap()
}

fn shown(data: &MemoryStore) -> (&'static str, String) {
    let preview = stored(data, "s").overview.preview;
    preview.map_or(("none", String::new()), |preview: Preview| (preview.role(), preview.text))
}

fn unread(data: &MemoryStore) -> u64 {
    stored(data, "s").overview.unread
}

async fn regenerate(session: &Rc<OpenSession>, message: &str) -> Rc<RunDriver> {
    let new = |id| {
        let setup = RunSetup { id, ..in_mode(Persistence::Run, CHAT) };
        Ok(NewRun {
            setup,
            input: Vec::new(),
            input_id: None,
            branch: None,
            replace: Some(message.into()),
            provide: None,
            store: None,
        })
    };
    RunDriver::launch(session, RunDriver::begin(session, new)).await.unwrap()
}

#[test]
fn r79_the_newest_text_of_the_shown_branch_stands_in_the_head() {
    let (world, data) = (World::new(false), MemoryStore::default());
    let process = Process::new(&world, &data, 1);
    let session = opened(&world, &process);
    say(&world, &session, &[("system", "Be kind."), ("user", "What is\n  this?")]);
    assert_eq!(shown(&data), ("user", "What is this?".into()));
    let run = world.run(start(&session, in_mode(Persistence::Run, CHAT), "And that?")).unwrap();
    assert_eq!(shown(&data), ("user", "What is this?".into()), "the question is not in history yet");
    assert_eq!(world.run(process.drive(&run, &|_| Answer::Say(text("A crab.")))).status, RunStatus::Finished);
    assert_eq!(shown(&data), ("assistant", "A crab.".into()));
    // A message without a text, and a change of the head alone.
    say(&world, &session, &[("system", "Be brief.")]);
    world.run(session.update(Box::new(|head| head.title = Some("Crabs".into())))).unwrap();
    assert_eq!(shown(&data).1, "A crab.");
    // A fork is not shown until it is chosen.
    let first = session.log.borrow().history.messages()[1].id.clone();
    let branch = world.run(fork(&session, Some(&first))).unwrap();
    assert_eq!(shown(&data).1, "A crab.");
    world.run(switch_to(&session, &branch)).unwrap();
    assert_eq!(shown(&data).1, "What is this?");
    say(&world, &session, &[("user", "Never mind.")]);
    world.run(switch_to(&session, "main")).unwrap();
    assert_eq!(shown(&data).1, "A crab.");
    let answer = session.log.borrow().history.messages()[3].id.clone();
    let run = world.run(regenerate(&session, &answer));
    assert_eq!(world.run(process.drive(&run, &|_| Answer::Say(text("A lobster.")))).status, RunStatus::Finished);
    assert_eq!(shown(&data).1, "A lobster.");
    // Another process shows main and changes the head: the branch that was chosen last is listed.
    let other = Process::new(&world, &data, 2);
    let elsewhere = opened(&world, &other);
    world.run(switch_to(&session, "main")).unwrap();
    world.run(elsewhere.update(Box::new(|head| head.title = Some("Lobsters".into())))).unwrap();
    assert_eq!((shown(&data).1, stored(&data, "s").title.as_deref()), ("A crab.".into(), Some("Lobsters")));
    world.run(clear(&session)).unwrap();
    assert_eq!(shown(&data).0, "none");
}

#[test]
fn r79_a_preview_comes_with_an_import_and_returns_after_damage() {
    let (world, data) = (World::new(false), MemoryStore::default());
    let process = Process::new(&world, &data, 1);
    let session = opened(&world, &process);
    say(&world, &session, &[("user", "Hello"), ("assistant", "Good day.")]);
    let archive = world.run(read_archive(&process.open.context, Some(&session), "s")).unwrap();
    let archive = SessionArchive::from_json_lines(&archive.to_json_lines(&ARCHIVE_DESCRIPTIONS)).unwrap();
    world.run(restore_archive(&process.open.context, archive, Some("copy".into()))).unwrap();
    assert_eq!(stored(&data, "copy").overview, stored(&data, "s").overview);
    let head = block_on(data.head("s")).unwrap().unwrap();
    let mut damaged = head.value.to_vec();
    *damaged.last_mut().unwrap() ^= 1;
    let damage = Batch { head: damaged.into(), ..Batch::default() };
    block_on(data.append("s", head.revision, damage, "damage")).unwrap();
    let head = block_on(data.head("s")).unwrap().unwrap();
    let listed = world.run(process.open.context.head("s", &head)).unwrap();
    assert_eq!(listed.overview.preview.unwrap().text, "Good day.");
    world.run(session.update(Box::new(|head| head.title = Some("Still there".into())))).unwrap();
    assert_eq!(shown(&data).1, "Good day.");
    assert_eq!(unread(&data), 1, "the open session knows what is unread");
    // A head of an older build.
    let older = SessionHead { overview: Default::default(), ..stored(&data, "s") };
    let revision = block_on(data.head("s")).unwrap().unwrap().revision;
    let batch = Batch { head: rethread::store::seal_record(RecordKind::Head, &older), ..Batch::default() };
    block_on(data.append("s", revision, batch, "older")).unwrap();
    world.run(session.update(Box::new(|head| head.is_archived = true))).unwrap();
    assert_eq!((shown(&data).1, unread(&data)), ("Good day.".into(), 0));
}

#[test]
fn r79_answers_are_unread_until_they_are_marked_and_own_messages_are_not() {
    let (world, data) = (World::new(false), MemoryStore::default());
    let (first, second) = (Process::new(&world, &data, 1), Process::new(&world, &data, 2));
    let (session, other) = (opened(&world, &first), opened(&world, &second));
    say(&world, &session, &[("user", "Hello")]);
    assert_eq!(unread(&data), 0);
    let run = world.run(start(&session, in_mode(Persistence::Call, CHAT), "Go")).unwrap();
    // Answers that only call tools have no text that a list could show.
    let model = |body: &Value| match rounds_in(body) {
        0 | 1 => Answer::Say(calls(&[("look", "look", "{}")])),
        _ => Answer::Say(text("Looked.")),
    };
    assert_eq!(world.run(first.drive(&run, &model)).status, RunStatus::Finished);
    assert_eq!(session.log.borrow().history.messages().len(), 5);
    assert_eq!(unread(&data), 1);
    world.run(other.refresh()).unwrap();
    let (listed, revision) = (stored(&data, "s"), block_on(data.head("s")).unwrap().unwrap().revision);
    read(&world, &other);
    assert_eq!(unread(&data), 0);
    let after = stored(&data, "s");
    assert_eq!((after.updated_at, after.history_revision), (listed.updated_at, listed.history_revision));
    assert_eq!(block_on(data.head("s")).unwrap().unwrap().revision, revision + 1);
    // Nothing is written if nothing is unread.
    read(&world, &other);
    assert_eq!(block_on(data.head("s")).unwrap().unwrap().revision, revision + 1);
    say(&world, &session, &[("user", "And?"), ("assistant", "One.")]);
    // What the reader has not seen stays unread, although its write comes after it.
    world.run(other.refresh()).unwrap();
    let seen = other.log.borrow().read_mark().unwrap();
    say(&world, &session, &[("assistant", "Two.")]);
    world.run(mark_read(&other, seen)).unwrap();
    assert_eq!(unread(&data), 1);
    // One that marks less than is read already makes nothing unread.
    read(&world, &other);
    world.run(mark_read(&session, seen)).unwrap();
    assert_eq!(unread(&data), 0);
    // A branch has its own count, which begins with what it shares.
    say(&world, &session, &[("assistant", "Three."), ("user", "Hm."), ("assistant", "Four.")]);
    let messages: Vec<String> = session.log.borrow().history.messages().iter().map(|one| one.id.clone()).collect();
    let branch = world.run(fork(&session, Some(&messages[messages.len() - 2]))).unwrap();
    assert_eq!(unread(&data), 2);
    world.run(switch_to(&session, &branch)).unwrap();
    assert_eq!(unread(&data), 1);
    read(&world, &session);
    world.run(switch_to(&session, "main")).unwrap();
    assert_eq!(unread(&data), 2);
    world.run(clear(&session)).unwrap();
    assert_eq!(unread(&data), 0);
}

fn asking(mode: Persistence) -> RunSetup {
    let mut setup = in_mode(mode, CHAT);
    setup.tool_settings.insert("find".into(), ToolSettings { needs_approval: true, ..ToolSettings::default() });
    setup
}

/// A model that calls two tools that need an approval, and then answers.
fn two_calls(body: &Value) -> Answer {
    if rounds_in(body) == 0 {
        Answer::Say(calls(&[("one", "find", "{}"), ("two", "find", "{}")]))
    } else {
        Answer::Say(text("Done."))
    }
}

#[test]
fn r79_approvals_that_wait_for_a_person_are_counted_in_the_head() {
    for mode in MODES {
        for flush_ms in [0, 500] {
            let (world, data) = (World::new(false), MemoryStore::default());
            let process = Process::new(&world, &data, 1);
            let settings = SessionSettings { flush_ms: Some(flush_ms), ..SessionSettings::default() };
            let session = world.run(process.session(settings));
            let pending = || stored(&data, "s").pending_approvals();
            let run = world.run(start(&session, asking(mode), "Go")).unwrap();
            assert_eq!(world.run(process.drive(&run, &two_calls)).status, RunStatus::WaitingApproval);
            assert_eq!(pending(), 2, "{mode:?} {flush_ms}");
            let waiting: Vec<_> = run.machine.borrow().approvals().iter().map(|call| call.invocation.clone()).collect();
            world.run(run.decide(waiting[0].clone(), ApprovalDecision::Reject(None))).unwrap();
            assert_eq!(pending(), 1);
            // Another process takes it over, in whose head it is counted as before.
            let second = Process::new(&world, &data, 2);
            let other = opened(&world, &second);
            let taken = world.run(resume(&other, &run.id, asking(mode))).unwrap();
            assert_eq!(pending(), 1);
            world.run(taken.decide(waiting[1].clone(), ApprovalDecision::Approve)).unwrap();
            assert_eq!(pending(), 0);
            assert_eq!(world.run(second.drive(&taken, &two_calls)).status, RunStatus::Finished);
            assert_eq!((pending(), shown(&data).1), (0, "Done.".into()));
        }
    }
}

#[test]
fn r79_no_approval_is_pending_of_a_run_that_was_cancelled_discarded_or_failed() {
    let (world, data) = (World::new(false), MemoryStore::default());
    let process = Process::new(&world, &data, 1);
    let session = opened(&world, &process);
    let pending = || stored(&data, "s").pending_approvals();
    let wait = || {
        let run = world.run(start(&session, asking(Persistence::Run), "Go")).unwrap();
        assert_eq!(world.run(process.drive(&run, &two_calls)).status, RunStatus::WaitingApproval);
        assert_eq!(pending(), 2);
        run
    };
    world.run(wait().cancel()).unwrap();
    assert_eq!(pending(), 0);
    let run = wait();
    world.run(discard_run(&session, &run.id, true)).unwrap();
    assert_eq!(pending(), 0);
    // A second round of a run that fails.
    let run = world.run(start(&session, asking(Persistence::Run), "Go")).unwrap();
    let fails = |body: &Value| {
        if rounds_in(body) == 0 { two_calls(body) } else { Answer::Status(400, Vec::new(), "{}".into()) }
    };
    assert_eq!(world.run(process.drive(&run, &fails)).status, RunStatus::WaitingApproval);
    let waiting: Vec<_> = run.machine.borrow().approvals().iter().map(|call| call.invocation.clone()).collect();
    for call in waiting {
        world.run(run.decide(call, ApprovalDecision::Approve)).unwrap();
    }
    assert_eq!(world.run(process.drive(&run, &fails)).status, RunStatus::Failed);
    assert_eq!(pending(), 0);
    // A killed process leaves what waits.
    let run = wait();
    process.kill();
    assert_eq!(pending(), 2);
    let next = Process::new(&world, &data, 2);
    let session = opened(&world, &next);
    let resumed = world.run(resume(&session, &run.id, asking(Persistence::Run))).unwrap();
    assert_eq!(pending(), 2);
    world.run(resumed.cancel()).unwrap();
    assert_eq!(pending(), 0);
}

#[test]
fn r79_r67_an_overview_that_another_build_left_behind_is_not_shown_and_is_made_anew() {
    let (world, data) = (World::new(false), MemoryStore::default());
    let process = Process::new(&world, &data, 1);
    let session = opened(&world, &process);
    say(&world, &session, &[("user", "Hello"), ("assistant", "Good day.")]);
    for erases in [false, true] {
        // It appended or erased a message, and wrote back what it does not know.
        let mut other = stored(&data, "s");
        let overview = other.overview.clone();
        assert_eq!(other.known_overview(), Some(&overview));
        if erases {
            other.erased += 1;
        } else {
            other.next_seq += 1;
        }
        assert_eq!(other.known_overview(), None);
        let revision = block_on(data.head("s")).unwrap().unwrap().revision;
        let batch = Batch { head: rethread::store::seal_record(RecordKind::Head, &other), ..Batch::default() };
        block_on(data.append("s", revision, batch, &format!("other {erases}"))).unwrap();
        world.run(session.update(Box::new(|head| head.is_archived = true))).unwrap();
        let head = stored(&data, "s");
        assert_eq!(head.known_overview().and_then(|overview| overview.preview.as_ref()).unwrap().text, "Good day.");
        assert_eq!(head.overview.unread, 0);
        say(&world, &session, &[("assistant", "Good day.")]);
        assert_eq!(unread(&data), 1);
    }
}

#[test]
fn r79_a_mark_of_what_was_cleared_marks_nothing() {
    let (world, data) = (World::new(false), MemoryStore::default());
    let process = Process::new(&world, &data, 1);
    let session = opened(&world, &process);
    say(&world, &session, &[("user", "Hello"), ("assistant", "One"), ("assistant", "Two")]);
    let mark = session.log.borrow().read_mark().unwrap();
    world.run(clear(&session)).unwrap();
    say(&world, &session, &[("assistant", "New")]);
    world.run(mark_read(&session, mark)).unwrap();
    assert_eq!(unread(&data), 1);
}
