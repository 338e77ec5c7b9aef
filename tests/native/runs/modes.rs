//! When history is written: cases 1 to 13 of persistence-and-providers.md by their numbers, in every mode, and kills in
//! each.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::scripted_host::*;
use super::spy_store::{Fault, Spy};
use super::{WAYS, reopened};
use rethread::error::ErrorCode;
use rethread::history::{HistoryEntry, LogRecord};
use rethread::json::Json;
use rethread::message::{Dialect, MessageStatus, Role};
use rethread::run::{
    EffectReply, OnInterrupted, OnStop, PersistReply, Persistence, RunEvent, RunInput, RunSetup, RunStatus,
    ToolSettings,
};
use rethread::store::{LogStore, MemoryStore, RecordKind, Table, open_record, read_journal};
use rethread::tool::{InvocationStatus, Window};
use serde_json::Value;

const MODES: [Persistence; 3] = [Persistence::Run, Persistence::Call, Persistence::Result];
use Persistence::{Call, Result as EachResult, Run as WholeRun};

fn in_mode(persistence: Persistence, id: &str, dialect: Dialect, stream: bool) -> RunSetup {
    RunSetup { persistence, ..setup(id, dialect, stream) }
}

/// The setup with tools whose result ends the run.
fn ending(setup: RunSetup) -> RunSetup {
    let ends = ToolSettings { ends_run: true, ..ToolSettings::default() };
    RunSetup { tool_settings: ["look", "find"].map(|name| (name.to_owned(), ends)).into(), ..setup }
}

fn one_tool(body: &Value) -> Answer {
    Answer::Say(if rounds_in(body) == 0 { calls(&[("call_a", "look", "{}")]) } else { text("Done.") })
}

/// Fails the request after the first round.
fn second_call_fails(body: &Value) -> Answer {
    if rounds_in(body) == 0 { one_tool(body) } else { Answer::Status(400, Vec::new(), "{}".into()) }
}

/// The log, a text a record: `u` input, `a` answer, `c` open call, `c+` call with result, `r` result.
pub(super) fn stored(host: &Host<'_>) -> Vec<String> {
    let name = |entry: &HistoryEntry| match entry {
        HistoryEntry::Message(message) if message.role == Role::User => "u",
        HistoryEntry::Message(_) => "a",
        HistoryEntry::Invocation(call) if call.result.is_none() => "c",
        HistoryEntry::Invocation(_) => "c+",
        HistoryEntry::Result(_) => "r",
        HistoryEntry::SetAside(_) => "aside",
    };
    let record = |value: &bytes::Bytes| open_record::<LogRecord>(RecordKind::Log, value).unwrap();
    let texts = |record: LogRecord| record.entries.iter().map(name).collect::<Vec<_>>().join(" ");
    host.records(Table::Log).iter().map(|stored| texts(record(&stored.value))).collect()
}

fn saved_events(host: &Host<'_>) -> usize {
    host.events.iter().filter(|event| matches!(event, RunEvent::Saved { .. })).count()
}

#[test]
fn pp_01_a_text_reply_is_stored_with_its_question() {
    for (dialect, stream) in WAYS {
        for mode in MODES {
            let store = MemoryStore::default();
            let mut host = Host::open(&store, "s", "h");
            let outcome = host.ask(in_mode(mode, "run", dialect, stream), "Go", |_| Answer::Say(text("Hi.")));
            assert_eq!((outcome.status, outcome.saved), (RunStatus::Finished, true));
            assert_eq!(stored(&host), ["u a"], "{mode:?}");
            assert!(host.pending().is_empty() && host.records(Table::Runs).is_empty());
        }
    }
}

#[test]
fn pp_02_pp_03_pp_04_pp_13_one_tool_is_stored_after_each_call_after_each_result_or_at_the_end() {
    for (dialect, stream) in WAYS {
        let mut asked = Vec::new();
        for mode in MODES {
            let store = MemoryStore::default();
            let mut host = Host::open(&store, "s", "h");
            let outcome = host.ask(in_mode(mode, "run", dialect, stream), "Go", one_tool);
            assert_eq!((outcome.status, outcome.saved), (RunStatus::Finished, true), "{:?}", outcome.error);
            let want: &[&str] = match mode {
                WholeRun => &["u a c+ a"],
                Call => &["u a c", "r a"],
                EachResult => &["u a c", "r", "a"],
            };
            assert_eq!(stored(&host), want, "{dialect:?} {stream}");
            assert_eq!(saved_events(&host), want.len());
            assert_eq!(outcome.message_ids.len(), 3);
            assert!(host.pending().is_empty() && host.records(Table::Runs).is_empty());
            // Whoever opens the session reads the same of all.
            let reader = reopened(&host);
            let log = reader.log.borrow();
            let turns: Vec<_> = log.history.messages().iter().map(|message| (message.role, message.turn)).collect();
            assert_eq!(turns, [(Role::User, 0), (Role::Assistant, 0), (Role::Assistant, 0)]);
            let call = &log.history.invocations()[0];
            assert_eq!((call.status, call.round, call.finished_at), (InvocationStatus::Ok, 0, Some(1_000_005)));
            assert!(call.result.is_some() && call.started_at == Some(1_000_000));
            asked.push((host.asked, reader.log.borrow().history.messages().len()));
        }
        // The model is sent the same in every mode.
        assert!(asked.windows(2).all(|two| two[0] == two[1]));
    }
}

#[test]
fn r20_streamed_or_whole_every_mode_stores_the_same_records() {
    for dialect in [CHAT, CLAUDE, RESPONSES] {
        for mode in MODES {
            let records = [false, true].map(|stream| {
                let store = MemoryStore::default();
                let mut host = Host::open(&store, "s", "h");
                host.ask(in_mode(mode, "run", dialect, stream), "Go", three_tools);
                stored(&host)
            });
            assert_eq!(records[0], records[1]);
        }
    }
}

#[test]
fn pp_05_pp_06_pp_07_a_call_that_fails_leaves_what_was_stored_and_the_next_request_is_valid() {
    for (dialect, stream) in WAYS {
        for mode in MODES {
            let store = MemoryStore::default();
            let mut host = Host::open(&store, "s", "h");
            let outcome = host.ask(in_mode(mode, "run", dialect, stream), "Go", second_call_fails);
            assert_eq!((outcome.status, outcome.saved), (RunStatus::Failed, false));
            let want: &[&str] = match mode {
                WholeRun => &[],
                Call => &["u a c"],
                EachResult => &["u a c", "r"],
            };
            assert_eq!(stored(&host), want);
            // It can be resumed: nothing that was answered is asked again, and the tool does not run again.
            assert_eq!(host.pending().len(), 1);
            // The host checks each body. What may have run is not hidden from the model.
            let mut next = Host::open(&store, "s", "h2");
            let outcome = next.ask(in_mode(mode, "next", dialect, stream), "And?", |_| Answer::Say(text("Yes.")));
            assert_eq!(outcome.status, RunStatus::Finished);
            let body = next.asked[0].to_string();
            assert_eq!(body.contains("may or may not have run"), mode == Call, "{mode:?} {body}");
            assert_eq!(body.contains("look gave"), mode == EachResult, "{body}");
        }
    }
}

#[test]
fn pp_06_a_failed_run_goes_on_where_it_was() {
    for mode in MODES {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        host.ask(in_mode(mode, "run", CHAT, true), "Go", second_call_fails);
        let mut next = Host::open(&store, "s", "h2");
        next.resume(in_mode(mode, "run", CHAT, true)).unwrap();
        let outcome = next.drive(one_tool).unwrap();
        assert_eq!(
            (outcome.status, outcome.model_calls, next.asked.len(), next.ran.len()),
            (RunStatus::Finished, 2, 1, 0)
        );
        let want: &[&str] = match mode {
            WholeRun => &["u a c+ a"],
            Call => &["u a c", "r a"],
            EachResult => &["u a c", "r", "a"],
        };
        assert_eq!(stored(&next), want);
        assert!(next.pending().is_empty());
    }
}

#[test]
fn r16_pp_08_pp_09_a_trailing_result_is_stored_in_mode_run_and_result_or_trimmed() {
    for (dialect, stream) in WAYS {
        for (mode, trims, want) in [
            (WholeRun, false, &["u a c+"][..]),
            (WholeRun, true, &["u a c"]),
            (Call, false, &["u a c"]),
            (EachResult, false, &["u a c", "r"]),
        ] {
            let store = MemoryStore::default();
            let mut host = Host::open(&store, "s", "h");
            let setup = RunSetup { trim_trailing_results: trims, ..ending(in_mode(mode, "run", dialect, stream)) };
            let outcome = host.ask(setup, "Go", one_tool);
            assert_eq!((outcome.status, outcome.model_calls), (RunStatus::Finished, 1));
            assert_eq!(stored(&host), want, "{mode:?} {trims}");
            assert!(host.pending().is_empty() && host.records(Table::Runs).is_empty());
            assert!(host.events.iter().any(|event| matches!(event, RunEvent::ToolFinished { .. })), "it is returned");
            // A call without a result is closed, since its tool ran.
            let body = String::from_utf8(host.render(dialect).body).unwrap();
            assert_eq!(body.contains("may or may not have run"), want.last() == Some(&"u a c"), "{body}");
        }
    }
}

#[test]
fn pp_10_an_abandoned_stream_leaves_its_inputs_as_a_service_has_them_and_the_partial_text_by_option() {
    for dialect in [CHAT, CLAUDE, RESPONSES] {
        for mode in MODES {
            for (on_stop, want) in
                [(OnStop::Discard, if mode == WholeRun { &[][..] } else { &["u"][..] }), (OnStop::Keep, &["u a"][..])]
            {
                let store = MemoryStore::default();
                let mut host = Host::open(&store, "s", "h");
                host.start(RunSetup { on_stop, ..in_mode(mode, "run", dialect, true) }, "Go").unwrap();
                let bytes = text("Half of an answer, and more.").stream(dialect);
                let begin = bytes.windows(4).position(|part| part == b"Half").unwrap();
                let end = begin + bytes[begin..].windows(2).position(|part| part == b"\n\n").unwrap() + 2;
                assert!(host.drive(|_| Answer::Partly(bytes[..end].to_vec())).is_none());
                assert_eq!(host.cancel().unwrap().status, RunStatus::Cancelled);
                assert_eq!(stored(&host), want, "{dialect:?} {mode:?} {on_stop:?}");
                let log = host.log.borrow();
                let last = log.history.messages().last();
                let is_marked = last.is_some_and(|last| last.status == MessageStatus::Stopped);
                assert_eq!(is_marked, on_stop == OnStop::Keep);
                drop(log);
                reopened(&host).render(dialect);
            }
        }
    }
}

#[test]
fn pp_11_a_save_has_what_was_there_when_it_was_queued() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    host.start(in_mode(EachResult, "run", CHAT, false), "Go").unwrap();
    host.write();
    let effects = |host: &Host<'_>| host.run.as_ref().unwrap().effects().into_iter().cloned().collect::<Vec<_>>();
    let say = calls(&[("a", "look", "{}"), ("b", "find", "{}")]);
    let ask = effects(&host)[0].id.clone();
    host.reply(&ask, EffectReply::Response { status: 200, headers: Vec::new(), body: say.body(CHAT) }).unwrap();
    host.write();
    for tool in effects(&host) {
        host.reply(&tool.id, EffectReply::Started).unwrap();
        let content = Json::parse("1").unwrap();
        host.reply(&tool.id, EffectReply::ToolResult { content, is_error: false }).unwrap();
    }
    // Four saves wait; each is written as it was.
    host.write();
    assert_eq!(stored(&host), ["u a c c", "r", "r"]);
    reopened(&host);
}

/// What holds of a session at any instant: it can be read, and every dialect can be sent it.
fn check_readable(store: &MemoryStore) {
    let mut reader = Host::open(store, "s", "reader");
    assert!(reader.log.borrow().findings.is_empty());
    for dialect in [CHAT, CLAUDE, RESPONSES] {
        reader.render(dialect);
    }
}

#[test]
fn r16_r17_r18_killed_after_any_write_in_any_mode_nothing_is_lost_doubled_or_run_twice() {
    for (dialect, stream) in [(CHAT, false), (CLAUDE, true), (RESPONSES, true)] {
        for mode in MODES {
            for rerun in [false, true] {
                let mut kills = 0;
                for writes in 1.. {
                    let store = MemoryStore::default();
                    let mut first = Host::open(&store, "s", "first");
                    first.start(in_mode(mode, "run", dialect, stream), "Go").unwrap();
                    first.writes_left = Some(writes);
                    if first.drive(three_tools).is_some() {
                        break;
                    }
                    kills += 1;
                    check_readable(&store);
                    let before: Vec<String> = stored(&first);
                    let mut host = Host::open(&store, "s", "second");
                    let entry = host.pending()[0].clone();
                    let journal = block_on(read_journal(&store, "s", &entry)).unwrap();
                    let run = rethread::run::StoredRun::read(&journal, SEED).unwrap();
                    assert_eq!(run.began.persistence, mode);
                    // In mode result a call is in history before its tool runs, and a result the moment it is
                    // journalled.
                    let log = host.log.borrow();
                    for call in run.live.invocations().iter().filter(|_| mode != WholeRun) {
                        let in_history = log.history.invocation(&call.id).expect("the call is durable");
                        assert!(mode != EachResult || in_history.result == call.result, "kill {writes}");
                    }
                    assert!(mode != WholeRun || log.history.messages().is_empty());
                    drop(log);
                    let mut setup = in_mode(mode, "run", dialect, stream);
                    if rerun {
                        let again = ToolSettings { on_interrupted: OnInterrupted::Rerun, ..ToolSettings::default() };
                        setup.tool_settings = ["look", "find"].map(|name| (name.to_owned(), again)).into();
                    }
                    host.resume(setup).unwrap();
                    let outcome = host.drive(three_tools).unwrap();
                    assert_eq!((outcome.status, outcome.model_calls), (RunStatus::Finished, 3), "kill {writes}");
                    assert_eq!(host.asked.len(), 3 - run.model_calls as usize, "a model call was repeated");
                    if !rerun {
                        let ran = |id: &String| first.ran.iter().any(|(_, ran, _)| ran == id);
                        assert!(host.ran.iter().all(|(_, id, _)| !ran(id)), "kill {writes}: a tool ran twice");
                    }
                    assert_eq!(stored(&host)[..before.len()], before[..], "what was stored stays as it is");
                    let reader = reopened(&host);
                    let log = reader.log.borrow();
                    let roles: Vec<_> = log.history.messages().iter().map(|message| message.role).collect();
                    assert_eq!(roles, [Role::User, Role::Assistant, Role::Assistant, Role::Assistant]);
                    assert_eq!(log.history.invocations().len(), 3);
                    assert!(log.history.invocations().iter().all(|call| call.result.is_some()));
                    assert!(log.history.set_aside().is_empty() && log.head.runs.is_empty());
                    drop(log);
                    check_readable(&store);
                }
                assert!(kills >= 8, "{kills} kills");
            }
        }
    }
}

#[test]
fn r17_a_result_is_in_history_the_moment_it_exists() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    host.start(in_mode(EachResult, "run", CHAT, false), "Go").unwrap();
    let seen = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let (data, seen_by_tool) = (store.clone(), seen.clone());
    host.tool = Box::new(move |name, _| {
        // Another reader, while the tool runs.
        let reader = Host::open(&data, "s", "reader");
        let log = reader.log.borrow();
        let call = log.history.invocations().iter().rfind(|call| call.name == name).expect("the call before its tool");
        let answered = log.history.invocations().iter().filter(|call| call.result.is_some()).count();
        seen_by_tool.borrow_mut().push((call.status, answered));
        (Json::parse("1").unwrap(), false)
    });
    assert_eq!(host.drive(three_tools).unwrap().status, RunStatus::Finished);
    drop(host);
    let pending = InvocationStatus::Pending;
    assert_eq!(*seen.borrow(), [(pending, 0), (pending, 1), (pending, 2)]);
}

#[test]
fn r16_another_writer_between_two_calls_leaves_a_readable_history_and_a_whole_turn_for_the_model() {
    for mode in [Call, EachResult] {
        for dialect in [CHAT, CLAUDE, RESPONSES] {
            let store = MemoryStore::default();
            let mut host = Host::open(&store, "s", "h");
            let data = store.clone();
            host.tool = Box::new(move |_, _| {
                let mut other = Host::open(&data, "s", "other");
                if other.log.borrow().history.messages().len() < 3 {
                    let outcome = other.ask(setup("other", CHAT, false), "Me too", |_| Answer::Say(text("Other.")));
                    assert_eq!(outcome.status, RunStatus::Finished);
                }
                (Json::parse("1").unwrap(), false)
            });
            let outcome = host.ask(in_mode(mode, "run", dialect, false), "Go", one_tool);
            assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
            let reader = reopened(&host);
            let log = reader.log.borrow();
            assert_eq!(log.history.messages().len(), 5);
            assert!(log.history.invocations().iter().all(|call| call.status == InvocationStatus::Ok));
            drop(log);
            check_readable(&store);
        }
    }
}

#[test]
fn r12_the_live_turn_sends_raw_values_and_every_mode_stores_the_redacted_ones() {
    for mode in MODES {
        let data = MemoryStore::default();
        let spy = Spy::new(&data);
        let mut host = Host::open(&spy, "s", "h");
        host.persist = Box::new(|ask| PersistReply::Replaced {
            arguments: Some(Json::parse(r#"{"n":0}"#).unwrap()),
            result: ask.result.as_ref().map(|_| Json::parse("\"hidden\"").unwrap()),
        });
        host.tool = Box::new(|_, _| (Json::parse("\"raw-result\"").unwrap(), false));
        let persist = rethread::replay::Callback { id: 1, hook: std::rc::Rc::new(()) };
        let setup = RunSetup { persist: [("look".to_owned(), persist)].into(), ..in_mode(mode, "run", CHAT, false) };
        let outcome = host.ask(setup, "Go", |body| {
            Answer::Say(if rounds_in(body) == 0 { calls(&[("a", "look", r#"{"n":77123}"#)]) } else { text("Done.") })
        });
        assert_eq!(outcome.status, RunStatus::Finished);
        let sent = host.asked[1].to_string();
        assert!(sent.contains("raw-result") && sent.contains("77123"), "{mode:?} {sent}");
        let written = String::from_utf8_lossy(&spy.written.borrow()).into_owned();
        assert!(written.contains("hidden") && !written.contains("raw-result") && !written.contains("77123"));
        let reader = reopened(&host);
        assert!(reader.log.borrow().history.invocations().iter().all(|call| call.redacted && call.result.is_some()));
    }
}

#[test]
fn r10_nothing_of_the_running_turn_is_stale_though_history_has_it() {
    for mode in MODES {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let never = ToolSettings { freshness: Some(Window::Millis(0)), ..ToolSettings::default() };
        let mut setup = in_mode(mode, "run", CHAT, false);
        setup.tool_settings.insert("look".into(), never);
        host.ask(setup, "Go", one_tool);
        assert!(host.asked[1].to_string().contains("look gave"), "{mode:?}");
    }
}

#[test]
fn r58_a_save_whose_reply_is_lost_or_that_fails_is_stored_once_in_every_mode() {
    for mode in MODES {
        for fault in [Fault::LosesReply, Fault::Refuses(ErrorCode::QuotaExceeded)] {
            for at in 1..9 {
                let data = MemoryStore::default();
                let spy = Spy::new(&data);
                let mut host = Host::open(&spy, "s", "h");
                let mut faults = vec![None; at];
                faults.push(Some(fault.clone()));
                *spy.faults.borrow_mut() = faults;
                host.start(in_mode(mode, "run", CHAT, false), "Go").unwrap();
                let mut outcome = host.drive(three_tools);
                if outcome.is_none() {
                    assert!(host.run.as_ref().unwrap().has_unsaved(), "{mode:?} {at}: it stands still");
                    host.handle(RunInput::RetrySave).unwrap();
                    outcome = host.drive(three_tools);
                }
                // A tool whose start could not be written does not run; the run can be resumed.
                if outcome.unwrap().status == RunStatus::Failed {
                    host = Host::open(&spy, "s", "h2");
                    host.resume(in_mode(mode, "run", CHAT, false)).unwrap();
                    assert_eq!(host.drive(three_tools).unwrap().status, RunStatus::Finished);
                }
                let reader = reopened(&host);
                let log = reader.log.borrow();
                assert_eq!((log.history.messages().len(), log.history.invocations().len()), (4, 3), "{mode:?} {at}");
                assert!(log.history.set_aside().is_empty() && log.head.runs.is_empty());
            }
        }
    }
}

/// Writes a head with a flipped bit past the log, as a disk that rots does.
fn damage_head(store: &MemoryStore, operation: &str) {
    let head = block_on(store.head("s")).unwrap().unwrap();
    let mut bytes = head.value.to_vec();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    let batch = rethread::store::Batch { head: bytes.into(), ..rethread::store::Batch::default() };
    block_on(store.append("s", head.revision, batch, operation)).unwrap();
}

#[test]
fn r18_a_lost_head_is_rebuilt_with_the_unfinished_run_of_every_mode() {
    for mode in MODES {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        host.start(in_mode(mode, "run", CHAT, false), "Go").unwrap();
        host.writes_left = Some(4);
        assert!(host.drive(three_tools).is_none());
        damage_head(&store, "damage");
        let mut next = Host::open(&store, "s", "h2");
        assert_eq!(next.pending().len(), 1, "{mode:?}");
        next.resume(in_mode(mode, "run", CHAT, false)).unwrap();
        assert_eq!(next.drive(three_tools).unwrap().status, RunStatus::Finished);
        assert!(next.pending().is_empty());
        // The run that is over is not offered again when the head is lost once more.
        damage_head(&store, "damage again");
        assert!(Host::open(&store, "s", "h3").pending().is_empty());
    }
}

#[test]
fn r16_a_run_can_be_resumed_in_another_mode() {
    for from in MODES {
        for to in MODES {
            let store = MemoryStore::default();
            let mut host = Host::open(&store, "s", "h");
            host.start(in_mode(from, "run", CHAT, false), "Go").unwrap();
            host.writes_left = Some(4);
            assert!(host.drive(three_tools).is_none());
            let mut next = Host::open(&store, "s", "h2");
            next.resume(in_mode(to, "run", CHAT, false)).unwrap();
            assert_eq!(next.drive(three_tools).unwrap().status, RunStatus::Finished, "{from:?} {to:?}");
            let reader = reopened(&next);
            let log = reader.log.borrow();
            assert_eq!((log.history.messages().len(), log.history.invocations().len()), (4, 3), "{from:?} {to:?}");
            assert!(log.history.invocations().iter().all(|call| call.result.is_some()));
        }
    }
}
