//! Transactions that read the row of a head and continue in the same callback.

use super::failure::IdbFailure;
use super::rows::{
    HEADS, HeadRow, STORES, SessionKeys, delete_head, delete_search_index, newest_change, put_head,
    request_change_above, request_first_records, request_head, request_newest_change, request_records,
};
use super::transaction::{Script, ScriptStep};
use super::write::{AppendRequest, clear, tombstone};
use crate::store::{Appended, StoredHead, Table};
use crate::web::trap_cleanup::TrapCleanup;
use wasm_bindgen::JsValue;
use web_sys::IdbTransaction;

/// What a transaction does with the head.
pub(super) enum HeadOperation {
    Read,
    Append(AppendRequest),
    /// Deletes the session and leaves a tombstone.
    Delete,
    /// Deletes the session and its head: on a full disk no transaction that writes a tombstone succeeds.
    Erase,
    /// Writes the tombstone that `Erase` could not, unless something else was written since.
    WriteTombstone(HeadRow),
}

pub(super) struct HeadScript {
    keys: SessionKeys,
    operation: HeadOperation,
    /// The number of the change that is made; higher ones may be stored until the newest was read.
    pub(super) change: u64,
    /// The row, and whether it existed, during further requests.
    row: Option<(HeadRow, bool)>,
    /// The head that `HeadOperation::Read` found.
    pub(super) head: Option<StoredHead>,
    /// The row as this store wrote it last, for an append.
    remembered: Option<HeadRow>,
    /// What an append has written before the head was read: its outcome, its size, and the row.
    written_ahead: Option<(Appended, u64, HeadRow)>,
    /// Aborts the transaction if the instance stops before the head was compared.
    rollback: Option<TrapCleanup>,
    /// The remembered row is not the stored one, or the number of the change is taken: nothing is written, and the
    /// append begins again.
    pub(super) is_stale: bool,
    /// The row that an append wrote.
    pub(super) written_row: Option<HeadRow>,
    /// The outcome of `HeadOperation::Append`.
    pub(super) appended: Option<Appended>,
    /// The tombstone that `Erase` could not write.
    pub(super) unwritten_tombstone: Option<HeadRow>,
}

impl HeadScript {
    pub(super) fn new(session: &str, operation: HeadOperation, change: u64) -> Self {
        Self {
            keys: SessionKeys::of(session),
            operation,
            change,
            row: None,
            head: None,
            remembered: None,
            written_ahead: None,
            rollback: None,
            is_stale: false,
            written_row: None,
            appended: None,
            unwritten_tombstone: None,
        }
    }

    /// Makes a script of an append that writes at once if the head is still this one. Its records are on their way
    /// while the head is read.
    pub(super) fn append_after(
        session: &str,
        (append, change): (AppendRequest, u64),
        remembered: Option<HeadRow>,
    ) -> Self {
        let remembered = remembered.filter(|row| !row.deleted && append.outcome(row).is_none());
        Self { remembered, ..Self::new(session, HeadOperation::Append(append), change) }
    }

    /// Requests the head, and the newest change if there will be another one.
    fn request_row(&self, transaction: &IdbTransaction) -> Result<ScriptStep, IdbFailure> {
        let mut requests = vec![request_head(transaction, &self.keys)?];
        if !matches!(self.operation, HeadOperation::Read) {
            requests.push(request_newest_change(transaction)?);
        }
        Ok(ScriptStep::Request(requests))
    }

    /// Takes a number above the newest change.
    fn raise_change(&mut self, newest: Option<&JsValue>) {
        self.change = self.change.max(newest.map_or(0, newest_change).saturating_add(1));
    }

    /// Requests the head and what may be in the way, and writes. The answers say whether the writes may stay.
    fn write_ahead(&mut self, transaction: &IdbTransaction) -> Result<Option<ScriptStep>, IdbFailure> {
        let (HeadOperation::Append(append), Some(row)) = (&self.operation, &self.remembered) else { return Ok(None) };
        let mut requests = vec![
            request_head(transaction, &self.keys)?,
            request_change_above(transaction, self.change.saturating_sub(1))?,
        ];
        let ranges = append.possibly_occupied(&self.keys, row);
        if let ScriptStep::Request(more) = request_first_records(transaction, ranges)? {
            requests.extend(more);
        }
        // If this instance stops before the head is read, nothing of this may be committed.
        self.rollback = TrapCleanup::calling(transaction, "abort");
        let (mut row, mut written) = (row.clone(), 0);
        let appended = append.write(&self.keys, transaction, (&mut row, self.change), &mut written)?;
        self.written_ahead = Some((appended, written, row));
        Ok(Some(ScriptStep::Request(requests)))
    }

    /// Keeps what was written ahead if the head is the remembered one, and rolls back otherwise.
    fn keep_written(
        &mut self,
        written: (Appended, u64, HeadRow),
        answers: &[JsValue],
    ) -> Result<ScriptStep, IdbFailure> {
        let (appended, bytes, written_row) = written;
        let remembered = self.remembered.as_ref();
        let is_same = answers.first().is_some_and(|stored| remembered.is_some_and(|row| row.is_stored_as(stored)));
        // Or another tab has taken the number of the change, or one above it.
        if !is_same || answers.get(1).is_some_and(|session| !session.is_undefined()) {
            self.is_stale = true;
            return Err(IdbFailure::found_nothing());
        }
        if answers.iter().skip(2).any(|key| !key.is_undefined()) {
            return Err(IdbFailure::occupied());
        }
        self.appended = Some(appended);
        self.written_row = Some(written_row);
        self.rollback = None;
        Ok(ScriptStep::Done(bytes))
    }

    /// Requests what must be known in addition to the row, if anything.
    fn request_more(
        &self,
        transaction: &IdbTransaction,
        row: &HeadRow,
        exists: bool,
    ) -> Result<Option<ScriptStep>, IdbFailure> {
        match &self.operation {
            // A session with records and without a head is damaged.
            HeadOperation::Read if !exists => request_records(transaction, &self.keys).map(Some),
            HeadOperation::Append(append) if append.outcome(row).is_none() => {
                let ranges = append.possibly_occupied(&self.keys, row);
                if ranges.is_empty() { Ok(None) } else { request_first_records(transaction, ranges).map(Some) }
            }
            _ => Ok(None),
        }
    }

    fn finish(
        &mut self,
        transaction: &IdbTransaction,
        (mut row, exists): (HeadRow, bool),
        found: bool,
    ) -> Result<ScriptStep, IdbFailure> {
        let is_live = exists && !row.deleted;
        let mut written = 0;
        if matches!(self.operation, HeadOperation::Delete | HeadOperation::Erase) {
            delete_search_index(transaction)?;
        }
        match &self.operation {
            // Runs again after a lost connection.
            HeadOperation::Read => self.head = (is_live || found).then(|| row.head()),
            HeadOperation::Append(append) => {
                self.appended = Some(match append.outcome(&row) {
                    Some(outcome) => outcome,
                    None if found => Appended::Occupied,
                    None => {
                        let appended = append.write(&self.keys, transaction, (&mut row, self.change), &mut written)?;
                        self.written_row = Some(row);
                        appended
                    }
                });
            }
            HeadOperation::Delete if is_live => {
                clear(&self.keys, transaction)?;
                put_head(transaction, &self.keys, &HeadRow { change: self.change, ..tombstone(row) })?;
            }
            HeadOperation::Erase if is_live => {
                clear(&self.keys, transaction)?;
                delete_head(transaction, &self.keys)?;
                self.unwritten_tombstone = Some(tombstone(row));
            }
            // There may be records without a head.
            HeadOperation::Delete | HeadOperation::Erase if !exists => clear(&self.keys, transaction)?,
            HeadOperation::WriteTombstone(tombstone) if !exists => {
                put_head(transaction, &self.keys, &HeadRow { change: self.change, ..tombstone.clone() })?;
            }
            HeadOperation::Delete | HeadOperation::Erase | HeadOperation::WriteTombstone(_) => {}
        }
        Ok(ScriptStep::Done(written))
    }
}

impl Script for HeadScript {
    fn stores(&self) -> Vec<&'static str> {
        match &self.operation {
            HeadOperation::Read => vec![HEADS, Table::Log.as_str(), Table::Runs.as_str()],
            HeadOperation::Append(append) => append.stores(),
            HeadOperation::Delete | HeadOperation::Erase => STORES.to_vec(),
            HeadOperation::WriteTombstone(_) => vec![HEADS],
        }
    }

    fn restart(&mut self) {
        self.row = None;
        self.remembered = None;
        self.written_ahead = None;
        self.rollback = None;
        self.is_stale = false;
        // The earlier transaction wrote nothing.
        self.appended = None;
        self.written_row = None;
    }

    fn step(&mut self, transaction: &IdbTransaction, answers: &[JsValue]) -> Result<ScriptStep, IdbFailure> {
        if let Some(written) = self.written_ahead.take() {
            return self.keep_written(written, answers);
        }
        if let Some(row) = self.row.take() {
            let found = answers.iter().any(|key| !key.is_undefined());
            return self.finish(transaction, row, found);
        }
        let Some(value) = answers.first() else {
            return match self.write_ahead(transaction)? {
                Some(step) => Ok(step),
                None => self.request_row(transaction),
            };
        };
        self.raise_change(answers.get(1));
        let mut row = HeadRow::default();
        let exists = row.read(value);
        match self.request_more(transaction, &row, exists)? {
            Some(step) => {
                self.row = Some((row, exists));
                Ok(step)
            }
            None => self.finish(transaction, (row, exists), false),
        }
    }
}
