//! An open store and its open sessions.

use super::compaction_state::AutomaticCompaction;
use super::context::StoreContext;
use super::erasure::finish_cut_off_erasure;
use super::head_fields::HeadFields;
use super::journals::pending_runs;
use super::open_session::OpenSession;
use crate::clock::Ms;
use crate::error::{Error, ErrorCode, Result};
use crate::finding::{Finding, FindingCode, Report};
use crate::json::Json;
use crate::owner::{OnConflict, StateOwner};
use crate::replay::PolicyLayer;
use crate::run::{OnStop, Persistence};
use crate::session_head::SessionHead;
use crate::store::{RecordKind, delete_session, open_record, open_session_tail, unreadable_head};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};

/// Number of sessions after which those that are not in memory any more are removed from the registry.
const PURGE_EVERY: usize = 64;

/// The settings of a session. Those that are absent keep their value.
#[derive(Default)]
pub struct SessionSettings {
    /// Its title.
    pub title: Option<String>,
    /// Its channel.
    pub channel: Option<String>,
    /// Data of the application.
    pub metadata: Option<Json>,
    /// Who owns the conversation's state.
    pub owner: Option<StateOwner>,
    /// What happens if a service keeps the conversation although the owner is another one.
    pub on_conflict: Option<OnConflict>,
    /// When history is written.
    pub persistence: Option<Persistence>,
    /// True if a run's trailing result is left out.
    pub trim_trailing_results: Option<bool>,
    /// How long journal writes are gathered, in milliseconds.
    pub flush_ms: Option<Ms>,
    /// Its replay settings.
    pub replay: Option<PolicyLayer>,
    /// When it is compacted without a call of `compact`.
    pub compaction: Option<AutomaticCompaction>,
    /// What is stored of a run that is cancelled.
    pub on_stop: Option<OnStop>,
}

/// An open store and the registry of its open sessions.
pub struct OpenStore {
    /// The store, its host and its settings.
    pub context: Rc<StoreContext>,
    /// Sessions that a handle, a run or a view holds, or that [hold themselves](OpenSession::update_hold).
    sessions: RefCell<BTreeMap<String, Weak<OpenSession>>>,
}

impl OpenStore {
    /// Makes the registry of an open store, which keeps it until it is closed.
    #[must_use]
    pub fn new(context: Rc<StoreContext>) -> Rc<Self> {
        let open = Rc::new(Self { context, sessions: RefCell::default() });
        open.context.keep_registry(open.clone());
        open
    }

    /// Reads a session again that another tab or process has changed.
    pub fn on_change_elsewhere(&self, session: &str) {
        if let Some(session) = self.session(session) {
            session.on_change_elsewhere();
        }
    }

    /// Reads all open sessions again: any of them may have changed in another process.
    pub fn on_any_change_elsewhere(&self) {
        self.open_sessions().iter().for_each(OpenSession::on_change_elsewhere);
    }

    /// Returns the sessions that are in memory.
    pub fn open_sessions(&self) -> Vec<Rc<OpenSession>> {
        self.sessions.borrow().values().filter_map(Weak::upgrade).collect()
    }

    /// Returns the session that is open under this id.
    pub fn session(&self, id: &str) -> Option<Rc<OpenSession>> {
        self.sessions.borrow().get(id)?.upgrade()
    }

    /// Opens a session, or returns the open one.
    ///
    /// # Errors `invalid_input` for an empty id; that of [`change_to`](StateOwner::change_to) for an owner that the
    /// session cannot get; the store's own.
    pub async fn open_session(&self, id: &str, settings: SessionSettings) -> Result<Rc<OpenSession>> {
        if id.is_empty() {
            return Err(Error::invalid("a session's id is any text but the empty one"));
        }
        let session = match self.open_already(id).await? {
            Some(open) => open,
            None => {
                let context = &self.context;
                let log = open_session_tail(&*context.store, id, context.settings.seed, context.now()).await?;
                context.report_damage(&log.findings);
                let failure = log.read_failure().map(|failure| failure.error.clone());
                let session = self.register(OpenSession::new(context, id, log));
                if let Some(error) = failure.filter(|_| !session.log.borrow().is_whole()) {
                    session.note_read_failure(&error);
                }
                session
            }
        };
        if let (Ok(stored), Some(owner)) = (session.owner(), &settings.owner) {
            stored.change_to(owner)?;
        }
        let owner = settings.owner.map(|owner| owner.to_stored());
        let fields =
            HeadFields { title: settings.title, channel: settings.channel, metadata: settings.metadata, owner };
        session.configure_owner(settings.on_conflict, fields.owner.is_some());
        if let Some(persistence) = settings.persistence {
            session.persistence.set(persistence);
        }
        if let Some(trims) = settings.trim_trailing_results {
            session.trim_trailing_results.set(trims);
        }
        if settings.compaction.is_some() {
            session.compaction.automatic.replace(settings.compaction);
        }
        if let Some(flush_ms) = settings.flush_ms {
            session.flush_ms.set(flush_ms);
        }
        session.update_hold();
        session.merge_when_idle();
        session.warn_of_second_writer();
        session.configure(fields, settings.replay, settings.on_stop);
        if session.runs_changed() {
            // Which pending runs are in history already is known only of the whole.
            session.read_readable().await?;
        }
        session.read_older_soon();
        if session.log.borrow().is_whole() && session.runs_changed() && session.update_pending().await {
            session.notify();
        }
        // Waits for an update that another caller began, so that the first view contains pending runs.
        session.pending_update.ended().await;
        finish_cut_off_erasure(&session).await;
        Ok(session)
    }

    /// Returns the session that is open under this id, brought up to date, unless it was deleted.
    async fn open_already(&self, id: &str) -> Result<Option<Rc<OpenSession>>> {
        let Some(open) = self.session(id) else { return Ok(None) };
        let refreshed = open.refresh().await;
        let is_changed = refreshed.as_ref().copied().unwrap_or(true);
        open.or_show_rest(refreshed.map(drop))?;
        if is_changed {
            open.notify();
        }
        Ok(if open.is_deleted() { None } else { Some(open) })
    }

    /// Registers an opened session. Of two that were opened at once the first is kept.
    fn register(&self, session: Rc<OpenSession>) -> Rc<OpenSession> {
        if let Some(kept) = self.session(&session.id).filter(|kept| !kept.is_deleted()) {
            return kept;
        }
        let mut sessions = self.sessions.borrow_mut();
        if sessions.len().is_multiple_of(PURGE_EVERY) {
            sessions.retain(|_, session| session.strong_count() > 0);
        }
        sessions.insert(session.id.clone(), session.weak_self.clone());
        session
    }

    /// Deletes a session and all its records.
    ///
    /// # Errors
    /// `busy` while a run of it is under way here; the store's own.
    pub async fn delete_session(&self, id: &str) -> Result<()> {
        if self.session(id).is_some_and(|session| session.has_live_run()) {
            return Err(Error::new(ErrorCode::Busy, "a run of this session is under way here; cancel it first"));
        }
        let context = &self.context;
        delete_session(&*context.store, id, context.settings.seed, &context.host.random_id()).await?;
        let deleted = self.session(id);
        self.sessions.borrow_mut().remove(id);
        if let Some(session) = deleted {
            session.refresh().await?;
            session.notify();
        }
        context.announce_deletion(id);
        Ok(())
    }

    /// Lists the pending runs of a session, or of all, as JSON.
    ///
    /// # Errors
    /// The store's own.
    pub async fn pending_runs(&self, session: Option<String>) -> Result<String> {
        let context = &self.context;
        let mut heads = Vec::new();
        if let Some(id) = session {
            if let Some(stored) = context.store.head(&id).await? {
                let head = context.head(&id, &stored).await?;
                heads.push((id, head));
            }
        } else {
            for row in context.all_heads().await? {
                let head = context.head(&row.id, &row.head).await?;
                heads.push((row.id, head));
            }
        }
        pending_runs(context, heads, &|_| {}).await
    }

    /// Reads the heads of all sessions. Returns what is wrong with the store, as far as it was read since it was
    /// opened.
    ///
    /// # Errors
    /// `closed`.
    pub async fn findings(&self) -> Result<Report> {
        let context = &self.context;
        let (heads, mut failures) = match context.all_heads().await {
            Ok(heads) => (heads, self.read_failures()),
            Err(error) => {
                context.check_open()?;
                let mut failures = self.read_failures();
                let what = format!("the store failed to list its sessions: {}", error.message);
                failures.push(Finding::warning(FindingCode::ReadFailed, what));
                (Vec::new(), failures)
            }
        };
        for row in heads {
            if let Err(error) = open_record::<SessionHead>(RecordKind::Head, &row.head.value) {
                context.report_unreadable(unreadable_head(&row.id, &error));
            }
        }
        failures.splice(0..0, context.damage());
        Ok(failures)
    }

    /// Returns the findings about the open sessions whose last read failed.
    fn read_failures(&self) -> Report {
        let mut failures = Report::new();
        for session in self.sessions.borrow().values().filter_map(Weak::upgrade) {
            failures.extend(session.read_failure.borrow().iter().map(|failure| failure.finding.clone()));
        }
        failures
    }

    /// Returns the state of the store, as far as it was read since it was opened: `ready`, `degraded`, `read_only` or
    /// `evicted`.
    pub fn state(&self) -> &'static str {
        let is_writable = |session: Rc<OpenSession>| session.is_deleted() || session.log.borrow().writable().is_ok();
        if self.context.store.was_evicted() || self.context.was_emptied.get() {
            "evicted"
        } else if !self.sessions.borrow().values().filter_map(Weak::upgrade).all(is_writable) {
            "read_only"
        } else if self.context.is_damaged() || !self.read_failures().is_empty() {
            "degraded"
        } else {
            "ready"
        }
    }

    /// Writes what the runs under way here have deferred, and ends their leases and those of the questions that wait
    /// here, so that another process may resume them at once.
    pub async fn end_holds(&self) {
        for session in self.open_sessions() {
            session.end_leases_of_queue().await;
        }
        for run in self.open_sessions().iter().filter_map(|session| session.live_run()) {
            run.write_last().await;
        }
    }

    /// Closes the store and its sessions, after [`disconnect`](StoreContext::disconnect).
    ///
    /// # Errors
    /// The store's own.
    pub async fn close(&self) -> Result<()> {
        // Taken first: closing a session wakes code that may call back.
        let sessions = self.sessions.take();
        sessions.values().filter_map(Weak::upgrade).for_each(|session| session.close());
        self.context.close().await
    }
}
