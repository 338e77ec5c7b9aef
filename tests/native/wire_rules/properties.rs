//! Properties over generated bodies: mostly plausible ones with messages shuffled, dropped, doubled, ids reused and types
//! wrong, and any JSON at all.

use proptest::prelude::*;
use proptest::sample::select;
use rethread::finding::Severity;
use rethread::message::Dialect;
use rethread::provider::{Dangling, RepairOptions, repair, validate};
use serde_json::{Value, json};

const BUILT: [Dialect; 5] = Dialect::ALL;

fn cases() -> ProptestConfig {
    ProptestConfig { cases: 2_000, max_shrink_iters: 4_000, failure_persistence: None, ..ProptestConfig::default() }
}

fn any_json() -> impl Strategy<Value = Value> {
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

fn id() -> impl Strategy<Value = Value> {
    prop_oneof![
        8 => select(vec!["a", "b", "call_1", "abcdefghi", "ABCDEFGH1", "fc_1", "toolu_1"]).prop_map(Value::from),
        2 => select(vec!["", "a b", "a_b", "a:b", "é"]).prop_map(Value::from),
        1 => Just(Value::from("x".repeat(70))), 1 => Just(Value::from(format!("{}y", "x".repeat(70)))),
        1 => Just(Value::Null), 1 => Just(json!(5)),
    ]
}

fn words() -> impl Strategy<Value = Value> {
    prop_oneof![6 => "[a-z]{1,4} ?".prop_map(Value::from), 1 => Just(json!("")), 1 => Just(json!("  ")), 1 => Just(Value::Null)]
}

fn arguments() -> impl Strategy<Value = Value> {
    prop_oneof![4 => Just(json!("{}")), 2 => Just(json!({})), 1 => Just(json!("")), 1 => Just(json!([1])), 1 => Just(json!("{\"a\":")), 1 => Just(Value::Null), 1 => Just(json!("[1]"))]
}

/// A value that now and then is wrong: another type, or nothing.
fn mostly(value: impl Strategy<Value = Value> + 'static) -> BoxedStrategy<Value> {
    prop_oneof![30 => value, 1 => any_json()].boxed()
}

fn chat_message() -> BoxedStrategy<Value> {
    let call = (id(), arguments())
        .prop_map(|(id, a)| json!({ "id": id, "type": "function", "function": { "name": "f", "arguments": a } }));
    let part = prop_oneof![4 => words().prop_map(|t| json!({ "type": "text", "text": t })), 1 => Just(json!({ "type": "image_url", "image_url": { "url": "u" } })), 1 => any_json()];
    let content = prop_oneof![4 => words(), 1 => prop::collection::vec(part, 0..3).prop_map(Value::from)].boxed();
    mostly(prop_oneof![
        3 => (select(vec!["user", "system", "developer", "model"]), content.clone()).prop_map(|(r, c)| json!({ "role": r, "content": c })),
        2 => content.clone().prop_map(|c| json!({ "role": "assistant", "content": c })),
        5 => (words(), prop::collection::vec(mostly(call), 0..4)).prop_map(|(c, t)| json!({ "role": "assistant", "content": c, "tool_calls": t })),
        6 => (id(), content.clone()).prop_map(|(i, c)| json!({ "role": "tool", "tool_call_id": i, "content": c })),
        1 => id().prop_map(|i| json!({ "role": "tool", "tool_call_id": i, "content": crate::TEXT })),
    ])
}

fn claude_message() -> BoxedStrategy<Value> {
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

fn gemini_content() -> BoxedStrategy<Value> {
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

fn responses_item() -> BoxedStrategy<Value> {
    mostly(prop_oneof![
        2 => (select(vec!["user", "assistant", "system"]), words()).prop_map(|(r, c)| json!({ "role": r, "content": c })),
        1 => Just(json!({ "type": "message", "role": "user", "content": [{ "type": "output_text", "text": "x" }] })),
        4 => (id(), arguments()).prop_map(|(i, a)| json!({ "type": "function_call", "call_id": i, "name": "f", "arguments": a })),
        1 => (id(), id()).prop_map(|(i, j)| json!({ "type": "function_call", "id": j, "call_id": i, "name": "f", "arguments": "{}" })),
        4 => (id(), words()).prop_map(|(i, o)| json!({ "type": "function_call_output", "call_id": i, "output": o })),
        1 => Just(json!({ "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e" })),
        1 => Just(json!({ "type": "reasoning", "summary": [] })),
        1 => Just(json!({ "type": "web_search_call", "id": "ws_1" })),
    ])
}

fn body(dialect: Dialect) -> BoxedStrategy<Value> {
    let (name, item) = match dialect {
        Dialect::OpenAiChat | Dialect::Mistral => ("messages", chat_message()),
        Dialect::Anthropic => ("messages", claude_message()),
        Dialect::Gemini => ("contents", gemini_content()),
        Dialect::OpenAiResponses => ("input", responses_item()),
    };
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

/// Valid bodies, some messages then taken out, doubled or moved.
fn mutated(dialect: Dialect) -> BoxedStrategy<Value> {
    (body(dialect), prop::collection::vec((0..3u8, any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..4))
        .prop_map(move |(body, changes)| {
            let (out, _) = repair(body.to_string().as_bytes(), dialect, &RepairOptions::default());
            let mut body: Value = serde_json::from_slice(&out).unwrap();
            let name = ["messages", "contents", "input"].into_iter().find(|n| body.get(n).is_some()).unwrap();
            let Some(items) = body[name].as_array_mut() else { return body };
            for (kind, from, to) in changes {
                if items.is_empty() {
                    break;
                }
                let (from, to) = (from.index(items.len()), to.index(items.len()));
                match kind {
                    0 => {
                        items.remove(from);
                    }
                    1 => {
                        let item = items[from].clone();
                        items.insert(to, item);
                    }
                    _ => {
                        let item = items.remove(from);
                        items.insert(to.min(items.len()), item);
                    }
                }
            }
            body
        })
        .boxed()
}

fn holds(text: &str, dialect: Dialect, options: &RepairOptions) -> Result<(), TestCaseError> {
    let (out, _) = repair(text.as_bytes(), dialect, options);
    let shown = String::from_utf8_lossy(&out).into_owned();
    prop_assert!(serde_json::from_slice::<Value>(&out).is_ok(), "no JSON: {shown}");
    let left = validate(&out, dialect);
    prop_assert!(
        left.iter().all(|f| f.severity != Severity::Error),
        "still refused: {left:?}\nfrom {text}\nto   {shown}"
    );
    prop_assert_eq!(&repair(&out, dialect, options).0, &out, "no fixpoint: {}", shown);
    prop_assert_eq!(&repair(text.as_bytes(), dialect, options).0, &out, "not deterministic");
    let before = validate(text.as_bytes(), dialect);
    let broken = before.iter().any(|f| f.severity == Severity::Error);
    prop_assert_eq!(
        broken,
        out != text.as_bytes(),
        "error and change must go together: {:?}\nfrom {}\nto   {}",
        before,
        text,
        shown
    );
    Ok(())
}

/// Texts of user and assistant messages, and calls with a result: nothing of these may go.
fn keeps(text: &str, dialect: Dialect) -> Result<(), TestCaseError> {
    let (out, _) = repair(text.as_bytes(), dialect, &RepairOptions::default());
    let (before, after): (Value, Value) = (serde_json::from_str(text).unwrap(), serde_json::from_slice(&out).unwrap());
    let (said, left) = (crate::shapes::said(&before, dialect), crate::shapes::said(&after, dialect));
    let mut left = left.into_iter().fold(std::collections::BTreeMap::new(), |mut m, t| {
        *m.entry(t).or_insert(0) += 1;
        m
    });
    for words in said {
        let count = left.entry(words.clone()).or_insert(0);
        prop_assert!(*count > 0, "lost {words:?}\nfrom {text}\nto   {after}");
        *count -= 1;
    }
    let (calls, kept) = (crate::shapes::count_calls(&before, dialect), crate::shapes::count_calls(&after, dialect));
    prop_assert!(calls <= kept, "lost a call\nfrom {text}\nto   {after}");
    Ok(())
}

fn omit() -> RepairOptions {
    RepairOptions { dangling: Dangling::Omit, dangling_text: None }
}

macro_rules! properties {
    ($($name:ident => $dialect:expr),*) => { $(mod $name {
        use super::*;
        proptest! {
            #![proptest_config(cases())]
            #[test]
            fn r41_repair_of_plausible_bodies(body in body($dialect)) {
                let text = body.to_string();
                holds(&text, $dialect, &RepairOptions::default())?;
                keeps(&text, $dialect)?;
            }
            #[test]
            fn r41_repair_of_mutated_bodies(body in mutated($dialect)) {
                let text = body.to_string();
                holds(&text, $dialect, &RepairOptions::default())?;
                keeps(&text, $dialect)?;
            }
            #[test]
            fn r41_repair_that_omits(body in body($dialect)) {
                holds(&body.to_string(), $dialect, &omit())?;
            }
        }
    })* };
}

properties! { openai_chat => Dialect::OpenAiChat, anthropic => Dialect::Anthropic, mistral => Dialect::Mistral, gemini => Dialect::Gemini, openai_responses => Dialect::OpenAiResponses }

proptest! {
    #![proptest_config(cases())]
    #[test]
    fn r41_repair_of_any_json(value in any_json(), dialect in select(BUILT.to_vec())) {
        holds(&value.to_string(), dialect, &RepairOptions::default())?;
    }
    #[test]
    fn r41_any_text_returns(text in "[\\[\\]{}\",:a-z0-9 \\\\]{0,40}", dialect in select(BUILT.to_vec())) {
        let (out, report) = repair(text.as_bytes(), dialect, &RepairOptions::default());
        if serde_json::from_str::<Value>(&text).is_err() {
            prop_assert_eq!(out, text.as_bytes());
            prop_assert_eq!(report[0].code, "malformed");
        }
    }
}
