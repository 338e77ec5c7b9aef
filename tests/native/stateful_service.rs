//! A stand-in for a service that keeps conversations and chains of responses, as OpenAI Responses does. It refuses what
//! the real one refuses: unknown ids, an item that it has already, an output without its call, and a call without its
//! output.

use super::scripted_host::Answer;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What the model does with the items that it sees: text, or calls as (id, tool).
pub type Script = Box<dyn FnMut(&[Value]) -> Result<String, Vec<(String, String)>>>;

pub struct Service {
    /// The items of each conversation.
    pub conversations: BTreeMap<String, Vec<Value>>,
    /// The items of each response's chain, up to its output.
    pub responses: BTreeMap<String, Vec<Value>>,
    /// Every accepted request.
    pub requests: Vec<Value>,
    pub script: Script,
    /// Items before those of the script in each output.
    pub extra_output: Vec<Value>,
    /// True if responses have no id.
    pub without_ids: bool,
    /// The conversation that responses name, whatever the request named.
    pub forced_conversation: Option<Value>,
    count: usize,
}

impl Service {
    pub fn new(script: impl FnMut(&[Value]) -> Result<String, Vec<(String, String)>> + 'static) -> Self {
        Self {
            conversations: BTreeMap::new(),
            responses: BTreeMap::new(),
            requests: Vec::new(),
            script: Box::new(script),
            extra_output: Vec::new(),
            without_ids: false,
            forced_conversation: None,
            count: 0,
        }
    }

    pub fn with_conversation(mut self, id: &str) -> Self {
        self.conversations.insert(id.into(), Vec::new());
        self
    }

    pub fn with_response(mut self, id: &str) -> Self {
        self.responses.insert(id.into(), Vec::new());
        self
    }

    /// Answers a request.
    pub fn answer(&mut self, body: &Value) -> Answer {
        match self.accept(body) {
            Ok(response) => Answer::Status(200, Vec::new(), response.to_string()),
            Err(message) => {
                let code = message.split(' ').next().filter(|code| *code == "previous_response_not_found");
                let error = json!({ "error": { "message": message, "code": code.unwrap_or("refused") } });
                Answer::Status(400, Vec::new(), error.to_string())
            }
        }
    }

    /// Accepts a request and stores it, or says why not.
    pub fn accept(&mut self, body: &Value) -> Result<Value, String> {
        let conversation = body["conversation"].as_str();
        let previous = body["previous_response_id"].as_str();
        let mut items = match (conversation, previous) {
            (Some(_), Some(_)) => return Err("conversation and previous_response_id exclude each other".into()),
            (Some(id), None) => self.conversations.get(id).cloned().ok_or("conversation not found")?,
            (None, Some(id)) => self.responses.get(id).cloned().ok_or(format!("previous_response_not_found {id}"))?,
            (None, None) => Vec::new(),
        };
        for item in body["input"].as_array().ok_or("no input")? {
            add(&mut items, item)?;
        }
        if let Some(open) = open_call(&items) {
            return Err(format!("No tool output found for function call {open}."));
        }
        self.requests.push(body.clone());
        self.count += 1;
        let scripted = match (self.script)(&items) {
            Ok(text) => vec![
                json!({ "type": "message", "id": format!("msg_{}", self.count), "role": "assistant", "status": "completed",
                "content": [{ "type": "output_text", "annotations": [], "text": text }] }),
            ],
            Err(calls) => calls
                .iter()
                .enumerate()
                .map(|(at, (id, name))| {
                    let mut call = json!({ "type": "function_call", "id": format!("fc_{}_{at}", self.count), "call_id": id,
                        "name": name, "arguments": "{}", "status": "completed" });
                    // The tools of this name are asynchronous: their calls may stay open.
                    if name.starts_with("later") {
                        call["async"] = json!(true);
                    }
                    call
                })
                .collect(),
        };
        let output: Vec<Value> = self.extra_output.iter().cloned().chain(scripted).collect();
        items.extend(output.iter().cloned());
        let id = format!("resp_{}", self.count);
        if let Some(conversation) = conversation {
            self.conversations.insert(conversation.into(), items.clone());
        }
        self.responses.insert(id.clone(), items);
        let named = match &self.forced_conversation {
            Some(forced) => forced.clone(),
            None => conversation.map_or(Value::Null, |id| json!({ "id": id })),
        };
        let id = if self.without_ids { Value::Null } else { json!(id) };
        Ok(json!({ "id": id, "object": "response", "model": "m-1", "status": "completed", "error": null,
            "conversation": named, "output": output, "usage": { "input_tokens": 1, "output_tokens": 1, "total_tokens": 2 } }))
    }

    /// The chain of the newest response.
    pub fn newest(&self) -> &[Value] {
        &self.responses[&format!("resp_{}", self.count)]
    }

    /// The input of an accepted request, in words.
    pub fn sent(&self, request: usize) -> Vec<String> {
        words_of(self.requests[request]["input"].as_array().unwrap())
    }
}

fn add(items: &mut Vec<Value>, item: &Value) -> Result<(), String> {
    let is_same = |one: &&Value| !item["id"].is_null() && one["id"] == item["id"];
    if items.iter().any(|one| is_same(&one)) {
        return Err(format!("Duplicate item found with id {}.", item["id"]));
    }
    if item["type"] == "function_call_output" {
        let calls =
            items.iter().filter(|one| one["type"] == "function_call" && one["call_id"] == item["call_id"]).count();
        let outputs =
            items.iter().filter(|one| one["type"] == item["type"] && one["call_id"] == item["call_id"]).count();
        if outputs >= calls {
            return Err(format!("No tool call found for function call output with call_id {}.", item["call_id"]));
        }
    }
    items.push(item.clone());
    Ok(())
}

fn open_call(items: &[Value]) -> Option<String> {
    let mut open: Vec<String> = Vec::new();
    for item in items {
        let id = item["call_id"].as_str().unwrap_or_default().to_owned();
        match item["type"].as_str() {
            Some("function_call") if item["async"] != true => open.push(id),
            Some("function_call_output") => open.retain(|one| *one != id),
            _ => {}
        }
    }
    open.pop()
}

/// Items in words, without their ids: `user: Hello`, `call c1`, `output c1: …`.
pub fn words_of(items: &[Value]) -> Vec<String> {
    let text = |value: &Value| match value {
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join(""),
        other => other.as_str().unwrap_or_default().to_owned(),
    };
    let words = |item: &Value| match item["type"].as_str() {
        Some("function_call") => format!("call {}", item["call_id"].as_str().unwrap()),
        Some("function_call_output") => {
            format!("output {}: {}", item["call_id"].as_str().unwrap(), text(&item["output"]))
        }
        Some("reasoning") => "reasoning".into(),
        Some(other) if item["role"].is_null() => other.into(),
        _ => format!("{}: {}", item["role"].as_str().unwrap(), text(&item["content"])),
    };
    items.iter().map(words).collect()
}

/// Calls `look` until as many rounds were answered since the user's last message, then says how many.
pub fn rounds(count: usize) -> impl FnMut(&[Value]) -> Result<String, Vec<(String, String)>> {
    let mut calls = 0;
    move |items| {
        let last = items.iter().rposition(|item| item["role"] == "user").map_or(0, |at| at + 1);
        let done = items[last..].iter().filter(|item| item["type"] == "function_call_output").count();
        if done >= count {
            return Ok(format!("done after {done}"));
        }
        calls += 1;
        Err(vec![(format!("call_{calls}"), "look".into())])
    }
}
