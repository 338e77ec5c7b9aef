//! The transactions that list: a page of what a scan finds.
//!
//! Sessions whose head is gone are found by their records: between two heads there should be none.

use super::failure::IdbFailure;
use super::rows::{self, HEADS, HeadRow, RangeEnd, SessionKeys, table_name};
use super::scan::Scan;
use super::transaction::{Script, ScriptStep};
use crate::error::Error;
use crate::sorted::in_order;
use crate::store::{AuditQuery, PAGE, Page, Record, SessionRow, StoredHead, Table, audit_cursor, open_audit_cursor};
use bytes::Bytes;
use wasm_bindgen::JsValue;
use web_sys::IdbTransaction;

/// The rows that a query lists.
enum Listing {
    /// Sessions of this channel, or of any.
    Sessions(Option<String>),
    /// Rows of the audit table.
    Audit(AuditQuery),
}

/// A range of records in which no head's session lies.
struct HeadlessRange {
    table: Table,
    lower: RangeEnd,
    upper: RangeEnd,
    /// How many sessions were found in it; more than a page holds are not looked for.
    found: usize,
}

pub(super) struct PageQuery {
    listing: Listing,
    /// The keys of all heads that were read, in order.
    heads: Vec<JsValue>,
    /// What is looked through for sessions without a head, once the heads are read.
    gaps: Vec<HeadlessRange>,
    limit: usize,
    /// Where it begins, for a new connection.
    start: Scan,
    scan: Scan,
    sessions: Vec<SessionRow>,
    rows: Vec<(String, Record)>,
}

impl PageQuery {
    /// Sessions behind the cursor.
    pub(super) fn sessions(cursor: Option<&str>, limit: usize, channel: Option<&str>, newest: bool) -> Self {
        let lower = cursor.map_or_else(RangeEnd::first, |cursor| RangeEnd::beyond(JsValue::from_str(cursor)));
        let scan = Scan::new(HEADS, lower, RangeEnd::last(), newest);
        Self::new(Listing::Sessions(channel.map(str::to_owned)), limit, scan)
    }

    /// Rows of the audit table.
    ///
    /// # Errors
    /// `invalid_input` for a cursor that no page gave.
    pub(super) fn audit(query: &AuditQuery, newest: bool) -> Result<Self, Error> {
        let (mut lower, mut upper) = (RangeEnd::first(), RangeEnd::last());
        if let Some(session) = &query.session {
            let keys = SessionKeys::of(session);
            (lower, upper) = (RangeEnd::at(keys.start()), RangeEnd::at(keys.end()));
        }
        if let Some(cursor) = &query.cursor {
            let (session, key) = open_audit_cursor(cursor)?;
            lower = RangeEnd::beyond(SessionKeys::of(session).past(key));
            // A cursor from another session's rows may lie behind this session's, where no range may end.
            if query.session.as_deref() != Some(session) {
                upper = RangeEnd::last();
            }
        }
        let scan = Scan::new(table_name(Table::ToolInvocations), lower, upper, newest);
        Ok(Self::new(Listing::Audit(query.clone()), query.limit, scan))
    }

    fn new(listing: Listing, limit: usize, mut scan: Scan) -> Self {
        let limit = if limit == 0 { PAGE } else { limit };
        // One more than the page shows whether there is a next.
        scan.count = u32::try_from(limit.saturating_add(1)).unwrap_or(u32::MAX).clamp(32, 256);
        let (heads, gaps, sessions, rows) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { listing, heads, gaps, limit, start: scan.clone(), scan, sessions, rows }
    }

    /// Takes a row if it is wanted.
    fn take(&mut self, key: &JsValue, value: &JsValue) -> Result<(), IdbFailure> {
        match &self.listing {
            Listing::Sessions(channel) => {
                let Some(id) = key.as_string() else { return Ok(()) };
                let mut row = HeadRow::default();
                let is_there = row.read(value) && !row.deleted;
                if channel.is_none() {
                    self.heads.push(key.clone());
                }
                if is_there && (channel.is_none() || row.channel == *channel) {
                    self.sessions.push(SessionRow { id, head: row.head() });
                }
            }
            Listing::Audit(query) => {
                let (Some((session, key, last)), Some(index)) = (rows::place(key), rows::index_of(value)) else {
                    return Ok(());
                };
                if query.matches(&session, &index) {
                    self.rows.push((session, rows::read(Table::ToolInvocations, key, last, value)));
                }
            }
        }
        Ok(())
    }
}

/// A session's records, as the ends of ranges before and after them.
fn around(head: &JsValue) -> (RangeEnd, RangeEnd) {
    let keys = SessionKeys::of(&head.as_string().unwrap_or_default());
    (RangeEnd::beyond(keys.start()), RangeEnd::beyond(keys.end()))
}

impl PageQuery {
    /// The ranges between the heads that were read.
    fn between_heads(&self) -> Vec<HeadlessRange> {
        let mut gaps = Vec::new();
        for table in [Table::Log, Table::Runs] {
            let mut lower = match self.start.lower.key.as_string() {
                Some(cursor) => around(&cursor.into()).1,
                None => RangeEnd::at(js_sys::Array::new().into()),
            };
            for head in &self.heads {
                let (upper, next) = around(head);
                gaps.push(HeadlessRange { table, lower, upper, found: 0 });
                lower = next;
            }
            if self.scan.ended() {
                gaps.push(HeadlessRange { table, lower, upper: RangeEnd::last(), found: 0 });
            }
        }
        gaps
    }

    fn ask_gaps(&mut self, transaction: &IdbTransaction) -> Result<ScriptStep, IdbFailure> {
        if self.gaps.is_empty() {
            return Ok(ScriptStep::Done(0));
        }
        let ranges = self.gaps.iter().map(|gap| (gap.table, rows::range(&gap.lower, &gap.upper))).collect();
        rows::ask_any(transaction, ranges)
    }

    /// Takes the sessions whose first records these are; behind them there may be more.
    fn take_lost(&mut self, first: &[JsValue]) {
        let gaps = std::mem::take(&mut self.gaps);
        for (gap, key) in gaps.into_iter().zip(first) {
            let Some((id, ..)) = rows::place(key) else { continue };
            let lower = around(&JsValue::from_str(&id)).1;
            if !self.sessions.iter().any(|row| row.id == id) {
                self.sessions.push(SessionRow { id, head: StoredHead { revision: 0, value: Bytes::new() } });
            }
            if gap.found < self.limit {
                self.gaps.push(HeadlessRange { lower, found: gap.found + 1, ..gap });
            }
        }
    }

    /// In the order of their keys, which is that of UTF-16.
    fn order(&mut self) {
        let sessions = std::mem::take(&mut self.sessions);
        self.sessions = in_order(sessions, &|a, b| a.id.encode_utf16().cmp(b.id.encode_utf16()));
    }

    /// The sessions that were found.
    pub(super) fn page_of_sessions(&mut self) -> Page<SessionRow> {
        page(&mut self.sessions, self.limit, |row| row.id.clone())
    }

    /// The rows that were found.
    pub(super) fn page_of_rows(&mut self) -> Page<(String, Record)> {
        page(&mut self.rows, self.limit, |(session, record)| audit_cursor(session, record.key))
    }
}

impl Script for PageQuery {
    fn stores(&self) -> Vec<&'static str> {
        match self.listing {
            Listing::Sessions(None) => vec![HEADS, table_name(Table::Log), table_name(Table::Runs)],
            Listing::Sessions(Some(_)) => vec![HEADS],
            Listing::Audit(_) => vec![table_name(Table::ToolInvocations)],
        }
    }

    fn restart(&mut self) {
        self.scan = self.start.clone();
        self.heads.clear();
        self.gaps.clear();
        self.sessions.clear();
        self.rows.clear();
    }

    fn step(&mut self, transaction: &IdbTransaction, answers: &[JsValue]) -> Result<ScriptStep, IdbFailure> {
        if !self.gaps.is_empty() {
            self.take_lost(answers);
            self.order();
            return self.ask_gaps(transaction);
        }
        if !answers.is_empty() {
            for (key, value) in self.scan.rows(answers)? {
                self.take(&key, &value)?;
            }
            if self.sessions.len() + self.rows.len() > self.limit || self.scan.ended() {
                if matches!(self.listing, Listing::Sessions(None)) {
                    self.gaps = self.between_heads();
                }
                return self.ask_gaps(transaction);
            }
        }
        self.scan.ask(transaction)
    }
}

/// A page of what was found, with the place to go on from if there is more.
fn page<T>(items: &mut Vec<T>, limit: usize, cursor: fn(&T) -> String) -> Page<T> {
    let more = items.len() > limit;
    items.truncate(limit);
    let cursor = items.last().filter(|_| more).map(cursor);
    Page { items: std::mem::take(items), cursor }
}
