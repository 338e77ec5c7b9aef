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
