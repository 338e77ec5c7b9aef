//! What all sessions of one `open` share: the store, the clock, other tabs, listeners.

use super::answer_channel::AnswerChannel;
use super::convert::object_to_js;
use super::foreign::member;
use super::options::{OpenOptions, channel_layers};
use super::payloads::AuditPayloads;
use super::platform::{PlatformClock, PlatformIds, seed};
use super::platform_hold::PlatformHold;
use super::promise::{Work, promise};
use super::results::{SessionChange, result_to_js};
use super::session::SessionInner;
use super::wire::report_to_js;
use crate::clock::{Clock, Ms};
use crate::error::{Code, Error, Result};
use crate::finding::{Finding, FindingCode, Report};
use crate::id::Seed;
use crate::replay::PolicyLayer;
use crate::session_head::SessionHead;
use crate::sorted::Sorted;
use crate::store::{LogStore, SessionRow, StoredHead, read_head};
use js_sys::{Function, Promise};
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use wasm_bindgen::prelude::*;

/// Shared by all sessions.
pub struct StoreContext {
    pub store: Rc<dyn LogStore>,
    /// `indexeddb` or `memory`.
    pub kind: &'static str,
    pub name: String,
    pub clock: PlatformClock,
    pub ids: PlatformIds,
    pub seed: Seed,
    pub global: PolicyLayer,
    pub channels: Sorted<String, PolicyLayer>,
    /// The lock names of runs that live here.
    pub live: RefCell<Sorted<String, ()>>,
    on_warning: Option<Function>,
    /// What cannot be read of the store.
    damage: RefCell<Report>,
    /// What the last page of the audit table read.
    pub payloads: RefCell<AuditPayloads>,
    sessions: RefCell<Sorted<String, Rc<SessionInner>>>,
    listeners: Listeners,
    changes: RefCell<Option<ChangeChannel>>,
    /// Answers that grow in one tab and are watched in another.
    pub answers: RefCell<Option<AnswerChannel>>,
    closed: Cell<bool>,
}

/// The name of the database unless `name` is set.
pub const DEFAULT_NAME: &str = "rethread";

/// Maximum number of findings that are kept for `status`.
const MOST_DAMAGE: usize = 100;

struct ChangeChannel {
    channel: web_sys::BroadcastChannel,
    _hold: Option<PlatformHold>,
    _on_message: Closure<dyn FnMut(web_sys::MessageEvent)>,
}

impl StoreContext {
    /// # Errors
    /// `store_error` if the platform has no source of randomness.
    pub fn new(store: Rc<dyn LogStore>, kind: &'static str, options: OpenOptions) -> Result<Rc<Self>> {
        let context = Rc::new(Self {
            kind,
            name: options.name.unwrap_or_else(|| DEFAULT_NAME.into()),
            clock: PlatformClock(options.now.map(|now| now.function)),
            ids: PlatformIds::new(options.new_id.map(|new_id| new_id.function)),
            seed: Seed(seed()?),
            global: options.replay.map(Into::into).unwrap_or_default(),
            channels: channel_layers(options.channels),
            live: RefCell::default(),
            damage: RefCell::default(),
            payloads: RefCell::default(),
            on_warning: options.on_warning.map(|on_warning| on_warning.function),
            sessions: RefCell::default(),
            listeners: Listeners::default(),
            changes: RefCell::new(None),
            answers: RefCell::new(None),
            closed: Cell::new(false),
            store,
        });
        if context.is_durable() {
            context.listen_to_tabs();
            *context.answers.borrow_mut() = AnswerChannel::open(&context);
        }
        Ok(context)
    }

    /// The time.
    pub fn now(&self) -> Ms {
        self.clock.now()
    }

    /// Whether what is stored outlives the page.
    pub fn is_durable(&self) -> bool {
        self.store.capabilities().durable
    }

    /// # Errors
    /// `closed`.
    pub fn check_open(&self) -> Result<()> {
        if self.closed.get() { Err(Error::new(Code::Closed, "this rethread was closed; `open` again")) } else { Ok(()) }
    }

    /// A promise of work that is done while this is open only.
    pub fn promise(self: &Rc<Self>, work: Work<'static, Result<JsValue>>) -> Promise {
        let context = self.clone();
        promise(Box::pin(async move {
            context.check_open()?;
            work.await
        }))
    }

    /// Closes: no call is taken any more, other tabs are not listened to.
    pub fn close(&self) {
        self.closed.set(true);
        if let Some(tabs) = self.changes.borrow_mut().take() {
            tabs.channel.set_onmessage(None);
            tabs.channel.close();
        }
        if let Some(answers) = self.answers.borrow_mut().take() {
            answers.close();
        }
        // Taken first: who is woken may call back.
        let sessions = self.sessions.take();
        for session in sessions.values() {
            session.close();
        }
        self.listeners.clear();
        self.damage.borrow_mut().clear();
        // Last: who was woken finds what was acknowledged, or that it is closed. An object that is kept keeps none of the data.
        self.store.close();
    }

    /// The session that is open under that id.
    pub fn session(&self, id: &str) -> Option<Rc<SessionInner>> {
        self.sessions.borrow().get(id).cloned()
    }

    /// Keeps an opened session; the first one of two opened at once is kept, unless it was deleted since.
    pub fn keep(&self, id: &str, session: Rc<SessionInner>) -> Rc<SessionInner> {
        if let Some(kept) = self.session(id).filter(|kept| !kept.is_deleted()) {
            return kept;
        }
        self.sessions.borrow_mut().insert(id.to_owned(), session.clone());
        session
    }

    /// Forgets a session.
    pub fn forget(&self, id: &str) {
        self.sessions.borrow_mut().remove(id);
    }

    /// Tells the application, once each finding.
    pub fn warn(&self, findings: &[Finding]) {
        let Some(on_warning) = &self.on_warning else { return };
        for finding in findings {
            let value = object_to_js(&|out| finding.write(out));
            // A listener's own failure is not ours to carry on.
            let _ = on_warning.call1(&JsValue::NULL, &value);
        }
    }

    /// Tells the application of something stored that cannot be read.
    pub fn report_unreadable(&self, what: String) {
        self.report_damage(&[Finding::warning(FindingCode::Malformed, what)]);
    }

    /// Tells the application what reading the store found, once each finding, and keeps it for `status`.
    pub fn report_damage(&self, findings: &[Finding]) {
        let mut fresh = Vec::new();
        for finding in findings {
            let mut damage = self.damage.borrow_mut();
            if !damage.contains(finding) {
                fresh.push(finding.clone());
                if damage.len() < MOST_DAMAGE {
                    damage.push(finding.clone());
                }
            }
        }
        self.warn(&fresh);
    }

    /// A stored head; one that cannot be read is rebuilt, and the application told.
    pub fn head<'a>(&'a self, id: &'a str, stored: &'a StoredHead) -> Work<'a, Result<SessionHead>> {
        Box::pin(async move {
            let (head, findings) = read_head(&*self.store, id, stored, self.seed).await?;
            self.report_damage(&findings);
            Ok(head)
        })
    }

    /// The heads of all sessions, as they are stored.
    pub fn all_heads(&self) -> Work<'_, Result<Vec<SessionRow>>> {
        Box::pin(async move {
            let (mut heads, mut cursor) = (Vec::new(), None);
            loop {
                let rows = self.store.sessions(cursor.as_deref(), 200, None).await?;
                heads.extend(rows.items);
                cursor = rows.cursor;
                if cursor.is_none() {
                    return Ok(heads);
                }
            }
        })
    }

    /// Returns the state of the store, as far as it was read since it was opened: `ready`, `degraded`, `read_only` or `evicted`.
    pub fn state(&self) -> &'static str {
        let is_writable = |session: &Rc<SessionInner>| session.is_deleted() || session.log.borrow().writable().is_ok();
        if self.store.was_evicted() {
            "evicted"
        } else if !self.sessions.borrow().values().all(is_writable) {
            "read_only"
        } else if self.damage.borrow().is_empty() {
            "ready"
        } else {
            "degraded"
        }
    }

    /// Returns the findings about damage in the store, as a JavaScript array.
    pub fn damage_to_js(&self) -> JsValue {
        report_to_js(&self.damage.borrow())
    }

    /// Listens to changes of any session; gives the function that ends it.
    pub fn subscribe(&self, listener: Function) -> Function {
        self.listeners.add(listener)
    }

    /// Tells everybody here, and other tabs, that a session changed.
    pub fn announce_change(&self, session: &str, revision: u64, deleted: bool) {
        let value = result_to_js(&SessionChange { session, revision, deleted: deleted.then_some(true) });
        if let Some(tabs) = &*self.changes.borrow() {
            // A closed channel refuses; then there is nobody to tell.
            let _ = tabs.channel.post_message(&value);
        }
        self.listeners.call(&value);
    }

    /// Tells everybody here that a session changed by what another tab did, or by its end.
    pub fn announce_change_here(&self, session: &str, revision: u64) {
        self.listeners.call(&result_to_js(&SessionChange { session, revision, deleted: None }));
    }

    /// Asks the tab that drives a run for the answer that is coming in.
    pub fn ask_for_answer(&self, session: &str, run: &str) {
        if let Some(answers) = &*self.answers.borrow() {
            answers.request(session, run);
        }
    }

    fn listen_to_tabs(self: &Rc<Self>) {
        let Ok(channel) = web_sys::BroadcastChannel::new(&format!("rethread:{}", self.name)) else { return };
        let context: Weak<Self> = Rc::downgrade(self);
        let on_message = Closure::new(move |event: web_sys::MessageEvent| {
            let Some(context) = context.upgrade() else { return };
            let value = event.data();
            let Some(id) = member(&value, "session").as_string() else { return };
            if let Some(session) = context.session(&id) {
                session.on_change_elsewhere();
            }
            context.listeners.call(&value);
        });
        channel.set_onmessage(Some(on_message.as_ref().unchecked_ref()));
        *self.changes.borrow_mut() =
            Some(ChangeChannel { _hold: PlatformHold::closing(&channel), channel, _on_message: on_message });
    }
}

/// Functions to call at a change.
#[derive(Default)]
pub struct Listeners(Rc<RefCell<Sorted<u32, Function>>>);

impl Listeners {
    /// Adds one; gives the function that removes it.
    pub fn add(&self, listener: Function) -> Function {
        let key = self.0.borrow().entries().last().map_or(0, |(key, _)| key + 1);
        self.0.borrow_mut().insert(key, listener);
        let all = self.0.clone();
        Closure::<dyn FnMut()>::new(move || {
            all.borrow_mut().remove(&key);
        })
        .into_js_value()
        .unchecked_into()
    }

    /// Removes them all.
    pub fn clear(&self) {
        drop(self.0.take());
    }

    /// Calls them all; none is called while the list is borrowed.
    pub fn call(&self, value: &JsValue) {
        let all: Vec<Function> = self.0.borrow().values().cloned().collect();
        for listener in all {
            // A listener's own failure is not ours to carry on.
            let _ = listener.call1(&JsValue::NULL, value);
        }
    }
}
