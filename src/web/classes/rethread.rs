//! `Rethread`: the class of an open store.

use super::audit::invocations;
use super::backup::{JsBackup, JsBackupRestore};
use super::open_store::{OpenedStore, WebStore};
use super::restore::{copy, restore};
use super::session::JsSession;
use crate::error::{Error, Result};
use crate::finding::Report;
use crate::options::{MAX_PAGE, PruneOptions};
use crate::run::ARCHIVE_DESCRIPTIONS;
use crate::session::{
    DEFAULT_HITS, DEFAULT_NAME, Host, MAX_HITS, prune, read_archive, rotate_keys, rotate_keys_soon, search_sessions,
};
use crate::session_head::SessionHead;
use crate::store::{
    EncryptedStore, Excerpt, LogStore, MemoryStore, MessageExcerpt, RecencyQuery, SearchHit, SessionArchive,
    recent_sessions,
};
use crate::web::conversion::convert::{parse_json, to_js};
use crate::web::conversion::option_reader::{UnreadValue, read_optional};
use crate::web::conversion::options::{OpenOptions, PendingRunQuery, SessionQuery, StoreOption, open_options};
use crate::web::conversion::results::{
    ExcerptResult, HitPage, MessageExcerptResult, PruneResult, RotationResult, SearchHitResult, SessionPage,
    SessionSummary, StatusResult, result_to_js,
};
use crate::web::conversion::untrusted_value::{bytes, member, reason_of};
use crate::web::host::change_feed::DriverFeedMembers;
use crate::web::host::cipher::WebCipher;
use crate::web::host::owned_runs::OwnedRuns;
use crate::web::promise::promise;
use crate::web::store::{
    DriverKind, Durability, IndexedDbStore, JsLogStore, StorageStatus, StoreTimeout, open_in_program, persist,
    storage_status,
};
use crate::web::wire::report_to_js;
use js_sys::{Function, Promise};
use std::rc::Rc;
use wasm_bindgen::prelude::*;

/// An open store.
#[wasm_bindgen(js_name = Rethread, skip_typescript)]
pub struct JsRethread {
    store: WebStore,
}

/// Opens a store. `local_storage` makes the driver of localStorage from its name; `open_driver_store` opens the store of
/// a driver in the program of stores; `cipher_of` makes what encrypts from its option.
#[wasm_bindgen(js_name = openRethread, skip_typescript)]
pub fn open_rethread(
    options: JsValue,
    local_storage: Function,
    open_driver_store: Function,
    cipher_of: Function,
) -> Promise {
    promise(async move {
        let options = open_options(&options)?;
        let given = |option: &Option<UnreadValue>| option.as_ref().map_or(JsValue::NULL, |option| option.0.clone());
        let encryption = options.encryption.as_ref().map(given);
        let cipher = encryption.as_ref().map(|option| WebCipher::new(option, &cipher_of)).transpose()?;
        let mut opened = open_store(&options, &local_storage, &open_driver_store).await?;
        if let Some(cipher) = cipher {
            opened.store = Rc::new(EncryptedStore::new(opened.store, cipher));
        }
        let has_replaced_keys =
            encryption.is_some_and(|option| member(&member(&option, "previous"), "length").as_f64() > Some(0.0));
        let store = WebStore::new(opened, options)?;
        if has_replaced_keys {
            rotate_keys_soon(&store.open);
        }
        Ok(JsRethread { store }.into())
    })
}

/// Opens the store that is asked for, or the default of this platform.
async fn open_store(
    options: &OpenOptions,
    local_storage: &Function,
    open_driver_store: &Function,
) -> Result<OpenedStore> {
    let durability = options.durability.map(|option| option.0).unwrap_or_default();
    let is_strict = durability == Durability::Strict;
    let promises = (is_strict, options.store_timeout());
    let name = options.name.as_deref().unwrap_or(DEFAULT_NAME);
    let kind = match &options.store {
        Some(StoreOption::Object(object)) => {
            let (owned_runs, changes) = (OwnedRuns::of_driver(object)?, DriverFeedMembers::of_driver(object)?);
            let (store, kind) = open_object(object, promises, open_driver_store).await?;
            return Ok(OpenedStore { store, kind, owned_runs, changes });
        }
        Some(StoreOption::BuiltIn("localstorage")) => {
            let driver = local_storage.call1(&JsValue::NULL, &JsValue::from_str(name));
            let driver = driver.map_err(|thrown| Error::config(reason_of(&thrown)))?;
            let (store, kind) = open_object(&driver, promises, open_driver_store).await?;
            return Ok(OpenedStore { store, kind, owned_runs: None, changes: None });
        }
        Some(StoreOption::BuiltIn(kind)) => *kind,
        None if member(&js_sys::global(), "indexedDB").is_object() => "indexeddb",
        None => "memory",
    };
    if kind == "memory" {
        if is_strict {
            return Err(Error::config(
                "`durability`: the memory store is lost with the process, so \"strict\" cannot be guaranteed; use another store, or \"relaxed\"",
            ));
        }
        return Ok(OpenedStore { store: Rc::new(MemoryStore::default()), kind, owned_runs: None, changes: None });
    }
    let store = Rc::new(IndexedDbStore::open(name, durability).await?);
    Ok(OpenedStore { store, kind, owned_runs: None, changes: None })
}

/// Opens the store that an object of the application is, and returns it with the name that `status()` shows.
async fn open_object(
    object: &JsValue,
    (is_strict, limit): (bool, StoreTimeout),
    open_driver_store: &Function,
) -> Result<(Rc<dyn LogStore>, &'static str)> {
    if DriverKind::of(object).is_some() {
        return open_in_program(object, (is_strict, limit), open_driver_store).await;
    }
    Ok((Rc::new(JsLogStore::open(object, is_strict, limit)?), "custom"))
}

#[wasm_bindgen(js_class = Rethread)]
impl JsRethread {
    /// Opens a session. One that is not stored yet is empty, and is written with its first append.
    pub fn session(&self, id: String, options: JsValue) -> Promise {
        let store = self.store.clone();
        self.store.open.context.promise(async move {
            let session = store.open_session(&id, &options).await?;
            Ok(JsSession { inner: session }.into())
        })
    }

    /// Lists sessions by recency.
    pub fn sessions(&self, query: JsValue) -> Promise {
        let context = self.store.open.context.clone();
        self.store.open.context.promise(async move {
            let SessionQuery { cursor, channel, archived, limit } = read_optional("the query", &query)?;
            let limit = limit.map_or(100, |option| option.0).min(MAX_PAGE);
            let limit = usize::try_from(limit).unwrap_or(usize::MAX);
            let query = RecencyQuery { channel, archived: archived.0, cursor, limit };
            let rows = recent_sessions(&*context.store, &query).await?;
            let mut items = Vec::new();
            for row in rows.items {
                let head = context.head(&row.id, &row.head).await?;
                items.push(summary(row.id, head));
            }
            Ok(result_to_js(&SessionPage { items, cursor: rows.cursor }))
        })
    }

    /// Searches titles and texts.
    pub fn search(&self, text: String, options: JsValue) -> Promise {
        let context = self.store.open.context.clone();
        self.store.open.context.promise(async move {
            let SessionQuery { cursor, channel, archived, limit } = read_optional("the options", &options)?;
            let limit =
                usize::try_from(limit.map_or(DEFAULT_HITS, |option| option.0).min(MAX_HITS)).unwrap_or(usize::MAX);
            let query = RecencyQuery { channel, archived: archived.0, cursor, limit };
            let found = search_sessions(&context, &text, &query).await?;
            let items = found.items.into_iter().map(hit).collect();
            Ok(result_to_js(&HitPage { items, cursor: found.cursor }))
        })
    }

    /// Erases the old turns of sessions.
    pub fn prune(&self, options: JsValue) -> Promise {
        let store = self.store.clone();
        let options: Result<PruneOptions> = read_optional("the options", &options);
        self.store.open.context.promise(async move {
            let request = options?.into_request(store.open.context.now());
            Ok(result_to_js(&PruneResult::from(prune(&store.open, &request).await?)))
        })
    }

    /// Wraps the keys of all sessions with the current key of the application.
    #[wasm_bindgen(js_name = rotateKeys)]
    pub fn rotate_keys(&self) -> Promise {
        let context = self.store.open.context.clone();
        self.store
            .open
            .context
            .promise(async move { Ok(result_to_js(&RotationResult::from(rotate_keys(&context).await?))) })
    }

    /// Deletes a session and all its records.
    #[wasm_bindgen(js_name = deleteSession)]
    pub fn delete_session(&self, id: String) -> Promise {
        let store = self.store.clone();
        self.store.open.context.promise(async move {
            store.open.delete_session(&id).await?;
            Ok(JsValue::UNDEFINED)
        })
    }

    /// Returns a session as JSON Lines.
    #[wasm_bindgen(js_name = exportSession)]
    pub fn export_session(&self, id: String) -> Promise {
        let store = self.store.clone();
        self.store.open.context.promise(async move {
            let open = store.open.session(&id);
            let archive = read_archive(&store.open.context, open.as_deref(), &id).await?;
            Ok(archive.to_json_lines(&ARCHIVE_DESCRIPTIONS).into())
        })
    }

    /// Stores what `exportSession` returned.
    #[wasm_bindgen(js_name = importSession)]
    pub fn import_session(&self, lines: String, options: JsValue) -> Promise {
        let store = self.store.clone();
        self.store.open.context.promise(async move {
            let archive = SessionArchive::from_json_lines(&lines)?;
            let session = restore(&store, archive, &options).await?;
            Ok(JsSession { inner: session }.into())
        })
    }

    /// Stores what `Session.serialize` returned.
    pub fn restore(&self, serialized: JsValue, options: JsValue) -> Promise {
        let store = self.store.clone();
        // Read now: the application may change its bytes later.
        let serialized = bytes("a serialized session", &serialized);
        self.store.open.context.promise(async move {
            let serialized = serialized?.ok_or_else(|| Error::invalid("a serialized session must be a Uint8Array"))?;
            let archive = SessionArchive::open(&serialized.into())?;
            let session = restore(&store, archive, &options).await?;
            Ok(JsSession { inner: session }.into())
        })
    }

    /// Copies a session up to a message.
    pub fn copy(&self, session: String, options: JsValue) -> Promise {
        let store = self.store.clone();
        self.store.open.context.promise(async move {
            let session = copy(&store, &session, &options).await?;
            Ok(JsSession { inner: session }.into())
        })
    }

    /// Begins a backup of all sessions.
    ///
    /// # Errors
    /// `config_invalid`; `closed`.
    pub fn backup(&self, options: JsValue) -> Result<JsBackup> {
        self.store.open.context.check_open()?;
        JsBackup::begin(self.store.open.clone(), &options)
    }

    /// Begins to restore a backup.
    ///
    /// # Errors
    /// `config_invalid`; `closed`.
    #[wasm_bindgen(js_name = restoreBackup)]
    pub fn restore_backup(&self, options: JsValue) -> Result<JsBackupRestore> {
        self.store.open.context.check_open()?;
        JsBackupRestore::begin(self.store.open.clone(), &options)
    }

    /// Returns a page of the audit table of all sessions.
    pub fn invocations(&self, query: JsValue) -> Promise {
        invocations(&self.store.open.context, query, None)
    }

    /// Lists runs that were interrupted, that failed, or that are live in another tab.
    #[wasm_bindgen(js_name = pendingRuns)]
    pub fn pending_runs(&self, query: JsValue) -> Promise {
        let store = self.store.clone();
        self.store.open.context.promise(async move {
            let query: PendingRunQuery = read_optional("the query", &query)?;
            Ok(parse_json(&store.open.pending_runs(query.session).await?))
        })
    }

    /// Calls the listener after each change of a session, in any tab. Returns the function that unsubscribes it.
    pub fn subscribe(&self, listener: js_sys::Function) -> js_sys::Function {
        self.store.host.listen();
        self.store.host.listeners.add(listener, Box::new(|| {}))
    }

    /// Asks the platform to keep the data.
    pub fn persist(&self) -> Promise {
        let durable = self.store.host.has_tabs;
        promise(async move { Ok((durable && persist().await?).into()) })
    }

    /// Reports the state of the store.
    pub fn status(&self) -> Promise {
        let store = self.store.clone();
        self.store.open.context.promise(async move {
            let status = storage_status().await;
            let findings = store.open.findings().await?;
            Ok(result_to_js(&status_of(&store, &status, &findings)))
        })
    }

    /// Closes the store. Its sessions and runs reject further calls.
    pub fn close(&self) -> Promise {
        let store = self.store.clone();
        promise(async move {
            // A store that does not answer is not waited for: its runs are as after a kill.
            let open = store.open.clone();
            let ended = async move {
                open.end_holds().await;
                Ok(())
            };
            let _ = store.open.context.outcome_in_time(Box::pin(ended)).await;
            store.close().await?;
            Ok(JsValue::UNDEFINED)
        })
    }
}

fn status_of(store: &WebStore, storage: &StorageStatus, findings: &Report) -> StatusResult {
    let durable = store.host.has_tabs;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let bytes = |given: Option<f64>| given.filter(|bytes| durable && *bytes >= 0.0).map(|bytes| bytes as u64);
    StatusResult {
        store: store.open.context.settings.kind,
        persisted: storage.persisted.filter(|_| durable),
        usage_bytes: bytes(storage.usage),
        quota_bytes: bytes(storage.quota),
        state: match store.open.state() {
            "ready" if !findings.is_empty() => "degraded",
            state => state,
        },
        findings: report_to_js(findings),
    }
}

fn hit(hit: SearchHit) -> SearchHitResult {
    let SearchHit { head, title, messages } = hit;
    let messages = messages.into_iter().map(|MessageExcerpt { id, role, excerpt: Excerpt { text, ranges } }| {
        MessageExcerptResult { message_id: id, role: role.as_str(), text, ranges }
    });
    SearchHitResult {
        session: summary(head.id.clone(), head),
        title: title.map(|Excerpt { text, ranges }| ExcerptResult { text, ranges }),
        messages: messages.collect(),
    }
}

fn summary(id: String, head: SessionHead) -> SessionSummary {
    SessionSummary {
        id,
        created_at: head.created_at,
        updated_at: head.updated_at,
        revision: head.history_revision,
        message_count: head.message_count(),
        unread: head.known_overview().map_or(0, |overview| overview.unread),
        pending_runs: head.pending_runs().count() as u64,
        pending_approvals: head.pending_approvals(),
        archived: head.is_archived,
        metadata: head.metadata.as_ref().map_or(JsValue::NULL, |metadata| to_js(metadata.view())),
        preview: head.known_overview().and_then(|overview| overview.preview.clone()).map(Into::into),
        channel: head.channel,
        title: head.title,
    }
}
