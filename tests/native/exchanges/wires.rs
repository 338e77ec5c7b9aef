//! What is compared of each wire, and the habits of the clients that were recorded.

#[path = "responses.rs"]
mod responses;

use rethread::message::Dialect;
use serde_json::{Map, Value};

/// What a client does to an answer, in words, and how it is undone.
pub type Habit = (&'static str, fn(Value) -> Value);

/// What the harness needs to know of a dialect.
pub struct Wire {
    pub dialect: Dialect,
    /// The body's list.
    pub list: &'static str,
    /// Members beside it that are part of the history.
    pub system: &'static [&'static str],
    /// As the data's README compares: argument strings parsed, cache markers left out.
    pub usual: fn(Value) -> Value,
    /// Whether every request comes back byte for byte.
    pub byte_for_byte: bool,
    /// Whether a call cannot be without an id.
    pub ids_needed: bool,
    /// Whether an item of the list is what a model answered.
    pub is_answer: fn(&Value) -> bool,
    /// What recorded clients do to an answer before they send it back. Each is undone on both sides, in this order, and
    /// only where the two still differ.
    pub habits: &'static [Habit],
    /// Steps that are no habit: the end of a file's name, the step, and why it is left out.
    pub left: &'static [(&'static str, usize, &'static str)],
}

/// A dialect joins by a line here.
pub const WIRES: [Wire; 6] = [
    responses::RESPONSES,
    Wire {
        dialect: Dialect::Bedrock,
        list: "messages",
        system: &["system"],
        usual,
        byte_for_byte: true,
        ids_needed: true,
        is_answer: |item| item["role"] == "assistant",
        habits: &[],
        left: &[
            ("model_thinking_part_anthropic_legacy.json", 1, "the recording replaced the dashes of the answer"),
            ("moonshotai_tool_call.json", 1, "the client put the reasoning into the text"),
        ],
    },
    Wire {
        dialect: Dialect::Gemini,
        list: "contents",
        system: &["systemInstruction"],
        usual: |list| list,
        byte_for_byte: true,
        ids_needed: false,
        is_answer: |item| item["role"] == "model",
        habits: &[
            ("ids made up or left out by the client", gemini_ids),
            ("and signatures in base64's other alphabet", gemini_alphabet),
            ("and thoughts left out by the client", gemini_thoughts),
            ("and signatures of texts left out by the client", gemini_signatures),
            ("and the server's tools rewritten by the client", gemini_server_tools),
        ],
        left: &[],
    },
    Wire {
        dialect: Dialect::OpenAiChat,
        list: "messages",
        system: &[],
        usual,
        byte_for_byte: false,
        ids_needed: true,
        is_answer: |item| item["role"] == "assistant",
        habits: &[
            ("members of the answer left out or added by the client", chat_members),
            ("and empty answers, which replay leaves out", without_empty),
            ("and reasoning put into the text by the client", chat_think),
        ],
        left: &[],
    },
    Wire {
        dialect: Dialect::Mistral,
        list: "messages",
        system: &[],
        usual,
        byte_for_byte: true,
        ids_needed: true,
        is_answer: |item| item["role"] == "assistant",
        habits: &[("members of the answer left out or added by the client", chat_members)],
        left: &[],
    },
    Wire {
        dialect: Dialect::Anthropic,
        list: "messages",
        system: &["system"],
        usual,
        byte_for_byte: false,
        ids_needed: true,
        is_answer: |item| item["role"] == "assistant",
        habits: &[
            ("members of the answer left out by the client", anthropic_members),
            ("and thinking left out by the client", anthropic_thinking),
            ("and a blank put in the place of an empty text by the client", anthropic_blank),
        ],
        left: &[],
    },
];

/// Changes every object in a value, the inner ones first.
fn each(value: &mut Value, change: &dyn Fn(&mut Map<String, Value>)) {
    match value {
        Value::Object(members) => {
            members.values_mut().for_each(|value| each(value, change));
            change(members);
        }
        Value::Array(items) => items.iter_mut().for_each(|value| each(value, change)),
        _ => {}
    }
}

fn changed(mut list: Value, change: &dyn Fn(&mut Map<String, Value>)) -> Value {
    each(&mut list, change);
    list
}

fn usual(list: Value) -> Value {
    changed(list, &|members| {
        members.remove("cache_control");
        if let Some(Value::String(text)) = members.get("arguments")
            && let Ok(arguments) = serde_json::from_str(text)
        {
            members.insert("arguments".into(), arguments);
        }
    })
}

fn gemini_ids(list: Value) -> Value {
    changed(list, &|part| {
        for name in ["functionCall", "functionResponse"] {
            if let Some(Value::Object(inner)) = part.get_mut(name) {
                inner.remove("id");
            }
        }
    })
}

fn gemini_alphabet(list: Value) -> Value {
    changed(list, &|part| {
        if let Some(Value::String(signature)) = part.get_mut("thoughtSignature") {
            *signature = signature.replace('-', "+").replace('_', "/");
        }
    })
}

/// A library that knew less of them than the API did.
fn gemini_server_tools(list: Value) -> Value {
    changed(list, &|part| {
        for name in ["toolCall", "toolResponse"] {
            if let Some(Value::Object(inner)) = part.get_mut(name) {
                keep(inner, &["id"]);
            }
        }
    })
}

fn gemini_signatures(list: Value) -> Value {
    changed(list, &|part| {
        if part.contains_key("text") {
            part.remove("thoughtSignature");
        }
    })
}

fn gemini_thoughts(list: Value) -> Value {
    changed(list, &|content| {
        if let Some(Value::Array(parts)) = content.get_mut("parts") {
            parts.retain(|part| part["thought"] != true);
        }
    })
}

fn keep(members: &mut Map<String, Value>, names: &[&str]) {
    members.retain(|name, _| names.contains(&name.as_str()));
}

/// What an answer says: text and calls, without what a server added and a client may send back or not.
fn chat_members(list: Value) -> Value {
    changed(list, &|message| {
        if message.get("role").is_none_or(|role| role != "assistant") {
            return;
        }
        keep(message, &["role", "content", "tool_calls"]);
        let empty =
            |content: &Value| content.is_null() || content == "" || content.as_array().is_some_and(Vec::is_empty);
        if message.get("content").is_some_and(empty) {
            message.remove("content");
        }
        for call in message.get_mut("tool_calls").and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(call) = call.as_object_mut() {
                keep(call, &["id", "type", "function"]);
                call.insert("type".into(), "function".into());
            }
        }
    })
}

/// Without answers that say nothing: replay leaves them out.
pub fn without_empty(mut list: Value) -> Value {
    let says_nothing = |(name, value): (&String, &Value)| name == "role" || value == "" || value.is_null();
    if let Some(messages) = list.as_array_mut() {
        messages
            .retain(|message| message["role"] != "assistant" || !message.as_object().unwrap().iter().all(says_nothing));
    }
    list
}

fn chat_think(list: Value) -> Value {
    changed(list, &|message| {
        if let Some(Value::String(text)) = message.get_mut("content")
            && let Some((_, rest)) = text.strip_prefix("<think>").and_then(|text| text.split_once("</think>"))
        {
            *text = rest.trim_start().to_owned();
        }
        if message.get("content").is_some_and(|content| content == "") {
            message.remove("content");
        }
    })
}

/// The members that make a block what it is.
fn anthropic_members(list: Value) -> Value {
    changed(list, &|block| match block.get("type").and_then(Value::as_str) {
        Some("text") => keep(block, &["type", "text"]),
        Some("tool_use") => keep(block, &["type", "id", "name", "input"]),
        _ => {}
    })
}

fn anthropic_thinking(list: Value) -> Value {
    changed(list, &|message| {
        if let Some(Value::Array(blocks)) = message.get_mut("content") {
            blocks.retain(|block| block["type"] != "thinking");
        }
    })
}

fn anthropic_blank(list: Value) -> Value {
    changed(list, &|message| {
        if let Some(Value::Array(blocks)) = message.get_mut("content") {
            blocks.retain(|block| block["text"].as_str().is_none_or(|text| !text.trim().is_empty()));
        }
    })
}
