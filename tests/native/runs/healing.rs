//! A request that the provider refused with a known error is repaired and sent once more (R74).

use crate::runs::snapshots::{resume, snapshot};
use crate::runs::{CLAUDE, RESPONSES};
use crate::scripted_host::*;
use rethread::error::ErrorCode;
use rethread::finding::Severity;
use rethread::json::Json;
use rethread::message::Dialect;
use rethread::owner::StateOwner;
use rethread::run::{RunEvent, RunSetup, RunStatus};
use rethread::session_head::SessionHead;
use rethread::store::MemoryStore;
use serde_json::{Value, json};

const BOUND: &str = r#"{"type":"error","error":{"type":"invalid_request_error","message":"messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation."}}"#;

/// A run with thinking. Without a stream an answer is one body.
fn thinking(id: &str) -> RunSetup {
    let mut setup = setup(id, CLAUDE, false);
    setup.provider.params = Json::parse(r#"{"max_tokens":9,"thinking":{"type":"adaptive"}}"#).unwrap();
    setup
}

/// An answer that was thought about.
fn thought(signature: &str) -> Answer {
    let body = json!({ "id": "msg_1", "type": "message", "role": "assistant", "model": "m-1", "stop_reason": "end_turn", "stop_sequence": null,
        "content": [{ "type": "thinking", "thinking": "", "signature": signature }, { "type": "text", "text": "Here." }],
        "usage": { "input_tokens": 1, "output_tokens": 1 } });
    Answer::Status(200, vec![], body.to_string())
}

fn refused(error: &str) -> Answer {
    Answer::Status(400, vec![], error.into())
}

fn signatures(body: &Value) -> Vec<String> {
    let blocks = body["messages"].as_array().unwrap().iter().filter_map(|message| message["content"].as_array());
    blocks.flatten().filter_map(|block| Some(block["signature"].as_str()?.to_owned())).collect()
}

fn healings(host: &Host<'_>) -> usize {
    let is_healing =
        |event: &&RunEvent| matches!(event, RunEvent::Warning(finding) if finding.code.as_str() == "healed");
    host.events.iter().filter(is_healing).count()
}

#[test]
fn r74_a_run_heals_a_known_refusal_once_and_the_session_does_not_send_it_again() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    host.ask(thinking("one"), "First?", |_| thought("AAA="));
    let mut bodies = Vec::new();
    let outcome = host.ask(thinking("two"), "Second?", |body| {
        bodies.push(signatures(body));
        if bodies.len() == 1 { refused(BOUND) } else { thought("BBB=") }
    });
    assert_eq!((outcome.status, outcome.model_calls), (RunStatus::Finished, 1), "{:?}", outcome.error);
    assert_eq!(bodies, [vec!["AAA=".to_owned()], vec![]]);
    assert_eq!(healings(&host), 1);
    assert!(outcome.report.iter().any(|finding| finding.code.as_str() == "healed"));
    // The next turn, of this process and of another one.
    for (id, name) in [("three", None), ("four", Some("other"))] {
        let mut other = name.map(|name| Host::open(&store, "s", name));
        let host = other.as_mut().unwrap_or(&mut host);
        let mut sent = Vec::new();
        let outcome = host.ask(thinking(id), "And?", |body| {
            sent.push(signatures(body));
            thought("CCC=")
        });
        assert_eq!(sent.len(), 1, "{id}: nothing is refused again");
        assert!(sent[0].starts_with(&["BBB=".to_owned()]), "{id}: {sent:?}");
        assert_eq!(host.log.borrow().head.refused.len(), 1);
        // The first healing was a warning; what is left out later is a note of the report.
        assert_eq!(healings(host), usize::from(name.is_none()));
        let note = outcome.report.iter().find(|finding| finding.code.as_str() == "healed");
        assert_eq!(note.map(|finding| finding.severity), Some(Severity::Info));
    }
}

#[test]
fn r74_a_run_that_is_refused_again_fails_and_no_other_error_is_repeated() {
    let unknown = r#"{"type":"error","error":{"type":"invalid_request_error","message":"max_tokens: 9 is too low"}}"#;
    for (status, error, requests) in [(400, BOUND, 2), (400, unknown, 1), (401, BOUND, 1), (422, BOUND, 1)] {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        host.ask(thinking("one"), "First?", |_| thought("AAA="));
        let mut count = 0;
        let outcome = host.ask(thinking("two"), "Second?", |_| {
            count += 1;
            Answer::Status(status, vec![], error.into())
        });
        let code = outcome.error.map(|error| error.code);
        assert_eq!(
            (outcome.status, code, count),
            (RunStatus::Failed, Some(ErrorCode::ModelError), requests),
            "{error}"
        );
    }
}

#[test]
fn r74_r77_a_body_that_conversations_refuse_with_422_heals_once_for_a_session() {
    let refusal = json!({ "object": "Error", "message": "Reasoning input is not enabled for this model" });
    let entries = |id: &str| setup(id, Dialect::MistralConversations, false);
    let said = |id: &str| {
        let thinking = json!({ "type": "thinking", "thinking": [{ "type": "text", "text": "Hm" }] });
        let content = json!([thinking, { "type": "text", "text": "Here." }]);
        let output =
            json!({ "object": "entry", "type": "message.output", "id": id, "role": "assistant", "content": content });
        let body = json!({ "object": "conversation.response", "conversation_id": "conv_1", "outputs": [output],
            "usage": { "prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2 } });
        Answer::Status(200, vec![], body.to_string())
    };
    let thoughts = |body: &Value| body.to_string().matches(r#""type":"thinking""#).count();
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    host.ask(entries("one"), "First?", |_| said("msg_1"));
    let mut sent = Vec::new();
    let outcome = host.ask(entries("two"), "Second?", |body| {
        sent.push(thoughts(body));
        if sent.len() == 1 { Answer::Status(422, vec![], refusal.to_string()) } else { said("msg_2") }
    });
    assert_eq!((outcome.status, healings(&host)), (RunStatus::Finished, 1), "{:?}", outcome.error);
    host.ask(entries("three"), "Third?", |body| {
        sent.push(thoughts(body));
        said("msg_3")
    });
    assert_eq!(sent, [1, 0, 0]);
}

/// Runs a turn, and another one whose request is refused, healed and never answered.
fn heal_and_hang(host: &mut Host) {
    host.ask(thinking("one"), "First?", |_| thought("AAA="));
    host.start(thinking("two"), "Second?").unwrap();
    let mut count = 0;
    let ended = host.drive(|_| {
        count += 1;
        if count == 1 { refused(BOUND) } else { Answer::Hang }
    });
    assert!(ended.is_none() && count == 2);
}

#[test]
fn r74_a_healed_run_that_is_killed_does_not_send_again_what_was_refused() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    heal_and_hang(&mut host);
    host.clock.advance(1_000_000);
    let mut other = Host::open(&store, "s", "other");
    other.clock.advance(2_000_000);
    other.resume(thinking("two")).unwrap();
    let mut bodies = Vec::new();
    let outcome = other.drive(|body| {
        bodies.push(signatures(body));
        thought("BBB=")
    });
    assert_eq!(outcome.map(|outcome| outcome.status), Some(RunStatus::Finished));
    assert_eq!(bodies, [Vec::<String>::new()]);
}

#[test]
fn r27_r74_a_request_of_a_conversation_is_healed_since_a_400_shows_that_it_was_not_processed() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let mut setup = setup("run", RESPONSES, false);
    setup.owner = StateOwner::Conversation { id: "conv_1".into() };
    let error = r#"{"error":{"message":"No tool output found for function call call_9.","type":"invalid_request_error","param":"input","code":null}}"#;
    let mut bodies: Vec<Value> = Vec::new();
    let outcome = host.ask(setup, "Hello?", |body| {
        bodies.push(body.clone());
        if bodies.len() == 1 {
            return refused(error);
        }
        let mut answer: Value = serde_json::from_slice(&text("Hello.").body(RESPONSES)).unwrap();
        answer["conversation"] = json!({ "id": "conv_1" });
        Answer::Status(200, vec![], answer.to_string())
    });
    assert_eq!((outcome.status, bodies.len()), (RunStatus::Finished, 2), "{:?}", outcome.error);
    assert_eq!(bodies[1]["input"][0]["call_id"], "call_9");
    assert_eq!(bodies[1]["input"].as_array().unwrap().len(), bodies[0]["input"].as_array().unwrap().len() + 1);
    assert_eq!(bodies[1]["conversation"], bodies[0]["conversation"]);
}

#[test]
fn r74_a_call_is_healed_once_also_if_the_second_answer_names_something_else() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    host.ask(thinking("one"), "First?", |_| thought("AAA="));
    host.ask(thinking("two"), "Second?", |_| thought("BBB="));
    let mut bodies = Vec::new();
    let outcome = host.ask(thinking("three"), "Third?", |body| {
        bodies.push(signatures(body));
        let place = if bodies.len() == 1 { "messages.3.content.0" } else { "messages.1.content.0" };
        refused(&BOUND.replace("messages.1.content.0", place))
    });
    assert_eq!(outcome.status, RunStatus::Failed);
    assert_eq!(bodies, [vec!["AAA=", "BBB="], vec!["AAA="]], "the second answer would be healed, too");
}

/// A call of a tool that was thought about.
fn thoughtful_call(signature: &str) -> Answer {
    let body = json!({ "id": "msg_1", "type": "message", "role": "assistant", "model": "m-1", "stop_reason": "tool_use", "stop_sequence": null,
        "content": [{ "type": "thinking", "thinking": "", "signature": signature }, { "type": "tool_use", "id": signature, "name": "look", "input": {} }],
        "usage": { "input_tokens": 1, "output_tokens": 1 } });
    Answer::Status(200, vec![], body.to_string())
}

#[test]
fn r74_later_calls_of_a_healed_run_leave_out_what_was_refused_and_do_not_report_it_again() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    host.ask(thinking("one"), "First?", |_| thought("AAA="));
    let mut bodies = Vec::new();
    let outcome = host.ask(thinking("two"), "Second?", |body| {
        bodies.push(signatures(body));
        match bodies.len() {
            1 => refused(BOUND),
            2 => thoughtful_call("BBB="),
            _ => thought("CCC="),
        }
    });
    assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
    assert_eq!(bodies, [vec!["AAA="], vec![], vec!["BBB="]]);
    assert_eq!(healings(&host), 1);
}

#[test]
fn r74_what_was_refused_goes_with_a_snapshot_to_another_store() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    heal_and_hang(&mut host);
    let bytes = snapshot(&mut host).unwrap();
    // Its head does not know what was refused.
    let elsewhere = MemoryStore::default();
    let mut other = Host::open(&elsewhere, "s", "other");
    resume(&mut other, &bytes, thinking("two")).unwrap();
    assert!(other.log.borrow().head.refused.is_empty());
    let mut bodies = Vec::new();
    let outcome = other.drive(|body| {
        bodies.push(signatures(body));
        thought("BBB=")
    });
    assert_eq!(outcome.map(|outcome| outcome.status), Some(RunStatus::Finished));
    assert!(bodies.iter().flatten().all(|signature| signature != "AAA="), "{bodies:?}");
}

#[test]
fn r74_a_session_remembers_the_newest_marks_of_what_was_refused() {
    let mut head = SessionHead::new("s", 0);
    for number in 0..1_000 {
        head.remember_refused(&[format!("mark{number}"), "again".to_owned()]);
    }
    assert!(head.refused.len() < 1_000, "{} marks in each head that is written", head.refused.len());
    assert_eq!(head.refused.last().map(String::as_str), Some("again"));
    assert_eq!(head.refused.iter().filter(|mark| *mark == "again").count(), 1);
    assert!(head.refused.contains(&"mark999".to_owned()) && !head.refused.contains(&"mark0".to_owned()));
}
