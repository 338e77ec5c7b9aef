//! Approvals (R29) in any order: decisions and answers that are late or repeated, and kills between any two saves.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::approvals::{MODES, asking, waiting};
use super::reopened;
use super::scripted_host::*;
use proptest::prelude::*;
use rethread::error::ErrorCode;
use rethread::run::ApprovalDecision::{Approve, Reject};
use rethread::run::{EffectKind, EffectReply, Persistence, RunSetup, RunStatus};
use rethread::store::{MemoryStore, Table};
use rethread::tool::InvocationStatus::Rejected;
use serde_json::Value;
use std::collections::BTreeMap;

/// What a person does about the calls of a round, and when the host dies.
#[derive(Clone, Debug)]
enum Move {
    /// Decides about the nth call of the round, whether or not it waits.
    Decide(usize, bool),
    /// Answers the nth open effect.
    Answer(usize),
    /// Repeats the last answer.
    AnswerAgain,
    /// Does so many writes.
    Write(usize),
    /// The host dies with what is not written, and another one takes over.
    Kill,
}

fn a_move() -> impl Strategy<Value = Move> {
    prop_oneof![
        5 => (0_usize..4, any::<bool>()).prop_map(|(at, approves)| Move::Decide(at, approves)),
        6 => (0_usize..4).prop_map(Move::Answer),
        1 => Just(Move::AnswerAgain),
        6 => (1_usize..4).prop_map(Move::Write),
        1 => Just(Move::Kill),
    ]
}

const CALLS: [&str; 4] = ["call_0", "call_1", "call_2", "call_3"];

/// Plays the moves, then approves and answers what is left. Checks that each tool ran at most once, only after its
/// approval, and that the model is sent one result for each call, in one request.
struct Player<'s> {
    store: &'s MemoryStore,
    setup: RunSetup,
    host: Host<'s>,
    needs: Vec<bool>,
    decided: BTreeMap<String, bool>,
    executed: BTreeMap<String, u32>,
    last: Option<(String, EffectReply)>,
    hosts: usize,
    bodies: Vec<Value>,
}

impl Player<'_> {
    fn play(&mut self, step: &Move) {
        match step {
            Move::Decide(at, approves) => self.decide(CALLS[*at % CALLS.len()], *approves),
            Move::Answer(at) => self.answer(*at),
            Move::AnswerAgain => {
                if let Some((effect, reply)) = self.last.clone() {
                    let _ = self.host.reply(&effect, reply);
                }
            }
            Move::Write(count) => {
                for _ in 0..*count {
                    self.host.write_one();
                }
            }
            Move::Kill => self.kill(),
        }
    }

    fn decide(&mut self, call: &str, approves: bool) {
        let waits = waiting(&self.host).iter().any(|other| other == call);
        let decision = if approves { Approve } else { Reject(None) };
        let outcome = self.host.decide(call, decision);
        assert_eq!(outcome.is_ok(), waits, "{call}");
        if waits {
            self.decided.insert(call.to_owned(), approves);
        } else {
            assert!(matches!(outcome.unwrap_err().code, ErrorCode::WrongState | ErrorCode::NotFound));
        }
    }

    fn answer(&mut self, at: usize) {
        let effects = self.host.run.as_ref().unwrap().effects().into_iter().cloned().collect::<Vec<_>>();
        let Some(effect) = effects.get(at % effects.len().max(1)) else { return };
        let reply = match &effect.kind {
            EffectKind::CallModel { body, dialect, .. } => {
                let body: Value = serde_json::from_slice(body).unwrap();
                valid(&body, *dialect);
                let say = if rounds_in(&body) == 0 {
                    let all: Vec<_> = self.needs.iter().zip(CALLS).map(|(asks, id)| (id, tool(*asks), "{}")).collect();
                    calls(&all)
                } else {
                    text("Done.")
                };
                self.bodies.push(body);
                EffectReply::Response { status: 200, headers: Vec::new(), body: say.body(*dialect) }
            }
            EffectKind::RunTool { call_id, .. } => {
                let at = CALLS.iter().position(|call| call == call_id).unwrap();
                if self.needs[at] {
                    assert_eq!(self.decided.get(call_id), Some(&true), "{call_id} was offered without an approval");
                }
                // A tool is executed when its start is written.
                if self.host.reply(&effect.id, EffectReply::Started).is_ok() {
                    self.host.write();
                    *self.executed.entry(call_id.clone()).or_insert(0) += 1;
                }
                let content = rethread::json::Json::parse("[1]").unwrap();
                EffectReply::ToolResult { content, is_error: false }
            }
            EffectKind::Wait { .. } => EffectReply::Waited,
        };
        self.host.reply(&effect.id, reply.clone()).unwrap();
        self.last = Some((effect.id.clone(), reply));
    }

    fn kill(&mut self) {
        self.hosts += 1;
        let mut next = Host::open(self.store, "s", &format!("h{}", self.hosts));
        if next.pending().is_empty() {
            return;
        }
        next.resume(self.setup.clone()).unwrap();
        (self.host, self.last) = (next, None);
    }
}

fn tool(asks: bool) -> &'static str {
    if asks { "find" } else { "look" }
}

fn play(needs: &[bool], moves: &[Move], mode: Persistence) {
    let store = MemoryStore::default();
    let setup = asking(mode, CHAT, false);
    let mut host = Host::open(&store, "s", "h0");
    host.start(setup.clone(), "Go").unwrap();
    // The run is in the store before the host may die.
    host.write();
    let (decided, executed) = (BTreeMap::new(), BTreeMap::new());
    let bodies = Vec::new();
    let mut player =
        Player { store: &store, setup, host, needs: needs.to_vec(), decided, executed, last: None, hosts: 0, bodies };
    moves.iter().for_each(|step| player.play(step));
    for _ in 0..60 {
        player.host.write();
        let over = player.host.run.as_ref().unwrap().status().is_over();
        if over {
            break;
        }
        for call in waiting(&player.host) {
            player.decide(&call, true);
        }
        player.host.write();
        player.answer(0);
    }
    let outcome = player.host.run.as_ref().unwrap().outcome();
    assert_eq!(
        outcome.status,
        RunStatus::Finished,
        "{:?} {:?}",
        outcome.error,
        player.host.run.as_ref().unwrap().effects()
    );
    assert!(player.executed.values().all(|count| *count == 1), "a tool ran twice: {:?}", player.executed);
    let reader = reopened(&player.host);
    let log = reader.log.borrow();
    assert_eq!(log.history.invocations().len(), needs.len());
    for (call, asks) in log.history.invocations().iter().zip(needs) {
        assert!(call.result.is_some());
        let was_rejected = call.status == Rejected;
        assert!(!was_rejected || *asks && !player.executed.contains_key(&call.call_id), "{call:?}");
        assert!(player.decided.contains_key(&call.call_id) || !asks);
    }
    // Each model call after the first has all outputs of the round.
    for body in &player.bodies {
        let outputs = body["messages"].as_array().unwrap().iter().filter(|message| message["role"] == "tool").count();
        assert!(outputs == 0 || outputs == needs.len(), "{body:#}");
    }
    assert!(log.history.set_aside().is_empty());
    let entries = player.host.records(Table::Log).len();
    assert!(entries <= 2 + needs.len());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, max_shrink_iters: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn r29_any_order_of_answers_and_decisions_with_late_and_repeated_ones_and_kills(
        needs in proptest::collection::vec(any::<bool>(), 1..4),
        moves in proptest::collection::vec(a_move(), 0..40),
        mode in 0_usize..3,
    ) {
        play(&needs, &moves, MODES[mode]);
    }
}

#[test]
fn r29_killed_after_any_save_a_waiting_run_goes_on() {
    let steps: Vec<Move> =
        (0..4).flat_map(|at| [Move::Answer(0), Move::Write(1), Move::Decide(at, at != 2), Move::Write(1)]).collect();
    for at in 0..=steps.len() {
        for kills in 1..3 {
            let mut moves = steps[..at].to_vec();
            moves.extend(std::iter::repeat_n(Move::Kill, kills));
            moves.extend_from_slice(&steps[at..]);
            for mode in MODES {
                play(&[true, false, true], &moves, mode);
                play(&[true, true, true], &moves, mode);
            }
        }
    }
}
