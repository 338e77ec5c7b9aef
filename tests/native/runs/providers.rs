//! Messages that history providers add to a run (R33), and the text of an answer that broke off (R20), in every mode.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::modes::stored;
use super::scripted_host::*;
use super::{MISTRAL, reopened};
use rethread::error::ErrorCode;
use rethread::message::{MessageStatus, SourceKind};
use rethread::run::{OnStop, Persistence, RunSetup, RunStatus};
use rethread::store::{MemoryStore, Table};
use serde_json::{Value, json};

const MODES: [Persistence; 3] = [Persistence::Run, Persistence::Call, Persistence::Result];

fn fact() -> Value {
    json!([
        { "provider": "archive", "type": "history", "messages": [{ "role": "user", "parts": [{ "type": "text", "text": "earlier" }] },
            { "role": "assistant", "parts": [{ "type": "text", "text": "reply" }] }] },
        { "provider": "rag", "type": "context", "messages": [
            { "role": "assistant", "parts": [
                { "type": "tool", "callId": "call_1", "name": "search", "arguments": { "q": 1.50 }, "result": "found it" },
                { "type": "tool", "callId": "call_p", "name": "search", "arguments": "{}", "result": "nothing", "isError": true },
                { "type": "tool", "callId": "call_q", "name": "search", "arguments": {} }] },
            { "role": "tool", "parts": [{ "type": "tool_result", "callId": "call_q", "result": "also" }] },
            { "role": "user", "parts": [{ "type": "text", "text": "the fact" }] }] },
    ])
}

/// Answers, if the request has what was provided, once and in its place.
fn informed(body: &Value) -> Answer {
    let text = body.to_string();
    let place = |words: &str| text.find(words).unwrap_or_else(|| panic!("no {words:?} in {text}"));
    assert!(place("earlier") < place("reply") && place("reply") < place("the fact") && place("the fact") < place("Go"));
    for once in ["the fact", "found it", "nothing", "also"] {
        assert_eq!(text.matches(once).count(), 1, "{once}: {text}");
    }
    assert!(place("reply") < place("found it") && place("also") < place("the fact"), "{text}");
    assert!(!text[..place("the fact")].contains("Interrupted"), "{text}");
    // Counted are the rounds of the run alone.
    let mut own = body.clone();
    for key in ["messages", "input", "contents"] {
        if let Some(items) = own[key].as_array_mut() {
            let begin = items.iter().position(|item| item.to_string().contains("the fact")).unwrap();
            items.drain(..begin);
        }
    }
    three_tools(&own)
}

fn setup_in(mode: Persistence, dialect: rethread::message::Dialect) -> RunSetup {
    RunSetup { persistence: mode, ..setup("run", dialect, true) }
}

#[test]
fn r33_provided_messages_are_in_each_request_and_never_in_history_whatever_kills_the_run() {
    for dialect in [CHAT, CLAUDE, RESPONSES, MISTRAL] {
        for mode in MODES {
            for writes in 1.. {
                let store = MemoryStore::default();
                let mut first = Host::open(&store, "s", "first");
                first.start_provided(setup_in(mode, dialect), "Go", &fact()).unwrap();
                first.writes_left = Some(writes);
                let outcome = first.drive(informed);
                let is_whole = outcome.is_some();
                let mut host = if is_whole { reopened(&first) } else { Host::open(&store, "s", "second") };
                let outcome = outcome.unwrap_or_else(|| {
                    host.resume(setup_in(mode, dialect)).unwrap();
                    host.drive(informed).unwrap()
                });
                assert_eq!((outcome.status, outcome.message_ids.len()), (RunStatus::Finished, 4), "kill {writes}");
                let log = host.log.borrow();
                let messages = log.history.messages();
                assert_eq!(
                    messages.iter().map(|message| &message.id).collect::<Vec<_>>(),
                    outcome.message_ids.iter().collect::<Vec<_>>()
                );
                assert!(
                    messages.iter().all(|message| message.source.kind == SourceKind::External && message.turn == 0)
                );
                drop(log);
                assert!(!String::from_utf8(host.render(dialect).body).unwrap().contains("the fact"));
                // The calls of the run are stored, and the provided ones are not.
                assert!(host.log.borrow().history.invocations().iter().all(|call| call.name != "search"));
                assert!(host.records(Table::Runs).is_empty());
                if is_whole {
                    break;
                }
            }
        }
    }
}

#[test]
fn r33_messages_that_cannot_be_provided_name_their_provider() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    for messages in [
        json!([{ "role": "assistant", "parts": [{ "type": "tool", "arguments": {} }] }]),
        json!([{ "role": "tool", "parts": [{ "type": "tool_result", "callId": "c", "result": 1 }] }]),
        json!([{ "role": "user", "parts": "text" }]),
        json!([{ "role": "user", "parts": [{ "type": "sound" }] }]),
        json!({}),
    ] {
        let provided = json!([{ "provider": "rag", "type": "context", "messages": messages }]);
        let error = host.start_provided(setup_in(Persistence::Run, CHAT), "Go", &provided).unwrap_err();
        assert_eq!(error.code, ErrorCode::CallbackFailed, "{messages}");
        assert!(error.message.contains("\"rag\""), "{}", error.message);
        assert!(host.records(Table::Log).is_empty() && host.records(Table::Runs).is_empty());
    }
}

#[test]
fn r20_the_text_of_an_answer_that_broke_off_is_kept_by_option_in_every_mode() {
    for dialect in [CHAT, CLAUDE, RESPONSES, MISTRAL] {
        for mode in MODES {
            for (on_stop, is_cut) in [(OnStop::Discard, true), (OnStop::Keep, true), (OnStop::Keep, false)] {
                let store = MemoryStore::default();
                let mut host = Host::open(&store, "s", "h");
                let bytes = text("Half of an answer, and more.").stream(dialect);
                let begin = bytes.windows(4).position(|part| part == b"Half").unwrap();
                let end = begin + bytes[begin..].windows(2).position(|part| part == b"\n\n").unwrap() + 2;
                let part = bytes[..end].to_vec();
                host.start(RunSetup { on_stop, ..setup_in(mode, dialect) }, "Go").unwrap();
                let outcome = if is_cut {
                    host.drive(|_| Answer::Cut(part.clone())).unwrap()
                } else {
                    assert!(host.drive(|_| Answer::Partly(part.clone())).is_none());
                    host.cancel().unwrap()
                };
                let (status, marked) = if is_cut {
                    (RunStatus::Failed, MessageStatus::Failed)
                } else {
                    (RunStatus::Cancelled, MessageStatus::Stopped)
                };
                assert_eq!((outcome.status, outcome.saved), (status, on_stop == OnStop::Keep), "{dialect:?} {mode:?}");
                let log = host.log.borrow();
                let last = log.history.messages().last();
                let kept = last.filter(|last| last.status == marked).is_some();
                assert_eq!(kept, on_stop == OnStop::Keep, "{:?}", stored(&host));
                drop(log);
                // The next request is valid, and has the text if it was kept.
                let body = String::from_utf8(reopened(&host).render(dialect).body).unwrap();
                assert_eq!(body.contains("Half of an"), on_stop == OnStop::Keep, "{body}");
            }
        }
    }
}

#[test]
fn r33_a_provided_call_without_a_result_is_closed_and_results_go_to_the_providers_own_calls() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let call = json!({ "type": "tool", "callId": "c", "name": "f", "arguments": {} });
    let provided = json!([{ "provider": "rag", "messages": [{ "role": "assistant", "parts": [call] }] }]);
    host.start_provided(setup_in(Persistence::Run, CHAT), "Go", &provided).unwrap();
    let outcome = host.drive(|body| {
        assert!(body.to_string().contains("Interrupted"), "{body}");
        Answer::Say(text("Done."))
    });
    assert_eq!(outcome.unwrap().status, RunStatus::Finished);
    assert!(host.log.borrow().history.invocations().is_empty());
    // The call of one provider takes no result of another one.
    let result = json!([{ "role": "tool", "parts": [{ "type": "tool_result", "callId": "c", "result": 1 }] }]);
    let both = json!([provided[0], { "provider": "other", "messages": result }]);
    let error = host.start_provided(RunSetup { ..setup("run2", CHAT, true) }, "Go", &both).unwrap_err();
    assert!(error.code == ErrorCode::CallbackFailed && error.message.contains("\"other\""), "{}", error.message);
}
