//! Opening, losing and deleting the database.

use super::failure::IdbFailure;
use super::options::{Durability, IndexedDbOptions};
use super::transaction::{self, TransactionHandlers};
use super::upgrade::{VERSION, change_schema, check_stores};
use super::wait::{EventHandler, OneShot, Timeout, handler};
use crate::clock::Ms;
use crate::error::{ErrorCode, Result};
use crate::web::conversion::convert::set;
use crate::web::conversion::untrusted_value::member;
use crate::web::trap_cleanup::TrapCleanup;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use wasm_bindgen::prelude::*;
use web_sys::{IdbDatabase, IdbFactory, IdbOpenDbRequest, IdbTransaction, Storage};

#[wasm_bindgen]
extern "C" {
    type DatabaseExt;
    #[wasm_bindgen(method, catch)]
    fn transaction(
        this: &DatabaseExt,
        stores: &js_sys::Array,
        mode: &str,
        options: &JsValue,
    ) -> std::result::Result<IdbTransaction, JsValue>;
}

/// An open database, until the browser or another tab closes it.
pub(super) struct IdbConnection {
    open: Rc<OpenDatabase>,
    _on_versionchange: EventHandler,
    _on_close: EventHandler,
    _hold: Option<TrapCleanup>,
}

/// Where an open database comes from.
#[derive(Clone, Default)]
pub(super) enum DatabaseOrigin {
    #[default]
    Existing,
    /// It had to be created.
    Created,
    /// The browser deleted a damaged database, for this reason, and created an empty one.
    Replaced(String),
}

impl DatabaseOrigin {
    /// Reads the event of a database that is created. Chromium reports what it deleted in members of its own.
    fn of_upgrade(event: &JsValue) -> Self {
        let text = |key: &str| member(event, key).as_string().unwrap_or_default();
        match text("dataLoss").as_str() {
            "" | "none" => Self::Created,
            _ => Self::Replaced(text("dataLossMessage")),
        }
    }
}

struct OpenDatabase {
    database: IdbDatabase,
    closed: Cell<bool>,
}

impl IdbConnection {
    /// Opens the database.
    ///
    /// # Errors
    /// `config_invalid` if somebody else made it; nothing is written then.
    pub(super) async fn open(
        name: &str,
        options: &IndexedDbOptions,
    ) -> std::result::Result<(Self, DatabaseOrigin), IdbFailure> {
        let guard = attach_handlers(factory()?.open_with_u32(name, VERSION)?, (name, options))?;
        let database: IdbDatabase = guard.opening.end.wait().await?.unchecked_into();
        if let Err(failure) = check_stores(&database, name) {
            database.close();
            return Err(failure);
        }
        let open = Rc::new(OpenDatabase { database, closed: Cell::new(false) });
        let on_versionchange = handler(&open, |open| {
            open.database.close();
            open.closed.set(true);
        });
        let on_close = handler(&open, |open| open.closed.set(true));
        set(&open.database, "onversionchange", on_versionchange.as_ref());
        set(&open.database, "onclose", on_close.as_ref());
        let hold = TrapCleanup::closing(&open.database);
        Ok((
            Self { _hold: hold, open, _on_versionchange: on_versionchange, _on_close: on_close },
            guard.opening.origin.take(),
        ))
    }

    pub(super) fn is_closed(&self) -> bool {
        self.open.closed.get()
    }

    pub(super) fn database(&self) -> &IdbDatabase {
        &self.open.database
    }

    /// Begins a transaction: for writing with the given durability, otherwise for reading.
    pub(super) fn begin(
        &self,
        stores: &[&str],
        write: Option<Durability>,
    ) -> std::result::Result<IdbTransaction, IdbFailure> {
        let names: js_sys::Array = stores.iter().copied().map(JsValue::from_str).collect();
        let options = js_sys::Object::new();
        if let Some(durability) = write {
            set(&options, "durability", &durability.as_str().into());
        }
        let mode = if write.is_some() { "readwrite" } else { "readonly" };
        Ok(self.open.database.unchecked_ref::<DatabaseExt>().transaction(&names, mode, &options)?)
    }
}

impl Drop for IdbConnection {
    fn drop(&mut self) {
        let database = self.database();
        set(database, "onversionchange", &JsValue::NULL);
        set(database, "onclose", &JsValue::NULL);
        database.close(); // transactions under way end first
    }
}

/// Deletes a database and everything in it.
///
/// # Errors
/// `upgrade_blocked` if another tab keeps it open; it is deleted as soon as that tab closes it.
pub async fn delete_database(name: &str) -> Result<()> {
    let delete = async {
        let guard = attach_handlers(factory()?.delete_database(name)?, (name, &IndexedDbOptions::default()))?;
        guard.opening.end.wait().await
    };
    delete.await.map_err(|failure: IdbFailure| failure.error)?;
    EvictionMarker::of(name).clear();
    Ok(())
}

fn factory() -> std::result::Result<IdbFactory, IdbFailure> {
    let factory = member(&js_sys::global(), "indexedDB");
    if factory.is_object() {
        return Ok(factory.unchecked_into());
    }
    let help = "there is no IndexedDB here: a private window, a sandboxed frame, or not a browser; use another store, such as the memory store";
    Err(IdbFailure::new(ErrorCode::StoreError, help))
}

/// A pending request to open or to delete a database.
struct OpenRequest {
    request: IdbOpenDbRequest,
    state: Cell<OpenRequestState>,
    origin: RefCell<DatabaseOrigin>,
    end: OneShot<JsValue>,
    name: String,
    busy_after: Ms,
    blocked_after: Ms,
    timers: RefCell<Vec<Timeout>>,
    /// Changes a database of an older version.
    upgrading: RefCell<Option<TransactionHandlers>>,
}

#[derive(Clone, Copy, PartialEq)]
enum OpenRequestState {
    Waiting,
    Settled,
    /// Nobody waits for the result any more.
    Abandoned,
}

impl OpenRequest {
    /// Creates the object stores of a new database, or changes one of an older version.
    fn upgrade(&self, event: &JsValue) {
        // Nobody holds the database any more, and the transaction has timers of its own.
        drop(self.timers.take());
        let Some(transaction) = self.request.transaction() else { return };
        let old_version = member(event, "oldVersion").as_f64().unwrap_or(0.0) as u32;
        if let Err(failure) = self.change_database(&transaction, old_version) {
            let _ = transaction.abort(); // it may be over already; the failure is reported in any case
            return self.end.set(Err(failure));
        }
        if old_version == 0 {
            self.origin.replace(DatabaseOrigin::of_upgrade(event));
        }
    }

    fn change_database(&self, transaction: &IdbTransaction, old_version: u32) -> std::result::Result<(), IdbFailure> {
        let database: IdbDatabase = self.request.result()?.unchecked_into();
        if let Some(script) = change_schema(&database, (&self.name, transaction), old_version)? {
            let script = Rc::new(RefCell::new(script));
            let upgrading = transaction::begin(transaction.clone(), script, self.busy_after, true);
            self.upgrading.replace(Some(upgrading));
        }
        Ok(())
    }

    fn succeeded(self: &Rc<Self>) {
        match (self.request.result(), self.state.replace(OpenRequestState::Settled)) {
            (Ok(late), OpenRequestState::Abandoned) => close(&late),
            (result, _) => self.end.set(result.map_err(IdbFailure::from)),
        }
    }

    fn failed(self: &Rc<Self>) {
        self.state.set(OpenRequestState::Settled);
        let failure = match self.request.error() {
            Ok(Some(error)) => JsValue::from(error).into(),
            Ok(None) => IdbFailure::ended(),
            Err(thrown) => thrown.into(),
        };
        self.end.set(Err(failure));
    }

    fn blocked(self: &Rc<Self>) {
        if let Err(failure) = self.give_up_after(self.blocked_after) {
            self.end.set(Err(failure));
        }
    }

    fn give_up_after(self: &Rc<Self>, wait: Ms) -> std::result::Result<(), IdbFailure> {
        self.timers.borrow_mut().push(Timeout::start(wait, handler(self, Self::give_up))?);
        Ok(())
    }

    fn give_up(self: &Rc<Self>) {
        let help =
            "another tab holds the database while it is to be changed; close or reload the other tabs of this site";
        self.end.set(Err(IdbFailure::new(ErrorCode::UpgradeBlocked, help)));
    }
}

/// Attaches the handlers of a request to open or to delete.
fn attach_handlers(
    request: IdbOpenDbRequest,
    (name, options): (&str, &IndexedDbOptions),
) -> std::result::Result<OpenRequestGuard, IdbFailure> {
    let opening = Rc::new(OpenRequest {
        request,
        state: Cell::new(OpenRequestState::Waiting),
        origin: RefCell::default(),
        end: OneShot::new(),
        name: name.to_owned(),
        busy_after: options.busy_after,
        blocked_after: options.blocked_after,
        timers: RefCell::default(),
        upgrading: RefCell::default(),
    });
    // Behind a deletion that waits for another tab no event arrives, so a long silence counts as blocked, too.
    opening.give_up_after(options.busy_after)?;
    let upgraded = Rc::clone(&opening);
    let handlers = [
        EventHandler::new(move |event| upgraded.upgrade(&event)),
        handler(&opening, OpenRequest::succeeded),
        handler(&opening, OpenRequest::failed),
        handler(&opening, OpenRequest::blocked),
    ];
    for (event, handler) in EVENTS.iter().zip(&handlers) {
        set(&opening.request, event, handler.as_ref());
    }
    Ok(OpenRequestGuard { opening, handlers: Some(handlers) })
}

/// The events of a request to open or to delete.
const EVENTS: [&str; 4] = ["onupgradeneeded", "onsuccess", "onerror", "onblocked"];

/// Closes the database that a request to open returned. A request to delete returns none.
fn close(opened: &JsValue) {
    if let Some(database) = opened.dyn_ref::<IdbDatabase>() {
        database.close();
    }
}

/// The handlers of a request. A request to open cannot be cancelled: if it is abandoned, its handlers stay and close a
/// late database.
struct OpenRequestGuard {
    opening: Rc<OpenRequest>,
    handlers: Option<[EventHandler; 4]>,
}

impl Drop for OpenRequestGuard {
    fn drop(&mut self) {
        let OpenRequest { request, state, end, timers, .. } = &*self.opening;
        drop(timers.take());
        if state.get() == OpenRequestState::Settled {
            for event in EVENTS {
                set(request, event, &JsValue::NULL);
            }
            if let Some(Ok(unclaimed)) = end.take() {
                close(&unclaimed);
            }
            return;
        }
        state.set(OpenRequestState::Abandoned);
        for handler in self.handlers.take().into_iter().flatten() {
            handler.forget();
        }
    }
}

/// A mark in localStorage that the database exists, since browsers evict IndexedDB without notice. Workers have no
/// localStorage: there only a store that was open notices an eviction.
pub(super) struct EvictionMarker {
    storage: Option<Storage>,
    key: String,
}

impl EvictionMarker {
    pub(super) fn of(name: &str) -> Self {
        // Reading `localStorage` throws if the page may not store anything; then there is no mark.
        let storage = member(&js_sys::global(), "localStorage");
        Self { storage: storage.is_object().then(|| storage.unchecked_into()), key: format!("{name}:indexeddb") }
    }

    pub(super) fn is_set(&self) -> bool {
        self.storage.as_ref().is_some_and(|storage| matches!(storage.get_item(&self.key), Ok(Some(_))))
    }

    /// Sets the mark. Without it, in a full localStorage, only the detection of evictions is lost.
    pub(super) fn set(&self) {
        let _ = self.storage.as_ref().map(|storage| storage.set_item(&self.key, "1"));
    }

    fn clear(&self) {
        let _ = self.storage.as_ref().map(|storage| storage.remove_item(&self.key));
    }
}
