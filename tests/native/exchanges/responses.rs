//! OpenAI Responses: what recorded clients make of an answer's items before they send them back.

use super::{Wire, changed, usual};
use rethread::message::Dialect;
use serde_json::{Map, Value, json};

pub const RESPONSES: Wire = Wire {
    dialect: Dialect::OpenAiResponses,
    list: "input",
    system: &["instructions"],
    usual,
    byte_for_byte: true,
    ids_needed: true,
    is_answer,
    habits: &[
        ("members that say nothing left out by the client", |list| each_item(list, without_the_idle)),
        ("and states, scores and phases", |list| each_item(list, without_states)),
        ("and messages in the short form, empty ones added or not", short_messages),
        ("and ids and names of servers left out by the client", |list| each_item(list, without_ids)),
        ("and tool searches worded by the client", search_words),
        ("and what searches found left out by the client", without_findings),
        ("and outputs of the server's tools left out by the client", |list| each_item(list, without_outputs)),
        ("and reasoning left out by the client, or said as text", without_reasoning),
    ],
    left: &[
        ("test_openai_responses_stream.json", 1, "the client answers the item's id, and not the call's"),
        ("test_openai_responses_thinking_with_modified_history.json", 2, "the client put other words into the answer"),
    ],
};

fn is_answer(item: &Value) -> bool {
    let kind = item["type"].as_str().unwrap_or("message");
    match kind {
        "message" => item["role"] == "assistant",
        "tool_search_output" => item["execution"] == "server",
        _ => kind == "reasoning" || kind.ends_with("_call"),
    }
}

fn each_item(mut list: Value, change: fn(&mut Map<String, Value>)) -> Value {
    list.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut).for_each(change);
    list
}

fn without_the_idle(item: &mut Map<String, Value>) {
    let mut whole = changed(Value::from(std::mem::take(item)), &|members| {
        members.retain(|_, value| !value.is_null() && *value != json!([]));
    });
    *item = std::mem::take(whole.as_object_mut().unwrap());
}

fn without_states(item: &mut Map<String, Value>) {
    item.remove("status");
    item.remove("phase");
    for part in item.get_mut("content").and_then(Value::as_array_mut).into_iter().flatten() {
        let part = part.as_object_mut().unwrap();
        part.remove("logprobs");
        part.remove("annotations");
    }
}

/// The model's messages as role and text; one after the other as one, and none where it is empty.
fn short_messages(list: Value) -> Value {
    let mut short: Vec<Value> = Vec::new();
    for item in list.as_array().unwrap() {
        if item["role"] != "assistant" {
            short.push(item.clone());
            continue;
        }
        let text = match &item["content"] {
            Value::String(text) => text.clone(),
            content => content.as_array().unwrap().iter().map(|part| part["text"].as_str().unwrap()).collect(),
        };
        if !text.is_empty() {
            short.push(json!({"role": "assistant", "content": text}));
        }
    }
    short.into()
}

fn without_ids(item: &mut Map<String, Value>) {
    item.remove("id");
    item.remove("namespace");
    item.remove("caller");
}

fn search_words(list: Value) -> Value {
    each_item(list, |item| {
        if item.get("type").is_some_and(|kind| kind.as_str().unwrap().starts_with("tool_search")) {
            item.retain(|name, _| name == "type" || name == "execution");
        }
    })
}

fn without_findings(mut list: Value) -> Value {
    list.as_array_mut().unwrap().retain(|item| item["type"] != "tool_search_output");
    list
}

fn without_outputs(item: &mut Map<String, Value>) {
    if item.get("type").is_some_and(|kind| kind == "code_interpreter_call") {
        item.remove("outputs");
    }
}

fn without_reasoning(list: Value) -> Value {
    let mut rest = short_messages(list);
    let items = rest.as_array_mut().unwrap();
    items.retain(|item| {
        let thought = item["content"].as_str().is_some_and(|text| text.starts_with("<think>"));
        item["type"] != "reasoning" && !thought
    });
    rest
}
