//! Opening, losing and deleting the database.

use super::failure::Failure;
use super::rows::{HEADS, table_name};
use super::wait::{Signal, Timer};
use super::{Durability, IndexedDbOptions};
use crate::error::{Code, Error, Result};
use crate::store::Table;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use wasm_bindgen::prelude::*;
use web_sys::{IdbDatabase, IdbFactory, IdbOpenDbRequest, IdbTransaction, Storage};

/// Stays: what changes is the schema inside the records, so that no tab ever has to wait for another to close.
const VERSION: u32 = 1;

#[wasm_bindgen]
extern "C" {
    type Transactions;
    #[wasm_bindgen(method, catch)]
    fn transaction(
        this: &Transactions,
        stores: &js_sys::Array,
        mode: &str,
        options: &JsValue,
    ) -> std::result::Result<IdbTransaction, JsValue>;
}

/// An open database, until the browser or another tab wants it closed.
pub(super) struct Connection {
    database: IdbDatabase,
    closed: Rc<Cell<bool>>,
    _on_versionchange: Closure<dyn FnMut()>,
    _on_close: Closure<dyn FnMut()>,
}

impl Connection {
    /// Opens the database, and says whether it had to be made.
    pub(super) async fn open(name: &str, options: &IndexedDbOptions) -> std::result::Result<(Self, bool), Failure> {
        let request = factory()?.open_with_u32(name, VERSION)?;
        let made = Rc::new(Cell::new(false));
        let upgrade = {
            let (request, made) = (request.clone(), Rc::clone(&made));
            move || -> std::result::Result<(), Failure> {
                let database: IdbDatabase = request.result()?.unchecked_into();
                for store in
                    [HEADS, table_name(Table::Log), table_name(Table::ToolInvocations), table_name(Table::Runs)]
                {
                    database.create_object_store(store)?;
                }
                made.set(true);
                Ok(())
            }
        };
        let database: IdbDatabase = settle(&request, options, upgrade).await?.unchecked_into();
        let closed = Rc::new(Cell::new(false));
        let on_versionchange = {
            let (database, closed) = (database.clone(), Rc::clone(&closed));
            Closure::<dyn FnMut()>::new(move || {
                database.close();
                closed.set(true);
            })
        };
        let on_close = {
            let closed = Rc::clone(&closed);
            Closure::<dyn FnMut()>::new(move || closed.set(true))
        };
        database.set_onversionchange(Some(on_versionchange.as_ref().unchecked_ref()));
        database.set_onclose(Some(on_close.as_ref().unchecked_ref()));
        Ok((Self { database, closed, _on_versionchange: on_versionchange, _on_close: on_close }, made.get()))
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.get()
    }

    pub(super) fn database(&self) -> &IdbDatabase {
        &self.database
    }

    /// Begins a transaction: to write if there is a durability, else to read.
    pub(super) fn begin(
        &self,
        stores: &[&str],
        write: Option<Durability>,
    ) -> std::result::Result<IdbTransaction, Failure> {
        let names: js_sys::Array = stores.iter().copied().map(JsValue::from_str).collect();
        let options = js_sys::Object::new();
        if let Some(durability) = write {
            js_sys::Reflect::set(&options, &"durability".into(), &durability.as_str().into())?;
        }
        let mode = if write.is_some() { "readwrite" } else { "readonly" };
        Ok(self.database.unchecked_ref::<Transactions>().transaction(&names, mode, &options)?)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.database.set_onversionchange(None);
        self.database.set_onclose(None);
        self.database.close(); // transactions under way end first
    }
}

/// Deletes a database and everything in it.
///
/// # Errors
/// `upgrade_blocked` when another tab keeps it open and does not let go; it is deleted once that closes.
pub async fn delete_database(name: &str) -> Result<()> {
    let delete = async {
        let request = factory()?.delete_database(name)?;
        settle(&request, &IndexedDbOptions::default(), || Ok(())).await
    };
    delete.await.map_err(|failure: Failure| failure.error)?;
    Sentinel::of(name).clear();
    Ok(())
}

fn factory() -> std::result::Result<IdbFactory, Failure> {
    let factory = js_sys::Reflect::get(&js_sys::global(), &"indexedDB".into())?;
    if factory.is_object() {
        return Ok(factory.unchecked_into());
    }
    let help = "there is no IndexedDB here: a private window, a sandboxed frame, or not a browser; use another store, such as the memory store";
    Err(Failure::new(Code::StoreError, help))
}

/// Waits until a request to open or to delete is settled.
async fn settle(
    request: &IdbOpenDbRequest,
    options: &IndexedDbOptions,
    upgrade: impl FnOnce() -> std::result::Result<(), Failure> + 'static,
) -> std::result::Result<JsValue, Failure> {
    let end = Signal::new();
    let blocked = || {
        Error::new(
            Code::UpgradeBlocked,
            "another tab holds the database while it is to be changed; close or reload the other tabs of this site",
        )
    };
    // A deletion that waits for another tab lets this one wait without an event, so the absence of any is blocked too.
    let watchdog = {
        let end = end.clone();
        Timer::start(options.busy_after, move || end.set(Err(blocked().into())))?
    };
    let after_blocked: Rc<RefCell<Option<Timer>>> = Rc::default();

    let state = Rc::new(Cell::new(State::Waiting));
    let on_upgrade = {
        let (end, request, mut upgrade) = (end.clone(), request.clone(), Some(upgrade));
        Closure::<dyn FnMut()>::new(move || {
            let Some(Err(failure)) = upgrade.take().map(|upgrade| upgrade()) else { return };
            if let Some(transaction) = request.transaction() {
                let _ = transaction.abort(); // it may be over; the failure is told either way
            }
            end.set(Err(failure));
        })
    };
    let on_success = {
        let (end, request, state) = (end.clone(), request.clone(), Rc::clone(&state));
        Closure::<dyn FnMut()>::new(move || match (request.result(), state.replace(State::Settled)) {
            (Ok(late), State::Abandoned) => close(&late),
            (result, _) => end.set(result.map_err(Failure::from)),
        })
    };
    let on_error = {
        let (end, request, state) = (end.clone(), request.clone(), Rc::clone(&state));
        Closure::<dyn FnMut()>::new(move || {
            state.set(State::Settled);
            let failure = match request.error() {
                Ok(Some(error)) => JsValue::from(error).into(),
                Ok(None) => Failure::ended(),
                Err(thrown) => thrown.into(),
            };
            end.set(Err(failure));
        })
    };
    let on_blocked = {
        let (end, after_blocked, wait) = (end.clone(), Rc::clone(&after_blocked), options.blocked_after);
        Closure::<dyn FnMut()>::new(move || {
            let late = end.clone();
            match Timer::start(wait, move || late.set(Err(blocked().into()))) {
                Ok(timer) => drop(after_blocked.replace(Some(timer))),
                Err(failure) => end.set(Err(failure)),
            }
        })
    };
    request.set_onupgradeneeded(Some(on_upgrade.as_ref().unchecked_ref()));
    request.set_onsuccess(Some(on_success.as_ref().unchecked_ref()));
    request.set_onerror(Some(on_error.as_ref().unchecked_ref()));
    request.set_onblocked(Some(on_blocked.as_ref().unchecked_ref()));
    let handlers = [on_upgrade, on_success, on_error, on_blocked];
    let settling = Settling {
        request: request.clone(),
        state,
        end,
        handlers: Some(handlers),
        _watchdog: watchdog,
        _after_blocked: after_blocked,
    };
    settling.end.wait().await
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Waiting,
    Settled,
    /// Nobody waits any more.
    Abandoned,
}

/// Closes what a request to open gave; one to delete gives nothing.
fn close(opened: &JsValue) {
    if let Some(database) = opened.dyn_ref::<IdbDatabase>() {
        database.close();
    }
}

/// A request's handlers. Nobody can take a request to open back: given up, its handlers stay, and close what comes late.
struct Settling {
    request: IdbOpenDbRequest,
    state: Rc<Cell<State>>,
    end: Signal<std::result::Result<JsValue, Failure>>,
    handlers: Option<[Closure<dyn FnMut()>; 4]>,
    _watchdog: Timer,
    _after_blocked: Rc<RefCell<Option<Timer>>>,
}

impl Drop for Settling {
    fn drop(&mut self) {
        if self.state.get() == State::Settled {
            self.request.set_onupgradeneeded(None);
            self.request.set_onsuccess(None);
            self.request.set_onerror(None);
            self.request.set_onblocked(None);
            if let Some(Ok(unclaimed)) = self.end.take() {
                close(&unclaimed);
            }
            return;
        }
        self.state.set(State::Abandoned);
        for handler in self.handlers.take().into_iter().flatten() {
            handler.forget();
        }
    }
}

/// A mark outside of the database that there was one: browsers evict IndexedDB without a word. Only pages have a place for
/// it; in a worker an eviction is seen only by the store that was open.
pub(super) struct Sentinel {
    storage: Option<Storage>,
    key: String,
}

impl Sentinel {
    pub(super) fn of(name: &str) -> Self {
        // Blocked storage throws at the mere mention of it; then there is no mark.
        let storage = js_sys::Reflect::get(&js_sys::global(), &"localStorage".into()).ok().filter(JsValue::is_object);
        Self { storage: storage.map(JsCast::unchecked_into), key: format!("{name}:indexeddb") }
    }

    pub(super) fn is_set(&self) -> bool {
        self.storage.as_ref().is_some_and(|storage| matches!(storage.get_item(&self.key), Ok(Some(_))))
    }

    /// Best effort: a full localStorage costs the signal, not the store.
    pub(super) fn set(&self) {
        let _ = self.storage.as_ref().map(|storage| storage.set_item(&self.key, "1"));
    }

    fn clear(&self) {
        let _ = self.storage.as_ref().map(|storage| storage.remove_item(&self.key));
    }
}
