//! Whatever is stored, whatever reduces it: every dialect takes the body.

use super::*;
use crate::message::{Message, PartBody, Role};
use proptest::prelude::*;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

fn reducer() -> impl Strategy<Value = Reducer> {
    prop_oneof![
        (1_usize..8, any::<bool>(), any::<bool>()).prop_map(|(count, keep_tools, first_system_only)| {
            Reducer::MessageCount { count, keep_tools, first_system_only }
        }),
        (0_u64..400, any::<bool>())
            .prop_map(|(tokens, own)| Reducer::TokenBudget { tokens, count: own.then(|| callback(1)) }),
        (1_usize..4).prop_map(|turns| Reducer::SlidingTurns { turns }),
        (0_usize..3, 0_u32..1_500)
            .prop_map(|(keep_newest_turns, max_bytes)| Reducer::ToolResults { keep_newest_turns, max_bytes }),
        (1_usize..5, 0_usize..3).prop_map(|(target, threshold)| summarize(target, threshold)),
        Just(Reducer::Custom { reduce: callback(2) }),
    ]
}

fn piece() -> impl Strategy<Value = String> {
    let id = prop_oneof![Just("a"), Just("b"), Just("")];
    let call = id.clone().prop_map(|id| {
        format!(r#"{{"id":"{id}","type":"function","function":{{"name":"f","arguments":"{{\"n\":1}}"}}}}"#)
    });
    let text = prop_oneof![
        Just("null".to_owned()),
        Just("\"\"".to_owned()),
        Just("\"said\"".to_owned()),
        Just(r#"[{"type":"text","text":"x"},{"type":"image_url","image_url":{"url":"https://x/y.png"}}]"#.to_owned())
    ];
    prop_oneof![
        3 => "[a-z]{0,6}".prop_map(|text| format!(r#"{{"role":"user","content":"{text}"}}"#)),
        2 => text.prop_map(|content| format!(r#"{{"role":"assistant","content":{content}}}"#)),
        1 => Just(r#"{"role":"assistant","content":null,"reasoning_content":"hm"}"#.to_owned()),
        1 => Just(r#"{"role":"system","content":"be good"}"#.to_owned()),
        1 => Just(r#"{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://x/y.png"}}]}"#.to_owned()),
        3 => (any::<bool>(), proptest::collection::vec(call, 1..4)).prop_map(|(says, calls)| format!(
            r#"{{"role":"assistant","content":{},"tool_calls":[{}]}}"#, if says { "\"look\"" } else { "null" }, calls.join(",")
        )),
        4 => (id, 0_usize..3_000).prop_map(|(id, size)| format!(r#"{{"role":"tool","tool_call_id":"{id}","content":"{}"}}"#, "r".repeat(size))),
    ]
}

/// Some messages of those that were given, as told by the bits; none of its calls where a bit says so.
fn pick(question: &QuestionKind, bits: u64) -> ReducerReply {
    match question {
        QuestionKind::Count(texts) => ReducerReply::Counts(texts.iter().map(|text| text.len() as u64 / 3).collect()),
        QuestionKind::Summarize(body) => {
            assert!(JsonRef::parse(std::str::from_utf8(body).unwrap()).is_ok());
            ReducerReply::Summary("in short".into())
        }
        QuestionKind::Reduce(_) => {
            let mut list = Vec::new();
            for (at, item) in items(question).into_iter().enumerate() {
                match (bits >> (at * 2 % 60)) & 3 {
                    0 => {}
                    1 => list.push(item.replace("tool_call", "gone").replace("said", "changed")),
                    _ => list.push(item),
                }
            }
            given(&list)
        }
    }
}

fn newest_words(history: &History) -> Option<String> {
    let says = |message: &Message| match message.parts.first().map(|part| &part.body) {
        Some(PartBody::Text(text)) => (!text.is_empty()).then(|| text.inside().to_owned()),
        Some(PartBody::Image(_)) => Some("https://x/y.png".to_owned()),
        _ => None,
    };
    history.messages().iter().rev().filter(|message| message.role == Role::User).find_map(says)
}

/// As Anthropic has it: results stand in the user's message, thinking is signed, some blocks are its own.
fn claude_piece() -> impl Strategy<Value = String> {
    let id = prop_oneof![Just("a"), Just("b"), Just("c")];
    let block = prop_oneof![
        2 => Just(r#"{"type":"text","text":"said"}"#.to_owned()),
        1 => Just(r#"{"type":"thinking","thinking":"hm","signature":"c2ln"}"#.to_owned()),
        1 => Just(r#"{"type":"redacted_thinking","data":"x"}"#.to_owned()),
        3 => id.clone().prop_map(|id| format!(r#"{{"type":"tool_use","id":"{id}","name":"f","input":{{"n":1}}}}"#)),
    ];
    let reply = prop_oneof![
        1 => "[a-z]{1,6}".prop_map(|text| format!(r#"{{"type":"text","text":"{text}"}}"#)),
        3 => (id, 0_usize..3_000).prop_map(|(id, size)| format!(r#"{{"type":"tool_result","tool_use_id":"{id}","content":[{{"type":"text","text":"{}"}}]}}"#, "r".repeat(size + 1))),
    ];
    prop_oneof![
        2 => "[a-z]{1,6}".prop_map(|text| format!(r#"{{"role":"user","content":"{text}"}}"#)),
        4 => proptest::collection::vec(block, 1..4).prop_map(|blocks| format!(r#"{{"role":"assistant","content":[{}]}}"#, blocks.join(","))),
        4 => proptest::collection::vec(reply, 1..4).prop_map(|blocks| format!(r#"{{"role":"user","content":[{}]}}"#, blocks.join(","))),
    ]
}

fn dialects() -> impl Iterator<Item = Dialect> {
    Dialect::ALL.into_iter()
}

#[test]
fn r14_a_shortened_result_keeps_its_beginning_in_every_dialect() {
    let long = format!("start {}", "x".repeat(3_000));
    let plain = with_results(&[&long]);
    let mut own = History::new(Seed(1));
    let body_of = format!(
        r#"[{{"role":"user","content":"u"}},{{"role":"assistant","content":[{{"type":"tool_use","id":"c","name":"f","input":{{}}}}]}},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"c","cache_control":{{"type":"ephemeral"}},"content":[{{"type":"text","text":"{long}"}}]}}]}},{{"role":"assistant","content":"a"}}]"#
    );
    append_in(Dialect::Anthropic, None, &mut own, &body_of, &CountingIds::default());
    let rules = policy(vec![Reducer::ToolResults { keep_newest_turns: 0, max_bytes: 200 }]);
    for history in [&plain, &own] {
        for dialect in dialects() {
            let rendered = body(&mut Renderer::default(), history, None, dialect, &rules, &mut nobody);
            let text = String::from_utf8(rendered.body).unwrap();
            assert!(
                text.contains("start xx") && text.contains("[shortened]") && text.len() < 1_000,
                "{dialect:?} {text}"
            );
        }
    }
}

/// What holds for every pipeline over every history.
fn check(
    came: Dialect,
    list: &[String],
    live: &[String],
    reducers: &[Reducer],
    bits: u64,
) -> std::result::Result<(), TestCaseError> {
    let ids = CountingIds::default();
    let (mut history, mut live_turn) = (History::new(Seed(1)), History::new(Seed(1)));
    append_in(came, None, &mut history, &format!("[{}]", list.join(",")), &ids);
    append_in(came, Some(&history), &mut live_turn, &format!("[{}]", live.join(",")), &ids);
    let newest = newest_words(&live_turn).or_else(|| newest_words(&history));
    let custom = reducers.iter().any(|reducer| matches!(reducer, Reducer::Custom { .. }));
    for dialect in dialects() {
        let mut told = |question: &QuestionKind| pick(question, bits);
        let mut renderer = Renderer::default();
        let rules = policy(reducers.to_vec());
        // `body` asserts that the rules take it.
        let first = body(&mut renderer, &history, Some(&live_turn), dialect, &rules, &mut told);
        let text = String::from_utf8(first.body).unwrap();
        let again = body(&mut renderer, &history, Some(&live_turn), dialect, &rules, &mut told);
        prop_assert_eq!(&text, &String::from_utf8(again.body).unwrap());
        // Bedrock fetches no image: one that is a URL is left out, with a finding.
        let is_sent = |newest: &&String| dialect != Dialect::Bedrock || !newest.starts_with("https://");
        if let Some(newest) = newest.as_ref().filter(is_sent) {
            prop_assert!(text.contains(newest.as_str()), "{newest} {text}");
        }
        // The same once more in the pipeline changes nothing, where all of it is a function of what it is given.
        if !custom {
            let twice = [reducers, reducers.get(reducers.len() - 1..).unwrap_or_default()].concat();
            let twice = body(&mut Renderer::default(), &history, Some(&live_turn), dialect, &policy(twice), &mut told);
            prop_assert_eq!(&text, &String::from_utf8(twice.body).unwrap());
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn r14_r36_reduced_histories_are_valid_in_every_dialect(
        list in proptest::collection::vec(piece(), 0..14), live in proptest::collection::vec(piece(), 0..4),
        reducers in proptest::collection::vec(reducer(), 1..4), bits: u64,
    ) {
        check(CHAT, &list, &live, &reducers, bits)?;
    }

    #[test]
    fn r14_r36_reduced_anthropic_histories_are_valid_in_every_dialect(
        list in proptest::collection::vec(claude_piece(), 0..12), live in proptest::collection::vec(claude_piece(), 0..4),
        reducers in proptest::collection::vec(reducer(), 1..4), bits: u64,
    ) {
        check(Dialect::Anthropic, &list, &live, &reducers, bits)?;
    }
}
