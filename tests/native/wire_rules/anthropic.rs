//! What only Anthropic's own blocks and parameters ask for.

use super::*;
use rethread::message::Dialect;
use rethread::provider::{RepairOptions, repair, validate};
use serde_json::{Value, json};

fn server_call(id: &str) -> Value {
    json!({ "type": "server_tool_use", "id": id, "name": "web_search", "input": {} })
}

fn server_result(id: &str) -> Value {
    json!({ "type": "web_search_tool_result", "tool_use_id": id, "content": [] })
}

fn call_from_code(id: &str, by: &str) -> Value {
    let mut call = tool_use(id);
    call["caller"] = json!({ "type": "code_execution_20260120", "tool_id": by });
    call
}

fn thinking_block() -> Value {
    json!({ "type": "thinking", "thinking": "t", "signature": "s" })
}

fn with_thinking(kind: &str, messages: Vec<Value>) -> Value {
    let mut body = claude(messages);
    body["thinking"] = json!({ "type": kind });
    body
}

fn assert_claude_accepts(messages: Vec<Value>) {
    assert_accepted(claude(messages), CLAUDE);
}

#[test]
fn r41_results_of_server_tools_come_after_the_clients_results() {
    assert_claude_accepts(vec![
        user("q"),
        assistant_blocks(vec![server_call("s1"), tool_use("a")]),
        user_blocks(vec![result("a", "1")]),
        assistant_blocks(vec![server_result("s1"), text("x")]),
        user("p"),
    ]);
    assert_claude_accepts(vec![
        user("q"),
        assistant_blocks(vec![
            json!({ "type": "mcp_tool_use", "id": "m1", "name": "f", "server_name": "s", "input": {} }),
            tool_use("a"),
        ]),
        user_blocks(vec![result("a", "1")]),
        assistant_blocks(vec![json!({ "type": "mcp_tool_result", "tool_use_id": "m1", "content": [] }), text("x")]),
        user("p"),
    ]);
    // Code that calls in two rounds.
    assert_claude_accepts(vec![
        user("q"),
        assistant_blocks(vec![text("I look."), server_call("s1"), call_from_code("a", "s1")]),
        user_blocks(vec![result("a", "1")]),
        assistant_blocks(vec![call_from_code("b", "s1")]),
        user_blocks(vec![result("b", "1")]),
        assistant_blocks(vec![server_result("s1"), text("x")]),
        user("p"),
    ]);
    // Not behind the user's words.
    assert_claude_repair(
        vec![
            user("q"),
            assistant_blocks(vec![text("x"), server_call("s1")]),
            user("p"),
            assistant_blocks(vec![server_result("s1"), text("y")]),
            user("p"),
        ],
        "orphan_result",
        vec![user("q"), assistant_blocks(vec![text("x")]), user("p"), assistant_blocks(vec![text("y")]), user("p")],
    );
}

#[test]
fn r40_a_server_call_may_be_open_until_the_next_user_message() {
    // The server goes on with it.
    assert_claude_accepts(vec![user("q"), assistant_blocks(vec![text("x"), server_call("s1")])]);
    assert_claude_accepts(vec![
        user("q"),
        assistant_blocks(vec![server_call("s1"), tool_use("a")]),
        user_blocks(vec![result("a", "1")]),
    ]);
    assert_claude_accepts(vec![
        user("q"),
        assistant_blocks(vec![server_call("s1")]),
        assistant_blocks(vec![server_result("s1"), text("x")]),
        user("p"),
    ]);
    for (given, left) in [
        (
            vec![user("q"), assistant_blocks(vec![text("x"), server_call("s1")]), user("p")],
            vec![user("q"), assistant_blocks(vec![text("x")]), user("p")],
        ),
        (vec![user("q"), assistant_blocks(vec![server_call("s1")]), user("p")], vec![user("q"), user("p")]),
        (
            vec![
                user("q"),
                assistant_blocks(vec![server_call("s1"), tool_use("a")]),
                user_blocks(vec![result("a", "1"), text("p")]),
            ],
            vec![user("q"), assistant_blocks(vec![tool_use("a")]), user_blocks(vec![result("a", "1"), text("p")])],
        ),
        (
            vec![
                user("q"),
                assistant_blocks(vec![server_call("s1"), tool_use("a")]),
                user_blocks(vec![result("a", "1")]),
                user("p"),
            ],
            vec![user("q"), assistant_blocks(vec![tool_use("a")]), user_blocks(vec![result("a", "1")]), user("p")],
        ),
        // The same id in another turn is another call.
        (
            vec![
                user("q"),
                assistant_blocks(vec![server_call("s1"), server_result("s1"), text("x")]),
                user("p"),
                assistant_blocks(vec![text("y"), server_call("s1")]),
                user("o"),
            ],
            vec![
                user("q"),
                assistant_blocks(vec![server_call("s1"), server_result("s1"), text("x")]),
                user("p"),
                assistant_blocks(vec![text("y")]),
                user("o"),
            ],
        ),
    ] {
        assert_claude_repair(given, "dangling_call", left);
    }
}

#[test]
fn r40_an_open_server_call_is_found_beside_its_likes_and_before_a_system_message() {
    let many = [vec![text("x")], vec![server_call("s1"); 9]].concat();
    assert_claude_repair(
        vec![user("q"), assistant_blocks(many), user("p")],
        "dangling_call",
        vec![user("q"), assistant_blocks(vec![text("x")]), user("p")],
    );
    let aside = json!({ "role": "system", "content": "s" });
    assert_claude_repair(
        vec![user("q"), assistant_blocks(vec![text("x"), server_call("s1")]), aside.clone(), user("p")],
        "dangling_call",
        vec![user("q"), assistant_blocks(vec![text("x")]), aside, user("p")],
    );
    let body = claude(vec![user("q"), assistant_blocks(vec![text("x"), server_call("s1")]), user("p")]);
    let report = validate(body.to_string().as_bytes(), Dialect::Anthropic);
    assert_eq!((report[0].path.as_deref(), report[0].call_id.as_deref()), (Some("/messages/1/content/1"), Some("s1")));
}

#[test]
fn r43_a_paused_answer_keeps_its_thinking_unless_thinking_is_off() {
    let paused = || vec![user("q"), assistant_blocks(vec![thinking_block(), server_call("s1"), server_result("s1")])];
    assert_claude_accepts(paused());
    for kind in ["enabled", "adaptive", "between_tools"] {
        assert_accepted(with_thinking(kind, paused()), CLAUDE);
    }
    let body = with_thinking("disabled", paused());
    assert_eq!(errors(&body, CLAUDE), ["orphan_reasoning"]);
    assert_eq!(
        repaired_body(&body, CLAUDE),
        json!([user("q"), assistant_blocks(vec![server_call("s1"), server_result("s1")])])
    );
}

#[test]
fn r40_a_final_answer_must_not_end_in_thinking() {
    let ends = || vec![user("q"), assistant_blocks(vec![thinking_block(), text("x "), thinking_block()])];
    for body in [claude(ends()), with_thinking("adaptive", ends())] {
        assert_eq!(errors(&body, CLAUDE), ["orphan_reasoning", "empty_content"]);
        assert_eq!(
            repaired_body(&body, CLAUDE),
            json!([user("q"), assistant_blocks(vec![thinking_block(), text("x")])])
        );
    }
    assert_claude_repair(
        vec![user("q"), assistant_blocks(vec![thinking_block()])],
        "orphan_reasoning",
        vec![user("q")],
    );
    assert_claude_accepts(vec![user("q"), assistant_blocks(vec![text("x"), thinking_block()]), user("p")]);
}

#[test]
fn r41_a_tool_loop_that_began_with_thinking_is_accepted() {
    let note = |kind: &str| json!({ "type": kind, "content": "c" });
    for messages in [
        vec![
            user("q"),
            assistant_blocks(vec![thinking_block(), tool_use("a")]),
            user_blocks(vec![result("a", "1")]),
            assistant_blocks(vec![tool_use("b")]),
            user_blocks(vec![result("b", "1")]),
        ],
        vec![
            user("q"),
            assistant_blocks(vec![note("compaction"), thinking_block(), text("x"), tool_use("a")]),
            user_blocks(vec![result("a", "1")]),
        ],
        vec![
            user("q"),
            assistant_blocks(vec![note("fallback"), thinking_block(), tool_use("a")]),
            user_blocks(vec![result("a", "1")]),
        ],
        vec![
            user("q"),
            assistant_blocks(vec![note("mcp_tool_listing"), thinking_block(), tool_use("a")]),
            user_blocks(vec![result("a", "1")]),
        ],
        vec![user("q"), assistant_blocks(vec![note("compaction")])],
    ] {
        assert_accepted(with_thinking("enabled", messages), CLAUDE);
    }
    for messages in [
        vec![
            user("q"),
            assistant_blocks(vec![thinking_block(), tool_use("a")]),
            user_blocks(vec![result("a", "1"), text("p")]),
            assistant_blocks(vec![tool_use("b")]),
            user_blocks(vec![result("b", "1")]),
        ],
        vec![
            user("q"),
            assistant_blocks(vec![note("compaction"), text("x"), tool_use("a")]),
            user_blocks(vec![result("a", "1")]),
        ],
        vec![user("q"), assistant_blocks(vec![note("compaction"), text("x")])],
    ] {
        assert_eq!(errors(&with_thinking("enabled", messages), CLAUDE), ["unsigned_thinking"]);
    }
}

#[test]
fn r40_a_text_of_white_space_is_an_error() {
    for (given, left) in [
        (vec![user("q"), assistant_blocks(vec![text("\n")]), user("p")], vec![user("q"), user("p")]),
        (vec![user("q"), assistant("x"), user(" \n")], vec![user("q"), assistant("x")]),
        (vec![user("q"), assistant(" "), user("p")], vec![user("q"), user("p")]),
        (
            vec![user("q"), assistant_blocks(vec![server_call("s1"), server_result("s1"), text("\n\n")]), user("p")],
            vec![user("q"), assistant_blocks(vec![server_call("s1"), server_result("s1")]), user("p")],
        ),
        // What says nothing is not the user's word.
        (
            vec![
                user("q"),
                assistant_blocks(vec![server_call("s1"), tool_use("a")]),
                user_blocks(vec![result("a", "1"), text(" ")]),
            ],
            vec![
                user("q"),
                assistant_blocks(vec![server_call("s1"), tool_use("a")]),
                user_blocks(vec![result("a", "1")]),
            ],
        ),
    ] {
        assert_claude_repair(given, "empty_content", left);
    }
    assert_claude_accepts(vec![
        user_blocks(vec![text(" "), text("q")]),
        assistant_blocks(vec![text("x"), text(" "), text("y")]),
        user("p"),
    ]);
    assert_claude_accepts(vec![
        user("q"),
        assistant_blocks(vec![text(" "), tool_use("a")]),
        user_blocks(vec![result("a", "1")]),
    ]);
}

#[test]
fn r40_results_can_be_split_over_user_messages() {
    let calls = || assistant_blocks(vec![tool_use("a"), tool_use("b")]);
    assert_claude_accepts(vec![
        user("q"),
        calls(),
        user_blocks(vec![result("b", "2")]),
        user_blocks(vec![result("a", "1"), text("p")]),
    ]);
    assert_claude_repair(
        vec![user("q"), calls(), user_blocks(vec![result("b", "2"), text("p")]), user_blocks(vec![result("a", "1")])],
        "interposed_message",
        vec![user("q"), calls(), user_blocks(vec![result("b", "2"), result("a", "1"), text("p")])],
    );
    assert_claude_repair(
        vec![user("q"), calls(), user_blocks(vec![result("b", "2")]), user("p")],
        "missing_parallel_result",
        vec![user("q"), calls(), user_blocks(vec![result("b", "2"), interrupted_result("a")]), user("p")],
    );
}

#[test]
fn r40_a_continued_thread_can_answer_calls_of_earlier_messages() {
    let mut body = claude(vec![user_blocks(vec![result("a", "1"), text("p")])]);
    body["thread"] = json!({ "type": "continue", "previous_message_id": "msg_1" });
    assert_accepted(body.clone(), CLAUDE);
    body["thread"]["type"] = json!("create");
    assert_eq!(errors(&body, CLAUDE), ["orphan_result"]);
}

#[test]
fn r41_a_synthesized_result_has_its_calls_toolset_name() {
    let mut call = tool_use("a");
    call["toolset_name"] = json!("computer");
    let mut made = interrupted_result("a");
    made["toolset_name"] = json!("computer");
    assert_claude_repair(
        vec![user("q"), assistant_blocks(vec![call.clone()]), user("p")],
        "dangling_call",
        vec![user("q"), assistant_blocks(vec![call]), user_blocks(vec![made, text("p")])],
    );
}

#[test]
fn r40_a_system_message_can_consist_of_directions_alone() {
    let directs = json!({ "role": "system", "content": [], "output_config": { "effort": "low" } });
    let bare = json!({ "role": "system", "output_config": { "effort": "low" } });
    for own in [directs, bare] {
        assert_claude_accepts(vec![own.clone(), user("q")]);
        assert_claude_accepts(vec![user("q"), own.clone(), assistant("x"), user("p")]);
        assert_claude_accepts(vec![
            user("q"),
            assistant_blocks(vec![tool_use("a")]),
            own.clone(),
            user_blocks(vec![result("a", "1")]),
        ]);
        assert_claude_repair(
            vec![user("q"), assistant_blocks(vec![tool_use("a")]), own.clone(), user("p")],
            "dangling_call",
            vec![
                user("q"),
                assistant_blocks(vec![tool_use("a")]),
                own,
                user_blocks(vec![interrupted_result("a"), text("p")]),
            ],
        );
    }
    assert_claude_repair(
        vec![user("q"), json!({ "role": "system", "content": [] }), assistant("x"), user("p")],
        "empty_content",
        vec![user("q"), assistant("x"), user("p")],
    );
}

#[test]
fn r40_an_empty_system_block_is_an_error() {
    let mut body = claude(vec![user("q")]);
    body["system"] = json!([text("s")]);
    assert_accepted(body.clone(), CLAUDE);
    for (given, left) in [(vec![text("s"), text("")], json!([text("s")])), (vec![text("")], Value::Null)] {
        body["system"] = Value::from(given);
        assert_eq!(errors(&body, CLAUDE), ["empty_content"]);
        let (out, _) = repair(body.to_string().as_bytes(), CLAUDE, &RepairOptions::default()).unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&out).unwrap()["system"], left);
    }
}

#[test]
fn r41_an_image_in_an_answer_becomes_text() {
    let image = json!({ "type": "image", "source": { "type": "url", "url": "https://x.example/a.png" } });
    assert_claude_accepts(vec![user_blocks(vec![image.clone(), text("q")])]);
    let body = claude(vec![user("q"), assistant_blocks(vec![text("x"), image]), user("p")]);
    assert_eq!(errors(&body, CLAUDE), ["unsupported_part"]);
    assert!(
        repaired_body(&body, CLAUDE)[1]["content"][1]["text"].as_str().unwrap().contains("https://x.example/a.png")
    );
}
