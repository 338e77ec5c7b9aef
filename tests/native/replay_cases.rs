//! The replay pipeline by its rows, and the cases of tool-records-and-freshness.md, each by its number: `trf_a07` is
//! case 7 of its section A, `trf_b07` of its section B. They run in wasm, too, by `wasm_bindgen_test`.

#![allow(clippy::new_without_default)]

mod budgets;
mod citations;
mod dialects;
mod freshness;
mod records;
mod runs;
mod session_cases;

use crate::scripted_host;
use rethread::finding::Report;
use rethread::history::{History, HistoryEntry, JoinBase, JoinedEntries, Origin, join};
use rethread::id::CountingIds;
use rethread::json::{Json, JsonRef};
use rethread::message::Dialect;
use rethread::provider::{ProviderRequest, Settings, decode_body};
use rethread::render::{RenderRequest, Rendered, Renderer};
use rethread::replay::{Policy, PolicyLayer};
use rethread::tool::{ToolInvocation, Window};
use scripted_host::{SEED, valid};
use serde_json::{Value, json};

pub const CHAT: Dialect = Dialect::OpenAiChat;
pub const CLAUDE: Dialect = Dialect::Anthropic;
/// What is appended is this old when it is rendered, unless a test says otherwise.
pub const AGE: u64 = 1_000;
pub const NOW: u64 = 10_000_000;

/// A session without a store.
pub struct Chat {
    pub history: History,
    ids: CountingIds,
    pub report: Report,
    /// The run that all of it came from; none as by `append`.
    pub run: Option<&'static str>,
}

impl Chat {
    pub fn new() -> Self {
        Self { history: History::new(SEED), ids: CountingIds::default(), report: Report::new(), run: None }
    }

    /// One append of chat messages.
    pub fn of(messages: &[Value]) -> Self {
        Self::new().and(messages)
    }

    /// As a run left it.
    pub fn of_run(messages: &[Value]) -> Self {
        Self { run: Some("run"), ..Self::new() }.and(messages)
    }

    pub fn and(self, messages: &[Value]) -> Self {
        self.at(NOW - AGE, CHAT, &Value::from(messages).to_string())
    }

    pub fn at(mut self, at: u64, dialect: Dialect, body: &str) -> Self {
        for entry in self.joined(at, dialect, body).entries {
            self.history.apply(entry);
        }
        self
    }

    pub fn joined(&mut self, at: u64, dialect: Dialect, body: &str) -> JoinedEntries {
        let items = decode_body(dialect, JsonRef::parse(body).unwrap()).unwrap();
        let origin = Origin { at, run_id: self.run.map(str::to_owned), ..Origin::default() };
        let joined = join(JoinBase::history(&self.history), items, &origin, &self.ids);
        self.report.extend(joined.report.iter().cloned());
        joined
    }

    /// Changes the call of that id, as a run would have stored it.
    pub fn with(mut self, call: &str, change: impl FnOnce(&mut ToolInvocation)) -> Self {
        let id = self.call(call).id.clone();
        change(self.history.invocation_mut(&id).unwrap());
        self
    }

    /// Its result is that old, in milliseconds; negative is in the future.
    pub fn aged(self, call: &str, age: i64) -> Self {
        self.with(call, |call| call.finished_at = Some(NOW.saturating_add_signed(-age)))
    }

    pub fn call(&self, call: &str) -> &ToolInvocation {
        self.history.invocations().iter().find(|own| own.call_id == call).unwrap()
    }

    /// The next body of that dialect, checked by its rules, and by hand that calls and results match.
    pub fn render(&self, dialect: Dialect, policy: &Policy) -> (Value, Rendered) {
        render(&self.history, None, dialect, policy)
    }

    /// What goes out as chat, a line a message, and the codes of the report. In every other dialect it must be valid,
    /// too.
    pub fn shown(&self, policy: &Policy) -> (Vec<String>, Vec<&'static str>) {
        self.render(CLAUDE, policy);
        let (body, rendered) = self.render(CHAT, policy);
        (lines(&body), rendered.report.iter().map(|finding| finding.code.as_str()).collect())
    }

    pub fn lines(&self, policy: &Policy) -> Vec<String> {
        self.shown(policy).0
    }
}

pub fn provider(dialect: Dialect) -> ProviderRequest {
    ProviderRequest {
        dialect,
        url: "https://model.example/v1".into(),
        params: Json::parse(r#"{"model":"m","max_tokens":9}"#).unwrap(),
        stream: false,
        headers: Vec::new(),
        settings: Settings::default(),
    }
}

pub fn render(history: &History, live: Option<&History>, dialect: Dialect, policy: &Policy) -> (Value, Rendered) {
    let provider = provider(dialect);
    let request = RenderRequest { provider: &provider, instructions: None, tools: &[], policy };
    let rendered = Renderer::default().render(history, live, &request, NOW).unwrap();
    let body: Value = serde_json::from_slice(&rendered.body).unwrap();
    valid(&body, dialect);
    (body, rendered)
}

/// A chat body, a line a message.
pub fn lines(body: &Value) -> Vec<String> {
    let text = |content: &Value| content.as_str().map_or_else(|| content.to_string(), str::to_owned);
    body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| {
            let calls: Vec<&str> = message["tool_calls"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|call| call["id"].as_str().unwrap())
                .collect();
            match message["role"].as_str().unwrap() {
                "tool" => format!("{}={}", message["tool_call_id"].as_str().unwrap(), text(&message["content"])),
                "assistant" if calls.is_empty() => format!("says {}", text(&message["content"])),
                "assistant" if message["content"].is_null() => format!("calls {}", calls.join(" ")),
                "assistant" => format!("says {}, calls {}", text(&message["content"]), calls.join(" ")),
                role => format!("{role} {}", text(&message["content"])),
            }
        })
        .collect()
}

pub fn user(text: &str) -> Value {
    json!({ "role": "user", "content": text })
}

pub fn says(text: &str) -> Value {
    json!({ "role": "assistant", "content": text })
}

/// Parallel calls.
pub fn calls(ids: &[&str]) -> Value {
    let calls: Vec<Value> = ids.iter().map(|id| call(id, "{}")).collect();
    json!({ "role": "assistant", "content": null, "tool_calls": calls })
}

pub fn call(id: &str, arguments: &str) -> Value {
    json!({ "id": id, "type": "function", "function": { "name": "look", "arguments": arguments } })
}

pub fn result(id: &str, text: &str) -> Value {
    json!({ "role": "tool", "tool_call_id": id, "content": text })
}

/// Nothing is too old.
pub fn always() -> Policy {
    global(PolicyLayer { freshness: Some(Window::Always), ..PolicyLayer::default() })
}

pub fn global(layer: PolicyLayer) -> Policy {
    Policy { global: layer, ..Policy::default() }
}

pub fn window(millis: f64) -> PolicyLayer {
    PolicyLayer { freshness: Some(Window::from_millis(millis).unwrap()), ..PolicyLayer::default() }
}

pub fn message_entries(joined: JoinedEntries) -> (Vec<HistoryEntry>, Vec<HistoryEntry>) {
    joined.entries.into_iter().partition(|entry| matches!(entry, HistoryEntry::Message(_)))
}
