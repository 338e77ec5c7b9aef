//! The append: compares the head and writes the batch, in the callback that has the head.

use super::failure::IdbFailure;
use super::rows::{self, HEADS, HeadRow, SessionKeys, TABLES, add_record, put_head, put_record};
use crate::store::{Appended, Batch, Record, Table};
use std::collections::BTreeMap;
use wasm_bindgen::JsValue;
use web_sys::{IdbKeyRange, IdbTransaction};

pub(super) struct AppendRequest {
    pub(super) expected: u64,
    pub(super) batch: Batch,
    pub(super) operation: String,
}

/// What a batch does at one key of a table.
enum RecordEdit<'b> {
    Removed,
    /// Added where no record is, unless `removed`: the batch removes the existing one first.
    Added {
        record: &'b Record,
        removed: bool,
    },
    Replaced(&'b Record),
}

type RecordEdits<'b> = BTreeMap<(Table, u64), Box<RecordEdit<'b>>>;

impl AppendRequest {
    /// The object stores that the batch needs.
    pub(super) fn stores(&self) -> Vec<&'static str> {
        let Batch { put, replace, remove, .. } = &self.batch;
        let mut stores = vec![HEADS];
        for table in TABLES {
            let written = put.iter().chain(replace).any(|record| record.table == table);
            let has_index = self.batch.erases && table == Table::Log;
            if written || has_index || remove.iter().any(|(of, _)| *of == table) {
                stores.push(table.as_str());
            }
        }
        stores
    }

    /// Returns the outcome if nothing is to be written: a conflict, or an operation that was done before.
    pub(super) fn outcome(&self, head: &HeadRow) -> Option<Appended> {
        head.operations.outcome(head.revision, self.expected, &self.operation)
    }

    /// Returns ranges whose records `add` does not detect: a segment and another record with the same first key have
    /// different keys.
    pub(super) fn possibly_occupied(
        &self,
        keys: &SessionKeys,
        head: &HeadRow,
    ) -> Vec<(Table, Result<IdbKeyRange, JsValue>)> {
        let mut ranges = Vec::new();
        for record in &self.batch.put {
            // Only the log has segments; a request for every record would cost more than the append.
            let may_hide = record.last_key.is_some() || head.widest > 0 && record.table == Table::Log;
            if may_hide && !self.batch.remove.contains(&(record.table, record.key)) {
                ranges.push((record.table, keys.range(record.key, record.key)));
            }
        }
        ranges
    }

    fn edits(&self) -> RecordEdits<'_> {
        let mut edits = RecordEdits::new();
        // The last of two records with one key is kept.
        for record in &self.batch.put {
            edits.insert((record.table, record.key), Box::new(RecordEdit::Added { record, removed: false }));
        }
        for record in &self.batch.replace {
            edits.insert((record.table, record.key), Box::new(RecordEdit::Replaced(record)));
        }
        for place in &self.batch.remove {
            let edit = edits.entry(*place).or_insert_with(|| Box::new(RecordEdit::Removed));
            if let RecordEdit::Added { removed, .. } = &mut **edit {
                *removed = true;
            }
        }
        edits
    }

    /// Writes the batch, adds its bytes to `written`, and returns the revision.
    pub(super) fn write(
        &self,
        keys: &SessionKeys,
        transaction: &IdbTransaction,
        (head, change): (&mut HeadRow, u64),
        written: &mut u64,
    ) -> Result<Appended, IdbFailure> {
        // A segment of one record has the width 0, and counts as 1.
        for record in self.batch.put.iter().chain(&self.batch.replace) {
            if let Some(last) = record.last_key {
                head.widest = head.widest.max(last.saturating_sub(record.key)).max(1);
            }
        }
        if self.batch.erases {
            rows::delete_search_index(transaction)?;
        }
        let edits = self.edits();
        for (table, first, last) in deleted_ranges(&edits, head.widest > 0) {
            rows::delete(transaction, table, keys.range(first, last))?;
        }
        *written = self.batch.head.len() as u64;
        for edit in edits.values() {
            let record = match &**edit {
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
        head.note(&self.operation);
        head.value.clone_from(&self.batch.head);
        head.channel.clone_from(&self.batch.channel);
        head.listed_by = self.batch.listed_by;
        head.change = change;
        head.deleted = false;
        put_head(transaction, keys, head)?;
        Ok(Appended::Revision(head.revision))
    }
}

/// Deletes a session's records, but not its head.
pub(super) fn clear(keys: &SessionKeys, transaction: &IdbTransaction) -> Result<(), IdbFailure> {
    for table in TABLES {
        rows::delete(transaction, table, keys.all())?;
    }
    Ok(())
}

/// Returns the tombstone of a deleted session. Its revision continues, so that nobody takes a new session for the old
/// one.
pub(super) fn tombstone(head: HeadRow) -> HeadRow {
    let revision = head.revision.saturating_add(1);
    HeadRow { revision, operations: head.operations, deleted: true, ..HeadRow::default() }
}

/// Returns the ranges that are deleted first: removed records, and, if there may be segments, replaced ones.
/// Neighbouring keys are one range: in a large batch a request for each key would be the largest cost.
fn deleted_ranges(edits: &RecordEdits<'_>, segments: bool) -> Vec<(Table, u64, u64)> {
    let mut runs: Vec<(Table, u64, u64)> = Vec::new();
    for ((table, key), edit) in edits {
        let clears = match &**edit {
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
