//! What must hold of every body that is rendered of a history.

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::TestCaseError;
use rethread::finding::{Report, Severity};
use rethread::history::{History, HistoryEntry};
use rethread::id::Seed;
use rethread::json::{Json, JsonKind, JsonRef, JsonStr};
use rethread::message::{Dialect, Message, PartBody, Role};
use rethread::provider::{ProviderRequest, Settings, validate};
use rethread::render::{RenderRequest, Renderer};
use rethread::replay::{Policy, StaleUnit};
use rethread::synthetic_result::is_placeholder;
use rethread::tool::{ToolInvocation, Window};
use serde_json::Value;

pub fn provider(dialect: Dialect) -> ProviderRequest {
    let params = match dialect {
        Dialect::Anthropic => r#"{"model":"m","max_tokens":9}"#,
        Dialect::Gemini | Dialect::Bedrock => "{}",
        _ => r#"{"model":"m"}"#,
    };
    ProviderRequest {
        dialect,
        url: "https://model.example/v1".into(),
        params: Json::parse(params).unwrap(),
        stream: false,
        headers: Vec::new(),
        settings: Settings::default(),
    }
}

/// Renders to every dialect: its rules take the body, it is the same each time, and nothing said or answered is lost.
pub fn check(history: &History, live: Option<&History>, policy: &Policy, now: u64) -> Result<(), TestCaseError> {
    let mut said = said(history).chain(live.into_iter().flat_map(said)).collect::<Vec<_>>();
    let mut answered = answered(history, live, policy, now);
    if !policy.reducers().is_empty() {
        // What a reducer takes is its own: the user's newest words are all that every one keeps.
        said = newest(history, live);
        answered.clear();
    }
    for dialect in Dialect::ALL {
        let provider = provider(dialect);
        let request = RenderRequest { provider: &provider, instructions: None, tools: &[], policy };
        let mut renderer = Renderer::default();
        let body = renderer.render(history, live, &request, now).unwrap().body;
        let text = String::from_utf8(body.clone()).unwrap();
        let errors = validate(&body, dialect).into_iter().filter(|finding| finding.severity == Severity::Error);
        let errors: Vec<_> = errors.collect();
        prop_assert!(errors.is_empty(), "{dialect:?} {errors:?}\n{text}");
        prop_assert_eq!(&renderer.render(history, live, &request, now).unwrap().body, &body, "kept encodings differ");
        prop_assert_eq!(
            Renderer::default().render(history, live, &request, now).unwrap().body,
            body,
            "not the same twice"
        );
        let body: Value = serde_json::from_str(&text).unwrap();
        let mut strings = String::new();
        gather(&body, &mut strings);
        for words in &said {
            prop_assert!(strings.contains(words), "{dialect:?} lost {words:?}\n{text}");
        }
        for (call, words) in &answered {
            prop_assert!(strings.contains(words), "{dialect:?} lost the result {words:?} of {call:?}\n{text}");
        }
        let calls = count_calls(&body);
        prop_assert!(
            calls >= answered.len(),
            "{dialect:?}: {calls} calls, of {} answered ones\n{text}",
            answered.len()
        );
    }
    Ok(())
}

/// One step of a session's life: how far its log has grown, the dialect and the policy of the next body, and when.
pub type Step = (Index, usize, Index, u64);

/// One renderer over a growing history, with dialects and policies in turn, against a new one for each body.
pub fn check_growth(log: &[HistoryEntry], policies: &[Policy], steps: &[Step]) -> Result<(), TestCaseError> {
    let (mut history, mut renderer) = (History::new(Seed(9)), Renderer::default());
    let mut grown = steps.iter().map(|(to, ..)| to.index(log.len() + 1)).collect::<Vec<_>>();
    grown.sort_unstable();
    let (mut from, mut last) = (0, std::collections::HashMap::new());
    for ((_, dialect, policy, now), to) in steps.iter().zip(grown) {
        log[from..to].iter().cloned().for_each(|entry| history.apply(entry));
        from = to;
        let dialect = Dialect::ALL[*dialect];
        let provider = provider(dialect);
        let policy = &policies[policy.index(policies.len())];
        let request = RenderRequest { provider: &provider, instructions: None, tools: &[], policy };
        let kept = renderer.render(&history, None, &request, *now).unwrap();
        let fresh = Renderer::default().render(&history, None, &request, *now).unwrap();
        let text = String::from_utf8(kept.body).unwrap();
        prop_assert_eq!(&text, &String::from_utf8(fresh.body).unwrap());
        // That the window is the built-in one is said once a session.
        let told = |report: Report| {
            report.into_iter().filter(|finding| finding.code.as_str() != "stale_default").collect::<Vec<_>>()
        };
        prop_assert_eq!(told(kept.report), told(fresh.report));
        let list = list_of(&text);
        let before = last.insert(dialect, list.clone()).unwrap_or_default();
        let stable = kept.stable_prefix as usize;
        prop_assert!(
            stable <= list.len() && before.get(..stable) == list.get(..stable),
            "{stable} of {before:?}\n{list:?}"
        );
    }
    Ok(())
}

/// A body's messages, as they are written.
fn list_of(body: &str) -> Vec<String> {
    let body = JsonRef::parse(body).unwrap();
    let list = ["messages", "contents", "input", "inputs"].into_iter().find_map(|name| body.get(name)).unwrap();
    list.items().map(|item| item.as_raw().to_owned()).collect()
}

/// All texts of user and assistant.
fn said(history: &History) -> impl Iterator<Item = String> {
    let messages = history.messages().iter().filter(|message| matches!(message.role, Role::User | Role::Assistant));
    messages.flat_map(texts)
}

/// White space at an end is not worth keeping: Anthropic refuses it in the last message.
fn texts(message: &Message) -> impl Iterator<Item = String> {
    let texts = message.parts.iter().filter_map(|part| match &part.body {
        PartBody::Text(text) => Some(text.decode().trim_end().to_owned()),
        _ => None,
    });
    texts.filter(|text| !text.is_empty())
}

/// The words of the user's newest message that says anything.
fn newest(history: &History, live: Option<&History>) -> Vec<String> {
    let says = |message: &&Message| {
        message.role == Role::User
            && message.parts.iter().any(|part| match &part.body {
                PartBody::Text(text) | PartBody::Refusal(text) => !text.is_empty(),
                PartBody::Image(_) | PartBody::File(_) | PartBody::Opaque(_) => true,
                _ => false,
            })
    };
    let mut messages = history.messages().iter().chain(live.into_iter().flat_map(|live| live.messages()));
    messages.rfind(says).map(|message| texts(message).collect()).unwrap_or_default()
}

/// The calls whose result is fresh, with a text of it.
fn answered(history: &History, live: Option<&History>, policy: &Policy, now: u64) -> Vec<(String, String)> {
    let calls = |history: &History| -> Vec<ToolInvocation> {
        let asking = history.messages().iter().filter(|message| message.role == Role::Assistant);
        asking.flat_map(|message| history.calls_of(message)).filter(|call| call.result.is_some()).cloned().collect()
    };
    let stored = calls(history);
    let fresh = |call: &ToolInvocation| {
        let is_error = call.result.as_ref().is_some_and(|result| result.is_error);
        match (policy.window(call, is_error).0, call.finished_at) {
            (Window::Always, _) => true,
            (Window::Millis(window), Some(at)) => window > 0 && at <= now && now - at <= window,
            (Window::Millis(_), None) => false,
        }
    };
    let all_fresh = stored.iter().all(fresh);
    let kept = stored.iter().filter(|call| all_fresh || policy.stale_unit() == StaleUnit::Call && fresh(call)).cloned();
    let kept = kept.chain(live.into_iter().flat_map(calls));
    kept.map(|call| (call.call_id.clone(), text_of(&call))).collect()
}

/// A text of a call's result; empty where it has none. A placeholder counts as none: an output with its call's id takes
/// its place.
fn text_of(call: &ToolInvocation) -> String {
    let Some(result) = call.result.as_ref().filter(|result| !is_placeholder(result.content.view())) else {
        return String::new();
    };
    let view = result.content.view();
    match view.kind() {
        JsonKind::String => view.as_json_str().unwrap_or_else(|| JsonStr::new("")).decode().trim().to_owned(),
        _ => String::new(),
    }
}

/// All strings of a body, and those of the JSON that they may be.
fn gather(value: &Value, out: &mut String) {
    match value {
        Value::String(text) => {
            out.push_str(text);
            out.push('\n');
        }
        Value::Array(items) => items.iter().for_each(|item| gather(item, out)),
        Value::Object(members) => members.values().for_each(|value| gather(value, out)),
        _ => {}
    }
}

fn count_calls(body: &Value) -> usize {
    let list = ["messages", "contents", "input", "inputs"].into_iter().find_map(|name| body[name].as_array()).unwrap();
    let of = |item: &Value| {
        let chat = item["tool_calls"].as_array().map_or(0, Vec::len);
        let own = usize::from(
            item["type"] == "function_call"
                || item["call_id"].is_string() && item["type"].as_str().is_some_and(|kind| kind.ends_with("_call")),
        );
        // An entry of Mistral's conversations without a type has that of its members.
        let is_untyped_call = item["type"].is_null() && item["tool_call_id"].is_string() && item["name"].is_string();
        let own = own + usize::from(item["type"] == "function.call" || is_untyped_call && item["role"].is_null());
        let blocks = item["content"].as_array().or(item["parts"].as_array()).into_iter().flatten();
        chat + own
            + blocks
                .filter(|block| {
                    block["type"] == "tool_use"
                        || ["functionCall", "toolUse"].iter().any(|name| block.get(name).is_some())
                })
                .count()
    };
    list.iter().map(of).sum()
}
