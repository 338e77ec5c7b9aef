//! Reads a range of records: those that begin in it, and the segments that begin before it and reach into it. The range
//! may depend on the head, which is read first, in the same transaction.

use super::failure::IdbFailure;
use super::rows::{self, HEADS, HeadRow, RangeEnd, SessionKeys, range, request_head, request_records};
use super::scan::Scan;
use super::transaction::{Script, ScriptStep};
use crate::store::{MAX_KEY, Query, Record, RecordSelector, StoredHead, Table};
use js_sys::Array;
use wasm_bindgen::JsValue;
use web_sys::IdbTransaction;

/// The target size of a page in bytes, estimated from the rows before.
const PAGE_BYTES: u64 = 4 * 1024 * 1024;

/// Size of a large row in bytes.
const SEGMENT_BYTES: u64 = 256 * 1024;

/// Maximum number of rows of a page.
const MAX_PAGE_ROWS: u64 = 1024;

/// Maximum number of rows of a page after the first, if the newest rows are read: older ones may be segments.
const OLDER_PAGE_ROWS: u32 = 4;

/// What the pending requests ask for.
#[derive(Clone, Copy, PartialEq)]
enum ReadPhase {
    Nothing,
    Head,
    /// The first records of a session without a head, which is damaged if it has any.
    Headless,
    Rows,
    /// Keys of segments that may reach into the range.
    SegmentKeys,
    /// Values of the segments that do.
    SegmentValues,
}

pub(super) struct RangeReadScript {
    keys: SessionKeys,
    query: Query,
    /// Makes the query of the head.
    select: Option<RecordSelector>,
    phase: ReadPhase,
    scan: Scan,
    widest: u64,
    reaching_segments: Vec<(u64, u64)>,
    /// The head, for a query that is made of it.
    pub(super) head: Option<StoredHead>,
    /// The records that were read.
    pub(super) records: Vec<Record>,
    bytes: u64,
}

impl RangeReadScript {
    pub(super) fn new(keys: SessionKeys, query: Query, uses_newest_api: bool) -> Self {
        let scan = Self::scan(&keys, query, uses_newest_api);
        Self {
            keys,
            query,
            select: None,
            phase: ReadPhase::Nothing,
            scan,
            widest: 0,
            reaching_segments: Vec::new(),
            head: None,
            records: Vec::new(),
            bytes: 0,
        }
    }

    /// Makes a script that reads the head, and then what `select` makes of it.
    pub(super) fn after_head(keys: SessionKeys, select: RecordSelector, uses_newest_api: bool) -> Self {
        Self { select: Some(select), ..Self::new(keys, Query::all(Table::Log), uses_newest_api) }
    }

    fn scan(keys: &SessionKeys, query: Query, uses_newest_api: bool) -> Scan {
        let to = query.to.min(MAX_KEY);
        let (lower, upper) = (RangeEnd::at(keys.record(query.from, None)), RangeEnd::at(keys.past(to)));
        let mut scan = Scan::new(query.table.as_str(), lower, upper, uses_newest_api);
        scan.reverse = query.reverse;
        let rows = match query.expected_records {
            // Rows may be segments of 256 KB each.
            0 => (query.limit_bytes / SEGMENT_BYTES).clamp(16, 64),
            expected => expected.min(MAX_PAGE_ROWS),
        };
        scan.count = u32::try_from(rows).unwrap_or(u32::MAX);
        scan
    }

    /// Sets the query that is made of the head. Returns false if there is nothing to read.
    fn select_records(&mut self, select: &RecordSelector, head: StoredHead) -> bool {
        let query = select(&head).filter(|query| query.from <= query.to.min(MAX_KEY));
        self.head = Some(head);
        let Some(query) = query else { return false };
        self.scan = Self::scan(&self.keys, query, self.scan.uses_newest_api);
        self.query = query;
        true
    }
}

impl Script for RangeReadScript {
    fn stores(&self) -> Vec<&'static str> {
        let table = self.query.table.as_str();
        match (&self.select, self.query.from) {
            (Some(_), _) => vec![HEADS, Table::Log.as_str(), Table::Runs.as_str()],
            (None, 0) => vec![table],
            (None, _) => vec![HEADS, table],
        }
    }

    fn restart(&mut self) {
        let (keys, api) = (self.keys.clone(), self.scan.uses_newest_api);
        let fresh = match self.select.take() {
            Some(select) => Self::after_head(keys, select, api),
            None => Self::new(keys, self.query, api),
        };
        *self = fresh;
    }

    fn step(&mut self, transaction: &IdbTransaction, answers: &[JsValue]) -> Result<ScriptStep, IdbFailure> {
        match self.phase {
            // No segment begins before the first key.
            ReadPhase::Nothing if self.query.from == 0 && self.select.is_none() => self.rows(transaction),
            ReadPhase::Nothing => {
                self.phase = ReadPhase::Head;
                Ok(ScriptStep::Request(vec![request_head(transaction, &self.keys)?]))
            }
            ReadPhase::Head => {
                let mut head = HeadRow::default();
                let exists = answers.first().is_some_and(|row| head.read(row));
                self.widest = head.widest;
                self.after_head_row(transaction, head, exists)
            }
            ReadPhase::Headless => {
                let is_damaged = answers.iter().any(|key| !key.is_undefined());
                self.head = is_damaged.then(|| HeadRow::default().head());
                Ok(ScriptStep::Done(0))
            }
            ReadPhase::SegmentKeys => {
                self.take_segment_keys(answers.first());
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
                    let Some((key, last)) = rows::record_keys(&key) else { continue };
                    if self.take(rows::read(self.query.table, key, last, &value)) {
                        return Ok(ScriptStep::Done(0));
                    }
                }
                if !self.scan.ended() {
                    self.adapt_page_size(before);
                    return self.rows(transaction);
                }
                let may_reach = self.widest > 0 && self.query.from > 0;
                if may_reach && self.query.reverse { self.segments(transaction) } else { Ok(ScriptStep::Done(0)) }
            }
        }
    }
}

impl RangeReadScript {
    fn after_head_row(
        &mut self,
        transaction: &IdbTransaction,
        head: HeadRow,
        exists: bool,
    ) -> Result<ScriptStep, IdbFailure> {
        if let Some(select) = self.select.take() {
            let is_live = exists && !head.deleted;
            let has_records = is_live && self.select_records(&select, head.head());
            self.select = Some(select);
            if !exists {
                self.phase = ReadPhase::Headless;
                return request_records(transaction, &self.keys);
            }
            if !has_records {
                return Ok(ScriptStep::Done(0));
            }
        }
        let may_reach = self.widest > 0 && self.query.from > 0;
        if may_reach && !self.query.reverse { self.segments(transaction) } else { self.rows(transaction) }
    }

    /// Takes the keys of the segments that reach into the range.
    fn take_segment_keys(&mut self, answer: Option<&JsValue>) {
        self.reaching_segments.clear();
        let keys = answer.map(Array::from).unwrap_or_default();
        for at in 0..keys.length() {
            if let Some((key, Some(last))) = rows::record_keys(&keys.get(at))
                && last >= self.query.from
            {
                self.reaching_segments.push((key, last));
            }
        }
        if self.query.reverse {
            self.reaching_segments.reverse();
        }
    }

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
        let is_tail = self.query.reverse && self.query.limit_bytes < PAGE_BYTES;
        let most = if is_tail { OLDER_PAGE_ROWS } else { 512 };
        self.scan.count = u32::try_from(wanted.div_ceil(each)).unwrap_or(u32::MAX).clamp(1, most);
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
