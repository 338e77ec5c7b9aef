//! `onLost: "fail"` of an owner (R25, R77): a chain that the service does not continue fails the run, and is begun again
//! only by the application.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::scripted_host::*;
use super::{automatic, owned};
use crate::stateful_service::{self, Service};
use crate::thread_service::{self, ThreadService, words_of};
use rethread::error::{Error, ErrorCode};
use rethread::json::Json;
use rethread::owner::{OnLost, StateOwner};
use rethread::run::{RunOutcome, RunSetup, RunStatus};
use rethread::store::MemoryStore;

fn failing(previous: Option<&str>) -> StateOwner {
    StateOwner::Response { previous: previous.map(Into::into), on_lost: OnLost::Fail }
}

fn threaded(id: &str, owner: StateOwner) -> RunSetup {
    RunSetup { owner, ..setup(id, CLAUDE, false) }
}

/// The error of a run that fails with `chain_lost`, and sent nothing again.
fn lost(outcome: RunOutcome, provider_code: Option<&str>) -> Error {
    assert!(!outcome.report.iter().any(|finding| finding.code.as_str() == "chain_restarted"));
    assert_eq!(outcome.status, RunStatus::Failed);
    let error = outcome.error.unwrap();
    assert_eq!(error.code, ErrorCode::ChainLost, "{error}");
    let code = error.details.as_ref().and_then(|details| details.view().text("providerCode"));
    assert_eq!(code.as_deref(), provider_code);
    error
}

#[test]
fn r25_r77_a_thread_that_is_lost_fails_the_run_if_the_application_says_so() {
    for code in ["thread_not_found", "thread_already_continued", "thread_fingerprint_mismatch"] {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let mut service = ThreadService::new(thread_service::rounds(1));
        host.ask(threaded("r1", failing(None)), "One", |body| service.answer(body));
        let mut setup = threaded("r2", failing(None));
        match code {
            "thread_not_found" => service.threads.clear(),
            "thread_already_continued" => service.refuses = Some((400, code)),
            _ => setup.provider.params = Json::parse(r#"{"model":"m-2"}"#).unwrap(),
        }
        let sent = service.requests.len();
        let outcome = host.ask(setup.clone(), "Two", |body| service.answer(body));
        assert_eq!((service.refused.as_slice(), service.requests.len()), (&[code][..], sent));
        let error = lost(outcome, Some(code));
        assert!(error.message.contains("`owner: { kind: \"response\", auto: true }`"), "{}", error.message);
        // The application lets the chain begin again, and the run goes on.
        service.refuses = None;
        setup.owner = automatic();
        host.resume(setup).unwrap();
        let outcome = host.drive(|body| service.answer(body)).unwrap();
        assert_eq!(outcome.status, RunStatus::Finished, "{code}: {:?}", outcome.error);
        let words = words_of(service.newest());
        for question in ["user: One", "user: Two"] {
            assert_eq!(words.iter().filter(|word| *word == question).count(), 1, "{code}: {words:?}");
        }
    }
}

#[test]
fn r25_r77_other_instructions_fail_the_run_before_anything_is_sent() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let mut service = ThreadService::new(thread_service::rounds(0));
    host.ask(threaded("r1", failing(None)), "One", |body| service.answer(body));
    let brief = |owner| RunSetup { instructions: Some("Be long.".into()), ..threaded("r2", owner) };
    let outcome = host.ask(brief(failing(None)), "Two", |body| service.answer(body));
    let error = lost(outcome, None);
    assert!(error.message.contains("instructions, tools and parameters"), "{}", error.message);
    assert_eq!((service.requests.len(), service.refused.len()), (1, 0));
    // With those of the thread the run continues it.
    host.resume(threaded("r2", failing(None))).unwrap();
    let outcome = host.drive(|body| service.answer(body)).unwrap();
    assert_eq!((outcome.status, service.chain()), (RunStatus::Finished, vec!["create", "msg_1"]));
}

#[test]
fn r25_a_chain_of_responses_that_is_lost_fails_the_run_if_the_application_says_so() {
    for previous in [None, Some("resp_given")] {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let mut service = Service::new(stateful_service::rounds(0)).with_response("resp_given");
        host.ask(owned("r1", failing(previous)), "One", |body| service.answer(body));
        service.responses.clear();
        let outcome = host.ask(owned("r2", failing(previous)), "Two", |body| service.answer(body));
        let error = lost(outcome, Some("previous_response_not_found"));
        let advice = if previous.is_some() { "the id of another response" } else { "auto: true" };
        assert!(error.message.contains(advice), "{}", error.message);
        assert_eq!(service.requests.len(), 1);
    }
}

#[test]
fn r27_a_response_that_another_request_continues_is_not_lost() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let mut service = ThreadService::new(thread_service::rounds(0));
    host.ask(threaded("r1", failing(None)), "One", |body| service.answer(body));
    service.threads.get_mut("msg_1").unwrap().in_flight = 9;
    let outcome = host.ask(threaded("r2", failing(None)), "Two", |body| service.answer(body));
    let error = outcome.error.unwrap();
    assert_eq!((error.code, service.requests.len()), (ErrorCode::ModelError, 1));
    assert!(error.message.contains("resume the run when that one has ended"), "{}", error.message);
    service.threads.get_mut("msg_1").unwrap().in_flight = 0;
    host.resume(threaded("r2", failing(None))).unwrap();
    let outcome = host.drive(|body| service.answer(body)).unwrap();
    assert_eq!((outcome.status, service.requests.len()), (RunStatus::Finished, 2));
}
