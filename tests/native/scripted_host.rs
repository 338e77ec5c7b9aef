//! A host that follows a script: drives a run over any store, answers its effects, and can be killed at any write.

use crate::scripted_model;

use rethread::clock::{Clock, ManualClock};
use rethread::error::{Error, ErrorCode};
use rethread::history::{
    History, HistoryEntry, Incoming, IncomingMessage, IncomingPart, JoinBase, JoinedEntries, NewResult, Origin,
    ProvidedMessages, ResultEntry, join, join_results,
};
use rethread::id::{IdSource, Seed};
use rethread::json::{Json, JsonStr};
use rethread::message::{Dialect, Part, PartBody, Role};
use rethread::owner::{OnConflict, StateOwner};
use rethread::provider::{ProviderRequest, Settings, ToolDefinition, decode_body};
use rethread::render::{BodyFilterReply, RenderRequest, Rendered, Renderer};
use rethread::replay::{Policy, QuestionKind, ReducerReply};
use rethread::run::{
    AnsweredCall, AppendedResults, ApprovalDecision, ApprovalQuestion, ApprovalReply, EffectKind, EffectReply, Handoff,
    JournalCache, OnStop, PendingTurn, PersistQuestion, PersistReply, Persistence, RetryPolicy, Run, RunContext,
    RunEvent, RunHolder, RunInput, RunOutcome, RunSetup, RunSnapshot, RunStatus, RunWriter, StoredRun, ToolSettings,
    TurnInput, change_for, find_answered_call, is_known_to_history,
};
use rethread::session_head::RunEntry;
use rethread::store::{
    Change, Committed, ExpectedRun, JournalChange, JournalStep, LogStore, Query, Record, SessionLog, Table, commit,
    open_session, read_journal, read_journal_from,
};
use rethread::tool::ToolResult;
pub use scripted_model::*;
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

pub const SEED: Seed = Seed(7);
pub const CHAT: Dialect = Dialect::OpenAiChat;
pub const CLAUDE: Dialect = Dialect::Anthropic;
pub const RESPONSES: Dialect = Dialect::OpenAiResponses;

pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    for _ in 0..100_000 {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return value;
        }
    }
    panic!("a future that nobody wakes");
}

/// Counting ids with the host's own name, so that two hosts never make the same one.
pub struct Ids(String, Cell<u64>);

impl IdSource for Ids {
    fn new_id(&self) -> String {
        self.1.set(self.1.get() + 1);
        format!("{}-{}", self.0, self.1.get())
    }
}

/// What a tool of this name hands the run off to.
pub type HandoffOfTool = dyn FnMut(&str) -> Option<Handoff>;

pub struct Host<'s> {
    pub store: &'s dyn LogStore,
    pub log: RefCell<SessionLog>,
    pub renderer: Renderer,
    pub clock: ManualClock,
    pub ids: Ids,
    pub run: Option<Run>,
    pub epoch: u32,
    pub stream_piece: usize,
    /// After so many writes the host is dead.
    pub writes_left: Option<usize>,
    /// Which of the open tools goes next.
    pub pick: Box<dyn FnMut(usize) -> usize>,
    #[allow(clippy::type_complexity)]
    pub tool: Box<dyn FnMut(&str, &Json) -> (Json, bool)>,
    /// What the application says to a tool's `persist`.
    #[allow(clippy::type_complexity)]
    pub persist: Box<dyn FnMut(&PersistQuestion) -> PersistReply>,
    /// What it says to a tool's `needsApproval`.
    pub needs_approval: Box<dyn FnMut(&ApprovalQuestion) -> ApprovalReply>,
    /// What it says to a reducer.
    pub reducer: Box<dyn FnMut(&QuestionKind) -> ReducerReply>,
    /// What it makes of a body before it is sent.
    pub filter: Box<dyn FnMut(Value) -> Result<Value, Error>>,
    /// The names of the tools that answer later.
    pub pending_tools: Vec<&'static str>,
    /// The handoff that a tool asks for, by the tool's name.
    pub handoff_of_tool: Box<HandoffOfTool>,
    /// Whether each handoff was accepted.
    pub handoff_results: Vec<Result<(), Error>>,
    /// The handoffs that a resume passes again.
    pub resume_handoffs: Vec<Handoff>,
    /// What was read of the journals of unfinished runs.
    pub journals: JournalCache,
    /// `persist` replaces results that come later.
    pub redacts_late_results: bool,
    /// The bodies of the requests that were answered.
    pub asked: Vec<Value>,
    /// The bodies of all requests, as they were offered.
    pub sent: Vec<Vec<u8>>,
    /// The address of the newest request.
    pub url: Rc<RefCell<String>>,
    /// Every tool that ran: call id, invocation, attempt.
    pub ran: Vec<(String, String, u32)>,
    /// Tool effects of this run that are started.
    pub started: Vec<String>,
    /// Waits, in milliseconds.
    pub waits: Vec<u64>,
    pub events: Vec<RunEvent>,
    /// Of each write: whether it adds to history, and whether it edits the head.
    pub writes: Vec<(bool, bool)>,
}

pub fn words(input: &str) -> Vec<Incoming> {
    vec![Incoming::Message(IncomingMessage {
        role: Role::User,
        parts: vec![IncomingPart::Part(Part::from(PartBody::Text(JsonStr::new(input))))],
        dialect: None,
        template: None,
    })]
}

pub fn provider(dialect: Dialect, stream: bool) -> ProviderRequest {
    ProviderRequest {
        dialect,
        url: "https://model.example/v1".into(),
        params: Json::parse(r#"{"model":"m"}"#).unwrap(),
        stream,
        headers: Vec::new(),
        settings: Settings::default(),
    }
}

pub fn setup(id: &str, dialect: Dialect, stream: bool) -> RunSetup {
    let names = ["look", "find"];
    RunSetup {
        id: id.into(),
        provider: provider(dialect, stream),
        instructions: Some("Be brief.".into()),
        tools: names
            .iter()
            .map(|name| ToolDefinition {
                name: (*name).into(),
                description: None,
                parameters: None,
                strict: false,
                is_async: false,
            })
            .collect(),
        tool_settings: names.iter().map(|name| ((*name).to_owned(), ToolSettings::default())).collect(),
        persist: std::iter::empty().collect(),
        approval_callbacks: std::iter::empty().collect(),
        max_turns: 10,
        max_response_bytes: rethread::run::DEFAULT_MAX_RESPONSE_BYTES,
        persistence: Persistence::Run,
        trim_trailing_results: false,
        on_stop: OnStop::Discard,
        input_filter: None,
        retry: RetryPolicy { attempts: 3, backoff_ms: 100, approve_unsafe_replay: None },
        policy: Policy::default(),
        channel: None,
        owner: StateOwner::Session,
        on_conflict: OnConflict::Throw,
    }
}

macro_rules! desk {
    ($host:expr, $log:expr) => {
        RunContext {
            history: &$log.history,
            renderer: &mut $host.renderer,
            now: $host.clock.now(),
            ids: &$host.ids,
            seed: SEED,
            refused: &$log.head.refused,
            last_request: $log.head.last_request(),
            branch: $log.branch_number(),
        }
    };
}

impl<'s> Host<'s> {
    /// Opens the session. `name` keeps its ids apart from those of other hosts.
    pub fn open(store: &'s dyn LogStore, session: &str, name: &str) -> Self {
        Self::try_open(store, session, name).unwrap()
    }

    /// As [`open`](Self::open), over a store that may fail.
    pub fn try_open(store: &'s dyn LogStore, session: &str, name: &str) -> Result<Self, Error> {
        let clock = ManualClock::at(1_000_000);
        let log = block_on(open_session(store, session, SEED, clock.now()))?;
        Ok(Self {
            store,
            log: RefCell::new(log),
            renderer: Renderer::default(),
            clock,
            ids: Ids(name.into(), Cell::new(0)),
            run: None,
            epoch: 0,
            stream_piece: 17,
            writes_left: None,
            pick: Box::new(|_| 0),
            tool: Box::new(|name, arguments| {
                (Json::parse(&json!(format!("{name} gave {}", arguments.as_str())).to_string()).unwrap(), false)
            }),
            persist: Box::new(|ask| panic!("nobody asked for {ask:?}")),
            needs_approval: Box::new(|question| panic!("nobody asked for {question:?}")),
            reducer: Box::new(|question| panic!("nobody asked for {question:?}")),
            filter: Box::new(|body| panic!("nobody asked for {body}")),
            pending_tools: Vec::new(),
            handoff_of_tool: Box::new(|_| None),
            handoff_results: Vec::new(),
            resume_handoffs: Vec::new(),
            journals: JournalCache::default(),
            redacts_late_results: false,
            asked: Vec::new(),
            sent: Vec::new(),
            url: Rc::default(),
            ran: Vec::new(),
            started: Vec::new(),
            waits: Vec::new(),
            events: Vec::new(),
            writes: Vec::new(),
        })
    }

    pub fn start(&mut self, setup: RunSetup, input: &str) -> Result<(), Error> {
        let input = if input.is_empty() { Vec::new() } else { words(input) };
        self.start_turn(setup, TurnInput { input, ..TurnInput::default() })
    }

    fn start_turn(&mut self, setup: RunSetup, input: TurnInput) -> Result<(), Error> {
        let log = self.log.borrow();
        let run = Run::start(setup, input, &mut desk!(self, log))?;
        drop(log);
        self.run = Some(run);
        self.started.clear();
        self.epoch = 0;
        Ok(())
    }

    /// Starts with the items of a wire body.
    pub fn start_body(&mut self, setup: RunSetup, body: &Value) -> Result<(), Error> {
        let body = Json::parse(&body.to_string()).unwrap();
        let input = decode_body(setup.provider.dialect, body.view())?;
        self.start_turn(setup, TurnInput { input, ..TurnInput::default() })
    }

    /// Starts with messages that a provider adds.
    pub fn start_provided(&mut self, setup: RunSetup, input: &str, provided: &Value) -> Result<(), Error> {
        self.start_provided_items(setup, words(input), provided)
    }

    /// As [`start_provided`](Self::start_provided), with the items of a wire body.
    pub fn start_provided_items(
        &mut self,
        setup: RunSetup,
        input: Vec<Incoming>,
        provided: &Value,
    ) -> Result<(), Error> {
        let provided = Json::parse(&provided.to_string()).unwrap();
        let provided = ProvidedMessages::read_all(provided.view())?;
        self.start_turn(setup, TurnInput { input, input_id: None, provided })
    }

    /// Starts and drives to the end.
    pub fn ask(&mut self, setup: RunSetup, input: &str, model: impl FnMut(&Value) -> Answer) -> RunOutcome {
        self.start(setup, input).unwrap();
        self.drive(model).expect("the run stands still")
    }

    pub fn pending(&self) -> Vec<RunEntry> {
        self.log.borrow().head.pending_runs().cloned().collect()
    }

    /// Takes a run over and goes on with it.
    pub fn resume(&mut self, setup: RunSetup) -> Result<(), Error> {
        let entry = self.log.borrow().head.run(&setup.id).cloned().expect("an unfinished run");
        self.take(&entry)?;
        let session = self.log.borrow().head.id.clone();
        let journal = block_on(read_journal(self.store, &session, &entry))?;
        let mut stored = StoredRun::read(&journal, SEED)?;
        stored.attach_handoffs(self.resume_handoffs.clone(), &setup)?;
        let log = self.log.borrow();
        let run = Run::resume(setup, stored, &mut desk!(self, log))?;
        drop(log);
        self.run = Some(run);
        self.started.clear();
        self.epoch = entry.epoch + 1;
        Ok(())
    }

    pub fn take(&self, entry: &RunEntry) -> Result<u64, Error> {
        let journal = JournalChange {
            run: entry.id.clone(),
            epoch: entry.epoch,
            lease_until: 0,
            lease_ended_by: None,
            step: JournalStep::Take,
        };
        let change = Change {
            operation: format!("take.{}.{}", entry.id, self.ids.new_id()),
            at: self.clock.now(),
            journal: Some(journal),
            ..Change::default()
        };
        block_on(commit(self.store, &self.log, &change)).map(|committed| committed.revision)
    }

    pub fn handle(&mut self, input: RunInput) -> Result<(), Error> {
        let log = self.log.borrow();
        let run = self.run.as_mut().unwrap();
        let done = run.handle(input, &mut desk!(self, log));
        self.events.extend(run.take_events());
        done
    }

    pub fn reply(&mut self, effect: &str, reply: EffectReply) -> Result<(), Error> {
        self.handle(RunInput::Answer { effect: effect.into(), reply })
    }

    /// One write; false when there is none, or when the host is dead.
    pub fn write_one(&mut self) -> bool {
        if self.writes_left == Some(0) {
            return false;
        }
        while let Some(ask) = self.run.as_mut().unwrap().take_persist_question() {
            let said = (self.persist)(&ask);
            self.handle(RunInput::PersistReply(ask, said)).unwrap();
        }
        let now = self.clock.now();
        let run = self.run.as_mut().unwrap();
        let Some(save) = run.take_save() else { return false };
        let name = format!("{}.{}", run.id(), self.epoch);
        let writer = RunWriter { run: run.id(), name: &name, epoch: self.epoch, now, lease_until: now + 30_000 };
        let change = change_for(&save, &writer).unwrap();
        self.writes.push((!change.entries.is_empty(), change.edit.is_some()));
        let outcome = block_on(commit(self.store, &self.log, &change)).map(|committed| committed.revision);
        if let Err(error) = &outcome
            && error.code != ErrorCode::Conflict
        {
            run.keep_unsaved(save.clone());
        }
        self.writes_left = self.writes_left.map(|left| left - 1);
        self.handle(RunInput::Saved { save: save.id, outcome }).unwrap();
        true
    }

    /// Writes everything; false when the host is dead.
    pub fn write(&mut self) -> bool {
        loop {
            while self.write_one() {}
            if self.writes_left == Some(0) {
                return false;
            }
            if let Some(question) = self.run.as_mut().unwrap().take_approval_question() {
                let reply = (self.needs_approval)(&question);
                self.handle(RunInput::ApprovalReply(question.invocation, reply)).unwrap();
                continue;
            }
            if let Some(question) = self.run.as_mut().unwrap().take_body_filter_question() {
                let given: Value = serde_json::from_str(question.body.as_str()).unwrap();
                let returned = (self.filter)(given).map(|body| BodyFilterReply {
                    input: question.body,
                    output: Json::parse(&body.to_string()).unwrap(),
                });
                self.handle(RunInput::BodyFilterReply(returned)).unwrap();
                continue;
            }
            let Some(ask) = self.run.as_mut().unwrap().take_reducer_question() else {
                return self.writes_left != Some(0);
            };
            let given = (self.reducer)(&ask.question);
            self.handle(RunInput::ReducerReply(given)).unwrap();
        }
    }

    /// Until the run is over; none when it is killed, hangs, or waits for something that the script does not give.
    pub fn drive(&mut self, mut model: impl FnMut(&Value) -> Answer) -> Option<RunOutcome> {
        loop {
            let alive = self.write();
            let run = self.run.as_ref().unwrap();
            if run.status() != RunStatus::Running {
                return Some(run.outcome());
            }
            if !alive {
                return None;
            }
            let effects = run.effects().into_iter().cloned().collect::<Vec<_>>();
            let at = if effects.len() > 1 { (self.pick)(effects.len()) % effects.len() } else { 0 };
            let effect = effects.get(at)?.clone();
            match effect.kind {
                EffectKind::CallModel { url, body, stream, dialect, .. } => {
                    *self.url.borrow_mut() = url;
                    self.sent.push(body.to_vec());
                    let body: Value = serde_json::from_slice(&body).unwrap();
                    valid(&body, dialect);
                    let answer = model(&body);
                    if !self.answer(&effect.id, body, stream, dialect, answer) {
                        return None;
                    }
                }
                EffectKind::RunTool { call_id, invocation, attempt, name, arguments, .. } => {
                    if !self.started.contains(&effect.id) {
                        self.reply(&effect.id, EffectReply::Started).unwrap();
                        self.started.push(effect.id.clone());
                    }
                    if !self.write() {
                        return None;
                    }
                    if self.run.as_ref().unwrap().status() != RunStatus::Running {
                        continue;
                    }
                    self.ran.push((call_id, invocation, attempt));
                    if let Some(handoff) = (self.handoff_of_tool)(&name) {
                        let accepted = self.handle(RunInput::HandOff(Box::new(handoff)));
                        self.handoff_results.push(accepted);
                        if !self.write() {
                            return None;
                        }
                    }
                    if self.pending_tools.contains(&name.as_str()) {
                        self.reply(&effect.id, EffectReply::Pending).unwrap();
                        continue;
                    }
                    let (content, is_error) = (self.tool)(&name, &arguments);
                    self.clock.advance(5);
                    self.reply(&effect.id, EffectReply::ToolResult { content, is_error }).unwrap();
                }
                EffectKind::Wait { ms } => {
                    self.waits.push(ms);
                    self.clock.advance(ms);
                    self.reply(&effect.id, EffectReply::Waited).unwrap();
                }
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "a test names what it sets")]
    fn answer(&mut self, effect: &str, body: Value, stream: bool, dialect: Dialect, answer: Answer) -> bool {
        let pieces = |bytes: &[u8], size: usize| bytes.chunks(size.max(1)).map(<[u8]>::to_vec).collect::<Vec<_>>();
        let (bytes, then) = match answer {
            Answer::Hang => return false,
            Answer::Say(say) if !stream => {
                self.asked.push(body);
                self.reply(effect, EffectReply::Response { status: 200, headers: Vec::new(), body: say.body(dialect) })
                    .unwrap();
                return true;
            }
            Answer::Status(status, headers, text) => {
                let headers = headers.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
                self.reply(effect, EffectReply::Response { status, headers, body: text.into_bytes() }).unwrap();
                return true;
            }
            Answer::Unreachable => {
                self.reply(
                    effect,
                    EffectReply::Failed { code: None, message: "connection refused".into(), sent: None },
                )
                .unwrap();
                return true;
            }
            Answer::Say(say) => (say.stream(dialect), Some(EffectReply::ResponseEnd)),
            Answer::Bytes(bytes) => (bytes, Some(EffectReply::ResponseEnd)),
            Answer::Cut(bytes) => {
                (bytes, Some(EffectReply::Failed { code: None, message: "reset by peer".into(), sent: None }))
            }
            Answer::Partly(bytes) => (bytes, None),
        };
        self.asked.push(body);
        self.reply(effect, EffectReply::ResponseStarted { status: 200, headers: Vec::new() }).unwrap();
        for bytes in pieces(&bytes, self.stream_piece) {
            self.handle(RunInput::Bytes { effect: effect.into(), bytes }).unwrap();
        }
        let ends = then.is_some();
        if let Some(reply) = then {
            self.reply(effect, reply).unwrap();
        }
        ends
    }

    /// Stores the result of a call that came later, as any process does. `call`: the id of the call or of its
    /// invocation.
    pub fn late(&mut self, call: &str, content: &Value) -> Result<(), Error> {
        let result = NewResult {
            call: call.into(),
            result: ToolResult {
                content: Json::parse(&content.to_string()).unwrap(),
                is_error: false,
                dialect: None,
                template: None,
            },
            finished_at: None,
        };
        let origin = Origin { at: self.clock.now(), ..Origin::default() };
        let mut joined = JoinedEntries::default();
        let found = self.answered_call(call)?;
        let (call, run) = (found.call.clone(), found.run.clone());
        if self.log.borrow().history.invocation(&call.id).is_some() {
            let result = NewResult { call: call.id, ..result };
            join_results(&self.log.borrow().history, &mut joined, vec![(result, None)], &origin)?;
        } else {
            let entry = ResultEntry { run: run.clone(), ..result.answer_to(call.id, &origin) };
            joined.entries.push(HistoryEntry::Result(entry));
        }
        for entry in &mut joined.entries {
            if let HistoryEntry::Result(entry) = entry {
                entry.is_redacted = self.redacts_late_results;
            }
        }
        let change = Change {
            operation: format!("late.{}", self.ids.new_id()),
            at: self.clock.now(),
            expected: Some(self.log.borrow().head.history_revision),
            entries: joined.entries,
            expected_runs: self.expected_run(found).into_iter().collect(),
            ..Change::default()
        };
        block_on(commit(self.store, &self.log, &change)).map(drop)
    }

    /// Ends a run and stores nothing of it.
    pub fn discard(&mut self, run: &str) -> Committed {
        let epoch = self.log.borrow().head.run(run).unwrap().epoch;
        let step = JournalStep::End;
        let journal = JournalChange { run: run.into(), epoch, lease_until: 0, lease_ended_by: None, step };
        let change = Change { operation: format!("discard {run}"), journal: Some(journal), at: 3, ..Change::default() };
        block_on(commit(self.store, &self.log, &change)).unwrap()
    }

    /// Appends the items of a wire body, as `Session.append` does.
    pub fn append(&mut self, body: &Value, dialect: Dialect) -> Result<(), Error> {
        let body = Json::parse(&body.to_string()).unwrap();
        let origin = Origin { at: self.clock.now(), ..Origin::default() };
        let joined = {
            let log = self.log.borrow();
            join(JoinBase::history(&log.history), decode_body(dialect, body.view())?, &origin, &self.ids)
        };
        let results = AppendedResults::of(&self.log.borrow().history, &joined);
        let calls = self.judge(!results.is_empty(), &|history, turns| results.check(history, turns))?;
        let change = Change {
            operation: format!("append.{}", self.ids.new_id()),
            at: self.clock.now(),
            entries: joined.entries,
            expected: Some(self.log.borrow().head.history_revision),
            expected_runs: calls.into_iter().filter_map(|found| self.expected_run(found)).collect(),
            ..Change::default()
        };
        block_on(commit(self.store, &self.log, &change)).map(drop)
    }

    fn expected_run(&self, found: AnsweredCall) -> Option<ExpectedRun> {
        let id = found.run?;
        let epoch = self.log.borrow().head.run(&id).map(|entry| entry.epoch);
        let lease_ended_by = found.needs_dead_holder.then(|| self.clock.now());
        Some(ExpectedRun { id, epoch, records: found.records, lease_ended_by })
    }

    /// Returns the call that an answer names.
    fn answered_call(&mut self, call: &str) -> Result<AnsweredCall, Error> {
        let is_needed = !is_known_to_history(&self.log.borrow().history, call);
        self.judge(is_needed, &|history, turns| find_answered_call(history, turns, call))
    }

    /// Judges calls by the turns of the unfinished runs. One whose lease has not run out is under way, unless it is
    /// this host's.
    #[allow(clippy::type_complexity)]
    fn judge<T>(
        &mut self,
        is_needed: bool,
        judge: &dyn Fn(&History, &[PendingTurn<'_>]) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let log = self.log.borrow();
        let runs: Vec<RunEntry> = log.head.runs.iter().rev().filter(|_| is_needed).cloned().collect();
        for entry in &runs {
            let from = self.journals.next_record(entry);
            if from < entry.entries {
                let records = block_on(read_journal_from(self.store, &log.head.id, entry, from))?;
                self.journals.add(entry, &records, SEED)?;
            }
        }
        let turns: Vec<_> = runs
            .iter()
            .map(|entry| PendingTurn {
                run: &entry.id,
                turn: self.journals.turn(entry).unwrap(),
                records: entry.entries,
                holder: match &self.run {
                    Some(run) if run.id() == entry.id => RunHolder::Here(run),
                    _ if entry.lease_until > self.clock.now() => RunHolder::Elsewhere,
                    _ => RunHolder::Nobody,
                },
            })
            .collect();
        judge(&log.history, &turns)
    }

    /// Reads what other writers stored.
    pub fn refresh(&self) {
        block_on(rethread::store::refresh(self.store, &self.log)).unwrap();
    }

    pub fn decide(&mut self, id: &str, decision: ApprovalDecision) -> Result<(), Error> {
        self.handle(RunInput::Decide { id: id.into(), decision })
    }

    pub fn cancel(&mut self) -> Option<RunOutcome> {
        self.handle(RunInput::Cancel).unwrap();
        self.write();
        let run = self.run.as_ref().unwrap();
        (run.status() != RunStatus::Running).then(|| run.outcome())
    }

    /// The next body that the session gives, checked.
    pub fn render(&mut self, dialect: Dialect) -> Rendered {
        let policy = Policy::default();
        let provider = provider(dialect, false);
        let log = self.log.borrow();
        let request =
            RenderRequest { provider: &provider, instructions: Some("Be brief."), tools: &[], policy: &policy };
        let rendered = self.renderer.render(&log.history, None, &request, self.clock.now()).unwrap();
        valid(&serde_json::from_slice(&rendered.body).unwrap(), dialect);
        rendered
    }

    /// A snapshot of the unfinished run.
    pub fn snapshot(&mut self) -> RunSnapshot {
        let log = self.log.borrow();
        let context = desk!(self, log);
        self.run.as_ref().unwrap().snapshot(&log.head.id, &context).unwrap()
    }

    pub fn records(&self, table: Table) -> Vec<Record> {
        block_on(self.store.read(&self.log.borrow().head.id, Query::all(table))).unwrap()
    }
}
