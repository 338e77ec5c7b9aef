//! Mistral's conversations: entries with the whole history, without what the service keeps.

use crate::wire_cases::*;
use rethread::finding::Report;
use rethread::message::Dialect;
use rethread::provider::ToolDefinition;
use serde_json::{Value, json};

const ENTRIES: Dialect = Dialect::MistralConversations;

fn tool() -> ToolDefinition {
    ToolDefinition { name: "look".into(), description: None, parameters: None, strict: false, is_async: false }
}

/// The body of a request with these parameters, in the dialect `from` they were written for.
fn body_with(params: &Value, tools: &[ToolDefinition]) -> (Value, Report) {
    let stored = Stored::of(ENTRIES, &json!({ "model": "m", "inputs": [{ "role": "user", "content": "q" }] }));
    let (text, report) = stored.bytes_for(&with_params(ENTRIES, &params.to_string()), tools);
    (serde_json::from_str(&text).unwrap(), report)
}

#[test]
fn r45_r77_entries_come_back_byte_for_byte() {
    let body = concat!(
        r#"{"model":"m","store":false,"instructions":"Be brief.","inputs":["#,
        r#"{"object":"entry","type":"message.input","role":"user","content":"q"},"#,
        r#"{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"https://x.example/a.png","detail":"low"}},{"type":"tool_file","tool":"code_interpreter","file_id":"f"}]},"#,
        r#"{"type":"message.output","id":"msg_1","role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"Hm"}]},{"type":"text","text":"I "},{"type":"tool_reference","tool":"web_search","title":"t"},{"type":"text","text":"look."}]},"#,
        r#"{"type":"tool.execution","id":"tool_1","name":"web_search","arguments":"{}","info":{"a":1}},"#,
        r#"{"type":"function.call","id":"fc_1","tool_call_id":"abcdefgh1","name":"look","arguments":{"b":1,"a":2}},"#,
        r#"{"type":"function.call","tool_call_id":"abcdefgh2","name":"look","arguments":"{}"},"#,
        r#"{"type":"function.result","tool_call_id":"abcdefgh1","result":"1"},"#,
        r#"{"object":"entry","type":"function.result","tool_call_id":"abcdefgh2","result":"2"},"#,
        r#"{"type":"message.output","role":"assistant","content":"Done."}]}"#,
    );
    let body: Value = serde_json::from_str(body).unwrap();
    assert_accepted(body.clone(), ENTRIES);
    let out = Stored::of(ENTRIES, &body).body(ENTRIES);
    assert_eq!(out["inputs"].to_string(), body["inputs"].to_string());
    assert_eq!(out["instructions"], "Be brief.");
}

#[test]
fn r41_r77_a_body_that_continues_a_conversation_has_the_results_of_calls_that_the_service_keeps() {
    let result = json!({ "type": "function.result", "tool_call_id": "abcdefgh1", "result": "21" });
    let call = json!({ "type": "function.call", "tool_call_id": "abcdefgh2", "name": "f", "arguments": "{}" });
    let other = json!({ "type": "function.result", "tool_call_id": "abcdefgh2", "result": "9" });
    assert_accepted(json!({ "inputs": [result] }), ENTRIES);
    assert_accepted(json!({ "from_entry_id": "msg_1", "inputs": [result, call, other] }), ENTRIES);
    // A result of a call that is here keeps its place behind it, whatever the service has.
    let out = repaired_body(&json!({ "inputs": [other, result, call] }), ENTRIES);
    assert_eq!(out, json!([result, call, other]));
    for begins in [json!({ "model": "m" }), json!({ "agent_id": "ag_1" })] {
        let mut body = begins;
        body["inputs"] = json!([{ "role": "user", "content": "q" }, result]);
        assert_eq!(errors(&body, ENTRIES), ["orphan_result"]);
    }
}

#[test]
fn r55_r77_parameters_and_the_tool_choice_are_in_completion_args() {
    let params = json!({ "model": "m", "max_tokens": 9, "temperature": 0.5, "seed": 7, "tool_choice": "required",
        "completion_args": { "top_p": 0.9, "temperature": 0.1 }, "parallel_tool_calls": false, "store": false });
    let (body, report) = body_with(&params, &[tool()]);
    let args =
        json!({ "top_p": 0.9, "temperature": 0.1, "max_tokens": 9, "random_seed": 7, "tool_choice": "required" });
    assert_eq!(body["completion_args"], args);
    assert_eq!((&body["store"], body.get("max_tokens"), body.get("tool_choice")), (&json!(false), None, None));
    assert_eq!(body["tools"][0]["function"]["name"], "look");
    assert!(report.iter().any(|found| found.message.contains("`parallel_tool_calls`")), "{report:?}");
    // Its own choice counts, one of another dialect is translated, and a single tool cannot be named.
    let choice = |params: Value| {
        let (body, report) = body_with(&params, &[tool()]);
        (body["completion_args"]["tool_choice"].clone(), report.len())
    };
    assert_eq!(
        choice(json!({ "model": "m", "tool_choice": "none", "completion_args": { "tool_choice": "any" } })),
        (json!("any"), 0)
    );
    assert_eq!(choice(json!({ "model": "m", "tool_choice": { "type": "any" } })), (json!("any"), 0));
    let named = json!({ "type": "function", "function": { "name": "look" } });
    assert_eq!(choice(json!({ "model": "m", "tool_choice": named })), (Value::Null, 1));
    // Without tools there is none.
    let (body, report) = body_with(&json!({ "model": "m", "tool_choice": "any" }), &[]);
    assert!(body.get("completion_args").is_none() && report.len() == 1, "{body} {report:?}");
}

#[test]
fn r44_r77_parameters_are_converted_from_and_to_entries() {
    let chat = json!({ "model": "m", "max_tokens": 9, "tool_choice": "required",
        "tools": [{ "type": "function", "function": { "name": "look" } }], "messages": [user("q")] });
    let (body, _) = converted(&chat, CHAT, ENTRIES);
    assert_eq!(body["completion_args"], json!({ "max_tokens": 9, "tool_choice": "required" }));
    let (back, _) = converted(&body, ENTRIES, CLAUDE);
    assert_eq!((&back["max_tokens"], &back["tool_choice"]), (&json!(9), &json!({ "type": "any" })));
    let (text, _) = converted(&json!({ "model": "m", "inputs": "q" }), ENTRIES, CHAT);
    assert_eq!(text["messages"], json!([user("q")]));
}

#[test]
fn r44_r77_images_of_results_follow_in_a_message_of_the_user() {
    let image = json!({ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "AAAA" } });
    let body = json!({ "model": "m", "max_tokens": 9, "messages": [
        user("q"),
        { "role": "assistant", "content": [{ "type": "tool_use", "id": "a", "name": "f", "input": {} }] },
        { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "a", "content": [image] }] },
    ] });
    let (out, report) = converted(&body, CLAUDE, ENTRIES);
    let inputs = out["inputs"].as_array().unwrap();
    assert_eq!((inputs.len(), &inputs[2]["type"], &inputs[3]["role"]), (4, &json!("function.result"), &json!("user")));
    assert_eq!(inputs[3]["content"][1]["image_url"], "data:image/png;base64,AAAA");
    assert!(has(&report, &["unsupported_part"]));
}
