//! R70: reasoning goes back only where everything before it is what it was when the reasoning was made.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::cuts::append_of;
use super::scripted_host::*;
use super::{binding_provider::BindingProvider, reopened};
use rethread::clock::Clock;
use rethread::finding::{Finding, PrefixChange};
use rethread::history::Origin;
use rethread::json::Json;
use rethread::message::{Dialect, Source, SourceKind};
use rethread::replay::{Callback, Citations, PolicyLayer, Reducer, ReplayChanges, UnboundReasoning};
use rethread::run::{Handoff, PersistReply, Persistence, RunEvent, RunSetup, RunStatus};
use rethread::store::MemoryStore;
use rethread::tool::Window;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::rc::Rc;

pub const BINDING: [Dialect; 2] = [CLAUDE, RESPONSES];

pub fn callback(id: u32) -> Callback {
    Callback { id, hook: Rc::new(()) }
}

pub fn setup_of(id: &str, dialect: Dialect) -> RunSetup {
    let mut setup = setup(id, dialect, false);
    let model = if dialect == CLAUDE { "claude-opus-5-5" } else { "gpt-6.2-sol" };
    setup.provider.params = params(model);
    setup.policy.call = PolicyLayer { freshness: Some(Window::Always), ..PolicyLayer::default() };
    setup
}

fn params(model: &str) -> Json {
    Json::parse(&json!({ "model": model, "max_tokens": 9 }).to_string()).unwrap()
}

/// Two calls, then an answer.
fn one_round(body: &Value) -> Say {
    let count = ["messages", "input"].iter().find_map(|list| body[list].as_array()).unwrap().len();
    let [first, second] = ["a", "b"].map(|name| format!("call_{name}_{count}"));
    match rounds_in(body) {
        0 => calls(&[(&first, "look", r#"{"n":1}"#), (&second, "find", r#"{"n":2}"#)]),
        _ => text("Done."),
    }
}

/// The same with ids that were used before.
fn same_ids(body: &Value) -> Say {
    match rounds_in(body) {
        0 => calls(&[("call_a", "look", "{}"), ("call_b", "find", "{}")]),
        _ => text("Done."),
    }
}

/// A chat with a provider that binds reasoning.
pub struct Chat<'s> {
    pub host: Host<'s>,
    pub provider: RefCell<BindingProvider>,
    turns: usize,
    /// The signatures in each request.
    pub sent: RefCell<Vec<Vec<String>>>,
    pub between: bool,
}

impl<'s> Chat<'s> {
    pub fn new(store: &'s MemoryStore, dialect: Dialect) -> Self {
        let provider = RefCell::new(BindingProvider::new(dialect));
        Self { host: Host::open(store, "s", "h"), provider, turns: 0, sent: RefCell::default(), between: false }
    }

    pub fn drive(&mut self, say: impl Fn(&Value) -> Say) -> Vec<Finding> {
        let Self { host, provider, sent, between, .. } = self;
        let outcome = host.drive(|body| answer(&mut provider.borrow_mut(), sent, *between, body, &say(body))).unwrap();
        assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
        self.turns += 1;
        outcome.report
    }

    /// A turn with a round of calls.
    pub fn ask(&mut self, setup: RunSetup) -> Vec<Finding> {
        self.host.start(setup, "Go").unwrap();
        self.drive(one_round)
    }

    /// A turn without calls.
    pub fn tell(&mut self, setup: RunSetup) -> Vec<Finding> {
        self.host.start(setup, "Well?").unwrap();
        self.drive(|_| text("Well."))
    }

    pub fn last_sent(&self) -> Vec<String> {
        self.sent.borrow().last().cloned().unwrap()
    }

    pub fn made(&self) -> Vec<String> {
        self.provider.borrow().made()
    }
}

/// Answers as the provider does, and notes which reasoning it got.
pub fn answer(
    provider: &mut BindingProvider,
    sent: &RefCell<Vec<Vec<String>>>,
    between: bool,
    body: &Value,
    say: &Say,
) -> Answer {
    let kept = provider.check(body).unwrap_or_else(|refusal| panic!("400: {refusal}"));
    sent.borrow_mut().push(kept);
    Answer::Status(200, Vec::new(), provider.answer(body, say, between))
}

/// The causes of what was left out, each once.
pub fn causes(report: &[Finding]) -> Vec<PrefixChange> {
    let mut causes: Vec<PrefixChange> = report.iter().filter_map(|finding| finding.changed_by).collect();
    causes.dedup();
    causes
}

#[test]
fn r70_where_nothing_changed_all_reasoning_goes_back() {
    for dialect in BINDING {
        for between in [false, true] {
            let store = MemoryStore::default();
            let mut chat = Chat::new(&store, dialect);
            chat.between = between;
            for turn in 0..4 {
                let before = chat.made();
                let report = chat.ask(setup_of(&format!("run{turn}"), dialect));
                assert_eq!(causes(&report), [], "{report:?}");
                let sent = chat.sent.borrow();
                assert_eq!(sent[sent.len() - 2], before, "{dialect:?}");
                assert!(sent[sent.len() - 1].len() > before.len());
                drop(sent);
                chat.host = reopened(&chat.host);
            }
        }
    }
}

#[test]
fn r70_a_stale_result_takes_the_reasoning_after_it_and_later_reasoning_is_kept() {
    for dialect in BINDING {
        let store = MemoryStore::default();
        let mut chat = Chat::new(&store, dialect);
        let fresh_for = |id: &str| {
            let mut setup = setup_of(id, dialect);
            setup.policy.call.freshness = Some(Window::Millis(60_000));
            setup
        };
        chat.ask(fresh_for("one"));
        chat.tell(fresh_for("two"));
        assert_eq!(chat.last_sent().len(), 2, "the result is fresh");
        chat.host.clock.advance(70_000);
        let report = chat.tell(fresh_for("three"));
        assert_eq!(chat.last_sent(), [] as [&str; 0]);
        assert_eq!(causes(&report), [PrefixChange::Freshness]);
        let unbound = report.iter().filter(|finding| finding.code.as_str() == "reasoning_unbound");
        assert!(unbound.clone().all(|finding| finding.message_id.is_some() && finding.action.is_some()));
        assert_eq!(unbound.count(), 2);
        // What was made after that stays.
        chat.tell(fresh_for("four"));
        chat.tell(fresh_for("five"));
        assert_eq!(chat.last_sent(), chat.made()[3..5]);
    }
}

/// Runs a turn in which something before the stored reasoning differs.
type Change = fn(&mut Chat<'_>, RunSetup) -> Vec<Finding>;

fn changes() -> [(PrefixChange, Change); 7] {
    [
        (PrefixChange::Instructions, |chat, setup| {
            chat.tell(RunSetup { instructions: Some("Be long.".into()), ..setup })
        }),
        (PrefixChange::Tools, |chat, mut setup| {
            setup.tools.pop();
            chat.tell(setup)
        }),
        (PrefixChange::Model, |chat, mut setup| {
            let other = if setup.provider.dialect == CLAUDE { "claude-sonnet-5-5" } else { "gpt-6.2-astra" };
            setup.provider.params = params(other);
            chat.tell(setup)
        }),
        (PrefixChange::Provider, |chat, mut setup| {
            setup.provider.url = "https://other.example/v1".into();
            chat.tell(setup)
        }),
        (PrefixChange::Reducer, |chat, mut setup| {
            setup.policy.call.reducers = Some(vec![Reducer::SlidingTurns { turns: 2 }]);
            chat.tell(setup)
        }),
        (PrefixChange::Filter, |chat, setup| {
            chat.host.filter = Box::new(|mut body| {
                let list = if body["input"].is_array() { "input" } else { "messages" };
                body[list][0]["content"] = json!("Something else");
                Ok(body)
            });
            chat.tell(RunSetup { input_filter: Some(callback(1)), ..setup })
        }),
        (PrefixChange::Branch, |chat, mut setup| {
            // Another tab stores a turn before this run's own.
            let mut other = Host::open(chat.host.store, "s", "other");
            chat.host = Host::open(chat.host.store, "s", "h2");
            setup.id = "mine".into();
            chat.host.start(setup, "Go").unwrap();
            let (store, other) = (chat.host.store, RefCell::new(&mut other));
            let report = chat.drive(|body| {
                if rounds_in(body) == 0 {
                    let setup = super::scripted_host::setup("theirs", CHAT, false);
                    other.borrow_mut().ask(setup, "Hello", |_| Answer::Say(text("Hi.")));
                }
                one_round(body)
            });
            chat.host = Host::open(store, "s", "h3");
            report
        }),
    ]
}

#[test]
fn r70_the_finding_names_what_changed_the_prefix() {
    for dialect in BINDING {
        for (cause, change) in changes() {
            let store = MemoryStore::default();
            let mut chat = Chat::new(&store, dialect);
            chat.ask(setup_of("one", dialect));
            chat.ask(setup_of("two", dialect));
            let report = change(&mut chat, setup_of("three", dialect));
            if cause == PrefixChange::Branch {
                let report = chat.tell(setup_of("after", dialect));
                assert_eq!(causes(&report), [PrefixChange::Branch], "{dialect:?}");
                continue;
            }
            assert_eq!(causes(&report), [cause], "{dialect:?} {report:#?}");
            assert_eq!(chat.last_sent(), [] as [&str; 0], "{dialect:?} {cause:?}");
            // Back to what it was: the first reasoning is accepted again, that of the changed request is not.
            chat.host.filter = Box::new(|body| panic!("nobody asked for {body}"));
            chat.tell(setup_of("four", dialect));
            assert_eq!(chat.last_sent(), chat.made()[..4], "{dialect:?} {cause:?}");
        }
    }
}

#[test]
fn r70_provided_messages_and_redacted_payloads_change_what_precedes_later_reasoning() {
    for dialect in BINDING {
        let store = MemoryStore::default();
        let mut chat = Chat::new(&store, dialect);
        let fact = json!([{ "provider": "rag", "type": "context", "messages": [{ "role": "user", "parts": [{ "type": "text", "text": "fact" }] }] }]);
        chat.host.start_provided(setup_of("one", dialect), "Go", &fact).unwrap();
        assert_eq!(causes(&chat.drive(one_round)), []);
        assert_eq!(chat.last_sent().len(), 1, "inside the run its own reasoning goes back");
        let report = chat.tell(setup_of("two", dialect));
        assert_eq!(causes(&report), [PrefixChange::HistoryProvider]);

        let store = MemoryStore::default();
        let mut chat = Chat::new(&store, dialect);
        chat.host.persist = Box::new(|_| PersistReply::Replaced {
            arguments: None,
            result: Some(Json::parse(r#""kept apart""#).unwrap()),
        });
        let mut redacting = setup_of("one", dialect);
        redacting.persist.insert("look".into(), callback(2));
        chat.ask(redacting);
        assert_eq!(chat.last_sent().len(), 1);
        let report = chat.tell(setup_of("two", dialect));
        assert_eq!(causes(&report), [PrefixChange::Redaction], "{report:#?}");
        assert_eq!(chat.last_sent().len(), 1, "the first reasoning precedes the redacted call");
    }
}

#[test]
fn r70_an_appended_message_with_the_source_of_a_provider_changes_nothing() {
    for dialect in BINDING {
        let store = MemoryStore::default();
        let mut chat = Chat::new(&store, dialect);
        let source = Source { kind: SourceKind::Context, id: Some("rag".into()) };
        let fact = json!({ "messages": [{ "role": "user", "content": "The fact." }] });
        append_of(&chat.host, CHAT, &fact, Origin { at: 1_000_000, source, ..Origin::default() });
        let fresh_for = |id: &str| {
            let mut setup = setup_of(id, dialect);
            setup.policy.call.freshness = Some(Window::Millis(60_000));
            setup
        };
        chat.ask(fresh_for("one"));
        assert_eq!(causes(&chat.tell(fresh_for("two"))), []);
        chat.host.clock.advance(70_000);
        assert_eq!(causes(&chat.tell(fresh_for("three"))), [PrefixChange::Freshness], "{dialect:?}");
        // Nothing is known of what preceded reasoning that was appended.
        let answer = match dialect {
            CLAUDE => json!([
                { "role": "user", "content": "Why?" },
                { "role": "assistant", "content": [
                    { "type": "thinking", "thinking": "Hm.", "signature": "sig-appended" }, { "type": "text", "text": "So." },
                ] },
            ]),
            _ => json!([
                { "role": "user", "content": "Why?" },
                { "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "sig-appended" },
                { "type": "message", "id": "msg_a", "role": "assistant", "status": "completed",
                    "content": [{ "type": "output_text", "annotations": [], "text": "So." }] },
            ]),
        };
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let source = Source { kind: SourceKind::Context, id: Some("rag".into()) };
        append_of(&host, CHAT, &fact, Origin { at: 1_000_000, source, ..Origin::default() });
        let list = if dialect == CLAUDE { "messages" } else { "input" };
        append_of(&host, dialect, &json!({ list: answer }), Origin { at: 1_000_000, ..Origin::default() });
        let outcome = host.ask(setup_of("four", dialect), "Go", |_| Answer::Say(text("Done.")));
        assert_eq!(causes(&outcome.report), [], "{dialect:?}");
        assert!(String::from_utf8_lossy(&host.sent[0]).contains("sig-appended"), "{dialect:?}");
    }
}

#[test]
fn r70_a_handoff_leaves_the_reasoning_of_the_other_agent_out_on_both_sides() {
    for dialect in BINDING {
        let store = MemoryStore::default();
        let mut chat = Chat::new(&store, dialect);
        let setup = setup_of("one", dialect);
        let handoff = Handoff {
            name: "billing".into(),
            instructions: Some("You are billing.".into()),
            tools: setup.tools.clone(),
            tool_settings: setup.tool_settings.clone(),
            ..Handoff::default()
        };
        let mut handoff = Some(handoff);
        chat.host.handoff_of_tool = Box::new(move |name| handoff.take().filter(|_| name == "look"));
        let report = chat.ask(setup);
        assert_eq!(causes(&report), [PrefixChange::Handoff]);
        assert_eq!(chat.last_sent(), [] as [&str; 0]);
        let report = chat.tell(setup_of("two", dialect));
        assert_eq!(causes(&report), [PrefixChange::Handoff], "{report:#?}");
        assert_eq!(chat.last_sent(), chat.made()[..1]);
    }
}

#[test]
fn r70_uncited_sources_change_what_precedes_the_reasoning_of_the_answer() {
    for dialect in BINDING {
        let store = MemoryStore::default();
        let mut chat = Chat::new(&store, dialect);
        let sources = r#"[{"source_number":1,"content":"one"},{"source_number":2,"content":"two"}]"#;
        chat.host.tool = Box::new(move |_, _| (Json::parse(&json!(sources).to_string()).unwrap(), false));
        let cited = |id: &str| {
            let mut setup = setup_of(id, dialect);
            setup.policy.call.citations = Some(Citations::Replay);
            setup
        };
        chat.host.start(cited("one"), "Go").unwrap();
        chat.drive(|body| match rounds_in(body) {
            0 => calls(&[("call_a", "look", "{}")]),
            _ => text("It is [source2]."),
        });
        let report = chat.tell(cited("two"));
        assert_eq!(causes(&report), [PrefixChange::Citation], "{report:#?}");
        assert_eq!(chat.last_sent(), chat.made()[..1]);
    }
}

#[test]
fn r70_reasoning_between_calls_goes_with_a_call_that_is_left_out_before_it() {
    for dialect in BINDING {
        let store = MemoryStore::default();
        let mut chat = Chat::new(&store, dialect);
        chat.between = true;
        chat.ask(setup_of("one", dialect));
        let mut setup = setup_of("two", dialect);
        setup.policy.call.tool_freshness.insert("look".into(), Window::Millis(0));
        chat.host.clock.advance(1_000);
        chat.tell(setup);
        assert!(chat.last_sent().len() <= 1, "{:?}", chat.last_sent());
    }
}

#[test]
fn r70_reasoning_between_calls_goes_with_a_call_whose_arguments_are_not_stored() {
    for dialect in BINDING {
        let store = MemoryStore::default();
        let mut chat = Chat::new(&store, dialect);
        chat.between = true;
        chat.host.persist = Box::new(|_| PersistReply::Replaced {
            arguments: Some(Json::parse(r#"{"n":"kept apart"}"#).unwrap()),
            result: None,
        });
        let mut redacting = setup_of("one", dialect);
        redacting.persist.insert("look".into(), callback(2));
        chat.ask(redacting);
        let report = chat.tell(setup_of("two", dialect));
        assert_eq!(causes(&report), [PrefixChange::Redaction], "{report:#?}");
        assert_eq!(chat.last_sent(), [] as [&str; 0], "the answer has its reasoning whole, or none");
    }
}

#[test]
fn r70_reasoning_between_calls_goes_with_a_call_that_is_renamed_before_it() {
    for dialect in BINDING {
        let store = MemoryStore::default();
        let mut chat = Chat::new(&store, dialect);
        chat.between = true;
        for (turn, kept) in [("one", 2), ("two", 3)] {
            chat.host.start(setup_of(turn, dialect), "Go").unwrap();
            chat.drive(same_ids);
            assert_eq!(chat.last_sent().len(), kept, "{dialect:?}");
        }
    }
}

#[test]
fn r70_send_sends_it_and_a_model_that_does_not_bind_gets_all() {
    for (policy, model) in [(UnboundReasoning::Send, "claude-opus-5-5"), (UnboundReasoning::Omit, "claude-opus-4-5")] {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let mut provider = BindingProvider::new(CLAUDE);
        let setup = |id: &str, instructions: &str| {
            let mut setup = setup_of(id, CLAUDE);
            setup.policy.call.unbound_reasoning = Some(policy);
            setup.provider.params = params(model);
            RunSetup { instructions: Some(instructions.into()), ..setup }
        };
        host.ask(setup("one", "A"), "Go", |body| Answer::Status(200, vec![], provider.answer(body, &text("x"), false)));
        let mut bodies = Vec::new();
        let outcome = host.ask(setup("two", "B"), "Go", |body| {
            bodies.push(body.to_string());
            Answer::Status(200, vec![], provider.answer(body, &text("x"), false))
        });
        assert!(bodies[0].contains("sig-0"), "{bodies:?}");
        assert_eq!(causes(&outcome.report), []);
    }
}

#[test]
fn r70_r72_reasoning_goes_back_until_a_cut_drops_what_precedes_it() {
    for dialect in BINDING {
        let store = MemoryStore::default();
        let mut chat = Chat::new(&store, dialect);
        chat.between = true;
        let at_cuts = |id: &str| {
            let mut setup = setup_of(id, dialect);
            setup.policy.call.freshness = Some(Window::Millis(60_000));
            setup.policy.call.changes = Some(ReplayChanges::AtCuts);
            setup
        };
        for turn in 0..3 {
            let before = chat.made();
            let report = chat.ask(at_cuts(&format!("run{turn}")));
            assert_eq!(causes(&report), [], "{report:?}");
            let sent = chat.sent.borrow();
            assert_eq!(sent[sent.len() - 2], before, "{dialect:?}");
            drop(sent);
            let passed = chat.host.clock.now() - 1_000_000 + 240_000;
            chat.host = reopened(&chat.host);
            chat.host.clock.advance(passed);
        }
        chat.host.clock.advance(100_000);
        let report = chat.tell(at_cuts("late"));
        assert_eq!(causes(&report), [PrefixChange::Freshness], "{report:?}");
        // It stays out, and what was made since stays.
        let made = chat.made();
        let report = chat.tell(at_cuts("later"));
        assert!(!report.is_empty());
        assert_eq!(chat.last_sent(), made.last().cloned().into_iter().collect::<Vec<_>>(), "{dialect:?}");
    }
}

#[test]
fn r72_each_call_says_how_much_of_the_last_body_it_repeats() {
    for dialect in [CLAUDE, RESPONSES, CHAT] {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        host.ask(setup_of("one", dialect), "Go", three_tools);
        let mut longer = setup_of("two", dialect);
        longer.instructions = Some("Be long.".into());
        host.ask(longer, "And?", |_| Answer::Say(text("Yes.")));
        let reuses: Vec<_> = host
            .events
            .iter()
            .filter_map(|event| match event {
                RunEvent::ModelCalled { prefix, .. } => Some(*prefix),
                _ => None,
            })
            .collect();
        assert_eq!(reuses.len(), 4);
        assert_eq!((reuses[0].reused_bytes, reuses[0].changed_by), (0, None));
        for (at, reuse) in reuses.iter().enumerate().take(3).skip(1) {
            let list = if dialect == RESPONSES { "input" } else { "messages" };
            let length: usize =
                host.asked[at - 1][list].as_array().unwrap().iter().map(|m| m.to_string().len() + 1).sum();
            assert_eq!((reuse.reused_bytes, reuse.changed_by), (length, None), "{dialect:?} {at}");
        }
        assert_eq!((reuses[3].reused_bytes, reuses[3].changed_by), (0, Some(PrefixChange::Instructions)));
    }
}

#[test]
fn r21_r70_the_head_is_told_once_that_the_service_drops_reasoning_with_a_save_of_history() {
    for (persistence, histories) in [(Persistence::Run, 1), (Persistence::Call, 3), (Persistence::Result, 6)] {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let dropping = |id: &str, policy| {
            let mut setup = setup_of(id, CLAUDE);
            setup.policy.call.unbound_reasoning = policy;
            RunSetup { persistence, ..setup }
        };
        host.ask(dropping("one", Some(UnboundReasoning::DropBlock)), "Go", three_tools);
        let writes = std::mem::take(&mut host.writes);
        assert_eq!(writes.iter().filter(|(adds, _)| *adds).count(), histories, "{persistence:?} {writes:?}");
        assert!(writes.len() > histories, "{writes:?}");
        let edits: Vec<_> = writes.iter().filter(|(_, edits)| *edits).collect();
        assert_eq!(edits, [&(true, true)], "{persistence:?} {writes:?}");
        assert!(host.log.borrow().head.has_dropped);
        // Later runs let the service drop it, too, and tell the head nothing.
        for policy in [None, Some(UnboundReasoning::DropBlock)] {
            let mut setup = dropping(if policy.is_none() { "two" } else { "three" }, policy);
            setup.policy.has_dropped = host.log.borrow().head.has_dropped;
            host.ask(setup, "Go", three_tools);
            let body: Value = serde_json::from_slice(host.sent.last().unwrap()).unwrap();
            assert_eq!(body["thinking"]["block_binding"]["prefix_mismatch_behavior"], "drop_block");
            assert!(host.writes.iter().all(|(_, edits)| !edits), "{policy:?} {:?}", host.writes);
        }
    }
}

#[test]
fn r21_r70_a_failed_run_tells_the_head_that_the_service_drops_reasoning() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let mut setup = setup_of("one", CLAUDE);
    setup.policy.call.unbound_reasoning = Some(UnboundReasoning::DropBlock);
    let outcome = host.ask(setup, "Go", |_| Answer::Status(400, vec![], "no".into()));
    assert_eq!(outcome.status, RunStatus::Failed);
    assert_eq!(host.writes.iter().map(|(_, edits)| *edits).collect::<Vec<_>>(), [false, true]);
    assert!(host.log.borrow().head.has_dropped);
}

#[test]
fn r63_r70_of_many_reports_of_dropped_reasoning_the_first_have_their_place_and_the_others_are_counted() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let mut provider = BindingProvider::new(RESPONSES);
    host.ask(setup_of("one", RESPONSES), "Go", |body| {
        Answer::Status(200, vec![], provider.answer(body, &text("x"), false))
    });
    let entry = |id: &str| json!({ "type": "reasoning", "action": "removed", "id": id, "reason": "prefix_mismatch" });
    let mut entries = vec![entry("rs_sig-0"), entry("rs_sig-0"), entry("rs_nobody")];
    entries.extend((0..10_000).map(|number| entry(&format!("rs_{number}"))));
    let outcome = host.ask(setup_of("two", RESPONSES), "And?", |body| {
        let mut answer: Value = serde_json::from_str(&provider.answer(body, &text("y"), false)).unwrap();
        answer["input_transformations"] = json!(entries);
        Answer::Status(200, vec![], answer.to_string())
    });
    assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
    let dropped: Vec<_> = outcome.report.iter().filter(|found| found.code.as_str() == "reasoning_dropped").collect();
    assert_eq!(dropped.len(), 1_000);
    let paths: Vec<_> = dropped.iter().take(4).map(|finding| finding.path.as_deref()).collect();
    assert_eq!(paths, [Some("/input/1"), Some("/input/1"), None, None]);
    assert!(dropped.iter().all(|finding| finding.reason.as_deref() == Some("prefix_mismatch")));
    let counted = outcome.report.last().unwrap();
    assert_eq!(counted.message, "There are 9003 more findings: 9003 reasoning_dropped.");
}

#[test]
fn r68_r70_of_what_became_of_reasoning_words_alone_are_shown() {
    const KEY: &str = "sk-ant-SECRET";
    let entries = [
        (CLAUDE, json!({ "type": "thinking_dropped", "path": KEY, "reason": KEY })),
        (RESPONSES, json!({ "type": "reasoning", "action": "removed", "id": KEY, "reason": KEY })),
    ];
    for (dialect, entry) in entries {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let mut provider = BindingProvider::new(dialect);
        let outcome = host.ask(setup_of("one", dialect), "Go", |body| {
            let mut answer: Value = serde_json::from_str(&provider.answer(body, &text("x"), false)).unwrap();
            answer["input_transformations"] = json!([entry]);
            Answer::Status(200, vec![], answer.to_string())
        });
        assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
        let found = outcome.report.iter().find(|found| found.code.as_str() == "reasoning_dropped").unwrap();
        assert_eq!((found.reason.as_deref(), found.path.as_deref()), (Some("other"), None));
        assert!(!format!("{:?} {:?}", outcome.report, host.events).contains(KEY));
    }
}
