//! Questions that wait, and what other tabs, snapshots, branches and closed stores do to them (R60, R22).

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::conversations::{conversation, opened, owned};
#[cfg(not(target_arch = "wasm32"))]
use super::erasure::{KINDS, Service};
use super::queue::{send, shown, texts};
use super::scripted_host::*;
use super::stored_queue::{AFTER_LEASES, Sent, echo, finish_all, send_soon};
use super::virtual_host::{Process, SlowProvider, World};
use super::{in_mode, resume, run_ids, start};
use rethread::error::ErrorCode;
use rethread::replay::Callback;
use rethread::run::{Persistence, RunSetup, RunStatus};
use rethread::session::{
    NewRun, OpenSession, PendingState, ResumeRequest, RunDriver, SessionSettings, discard_run, fork, resume_snapshot,
};
use rethread::store::{Batch, Change, JournalChange, JournalStep, LogStore, MemoryStore, QueueTurn, Table};
use serde_json::Value;
use std::rc::Rc;

fn states(world: &World, session: &OpenSession) -> Vec<Value> {
    let pending: Value = serde_json::from_str(&world.run(session.pending_runs()).unwrap()).unwrap();
    pending.as_array().unwrap().iter().map(|run| run["state"].clone()).collect()
}

/// A question of the second of two processes waits for the run of the first one.
struct Waiting {
    world: Rc<World>,
    data: MemoryStore,
    both: [Process; 2],
    sessions: [Rc<OpenSession>; 2],
    first: Rc<RunDriver>,
    queued: String,
    sent: Sent,
}

fn waiting(has_locks: bool) -> Waiting {
    let (world, data) = (World::new(has_locks), MemoryStore::default());
    let both = [1, 2].map(|number| Process::new(&world, &data, number));
    let sessions = both.each_ref().map(|process| world.run(process.session(SessionSettings::default())));
    let first = world.run(start(&sessions[0], in_mode(Persistence::Run, CHAT), "first")).unwrap();
    let sent = send_soon(&both[1], &sessions[1], "second");
    world.pass(1_000);
    let queued = run_ids(&sessions[1]).pop().unwrap();
    Waiting { world, data, both, sessions, first, queued, sent }
}

#[test]
fn r60_a_question_that_was_answered_elsewhere_is_not_reported_as_discarded() {
    for ends in ["answered", "answered in a branch that is not shown", "discarded"] {
        let (world, data) = (World::new(false), MemoryStore::default());
        let both = [1, 2].map(|number| Process::new(&world, &data, number));
        let [one, two] = both.each_ref().map(|process| world.run(process.session(SessionSettings::default())));
        let before = world.run(start(&one, in_mode(Persistence::Run, CHAT), "before")).unwrap();
        world.run(both[0].drive(&before, &echo));
        let first = world.run(start(&one, in_mode(Persistence::Run, CHAT), "first")).unwrap();
        let former = two.clone();
        let mut sending = Box::pin(async move { send(&former, "second").await });
        assert!(world.run_steps(&mut sending, 200).is_none(), "it waits");
        let id = run_ids(&two).pop().unwrap();
        // The second process sleeps, and its lease runs out.
        world.kill(2);
        world.run(both[0].drive(&first, &echo));
        world.pass(AFTER_LEASES);
        world.run(one.refresh()).unwrap();
        if ends == "discarded" {
            world.run(discard_run(&one, &id, false)).unwrap();
        } else {
            finish_all(&world, &both[0], &one);
        }
        if ends == "answered in a branch that is not shown" {
            let after = two.log.borrow().history.messages()[1].id.clone();
            world.run(fork(&two, Some(&after))).unwrap();
            let log = two.log.borrow();
            assert!(log.history.messages().len() == 2 || log.head.run(&id).is_none());
        }
        let error = world.run(sending).err().unwrap();
        assert_eq!(error.code, ErrorCode::Conflict, "{ends}: {}", error.message);
        assert!(error.message.contains("taken the question over"), "{}", error.message);
    }
}

#[test]
fn r60_a_snapshot_of_a_run_that_did_not_begin_does_not_continue_its_question() {
    for has_locks in [true, false] {
        let Waiting { world, both, sessions: [one, two], first, queued, .. } = waiting(has_locks);
        let mut snapshot = {
            let mut borrows = one.borrow_for_step();
            first.machine.borrow().snapshot(&one.id, &borrows.run_context()).unwrap()
        };
        snapshot.run.clone_from(&queued);
        both[1].kill();
        world.pass(AFTER_LEASES);
        let setup = RunSetup { id: queued.clone(), ..in_mode(Persistence::Run, CHAT) };
        let request = || Ok(ResumeRequest { setup, persistence: None, handoffs: Vec::new() });
        let refused = world.run(resume_snapshot(&one, snapshot, request)).err().map(|error| error.code);
        assert_eq!(refused, Some(ErrorCode::WrongState));
        world.run(both[0].drive(&first, &echo));
        finish_all(&world, &both[0], &one);
        assert_eq!(texts(&one), ["first", "re first", "second", "re second"]);
        drop(two);
    }
}

#[test]
fn r22_r60_a_queued_send_and_a_run_with_a_slow_provider_are_one_at_a_time_in_a_conversation() {
    for has_locks in [true, false] {
        let (world, data) = (World::new(has_locks), MemoryStore::default());
        let both = [1, 2].map(|number| Process::new(&world, &data, number));
        let [one, two] = both.each_ref().map(|process| opened(&world, process, &conversation()));
        let sent = [Sent::default(), Sent::default()];
        for (at, (process, session)) in both.iter().zip([&one, &two]).enumerate() {
            let (keep, session) = (sent[at].clone(), session.clone());
            process.open.context.host.spawn(Box::pin(async move {
                let is_plain = at == 0;
                let provide = is_plain.then(|| Callback { id: 0, hook: Rc::new(SlowProvider(1_000)) });
                let read = |id| {
                    let (setup, input) = (RunSetup { id, ..owned(conversation()) }, words("question"));
                    Ok(NewRun { setup, input, input_id: None, branch: None, replace: None, provide, store: None })
                };
                let run = RunDriver::send(&session, !is_plain, read).await;
                keep.borrow_mut().replace(run);
            }));
            world.pass(100);
        }
        world.pass(5_000);
        let begun = sent.each_ref().map(|sent| sent.borrow().as_ref().is_some_and(Result::is_ok));
        // Without locks the first one that stores its begin goes on.
        assert_eq!(begun, if has_locks { [true, false] } else { [false, true] });
        let plain = sent[0].take().expect("it does not wait").err().map(|error| error.code);
        assert_eq!(plain, (!has_locks).then_some(ErrorCode::Busy));
    }
}

#[test]
fn r60_a_former_holder_discards_nothing_of_the_process_that_took_its_question_over() {
    for keep in [false, true] {
        let (world, data) = (World::new(false), MemoryStore::default());
        let both = [1, 2].map(|number| Process::new(&world, &data, number));
        let [one, two] = both.each_ref().map(|process| world.run(process.session(SessionSettings::default())));
        let first = world.run(start(&one, in_mode(Persistence::Run, CHAT), "first")).unwrap();
        let former = two.clone();
        let mut sending = Box::pin(async move { send(&former, "second").await });
        assert!(world.run_steps(&mut sending, 200).is_none(), "it waits");
        // The second process sleeps, and its lease runs out.
        world.kill(2);
        world.run(both[0].drive(&first, &echo));
        world.pass(AFTER_LEASES);
        let queued = run_ids(&one).pop().unwrap();
        let second = world.run(resume(&one, &queued, in_mode(Persistence::Run, CHAT))).unwrap();
        // It wakes up, and its page still shows the question.
        let discarded = world.run(discard_run(&two, &queued, keep)).err().map(|error| error.code);
        assert_eq!(discarded, Some(ErrorCode::Busy));
        assert_eq!(world.run(both[0].drive(&second, &echo)).status, RunStatus::Finished);
        assert_eq!(texts(&one), ["first", "re first", "second", "re second"]);
        drop(sending);
    }
}

#[test]
fn r60_a_question_that_is_admitted_after_the_last_look_is_before_a_later_one() {
    let Waiting { world, sessions: [one, two], first, queued, .. } = waiting(false);
    world.run(one.refresh()).unwrap();
    let seen: Vec<_> = one.log.borrow().head.runs.iter().filter(|run| run.id != first.id).cloned().collect();
    let journal = |run: &str, step| {
        let (run, lease_until) = (run.to_owned(), world.now.get() + 30_000);
        Some(JournalChange { run, epoch: 1, lease_until, lease_ended_by: None, step })
    };
    let admits =
        |session: &OpenSession| Change { journal: journal(&queued, JournalStep::Admit), ..session.new_change() };
    world.run(two.commit(admits(&two))).unwrap();
    let turn = |unheld| Some(QueueTurn { id: "later".into(), queued: None, unheld, refused: Rc::default() });
    let begins = |unheld| {
        let journal = journal("later", JournalStep::Begin(Vec::new()));
        Change { journal, turn: turn(unheld), ..one.new_change() }
    };
    // The first run counts as dead, too.
    let first = one.log.borrow().head.run(&first.id).cloned().unwrap();
    let change = begins(seen.into_iter().chain([first.clone()]).collect());
    let refused = change.turn.as_ref().unwrap().refused.clone();
    assert_eq!(world.run(one.commit(change)).err().map(|error| error.code), Some(ErrorCode::Busy));
    assert!(refused.get());
    let now = one.log.borrow().head.run(&queued).cloned().unwrap();
    world.run(one.commit(begins(vec![now, first]))).unwrap();
}

#[cfg(not(target_arch = "wasm32"))]
#[test]
fn r60_a_question_that_waits_is_taken_up_from_every_kind_of_store() {
    for kind in KINDS {
        let (world, service) = (World::new(false), Service::new(kind));
        let one = service.process(&world);
        let session = world.run(one.session(SessionSettings::default()));
        world.run(start(&session, in_mode(Persistence::Run, CHAT), "first")).unwrap();
        let sent = send_soon(&one, &session, "second");
        world.pass(2_000);
        assert!(sent.borrow().is_none(), "it waits");
        one.kill();
        world.pass(AFTER_LEASES);
        let next = service.process(&world);
        let session = world.run(next.session(SessionSettings::default()));
        finish_all(&world, &next, &session);
        assert_eq!(texts(&session), ["first", "re first", "second", "re second"], "{kind:?}");
        let last = service.process(&world);
        let session = world.run(last.session(SessionSettings::default()));
        assert_eq!((texts(&session).len(), run_ids(&session).len()), (4, 0), "{kind:?}");
    }
}

#[test]
fn r60_a_question_of_a_store_that_was_closed_can_be_taken_up_at_once() {
    let Waiting { world, data, both, first, .. } = waiting(false);
    world.run(both[0].drive(&first, &echo));
    // Another one waits for what the second process began.
    let session = world.run(both[1].session(SessionSettings::default()));
    send_soon(&both[1], &session, "third");
    world.pass(1_000);
    world.run(both[1].open.end_holds());
    both[1].kill();
    let next = Process::new(&world, &data, 3);
    let session = world.run(next.session(SessionSettings::default()));
    assert_eq!(states(&world, &session), ["interrupted", "queued"]);
    finish_all(&world, &next, &session);
    assert_eq!(texts(&session).len(), 6);
}

#[test]
fn r60_a_question_of_another_branch_is_discarded_while_a_run_is_under_way() {
    for has_locks in [true, false] {
        let (world, data) = (World::new(has_locks), MemoryStore::default());
        let both = [1, 2].map(|number| Process::new(&world, &data, number));
        let [one, two] = both.each_ref().map(|process| world.run(process.session(SessionSettings::default())));
        let first = world.run(start(&one, in_mode(Persistence::Run, CHAT), "first")).unwrap();
        world.run(both[0].drive(&first, &echo));
        world.run(two.refresh()).unwrap();
        // A branch of the second process.
        let question = two.log.borrow().history.messages()[0].id.clone();
        let replacing = async {
            let read = |id| {
                let setup = RunSetup { id, ..in_mode(Persistence::Run, CHAT) };
                let replace = Some(question.clone());
                Ok(NewRun {
                    setup,
                    input: words("edited"),
                    input_id: None,
                    branch: None,
                    replace,
                    provide: None,
                    store: None,
                })
            };
            RunDriver::send(&two, false, read).await
        };
        let edited = world.run(replacing).unwrap();
        world.run(both[1].drive(&edited, &echo));
        let live = world.run(start(&one, in_mode(Persistence::Run, CHAT), "live")).unwrap();
        send_soon(&both[1], &two, "of the branch");
        world.pass(1_000);
        both[1].kill();
        world.pass(AFTER_LEASES);
        world.run(one.refresh()).unwrap();
        let queued = run_ids(&one).into_iter().find(|id| *id != live.id).unwrap();
        world.run(discard_run(&one, &queued, false)).unwrap();
        assert_eq!(run_ids(&one), std::slice::from_ref(&live.id));
    }
}

#[test]
fn r60_a_question_is_not_shown_twice_while_its_run_begins() {
    for has_locks in [true, false] {
        let Waiting { world, both, sessions: [_, two], first, queued, sent, .. } = waiting(has_locks);
        world.run(both[0].drive(&first, &echo));
        let mut steps_of_begin = 0;
        while sent.borrow().is_none() {
            let _ = world.run_steps(std::future::pending::<()>(), 2);
            let is_live = two.live_run().is_some_and(|run| run.id() == queued);
            assert_eq!(shown(&two).len(), usize::from(!is_live));
            steps_of_begin += usize::from(is_live);
        }
        assert!(steps_of_begin > 1, "it is looked at while it begins");
    }
}

#[cfg(not(target_arch = "wasm32"))]
#[test]
fn r60_a_question_that_waits_is_live_in_a_store_of_memory() {
    let world = World::new(false);
    let process = Process::over(&world, Rc::new(MemoryStore::default()), 1);
    let session = world.run(process.session(SessionSettings::default()));
    world.run(start(&session, in_mode(Persistence::Run, CHAT), "first")).unwrap();
    send_soon(&process, &session, "second");
    world.pass(1_000);
    assert_eq!(states(&world, &session), ["live", "live"]);
}

#[test]
fn r60_a_rebuilt_head_has_a_question_that_waits_and_one_that_begun_once() {
    for begins in [false, true] {
        let Waiting { world, data, both, first, queued, .. } = waiting(true);
        let journal = block_on(data.read("s", rethread::store::Query::all(Table::Runs))).unwrap();
        if begins {
            world.run(both[0].drive(&first, &echo));
            world.pass(1_000);
            // A store that removes records after the commit did not come to that.
            let entry = journal.into_iter().next_back().unwrap();
            let head = block_on(data.head("s")).unwrap().unwrap();
            let batch = Batch { head: head.value.clone(), put: vec![entry], ..Batch::default() };
            block_on(data.append("s", head.revision, batch, "left")).unwrap();
        }
        both[0].kill();
        both[1].kill();
        let head = block_on(data.head("s")).unwrap().unwrap();
        let mut damaged = head.value.to_vec();
        let middle = damaged.len() / 2;
        damaged[middle] ^= 0x10;
        let batch = Batch { head: damaged.into(), ..Batch::default() };
        block_on(data.append("s", head.revision, batch, "damage")).unwrap();
        world.pass(AFTER_LEASES);
        let next = Process::new(&world, &data, 3);
        let session = world.run(next.session(SessionSettings::default()));
        assert_eq!(run_ids(&session).iter().filter(|id| **id == queued).count(), 1);
        let state = if begins { PendingState::Interrupted } else { PendingState::Queued };
        assert_eq!(session.pending.borrow().last().unwrap().state, state);
        finish_all(&world, &next, &session);
        assert_eq!(texts(&session), ["first", "re first", "second", "re second"]);
    }
}
