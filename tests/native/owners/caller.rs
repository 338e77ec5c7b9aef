//! The owner "caller" (R22): the application holds the conversation, and passes it to each run.

use super::owned;
use super::scripted_host::*;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use rethread::error::ErrorCode;
use rethread::history::{MessageFormat, MessageWriter, NO_ALTERNATIVES};
use rethread::json::{ArrayWriter, Json};
use rethread::message::Dialect;
use rethread::owner::StateOwner;
use rethread::run::{PersistReply, Persistence, RunOutcome, RunSetup, RunStatus};
use rethread::store::MemoryStore;
use serde_json::{Value, json};

fn list_of(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::OpenAiResponses | Dialect::GeminiInteractions => "input",
        Dialect::Gemini => "contents",
        Dialect::MistralConversations => "inputs",
        Dialect::OpenAiChat | Dialect::Anthropic | Dialect::Mistral | Dialect::Bedrock => "messages",
    }
}

fn question(dialect: Dialect, text: &str) -> Value {
    match dialect {
        Dialect::Gemini => json!({ "role": "user", "parts": [{ "text": text }] }),
        Dialect::Bedrock => json!({ "role": "user", "content": [{ "text": text }] }),
        Dialect::MistralConversations => json!({ "type": "message.input", "role": "user", "content": text }),
        Dialect::GeminiInteractions => json!({ "type": "user_input", "content": [{ "type": "text", "text": text }] }),
        _ => json!({ "role": "user", "content": text }),
    }
}

fn held(id: &str, dialect: Dialect, stream: bool) -> RunSetup {
    RunSetup { owner: StateOwner::Caller, instructions: None, ..setup(id, dialect, stream) }
}

/// The answer of a model: a call, then a text.
fn answer(dialect: Dialect, count: usize, has_called: bool) -> Answer {
    let say = match has_called {
        false => calls(&[(&format!("call_{count}"), "look", r#"{"b":1,"a":2}"#)]),
        true => text(&format!("Answer {count}")),
    };
    if dialect == Dialect::Bedrock {
        let block = match has_called {
            false => {
                json!({ "toolUse": { "toolUseId": format!("call_{count}"), "name": "look", "input": { "b": 1, "a": 2 } } })
            }
            true => json!({ "text": say.text }),
        };
        let reason = if has_called { "end_turn" } else { "tool_use" };
        let output = json!({ "message": { "role": "assistant", "content": [block] } });
        return Answer::Status(200, Vec::new(), json!({ "output": output, "stopReason": reason }).to_string());
    }
    if dialect == Dialect::MistralConversations {
        let id = format!("abcdef{count:03}");
        let output = match has_called {
            false => {
                json!({ "type": "function.call", "tool_call_id": id, "name": "look", "arguments": { "b": 1, "a": 2 } })
            }
            true => json!({ "type": "message.output", "role": "assistant", "content": say.text }),
        };
        return Answer::Status(200, Vec::new(), json!({ "conversation_id": "c", "outputs": [output] }).to_string());
    }
    if dialect != Dialect::Gemini {
        return Answer::Say(say);
    }
    let part = match has_called {
        false => json!({ "functionCall": { "name": "look", "args": { "b": 1, "a": 2 } }, "thoughtSignature": "c2ln" }),
        true => json!({ "text": say.text }),
    };
    let candidate = json!({ "content": { "role": "model", "parts": [part] }, "finishReason": "STOP", "index": 0 });
    Answer::Status(200, Vec::new(), json!({ "candidates": [candidate], "modelVersion": "m" }).to_string())
}

/// Runs with a body, and returns the outcome with the requests.
fn run(host: &mut Host<'_>, setup: RunSetup, body: &Value) -> (RunOutcome, Vec<Value>) {
    let dialect = setup.provider.dialect;
    host.start_body(setup, body).unwrap();
    let mut requests = Vec::new();
    let outcome = host.drive(|body| {
        requests.push(body.clone());
        answer(dialect, requests.len(), requests.len() % 2 == 0)
    });
    (outcome.expect("the run stands still"), requests)
}

/// The replay of a run with another question.
fn next_body(outcome: &RunOutcome, dialect: Dialect, text: &str) -> Value {
    let mut body: Value = serde_json::from_str(outcome.replay.as_ref().expect("a replay").as_str()).unwrap();
    body[list_of(dialect)].as_array_mut().unwrap().push(question(dialect, text));
    body
}

#[test]
fn r22_the_replay_of_one_run_is_the_input_of_the_next_one() {
    for dialect in Dialect::ALL {
        for stream in [false, true] {
            let store = MemoryStore::default();
            let mut host = Host::open(&store, "s", "h");
            let list = list_of(dialect);
            let mut body = json!({ list: [question(dialect, "One")] });
            let mut sent: Vec<Value> = Vec::new();
            for (turn, text) in ["Two", "Three", "Four"].into_iter().enumerate() {
                let (outcome, requests) = run(&mut host, held(&format!("r{turn}"), dialect, stream), &body);
                assert_eq!(outcome.status, RunStatus::Finished, "{dialect:?} {:?}", outcome.error);
                // The request continues the last one byte by byte: nothing is added from history, and nothing is lost.
                let items = requests[1][list].as_array().unwrap();
                assert_eq!(items[..sent.len()], sent[..], "{dialect:?} turn {turn}");
                assert_eq!(requests[0][list], body[list], "{dialect:?} turn {turn}");
                sent.clone_from(items);
                body = next_body(&outcome, dialect, text);
                assert_eq!(body[list].as_array().unwrap()[..items.len()], items[..], "{dialect:?} turn {turn}");
                assert!(body.as_object().unwrap().keys().all(|key| key == list), "{dialect:?} {body}");
            }
            // History has each turn once, and the audit table each call.
            let log = host.log.borrow();
            assert_eq!((log.history.messages().len(), log.history.invocations().len()), (9, 3), "{dialect:?}");
            drop(log);
            assert_eq!(host.records(rethread::store::Table::ToolInvocations).len(), 3);
        }
    }
}

#[test]
fn r22_a_system_message_of_the_input_is_in_the_replay_and_the_parameters_are_not() {
    for (dialect, member) in [(CLAUDE, "system"), (RESPONSES, "instructions")] {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let list = list_of(dialect);
        let body = json!({ member: "Be kind.", list: [question(dialect, "One")] });
        let (outcome, requests) = run(&mut host, held("r1", dialect, false), &body);
        assert!(requests[0].to_string().contains("Be kind."), "{}", requests[0]);
        let next = next_body(&outcome, dialect, "Two");
        assert_eq!(next.to_string().matches("Be kind.").count(), 1, "{next}");
        assert!(next["model"].is_null() && next["tools"].is_null(), "{next}");
        let (_, requests) = run(&mut host, held("r2", dialect, false), &next);
        assert_eq!(requests[0].to_string().matches("Be kind.").count(), 1, "{}", requests[0]);
    }
}

#[test]
fn r22_other_owners_and_unfinished_runs_have_no_replay() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let outcome = host.ask(owned("r1", StateOwner::Session), "One", |_| answer(RESPONSES, 1, true));
    assert_eq!((outcome.status, outcome.replay), (RunStatus::Finished, None));
    let body = json!({ "input": [question(RESPONSES, "Other")] });
    host.start_body(held("r2", RESPONSES, false), &body).unwrap();
    let failed = host.drive(|body| {
        // Nothing of the stored turn.
        assert_eq!(body["input"].as_array().unwrap().len(), 1);
        Answer::Status(400, Vec::new(), "{}".into())
    });
    assert_eq!((failed.as_ref().unwrap().status, failed.unwrap().replay), (RunStatus::Failed, None));
}

#[test]
fn r22_a_body_that_has_nothing_to_answer_is_rejected() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let said = json!({ "role": "assistant", "content": "Hello" });
    let system = json!({ "role": "system", "content": "Be brief." });
    let orphan = json!({ "role": "tool", "tool_call_id": "c0", "content": "sunny" });
    for body in [
        json!({ "messages": [] }),
        json!({ "messages": [question(CHAT, "Hi"), said] }),
        json!({ "messages": [orphan] }),
        json!({ "messages": [system, orphan] }),
    ] {
        let error = host.start_body(held("r1", CHAT, false), &body).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidInput, "{body}");
    }
    // Results without a question are answered, and a call without a result is closed.
    let call = json!({ "role": "assistant", "content": null, "tool_calls": [{ "id": "c1", "type": "function", "function": { "name": "look", "arguments": "{}" } }] });
    let result = json!({ "role": "tool", "tool_call_id": "c1", "content": "sunny" });
    let (outcome, requests) =
        run(&mut host, held("r1", CHAT, false), &json!({ "messages": [question(CHAT, "Hi"), call, result] }));
    assert_eq!((outcome.status, requests[0]["messages"].as_array().unwrap().len()), (RunStatus::Finished, 3));
    let (outcome, requests) =
        run(&mut host, held("r2", CHAT, false), &json!({ "messages": [question(CHAT, "Hi"), call] }));
    assert_eq!((outcome.status, requests[0]["messages"].as_array().unwrap().len()), (RunStatus::Finished, 3));
}

#[test]
fn r22_r18_an_interrupted_run_of_a_caller_is_resumed_with_its_whole_input() {
    for dialect in [CHAT, CLAUDE, RESPONSES] {
        for mode in [Persistence::Run, Persistence::Call, Persistence::Result] {
            for writes in 1..6 {
                let store = MemoryStore::default();
                let mut host = Host::open(&store, "s", "h");
                let list = list_of(dialect);
                let (first, _) =
                    run(&mut host, held("r1", dialect, false), &json!({ list: [question(dialect, "One")] }));
                let body = next_body(&first, dialect, "Two");
                let given = body[list].as_array().unwrap().len();
                let setup_for = || RunSetup { persistence: mode, ..held("r2", dialect, false) };
                host.writes_left = Some(writes);
                host.start_body(setup_for(), &body).unwrap();
                let mut requests = Vec::new();
                let mut model = |body: &Value| {
                    requests.push(body.clone());
                    let has_called = body[list].as_array().unwrap().len() > given;
                    answer(dialect, 7, has_called)
                };
                let is_over = host.drive(&mut model).is_some();
                let mut second = Host::open(&store, "s", "h2");
                if !is_over && !second.pending().is_empty() {
                    second.resume(setup_for()).unwrap();
                    let outcome = second.drive(&mut model).unwrap();
                    assert_eq!(
                        outcome.status,
                        RunStatus::Finished,
                        "{dialect:?} {mode:?} {writes}: {:?}",
                        outcome.error
                    );
                    let replay: Value = serde_json::from_str(outcome.replay.unwrap().as_str()).unwrap();
                    let items = replay[list].as_array().unwrap();
                    let given = body[list].as_array().unwrap();
                    assert_eq!(items[..given.len()], given[..], "{dialect:?} {mode:?} {writes}");
                    assert_eq!(second.log.borrow().history.messages().len(), 6, "{dialect:?} {mode:?} {writes}");
                }
                let begins = |request: &Value| {
                    request[list].as_array().unwrap()[..body[list].as_array().unwrap().len()]
                        == body[list].as_array().unwrap()[..]
                };
                assert!(requests.iter().all(begins), "{dialect:?} {mode:?} {writes}");
            }
        }
    }
}

#[test]
fn r22_r12_the_journal_of_a_caller_has_no_redacted_call() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let (first, _) = run(&mut host, held("r1", CHAT, false), &json!({ "messages": [question(CHAT, "One")] }));
    let body = next_body(&first, CHAT, "Two");
    let text = body.to_string().replace("look gave", "canary-77");
    let body: Value = serde_json::from_str(&text).unwrap();
    let mut run_setup = held("r2", CHAT, false);
    run_setup.persist.insert("look".into(), rethread::replay::Callback { id: 1, hook: std::rc::Rc::new(()) });
    host.persist = Box::new(|_| PersistReply::Nothing);
    host.start_body(run_setup, &body).unwrap();
    host.drive(|body| {
        assert!(body.to_string().contains("canary-77"));
        Answer::Hang
    });
    let journal = host.records(rethread::store::Table::Runs);
    assert!(!journal.is_empty());
    let has_canary = |bytes: &[u8]| bytes.windows(9).any(|window| window == b"canary-77");
    assert!(!journal.iter().any(|record| has_canary(&record.value)));
    let snapshot = host.snapshot();
    assert!(snapshot.history.is_empty() && !has_canary(&snapshot.seal()));
}

#[test]
fn r22_a_session_goes_from_the_caller_to_itself_and_back() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let (first, _) = run(&mut host, held("r1", CHAT, false), &json!({ "messages": [question(CHAT, "One")] }));
    let (second, _) = run(&mut host, held("r2", CHAT, false), &next_body(&first, CHAT, "Two"));
    let mut requests = Vec::new();
    let own = RunSetup { owner: StateOwner::Session, ..held("r3", CHAT, false) };
    host.ask(own, "Three", |body| {
        requests.push(body.clone());
        answer(CHAT, 3, true)
    });
    // The history has what both runs added; ids of calls that the model used again are renamed.
    let roles = |body: &Value| -> Vec<String> {
        body["messages"].as_array().unwrap().iter().map(|item| item["role"].to_string()).collect()
    };
    assert_eq!(roles(&requests[0]), roles(&next_body(&second, CHAT, "Three")));
    let back = json!({ "messages": [question(CHAT, "Alone")] });
    let (_, requests) = run(&mut host, held("r4", CHAT, false), &back);
    assert_eq!(requests[0]["messages"], back["messages"]);
}

#[test]
fn r22_so_21_a_caller_names_no_conversation_of_a_service() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    for second in [r#"{"previous_response_id":"resp_1"}"#, r#"{"conversation":"conv_2"}"#] {
        for stream in [false, true] {
            let mut run_setup = held("r1", RESPONSES, stream);
            run_setup.provider.params = Json::parse(second).unwrap();
            let body = json!({ "input": [question(RESPONSES, "One")] });
            assert_eq!(host.start_body(run_setup, &body).unwrap_err().code, ErrorCode::StateOwnerConflict);
        }
    }
}

/// What `store` of a provider has got of the session, as its `provide` returns it.
fn loaded(host: &Host<'_>) -> Value {
    let log = host.log.borrow();
    let mut text = String::new();
    let mut list = ArrayWriter::new(&mut text);
    let writer = MessageWriter {
        history: &log.history,
        session: "s",
        format: MessageFormat::WithCalls,
        alternatives: &NO_ALTERNATIVES,
    };
    log.history.messages().iter().for_each(|message| list.object(|out| writer.write(out, message, None)));
    list.end();
    let messages: Value = serde_json::from_str(&text).unwrap();
    json!([{ "provider": "saved", "loads": true, "messages": messages }])
}

#[test]
fn r34_loaded_history_is_in_each_request_and_stored_once_whatever_kills_the_run() {
    for dialect in Dialect::ALL {
        for writes in 1.. {
            let store = MemoryStore::default();
            let mut host = Host::open(&store, "s", "h");
            let list = list_of(dialect);
            let mut sent: Vec<Value> = Vec::new();
            let mut is_whole = true;
            for turn in 0..3 {
                let mut requests = Vec::new();
                let mut model = |body: &Value| {
                    requests.push(body[list].as_array().unwrap().clone());
                    let last = body[list].as_array().unwrap().last().unwrap().to_string();
                    let has_called = !last.contains("Question");
                    answer(dialect, turn * 2 + 1, has_called)
                };
                let setup = || held(&format!("r{turn}"), dialect, false);
                let provided = loaded(&host);
                host.start_provided(setup(), &format!("Question {turn}"), &provided).unwrap();
                host.writes_left = (turn == 1).then_some(writes);
                let mut outcome = host.drive(&mut model);
                if outcome.is_none() {
                    is_whole = false;
                    host = Host::open(&store, "s", "after");
                    host.resume(setup()).unwrap();
                    outcome = host.drive(&mut model);
                }
                let outcome = outcome.expect("the run stands still");
                assert_eq!(outcome.status, RunStatus::Finished, "{dialect:?} {:?}", outcome.error);
                // Each request repeats what was loaded, and what the run has sent before.
                for items in &requests {
                    assert_eq!(items[..sent.len()], sent[..], "{dialect:?} turn {turn} kill {writes}");
                }
                let (first, last) = (&requests[0], requests.last().unwrap());
                assert_eq!(last[..first.len()], first[..], "{dialect:?} turn {turn} kill {writes}");
                sent.clone_from(last);
            }
            let log = host.log.borrow();
            assert_eq!((log.history.messages().len(), log.history.invocations().len()), (9, 3), "{dialect:?} {writes}");
            if is_whole {
                break;
            }
        }
    }
}

#[test]
fn r34_a_loaded_conversation_comes_from_one_place() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    host.ask(held("r0", RESPONSES, false), "One", |_| answer(RESPONSES, 1, true));
    let provided = loaded(&host);
    let items = |text: &str| rethread::provider::decode_body(RESPONSES, Json::parse(text).unwrap().view()).unwrap();
    let whole = items(
        r#"{"input":[{"role":"user","content":"One"},{"role":"assistant","content":"Answer"},{"role":"user","content":"Two"}]}"#,
    );
    let error = host.start_provided_items(held("r1", RESPONSES, false), whole, &provided).unwrap_err();
    assert!(error.code == ErrorCode::TwoLoaders && error.message.contains("\"saved\""), "{}", error.message);
    assert!(host.records(rethread::store::Table::Runs).is_empty());
    // Nothing is to be answered, since the last loaded message is an answer.
    let error = host.start_provided_items(held("r1", RESPONSES, false), Vec::new(), &provided).unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidInput);
    let new = items(r#"{"input":[{"role":"user","content":"Two"}]}"#);
    host.start_provided_items(held("r1", RESPONSES, false), new, &provided).unwrap();
}
