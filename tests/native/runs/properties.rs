//! Any order, any repetition, any kill: history is whole turns, and what goes out is valid.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::prefixes::check_extends;
use super::reopened;
use super::scripted_host::*;
use proptest::prelude::*;
use rethread::json::Json;
use rethread::message::Role;
use rethread::run::{
    EffectKind, EffectReply, OnInterrupted, OnStop, Persistence, RunInput, RunSetup, RunStatus, ToolSettings,
};
use rethread::store::{MemoryStore, Table};
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
enum Move {
    /// Answers the nth open effect as it wants to be; a tool is started, or given its result.
    Go(usize),
    /// Says the last thing again.
    Again,
    /// An answer to an effect that is over, or was never there.
    Stray(u8),
    /// So many writes are done.
    Write(usize),
    /// The host dies with what is not written, and another one takes over.
    Kill,
    Cancel,
    /// Another tab has a turn.
    Other,
}

fn a_move() -> impl Strategy<Value = Move> {
    prop_oneof![
        8 => (0_usize..4).prop_map(Move::Go),
        1 => Just(Move::Again),
        1 => any::<u8>().prop_map(Move::Stray),
        8 => (1_usize..4).prop_map(Move::Write),
        1 => Just(Move::Kill),
        1 => Just(Move::Cancel),
        1 => Just(Move::Other),
    ]
}

/// Round after round of calls, ids as bad as they come, then text: from the body alone.
fn model(script: &[Vec<u8>], body: &Value) -> Say {
    let round = rounds_in(body);
    match script.get(round) {
        Some(ids) if !ids.is_empty() => {
            let ids: Vec<String> =
                ids.iter().map(|id| if *id == 0 { String::new() } else { format!("call_{id}") }).collect();
            let list: Vec<_> = ids.iter().map(|id| (id.as_str(), "look", "{}")).collect();
            Say { text: if round.is_multiple_of(2) { "Hm.".into() } else { String::new() }, ..calls(&list) }
        }
        _ => text("Done."),
    }
}

/// What holds at any instant for whoever opens the session.
fn check(store: &MemoryStore, runs: &mut BTreeMap<String, usize>, persistence: Persistence) {
    let mut reader = Host::open(store, "s", "reader");
    assert!(reader.log.borrow().findings.is_empty());
    for dialect in [CHAT, CLAUDE, RESPONSES] {
        reader.render(dialect);
    }
    let log = reader.log.borrow();
    // In the other modes the run is stored in pieces, and other writers may append between.
    let in_pieces = |run: &str| run == "run" && persistence != Persistence::Run;
    let mut seen: Vec<&str> = Vec::new();
    for message in log.history.messages() {
        let run = message.run_id.as_deref().unwrap();
        if in_pieces(run) {
            continue;
        }
        if seen.last() != Some(&run) {
            assert!(!seen.contains(&run), "the turn of {run} is there twice, or in pieces");
            assert_eq!(message.role, Role::User);
            seen.push(run);
        }
    }
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for message in log.history.messages() {
        *counts.entry(message.run_id.clone().unwrap()).or_insert(0) += 1;
    }
    for (run, count) in runs.iter() {
        let now = counts.get(run).copied().unwrap_or(0);
        assert!(now == *count || in_pieces(run) && now > *count, "{run} changed after it was stored");
    }
    *runs = counts;
    let inputs = log.history.messages().iter().filter(|message| message.role == Role::User);
    assert!(inputs.filter(|message| message.run_id.as_deref() == Some("run")).count() <= 1);
    assert!(log.history.set_aside().is_empty(), "a result is stored twice");
    // A journal and a stored turn exclude each other.
    assert!(log.head.runs.iter().all(|run| in_pieces(&run.id) || !runs.contains_key(&run.id)));
    let rows: u64 = log.head.runs.iter().map(|run| run.entries).sum();
    drop(log);
    assert_eq!(reader.records(Table::Runs).len() as u64, rows);
}

/// How a run is played.
#[derive(Clone, Copy, Debug)]
struct Settings {
    stream: bool,
    rerun: bool,
    keep: bool,
    persistence: Persistence,
}

#[expect(clippy::too_many_lines, reason = "one scenario, read from top to bottom")]
fn play(script: &[Vec<u8>], moves: &[Move], settings: Settings) {
    let Settings { stream, rerun, keep, persistence } = settings;
    let store = MemoryStore::default();
    let dialect = if script.len().is_multiple_of(2) { CHAT } else { CLAUDE };
    let on_stop = if keep { OnStop::Keep } else { OnStop::Discard };
    let mut setup = RunSetup { on_stop, persistence, ..setup("run", dialect, stream) };
    if rerun {
        setup
            .tool_settings
            .insert("look".into(), ToolSettings { on_interrupted: OnInterrupted::Rerun, ..ToolSettings::default() });
    }
    let mut host = Host::open(&store, "s", "h0");
    host.start(setup.clone(), "Go").unwrap();
    let mut runs = BTreeMap::new();
    let (mut kills, mut others) = (0, 0);
    let mut sent: Option<Vec<u8>> = None;
    let mut last: Option<(String, EffectReply)> = None;
    let mut started: Vec<String> = Vec::new();
    let mut executed: BTreeMap<String, u32> = BTreeMap::new();
    let one = || Json::parse("[1]").unwrap();
    for step in
        moves.iter().cloned().chain([Move::Write(99)]).chain((0..200).flat_map(|n| [Move::Go(n), Move::Write(99)]))
    {
        if host.run.as_ref().unwrap().status() != RunStatus::Running {
            break;
        }
        match step {
            Move::Go(n) => {
                let effects = host.run.as_ref().unwrap().effects().into_iter().cloned().collect::<Vec<_>>();
                let Some(effect) = effects.get(n % effects.len().max(1)) else { continue };
                let reply = match &effect.kind {
                    EffectKind::CallModel { body, stream, .. } => {
                        // R71
                        if let Some(before) = sent.replace(body.to_vec()) {
                            check_extends(&before, body, dialect);
                        }
                        let body: Value = serde_json::from_slice(body).unwrap();
                        valid(&body, dialect);
                        let say = model(script, &body);
                        if *stream {
                            host.reply(&effect.id, EffectReply::ResponseStarted { status: 200, headers: Vec::new() })
                                .unwrap();
                            host.handle(RunInput::Bytes { effect: effect.id.clone(), bytes: say.stream(dialect) })
                                .unwrap();
                            EffectReply::ResponseEnd
                        } else {
                            EffectReply::Response { status: 200, headers: Vec::new(), body: say.body(dialect) }
                        }
                    }
                    EffectKind::RunTool { invocation, .. } => {
                        if started.contains(&effect.id) {
                            EffectReply::ToolResult { content: one(), is_error: false }
                        } else {
                            started.push(effect.id.clone());
                            *executed.entry(invocation.clone()).or_insert(0) += 1;
                            EffectReply::Started
                        }
                    }
                    EffectKind::Wait { .. } => EffectReply::Waited,
                };
                host.reply(&effect.id, reply.clone()).unwrap();
                // A tool is executed when its start is written.
                if reply == EffectReply::Started {
                    host.write();
                }
                last = Some((effect.id.clone(), reply));
            }
            Move::Again => {
                if let Some((effect, reply)) = last.clone() {
                    let _ = host.reply(&effect, reply);
                }
            }
            Move::Stray(n) => {
                let effect = format!("e{n}");
                if host.run.as_ref().unwrap().effects().iter().all(|open| open.id != effect) {
                    let _ = host.reply(&effect, EffectReply::ToolResult { content: one(), is_error: true });
                }
            }
            Move::Write(count) => (0..count).for_each(|_| {
                host.write_one();
            }),
            Move::Kill => {
                kills += 1;
                let mut next = Host::open(&store, "s", &format!("h{kills}"));
                let alive = next.pending().iter().any(|entry| entry.id == "run");
                if alive {
                    next.resume(setup.clone()).unwrap();
                } else if next
                    .log
                    .borrow()
                    .history
                    .messages()
                    .iter()
                    .any(|message| message.run_id.as_deref() == Some("run"))
                {
                    break;
                } else {
                    next.start(setup.clone(), "Go").unwrap();
                    sent = None;
                }
                (host, last) = (next, None);
                started.clear();
            }
            Move::Cancel => host.handle(RunInput::Cancel).unwrap(),
            Move::Other => {
                others += 1;
                let mut other = Host::open(&store, "s", &format!("o{others}"));
                other.ask(super::setup(&format!("other-{others}"), CHAT, false), "Me too", |body| {
                    Answer::Say(if rounds_in(body) == 0 { calls(&[("call_1", "find", "{}")]) } else { text("Other.") })
                });
            }
        }
        check(&store, &mut runs, persistence);
    }
    let run = host.run.as_ref().unwrap();
    let reader = Host::open(&store, "s", "x");
    let is_pending = reader.pending().iter().any(|entry| entry.id == "run");
    let messages = reader.log.borrow().history.messages().to_vec();
    let written = !is_pending && messages.iter().any(|message| message.run_id.as_deref() == Some("run"));
    let answers = messages.iter().filter(|message| message.role == Role::Assistant);
    let answers = answers.filter(|message| message.run_id.as_deref() == Some("run")).count();
    assert!(answers <= script.len() + 1, "an answer is stored twice");
    assert!(run.status() != RunStatus::Running || written, "it stands still: {:?}", run.effects());
    assert!(rerun || executed.values().all(|count| *count == 1), "a tool ran twice");
    if run.status() == RunStatus::Finished {
        let reader = reopened(&host);
        let log = reader.log.borrow();
        assert!(log.history.invocations().iter().all(|call| call.result.is_some()));
    }
    check(&store, &mut runs, persistence);
}

const MODES: [Persistence; 3] = [Persistence::Run, Persistence::Call, Persistence::Result];

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, max_shrink_iters: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn r15_r18_runs_survive_any_order_of_events_and_any_kill(
        script in proptest::collection::vec(proptest::collection::vec(0_u8..4, 0..4), 0..4),
        moves in proptest::collection::vec(a_move(), 0..40),
        stream: bool, rerun: bool, keep: bool, mode in 0_usize..3,
    ) {
        play(&script, &moves, Settings { stream, rerun, keep, persistence: MODES[mode] });
    }
}

#[test]
fn r18_a_run_killed_after_any_save_is_resumed() {
    let script = vec![vec![1, 0], vec![1]];
    // Written at once, or not before the kill.
    for write in [1, 99] {
        let steps: Vec<Move> = (0..14).flat_map(|n| [Move::Go(n), Move::Write(write)]).collect();
        for at in 0..=steps.len() {
            for end in [Move::Kill, Move::Cancel] {
                for stream in [false, true] {
                    let mut moves = steps[..at].to_vec();
                    moves.push(end.clone());
                    for persistence in MODES {
                        for keep in [false, true] {
                            play(&script, &moves, Settings { stream, rerun: false, keep, persistence });
                            play(&script, &moves, Settings { stream, rerun: true, keep, persistence });
                        }
                    }
                }
            }
        }
    }
}
