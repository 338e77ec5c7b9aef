//! Claude from 4.6 on continues no answer: the list ends with the user.

use super::*;
use rethread::message::Dialect;
use serde_json::{Value, json};

fn asked(model: &str, messages: Vec<Value>) -> Value {
    let mut body = claude(messages);
    body["model"] = json!(model);
    body
}

fn go_on() -> Value {
    user_blocks(vec![text("Continue.")])
}

#[test]
fn r40_r73_an_answer_is_last_only_for_models_that_continue_it() {
    let cut = || vec![user("q"), assistant("In Lisbon it is")];
    for model in ["claude-opus-4-5", "claude-haiku-4-5-20251001", "claude-3-7-sonnet", "minimax-m3", "my-deployment"] {
        assert_accepted(asked(model, cut()), CLAUDE);
    }
    for model in [
        "claude-opus-4-6",
        "claude-sonnet-4-6",
        "claude-opus-4-7",
        "claude-opus-5",
        "anthropic/claude-sonnet-5.5",
        "claude-haiku-5-5",
        "claude-fable-5",
        "claude-mythos-preview",
    ] {
        let expected = [cut(), vec![go_on()]].concat();
        assert_repair(&asked(model, cut()), CLAUDE, "role_order", expected);
    }
}

#[test]
fn r40_an_empty_answer_at_the_end_goes_and_the_one_before_it_is_the_last() {
    let empty = json!({ "role": "assistant", "content": "" });
    let body = asked("claude-opus-5", vec![user("q"), empty.clone()]);
    assert_repair(&body, CLAUDE, "role_order", vec![user("q")]);
    let body = asked("claude-opus-5", vec![user("q"), assistant("x"), empty]);
    assert_eq!(errors(&body, CLAUDE), ["role_order", "role_order"]);
    assert_eq!(repaired_body(&body, CLAUDE), json!([user("q"), assistant("x"), go_on()]));
}

#[test]
fn r41_what_the_service_continues_itself_stays_last() {
    let search = json!({ "type": "server_tool_use", "id": "s1", "name": "web_search", "input": {} });
    let summary = json!({ "type": "compaction", "content": "s", "encrypted_content": "c", "signature": "g" });
    let found = json!({ "type": "web_search_tool_result", "tool_use_id": "s1", "content": [] });
    for blocks in [vec![search.clone()], vec![search, found], vec![summary]] {
        let body = asked("claude-opus-5", vec![user("q"), assistant_blocks(blocks)]);
        assert!(!errors(&body, CLAUDE).contains(&"role_order"), "{body}");
    }
    // The service summarizes the list, and answers nothing.
    let mut body = asked("claude-opus-5", vec![user("q"), assistant("x")]);
    body["compaction"] = json!({ "type": "summarize" });
    assert_eq!(errors(&body, CLAUDE), [""; 0]);
}

#[test]
fn r40_thinking_stays_on_where_the_user_asks_to_go_on() {
    let mut body = asked("claude-opus-4-6", vec![user("q"), assistant("In Lisbon it is")]);
    body["thinking"] = json!({ "type": "enabled", "budget_tokens": 1024 });
    assert_eq!(errors(&body, CLAUDE), ["role_order"]);
    assert_eq!(repaired_body(&body, CLAUDE), json!([user("q"), assistant("In Lisbon it is"), go_on()]));
}

#[test]
fn r40_bedrock_lets_the_user_speak_last_where_the_body_names_the_model() {
    let body = |model: &str| {
        json!({ "modelId": model, "messages": [
            { "role": "user", "content": [{ "text": "q" }] },
            { "role": "assistant", "content": [{ "text": "In Lisbon it is" }] },
        ]})
    };
    assert_accepted(body("us.anthropic.claude-opus-4-5-20251101-v1:0"), Dialect::Bedrock);
    assert_accepted(body("us.amazon.nova-lite-v1:0"), Dialect::Bedrock);
    let refused = body("us.anthropic.claude-opus-4-6-v1");
    assert_eq!(errors(&refused, Dialect::Bedrock), ["role_order"]);
    let last = repaired_body(&refused, Dialect::Bedrock).as_array().and_then(|list| list.last().cloned());
    assert_eq!(last, Some(json!({ "role": "user", "content": [{ "text": "Continue." }] })));
}
