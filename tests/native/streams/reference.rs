//! A second, simple accumulation of a recorded stream, over `serde_json`, to compare with.

use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// What a stream comes to.
#[derive(Default, Debug)]
pub struct Reference {
    pub text: String,
    /// Id, name, arguments.
    pub calls: Vec<(String, String, String)>,
    pub terminal: Option<String>,
    pub usage: Option<(u64, u64)>,
    pub error: Option<String>,
    /// Anthropic's blocks, the items of OpenAI Responses, Mistral's chunks.
    pub blocks: Vec<Value>,
    pub stopped: bool,
    pub ids: Vec<String>,
}

impl Reference {
    /// A chunk of content: one of the kind before it goes on.
    fn chunk(&mut self, part: &Value) {
        let last = self.blocks.last_mut().filter(|last| last["type"] == part["type"]);
        match (part["type"].as_str(), last) {
            (Some("text"), _) if text_of(&part["text"]).is_none() => {}
            (Some("text"), Some(last)) => {
                last["text"] = json!(last["text"].as_str().unwrap().to_owned() + part["text"].as_str().unwrap());
            }
            (Some("thinking"), Some(last)) => {
                let words = |part: &Value| -> String {
                    let chunks = part["thinking"].as_array().into_iter().flatten();
                    part["thinking"]
                        .as_str()
                        .into_iter()
                        .chain(chunks.filter_map(|chunk| chunk["text"].as_str()))
                        .collect()
                };
                last["thinking"] = json!([{"type": "text", "text": words(last) + &words(part)}]);
                for (key, value) in part.as_object().unwrap().iter().filter(|(key, _)| *key != "thinking") {
                    last[key] = value.clone();
                }
            }
            _ => self.blocks.push(part.clone()),
        }
    }
}

/// The data of each event.
pub fn data_lines(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    let data = |line: &str| line.strip_prefix("data:").map(|data| data.trim().to_owned());
    text.split(['\r', '\n']).filter_map(data).filter(|data| !data.is_empty()).collect()
}

fn text_of(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| !text.is_empty())
}

pub fn chat(lines: &[String]) -> Reference {
    let mut found = Reference::default();
    let mut indexes: Vec<Option<u64>> = Vec::new();
    for line in lines.iter().take_while(|line| *line != "[DONE]") {
        let chunk: Value = serde_json::from_str(line).unwrap();
        if let Some(id) = text_of(&chunk["id"]) {
            found.ids.push(id.to_owned());
        }
        if let Some(message) = chunk["error"]["message"].as_str() {
            found.error = Some(message.to_owned());
        }
        let usage = if chunk["usage"].is_object() { &chunk["usage"] } else { &chunk["x_groq"]["usage"] };
        if let Some(input) = usage["prompt_tokens"].as_u64() {
            found.usage = Some((input, usage["completion_tokens"].as_u64().unwrap_or(0)));
        }
        let choice = &chunk["choices"][0];
        if let Some(reason) = text_of(&choice["finish_reason"]) {
            found.terminal = Some(reason.to_owned());
        }
        match &choice["delta"]["content"] {
            Value::String(text) => {
                found.text += text;
                found.chunk(&json!({"type": "text", "text": text}));
            }
            Value::Array(parts) => {
                parts.iter().filter_map(|part| part["text"].as_str()).for_each(|text| found.text += text);
                parts.iter().for_each(|part| found.chunk(part));
            }
            _ => {}
        }
        for entry in choice["delta"]["tool_calls"].as_array().into_iter().flatten() {
            let (id, index) = (text_of(&entry["id"]), entry["index"].as_u64());
            let name = text_of(&entry["function"]["name"]);
            let known = indexes.iter().rposition(|own| index.is_some() && *own == index);
            let place = match known {
                Some(place) if id.is_none_or(|id| found.calls[place].0 == id) => place,
                None if id.is_none() && name.is_none() && !found.calls.is_empty() => found.calls.len() - 1,
                _ => {
                    indexes.push(index);
                    found.calls.push((id.unwrap_or("").to_owned(), String::new(), String::new()));
                    found.calls.len() - 1
                }
            };
            let call = &mut found.calls[place];
            if call.1.is_empty() {
                call.1 = name.unwrap_or("").to_owned();
            }
            call.2 += entry["function"]["arguments"].as_str().unwrap_or("");
        }
    }
    found
}

#[expect(clippy::too_many_lines, reason = "one scenario, read from top to bottom")]
pub fn anthropic(lines: &[String]) -> Reference {
    let mut found = Reference::default();
    let mut pieces: Vec<String> = Vec::new();
    let mut usage = Map::new();
    for line in lines {
        let event: Value = serde_json::from_str(line).unwrap();
        let at = usize::try_from(event["index"].as_u64().unwrap_or(0)).unwrap();
        let counts = if event["usage"].is_object() { &event["usage"] } else { &event["message"]["usage"] };
        let counts = counts.as_object().into_iter().flatten().filter(|(_, count)| !count.is_null());
        usage.extend(counts.map(|(name, count)| (name.clone(), count.clone())));
        match event["type"].as_str().unwrap() {
            "message_start" => found.ids.extend(text_of(&event["message"]["id"]).map(str::to_owned)),
            "content_block_start" => {
                assert_eq!(at, found.blocks.len());
                found.blocks.push(event["content_block"].clone());
                pieces.push(String::new());
            }
            "content_block_delta" => {
                let block = &mut found.blocks[at];
                for (name, value) in event["delta"].as_object().unwrap().iter().filter(|(name, _)| *name != "type") {
                    match (name.as_str(), value) {
                        ("partial_json", _) => pieces[at] += value.as_str().unwrap(),
                        ("citation", _) => {
                            if !block["citations"].is_array() {
                                block["citations"] = json!([]);
                            }
                            block["citations"].as_array_mut().unwrap().push(value.clone());
                        }
                        (_, Value::String(text)) if block[name].is_string() => {
                            block[name] = json!(block[name].as_str().unwrap().to_owned() + text);
                        }
                        (_, Value::Null) => {}
                        _ => block[name] = value.clone(),
                    }
                }
            }
            "message_delta" => {
                found.terminal = text_of(&event["delta"]["stop_reason"]).map(str::to_owned).or(found.terminal)
            }
            "message_stop" => found.stopped = true,
            "error" => found.error = event["error"]["message"].as_str().map(str::to_owned),
            _ => {}
        }
    }
    for (block, pieces) in found.blocks.iter_mut().zip(pieces) {
        if let Ok(input) = serde_json::from_str(&pieces) {
            block["input"] = input;
        }
        let word = |name: &str| block[name].as_str().unwrap_or("").to_owned();
        match block["type"].as_str() {
            Some("text") => found.text += &word("text"),
            Some("tool_use") => {
                let arguments = if pieces.trim().is_empty() { "{}".to_owned() } else { pieces };
                found.calls.push((word("id"), word("name"), arguments));
            }
            _ => {}
        }
    }
    let count = |name: &str| usage.get(name).and_then(Value::as_u64).unwrap_or(0);
    if usage.contains_key("output_tokens") {
        let input = count("input_tokens") + count("cache_read_input_tokens") + count("cache_creation_input_tokens");
        found.usage = Some((input, count("output_tokens")));
    }
    found
}

pub fn responses(lines: &[String]) -> Reference {
    let mut found = Reference::default();
    let mut items: BTreeMap<u64, Value> = BTreeMap::new();
    for line in lines.iter().take_while(|line| *line != "[DONE]") {
        let event: Value = serde_json::from_str(line).unwrap();
        let response = &event["response"];
        match event["type"].as_str().unwrap() {
            "response.created" => found.ids.extend(text_of(&response["id"]).map(str::to_owned)),
            "response.output_item.done" => {
                items.insert(event["output_index"].as_u64().unwrap(), event["item"].clone());
            }
            "response.completed" | "response.incomplete" => {
                let reason = text_of(&response["incomplete_details"]["reason"]).or(text_of(&response["status"]));
                found.terminal = reason.map(str::to_owned);
                let count = |name: &str| response["usage"][name].as_u64();
                found.usage = count("input_tokens").zip(count("output_tokens"));
                found.blocks = response["output"].as_array().unwrap().clone();
            }
            "error" => {
                found.error = found.error.or(event["error"]["message"].as_str().map(str::to_owned));
                break;
            }
            _ => {}
        }
    }
    if found.blocks.len() < items.len() {
        found.blocks = items.into_values().collect();
    }
    for item in &found.blocks {
        let word = |name: &str| item[name].as_str().unwrap().to_owned();
        match item["type"].as_str().unwrap() {
            "message" => {
                let parts = item["content"].as_array().unwrap().iter();
                parts.filter_map(|part| part["text"].as_str()).for_each(|text| found.text += text);
            }
            "function_call" => found.calls.push((word("call_id"), word("name"), word("arguments"))),
            "custom_tool_call" => found.calls.push((word("call_id"), word("name"), word("input"))),
            _ => {}
        }
    }
    found
}
