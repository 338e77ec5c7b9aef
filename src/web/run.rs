//! `Run`: the class, and the pump that answers the machine's own effects.

use super::answer_channel::AnswerBroadcast;
use super::convert::{list_to_js, object_to_js, to_json};
use super::foreign::{self, callback_failed, get, member};
use super::offered_effects::OfferedEffects;
use super::platform::{LockOutcome, WebLock, random_id, request_lock, try_acquire_lock};
use super::promise::{Work, deferred, in_background, promise};
use super::reducers::{ask_application, call_persist};
use super::render::append_warnings;
use super::run_request::{RunOptions, input_items};
use super::session::SessionInner;
use super::store_context::StoreContext;
use crate::clock::Ms;
use crate::error::{Code, Error, Result};
use crate::id::IdSource;
use crate::message::Message;
use crate::provider::is_error_response;
use crate::run::{EffectReply, RunEvent, RunInput, RunStatus, RunWriter, change_for};
use crate::store::{Change, HeadEdit};
use js_sys::{Function, Promise};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use wasm_bindgen::prelude::*;

/// Where no lock of the platform says who lives: so long an owner counts as alive after its last write, in milliseconds.
const LEASE: Ms = 30_000;

/// A run, behind its class.
pub struct RunInner {
    pub session: Rc<SessionInner>,
    pub id: String,
    /// Names its appends.
    name: String,
    pub machine: RefCell<crate::run::Run>,
    pub epoch: Cell<u32>,
    pub retry_at: Cell<Option<Ms>>,
    events: RefCell<Vec<RunEvent>>,
    effects: RefCell<OfferedEffects>,
    waiting: RefCell<Vec<Function>>,
    lock: RefCell<Option<RunLock>>,
    /// The function `run.cancel` of the view's snapshot.
    cancel: RefCell<Option<JsValue>>,
    /// The other tabs that watch the answer.
    pub broadcast: AnswerBroadcast,
    has_lock: bool,
    /// The owner gave the run up; only a resumed run may write its journal.
    given_up: Cell<bool>,
}

/// The name of a run's lock: over all tabs of an origin. It holds the session, since an application's id source may give runs of
/// two sessions one id; the lengths keep the parts apart.
pub fn lock_name(context: &StoreContext, session: &str, run: &str) -> String {
    let (name, database, place) = (&context.name, context.name.len(), session.len());
    format!("rethread:{database}:{name}:{place}:{session}:run:{run}")
}

/// The name of the lock that a run's owner holds so that other tabs can wait for its end.
pub fn liveness_lock_name(context: &StoreContext, session: &str, run: &str) -> String {
    format!("{}:alive", lock_name(context, session, run))
}

/// The locks of a run's owner. They are released in the order of the fields, so a tab that waits for the liveness lock can acquire the
/// other one.
pub struct RunLock {
    _owner: WebLock,
    _liveness: Option<WebLock>,
}

/// Takes a run's lock, or says `busy`. None where the platform has no locks.
pub fn acquire_run_lock<'a>(session: &'a SessionInner, run: &'a str) -> Work<'a, Result<Option<RunLock>>> {
    Box::pin(async move {
        let context = &session.context;
        let name = lock_name(context, &session.id, run);
        let locking = if context.live.borrow().contains(&name) {
            LockOutcome::HeldElsewhere
        } else if context.is_durable() {
            try_acquire_lock(&name).await
        } else {
            LockOutcome::Unsupported
        };
        match locking {
            LockOutcome::Acquired(lock) => Ok(Some(RunLock {
                _owner: lock,
                _liveness: request_lock(&liveness_lock_name(context, &session.id, run)),
            })),
            LockOutcome::HeldElsewhere => {
                Err(Error::new(Code::Busy, "the run lives elsewhere: another tab, or another call here, owns it"))
            }
            LockOutcome::Unsupported => Ok(None),
        }
    })
}

impl RunInner {
    /// Makes a run when no other is under way here, and sets it going.
    pub async fn launch(session: &SessionInner, queue: bool, making: Work<'_, Result<Rc<Self>>>) -> Result<JsValue> {
        session.enter(queue).await?;
        let made = making.await;
        session.entered(made.as_ref().ok().cloned());
        let run = made?;
        // What could not be written is told by the run's events.
        let _ = run.pump().await;
        Ok(JsRun { inner: run }.into())
    }

    /// Makes a new run.
    pub async fn begin(session: &Rc<SessionInner>, mut options: RunOptions) -> Result<Rc<Self>> {
        session.context.ids.draw();
        let drawn = session.context.ids.new_id();
        // Checked before anything is written or read.
        let (input, input_id) = (options.input.take(), options.input_id.take());
        let mut setup = options.into_setup(session, drawn.clone())?;
        let items = input_items(input.as_ref(), setup.provider.dialect)?;
        // What other tabs appended belongs into the request.
        session.refresh().await?;
        let (id, lock) = Self::acquire_new(session, drawn).await?;
        setup.id.clone_from(&id);
        let machine = {
            let mut borrows = session.borrow_for_step();
            borrows.log.writable()?;
            crate::run::Run::start(setup, items, input_id, &mut borrows.run_context())?
        };
        Ok(Self::new(session, id, machine, 1, lock))
    }

    /// Acquires the lock of a new run and returns its id: `drawn`, with a random suffix if another run has that id.
    async fn acquire_new(session: &SessionInner, drawn: String) -> Result<(String, Option<RunLock>)> {
        if !session.has_run(&drawn) {
            match acquire_run_lock(session, &drawn).await {
                Ok(lock) => return Ok((drawn, lock)),
                Err(error) if error.code == Code::Busy => {}
                Err(error) => return Err(error),
            }
        }
        let id = format!("{drawn}-{}", random_id());
        let lock = acquire_run_lock(session, &id).await?;
        Ok((id, lock))
    }

    pub fn new(
        session: &Rc<SessionInner>,
        id: String,
        machine: crate::run::Run,
        epoch: u32,
        lock: Option<RunLock>,
    ) -> Rc<Self> {
        session.context.live.borrow_mut().insert(lock_name(&session.context, &session.id, &id), ());
        Rc::new(Self {
            name: random_id(),
            session: session.clone(),
            id,
            machine: RefCell::new(machine),
            epoch: Cell::new(epoch),
            retry_at: Cell::new(None),
            events: RefCell::default(),
            effects: RefCell::default(),
            waiting: RefCell::default(),
            has_lock: lock.is_some(),
            lock: RefCell::new(lock),
            given_up: Cell::new(false),
            cancel: RefCell::default(),
            broadcast: AnswerBroadcast::default(),
        })
    }

    /// The answer that is coming in.
    pub fn partial(&self) -> Option<Message> {
        let mut borrows = self.session.borrow_for_step();
        self.machine.borrow().partial(&borrows.run_context())
    }

    /// The function that cancels it, for the view: the same one each time.
    pub fn cancel_function(self: &Rc<Self>) -> JsValue {
        let mut kept = self.cancel.borrow_mut();
        let make = || {
            let run = Rc::downgrade(self);
            Closure::<dyn FnMut() -> Promise>::new(move || match run.upgrade() {
                Some(run) => run.cancel(),
                None => Promise::resolve(&JsValue::UNDEFINED),
            })
            .into_js_value()
        };
        kept.get_or_insert_with(make).clone()
    }

    /// Stops it.
    fn cancel(self: &Rc<Self>) -> Promise {
        let run = self.clone();
        promise(Box::pin(async move {
            // What cannot be written is told by an event.
            let _ = run.handle(RunInput::Cancel).await;
            Ok(JsValue::UNDEFINED)
        }))
    }

    fn step(&self, input: RunInput) -> Result<()> {
        if self.given_up.get() {
            return Err(Error::new(
                Code::Closed,
                "this run was disposed before its end; it is in `pendingRuns()`, and `resume` goes on with it",
            ));
        }
        let mut borrows = self.session.borrow_for_step();
        self.machine.borrow_mut().handle(input, &mut borrows.run_context())
    }

    fn handle(self: &Rc<Self>, input: RunInput) -> Work<'_, Result<()>> {
        let taken = self.step(input);
        Box::pin(async move {
            taken?;
            self.pump().await
        })
    }

    /// Does the machine's writes until none is left. Fails as the first one that could not be done.
    fn pump(self: &Rc<Self>) -> Work<'_, Result<()>> {
        Box::pin(self.write())
    }

    async fn write(self: &Rc<Self>) -> Result<()> {
        let mut failure = None;
        let mut wrote = false;
        while !self.given_up.get() {
            self.ask_persist();
            let save = self.machine.borrow_mut().take_save();
            let Some(save) = save else { break };
            let now = self.session.context.now();
            let lease = if self.has_lock || !self.session.context.is_durable() { 0 } else { now + LEASE };
            let writer =
                RunWriter { run: &self.id, name: &self.name, epoch: self.epoch.get(), now, lease_until: lease };
            let outcome = match change_for(&save, &writer) {
                Ok(change) => self.session.commit(change).await,
                Err(error) => Err(error),
            };
            let id = save.id;
            match &outcome {
                // What is pending changed, here and in other tabs.
                Ok(revision) => {
                    wrote = true;
                    self.session.context.announce_change(&self.session.id, *revision, false);
                }
                Err(error) => {
                    failure.get_or_insert_with(|| error.clone());
                    if error.code != Code::Conflict {
                        self.machine.borrow_mut().keep_unsaved(save);
                    }
                }
            }
            if let Err(error) = self.step(RunInput::Saved { save: id, outcome }) {
                failure.get_or_insert(error);
            }
        }
        let ask = self.machine.borrow_mut().take_question();
        if let Some(ask) = ask {
            // Nobody waits for it: the run can be cancelled meanwhile.
            let run = self.clone();
            in_background(Box::pin(async move {
                let given = ask_application(&ask).await;
                // What fails now is told by the run's events.
                let _ = run.handle(RunInput::ReducerReply(given)).await;
            }));
        }
        self.collect(wrote);
        failure.map_or(Ok(()), Err)
    }

    /// Asks the tools' `persist` about what is written next.
    fn ask_persist(&self) {
        loop {
            let ask = self.machine.borrow_mut().take_persist_question();
            let Some(ask) = ask else { return };
            let reply = call_persist(&ask);
            // It changes what is stored, and nothing else.
            let _ = self.step(RunInput::PersistReply(ask, reply));
        }
    }

    /// Takes events over, lets go when it is over, and tells who watches.
    fn collect(self: &Rc<Self>, wrote: bool) {
        let events = self.machine.borrow_mut().take_events();
        let shows = wrote || !events.is_empty();
        self.broadcast.send_events(self, &events);
        let mut warnings = Vec::new();
        for event in &events {
            match event {
                RunEvent::Retrying { at, .. } => self.retry_at.set(Some(*at)),
                RunEvent::MessageStarted { .. } | RunEvent::Finished(_) => self.retry_at.set(None),
                RunEvent::Warning(finding) => warnings.push(finding.clone()),
                RunEvent::ModelCalled { report, .. } => append_warnings(report, &mut warnings),
                _ => {}
            }
        }
        self.events.borrow_mut().extend(events);
        let closed = self.machine.borrow_mut().take_closed_effects();
        self.effects.borrow_mut().close(closed);
        if self.machine.borrow().status() != RunStatus::Running {
            let context = &self.session.context;
            context.live.borrow_mut().remove(&lock_name(context, &self.session.id, &self.id));
            *self.lock.borrow_mut() = None;
            self.session.left(self);
        }
        self.session.context.warn(&warnings);
        // A listener that calls back, and changes nothing, is not called again.
        if shows {
            self.session.notify();
        }
        self.wake();
    }

    /// Lets go of the run as a kill would: whoever opens the store may resume it.
    pub fn let_go(&self) {
        *self.lock.borrow_mut() = None;
        self.wake();
    }

    /// Lets go of the run for good, and of all that it holds in memory: its store was closed.
    pub fn release(&self) {
        self.let_go();
        self.machine.borrow_mut().release();
        self.events.take();
    }

    /// Gives up a run that is under way: its lock and its place in the session are free, and it can be resumed.
    fn give_up(self: &Rc<Self>) {
        if self.given_up.get() || self.machine.borrow().status() != RunStatus::Running {
            return;
        }
        self.given_up.set(true);
        let context = &self.session.context;
        context.live.borrow_mut().remove(&lock_name(context, &self.session.id, &self.id));
        self.let_go();
        self.session.left(self);
        let run = self.clone();
        in_background(Box::pin(async move { run.announce_given_up().await }));
    }

    /// Ends the lease, if there is one, and tells who watches.
    async fn announce_given_up(&self) {
        let session = &self.session;
        if !self.has_lock && session.context.is_durable() {
            session.context.ids.draw();
            let (id, epoch) = (self.id.clone(), self.epoch.get());
            let edit: HeadEdit = Box::new(move |head| {
                if let Some(entry) = head.runs.iter_mut().find(|entry| entry.id == id && entry.epoch == epoch) {
                    entry.lease_until = 0;
                }
            });
            // Not written, the lease runs out by itself.
            let _ = session.commit(Change { edit: Some(edit), ..session.change() }).await;
        }
        session.update_unfinished().await;
        let revision = session.log.borrow().head.history_revision;
        session.context.announce_change(&session.id, revision, false);
        session.notify();
    }

    fn wake(&self) {
        for waiting in self.waiting.take() {
            // Resolving a promise does not throw.
            let _ = waiting.call0(&JsValue::NULL);
        }
    }
}

/// The machine. It does no I/O: ask it what to do, do it, tell it.
#[wasm_bindgen(js_name = Run, skip_typescript)]
pub struct JsRun {
    inner: Rc<RunInner>,
}

#[wasm_bindgen(js_class = Run)]
impl JsRun {
    /// Its id.
    #[wasm_bindgen(getter)]
    pub fn id(&self) -> String {
        self.inner.id.clone()
    }

    /// How it stands.
    #[wasm_bindgen(getter)]
    pub fn status(&self) -> String {
        self.inner.machine.borrow().status().as_str().to_owned()
    }

    /// What the host must do now. The same effect is the same object each time.
    pub fn effects(&self) -> js_sys::Array {
        self.inner.effects.borrow_mut().all(&self.inner.machine.borrow())
    }

    /// What changed about the effects since the last call: `opened`, the new ones, and `closed`, the ids of those that wait for
    /// no answer any more. For a host that drives thousands of them: to list all at each step costs their square.
    #[wasm_bindgen(js_name = takeEffects)]
    pub fn take_effects(&self) -> JsValue {
        self.inner.effects.borrow_mut().take(&self.inner.machine.borrow())
    }

    /// Drains the events so far.
    pub fn events(&self) -> JsValue {
        let events = self.inner.events.take();
        list_to_js(&|list| {
            for event in &events {
                list.object(|out| event.write(out));
            }
        })
    }

    /// Resolves at the next change of effects, events or status; of a run that goes on when its store was closed, none comes.
    pub fn changed(&self) -> std::result::Result<Promise, JsValue> {
        let inner = &self.inner;
        if inner.machine.borrow().status() == RunStatus::Running {
            inner.session.context.check_open()?;
        }
        let (changed, resolve) = deferred();
        inner.waiting.borrow_mut().extend(resolve);
        Ok(changed)
    }

    /// Answers an effect. Resolves when what must be durable is.
    pub fn answer(&self, effect: String, answer: JsValue) -> Promise {
        let inner = self.inner.clone();
        self.inner.session.context.promise(Box::pin(async move {
            if let Some(input) = oversized(&inner, &effect, &answer) {
                return inner.handle(input).await.map(|()| JsValue::UNDEFINED);
            }
            let reply = reply_of(&answer)?;
            let strict = matches!(reply, EffectReply::Started);
            match inner.handle(RunInput::Answer { effect, reply }).await {
                // A tool whose start could not be written must not run; any other failure is told by `save_failed`.
                Err(error) if strict || is_misuse(&error) => Err(error),
                _ => Ok(JsValue::UNDEFINED),
            }
        }))
    }

    /// Bytes of a streaming answer, after its `response_started`.
    pub fn feed(&self, effect: String, bytes: &JsValue) -> Promise {
        let inner = self.inner.clone();
        // Copied at the call, since the host may reuse its buffer; not at all when there are too many.
        let input = match foreign::size(bytes) {
            Some(size) if u64::from(size) > inner.machine.borrow().max_response_bytes() => {
                Ok(RunInput::ResponseTooLarge { effect })
            }
            _ => match foreign::bytes("what is fed", bytes) {
                Ok(Some(bytes)) => Ok(RunInput::Bytes { effect, bytes }),
                Ok(None) => Err(Error::invalid("what is fed is a Uint8Array")),
                Err(error) => Err(error),
            },
        };
        self.inner.session.context.promise(Box::pin(async move {
            match inner.handle(input?).await {
                Err(error) if is_misuse(&error) => Err(error),
                // Any other failure is told by an event.
                _ => Ok(JsValue::UNDEFINED),
            }
        }))
    }

    /// Whether bytes of a model's response, one event of its stream or the whole body, tell of a failure. Changes nothing.
    #[wasm_bindgen(js_name = isErrorResponse)]
    pub fn is_error_response(&self, bytes: &JsValue) -> std::result::Result<bool, JsValue> {
        let bytes = foreign::bytes("a response", bytes)?.unwrap_or_default();
        Ok(is_error_response(self.inner.machine.borrow().dialect(), &bytes))
    }

    /// How many bytes one response may have.
    #[wasm_bindgen(getter, js_name = maxResponseBytes)]
    pub fn max_response_bytes(&self) -> f64 {
        #[allow(clippy::cast_precision_loss)]
        let bytes = self.inner.machine.borrow().max_response_bytes() as f64;
        bytes
    }

    /// Ends the use of a run, finished or not. One that is under way is left to be resumed.
    #[wasm_bindgen(js_name = giveUp)]
    pub fn give_up(&self) {
        self.inner.give_up();
    }

    /// Stops it.
    pub fn cancel(&self) -> Promise {
        self.inner.cancel()
    }

    /// Tries again to store what could not be stored.
    pub fn save(&self) -> Promise {
        let inner = self.inner.clone();
        self.inner.session.context.promise(Box::pin(async move {
            inner.handle(RunInput::RetrySave).await?;
            Ok(JsValue::UNDEFINED)
        }))
    }

    /// What it came to; while it runs, how far it is.
    pub fn result(&self) -> JsValue {
        let outcome = self.inner.machine.borrow().outcome();
        object_to_js(&|out| outcome.write(out))
    }
}

/// Whether the caller made a call that is not allowed now. Such a call has no effect.
fn is_misuse(error: &Error) -> bool {
    matches!(error.code, Code::UnknownEffect | Code::WrongState | Code::Closed)
}

/// A whole response that is larger than the run allows: its body is not read.
fn oversized(run: &RunInner, effect: &str, answer: &JsValue) -> Option<RunInput> {
    let size = foreign::size(&member(answer, "body"))?;
    (u64::from(size) > run.machine.borrow().max_response_bytes())
        .then(|| RunInput::ResponseTooLarge { effect: effect.to_owned() })
}

fn reply_of(answer: &JsValue) -> Result<EffectReply> {
    let kind = text(answer, "type")?;
    Ok(match kind.as_deref() {
        Some("response_started") => EffectReply::ResponseStarted { status: status(answer)?, headers: headers(answer)? },
        Some("response_end") => EffectReply::ResponseEnd,
        Some("response") => {
            EffectReply::Response { status: status(answer)?, headers: headers(answer)?, body: response_body(answer)? }
        }
        Some("started") => EffectReply::Started,
        Some("tool_result") => EffectReply::ToolResult {
            content: to_json(&member(answer, "content"))?,
            is_error: member(answer, "isError").is_truthy(),
        },
        Some("waited") => EffectReply::Waited,
        Some("failed") => failed_reply(answer),
        other => return Err(Error::invalid(format!("\"{}\" is no answer to an effect", other.unwrap_or("nothing")))),
    })
}

/// Reads a text of an answer; none if it is absent or null.
fn text(answer: &JsValue, key: &str) -> Result<Option<String>> {
    let value = get(answer, key)?;
    if value.is_undefined() || value.is_null() {
        return Ok(None);
    }
    let text = foreign::string(key, &value)?;
    text.map(Some).ok_or_else(|| Error::invalid(format!("`{key}` is a string")))
}

fn status(answer: &JsValue) -> Result<u16> {
    let status =
        get(answer, "status")?.as_f64().filter(|status| status.fract() == 0.0 && (0.0..=999.0).contains(status));
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    status.map(|status| status as u16).ok_or_else(|| Error::invalid("`status` is the HTTP status"))
}

fn headers(answer: &JsValue) -> Result<Vec<(String, String)>> {
    let members = foreign::members("`headers`", &member(answer, "headers"))?;
    let header = |(name, value): (String, JsValue)| Some((name.to_ascii_lowercase(), value.as_string()?));
    Ok(members.into_iter().filter_map(header).collect())
}

fn response_body(answer: &JsValue) -> Result<Vec<u8>> {
    let body = member(answer, "body");
    if let Some(text) = foreign::string("`body`", &body)? {
        return Ok(text.into_bytes());
    }
    foreign::bytes("`body`", &body)?.ok_or_else(|| Error::invalid("`body` is a string or bytes"))
}

/// Reads a failure of the host. Whatever the host threw, this does not fail.
fn failed_reply(answer: &JsValue) -> EffectReply {
    let error = member(answer, "error");
    let given = |key: &str| text(&error, key).ok().flatten();
    EffectReply::Failed {
        code: given("code"),
        message: given("message").unwrap_or_else(|| callback_failed("the host failed", &error).into_message()),
    }
}
