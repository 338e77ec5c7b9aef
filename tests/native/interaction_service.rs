//! A stand-in for Google's service with interactions. It refuses what the real one is documented or reported to refuse:
//! an interaction that it does not have, a result without its call, a call without its result, a call that no signed
//! thought of its own precedes, and an input without a step. It keeps the steps of an interaction and nothing else:
//! instructions and tools hold for one request, and without tools the model calls none. With `store: false` it keeps
//! nothing, and the answer has no id.

mod background;
mod pauses;

use super::scripted_host::Answer;
use background::Works;
use pauses::Pauses;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What the model does with the steps that it sees: text, or calls as (id, tool).
pub type Script = Box<dyn FnMut(&[Value]) -> Result<String, Vec<(String, String)>>>;

pub struct InteractionService {
    /// The steps of each interaction and of those before it.
    pub interactions: BTreeMap<String, Vec<Value>>,
    /// Every accepted request.
    pub requests: Vec<Value>,
    /// The codes of the refusals.
    pub refused: Vec<String>,
    /// Why requests were refused that no service should get.
    pub invalid: Vec<String>,
    /// What requests are refused with, whatever they contain.
    pub refuses: Option<(u16, Value)>,
    /// What requests that continue an interaction are refused with.
    pub refuses_to_continue: Option<(u16, Value)>,
    /// Refuses an interaction that is missing as it did in January 2026.
    pub has_turn_tokens: bool,
    /// Answers without an id, as with `store: false`.
    pub without_ids: bool,
    /// The status of the next answer, if it is another.
    pub status: Option<&'static str>,
    /// How it pauses answers.
    pub pauses: Pauses,
    /// Answers in the background.
    pub works: Works,
    pub script: Script,
    /// Streams the answers.
    pub stream: bool,
    count: usize,
}

fn invalid_request(text: String) -> (u16, Value) {
    (400, json!({ "message": text, "code": "invalid_request" }))
}

impl InteractionService {
    pub fn new(script: impl FnMut(&[Value]) -> Result<String, Vec<(String, String)>> + 'static) -> Self {
        Self {
            interactions: BTreeMap::new(),
            requests: Vec::new(),
            refused: Vec::new(),
            invalid: Vec::new(),
            refuses: None,
            refuses_to_continue: None,
            has_turn_tokens: false,
            without_ids: false,
            status: None,
            pauses: Pauses::default(),
            works: Works::default(),
            script: Box::new(script),
            stream: false,
            count: 0,
        }
    }

    /// Adds an interaction of other programs.
    pub fn with_interaction(mut self, id: &str) -> Self {
        self.interactions.insert(id.into(), vec![user("Before"), said("Yes?")]);
        self
    }

    /// Answers a request.
    pub fn answer(&mut self, body: &Value) -> Answer {
        match self.accept(body) {
            Ok(interaction) if self.stream => Answer::Bytes(streamed(&interaction, self.pauses.without_end).concat()),
            Ok(interaction) => Answer::Status(200, Vec::new(), interaction.to_string()),
            Err((status, error)) => {
                self.refused.push(error["code"].as_str().map_or_else(|| error["code"].to_string(), Into::into));
                Answer::Status(status, Vec::new(), json!({ "error": error }).to_string())
            }
        }
    }

    /// Accepts a request and keeps its interaction, or says why not.
    pub fn accept(&mut self, body: &Value) -> Result<Value, (u16, Value)> {
        if let Some(refusal) = self.refuses.clone() {
            return Err(refusal);
        }
        if let Some(refusal) =
            self.refuses_to_continue.clone().filter(|_| body.get("previous_interaction_id").is_some())
        {
            return Err(refusal);
        }
        let mut steps = match body["previous_interaction_id"].as_str() {
            None => Vec::new(),
            Some(id) => self.interactions.get(id).cloned().ok_or_else(|| {
                if self.has_turn_tokens {
                    invalid_request(format!("Invalid turn token: {id}"))
                } else {
                    (404, json!({ "message": "Requested entity was not found.", "code": "not_found" }))
                }
            })?,
        };
        if let Some(rest) = self.rest_of_answer(body) {
            let parts = rest?;
            return Ok(self.give(steps, parts, body));
        }
        if body["previous_interaction_id"].as_str().is_some_and(|id| self.is_paused(id)) {
            let text = "only its token continues an interaction that is not finished".to_owned();
            self.invalid.push(text.clone());
            return Err(invalid_request(text));
        }
        let new = body["input"].as_array().filter(|input| !input.is_empty());
        let checked = match new {
            None => Err("Invalid input received.".into()),
            Some(new) => match new.iter().find(|step| says_something(step) && steps.contains(step)) {
                Some(doubled) => Err(format!("the interaction has this already: {doubled}")),
                None => {
                    steps.extend(new.iter().cloned());
                    self.check(&steps)
                }
            },
        };
        checked.inspect_err(|text| self.invalid.push(text.clone())).map_err(invalid_request)?;
        let scripted = self.scripted(&steps, body);
        let parts = self.in_parts(scripted);
        Ok(self.give(steps, parts, body))
    }

    /// Gives the first part of an answer, and keeps the interaction.
    fn give(&mut self, mut steps: Vec<Value>, mut parts: Vec<Vec<Value>>, body: &Value) -> Value {
        self.requests.push(body.clone());
        self.count += 1;
        let first = parts.remove(0);
        let mut interaction = self.respond(first, body);
        if !parts.is_empty() {
            self.pause(&mut interaction, parts, body);
        }
        steps.extend(interaction["steps"].as_array().unwrap().iter().cloned());
        if let Some(id) = interaction["id"].as_str().filter(|id| !id.is_empty()) {
            self.interactions.insert(id.to_owned(), steps);
        }
        interaction
    }

    /// Checks that calls and results are pairs, and that each round of calls is signed.
    fn check(&self, steps: &[Value]) -> Result<(), String> {
        let (mut open, mut is_signed): (Vec<&Value>, bool) = (Vec::new(), false);
        // Signatures of turns that are over are not required.
        let turn = steps.iter().rposition(|step| step["type"] == "user_input").unwrap_or(0);
        for (at, step) in steps.iter().enumerate() {
            match step["type"].as_str() {
                Some("thought") => {
                    let number = step["signature"].as_str().and_then(|signature| signature.strip_prefix("c2ln"));
                    is_signed = step["signature"] == "skip_thought_signature_validator"
                        || number.and_then(|number| number.parse().ok()).is_some_and(|number| self.count >= number);
                    if !is_signed {
                        return Err("Corrupted thought signature.".into());
                    }
                }
                Some("function_call") if is_signed => open.push(&step["id"]),
                Some("function_call") if at >= turn => return Err("Request contains an invalid argument.".into()),
                Some("function_call") => open.push(&step["id"]),
                Some("function_result") => {
                    let at = open.iter().position(|id| **id == step["call_id"]);
                    open.remove(at.ok_or(format!("Function call not found: {}", step["call_id"]))?);
                    is_signed = false;
                    if step["name"].as_str().is_none_or(str::is_empty) {
                        return Err("Invalid input received".into());
                    }
                }
                _ if !open.is_empty() => break,
                _ => is_signed = false,
            }
        }
        if open.is_empty() { Ok(()) } else { Err(format!("number of function response parts: {open:?} have none")) }
    }

    /// Returns the steps of the model's answer.
    fn scripted(&mut self, steps: &[Value], body: &Value) -> Vec<Value> {
        match (self.script)(steps) {
            Ok(text) => vec![said(&text)],
            Err(_) if body["tools"].as_array().is_none_or(Vec::is_empty) => vec![said("I have no tools.")],
            Err(calls) => {
                let call = |(id, name): &(String, String)| json!({ "type": "function_call", "id": id, "name": name, "arguments": {} });
                let thought = json!({ "type": "thought", "signature": format!("c2ln{}", self.count + 1) });
                std::iter::once(thought).chain(calls.iter().map(call)).collect()
            }
        }
    }

    fn respond(&mut self, scripted: Vec<Value>, body: &Value) -> Value {
        let calls = scripted.iter().any(|step| step["type"] == "function_call");
        let status = self.status.take().unwrap_or(if calls { "requires_action" } else { "completed" });
        let is_kept = body["store"] != false && !self.without_ids;
        let id = if is_kept { format!("v1_{}", self.count) } else { String::new() };
        json!({ "id": id, "status": status, "model": "m", "steps": scripted,
            "usage": { "total_input_tokens": 1, "total_output_tokens": 1, "total_tokens": 2 } })
    }

    /// The steps up to the newest answer that has an id.
    pub fn newest(&self) -> &[Value] {
        &self.interactions[&format!("v1_{}", self.count)]
    }

    /// The input of an accepted request, in words.
    pub fn sent(&self, request: usize) -> Vec<String> {
        words_of(self.requests[request]["input"].as_array().map_or(&[], Vec::as_slice))
    }

    /// What each accepted request continues.
    pub fn chain(&self) -> Vec<&str> {
        self.requests.iter().map(|body| body["previous_interaction_id"].as_str().unwrap_or("none")).collect()
    }
}

fn user(text: &str) -> Value {
    json!({ "type": "user_input", "content": [{ "type": "text", "text": text }] })
}

fn said(text: &str) -> Value {
    json!({ "type": "model_output", "content": [{ "type": "text", "text": text }] })
}

/// Results of two calls may be the same; what a user or the model says is told apart by the tests.
fn says_something(step: &Value) -> bool {
    step["type"] != "function_result"
}

/// Steps in words: `user: Hello`, `call c1`, `result c1: …`, without thoughts.
pub fn words_of(steps: &[Value]) -> Vec<String> {
    let texts = |step: &Value| -> String {
        let contents = step["content"].as_array().into_iter().flatten();
        contents.map(|content| content["text"].as_str().unwrap_or_default()).collect()
    };
    let words = |step: &Value| match step["type"].as_str() {
        Some("user_input") => Some(format!("user: {}", texts(step))),
        Some("model_output") => Some(format!("model: {}", texts(step))),
        Some("function_call") => Some(format!("call {}", step["id"].as_str().unwrap())),
        Some("function_result") => Some(format!(
            "result {}: {}",
            step["call_id"].as_str().unwrap(),
            step["result"].as_str().unwrap_or_default()
        )),
        Some("thought") => None,
        other => other.map(Into::into),
    };
    steps.iter().filter_map(words).collect()
}

/// Calls `look` until as many rounds were answered since the user's last words, then says how many.
pub fn rounds(count: usize) -> impl FnMut(&[Value]) -> Result<String, Vec<(String, String)>> {
    let (mut calls, mut answers) = (0, 0);
    move |steps| {
        let last = steps.iter().rposition(|step| step["type"] == "user_input").map_or(0, |at| at + 1);
        let done = steps[last..].iter().filter(|step| step["type"] == "function_result").count();
        if done >= count {
            answers += 1;
            return Ok(format!("answer {answers} after {done}"));
        }
        calls += 1;
        Err(vec![(format!("call_{calls}"), "look".into())])
    }
}

/// The deltas of a text.
fn halves(content: &Value) -> Vec<Value> {
    let text = content["text"].as_str().unwrap();
    let (first, second) = text.split_at(text.len() / 2);
    [first, second].map(|text| json!({ "type": "text", "text": text })).to_vec()
}

/// The events of a streamed interaction. `without_end`: a status update is the last one.
fn streamed(interaction: &Value, without_end: bool) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    let mut event = |data: Value| {
        let event = format!("event: {}\ndata: {data}\n\n", data["event_type"].as_str().unwrap());
        out.push(event.into_bytes());
    };
    let head = json!({ "id": interaction["id"], "status": "in_progress", "model": "m" });
    event(json!({ "event_type": "interaction.created", "interaction": head }));
    for (index, step) in interaction["steps"].as_array().unwrap().iter().enumerate() {
        let (start, deltas) = match step["type"].as_str() {
            Some("model_output") => (json!({ "type": "model_output" }), halves(&step["content"][0])),
            Some("thought") => {
                let signature = json!({ "type": "thought_signature", "signature": step["signature"] });
                (json!({ "type": "thought" }), vec![signature])
            }
            _ => (step.clone(), vec![json!({ "type": "arguments_delta", "arguments": "{}" })]),
        };
        event(json!({ "event_type": "step.start", "index": index, "step": start }));
        for delta in deltas {
            event(json!({ "event_type": "step.delta", "index": index, "delta": delta }));
        }
        event(json!({ "event_type": "step.stop", "index": index }));
    }
    let update = |status: &Value, token: Value| {
        json!({ "event_type": "interaction.status_update", "interaction_id": interaction["id"], "status": status,
            "continuation_token": token })
    };
    if let Some(token) = interaction.get("continuation_token") {
        // A checkpoint, of a stream that breaks off.
        event(update(&json!("in_progress"), json!("checkpoint")));
        if without_end {
            event(update(&interaction["status"], token.clone()));
            return out;
        }
    }
    let mut end = interaction.clone();
    end.as_object_mut().unwrap().remove("steps");
    event(json!({ "event_type": "interaction.completed", "interaction": end }));
    out
}
