//! What newer Gemini models refuse, and what Google's own examples write.

use super::*;
use rethread::finding::Severity;
use rethread::provider::validate;
use serde_json::{Value, json};

fn q() -> Value {
    user_parts(vec![text_part("q")])
}

fn body(contents: Vec<Value>) -> Value {
    json!({ "contents": contents })
}

/// As the model of that name is asked.
fn of_model(name: &str, contents: Vec<Value>) -> Value {
    json!({ "model": name, "contents": contents })
}

fn signed(name: &str) -> Value {
    json!({ "functionCall": { "name": name, "args": {} }, "thoughtSignature": "c2ln" })
}

fn warnings(body: &Value) -> Vec<&'static str> {
    codes(&validate(body.to_string().as_bytes(), GEMINI), Severity::Warning)
}

/// A call by that id, and a response.
fn function_call_by(id: &str, name: &str) -> Value {
    json!({ "functionCall": { "id": id, "name": name, "args": {} } })
}
fn function_response_by(id: &str, name: &str, result: &str) -> Value {
    json!({ "functionResponse": { "id": id, "name": name, "response": { "result": result } } })
}

#[test]
fn r40_r41_text_after_function_responses_does_not_end_a_body() {
    let given = vec![
        q(),
        model_parts(vec![function_call("f")]),
        user_parts(vec![text_part("a"), function_response("f", "1"), text_part("b")]),
    ];
    // Recorded: 2.5 takes it.
    assert_accepted(body(given.clone()), GEMINI);
    assert_eq!(warnings(&body(given.clone())), ["role_order"]);
    let strict = of_model("gemini-3.6-flash", vec![q(), model_parts(vec![signed("f")]), given[2].clone()]);
    assert_eq!(errors(&strict, GEMINI), ["role_order"]);
    let apart = vec![
        q(),
        model_parts(vec![signed("f")]),
        user_parts(vec![text_part("a"), function_response("f", "1")]),
        user_parts(vec![text_part("b")]),
    ];
    assert_eq!(repaired_body(&strict, GEMINI), Value::from(apart));
    // Before the responses, or behind them in a content that is not the last, anybody takes them.
    for contents in [
        vec![q(), model_parts(vec![function_call("f")]), user_parts(vec![text_part("a"), function_response("f", "1")])],
        vec![
            q(),
            model_parts(vec![function_call("f")]),
            user_parts(vec![function_response("f", "1"), text_part("b")]),
            q(),
        ],
    ] {
        assert!(warnings(&body(contents)).is_empty());
    }
}

#[test]
fn r41_synthesized_responses_are_not_followed_by_text() {
    assert_gemini_repair(
        vec![
            q(),
            model_parts(vec![function_call("f"), function_call("g")]),
            user_parts(vec![text_part("a"), function_response("f", "1"), text_part("b")]),
        ],
        "missing_parallel_result",
        vec![
            q(),
            model_parts(vec![function_call("f"), function_call("g")]),
            user_parts(vec![text_part("a"), function_response("f", "1"), interrupted_response("g")]),
            user_parts(vec![text_part("b")]),
        ],
    );
}

#[test]
fn r40_r41_roles_in_capitals_and_lists_of_one() {
    // As in Google's own examples.
    let said = |text: &str, role: &str| json!({ "role": role, "parts": { "text": text } });
    assert_accepted(body(vec![said("q", "USER"), said("a", "Model"), said("b", "USER")]), GEMINI);
    assert_accepted(json!({ "contents": said("q", "USER") }), GEMINI);
    assert_eq!(warnings(&json!({ "contents": said("q", "USER") })), ["malformed"]);
    let given = json!({ "contents": { "role": "MODEL", "parts": { "functionCall": { "name": "f", "args": {} } } } });
    assert!(errors(&given, GEMINI).contains(&"malformed"));
    let out = repaired_body(&given, GEMINI);
    assert_eq!((&out[1], &out[2]), (&given["contents"], &user_parts(vec![interrupted_response("f")])));
    // Nothing of it moves.
    assert_accepted(
        body(vec![
            json!({ "role": "USER", "parts": [{ "text": "q" }] }),
            json!({ "role": "MODEL", "parts": { "functionCall": { "name": "f" } } }),
            json!({ "role": "USER", "parts": [function_response("f", "1")] }),
        ]),
        GEMINI,
    );
    // For others it is an error, and the model's words stay the model's.
    assert_chat_repair(
        vec![user("q"), json!({ "role": "MODEL", "content": "x" }), user("p")],
        "role_order",
        vec![user("q"), assistant("x"), user("p")],
    );
}

#[test]
fn r40_r41_a_duplicate_id_in_a_turn_is_renamed() {
    assert_gemini_repair(
        vec![
            q(),
            model_parts(vec![function_call_by("x", "f"), function_call_by("x", "f")]),
            user_parts(vec![function_response_by("x", "f", "1"), function_response_by("x", "f", "2")]),
        ],
        "duplicate_call_id",
        vec![
            q(),
            model_parts(vec![function_call_by("x", "f"), function_call_by("x_2", "f")]),
            user_parts(vec![function_response_by("x", "f", "1"), function_response_by("x_2", "f", "2")]),
        ],
    );
    // The tool tells which response is whose.
    assert_gemini_repair(
        vec![
            q(),
            model_parts(vec![function_call_by("x", "f"), function_call_by("x", "g")]),
            user_parts(vec![function_response_by("x", "g", "2"), function_response_by("x", "f", "1")]),
        ],
        "duplicate_call_id",
        vec![
            q(),
            model_parts(vec![function_call_by("x", "f"), function_call_by("x_2", "g")]),
            user_parts(vec![function_response_by("x_2", "g", "2"), function_response_by("x", "f", "1")]),
        ],
    );
    let turn =
        || [model_parts(vec![function_call_by("x", "f")]), user_parts(vec![function_response_by("x", "f", "1")])];
    let twice = body([vec![q()], turn().into(), vec![model_parts(vec![text_part("a")]), q()], turn().into()].concat());
    assert_accepted(twice.clone(), GEMINI);
    assert!(warnings(&twice).is_empty());
}

#[test]
fn r40_r41_a_response_that_does_not_fit_its_call_is_rewritten_from_it() {
    let real =
        vec![q(), model_parts(vec![function_call_by("x", "f")]), user_parts(vec![function_response_by("x", "f", "1")])];
    assert_gemini_repair(
        vec![q(), model_parts(vec![function_call_by("x", "f")]), user_parts(vec![function_response_by("x", "g", "1")])],
        "malformed",
        real.clone(),
    );
    assert_gemini_repair(
        vec![q(), model_parts(vec![function_call_by("x", "f")]), user_parts(vec![function_response_by("y", "f", "1")])],
        "invalid_call_id",
        real.clone(),
    );
    assert_gemini_repair(
        vec![q(), model_parts(vec![function_call("f")]), user_parts(vec![function_response("unknown", "1")])],
        "malformed",
        vec![q(), model_parts(vec![function_call("f")]), user_parts(vec![function_response("f", "1")])],
    );
    assert_gemini_repair(
        vec![
            q(),
            model_parts(vec![function_call_by("a", "f"), function_call_by("b", "g")]),
            user_parts(vec![function_response("x", "1"), function_response_by("y", "g", "2")]),
        ],
        "invalid_call_id",
        vec![
            q(),
            model_parts(vec![function_call_by("a", "f"), function_call_by("b", "g")]),
            user_parts(vec![function_response_by("a", "f", "1"), function_response_by("b", "g", "2")]),
        ],
    );
    // Another id and another tool, or another number of them: no response of these calls.
    for contents in [
        vec![q(), model_parts(vec![function_call_by("x", "f")]), user_parts(vec![function_response_by("y", "g", "1")])],
        vec![
            q(),
            model_parts(vec![function_call("f")]),
            user_parts(vec![function_response("x", "1"), function_response("y", "2")]),
        ],
    ] {
        assert!(errors(&body(contents), GEMINI).contains(&"orphan_result"));
    }
    // Without an id, where its call has one, it is taken by older models.
    let bare = user_parts(vec![function_response("f", "1")]);
    let given = vec![q(), model_parts(vec![function_call_by("x", "f")]), bare.clone()];
    assert_accepted(body(given.clone()), GEMINI);
    assert_eq!(warnings(&body(given)), ["invalid_call_id"]);
    let mut call = signed("f");
    call["functionCall"]["id"] = json!("x");
    let strict = of_model("models/gemini-4-flash", vec![q(), model_parts(vec![call.clone()]), bare]);
    assert_eq!(errors(&strict, GEMINI), ["invalid_call_id"]);
    assert_eq!(repaired_body(&strict, GEMINI)[2], real[2]);
}

#[test]
fn r40_r41_the_role_function_is_valid_for_older_models() {
    let results = |role: &str| json!({ "role": role, "parts": [function_response("f", "1")] });
    let given = |role: &str| vec![q(), model_parts(vec![signed("f")]), results(role)];
    assert_accepted(body(given("function")), GEMINI);
    assert_eq!(warnings(&body(given("function"))), ["role_order"]);
}

#[test]
fn r40_r41_a_part_with_two_data_members_is_split() {
    let call = json!({ "functionCall": { "name": "f", "args": {} } });
    let mut both = signed("f");
    both["text"] = json!("x");
    both["thought"] = json!(true);
    assert_gemini_repair(
        vec![q(), model_parts(vec![both]), user_parts(vec![function_response("f", "1")])],
        "malformed",
        vec![
            q(),
            model_parts(vec![signed("f"), json!({ "text": "x", "thought": true })]),
            user_parts(vec![function_response("f", "1")]),
        ],
    );
    let png = json!({ "mimeType": "image/png", "data": "AA==" });
    assert_gemini_repair(
        vec![user_parts(vec![json!({ "text": "q", "inlineData": png, "video_metadata": { "fps": 1 } })])],
        "malformed",
        vec![user_parts(vec![text_part("q"), json!({ "inlineData": png, "video_metadata": { "fps": 1 } })])],
    );
    let mut beside = function_response("f", "1");
    beside["inline_data"] = png.clone();
    assert_gemini_repair(
        vec![
            q(),
            model_parts(vec![json!({ "text": "", "functionCall": call["functionCall"] })]),
            user_parts(vec![beside.clone()]),
        ],
        "malformed",
        vec![
            q(),
            model_parts(vec![call.clone()]),
            user_parts(vec![function_response("f", "1"), json!({ "inline_data": png })]),
        ],
    );
    // One alone gets a list; a response without a call goes, what stood beside it stays.
    assert_gemini_repair(
        vec![json!({ "role": "user", "parts": beside })],
        "orphan_result",
        vec![user_parts(vec![json!({ "inline_data": png })])],
    );
    assert_accepted(body(vec![user_parts(vec![json!({ "text": "q", "inlineData": null })])]), GEMINI);
}

#[test]
fn r40_r41_model_versions_are_compared_by_number() {
    let given = vec![q(), model_parts(vec![function_call("f")]), user_parts(vec![function_response("f", "1")])];
    for name in ["gemini-3-pro-preview", "models/gemini-4.0-argon", "gemini-12", "my-gemini-x/gemini-3.1"] {
        assert_eq!(errors(&of_model(name, given.clone()), GEMINI), ["unsigned_thinking"], "{name}");
    }
    for name in ["gemini-2.5-flash", "gemini-flash-latest", "gemini-x", "m"] {
        assert_accepted(of_model(name, given.clone()), GEMINI);
    }
}
