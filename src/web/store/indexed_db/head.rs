//! The transactions that read the head's row and go on from there at once.

use super::failure::IdbFailure;
use super::rows::{
    HEADS, HeadRow, STORES, SessionKeys, ask_any, ask_head, ask_records, delete_head, put_head, table_name,
};
use super::transaction::{Script, ScriptStep};
use super::write::{AppendRequest, clear, tombstone};
use crate::store::{Appended, StoredHead, Table};
use wasm_bindgen::JsValue;
use web_sys::IdbTransaction;

/// What is done with the head.
pub(super) enum HeadOperation {
    RangeRead,
    Append(AppendRequest),
    /// Deletes the session and leaves a tombstone.
    Delete,
    /// Deletes the session, head and all: a disk that is full takes no tombstone, and no transaction that writes one.
    Erase,
    /// Writes the tombstone that `Erase` could not, where nothing else was written since.
    WriteTombstone(HeadRow),
}

pub(super) struct HeadScript {
    keys: SessionKeys,
    act: HeadOperation,
    /// The row, and whether there was one, while something else is asked for.
    row: Option<(HeadRow, bool)>,
    /// The head that `HeadOperation::RangeRead` found.
    pub(super) head: Option<StoredHead>,
    /// The outcome of `HeadOperation::Append`.
    pub(super) appended: Option<Appended>,
    /// What `Erase` left to be written.
    pub(super) unmarked: Option<HeadRow>,
}

impl HeadScript {
    pub(super) fn new(session: &str, act: HeadOperation) -> Self {
        Self { keys: SessionKeys::of(session), act, row: None, head: None, appended: None, unmarked: None }
    }

    /// What must be known beside the row, if anything.
    fn ask_more(
        &self,
        transaction: &IdbTransaction,
        row: &HeadRow,
        any: bool,
    ) -> Result<Option<ScriptStep>, IdbFailure> {
        match &self.act {
            // Records without a head are a damaged session.
            HeadOperation::RangeRead if !any => ask_records(transaction, &self.keys).map(Some),
            HeadOperation::Append(append) if append.outcome(row).is_none() => {
                let hidden = append.hidden(&self.keys, row);
                if hidden.is_empty() { Ok(None) } else { ask_any(transaction, hidden).map(Some) }
            }
            _ => Ok(None),
        }
    }

    fn act(
        &mut self,
        transaction: &IdbTransaction,
        (mut row, any): (HeadRow, bool),
        found: bool,
    ) -> Result<ScriptStep, IdbFailure> {
        let is_there = any && !row.deleted;
        let mut written = 0;
        match &self.act {
            // It may be asked again, after a connection was lost.
            HeadOperation::RangeRead => self.head = (is_there || found).then(|| row.head()),
            HeadOperation::Append(append) => {
                self.appended = Some(match append.outcome(&row) {
                    Some(outcome) => outcome,
                    None if found => Appended::Occupied,
                    None => append.write(&self.keys, transaction, &mut row, &mut written)?,
                });
            }
            HeadOperation::Delete if is_there => {
                clear(&self.keys, transaction)?;
                put_head(transaction, &self.keys, &tombstone(row))?;
            }
            HeadOperation::Erase if is_there => {
                clear(&self.keys, transaction)?;
                delete_head(transaction, &self.keys)?;
                self.unmarked = Some(tombstone(row));
            }
            // Without a head there may be records all the same.
            HeadOperation::Delete | HeadOperation::Erase if !any => clear(&self.keys, transaction)?,
            HeadOperation::WriteTombstone(tombstone) if !any => put_head(transaction, &self.keys, tombstone)?,
            HeadOperation::Delete | HeadOperation::Erase | HeadOperation::WriteTombstone(_) => {}
        }
        Ok(ScriptStep::Done(written))
    }
}

impl Script for HeadScript {
    fn stores(&self) -> Vec<&'static str> {
        match &self.act {
            HeadOperation::RangeRead => vec![HEADS, table_name(Table::Log), table_name(Table::Runs)],
            HeadOperation::Append(append) => append.stores(),
            HeadOperation::Delete | HeadOperation::Erase => STORES.to_vec(),
            HeadOperation::WriteTombstone(_) => vec![HEADS],
        }
    }

    fn restart(&mut self) {
        self.row = None;
    }

    fn step(&mut self, transaction: &IdbTransaction, answers: &[JsValue]) -> Result<ScriptStep, IdbFailure> {
        if let Some(row) = self.row.take() {
            let found = answers.iter().any(|key| !key.is_undefined());
            return self.act(transaction, row, found);
        }
        let Some(value) = answers.first() else {
            return ask_head(transaction, &self.keys);
        };
        let mut row = HeadRow::default();
        let any = row.read(value);
        match self.ask_more(transaction, &row, any)? {
            Some(step) => {
                self.row = Some((row, any));
                Ok(step)
            }
            None => self.act(transaction, (row, any), false),
        }
    }
}
