//! Cases 19 to 28: ids, fixpoints, arguments.

use crate::wire_cases::*;
use serde_json::json;

/// Ids of calls, then of results, as they stand in a body.
fn ids_of(dialect: Dialect, body: &Value) -> (Vec<String>, Vec<String>) {
    let (mut calls, mut results) = (Vec::new(), Vec::new());
    let text = |id: &Value| id.as_str().unwrap_or_default().to_owned();
    for item in body[list_name(dialect)].as_array().unwrap() {
        for call in item["tool_calls"].as_array().into_iter().flatten() {
            calls.push(text(&call["id"]));
        }
        if item["role"] == "tool" {
            results.push(text(&item["tool_call_id"]));
        }
        match item["type"].as_str() {
            Some("function_call") => calls.push(text(item.get("call_id").unwrap_or(&item["id"]))),
            Some("function_result") => results.push(text(&item["call_id"])),
            Some("function.call") => calls.push(text(&item["tool_call_id"])),
            Some("function.result") => results.push(text(&item["tool_call_id"])),
            Some("function_call_output") => results.push(text(&item["call_id"])),
            _ => {}
        }
        for block in ["content", "parts"].iter().filter_map(|name| item[name].as_array()).flatten() {
            match block["type"].as_str() {
                Some("tool_use") => calls.push(text(&block["id"])),
                Some("tool_result") => results.push(text(&block["tool_use_id"])),
                _ => {}
            }
            block.get("toolUse").iter().for_each(|call| calls.push(text(&call["toolUseId"])));
            block.get("toolResult").iter().for_each(|result| results.push(text(&result["toolUseId"])));
            block.get("functionCall").iter().for_each(|call| calls.push(text(&call["id"])));
            block.get("functionResponse").iter().for_each(|result| results.push(text(&result["id"])));
        }
    }
    (calls, results)
}

/// Whether a dialect takes that id.
fn is_legal(dialect: Dialect, id: &str) -> bool {
    let plain = id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    match dialect {
        Dialect::Mistral => id.len() == 9 && id.bytes().all(|b| b.is_ascii_alphanumeric()),
        Dialect::MistralConversations => !id.is_empty(),
        Dialect::Anthropic => !id.is_empty() && plain,
        Dialect::Bedrock => {
            (1..=64).contains(&id.len())
                && id.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b':'))
        }
        Dialect::Gemini => true,
        Dialect::GeminiInteractions => !id.is_empty(),
        _ => (1..=64).contains(&id.len()),
    }
}

/// Parallel calls by these ids, answered in the other order. On every way to every dialect their ids are legal, apart
/// from one another, and the same in call and result.
fn carried(ids: &[&str]) {
    let calls = ids.iter().enumerate().map(|(at, id)| (format!("ID{at}"), *id));
    let names: Vec<String> = (0..ids.len()).map(|at| format!("ID{at}")).collect();
    let results: Vec<String> = names.iter().rev().map(|name| format!("{name}=of-{name}")).collect();
    let talk = format!("u q; c {}; r {}; u p", names.join(" "), results.join(" "));
    for from in ALL {
        // Ids in short first: of the ids that are meant some cannot be written so.
        let mut text = write(from, &talk).to_string();
        for (name, id) in calls.clone() {
            let (short, id) = (id_of(from, &name), json!(id).to_string());
            text = text.replace(&format!("\"{short}\""), &id);
        }
        let body: Value = serde_json::from_str(&text).unwrap();
        let mut outs = vec![(from, repaired(&body, from).0)];
        for to in ALL {
            outs.push((to, Stored::of(from, &body).body(to)));
            outs.push((to, converted(&body, from, to).0));
        }
        for (to, out) in outs {
            let steps = read(to, &out);
            for at in 0..ids.len() {
                assert!(steps.contains(&format!("r {}=of-ID{at}", at + 1)), "{from:?} {to:?} {out}");
            }
            let (calls, mut results) = ids_of(to, &out);
            assert!(calls.iter().all(|id| is_legal(to, id)), "{from:?} {to:?} {out}");
            if to != Dialect::Gemini {
                let mut apart = calls.clone();
                apart.sort();
                results.sort();
                assert_eq!(apart, results, "{from:?} {to:?} {out}");
                apart.dedup();
                assert_eq!(apart.len(), ids.len(), "{from:?} {to:?} {out}");
            }
        }
    }
}

#[test]
fn wf_19_mistral_ids_are_nine_letters_and_digits_in_call_and_result() {
    carried(&["call_abc_123"]);
    carried(&["call_abc_123", "call_abc_124"]);
    let body =
        chat(vec![calls(&["call_abc_123", "call_abc_124"]), tool("call_abc_124", "2"), tool("call_abc_123", "1")]);
    assert!(errors(&body, MISTRAL).contains(&"invalid_call_id"));
    let out = repaired_body(&body, MISTRAL);
    let (one, two) = (out[0]["tool_calls"][0]["id"].as_str().unwrap(), out[0]["tool_calls"][1]["id"].as_str().unwrap());
    assert!([one, two].iter().all(|id| id.len() == 9 && id.bytes().all(|b| b.is_ascii_alphanumeric())) && one != two);
    assert_eq!((&out[1], &out[2]), (&tool(two, "2"), &tool(one, "1")));
}

#[test]
fn wf_20_ids_that_collide_once_shortened_stay_distinct() {
    let long = |end: &str| format!("{}{end}", "x".repeat(82));
    carried(&[&long("1"), &long("2"), &long("3")]);
    carried(&["a b", "a_b", "a:b", "a-b"]);
    carried(&["call_abcdefghi", "callabcdefghi", "abcdefghi", "abcdefgh"]);
    carried(&["a b", "a_b_2", "a:b", "a_b"]);
    assert_claude_repair(
        vec![
            assistant_blocks(vec![tool_use("a b"), tool_use("a_b"), tool_use("a:b")]),
            user_blocks(vec![result("a:b", "3"), result("a_b", "2"), result("a b", "1")]),
        ],
        "invalid_call_id",
        vec![
            assistant_blocks(vec![tool_use("a_b_2"), tool_use("a_b"), tool_use("a_b_3")]),
            user_blocks(vec![result("a_b_3", "3"), result("a_b", "2"), result("a_b_2", "1")]),
        ],
    );
    let (one, two) = (format!("{}1", "x".repeat(82)), format!("{}2", "x".repeat(82)));
    let out = repaired_body(&chat(vec![calls(&[&one, &two]), tool(&two, "2"), tool(&one, "1")]), CHAT);
    assert_ne!(out[0]["tool_calls"][0]["id"], out[0]["tool_calls"][1]["id"]);
    assert_eq!(out[1]["tool_call_id"], out[0]["tool_calls"][1]["id"]);
}

#[test]
fn wf_21_an_id_is_sanitized_in_call_and_result() {
    carried(&["a b:c"]);
    carried(&["é/ü", "日本"]);
    assert_claude_repair(
        vec![assistant_blocks(vec![tool_use("a b:c")]), user_blocks(vec![result("a b:c", "1")])],
        "invalid_call_id",
        vec![assistant_blocks(vec![tool_use("a_b_c")]), user_blocks(vec![result("a_b_c", "1")])],
    );
    assert_accepted(
        claude(vec![assistant_blocks(vec![tool_use("call_1")]), user_blocks(vec![result("call_1", "1")])]),
        CLAUDE,
    );
}

#[test]
fn wf_22_a_long_id_is_shortened_in_call_and_result() {
    carried(&[&"y".repeat(83)]);
    let id = "y".repeat(83);
    let out = repaired_body(&chat(vec![calls(&[&id]), tool(&id, "1")]), CHAT);
    let cut = out[0]["tool_calls"][0]["id"].as_str().unwrap();
    assert!(cut.len() <= 64 && cut.starts_with("yyyy"));
    assert_eq!(out[1]["tool_call_id"], cut);
    assert_accepted(chat(vec![calls(&[&"y".repeat(64)]), tool(&"y".repeat(64), "1")]), CHAT);
}

/// Conversations with something of everything, whole and broken.
const TALKS: [&str; 8] = [
    "s be brief; u q; a so + c a b; r b=2 a=1; c c; r c=3; a x; u p",
    "u q; c a; u p",
    "u q; c a b; r b=2",
    "u q; r z=9; c a a; r a=1 a=2; a x; u p",
    "u q; c a; u wait; r a=1; a x",
    "c a; r a=1; a x; u p; c a; r a=2",
    "a hello; u q; u again; a x; a y",
    "u q; r a=1; c a",
];

#[test]
fn wf_23_rendering_a_history_twice_gives_the_same_bytes() {
    for from in ALL {
        for talk in TALKS {
            let body = write(from, talk);
            let text = body.to_string();
            let options = RepairOptions::default();
            assert_eq!(
                repair(text.as_bytes(), from, &options).unwrap(),
                repair(text.as_bytes(), from, &options).unwrap()
            );
            for to in ALL {
                assert_eq!(
                    Stored::of(from, &body).bytes(to),
                    Stored::of(from, &body).bytes(to),
                    "{from:?} {to:?} {talk}"
                );
                let once = || convert(text.as_bytes(), from, to, &options).unwrap();
                assert_eq!(once(), once(), "{from:?} {to:?} {talk}");
            }
        }
    }
}

#[test]
fn wf_24_a_rendered_body_that_is_read_again_renders_the_same() {
    for from in ALL {
        for talk in TALKS {
            for to in ALL {
                let (first, _) = Stored::of(from, &write(from, talk)).bytes(to);
                let again = Stored::of(to, &serde_json::from_str(&first).unwrap());
                let (second, _) = again.bytes(to);
                assert_eq!(second, first, "{from:?} {to:?} {talk}");
                assert!(
                    !has(&again.report, &["orphan_result", "malformed"]),
                    "{from:?} {to:?} {talk} {:?}",
                    again.report
                );
            }
        }
    }
}

/// A conversation with one answered call, its arguments as they are written in that dialect.
fn calling(dialect: Dialect, arguments: &str) -> String {
    let body = write(dialect, "u q; c a; r a=1; a x; u p").to_string();
    let (plain, given) = match dialect {
        Dialect::Anthropic | Dialect::Bedrock => (r#""input":{}"#, format!(r#""input":{arguments}"#)),
        Dialect::GeminiInteractions => (r#""arguments":{}"#, format!(r#""arguments":{arguments}"#)),
        Dialect::Gemini => (r#""args":{}"#, format!(r#""args":{arguments}"#)),
        _ => (r#""arguments":"{}""#, format!(r#""arguments":{arguments}"#)),
    };
    assert!(body.contains(plain));
    body.replace(plain, &given)
}

/// The arguments of a body's one call, as they stand there.
fn arguments_in(dialect: Dialect, body: &str) -> String {
    let body = Json::parse(body).unwrap();
    let view = body.view();
    for item in view.get(list_name(dialect)).unwrap().items() {
        let call = item.get("tool_calls").and_then(|calls| calls.items().next()?.get("function")?.get("arguments"));
        let own = item.get("arguments");
        let blocks = item.get("content").or_else(|| item.get("parts"));
        let block = blocks.and_then(|blocks| {
            blocks.items().find_map(|block| {
                block
                    .get("input")
                    .or_else(|| block.get("functionCall")?.get("args"))
                    .or_else(|| block.get("toolUse")?.get("input"))
            })
        });
        if let Some(found) = call.or(own).or(block) {
            return found.as_raw().to_owned();
        }
    }
    panic!("no call: {}", body.as_str())
}

const TEXTUAL: [Dialect; 4] = [CHAT, Dialect::OpenAiResponses, MISTRAL, Dialect::MistralConversations];
const OBJECTS: [Dialect; 4] = [CLAUDE, Dialect::Gemini, Dialect::Bedrock, Dialect::GeminiInteractions];

/// Every way of a body to every dialect: repaired, stored, converted.
fn ways(from: Dialect, body: &str) -> Vec<(Dialect, String, Report)> {
    let (out, report) = repair(body.as_bytes(), from, &RepairOptions::default()).unwrap();
    accepted(&out, from);
    let mut outs = vec![(from, String::from_utf8(out).unwrap(), report)];
    for to in ALL {
        let mut stored = Stored::new();
        stored.append(from, body);
        let (text, report) = stored.bytes(to);
        outs.push((to, text, [stored.report, report].concat()));
        if to != from {
            let (out, report) = convert(body.as_bytes(), from, to, &RepairOptions::default()).unwrap();
            accepted(&out, to);
            outs.push((to, String::from_utf8(out).unwrap(), report));
        }
    }
    outs
}

#[test]
fn wf_25_empty_arguments_become_an_empty_object() {
    for from in TEXTUAL {
        let given = calling(from, r#""""#);
        for (to, out, _) in ways(from, &given) {
            let got = arguments_in(to, &out);
            // What the provider takes comes back as it came.
            let same = to == from && got == r#""""#;
            let want = if OBJECTS.contains(&to) { "{}" } else { r#""{}""# };
            assert!(got == want || same, "{from:?} {to:?} {got}");
        }
        assert_accepted(serde_json::from_str(&given).unwrap(), from);
    }
    for from in OBJECTS {
        for given in ["{}", r#""""#, "null"] {
            for (to, out, _) in ways(from, &calling(from, given)) {
                let want = if OBJECTS.contains(&to) { "{}" } else { r#""{}""# };
                // To Gemini null is what is not said.
                let want = if (from, to, given) == (GEMINI, GEMINI, "null") { "null" } else { want };
                assert_eq!(arguments_in(to, &out), want, "{from:?} {to:?} {given}");
            }
        }
    }
    let mut body = claude(vec![assistant_blocks(vec![tool_use("a")]), user_blocks(vec![result("a", "1")])]);
    for given in [json!(""), Value::Null, json!("null")] {
        body["messages"][0]["content"][0]["input"] = given;
        assert_eq!(errors(&body, CLAUDE), ["invalid_arguments"]);
        assert_eq!(repaired_body(&body, CLAUDE)[0], assistant_blocks(vec![tool_use("a")]));
    }
    let mut body = chat(vec![calls(&["a"]), tool("a", "1")]);
    body["messages"][0]["tool_calls"][0]["function"]["arguments"] = json!("");
    assert_accepted(body.clone(), CHAT);
    assert_eq!(codes(&validate(body.to_string().as_bytes(), CHAT), Severity::Warning), ["invalid_arguments"]);
    body["messages"][0]["tool_calls"][0]["function"]["arguments"] = Value::Null;
    assert_eq!(repaired_body(&body, CHAT)[0], calls(&["a"]));
}

#[test]
fn wf_26_arguments_that_are_not_json_are_reported_and_kept() {
    for from in TEXTUAL {
        let given = calling(from, r#""{\"a\":""#);
        for (to, out, report) in ways(from, &given) {
            let got = arguments_in(to, &out);
            assert!(got.contains(r#"{\"a\":"#), "{from:?} {to:?} {got}");
            if OBJECTS.contains(&to) {
                assert!(got.starts_with('{'), "{from:?} {to:?} {got}");
                assert!(has(&report, &["invalid_arguments"]), "{from:?} {to:?} {report:?}");
            }
        }
    }
    let mut body = claude(vec![assistant_blocks(vec![tool_use("a")]), user_blocks(vec![result("a", "1")])]);
    body["messages"][0]["content"][0]["input"] = json!("{\"a\":");
    assert_eq!(errors(&body, CLAUDE), ["invalid_arguments"]);
    assert_eq!(repaired_body(&body, CLAUDE)[0]["content"][0]["input"], json!({ "value": "{\"a\":" }));
    let mut body = chat(vec![calls(&["a"]), tool("a", "1")]);
    body["messages"][0]["tool_calls"][0]["function"]["arguments"] = json!("{\"a\":");
    assert_accepted(body, CHAT);
}

#[test]
fn wf_27_arguments_that_are_not_an_object_are_wrapped() {
    for from in ALL {
        let given = if OBJECTS.contains(&from) { "[1]" } else { r#""[1]""# };
        for (to, out, report) in ways(from, &calling(from, given)) {
            let got = arguments_in(to, &out);
            if OBJECTS.contains(&to) {
                assert_eq!(got, r#"{"value":[1]}"#, "{from:?} {to:?}");
                assert!(has(&report, &["invalid_arguments"]), "{from:?} {to:?} {report:?}");
            } else {
                assert!(got.contains("[1]"), "{from:?} {to:?} {got}");
            }
        }
    }
    let mut body = claude(vec![assistant_blocks(vec![tool_use("a")]), user_blocks(vec![result("a", "1")])]);
    for (given, out) in [
        (json!([1]), json!({ "value": [1] })),
        (json!("[1]"), json!({ "value": [1] })),
        (json!("{\"b\":1}"), json!({ "b": 1 })),
        (json!(true), json!({ "value": true })),
    ] {
        body["messages"][0]["content"][0]["input"] = given;
        assert_eq!(repaired_body(&body, CLAUDE)[0]["content"][0]["input"], out);
    }
    let mut body = chat(vec![calls(&["a"]), tool("a", "1")]);
    body["messages"][0]["tool_calls"][0]["function"]["arguments"] = json!({ "b": [1] });
    assert_eq!(errors(&body, CHAT), ["invalid_arguments"]);
    assert_eq!(repaired_body(&body, CHAT)[0]["tool_calls"][0]["function"]["arguments"], json!("{\"b\":[1]}"));
    let body = json!({ "contents": [user_parts(vec![text_part("q")]), model_parts(vec![json!({ "functionCall": { "name": "f", "args": [1] } })]), user_parts(vec![function_response("f", "1")])] });
    assert_eq!(errors(&body, GEMINI), ["invalid_arguments"]);
    assert_eq!(repaired_body(&body, GEMINI)[1]["parts"][0]["functionCall"]["args"], json!({ "value": [1] }));
}

#[test]
fn wf_28_big_numbers_keep_their_digits() {
    let object = r#"{"n": 12345678901234567890.10, "m":1E+400, "n":9007199254740993}"#;
    let text = json!(object).to_string();
    for from in ALL {
        let given = if OBJECTS.contains(&from) { object } else { &text };
        for (to, out, _) in ways(from, &calling(from, given)) {
            let want = if OBJECTS.contains(&to) { object } else { &text };
            assert_eq!(arguments_in(to, &out), want, "{from:?} {to:?}");
        }
    }
    let text = r#"{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":"{\"n\": 12345678901234567890.10, \"n\":1}"}]}]}"#;
    let out = String::from_utf8(repair(text.as_bytes(), CLAUDE, &RepairOptions::default()).unwrap().0).unwrap();
    assert!(out.contains(r#""input":{"n": 12345678901234567890.10, "n":1}"#), "{out}");
}
