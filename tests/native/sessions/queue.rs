//! Runs that wait for the run before them, in any tab or process (`whenBusy: "queue"`, R60).

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::scripted_host::*;
use super::virtual_host::{Process, World};
use super::{in_mode, roles, start, start_in};
use rethread::error::{Error, ErrorCode};
use rethread::message::{Message, PartBody, Role};
use rethread::run::{Persistence, RunStatus};
use rethread::session::{OpenSession, RunDriver, SessionSettings};
use rethread::store::MemoryStore;
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

pub(super) async fn send(session: &Rc<OpenSession>, input: &str) -> Result<Rc<RunDriver>, Error> {
    start_in(session, in_mode(Persistence::Run, CHAT), (input, true)).await
}

pub(super) fn says(answer: &'static str) -> impl Fn(&Value) -> Answer {
    move |_| Answer::Say(text(answer))
}

/// The ids of the questions that wait, as a view shows them.
pub(super) fn shown(session: &OpenSession) -> Vec<String> {
    let mut ids = Vec::new();
    let pending = session.pending.borrow();
    session.visit_queued(&pending, &mut |question| ids.push(question.messages()[0].id.clone()));
    ids
}

pub(super) fn texts(session: &OpenSession) -> Vec<String> {
    let log = session.log.borrow();
    let text = |message: &Message| match &message.parts[0].body {
        PartBody::Text(text) => text.decode().into_owned(),
        other => panic!("{other:?}"),
    };
    log.history.messages().iter().map(text).collect()
}

#[test]
fn r60_a_queued_question_is_stored_after_the_answer_of_another_tab() {
    for has_locks in [true, false] {
        let (world, data) = (World::new(has_locks), MemoryStore::default());
        let both = [1, 2].map(|number| Process::new(&world, &data, number));
        let [one, two] = both.each_ref().map(|process| world.run(process.session(SessionSettings::default())));
        let first = world.run(start(&one, in_mode(Persistence::Run, CHAT), "first")).unwrap();
        let begun = Rc::new(RefCell::new(None));
        let (keep, session) = (begun.clone(), two.clone());
        let sending = async move {
            let run = send(&session, "second").await;
            keep.borrow_mut().replace(run);
        };
        both[1].open.context.host.spawn(Box::pin(sending));
        world.pass(5_000);
        assert!(begun.borrow().is_none(), "the second question waits");
        assert_eq!(world.run(both[0].drive(&first, &says("one"))).status, RunStatus::Finished);
        world.pass(1_000);
        let second = begun.take().expect("the queue went on").unwrap();
        assert_eq!(world.run(both[1].drive(&second, &says("two"))).status, RunStatus::Finished);
        world.run(one.refresh()).unwrap();
        assert_eq!(texts(&one), ["first", "one", "second", "two"]);
        let asked = both[1].heard.borrow().asked.last().unwrap().to_string();
        assert!(asked.contains("one"), "the answer before it is in its request: {asked}");
    }
}

#[test]
fn r60_a_queue_goes_on_when_the_tab_that_it_waits_for_is_killed() {
    for has_locks in [true, false] {
        let (world, data) = (World::new(has_locks), MemoryStore::default());
        let both = [1, 2].map(|number| Process::new(&world, &data, number));
        let [one, two] = both.each_ref().map(|process| world.run(process.session(SessionSettings::default())));
        world.run(start(&one, in_mode(Persistence::Run, CHAT), "first")).unwrap();
        both[0].kill();
        let second = world.run(send(&two, "second")).unwrap();
        assert_eq!(world.run(both[1].drive(&second, &says("two"))).status, RunStatus::Finished);
        assert_eq!(roles(&two), [Role::User, Role::Assistant]);
    }
}

#[test]
fn r60_of_many_queued_tabs_one_runs_at_a_time() {
    let (world, data) = (World::new(true), MemoryStore::default());
    let (live, most) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
    let mut sessions = Vec::new();
    for number in 1..=5 {
        let process = Process::new(&world, &data, number);
        let session = world.run(process.session(SessionSettings::default()));
        sessions.push(session.clone());
        let (live, most, host) = (live.clone(), most.clone(), process.open.context.host.clone());
        host.spawn(Box::pin(async move {
            let run = send(&session, "question").await.unwrap();
            live.set(live.get() + 1);
            most.set(most.get().max(live.get()));
            process.open.context.host.sleep(50).await;
            assert_eq!(process.drive(&run, &says("answer")).await.status, RunStatus::Finished);
            live.set(live.get() - 1);
        }));
    }
    world.pass(60_000);
    assert_eq!((live.get(), most.get()), (0, 1));
    world.run(sessions[0].refresh()).unwrap();
    assert_eq!(texts(&sessions[0]), ["question", "answer"].repeat(5));
}

#[test]
fn r60_a_queued_run_of_a_closed_store_is_refused() {
    for has_locks in [true, false] {
        let (world, data) = (World::new(has_locks), MemoryStore::default());
        let both = [1, 2].map(|number| Process::new(&world, &data, number));
        let [one, two] = both.each_ref().map(|process| world.run(process.session(SessionSettings::default())));
        world.run(start(&one, in_mode(Persistence::Run, CHAT), "first")).unwrap();
        let begun = Rc::new(RefCell::new(None));
        let (keep, session) = (begun.clone(), two.clone());
        both[1].open.context.host.spawn(Box::pin(async move {
            let run = send(&session, "second").await;
            keep.borrow_mut().replace(run.map(drop).map_err(|error| error.code));
        }));
        world.pass(2_000);
        both[1].open.context.disconnect();
        world.run(both[1].open.close()).unwrap();
        world.pass(2_000);
        assert_eq!(begun.take(), Some(Err(ErrorCode::Closed)));
    }
}

#[test]
fn r60_a_question_is_shown_while_it_waits() {
    for has_locks in [true, false] {
        let (world, data) = (World::new(has_locks), MemoryStore::default());
        let both = [1, 2].map(|number| Rc::new(Process::new(&world, &data, number)));
        let [one, two] = both.each_ref().map(|process| world.run(process.session(SessionSettings::default())));
        // Nothing is under way: it does not wait.
        let first = world.run(send(&one, "first")).unwrap();
        assert_eq!((shown(&one), shown(&two)), (Vec::new(), Vec::new()));
        for session in [&one, &two, &one, &two] {
            let (session, process) = (session.clone(), both[usize::from(Rc::ptr_eq(session, &two))].clone());
            process.open.context.host.clone().spawn(Box::pin(async move {
                let run = send(&session, "question").await.unwrap();
                process.drive(&run, &says("answer")).await;
            }));
        }
        world.pass(2_000);
        world.run(one.refresh()).unwrap();
        world.run(two.refresh()).unwrap();
        let waiting = [shown(&one), shown(&two)];
        assert_eq!(waiting[0].len(), 4, "in each tab, whatever tab it waits in");
        assert_eq!(waiting[0], waiting[1]);
        assert_eq!(world.run(both[0].drive(&first, &says("one"))).status, RunStatus::Finished);
        world.pass(60_000);
        world.run(one.refresh()).unwrap();
        world.run(two.refresh()).unwrap();
        assert_eq!((shown(&one), shown(&two)), (Vec::new(), Vec::new()));
        let mut ids: Vec<_> = one.log.borrow().history.messages().iter().map(|message| message.id.clone()).collect();
        ids.retain(|id| waiting[0].contains(id));
        assert_eq!(ids, waiting[0], "they have the ids that were shown, and the first one is first");
    }
}
