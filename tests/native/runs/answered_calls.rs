//! R75: which call an answer is of, and which calls take none.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::async_tools::{MODES, async_setup, exports, says};
use super::scripted_host::*;
use rethread::error::ErrorCode;
use rethread::run::{Persistence, RunSetup, RunStatus, ToolTiming};
use rethread::store::MemoryStore;
use rethread::tool::InvocationStatus;
use serde_json::{Value, json};

fn looks(body: &Value) -> Answer {
    Answer::Say(if rounds_in(body) == 0 { calls(&[("call_a", "look", "{}")]) } else { text("Done.") })
}

fn setup_in(mode: Persistence, id: &str) -> RunSetup {
    async_setup(id, CHAT, false, mode, ToolTiming::MayBeLater)
}

#[test]
fn r75_a_tool_that_a_live_run_elsewhere_waits_for_is_answered_by_that_run_alone() {
    for mode in MODES {
        let mut is_started = false;
        for writes in 0..12 {
            let store = MemoryStore::default();
            let mut host = Host::open(&store, "s", "h");
            host.start(setup_in(mode, "run"), "Go").unwrap();
            host.writes_left = Some(writes);
            let ended = host.drive(looks).is_some();
            let mut other = Host::open(&store, "s", "other");
            let refused = other.late("call_a", &json!("from elsewhere")).unwrap_err();
            assert!(
                matches!(refused.code, ErrorCode::WrongState | ErrorCode::NotFound),
                "{mode:?} {writes} {refused:?}"
            );
            is_started |= refused.message.contains("another tab or process");
            if ended {
                break;
            }
            // The owner was alive: it goes on.
            host.writes_left = None;
            assert_eq!(host.drive(looks).unwrap().status, RunStatus::Finished);
            let later = Host::open(&store, "s", "later");
            let log = later.log.borrow();
            assert!(log.history.set_aside().is_empty());
            let result = log.history.invocations()[0].result.as_ref().unwrap();
            assert_eq!(result.content.as_str(), "\"look gave {}\"");
        }
        assert!(is_started, "{mode:?}");
    }
}

#[test]
fn r75_a_call_of_history_is_answered_although_a_newer_run_used_its_call_id() {
    for mode in MODES {
        for needs_approval in [false, true] {
            let store = MemoryStore::default();
            let mut host = Host::open(&store, "s", "h");
            host.pending_tools = vec!["later_export"];
            let open = host.ask(setup_in(mode, "run"), "Export, please", exports).open_calls.remove(0).invocation;
            // Its tool has run, or waits for an approval.
            let mut setup = setup_in(mode, "run2");
            setup.tool_settings.get_mut("look").unwrap().needs_approval = needs_approval;
            host.start(setup, "And look").unwrap();
            let outcome = host.drive(|body| if rounds_in(body) == 0 { looks(body) } else { Answer::Hang });
            assert_eq!(outcome.is_some(), needs_approval);
            let mut other = Host::open(&store, "s", "other");
            other.late("call_a", &json!("seven thousand")).unwrap();
            let call = other.log.borrow().history.invocation(&open).cloned().unwrap();
            assert_eq!(call.status, InvocationStatus::Ok, "{mode:?}");
            assert_eq!(other.late("call_a", &json!("again")).unwrap_err().code, ErrorCode::WrongState);
        }
    }
}

#[test]
fn r63_r75_an_answer_to_a_call_of_history_reads_no_journal_and_others_read_what_is_new() {
    let spy = super::spy_store::Spy::new(&MemoryStore::default());
    let mut host = Host::open(&spy, "s", "h");
    host.pending_tools = vec!["later_export"];
    let stored = host.ask(setup_in(Persistence::Run, "run"), "Export", exports).open_calls.remove(0).invocation;
    host.start(setup_in(Persistence::Run, "run2"), "Again").unwrap();
    assert!(host.drive(|body| if rounds_in(body) == 0 { exports(body) } else { Answer::Hang }).is_none());
    let unfinished = host.run.as_ref().unwrap().live().invocations()[0].id.clone();
    let mut other = Host::open(&spy, "s", "other");
    let reads = || spy.reads.replace(0);
    reads();
    other.late(&stored, &json!(1)).unwrap();
    assert_eq!(reads(), 0, "history has the call");
    other.late(&unfinished, &json!(2)).unwrap();
    assert_eq!(reads(), 1, "the journal");
    assert_eq!(other.late(&unfinished, &json!(3)).unwrap_err().code, ErrorCode::WrongState);
    assert_eq!(other.late("nobody", &json!(3)).unwrap_err().code, ErrorCode::NotFound);
    assert_eq!(reads(), 0, "what was read is known");
    host.drive(says("Done.")).unwrap();
}
