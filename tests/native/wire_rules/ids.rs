//! The conformance cases of ids and arguments, and the cache marks.

use crate::*;

#[test]
fn case19_and_20_mistral_ids_are_nine_letters_and_digits_and_distinct() {
    let body =
        chat(vec![calls(&["call_abc_123", "call_abc_124"]), tool("call_abc_124", "2"), tool("call_abc_123", "1")]);
    assert!(errors(&body, MISTRAL).contains(&"invalid_call_id"));
    let out = mended(&body, MISTRAL);
    let (one, two) = (out[0]["tool_calls"][0]["id"].as_str().unwrap(), out[0]["tool_calls"][1]["id"].as_str().unwrap());
    assert!([one, two].iter().all(|id| id.len() == 9 && id.bytes().all(|b| b.is_ascii_alphanumeric())) && one != two);
    assert_eq!((&out[1], &out[2]), (&tool(two, "2"), &tool(one, "1")));
}

#[test]
fn case20_ids_that_collide_once_sanitised_stay_distinct() {
    mends_claude(
        vec![
            model(vec![use_("a b"), use_("a_b"), use_("a:b")]),
            human(vec![result("a:b", "3"), result("a_b", "2"), result("a b", "1")]),
        ],
        "invalid_call_id",
        vec![
            model(vec![use_("a_b_2"), use_("a_b"), use_("a_b_3")]),
            human(vec![result("a_b_3", "3"), result("a_b", "2"), result("a_b_2", "1")]),
        ],
    );
    let (one, two) = (format!("{}1", "x".repeat(82)), format!("{}2", "x".repeat(82)));
    let out = mended(&chat(vec![calls(&[&one, &two]), tool(&two, "2"), tool(&one, "1")]), CHAT);
    assert_ne!(out[0]["tool_calls"][0]["id"], out[0]["tool_calls"][1]["id"]);
    assert_eq!(out[1]["tool_call_id"], out[0]["tool_calls"][1]["id"]);
}

#[test]
fn case21_an_id_is_sanitised_in_both_places() {
    mends_claude(
        vec![model(vec![use_("a b:c")]), human(vec![result("a b:c", "1")])],
        "invalid_call_id",
        vec![model(vec![use_("a_b_c")]), human(vec![result("a_b_c", "1")])],
    );
    takes(claude(vec![model(vec![use_("call_1")]), human(vec![result("call_1", "1")])]), CLAUDE);
}

#[test]
fn case22_a_long_id_is_cut_in_both_places() {
    let id = "y".repeat(83);
    let out = mended(&chat(vec![calls(&[&id]), tool(&id, "1")]), CHAT);
    let cut = out[0]["tool_calls"][0]["id"].as_str().unwrap();
    assert!(cut.len() <= 64 && cut.starts_with("yyyy"));
    assert_eq!(out[1]["tool_call_id"], cut);
    takes(chat(vec![calls(&[&"y".repeat(64)]), tool(&"y".repeat(64), "1")]), CHAT);
}

#[test]
fn r5_a_missing_or_empty_id_is_the_same_in_call_and_result() {
    for missing in [json!(""), Value::Null, json!({})] {
        let mut given = chat(vec![calls(&["a", "b"]), tool("", "2"), tool("b", "1")]);
        given["messages"][0]["tool_calls"][0]["id"] = missing.clone();
        given["messages"][1]["tool_call_id"] = missing.clone();
        let out = mended(&given, CHAT);
        let id = out[0]["tool_calls"][0]["id"].as_str().unwrap();
        assert!(!id.is_empty());
        assert_eq!(out[1], tool(id, "2"));
        let mut given = claude(vec![model(vec![use_("a")]), human(vec![result("", "2")])]);
        given["messages"][0]["content"][0]["id"] = missing;
        let out = mended(&given, CLAUDE);
        assert_eq!(out[1]["content"][0]["tool_use_id"], out[0]["content"][0]["id"]);
    }
    // A result without an id, in its place, answers the call that has none yet, and a call without one takes its result's.
    let mut given = chat(vec![calls(&["a", "b"]), tool("b", "2"), json!({ "role": "tool", "content": "1" })]);
    assert_eq!(
        mended(&given, CHAT),
        json!([calls(&["a", "b"]), tool("b", "2"), { "role": "tool", "content": "1", "tool_call_id": "a" }])
    );
    given["messages"] = json!([{ "role": "assistant", "tool_calls": [{ "type": "function", "function": { "name": "f", "arguments": "{}" } }] }, tool("x1", "1")]);
    let out = mended(&given, CHAT);
    assert_eq!((&out[0]["tool_calls"][0]["id"], &out[1]), (&json!("x1"), &tool("x1", "1")));
}

#[test]
fn case25_empty_arguments() {
    let mut body = claude(vec![model(vec![use_("a")]), human(vec![result("a", "1")])]);
    for given in [json!(""), Value::Null, json!("null")] {
        body["messages"][0]["content"][0]["input"] = given;
        assert_eq!(errors(&body, CLAUDE), ["invalid_arguments"]);
        assert_eq!(mended(&body, CLAUDE)[0], model(vec![use_("a")]));
    }
    let mut body = chat(vec![calls(&["a"]), tool("a", "1")]);
    body["messages"][0]["tool_calls"][0]["function"]["arguments"] = json!("");
    takes(body.clone(), CHAT);
    assert_eq!(codes(&validate(body.to_string().as_bytes(), CHAT), Severity::Warning), ["invalid_arguments"]);
    body["messages"][0]["tool_calls"][0]["function"]["arguments"] = Value::Null;
    assert_eq!(mended(&body, CHAT)[0], calls(&["a"]));
}

#[test]
fn case26_invalid_json_in_arguments_is_reported() {
    let mut body = claude(vec![model(vec![use_("a")]), human(vec![result("a", "1")])]);
    body["messages"][0]["content"][0]["input"] = json!("{\"a\":");
    assert_eq!(errors(&body, CLAUDE), ["invalid_arguments"]);
    assert_eq!(mended(&body, CLAUDE)[0]["content"][0]["input"], json!({ "value": "{\"a\":" }));
    let mut body = chat(vec![calls(&["a"]), tool("a", "1")]);
    body["messages"][0]["tool_calls"][0]["function"]["arguments"] = json!("{\"a\":");
    takes(body, CHAT);
}

#[test]
fn case27_arguments_that_are_no_object() {
    let mut body = claude(vec![model(vec![use_("a")]), human(vec![result("a", "1")])]);
    for (given, out) in [
        (json!([1]), json!({ "value": [1] })),
        (json!("[1]"), json!({ "value": [1] })),
        (json!("{\"b\":1}"), json!({ "b": 1 })),
        (json!(true), json!({ "value": true })),
    ] {
        body["messages"][0]["content"][0]["input"] = given;
        assert_eq!(mended(&body, CLAUDE)[0]["content"][0]["input"], out);
    }
    let mut body = chat(vec![calls(&["a"]), tool("a", "1")]);
    body["messages"][0]["tool_calls"][0]["function"]["arguments"] = json!({ "b": [1] });
    assert_eq!(errors(&body, CHAT), ["invalid_arguments"]);
    assert_eq!(mended(&body, CHAT)[0]["tool_calls"][0]["function"]["arguments"], json!("{\"b\":[1]}"));
}

#[test]
fn case28_big_numbers_keep_their_digits() {
    let text = r#"{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":"{\"n\": 12345678901234567890.10, \"n\":1}"}]}]}"#;
    let out = String::from_utf8(repair(text.as_bytes(), CLAUDE, &RepairOptions::default()).0).unwrap();
    assert!(out.contains(r#""input":{"n": 12345678901234567890.10, "n":1}"#), "{out}");
}

#[test]
fn r40_anthropic_takes_four_cache_marks() {
    let mark = json!({"type": "ephemeral"});
    let marked = |text: &str| json!({"type": "text", "text": text, "cache_control": mark});
    let mut body = claude(vec![
        human(vec![marked("1"), marked("2")]),
        model(vec![json!({"type": "tool_use", "id": "a", "name": "f", "input": {"cache_control": 1}})]),
        human(vec![
            json!({"type": "tool_result", "tool_use_id": "a", "content": [marked("3")], "cache_control": mark}),
        ]),
    ]);
    takes(body.clone(), CLAUDE);
    body["system"] = json!([marked("s")]);
    assert_eq!(errors(&body, CLAUDE), ["malformed"]);
    let (out, _) = repair(body.to_string().as_bytes(), CLAUDE, &RepairOptions::default());
    let mut want = body;
    want["messages"][0]["content"][0].as_object_mut().unwrap().shift_remove("cache_control");
    assert_eq!(serde_json::from_slice::<Value>(&out).unwrap(), want);
}
