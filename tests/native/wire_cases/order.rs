//! Cases 41 to 55: what was trimmed, items of Responses, server tools, roles, and how a conversation ends.

use crate::wire_cases::*;
use rethread::provider::{AnswerStatus, Dangling, StreamAssembler};
use rethread::replay::StaleUnit;
use serde_json::json;

/// A body without its first messages, and without its last ones.
fn trimmed(dialect: Dialect, talk: &str) -> Vec<Value> {
    let body = write(dialect, talk);
    let list = body[list_name(dialect)].as_array().unwrap().clone();
    let cuts = (0..list.len()).flat_map(|at| [list[at..].to_vec(), list[..=at].to_vec()]);
    cuts.map(|list| {
        let mut body = body.clone();
        body[list_name(dialect)] = list.into();
        body
    })
    .collect()
}

const LONG: &str = "u q; a so + c a b; r b=2 a=1; c c; r c=3; a x; u p; c d; r d=4; a y; u n";

#[test]
fn wf_41_a_trimmed_gemini_history_begins_with_a_user_message_never_with_a_call() {
    for from in ALL {
        for body in trimmed(from, LONG) {
            let mut outs = vec![Stored::of(from, &body).body(GEMINI), converted(&body, from, GEMINI).0];
            if from == GEMINI {
                outs.push(repaired(&body, from).0);
            }
            for out in outs {
                // An answer in words may come first: no refusal of that is known.
                let opening =
                    out["contents"].as_array().unwrap().iter().take_while(|content| content["role"] != "user");
                let opening: Vec<_> = opening.map(Value::to_string).collect();
                assert!(!opening.concat().contains("functionCall"), "{from:?} {body} {out}");
                let first = out["contents"][0].to_string();
                assert!(!first.contains("functionResponse"), "{from:?} {body} {out}");
            }
        }
    }
    let go_on = || user_parts(vec![text_part("Continue.")]);
    assert_gemini_repair(
        vec![model_parts(vec![function_call("f")]), user_parts(vec![function_response("f", "1")])],
        "role_order",
        vec![go_on(), model_parts(vec![function_call("f")]), user_parts(vec![function_response("f", "1")])],
    );
}

#[test]
fn wf_42_a_cut_inside_a_block_is_moved_to_its_boundary() {
    for from in ALL {
        for body in trimmed(from, LONG) {
            // Reading panics at a result without its call; `accepted` looks at the rest.
            let before: Vec<String> = unpaired(from, &body);
            let mut outs = vec![(from, repaired(&body, from).0)];
            for to in ALL {
                outs.push((to, Stored::of(from, &body).body(to)));
                outs.push((to, converted(&body, from, to).0));
            }
            for (to, out) in outs {
                let steps = raw(to, &out);
                for said in &before {
                    assert!(steps.contains(said), "{from:?} {to:?} lost {said}: {body} {out}");
                }
                let count = |kind: &str| steps.iter().filter(|step| step.starts_with(kind)).count();
                assert_eq!(count("c "), count("r "), "{from:?} {to:?} {out}");
            }
        }
    }
    assert_chat_repair(
        vec![tool("b", "2"), assistant("x"), user("p")],
        "orphan_result",
        vec![assistant("x"), user("p")],
    );
    assert_claude_repair(
        vec![user_blocks(vec![result("b", "2"), text("p")]), assistant_blocks(vec![text("x")])],
        "orphan_result",
        vec![user_blocks(vec![text("p")]), assistant_blocks(vec![text("x")])],
    );
}

/// The texts of a body whose pairs may be torn.
fn unpaired(dialect: Dialect, body: &Value) -> Vec<String> {
    let text = body.to_string();
    let steps = LONG.split("; ").flat_map(|step| step.split(" + "));
    let said = steps.filter(|step| step.starts_with("u ") || step.starts_with("a "));
    said.filter(|step| {
        let words = json!(step[2..]).to_string();
        let key = if dialect == CHAT || dialect == MISTRAL { "content" } else { "" };
        text.contains(&format!(r#""{key}":{words}"#))
            || text.contains(&format!(r#""text":{words}"#))
            || text.contains(&format!(r#""content":{words}"#))
    })
    .map(str::to_owned)
    .collect()
}

fn reasoning(id: Option<&str>) -> Value {
    let mut item = json!({ "type": "reasoning", "summary": [], "encrypted_content": "gAAA" });
    if let Some(id) = id {
        item["id"] = json!(id);
    }
    item
}

fn called(id: &str, item: &str) -> Value {
    json!({ "type": "function_call", "id": item, "call_id": id, "name": "f", "arguments": "{}", "status": "completed" })
}

fn answered(item: &str, text: &str) -> Value {
    json!({ "type": "message", "id": item, "role": "assistant", "status": "completed", "content": [{ "type": "output_text", "text": text, "annotations": [] }] })
}

fn responses(input: &Value) -> Value {
    json!({ "model": "m", "input": input })
}

#[test]
fn wf_43_reasoning_stays_directly_before_its_call() {
    let lists = [
        json!([
            user("q"),
            reasoning(Some("rs_1")),
            called("a", "fc_1"),
            output_item("a", "1"),
            reasoning(Some("rs_2")),
            answered("msg_1", "x"),
            user("p")
        ]),
        json!([
            user("q"),
            reasoning(Some("rs_1")),
            called("a", "fc_1"),
            called("b", "fc_2"),
            output_item("a", "1"),
            output_item("b", "2"),
            user("p")
        ]),
        json!([
            user("q"),
            reasoning(Some("rs_1")),
            reasoning(Some("rs_2")),
            called("a", "fc_1"),
            output_item("a", "1")
        ]),
        // Nobody stored it, so it has no ids.
        json!([user("q"), reasoning(None), call_item("a"), output_item("a", "1"), answered("msg_1", "x"), user("p")]),
        json!([
            user("q"),
            reasoning(Some("rs_1")),
            answered("msg_1", "so"),
            called("a", "fc_1"),
            output_item("a", "1")
        ]),
    ];
    for list in lists {
        let body = responses(&list);
        assert_accepted(body.clone(), RESPONSES);
        assert_eq!(Stored::of(RESPONSES, &body).body(RESPONSES)["input"].to_string(), list.to_string());
    }
    // An open call is closed behind it.
    let open = responses(&json!([user("q"), reasoning(Some("rs_1")), called("a", "fc_1"), user("p")]));
    for out in [repaired(&open, RESPONSES).0, Stored::of(RESPONSES, &open).body(RESPONSES)] {
        assert_eq!(out["input"][1], reasoning(Some("rs_1")), "{out}");
        assert_eq!(out["input"][2], called("a", "fc_1"), "{out}");
        assert_eq!(out["input"][3]["type"], "function_call_output", "{out}");
    }
    assert_accepted(
        json!({ "input": [user("q"), reasoning_item(), call_item("a"), call_item("b"), output_item("a", "1"), output_item("b", "2")] }),
        RESPONSES,
    );
}

#[test]
fn wf_44_reasoning_without_the_item_that_followed_it_is_dropped() {
    assert_responses_repair(vec![user("q"), reasoning_item()], "orphan_reasoning", vec![user("q")]);
    assert_responses_repair(
        vec![user("q"), reasoning_item(), user("p")],
        "orphan_reasoning",
        vec![user("q"), user("p")],
    );
    assert_responses_repair(
        vec![user("q"), reasoning_item(), assistant("x"), user("p")],
        "orphan_reasoning",
        vec![user("q"), assistant("x"), user("p")],
    );
    // Shared by parallel calls: it stays with the one that stays.
    let omit = RepairOptions { dangling: Dangling::Omit, dangling_text: None };
    let body = json!({ "input": [user("q"), reasoning_item(), call_item("a"), call_item("b"), output_item("b", "2")] });
    assert_eq!(
        repaired_body_with(&body, RESPONSES, &omit),
        json!([user("q"), reasoning_item(), call_item("b"), output_item("b", "2")])
    );
    // Stored: the call is too old to be shown.
    let list = json!([
        user("q"),
        reasoning(Some("rs_1")),
        called("a", "fc_1"),
        output_item("a", "1"),
        reasoning(Some("rs_2")),
        answered("msg_1", "x"),
        user("p"),
    ]);
    let stale =
        PolicyLayer { freshness: Some(Window::Millis(0)), stale_unit: Some(StaleUnit::Call), ..PolicyLayer::default() };
    let policy = Policy { call: stale, ..Policy::default() };
    let stored = Stored::of(RESPONSES, &responses(&list));
    let out: Value = serde_json::from_str(&stored.bytes_by(&request(RESPONSES), &[], &policy).0).unwrap();
    assert_eq!(out["input"], json!([user("q"), reasoning(Some("rs_2")), answered("msg_1", "x"), user("p")]));
    // Trimmed at every place, none is left without what follows it.
    let items = list.as_array().unwrap();
    for end in 1..=items.len() {
        for body in [responses(&json!(items[..end])), responses(&json!(items[end - 1..]))] {
            for out in [repaired(&body, RESPONSES).0, Stored::of(RESPONSES, &body).body(RESPONSES)] {
                let input = out["input"].as_array().unwrap();
                for (at, item) in input.iter().enumerate().filter(|(_, item)| item["type"] == "reasoning") {
                    let follower = input.get(at + 1).map_or("", |next| next["id"].as_str().unwrap_or(""));
                    assert!(follower == "fc_1" || follower == "msg_1", "{item} {out}");
                }
            }
        }
    }
}

#[test]
fn wf_45_without_its_reasoning_a_call_loses_its_item_id_and_keeps_its_call_id() {
    // The message behind the reasoning has lost its id: the reasoning is refused.
    let list = json!([
        user("q"),
        reasoning(Some("rs_1")),
        assistant("so"),
        called("a", "fc_1"),
        output_item("a", "1"),
        user("p")
    ]);
    let body = responses(&list);
    assert!(errors(&body, RESPONSES).contains(&"orphan_reasoning"));
    for out in [repaired(&body, RESPONSES).0, Stored::of(RESPONSES, &body).body(RESPONSES)] {
        let text = out.to_string();
        assert!(!text.contains("rs_1") && !text.contains("fc_1"), "{out}");
        assert!(
            out["input"]
                .as_array()
                .unwrap()
                .iter()
                .any(|item| item["type"] == "function_call" && item["call_id"] == "a"),
            "{out}"
        );
        assert_eq!(read(RESPONSES, &out), "u q; a so; c 1; r 1=1; u p");
    }
    // For another provider reasoning and ids stay behind both.
    for to in [CHAT, CLAUDE, MISTRAL, GEMINI] {
        let out = Stored::of(RESPONSES, &body).body(to).to_string();
        assert!(!out.contains("rs_1") && !out.contains("fc_1") && !out.contains("gAAA"), "{out}");
    }
}

#[test]
fn wf_46_a_call_id_is_never_sent_as_an_item_id() {
    let body = responses(&json!([user("q"), called("call_1", "call_1"), output_item("call_1", "1"), user("p")]));
    for out in [repaired(&body, RESPONSES).0, Stored::of(RESPONSES, &body).body(RESPONSES)] {
        assert!(out["input"][1].get("id").is_none(), "{out}");
        assert_eq!(out["input"][1]["call_id"], "call_1");
        assert_eq!(read(RESPONSES, &out), "u q; c 1; r 1=1; u p");
    }
    for from in ALL {
        let body = write(from, "u q; c call_1; r call_1=1; u p");
        for out in [Stored::of(from, &body).body(RESPONSES), converted(&body, from, RESPONSES).0] {
            assert!(!out.to_string().contains(r#""id":"call_"#), "{from:?} {out}");
        }
    }
    let mut given = call_item("call_1");
    given["id"] = json!("call_1");
    assert_responses_repair(
        vec![given, output_item("call_1", "1")],
        "invalid_call_id",
        vec![call_item("call_1"), output_item("call_1", "1")],
    );
}

#[test]
fn wf_47_a_body_that_refers_to_a_stored_response_needs_only_new_items() {
    for input in [
        json!([output_item("a", "1")]),
        json!([output_item("a", "1"), output_item("b", "2"), user("p")]),
        json!([user("p")]),
    ] {
        let body = json!({ "model": "m", "previous_response_id": "resp_1", "input": input });
        assert_accepted(body.clone(), RESPONSES);
        assert!(has(
            &validate(json!({ "input": [output_item("a", "1")] }).to_string().as_bytes(), RESPONSES),
            &["orphan_result"]
        ));
    }
    assert_accepted(json!({ "previous_response_id": "resp_1", "input": [output_item("a", "1")] }), RESPONSES);
    assert_accepted(json!({ "input": "hello" }), RESPONSES);
}

#[test]
fn wf_48_a_server_call_is_never_a_client_call() {
    let served =
        json!({ "type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": { "query": "x" } });
    let found = json!({ "type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{ "type": "web_search_result", "url": "https://x.example", "title": "X", "encrypted_content": "e" }] });
    let search = json!({ "type": "web_search_call", "id": "ws_1", "status": "completed", "action": { "type": "search", "query": "x" } });
    let given = [
        (CLAUDE, json!([user("q"), assistant_blocks(vec![served, found, text("x")]), user("p")])),
        (RESPONSES, json!([user("q"), search, answered("msg_1", "x"), user("p")])),
        (
            GEMINI,
            json!([
                user_parts(vec![text_part("q")]),
                model_parts(vec![
                    json!({ "executableCode": { "language": "PYTHON", "code": "print(1)" } }),
                    json!({ "codeExecutionResult": { "outcome": "OUTCOME_OK", "output": "1" } }),
                    text_part("x"),
                ]),
                user_parts(vec![text_part("p")]),
            ]),
        ),
    ];
    for (from, list) in given {
        let mut body = json!({ "model": "m", "max_tokens": 9 });
        body[list_name(from)] = list.clone();
        assert_accepted(body.clone(), from);
        let stored = Stored::of(from, &body);
        assert!(stored.history.invocations().is_empty(), "{from:?}");
        assert_eq!(stored.body(from)[list_name(from)].to_string(), list.to_string());
        for to in ALL {
            for out in [stored.body(to), converted(&body, from, to).0] {
                let steps = raw(to, &out);
                assert!(
                    steps.iter().all(|step| !step.starts_with("c ") && !step.starts_with("r ")),
                    "{from:?} {to:?} {out}"
                );
                assert!(
                    steps.contains(&"a x".into()) && steps.first().is_some_and(|first| first == "u q"),
                    "{from:?} {to:?} {out}"
                );
            }
        }
    }
    let (served, found) = (
        json!({ "type": "server_tool_use", "id": "s", "name": "web_search", "input": {} }),
        json!({ "type": "web_search_tool_result", "tool_use_id": "s", "content": [] }),
    );
    assert_accepted(
        claude(vec![user("q"), assistant_blocks(vec![served.clone(), found.clone(), text("x")]), user("p")]),
        CLAUDE,
    );
    assert_accepted(
        claude(vec![user("q"), assistant_blocks(vec![served, tool_use("a")]), user_blocks(vec![result("a", "1")])]),
        CLAUDE,
    );
    assert_claude_repair(
        vec![user("q"), assistant_blocks(vec![found, text("x")]), user("p")],
        "orphan_result",
        vec![user("q"), assistant_blocks(vec![text("x")]), user("p")],
    );
}

#[test]
fn wf_49_a_paused_turn_is_sent_again_unchanged() {
    let lines = [
        r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"usage":{"input_tokens":3,"output_tokens":1}}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"so "}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"query\": \"x\"}"}}"#,
        r#"{"type":"content_block_stop","index":1}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"pause_turn"},"usage":{"output_tokens":9}}"#,
        r#"{"type":"message_stop"}"#,
    ];
    let mut assembler = StreamAssembler::new(CLAUDE);
    lines.iter().for_each(|line| assembler.push(format!("data: {line}\n\n").as_bytes(), &mut Vec::new()));
    let paused = assembler.finish();
    assert_eq!((paused.status, paused.finish_reason.as_deref()), (AnswerStatus::Incomplete, Some("pause_turn")));
    assert!(paused.calls.is_empty());
    let wire = paused.wire.unwrap();
    let content = r#"[{"type":"text","text":"so "},{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query": "x"}}]"#;
    assert!(wire.as_str().contains(content), "{}", wire.as_str());
    let mut stored = Stored::new();
    stored.append(CLAUDE, &format!(r#"[{{"role":"user","content":"q"}},{}]"#, wire.as_str()));
    let (out, _) = stored.bytes(CLAUDE);
    assert!(out.contains(content), "{out}");
    let (same, _) = repair(out.as_bytes(), CLAUDE, &RepairOptions::default()).unwrap();
    assert_eq!(String::from_utf8(same).unwrap(), out);
    let served = json!({ "type": "server_tool_use", "id": "s", "name": "web_search", "input": {} });
    assert_accepted(claude(vec![user("q"), assistant_blocks(vec![text("so"), served])]), CLAUDE);
}

#[test]
fn wf_50_a_refusal_is_text_in_dialects_without_refusals() {
    let part = json!({ "type": "refusal", "refusal": "I cannot" });
    let given = [
        (CHAT, json!([user("q"), { "role": "assistant", "content": null, "refusal": "I cannot" }, user("p")])),
        (CHAT, json!([user("q"), { "role": "assistant", "content": [part] }, user("p")])),
        (RESPONSES, json!([user("q"), { "type": "message", "role": "assistant", "content": [part] }, user("p")])),
    ];
    for (from, list) in given {
        let mut body = json!({ "model": "m" });
        body[list_name(from)] = list;
        assert_accepted(body.clone(), from);
        for to in ALL {
            for out in [Stored::of(from, &body).body(to), converted(&body, from, to).0] {
                assert_eq!(read(to, &out), "u q; a I cannot; u p", "{from:?} {to:?} {out}");
                let refuses = out.to_string().contains(r#""refusal":"I cannot""#);
                assert_eq!(refuses, to == CHAT || to == RESPONSES, "{from:?} {to:?} {out}");
            }
        }
    }
}

#[test]
fn wf_51_a_developer_message_is_a_system_message_in_dialects_without_that_role() {
    for from in [CHAT, RESPONSES] {
        let mut body = json!({ "model": "m" });
        body[list_name(from)] = json!([{ "role": "developer", "content": "be brief" }, user("q")]);
        assert_accepted(body.clone(), from);
        for to in ALL {
            for out in [Stored::of(from, &body).body(to), converted(&body, from, to).0] {
                assert_eq!(read(to, &out), "s be brief; u q", "{from:?} {to:?} {out}");
                let named = out.to_string().contains("developer");
                assert!(!named || to == CHAT || to == RESPONSES, "{from:?} {to:?} {out}");
            }
        }
    }
    let mut old = chat(vec![json!({ "role": "developer", "content": "be brief" }), user("q")]);
    old["model"] = json!("o1-mini");
    assert_eq!(errors(&old, CHAT), ["role_order"]);
    repaired_body(&old, CHAT);
    // Gemini and Anthropic have no such role in a list either.
    for (dialect, list) in [
        (CLAUDE, json!([{ "role": "developer", "content": "be brief" }, user("q")])),
        (MISTRAL, json!([{ "role": "developer", "content": "be brief" }, user("q")])),
    ] {
        let body = json!({ "model": "m", "max_tokens": 9, "messages": list });
        assert_eq!(errors(&body, dialect), ["role_order"], "{dialect:?}");
        assert!(repaired_body(&body, dialect).to_string().contains("be brief"));
    }
}

#[test]
fn wf_52_consecutive_user_messages_are_all_sent_to_gemini() {
    // Recorded: Gemini takes them as they are, so nothing has to be merged.
    assert_accepted(
        json!({ "contents": [user_parts(vec![text_part("q")]), user_parts(vec![text_part("again")]), model_parts(vec![text_part("x")]), user_parts(vec![text_part("p")]), user_parts(vec![text_part("n")])] }),
        GEMINI,
    );
    assert_converts("u q; u again; a x; u p; u n", "u q; u again; a x; u p; u n", &[]);
    assert_converts("u q; c a; r a=1; u p; u n", "u q; c 1; r 1=1; u p; u n", &[]);
}

#[test]
fn wf_53_mistral_accepts_a_user_message_after_a_tool_message() {
    // Recorded, too; its own tokenizer agrees.
    assert_accepted(write(MISTRAL, "u q; c a b; r a=1 b=2; u p; a x; u n"), MISTRAL);
    for from in ALL {
        let body = write(from, "u q; c a; r a=1; u p");
        for out in [Stored::of(from, &body).body(MISTRAL), converted(&body, from, MISTRAL).0] {
            assert_eq!(read(MISTRAL, &out), "u q; c 1; r 1=1; u p", "{from:?} {out}");
        }
    }
}

#[test]
fn wf_54_a_history_that_ends_in_an_answer_is_valid_in_every_dialect() {
    for from in ALL {
        let body = write(from, "u q; a x");
        let mut outs = vec![(from, repaired(&body, from).0)];
        for to in ALL {
            outs.push((to, Stored::of(from, &body).body(to)));
            outs.push((to, converted(&body, from, to).0));
        }
        for (to, out) in outs {
            // What Gemini needs is in what is converted from it, too: its body is repaired first.
            let goes_on = read(to, &out) == "u q; a x; u Continue.";
            assert!(goes_on || read(to, &out) == "u q; a x", "{from:?} {to:?} {out}");
            assert!(if to == GEMINI { goes_on } else { !goes_on || from == GEMINI }, "{from:?} {to:?} {out}");
            if to == MISTRAL && !goes_on {
                assert_eq!(out["messages"][1]["prefix"], true, "{from:?} {out}");
            }
        }
    }
    assert_accepted(chat(vec![user("q"), assistant("x")]), CHAT);
    assert_accepted(claude(vec![user("q"), assistant("x")]), CLAUDE);
    assert_claude_repair(vec![user("q"), assistant("x \n\u{a0}")], "empty_content", vec![user("q"), assistant("x")]);
    assert_claude_repair(
        vec![user("q"), assistant_blocks(vec![text("x"), text(" \n")])],
        "empty_content",
        vec![user("q"), assistant_blocks(vec![text("x")])],
    );
    let out = repaired_body(&chat(vec![user("q"), assistant("x")]), MISTRAL);
    assert_eq!(out[1]["prefix"], json!(true));
    let go_on = || user_parts(vec![text_part("Continue.")]);
    assert_gemini_repair(
        vec![user_parts(vec![text_part("q")]), model_parts(vec![text_part("x")])],
        "role_order",
        vec![user_parts(vec![text_part("q")]), model_parts(vec![text_part("x")]), go_on()],
    );
}

#[test]
fn wf_55_a_call_of_a_removed_tool_is_still_paired() {
    let tools =
        [ToolDefinition { name: "other".into(), description: None, parameters: None, strict: false, is_async: false }];
    for from in ALL {
        let mut body = write(from, "u q; c a b; r b=2 a=1; a x; u p; c c");
        for to in ALL {
            let (out, _) = Stored::of(from, &body).bytes_for(&request(to), &tools);
            assert!(out.contains(r#""other""#), "{to:?} {out}");
            let out: Value = serde_json::from_str(&out).unwrap();
            assert_eq!(
                read(to, &out),
                "u q; c 1; c 2; r 1=1; r 2=2; a x; u p; c 3; r 3=closed",
                "{from:?} {to:?} {out}"
            );
        }
        body["tools"] = match from {
            Dialect::Anthropic => json!([{ "name": "other", "input_schema": { "type": "object" } }]),
            Dialect::Gemini => json!([{ "functionDeclarations": [{ "name": "other" }] }]),
            Dialect::Bedrock => continue,
            Dialect::OpenAiResponses | Dialect::GeminiInteractions => {
                json!([{ "type": "function", "name": "other", "parameters": {} }])
            }
            _ => json!([{ "type": "function", "function": { "name": "other" } }]),
        };
        let out = repaired(&body, from).0;
        assert_eq!(out["tools"], body["tools"]);
        assert_eq!(read(from, &out), "u q; c 1; c 2; r 1=1; r 2=2; a x; u p; c 3; r 3=closed", "{from:?} {out}");
    }
    let mut body = chat(vec![calls(&["a"]), tool("a", "1")]);
    body["tools"] = json!([{ "type": "function", "function": { "name": "other" } }]);
    assert_accepted(body, CHAT);
}
