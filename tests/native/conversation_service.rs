//! A stand-in for Mistral's conversations, by its API reference of 2026-11. A request to its address begins a
//! conversation, and one to the address of a conversation appends to it. It refuses a member that the schema of the
//! request does not have, a beginning without a model, a conversation that it does not have, an entry that it has
//! already, a result without its call, and a call without its result.

use super::scripted_host::Answer;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The address of requests that begin a conversation.
pub const ADDRESS: &str = "https://model.example/v1";

/// What the model does with the entries that it sees: text, or calls as (id, tool).
pub type Script = Box<dyn FnMut(&[Value]) -> Result<String, Vec<(String, String)>>>;

/// A conversation that the service keeps.
#[derive(Clone)]
pub struct Kept {
    pub entries: Vec<Value>,
    /// The request that began it, without its entries.
    pub head: Value,
}

pub struct ConversationService {
    pub conversations: BTreeMap<String, Kept>,
    /// Every accepted request, with the conversation that its address names.
    pub requests: Vec<(Option<String>, Value)>,
    /// The statuses of the refusals.
    pub refused: Vec<u16>,
    pub script: Script,
    /// Streams the answers.
    pub stream: bool,
    count: usize,
    begun: usize,
}

/// A refusal: its status and its body.
type Refusal = (u16, Value);

const BOTH: [&str; 5] = ["inputs", "stream", "store", "handoff_execution", "completion_args"];
const BEGINNING: [&str; 9] =
    ["instructions", "tools", "guardrails", "name", "description", "metadata", "agent_id", "agent_version", "model"];

fn invalid(kind: &str, member: &str) -> Refusal {
    (422, json!({ "detail": [{ "type": kind, "loc": ["body", member], "msg": kind }] }))
}

fn unpaired() -> Refusal {
    (
        400,
        json!({ "object": "error", "message": "Not the same number of function calls and responses", "code": "3230" }),
    )
}

impl ConversationService {
    pub fn new(script: impl FnMut(&[Value]) -> Result<String, Vec<(String, String)>> + 'static) -> Self {
        Self {
            conversations: BTreeMap::new(),
            requests: Vec::new(),
            refused: Vec::new(),
            script: Box::new(script),
            stream: false,
            count: 0,
            begun: 0,
        }
    }

    /// Adds a conversation that other programs began.
    pub fn with_conversation(mut self, id: &str) -> Self {
        let entries = vec![
            json!({ "type": "message.input", "role": "user", "content": "Before" }),
            json!({ "type": "message.output", "id": "msg_0", "content": "Yes?" }),
        ];
        self.conversations.insert(id.into(), Kept { entries, head: json!({ "model": "m" }) });
        self
    }

    /// Answers a request.
    pub fn answer(&mut self, url: &str, body: &Value) -> Answer {
        match self.accept(url, body) {
            Ok(response) if self.stream => Answer::Bytes(streamed(&response)),
            Ok(response) => Answer::Status(200, Vec::new(), response.to_string()),
            Err((status, error)) => {
                self.refused.push(status);
                Answer::Status(status, Vec::new(), error.to_string())
            }
        }
    }

    /// Accepts a request, keeps its entries and those of the answer if it says so, or says why not.
    pub fn accept(&mut self, url: &str, body: &Value) -> Result<Value, Refusal> {
        let path = url.strip_prefix(ADDRESS).expect("another address");
        let named = path.strip_prefix('/').map(str::to_owned);
        let of_kind: &[&str] = if named.is_some() { &["tool_confirmations"] } else { &BEGINNING };
        let is_known = |key: &&String| BOTH.contains(&key.as_str()) || of_kind.contains(&key.as_str());
        if let Some(other) = body.as_object().unwrap().keys().find(|key| !is_known(key)) {
            return Err(invalid("extra_forbidden", other));
        }
        let mut kept = match &named {
            Some(id) => self.conversations.get(id).cloned().ok_or((404, json!({ "detail": "Not Found" })))?,
            None if body["model"].is_null() && body["agent_id"].is_null() => return Err(invalid("missing", "model")),
            None => Kept { entries: Vec::new(), head: head_of(body) },
        };
        for entry in body["inputs"].as_array().ok_or(invalid("missing", "inputs"))? {
            add(&mut kept.entries, entry)?;
        }
        if open_call(&kept.entries) {
            return Err(unpaired());
        }
        self.requests.push((named.clone(), body.clone()));
        self.count += 1;
        let outputs = self.outputs(&kept.entries);
        let is_kept = body["store"] != false;
        let id = named.unwrap_or_else(|| {
            self.begun += 1;
            format!("conv_{}", self.begun)
        });
        kept.entries.extend(outputs.iter().cloned());
        if is_kept {
            self.conversations.insert(id.clone(), kept);
        }
        let usage = json!({ "prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2 });
        Ok(json!({ "object": "conversation.response", "conversation_id": id, "outputs": outputs, "usage": usage }))
    }

    fn outputs(&mut self, entries: &[Value]) -> Vec<Value> {
        let count = self.count;
        match (self.script)(entries) {
            Ok(text) => {
                vec![json!({ "object": "entry", "type": "message.output", "id": format!("msg_{count}"), "model": "m-1",
                "role": "assistant", "content": text })]
            }
            Err(calls) => calls
                .iter()
                .enumerate()
                .map(|(at, (id, name))| {
                    json!({ "object": "entry", "type": "function.call", "id": format!("fc_{count}_{at}"),
                        "tool_call_id": id, "name": name, "arguments": "{}" })
                })
                .collect(),
        }
    }

    /// Where each accepted request went.
    pub fn places(&self) -> Vec<&str> {
        self.requests.iter().map(|(named, _)| named.as_deref().unwrap_or("begins")).collect()
    }

    /// The entries of an accepted request, in words.
    pub fn sent(&self, request: usize) -> Vec<String> {
        words_of(self.requests[request].1["inputs"].as_array().unwrap())
    }

    /// What the service has of a conversation, in words.
    pub fn words(&self, id: &str) -> Vec<String> {
        words_of(&self.conversations[id].entries)
    }

    /// The conversation that began last, in words.
    pub fn newest(&self) -> Vec<String> {
        self.words(&format!("conv_{}", self.begun))
    }
}

fn head_of(body: &Value) -> Value {
    let mut head = body.clone();
    head.as_object_mut().unwrap().remove("inputs");
    head
}

fn add(entries: &mut Vec<Value>, entry: &Value) -> Result<(), Refusal> {
    if !entry["id"].is_null() && entries.iter().any(|one| one["id"] == entry["id"]) {
        return Err((400, json!({ "object": "error", "message": format!("the entry {} is there", entry["id"]) })));
    }
    if entry["type"] == "function.result" {
        let with_id = |kind: &str| {
            entries.iter().filter(|one| one["type"] == kind && one["tool_call_id"] == entry["tool_call_id"]).count()
        };
        if with_id("function.result") >= with_id("function.call") {
            return Err(unpaired());
        }
    }
    entries.push(entry.clone());
    Ok(())
}

fn open_call(entries: &[Value]) -> bool {
    let count = |kind: &str| entries.iter().filter(|one| one["type"] == kind).count();
    count("function.call") != count("function.result")
}

/// The events of an answer.
fn streamed(response: &Value) -> Vec<u8> {
    let mut events =
        vec![json!({ "type": "conversation.response.started", "conversation_id": response["conversation_id"] })];
    for (at, output) in response["outputs"].as_array().unwrap().iter().enumerate() {
        let mut event = output.clone();
        event["type"] = json!(format!("{}.delta", output["type"].as_str().unwrap()));
        event["output_index"] = json!(at);
        events.push(event);
    }
    events.push(json!({ "type": "conversation.response.done", "usage": response["usage"] }));
    let text = |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
    events.iter().map(text).collect::<String>().into_bytes()
}

/// Entries in words, without their ids: `user: Hello`, `call c1`, `result c1: …`.
pub fn words_of(entries: &[Value]) -> Vec<String> {
    let text = |value: &Value| match value {
        Value::Array(chunks) => chunks.iter().filter_map(|chunk| chunk["text"].as_str()).collect::<Vec<_>>().join(""),
        other => other.as_str().unwrap_or_default().to_owned(),
    };
    let words = |entry: &Value| match entry["type"].as_str().unwrap_or("message.input") {
        "function.call" => format!("call {}", entry["tool_call_id"].as_str().unwrap()),
        "function.result" => format!("result {}: {}", entry["tool_call_id"].as_str().unwrap(), text(&entry["result"])),
        "message.output" => format!("assistant: {}", text(&entry["content"])),
        _ => format!("user: {}", text(&entry["content"])),
    };
    entries.iter().map(words).collect()
}

/// Calls `look` until as many rounds were answered since the user's last message, then says which answer it is.
pub fn rounds(count: usize) -> impl FnMut(&[Value]) -> Result<String, Vec<(String, String)>> {
    let (mut calls, mut answers) = (0, 0);
    move |entries| {
        let is_question = |entry: &Value| entry["type"] == "message.input";
        let last = entries.iter().rposition(is_question).map_or(0, |at| at + 1);
        if entries[last..].iter().filter(|entry| entry["type"] == "function.result").count() >= count {
            answers += 1;
            return Ok(format!("answer {answers}"));
        }
        calls += 1;
        Err(vec![(format!("call_{calls}"), "look".into())])
    }
}
