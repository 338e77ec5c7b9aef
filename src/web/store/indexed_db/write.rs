//! The append: compares the head and writes the batch, in the callback that has the head.

use super::failure::IdbFailure;
use super::rows::{self, HEADS, HeadRow, SessionKeys, TABLES, add_record, put_head, put_record, table_name};
use crate::sorted::Sorted;
use crate::store::{Appended, Batch, Record, Table};
use wasm_bindgen::JsValue;
use web_sys::{IdbKeyRange, IdbTransaction};

pub(super) struct AppendRequest {
    pub(super) expected: u64,
    pub(super) batch: Batch,
    pub(super) operation: String,
}

/// What becomes of a place in the tables.
enum RecordEdit<'b> {
    Removed,
    /// Written where nothing is, unless the batch removes it first.
    Added {
        record: &'b Record,
        removed: bool,
    },
    Replaced(&'b Record),
}

type RecordEdits<'b> = Sorted<(Table, u64), RecordEdit<'b>>;

impl AppendRequest {
    /// The object stores that it needs.
    pub(super) fn stores(&self) -> Vec<&'static str> {
        let Batch { put, replace, remove, .. } = &self.batch;
        let mut stores = vec![HEADS];
        for table in TABLES {
            let written = put.iter().chain(replace).any(|record| record.table == table);
            if written || remove.iter().any(|(of, _)| *of == table) {
                stores.push(table_name(table));
            }
        }
        stores
    }

    /// The outcome that the head's row tells, if nothing is to be written.
    pub(super) fn outcome(&self, head: &HeadRow) -> Option<Appended> {
        head.operations.outcome(head.revision, self.expected, &self.operation)
    }

    /// Where records may stand that `add` does not see: a segment's place is not that of another record with its key.
    pub(super) fn hidden(&self, keys: &SessionKeys, head: &HeadRow) -> Vec<(Table, Result<IdbKeyRange, JsValue>)> {
        let mut ranges = Vec::new();
        for record in &self.batch.put {
            let may_hide = head.widest > 0 || record.last_key.is_some();
            if may_hide && !self.batch.remove.contains(&(record.table, record.key)) {
                ranges.push((record.table, keys.range(record.key, record.key)));
            }
        }
        ranges
    }

    fn places(&self) -> RecordEdits<'_> {
        let mut places = RecordEdits::new();
        // Of two records with one key the last stays.
        for record in &self.batch.put {
            places.insert((record.table, record.key), RecordEdit::Added { record, removed: false });
        }
        for record in &self.batch.replace {
            places.insert((record.table, record.key), RecordEdit::Replaced(record));
        }
        for place in &self.batch.remove {
            if let Some(RecordEdit::Added { removed, .. }) = places.get_or_insert_with(*place, || RecordEdit::Removed) {
                *removed = true;
            }
        }
        places
    }

    /// Writes, counts the bytes, and gives the revision.
    pub(super) fn write(
        &self,
        keys: &SessionKeys,
        transaction: &IdbTransaction,
        head: &mut HeadRow,
        written: &mut u64,
    ) -> Result<Appended, IdbFailure> {
        // A segment of one record has no width, and counts as one here.
        for record in self.batch.put.iter().chain(&self.batch.replace) {
            if let Some(last) = record.last_key {
                head.widest = head.widest.max(last.saturating_sub(record.key)).max(1);
            }
        }
        let places = self.places();
        for (table, first, last) in cleared(&places, head.widest > 0) {
            rows::delete(transaction, table, keys.range(first, last))?;
        }
        *written = self.batch.head.len() as u64;
        for (_, place) in places.entries() {
            let record = match place {
                RecordEdit::Removed => continue,
                RecordEdit::Added { record, .. } => {
                    add_record(transaction, keys, record)?;
                    record
                }
                RecordEdit::Replaced(record) => {
                    put_record(transaction, keys, record)?;
                    record
                }
            };
            *written = written.saturating_add(record.value.len() as u64);
        }
        head.revision = head.revision.saturating_add(1).max(self.batch.at_least);
        head.operations.note(&self.operation, head.revision);
        head.value.clone_from(&self.batch.head);
        head.channel.clone_from(&self.batch.channel);
        head.deleted = false;
        put_head(transaction, keys, head)?;
        Ok(Appended::Revision(head.revision))
    }
}

/// Deletes a session's records; its head stays.
pub(super) fn clear(keys: &SessionKeys, transaction: &IdbTransaction) -> Result<(), IdbFailure> {
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

/// What is cleared first: what is removed, and, where segments may stand, what is replaced. Neighbouring keys are joined: a
/// request each is what a large batch would cost most.
fn cleared(places: &RecordEdits<'_>, segments: bool) -> Vec<(Table, u64, u64)> {
    let mut runs: Vec<(Table, u64, u64)> = Vec::new();
    for ((table, key), place) in places.entries() {
        let clears = match place {
            RecordEdit::Removed => true,
            RecordEdit::Added { removed, .. } => *removed,
            RecordEdit::Replaced(_) => segments,
        };
        if !clears {
            continue;
        }
        match runs.last_mut() {
            Some((of, _, last)) if of == table && last.checked_add(1) == Some(*key) => *last = *key,
            _ => runs.push((*table, *key, *key)),
        }
    }
    runs
}
