//! Reads a range of records: those that begin in it, and the segments that begin before it and reach into it.

use super::failure::IdbFailure;
use super::rows::{self, HEADS, HeadRow, RangeEnd, SessionKeys, range, request_head};
use super::scan::Scan;
use super::transaction::{Script, ScriptStep};
use crate::store::{MAX_KEY, Query, Record};
use js_sys::Array;
use wasm_bindgen::JsValue;
use web_sys::IdbTransaction;

/// The target size of a page in bytes, estimated from the rows before.
const PAGE_BYTES: u64 = 4 * 1024 * 1024;

/// Size of a large row in bytes.
const SEGMENT_BYTES: u64 = 256 * 1024;

/// What the pending requests ask for.
#[derive(Clone, Copy, PartialEq)]
enum ReadPhase {
    Nothing,
    Head,
    Rows,
    /// Keys of segments that may reach into the range.
    SegmentKeys,
    /// Values of the segments that do.
    SegmentValues,
}

pub(super) struct RangeReadScript {
    keys: SessionKeys,
    query: Query,
    phase: ReadPhase,
    scan: Scan,
    widest: u64,
    reaching_segments: Vec<(u64, u64)>,
    /// The records that were read.
    pub(super) records: Vec<Record>,
    bytes: u64,
}

impl RangeReadScript {
    pub(super) fn new(keys: SessionKeys, mut query: Query, uses_newest_api: bool) -> Self {
        query.to = query.to.min(MAX_KEY);
        let (lower, upper) = (RangeEnd::at(keys.record(query.from, None)), RangeEnd::at(keys.past(query.to)));
        let mut scan = Scan::new(query.table.as_str(), lower, upper, uses_newest_api);
        scan.reverse = query.reverse;
        // Rows may be segments of 256 KB each.
        scan.count = u32::try_from(query.limit_bytes / SEGMENT_BYTES).unwrap_or(u32::MAX).clamp(16, 64);
        Self {
            keys,
            query,
            phase: ReadPhase::Nothing,
            scan,
            widest: 0,
            reaching_segments: Vec::new(),
            records: Vec::new(),
            bytes: 0,
        }
    }
}

impl Script for RangeReadScript {
    fn stores(&self) -> Vec<&'static str> {
        let table = self.query.table.as_str();
        if self.query.from == 0 { vec![table] } else { vec![HEADS, table] }
    }

    fn restart(&mut self) {
        *self = Self::new(self.keys.clone(), self.query, self.scan.uses_newest_api);
    }

    fn step(&mut self, transaction: &IdbTransaction, answers: &[JsValue]) -> Result<ScriptStep, IdbFailure> {
        match self.phase {
            // No segment begins before the first key.
            ReadPhase::Nothing if self.query.from == 0 => self.rows(transaction),
            ReadPhase::Nothing => {
                self.phase = ReadPhase::Head;
                request_head(transaction, &self.keys)
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
                self.reaching_segments.clear();
                let keys = answers.first().map(Array::from).unwrap_or_default();
                for at in 0..keys.length() {
                    if let Some((_, key, Some(last))) = rows::place(&keys.get(at))
                        && last >= self.query.from
                    {
                        self.reaching_segments.push((key, last));
                    }
                }
                if self.query.reverse {
                    self.reaching_segments.reverse();
                }
                if self.reaching_segments.is_empty() {
                    self.after_segments(transaction)
                } else {
                    self.values(transaction)
                }
            }
            ReadPhase::SegmentValues => {
                for ((key, last), value) in std::mem::take(&mut self.reaching_segments).into_iter().zip(answers) {
                    if self.take(rows::read(self.query.table, key, Some(last), value)) {
                        return Ok(ScriptStep::Done(0));
                    }
                }
                self.after_segments(transaction)
            }
            ReadPhase::Rows => {
                let before = (self.records.len() as u64, self.bytes);
                for (key, value) in self.scan.rows(answers)? {
                    // A foreign key: no call of this store can address it.
                    let Some((_, key, last)) = rows::place(&key) else { continue };
                    if self.take(rows::read(self.query.table, key, last, &value)) {
                        return Ok(ScriptStep::Done(0));
                    }
                }
                if !self.scan.ended() {
                    self.adapt_page_size(before);
                    return self.rows(transaction);
                }
                if self.widest > 0 && self.query.reverse { self.segments(transaction) } else { Ok(ScriptStep::Done(0)) }
            }
        }
    }
}

impl RangeReadScript {
    /// Adds a record. Returns true if the limit is reached.
    fn take(&mut self, record: Record) -> bool {
        self.bytes = self.bytes.saturating_add(record.value.len() as u64);
        self.records.push(record);
        self.bytes >= self.query.limit_bytes
    }

    /// Sets the size of the next page to the rest of the limit, assuming rows like those of the last page.
    fn adapt_page_size(&mut self, (records, bytes): (u64, u64)) {
        let received = (self.records.len() as u64).saturating_sub(records).max(1);
        let each = self.bytes.saturating_sub(bytes).checked_div(received).unwrap_or(0).max(1);
        let wanted = self.query.limit_bytes.saturating_sub(self.bytes).min(PAGE_BYTES);
        self.scan.count = u32::try_from(wanted.div_ceil(each)).unwrap_or(u32::MAX).clamp(1, 512);
    }

    fn rows(&mut self, transaction: &IdbTransaction) -> Result<ScriptStep, IdbFailure> {
        self.phase = ReadPhase::Rows;
        self.scan.request(transaction)
    }

    fn segments(&mut self, transaction: &IdbTransaction) -> Result<ScriptStep, IdbFailure> {
        self.phase = ReadPhase::SegmentKeys;
        let first = RangeEnd::at(self.keys.record(self.query.from.saturating_sub(self.widest), None));
        let range = range(&first, &RangeEnd::beyond(self.keys.record(self.query.from, None)))?;
        let store = transaction.object_store(self.query.table.as_str())?;
        Ok(ScriptStep::Request(vec![store.get_all_keys_with_key_and_limit(&range, u32::MAX)?]))
    }

    fn values(&mut self, transaction: &IdbTransaction) -> Result<ScriptStep, IdbFailure> {
        self.phase = ReadPhase::SegmentValues;
        let store = transaction.object_store(self.query.table.as_str())?;
        let mut requests = Vec::new();
        for (key, last) in &self.reaching_segments {
            requests.push(store.get(&self.keys.record(*key, Some(*last)))?);
        }
        Ok(ScriptStep::Request(requests))
    }

    fn after_segments(&mut self, transaction: &IdbTransaction) -> Result<ScriptStep, IdbFailure> {
        if self.query.reverse { Ok(ScriptStep::Done(0)) } else { self.rows(transaction) }
    }
}
