//! Asynchronous tools: calls whose results come later (R75).

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::prefixes::{callback, check_extends};
use super::scripted_host::*;
use super::snapshots::{resume, snapshot};
use super::{calls_in, reopened};
use rethread::clock::Clock;
use rethread::error::ErrorCode;
use rethread::finding::PrefixChange;
use rethread::message::Dialect;
use rethread::provider::ToolDefinition;
use rethread::replay::{QuestionKind, Reducer, ReducerReply};
use rethread::run::{
    EffectReply, OpenCall, Persistence, RunEvent, RunOutcome, RunSetup, RunStatus, ToolSettings, ToolTiming,
};
use rethread::store::MemoryStore;
use rethread::synthetic_result::{EXPIRED, INTERRUPTED, LATE_RESULT, NO_RESULT, NOT_RUN, PENDING};
use rethread::tool::InvocationStatus;
use serde_json::{Value, json};

pub const MODES: [Persistence; 3] = [Persistence::Run, Persistence::Call, Persistence::Result];

/// A run with the asynchronous tool `later_export` beside the others.
pub fn async_setup(id: &str, dialect: Dialect, stream: bool, mode: Persistence, timing: ToolTiming) -> RunSetup {
    let mut setup = setup(id, dialect, stream);
    let name = "later_export".to_owned();
    setup.tools.push(ToolDefinition {
        name: name.clone(),
        description: None,
        parameters: None,
        strict: false,
        is_async: true,
    });
    setup.tool_settings.insert(name, ToolSettings { timing, ..ToolSettings::default() });
    setup.persistence = mode;
    setup
}

/// Says something and calls the asynchronous tool beside another one; then text.
pub fn exports(body: &Value) -> Answer {
    Answer::Say(match rounds_in(body) {
        0 => Say {
            text: "Starting.".into(),
            ..calls(&[("call_a", "later_export", r#"{"n":1}"#), ("call_b", "look", r#"{"n":2}"#)])
        },
        _ => text("It is under way."),
    })
}

pub fn says(words: &'static str) -> impl Fn(&Value) -> Answer {
    move |_| Answer::Say(text(words))
}

/// The items of a body's list, as texts.
pub fn list(body: &Value) -> Vec<String> {
    let list = body.get("messages").or(body.get("input")).unwrap();
    list.as_array().unwrap().iter().map(Value::to_string).collect()
}

pub fn position(items: &[String], part: &str) -> usize {
    let found: Vec<usize> = (0..items.len()).filter(|at| items[*at].contains(part)).collect();
    assert_eq!(found.len(), 1, "{part} in {items:#?}");
    found[0]
}

/// How often a body says that a call was interrupted.
pub fn is_false(body: &str) -> bool {
    [INTERRUPTED, NO_RESULT, NOT_RUN].iter().any(|text| body.contains(text))
}

fn first_run(host: &mut Host<'_>, setup: RunSetup) -> RunOutcome {
    host.pending_tools = vec!["later_export"];
    let outcome = host.ask(setup, "Export, please", exports);
    assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
    outcome
}

#[test]
fn r75_a_run_finishes_with_its_call_open_and_says_so() {
    for (dialect, stream) in super::WAYS {
        for mode in MODES {
            for timing in [ToolTiming::MayBeLater, ToolTiming::Later] {
                let store = MemoryStore::default();
                let mut host = Host::open(&store, "s", "h");
                let outcome = first_run(&mut host, async_setup("run", dialect, stream, mode, timing));
                assert_eq!(outcome.text.decode().as_ref(), "It is under way.");
                let open = &outcome.open_calls;
                assert!(matches!(open.as_slice(), [OpenCall { name, .. }] if name == "later_export"), "{open:?}");
                let pending = host.events.iter().filter(|event| matches!(event, RunEvent::ToolPending { .. }));
                assert_eq!(pending.count(), 1);
                // The host that answers later itself is not asked.
                assert_eq!(host.ran.len(), if timing == ToolTiming::Later { 1 } else { 2 });
                let (pending, ok) = (InvocationStatus::Pending, InvocationStatus::Ok);
                let statuses: Vec<_> = calls_in(&host).into_iter().map(|(.., status)| status).collect();
                assert_eq!(statuses, [pending, ok]);
                reopened(&host);
                // The model is told that the result comes, and is never told that the call was interrupted.
                let second = host.asked[1].to_string();
                assert!(!is_false(&second), "{dialect:?}: {second}");
                assert_eq!(second.contains(PENDING), dialect != RESPONSES, "{second}");
            }
        }
    }
}

#[test]
fn r75_a_late_result_goes_out_once_with_the_next_request_and_stays_where_it_was() {
    for (dialect, stream) in super::WAYS {
        for mode in MODES {
            let store = MemoryStore::default();
            let mut host = Host::open(&store, "s", "h");
            let open =
                first_run(&mut host, async_setup("run", dialect, stream, mode, ToolTiming::MayBeLater)).open_calls;
            let with = |id: &str| async_setup(id, dialect, stream, mode, ToolTiming::MayBeLater);
            host.ask(with("run2"), "How far is it?", says("Not done yet."));
            // Days later, in another process.
            host.clock.advance(3 * 24 * 3_600_000);
            let mut other = Host::open(&store, "s", "other");
            other.clock.advance(3 * 24 * 3_600_000);
            other.late(&open[0].invocation, &json!({ "rows": 7001 })).unwrap();
            let statuses: Vec<_> = calls_in(&other).into_iter().map(|(.., status)| status).collect();
            assert_eq!(statuses, [InvocationStatus::Ok, InvocationStatus::Ok]);
            other.asked.clear();
            other.ask(with("run3"), "And now?", says("Seven thousand and one."));
            let items = list(&other.asked[0]);
            let late = position(&items, "7001");
            // Behind what was said before, and before the question that it comes with.
            assert!(position(&items, "Not done yet.") < late && late < position(&items, "And now?"));
            assert!(!is_false(&other.asked[0].to_string()));
            if dialect == RESPONSES {
                assert!(
                    items[late].contains("function_call_output") && items[late].contains("call_a"),
                    "{}",
                    items[late]
                );
                assert!(!items[late].contains(LATE_RESULT));
            } else {
                assert!(items[late].contains(LATE_RESULT) && items[late].contains("call_a"), "{}", items[late]);
                assert!(other.asked[0].to_string().contains(PENDING));
            }
            // It stays there, and nothing before it changes.
            let mut third = Host::open(&store, "s", "third");
            third.clock.advance(3 * 24 * 3_600_000);
            third.ask(with("run4"), "Thanks", says("Welcome."));
            let later = list(&third.asked[0]);
            assert_eq!(later[..items.len()], items[..], "{dialect:?} {mode:?}");
            assert_eq!(position(&later, "7001"), late);
        }
    }
}

#[test]
fn r75_killed_after_any_write_the_call_stays_open_and_runs_once() {
    for (dialect, stream) in super::WAYS {
        for mode in MODES {
            for timing in [ToolTiming::MayBeLater, ToolTiming::Later] {
                for writes in 1.. {
                    let store = MemoryStore::default();
                    let mut host = Host::open(&store, "s", "first");
                    host.pending_tools = vec!["later_export"];
                    host.start(async_setup("run", dialect, stream, mode, timing), "Export, please").unwrap();
                    host.writes_left = Some(writes);
                    if host.drive(exports).is_some() {
                        break;
                    }
                    // Handed over by the effect's reply, which the journal has or has not.
                    let mut second = Host::open(&store, "s", "second");
                    second.pending_tools = vec!["later_export"];
                    second.resume(async_setup("run", dialect, stream, mode, timing)).unwrap();
                    let outcome = second.drive(exports).unwrap();
                    assert_eq!(outcome.status, RunStatus::Finished, "kill {writes}: {:?}", outcome.error);
                    let ran = |host: &Host<'_>| host.ran.iter().filter(|(call, ..)| call.starts_with("call_a")).count();
                    let calls = calls_in(&second);
                    let (id, .., status) = &calls[0];
                    // A start without the word that the result comes later may have run: it is reported, and the real
                    // result still replaces it.
                    let may_have_run = *status == InvocationStatus::Interrupted;
                    assert!(may_have_run || *status == InvocationStatus::Pending, "kill {writes}: {status:?}");
                    assert!(ran(&host) + ran(&second) <= 1, "kill {writes}: {id} ran twice");
                    assert!(!may_have_run || timing == ToolTiming::MayBeLater, "kill {writes}");
                    assert_eq!(outcome.open_calls.len(), usize::from(!may_have_run), "kill {writes}");
                    reopened(&second);
                    second.late(id, &json!("seven thousand")).unwrap();
                    second.ask(async_setup("run2", dialect, stream, mode, timing), "Well?", says("Ok."));
                    let body = second.asked.last().unwrap().to_string();
                    assert_eq!(body.matches("seven thousand").count(), 1, "kill {writes} {dialect:?} {mode:?}: {body}");
                }
            }
        }
    }
}

#[test]
fn r75_a_snapshot_keeps_open_calls_and_late_results_where_they_were() {
    for (dialect, stream) in super::WAYS {
        for mode in MODES {
            let store = MemoryStore::default();
            let mut host = Host::open(&store, "s", "h");
            let with = |id: &str| async_setup(id, dialect, stream, mode, ToolTiming::Later);
            let open = first_run(&mut host, with("run")).open_calls;
            host.late(&open[0].invocation, &json!("seven thousand")).unwrap();
            host.start(with("run2"), "And now?").unwrap();
            let seen = host.drive(|_| Answer::Hang);
            assert!(seen.is_none());
            let bytes = snapshot(&mut host).unwrap();
            // On another machine, whose store is empty.
            let elsewhere = MemoryStore::default();
            let mut other = Host::open(&elsewhere, "s", "other");
            resume(&mut other, &bytes, with("run2")).unwrap();
            let outcome = other.drive(says("Seven thousand.")).unwrap();
            assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
            let there = list(&other.asked[0]);
            let outcome = host.drive(says("Seven thousand.")).unwrap();
            assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
            assert_eq!(list(host.asked.last().unwrap()), there, "{dialect:?} {mode:?}");
            position(&there, "seven thousand");
        }
    }
}

#[test]
fn r75_a_result_that_comes_while_a_run_is_under_way_ends_its_next_request() {
    for (dialect, stream) in super::WAYS {
        for mode in MODES {
            let store = MemoryStore::default();
            let mut host = Host::open(&store, "s", "h");
            let with = |id: &str| async_setup(id, dialect, stream, mode, ToolTiming::Later);
            let open = first_run(&mut host, with("run")).open_calls;
            host.asked.clear();
            host.start(with("run2"), "Look again").unwrap();
            // The run waits for its tool; another process stores the result.
            host.tool = Box::new(|_, _| (rethread::json::Json::parse("\"looked\"").unwrap(), false));
            let mut calls_made = 0;
            let mut stop = |_: &Value| {
                calls_made += 1;
                if calls_made == 1 { Answer::Say(calls(&[("call_x", "look", "{}")])) } else { Answer::Hang }
            };
            assert!(host.drive(&mut stop).is_none());
            let mut other = Host::open(&store, "s", "other");
            other.late(&open[0].invocation, &json!("seven thousand")).unwrap();
            host.refresh();
            // The request that was built before is answered; the next one has the result at its end.
            let mut model = |body: &Value| {
                if body.to_string().contains("seven thousand") {
                    Answer::Say(text("Seven thousand."))
                } else {
                    Answer::Say(calls(&[("call_y", "look", "{}")]))
                }
            };
            let outcome = host.drive(&mut model).unwrap();
            assert_eq!(outcome.text.decode().as_ref(), "Seven thousand.");
            let bodies: Vec<Vec<String>> = host.asked.iter().map(list).collect();
            for pair in bodies.windows(2) {
                assert_eq!(
                    pair[1][..pair[0].len()],
                    pair[0][..],
                    "{dialect:?} {mode:?}: each request extends the one before it"
                );
            }
            let last = bodies.last().unwrap();
            assert_eq!(position(last, "seven thousand"), last.len() - 1);
            // And it stays there.
            other = Host::open(&store, "s", "third");
            other.ask(with("run3"), "Thanks", says("Welcome."));
            assert_eq!(list(&other.asked[0])[..last.len()], last[..], "{dialect:?} {mode:?}");
        }
    }
}

#[test]
fn r75_a_round_of_open_calls_alone_ends_the_run_where_the_request_would_say_nothing_new() {
    for (dialect, stream) in super::WAYS {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let model = |body: &Value| match rounds_in(body) {
            0 => Answer::Say(Say { text: "Starting.".into(), ..calls(&[("call_a", "later_export", "{}")]) }),
            _ => Answer::Say(text("It is under way.")),
        };
        let with = |id: &str| async_setup(id, dialect, stream, Persistence::Run, ToolTiming::Later);
        let outcome = host.ask(with("run"), "Export", model);
        assert_eq!((outcome.status, outcome.open_calls.len()), (RunStatus::Finished, 1));
        let expected = if dialect == RESPONSES { (1, "Starting.") } else { (2, "It is under way.") };
        assert_eq!((host.asked.len(), outcome.text.decode().as_ref()), expected, "{dialect:?}");
        // Without a question, the result itself is what the model answers.
        host.late("call_a", &json!("seven thousand")).unwrap();
        let outcome = host.ask(with("run2"), "", says("Seven thousand."));
        assert_eq!(outcome.status, RunStatus::Finished);
        let items = list(host.asked.last().unwrap());
        assert_eq!(position(&items, "seven thousand"), items.len() - 1);
    }
}

#[test]
fn r75_only_an_asynchronous_tool_may_answer_later() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    host.start(setup("run", CHAT, false), "Go").unwrap();
    host.write();
    let model = host.run.as_ref().unwrap().effects()[0].id.clone();
    let body = calls(&[("call_a", "look", "{}")]).body(CHAT);
    host.reply(&model, EffectReply::Response { status: 200, headers: Vec::new(), body }).unwrap();
    host.write();
    let tool = host.run.as_ref().unwrap().effects()[0].id.clone();
    assert_eq!(host.reply(&tool, EffectReply::Pending).unwrap_err().code, ErrorCode::WrongState);
    assert_eq!(host.drive(says("Done.")).unwrap().status, RunStatus::Finished);
}

#[test]
fn r75_freshness_counts_from_the_answer_and_the_call_keeps_its_place() {
    for (dialect, stream) in super::WAYS {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let with = |id: &str| async_setup(id, dialect, stream, Persistence::Run, ToolTiming::Later);
        let open = first_run(&mut host, with("run")).open_calls;
        host.clock.advance(3_600_000);
        host.late(&open[0].invocation, &json!("seven thousand")).unwrap();
        // An hour after the call and a day after the answer: it goes out all the same, since it never did.
        host.clock.advance(24 * 3_600_000);
        host.ask(with("run2"), "And now?", says("Seven thousand."));
        assert_eq!(host.asked.last().unwrap().to_string().matches("seven thousand").count(), 1);
        for placeholder in [false, true] {
            let mut setup = with(if placeholder { "run3" } else { "run4" });
            if placeholder {
                setup.policy.call.on_stale = Some(rethread::replay::OnStale::Placeholder);
            }
            host.ask(setup, "Thanks", says("Welcome."));
            let body = host.asked.last().unwrap().to_string();
            assert!(!body.contains("seven thousand") && body.contains("later_export"), "{body}");
            // The model waits for this result, so a note follows also where others are left out.
            assert_eq!(
                body.matches(EXPIRED).count(),
                if placeholder { 2 } else { 1 },
                "with that of the other tool: {body}"
            );
            assert_eq!(body.contains(PENDING), dialect != RESPONSES);
            assert!(!is_false(&body));
        }
    }
}

#[test]
fn r72_r75_a_late_result_that_is_too_old_is_a_note_and_freshness_is_what_changed() {
    for (dialect, stream) in super::WAYS {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let with = |id: &str| async_setup(id, dialect, stream, Persistence::Run, ToolTiming::Later);
        let mut rounds = 0;
        host.ask(with("run"), "Export", |_| {
            rounds += 1;
            Answer::Say(match rounds {
                1 => Say { text: "Starting.".into(), ..calls(&[("call_a", "later_export", "{}")]) },
                _ => text("It is under way."),
            })
        });
        host.late("call_a", &json!("seven thousand")).unwrap();
        host.ask(with("run2"), "And now?", says("Seven thousand."));
        host.clock.advance(301_000);
        host.ask(with("run3"), "Thanks", says("Welcome."));
        let body = host.asked.last().unwrap().to_string();
        assert!(body.contains(EXPIRED) && !body.contains("seven thousand"), "{body}");
        let prefix = host.events.iter().rev().find_map(|event| match event {
            RunEvent::ModelCalled { prefix, .. } => Some(*prefix),
            _ => None,
        });
        assert_eq!(prefix.unwrap().changed_by, Some(PrefixChange::Freshness), "{dialect:?}");
    }
}

#[test]
fn r75_an_id_that_is_used_again_names_the_newest_open_call_and_an_invocation_names_its_own() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let with = |id: &str| async_setup(id, CHAT, false, Persistence::Run, ToolTiming::Later);
    let first = first_run(&mut host, with("run")).open_calls;
    let second = first_run(&mut host, with("run2")).open_calls;
    assert_ne!(first[0].invocation, second[0].invocation);
    host.late("call_a", &json!("of the second")).unwrap();
    host.late(&first[0].invocation, &json!("of the first")).unwrap();
    let log = host.log.borrow();
    let result = |id: &str| log.history.invocation(id).unwrap().result.as_ref().unwrap().content.as_str().to_owned();
    assert_eq!(
        (result(&first[0].invocation), result(&second[0].invocation)),
        ("\"of the first\"".into(), "\"of the second\"".into())
    );
    drop(log);
    assert_eq!(host.late("call_a", &json!(1)).unwrap_err().code, ErrorCode::WrongState);
    assert_eq!(host.late("call_z", &json!(1)).unwrap_err().code, ErrorCode::NotFound);
}

/// Calls a tool, then says so.
fn a_round() -> impl FnMut(&Value) -> Answer {
    let mut count = 0;
    move |_| {
        count += 1;
        Answer::Say(if count == 1 { calls(&[("call_again", "look", "{}")]) } else { text("Done.") })
    }
}

#[test]
fn r75_a_late_result_that_was_never_sent_is_not_stale_whatever_the_mode_is() {
    for (dialect, stream) in super::WAYS {
        for mode in MODES {
            for input in ["And now?", ""] {
                let store = MemoryStore::default();
                let mut host = Host::open(&store, "s", "h");
                let with = |id: &str| async_setup(id, dialect, stream, mode, ToolTiming::Later);
                let open = first_run(&mut host, with("run")).open_calls;
                host.late(&open[0].invocation, &json!("seven thousand")).unwrap();
                host.clock.advance(24 * 3_600_000);
                host.asked.clear();
                // It is in every request of the run, and the tool runs in between.
                let outcome = host.ask(with("run2"), input, a_round());
                assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
                let bodies: Vec<Vec<String>> = host.asked.iter().map(list).collect();
                assert_eq!(bodies.len(), 2);
                assert_eq!(bodies[1][..bodies[0].len()], bodies[0][..], "{dialect:?} {mode:?} {input:?}");
                bodies.iter().for_each(|body| _ = position(body, "seven thousand"));
            }
        }
    }
}

#[test]
fn r71_r75_a_run_repeats_the_late_results_that_it_began_with_over_kills() {
    for (dialect, stream) in super::WAYS {
        for (mode, placeholder, input) in
            [(Persistence::Run, false, ""), (Persistence::Call, false, ""), (Persistence::Run, true, "Well?")]
        {
            let store = MemoryStore::default();
            let mut host = Host::open(&store, "s", "h");
            let with = |id: &str| {
                let mut setup = async_setup(id, dialect, stream, mode, ToolTiming::Later);
                setup.policy.call.on_stale = placeholder.then_some(rethread::replay::OnStale::Placeholder);
                setup.policy.call.reducers = Some(vec![Reducer::Custom { reduce: callback(3) }]);
                setup
            };
            host.reducer = Box::new(|question| {
                let QuestionKind::Reduce(messages) = question else { panic!("{question:?}") };
                ReducerReply::Messages(messages.clone())
            });
            let open = first_run(&mut host, with("run")).open_calls;
            host.late(&open[0].invocation, &json!("seven thousand")).unwrap();
            if placeholder {
                // It is sent, and is too old for the next run.
                host.ask(with("seen"), "And?", says("Seven thousand."));
                host.clock.advance(24 * 3_600_000);
            }
            host.asked.clear();
            host.sent.clear();
            host.start(with("run2"), input).unwrap();
            // The choice is in the journal before the first request is sent.
            assert!(host.drive(|_| Answer::Hang).is_none());
            let mut sent = std::mem::take(&mut host.sent);
            let mut other = Host::open(&store, "s", "other");
            other.clock.advance(host.clock.now() - other.clock.now());
            other.reducer = Box::new(|question| panic!("asked again: {question:?}"));
            other.resume(with("run2")).unwrap();
            let outcome = other.drive(a_round());
            assert_eq!(outcome.map(|outcome| outcome.status), Some(RunStatus::Finished));
            sent.append(&mut other.sent);
            assert_eq!((sent.len(), &sent[0]), (3, &sent[1]), "{dialect:?} {mode:?}");
            check_extends(&sent[1], &sent[2], dialect);
            let text = if placeholder { EXPIRED } else { "seven thousand" };
            assert!(String::from_utf8_lossy(&sent[0]).contains(text));
        }
    }
}
