//! `Rethread`: what `open` gives.

use super::convert::{member, object_to_js, page, text, whole};
use super::error::error_from_thrown;
use super::options::{refuse, unbuilt, word};
use super::pending::{audit_page, pending_runs};
use super::promise::promise;
use super::session::{JsSession, SessionInner};
use super::store::{Durability, IndexedDbStore, StorageStatus, persist, storage_status};
use super::store_context::StoreContext;
use crate::error::{Code, Error, Result};
use crate::json::{ArrayWriter, ObjectWriter};
use crate::session_head::SessionHead;
use crate::store::{LogStore, MemoryStore, RecordKind, SessionRow, open_record, unreadable_head};
use js_sys::Promise;
use std::rc::Rc;
use wasm_bindgen::prelude::*;

/// A store, opened.
#[wasm_bindgen(js_name = Rethread, skip_typescript)]
pub struct JsRethread {
    context: Rc<StoreContext>,
}

/// Opens a store.
#[wasm_bindgen(js_name = openRethread, skip_typescript)]
pub fn open_rethread(options: JsValue) -> Promise {
    promise(Box::pin(async move {
        let (kind, name, durability) = place(&options)?;
        let store: Rc<dyn LogStore> = match kind {
            "memory" => Rc::new(MemoryStore::default()),
            _ => Rc::new(IndexedDbStore::open(&name, durability).await?),
        };
        Ok(JsRethread { context: StoreContext::new(store, kind, name, &options)? }.into())
    }))
}

/// Which store, the name of its database, and when a write counts as done.
fn place(options: &JsValue) -> Result<(&'static str, String, Durability)> {
    refuse(options, &["encryption"])?;
    let store = member(options, "store");
    if store.is_object() {
        return Err(unbuilt("a store of your own"));
    }
    let kind = match store.as_string().as_deref() {
        Some("memory") => "memory",
        Some("indexeddb") => "indexeddb",
        Some("localstorage") => return Err(unbuilt("the store \"localstorage\"")),
        Some(other) => {
            return Err(Error::config(format!("`store` is \"indexeddb\" or \"memory\", not \"{other}\"")));
        }
        None if member(&js_sys::global(), "indexedDB").is_object() => "indexeddb",
        None => "memory",
    };
    let name = text(options, "name")?.unwrap_or_else(|| "rethread".into());
    if name.is_empty() {
        return Err(Error::config("`name` is the database's name; it cannot be empty"));
    }
    let durabilities = [Durability::Relaxed, Durability::Strict];
    Ok((kind, name, word(options, "durability", &["relaxed", "strict"], &durabilities)?.unwrap_or_default()))
}

#[wasm_bindgen(js_class = Rethread)]
impl JsRethread {
    /// Opens a session; one that is not there yet is empty, and written with its first append.
    pub fn session(&self, id: String, options: JsValue) -> Promise {
        let context = self.context.clone();
        self.context.promise(Box::pin(async move {
            let inner = SessionInner::open(&context, &id, &options).await?;
            Ok(JsSession { inner }.into())
        }))
    }

    /// Sessions, in the order of their ids.
    pub fn sessions(&self, query: JsValue) -> Promise {
        let context = self.context.clone();
        self.context.promise(Box::pin(async move {
            let (cursor, channel) = (text(&query, "cursor")?, text(&query, "channel")?);
            let limit = limit(&query, 100)?;
            let rows = context.store.sessions(cursor.as_deref(), limit, channel.as_deref()).await?;
            let mut items = String::new();
            let mut array = ArrayWriter::new(&mut items);
            for row in &rows.items {
                let head = context.head(&row.id, &row.head).await?;
                array.object(|out| write_summary(out, row, &head));
            }
            array.end();
            Ok(page(&items, rows.cursor.as_deref()))
        }))
    }

    /// Deletes a session and all its records.
    #[wasm_bindgen(js_name = deleteSession)]
    pub fn delete_session(&self, id: String) -> Promise {
        let context = self.context.clone();
        self.context.promise(Box::pin(async move {
            if context.session(&id).is_some_and(|session| session.has_live_run()) {
                return Err(Error::new(Code::Busy, "a run of this session is under way here; cancel it first"));
            }
            context.store.delete_session(&id).await?;
            let open = context.session(&id);
            context.forget(&id);
            if let Some(session) = open {
                session.refresh().await?;
                session.notify();
            }
            context.announce_change(&id, 0, true);
            Ok(JsValue::UNDEFINED)
        }))
    }

    /// The audit table, over all sessions.
    pub fn invocations(&self, query: JsValue) -> Promise {
        audit_page(&self.context, query, None)
    }

    /// Runs that a kill cut off, that failed, or that live in another tab.
    #[wasm_bindgen(js_name = pendingRuns)]
    pub fn pending_runs(&self, query: JsValue) -> Promise {
        let context = self.context.clone();
        self.context.promise(Box::pin(async move {
            let mut heads = Vec::new();
            if let Some(id) = text(&query, "session")? {
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
            pending_runs(&context, heads).await
        }))
    }

    /// Changes of any session, in any tab. Gives the function that ends it.
    pub fn subscribe(&self, listener: js_sys::Function) -> js_sys::Function {
        self.context.subscribe(listener)
    }

    /// Asks the platform to keep the data.
    pub fn persist(&self) -> Promise {
        let durable = self.context.is_durable();
        promise(Box::pin(async move { Ok((durable && persist().await?).into()) }))
    }

    /// How the store stands.
    pub fn status(&self) -> Promise {
        let context = self.context.clone();
        self.context.promise(Box::pin(async move {
            let status = storage_status().await;
            for row in context.all_heads().await? {
                if let Err(error) = open_record::<SessionHead>(RecordKind::Head, &row.head.value) {
                    context.report_unreadable(unreadable_head(&row.id, &error));
                }
            }
            Ok(object_to_js(&|out| write_status(out, &context, &status)))
        }))
    }

    /// Ends the use of the store; sessions and runs of it take no call any more.
    pub fn close(&self) -> Promise {
        let context = self.context.clone();
        promise(Box::pin(async move {
            context.close();
            Ok(JsValue::UNDEFINED)
        }))
    }
}

fn write_status(out: &mut ObjectWriter<'_>, context: &StoreContext, status: &StorageStatus) {
    let durable = context.is_durable();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let bytes = |given: Option<f64>| given.filter(|bytes| durable && *bytes >= 0.0).map(|bytes| bytes as u64);
    out.text("store", context.kind);
    match status.persisted.filter(|_| durable) {
        Some(persisted) => out.bool("persisted", persisted),
        None => out.raw("persisted", "null"),
    };
    out.number_or_null("usageBytes", bytes(status.usage)).number_or_null("quotaBytes", bytes(status.quota));
    context.write_state(out);
}

fn limit(query: &JsValue, default: u64) -> Result<usize> {
    let limit = whole(query, "limit")?.unwrap_or(default);
    if limit == 0 {
        return Err(Error::invalid("`limit` is at least 1"));
    }
    Ok(usize::try_from(limit).unwrap_or(usize::MAX).min(10_000))
}

fn write_summary(out: &mut ObjectWriter<'_>, row: &SessionRow, head: &SessionHead) {
    out.text("id", &row.id)
        .text_or_null("channel", head.channel.as_deref())
        .text_or_null("title", head.title.as_deref())
        .number("createdAt", head.created_at)
        .number("updatedAt", head.updated_at)
        .number("revision", head.history_revision)
        .number("messageCount", head.next_seq)
        .number("pendingRuns", head.pending_runs().count() as u64);
    match &head.metadata {
        Some(metadata) => out.json("metadata", metadata.view()),
        None => out.raw("metadata", "null"),
    };
}

/// A failure of a callback, by its words.
pub fn callback_failed(what: &str, error: &JsValue) -> Error {
    error_from_thrown(Code::CallbackFailed, what, error)
}
