//! Conversations that a session begins at its service, with branches, erasures, summaries and other processes (R77).

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::branches::replace;
use super::scripted_host::*;
use super::virtual_host::{Meanwhile, Process, World};
use super::{resume, start};
use crate::conversation_service::{ConversationService, rounds};
use rethread::error::ErrorCode;
use rethread::message::Dialect;
use rethread::owner::{OnLost, StateOwner};
use rethread::replay::Callback;
use rethread::run::{RunOutcome, RunSetup, RunStatus};
use rethread::session::{
    CompactionMode, CompactionOutcome, CompactionRequest, OpenSession, RunDriver, SessionSettings, compact,
    copy_session, delete_messages, fork, read_archive, restore_archive, switch_to,
};
use rethread::store::MemoryStore;
use serde_json::Value;
use std::cell::RefCell;
use std::rc::Rc;

const ENTRIES: Dialect = Dialect::MistralConversations;

fn begun() -> StateOwner {
    StateOwner::BegunConversation { on_lost: OnLost::Restart }
}

fn kept() -> RunSetup {
    RunSetup { owner: begun(), ..setup("", ENTRIES, false) }
}

fn service() -> RefCell<ConversationService> {
    RefCell::new(ConversationService::new(rounds(0)))
}

/// Opens the session in a process, as one that begins conversations.
fn opened(world: &World, process: &Process) -> Rc<OpenSession> {
    owning(world, world.run(process.session(SessionSettings::default())))
}

fn owning(world: &World, session: Rc<OpenSession>) -> Rc<OpenSession> {
    let owner = begun().to_stored();
    world.run(session.update(Box::new(move |head| head.owner.clone_from(&owner)))).unwrap();
    session
}

fn drive(process: &Process, run: &Rc<RunDriver>, service: &RefCell<ConversationService>) -> RunOutcome {
    let answer = |body: &Value| {
        let url = process.heard.borrow().url.clone();
        service.borrow_mut().answer(&url, body)
    };
    process.world.run(process.drive(run, &answer))
}

fn finish(process: &Process, run: &Rc<RunDriver>, service: &RefCell<ConversationService>) {
    let outcome = drive(process, run, service);
    assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
}

fn ask(process: &Process, session: &Rc<OpenSession>, service: &RefCell<ConversationService>, input: &str) {
    let run = process.world.run(start(session, kept(), input)).unwrap();
    finish(process, &run, service);
}

fn ids(session: &OpenSession) -> Vec<String> {
    session.log.borrow().history.messages().iter().map(|message| message.id.clone()).collect()
}

#[test]
fn r23_r38_r77_edits_other_answers_and_forks_begin_conversations_of_their_own() {
    let (world, data, service) = (World::new(false), MemoryStore::default(), service());
    let process = Process::new(&world, &data, 1);
    let session = opened(&world, &process);
    ask(&process, &session, &service, "one");
    ask(&process, &session, &service, "two");
    let before = ids(&session);
    // Another answer to the second question, and what follows it.
    let again = world.run(replace(&session, kept(), &before[3], None)).unwrap();
    finish(&process, &again, &service);
    ask(&process, &session, &service, "three");
    // An edit of the first question shares nothing.
    let edit = world.run(replace(&session, kept(), &before[0], Some("uno"))).unwrap();
    finish(&process, &edit, &service);
    // What they left goes on where it was.
    world.run(switch_to(&session, "main")).unwrap();
    ask(&process, &session, &service, "four");
    let name = world.run(fork(&session, Some(&before[1]))).unwrap();
    world.run(switch_to(&session, &name)).unwrap();
    ask(&process, &session, &service, "zwei");
    let service = service.borrow();
    assert_eq!(service.places(), ["begins", "conv_1", "begins", "conv_2", "begins", "conv_1", "begins"]);
    assert_eq!(service.sent(2), ["user: one", "assistant: answer 1", "user: two"]);
    assert_eq!(service.sent(3), ["user: three"]);
    assert_eq!(service.sent(4), ["user: uno"]);
    assert_eq!(service.sent(5), ["user: four"]);
    assert_eq!(service.sent(6), ["user: one", "assistant: answer 1", "user: zwei"]);
    let main = ["one", "two", "four"].map(|text| format!("user: {text}"));
    assert!(main.iter().eq(service.words("conv_1").iter().step_by(2)), "{:?}", service.words("conv_1"));
}

#[test]
fn r22_r60_r77_a_second_process_is_busy_and_then_appends_to_the_conversation() {
    for has_locks in [true, false] {
        let (world, data, service) = (World::new(has_locks), MemoryStore::default(), service());
        let both = [1, 2].map(|number| Process::new(&world, &data, number));
        let [one, two] = both.each_ref().map(|process| opened(&world, process));
        for (first, second) in [("first", "second"), ("third", "fourth")] {
            let run = world.run(start(&one, kept(), first)).unwrap();
            let refused = world.run(start(&two, kept(), second)).map(drop);
            assert_eq!(refused.unwrap_err().code, ErrorCode::Busy);
            finish(&both[0], &run, &service);
            ask(&both[1], &two, &service, second);
        }
        let service = service.borrow();
        assert_eq!(service.places(), ["begins", "conv_1", "conv_1", "conv_1"]);
        for (at, input) in ["first", "second", "third", "fourth"].into_iter().enumerate() {
            assert_eq!(service.sent(at), [format!("user: {input}")]);
        }
    }
}

#[test]
fn r22_r27_r77_the_run_of_a_dead_process_is_resumed_where_it_sent_nothing_and_fails_where_it_may_have() {
    for has_begun in [false, true] {
        let (world, data, service) = (World::new(false), MemoryStore::default(), service());
        let both = [1, 2].map(|number| Process::new(&world, &data, number));
        let [one, two] = both.each_ref().map(|process| opened(&world, process));
        if has_begun {
            ask(&both[0], &one, &service, "before");
        }
        let killed = world.run(start(&one, kept(), "first")).unwrap().id.clone();
        both[0].kill();
        let early = world.run(resume(&two, &killed, kept())).map(drop);
        assert_eq!(early.unwrap_err().code, ErrorCode::Busy);
        world.pass(60_000);
        let run = world.run(resume(&two, &killed, kept())).unwrap();
        let outcome = drive(&both[1], &run, &service);
        // A request that begins a conversation doubles nothing in one of the session.
        let expected = has_begun.then_some(ErrorCode::ReplayUnsafe);
        assert_eq!(outcome.error.map(|error| error.code), expected);
    }
}

#[test]
fn r59_r77_an_erasure_says_that_the_service_has_the_text_and_the_rest_begins_another_conversation() {
    let (world, data, service) = (World::new(false), MemoryStore::default(), service());
    let process = Process::new(&world, &data, 1);
    let session = opened(&world, &process);
    ask(&process, &session, &service, "Secret");
    ask(&process, &session, &service, "two");
    let receipt = world.run(delete_messages(&session, &ids(&session)[..1])).unwrap();
    assert!(receipt.unreached.iter().any(|unreached| unreached.what == "service"));
    ask(&process, &session, &service, "three");
    ask(&process, &session, &service, "four");
    let service = service.borrow();
    assert_eq!(service.places(), ["begins", "conv_1", "begins", "conv_2"]);
    let sent = service.sent(2);
    assert!(!sent.iter().any(|words| words.contains("Secret")), "{sent:?}");
    assert!(["user: two", "user: three"].iter().all(|words| sent.iter().any(|one| one == words)), "{sent:?}");
    assert_eq!(service.sent(3), ["user: four"]);
    assert!(service.refused.is_empty());
}

#[test]
fn r36_r77_a_summary_begins_another_conversation() {
    let (world, data, service) = (World::new(false), MemoryStore::default(), service());
    let process = Process::new(&world, &data, 1);
    let session = opened(&world, &process);
    for input in ["one", "two", "three"] {
        ask(&process, &session, &service, input);
    }
    let request = |mode| {
        let summarize = Callback { id: 0, hook: Rc::new(()) };
        let provider = Some(provider(ENTRIES, false));
        Rc::new(CompactionRequest { mode, is_forced: true, tokens: None, summarize, provider })
    };
    for mode in [CompactionMode::Provider, CompactionMode::PreviousResponseId] {
        assert_eq!(world.run(compact(&session, request(mode))).unwrap_err().code, ErrorCode::StateOwnerConflict);
    }
    world.run(compact(&session, request(CompactionMode::Auto))).unwrap();
    assert!(session.log.borrow().history.compaction().is_some());
    for input in ["four", "five"] {
        ask(&process, &session, &service, input);
    }
    let service = service.borrow();
    assert_eq!(service.places(), ["begins", "conv_1", "conv_1", "begins", "conv_2"]);
    let sent = service.sent(3);
    assert!(sent.iter().any(|words| words.contains("What was said before.")), "{sent:?}");
    assert!(!sent.iter().any(|words| words == "user: one"), "{sent:?}");
    assert_eq!(service.sent(4), ["user: five"]);
}

#[test]
fn r37_r77_a_copy_begins_another_conversation_that_lacks_what_was_not_copied() {
    let (world, data, service) = (World::new(false), MemoryStore::default(), service());
    let process = Process::new(&world, &data, 1);
    let session = opened(&world, &process);
    ask(&process, &session, &service, "one");
    ask(&process, &session, &service, "two");
    let until = ids(&session)[1].clone();
    let copying = copy_session(&process.open.context, (Some(&session), "s"), Some(until), Some("copy".into()));
    world.run(copying).unwrap();
    let copy = owning(&world, world.run(process.open.open_session("copy", SessionSettings::default())).unwrap());
    for input in ["zwei", "drei"] {
        ask(&process, &copy, &service, input);
    }
    ask(&process, &session, &service, "three");
    let service = service.borrow();
    assert_eq!(service.places(), ["begins", "conv_1", "begins", "conv_2", "conv_1"]);
    assert_eq!(service.sent(2), ["user: one", "assistant: answer 1", "user: zwei"]);
    assert_eq!(service.sent(4), ["user: three"]);
}

#[test]
fn r37_r77_each_branch_of_a_restored_session_begins_another_conversation() {
    let (world, data, service) = (World::new(false), MemoryStore::default(), service());
    let process = Process::new(&world, &data, 1);
    let session = opened(&world, &process);
    ask(&process, &session, &service, "one");
    let name = world.run(fork(&session, Some(&ids(&session)[1]))).unwrap();
    world.run(switch_to(&session, &name)).unwrap();
    ask(&process, &session, &service, "zwei");
    world.run(switch_to(&session, "main")).unwrap();
    let archive = world.run(read_archive(&process.open.context, None, "s")).unwrap();
    // What was said after the backup is in the conversation, and not in what is restored.
    ask(&process, &session, &service, "later");
    let elsewhere = Process::new(&world, &MemoryStore::default(), 2);
    world.run(restore_archive(&elsewhere.open.context, archive.clone(), None)).unwrap();
    world.run(process.open.delete_session("s")).unwrap();
    world.run(restore_archive(&process.open.context, archive, None)).unwrap();
    for process in [&elsewhere, &process] {
        let restored = world.run(process.session(SessionSettings::default()));
        for (branch, inputs) in [("main", ["two", "three"]), (name.as_str(), ["drei", "vier"])] {
            world.run(switch_to(&restored, branch)).unwrap();
            inputs.iter().for_each(|input| ask(process, &restored, &service, input));
        }
    }
    let service = service.borrow();
    assert_eq!(service.places()[..3], ["begins", "begins", "conv_1"]);
    let restored = ["begins", "conv_3", "begins", "conv_4", "begins", "conv_5", "begins", "conv_6"];
    assert_eq!(service.places()[3..], restored);
    assert_eq!(service.sent(3), ["user: one", "assistant: answer 1", "user: two"]);
    assert!(service.refused.is_empty());
}

#[test]
fn r22_r77_an_answer_meanwhile_supersedes_a_summary() {
    let (world, data, service) = (World::new(false), MemoryStore::default(), Rc::new(service()));
    let process = Rc::new(Process::new(&world, &data, 1));
    let session = opened(&world, &process);
    ask(&process, &session, &service, "one");
    let meanwhile: Meanwhile = {
        let session = session.clone();
        let (process, service) = (process.clone(), service.clone());
        Box::new(move || {
            let (process, session, service) = (process.clone(), session.clone(), service.clone());
            Box::pin(async move {
                let run = start(&session, kept(), "two").await.unwrap();
                let answer = |body: &Value| {
                    let url = process.heard.borrow().url.clone();
                    service.borrow_mut().answer(&url, body)
                };
                process.drive(&run, &answer).await;
            })
        })
    };
    let (mode, summarize) = (CompactionMode::Input, Callback { id: 0, hook: Rc::new(meanwhile) });
    let provider = Some(provider(ENTRIES, false));
    let request = CompactionRequest { mode, is_forced: true, tokens: None, summarize, provider };
    assert_eq!(world.run(compact(&session, Rc::new(request))), Ok(CompactionOutcome::Superseded));
    assert!(session.log.borrow().history.compaction().is_none());
    ask(&process, &session, &service, "three");
    assert_eq!(service.borrow().places(), ["begins", "conv_1", "conv_1"]);
}
