//! The services and settings that all sessions of an open store share.

use super::application::LocalFuture;
use super::host::{Audience, Host, SessionChange};
use super::payloads::AuditPayloads;
use super::pending_callbacks::PendingCallbacks;
use super::signal::Signal;
use crate::clock::Ms;
use crate::error::{Error, ErrorCode, Result};
use crate::finding::{Finding, FindingCode, Report};
use crate::id::{IdSource, Seed};
use crate::replay::{Callback, PolicyLayer};
use crate::session_head::SessionHead;
use crate::store::{AuditPages, LogStore, NoticeText, SearchIndex, SessionRow, StoredHead, read_head};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::future::Future;
use std::rc::Rc;

/// The settings of an open store.
pub struct StoreSettings {
    /// The name that `status()` returns, such as `indexeddb`.
    pub kind: &'static str,
    /// The name of the database, which the names of its locks contain.
    pub name: String,
    /// The seed of its maps, which nobody outside can guess.
    pub seed: Seed,
    /// The replay settings of all sessions.
    pub global: PolicyLayer,
    /// The replay settings of each channel that has some.
    pub channels: Vec<(String, PolicyLayer)>,
    /// Makes the titles of sessions that have none.
    pub title_session: Option<Callback>,
    /// Where no lock shows who is alive: how long the holder of a run counts as alive after its last write, in
    /// milliseconds.
    pub lease_ms: Ms,
    /// How long an operation of the store may take, in milliseconds. What ends a run or the store waits no longer than
    /// that.
    pub store_timeout: Ms,
}

impl Default for StoreSettings {
    fn default() -> Self {
        Self {
            kind: "memory",
            name: DEFAULT_NAME.into(),
            seed: Seed::default(),
            global: PolicyLayer::default(),
            channels: Vec::new(),
            title_session: None,
            lease_ms: DEFAULT_LEASE,
            store_timeout: DEFAULT_STORE_TIMEOUT,
        }
    }
}

/// Services and settings of one `open`.
pub struct StoreContext {
    /// The store.
    pub store: Rc<dyn LogStore>,
    /// The world around it.
    pub host: Rc<dyn Host>,
    /// Its settings.
    pub settings: StoreSettings,
    /// The lock names of the runs that are live here.
    pub live: RefCell<BTreeSet<String>>,
    /// The lock names of the runs that are taken over here, or of which is written what is left.
    pub claimed: RefCell<BTreeSet<String>>,
    /// Functions of the application that have not answered yet.
    pub callbacks: PendingCallbacks,
    /// Findings about what cannot be read in the store.
    damage: RefCell<Report>,
    /// A session that was open is gone from the store, and was not deleted.
    pub was_emptied: Cell<bool>,
    /// Records that the last page of the audit table read.
    pub payloads: RefCell<AuditPayloads>,
    /// What is known of the order of the audit table's rows.
    pub audit_pages: AuditPages,
    /// What the last search has read of all sessions.
    pub search_index: RefCell<SearchIndex>,
    /// The index is being stored, or could not be.
    pub is_storing_index: Cell<bool>,
    /// Names this open store in its notices, and as the holder of its runs' leases.
    origin: String,
    /// Keeps the registry of open sessions until the store is closed, even if the application drops its handle.
    registry: RefCell<Option<Rc<dyn Any>>>,
    closed: Cell<bool>,
}

/// `leaseMs` unless it is set.
pub const DEFAULT_LEASE: Ms = 30_000;

/// The value of `storeTimeoutMs` unless it is set.
pub const DEFAULT_STORE_TIMEOUT: Ms = 60_000;

/// The name of the database unless `name` is set.
pub const DEFAULT_NAME: &str = "rethread";

/// Maximum number of findings that are kept for `status`.
const MAX_DAMAGE_FINDINGS: usize = 100;

impl StoreContext {
    /// Opens a store in a host.
    #[must_use]
    pub fn new(store: Rc<dyn LogStore>, host: Rc<dyn Host>, settings: StoreSettings) -> Rc<Self> {
        Rc::new(Self {
            live: RefCell::default(),
            claimed: RefCell::default(),
            damage: RefCell::default(),
            was_emptied: Cell::default(),
            payloads: RefCell::default(),
            audit_pages: AuditPages::default(),
            search_index: RefCell::default(),
            is_storing_index: Cell::default(),
            callbacks: PendingCallbacks::default(),
            origin: host.random_id(),
            registry: RefCell::default(),
            closed: Cell::new(false),
            store,
            host,
            settings,
        })
    }

    /// The name of this open store in its notices, and as the holder of its runs' leases.
    #[must_use]
    pub fn origin(&self) -> String {
        self.origin.clone()
    }

    /// Returns what makes the notice of an append to a session, if the store sends notices.
    #[must_use]
    pub fn notice_of(&self, session: &str) -> Option<NoticeText> {
        self.store.sends_notices().then(|| self.host.notice_of(session, &self.origin))
    }

    /// Keeps the registry of open sessions until [`close`](Self::close).
    pub fn keep_registry(&self, registry: Rc<dyn Any>) {
        self.registry.replace(Some(registry));
    }

    /// Returns the source of new ids.
    #[must_use]
    pub fn ids(&self) -> &dyn IdSource {
        &*self.host
    }

    /// Runs work that nobody awaits.
    pub fn spawn(&self, work: impl Future<Output = ()> + 'static) {
        self.host.spawn(Box::pin(work));
    }

    /// Does work and returns its outcome; none if it has not ended when the store's timeout is over. It goes on then.
    /// Without timers it is waited for as long as it takes.
    pub async fn outcome_in_time(&self, work: LocalFuture<'static, Result<()>>) -> Option<Result<()>> {
        let (outcome, ended) = (Rc::new(RefCell::new(None)), Signal::default());
        let (kept, end) = (outcome.clone(), ended.clone());
        self.spawn(async move {
            kept.replace(Some(work.await));
            end.give();
        });
        if ended.unless_given(self.host.time_limit(self.settings.store_timeout)).await == Some(false) {
            ended.given().await;
        }
        outcome.take()
    }

    /// Returns the time.
    #[must_use]
    pub fn now(&self) -> Ms {
        self.host.now()
    }

    /// Returns true if stored data outlives the page.
    pub fn is_durable(&self) -> bool {
        self.store.capabilities().durable
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

    /// Rejects further calls and those that wait for a function of the application, and disconnects from other tabs.
    pub fn disconnect(&self) {
        self.closed.set(true);
        self.callbacks.close();
        self.host.disconnect();
    }

    /// Closes the store, after its sessions were closed.
    ///
    /// # Errors
    /// The store's own. Everything is released nevertheless.
    pub async fn close(&self) -> Result<()> {
        self.host.drop_listeners();
        self.damage.borrow_mut().clear();
        // A write under way ends first: whoever waits for it finds what was acknowledged, or that the store is closed.
        let closed = self.store.close().await;
        self.registry.take();
        self.search_index.take();
        closed
    }

    /// Reports findings to the application.
    pub fn warn(&self, findings: &[Finding]) {
        self.host.warn(findings);
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
        let (head, findings) = read_head(&*self.store, id, stored, self.settings.seed).await?;
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

    /// Announces a change of a session to the listeners, and to other tabs and processes.
    pub fn announce_change(&self, session: &str, revision: u64) {
        self.host.announce(&SessionChange { session, revision, is_deleted: false }, Audience::Everyone);
    }

    /// Announces that a session was deleted.
    pub fn announce_deletion(&self, session: &str) {
        self.host.announce(&SessionChange { session, revision: 0, is_deleted: true }, Audience::Everyone);
    }

    /// Announces an append to a session. The store itself tells other processes, if it sends notices.
    pub fn announce_append(&self, session: &str, revision: u64) {
        if self.store.sends_notices() {
            self.announce_change_here(session, revision);
        } else {
            self.announce_change(session, revision);
        }
    }

    /// Announces a change of a session, made or ended by another tab, to the listeners of this one.
    pub fn announce_change_here(&self, session: &str, revision: u64) {
        self.host.announce(&SessionChange { session, revision, is_deleted: false }, Audience::Here);
    }
}

/// Returns true if a finding of a rendered body is also reported to `onWarning`: it concerns the settings, not this
/// body alone.
pub fn concerns_settings(finding: &Finding) -> bool {
    matches!(finding.code, FindingCode::StaleDefault | FindingCode::CallbackFailed)
}
