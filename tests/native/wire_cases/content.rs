//! Cases 29 to 33: what results hold, and how they find their call where there are no ids.

use crate::wire_cases::*;
use serde_json::json;

const PNG: &str = "iVBORw0KGgoAAAANSUhEUg==";

/// The conversation `u q; c a; r a=1; a x; u p`, with that in place of its result's wire object.
fn with_result(dialect: Dialect, result: Value) -> Value {
    let mut body = write(dialect, "u q; c a; r a=1; a x; u p");
    let turn = &mut body[list_name(dialect)][2];
    match dialect {
        Dialect::Anthropic | Dialect::Bedrock => turn["content"][0] = result,
        Dialect::Gemini => turn["parts"][0] = result,
        _ => *turn = result,
    }
    body
}

/// The results of a body: what each wire object says.
fn results(dialect: Dialect, body: &Value) -> Vec<Value> {
    let list = body[list_name(dialect)].as_array().unwrap().iter();
    match dialect {
        Dialect::Anthropic => list
            .flat_map(|item| item["content"].as_array().into_iter().flatten())
            .filter(|block| block["type"] == "tool_result")
            .cloned()
            .collect(),
        Dialect::Bedrock => list
            .flat_map(|item| item["content"].as_array().into_iter().flatten())
            .filter_map(|block| block.get("toolResult").cloned())
            .collect(),
        Dialect::Gemini => list
            .flat_map(|item| item["parts"].as_array().into_iter().flatten())
            .filter_map(|part| part.get("functionResponse").cloned())
            .collect(),
        Dialect::GeminiInteractions => list.filter(|item| item["type"] == "function_result").cloned().collect(),
        Dialect::OpenAiResponses => list.filter(|item| item["type"] == "function_call_output").cloned().collect(),
        Dialect::MistralConversations => list.filter(|item| item["type"] == "function.result").cloned().collect(),
        _ => list.filter(|item| item["role"] == "tool").cloned().collect(),
    }
}

/// A body in every dialect: as it is stored and rendered, and converted.
fn everywhere(from: Dialect, body: &Value) -> Vec<(Dialect, Value)> {
    let stored = Stored::of(from, body);
    let mut outs = vec![(from, repaired(body, from).0)];
    for to in ALL {
        outs.push((to, stored.body(to)));
        outs.push((to, converted(body, from, to).0));
    }
    outs
}

#[test]
fn wf_29_an_error_result_is_an_error_in_every_dialect() {
    let anthropic = json!({ "type": "tool_result", "tool_use_id": "a", "content": "boom", "is_error": true });
    let gemini = json!({ "functionResponse": { "id": "a", "name": "f", "response": { "error": "boom" } } });
    for (from, result) in [(CLAUDE, anthropic), (GEMINI, gemini)] {
        for (to, out) in everywhere(from, &with_result(from, result.clone())) {
            let result = &results(to, &out)[0];
            match to {
                Dialect::Anthropic => {
                    assert_eq!(result["is_error"], true, "{from:?} {out}");
                    assert_eq!(words(&result["content"]), "boom", "{from:?} {out}");
                }
                Dialect::Bedrock => {
                    assert_eq!(result["status"], "error", "{from:?} {out}");
                    assert_eq!(words(&result["content"]), "boom", "{from:?} {out}");
                }
                Dialect::GeminiInteractions => {
                    assert_eq!(result["is_error"], true, "{from:?} {out}");
                    assert_eq!(words(&result["result"]), "boom", "{from:?} {out}");
                }
                Dialect::Gemini => assert_eq!(result["response"], json!({ "error": "boom" }), "{from:?} {out}"),
                Dialect::OpenAiResponses => assert!(words(&result["output"]).contains("rror: boom"), "{from:?} {out}"),
                Dialect::MistralConversations => {
                    assert!(words(&result["result"]).contains("rror: boom"), "{from:?} {out}");
                }
                _ => assert!(words(&result["content"]).contains("rror: boom"), "{from:?} {out}"),
            }
        }
    }
}

#[test]
fn wf_30_an_empty_result_is_valid_in_every_dialect() {
    let anthropic = |content: Value, is_error: bool| json!({ "type": "tool_result", "tool_use_id": "a", "content": content, "is_error": is_error });
    let bare = json!({ "type": "tool_result", "tool_use_id": "a" });
    let answer = |response: Value| json!({ "functionResponse": { "id": "a", "name": "f", "response": response } });
    let message =
        |from: Dialect, content: Value| json!({ "role": "tool", "tool_call_id": id_of(from, "a"), "content": content });
    let output = |output: Value| json!({ "type": "function_call_output", "call_id": "a", "output": output });
    let given = [
        (CLAUDE, anthropic(json!(""), false)),
        (CLAUDE, anthropic(json!(""), true)),
        (CLAUDE, anthropic(json!([]), true)),
        (CLAUDE, anthropic(json!([{ "type": "text", "text": "" }]), true)),
        (CLAUDE, anthropic(json!([{ "type": "text", "text": "" }]), false)),
        (CLAUDE, bare),
        (GEMINI, answer(json!({}))),
        (GEMINI, answer(json!({ "result": "" }))),
        (GEMINI, answer(json!({ "error": "" }))),
        (GEMINI, answer(Value::Null)),
        (CHAT, message(CHAT, json!(""))),
        (CHAT, message(CHAT, Value::Null)),
        (CHAT, message(CHAT, json!([]))),
        (MISTRAL, message(MISTRAL, json!(""))),
        (MISTRAL, message(MISTRAL, json!([]))),
        (RESPONSES, output(json!(""))),
        (RESPONSES, output(json!([]))),
        (RESPONSES, output(Value::Null)),
    ];
    for (from, result) in given {
        for (to, out) in everywhere(from, &with_result(from, result.clone())) {
            let found = results(to, &out);
            assert_eq!(found.len(), 1, "{from:?} {result} {to:?} {out}");
            match to {
                Dialect::Anthropic if found[0]["is_error"] == true => {
                    assert!(!words(&found[0]["content"]).trim().is_empty(), "{from:?} {result} {out}");
                }
                Dialect::Gemini => assert!(found[0]["response"].is_object(), "{from:?} {result} {out}"),
                Dialect::OpenAiResponses => assert!(found[0].get("output").is_some(), "{from:?} {result} {out}"),
                CHAT | MISTRAL => assert!(
                    found[0]["content"].is_string() || found[0]["content"].is_array(),
                    "{from:?} {result} {out}"
                ),
                _ => {}
            }
        }
    }
    for given in [json!(""), json!([]), json!([{ "type": "text", "text": "" }])] {
        let result = json!({ "type": "tool_result", "tool_use_id": "a", "content": given, "is_error": true });
        let body = claude(vec![assistant_blocks(vec![tool_use("a")]), user_blocks(vec![result])]);
        assert!(errors(&body, CLAUDE).contains(&"empty_content"));
        assert!(!repaired_body(&body, CLAUDE)[1]["content"][0]["content"].as_str().unwrap().is_empty());
    }
    assert_accepted(claude(vec![assistant_blocks(vec![tool_use("a")]), user_blocks(vec![result("a", "")])]), CLAUDE);
    assert_chat_repair(
        vec![calls(&["a"]), json!({ "role": "tool", "tool_call_id": "a", "content": null })],
        "empty_content",
        vec![calls(&["a"]), tool("a", "")],
    );
}

#[test]
fn wf_31_an_image_in_a_result_is_sent_in_every_dialect() {
    let png = json!({ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": PNG } });
    let anthropic =
        json!({ "type": "tool_result", "tool_use_id": "a", "content": [{ "type": "text", "text": "see" }, png] });
    let url = format!("data:image/png;base64,{PNG}");
    let output = json!({ "type": "function_call_output", "call_id": "a", "output": [
        { "type": "input_text", "text": "see" }, { "type": "input_image", "image_url": url }] });
    let message = json!({ "role": "tool", "tool_call_id": "a", "content": [
        { "type": "text", "text": "see" }, { "type": "image_url", "image_url": { "url": url } }] });
    for (from, result) in [(CLAUDE, anthropic), (RESPONSES, output), (CHAT, message)] {
        for (to, out) in everywhere(from, &with_result(from, result.clone())) {
            let found = results(to, &out);
            let has = |value: &Value| value.to_string().contains(PNG);
            assert!(has(&out), "{from:?} {to:?} {out}");
            assert!(found[0].to_string().contains("see"), "{from:?} {to:?} {out}");
            match to {
                Dialect::Anthropic | Dialect::OpenAiResponses if from != CHAT => {
                    assert!(has(&found[0]), "{from:?} {to:?} {out}");
                }
                CHAT => {
                    assert!(!has(&found[0]), "{from:?} {out}");
                    assert!(out["messages"][3]["role"] == "user" && has(&out["messages"][3]), "{from:?} {out}");
                }
                _ => {}
            }
        }
    }
    let image = json!({ "type": "image_url", "image_url": { "url": "data:image/png;base64,AAAA" } });
    let given = json!({ "role": "tool", "tool_call_id": "a", "content": [{ "type": "text", "text": "see" }, image] });
    assert_chat_repair(
        vec![calls(&["a", "b"]), given, tool("b", "2"), assistant("x")],
        "unsupported_part",
        vec![
            calls(&["a", "b"]),
            json!({ "role": "tool", "tool_call_id": "a", "content": [{ "type": "text", "text": "see" }] }),
            tool("b", "2"),
            user_blocks(vec![image.clone()]),
            assistant("x"),
        ],
    );
    let only = chat(vec![calls(&["a"]), json!({ "role": "tool", "tool_call_id": "a", "content": [image] })]);
    assert_eq!(repaired_body(&only, CHAT)[1]["content"][0]["type"], "text");
    let png = json!({ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "AAAA" } });
    assert_accepted(
        claude(vec![
            assistant_blocks(vec![tool_use("a")]),
            user_blocks(vec![json!({ "type": "tool_result", "tool_use_id": "a", "content": [png] })]),
        ]),
        CLAUDE,
    );
}

#[test]
fn wf_32_gemini_results_take_their_name_from_the_call() {
    for from in ALL {
        let body = write(from, "u q; c a b; r b=2 a=1; a x; u p").to_string();
        // Two tools, apart by their names.
        let body = body.replacen(r#""name":"f""#, r#""name":"look_up""#, 1);
        let body = if from == GEMINI {
            // Nameless results, as nobody should send them.
            body.replacen(r#""functionResponse":{"id":"a","name":"f""#, r#""functionResponse":{"id":"a","name":"""#, 1)
        } else {
            body
        };
        // The first name of Bedrock's body is that of the definition.
        let body = if from == Dialect::Bedrock {
            body.replacen(r#""name":"f""#, r#""name":"look_up""#, 1).replacen("look_up", "f", 1)
        } else {
            body
        };
        let body: Value = serde_json::from_str(&body).unwrap();
        for (to, out) in everywhere(from, &body).into_iter().filter(|(to, _)| *to == GEMINI) {
            let mut named: Vec<_> = results(to, &out)
                .iter()
                .map(|result| (words(&result["name"]), result["response"].to_string()))
                .collect();
            named.sort();
            assert_eq!(named[0].0, "f", "{from:?} {out}");
            assert_eq!(named[1].0, "look_up", "{from:?} {out}");
            assert!(named[0].1.contains('2') && named[1].1.contains('1'), "{from:?} {out}");
        }
    }
    let mut nameless = function_response("f", "1");
    nameless["functionResponse"]["name"] = json!("");
    assert_gemini_repair(
        vec![user_parts(vec![text_part("q")]), model_parts(vec![function_call("f")]), user_parts(vec![nameless])],
        "malformed",
        vec![
            user_parts(vec![text_part("q")]),
            model_parts(vec![function_call("f")]),
            user_parts(vec![function_response("f", "1")]),
        ],
    );
}

#[test]
fn wf_33_parallel_gemini_calls_of_one_name_without_ids_are_paired_by_position() {
    let calling = |n: u32| json!({ "functionCall": { "name": "f", "args": { "n": n } } });
    let body = json!({ "contents": [
        user_parts(vec![text_part("q")]),
        model_parts(vec![calling(1), calling(2), calling(3)]),
        user_parts(vec![function_response("f", "one"), function_response("f", "two"), function_response("f", "three")]),
        model_parts(vec![calling(4), calling(5)]),
        user_parts(vec![function_response("f", "four"), function_response("f", "five")]),
        model_parts(vec![text_part("x")]),
        user_parts(vec![text_part("p")]),
    ] });
    assert_accepted(body.clone(), GEMINI);
    let want = "u q; c 1; c 2; c 3; r 1=one; r 2=two; r 3=three; c 4; c 5; r 4=four; r 5=five; a x; u p";
    for (to, out) in everywhere(GEMINI, &body) {
        assert_eq!(read(to, &out), want, "{to:?} {out}");
        // And back.
        assert_eq!(read(GEMINI, &converted(&out, to, GEMINI).0), want, "{to:?} {out}");
    }
    assert_accepted(
        json!({ "contents": [user_parts(vec![text_part("q")]), model_parts(vec![function_call("f"), function_call("f")]), user_parts(vec![function_response("f", "1"), function_response("f", "2")])] }),
        GEMINI,
    );
    assert_accepted(
        json!({ "contents": [user_parts(vec![text_part("q")]), model_parts(vec![function_call("f")]), model_parts(vec![function_call("g")]), user_parts(vec![function_response("f", "1"), function_response("g", "2"), text_part("p")])] }),
        GEMINI,
    );
}

#[test]
fn r65_a_call_of_bedrocks_own_tool_alone_defines_the_tool() {
    let call = json!({ "toolUseId": "s1", "name": "nova_grounding", "type": "server_tool_use", "input": {} });
    let result = json!({ "toolUseId": "s1", "type": "nova_grounding_result", "status": "success", "content": [] });
    for block in [json!({ "toolUse": call }), json!({ "toolResult": result })] {
        let body = json!({ "messages": [
            { "role": "user", "content": [{ "text": "q" }] },
            { "role": "assistant", "content": [{ "text": "I look." }, block] },
            { "role": "user", "content": [{ "text": "p" }] },
        ] });
        // The rules require `toolConfig`.
        let (text, _) = Stored::of(Dialect::Bedrock, &body).bytes(Dialect::Bedrock);
        let name = if text.contains("nova_grounding\",\"type") { "nova_grounding" } else { "unknown" };
        assert!(text.contains(&format!(r#""toolConfig":{{"tools":[{{"toolSpec":{{"name":"{name}""#)), "{text}");
    }
}
