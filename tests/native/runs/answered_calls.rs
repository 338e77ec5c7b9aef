//! R75: which call an answer is of, and which calls take none.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::async_tools::{MODES, async_setup, exports, says};
use super::scripted_host::*;
use rethread::error::ErrorCode;
use rethread::run::{Persistence, RunSetup, RunStatus, ToolTiming};
use rethread::store::{
    AuditQuery, AuditRow, Change, JournalChange, JournalStep, LogStore, MemoryStore, RecordKind, commit, open_record,
};
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
fn r75_an_owner_whose_renewed_lease_was_not_read_is_alive() {
    for mode in MODES {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        host.start(setup_in(mode, "run"), "Go").unwrap();
        let is_started = |host: &Host<'_>| {
            host.run.as_ref().unwrap().live().invocations().iter().any(|call| call.started_at.is_some())
        };
        for writes in 0.. {
            host.writes_left = Some(writes);
            assert!(host.drive(looks).is_none());
            if is_started(&host) {
                break;
            }
        }
        let mut stale = Host::open(&store, "s", "stale");
        stale.clock.advance(60_000);
        let entry = host.log.borrow().head.run("run").cloned().unwrap();
        let journal = JournalChange {
            run: entry.id,
            epoch: entry.epoch,
            lease_until: entry.lease_until + 60_000,
            lease_ended_by: None,
            step: JournalStep::Renew,
        };
        let renewal = Change { operation: "renew".into(), journal: Some(journal), ..Change::default() };
        block_on(commit(&store, &host.log, &renewal)).unwrap();
        assert_eq!(stale.late("call_a", &json!("outside")).unwrap_err().code, ErrorCode::Conflict, "{mode:?}");
        assert_eq!(stale.late("call_a", &json!("outside")).unwrap_err().code, ErrorCode::WrongState, "{mode:?}");
        stale.clock.advance(60_000);
        stale.late("call_a", &json!("outside")).unwrap();
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

#[test]
fn r75_a_result_whose_run_is_discarded_is_set_aside_and_reported() {
    for next_run in [false, true] {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        host.pending_tools = vec!["later_export"];
        host.start(setup_in(Persistence::Run, "run"), "Export").unwrap();
        let two = calls(&[("call_a", "later_export", "{}"), ("call_b", "later_export", "{}")]);
        assert!(
            host.drive(|body| if rounds_in(body) == 0 { Answer::Say(two.clone()) } else { Answer::Hang }).is_none()
        );
        let live = host.run.as_ref().unwrap().live();
        let [invocation, second] = [0, 1].map(|at: usize| live.invocations()[at].id.clone());
        let (mut other, mut stale) = (Host::open(&store, "s", "other"), Host::open(&store, "s", "stale"));
        assert_eq!(stale.late("nobody", &json!(1)).unwrap_err().code, ErrorCode::NotFound);
        other.late(&invocation, &json!("seven thousand")).unwrap();
        stale.refresh();
        host.refresh();
        if next_run {
            host.cancel().unwrap();
            host.ask(setup_in(Persistence::Run, "run2"), "Something else", says("Yes?"));
        } else {
            assert_eq!(host.discard("run").orphan_results, 1);
        }
        let reopened = Host::open(&store, "s", "reopened");
        for log in [&host.log, &reopened.log] {
            let log = log.borrow();
            let [item] = log.history.set_aside() else { panic!("{:?}", log.history.set_aside()) };
            assert_eq!((item.reason.as_str(), item.value.as_str()), ("orphan_result", "\"seven thousand\""));
            assert!(log.history.early_results().next().is_none(), "it waits for no call");
        }
        other.refresh();
        assert_eq!(other.late(&invocation, &json!("again")).unwrap_err().code, ErrorCode::NotFound);
        // A process that has not seen the end of the run stores nothing.
        assert_eq!(stale.late(&second, &json!("again")).unwrap_err().code, ErrorCode::Conflict);
        assert_eq!(Host::open(&store, "s", "last").log.borrow().history.early_results().count(), 0);
    }
}

#[test]
fn r12_r75_a_late_result_that_persist_changed_marks_its_call_as_redacted() {
    for mode in MODES {
        for is_early in [false, true] {
            let store = MemoryStore::default();
            let mut host = Host::open(&store, "s", "h");
            host.pending_tools = vec!["later_export"];
            host.redacts_late_results = true;
            host.start(setup_in(mode, "run"), "Export").unwrap();
            let model = |body: &Value| if rounds_in(body) == 0 { exports(body) } else { Answer::Hang };
            assert!(host.drive(model).is_none());
            let invocation = host.run.as_ref().unwrap().live().invocations()[0].id.clone();
            if is_early {
                host.late(&invocation, &json!("masked")).unwrap();
            }
            host.drive(says("Done.")).unwrap();
            if !is_early {
                host.late(&invocation, &json!("masked")).unwrap();
            }
            let later = Host::open(&store, "s", "later");
            let log = later.log.borrow();
            let calls: Vec<_> = log.history.invocations().iter().map(|call| call.is_redacted()).collect();
            assert_eq!(calls, [true, false], "{mode:?} {is_early}");
            // What the request has of the call is what was stored, so it has not changed.
            assert!(log.history.invocations().iter().all(|call| !call.redacted));
            let query = AuditQuery { limit: 9, ..AuditQuery::default() };
            let mut rows = block_on(store.invocations(&query)).unwrap().items;
            rows.sort_by_key(|(_, row)| row.key);
            let redacted =
                rows.iter().map(|(_, row)| open_record::<AuditRow>(RecordKind::Audit, &row.value).unwrap().redacted);
            assert_eq!(redacted.collect::<Vec<_>>(), [true, false], "{mode:?} {is_early}");
        }
    }
}
