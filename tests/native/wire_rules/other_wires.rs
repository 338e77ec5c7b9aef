//! The conformance cases of gemini and openai-responses.

use crate::*;

const GEMINI: Dialect = Dialect::Gemini;
const RESPONSES: Dialect = Dialect::OpenAiResponses;

fn asks(parts: Vec<Value>) -> Value {
    json!({ "role": "user", "parts": parts })
}
fn acts(parts: Vec<Value>) -> Value {
    json!({ "role": "model", "parts": parts })
}
fn say(text: &str) -> Value {
    json!({ "text": text })
}
fn fc(name: &str) -> Value {
    json!({ "functionCall": { "name": name, "args": {} } })
}
fn fr(name: &str, result: &str) -> Value {
    json!({ "functionResponse": { "name": name, "response": { "result": result } } })
}
fn failed(name: &str) -> Value {
    json!({ "functionResponse": { "name": name, "response": { "error": TEXT } } })
}
fn mends_gemini(given: Vec<Value>, code: &str, expected: Vec<Value>) {
    let body = json!({ "contents": given });
    let found = errors(&body, GEMINI);
    assert!(found.contains(&code), "{code} not in {found:?}");
    assert_eq!(mended(&body, GEMINI), Value::from(expected));
}

fn fcall(id: &str) -> Value {
    json!({ "type": "function_call", "call_id": id, "name": "f", "arguments": "{}" })
}
fn out(id: &str, text: &str) -> Value {
    json!({ "type": "function_call_output", "call_id": id, "output": text })
}
fn thinks() -> Value {
    json!({ "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e" })
}
fn mends_responses(given: Vec<Value>, code: &str, expected: Vec<Value>) {
    let body = json!({ "model": "m", "input": given });
    let found = errors(&body, RESPONSES);
    assert!(found.contains(&code), "{code} not in {found:?}");
    assert_eq!(mended(&body, RESPONSES), Value::from(expected));
}

#[test]
fn case03_to_11_gemini_pairs() {
    let q = || asks(vec![say("q")]);
    mends_gemini(
        vec![q(), acts(vec![fc("f")]), asks(vec![say("p")])],
        "dangling_call",
        vec![q(), acts(vec![fc("f")]), asks(vec![failed("f"), say("p")])],
    );
    mends_gemini(
        vec![q(), acts(vec![fc("f")])],
        "dangling_call",
        vec![q(), acts(vec![fc("f")]), asks(vec![failed("f")])],
    );
    mends_gemini(
        vec![q(), acts(vec![fc("f"), fc("g")]), asks(vec![fr("g", "2")])],
        "missing_parallel_result",
        vec![q(), acts(vec![fc("f"), fc("g")]), asks(vec![fr("g", "2"), failed("f")])],
    );
    mends_gemini(vec![q(), asks(vec![fr("f", "1")])], "orphan_result", vec![q()]);
    mends_gemini(
        vec![q(), acts(vec![fc("f")]), asks(vec![fr("f", "1"), fr("f", "1")])],
        "duplicate_result",
        vec![q(), acts(vec![fc("f")]), asks(vec![fr("f", "1")])],
    );
    mends_gemini(
        vec![q(), acts(vec![fc("f")]), asks(vec![say("p")]), asks(vec![fr("f", "1")])],
        "interposed_message",
        vec![q(), acts(vec![fc("f")]), asks(vec![fr("f", "1"), say("p")])],
    );
}

#[test]
fn case27_gemini_arguments_are_an_object() {
    let body = json!({ "contents": [asks(vec![say("q")]), acts(vec![json!({ "functionCall": { "name": "f", "args": [1] } })]), asks(vec![fr("f", "1")])] });
    assert_eq!(errors(&body, GEMINI), ["invalid_arguments"]);
    assert_eq!(mended(&body, GEMINI)[1]["parts"][0]["functionCall"]["args"], json!({ "value": [1] }));
}

#[test]
fn case32_and_33_gemini_names_are_filled_and_order_pairs() {
    let mut nameless = fr("f", "1");
    nameless["functionResponse"]["name"] = json!("");
    mends_gemini(
        vec![asks(vec![say("q")]), acts(vec![fc("f")]), asks(vec![nameless])],
        "malformed",
        vec![asks(vec![say("q")]), acts(vec![fc("f")]), asks(vec![fr("f", "1")])],
    );
    takes(
        json!({ "contents": [asks(vec![say("q")]), acts(vec![fc("f"), fc("f")]), asks(vec![fr("f", "1"), fr("f", "2")])] }),
        GEMINI,
    );
    takes(
        json!({ "contents": [asks(vec![say("q")]), acts(vec![fc("f")]), acts(vec![fc("g")]), asks(vec![fr("f", "1"), fr("g", "2"), say("p")])] }),
        GEMINI,
    );
}

#[test]
fn case38_and_39_gemini_3_signs_the_first_call_of_a_step() {
    let signed = |name: &str| json!({ "functionCall": { "name": name, "args": {} }, "thoughtSignature": "c2ln" });
    let body = json!({ "model": "gemini-3-pro", "contents": [asks(vec![say("q")]), acts(vec![signed("f"), fc("g")]), asks(vec![fr("f", "1"), fr("g", "2")]), acts(vec![signed("f")]), asks(vec![fr("f", "3")])] });
    takes(body.clone(), GEMINI);
    let mut bare = body;
    bare["contents"][3]["parts"][0] = fc("f");
    assert_eq!(errors(&bare, GEMINI), ["unsigned_thinking"]);
    assert_eq!(mended(&bare, GEMINI)[3]["parts"][0]["thoughtSignature"], "skip_thought_signature_validator");
    // The address names the model as a rule: then it is a warning.
    bare.as_object_mut().unwrap().remove("model");
    takes(bare, GEMINI);
}

#[test]
fn case40_a_signature_on_an_empty_text_stays() {
    takes(
        json!({ "contents": [asks(vec![say("q")]), acts(vec![say("x"), json!({ "text": "", "thoughtSignature": "c2ln" })]), asks(vec![say("p")])] }),
        GEMINI,
    );
}

#[test]
fn case41_and_54_gemini_begins_and_ends_with_a_user() {
    let go_on = || asks(vec![say("Continue.")]);
    mends_gemini(
        vec![acts(vec![fc("f")]), asks(vec![fr("f", "1")])],
        "role_order",
        vec![go_on(), acts(vec![fc("f")]), asks(vec![fr("f", "1")])],
    );
    mends_gemini(
        vec![asks(vec![say("q")]), acts(vec![say("x")])],
        "role_order",
        vec![asks(vec![say("q")]), acts(vec![say("x")]), go_on()],
    );
}

#[test]
fn case03_to_11_responses_pairs() {
    mends_responses(
        vec![user("q"), fcall("a"), user("p")],
        "dangling_call",
        vec![user("q"), fcall("a"), out("a", TEXT), user("p")],
    );
    mends_responses(
        vec![fcall("a"), fcall("b"), out("b", "2")],
        "missing_parallel_result",
        vec![fcall("a"), fcall("b"), out("b", "2"), out("a", TEXT)],
    );
    mends_responses(vec![user("q"), out("a", "1")], "orphan_result", vec![user("q")]);
    mends_responses(
        vec![user("q"), out("a", "1"), fcall("a")],
        "result_before_call",
        vec![user("q"), fcall("a"), out("a", "1")],
    );
    mends_responses(
        vec![fcall("a"), user("p"), out("a", "1")],
        "interposed_message",
        vec![fcall("a"), out("a", "1"), user("p")],
    );
    mends_responses(
        vec![fcall("a"), out("a", "1"), out("a", "2")],
        "duplicate_result",
        vec![fcall("a"), out("a", "1")],
    );
    mends_responses(
        vec![fcall("a"), fcall("a"), out("a", "1"), out("a", "2")],
        "duplicate_call_id",
        vec![fcall("a"), fcall("a_2"), out("a", "1"), out("a_2", "2")],
    );
    takes(json!({ "input": [fcall("a"), out("a", "1"), user("p"), fcall("a"), out("a", "2")] }), RESPONSES);
}

#[test]
fn case14_responses_text_between_call_and_output_stays() {
    let body =
        json!({ "model": "m", "input": [user("q"), fcall("a"), says("so"), fcall("b"), out("a", "1"), out("b", "2")] });
    takes(body.clone(), RESPONSES);
    // Recorded: DeepSeek alone refuses it.
    let mut body = body;
    body["model"] = json!("deepseek-chat");
    assert_eq!(errors(&body, RESPONSES), ["interposed_message"]);
    assert_eq!(
        mended(&body, RESPONSES),
        json!([user("q"), fcall("a"), out("a", "1"), says("so"), fcall("b"), out("b", "2")])
    );
}

#[test]
fn case43_and_44_reasoning_goes_with_what_follows_it() {
    takes(json!({ "input": [user("q"), thinks(), fcall("a"), fcall("b"), out("a", "1"), out("b", "2")] }), RESPONSES);
    mends_responses(vec![user("q"), thinks()], "orphan_reasoning", vec![user("q")]);
    mends_responses(vec![user("q"), thinks(), user("p")], "orphan_reasoning", vec![user("q"), user("p")]);
    mends_responses(
        vec![user("q"), thinks(), says("x"), user("p")],
        "orphan_reasoning",
        vec![user("q"), says("x"), user("p")],
    );
    // Shared by parallel calls: it stays with the one that stays.
    let omit = RepairOptions { dangling: rethread::provider::Dangling::Omit, dangling_text: None };
    let body = json!({ "input": [user("q"), thinks(), fcall("a"), fcall("b"), out("b", "2")] });
    assert_eq!(mended_with(&body, RESPONSES, &omit), json!([user("q"), thinks(), fcall("b"), out("b", "2")]));
}

#[test]
fn case46_a_call_id_is_no_item_id() {
    let mut given = fcall("call_1");
    given["id"] = json!("call_1");
    mends_responses(vec![given, out("call_1", "1")], "invalid_call_id", vec![fcall("call_1"), out("call_1", "1")]);
}

#[test]
fn case47_outputs_alone_are_taken_where_the_server_holds_the_calls() {
    takes(json!({ "previous_response_id": "resp_1", "input": [out("a", "1")] }), RESPONSES);
    takes(json!({ "input": "hello" }), RESPONSES);
}
