//! What only Anthropic's own blocks and parameters ask for.

use crate::*;
use rethread::message::Dialect;
use rethread::provider::{RepairOptions, repair, validate};
use serde_json::{Value, json};

fn asks(id: &str) -> Value {
    json!({ "type": "server_tool_use", "id": id, "name": "web_search", "input": {} })
}

fn serves(id: &str) -> Value {
    json!({ "type": "web_search_tool_result", "tool_use_id": id, "content": [] })
}

fn called(id: &str, by: &str) -> Value {
    let mut call = use_(id);
    call["caller"] = json!({ "type": "code_execution_20260120", "tool_id": by });
    call
}

fn signed() -> Value {
    json!({ "type": "thinking", "thinking": "t", "signature": "s" })
}

fn thinking(kind: &str, messages: Vec<Value>) -> Value {
    let mut body = claude(messages);
    body["thinking"] = json!({ "type": kind });
    body
}

fn taken(messages: Vec<Value>) {
    takes(claude(messages), CLAUDE);
}

#[test]
fn r41_results_of_server_tools_come_after_the_clients_results() {
    taken(vec![
        user("q"),
        model(vec![asks("s1"), use_("a")]),
        human(vec![result("a", "1")]),
        model(vec![serves("s1"), text("x")]),
        user("p"),
    ]);
    taken(vec![
        user("q"),
        model(vec![
            json!({ "type": "mcp_tool_use", "id": "m1", "name": "f", "server_name": "s", "input": {} }),
            use_("a"),
        ]),
        human(vec![result("a", "1")]),
        model(vec![json!({ "type": "mcp_tool_result", "tool_use_id": "m1", "content": [] }), text("x")]),
        user("p"),
    ]);
    // Code that calls in two rounds.
    taken(vec![
        user("q"),
        model(vec![text("I look."), asks("s1"), called("a", "s1")]),
        human(vec![result("a", "1")]),
        model(vec![called("b", "s1")]),
        human(vec![result("b", "1")]),
        model(vec![serves("s1"), text("x")]),
        user("p"),
    ]);
    // Not behind the user's words.
    mends_claude(
        vec![user("q"), model(vec![text("x"), asks("s1")]), user("p"), model(vec![serves("s1"), text("y")]), user("p")],
        "orphan_result",
        vec![user("q"), model(vec![text("x")]), user("p"), model(vec![text("y")]), user("p")],
    );
}

#[test]
fn r40_a_server_call_may_be_open_until_the_next_user_message() {
    // The server goes on with it.
    taken(vec![user("q"), model(vec![text("x"), asks("s1")])]);
    taken(vec![user("q"), model(vec![asks("s1"), use_("a")]), human(vec![result("a", "1")])]);
    taken(vec![user("q"), model(vec![asks("s1")]), model(vec![serves("s1"), text("x")]), user("p")]);
    for (given, left) in [
        (
            vec![user("q"), model(vec![text("x"), asks("s1")]), user("p")],
            vec![user("q"), model(vec![text("x")]), user("p")],
        ),
        (vec![user("q"), model(vec![asks("s1")]), user("p")], vec![user("q"), user("p")]),
        (
            vec![user("q"), model(vec![asks("s1"), use_("a")]), human(vec![result("a", "1"), text("p")])],
            vec![user("q"), model(vec![use_("a")]), human(vec![result("a", "1"), text("p")])],
        ),
        (
            vec![user("q"), model(vec![asks("s1"), use_("a")]), human(vec![result("a", "1")]), user("p")],
            vec![user("q"), model(vec![use_("a")]), human(vec![result("a", "1")]), user("p")],
        ),
        // The same id in another turn is another call.
        (
            vec![
                user("q"),
                model(vec![asks("s1"), serves("s1"), text("x")]),
                user("p"),
                model(vec![text("y"), asks("s1")]),
                user("o"),
            ],
            vec![
                user("q"),
                model(vec![asks("s1"), serves("s1"), text("x")]),
                user("p"),
                model(vec![text("y")]),
                user("o"),
            ],
        ),
    ] {
        mends_claude(given, "dangling_call", left);
    }
    // Many of one id, and a system message, on which nobody writes on.
    let many = [vec![text("x")], vec![asks("s1"); 9]].concat();
    mends_claude(
        vec![user("q"), model(many), user("p")],
        "dangling_call",
        vec![user("q"), model(vec![text("x")]), user("p")],
    );
    let aside = json!({ "role": "system", "content": "s" });
    mends_claude(
        vec![user("q"), model(vec![text("x"), asks("s1")]), aside.clone(), user("p")],
        "dangling_call",
        vec![user("q"), model(vec![text("x")]), aside, user("p")],
    );
    let body = claude(vec![user("q"), model(vec![text("x"), asks("s1")]), user("p")]);
    let report = validate(body.to_string().as_bytes(), Dialect::Anthropic);
    assert_eq!((report[0].path.as_deref(), report[0].call_id.as_deref()), (Some("/messages/1/content/1"), Some("s1")));
}

#[test]
fn r43_a_paused_answer_keeps_its_thinking_unless_thinking_is_off() {
    let paused = || vec![user("q"), model(vec![signed(), asks("s1"), serves("s1")])];
    taken(paused());
    for kind in ["enabled", "adaptive", "between_tools"] {
        takes(thinking(kind, paused()), CLAUDE);
    }
    let body = thinking("disabled", paused());
    assert_eq!(errors(&body, CLAUDE), ["orphan_reasoning"]);
    assert_eq!(mended(&body, CLAUDE), json!([user("q"), model(vec![asks("s1"), serves("s1")])]));
}

#[test]
fn r40_a_final_answer_must_not_end_in_thinking() {
    let ends = || vec![user("q"), model(vec![signed(), text("x "), signed()])];
    for body in [claude(ends()), thinking("adaptive", ends())] {
        assert_eq!(errors(&body, CLAUDE), ["orphan_reasoning", "empty_content"]);
        assert_eq!(mended(&body, CLAUDE), json!([user("q"), model(vec![signed(), text("x")])]));
    }
    mends_claude(vec![user("q"), model(vec![signed()])], "orphan_reasoning", vec![user("q")]);
    taken(vec![user("q"), model(vec![text("x"), signed()]), user("p")]);
}

#[test]
fn r41_a_tool_loop_that_began_with_thinking_is_accepted() {
    let note = |kind: &str| json!({ "type": kind, "content": "c" });
    for messages in [
        vec![
            user("q"),
            model(vec![signed(), use_("a")]),
            human(vec![result("a", "1")]),
            model(vec![use_("b")]),
            human(vec![result("b", "1")]),
        ],
        vec![user("q"), model(vec![note("compaction"), signed(), text("x"), use_("a")]), human(vec![result("a", "1")])],
        vec![user("q"), model(vec![note("fallback"), signed(), use_("a")]), human(vec![result("a", "1")])],
        vec![user("q"), model(vec![note("mcp_tool_listing"), signed(), use_("a")]), human(vec![result("a", "1")])],
        vec![user("q"), model(vec![note("compaction")])],
    ] {
        takes(thinking("enabled", messages), CLAUDE);
    }
    for messages in [
        vec![
            user("q"),
            model(vec![signed(), use_("a")]),
            human(vec![result("a", "1"), text("p")]),
            model(vec![use_("b")]),
            human(vec![result("b", "1")]),
        ],
        vec![user("q"), model(vec![note("compaction"), text("x"), use_("a")]), human(vec![result("a", "1")])],
        vec![user("q"), model(vec![note("compaction"), text("x")])],
    ] {
        assert_eq!(errors(&thinking("enabled", messages), CLAUDE), ["unsigned_thinking"]);
    }
}

#[test]
fn r40_a_text_of_white_space_is_an_error() {
    for (given, left) in [
        (vec![user("q"), model(vec![text("\n")]), user("p")], vec![user("q"), user("p")]),
        (vec![user("q"), says("x"), user(" \n")], vec![user("q"), says("x")]),
        (vec![user("q"), says(" "), user("p")], vec![user("q"), user("p")]),
        (
            vec![user("q"), model(vec![asks("s1"), serves("s1"), text("\n\n")]), user("p")],
            vec![user("q"), model(vec![asks("s1"), serves("s1")]), user("p")],
        ),
        // What says nothing is not the user's word.
        (
            vec![user("q"), model(vec![asks("s1"), use_("a")]), human(vec![result("a", "1"), text(" ")])],
            vec![user("q"), model(vec![asks("s1"), use_("a")]), human(vec![result("a", "1")])],
        ),
    ] {
        mends_claude(given, "empty_content", left);
    }
    taken(vec![human(vec![text(" "), text("q")]), model(vec![text("x"), text(" "), text("y")]), user("p")]);
    taken(vec![user("q"), model(vec![text(" "), use_("a")]), human(vec![result("a", "1")])]);
}

#[test]
fn r40_results_can_be_split_over_user_messages() {
    let calls = || model(vec![use_("a"), use_("b")]);
    taken(vec![user("q"), calls(), human(vec![result("b", "2")]), human(vec![result("a", "1"), text("p")])]);
    mends_claude(
        vec![user("q"), calls(), human(vec![result("b", "2"), text("p")]), human(vec![result("a", "1")])],
        "interposed_message",
        vec![user("q"), calls(), human(vec![result("b", "2"), result("a", "1"), text("p")])],
    );
    mends_claude(
        vec![user("q"), calls(), human(vec![result("b", "2")]), user("p")],
        "missing_parallel_result",
        vec![user("q"), calls(), human(vec![result("b", "2"), cut("a")]), user("p")],
    );
}

#[test]
fn r40_a_continued_thread_can_answer_calls_of_earlier_messages() {
    let mut body = claude(vec![human(vec![result("a", "1"), text("p")])]);
    body["thread"] = json!({ "type": "continue", "previous_message_id": "msg_1" });
    takes(body.clone(), CLAUDE);
    body["thread"]["type"] = json!("create");
    assert_eq!(errors(&body, CLAUDE), ["orphan_result"]);
}

#[test]
fn r41_a_synthesized_result_has_its_calls_toolset_name() {
    let mut call = use_("a");
    call["toolset_name"] = json!("computer");
    let mut made = cut("a");
    made["toolset_name"] = json!("computer");
    mends_claude(
        vec![user("q"), model(vec![call.clone()]), user("p")],
        "dangling_call",
        vec![user("q"), model(vec![call]), human(vec![made, text("p")])],
    );
}

#[test]
fn r40_a_system_message_can_consist_of_directions_alone() {
    let directs = json!({ "role": "system", "content": [], "output_config": { "effort": "low" } });
    let bare = json!({ "role": "system", "output_config": { "effort": "low" } });
    for own in [directs, bare] {
        taken(vec![own.clone(), user("q")]);
        taken(vec![user("q"), own.clone(), says("x"), user("p")]);
        taken(vec![user("q"), model(vec![use_("a")]), own.clone(), human(vec![result("a", "1")])]);
        mends_claude(
            vec![user("q"), model(vec![use_("a")]), own.clone(), user("p")],
            "dangling_call",
            vec![user("q"), model(vec![use_("a")]), own, human(vec![cut("a"), text("p")])],
        );
    }
    mends_claude(
        vec![user("q"), json!({ "role": "system", "content": [] }), says("x"), user("p")],
        "empty_content",
        vec![user("q"), says("x"), user("p")],
    );
}

#[test]
fn r40_an_empty_system_block_is_an_error() {
    let mut body = claude(vec![user("q")]);
    body["system"] = json!([text("s")]);
    takes(body.clone(), CLAUDE);
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
    taken(vec![human(vec![image.clone(), text("q")])]);
    let body = claude(vec![user("q"), model(vec![text("x"), image]), user("p")]);
    assert_eq!(errors(&body, CLAUDE), ["unsupported_part"]);
    assert!(mended(&body, CLAUDE)[1]["content"][1]["text"].as_str().unwrap().contains("https://x.example/a.png"));
}
