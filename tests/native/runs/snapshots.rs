//! Runs that are resumed from a snapshot: on the same store, on another one, at every step and in every mode (R28).

use super::*;
use bytes::Bytes;
use rethread::clock::Clock;
use rethread::error::Error;
use rethread::id::IdSource;
use rethread::json::Json;
use rethread::run::{
    EffectKind, EffectReply, PersistReply, Persistence, RetryPolicy, Run, RunContext, RunInput, RunSetup, RunSnapshot,
    RunWriter, SnapshotOrigin, StoredRun,
};
use rethread::store::{JournalChange, JournalStep, read_journal};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

pub(super) const MODES: [Persistence; 3] = [Persistence::Run, Persistence::Call, Persistence::Result];

pub(super) fn in_mode(persistence: Persistence) -> RunSetup {
    let retry = RetryPolicy { attempts: 1_000, backoff_ms: 100, approve_unsafe_replay: None };
    RunSetup { persistence, retry, ..setup("run", CHAT, true) }
}

pub(super) fn snapshot(host: &mut Host<'_>) -> Result<Bytes, Error> {
    let log = host.log.borrow();
    let now = host.clock.now();
    let context = RunContext {
        history: &log.history,
        renderer: &mut host.renderer,
        now,
        ids: &host.ids,
        seed: SEED,
        refused: &[],
        last_request: None,
        branch: 0,
    };
    let run = host.run.as_ref().unwrap();
    let mut snapshot = run.snapshot(&log.head.id, &context)?;
    let number = log.head.run(run.id()).map(|entry| entry.number);
    snapshot.origin = Some(SnapshotOrigin::new(&log.head, number));
    Ok(snapshot.seal())
}

fn without_origin(bytes: &Bytes) -> RunSnapshot {
    RunSnapshot { origin: None, ..RunSnapshot::open(bytes, "s").unwrap() }
}

fn commit_change(host: &Host<'_>, change: &Change) -> Result<(), Error> {
    block_on(commit(host.store, &host.log, change)).map(drop)
}

/// Resumes a snapshot as the binding does.
pub(super) fn resume(host: &mut Host<'_>, bytes: &Bytes, setup: RunSetup) -> Result<(), Error> {
    let session = host.log.borrow().head.id.clone();
    let snapshot = RunSnapshot::open(bytes, &session)?;
    let entry = host.log.borrow().head.run(&snapshot.run).cloned();
    let stored = if let Some(entry) = entry {
        let mut stored = StoredRun::read(&block_on(read_journal(host.store, &session, &entry))?, SEED)?;
        let missing = snapshot.missing_entries(&stored.records);
        stored.extend(&missing)?;
        stored.attach_handoffs(host.resume_handoffs.clone(), &setup)?;
        host.take(&entry)?;
        host.epoch = entry.epoch + 1;
        if !missing.is_empty() {
            let step = JournalStep::Write(missing);
            let run = entry.id.clone();
            let journal = JournalChange { run, epoch: host.epoch, lease_until: 0, lease_ended_by: None, step };
            let operation = format!("missing.{}", host.ids.new_id());
            commit_change(host, &Change { operation, journal: Some(journal), ..Change::default() })?;
        }
        stored
    } else {
        let mut stored = snapshot.read_run(SEED)?;
        stored.attach_handoffs(host.resume_handoffs.clone(), &setup)?;
        let writer = RunWriter { run: &snapshot.run, name: "begins", epoch: 0, now: host.clock.now(), lease_until: 0 };
        let change = snapshot.begin(&host.log.borrow(), &writer)?;
        commit_change(host, &change)?;
        host.epoch = 0;
        stored
    };
    let log = host.log.borrow();
    let now = host.clock.now();
    let mut context = RunContext {
        history: &log.history,
        renderer: &mut host.renderer,
        now,
        ids: &host.ids,
        seed: SEED,
        refused: &[],
        last_request: None,
        branch: 0,
    };
    let run = Run::resume(setup, stored, &mut context)?;
    drop(log);
    host.run = Some(run);
    host.started.clear();
    Ok(())
}

/// Begins a session with one turn of history.
pub(super) fn with_history<'s>(store: &'s MemoryStore, name: &str) -> Host<'s> {
    let mut host = Host::open(store, "s", name);
    host.ask(setup("before", CHAT, false), "Hello", |_| Answer::Say(text("Hi.")));
    host.asked.clear();
    host
}

pub(super) fn texts(host: &Host<'_>) -> Vec<String> {
    let texts = |message: &rethread::message::Message| format!("{:?}:{}", message.role, message.parts.len());
    host.log.borrow().history.messages().iter().map(texts).collect()
}

/// A linear congruential generator.
struct Random(u64);

impl Random {
    fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % count
    }
}

/// What happened over all owners of a run.
#[derive(Default)]
struct Totals {
    /// Complete answers of the model.
    answered: usize,
    /// How often each call's tool began.
    ran: BTreeMap<String, u32>,
    closed: Vec<String>,
}

/// One step of a host: a write, or the answer to one of the effects. Returns false if nothing can be done.
fn step(host: &mut Host<'_>, random: &mut Random, totals: &mut Totals) -> bool {
    if random.below(3) > 0 && host.write_one() {
        return true;
    }
    let effects = host.run.as_ref().unwrap().effects().into_iter().cloned().collect::<Vec<_>>();
    // A second answer to an effect, or one that comes late, changes nothing.
    if let Some(closed) = totals.closed.last() {
        let _ =
            host.reply(closed, EffectReply::ToolResult { content: Json::parse("\"late\"").unwrap(), is_error: false });
    }
    if effects.is_empty() {
        return host.write_one();
    }
    let effect = effects[random.below(effects.len())].clone();
    match effect.kind {
        EffectKind::CallModel { body, dialect, .. } => {
            let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
            valid(&body, dialect);
            match random.below(6) {
                0 => {
                    let headers = vec![("retry-after".to_owned(), "3".to_owned())];
                    host.reply(&effect.id, EffectReply::Response { status: 429, headers, body: b"{}".to_vec() })
                        .unwrap();
                }
                1 => {
                    let message = "refused".to_owned();
                    host.reply(&effect.id, EffectReply::Failed { code: None, message, sent: Some(false) }).unwrap();
                }
                _ => {
                    let Answer::Say(say) = three_tools(&body) else { panic!("no answer") };
                    host.reply(&effect.id, EffectReply::ResponseStarted { status: 200, headers: Vec::new() }).unwrap();
                    let bytes = say.stream(dialect);
                    host.handle(rethread::run::RunInput::Bytes { effect: effect.id.clone(), bytes }).unwrap();
                    host.reply(&effect.id, EffectReply::ResponseEnd).unwrap();
                    totals.answered += 1;
                }
            }
        }
        EffectKind::RunTool { invocation, .. } if !host.started.contains(&effect.id) => {
            host.reply(&effect.id, EffectReply::Started).unwrap();
            host.started.push(effect.id.clone());
            host.write();
            *totals.ran.entry(invocation).or_default() += 1;
            return true;
        }
        EffectKind::RunTool { .. } => {
            host.clock.advance(5);
            let content = Json::parse("\"done\"").unwrap();
            host.reply(&effect.id, EffectReply::ToolResult { content, is_error: false }).unwrap();
        }
        EffectKind::Wait { ms } => {
            host.clock.advance(ms);
            host.reply(&effect.id, EffectReply::Waited).unwrap();
        }
    }
    totals.closed.push(effect.id);
    true
}

fn over(host: &Host<'_>) -> bool {
    host.run.as_ref().unwrap().status() != RunStatus::Running
}

/// Where a run goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    /// On the store that it was on.
    Same,
    /// On the other store: an empty one, or one with an older journal of the run.
    Other,
    /// On the store that it was on, from an older snapshot.
    Older,
    /// On the store that it was on, by its id.
    Id,
}

/// Drives a run that moves at every step with probability one in `often`.
fn drive_with_moves(mode: Persistence, seed: u64, often: usize, targets: &[Target]) {
    let stores = [MemoryStore::default(), MemoryStore::default()];
    let mut random = Random(seed);
    let mut totals = Totals::default();
    let mut at = 0;
    let mut host = with_history(&stores[0], "h");
    host.start(in_mode(mode), "Go").unwrap();
    let mut older = None;
    let mut moves = 0;
    for _ in 0..2_000 {
        if over(&host) {
            break;
        }
        assert!(step(&mut host, &mut random, &mut totals), "seed {seed}: the run stands still");
        if over(&host) || random.below(often) > 0 {
            continue;
        }
        let mut target = targets[random.below(targets.len())];
        // Without its snapshot, a run has what was written.
        if matches!(target, Target::Id | Target::Older) && !host.write() {
            continue;
        }
        if over(&host) {
            break;
        }
        if target == Target::Older && older.is_none() {
            target = Target::Same;
        }
        let bytes = snapshot(&mut host).unwrap();
        assert_eq!(bytes, snapshot(&mut host).unwrap());
        let now = host.clock.now();
        at = if target == Target::Other { 1 - at } else { at };
        moves += 1;
        host = Host::open(&stores[at], "s", &format!("h{moves}"));
        host.clock.advance(now - host.clock.now());
        totals.closed.clear();
        match target {
            Target::Same | Target::Other => resume(&mut host, &bytes, in_mode(mode)).unwrap(),
            Target::Older => resume(&mut host, older.as_ref().unwrap(), in_mode(mode)).unwrap(),
            Target::Id => host.resume(in_mode(mode)).unwrap(),
        }
        // A snapshot of the other store's journal is no older one of this store's.
        older = (target != Target::Other).then_some(bytes);
    }
    let outcome = host.run.as_ref().unwrap().outcome();
    assert_eq!((outcome.status, outcome.model_calls), (RunStatus::Finished, 3), "seed {seed}: {:?}", outcome.error);
    assert_eq!(totals.answered, 3, "seed {seed}: an acknowledged model call was sent again");
    assert!(totals.ran.values().all(|count| *count == 1), "seed {seed}: {:?}", totals.ran);
    assert_eq!(totals.ran.len(), 3, "seed {seed}");
    assert!(host.pending().is_empty());
    assert_eq!(
        texts(&host),
        ["User:1", "Assistant:1", "User:1", "Assistant:3", "Assistant:1", "Assistant:1"],
        "seed {seed}"
    );
    // Opened again, from what the store has.
    let mut again = Host::open(&stores[at], "s", "again");
    assert_eq!(texts(&again), texts(&host));
    again.render(CHAT);
}

#[test]
fn r28_a_run_moves_at_any_step_in_every_mode_and_nothing_is_sent_or_run_twice() {
    let all = [Target::Same, Target::Other, Target::Older, Target::Id];
    for mode in MODES {
        for seed in 0..60 {
            drive_with_moves(mode, seed, 1, &all);
            drive_with_moves(mode, seed, 4, &all);
        }
        for seed in 0..30 {
            drive_with_moves(mode, seed, 1, &[Target::Other]);
            drive_with_moves(mode, seed, 2, &[Target::Same]);
        }
    }
}

/// A run whose first round has one answered and one started call, and its snapshot.
fn in_first_round<'s>(store: &'s MemoryStore, mode: Persistence) -> (Host<'s>, Bytes) {
    let mut host = with_history(store, "h");
    host.start(in_mode(mode), "Go").unwrap();
    let mut totals = Totals::default();
    while totals.ran.len() < 2 {
        step(&mut host, &mut Random(7), &mut totals);
    }
    host.write();
    let bytes = snapshot(&mut host).unwrap();
    (host, bytes)
}

#[test]
fn r28_a_snapshot_of_a_run_that_has_ended_is_a_conflict() {
    for mode in MODES {
        let store = MemoryStore::default();
        let (mut host, bytes) = in_first_round(&store, mode);
        host.drive(three_tools).unwrap();
        assert_eq!(snapshot(&mut host).unwrap_err().code, ErrorCode::WrongState);
        let mut other = Host::open(&store, "s", "other");
        let before = (texts(&other), other.log.borrow().revision);
        assert_eq!(resume(&mut other, &bytes, in_mode(mode)).unwrap_err().code, ErrorCode::Conflict);
        assert_eq!((texts(&other), other.log.borrow().revision), before);
    }
}

#[test]
fn r28_a_snapshot_is_refused_by_another_history() {
    let (first, second) = (MemoryStore::default(), MemoryStore::default());
    let (_host, bytes) = in_first_round(&first, Persistence::Run);
    let mut host = with_history(&second, "x");
    let before = host.log.borrow().revision;
    assert_eq!(resume(&mut host, &bytes, in_mode(Persistence::Run)).unwrap_err().code, ErrorCode::Conflict);
    assert_eq!(host.log.borrow().revision, before);
}

#[test]
fn r28_damaged_and_foreign_snapshots_are_typed_errors() {
    let store = MemoryStore::default();
    let (_host, bytes) = in_first_round(&store, Persistence::Run);
    let code = |bytes: &[u8]| RunSnapshot::open(&Bytes::copy_from_slice(bytes), "s").unwrap_err().code;
    assert_eq!(RunSnapshot::open(&bytes, "other").unwrap_err().code, ErrorCode::InvalidInput);
    for nothing in [&b""[..], b"{}", b"run-1", &[0; 64]] {
        assert_eq!(code(nothing), ErrorCode::InvalidInput);
    }
    let mark = b"rethread run\n".len();
    for end in 0..bytes.len() {
        let expected = if end < mark { ErrorCode::InvalidInput } else { ErrorCode::CorruptRecord };
        assert_eq!(code(&bytes[..end]), expected, "cut at {end}");
    }
    for at in 0..bytes.len() {
        let mut flipped = bytes.to_vec();
        flipped[at] ^= 1;
        let expected = if at < mark { ErrorCode::InvalidInput } else { ErrorCode::CorruptRecord };
        assert_eq!(code(&flipped), expected, "byte {at}");
    }
    let mut newer = bytes.to_vec();
    newer[mark] = 200;
    newer[mark + 1] = 200;
    assert_eq!(code(&newer), ErrorCode::UnsupportedVersion);
}

/// Ends the run as a host does whose store fails for too long.
fn abandon(host: &mut Host<'_>) {
    give(host, RunInput::AbandonSaves(Error::new(ErrorCode::StoreError, "away")));
    assert_eq!(host.run.as_ref().unwrap().status(), RunStatus::Failed);
}

/// Gives the run an input, and writes nothing.
fn give(host: &mut Host<'_>, input: RunInput) {
    let log = host.log.borrow();
    let now = host.clock.now();
    let mut context = RunContext {
        history: &log.history,
        renderer: &mut host.renderer,
        now,
        ids: &host.ids,
        seed: SEED,
        refused: &[],
        last_request: None,
        branch: 0,
    };
    host.run.as_mut().unwrap().handle(input, &mut context).unwrap();
}

/// Answers the open call of the model, and writes nothing.
fn answer_unwritten(host: &mut Host<'_>) {
    let effect = host.run.as_ref().unwrap().effects()[0].clone();
    let EffectKind::CallModel { body, dialect, .. } = effect.kind else { panic!("no call") };
    let Answer::Say(say) = three_tools(&serde_json::from_slice(&body).unwrap()) else { panic!("no answer") };
    host.reply(&effect.id, EffectReply::Response { status: 200, headers: Vec::new(), body: say.body(dialect) })
        .unwrap();
}

#[test]
fn r62_a_cancelled_run_whose_last_save_is_not_answered_ends_as_cancelled() {
    let store = MemoryStore::default();
    let mut host = with_history(&store, "h");
    host.start(in_mode(Persistence::Run), "Go").unwrap();
    let answered = Cell::new(0);
    host.drive(|body| {
        answered.set(answered.get() + 1);
        if answered.get() == 3 { Answer::Hang } else { three_tools(body) }
    });
    answer_unwritten(&mut host);
    give(&mut host, RunInput::Cancel);
    assert!(!host.run.as_ref().unwrap().status().is_over());
    give(&mut host, RunInput::AbandonSaves(Error::new(ErrorCode::StoreError, "away")));
    let outcome = host.run.as_ref().unwrap().outcome();
    assert_eq!((outcome.status, outcome.error.is_none(), outcome.saved), (RunStatus::Cancelled, true, false));
}

#[test]
fn r28_an_answer_that_could_not_be_stored_is_in_the_snapshot() {
    // The second store has no journal of the run at all; the first one lacks the answer.
    for answers in 1..=3 {
        let (first, second) = (MemoryStore::default(), MemoryStore::default());
        let mut host = with_history(&first, "h");
        host.start(in_mode(Persistence::Run), "Go").unwrap();
        let answered = Rc::new(Cell::new(0));
        let counting = answered.clone();
        host.drive(|body| {
            if counting.get() + 1 == answers {
                return Answer::Hang;
            }
            counting.set(counting.get() + 1);
            three_tools(body)
        });
        // The last answer comes, and is not written.
        answer_unwritten(&mut host);
        let bytes = snapshot(&mut host).unwrap();
        // A run that ends because its saves fail has the same.
        abandon(&mut host);
        assert_eq!(snapshot(&mut host).unwrap(), bytes);
        for store in [&first, &second] {
            let mut next = Host::open(store, "s", "next");
            resume(&mut next, &bytes, in_mode(Persistence::Run)).unwrap();
            let outcome = next.drive(three_tools).unwrap();
            assert_eq!((outcome.status, outcome.model_calls), (RunStatus::Finished, 3), "{:?}", outcome.error);
            assert_eq!(next.asked.len(), 3 - answers, "an acknowledged answer was asked for again");
        }
    }
}

#[test]
fn r28_a_snapshot_has_neither_credentials_nor_what_persist_removed() {
    let store = MemoryStore::default();
    let mut host = with_history(&store, "h");
    let mut setup = in_mode(Persistence::Result);
    setup.provider.params = Json::parse(r#"{"model":"m","api_key":"key-of-the-model"}"#).unwrap();
    let callback = rethread::replay::Callback { id: 1, hook: Rc::new(()) };
    setup.persist = ["look", "find"].map(|name| (name.to_owned(), callback.clone())).into();
    host.persist = Box::new(|_| PersistReply::Replaced {
        arguments: Json::parse("{\"n\":0}").ok(),
        result: Json::parse("\"hidden\"").ok(),
    });
    host.tool = Box::new(|_, _| (Json::parse("\"SECRET\"").unwrap(), false));
    host.start(setup.clone(), "Go").unwrap();
    let mut calls = 0;
    host.drive(|body| {
        calls += 1;
        if calls == 3 { Answer::Hang } else { three_tools(body) }
    });
    let bytes = snapshot(&mut host).unwrap();
    let has = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(has("hidden") && !has("SECRET") && !has("key-of-the-model") && !has("\"n\":1"));
    // The credential is needed again.
    let stored = RunSnapshot::open(&bytes, "s").unwrap().read_run(SEED).unwrap();
    setup.provider.params = Json::parse(r#"{"model":"m"}"#).unwrap();
    assert_eq!(stored.check_credentials(&setup.provider).unwrap_err().code, ErrorCode::ConfigInvalid);
}

#[test]
fn r28_a_snapshot_has_of_history_what_the_next_request_contains() {
    use rethread::replay::{Policy, PolicyLayer, Reducer};
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    for turn in 0..20 {
        host.ask(setup(&format!("r{turn}"), CHAT, false), &format!("Question {turn}"), |_| {
            Answer::Say(text("Answer."))
        });
    }
    let size = |host: &mut Host<'_>, reducers: Option<Vec<Reducer>>| {
        let call = PolicyLayer { reducers, ..PolicyLayer::default() };
        host.start(RunSetup { policy: Policy { call, ..Policy::default() }, ..in_mode(Persistence::Run) }, "Go")
            .unwrap();
        RunSnapshot::open(&snapshot(host).unwrap(), "s").unwrap().history.len()
    };
    assert_eq!(size(&mut host, None), 40);
    let few = size(&mut host, Some(vec![Reducer::SlidingTurns { turns: 3 }]));
    assert!((4..=6).contains(&few), "{few}");
}

/// Answers the open `call_model`.
fn say(host: &mut Host<'_>, say: &Say) {
    let effect = host.run.as_ref().unwrap().effects()[0].clone();
    let EffectKind::CallModel { dialect, .. } = effect.kind else { panic!("no call") };
    let body = say.body(dialect);
    host.reply(&effect.id, EffectReply::Response { status: 200, headers: Vec::new(), body }).unwrap();
}

#[test]
fn r28_a_last_answer_without_a_message_is_not_asked_for_again() {
    let paused = Say { finish: Some("pause_turn".into()), ..text("I am searching.") };
    let one_call = calls(&[("call_a", "look", "{}")]);
    for (dialect, first, model_calls) in
        [(CHAT, None, 1), (CHAT, Some(&one_call), 2), (CLAUDE, Some(&one_call), 2), (CLAUDE, Some(&paused), 2)]
    {
        for mode in MODES {
            let (first_store, second_store) = (MemoryStore::default(), MemoryStore::default());
            let mut host = with_history(&first_store, "h");
            let setup = || RunSetup { persistence: mode, ..setup("run", dialect, false) };
            host.start(setup(), "Go").unwrap();
            let mut answers = first.into_iter();
            assert!(host.drive(|_| answers.next().map_or(Answer::Hang, |say| Answer::Say(say.clone()))).is_none());
            say(&mut host, &text(""));
            let bytes = snapshot(&mut host).unwrap();
            for store in [&first_store, &second_store] {
                let mut next = Host::open(store, "s", "next");
                resume(&mut next, &bytes, setup()).unwrap();
                assert_eq!(without_origin(&bytes), without_origin(&snapshot(&mut next).unwrap()));
                let outcome = next.drive(|_| panic!("an acknowledged answer was asked for again")).unwrap();
                assert_eq!((outcome.status, outcome.model_calls), (RunStatus::Finished, model_calls));
                assert!(next.ran.is_empty());
            }
        }
    }
}

#[test]
fn r28_results_of_a_snapshot_are_kept_if_persist_replied_after_it() {
    let callback = rethread::replay::Callback { id: 1, hook: Rc::new(()) };
    for mode in MODES {
        let redacted = || RunSetup { persist: [("look".to_owned(), callback.clone())].into(), ..in_mode(mode) };
        let replace = |host: &mut Host<'_>| {
            host.persist = Box::new(|question| PersistReply::Replaced {
                arguments: Json::parse("{\"n\":0}").ok(),
                result: question.result.as_ref().and_then(|_| Json::parse("\"hidden\"").ok()),
            });
        };
        let store = MemoryStore::default();
        let mut host = with_history(&store, "h");
        replace(&mut host);
        host.start(redacted(), "Go").unwrap();
        host.write();
        let Answer::Say(answer) = three_tools(&serde_json::json!({ "messages": [] })) else { panic!("no answer") };
        say(&mut host, &answer);
        host.write();
        let ids: Vec<String> = host.run.as_ref().unwrap().effects().iter().map(|effect| effect.id.clone()).collect();
        ids.iter().for_each(|id| host.reply(id, EffectReply::Started).unwrap());
        host.write();
        for id in &ids {
            let content = Json::parse("\"done\"").unwrap();
            host.reply(id, EffectReply::ToolResult { content, is_error: false }).unwrap();
        }
        let bytes = snapshot(&mut host).unwrap();
        // The first result is written as `persist` replies; the second one is in the snapshot alone.
        assert_eq!(ids.len(), 2);
        host.write_one();
        let mut next = Host::open(&store, "s", "next");
        replace(&mut next);
        resume(&mut next, &bytes, redacted()).unwrap();
        assert_eq!(next.drive(three_tools).unwrap().status, RunStatus::Finished);
        let ran: Vec<&str> = next.ran.iter().map(|(call, ..)| call.as_str()).collect();
        assert_eq!(ran, ["call_c"], "a tool of a known result ran again");
        let log = next.log.borrow();
        let statuses: Vec<InvocationStatus> = log.history.invocations().iter().map(|call| call.status).collect();
        assert_eq!(statuses, [InvocationStatus::Ok; 3], "a result is lost");
    }
}
