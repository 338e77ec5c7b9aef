//! The open effects of an engine: operations of its store, functions of its host, and what its runs need.

use super::json_bytes::json_of_text;
use super::wit;
use crate::error::{Error, ErrorCode, Result};
use crate::json::Json;
use crate::run::{EffectKind, Method, effect_id};
use crate::session::RunDriver;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

/// An effect of a run.
#[derive(Clone)]
pub struct RunEffect {
    pub run: Rc<RunDriver>,
    /// Its number in the run.
    pub number: u64,
    /// What it is, as far as an answer must fit it.
    pub kind: RunEffectKind,
}

impl RunEffect {
    /// Returns its id in the run.
    pub fn id(&self) -> String {
        effect_id(self.number)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum RunEffectKind {
    CallModel,
    RunTool,
    Wait,
}

enum OpenEffect {
    Store(Rc<Awaited<wit::StoreOperation, wit::StoreReply>>),
    Ask(Rc<Awaited<wit::FunctionCall, Returned>>),
    Run(RunEffect),
}

/// What a function of the host returned, or why it failed.
type Returned = std::result::Result<Json, wit::Failure>;

/// An effect that a task waits for, and its reply.
struct Awaited<Q, R> {
    asked: Q,
    reply: RefCell<Option<R>>,
    waker: RefCell<Option<Waker>>,
}

impl<Q, R> Awaited<Q, R> {
    fn new(asked: Q) -> Rc<Self> {
        Rc::new(Self { asked, reply: RefCell::default(), waker: RefCell::default() })
    }

    fn give(&self, reply: R) {
        self.reply.replace(Some(reply));
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    async fn reply(&self) -> R {
        poll_fn(|task| match self.reply.take() {
            Some(reply) => Poll::Ready(reply),
            None => {
                self.waker.replace(Some(task.waker().clone()));
                Poll::Pending
            }
        })
        .await
    }
}

/// The open effects.
#[derive(Default)]
pub struct Effects {
    open: RefCell<BTreeMap<u64, OpenEffect>>,
    /// The effects that have an answer that ends them.
    answered: RefCell<std::collections::BTreeSet<u64>>,
    /// The newest effect.
    last: Cell<u64>,
    /// The newest effect that the host was told of.
    told: Cell<u64>,
    /// Effects that nobody waits for any more, of those that the host was told of.
    closed: RefCell<Vec<u64>>,
}

/// Closes an effect that nobody waits for any more.
struct WaitGuard<'e> {
    effects: &'e Effects,
    id: u64,
}

impl Drop for WaitGuard<'_> {
    fn drop(&mut self) {
        self.effects.close(self.id);
    }
}

impl Effects {
    fn add(&self, effect: OpenEffect) -> u64 {
        let id = self.last.get() + 1;
        self.last.set(id);
        self.open.borrow_mut().insert(id, effect);
        id
    }

    /// Asks for an operation of the store and awaits the reply.
    ///
    /// # Errors
    /// None of its own.
    pub async fn store(&self, operation: wit::StoreOperation) -> Result<wit::StoreReply> {
        let effect = Awaited::new(operation);
        let id = self.add(OpenEffect::Store(effect.clone()));
        let _guard = WaitGuard { effects: self, id };
        Ok(effect.reply().await)
    }

    /// Asks for a call of a function and awaits what it returns.
    pub async fn ask(&self, call: wit::FunctionCall) -> Returned {
        let effect = Awaited::new(call);
        let id = self.add(OpenEffect::Ask(effect.clone()));
        let _guard = WaitGuard { effects: self, id };
        effect.reply().await
    }

    /// Opens an effect of a run.
    pub fn open_run_effect(&self, run: &Rc<RunDriver>, number: u64, kind: &EffectKind) -> u64 {
        let kind = match kind {
            EffectKind::CallModel { .. } => RunEffectKind::CallModel,
            EffectKind::RunTool { .. } => RunEffectKind::RunTool,
            EffectKind::Wait { .. } => RunEffectKind::Wait,
        };
        self.add(OpenEffect::Run(RunEffect { run: run.clone(), number, kind }))
    }

    /// Removes an effect.
    pub fn close(&self, id: u64) {
        let is_open = self.open.borrow_mut().remove(&id).is_some();
        let was_answered = self.answered.borrow_mut().remove(&id);
        if is_open && !was_answered && id <= self.told.get() {
            self.closed.borrow_mut().push(id);
        }
    }

    /// Takes the effects that were opened and closed since the last call.
    pub fn take(&self) -> (Vec<wit::Effect>, Vec<u64>) {
        let told = self.told.replace(self.last.get());
        let opened = self.open.borrow();
        let opened = opened.range(told.saturating_add(1)..).filter_map(|(id, effect)| described(*id, effect)).collect();
        (opened, self.closed.take())
    }

    /// Returns the open effects that wait for an answer.
    pub fn all(&self) -> Vec<wit::Effect> {
        let (open, answered) = (self.open.borrow(), self.answered.borrow());
        let waiting = open.iter().filter(|(id, _)| !answered.contains(id) && **id <= self.told.get());
        waiting.filter_map(|(id, effect)| described(*id, effect)).collect()
    }

    /// Drops all effects.
    pub fn clear(&self) {
        let open = self.open.take();
        drop(open);
    }

    /// Returns the effect of a run that an answer is for; none if the answer was the store's or a
    /// function's, which is taken here.
    ///
    /// # Errors `unknown_effect`; `wrong_state` for an effect that is closed or answered; `invalid_input` for an answer
    /// of another kind.
    pub fn answer(&self, id: u64, answer: &mut wit::Answer) -> Result<Option<RunEffect>> {
        let open = self.open.borrow();
        let effect = open.get(&id).filter(|_| id <= self.told.get()).ok_or_else(|| self.not_open(id))?;
        if self.answered.borrow().contains(&id) {
            return Err(answered());
        }
        let effect = match (effect, &mut *answer) {
            (OpenEffect::Store(effect), wit::Answer::Store(reply)) => {
                let reply = std::mem::replace(reply, wit::StoreReply::Deleted);
                effect.give(reply);
                None
            }
            (OpenEffect::Ask(effect), wit::Answer::Returned(returned)) => {
                effect.give(Ok(json_of_text("what the function returned", returned)?));
                None
            }
            (OpenEffect::Ask(effect), wit::Answer::Failed(failure)) => {
                effect.give(Err(failure.clone()));
                None
            }
            (OpenEffect::Run(effect), answer) if fits(effect.kind, answer) => Some(effect.clone()),
            _ => return Err(Error::invalid("an answer of another kind than the effect")),
        };
        if is_last(answer) {
            self.answered.borrow_mut().insert(id);
        }
        Ok(effect)
    }

    /// Takes back that an effect was answered: the run did not accept it.
    pub fn reopen(&self, id: u64) {
        self.answered.borrow_mut().remove(&id);
    }

    /// Returns the effect of a run that gets bytes.
    ///
    /// # Errors
    /// As [`answer`](Self::answer).
    pub fn fed(&self, id: u64) -> Result<RunEffect> {
        match self.open.borrow().get(&id).filter(|_| id <= self.told.get()) {
            None => Err(self.not_open(id)),
            Some(_) if self.answered.borrow().contains(&id) => Err(answered()),
            Some(OpenEffect::Run(effect)) if effect.kind == RunEffectKind::CallModel => Ok(effect.clone()),
            Some(_) => Err(Error::invalid("bytes are for an effect `call-model`")),
        }
    }

    fn not_open(&self, id: u64) -> Error {
        if id == 0 || id > self.told.get() {
            Error::new(ErrorCode::UnknownEffect, format!("no effect has the id {id}"))
        } else {
            Error::new(ErrorCode::WrongState, "the effect is closed: it was answered, or nobody waits for it any more")
        }
    }
}

fn answered() -> Error {
    Error::new(ErrorCode::WrongState, "the effect was answered already")
}

/// Returns true for an answer after which nothing more comes.
fn is_last(answer: &wit::Answer) -> bool {
    !matches!(answer, wit::Answer::ResponseStarted(_) | wit::Answer::Started)
}

fn fits(kind: RunEffectKind, answer: &wit::Answer) -> bool {
    match answer {
        wit::Answer::Store(_) | wit::Answer::Returned(_) => false,
        wit::Answer::ResponseStarted(_) | wit::Answer::ResponseEnd | wit::Answer::Response(_) => {
            kind == RunEffectKind::CallModel
        }
        wit::Answer::Started | wit::Answer::ToolResult(_) | wit::Answer::Pending => kind == RunEffectKind::RunTool,
        wit::Answer::Waited => kind == RunEffectKind::Wait,
        wit::Answer::Failed(_) => true,
    }
}

/// Returns an effect as the host gets it; none if the run has closed it.
fn described(id: u64, effect: &OpenEffect) -> Option<wit::Effect> {
    let effect = match effect {
        OpenEffect::Store(effect) => {
            return Some(wit::Effect { id, kind: wit::EffectKind::Store(effect.asked.clone()) });
        }
        OpenEffect::Ask(effect) => return Some(wit::Effect { id, kind: wit::EffectKind::Ask(effect.asked.clone()) }),
        OpenEffect::Run(effect) => effect,
    };
    let machine = effect.run.machine.borrow();
    let open = machine.effect(effect.number)?;
    let run = effect.run.id.clone();
    let kind = match &open.kind {
        EffectKind::Wait { ms } => wit::EffectKind::Wait(wit::Pause { run, ms: *ms }),
        EffectKind::RunTool { call_id, invocation, attempt, name, arguments, .. } => {
            wit::EffectKind::RunTool(wit::ToolRun {
                run,
                call_id: call_id.clone(),
                invocation_id: invocation.clone(),
                attempt: *attempt,
                name: name.clone(),
                arguments: arguments.as_str().to_owned(),
            })
        }
        EffectKind::CallModel { dialect, method, url, headers, body, stream, repeatable, not_before } => {
            wit::EffectKind::CallModel(wit::ModelCall {
                run,
                dialect: dialect.as_str().to_owned(),
                method: match method {
                    Method::Post => wit::RequestMethod::Post,
                    Method::Get => wit::RequestMethod::Get,
                },
                url: url.clone(),
                headers: headers.clone(),
                body: body.to_vec(),
                stream: *stream,
                repeatable: *repeatable,
                not_before: *not_before,
            })
        }
    };
    Some(wit::Effect { id, kind })
}
