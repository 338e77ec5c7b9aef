//! Kills at every point of a run, and the owner that comes after.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::scripted_host::*;
use super::{calls_in, reopened, roles};
use rethread::error::ErrorCode;
use rethread::message::{Dialect, Role};
use rethread::run::{EffectReply, OnInterrupted, RunInput, RunStatus, RunWriter, ToolSettings, change_for};
use rethread::store::{LogStore, MemoryStore, Table, commit, open_session, read_journal};
use rethread::tool::InvocationStatus;

/// What a killed host had acknowledged, as its journal has it, in counts.
struct Before {
    asked: usize,
    ran: Vec<(String, String, u32)>,
}

/// Drives a new run until `writes` are written; none when it is over before.
fn until_killed(store: &MemoryStore, dialect: Dialect, stream: bool, writes: usize) -> Option<Before> {
    let mut host = Host::open(store, "s", "first");
    host.start(setup("run", dialect, stream), "Go").unwrap();
    host.writes_left = Some(writes);
    let over = host.drive(three_tools).is_some();
    (!over).then(|| Before { asked: host.asked.len(), ran: host.ran.clone() })
}

fn check_end(host: &Host<'_>, interrupted: &[String], kill: usize) {
    assert_eq!(roles(host), [Role::User, Role::Assistant, Role::Assistant, Role::Assistant], "kill {kill}");
    let calls = calls_in(host);
    assert_eq!(
        calls.iter().map(|(id, round, place, _)| (id.as_str(), *round, *place)).collect::<Vec<_>>(),
        [("call_a", 0, 0), ("call_b", 0, 1), ("call_c", 1, 0)]
    );
    for (id, .., status) in calls {
        let want = if interrupted.contains(&id) { InvocationStatus::Interrupted } else { InvocationStatus::Ok };
        assert_eq!(status, want, "kill {kill} {id}");
    }
    assert!(host.pending().is_empty());
    assert!(host.records(Table::Runs).is_empty());
    assert_eq!(host.records(Table::Log).len(), 1);
    let mut reader = reopened(host);
    reader.render(CHAT);
    reader.render(CLAUDE);
}

#[test]
#[expect(clippy::too_many_lines, reason = "one scenario, read from top to bottom")]
fn r18_killed_after_any_write_it_goes_on_where_it_was() {
    for (dialect, stream) in super::WAYS {
        for rerun in [false, true] {
            let mut kills = 0;
            for writes in 0.. {
                let store = MemoryStore::default();
                let Some(before) = until_killed(&store, dialect, stream, writes) else { break };
                kills += 1;
                let mut host = Host::open(&store, "s", "second");
                assert!(host.log.borrow().history.messages().is_empty(), "half a turn at {writes}");
                if writes == 0 {
                    assert!(host.pending().is_empty());
                    continue;
                }
                let mut setup = setup("run", dialect, stream);
                if rerun {
                    for name in ["look", "find"] {
                        setup.tool_settings.insert(
                            name.into(),
                            ToolSettings { on_interrupted: OnInterrupted::Rerun, ..ToolSettings::default() },
                        );
                    }
                }
                let entry = host.pending()[0].clone();
                assert_eq!((entry.id.as_str(), entry.epoch, entry.failed.is_some()), ("run", 0, false));
                // Who had an answer journalled is not asked again.
                let journal = block_on(read_journal(&store, "s", &entry)).unwrap();
                let stored = rethread::run::StoredRun::read(&journal, SEED).unwrap();
                let answered: Vec<_> = stored
                    .live
                    .invocations()
                    .iter()
                    .filter(|call| call.result.is_some())
                    .map(|call| call.id.clone())
                    .collect();
                let started = stored.calls.attempts.clone();
                assert!(before.asked <= stored.model_calls as usize + 1);
                assert!(
                    before.ran.iter().all(|(_, id, _)| started.get(id).is_some()),
                    "a tool ran before its start was written"
                );

                host.resume(setup).unwrap();
                let outcome = host.drive(three_tools).unwrap();
                assert_eq!(
                    (outcome.status, outcome.model_calls),
                    (RunStatus::Finished, 3),
                    "kill {writes}: {:?}",
                    outcome.error
                );
                assert_eq!(
                    host.asked.len(),
                    3 - stored.model_calls as usize,
                    "kill {writes}: a model call was repeated"
                );
                for (call, id, attempt) in &host.ran {
                    assert!(!answered.contains(id), "kill {writes}: {call} ran again");
                    assert_eq!(*attempt, started.get(id).copied().unwrap_or(0) + 1);
                    assert!(rerun || started.get(id).is_none(), "kill {writes}: {call} may have run");
                }
                let cut: Vec<_> = stored
                    .live
                    .invocations()
                    .iter()
                    .filter(|call| !rerun && call.result.is_none() && started.get(&call.id).is_some())
                    .map(|call| call.call_id.clone())
                    .collect();
                check_end(&host, &cut, writes);
            }
            // Begin, three answers (the last is the append), three starts, three results.
            assert_eq!(kills, 10, "{dialect:?} {stream}");
        }
    }
}

#[test]
fn r18_a_run_that_is_killed_twice_can_be_resumed() {
    for first in 1..9 {
        for second in 0..6 {
            let store = MemoryStore::default();
            until_killed(&store, CHAT, true, first).unwrap();
            let mut host = Host::open(&store, "s", "second");
            host.resume(setup("run", CHAT, true)).unwrap();
            host.writes_left = Some(second);
            let mut over = host.drive(three_tools).is_some();
            while !over {
                host = Host::open(&store, "s", "third");
                if host.pending().is_empty() {
                    break;
                }
                host.resume(setup("run", CHAT, true)).unwrap();
                over = host.drive(three_tools).is_some();
            }
            let host = Host::open(&store, "s", "last");
            let cut: Vec<_> = calls_in(&host)
                .into_iter()
                .filter(|call| call.3 == InvocationStatus::Interrupted)
                .map(|call| call.0)
                .collect();
            check_end(&host, &cut, first * 100 + second);
        }
    }
}

#[test]
fn r18_a_former_owner_writes_nothing_more() {
    for writes in 1..9 {
        let store = MemoryStore::default();
        let mut old = Host::open(&store, "s", "old");
        old.start(setup("run", CHAT, false), "Go").unwrap();
        old.writes_left = Some(writes);
        assert!(old.drive(three_tools).is_none());
        let mut new = Host::open(&store, "s", "new");
        new.resume(setup("run", CHAT, false)).unwrap();
        // The old one wakes up: its next write finds that it is the owner no longer.
        let before = old.ran.len();
        old.writes_left = None;
        let outcome = old.drive(three_tools).expect("it ends");
        assert_eq!(outcome.status, RunStatus::Failed);
        assert_eq!(outcome.error.unwrap().code, ErrorCode::Conflict);
        assert!(!outcome.saved);
        assert!(old.ran.len() <= before + 1, "it went on after the conflict");
        assert!(old.run.as_ref().unwrap().effects().is_empty());
        assert_eq!(new.drive(three_tools).unwrap().status, RunStatus::Finished);
        assert_eq!(roles(&new).len(), 4);
    }
}

#[test]
fn r18_only_one_of_two_takes_over_a_run() {
    let store = MemoryStore::default();
    until_killed(&store, CHAT, false, 3).unwrap();
    let (one, two) = (Host::open(&store, "s", "one"), Host::open(&store, "s", "two"));
    let entry = one.pending()[0].clone();
    one.take(&entry).unwrap();
    assert_eq!(two.take(&entry).unwrap_err().code, ErrorCode::Conflict);
}

#[test]
fn r18_a_former_owner_can_neither_append_nor_discard() {
    let store = MemoryStore::default();
    let mut old = Host::open(&store, "s", "old");
    old.start(setup("run", CHAT, false), "Go").unwrap();
    assert!(old.drive(|_| Answer::Hang).is_none());
    let mut new = Host::open(&store, "s", "new");
    new.resume(setup("run", CHAT, false)).unwrap();
    assert_eq!(old.cancel().unwrap().status, RunStatus::Cancelled);
    assert_eq!(Host::open(&store, "s", "x").pending().len(), 1, "the new owner's journal is gone");
    assert_eq!(new.drive(three_tools).unwrap().status, RunStatus::Finished);
}

#[test]
fn r18_a_failed_run_stays_pending_and_can_be_resumed() {
    for (dialect, stream) in super::WAYS {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let mut asked = 0;
        let outcome = host.ask(setup("run", dialect, stream), "Go", |body| {
            asked += 1;
            if asked == 2 {
                Answer::Status(400, vec![], r#"{"error":{"message":"no"}}"#.into())
            } else {
                three_tools(body)
            }
        });
        assert_eq!((outcome.status, outcome.saved), (RunStatus::Failed, false));
        assert!(host.log.borrow().history.messages().is_empty());
        let mut host = Host::open(&store, "s", "again");
        assert!(host.pending()[0].failed.is_some());
        let journal = block_on(read_journal(&store, "s", &host.pending()[0])).unwrap();
        let stored = rethread::run::StoredRun::read(&journal, SEED).unwrap();
        assert_eq!(stored.failed.unwrap().0, "model_error");
        host.resume(setup("run", dialect, stream)).unwrap();
        assert!(host.pending()[0].failed.is_none());
        assert_eq!(host.drive(three_tools).unwrap().status, RunStatus::Finished);
        assert_eq!((host.asked.len(), host.ran.len()), (2, 1));
        check_end(&host, &[], 0);
    }
}

#[test]
fn r18_a_journal_with_a_missing_entry_is_not_resumed() {
    let store = MemoryStore::default();
    until_killed(&store, CHAT, false, 4).unwrap();
    let host = Host::open(&store, "s", "h");
    let entry = host.pending()[0].clone();
    let journal = host.records(Table::Runs);
    let mut bytes = block_on(read_journal(&store, "s", &entry)).unwrap();
    let head = block_on(store.head("s")).unwrap().unwrap();
    let batch = rethread::store::Batch {
        head: head.value,
        remove: vec![(Table::Runs, journal[2].key)],
        ..rethread::store::Batch::default()
    };
    block_on(store.append("s", head.revision, batch, "tear")).unwrap();
    assert_eq!(block_on(read_journal(&store, "s", &entry)).unwrap_err().code, ErrorCode::CorruptRecord);
    let mut flipped = bytes[1].to_vec();
    flipped[9] ^= 1;
    bytes[1] = flipped.into();
    assert_eq!(rethread::run::StoredRun::read(&bytes, SEED).unwrap_err().code, ErrorCode::CorruptRecord);
    assert_eq!(rethread::run::StoredRun::read(&[], SEED).unwrap_err().code, ErrorCode::CorruptRecord);
    assert_eq!(rethread::run::StoredRun::read(&bytes[2..], SEED).unwrap_err().code, ErrorCode::CorruptRecord);
}

#[test]
fn r18_a_duplicate_journal_entry_counts_once() {
    let store = MemoryStore::default();
    until_killed(&store, CHAT, false, 5).unwrap();
    let host = Host::open(&store, "s", "h");
    let bytes = block_on(read_journal(&store, "s", &host.pending()[0])).unwrap();
    let once = rethread::run::StoredRun::read(&bytes, SEED).unwrap();
    let twice = rethread::run::StoredRun::read(
        &bytes.iter().flat_map(|entry| [entry.clone(), entry.clone()]).collect::<Vec<_>>(),
        SEED,
    )
    .unwrap();
    assert_eq!(
        (once.model_calls, once.usage, once.live.messages(), once.live.invocations()),
        (twice.model_calls, twice.usage, twice.live.messages(), twice.live.invocations())
    );
}

#[test]
fn r18_a_late_append_of_the_former_owner_is_applied_once() {
    // The append's reply is lost and the host dies: the run is in the log, its journal is gone, nothing is pending.
    let data = MemoryStore::default();
    let spy = super::spy_store::Spy::new(&data);
    let mut host = Host::open(&spy, "s", "h");
    host.start(setup("run", CHAT, false), "Go").unwrap();
    host.writes_left = Some(9);
    assert!(host.drive(three_tools).is_none());
    spy.faults.borrow_mut().push(Some(super::spy_store::Fault::LosesReply));
    host.writes_left = None;
    assert!(host.drive(three_tools).is_none());
    assert!(host.run.as_ref().unwrap().has_unsaved());
    assert!(Host::open(&data, "s", "x").pending().is_empty());
    // Told by another tab that something changed, it reads its own turn; saving again doubles nothing.
    block_on(rethread::store::refresh(&spy, &host.log)).unwrap();
    host.handle(RunInput::RetrySave).unwrap();
    host.write();
    let outcome = host.run.as_ref().unwrap().outcome();
    assert_eq!((outcome.status, outcome.saved), (RunStatus::Finished, true), "{:?}", outcome.error);
    check_end(&host, &[], 9);
}

#[test]
fn r58_an_answer_that_cannot_be_stored_is_kept_for_save() {
    use super::spy_store::{Fault, Spy};
    // Each write in turn fails once, with and without having been written.
    for fault in [Fault::Refuses(ErrorCode::QuotaExceeded), Fault::LosesReply] {
        for at in 1..10 {
            let data = MemoryStore::default();
            let spy = Spy::new(&data);
            let mut host = Host::open(&spy, "s", "h");
            *spy.faults.borrow_mut() = (0..at).map(|_| None).chain([Some(fault.clone())]).collect();
            host.start(setup("run", CHAT, false), "Go").unwrap();
            let mut outcome = host.drive(three_tools);
            if outcome.is_none() {
                assert!(host.run.as_ref().unwrap().has_unsaved(), "write {at} stands still");
                host.handle(RunInput::RetrySave).unwrap();
                outcome = host.drive(three_tools);
            }
            let outcome = outcome.unwrap_or_else(|| panic!("write {at} stands still after `save`"));
            if outcome.status == RunStatus::Failed {
                // A start that was not written: the tool never ran, and the run can be resumed.
                let ran = host.ran.clone();
                host = Host::open(&data, "s", "h2");
                host.resume(setup("run", CHAT, false)).unwrap();
                assert_eq!(host.drive(three_tools).unwrap().status, RunStatus::Finished);
                assert!(
                    host.ran.iter().all(|(_, id, _)| ran.iter().all(|(_, own, _)| own != id)),
                    "write {at}: a tool ran twice"
                );
                let cut: Vec<_> = calls_in(&host)
                    .into_iter()
                    .filter(|call| call.3 == InvocationStatus::Interrupted)
                    .map(|call| call.0)
                    .collect();
                assert!(cut.is_empty() || fault == Fault::LosesReply);
                check_end(&host, &cut, at);
            } else {
                assert_eq!(
                    (outcome.status, outcome.saved),
                    (RunStatus::Finished, true),
                    "write {at}: {:?}",
                    outcome.error
                );
                check_end(&host, &[], at);
            }
        }
    }
}

#[test]
fn r58_two_results_that_could_not_be_stored_are_both_kept() {
    use super::spy_store::{Fault, Spy};
    let data = MemoryStore::default();
    let spy = Spy::new(&data);
    let mut host = Host::open(&spy, "s", "h");
    host.start(setup("run", CHAT, false), "Go").unwrap();
    host.writes_left = Some(2);
    assert!(host.drive(three_tools).is_none());
    host.writes_left = None;
    host.write();
    let effects: Vec<_> = host.run.as_ref().unwrap().effects().iter().map(|effect| effect.id.clone()).collect();
    for effect in &effects {
        host.reply(effect, EffectReply::Started).unwrap();
    }
    host.write();
    *spy.faults.borrow_mut() =
        vec![Some(Fault::Refuses(ErrorCode::QuotaExceeded)), Some(Fault::Refuses(ErrorCode::QuotaExceeded))];
    for effect in &effects {
        host.reply(
            effect,
            EffectReply::ToolResult { content: rethread::json::Json::parse("1").unwrap(), is_error: false },
        )
        .unwrap();
    }
    host.write();
    host.handle(RunInput::RetrySave).unwrap();
    assert_eq!(host.drive(three_tools).unwrap().status, RunStatus::Finished);
    check_end(&host, &[], 0);
}

#[test]
fn r58_an_answer_that_cannot_be_stored_can_be_discarded() {
    use super::spy_store::{Fault, Spy};
    let data = MemoryStore::default();
    let spy = Spy::new(&data);
    let mut host = Host::open(&spy, "s", "h");
    *spy.faults.borrow_mut() = vec![None, Some(Fault::Refuses(ErrorCode::QuotaExceeded))];
    host.start(setup("run", CHAT, false), "Go").unwrap();
    assert!(host.drive(|_| Answer::Say(text("Paid for."))).is_none());
    assert!(host.events.iter().any(
        |event| matches!(event, rethread::run::RunEvent::SaveFailed { error } if error.code == ErrorCode::QuotaExceeded)
    ));
    let outcome = host.cancel().unwrap();
    assert_eq!((outcome.status, outcome.saved), (RunStatus::Cancelled, false));
}

fn writer(run: &'static str, epoch: u32) -> RunWriter<'static> {
    RunWriter { run, name: "by hand", epoch, now: 1, lease_until: 2 }
}

#[test]
fn r15_the_log_rejects_a_write_of_another_epoch() {
    let store = MemoryStore::default();
    until_killed(&store, CHAT, false, 2).unwrap();
    let log = std::cell::RefCell::new(block_on(open_session(&store, "s", SEED, 0)).unwrap());
    let save = rethread::run::Save {
        id: 77,
        kind: rethread::run::SaveKind::Append(Vec::new()),
        sources: None,
        approvals: 0,
        owner: None,
        last_request: None,
        has_dropped: false,
        has_async_result: false,
    };
    for epoch in [1, 2, 99] {
        let change = change_for(&save, &writer("run", epoch)).unwrap();
        assert_eq!(block_on(commit(&store, &log, &change)).unwrap_err().code, ErrorCode::Conflict);
    }
    let change = change_for(&save, &writer("nobody", 0)).unwrap();
    assert_eq!(block_on(commit(&store, &log, &change)).unwrap_err().code, ErrorCode::Conflict);
    let change = change_for(&save, &writer("run", 0)).unwrap();
    block_on(commit(&store, &log, &change)).unwrap();
    assert!(log.borrow().head.runs.is_empty());
    assert_eq!(log.borrow().head.history_revision, 0);
}

#[test]
fn r18_the_next_effect_is_offered_after_the_save() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    host.start(setup("run", CHAT, false), "Go").unwrap();
    let effects = |host: &Host<'_>| host.run.as_ref().unwrap().effects().into_iter().cloned().collect::<Vec<_>>();
    let answer = |host: &mut Host<'_>, say: Say| {
        let effect = effects(host)[0].id.clone();
        host.reply(&effect, EffectReply::Response { status: 200, headers: Vec::new(), body: say.body(CHAT) }).unwrap();
    };
    assert!(effects(&host).is_empty(), "asked before the run's beginning is written");
    host.write();
    answer(&mut host, calls(&[("a", "look", "{}"), ("b", "find", "{}"), ("c", "nothing", "{}")]));
    assert!(effects(&host).is_empty(), "tools are offered before the answer is written");
    host.write();
    let tools = effects(&host);
    assert_eq!(tools.len(), 2);
    for tool in &tools {
        host.reply(&tool.id, EffectReply::Started).unwrap();
        host.reply(
            &tool.id,
            EffectReply::ToolResult { content: rethread::json::Json::parse("1").unwrap(), is_error: false },
        )
        .unwrap();
    }
    // Four writes are under way: the model is asked after the last of them, and they come in their order.
    let mut before = 0;
    for left in (0..4).rev() {
        assert!(effects(&host).is_empty(), "the model is asked while {left} writes are missing");
        let save = host.run.as_mut().unwrap().take_save().unwrap();
        assert!(save.id > before);
        before = save.id;
        let change = change_for(&save, &writer("run", 0)).unwrap();
        let outcome = block_on(commit(&store, &host.log, &change)).map(|committed| committed.revision);
        host.handle(RunInput::Saved { save: save.id, outcome }).unwrap();
    }
    assert_eq!(effects(&host).len(), 1);
    answer(&mut host, text("Done."));
    assert_eq!(host.run.as_ref().unwrap().status(), RunStatus::Running, "over before it is written");
    host.write();
    assert_eq!(host.run.as_ref().unwrap().status(), RunStatus::Finished);
}

#[test]
fn r18_a_tool_whose_start_cannot_be_saved_does_not_run() {
    use super::spy_store::{Fault, Spy};
    for code in [ErrorCode::QuotaExceeded, ErrorCode::StoreError, ErrorCode::Conflict] {
        let data = MemoryStore::default();
        let spy = Spy::new(&data);
        let mut host = Host::open(&spy, "s", "h");
        *spy.faults.borrow_mut() = vec![None, None, Some(Fault::Refuses(code))];
        host.start(setup("run", CHAT, false), "Go").unwrap();
        let outcome = host.drive(three_tools).expect("it ends");
        assert_eq!((outcome.status, outcome.error.unwrap().code), (RunStatus::Failed, code));
        assert!(host.ran.is_empty());
        assert!(host.run.as_ref().unwrap().effects().is_empty());
    }
}
