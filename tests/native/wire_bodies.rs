//! Short constructors of bodies, and assertions about every repair. Shared by several test targets; each uses a part.

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

/// Repairs a body, checks the properties of every repair, and returns the repaired messages.
pub fn repaired_body(body: &Value, dialect: Dialect) -> Value {
    repaired_body_with(body, dialect, &RepairOptions::default())
}

pub fn repaired_body_with(body: &Value, dialect: Dialect, options: &RepairOptions) -> Value {
    let text = body.to_string();
    let (out, report) = repair(text.as_bytes(), dialect, options).unwrap();
    let out_text = String::from_utf8(out.clone()).unwrap();
    let remaining = validate(&out, dialect);
    assert!(codes(&remaining, Severity::Error).is_empty(), "still rejected: {remaining:?}\n{text}\n{out_text}");
    assert_eq!(repair(&out, dialect, options).unwrap().0, out, "not a fixpoint: {text}");
    let broken = !codes(&validate(text.as_bytes(), dialect), Severity::Error).is_empty();
    assert_eq!(broken, out_text != text, "changed without an error, or an error without a change: {text} {report:?}");
    let body: Value = serde_json::from_str(&out_text).unwrap_or_else(|e| panic!("{e}: {out_text}"));
    let list = match dialect {
        Dialect::Gemini => "contents",
        Dialect::OpenAiResponses | Dialect::GeminiInteractions => "input",
        Dialect::MistralConversations => "inputs",
        _ => "messages",
    };
    body[list].clone()
}

pub const TEXT: &str = rethread::synthetic_result::NO_RESULT;

// openai-chat and mistral
pub fn user(text: &str) -> Value {
    json!({ "role": "user", "content": text })
}
pub fn system(text: &str) -> Value {
    json!({ "role": "system", "content": text })
}
pub fn assistant(text: &str) -> Value {
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
pub fn interrupted_tool(id: &str) -> Value {
    tool(id, TEXT)
}
pub fn chat(messages: Vec<Value>) -> Value {
    json!({ "model": "m", "messages": messages })
}

// anthropic
pub fn tool_use(id: &str) -> Value {
    json!({ "type": "tool_use", "id": id, "name": "f", "input": {} })
}
pub fn result(id: &str, text: &str) -> Value {
    json!({ "type": "tool_result", "tool_use_id": id, "content": text })
}
pub fn interrupted_result(id: &str) -> Value {
    json!({ "type": "tool_result", "tool_use_id": id, "content": TEXT, "is_error": true })
}
pub fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}
pub fn assistant_blocks(blocks: Vec<Value>) -> Value {
    json!({ "role": "assistant", "content": blocks })
}
pub fn user_blocks(blocks: Vec<Value>) -> Value {
    json!({ "role": "user", "content": blocks })
}
pub fn claude(messages: Vec<Value>) -> Value {
    json!({ "model": "m", "max_tokens": 9, "messages": messages })
}

pub const CHAT: Dialect = Dialect::OpenAiChat;
pub const CLAUDE: Dialect = Dialect::Anthropic;
pub const MISTRAL: Dialect = Dialect::Mistral;

/// Checks that a body has an error of that code, and the messages of the repaired body.
pub fn assert_repair(body: &Value, dialect: Dialect, code: &str, expected: Vec<Value>) {
    let found = errors(body, dialect);
    assert!(found.contains(&code), "{code} not in {found:?}");
    assert_eq!(repaired_body(body, dialect), Value::from(expected));
}

pub fn assert_chat_repair(messages: Vec<Value>, code: &str, expected: Vec<Value>) {
    assert_repair(&chat(messages), CHAT, code, expected);
}

pub fn assert_claude_repair(messages: Vec<Value>, code: &str, expected: Vec<Value>) {
    assert_repair(&claude(messages), CLAUDE, code, expected);
}

pub fn assert_accepted(body: Value, dialect: Dialect) {
    assert_eq!(errors(&body, dialect), Vec::<&str>::new());
    let text = body.to_string();
    assert_eq!(repair(text.as_bytes(), dialect, &RepairOptions::default()).unwrap().0, text.as_bytes());
}

// gemini and openai-responses
pub const GEMINI: Dialect = Dialect::Gemini;
pub const RESPONSES: Dialect = Dialect::OpenAiResponses;

pub fn user_parts(parts: Vec<Value>) -> Value {
    json!({ "role": "user", "parts": parts })
}
pub fn model_parts(parts: Vec<Value>) -> Value {
    json!({ "role": "model", "parts": parts })
}
pub fn text_part(text: &str) -> Value {
    json!({ "text": text })
}
pub fn function_call(name: &str) -> Value {
    json!({ "functionCall": { "name": name, "args": {} } })
}
pub fn function_response(name: &str, result: &str) -> Value {
    json!({ "functionResponse": { "name": name, "response": { "result": result } } })
}
pub fn interrupted_response(name: &str) -> Value {
    json!({ "functionResponse": { "name": name, "response": { "error": TEXT } } })
}
pub fn assert_gemini_repair(contents: Vec<Value>, code: &str, expected: Vec<Value>) {
    assert_repair(&json!({ "contents": contents }), GEMINI, code, expected);
}

pub fn call_item(id: &str) -> Value {
    json!({ "type": "function_call", "call_id": id, "name": "f", "arguments": "{}" })
}
pub fn output_item(id: &str, text: &str) -> Value {
    json!({ "type": "function_call_output", "call_id": id, "output": text })
}
pub fn reasoning_item() -> Value {
    json!({ "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e" })
}
pub fn assert_responses_repair(items: Vec<Value>, code: &str, expected: Vec<Value>) {
    assert_repair(&json!({ "model": "m", "input": items }), RESPONSES, code, expected);
}
