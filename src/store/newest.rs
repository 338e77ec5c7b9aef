//! The newest rows of the audit table first, for stores that list them by session and key.

use super::{AuditQuery, PAGE, Page, Record};
use crate::clock::Ms;
use crate::error::{Error, Result};

/// Number of rows that are read at once.
pub(super) const SCANNED_ROWS: usize = 1000;

/// The place of an audit row in the order of [`newest_invocations`](super::LogStore::newest_invocations), which is
/// descending.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AuditPosition {
    pub(crate) at: Ms,
    pub(crate) session: String,
    pub(crate) key: u64,
}

impl AuditPosition {
    /// Returns the position of a row.
    pub(crate) fn of(session: &str, record: &Record) -> Self {
        let at = record.index.as_ref().map_or(0, |index| index.at);
        Self { at, session: session.to_owned(), key: record.key }
    }

    /// Encodes the position as a cursor.
    pub(crate) fn cursor(&self) -> String {
        format!("{}:{}:{}", self.at, self.key, self.session)
    }

    /// Decodes a [`cursor`](Self::cursor).
    ///
    /// # Errors
    /// `invalid_input` for a text that is no cursor.
    pub(crate) fn from_cursor(cursor: &str) -> Result<Self> {
        let parts = cursor.split_once(':').and_then(|(at, rest)| {
            let (key, session) = rest.split_once(':')?;
            Some(Self { at: at.parse().ok()?, session: session.to_owned(), key: key.parse().ok()? })
        });
        parts.ok_or_else(|| Error::invalid("this is no cursor that a page of tool invocations gave"))
    }
}

/// Selects the newest rows among those that it gets in any order. Keeps no more than two pages of them.
pub(crate) struct NewestRows {
    pub(super) limit: usize,
    /// The last row of the page before.
    pub(super) after: Option<AuditPosition>,
    rows: Vec<(AuditPosition, Record)>,
}

impl NewestRows {
    /// Begins a page of the query.
    ///
    /// # Errors
    /// `invalid_input` for a cursor that no page gave.
    pub(crate) fn new(query: &AuditQuery) -> Result<Self> {
        let after = query.cursor.as_deref().map(AuditPosition::from_cursor).transpose()?;
        Ok(Self { limit: if query.limit == 0 { PAGE } else { query.limit }, after, rows: Vec::new() })
    }

    /// Returns the query of the rows to choose from.
    pub(crate) fn scan(&self, query: &AuditQuery) -> AuditQuery {
        let latest = self.after.as_ref().map(|after| after.at);
        let until = [query.until, latest].into_iter().flatten().min();
        AuditQuery { cursor: None, limit: SCANNED_ROWS, until, ..query.clone() }
    }

    /// Returns true if a row comes after the page before.
    pub(crate) fn has_place(&self, session: &str, record: &Record) -> bool {
        self.after.as_ref().is_none_or(|after| AuditPosition::of(session, record) < *after)
    }

    pub(crate) fn add(&mut self, rows: Vec<(String, Record)>) {
        let placed = rows.into_iter().map(|(session, record)| (AuditPosition::of(&session, &record), record));
        let after = self.after.as_ref();
        self.rows.extend(placed.filter(|(position, _)| after.is_none_or(|after| position < after)));
        if self.rows.len() > self.limit.saturating_mul(2) {
            self.shorten();
        }
    }

    /// Drops what is not on the page, except for one row, which shows that there is another page.
    fn shorten(&mut self) {
        self.rows.sort_unstable_by(|(one, _), (other, _)| other.cmp(one));
        self.rows.truncate(self.limit.saturating_add(1));
    }

    pub(crate) fn page(mut self) -> Page<(String, Record)> {
        self.shorten();
        let is_last = self.rows.len() <= self.limit;
        self.rows.truncate(self.limit);
        let cursor = self.rows.last().filter(|_| !is_last).map(|(position, _)| position.cursor());
        Page { items: self.rows.into_iter().map(|(position, record)| (position.session, record)).collect(), cursor }
    }
}
