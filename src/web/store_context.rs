//! The services and settings that all sessions of an open store share.

use super::change_feed::{ChangeFeed, DriverFeedMembers, notice_text};
use super::convert::object_to_js;
use super::listeners::Listeners;
use super::options::{OpenOptions, channel_layers};
use super::owned_runs::OwnedRuns;
use super::payloads::AuditPayloads;
use super::pending_callbacks::PendingCallbacks;
use super::platform::{PlatformClock, PlatformIds, random_id, seed};
use super::promise::{PromisedWork, promise};
use super::results::{SessionChange, result_to_js};
use super::store::StoreTimeout;
use super::tab_channel::TabChannel;
use crate::clock::{Clock, Ms};
use crate::error::{Error, ErrorCode, Result};
use crate::finding::{Finding, FindingCode, Report};
use crate::id::Seed;
use crate::replay::PolicyLayer;
use crate::session_head::SessionHead;
use crate::store::{AuditPages, LogStore, NoticeText, SessionRow, StoredHead, read_head};
use js_sys::{Function, Promise};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use wasm_bindgen::prelude::*;

/// Services and settings of one `open`.
pub struct StoreContext {
    pub store: Rc<dyn LogStore>,
    /// `indexeddb` or `memory`.
    pub kind: &'static str,
    pub name: String,
    pub clock: PlatformClock,
    pub ids: PlatformIds,
    pub seed: Seed,
    pub global: PolicyLayer,
    /// The replay settings of each channel that has some.
    pub channels: Vec<(String, PolicyLayer)>,
    /// The lock names of the runs that are live in this tab.
    pub live: RefCell<BTreeSet<String>>,
    /// The lock names of the runs that this tab takes over, or of which it writes what is left.
    pub claimed: RefCell<BTreeSet<String>>,
    /// The runs of this process, if only this process can have the database open.
    pub owned_runs: Option<OwnedRuns>,
    /// Where no lock shows who is alive: how long the owner of a run counts as alive after its last write, in milliseconds.
    pub lease_ms: Ms,
    /// How long an operation of the store may take. What ends a run or the store waits no longer than that.
    pub store_timeout: StoreTimeout,
    /// Functions of the application that have not answered yet.
    pub callbacks: PendingCallbacks,
    on_warning: Option<Function>,
    /// Findings about what cannot be read in the store.
    damage: RefCell<Report>,
    /// A session that was open is gone from the store, and was not deleted.
    pub was_emptied: Cell<bool>,
    /// Records that the last page of the audit table read.
    pub payloads: RefCell<AuditPayloads>,
    /// What is known of the order of the audit table's rows.
    pub audit_pages: AuditPages,
    listeners: Listeners,
    /// Tells other tabs and processes of changes, and hears of theirs.
    changes: RefCell<Option<Rc<dyn ChangeFeed>>>,
    /// Names this open store in its notices, and as the holder of its runs' leases.
    origin: String,
    /// Carries the answers of runs to tabs that show them.
    answers: RefCell<Option<TabChannel>>,
    /// Keeps the registry of open sessions until the store is closed, even if the application drops the `Rethread` object.
    registry: RefCell<Option<Rc<dyn Any>>>,
    closed: Cell<bool>,
}

/// A store, and what is known of its users.
pub struct OpenedStore {
    pub store: Rc<dyn LogStore>,
    /// The name that `status()` returns.
    pub kind: &'static str,
    /// The runs of this process, if only this process can have the database open.
    pub owned_runs: Option<OwnedRuns>,
    /// How the driver tells others of changes.
    pub changes: Option<DriverFeedMembers>,
}

/// `leaseMs` unless it is set.
const DEFAULT_LEASE: Ms = 30_000;

/// The name of the database unless `name` is set.
pub const DEFAULT_NAME: &str = "rethread";

/// Maximum number of findings that are kept for `status`.
const MAX_DAMAGE_FINDINGS: usize = 100;

impl StoreContext {
    /// # Errors
    /// `store_error` if the platform has no source of randomness.
    pub fn new(opened: OpenedStore, options: OpenOptions) -> Result<Rc<Self>> {
        let OpenedStore { store, kind, owned_runs, .. } = opened;
        Ok(Rc::new(Self {
            kind,
            store_timeout: options.store_timeout(),
            lease_ms: options.lease_ms.map_or(DEFAULT_LEASE, |lease| lease.0),
            // All stores of one object name a run's lock alike.
            name: options.name.filter(|_| owned_runs.is_none()).unwrap_or_else(|| DEFAULT_NAME.into()),
            owned_runs,
            clock: PlatformClock(options.now.map(|now| now.function)),
            ids: PlatformIds::new(options.new_id.map(|new_id| new_id.function)),
            seed: Seed(seed()?),
            global: options.replay.map(Into::into).unwrap_or_default(),
            channels: channel_layers(options.channels),
            live: RefCell::default(),
            claimed: RefCell::default(),
            damage: RefCell::default(),
            was_emptied: Cell::default(),
            payloads: RefCell::default(),
            audit_pages: AuditPages::default(),
            callbacks: PendingCallbacks::default(),
            on_warning: options.on_warning.map(|on_warning| on_warning.function),
            listeners: Listeners::default(),
            changes: RefCell::default(),
            origin: random_id(),
            answers: RefCell::default(),
            registry: RefCell::default(),
            closed: Cell::new(false),
            store,
        }))
    }

    /// Connects what tells other tabs and processes of changes, and other tabs of answers.
    pub fn connect(&self, changes: Option<Rc<dyn ChangeFeed>>, answers: Option<TabChannel>) {
        self.changes.replace(changes);
        self.answers.replace(answers);
    }

    /// The name of this open store in its notices, and as the holder of its runs' leases.
    pub fn origin(&self) -> String {
        self.origin.clone()
    }

    /// Begins to hear of the changes of other processes: somebody listens here.
    pub fn listen(self: &Rc<Self>) {
        let Some(changes) = self.changes.borrow().clone() else { return };
        let context = self.clone();
        changes.listen(Box::new(move |why| {
            let message = format!(
                "the {} store does not hear of changes in other processes, so `refresh` alone reads them: {why}",
                context.kind
            );
            context.warn(&[Finding::warning(FindingCode::CallbackFailed, message)]);
        }));
    }

    /// Returns what makes the notice of an append to a session, if the store sends notices.
    pub fn notice_of(&self, session: &str) -> Option<NoticeText> {
        if !self.store.sends_notices() {
            return None;
        }
        let (session, origin) = (session.to_owned(), self.origin());
        Some(Box::new(move |revision| {
            notice_text(&result_to_js(&SessionChange { session: &session, revision, deleted: None }), &origin)
        }))
    }

    /// Keeps the registry of open sessions until [`close`](Self::close).
    pub fn keep_registry(&self, registry: Rc<dyn Any>) {
        self.registry.replace(Some(registry));
    }

    /// Returns the time.
    pub fn now(&self) -> Ms {
        self.clock.now()
    }

    /// Returns true if stored data outlives the page.
    pub fn is_durable(&self) -> bool {
        self.store.capabilities().durable
    }

    /// Returns true if tabs of this browser share the data, and nobody else does. Then the platform's locks and channels tell who
    /// uses it; of a database server they tell nothing.
    pub fn has_tabs(&self) -> bool {
        self.is_durable() && matches!(self.kind, "indexeddb" | "localstorage")
    }

    /// # Errors
    /// `closed`.
    pub fn check_open(&self) -> Result<()> {
        if self.closed.get() {
            Err(Error::new(ErrorCode::Closed, "this rethread was closed; `open` again"))
        } else {
            Ok(())
        }
    }

    /// Runs a future of an exported method; the promise rejects with `closed` if the store is closed.
    pub fn promise(self: &Rc<Self>, work: impl Future<Output = Result<JsValue>> + 'static) -> Promise {
        self.boxed_promise(Box::pin(work))
    }

    fn boxed_promise(self: &Rc<Self>, work: PromisedWork) -> Promise {
        let context = self.clone();
        promise(async move {
            context.check_open()?;
            work.await
        })
    }

    /// Rejects further calls and those that wait for a function of the application, and disconnects from other tabs.
    pub fn disconnect(&self) {
        self.closed.set(true);
        self.callbacks.close();
        if let Some(changes) = self.changes.take() {
            changes.close();
        }
        if let Some(answers) = self.answers.take() {
            answers.close();
        }
    }

    /// Closes the store, after its sessions were closed.
    ///
    /// # Errors
    /// The store's own. Everything is released nevertheless.
    pub async fn close(&self) -> Result<()> {
        self.listeners.clear();
        self.damage.borrow_mut().clear();
        // A write under way ends first: whoever waits for it finds what was acknowledged, or that the store is closed.
        let closed = self.store.close().await;
        self.registry.take();
        closed
    }

    /// Calls `onWarning` with each finding.
    pub fn warn(&self, findings: &[Finding]) {
        let Some(on_warning) = &self.on_warning else { return };
        for finding in findings {
            let value = object_to_js(&|out| finding.write(out));
            // What a listener throws has nobody to go to.
            let _ = on_warning.call1(&JsValue::NULL, &value);
        }
    }

    /// Reports a record that cannot be read.
    pub fn report_unreadable(&self, what: String) {
        self.report_damage(&[Finding::warning(FindingCode::Malformed, what)]);
    }

    /// Reports findings about damage, each one once, and keeps them for `status`.
    pub fn report_damage(&self, findings: &[Finding]) {
        let mut fresh = Vec::new();
        for finding in findings {
            let mut damage = self.damage.borrow_mut();
            if !damage.contains(finding) {
                fresh.push(finding.clone());
                if damage.len() < MAX_DAMAGE_FINDINGS {
                    damage.push(finding.clone());
                }
            }
        }
        self.warn(&fresh);
    }

    /// Decodes a stored head. One that cannot be read is rebuilt, and the damage is reported.
    pub async fn head(&self, id: &str, stored: &StoredHead) -> Result<SessionHead> {
        let (head, findings) = read_head(&*self.store, id, stored, self.seed).await?;
        self.report_damage(&findings);
        Ok(head)
    }

    /// Returns the stored heads of all sessions.
    pub async fn all_heads(&self) -> Result<Vec<SessionRow>> {
        let (mut heads, mut cursor) = (Vec::new(), None);
        loop {
            let rows = self.store.sessions(cursor.as_deref(), 200, None).await?;
            heads.extend(rows.items);
            cursor = rows.cursor;
            if cursor.is_none() {
                return Ok(heads);
            }
        }
    }

    /// Returns true if something in the store cannot be read.
    pub fn is_damaged(&self) -> bool {
        !self.damage.borrow().is_empty()
    }

    /// Returns the findings about damage in the store.
    pub fn damage(&self) -> Report {
        self.damage.borrow().clone()
    }

    /// Adds a listener to changes of any session; returns the function that removes it.
    pub fn subscribe(self: &Rc<Self>, listener: Function) -> Function {
        self.listen();
        self.listeners.add(listener, Box::new(|| {}))
    }

    /// Announces a change of a session to the listeners, and to other tabs and processes.
    pub fn announce_change(&self, session: &str, revision: u64, deleted: bool) {
        let value = result_to_js(&SessionChange { session, revision, deleted: deleted.then_some(true) });
        let changes = self.changes.borrow().clone();
        if let Some(changes) = changes {
            changes.publish(&value);
        }
        self.listeners.call(&value);
    }

    /// Announces an append to a session. The store itself tells other processes, if it sends notices.
    pub fn announce_append(&self, session: &str, revision: u64) {
        if self.store.sends_notices() {
            self.announce_change_here(session, revision);
        } else {
            self.announce_change(session, revision, false);
        }
    }

    /// Announces a change of a session, made or ended by another tab, to the listeners of this tab.
    pub fn announce_change_here(&self, session: &str, revision: u64) {
        self.listeners.call(&result_to_js(&SessionChange { session, revision, deleted: None }));
    }

    /// Calls the listeners with a change that another tab announced.
    pub fn forward_change(&self, change: &JsValue) {
        self.listeners.call(change);
    }

    /// Sends a message about a run's answer to the other tabs.
    pub fn post_answer(&self, message: &JsValue) {
        if let Some(answers) = &*self.answers.borrow() {
            answers.post(message);
        }
    }
}

/// Returns true if a finding of a rendered body is also reported to `onWarning`: it concerns the settings, not this body alone.
pub fn concerns_settings(finding: &Finding) -> bool {
    matches!(finding.code, FindingCode::StaleDefault | FindingCode::CallbackFailed)
}
