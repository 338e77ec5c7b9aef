//! Decisions name one call, whatever ids the model gave (R29).

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::approvals::{asking, waiting};
use crate::scripted_host::*;
use rethread::error::ErrorCode;
use rethread::json::Json;
use rethread::message::Dialect;
use rethread::run::ApprovalDecision::{Approve, Reject};
use rethread::run::{OnInterrupted, Persistence, RunEvent, RunStatus, ToolSettings};
use rethread::store::MemoryStore;
use serde_json::Value;

/// The invocations that wait, with their arguments.
fn waiting_calls(host: &Host<'_>) -> Vec<(String, String)> {
    let calls = host.run.as_ref().unwrap().approvals();
    calls.into_iter().map(|call| (call.invocation, call.arguments.as_str().to_owned())).collect()
}

/// Keeps the arguments of the tools that ran.
fn tool_log(host: &mut Host<'_>) -> std::rc::Rc<std::cell::RefCell<Vec<String>>> {
    let log = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let kept = log.clone();
    host.tool = Box::new(move |_, arguments| {
        kept.borrow_mut().push(arguments.as_str().to_owned());
        (Json::parse(r#""paid""#).unwrap(), false)
    });
    log
}

#[test]
fn r29_of_two_calls_with_one_id_only_the_approved_one_runs() {
    for dialect in [CHAT, RESPONSES] {
        for picks in [0, 1] {
            let store = MemoryStore::default();
            let mut host = Host::open(&store, "s", "h");
            let log = tool_log(&mut host);
            let twice = |body: &Value| {
                Answer::Say(if rounds_in(body) == 0 {
                    calls(&[("same", "find", r#"{"n":1}"#), ("same", "find", r#"{"n":2}"#)])
                } else {
                    text("Done.")
                })
            };
            host.ask(asking(Persistence::Run, dialect, false), "Go", twice);
            let shown = waiting_calls(&host);
            let asked: Vec<String> = host
                .events
                .iter()
                .filter_map(|event| match event {
                    RunEvent::ApprovalNeeded { invocation, .. } => Some(invocation.clone()),
                    _ => None,
                })
                .collect();
            assert_eq!(asked, [shown[0].0.clone(), shown[1].0.clone()]);
            assert_eq!(host.decide("same", Approve).unwrap_err().code, ErrorCode::InvalidInput);
            host.decide(&shown[picks].0, Approve).unwrap();
            // A late repetition reaches no other call.
            assert_eq!(host.decide(&shown[picks].0, Approve).unwrap_err().code, ErrorCode::WrongState);
            assert_eq!(host.decide("same", Approve).unwrap_err().code, ErrorCode::InvalidInput);
            host.drive(twice);
            assert_eq!(*log.borrow(), [shown[picks].1.clone()], "{dialect:?}");
            host.decide(&shown[1 - picks].0, Reject(None)).unwrap();
            assert_eq!(host.drive(twice).unwrap().status, RunStatus::Finished);
            assert_eq!(
                (log.borrow().len(), host.decide("same", Approve).unwrap_err().code),
                (1, ErrorCode::WrongState)
            );
        }
    }
}

#[test]
fn r29_an_id_that_a_later_turn_reuses_names_the_later_call() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let log = tool_log(&mut host);
    let model = |body: &Value| {
        let say = |n| Answer::Say(calls(&[("same", "find", n)]));
        match rounds_in(body) {
            0 if body.to_string().contains("Again") => say(r#"{"n":2}"#),
            0 => say(r#"{"n":1}"#),
            _ => Answer::Say(text("Done.")),
        }
    };
    for (turn, by) in [("Go", "invocation"), ("Again", "given id"), ("Again", "sent id"), ("Again", "invocation")] {
        let mut setup = asking(Persistence::Run, CHAT, false);
        setup.id = format!("run {}", log.borrow().len());
        host.ask(setup, turn, model);
        let (shown, sent) = (waiting_calls(&host), waiting(&host));
        assert_eq!((shown.len(), sent[0] == "same"), (1, turn == "Go"));
        let id = match by {
            "invocation" => &shown[0].0,
            "given id" => "same",
            _ => sent[0].as_str(),
        };
        host.decide(id, Approve).unwrap();
        assert_eq!(host.drive(model).unwrap().status, RunStatus::Finished);
        assert_eq!(log.borrow().last().unwrap(), &shown[0].1);
    }
    assert_eq!(log.borrow().len(), 4);
}

#[test]
fn r29_an_id_that_a_later_round_reuses_is_not_decided_by_a_late_decision() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let model = |body: &Value| match rounds_in(body) {
        0 | 1 => Answer::Say(calls(&[("same", "find", "{}")])),
        _ => Answer::Say(text("Done.")),
    };
    host.ask(asking(Persistence::Run, CHAT, false), "Go", model);
    host.decide("same", Approve).unwrap();
    assert_eq!(host.drive(model).unwrap().status, RunStatus::WaitingApproval);
    assert_eq!(host.decide("same", Approve).unwrap_err().code, ErrorCode::InvalidInput);
    let id = waiting_calls(&host)[0].0.clone();
    host.decide(&id, Approve).unwrap();
    assert_eq!(host.drive(model).unwrap().status, RunStatus::Finished);
}

#[test]
fn r29_r43_calls_without_ids_are_decided_one_by_one() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let log = tool_log(&mut host);
    let answer = |parts: &str| {
        let event = format!(
            r#"{{"candidates":[{{"content":{{"role":"model","parts":[{parts}]}},"finishReason":"STOP"}}],"usageMetadata":{{"promptTokenCount":1,"candidatesTokenCount":2}}}}"#
        );
        Answer::Bytes(format!("data: {event}\r\n\r\n").into_bytes())
    };
    let model = |body: &Value| match body["contents"].as_array().unwrap().len() {
        1 => answer(
            r#"{"functionCall":{"name":"find","args":{"n":1}}},{"functionCall":{"name":"find","args":{"n":2}}},{"functionCall":{"name":"find","args":{"n":3}}}"#,
        ),
        _ => answer(r#"{"text":"Done."}"#),
    };
    host.ask(asking(Persistence::Run, Dialect::Gemini, true), "Go", model);
    let shown = waiting_calls(&host);
    assert_eq!((shown.len(), host.decide("", Approve).unwrap_err().code), (3, ErrorCode::InvalidInput));
    host.decide(&shown[1].0, Approve).unwrap();
    host.drive(model);
    assert_eq!(*log.borrow(), [r#"{"n":2}"#]);
    for at in [2, 0] {
        host.decide(&shown[at].0, Reject(None)).unwrap();
    }
    assert_eq!(host.drive(model).unwrap().status, RunStatus::Finished);
    assert_eq!(log.borrow().len(), 1);
}

#[test]
fn r29_an_interrupted_call_that_needs_an_approval_asks_again_even_if_its_tool_reruns() {
    let store = MemoryStore::default();
    let mut setup = asking(Persistence::Run, CHAT, false);
    let reruns = ToolSettings { on_interrupted: OnInterrupted::Rerun, needs_approval: true, ..ToolSettings::default() };
    setup.tool_settings.insert("find".into(), reruns);
    let model = |body: &Value| {
        Answer::Say(if rounds_in(body) == 0 { calls(&[("call_b", "find", "{}")]) } else { text("Done.") })
    };
    let mut host = Host::open(&store, "s", "h");
    host.start(setup.clone(), "Go").unwrap();
    host.writes_left = Some(5);
    host.drive(model);
    host.decide("call_b", Approve).unwrap();
    host.drive(model);
    assert!(host.ran.is_empty(), "killed after the start was written");
    let mut host = Host::open(&store, "s", "h2");
    host.resume(setup).unwrap();
    assert_eq!(host.drive(model).unwrap().status, RunStatus::WaitingApproval);
    assert!(host.ran.is_empty());
    host.decide("call_b", Approve).unwrap();
    assert_eq!(host.drive(model).unwrap().status, RunStatus::Finished);
    assert_eq!((host.ran.len(), host.ran[0].2), (1, 2));
}
