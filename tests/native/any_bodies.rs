//! Strategies for bodies: mostly plausible ones, with ids reused, texts empty and types wrong now and then, and any
//! JSON at all. Each target uses its part.

use proptest::prelude::*;
use proptest::sample::select;
use rethread::json::JsonRef;
use rethread::message::Dialect;
use rethread::provider::decode_body;
use serde_json::{Value, json};

pub fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[ -~]{0,6}".prop_map(Value::from),
        Just(json!("user")),
        Just(json!("assistant")),
        Just(json!(1e300)),
    ];
    leaf.prop_recursive(5, 60, 5, |inner| {
        let key = select(vec![
            "role",
            "content",
            "messages",
            "contents",
            "input",
            "parts",
            "tool_calls",
            "id",
            "tool_call_id",
            "type",
            "text",
            "function",
            "name",
            "arguments",
            "functionCall",
            "functionResponse",
            "call_id",
            "output",
            "tool_use_id",
            "thinking",
            "x",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..5)
                .prop_map(|m| Value::Object(m.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())),
        ]
    })
}

pub fn id() -> impl Strategy<Value = Value> {
    prop_oneof![
        8 => select(vec!["a", "b", "call_1", "abcdefghi", "ABCDEFGH1", "fc_1", "toolu_1"]).prop_map(Value::from),
        2 => select(vec!["", "a b", "a_b", "a:b", "é"]).prop_map(Value::from),
        1 => Just(Value::from("x".repeat(70))), 1 => Just(Value::from(format!("{}y", "x".repeat(70)))),
        1 => Just(Value::Null), 1 => Just(json!(5)),
    ]
}

pub fn words() -> impl Strategy<Value = Value> {
    prop_oneof![6 => "[a-z]{1,4} ?".prop_map(Value::from), 1 => Just(json!("")), 1 => Just(json!("  ")), 1 => Just(Value::Null)]
}

pub fn arguments() -> impl Strategy<Value = Value> {
    prop_oneof![4 => Just(json!("{}")), 2 => Just(json!({})), 1 => Just(json!("")), 1 => Just(json!([1])), 1 => Just(json!("{\"a\":")), 1 => Just(Value::Null), 1 => Just(json!("[1]"))]
}

/// A value that now and then is wrong: another type, or nothing.
pub fn mostly(value: impl Strategy<Value = Value> + 'static) -> BoxedStrategy<Value> {
    prop_oneof![30 => value, 1 => any_json()].boxed()
}

pub fn chat_message() -> BoxedStrategy<Value> {
    let call = (id(), arguments())
        .prop_map(|(id, a)| json!({ "id": id, "type": "function", "function": { "name": "f", "arguments": a } }));
    let part = prop_oneof![4 => words().prop_map(|t| json!({ "type": "text", "text": t })), 1 => Just(json!({ "type": "image_url", "image_url": { "url": "u" } })), 1 => any_json()];
    let content = prop_oneof![4 => words(), 1 => prop::collection::vec(part, 0..3).prop_map(Value::from)].boxed();
    mostly(prop_oneof![
        3 => (select(vec!["user", "system", "developer", "model"]), content.clone()).prop_map(|(r, c)| json!({ "role": r, "content": c })),
        2 => content.clone().prop_map(|c| json!({ "role": "assistant", "content": c })),
        5 => (words(), prop::collection::vec(mostly(call), 0..4)).prop_map(|(c, t)| json!({ "role": "assistant", "content": c, "tool_calls": t })),
        6 => (id(), content.clone()).prop_map(|(i, c)| json!({ "role": "tool", "tool_call_id": i, "content": c })),
        1 => id().prop_map(|i| json!({ "role": "tool", "tool_call_id": i, "content": rethread::synthetic_result::NO_RESULT })),
    ])
}

pub fn claude_message() -> BoxedStrategy<Value> {
    let block = mostly(prop_oneof![
        3 => words().prop_map(|t| json!({ "type": "text", "text": t })),
        4 => (id(), arguments()).prop_map(|(i, a)| json!({ "type": "tool_use", "id": i, "name": "f", "input": a })),
        4 => (id(), words()).prop_map(|(i, c)| json!({ "type": "tool_result", "tool_use_id": i, "content": c })),
        1 => (id(), any::<bool>()).prop_map(|(i, e)| json!({ "type": "tool_result", "tool_use_id": i, "content": [{ "type": "text", "text": "" }], "is_error": e })),
        1 => Just(json!({ "type": "thinking", "thinking": "t", "signature": "s" })),
        1 => Just(json!({ "type": "thinking", "thinking": "t" })),
        1 => id().prop_map(|i| json!({ "type": "server_tool_use", "id": i, "name": "web_search", "input": {} })),
        1 => id().prop_map(|i| json!({ "type": "web_search_tool_result", "tool_use_id": i, "content": [] })),
    ]);
    let content = prop_oneof![1 => words(), 6 => prop::collection::vec(block, 0..4).prop_map(Value::from)];
    mostly(
        (select(vec!["user", "assistant", "user", "assistant", "system", "tool"]), content)
            .prop_map(|(r, c)| json!({ "role": r, "content": c })),
    )
}

pub fn gemini_content() -> BoxedStrategy<Value> {
    let name = || select(vec!["f", "g", ""]);
    let part = mostly(prop_oneof![
        3 => words().prop_map(|t| json!({ "text": t })),
        3 => (name(), arguments()).prop_map(|(n, a)| json!({ "functionCall": { "name": n, "args": a } })),
        2 => (name(), arguments(), id()).prop_map(|(n, a, i)| json!({ "functionCall": { "id": i, "name": n, "args": a }, "thoughtSignature": "c2ln" })),
        3 => (name(), arguments()).prop_map(|(n, a)| json!({ "functionResponse": { "name": n, "response": a } })),
        2 => (name(), arguments(), id()).prop_map(|(n, a, i)| json!({ "functionResponse": { "id": i, "name": n, "response": a } })),
        1 => Just(json!({ "text": "t", "thought": true })),
    ]);
    mostly(
        (select(vec!["user", "model", "user", "model", "function"]), prop::collection::vec(part, 0..4))
            .prop_map(|(r, p)| json!({ "role": r, "parts": p })),
    )
}

fn hosted() -> impl Strategy<Value = &'static str> {
    select(vec!["shell", "local_shell", "computer", "apply_patch", "tool_search"])
}

fn responses_parts() -> impl Strategy<Value = Value> {
    let part = mostly(prop_oneof![
        (select(vec!["input_text", "output_text", "text", "new", ""]), words())
            .prop_map(|(kind, text)| json!({ "type": kind, "text": text })),
        Just(json!({ "type": "input_image", "image_url": "u" })),
        Just(json!({ "type": "image_url", "image_url": { "url": "u" } })),
        Just(json!({ "type": "file", "file": { "file_id": "f" } })),
    ]);
    prop::collection::vec(part, 0..4).prop_map(Value::from)
}

pub fn responses_item() -> BoxedStrategy<Value> {
    mostly(prop_oneof![
        2 => (select(vec!["user", "assistant", "system"]), words()).prop_map(|(r, c)| json!({ "role": r, "content": c })),
        1 => Just(json!({ "type": "message", "role": "user", "content": [{ "type": "output_text", "text": "x" }] })),
        2 => (select(vec!["user", "assistant", "system"]), responses_parts()).prop_map(|(r, c)| json!({ "role": r, "content": c })),
        2 => (id(), responses_parts()).prop_map(|(i, o)| json!({ "type": "function_call_output", "call_id": i, "output": o })),
        4 => (id(), arguments()).prop_map(|(i, a)| json!({ "type": "function_call", "call_id": i, "name": "f", "arguments": a })),
        2 => (id(), any::<bool>()).prop_map(|(i, a)| json!({ "type": "function_call", "call_id": i, "name": "f", "arguments": "{}", "async": a })),
        1 => words().prop_map(|o| json!({ "type": "function_call_output", "call_id": null, "name": "f", "output": o })),
        1 => (id(), id()).prop_map(|(i, j)| json!({ "type": "function_call", "id": j, "call_id": i, "name": "f", "arguments": "{}" })),
        4 => (id(), words()).prop_map(|(i, o)| json!({ "type": "function_call_output", "call_id": i, "output": o })),
        1 => Just(json!({ "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e" })),
        1 => Just(json!({ "type": "reasoning", "summary": [] })),
        1 => Just(json!({ "type": "reasoning", "id": "rs_2", "summary": null })),
        1 => Just(json!({ "id": "msg_1" })),
        2 => (id(), words()).prop_map(|(i, c)| json!({ "type": "message", "id": i, "role": "assistant", "content": c })),
        1 => Just(json!({ "type": "web_search_call", "id": "ws_1" })),
        3 => (hosted(), id(), select(vec!["local", "container_auto"]), select(vec!["client", "server"])).prop_map(|(kind, i, place, ran)| {
            json!({ "type": format!("{kind}_call"), "call_id": i, "environment": { "type": place }, "execution": ran })
        }),
        3 => (hosted(), id()).prop_map(|(kind, i)| match kind {
            "tool_search" => json!({ "type": "tool_search_output", "call_id": i, "tools": [] }),
            _ => json!({ "type": format!("{kind}_call_output"), "call_id": i, "output": "x" }),
        }),
        1 => id().prop_map(|i| json!({ "type": "mcp_approval_request", "id": i, "name": "n" })),
        1 => id().prop_map(|i| json!({ "type": "mcp_approval_response", "approval_request_id": i, "approve": true })),
    ])
}

fn bedrock_message() -> BoxedStrategy<Value> {
    let texts = || select(vec![json!("x"), json!(" "), json!(""), json!(7), Value::Null]);
    let inner = prop_oneof![
        3 => texts().prop_map(|text| json!([{ "text": text }])),
        1 => Just(json!([{ "json": { "a": 1 } }, { "json": [1] }])),
        1 => Just(json!([])),
        1 => texts(),
        1 => Just(json!([{ "image": { "format": "png", "source": { "bytes": "AA==" } } }, 7])),
    ];
    let status = select(vec![Value::Null, json!("error"), json!("success"), json!("failed"), json!(1)]);
    let block = prop_oneof![
        4 => texts().prop_map(|text| json!({ "text": text })),
        5 => (id(), select(vec![json!({}), json!("{}"), json!([1]), Value::Null]))
            .prop_map(|(i, input)| json!({ "toolUse": { "toolUseId": i, "name": "f", "input": input } })),
        5 => (id(), inner, status)
            .prop_map(|(i, content, status)| json!({ "toolResult": { "toolUseId": i, "content": content, "status": status } })),
        1 => id().prop_map(|i| json!({ "toolUse": { "toolUseId": i, "name": "s", "input": {}, "type": "server_tool_use" } })),
        1 => id().prop_map(|i| json!({ "toolResult": { "toolUseId": i, "content": [], "type": "s_result" } })),
        1 => select(vec![json!("sig"), json!(""), Value::Null])
            .prop_map(|mark| json!({ "reasoningContent": { "reasoningText": { "text": "t", "signature": mark } } })),
        1 => Just(json!({ "cachePoint": { "type": "default" } })),
        1 => Just(json!({ "document": { "name": "d", "format": "txt", "source": { "text": "t" } } })),
        1 => Just(json!({ "citationsContent": { "content": [{ "text": "c" }], "citations": [] } })),
        1 => Just(json!({ "type": "text", "text": "typed" })),
        1 => Just(json!({ "type": "image_url", "image_url": { "url": "https://x/y.png" } })),
        1 => Just(json!({ "newThing": { "a": 1 } })),
        1 => select(vec![json!({}), json!(7), Value::Null, json!("bare")]),
    ];
    let content = prop_oneof![
        6 => prop::collection::vec(block.clone(), 0..4).prop_map(Value::from),
        1 => texts(),
        1 => block,
    ];
    (select(vec!["user", "user", "assistant", "assistant", "system", "tool"]), content)
        .prop_map(|(role, content)| json!({ "role": role, "content": content }))
        .boxed()
}

fn interactions_step() -> BoxedStrategy<Value> {
    let content = mostly(prop_oneof![
        4 => words().prop_map(|text| json!({ "type": "text", "text": text })),
        1 => Just(json!({ "type": "image", "data": "AA==", "mime_type": "image/png" })),
        1 => Just(json!({ "type": "document", "uri": "https://x/y.pdf" })),
        1 => Just(json!({ "type": "input_text", "text": "x" })),
        1 => Just(json!({ "type": "new_content", "a": 1 })),
        1 => Just(json!({ "text": "no type" })),
    ]);
    let contents = || {
        prop_oneof![
            1 => words(),
            5 => prop::collection::vec(content.clone(), 0..4).prop_map(Value::from),
        ]
    };
    let step_type = || select(vec!["user_input", "model_output"]);
    mostly(prop_oneof![
        4 => (step_type(), contents()).prop_map(|(kind, c)| json!({ "type": kind, "content": c })),
        5 => (id(), arguments()).prop_map(|(i, a)| json!({ "type": "function_call", "id": i, "name": "f", "arguments": a })),
        5 => (id(), contents()).prop_map(|(i, r)| json!({ "type": "function_result", "call_id": i, "name": "f", "result": r })),
        1 => (id(), arguments()).prop_map(|(i, r)| json!({ "type": "function_result", "call_id": i, "result": r, "is_error": true })),
        2 => select(vec![json!([{ "type": "text", "text": "hm" }]), json!([]), Value::Null])
            .prop_map(|summary| json!({ "type": "thought", "signature": "c2ln", "summary": summary })),
        1 => id().prop_map(|i| json!({ "type": "google_search_call", "id": i, "arguments": { "queries": ["q"] }, "signature": "s" })),
        1 => id().prop_map(|i| json!({ "type": "google_search_result", "call_id": i, "result": [] })),
        1 => (select(vec!["user", "model"]), contents()).prop_map(|(r, c)| json!({ "role": r, "content": c })),
        1 => words().prop_map(|text| json!({ "type": "text", "text": text })),
    ])
}

/// An item of a dialect's list.
pub fn item(dialect: Dialect) -> BoxedStrategy<Value> {
    match dialect {
        Dialect::OpenAiChat | Dialect::Mistral => chat_message(),
        Dialect::Anthropic => claude_message(),
        Dialect::Bedrock => bedrock_message(),
        Dialect::Gemini => gemini_content(),
        Dialect::OpenAiResponses => responses_item(),
        Dialect::MistralConversations => entry(),
        Dialect::GeminiInteractions => interactions_step(),
    }
}

/// An entry of Mistral's conversations.
pub fn entry() -> BoxedStrategy<Value> {
    let chunk = mostly(prop_oneof![
        4 => words().prop_map(|text| json!({ "type": "text", "text": text })),
        1 => Just(json!({ "type": "image_url", "image_url": "https://model.example/a.png" })),
        1 => Just(json!({ "type": "thinking", "thinking": [{ "type": "text", "text": "t" }] })),
        1 => Just(json!({ "type": "tool_reference", "tool": "web_search", "title": "t" })),
    ]);
    let content = prop_oneof![3 => words(), 1 => prop::collection::vec(chunk, 0..3).prop_map(Value::from)].boxed();
    let kind = || select(vec!["message.input", "message.input", "message.output", "message", ""]);
    mostly(prop_oneof![
        3 => (kind(), select(vec!["user", "assistant", "system", "model"]), content.clone())
            .prop_map(|(kind, role, content)| json!({ "type": kind, "role": role, "content": content })),
        1 => content.prop_map(|content| json!({ "role": "user", "content": content })),
        4 => (id(), arguments()).prop_map(|(id, arguments)| json!({ "type": "function.call", "tool_call_id": id, "name": "f", "arguments": arguments })),
        4 => (id(), words()).prop_map(|(id, result)| json!({ "type": "function.result", "tool_call_id": id, "result": result })),
        1 => Just(json!({ "type": "tool.execution", "id": "t", "name": "web_search", "arguments": "{}" })),
        1 => Just(json!({ "name": "web_search", "arguments": "{}" })),
        1 => Just(json!({ "type": "tool.execution", "name": "web_search", "arguments": {}, "function": "web_search" })),
        1 => Just(json!({ "type": "agent.handoff", "previous_agent_id": "a", "previous_agent_name": "A", "next_agent_id": "b", "next_agent_name": "B" })),
        1 => Just(json!({ "type": "agent.handoff", "previous_agent_id": "a" })),
        1 => id().prop_map(|id| json!({ "type": "function.call", "tool_call_id": id, "name": "f", "arguments": "{}", "confirmation_status": "pending" })),
        1 => words().prop_map(|text| json!({ "type": "message.input", "role": "assistant", "content": text, "prefix": true })),
        1 => words().prop_map(|text| json!({ "content": text })),
    ])
}

pub fn body(dialect: Dialect) -> BoxedStrategy<Value> {
    let name = match dialect {
        Dialect::Gemini => "contents",
        Dialect::OpenAiResponses | Dialect::GeminiInteractions => "input",
        Dialect::MistralConversations => "inputs",
        _ => "messages",
    };
    let item = item(dialect);
    let thinking = prop_oneof![5 => Just(Value::Null), 1 => Just(json!({ "type": "enabled", "budget_tokens": 9 }))];
    (prop::collection::vec(item, 0..9), thinking, select(vec!["m", "gpt-5", "o1-mini", "gemini-3-pro"]))
        .prop_map(move |(items, thinking, model)| {
            let mut body = json!({ "model": model, name: items, "x": [1, 2] });
            if !thinking.is_null() && dialect == Dialect::Anthropic {
                body["thinking"] = thinking;
            }
            body
        })
        .boxed()
}

/// Whether `append` takes an item: one that is none of the dialect's is refused.
pub fn is_taken(dialect: Dialect, item: &Value) -> bool {
    let list = Value::from(vec![item.clone()]).to_string();
    decode_body(dialect, JsonRef::parse(&list).unwrap()).is_ok()
}

/// Returns how many cases a property gets: `in_long_mode` with `npm test -- --long`, a quarter of it otherwise.
/// `PROPTEST_CASES` sets another number.
#[allow(clippy::disallowed_methods)] // native tests have an environment
pub fn many(in_long_mode: u32) -> u32 {
    let usual = if std::env::var_os("RETHREAD_LONG").is_some() { in_long_mode } else { in_long_mode / 4 };
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(usual)
}
