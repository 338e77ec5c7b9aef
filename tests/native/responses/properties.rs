//! Properties: whatever was appended in whatever dialect, the body is valid in each.

use super::{CHAT, CLAUDE, OWN, Session, always, but_old};
use proptest::prelude::*;
use proptest::sample::select;
use rethread::finding::Severity;
use rethread::json::JsonRef;
use rethread::message::Dialect;
use rethread::provider::{decode_answer, decode_body, validate};
use rethread::replay::{OnStale, PolicyLayer};
use serde_json::{Value, json};

fn cases() -> ProptestConfig {
    ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() }
}

fn id() -> impl Strategy<Value = Value> {
    prop_oneof![6 => select(vec!["a", "b", "c"]).prop_map(Value::from), 1 => Just(json!("")), 1 => Just(json!("x".repeat(70))), 1 => Just(Value::Null)]
}

fn words() -> impl Strategy<Value = Value> {
    prop_oneof![4 => select(vec!["one", "two", "\u{e9}\n"]).prop_map(Value::from), 1 => Just(json!(""))]
}

/// An item that `append` takes.
fn item() -> impl Strategy<Value = Value> {
    any_item().prop_filter("append takes it", |item| {
        let list = json!([item]).to_string();
        decode_body(OWN, JsonRef::parse(&list).unwrap()).is_ok()
    })
}

fn any_item() -> impl Strategy<Value = Value> {
    let part = prop_oneof![
        words().prop_map(|text| json!({"type": "output_text", "text": text})),
        words().prop_map(|text| json!({"type": "refusal", "refusal": text})),
        Just(json!({"type": "other"})),
        Just(json!("x")),
    ];
    let given = prop_oneof![
        words().prop_map(|text| json!({"type": "input_text", "text": text})),
        Just(json!({"type": "input_image", "image_url": "https://x/y.png"})),
        Just(json!({"type": "input_file", "file_id": "file-1"})),
        Just(json!({"type": "input_image"})),
    ];
    let kind = || {
        select(vec![
            "computer_call",
            "local_shell_call",
            "shell_call",
            "apply_patch_call",
            "tool_search_call",
            "web_search_call",
        ])
    };
    prop_oneof![
        3 => (select(vec!["user", "system", "developer", "assistant", "model"]), words()).prop_map(|(role, text)| json!({"role": role, "content": text})),
        2 => prop::collection::vec(given.clone(), 0..3).prop_map(|content| json!({"role": "user", "content": content})),
        3 => (prop::collection::vec(part, 0..3), any::<bool>()).prop_map(|(content, named)| match named {
            true => json!({"type": "message", "id": "msg_1", "role": "assistant", "content": content}),
            false => json!({"role": "assistant", "content": content}),
        }),
        4 => (select(vec!["rs_1", "rs_2", "x", ""]), any::<bool>()).prop_map(|(id, secret)| json!({"type": "reasoning", "id": id, "summary": [], "encrypted_content": secret.then_some("e")})),
        5 => (id(), select(vec!["f", "old", "", "a b"]), select(vec!["{}", "", "{oops", "[1]"])).prop_map(|(id, name, arguments)| json!({"type": "function_call", "id": "fc_1", "call_id": id, "name": name, "arguments": arguments})),
        2 => (id(), words()).prop_map(|(id, input)| json!({"type": "custom_tool_call", "call_id": id, "name": "old", "input": input})),
        5 => (id(), words()).prop_map(|(id, text)| json!({"type": "function_call_output", "call_id": id, "output": text})),
        2 => (id(), prop::collection::vec(given, 0..3)).prop_map(|(id, output)| json!({"type": "function_call_output", "call_id": id, "output": output})),
        2 => (id(), words()).prop_map(|(id, text)| json!({"type": "custom_tool_call_output", "call_id": id, "output": text})),
        2 => (kind(), id()).prop_map(|(kind, id)| json!({"type": kind, "call_id": id, "action": {"type": "x"}})),
        2 => (kind(), id()).prop_map(|(kind, id)| json!({"type": format!("{kind}_output"), "call_id": id, "output": "x"})),
        2 => (kind(), id(), any::<bool>()).prop_map(|(kind, id, here)| json!({"type": kind, "call_id": id, "actions": [1], "environment": {"type": if here { "local" } else { "container_auto" }}, "execution": if here { "client" } else { "server" }})),
        1 => id().prop_map(|id| json!({"type": "mcp_approval_request", "id": id})),
        1 => id().prop_map(|id| json!({"type": "mcp_approval_response", "approval_request_id": id})),
        1 => id().prop_map(|id| json!({"type": "tool_search_output", "call_id": id, "tools": []})),
        1 => select(vec![json!({"type": "item_reference", "id": "i"}), json!({"type": "compaction"}), json!({}), json!(7), json!("x"), json!({"call_id": "a", "output": "x"}), json!({"name": "f", "arguments": {}})]),
    ]
}

fn chat() -> impl Strategy<Value = Value> {
    let call = (id(), select(vec!["{}", "", "{oops", "[1]"])).prop_map(
        |(id, arguments)| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": arguments}}),
    );
    prop_oneof![
        (select(vec!["user", "system", "developer", "assistant"]), words())
            .prop_map(|(role, text)| json!({"role": role, "content": text})),
        (words(), prop::collection::vec(call, 0..3)).prop_map(
            |(text, calls)| json!({"role": "assistant", "content": text, "refusal": "no", "tool_calls": calls})
        ),
        (id(), words()).prop_map(|(id, text)| json!({"role": "tool", "tool_call_id": id, "content": text})),
        Just(
            json!({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x/y.png"}}, {"type": "file", "file": {"file_data": "data:a/b;base64,AA=="}}]})
        ),
    ]
}

fn claude() -> impl Strategy<Value = Value> {
    let block = prop_oneof![
        words().prop_map(|text| json!({"type": "text", "text": text})),
        id().prop_map(|id| json!({"type": "tool_use", "id": id, "name": "f", "input": {}})),
        (id(), words()).prop_map(
            |(id, text)| json!({"type": "tool_result", "tool_use_id": id, "content": [{"type": "text", "text": text}]})
        ),
        Just(json!({"type": "thinking", "thinking": "t", "signature": "s"})),
        Just(json!({"type": "image", "source": {"type": "url", "url": "https://x/y.png"}})),
    ];
    (select(vec!["user", "assistant"]), prop::collection::vec(block, 0..4))
        .prop_map(|(role, content)| json!({"role": role, "content": content}))
}

fn layers() -> [PolicyLayer; 3] {
    [always(), but_old(OnStale::Omit), but_old(OnStale::Placeholder)]
}

/// Valid in each dialect, by the validity that `render` of the test asserts; gives the body in its own.
fn valid_everywhere(session: &Session) -> Result<(), TestCaseError> {
    for layer in layers() {
        for dialect in Dialect::ALL {
            session.render(dialect, None, layer.clone());
        }
    }
    Ok(())
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u8>().prop_map(Value::from),
        select(vec![
            "",
            "assistant",
            "user",
            "message",
            "reasoning",
            "function_call",
            "function_call_output",
            "computer_call",
            "computer_call_output",
            "output_text",
            "a"
        ])
        .prop_map(Value::from),
    ];
    let key = select(vec![
        "type",
        "role",
        "content",
        "summary",
        "text",
        "call_id",
        "id",
        "name",
        "arguments",
        "input",
        "output",
        "action",
        "instructions",
        "refusal",
    ]);
    leaf.prop_recursive(5, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..6).prop_map(|members| Value::Object(
                members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
            )),
        ]
    })
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn r04_r05_whatever_was_appended_every_dialect_is_valid(list in prop::collection::vec(item(), 0..12), more in prop::collection::vec(item(), 0..6)) {
        valid_everywhere(&Session::of(OWN, &json!(list)).append(OWN, &json!(more)))?;
    }

    #[test]
    fn r04_r05_histories_of_several_dialects_are_valid_responses_bodies(
        one in prop::collection::vec(chat(), 0..6),
        two in prop::collection::vec(claude(), 0..6),
        three in prop::collection::vec(item(), 0..6),
    ) {
        valid_everywhere(&Session::of(CHAT, &json!(one)).append(CLAUDE, &json!(two)).append(OWN, &json!(three)))?;
    }

    /// What comes from elsewhere is right as it is made: nothing is left for `repair` to mend.
    #[test]
    fn r04_histories_of_other_dialects_render_without_a_repair(one in prop::collection::vec(chat(), 0..8), two in prop::collection::vec(claude(), 0..8)) {
        let session = Session::of(CHAT, &json!(one)).append(CLAUDE, &json!(two));
        for layer in layers() {
            let (body, _, stable) = session.render(OWN, None, layer);
            prop_assert_eq!(body["input"].as_array().unwrap().len(), stable as usize);
        }
    }

    /// A body that is valid, with every call answered, comes back as it was.
    #[test]
    fn r45_valid_items_return_unchanged(list in prop::collection::vec(item(), 0..10)) {
        let body = json!({"input": list}).to_string();
        let wrong = !validate(body.as_bytes(), OWN).is_empty();
        let session = Session::of(OWN, &json!(list));
        let open = session.history.open_calls().next().is_some() || !session.history.set_aside().is_empty();
        // Its results may have been in another order, and reasoning that nothing follows is not sent.
        let ordered = |list: &Value| {
            let mut items: Vec<String> = list.as_array().unwrap().iter().filter(|item| item["type"] != "reasoning").map(Value::to_string).collect();
            items.sort();
            items
        };
        let odd = list.iter().any(|item| item.get("type").is_none() && item.get("role").is_none());
        if !wrong && !open && !odd {
            prop_assert_eq!(ordered(&session.input()), ordered(&json!(list)));
        }
    }

    #[test]
    fn r40_decoding_is_total(list in prop::collection::vec(any_json(), 0..6), bare in any_json()) {
        for body in [json!(list), json!({"input": list, "instructions": bare}), json!({"input": bare}), bare.clone()] {
            let text = body.to_string();
            let view = JsonRef::parse(&text).unwrap();
            let _ = decode_answer(OWN, view);
            if decode_body(OWN, view).is_ok() {
                valid_everywhere(&Session::of(OWN, &body))?;
            }
        }
        for dialect in [Dialect::OpenAiChat, Dialect::Anthropic] {
            let text = json!(list).to_string();
            if let Ok(items) = decode_body(dialect, JsonRef::parse(&text).unwrap()) {
                valid_everywhere(&Session::new().join(items, None))?;
            }
        }
    }
}

#[test]
fn severities_that_the_properties_rely_on() {
    let wrong = validate(br#"{"input":[{"type":"function_call_output","call_id":"a","output":"x"}]}"#, OWN);
    assert!(wrong.iter().any(|found| found.severity == Severity::Error));
}
