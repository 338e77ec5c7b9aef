//! R36: a reducer that asks the application, in a run.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::scripted_host::*;
use super::{reopened, roles};
use rethread::json::Json;
use rethread::message::Role;
use rethread::replay::{Callback, PolicyLayer, QuestionKind, Reducer, ReducerReply};
use rethread::run::{RunInput, RunSetup, RunStatus};
use rethread::store::MemoryStore;
use std::cell::Cell;
use std::rc::Rc;

fn with(id: &str, reducers: Vec<Reducer>) -> RunSetup {
    let mut setup = setup(id, CHAT, false);
    setup.policy.call = PolicyLayer { reducers: Some(reducers), ..PolicyLayer::default() };
    setup
}

fn callback(id: u32) -> Callback {
    Callback { id, hook: Rc::new(()) }
}

#[test]
fn r36_reducers_run_before_each_model_call_and_everything_is_stored() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let asked = Rc::new(Cell::new(0));
    let count = asked.clone();
    host.reducer = Box::new(move |question| {
        count.set(count.get() + 1);
        let QuestionKind::Count(texts) = question else { panic!("{question:?}") };
        ReducerReply::Counts(texts.iter().map(|text| text.len() as u64).collect())
    });
    let budget = |tokens| vec![Reducer::TokenBudget { tokens, count: Some(callback(1)) }];
    for turn in 0..4 {
        let outcome = host.ask(with(&format!("run{turn}"), budget(220)), "A question of some length", three_tools);
        assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
    }
    // Each of the three calls of a turn has something new to count, and nothing else is asked.
    assert_eq!(asked.get(), 12);
    assert_eq!(roles(&reopened(&host)).iter().filter(|role| **role == Role::User).count(), 4, "nothing stored goes");
    let last = &host.asked[9]["messages"];
    let users = last.as_array().unwrap().iter().filter(|message| message["role"] == "user").count();
    assert_eq!(users, 2, "of four turns the newest that fit: {last}");
}

#[test]
fn r36_a_failing_callback_does_not_fail_the_run() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    host.reducer = Box::new(|_| ReducerReply::Failed("boom".into()));
    let outcome = host.ask(with("run", vec![Reducer::Custom { reduce: callback(1) }]), "Go", three_tools);
    assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
    assert!(
        outcome.report.iter().any(|found| found.code.as_str() == "callback_failed" && found.message.contains("boom"))
    );
    assert_eq!(outcome.model_calls, 3);
}

#[test]
fn r36_a_run_that_waits_for_a_reducer_can_be_cancelled_and_ignores_its_late_reply() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    host.start(with("run", vec![Reducer::Custom { reduce: callback(1) }]), "Go").unwrap();
    while host.write_one() {}
    let run = host.run.as_mut().unwrap();
    assert!(run.effects().is_empty());
    assert!(run.take_reducer_question().is_some() && run.take_reducer_question().is_none(), "a question is given once");
    host.handle(RunInput::Cancel).unwrap();
    while host.write_one() {}
    assert_eq!(host.run.as_ref().unwrap().status(), RunStatus::Cancelled);
    host.handle(RunInput::ReducerReply(ReducerReply::Messages(Json::parse("[]").unwrap()))).unwrap();
    assert!(host.run.as_ref().unwrap().effects().is_empty());
    assert!(reopened(&host).log.borrow().history.messages().is_empty());
}
