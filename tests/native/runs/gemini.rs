//! Runs in Gemini's dialect: calls have no ids there, and signatures return on the parts they came on.

use crate::scripted_host::*;
use rethread::json::Json;
use rethread::message::Dialect;
use rethread::run::RunStatus;
use rethread::store::MemoryStore;
use serde_json::{Value, json};

const CALLS: &str = r#"{"role":"model","parts":[{"text":"Hm.","thought":true},{"functionCall":{"name":"look","args":{"n":1.50}},"thoughtSignature":"c2ln"},{"functionCall":{"name":"look","args":{"n":2}}},{"functionCall":{"name":"find"}}]}"#;

fn answer(content: &str) -> Answer {
    let event = format!(
        r#"{{"candidates":[{{"content":{content},"finishReason":"STOP"}}],"usageMetadata":{{"promptTokenCount":1,"candidatesTokenCount":2}}}}"#
    );
    Answer::Bytes(format!("data: {event}\r\n\r\n").into_bytes())
}

#[test]
fn r05_r43_results_are_assigned_by_name_and_order() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    // The last tool first.
    host.pick = Box::new(|open| open - 1);
    host.tool = Box::new(|name, arguments| {
        (Json::parse(&json!({ "of": name, "n": arguments.as_str() }).to_string()).unwrap(), false)
    });
    let model = |body: &Value| match body["contents"].as_array().unwrap().len() {
        1 => answer(CALLS),
        _ => answer(r#"{"role":"model","parts":[{"text":"Done.","thoughtSignature":"ZW5k"}]}"#),
    };
    let outcome = host.ask(setup("run", Dialect::Gemini, true), "Go", model);
    assert_eq!((outcome.status, outcome.text.decode().as_ref()), (RunStatus::Finished, "Done."), "{:?}", outcome.error);
    assert_eq!(outcome.usage.map(|usage| (usage.input, usage.output)), Some((2, 4)));
    let calls: Value = serde_json::from_str(CALLS).unwrap();
    let response =
        |name: &str, n: &str| json!({"functionResponse": {"name": name, "response": {"output": {"of": name, "n": n}}}});
    assert_eq!(
        host.asked[1]["contents"],
        json!([
            {"role": "user", "parts": [{"text": "Go"}]},
            calls,
            {"role": "user", "parts": [response("look", r#"{"n":1.50}"#), response("look", r#"{"n":2}"#), response("find", "{}")]},
        ])
    );
    assert_eq!(host.asked[1]["systemInstruction"], json!({"parts": [{"text": "Be brief."}]}));
    // Every call ran once, under an id of its own.
    let mut ids: Vec<&str> = host.ran.iter().map(|(id, _, _)| id.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!((ids.len(), ids.contains(&"")), (3, false));
    for dialect in [CHAT, CLAUDE, Dialect::Gemini] {
        host.render(dialect);
    }
}

#[test]
fn r44_a_truncated_call_never_runs() {
    let pieces = r#"{"role":"model","parts":[{"functionCall":{"name":"look","willContinue":true,"partialArgs":[{"jsonPath":"$.n","stringValue":"1","willContinue":true}]}}]}"#;
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let outcome = host.ask(setup("run", Dialect::Gemini, true), "Go", |_| answer(pieces));
    assert_eq!((outcome.status, host.ran.len()), (RunStatus::Failed, 0));
}

#[test]
fn r42_r55_a_call_of_a_renamed_tool_reaches_the_tool_under_its_original_name() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    host.tool = Box::new(|name, _| (Json::parse(&json!({ "of": name }).to_string()).unwrap(), false));
    let mut setup = setup("run", Dialect::Gemini, true);
    setup.tools[0].name = "2look".into();
    setup.tool_settings =
        ["2look", "find"].map(|name| (name.to_owned(), rethread::run::ToolSettings::default())).into_iter().collect();
    let call = r#"{"role":"model","parts":[{"functionCall":{"name":"_2look","args":{}},"thoughtSignature":"c2ln"}]}"#;
    let model = |body: &Value| match body["contents"].as_array().unwrap().len() {
        1 => answer(call),
        _ => answer(r#"{"role":"model","parts":[{"text":"Done."}]}"#),
    };
    assert_eq!(host.ask(setup, "Go", model).status, RunStatus::Finished);
    assert_eq!(host.asked[0]["tools"][0]["functionDeclarations"][0]["name"], "_2look");
    let contents = &host.asked[1]["contents"];
    assert_eq!(contents[1], serde_json::from_str::<Value>(call).unwrap());
    assert_eq!(
        contents[2]["parts"][0]["functionResponse"],
        json!({"name": "_2look", "response": {"output": {"of": "2look"}}})
    );
}
