//! What a scripted model says as an interaction of Gemini, whole and streamed.

use crate::scripted_model::{Say, halves};
use serde_json::{Value, json};

fn steps(say: &Say) -> Vec<Value> {
    let mut steps = Vec::new();
    if !say.text.is_empty() {
        steps.push(json!({ "type": "model_output", "content": [{ "type": "text", "text": say.text }] }));
    }
    steps.extend(say.calls.iter().map(|(id, name, arguments)| {
        // Arguments that are cut off have no form in a whole answer.
        let arguments: Value = serde_json::from_str(arguments).unwrap_or_else(|_| json!(arguments));
        json!({ "type": "function_call", "id": id, "name": name, "arguments": arguments })
    }));
    steps
}

/// The interaction, with or without its steps.
fn described(say: &Say, steps: Option<Vec<Value>>) -> Value {
    let usual = if say.calls.is_empty() { "completed" } else { "requires_action" };
    let status = match say.finish.as_deref() {
        None => usual,
        Some("length" | "max_tokens") => "incomplete",
        Some(status) => status,
    };
    let usage = json!({ "total_input_tokens": 10, "total_output_tokens": 5, "total_tokens": 15 });
    let mut body = json!({ "id": "v1_1", "status": status, "model": "m-1", "usage": usage });
    if let Some(steps) = steps {
        body["steps"] = steps.into();
    }
    body
}

pub fn interaction(say: &Say) -> Value {
    described(say, Some(steps(say)))
}

pub fn stream(say: &Say) -> Vec<u8> {
    let mut out = String::new();
    let mut event = |data: Value| {
        out.push_str(&format!("event: {}\ndata: {data}\n\n", data["event_type"].as_str().unwrap()));
    };
    let created = json!({ "id": "v1_1", "status": "in_progress", "model": "m-1" });
    event(json!({ "event_type": "interaction.created", "interaction": created }));
    let mut index = 0;
    let mut step = |start: Value, deltas: [Value; 2]| {
        event(json!({ "event_type": "step.start", "index": index, "step": start }));
        for delta in deltas {
            event(json!({ "event_type": "step.delta", "index": index, "delta": delta }));
        }
        event(json!({ "event_type": "step.stop", "index": index }));
        index += 1;
    };
    if !say.text.is_empty() {
        let deltas = halves(&say.text).map(|piece| json!({ "type": "text", "text": piece }));
        step(json!({ "type": "model_output" }), deltas);
    }
    for (id, name, arguments) in &say.calls {
        let deltas = halves(arguments).map(|piece| json!({ "type": "arguments_delta", "arguments": piece }));
        // Recorded streams begin a call so (2026-05-15).
        let start = json!({ "id": id, "signature": "", "type": "function_call", "name": name, "arguments": {} });
        step(start, deltas);
    }
    event(json!({ "event_type": "interaction.completed", "interaction": described(say, None) }));
    out.into_bytes()
}
