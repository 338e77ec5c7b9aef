//! R12: what a tool's `persist` keeps out of the store is nowhere in it, and the model still gets it.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::scripted_host::*;
use super::spy_store::Spy;
use super::{reopened, roles};
use rethread::history::{HistoryEntry, JoinBase, Origin, join};
use rethread::json::Json;
use rethread::message::Dialect;
use rethread::provider::decode_body;
use rethread::replay::Callback;
use rethread::run::{
    OnInterrupted, OnStop, PersistQuestion, PersistReply, Persistence, RunSetup, RunStatus, StoredRun, ToolSettings,
};
use rethread::store::{AuditQuery, AuditRow, LogStore, MemoryStore, RecordKind, open_record, read_journal};
use rethread::tool::InvocationStatus;
use serde_json::Value;
use std::cell::RefCell;
use std::rc::Rc;

const SECRET: &str = "hunter2";

/// Two calls side by side, one with a secret, then text.
fn secretive(body: &Value) -> Answer {
    Answer::Say(match rounds_in(body) {
        0 => calls(&[("call_a", "look", r#"{"key":"hunter2","n":1}"#), ("call_b", "find", r#"{"n":2}"#)]),
        _ => text("All done."),
    })
}

/// `look` has a `persist`; the result that it gives repeats its arguments.
fn with_persist(dialect: Dialect, stream: bool) -> RunSetup {
    let mut setup = setup("run", dialect, stream);
    setup.persist.insert("look".into(), Callback { id: 1, hook: Rc::new(()) });
    setup
}

fn json(text: &str) -> Json {
    Json::parse(text).unwrap()
}

fn replaced(ask: &PersistQuestion) -> PersistReply {
    PersistReply::Replaced {
        arguments: Some(json(r#"{"key":"(gone)"}"#)),
        result: ask.result.as_ref().map(|_| json("\"(hidden)\"")),
    }
}

/// What the application may say, by name.
const SAYS: [&str; 6] = [
    "replaced",
    "nothing",
    "throws",
    "nothing, then replaced",
    "replaced, then throws",
    "nothing, then only the result",
];

fn say(how: &str, ask: &PersistQuestion) -> PersistReply {
    match (how, &ask.result) {
        ("replaced", _) | ("nothing, then replaced", Some(_)) | ("replaced, then throws", None) => replaced(ask),
        // It would not have the arguments stored, and says nothing of them now.
        ("nothing, then only the result", Some(_)) => {
            PersistReply::Replaced { arguments: None, result: Some(json("\"(hidden)\"")) }
        }
        ("nothing" | "nothing, then replaced" | "nothing, then only the result", _) => PersistReply::Nothing,
        _ => PersistReply::Failed("boom".into()),
    }
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

fn check_secret(spy: &Spy) {
    let written = spy.written.borrow();
    assert!(!written.is_empty() && !holds(&written, SECRET), "{}", String::from_utf8_lossy(&written));
}

#[test]
fn r12_redacted_values_are_sent_to_the_model_and_stored_nowhere() {
    for (dialect, stream) in super::WAYS {
        for how in SAYS {
            let spy = Spy::default();
            let mut host = Host::open(&spy, "s", "h");
            let asks = Rc::new(RefCell::new(Vec::new()));
            let seen = asks.clone();
            host.persist = Box::new(move |ask| {
                seen.borrow_mut().push(ask.clone());
                say(how, ask)
            });
            let outcome = host.ask(with_persist(dialect, stream), "Go", secretive);
            assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
            check_secret(&spy);
            // The live turn had the raw values.
            let body = host.asked[1].to_string();
            assert!(body.contains(SECRET) && body.contains("look gave"), "{body}");
            // Asked before the call was stored, and again with the result.
            let asks = asks.borrow();
            let expected = if how == "throws" { 1 } else { 2 };
            assert_eq!(asks.len(), expected, "{how}");
            assert_eq!((asks[0].name.as_str(), asks[0].arguments.as_str()), ("look", r#"{"key":"hunter2","n":1}"#));
            assert!(asks[0].result.is_none());
            assert!(asks.get(1).is_none_or(|ask| ask.result.as_ref().unwrap().as_str().contains(SECRET)));
            let failed: Vec<_> =
                outcome.report.iter().filter(|found| found.code.as_str() == "callback_failed").collect();
            assert_eq!(failed.len(), usize::from(how.contains("throws")), "{how}");
            // What is there of it afterwards.
            let mut reader = reopened(&host);
            let rendered = reader.render(dialect);
            let text = String::from_utf8(rendered.body).unwrap();
            let kept = ["replaced", "nothing, then replaced", "nothing, then only the result"].contains(&how);
            assert_eq!((text.contains("(hidden)"), text.contains("look")), (kept, kept));
            assert_eq!(text.contains("(gone)"), kept && !how.ends_with("only the result"));
            assert!(text.contains("find gave"), "{text}");
            let told: Vec<_> = rendered.report.iter().filter(|found| found.code.as_str() == "redacted").collect();
            assert_eq!(told.len(), usize::from(!kept), "{how}");
            assert!(told.iter().all(|found| found.call_id.as_deref() == Some("call_a")));
            let log = reader.log.borrow();
            let call = log.history.invocations().iter().find(|call| call.call_id == "call_a").unwrap();
            assert_eq!((call.name.as_str(), call.status, call.redacted), ("look", InvocationStatus::Ok, true));
            assert_eq!((call.is_withheld(), call.result.is_some()), (!kept, kept));
            let other = log.history.invocations().iter().find(|call| call.call_id == "call_b").unwrap();
            assert!(!other.redacted && other.result.is_some());
            let rows = block_on(spy.invocations(&AuditQuery::default())).unwrap().items;
            let rows: Vec<AuditRow> =
                rows.iter().map(|(_, row)| open_record(RecordKind::Audit, &row.value).unwrap()).collect();
            assert_eq!(rows.iter().map(|row| row.redacted).collect::<Vec<_>>(), [true, false]);
        }
    }
}

#[test]
fn r12_values_that_persist_keeps_are_stored_unchanged() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    host.persist = Box::new(|_| PersistReply::Replaced { arguments: None, result: None });
    host.ask(with_persist(CHAT, false), "Go", secretive);
    let log = host.log.borrow();
    let call = &log.history.invocations()[0];
    assert!(!call.redacted && call.arguments.text().contains(SECRET) && call.result.is_some());
}

#[test]
fn r12_provider_members_of_a_redacted_call_are_not_stored() {
    let spy = Spy::default();
    let mut host = Host::open(&spy, "s", "h");
    host.persist = Box::new(replaced);
    let outcome = host.ask(with_persist(CHAT, false), "Go", |body| match rounds_in(body) {
        0 => Answer::Status(200, Vec::new(), r#"{"id":"x","choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":null,"echo":{"args":"hunter2"},"tool_calls":[{"id":"call_a","type":"function","parsed":{"key":"hunter2"},"function":{"name":"look","arguments":"{\"key\":\"hunter2\"}"}}]}}]}"#.into()),
        _ => Answer::Say(text("All done.")),
    });
    assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
    check_secret(&spy);
    assert!(host.asked[0].to_string().contains("echo"), "live it is as it came");
    reopened(&host).render(CHAT);
}

#[test]
fn r12_without_an_answer_from_persist_nothing_of_the_call_is_stored() {
    let spy = Spy::default();
    let mut host = Host::open(&spy, "s", "h");
    host.start(with_persist(CHAT, false), "Go").unwrap();
    let run = host.run.as_mut().unwrap();
    let begin = run.take_save().unwrap();
    host.handle(rethread::run::RunInput::Saved { save: begin.id, outcome: Ok(1) }).unwrap();
    let effect = host.run.as_ref().unwrap().effects()[0].id.clone();
    let body = calls(&[("call_a", "look", r#"{"key":"hunter2"}"#)]).body(CHAT);
    host.reply(&effect, rethread::run::EffectReply::Response { status: 200, headers: Vec::new(), body }).unwrap();
    let save = host.run.as_mut().unwrap().take_save().unwrap();
    assert!(!format!("{save:?}").contains(SECRET), "{save:?}");
}

#[test]
fn r12_after_a_kill_at_any_write_a_redacted_call_is_reported_and_never_run_again() {
    for (dialect, stream) in super::WAYS {
        for how in SAYS {
            for rerun in [false, true] {
                let mut kills = 0;
                for writes in 1.. {
                    let data = MemoryStore::default();
                    let spy = Spy::new(&data);
                    let mut first = Host::open(&spy, "s", "first");
                    first.persist = Box::new(move |ask| say(how, ask));
                    first.start(with_persist(dialect, stream), "Go").unwrap();
                    first.writes_left = Some(writes);
                    if first.drive(secretive).is_some() {
                        break;
                    }
                    kills += 1;
                    check_secret(&spy);
                    let asked = first.asked.len();
                    let mut setup = with_persist(dialect, stream);
                    if rerun {
                        let tool_settings =
                            ToolSettings { on_interrupted: OnInterrupted::Rerun, ..ToolSettings::default() };
                        setup.tool_settings.insert("look".into(), tool_settings);
                    }
                    let mut host = Host::open(&spy, "s", "second");
                    let journal = block_on(read_journal(&spy, "s", &host.pending()[0])).unwrap();
                    let stored = StoredRun::read(&journal, SEED).unwrap();
                    let before =
                        stored.live.invocations().first().map_or(InvocationStatus::Pending, |call| call.status);
                    host.persist = Box::new(move |ask| say(how, ask));
                    host.resume(setup).unwrap();
                    let outcome = host.drive(secretive).expect("the run stands still");
                    assert_eq!(outcome.status, RunStatus::Finished, "{how} {writes}: {:?}", outcome.error);
                    check_secret(&spy);
                    // Once it was in the journal, `look` does not run any more, and the model knows that it called.
                    let journalled = asked > 0 && writes > 1;
                    if let Some(body) = host.asked.first().filter(|_| journalled) {
                        let mut body = body.clone();
                        body.as_object_mut().unwrap().remove("tools");
                        let body = body.to_string();
                        assert!(body.contains("look") && !body.contains(SECRET), "{how} {writes}: {body}");
                    }
                    let again = host.ran.iter().any(|(call, ..)| call == "call_a");
                    assert_eq!(again, !journalled, "{how} {writes}");
                    let reader = reopened(&host);
                    assert_eq!(roles(&reader).len(), 3);
                    let log = reader.log.borrow();
                    let call = log.history.invocations().iter().find(|call| call.call_id == "call_a").unwrap();
                    assert!(call.redacted, "{how} {writes}");
                    let unknown = journalled && before == InvocationStatus::Pending;
                    let want = if unknown { InvocationStatus::Interrupted } else { InvocationStatus::Ok };
                    assert_eq!(call.status, want, "{how} {writes}");
                    drop(log);
                    let mut reader = reader;
                    reader.render(CHAT);
                    reader.render(CLAUDE);
                }
                assert!(kills > 4, "{kills}");
            }
        }
    }
}

#[test]
fn r12_a_kept_partial_turn_contains_no_redacted_value() {
    for how in SAYS {
        let spy = Spy::default();
        let mut host = Host::open(&spy, "s", "h");
        host.persist = Box::new(move |ask| say(how, ask));
        let setup = RunSetup { on_stop: OnStop::Keep, ..with_persist(CHAT, false) };
        let outcome = host.ask(setup, "Go", |body| match rounds_in(body) {
            0 => secretive(body),
            _ => Answer::Status(400, Vec::new(), r#"{"error":{"message":"no"}}"#.into()),
        });
        assert_eq!((outcome.status, outcome.saved), (RunStatus::Failed, true));
        check_secret(&spy);
        reopened(&host).render(CHAT);
    }
}

#[test]
fn r12_a_stored_failure_does_not_quote_the_provider_if_a_call_is_redacted() {
    for (dialect, stream) in super::WAYS {
        for how in SAYS {
            let spy = Spy::default();
            let mut host = Host::open(&spy, "s", "h");
            host.persist = Box::new(move |ask| say(how, ask));
            let outcome = host.ask(with_persist(dialect, stream), "Go", |body| match rounds_in(body) {
                0 => secretive(body),
                _ => Answer::Status(400, Vec::new(), r#"{"error":{"message":"wrong: {\"key\":\"hunter2\"}"}}"#.into()),
            });
            // Who watches is told; what is stored says only that it failed.
            assert!(outcome.error.unwrap().message.contains(SECRET));
            check_secret(&spy);
            let (code, message) = host.pending()[0].failed.clone().unwrap();
            assert_eq!(code, "model_error");
            assert!(message.contains("not stored"), "{message}");
            // A resumed run knows of the redaction from its journal alone.
            let mut second = Host::open(&spy, "s", "second");
            let mut setup = with_persist(dialect, stream);
            setup.persist = Default::default();
            second.resume(setup).unwrap();
            let refused = r#"{"error":{"message":"again: hunter2"}}"#;
            second.drive(|_| Answer::Status(400, Vec::new(), refused.into())).unwrap();
            check_secret(&spy);
        }
    }
}

#[test]
fn r12_a_stored_failure_quotes_the_provider_if_nothing_is_redacted() {
    let spy = Spy::default();
    let mut host = Host::open(&spy, "s", "h");
    host.persist = Box::new(|_| PersistReply::Replaced { arguments: None, result: None });
    host.ask(with_persist(CHAT, false), "Go", |body| match rounds_in(body) {
        0 => secretive(body),
        _ => Answer::Status(400, Vec::new(), r#"{"error":{"message":"no such model"}}"#.into()),
    });
    assert!(host.pending()[0].failed.clone().unwrap().1.contains("no such model"));
}

#[test]
fn r12_a_call_of_which_nothing_is_stored_is_not_open() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    host.persist = Box::new(|_| PersistReply::Nothing);
    host.ask(with_persist(CHAT, false), "Go", secretive);
    let log = host.log.borrow();
    assert_eq!(log.history.open_calls().count(), 0);
    let late = decode_body(CHAT, json(r#"[{"role":"tool","tool_call_id":"call_a","content":"late"}]"#).view()).unwrap();
    let joined = join(JoinBase::history(&log.history), late, &Origin::default(), &host.ids);
    assert!(matches!(joined.entries.as_slice(), [HistoryEntry::SetAside(_)]), "{:?}", joined.entries);
}

#[test]
fn r12_persist_can_withhold_a_result_after_the_tool_ran() {
    // The arguments may be stored; of what came back nothing may, and then the arguments go, too.
    let spy = Spy::default();
    let mut host = Host::open(&spy, "s", "h");
    host.persist = Box::new(|ask| match ask.result {
        None => PersistReply::Replaced { arguments: None, result: None },
        Some(_) => PersistReply::Nothing,
    });
    host.tool = Box::new(|_, _| (json("\"hunter2\""), false));
    let plain = |body: &Value| {
        Answer::Say(match rounds_in(body) {
            0 => calls(&[("call_a", "look", r#"{"n":1}"#), ("call_b", "look", r#"{"n":2}"#)]),
            _ => text("All done."),
        })
    };
    host.start(with_persist(CHAT, false), "Go").unwrap();
    host.writes_left = Some(4);
    assert!(host.drive(plain).is_none());
    assert_eq!(host.ran.len(), 1);
    let mut second = Host::open(&spy, "s", "second");
    second.persist = Box::new(|_| PersistReply::Nothing);
    second.resume(with_persist(CHAT, false)).unwrap();
    assert_eq!(second.drive(plain).unwrap().status, RunStatus::Finished);
    assert_eq!(second.ran.len(), 1, "what was answered does not run again");
    check_secret(&spy);
    let log = second.log.borrow();
    let facts: Vec<_> = log.history.invocations().iter().map(|call| (call.status, call.is_withheld())).collect();
    assert_eq!(facts, [(InvocationStatus::Ok, true); 2]);
}

#[test]
fn r12_a_call_whose_result_alone_is_withheld_is_reported_as_such() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    host.persist = Box::new(|ask| match ask.result {
        None => PersistReply::Replaced { arguments: None, result: None },
        Some(_) => PersistReply::Nothing,
    });
    let outcome = host.ask(RunSetup { persistence: Persistence::Call, ..with_persist(CHAT, false) }, "Go", secretive);
    assert_eq!(outcome.status, RunStatus::Finished);
    let rendered = reopened(&host).render(CHAT);
    let found: Vec<_> = rendered.report.iter().filter(|found| found.code.as_str() == "redacted").collect();
    assert!(found.len() == 1 && found[0].message.starts_with("the result of this call is withheld"), "{found:?}");
}
