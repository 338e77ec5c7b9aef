//! `Rethread`: what `open` gives.

use super::convert::{member, object_to_js, page, text, to_js, whole};
use super::engine::Engine;
use super::error::thrown;
use super::options::{refuse, unbuilt, word};
use super::pending::{audit_page, pending_of};
use super::session::{Session, SessionInner};
use super::store::{Durability, IndexedDbStore, persist, storage_status};
use crate::error::{Code, Error, Result};
use crate::json::{ArrayWriter, ObjectWriter};
use crate::session::Session as Head;
use crate::store::{Kind, LogStore, MemoryStore, SessionRow, open_record};
use std::rc::Rc;
use wasm_bindgen::prelude::*;

type Js = std::result::Result<JsValue, JsValue>;

/// A store, opened.
#[wasm_bindgen(skip_typescript)]
pub struct Rethread {
    engine: Rc<Engine>,
}

/// Opens a store.
#[wasm_bindgen(js_name = openRethread, skip_typescript)]
pub async fn open_rethread(options: JsValue) -> std::result::Result<Rethread, JsValue> {
    refuse(&options, &["encryption"])?;
    let has_indexed_db = member(&js_sys::global(), "indexedDB").is_object();
    let store = member(&options, "store");
    if store.is_object() {
        return Err(unbuilt("a store of your own").into());
    }
    let kind = match store.as_string().as_deref() {
        Some("memory") => "memory",
        Some("indexeddb") => "indexeddb",
        Some("localstorage") => return Err(unbuilt("the store \"localstorage\"").into()),
        Some(other) => {
            return Err(Error::config(format!("`store` is \"indexeddb\" or \"memory\", not \"{other}\"")).into());
        }
        None if has_indexed_db => "indexeddb",
        None => "memory",
    };
    let name = text(&options, "name")?.unwrap_or_else(|| "rethread".into());
    if name.is_empty() {
        return Err(Error::config("`name` is the database's name; it cannot be empty").into());
    }
    let durability = word(&options, "durability", &[("relaxed", Durability::Relaxed), ("strict", Durability::Strict)])?
        .unwrap_or(Durability::Relaxed);
    let store: Rc<dyn LogStore> = if kind == "memory" {
        Rc::new(MemoryStore::default())
    } else {
        Rc::new(IndexedDbStore::open(&name, durability).await?)
    };
    Ok(Rethread { engine: Engine::new(store, kind, name, &options)? })
}

#[wasm_bindgen]
impl Rethread {
    /// Opens a session; one that is not there yet is empty, and written with its first append.
    pub async fn session(&self, id: String, options: JsValue) -> std::result::Result<Session, JsValue> {
        let engine = self.engine.clone();
        Ok(Session::of(SessionInner::open(&engine, &id, &options).await?))
    }

    /// Sessions, in the order of their ids.
    pub async fn sessions(&self, query: JsValue) -> Js {
        let engine = self.engine.clone();
        engine.check_open()?;
        let (cursor, channel) = (text(&query, "cursor")?, text(&query, "channel")?);
        let limit = limit(&query, 100)?;
        let rows = engine.store.sessions(cursor.as_deref(), limit, channel.as_deref()).await?;
        let mut items = String::new();
        let mut array = ArrayWriter::new(&mut items);
        for row in &rows.items {
            match open_record::<Head>(Kind::Head, &row.head.value) {
                Ok(head) => array.object(|out| write_summary(out, row, Some(&head))),
                // It is there and cannot be read: said so, never left out.
                Err(error) => {
                    engine.warn([&crate::finding::Finding::warning(
                        "malformed",
                        format!("the head of session \"{}\" cannot be read: {}", row.id, error.message),
                    )]);
                    array.object(|out| write_summary(out, row, None));
                }
            }
        }
        array.end();
        Ok(page(&items, rows.cursor.as_deref()))
    }

    /// Deletes a session and all its records.
    #[wasm_bindgen(js_name = deleteSession)]
    pub async fn delete_session(&self, id: String) -> std::result::Result<(), JsValue> {
        let engine = self.engine.clone();
        engine.check_open()?;
        if let Some(session) = engine.session(&id)
            && session.has_live_run()
        {
            return Err(Error::new(Code::Busy, "a run of this session is under way here; cancel it first").into());
        }
        engine.store.delete_session(&id).await?;
        let open = engine.session(&id);
        engine.forget(&id);
        if let Some(session) = open {
            session.refresh().await?;
            session.notify();
        }
        engine.changed(&id, 0, true);
        Ok(())
    }

    /// The audit table, over all sessions.
    pub async fn invocations(&self, query: JsValue) -> Js {
        let engine = self.engine.clone();
        engine.check_open()?;
        let session = text(&query, "session")?;
        audit_page(&engine, &query, session).await
    }

    /// Runs that a kill cut off, that failed, or that live in another tab.
    #[wasm_bindgen(js_name = pendingRuns)]
    pub async fn pending_runs(&self, query: JsValue) -> Js {
        let engine = self.engine.clone();
        engine.check_open()?;
        let one = text(&query, "session")?;
        let mut heads = Vec::new();
        if let Some(id) = &one {
            heads.extend(engine.store.head(id).await?.map(|head| (id.clone(), head)));
        } else {
            let mut cursor = None;
            loop {
                let rows = engine.store.sessions(cursor.as_deref(), 200, None).await?;
                heads.extend(rows.items.into_iter().map(|row| (row.id, row.head)));
                cursor = rows.cursor;
                if cursor.is_none() {
                    break;
                }
            }
        }
        let mut items = String::new();
        let mut array = ArrayWriter::new(&mut items);
        for (id, head) in heads {
            let Ok(head) = open_record::<Head>(Kind::Head, &head.value) else { continue };
            pending_of(&engine, &id, &head, &mut array).await?;
        }
        array.end();
        Ok(to_js(crate::json::Json::trusted(items).view()))
    }

    /// Changes of any session, in any tab. Gives the function that ends it.
    pub fn subscribe(&self, listener: js_sys::Function) -> js_sys::Function {
        self.engine.subscribe(listener)
    }

    /// Asks the platform to keep the data.
    pub async fn persist(&self) -> std::result::Result<bool, JsValue> {
        Ok(if self.engine.kind == "indexeddb" { persist().await? } else { false })
    }

    /// How the store stands.
    pub async fn status(&self) -> Js {
        let engine = self.engine.clone();
        engine.check_open()?;
        let status = storage_status().await;
        let durable = engine.kind == "indexeddb";
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let bytes = |given: Option<f64>| given.filter(|bytes| durable && *bytes >= 0.0).map(|bytes| bytes as u64);
        Ok(object_to_js(|out| {
            out.text("store", engine.kind);
            match status.persisted.filter(|_| durable) {
                Some(persisted) => out.bool("persisted", persisted),
                None => out.raw("persisted", "null"),
            };
            out.number_or_null("usageBytes", bytes(status.usage)).number_or_null("quotaBytes", bytes(status.quota));
            out.text("state", "ready").raw("findings", "[]");
        }))
    }

    /// Ends the use of the store; sessions and runs of it take no call any more.
    pub async fn close(&self) {
        self.engine.close();
    }
}

fn limit(query: &JsValue, default: u64) -> Result<usize> {
    let limit = whole(query, "limit")?.unwrap_or(default);
    if limit == 0 {
        return Err(Error::invalid("`limit` is at least 1"));
    }
    Ok(usize::try_from(limit).unwrap_or(usize::MAX).min(10_000))
}

fn write_summary(out: &mut ObjectWriter<'_>, row: &SessionRow, head: Option<&Head>) {
    out.text("id", &row.id)
        .text_or_null("channel", head.and_then(|head| head.channel.as_deref()))
        .text_or_null("title", head.and_then(|head| head.title.as_deref()))
        .number("createdAt", head.map_or(0, |head| head.created_at))
        .number("updatedAt", head.map_or(0, |head| head.updated_at))
        .number("revision", row.head.revision)
        .number("messageCount", head.map_or(0, |head| head.next_seq))
        .number("pendingRuns", head.map_or(0, |head| head.runs.len() as u64));
    match head.and_then(|head| head.metadata.as_ref()) {
        Some(metadata) => out.json("metadata", metadata.view()),
        None => out.raw("metadata", "null"),
    };
}

/// A failure of a callback, by its words.
pub fn callback_failed(what: &str, error: &JsValue) -> Error {
    thrown(Code::CallbackFailed, what, error)
}
