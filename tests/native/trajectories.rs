//! Real conversations, appended and rendered again: through their own dialect as they were, through the other one in
//! all they say.

use rethread::history::{History, JoinBase, Origin, join};
use rethread::id::{CountingIds, Seed};
use rethread::json::{Json, JsonRef};
use rethread::message::Dialect;
use rethread::provider::{ProviderRequest, Settings, decode_body};
use rethread::render::{RenderRequest, Renderer};
use rethread::replay::{Policy, PolicyLayer};
use rethread::tool::Window;
use serde_json::Value;

fn corpora() -> std::path::PathBuf {
    std::env::var_os("RETHREAD_DATA")
        .map_or_else(|| concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpora").into(), Into::into)
}

/// The number of recorded conversations below which some were lost.
const LEAST_CONVERSATIONS: usize = 55;

fn conversations() -> Vec<(String, Value)> {
    let mut files: Vec<_> = std::fs::read_dir(corpora().join("trajectories"))
        .unwrap()
        .map(|f| f.unwrap().path())
        .filter(|p| p.file_name().unwrap() != "index.json" && p.extension().is_some_and(|e| e == "json"))
        .collect();
    files.sort();
    assert!(files.len() >= LEAST_CONVERSATIONS, "{} conversations, {LEAST_CONVERSATIONS} at least", files.len());
    files
        .into_iter()
        .map(|path| {
            (
                path.file_name().unwrap().to_string_lossy().into_owned(),
                serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap(),
            )
        })
        .collect()
}

fn history_of(dialect: Dialect, body: &str) -> History {
    let items = decode_body(dialect, JsonRef::parse(body).unwrap()).unwrap();
    let mut history = History::new(Seed(7));
    let joined =
        join(JoinBase::history(&history), items, &Origin { at: 1_000, ..Origin::default() }, &CountingIds::default());
    for entry in joined.entries {
        history.apply(entry);
    }
    history
}

fn render(dialect: Dialect, history: &History) -> Value {
    let provider = ProviderRequest {
        dialect,
        url: "https://example.com".into(),
        params: Json::parse(r#"{"model":"m"}"#).unwrap(),
        stream: false,
        headers: Vec::new(),
        settings: Settings::default(),
    };
    let policy =
        Policy { call: PolicyLayer { freshness: Some(Window::Always), ..PolicyLayer::default() }, ..Policy::default() };
    let request = RenderRequest { provider: &provider, instructions: None, tools: &[], policy: &policy };
    let rendered = Renderer::default().render(history, None, &request, 2_000_000).unwrap();
    serde_json::from_slice(&rendered.body).unwrap()
}

/// Call ids by their order of appearance, so that a renamed one compares equal; nothing else is touched.
fn normal(messages: &Value) -> Value {
    let mut messages = messages.clone();
    let mut open: Vec<(String, String)> = Vec::new();
    let mut count = 0;
    for message in messages.as_array_mut().unwrap() {
        if let Some(calls) = message.get_mut("tool_calls").and_then(Value::as_array_mut) {
            open.clear();
            for call in calls {
                let name = format!("#{count}");
                count += 1;
                open.push((call["id"].as_str().unwrap().to_owned(), name.clone()));
                call["id"] = name.into();
            }
        }
        if let Some(id) = message.get("tool_call_id").and_then(Value::as_str) {
            let name = open
                .iter()
                .find(|(own, _)| own == id)
                .map(|(_, name)| name.clone())
                .expect("a result follows its call");
            message["tool_call_id"] = name.into();
        }
    }
    messages
}

#[test]
fn r03_every_conversation_returns_unchanged() {
    let all = conversations();
    for (file, conversation) in &all {
        let body = serde_json::to_string(conversation).unwrap();
        let history = history_of(Dialect::OpenAiChat, &body);
        let out = render(Dialect::OpenAiChat, &history);
        let (mut want, mut got) = (normal(&conversation["messages"]), normal(&out["messages"]));
        // One that ends on open calls gets its closing results.
        let open = want
            .as_array()
            .unwrap()
            .last()
            .unwrap()
            .get("tool_calls")
            .map_or(0, |calls| calls.as_array().unwrap().len());
        if open > 0 {
            let length = want.as_array().unwrap().len();
            assert_eq!(got.as_array().unwrap().len(), length + open, "{file}");
            got.as_array_mut().unwrap().truncate(length);
        }
        for (at, (want, got)) in want.as_array_mut().unwrap().iter().zip(got.as_array().unwrap()).enumerate() {
            assert_eq!(want, got, "{file} message {at}");
        }
        assert_eq!(want, got, "{file}");
    }
    println!("{} conversations", all.len());
}

#[test]
fn r03_a_conversion_to_anthropic_and_back_loses_no_text() {
    for (file, conversation) in conversations() {
        let body = serde_json::to_string(&conversation).unwrap();
        let there = render(Dialect::Anthropic, &history_of(Dialect::OpenAiChat, &body));
        let back =
            render(Dialect::OpenAiChat, &history_of(Dialect::Anthropic, &serde_json::to_string(&there).unwrap()));
        let direct = render(Dialect::OpenAiChat, &history_of(Dialect::OpenAiChat, &body));
        assert_eq!(said(&direct["messages"]), said(&back["messages"]), "{file}");
    }
}

/// Texts, names, arguments and results, in order.
fn said(messages: &Value) -> Vec<String> {
    let text = |content: &Value| match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    };
    let mut out = Vec::new();
    for message in messages.as_array().unwrap() {
        let content = text(&message["content"]);
        if !content.is_empty() || message["role"] == "tool" {
            out.push(format!("{}: {content}", message["role"]));
        }
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            let arguments: Value = serde_json::from_str(call["function"]["arguments"].as_str().unwrap()).unwrap();
            out.push(format!("{} {arguments}", call["function"]["name"]));
        }
    }
    out
}
