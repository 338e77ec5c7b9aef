//! An open store: its open sessions, and the messages of other tabs about them.

use super::answer_broadcast::receive_answer;
use super::change_feed::{ChangeFeed, DriverFeed};
use super::convert::to_json;
use super::foreign::{get, member};
use super::option_reader::read_optional;
use super::options::{OpenOptions, OwnerOptions, SessionOptions};
use super::results::{SessionChange, result_to_js};
use super::session_inner::{HeadFields, SessionInner};
use super::store_context::{OpenedStore, StoreContext};
use super::tab_channel::TabChannel;
use super::view::release_view;
use crate::error::{Error, Result};
use crate::finding::Report;
use crate::store::open_session_tail;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};
use wasm_bindgen::JsValue;

/// Number of sessions after which those that are not in memory any more are removed from the registry.
const PURGE_EVERY: usize = 64;

/// An open store and the registry of its open sessions.
pub struct RethreadInner {
    pub context: Rc<StoreContext>,
    /// Sessions that a handle, a run or a view holds, or that [hold themselves](SessionInner::update_hold).
    sessions: RefCell<BTreeMap<String, Weak<SessionInner>>>,
}

impl RethreadInner {
    /// # Errors
    /// `store_error` if the platform has no source of randomness.
    pub fn new(mut opened: OpenedStore, options: OpenOptions) -> Result<Rc<Self>> {
        let driver_feed = opened.changes.take();
        let context = StoreContext::new(opened, options)?;
        let open = Rc::new(Self { context: context.clone(), sessions: RefCell::default() });
        context.keep_registry(open.clone());
        if context.has_tabs() {
            let name = format!("rethread:{}", context.name);
            let changes = open.channel(&name, |open, session, value| open.on_change(session, value));
            let answers = open.channel(&format!("{name}:answers"), |open, session, value| {
                if let Some(session) = open.session(session) {
                    receive_answer(&session, value);
                }
            });
            context.connect(changes.map(|channel| Rc::new(channel) as Rc<dyn ChangeFeed>), answers);
        } else if let Some(members) = driver_feed {
            let listener = Rc::downgrade(&open);
            let on_change = Rc::new(move |change: &JsValue| {
                if let Some(open) = listener.upgrade() {
                    open.on_notice(change);
                }
            });
            context.connect(Some(Rc::new(DriverFeed::new(members, context.origin(), on_change))), None);
        }
        Ok(open)
    }

    /// Reads a session again that another tab or process has changed.
    fn on_change(&self, session: &str, change: &JsValue) {
        if let Some(session) = self.session(session) {
            session.on_change_elsewhere();
        }
        self.context.forward_change(change);
    }

    /// Handles the notice of another process. One that names no session is about all of them.
    fn on_notice(&self, notice: &JsValue) {
        let field = |key: &str| get(notice, key).unwrap_or_default();
        let Some(session) = field("session").as_string() else {
            let sessions: Vec<_> = self.sessions.borrow().values().filter_map(Weak::upgrade).collect();
            sessions.iter().for_each(SessionInner::on_change_elsewhere);
            return;
        };
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let revision = field("revision").as_f64().unwrap_or(0.0) as u64;
        let deleted = field("deleted").is_truthy().then_some(true);
        self.on_change(&session, &result_to_js(&SessionChange { session: &session, revision, deleted }));
    }

    /// Opens a channel whose messages name a session.
    fn channel(self: &Rc<Self>, name: &str, on_message: fn(&Self, &str, &JsValue)) -> Option<TabChannel> {
        let open: Weak<Self> = Rc::downgrade(self);
        TabChannel::open(name, move |value| {
            if let (Some(open), Some(session)) = (open.upgrade(), member(value, "session").as_string()) {
                on_message(&open, &session, value);
            }
        })
    }

    /// Returns the session that is open under this id.
    pub fn session(&self, id: &str) -> Option<Rc<SessionInner>> {
        self.sessions.borrow().get(id)?.upgrade()
    }

    /// Opens a session, or returns the open one.
    pub async fn open_session(&self, id: &str, options: &JsValue) -> Result<Rc<SessionInner>> {
        if id.is_empty() {
            return Err(Error::invalid("a session's id is any text but the empty one"));
        }
        let options: SessionOptions = read_optional("the options", options)?;
        let metadata = options.metadata.map(|metadata| to_json(&metadata.0)).transpose()?;
        let owner = options.owner.map(OwnerOptions::into_owner).transpose()?;
        let session = match self.open_already(id).await? {
            Some(open) => open,
            None => {
                let context = &self.context;
                let log = open_session_tail(&*context.store, id, context.seed, context.now()).await?;
                context.report_damage(&log.findings);
                let failure = log.read_failure().map(|failure| failure.error.clone());
                let session = self.register(SessionInner::new(context, id, log));
                if let Some(error) = failure.filter(|_| !session.log.borrow().is_whole()) {
                    session.note_read_failure(&error);
                }
                session
            }
        };
        if let (Ok(stored), Some(owner)) = (session.owner(), &owner) {
            stored.change_to(owner)?;
        }
        let owner = owner.map(|owner| owner.to_stored());
        let fields = HeadFields { title: options.title, channel: options.channel, metadata, owner };
        session.configure_owner(options.on_conflict.map(|option| option.0), fields.owner.is_some());
        if let Some(persistence) = options.persistence {
            session.persistence.set(persistence.0);
        }
        if let Some(trims) = options.trim_trailing_results {
            session.trim_trailing_results.set(trims);
        }
        if let Some(flush_ms) = options.flush_ms {
            session.flush_ms.set(flush_ms.0);
        }
        session.update_hold();
        session.merge_when_idle();
        session.warn_of_second_writer();
        session.configure(fields, options.replay.map(Into::into), options.on_stop.map(|option| option.0));
        if session.runs_changed() {
            // Which unfinished runs are in history already is known only of the whole.
            session.read_readable().await?;
        }
        session.read_older_soon();
        if session.log.borrow().is_whole() && session.runs_changed() && session.update_unfinished().await {
            session.notify();
        }
        // Waits for an update that another caller began, so that the first view contains unfinished runs.
        session.unfinished_update.ended().await;
        Ok(session)
    }

    /// Returns the session that is open under this id, brought up to date, unless it was deleted.
    async fn open_already(&self, id: &str) -> Result<Option<Rc<SessionInner>>> {
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
    fn register(&self, session: Rc<SessionInner>) -> Rc<SessionInner> {
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

    /// Removes a deleted session from the registry.
    pub fn unregister(&self, id: &str) {
        self.sessions.borrow_mut().remove(id);
    }

    /// Returns the findings about the open sessions whose last read failed.
    pub fn read_failures(&self) -> Report {
        let mut failures = Report::new();
        for session in self.sessions.borrow().values().filter_map(Weak::upgrade) {
            failures.extend(session.read_failure.borrow().iter().map(|failure| failure.finding.clone()));
        }
        failures
    }

    /// Returns the state of the store, as far as it was read since it was opened: `ready`, `degraded`, `read_only` or `evicted`.
    pub fn state(&self) -> &'static str {
        let is_writable = |session: Rc<SessionInner>| session.is_deleted() || session.log.borrow().writable().is_ok();
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

    /// Writes what the runs under way here have deferred, and ends their leases, so that another process may resume them at once.
    pub async fn end_ownership(&self) {
        let sessions: Vec<_> = self.sessions.borrow().values().filter_map(Weak::upgrade).collect();
        for run in sessions.iter().filter_map(|session| session.live_run()) {
            run.write_last().await;
        }
    }

    /// Closes the store and its sessions. A page keeps the last snapshot of each session that it shows.
    ///
    /// # Errors
    /// The store's own.
    pub async fn close(&self) -> Result<()> {
        self.context.disconnect();
        // Taken first: closing a session wakes code that may call back.
        let sessions = self.sessions.take();
        for session in sessions.values().filter_map(Weak::upgrade) {
            release_view(&session);
            session.close();
        }
        self.context.close().await
    }
}
