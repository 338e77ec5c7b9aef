//! A world with a clock of its own, in which hosts share one store: each is a process, and can be killed wherever it
//! waits.

use crate::scripted_host::{Answer, valid};
use rethread::clock::{Clock, Ms};
use rethread::error::{Error, ErrorCode};
use rethread::finding::Finding;
use rethread::id::{IdSource, Seed};
use rethread::json::Json;
use rethread::render::BodyFilterReply;
use rethread::replay::{Callback, ReducerQuestion, ReducerReply};
use rethread::run::{
    ApprovalQuestion, ApprovalReply, BodyFilterQuestion, EffectKind, EffectReply, PersistQuestion, PersistReply,
    ReplayQuestion, RunEvent, RunInput, RunOutcome,
};
use rethread::session::{
    AnswerNews, Application, Audience, HeldLocks, Host, LocalFuture, LockOutcome, OpenSession, OpenStore, RunDriver,
    RunLockNames, SessionChange, SessionSettings, SessionSurface, StoreContext, StoreSettings,
};
use rethread::store::{
    Appended, AuditQuery, Batch, Capabilities, HeadChanges, LogStore, MemoryStore, NoticeText, Page, Query, Record,
    SessionRow, StoreFuture, StoredHead,
};
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// The virtual time after which a test waits for nothing.
const LONGEST: Ms = 600_000;

/// Set when a task can go on.
struct Flag(AtomicBool);

impl Flag {
    fn set() -> Arc<Self> {
        Arc::new(Self(AtomicBool::new(true)))
    }

    fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

struct Task {
    process: u32,
    flag: Arc<Flag>,
    work: LocalFuture<'static, ()>,
}

/// Time, tasks and locks.
pub struct World {
    pub now: Cell<Ms>,
    timers: RefCell<BTreeMap<(Ms, u64), Waker>>,
    tasks: RefCell<Vec<Task>>,
    numbers: Cell<u64>,
    /// The names of the locks that are held; none in a world without locks.
    locks: Option<Rc<RefCell<BTreeMap<String, u32>>>>,
}

impl World {
    pub fn new(has_locks: bool) -> Rc<Self> {
        Rc::new(Self {
            now: Cell::new(1_000_000),
            timers: RefCell::default(),
            tasks: RefCell::default(),
            numbers: Cell::default(),
            locks: has_locks.then(Rc::default),
        })
    }

    fn number(&self) -> u64 {
        self.numbers.set(self.numbers.get() + 1);
        self.numbers.get()
    }

    /// Does work and everything in the background until it ends. Time passes when nothing else is to do.
    pub fn run<T>(&self, work: impl Future<Output = T>) -> T {
        self.run_steps(work, usize::MAX).expect("a future that nobody wakes")
    }

    /// As [`run`](Self::run), for so many steps at most. None if it has not ended then, or if nothing wakes it.
    pub fn run_steps<T>(&self, work: impl Future<Output = T>, steps: usize) -> Option<T> {
        let (mut work, flag) = (pin!(work), Flag::set());
        let waker = Waker::from(flag.clone());
        let end = self.now.get() + LONGEST;
        for _ in 0..steps {
            if flag.take() {
                if let Poll::Ready(value) = work.as_mut().poll(&mut Context::from_waker(&waker)) {
                    return Some(value);
                }
            } else if !self.step() && !self.advance(end) {
                return None;
            }
        }
        None
    }

    /// Lets `ms` milliseconds pass, with everything that happens in them.
    pub fn pass(&self, ms: Ms) {
        let end = self.now.get() + ms;
        while self.step() || self.advance(end) {}
        self.now.set(end);
    }

    /// Polls one task that can go on.
    fn step(&self) -> bool {
        let at = self.tasks.borrow().iter().position(|task| task.flag.take());
        let Some(at) = at else { return false };
        let mut task = self.tasks.borrow_mut().remove(at);
        let waker = Waker::from(task.flag.clone());
        if task.work.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
            self.tasks.borrow_mut().push(task);
        }
        true
    }

    /// Goes on to the next timer until `end`.
    fn advance(&self, end: Ms) -> bool {
        let first = self.timers.borrow().first_key_value().map(|(key, _)| *key).filter(|(at, _)| *at <= end);
        let Some(key) = first else { return false };
        self.now.set(self.now.get().max(key.0));
        let waker = self.timers.borrow_mut().remove(&key);
        waker.unwrap().wake();
        true
    }

    pub fn sleep(self: &Rc<Self>, ms: Ms) -> LocalFuture<'static, bool> {
        let (world, at, number) = (self.clone(), self.now.get() + ms, self.number());
        Box::pin(poll_fn(move |task| {
            if world.now.get() >= at && !world.timers.borrow().contains_key(&(at, number)) {
                return Poll::Ready(true);
            }
            world.timers.borrow_mut().insert((at, number), task.waker().clone());
            Poll::Pending
        }))
    }

    /// Ends a process: nothing of it goes on, and its locks are free.
    pub fn kill(&self, process: u32) {
        let (killed, alive) = self.tasks.take().into_iter().partition(|task: &Task| task.process == process);
        self.tasks.replace(alive);
        drop::<Vec<Task>>(killed);
        if let Some(locks) = &self.locks {
            locks.borrow_mut().retain(|_, holder| *holder != process);
        }
    }
}

/// A store over the memory of the test: durable, and each operation waits once before it is done, and once before its
/// reply arrives.
pub struct SlowStore {
    pub data: MemoryStore,
    pub appends: Cell<u32>,
    /// What goes wrong with an append, if anything.
    pub fault: Box<dyn Fn() -> Option<Fault>>,
    /// True while no read succeeds.
    pub reads_fail: Cell<bool>,
    world: Rc<World>,
}

/// What goes wrong with an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing is written.
    Refused,
    /// It is written, and nobody learns of it.
    ReplyLost,
    /// Nothing is written, since others write.
    Busy,
    /// It is written, and the store says that it is busy.
    BusyWritten,
    /// Nothing is written, as if another writer had been faster.
    Conflict,
    /// The store says at once that it does not answer, and writes it half a second later.
    Late,
    /// It is written after a minute.
    Slow,
}

impl SlowStore {
    fn check_read(&self) -> Result<(), Error> {
        if self.reads_fail.get() { Err(Error::new(ErrorCode::StoreError, "the disk cannot be read")) } else { Ok(()) }
    }

    async fn wait(&self) {
        let mut waited = false;
        poll_fn(|task| {
            if std::mem::replace(&mut waited, true) {
                return Poll::Ready(());
            }
            task.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }
}

impl LogStore for SlowStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities { durable: true, ..self.data.capabilities() }
    }

    fn head<'a>(&'a self, session: &'a str) -> StoreFuture<'a, Option<StoredHead>> {
        Box::pin(async move {
            self.wait().await;
            self.check_read()?;
            self.data.head(session).await
        })
    }

    fn append<'a>(
        &'a self,
        session: &'a str,
        expected: u64,
        batch: Batch,
        operation: &'a str,
    ) -> StoreFuture<'a, Appended> {
        Box::pin(async move {
            let fault = (self.fault)();
            self.wait().await;
            match fault {
                Some(Fault::Refused) => return Err(Error::new(ErrorCode::StoreError, "the disk is full")),
                Some(Fault::Busy) => return Err(Error::new(ErrorCode::Busy, "others write")),
                Some(Fault::Conflict) => return Err(Error::new(ErrorCode::Conflict, "others were faster")),
                Some(Fault::Slow) => _ = self.world.sleep(60_000).await,
                Some(Fault::Late) => {
                    let (data, world) = (self.data.clone(), self.world.clone());
                    let (session, operation) = (session.to_owned(), operation.to_owned());
                    let late = async move {
                        world.sleep(500).await;
                        let _ = data.append(&session, expected, batch, &operation).await;
                    };
                    // Of the store, which no process ends.
                    self.world.tasks.borrow_mut().push(Task { process: 0, flag: Flag::set(), work: Box::pin(late) });
                    return Err(Error::unanswered("the store did not answer", true));
                }
                _ => {}
            }
            let appended = self.data.append(session, expected, batch, operation).await;
            self.appends.set(self.appends.get() + 1);
            self.wait().await;
            match fault {
                Some(Fault::ReplyLost) => Err(Error::unanswered("the reply was lost", true)),
                Some(Fault::BusyWritten) => Err(Error::new(ErrorCode::Busy, "others write")),
                _ => appended,
            }
        })
    }

    fn read<'a>(&'a self, session: &'a str, query: Query) -> StoreFuture<'a, Vec<Record>> {
        Box::pin(async move {
            self.wait().await;
            self.check_read()?;
            self.data.read(session, query).await
        })
    }

    fn head_changes(&self, since: Option<u64>) -> Option<StoreFuture<'_, HeadChanges>> {
        self.data.head_changes(since)
    }

    fn sessions<'a>(
        &'a self,
        cursor: Option<&'a str>,
        limit: usize,
        channel: Option<&'a str>,
    ) -> StoreFuture<'a, Page<SessionRow>> {
        self.data.sessions(cursor, limit, channel)
    }

    fn invocations<'a>(&'a self, query: &'a AuditQuery) -> StoreFuture<'a, Page<(String, Record)>> {
        self.data.invocations(query)
    }

    fn delete_session<'a>(&'a self, session: &'a str) -> StoreFuture<'a, ()> {
        self.data.delete_session(session)
    }
}

/// Makes a title of an exchange.
pub type TitleFunction = Box<dyn Fn(Value) -> LocalFuture<'static, Result<Option<String>, Error>>>;

/// What happens while a summary is made.
pub type Meanwhile = Box<dyn Fn() -> LocalFuture<'static, ()>>;

/// Answers a body of a mode.
pub type SummarizeFunction = Box<dyn Fn(Value, &str) -> LocalFuture<'static, Result<String, Error>>>;

/// A history provider that has nothing, after so many milliseconds.
pub struct SlowProvider(pub Ms);

/// A history provider that has nothing, and counts how often it is asked.
pub struct CountingProvider(pub Rc<Cell<u32>>);

/// A process with an open store.
pub struct Process {
    pub world: Rc<World>,
    pub number: u32,
    pub open: Rc<OpenStore>,
    pub store: Rc<SlowStore>,
    pub heard: Rc<RefCell<Heard>>,
}

/// What a process was told, and what it did.
#[derive(Default)]
pub struct Heard {
    pub warnings: Vec<Finding>,
    /// How often views were to show their messages anew.
    pub replaced: u32,
    /// Every tool that ran: call id and invocation.
    pub ran: Vec<(String, String)>,
    /// The bodies of the requests that were answered.
    pub asked: Vec<Value>,
    /// The address of the newest request.
    pub url: String,
}

impl Process {
    /// Opens a store in a process of its own.
    pub fn new(world: &Rc<World>, data: &MemoryStore, number: u32) -> Self {
        Self::with_faults(world, data, number, Box::new(|| None))
    }

    /// As [`new`](Self::new), with a store whose appends fail.
    pub fn with_faults(
        world: &Rc<World>,
        data: &MemoryStore,
        number: u32,
        fault: Box<dyn Fn() -> Option<Fault>>,
    ) -> Self {
        let heard = Rc::new(RefCell::new(Heard::default()));
        let host = VirtualHost { world: world.clone(), number, heard: heard.clone() };
        let store = Rc::new(SlowStore {
            data: data.clone(),
            appends: Cell::default(),
            fault,
            reads_fail: Cell::default(),
            world: world.clone(),
        });
        let settings = StoreSettings { seed: Seed(7), kind: "test", ..StoreSettings::default() };
        let open = OpenStore::new(StoreContext::new(store.clone(), Rc::new(host), settings));
        Self { world: world.clone(), number, open, store, heard }
    }

    /// Opens a store with a function that makes titles.
    pub fn with_titles(world: &Rc<World>, data: &MemoryStore, number: u32, make: TitleFunction) -> Self {
        let process = Self::new(world, data, number);
        let host = VirtualHost { world: world.clone(), number, heard: process.heard.clone() };
        let title_session = Some(Callback { id: 0, hook: Rc::new(make) });
        let settings = StoreSettings { seed: Seed(7), kind: "test", title_session, ..StoreSettings::default() };
        Self { open: OpenStore::new(StoreContext::new(process.store.clone(), Rc::new(host), settings)), ..process }
    }

    /// Opens another store than that of the test.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn over(world: &Rc<World>, store: Rc<dyn LogStore>, number: u32) -> Self {
        let process = Self::new(world, &MemoryStore::default(), number);
        let host = VirtualHost { world: world.clone(), number, heard: process.heard.clone() };
        let settings = StoreSettings { seed: Seed(7), kind: "test", ..StoreSettings::default() };
        Self { open: OpenStore::new(StoreContext::new(store, Rc::new(host), settings)), ..process }
    }

    pub async fn session(&self, settings: SessionSettings) -> Rc<OpenSession> {
        self.open.open_session("s", settings).await.unwrap()
    }

    pub fn kill(&self) {
        self.world.kill(self.number);
    }

    /// Drives a run as `drive` does, until it is over or waits for a person.
    pub async fn drive(&self, run: &Rc<RunDriver>, model: &dyn Fn(&Value) -> Answer) -> RunOutcome {
        let mut done = Vec::new();
        loop {
            let change = run.next_change();
            if run.events.take().iter().any(|event| matches!(event, RunEvent::SaveFailed { .. })) {
                self.world.sleep(100).await;
                // Another event says so if it fails again.
                let _ = run.handle(RunInput::RetrySave).await;
                continue;
            }
            let (is_running, outcome, effects) = {
                let machine = run.machine.borrow();
                let effects: Vec<_> = machine.effects().into_iter().cloned().collect();
                (machine.status() == rethread::run::RunStatus::Running, machine.outcome(), effects)
            };
            if !is_running {
                return outcome;
            }
            let Some(effect) = effects.into_iter().find(|effect| !done.contains(&effect.id)) else {
                change.given().await;
                continue;
            };
            done.push(effect.id.clone());
            // The run's events report a failure.
            let _ = self.perform(run, &effect.id, effect.kind, model).await;
        }
    }

    async fn perform(
        &self,
        run: &Rc<RunDriver>,
        effect: &str,
        kind: EffectKind,
        model: &dyn Fn(&Value) -> Answer,
    ) -> Result<(), Error> {
        let answer = |reply| run.answer(effect.into(), reply);
        match kind {
            EffectKind::CallModel { url, body, dialect, .. } => {
                let body: Value = serde_json::from_slice(&body).unwrap();
                valid(&body, dialect);
                self.heard.borrow_mut().url = url;
                let (status, said) = match model(&body) {
                    Answer::Say(say) => (200, say.body(dialect)),
                    Answer::Status(status, _, said) => (status, said.into_bytes()),
                    _ => return std::future::pending().await,
                };
                self.heard.borrow_mut().asked.push(body);
                answer(EffectReply::Response { status, headers: Vec::new(), body: said }).await
            }
            EffectKind::RunTool { call_id, invocation, name, .. } => {
                answer(EffectReply::Started).await?;
                self.heard.borrow_mut().ran.push((call_id, invocation));
                self.world.sleep(5).await;
                let content = Json::parse(&json!(format!("{name} gave")).to_string()).unwrap();
                answer(EffectReply::ToolResult { content, is_error: false }).await
            }
            EffectKind::Wait { ms } => {
                self.world.sleep(ms).await;
                answer(EffectReply::Waited).await
            }
        }
    }
}

/// The world as one process sees it.
struct VirtualHost {
    world: Rc<World>,
    number: u32,
    heard: Rc<RefCell<Heard>>,
}

impl Clock for VirtualHost {
    fn now(&self) -> Ms {
        self.world.now.get()
    }
}

impl IdSource for VirtualHost {
    fn new_id(&self) -> String {
        format!("id-{}-{}", self.number, self.world.number())
    }
}

impl Application for VirtualHost {
    fn reduce<'q>(&'q self, question: &'q ReducerQuestion) -> LocalFuture<'q, ReducerReply> {
        panic!("nobody asked for {question:?}")
    }

    fn filter_body<'q>(&'q self, question: &'q BodyFilterQuestion) -> LocalFuture<'q, Result<BodyFilterReply, Error>> {
        // A filter that changes nothing.
        Box::pin(async { Ok(BodyFilterReply { input: question.body.clone(), output: question.body.clone() }) })
    }

    fn needs_approval<'q>(&'q self, _: &'q ApprovalQuestion) -> LocalFuture<'q, ApprovalReply> {
        Box::pin(async { ApprovalReply::Needed })
    }

    fn approves_replay(&self, _: &ReplayQuestion) -> Result<bool, Error> {
        Ok(true)
    }

    fn persist(&self, _: &PersistQuestion) -> PersistReply {
        PersistReply::Nothing
    }

    fn summarize<'q>(
        &'q self,
        callback: &'q Callback,
        body: &'q [u8],
        mode: &'q str,
    ) -> LocalFuture<'q, Result<String, Error>> {
        if let Some(summarize) = callback.hook.downcast_ref::<SummarizeFunction>() {
            return summarize(serde_json::from_slice(body).unwrap(), mode);
        }
        Box::pin(async {
            if let Some(meanwhile) = callback.hook.downcast_ref::<Meanwhile>() {
                meanwhile().await;
            }
            Ok("What was said before.".into())
        })
    }

    fn title<'q>(&'q self, callback: &'q Callback, exchange: Json) -> LocalFuture<'q, Result<Option<String>, Error>> {
        let make = callback.hook.downcast_ref::<TitleFunction>().unwrap();
        make(serde_json::from_str(exchange.as_str()).unwrap())
    }

    fn provide<'q>(&'q self, callback: &'q Callback, _: Json) -> LocalFuture<'q, Result<Json, Error>> {
        if let Some(count) = callback.hook.downcast_ref::<CountingProvider>() {
            count.0.set(count.0.get() + 1);
            return Box::pin(async { Ok(Json::parse("[]").unwrap()) });
        }
        if let Some(pause) = callback.hook.downcast_ref::<SlowProvider>() {
            let pause = self.world.sleep(pause.0);
            return Box::pin(async {
                pause.await;
                Ok(Json::parse("[]").unwrap())
            });
        }
        Box::pin(async { Err(Error::new(ErrorCode::CallbackFailed, "no provider")) })
    }

    fn give_to_providers<'q>(&'q self, _: &'q Callback, _: Json) -> LocalFuture<'q, Vec<Finding>> {
        Box::pin(std::future::pending())
    }
}

/// A lock of a run, released when it is dropped.
struct VirtualLock {
    locks: Rc<RefCell<BTreeMap<String, u32>>>,
    name: String,
    holder: u32,
}

impl Drop for VirtualLock {
    fn drop(&mut self) {
        // A killed process has lost it, maybe to another one.
        self.locks.borrow_mut().retain(|name, holder| *name != self.name || *holder != self.holder);
    }
}

struct Surface(Rc<RefCell<Heard>>);

impl SessionSurface for Surface {
    fn on_change(&self) {}
    fn on_history_replaced(&self) {
        self.0.borrow_mut().replaced += 1;
    }
    fn has_listeners(&self) -> bool {
        false
    }
    fn drop_listeners(&self) {}
}

impl Host for VirtualHost {
    fn draw_ids(&self) {}

    fn random_id(&self) -> String {
        format!("random-{}-{}", self.number, self.world.number())
    }

    fn spawn(&self, work: LocalFuture<'static, ()>) {
        self.world.tasks.borrow_mut().push(Task { process: self.number, flag: Flag::set(), work });
    }

    fn sleep(&self, ms: Ms) -> LocalFuture<'static, bool> {
        self.world.sleep(ms)
    }

    fn time_limit(&self, ms: Ms) -> LocalFuture<'static, bool> {
        self.world.sleep(ms)
    }

    fn random_pause(&self, longest: Ms) -> LocalFuture<'static, ()> {
        let pause = self.world.sleep(longest / 2);
        Box::pin(async move { _ = pause.await })
    }

    fn lock_run<'h>(&'h self, names: &'h RunLockNames) -> LocalFuture<'h, Result<LockOutcome, Error>> {
        Box::pin(async {
            let Some(locks) = &self.world.locks else { return Ok(LockOutcome::Unsupported) };
            if locks.borrow().contains_key(&names.holder) {
                return Ok(LockOutcome::HeldElsewhere);
            }
            locks.borrow_mut().insert(names.holder.clone(), self.number);
            let (name, holder) = (names.holder.clone(), self.number);
            Ok(LockOutcome::Acquired(Box::new(VirtualLock { locks: locks.clone(), name, holder })))
        })
    }

    fn held_locks(&self) -> LocalFuture<'_, Option<HeldLocks>> {
        Box::pin(async {
            let locks = self.world.locks.clone()?;
            Some(Box::new(move |name: &str| locks.borrow().contains_key(name)) as HeldLocks)
        })
    }

    fn lock_released<'h>(&'h self, name: &'h str) -> LocalFuture<'h, bool> {
        Box::pin(async move {
            let Some(locks) = &self.world.locks else { return false };
            while locks.borrow().contains_key(name) {
                self.world.sleep(100).await;
            }
            true
        })
    }

    fn has_leases(&self) -> bool {
        true
    }

    fn listen(&self) {}

    fn announce(&self, _: &SessionChange<'_>, _: Audience) {}

    fn notice_of(&self, _: &str, _: &str) -> NoticeText {
        Box::new(|_| None)
    }

    fn send_answer(&self, _: &str, _: &str, _: AnswerNews<'_>) {}

    fn warn(&self, findings: &[Finding]) {
        self.heard.borrow_mut().warnings.extend_from_slice(findings);
    }

    fn surface(&self) -> Rc<dyn SessionSurface> {
        Rc::new(Surface(self.heard.clone()))
    }

    fn disconnect(&self) {}

    fn drop_listeners(&self) {}
}
