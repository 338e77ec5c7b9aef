//! Freshness (R10, R11).

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::*;
use rethread::error::ErrorCode;
use rethread::replay::{OnStale, StaleUnit};
use rethread::tool::{InvocationStatus, ToolResult};

fn one() -> Chat {
    Chat::of(&[user("q"), calls(&["a"]), result("a", "A"), says("done")])
}

fn two() -> Chat {
    Chat::of(&[user("q"), calls(&["a", "b"]), result("a", "A"), result("b", "B"), says("done")])
}

const GONE: [&str; 2] = ["user q", "says done"];

fn is_fresh(chat: &Chat, policy: &Policy) -> bool {
    let lines = chat.lines(policy);
    let fresh = lines == ["user q", "calls a", "a=A", "says done"];
    assert!(fresh || lines == GONE, "{lines:?}");
    fresh
}

#[test]
fn trf_b01_a_result_within_its_window_is_sent() {
    assert!(is_fresh(&one().aged("a", 100_000), &global(window(300_000.0))));
}

#[test]
fn trf_b02_a_result_past_its_window_is_not_sent_but_stays_stored() {
    let chat = one().aged("a", 400_000);
    assert!(!is_fresh(&chat, &global(window(300_000.0))));
    assert!(chat.call("a").result.is_some());
}

fn in_channel(channel: PolicyLayer, global: PolicyLayer) -> Policy {
    Policy { channel, global, ..Policy::default() }
}

#[test]
fn trf_b03_a_channel_can_shorten_the_window() {
    assert!(!is_fresh(&one().aged("a", 120_000), &in_channel(window(60_000.0), window(600_000.0))));
}

#[test]
fn trf_b04_a_channel_can_lengthen_the_window() {
    assert!(is_fresh(&one().aged("a", 120_000), &in_channel(window(600_000.0), window(60_000.0))));
}

#[test]
fn trf_b05_the_window_is_inclusive() {
    assert!(is_fresh(&one().aged("a", 300_000), &Policy::default()));
    assert!(!is_fresh(&one().aged("a", 300_001), &Policy::default()));
}

#[test]
fn trf_b06_ages_are_not_rounded_to_seconds() {
    assert!(!is_fresh(&one().aged("a", 300_900), &global(window(300_000.0))));
}

#[test]
fn trf_b07_a_window_of_zero_never_sends() {
    assert!(!is_fresh(&one().aged("a", 0), &global(window(0.0))));
}

#[test]
fn trf_b08_a_channel_without_a_window_inherits_one() {
    let policy = in_channel(PolicyLayer::default(), window(60_000.0));
    assert!(is_fresh(&one().aged("a", 60_000), &policy) && !is_fresh(&one().aged("a", 60_001), &policy));
}

#[test]
fn trf_b09_an_invalid_window_is_an_error() {
    for bad in [-1.0, -0.001, f64::NAN, f64::NEG_INFINITY] {
        assert_eq!(Window::from_millis(bad).unwrap_err().code, ErrorCode::ConfigInvalid);
    }
    assert_eq!(Window::from_millis(f64::INFINITY).unwrap(), Window::Always);
}

#[test]
fn trf_b10_a_future_timestamp_is_tolerated_up_to_a_minute() {
    assert!(is_fresh(&one().aged("a", -30_000), &global(window(1_000.0))));
    let (lines, report) = one().aged("a", -86_400_000).shown(&global(window(1_000.0)));
    assert_eq!((lines.iter().map(String::as_str).collect::<Vec<_>>(), report), (GONE.to_vec(), vec!["future"]));
}

#[test]
fn trf_b11_a_result_without_a_timestamp_is_stale() {
    let chat = one().with("a", |call| call.finished_at = None);
    assert!(!is_fresh(&chat, &global(window(1e12))));
    assert!(is_fresh(&chat, &always()));
    let (_, rendered) = chat.render(CHAT, &global(window(1e12)));
    let finding = &rendered.report[0];
    assert_eq!((finding.code.as_str(), finding.call_id.as_deref()), ("stale", Some("a")));
    assert!(finding.message.contains("no time stamp"));
}

#[test]
fn trf_b12_by_call_the_fresh_call_of_a_round_is_kept() {
    let chat = two().aged("b", 9_999);
    assert_eq!(chat.lines(&global(window(5_000.0))), ["user q", "calls a", "a=A", "says done"]);
}

#[test]
fn trf_b13_by_round_a_stale_call_removes_its_round() {
    let by_round = PolicyLayer { stale_unit: Some(StaleUnit::Round), ..window(5_000.0) };
    assert_eq!(two().aged("b", 9_999).lines(&global(by_round)), GONE);
}

#[test]
fn trf_b14_when_all_rounds_are_stale_the_text_is_kept() {
    let chat =
        Chat::of(&[user("q"), calls(&["a"]), result("a", "A"), calls(&["b"]), result("b", "B"), says("shipped")]);
    assert_eq!(chat.lines(&global(window(10.0))), ["user q", "says shipped"]);
}

#[test]
fn trf_b15_text_never_becomes_stale() {
    let chat = Chat::new().at(NOW - 1_000_000, CHAT, &Value::from(vec![user("q"), says("done")]).to_string());
    assert_eq!(chat.lines(&global(window(60_000.0))), GONE);
}

#[test]
fn trf_b16_a_stale_round_is_dropped_and_the_next_one_kept() {
    let chat = Chat::of(&[user("q"), calls(&["a"]), result("a", "A"), calls(&["b"]), result("b", "B"), says("done")])
        .aged("a", 9_999);
    assert_eq!(chat.lines(&global(window(5_000.0))), ["user q", "calls b", "b=B", "says done"]);
}

#[test]
fn trf_b17_placeholders_keep_one_result_per_call() {
    for unit in [StaleUnit::Call, StaleUnit::Round, StaleUnit::Turn] {
        let layer = PolicyLayer { on_stale: Some(OnStale::Placeholder), stale_unit: Some(unit), ..window(5_000.0) };
        let (lines, report) = two().aged("b", 9_999).shown(&global(layer));
        assert_eq!(lines[1], "calls a b");
        assert_eq!(lines[2] == "a=A", unit == StaleUnit::Call);
        assert!(lines[3].starts_with("b=Expired"), "{lines:?}");
        assert_eq!(report.len(), if unit == StaleUnit::Call { 1 } else { 2 });
    }
}

#[test]
fn trf_b18_an_error_result_uses_the_results_window_unless_it_has_its_own() {
    let failed = |chat: Chat| {
        chat.with("a", |call| {
            call.status = InvocationStatus::Error;
            call.result = Some(ToolResult::failure("Error: no"));
        })
    };
    let chat = failed(one());
    assert_eq!(chat.lines(&global(window(5_000.0)))[2], "a=Error: no");
    let never = PolicyLayer { error_freshness: Some(Window::Millis(0)), ..window(5_000.0) };
    assert_eq!(chat.lines(&global(never.clone())), GONE);
    // Its sibling has the plain one.
    assert_eq!(failed(two()).lines(&global(never)), ["user q", "calls b", "b=B", "says done"]);
}

#[test]
fn trf_b23_empty_arguments_become_an_object() {
    let (body, _) = one().render(CHAT, &always());
    assert_eq!(body["messages"][1]["tool_calls"][0]["function"]["arguments"], "{}");
    let (body, _) = one().render(CLAUDE, &always());
    assert_eq!(body["messages"][1]["content"][0]["input"], json!({}));
}

#[test]
fn trf_b24_a_turn_within_one_millisecond_keeps_its_order() {
    let turn = Value::from(vec![user("q"), calls(&["a"]), result("a", "A"), says("done")]).to_string();
    let chat = Chat::new().at(NOW, CHAT, &turn);
    assert!(chat.history.messages().iter().all(|message| message.created_at == NOW));
    assert!(is_fresh(&chat, &Policy::default()));
}

#[test]
fn trf_b25_age_counts_from_the_end_of_the_execution() {
    let chat = one().aged("a", 1_000).with("a", |call| call.started_at = Some(NOW - 900_000));
    assert!(is_fresh(&chat, &Policy::default()));
}

#[test]
fn trf_b26_a_call_without_a_result_is_open_and_not_stale() {
    let chat = Chat::of_run(&[user("q"), calls(&["a"]), says("done")]);
    let (lines, report) = chat.shown(&global(window(0.0)));
    assert_eq!((lines.iter().map(String::as_str).collect::<Vec<_>>(), report), (GONE.to_vec(), vec!["dangling_call"]));
}

#[test]
fn r10_an_imported_result_gets_its_own_time_or_the_current_one() {
    let turn = Value::from(vec![user("q"), calls(&["a"]), result("a", "A"), says("done")]).to_string();
    assert!(is_fresh(&Chat::new().at(NOW, CHAT, &turn), &Policy::default()));
    assert!(!is_fresh(&Chat::new().at(NOW - 300_001, CHAT, &turn), &Policy::default()));
}

#[test]
fn r11_a_stale_call_removes_its_turn_and_no_other() {
    let chat = two().and(&[user("next"), calls(&["c"]), result("c", "C"), says("again")]).aged("b", 9_999);
    let by_turn = PolicyLayer { stale_unit: Some(StaleUnit::Turn), ..window(5_000.0) };
    assert_eq!(chat.lines(&global(by_turn)), ["user q", "says done", "user next", "calls c", "c=C", "says again"]);
}

#[test]
fn r11_text_beside_stale_calls_is_kept_as_text() {
    let mut asks = calls(&["a"]);
    asks["content"] = json!("Let me look.");
    let chat = Chat::of(&[user("q"), asks, result("a", "A"), says("done")]);
    assert_eq!(chat.lines(&global(window(0.0))), ["user q", "says Let me look.", "says done"]);
}
