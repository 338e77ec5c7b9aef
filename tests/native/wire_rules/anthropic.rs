//! What only Anthropic's own blocks and parameters ask for.

use crate::*;
use rethread::message::Dialect;
use rethread::provider::validate;
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
fn r41_a_servers_result_comes_behind_the_clients_own() {
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
    // Neither behind the user's words, nor a second time.
    mends_claude(
        vec![user("q"), model(vec![text("x"), asks("s1")]), user("p"), model(vec![serves("s1"), text("y")]), user("p")],
        "orphan_result",
        vec![user("q"), model(vec![text("x")]), user("p"), model(vec![text("y")]), user("p")],
    );
    mends_claude(
        vec![
            user("q"),
            model(vec![asks("s1"), serves("s1"), use_("a")]),
            human(vec![result("a", "1")]),
            model(vec![serves("s1"), text("x")]),
            user("p"),
        ],
        "orphan_result",
        vec![
            user("q"),
            model(vec![asks("s1"), serves("s1"), use_("a")]),
            human(vec![result("a", "1")]),
            model(vec![text("x")]),
            user("p"),
        ],
    );
}

#[test]
fn r40_a_servers_call_is_open_until_the_user_speaks() {
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
        // What the code called is the model's own call then.
        (
            vec![user("q"), model(vec![asks("s1"), called("a", "s1")]), human(vec![result("a", "1"), text("p")])],
            vec![user("q"), model(vec![use_("a")]), human(vec![result("a", "1"), text("p")])],
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
fn r40_a_final_answer_does_not_end_in_thinking() {
    let ends = || vec![user("q"), model(vec![signed(), text("x "), signed()])];
    for body in [claude(ends()), thinking("adaptive", ends())] {
        assert_eq!(errors(&body, CLAUDE), ["orphan_reasoning", "empty_content"]);
        assert_eq!(mended(&body, CLAUDE), json!([user("q"), model(vec![signed(), text("x")])]));
    }
    mends_claude(vec![user("q"), model(vec![signed()])], "orphan_reasoning", vec![user("q")]);
    taken(vec![user("q"), model(vec![text("x"), signed()]), user("p")]);
}

#[test]
fn r41_a_loop_that_began_with_thinking_goes_on() {
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
fn r40_white_space_alone_is_no_text() {
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
