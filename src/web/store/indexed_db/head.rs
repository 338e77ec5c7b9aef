//! The transactions that read the head's row and go on from there at once.

use super::failure::Failure;
use super::rows::{HEADS, HeadRow, Keys, STORES, ask_head, delete_head, put_head};
use super::transaction::{Script, Step};
use super::write::{Append, clear, tombstone};
use crate::store::{Appended, Head};
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
    /// What `Look` saw.
    pub(super) head: Option<Head>,
    /// How `Append` ended.
    pub(super) appended: Option<Appended>,
    /// What `Erase` left to be written.
    pub(super) unmarked: Option<HeadRow>,
}

impl OnHead {
    pub(super) fn new(session: &str, act: Act) -> Self {
        Self { keys: Keys::of(session), act, head: None, appended: None, unmarked: None }
    }
}

impl Script for OnHead {
    fn stores(&self) -> Vec<&'static str> {
        match &self.act {
            Act::Look => vec![HEADS],
            Act::Append(append) => append.stores(),
            Act::Bury | Act::Erase => STORES.to_vec(),
            Act::Mark(_) => vec![HEADS],
        }
    }

    fn step(&mut self, transaction: &IdbTransaction, answers: &[JsValue]) -> Result<Step, Failure> {
        let Some(row) = answers.first() else {
            return ask_head(transaction, &self.keys);
        };
        let mut head = HeadRow::default();
        let any = head.read(row)?;
        let is_there = any && !head.deleted;
        let mut written = 0;
        match &self.act {
            // It may be asked again, after a connection was lost.
            Act::Look => self.head = is_there.then(|| head.head()),
            Act::Append(append) => {
                self.appended = Some(append.write(&self.keys, transaction, &mut head, &mut written)?);
            }
            Act::Bury if is_there => {
                clear(&self.keys, transaction)?;
                put_head(transaction, &self.keys, &tombstone(head))?;
            }
            Act::Erase if is_there => {
                clear(&self.keys, transaction)?;
                delete_head(transaction, &self.keys)?;
                self.unmarked = Some(tombstone(head));
            }
            Act::Mark(tombstone) if !any => put_head(transaction, &self.keys, tombstone)?,
            Act::Bury | Act::Erase | Act::Mark(_) => {}
        }
        Ok(Step::Done(written))
    }
}
