//! A model that follows a script: what it says in each dialect, and which bodies it accepts.

use crate::{scripted_interactions, scripted_responses};

use crate::scripted_host::{CLAUDE, RESPONSES};
use rethread::finding::Severity;
use rethread::message::Dialect;
use rethread::provider::validate;
use serde_json::{Value, json};

/// What the model says.
#[derive(Clone, Debug, Default)]
pub struct Say {
    pub text: String,
    pub calls: Vec<(String, String, String)>,
    /// The reason, where it is not the usual one.
    pub finish: Option<String>,
}

pub fn text(text: &str) -> Say {
    Say { text: text.into(), ..Say::default() }
}

pub fn calls(calls: &[(&str, &str, &str)]) -> Say {
    Say {
        calls: calls.iter().map(|(id, name, arguments)| ((*id).into(), (*name).into(), (*arguments).into())).collect(),
        ..Say::default()
    }
}

impl Say {
    fn reason(&self, dialect: Dialect) -> String {
        let usual = match (dialect, self.calls.is_empty()) {
            (CLAUDE, true) => "end_turn",
            (CLAUDE, false) => "tool_use",
            (_, true) => "stop",
            (_, false) => "tool_calls",
        };
        self.finish.clone().unwrap_or_else(|| usual.into())
    }

    pub fn body(&self, dialect: Dialect) -> Vec<u8> {
        if dialect == RESPONSES {
            return scripted_responses::response(self).to_string().into_bytes();
        }
        if dialect == Dialect::GeminiInteractions {
            return scripted_interactions::interaction(self).to_string().into_bytes();
        }
        if dialect == CLAUDE {
            let mut content = Vec::new();
            if !self.text.is_empty() {
                content.push(format!(r#"{{"type":"text","text":{}}}"#, json!(self.text)));
            }
            for (id, name, arguments) in &self.calls {
                content.push(format!(
                    r#"{{"type":"tool_use","id":{},"name":{},"input":{arguments}}}"#,
                    json!(id),
                    json!(name)
                ));
            }
            let reason = self.reason(dialect);
            return format!(r#"{{"id":"msg_1","type":"message","role":"assistant","model":"m-1","content":[{}],"stop_reason":"{reason}","stop_sequence":null,"usage":{{"input_tokens":10,"output_tokens":5}}}}"#, content.join(",")).into_bytes();
        }
        let mut message = json!({ "role": "assistant", "content": if self.text.is_empty() { Value::Null } else { json!(self.text) } });
        if !self.calls.is_empty() {
            message["tool_calls"] = self.calls.iter().map(|(id, name, arguments)| json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } })).collect();
        }
        json!({ "id": "chatcmpl-1", "object": "chat.completion", "model": "m-1", "choices": [{ "index": 0, "message": message, "finish_reason": self.reason(dialect) }],
            "usage": { "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15 } }).to_string().into_bytes()
    }

    #[expect(clippy::too_many_lines, reason = "one scenario, read from top to bottom")]
    pub fn stream(&self, dialect: Dialect) -> Vec<u8> {
        let mut out = String::new();
        if dialect == RESPONSES {
            return scripted_responses::stream(self);
        }
        if dialect == Dialect::GeminiInteractions {
            return scripted_interactions::stream(self);
        }
        if dialect == CLAUDE {
            let mut event = |name: &str, data: Value| out.push_str(&format!("event: {name}\ndata: {data}\n\n"));
            event(
                "message_start",
                json!({ "type": "message_start", "message": { "id": "msg_1", "type": "message", "role": "assistant", "model": "m-1", "content": [], "stop_reason": null, "usage": { "input_tokens": 10, "output_tokens": 1 } } }),
            );
            let mut at = 0;
            if !self.text.is_empty() {
                event(
                    "content_block_start",
                    json!({ "type": "content_block_start", "index": at, "content_block": { "type": "text", "text": "" } }),
                );
                for piece in halves(&self.text) {
                    event(
                        "content_block_delta",
                        json!({ "type": "content_block_delta", "index": at, "delta": { "type": "text_delta", "text": piece } }),
                    );
                }
                event("content_block_stop", json!({ "type": "content_block_stop", "index": at }));
                at += 1;
            }
            for (id, name, arguments) in &self.calls {
                event(
                    "content_block_start",
                    json!({ "type": "content_block_start", "index": at, "content_block": { "type": "tool_use", "id": id, "name": name, "input": {} } }),
                );
                for piece in halves(arguments) {
                    event(
                        "content_block_delta",
                        json!({ "type": "content_block_delta", "index": at, "delta": { "type": "input_json_delta", "partial_json": piece } }),
                    );
                }
                event("content_block_stop", json!({ "type": "content_block_stop", "index": at }));
                at += 1;
            }
            event(
                "message_delta",
                json!({ "type": "message_delta", "delta": { "stop_reason": self.reason(dialect), "stop_sequence": null }, "usage": { "output_tokens": 5 } }),
            );
            event("message_stop", json!({ "type": "message_stop" }));
            return out.into_bytes();
        }
        let mut chunk = |delta: Value, reason: Value| {
            out.push_str(&format!("data: {}\n\n", json!({ "id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "m-1", "choices": [{ "index": 0, "delta": delta, "finish_reason": reason }] })))
        };
        chunk(json!({ "role": "assistant", "content": "" }), Value::Null);
        for piece in halves(&self.text).into_iter().filter(|piece| !piece.is_empty()) {
            chunk(json!({ "content": piece }), Value::Null);
        }
        for (at, (id, name, arguments)) in self.calls.iter().enumerate() {
            chunk(
                json!({ "tool_calls": [{ "index": at, "id": id, "type": "function", "function": { "name": name, "arguments": "" } }] }),
                Value::Null,
            );
            for piece in halves(arguments) {
                chunk(json!({ "tool_calls": [{ "index": at, "function": { "arguments": piece } }] }), Value::Null);
            }
        }
        chunk(json!({}), json!(self.reason(dialect)));
        out.push_str(&format!("data: {}\n\ndata: [DONE]\n\n", json!({ "id": "chatcmpl-1", "model": "m-1", "choices": [], "usage": { "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15 } })));
        out.into_bytes()
    }
}

pub fn halves(text: &str) -> [&str; 2] {
    let at = (text.len() / 2..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap();
    [&text[..at], &text[at..]]
}

/// How a model call is answered.
#[derive(Clone, Debug)]
pub enum Answer {
    /// In pieces of so many bytes where the run streams, else whole.
    Say(Say),
    Status(u16, Vec<(&'static str, &'static str)>, String),
    /// A stream of these bytes, ended normally.
    Bytes(Vec<u8>),
    /// A stream of these bytes; then the connection fails.
    Cut(Vec<u8>),
    /// No byte came.
    Unreachable,
    /// Stop driving here.
    Hang,
    /// These bytes, then stop driving.
    Partly(Vec<u8>),
}

/// The rounds that stand behind the last words of the user.
pub fn rounds_in(body: &Value) -> usize {
    let body = scripted_responses::as_chat(body);
    let messages = body["messages"].as_array().unwrap();
    let said = |m: &Value| {
        m["role"] == "user"
            && (m["content"].is_string()
                || m["content"].as_array().is_some_and(|blocks| blocks.iter().any(|b| b["type"] == "text")))
    };
    let from = messages.iter().rposition(said).map_or(0, |at| at + 1);
    messages[from..].iter().filter(|m| m["role"] == "assistant").count()
}

/// Two calls, then one, then text: a function of the body alone, so that it goes on after any kill.
pub fn three_tools(body: &Value) -> Answer {
    Answer::Say(match rounds_in(body) {
        0 => Say {
            text: "Let me look.".into(),
            ..calls(&[("call_a", "look", r#"{"n":1}"#), ("call_b", "find", r#"{"n":2}"#)])
        },
        1 => calls(&[("call_c", "look", r#"{"n":3}"#)]),
        _ => text("All done."),
    })
}

/// Checks a body: by the provider's rules, and by hand that every call has exactly one result right behind it.
pub fn valid(body: &Value, dialect: Dialect) {
    let report = validate(body.to_string().as_bytes(), dialect);
    let errors: Vec<_> = report.iter().filter(|finding| finding.severity == Severity::Error).collect();
    assert!(errors.is_empty(), "{errors:?}\n{body:#}");
    // Gemini's calls may have no ids to look for, and a service that keeps the conversation has the calls of earlier
    // requests.
    let references = ["previous_response_id", "conversation", "previous_interaction_id"];
    let is_delta = references.iter().any(|member| body.get(member).is_some()) || body["thread"]["type"] == "continue";
    // An append to a conversation of Mistral's names neither.
    let is_append = dialect == Dialect::MistralConversations
        && ["model", "agent_id"].iter().all(|member| body.get(member).is_none());
    if dialect == Dialect::Gemini || is_delta || is_append {
        return;
    }
    let body = &scripted_responses::as_chat(&scripted_responses::without_async_calls(body));
    let messages = body["messages"].as_array().unwrap();
    let mut open: Vec<String> = Vec::new();
    for message in messages {
        let id = |value: &Value| value.as_str().unwrap().to_owned();
        let (mut asked, mut answered) = (Vec::new(), Vec::new());
        if dialect == CLAUDE {
            for block in message["content"].as_array().into_iter().flatten() {
                match block["type"].as_str() {
                    Some("tool_use") => asked.push(id(&block["id"])),
                    Some("tool_result") => answered.push(id(&block["tool_use_id"])),
                    _ => {}
                }
            }
        } else {
            asked = message["tool_calls"].as_array().into_iter().flatten().map(|call| id(&call["id"])).collect();
            if message["role"] == "tool" {
                answered.push(id(&message["tool_call_id"]));
            }
        }
        for id in &answered {
            let at =
                open.iter().position(|open| open == id).unwrap_or_else(|| panic!("{id} answers nothing: {body:#}"));
            open.remove(at);
        }
        assert!(open.is_empty() || (!answered.is_empty() && dialect != CLAUDE), "{open:?} have no result: {body:#}");
        open.extend(asked);
    }
    assert!(open.is_empty(), "{open:?} have no result: {body:#}");
}
