//! Turns of one session that begins conversations at its service, interleaved with what may happen to them: kills after
//! any write, lost and cut answers, conversations that are lost, other instructions (R23, R25, R27). Nothing is doubled
//! and nothing lost. The application looks at the conversation before it lets a request be sent again, and lets the
//! session answer where the conversation has the request.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::begun_conversations::{ask, begun, callback, history_of, kept};
use super::scripted_host::*;
use crate::conversation_service::{ConversationService, rounds, words_of};
use rethread::error::ErrorCode;
use rethread::owner::StateOwner;
use rethread::run::{Persistence, RunInput, RunOutcome, RunSetup, RunStatus};
use rethread::store::MemoryStore;
use serde_json::Value;
use std::collections::BTreeSet;

/// The number of interleavings, and with `npm test -- --long`.
const USUAL: u64 = 100;
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
    service: ConversationService,
    choices: Choices,
    /// The number of hosts and of questions so far.
    hosts: u64,
    questions: u64,
    /// True if the service has the newest request.
    is_delivered: bool,
    /// What the application decided of requests without an answer.
    decisions: BTreeSet<bool>,
    /// What happened, for a failure.
    events: Vec<String>,
}

impl<'s> World<'s> {
    fn new(store: &'s MemoryStore, seed: u64) -> Self {
        let choices = Choices(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) + 1);
        let (service, events) = (ConversationService::new(rounds(1)), Vec::new());
        let decisions = BTreeSet::new();
        Self { store, service, choices, hosts: 0, questions: 0, is_delivered: false, decisions, events }
    }

    fn host(&mut self) -> Host<'s> {
        self.hosts += 1;
        Host::open(self.store, "s", &format!("h{}", self.hosts))
    }

    fn setup(&mut self, run: &str) -> RunSetup {
        let mut setup = kept(run, begun());
        setup.provider.stream = self.choices.one_in(2);
        setup.retry.approve_unsafe_replay = Some(callback());
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

    /// Runs a turn, with kills and failures, until it finishes.
    fn turn(&mut self) {
        self.questions += 1;
        let (question, run) = (format!("question {}", self.questions), format!("r{}", self.questions));
        let mut host = self.host();
        let mut setup = self.setup(&run);
        if self.choices.one_in(3) {
            host.writes_left = Some(usize::try_from(self.choices.below(7)).unwrap());
        }
        host.start(setup.clone(), &question).unwrap();
        for _ in 0..20 {
            let outcome = self.drive(&mut host, setup.provider.stream);
            let error = outcome.as_ref().and_then(|outcome| outcome.error.clone());
            self.events.push(format!("{run}: {:?} {error:?}", outcome.as_ref().map(|outcome| outcome.status)));
            if outcome.is_some_and(|outcome| outcome.status == RunStatus::Finished) {
                return;
            }
            if error.is_some_and(|error| error.code == ErrorCode::ReplayUnsafe) {
                setup.owner = StateOwner::Session;
            }
            host = self.host();
            if host.pending().iter().any(|entry| entry.id == run) {
                host.resume(setup.clone()).unwrap();
            } else if history_of(&mut host).contains(&format!("user: {question}")) {
                // A run whose answer broke off is over: its conversation has the question.
                return;
            } else {
                host.start(setup.clone(), &question).unwrap();
            }
        }
        panic!("the run does not end: {:#?}", self.events);
    }

    /// Drives a run until it ends, or its process is killed.
    fn drive(&mut self, host: &mut Host<'s>, stream: bool) -> Option<RunOutcome> {
        let url = host.url.clone();
        loop {
            let outcome = host.drive(|body| self.answer(&url.borrow(), body, stream));
            let question = host.run.as_mut().unwrap().take_replay_question();
            if outcome.is_some() || question.is_none() || host.writes_left == Some(0) {
                return outcome;
            }
            let approved = !self.is_delivered;
            self.decisions.insert(approved);
            self.events.push(format!("approved: {approved}"));
            host.handle(RunInput::ReplayReply(approved)).unwrap();
        }
    }

    /// Answers a request, or loses it or its answer.
    fn answer(&mut self, url: &str, body: &Value, stream: bool) -> Answer {
        let what = self.choices.below(20);
        if what == 0 {
            self.events.push("all conversations are lost".into());
            self.service.conversations.clear();
        }
        self.service.stream = stream;
        let before = self.service.requests.len();
        let answer = if what == 1 { Answer::Unreachable } else { self.service.answer(url, body) };
        self.is_delivered = self.service.requests.len() > before;
        let words = words_of(body["inputs"].as_array().unwrap());
        self.events.push(format!("{url} {words:?} is accepted: {} ({what})", self.is_delivered));
        match (answer, what) {
            (answer, _) if !self.is_delivered => answer,
            (_, 2) => Answer::Hang,
            (Answer::Bytes(bytes), 3) => Answer::Cut(bytes[..bytes.len() / 2].to_vec()),
            (Answer::Bytes(bytes), 4) => Answer::Partly(bytes[..bytes.len() / 3].to_vec()),
            (_, 5) => Answer::Status(529, Vec::new(), "{}".into()),
            (_, 6) => Answer::Unreachable,
            (answer, _) => answer,
        }
    }

    /// Checks every conversation that the service has, and the history.
    fn check(&mut self) {
        let mut host = self.host();
        let words = history_of(&mut host);
        for question in 1..=self.questions {
            let found = words.iter().filter(|word| **word == format!("user: question {question}")).count();
            assert_eq!(found, 1, "{question} in {words:#?}\n{:#?}", self.events);
        }
        // What the next turn reaches the service with is the whole history.
        self.service.script = Box::new(|_| Ok("The end.".into()));
        self.service.stream = false;
        let outcome = ask(&mut host, &mut self.service, kept("last", begun()), "last question");
        assert_eq!(outcome.status, RunStatus::Finished, "{:?}\n{:#?}", outcome.error, self.events);
        let conversation = outcome.conversation_id.unwrap();
        let seen: BTreeSet<String> = self.service.words(&conversation).into_iter().collect();
        let missing: Vec<_> = words.iter().filter(|word| !seen.contains(*word)).collect();
        assert!(missing.is_empty(), "{missing:#?} of {seen:#?}\n{:#?}", self.events);
        for id in self.service.conversations.keys() {
            let words = self.service.words(id);
            let said: Vec<_> = words.iter().filter(|word| !word.starts_with("call ")).collect();
            let distinct: BTreeSet<_> = said.iter().collect();
            assert_eq!(distinct.len(), said.len(), "doubled in {id}: {words:#?}\n{:#?}", self.events);
        }
    }
}

#[test]
fn r23_r25_r27_r77_interleaved_turns_of_conversations_double_and_lose_nothing() {
    let count = if std::env::var_os("RETHREAD_LONG").is_some() { LONG } else { USUAL };
    let (mut refused, mut decisions, mut begun) = (BTreeSet::new(), BTreeSet::new(), 0);
    for seed in 0..count {
        let store = MemoryStore::default();
        let mut world = World::new(&store, seed);
        for _ in 0..4 {
            world.turn();
        }
        world.check();
        refused.extend(world.service.refused.iter().copied());
        decisions.append(&mut world.decisions);
        begun += world.service.places().iter().filter(|place| **place == "begins").count();
    }
    // They show something only if all of this happens.
    assert_eq!((refused.into_iter().collect::<Vec<_>>(), decisions.len()), (vec![404], 2));
    assert!(begun > usize::try_from(count + count / 4).unwrap(), "{begun}");
}
