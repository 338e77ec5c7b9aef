//! The session cases of state-ownership.md, section 3 (`so3_…`), and the gaps of another implementation that are listed
//! there (`so3_gap_a` to `so3_gap_i`): what is sent of a history whose calls, outputs and reasoning do not match.

use super::*;
use rethread::replay::{DanglingCalls, Reducer};
use rethread::synthetic_result::INTERRUPTED;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

const RESPONSES: Dialect = Dialect::OpenAiResponses;

fn limited(count: usize) -> Policy {
    let reducer = Reducer::MessageCount { count, keep_tools: true, first_system_only: false };
    global(PolicyLayer { freshness: Some(Window::Always), reducers: Some(vec![reducer]), ..PolicyLayer::default() })
}

fn omitting() -> Policy {
    global(PolicyLayer {
        freshness: Some(Window::Always),
        dangling_calls: Some(DanglingCalls::Omit),
        ..PolicyLayer::default()
    })
}

/// The types of the items that are sent, with their ids.
fn items(input: &Value, policy: &Policy) -> Vec<String> {
    let chat = Chat::new().at(NOW - AGE, RESPONSES, &json!({ "input": input }).to_string());
    let (body, _) = chat.render(RESPONSES, policy);
    let name = |item: &Value| {
        let kind = item["type"].as_str().or(item["role"].as_str()).unwrap();
        item["call_id"].as_str().or(item["id"].as_str()).map_or(kind.to_owned(), |id| format!("{kind} {id}"))
    };
    body["input"].as_array().unwrap().iter().map(name).collect()
}

fn reasoning(id: &str) -> Value {
    json!({ "type": "reasoning", "id": id, "summary": [], "encrypted_content": "x" })
}

fn function_call(id: &str) -> Value {
    json!({ "type": "function_call", "call_id": id, "name": "look", "arguments": "{}" })
}

fn output(id: &str) -> Value {
    json!({ "type": "function_call_output", "call_id": id, "output": "ok" })
}

#[test]
fn so3_gap_a_an_output_without_a_call_is_never_sent_with_or_without_a_limit() {
    let chat = Chat::of(&[user("Hi"), result("lost", "x"), says("Yes."), user("More")]);
    assert_eq!(chat.lines(&always()), ["user Hi", "says Yes.", "user More"]);
    assert_eq!(chat.lines(&limited(1)), ["user More"]);
    assert_eq!(chat.history.set_aside().len(), 1, "it is kept");
}

#[test]
fn so3_an_output_of_the_new_turn_answers_the_stored_call() {
    let chat = Chat::of(&[user("Hi"), calls(&["a"])]).and(&[result("a", "x"), user("More")]);
    assert_eq!(chat.lines(&always()), ["user Hi", "calls a", "a=x", "user More"]);
}

#[test]
fn so3_under_a_limit_a_pair_is_sent_as_a_whole_or_not_at_all() {
    let chat =
        Chat::of(&[user("Hi"), calls(&["a", "b"]), result("a", "1"), result("b", "2"), says("Done."), user("More")]);
    for count in 1..7 {
        let lines = chat.lines(&limited(count));
        let has = |line: &str| lines.iter().any(|one| one == line);
        assert_eq!((has("a=1"), has("b=2")), (has("calls a b"), has("calls a b")), "{count}: {lines:?}");
    }
}

#[test]
fn so3_of_two_outputs_of_a_call_one_is_sent() {
    let chat = Chat::of(&[user("Hi"), calls(&["a"]), result("a", "first"), result("a", "second"), user("More")]);
    assert_eq!(chat.lines(&always()), ["user Hi", "calls a", "a=first", "user More"]);
    assert_eq!(chat.history.set_aside().len(), 1, "the second is kept");
}

#[test]
fn so3_a_call_without_an_output_is_closed_or_dropped_by_option() {
    let chat = Chat::of(&[user("Hi"), calls(&["a"]), user("More")]);
    assert_eq!(chat.lines(&always())[1..3], ["calls a".to_owned(), format!("a={INTERRUPTED}")]);
    assert_eq!(chat.lines(&omitting()), ["user Hi", "user More"]);
}

#[test]
fn so3_gap_b_an_output_before_its_call_is_sent_after_it() {
    let chat = Chat::of(&[user("Hi"), result("a", "x"), calls(&["a"]), user("More")]);
    assert_eq!(chat.lines(&always()), ["user Hi", "calls a", "a=x", "user More"]);
}

#[test]
fn so3_gap_c_gap_d_an_output_stays_with_its_call_whatever_is_said_between() {
    let chat = Chat::of(&[user("Hi"), calls(&["a"]), user("Wait"), result("a", "x"), user("More")]);
    assert_eq!(chat.lines(&always()), ["user Hi", "calls a", "a=x", "user Wait", "user More"]);
    let chat = chat.and(&[result("a", "again"), user("Now?")]);
    assert_eq!(chat.lines(&always()), ["user Hi", "calls a", "a=x", "user Wait", "user More", "user Now?"]);
}

#[test]
fn so3_gap_e_a_reused_call_id_loses_no_pair() {
    let turn = |text: &str| [user("Hi"), calls(&["a"]), result("a", text), says("Yes.")];
    let lines = Chat::of(&turn("one")).and(&turn("two")).lines(&always());
    assert_eq!((lines.len(), lines[2].as_str()), (8, "a=one"));
    let (call, result) = (lines[5].strip_prefix("calls ").unwrap(), lines[6].strip_suffix("=two").unwrap());
    assert_eq!(call, result);
    assert_ne!(call, "a");
}

#[test]
fn so3_gap_f_a_second_call_of_an_answered_id_is_closed_by_itself() {
    let chat = Chat::of(&[user("Hi"), calls(&["a"]), result("a", "x"), calls(&["a"]), user("More")]);
    let lines = chat.lines(&always());
    assert_eq!(lines[..3], ["user Hi", "calls a", "a=x"]);
    let id = lines[3].strip_prefix("calls ").unwrap();
    assert_ne!(id, "a");
    assert_eq!(lines[4], format!("{id}={INTERRUPTED}"));
    assert_eq!(chat.lines(&omitting()), ["user Hi", "calls a", "a=x", "user More"]);
}

#[test]
fn so3_gap_g_reasoning_that_nothing_follows_is_not_sent() {
    let said = json!({ "type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [{ "type": "output_text", "text": "Yes.", "annotations": [] }] });
    let question = json!({ "role": "user", "content": "Hi" });
    assert_eq!(items(&json!([question, reasoning("rs_1"), question, reasoning("rs_2")]), &always()), ["user", "user"]);
    assert_eq!(items(&json!([question, reasoning("rs_1"), said]), &always())[1], "reasoning rs_1");
}

#[test]
fn so3_gap_h_reasoning_of_parallel_calls_is_sent_if_one_of_them_is() {
    let question = json!({ "role": "user", "content": "Hi" });
    let input = json!([question, reasoning("rs_1"), function_call("a"), function_call("b"), output("b"), question]);
    assert_eq!(
        items(&input, &always()),
        [
            "user",
            "reasoning rs_1",
            "function_call a",
            "function_call b",
            "function_call_output a",
            "function_call_output b",
            "user"
        ]
    );
    assert_eq!(
        items(&input, &omitting()),
        ["user", "reasoning rs_1", "function_call b", "function_call_output b", "user"]
    );
}

#[test]
fn so3_gap_i_a_call_that_may_have_run_leaves_its_trace() {
    let chat = Chat::of(&[user("Pay"), calls(&["a"]), user("Did you?")]);
    let (lines, codes) = chat.shown(&always());
    assert!(lines[2].contains("may or may not have run"), "{lines:?}");
    assert_eq!(codes, ["dangling_call"]);
    // Where it is dropped by option, the report and the stored history still have it.
    let (_, codes) = chat.shown(&omitting());
    assert_eq!(codes, ["dangling_call"]);
    assert_eq!(chat.history.invocations().len(), 1);
}
