//! R61: input in a shape that the dialect does not have.

use super::*;
use rethread::error::ErrorCode;
use rethread::finding::{Finding, Severity};
use rethread::json::JsonRef;
use rethread::message::Dialect;
use rethread::provider::{RepairOptions, decode_body, repair, validate};
use serde_json::{Value, json};

const ALL: [Dialect; Dialect::ALL.len()] = Dialect::ALL;

fn list_of(dialect: Dialect, items: &Value) -> Value {
    let name = match dialect {
        Dialect::Gemini => "contents",
        Dialect::OpenAiResponses | Dialect::GeminiInteractions => "input",
        Dialect::MistralConversations => "inputs",
        _ => "messages",
    };
    let mut body = json!({ "model": "m", name: items });
    if dialect == Dialect::Bedrock {
        let tool = json!({ "toolSpec": { "name": "f", "inputSchema": { "json": { "type": "object" } } } });
        body["toolConfig"] = json!({ "tools": [tool] });
    }
    body
}

fn found(body: &Value, dialect: Dialect) -> Vec<Finding> {
    validate(body.to_string().as_bytes(), dialect)
}

fn shapes(body: &Value, dialect: Dialect) -> Vec<Finding> {
    let error = |found: &Finding| found.code.as_str() == "unknown_shape" && found.severity == Severity::Error;
    found(body, dialect).into_iter().filter(error).collect()
}

/// `validate` says of what shape it is, `repair` and `decode_body` refuse it with the same word.
fn refused(body: &Value, dialect: Dialect, word: &str) {
    let text = body.to_string();
    let shapes = shapes(body, dialect);
    assert!(shapes.iter().any(|found| found.message.contains(word)), "{dialect:?} {word}: {shapes:?} in {text}");
    let error = repair(text.as_bytes(), dialect, &RepairOptions::default()).unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidInput);
    assert!(error.message.contains(word), "{dialect:?} {word}: {error}");
    let error = decode_body(dialect, JsonRef::parse(&text).unwrap()).unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidInput);
}

fn ui_messages() -> Value {
    json!([
        { "id": "1", "role": "user", "parts": [{ "type": "text", "text": "What is on?" }] },
        { "id": "2", "role": "assistant", "parts": [
            { "type": "step-start" }, { "type": "reasoning", "text": "hm" },
            { "type": "tool-look", "toolCallId": "c1", "state": "output-available", "input": {}, "output": "a film" },
            { "type": "text", "text": "A film." },
        ] },
    ])
}

fn model_messages() -> Value {
    json!([
        { "role": "user", "content": "What is on?" },
        { "role": "assistant", "content": [{ "type": "tool-call", "toolCallId": "c1", "toolName": "look", "input": {} }] },
        { "role": "tool", "content": [{ "type": "tool-result", "toolCallId": "c1", "toolName": "look", "output": { "type": "text", "value": "a film" } }] },
    ])
}

fn langchain() -> [Value; 6] {
    let message = |class: &str, kwargs: Value| json!({ "lc": 1, "type": "constructor", "id": ["langchain_core", "messages", class], "kwargs": kwargs });
    let call = json!([{ "name": "look", "args": {}, "id": "c1", "type": "tool_call" }]);
    [
        json!([
            message("HumanMessage", json!({ "content": "hi" })),
            message("AIMessage", json!({ "content": "", "tool_calls": call })),
            message("ToolMessage", json!({ "content": "x", "tool_call_id": "c1" }))
        ]),
        json!([{ "type": "human", "data": { "content": "hi" } }, { "type": "ai", "data": { "content": "yo" } }]),
        json!([{ "type": "human", "content": "hi" }, { "type": "ai", "content": "yo", "tool_calls": call }, { "type": "tool", "content": "x", "tool_call_id": "c1" }]),
        json!([{ "content": "hi", "additional_kwargs": {}, "response_metadata": {} }, { "content": "yo", "additional_kwargs": {}, "tool_calls": [] }]),
        json!([{ "lc_serializable": true, "lc_kwargs": { "content": "hi" }, "lc_namespace": ["langchain_core", "messages"], "content": "hi" }]),
        json!([["human", "hi"], ["ai", "yo"]]),
    ]
}

fn agents() -> Value {
    json!([
        { "type": "message", "role": "user", "content": "hi" },
        { "type": "function_call", "callId": "c1", "name": "look", "status": "completed", "arguments": "{}", "providerData": {} },
        { "type": "function_call_result", "callId": "c1", "name": "look", "status": "completed", "output": { "type": "text", "text": "a film" } },
        { "type": "message", "role": "assistant", "status": "completed", "content": [{ "type": "output_text", "text": "A film." }] },
    ])
}

#[test]
fn r61_messages_of_other_sdks_are_named_and_rejected() {
    for dialect in ALL {
        refused(&list_of(dialect, &ui_messages()), dialect, "UIMessage of the AI SDK");
        for messages in langchain() {
            refused(&list_of(dialect, &messages), dialect, "LangChain");
        }
        refused(&list_of(dialect, &agents()), dialect, "OpenAI Agents");
        let tanstack =
            json!([{ "role": "user", "content": "hi" }, { "role": "tool", "toolCallId": "c1", "content": "x" }]);
        refused(&list_of(dialect, &tanstack), dialect, "TanStack");
        let mastra = json!([{ "id": "1", "role": "user", "content": { "format": 2, "parts": [{ "type": "text", "text": "hi" }] } }]);
        refused(&list_of(dialect, &mastra), dialect, "Mastra");
        let neutral = json!([{ "role": "assistant", "parts": [{ "type": "tool", "callId": "c1", "name": "look" }] }]);
        refused(&list_of(dialect, &neutral), dialect, "neutral message");
    }
    for dialect in ALL {
        refused(&list_of(dialect, &model_messages()), dialect, "ModelMessage of the AI SDK");
        let bedrock = json!([
            { "role": "user", "content": [{ "text": "hi" }] },
            { "role": "assistant", "content": [{ "toolUse": { "toolUseId": "c1", "name": "look", "input": {} } }] },
            { "role": "user", "content": [{ "toolResult": { "toolUseId": "c1", "content": [{ "text": "x" }] } }] },
        ]);
        if dialect != Dialect::Bedrock {
            refused(&list_of(dialect, &bedrock), dialect, "bedrock");
        }
    }
    // A bare list is one, too.
    refused(&ui_messages(), CHAT, "UIMessage of the AI SDK");
}

#[test]
fn r61_the_sentence_names_what_stores_messages_of_an_sdk() {
    let tanstack = json!([{ "role": "user", "content": "hi" }, { "role": "tool", "toolCallId": "c1", "content": "x" }]);
    let [langchain, ..] = langchain();
    for (messages, way_in) in [
        (ui_messages(), "fromUIMessages() of \"rethread/ai-sdk\""),
        (model_messages(), "fromModelMessages() of \"rethread/ai-sdk\""),
        (langchain, "chatMessageHistory(session).addMessages() of \"rethread/langchain\""),
        (agents(), "agentsSession(session).addItems() of \"rethread/openai-agents\""),
        (tanstack, "chatPersistence(store).setItem(id, { messages }) of \"rethread/tanstack-ai\""),
    ] {
        for dialect in ALL {
            refused(&list_of(dialect, &messages), dialect, way_in);
        }
    }
    let mastra = json!([{ "role": "user", "content": { "format": 2, "parts": [{ "type": "text", "text": "hi" }] } }]);
    assert!(shapes(&list_of(CHAT, &mastra), CHAT).iter().all(|found| !found.message.contains("rethread/")));
}

fn own_history(dialect: Dialect) -> Value {
    match dialect {
        Dialect::OpenAiChat => json!([user("q"), calls(&["abcdefghi"]), tool("abcdefghi", "1"), assistant("x")]),
        Dialect::Mistral => json!([user("q"), calls(&["abcdefghi"]), tool("abcdefghi", "1"), user("p")]),
        Dialect::Anthropic => {
            json!([user("q"), assistant_blocks(vec![tool_use("a")]), user_blocks(vec![result("a", "1")])])
        }
        Dialect::Bedrock => json!([
            { "role": "user", "content": [{ "text": "q" }] },
            { "role": "assistant", "content": [{ "toolUse": { "toolUseId": "a", "name": "f", "input": {} } }] },
            { "role": "user", "content": [{ "toolResult": { "toolUseId": "a", "content": [{ "text": "1" }] } }] },
        ]),
        Dialect::Gemini => json!([
            user_parts(vec![text_part("q")]),
            model_parts(vec![function_call("f")]),
            user_parts(vec![function_response("f", "1")])
        ]),
        Dialect::MistralConversations => json!([
            user("q"),
            { "type": "function.call", "tool_call_id": "abcdefghi", "name": "f", "arguments": "{}" },
            { "type": "function.result", "tool_call_id": "abcdefghi", "result": "1" },
            { "type": "message.output", "role": "assistant", "content": "x" },
        ]),
        Dialect::GeminiInteractions => json!([
            { "type": "user_input", "content": [{ "type": "text", "text": "q" }] },
            { "type": "function_call", "id": "a", "name": "f", "arguments": {} },
            { "type": "function_result", "call_id": "a", "name": "f", "result": "1" },
        ]),
        Dialect::OpenAiResponses => json!([user("q"), call_item("a"), output_item("a", "1"), assistant("x")]),
    }
}

#[test]
fn r61_a_body_of_another_dialect_is_named_and_rejected() {
    for from in ALL {
        let body = list_of(from, &own_history(from));
        assert_accepted(body.clone(), from);
        for dialect in ALL {
            let family = |dialect| if dialect == MISTRAL { CHAT } else { dialect };
            if family(from) == family(dialect) {
                continue;
            }
            let word = format!("name the dialect \"{}\", or call convert(body", family(from).as_str());
            refused(&body, dialect, &word);
            refused(&list_of(dialect, &own_history(from)), dialect, &word);
        }
    }
    // What several dialects have says nothing of which it is.
    for dialect in [CHAT, MISTRAL, CLAUDE, RESPONSES] {
        let body = list_of(dialect, &json!([user("q"), assistant("x"), user("p")]));
        assert_accepted(body, dialect);
    }
}

#[test]
fn r61_unknown_items_are_removed_and_never_leave_an_empty_body() {
    for dialect in ALL {
        refused(
            &list_of(dialect, &json!([{ "foo": 1 }, { "bar": { "baz": 2 } }])),
            dialect,
            "has no role, type or member",
        );
        let mut items = own_history(dialect).as_array().unwrap().clone();
        items.insert(1, json!({ "foo": 1 }));
        let body = list_of(dialect, &Value::from(items));
        let (shapes, left) = (shapes(&body, dialect), repaired_body(&body, dialect));
        assert_eq!(shapes.len(), 1);
        assert!(shapes[0].path.as_deref().unwrap().ends_with("/1"), "{shapes:?}");
        assert_eq!(left, own_history(dialect), "{dialect:?}");
    }
    for dialect in [CHAT, CLAUDE] {
        let body = list_of(dialect, &json!([{ "foo": 1 }, { "role": "user", "content": null }]));
        assert_eq!(
            repair(body.to_string().as_bytes(), dialect, &RepairOptions::default()).unwrap_err().code,
            ErrorCode::InvalidInput
        );
    }
    let alone = json!({ "role": "user", "content": "hi" });
    assert!(repair(alone.to_string().as_bytes(), CHAT, &RepairOptions::default()).is_err());
}

#[test]
fn r61_a_result_without_its_type_still_answers_its_call() {
    // Only where the call has no other result, and only one a call.
    let stray = json!({ "role": "user", "tool_call_id": "a", "content": "1" });
    let body = chat(vec![user("q"), calls(&["a"]), user("p"), stray.clone()]);
    assert_eq!(errors(&body, CHAT), ["malformed", "interposed_message"]);
    assert_eq!(repaired_body(&body, CHAT), json!([user("q"), calls(&["a"]), tool("a", "1"), user("p")]));
    assert_accepted(chat(vec![user("q"), calls(&["a"]), tool("a", "1"), stray.clone()]), CHAT);
    let body = chat(vec![user("q"), calls(&["a"]), stray.clone(), stray.clone()]);
    assert_eq!(repaired_body(&body, CHAT), json!([user("q"), calls(&["a"]), tool("a", "1"), stray]));
    for kind in [json!({}), json!({ "type": "text" }), json!({ "type": null })] {
        let mut block = json!({ "tool_use_id": "a", "content": "1" });
        block.as_object_mut().unwrap().extend(kind.as_object().unwrap().clone());
        let body = claude(vec![user("q"), assistant_blocks(vec![tool_use("a")]), user_blocks(vec![text("x"), block])]);
        let left = repaired_body(&body, CLAUDE);
        let results: Vec<_> =
            left[2]["content"].as_array().unwrap().iter().map(|block| block["type"].clone()).collect();
        assert_eq!(results, ["tool_result", "text"], "{left}");
        assert!(!left.to_string().contains("Interrupted"));
    }
    assert_responses_repair(
        vec![user("q"), call_item("a"), json!({ "type": "text", "call_id": "a", "output": "1" })],
        "malformed",
        vec![user("q"), call_item("a"), output_item("a", "1")],
    );
    // Another call of that id is no result.
    let mut copy = calls(&["a"]);
    copy["role"] = json!("user");
    copy["content"] = json!("x");
    let body = chat(vec![user("q"), copy.clone(), calls(&["a"])]);
    assert_eq!(repaired_body(&body, CHAT), json!([user("q"), copy, calls(&["a"]), interrupted_tool("a")]));
    // What says nothing is no loss.
    for dialect in ALL {
        assert_eq!(repaired_body(&list_of(dialect, &json!([{}])), dialect), json!([]));
    }
}

#[test]
fn r61_parts_outside_a_content_belong_to_the_user() {
    let content = |parts: Value| json!([{ "role": "user", "parts": parts }]);
    let parts = json!([{ "text": "a" }, { "inlineData": { "mimeType": "image/png", "data": "AA==" } }]);
    assert_eq!(repaired_body(&json!({ "contents": parts }), GEMINI), content(parts));
    assert_eq!(repaired_body(&json!({ "contents": { "text": "a" } }), GEMINI), content(json!([{ "text": "a" }])));
    assert_eq!(
        repaired_body(&json!({ "contents": ["a", "b"] }), GEMINI),
        content(json!([{ "text": "a" }, { "text": "b" }]))
    );
}

#[test]
fn r61_no_result_is_added_for_a_call_whose_id_occurs_elsewhere() {
    for spelling in ["callId", "call_id", "toolCallId", "tool_use_id", "toolUseId", "id"] {
        let stray = json!({ "kind": "result", spelling: "a", "value": 1 });
        for (dialect, call) in
            [(CHAT, calls(&["a"])), (CLAUDE, assistant_blocks(vec![tool_use("a")])), (RESPONSES, call_item("a"))]
        {
            let body = list_of(dialect, &json!([user("q"), call, stray, user("p")]));
            let text = body.to_string();
            let error = repair(text.as_bytes(), dialect, &RepairOptions::default()).unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidInput);
            let found = shapes(&body, dialect);
            assert!(
                found.iter().any(|found| found.call_id.as_deref() == Some("a")
                    && found.path.as_deref().is_some_and(|path| path.ends_with(&format!("/2/{spelling}")))),
                "{dialect:?} {spelling} {found:?}"
            );
        }
    }
    // Beside the body's list, and in a block of the message that calls.
    let mut body = chat(vec![user("q"), calls(&["a"])]);
    body["tool_outputs"] = json!([{ "tool_call_id": "a", "output": "x" }]);
    assert!(repair(body.to_string().as_bytes(), CHAT, &RepairOptions::default()).is_err());
    let beside = json!({ "type": "tool-result", "toolCallId": "a", "output": "x" });
    let body = claude(vec![user("q"), assistant_blocks(vec![tool_use("a"), beside]), user("p")]);
    assert!(repair(body.to_string().as_bytes(), CLAUDE, &RepairOptions::default()).is_err());
    // However deep it stands.
    let deep = format!("{}{{\"callId\":\"a\"}}{}", "[".repeat(100_000), "]".repeat(100_000));
    let body = chat(vec![user("q"), calls(&["a"]), user("p")]).to_string();
    let body = body.replacen("\"content\":\"p\"", &format!("\"content\":\"p\",\"more\":{deep}"), 1);
    assert!(repair(body.as_bytes(), CHAT, &RepairOptions::default()).is_err());
    // A result that misspells its member, and stands in its place, is taken.
    let body = json!([user("q"), calls(&["a"]), { "role": "tool", "content": "x" }, user("p")]);
    assert_eq!(repaired_body(&json!({ "messages": body }), CHAT)[2]["tool_call_id"], "a");
    // The same id in the arguments, in a text, or in what belongs to the call says nothing.
    let mut call = calls(&["a"]);
    call["tool_calls"][0]["function"]["arguments"] = json!("{\"id\":\"a\"}");
    call["reasoning_details"] = json!([{ "type": "reasoning.encrypted", "id": "a", "data": "x" }]);
    let body = chat(vec![user("q"), call.clone(), user("a")]);
    assert_eq!(repaired_body(&body, CHAT), json!([user("q"), call, interrupted_tool("a"), user("a")]));
    // An id that comes again is the other turn's.
    let body = chat(vec![user("q"), calls(&["a"]), tool("a", "1"), user("p"), calls(&["a"]), user("o")]);
    assert_eq!(repaired_body(&body, CHAT)[5], interrupted_tool("a"));
}

#[test]
fn r61_an_unknown_block_type_is_kept_and_one_of_another_format_rejected() {
    let body = |kind: &str| {
        let block = json!({ "type": kind, "toolCallId": "x", "value": 1 });
        claude(vec![
            user("q"),
            assistant_blocks(vec![text("x"), block, tool_use("a")]),
            user_blocks(vec![result("a", "1")]),
        ])
    };
    let report = |kind| -> Vec<_> {
        found(&body(kind), CLAUDE)
            .into_iter()
            .map(|found| (found.code.as_str(), found.severity, found.path.clone().unwrap()))
            .collect()
    };
    let path = || "/messages/1/content/1".to_owned();
    for kind in ["nonsense", "video", "some_new_block_2027"] {
        assert_eq!(report(kind), [("unknown_shape", Severity::Warning, path())]);
        assert_accepted(body(kind), CLAUDE);
    }
    for kind in ["tool-call", "toolCall", "Text", "data-card"] {
        assert_eq!(report(kind), [("unknown_shape", Severity::Error, path())], "{kind}");
        let left = repaired_body(&body(kind), CLAUDE);
        assert_eq!(left[1]["content"][1]["type"], "text");
    }
    // Without anything of the dialect's own, such a block is the body's shape.
    let block = json!({ "type": "tool-call", "toolCallId": "c", "toolName": "look", "input": {} });
    refused(&claude(vec![user("q"), assistant_blocks(vec![block])]), CLAUDE, "AI SDK");
    for (dialect, item) in [
        (RESPONSES, json!({ "type": "some_new_item", "id": "x" })),
        (GEMINI, user_parts(vec![json!({ "newData": {} })])),
    ] {
        let body = list_of(dialect, &json!([own_history(dialect)[0], item]));
        let found = found(&body, dialect);
        assert_eq!((found[0].code.as_str(), found[0].severity), ("unknown_shape", Severity::Warning), "{dialect:?}");
        assert_accepted(body, dialect);
    }
}

#[test]
fn r61_an_unknown_role_is_an_unknown_shape_and_its_text_is_kept() {
    for role in ["human", "alien"] {
        for dialect in [CHAT, CLAUDE, MISTRAL, RESPONSES] {
            let body = list_of(dialect, &json!([user("q"), { "role": role, "content": "hello" }, user("p")]));
            assert_eq!(errors(&body, dialect), ["unknown_shape"], "{dialect:?} {role}");
            assert!(repaired_body(&body, dialect).to_string().contains("hello"));
            assert!(decode_body(dialect, JsonRef::parse(&body.to_string()).unwrap()).is_err());
        }
    }
}
