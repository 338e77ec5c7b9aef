//! R26: an answer that names another conversation than the session has.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::scripted_host::*;
use super::stateful_service::{Service, rounds, words_of};
use super::{ask, conversation, history_of, owned};
use rethread::error::ErrorCode;
use rethread::owner::{OnConflict, StateOwner};
use rethread::run::{RunSetup, RunStatus};
use rethread::store::MemoryStore;
use serde_json::{Value, json};

#[test]
fn r26_pp_22_25_26_a_conversation_that_nobody_sent_throws_warns_or_becomes_the_owner() {
    let run = |on_conflict: OnConflict| {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let mut service = Service::new(rounds(0)).with_conversation("conv_9");
        service.forced_conversation = Some(json!({ "id": "conv_9" }));
        let run_setup = RunSetup { on_conflict, ..owned("r1", StateOwner::Session) };
        let outcome = ask(&mut host, &mut service, run_setup, "One");
        let (messages, owner) = {
            let log = host.log.borrow();
            (log.history.messages().len(), StateOwner::from_stored(&log.head.owner).unwrap())
        };
        (outcome, messages, owner)
    };
    let (thrown, messages, owner) = run(OnConflict::Throw);
    assert_eq!(thrown.error.unwrap().code, ErrorCode::ConversationConflict);
    assert_eq!((messages, owner), (0, StateOwner::Session));
    let (warned, messages, owner) = run(OnConflict::Warn);
    assert_eq!((warned.status, messages, owner), (RunStatus::Finished, 2, StateOwner::Session));
    assert_eq!(warned.conversation_id.as_deref(), Some("conv_9"));
    assert!(warned.report.iter().any(|finding| finding.code.as_str() == "conversation_conflict"));
    let (cleared, messages, owner) = run(OnConflict::Clear);
    assert_eq!((cleared.status, messages), (RunStatus::Finished, 2));
    assert_eq!(owner, StateOwner::Conversation { id: "conv_9".into() });
}

#[test]
fn r26_pp_23_after_clear_the_next_turn_sends_only_new_input() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let mut service = Service::new(rounds(1)).with_conversation("conv_9");
    service.forced_conversation = Some(json!({ "id": "conv_9" }));
    let run_setup = RunSetup { on_conflict: OnConflict::Clear, ..owned("r1", StateOwner::Session) };
    let first = host.ask(run_setup, "One", |body| {
        // The service added the first request to a conversation of its own.
        let mut body = body.clone();
        body["conversation"] = json!("conv_9");
        service.answer(&body)
    });
    assert_eq!(first.status, RunStatus::Finished, "{:?}", first.error);
    let owner = StateOwner::from_stored(&host.log.borrow().head.owner).unwrap();
    ask(&mut host, &mut service, owned("r2", owner), "Two");
    assert_eq!(service.sent(1), ["output call_1: look gave {}"]);
    assert_eq!(service.sent(2), ["user: Two"]);
    assert_eq!(history_of(&mut host), words_of(&service.conversations["conv_9"]));
}

#[test]
fn r26_pp_27_28_another_conversation_or_none_in_the_answer_fails_before_anything_is_stored() {
    for named in [json!({ "id": "conv_2" }), Value::Null] {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let mut service = Service::new(rounds(0)).with_conversation("conv_1");
        service.forced_conversation = Some(named);
        let outcome = ask(&mut host, &mut service, owned("r1", conversation()), "One");
        assert_eq!(outcome.error.unwrap().code, ErrorCode::ConversationConflict);
        assert!(host.log.borrow().history.messages().is_empty());
    }
    let stored = StateOwner::Conversation { id: "conv_1".into() };
    assert!(stored.change_to(&conversation()).is_ok());
    let other = StateOwner::Conversation { id: "conv_2".into() };
    assert_eq!(stored.change_to(&other).unwrap_err().code, ErrorCode::StateOwnerConflict);
}

#[test]
fn r26_a_response_id_is_no_conflict() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let mut service = Service::new(rounds(0));
    let outcome = ask(&mut host, &mut service, owned("r1", StateOwner::Session), "One");
    assert_eq!((outcome.status, outcome.response_id.as_deref()), (RunStatus::Finished, Some("resp_1")));
}
