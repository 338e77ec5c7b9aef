//! Bodies in short, and what every repair must keep to. Shared by the targets that look at wire rules; each uses its part.
#![allow(dead_code)]

use rethread::finding::{Finding, Severity};
use rethread::message::Dialect;
use rethread::provider::{RepairOptions, repair, validate};
use serde_json::{Value, json};

/// The codes of the errors in a body.
pub fn errors(body: &Value, dialect: Dialect) -> Vec<&'static str> {
    codes(&validate(body.to_string().as_bytes(), dialect), Severity::Error)
}

pub fn codes(report: &[Finding], severity: Severity) -> Vec<&'static str> {
    report.iter().filter(|f| f.severity == severity).map(|f| f.code.as_str()).collect()
}

/// Repairs a body and checks what every repair must keep to; gives the messages.
pub fn mended(body: &Value, dialect: Dialect) -> Value {
    mended_with(body, dialect, &RepairOptions::default())
}

pub fn mended_with(body: &Value, dialect: Dialect, options: &RepairOptions) -> Value {
    let text = body.to_string();
    let (out, report) = repair(text.as_bytes(), dialect, options).unwrap();
    let out_text = String::from_utf8(out.clone()).unwrap();
    let left = validate(&out, dialect);
    assert!(codes(&left, Severity::Error).is_empty(), "still refused: {left:?}\n{text}\n{out_text}");
    assert_eq!(repair(&out, dialect, options).unwrap().0, out, "not a fixpoint: {text}");
    let broken = !codes(&validate(text.as_bytes(), dialect), Severity::Error).is_empty();
    assert_eq!(broken, out_text != text, "changed without an error, or an error without a change: {text} {report:?}");
    let body: Value = serde_json::from_str(&out_text).unwrap_or_else(|e| panic!("{e}: {out_text}"));
    let list = match dialect {
        Dialect::Gemini => "contents",
        Dialect::OpenAiResponses => "input",
        _ => "messages",
    };
    body[list].clone()
}

pub const TEXT: &str = rethread::provider::INTERRUPTED;

// Short hands for openai-chat and mistral.
pub fn user(text: &str) -> Value {
    json!({ "role": "user", "content": text })
}
pub fn system(text: &str) -> Value {
    json!({ "role": "system", "content": text })
}
pub fn says(text: &str) -> Value {
    json!({ "role": "assistant", "content": text })
}
pub fn call(id: &str) -> Value {
    json!({ "id": id, "type": "function", "function": { "name": "f", "arguments": "{}" } })
}
pub fn calls(ids: &[&str]) -> Value {
    json!({ "role": "assistant", "content": null, "tool_calls": ids.iter().map(|id| call(id)).collect::<Vec<_>>() })
}
pub fn tool(id: &str, text: &str) -> Value {
    json!({ "role": "tool", "tool_call_id": id, "content": text })
}
pub fn closed(id: &str) -> Value {
    tool(id, TEXT)
}
pub fn chat(messages: Vec<Value>) -> Value {
    json!({ "model": "m", "messages": messages })
}

// Short hands for anthropic.
pub fn use_(id: &str) -> Value {
    json!({ "type": "tool_use", "id": id, "name": "f", "input": {} })
}
pub fn result(id: &str, text: &str) -> Value {
    json!({ "type": "tool_result", "tool_use_id": id, "content": text })
}
pub fn cut(id: &str) -> Value {
    json!({ "type": "tool_result", "tool_use_id": id, "content": TEXT, "is_error": true })
}
pub fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}
pub fn model(blocks: Vec<Value>) -> Value {
    json!({ "role": "assistant", "content": blocks })
}
pub fn human(blocks: Vec<Value>) -> Value {
    json!({ "role": "user", "content": blocks })
}
pub fn claude(messages: Vec<Value>) -> Value {
    json!({ "model": "m", "max_tokens": 9, "messages": messages })
}

pub const CHAT: Dialect = Dialect::OpenAiChat;
pub const CLAUDE: Dialect = Dialect::Anthropic;
pub const MISTRAL: Dialect = Dialect::Mistral;

/// An openai-chat body has an error of that code, and this is what is left once it is mended.
pub fn mends(given: Vec<Value>, code: &str, expected: Vec<Value>) {
    let body = chat(given);
    let found = errors(&body, CHAT);
    assert!(found.contains(&code), "{code} not in {found:?}");
    assert_eq!(mended(&body, CHAT), Value::from(expected));
}

pub fn mends_claude(given: Vec<Value>, code: &str, expected: Vec<Value>) {
    let body = claude(given);
    let found = errors(&body, CLAUDE);
    assert!(found.contains(&code), "{code} not in {found:?}");
    assert_eq!(mended(&body, CLAUDE), Value::from(expected));
}

pub fn takes(body: Value, dialect: Dialect) {
    assert_eq!(errors(&body, dialect), Vec::<&str>::new());
    let text = body.to_string();
    assert_eq!(repair(text.as_bytes(), dialect, &RepairOptions::default()).unwrap().0, text.as_bytes());
}

// Short hands for gemini and openai-responses.
pub const GEMINI: Dialect = Dialect::Gemini;
pub const RESPONSES: Dialect = Dialect::OpenAiResponses;

pub fn asks(parts: Vec<Value>) -> Value {
    json!({ "role": "user", "parts": parts })
}
pub fn acts(parts: Vec<Value>) -> Value {
    json!({ "role": "model", "parts": parts })
}
pub fn say(text: &str) -> Value {
    json!({ "text": text })
}
pub fn fc(name: &str) -> Value {
    json!({ "functionCall": { "name": name, "args": {} } })
}
pub fn fr(name: &str, result: &str) -> Value {
    json!({ "functionResponse": { "name": name, "response": { "result": result } } })
}
pub fn failed(name: &str) -> Value {
    json!({ "functionResponse": { "name": name, "response": { "error": TEXT } } })
}
pub fn mends_gemini(given: Vec<Value>, code: &str, expected: Vec<Value>) {
    let body = json!({ "contents": given });
    let found = errors(&body, GEMINI);
    assert!(found.contains(&code), "{code} not in {found:?}");
    assert_eq!(mended(&body, GEMINI), Value::from(expected));
}

pub fn fcall(id: &str) -> Value {
    json!({ "type": "function_call", "call_id": id, "name": "f", "arguments": "{}" })
}
pub fn out(id: &str, text: &str) -> Value {
    json!({ "type": "function_call_output", "call_id": id, "output": text })
}
pub fn thinks() -> Value {
    json!({ "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e" })
}
pub fn mends_responses(given: Vec<Value>, code: &str, expected: Vec<Value>) {
    let body = json!({ "model": "m", "input": given });
    let found = errors(&body, RESPONSES);
    assert!(found.contains(&code), "{code} not in {found:?}");
    assert_eq!(mended(&body, RESPONSES), Value::from(expected));
}
