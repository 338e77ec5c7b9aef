//! Rules that no numbered case is about, and what other libraries do with broken histories.

use super::*;
use rethread::provider::{RepairOptions, repair, validate};
use serde_json::{Value, json};

fn thinking_block() -> Value {
    json!({ "type": "thinking", "thinking": "t", "signature": "s" })
}

#[test]
fn a_running_tool_loop_begins_with_thinking_or_thinking_is_disabled() {
    let mut body = claude(vec![
        user("q"),
        assistant_blocks(vec![thinking_block(), tool_use("a")]),
        user_blocks(vec![result("a", "1")]),
    ]);
    body["thinking"] = json!({ "type": "enabled", "budget_tokens": 5 });
    assert_accepted(body.clone(), CLAUDE);
    body["messages"][1] = assistant_blocks(vec![tool_use("a")]);
    assert_eq!(errors(&body, CLAUDE), ["unsigned_thinking"]);
    let out: Value =
        serde_json::from_slice(&repair(body.to_string().as_bytes(), CLAUDE, &RepairOptions::default()).unwrap().0)
            .unwrap();
    assert_eq!((&out["thinking"], &out["messages"]), (&json!({ "type": "disabled" }), &body["messages"]));
    // Thinking that is off may not stand at the end, and may in the middle.
    assert_accepted(claude(vec![user("q"), assistant_blocks(vec![thinking_block(), text("x")]), user("p")]), CLAUDE);
    let mut body = claude(vec![user("q"), assistant_blocks(vec![thinking_block(), text("x")])]);
    assert_accepted(body.clone(), CLAUDE);
    body["thinking"] = json!({ "type": "disabled" });
    assert_eq!(errors(&body, CLAUDE), ["orphan_reasoning"]);
    assert_eq!(repaired_body(&body, CLAUDE), json!([user("q"), assistant_blocks(vec![text("x")])]));
}

#[test]
fn an_unknown_role_is_repaired_and_its_text_kept() {
    assert_chat_repair(
        vec![
            json!({ "role": "model", "content": "x" }),
            json!({ "role": 1, "content": "y" }),
            json!({ "content": "z" }),
        ],
        "role_order",
        vec![assistant("x"), user("y"), json!({ "content": "z", "role": "user" })],
    );
    assert_claude_repair(vec![json!({ "role": "tool", "content": "x" })], "role_order", vec![user("x")]);
    // A call in a user's message is the assistant's; its answer stays.
    assert_claude_repair(
        vec![user_blocks(vec![text("q"), tool_use("a")]), user_blocks(vec![result("a", "1")])],
        "role_order",
        vec![user_blocks(vec![text("q")]), assistant_blocks(vec![tool_use("a")]), user_blocks(vec![result("a", "1")])],
    );
    assert_claude_repair(
        vec![assistant_blocks(vec![tool_use("a"), result("a", "1"), text("x")])],
        "interposed_message",
        vec![assistant_blocks(vec![tool_use("a"), text("x")]), user_blocks(vec![result("a", "1")])],
    );
}

#[test]
fn rules_that_depend_on_the_models_name() {
    let mut body = chat(vec![json!({ "role": "developer", "content": "d" }), user("q")]);
    assert_accepted(body.clone(), CHAT);
    body["model"] = json!("o1-mini");
    assert_eq!(errors(&body, CHAT), ["role_order"]);
    let mut body = chat(vec![
        json!({ "role": "user", "content": [{ "type": "input_audio", "input_audio": { "data": "AAAA", "format": "mp3" } }] }),
    ]);
    assert_accepted(body.clone(), CHAT);
    body["model"] = json!("gpt-5-mini");
    assert_eq!(errors(&body, CHAT), ["unsupported_part"]);
    body["model"] = json!("gpt-4o-audio-preview");
    assert_accepted(body, CHAT);
}

/// Rows of what four libraries do with broken histories: thrown, dropped, run again, invented, or sent as they are.
#[test]
fn r41_bodies_that_other_libraries_repair_wrongly() {
    assert_chat_repair(
        vec![user("q"), calls(&["a"]), user("p")],
        "dangling_call",
        vec![user("q"), calls(&["a"]), interrupted_tool("a"), user("p")],
    );
    assert_chat_repair(
        vec![user("q"), calls(&["a", "b"]), tool("a", "1")],
        "missing_parallel_result",
        vec![user("q"), calls(&["a", "b"]), tool("a", "1"), interrupted_tool("b")],
    );
    assert_chat_repair(vec![user("q"), tool("a", "1")], "orphan_result", vec![user("q")]);
    assert_chat_repair(
        vec![user("q"), calls(&["a"]), user("p"), tool("a", "1")],
        "interposed_message",
        vec![user("q"), calls(&["a"]), tool("a", "1"), user("p")],
    );
    assert_accepted(chat(vec![user("q"), calls(&["a", "b"]), tool("b", "2"), tool("a", "1")]), CHAT);
    assert_accepted(
        chat(vec![user("q"), calls(&["a"]), tool("a", "1"), user("p"), calls(&["a"]), tool("a", "2")]),
        CHAT,
    );
    assert_chat_repair(
        vec![user("q"), calls(&["a"]), tool("a", "1"), tool("a", "1")],
        "duplicate_result",
        vec![user("q"), calls(&["a"]), tool("a", "1")],
    );
}

#[test]
fn r40_findings_have_pointer_call_id_and_the_providers_message() {
    let report =
        validate(chat(vec![user("q"), calls(&["a", "b"]), tool("a", "1"), user("p")]).to_string().as_bytes(), CHAT);
    let found = &report[0];
    assert_eq!(
        (found.code.as_str(), found.path.as_deref(), found.call_id.as_deref()),
        ("missing_parallel_result", Some("/messages/1/tool_calls/1"), Some("b"))
    );
    assert!(found.message.starts_with(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'."
    ));
    let report = validate(
        claude(vec![user("q"), assistant_blocks(vec![text("x"), tool_use("a")])]).to_string().as_bytes(),
        CLAUDE,
    );
    assert_eq!(
        (report[0].code.as_str(), report[0].path.as_deref(), report[0].call_id.as_deref()),
        ("dangling_call", Some("/messages/1/content/1"), Some("a"))
    );
    assert!(report[0].message.contains("ids were found without `tool_result` blocks immediately after: a."));
}

#[test]
fn r05_a_missing_or_empty_id_is_synthesized_equally_for_call_and_result() {
    for missing in [json!(""), Value::Null, json!({})] {
        let mut given = chat(vec![calls(&["a", "b"]), tool("", "2"), tool("b", "1")]);
        given["messages"][0]["tool_calls"][0]["id"] = missing.clone();
        given["messages"][1]["tool_call_id"] = missing.clone();
        let out = repaired_body(&given, CHAT);
        let id = out[0]["tool_calls"][0]["id"].as_str().unwrap();
        assert!(!id.is_empty());
        assert_eq!(out[1], tool(id, "2"));
        let mut given = claude(vec![assistant_blocks(vec![tool_use("a")]), user_blocks(vec![result("", "2")])]);
        given["messages"][0]["content"][0]["id"] = missing;
        let out = repaired_body(&given, CLAUDE);
        assert_eq!(out[1]["content"][0]["tool_use_id"], out[0]["content"][0]["id"]);
    }
    // A result without an id, in its place, answers the call that has none yet, and a call without one takes its
    // result's.
    let mut given = chat(vec![calls(&["a", "b"]), tool("b", "2"), json!({ "role": "tool", "content": "1" })]);
    assert_eq!(
        repaired_body(&given, CHAT),
        json!([calls(&["a", "b"]), tool("b", "2"), { "role": "tool", "content": "1", "tool_call_id": "a" }])
    );
    given["messages"] = json!([{ "role": "assistant", "tool_calls": [{ "type": "function", "function": { "name": "f", "arguments": "{}" } }] }, tool("x1", "1")]);
    let out = repaired_body(&given, CHAT);
    assert_eq!((&out[0]["tool_calls"][0]["id"], &out[1]), (&json!("x1"), &tool("x1", "1")));
}

#[test]
fn r40_anthropic_accepts_four_cache_marks() {
    let mark = json!({"type": "ephemeral"});
    let marked = |text: &str| json!({"type": "text", "text": text, "cache_control": mark});
    let mut body = claude(vec![
        user_blocks(vec![marked("1"), marked("2")]),
        assistant_blocks(vec![json!({"type": "tool_use", "id": "a", "name": "f", "input": {"cache_control": 1}})]),
        user_blocks(vec![
            json!({"type": "tool_result", "tool_use_id": "a", "content": [marked("3")], "cache_control": mark}),
        ]),
    ]);
    assert_accepted(body.clone(), CLAUDE);
    body["system"] = json!([marked("s")]);
    assert_eq!(errors(&body, CLAUDE), ["malformed"]);
    let (out, _) = repair(body.to_string().as_bytes(), CLAUDE, &RepairOptions::default()).unwrap();
    let mut want = body;
    want["messages"][0]["content"][0].as_object_mut().unwrap().shift_remove("cache_control");
    assert_eq!(serde_json::from_slice::<Value>(&out).unwrap(), want);
}

/// Like `assert_chat_repair`, for a Mistral body that ends in a question.
fn assert_mistral_repair(messages: Vec<Value>, code: &str, expected: Vec<Value>) {
    let with_question = |mut list: Vec<Value>| {
        list.push(user("?"));
        chat(list)
    };
    let body = with_question(messages);
    assert!(errors(&body, MISTRAL).contains(&code), "{code} not in {body}");
    assert_eq!(repaired_body(&body, MISTRAL), with_question(expected)["messages"]);
    assert_accepted(with_question(repaired_body(&body, MISTRAL).as_array().unwrap().clone()), MISTRAL);
}

#[test]
fn r40_r41_mistral_rejects_a_system_message_after_an_answer_or_a_result() {
    let (call, tool) = (calls(&["abcdefghi"]), tool("abcdefghi", "1"));
    assert_mistral_repair(
        vec![user("q"), assistant("x"), system("s"), system("t")],
        "role_order",
        vec![user("q"), assistant("x"), user("s"), system("t")],
    );
    assert_mistral_repair(
        vec![user("q"), call.clone(), tool.clone(), json!({ "content": [text("s")], "role": "system", "name": "n" })],
        "role_order",
        vec![user("q"), call.clone(), tool.clone(), json!({ "content": [text("s")], "role": "user", "name": "n" })],
    );
    assert_mistral_repair(
        vec![user("q"), assistant("x"), json!({ "role": "developer", "content": "s" })],
        "role_order",
        vec![user("q"), assistant("x"), user("s")],
    );
    // Where the result is put behind its call, and where the answer goes, it stands after the user.
    assert_mistral_repair(
        vec![user("q"), call.clone(), user("p"), tool.clone(), system("s")],
        "interposed_message",
        vec![user("q"), call, tool, user("p"), system("s")],
    );
    assert_mistral_repair(vec![user("q"), assistant(""), system("s")], "empty_content", vec![user("q"), system("s")]);
    assert_accepted(
        chat(vec![system("s"), system("t"), user("q"), system("u"), user("p"), assistant("x"), user("?")]),
        MISTRAL,
    );
    assert_accepted(chat(vec![user("q"), assistant("x"), system("s"), user("?")]), CHAT);
}

#[test]
fn r40_r41_mistral_rejects_an_answer_without_content_and_calls() {
    for given in [
        assistant(""),
        json!({ "role": "assistant", "content": [] }),
        json!({ "role": "assistant", "content": null }),
        json!({ "role": "assistant" }),
        json!({ "role": "assistant", "content": "", "tool_calls": [], "id": "x" }),
        json!({ "role": "assistant", "content": "", "prefix": false }),
    ] {
        assert_mistral_repair(vec![user("q"), given], "empty_content", vec![user("q")]);
    }
    let last = chat(vec![user("q"), json!({ "role": "assistant", "content": "", "prefix": true })]);
    assert_eq!(errors(&last, MISTRAL), ["empty_content"]);
    assert_eq!(repaired_body(&last, MISTRAL), json!([user("q")]));
    assert_accepted(chat(vec![user("q"), assistant(""), user("?")]), CHAT);
}

#[test]
fn r40_parts_and_calls_documented_by_compatible_servers_are_kept() {
    let (document, reasons) = (
        json!({ "type": "document", "document": { "data": { "t": 1 }, "id": "d" } }),
        json!({ "type": "reasoning", "summary": [{ "type": "summary_text", "text": "hm", "signature": "s" }] }),
    );
    let thinks = json!({ "type": "thinking", "thinking": "hm", "closed": true });
    for (role, part) in [("user", &document), ("assistant", &reasons), ("assistant", &thinks)] {
        let with = |role: &str| chat(vec![json!({ "role": role, "content": [part, text("x")] }), user("?")]);
        assert_accepted(with(role), CHAT);
        assert_eq!(errors(&with("system"), CHAT), ["unsupported_part"], "{part}");
    }
    for part in [
        json!({ "type": "document", "source": { "type": "text", "media_type": "text/plain", "data": "d" } }),
        thinking_block(),
        super::reasoning_item(),
    ] {
        for role in ["user", "assistant"] {
            let body = chat(vec![json!({ "role": role, "content": [part, text("x")] }), user("?")]);
            assert_eq!(errors(&body, CHAT), ["unsupported_part"], "{role} {part}");
        }
    }
    // Kimi runs a tool of its own when the call comes back.
    let call =
        json!({ "id": "a", "type": "builtin_function", "function": { "name": "$web_search", "arguments": "{}" } });
    let called = |call: Value| {
        vec![user("q"), json!({ "role": "assistant", "content": "", "tool_calls": [call] }), tool("a", "{}")]
    };
    assert_accepted(chat(called(call.clone())), CHAT);
    let mut other = call;
    other["type"] = json!("function");
    assert_chat_repair(called(other.clone()), "malformed", {
        other["function"]["name"] = json!("_web_search");
        called(other)
    });
}

#[test]
fn r40_r41_an_object_without_its_required_member_is_an_error() {
    for kind in ["image_url", "file", "input_audio"] {
        assert_chat_repair(
            vec![json!({ "role": "user", "content": [{ "type": kind }, text("x")] })],
            "malformed",
            vec![json!({ "role": "user", "content": [text("x")] })],
        );
        assert_chat_repair(
            vec![json!({ "role": "user", "content": [{ "type": kind, kind: null }] }), user("x")],
            "malformed",
            vec![user("x")],
        );
    }
    assert_accepted(chat(vec![json!({ "role": "user", "content": [{ "type": "file", "file_id": "f" }] })]), MISTRAL);
}
