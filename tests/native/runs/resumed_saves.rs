//! Saves that fail in a run that was resumed in mode `result`, when history has nothing of its turn yet.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::modes::stored;
use super::reopened;
use super::scripted_host::*;
use super::spy_store::{Fault, Spy};
use rethread::error::ErrorCode;
use rethread::json::Json;
use rethread::run::{EffectReply, Persistence, RunInput, RunSetup, RunStatus};
use serde_json::Value;

fn two_calls(body: &Value) -> Answer {
    Answer::Say(if rounds_in(body) == 0 { calls(&[("a", "look", "{}"), ("b", "find", "{}")]) } else { text("Done.") })
}

fn each_result() -> RunSetup {
    RunSetup { persistence: Persistence::Result, ..setup("run", CHAT, false) }
}

fn finish_tool(host: &mut Host<'_>) {
    let effect = host.run.as_ref().unwrap().effects()[0].id.clone();
    let content = Json::parse("1").unwrap();
    host.reply(&effect, EffectReply::ToolResult { content, is_error: false }).unwrap();
    host.write();
}

/// Resumes a run of mode `run` after its first answer, starts both tools, and answers one; the save of its result
/// fails.
fn with_failed_save(spy: &Spy, error: ErrorCode) -> Host<'_> {
    let mut first = Host::open(spy, "s", "first");
    first.start(setup("run", CHAT, false), "Go").unwrap();
    first.writes_left = Some(2);
    assert!(first.drive(two_calls).is_none());
    let mut host = Host::open(spy, "s", "second");
    host.resume(each_result()).unwrap();
    let effects: Vec<String> = host.run.as_ref().unwrap().effects().iter().map(|effect| effect.id.clone()).collect();
    assert_eq!(effects.len(), 2);
    for effect in effects {
        host.reply(&effect, EffectReply::Started).unwrap();
    }
    host.write();
    *spy.faults.borrow_mut() = vec![Some(Fault::Refuses(error))];
    finish_tool(&mut host);
    assert!(stored(&host).is_empty());
    host
}

#[test]
fn r16_a_stopped_run_notes_no_interruption_of_a_call_whose_save_failed() {
    let spy = Spy::default();
    let mut host = with_failed_save(&spy, ErrorCode::QuotaExceeded);
    assert_eq!(host.cancel().unwrap().status, RunStatus::Cancelled);
    assert!(stored(&host).is_empty(), "{:?}", stored(&host));
    assert!(reopened(&host).log.borrow().history.messages().is_empty());
}

#[test]
fn r17_a_result_is_not_stored_before_its_call() {
    let spy = Spy::default();
    let mut host = with_failed_save(&spy, ErrorCode::QuotaExceeded);
    finish_tool(&mut host);
    assert!(stored(&host).is_empty(), "{:?}", stored(&host));
    host.handle(RunInput::RetrySave).unwrap();
    assert_eq!(host.drive(two_calls).unwrap().status, RunStatus::Finished);
    assert_eq!(stored(&host), ["u a c+ c", "r", "a"]);
    let reader = reopened(&host);
    assert!(reader.log.borrow().history.invocations().iter().all(|call| call.result.is_some()));
}

#[test]
fn r17_a_result_is_not_stored_before_its_call_in_a_stopped_run() {
    let spy = Spy::default();
    let mut host = with_failed_save(&spy, ErrorCode::QuotaExceeded);
    finish_tool(&mut host);
    assert_eq!(host.cancel().unwrap().status, RunStatus::Cancelled);
    assert!(stored(&host).is_empty(), "{:?}", stored(&host));
}

#[test]
fn r58_the_save_of_a_result_whose_id_is_in_use_fails_the_run() {
    let spy = Spy::default();
    let host = with_failed_save(&spy, ErrorCode::InvalidInput);
    let outcome = host.run.as_ref().unwrap().outcome();
    assert_eq!((outcome.status, outcome.error.unwrap().code), (RunStatus::Failed, ErrorCode::InvalidInput));
}
