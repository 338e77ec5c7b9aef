//! Mistral's conversations: entries with the whole history, without what the service keeps.

use crate::wire_cases::*;
use rethread::finding::{Action, Report};
use rethread::history::{Incoming, IncomingPart};
use rethread::json::{Json, JsonRef};
use rethread::message::{Dialect, PartBody};
use rethread::provider::{RepairOptions, ToolDefinition, decode_body, heal, leave_out_refused};
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
        r#"{"prefix":false,"type":"message.input","role":"user","content":"q"},"#,
        r#"{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"https://x.example/a.png","detail":"low"}},{"type":"tool_file","tool":"code_interpreter","file_id":"f"}]},"#,
        r#"{"type":"message.output","role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"Hm"}]},{"type":"text","text":"I "},{"type":"tool_file","tool":"code_interpreter","file_id":"g"},{"type":"text","text":"look."}]},"#,
        r#"{"type":"function.call","model":"m","tool_call_id":"abcdefgh1","name":"look","arguments":{"b":1,"a":2}},"#,
        r#"{"type":"function.call","tool_call_id":"abcdefgh2","name":"look","arguments":"{}"},"#,
        r#"{"type":"function.result","tool_call_id":"abcdefgh1","result":"1"},"#,
        r#"{"result_note":1,"type":"function.result","tool_call_id":"abcdefgh2","result":"2"},"#,
        r#"{"type":"message.output","role":"assistant","content":"Done."}]}"#,
    );
    let body: Value = serde_json::from_str(body).unwrap();
    assert_accepted(body.clone(), ENTRIES);
    let out = Stored::of(ENTRIES, &body).body(ENTRIES);
    assert_eq!(out["inputs"].to_string(), body["inputs"].to_string());
    assert_eq!(out["instructions"], "Be brief.");
}

#[test]
fn r9_r45_r77_entries_are_sent_in_the_form_that_is_recorded_as_accepted() {
    let execution = json!({ "type": "tool.execution", "id": "t", "name": "web_search", "function": "open_url",
        "arguments": "{\"url\":\"u\"}", "info": { "result": "page" } });
    let text = json!({ "type": "text", "text": "a" });
    let source = json!({ "type": "tool_reference", "tool": "web_search", "title": "T", "url": "https://x.example" });
    let body = json!({ "model": "m", "store": false, "inputs": [
        { "type": "message.input", "id": "i", "role": "user", "content": "q" },
        execution,
        { "type": "message.output", "id": "o", "model": "m", "role": "assistant", "content": [text, source] },
        { "type": "function.call", "id": "c", "tool_call_id": "abcdefgh1", "name": "look", "arguments": "{}" },
        { "type": "function.result", "id": "r", "tool_call_id": "abcdefgh1", "result": "1" },
    ] });
    let stored = Stored::of(ENTRIES, &body);
    let (bytes, report) = stored.bytes_for(&request(ENTRIES), &[]);
    let out: Value = serde_json::from_str(&bytes).unwrap();
    let id = &out["inputs"][1]["tool_call_id"];
    assert_eq!(id.as_str().map(str::len), Some(9), "{out}");
    let link = json!({ "type": "text", "text": "[T](https://x.example)" });
    let sent = json!([
        { "type": "message.input", "role": "user", "content": "q" },
        { "type": "function.call", "tool_call_id": id, "name": "open_url", "arguments": "{\"url\":\"u\"}" },
        { "type": "function.result", "tool_call_id": id, "result": "page" },
        { "type": "message.output", "model": "m", "role": "assistant", "content": [text, link] },
        { "type": "function.call", "tool_call_id": "abcdefgh1", "name": "look", "arguments": "{}" },
        { "type": "function.result", "tool_call_id": "abcdefgh1", "result": "1" },
    ]);
    assert_eq!(out["inputs"], sent);
    assert_eq!(report.iter().filter(|found| found.action == Some(Action::Rewritten)).count(), 2, "{report:?}");
    // What is sent is encoded anew each time from the entries as they were received.
    assert_eq!(stored.body(ENTRIES)["inputs"], sent);
    // A body that an application made itself is sent with its ids: the schema has them.
    assert_eq!(repaired(&json!({ "model": "m", "inputs": [body["inputs"][0]] }), ENTRIES).1, Vec::new());
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
    assert_eq!(choice(json!({ "model": "m", "tool_choice": named })), (json!("any"), 1));
    // Without tools there is no choice of another dialect.
    let (body, report) = body_with(&json!({ "model": "m", "tool_choice": "any" }), &[]);
    assert!(body.get("completion_args").is_none() && report.len() == 1, "{body} {report:?}");
}

#[test]
fn r55_r77_a_tool_choice_holds_for_tools_of_the_service_and_of_an_agent() {
    let choice = |params: Value| {
        let (body, report) = body_with(&params, &[]);
        (body["completion_args"]["tool_choice"].clone(), report.len())
    };
    let own = json!({ "tool_choice": "any" });
    assert_eq!(
        choice(json!({ "model": "m", "tools": [{ "type": "web_search" }], "completion_args": own })),
        (json!("any"), 0)
    );
    assert_eq!(choice(json!({ "agent_id": "a", "completion_args": { "tool_choice": "none" } })), (json!("none"), 0));
    assert_eq!(choice(json!({ "agent_id": "a", "tool_choice": "required" })), (json!("required"), 0));
    assert_eq!(choice(json!({ "model": "m", "completion_args": own })), (json!("any"), 0));
}

#[test]
fn r55_r77_a_choice_that_names_a_tool_sends_that_tool_alone() {
    let other = ToolDefinition { name: "other".into(), ..tool() };
    let named = json!({ "type": "function", "function": { "name": "look" } });
    let params = json!({ "model": "m", "tool_choice": named, "tools": [{ "type": "web_search" }] });
    let (body, report) = body_with(&params, &[tool(), other]);
    assert_eq!((&body["completion_args"]["tool_choice"], body["tools"].as_array().unwrap().len()), (&json!("any"), 1));
    assert_eq!((&body["tools"][0]["function"]["name"], report.len()), (&json!("look"), 1));
}

#[test]
fn r44_r77_the_effort_of_reasoning_is_in_completion_args() {
    let chat = json!({ "model": "m", "reasoning_effort": "high", "messages": [user("q")] });
    let (body, report) = converted(&chat, CHAT, ENTRIES);
    assert_eq!(body["completion_args"], json!({ "reasoning_effort": "high" }));
    assert!(!has(&report, &["unsupported_key"]), "{report:?}");
    let (back, _) = converted(&body, ENTRIES, Dialect::Mistral);
    assert_eq!(back["reasoning_effort"], "high");
}

#[test]
fn r55_r77_the_service_keeps_no_copy_unless_the_parameters_ask_for_one() {
    let store = |params: Value| body_with(&params, &[]).0["store"].clone();
    assert_eq!(store(json!({ "model": "m" })), json!(false));
    assert_eq!(store(json!({ "model": "m", "store": true })), json!(true));
}

#[test]
fn r41_r73_r77_a_body_that_continues_may_have_no_entries() {
    let confirmed = json!({ "tool_confirmations": [{ "tool_call_id": "x", "confirmation": "allow" }], "stream": true });
    for body in [confirmed, json!({ "from_entry_id": "msg_1", "store": true })] {
        assert_accepted(body.clone(), ENTRIES);
        let text = body.to_string();
        assert_eq!(decode_body(ENTRIES, JsonRef::parse(&text).unwrap()).unwrap().len(), 0);
    }
    for body in [json!({ "model": "m" }), json!({}), json!({ "stream": true, "messages": [user("q")] })] {
        assert!(!errors(&body, ENTRIES).is_empty(), "{body}");
    }
}

#[test]
fn r41_r77_a_call_that_waits_for_a_confirmation_may_have_the_id_of_another() {
    let call = json!({ "type": "function.call", "tool_call_id": "abcdefgh1", "name": "f", "arguments": "{}" });
    let mut waiting = call.clone();
    waiting["confirmation_status"] = json!("pending");
    let said = json!({ "type": "message.output", "role": "assistant", "content": "Wait." });
    let result = json!({ "type": "function.result", "tool_call_id": "abcdefgh1", "result": "1" });
    let body = json!({ "model": "m", "inputs": [waiting, said, call, result] });
    assert_accepted(body, ENTRIES);
}

#[test]
fn r41_r77_a_call_that_waits_for_a_confirmation_gets_no_result() {
    let call = json!({ "type": "function.call", "tool_call_id": "abcdefgh1", "name": "mail", "arguments": "{}",
        "confirmation_status": "pending" });
    let result = json!({ "type": "function.result", "tool_call_id": "abcdefgh1", "result": "1" });
    for inputs in [json!([user("q"), call]), json!([user("q"), call, user("p")]), json!([user("q"), call, result])] {
        let body = json!({ "model": "m", "inputs": inputs });
        assert_accepted(body.clone(), ENTRIES);
        assert_eq!(Stored::of(ENTRIES, &body).body(ENTRIES)["inputs"], body["inputs"]);
    }
}

#[test]
fn r41_r45_r77_an_id_of_a_call_is_any_text() {
    let call = json!({ "type": "function.call", "tool_call_id": "search-1", "name": "f", "arguments": "{}" });
    let result = json!({ "type": "function.result", "tool_call_id": "search-1", "result": "1" });
    let body = json!({ "model": "m", "inputs": [user("q"), call, result] });
    assert_accepted(body.clone(), ENTRIES);
    assert_eq!(Stored::of(ENTRIES, &body).body(ENTRIES)["inputs"], body["inputs"]);
    // Each call that the service keeps has one result.
    let held = json!({ "inputs": [result, result] });
    assert_eq!(errors(&held, ENTRIES), ["duplicate_result"]);
    assert_eq!(repaired_body(&held, ENTRIES), json!([result]));
}

#[test]
fn r41_r77_an_entry_without_a_type_has_that_of_its_members() {
    let entries = json!([
        { "content": "Hi." },
        { "tool_call_id": "abcdefgh1", "name": "f", "arguments": "{}" },
        { "tool_call_id": "abcdefgh1", "result": "1" },
    ]);
    let body = json!({ "model": "m", "inputs": entries });
    assert_accepted(body.clone(), ENTRIES);
    let stored = Stored::of(ENTRIES, &body);
    assert_eq!(stored.body(ENTRIES)["inputs"], entries);
    let execution = json!({ "model": "m", "inputs": [user("q"), { "name": "web_search", "arguments": "{}" }] });
    assert_accepted(execution.clone(), ENTRIES);
    assert_eq!(Stored::of(ENTRIES, &execution).body(ENTRIES)["inputs"][1]["name"], "web_search");
    assert_eq!(stored.body(CHAT)["messages"][0]["role"], "assistant");
}

#[test]
fn r41_r77_entries_of_tools_and_handoffs_follow_their_schema() {
    let execution = |more: Value| {
        let mut entry = json!({ "type": "tool.execution", "name": "web_search", "arguments": "{}" });
        entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "model": "m", "inputs": [user("q"), entry] })
    };
    assert_accepted(execution(json!({ "id": "t", "info": {} })), ENTRIES);
    let plain = execution(json!({}))["inputs"].clone();
    assert_eq!(repaired_body(&execution(json!({ "function": "web_search" })), ENTRIES), plain);
    assert_eq!(repaired_body(&execution(json!({ "arguments": {} })), ENTRIES), plain);
    assert_eq!(errors(&execution(json!({ "arguments": null })), ENTRIES), ["invalid_arguments"]);
    assert_eq!(repaired_body(&execution(json!({ "name": "" })), ENTRIES), json!([user("q")]));
    let handoff = json!({ "type": "agent.handoff", "previous_agent_id": "a", "previous_agent_name": "A" });
    assert_eq!(repaired_body(&json!({ "model": "m", "inputs": [user("q"), handoff] }), ENTRIES), json!([user("q")]));
}

#[test]
fn r41_r77_chunks_are_those_of_the_schema_of_their_entry() {
    let source = json!({ "type": "tool_reference", "tool": "web_search", "title": "t" });
    let answer = json!({ "type": "message.input", "role": "assistant", "content": [source] });
    let out = repaired_body(&json!({ "model": "m", "inputs": [user("q"), answer] }), ENTRIES);
    assert_eq!(out[1], json!({ "type": "message.output", "role": "assistant", "content": [source] }));
    let chunk = |kind: &str| {
        let entry = json!({ "type": "message.output", "content": [{ "type": kind }] });
        repaired(&json!({ "model": "m", "inputs": [user("q"), entry] }), ENTRIES).1
    };
    let report = chunk("pixel_map");
    assert!(!report[0].message.contains("OpenAI"), "{report:?}");
}

#[test]
fn r9_r77_chunks_are_kept_whose_neighbours_are_removed_or_not_sent() {
    let thinking = json!({ "type": "thinking", "thinking": [{ "type": "text", "text": "Hm" }] });
    let texts = json!([{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }]);
    let content = json!([thinking, texts[0], texts[1]]);
    let answer = json!({ "type": "message.output", "model": "m", "role": "assistant", "content": content });
    let body = json!({ "model": "m", "inputs": [user("q"), answer] }).to_string();
    let entries = |edit: &dyn Fn(&mut Vec<IncomingPart>)| {
        let mut items = decode_body(ENTRIES, JsonRef::parse(&body).unwrap()).unwrap();
        let Some(Incoming::Message(message)) = items.last_mut() else { panic!("{items:?}") };
        edit(&mut message.parts);
        let mut stored = Stored::new();
        stored.append_items(items);
        let mut inputs = stored.body(ENTRIES)["inputs"].as_array().unwrap().clone();
        inputs.remove(0);
        Value::from(inputs)
    };
    let rest = json!({ "type": "message.output", "role": "assistant", "content": texts });
    let data = || IncomingPart::Part(PartBody::Data { name: "chart".into(), value: Json::parse("1").unwrap() }.into());
    let first = json!({ "type": "message.output", "model": "m", "role": "assistant", "content": [thinking] });
    assert_eq!(entries(&|parts| parts.insert(1, data())), json!([first, rest]));
    assert_eq!(entries(&|parts| _ = parts.remove(0)), json!([rest]));
}

#[test]
fn r74_r77_refused_ids_and_entries_are_sent_as_other_clients_send_them() {
    let healed = |inputs: &Value, answer: Value| {
        let body = json!({ "model": "m", "inputs": inputs }).to_string();
        let healed = heal(body.as_bytes(), ENTRIES, answer.to_string().as_bytes(), &RepairOptions::default()).unwrap();
        serde_json::from_slice::<Value>(&healed.body).unwrap()["inputs"].clone()
    };
    let call = json!({ "type": "function.call", "tool_call_id": "search-1", "name": "f", "arguments": "{}" });
    let result = json!({ "type": "function.result", "tool_call_id": "search-1", "result": "1" });
    let answer = json!({ "object": "error", "message": "Tool call id was search-1 but must be a-z, A-Z, 0-9, with a length of 9.", "code": 3280 });
    let out = healed(&json!([user("q"), call, result]), answer);
    let id = out[1]["tool_call_id"].as_str().unwrap();
    assert!(id.len() == 9 && out[2]["tool_call_id"] == id, "{out}");
    let entries = json!([
        user("q"),
        { "type": "tool.execution", "id": "t", "name": "web_search", "arguments": "{}", "info": { "result": "42" } },
        { "type": "message.output", "id": "m", "role": "assistant", "content": [{ "type": "text", "text": "a" }, { "type": "tool_reference", "tool": "web_search", "title": "t" }] },
        user("p"),
    ]);
    let answer = json!({ "detail": [{ "type": "extra_forbidden", "loc": ["body", "inputs", 1, "tool.execution", "id"], "msg": "Extra inputs are not permitted" }] });
    let out = healed(&entries, answer);
    let id = out[1]["tool_call_id"].clone();
    assert_eq!(out[1], json!({ "type": "function.call", "tool_call_id": id, "name": "web_search", "arguments": "{}" }));
    assert_eq!(out[2], json!({ "type": "function.result", "tool_call_id": id, "result": "42" }));
    assert_eq!(
        out[3],
        json!({ "type": "message.output", "role": "assistant", "content": [{ "type": "text", "text": "a" }, { "type": "text", "text": "t" }] })
    );
}

fn healed(body: &Value, dialect: Dialect, answer: &Value) -> Option<(Value, Vec<String>)> {
    let (body, answer) = (body.to_string(), answer.to_string());
    let found = heal(body.as_bytes(), dialect, answer.as_bytes(), &RepairOptions::default())?;
    Some((serde_json::from_slice(&found.body).unwrap(), found.refused))
}

/// What Mistral answers to a member that its schema does not have.
fn extra(place: Value) -> Value {
    let detail =
        json!([{ "type": "extra_forbidden", "loc": place, "msg": "Extra inputs are not permitted", "input": [] }]);
    json!({ "object": "Error", "detail": detail, "message": detail, "type": "invalid_request_error", "code": 3001 })
}

#[test]
fn r74_r77_only_a_refusal_that_names_an_entry_rewrites_entries() {
    let execution =
        json!({ "type": "tool.execution", "id": "t", "name": "web_search", "arguments": "{}", "info": { "a": 1 } });
    let body = json!({ "model": "m", "inputs": [user("q"), execution] });
    for place in [
        json!(["body", "tools"]),
        json!(["body", "completion_args", "top_k"]),
        json!(["body", "inputs", 0, "message.input", "guardrail_id"]),
        json!(["body", "inputs", 0, "message.input", "invalid"]),
    ] {
        assert_eq!(healed(&body, ENTRIES, &extra(place.clone())), None, "{place}");
    }
    let tag = "Input tag 'web' found using 'type' does not match any of the expected tags: 'function', 'web_search'";
    let answer = json!({ "detail": [{ "type": "union_tag_invalid", "loc": ["body", "tools", 0], "msg": tag }] });
    assert_eq!(healed(&body, ENTRIES, &answer), None);
    // Ids of all entries are left out, and a source is sent as a link.
    let source = json!({ "type": "tool_reference", "tool": "web_search", "title": "T", "url": "u" });
    let body = json!({ "model": "m", "inputs": [
        { "type": "message.input", "id": "i", "role": "user", "content": "q" },
        { "type": "message.output", "id": "o", "role": "assistant", "content": [source] },
    ] });
    let (out, _) = healed(&body, ENTRIES, &extra(json!(["body", "inputs", 0, "message.input", "id"]))).unwrap();
    let link = json!([{ "type": "text", "text": "[T](u)" }]);
    assert_eq!(
        out["inputs"],
        json!([
            { "type": "message.input", "role": "user", "content": "q" },
            { "type": "message.output", "role": "assistant", "content": link },
        ])
    );
}

#[test]
fn r74_r77_calls_that_the_service_keeps_get_results_before_anything_else() {
    let result = |id: &str| json!({ "type": "function.result", "tool_call_id": id, "result": "1" });
    let late = json!({ "inputs": [user("q"), result("a"), user("p"), result("b")] });
    assert_eq!(repaired_body(&late, ENTRIES), json!([result("a"), result("b"), user("q"), user("p")]));
    assert_eq!(errors(&late, ENTRIES), ["interposed_message", "interposed_message"]);
    let answer = json!({ "object": "Error", "code": 3001, "type": "invalid_request_error",
        "message": "Cannot append other inputs while function results are still missing. Provide function results first for: ['a', 'b']" });
    let (out, _) = healed(&json!({ "inputs": [user("q")] }), ENTRIES, &answer).unwrap();
    let ids: Vec<_> = out["inputs"].as_array().unwrap().iter().map(|entry| &entry["tool_call_id"]).collect();
    assert_eq!(ids, [&json!("a"), &json!("b"), &Value::Null], "{out}");
    assert!(out["inputs"][0]["result"].as_str().unwrap().contains("no recorded result"), "{out}");
    // A text as the input becomes an entry, and the same answer to the repaired body heals nothing.
    let (out, _) = healed(&json!({ "inputs": "Hi" }), ENTRIES, &answer).unwrap();
    assert_eq!(out["inputs"][2]["content"], "Hi");
    assert_eq!(healed(&out, ENTRIES, &answer), None);
}

#[test]
fn r74_r77_a_refused_body_that_continues_is_sent_without_what_only_a_new_conversation_has() {
    let body = json!({ "inputs": [user("q")], "tools": [], "instructions": "x", "stream": true });
    let (out, _) = healed(&body, ENTRIES, &extra(json!(["body", "tools"]))).unwrap();
    assert_eq!(out, json!({ "inputs": [user("q")], "stream": true }));
    let begins = json!({ "model": "m", "inputs": [user("q")], "tools": [] });
    assert_eq!(healed(&begins, ENTRIES, &extra(json!(["body", "tools"]))), None);
}

#[test]
fn r74_r77_reasoning_is_left_out_for_a_model_that_takes_none_and_not_sent_to_it_again() {
    let answer = json!({ "object": "error", "message": "Reasoning input is not enabled for this model", "type": "invalid_request_invalid_args", "param": null, "code": "3051" });
    let content = json!([{ "type": "thinking", "thinking": [{ "type": "text", "text": "Hm" }] }, { "type": "text", "text": "a" }]);
    let entry = json!({ "type": "message.output", "role": "assistant", "content": content });
    let conversation = json!({ "model": "m", "inputs": [user("q"), entry] });
    let message = json!({ "role": "assistant", "content": content });
    let chat = json!({ "model": "m", "messages": [user("q"), message, user("p")] });
    for (dialect, body) in [(ENTRIES, conversation), (Dialect::Mistral, chat)] {
        let (out, refused) = healed(&body, dialect, &answer).unwrap();
        assert!(!out.to_string().contains("Hm") && out.to_string().contains(r#""text":"a""#), "{out}");
        let again = |body: &Value| {
            leave_out_refused(body.to_string().as_bytes(), dialect, &refused, &RepairOptions::default())
                .map(|(body, _)| serde_json::from_slice::<Value>(&body).unwrap())
        };
        assert_eq!(again(&body), Some(out));
        let mut other = body.clone();
        other["model"] = json!("n");
        assert_eq!(again(&other), None);
    }
}

#[test]
fn r41_r77_a_conversation_has_a_model_or_an_agent() {
    let body = json!({ "model": "m", "agent_id": "ag_1", "inputs": [user("q")] });
    assert_eq!(errors(&body, ENTRIES), ["malformed"]);
    assert_eq!(repaired(&body, ENTRIES).0, json!({ "agent_id": "ag_1", "inputs": [user("q")] }));
    let (sent, report) = body_with(&json!({ "model": "m", "agent_id": "ag_1" }), &[]);
    assert_eq!((sent.get("model"), &sent["agent_id"]), (None, &json!("ag_1")));
    assert!(has(&report, &["malformed"]), "{report:?}");
}

#[test]
fn r41_r77_a_chunk_without_its_members_is_removed() {
    let text = json!({ "type": "text", "text": "a" });
    for chunk in [
        json!({ "type": "document_url" }),
        json!({ "type": "tool_file", "tool": "code_interpreter" }),
        json!({ "type": "thinking" }),
        json!({ "type": "image_url", "file_id": "f" }),
    ] {
        for entry_type in ["message.input", "message.output"] {
            let entry = |content: Value| json!({ "type": entry_type, "role": "assistant", "content": content });
            let body = json!({ "model": "m", "inputs": [user("q"), entry(json!([chunk, text])), user("p")] });
            assert_eq!(errors(&body, ENTRIES), ["malformed"], "{chunk}");
            assert_eq!(repaired_body(&body, ENTRIES)[1], entry(json!([text])), "{chunk}");
        }
    }
    // The text of another provider's block of reasoning is kept, in a list.
    let entry = |thinking: Value| json!([user("q"), { "type": "message.output", "content": [{ "type": "thinking", "thinking": thinking }, text] }]);
    let out = repaired_body(&json!({ "model": "m", "inputs": entry(json!("Hm")) }), ENTRIES);
    assert_eq!(out, entry(json!([{ "type": "text", "text": "Hm" }])));
    // A source is no chunk of the user.
    let source = json!({ "type": "tool_reference", "tool": "web_search", "title": "t" });
    let body = json!({ "model": "m", "inputs": [{ "role": "user", "content": [source, text] }] });
    assert_eq!(errors(&body, ENTRIES), ["unsupported_part"]);
    assert_eq!(repaired_body(&body, ENTRIES)[0]["content"][0]["type"], "text");
}

#[test]
fn r44_r77_reasoning_with_a_source_inside_keeps_its_text() {
    let source = json!({ "type": "tool_reference", "tool": "web_search", "title": "t" });
    let chunk = json!({ "type": "thinking", "thinking": [{ "type": "text", "text": "Hm" }, source, { "type": "text", "text": "!" }] });
    let answer =
        json!({ "type": "message.output", "role": "assistant", "content": [chunk, { "type": "text", "text": "a" }] });
    let body = json!({ "model": "m", "inputs": [user("q"), answer] });
    let items = decode_body(ENTRIES, JsonRef::parse(&body.to_string()).unwrap()).unwrap();
    let Some(Incoming::Message(message)) = items.last() else { panic!("{items:?}") };
    let Some(IncomingPart::Part(part)) = message.parts.first() else { panic!("{message:?}") };
    assert!(matches!(&part.body, PartBody::Reasoning(text) if text.decode() == "Hm!"), "{part:?}");
    assert_eq!(Stored::of(ENTRIES, &body).body(ENTRIES)["inputs"], body["inputs"]);
}

#[test]
fn r44_r77_an_effort_that_models_do_not_take_is_the_nearest_one() {
    let sent = |effort: &str| {
        let chat = json!({ "model": "m", "reasoning_effort": effort, "messages": [user("q")] });
        converted(&chat, CHAT, ENTRIES).0["completion_args"]["reasoning_effort"].clone()
    };
    assert_eq!(["none", "minimal", "low", "medium", "xhigh"].map(sent), ["none", "high", "high", "high", "high"]);
    let own = json!({ "model": "m", "completion_args": { "reasoning_effort": "low" } });
    assert_eq!(body_with(&own, &[]).0["completion_args"]["reasoning_effort"], "low");
}

#[test]
fn r55_r77_a_choice_of_a_tool_that_is_not_sent_is_reported_as_that() {
    let named = json!({ "type": "function", "function": { "name": "gone" } });
    let (body, report) = body_with(&json!({ "agent_id": "a", "tool_choice": named }), &[]);
    assert_eq!(body["completion_args"]["tool_choice"], "any");
    assert!(report.iter().all(|found| !found.message.contains("only these tools are sent")), "{report:?}");
    assert!(report.iter().any(|found| found.message.contains("any tool may be called")), "{report:?}");
}

#[test]
fn r41_r77_an_entry_of_the_system_is_the_users_repaired_or_stored() {
    for role in ["system", "developer"] {
        let entry = json!({ "type": "message.input", "role": role, "content": "Be brief." });
        let body = json!({ "model": "m", "inputs": [user("q"), entry] });
        let repaired = repaired_body(&body, ENTRIES);
        let (text, report) = Stored::of(ENTRIES, &body).bytes_for(&with_params(ENTRIES, "{}"), &[]);
        let stored: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&stored["inputs"], stored.get("instructions")), (&repaired, None), "{role}");
        assert_eq!(repaired[1]["role"], "user");
        assert!(has(&report, &["role_order"]), "{role}: {report:?}");
    }
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
