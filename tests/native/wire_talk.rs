//! A conversation in short, written in every dialect and read back from every dialect.
//!
//! Steps are parted by `;`. `s text` is a system message, `u text` the user's, `a text` the assistant's, `c x y` calls
//! by those ids, `r x=1 y=2` results in one wire message where the dialect has such. `+` joins what one answer holds:
//! `a well + c x`. Read back, every text, call and result is a step of its own, and calls go by their number.

use rethread::message::Dialect;
use serde_json::{Value, json};

enum Step {
    System(String),
    User(String),
    Model(Vec<Bit>),
    Results(Vec<(String, String)>),
}

enum Bit {
    Text(String),
    Call(String),
}

fn parse(talk: &str) -> Vec<Step> {
    let one = |step: &str| {
        let (kind, rest) = step.split_once(' ').unwrap_or((step, ""));
        match kind {
            "s" => Step::System(rest.into()),
            "u" => Step::User(rest.into()),
            "r" => Step::Results(
                rest.split(' ').map(|pair| pair.split_once('=').unwrap()).map(|(a, b)| (a.into(), b.into())).collect(),
            ),
            _ => Step::Model(
                step.split(" + ")
                    .flat_map(|bit| match bit.split_once(' ') {
                        Some(("c", ids)) => ids.split(' ').map(|id| Bit::Call(id.into())).collect(),
                        Some(("a", text)) => vec![Bit::Text(text.into())],
                        _ => panic!("{bit}"),
                    })
                    .collect(),
            ),
        }
    };
    talk.split(';').map(str::trim).filter(|step| !step.is_empty()).map(one).collect()
}

/// The id that stands for a short one: Mistral's have nine characters.
pub fn id_of(dialect: Dialect, id: &str) -> String {
    let has_nine = matches!(dialect, Dialect::Mistral | Dialect::MistralConversations);
    if has_nine && id.len() < 9 { format!("{id:0<9}") } else { id.to_owned() }
}

/// A body of that conversation.
#[expect(clippy::too_many_lines, reason = "one scenario, read from top to bottom")]
pub fn write(dialect: Dialect, talk: &str) -> Value {
    let mut list: Vec<Value> = Vec::new();
    let mut body = match dialect {
        Dialect::Anthropic => json!({ "model": "m", "max_tokens": 9 }),
        Dialect::Gemini => json!({}),
        // Bedrock requires the definition of a tool that is called.
        Dialect::Bedrock if talk.contains("c ") => json!({ "toolConfig": { "tools": [
            { "toolSpec": { "name": "f", "inputSchema": { "json": { "type": "object" } } } }
        ] } }),
        Dialect::Bedrock => json!({}),
        _ => json!({ "model": "m" }),
    };
    let id = |id: &str| id_of(dialect, id);
    for (at, step) in parse(talk).into_iter().enumerate() {
        match (dialect, step) {
            (Dialect::Anthropic, Step::System(text)) if at == 0 => body["system"] = json!(text),
            (Dialect::Gemini, Step::System(text)) => body["systemInstruction"] = json!({ "parts": [{ "text": text }] }),
            (Dialect::GeminiInteractions, Step::System(text)) => body["system_instruction"] = json!(text),
            (Dialect::Bedrock, Step::System(text)) if at == 0 => body["system"] = json!([{ "text": text }]),
            (Dialect::Bedrock, Step::System(text)) => list.push(json!({ "role": "system", "content": [{ "text": text }] })),
            (Dialect::MistralConversations, Step::System(text)) => body["instructions"] = json!(text),
            (_, Step::System(text)) => list.push(json!({ "role": "system", "content": text })),
            (Dialect::Gemini, Step::User(text)) => list.push(json!({ "role": "user", "parts": [{ "text": text }] })),
            (Dialect::Bedrock, Step::User(text)) => list.push(json!({ "role": "user", "content": [{ "text": text }] })),
            (Dialect::MistralConversations, Step::User(text)) => {
                list.push(json!({ "type": "message.input", "role": "user", "content": text }));
            }
            (Dialect::GeminiInteractions, Step::User(text)) => {
                list.push(json!({ "type": "user_input", "content": [{ "type": "text", "text": text }] }));
            }
            (_, Step::User(text)) => list.push(json!({ "role": "user", "content": text })),
            (Dialect::OpenAiChat | Dialect::Mistral, Step::Model(bits)) => {
                let (mut text, mut calls) = (Value::Null, Vec::new());
                for bit in bits {
                    match bit {
                        Bit::Text(words) => text = words.into(),
                        Bit::Call(own) => calls.push(json!({ "id": id(&own), "type": "function", "function": { "name": "f", "arguments": "{}" } })),
                    }
                }
                let mut message = json!({ "role": "assistant", "content": text });
                if !calls.is_empty() {
                    message["tool_calls"] = calls.into();
                }
                list.push(message);
            }
            (Dialect::OpenAiChat | Dialect::Mistral, Step::Results(results)) => list.extend(
                results.iter().map(|(own, text)| json!({ "role": "tool", "tool_call_id": id(own), "content": text })),
            ),
            (Dialect::Anthropic, Step::Model(bits)) => list.push(json!({ "role": "assistant", "content": bits.iter().map(|bit| match bit {
                Bit::Text(text) => json!({ "type": "text", "text": text }),
                Bit::Call(own) => json!({ "type": "tool_use", "id": own, "name": "f", "input": {} }),
            }).collect::<Vec<_>>() })),
            (Dialect::Anthropic, Step::Results(results)) => list.push(json!({ "role": "user", "content": results.iter()
                .map(|(own, text)| json!({ "type": "tool_result", "tool_use_id": own, "content": text })).collect::<Vec<_>>() })),
            (Dialect::Bedrock, Step::Model(bits)) => list.push(json!({ "role": "assistant", "content": bits.iter().map(|bit| match bit {
                Bit::Text(text) => json!({ "text": text }),
                Bit::Call(own) => json!({ "toolUse": { "toolUseId": own, "name": "f", "input": {} } }),
            }).collect::<Vec<_>>() })),
            (Dialect::Bedrock, Step::Results(results)) => list.push(json!({ "role": "user", "content": results.iter()
                .map(|(own, text)| json!({ "toolResult": { "toolUseId": own, "content": [{ "text": text }] } })).collect::<Vec<_>>() })),
            (Dialect::Gemini, Step::Model(bits)) => list.push(json!({ "role": "model", "parts": bits.iter().map(|bit| match bit {
                Bit::Text(text) => json!({ "text": text }),
                Bit::Call(own) => json!({ "functionCall": { "id": own, "name": "f", "args": {} } }),
            }).collect::<Vec<_>>() })),
            (Dialect::Gemini, Step::Results(results)) => list.push(json!({ "role": "user", "parts": results.iter()
                .map(|(own, text)| json!({ "functionResponse": { "id": own, "name": "f", "response": { "result": text } } })).collect::<Vec<_>>() })),
            (Dialect::MistralConversations, Step::Model(bits)) => list.extend(bits.iter().map(|bit| match bit {
                Bit::Text(text) => json!({ "type": "message.output", "role": "assistant", "content": text }),
                Bit::Call(own) => json!({ "type": "function.call", "tool_call_id": id(own), "name": "f", "arguments": "{}" }),
            })),
            (Dialect::MistralConversations, Step::Results(results)) => list.extend(results.iter()
                .map(|(own, text)| json!({ "type": "function.result", "tool_call_id": id(own), "result": text }))),
            (Dialect::GeminiInteractions, Step::Model(bits)) => list.extend(bits.iter().map(|bit| match bit {
                Bit::Text(text) => json!({ "type": "model_output", "content": [{ "type": "text", "text": text }] }),
                Bit::Call(own) => json!({ "type": "function_call", "id": own, "name": "f", "arguments": {} }),
            })),
            (Dialect::GeminiInteractions, Step::Results(results)) => list.extend(results.iter().map(|(own, text)| {
                json!({ "type": "function_result", "call_id": own, "name": "f", "result": text })
            })),
            (Dialect::OpenAiResponses, Step::Model(bits)) => list.extend(bits.iter().map(|bit| match bit {
                Bit::Text(text) => json!({ "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": text, "annotations": [] }] }),
                Bit::Call(own) => json!({ "type": "function_call", "call_id": own, "name": "f", "arguments": "{}" }),
            })),
            (Dialect::OpenAiResponses, Step::Results(results)) => list.extend(results.iter()
                .map(|(own, text)| json!({ "type": "function_call_output", "call_id": own, "output": text }))),
        }
    }
    body[list_name(dialect)] = list.into();
    body
}

pub fn list_name(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Gemini => "contents",
        Dialect::OpenAiResponses | Dialect::GeminiInteractions => "input",
        Dialect::MistralConversations => "inputs",
        _ => "messages",
    }
}

/// Reads steps off a body, calls by their number, results behind one another by the number of their call.
#[derive(Default)]
struct Read {
    steps: Vec<String>,
    /// Id and tool of each call, and whether it has a result.
    calls: Vec<(String, String, bool)>,
}

impl Read {
    fn say(&mut self, kind: &str, text: &str) {
        if !text.is_empty() {
            self.steps.push(format!("{kind} {text}"));
        }
    }

    fn call(&mut self, id: &Value, name: &Value) {
        self.calls.push((id.as_str().unwrap_or_default().into(), name.as_str().unwrap_or_default().into(), false));
        self.steps.push(format!("c {}", self.calls.len()));
    }

    /// The oldest open call of that id; where there are no ids, of that tool.
    fn result(&mut self, id: &Value, name: &Value, text: &str) {
        let id = id.as_str().unwrap_or_default();
        let place = if id.is_empty() {
            self.calls.iter().position(|(_, tool, done)| !done && name.as_str() == Some(tool))
        } else {
            self.calls.iter().position(|(own, _, done)| !done && own == id)
        };
        let place = place.unwrap_or_else(|| panic!("a result that answers no open call: {id:?} {name} {text}"));
        self.calls[place].2 = true;
        // Where there is no flag for a failure, its text says that it is one.
        let text = if text.contains("Interrupted: ") { "closed" } else { text };
        self.steps.push(format!("r {}={text}", place + 1));
    }
}

/// A result's text, whatever holds it.
pub fn words(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}

fn texts(content: &Value) -> Vec<String> {
    match content {
        Value::Array(parts) => {
            let text = |part: &Value| part["text"].as_str().or(part["refusal"].as_str()).map(str::to_owned);
            parts.iter().filter_map(text).collect()
        }
        other => vec![words(other)],
    }
}

/// The steps of a body, with results that follow one another in the order of their calls.
pub fn read(dialect: Dialect, body: &Value) -> String {
    let mut steps = raw(dialect, body);
    for run in steps.chunk_by_mut(|one, two| one.starts_with("r ") && two.starts_with("r ")) {
        run.sort();
    }
    steps.join("; ")
}

/// The steps of a body in its own order.
#[expect(clippy::too_many_lines, reason = "one scenario, read from top to bottom")]
pub fn raw(dialect: Dialect, body: &Value) -> Vec<String> {
    let mut read = Read::default();
    for system in ["system", "instructions", "system_instruction"].iter().filter_map(|name| body.get(name)) {
        texts(system).iter().for_each(|text| read.say("s", text));
    }
    texts(&body["systemInstruction"]["parts"]).iter().for_each(|text| read.say("s", text));
    if body[list_name(dialect)].is_string() {
        read.say("u", body["input"].as_str().unwrap());
    }
    for item in body[list_name(dialect)].as_array().into_iter().flatten() {
        let role = match item["role"].as_str().unwrap_or("") {
            "system" | "developer" => "s",
            "assistant" | "model" => "a",
            _ => "u",
        };
        match dialect {
            Dialect::OpenAiChat | Dialect::Mistral if item["role"] == "tool" => {
                read.result(&item["tool_call_id"], &Value::Null, &words(&item["content"]));
            }
            Dialect::OpenAiChat | Dialect::Mistral => {
                texts(&item["content"]).iter().for_each(|text| read.say(role, text));
                read.say(role, item["refusal"].as_str().unwrap_or(""));
                for call in item["tool_calls"].as_array().into_iter().flatten() {
                    read.call(&call["id"], &call["function"]["name"]);
                }
            }
            Dialect::Anthropic => match &item["content"] {
                Value::Array(blocks) => {
                    for block in blocks {
                        match block["type"].as_str() {
                            Some("tool_use") => read.call(&block["id"], &block["name"]),
                            Some("tool_result") => {
                                read.result(&block["tool_use_id"], &Value::Null, &words(&block["content"]));
                            }
                            _ => read.say(role, block["text"].as_str().unwrap_or("")),
                        }
                    }
                }
                other => read.say(role, other.as_str().unwrap_or("")),
            },
            Dialect::Bedrock => {
                for block in item["content"].as_array().into_iter().flatten() {
                    if let Some(call) = block.get("toolUse") {
                        read.call(&call["toolUseId"], &call["name"]);
                    } else if let Some(result) = block.get("toolResult") {
                        read.result(&result["toolUseId"], &Value::Null, &words(&result["content"]));
                    } else {
                        read.say(role, block["text"].as_str().unwrap_or(""));
                    }
                }
            }
            Dialect::Gemini => {
                for part in item["parts"].as_array().into_iter().flatten() {
                    if let Some(call) = part.get("functionCall") {
                        read.call(&call["id"], &call["name"]);
                    } else if let Some(answer) = part.get("functionResponse") {
                        let response = &answer["response"];
                        let text = ["result", "output", "error", "content"].iter().find_map(|key| response.get(key));
                        let text = text.map_or_else(
                            || response.to_string(),
                            |text| text.as_str().map_or_else(|| text.to_string(), str::to_owned),
                        );
                        read.result(&answer["id"], &answer["name"], &text);
                    } else if part["thought"] != true {
                        read.say(role, part["text"].as_str().unwrap_or(""));
                    }
                }
            }
            Dialect::MistralConversations => match item["type"].as_str() {
                Some("function.call") => read.call(&item["tool_call_id"], &item["name"]),
                Some("function.result") => read.result(&item["tool_call_id"], &Value::Null, &words(&item["result"])),
                _ => texts(&item["content"]).iter().for_each(|text| read.say(role, text)),
            },
            Dialect::GeminiInteractions => match item["type"].as_str() {
                Some("function_call") => read.call(&item["id"], &item["name"]),
                Some("function_result") => read.result(&item["call_id"], &Value::Null, &words(&item["result"])),
                Some("user_input") => texts(&item["content"]).iter().for_each(|text| read.say("u", text)),
                Some("model_output") => texts(&item["content"]).iter().for_each(|text| read.say("a", text)),
                _ => {}
            },
            Dialect::OpenAiResponses => match item["type"].as_str() {
                Some("function_call") => read.call(&item["call_id"], &item["name"]),
                Some("function_call_output") => read.result(&item["call_id"], &Value::Null, &words(&item["output"])),
                None | Some("message") => texts(&item["content"]).iter().for_each(|text| read.say(role, text)),
                _ => {}
            },
        }
    }
    read.steps
}
