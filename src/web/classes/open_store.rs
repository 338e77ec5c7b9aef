//! Opens a store in JavaScript: its host, and the messages of other tabs and processes.

use super::view::release_view;
use crate::error::Result;
use crate::id::Seed;
use crate::options::{SessionOptions, channel_layers};
use crate::session::{DEFAULT_NAME, OpenSession, OpenStore, SessionChange, StoreContext, StoreSettings};
use crate::store::LogStore;
use crate::web::conversion::option_reader::read_optional;
use crate::web::conversion::options::OpenOptions;
use crate::web::conversion::results::change_to_js;
use crate::web::conversion::run_input::JsOptions;
use crate::web::conversion::untrusted_value::{get, member};
use crate::web::host::answer_channel::receive_answer;
use crate::web::host::callbacks::bound_hook;
use crate::web::host::change_feed::{ChangeFeed, DriverFeed, DriverFeedMembers};
use crate::web::host::owned_runs::OwnedRuns;
use crate::web::host::platform::seed;
use crate::web::host::tab_channel::TabChannel;
use crate::web::host::web_host::{WebHost, WebHostSettings};
use std::rc::{Rc, Weak};
use wasm_bindgen::JsValue;

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

/// An open store with its host.
#[derive(Clone)]
pub struct WebStore {
    pub open: Rc<OpenStore>,
    pub host: Rc<WebHost>,
}

impl WebStore {
    /// # Errors
    /// `store_error` if the platform has no source of randomness.
    pub fn new(opened: OpenedStore, options: OpenOptions) -> Result<Self> {
        let OpenedStore { store, kind, owned_runs, changes } = opened;
        let has_tabs = store.capabilities().durable && matches!(kind, "indexeddb" | "localstorage");
        let defaults = StoreSettings::default();
        let settings = StoreSettings {
            kind,
            // All stores of one object name a run's lock alike.
            name: options.name.filter(|_| owned_runs.is_none()).unwrap_or_else(|| DEFAULT_NAME.into()),
            seed: Seed(seed()?),
            store_timeout: options.store_timeout_ms.map_or(defaults.store_timeout, |limit| limit.0),
            lease_ms: options.lease_ms.map_or(defaults.lease_ms, |lease| lease.0),
            global: options.replay.map(Into::into).unwrap_or_default(),
            channels: channel_layers(options.channels),
            title_session: options.title_session.map(bound_hook),
        };
        let host = WebHost::new(WebHostSettings {
            now: options.now.map(|now| now.function),
            new_id: options.new_id.map(|new_id| new_id.function),
            on_warning: options.on_warning.map(|on_warning| on_warning.function),
            kind,
            owned_runs,
            has_tabs,
        });
        let name = format!("rethread:{}", settings.name);
        let open = OpenStore::new(StoreContext::new(store, host.clone(), settings));
        let store = Self { open, host };
        if has_tabs {
            let changes = store.channel(&name, |store, session, value| store.on_change(session, value));
            let answers = store.channel(&format!("{name}:answers"), |store, session, value| {
                if let Some(session) = store.open.session(session) {
                    receive_answer(&session, value);
                }
            });
            store.host.connect(changes.map(|channel| Rc::new(channel) as Rc<dyn ChangeFeed>), answers);
        } else if let Some(members) = changes {
            let listener = store.downgrade();
            let on_change = Rc::new(move |change: &JsValue| {
                if let Some(store) = listener() {
                    store.on_notice(change);
                }
            });
            let feed = DriverFeed::new(members, store.open.context.origin(), on_change);
            store.host.connect(Some(Rc::new(feed)), None);
        }
        Ok(store)
    }

    /// Returns a function that returns this store until it is closed.
    fn downgrade(&self) -> impl Fn() -> Option<Self> + use<> {
        let (open, host): (Weak<OpenStore>, Weak<WebHost>) = (Rc::downgrade(&self.open), Rc::downgrade(&self.host));
        move || Some(Self { open: open.upgrade()?, host: host.upgrade()? })
    }

    /// Reads a session again that another tab or process has changed.
    fn on_change(&self, session: &str, change: &JsValue) {
        self.open.on_change_elsewhere(session);
        self.host.listeners.call(change);
    }

    /// Handles the notice of another process. One that names no session is about all of them.
    fn on_notice(&self, notice: &JsValue) {
        let field = |key: &str| get(notice, key).unwrap_or_default();
        let Some(session) = field("session").as_string() else { return self.open.on_any_change_elsewhere() };
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let revision = field("revision").as_f64().unwrap_or(0.0) as u64;
        let is_deleted = field("deleted").is_truthy();
        self.on_change(&session, &change_to_js(&SessionChange { session: &session, revision, is_deleted }));
    }

    /// Opens a channel whose messages name a session.
    fn channel(&self, name: &str, on_message: fn(&Self, &str, &JsValue)) -> Option<TabChannel> {
        let store = self.downgrade();
        TabChannel::open(name, move |value| {
            if let (Some(store), Some(session)) = (store(), member(value, "session").as_string()) {
                on_message(&store, &session, value);
            }
        })
    }

    /// Opens a session, or returns the open one.
    pub async fn open_session(&self, id: &str, options: &JsValue) -> Result<Rc<OpenSession>> {
        let options: SessionOptions<JsOptions> = read_optional("the options", options)?;
        self.open.open_session(id, options.into_settings()?).await
    }

    /// Closes the store and its sessions. A page keeps the last snapshot of each session that it shows.
    ///
    /// # Errors
    /// The store's own.
    pub async fn close(&self) -> Result<()> {
        self.open.context.disconnect();
        self.open.open_sessions().iter().for_each(release_view);
        self.open.close().await
    }
}
