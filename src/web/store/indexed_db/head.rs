//! The transactions that read the head's row and go on from there at once.

use super::failure::Failure;
use super::rows::{HEADS, HeadRow, Keys, STORES, ask_any, ask_head, ask_records, delete_head, put_head, table_name};
use super::transaction::{Script, Step};
use super::write::{Append, clear, tombstone};
use crate::store::{Appended, StoredHead, Table};
use wasm_bindgen::JsValue;
use web_sys::IdbTransaction;

/// What is done with the head.
pub(super) enum Act {
    Look,
    Append(Append),
    /// Deletes the session and leaves a tombstone.
    Bury,
    /// Deletes the session, head and all: a disk that is full takes no tombstone, and no transaction that writes one.
    Erase,
    /// Writes the tombstone that `Erase` could not, where nothing else was written since.
    Mark(HeadRow),
}

pub(super) struct OnHead {
    keys: Keys,
    act: Act,
    /// The row, and whether there was one, while something else is asked for.
    row: Option<(HeadRow, bool)>,
    /// What `Look` saw.
    pub(super) head: Option<StoredHead>,
    /// How `Append` ended.
    pub(super) appended: Option<Appended>,
    /// What `Erase` left to be written.
    pub(super) unmarked: Option<HeadRow>,
}

impl OnHead {
    pub(super) fn new(session: &str, act: Act) -> Self {
        Self { keys: Keys::of(session), act, row: None, head: None, appended: None, unmarked: None }
    }

    /// What must be known beside the row, if anything.
    fn ask_more(&self, transaction: &IdbTransaction, row: &HeadRow, any: bool) -> Result<Option<Step>, Failure> {
        match &self.act {
            // Records without a head are a damaged session.
            Act::Look if !any => ask_records(transaction, &self.keys).map(Some),
            Act::Append(append) if append.outcome(row).is_none() => {
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
    ) -> Result<Step, Failure> {
        let is_there = any && !row.deleted;
        let mut written = 0;
        match &self.act {
            // It may be asked again, after a connection was lost.
            Act::Look => self.head = (is_there || found).then(|| row.head()),
            Act::Append(append) => {
                self.appended = Some(match append.outcome(&row) {
                    Some(outcome) => outcome,
                    None if found => Appended::Occupied,
                    None => append.write(&self.keys, transaction, &mut row, &mut written)?,
                });
            }
            Act::Bury if is_there => {
                clear(&self.keys, transaction)?;
                put_head(transaction, &self.keys, &tombstone(row))?;
            }
            Act::Erase if is_there => {
                clear(&self.keys, transaction)?;
                delete_head(transaction, &self.keys)?;
                self.unmarked = Some(tombstone(row));
            }
            // Without a head there may be records all the same.
            Act::Bury | Act::Erase if !any => clear(&self.keys, transaction)?,
            Act::Mark(tombstone) if !any => put_head(transaction, &self.keys, tombstone)?,
            Act::Bury | Act::Erase | Act::Mark(_) => {}
        }
        Ok(Step::Done(written))
    }
}

impl Script for OnHead {
    fn stores(&self) -> Vec<&'static str> {
        match &self.act {
            Act::Look => vec![HEADS, table_name(Table::Log), table_name(Table::Runs)],
            Act::Append(append) => append.stores(),
            Act::Bury | Act::Erase => STORES.to_vec(),
            Act::Mark(_) => vec![HEADS],
        }
    }

    fn restart(&mut self) {
        self.row = None;
    }

    fn step(&mut self, transaction: &IdbTransaction, answers: &[JsValue]) -> Result<Step, Failure> {
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
