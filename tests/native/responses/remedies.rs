//! What is left out of a refused body, and which place the finding names (R74): the item that the error is about, and
//! the first of several.

use super::OWN;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use rethread::provider::{Healed, RepairOptions, heal, leave_out_refused};
use serde_json::{Value, json};

fn reasoning(id: &str, content: Value) -> Value {
    json!({ "type": "reasoning", "id": id, "summary": [], "encrypted_content": content })
}

fn said(id: &str) -> Value {
    json!({ "type": "message", "id": id, "role": "assistant", "status": "completed",
        "content": [{ "type": "output_text", "text": id, "annotations": [] }] })
}

fn asked(text: &str) -> Value {
    json!({ "role": "user", "content": text })
}

fn call(id: &str, call_id: &str) -> Value {
    json!({ "type": "function_call", "id": id, "call_id": call_id, "name": "look", "arguments": "{}" })
}

fn output(call_id: &str, text: &str) -> Value {
    json!({ "type": "function_call_output", "call_id": call_id, "output": text })
}

fn body_of(items: &[Value]) -> Value {
    json!({ "model": "gpt-6.2-sol", "input": items })
}

fn error(message: &str) -> String {
    json!({ "error": { "message": message, "type": "invalid_request_error" } }).to_string()
}

fn healed(body: &Value, message: &str) -> Healed {
    let answer = error(message);
    let healed = heal(body.to_string().as_bytes(), OWN, answer.as_bytes(), &RepairOptions::default());
    healed.unwrap_or_else(|| panic!("{message} is not healed in {body:#}"))
}

fn input(healed: &Healed) -> Vec<Value> {
    let body: Value = serde_json::from_slice(&healed.body).unwrap();
    body["input"].as_array().unwrap().clone()
}

fn path(healed: &Healed) -> Option<&str> {
    healed.report[0].path.as_deref()
}

fn contents(items: &[Value]) -> Vec<&str> {
    items.iter().filter_map(|item| item["encrypted_content"].as_str()).collect()
}

/// Four answers with reasoning, of which the second has none that is encrypted.
fn thoughtful() -> Value {
    body_of(&[
        asked("One"),
        reasoning("rs_1", json!("gAAAone")),
        said("msg_1"),
        asked("Two"),
        reasoning("rs_2", Value::Null),
        said("msg_2"),
        asked("Three"),
        reasoning("rs_3", json!("gBBBthree")),
        said("msg_3"),
        asked("Four"),
        reasoning("rs_4", json!("gBBBfour")),
        said("msg_4"),
        asked("Five"),
    ])
}

#[test]
fn r74_the_encrypted_content_that_the_error_names_is_left_out_and_the_first_is_the_place() {
    for (message, left, place) in [
        // By the item.
        ("The encrypted content for item rs_3 could not be verified.", vec!["gAAAone", "gBBBfour"], "/input/7"),
        // By the begin of the content, which several may have.
        ("The encrypted content gBBB...DQ== could not be verified.", vec!["gAAAone"], "/input/7"),
        ("The encrypted content gAAA...DQ== could not be verified.", vec!["gBBBthree", "gBBBfour"], "/input/1"),
        // By nothing that the body has.
        ("The encrypted content gZZZ...DQ== could not be verified.", vec![], "/input/1"),
        ("invalid_encrypted_content", vec![], "/input/1"),
    ] {
        let healed = healed(&thoughtful(), message);
        let items = input(&healed);
        assert_eq!((contents(&items), path(&healed)), (left, Some(place)), "{message}");
        // What is not encrypted stays, with the id of what follows it.
        assert!(items.iter().any(|item| item["id"] == "rs_2") && items.iter().any(|item| item["id"] == "msg_2"));
        let is_left_out = |number: usize| !items.iter().any(|item| item["id"] == format!("rs_{number}").as_str());
        for number in 1..=4 {
            let has_id = items.iter().any(|item| item["id"] == format!("msg_{number}").as_str());
            assert_eq!(has_id, !is_left_out(number), "{message} {number}");
        }
        // The next request leaves out the same, and names the same place.
        let again =
            leave_out_refused(thoughtful().to_string().as_bytes(), OWN, &healed.refused, &RepairOptions::default());
        let (again, report) = again.unwrap();
        assert_eq!((again, report[0].path.as_deref()), (healed.body.clone(), Some(place)), "{message}");
        assert_eq!(healed.refused.len(), (1..=4).filter(|number| is_left_out(*number)).count(), "{message}");
    }
}

#[test]
fn r74_a_compaction_that_is_named_takes_no_reasoning_that_is_not() {
    let compaction = json!({ "type": "compaction", "id": "cmp_1", "encrypted_content": "gCCCsummary" });
    let body =
        body_of(&[compaction.clone(), asked("One"), reasoning("rs_1", json!("gAAAone")), said("msg_1"), asked("Two")]);
    let healed = healed(&body, "The encrypted content gCCC...DQ== could not be verified.");
    let items = input(&healed);
    assert_eq!((contents(&items), path(&healed)), (vec!["gCCCsummary"], Some("/input/2")));
}

#[test]
fn r74_reasoning_without_encrypted_content_is_known_by_its_id() {
    let message = "Item 'rs_2' of type 'reasoning' was provided without its required following item.";
    let healed = healed(&thoughtful(), message);
    assert_eq!((contents(&input(&healed)).len(), path(&healed)), (3, Some("/input/4")));
    let other = body_of(&[asked("One"), reasoning("rs_9", Value::Null), said("msg_9"), asked("Two")]);
    let refused = |body: &Value| {
        leave_out_refused(body.to_string().as_bytes(), OWN, &healed.refused, &RepairOptions::default()).is_some()
    };
    assert!(refused(&thoughtful()) && !refused(&other));
}

#[test]
fn r74_what_follows_the_answer_after_refused_reasoning_keeps_its_id() {
    let body = body_of(&[
        asked("One"),
        reasoning("rs_1", json!("gAAAone")),
        said("msg_1"),
        call("fc_1", "call_1"),
        output("call_1", "r"),
        said("msg_2"),
        asked("Two"),
    ]);
    let items = input(&healed(&body, "The encrypted content gAAA...DQ== could not be verified."));
    let ids: Vec<_> = items.iter().map(|item| item["id"].as_str()).collect();
    assert_eq!(ids, [None, None, None, None, Some("msg_2"), None]);
}

#[test]
fn r74_an_id_that_the_error_names_is_removed_and_no_other() {
    let body = body_of(&[asked("One"), said("msg_1"), asked("Two"), said("msg_2"), asked("Three")]);
    for message in [
        "Item 'msg_2' of type 'message' was provided without its required 'reasoning' item: 'rs_2'.",
        "Invalid 'input[3].id': 'call_1'. Expected an ID that begins with 'msg'.",
    ] {
        let healed = healed(&body, message);
        let ids: Vec<_> = input(&healed).iter().map(|item| item["id"].as_str().map(str::to_owned)).collect();
        assert_eq!(ids, [None, Some("msg_1".to_owned()), None, None, None], "{message}");
        assert_eq!(path(&healed), Some("/input/3/id"), "{message}");
    }
    // Of two, the first is the place.
    let twice = body_of(&[asked("One"), said("msg_2"), asked("Two"), said("msg_2"), asked("Three")]);
    let found =
        healed(&twice, "Item 'msg_2' of type 'message' was provided without its required 'reasoning' item: 'rs_2'.");
    assert_eq!(path(&found), Some("/input/1/id"));
    // A reference is nothing but its id.
    let reference = body_of(&[json!({ "type": "item_reference", "id": "msg_2" }), asked("Three")]);
    let answer = error("Item 'msg_2' of type 'message' was provided without its required 'reasoning' item: 'rs_2'.");
    let found = heal(reference.to_string().as_bytes(), OWN, answer.as_bytes(), &RepairOptions::default());
    assert!(found.is_none(), "{found:?}");
}

#[test]
fn r74_of_an_item_that_is_sent_three_times_the_first_stays_and_the_second_is_the_place() {
    let body = body_of(&[said("msg_1"), asked("One"), said("msg_1"), said("msg_2"), said("msg_1"), asked("Two")]);
    let healed =
        healed(&body, "Duplicate item found with id msg_1. Remove duplicate items from your input and try again.");
    let ids: Vec<_> = input(&healed).iter().filter_map(|item| item["id"].as_str().map(str::to_owned)).collect();
    assert_eq!((ids, path(&healed)), (vec!["msg_1".to_owned(), "msg_2".to_owned()], Some("/input/2")));
}

#[test]
fn r74_outputs_of_a_call_that_nobody_has_are_left_out_and_the_first_is_the_place() {
    // The service has the calls.
    let body = |items: &[Value]| {
        let mut body = body_of(items);
        body["previous_response_id"] = json!("resp_1");
        body
    };
    let message = "No tool call found for function call output with call_id call_9.";
    let outputs = body(&[output("call_1", "kept"), output("call_9", "one"), asked("Go"), output("call_9", "two")]);
    let found = healed(&outputs, message);
    assert_eq!((input(&found), path(&found)), (vec![output("call_1", "kept"), asked("Go")], Some("/input/1")));
    // The call is there: the rules know the place of its output.
    let paired = body(&[call("fc_9", "call_9"), output("call_9", "one"), asked("Go")]);
    let found = heal(paired.to_string().as_bytes(), OWN, error(message).as_bytes(), &RepairOptions::default());
    assert!(found.is_none(), "{found:?}");
}

#[test]
fn r74_a_call_that_only_the_service_has_is_closed_at_the_begin() {
    let message = "No tool output found for function call call_9.";
    for member in ["previous_response_id", "conversation"] {
        let mut body = body_of(&[asked("Go")]);
        body[member] = json!("id_1");
        let found = healed(&body, message);
        let items = input(&found);
        assert_eq!((items.len(), &items[1], path(&found)), (2, &asked("Go"), Some("/input/0")), "{member}");
        assert_eq!(
            (items[0]["type"].as_str(), items[0]["call_id"].as_str()),
            (Some("function_call_output"), Some("call_9"))
        );
        // A text has no place for it.
        body["input"] = json!("Go");
        let found = heal(body.to_string().as_bytes(), OWN, error(message).as_bytes(), &RepairOptions::default());
        assert!(found.is_none(), "{found:?}");
    }
    // Nobody has it.
    let body = body_of(&[asked("Go")]);
    let found = heal(body.to_string().as_bytes(), OWN, error(message).as_bytes(), &RepairOptions::default());
    assert!(found.is_none(), "{found:?}");
    let spaced = r#"{"model":"gpt-6.2-sol", "input": [ {"role":"user","content":"Go"} ]}"#;
    let found = heal(spaced.as_bytes(), OWN, error(message).as_bytes(), &RepairOptions::default());
    assert!(found.is_none(), "{found:?}");
    // A call that is not asynchronous: the rules close it.
    let found = healed(&body_of(&[asked("Go"), call("fc_9", "call_9"), asked("And?")]), message);
    assert_eq!((input(&found).len(), path(&found)), (4, None));
    // An asynchronous call is made one that has its output.
    let mut open = call("fc_9", "call_9");
    open["async"] = json!(true);
    let mut body = body_of(&[asked("Go"), open, asked("And?")]);
    body["previous_response_id"] = json!("resp_1");
    let found = healed(&body, message);
    let items = input(&found);
    assert_eq!(path(&found), Some("/input/1/async"));
    assert!(items[1].get("async").is_none() && items[2]["call_id"] == "call_9", "{items:#?}");
    assert_eq!(items.iter().filter(|item| item["type"] == "function_call_output").count(), 1, "{items:#?}");
}

/// A body of which the service has a call without an output.
fn continued() -> Value {
    let mut body = body_of(&[asked("Go")]);
    body["conversation"] = json!("conv_1");
    body
}

/// Returns what a finding quotes of an answer, which is healed.
fn quoted(answer: &str) -> String {
    let healed = heal(continued().to_string().as_bytes(), OWN, answer.as_bytes(), &RepairOptions::default());
    let message = healed.unwrap_or_else(|| panic!("{answer} is not healed")).report[0].message.clone();
    let (_, rest) = message.split_once("(\"").unwrap();
    rest.split_once("\");").unwrap().0.to_owned()
}

#[test]
fn r74_a_finding_quotes_the_sentence_of_the_error_alone() {
    const SENTENCE: &str = "No tool output found for function call call_9.";
    let long = "the gateway has asked every one of its upstream servers in turn and this is what one said";
    for (answer, expected) in [
        (error(&format!("Bad request. {SENTENCE} Try again.")), SENTENCE.to_owned()),
        // An address may have a key.
        (format!("https://gw.example/secret-key {SENTENCE}"), SENTENCE.to_owned()),
        (format!("{long} {SENTENCE}"), SENTENCE.to_owned()),
        (format!("{long} ({SENTENCE}"), format!("({SENTENCE}")),
        ("No tool output found for function call call_9\nrequest 7".to_owned(), SENTENCE.replace('.', "")),
        (
            r#"upstream: {"message":"No tool output found for function call call_9","type":"x"}"#.to_owned(),
            "\"message\":\"No tool output found for function call call_9".to_owned(),
        ),
        // What precedes the sentence has its first words, too.
        (format!("{long}: no tool output found for it; {SENTENCE}"), SENTENCE.to_owned()),
        (
            error("No tool output found\n  for function \u{7}call call_9."),
            "No tool output found for function call call_9.".to_owned(),
        ),
    ] {
        assert_eq!(quoted(&answer), expected, "{answer}");
    }
    let apart = json!({ "error": { "message": "No tool output found for ", "call": "function call call_9" } });
    assert!(quoted(&apart.to_string()).contains("No tool output found for"));
}

#[test]
fn r74_a_finding_quotes_the_code_where_the_answer_has_no_sentence() {
    let answer = json!({ "error": { "message": "no", "code": "invalid_encrypted_content" } }).to_string();
    let healed = heal(thoughtful().to_string().as_bytes(), OWN, answer.as_bytes(), &RepairOptions::default()).unwrap();
    assert!(healed.report[0].message.contains("(\"invalid_encrypted_content\")"), "{}", healed.report[0].message);
}

#[test]
fn r74_the_place_of_an_error_is_the_first_path_and_no_part_of_a_word() {
    let body = body_of(&[asked("One"), said("msg_1"), asked("Two"), said("msg_2"), asked("Three")]);
    for before in ["", "Invalid input: ", "(max_input[1].id) ", "(my.input[1].id) "] {
        let message = format!("{before}Invalid 'input[3].id': 'call_1'. Expected an ID that begins with 'msg'.");
        assert_eq!(path(&healed(&body, &message)), Some("/input/3/id"), "{message}");
    }
}

#[test]
fn r74_an_error_that_names_nothing_of_the_body_heals_nothing() {
    // White space shows that the body was not written anew.
    let spaced = r#"{"model":"gpt-6.2-sol", "conversation":"conv_1", "input": [ {"role":"user","content":"Go"} , {"role":"user","content":"On"} ]}"#;
    for message in [
        "No tool output found for function call .",
        "Duplicate item found with id msg_7.",
        "Duplicate item found with id .",
        "No tool call found for function call output with call_id call_7.",
        "Item 'rs_7' of type 'reasoning' was provided without its required following item.",
        "Item 'msg_7' of type 'message' was provided without its required 'reasoning' item: 'rs_7'.",
        "Invalid 'input[7].id': 'call_1'. Expected an ID that begins with 'msg'.",
        "The encrypted content gAAA...DQ== could not be verified.",
        "invalid_encrypted_content_of_another_kind",
    ] {
        for body in [spaced, "[]", r#""No""#, "no JSON"] {
            let found = heal(body.as_bytes(), OWN, error(message).as_bytes(), &RepairOptions::default());
            assert!(found.is_none(), "{message} {body}: {found:?}");
        }
    }
    let body = body_of(&[said("msg_1"), asked("One"), said("msg_1")]);
    assert_eq!(path(&healed(&body, "Duplicate item found with id : msg_1.")), Some("/input/2"));
}

#[test]
fn r74_a_code_is_a_whole_word() {
    for code in ["invalid_encrypted_content_x", "not_invalid_encrypted_content"] {
        let answer = json!({ "error": { "message": "no", "code": code } }).to_string();
        let found = heal(thoughtful().to_string().as_bytes(), OWN, answer.as_bytes(), &RepairOptions::default());
        assert!(found.is_none(), "{found:?}");
    }
}

#[test]
fn r74_findings_of_the_rules_name_no_place_where_the_cure_has_moved_it() {
    // A call without a result, and an item that is sent twice.
    let body = body_of(&[said("msg_1"), said("msg_1"), call("fc_1", "call_1"), asked("Go")]);
    let healed = healed(&body, "Duplicate item found with id msg_1.");
    let (first, others) = healed.report.split_first().unwrap();
    assert_eq!(first.path.as_deref(), Some("/input/1"));
    assert!(!others.is_empty() && others.iter().all(|finding| finding.path.is_none()), "{others:?}");
    // What has nothing of what was refused is not changed, whatever its own errors are.
    let marks = [String::from("a mark")];
    assert!(leave_out_refused(body.to_string().as_bytes(), OWN, &marks, &RepairOptions::default()).is_none());
}
