//! Questions that wait are stored: a kill loses none, and each is answered once, in the order in which they were asked
//! (R60).

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::queue::{says, send, shown, texts};
use super::scripted_host::*;
use super::virtual_host::{Process, World};
use super::{in_mode, records, resume, run_ids, start};
use rethread::error::{Error, ErrorCode};
use rethread::finding::Finding;
use rethread::run::{Persistence, RunStatus};
use rethread::session::{OpenSession, RunDriver, SessionSettings, discard_run};
use rethread::session_head::{FIRST_QUEUED, RunEntry};
use rethread::store::{MemoryStore, Table};
use serde_json::Value;
use std::cell::RefCell;
use std::rc::Rc;

/// Longer than a lease.
pub(super) const AFTER_LEASES: u64 = 31_000;

pub(super) type Sent = Rc<RefCell<Option<Result<Rc<RunDriver>, Error>>>>;

/// Sends a question to the queue in the background.
pub(super) fn send_soon(process: &Process, session: &Rc<OpenSession>, input: &'static str) -> Sent {
    let (sent, session) = (Sent::default(), session.clone());
    let keep = sent.clone();
    process.open.context.host.spawn(Box::pin(async move {
        let run = send(&session, input).await;
        keep.borrow_mut().replace(run);
    }));
    sent
}

/// Answers each question with its last text, so that a history says what was answered.
pub(super) fn echo(body: &Value) -> Answer {
    let text_of = body["messages"].as_array().unwrap().last().unwrap()["content"].to_string();
    Answer::Say(text(Box::leak(format!("re {}", text_of.trim_matches('"')).into_boxed_str())))
}

/// Resumes every pending run of a session in the order of the head, and drives it, as a page does when it is loaded.
pub(super) fn finish_all(world: &World, process: &Process, session: &Rc<OpenSession>) {
    world.run(session.refresh()).unwrap();
    for id in run_ids(session) {
        let run = world.run(resume(session, &id, in_mode(Persistence::Run, CHAT))).unwrap();
        assert_eq!(world.run(process.drive(&run, &echo)).status, RunStatus::Finished);
    }
    assert!(run_ids(session).is_empty());
}

/// What was stored of the question that waits when its page was killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stored {
    Nothing,
    Question,
    Run,
    Turn,
}

/// A page with a run and a question that waits is killed after some steps. Returns none if it was not in time.
fn killed_at(step: usize, has_locks: bool) -> Option<Stored> {
    let (world, data) = (World::new(has_locks), MemoryStore::default());
    let first = Rc::new(Process::new(&world, &data, 1));
    let page = async {
        let session = first.session(SessionSettings::default()).await;
        let run = start(&session, in_mode(Persistence::Run, CHAT), "first").await.unwrap();
        let sent = send_soon(&first, &session, "second");
        world.sleep(10).await;
        first.drive(&run, &echo).await;
        while sent.borrow().is_none() {
            world.sleep(10).await;
        }
        let second = sent.take().unwrap().unwrap();
        first.drive(&second, &echo).await
    };
    if world.run_steps(page, step).is_some() {
        return None;
    }
    first.kill();
    world.pass(AFTER_LEASES);
    let second = Process::new(&world, &data, 2);
    let session = world.run(second.session(SessionSettings::default()));
    let pending: Value = serde_json::from_str(&world.run(session.pending_runs()).unwrap()).unwrap();
    let is_pending = |input: &str| pending.to_string().contains(&format!("\"{input}\""));
    let known = ["first", "second"].map(|input| is_pending(input) || texts(&session).contains(&input.to_owned()));
    let states: Vec<_> = pending.as_array().unwrap().iter().map(|run| run["state"].clone()).collect();
    let stored = match () {
        () if states.contains(&"queued".into()) => Stored::Question,
        () if is_pending("second") => Stored::Run,
        () if known[1] => Stored::Turn,
        () => Stored::Nothing,
    };
    assert_eq!(shown(&session).len(), usize::from(stored == Stored::Question), "step {step}");
    finish_all(&world, &second, &session);
    let all = ["first", "re first", "second", "re second"];
    let expected = [&all[..if known[0] { 2 } else { 0 }], &all[if known[1] { 2 } else { 4 }..]].concat();
    assert_eq!(texts(&session), expected, "step {step}");
    assert_eq!(records(&data, Table::Runs), 0, "step {step}");
    Some(stored)
}

#[test]
fn r60_a_question_that_waits_survives_a_kill_wherever_its_page_waits() {
    for has_locks in [true, false] {
        let mut kills: Vec<Stored> = (0..).map_while(|step| killed_at(step, has_locks)).collect();
        assert!(kills.len() >= 20, "{} places to be killed", kills.len());
        kills.dedup();
        assert_eq!(kills, [Stored::Nothing, Stored::Question, Stored::Run, Stored::Turn]);
    }
}

#[test]
fn r60_questions_of_killed_tabs_are_taken_up_in_the_order_in_which_they_were_asked() {
    for has_locks in [true, false] {
        let (world, data) = (World::new(has_locks), MemoryStore::default());
        let both = [1, 2].map(|number| Process::new(&world, &data, number));
        let [one, two] = both.each_ref().map(|process| world.run(process.session(SessionSettings::default())));
        let first = world.run(start(&one, in_mode(Persistence::Run, CHAT), "first")).unwrap();
        for (process, session, input) in
            [(&both[1], &two, "second"), (&both[0], &one, "third"), (&both[1], &two, "fourth")]
        {
            send_soon(process, session, input);
            world.pass(1_000);
        }
        both[0].kill();
        both[1].kill();
        world.pass(AFTER_LEASES);
        let third = Rc::new(Process::new(&world, &data, 3));
        let session = world.run(third.session(SessionSettings::default()));
        assert_eq!(shown(&session).len(), 3, "a page that is loaded shows them");
        let first = world.run(resume(&session, &first.id, in_mode(Persistence::Run, CHAT))).unwrap();
        let mut queued = run_ids(&session);
        queued.retain(|id| *id != first.id);
        // The last one is taken up first: each waits for those that were asked before it.
        for id in queued.into_iter().rev() {
            let (session, process) = (session.clone(), third.clone());
            third.open.context.host.spawn(Box::pin(async move {
                let run = resume(&session, &id, in_mode(Persistence::Run, CHAT)).await.unwrap();
                process.drive(&run, &echo).await;
            }));
            world.pass(1_000);
        }
        assert_eq!(shown(&session).len(), 3);
        world.run(third.drive(&first, &echo));
        world.pass(60_000);
        let expected = ["first", "second", "third", "fourth"].map(|input| [input.to_owned(), format!("re {input}")]);
        assert_eq!(texts(&session), expected.concat());
        assert_eq!((shown(&session).len(), records(&data, Table::Runs)), (0, 0));
    }
}

#[test]
fn r60_a_question_whose_tab_lives_does_not_wait_for_one_that_nobody_takes_up() {
    for has_locks in [true, false] {
        let (world, data) = (World::new(has_locks), MemoryStore::default());
        let three = [1, 2, 3].map(|number| Process::new(&world, &data, number));
        let sessions = three.each_ref().map(|process| world.run(process.session(SessionSettings::default())));
        let first = world.run(start(&sessions[0], in_mode(Persistence::Run, CHAT), "first")).unwrap();
        send_soon(&three[1], &sessions[1], "of a tab that is killed");
        world.pass(1_000);
        let sent = send_soon(&three[2], &sessions[2], "second");
        world.pass(1_000);
        three[1].kill();
        world.run(three[0].drive(&first, &echo));
        world.pass(AFTER_LEASES + 1_000);
        let second = sent.take().expect("the queue went on").unwrap();
        world.run(three[2].drive(&second, &echo));
        finish_all(&world, &three[2], &sessions[2]);
        let expected =
            ["first", "second", "of a tab that is killed"].map(|input| [input.to_owned(), format!("re {input}")]);
        assert_eq!(texts(&sessions[2]), expected.concat());
    }
}

#[test]
fn r60_a_question_that_is_discarded_while_it_waits_leaves_nothing() {
    for has_locks in [true, false] {
        let (world, data) = (World::new(has_locks), MemoryStore::default());
        let both = [1, 2].map(|number| Process::new(&world, &data, number));
        let [one, two] = both.each_ref().map(|process| world.run(process.session(SessionSettings::default())));
        let first = world.run(start(&one, in_mode(Persistence::Run, CHAT), "first")).unwrap();
        let sent = send_soon(&both[1], &two, "second");
        world.pass(1_000);
        let queued = run_ids(&two).pop().unwrap();
        world.run(one.refresh()).unwrap();
        let busy = world.run(discard_run(&one, &queued, false)).err().map(|error| error.code);
        assert_eq!(busy, Some(ErrorCode::Busy), "it waits in another tab");
        let busy = world.run(resume(&one, &queued, in_mode(Persistence::Run, CHAT))).err().map(|error| error.code);
        assert_eq!(busy, Some(ErrorCode::Busy));
        world.run(discard_run(&two, &queued, false)).unwrap();
        world.pass(1_000);
        assert_eq!(sent.take().map(|sent| sent.err().map(|error| error.code)), Some(Some(ErrorCode::NotFound)));
        assert_eq!((run_ids(&two).len(), shown(&two).len()), (1, 0));
        world.run(both[0].drive(&first, &echo));
        assert_eq!((texts(&one).len(), records(&data, Table::Runs)), (2, 0));
        // One that nobody holds is discarded anywhere.
        world.run(start(&one, in_mode(Persistence::Run, CHAT), "third")).unwrap();
        send_soon(&both[1], &two, "fourth");
        world.pass(1_000);
        both[0].kill();
        both[1].kill();
        world.pass(AFTER_LEASES);
        let last = Process::new(&world, &data, 3);
        let session = world.run(last.session(SessionSettings::default()));
        for id in run_ids(&session) {
            world.run(discard_run(&session, &id, false)).unwrap();
        }
        assert_eq!((texts(&session).len(), records(&data, Table::Runs)), (2, 0));
    }
}

/// Returns what a process lists that has read for so many steps when the question begins.
fn listed_while_it_begins(steps: usize, as_view: bool) -> (String, Vec<Finding>) {
    let (world, data) = (World::new(true), MemoryStore::default());
    let [asking, listing] = [1, 2].map(|number| Process::new(&world, &data, number));
    let session = world.run(asking.session(SessionSettings::default()));
    let first = world.run(start(&session, in_mode(Persistence::Run, CHAT), "first")).unwrap();
    let sent = send_soon(&asking, &session, "second");
    world.pass(10);
    let watched = world.run(listing.session(SessionSettings::default()));
    let mut list = Box::pin(async {
        if as_view {
            watched.update_pending().await;
        }
        listing.open.pending_runs(Some("s".into())).await.unwrap()
    });
    let early = world.run_steps(&mut list, steps);
    world.run(async {
        asking.drive(&first, &echo).await;
        while sent.borrow().is_none() {
            world.sleep(1).await;
        }
    });
    let listed = early.unwrap_or_else(|| world.run(list));
    let warnings = listing.heard.borrow().warnings.clone();
    (listed, warnings)
}

/// A question that begins has another journal than it had while it waited.
#[test]
fn r60_r69_a_question_that_begins_while_it_is_listed_is_no_damage() {
    for as_view in [false, true] {
        for steps in 0..40 {
            let (listed, warnings) = listed_while_it_begins(steps, as_view);
            assert_eq!(warnings, [], "after {steps} steps");
            assert!(listed.contains("second"), "after {steps} steps: {listed}");
        }
    }
}

#[test]
fn r60_a_former_holder_of_a_question_does_not_begin_it() {
    let (world, data) = (World::new(false), MemoryStore::default());
    let both = [1, 2].map(|number| Process::new(&world, &data, number));
    let [one, two] = both.each_ref().map(|process| world.run(process.session(SessionSettings::default())));
    let first = world.run(start(&one, in_mode(Persistence::Run, CHAT), "first")).unwrap();
    let former = two.clone();
    let mut sending = Box::pin(async move { send(&former, "second").await });
    assert!(world.run_steps(&mut sending, 200).is_none(), "it waits");
    // The second process sleeps: its timers do not fire, and its lease runs out.
    world.kill(2);
    world.run(both[0].drive(&first, &echo));
    world.pass(AFTER_LEASES);
    let id = run_ids(&one).pop().unwrap();
    let second = world.run(resume(&one, &id, in_mode(Persistence::Run, CHAT))).unwrap();
    // It wakes up.
    let refused = world.run(sending).err().map(|error| error.code);
    assert_eq!(refused, Some(ErrorCode::Conflict));
    world.run(both[0].drive(&second, &says("two")));
    assert_eq!(texts(&one), ["first", "re first", "second", "two"]);
}

#[test]
fn r60_a_question_that_may_begin_waits_for_no_other_that_may_not() {
    let queued =
        |number: u64, is_next: bool| RunEntry { number: FIRST_QUEUED + number, is_next, ..RunEntry::default() };
    let place = |entry: &RunEntry| Some((entry.number, entry.is_next));
    let run = RunEntry { number: 7, ..RunEntry::default() };
    for (first, second) in [(false, false), (false, true), (true, false), (true, true)] {
        let (low, high) = (queued(3, first), queued(5, second));
        assert_ne!(low.precedes(place(&high)), high.precedes(place(&low)), "{first} {second}: one of them begins");
        for entry in [&low, &high] {
            assert!(run.precedes(place(entry)) && entry.precedes(None) && !entry.precedes(place(entry)));
        }
    }
    // An older question that is taken up again waits for one whose begin has failed once.
    assert!(queued(5, true).precedes(place(&queued(3, false))));
}
