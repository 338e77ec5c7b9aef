//! The read of a range: what begins in it, and the segments that begin before and reach in.

use super::failure::Failure;
use super::rows::{self, End, HEADS, HeadRow, Keys, ask_head, range, table_name};
use super::scan::Scan;
use super::transaction::{Script, Step};
use crate::store::{MAX_KEY, Query, Record};
use js_sys::Array;
use wasm_bindgen::JsValue;
use web_sys::IdbTransaction;

/// A page's size in bytes, aimed at by the size of the rows before.
const PAGE_BYTES: u64 = 4 * 1024 * 1024;

/// What the last answers are to.
#[derive(Clone, Copy, PartialEq)]
enum Asked {
    Nothing,
    Head,
    Rows,
    /// Keys of segments that may reach in.
    Keys,
    /// Their values.
    Values,
}

pub(super) struct Read {
    keys: Keys,
    query: Query,
    asked: Asked,
    scan: Scan,
    widest: u64,
    reaching: Vec<(u64, u64)>,
    /// What was read.
    pub(super) records: Vec<Record>,
    bytes: u64,
}

impl Read {
    pub(super) fn new(keys: Keys, mut query: Query, newest: bool) -> Self {
        query.to = query.to.min(MAX_KEY);
        let (lower, upper) = (End::at(keys.record(query.from, None)), End::at(keys.past(query.to)));
        let mut scan = Scan::new(table_name(query.table), lower, upper, newest);
        scan.reverse = query.reverse;
        if query.limit_bytes < PAGE_BYTES {
            scan.count = 16;
        }
        Self {
            keys,
            query,
            asked: Asked::Nothing,
            scan,
            widest: 0,
            reaching: Vec::new(),
            records: Vec::new(),
            bytes: 0,
        }
    }
}

impl Script for Read {
    fn stores(&self) -> Vec<&'static str> {
        let table = table_name(self.query.table);
        if self.query.from == 0 { vec![table] } else { vec![HEADS, table] }
    }

    fn restart(&mut self) {
        *self = Self::new(self.keys.clone(), self.query, self.scan.newest);
    }

    fn step(&mut self, transaction: &IdbTransaction, answers: &[JsValue]) -> Result<Step, Failure> {
        match self.asked {
            // Nothing begins before the first key.
            Asked::Nothing if self.query.from == 0 => self.rows(transaction),
            Asked::Nothing => {
                self.asked = Asked::Head;
                ask_head(transaction, &self.keys)
            }
            Asked::Head => {
                let mut head = HeadRow::default();
                for row in answers {
                    head.read(row);
                }
                self.widest = head.widest;
                if self.widest > 0 && !self.query.reverse { self.segments(transaction) } else { self.rows(transaction) }
            }
            Asked::Keys => {
                self.reaching.clear();
                let keys = answers.first().map(Array::from).unwrap_or_default();
                for at in 0..keys.length() {
                    if let Some((_, key, Some(last))) = rows::place(&keys.get(at))
                        && last >= self.query.from
                    {
                        self.reaching.push((key, last));
                    }
                }
                if self.query.reverse {
                    self.reaching.reverse();
                }
                if self.reaching.is_empty() { self.after_segments(transaction) } else { self.values(transaction) }
            }
            Asked::Values => {
                for ((key, last), value) in std::mem::take(&mut self.reaching).into_iter().zip(answers) {
                    if self.take(rows::read(self.query.table, key, Some(last), value)) {
                        return Ok(Step::Done(0));
                    }
                }
                self.after_segments(transaction)
            }
            Asked::Rows => {
                let before = (self.records.len() as u64, self.bytes);
                for (key, value) in self.scan.rows(answers)? {
                    // A key that is not of our making cannot be addressed by any of our calls.
                    let Some((_, key, last)) = rows::place(&key) else { continue };
                    if self.take(rows::read(self.query.table, key, last, &value)) {
                        return Ok(Step::Done(0));
                    }
                }
                if !self.scan.ended() {
                    self.adapt(before);
                    return self.rows(transaction);
                }
                if self.widest > 0 && self.query.reverse { self.segments(transaction) } else { Ok(Step::Done(0)) }
            }
        }
    }
}

impl Read {
    /// Takes a record; whether the limit is reached.
    fn take(&mut self, record: Record) -> bool {
        self.bytes = self.bytes.saturating_add(record.value.len() as u64);
        self.records.push(record);
        self.bytes >= self.query.limit_bytes
    }

    /// Makes the next page as large as what is wanted still, if its rows are like the last page's.
    fn adapt(&mut self, (records, bytes): (u64, u64)) {
        let came = (self.records.len() as u64).saturating_sub(records).max(1);
        let each = self.bytes.saturating_sub(bytes).checked_div(came).unwrap_or(0).max(1);
        let wanted = self.query.limit_bytes.saturating_sub(self.bytes).min(PAGE_BYTES);
        self.scan.count = u32::try_from(wanted.div_ceil(each)).unwrap_or(u32::MAX).clamp(1, 512);
    }

    fn rows(&mut self, transaction: &IdbTransaction) -> Result<Step, Failure> {
        self.asked = Asked::Rows;
        self.scan.ask(transaction)
    }

    fn segments(&mut self, transaction: &IdbTransaction) -> Result<Step, Failure> {
        self.asked = Asked::Keys;
        let first = End::at(self.keys.record(self.query.from.saturating_sub(self.widest), None));
        let range = range(&first, &End::beyond(self.keys.record(self.query.from, None)))?;
        let store = transaction.object_store(table_name(self.query.table))?;
        Ok(Step::Ask(vec![store.get_all_keys_with_key_and_limit(&range, u32::MAX)?]))
    }

    fn values(&mut self, transaction: &IdbTransaction) -> Result<Step, Failure> {
        self.asked = Asked::Values;
        let store = transaction.object_store(table_name(self.query.table))?;
        let mut asked = Vec::new();
        for (key, last) in &self.reaching {
            asked.push(store.get(&self.keys.record(*key, Some(*last)))?);
        }
        Ok(Step::Ask(asked))
    }

    fn after_segments(&mut self, transaction: &IdbTransaction) -> Result<Step, Failure> {
        if self.query.reverse { Ok(Step::Done(0)) } else { self.rows(transaction) }
    }
}
