//! R70 where a service keeps what precedes the messages of a request: it is not compared, and the answer has no record
//! of it.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::*;
use rethread::finding::Finding;
use rethread::json::Json;
use std::rc::Rc;

fn reasoning(number: usize) -> Value {
    json!({ "type": "reasoning", "id": format!("rs_{number}"), "summary": [], "encrypted_content": format!("sig-{number}") })
}

/// A request to a model that binds reasoning.
fn binding(id: &str, owner: StateOwner) -> RunSetup {
    let mut setup = owned(id, owner);
    setup.provider.params = Json::parse(r#"{"model":"gpt-6.2-sol"}"#).unwrap();
    setup
}

/// A request after the application's filter, which changes nothing.
fn filtered(id: &str, owner: StateOwner) -> RunSetup {
    RunSetup { input_filter: Some(Callback { id: 1, hook: Rc::new(()) }), ..binding(id, owner) }
}

/// A turn in which each answer has reasoning.
fn think(host: &mut Host<'_>, service: &mut Service, setup: RunSetup, first: usize) -> RunOutcome {
    let mut number = first;
    host.filter = Box::new(Ok);
    let outcome = host.ask(setup, "Go", |body| {
        service.extra_output = vec![reasoning(number)];
        number += 1;
        service.answer(body)
    });
    assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
    outcome
}

fn changes(report: &[Finding]) -> Vec<&Finding> {
    report.iter().filter(|finding| finding.changed_by.is_some()).collect()
}

/// The reasoning in a request.
fn reasoning_in(request: &Value) -> Vec<&str> {
    request["input"].as_array().unwrap().iter().filter_map(|item| item["encrypted_content"].as_str()).collect()
}

#[test]
fn r70_what_a_service_keeps_before_reasoning_is_not_compared() {
    for setup in [binding as fn(&str, StateOwner) -> RunSetup, filtered] {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let mut service = Service::new(rounds(1));
        think(&mut host, &mut service, setup("r1", automatic()), 0);
        // The service forgets the answers of this turn: they go to it again, after what it keeps.
        service.without_ids = true;
        let outcome = think(&mut host, &mut service, setup("r2", automatic()), 2);
        assert_eq!(changes(&outcome.report), [] as [&Finding; 0]);
        assert_eq!(service.requests[3]["previous_response_id"], "resp_2");
        assert_eq!(reasoning_in(&service.requests[3]), ["sig-2"]);
        // Other instructions change nothing of what it compares with.
        service.without_ids = false;
        let longer = RunSetup { instructions: Some("Be long.".into()), ..setup("r3", automatic()) };
        let outcome = think(&mut host, &mut service, longer, 4);
        assert_eq!(changes(&outcome.report), [] as [&Finding; 0]);
        assert_eq!(reasoning_in(&service.requests[4]), ["sig-2", "sig-3"]);
    }
}

#[test]
fn r70_reasoning_that_was_made_at_a_service_goes_back_when_the_session_sends_all() {
    for owner in [conversation(), automatic()] {
        for setup in [binding as fn(&str, StateOwner) -> RunSetup, filtered] {
            let store = MemoryStore::default();
            let mut host = Host::open(&store, "s", "h");
            let mut service = Service::new(rounds(1)).with_conversation("conv_1");
            think(&mut host, &mut service, setup("r1", owner.clone()), 0);
            think(&mut host, &mut service, setup("r2", owner.clone()), 2);
            let outcome = think(&mut host, &mut service, setup("r3", StateOwner::Session), 4);
            assert_eq!(changes(&outcome.report), [] as [&Finding; 0]);
            let requests = &service.requests;
            assert_eq!(reasoning_in(&requests[4]), ["sig-0", "sig-1", "sig-2", "sig-3"]);
            // From there on it is compared.
            let longer = RunSetup { instructions: Some("Be long.".into()), ..setup("r4", StateOwner::Session) };
            let outcome = think(&mut host, &mut service, longer, 6);
            let left_out = changes(&outcome.report);
            assert!(!left_out.is_empty() && left_out.iter().all(|found| found.code.as_str() == "reasoning_unbound"));
            assert_eq!(reasoning_in(&service.requests[6]), ["sig-0", "sig-1", "sig-2", "sig-3"]);
        }
    }
}
