//! The transactions that read the head's row and go on from there at once.

use super::failure::Failure;
use super::rows::{HEADS, HeadRow, Keys, STORES, ask_head};
use super::transaction::{Script, Step};
use super::write::{Append, bury};
use crate::store::{Appended, Head};
use wasm_bindgen::JsValue;
use web_sys::IdbTransaction;

/// What is done with the head.
pub(super) enum Act {
    Look,
    Append(Append),
    Bury,
}

pub(super) struct OnHead {
    keys: Keys,
    act: Act,
    /// What `Look` saw.
    pub(super) head: Option<Head>,
    /// How `Append` ended.
    pub(super) appended: Option<Appended>,
}

impl OnHead {
    pub(super) fn new(session: &str, act: Act) -> Self {
        Self { keys: Keys::of(session), act, head: None, appended: None }
    }
}

impl Script for OnHead {
    fn stores(&self) -> Vec<&'static str> {
        match &self.act {
            Act::Look => vec![HEADS],
            Act::Append(append) => append.stores(),
            Act::Bury => STORES.to_vec(),
        }
    }

    fn step(&mut self, transaction: &IdbTransaction, answers: &[JsValue]) -> Result<Step, Failure> {
        let Some(row) = answers.first() else {
            return ask_head(transaction, &self.keys);
        };
        let mut head = HeadRow::default();
        let is_there = head.read(row)? && !head.deleted;
        let mut written = 0;
        match &self.act {
            // It may be asked again, after a connection was lost.
            Act::Look => self.head = is_there.then(|| head.head()),
            Act::Append(append) => {
                self.appended = Some(append.write(&self.keys, transaction, &mut head, &mut written)?);
            }
            Act::Bury if is_there => bury(&self.keys, transaction, head)?,
            Act::Bury => {}
        }
        Ok(Step::Done(written))
    }
}
