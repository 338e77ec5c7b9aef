//! The read of a range: what begins in it, and the segments that begin before and reach in.

use super::failure::IdbFailure;
use super::rows::{self, HEADS, HeadRow, RangeEnd, SessionKeys, ask_head, range, table_name};
use super::scan::Scan;
use super::transaction::{Script, ScriptStep};
use crate::store::{MAX_KEY, Query, Record};
use js_sys::Array;
use wasm_bindgen::JsValue;
use web_sys::IdbTransaction;

/// A page's size in bytes, aimed at by the size of the rows before.
const PAGE_BYTES: u64 = 4 * 1024 * 1024;

/// What the last answers are to.
#[derive(Clone, Copy, PartialEq)]
enum ReadPhase {
    Nothing,
    Head,
    Rows,
    /// SessionKeys of segments that may reach in.
    SegmentKeys,
    /// Their values.
    SegmentValues,
}

pub(super) struct RangeRead {
    keys: SessionKeys,
    query: Query,
    phase: ReadPhase,
    scan: Scan,
    widest: u64,
    reaching: Vec<(u64, u64)>,
    /// What was read.
    pub(super) records: Vec<Record>,
    bytes: u64,
}

impl RangeRead {
    pub(super) fn new(keys: SessionKeys, mut query: Query, newest: bool) -> Self {
        query.to = query.to.min(MAX_KEY);
        let (lower, upper) = (RangeEnd::at(keys.record(query.from, None)), RangeEnd::at(keys.past(query.to)));
        let mut scan = Scan::new(table_name(query.table), lower, upper, newest);
        scan.reverse = query.reverse;
        if query.limit_bytes < PAGE_BYTES {
            scan.count = 16;
        }
        Self {
            keys,
            query,
            phase: ReadPhase::Nothing,
            scan,
            widest: 0,
            reaching: Vec::new(),
            records: Vec::new(),
            bytes: 0,
        }
    }
}

impl Script for RangeRead {
    fn stores(&self) -> Vec<&'static str> {
        let table = table_name(self.query.table);
        if self.query.from == 0 { vec![table] } else { vec![HEADS, table] }
    }

    fn restart(&mut self) {
        *self = Self::new(self.keys.clone(), self.query, self.scan.newest);
    }

    fn step(&mut self, transaction: &IdbTransaction, answers: &[JsValue]) -> Result<ScriptStep, IdbFailure> {
        match self.phase {
            // Nothing begins before the first key.
            ReadPhase::Nothing if self.query.from == 0 => self.rows(transaction),
            ReadPhase::Nothing => {
                self.phase = ReadPhase::Head;
                ask_head(transaction, &self.keys)
            }
            ReadPhase::Head => {
                let mut head = HeadRow::default();
                for row in answers {
                    head.read(row);
                }
                self.widest = head.widest;
                if self.widest > 0 && !self.query.reverse { self.segments(transaction) } else { self.rows(transaction) }
            }
            ReadPhase::SegmentKeys => {
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
            ReadPhase::SegmentValues => {
                for ((key, last), value) in std::mem::take(&mut self.reaching).into_iter().zip(answers) {
                    if self.take(rows::read(self.query.table, key, Some(last), value)) {
                        return Ok(ScriptStep::Done(0));
                    }
                }
                self.after_segments(transaction)
            }
            ReadPhase::Rows => {
                let before = (self.records.len() as u64, self.bytes);
                for (key, value) in self.scan.rows(answers)? {
                    // A key that is not of our making cannot be addressed by any of our calls.
                    let Some((_, key, last)) = rows::place(&key) else { continue };
                    if self.take(rows::read(self.query.table, key, last, &value)) {
                        return Ok(ScriptStep::Done(0));
                    }
                }
                if !self.scan.ended() {
                    self.adapt(before);
                    return self.rows(transaction);
                }
                if self.widest > 0 && self.query.reverse { self.segments(transaction) } else { Ok(ScriptStep::Done(0)) }
            }
        }
    }
}

impl RangeRead {
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

    fn rows(&mut self, transaction: &IdbTransaction) -> Result<ScriptStep, IdbFailure> {
        self.phase = ReadPhase::Rows;
        self.scan.ask(transaction)
    }

    fn segments(&mut self, transaction: &IdbTransaction) -> Result<ScriptStep, IdbFailure> {
        self.phase = ReadPhase::SegmentKeys;
        let first = RangeEnd::at(self.keys.record(self.query.from.saturating_sub(self.widest), None));
        let range = range(&first, &RangeEnd::beyond(self.keys.record(self.query.from, None)))?;
        let store = transaction.object_store(table_name(self.query.table))?;
        Ok(ScriptStep::Ask(vec![store.get_all_keys_with_key_and_limit(&range, u32::MAX)?]))
    }

    fn values(&mut self, transaction: &IdbTransaction) -> Result<ScriptStep, IdbFailure> {
        self.phase = ReadPhase::SegmentValues;
        let store = transaction.object_store(table_name(self.query.table))?;
        let mut asked = Vec::new();
        for (key, last) in &self.reaching {
            asked.push(store.get(&self.keys.record(*key, Some(*last)))?);
        }
        Ok(ScriptStep::Ask(asked))
    }

    fn after_segments(&mut self, transaction: &IdbTransaction) -> Result<ScriptStep, IdbFailure> {
        if self.query.reverse { Ok(ScriptStep::Done(0)) } else { self.rows(transaction) }
    }
}
