//! R75: a call is answered at any time, also while its run is under way or interrupted, and only the journal has it.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::async_tools::{MODES, async_setup, exports, is_false, list, position, says};
use super::reopened;
use super::scripted_host::*;
use super::snapshots::{resume, snapshot};
use rethread::error::ErrorCode;
use rethread::json::Json;
use rethread::message::{Dialect, MessageStatus};
use rethread::run::{
    OnInterrupted, Persistence, RunInput, RunOutcome, RunSetup, RunStatus, StoredRun, ToolTiming, stopped_entries,
};
use rethread::store::{AuditQuery, Change, JournalChange, JournalStep, LogStore, MemoryStore, commit, read_journal};
use rethread::tool::InvocationStatus;
use serde_json::{Value, json};

const ANSWER: &str = "seven thousand";

/// Every dialect, streamed or whole, in every mode.
fn ways() -> impl Iterator<Item = (Dialect, bool, Persistence)> {
    super::WAYS.into_iter().flat_map(|(dialect, stream)| MODES.map(|mode| (dialect, stream, mode)))
}

/// Begins a run that leaves its call open, up to the next model call. Returns the id of the invocation.
fn begin(host: &mut Host<'_>, setup: RunSetup) -> String {
    host.pending_tools = vec!["later_export"];
    host.start(setup, "Export, please").unwrap();
    let seen = host.drive(|body| if rounds_in(body) == 0 { exports(body) } else { Answer::Hang });
    assert!(seen.is_none());
    let log = host.run.as_ref().unwrap().live().invocations()[0].clone();
    assert_eq!(log.name, "later_export");
    log.id
}

/// Calls another tool, then says that it is done.
fn looks_again(body: &Value) -> Answer {
    let items = list(body).concat();
    match (items.contains("Starting."), items.contains("look gave {}")) {
        (false, _) => exports(&json!({ "messages": [] })),
        (true, false) => Answer::Say(calls(&[("call_x", "look", "{}")])),
        (true, true) => Answer::Say(text("It is under way.")),
    }
}

/// Checks that the session has the answer once, and that the next request has it in the place where the run's requests
/// had it.
fn check_stored(store: &MemoryStore, invocation: &str, setup: RunSetup, last: Option<&[String]>) {
    let mut later = Host::open(store, "s", "later");
    {
        let log = later.log.borrow();
        let call = log.history.invocation(invocation).unwrap();
        assert_eq!(call.status, InvocationStatus::Ok, "{call:?}");
        assert_eq!(call.result.as_ref().map(|result| result.content.as_str()), Some("\"seven thousand\""));
        assert!(log.history.set_aside().is_empty(), "{:?}", log.history.set_aside());
    }
    assert_eq!(later.late(invocation, &json!("again")).unwrap_err().code, ErrorCode::WrongState);
    let query = AuditQuery { limit: 100, ..AuditQuery::default() };
    let rows = block_on(store.invocations(&query)).unwrap().items;
    let mut indexes = rows.iter().filter_map(|(_, row)| row.index.as_ref());
    assert!(indexes.all(|index| index.status == "ok" || index.status == "interrupted" && index.tool == "look"));
    later.ask(setup, "And now?", says("Seven thousand."));
    let items = list(&later.asked[0]);
    let at = position(&items, ANSWER);
    if let Some(last) = last {
        assert_eq!(items[..last.len()], *last);
        assert_eq!(at, position(last, ANSWER));
    }
    // Another tool may have been interrupted by the kill.
    let parsed = items.iter().map(|item| serde_json::from_str::<Value>(item).unwrap());
    let blocks = parsed.flat_map(|item| item["content"].as_array().cloned().unwrap_or_else(|| vec![item]));
    let of_call = blocks.map(|block| block.to_string()).filter(|block| block.contains("call_a"));
    assert!(of_call.into_iter().all(|block| !is_false(&block)), "{items:#?}");
}

/// Discards the run, and keeps its turn.
/// Ends the run, and stores what its journal has of the turn, as `discard` with `keep` does.
pub(super) fn keep(host: &Host<'_>) {
    let entry = host.log.borrow().head.run("run").cloned().unwrap();
    let stored = StoredRun::read(&block_on(read_journal(host.store, "s", &entry)).unwrap(), SEED).unwrap();
    let history = &host.log.borrow().history.clone();
    let journal = JournalChange {
        run: entry.id.clone(),
        epoch: entry.epoch,
        lease_until: 0,
        lease_ended_by: None,
        step: JournalStep::End,
    };
    let change = Change {
        operation: "keep".into(),
        entries: stopped_entries(&stored.live, history, None, MessageStatus::Stopped),
        journal: Some(journal),
        ..Change::default()
    };
    block_on(commit(host.store, &host.log, &change)).unwrap();
}

fn check_outcome(outcome: &RunOutcome) {
    assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
    assert!(outcome.open_calls.is_empty(), "{:?}", outcome.open_calls);
}

#[test]
fn r75_a_call_of_a_run_that_is_under_way_is_answered_from_another_process() {
    for (dialect, stream, mode) in ways() {
        let store = MemoryStore::default();
        let with = |id: &str| async_setup(id, dialect, stream, mode, ToolTiming::MayBeLater);
        let mut host = Host::open(&store, "s", "h");
        let invocation = begin(&mut host, with("run"));
        let mut other = Host::open(&store, "s", "other");
        let before = other.log.borrow().history.messages().len();
        // By its call id, too.
        other.late("call_a", &json!(ANSWER)).unwrap();
        assert_eq!(other.log.borrow().history.messages().len(), before, "the turn is not stored before its end");
        assert_eq!(other.late(&invocation, &json!("again")).unwrap_err().code, ErrorCode::WrongState);
        assert_eq!(other.late("nobody", &json!(1)).unwrap_err().code, ErrorCode::NotFound);
        let outcome = host.drive(looks_again).unwrap();
        check_outcome(&outcome);
        let bodies: Vec<Vec<String>> = host.asked.iter().map(list).collect();
        for pair in bodies.windows(2) {
            assert_eq!(pair[1][..pair[0].len()], pair[0][..], "{dialect:?} {mode:?}");
        }
        let last = bodies.last().unwrap();
        assert_eq!(position(last, ANSWER), last.len() - 1, "{last:#?}");
        reopened(&host);
        check_stored(&store, &invocation, with("run2"), Some(last));
    }
}

#[test]
fn r75_a_call_of_an_interrupted_run_is_answered_before_it_is_resumed() {
    for (dialect, stream, mode) in ways() {
        let store = MemoryStore::default();
        let with = |id: &str| async_setup(id, dialect, stream, mode, ToolTiming::MayBeLater);
        let invocation = begin(&mut Host::open(&store, "s", "h"), with("run"));
        Host::open(&store, "s", "other").late(&invocation, &json!(ANSWER)).unwrap();
        let mut second = Host::open(&store, "s", "second");
        second.resume(with("run")).unwrap();
        let outcome = second.drive(looks_again).unwrap();
        check_outcome(&outcome);
        let last = list(second.asked.last().unwrap());
        position(&last, ANSWER);
        reopened(&second);
        check_stored(&store, &invocation, with("run2"), Some(&last));
    }
}

#[test]
fn r75_an_answer_that_comes_after_the_last_request_goes_out_with_the_next_run() {
    for (dialect, stream, mode) in ways() {
        let store = MemoryStore::default();
        let with = |id: &str| async_setup(id, dialect, stream, mode, ToolTiming::MayBeLater);
        let mut host = Host::open(&store, "s", "h");
        let invocation = begin(&mut host, with("run"));
        let outcome = host.drive(|body| {
            Host::open(&store, "s", "other").late(&invocation, &json!(ANSWER)).unwrap();
            assert!(list(body).concat().contains("Starting."));
            Answer::Say(text("It is under way."))
        });
        check_outcome(&outcome.unwrap());
        assert!(!host.asked.last().unwrap().to_string().contains(ANSWER));
        reopened(&host);
        check_stored(&store, &invocation, with("run2"), None);
    }
}

#[test]
fn r75_killed_after_any_write_an_answer_that_was_stored_goes_out_once_and_its_tool_ran_once() {
    for (dialect, stream) in [(CHAT, false), (CLAUDE, true), (RESPONSES, true)] {
        for mode in MODES {
            for writes in 1.. {
                let store = MemoryStore::default();
                let with = |id: &str| async_setup(id, dialect, stream, mode, ToolTiming::MayBeLater);
                let mut host = Host::open(&store, "s", "first");
                host.pending_tools = vec!["later_export"];
                host.start(with("run"), "Export, please").unwrap();
                host.writes_left = Some(writes);
                if host.drive(looks_again).is_some() {
                    break;
                }
                let mut other = Host::open(&store, "s", "other");
                let answered = other.late("call_a", &json!(ANSWER));
                let mut second = Host::open(&store, "s", "second");
                second.pending_tools = vec!["later_export"];
                second.resume(with("run")).unwrap();
                let outcome = second.drive(looks_again).unwrap();
                assert_eq!(outcome.status, RunStatus::Finished, "kill {writes}: {:?}", outcome.error);
                let ran = |host: &Host<'_>| host.ran.iter().filter(|(call, ..)| call.starts_with("call_a")).count();
                assert!(ran(&host) + ran(&second) <= 1, "kill {writes}");
                // It could be answered from the start of its tool on.
                assert_eq!(answered.is_err(), ran(&host) == 0 && ran(&second) == 1, "kill {writes}: {answered:?}");
                if answered.is_err() {
                    second.late("call_a", &json!(ANSWER)).unwrap();
                } else {
                    assert!(outcome.open_calls.is_empty(), "kill {writes} {dialect:?} {mode:?}");
                }
                reopened(&second);
                let id = second.log.borrow().history.invocations()[0].id.clone();
                check_stored(&store, &id, with("run2"), None);
            }
        }
    }
}

#[test]
fn r75_an_answer_goes_with_a_discarded_turn_that_is_kept_and_with_a_snapshot() {
    for (dialect, stream, mode) in ways() {
        let with = |id: &str| async_setup(id, dialect, stream, mode, ToolTiming::MayBeLater);
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let invocation = begin(&mut host, with("run"));
        host.late(&invocation, &json!(ANSWER)).unwrap();
        host.handle(RunInput::Cancel).unwrap();
        host.drive(says("no")).unwrap();
        keep(&host);
        check_stored(&store, &invocation, with("run2"), None);

        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let invocation = begin(&mut host, with("run"));
        host.late(&invocation, &json!(ANSWER)).unwrap();
        // The run takes the answer with its next request.
        assert!(
            host.drive(|body| if body.to_string().contains(ANSWER) { Answer::Hang } else { looks_again(body) })
                .is_none()
        );
        let bytes = snapshot(&mut host).unwrap();
        let elsewhere = MemoryStore::default();
        let mut other = Host::open(&elsewhere, "s", "other");
        resume(&mut other, &bytes, with("run")).unwrap();
        check_outcome(&other.drive(looks_again).unwrap());
        let last = list(other.asked.last().unwrap());
        position(&last, ANSWER);
        reopened(&other);
        check_stored(&elsewhere, &invocation, with("run2"), Some(&last));
    }
}

#[test]
fn r75_a_tool_that_was_interrupted_and_answered_does_not_run_again() {
    for mode in MODES {
        for on_interrupted in [OnInterrupted::Rerun, OnInterrupted::Report] {
            // Before its start is stored no call takes an answer, and when its result is stored no more.
            let answered = (0..12).filter(|writes| is_answered_after_a_kill(mode, on_interrupted, *writes)).count();
            assert!(answered > 0, "{mode:?} {on_interrupted:?}");
        }
    }
}

/// Kills a run after so many writes, answers its call if that is possible, and lets another process go on.
fn is_answered_after_a_kill(mode: Persistence, on_interrupted: OnInterrupted, writes: usize) -> bool {
    let store = MemoryStore::default();
    let with = |id: &str| {
        let mut setup = async_setup(id, CHAT, false, mode, ToolTiming::MayBeLater);
        setup.tool_settings.get_mut("look").unwrap().on_interrupted = on_interrupted;
        setup
    };
    let model = |body: &Value| match rounds_in(body) {
        0 => Answer::Say(calls(&[("call_s", "look", "{}")])),
        _ => Answer::Say(text("Done.")),
    };
    let mut host = Host::open(&store, "s", "h");
    host.tool = Box::new(|_, _| (Json::parse("1").unwrap(), false));
    host.start(with("run"), "Go").unwrap();
    host.writes_left = Some(writes);
    if host.drive(model).is_some() {
        return false;
    }
    let mut other = Host::open(&store, "s", "other");
    // The lease of the killed run has ended: until then nobody knows that it is dead.
    other.clock.advance(60_000);
    if other.late("call_s", &json!(ANSWER)).is_err() {
        return false;
    }
    let mut second = Host::open(&store, "s", "second");
    second.tool = Box::new(|_, _| panic!("it was answered"));
    second.resume(with("run")).unwrap();
    check_outcome(&second.drive(model).unwrap());
    let id = second.log.borrow().history.invocations()[0].id.clone();
    reopened(&second);
    check_stored(&store, &id, with("run2"), None);
    true
}

#[test]
fn r75_a_call_whose_tool_was_not_started_waits_for_its_run() {
    let store = MemoryStore::default();
    let mut setup = async_setup("run", Dialect::OpenAiChat, false, Persistence::Run, ToolTiming::MayBeLater);
    setup.tool_settings.get_mut("later_export").unwrap().needs_approval = true;
    let mut host = Host::open(&store, "s", "h");
    host.tool = Box::new(|_, _| (Json::parse("1").unwrap(), false));
    host.start(setup, "Export, please").unwrap();
    assert_eq!(host.drive(exports).unwrap().status, RunStatus::WaitingApproval);
    assert_eq!(Host::open(&store, "s", "o").late("call_a", &json!(1)).unwrap_err().code, ErrorCode::WrongState);
}

#[test]
fn r24_r75_a_late_output_that_a_filter_holds_back_keeps_its_place_in_later_requests() {
    for (dialect, stream) in super::WAYS {
        let store = MemoryStore::default();
        let with = |id: &str| async_setup(id, dialect, stream, Persistence::Run, ToolTiming::Later);
        let mut host = Host::open(&store, "s", "h");
        let invocation = host.ask(with("run"), "Export, please", exports).open_calls.remove(0).invocation;
        host.late(&invocation, &json!(ANSWER)).unwrap();
        host.filter = Box::new(|mut body| {
            let list = if body["input"].is_array() { "input" } else { "messages" };
            let items = body[list].as_array_mut().unwrap();
            items.retain(|item| !item.to_string().contains(ANSWER));
            Ok(body)
        });
        let hook = std::rc::Rc::new(());
        let filter = Some(rethread::replay::Callback { id: 1, hook });
        let outcome = host.ask(RunSetup { input_filter: filter, ..with("run2") }, "And now?", says("Not yet."));
        assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
        assert!(!host.asked.last().unwrap().to_string().contains(ANSWER));
        // The next request that lets it pass has it where it would have been.
        host.ask(with("run3"), "Well?", says("Seven thousand."));
        let items = list(host.asked.last().unwrap());
        let at = position(&items, ANSWER);
        assert!(at < position(&items, "And now?") && at > position(&items, "It is under way."), "{items:#?}");
        host.ask(with("run4"), "Thanks", says("Welcome."));
        assert_eq!(list(host.asked.last().unwrap())[..items.len()], items);
    }
}
