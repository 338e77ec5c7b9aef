//! Stores that fail while a question is queued, waits or begins: it is neither lost nor asked twice (R60).

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::queue::{shown, texts};
use super::scripted_host::*;
use super::stored_queue::{AFTER_LEASES, Sent, echo, finish_all, send_soon};
use super::virtual_host::{CountingProvider, Fault, Process, World};
use super::{in_mode, records, resume, run_ids, start};
use rethread::error::{Error, ErrorCode};
use rethread::replay::Callback;
use rethread::run::{Persistence, RunSetup, RunStatus};
use rethread::session::{NewRun, OpenSession, RunDriver, SessionSettings};
use rethread::store::{MemoryStore, Table};
use std::cell::Cell;
use std::rc::Rc;

/// The faults of one process: that of each append, counted from the moment at which they are armed.
#[derive(Clone, Default)]
struct Faults {
    appends: Rc<Cell<Option<u32>>>,
    fault: Rc<Cell<Option<(Fault, u32, u32)>>>,
}

impl Faults {
    /// Lets the appends from `first` to `last` fail, counted from now on.
    fn arm(&self, fault: Fault, (first, last): (u32, u32)) {
        self.appends.set(Some(0));
        self.fault.set(Some((fault, first, last)));
    }

    fn disarm(&self) {
        self.fault.set(None);
    }

    fn process(&self, world: &Rc<World>, data: &MemoryStore, number: u32) -> Rc<Process> {
        let faults = self.clone();
        let fault = move || {
            let count = faults.appends.get()? + 1;
            faults.appends.set(Some(count));
            let (fault, first, last) = faults.fault.get()?;
            (first..=last).contains(&count).then_some(fault)
        };
        Rc::new(Process::with_faults(world, data, number, Box::new(fault)))
    }
}

/// Returns true if the sender may send the question again, as docs/runs.md says.
fn may_send_again(error: &Error) -> bool {
    !matches!(error.code, ErrorCode::Closed | ErrorCode::Conflict) && !error.may_have_written()
}

/// Sends "second" as a user does who sees what became of it: one that was not sent is sent again.
fn send_until_answered(world: &World, process: &Rc<Process>, session: &Rc<OpenSession>, mut sent: Option<Sent>) {
    for _ in 0..3 {
        let sent = sent.take().unwrap_or_else(|| send_soon(process, session, "second"));
        world.pass(30_000);
        let run = sent.take().expect("it was begun, or refused");
        match run {
            Ok(run) if world.run(process.drive(&run, &echo)).status == RunStatus::Finished => return,
            Ok(_) => {}
            Err(error) if may_send_again(&error) => {}
            Err(_) => return,
        }
    }
}

/// The texts of the session when a new process has resumed everything that is left.
fn texts_in_the_end(world: &Rc<World>, data: &MemoryStore, former: &Process) -> Vec<String> {
    former.kill();
    world.pass(AFTER_LEASES);
    let next = Process::new(world, data, 9);
    let session = world.run(next.session(SessionSettings::default()));
    finish_all(world, &next, &session);
    assert_eq!(records(data, Table::Runs), 0);
    texts(&session)
}

const FAULTS: [Fault; 6] =
    [Fault::Refused, Fault::ReplyLost, Fault::Busy, Fault::BusyWritten, Fault::Conflict, Fault::Late];

#[test]
fn r60_a_write_that_fails_or_whose_reply_is_lost_doubles_no_question() {
    for (has_locks, fault) in [true, false].into_iter().flat_map(|locks| FAULTS.map(|fault| (locks, fault))) {
        for (at, count) in (1..8).map(|at| (at, 1)).chain((1..4).map(|at| (at, 3))) {
            // Later it says that another holder has the first run.
            if fault == Fault::Conflict && (at, count) != (1, 1) {
                continue;
            }
            let (world, data, faults) = (World::new(has_locks), MemoryStore::default(), Faults::default());
            let process = faults.process(&world, &data, 1);
            let session = world.run(process.session(SessionSettings::default()));
            let run = world.run(start(&session, in_mode(Persistence::Run, CHAT), "first")).unwrap();
            faults.arm(fault, (at, at + count - 1));
            let sent = send_soon(&process, &session, "second");
            world.pass(3_000);
            world.run(process.drive(&run, &echo));
            send_until_answered(&world, &process, &session, Some(sent));
            let texts = texts_in_the_end(&world, &data, &process);
            assert_eq!(texts, ["first", "re first", "second", "re second"], "{has_locks} {fault:?} {at} {count}");
        }
    }
}

#[test]
fn r60_a_question_that_begins_at_once_is_asked_once_whatever_its_store_says() {
    for (has_locks, fault) in [true, false].into_iter().flat_map(|locks| FAULTS.map(|fault| (locks, fault))) {
        for (at, count) in [(1, 1), (2, 1), (3, 1), (1, 2), (1, 30)] {
            if fault == Fault::Conflict && at > 1 {
                continue;
            }
            let (world, data, faults) = (World::new(has_locks), MemoryStore::default(), Faults::default());
            let process = faults.process(&world, &data, 1);
            let session = world.run(process.session(SessionSettings::default()));
            let run = world.run(start(&session, in_mode(Persistence::Run, CHAT), "first")).unwrap();
            world.run(process.drive(&run, &echo));
            faults.arm(fault, (at, at + count - 1));
            let sent = send_soon(&process, &session, "second");
            world.pass(40_000);
            faults.disarm();
            send_until_answered(&world, &process, &session, Some(sent));
            let texts = texts_in_the_end(&world, &data, &process);
            assert_eq!(texts, ["first", "re first", "second", "re second"], "{has_locks} {fault:?} {at} {count}");
        }
    }
}

#[test]
fn r60_a_question_keeps_its_lock_while_its_begin_fails() {
    for (at, count) in [(1, 1), (2, 1), (1, 4), (2, 4)] {
        let (world, data, faults) = (World::new(true), MemoryStore::default(), Faults::default());
        let (one, two) = (Process::new(&world, &data, 1), faults.process(&world, &data, 2));
        let [first_session, session] =
            [&one, &*two].map(|process| world.run(process.session(SessionSettings::default())));
        let first = world.run(start(&first_session, in_mode(Persistence::Run, CHAT), "first")).unwrap();
        let sent = send_soon(&two, &session, "second");
        world.pass(1_000);
        let queued = run_ids(&session).pop().unwrap();
        faults.arm(Fault::Busy, (at, at + count - 1));
        world.run(one.drive(&first, &echo));
        for _ in 0..40 {
            world.pass(100);
            let taken = world.run(resume(&first_session, &queued, in_mode(Persistence::Run, CHAT)));
            assert_eq!(taken.err().map(|error| error.code), Some(ErrorCode::Busy), "its page lives: {at} {count}");
        }
        let second = sent.take().expect("it began").unwrap();
        assert_eq!(world.run(two.drive(&second, &echo)).status, RunStatus::Finished);
        assert_eq!(texts(&session), ["first", "re first", "second", "re second"]);
    }
}

#[test]
fn r60_a_run_that_is_cancelled_while_it_begins_is_not_asked_later() {
    // Of one that waits, the append that admits it, and its begin; the begin of one that does not wait.
    for (has_locks, waits) in [(true, true), (false, true), (true, false), (false, false)] {
        for fault in [Fault::Slow, Fault::Refused, Fault::Late, Fault::ReplyLost] {
            let (world, data, faults) = (World::new(has_locks), MemoryStore::default(), Faults::default());
            let process = faults.process(&world, &data, 1);
            let session = world.run(process.session(SessionSettings::default()));
            let run = world.run(start(&session, in_mode(Persistence::Run, CHAT), "first")).unwrap();
            let sent = if waits {
                let sent = send_soon(&process, &session, "second");
                world.pass(1_000);
                sent
            } else {
                Sent::default()
            };
            world.run(process.drive(&run, &echo));
            let at = u32::from(waits) + 1;
            faults.arm(fault, (at, at));
            let sent = if waits { sent } else { send_soon(&process, &session, "second") };
            // Until its run is shown.
            while session.live_run().is_none() {
                let _ = world.run_steps(std::future::pending::<()>(), 2);
            }
            let live = session.live_run().unwrap();
            world.run(live.cancel()).unwrap();
            world.pass(120_000);
            match sent.take().expect("it has ended") {
                Ok(run) => {
                    let status = world.run(process.drive(&run, &echo)).status;
                    // One that did not wait, and that the store refused, has failed.
                    assert!(status == RunStatus::Cancelled || !waits && status == RunStatus::Failed, "{fault:?}");
                }
                Err(error) => assert_eq!(error.code, ErrorCode::Aborted, "{fault:?}"),
            }
            assert!(shown(&session).is_empty());
            process.kill();
            world.pass(AFTER_LEASES);
            let next = Process::new(&world, &data, 2);
            let session = world.run(next.session(SessionSettings::default()));
            let pending = world.run(session.pending_runs()).unwrap();
            assert_eq!(pending, "[]", "{has_locks} {waits} {fault:?}");
        }
    }
}

#[test]
fn r60_a_question_waits_on_while_its_store_cannot_be_read() {
    for has_locks in [true, false] {
        let (world, data) = (World::new(has_locks), MemoryStore::default());
        let both = [1, 2].map(|number| Process::new(&world, &data, number));
        let [one, two] = both.each_ref().map(|process| world.run(process.session(SessionSettings::default())));
        let first = world.run(start(&one, in_mode(Persistence::Run, CHAT), "first")).unwrap();
        let sent = send_soon(&both[1], &two, "second");
        world.pass(2_000);
        both[1].store.reads_fail.set(true);
        world.pass(5_000);
        // Its turn comes meanwhile.
        world.run(both[0].drive(&first, &echo));
        world.pass(5_000);
        assert!(sent.borrow().is_none(), "it waits on");
        both[1].store.reads_fail.set(false);
        world.pass(1_000);
        let second = sent.take().expect("it began").unwrap();
        assert_eq!(world.run(both[1].drive(&second, &echo)).status, RunStatus::Finished);
        assert_eq!(texts(&two), ["first", "re first", "second", "re second"]);
    }
}

/// Sends a question whose provider fails.
fn send_without_provider(process: &Process, session: &Rc<OpenSession>) -> Sent {
    let (sent, session) = (Sent::default(), session.clone());
    let keep = sent.clone();
    process.open.context.host.spawn(Box::pin(async move {
        let provide = Some(Callback { id: 0, hook: Rc::new(()) });
        let read = |id| {
            let setup = RunSetup { id, ..in_mode(Persistence::Run, CHAT) };
            let input = words("second");
            Ok(NewRun { setup, input, input_id: None, branch: None, replace: None, provide, store: None })
        };
        let run = RunDriver::send(&session, true, read).await;
        keep.borrow_mut().replace(run);
    }));
    sent
}

#[test]
fn r60_a_question_that_cannot_be_sent_is_removed_or_reported_as_stored() {
    for (has_locks, is_down) in [(true, false), (false, false), (true, true), (false, true)] {
        let (world, data, faults) = (World::new(has_locks), MemoryStore::default(), Faults::default());
        let process = faults.process(&world, &data, 1);
        let session = world.run(process.session(SessionSettings::default()));
        let run = world.run(start(&session, in_mode(Persistence::Run, CHAT), "first")).unwrap();
        let sent = send_without_provider(&process, &session);
        world.pass(1_000);
        world.run(process.drive(&run, &echo));
        // The append that admits it succeeds, and its removal fails: once, or each time.
        faults.arm(Fault::Refused, (2, if is_down { 1_000 } else { 2 }));
        world.pass(60_000);
        let error = sent.take().expect("it is refused").err().unwrap();
        assert_eq!(error.code, if is_down { ErrorCode::StoreError } else { ErrorCode::CallbackFailed });
        assert_eq!((error.may_have_written(), run_ids(&session).len()), (is_down, usize::from(is_down)));
        assert_eq!(shown(&session).len(), usize::from(is_down), "{}", error.message);
    }
}

#[test]
fn r60_a_store_that_is_busy_is_asked_again_after_a_pause() {
    for has_locks in [true, false] {
        let (world, data, faults) = (World::new(has_locks), MemoryStore::default(), Faults::default());
        let process = faults.process(&world, &data, 1);
        let session = world.run(process.session(SessionSettings::default()));
        let run = world.run(start(&session, in_mode(Persistence::Run, CHAT), "first")).unwrap();
        let sent = send_soon(&process, &session, "second");
        world.pass(1_000);
        world.run(process.drive(&run, &echo));
        faults.arm(Fault::Busy, (1, u32::MAX));
        let until = world.now.get() + 10_000;
        // As many steps as a loop without pauses does at once.
        assert!(world.run_steps(world.sleep(10_000), 5_000).is_some(), "time passes");
        assert_eq!(world.now.get(), until);
        let asked = faults.appends.get().unwrap();
        assert!((10..200).contains(&asked), "{asked}");
        faults.disarm();
        world.pass(1_000);
        let second = sent.take().expect("it began").unwrap();
        assert_eq!(world.run(process.drive(&second, &echo)).status, RunStatus::Finished);
    }
}

#[test]
fn r60_a_begin_that_conflicts_each_time_ends_the_wait() {
    let (world, data, faults) = (World::new(true), MemoryStore::default(), Faults::default());
    let process = faults.process(&world, &data, 1);
    let session = world.run(process.session(SessionSettings::default()));
    let run = world.run(start(&session, in_mode(Persistence::Run, CHAT), "first")).unwrap();
    let sent = send_soon(&process, &session, "second");
    world.pass(1_000);
    world.run(process.drive(&run, &echo));
    faults.arm(Fault::Conflict, (1, 20));
    world.pass(60_000);
    let error = sent.take().expect("it is refused").err().unwrap();
    assert_eq!((error.code, may_send_again(&error)), (ErrorCode::StoreError, true), "{}", error.message);
    assert_eq!((run_ids(&session).len(), shown(&session).len()), (0, 0));
}

#[test]
fn r60_a_begin_that_comes_late_is_the_one_that_is_answered() {
    for has_locks in [true, false] {
        let (world, data, faults) = (World::new(has_locks), MemoryStore::default(), Faults::default());
        let process = faults.process(&world, &data, 1);
        let session = world.run(process.session(SessionSettings::default()));
        let run = world.run(start(&session, in_mode(Persistence::Run, CHAT), "first")).unwrap();
        let sent = send_soon(&process, &session, "second");
        world.pass(1_000);
        world.run(process.drive(&run, &echo));
        faults.arm(Fault::Late, (2, 2));
        world.pass(5_000);
        let second = sent.take().expect("it began").unwrap();
        assert_eq!(run_ids(&session), std::slice::from_ref(&second.id));
        assert_eq!(world.run(process.drive(&second, &echo)).status, RunStatus::Finished);
        assert_eq!(texts_in_the_end(&world, &data, &process), ["first", "re first", "second", "re second"]);
    }
}

#[test]
fn r60_a_question_that_is_removed_takes_a_begin_with_it_that_came_late() {
    for has_locks in [true, false] {
        let (world, data, faults) = (World::new(has_locks), MemoryStore::default(), Faults::default());
        let process = faults.process(&world, &data, 1);
        let session = world.run(process.session(SessionSettings::default()));
        let run = world.run(start(&session, in_mode(Persistence::Run, CHAT), "first")).unwrap();
        let sent = send_soon(&process, &session, "second");
        world.pass(1_000);
        world.run(process.drive(&run, &echo));
        faults.arm(Fault::Late, (2, 2));
        while session.live_run().is_none() {
            let _ = world.run_steps(std::future::pending::<()>(), 2);
        }
        // It is cancelled when the store has said that it does not answer, and the removal fails until the begin came.
        let live = session.live_run().unwrap();
        process.store.reads_fail.set(true);
        world.run(live.cancel()).unwrap();
        world.pass(5_000);
        process.store.reads_fail.set(false);
        world.pass(5_000);
        assert_eq!(sent.take().expect("it has ended").err().map(|error| error.code), Some(ErrorCode::Aborted));
        assert_eq!((records(&data, Table::Runs), shown(&session).len()), (0, 0));
    }
}

#[test]
fn r60_history_providers_are_asked_less_and_less_often_while_the_begin_of_a_question_fails() {
    let (world, data) = (World::new(true), MemoryStore::default());
    // After the first run's last append, each first one says whose turn it is, and each second one begins it.
    let appends = Rc::new(Cell::new(None::<u32>));
    let counted = appends.clone();
    let fault = move || {
        let number = counted.get()? + 1;
        counted.set(Some(number));
        (number >= 3 && number % 2 == 1).then_some(Fault::Refused)
    };
    let process = Rc::new(Process::with_faults(&world, &data, 1, Box::new(fault)));
    let session = world.run(process.session(SessionSettings::default()));
    let first = world.run(start(&session, in_mode(Persistence::Run, CHAT), "first")).unwrap();
    let (count, sent) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(None)));
    let (sender, provider, keep) = (session.clone(), CountingProvider(count.clone()), sent.clone());
    process.open.context.spawn(Box::pin(async move {
        let provide = Some(Callback { id: 0, hook: Rc::new(provider) });
        let read = |id| {
            let (setup, input) = (RunSetup { id, ..in_mode(Persistence::Run, CHAT) }, words("second"));
            Ok(NewRun { setup, input, input_id: None, branch: None, replace: None, provide, store: None })
        };
        keep.set(Some(RunDriver::send(&sender, true, read).await));
    }));
    world.pass(100);
    appends.set(Some(0));
    world.run(process.drive(&first, &echo));
    world.pass(400);
    assert_eq!(count.get(), 1);
    world.pass(200);
    assert_eq!(count.get(), 2, "the second attempt follows after half a second");
    world.pass(60_000);
    let asked = count.get();
    assert!((8..=14).contains(&asked), "{asked}");
    // It waits for no more than eight seconds when the store works again.
    appends.set(None);
    world.pass(8_100);
    let run = sent.take().expect("it has begun").unwrap();
    assert_eq!(count.get(), asked + 1);
    assert_eq!(world.run(process.drive(&run, &echo)).status, RunStatus::Finished);
    assert_eq!(texts(&session), ["first", "re first", "second", "re second"]);
}
