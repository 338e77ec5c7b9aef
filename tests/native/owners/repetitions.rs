//! R27: a resumed run repeats a request to a conversation, if the conversation refused it.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::scripted_host::*;
use super::spy_store::{Fault, Spy};
use super::stateful_service::{Service, rounds, words_of};
use super::{ask, conversation, owned};
use rethread::error::ErrorCode;
use rethread::run::{Persistence, RunOutcome, RunStatus};
use rethread::store::MemoryStore;
use serde_json::Value;

fn refused(status: u16) -> Answer {
    Answer::Status(status, Vec::new(), "{}".into())
}

/// Fails a run with this answer to a request, which follows so many rounds of tools.
fn fail(store: &MemoryStore, service: &mut Service, rounds: usize, answer: Answer) {
    let (mut requests, mut answer) = (0, Some(answer));
    let mut host = Host::open(store, "s", "h");
    let failed = host.ask(owned("r1", conversation()), "Go", |body| {
        requests += 1;
        if requests <= rounds { service.answer(body) } else { answer.take().expect("no request after the failure") }
    });
    assert_eq!(failed.status, RunStatus::Failed);
}

/// Resumes the run, in a process that dies after so many writes; `None` if it died.
fn resume(
    store: &MemoryStore,
    host: &str,
    writes: Option<usize>,
    model: impl FnMut(&Value) -> Answer,
) -> Option<RunOutcome> {
    let mut host = Host::open(store, "s", host);
    // The clock of a process that dies is ahead of the others.
    host.clock.advance(writes.map_or(0, |_| 60_000));
    host.resume(owned("r1", conversation())).unwrap();
    host.writes_left = writes;
    host.drive(model)
}

fn questions(service: &Service) -> usize {
    words_of(&service.conversations["conv_1"]).iter().filter(|item| *item == "user: Go").count()
}

#[test]
fn r27_a_resumed_run_repeats_what_a_conversation_refused() {
    for status in [400, 401, 403, 404, 422] {
        let store = MemoryStore::default();
        let mut service = Service::new(rounds(1)).with_conversation("conv_1");
        fail(&store, &mut service, 0, refused(status));
        let outcome = resume(&store, "h2", None, |body| service.answer(body)).unwrap();
        assert_eq!(outcome.status, RunStatus::Finished, "{status}: {:?}", outcome.error);
        assert_eq!(questions(&service), 1);
        // The run goes on as any other.
        let next = ask(&mut Host::open(&store, "s", "h3"), &mut service, owned("r2", conversation()), "Two");
        assert_eq!(next.status, RunStatus::Finished, "{:?}", next.error);
    }
}

#[test]
fn r27_a_resumed_run_does_not_repeat_what_a_conversation_may_have() {
    for answer in [refused(500), refused(503), Answer::Unreachable] {
        let store = MemoryStore::default();
        let mut service = Service::new(rounds(1)).with_conversation("conv_1");
        fail(&store, &mut service, 0, answer);
        for host in ["h2", "h3"] {
            let outcome = resume(&store, host, None, |_| panic!("sent again")).unwrap();
            assert_eq!(outcome.error.unwrap().code, ErrorCode::ReplayUnsafe);
        }
    }
}

#[test]
fn r27_so_26_a_resumed_run_that_dies_repeats_nothing_without_approval() {
    for calls in [0, 1] {
        let mut codes = Vec::new();
        for writes in 0..4 {
            let store = MemoryStore::default();
            let mut service = Service::new(rounds(calls)).with_conversation("conv_1");
            fail(&store, &mut service, calls, refused(401));
            if resume(&store, "h2", Some(writes), |body| service.answer(body)).is_some() {
                break;
            }
            let outcome = resume(&store, "h3", None, |body| service.answer(body)).unwrap();
            let is_finished = outcome.error.is_none();
            codes.push(outcome.error.map(|error| error.code));
            let items = words_of(&service.conversations["conv_1"]);
            let count = |start: &str| items.iter().filter(|item| item.starts_with(start)).count();
            let (questions, outputs) = (count("user: Go"), count("output"));
            assert!(questions <= 1 && outputs <= calls, "{writes} writes: {items:?}");
            assert!(!is_finished || (questions, outputs) == (1, calls), "{writes} writes: {items:?}");
        }
        // It died before the journal said that the request is repeated, or when it may have been sent.
        assert_eq!(codes, [None, Some(ErrorCode::ReplayUnsafe)], "{calls} calls");
    }
}

#[test]
fn r27_an_answer_that_could_not_be_stored_is_not_asked_for_again() {
    let data = MemoryStore::default();
    let store = Spy::new(&data);
    let mut service = Service::new(rounds(1)).with_conversation("conv_1");
    let mut host = Host::open(&store, "s", "h");
    host.start(owned("r1", conversation()), "Go").unwrap();
    let waiting = host.drive(|body| {
        store.faults.borrow_mut().push(Some(Fault::Refuses(ErrorCode::StoreError)));
        service.answer(body)
    });
    assert!(waiting.is_none());
    assert_eq!(host.cancel().unwrap().status, RunStatus::Cancelled);
    host.write();
    // A cancel ends a run, so nothing is sent again.
    let error = Host::open(&data, "s", "h2").resume(owned("r1", conversation())).unwrap_err();
    assert_eq!(error.code, ErrorCode::Conflict);
}

#[test]
fn r27_results_that_a_conversation_may_have_are_not_sent_again_without_approval() {
    for persistence in [Persistence::Run, Persistence::Call, Persistence::Result] {
        let store = MemoryStore::default();
        let mut service = Service::new(rounds(1)).with_conversation("conv_1");
        let mut setup = owned("r1", conversation());
        setup.persistence = persistence;
        let mut host = Host::open(&store, "s", "h");
        host.start(setup.clone(), "Go").unwrap();
        let mut requests = 0;
        let died = host.drive(|body| {
            requests += 1;
            let answer = service.answer(body);
            if requests == 2 { Answer::Hang } else { answer }
        });
        assert!(died.is_none() && requests == 2);
        let mut host = Host::open(&store, "s", "h2");
        host.clock.advance(60_000);
        host.resume(setup).unwrap();
        let outcome = host.drive(|body| panic!("sent again: {body}")).unwrap();
        assert_eq!(outcome.error.unwrap().code, ErrorCode::ReplayUnsafe, "{persistence:?}");
    }
}
