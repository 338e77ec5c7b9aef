//! Transactions that list sessions or audit rows, a page at a time.
//!
//! A session whose head is lost is found by its records: between the sessions of two heads there should be none.

use super::failure::IdbFailure;
use super::rows::{self, HEADS, HeadRow, RangeEnd, SessionKeys};
use super::scan::Scan;
use super::transaction::{Script, ScriptStep};
use crate::error::Error;
use crate::store::{AuditQuery, PAGE, Page, Record, SessionRow, StoredHead, Table, audit_cursor, open_audit_cursor};
use bytes::Bytes;
use wasm_bindgen::JsValue;
use web_sys::IdbTransaction;

/// The rows that a query lists.
enum Listing {
    /// Sessions of this channel, or of any.
    Sessions(Option<String>),
    /// Heads alone, of sessions of this channel or of any.
    Heads(Option<String>),
    /// Sessions that the index of heads lacks: their heads are lost, or are no rows of ours.
    Unlisted,
    /// Rows of the audit table.
    Audit(AuditQuery),
}

/// A range of records between the sessions of two heads.
struct HeadlessRange {
    table: Table,
    lower: RangeEnd,
    upper: RangeEnd,
    /// Number of sessions found in it, at most a page.
    found: usize,
}

pub(super) struct PageScript {
    listing: Listing,
    /// The keys of all heads that were read, in order.
    heads: Vec<JsValue>,
    /// Ranges to search for sessions without a head, after the heads are read.
    headless: Vec<HeadlessRange>,
    limit: usize,
    /// The scan at its beginning, for a new connection.
    start: Scan,
    scan: Scan,
    sessions: Vec<SessionRow>,
    rows: Vec<(String, Record)>,
}

impl PageScript {
    /// Lists sessions after the cursor.
    pub(super) fn sessions(cursor: Option<&str>, limit: usize, channel: Option<&str>, uses_newest_api: bool) -> Self {
        let lower = cursor.map_or_else(RangeEnd::first, |cursor| RangeEnd::beyond(JsValue::from_str(cursor)));
        let scan = Scan::new(HEADS, lower, RangeEnd::last(), uses_newest_api);
        Self::new(Listing::Sessions(channel.map(str::to_owned)), limit, scan)
    }

    /// Lists the sessions after the cursor that have a head.
    pub(super) fn heads(cursor: Option<&str>, limit: usize, channel: Option<&str>, uses_newest_api: bool) -> Self {
        let listing = Listing::Heads(channel.map(str::to_owned));
        Self { listing, ..Self::sessions(cursor, limit, None, uses_newest_api) }
    }

    /// Lists the sessions after the cursor that the index of heads lacks.
    pub(super) fn unlisted(cursor: Option<&str>, limit: usize, uses_newest_api: bool) -> Self {
        Self { listing: Listing::Unlisted, ..Self::sessions(cursor, limit, None, uses_newest_api) }
    }

    /// Lists rows of the audit table.
    ///
    /// # Errors
    /// `invalid_input` for a cursor that no page returned.
    pub(super) fn audit(query: &AuditQuery, uses_newest_api: bool) -> Result<Self, Error> {
        let (mut lower, mut upper) = (RangeEnd::first(), RangeEnd::last());
        if let Some(session) = &query.session {
            let keys = SessionKeys::of(session);
            (lower, upper) = (RangeEnd::at(keys.start()), RangeEnd::at(keys.end()));
        }
        if let Some(cursor) = &query.cursor {
            let (session, key) = open_audit_cursor(cursor)?;
            lower = RangeEnd::beyond(SessionKeys::of(session).past(key));
            // A cursor from another session's rows may be after the last row of this session, and a range must not end
            // before it begins.
            if query.session.as_deref() != Some(session) {
                upper = RangeEnd::last();
            }
        }
        let scan = Scan::new(Table::ToolInvocations.as_str(), lower, upper, uses_newest_api);
        Ok(Self::new(Listing::Audit(query.clone()), query.limit, scan))
    }

    fn new(listing: Listing, limit: usize, mut scan: Scan) -> Self {
        let limit = if limit == 0 { PAGE } else { limit };
        // One row more than the page tells whether there is a next page.
        scan.count = u32::try_from(limit.saturating_add(1)).unwrap_or(u32::MAX).clamp(32, 256);
        let (heads, headless, sessions, rows) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { listing, heads, headless, limit, start: scan.clone(), scan, sessions, rows }
    }

    /// Keeps a row if the query selects it.
    fn take(&mut self, key: &JsValue, value: &JsValue) -> Result<(), IdbFailure> {
        match &self.listing {
            Listing::Sessions(channel) | Listing::Heads(channel) => {
                let Some(id) = key.as_string() else { return Ok(()) };
                let mut row = HeadRow::default();
                let is_live = row.read_listed(value) && !row.deleted;
                if matches!(self.listing, Listing::Sessions(None)) {
                    self.heads.push(key.clone());
                }
                if is_live && (channel.is_none() || row.channel == *channel) {
                    self.sessions.push(SessionRow { id, head: row.head() });
                }
            }
            Listing::Unlisted => {
                let Some(id) = key.as_string() else { return Ok(()) };
                let mut row = HeadRow::default();
                let is_live = row.read(value) && !row.deleted;
                self.heads.push(key.clone());
                if is_live && HeadRow::recent_key_of(value).is_none() {
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

/// Returns the end of the range before a session's records and the beginning of the range after them.
fn bounds_around(head: &JsValue) -> (RangeEnd, RangeEnd) {
    let keys = SessionKeys::of(&head.as_string().unwrap_or_default());
    (RangeEnd::beyond(keys.start()), RangeEnd::beyond(keys.end()))
}

impl PageScript {
    /// Returns the ranges between the sessions of the heads that were read.
    fn ranges_between_heads(&self) -> Vec<HeadlessRange> {
        let mut ranges = Vec::new();
        for table in [Table::Log, Table::Runs] {
            let mut lower = match self.start.lower.key.as_string() {
                Some(cursor) => bounds_around(&cursor.into()).1,
                None => RangeEnd::at(js_sys::Array::new().into()),
            };
            for head in &self.heads {
                let (upper, next) = bounds_around(head);
                ranges.push(HeadlessRange { table, lower, upper, found: 0 });
                lower = next;
            }
            if self.scan.ended() {
                ranges.push(HeadlessRange { table, lower, upper: RangeEnd::last(), found: 0 });
            }
        }
        ranges
    }

    fn request_headless(&mut self, transaction: &IdbTransaction) -> Result<ScriptStep, IdbFailure> {
        if self.headless.is_empty() {
            return Ok(ScriptStep::Done(0));
        }
        let ranges = self.headless.iter().map(|range| (range.table, rows::range(&range.lower, &range.upper))).collect();
        rows::request_first_records(transaction, ranges)
    }

    /// Adds the sessions of these first records. There may be more sessions after each.
    fn add_sessions_without_head(&mut self, first: &[JsValue]) {
        let ranges = std::mem::take(&mut self.headless);
        for (range, key) in ranges.into_iter().zip(first) {
            let Some((id, ..)) = rows::place(key) else { continue };
            let lower = bounds_around(&JsValue::from_str(&id)).1;
            // In the order of UTF-16 code units, as IndexedDB has its keys.
            let place = self.sessions.binary_search_by(|row| row.id.encode_utf16().cmp(id.encode_utf16()));
            if let Err(at) = place {
                self.sessions.insert(at, SessionRow { id, head: StoredHead { revision: 0, value: Bytes::new() } });
            }
            if range.found < self.limit {
                self.headless.push(HeadlessRange { lower, found: range.found + 1, ..range });
            }
        }
    }

    /// Returns the page of sessions.
    pub(super) fn page_of_sessions(&mut self) -> Page<SessionRow> {
        page(&mut self.sessions, self.limit, |row| row.id.clone())
    }

    /// Returns the sessions of the page, and one more if there is another page.
    pub(super) fn take_sessions(&mut self) -> Vec<SessionRow> {
        self.sessions.truncate(self.limit.saturating_add(1));
        std::mem::take(&mut self.sessions)
    }

    /// Returns the page of audit rows.
    pub(super) fn page_of_rows(&mut self) -> Page<(String, Record)> {
        page(&mut self.rows, self.limit, |(session, record)| audit_cursor(session, record.key))
    }
}

impl Script for PageScript {
    fn stores(&self) -> Vec<&'static str> {
        match self.listing {
            Listing::Sessions(None) | Listing::Unlisted => vec![HEADS, Table::Log.as_str(), Table::Runs.as_str()],
            Listing::Sessions(Some(_)) | Listing::Heads(_) => vec![HEADS],
            Listing::Audit(_) => vec![Table::ToolInvocations.as_str()],
        }
    }

    fn restart(&mut self) {
        self.scan = self.start.clone();
        self.heads.clear();
        self.headless.clear();
        self.sessions.clear();
        self.rows.clear();
    }

    fn step(&mut self, transaction: &IdbTransaction, answers: &[JsValue]) -> Result<ScriptStep, IdbFailure> {
        if !self.headless.is_empty() {
            self.add_sessions_without_head(answers);
            return self.request_headless(transaction);
        }
        if !answers.is_empty() {
            for (key, value) in self.scan.rows(answers)? {
                self.take(&key, &value)?;
            }
            if self.sessions.len() + self.rows.len() > self.limit || self.scan.ended() {
                if matches!(self.listing, Listing::Sessions(None) | Listing::Unlisted) {
                    self.headless = self.ranges_between_heads();
                }
                return self.request_headless(transaction);
            }
        }
        self.scan.request(transaction)
    }
}

/// Makes a page, with the cursor of the next one if there are more items.
fn page<T>(items: &mut Vec<T>, limit: usize, cursor: fn(&T) -> String) -> Page<T> {
    let more = items.len() > limit;
    items.truncate(limit);
    let cursor = items.last().filter(|_| more).map(cursor);
    Page { items: std::mem::take(items), cursor }
}
