//! R22 to R27 and R77 with Mistral's conversations, which begin with a request and go on at an address of their own.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::scripted_host::*;
use crate::conversation_service::{ADDRESS, ConversationService, rounds, words_of};
use rethread::error::ErrorCode;
use rethread::json::Json;
use rethread::message::Dialect;
use rethread::owner::{OnLost, StateOwner};
use rethread::provider::ToolDefinition;
use rethread::replay::Callback;
use rethread::run::{Handoff, Persistence, RunInput, RunOutcome, RunSetup, RunStatus, ToolSettings, ToolTiming};
use rethread::store::MemoryStore;
use serde_json::{Value, json};
use std::rc::Rc;

pub const ENTRIES: Dialect = Dialect::MistralConversations;

pub fn begun() -> StateOwner {
    StateOwner::BegunConversation { on_lost: OnLost::Restart }
}

pub fn callback() -> Callback {
    Callback { id: 1, hook: Rc::new(()) }
}

fn given() -> StateOwner {
    StateOwner::Conversation { id: "conv_given".into() }
}

pub fn kept(id: &str, owner: StateOwner) -> RunSetup {
    RunSetup { owner, ..setup(id, ENTRIES, false) }
}

fn with_params(mut setup: RunSetup, params: &Value) -> RunSetup {
    setup.provider.params = Json::parse(&params.to_string()).unwrap();
    setup
}

pub fn ask(host: &mut Host<'_>, service: &mut ConversationService, setup: RunSetup, input: &str) -> RunOutcome {
    let url = host.url.clone();
    host.ask(setup, input, |body| service.answer(&url.borrow(), body))
}

/// As [`ask`], of a run that finishes.
fn finish(host: &mut Host<'_>, service: &mut ConversationService, setup: RunSetup, input: &str) -> RunOutcome {
    let outcome = ask(host, service, setup, input);
    assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
    outcome
}

pub fn resume(host: &mut Host<'_>, service: &mut ConversationService, setup: RunSetup) -> RunOutcome {
    let url = host.url.clone();
    host.resume(setup).unwrap();
    host.drive(|body| service.answer(&url.borrow(), body)).unwrap()
}

fn restarts(outcome: &RunOutcome) -> usize {
    outcome.report.iter().filter(|finding| finding.code.as_str() == "chain_restarted").count()
}

/// What a session of its own would send next, in words: the whole history.
pub fn history_of(host: &mut Host<'_>) -> Vec<String> {
    let body: Value = serde_json::from_slice(&host.render(ENTRIES).body).unwrap();
    words_of(body["inputs"].as_array().unwrap())
}

#[test]
fn r23_r77_a_conversation_begins_with_the_history_and_goes_on_with_what_is_new() {
    for stream in [false, true] {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let mut service = ConversationService::new(rounds(1));
        service.stream = stream;
        let kept = |run: &str, owner| {
            let mut setup = kept(run, owner);
            setup.provider.stream = stream;
            setup
        };
        let outcome = finish(&mut host, &mut service, kept("r0", StateOwner::Session), "Zero");
        assert_eq!((outcome.conversation_id, service.conversations.len()), (None, 0));
        for (run, input) in [("r1", "One"), ("r2", "Two")] {
            let outcome = finish(&mut host, &mut service, kept(run, begun()), input);
            assert_eq!((restarts(&outcome), outcome.conversation_id.as_deref()), (0, Some("conv_3")));
        }
        assert_eq!(service.places(), ["begins", "begins", "begins", "conv_3", "conv_3", "conv_3"]);
        assert_eq!(service.sent(2).len(), 5, "{:?}", service.sent(2));
        assert_eq!(service.sent(3), ["result call_2: look gave {}"]);
        assert_eq!(service.sent(4), ["user: Two"]);
        assert_eq!(service.sent(5), ["result call_3: look gave {}"]);
        assert_eq!(service.requests[0].1["store"], false);
        for (_, body) in &service.requests[2..] {
            assert_eq!(body["store"], true);
        }
        let (begins, appends) = (&service.requests[2].1, &service.requests[3].1);
        assert_eq!((&begins["instructions"], &begins["model"]), (&json!("Be brief."), &json!("m")));
        assert!(["instructions", "model", "tools", "conversation_id"].iter().all(|name| appends.get(name).is_none()));
        assert_eq!(history_of(&mut host), service.newest());
        assert!(service.refused.is_empty(), "{:?}", service.refused);
    }
}

#[test]
fn r23_r77_a_conversation_goes_on_after_the_session_is_opened_again() {
    let store = MemoryStore::default();
    let mut service = ConversationService::new(rounds(0));
    for (at, input) in ["One", "Two", "Three"].into_iter().enumerate() {
        let mut host = Host::open(&store, "s", &format!("h{at}"));
        finish(&mut host, &mut service, kept(&format!("r{at}"), begun()), input);
    }
    assert_eq!(service.places(), ["begins", "conv_1", "conv_1"]);
    assert_eq!(history_of(&mut Host::open(&store, "s", "last")), service.newest());
}

#[test]
fn r77_a_given_conversation_is_continued_at_its_address_with_what_is_new() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let mut service = ConversationService::new(rounds(1)).with_conversation("conv_given");
    let params = json!({ "model": "m", "completion_args": { "temperature": 0.5 }, "metadata": { "a": 1 },
        "handoff_execution": "client" });
    for (run, input) in [("r1", "One"), ("r2", "Two")] {
        let outcome = finish(&mut host, &mut service, with_params(kept(run, given()), &params), input);
        assert_eq!(outcome.conversation_id.as_deref(), Some("conv_given"));
    }
    assert_eq!(service.places(), ["conv_given"; 4]);
    assert_eq!(service.sent(0), ["user: One"]);
    assert_eq!(service.sent(3), ["result call_2: look gave {}"]);
    let first = &service.requests[0].1;
    assert_eq!(first["completion_args"], json!({ "temperature": 0.5 }));
    assert_eq!(first["handoff_execution"], "client");
    assert_eq!(service.words("conv_given").len(), 10);
    // Back at the session: the history is sent, without what only the service has.
    let outcome = finish(&mut host, &mut service, kept("r3", StateOwner::Session), "Three");
    assert_eq!((outcome.conversation_id, service.sent(4).len()), (None, 9));
}

#[test]
fn r22_r77_what_begins_a_conversation_has_no_second_owner() {
    let rejected =
        |setup: RunSetup| Host::open(&MemoryStore::default(), "s", "h").start(setup, "One").unwrap_err().code;
    let of = |owner: StateOwner, params: &Value| with_params(kept("r1", owner), params);
    let model = json!({ "model": "m" });
    assert_eq!(rejected(of(StateOwner::response(None), &model)), ErrorCode::ConfigInvalid);
    let named = json!({ "model": "m", "conversation_id": "conv_2" });
    assert_eq!(rejected(of(begun(), &named)), ErrorCode::StateOwnerConflict);
    assert_eq!(rejected(of(StateOwner::Session, &named)), ErrorCode::StateOwnerConflict);
    // A service that keeps nothing cannot be an owner.
    let unstored = json!({ "model": "m", "store": false });
    for owner in [begun(), given()] {
        assert_eq!(rejected(of(owner, &unstored)), ErrorCode::ConfigInvalid);
    }
    // An answer on which the service would work in the background is not picked up.
    let background = json!({ "model": "m", "background": true });
    for owner in [begun(), given()] {
        assert_eq!(rejected(of(owner, &background)), ErrorCode::ConfigInvalid);
    }
    // An id is part of an address to which credentials are sent.
    for id in ["../files", "a/b", "a?b", ""] {
        assert_eq!(rejected(of(StateOwner::Conversation { id: id.into() }, &model)), ErrorCode::ConfigInvalid, "{id}");
    }
    // Services of other dialects begin none.
    for dialect in [RESPONSES, CLAUDE] {
        let setup = RunSetup { owner: begun(), ..setup("r1", dialect, false) };
        assert_eq!(rejected(setup), ErrorCode::ConfigInvalid);
    }
}

#[test]
fn r26_r77_an_answer_of_another_conversation_fails_before_anything_is_stored() {
    // A host that ignores the address begins a conversation that has only what is new.
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let mut service = ConversationService::new(rounds(0));
    finish(&mut host, &mut service, kept("r1", begun()), "One");
    let before = history_of(&mut host);
    let error = host.ask(kept("r2", begun()), "Two", |body| service.answer(ADDRESS, body)).error.unwrap();
    assert_eq!((error.code, service.refused.as_slice()), (ErrorCode::ModelError, &[422][..]));
    host = Host::open(&store, "s", "h2");
    let with_model = |body: &Value| {
        let mut body = body.clone();
        body["model"] = json!("m");
        body
    };
    for stream in [false, true] {
        service.stream = stream;
        let mut setup = kept(&format!("r{stream}"), begun());
        setup.provider.stream = stream;
        let error = host.ask(setup, "Two", |body| service.answer(ADDRESS, &with_model(body))).error.unwrap();
        assert_eq!(error.code, ErrorCode::ConversationConflict, "{error}");
    }
    // Half of such an answer is no part of the conversation.
    let mut setup = kept("r4", begun());
    setup.provider.stream = true;
    host.ask(setup, "Two", |body| {
        let Answer::Bytes(bytes) = service.answer(ADDRESS, &with_model(body)) else { panic!("refused") };
        Answer::Cut(bytes[..bytes.len() / 2].to_vec())
    });
    assert_eq!(history_of(&mut host), before);
    service.stream = false;
    finish(&mut host, &mut service, kept("r5", begun()), "Three");
    assert_eq!(service.places().last(), Some(&"conv_1"));
    assert_eq!(service.sent(service.requests.len() - 1), ["user: Three"]);
}

#[test]
fn r25_r77_a_conversation_that_the_service_lost_begins_again_and_a_given_one_fails() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let mut service = ConversationService::new(rounds(1));
    finish(&mut host, &mut service, kept("r1", begun()), "One");
    service.conversations.clear();
    let outcome = finish(&mut host, &mut service, kept("r2", begun()), "Two");
    assert_eq!((restarts(&outcome), outcome.model_calls), (1, 2));
    assert_eq!(service.places(), ["begins", "conv_1", "begins", "conv_2"]);
    assert_eq!((service.sent(2).len(), service.refused.as_slice()), (5, &[404][..]));
    assert_eq!(history_of(&mut host), service.newest());
    // By option the run fails, and goes on when the application lets it begin again.
    service.conversations.clear();
    let failing = StateOwner::BegunConversation { on_lost: OnLost::Fail };
    let error = ask(&mut host, &mut service, kept("r3", failing), "Three").error.unwrap();
    assert_eq!(error.code, ErrorCode::ChainLost);
    assert!(error.message.contains("`owner: { kind: \"conversation\", auto: true }`"), "{}", error.message);
    let outcome = resume(&mut host, &mut service, kept("r3", begun()));
    assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
    assert_eq!(history_of(&mut host), service.newest());
    // Of a given one the session lacks what other programs said.
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let mut service = ConversationService::new(rounds(0));
    let error = ask(&mut host, &mut service, kept("r1", given()), "One").error.unwrap();
    assert_eq!((error.code, service.refused.len()), (ErrorCode::ModelError, 1));
    assert!(error.message.contains("kind: \"session\""), "{}", error.message);
    // Where nothing is continued, a 404 says nothing of a conversation.
    let error = host.ask(kept("r2", begun()), "Two", |_| Answer::Status(404, Vec::new(), "{}".into())).error.unwrap();
    assert!(!error.message.contains("conversation"), "{}", error.message);
}

#[test]
fn r23_r77_other_instructions_tools_or_a_model_begin_another_conversation() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let mut service = ConversationService::new(rounds(0));
    let long = |run: &str| RunSetup { instructions: Some("Be long.".into()), ..kept(run, begun()) };
    let fewer = |run: &str| {
        let mut setup = long(run);
        setup.tools.truncate(1);
        setup
    };
    let model = |run: &str| with_params(fewer(run), &json!({ "model": "m-2" }));
    // What changes no answer of the kept conversation, and what each request has.
    let labels = json!({ "model": "m-2", "metadata": { "a": 1 }, "completion_args": { "temperature": 0 } });
    let setups = [kept("r1", begun()), long("r2"), long("r3"), fewer("r4"), model("r5"), model("r6")];
    for setup in setups.into_iter().chain([with_params(fewer("r7"), &labels)]) {
        let question = setup.id.clone();
        finish(&mut host, &mut service, setup, &question);
    }
    let expected = ["begins", "begins", "conv_2", "begins", "begins", "conv_4", "conv_4"];
    assert_eq!(service.places(), expected);
    assert_eq!(service.conversations["conv_2"].head["instructions"], "Be long.");
    assert_eq!(service.conversations["conv_4"].head["model"], "m-2");
    assert_eq!(service.newest(), history_of(&mut host));
    // A handoff is another agent's conversation, with the history.
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let mut service = ConversationService::new(rounds(1));
    host.handoff_of_tool = Box::new(|_| {
        let instructions = Some("You are the other one.".into());
        Some(Handoff { name: "other".into(), instructions, ..Handoff::default() })
    });
    finish(&mut host, &mut service, kept("r1", begun()), "One");
    assert_eq!(service.places(), ["begins", "begins"]);
    assert_eq!(service.sent(1), ["user: One", "call call_1", "result call_1: look gave {}"]);
}

#[test]
fn r27_r77_what_a_conversation_may_have_is_sent_again_only_if_the_application_approves() {
    for reaches_service in [true, false] {
        let store = MemoryStore::default();
        let mut service = ConversationService::new(rounds(0));
        // The first request began a conversation that the session does not know: it begins another one.
        let mut host = Host::open(&store, "s", "h");
        host.start(kept("r1", begun()), "One").unwrap();
        host.drive(|body| {
            service.accept(ADDRESS, body).unwrap();
            Answer::Hang
        });
        let mut host = Host::open(&store, "s", "h2");
        let outcome = resume(&mut host, &mut service, kept("r1", begun()));
        assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
        assert_eq!(service.places(), ["begins", "begins"]);
        // The second one may be in the conversation.
        let url = host.url.clone();
        host.start(kept("r2", begun()), "Two").unwrap();
        host.drive(|body| {
            if reaches_service {
                service.accept(&url.borrow(), body).unwrap();
            }
            Answer::Hang
        });
        let mut host = Host::open(&store, "s", "h3");
        let sent = service.requests.len();
        let outcome = resume(&mut host, &mut service, kept("r2", begun()));
        assert_eq!((outcome.error.unwrap().code, service.requests.len()), (ErrorCode::ReplayUnsafe, sent));
        // What the conversation has is the evidence.
        let has_request = service.words("conv_2").contains(&"user: Two".to_owned());
        assert_eq!(has_request, reaches_service);
        let mut setup = kept("r2", begun());
        setup.retry.approve_unsafe_replay = Some(callback());
        let mut host = Host::open(&store, "s", "h4");
        host.resume(setup).unwrap();
        assert!(host.run.as_mut().unwrap().take_replay_question().is_some());
        host.handle(RunInput::ReplayReply(!has_request)).unwrap();
        let url = host.url.clone();
        let outcome = host.drive(|body| service.answer(&url.borrow(), body)).unwrap();
        let expected = if has_request { RunStatus::Failed } else { RunStatus::Finished };
        assert_eq!(outcome.status, expected, "{:?}", outcome.error);
        assert_eq!(service.words("conv_2").iter().filter(|word| *word == "user: Two").count(), 1);
    }
}

#[test]
fn r24_r77_a_filter_keeps_the_conversation_and_what_it_keeps() {
    let cases = [
        ("inputs", None, None),
        ("conversation_id", Some(json!("conv_9")), Some(ErrorCode::StateOwnerConflict)),
        ("tools", Some(json!([])), Some(ErrorCode::InvalidInput)),
        ("model", Some(json!("m")), Some(ErrorCode::InvalidInput)),
        ("store", Some(json!(false)), Some(ErrorCode::InvalidInput)),
    ];
    for (name, value, expected) in cases {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let mut service = ConversationService::new(rounds(0));
        finish(&mut host, &mut service, kept("r1", begun()), "One");
        host.filter = Box::new(move |mut body| {
            assert_eq!(body["conversation_id"], "conv_1");
            if let Some(value) = &value {
                body[name] = value.clone();
            }
            Ok(body)
        });
        let mut setup = kept("r2", begun());
        setup.input_filter = Some(callback());
        let error = ask(&mut host, &mut service, setup, "Two").error;
        assert_eq!(error.as_ref().map(|error| error.code), expected, "{name}: {error:?}");
        assert_eq!(service.requests.len(), 1 + usize::from(expected.is_none()));
    }
}

#[test]
fn r77_confirmations_of_the_services_calls_are_sent_as_they_are() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let mut service = ConversationService::new(rounds(0));
    finish(&mut host, &mut service, kept("r1", begun()), "One");
    let confirmations = json!([{ "tool_call_id": "abcdefgh1", "confirmation": "allow" }]);
    let params = json!({ "model": "m", "tool_confirmations": confirmations });
    finish(&mut host, &mut service, with_params(kept("r2", begun()), &params), "Go on.");
    assert_eq!(service.requests[1].1["tool_confirmations"], confirmations);
}

#[test]
fn r22_r77_a_system_message_begins_another_conversation_that_keeps_it() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let mut service = ConversationService::new(rounds(1));
    finish(&mut host, &mut service, kept("r1", begun()), "One");
    host.append(&json!({ "messages": [{ "role": "system", "content": "Answer in French." }] }), CHAT).unwrap();
    for run in ["r2", "r3"] {
        finish(&mut host, &mut service, kept(run, begun()), run);
    }
    assert_eq!(service.places(), ["begins", "conv_1", "begins", "conv_2", "conv_2", "conv_2"]);
    assert_eq!(service.conversations["conv_2"].head["instructions"], "Be brief.\n\nAnswer in French.");
    assert_eq!(history_of(&mut host), service.newest());
}

#[test]
fn r23_r77_a_reused_call_id_hides_no_result_of_a_conversation() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let script = |entries: &[Value]| match entries.last().unwrap()["type"].as_str() {
        Some("function.result") => Ok("done".to_owned()),
        _ => Err(vec![("call_same".to_owned(), "look".to_owned())]),
    };
    let mut service = ConversationService::new(script);
    for run in ["r1", "r2", "r3"] {
        finish(&mut host, &mut service, kept(run, begun()), run);
    }
    for request in [1, 3, 5] {
        assert_eq!(service.sent(request), ["result call_same: look gave {}"]);
    }
    assert!(service.refused.is_empty(), "{:?}", service.refused);
}

#[test]
fn r23_r77_results_of_several_calls_are_appended_at_once() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let script = |entries: &[Value]| match entries.last().unwrap()["type"].as_str() {
        Some("function.result") => Ok("done".to_owned()),
        _ => Err(["a", "b"].map(|id| (format!("call_{id}_{}", entries.len()), "look".to_owned())).to_vec()),
    };
    let mut service = ConversationService::new(script);
    for run in ["r1", "r2"] {
        finish(&mut host, &mut service, kept(run, begun()), run);
    }
    assert_eq!(service.places(), ["begins", "conv_1", "conv_1", "conv_1"]);
    assert_eq!([service.sent(1).len(), service.sent(2).len(), service.sent(3).len()], [2, 1, 2]);
    assert_eq!(history_of(&mut host), service.newest());
}

#[test]
fn r23_r77_after_an_answer_that_broke_off_another_conversation_begins() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let mut service = ConversationService::new(rounds(0));
    finish(&mut host, &mut service, kept("r1", begun()), "One");
    service.stream = true;
    service.script = Box::new(|_| Err(vec![("call_unread".into(), "look".into())]));
    let mut setup = kept("r2", begun());
    setup.provider.stream = true;
    let url = host.url.clone();
    let outcome = host.ask(setup, "Two", |body| {
        let Answer::Bytes(bytes) = service.answer(&url.borrow(), body) else { panic!("refused") };
        Answer::Cut(bytes[..bytes.len() / 2].to_vec())
    });
    assert_eq!(outcome.status, RunStatus::Failed);
    (service.stream, service.script) = (false, Box::new(rounds(0)));
    finish(&mut host, &mut service, kept("r3", begun()), "Three");
    assert_eq!(service.places(), ["begins", "conv_1", "begins"]);
    let words = service.newest();
    assert!(
        ["user: One", "user: Two", "user: Three"].iter().all(|word| words.contains(&(*word).to_owned())),
        "{words:?}"
    );
}

#[test]
fn r77_a_system_message_that_a_given_conversation_does_not_get_is_reported_once() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let mut service = ConversationService::new(rounds(0)).with_conversation("conv_given");
    let reported = |outcome: &RunOutcome| {
        let of_code = outcome.report.iter().filter(|finding| finding.code.as_str() == "not_transferred");
        of_code.filter(|finding| finding.message_id.is_some()).count()
    };
    assert_eq!(reported(&finish(&mut host, &mut service, kept("r1", given()), "One")), 0);
    host.append(&json!({ "messages": [{ "role": "system", "content": "Answer in French." }] }), CHAT).unwrap();
    assert_eq!(reported(&finish(&mut host, &mut service, kept("r2", given()), "Two")), 1);
    assert_eq!(reported(&finish(&mut host, &mut service, kept("r3", given()), "Three")), 0);
    assert!(!service.requests.iter().any(|(_, body)| body.to_string().contains("French")));
    // A conversation of the session's own begins with it.
    assert_eq!(reported(&finish(&mut host, &mut service, kept("r4", begun()), "Four")), 0);
    assert_eq!(service.requests[3].1["instructions"], "Be brief.\n\nAnswer in French.");
}

#[test]
fn r75_r77_a_late_result_goes_to_the_conversation_once() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let script = |entries: &[Value]| match entries.iter().any(|entry| entry["type"] == "function.call") {
        true => Ok(format!("answer {}", entries.len())),
        false => Err(vec![("call_a".to_owned(), "later_export".to_owned())]),
    };
    let mut service = ConversationService::new(script);
    let exporting = |run: &str| {
        let mut setup = kept(run, begun());
        let name = "later_export".to_owned();
        let tool =
            ToolDefinition { name: name.clone(), description: None, parameters: None, strict: false, is_async: true };
        setup.tools.push(tool);
        setup.tool_settings.insert(name, ToolSettings { timing: ToolTiming::Later, ..ToolSettings::default() });
        setup
    };
    finish(&mut host, &mut service, exporting("r1"), "Export");
    finish(&mut host, &mut service, exporting("r2"), "How far?");
    Host::open(&store, "s", "other").late("call_a", &json!("seven thousand")).unwrap();
    let mut host = Host::open(&store, "s", "third");
    for run in ["r3", "r4"] {
        finish(&mut host, &mut service, exporting(run), run);
    }
    assert!(service.places().iter().skip(1).all(|place| *place == "conv_1"), "{:?}", service.places());
    let words = service.words("conv_1");
    assert_eq!(words.iter().filter(|words| words.contains("seven thousand")).count(), 1, "{words:#?}");
    assert!(service.refused.is_empty());
}

#[test]
fn r18_r23_r27_r77_a_run_that_is_killed_anywhere_goes_on_or_says_why_not() {
    let mut codes = Vec::new();
    for persistence in [Persistence::Run, Persistence::Call, Persistence::Result] {
        for writes in 0..9 {
            let store = MemoryStore::default();
            let mut service = ConversationService::new(rounds(1));
            finish(&mut Host::open(&store, "s", "h0"), &mut service, kept("r0", begun()), "Zero");
            let setup = RunSetup { persistence, ..kept("r1", begun()) };
            let mut host = Host::open(&store, "s", "h1");
            host.writes_left = Some(writes);
            host.start(setup.clone(), "One").unwrap();
            let url = host.url.clone();
            host.drive(|body| service.answer(&url.borrow(), body));
            let mut host = Host::open(&store, "s", "h2");
            if !host.pending().is_empty() {
                let outcome = resume(&mut host, &mut service, setup.clone());
                if let Some(error) = outcome.error {
                    codes.push(error.code);
                    let mut host = Host::open(&store, "s", "h3");
                    let setup = RunSetup { owner: StateOwner::Session, ..setup };
                    let outcome = resume(&mut host, &mut service, setup);
                    assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
                }
            }
            let mut host = Host::open(&store, "s", "h4");
            finish(&mut host, &mut service, kept("r2", begun()), "Two");
            assert_eq!(history_of(&mut host), service.newest(), "{persistence:?} {writes}");
            let asked = service.newest().iter().filter(|words| *words == "user: One").count();
            assert_eq!(asked, usize::from(writes > 0), "{persistence:?} {writes}");
            for id in service.conversations.keys() {
                let mut words = service.words(id);
                words.retain(|words| !words.starts_with("call "));
                let count = words.len();
                words.sort();
                words.dedup();
                assert_eq!(words.len(), count, "doubled in {id}, {persistence:?} {writes}");
            }
        }
    }
    codes.dedup();
    assert_eq!(codes, [ErrorCode::ReplayUnsafe]);
}
