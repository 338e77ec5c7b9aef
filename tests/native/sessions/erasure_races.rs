//! Erasures that meet other writers (R59).

use super::branches::replace;
use super::erasure::{KINDS, Kind, SECRET, Service, append, ids, turn};
use super::in_mode;
use super::scripted_host::*;
use super::virtual_host::{Process, World};
use rethread::error::{Error, ErrorCode};
use rethread::json::Json;
use rethread::run::Persistence;
use rethread::session::{AppendOrigin, LocalFuture, OpenSession, SessionSettings, clear, delete_messages};
use rethread::session_head::UnfinishedErasure;
use serde_json::json;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

/// Two processes with one session, whose second turn has the secret.
fn shared(world: &Rc<World>, service: &Service) -> [(Process, Rc<OpenSession>); 2] {
    let both = [service.process(world), service.process(world)];
    let both = both.map(|process| {
        let session = world.run(process.session(SessionSettings::default()));
        (process, session)
    });
    for at in 0..3 {
        append(world, &both[0].1, &turn(at, if at == 1 { "SECRET" } else { "plain" }));
    }
    world.run(both[1].1.refresh()).unwrap();
    both
}

fn secret_ids(session: &OpenSession) -> Vec<String> {
    ids(session)[3..5].to_vec()
}

#[test]
fn r59_an_erasure_that_meets_an_append_erases_all_the_same_and_keeps_the_append() {
    for kind in KINDS {
        for (erasing, steps) in (0..120).map(|step| (step % 2, step / 2)) {
            let (world, service) = (World::new(false), Service::new(kind));
            let both = shared(&world, &service);
            let ((eraser, session), (_, writer)) = (&both[erasing], &both[1 - erasing]);
            let (erased, targets) = (Rc::new(RefCell::new(None)), secret_ids(session));
            let (keep, own) = (erased.clone(), session.clone());
            let mut erase: LocalFuture<'static, ()> = Box::pin(async move {
                let outcome = delete_messages(&own, &targets).await;
                keep.borrow_mut().replace(outcome);
            });
            if world.run_steps(&mut erase, steps).is_none() {
                eraser.open.context.host.spawn(erase);
            }
            let writer = writer.clone();
            let other = writer.clone();
            eraser.open.context.host.spawn(Box::pin(async move {
                let origin = other.origin(AppendOrigin::default());
                let body = Json::parse(&json!([{ "role": "user", "content": "meanwhile" }]).to_string()).unwrap();
                other.append(&body, Some(CHAT), (&origin, None)).await.unwrap();
            }));
            world.pass(60_000);
            let place = format!("{kind:?}, {erasing} erases, {steps} steps before");
            erased.take().expect("it ends").unwrap_or_else(|error: Error| panic!("{place}: {error:?}"));
            assert_eq!(service.places_of(SECRET), Vec::<String>::new(), "{place}");
            let opened = world.run(service.process(&world).session(SessionSettings::default()));
            let texts = service.places_of(b"meanwhile");
            assert!(!texts.is_empty(), "{place}");
            for session in [session, &writer, &opened] {
                world.run(session.refresh()).unwrap();
                // A store without commits may show what the writer has appended as the other side of a conflict.
                let shown = ids(session).len();
                assert!(shown == 9 - 2 + 1 || kind == Kind::WriteOnce && shown == 9 - 2, "{place}: {shown}");
            }
        }
    }
}

#[test]
fn r59_a_branch_that_was_to_begin_when_messages_were_erased_is_not_written_to_another() {
    for kind in [Kind::KeyValue, Kind::WriteOnce] {
        let (mut begun, mut refused) = (0, 0);
        for steps in 0..60 {
            let (world, service) = (World::new(false), Service::new(kind));
            let [(process, one), (_, two)] = shared(&world, &service);
            let (all, targets) = (ids(&two), secret_ids(&one));
            let outcome = Rc::new(RefCell::new(None));
            let (keep, session) = (outcome.clone(), two.clone());
            let mut edit: LocalFuture<'static, ()> = Box::pin(async move {
                let setup = in_mode(Persistence::Run, CHAT);
                let run = replace(&session, setup, &all[6], Some("edited")).await;
                keep.borrow_mut().replace(run);
            });
            if world.run_steps(&mut edit, steps).is_none() {
                process.open.context.host.spawn(edit);
            }
            // Refused if the run has begun.
            let erased = world.run(delete_messages(&one, &targets));
            world.pass(60_000);
            let place = format!("{kind:?}, {steps} steps before");
            let (branch, run) = (two.log.borrow().is_unborn(), outcome.take().expect("it ends"));
            let lost = run.as_ref().ok().and_then(|run| run.machine.borrow().outcome().error);
            match (&run, erased) {
                (Ok(_), Ok(_)) if lost.as_ref().is_some_and(|error| error.code == ErrorCode::Conflict) => refused += 1,
                (Ok(_), _) => {
                    assert!(lost.is_none(), "{place}: {lost:?}");
                    assert!(branch, "{place}: a run that replaces begins in a branch of its own");
                    begun += 1;
                }
                (Err(error), Ok(_)) if error.code == ErrorCode::Conflict => refused += 1,
                (Err(error), erased) => panic!("{place}: {error:?}, {erased:?}"),
            }
        }
        assert!(begun > 5 && refused > 0, "{kind:?}: {begun} begun, {refused} refused");
    }
}

#[test]
fn r59_a_branch_after_an_erasure_continues_no_chain_of_what_was_erased() {
    let (world, service) = (World::new(false), Service::new(Kind::Memory));
    let [(_, session), _] = shared(&world, &service);
    let all = ids(&session);
    world.run(delete_messages(&session, &[all[0].clone()])).unwrap();
    world.run(session.show_replacing(&all[6], true)).unwrap();
    let log = session.log.borrow();
    assert_eq!(log.history.chain_cut(), log.head.chain_cut);
    assert!(log.history.chain_cut() > 0);
}

#[test]
fn r59_what_a_cut_off_erasure_left_is_erased_after_the_session_was_cleared() {
    let mut cut_off = 0;
    for steps in 0..200 {
        let (world, service) = (World::new(false), Service::new(Kind::WriteOnce));
        let [(eraser, one), (_, two)] = shared(&world, &service);
        let targets = secret_ids(&one);
        let mut erase: LocalFuture<'_, ()> = Box::pin(async { drop(delete_messages(&one, &targets).await) });
        if world.run_steps(&mut erase, steps).is_some() {
            break;
        }
        drop(erase);
        eraser.kill();
        world.run(two.refresh()).unwrap();
        if two.log.borrow().head.erasing.is_finished() {
            continue;
        }
        cut_off += 1;
        world.run(clear(&two)).unwrap();
        world.run(service.process(&world).session(SessionSettings::default()));
        world.pass(1_000);
        assert_eq!(service.places_of(SECRET), Vec::<String>::new(), "killed after {steps} steps");
    }
    assert!(cut_off > 3, "{cut_off}");
}

#[test]
fn r59_what_two_erasures_left_is_kept_for_both() {
    let ids = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
    let mut left =
        UnfinishedErasure { pending: ids(&["a"]), messages: ids(&["b"]), invocations: Vec::new(), first_seq: 7 };
    left.add(UnfinishedErasure {
        pending: ids(&["a", "c"]),
        messages: ids(&["d"]),
        invocations: ids(&["e"]),
        first_seq: 3,
    });
    assert_eq!((left.pending.clone(), left.messages.clone(), left.first_seq), (ids(&["a", "c"]), ids(&["b", "d"]), 3));
    left.remove(&ids(&["c", "d", "e"]).into_iter().collect::<BTreeSet<_>>());
    assert_eq!((left.pending.clone(), left.messages.clone(), left.is_finished()), (ids(&["a"]), ids(&["b"]), false));
    left.remove(&ids(&["a", "b"]).into_iter().collect::<BTreeSet<_>>());
    assert_eq!(left, UnfinishedErasure::default());
}
