//! Turns under every kind of trouble at once: processes that are killed wherever they wait, appends that fail or whose
//! replies are lost, another writer. RETHREAD_LONG=1: many more seeds. RETHREAD_SEED=7: that one.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::scripted_host::*;
use super::virtual_host::{Fault, Process, World};
use super::{MODES, in_mode, records, resume, roles, run_ids, start};
use rethread::json::Json;
use rethread::message::Role;
use rethread::run::{Persistence, RunStatus};
use rethread::session::{AppendOrigin, OpenSession, SessionSettings};
use rethread::store::{MemoryStore, Table};
use std::cell::Cell;
use std::rc::Rc;

/// Numbers that follow from a seed (splitmix64).
#[derive(Clone)]
struct Random(Rc<Cell<u64>>);

impl Random {
    fn below(&self, end: usize) -> usize {
        self.0.set(self.0.get().wrapping_add(0x9e37_79b9_7f4a_7c15));
        let mut mixed = self.0.get();
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % end as u64).unwrap()
    }

    fn is_one_in(&self, count: usize) -> bool {
        self.below(count) == 0
    }
}

/// What a seed chooses for a whole turn.
struct Trouble {
    random: Random,
    mode: Persistence,
    dialect: rethread::message::Dialect,
    flush_ms: u64,
    has_locks: bool,
}

impl Trouble {
    fn of(seed: u64) -> Self {
        let random = Random(Rc::new(Cell::new(seed)));
        let mode = MODES[random.below(MODES.len())];
        let dialect = [CHAT, CLAUDE, RESPONSES][random.below(3)];
        let flush_ms = [0, 0, 3][random.below(3)];
        let has_locks = random.is_one_in(2);
        Self { random, mode, dialect, flush_ms, has_locks }
    }

    fn process(&self, world: &Rc<World>, data: &MemoryStore, number: u32) -> Process {
        let random = self.random.clone();
        let fault = move || match random.below(16) {
            0 => Some(Fault::Refused),
            1 => Some(Fault::ReplyLost),
            _ => None,
        };
        Process::with_faults(world, data, number, Box::new(fault))
    }

    async fn session(&self, process: &Process) -> Rc<OpenSession> {
        process.session(SessionSettings { flush_ms: Some(self.flush_ms), ..SessionSettings::default() }).await
    }
}

/// Another writer says something.
fn interrupt(world: &Rc<World>, data: &MemoryStore, number: u32) {
    let writer = Process::new(world, data, number);
    let session = world.run(writer.session(SessionSettings::default()));
    let origin = session.origin(AppendOrigin::default());
    let messages = Json::parse(r#"[{"role":"user","parts":[{"type":"text","text":"By the way"}]}]"#).unwrap();
    world.run(session.append(&messages, None, (&origin, None))).unwrap();
    writer.kill();
}

/// Drives one turn to its end, over several processes. Returns the number of those that were killed.
fn turn(seed: u64) -> usize {
    let trouble = Trouble::of(seed);
    let (world, data) = (World::new(trouble.has_locks), MemoryStore::default());
    let mut processes = Vec::new();
    let mut interruptions = 0;
    let finished = loop {
        let number = u32::try_from(processes.len()).unwrap();
        let process = trouble.process(&world, &data, number);
        let setup = in_mode(trouble.mode, trouble.dialect);
        let go_on = async {
            let session = trouble.session(&process).await;
            let pending = run_ids(&session).first().cloned();
            let is_over = roles(&session).contains(&Role::Assistant) && pending.is_none();
            let run = match pending {
                _ if is_over => return Some(session),
                Some(id) => resume(&session, &id, setup).await,
                None => start(&session, setup, "Go").await,
            };
            // A lease that has not run out, or a store that fails: the next process tries again.
            let outcome = process.drive(&run.ok()?, &three_tools).await;
            (outcome.status == RunStatus::Finished && outcome.saved).then_some(session)
        };
        let steps = if processes.len() > 12 { usize::MAX } else { trouble.random.below(60) };
        let session = world.run_steps(go_on, steps).flatten();
        process.kill();
        processes.push(process);
        if let Some(session) = session {
            break session;
        }
        if trouble.random.is_one_in(4) {
            interrupt(&world, &data, 1_000 + number);
            interruptions += 1;
        }
        world.pass(31_000);
        assert!(processes.len() < 60, "seed {seed}: no end");
    };
    check(seed, &trouble, &finished, interruptions);
    let asked: usize = processes.iter().map(|process| process.heard.borrow().asked.len()).sum();
    let mut ran: Vec<_> = processes.iter().flat_map(|process| process.heard.borrow().ran.clone()).collect();
    let count = ran.len();
    ran.sort();
    ran.dedup();
    if trouble.flush_ms == 0 {
        assert_eq!(ran.len(), count, "seed {seed}: a tool ran twice");
        assert!(asked <= 3 + processes.len(), "seed {seed}: {asked} model calls in {} processes", processes.len());
    }
    assert_eq!(records(&data, Table::Runs), 0, "seed {seed}: a journal is left");
    processes.len() - 1
}

/// The turn is whole in history, and in mode "run" nothing is between its messages.
fn check(seed: u64, trouble: &Trouble, session: &OpenSession, interruptions: usize) {
    let log = session.log.borrow();
    let messages = log.history.messages();
    let of_turn: Vec<_> = (0..messages.len()).filter(|at| messages[*at].run_id.is_some()).collect();
    let roles: Vec<_> = of_turn.iter().map(|at| messages[*at].role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::Assistant, Role::Assistant], "seed {seed}");
    assert_eq!(messages.len(), 4 + interruptions, "seed {seed}: a message was lost or doubled");
    if trouble.mode == Persistence::Run {
        assert_eq!(of_turn[3] - of_turn[0], 3, "seed {seed}: something is between the messages of the turn");
    }
    assert_eq!(log.history.invocations().len(), 3, "seed {seed}");
    assert!(log.history.invocations().iter().all(|call| call.result.is_some()), "seed {seed}: a call is open");
}

#[test]
fn r81_r15_r18_turns_survive_kills_lost_replies_and_other_writers() {
    let seeds = match std::env::var("RETHREAD_SEED") {
        Ok(seed) => vec![seed.parse().unwrap()],
        Err(_) => (0..if std::env::var_os("RETHREAD_LONG").is_some() { 10_000 } else { 300 }).collect(),
    };
    let kills: usize = seeds.iter().map(|seed| turn(*seed)).sum();
    assert!(kills * 2 > seeds.len() || seeds.len() == 1, "{kills} kills of {} turns", seeds.len());
}
