//! A provider that binds reasoning to what precedes it, and remembers that as JSON: it shares nothing with the hashes
//! of the core.

use crate::scripted_host::{CLAUDE, Say};
use rethread::message::Dialect;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// What preceded a piece of reasoning: the instructions, the tools, and the items.
#[derive(Clone, Debug, PartialEq)]
struct Prefix {
    instructions: Value,
    tools: Value,
    items: Vec<Value>,
}

/// A provider of `anthropic` or `openai-responses`.
pub struct BindingProvider {
    dialect: Dialect,
    made: BTreeMap<String, Prefix>,
    /// What each of its compactions stands for.
    compacted: BTreeMap<String, Prefix>,
}

/// Reasoning in a request: its signature, and what precedes it.
type Found = (String, Prefix);

impl BindingProvider {
    pub fn new(dialect: Dialect) -> Self {
        Self { dialect, made: BTreeMap::new(), compacted: BTreeMap::new() }
    }

    /// Returns the signatures in a body, in order; an error for the first that was made for something else.
    pub fn check(&self, body: &Value) -> Result<Vec<String>, String> {
        self.check_ids(body)?;
        self.check_compactions(body)?;
        let mut kept = Vec::new();
        for (signature, prefix) in self.reasoning_in(body) {
            let made = self.made.get(&signature).ok_or_else(|| format!("{signature} is nobody's"))?;
            if *made != prefix && Some(made) != self.original(&prefix).as_ref() {
                return Err(format!(
                    "Invalid `signature` in `thinking` block: {signature}\nmade {made:#?}\nsent {prefix:#?}"
                ));
            }
            kept.push(signature);
        }
        Ok(kept)
    }

    /// OpenAI refuses an item of an answer that comes with its id and without the reasoning before it.
    fn check_ids(&self, body: &Value) -> Result<(), String> {
        let mut has_reasoning = false;
        for item in body["input"].as_array().into_iter().flatten() {
            let kind = item["type"].as_str().unwrap_or("message");
            let is_of_answer = kind == "function_call" || kind == "message" && item["role"] == "assistant";
            has_reasoning = kind == "reasoning" || has_reasoning && is_of_answer;
            if is_of_answer && !has_reasoning && item.get("id").is_some() {
                return Err(format!("Item {item} was provided without its required 'reasoning' item"));
            }
        }
        Ok(())
    }

    /// Only a compaction that it made is accepted, and by Anthropic only as the first block.
    fn check_compactions(&self, body: &Value) -> Result<(), String> {
        for (at, item) in self.items(body).iter().enumerate() {
            let blocks = if self.dialect == CLAUDE { item["content"].as_array() } else { None };
            for (place, block) in blocks.map_or(std::slice::from_ref(item), Vec::as_slice).iter().enumerate() {
                if block["type"] != "compaction" {
                    continue;
                }
                self.compacted.get(seal_of(block)).ok_or("compaction_signature_invalid")?;
                if at + place > 0 && self.dialect == CLAUDE {
                    return Err("compaction_block_misplaced".into());
                }
            }
        }
        Ok(())
    }

    /// The prefix with what the compaction at its beginning stands for, if instructions and tools are the same.
    fn original(&self, prefix: &Prefix) -> Option<Prefix> {
        let first = prefix.items.first()?;
        let block = if self.dialect == CLAUDE { &first["content"][0] } else { first };
        let covered = self.compacted.get(seal_of(block))?;
        // `POST /responses/compact` takes no tools.
        let has_same_tools = covered.tools == prefix.tools || self.dialect != CLAUDE;
        let is_same = covered.instructions == prefix.instructions && has_same_tools;
        let items = [covered.items.as_slice(), &prefix.items[1..]].concat();
        is_same.then(|| Prefix { items, ..prefix.clone() })
    }

    /// What a compaction of this stands for: the words in it.
    pub fn compacted_text(&self, seal: &str) -> String {
        let covered = &self.compacted[seal];
        let text = Value::Array(covered.items.clone()).to_string();
        let inner = self.compacted.keys().filter(|other| *other != seal && text.contains(&format!("\"{other}\"")));
        let inner: Vec<String> = inner.map(|other| self.compacted_text(other)).collect();
        text + &inner.concat()
    }

    /// Answers a request for a compaction. It checks that as any other.
    pub fn compact(&mut self, body: &Value) -> String {
        let mut checked = body.clone();
        if let Some(made) = self.made.values().next().filter(|_| self.dialect != CLAUDE) {
            // `POST /responses/compact` takes no tools, and so does not compare them.
            checked["tools"] = made.tools.clone();
        }
        self.check(&checked).unwrap_or_else(|refusal| panic!("400: {refusal}"));
        let covered = Prefix { items: self.items(body), ..self.head(body) };
        let seal = format!("cmp-{}", self.compacted.len());
        if self.dialect == CLAUDE {
            assert_eq!(body["compaction"], json!({ "type": "summarize" }));
            assert!(
                body.get("context_management").is_none() && body.get("stream").is_none_or(|stream| stream == false)
            );
            self.compacted.insert(seal.clone(), covered);
            let block = json!({ "type": "compaction", "content": "They talked.", "encrypted_content": null, "signature": seal });
            return json!({ "id": "msg_c", "type": "message", "role": "assistant", "model": "m", "content": [block], "stop_reason": "compaction",
                "stop_sequence": null, "usage": { "input_tokens": 1, "output_tokens": 1 } })
            .to_string();
        }
        let known = ["model", "input", "instructions"];
        assert!(body.as_object().unwrap().keys().all(|key| known.contains(&key.as_str())), "{body:#}");
        self.compacted.insert(seal.clone(), covered);
        json!({ "id": "resp_c", "object": "response.compaction", "created_at": 1,
            "output": [{ "id": "cmp_1", "type": "compaction", "encrypted_content": seal }] })
        .to_string()
    }

    /// The signatures that were made so far, in order.
    pub fn made(&self) -> Vec<String> {
        let mut made: Vec<String> = self.made.keys().cloned().collect();
        made.sort_by_key(|signature| signature[4..].parse::<usize>().unwrap());
        made
    }

    /// Answers a request with reasoning; `between` adds reasoning after the first call.
    pub fn answer(&mut self, body: &Value, say: &Say, between: bool) -> String {
        let head = self.head(body);
        let mut before: Vec<Value> = self.items(body);
        let mut content = Vec::new();
        let reasoning = |this: &mut Self, content: &mut Vec<Value>, before: &[Value]| {
            let signature = format!("sig-{}", this.made.len());
            let items = [before, this.partial(content).as_slice()].concat();
            this.made.insert(signature.clone(), Prefix { items, ..head.clone() });
            content.push(if this.dialect == CLAUDE {
                json!({ "type": "thinking", "thinking": "", "signature": signature })
            } else {
                json!({ "type": "reasoning", "id": format!("rs_{signature}"), "summary": [], "encrypted_content": signature })
            });
        };
        reasoning(self, &mut content, &before);
        if !say.text.is_empty() {
            content.push(if self.dialect == CLAUDE {
                json!({ "type": "text", "text": say.text })
            } else {
                json!({ "type": "message", "id": format!("msg_{}", self.made.len()), "role": "assistant", "status": "completed",
                    "content": [{ "type": "output_text", "annotations": [], "text": say.text }] })
            });
        }
        for (at, (id, name, arguments)) in say.calls.iter().enumerate() {
            content.push(if self.dialect == CLAUDE {
                json!({ "type": "tool_use", "id": id, "name": name, "input": serde_json::from_str::<Value>(arguments).unwrap() })
            } else {
                json!({ "type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": name, "arguments": arguments, "status": "completed" })
            });
            if between && at + 1 < say.calls.len() {
                reasoning(self, &mut content, &before);
            }
        }
        before.clear();
        if self.dialect == CLAUDE {
            let reason = if say.calls.is_empty() { "end_turn" } else { "tool_use" };
            return json!({ "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": content, "stop_reason": reason,
                "stop_sequence": null, "usage": { "input_tokens": 1, "output_tokens": 1 } })
            .to_string();
        }
        json!({ "id": "resp_1", "object": "response", "model": "m", "status": "completed", "error": null, "output": content,
            "usage": { "input_tokens": 1, "output_tokens": 1, "total_tokens": 2 } })
        .to_string()
    }

    /// The items that an unfinished answer adds.
    fn partial(&self, content: &[Value]) -> Vec<Value> {
        match (self.dialect == CLAUDE, content) {
            (_, []) => Vec::new(),
            (true, _) => vec![json!({ "role": "assistant", "content": content })],
            (false, _) => content.to_vec(),
        }
    }

    fn head(&self, body: &Value) -> Prefix {
        let name = if self.dialect == CLAUDE { "system" } else { "instructions" };
        Prefix { instructions: compared(&body[name]), tools: compared(&body["tools"]), items: Vec::new() }
    }

    fn items(&self, body: &Value) -> Vec<Value> {
        let list = if self.dialect == CLAUDE { "messages" } else { "input" };
        body[list].as_array().unwrap().iter().map(compared).collect()
    }

    fn reasoning_in(&self, body: &Value) -> Vec<Found> {
        let (head, items) = (self.head(body), self.items(body));
        let mut found = Vec::new();
        for (at, item) in items.iter().enumerate() {
            let prefix = |items: Vec<Value>| Prefix { items, ..head.clone() };
            if self.dialect != CLAUDE {
                if let Some(signature) = item["encrypted_content"].as_str().filter(|_| item["type"] == "reasoning") {
                    found.push((signature.to_owned(), prefix(items[..at].to_vec())));
                }
                continue;
            }
            let blocks = item["content"].as_array().cloned().unwrap_or_default();
            for (place, block) in blocks.iter().enumerate() {
                if let Some(signature) = block["signature"].as_str().filter(|_| block["type"] == "thinking") {
                    let before = [&items[..at], self.partial(&blocks[..place]).as_slice()].concat();
                    found.push((signature.to_owned(), prefix(before)));
                }
            }
        }
        found
    }
}

/// The seal of a compaction.
fn seal_of(block: &Value) -> &str {
    let member = if block.get("signature").is_some() { "signature" } else { "encrypted_content" };
    block[member].as_str().unwrap_or_default()
}

/// A value as it is compared: without cache breakpoints, and a lone text block as the text.
fn compared(value: &Value) -> Value {
    match value {
        Value::Array(items) => match items.as_slice() {
            [only] if only["type"] == "text" => compared(&only["text"]),
            items => items.iter().map(compared).collect(),
        },
        Value::Object(members) => {
            let kept = members.iter().filter(|(key, _)| *key != "cache_control");
            Value::Object(kept.map(|(key, value)| (key.clone(), compared(value))).collect::<Map<_, _>>())
        }
        other => other.clone(),
    }
}
