//! The transaction that changes a database of an older version.

use super::failure::IdbFailure;
use super::rows::{
    CHANGE_INDEX, CHANGE_MEMBER, HEADS, HeadRow, RECENT_INDEX, RECENT_MEMBER, RangeEnd, STORES, SessionKeys, put_head,
};
use super::scan::Scan;
use super::transaction::{Script, ScriptStep};
use crate::error::Error;
use wasm_bindgen::prelude::*;
use web_sys::{IdbDatabase, IdbTransaction};

/// The version of the IndexedDB schema. Version 1 has no index of the heads, version 2 none of their changes. Records
/// have versions of their own, so that this one seldom changes: a tab of an older build has to close the database
/// first.
pub(super) const VERSION: u32 = 3;

/// Number of heads that are changed at once.
const HEADS_AT_ONCE: u32 = 256;

/// Creates the object stores of a new database, or the indexes that an old one lacks. Returns what fills the index by
/// recency, if the database has none. The index of changes begins empty: what is not in it has not changed since.
///
/// # Errors
/// `config_invalid` if the database is somebody else's; the browser's own.
pub(super) fn change_schema(
    database: &IdbDatabase,
    (name, transaction): (&str, &IdbTransaction),
    old_version: u32,
) -> Result<Option<FillScript>, IdbFailure> {
    if old_version == 0 {
        for store in STORES {
            database.create_object_store(store)?;
        }
    }
    check_stores(database, name)?;
    let heads: IndexedStore = transaction.object_store(HEADS)?.unchecked_into();
    if old_version < 2 {
        heads.create_index(RECENT_INDEX, &JsValue::from_str(RECENT_MEMBER))?;
    }
    heads.create_index(CHANGE_INDEX, &JsValue::from_str(CHANGE_MEMBER))?;
    Ok((old_version == 1).then(FillScript::new))
}

/// Checks that a database has our object stores.
///
/// # Errors
/// `config_invalid` if it has not.
pub(super) fn check_stores(database: &IdbDatabase, name: &str) -> Result<(), IdbFailure> {
    if STORES.iter().all(|store| database.object_store_names().contains(store)) {
        return Ok(());
    }
    Err(Error::config(format!(
        "the indexeddb store: the database \"{name}\" was not created by rethread: it lacks rethread's object stores; pass another `name` to `open`"
    ))
    .into())
}

#[wasm_bindgen]
extern "C" {
    type IndexedStore;
    #[wasm_bindgen(method, catch, js_name = createIndex)]
    fn create_index(this: &IndexedStore, name: &str, path: &JsValue) -> Result<JsValue, JsValue>;
}

/// Adds what sessions are listed by to the heads of version 1. A head that cannot be read, or is encrypted, counts as
/// the oldest until its next write.
pub(super) struct FillScript {
    scan: Scan,
}

impl FillScript {
    fn new() -> Self {
        let mut scan = Scan::new(HEADS, RangeEnd::first(), RangeEnd::last(), false);
        scan.count = HEADS_AT_ONCE;
        Self { scan }
    }
}

impl Script for FillScript {
    fn stores(&self) -> Vec<&'static str> {
        vec![HEADS]
    }

    fn step(&mut self, transaction: &IdbTransaction, answers: &[JsValue]) -> Result<ScriptStep, IdbFailure> {
        if !answers.is_empty() {
            for (key, value) in self.scan.rows(answers)? {
                let Some(id) = key.as_string().filter(|_| HeadRow::is_ours(&value)) else { continue };
                let mut row = HeadRow::default();
                if row.read(&value) && !row.deleted {
                    row.describe();
                    put_head(transaction, &SessionKeys::of(&id), &row)?;
                }
            }
            if self.scan.ended() {
                return Ok(ScriptStep::Done(0));
            }
        }
        self.scan.request(transaction)
    }
}
