//! Titles that a function of the application makes after the first exchange of a session (R79).

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::scripted_host::*;
use super::virtual_host::{Process, TitleFunction, World};
use super::{in_mode, start, three_tools};
use rethread::error::{Error, ErrorCode};
use rethread::finding::FindingCode;
use rethread::run::{Persistence, RunStatus};
use rethread::session::{OpenSession, SessionSettings, Signal, clear, delete_messages};
use rethread::store::MemoryStore;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::rc::Rc;

type Asked = Rc<RefCell<Vec<Value>>>;

/// What a function that makes titles returns.
#[derive(Clone)]
enum Reply {
    Title(&'static str),
    Nothing,
    Fails,
    /// The title comes when the signal is given.
    After(Signal, &'static str),
}

fn titles(asked: &Asked, replies: &[Reply]) -> TitleFunction {
    let (asked, replies) = (asked.clone(), replies.to_vec());
    Box::new(move |exchange| {
        let count = asked.borrow().len();
        let reply = replies.get(count).cloned().unwrap_or(Reply::Nothing);
        asked.borrow_mut().push(exchange);
        Box::pin(async move {
            match reply {
                Reply::Title(title) => Ok(Some(title.to_owned())),
                Reply::Nothing => Ok(None),
                Reply::Fails => Err(Error::new(ErrorCode::CallbackFailed, "no model")),
                Reply::After(signal, title) => {
                    signal.given().await;
                    Ok(Some(title.to_owned()))
                }
            }
        })
    })
}

fn process(world: &Rc<World>, data: &MemoryStore, number: u32, asked: &Asked, replies: &[Reply]) -> Process {
    Process::with_titles(world, data, number, titles(asked, replies))
}

fn ask(world: &World, process: &Process, session: &Rc<OpenSession>, input: &str) {
    let run = world.run(start(session, in_mode(Persistence::Run, CHAT), input)).unwrap();
    assert_eq!(world.run(process.drive(&run, &|_| Answer::Say(text("Well.")))).status, RunStatus::Finished);
}

fn title(world: &World, session: &OpenSession) -> Option<String> {
    world.pass(1_000);
    session.log.borrow().head.title.clone()
}

#[test]
fn r79_a_title_is_made_once_of_the_first_exchange() {
    let (world, data, asked) = (World::new(false), MemoryStore::default(), Asked::default());
    let process = process(&world, &data, 1, &asked, &[Reply::Title("  A\n crab  ")]);
    let settings = SessionSettings { channel: Some("web".into()), ..SessionSettings::default() };
    let session = world.run(process.session(settings));
    let run = world.run(start(&session, in_mode(Persistence::Call, CHAT), "What is\nthis?")).unwrap();
    assert!(asked.borrow().is_empty());
    assert_eq!(world.run(process.drive(&run, &three_tools)).status, RunStatus::Finished);
    assert_eq!(title(&world, &session).as_deref(), Some("A crab"));
    let exchange = asked.borrow()[0].clone();
    assert_eq!(
        (&exchange["session"], &exchange["channel"], &exchange["input"]),
        (&json!("s"), &json!("web"), &json!("What is\nthis?"))
    );
    assert!(!exchange["answer"].as_str().unwrap().is_empty());
    ask(&world, &process, &session, "And that?");
    assert_eq!((title(&world, &session).as_deref(), asked.borrow().len()), (Some("A crab"), 1));
    // It is stored, and does not change when the session's history did.
    let other = Process::new(&world, &data, 2);
    assert_eq!(world.run(other.session(SessionSettings::default())).log.borrow().head.title.as_deref(), Some("A crab"));
}

#[test]
fn r79_a_title_that_is_given_is_never_replaced_and_none_is_asked_for_then() {
    let (world, data, asked) = (World::new(false), MemoryStore::default(), Asked::default());
    let signal = Signal::default();
    let process = process(&world, &data, 1, &asked, &[Reply::After(signal.clone(), "Made")]);
    let session = world.run(process.session(SessionSettings::default()));
    ask(&world, &process, &session, "Hello");
    world.pass(1);
    // The user is faster.
    world.run(session.update(Box::new(|head| head.title = Some("Chosen".into())))).unwrap();
    signal.give();
    assert_eq!(title(&world, &session).as_deref(), Some("Chosen"));
    let settings = SessionSettings { title: Some("Opened".into()), ..SessionSettings::default() };
    let titled = world.run(process.open.open_session("titled", settings)).unwrap();
    ask(&world, &process, &titled, "Hello");
    assert_eq!((title(&world, &titled).as_deref(), asked.borrow().len()), (Some("Opened"), 1));
    // Another process, whose title this one has not read.
    let again = Signal::default();
    let third =
        Process::with_titles(&world, &data, 3, titles(&Asked::default(), &[Reply::After(again.clone(), "Made")]));
    let fresh = world.run(third.open.open_session("fresh", SessionSettings::default())).unwrap();
    ask(&world, &third, &fresh, "Hello");
    world.pass(1);
    let elsewhere = world.run(process.open.open_session("fresh", SessionSettings::default())).unwrap();
    world.run(elsewhere.update(Box::new(|head| head.title = Some("Elsewhere".into())))).unwrap();
    again.give();
    assert_eq!(title(&world, &fresh).as_deref(), Some("Elsewhere"));
}

#[test]
fn r79_a_function_that_fails_or_never_answers_is_a_warning_at_most_and_delays_nothing() {
    let (world, data, asked) = (World::new(false), MemoryStore::default(), Asked::default());
    let never = Signal::default();
    let replies = [Reply::Fails, Reply::Nothing, Reply::After(never.clone(), "Late"), Reply::Title("At last")];
    let process = process(&world, &data, 1, &asked, &replies);
    let session = world.run(process.session(SessionSettings::default()));
    ask(&world, &process, &session, "One");
    assert_eq!(title(&world, &session), None);
    let codes = || process.heard.borrow().warnings.iter().map(|finding| finding.code).collect::<Vec<_>>();
    assert_eq!(codes(), [FindingCode::CallbackFailed]);
    ask(&world, &process, &session, "Two");
    world.pass(1);
    ask(&world, &process, &session, "Three");
    assert_eq!((title(&world, &session), asked.borrow().len(), codes().len()), (None, 3, 1));
    // While one has not answered, none is asked again.
    ask(&world, &process, &session, "Four");
    assert_eq!(asked.borrow().len(), 3);
    world.pass(300_000);
    assert_eq!(codes().len(), 2);
    never.give();
    assert_eq!(title(&world, &session), None, "an answer after the limit is dropped");
    ask(&world, &process, &session, "Five");
    assert_eq!((title(&world, &session).as_deref(), asked.borrow().len()), (Some("At last"), 4));
    // It is asked about the first exchange all the same.
    assert!(asked.borrow().iter().all(|exchange| exchange["input"] == "One"));
}

#[test]
fn r79_a_question_that_was_lost_with_its_process_is_asked_again_and_a_closed_store_waits_for_none() {
    for is_killed in [true, false] {
        let (world, data, asked) = (World::new(false), MemoryStore::default(), Asked::default());
        let first = process(&world, &data, 1, &asked, &[Reply::After(Signal::default(), "Lost")]);
        let session = world.run(first.session(SessionSettings::default()));
        ask(&world, &first, &session, "Hello");
        world.pass(1);
        if is_killed {
            first.kill();
        } else {
            world.run(async {
                first.open.end_holds().await;
                first.open.context.disconnect();
                first.open.close().await.unwrap();
            });
            assert!(first.heard.borrow().warnings.is_empty());
        }
        let second = process(&world, &data, 2, &asked, &[Reply::Nothing, Reply::Fails, Reply::Title("Found")]);
        let session = world.run(second.session(SessionSettings::default()));
        assert_eq!((title(&world, &session), asked.borrow().len()), (None, 1));
        ask(&world, &second, &session, "Go on");
        world.pass(1);
        ask(&world, &second, &session, "And on");
        assert_eq!((title(&world, &session).as_deref(), asked.borrow().len()), (Some("Found"), 3));
    }
}

#[test]
fn r79_a_title_of_an_exchange_that_was_erased_or_cleared_is_dropped() {
    for is_cleared in [true, false] {
        let (world, data, asked) = (World::new(false), MemoryStore::default(), Asked::default());
        let signal = Signal::default();
        let process = process(&world, &data, 1, &asked, &[Reply::After(signal.clone(), "SECRET")]);
        let session = world.run(process.session(SessionSettings::default()));
        ask(&world, &process, &session, "The password is SECRET.");
        world.pass(1);
        if is_cleared {
            world.run(clear(&session)).unwrap();
        } else {
            let first = session.log.borrow().history.messages()[0].id.clone();
            world.run(delete_messages(&session, &[first])).unwrap();
        }
        signal.give();
        assert_eq!(title(&world, &session), None);
        assert_eq!(asked.borrow().len(), 1);
        ask(&world, &process, &session, "Hello");
        world.pass(1);
        assert_eq!(asked.borrow().len(), 2);
    }
}
