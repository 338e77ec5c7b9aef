//! Whatever is stored, every dialect accepts its body (R4, R5).

use super::*;
use crate::finding::Severity;
use proptest::prelude::*;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

fn text_message(role: &'static str) -> impl Strategy<Value = String> {
    prop_oneof![
        Just("\"\""),
        Just("\" \""),
        Just("\"hi\""),
        Just("null"),
        Just("[]"),
        Just(r#"[{"type":"text","text":""}]"#),
        Just(r#"[{"type":"text","text":"x"},{"type":"weird","a":1}]"#),
        Just(r#"[{"type":"image_url","image_url":{"url":"https://x/y.png"}}]"#),
        Just("7")
    ]
    .prop_map(move |content| format!(r#"{{"role":"{role}","content":{content}}}"#))
}

fn wire() -> impl Strategy<Value = String> {
    let id = prop_oneof![
        Just(""),
        Just("a"),
        Just("b"),
        Just("an id with spaces \u{e9}"),
        Just("call_0123456789012345678901234567890123456789012345678901234567890123456789")
    ];
    let arguments = prop_oneof![Just("{}"), Just(""), Just("{oops"), Just("[1]"), Just(r#"{\"a\":1}"#)];
    let call = (id.clone(), arguments).prop_map(|(id, arguments)| {
        format!(r#"{{"id":"{id}","type":"function","function":{{"name":"f","arguments":"{arguments}"}}}}"#)
    });
    let content = prop_oneof![
        Just("null"),
        Just("\"\""),
        Just("\"said\""),
        Just("7"),
        Just("[]"),
        Just(r#"[{"type":"thinking","thinking":"t"},7,{"type":"text"}]"#)
    ];
    prop_oneof![
        text_message("user"),
        text_message("assistant"),
        text_message("system"),
        text_message("developer"),
        (content, proptest::collection::vec(call, 0..3)).prop_map(|(content, calls)| format!(
            r#"{{"role":"assistant","content":{content},"tool_calls":[{}]}}"#,
            calls.join(",")
        )),
        (
            id.clone(),
            prop_oneof![Just("\"r\""), Just("\"\""), Just(r#"[{"type":"text","text":"r"}]"#), Just("null"), Just("{}")]
        )
            .prop_map(|(id, content)| format!(r#"{{"role":"tool","tool_call_id":"{id}","content":{content}}}"#)),
        id.prop_map(|id| format!(r#"{{"role":"tool","tool_call_id":"{id}"}}"#)),
    ]
}

fn claude_wire() -> impl Strategy<Value = String> {
    let id = prop_oneof![Just(""), Just("a"), Just("b"), Just("b\u{e9} !")];
    let text = prop_oneof![Just("\"\""), Just("\" \""), Just("\"hi \""), Just("null"), Just("7")];
    let block = prop_oneof![
        text.clone()
            .prop_map(|text| format!(r#"{{"type":"text","text":{text},"cache_control":{{"type":"ephemeral"}}}}"#)),
        text.clone().prop_map(|text| format!(r#"{{"type":"text","text":{text}}}"#)),
        (id.clone(), prop_oneof![Just("{}"), Just("[]"), Just("\"{}\""), Just("null")])
            .prop_map(|(id, input)| format!(r#"{{"type":"tool_use","id":"{id}","name":"f","input":{input}}}"#)),
        (id, prop_oneof![Just("\"r\""), Just("\"\""), Just("[]"), Just("7"), Just(r#"[{"type":"text","text":""}]"#)])
            .prop_map(|(id, content)| format!(
                r#"{{"type":"tool_result","tool_use_id":"{id}","content":{content},"is_error":true}}"#
            )),
        Just(r#"{"type":"thinking","thinking":"hm","signature":""}"#.to_owned()),
        Just(r#"{"type":"thinking","thinking":"hm","signature":"c2ln"}"#.to_owned()),
        Just(r#"{"type":"redacted_thinking","data":"x"}"#.to_owned()),
        Just(r#"{"type":"image","source":{"type":"url","url":"https://x/y.png"}}"#.to_owned()),
        Just(r#"{"type":"image_url","image_url":{"url":"https://x/y.png"}}"#.to_owned()),
        Just("7".to_owned()),
    ];
    let content = prop_oneof![2 => text.prop_map(str::to_owned), 5 => proptest::collection::vec(block, 0..4).prop_map(|blocks| format!("[{}]", blocks.join(",")))];
    let role = prop_oneof![4 => Just("user"), 4 => Just("assistant"), 1 => Just("system")];
    (role, content).prop_map(|(role, content)| format!(r#"{{"role":"{role}","content":{content}}}"#))
}

/// A turn that is not stored yet, joined as a run joins it.
pub(super) fn live_after(history: &History, dialect: Dialect, body: &str) -> History {
    let mut live = History::new(Seed(1));
    let items = decode_body(dialect, JsonRef::parse(body).unwrap()).unwrap();
    let ids = CountingIds::default();
    let joined = join(JoinBase::live(history, &live), items, &Came { at: 1_000, ..Came::default() }, &ids);
    joined.entries.into_iter().for_each(|entry| live.apply(entry));
    live
}

pub(super) fn valid_in_all(
    history: &History,
    live: Option<&History>,
    now: u64,
) -> std::result::Result<(), TestCaseError> {
    for dialect in Dialect::ALL {
        let provider = provider(dialect, r#"{"model":"m","max_tokens":9}"#);
        let mut renderer = Renderer::default();
        let request = RenderRequest { provider: &provider, instructions: None, tools: &[], policy: &Policy::default() };
        let rendered = renderer.render(history, live, &request, now).unwrap();
        let text = String::from_utf8(rendered.body.clone()).unwrap();
        prop_assert!(JsonRef::parse(&text).is_ok(), "{text}");
        let errors: Vec<_> = validate(&rendered.body, dialect)
            .into_iter()
            .filter(|finding| finding.severity == Severity::Error)
            .collect();
        prop_assert!(errors.is_empty(), "{errors:?}\n{text}");
        prop_assert_eq!(renderer.render(history, live, &request, now).unwrap().body, rendered.body);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn r04_r05_whatever_was_appended_every_dialect_is_valid(list in proptest::collection::vec(wire(), 0..10), more in proptest::collection::vec(wire(), 0..3), now in 0_u64..900_000) {
        let history = history_of(CHAT, &format!("[{}]", list.join(",")));
        valid_in_all(&history, None, now)?;
        let live = live_after(&history, CHAT, &format!("[{}]", more.join(",")));
        valid_in_all(&history, Some(&live), now)?;
    }

    #[test]
    fn r04_r05_any_anthropic_history_is_valid_in_every_dialect(list in proptest::collection::vec(claude_wire(), 0..8), chat in proptest::collection::vec(wire(), 0..3), now in 0_u64..900_000) {
        let mut history = history_of(CLAUDE, &format!("[{}]", list.join(",")));
        append(&mut history, CHAT, &format!("[{}]", chat.join(",")), &{ let ids = CountingIds::default(); for _ in 0..500 { crate::id::IdSource::new_id(&ids); } ids });
        valid_in_all(&history, None, now)?;
    }
}
