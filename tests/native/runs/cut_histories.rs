//! R72: what a request repeats while others append to the history, with `changes: "at_cuts"`.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::cuts::{MINUTE, append, append_of, ask, at_cuts, cuts, imported, open_at, prefixes};
use super::prefixes::{callback, check_extends, open, say};
use super::scripted_host::*;
use rethread::clock::Clock;
use rethread::finding::PrefixChange;
use rethread::history::{History, Origin, ProvidedMessages, join_provided};
use rethread::json::Json;
use rethread::message::{Source, SourceKind};
use rethread::owner::StateOwner;
use rethread::render::{LastRequest, RenderInput, RenderRequest, RenderStep};
use rethread::replay::{Cut, HistoryScope, QuestionKind, Reducer, ReducerReplies, ReducerReply};
use rethread::run::{RunSetup, RunStatus};
use rethread::store::MemoryStore;
use serde_json::{Value, json};
use std::cell::Cell;
use std::rc::Rc;

#[test]
fn r72_what_was_never_sent_is_judged_when_it_is_sent_first_and_then_stays() {
    for dialect in [CHAT, CLAUDE] {
        let store = MemoryStore::default();
        let mut host = open_at(&store, "h", 1_000_000);
        ask(&mut host, at_cuts("one", dialect), 1);
        let now = host.clock.now();
        append(&host, CHAT, &imported(1), now - 2 * MINUTE);
        append(&host, CHAT, &imported(2), now);
        for turn in 0..3 {
            host.clock.advance(2 * MINUTE / 3);
            ask(&mut host, at_cuts(&format!("two{turn}"), dialect), 1);
        }
        assert!(cuts(&host.events).iter().all(Option::is_none));
        host.sent.windows(2).for_each(|pair| check_extends(&pair[0], &pair[1], dialect));
        let body = String::from_utf8(host.sent.last().unwrap().clone()).unwrap();
        assert_eq!(body.matches("imported result").count(), 1, "{body}");
        assert!(body.contains("call_import2") && !body.contains("call_import1"), "{body}");
    }
}

#[test]
fn r72_a_result_that_comes_after_its_call_was_sent_as_interrupted_is_sent_at_once() {
    let store = MemoryStore::default();
    let mut host = open_at(&store, "h", 1_000_000);
    ask(&mut host, at_cuts("one", CHAT), 1);
    let mut call = imported(1);
    let result = call["messages"].as_array_mut().unwrap().remove(2);
    let now = host.clock.now();
    append(&host, CHAT, &call, now);
    ask(&mut host, at_cuts("two", CHAT), 1);
    assert!(String::from_utf8_lossy(&host.sent[2]).contains("Interrupted"));
    append(&host, CHAT, &json!({"messages": [result]}), now);
    host.events.clear();
    ask(&mut host, at_cuts("three", CHAT), 1);
    assert!(String::from_utf8_lossy(host.sent.last().unwrap()).contains("imported result"));
    assert_eq!(cuts(&host.events), [None, None]);
    assert_eq!(prefixes(&host.events)[0].changed_by, Some(PrefixChange::Branch));
}

#[test]
fn r72_a_result_that_a_summary_does_not_contain_is_a_cut() {
    let (store, asked) = (MemoryStore::default(), Rc::new(Cell::new(0)));
    let mut host = open(&store, "h", 1_000_000, &asked);
    let mut call = imported(1);
    let result = call["messages"].as_array_mut().unwrap().remove(2);
    append(&host, CHAT, &call, 1_000_000);
    let setup = |id: &str| {
        let mut setup = at_cuts(id, CHAT);
        setup.policy.call.reducers = Some(vec![Reducer::Summarize { target: 1, threshold: 0, summarize: callback(2) }]);
        setup
    };
    ask(&mut host, setup("one"), 1);
    assert!(String::from_utf8_lossy(&host.sent[0]).contains("Summary 1."));
    host.events.clear();
    append(&host, CHAT, &json!({"messages": [result]}), 1_000_000);
    ask(&mut host, setup("two"), 1);
    assert_eq!(cuts(&host.events)[0], Some(Cut::History));
}

fn fact_of(kind: SourceKind, at: u64) -> (Value, Origin) {
    let source = Source { kind, id: Some("rag".into()) };
    (json!({"messages": [{"role": "user", "content": "The fact."}]}), Origin { at, source, ..Origin::default() })
}

#[test]
fn r72_an_appended_message_with_the_source_of_a_provider_stays_in_each_request() {
    for kind in [SourceKind::Context, SourceKind::History] {
        for reduces in [false, true] {
            let store = MemoryStore::default();
            let mut host = open(&store, "h", 1_000_000, &Rc::default());
            if reduces {
                // The message is stored nowhere as it is sent.
                host.reducer = Box::new(|question| match question {
                    QuestionKind::Reduce(messages) => {
                        let messages = messages.as_str().replace("The fact.", "The fact. In short.");
                        ReducerReply::Messages(Json::parse(&messages).unwrap())
                    }
                    other => panic!("{other:?}"),
                });
            }
            let setup = |id: &str| {
                let mut setup = at_cuts(id, CHAT);
                setup.policy.call.reducers = reduces.then(|| vec![Reducer::Custom { reduce: callback(3) }]);
                setup
            };
            let (body, origin) = fact_of(kind, 1_000_000);
            append_of(&host, CHAT, &body, origin);
            ask(&mut host, setup("one"), 1);
            if !reduces {
                let (body, origin) = fact_of(kind, 1_000_000);
                append_of(&host, CHAT, &body, origin);
            }
            for turn in 0..3 {
                ask(&mut host, setup(&format!("run{turn}")), 1);
            }
            assert!(cuts(&host.events).iter().all(Option::is_none));
            host.sent.windows(2).for_each(|pair| check_extends(&pair[0], &pair[1], CHAT));
            let body = String::from_utf8(host.sent.last().unwrap().clone()).unwrap();
            assert_eq!(body.matches("The fact.").count(), if reduces { 1 } else { 2 }, "{kind:?} {body}");
            assert_eq!(body.matches("In short.").count(), usize::from(reduces), "{kind:?} {body}");
        }
    }
}

#[test]
fn r72_what_a_provider_adds_to_one_request_is_not_in_the_next_run() {
    for reduces in [false, true] {
        let store = MemoryStore::default();
        let mut host = open(&store, "h", 1_000_000, &Rc::default());
        host.reducer = Box::new(|question| match question {
            QuestionKind::Reduce(messages) => {
                let messages = messages.as_str().replace("fact", "small fact");
                ReducerReply::Messages(Json::parse(&messages).unwrap())
            }
            other => panic!("{other:?}"),
        });
        let mut setup = at_cuts("one", CHAT);
        setup.policy.call.reducers = reduces.then(|| vec![Reducer::Custom { reduce: callback(3) }]);
        let fact = json!([{"provider": "rag", "messages": [{"role": "user", "parts": [{"type": "text", "text": "The fact."}]}]}]);
        host.start_provided(setup.clone(), "Go", &fact).unwrap();
        assert_eq!(host.drive(|body| say(body, CHAT, 1)).unwrap().status, RunStatus::Finished);
        assert!(host.sent.iter().all(|body| String::from_utf8_lossy(body).contains("fact.")));
        setup.id = "two".into();
        ask(&mut host, setup, 1);
        let body = String::from_utf8(host.sent.last().unwrap().clone()).unwrap();
        assert!(!body.contains("fact."), "{body}");
        assert_eq!(body.matches("Done").count(), 1, "{body}");
    }
}

/// Renders as a session does, with what a provider adds, and keeps the request.
pub fn render(host: &mut Host<'_>, setup: &RunSetup, provided: &Value) -> Vec<u8> {
    let provided = Json::parse(&provided.to_string()).unwrap();
    let provided = ProvidedMessages::read_all(provided.view()).unwrap();
    let (log, at) = (host.log.borrow(), host.clock.now());
    let mut live = History::new(SEED);
    join_provided(&log.history, &mut live, provided, &Origin { at, ..Origin::default() }, &host.ids).unwrap();
    let last = host.renderer.last_request(log.head.last_request());
    let input = RenderInput {
        history: &log.history,
        live: Some(&live),
        owner: &StateOwner::Session,
        begins_chain: false,
        handoffs: &[],
        agent: None,
        scope: HistoryScope::Whole,
        sent: last.as_ref().and_then(|last| last.sent.as_deref()),
        now: at,
    };
    let request = RenderRequest {
        provider: &setup.provider,
        instructions: setup.instructions.as_deref(),
        tools: &setup.tools,
        policy: &setup.policy,
    };
    match host.renderer.step(input, &request, &ReducerReplies::default()).unwrap() {
        RenderStep::Done(rendered) => {
            host.renderer.keep_last_request(LastRequest { sent: rendered.sent }, log.head.last_request());
            rendered.body
        }
        step => panic!("{step:?}"),
    }
}

#[test]
fn r72_a_provided_message_that_names_a_run_hides_nothing_of_that_run() {
    let store = MemoryStore::default();
    let mut host = open_at(&store, "h", 1_000_000);
    let setup = at_cuts("one", CHAT);
    let provided = json!([{"provider": "rag", "messages": [
        {"role": "user", "runId": "two", "parts": [{"type": "text", "text": "The fact."}]},
    ]}]);
    ask(&mut host, setup.clone(), 1);
    render(&mut host, &setup, &provided);
    ask(&mut host, at_cuts("two", CHAT), 1);
    let now = host.clock.now();
    append(&host, CHAT, &imported(1), now);
    let body = String::from_utf8(render(&mut host, &setup, &provided)).unwrap();
    assert_eq!((body.matches("Go").count(), body.matches("Done").count()), (2, 2), "{body}");
    assert_eq!(body.matches("The fact.").count(), 1, "{body}");
}
