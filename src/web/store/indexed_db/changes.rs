//! The transaction that reads the heads that have changed since a mark.

use super::failure::IdbFailure;
use super::rows::{CHANGE_INDEX, HEADS, HeadRow, changes_since, newest_change, request_newest_change};
use super::transaction::{Script, ScriptStep};
use crate::store::{ChangedHead, HeadChanges, MAX_CHANGED_HEADS};
use js_sys::Array;
use wasm_bindgen::prelude::*;
use web_sys::IdbTransaction;

/// Reads the number of the newest change, and the rows after a mark if there is one.
pub(super) struct ChangesScript {
    since: Option<u64>,
    changes: Option<HeadChanges>,
}

impl ChangesScript {
    pub(super) fn new(since: Option<u64>) -> Self {
        Self { since, changes: None }
    }

    /// Returns what was read; none if the transaction found nothing.
    pub(super) fn take(&mut self) -> Option<HeadChanges> {
        self.changes.take()
    }
}

/// Reads the heads of changed rows. Tombstones, and rows that are not of this library, have none.
fn changed_heads(keys: &Array, rows: &Array) -> Vec<ChangedHead> {
    let mut changed = Vec::new();
    for (key, value) in keys.iter().zip(rows.iter()) {
        let Some(id) = key.as_string() else { continue };
        let mut row = HeadRow::default();
        let is_live = row.read_listed(&value) && !row.deleted;
        changed.push(ChangedHead { id, head: is_live.then(|| row.head()) });
    }
    changed
}

impl Script for ChangesScript {
    fn stores(&self) -> Vec<&'static str> {
        vec![HEADS]
    }

    fn step(&mut self, transaction: &IdbTransaction, answers: &[JsValue]) -> Result<ScriptStep, IdbFailure> {
        if let Some(newest) = answers.first() {
            let changed = match answers.get(1..) {
                Some([keys, rows]) => Some(changed_heads(keys.unchecked_ref(), rows.unchecked_ref())),
                _ => None,
            };
            self.changes = Some(HeadChanges::limited(newest_change(newest), changed));
            return Ok(ScriptStep::Done(0));
        }
        let mut requests = vec![request_newest_change(transaction)?];
        if let Some(since) = self.since {
            // One more than are returned shows that there are too many.
            let count = u32::try_from(MAX_CHANGED_HEADS.saturating_add(1)).unwrap_or(u32::MAX);
            let (index, range) = (transaction.object_store(HEADS)?.index(CHANGE_INDEX)?, changes_since(since)?.into());
            requests.push(index.get_all_keys_with_key_and_limit(&range, count)?);
            requests.push(index.get_all_with_key_and_limit(&range, count)?);
        }
        Ok(ScriptStep::Request(requests))
    }
}
