//! Approvals (R29): a run waits for a person, survives a kill at any instant, and goes on elsewhere.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::modes::stored;
use super::scripted_host::*;
use super::spy_store::{Fault, Spy};
use super::{WAYS, reopened};
use rethread::error::ErrorCode;
use rethread::finding::FindingCode;
use rethread::history::HistoryEntry;
use rethread::message::Dialect;
use rethread::replay::Callback;
use rethread::run::{
    ApprovalDecision, ApprovalReply, OnInterrupted, PersistReply, Persistence, RunEvent, RunInput, RunSetup, RunStatus,
    StoredRun, ToolSettings,
};
use rethread::store::{AuditQuery, AuditRow, LogStore, MemoryStore, RecordKind, Table, open_record, read_journal};
use rethread::tool::InvocationStatus;
use serde_json::Value;
use std::rc::Rc;

pub(super) const MODES: [Persistence; 3] = [Persistence::Run, Persistence::Call, Persistence::Result];
use ApprovalDecision::{Approve, Reject};
use InvocationStatus::{Interrupted, Ok as Fine, Rejected};

/// A run whose tool `find` asks before it runs.
pub(super) fn asking(persistence: Persistence, dialect: Dialect, stream: bool) -> RunSetup {
    let mut setup = RunSetup { persistence, ..setup("run", dialect, stream) };
    setup.tool_settings.insert("find".into(), ToolSettings { needs_approval: true, ..ToolSettings::default() });
    setup
}

/// Three parallel calls, of which two wait.
fn three_calls(body: &Value) -> Answer {
    Answer::Say(if rounds_in(body) == 0 {
        calls(&[("call_a", "look", r#"{"n":1}"#), ("call_b", "find", r#"{"n":2}"#), ("call_c", "find", r#"{"n":3}"#)])
    } else {
        text("All done.")
    })
}

fn one_call(body: &Value) -> Answer {
    Answer::Say(if rounds_in(body) == 0 { calls(&[("call_b", "find", r#"{"n":2}"#)]) } else { text("Done.") })
}

pub(super) fn waiting(host: &Host<'_>) -> Vec<String> {
    host.run.as_ref().unwrap().approvals().into_iter().map(|call| call.call_id).collect()
}

fn ran<'h>(host: &'h Host<'_>) -> Vec<&'h str> {
    host.ran.iter().map(|(call, ..)| call.as_str()).collect()
}

fn asked_events(host: &Host<'_>) -> Vec<String> {
    let asked = |event: &RunEvent| match event {
        RunEvent::ApprovalNeeded { call_id, arguments, .. } => Some(format!("{call_id} {}", arguments.as_str())),
        _ => None,
    };
    host.events.iter().filter_map(asked).collect()
}

fn statuses(host: &Host<'_>) -> Vec<InvocationStatus> {
    host.log.borrow().history.invocations().iter().map(|call| call.status).collect()
}

/// The texts of the results in a body, by a name that is in each dialect's result.
fn has_text(body: &Value, text: &str) -> bool {
    body.to_string().contains(text)
}

#[test]
fn r29_of_three_parallel_calls_two_wait_and_all_outputs_go_out_as_one_batch() {
    for (dialect, stream) in WAYS {
        for mode in MODES {
            let store = MemoryStore::default();
            let mut host = Host::open(&store, "s", "h");
            let outcome = host.ask(asking(mode, dialect, stream), "Go", three_calls);
            assert_eq!((outcome.status, outcome.saved), (RunStatus::WaitingApproval, false), "{dialect:?}");
            assert_eq!((ran(&host), host.asked.len()), (vec!["call_a"], 1));
            assert_eq!(waiting(&host), ["call_b", "call_c"]);
            assert_eq!(asked_events(&host), [r#"call_b {"n":2}"#, r#"call_c {"n":3}"#]);
            assert!(host.run.as_ref().unwrap().effects().is_empty());
            host.decide("call_c", Approve).unwrap();
            assert!(host.run.as_ref().unwrap().effects().is_empty(), "its tool runs before the approval is stored");
            let outcome = host.drive(|_| panic!("a call still waits")).unwrap();
            assert_eq!((outcome.status, ran(&host)), (RunStatus::WaitingApproval, vec!["call_a", "call_c"]));
            host.decide("call_b", Reject(Some("not today".into()))).unwrap();
            let outcome = host.drive(three_calls).unwrap();
            assert_eq!((outcome.status, outcome.model_calls, outcome.saved), (RunStatus::Finished, 2, true));
            assert_eq!((ran(&host), statuses(&host)), (vec!["call_a", "call_c"], vec![Fine, Rejected, Fine]));
            let second = &host.asked[1];
            assert!(["look gave", "find gave", "rejected", "not today"].iter().all(|text| has_text(second, text)));
            assert!(host.pending().is_empty() && host.records(Table::Runs).is_empty());
            assert_eq!(statuses(&reopened(&host)), [Fine, Rejected, Fine]);
        }
    }
}

#[test]
fn r29_r13_the_audit_table_finds_what_was_rejected() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    host.ask(asking(Persistence::Call, CHAT, false), "Go", three_calls);
    let row = |status: &str| {
        let query = AuditQuery { status: Some(status.into()), ..AuditQuery::default() };
        let page = block_on(store.invocations(&query)).unwrap();
        let open = |(_, record): &(String, rethread::store::Record)| {
            open_record::<AuditRow>(RecordKind::Audit, &record.value).unwrap().call_id
        };
        page.items.iter().map(open).collect::<Vec<_>>()
    };
    assert_eq!(row("pending"), ["call_a", "call_b", "call_c"], "results are stored with the next call in this mode");
    host.decide("call_b", Approve).unwrap();
    host.decide("call_c", Reject(None)).unwrap();
    host.drive(three_calls).unwrap();
    assert_eq!((row("rejected"), row("ok")), (vec!["call_c".into()], vec!["call_a".into(), "call_b".into()]));
}

#[test]
fn r29_pp_17_pp_18_history_of_an_approved_call_is_that_of_any_other() {
    for dialect in [CHAT, CLAUDE, RESPONSES] {
        for mode in MODES {
            let records = [false, true].map(|asks| {
                let store = MemoryStore::default();
                let mut host = Host::open(&store, "s", "h");
                if asks {
                    host.ask(asking(mode, dialect, false), "Go", one_call);
                    let before: &[&str] = if mode == Persistence::Run { &[] } else { &["u a c"] };
                    assert_eq!(stored(&host), before, "{mode:?}");
                    host.decide("call_b", Approve).unwrap();
                    host.drive(one_call).unwrap();
                } else {
                    host.ask(RunSetup { persistence: mode, ..setup("run", dialect, false) }, "Go", one_call);
                }
                let want: &[&str] = match mode {
                    Persistence::Run => &["u a c+ a"],
                    Persistence::Call => &["u a c", "r a"],
                    Persistence::Result => &["u a c", "r", "a"],
                };
                assert_eq!(stored(&host), want, "{mode:?}");
                (statuses(&reopened(&host)), host.asked.clone())
            });
            assert_eq!(records[0], records[1], "{dialect:?} {mode:?}");
        }
    }
}

#[test]
fn r29_pp_19_the_model_sees_that_a_call_was_rejected_and_why() {
    for (reason, want) in [
        (None, "Error: the call was rejected, so the tool did not run."),
        (Some(""), "Error: the call was rejected, so the tool did not run."),
        (Some("too \"much\""), "Error: the call was rejected, so the tool did not run: too \"much\""),
    ] {
        for mode in MODES {
            let store = MemoryStore::default();
            let mut host = Host::open(&store, "s", "h");
            host.ask(asking(mode, CHAT, false), "Go", one_call);
            host.decide("call_b", Reject(reason.map(str::to_owned))).unwrap();
            assert_eq!(host.drive(one_call).unwrap().status, RunStatus::Finished);
            assert_eq!(host.asked[1]["messages"][3]["content"], want, "{mode:?}");
            let reader = reopened(&host);
            let log = reader.log.borrow();
            let call = &log.history.invocations()[0];
            assert_eq!((call.status, call.started_at), (Rejected, None));
            assert!(call.result.as_ref().unwrap().is_error && host.ran.is_empty());
        }
    }
}

/// Opens the session as another process would, with the run waiting.
fn another<'s>(store: &'s dyn LogStore, name: &str, setup: &RunSetup) -> Host<'s> {
    let mut host = Host::open(store, "s", name);
    host.resume(setup.clone()).unwrap();
    let events = host.run.as_mut().unwrap().take_events();
    host.events.extend(events);
    host.write();
    host
}

#[test]
fn r29_a_waiting_run_is_resumed_elsewhere_and_decided_there() {
    for dialect in [CHAT, CLAUDE, RESPONSES] {
        for mode in MODES {
            let store = MemoryStore::default();
            let setup = asking(mode, dialect, true);
            let mut first = Host::open(&store, "s", "h");
            first.ask(setup.clone(), "Go", three_calls);
            let entry = first.pending().remove(0);
            let stored = StoredRun::read(&block_on(read_journal(&store, "s", &entry)).unwrap(), SEED).unwrap();
            assert!(stored.waits_for_approval());
            // Resumed twice, as two reloads do: nothing more is written than the change of owner.
            let records = first.records(Table::Runs).len();
            let _reload = another(&store, "h2", &setup);
            let mut host = another(&store, "h3", &setup);
            assert_eq!(host.records(Table::Runs).len(), records + 2);
            assert_eq!(host.run.as_ref().unwrap().status(), RunStatus::WaitingApproval);
            assert_eq!(asked_events(&host), [r#"call_b {"n":2}"#, r#"call_c {"n":3}"#]);
            host.clock.advance(3 * 24 * 60 * 60 * 1000);
            host.decide("call_b", Approve).unwrap();
            host.decide("call_c", Approve).unwrap();
            assert!(host.write());
            // Approved and stored, then killed: nobody is asked again.
            let mut last = another(&store, "h4", &setup);
            assert!(waiting(&last).is_empty());
            let outcome = last.drive(three_calls).unwrap();
            assert_eq!((outcome.status, outcome.model_calls), (RunStatus::Finished, 2), "{mode:?}");
            assert_eq!(ran(&last), ["call_b", "call_c"]);
            assert!(has_text(&last.asked[0], "look gave"), "the first result was lost");
            // The former holder's approval conflicts, and its tool does not run.
            first.decide("call_b", Approve).unwrap();
            first.write();
            let outcome = first.run.as_ref().unwrap().outcome();
            assert_eq!((outcome.status, outcome.error.unwrap().code), (RunStatus::Failed, ErrorCode::Conflict));
            assert_eq!(ran(&first), ["call_a"]);
        }
    }
}

#[test]
fn r29_a_decision_about_a_call_that_does_not_wait_changes_nothing() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    host.start(asking(Persistence::Run, CHAT, false), "Go").unwrap();
    let code = |host: &mut Host<'_>, call: &str| host.decide(call, Approve).unwrap_err().code;
    assert_eq!(code(&mut host, "call_b"), ErrorCode::NotFound, "the model was not called");
    assert_eq!(host.drive(three_calls).unwrap().status, RunStatus::WaitingApproval);
    assert_eq!(code(&mut host, "call_a"), ErrorCode::WrongState, "it ran");
    assert_eq!(code(&mut host, "call_x"), ErrorCode::NotFound);
    assert_eq!(code(&mut host, ""), ErrorCode::NotFound);
    assert_eq!(waiting(&host), ["call_b", "call_c"]);
    host.decide("call_b", Approve).unwrap();
    assert_eq!(code(&mut host, "call_b"), ErrorCode::WrongState, "twice");
    host.decide("call_c", Reject(None)).unwrap();
    assert_eq!(code(&mut host, "call_c"), ErrorCode::WrongState, "rejected already");
    assert!(host.run.as_mut().unwrap().check_waiting("call_c").is_err());
    assert_eq!(host.drive(three_calls).unwrap().status, RunStatus::Finished);
    assert_eq!(code(&mut host, "call_b"), ErrorCode::WrongState, "it is over");
    assert_eq!(statuses(&host), [Fine, Fine, Rejected]);
}

#[test]
fn r29_a_function_decides_and_one_that_fails_means_yes() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let mut setup = setup("run", CHAT, false);
    let callback = Callback { id: 5, hook: Rc::new(()) };
    setup.approval_callbacks = ["look", "find"].map(|name| (name.to_owned(), callback.clone())).into();
    host.needs_approval = Box::new(|question| match question.arguments.as_str() {
        r#"{"n":1}"# => ApprovalReply::NotNeeded,
        r#"{"n":2}"# => ApprovalReply::Failed("it threw: oops".into()),
        _ => ApprovalReply::Needed,
    });
    let outcome = host.ask(setup.clone(), "Go", three_calls);
    assert_eq!((outcome.status, waiting(&host)), (RunStatus::WaitingApproval, vec!["call_b".into(), "call_c".into()]));
    assert_eq!(ran(&host), ["call_a"]);
    let warnings: Vec<_> = outcome.report.iter().filter(|found| found.code == FindingCode::CallbackFailed).collect();
    assert!(warnings.len() == 1 && warnings[0].message.contains("oops"), "{:?}", outcome.report);
    // Late replies, and one about nothing.
    let mut invocations: Vec<String> =
        host.run.as_ref().unwrap().live().invocations().iter().map(|call| call.id.clone()).collect();
    invocations.push("nothing".into());
    for invocation in invocations {
        host.handle(RunInput::ApprovalReply(invocation, ApprovalReply::NotNeeded)).unwrap();
    }
    assert_eq!(waiting(&host).len(), 2);
    // The function is not asked again after a reload: what waits goes on waiting.
    let mut host = another(&store, "h2", &setup);
    assert_eq!(waiting(&host), ["call_b", "call_c"]);
    host.decide("call_b", Approve).unwrap();
    host.decide("call_c", Approve).unwrap();
    assert_eq!(host.drive(three_calls).unwrap().status, RunStatus::Finished);
}

#[test]
fn r29_an_interrupted_call_becomes_an_approval() {
    for approves in [true, false] {
        for needs_approval in [true, false] {
            let store = MemoryStore::default();
            let mut setup = setup("run", CHAT, false);
            let asks = ToolSettings { on_interrupted: OnInterrupted::Ask, needs_approval, ..ToolSettings::default() };
            setup.tool_settings.insert("find".into(), asks);
            let mut host = Host::open(&store, "s", "h");
            host.start(setup.clone(), "Go").unwrap();
            host.writes_left = Some(if needs_approval { 5 } else { 3 });
            let stopped = host.drive(one_call);
            if needs_approval {
                assert_eq!(stopped.unwrap().status, RunStatus::WaitingApproval);
                host.decide("call_b", Approve).unwrap();
                host.drive(one_call);
            }
            assert!(host.ran.is_empty(), "killed after the start was written");
            let host = another(&store, "h2", &setup);
            assert_eq!((host.run.as_ref().unwrap().status(), waiting(&host).len()), (RunStatus::WaitingApproval, 1));
            // Asked for in the journal too.
            let mut host = another(&store, if needs_approval { "h3" } else { "h4" }, &setup);
            assert_eq!(waiting(&host), ["call_b"]);
            host.decide("call_b", if approves { Approve } else { Reject(Some("sent already".into())) }).unwrap();
            assert_eq!(host.drive(one_call).unwrap().status, RunStatus::Finished);
            if approves {
                assert_eq!((host.ran[0].2, statuses(&host)), (2, vec![Fine]));
            } else {
                assert_eq!((host.ran.len(), statuses(&host)), (0, vec![Interrupted]));
                let content = host.asked[0]["messages"][3]["content"].as_str().unwrap();
                assert_eq!(
                    content,
                    "Error: the call was interrupted and may have run; running it again was rejected: sent already"
                );
            }
        }
    }
}

#[test]
fn r29_an_approval_that_cannot_be_stored_runs_nothing_until_it_is() {
    let spy = Spy::default();
    let mut host = Host::open(&spy, "s", "h");
    host.ask(asking(Persistence::Run, CHAT, false), "Go", one_call);
    *spy.faults.borrow_mut() = vec![Some(Fault::Refuses(ErrorCode::QuotaExceeded))];
    host.decide("call_b", Approve).unwrap();
    assert!(host.drive(one_call).is_none());
    assert!(host.events.iter().any(|event| matches!(event, RunEvent::SaveFailed { .. })));
    assert!(host.ran.is_empty() && host.run.as_ref().unwrap().effects().is_empty());
    assert_eq!(host.run.as_ref().unwrap().status(), RunStatus::Running);
    host.handle(RunInput::RetrySave).unwrap();
    assert_eq!(host.drive(one_call).unwrap().status, RunStatus::Finished);
    assert_eq!(ran(&host), ["call_b"]);
}

#[test]
fn r29_pp_48_an_approval_in_the_journal_twice_waits_once_and_a_decided_one_is_gone() {
    let spy = Spy::default();
    let mut host = Host::open(&spy, "s", "h");
    host.start(asking(Persistence::Run, CHAT, false), "Go").unwrap();
    // The save that asks is written, its reply lost, and it is repeated.
    *spy.faults.borrow_mut() = vec![None, Some(Fault::LosesReply)];
    host.drive(one_call);
    if host.run.as_ref().unwrap().has_unsaved() {
        host.handle(RunInput::RetrySave).unwrap();
        host.drive(one_call);
    }
    let mut host = another(&spy, "h2", &asking(Persistence::Run, CHAT, false));
    assert_eq!((waiting(&host), asked_events(&host).len()), (vec!["call_b".into()], 1));
    host.decide("call_b", Approve).unwrap();
    assert!(host.write());
    let host = another(&spy, "h3", &asking(Persistence::Run, CHAT, false));
    assert!(waiting(&host).is_empty() && host.run.as_ref().unwrap().effects().len() == 1);
}

#[test]
fn r12_r29_a_redacted_call_runs_while_its_owner_lives_and_is_reported_after_a_reload() {
    for reloads in [false, true] {
        let store = MemoryStore::default();
        let mut setup = asking(Persistence::Run, CHAT, false);
        setup.persist = [("find".to_owned(), Callback { id: 6, hook: Rc::new(()) })].into();
        let mut host = Host::open(&store, "s", "h");
        host.persist = Box::new(|_| PersistReply::Nothing);
        assert_eq!(host.ask(setup.clone(), "Go", one_call).status, RunStatus::WaitingApproval);
        if reloads {
            let entry = host.pending().remove(0);
            let stored = StoredRun::read(&block_on(read_journal(&store, "s", &entry)).unwrap(), SEED).unwrap();
            assert!(!stored.waits_for_approval(), "the arguments that would be approved are not known");
            host = Host::open(&store, "s", "h2");
            host.persist = Box::new(|_| PersistReply::Nothing);
            host.resume(setup).unwrap();
        } else {
            host.decide("call_b", Approve).unwrap();
        }
        assert_eq!(host.drive(one_call).unwrap().status, RunStatus::Finished);
        assert_eq!(host.ran.len(), usize::from(!reloads));
    }
}

#[test]
fn r29_a_cancelled_run_does_not_wait() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    host.ask(asking(Persistence::Call, CHAT, false), "Go", three_calls);
    assert_eq!(host.cancel().unwrap().status, RunStatus::Cancelled);
    assert_eq!(host.decide("call_b", Approve).unwrap_err().code, ErrorCode::WrongState);
    assert!(host.pending().is_empty() && waiting(&host).is_empty());
    host.render(CHAT);
}

#[test]
fn r29_a_rejected_call_in_history_takes_no_other_result() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    host.ask(asking(Persistence::Result, CHAT, false), "Go", one_call);
    host.decide("call_b", Reject(None)).unwrap();
    host.drive(one_call).unwrap();
    let reader = reopened(&host);
    let log = reader.log.borrow();
    let entries = log.history.invocations().iter().cloned().map(HistoryEntry::Invocation).count();
    assert!(entries == 1 && !log.history.invocations()[0].takes_result());
}
