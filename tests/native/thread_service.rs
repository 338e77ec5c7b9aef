//! A stand-in for Anthropic's service with message threads. It refuses what the real one is documented to refuse: a
//! thread that it does not have, a response that was continued already or is just being continued, `system` and `tools`
//! in a request that continues, another model than the thread's, a result without its call, and a call without its
//! result. It keeps a response whole or not at all.

use super::scripted_host::Answer;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What the model does with the conversation that it sees: text, or calls as (id, tool).
pub type Script = Box<dyn FnMut(&[Value]) -> Result<String, Vec<(String, String)>>>;

/// What the service keeps under the id of a response.
#[derive(Clone)]
pub struct Thread {
    /// The conversation, up to the response.
    pub messages: Vec<Value>,
    /// `system`, `tools` and `model` of the request that created it.
    head: Value,
    is_continued: bool,
    /// How many requests are refused since another one still continues the response.
    pub in_flight: usize,
}

pub struct ThreadService {
    pub threads: BTreeMap<String, Thread>,
    /// Every accepted request.
    pub requests: Vec<Value>,
    /// The codes of the refusals.
    pub refused: Vec<&'static str>,
    /// What requests are refused with, whatever they contain.
    pub refuses: Option<(u16, &'static str)>,
    pub script: Script,
    /// Blocks before those of the script in each answer.
    pub extra_blocks: Vec<Value>,
    /// The `stop_reason` of the next answer, if it is another.
    pub stop_reason: Option<&'static str>,
    /// Streams the answers.
    pub stream: bool,
    count: usize,
}

/// A refusal: its status, code and sentence.
type Refusal = (u16, &'static str, String);

impl ThreadService {
    pub fn new(script: impl FnMut(&[Value]) -> Result<String, Vec<(String, String)>> + 'static) -> Self {
        Self {
            threads: BTreeMap::new(),
            requests: Vec::new(),
            refused: Vec::new(),
            refuses: None,
            script: Box::new(script),
            extra_blocks: Vec::new(),
            stop_reason: None,
            stream: false,
            count: 0,
        }
    }

    /// Adds a thread that other programs created.
    pub fn with_response(mut self, id: &str) -> Self {
        let messages = vec![user("Before"), json!({ "role": "assistant", "content": "Yes?" })];
        let head = json!({ "system": "Be elsewhere.", "tools": null, "model": "m" });
        self.threads.insert(id.into(), Thread { messages, head, is_continued: false, in_flight: 0 });
        self
    }

    /// Answers a request.
    pub fn answer(&mut self, body: &Value) -> Answer {
        match self.accept(body) {
            Ok(message) if self.stream => Answer::Bytes(streamed(&message)),
            Ok(message) => Answer::Status(200, Vec::new(), message.to_string()),
            Err((status, code, message)) => {
                self.refused.push(code);
                let kind = if status == 404 { "not_found_error" } else { "invalid_request_error" };
                let details = json!({ "error_code": code });
                let error = json!({ "type": kind, "message": message, "details": details });
                Answer::Status(status, Vec::new(), json!({ "type": "error", "error": error }).to_string())
            }
        }
    }

    /// Accepts a request and stores its conversation with the answer, or says why not.
    pub fn accept(&mut self, body: &Value) -> Result<Value, Refusal> {
        if let Some((status, code)) = self.refuses {
            return Err((status, code, code.replace('_', " ")));
        }
        let invalid = |text: &str| (400, "invalid_request", text.to_owned());
        let previous = match body["thread"]["type"].as_str() {
            None | Some("create") => None,
            Some("continue") => Some(body["thread"]["previous_message_id"].as_str().ok_or(invalid("no id"))?),
            Some(_) => return Err(invalid("thread.type: Input should be 'create' or 'continue'")),
        };
        let (mut messages, head) = match previous {
            None => (Vec::new(), json!({ "system": body["system"], "tools": body["tools"], "model": body["model"] })),
            Some(id) => self.continued(id, body)?,
        };
        let new = body["messages"].as_array().ok_or(invalid("messages: Field required"))?;
        if new.is_empty() && previous.is_none() {
            return Err(invalid("messages: at least one message is required"));
        }
        if let Some(repeated) = new.iter().find(|message| says_something(message) && messages.contains(message)) {
            return Err(invalid(&format!("the thread has this already: {repeated}")));
        }
        messages.extend(new.iter().cloned());
        check_pairs(&messages).map_err(|text| invalid(&text))?;
        if let Some(thread) = previous.and_then(|id| self.threads.get_mut(id)) {
            thread.is_continued = true;
        }
        self.requests.push(body.clone());
        let message = self.respond(&messages);
        messages.push(json!({ "role": "assistant", "content": message["content"] }));
        if body["thread"].is_object() {
            let thread = Thread { messages, head, is_continued: false, in_flight: 0 };
            self.threads.insert(message["id"].as_str().unwrap().to_owned(), thread);
        }
        Ok(message)
    }

    fn continued(&mut self, id: &str, body: &Value) -> Result<(Vec<Value>, Value), Refusal> {
        if let Some(repeated) = ["system", "tools"].into_iter().find(|member| !body[member].is_null()) {
            return Err((400, "invalid_request", format!("{repeated}: not with thread.type 'continue'")));
        }
        let missing = || (404, "thread_not_found", format!("no usable thread was found for {id}"));
        let thread = self.threads.get_mut(id).ok_or_else(missing)?;
        if thread.in_flight > 0 {
            thread.in_flight -= 1;
            return Err((400, "thread_continue_in_flight", "another request is still continuing it".into()));
        }
        if thread.is_continued {
            return Err((400, "thread_already_continued", "the response has already been continued".into()));
        }
        if thread.head["model"] != body["model"] {
            return Err((400, "thread_fingerprint_mismatch", "differing field(s): model".into()));
        }
        Ok((thread.messages.clone(), thread.head.clone()))
    }

    fn respond(&mut self, messages: &[Value]) -> Value {
        self.count += 1;
        let scripted = match (self.script)(messages) {
            Ok(text) => vec![json!({ "type": "text", "text": text })],
            Err(calls) => calls
                .iter()
                .map(|(id, name)| json!({ "type": "tool_use", "id": id, "name": name, "input": {} }))
                .collect(),
        };
        let calls = scripted.iter().any(|block| block["type"] == "tool_use");
        let stop_reason = self.stop_reason.take().unwrap_or(if calls { "tool_use" } else { "end_turn" });
        let content: Vec<Value> = self.extra_blocks.iter().cloned().chain(scripted).collect();
        json!({ "id": format!("msg_{}", self.count), "type": "message", "role": "assistant", "model": "m", "content": content,
            "stop_reason": stop_reason, "stop_sequence": null,
            "usage": { "input_tokens": 1, "output_tokens": 1 } })
    }

    /// The conversation of the newest response.
    pub fn newest(&self) -> &[Value] {
        &self.threads[&format!("msg_{}", self.count)].messages
    }

    /// The messages of an accepted request, in words.
    pub fn sent(&self, request: usize) -> Vec<String> {
        words_of(self.requests[request]["messages"].as_array().unwrap())
    }

    /// What each accepted request says of threads: `create`, or the id that it continues.
    pub fn chain(&self) -> Vec<&str> {
        let thread = |request: &'_ Value| match request["thread"]["type"].as_str() {
            Some("continue") => "previous_message_id",
            _ => "type",
        };
        self.requests.iter().map(|request| request["thread"][thread(request)].as_str().unwrap_or("none")).collect()
    }
}

pub fn user(text: &str) -> Value {
    json!({ "role": "user", "content": text })
}

/// Results of two calls may be the same; what a user or the model says is told apart by the tests.
fn says_something(message: &Value) -> bool {
    !blocks(message).any(|block| block["type"] == "tool_result")
}

fn blocks(message: &Value) -> impl Iterator<Item = &Value> {
    message["content"].as_array().into_iter().flatten()
}

/// "`tool_use` ids were found without `tool_result` blocks immediately after", and the reverse.
fn check_pairs(messages: &[Value]) -> Result<(), String> {
    let mut open: Vec<&Value> = Vec::new();
    for message in messages {
        let results: Vec<&Value> =
            blocks(message).filter(|block| block["type"] == "tool_result").map(|block| &block["tool_use_id"]).collect();
        for id in &results {
            let at = open.iter().position(|call| call == id).ok_or(format!("unexpected tool_use_id {id}"))?;
            open.remove(at);
        }
        // Consecutive messages of the user are one.
        if !open.is_empty() && (message["role"] == "assistant" || results.is_empty()) {
            return Err(format!("`tool_use` ids were found without `tool_result` blocks: {open:?}"));
        }
        open.extend(blocks(message).filter(|block| block["type"] == "tool_use").map(|block| &block["id"]));
    }
    if open.is_empty() { Ok(()) } else { Err(format!("`tool_use` ids without results: {open:?}")) }
}

/// Messages in words: `user: Hello`, `call c1`, `result c1: …`.
pub fn words_of(messages: &[Value]) -> Vec<String> {
    let mut words = Vec::new();
    for message in messages {
        let role = message["role"].as_str().unwrap();
        if let Some(text) = message["content"].as_str() {
            words.push(format!("{role}: {text}"));
        }
        for block in blocks(message) {
            let id = |member: &str| block[member].as_str().unwrap().to_owned();
            words.push(match block["type"].as_str() {
                Some("text") => format!("{role}: {}", id("text")),
                Some("tool_use") => format!("call {}", id("id")),
                Some("tool_result") => {
                    format!("result {}: {}", id("tool_use_id"), block["content"].as_str().unwrap_or_default())
                }
                other => other.unwrap().to_owned(),
            });
        }
    }
    words
}

/// Calls `look` until as many rounds were answered since the user's last words, then says how many.
pub fn rounds(count: usize) -> impl FnMut(&[Value]) -> Result<String, Vec<(String, String)>> {
    let (mut calls, mut answers) = (0, 0);
    move |messages| {
        let asks = |message: &Value| message["role"] == "user" && says_something(message);
        let last = messages.iter().rposition(asks).map_or(0, |at| at + 1);
        let done = messages[last..].iter().filter(|message| !says_something(message)).count();
        if done >= count {
            answers += 1;
            return Ok(format!("answer {answers} after {done}"));
        }
        calls += 1;
        Err(vec![(format!("toolu_{calls}"), "look".into())])
    }
}

/// The events of a streamed message.
pub fn streamed(message: &Value) -> Vec<u8> {
    let mut out = String::new();
    let mut event = |data: Value| out.push_str(&format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap()));
    let mut start = message.clone();
    start["content"] = json!([]);
    start["stop_reason"] = Value::Null;
    event(json!({ "type": "message_start", "message": start }));
    for (index, block) in message["content"].as_array().unwrap().iter().enumerate() {
        let (empty, delta) = match block["type"].as_str() {
            Some("text") => {
                (json!({ "type": "text", "text": "" }), json!({ "type": "text_delta", "text": block["text"] }))
            }
            Some("tool_use") => {
                let delta = json!({ "type": "input_json_delta", "partial_json": block["input"].to_string() });
                (json!({ "type": "tool_use", "id": block["id"], "name": block["name"], "input": {} }), delta)
            }
            _ => (block.clone(), Value::Null),
        };
        event(json!({ "type": "content_block_start", "index": index, "content_block": empty }));
        if !delta.is_null() {
            event(json!({ "type": "content_block_delta", "index": index, "delta": delta }));
        }
        event(json!({ "type": "content_block_stop", "index": index }));
    }
    let delta = json!({ "stop_reason": message["stop_reason"], "stop_sequence": null });
    event(json!({ "type": "message_delta", "delta": delta, "usage": { "output_tokens": 1 } }));
    event(json!({ "type": "message_stop" }));
    out.into_bytes()
}
