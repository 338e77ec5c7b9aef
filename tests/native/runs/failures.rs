//! What goes wrong, what it leaves, and that the next run works.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::scripted_host::*;
use super::{WAYS, calls_in, reopened, roles};
use rethread::error::ErrorCode;
use rethread::json::Json;
use rethread::message::{Dialect, MessageStatus, PartBody, Role};
use rethread::run::{EffectKind, EffectReply, OnStop, Run, RunEvent, RunInput, RunOutcome, RunStatus, TurnInput};
use rethread::store::{LogStore, MemoryStore, Table};
use rethread::tool::InvocationStatus;
use serde_json::{Value, json};

/// After whatever happened the session takes another turn, and says valid things in both dialects.
pub(super) fn goes_on(host: &mut Host<'_>, dialect: Dialect) {
    let before = roles(host).len();
    let outcome = host.ask(setup("next", dialect, false), "And?", |_| Answer::Say(text("Fine.")));
    assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
    assert_eq!(roles(host).len(), before + 2);
    let mut reader = reopened(host);
    reader.render(CHAT);
    reader.render(CLAUDE);
}

/// Runs to a failure that leaves history as it was.
fn fails(dialect: Dialect, stream: bool, model: impl FnMut(&Value) -> Answer) -> (RunOutcome, Vec<u64>) {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    host.ask(setup("before", dialect, stream), "Hi", |_| Answer::Say(text("Hello.")));
    let (log, audit) = (host.records(Table::Log), host.records(Table::ToolInvocations));
    let outcome = host.ask(setup("run", dialect, stream), "Go", model);
    assert_eq!((outcome.status, outcome.saved), (RunStatus::Failed, false), "{dialect:?} {stream}");
    assert_eq!(host.log.borrow().history.messages().len(), 2);
    assert_eq!((log, audit), (host.records(Table::Log), host.records(Table::ToolInvocations)));
    let waits = host.waits.clone();
    goes_on(&mut host, dialect);
    (outcome, waits)
}

fn message(outcome: &RunOutcome) -> String {
    outcome.error.as_ref().unwrap().message.clone()
}

#[test]
fn r60_retry_after_is_respected() {
    for (dialect, stream) in WAYS {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let mut count = 0;
        let mut bodies = Vec::new();
        let outcome = host.ask(setup("run", dialect, stream), "Go", |body| {
            count += 1;
            bodies.push(body.clone());
            match count {
                1 => Answer::Status(
                    429,
                    vec![("retry-after", "7")],
                    r#"{"error":{"message":"slow down","code":"rate_limit_exceeded"}}"#.into(),
                ),
                2 => Answer::Status(503, vec![], "<html>".into()),
                _ => Answer::Say(text("Here.")),
            }
        });
        assert_eq!((outcome.status, outcome.model_calls), (RunStatus::Finished, 1));
        assert_eq!(host.waits, [7_000, 200]);
        assert!(bodies.windows(2).all(|pair| pair[0] == pair[1]));
        let retries: Vec<_> = host
            .events
            .iter()
            .filter_map(
                |event| if let RunEvent::Retrying { attempt, at, .. } = event { Some((*attempt, *at)) } else { None },
            )
            .collect();
        assert_eq!(retries, [(2, 1_007_000), (3, 1_007_200)]);
        goes_on(&mut host, dialect);
    }
}

#[test]
fn r60_a_run_fails_after_the_last_retry() {
    for (dialect, stream) in WAYS {
        let (outcome, waits) = fails(dialect, stream, |_| {
            Answer::Status(500, vec![], r#"{"error":{"message":"the key sk-abcdefghijkl is odd"}}"#.into())
        });
        assert_eq!(waits, [100, 200]);
        let error = outcome.error.unwrap();
        assert_eq!(error.code, ErrorCode::ModelError);
        assert!(error.message.contains("500") && !error.message.contains("sk-abc"), "{}", error.message);
        assert!(error.details.as_ref().unwrap().as_str().contains("\"status\":500"));
        // Nothing came at all.
        let mut count = 0;
        let (outcome, waits) = fails(dialect, stream, |_| {
            count += 1;
            Answer::Unreachable
        });
        assert_eq!((waits.len(), count), (2, 3));
        assert!(message(&outcome).contains("connection refused"));
    }
}

#[test]
fn r60_permanent_errors_are_not_retried() {
    for status in [400, 401, 403, 404, 413, 422] {
        let (_, waits) = fails(CHAT, false, |_| {
            Answer::Status(status, vec![("retry-after", "1")], r#"{"error":{"message":"no"}}"#.into())
        });
        assert!(waits.is_empty(), "{status}");
    }
    let (_, waits) = fails(CHAT, false, |_| {
        Answer::Status(429, vec![], r#"{"error":{"message":"no money","code":"insufficient_quota"}}"#.into())
    });
    assert!(waits.is_empty());
}

#[test]
fn r27_a_stream_that_has_begun_is_never_requested_again() {
    for dialect in [CHAT, CLAUDE, RESPONSES] {
        for cut in [1, 40, 200] {
            let mut count = 0;
            let (outcome, waits) = fails(dialect, true, |_| {
                count += 1;
                let mut bytes = Say { text: "A long story about a dog.".into(), ..Say::default() }.stream(dialect);
                bytes.truncate(cut);
                Answer::Cut(bytes)
            });
            assert_eq!((count, waits.len()), (1, 0));
            assert!(message(&outcome).contains("reset by peer"));
        }
    }
}

#[test]
fn r44_a_truncated_or_broken_answer_fails_and_runs_no_tool() {
    for dialect in [CHAT, CLAUDE, RESPONSES] {
        let whole = Say { text: "Let me look.".into(), ..calls(&[("c1", "look", r#"{"n":1}"#), ("c2", "find", "{}")]) }
            .stream(dialect);
        // Every end but the right one; the last event of Anthropic and `[DONE]` say nothing new.
        let enough = String::from_utf8(whole.clone())
            .unwrap()
            .find(match dialect {
                CLAUDE => "event: message_delta",
                RESPONSES => "event: response.completed",
                _ => "\"finish_reason\":\"tool_calls\"",
            })
            .unwrap();
        for cut in (0..=enough).step_by(13) {
            let bytes = whole[..cut].to_vec();
            fails(dialect, true, move |_| Answer::Bytes(bytes.clone()));
        }
        for garbage in
            ["", "hello", "data: {broken\n\ndata: {}\n\n", "{\"a\":", "[]", "<html>502</html>", "data: [DONE]\n\n"]
        {
            fails(dialect, true, |_| Answer::Bytes(garbage.into()));
            fails(dialect, false, |_| Answer::Status(200, vec![], garbage.into()));
        }
        let said = if dialect == CLAUDE {
            "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n"
        } else {
            "data: {\"error\":{\"message\":\"Overloaded\",\"code\":\"server_error\"}}\n\n"
        };
        let (outcome, _) = fails(dialect, true, |_| Answer::Bytes(said.into()));
        assert!(message(&outcome).contains("Overloaded"));
        assert!(outcome.error.unwrap().details.as_ref().unwrap().as_str().contains("\"answerStatus\":\"failed\""));
    }
}

#[test]
fn r44_a_call_truncated_by_the_length_limit_never_runs() {
    for (dialect, stream) in WAYS {
        let reason = if dialect == CLAUDE { "max_tokens" } else { "length" };
        let (outcome, _) = fails(dialect, stream, |_| {
            Answer::Say(Say { finish: Some(reason.into()), text: "Well, ".into(), ..calls(&[("c", "look", "{}")]) })
        });
        assert!(message(&outcome).contains("token limit"), "{}", message(&outcome));
    }
}

#[test]
fn r60_a_text_truncated_by_the_length_limit_is_kept_as_truncated() {
    for (dialect, stream) in WAYS {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let reason = if dialect == CLAUDE { "max_tokens" } else { "length" };
        let outcome = host.ask(setup("run", dialect, stream), "Go", |_| {
            Answer::Say(Say { finish: Some(reason.into()), ..text("Once upon a") })
        });
        assert_eq!(outcome.status, RunStatus::Finished);
        assert_eq!(outcome.report.iter().filter(|finding| finding.code.as_str() == "interrupted").count(), 1);
        assert_eq!(host.log.borrow().history.messages()[1].status, MessageStatus::Truncated);
        goes_on(&mut host, dialect);
    }
}

#[test]
fn r60_refused_filtered_and_empty_answers() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let refusal = json!({ "id": "r", "model": "m", "choices": [{ "index": 0, "finish_reason": "stop", "message": { "role": "assistant", "content": null, "refusal": "I cannot." } }] }).to_string();
    let outcome = host.ask(setup("run", CHAT, false), "Go", |_| Answer::Status(200, vec![], refusal.clone()));
    assert_eq!(outcome.status, RunStatus::Finished);
    assert!(
        matches!(&host.log.borrow().history.messages()[1].parts[0].body, PartBody::Refusal(said) if said.decode() == "I cannot.")
    );
    goes_on(&mut host, CHAT);
    for stream in [false, true] {
        let (outcome, _) =
            fails(CHAT, stream, |_| Answer::Say(Say { finish: Some("content_filter".into()), ..text("Half a") }));
        assert!(message(&outcome).contains("filter"));
    }
    // An answer that says nothing is the model's right; what follows is valid all the same.
    for (dialect, stream) in WAYS {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let outcome = host.ask(setup("run", dialect, stream), "Go", |_| Answer::Say(Say::default()));
        assert_eq!(outcome.text.decode(), "");
        goes_on(&mut host, dialect);
    }
}

#[test]
fn r60_a_paused_turn_continues_with_its_content_unchanged() {
    for stream in [false, true] {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let mut bodies = Vec::new();
        let outcome = host.ask(setup("run", CLAUDE, stream), "Search", |body| {
            bodies.push(body.clone());
            Answer::Say(if bodies.len() == 1 {
                Say { finish: Some("pause_turn".into()), ..text("I am searching.") }
            } else {
                text("Found.")
            })
        });
        assert_eq!((outcome.status, outcome.model_calls), (RunStatus::Finished, 2));
        let (first, second) = (bodies[0]["messages"].as_array().unwrap(), bodies[1]["messages"].as_array().unwrap());
        assert_eq!(&second[..first.len()], &first[..]);
        let content = &second[first.len()]["content"];
        assert_eq!(content.as_str().unwrap_or_else(|| content[0]["text"].as_str().unwrap()), "I am searching.");
        assert_eq!(second.len(), first.len() + 1);
        assert_eq!(roles(&host), [Role::User, Role::Assistant, Role::Assistant]);
        assert!(host.log.borrow().history.messages().iter().all(|message| message.turn == 0));
        goes_on(&mut host, CLAUDE);
    }
}

#[test]
fn r60_a_failing_tool_is_reported_to_the_model() {
    for (dialect, stream) in WAYS {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        host.tool = Box::new(|_, _| (Json::parse("\"no such file\"").unwrap(), true));
        let outcome = host.ask(setup("run", dialect, stream), "Go", |body| {
            Answer::Say(if rounds_in(body) == 0 {
                calls(&[("c1", "look", "{}"), ("c2", "nothing_of_the_kind", "{}")])
            } else {
                text("Sorry.")
            })
        });
        assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
        assert_eq!(host.ran.len(), 1);
        let error = InvocationStatus::Error;
        assert_eq!(calls_in(&host), [("c1".into(), 0, 0, error), ("c2".into(), 0, 1, error)]);
        let told = host.asked[1].to_string();
        assert!(told.contains("no such file") && told.contains("there is no tool"), "{told}");
        assert!(told.contains(if dialect == CLAUDE { "\"is_error\":true" } else { "rror: no such file" }), "{told}");
        goes_on(&mut host, dialect);
    }
}

#[test]
fn r60_a_call_with_invalid_arguments_gets_an_error_result_and_never_runs() {
    for (dialect, stream) in WAYS {
        // Whole, Anthropic's input is an object by its own form.
        if dialect == CLAUDE && !stream {
            continue;
        }
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let outcome = host.ask(setup("run", dialect, stream), "Go", |body| {
            Answer::Say(if rounds_in(body) == 0 {
                calls(&[
                    ("c1", "look", "{\"n\": oops"),
                    ("c2", "look", ""),
                    ("c3", "look", "[1]"),
                    ("c4", "look", "{\"n\":"),
                ])
            } else {
                text("Sorry.")
            })
        });
        assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
        // Nothing written reads as no arguments.
        assert_eq!(host.ran.iter().map(|(id, ..)| id.as_str()).collect::<Vec<_>>(), ["c2"]);
        let (ok, error) = (InvocationStatus::Ok, InvocationStatus::Error);
        let ids = ["c1", "c2", "c3", "c4"].into_iter().zip([error, ok, error, error]).zip(0..);
        assert_eq!(calls_in(&host), ids.map(|((id, how), at)| (id.into(), 0, at, how)).collect::<Vec<_>>());
        let told = host.asked[1].to_string();
        assert!(told.contains("not valid JSON") && told.contains("not a JSON object"), "{told}");
        // What the model wrote goes back, as an object where there is no other way.
        if dialect == CLAUDE {
            let content = host.asked[1]["messages"].as_array().unwrap().iter().find(|m| m["role"] == "assistant");
            let inputs: Vec<_> = content.unwrap()["content"].as_array().unwrap().iter().map(|b| &b["input"]).collect();
            assert_eq!(inputs[0], &json!({"invalid_json": "{\"n\": oops"}));
            assert_eq!((inputs[1], inputs[2]), (&json!({}), &json!({"value": [1]})));
        }
        goes_on(&mut host, dialect);
    }
    // The only thing that an answer says.
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let outcome = host.ask(setup("run", CLAUDE, true), "Go", |body| {
        Answer::Say(if rounds_in(body) == 0 { calls(&[("c1", "look", "nonsense")]) } else { text("Sorry.") })
    });
    assert_eq!((outcome.status, host.ran.len()), (RunStatus::Finished, 0));
    goes_on(&mut host, CLAUDE);
}

#[test]
fn r44_a_refusal_during_a_call_ends_the_turn_and_runs_nothing() {
    for stream in [false, true] {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let outcome = host.ask(setup("run", CLAUDE, stream), "Go", |_| {
            Answer::Say(Say { finish: Some("refusal".into()), text: "I".into(), ..calls(&[("c1", "look", "{}")]) })
        });
        assert_eq!(
            (outcome.status, outcome.model_calls, host.ran.len()),
            (RunStatus::Finished, 1, 0),
            "{:?}",
            outcome.error
        );
        assert_eq!(calls_in(&host), []);
        goes_on(&mut host, CLAUDE);
    }
}

#[test]
fn r45_a_large_result_is_kept_whole() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let large = format!("\"{}\"", "x".repeat(5_000_000));
    host.tool = Box::new(move |_, _| (Json::parse(&large).unwrap(), false));
    let outcome = host.ask(setup("run", CHAT, false), "Go", |body| {
        Answer::Say(if rounds_in(body) == 0 { calls(&[("c1", "look", "{}")]) } else { text("Big.") })
    });
    assert_eq!(outcome.status, RunStatus::Finished);
    assert_eq!(host.asked[1]["messages"][3]["content"].as_str().unwrap().len(), 5_000_000);
    let reader = reopened(&host);
    assert_eq!(reader.log.borrow().history.invocations()[0].result.as_ref().unwrap().content.as_str().len(), 5_000_002);
}

#[test]
fn r60_max_turns_stops_a_model_that_keeps_calling_tools() {
    for keep in [OnStop::Discard, OnStop::Keep] {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let outcome = host.ask(
            rethread::run::RunSetup { max_turns: 3, on_stop: keep, ..setup("run", CHAT, false) },
            "Go",
            |_| Answer::Say(calls(&[("c", "look", "{}")])),
        );
        assert_eq!((outcome.status, outcome.model_calls), (RunStatus::Failed, 3));
        assert_eq!(outcome.error.unwrap().code, ErrorCode::MaxTurns);
        assert_eq!(host.ran.len(), 3);
        assert_eq!(host.log.borrow().history.invocations().len(), if keep == OnStop::Keep { 3 } else { 0 });
        goes_on(&mut host, CHAT);
    }
}

#[test]
fn r20_r58_a_stopped_run_keeps_its_partial_answer_with_the_option() {
    for dialect in [CHAT, CLAUDE, RESPONSES] {
        for keep in [false, true] {
            for fails in [false, true] {
                let store = MemoryStore::default();
                let mut host = Host::open(&store, "s", "h");
                let on_stop = if keep { OnStop::Keep } else { OnStop::Discard };
                host.start(rethread::run::RunSetup { on_stop, ..setup("run", dialect, true) }, "Tell me").unwrap();
                let told = |bytes: Vec<u8>| if fails { Answer::Cut(bytes) } else { Answer::Partly(bytes) };
                let mut bytes = text("Once upon a time").stream(dialect);
                let at = String::from_utf8(bytes.clone()).unwrap().find(" a time").unwrap();
                bytes.truncate(String::from_utf8(bytes.clone()).unwrap()[..at].rfind("\n\n").unwrap_or(at) + 2);
                let outcome = host.drive(|_| told(bytes.clone()));
                let outcome = if fails { outcome } else { host.cancel() }.unwrap();
                assert_eq!(outcome.status, if fails { RunStatus::Failed } else { RunStatus::Cancelled });
                assert_eq!(outcome.saved, keep);
                let log = host.log.borrow();
                if keep {
                    let marked = if fails { MessageStatus::Failed } else { MessageStatus::Stopped };
                    assert_eq!(log.history.messages().len(), 2);
                    assert_eq!(log.history.messages()[1].status, marked);
                    assert!(
                        log.history.messages()[1].parts.iter().any(|part| matches!(&part.body, PartBody::Text(said) if "Once upon a time".starts_with(&*said.decode()) && !said.is_empty()))
                    );
                } else {
                    assert!(log.history.messages().is_empty());
                }
                // Kept to be shown and resumed, yet what was stopped does not wait.
                assert_eq!(log.head.runs.len(), usize::from(!keep));
                assert_eq!(log.head.pending_runs().count(), usize::from(fails && !keep));
                drop(log);
                goes_on(&mut host, dialect);
            }
        }
    }
}

#[test]
fn r15_cancelling_at_any_point_leaves_history_unchanged() {
    for (dialect, stream) in WAYS {
        for keep in [OnStop::Discard, OnStop::Keep] {
            for writes in 0..10 {
                for flush in [false, true] {
                    let store = MemoryStore::default();
                    let mut host = Host::open(&store, "s", "h");
                    host.ask(setup("before", dialect, stream), "Hi", |_| Answer::Say(text("Hello.")));
                    host.start(rethread::run::RunSetup { on_stop: keep, ..setup("run", dialect, stream) }, "Go")
                        .unwrap();
                    host.writes_left = Some(writes);
                    assert!(host.drive(three_tools).is_none());
                    host.writes_left = None;
                    if flush && host.write() && host.run.as_ref().unwrap().status() != RunStatus::Running {
                        continue; // the last write was the append: it is whole
                    }
                    let outcome = host.cancel().unwrap_or_else(|| panic!("{writes} stands still"));
                    let appended = outcome.status == RunStatus::Finished;
                    assert!(appended || outcome.status == RunStatus::Cancelled);
                    if keep == OnStop::Discard && !appended {
                        assert_eq!(roles(&host).len(), 2);
                    } else {
                        assert!(roles(&host).len() > 2);
                        let log = host.log.borrow();
                        // What ran and has no result is told as such.
                        assert!(log.history.invocations().iter().all(|call| call.result.is_some()
                            || call.started_at.is_none()
                            || call.status == InvocationStatus::Aborted));
                    }
                    assert!(host.pending().is_empty());
                    goes_on(&mut host, dialect);
                    assert!(host.records(Table::Runs).is_empty(), "the next run takes its place");
                }
            }
        }
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "one scenario, read from top to bottom")]
fn misuse_changes_nothing() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    host.start(setup("run", CHAT, true), "Go").unwrap();
    host.write();
    let result = || EffectReply::ToolResult { content: Json::parse("1").unwrap(), is_error: false };
    let started = || EffectReply::ResponseStarted { status: 200, headers: Vec::new() };
    let bytes = |effect: &str| RunInput::Bytes { effect: effect.into(), bytes: b"data: ".to_vec() };
    let refused = |host: &mut Host<'_>, input: RunInput, code: ErrorCode| {
        let (effects, status) = (
            host.run.as_ref().unwrap().effects().into_iter().cloned().collect::<Vec<_>>(),
            host.run.as_ref().unwrap().status(),
        );
        assert_eq!(host.handle(input.clone()).unwrap_err().code, code, "{input:?}");
        let run = host.run.as_mut().unwrap();
        assert_eq!((run.effects().into_iter().cloned().collect(), run.status()), (effects.clone(), status));
        assert!(run.take_save().is_none());
    };
    let say = |effect: &str, reply: EffectReply| RunInput::Answer { effect: effect.into(), reply };
    let call = host.run.as_ref().unwrap().effects()[0].id.clone();
    for odd in ["", "e", "e0", "e2", "e99", "x1", "e18446744073709551616"] {
        refused(&mut host, say(odd, EffectReply::Waited), ErrorCode::UnknownEffect);
        refused(&mut host, bytes(odd), ErrorCode::UnknownEffect);
    }
    refused(&mut host, RunInput::RetrySave, ErrorCode::WrongState);
    refused(&mut host, say(&call, EffectReply::Waited), ErrorCode::WrongState);
    refused(&mut host, say(&call, result()), ErrorCode::WrongState);
    refused(&mut host, say(&call, EffectReply::Started), ErrorCode::WrongState);
    refused(&mut host, say(&call, EffectReply::ResponseEnd), ErrorCode::WrongState);
    refused(&mut host, bytes(&call), ErrorCode::WrongState);
    host.reply(&call, started()).unwrap();
    refused(&mut host, say(&call, started()), ErrorCode::WrongState);
    refused(
        &mut host,
        say(&call, EffectReply::Response { status: 200, headers: Vec::new(), body: Vec::new() }),
        ErrorCode::WrongState,
    );
    let stream = calls(&[("c1", "look", "{}"), ("c2", "look", "{}")]).stream(CHAT);
    host.handle(RunInput::Bytes { effect: call.clone(), bytes: stream }).unwrap();
    host.reply(&call, EffectReply::ResponseEnd).unwrap();
    host.write();

    // Late and double answers are no misuse, and change nothing.
    let effects = host.run.as_ref().unwrap().effects().into_iter().cloned().collect::<Vec<_>>();
    assert!(effects.iter().all(|effect| matches!(effect.kind, EffectKind::RunTool { .. })) && effects.len() == 2);
    for reply in [
        started(),
        EffectReply::ResponseEnd,
        EffectReply::Failed { code: None, message: "late".into(), sent: None },
        result(),
    ] {
        host.reply(&call, reply).unwrap();
    }
    host.handle(bytes(&call)).unwrap();
    let [one, two] = [effects[0].id.clone(), effects[1].id.clone()];
    refused(&mut host, bytes(&one), ErrorCode::WrongState);
    refused(&mut host, say(&one, EffectReply::Waited), ErrorCode::WrongState);
    refused(&mut host, say(&one, EffectReply::ResponseEnd), ErrorCode::WrongState);
    host.reply(&one, EffectReply::Started).unwrap();
    host.write();
    refused(&mut host, say(&one, EffectReply::Started), ErrorCode::WrongState);
    host.reply(&one, result()).unwrap();
    host.reply(&one, EffectReply::ToolResult { content: Json::parse("2").unwrap(), is_error: true }).unwrap();
    host.write();
    assert_eq!(host.run.as_ref().unwrap().effects().len(), 1);
    // A result without a start counts as both.
    host.reply(&two, result()).unwrap();
    assert_eq!(host.drive(|_| Answer::Say(text("ok"))).unwrap().status, RunStatus::Finished);
    assert_eq!(calls_in(&host).iter().map(|call| call.3).collect::<Vec<_>>(), [InvocationStatus::Ok; 2]);
    let records = host.records(Table::Log);
    host.reply(&two, result()).unwrap();
    host.handle(RunInput::Cancel).unwrap();
    host.handle(RunInput::Saved { save: 99, outcome: Ok(1) }).unwrap();
    host.write();
    assert_eq!(records, host.records(Table::Log));
    assert_eq!(host.run.as_ref().unwrap().status(), RunStatus::Finished);
}

#[test]
fn invalid_start_options_store_nothing() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    assert_eq!(host.start(setup("run", CHAT, false), "").unwrap_err().code, ErrorCode::InvalidInput);
    let mut keyed = setup("run", CHAT, false);
    keyed.provider.url.push_str("?key=hunter2");
    let error = host.start(keyed, "Go").unwrap_err();
    assert_eq!(error.code, ErrorCode::ConfigInvalid);
    assert!(!format!("{error:?}").contains("hunter2"));
    let mut twice = setup("run", CHAT, false);
    twice.tools.push(twice.tools[0].clone());
    assert_eq!(host.start(twice, "Go").unwrap_err().code, ErrorCode::ConfigInvalid);
    assert!(block_on(store.head("s")).unwrap().is_none());

    // An input id that is taken would be swallowed.
    host.ask(setup("ok", CHAT, false), "Hi", |_| Answer::Say(text("Hello.")));
    let id = host.log.borrow().history.messages()[0].id.clone();
    let log = host.log.borrow();
    let mut renderer = rethread::render::Renderer::default();
    let mut desk = rethread::run::RunContext {
        history: &log.history,
        renderer: &mut renderer,
        now: 1,
        ids: &host.ids,
        seed: SEED,
        refused: &[],
        last_request: None,
        branch: 0,
    };
    let input = TurnInput { input: words("Hi"), input_id: Some(id), ..TurnInput::default() };
    assert_eq!(Run::start(setup("again", CHAT, false), input, &mut desk).err().unwrap().code, ErrorCode::InvalidInput);
}

#[test]
fn r58_a_late_answer_is_not_appended_to_a_deleted_session() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    host.start(setup("run", CHAT, false), "Go").unwrap();
    assert!(host.drive(|_| Answer::Hang).is_none());
    block_on(store.delete_session("s")).unwrap();
    let outcome = host.drive(|_| Answer::Say(text("Too late."))).unwrap();
    assert_eq!((outcome.status, outcome.saved), (RunStatus::Failed, false));
    assert!(block_on(store.head("s")).unwrap().is_none());
    // Begun anew by someone else, it is another session.
    let mut other = Host::open(&store, "s", "o");
    other.ask(setup("new", CHAT, false), "Hi", |_| Answer::Say(text("Hello.")));
    let other = Host::open(&store, "s", "p");
    assert_eq!(roles(&other).len(), 2);
}
