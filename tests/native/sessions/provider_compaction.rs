//! `Session.compact` in the mode "provider" (R78).

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::scripted_host::*;
use super::virtual_host::{Process, SummarizeFunction, World};
use super::{in_mode, start};
use rethread::error::{Error, ErrorCode};
use rethread::message::Dialect;
use rethread::owner::StateOwner;
use rethread::replay::Callback;
use rethread::run::{Persistence, RunStatus};
use rethread::session::{
    CompactionMode, CompactionOutcome, CompactionRequest, OpenSession, SessionSettings, Signal, compact,
};
use rethread::store::MemoryStore;
use serde_json::Value;
use std::cell::RefCell;
use std::rc::Rc;

type Asked = Rc<RefCell<Vec<(String, Value)>>>;

const BLOCK: &str =
    r#"{"stop_reason":"compaction","content":[{"type":"compaction","content":"<sum>","signature":"<sealed>"}]}"#;
const ITEMS: &str =
    r#"{"object":"response.compaction","output":[{"type":"compaction","encrypted_content":"<sealed>"}]}"#;

/// A call of `compact` whose function answers so, after a signal if one is given.
fn by_provider(asked: &Asked, answer: &str, after: Option<Signal>) -> Rc<CompactionRequest> {
    let (asked, answer) = (asked.clone(), answer.to_owned());
    let summarize: SummarizeFunction = Box::new(move |body, mode| {
        asked.borrow_mut().push((mode.to_owned(), body));
        let (answer, after) = (answer.clone(), after.clone());
        Box::pin(async move {
            if let Some(signal) = after {
                signal.given().await;
            }
            Ok(answer)
        })
    });
    let summarize = Callback { id: 0, hook: Rc::new(summarize) };
    Rc::new(CompactionRequest {
        mode: CompactionMode::Provider,
        is_forced: true,
        tokens: None,
        summarize,
        provider: None,
    })
}

fn say(world: &World, process: &Process, session: &Rc<OpenSession>, dialect: Dialect, input: &str) -> Value {
    let run = world.run(start(session, in_mode(Persistence::Run, dialect), input)).unwrap();
    assert_eq!(world.run(process.drive(&run, &|_| Answer::Say(text("Well.")))).status, RunStatus::Finished);
    process.heard.borrow().asked.last().unwrap().clone()
}

#[test]
fn r78_a_provider_compacts_while_the_conversation_goes_on() {
    for (dialect, answer) in [(CLAUDE, BLOCK), (RESPONSES, ITEMS)] {
        let (world, data) = (World::new(false), MemoryStore::default());
        let process = Process::new(&world, &data, 1);
        let session = world.run(process.session(SessionSettings::default()));
        say(&world, &process, &session, dialect, "<one>");
        let (asked, answered) = (Asked::default(), Signal::default());
        let request = by_provider(&asked, answer, Some(answered.clone()));
        let revision = Rc::new(std::cell::Cell::new(0));
        let outcome = world.run(async {
            let going_on = async {
                // The function is asked before.
                while asked.borrow().is_empty() {
                    world.sleep(1).await;
                }
                let run = start(&session, in_mode(Persistence::Run, dialect), "<two>").await.unwrap();
                assert_eq!(process.drive(&run, &|_| Answer::Say(text("Well."))).await.status, RunStatus::Finished);
                revision.set(session.log.borrow().revision);
                answered.give();
            };
            futures(compact(&session, request), going_on).await
        });
        assert_eq!(outcome, Ok(CompactionOutcome::Forced));
        assert_eq!(session.log.borrow().revision, revision.get() + 1, "one append");
        assert_eq!(session.log.borrow().history.messages().len(), 4, "the originals stay");
        let (mode, body) = asked.borrow()[0].clone();
        assert_eq!(mode, "provider");
        assert!(body.to_string().contains("<one>") && !body.to_string().contains("<two>"), "{body:#}");
        assert!(body.to_string().contains("Be brief."), "the instructions of the run");
        let body = say(&world, &process, &session, dialect, "<three>").to_string();
        assert!(!body.contains("<one>"), "{body}");
        assert!(body.find("<sealed>") < body.find("<two>") && body.find("<two>") < body.find("<three>"), "{body}");
        // Another process that opens the session sends the same.
        let second = Process::new(&world, &data, 2);
        let session = world.run(second.session(SessionSettings::default()));
        let body = say(&world, &second, &session, dialect, "<four>").to_string();
        assert!(body.contains("<sealed>") && !body.contains("<one>") && body.contains("<three>"), "{body}");
    }
}

/// Runs both to the end, and returns what the first returns.
async fn futures<T>(first: impl Future<Output = T>, second: impl Future<Output = ()>) -> T {
    let (mut first, mut second) = (Box::pin(first), Box::pin(second));
    let (mut value, mut is_over) = (None, false);
    std::future::poll_fn(move |context| {
        use std::task::Poll;
        if value.is_none()
            && let Poll::Ready(ready) = first.as_mut().poll(context)
        {
            value = Some(ready);
        }
        is_over = is_over || second.as_mut().poll(context).is_ready();
        match (is_over, value.take()) {
            (true, Some(ready)) => Poll::Ready(ready),
            (_, other) => {
                value = other;
                Poll::Pending
            }
        }
    })
    .await
}

#[test]
fn r78_an_answer_without_a_compaction_stores_nothing() {
    for dialect in [CLAUDE, RESPONSES] {
        let (world, data) = (World::new(false), MemoryStore::default());
        let process = Process::new(&world, &data, 1);
        let session = world.run(process.session(SessionSettings::default()));
        say(&world, &process, &session, dialect, "<one>");
        let revision = session.log.borrow().revision;
        let asked = Asked::default();
        let other = if dialect == CLAUDE { ITEMS } else { BLOCK };
        for answer in ["They talked.", "{}", r#"{"type":"error","error":{"message":"overloaded"}}"#, other] {
            let outcome = world.run(compact(&session, by_provider(&asked, answer, None)));
            assert_eq!(outcome.map_err(|error| error.code), Err(ErrorCode::CallbackFailed), "{answer}");
        }
        if dialect == CLAUDE {
            let nothing = r#"{"stop_reason":"compaction","content":[{"type":"compaction","content":null}]}"#;
            let outcome = world.run(compact(&session, by_provider(&asked, nothing, None)));
            assert_eq!(outcome, Ok(CompactionOutcome::NoSummary));
        }
        assert_eq!(session.log.borrow().revision, revision);
        assert!(session.log.borrow().history.compaction().is_none());
        assert!(say(&world, &process, &session, dialect, "<two>").to_string().contains("<one>"));
    }
}

#[test]
fn r78_who_cannot_have_it_is_told_what_to_do() {
    let (world, data) = (World::new(false), MemoryStore::default());
    let process = Process::new(&world, &data, 1);
    let session = world.run(process.session(SessionSettings::default()));
    say(&world, &process, &session, CHAT, "<one>");
    let asked = Asked::default();
    let refused = |session: &Rc<OpenSession>| -> Error {
        world.run(compact(session, by_provider(&asked, BLOCK, None))).unwrap_err()
    };
    let error = refused(&session);
    assert_eq!(error.code, ErrorCode::ConfigInvalid);
    assert!(error.message.contains("use `mode: \"input\"`"), "{}", error.message);
    for owner in [
        StateOwner::Caller,
        StateOwner::Conversation { id: "conv_1".into() },
        StateOwner::response(Some("resp_1".into())),
    ] {
        let data = MemoryStore::default();
        let process = Process::new(&world, &data, 3);
        let session =
            world.run(process.session(SessionSettings { owner: Some(owner.clone()), ..SessionSettings::default() }));
        assert_eq!(refused(&session).code, ErrorCode::StateOwnerConflict, "{owner:?}");
    }
    assert!(asked.borrow().is_empty());
}
