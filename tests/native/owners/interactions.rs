//! R22 to R27 and R77 with Gemini's interactions.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::automatic;
use super::scripted_host::*;
use crate::interaction_service::{InteractionService, rounds, words_of};
use crate::thread_service::ThreadService;
use rethread::error::ErrorCode;
use rethread::finding::{Finding, Severity};
use rethread::json::Json;
use rethread::message::Dialect;
use rethread::owner::{OnLost, StateOwner};
use rethread::provider::check_input_body;
use rethread::run::{Handoff, RunOutcome, RunSetup, RunStatus};
use rethread::store::MemoryStore;
use serde_json::{Value, json};

pub const INTERACTIONS: Dialect = Dialect::GeminiInteractions;

pub fn interacting(id: &str, owner: StateOwner) -> RunSetup {
    RunSetup { owner, ..setup(id, INTERACTIONS, false) }
}

fn given() -> StateOwner {
    StateOwner::response(Some("v1_given".into()))
}

fn failing() -> StateOwner {
    StateOwner::Response { previous: None, on_lost: OnLost::Fail }
}

pub fn ask(host: &mut Host<'_>, service: &mut InteractionService, setup: RunSetup, input: &str) -> RunOutcome {
    host.ask(setup, input, |body| service.answer(body))
}

/// As [`ask`], of a run that finishes.
pub fn finish(host: &mut Host<'_>, service: &mut InteractionService, setup: RunSetup, input: &str) -> RunOutcome {
    let outcome = ask(host, service, setup, input);
    assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
    outcome
}

pub fn restarts(outcome: &RunOutcome) -> usize {
    outcome.report.iter().filter(|finding| finding.code.as_str() == "chain_restarted").count()
}

/// What a session of its own would send next, in words: the whole history.
pub fn history_of(host: &mut Host<'_>) -> Vec<String> {
    let body: Value = serde_json::from_slice(&host.render(INTERACTIONS).body).unwrap();
    assert_eq!((&body["store"], &body["previous_interaction_id"]), (&json!(false), &Value::Null));
    words_of(body["input"].as_array().unwrap())
}

fn provider_code(outcome: &RunOutcome) -> Option<String> {
    let details = outcome.error.as_ref()?.details.as_ref()?;
    details.view().text("providerCode").map(|code| code.into_owned())
}

#[test]
fn r23_r77_interactions_begin_with_the_history_and_are_continued_with_what_is_new() {
    for stream in [false, true] {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let mut service = InteractionService::new(rounds(1));
        service.stream = stream;
        let interacting = |run: &str, owner| {
            let mut setup = interacting(run, owner);
            setup.provider.stream = stream;
            setup
        };
        finish(&mut host, &mut service, interacting("r0", StateOwner::Session), "Zero");
        for (run, input) in [("r1", "One"), ("r2", "Two")] {
            let outcome = finish(&mut host, &mut service, interacting(run, automatic()), input);
            assert!(outcome.response_id.is_some_and(|id| id.starts_with("v1_")));
            let is_note = |finding: &Finding| finding.severity == Severity::Info;
            assert!(outcome.report.iter().all(is_note), "{:?}", outcome.report);
        }
        assert_eq!(service.chain(), ["none", "none", "none", "v1_3", "v1_4", "v1_5"]);
        assert_eq!(service.sent(2).len(), 5, "{:?}", service.sent(2));
        assert_eq!(service.sent(3), ["result call_2: look gave {}"]);
        assert_eq!(service.sent(4), ["user: Two"]);
        assert_eq!(service.sent(5), ["result call_3: look gave {}"]);
        // Google keeps the steps and nothing else.
        let has_head = |request: &Value| request["system_instruction"] == "Be brief." && request["tools"].is_array();
        assert!(service.requests.iter().all(has_head));
        let stored: Vec<bool> = service.requests.iter().map(|request| request["store"] == true).collect();
        assert_eq!(stored, [false, false, true, true, true, true]);
        assert_eq!(history_of(&mut host), words_of(service.newest()));
        assert!(service.refused.is_empty(), "{:?}", service.refused);
    }
}

#[test]
fn r22_r77_each_request_to_an_interaction_has_every_system_message() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let mut service = InteractionService::new(rounds(1));
    finish(&mut host, &mut service, interacting("r1", automatic()), "One");
    let told = json!({ "messages": [{ "role": "system", "content": "Answer in French." }] });
    host.append(&told, CHAT).unwrap();
    for run in ["r2", "r3"] {
        finish(&mut host, &mut service, interacting(run, automatic()), run);
    }
    let instructions: Vec<&str> =
        service.requests.iter().map(|request| request["system_instruction"].as_str().unwrap()).collect();
    let (before, after) = ("Be brief.", "Be brief.\n\nAnswer in French.");
    assert_eq!(instructions, [before, before, after, after, after, after]);
    assert_eq!(service.chain(), ["none", "v1_1", "v1_2", "v1_3", "v1_4", "v1_5"]);
}

#[test]
fn r23_r77_a_reused_call_id_hides_no_result() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let script = |steps: &[Value]| match steps.last().unwrap()["type"].as_str() {
        Some("user_input") => Err(vec![("call_same".to_owned(), "look".to_owned())]),
        _ => Ok("done".to_owned()),
    };
    let mut service = InteractionService::new(script);
    for run in ["r1", "r2", "r3"] {
        finish(&mut host, &mut service, interacting(run, automatic()), run);
    }
    for request in [1, 3, 5] {
        assert_eq!(service.sent(request), ["result call_same: look gave {}"]);
    }
}

#[test]
fn r22_r77_interactions_have_no_conversation_id_and_no_second_owner() {
    let rejected = |owner: StateOwner, params: &str| {
        let store = MemoryStore::default();
        let mut setup = interacting("r1", owner);
        setup.provider.params = Json::parse(params).unwrap();
        Host::open(&store, "s", "h").start(setup, "One").unwrap_err().code
    };
    let conversation = StateOwner::Conversation { id: "conv_1".into() };
    assert_eq!(rejected(conversation, r#"{"model":"m"}"#), ErrorCode::ConfigInvalid);
    // No later request could continue what is not kept.
    assert_eq!(rejected(automatic(), r#"{"model":"m","store":false}"#), ErrorCode::ConfigInvalid);
    let params = r#"{"model":"m","previous_interaction_id":"v1_1"}"#;
    assert_eq!(rejected(automatic(), params), ErrorCode::StateOwnerConflict);
    assert_eq!(rejected(StateOwner::Session, params), ErrorCode::StateOwnerConflict);
    let body = Json::parse(r#"{"previous_interaction_id":"v1_1","input":"One"}"#).unwrap();
    assert_eq!(check_input_body(INTERACTIONS, body.view()).unwrap_err().code, ErrorCode::StateOwnerConflict);
}

#[test]
fn r25_r77_an_interaction_that_the_service_lost_begins_again_with_the_history_and_a_given_one_fails() {
    for has_turn_tokens in [false, true] {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let mut service = InteractionService::new(rounds(1));
        service.has_turn_tokens = has_turn_tokens;
        let code = if has_turn_tokens { "invalid_request" } else { "not_found" };
        finish(&mut host, &mut service, interacting("r1", automatic()), "One");
        service.interactions.clear();
        let outcome = finish(&mut host, &mut service, interacting("r2", automatic()), "Two");
        assert_eq!((restarts(&outcome), outcome.model_calls), (1, 2));
        assert_eq!(service.chain(), ["none", "v1_1", "none", "v1_3"]);
        assert_eq!(service.refused, [code]);
        assert!(service.requests.iter().all(|request| request["store"] == true));
        // The calls have their thoughts, whose signatures the service reads.
        assert!(service.requests[2]["input"].to_string().contains("\"signature\":\"c2ln1\""));
        assert_eq!(history_of(&mut host), words_of(service.newest()));
        // What came before an interaction that the application gave is not stored here.
        for owner in [given(), StateOwner::Response { previous: Some("v1_given".into()), on_lost: OnLost::Fail }] {
            let store = MemoryStore::default();
            let mut host = Host::open(&store, "s", "h");
            let mut service = InteractionService::new(rounds(0)).with_interaction("v1_given");
            service.has_turn_tokens = has_turn_tokens;
            finish(&mut host, &mut service, interacting("r1", owner.clone()), "One");
            assert_eq!((service.chain(), service.newest().len()), (vec!["v1_given"], 4));
            service.interactions.clear();
            let outcome = ask(&mut host, &mut service, interacting("r2", owner.clone()), "Two");
            let error = outcome.error.as_ref().unwrap();
            let is_fail = owner != given();
            assert_eq!(error.code, if is_fail { ErrorCode::ChainLost } else { ErrorCode::ModelError });
            assert!(error.message.contains("previousResponseId"), "{}", error.message);
            assert_eq!(provider_code(&outcome).as_deref(), Some(code));
        }
    }
}

#[test]
fn r25_r77_a_lost_interaction_fails_the_run_if_the_application_says_so() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let mut service = InteractionService::new(rounds(1));
    finish(&mut host, &mut service, interacting("r1", failing()), "One");
    service.interactions.clear();
    let outcome = ask(&mut host, &mut service, interacting("r2", failing()), "Two");
    assert_eq!(outcome.error.as_ref().unwrap().code, ErrorCode::ChainLost);
    assert_eq!((provider_code(&outcome).as_deref(), service.requests.len()), (Some("not_found"), 2));
    host.resume(interacting("r2", automatic())).unwrap();
    let outcome = host.drive(|body| service.answer(body)).unwrap();
    assert_eq!((outcome.status, restarts(&outcome)), (RunStatus::Finished, 1), "{:?}", outcome.error);
    assert_eq!(history_of(&mut host), words_of(service.newest()));
}

#[test]
fn r25_r77_what_a_request_does_not_name_is_not_lost() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let mut service = InteractionService::new(rounds(0));
    let missing = json!({ "message": "Requested entity was not found.", "code": "not_found" });
    service.refuses = Some((404, missing.clone()));
    let outcome = ask(&mut host, &mut service, interacting("r1", automatic()), "One");
    let error = outcome.error.as_ref().unwrap();
    assert_eq!((error.code, restarts(&outcome), service.refused.len()), (ErrorCode::ModelError, 0, 1));
    assert!(error.message.ends_with("Requested entity was not found."), "{}", error.message);
    // The request that continues one is sent once more, with the history: then the error is what it is.
    service.refuses = None;
    host.resume(interacting("r1", automatic())).unwrap();
    assert_eq!(host.drive(|body| service.answer(body)).unwrap().status, RunStatus::Finished);
    service.refuses = Some((404, missing));
    let outcome = ask(&mut host, &mut service, interacting("r2", automatic()), "Two");
    assert_eq!((restarts(&outcome), service.refused.len()), (1, 3));
    assert!(outcome.error.unwrap().message.ends_with("Requested entity was not found."));
    // What is named is not the interaction: the chain goes on.
    service.refuses = Some((404, json!({ "message": "models/m is not found", "code": "not_found" })));
    let outcome = ask(&mut host, &mut service, interacting("r3", automatic()), "Three");
    assert_eq!((restarts(&outcome), service.refused.len()), (0, 4));
}

#[test]
fn r25_r77_an_answer_without_an_id_is_no_link_of_the_chain() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let mut service = InteractionService::new(rounds(0));
    finish(&mut host, &mut service, interacting("r1", automatic()), "One");
    service.without_ids = true;
    for stream in [false, true] {
        service.stream = stream;
        let mut setup = interacting(if stream { "r3" } else { "r2" }, automatic());
        setup.provider.stream = stream;
        assert_eq!(finish(&mut host, &mut service, setup, if stream { "Three" } else { "Two" }).response_id, None);
    }
    service.without_ids = false;
    service.stream = false;
    finish(&mut host, &mut service, interacting("r4", automatic()), "Four");
    assert_eq!(service.chain(), ["none", "v1_1", "v1_1", "v1_1"]);
    assert_eq!(service.sent(3).len(), 5, "{:?}", service.sent(3));
    assert_eq!(history_of(&mut host), words_of(service.newest()));
}

#[test]
fn r23_r77_other_instructions_tools_and_agents_continue_the_interaction() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let mut service = InteractionService::new(rounds(1));
    host.handoff_of_tool = Box::new(|_| {
        let instructions = Some("You are the other one.".into());
        Some(Handoff { name: "other".into(), instructions, ..Handoff::default() })
    });
    let outcome = finish(&mut host, &mut service, interacting("r1", automatic()), "One");
    assert_eq!(restarts(&outcome), 0);
    assert_eq!(service.requests[1]["system_instruction"], "You are the other one.");
    host.handoff_of_tool = Box::new(|_| None);
    let mut changed = RunSetup { instructions: Some("Be long.".into()), ..interacting("r2", automatic()) };
    changed.tools.clear();
    let outcome = finish(&mut host, &mut service, changed, "Two");
    assert_eq!((restarts(&outcome), service.refused.len()), (0, 0));
    assert_eq!(service.requests[2]["system_instruction"], "Be long.");
    // The tools of the interaction before are not those of this one.
    assert_eq!(words_of(service.newest()).last().unwrap(), "model: I have no tools.");
    assert_eq!(service.chain(), ["none", "v1_1", "v1_2"]);
}

#[test]
fn r22_r77_a_switch_of_the_owner_or_the_dialect_sends_what_the_other_service_lacks() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let mut service = InteractionService::new(rounds(1)).with_interaction("v1_given");
    finish(&mut host, &mut service, interacting("r1", given()), "One");
    // Only the service has what came before.
    let outcome = finish(&mut host, &mut service, interacting("r2", automatic()), "Two");
    assert!(outcome.report.iter().any(|finding| finding.code.as_str() == "not_transferred"), "{:?}", outcome.report);
    assert_eq!(service.chain(), ["v1_given", "v1_1", "none", "v1_3"]);
    assert_eq!(service.sent(2).len(), 5, "{:?}", service.sent(2));
    let mut is_asked = false;
    let mut threads = ThreadService::new(move |_| {
        let was_asked = std::mem::replace(&mut is_asked, true);
        if was_asked { Ok("Elsewhere.".into()) } else { Err(vec![("toolu_1".into(), "look".into())]) }
    });
    let threaded = RunSetup { owner: automatic(), ..setup("r3", CLAUDE, false) };
    let outcome = host.ask(threaded, "Three", |body| threads.answer(body));
    assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
    assert_eq!(threads.chain(), ["create", "msg_1"]);
    // Back in the dialect of the chain, its newest answer is continued with what other services were told meanwhile.
    // Their call has no signature, which Google requires in the current turn alone.
    let outcome = finish(&mut host, &mut service, interacting("r4", automatic()), "Four");
    assert_eq!((restarts(&outcome), service.refused.len()), (0, 0));
    assert_eq!(service.chain()[4..], ["v1_4", "v1_5"]);
    let sent = service.sent(4);
    assert_eq!((&*sent[0], &**sent.last().unwrap(), sent.len()), ("user: Three", "user: Four", 5), "{sent:?}");
}

#[test]
fn r27_r77_a_lost_interaction_is_asked_for_once_also_if_the_run_is_killed_then() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let mut service = InteractionService::new(rounds(0));
    finish(&mut host, &mut service, interacting("r1", automatic()), "One");
    service.interactions.clear();
    host.start(interacting("r2", automatic()), "Two").unwrap();
    let mut requests = 0;
    let ended = host.drive(|body| {
        requests += 1;
        if requests == 1 { service.answer(body) } else { Answer::Hang }
    });
    assert!(ended.is_none());
    host = Host::open(&store, "s", "h2");
    host.resume(interacting("r2", automatic())).unwrap();
    assert_eq!(host.drive(|body| service.answer(body)).unwrap().status, RunStatus::Finished);
    finish(&mut host, &mut service, interacting("r3", automatic()), "Three");
    assert_eq!((service.refused.len(), service.chain()), (1, vec!["none", "none", "v1_2"]));
    assert_eq!(history_of(&mut host), words_of(service.newest()));
}

#[test]
fn r25_r77_an_answer_that_the_service_has_not_finished_is_sent_as_what_it_is() {
    for (status, chain) in [
        ("requires_continuation", ["none", "v1_1", "v1_1", "v1_3"]),
        ("budget_exceeded", ["none", "v1_1", "v1_1", "v1_3"]),
        ("incomplete", ["none", "v1_1", "v1_2", "v1_3"]),
    ] {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let mut service = InteractionService::new(rounds(0));
        finish(&mut host, &mut service, interacting("r1", automatic()), "One");
        service.status = Some(status);
        let outcome = finish(&mut host, &mut service, interacting("r2", automatic()), "Two");
        assert!(outcome.report.iter().any(|finding| finding.code.as_str() == "interrupted"), "{:?}", outcome.report);
        for (run, input) in [("r3", "Three"), ("r4", "Four")] {
            assert_eq!(restarts(&finish(&mut host, &mut service, interacting(run, automatic()), input)), 0);
        }
        assert_eq!(service.chain(), chain, "{status}");
        assert_eq!(service.sent(2).len(), if status == "incomplete" { 1 } else { 3 }, "{:?}", service.sent(2));
        assert!(service.requests.iter().all(|request| request.get("continuation_token").is_none()));
        assert_eq!(history_of(&mut host), words_of(service.newest()));
    }
}

#[test]
fn r25_r77_an_interaction_that_google_has_and_does_not_continue_begins_again_with_the_history() {
    let out_of_order = "Please ensure that function response turn comes immediately after a function call turn. Got \
                        function response with name 'look'.";
    for (status, message, code) in [
        (400, out_of_order, "invalid_request"),
        (501, "Operation is not implemented, or supported, or enabled.", "not_implemented"),
    ] {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let mut service = InteractionService::new(rounds(1));
        service.refuses_to_continue = Some((status, json!({ "message": message, "code": code })));
        let outcome = finish(&mut host, &mut service, interacting("r1", automatic()), "One");
        assert_eq!((restarts(&outcome), outcome.model_calls), (1, 2));
        assert_eq!((service.chain(), &*service.refused), (vec!["none", "none"], &[code.to_owned()][..]));
        assert_eq!(history_of(&mut host), words_of(service.newest()));
        // The same sentence about a request that continues nothing is about the request.
        service.refuses_to_continue = None;
        let mut host = Host::open(&store, "other", "h");
        service.refuses = Some((status, json!({ "message": message, "code": code })));
        let outcome = ask(&mut host, &mut service, interacting("r2", automatic()), "One");
        assert_eq!((restarts(&outcome), provider_code(&outcome).as_deref()), (0, Some(code)));
        // What came before an interaction that the application gave is not stored here.
        service.refuses = None;
        service.refuses_to_continue = Some((status, json!({ "message": message, "code": code })));
        let mut service = service.with_interaction("v1_given");
        let mut host = Host::open(&store, "given", "h");
        let outcome = ask(&mut host, &mut service, interacting("r3", given()), "One");
        let error = outcome.error.as_ref().unwrap();
        assert_eq!((error.code, restarts(&outcome)), (ErrorCode::ModelError, 0));
        assert!(error.message.contains("open it with the id of another response"), "{}", error.message);
    }
}

#[test]
fn r22_r77_what_only_the_service_has_is_reported_after_an_answer_that_it_has_not_finished() {
    for (status, owner) in [("completed", automatic()), ("budget_exceeded", automatic()), ("budget_exceeded", given())]
    {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let mut service = InteractionService::new(rounds(0)).with_interaction("v1_given");
        finish(&mut host, &mut service, interacting("r1", given()), "One");
        service.status = Some(status);
        finish(&mut host, &mut service, interacting("r2", given()), "Two");
        service.status = None;
        let outcome = finish(&mut host, &mut service, interacting("r3", owner.clone()), "Three");
        let is_reported = outcome.report.iter().any(|finding| finding.code.as_str() == "not_transferred");
        assert_eq!(is_reported, owner == automatic(), "{status}: {:?}", outcome.report);
        // Once: the requests after it are those of the new chain.
        let outcome = finish(&mut host, &mut service, interacting("r4", owner), "Four");
        assert!(
            outcome.report.iter().all(|finding| finding.code.as_str() != "not_transferred"),
            "{:?}",
            outcome.report
        );
    }
}
