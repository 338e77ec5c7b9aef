//! What newer Gemini models refuse, and what Google's own examples write.

use crate::*;
use rethread::finding::Severity;
use rethread::provider::validate;
use serde_json::{Value, json};

fn q() -> Value {
    asks(vec![say("q")])
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

#[test]
fn r40_r41_words_behind_responses_end_no_body() {
    let given = vec![q(), acts(vec![fc("f")]), asks(vec![say("a"), fr("f", "1"), say("b")])];
    // Recorded: 2.5 takes it.
    takes(body(given.clone()), GEMINI);
    assert_eq!(warnings(&body(given.clone())), ["role_order"]);
    let strict = of_model("gemini-3.6-flash", vec![q(), acts(vec![signed("f")]), given[2].clone()]);
    assert_eq!(errors(&strict, GEMINI), ["role_order"]);
    let apart = vec![q(), acts(vec![signed("f")]), asks(vec![say("a"), fr("f", "1")]), asks(vec![say("b")])];
    assert_eq!(mended(&strict, GEMINI), Value::from(apart));
    // Before the responses, or behind them in a content that is not the last, anybody takes them.
    for contents in [
        vec![q(), acts(vec![fc("f")]), asks(vec![say("a"), fr("f", "1")])],
        vec![q(), acts(vec![fc("f")]), asks(vec![fr("f", "1"), say("b")]), q()],
    ] {
        assert!(warnings(&body(contents)).is_empty());
    }
}

#[test]
fn r41_what_repair_makes_gets_no_words_behind_it() {
    mends_gemini(
        vec![q(), acts(vec![fc("f"), fc("g")]), asks(vec![say("a"), fr("f", "1"), say("b")])],
        "missing_parallel_result",
        vec![q(), acts(vec![fc("f"), fc("g")]), asks(vec![say("a"), fr("f", "1"), failed("g")]), asks(vec![say("b")])],
    );
}

#[test]
fn r40_r41_roles_in_capitals_and_lists_of_one() {
    // As in Google's own examples.
    let said = |text: &str, role: &str| json!({ "role": role, "parts": { "text": text } });
    takes(body(vec![said("q", "USER"), said("a", "Model"), said("b", "USER")]), GEMINI);
    takes(json!({ "contents": said("q", "USER") }), GEMINI);
    assert_eq!(warnings(&json!({ "contents": said("q", "USER") })), ["malformed"]);
    let given = json!({ "contents": { "role": "MODEL", "parts": { "functionCall": { "name": "f", "args": {} } } } });
    assert!(errors(&given, GEMINI).contains(&"malformed"));
    let out = mended(&given, GEMINI);
    assert_eq!((&out[1], &out[2]), (&given["contents"], &asks(vec![failed("f")])));
    // Nothing of it moves.
    takes(
        body(vec![
            json!({ "role": "USER", "parts": [{ "text": "q" }] }),
            json!({ "role": "MODEL", "parts": { "functionCall": { "name": "f" } } }),
            json!({ "role": "USER", "parts": [fr("f", "1")] }),
        ]),
        GEMINI,
    );
    // For others it is an error, and the model's words stay the model's.
    mends(
        vec![user("q"), json!({ "role": "MODEL", "content": "x" }), user("p")],
        "role_order",
        vec![user("q"), says("x"), user("p")],
    );
}
