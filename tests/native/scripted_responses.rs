//! What a scripted model says as OpenAI Responses, and how its bodies are read.

use crate::scripted_model::{Say, halves};
use serde_json::{Value, json};

fn items(say: &Say) -> Vec<Value> {
    let mut items = vec![json!({ "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "secret" })];
    if !say.text.is_empty() {
        let part = json!({ "type": "output_text", "annotations": [], "text": say.text });
        items.push(
            json!({ "type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part] }),
        );
    }
    for (at, (id, name, arguments)) in say.calls.iter().enumerate() {
        items.push(json!({ "type": "function_call", "id": format!("fc_{at}"), "call_id": id, "name": name, "arguments": arguments, "status": "completed" }));
        // The tools of this name are asynchronous.
        if let Some(item) = items.last_mut().filter(|_| name.starts_with("later")) {
            item["async"] = json!(true);
        }
    }
    items
}

/// The whole response.
pub fn response(say: &Say) -> Value {
    let cut = say.finish.as_ref().map(|reason| json!({ "reason": reason }));
    let status = if cut.is_some() { "incomplete" } else { "completed" };
    json!({ "id": "resp_1", "object": "response", "model": "m-1", "status": status, "incomplete_details": cut, "error": null, "output": items(say),
        "usage": { "input_tokens": 10, "output_tokens": 5, "total_tokens": 15 } })
}

pub fn stream(say: &Say) -> Vec<u8> {
    let mut out = String::new();
    let mut event = |data: Value| out.push_str(&format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap()));
    event(
        json!({ "type": "response.created", "response": { "id": "resp_1", "model": "m-1", "status": "in_progress", "output": [] } }),
    );
    for (at, item) in items(say).into_iter().enumerate() {
        let mut begun = item.clone();
        let kind = match item["type"].as_str().unwrap() {
            "message" => {
                begun["content"] = json!([]);
                Some(("response.output_text.delta", &item["content"][0]["text"]))
            }
            "function_call" => {
                begun["arguments"] = json!("");
                Some(("response.function_call_arguments.delta", &item["arguments"]))
            }
            _ => None,
        };
        event(json!({ "type": "response.output_item.added", "output_index": at, "item": begun }));
        if let Some((kind, text)) = kind {
            for piece in halves(text.as_str().unwrap()) {
                event(json!({ "type": kind, "output_index": at, "content_index": 0, "delta": piece }));
            }
        }
        event(json!({ "type": "response.output_item.done", "output_index": at, "item": item }));
    }
    let response = response(say);
    event(json!({ "type": format!("response.{}", response["status"].as_str().unwrap()), "response": response }));
    out.into_bytes()
}

/// The body without asynchronous calls, which may be open, and their outputs, which may come anywhere later.
pub fn without_async_calls(body: &Value) -> Value {
    let mut body = body.clone();
    let Some(items) = body["input"].as_array_mut() else { return body };
    let calls: Vec<Value> =
        items.iter().filter(|item| item["async"] == true).map(|item| item["call_id"].clone()).collect();
    items.retain(|item| !calls.contains(&item["call_id"]));
    body
}

/// The body as a chat is read: who speaks, which calls, which outputs. One that is a chat stays as it is.
pub fn as_chat(body: &Value) -> Value {
    if body["messages"].is_array() {
        return body.clone();
    }
    let mut messages: Vec<Value> = Vec::new();
    for item in body["input"].as_array().or(body["inputs"].as_array()).unwrap() {
        // Mistral's entries and Gemini's steps have other names.
        let id = item.get("tool_call_id").or(item.get("call_id")).unwrap_or(&item["id"]);
        match item["type"].as_str().unwrap_or("message") {
            "message" | "message.input" | "message.output" => messages.push(item.clone()),
            "user_input" => messages.push(json!({ "role": "user", "content": item["content"] })),
            "model_output" => messages.push(json!({ "role": "assistant", "content": item["content"] })),
            "function_call" | "function.call" => {
                let call = json!({ "id": id, "function": { "name": item["name"] } });
                match messages.last_mut().filter(|last| last["role"] == "assistant") {
                    Some(last) if last["tool_calls"].is_array() => {
                        last["tool_calls"].as_array_mut().unwrap().push(call)
                    }
                    Some(last) => last["tool_calls"] = json!([call]),
                    None => messages.push(json!({ "role": "assistant", "tool_calls": [call] })),
                }
            }
            "function_call_output" | "function.result" | "function_result" => {
                let said = item.get("result").unwrap_or(&item["output"]);
                messages.push(json!({ "role": "tool", "tool_call_id": id, "content": said }))
            }
            _ => {}
        }
    }
    json!({ "messages": messages })
}
