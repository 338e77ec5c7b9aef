//! R78: a result that came after a later answer than that of its call is told to the model once, whatever the answer
//! with a compaction knew of it.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::bound_reasoning::{BINDING, setup_of};
use super::cuts::cuts;
use super::provider_compaction::{answer_with_compaction, open_call_and_result};
use super::reopened;
use super::scripted_host::*;
use rethread::clock::{Clock, Ms};
use rethread::history::{HistoryEntry, ResultEntry};
use rethread::json::Json;
use rethread::message::Dialect;
use rethread::replay::{Cut, Reducer, ReplayChanges};
use rethread::run::{EffectReply, RunSetup};
use rethread::store::{Change, MemoryStore, commit};
use rethread::tool::{InvocationStatus, ToolResult};
use serde_json::{Value, json};

/// Stores the result of the open call, which came at this time.
fn store_result(host: &Host<'_>, finished_at: Option<Ms>) {
    let invocation = open_call(host);
    let result =
        ToolResult { content: Json::parse("\"<mild>\"").unwrap(), is_error: false, dialect: None, template: None };
    let (status, result) = (InvocationStatus::Ok, Some(result));
    store(host, "result", ResultEntry { invocation, status, finished_at, result, ..ResultEntry::default() });
}

fn open_call(host: &Host<'_>) -> String {
    host.log.borrow().history.open_calls().next().unwrap().id.clone()
}

fn store(host: &Host<'_>, name: &str, entry: ResultEntry) {
    let (operation, at) = (name.to_owned(), host.clock.now());
    let change = Change { operation, at, entries: vec![HistoryEntry::Result(entry)], ..Change::default() };
    block_on(commit(host.store, &host.log, &change)).unwrap();
}

/// Gives the answer that begins with a compaction to the run that waits for its model.
fn compact_in_answer(host: &mut Host<'_>, dialect: Dialect) {
    let Answer::Status(_, _, body) = answer_with_compaction(dialect) else { panic!() };
    let effect = host.run.as_ref().unwrap().effects()[0].id.clone();
    let reply = EffectReply::Response { status: 200, headers: Vec::new(), body: body.into_bytes() };
    host.reply(&effect, reply).unwrap();
    host.drive(|_| Answer::Hang).unwrap();
}

/// The bodies of the next two runs.
fn next_bodies(host: &mut Host<'_>, dialect: Dialect) -> Vec<Value> {
    let mut bodies = Vec::new();
    for name in ["three", "four"] {
        *host = reopened(host);
        host.ask(setup_of(name, dialect), "<next>", |body| {
            bodies.push(body.clone());
            Answer::Say(text("Well."))
        });
    }
    bodies
}

fn check_told_once(bodies: &[Value]) {
    for body in bodies {
        let text = body.to_string();
        assert!(text.contains("<sealed>") && !text.contains("I do not know."), "{body:#}");
        assert_eq!(text.matches("<mild>").count(), 1, "{body:#}");
        assert!(text.find("<well>") < text.find("<mild>"), "{body:#}");
    }
}

#[test]
fn r78_a_result_and_a_message_of_others_that_come_in_the_run_of_a_compaction_are_told() {
    for dialect in BINDING {
        let data = MemoryStore::default();
        let mut host = Host::open(&data, "s", "h");
        let (open, late) = open_call_and_result();
        host.append(&open, CHAT).unwrap();
        host.start(setup_of("two", dialect), "<two>").unwrap();
        assert!(host.drive(|_| Answer::Hang).is_none());
        host.append(&late, CHAT).unwrap();
        host.append(&json!([{ "role": "user", "content": "<aside>" }]), CHAT).unwrap();
        compact_in_answer(&mut host, dialect);
        check_told_once(&next_bodies(&mut host, dialect));
    }
}

#[test]
fn r78_a_result_that_was_finished_before_the_run_of_a_compaction_and_stored_in_it_is_told() {
    for dialect in BINDING {
        let data = MemoryStore::default();
        let mut host = Host::open(&data, "s", "h");
        host.append(&open_call_and_result().0, CHAT).unwrap();
        host.start(setup_of("two", dialect), "<two>").unwrap();
        assert!(host.drive(|_| Answer::Hang).is_none());
        store_result(&host, Some(1));
        compact_in_answer(&mut host, dialect);
        check_told_once(&next_bodies(&mut host, dialect));
    }
}

#[test]
fn r78_a_result_that_the_run_of_a_compaction_began_with_is_not_told_again() {
    for (dialect, is_resumed) in BINDING.into_iter().flat_map(|dialect| [(dialect, false), (dialect, true)]) {
        let data = MemoryStore::default();
        let mut host = Host::open(&data, "s", "h");
        host.append(&open_call_and_result().0, CHAT).unwrap();
        // Its own time says that it came later.
        store_result(&host, Some(host.clock.now() + 1_000_000));
        host.start(setup_of("two", dialect), "<two>").unwrap();
        assert!(host.drive(|_| Answer::Hang).is_none());
        if is_resumed {
            host = reopened(&host);
            host.resume(setup_of("two", dialect)).unwrap();
            assert!(host.drive(|_| Answer::Hang).is_none());
        }
        compact_in_answer(&mut host, dialect);
        for body in next_bodies(&mut host, dialect) {
            assert!(!body.to_string().contains("<mild>"), "{body:#}");
        }
    }
}

fn at_cuts(id: &str, dialect: Dialect, reducers: Option<Vec<Reducer>>) -> RunSetup {
    let mut setup = setup_of(id, dialect);
    setup.policy.call.changes = Some(ReplayChanges::AtCuts);
    setup.policy.call.reducers = reducers;
    setup
}

/// Asks, and returns the body of the request and why it is decided anew.
fn ask_at_cuts(host: &mut Host<'_>, setup: RunSetup) -> (Value, Option<Cut>) {
    *host = reopened(host);
    let mut sent = Value::Null;
    host.ask(setup, "<next>", |body| {
        sent = body.clone();
        Answer::Say(text("Well."))
    });
    (sent, cuts(&host.events)[0])
}

#[test]
fn r78_a_result_after_an_answers_compaction_is_told_at_once_where_changes_wait_for_cuts() {
    for dialect in BINDING {
        let data = MemoryStore::default();
        let mut host = Host::open(&data, "s", "h");
        host.append(&open_call_and_result().0, CHAT).unwrap();
        host.ask(at_cuts("two", dialect, None), "<two>", |_| answer_with_compaction(dialect));
        assert_eq!(ask_at_cuts(&mut host, at_cuts("three", dialect, None)).1, Some(Cut::Compaction));
        assert_eq!(ask_at_cuts(&mut host, at_cuts("four", dialect, None)).1, None);
        // It comes between two requests of a run.
        host.start(at_cuts("more", dialect, None), "<more>").unwrap();
        assert!(host.drive(|_| Answer::Hang).is_none());
        store_result(&host, None);
        let effect = host.run.as_ref().unwrap().effects()[0].id.clone();
        let body = calls(&[("call_z", "look", "{}")]).body(dialect);
        host.reply(&effect, EffectReply::Response { status: 200, headers: Vec::new(), body }).unwrap();
        host.drive(|body| {
            assert!(!body.to_string().contains("<mild>"), "{body:#}");
            Answer::Say(text("Well."))
        });
        let (told, cut) = ask_at_cuts(&mut host, at_cuts("five", dialect, None));
        assert_eq!(cut, Some(Cut::History));
        let (repeated, cut) = ask_at_cuts(&mut host, at_cuts("six", dialect, None));
        assert_eq!(cut, None);
        check_told_once(&[told, repeated]);
    }
}

#[test]
fn r78_a_result_that_a_reducer_drops_after_an_answers_compaction_is_no_cut_again() {
    for dialect in BINDING {
        let data = MemoryStore::default();
        let mut host = Host::open(&data, "s", "h");
        let setup = |id| at_cuts(id, dialect, Some(vec![Reducer::SlidingTurns { turns: 1 }]));
        host.append(&open_call_and_result().0, CHAT).unwrap();
        host.ask(setup("two"), "<two>", |_| answer_with_compaction(dialect));
        store_result(&host, None);
        for name in ["three", "four"] {
            ask_at_cuts(&mut host, setup(name));
        }
        let (body, cut) = ask_at_cuts(&mut host, setup("five"));
        assert_eq!((body.to_string().contains("<mild>"), cut), (false, None), "{body:#}");
    }
}

#[test]
fn r75_r78_a_result_that_was_deferred_after_it_was_stored_is_told_once() {
    for dialect in BINDING {
        let data = MemoryStore::default();
        let mut host = Host::open(&data, "s", "h");
        host.append(&open_call_and_result().0, CHAT).unwrap();
        host.start(setup_of("two", dialect), "<two>").unwrap();
        assert!(host.drive(|_| Answer::Hang).is_none());
        let invocation = open_call(&host);
        store_result(&host, None);
        // Whoever waited for it did not know yet.
        store(&host, "deferral", ResultEntry { invocation, is_deferral: true, ..ResultEntry::default() });
        compact_in_answer(&mut host, dialect);
        check_told_once(&next_bodies(&mut host, dialect));
    }
}
