//! R75: which call an answer is of, and which calls take none.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::async_tools::{MODES, async_setup, exports, says};
use super::early_results::keep;
use super::scripted_host::*;
use super::snapshots::{resume, snapshot};
use rethread::error::ErrorCode;
use rethread::finding::FindingCode;
use rethread::run::{Persistence, RunOutcome, RunSetup, RunStatus, ToolTiming};
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

const EXPORT: [(&str, &str, &str); 1] = [("call_a", "later_export", "{}")];

fn exports_only(body: &Value) -> Answer {
    Answer::Say(if rounds_in(body) == 0 { calls(&EXPORT) } else { text("Done.") })
}

/// Drives a run until its asynchronous tool runs, which the store knows. Returns its invocation.
fn run_to_tool(host: &mut Host<'_>, setup: RunSetup) -> String {
    host.start(setup, "Export").unwrap();
    for writes in 0.. {
        host.writes_left = Some(writes);
        assert!(host.drive(exports_only).is_none());
        let started =
            host.run.as_ref().unwrap().live().invocations().iter().find(|call| call.started_at.is_some()).cloned();
        if let Some(call) = started {
            host.writes_left = None;
            host.write();
            return call.id;
        }
    }
    unreachable!()
}

/// Checks that history has the answer from outside once, and the tool's own result beside it.
fn check_first_counts(store: &MemoryStore, what: &str) {
    let mut later = Host::open(store, "s", "later");
    let contents = {
        let log = later.log.borrow();
        let call = log.history.invocations()[0].clone();
        assert!(!call.is_deferred, "{what}: its run waited for it");
        let result = call.result.unwrap();
        assert_eq!(log.history.early_results().count(), 0, "{what}");
        let items = log.history.set_aside().iter();
        let items: Vec<_> = items.map(|item| (item.reason.clone(), item.value.as_str().to_owned())).collect();
        assert_eq!(items, [("duplicate_result".to_owned(), "\"later_export gave {}\"".to_owned())], "{what}");
        result.content
    };
    assert_eq!(contents.as_str(), "\"from outside\"", "{what}");
    later.ask(setup_in(Persistence::Run, "next"), "And?", says("Yes."));
    let body = later.asked[0].to_string();
    assert_eq!((body.matches("from outside").count(), body.contains(" gave ")), (1, false), "{what}: {body}");
}

fn warns_of_second_result(outcome: &RunOutcome) -> bool {
    outcome.report.iter().any(|finding| finding.code == FindingCode::DuplicateResult)
}

#[test]
fn r75_of_an_answer_and_the_running_tools_own_result_the_first_stored_one_counts() {
    for mode in MODES {
        for place in ["here", "elsewhere", "elsewhere, and read"] {
            let what = format!("{mode:?}, {place}");
            let store = MemoryStore::default();
            let mut host = Host::open(&store, "s", "h");
            let invocation = run_to_tool(&mut host, setup_in(mode, "run"));
            if place == "here" {
                host.late(&invocation, &json!("from outside")).unwrap();
            } else {
                Host::open(&store, "s", "other").late(&invocation, &json!("from outside")).unwrap();
            }
            if place == "elsewhere, and read" {
                host.refresh();
            }
            let outcome = host.drive(exports_only).unwrap();
            assert_eq!(outcome.status, RunStatus::Finished, "{what} {:?}", outcome.error);
            assert!(warns_of_second_result(&outcome), "{what} {:?}", outcome.report);
            let body = host.asked.last().unwrap().to_string();
            assert_eq!((body.matches("from outside").count(), body.contains(" gave ")), (1, false), "{what}: {body}");
            check_first_counts(&store, &what);
        }
    }
}

#[test]
fn r75_a_result_that_the_tool_returned_first_takes_no_answer_from_outside() {
    for mode in MODES {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let invocation = run_to_tool(&mut host, setup_in(mode, "run"));
        let mut stale = Host::open(&store, "s", "stale");
        assert!(host.drive(|body| if rounds_in(body) == 0 { exports_only(body) } else { Answer::Hang }).is_none());
        // What it knows of the run is older than the tool's result.
        assert_eq!(stale.late(&invocation, &json!("late")).unwrap_err().code, ErrorCode::Conflict, "{mode:?}");
        assert_eq!(stale.late(&invocation, &json!("late")).unwrap_err().code, ErrorCode::WrongState, "{mode:?}");
        assert_eq!(host.late(&invocation, &json!("late")).unwrap_err().code, ErrorCode::WrongState, "{mode:?}");
        let outcome = host.drive(exports_only).unwrap();
        assert!(!warns_of_second_result(&outcome));
        let later = Host::open(&store, "s", "later");
        let log = later.log.borrow();
        assert!(log.history.set_aside().is_empty(), "{mode:?}");
        let result = log.history.invocations()[0].result.clone().unwrap();
        assert_eq!(result.content.as_str(), "\"later_export gave {}\"", "{mode:?}");
    }
}

/// Checks that a turn that was kept has the answer from outside, and the tool's own result beside it.
fn check_kept(store: &MemoryStore, what: &str) {
    let later = Host::open(store, "s", "later");
    let log = later.log.borrow();
    let result = log.history.invocations()[0].result.clone().unwrap();
    assert_eq!(result.content.as_str(), "\"from outside\"", "{what}");
    let items: Vec<_> = log.history.set_aside().iter().map(|item| item.value.as_str()).collect();
    assert_eq!(items, ["\"later_export gave {}\""], "{what}");
}

#[test]
fn r75_killed_after_any_write_the_first_of_two_results_counts_and_the_other_is_kept_once() {
    for mode in MODES {
        for resumed_mode in MODES {
            for end in ["resumed", "copied", "kept"] {
                for writes in 1.. {
                    let what = format!("{mode:?}, {resumed_mode:?}, kill {writes}, {end}");
                    let store = MemoryStore::default();
                    let mut host = Host::open(&store, "s", "h");
                    let invocation = run_to_tool(&mut host, setup_in(mode, "run"));
                    Host::open(&store, "s", "other").late(&invocation, &json!("from outside")).unwrap();
                    host.writes_left = Some(writes);
                    if host.drive(exports_only).is_some() {
                        break;
                    }
                    if end == "kept" {
                        keep(&Host::open(&store, "s", "keeps"));
                        check_kept(&store, &what);
                        continue;
                    }
                    let mut second = Host::open(&store, "s", "second");
                    second.resume(setup_in(resumed_mode, "run")).unwrap();
                    if end == "copied" {
                        let bytes = snapshot(&mut second).unwrap();
                        let elsewhere = MemoryStore::default();
                        let mut copy = Host::open(&elsewhere, "s", "copy");
                        resume(&mut copy, &bytes, setup_in(resumed_mode, "run")).unwrap();
                        assert_eq!(copy.drive(exports_only).unwrap().status, RunStatus::Finished, "{what}");
                        let log = copy.log.borrow();
                        let result = log.history.invocations()[0].result.clone().unwrap();
                        assert_eq!(result.content.as_str(), "\"from outside\"", "{what}");
                        continue;
                    }
                    let outcome = second.drive(exports_only).unwrap();
                    assert_eq!(outcome.status, RunStatus::Finished, "{what} {:?}", outcome.error);
                    for body in host.asked.iter().chain(&second.asked) {
                        assert!(!body.to_string().contains(" gave "), "{what}: {body}");
                    }
                    check_first_counts(&store, &what);
                }
            }
        }
    }
}

fn tool_message(content: &str) -> Value {
    json!([{ "role": "tool", "tool_call_id": "call_a", "content": content }])
}

#[test]
fn r75_an_appended_result_of_a_tool_that_a_live_run_waits_for_is_rejected_as_an_answer_is() {
    for mode in MODES {
        for is_here in [false, true] {
            let store = MemoryStore::default();
            let mut host = Host::open(&store, "s", "h");
            host.start(setup_in(mode, "run"), "Go").unwrap();
            for writes in 0.. {
                host.writes_left = Some(writes);
                assert!(host.drive(looks).is_none());
                if host.run.as_ref().unwrap().live().invocations().iter().any(|call| call.started_at.is_some()) {
                    break;
                }
            }
            host.writes_left = None;
            host.write();
            let mut other = Host::open(&store, "s", "other");
            let appends = if is_here { &mut host } else { &mut other };
            let error = appends.append(&tool_message("appended"), CHAT).unwrap_err();
            assert_eq!(error.code, ErrorCode::WrongState, "{mode:?} {is_here} {error:?}");
            // Its words say who takes the result.
            assert!(error.message.contains("Run.answer") || error.message.contains("another tab"), "{error:?}");
            assert_eq!(host.drive(looks).unwrap().status, RunStatus::Finished);
            let later = Host::open(&store, "s", "later");
            let log = later.log.borrow();
            assert!(log.history.set_aside().is_empty(), "{mode:?}");
            let result = log.history.invocations()[0].result.clone().unwrap();
            assert_eq!(result.content.as_str(), "\"look gave {}\"", "{mode:?}");
        }
    }
}

#[test]
fn r75_an_appended_result_answers_an_asynchronous_call_that_history_has() {
    for mode in MODES {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        run_to_tool(&mut host, setup_in(mode, "run"));
        let mut other = Host::open(&store, "s", "other");
        let appended = other.append(&tool_message("from outside"), CHAT);
        if mode == Persistence::Run {
            // History has no call that it could answer.
            let error = appended.unwrap_err();
            assert_eq!(error.code, ErrorCode::WrongState);
            assert!(error.message.contains("Session.answer"), "{error:?}");
            assert_eq!(host.drive(exports_only).unwrap().status, RunStatus::Finished);
            continue;
        }
        appended.unwrap();
        assert!(warns_of_second_result(&host.drive(exports_only).unwrap()), "{mode:?}");
        check_first_counts(&store, &format!("{mode:?}"));

        // The run has finished with its call open.
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        host.pending_tools = vec!["later_export"];
        host.ask(setup_in(mode, "run"), "Export", exports);
        host.append(&tool_message("from outside"), CHAT).unwrap();
        let result = host.log.borrow().history.invocations()[0].result.clone().unwrap();
        assert_eq!(result.content.as_str(), "\"from outside\"", "{mode:?}");
        // A result of no call is set aside, as ever.
        let orphan = json!([{ "role": "tool", "tool_call_id": "nobody", "content": "x" }]);
        host.append(&orphan, CHAT).unwrap();
        assert_eq!(host.log.borrow().history.set_aside().len(), 1);
    }
}

#[test]
fn r75_a_late_output_is_appended_with_its_call() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let body = json!([
        { "role": "user", "content": "Export" },
        { "type": "function_call", "call_id": "call_a", "name": "later_export", "arguments": "{}", "async": true },
        { "role": "assistant", "content": "It runs." },
        { "type": "function_call_output", "call_id": "call_a", "output": "seven thousand" },
        { "role": "user", "content": "And now?" },
    ]);
    host.append(&body, RESPONSES).unwrap();
    let result = host.log.borrow().history.invocations()[0].result.clone().unwrap();
    assert_eq!(result.content.as_str(), "\"seven thousand\"");
}

#[test]
fn r75_an_appended_result_that_was_judged_by_an_old_journal_is_a_conflict() {
    for mode in [Persistence::Call, Persistence::Result] {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        run_to_tool(&mut host, setup_in(mode, "run"));
        let mut stale = Host::open(&store, "s", "stale");
        assert!(host.drive(|body| if rounds_in(body) == 0 { exports_only(body) } else { Answer::Hang }).is_none());
        assert_eq!(stale.append(&tool_message("late"), CHAT).unwrap_err().code, ErrorCode::Conflict, "{mode:?}");
        host.drive(exports_only).unwrap();
        assert!(Host::open(&store, "s", "later").log.borrow().history.set_aside().is_empty(), "{mode:?}");
    }
}
