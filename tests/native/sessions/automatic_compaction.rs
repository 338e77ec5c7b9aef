//! The option `compaction` of a session (R78, R36): a trigger by tokens, with reducers as the fallback.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::scripted_host::*;
use super::virtual_host::{Process, SummarizeFunction, World};
use super::{in_mode, start};
use rethread::error::{Error, ErrorCode};
use rethread::finding::FindingCode;
use rethread::message::Dialect;
use rethread::owner::StateOwner;
use rethread::replay::{Callback, PolicyLayer, Reducer};
use rethread::run::{EffectReply, Persistence, RunSetup, RunStatus};
use rethread::session::{
    AutomaticCompaction, CompactionMode, CompactionOutcome, CompactionRequest, OpenSession, SessionSettings, Signal,
    compact,
};
use rethread::store::{Change, HeadEdit, MemoryStore, commit};
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

const BLOCK: &str =
    r#"{"stop_reason":"compaction","content":[{"type":"compaction","content":"<sum>","signature":"<sealed>"}]}"#;
const ITEMS: &str =
    r#"{"object":"response.compaction","output":[{"type":"compaction","encrypted_content":"<sealed>"}]}"#;

/// What `summarize` does.
#[derive(Default)]
struct Summarizer {
    /// The bodies that it got.
    asked: RefCell<Vec<Value>>,
    /// It throws.
    fails: Cell<bool>,
    /// It answers after this signal.
    after: RefCell<Option<Signal>>,
}

fn callback(summarizer: &Rc<Summarizer>, answer: &str) -> Callback {
    let (summarizer, answer) = (summarizer.clone(), answer.to_owned());
    let summarize: SummarizeFunction = Box::new(move |body, _| {
        summarizer.asked.borrow_mut().push(body);
        let (fails, after, answer) = (summarizer.fails.get(), summarizer.after.borrow().clone(), answer.clone());
        Box::pin(async move {
            if let Some(signal) = after {
                signal.given().await;
            }
            if fails { Err(Error::new(ErrorCode::CallbackFailed, "overloaded")) } else { Ok(answer) }
        })
    });
    Callback { id: 0, hook: Rc::new(summarize) }
}

/// A session that compacts by itself from 100 tokens on.
fn settings(summarizer: &Rc<Summarizer>, mode: CompactionMode, answer: &str) -> SessionSettings {
    let fallback = vec![Reducer::SlidingTurns { turns: 1 }];
    let compaction = Some(AutomaticCompaction::new(100, mode, callback(summarizer, answer), fallback));
    SessionSettings { compaction, ..SessionSettings::default() }
}

/// Asks, and returns the body of the request. The provider reports `tokens` of input, and 5 of output.
fn say(
    (world, process, session): (&Rc<World>, &Process, &Rc<OpenSession>),
    dialect: Dialect,
    (input, tokens): (&str, u64),
) -> Value {
    let policy = session.policy(PolicyLayer::default(), BTreeMap::new());
    let owner = session.owner().unwrap();
    let setup = RunSetup { policy, owner, ..in_mode(Persistence::Run, dialect) };
    let run = world.run(start(session, setup, input)).unwrap();
    let answer = String::from_utf8(text("Well.").body(dialect)).unwrap();
    let answer = answer.replace("put_tokens\":10,", &format!("put_tokens\":{tokens},"));
    let answer = answer.replace("prompt_tokens\":10,", &format!("prompt_tokens\":{tokens},"));
    let answer = answer.replace("\"resp_1\"", &format!("\"resp_{}\"", process.heard.borrow().asked.len()));
    let answer = if tokens == 0 { answer.replace("_tokens\":5", "_tokens\":0") } else { answer };
    let outcome = world.run(process.drive(&run, &|_| Answer::Status(200, Vec::new(), answer.clone())));
    assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
    world.pass(10);
    process.heard.borrow().asked.last().unwrap().clone()
}

/// About 80 tokens.
fn long(word: &str) -> String {
    format!("{word}{}", " long".repeat(60))
}

#[test]
fn r78_a_session_compacts_by_itself_when_the_newest_request_was_large() {
    for (dialect, answer) in [(CLAUDE, BLOCK), (RESPONSES, ITEMS)] {
        let (world, data) = (World::new(false), MemoryStore::default());
        let process = Process::new(&world, &data, 1);
        let summarizer = Rc::new(Summarizer::default());
        let session = world.run(process.session(settings(&summarizer, CompactionMode::Provider, answer)));
        let chat = (&world, &process, &session);
        say(chat, dialect, ("<one>", 94));
        assert!(summarizer.asked.borrow().is_empty(), "99 tokens");
        say(chat, dialect, ("<two>", 95));
        let asked = summarizer.asked.borrow().clone();
        assert_eq!(asked.len(), 1);
        assert!(asked[0].to_string().contains("<one>") && asked[0].to_string().contains("<two>"));
        assert_eq!(session.log.borrow().history.messages().len(), 4, "the originals stay");
        let revision = session.log.borrow().revision;
        let body = say(chat, dialect, ("<three>", 50)).to_string();
        assert!(body.contains("<sealed>") && !body.contains("<one>"), "{body}");
        assert_eq!(summarizer.asked.borrow().len(), 1, "small again");
        assert!(session.log.borrow().revision > revision);
        // The option is given again when the session is opened again; what is compacted already does not count.
        let second = Process::new(&world, &data, 2);
        let session = world.run(second.session(settings(&summarizer, CompactionMode::Provider, answer)));
        let chat = (&world, &second, &session);
        say(chat, dialect, ("<four>", 200));
        let asked = summarizer.asked.borrow().clone();
        assert_eq!(asked.len(), 2);
        assert!(asked[1].to_string().contains("<sealed>") && asked[1].to_string().contains("<four>"));
        assert!(process.heard.borrow().warnings.is_empty(), "{:?}", process.heard.borrow().warnings);
    }
}

#[test]
fn r78_a_compaction_by_itself_is_in_no_runs_way() {
    let (world, data) = (World::new(false), MemoryStore::default());
    let process = Process::new(&world, &data, 1);
    let summarizer = Rc::new(Summarizer::default());
    let answered = Signal::default();
    summarizer.after.replace(Some(answered.clone()));
    let session = world.run(process.session(settings(&summarizer, CompactionMode::Provider, BLOCK)));
    let chat = (&world, &process, &session);
    say(chat, CLAUDE, ("<one>", 100));
    assert_eq!(summarizer.asked.borrow().len(), 1);
    // The provider has not answered, and the conversation goes on.
    let body = say(chat, CLAUDE, ("<two>", 20)).to_string();
    assert!(body.contains("<one>") && !body.contains("<sealed>"), "{body}");
    let revision = session.log.borrow().revision;
    answered.give();
    world.pass(10);
    assert_eq!(session.log.borrow().revision, revision + 1, "one append");
    let body = say(chat, CLAUDE, ("<three>", 20)).to_string();
    assert!(body.contains("<sealed>") && !body.contains("<one>") && body.contains("<two>"), "{body}");
}

#[test]
fn r36_r78_the_fallbacks_reducers_shorten_requests_that_the_provider_does_not_compact() {
    for (dialect, asks) in [(CLAUDE, true), (CHAT, false)] {
        let (world, data) = (World::new(false), MemoryStore::default());
        let process = Process::new(&world, &data, 1);
        let summarizer = Rc::new(Summarizer { fails: Cell::new(true), ..Summarizer::default() });
        let session = world.run(process.session(settings(&summarizer, CompactionMode::Provider, BLOCK)));
        let chat = (&world, &process, &session);
        assert!(say(chat, dialect, (&long("<one>"), 100)).to_string().contains("<one>"));
        let body = say(chat, dialect, (&long("<two>"), 100)).to_string();
        assert!(body.contains("<two>") && !body.contains("<one>"), "{body}");
        assert_eq!(session.log.borrow().history.messages().len(), 4, "the originals stay");
        assert_eq!(summarizer.asked.borrow().len(), if asks { 2 } else { 0 }, "asked again with each run");
        let heard = process.heard.borrow().warnings.clone();
        let failed = heard.iter().filter(|finding| finding.code == FindingCode::CallbackFailed).count();
        assert_eq!((failed, heard.len()), if asks { (2, 2) } else { (0, 0) }, "{heard:?}");
        // What is short enough is sent whole, and what was compacted at last needs no fallback.
        summarizer.fails.set(false);
        let body = say(chat, dialect, ("<three>", 100)).to_string();
        assert!(!body.contains("<one>") && body.contains("<three>"), "{body}");
        let body = say(chat, dialect, ("<four>", 20)).to_string();
        let expected = if asks { "<sealed>" } else { "<four>" };
        assert!(body.contains(expected) && !body.contains("<two>"), "{body}");
    }
}

#[test]
fn r36_a_request_below_the_limit_is_not_shortened_by_the_fallback() {
    let (world, data) = (World::new(false), MemoryStore::default());
    let process = Process::new(&world, &data, 1);
    let summarizer = Rc::new(Summarizer::default());
    let session = world.run(process.session(settings(&summarizer, CompactionMode::Provider, BLOCK)));
    let chat = (&world, &process, &session);
    say(chat, CHAT, ("<one>", 10));
    say(chat, CHAT, ("<two>", 10));
    let body = say(chat, CHAT, ("<three>", 10)).to_string();
    assert!(body.contains("<one>") && body.contains("<two>"), "{body}");
}

#[test]
fn r78_where_a_service_has_the_conversation_nothing_is_asked_for() {
    let (world, data) = (World::new(false), MemoryStore::default());
    let process = Process::new(&world, &data, 1);
    let summarizer = Rc::new(Summarizer::default());
    let owner = Some(StateOwner::response(Some("resp_given".into())));
    let settings = SessionSettings { owner, ..settings(&summarizer, CompactionMode::Provider, ITEMS) };
    let session = world.run(process.session(settings));
    let chat = (&world, &process, &session);
    say(chat, RESPONSES, (&long("<one>"), 500));
    let body = say(chat, RESPONSES, (&long("<two>"), 500));
    assert!(body["previous_response_id"].is_string(), "{body}");
    assert!(summarizer.asked.borrow().is_empty() && process.heard.borrow().warnings.is_empty());
}

#[test]
fn r78_tokens_that_no_provider_reports_are_estimated() {
    let (world, data) = (World::new(false), MemoryStore::default());
    let process = Process::new(&world, &data, 1);
    let summarizer = Rc::new(Summarizer::default());
    let session = world.run(process.session(settings(&summarizer, CompactionMode::Provider, BLOCK)));
    let chat = (&world, &process, &session);
    say(chat, CLAUDE, (&long("<one>"), 0));
    assert!(summarizer.asked.borrow().is_empty());
    say(chat, CLAUDE, (&long("<two>"), 0));
    assert_eq!(summarizer.asked.borrow().len(), 1);
}

#[test]
fn r30_r78_compact_takes_a_number_of_tokens_for_the_number_of_items() {
    let (world, data) = (World::new(false), MemoryStore::default());
    let process = Process::new(&world, &data, 1);
    let session = world.run(process.session(SessionSettings::default()));
    say((&world, &process, &session), CHAT, ("<one>", 95));
    let summarizer = Rc::new(Summarizer::default());
    let compacted = |tokens| {
        let summarize = callback(&summarizer, "They talked.");
        let mode = CompactionMode::Auto;
        let request = CompactionRequest { mode, is_forced: false, tokens, summarize, provider: None };
        world.run(compact(&session, Rc::new(request)))
    };
    assert_eq!(compacted(None), Ok(CompactionOutcome::BelowThreshold), "two items");
    assert_eq!(compacted(Some(101)), Ok(CompactionOutcome::BelowThreshold));
    assert!(summarizer.asked.borrow().is_empty());
    assert_eq!(compacted(Some(100)), Ok(CompactionOutcome::Threshold));
    assert_eq!(compacted(Some(100)), Ok(CompactionOutcome::NothingNew));
}

#[test]
fn r78_a_session_has_its_application_summarize_by_itself() {
    let (world, data) = (World::new(false), MemoryStore::default());
    let process = Process::new(&world, &data, 1);
    let summarizer = Rc::new(Summarizer::default());
    let session = world.run(process.session(settings(&summarizer, CompactionMode::Auto, "They talked.")));
    let chat = (&world, &process, &session);
    say(chat, CHAT, ("<one>", 95));
    let body = say(chat, CHAT, ("<two>", 10)).to_string();
    assert!(body.contains("They talked.") && !body.contains("<one>"), "{body}");
}

#[test]
fn r30_r78_a_compaction_that_waited_for_a_run_has_its_number_of_tokens_too() {
    for (is_due, tokens, expected) in [(false, 1_000, 0), (false, 100, 1), (true, 1_000, 1)] {
        let (world, data) = (World::new(false), MemoryStore::default());
        let process = Process::new(&world, &data, 1);
        let session = world.run(process.session(SessionSettings::default()));
        let summarizer = Rc::new(Summarizer::default());
        let compacted = |tokens| {
            let (mode, summarize) = (CompactionMode::Auto, callback(&summarizer, "They talked."));
            let request = CompactionRequest { mode, is_forced: false, tokens, summarize, provider: None };
            world.run(compact(&session, Rc::new(request)))
        };
        let run = world.run(start(&session, in_mode(Persistence::Run, CHAT), "<one>")).unwrap();
        if is_due {
            assert_eq!(compacted(None), Ok(CompactionOutcome::Deferred));
        }
        assert_eq!(compacted(Some(tokens)), Ok(CompactionOutcome::Deferred));
        assert_eq!(session.log.borrow().head.has_deferred_compaction, is_due, "another tab tests its own number");
        let answer =
            String::from_utf8(text("Well.").body(CHAT)).unwrap().replace("prompt_tokens\":10,", "prompt_tokens\":95,");
        world.run(process.drive(&run, &|_| Answer::Status(200, Vec::new(), answer.clone())));
        world.pass(10);
        assert_eq!(summarizer.asked.borrow().len(), expected, "{is_due} {tokens}");
        let next = if expected == 0 { CompactionOutcome::BelowThreshold } else { CompactionOutcome::NothingNew };
        assert_eq!(compacted(None), Ok(next), "two items");
        // One that is due from an earlier session object waits for a call without a number.
        if expected == 0 {
            let edit: HeadEdit = Box::new(|head| head.has_deferred_compaction = true);
            let change = Change { operation: "due".into(), at: 1, edit: Some(edit), ..Change::default() };
            world.run(commit(&data, &session.log, &change)).unwrap();
            assert_eq!(compacted(Some(tokens)), Ok(CompactionOutcome::BelowThreshold));
            assert_eq!(compacted(None), Ok(CompactionOutcome::WasDeferred));
        }
    }
}

#[test]
fn r78_a_compaction_that_was_stored_during_a_large_run_is_followed_by_no_other() {
    for (second, expected) in [("<two>".to_owned(), 1), (long(&long("<two>")), 2)] {
        let (world, data) = (World::new(false), MemoryStore::default());
        let process = Process::new(&world, &data, 1);
        let summarizer = Rc::new(Summarizer::default());
        let answered = Signal::default();
        summarizer.after.replace(Some(answered.clone()));
        let session = world.run(process.session(settings(&summarizer, CompactionMode::Provider, BLOCK)));
        let chat = (&world, &process, &session);
        say(chat, CLAUDE, ("<one>", 100));
        assert_eq!(summarizer.asked.borrow().len(), 1);
        let policy = session.policy(PolicyLayer::default(), BTreeMap::new());
        let run =
            world.run(start(&session, RunSetup { policy, ..in_mode(Persistence::Run, CLAUDE) }, &second)).unwrap();
        assert!(world.run_steps(process.drive(&run, &|_| Answer::Hang), 100).is_none());
        // The run has sent its request.
        answered.give();
        world.pass(10);
        assert!(session.log.borrow().history.compaction().is_some());
        let answer = String::from_utf8(text("Well.").body(CLAUDE)).unwrap();
        let body = answer.replace("put_tokens\":10,", "put_tokens\":200,").into_bytes();
        let effect = run.machine.borrow().effects()[0].id.clone();
        world.run(run.answer(effect, EffectReply::Response { status: 200, headers: Vec::new(), body })).unwrap();
        assert_eq!(world.run(process.drive(&run, &|_| Answer::Hang)).status, RunStatus::Finished);
        world.pass(10);
        assert_eq!(summarizer.asked.borrow().len(), expected, "what the next request has is counted");
    }
}

#[test]
fn r78_a_large_run_whose_answer_begins_with_a_compaction_is_followed_by_no_other() {
    let (world, data) = (World::new(false), MemoryStore::default());
    let process = Process::new(&world, &data, 1);
    let summarizer = Rc::new(Summarizer::default());
    let session = world.run(process.session(settings(&summarizer, CompactionMode::Provider, BLOCK)));
    let run = world.run(start(&session, in_mode(Persistence::Run, CLAUDE), "<one>")).unwrap();
    let answer = r#"{"id":"msg_1","type":"message","role":"assistant","model":"m","stop_reason":"end_turn","content":[
        {"type":"compaction","content":"They talked.","signature":"<own>"},{"type":"text","text":"<well>"}],
        "usage":{"input_tokens":500,"output_tokens":5}}"#;
    let outcome = world.run(process.drive(&run, &|_| Answer::Status(200, Vec::new(), answer.to_owned())));
    assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
    world.pass(10);
    assert!(summarizer.asked.borrow().is_empty());
    let chat = (&world, &process, &session);
    let body = say(chat, CLAUDE, ("<two>", 20)).to_string();
    assert!(body.contains("<own>") && !body.contains("<one>"), "{body}");
    assert!(summarizer.asked.borrow().is_empty());
    say(chat, CLAUDE, ("<three>", 100));
    assert_eq!(summarizer.asked.borrow().len(), 1, "a request with it was large");
}

#[test]
fn r78_a_chain_that_runs_continue_while_it_is_compacted_is_compacted_more_seldom() {
    let (world, data) = (World::new(false), MemoryStore::default());
    let process = Process::new(&world, &data, 1);
    let summarizer = Rc::new(Summarizer::default());
    let settings = settings(&summarizer, CompactionMode::Auto, "They talked.");
    let settings = SessionSettings { owner: Some(StateOwner::response(None)), ..settings };
    let session = world.run(process.session(settings));
    let chat = (&world, &process, &session);
    let mut asked = Vec::new();
    for turn in 0..12 {
        // The run that follows is over before the application has answered.
        let answered = Signal::default();
        let earlier = summarizer.after.replace(Some(answered));
        say(chat, RESPONSES, (&format!("<{turn}>"), 200));
        if let Some(earlier) = earlier {
            earlier.give();
        }
        world.pass(10);
        asked.push(summarizer.asked.borrow().len());
    }
    assert_eq!(asked, [1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 3]);
    // One that is in time is stored, and the next large run is followed by another one.
    summarizer.after.take();
    let mut turns = 0..8;
    while session.log.borrow().history.compaction().is_none() {
        say(chat, RESPONSES, (&format!("<late {}>", turns.next().unwrap()), 200));
    }
    for turn in 0..3 {
        let before = summarizer.asked.borrow().len();
        say(chat, RESPONSES, (&format!("<in time {turn}>"), 200));
        assert_eq!(summarizer.asked.borrow().len(), before + 1);
    }
}
