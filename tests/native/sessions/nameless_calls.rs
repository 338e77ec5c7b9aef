//! Appends with a call that has no name, through every kind of store.

use super::erasure::{KINDS, Service};
use super::virtual_host::World;
use rethread::json::Json;
use rethread::message::Dialect;
use rethread::session::{AppendOrigin, SessionSettings};
use serde_json::{Value, json};

/// The messages of a dialect, or neutral ones, in which a call and its result have an empty name.
fn nameless(dialect: Option<Dialect>) -> Value {
    let said = |role: &str, text: &str| json!({ "role": role, "content": text });
    let gemini = |role: &str, part: Value| json!({ "role": role, "parts": [part] });
    match dialect {
        None => json!([
            { "role": "user", "parts": [{ "type": "text", "text": "q" }] },
            { "role": "assistant", "parts": [{ "type": "tool", "callId": "a", "name": "", "arguments": "{}", "result": "1" }] },
        ]),
        Some(Dialect::OpenAiResponses) => json!([
            said("user", "q"),
            { "type": "function_call", "call_id": "a", "name": "", "arguments": "{}" },
            { "type": "function_call_output", "call_id": "a", "output": "1" },
        ]),
        Some(Dialect::Gemini) => json!([
            gemini("user", json!({ "text": "q" })),
            gemini("model", json!({ "functionCall": { "id": "a", "name": "", "args": {} } })),
            gemini("user", json!({ "functionResponse": { "id": "a", "name": "", "response": { "result": "1" } } })),
        ]),
        Some(Dialect::Anthropic) => json!([
            said("user", "q"),
            { "role": "assistant", "content": [{ "type": "tool_use", "id": "a", "name": "", "input": {} }] },
            { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "a", "content": "1" }] },
        ]),
        Some(Dialect::Bedrock) => json!([
            { "role": "user", "content": [{ "text": "q" }] },
            { "role": "assistant", "content": [{ "toolUse": { "toolUseId": "a", "name": "", "input": {} } }] },
            { "role": "user", "content": [{ "toolResult": { "toolUseId": "a", "content": [{ "text": "1" }] } }] },
        ]),
        Some(Dialect::MistralConversations) => json!([
            { "type": "message.input", "role": "user", "content": "q" },
            { "type": "function.call", "tool_call_id": "a", "name": "", "arguments": "{}" },
            { "type": "function.result", "tool_call_id": "a", "result": "1" },
        ]),
        Some(Dialect::GeminiInteractions) => json!([
            { "type": "user_input", "content": [{ "type": "text", "text": "q" }] },
            { "type": "function_call", "id": "a", "name": "", "arguments": {} },
            { "type": "function_result", "call_id": "a", "name": "", "result": "1" },
        ]),
        Some(Dialect::OpenAiChat | Dialect::Mistral) => json!([
            said("user", "q"),
            { "role": "assistant", "content": null, "tool_calls": [
                { "id": "a00000000", "type": "function", "function": { "name": "", "arguments": "{}" } },
            ] },
            { "role": "tool", "tool_call_id": "a00000000", "content": "1" },
        ]),
    }
}

#[test]
fn r57_a_call_without_a_name_is_stored_and_returned_in_every_store() {
    for (kind, dialect) in KINDS
        .into_iter()
        .flat_map(|kind| Dialect::ALL.map(Some).into_iter().chain([None]).map(move |dialect| (kind, dialect)))
    {
        let (world, service) = (World::new(false), Service::new(kind));
        let session = world.run(service.process(&world).session(SessionSettings::default()));
        let body = Json::parse(&nameless(dialect).to_string()).unwrap();
        let origin = session.origin(AppendOrigin::default());
        world.run(session.append(&body, dialect, (&origin, None))).unwrap();
        let other = world.run(service.process(&world).session(SessionSettings::default()));
        let page = world.run(other.message_page(None, 10, u64::MAX)).unwrap();
        let stored: Vec<Value> = serde_json::from_str(&page.items).unwrap();
        let call = &stored[1]["parts"][0];
        assert_eq!((&call["name"], &call["result"]["isError"]), (&json!(""), &json!(false)), "{kind:?} {dialect:?}");
        // What `messages` returned is taken elsewhere.
        let copy = Json::parse(&page.items).unwrap();
        let elsewhere = Service::new(kind);
        let session = world.run(elsewhere.process(&world).session(SessionSettings::default()));
        world.run(session.append(&copy, None, (&origin, None))).unwrap();
        assert_eq!(session.log.borrow().history.invocations()[0].name, "", "{kind:?} {dialect:?}");
    }
}
