//! Owners of a conversation's state (R22 to R26): what goes to a service that keeps the conversation.

mod async_tools;
mod begun_conversations;
mod bound_reasoning;
mod caller;
mod conflicts;
mod conversation_interleavings;
mod erasures;
mod filters;
mod interaction_hops;
mod interaction_interleavings;
mod interaction_late_results;
mod interaction_parts;
mod interactions;
mod lost_chains;
mod other_runs;
mod repetitions;
mod thread_interleavings;
mod threads;

use crate::scripted_host;
use crate::spy_store;
use crate::stateful_service;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use rethread::error::ErrorCode;
use rethread::owner::{OnConflict, StateOwner};
use rethread::replay::Callback;
use rethread::run::{
    ApprovalDecision, Handoff, OnStop, Persistence, RunInput, RunOutcome, RunSetup, RunStatus, ToolSettings,
};
use rethread::store::MemoryStore;
use scripted_host::*;
use serde_json::{Value, json};
use stateful_service::{Service, rounds, words_of};

fn conversation() -> StateOwner {
    StateOwner::Conversation { id: "conv_1".into() }
}

fn automatic() -> StateOwner {
    StateOwner::response(None)
}

fn owned(id: &str, owner: StateOwner) -> RunSetup {
    RunSetup { owner, ..setup(id, RESPONSES, false) }
}

/// A run whose tool `look` needs an approval.
fn needs_approval(mut setup: RunSetup) -> RunSetup {
    setup.tool_settings.insert("look".into(), ToolSettings { needs_approval: true, ..ToolSettings::default() });
    setup
}

fn ask(host: &mut Host<'_>, service: &mut Service, setup: RunSetup, input: &str) -> RunOutcome {
    host.ask(setup, input, |body| service.answer(body))
}

/// What a session of its own would send next, in words: the whole history.
fn history_of(host: &mut Host<'_>) -> Vec<String> {
    let body: Value = serde_json::from_slice(&host.render(RESPONSES).body).unwrap();
    words_of(body["input"].as_array().unwrap())
}

#[test]
fn r23_r77_only_what_is_new_goes_to_a_conversation() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let mut service = Service::new(rounds(1)).with_conversation("conv_1");
    for (run, input) in [("r1", "One"), ("r2", "Two"), ("r3", "Three")] {
        let outcome = ask(&mut host, &mut service, owned(run, conversation()), input);
        assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
        assert_eq!(outcome.conversation_id.as_deref(), Some("conv_1"));
    }
    let output = |call: &str| vec![format!("output {call}: look gave {{}}")];
    assert_eq!(service.sent(0), ["user: One"]);
    assert_eq!(service.sent(1), output("call_1"));
    assert_eq!(service.sent(4), ["user: Three"]);
    // so_16: the sixth request, the second of the third turn, has one tool output.
    assert_eq!(service.sent(5), output("call_3"));
    // so_27: no response is named beside the conversation.
    let names = |request: &Value| request["conversation"] == "conv_1" && request["previous_response_id"].is_null();
    assert!(service.requests.iter().all(names));
    assert!(service.requests.iter().all(|request| request["instructions"] == "Be brief."));
    assert_eq!(history_of(&mut host), words_of(&service.conversations["conv_1"]));
}

#[test]
fn r25_so_17_19_a_chain_advances_on_the_newest_response() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let mut service = Service::new(rounds(1)).with_response("resp_given");
    let given = StateOwner::response(Some("resp_given".into()));
    ask(&mut host, &mut service, owned("r1", given.clone()), "One");
    let outcome = ask(&mut host, &mut service, owned("r2", given), "Two");
    assert_eq!(outcome.response_id.as_deref(), Some("resp_4"));
    assert_eq!(outcome.conversation_id, None);
    let previous: Vec<&Value> = service.requests.iter().map(|request| &request["previous_response_id"]).collect();
    assert_eq!(previous, ["resp_given", "resp_1", "resp_2", "resp_3"]);
    assert_eq!(service.sent(1), ["output call_1: look gave {}"]);
    assert_eq!(service.sent(2), ["user: Two"]);
    assert_eq!(history_of(&mut host), words_of(service.newest()));
}

#[test]
fn r22_so_20_a_session_of_its_own_names_no_response() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let mut service = Service::new(rounds(1));
    ask(&mut host, &mut service, owned("r1", StateOwner::Session), "One");
    ask(&mut host, &mut service, owned("r2", StateOwner::Session), "Two");
    assert!(
        service.requests.iter().all(|body| body["previous_response_id"].is_null() && body["conversation"].is_null())
    );
    assert_eq!(service.sent(3).len(), 7, "{:?}", service.sent(3));
}

#[test]
fn r25_so_13_30_responses_without_an_id_are_no_link_of_the_chain() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let mut service = Service::new(rounds(1));
    ask(&mut host, &mut service, owned("r1", automatic()), "One");
    service.without_ids = true;
    ask(&mut host, &mut service, owned("r2", automatic()), "Two");
    // Its two answers have no id, so the output follows the response before both, with its call.
    assert_eq!(service.requests[3]["previous_response_id"], "resp_2");
    assert_eq!(service.sent(3), ["user: Two", "call call_2", "output call_2: look gave {}"]);
    service.without_ids = false;
    ask(&mut host, &mut service, owned("r3", automatic()), "Three");
    assert_eq!(service.requests[4]["previous_response_id"], "resp_2");
    assert_eq!(service.sent(4).len(), 5, "{:?}", service.sent(4));
    assert_eq!(history_of(&mut host), words_of(service.newest()));
}

#[test]
fn r23_so_29_a_reused_call_id_hides_no_output() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let script = |items: &[Value]| match items.last().unwrap()["role"].as_str() {
        Some("user") => Err(vec![("call_same".to_owned(), "look".to_owned())]),
        _ => Ok("done".to_owned()),
    };
    let mut service = Service::new(script).with_conversation("conv_1");
    for run in ["r1", "r2", "r3"] {
        let outcome = ask(&mut host, &mut service, owned(run, conversation()), "Again");
        assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
    }
    // The same words are new input each time, and the id is the one that the service gave.
    for request in [0, 2, 4] {
        assert_eq!(service.sent(request), ["user: Again"]);
        assert_eq!(service.sent(request + 1), ["output call_same: look gave {}"]);
    }
}

#[test]
fn r23_so_2_parallel_calls_are_answered_in_one_batch() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let script = |items: &[Value]| match items.last().unwrap()["role"].as_str() {
        Some("user") => Err(["a", "b", "c"].map(|id| (id.to_owned(), "look".to_owned())).to_vec()),
        _ => Ok("done".to_owned()),
    };
    let mut service = Service::new(script);
    ask(&mut host, &mut service, owned("r1", automatic()), "Go");
    assert_eq!(service.sent(1).len(), 3);
    assert_eq!(history_of(&mut host), words_of(service.newest()));
}

#[test]
fn r28_so_26_what_a_service_acknowledged_is_not_sent_again_after_a_kill() {
    for owner in [automatic(), StateOwner::response(Some("resp_given".into()))] {
        for writes in 0..8 {
            let store = MemoryStore::default();
            let mut service = Service::new(rounds(2)).with_response("resp_given");
            let mut host = Host::open(&store, "s", "h");
            host.writes_left = Some(writes);
            host.start(owned("r1", owner.clone()), "Go").unwrap();
            let killed = host.drive(|body| service.answer(body)).is_none();
            let mut second = Host::open(&store, "s", "h2");
            if killed && !second.pending().is_empty() {
                let requests = service.requests.len();
                second.resume(owned("r1", owner.clone())).unwrap();
                let outcome = second.drive(|body| service.answer(body)).unwrap();
                assert_eq!(outcome.status, RunStatus::Finished, "{writes} writes: {:?}", outcome.error);
                assert!(service.requests.len() - requests <= 3);
                assert_eq!(history_of(&mut second), words_of(service.newest()), "{writes} writes");
            }
        }
    }
}

#[test]
fn r23_so_1_6_8_11_a_session_that_is_opened_again_sends_only_the_new_message() {
    for owner in [conversation(), automatic()] {
        let store = MemoryStore::default();
        let mut service = Service::new(rounds(1)).with_conversation("conv_1");
        ask(&mut Host::open(&store, "s", "h"), &mut service, owned("r1", owner.clone()), "One");
        let mut again = Host::open(&store, "s", "h2");
        ask(&mut again, &mut service, owned("r2", owner), "Two");
        assert_eq!(service.sent(2), ["user: Two"]);
        assert_eq!(history_of(&mut again), words_of(service.newest()));
    }
}

#[test]
fn r28_so_28_without_a_response_the_input_is_sent_by_the_resumed_run() {
    let store = MemoryStore::default();
    let mut service = Service::new(rounds(1));
    let mut host = Host::open(&store, "s", "h");
    host.start(owned("r1", automatic()), "Go").unwrap();
    assert!(host.drive(|_| Answer::Hang).is_none());
    let mut second = Host::open(&store, "s", "h2");
    second.resume(owned("r1", automatic())).unwrap();
    second.drive(|body| service.answer(body)).unwrap();
    assert_eq!(service.sent(0), ["user: Go"]);
    assert_eq!(history_of(&mut second), words_of(service.newest()));
}

#[test]
fn r26_a_run_that_is_stopped_while_a_conversation_answers_is_kept() {
    let store = MemoryStore::default();
    let mut service = Service::new(rounds(0)).with_conversation("conv_1");
    let mut host = Host::open(&store, "s", "h");
    let setup_for = |id: &str| RunSetup { owner: conversation(), ..setup(id, RESPONSES, true) };
    host.start(setup_for("r1"), "Go").unwrap();
    let begun = "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"resp_1\",\"status\":\"in_progress\",\"output\":[]}}\n\n";
    let mut sent = Value::Null;
    host.drive(|body| {
        sent = body.clone();
        Answer::Partly(begun.into())
    });
    assert_eq!(host.cancel().unwrap().status, RunStatus::Cancelled);
    // The service has the question, so it is not sent again.
    service.conversations.insert("conv_1".into(), sent["input"].as_array().unwrap().clone());
    let outcome = ask(&mut host, &mut service, owned("r2", conversation()), "Two");
    assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
    assert_eq!(service.sent(0), ["user: Two"]);
}

#[test]
fn r27_so_26_a_conversation_is_never_sent_twice_what_it_may_have() {
    for writes in 1..8 {
        let store = MemoryStore::default();
        let mut service = Service::new(rounds(2)).with_conversation("conv_1");
        let mut host = Host::open(&store, "s", "h");
        host.writes_left = Some(writes);
        host.start(owned("r1", conversation()), "Go").unwrap();
        if host.drive(|body| service.answer(body)).is_some() {
            continue;
        }
        let mut second = Host::open(&store, "s", "h2");
        if second.pending().is_empty() {
            continue;
        }
        second.resume(owned("r1", conversation())).unwrap();
        let outcome = second.drive(|body| service.answer(body)).unwrap();
        let items = words_of(&service.conversations["conv_1"]);
        // A run that was killed before it sent anything is not known from one that was killed after.
        assert!(items.iter().filter(|item| *item == "user: Go").count() <= 1, "{writes} writes: {items:?}");
        match outcome.error {
            None => assert_eq!(history_of(&mut second), items, "{writes} writes"),
            Some(error) => assert_eq!(error.code, ErrorCode::ReplayUnsafe, "{writes} writes"),
        }
    }
}

#[test]
fn r22_a_session_changes_its_owner_and_back() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let mut service = Service::new(rounds(1)).with_conversation("conv_1");
    ask(&mut host, &mut service, owned("r1", StateOwner::Session), "One");
    // The conversation has nothing yet: it gets the whole history, once.
    ask(&mut host, &mut service, owned("r2", conversation()), "Two");
    assert_eq!(service.sent(2).len(), 5);
    assert_eq!(service.sent(3).len(), 1);
    assert_eq!(history_of(&mut host), words_of(&service.conversations["conv_1"]));
    // A turn that the session owns is missing there, and is sent with the next request of the conversation.
    ask(&mut host, &mut service, owned("r3", StateOwner::Session), "Three");
    assert_eq!(service.sent(4).len(), 9);
    ask(&mut host, &mut service, owned("r4", conversation()), "Four");
    assert_eq!(service.sent(6).len(), 5);
    assert_eq!(history_of(&mut host), words_of(&service.conversations["conv_1"]));
}

#[test]
fn r24_so_18_25_a_failed_request_is_sent_again_as_a_whole() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let mut service = Service::new(rounds(1));
    let mut attempt = 0;
    let outcome = host.ask(owned("r1", automatic()), "One", |body| {
        attempt += 1;
        if attempt % 2 == 1 { Answer::Status(429, Vec::new(), "{}".into()) } else { service.answer(body) }
    });
    assert_eq!(outcome.status, RunStatus::Finished);
    assert_eq!(service.sent(0), ["user: One"]);
    assert_eq!(service.sent(1), ["output call_1: look gave {}"]);
    // A request that failed for good leaves no trace: its input is not acknowledged.
    let failed = host.ask(owned("r2", automatic()), "Lost", |_| Answer::Status(400, Vec::new(), "{}".into()));
    assert_eq!(failed.status, RunStatus::Failed);
    ask(&mut host, &mut service, owned("r3", automatic()), "Two");
    assert_eq!(service.sent(2), ["user: Two"]);
}

#[test]
fn r22_so_21_pp_46_an_owner_that_the_request_cannot_have_is_rejected() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let with_params = |owner: StateOwner, params: &str| {
        let mut run_setup = owned("r1", owner);
        run_setup.provider.params = rethread::json::Json::parse(params).unwrap();
        run_setup
    };
    let mut code = |run_setup: RunSetup| host.start(run_setup, "One").unwrap_err().code;
    assert_eq!(code(RunSetup { owner: conversation(), ..setup("r1", CHAT, false) }), ErrorCode::ConfigInvalid);
    let gemini = rethread::message::Dialect::Gemini;
    assert_eq!(code(RunSetup { owner: automatic(), ..setup("r1", gemini, true) }), ErrorCode::ConfigInvalid);
    assert_eq!(code(with_params(automatic(), r#"{"model":"m","store":false}"#)), ErrorCode::ConfigInvalid);
    for owner in [StateOwner::Session, conversation(), automatic()] {
        for second in [r#"{"previous_response_id":"resp_1"}"#, r#"{"conversation":"conv_2"}"#] {
            assert_eq!(code(with_params(owner.clone(), second)), ErrorCode::StateOwnerConflict);
        }
    }
}

#[test]
fn r26_a_conversation_is_stored_call_by_call() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let mut service = Service::new(rounds(1)).with_conversation("conv_1");
    let mut attempt = 0;
    let run_setup = RunSetup { persistence: Persistence::Run, on_stop: OnStop::Discard, ..owned("r1", conversation()) };
    let failed = host.ask(run_setup, "One", |body| {
        attempt += 1;
        if attempt == 1 { service.answer(body) } else { Answer::Status(400, Vec::new(), "{}".into()) }
    });
    assert_eq!(failed.status, RunStatus::Failed);
    // The service waits for the output of a call of the failed run. The next run answers it: nobody knows whether it
    // ran.
    let outcome = ask(&mut host, &mut service, owned("r2", conversation()), "Two");
    assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
    assert_eq!(service.sent(1).len(), 2, "{:?}", service.sent(1));
    assert!(service.sent(1)[0].starts_with("output call_1: "));
}

#[test]
fn pp_14_pp_45_with_a_conversation_no_history_is_loaded_and_each_call_is_stored() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let mut service = Service::new(rounds(1)).with_conversation("conv_1");
    let setup_for = |id: &str| RunSetup { persistence: Persistence::Call, ..owned(id, conversation()) };
    ask(&mut host, &mut service, setup_for("r1"), "One");
    let outcome = ask(&mut host, &mut service, setup_for("r2"), "Two");
    assert_eq!(outcome.conversation_id.as_deref(), Some("conv_1"));
    // No request has anything of an earlier turn.
    assert!(service.requests.iter().all(|request| request["input"].as_array().unwrap().len() == 1));
    // Two turns of two calls each are four appends.
    assert_eq!(host.records(rethread::store::Table::Log).len(), 4);
}

#[test]
fn r29_pp_20_an_approved_call_of_a_conversation_keeps_its_id() {
    for decision in [ApprovalDecision::Approve, ApprovalDecision::Reject(Some("not now".into()))] {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let mut service = Service::new(rounds(1)).with_conversation("conv_1");
        let waiting = ask(&mut host, &mut service, needs_approval(owned("r1", conversation())), "One");
        assert_eq!(waiting.status, RunStatus::WaitingApproval, "{:?}", waiting.error);
        let rejects = decision != ApprovalDecision::Approve;
        host.decide("call_1", decision).unwrap();
        let outcome = host.drive(|body| service.answer(body)).unwrap();
        assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
        assert_eq!(outcome.conversation_id.as_deref(), Some("conv_1"));
        let sent = service.sent(1);
        assert_eq!((sent.len(), sent[0].contains("not now")), (1, rejects), "{sent:?}");
        assert!(sent[0].starts_with("output call_1: "), "{sent:?}");
    }
}

#[test]
fn pp_47_a_call_that_fails_after_the_conversation_changed_leaves_the_newest_id() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let mut service = Service::new(rounds(1)).with_conversation("conv_9");
    service.forced_conversation = Some(json!({ "id": "conv_9" }));
    let run_setup =
        RunSetup { on_conflict: OnConflict::Clear, persistence: Persistence::Call, ..owned("r1", StateOwner::Session) };
    let mut attempt = 0;
    let failed = host.ask(run_setup, "One", |body| {
        attempt += 1;
        let mut body = body.clone();
        body["conversation"] = json!("conv_9");
        if attempt == 1 { service.answer(&body) } else { Answer::Status(400, Vec::new(), "{}".into()) }
    });
    assert_eq!(failed.status, RunStatus::Failed);
    let owner = StateOwner::from_stored(&host.log.borrow().head.owner).unwrap();
    assert_eq!(owner, StateOwner::Conversation { id: "conv_9".into() });
}

#[test]
fn r25_a_chain_that_the_service_forgot_begins_again_with_the_history() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let mut service = Service::new(rounds(1));
    ask(&mut host, &mut service, owned("r1", automatic()), "One");
    // It keeps a response for 30 days.
    service.responses.clear();
    let outcome = ask(&mut host, &mut service, owned("r2", automatic()), "Two");
    assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
    assert_eq!(outcome.model_calls, 2);
    assert_eq!(outcome.report.iter().filter(|finding| finding.code.as_str() == "chain_restarted").count(), 1);
    assert_eq!(service.sent(2).len(), 5, "{:?}", service.sent(2));
    assert_eq!(service.requests[2]["previous_response_id"], Value::Null);
    assert_eq!(service.requests[3]["previous_response_id"], "resp_3");
    assert_eq!(service.sent(3), ["output call_2: look gave {}"]);
    ask(&mut host, &mut service, owned("r3", automatic()), "Three");
    assert_eq!(service.sent(4), ["user: Three"]);
    assert_eq!(history_of(&mut host), words_of(service.newest()));
    // What came before a response that the application gave is not stored here.
    let mut service = Service::new(rounds(0)).with_response("resp_given");
    let given = StateOwner::response(Some("resp_given".into()));
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    ask(&mut host, &mut service, owned("r1", given.clone()), "One");
    service.responses.clear();
    let outcome = ask(&mut host, &mut service, owned("r2", given), "Two");
    assert_eq!(outcome.error.unwrap().code, ErrorCode::ModelError);
}

#[test]
fn r25_a_chain_that_begins_again_names_nothing_that_the_service_forgot() {
    let reasoning = |id: &str, more: Value| {
        let mut item = json!({ "type": "reasoning", "id": id, "summary": [{ "type": "summary_text", "text": "Hm." }] });
        item.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        item
    };
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let mut service = Service::new(rounds(0));
    service.extra_output = vec![reasoning("rs_1", json!({}))];
    ask(&mut host, &mut service, owned("r1", automatic()), "One");
    service.extra_output = vec![reasoning("rs_2", json!({ "encrypted_content": "gAAA" }))];
    ask(&mut host, &mut service, owned("r2", automatic()), "Two");
    service.responses.clear();
    let requests = service.requests.len();
    service.extra_output.clear();
    let outcome = ask(&mut host, &mut service, owned("r3", automatic()), "Three");
    assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
    let restarted = service.requests[requests].to_string();
    assert!(!restarted.contains("rs_1") && restarted.contains("rs_2") && restarted.contains("gAAA"), "{restarted}");
    // An item that belonged to reasoning that is left out has no id.
    assert!(!restarted.contains("msg_1") && restarted.contains("msg_2"), "{restarted}");
}

#[test]
fn r22_a_change_of_owner_reports_what_only_the_service_has() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let mut service = Service::new(rounds(0)).with_response("resp_given").with_conversation("conv_1");
    let not_transferred = |outcome: &RunOutcome| {
        assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
        let of_code = outcome.report.iter().filter(|finding| finding.code.as_str() == "not_transferred");
        of_code.map(|finding| finding.message_id.is_some()).collect::<Vec<_>>()
    };
    let given = StateOwner::response(Some("resp_given".into()));
    service.extra_output = vec![
        json!({ "type": "web_search_call", "id": "ws_1", "status": "completed", "action": { "type": "search", "query": "x" } }),
        json!({ "type": "reasoning", "id": "rs_1", "summary": [] }),
    ];
    let first = ask(&mut host, &mut service, owned("r1", given), "One");
    assert!(not_transferred(&first).is_empty());
    service.extra_output.clear();
    // The history goes on here: what came before the given response is missing, and an answer has items that only the
    // service can read.
    let local = ask(&mut host, &mut service, owned("r2", StateOwner::Session), "Two");
    assert_eq!(not_transferred(&local), [false, true]);
    let again = ask(&mut host, &mut service, owned("r3", StateOwner::Session), "Three");
    assert!(not_transferred(&again).is_empty());
    // The session has everything of its own answers, and the service gets it.
    let back = ask(&mut host, &mut service, owned("r4", conversation()), "Four");
    assert!(not_transferred(&back).is_empty());
    assert_eq!(history_of(&mut host), words_of(&service.conversations["conv_1"]));
}

#[test]
fn r22_so_22_an_ordinary_retry_stores_the_users_turn_once() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let mut service = Service::new(rounds(1));
    let mut attempt = 0;
    let outcome = host.ask(owned("r1", StateOwner::Session), "One", |body| {
        attempt += 1;
        if attempt % 2 == 1 { Answer::Status(503, Vec::new(), "{}".into()) } else { service.answer(body) }
    });
    assert_eq!((outcome.status, attempt), (RunStatus::Finished, 4));
    assert_eq!(history_of(&mut host), words_of(service.newest()));
    assert_eq!(history_of(&mut host).iter().filter(|item| *item == "user: One").count(), 1);
}

#[test]
fn r31_with_a_service_owner_a_filter_is_rejected_and_nesting_is_switched_off() {
    for owner in [conversation(), automatic()] {
        let store = MemoryStore::default();
        let mut service = Service::new(rounds(1)).with_conversation("conv_1");
        let mut host = Host::open(&store, "s", "h");
        host.start(owned("r1", owner), "Go").unwrap();
        host.write();
        let agent = Handoff {
            name: "billing".into(),
            instructions: Some("Bill.".into()),
            nests_history: true,
            ..Handoff::default()
        };
        let filter = Callback { id: 1, hook: std::rc::Rc::new(()) };
        let filtered = Handoff { input_filter: Some(filter), ..agent.clone() };
        let error = host.handle(RunInput::HandOff(Box::new(filtered))).unwrap_err();
        assert_eq!(error.code, ErrorCode::HandoffFilterNotSupported);
        host.handle(RunInput::HandOff(Box::new(agent))).unwrap();
        let outcome = host.drive(|body| service.answer(body)).unwrap();
        assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
        assert!(outcome.report.iter().any(|finding| finding.message.contains("`nestHistory`")), "{:?}", outcome.report);
        assert_eq!(service.sent(1), ["output call_1: look gave {}"]);
        assert_eq!(service.requests[1]["instructions"], "Bill.");
        assert_eq!(host.log.borrow().history.messages().len(), 3);
    }
}
