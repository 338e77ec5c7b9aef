//! Whatever goes, the body stays valid: random histories, random policies, every dialect that encodes.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::*;
use proptest::prelude::*;
use rethread::finding::Severity;
use rethread::provider::validate;
use rethread::replay::{Citations, DanglingCalls, OnStale, StaleUnit};
use rethread::tool::{InvocationStatus, ToolResult};

/// One call: its fate and the age of its result.
type Fate = (u8, i64);
/// A turn: rounds with words beside their calls or not, and how it ends.
type Turn = (Vec<(Vec<Fate>, bool)>, u8);

fn turns() -> BoxedStrategy<Vec<Turn>> {
    let fate = (0_u8..8, -100_000_i64..400_000);
    let round = (proptest::collection::vec(fate, 1..4), any::<bool>());
    let turn = (proptest::collection::vec(round, 0..4), 0_u8..4);
    proptest::collection::vec(turn, 0..5).boxed()
}

/// A policy of these bytes: drawn so, as strategies in strategies are more than the stack of a wasm holds.
fn policy_of(bytes: &[u8]) -> Policy {
    let mut bytes = bytes.iter().copied().cycle();
    let mut next = || bytes.next().unwrap_or(0);
    let window = |byte: u8| match byte % 8 {
        0..=2 => None,
        3 => Some(Window::Millis(0)),
        4 => Some(Window::Always),
        _ => Some(Window::Millis(u64::from(byte) * 1_600)),
    };
    let of_tool = |byte| window(byte).map(|window| ("look".to_owned(), window)).into_iter().collect();
    // Settings that have their own tests keep their defaults.
    #[allow(clippy::needless_update)]
    let mut layer = || PolicyLayer {
        freshness: window(next()),
        error_freshness: window(next()),
        tool_freshness: of_tool(next()),
        on_stale: [None, Some(OnStale::Omit), Some(OnStale::Placeholder)][usize::from(next() % 3)],
        stale_unit: [None, Some(StaleUnit::Call), Some(StaleUnit::Round), Some(StaleUnit::Turn)]
            [usize::from(next() % 4)],
        dangling_calls: [None, Some(DanglingCalls::Omit), Some(DanglingCalls::Synthesize)][usize::from(next() % 3)],
        citations: [None, Some(Citations::Off), Some(Citations::Replay)][usize::from(next() % 3)],
        ..PolicyLayer::default()
    };
    let (call, session, channel, global) = (layer(), layer(), layer(), layer());
    Policy { call, tools: of_tool(next()), session, channel, global, fallback: None, has_dropped: false }
}

const RESULTS: [&str; 4] = [
    "plain",
    "",
    r#"[{"source_number":1,"content":"one"},{"source_number":2}]"#,
    r#"[{"type":"text","text":"[{\"source_number\":3}]"}]"#,
];

/// The same turns as Anthropic has them: signed thinking, and results beside what the user says next.
fn as_claude(messages: &[Value]) -> String {
    let mut out: Vec<Value> = Vec::new();
    for message in messages {
        // It refuses empty text.
        let text = message["content"].as_str().filter(|text| !text.is_empty());
        let text = text.map(|text| json!({ "type": "text", "text": text }));
        let mut blocks = Vec::new();
        match message["role"].as_str().unwrap() {
            "tool" => {
                blocks.push(json!({ "type": "tool_result", "tool_use_id": message["tool_call_id"], "content": Vec::from_iter(text) }))
            }
            "assistant" if message["tool_calls"].is_array() => {
                blocks.push(json!({ "type": "thinking", "thinking": "hm", "signature": "c2ln" }));
                blocks.extend(text);
                for call in message["tool_calls"].as_array().unwrap() {
                    blocks.push(json!({ "type": "tool_use", "id": call["id"], "name": "look", "input": {} }));
                }
            }
            _ => blocks.extend(text),
        }
        let role = if message["role"] == "assistant" { "assistant" } else { "user" };
        if blocks.is_empty() {
            continue;
        }
        match out.last_mut().filter(|last| last["role"] == role && role == "user") {
            Some(last) => last["content"].as_array_mut().unwrap().extend(blocks),
            None => out.push(json!({ "role": role, "content": blocks })),
        }
    }
    Value::from(out).to_string()
}

fn history_of(turns: &[Turn], by_run: bool, claude: bool) -> History {
    let mut chat = Chat { run: by_run.then_some("r"), ..Chat::new() };
    let (mut all, mut every) = (Vec::new(), Vec::new());
    for (at, (rounds, end)) in turns.iter().enumerate() {
        let mut messages = vec![user("q")];
        let mut fates = Vec::new();
        for (round, (list, words)) in rounds.iter().enumerate() {
            let ids: Vec<String> = (0..list.len()).map(|place| format!("call{at}x{round}x{place}")).collect();
            let mut asks = calls(&ids.iter().map(String::as_str).collect::<Vec<_>>());
            if *words {
                asks["content"] = json!("As [source1] says.");
            }
            messages.push(asks);
            for (id, (fate, age)) in ids.iter().zip(list) {
                if *fate > 1 {
                    messages.push(result(id, RESULTS[usize::from(*fate) % RESULTS.len()]));
                }
                fates.push((id.clone(), *fate, *age));
            }
        }
        messages.extend(match end {
            0 => Some(says("done")),
            1 => Some(says("As [source2] says.")),
            2 => Some(says("")),
            _ => None,
        });
        all.extend(messages);
        every.extend(fates);
    }
    let body = if claude { as_claude(&all) } else { Value::from(all).to_string() };
    chat = chat.at(NOW - AGE, if claude { CLAUDE } else { CHAT }, &body);
    for (id, fate, age) in every {
        chat = match fate {
            1 => chat.with(&id, |call| call.started_at = Some(NOW - 5)),
            2 => chat.with(&id, |call| {
                call.status = InvocationStatus::Error;
                call.result = Some(ToolResult::failure("no"));
            }),
            3 => chat.with(&id, |call| call.finished_at = None),
            4.. => chat.aged(&id, age),
            0 => chat,
        };
    }
    chat.history
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(target_arch = "wasm32") { 200 } else { 2_000 }, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn r11_bodies_without_stale_results_are_valid_in_every_dialect(turns in turns(), seed in proptest::array::uniform32(any::<u8>()), by_run: bool, asks: bool, claude: bool) {
        let policy = policy_of(&seed);
        let history = history_of(&turns, by_run, claude);
        let live = Chat::of(&[user("now")]);
        let live = asks.then_some(&live.history);
        for dialect in Dialect::ALL {
            let provider = provider(dialect);
            let request = RenderRequest { provider: &provider, instructions: Some("Be brief."), tools: &[], policy: &policy };
            let mut renderer = Renderer::default();
            let rendered = renderer.render(&history, live, &request, NOW).unwrap();
            let text = String::from_utf8_lossy(&rendered.body).into_owned();
            let errors: Vec<_> = validate(&rendered.body, dialect).into_iter().filter(|finding| finding.severity == Severity::Error).collect();
            prop_assert!(errors.is_empty(), "{dialect:?} {errors:?}\n{text}");
            // What the passes leave is valid as it is, and not for being mended. The rules have their say about how a
            // body ends, and about thinking there.
            let mended = rendered.report.iter().any(|finding| finding.path.is_some());
            prop_assert!(!mended || claude || !asks, "{dialect:?} {:?}\n{text}", rendered.report);
            // What is kept is the same again.
            prop_assert_eq!(&renderer.render(&history, live, &request, NOW).unwrap().body, &rendered.body);
            let body: Value = serde_json::from_slice(&rendered.body).unwrap();
            if matches!(dialect, CHAT | CLAUDE) {
                valid(&body, dialect);
            }
            // No user or assistant text goes with a call.
            prop_assert_eq!(text.matches("[source2]").count(), turns.iter().filter(|(_, end)| *end == 1).count());
        }
    }
}

#[test]
fn r11_removing_a_stale_turn_leaves_a_valid_order_of_roles() {
    let turn = [user("q"), super::calls(&["a"]), result("a", "A"), says("")];
    let chat = Chat::of(&turn).and(&[user("next"), says("done"), user("more")]);
    let never = global(window(0.0));
    for dialect in Dialect::ALL {
        let provider = provider(dialect);
        let request = RenderRequest { provider: &provider, instructions: None, tools: &[], policy: &never };
        let rendered = Renderer::default().render(&chat.history, None, &request, NOW).unwrap();
        let errors =
            validate(&rendered.body, dialect).into_iter().filter(|finding| finding.severity == Severity::Error).count();
        assert_eq!(errors, 0, "{dialect:?}");
        let text = String::from_utf8(rendered.body).unwrap();
        for said in ["q", "next", "done", "more"] {
            assert!(text.contains(&format!("\"{said}\"")), "{dialect:?} {text}");
        }
    }
}
