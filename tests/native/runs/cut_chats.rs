//! R72 over any chat: kills, pauses, other processes, other tabs, and what makes cuts, in each dialect and mode.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::cuts::{MINUTE, append_of, ask, imported, length_of, open_at, prefixes};
use super::prefixes::{a_reducer, check_extends, say};
use super::scripted_host::*;
use super::snapshots::MODES;
use proptest::prelude::*;
use rethread::clock::Clock;
use rethread::history::Origin;
use rethread::json::Json;
use rethread::message::{Dialect, Source, SourceKind};
use rethread::replay::{
    Citations, Cut, OnStale, PolicyLayer, QuestionKind, Reducer, ReducerReply, ReplayChanges, StaleUnit,
};
use rethread::run::{Persistence, RunSetup, RunStatus};
use rethread::store::MemoryStore;
use rethread::tool::Window;
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

#[derive(Clone, Debug)]
enum Step {
    /// A turn with so many rounds.
    Turn(usize),
    /// So many milliseconds pass.
    Wait(u64),
    /// Another process has the session from now on.
    Reopen,
    /// The process dies in a turn after so many writes, and another one resumes it so many milliseconds later.
    Kill(usize, usize, u64),
    /// Another tab appends a turn whose result is so many milliseconds old.
    Append(u64),
    /// The requests are for the other model from now on.
    OtherModel,
    /// The requests have other instructions from now on.
    OtherInstructions,
}

fn a_step() -> impl Strategy<Value = Step> {
    let pause = || prop_oneof![3 => 0..30_000_u64, 3 => 50_000..290_000_u64, 1 => 310_000..2_000_000_u64];
    prop_oneof![
        6 => (0_usize..3).prop_map(Step::Turn),
        4 => pause().prop_map(Step::Wait),
        2 => Just(Step::Reopen),
        2 => (1_usize..3, 0_usize..6, pause()).prop_map(|(rounds, writes, ms)| Step::Kill(rounds, writes, ms)),
        2 => prop_oneof![Just(0_u64), Just(400_000)].prop_map(Step::Append),
        1 => Just(Step::OtherModel),
        1 => Just(Step::OtherInstructions),
    ]
}

#[derive(Clone, Debug)]
struct Case {
    dialect: Dialect,
    persistence: Persistence,
    policy: PolicyLayer,
    steps: Vec<Step>,
}

fn a_case() -> impl Strategy<Value = Case> {
    let policy = (
        prop_oneof![1 => Just(Window::Millis(0)), 4 => Just(Window::Millis(MINUTE)), 1 => Just(Window::Always)],
        prop_oneof![Just(OnStale::Omit), Just(OnStale::Placeholder)],
        prop_oneof![Just(StaleUnit::Call), Just(StaleUnit::Round), Just(StaleUnit::Turn)],
        any::<bool>(),
        prop_oneof![
            3 => Just(Vec::new()),
            2 => proptest::collection::vec(a_reducer(), 1..3),
            1 => Just(vec![Reducer::TokenBudget { tokens: 500, count: None }]),
        ],
    );
    let policy = policy.prop_map(|(window, on_stale, unit, cites, reducers)| PolicyLayer {
        freshness: Some(window),
        on_stale: Some(on_stale),
        stale_unit: Some(unit),
        citations: cites.then_some(Citations::Replay),
        reducers: Some(reducers),
        changes: Some(ReplayChanges::AtCuts),
        ..PolicyLayer::default()
    });
    let steps = proptest::collection::vec(a_step(), 2..14);
    (0_usize..5, 0_usize..3, policy, steps).prop_map(|(dialect, mode, policy, steps)| Case {
        dialect: Dialect::ALL[dialect],
        persistence: MODES[mode],
        policy,
        steps,
    })
}

/// A chat that is played, with what its requests must be.
struct Play<'s> {
    case: Case,
    store: &'s MemoryStore,
    host: Host<'s>,
    /// The number of processes so far.
    processes: usize,
    turns: usize,
    model: &'static str,
    instructions: &'static str,
    /// The last request, its time, its model and its instructions.
    last: Option<(Vec<u8>, u64, &'static str, &'static str)>,
    /// What the next request of this process may be compared with by the renderer.
    is_compared: bool,
    /// When each result was made, by its number in the text.
    made: Rc<RefCell<Vec<u64>>>,
    now: Rc<Cell<u64>>,
}

impl<'s> Play<'s> {
    fn new(case: Case, store: &'s MemoryStore) -> Self {
        let host = open_at(store, "h0", 1_000_000);
        let mut play = Self {
            case,
            store,
            host,
            processes: 0,
            turns: 0,
            model: "m",
            instructions: "Be brief.",
            last: None,
            is_compared: false,
            made: Rc::default(),
            now: Rc::new(Cell::new(1_000_000)),
        };
        play.number_results();
        play
    }

    fn number_results(&mut self) {
        let (made, now) = (self.made.clone(), self.now.clone());
        self.host.tool = Box::new(move |_, _| {
            made.borrow_mut().push(now.get());
            let number = made.borrow().len() - 1;
            (Json::parse(&json!(format!("result-{number}-end")).to_string()).unwrap(), false)
        });
        self.host.reducer = Box::new(|question| match question {
            QuestionKind::Count(texts) => {
                ReducerReply::Counts(texts.iter().map(|text| text.len() as u64 / 4).collect())
            }
            QuestionKind::Summarize(_) => ReducerReply::Summary("They spoke.".into()),
            QuestionKind::Reduce(messages) => {
                let messages: Vec<Value> = serde_json::from_str(messages.as_str()).unwrap();
                let kept: Vec<Value> = messages.into_iter().skip(1).collect();
                ReducerReply::Messages(Json::parse(&json!(kept).to_string()).unwrap())
            }
        });
    }

    fn reopen(&mut self, pause: u64) {
        self.processes += 1;
        let now = self.host.clock.now() + pause;
        self.host = open_at(self.store, &format!("h{}", self.processes), now);
        self.number_results();
        self.is_compared = false;
    }

    fn setup(&self) -> RunSetup {
        let mut setup = setup(&format!("run{}", self.turns), self.case.dialect, true);
        setup.persistence = self.case.persistence;
        setup.provider.params = Json::parse(&json!({"model": self.model, "max_tokens": 9}).to_string()).unwrap();
        setup.instructions = Some(self.instructions.into());
        setup.policy.call = self.case.policy.clone();
        setup
    }

    fn step(&mut self, step: &Step) {
        let dialect = self.case.dialect;
        match *step {
            Step::Wait(ms) => self.host.clock.advance(ms),
            Step::Reopen => self.reopen(0),
            Step::OtherModel => self.model = if self.model == "m" { "n" } else { "m" },
            Step::OtherInstructions => self.instructions = "Be long.",
            Step::Append(age) => {
                self.turns += 1;
                let kind = if self.turns.is_multiple_of(2) { SourceKind::External } else { SourceKind::Context };
                let (at, source) = (self.host.clock.now() - age, Source { kind, id: None });
                append_of(&self.host, CHAT, &imported(self.turns), Origin { at, source, ..Origin::default() });
            }
            Step::Turn(rounds) => {
                self.turns += 1;
                let began = self.host.clock.now();
                self.now.set(began);
                let setup = self.setup();
                ask(&mut self.host, setup, rounds);
                self.check(began);
            }
            Step::Kill(rounds, writes, pause) => {
                self.turns += 1;
                let began = self.host.clock.now();
                self.now.set(began);
                let setup = self.setup();
                self.host.start(setup.clone(), "Go").unwrap();
                self.host.writes_left = Some(writes);
                let outcome = self.host.drive(|body| say(body, dialect, rounds));
                let has_sent = !self.host.sent.is_empty();
                self.check(began);
                if !has_sent {
                    // The journal may have what was decided, but not why.
                    self.last = None;
                }
                self.reopen(pause);
                if outcome.is_none() && self.host.pending().iter().any(|entry| entry.id == setup.id) {
                    self.now.set(self.host.clock.now());
                    self.host.resume(setup).unwrap();
                    let outcome = self.host.drive(|body| say(body, dialect, rounds)).unwrap();
                    assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
                    self.check(began);
                }
            }
        }
    }

    /// Checks the requests of a run that began then.
    fn check(&mut self, began: u64) {
        let now = self.host.clock.now();
        let prefixes = prefixes(&std::mem::take(&mut self.host.events));
        let sent = std::mem::take(&mut self.host.sent);
        // The last one may have been built and not sent.
        assert!(sent.len() <= prefixes.len());
        for (body, prefix) in sent.into_iter().zip(prefixes) {
            if let Some((last, at, model, instructions)) = self.last.take() {
                let is_same = model == self.model && instructions == self.instructions;
                match prefix.cut {
                    None => check_extends(&last, &body, self.case.dialect),
                    Some(Cut::Model) => assert_ne!(model, self.model),
                    Some(Cut::Instructions) => assert_ne!(instructions, self.instructions),
                    Some(Cut::Idle) => assert!(is_same && began > at + 300_000 - 1_000, "{began} {at}"),
                    Some(Cut::Budget) => assert!(has_budget(&self.case.policy)),
                    Some(cut) => panic!("{cut:?}"),
                }
                if prefix.cut.is_none() && self.is_compared {
                    assert_eq!(prefix.changed_by, None);
                    // Of a body that had to be repaired, as one that begins with an answer has, less is known.
                    let is_repaired = prefix.reused_bytes == 0 && self.has_custom_reducer();
                    assert!(is_repaired || prefix.reused_bytes == length_of(&last, self.case.dialect));
                }
                if prefix.cut.is_some_and(|cut| cut != Cut::Budget) {
                    self.check_fresh(&body, began);
                }
            }
            self.last = Some((body, now, self.model, self.instructions));
            self.is_compared = true;
        }
    }

    fn has_custom_reducer(&self) -> bool {
        self.case.policy.reducers.iter().flatten().any(|reducer| matches!(reducer, Reducer::Custom { .. }))
    }

    /// Checks that no result in a body is older than its window.
    fn check_fresh(&self, body: &[u8], began: u64) {
        let Some(Window::Millis(window)) = self.case.policy.freshness else { return };
        let body = String::from_utf8_lossy(body);
        for (number, at) in self.made.borrow().iter().enumerate() {
            let is_sent = body.contains(&format!("result-{number}-end"));
            assert!(!is_sent || began.saturating_sub(*at) <= window + 1_000, "result {number}: {body}");
        }
    }
}

fn has_budget(policy: &PolicyLayer) -> bool {
    policy.reducers.iter().flatten().any(|reducer| matches!(reducer, Reducer::TokenBudget { .. }))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, max_shrink_iters: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn r72_each_request_of_a_session_extends_the_one_before_until_a_cut(case in a_case()) {
        let store = MemoryStore::default();
        let steps = case.steps.clone();
        let mut play = Play::new(case, &store);
        for step in &steps {
            play.step(step);
        }
    }
}
