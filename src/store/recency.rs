//! The list of sessions by recency: the one whose history changed last first.
//!
//! A page is a position in the order, never a number of sessions to skip: what is listed once is not pushed onto the
//! next page by a session that moves to the front.

use super::record::{RecordKind, open_record};
use super::{Batch, ListedBy, LogStore, MAX_KEY, PAGE, Page, RecencyQuery, SessionRow};
use crate::clock::Ms;
use crate::error::{Error, Result};
use crate::session_head::SessionHead;
use bytes::Bytes;
use std::cmp::Reverse;

/// Number of sessions that are read at once from a store without an index of times.
const SCANNED_SESSIONS: usize = 200;

impl RecencyQuery {
    /// Returns the most sessions in a page.
    #[must_use]
    pub fn page_size(&self) -> usize {
        if self.limit == 0 { PAGE } else { self.limit }
    }

    /// Returns the position after which the page begins.
    ///
    /// # Errors
    /// `invalid_input` for a cursor that no page gave.
    pub fn after(&self) -> Result<Option<SessionPosition>> {
        self.cursor.as_deref().map(SessionPosition::from_cursor).transpose()
    }

    /// Returns true if sessions can be listed of which nothing is known but the id: the time of the last change of one
    /// whose head is lost is 0, and it is not archived.
    #[must_use]
    pub fn lists_unknown(&self) -> bool {
        self.channel.is_none() && self.archived != Some(true)
    }
}

impl ListedBy {
    /// Returns what a head says.
    #[must_use]
    pub fn of(head: &SessionHead) -> Self {
        Self { updated_at: head.updated_at.min(MAX_KEY), is_archived: head.is_archived }
    }

    /// Returns what an encoded head says. One that is damaged or encrypted counts as the oldest.
    #[must_use]
    pub fn of_encoded(head: &Bytes) -> Self {
        open_record::<SessionHead>(RecordKind::Head, head).map_or_else(|_| Self::default(), |head| Self::of(&head))
    }
}

impl Batch {
    /// Sets what the session is listed by, from its new head.
    pub fn describe(&mut self, head: &SessionHead) {
        self.channel.clone_from(&head.channel);
        self.listed_by = ListedBy::of(head);
    }
}

/// The place of a session in the list by recency. The order is descending in time, then ascending in the id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionPosition {
    /// When the history changed last.
    pub updated_at: Reverse<Ms>,
    /// The session's id.
    pub id: String,
}

impl SessionPosition {
    /// Makes a position.
    #[must_use]
    pub fn new(updated_at: Ms, id: &str) -> Self {
        Self { updated_at: Reverse(updated_at), id: id.to_owned() }
    }

    /// Encodes the position as a cursor.
    #[must_use]
    pub fn cursor(&self) -> String {
        format!("{}:{}", self.updated_at.0, self.id)
    }

    pub(super) fn from_cursor(cursor: &str) -> Result<Self> {
        let parts = cursor.split_once(':').and_then(|(at, id)| Some(Self::new(at.parse().ok()?, id)));
        let parts = parts.filter(|position| position.updated_at.0 <= MAX_KEY);
        parts.ok_or_else(|| Error::invalid("this is no cursor that a page of sessions gave; begin again without one"))
    }
}

/// Selects a page among the sessions that it gets in any order. Keeps no more than two pages of them.
pub struct RecentSessions {
    limit: usize,
    after: Option<SessionPosition>,
    rows: Vec<(SessionPosition, SessionRow)>,
}

impl RecentSessions {
    /// Begins a page of the query.
    ///
    /// # Errors
    /// `invalid_input` for a cursor that no page gave.
    pub fn new(query: &RecencyQuery) -> Result<Self> {
        Ok(Self { limit: query.page_size(), after: query.after()?, rows: Vec::new() })
    }

    /// Adds a session that the query selects.
    pub fn add(&mut self, updated_at: Ms, row: SessionRow) {
        let position = SessionPosition::new(updated_at, &row.id);
        if self.after.as_ref().is_some_and(|after| position <= *after) {
            return;
        }
        self.rows.push((position, row));
        if self.rows.len() > self.limit.saturating_mul(2) {
            self.shorten();
        }
    }

    /// Drops what is not on the page, except for one session, which shows that there is another page.
    fn shorten(&mut self) {
        self.rows.sort_by(|(one, _), (other, _)| one.cmp(other));
        self.rows.truncate(self.limit.saturating_add(1));
    }

    /// Returns the page.
    #[must_use]
    pub fn page(mut self) -> Page<SessionRow> {
        self.shorten();
        let is_last = self.rows.len() <= self.limit;
        self.rows.truncate(self.limit);
        let cursor = self.rows.last().filter(|_| !is_last).map(|(position, _)| position.cursor());
        Page { items: self.rows.into_iter().map(|(_, row)| row).collect(), cursor }
    }
}

/// Returns a page of sessions by recency. A store without an index of times is read whole for each page.
///
/// # Errors
/// `invalid_input` for a cursor that no page gave; the store's own.
pub async fn recent_sessions(store: &dyn LogStore, query: &RecencyQuery) -> Result<Page<SessionRow>> {
    if let Some(page) = store.recent_sessions(query) {
        return page.await;
    }
    let mut recent = RecentSessions::new(query)?;
    let mut cursor = None;
    loop {
        let page = store.sessions(cursor.as_deref(), SCANNED_SESSIONS, query.channel.as_deref()).await?;
        for row in page.items {
            let listed = ListedBy::of_encoded(&row.head.value);
            if query.archived.is_none_or(|archived| archived == listed.is_archived) {
                recent.add(listed.updated_at, row);
            }
        }
        cursor = page.cursor;
        if cursor.is_none() {
            return Ok(recent.page());
        }
    }
}
