//! Reading bodies back for the properties; scalars, size and depth.

use super::{CHAT, CLAUDE};
use rethread::message::Dialect;
use rethread::provider::{RepairOptions, repair, validate};
use serde_json::Value;

fn items(body: &Value, dialect: Dialect) -> Vec<Value> {
    let name = match dialect {
        Dialect::Gemini => "contents",
        Dialect::OpenAiResponses | Dialect::GeminiInteractions => "input",
        Dialect::MistralConversations => "inputs",
        _ => "messages",
    };
    body[name].as_array().cloned().unwrap_or_default()
}

/// Every text of a user or assistant message that is well-formed. White space at the end is left out: Anthropic takes
/// none at the very end.
pub fn said(body: &Value, dialect: Dialect) -> Vec<String> {
    let mut out = Vec::new();
    for message in items(body, dialect) {
        let is_step = matches!(message["type"].as_str(), Some("user_input" | "model_output"));
        if !is_step && !["user", "assistant", "model"].contains(&message["role"].as_str().unwrap_or("")) {
            continue;
        }
        let content = if dialect == Dialect::Gemini { &message["parts"] } else { &message["content"] };
        match content {
            Value::String(text) => out.push(text.trim_end().to_owned()),
            Value::Array(parts) => out.extend(
                parts
                    .iter()
                    .filter(|p| {
                        matches!(dialect, Dialect::Gemini | Dialect::Bedrock)
                            || p["type"].as_str().is_some_and(|kind| kind.ends_with("text"))
                    })
                    .filter_map(|p| p["text"].as_str())
                    .map(|t| t.trim_end().to_owned()),
            ),
            _ => {}
        }
    }
    out.retain(|text| !text.is_empty());
    out
}

/// An id with what it belongs to: a call with its name, or a result with its content.
type Named = (String, String);

fn texts(value: &Value, id: &str, text: &str) -> Option<Named> {
    Some((value[id].as_str()?.to_owned(), value[text].as_str()?.to_owned()))
}

/// The well-formed calls and results of a body, by id; every other id that occurs has no text.
fn calls_and_results(body: &Value, dialect: Dialect) -> (Vec<Named>, Vec<Named>) {
    let (mut calls, mut results) = (Vec::new(), Vec::new());
    for item in items(body, dialect) {
        let list = |name: &str| item[name].as_array().cloned().unwrap_or_default();
        match dialect {
            Dialect::OpenAiChat | Dialect::Mistral => {
                calls.extend(
                    list("tool_calls").iter().filter_map(|call| Some((call["id"].as_str()?.into(), String::new()))),
                );
                results.extend(texts(&item, "tool_call_id", "content").filter(|_| item["role"] == "tool"));
            }
            Dialect::Anthropic => {
                for block in list("content") {
                    match block["type"].as_str() {
                        Some("tool_use") => calls.extend(texts(&block, "id", "name")),
                        Some("tool_result") => results.extend(texts(&block, "tool_use_id", "content")),
                        _ => {}
                    }
                }
            }
            Dialect::Bedrock => {
                for block in list("content") {
                    if block["toolUse"]["type"] != "server_tool_use" {
                        calls.extend(texts(&block["toolUse"], "toolUseId", "name"));
                    }
                    let result = &block["toolResult"];
                    // Blank texts of a result go.
                    let blocks = result["content"].as_array().into_iter().flatten();
                    let said: String = blocks.filter_map(|block| block["text"].as_str()).collect();
                    results.extend(result["toolUseId"].as_str().map(|id| (id.to_owned(), said.trim().to_owned())));
                }
            }
            Dialect::MistralConversations => match item["type"].as_str() {
                Some("function.call") => calls.extend(texts(&item, "tool_call_id", "name")),
                Some("function.result") => results.extend(texts(&item, "tool_call_id", "result")),
                _ => {}
            },
            Dialect::GeminiInteractions => match item["type"].as_str() {
                Some("function_call") => calls.extend(texts(&item, "id", "name")),
                Some("function_result") => results.extend(texts(&item, "call_id", "result")),
                _ => {}
            },
            Dialect::OpenAiResponses => match item["type"].as_str() {
                Some("function_call") => calls.extend(texts(&item, "call_id", "name")),
                Some("function_call_output") => results.extend(texts(&item, "call_id", "output")),
                _ => {}
            },
            Dialect::Gemini => {
                for part in list("parts") {
                    calls.extend(texts(&part["functionCall"], "id", "name"));
                    let response = &part["functionResponse"];
                    // A response that is no object is wrapped in one.
                    let object = response["response"].is_object().then(|| response["response"].to_string());
                    results.extend(response["id"].as_str().map(String::from).zip(object));
                }
            }
        }
    }
    (calls, results)
}

/// The contents of results that belong to one call beyond doubt: one call and one result of the body have the id.
pub fn answers(body: &Value, dialect: Dialect) -> Vec<String> {
    let (calls, results) = calls_and_results(body, dialect);
    let whole = body.to_string();
    let once = |list: &[Named], id: &str| list.iter().filter(|(own, _)| own == id).count() == 1;
    results
        .iter()
        // Beside these two the id occurs nowhere, be it in an item that is malformed.
        .filter(|(id, _)| !id.is_empty() && whole.matches(&Value::from(id.as_str()).to_string()).count() == 2)
        .filter(|(id, text)| once(&calls, id) && once(&results, id) && !text.trim().is_empty())
        .map(|(_, text)| text.clone())
        .collect()
}

/// The contents of all results.
pub fn results(body: &Value, dialect: Dialect) -> Vec<String> {
    calls_and_results(body, dialect).1.into_iter().map(|(_, text)| text).collect()
}

/// How many images the user shows.
pub fn count_images(body: &Value, dialect: Dialect) -> usize {
    let shown = |part: &Value| {
        matches!(part["type"].as_str(), Some("image_url" | "input_image" | "image")) && part["image_url"] != Value::Null
    };
    items(body, dialect)
        .iter()
        // An entry of the model may name another role, which is repaired.
        .filter(|message| message["role"] == "user" && message["type"] != "message.output")
        .filter_map(|message| message["content"].as_array())
        .map(|parts| parts.iter().filter(|part| shown(part)).count())
        .sum()
}

/// How many well-formed calls it holds.
pub fn count_calls(body: &Value, dialect: Dialect) -> usize {
    let count = |list: &Value, is: &dyn Fn(&Value) -> bool| {
        list.as_array().map_or(0, |list| list.iter().filter(|v| is(v)).count())
    };
    items(body, dialect)
        .iter()
        .map(|message| match dialect {
            Dialect::OpenAiChat | Dialect::Mistral if message["role"] == "assistant" => {
                count(&message["tool_calls"], &Value::is_object)
            }
            Dialect::Anthropic if message["role"] == "assistant" => {
                count(&message["content"], &|b| b["type"] == "tool_use")
            }
            Dialect::Bedrock if message["role"] == "assistant" => {
                count(&message["content"], &|b| b["toolUse"].is_object())
            }
            Dialect::Gemini if message["role"] == "model" => {
                count(&message["parts"], &|p| p["functionCall"].is_object())
            }
            Dialect::OpenAiResponses | Dialect::GeminiInteractions => usize::from(message["type"] == "function_call"),
            Dialect::MistralConversations => usize::from(message["type"] == "function.call"),
            _ => 0,
        })
        .sum()
}

#[test]
fn r41_scalars_and_wrong_roots_are_errors() {
    for dialect in Dialect::ALL {
        for text in [
            "null",
            "1",
            "true",
            "\"x\"",
            "[]",
            "{}",
            "[null]",
            "{\"messages\":null,\"contents\":null,\"input\":null,\"inputs\":null}",
            "{\"messages\":{},\"contents\":{},\"input\":{},\"inputs\":{}}",
            "{\"messages\":\"hi\",\"contents\":\"hi\",\"input\":\"hi\",\"inputs\":\"hi\"}",
            "{\"messages\":[[]],\"contents\":[[]],\"input\":[[]],\"inputs\":[[]]}",
            " \n{ \"messages\" : [ ] , \"a\" : 1 } ",
            "[{\"role\":\"user\",\"content\":\"x\",\"parts\":[{\"text\":\"x\"}]}]",
        ] {
            let (out, report) = repair(text.as_bytes(), dialect, &RepairOptions::default()).unwrap();
            let shown = String::from_utf8_lossy(&out);
            serde_json::from_slice::<Value>(&out).unwrap_or_else(|e| panic!("{e}: {shown}"));
            let left = validate(&out, dialect);
            assert!(
                crate::wire_rules::codes(&left, rethread::finding::Severity::Error).is_empty(),
                "{text} -> {shown}: {left:?}"
            );
            assert!(!report.is_empty() || text.contains("hi"), "{text}");
        }
        for bad in [&b""[..], b"{", b"\xff\xfe", b"{\"messages\":[}"] {
            let (out, report) = repair(bad, dialect, &RepairOptions::default()).unwrap();
            assert_eq!(out, bad);
            assert_eq!(report[0].code.as_str(), "malformed");
            assert_eq!(validate(bad, dialect)[0].code.as_str(), "malformed");
        }
    }
}

#[test]
fn r41_unchanged_tokens_keep_their_bytes() {
    let odd = r#"{"a" : 1.50e+1, "a": 9007199254740993123 ,"s":"\u00e9\ud800\/"}"#;
    let text = format!(
        " {{ \"x\" : {odd} ,\n \"messages\" : [ {{\"role\" : \"user\", \"content\":\"\\u0061\", \"k\": {odd}}} ,\n {{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[ {{\"id\":\"a\",\"type\":\"function\",\"function\":{{\"name\":\"f\",\"arguments\":{odd}}}}} ]}} ] }} "
    );
    let (out, _) = repair(text.as_bytes(), CHAT, &RepairOptions::default()).unwrap();
    let out = String::from_utf8(out).unwrap();
    let closed = format!(",{{\"role\":\"tool\",\"tool_call_id\":\"a\",\"content\":\"{}\"}}", crate::wire_rules::TEXT);
    let string = serde_json::to_string(odd).unwrap();
    let expected = text.replacen("]}} ] }} ".replace("}}", "}").as_str(), &format!("]}}{closed} ] }} "), 1);
    let expected = expected.replace(&format!("\"arguments\":{odd}"), &format!("\"arguments\":{string}"));
    assert_eq!(out, expected);
}

#[test]
fn r41_deep_and_large_bodies_are_repaired() {
    let deep = format!("{{\"messages\":[{}1{}]}}", "[".repeat(200_000), "]".repeat(200_000));
    let long = format!("{{\"messages\":[{{\"role\":\"tool\",\"content\":\"{}\"}}]}}", "x".repeat(10_000_000));
    for dialect in Dialect::ALL {
        for text in [&deep, &long] {
            // Of another dialect it is refused, and that has to end as well.
            let _ = repair(text.as_bytes(), dialect, &RepairOptions::default());
        }
    }
    let many = |n: usize, dialect: Dialect| {
        let messages: Vec<Value> = (0..n)
            .flat_map(|i| {
                let id = format!("c{}", i % 7);
                if dialect == CLAUDE {
                    [
                        crate::wire_rules::assistant_blocks(vec![crate::wire_rules::tool_use(&id)]),
                        crate::wire_rules::user_blocks(vec![crate::wire_rules::text("x")]),
                    ]
                } else {
                    [crate::wire_rules::calls(&[&id]), crate::wire_rules::user("x")]
                }
            })
            .chain((0..n).map(|i| {
                let id = format!("c{}", i % 7);
                if dialect == CLAUDE {
                    crate::wire_rules::user_blocks(vec![crate::wire_rules::result(&id, "r")])
                } else {
                    crate::wire_rules::tool(&id, "r")
                }
            }))
            .collect();
        crate::wire_rules::chat(messages).to_string()
    };
    for dialect in [CHAT, CLAUDE] {
        let _ = repair(many(4_000, dialect).as_bytes(), dialect, &RepairOptions::default());
    }
    let of_one_id = |count: usize| serde_json::json!({ "messages": [crate::wire_rules::calls(&vec!["same"; count])] });
    crate::wire_rules::repaired_body(&of_one_id(1_000), CHAT);
    // Each of its calls has two errors: more than a body of its length may have.
    let many = of_one_id(20_000).to_string();
    let (text, report) = repair(many.as_bytes(), CHAT, &RepairOptions::default()).unwrap();
    assert!(text == many.as_bytes());
    assert_eq!(report.iter().map(|found| found.code.as_str()).collect::<Vec<_>>(), ["too_many_edits"]);
}

#[test]
fn r41_removing_a_member_removes_its_duplicates() {
    let of =
        |members: &str| format!(r#"{{"messages":[{{"role":"user","content":"q"}},{{"role":"assistant",{members}}}]}}"#);
    let given = of(r#""tool_calls":[],"content":"x","tool_calls":[],"name":"n","tool_calls":[]"#);
    let (mended, _) = repair(given.as_bytes(), CHAT, &RepairOptions::default()).unwrap();
    assert_eq!(String::from_utf8(mended).unwrap(), of(r#""content":"x","name":"n""#));
}

#[test]
fn r41_the_members_of_a_flat_call_move_into_its_object() {
    let repaired = |call: Value, dialect: Dialect| {
        let mut call = call;
        call["id"] = "call00001".into();
        let result = serde_json::json!({ "role": "tool", "tool_call_id": "call00001", "content": "r" });
        let message = serde_json::json!({ "role": "assistant", "content": "", "tool_calls": [call] });
        let body = serde_json::json!({ "model": "m", "messages": [crate::wire_rules::user("q"), message, result] });
        let (text, _) = repair(body.to_string().as_bytes(), dialect, &RepairOptions::default()).unwrap();
        serde_json::from_slice::<Value>(&text).unwrap()["messages"][1]["tool_calls"][0].clone()
    };
    let function = serde_json::json!({ "name": "f", "arguments": "{\"a\":1}" });
    let given = serde_json::json!({ "name": "f", "arguments": { "a": 1 }, "own": 2 });
    let expected = serde_json::json!({ "id": "call00001", "type": "function", "function": function, "own": 2 });
    assert_eq!(repaired(given.clone(), Dialect::OpenAiChat), expected);
    assert_eq!(repaired(given, Dialect::Mistral)["function"]["name"], "f");
    let given = serde_json::json!({ "type": "custom", "name": "f", "arguments": null, "input": "x" });
    let expected = serde_json::json!({ "id": "call00001", "type": "custom", "custom": { "name": "f", "input": "x" }, "arguments": null });
    assert_eq!(repaired(given, Dialect::OpenAiChat), expected);
}
