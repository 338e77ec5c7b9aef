//! The platform as the host of open stores: its clock, timers and locks, its channels to other tabs, and the functions
//! of the application.

use super::answer_channel::answer_message;
use super::callbacks;
use super::change_feed::{ChangeFeed, notice_text};
use super::listeners::Listeners;
use super::owned_runs::OwnedRuns;
use super::platform::{self, PlatformClock, PlatformIds, WebLock};
use super::surface::WebSurface;
use super::tab_channel::TabChannel;
use crate::clock::{Clock, Ms};
use crate::error::Result;
use crate::finding::{Finding, FindingCode};
use crate::id::IdSource;
use crate::json::Json;
use crate::render::BodyFilterReply;
use crate::replay::{Callback, ReducerQuestion, ReducerReply};
use crate::run::{ApprovalQuestion, ApprovalReply, BodyFilterQuestion, PersistQuestion, PersistReply, ReplayQuestion};
use crate::session::{
    AnswerNews, Application, Audience, HeldLocks, Host, LocalFuture, LockOutcome, RunLockNames, SessionChange,
    SessionSurface,
};
use crate::store::NoticeText;
use crate::web::conversion::convert::object_to_js;
use crate::web::conversion::results::change_to_js;
use crate::web::time_limit::TimeLimit;
use js_sys::Function;
use std::cell::RefCell;
use std::rc::{Rc, Weak};
use wasm_bindgen::JsValue;
use wasm_bindgen_futures::spawn_local;

/// What an open store is told of its platform.
pub struct WebHostSettings {
    /// The option `now`.
    pub now: Option<Function>,
    /// The option `newId`.
    pub new_id: Option<Function>,
    /// The option `onWarning`.
    pub on_warning: Option<Function>,
    /// The kind of the store, for messages.
    pub kind: &'static str,
    /// The runs of this process, if only this process can have the database open.
    pub owned_runs: Option<OwnedRuns>,
    /// True if tabs of this browser share the data, and nobody else does. Then the platform's locks and channels tell
    /// who uses it; of a database server they tell nothing.
    pub has_tabs: bool,
}

/// The platform of one open store.
pub struct WebHost {
    weak_self: Weak<WebHost>,
    clock: PlatformClock,
    ids: PlatformIds,
    on_warning: Option<Function>,
    kind: &'static str,
    owned_runs: Option<OwnedRuns>,
    pub has_tabs: bool,
    /// Listeners to changes of any session.
    pub listeners: Listeners,
    /// Tells other tabs and processes of changes, and hears of theirs.
    changes: RefCell<Option<Rc<dyn ChangeFeed>>>,
    /// Carries the answers of runs to tabs that show them.
    answers: RefCell<Option<TabChannel>>,
}

impl WebHost {
    pub fn new(settings: WebHostSettings) -> Rc<Self> {
        let WebHostSettings { now, new_id, on_warning, kind, owned_runs, has_tabs } = settings;
        Rc::new_cyclic(|weak_self| Self {
            weak_self: weak_self.clone(),
            clock: PlatformClock(now),
            ids: PlatformIds::new(new_id),
            on_warning,
            kind,
            owned_runs,
            has_tabs,
            listeners: Listeners::default(),
            changes: RefCell::default(),
            answers: RefCell::default(),
        })
    }

    /// Connects what tells other tabs and processes of changes, and other tabs of answers.
    pub fn connect(&self, changes: Option<Rc<dyn ChangeFeed>>, answers: Option<TabChannel>) {
        self.changes.replace(changes);
        self.answers.replace(answers);
    }
}

impl Clock for WebHost {
    fn now(&self) -> Ms {
        self.clock.now()
    }
}

impl IdSource for WebHost {
    fn new_id(&self) -> String {
        self.ids.new_id()
    }
}

impl Application for WebHost {
    fn reduce<'q>(&'q self, question: &'q ReducerQuestion) -> LocalFuture<'q, ReducerReply> {
        Box::pin(callbacks::call_reducer(question))
    }

    fn filter_body<'q>(&'q self, question: &'q BodyFilterQuestion) -> LocalFuture<'q, Result<BodyFilterReply>> {
        Box::pin(callbacks::call_input_filter(question))
    }

    fn needs_approval<'q>(&'q self, question: &'q ApprovalQuestion) -> LocalFuture<'q, ApprovalReply> {
        Box::pin(callbacks::call_needs_approval(question))
    }

    fn approves_replay(&self, question: &ReplayQuestion) -> Result<bool> {
        callbacks::approves_replay(question)
    }

    fn persist(&self, question: &PersistQuestion) -> PersistReply {
        callbacks::call_persist(question)
    }

    fn summarize<'q>(
        &'q self,
        callback: &'q Callback,
        body: &'q [u8],
        mode: &'q str,
    ) -> LocalFuture<'q, Result<String>> {
        Box::pin(callbacks::call_summarize(callback, body, mode))
    }

    fn title<'q>(&'q self, callback: &'q Callback, exchange: Json) -> LocalFuture<'q, Result<Option<String>>> {
        Box::pin(callbacks::call_title(callback, exchange))
    }

    fn provide<'q>(&'q self, callback: &'q Callback, input: Json) -> LocalFuture<'q, Result<Json>> {
        Box::pin(callbacks::call_provide(callback, input))
    }

    fn give_to_providers<'q>(&'q self, callback: &'q Callback, turn: Json) -> LocalFuture<'q, Vec<Finding>> {
        Box::pin(callbacks::call_store(callback, turn))
    }
}

impl Host for WebHost {
    fn draw_ids(&self) {
        self.ids.draw();
    }

    fn random_id(&self) -> String {
        platform::random_id()
    }

    fn spawn(&self, work: LocalFuture<'static, ()>) {
        // Boxed already.
        spawn_local(work);
    }

    fn sleep(&self, ms: Ms) -> LocalFuture<'static, bool> {
        Box::pin(platform::sleep(ms))
    }

    fn time_limit(&self, ms: Ms) -> LocalFuture<'static, bool> {
        Box::pin(TimeLimit::over(ms))
    }

    fn random_pause(&self, longest: Ms) -> LocalFuture<'static, ()> {
        Box::pin(platform::random_pause(longest))
    }

    fn lock_run<'h>(&'h self, names: &'h RunLockNames) -> LocalFuture<'h, Result<LockOutcome>> {
        Box::pin(async move {
            if let Some(owned) = &self.owned_runs {
                let registered = owned.register(&names.holder)?;
                return Ok(registered.map_or(LockOutcome::HeldElsewhere, |run| LockOutcome::Acquired(Box::new(run))));
            }
            if !self.has_tabs {
                return Ok(LockOutcome::Unsupported);
            }
            Ok(match platform::try_acquire_lock(&names.holder).await {
                platform::WebLockOutcome::Acquired(holder) => {
                    let liveness = platform::request_lock(&names.liveness);
                    LockOutcome::Acquired(Box::new(WebLocks { _holder: holder, _liveness: liveness }))
                }
                platform::WebLockOutcome::HeldElsewhere => LockOutcome::HeldElsewhere,
                platform::WebLockOutcome::Unsupported => LockOutcome::Unsupported,
            })
        })
    }

    fn held_locks(&self) -> LocalFuture<'_, Option<HeldLocks>> {
        Box::pin(async move {
            if let Some(owned) = self.owned_runs.clone() {
                return Some(Box::new(move |name: &str| owned.has(name)) as HeldLocks);
            }
            let held = if self.has_tabs { platform::held_locks().await? } else { return None };
            Some(Box::new(move |name: &str| held.iter().any(|other| other == name)) as HeldLocks)
        })
    }

    fn lock_released<'h>(&'h self, name: &'h str) -> LocalFuture<'h, bool> {
        Box::pin(async move { self.has_tabs && platform::wait_until_released(name).await })
    }

    fn has_leases(&self) -> bool {
        // A run that is registered with its driver has no lease, and its end is announced.
        self.owned_runs.is_none()
    }

    fn listen(&self) {
        let Some(changes) = self.changes.borrow().clone() else { return };
        let host = self.weak_self.clone();
        changes.listen(Box::new(move |why| {
            let Some(host) = host.upgrade() else { return };
            let message = format!(
                "the {} store does not hear of changes in other processes, so `refresh` alone reads them: {why}",
                host.kind
            );
            host.warn(&[Finding::warning(FindingCode::CallbackFailed, message)]);
        }));
    }

    fn announce(&self, change: &SessionChange<'_>, audience: Audience) {
        let value = change_to_js(change);
        let changes = self.changes.borrow().clone().filter(|_| audience == Audience::Everyone);
        if let Some(changes) = changes {
            changes.publish(&value);
        }
        self.listeners.call(&value);
    }

    fn notice_of(&self, session: &str, origin: &str) -> NoticeText {
        let (session, origin) = (session.to_owned(), origin.to_owned());
        Box::new(move |revision| {
            let change = SessionChange { session: &session, revision, is_deleted: false };
            notice_text(&change_to_js(&change), &origin)
        })
    }

    fn send_answer(&self, session: &str, run: &str, news: AnswerNews<'_>) {
        if let Some(answers) = &*self.answers.borrow() {
            answers.post(&answer_message(session, run, news));
        }
    }

    fn warn(&self, findings: &[Finding]) {
        let Some(on_warning) = &self.on_warning else { return };
        for finding in findings {
            let value = object_to_js(&|out| finding.write(out));
            // What a listener throws has nobody to go to.
            let _ = on_warning.call1(&JsValue::NULL, &value);
        }
    }

    fn surface(&self) -> Rc<dyn SessionSurface> {
        Rc::new(WebSurface::default())
    }

    fn disconnect(&self) {
        if let Some(changes) = self.changes.take() {
            changes.close();
        }
        if let Some(answers) = self.answers.take() {
            answers.close();
        }
    }

    fn drop_listeners(&self) {
        self.listeners.clear();
    }
}

/// The Web Locks of a run. They are released in the order of the fields, so a tab that waits for the liveness lock can
/// acquire the other one.
struct WebLocks {
    _holder: WebLock,
    _liveness: Option<WebLock>,
}
