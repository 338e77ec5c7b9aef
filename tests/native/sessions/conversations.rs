//! Runs of several processes in a conversation that a service keeps: one at a time (R22, R23, R60).

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::scripted_host::*;
use super::virtual_host::{Fault, Meanwhile, Process, World};
use super::{resume, run_ids, start};
use crate::stateful_service::{Service, rounds, words_of};
use rethread::error::ErrorCode;
use rethread::json::Json;
use rethread::owner::StateOwner;
use rethread::replay::Callback;
use rethread::run::{
    ApprovalDecision, EffectKind, EffectReply, Persistence, RunOutcome, RunSetup, RunStatus, ToolSettings,
};
use rethread::session::{
    CompactionMode, CompactionOutcome, CompactionRequest, OpenSession, RunDriver, SessionSettings, compact,
};
use rethread::store::MemoryStore;
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

pub(super) fn conversation() -> StateOwner {
    StateOwner::Conversation { id: "conv_1".into() }
}

fn chain() -> StateOwner {
    StateOwner::response(None)
}

pub(super) fn owned(owner: StateOwner) -> RunSetup {
    RunSetup { owner, ..setup("", RESPONSES, false) }
}

fn service() -> RefCell<Service> {
    RefCell::new(Service::new(rounds(1)).with_conversation("conv_1"))
}

/// Opens the session in a process, as one of this owner.
pub(super) fn opened(world: &World, process: &Process, owner: &StateOwner) -> Rc<OpenSession> {
    let (session, owner) = (world.run(process.session(SessionSettings::default())), owner.to_stored());
    world.run(session.update(Box::new(move |head| head.owner.clone_from(&owner)))).unwrap();
    session
}

fn drive(process: &Process, run: &Rc<RunDriver>, service: &RefCell<Service>) -> RunOutcome {
    let answer = |body: &Value| service.borrow_mut().answer(body);
    process.world.run(process.drive(run, &answer))
}

/// What a service has of the user.
fn questions(service: &RefCell<Service>) -> Vec<String> {
    let mut words = words_of(&service.borrow().conversations["conv_1"]);
    words.retain(|words| words.starts_with("user: "));
    words
}

#[test]
fn r22_r60_while_a_run_is_under_way_elsewhere_none_begins_in_its_conversation() {
    for has_locks in [true, false] {
        let (world, data, service) = (World::new(has_locks), MemoryStore::default(), service());
        let both = [1, 2].map(|number| Process::new(&world, &data, number));
        let [one, two] = both.each_ref().map(|process| opened(&world, process, &conversation()));
        let first = world.run(start(&one, owned(conversation()), "first")).unwrap();
        let refused = world.run(start(&two, owned(conversation()), "second")).map(drop);
        assert_eq!(refused.unwrap_err().code, ErrorCode::Busy);
        // Nothing is stored of it, here or there.
        world.run(two.refresh()).unwrap();
        assert_eq!(run_ids(&two), std::slice::from_ref(&first.id));
        let pending: Value = serde_json::from_str(&world.run(two.pending_runs()).unwrap()).unwrap();
        assert!(pending.as_array().unwrap().iter().all(|run| run["id"] == first.id.as_str()), "{pending}");
        assert_eq!(drive(&both[0], &first, &service).status, RunStatus::Finished);
        let second = world.run(start(&two, owned(conversation()), "second")).unwrap();
        assert_eq!(drive(&both[1], &second, &service).status, RunStatus::Finished);
        assert_eq!(questions(&service), ["user: first", "user: second"]);
    }
}

#[test]
fn r22_r60_of_processes_that_begin_at_once_one_sends() {
    for has_locks in [true, false] {
        for pause in 0..12 {
            let (world, data, service) = (World::new(has_locks), MemoryStore::default(), service());
            let both = [1, 2].map(|number| Process::new(&world, &data, number));
            let sessions = both.each_ref().map(|process| opened(&world, process, &conversation()));
            let outcomes: Rc<RefCell<Vec<_>>> = Rc::default();
            for (at, session) in sessions.iter().cloned().enumerate() {
                let (outcomes, host) = (outcomes.clone(), both[at].open.context.host.clone());
                both[at].open.context.host.spawn(Box::pin(async move {
                    host.sleep(pause * at as u64).await;
                    let begun = start(&session, owned(conversation()), "question").await;
                    outcomes.borrow_mut().push((at, begun));
                }));
            }
            world.pass(3_000);
            let outcomes = outcomes.take();
            let codes = outcomes.iter().filter_map(|(_, begun)| begun.as_ref().err().map(|error| error.code));
            assert_eq!(codes.collect::<Vec<_>>(), [ErrorCode::Busy], "{has_locks} {pause}");
            let (at, run) = outcomes.into_iter().find_map(|(at, begun)| Some((at, begun.ok()?))).unwrap();
            assert_eq!(drive(&both[at], &run, &service).status, RunStatus::Finished);
            let other = world.run(start(&sessions[1 - at], owned(conversation()), "again")).unwrap();
            assert_eq!(drive(&both[1 - at], &other, &service).status, RunStatus::Finished);
            assert_eq!(questions(&service), ["user: question", "user: again"]);
        }
    }
}

/// Lets others go on so many times.
async fn wait(turns: usize) {
    let mut left = turns;
    poll_fn(|task| {
        task.waker().wake_by_ref();
        left = left.saturating_sub(1);
        if left == 0 { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

#[test]
fn r22_r60_of_a_run_that_is_resumed_and_one_that_begins_at_once_one_goes_on() {
    for turns in 0..40 {
        let (world, data) = (World::new(false), MemoryStore::default());
        let all = [1, 2, 3].map(|number| Process::new(&world, &data, number));
        let [first, resuming, beginning] = all.each_ref().map(|process| opened(&world, process, &conversation()));
        let killed = world.run(start(&first, owned(conversation()), "first")).unwrap().id.clone();
        all[0].kill();
        world.pass(60_000);
        let outcomes: Rc<RefCell<Vec<_>>> = Rc::default();
        let kept = outcomes.clone();
        all[1].open.context.host.spawn(Box::pin(async move {
            wait(20).await;
            let mut setup = owned(conversation());
            setup.retry.approve_unsafe_replay = Some(Callback { id: 1, hook: Rc::new(()) });
            let resumed = resume(&resuming, &killed, setup).await;
            kept.borrow_mut().push(resumed);
        }));
        let kept = outcomes.clone();
        all[2].open.context.host.spawn(Box::pin(async move {
            wait(turns).await;
            let begun = start(&beginning, owned(conversation()), "second").await;
            kept.borrow_mut().push(begun);
        }));
        world.pass(3_000);
        let outcomes = outcomes.take();
        let codes: Vec<_> = outcomes.iter().filter_map(|run| run.as_ref().err().map(|error| error.code)).collect();
        assert_eq!((outcomes.len(), codes), (2, vec![ErrorCode::Busy]), "{turns}");
    }
}

#[test]
fn r22_r23_an_interrupted_run_is_not_resumed_while_another_one_is_in_its_conversation() {
    for has_locks in [true, false] {
        let (world, data, service) = (World::new(has_locks), MemoryStore::default(), service());
        let all = [1, 2, 3].map(|number| Process::new(&world, &data, number));
        let [one, two, three] = all.each_ref().map(|process| opened(&world, process, &conversation()));
        let killed = world.run(start(&one, owned(conversation()), "first")).unwrap();
        all[0].kill();
        world.pass(60_000);
        let live = world.run(start(&two, owned(conversation()), "second")).unwrap();
        let again = world.run(resume(&three, &killed.id, owned(conversation()))).map(drop);
        assert_eq!(again.unwrap_err().code, ErrorCode::Busy);
        assert_eq!(drive(&all[1], &live, &service).status, RunStatus::Finished);
        let resumed = world.run(resume(&three, &killed.id, owned(conversation()))).unwrap();
        // Its own request may have arrived.
        assert_eq!(drive(&all[2], &resumed, &service).error.unwrap().code, ErrorCode::ReplayUnsafe);
        assert_eq!(questions(&service), ["user: second"]);
    }
}

#[test]
fn r22_r60_a_chain_of_responses_has_runs_beside_each_other() {
    let (world, data, service) = (World::new(false), MemoryStore::default(), service());
    let both = [1, 2].map(|number| Process::new(&world, &data, number));
    let [one, two] = both.each_ref().map(|process| opened(&world, process, &chain()));
    let first = world.run(start(&one, owned(chain()), "first")).unwrap();
    let second = world.run(start(&two, owned(chain()), "second")).unwrap();
    assert_eq!(drive(&both[0], &first, &service).status, RunStatus::Finished);
    assert_eq!(drive(&both[1], &second, &service).status, RunStatus::Finished);
}

#[test]
fn r22_r60_a_lease_that_a_process_left_behind_does_not_exclude_its_next_run() {
    let (world, data, service) = (World::new(false), MemoryStore::default(), service());
    let is_down = Rc::new(Cell::new(false));
    let fault = {
        let is_down = is_down.clone();
        move || is_down.get().then_some(Fault::Refused)
    };
    let process = Process::with_faults(&world, &data, 1, Box::new(fault));
    let session = opened(&world, &process, &conversation());
    let first = world.run(start(&session, owned(conversation()), "first")).unwrap();
    is_down.set(true);
    world.run(first.abandon_saves());
    world.pass(100);
    is_down.set(false);
    let lease = session.log.borrow().head.runs[0].lease_until;
    assert!(lease > process.open.context.now(), "the lease was left behind");
    let second = world.run(start(&session, owned(conversation()), "second")).unwrap();
    assert_eq!(drive(&process, &second, &service).status, RunStatus::Finished);
}

#[test]
fn r22_r29_an_approval_waits_while_another_run_is_in_the_conversation() {
    let asks = || {
        let mut setup = owned(conversation());
        setup.tool_settings.insert("look".into(), ToolSettings { needs_approval: true, ..ToolSettings::default() });
        setup
    };
    for has_locks in [true, false] {
        let (world, data, service) = (World::new(has_locks), MemoryStore::default(), service());
        let both = [1, 2].map(|number| Process::new(&world, &data, number));
        let [one, two] = both.each_ref().map(|process| opened(&world, process, &conversation()));
        let waiting = world.run(start(&one, asks(), "first")).unwrap();
        assert_eq!(drive(&both[0], &waiting, &service).status, RunStatus::WaitingApproval);
        let call = waiting.machine.borrow().approvals()[0].invocation.clone();
        let live = world.run(start(&two, asks(), "second")).unwrap();
        let decided = world.run(waiting.decide(call, ApprovalDecision::Approve));
        assert_eq!(decided.unwrap_err().code, ErrorCode::Busy, "{has_locks}");
        assert!(both[0].heard.borrow().ran.is_empty());
        drop(live);
    }
}

#[test]
fn r22_r60_a_run_that_was_cut_off_for_longer_than_its_lease_gives_way_to_the_one_that_began() {
    for (other_begins, is_noticed_first) in [(true, true), (true, false), (false, true)] {
        let (world, data, service) = (World::new(false), MemoryStore::default(), service());
        let is_down = Rc::new(Cell::new(false));
        let fault = {
            let is_down = is_down.clone();
            move || is_down.get().then_some(Fault::Refused)
        };
        let both = [Process::with_faults(&world, &data, 1, Box::new(fault)), Process::new(&world, &data, 2)];
        let [one, two] = both.each_ref().map(|process| opened(&world, process, &conversation()));
        let first = world.run(start(&one, owned(conversation()), "first")).unwrap();
        let effect = first.machine.borrow().effects()[0].id.clone();
        is_down.set(true);
        world.pass(60_000);
        let second = other_begins.then(|| world.run(start(&two, owned(conversation()), "second")).unwrap());
        is_down.set(false);
        if is_noticed_first {
            world.pass(10_000);
        } else {
            // What it sent before was refused. It would send it again.
            let busy = EffectReply::Response { status: 429, headers: Vec::new(), body: b"{}".to_vec() };
            let _ = world.run(first.answer(effect, busy));
        }
        let Some(second) = second else {
            assert_eq!(drive(&both[0], &first, &service).status, RunStatus::Finished);
            continue;
        };
        assert!(first.machine.borrow().status().is_over(), "{is_noticed_first}");
        let lost = drive(&both[0], &first, &service);
        assert_eq!((lost.status, lost.error.unwrap().code), (RunStatus::Failed, ErrorCode::Conflict));
        assert!(both[0].heard.borrow().asked.is_empty());
        assert_eq!(drive(&both[1], &second, &service).status, RunStatus::Finished);
        assert_eq!(questions(&service), ["user: second"]);
    }
}

/// A conversation in which the model answers the question "first" with three calls.
fn service_with_calls() -> RefCell<Service> {
    let calls = || (1..=3).map(|number| (format!("call_{number}"), "look".to_owned())).collect();
    let script = move |items: &[Value]| {
        let is_first = words_of(items).last().is_some_and(|last| last == "user: first");
        if is_first { Err(calls()) } else { Ok("done".to_owned()) }
    };
    RefCell::new(Service::new(script).with_conversation("conv_1"))
}

/// Lets the service answer the run's request, and starts the first two of the tools. Returns the effects of all tools.
fn answered_with_calls(world: &World, run: &Rc<RunDriver>, service: &RefCell<Service>) -> Vec<String> {
    let effect = run.machine.borrow().effects()[0].clone();
    let EffectKind::CallModel { body, .. } = &effect.kind else { panic!("{effect:?}") };
    let body: Value = serde_json::from_slice(body).unwrap();
    let Answer::Status(status, _, said) = service.borrow_mut().answer(&body) else { panic!("no answer") };
    world
        .run(run.answer(effect.id, EffectReply::Response { status, headers: Vec::new(), body: said.into_bytes() }))
        .unwrap();
    let tools: Vec<String> = run.machine.borrow().effects().iter().map(|effect| effect.id.clone()).collect();
    for effect in &tools[..2] {
        world.run(run.answer(effect.clone(), EffectReply::Started)).unwrap();
    }
    tools
}

fn gave(number: usize) -> EffectReply {
    let content = Json::parse(&serde_json::json!(format!("{number} gave")).to_string()).unwrap();
    EffectReply::ToolResult { content, is_error: false }
}

#[test]
fn r22_r60_what_tools_return_after_the_lease_of_their_run_is_stored_although_another_run_began() {
    // A conversation has no mode "run".
    for mode in [Persistence::Call, Persistence::Result] {
        for (is_noticed_first, flush_ms) in [(true, 0), (false, 0), (true, 5_000), (false, 5_000), (false, 120_000)] {
            let (world, data, service) = (World::new(false), MemoryStore::default(), service_with_calls());
            let is_down = Rc::new(Cell::new(false));
            let fault = {
                let is_down = is_down.clone();
                move || is_down.get().then_some(Fault::Refused)
            };
            let both = [Process::with_faults(&world, &data, 1, Box::new(fault)), Process::new(&world, &data, 2)];
            let [one, two] = both.each_ref().map(|process| opened(&world, process, &conversation()));
            one.flush_ms.set(flush_ms);
            let setup = || RunSetup { persistence: mode, ..owned(conversation()) };
            let first = world.run(start(&one, setup(), "first")).unwrap();
            let tools = answered_with_calls(&world, &first, &service);
            is_down.set(true);
            world.pass(60_000);
            let second = world.run(start(&two, setup(), "second")).unwrap();
            is_down.set(false);
            if is_noticed_first {
                world.pass(10_000);
                // Nothing else begins in it.
                let begun = world.run(first.answer(tools[2].clone(), EffectReply::Started));
                assert_eq!(begun.unwrap_err().code, ErrorCode::Conflict);
            }
            world.run(first.answer(tools[0].clone(), gave(1))).unwrap();
            assert!(!first.machine.borrow().status().is_over());
            world.run(first.answer(tools[1].clone(), gave(2))).unwrap();
            let lost = drive(&both[0], &first, &service);
            assert_eq!((lost.status, lost.error.unwrap().code), (RunStatus::Failed, ErrorCode::Conflict));
            assert!(both[0].heard.borrow().asked.is_empty(), "{mode:?} {is_noticed_first} {flush_ms}");
            // Its request closed the calls.
            assert_eq!(drive(&both[1], &second, &service).status, RunStatus::Finished);
            // Its lease does not exclude anybody.
            let resumed = world.run(resume(&two, &first.id, setup())).unwrap();
            let results: Vec<_> = {
                let machine = resumed.machine.borrow();
                let calls = machine.live().invocations();
                let results = calls[..2].iter().filter_map(|call| call.result.as_ref());
                results.map(|result| result.content.as_str().to_owned()).collect()
            };
            assert_eq!(results, [r#""1 gave""#, r#""2 gave""#], "{mode:?} {is_noticed_first} {flush_ms}");
            // The third tool does not run for nothing.
            let outcome = drive(&both[1], &resumed, &service);
            assert_eq!((outcome.status, outcome.error.unwrap().code), (RunStatus::Failed, ErrorCode::Conflict));
            assert!(both[1].heard.borrow().ran.is_empty());
        }
    }
}

#[test]
fn r22_r81_an_answer_of_a_chain_meanwhile_supersedes_a_summary_in_any_dialect() {
    for dialect in [CHAT, RESPONSES] {
        let (world, data, service) = (World::new(false), MemoryStore::default(), Rc::new(service()));
        let process = Rc::new(Process::new(&world, &data, 1));
        let session = opened(&world, &process, &chain());
        let run = world.run(start(&session, owned(chain()), "first")).unwrap();
        assert_eq!(drive(&process, &run, &service).status, RunStatus::Finished);
        let meanwhile: Meanwhile = {
            let session = session.clone();
            Box::new(move || {
                let (process, session, service) = (process.clone(), session.clone(), service.clone());
                Box::pin(async move {
                    let run = start(&session, owned(chain()), "second").await.unwrap();
                    process.drive(&run, &|body: &Value| service.borrow_mut().answer(body)).await;
                })
            })
        };
        let summarize = Callback { id: 0, hook: Rc::new(meanwhile) };
        let provider = Some(provider(dialect, false));
        let request =
            CompactionRequest { mode: CompactionMode::Input, is_forced: true, tokens: None, summarize, provider };
        assert_eq!(world.run(compact(&session, Rc::new(request))), Ok(CompactionOutcome::Superseded));
        assert!(session.log.borrow().history.compaction().is_none());
    }
}
