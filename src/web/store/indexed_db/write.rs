//! The append: compares the head and writes the batch, in the callback that has the head.

use super::failure::Failure;
use super::rows::{self, HEADS, HeadRow, Keys, TABLES, put_head, put_record, table_name};
use crate::sorted::Sorted;
use crate::store::{Appended, Batch, Record, Table};
use web_sys::IdbTransaction;

pub(super) struct Append {
    pub(super) expected: u64,
    pub(super) batch: Batch,
    pub(super) operation: String,
}

/// A place in the tables, and what is put there.
type Places<'b> = Sorted<(Table, u64), Option<&'b Record>>;

impl Append {
    /// The object stores that it needs.
    pub(super) fn stores(&self) -> Vec<&'static str> {
        let Batch { put, remove, .. } = &self.batch;
        let mut stores = vec![HEADS];
        for table in TABLES {
            if put.iter().any(|record| record.table == table) || remove.iter().any(|(of, _)| *of == table) {
                stores.push(table_name(table));
            }
        }
        stores
    }

    /// Decides on the head's row and writes, and counts the bytes.
    pub(super) fn write(
        &self,
        keys: &Keys,
        transaction: &IdbTransaction,
        head: &mut HeadRow,
        written: &mut u64,
    ) -> Result<Appended, Failure> {
        if let Some(outcome) = head.operations.outcome(head.revision, self.expected, &self.operation) {
            return Ok(outcome);
        }
        let mut places = Places::new();
        // A segment's place in IndexedDB is not that of another record with its key, so that a put need not replace it. A
        // segment of one record has no width, and counts as one here.
        for record in &self.batch.put {
            if let Some(last) = record.last_key {
                head.widest = head.widest.max(last.saturating_sub(record.key)).max(1);
            }
            // Of two records with one key the last stays.
            places.insert((record.table, record.key), Some(record));
        }
        for place in &self.batch.remove {
            places.get_or_insert_with(*place, || None);
        }
        for (table, first, last) in cleared(&places, head.widest > 0) {
            rows::delete(transaction, table, keys.range(first, last))?;
        }
        *written = self.batch.head.len() as u64;
        for (_, record) in places.entries() {
            let Some(record) = record else { continue };
            put_record(transaction, keys, record)?;
            *written = written.saturating_add(record.value.len() as u64);
        }
        head.revision = head.revision.saturating_add(1);
        head.operations.note(&self.operation, head.revision);
        head.value.clone_from(&self.batch.head);
        head.channel.clone_from(&self.batch.channel);
        head.deleted = false;
        put_head(transaction, keys, head)?;
        Ok(Appended::Revision(head.revision))
    }
}

/// Deletes a session's records; its head stays.
pub(super) fn clear(keys: &Keys, transaction: &IdbTransaction) -> Result<(), Failure> {
    for table in TABLES {
        rows::delete(transaction, table, keys.all())?;
    }
    Ok(())
}

/// What stands in the place of a deleted session's head: its revision goes on, so that nobody takes a new session for the old one.
pub(super) fn tombstone(head: HeadRow) -> HeadRow {
    let revision = head.revision.saturating_add(1);
    HeadRow { revision, operations: head.operations, deleted: true, ..HeadRow::default() }
}

/// What is cleared first: all places, or those where nothing is put. Neighbouring keys are joined: a request each is what a large
/// batch would cost most.
fn cleared(places: &Places<'_>, all: bool) -> Vec<(Table, u64, u64)> {
    let mut runs: Vec<(Table, u64, u64)> = Vec::new();
    for ((table, key), record) in places.entries() {
        if record.is_some() && !all {
            continue;
        }
        match runs.last_mut() {
            Some((of, _, last)) if of == table && last.checked_add(1) == Some(*key) => *last = *key,
            _ => runs.push((*table, *key, *key)),
        }
    }
    runs
}
