//! `inputFilter` (R24): what is sent, what stays pending, and what a filter must not return.

use super::scripted_host::*;
use super::stateful_service::{Service, rounds, words_of};
use super::{automatic, conversation, history_of, owned};
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use rethread::error::{Error, ErrorCode};
use rethread::json::Json;
use rethread::message::Dialect;
use rethread::owner::StateOwner;
use rethread::replay::Callback;
use rethread::run::{RunOutcome, RunSetup, RunStatus};
use rethread::store::MemoryStore;
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

fn filtered(setup: RunSetup) -> RunSetup {
    RunSetup { input_filter: Some(Callback { id: 1, hook: Rc::new(()) }), ..setup }
}

fn list_of(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::OpenAiResponses | Dialect::GeminiInteractions => "input",
        Dialect::Gemini => "contents",
        Dialect::MistralConversations => "inputs",
        Dialect::OpenAiChat | Dialect::Anthropic | Dialect::Mistral | Dialect::Bedrock => "messages",
    }
}

/// Input of several messages of the user.
fn questions(texts: &[&str]) -> Value {
    json!({ "input": texts.iter().map(|text| json!({ "role": "user", "content": text })).collect::<Vec<_>>() })
}

/// The answer of a service as the events of a stream.
fn streamed(service: &mut Service, body: &Value) -> Answer {
    let response = service.accept(body).unwrap();
    let mut out = String::new();
    let mut event = |data: Value| out.push_str(&format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap()));
    event(
        json!({ "type": "response.created", "response": { "id": response["id"], "status": "in_progress", "output": [], "conversation": response["conversation"] } }),
    );
    for (at, item) in response["output"].as_array().unwrap().iter().enumerate() {
        event(json!({ "type": "response.output_item.added", "output_index": at, "item": item }));
        event(json!({ "type": "response.output_item.done", "output_index": at, "item": item }));
    }
    event(json!({ "type": "response.completed", "response": response }));
    Answer::Bytes(out.into_bytes())
}

fn answer(service: &mut Service, body: &Value, stream: bool) -> Answer {
    if stream { streamed(service, body) } else { service.answer(body) }
}

fn run_body(host: &mut Host<'_>, service: &mut Service, setup: RunSetup, body: &Value) -> RunOutcome {
    let stream = setup.provider.stream;
    host.start_body(setup, body).unwrap();
    host.drive(|body| answer(service, body, stream)).expect("the run stands still")
}

/// Removes the first item with this text.
fn without(mut body: Value, text: &str) -> Value {
    let items = body["input"].as_array_mut().unwrap();
    if let Some(at) = items.iter().position(|item| item["content"] == text) {
        items.remove(at);
    }
    body
}

/// The same value, with the members of each object in the opposite order.
fn reversed(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let members: Vec<(String, Value)> = members.into_iter().collect();
            Value::Object(members.into_iter().rev().map(|(key, value)| (key, reversed(value))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(reversed).collect()),
        other => other,
    }
}

#[test]
fn r24_so_12_24_what_a_filter_holds_back_is_sent_with_the_next_request() {
    for owner in [conversation(), automatic()] {
        for stream in [false, true] {
            let store = MemoryStore::default();
            let mut service = Service::new(rounds(1)).with_conversation("conv_1");
            let mut host = Host::open(&store, "s", "h");
            let setup_for = |id: &str| RunSetup { owner: owner.clone(), ..setup(id, RESPONSES, stream) };
            host.filter = Box::new(|body| Ok(without(body, "One")));
            let outcome = run_body(&mut host, &mut service, filtered(setup_for("r1")), &questions(&["One", "Two"]));
            assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
            assert_eq!(service.sent(0), ["user: Two"]);
            assert_eq!(service.sent(1), ["output call_1: look gave {}"]);
            // The session was opened again; the message is pending still.
            let mut again = Host::open(&store, "s", "h2");
            run_body(&mut again, &mut service, setup_for("r2"), &questions(&["Three"]));
            assert_eq!(service.sent(2), ["user: One", "user: Three"]);
            assert_eq!(service.sent(3), ["output call_2: look gave {}"]);
            run_body(&mut again, &mut service, setup_for("r3"), &questions(&["Four"]));
            assert_eq!(service.sent(4), ["user: Four"]);
        }
    }
}

#[test]
fn r24_so_4_of_two_pending_messages_one_is_rebuilt() {
    let store = MemoryStore::default();
    let mut service = Service::new(rounds(0));
    let mut host = Host::open(&store, "s", "h");
    host.filter = Box::new(|mut body| {
        let items = body["input"].as_array_mut().unwrap();
        let last = items.pop().unwrap();
        items.push(reversed(last));
        Ok(body)
    });
    // The request fails for good: both messages come back.
    host.start_body(filtered(owned("r1", automatic())), &questions(&["One", "Two"])).unwrap();
    let failed = host.drive(|_| Answer::Status(400, Vec::new(), "{}".into())).unwrap();
    assert_eq!(failed.status, RunStatus::Failed);
    host.resume(filtered(owned("r1", automatic()))).unwrap();
    host.drive(|body| service.answer(body)).unwrap();
    assert_eq!(service.sent(0), ["user: One", "user: Two"]);
    // And now both are acknowledged, the rebuilt one too.
    run_body(&mut host, &mut service, owned("r2", automatic()), &questions(&["Three"]));
    assert_eq!(service.sent(1), ["user: Three"]);
}

#[test]
fn r24_so_23_of_two_equal_messages_each_is_delivered_once() {
    for held_back in 0..3 {
        let store = MemoryStore::default();
        let mut service = Service::new(rounds(0)).with_conversation("conv_1");
        let mut host = Host::open(&store, "s", "h");
        host.filter = Box::new(move |body| Ok((0..held_back).fold(body, |body, _| without(body, "Same"))));
        let body = questions(&["Same", "Same", "Other"]);
        run_body(&mut host, &mut service, filtered(owned("r1", conversation())), &body);
        assert_eq!(service.sent(0).len(), 3 - held_back);
        let mut again = Host::open(&store, "s", "h2");
        run_body(&mut again, &mut service, owned("r2", conversation()), &questions(&["More"]));
        let items = words_of(&service.conversations["conv_1"]);
        assert_eq!(items.iter().filter(|item| *item == "user: Same").count(), 2, "{items:?}");
        run_body(&mut again, &mut service, owned("r3", conversation()), &questions(&["Last"]));
        assert_eq!(service.sent(2), ["user: Last"]);
    }
}

#[test]
fn r24_so_25_a_held_back_message_of_an_interrupted_run_is_sent_once() {
    for writes in 1..6 {
        let store = MemoryStore::default();
        let mut service = Service::new(rounds(1));
        let mut host = Host::open(&store, "s", "h");
        host.filter = Box::new(|body| Ok(without(body, "One")));
        host.writes_left = Some(writes);
        let setup_for = || filtered(owned("r1", automatic()));
        host.start_body(setup_for(), &questions(&["One", "Two"])).unwrap();
        let is_over = host.drive(|body| service.answer(body)).is_some();
        let mut second = Host::open(&store, "s", "h2");
        second.filter = Box::new(|body| Ok(without(body, "One")));
        if !is_over && !second.pending().is_empty() {
            second.resume(setup_for()).unwrap();
            second.drive(|body| service.answer(body)).unwrap();
        }
        run_body(&mut second, &mut service, owned("r2", automatic()), &questions(&["Three"]));
        let (mut items, mut history) = (words_of(service.newest()), history_of(&mut second));
        items.sort();
        history.sort();
        assert_eq!(items, history, "{writes} writes");
    }
}

#[test]
fn r24_a_retry_sends_what_the_filter_returned_without_asking_again() {
    let store = MemoryStore::default();
    let mut service = Service::new(rounds(0));
    let mut host = Host::open(&store, "s", "h");
    let count = Rc::new(Cell::new(0));
    let counted = count.clone();
    host.filter = Box::new(move |body| {
        counted.set(counted.get() + 1);
        Ok(without(body, "One"))
    });
    host.start_body(filtered(owned("r1", automatic())), &questions(&["One", "Two"])).unwrap();
    let mut attempts = Vec::new();
    let outcome = host.drive(|body| {
        attempts.push(body.clone());
        if attempts.len() < 3 { Answer::Status(429, Vec::new(), "{}".into()) } else { service.answer(body) }
    });
    assert_eq!((outcome.unwrap().status, count.get()), (RunStatus::Finished, 1));
    assert!(attempts.len() == 3 && attempts.iter().all(|body| *body == attempts[0]));
    run_body(&mut host, &mut service, owned("r2", automatic()), &questions(&["Three"]));
    assert_eq!(service.sent(1), ["user: One", "user: Three"]);
}

/// The bytes of the request that follows a turn with a tool, with or without a filter.
fn second_body(dialect: Dialect, filter: Option<fn(Value) -> Value>) -> Vec<u8> {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    // Digits, escapes and duplicate keys that a parser of JavaScript does not keep.
    host.tool = Box::new(|_, _| (Json::parse(r#"{"n":12345678901234567890,"a":"\u00e9\/","a":1.0}"#).unwrap(), false));
    host.filter = Box::new(move |body| Ok(filter.unwrap()(body)));
    let run_setup = setup("r1", dialect, true);
    host.start(if filter.is_some() { filtered(run_setup) } else { run_setup }, "Go").unwrap();
    let bodies = RefCell::new(Vec::new());
    loop {
        host.write();
        let run = host.run.as_ref().unwrap();
        if run.status() != RunStatus::Running {
            panic!("{:?}", run.outcome().error);
        }
        for effect in run.effects() {
            if let rethread::run::EffectKind::CallModel { body, .. } = &effect.kind {
                bodies.borrow_mut().push(body.to_vec());
            }
        }
        if bodies.borrow().len() == 2 {
            return bodies.borrow_mut().pop().unwrap();
        }
        let mut request_count = 0;
        host.drive(|_| {
            request_count += 1;
            if request_count == 1 { Answer::Say(calls(&[("c1", "look", r#"{"b":1,"a":2}"#)])) } else { Answer::Hang }
        });
    }
}

#[test]
fn r24_what_a_filter_leaves_unchanged_keeps_its_bytes() {
    for dialect in [CHAT, CLAUDE, RESPONSES] {
        let plain = second_body(dialect, None);
        assert_eq!(second_body(dialect, Some(|body| body)), plain, "{dialect:?}");
        assert_eq!(second_body(dialect, Some(reversed)), plain, "{dialect:?}");
        // Another member changes; the items keep their bytes.
        let warmer = second_body(
            dialect,
            Some(|mut body| {
                body["temperature"] = json!(0.5);
                reversed(body)
            }),
        );
        let (plain, warmer) = (String::from_utf8(plain).unwrap(), String::from_utf8(warmer).unwrap());
        assert_eq!(warmer, format!("{},\"temperature\":0.5}}", plain.strip_suffix('}').unwrap()), "{dialect:?}");
    }
}

/// Runs once with a filter, after a turn without one, and returns the outcome and the requests of the second run.
fn with_filter(
    dialect: Dialect,
    owner: StateOwner,
    filter: impl FnMut(Value) -> Result<Value, Error> + 'static,
) -> (RunOutcome, usize) {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let setup_for = |id: &str| RunSetup { owner: owner.clone(), ..setup(id, dialect, false) };
    let mut service = Service::new(rounds(1)).with_conversation("conv_1");
    let mut first = true;
    let mut model = |body: &Value| {
        if dialect == RESPONSES {
            return service.answer(body);
        }
        let say = if first { calls(&[("c1", "look", "{}")]) } else { text("done") };
        first = false;
        Answer::Say(say)
    };
    assert_eq!(host.ask(setup_for("r1"), "One", &mut model).status, RunStatus::Finished);
    let (revision, messages) = {
        let log = host.log.borrow();
        (log.head.history_revision, log.history.messages().len())
    };
    host.filter = Box::new(filter);
    let mut requests = 0;
    let outcome = host.ask(filtered(setup_for("r2")), "Two", |body| {
        requests += 1;
        model(body)
    });
    if outcome.status == RunStatus::Failed && requests == 0 {
        let log = host.log.borrow();
        assert_eq!((log.head.history_revision, log.history.messages().len()), (revision, messages));
        assert_eq!(outcome.model_calls, 0);
    }
    (outcome, requests)
}

fn path_of(error: &Error) -> String {
    error.details.as_ref().map(|details| details.view().string("path")).unwrap_or_default()
}

/// What a filter returns that cannot be sent, and the code of the error.
type InvalidReply = (&'static str, fn(Value, &str) -> Result<Value, Error>, ErrorCode);

const INVALID_REPLIES: &[InvalidReply] = &[
    ("nothing", |_, _| Ok(Value::Null), ErrorCode::CallbackFailed),
    ("a list", |body, list| Ok(body[list].clone()), ErrorCode::CallbackFailed),
    ("throws", |_, _| Err(Error::new(ErrorCode::CallbackFailed, "oops")), ErrorCode::CallbackFailed),
    (
        "no items",
        |mut body, list| {
            body[list] = json!([]);
            Ok(body)
        },
        ErrorCode::InvalidInput,
    ),
    (
        "no list",
        |mut body, list| {
            body[list] = json!("hi");
            Ok(body)
        },
        ErrorCode::InvalidInput,
    ),
    (
        "doubled",
        |mut body, list| {
            let last = body[list].as_array().unwrap().last().unwrap().clone();
            body[list].as_array_mut().unwrap().push(last);
            Ok(body)
        },
        ErrorCode::InvalidInput,
    ),
    (
        "added",
        |mut body, list| {
            body[list].as_array_mut().unwrap().insert(0, json!({ "role": "user", "content": "Who is there?" }));
            Ok(body)
        },
        ErrorCode::InvalidInput,
    ),
    (
        "a number",
        |mut body, list| {
            let last = body[list].as_array().unwrap().len() - 1;
            body[list][last] = json!(7);
            Ok(body)
        },
        ErrorCode::InvalidInput,
    ),
];

#[test]
fn r24_an_invalid_filter_reply_fails_the_run_before_anything_is_sent() {
    for (dialect, owner) in [
        (CHAT, StateOwner::Session),
        (CLAUDE, StateOwner::Session),
        (RESPONSES, StateOwner::Session),
        (RESPONSES, conversation()),
        (RESPONSES, automatic()),
    ] {
        for (what, filter, code) in INVALID_REPLIES {
            let list = list_of(dialect);
            let (outcome, requests) = with_filter(dialect, owner.clone(), move |body| filter(body, list));
            let error = outcome.error.unwrap_or_else(|| panic!("{what} {dialect:?} {owner:?}"));
            assert_eq!((error.code, requests), (*code, 0), "{what} {dialect:?} {owner:?}: {error:?}");
            if *code == ErrorCode::InvalidInput {
                assert!(path_of(&error).starts_with(&format!("/{list}")), "{what} {dialect:?}: {error:?}");
            }
        }
    }
}

#[test]
fn r24_r27_a_run_whose_filter_failed_is_resumed_in_its_conversation() {
    for calls_before in [0, 1] {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let mut service = Service::new(rounds(1)).with_conversation("conv_1");
        let mut calls = 0;
        host.filter = Box::new(move |body| {
            calls += 1;
            if calls > calls_before { Err(Error::new(ErrorCode::CallbackFailed, "x")) } else { Ok(body) }
        });
        let failed = host.ask(filtered(owned("r1", conversation())), "One", |body| service.answer(body));
        assert_eq!(failed.error.unwrap().code, ErrorCode::CallbackFailed);
        assert_eq!(service.requests.len(), calls_before);
        // Nothing was sent, so nothing has to be approved; what this process sends is unconfirmed for the next one.
        let mut second = Host::open(&store, "s", "h2");
        second.resume(owned("r1", conversation())).unwrap();
        let mut asked = 0;
        let killed = second.drive(|_| {
            asked += 1;
            Answer::Hang
        });
        assert!(killed.is_none() && asked == 1);
        let mut third = Host::open(&store, "s", "h3");
        third.resume(owned("r1", conversation())).unwrap();
        let outcome = third.drive(|body| service.answer(body)).unwrap();
        assert_eq!(outcome.error.unwrap().code, ErrorCode::ReplayUnsafe);
        assert_eq!(service.requests.len(), calls_before);
    }
}

#[test]
fn r24_a_filter_may_not_break_a_pair_or_invent_a_result() {
    // A result without its call, and a call without its result.
    for kind in ["function_call", "function_call_output"] {
        let drop = move |mut body: Value| {
            body["input"].as_array_mut().unwrap().retain(|item| item["type"] != kind);
            Ok(body)
        };
        let (outcome, requests) = with_filter(RESPONSES, StateOwner::Session, drop);
        assert_eq!((outcome.error.unwrap().code, requests), (ErrorCode::InvalidInput, 0), "{kind}");
    }
    let invent = |mut body: Value| {
        body["input"][0] = json!({ "type": "function_call_output", "call_id": "call_9", "output": "42" });
        Ok(body)
    };
    for owner in [StateOwner::Session, conversation(), automatic()] {
        let (outcome, requests) = with_filter(RESPONSES, owner, invent);
        let error = outcome.error.unwrap();
        assert_eq!((error.code, requests, path_of(&error)), (ErrorCode::InvalidInput, 0, "/input/0".into()));
    }
}

#[test]
fn r24_a_service_gets_every_output_that_it_waits_for() {
    for owner in [conversation(), automatic()] {
        let change = |mut body: Value| {
            if body["input"][0]["type"] == "function_call_output" {
                body["input"] = json!([]);
            }
            Ok(body)
        };
        let (outcome, requests) = with_filter(RESPONSES, owner.clone(), change);
        // The first request of the run has the question, the second one the output.
        assert_eq!((outcome.error.unwrap().code, requests), (ErrorCode::InvalidInput, 1));
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let mut service = Service::new(|items: &[Value]| match items.last().unwrap()["role"].as_str() {
            Some("user") => Err(vec![("c1".into(), "look".into()), ("c2".into(), "look".into())]),
            _ => Ok("done".into()),
        })
        .with_conversation("conv_1");
        host.filter = Box::new(|mut body| {
            body["input"].as_array_mut().unwrap().retain(|item| item["call_id"] != "c2");
            Ok(body)
        });
        let outcome = host.ask(filtered(owned("r1", owner)), "Go", |body| service.answer(body));
        let error = outcome.error.unwrap();
        assert_eq!((error.code, path_of(&error)), (ErrorCode::InvalidInput, "/input/1".into()));
    }
}

#[test]
fn r24_r22_a_filter_gives_the_conversation_no_second_owner() {
    for (owner, member) in [
        (StateOwner::Session, "previous_response_id"),
        (StateOwner::Session, "conversation"),
        (conversation(), "conversation"),
        (conversation(), "previous_response_id"),
        (automatic(), "previous_response_id"),
        (automatic(), "conversation"),
    ] {
        let set = move |mut body: Value| {
            body[member] = json!("other");
            Ok(body)
        };
        let (outcome, requests) = with_filter(RESPONSES, owner.clone(), set);
        assert_eq!((outcome.error.unwrap().code, requests), (ErrorCode::StateOwnerConflict, 0), "{owner:?} {member}");
    }
    let remove = |mut body: Value| {
        body.as_object_mut().unwrap().shift_remove("conversation");
        Ok(body)
    };
    let (outcome, requests) = with_filter(RESPONSES, conversation(), remove);
    assert_eq!((outcome.error.unwrap().code, requests), (ErrorCode::StateOwnerConflict, 0));
    let change_stream = |mut body: Value| {
        body["stream"] = json!(true);
        Ok(body)
    };
    let (outcome, requests) = with_filter(CHAT, StateOwner::Session, change_stream);
    assert_eq!((outcome.error.unwrap().code, requests), (ErrorCode::InvalidInput, 0));
    // No later request could continue a response that the service does not keep.
    let keep_nothing = |mut body: Value| {
        body["store"] = json!(false);
        Ok(body)
    };
    let (outcome, requests) = with_filter(RESPONSES, automatic(), keep_nothing);
    assert_eq!((outcome.error.unwrap().code, requests), (ErrorCode::InvalidInput, 0));
    assert_eq!(with_filter(RESPONSES, StateOwner::Session, keep_nothing).0.status, RunStatus::Finished);
}

#[test]
fn r24_a_filter_rewrites_what_is_sent_and_not_what_is_stored() {
    let redact = |mut body: Value| {
        for item in body["input"].as_array_mut().unwrap() {
            if item["content"] == "My number is 42" {
                item["content"] = json!("My number is [removed]");
            }
            if item["type"] == "function_call_output" {
                item["output"] = json!("shortened");
            }
        }
        Ok(body)
    };
    for owner in [StateOwner::Session, conversation(), automatic()] {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let mut service = Service::new(rounds(1)).with_conversation("conv_1");
        host.filter = Box::new(redact);
        let outcome = host.ask(filtered(owned("r1", owner.clone())), "My number is 42", |body| service.answer(body));
        assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
        assert_eq!(service.sent(0), ["user: My number is [removed]"]);
        assert_eq!(service.sent(1).last().unwrap(), "output call_1: shortened");
        assert_eq!(history_of(&mut host)[0], "user: My number is 42");
        // The service has both: the originals are not sent later.
        let outcome = host.ask(owned("r2", owner.clone()), "Next", |body| service.answer(body));
        assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
        if owner != StateOwner::Session {
            assert_eq!(service.sent(2), ["user: Next"]);
        }
    }
}

#[test]
fn r24_a_message_stays_pending_when_an_expired_chain_is_restarted() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let mut service = Service::new(rounds(0));
    run_body(&mut host, &mut service, owned("r1", automatic()), &questions(&["One"]));
    service.responses.clear();
    host.filter = Box::new(|body| Ok(without(body, "Two")));
    let outcome = run_body(&mut host, &mut service, filtered(owned("r2", automatic())), &questions(&["Two", "Three"]));
    assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
    assert_eq!(service.sent(1), ["user: One", "assistant: done after 0", "user: Three"]);
    run_body(&mut host, &mut service, owned("r3", automatic()), &questions(&["Four"]));
    assert_eq!(service.sent(2), ["user: Two", "user: Four"]);
}

#[test]
fn r24_a_rewritten_message_beside_a_held_back_one_is_ambiguous() {
    let rewrite = |mut body: Value| {
        body["input"] = json!([{ "role": "user", "content": "Something else" }]);
        Ok(body)
    };
    for (owner, is_ambiguous) in [(conversation(), true), (automatic(), true), (StateOwner::Session, false)] {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let mut service = Service::new(rounds(0)).with_conversation("conv_1");
        host.filter = Box::new(rewrite);
        let outcome = run_body(&mut host, &mut service, filtered(owned("r1", owner)), &questions(&["One", "Two"]));
        match outcome.error {
            Some(error) => assert_eq!((error.code, is_ambiguous), (ErrorCode::InvalidInput, true)),
            None => assert!(!is_ambiguous),
        }
        assert_eq!(service.requests.len(), usize::from(!is_ambiguous));
    }
}

#[test]
fn r68_a_filter_sees_no_credential_and_loses_none() {
    let with_key = |id: &str| {
        let mut run_setup = filtered(setup(id, RESPONSES, false));
        run_setup.tools.clear();
        run_setup.provider.params =
            Json::parse(r#"{"model":"m","tools":[{"type":"mcp","server_label":"l","authorization":"canary-1234"}]}"#)
                .unwrap();
        run_setup
    };
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    host.filter = Box::new(|mut body| {
        assert!(!body.to_string().contains("canary-1234"), "{body}");
        body["temperature"] = json!(1);
        Ok(body)
    });
    let mut service = Service::new(rounds(0));
    let outcome = host.ask(with_key("r1"), "Go", |body| service.answer(body));
    assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
    assert_eq!(service.requests[0]["tools"][0]["authorization"], "canary-1234");
    assert_eq!(service.requests[0]["temperature"], 1);
    // A change that would lose the credential is rejected.
    host.filter = Box::new(|mut body| {
        body["tools"][0]["server_label"] = json!("other");
        Ok(body)
    });
    let error = host.ask(with_key("r2"), "Go", |body| service.answer(body)).error.unwrap();
    assert_eq!((error.code, path_of(&error).as_str()), (ErrorCode::InvalidInput, "/tools"));
}

#[test]
fn r24_whatever_is_held_back_the_service_gets_each_item_once() {
    for seed in 0_u64..60 {
        let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut next = move |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % below
        };
        let owner = if seed % 2 == 0 { conversation() } else { automatic() };
        let store = MemoryStore::default();
        let mut service = Service::new(rounds(usize::try_from(seed % 3).unwrap())).with_conversation("conv_1");
        for turn in 0..6 {
            let mut host = Host::open(&store, "s", &format!("h{turn}"));
            let held = next(8);
            host.filter = Box::new(move |mut body| {
                let mut at = 0;
                let items = body["input"].as_array_mut().unwrap();
                let before = items.clone();
                items.retain(|item| {
                    at += 1;
                    item["role"] != "user" || held & (1 << at) == 0
                });
                if items.is_empty() {
                    *items = before;
                }
                Ok(body)
            });
            let texts = ["Same".to_owned(), "Same".to_owned(), format!("Turn {turn}")];
            let texts: Vec<&str> =
                texts.iter().take(1 + usize::try_from(next(3)).unwrap()).map(String::as_str).collect();
            let setup = owned(&format!("r{turn}"), owner.clone());
            let setup = if turn == 5 { setup } else { filtered(setup) };
            let outcome = run_body(&mut host, &mut service, setup, &questions(&texts));
            assert_eq!(outcome.status, RunStatus::Finished, "seed {seed}: {:?}", outcome.error);
        }
        let (mut items, mut history) = (words_of(service.newest()), history_of(&mut Host::open(&store, "s", "h")));
        items.sort();
        history.sort();
        assert_eq!(items, history, "seed {seed}");
    }
}
