//! R22 to R27 and R77 with Anthropic's message threads.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::automatic;
use super::scripted_host::*;
use crate::thread_service::{ThreadService, rounds, words_of};
use rethread::error::ErrorCode;
use rethread::finding::{Finding, Severity};
use rethread::json::Json;
use rethread::owner::{OnLost, StateOwner};
use rethread::replay::Callback;
use rethread::run::{EffectKind, Handoff, RunOutcome, RunSetup, RunStatus, ToolSettings, ToolTiming};
use rethread::store::MemoryStore;
use serde_json::{Value, json};
use std::cell::Cell;
use std::rc::Rc;

pub fn threaded(id: &str, owner: StateOwner) -> RunSetup {
    RunSetup { owner, ..setup(id, CLAUDE, false) }
}

fn given() -> StateOwner {
    StateOwner::response(Some("msg_given".into()))
}

fn ask(host: &mut Host<'_>, service: &mut ThreadService, setup: RunSetup, input: &str) -> RunOutcome {
    host.ask(setup, input, |body| service.answer(body))
}

/// As [`ask`], of a run that finishes.
fn finish(host: &mut Host<'_>, service: &mut ThreadService, setup: RunSetup, input: &str) -> RunOutcome {
    let outcome = ask(host, service, setup, input);
    assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
    outcome
}

fn restarts(outcome: &RunOutcome) -> usize {
    outcome.report.iter().filter(|finding| finding.code.as_str() == "chain_restarted").count()
}

/// What a session of its own would send next, in words: the whole history.
fn history_of(host: &mut Host<'_>) -> Vec<String> {
    let body: Value = serde_json::from_slice(&host.render(CLAUDE).body).unwrap();
    words_of(body["messages"].as_array().unwrap())
}

#[test]
fn r23_r77_a_thread_is_created_with_the_history_and_continued_with_what_is_new() {
    for stream in [false, true] {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let mut service = ThreadService::new(rounds(1));
        service.stream = stream;
        let threaded = |run: &str, owner| {
            let mut setup = threaded(run, owner);
            setup.provider.stream = stream;
            setup
        };
        finish(&mut host, &mut service, threaded("r0", StateOwner::Session), "Zero");
        for (run, input) in [("r1", "One"), ("r2", "Two")] {
            let outcome = finish(&mut host, &mut service, threaded(run, automatic()), input);
            assert_eq!(restarts(&outcome), 0);
            let is_note = |finding: &Finding| finding.severity == Severity::Info;
            assert!(outcome.report.iter().all(is_note), "{:?}", outcome.report);
        }
        assert_eq!(service.chain(), ["none", "none", "create", "msg_3", "msg_4", "msg_5"]);
        assert_eq!(service.sent(2).len(), 5);
        assert_eq!(service.sent(3), ["result toolu_2: look gave {}"]);
        assert_eq!(service.sent(4), ["user: Two"]);
        assert_eq!(service.sent(5), ["result toolu_3: look gave {}"]);
        let has_head = |request: &Value| request.get("system").is_some() && request.get("tools").is_some();
        let heads: Vec<bool> = service.requests.iter().map(has_head).collect();
        assert_eq!(heads, [true, true, true, false, false, false]);
        assert_eq!(history_of(&mut host), words_of(service.newest()));
        assert!(service.refused.is_empty(), "{:?}", service.refused);
    }
}

#[test]
fn r77_a_thread_is_asked_for_by_its_beta_header_beside_those_of_the_application() {
    let header_of = |owner: StateOwner| {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let mut setup = threaded("r1", owner);
        setup.provider.headers = vec![("anthropic-beta".into(), "own-2026".into())];
        host.start(setup, "One").unwrap();
        host.write();
        let run = host.run.as_ref().unwrap();
        let EffectKind::CallModel { headers, .. } = run.effects()[0].kind.clone() else { panic!("no request") };
        headers.iter().find(|(name, _)| name == "anthropic-beta").unwrap().1.clone()
    };
    assert_eq!(header_of(automatic()), "own-2026, message-threads-2026-08-12");
    assert_eq!(header_of(StateOwner::Session), "own-2026");
}

#[test]
fn r22_a_thread_has_no_conversation_id_and_no_second_owner() {
    let conversation = StateOwner::Conversation { id: "conv_1".into() };
    let rejected = |mut setup: RunSetup, params: &str| {
        let store = MemoryStore::default();
        setup.provider.params = Json::parse(params).unwrap();
        Host::open(&store, "s", "h").start(setup, "One").unwrap_err().code
    };
    assert_eq!(rejected(threaded("r1", conversation), r#"{"model":"m"}"#), ErrorCode::ConfigInvalid);
    let params = r#"{"model":"m","thread":{"type":"create"}}"#;
    assert_eq!(rejected(threaded("r1", automatic()), params), ErrorCode::StateOwnerConflict);
    assert_eq!(rejected(threaded("r1", StateOwner::Session), params), ErrorCode::StateOwnerConflict);
}

#[test]
fn r25_a_thread_that_expired_is_created_again_with_the_history_and_a_given_one_fails() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let mut service = ThreadService::new(rounds(1));
    finish(&mut host, &mut service, threaded("r1", automatic()), "One");
    // Five minutes after its last request.
    service.threads.clear();
    let outcome = finish(&mut host, &mut service, threaded("r2", automatic()), "Two");
    assert_eq!((restarts(&outcome), outcome.model_calls), (1, 2));
    assert_eq!(service.chain(), ["create", "msg_1", "create", "msg_3"]);
    assert_eq!(service.sent(2).len(), 5, "{:?}", service.sent(2));
    assert_eq!(service.refused, ["thread_not_found"]);
    assert_eq!(history_of(&mut host), words_of(service.newest()));
    // What came before a response that the application gave is not stored here.
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let mut service = ThreadService::new(rounds(0)).with_response("msg_given");
    finish(&mut host, &mut service, threaded("r1", given()), "One");
    assert_eq!(service.chain(), ["msg_given"]);
    assert_eq!(service.newest().len(), 4);
    service.threads.clear();
    let error = ask(&mut host, &mut service, threaded("r2", given()), "Two").error.unwrap();
    assert_eq!(error.code, ErrorCode::ModelError);
    assert!(error.message.contains("previousResponseId"), "{}", error.message);
    let details = error.details.clone().unwrap();
    assert_eq!(details.view().text("providerCode").as_deref(), Some("thread_not_found"));
}

#[test]
fn r23_a_response_that_was_continued_is_the_end_of_another_thread() {
    // Two processes continue one response.
    let store = MemoryStore::default();
    let mut service = ThreadService::new(rounds(0));
    finish(&mut Host::open(&store, "s", "h"), &mut service, threaded("r1", automatic()), "One");
    let mut slow = Host::open(&store, "s", "slow");
    slow.start(threaded("r2", automatic()), "Two").unwrap();
    slow.write();
    finish(&mut Host::open(&store, "s", "fast"), &mut service, threaded("r3", automatic()), "Three");
    let outcome = slow.drive(|body| service.answer(body)).unwrap();
    assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
    assert_eq!((restarts(&outcome), service.refused.as_slice()), (1, &["thread_already_continued"][..]));
    assert_eq!(service.chain(), ["create", "msg_1", "create"]);
    let mut last = Host::open(&store, "s", "last");
    finish(&mut last, &mut service, threaded("r4", automatic()), "Four");
    let words = words_of(service.newest());
    for question in ["user: One", "user: Two", "user: Three", "user: Four"] {
        assert_eq!(words.iter().filter(|word| *word == question).count(), 1, "{words:?}");
    }
}

#[test]
fn r27_a_response_that_is_being_continued_is_waited_for_and_then_begun_again() {
    for (in_flight, waits, restarted) in [(2, vec![1_000, 2_000], 0), (9, vec![1_000, 2_000, 4_000], 1)] {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let mut service = ThreadService::new(rounds(0));
        finish(&mut host, &mut service, threaded("r1", automatic()), "One");
        service.threads.get_mut("msg_1").unwrap().in_flight = in_flight;
        let outcome = finish(&mut host, &mut service, threaded("r2", automatic()), "Two");
        assert_eq!((restarts(&outcome), &host.waits), (restarted, &waits));
        assert_eq!(words_of(service.newest()).len(), 4);
    }
}

#[test]
fn r23_other_instructions_tools_or_a_model_begin_the_thread_again() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let mut service = ThreadService::new(rounds(0));
    finish(&mut host, &mut service, threaded("r1", automatic()), "One");
    let brief = |run: &str| RunSetup { instructions: Some("Be long.".into()), ..threaded(run, automatic()) };
    // The request would not contain the instructions: nothing is sent that would be answered by the old ones.
    let outcome = finish(&mut host, &mut service, brief("r2"), "Two");
    assert_eq!((restarts(&outcome), service.refused.len()), (1, 0));
    assert_eq!(service.requests[1]["system"], "Be long.");
    let outcome = finish(&mut host, &mut service, brief("r3"), "Three");
    assert_eq!(restarts(&outcome), 0);
    let fewer = |run: &str| {
        let mut setup = brief(run);
        setup.tools.truncate(1);
        setup
    };
    assert_eq!(restarts(&finish(&mut host, &mut service, fewer("r4"), "Four")), 1);
    // The service says itself what else may not change.
    let mut other = fewer("r5");
    other.provider.params = Json::parse(r#"{"model":"m-2"}"#).unwrap();
    assert_eq!(restarts(&finish(&mut host, &mut service, other, "Five")), 1);
    assert_eq!(service.refused, ["thread_fingerprint_mismatch"]);
    assert_eq!(service.chain(), ["create", "create", "msg_2", "create", "create"]);
    assert_eq!(words_of(service.newest()).len(), 10);
    // A thread of other programs has instructions that the session does not know; they may not change later.
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let mut service = ThreadService::new(rounds(0)).with_response("msg_given");
    finish(&mut host, &mut service, threaded("r1", given()), "One");
    let changed = RunSetup { instructions: None, ..threaded("r2", given()) };
    let error = ask(&mut host, &mut service, changed, "Two").error.unwrap();
    assert_eq!((error.code, service.requests.len()), (ErrorCode::ConfigInvalid, 1));
}

#[test]
fn r77_a_request_that_threads_do_not_support_fails_and_says_what_to_do() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let mut service = ThreadService::new(rounds(0));
    service.refuses = Some((400, "thread_unsupported_request"));
    let error = ask(&mut host, &mut service, threaded("r1", automatic()), "One").error.unwrap();
    assert_eq!(error.code, ErrorCode::ModelError);
    assert!(error.message.contains("kind: \"session\""), "{}", error.message);
    assert_eq!(service.refused.len(), 1);
    // The run goes on when the application did that.
    service.refuses = None;
    host.resume(threaded("r1", StateOwner::Session)).unwrap();
    assert_eq!(host.drive(|body| service.answer(body)).unwrap().status, RunStatus::Finished);
    assert_eq!(service.chain(), ["none"]);
}

#[test]
fn r23_a_handoff_begins_the_thread_again_with_the_other_agents_instructions_and_tools() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let mut service = ThreadService::new(rounds(1));
    host.handoff_of_tool = Box::new(|_| {
        let instructions = Some("You are the other one.".into());
        Some(Handoff { name: "other".into(), instructions, ..Handoff::default() })
    });
    finish(&mut host, &mut service, threaded("r1", automatic()), "One");
    assert_eq!(service.chain(), ["create", "create"]);
    assert_eq!(service.requests[1]["system"], "You are the other one.");
    assert_eq!(service.sent(1), ["user: One", "call toolu_1", "result toolu_1: look gave {}"]);
}

#[test]
fn r23_a_paused_answer_is_continued_without_a_message() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let mut service = ThreadService::new(rounds(0));
    let mut count = 0;
    let outcome = host.ask(threaded("r1", automatic()), "One", |body| {
        count += 1;
        let Answer::Status(200, headers, text) = service.answer(body) else { panic!("refused: {body}") };
        let mut message: Value = serde_json::from_str(&text).unwrap();
        if count == 1 {
            message["stop_reason"] = json!("pause_turn");
        }
        Answer::Status(200, headers, message.to_string())
    });
    assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
    assert_eq!(service.chain(), ["create", "msg_1"]);
    assert_eq!(service.requests[1]["messages"], json!([]));
}

#[test]
fn r70_thinking_of_a_thread_goes_into_the_one_that_replaces_it_while_its_prefix_is_the_same() {
    for (instructions, kept) in [("Be brief.", true), ("Be long.", false)] {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let mut service = ThreadService::new(rounds(1));
        service.extra_blocks = vec![json!({ "type": "thinking", "thinking": "Hm.", "signature": "c2ln" })];
        let binding = |run: &str, text: &str| {
            let mut setup = RunSetup { instructions: Some(text.into()), ..threaded(run, automatic()) };
            setup.provider.params = Json::parse(r#"{"model":"claude-opus-5-5"}"#).unwrap();
            setup
        };
        finish(&mut host, &mut service, binding("r1", "Be brief."), "One");
        finish(&mut host, &mut service, binding("r2", "Be brief."), "Two");
        service.threads.clear();
        finish(&mut host, &mut service, binding("r3", instructions), "Three");
        let restarted = &service.requests[4]["messages"];
        assert_eq!(service.requests[4]["thread"]["type"], "create");
        let thinking = restarted.to_string().matches("\"thinking\":\"Hm.\"").count();
        assert_eq!(thinking, if kept { 4 } else { 0 }, "{restarted:#}");
    }
}

#[test]
fn r23_an_answer_of_another_dialects_chain_is_no_response_of_the_thread() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let mut responses = super::stateful_service::Service::new(super::rounds(0));
    host.ask(super::owned("r1", automatic()), "One", |body| responses.answer(body));
    let mut service = ThreadService::new(rounds(0));
    finish(&mut host, &mut service, threaded("r2", automatic()), "Two");
    assert_eq!((service.chain(), service.sent(0).len()), (vec!["create"], 3));
    let back = host.ask(super::owned("r3", automatic()), "Three", |body| responses.answer(body));
    assert_eq!(back.status, RunStatus::Finished, "{:?}", back.error);
    assert_eq!(responses.requests[1]["previous_response_id"], "resp_1");
    assert_eq!(responses.sent(1).len(), 3, "{:?}", responses.sent(1));
}

#[test]
fn r75_r77_a_thread_is_told_that_a_result_comes_later() {
    let later = |id: &str| {
        let mut setup = threaded(id, automatic());
        let settings = ToolSettings { timing: ToolTiming::Later, ..ToolSettings::default() };
        setup.tool_settings.insert("look".into(), settings);
        setup
    };
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let mut service = ThreadService::new(rounds(1));
    let outcome = finish(&mut host, &mut service, later("r1"), "Go");
    assert_eq!(outcome.open_calls.len(), 1);
    finish(&mut host, &mut service, later("r2"), "How far?");
    assert!(service.refused.is_empty(), "{:?}", service.refused);
    let sent = service.sent(1);
    assert!(sent.len() == 1 && sent[0].starts_with("result toolu_1: "), "{sent:?}");
    let sent: Vec<String> = (0..service.requests.len()).flat_map(|at| service.sent(at)).collect();
    assert_eq!(sent.iter().filter(|words| words.starts_with("result toolu_1: ")).count(), 1, "{sent:?}");
}

#[test]
fn r77_system_messages_of_the_history_stay_with_the_thread_while_they_are_the_same() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let system = |text: &str| json!({ "role": "system", "content": text });
    host.append(
        &json!([{ "role": "user", "content": "Zero" }, system("Mind."), { "role": "user", "content": "Go" }]),
        CHAT,
    )
    .unwrap();
    let mut service = ThreadService::new(rounds(1));
    for (run, input) in [("r1", "One"), ("r2", "Two")] {
        assert_eq!(restarts(&finish(&mut host, &mut service, threaded(run, automatic()), input)), 0);
    }
    assert_eq!(service.chain(), ["create", "msg_1", "msg_2", "msg_3"]);
    assert!(service.requests[0]["system"].to_string().contains("Mind."));
    assert_eq!(service.sent(2), ["user: Two"]);
    // Another one changes what the thread would have to keep, once.
    host.append(&json!([system("Mind more."), { "role": "user", "content": "On" }]), CHAT).unwrap();
    assert_eq!(restarts(&finish(&mut host, &mut service, threaded("r3", automatic()), "Three")), 1);
    assert_eq!(restarts(&finish(&mut host, &mut service, threaded("r4", automatic()), "Four")), 0);
    assert_eq!(service.chain()[4..], ["create", "msg_5", "msg_6", "msg_7"]);
    assert!(service.refused.is_empty(), "{:?}", service.refused);
}

#[test]
fn r77_system_messages_of_the_input_stay_with_the_thread() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let mut service = ThreadService::new(rounds(1));
    let body = json!({ "system": "Mind.", "messages": [{ "role": "user", "content": "One" }] });
    host.start_body(threaded("r1", automatic()), &body).unwrap();
    let outcome = host.drive(|body| service.answer(body)).unwrap();
    assert_eq!((outcome.status, restarts(&outcome)), (RunStatus::Finished, 0), "{:?}", outcome.error);
    assert_eq!(restarts(&finish(&mut host, &mut service, threaded("r2", automatic()), "Two")), 0);
    assert_eq!(service.chain(), ["create", "msg_1", "msg_2", "msg_3"]);
}

#[test]
fn r24_r77_a_filter_adds_no_instructions_and_tools_to_what_continues_a_thread() {
    for (member, value) in [("system", json!("Be other.")), ("tools", json!([]))] {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let mut service = ThreadService::new(rounds(0));
        let filtered = |run: &str| {
            let input_filter = Some(Callback { id: 1, hook: Rc::new(()) });
            RunSetup { input_filter, ..threaded(run, automatic()) }
        };
        let is_everywhere = Rc::new(Cell::new(false));
        let everywhere = is_everywhere.clone();
        host.filter = Box::new(move |mut body| {
            body["max_tokens"] = json!(7);
            if body["thread"]["type"] == "create" && member == "system" || everywhere.get() {
                body[member] = value.clone();
            }
            Ok(body)
        });
        finish(&mut host, &mut service, filtered("r1"), "One");
        finish(&mut host, &mut service, filtered("r2"), "Two");
        assert_eq!((service.chain(), &service.requests[1]["max_tokens"]), (vec!["create", "msg_1"], &json!(7)));
        is_everywhere.set(true);
        let error = ask(&mut host, &mut service, filtered("r3"), "Three").error.unwrap();
        assert_eq!((error.code, service.requests.len()), (ErrorCode::InvalidInput, 2), "{}", error.message);
        let path = error.details.as_ref().unwrap().view().text("path").map(|path| path.into_owned());
        assert_eq!(path, Some(format!("/{member}")));
    }
}

#[test]
fn r24_r77_a_question_that_a_filter_held_back_follows_the_results_that_a_thread_waits_for() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let mut service = ThreadService::new(rounds(1));
    let is_first = Cell::new(true);
    host.filter = Box::new(move |mut body| {
        if is_first.replace(false) {
            body["messages"].as_array_mut().unwrap().remove(0);
        }
        Ok(body)
    });
    let input_filter = Some(Callback { id: 1, hook: Rc::new(()) });
    let questions = json!({ "messages": [{ "role": "user", "content": "One" }, { "role": "user", "content": "Two" }] });
    host.start_body(RunSetup { input_filter, ..threaded("r1", automatic()) }, &questions).unwrap();
    let outcome = host.drive(|body| service.answer(body)).unwrap();
    assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
    assert_eq!(service.sent(0), ["user: Two"]);
    assert_eq!(service.sent(1), ["result toolu_1: look gave {}", "user: One"]);
}

#[test]
fn r77_a_thread_is_not_continued_after_an_answer_that_the_service_refused() {
    for (is_fail, chain) in
        [(false, ["create", "msg_1", "create", "msg_3"]), (true, ["create", "msg_1", "msg_2", "msg_3"])]
    {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let mut service = ThreadService::new(rounds(0));
        let on_lost = if is_fail { OnLost::Fail } else { OnLost::Restart };
        let owner = StateOwner::Response { previous: None, on_lost };
        finish(&mut host, &mut service, threaded("r1", owner.clone()), "One");
        service.stop_reason = Some("refusal");
        finish(&mut host, &mut service, threaded("r2", owner.clone()), "Two");
        host = Host::open(&store, "s", "h2");
        finish(&mut host, &mut service, threaded("r3", owner.clone()), "Three");
        finish(&mut host, &mut service, threaded("r4", owner), "Four");
        assert_eq!(service.chain(), chain);
        assert!(service.refused.is_empty(), "{:?}", service.refused);
        if !is_fail {
            assert!(service.sent(2).contains(&"user: One".to_owned()), "{:?}", service.sent(2));
            assert_eq!(service.sent(3), ["user: Four"]);
        }
        assert_eq!(history_of(&mut host), words_of(service.newest()));
    }
}

#[test]
fn r77_a_thread_that_is_lost_is_asked_for_once_also_if_the_run_is_killed_then() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let mut service = ThreadService::new(rounds(0));
    finish(&mut host, &mut service, threaded("r1", automatic()), "One");
    service.threads.clear();
    host.start(threaded("r2", automatic()), "Two").unwrap();
    let mut requests = 0;
    let ended = host.drive(|body| {
        requests += 1;
        if requests == 1 { service.answer(body) } else { Answer::Hang }
    });
    assert!(ended.is_none() && service.refused == ["thread_not_found"]);
    for name in ["h2", "h3"] {
        host = Host::open(&store, "s", name);
        host.resume(threaded("r2", automatic())).unwrap();
        let outcome = host.drive(|body| if name == "h2" { Answer::Hang } else { service.answer(body) });
        assert!(name == "h2" || outcome.unwrap().status == RunStatus::Finished);
    }
    finish(&mut host, &mut service, threaded("r3", automatic()), "Three");
    assert_eq!(service.refused, ["thread_not_found"]);
    assert_eq!(service.chain(), ["create", "create", "msg_2"]);
    assert_eq!(history_of(&mut host), words_of(service.newest()));
}
