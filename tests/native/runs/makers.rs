//! R76: reasoning, signatures and encrypted content go back only to a provider that can read them.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use crate::scripted_host::*;
use rethread::finding::{Action, Finding, PrefixChange};
use rethread::json::Json;
use rethread::message::{AnswerMaker, Dialect, HostGroup};
use rethread::replay::Callback;
use rethread::run::{RunOutcome, RunSetup, RunStatus};
use rethread::store::MemoryStore;
use rethread::tool::Window;
use serde_json::{Value, json};

const MISTRAL: Dialect = Dialect::Mistral;
const GEMINI: Dialect = Dialect::Gemini;

/// What only its maker can read.
const SECRET: &str = "c2VjcmV0";

/// A server and a model.
type Endpoint = (&'static str, &'static str);

const DEEPSEEK: Endpoint = ("https://api.deepseek.com/chat/completions", "deepseek-v4");
const OPENAI: Endpoint = ("https://api.openai.com/v1/chat/completions", "gpt-6.2-sol");
const OPENAI_RESPONSES: Endpoint = ("https://api.openai.com/v1/responses", "gpt-6.2-sol");
const AZURE: Endpoint = ("https://mine.openai.azure.com/openai/v1/responses", "gpt-6.2-sol");
const XAI: Endpoint = ("https://api.x.ai/v1/responses", "grok-5");
const ANTHROPIC: Endpoint = ("https://api.anthropic.com/v1/messages", "claude-opus-5-5");
const MINIMAX: Endpoint = ("https://api.minimax.io/anthropic/v1/messages", "MiniMax-M3");
const KIMI: Endpoint = ("https://api.moonshot.ai/anthropic/v1/messages", "kimi-k3");
const BEDROCK: Endpoint =
    ("https://bedrock-runtime.us-east-1.amazonaws.com/model/x/invoke", "us.anthropic.claude-opus-5-5-v1:0");
const BEDROCK_CONVERSE: Dialect = Dialect::Bedrock;
const INTERACTIONS: Dialect = Dialect::GeminiInteractions;
const VERTEX_CLAUDE: Endpoint = ("https://us-east5-aiplatform.googleapis.com/v1/x", "claude-opus-5-5@20260901");
const FOUNDRY: Endpoint = ("https://mine.services.ai.azure.com/anthropic/v1/messages", "claude-opus-5-5");
const MISTRAL_AI: Endpoint = ("https://api.mistral.ai/v1/chat/completions", "magistral-medium");
const GEMINI_API: Endpoint =
    ("https://generativelanguage.googleapis.com/v1beta/models/gemini-3-pro:generateContent", "");
const VERTEX: Endpoint = (
    "https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers/google/models/gemini-3-pro:generateContent",
    "",
);

fn gateway(model: &'static str) -> Endpoint {
    ("https://gateway.example.com/v1/any", model)
}

/// An answer with reasoning, as providers of the dialect give it.
fn answer(dialect: Dialect) -> Answer {
    let body = match dialect {
        CHAT => json!({ "choices": [{ "index": 0, "finish_reason": "stop", "message":
            { "role": "assistant", "content": "Hi.", "reasoning_content": SECRET } }] }),
        MISTRAL => {
            json!({ "choices": [{ "index": 0, "finish_reason": "stop", "message": { "role": "assistant", "content":
            [{ "type": "thinking", "thinking": [{ "type": "text", "text": SECRET }] }, { "type": "text", "text": "Hi." }] } }] })
        }
        Dialect::MistralConversations => {
            json!({ "conversation_id": "c", "outputs": [{ "type": "message.output", "role": "assistant",
            "content": [{ "type": "thinking", "thinking": [{ "type": "text", "text": SECRET }] }, { "type": "text", "text": "Hi." }] }] })
        }
        CLAUDE => {
            json!({ "type": "message", "model": "claude-opus-5-5", "role": "assistant", "stop_reason": "end_turn", "content":
            [{ "type": "thinking", "thinking": "Hm", "signature": SECRET }, { "type": "text", "text": "Hi." }] })
        }
        BEDROCK_CONVERSE => {
            json!({ "stopReason": "end_turn", "output": { "message": { "role": "assistant", "content": [
            { "reasoningContent": { "reasoningText": { "text": "Hm", "signature": SECRET } } }, { "text": "Hi." }
        ] } } })
        }
        GEMINI => json!({ "candidates": [{ "finishReason": "STOP", "content": { "role": "model", "parts":
            [{ "text": "Hm", "thought": true }, { "text": "Hi.", "thoughtSignature": SECRET }] } }] }),
        INTERACTIONS => json!({ "id": "v1_1", "status": "completed", "steps": [
            { "type": "thought", "signature": SECRET, "summary": [{ "type": "text", "text": "Hm" }] },
            { "type": "model_output", "content": [{ "type": "text", "text": "Hi." }] },
        ] }),
        RESPONSES => json!({ "status": "completed", "model": "gpt-6.2-sol-2026-11-17", "output": [
            { "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": SECRET },
            { "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
                "content": [{ "type": "output_text", "text": "Hi.", "annotations": [] }] },
        ] }),
    };
    Answer::Status(200, Vec::new(), body.to_string())
}

/// What a request to another provider contains of an answer.
struct Switch {
    body: String,
    report: Vec<Finding>,
    maker: Option<AnswerMaker>,
}

/// Asks one provider, then another. `groups`: hosts of which the application says that they serve the same models.
fn switch(dialect: Dialect, from: Endpoint, to: Endpoint, groups: &[&[&str]]) -> Switch {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let setup = |id: &str, (url, model): Endpoint| {
        let mut setup = RunSetup { tools: Vec::new(), ..setup(id, dialect, false) };
        setup.provider.url = url.into();
        let params = if model.is_empty() { json!({}) } else { json!({ "model": model, "max_tokens": 9 }) };
        setup.provider.params = Json::parse(&params.to_string()).unwrap();
        setup.policy.call.freshness = Some(Window::Always);
        let group = |hosts: &&[&str]| HostGroup::new(hosts.iter().map(|host| (*host).to_owned()).collect()).unwrap();
        setup.policy.session.same_makers = Some(groups.iter().map(group).collect());
        setup
    };
    host.ask(setup("one", from), "Hello", |_| answer(dialect));
    let mut body = Value::Null;
    let outcome = host.ask(setup("two", to), "And?", |asked| {
        body = asked.clone();
        answer(dialect)
    });
    assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
    let log = host.log.borrow();
    let maker = log.history.messages()[1].answer.as_ref().and_then(|answer| answer.maker.clone());
    Switch { body: body.to_string(), report: outcome.report.to_vec(), maker }
}

impl Switch {
    /// Returns why the reasoning was left out, after a check that it was: with a finding, and with the rest of the
    /// answer in its place.
    fn omission(&self) -> Option<PrefixChange> {
        assert!(self.body.contains("Hi."), "{}", self.body);
        let findings: Vec<&Finding> = self.report.iter().filter(|finding| finding.changed_by.is_some()).collect();
        let is_sent = self.body.contains(SECRET);
        assert_eq!(findings.len(), usize::from(!is_sent), "{findings:?} {}", self.body);
        let finding = findings.first()?;
        assert!(finding.message_id.is_some() && finding.action == Some(Action::Dropped), "{finding:?}");
        let is_foreign = finding.code.as_str() == "reasoning_foreign";
        assert!(is_foreign || finding.changed_by == Some(PrefixChange::Model), "{finding:?}");
        finding.changed_by
    }
}

/// Dialects with two providers that do not read each other's reasoning.
fn strangers() -> Vec<(Dialect, Endpoint, Endpoint)> {
    vec![
        (CHAT, DEEPSEEK, OPENAI),
        (CHAT, DEEPSEEK, gateway("deepseek-v4")),
        (MISTRAL, MISTRAL_AI, gateway("magistral-medium")),
        (CLAUDE, ANTHROPIC, MINIMAX),
        (CLAUDE, MINIMAX, ANTHROPIC),
        (CLAUDE, MINIMAX, KIMI),
        (CLAUDE, ANTHROPIC, gateway("anthropic/claude-opus-5.5")),
        (GEMINI, GEMINI_API, VERTEX),
        (GEMINI, VERTEX, GEMINI_API),
        (RESPONSES, OPENAI_RESPONSES, XAI),
        (RESPONSES, XAI, OPENAI_RESPONSES),
        (RESPONSES, OPENAI_RESPONSES, gateway("openai/gpt-6.2-sol")),
    ]
}

#[test]
fn r76_reasoning_of_another_provider_is_left_out_with_a_finding() {
    for (dialect, from, to) in strangers() {
        assert_eq!(switch(dialect, from, to, &[]).omission(), Some(PrefixChange::Provider), "{from:?} {to:?}");
        assert_eq!(switch(dialect, from, from, &[]).omission(), None, "{from:?}");
    }
}

#[test]
fn r76_an_answer_records_its_host_and_its_model() {
    for (dialect, from, to, host, model) in [
        (CHAT, DEEPSEEK, OPENAI, "api.deepseek.com", "deepseek-v4"),
        (CLAUDE, BEDROCK, MINIMAX, "bedrock-runtime.us-east-1.amazonaws.com", "us.anthropic.claude-opus-5-5-v1:0"),
        (GEMINI, GEMINI_API, VERTEX, "generativelanguage.googleapis.com", "gemini-3-pro"),
        (RESPONSES, ("http://localhost:4000/v1/responses", "m"), XAI, "localhost:4000", "m"),
    ] {
        let maker = AnswerMaker { host: Some(host.into()), model: Some(model.into()) };
        assert_eq!(switch(dialect, from, to, &[]).maker, Some(maker));
    }
}

#[test]
fn r76_hosts_that_are_known_to_serve_the_same_models_are_one_provider() {
    for (dialect, from, to) in [
        (CLAUDE, ANTHROPIC, BEDROCK),
        (CLAUDE, BEDROCK, VERTEX_CLAUDE),
        (CLAUDE, VERTEX_CLAUDE, FOUNDRY),
        (CLAUDE, FOUNDRY, ANTHROPIC),
        (RESPONSES, OPENAI_RESPONSES, AZURE),
        (RESPONSES, AZURE, OPENAI_RESPONSES),
        (MISTRAL, MISTRAL_AI, ("https://eu.mistral.ai/v1/chat/completions", "magistral-medium")),
        (CHAT, OPENAI, ("https://mine.openai.azure.com/openai/v1/chat/completions", "gpt-6.2-sol")),
    ] {
        assert_eq!(switch(dialect, from, to, &[]).omission(), None, "{from:?} {to:?}");
    }
}

#[test]
fn r76_the_application_names_gateways_that_serve_the_same_models() {
    for (dialect, host, direct, model) in [
        (CHAT, "api.deepseek.com", DEEPSEEK, "deepseek/deepseek-v4"),
        (MISTRAL, "api.mistral.ai", MISTRAL_AI, "mistralai/magistral-medium"),
        (CLAUDE, "api.anthropic.com", ANTHROPIC, "anthropic/claude-opus-5.5"),
        (GEMINI, "generativelanguage.googleapis.com", GEMINI_API, "google/gemini-3-pro"),
        (RESPONSES, "api.openai.com", OPENAI_RESPONSES, "openai/gpt-6.2-sol"),
        // A group with a host of a service has all of them.
        (CLAUDE, "api.anthropic.com", BEDROCK, "anthropic/claude-opus-5.5"),
        (RESPONSES, "api.openai.com", AZURE, "openai/gpt-6.2-sol"),
    ] {
        for (from, to) in [(direct, gateway(model)), (gateway(model), direct)] {
            let with = |groups: &[&[&str]]| switch(dialect, from, to, groups).omission();
            assert_eq!(with(&[&[host, "gateway.example.com"]]), None, "{from:?} {to:?}");
            assert_eq!(with(&[&["a.example"], &["GATEWAY.example.com", "b.example", host]]), None, "{from:?}");
            // A gateway in two groups does not make their other hosts one.
            let apart: [&[&str]; 2] = [&[host, "other.example"], &["gateway.example.com", "third.example"]];
            assert_eq!(with(&apart), Some(PrefixChange::Provider), "{from:?} {to:?}");
        }
    }
    let shared: [&[&str]; 2] =
        [&["gateway.example.com", "api.anthropic.com"], &["gateway.example.com", "api.minimax.io"]];
    assert_eq!(switch(CLAUDE, MINIMAX, ANTHROPIC, &shared).omission(), Some(PrefixChange::Provider));
}

#[test]
fn r76_two_ports_of_a_machine_are_two_servers_unless_they_are_named() {
    for dialect in Dialect::ALL {
        let [from, to] = ["http://localhost:3000/v1", "http://localhost:4000/v1"].map(|url| (url, "m"));
        assert_eq!(switch(dialect, from, to, &[]).omission(), Some(PrefixChange::Provider));
        for group in [&["localhost"][..], &["localhost:3000", "localhost:4000"]] {
            assert_eq!(switch(dialect, from, to, &[group]).omission(), None, "{dialect:?} {group:?}");
        }
        let two: [&[&str]; 2] = [&["localhost:3000"], &["localhost:4000"]];
        assert_eq!(switch(dialect, from, to, &two).omission(), Some(PrefixChange::Provider));
    }
}

#[test]
fn r76_another_model_of_the_same_provider_cannot_read_what_is_bound_to_its_own() {
    for (dialect, from, to) in [
        (CLAUDE, ANTHROPIC, (ANTHROPIC.0, "claude-sonnet-5-5")),
        (RESPONSES, OPENAI_RESPONSES, (AZURE.0, "gpt-6.2-astra")),
        (GEMINI, GEMINI_API, (GEMINI_API.0, "gemini-4-pro")),
    ] {
        assert_eq!(switch(dialect, from, to, &[]).omission(), Some(PrefixChange::Model), "{from:?} {to:?}");
    }
    for (dialect, from, to) in [
        (RESPONSES, OPENAI_RESPONSES, (AZURE.0, "openai/gpt-6.2-sol-2026-11-17")),
        (GEMINI, GEMINI_API, (GEMINI_API.0, "models/gemini-3-pro")),
        // DeepSeek's is plain text.
        (CHAT, DEEPSEEK, (DEEPSEEK.0, "deepseek-v5")),
    ] {
        assert_eq!(switch(dialect, from, to, &[]).omission(), None, "{from:?} {to:?}");
    }
}

#[test]
fn r76_the_answer_names_the_model_of_a_deployment() {
    for (dialect, from, to) in
        [(CLAUDE, (FOUNDRY.0, "my-deployment"), ANTHROPIC), (RESPONSES, (AZURE.0, "my-deployment"), OPENAI_RESPONSES)]
    {
        assert_eq!(switch(dialect, from, to, &[]).omission(), None, "{from:?} {to:?}");
    }
}

/// What an application makes of a body.
type Filter = fn(Value) -> Value;

/// A turn that one provider has begun with a call goes on with a model that wants its reasoning back. Returns the end
/// of it, and what was sent.
fn asked_on(filter: Option<Filter>, has_refused: bool) -> (RunOutcome, String) {
    let setup = |(url, model): Endpoint, filter: Option<Filter>| {
        let mut setup = setup("one", CHAT, false);
        setup.provider.url = url.into();
        setup.provider.params = Json::parse(&json!({ "model": model }).to_string()).unwrap();
        setup.input_filter = filter.map(|_| Callback { id: 1, hook: std::rc::Rc::new(()) });
        setup
    };
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    host.start(setup(OPENAI, None), "Go").unwrap();
    let call = json!({ "choices": [{ "index": 0, "finish_reason": "tool_calls", "message": { "role": "assistant", "content": "Hi.",
        "reasoning_content": SECRET, "tool_calls": [{ "id": "a", "type": "function", "function": { "name": "look", "arguments": "{}" } }] } }] });
    let killed = host.drive(|body| match rounds_in(body) {
        0 => Answer::Status(200, Vec::new(), call.to_string()),
        _ => Answer::Hang,
    });
    assert!(killed.is_none());
    // The turn goes on with a model that wants its reasoning back.
    let mut host = Host::open(&store, "s", "h2");
    if has_refused {
        host.log.borrow_mut().head.refused = vec!["a mark".into()];
    }
    if let Some(filter) = filter {
        host.filter = Box::new(move |body| Ok(filter(body)));
    }
    host.resume(setup(DEEPSEEK, filter)).unwrap();
    let outcome = host.drive(|_| Answer::Say(text("Done."))).unwrap();
    let sent = String::from_utf8_lossy(host.sent.last().unwrap()).into_owned();
    (outcome, sent)
}

#[test]
fn r73_reasoning_that_a_changed_body_of_the_running_loop_lacks_is_reported() {
    let unchanged: Filter = |body| body;
    let changed: Filter = |mut body| {
        body["messages"][1]["content"] = json!("Something else");
        body
    };
    let without_call: Filter = |mut body| {
        body["messages"].as_array_mut().unwrap().truncate(2);
        body
    };
    let thoughtless: Filter = |mut body| {
        body["thinking"] = json!({ "type": "disabled" });
        body
    };
    let reworded: Filter = |mut body| {
        body["messages"][2]["content"] = json!("Something else");
        body
    };
    for (name, filter, has_refused, expected) in [
        ("as composed", None, false, Some(true)),
        ("something was refused", None, true, Some(true)),
        ("a filter that changes nothing", Some(unchanged), false, Some(true)),
        ("a filter that changes the question", Some(changed), true, Some(true)),
        ("a filter that changes the answer", Some(reworded), false, Some(false)),
        ("a filter that drops the answer", Some(without_call), false, None),
        ("a filter that turns thinking off", Some(thoughtless), false, None),
    ] {
        let (outcome, sent) = asked_on(filter, has_refused);
        assert_eq!(outcome.status, RunStatus::Finished, "{name}: {:?}", outcome.error);
        assert!(!sent.contains(SECRET), "{name}");
        let missing: Vec<_> =
            outcome.report.iter().filter(|found| found.code.as_str() == "missing_reasoning").collect();
        let is_named = missing.first().map(|finding| finding.message_id.as_ref() == outcome.message_ids.get(1));
        assert_eq!(
            (missing.len(), is_named),
            (usize::from(expected.is_some()), expected),
            "{name}: {:?}",
            outcome.report
        );
        if expected == Some(false) {
            assert_eq!(missing[0].path.as_deref(), Some("/messages/2"), "{name}");
        }
    }
}

#[test]
fn r76_a_tool_loop_that_goes_on_at_another_provider_asks_for_no_thinking_that_it_would_have_to_begin_with() {
    let store = MemoryStore::default();
    let thinking = |url: &str| {
        let mut setup = setup("run", CLAUDE, false);
        let params =
            r#"{"model":"claude-opus-4-5","max_tokens":5000,"thinking":{"type":"enabled","budget_tokens":1024}}"#;
        setup.provider.params = Json::parse(params).unwrap();
        setup.provider.url = url.into();
        setup
    };
    let call = json!({ "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "tool_use", "stop_sequence": null,
        "content": [{ "type": "thinking", "thinking": "hm", "signature": "c2ln" }, { "type": "tool_use", "id": "toolu_1", "name": "look", "input": {} }],
        "usage": { "input_tokens": 1, "output_tokens": 1 } });
    let mut host = Host::open(&store, "s", "h");
    host.start(thinking("https://api.anthropic.com/v1/messages"), "Go").unwrap();
    let mut requests = 0;
    let ended = host.drive(|_| {
        requests += 1;
        if requests == 1 { Answer::Status(200, Vec::new(), call.to_string()) } else { Answer::Hang }
    });
    assert!(ended.is_none());
    let mut other = Host::open(&store, "s", "other");
    other.resume(thinking("https://other.example/v1/messages")).unwrap();
    assert_eq!(other.drive(|_| Answer::Say(text("Done."))).unwrap().status, RunStatus::Finished);
    let body = &other.asked[0];
    assert!(!body.to_string().contains("c2ln") && body.to_string().contains("toolu_1"), "{body}");
    assert_ne!(body["thinking"]["type"], "enabled", "the loop does not begin with thinking: {body}");
    valid(body, CLAUDE);
}
