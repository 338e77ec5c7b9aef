//! What a part of an answer that Google pauses is to other requests, services and builds.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::interaction_hops::{pausing, run, tokens, variants};
use super::scripted_host::*;
use crate::interaction_service::InteractionService;
use rethread::error::ErrorCode;
use rethread::json::Json;
use rethread::owner::StateOwner;
use rethread::run::{OnStop, Persistence, RunSetup, RunStatus};
use rethread::store::MemoryStore;

/// Drives a run until its second request, and kills it there.
fn killed_in_a_hop(host: &mut Host<'_>, service: &mut InteractionService, setup: RunSetup) {
    host.start(setup, "One").unwrap();
    let mut calls = 0;
    let ended = host.drive(|body| {
        calls += 1;
        if calls == 2 { Answer::Hang } else { service.answer(body) }
    });
    assert!(ended.is_none());
}

#[test]
fn r67_r77_a_part_has_no_mark_by_which_another_request_or_an_older_build_continues_it() {
    for variant in variants() {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let mut service = pausing(0, 2, variant.1);
        killed_in_a_hop(&mut host, &mut service, run("r1", &variant));
        let is_marked = |host: &Host<'_>| -> Vec<bool> {
            let log = host.log.borrow();
            let answers = log.history.messages().iter().filter_map(|message| message.answer.as_ref());
            answers.map(|answer| answer.service_mark.is_some()).collect()
        };
        let in_history = if variant.2 == Persistence::Run { 0 } else { 1 };
        assert_eq!(is_marked(&host), vec![false; in_history], "{variant:?}");
        let mut host = Host::open(&store, "s", "h2");
        host.resume(run("r1", &variant)).unwrap();
        assert_eq!(host.drive(|body| service.answer(body)).unwrap().status, RunStatus::Finished);
        // The whole answer is the link.
        assert_eq!(is_marked(&host), [false, false, variant.0 != StateOwner::Session], "{variant:?}");
    }
}

#[test]
fn r68_r77_a_token_goes_to_the_service_and_the_model_that_gave_it() {
    for variant in variants() {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let mut service = pausing(0, 1, variant.1);
        killed_in_a_hop(&mut host, &mut service, run("r1", &variant));
        let mut elsewhere = run("r1", &variant);
        elsewhere.provider.url = "https://gateway.example/v1beta/interactions".into();
        let mut other_model = run("r1", &variant);
        other_model.provider.params = Json::parse(r#"{"model":"n"}"#).unwrap();
        for (at, setup) in [elsewhere, other_model].into_iter().enumerate() {
            let mut host = Host::open(&store, "s", &format!("other{at}"));
            // It is not resumed, so it is not ended, either, with what has arrived.
            let refused = host.resume(RunSetup { on_stop: OnStop::Keep, ..setup }).err();
            assert_eq!(refused.map(|error| error.code), Some(ErrorCode::ConfigInvalid), "{variant:?}");
        }
        let mut host = Host::open(&store, "s", "last");
        host.resume(run("r1", &variant)).unwrap();
        let outcome = host.drive(|body| service.answer(body)).unwrap();
        assert_eq!(outcome.text.decode(), "part 1 of answer 1, answer 1 after 0");
        assert_eq!(tokens(&service), ["none", "token_1"]);
    }
}
