//! Turns of one session whose owner is a chain of Gemini's interactions, interleaved with what may happen to them:
//! kills after any write, lost and cut answers, interactions and tokens that expire, answers without an id, in parts
//! or that are not finished, other instructions, and a second process that runs a turn meanwhile (R23, R25, R27).
//! Nothing is doubled and nothing lost.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::automatic;
use super::interactions::{INTERACTIONS, interacting};
use super::scripted_host::*;
use crate::interaction_service::{InteractionService, rounds, words_of};
use rethread::run::{Persistence, RunSetup, RunStatus};
use rethread::store::MemoryStore;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The number of interleavings, and with `npm test -- --long`.
const USUAL: u64 = 300;
const LONG: u64 = 3_000;

/// A source of choices.
struct Choices(u64);

impl Choices {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}

/// One interleaving.
struct World<'s> {
    store: &'s MemoryStore,
    service: InteractionService,
    choices: Choices,
    /// The number of hosts and of questions so far.
    hosts: u64,
    questions: u64,
    /// The questions whose runs have finished.
    finished: Vec<String>,
    /// How often each kind of event happened.
    counts: BTreeMap<&'static str, usize>,
    /// What happened, for a failure.
    events: Vec<String>,
}

impl<'s> World<'s> {
    fn new(store: &'s MemoryStore, seed: u64) -> Self {
        let choices = Choices(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) + 1);
        let mut service = InteractionService::new(rounds(1));
        service.has_turn_tokens = seed.is_multiple_of(2);
        let (finished, events) = (Vec::new(), Vec::new());
        Self { store, service, choices, hosts: 0, questions: 0, finished, counts: BTreeMap::new(), events }
    }

    fn host(&mut self) -> Host<'s> {
        self.hosts += 1;
        Host::open(self.store, "s", &format!("h{}", self.hosts))
    }

    fn note(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
        self.events.push(what.into());
    }

    fn setup(&mut self, run: &str) -> RunSetup {
        let mut setup = interacting(run, automatic());
        setup.provider.stream = self.choices.one_in(2);
        setup.persistence = match self.choices.below(3) {
            0 => Persistence::Run,
            1 => Persistence::Call,
            _ => Persistence::Result,
        };
        if self.choices.one_in(6) {
            setup.instructions = Some("Be long.".into());
        }
        setup
    }

    /// Runs a turn, with kills and failures, until it finishes or its process gives up. `may_nest`: another process may
    /// run a turn meanwhile.
    fn turn(&mut self, may_nest: bool) {
        self.questions += 1;
        let question = format!("question {}", self.questions);
        let run = format!("r{}", self.questions);
        let mut host = self.host();
        let setup = self.setup(&run);
        if self.choices.one_in(3) {
            host.writes_left = Some(usize::try_from(self.choices.below(7)).unwrap());
        }
        host.start(setup.clone(), &question).unwrap();
        for attempt in 0..20 {
            assert!(attempt < 19, "the run does not end: {:#?}", self.events);
            if self.drive(&mut host, &setup, may_nest && attempt == 0) == Some(RunStatus::Finished) {
                self.finished.push(question);
                return;
            }
            host = self.host();
            let is_pending = host.pending().iter().any(|entry| entry.id == run);
            if is_pending && self.choices.one_in(8) {
                self.note("a run is discarded");
                host.discard(&run);
                return;
            }
            self.events.push(format!("{run} goes on, pending: {is_pending}"));
            if is_pending {
                host.resume(setup.clone()).unwrap();
            } else {
                host.start(setup.clone(), &question).unwrap();
            }
        }
    }

    /// Drives a run until it ends, or its process is killed.
    fn drive(&mut self, host: &mut Host<'s>, setup: &RunSetup, may_nest: bool) -> Option<RunStatus> {
        let mut nests = may_nest && self.choices.one_in(4);
        let stream = setup.provider.stream;
        let outcome = host.drive(|body| {
            if std::mem::take(&mut nests) {
                self.note("another process runs a turn");
                self.turn(false);
            }
            self.answer(body, stream)
        });
        let error = outcome.as_ref().and_then(|outcome| outcome.error.as_ref()).map(|error| error.message.clone());
        self.events.push(format!("{}: {:?} {error:?}", setup.id, outcome.as_ref().map(|outcome| outcome.status)));
        outcome.map(|outcome| outcome.status)
    }

    /// Answers a request, or loses it or its answer.
    fn answer(&mut self, body: &Value, stream: bool) -> Answer {
        let what = self.choices.below(24);
        if what == 0 {
            self.note("all interactions expire");
            self.service.interactions.clear();
        }
        self.service.without_ids = what == 6;
        if what == 9 && body.get("continuation_token").is_some() {
            self.note("all tokens expire");
            self.service.pauses.issued.clear();
        }
        // A request that continues an answer has no input.
        let input = body["input"].as_array().cloned().unwrap_or_default();
        // A call of an answer that is not finished fails the run.
        let has_result = input.iter().any(|step| step["type"] == "function_result");
        self.service.status = (what == 7 && has_result).then_some("requires_continuation");
        self.service.stream = stream;
        self.service.pauses.next = if what >= 20 { usize::try_from(what - 19).unwrap() } else { 0 };
        let before = self.service.requests.len();
        let answer = if what == 1 { Answer::Unreachable } else { self.service.answer(body) };
        let is_accepted = self.service.requests.len() > before;
        let words = words_of(&input);
        if is_accepted && body.get("continuation_token").is_some() {
            self.note("an answer goes on");
        }
        let refused = self.service.refused.last();
        self.events.push(format!("{} {words:?} {is_accepted} {refused:?}", body["previous_interaction_id"]));
        if is_accepted && (what < 6) {
            self.note("an answer is lost");
            return match (answer, what) {
                (_, 2) => Answer::Hang,
                (Answer::Bytes(bytes), 3) => Answer::Cut(bytes[..bytes.len() / 2].to_vec()),
                (Answer::Bytes(bytes), 4) => Answer::Partly(bytes[..bytes.len() / 3].to_vec()),
                (_, 5) => Answer::Status(503, Vec::new(), "{}".into()),
                _ => Answer::Unreachable,
            };
        }
        answer
    }

    /// Checks every interaction that the service has kept, and the history.
    fn check(&mut self) {
        let mut host = self.host();
        let body: Value = serde_json::from_slice(&host.render(INTERACTIONS).body).unwrap();
        let words = words_of(body["input"].as_array().unwrap());
        for question in &self.finished {
            let found = words.iter().filter(|word| **word == format!("user: {question}")).count();
            assert_eq!(found, 1, "{question} in {words:#?}\n{:#?}", self.events);
        }
        let asked = words.iter().filter(|word| word.starts_with("user: ")).collect::<Vec<_>>();
        assert_eq!(asked.iter().collect::<BTreeSet<_>>().len(), asked.len(), "{words:#?}\n{:#?}", self.events);
        for steps in self.service.interactions.values() {
            let words = words_of(steps);
            let said = words.iter().filter(|word| !word.starts_with("call ")).collect::<Vec<_>>();
            let distinct = said.iter().collect::<BTreeSet<_>>();
            assert_eq!(distinct.len(), said.len(), "doubled: {words:#?}\n{:#?}", self.events);
        }
        // What the next turn reaches the service with is the whole history.
        self.service.script = Box::new(|_| Ok("The end.".into()));
        self.service.pauses.next = 0;
        (self.service.without_ids, self.service.status, self.service.stream) = (false, None, false);
        let outcome = host.ask(interacting("last", automatic()), "last question", |body| self.service.answer(body));
        assert_eq!(outcome.status, RunStatus::Finished, "{:?}\n{:#?}", outcome.error, self.events);
        let seen: BTreeSet<String> = words_of(self.service.newest()).into_iter().collect();
        let missing: Vec<_> = words.iter().filter(|word| !seen.contains(*word)).collect();
        assert!(missing.is_empty(), "{missing:#?} of {seen:#?}\n{:#?}", self.events);
    }
}

#[test]
fn r23_r25_r27_r77_interleaved_turns_of_interactions_double_and_lose_nothing() {
    let count = if std::env::var_os("RETHREAD_LONG").is_some() { LONG } else { USUAL };
    let (mut refusals, mut counts, mut continued) = (BTreeSet::new(), BTreeMap::new(), 0);
    for seed in 0..count {
        let store = MemoryStore::default();
        let mut world = World::new(&store, seed);
        for _ in 0..4 {
            world.turn(true);
        }
        world.check();
        assert!(world.service.invalid.is_empty(), "{:#?}\n{:#?}", world.service.invalid, world.events);
        refusals.extend(world.service.refused.iter().cloned());
        continued += world.service.chain().iter().filter(|previous| **previous != "none").count();
        for (what, times) in world.counts {
            *counts.entry(what).or_insert(0) += times;
        }
    }
    // They show something only if all of this happens.
    assert_eq!(refusals.into_iter().collect::<Vec<_>>(), ["invalid_request", "not_found"]);
    assert!(counts.len() == 6 && counts.values().all(|times| *times > 30), "{counts:?}");
    assert!(continued > 1_000, "{continued}");
}
