//! The append: compares the head and writes the batch, in the callback that has the head.

use super::failure::Failure;
use super::rows::{self, HEADS, HeadRow, Keys, table_name};
use crate::sorted::Sorted;
use crate::store::{Appended, Batch, Record, Table};
use wasm_bindgen::JsValue;
use web_sys::IdbTransaction;

pub(super) struct Append {
    pub(super) expected: u64,
    pub(super) batch: Batch,
    pub(super) operation: String,
}

impl Append {
    /// The object stores that it needs: every one named is locked in all tabs.
    pub(super) fn stores(&self) -> Vec<&'static str> {
        let tables: Sorted<Table, ()> = self
            .batch
            .put
            .iter()
            .map(|record| record.table)
            .chain(self.batch.remove.iter().map(|(table, _)| *table))
            .map(|table| (table, ()))
            .collect();
        std::iter::once(HEADS).chain(tables.keys().copied().map(table_name)).collect()
    }

    /// Decides on the head's row and writes. Gives the outcome and how many bytes are written.
    pub(super) fn write(
        &self,
        keys: &Keys,
        transaction: &IdbTransaction,
        row: &JsValue,
    ) -> Result<(Appended, u64), Failure> {
        let mut head = HeadRow::read(row)?.unwrap_or_default();
        if let Some(outcome) = head.operations.outcome(head.revision, self.expected, &self.operation) {
            return Ok((outcome, 0));
        }
        // Of two records with one key the last stays.
        let put: Sorted<_, _> = self.batch.put.iter().map(|record| ((record.table, record.key), record)).collect();
        let width = |record: &&Record| record.last_key.map_or(0, |last| last.saturating_sub(record.key));
        let segmented = self.batch.put.iter().any(|record| record.last_key.is_some());
        // A segment's place in IndexedDB is not that of another record with its key, so that a put need not replace it. A
        // segment of one record has no width, and counts as one here.
        let widest = put.values().map(width).max().unwrap_or(0).max(u64::from(segmented)).max(head.widest);
        let mut clear: Sorted<_, ()> = self.batch.remove.iter().map(|place| (*place, ())).collect();
        if widest > 0 {
            for place in put.keys() {
                clear.insert(*place, ());
            }
        }
        for (table, first, last) in runs(&clear) {
            transaction.object_store(table_name(table))?.delete(&keys.range(first, last)?.into())?;
        }
        let mut written = self.batch.head.len() as u64;
        for record in put.values() {
            let place = keys.record(record.key, record.last_key);
            transaction.object_store(table_name(record.table))?.put_with_key(&rows::write(record), &place)?;
            written = written.saturating_add(record.value.len() as u64);
        }
        head.revision = head.revision.saturating_add(1);
        head.operations.note(&self.operation, head.revision);
        let new = HeadRow {
            value: self.batch.head.clone(),
            channel: self.batch.channel.clone(),
            deleted: false,
            widest,
            ..head
        };
        transaction.object_store(HEADS)?.put_with_key(&new.write(), keys.session())?;
        Ok((Appended::Revision(new.revision), written))
    }
}

/// Deletes a session's records and makes its head a tombstone.
pub(super) fn bury(keys: &Keys, transaction: &IdbTransaction, row: &JsValue) -> Result<(), Failure> {
    let Some(head) = HeadRow::read(row)?.filter(|head| !head.deleted) else { return Ok(()) };
    for table in [Table::Log, Table::ToolInvocations, Table::Runs] {
        transaction.object_store(table_name(table))?.delete(&keys.all()?.into())?;
    }
    let revision = head.revision.saturating_add(1);
    let tombstone = HeadRow { revision, operations: head.operations, deleted: true, ..HeadRow::default() };
    transaction.object_store(HEADS)?.put_with_key(&tombstone.write(), keys.session())?;
    Ok(())
}

/// Joins neighbouring keys: a request each is what a large batch would cost most.
fn runs(places: &Sorted<(Table, u64), ()>) -> Vec<(Table, u64, u64)> {
    let mut runs: Vec<(Table, u64, u64)> = Vec::new();
    for (table, key) in places.keys() {
        match runs.last_mut() {
            Some((of, _, last)) if of == table && last.checked_add(1) == Some(*key) => *last = *key,
            _ => runs.push((*table, *key, *key)),
        }
    }
    runs
}
