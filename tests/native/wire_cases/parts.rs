//! Cases 34 to 40: thinking and signatures.

use crate::wire_cases::*;
use serde_json::json;

fn signed() -> Value {
    json!({ "type": "thinking", "thinking": "hmm", "signature": "c2ln" })
}

fn redacted() -> Value {
    json!({ "type": "redacted_thinking", "data": "b3BhcXVl" })
}

/// Stored and rendered again for its own dialect, a conversation is what it was, byte for byte.
fn returns(dialect: Dialect, list: &Value, params: &str) {
    let mut body: Value = serde_json::from_str(params).unwrap();
    body[list_name(dialect)] = list.clone();
    assert_accepted(body.clone(), dialect);
    let (text, _) = Stored::of(dialect, &body).bytes_for(&with_params(dialect, params), &[]);
    let out: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(out[list_name(dialect)].to_string(), list.to_string());
}

const THINKING: &str = r#"{"model":"m","max_tokens":99,"thinking":{"type":"enabled","budget_tokens":50}}"#;

#[test]
fn wf_34_thinking_in_a_tool_loop_is_unchanged_and_comes_first() {
    let list = json!([
        user("q"),
        assistant_blocks(vec![signed(), text("so"), tool_use("a")]),
        user_blocks(vec![result("a", "1")]),
        assistant_blocks(vec![signed(), tool_use("b"), tool_use("c")]),
        user_blocks(vec![result("b", "2"), result("c", "3")]),
    ]);
    returns(CLAUDE, &list, THINKING);
    // As it was written: order of members, escapes.
    let odd = r#"{"signature":"c2ln","thinking":"h\u006dm\/","type":"thinking"}"#;
    let body = format!(
        r#"{{"max_tokens":99,"messages":[{{"role":"user","content":"q"}},{{"role":"assistant","content":[{odd},{}]}}]}}"#,
        tool_use("a")
    );
    let mut stored = Stored::new();
    stored.append(CLAUDE, &body);
    for out in [
        stored.bytes_for(&with_params(CLAUDE, THINKING), &[]).0,
        String::from_utf8(repair(body.as_bytes(), CLAUDE, &RepairOptions::default()).unwrap().0).unwrap(),
    ] {
        assert!(out.contains(&format!(r#""content":[{odd},"#)) && out.contains("Interrupted"), "{out}");
    }
}

#[test]
fn wf_35_redacted_thinking_keeps_its_data() {
    let list = json!([
        user("q"),
        assistant_blocks(vec![redacted(), signed(), redacted(), tool_use("a")]),
        user_blocks(vec![result("a", "1")]),
        assistant_blocks(vec![redacted(), text("x")]),
        user("p"),
    ]);
    returns(CLAUDE, &list, THINKING);
    returns(CLAUDE, &list, r#"{"model":"m","max_tokens":99}"#);
    assert_claude_repair(
        vec![user("q"), assistant_blocks(vec![signed(), redacted(), tool_use("a")])],
        "dangling_call",
        vec![
            user("q"),
            assistant_blocks(vec![signed(), redacted(), tool_use("a")]),
            user_blocks(vec![interrupted_result("a")]),
        ],
    );
}

#[test]
fn wf_36_thinking_of_another_provider_is_not_sent() {
    let bodies = [
        (
            CLAUDE,
            claude(vec![
                user("q"),
                assistant_blocks(vec![
                    json!({ "type": "thinking", "thinking": "HMM", "signature": "U0lHTkVE" }),
                    json!({ "type": "redacted_thinking", "data": "U0lHTkVE" }),
                    text("so"),
                    tool_use("a"),
                ]),
                user_blocks(vec![result("a", "1")]),
                assistant_blocks(vec![text("x")]),
                user("p"),
            ]),
        ),
        (
            GEMINI,
            json!({ "contents": [user_parts(vec![text_part("q")]), model_parts(vec![json!({ "text": "HMM", "thought": true }), text_part("so"), json!({ "functionCall": { "name": "f", "args": {} }, "thoughtSignature": "U0lHTkVE" })]), user_parts(vec![function_response("f", "1")]), model_parts(vec![json!({ "text": "x", "thoughtSignature": "U0lHTkVE" })]), user_parts(vec![text_part("p")])] }),
        ),
        (
            RESPONSES,
            json!({ "model": "m", "input": [user("q"), { "type": "reasoning", "id": "rs_1", "summary": [{ "type": "summary_text", "text": "HMM" }], "encrypted_content": "U0lHTkVE" }, { "type": "message", "id": "msg_1", "role": "assistant", "content": [{ "type": "output_text", "text": "so", "annotations": [] }] }, call_item("a"), output_item("a", "1"), { "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "x", "annotations": [] }] }, user("p")] }),
        ),
        (
            CHAT,
            chat(vec![
                user("q"),
                json!({ "role": "assistant", "reasoning_content": "HMM", "reasoning_details": [{ "type": "reasoning.encrypted", "data": "U0lHTkVE" }], "content": "so", "tool_calls": [call("a")] }),
                tool("a", "1"),
                assistant("x"),
                user("p"),
            ]),
        ),
        (
            MISTRAL,
            chat(vec![
                user("q"),
                json!({ "role": "assistant", "content": [{ "type": "thinking", "thinking": [{ "type": "text", "text": "HMM" }] }, { "type": "text", "text": "so" }], "tool_calls": [call("aaaaaaaaa")] }),
                tool("aaaaaaaaa", "1"),
                assistant("x"),
                user("p"),
            ]),
        ),
    ];
    for (from, body) in bodies {
        assert_accepted(body.clone(), from);
        for to in ALL {
            let stored = Stored::of(from, &body).body(to);
            let thought = stored.to_string().contains("HMM");
            assert_eq!(thought, to == from, "{from:?} {to:?} {stored}");
            for out in [stored, converted(&body, from, to).0] {
                let text = out.to_string();
                assert!(to == from || !text.contains("HMM") && !text.contains("U0lHTkVE"), "{from:?} {to:?} {out}");
                assert_eq!(read(to, &out), "u q; a so; c 1; r 1=1; a x; u p", "{from:?} {to:?} {out}");
            }
        }
    }
}

#[test]
fn wf_37_unsigned_thinking_is_not_sent() {
    for unsigned in [
        json!({ "type": "thinking", "thinking": "HMM" }),
        json!({ "type": "thinking", "thinking": "HMM", "signature": "" }),
        json!({ "type": "thinking", "thinking": "HMM", "signature": null }),
    ] {
        let body = claude(vec![
            user("q"),
            assistant_blocks(vec![unsigned, text("so"), tool_use("a")]),
            user_blocks(vec![result("a", "1")]),
        ]);
        for to in ALL {
            let (out, report) = Stored::of(CLAUDE, &body).bytes(to);
            assert!(!out.contains("HMM"), "{to:?} {out}");
            assert!(to != CLAUDE || !report.is_empty());
            assert_eq!(read(to, &serde_json::from_str(&out).unwrap()), "u q; a so; c 1; r 1=1", "{to:?} {out}");
        }
        assert!(!repaired(&body, CLAUDE).0.to_string().contains("HMM"));
    }
    for unsigned in [
        json!({ "type": "thinking", "thinking": "t" }),
        json!({ "type": "thinking", "thinking": "t", "signature": "" }),
        json!({ "type": "redacted_thinking" }),
    ] {
        assert_claude_repair(
            vec![user("q"), assistant_blocks(vec![unsigned, text("x")]), user("p")],
            "unsigned_thinking",
            vec![user("q"), assistant_blocks(vec![text("x")]), user("p")],
        );
    }
}

fn signed_call(name: &str, signature: &str) -> Value {
    json!({ "functionCall": { "name": name, "args": {} }, "thoughtSignature": signature })
}

/// Whether each call of a body is signed, in order.
fn signed_calls(body: &Value) -> Vec<bool> {
    let parts = body["contents"].as_array().unwrap().iter().flat_map(|content| content["parts"].as_array().unwrap());
    parts.filter(|part| part.get("functionCall").is_some()).map(|part| part["thoughtSignature"].is_string()).collect()
}

#[test]
fn wf_38_only_the_first_of_parallel_gemini_calls_is_signed() {
    let list = json!([
        user_parts(vec![text_part("q")]),
        model_parts(vec![signed_call("f", "b25l"), function_call("g"), function_call("h")]),
        user_parts(vec![function_response("f", "1"), function_response("g", "2"), function_response("h", "3")]),
    ]);
    returns(GEMINI, &list, "{}");
    assert_accepted(json!({ "model": "gemini-3-pro", "contents": list }), GEMINI);
    // Of another model's calls the first one takes the stand-in, and no other.
    for from in [CHAT, CLAUDE, RESPONSES, MISTRAL] {
        let body = write(from, "u q; c a b; r a=1 b=2; c c d; r c=3 d=4");
        for out in [Stored::of(from, &body).body(GEMINI), converted(&body, from, GEMINI).0] {
            assert_eq!(signed_calls(&out), [true, false, true, false], "{from:?} {out}");
        }
    }
    // Bare, the call of a Gemini 3 body gets it, too.
    let bare = json!({ "model": "gemini-3-pro", "contents": [user_parts(vec![text_part("q")]), model_parts(vec![function_call("f"), function_call("g")]), user_parts(vec![function_response("f", "1"), function_response("g", "2")])] });
    assert_eq!(errors(&bare, GEMINI), ["unsigned_thinking"]);
    assert_eq!(signed_calls(&repaired(&bare, GEMINI).0), [true, false]);
}

#[test]
fn wf_39_each_sequential_gemini_step_has_its_own_signature() {
    let list = json!([
        user_parts(vec![text_part("q")]),
        model_parts(vec![signed_call("f", "b25l")]),
        user_parts(vec![function_response("f", "1")]),
        model_parts(vec![signed_call("f", "dHdv"), function_call("g")]),
        user_parts(vec![function_response("f", "2"), function_response("g", "3")]),
        model_parts(vec![signed_call("g", "dGhyZWU=")]),
        user_parts(vec![function_response("g", "4")]),
    ]);
    returns(GEMINI, &list, "{}");
    assert_accepted(json!({ "model": "gemini-3-pro", "contents": list }), GEMINI);
    let signed = |name: &str| json!({ "functionCall": { "name": name, "args": {} }, "thoughtSignature": "c2ln" });
    let body = json!({ "model": "gemini-3-pro", "contents": [user_parts(vec![text_part("q")]), model_parts(vec![signed("f"), function_call("g")]), user_parts(vec![function_response("f", "1"), function_response("g", "2")]), model_parts(vec![signed("f")]), user_parts(vec![function_response("f", "3")])] });
    assert_accepted(body.clone(), GEMINI);
    let mut bare = body;
    bare["contents"][3]["parts"][0] = function_call("f");
    assert_eq!(errors(&bare, GEMINI), ["unsigned_thinking"]);
    assert_eq!(
        repaired_body(&bare, GEMINI)[3]["parts"][0]["thoughtSignature"],
        "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="
    );
    // The address names the model as a rule: then it is a warning.
    bare.as_object_mut().unwrap().remove("model");
    assert_accepted(bare, GEMINI);
}

#[test]
fn wf_40_a_signature_on_an_empty_text_is_kept() {
    let list = json!([
        user_parts(vec![text_part("q")]),
        model_parts(vec![text_part("x"), json!({ "text": "", "thoughtSignature": "c2ln" })]),
        user_parts(vec![text_part("p")]),
    ]);
    returns(GEMINI, &list, "{}");
    let alone = json!([
        user_parts(vec![text_part("q")]),
        model_parts(vec![json!({ "text": "", "thoughtSignature": "c2ln" })]),
        user_parts(vec![text_part("p")])
    ]);
    returns(GEMINI, &alone, "{}");
}
