//! Scripts of a host with virtual time: replies in any order, late, twice or failed, kills, cancels and an owner that
//! was frozen, in each mode.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::scripted_host::*;
use proptest::prelude::*;
use rethread::clock::Clock;
use rethread::json::Json;
use rethread::message::{Dialect, Role};
use rethread::run::{
    Effect, EffectKind, EffectReply, OnInterrupted, Persistence, RunInput, RunSetup, RunStatus, StoredRun, ToolSettings,
};
use rethread::store::{MemoryStore, read_journal};
use rethread::tool::{InvocationStatus, ToolInvocation};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const MODES: [Persistence; 3] = [Persistence::Run, Persistence::Call, Persistence::Result];

/// What a script does next. A number chooses among the open effects.
#[derive(Clone, Debug)]
enum Action {
    /// Answers a model call; starts a tool, or returns its result.
    Execute(usize),
    /// A model call or a tool fails; the second number chooses how.
    Fail(usize, u8),
    /// Repeats the last reply.
    Repeat,
    /// Replies to an effect that is not open.
    Stray(u8),
    /// Writes so many saves.
    Write(usize),
    /// The owner ends with what it has not written, and another host resumes the run.
    Kill,
    /// Another host resumes the run; its former holder is only frozen.
    TakeOver,
    /// The former holder goes on: it executes an effect and writes.
    Thaw(usize),
    Cancel,
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        8 => (0_usize..4).prop_map(Action::Execute),
        8 => (1_usize..4).prop_map(Action::Write),
        2 => (0_usize..4, any::<u8>()).prop_map(|(at, how)| Action::Fail(at, how)),
        1 => Just(Action::Repeat),
        1 => any::<u8>().prop_map(Action::Stray),
        1 => Just(Action::Kill),
        1 => Just(Action::TakeOver),
        2 => (0_usize..4).prop_map(Action::Thaw),
        1 => Just(Action::Cancel),
    ]
}

/// What the owner has replied, and what of it is acknowledged: every save was written since.
#[derive(Default, Debug)]
struct Ledger {
    answers: usize,
    results: BTreeSet<String>,
    acknowledged_answers: usize,
    acknowledged_results: BTreeSet<String>,
    executions: BTreeMap<String, u32>,
}

impl Ledger {
    fn acknowledge(&mut self) {
        self.acknowledged_answers = self.answers;
        self.acknowledged_results = self.results.clone();
    }

    /// What another host finds in the journal. It has everything that was acknowledged.
    fn recover(&mut self, answers: usize, results: BTreeSet<String>) {
        assert!(answers >= self.acknowledged_answers, "an acknowledged answer is lost");
        assert!(answers <= self.answers, "an answer is journaled that nobody gave");
        assert!(results.is_superset(&self.acknowledged_results), "an acknowledged result is lost");
        (self.answers, self.results) = (answers, results);
        self.acknowledge();
    }
}

/// A host with the effects whose start it has reported.
struct Owner<'s> {
    host: Host<'s>,
    started: Vec<String>,
    last: Option<(String, EffectReply)>,
}

impl<'s> Owner<'s> {
    fn new(host: Host<'s>) -> Self {
        Self { host, started: Vec::new(), last: None }
    }

    fn status(&self) -> RunStatus {
        self.host.run.as_ref().unwrap().status()
    }

    fn effect(&self, at: usize) -> Option<Effect> {
        let effects = self.host.run.as_ref().unwrap().effects();
        effects.get(at % effects.len().max(1)).map(|effect| (*effect).clone())
    }

    fn reply(&mut self, effect: &str, reply: EffectReply) {
        self.host.reply(effect, reply.clone()).unwrap();
        self.last = Some((effect.to_owned(), reply));
    }

    /// Writes saves; true if none is left.
    fn write(&mut self, count: usize) -> bool {
        (0..count).any(|_| !self.host.write_one())
    }
}

/// One run, from its start to its end.
struct Scenario<'s> {
    store: &'s MemoryStore,
    owner: Owner<'s>,
    former: Option<Owner<'s>>,
    setup: RunSetup,
    /// Tools per answer; after these comes text.
    rounds: Vec<usize>,
    ledger: Ledger,
    hosts: usize,
}

fn result() -> EffectReply {
    EffectReply::ToolResult { content: Json::parse("[1]").unwrap(), is_error: false }
}

fn is_run(id: Option<&String>) -> bool {
    id.is_some_and(|id| id == "run")
}

/// A result of the tool; an interrupted call is closed with another one.
fn has_own_result(call: &ToolInvocation) -> bool {
    call.result.is_some() && matches!(call.status, InvocationStatus::Ok | InvocationStatus::Error)
}

impl Scenario<'_> {
    fn answer(&self, round: usize) -> Say {
        match self.rounds.get(round) {
            Some(count) if *count > 0 => {
                let ids: Vec<String> = (0..*count).map(|at| format!("call_{round}_{at}")).collect();
                calls(&ids.iter().map(|id| (id.as_str(), "look", "{}")).collect::<Vec<_>>())
            }
            _ => text("Done."),
        }
    }

    fn execute(&mut self, at: usize) {
        let Some(effect) = self.owner.effect(at) else { return };
        match &effect.kind {
            EffectKind::CallModel { body, stream, dialect, .. } => {
                let body: Value = serde_json::from_slice(body).unwrap();
                valid(&body, *dialect);
                let round = rounds_in(&body);
                assert!(round >= self.ledger.acknowledged_answers, "an acknowledged model call is repeated");
                self.answer_model(&effect, round, *stream, *dialect);
            }
            EffectKind::RunTool { invocation, .. } => self.execute_tool(&effect, invocation),
            EffectKind::Wait { ms } => {
                self.owner.host.clock.advance(*ms);
                self.owner.reply(&effect.id, EffectReply::Waited);
            }
        }
    }

    fn answer_model(&mut self, effect: &Effect, round: usize, stream: bool, dialect: Dialect) {
        let say = self.answer(round);
        let reply = if stream {
            let begin = EffectReply::ResponseStarted { status: 200, headers: Vec::new() };
            self.owner.host.reply(&effect.id, begin).unwrap();
            let bytes = say.stream(dialect);
            self.owner.host.handle(RunInput::Bytes { effect: effect.id.clone(), bytes }).unwrap();
            EffectReply::ResponseEnd
        } else {
            EffectReply::Response { status: 200, headers: Vec::new(), body: say.body(dialect) }
        };
        self.ledger.answers = round + 1;
        self.owner.reply(&effect.id, reply);
    }

    fn execute_tool(&mut self, effect: &Effect, invocation: &str) {
        assert!(!self.ledger.acknowledged_results.contains(invocation), "a tool with a stored result runs again");
        if self.owner.started.contains(&effect.id) {
            self.ledger.results.insert(invocation.to_owned());
            self.owner.reply(&effect.id, result());
        } else if self.start_tool(effect, invocation) {
            self.ledger.acknowledge();
        }
    }

    /// Reports the start; the tool is executed if that was written. Returns false if it was not.
    fn start_tool(&mut self, effect: &Effect, invocation: &str) -> bool {
        self.owner.started.push(effect.id.clone());
        self.owner.reply(&effect.id, EffectReply::Started);
        let is_written = self.owner.write(99) && self.owner.status() == RunStatus::Running;
        if is_written {
            *self.ledger.executions.entry(invocation.to_owned()).or_insert(0) += 1;
        }
        is_written
    }

    fn fail(&mut self, at: usize, how: u8) {
        let Some(effect) = self.owner.effect(at) else { return };
        let failed = EffectReply::Failed { code: None, message: "reset by peer".into(), sent: None };
        match &effect.kind {
            EffectKind::CallModel { stream, dialect, body, .. } => {
                valid(&serde_json::from_slice(body).unwrap(), *dialect);
                if how.is_multiple_of(3) {
                    return self.owner.reply(&effect.id, failed);
                }
                if how % 3 == 1 || !*stream {
                    let body = br#"{"error":{"message":"overloaded"}}"#.to_vec();
                    return self
                        .owner
                        .reply(&effect.id, EffectReply::Response { status: 503, headers: Vec::new(), body });
                }
                let begin = EffectReply::ResponseStarted { status: 200, headers: Vec::new() };
                self.owner.host.reply(&effect.id, begin).unwrap();
                let mut bytes = self.answer(0).stream(*dialect);
                bytes.truncate(bytes.len() / 3);
                self.owner.host.handle(RunInput::Bytes { effect: effect.id.clone(), bytes }).unwrap();
                self.owner.reply(&effect.id, failed);
            }
            EffectKind::RunTool { invocation, .. } if self.owner.started.contains(&effect.id) => {
                self.ledger.results.insert(invocation.clone());
                self.owner.reply(&effect.id, failed);
            }
            _ => self.execute(at),
        }
    }

    fn repeat(&mut self) {
        if let Some((effect, reply)) = self.owner.last.clone() {
            let _ = self.owner.host.reply(&effect, reply); // an effect that is not open is an error of the host
        }
    }

    fn stray(&mut self, number: u8) {
        let effect = format!("e{number}");
        if self.owner.host.run.as_ref().unwrap().effects().iter().all(|open| open.id != effect) {
            // Ignored if the effect was open once, else an error; it changes nothing.
            let _ = self.owner.host.reply(&effect, result());
        }
    }

    /// Another host resumes the run. Returns false if there is nothing to resume.
    fn take_over(&mut self, is_killed: bool) -> bool {
        self.hosts += 1;
        let mut next = Host::open(self.store, "s", &format!("h{}", self.hosts));
        next.clock.advance(self.owner.host.clock.now() - next.clock.now());
        let entry = next.pending().into_iter().find(|entry| entry.id == "run");
        let Some(entry) = entry else {
            let log = next.log.borrow();
            // A cancelled run stays in the head, and is not pending.
            let is_over = log.head.runs.iter().any(|run| run.id == "run")
                || log.history.messages().iter().any(|message| is_run(message.run_id.as_ref()));
            drop(log);
            if is_over {
                return false;
            }
            assert_eq!(self.ledger.acknowledged_answers, 0, "the run is lost");
            // The kill came before the start of the run was written.
            self.ledger = Ledger { executions: std::mem::take(&mut self.ledger.executions), ..Ledger::default() };
            next.start(self.setup.clone(), "Go").unwrap();
            self.owner = Owner::new(next);
            return true;
        };
        let stored = StoredRun::read(&block_on(read_journal(self.store, "s", &entry)).unwrap(), SEED).unwrap();
        let answered = stored.live.invocations().iter().filter(|call| has_own_result(call));
        self.ledger.recover(stored.model_calls as usize, answered.map(|call| call.id.clone()).collect());
        next.resume(self.setup.clone()).unwrap();
        let former = std::mem::replace(&mut self.owner, Owner::new(next));
        self.former = (!is_killed).then_some(former);
        true
    }

    /// The former holder executes an effect and writes. Nothing of that may be stored, and no tool may start.
    fn thaw(&mut self, at: usize) {
        let Some(former) = &mut self.former else { return };
        if former.status() != RunStatus::Running {
            return;
        }
        if let Some(effect) = former.effect(at) {
            let reply = match &effect.kind {
                EffectKind::CallModel { dialect, .. } => {
                    EffectReply::Response { status: 200, headers: Vec::new(), body: text("Late.").body(*dialect) }
                }
                EffectKind::RunTool { .. } if former.started.contains(&effect.id) => result(),
                EffectKind::RunTool { .. } => EffectReply::Started,
                EffectKind::Wait { .. } => EffectReply::Waited,
            };
            // A stream that has begun takes no whole response.
            let _ = former.host.reply(&effect.id, reply.clone());
            former.write(99);
            let is_start = reply == EffectReply::Started;
            assert!(!is_start || former.status() != RunStatus::Running, "a former holder starts a tool");
        }
        former.write(99);
    }

    /// What everybody who opens the session must find.
    fn check(&self) {
        let mut reader = Host::open(self.store, "s", "reader");
        assert!(reader.log.borrow().findings.is_empty());
        for dialect in [CHAT, CLAUDE, RESPONSES] {
            reader.render(dialect);
        }
        let log = reader.log.borrow();
        assert!(log.history.set_aside().is_empty(), "a result is stored twice");
        let messages: Vec<_> =
            log.history.messages().iter().filter(|message| is_run(message.run_id.as_ref())).collect();
        let answers = messages.iter().filter(|message| message.role == Role::Assistant).count();
        assert_eq!(
            messages.len(),
            if answers > 0 { answers + 1 } else { 0 },
            "the input is stored with the first answer"
        );
        assert!(answers <= self.ledger.answers, "an answer is stored that nobody gave, or twice");
        let calls = log.history.invocations();
        let is_over = log.head.runs.iter().all(|run| run.id != "run");
        match self.setup.persistence {
            Persistence::Run => assert!(answers == 0 || is_over, "mode run stores the turn at its end only"),
            Persistence::Call => {
                assert!(answers >= self.ledger.acknowledged_answers, "an acknowledged answer is not in history");
                for call in calls.iter().filter(|_| !is_over) {
                    let is_sent = (call.round as usize) + 1 < answers;
                    assert_eq!(call.result.is_some(), is_sent, "a service has the results that were sent to it");
                }
            }
            Persistence::Result => {
                assert!(answers >= self.ledger.acknowledged_answers, "an acknowledged answer is not in history");
                let ids: BTreeSet<_> =
                    calls.iter().filter(|call| has_own_result(call)).map(|call| call.id.clone()).collect();
                assert!(ids.is_superset(&self.ledger.acknowledged_results), "an acknowledged result is not in history");
                assert!(ids.is_subset(&self.ledger.results), "a result is stored that no tool returned");
            }
        }
    }

    /// Performs an action; returns false if the run is over and stored.
    fn act(&mut self, action: Action) -> bool {
        match action {
            Action::Execute(at) => self.execute(at),
            Action::Fail(at, how) => self.fail(at, how),
            Action::Repeat => self.repeat(),
            Action::Stray(number) => self.stray(number),
            Action::Write(count) => {
                if self.owner.write(count) && self.owner.status() == RunStatus::Running {
                    self.ledger.acknowledge();
                }
            }
            Action::Kill => return self.take_over(true),
            Action::TakeOver => return self.take_over(false),
            Action::Thaw(at) => self.thaw(at),
            Action::Cancel => self.owner.host.handle(RunInput::Cancel).unwrap(),
        }
        true
    }

    /// Executes what is open until the run is finished. A run that failed or was cancelled is resumed.
    fn finish(&mut self) {
        for step in 0..400 {
            self.act(Action::Write(99));
            self.check();
            match self.owner.status() {
                RunStatus::Running => self.execute(step),
                RunStatus::Finished => return,
                _ => {
                    if !self.take_over(true) {
                        return;
                    }
                }
            }
        }
        panic!("the run stands still: {:?}", self.owner.host.run.as_ref().unwrap().effects());
    }

    fn check_end(&self, rerun: bool) {
        let reader = Host::open(self.store, "s", "reader");
        let log = reader.log.borrow();
        assert_eq!(log.head.pending_runs().count(), 0);
        assert!(rerun || self.ledger.executions.values().all(|count| *count == 1), "a tool ran twice");
        if !log.head.runs.is_empty() {
            return; // cancelled
        }
        let roles: Vec<_> = log.history.messages().iter().map(|message| message.role).collect();
        let rounds = self.rounds.iter().position(|count| *count == 0).unwrap_or(self.rounds.len());
        assert_eq!(roles.len(), rounds + 2, "the input and each answer once");
        assert!(log.history.invocations().iter().all(|call| call.result.is_some()));
        assert_eq!(log.history.invocations().len(), self.rounds[..rounds].iter().sum::<usize>());
        for call in log.history.invocations().iter().filter(|call| call.status == InvocationStatus::Ok) {
            assert!(self.ledger.executions.contains_key(&call.id), "a result of a tool that never ran");
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Settings {
    dialect: Dialect,
    stream: bool,
    rerun: bool,
    persistence: Persistence,
}

/// Plays a script to the end of its run.
fn play(rounds: &[usize], actions: &[Action], settings: Settings) {
    let Settings { dialect, stream, rerun, persistence } = settings;
    let store = MemoryStore::default();
    let mut setup = RunSetup { persistence, ..setup("run", dialect, stream) };
    if rerun {
        let again = ToolSettings { on_interrupted: OnInterrupted::Rerun, ..ToolSettings::default() };
        setup.tool_settings.insert("look".into(), again);
    }
    let mut host = Host::open(&store, "s", "h0");
    host.start(setup.clone(), "Go").unwrap();
    let (owner, ledger) = (Owner::new(host), Ledger::default());
    let mut scenario =
        Scenario { store: &store, owner, former: None, setup, rounds: rounds.to_vec(), ledger, hosts: 0 };
    for action in actions {
        let is_running = scenario.owner.status() == RunStatus::Running;
        if !is_running && !matches!(action, Action::Write(_) | Action::Kill | Action::Thaw(_)) {
            continue;
        }
        if !scenario.act(action.clone()) {
            break;
        }
        scenario.check();
    }
    scenario.finish();
    scenario.check_end(rerun);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if std::env::var_os("RETHREAD_LONG").is_some() { 20_000 } else { 250 }, max_shrink_iters: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn r16_r17_r18_any_script_of_a_host_keeps_each_promise_in_each_mode(
        rounds in proptest::collection::vec(0_usize..4, 0..4),
        actions in proptest::collection::vec(action(), 0..50),
        dialect in 0_usize..3, stream: bool, rerun: bool, mode in 0_usize..3,
    ) {
        let dialect = [CHAT, CLAUDE, RESPONSES][dialect];
        play(&rounds, &actions, Settings { dialect, stream, rerun, persistence: MODES[mode] });
    }
}
