//! R22, R23 and R26: runs of one session that close each other's calls.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::scripted_host::*;
use super::stateful_service::{Service, rounds, words_of};
use super::{ask, automatic, conversation, needs_approval, owned};
use rethread::error::ErrorCode;
use rethread::owner::StateOwner;
use rethread::run::{ApprovalDecision, OnStop, Persistence, RunSetup, RunStatus};
use rethread::store::MemoryStore;
use serde_json::json;

#[test]
fn r23_results_of_calls_that_another_run_closed_are_not_sent() {
    let store = MemoryStore::default();
    let mut service = Service::new(rounds(1)).with_conversation("conv_1");
    let waits = || needs_approval(owned("r1", conversation()));
    let waiting = ask(&mut Host::open(&store, "s", "h"), &mut service, waits(), "One");
    assert_eq!(waiting.status, RunStatus::WaitingApproval);
    // Another run has to close the call: the service refuses a request that leaves it open.
    let mut second = Host::open(&store, "s", "h2");
    assert_eq!(ask(&mut second, &mut service, owned("r2", conversation()), "Two").status, RunStatus::Finished);
    let requests = service.requests.len();
    let mut third = Host::open(&store, "s", "h3");
    third.resume(waits()).unwrap();
    assert_eq!(third.decide("call_1", ApprovalDecision::Approve).unwrap_err().code, ErrorCode::Conflict);
    third.decide("call_1", ApprovalDecision::Reject(None)).unwrap();
    let outcome = third.drive(|body| service.answer(body)).unwrap();
    assert_eq!(outcome.error.unwrap().code, ErrorCode::Conflict);
    assert_eq!(service.requests.len(), requests);
    // The tools of an interrupted run do not run either.
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let mut service = Service::new(rounds(1)).with_conversation("conv_1");
    host.writes_left = Some(2);
    host.start(owned("r1", conversation()), "One").unwrap();
    assert!(host.drive(|body| service.answer(body)).is_none());
    ask(&mut Host::open(&store, "s", "h2"), &mut service, owned("r2", conversation()), "Two");
    let requests = service.requests.len();
    let mut third = Host::open(&store, "s", "h3");
    third.resume(owned("r1", conversation())).unwrap();
    let outcome = third.drive(|body| service.answer(body)).unwrap();
    assert_eq!(outcome.error.unwrap().code, ErrorCode::Conflict);
    assert_eq!((host.ran.len() + third.ran.len(), service.requests.len()), (0, requests));
    // A chain has branches: there the run continues where it was.
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let mut service = Service::new(rounds(1));
    let mut attempt = 0;
    let setup_for = |id: &str| RunSetup { persistence: Persistence::Call, ..owned(id, automatic()) };
    host.ask(setup_for("r1"), "One", |body| {
        attempt += 1;
        if attempt == 1 { service.answer(body) } else { Answer::Status(400, Vec::new(), "{}".into()) }
    });
    ask(&mut host, &mut service, setup_for("r2"), "Two");
    let mut second = Host::open(&store, "s", "h2");
    second.resume(setup_for("r1")).unwrap();
    let outcome = second.drive(|body| service.answer(body)).unwrap();
    assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
}

#[test]
fn r22_r23_results_of_calls_that_another_run_closed_at_a_new_owner_are_not_sent() {
    let other = || StateOwner::Conversation { id: "conv_2".into() };
    let owners = [conversation(), automatic(), StateOwner::Session];
    for (first, second) in owners.into_iter().flat_map(|first| [(first.clone(), other()), (first, automatic())]) {
        let is_branch = first == second;
        let store = MemoryStore::default();
        let mut service = Service::new(rounds(1)).with_conversation("conv_1").with_conversation("conv_2");
        let waits = |owner: &StateOwner| {
            needs_approval(RunSetup { persistence: Persistence::Call, ..owned("r1", owner.clone()) })
        };
        let waiting = ask(&mut Host::open(&store, "s", "h"), &mut service, waits(&first), "One");
        assert_eq!(waiting.status, RunStatus::WaitingApproval);
        // Its request contains the question and the call, which it closes.
        let answered = ask(&mut Host::open(&store, "s", "h2"), &mut service, owned("r2", second.clone()), "Two");
        assert_eq!(answered.status, RunStatus::Finished, "{:?}", answered.error);
        let requests = service.requests.len();
        let mut host = Host::open(&store, "s", "h3");
        host.resume(waits(&second)).unwrap();
        let approved = host.decide("call_1", ApprovalDecision::Approve).map_err(|error| error.code);
        if is_branch {
            approved.unwrap();
        } else {
            assert_eq!(approved.unwrap_err(), ErrorCode::Conflict, "{first:?} to {second:?}");
            host.decide("call_1", ApprovalDecision::Reject(None)).unwrap();
        }
        let outcome = host.drive(|body| service.answer(body)).unwrap();
        assert_eq!(outcome.error.map(|error| error.code), (!is_branch).then_some(ErrorCode::Conflict));
        assert_eq!(service.requests.len(), requests + usize::from(is_branch), "{first:?} to {second:?}");
    }
}

#[test]
fn r23_results_of_a_waiting_run_precede_another_runs_calls_with_the_same_id() {
    let store = MemoryStore::default();
    let mut service = Service::new(rounds(1));
    let waits = || needs_approval(owned("r1", automatic()));
    ask(&mut Host::open(&store, "s", "h"), &mut service, waits(), "One");
    // This one gives its call the same id, and its items others.
    let mut elsewhere = Service::new(|items| match items.last() {
        Some(item) if item["type"] == "function_call_output" => Ok("done".into()),
        _ => Err(vec![("call_1".into(), "look".into())]),
    });
    elsewhere.accept(&json!({ "input": [] })).unwrap();
    ask(&mut Host::open(&store, "s", "h2"), &mut elsewhere, owned("r2", StateOwner::Session), "Two");
    let mut third = Host::open(&store, "s", "h3");
    third.resume(waits()).unwrap();
    third.decide("call_1", ApprovalDecision::Approve).unwrap();
    let outcome = third.drive(|body| service.answer(body)).unwrap();
    assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
    let sent = service.sent(1);
    assert!(sent[0].starts_with("output call_1") && sent[1] == "user: Two", "{sent:?}");
    assert_eq!(sent.iter().filter(|item| item.contains("call_1")).count(), 3, "{sent:?}");
}

#[test]
fn r26_a_call_of_a_failed_run_is_closed_once() {
    for on_stop in [OnStop::Discard, OnStop::Keep] {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let mut service = Service::new(rounds(1)).with_conversation("conv_1");
        let setup_for = |id: &str| RunSetup { on_stop, ..owned(id, conversation()) };
        let mut attempt = 0;
        host.ask(setup_for("r1"), "One", |body| {
            attempt += 1;
            if attempt == 1 { service.answer(body) } else { Answer::Status(400, Vec::new(), "{}".into()) }
        });
        // The request that closes the call is refused, too, so the next one closes it again.
        host.ask(setup_for("r2"), "Two", |_| Answer::Status(400, Vec::new(), "{}".into()));
        for (run, input) in [("r3", "Three"), ("r4", "Four")] {
            let outcome = ask(&mut host, &mut service, setup_for(run), input);
            assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
        }
        let items = words_of(&service.conversations["conv_1"]);
        assert_eq!(items.iter().filter(|item| item.starts_with("output call_1: ")).count(), 1, "{items:?}");
    }
}
