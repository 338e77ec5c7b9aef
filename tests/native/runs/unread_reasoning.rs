//! Which reasoning goes back, and what is named, where the host is not known, the answer has no record of its prefix,
//! or the service is to drop what it cannot take (R70, R76).

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::bound_reasoning::*;
use super::cuts::append_of;
use super::scripted_host::*;
use rethread::clock::Clock;
use rethread::finding::{Finding, PrefixChange};
use rethread::history::Origin;
use rethread::json::Json;
use rethread::message::{AnswerMaker, Dialect};
use rethread::render::RenderRequest;
use rethread::replay::{OnStale, Policy, Reducer, UnboundReasoning};
use rethread::run::RunSetup;
use rethread::store::MemoryStore;
use rethread::tool::Window;
use serde_json::{Value, json};

const OPUS: &str = "claude-opus-5-5";
const SONNET: &str = "claude-sonnet-5-5";
const SOL: &str = "gpt-6.2-sol";
const ASTRA: &str = "gpt-6.2-astra";

/// A request to a model at a URL.
fn asking(id: &str, dialect: Dialect, url: &str, model: &str) -> RunSetup {
    let mut setup = setup_of(id, dialect);
    setup.provider.url = url.into();
    setup.provider.params = Json::parse(&json!({ "model": model, "max_tokens": 9 }).to_string()).unwrap();
    setup
}

/// What was left out: the code, and what changed.
fn left_out(report: &[Finding]) -> Vec<(&str, PrefixChange)> {
    report.iter().filter_map(|finding| Some((finding.code.as_str(), finding.changed_by?))).collect()
}

/// Answers with reasoning, whoever is asked.
fn thought(dialect: Dialect, signature: &str) -> Answer {
    let body = match dialect {
        CLAUDE => json!({ "type": "message", "role": "assistant", "stop_reason": "end_turn", "content":
            [{ "type": "thinking", "thinking": "", "signature": signature }, { "type": "text", "text": "Hi." }] }),
        _ => json!({ "status": "completed", "output": [
            { "type": "reasoning", "id": format!("rs_{signature}"), "summary": [], "encrypted_content": signature },
            { "type": "message", "id": format!("msg_{signature}"), "role": "assistant", "status": "completed",
                "content": [{ "type": "output_text", "text": "Hi.", "annotations": [] }] },
        ] }),
    };
    Answer::Status(200, Vec::new(), body.to_string())
}

#[test]
fn r76_an_unknown_host_may_be_the_same_one_and_another_model_is_named_all_the_same() {
    const RELATIVE: &str = "/api/chat";
    for (dialect, host, model, other, code) in [
        (CLAUDE, "https://api.anthropic.com/v1/messages", OPUS, SONNET, "reasoning_unbound"),
        (RESPONSES, "https://api.openai.com/v1/responses", SOL, ASTRA, "reasoning_unbound"),
    ] {
        for (from, to) in [(host, RELATIVE), (RELATIVE, host), (RELATIVE, RELATIVE)] {
            for (asked, expected) in [(model, vec![]), (other, vec![(code, PrefixChange::Model)])] {
                let store = MemoryStore::default();
                let mut host = Host::open(&store, "s", "h");
                host.ask(asking("one", dialect, from, model), "Hello", |_| thought(dialect, "c2ln"));
                let outcome = host.ask(asking("two", dialect, to, asked), "And?", |_| thought(dialect, "bmV4dA"));
                assert_eq!(left_out(&outcome.report), expected, "{from} {to} {asked}");
                let sent = host.sent.last().map(|body| String::from_utf8_lossy(body).into_owned()).unwrap();
                assert_eq!(sent.contains("c2ln"), expected.is_empty(), "{from} {to} {asked}: {sent}");
                assert!(sent.contains("Hi."), "{sent}");
                let log = host.log.borrow();
                let maker = log.history.messages()[3].answer.as_ref().unwrap().maker.clone();
                let host = to.split("//").nth(1).map(|rest| rest.split('/').next().unwrap().to_owned());
                assert_eq!(maker, Some(AnswerMaker { host, model: Some(asked.into()) }));
            }
        }
    }
}

#[test]
fn r76_a_render_for_an_unknown_host_names_the_model_that_cannot_read_the_reasoning() {
    for (dialect, url, model, other) in [
        (CLAUDE, "https://api.anthropic.com/v1/messages", OPUS, SONNET),
        (RESPONSES, "https://api.openai.com/v1/responses", SOL, ASTRA),
    ] {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        host.ask(asking("one", dialect, url, model), "Hello", |_| thought(dialect, "c2ln"));
        for (url, asked, expected) in [
            ("about:render", model, vec![]),
            ("about:render", other, vec![("reasoning_unbound", PrefixChange::Model)]),
            ("https://other.example/v1", model, vec![("reasoning_foreign", PrefixChange::Provider)]),
        ] {
            let setup = asking("render", dialect, url, asked);
            let policy = Policy { call: setup.policy.call.clone(), ..Policy::default() };
            let request = RenderRequest {
                provider: &setup.provider,
                instructions: setup.instructions.as_deref(),
                tools: &setup.tools,
                policy: &policy,
            };
            let (log, now) = (host.log.borrow(), host.clock.now());
            let rendered = host.renderer.render(&log.history, None, &request, now).unwrap();
            assert_eq!(left_out(&rendered.report), expected, "{dialect:?} {url} {asked}");
            assert_eq!(String::from_utf8_lossy(&rendered.body).contains("c2ln"), expected.is_empty());
        }
    }
}

#[test]
fn r70_drop_block_lets_the_service_drop_the_reasoning_of_another_model() {
    for (dialect, model, other, parameter) in
        [(CLAUDE, OPUS, SONNET, true), (RESPONSES, SOL, ASTRA, false), (CLAUDE, OPUS, "claude-opus-4-5", false)]
    {
        for (policy, has_parameter) in
            [(UnboundReasoning::DropBlock, parameter), (UnboundReasoning::Omit, false), (UnboundReasoning::Send, false)]
        {
            let store = MemoryStore::default();
            let mut host = Host::open(&store, "s", "h");
            let url = "https://api.example.com/v1";
            host.ask(asking("one", dialect, url, model), "Hello", |_| thought(dialect, "c2ln"));
            let mut setup = asking("two", dialect, url, other);
            setup.policy.call.unbound_reasoning = Some(policy);
            let outcome = host.ask(setup, "And?", |_| thought(dialect, "bmV4dA"));
            let sent: Value = serde_json::from_slice(host.sent.last().unwrap()).unwrap();
            assert_eq!(sent.to_string().contains("drop_block"), has_parameter, "{policy:?} {other} {sent}");
            // A model that binds nothing takes the thinking of each of its family.
            let is_sent = has_parameter || policy == UnboundReasoning::Send || other == "claude-opus-4-5";
            assert_eq!(sent.to_string().contains("c2ln"), is_sent, "{policy:?} {other}");
            let expected = if is_sent { vec![] } else { vec![("reasoning_unbound", PrefixChange::Model)] };
            assert_eq!(left_out(&outcome.report), expected, "{policy:?} {other}");
        }
    }
}

#[test]
fn r70_drop_block_sends_what_changed_only_where_the_service_has_the_parameter() {
    for (dialect, model, is_sent) in [(CLAUDE, OPUS, true), (RESPONSES, SOL, false)] {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        host.ask(asking("one", dialect, "https://a.example", model), "Hello", |_| thought(dialect, "c2ln"));
        let mut setup = asking("two", dialect, "https://a.example", model);
        setup.policy.call.unbound_reasoning = Some(UnboundReasoning::DropBlock);
        let outcome = host
            .ask(RunSetup { instructions: Some("Be long.".into()), ..setup }, "And?", |_| thought(dialect, "bmV4dA"));
        let expected = if is_sent { vec![] } else { vec![("reasoning_unbound", PrefixChange::Instructions)] };
        assert_eq!(left_out(&outcome.report), expected, "{dialect:?}");
        assert_eq!(String::from_utf8_lossy(host.sent.last().unwrap()).contains("c2ln"), is_sent);
    }
}

/// Two answers without a record of their prefix, the second after a call, in the form of a dialect.
fn imported(dialect: Dialect) -> Value {
    match dialect {
        CLAUDE => json!({ "messages": [
            { "role": "user", "content": "First." },
            { "role": "assistant", "content": [{ "type": "thinking", "thinking": "", "signature": "sig-first" },
                { "type": "tool_use", "id": "call_old", "name": "look", "input": {} }] },
            { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "call_old", "content": "r" }] },
            { "role": "assistant", "content": [{ "type": "thinking", "thinking": "", "signature": "sig-second" },
                { "type": "text", "text": "Seen." }] },
            { "role": "user", "content": "More." },
            { "role": "assistant", "content": [{ "type": "thinking", "thinking": "", "signature": "sig-third" },
                { "type": "text", "text": "So." }] },
        ] }),
        _ => {
            let reasoning = |name: &str| json!({ "type": "reasoning", "id": format!("rs_{name}"), "summary": [], "encrypted_content": format!("sig-{name}") });
            let says = |id: &str, text: &str| {
                json!({ "type": "message", "id": id, "role": "assistant", "status": "completed",
                    "content": [{ "type": "output_text", "annotations": [], "text": text }] })
            };
            json!({ "input": [
                { "role": "user", "content": "First." },
                reasoning("first"),
                { "type": "function_call", "id": "fc_1", "call_id": "call_old", "name": "look", "arguments": "{}", "status": "completed" },
                { "type": "function_call_output", "call_id": "call_old", "output": "r" },
                reasoning("second"),
                says("msg_1", "Seen."),
                { "role": "user", "content": "More." },
                reasoning("third"),
                says("msg_2", "So."),
            ] })
        }
    }
}

/// What changes a request before reasoning, and which of the three is still sent.
type Cause = (PrefixChange, fn(&mut RunSetup), &'static [&'static str]);

#[test]
fn r70_without_a_record_of_the_prefix_the_finding_names_what_the_request_changes_before_it() {
    let causes: [Cause; 4] = [
        // The reasoning of a round goes with it.
        (PrefixChange::Freshness, |setup| setup.policy.call.freshness = Some(Window::Millis(0)), &[]),
        (
            PrefixChange::Freshness,
            |setup| {
                setup.policy.call.freshness = Some(Window::Millis(0));
                setup.policy.call.on_stale = Some(OnStale::Placeholder);
            },
            &["first"],
        ),
        (
            PrefixChange::Reducer,
            |setup| setup.policy.call.reducers = Some(vec![Reducer::SlidingTurns { turns: 2 }]),
            &[],
        ),
        // What no mark knows of is not compared.
        (
            PrefixChange::Instructions,
            |setup| setup.instructions = Some("Be long.".into()),
            &["first", "second", "third"],
        ),
    ];
    for dialect in BINDING {
        for (cause, change, kept) in &causes {
            let store = MemoryStore::default();
            let mut host = Host::open(&store, "s", "h");
            append_of(&host, dialect, &imported(dialect), Origin { at: 1_000, ..Origin::default() });
            let mut setup = setup_of("run", dialect);
            change(&mut setup);
            let outcome = host.ask(setup, "Go", |_| Answer::Say(text("Done.")));
            let sent = String::from_utf8_lossy(&host.sent[0]).into_owned();
            let is_sent = |name: &&str| sent.contains(&format!("sig-{name}"));
            let found: Vec<&str> = ["first", "second", "third"].into_iter().filter(is_sent).collect();
            assert_eq!(&found, kept, "{dialect:?} {cause:?}");
            let left_out = left_out(&outcome.report);
            assert_eq!(left_out.is_empty(), kept.len() == 3, "{left_out:?}");
            assert!(left_out.iter().all(|found| *found == ("reasoning_unbound", *cause)), "{dialect:?} {left_out:?}");
        }
    }
}

#[test]
fn r70_reasoning_without_a_record_goes_with_that_which_is_left_out_before_it() {
    for (dialect, model, other) in [(CLAUDE, OPUS, SONNET), (RESPONSES, SOL, ASTRA)] {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let url = "https://api.example.com/v1";
        host.ask(asking("one", dialect, url, model), "Hello", |_| thought(dialect, "c2ln"));
        append_of(&host, dialect, &imported(dialect), Origin { at: 1_000_000, ..Origin::default() });
        let outcome = host.ask(asking("two", dialect, url, model), "And?", |_| thought(dialect, "bmV4dA"));
        assert_eq!(left_out(&outcome.report), [], "{dialect:?}");
        let outcome = host.ask(asking("three", dialect, url, other), "And?", |_| thought(dialect, "bmV4dB"));
        let found = left_out(&outcome.report);
        assert!(found.len() >= 4 && found.iter().all(|(_, change)| *change == PrefixChange::Model), "{found:?}");
        assert!(!String::from_utf8_lossy(host.sent.last().unwrap()).contains("sig-"), "{dialect:?}");
    }
}
