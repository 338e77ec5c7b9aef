//! Open sessions and the loop that drives runs, as every binding has them, over a host with a clock of its own (R81).

#[cfg(not(target_arch = "wasm32"))]
mod additions;
#[cfg(not(target_arch = "wasm32"))]
mod adoption;
#[cfg(not(target_arch = "wasm32"))]
mod annotations;
mod automatic_compaction;
#[cfg(not(target_arch = "wasm32"))]
mod backup;
mod begun_conversations;
mod branch_views;
mod branches;
mod conversations;
#[cfg(not(target_arch = "wasm32"))]
mod copy;
#[cfg(not(target_arch = "wasm32"))]
mod erased_compactions;
#[cfg(not(target_arch = "wasm32"))]
mod erasure;
#[cfg(not(target_arch = "wasm32"))]
mod erasure_races;
#[cfg(not(target_arch = "wasm32"))]
mod interleavings;
mod list;
#[cfg(not(target_arch = "wasm32"))]
mod many_branches;
#[cfg(not(target_arch = "wasm32"))]
mod nameless_calls;
mod overview;
mod provider_compaction;
#[cfg(not(target_arch = "wasm32"))]
mod prune;
mod queue;
mod queue_faults;
mod queue_holders;
mod reads;
#[cfg(not(target_arch = "wasm32"))]
mod rotation;
#[cfg(not(target_arch = "wasm32"))]
mod search;
#[cfg(not(target_arch = "wasm32"))]
mod search_index;
mod seeds;
mod stored_queue;
mod titles;
#[cfg(not(target_arch = "wasm32"))]
mod unshown_branches;

use crate::scripted_host;
use crate::virtual_host;

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use rethread::error::{Error, ErrorCode};
use rethread::history::{NewResult, Origin};
use rethread::json::Json;
use rethread::message::{Dialect, Role};
use rethread::run::{ApprovalDecision, Persistence, RunSetup, RunStatus, ToolSettings, ToolTiming};
use rethread::session::{
    AppendOrigin, CompactionMode, CompactionOutcome, CompactionRequest, NewRun, OpenSession, PendingState,
    ResumeRequest, RunDriver, SessionSettings, clear, compact, discard_run, read_archive, restore_archive, resume_run,
};
use rethread::store::{LogStore, MemoryStore, Query, Table};
use rethread::tool::{InvocationStatus, ToolResult};
use scripted_host::*;
use serde_json::{Value, json};
use std::cell::Cell;
use std::rc::Rc;
use virtual_host::{Process, World};

const MODES: [Persistence; 3] = [Persistence::Run, Persistence::Call, Persistence::Result];

fn in_mode(persistence: Persistence, dialect: Dialect) -> RunSetup {
    RunSetup { persistence, ..setup("", dialect, false) }
}

/// Starts a run, as `Session.run` does.
async fn start(session: &Rc<OpenSession>, setup: RunSetup, input: &str) -> Result<Rc<RunDriver>, Error> {
    start_in(session, setup, (input, false)).await
}

/// As [`start`]; with `queue` after the runs that are under way.
async fn start_in(
    session: &Rc<OpenSession>,
    setup: RunSetup,
    (input, queue): (&str, bool),
) -> Result<Rc<RunDriver>, Error> {
    let new =
        NewRun { setup, input: words(input), input_id: None, branch: None, replace: None, provide: None, store: None };
    RunDriver::send(session, queue, |id| Ok(NewRun { setup: RunSetup { id, ..new.setup }, ..new })).await
}

/// Resumes a run, as `Session.resume` does.
async fn resume(session: &Rc<OpenSession>, id: &str, setup: RunSetup) -> Result<Rc<RunDriver>, Error> {
    let setup = RunSetup { id: id.into(), ..setup };
    let request = ResumeRequest { setup, persistence: None, handoffs: Vec::new() };
    if session.is_queued(id).await? {
        return RunDriver::take_up(session, request, (None, None)).await;
    }
    RunDriver::launch(session, resume_run(session, None, request)).await
}

fn run_ids(session: &OpenSession) -> Vec<String> {
    session.log.borrow().head.runs.iter().map(|run| run.id.clone()).collect()
}

fn roles(session: &OpenSession) -> Vec<Role> {
    session.log.borrow().history.messages().iter().map(|message| message.role).collect()
}

fn statuses(session: &OpenSession) -> Vec<(String, InvocationStatus)> {
    let log = session.log.borrow();
    log.history.invocations().iter().map(|call| (call.call_id.clone(), call.status)).collect()
}

fn records(data: &MemoryStore, table: Table) -> usize {
    block_on(data.read("s", Query::all(table))).unwrap().len()
}

/// A model that never answers after `rounds` of tools.
fn hangs_after(rounds: usize) -> impl Fn(&Value) -> Answer {
    move |body| if rounds_in(body) >= rounds { Answer::Hang } else { three_tools(body) }
}

#[test]
fn r81_r15_r16_r17_a_turn_is_driven_to_its_end_in_every_mode() {
    for mode in MODES {
        let (world, data) = (World::new(false), MemoryStore::default());
        let process = Process::new(&world, &data, 1);
        let session = world.run(process.session(SessionSettings::default()));
        let run = world.run(start(&session, in_mode(mode, CHAT), "Go")).unwrap();
        assert_eq!(run_ids(&session), std::slice::from_ref(&run.id));
        let outcome = world.run(process.drive(&run, &three_tools));
        assert_eq!((outcome.status, outcome.model_calls, outcome.saved), (RunStatus::Finished, 3, true));
        assert_eq!(roles(&session), [Role::User, Role::Assistant, Role::Assistant, Role::Assistant]);
        assert_eq!(process.heard.borrow().ran.len(), 3);
        // In mode "run" the turn is one record; its journal is gone in each.
        assert_eq!(records(&data, Table::Log) == 1, mode == Persistence::Run);
        assert_eq!((records(&data, Table::Runs), run_ids(&session).len()), (0, 0));
        assert!(!session.has_live_run());
        assert!(process.heard.borrow().warnings.is_empty());
    }
}

/// What a killed process leaves is resumed by the next one. Returns false if it was not killed in time.
fn killed_at(step: usize, mode: Persistence, has_locks: bool) -> bool {
    let (world, data) = (World::new(has_locks), MemoryStore::default());
    let first = Process::new(&world, &data, 1);
    let turn = async {
        let session = first.session(SessionSettings::default()).await;
        let run = start(&session, in_mode(mode, CHAT), "Go").await.unwrap();
        first.drive(&run, &three_tools).await
    };
    if world.run_steps(turn, step).is_some() {
        return false;
    }
    first.kill();
    let second = Process::new(&world, &data, 2);
    let session = world.run(second.session(SessionSettings::default()));
    let Some(id) = run_ids(&session).first().cloned() else {
        // Nothing of the run was stored, or all of it.
        assert!(matches!(session.log.borrow().history.messages().len(), 0 | 4), "step {step}");
        return true;
    };
    if mode == Persistence::Run {
        assert!(roles(&session).is_empty(), "step {step}: half a turn");
    }
    if !has_locks {
        let busy = world.run(resume(&session, &id, in_mode(mode, CHAT))).err().map(|error| error.code);
        assert_eq!(busy, Some(ErrorCode::Busy), "step {step}: the lease of the killed process has not run out");
        world.pass(31_000);
    }
    let run = world.run(resume(&session, &id, in_mode(mode, CHAT))).unwrap();
    let outcome = world.run(second.drive(&run, &three_tools));
    assert_eq!((outcome.status, outcome.model_calls), (RunStatus::Finished, 3), "step {step}: {:?}", outcome.error);
    assert_eq!(roles(&session), [Role::User, Role::Assistant, Role::Assistant, Role::Assistant], "step {step}");
    let asked = first.heard.borrow().asked.len() + second.heard.borrow().asked.len();
    assert!((3..=4).contains(&asked), "step {step}: an acknowledged model call was repeated");
    let (before, after) = (&first.heard.borrow().ran, &second.heard.borrow().ran);
    assert!(after.iter().all(|tool| !before.contains(tool)), "step {step}: a tool ran twice");
    for (call, status) in statuses(&session) {
        let ran_last = before.last().is_some_and(|(id, _)| *id == call);
        let expected = [InvocationStatus::Ok, InvocationStatus::Interrupted];
        assert!(status == expected[0] || status == expected[1], "step {step}: {call} is {status:?}");
        // Only what was under way may be cut: its start was stored, and no result.
        assert!(status == expected[0] || ran_last || before.iter().all(|(id, _)| *id != call), "step {step}: {call}");
    }
    assert_eq!(records(&data, Table::Runs), 0, "step {step}");
    true
}

#[test]
fn r81_r18_killed_wherever_it_waits_the_next_process_finishes_the_turn() {
    for mode in MODES {
        for has_locks in [false, true] {
            let kills = (0..).take_while(|step| killed_at(*step, mode, has_locks)).count();
            assert!(kills >= 25, "{mode:?}: {kills} places to be killed");
        }
    }
}

#[test]
fn r81_r18_a_lease_is_renewed_while_its_holder_lives_and_a_stale_holders_write_conflicts() {
    let (world, data) = (World::new(false), MemoryStore::default());
    let (first, second) = (Process::new(&world, &data, 1), Process::new(&world, &data, 2));
    let session = world.run(first.session(SessionSettings::default()));
    let run = world.run(start(&session, in_mode(Persistence::Run, CHAT), "Go")).unwrap();
    let other = world.run(second.session(SessionSettings::default()));
    // Ten leases long, the holder is alive.
    for _ in 0..10 {
        world.pass(30_000);
        assert!(session.log.borrow().head.run(&run.id).unwrap().lease_until > world.now.get());
        let busy = world.run(resume(&other, &run.id, in_mode(Persistence::Run, CHAT)));
        assert_eq!(busy.err().map(|error| error.code), Some(ErrorCode::Busy));
    }
    // The first process sleeps, as a laptop does: its timers do not fire, and its lease runs out.
    world.kill(1);
    world.pass(31_000);
    let taken = world.run(resume(&other, &run.id, in_mode(Persistence::Run, CHAT))).unwrap();
    // It wakes up, and its model answers.
    let outcome = world.run(first.drive(&run, &three_tools));
    assert_eq!((outcome.status, outcome.error.map(|error| error.code)), (RunStatus::Failed, Some(ErrorCode::Conflict)));
    assert!(first.heard.borrow().ran.is_empty(), "a tool ran although its holder has lost the run");
    let outcome = world.run(second.drive(&taken, &three_tools));
    assert_eq!(outcome.status, RunStatus::Finished);
    assert_eq!(roles(&other).len(), 4);
}

#[test]
fn r81_r18_a_closed_store_ends_its_leases_and_a_killed_ones_run_is_pending() {
    for closes in [true, false] {
        let (world, data) = (World::new(false), MemoryStore::default());
        let first = Process::new(&world, &data, 1);
        let session = world.run(first.session(SessionSettings::default()));
        let run = world.run(start(&session, in_mode(Persistence::Run, CHAT), "Go")).unwrap();
        assert!(world.run_steps(first.drive(&run, &hangs_after(1)), 1_000).is_none());
        if closes {
            world.run(first.open.end_holds());
        }
        first.kill();
        let second = Process::new(&world, &data, 2);
        let other = world.run(second.session(SessionSettings::default()));
        let state = other.pending.borrow()[0].state.clone();
        assert_eq!(state, if closes { PendingState::Interrupted } else { PendingState::Live });
        let resumed = world.run(resume(&other, &run.id, in_mode(Persistence::Run, CHAT)));
        assert_eq!(resumed.is_ok(), closes);
    }
}

#[test]
fn r81_r15_a_second_run_of_one_session_is_busy_or_waits_for_the_first() {
    let (world, data) = (World::new(false), MemoryStore::default());
    let process = Process::new(&world, &data, 1);
    let session = world.run(process.session(SessionSettings::default()));
    let run = world.run(start(&session, in_mode(Persistence::Run, CHAT), "Go")).unwrap();
    let second = world.run(start(&session, in_mode(Persistence::Run, CHAT), "And?"));
    assert_eq!(second.err().map(|error| error.code), Some(ErrorCode::Busy));
    let order = Cell::new(0);
    let queued = async {
        let run = start_in(&session, in_mode(Persistence::Run, CHAT), ("And?", true)).await.unwrap();
        order.set(order.get() * 10 + 2);
        process.drive(&run, &three_tools).await;
    };
    let driven = async {
        process.drive(&run, &three_tools).await;
        order.set(order.get() * 10 + 1);
    };
    world.run(both(queued, driven));
    assert_eq!(order.get(), 12, "the queued run is admitted when the first one is over");
}

/// Awaits two futures.
async fn both(one: impl Future<Output = ()>, other: impl Future<Output = ()>) {
    let (mut one, mut other) = (Box::pin(one), Box::pin(other));
    let (mut first, mut second) = (false, false);
    std::future::poll_fn(|task| {
        second = second || other.as_mut().poll(task).is_ready();
        first = first || one.as_mut().poll(task).is_ready();
        if first && second { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
}

#[test]
fn r81_r21_deferred_writes_are_few_and_a_kill_loses_the_last_flush_ms_at_most() {
    let appends_with = |flush_ms| {
        let (world, data) = (World::new(true), MemoryStore::default());
        let process = Process::new(&world, &data, 1);
        let settings = SessionSettings { flush_ms: Some(flush_ms), ..SessionSettings::default() };
        let session = world.run(process.session(settings));
        let run = world.run(start(&session, in_mode(Persistence::Run, CHAT), "Go")).unwrap();
        assert_eq!(world.run(process.drive(&run, &three_tools)).status, RunStatus::Finished);
        process.store.appends.get()
    };
    assert_eq!((appends_with(0), appends_with(60_000)), (10, 2));

    let (world, data) = (World::new(true), MemoryStore::default());
    let process = Process::new(&world, &data, 1);
    let settings = SessionSettings { flush_ms: Some(500), ..SessionSettings::default() };
    let session = world.run(process.session(settings));
    let run = world.run(start(&session, in_mode(Persistence::Run, CHAT), "Go")).unwrap();
    assert!(world.run_steps(process.drive(&run, &hangs_after(1)), 10_000).is_none());
    process.kill();
    let second = Process::new(&world, &data, 2);
    let other = world.run(second.session(SessionSettings::default()));
    let resumed = world.run(resume(&other, &run.id, in_mode(Persistence::Run, CHAT))).unwrap();
    assert_eq!(world.run(second.drive(&resumed, &three_tools)).status, RunStatus::Finished);
    assert!(second.heard.borrow().ran.len() == 1, "both tools of the first round were flushed");
}

#[test]
fn r81_r29_a_run_that_waits_for_an_approval_is_held_by_nobody_and_another_process_continues_it() {
    for takes_over in [false, true] {
        let (world, data) = (World::new(false), MemoryStore::default());
        let (first, second) = (Process::new(&world, &data, 1), Process::new(&world, &data, 2));
        let asking = || {
            let mut setup = in_mode(Persistence::Run, CHAT);
            setup.tool_settings.insert("find".into(), ToolSettings { needs_approval: true, ..ToolSettings::default() });
            setup
        };
        let session = world.run(first.session(SessionSettings::default()));
        let run = world.run(start(&session, asking(), "Go")).unwrap();
        let outcome = world.run(first.drive(&run, &three_tools));
        assert_eq!(outcome.status, RunStatus::WaitingApproval);
        assert!(!session.has_live_run());
        let waiting = run.machine.borrow().approvals()[0].invocation.clone();
        let other = world.run(second.session(SessionSettings::default()));
        assert_eq!(other.pending.borrow()[0].state, PendingState::WaitingApproval);
        let (process, run) = if takes_over {
            let taken = world.run(resume(&other, &run.id, asking())).unwrap();
            let late = world.run(run.decide(waiting.clone(), ApprovalDecision::Approve));
            assert!(late.is_err(), "the first process has lost the run");
            (&second, taken)
        } else {
            (&first, run)
        };
        world.run(run.decide(waiting, ApprovalDecision::Approve)).unwrap();
        assert_eq!(world.run(process.drive(&run, &three_tools)).status, RunStatus::Finished);
    }
}

#[test]
fn r81_r75_a_call_of_a_finished_run_is_answered_from_another_process_once() {
    let (world, data) = (World::new(false), MemoryStore::default());
    let (first, second) = (Process::new(&world, &data, 1), Process::new(&world, &data, 2));
    let mut setup = in_mode(Persistence::Run, CHAT);
    setup.tool_settings.insert("look".into(), ToolSettings { timing: ToolTiming::Later, ..ToolSettings::default() });
    let session = world.run(first.session(SessionSettings::default()));
    let run = world.run(start(&session, setup, "Go")).unwrap();
    let model = |body: &Value| {
        if rounds_in(body) == 0 { Answer::Say(calls(&[("late", "look", "{}")])) } else { Answer::Say(text("Later.")) }
    };
    assert_eq!(world.run(first.drive(&run, &model)).status, RunStatus::Finished);
    let other = world.run(second.session(SessionSettings::default()));
    let answer = |given: &str| rethread::session::Answer {
        result: NewResult {
            call: "late".into(),
            result: ToolResult {
                content: Json::parse(&json!(given).to_string()).unwrap(),
                is_error: false,
                dialect: None,
                template: None,
            },
            finished_at: None,
        },
        origin: Origin::default(),
        expected: None,
        persist: Vec::new(),
    };
    world.run(other.append_answer(answer("found"))).unwrap();
    // The first process has not read it, and finds that out.
    let late = world.run(session.append_answer(answer("again"))).err().map(|error| error.code);
    assert!(matches!(late, Some(ErrorCode::WrongState | ErrorCode::NotFound)), "{late:?}");
    assert_eq!(statuses(&session), [("late".to_owned(), InvocationStatus::Ok)]);
    let log = session.log.borrow();
    let result = log.history.invocations()[0].result.as_ref();
    assert_eq!(result.map(|result| result.content.as_str()), Some(r#""found""#));
}

#[test]
fn r81_r30_a_compaction_waits_for_the_run_and_covers_its_turn() {
    let (world, data) = (World::new(false), MemoryStore::default());
    let process = Process::new(&world, &data, 1);
    let session = world.run(process.session(SessionSettings::default()));
    let run = world.run(start(&session, in_mode(Persistence::Run, CHAT), "Go")).unwrap();
    let summarize = rethread::replay::Callback { id: 0, hook: Rc::new(()) };
    let request = Rc::new(CompactionRequest {
        mode: CompactionMode::Auto,
        is_forced: true,
        tokens: None,
        summarize,
        provider: None,
    });
    assert_eq!(world.run(compact(&session, request)), Ok(CompactionOutcome::Deferred));
    assert!(session.log.borrow().head.has_deferred_compaction);
    assert_eq!(world.run(process.drive(&run, &three_tools)).status, RunStatus::Finished);
    world.pass(10);
    let log = session.log.borrow();
    assert!(log.history.compaction().is_some() && !log.head.has_deferred_compaction);
}

#[test]
fn r81_r37_a_session_is_archived_cleared_and_restored_in_another_process() {
    let (world, data) = (World::new(false), MemoryStore::default());
    let process = Process::new(&world, &data, 1);
    let session = world.run(process.session(SessionSettings { title: Some("A chat".into()), ..Default::default() }));
    let origin = session.origin(AppendOrigin::default());
    let messages = Json::parse(r#"[{"role":"user","parts":[{"type":"text","text":"Hello"}]}]"#).unwrap();
    world.run(session.append(&messages, None, (&origin, None))).unwrap();
    let archive = world.run(read_archive(&session.context, Some(&session), "s")).unwrap();
    world.run(clear(&session)).unwrap();
    assert!(roles(&session).is_empty());
    let second = Process::new(&world, &data, 2);
    let id = world.run(restore_archive(&second.open.context, archive, Some("t".into()))).unwrap();
    let restored = world.run(second.open.open_session(&id, SessionSettings::default())).unwrap();
    assert_eq!((roles(&restored), restored.log.borrow().head.title.clone()), (vec![Role::User], Some("A chat".into())));
}

#[test]
fn r81_r18_a_discarded_run_is_gone_and_what_is_kept_of_it_is_in_history() {
    for keep in [false, true] {
        let (world, data) = (World::new(true), MemoryStore::default());
        let first = Process::new(&world, &data, 1);
        let session = world.run(first.session(SessionSettings::default()));
        let run = world.run(start(&session, in_mode(Persistence::Run, CHAT), "Go")).unwrap();
        assert!(world.run_steps(first.drive(&run, &hangs_after(1)), 1_000).is_none());
        let second = Process::new(&world, &data, 2);
        let other = world.run(second.session(SessionSettings::default()));
        let busy = world.run(discard_run(&other, &run.id, keep)).err().map(|error| error.code);
        assert_eq!(busy, Some(ErrorCode::Busy), "its holder is alive");
        first.kill();
        world.run(discard_run(&other, &run.id, keep)).unwrap();
        assert_eq!((roles(&other).is_empty(), records(&data, Table::Runs)), (!keep, 0));
    }
}

#[test]
fn r81_r62_a_cancelled_run_ends_and_the_next_one_begins() {
    let (world, data) = (World::new(false), MemoryStore::default());
    let process = Process::new(&world, &data, 1);
    let session = world.run(process.session(SessionSettings::default()));
    let run = world.run(start(&session, in_mode(Persistence::Run, CHAT), "Go")).unwrap();
    world.run(run.clone().cancel()).unwrap();
    assert_eq!(run.machine.borrow().status(), RunStatus::Cancelled);
    let next = world.run(start(&session, in_mode(Persistence::Run, CHAT), "Go on")).unwrap();
    assert_eq!(world.run(process.drive(&next, &three_tools)).status, RunStatus::Finished);
}
