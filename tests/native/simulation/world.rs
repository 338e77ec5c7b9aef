//! Two sessions, two processes on each, and a script of what they do while the store fails.

use super::expected::ExpectedSession;
use super::faults::{FaultPlan, Random, Schedule, is_injected};
use super::scripted_host::{Answer, CHAT, CLAUDE, Host, RESPONSES, block_on, setup, three_tools};
use super::stores::{Backend, SimulatedStore};
use rethread::error::{Error, ErrorCode};
use rethread::history::{JoinBase, Origin, join};
use rethread::json::JsonRef;
use rethread::message::Dialect;
use rethread::provider::decode_body;
use rethread::run::{RunInput, RunStatus};
use rethread::store::{Change, Committed, LogStore, MergeOutcome, SessionLog, commit, merge_oldest, refresh};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

const SESSIONS: [&str; 2] = ["s", "s/log/0"];
/// How often a run is taken over before the outage ends.
const MAX_TAKES: u32 = 20;
const DIALECTS: [(Dialect, bool); 4] = [(CHAT, false), (CHAT, true), (CLAUDE, true), (RESPONSES, false)];

/// What a process does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Appends a question and its answer.
    Append,
    /// Sets the title.
    Title,
    /// Appends a call without a result.
    OpenCall,
    /// Appends the result of an open call.
    LateResult,
    /// Runs the tool loop, perhaps killed on the way.
    Run,
    /// A run whose model fails, which is resumed.
    FailedRun,
    /// Both processes append at once.
    Race,
    Delete,
    /// Lists sessions and invocations.
    List,
    /// Merges old records into segments.
    Merge,
    /// Dies, and is started again.
    Die,
}

/// How often each step comes.
const FREQUENT: [Step; 19] = [
    Step::Append,
    Step::Append,
    Step::Append,
    Step::Append,
    Step::Append,
    Step::Title,
    Step::OpenCall,
    Step::OpenCall,
    Step::LateResult,
    Step::LateResult,
    Step::Run,
    Step::Run,
    Step::FailedRun,
    Step::Race,
    Step::Delete,
    Step::List,
    Step::Merge,
    Step::Merge,
    Step::Die,
];

/// What a process does when the store returned an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterError {
    /// It tries the same again.
    Retries,
    /// It dies, and is started again.
    Dies,
    /// One or the other.
    Either,
}

/// Where an operation came to an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Acknowledged,
    /// The process died, so nobody knows.
    Unknown,
    /// Another process deleted the session.
    Deleted,
}

pub struct World<'s> {
    store: &'s SimulatedStore,
    random: Random,
    after_error: AfterError,
    expected: Vec<ExpectedSession>,
    /// Two processes a session. One that is in use is taken out.
    processes: Vec<Option<Host<'s>>>,
    names: u64,
    /// Every invocation whose tool was run.
    tools_run: BTreeSet<String>,
    faults_checked: u64,
    merges: u64,
}

/// A script of a seed.
pub fn script(seed: u64, steps: usize) -> Vec<(usize, Step)> {
    let mut random = Random::new(seed ^ 0x5c21_9700);
    (0..steps).map(|_| (random.below(2 * SESSIONS.len() as u64) as usize, random.pick(&FREQUENT))).collect()
}

/// A simulation: a script on a store that fails by a schedule.
#[derive(Clone, Copy, Debug)]
pub struct Simulation {
    pub backend: Backend,
    pub seed: u64,
    pub steps: usize,
    pub schedule: Schedule,
    pub after_error: AfterError,
}

impl Simulation {
    /// Runs the script, and checks the invariants whenever the store has failed, and at the end. Returns the number of
    /// operations of the store, of faults, and of merges.
    pub fn run(self) -> [u64; 3] {
        let store = SimulatedStore::new(self.backend, FaultPlan::new(self.schedule, self.seed));
        let mut world = World::new(&store, self);
        for (process, step) in script(self.seed, self.steps) {
            world.step(process, step);
            let (_, faults) = store.plan.counts();
            if faults != world.faults_checked {
                world.faults_checked = faults;
                world.observe(process / 2);
            }
        }
        for session in 0..SESSIONS.len() {
            world.observe(session);
            world.expected[session].check_bodies(&store);
        }
        let (operations, faults) = store.plan.counts();
        [operations, faults, world.merges]
    }
}

impl<'s> World<'s> {
    fn new(store: &'s SimulatedStore, simulation: Simulation) -> Self {
        let mut world = Self {
            store,
            random: Random::new(simulation.seed),
            after_error: simulation.after_error,
            expected: SESSIONS.iter().map(|id| ExpectedSession::new(id)).collect(),
            processes: Vec::new(),
            names: 0,
            tools_run: BTreeSet::new(),
            faults_checked: 0,
            merges: 0,
        };
        for process in 0..2 * SESSIONS.len() {
            let host = world.start(process);
            world.processes.push(Some(host));
        }
        world
    }

    /// A name that nothing else has.
    fn name(&mut self, what: &str) -> String {
        self.names += 1;
        format!("{what}{}", self.names)
    }

    /// Starts a process: opens the store and the session, as often as it takes.
    fn start(&mut self, process: usize) -> Host<'s> {
        let name = self.name("host");
        loop {
            let opened = self.store.reopen().and_then(|()| Host::try_open(self.store, SESSIONS[process / 2], &name));
            match opened {
                Ok(host) => return host,
                Err(error) => assert!(is_injected(&error), "a session that cannot be opened: {error:?}"),
            }
        }
    }

    fn restart(&mut self, process: usize) {
        let host = self.start(process);
        self.processes[process] = Some(host);
    }

    fn dies(&mut self) -> bool {
        match self.after_error {
            AfterError::Retries => false,
            AfterError::Dies => true,
            AfterError::Either => self.random.one_in(2),
        }
    }

    fn log(&self, process: usize) -> &RefCell<SessionLog> {
        &self.processes[process].as_ref().unwrap().log
    }

    fn observe(&mut self, session: usize) {
        self.expected[session].observe(self.store);
    }

    fn step(&mut self, process: usize, step: Step) {
        match step {
            Step::Append => {
                let token = self.name("turn");
                let change = self.turn(process, &token);
                let outcome = self.commit(process, &change);
                self.note_turn(process, &token, outcome);
            }
            Step::Title => self.set_title(process),
            Step::OpenCall => self.open_call(process),
            Step::LateResult => self.late_result(process),
            Step::Run => self.run(process, false),
            Step::FailedRun => self.run(process, true),
            Step::Race => self.race(process / 2),
            Step::Delete => self.delete(process / 2),
            Step::List => self.list(process / 2),
            Step::Merge => self.merge(process),
            Step::Die => self.restart(process),
        }
    }

    /// A change that appends messages of the Chat Completions dialect.
    fn change(&mut self, process: usize, messages: &str) -> Change {
        let operation = self.name("operation");
        let host = self.processes[process].as_ref().unwrap();
        let log = host.log.borrow();
        let items = decode_body(CHAT, JsonRef::parse(messages).unwrap()).unwrap();
        let origin = Origin { at: 1_000, ..Origin::default() };
        let joined = join(JoinBase::history(&log.history), items, &origin, &host.ids);
        Change { operation, at: 1_000, entries: joined.entries, ..Change::default() }
    }

    /// A question and its answer; now and then long enough to be split over rows.
    fn turn(&mut self, process: usize, token: &str) -> Change {
        let length = if self.random.one_in(4) { 900 } else { 9 };
        let answer = "x".repeat(length);
        self.change(
            process,
            &format!(r#"[{{"role":"user","content":"{token}"}},{{"role":"assistant","content":"{answer}"}}]"#),
        )
    }

    fn note_turn(&mut self, process: usize, token: &str, outcome: Outcome) {
        let expected = &mut self.expected[process / 2];
        match outcome {
            Outcome::Acknowledged => expected.acknowledge(token, 2),
            Outcome::Unknown => expected.doubt(token, 2),
            Outcome::Deleted => expected.exclude(token),
        }
    }

    /// Commits until the outcome is known or the process has died.
    fn commit(&mut self, process: usize, change: &Change) -> Outcome {
        loop {
            let committed = block_on(commit(self.store, self.log(process), change));
            match committed {
                Ok(_) => return Outcome::Acknowledged,
                Err(error) if error.code == ErrorCode::NotFound => {
                    self.restart(process);
                    return Outcome::Deleted;
                }
                Err(error) => assert!(is_injected(&error), "{error:?}"),
            }
            if self.dies() {
                self.restart(process);
                return Outcome::Unknown;
            }
        }
    }

    fn set_title(&mut self, process: usize) {
        let (operation, title) = (self.name("operation"), self.name("title"));
        let text = title.clone();
        let edit: rethread::store::HeadEdit = Box::new(move |head| head.title = Some(text.clone()));
        let change = Change { operation, at: 5, edit: Some(edit), ..Change::default() };
        let outcome = self.commit(process, &change);
        self.expected[process / 2].title(&title, outcome == Outcome::Acknowledged);
    }

    fn open_call(&mut self, process: usize) {
        let token = self.name("call");
        let call = format!(r#"{{"id":"{token}","type":"function","function":{{"name":"look","arguments":"{{}}"}}}}"#);
        let change = self.change(
            process,
            &format!(
                r#"[{{"role":"user","content":"{token}"}},{{"role":"assistant","content":null,"tool_calls":[{call}]}}]"#
            ),
        );
        let outcome = self.commit(process, &change);
        self.note_turn(process, &token, outcome);
    }

    fn late_result(&mut self, process: usize) {
        // Where this fails, the process goes on with what it has read.
        let _ = block_on(refresh(self.store, self.log(process)));
        let open = self.log(process).borrow().history.open_calls().map(|call| call.call_id.clone()).next();
        let Some(call) = open else { return };
        let content = self.name("result");
        let change =
            self.change(process, &format!(r#"[{{"role":"tool","tool_call_id":"{call}","content":"{content}"}}]"#));
        let outcome = self.commit(process, &change);
        if outcome == Outcome::Acknowledged {
            self.expected[process / 2].answer(&call, &content);
        }
    }

    /// Runs the tool loop, with the death of the process, appends of the other one and errors of the store in between.
    fn run(&mut self, process: usize, model_fails: bool) {
        let name = self.name("run");
        let (dialect, stream) = self.random.pick(&DIALECTS);
        let other = process ^ 1;
        let mut host = self.processes[process].take().unwrap();
        host.writes_left = self.random.one_in(2).then(|| self.random.below(11) as usize);
        host.start(setup(&name, dialect, stream), &name).unwrap();
        let mut fails = model_fails;
        let mut takes = 0;
        let outcome = loop {
            let ended = host.drive(|body| {
                if std::mem::take(&mut fails) {
                    return Answer::Status(400, Vec::new(), r#"{"error":{"message":"no"}}"#.into());
                }
                if self.random.one_in(4) {
                    self.step(other, Step::Append);
                }
                three_tools(body)
            });
            for (_, invocation, _) in host.ran.drain(..) {
                assert!(self.tools_run.insert(invocation), "a tool ran twice");
            }
            let died = match ended {
                Some(outcome) if outcome.status == RunStatus::Finished => break Outcome::Acknowledged,
                Some(_) => true,
                // It was killed, or waits for a save that failed.
                None => host.writes_left == Some(0) || self.dies(),
            };
            if !died {
                host.handle(RunInput::RetrySave).unwrap();
                continue;
            }
            drop(host);
            host = self.start(process);
            let mut resumed = false;
            while !resumed && host.pending().iter().any(|entry| entry.id == name) {
                takes += 1;
                assert!(takes <= MAX_TAKES + 1, "the store works again, and the run does not end");
                // Each take is a record to read for the next one: an outage without an end would outrun the run.
                self.store.plan.set_paused(takes > MAX_TAKES);
                match host.resume(setup(&name, dialect, stream)) {
                    Ok(()) => resumed = true,
                    Err(error) => {
                        assert!(is_injected(&error), "a run that cannot be resumed: {error:?}");
                        host = self.start(process);
                    }
                }
            }
            if !resumed {
                break Outcome::Unknown;
            }
        };
        self.store.plan.set_paused(false);
        self.processes[process] = Some(host);
        let expected = &mut self.expected[process / 2];
        match outcome {
            Outcome::Acknowledged => expected.acknowledge(&name, 4),
            Outcome::Unknown | Outcome::Deleted => expected.doubt(&name, 4),
        }
    }

    /// Both processes of a session append at once. The seed decides which of them goes on at each operation of the
    /// store.
    fn race(&mut self, session: usize) {
        let tokens = [self.name("left"), self.name("right")];
        let changes: Vec<_> = (0..2).map(|at| self.turn(2 * session + at, &tokens[at])).collect();
        self.store.yields.set(true);
        let results = {
            let store = self.store;
            let append = |at: usize| commit_stubbornly(store, self.log(2 * session + at), &changes[at]);
            let mut random = self.random.clone();
            in_any_order(&mut random, append(0), append(1))
        };
        self.random.number();
        self.store.yields.set(false);
        for (at, result) in results.into_iter().enumerate() {
            let process = 2 * session + at;
            match result {
                Ok(_) => self.note_turn(process, &tokens[at], Outcome::Acknowledged),
                Err(error) => {
                    assert_eq!(error.code, ErrorCode::NotFound, "{error:?}");
                    self.restart(process);
                    self.note_turn(process, &tokens[at], Outcome::Deleted);
                }
            }
        }
    }

    fn delete(&mut self, session: usize) {
        while let Err(error) = block_on(self.store.delete_session(SESSIONS[session])) {
            assert!(is_injected(&error), "{error:?}");
        }
        self.expected[session].delete(self.store);
    }

    /// Merges as long as there is something to merge, or until it fails or another process is faster.
    fn merge(&mut self, process: usize) {
        // Where this fails, the process goes on with what it has read.
        let _ = block_on(refresh(self.store, self.log(process)));
        loop {
            let operation = self.name("merge");
            match block_on(merge_oldest(self.store, self.log(process), &operation)) {
                Ok(MergeOutcome::Progress) => self.merges += 1,
                Ok(MergeOutcome::Nothing | MergeOutcome::Conflict) => return,
                Err(error) => {
                    assert!(is_injected(&error), "{error:?}");
                    if self.dies() {
                        return self.restart(process);
                    }
                }
            }
        }
    }

    fn list(&mut self, session: usize) {
        let query = rethread::store::AuditQuery {
            session: Some(SESSIONS[session].to_owned()),
            limit: 3,
            ..rethread::store::AuditQuery::default()
        };
        let rows = block_on(self.store.invocations(&query));
        let heads = block_on(self.store.sessions(None, 0, None));
        for error in [rows.err(), heads.err()].into_iter().flatten() {
            assert!(is_injected(&error), "{error:?}");
        }
    }
}

/// Commits again after each error of the plan.
async fn commit_stubbornly(
    store: &SimulatedStore,
    log: &RefCell<SessionLog>,
    change: &Change,
) -> Result<Committed, Error> {
    loop {
        match commit(store, log, change).await {
            Err(error) if is_injected(&error) => {}
            ended => return ended,
        }
    }
}

/// Polls two futures until both are done, one of them at a time.
fn in_any_order<T>(random: &mut Random, one: impl Future<Output = T>, two: impl Future<Output = T>) -> [T; 2] {
    let (mut one, mut two) = (pin!(one), pin!(two));
    let (mut first, mut second) = (None, None);
    let context = &mut Context::from_waker(Waker::noop());
    loop {
        let left = random.one_in(2);
        if left && first.is_none() {
            if let Poll::Ready(value) = one.as_mut().poll(context) {
                first = Some(value);
            }
        } else if !left
            && second.is_none()
            && let Poll::Ready(value) = two.as_mut().poll(context)
        {
            second = Some(value);
        }
        match (first.take(), second.take()) {
            (Some(first), Some(second)) => return [first, second],
            unfinished => (first, second) = unfinished,
        }
    }
}
