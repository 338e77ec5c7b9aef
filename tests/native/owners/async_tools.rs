//! Asynchronous tools where a service keeps the conversation: an open call stays open there, and its output goes out
//! once (R75).

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::*;
use rethread::provider::ToolDefinition;
use rethread::replay::Callback;
use rethread::run::ToolTiming;
use std::rc::Rc;

/// A run with the asynchronous tool `later_export`, which the application answers.
fn exporting(id: &str, owner: StateOwner) -> RunSetup {
    let mut setup = owned(id, owner);
    let name = "later_export".to_owned();
    let tool =
        ToolDefinition { name: name.clone(), description: None, parameters: None, strict: false, is_async: true };
    setup.tools.push(tool);
    setup.tool_settings.insert(name, ToolSettings { timing: ToolTiming::Later, ..ToolSettings::default() });
    setup
}

/// Calls the asynchronous tool beside `look`, once; then text.
fn once() -> impl FnMut(&[Value]) -> Result<String, Vec<(String, String)>> {
    |items| {
        if items.iter().any(|item| item["type"] == "function_call") {
            return Ok("It runs.".into());
        }
        Err(vec![("call_a".into(), "later_export".into()), ("call_b".into(), "look".into())])
    }
}

fn owners() -> [StateOwner; 2] {
    [conversation(), automatic()]
}

#[test]
fn r75_a_service_keeps_the_open_call_and_gets_its_output_once() {
    for owner in owners() {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let mut service = Service::new(once()).with_conversation("conv_1");
        let outcome = ask(&mut host, &mut service, exporting("r1", owner.clone()), "Export");
        assert_eq!((outcome.status, outcome.open_calls.len()), (RunStatus::Finished, 1), "{:?}", outcome.error);
        assert_eq!(service.sent(1), ["output call_b: look gave {}"]);
        ask(&mut host, &mut service, exporting("r2", owner.clone()), "How far?");
        assert_eq!(service.sent(2), ["user: How far?"]);

        // Another process stores the result, and another one sends it.
        Host::open(&store, "s", "other").late("call_a", &json!("seven thousand")).unwrap();
        let mut host = Host::open(&store, "s", "third");
        let outcome = ask(&mut host, &mut service, exporting("r3", owner.clone()), "And now?");
        assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
        assert_eq!(service.sent(3), ["output call_a: seven thousand", "user: And now?"]);
        ask(&mut host, &mut service, exporting("r4", owner), "Thanks");
        assert_eq!(service.sent(4), ["user: Thanks"]);
        assert_eq!(history_of(&mut host), words_of(service.newest()));
    }
}

#[test]
fn r75_a_late_output_whose_request_was_lost_is_sent_again() {
    for owner in owners() {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let mut service = Service::new(once()).with_conversation("conv_1");
        ask(&mut host, &mut service, exporting("r1", owner.clone()), "Export");
        host.late("call_a", &json!("seven thousand")).unwrap();
        let outcome = host.ask(exporting("r2", owner.clone()), "And now?", |_| {
            Answer::Status(401, Vec::new(), json!({ "error": { "message": "no" } }).to_string())
        });
        assert_eq!(outcome.status, RunStatus::Failed);
        ask(&mut host, &mut service, exporting("r3", owner), "Again?");
        let sent = service.sent(2);
        assert_eq!(sent.iter().filter(|item| *item == "output call_a: seven thousand").count(), 1, "{sent:?}");
    }
}

#[test]
fn r75_without_a_question_the_late_output_is_the_request() {
    for owner in owners() {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let alone = |items: &[Value]| match items.iter().any(|item| item["type"] == "function_call_output") {
            true => Ok("Seven thousand.".to_owned()),
            false => Err(vec![("call_a".to_owned(), "later_export".to_owned())]),
        };
        let mut service = Service::new(alone).with_conversation("conv_1");
        let outcome = ask(&mut host, &mut service, exporting("r1", owner.clone()), "Export");
        assert_eq!((outcome.status, outcome.open_calls.len()), (RunStatus::Finished, 1), "{:?}", outcome.error);
        host.late("call_a", &json!("seven thousand")).unwrap();
        let outcome = ask(&mut host, &mut service, exporting("r2", owner), "");
        assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
        assert_eq!(service.sent(1), ["output call_a: seven thousand"]);
        assert_eq!(history_of(&mut host), words_of(service.newest()));
    }
}

#[test]
fn r24_r75_a_filter_that_holds_a_late_output_back_from_a_service_fails_before_anything_is_sent() {
    for owner in owners() {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let mut service = Service::new(once()).with_conversation("conv_1");
        ask(&mut host, &mut service, exporting("r1", owner.clone()), "Export");
        host.late("call_a", &json!("seven thousand")).unwrap();
        host.filter = Box::new(|mut body| {
            body["input"].as_array_mut().unwrap().retain(|item| item["type"] != "function_call_output");
            Ok(body)
        });
        let setup =
            RunSetup { input_filter: Some(Callback { id: 1, hook: Rc::new(()) }), ..exporting("r2", owner.clone()) };
        let outcome = ask(&mut host, &mut service, setup, "And now?");
        assert_eq!(outcome.error.unwrap().code, ErrorCode::InvalidInput);
        let mut again = Host::open(&store, "s", "again");
        ask(&mut again, &mut service, exporting("r3", owner.clone()), "Again?");
        let sent = service.sent(2);
        assert_eq!(sent.iter().filter(|item| *item == "output call_a: seven thousand").count(), 1, "{sent:?}");
        ask(&mut again, &mut service, exporting("r4", owner), "Thanks");
        assert_eq!(service.sent(3), ["user: Thanks"]);
    }
}

/// Calls the asynchronous tool beside `look`, which needs an approval; then text.
fn export_and_approval(body: &Value) -> Answer {
    let calls = calls(&[("call_a", "later_export", "{}"), ("call_b", "look", "{}")]);
    Answer::Say(if body.to_string().contains("call_a") { text("It runs.") } else { calls })
}

#[test]
fn r75_an_open_call_of_a_turn_that_waits_for_an_approval_stays_open_at_the_service() {
    for owner in owners() {
        // Without a conversation, history has nothing of an unfinished turn in mode `run`.
        let modes = [Persistence::Run, Persistence::Call, Persistence::Result];
        for persistence in modes.into_iter().skip(usize::from(!owner.is_conversation())) {
            let store = MemoryStore::default();
            let mut host = Host::open(&store, "s", "h");
            let mut service = Service::new(once()).with_conversation("conv_1");
            let setup_of = |id: &str| RunSetup { persistence, ..exporting(id, owner.clone()) };
            let waiting = ask(&mut host, &mut service, needs_approval(setup_of("r1")), "Export");
            assert_eq!(waiting.status, RunStatus::WaitingApproval, "{:?}", waiting.error);
            let outcome = ask(&mut Host::open(&store, "s", "h2"), &mut service, setup_of("r2"), "How far?");
            assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
            let sent = service.sent(1);
            // The service refuses a request that leaves the other call open.
            assert!(!sent.iter().any(|item| item.starts_with("output call_a")), "{persistence:?} {sent:?}");
            // The tool's result goes out when it is there, with the next run.
            let mut other = Host::open(&store, "s", "h3");
            other.late("call_a", &json!("seven thousand")).unwrap();
            let outcome = ask(&mut other, &mut service, setup_of("r3"), "And now?");
            assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
            assert_eq!(service.sent(2), ["output call_a: seven thousand", "user: And now?"], "{persistence:?}");
        }
    }
}

#[test]
fn r75_an_open_call_of_a_turn_that_waits_for_an_approval_is_never_reported_as_interrupted() {
    for dialect in [CHAT, CLAUDE, RESPONSES] {
        for persistence in [Persistence::Run, Persistence::Call, Persistence::Result] {
            let store = MemoryStore::default();
            let mut host = Host::open(&store, "s", "h");
            let setup_of = |id: &str| {
                let provider = provider(dialect, false);
                RunSetup { provider, persistence, ..exporting(id, StateOwner::Session) }
            };
            let waiting = host.ask(needs_approval(setup_of("r1")), "Export", export_and_approval);
            assert_eq!(waiting.status, RunStatus::WaitingApproval, "{:?}", waiting.error);
            let mut other = Host::open(&store, "s", "h2");
            other.ask(setup_of("r2"), "How far?", |_| Answer::Say(text("Not yet.")));
            let body = &other.asked[0];
            // The one that waits for the approval.
            let interrupted = usize::from(persistence != Persistence::Run);
            let told = body.to_string().matches("Interrupted: ").count();
            assert_eq!(told, interrupted, "{dialect:?} {persistence:?} {body:#}");
        }
    }
}
