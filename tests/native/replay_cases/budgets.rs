//! Budgets, and what a tool's `persist` keeps out of storage.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::scripted_host::{Answer, Host, calls as asks, rounds_in, setup, text};
use super::*;
use rethread::replay::{Callback, Reducer};
use rethread::run::{PersistReply, RunStatus};
use rethread::store::MemoryStore;
use std::rc::Rc;

fn budget(tokens: u64) -> Policy {
    let reducers = Some(vec![Reducer::TokenBudget { tokens, count: None }]);
    Policy {
        call: PolicyLayer { freshness: Some(Window::Always), reducers, ..PolicyLayer::default() },
        ..Policy::default()
    }
}

fn with_arguments(length: usize) -> Chat {
    let arguments = format!("{{\"q\":\"{}\"}}", "x".repeat(length));
    let asked = json!({ "role": "assistant", "content": null, "tool_calls": [call("a", &arguments)] });
    Chat::of(&[user("first"), asked, result("a", "r"), says("done"), user("second")])
}

#[test]
fn trf_a30_arguments_count_towards_a_budget() {
    assert_eq!(with_arguments(4).lines(&budget(200)), ["user first", "calls a", "a=r", "says done", "user second"]);
    assert_eq!(with_arguments(4_000).lines(&budget(200)), ["user second"]);
}

#[test]
fn trf_a31_a_budget_below_every_turn_keeps_the_last_message() {
    assert_eq!(with_arguments(4).lines(&budget(1)), ["user second"]);
}

/// A run whose tool `look` is called beside `find`; `persist` of `look` says that. Gives what was sent in it, and the
/// next body.
fn after(says: fn() -> PersistReply) -> (Vec<Value>, String) {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    host.persist = Box::new(move |_| says());
    host.tool = Box::new(|_, _| (Json::parse("\"hunter2 found\"").unwrap(), false));
    let mut setup = setup("run", CHAT, true);
    setup.persist.insert("look".into(), Callback { id: 1, hook: Rc::new(()) });
    let outcome = host.ask(setup, "q", |body| {
        Answer::Say(match rounds_in(body) {
            0 => asks(&[("call_a", "look", r#"{"key":"hunter2"}"#), ("call_b", "find", "{}")]),
            _ => text("All done."),
        })
    });
    assert_eq!(outcome.status, RunStatus::Finished);
    (host.asked.clone(), String::from_utf8(host.render(CHAT).body).unwrap())
}

#[test]
fn trf_b19_fields_removed_by_persist_are_neither_stored_nor_replayed() {
    let (live, next) = after(|| PersistReply::Replaced {
        arguments: Some(Json::parse(r#"{"key":"(gone)"}"#).unwrap()),
        result: Some(Json::parse("\"(hidden)\"").unwrap()),
    });
    assert!(live[1].to_string().contains("hunter2 found"), "the running turn sends what is true");
    assert!(next.contains("(gone)") && next.contains("(hidden)"), "{next}");
    assert!(!next.contains(r#"{\"key\":\"hunter2\"}"#), "{next}");
}

#[test]
fn trf_b20_a_call_that_persist_withholds_is_omitted_and_its_sibling_is_kept() {
    let (_, next) = after(|| PersistReply::Nothing);
    assert!(!next.contains("call_a") && next.contains("call_b") && next.contains("All done."), "{next}");
}

#[test]
fn trf_b21_after_persist_throws_nothing_is_stored_and_the_model_gets_the_result() {
    let (live, next) = after(|| PersistReply::Failed("boom".into()));
    assert!(live[1].to_string().contains("hunter2"));
    assert!(!next.contains("call_a") && next.contains("call_b"), "{next}");
}
