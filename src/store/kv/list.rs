//! Pages over all sessions, in the order in which the service lists their keys.

use super::driver::{KvDriver, KvEntry};
use super::key::{HEAD_PREFIX, session_of_key};
use super::load::{LoadedSession, MOST_AT_ONCE, get_records, load_by_key, load_session, open_head};
use crate::error::{Error, Result};
use crate::store::{AuditQuery, MAX_KEY, PAGE, Page, Record, SessionRow, StoredHead, Table};

/// The fewest heads that an audit query reads at once.
const MIN_HEADS_AT_ONCE: usize = 8;

/// Where a walk over all sessions stands. A page of a service may change between two reads, so the session itself is
/// part of it.
#[derive(Clone, Default)]
pub(super) struct SessionCursor {
    /// The service's cursor of the page of keys that has the session.
    page: Option<String>,
    /// The key of the last session that is done; empty before the first.
    after: String,
}

impl SessionCursor {
    fn encode(&self) -> String {
        format!("{}:{}", self.after, self.page.as_deref().unwrap_or_default())
    }

    /// Reads the cursor of a page of sessions.
    ///
    /// # Errors
    /// `invalid_input`.
    pub(super) fn decode(cursor: Option<&str>) -> Result<Self> {
        let Some(cursor) = cursor else { return Ok(Self::default()) };
        let (after, page) = cursor.split_once(':').ok_or_else(wrong_cursor)?;
        Ok(Self { page: Some(page.to_owned()).filter(|page| !page.is_empty()), after: after.to_owned() })
    }
}

/// Reads the cursor of a page of audit rows: the key of the row that goes on, and where the session before its own is.
///
/// # Errors
/// `invalid_input`.
pub(super) fn decode_audit_cursor(query: &AuditQuery) -> Result<(u64, SessionCursor)> {
    let Some(cursor) = query.cursor.as_deref() else { return Ok((0, SessionCursor::default())) };
    let (key, at) = cursor.split_once(':').ok_or_else(wrong_cursor)?;
    Ok((key.parse().map_err(|_| wrong_cursor())?, SessionCursor::decode(Some(at))?))
}

fn wrong_cursor() -> Error {
    Error::invalid("this is no cursor that a page of this store gave; begin again without one")
}

/// Goes over all sessions, tombstones included.
pub(super) struct SessionWalk<'d> {
    driver: &'d dyn KvDriver,
    at: SessionCursor,
    /// The cursor of the next page of keys; none after the last one.
    next: Option<Option<String>>,
    /// Read and not returned yet, the next one last.
    waiting: Vec<LoadedSession>,
    limit: usize,
    /// False if the keys are enough, where they have the sessions' ids.
    reads_heads: bool,
}

impl<'d> SessionWalk<'d> {
    pub(super) fn new(driver: &'d dyn KvDriver, at: SessionCursor, limit: usize) -> Self {
        let next = Some(at.page.clone());
        Self { driver, at, next, waiting: Vec::new(), limit: limit.clamp(1, MOST_AT_ONCE), reads_heads: true }
    }

    /// Goes over the ids of all sessions. Only a head whose key is a hash is read.
    pub(super) fn of_ids(driver: &'d dyn KvDriver, at: SessionCursor, limit: usize) -> Self {
        Self { reads_heads: false, ..Self::new(driver, at, limit) }
    }

    /// Where the walk stands.
    pub(super) fn position(&self) -> SessionCursor {
        self.at.clone()
    }

    /// The position before the session that was returned last, where `before` is the one before it was read: the first
    /// session of a page of keys has nothing before it in that page.
    pub(super) fn position_before(&self, before: SessionCursor) -> SessionCursor {
        let after = if self.at.page == before.page { before.after } else { String::new() };
        SessionCursor { page: self.at.page.clone(), after }
    }

    /// Returns the next session; none after the last one.
    ///
    /// # Errors
    /// `invalid_input` if the session of the cursor is not there, and the driver's own.
    pub(super) async fn next(&mut self) -> Result<Option<LoadedSession>> {
        while self.waiting.is_empty() {
            let Some(page) = self.next.take() else { return Ok(None) };
            self.read_page(page).await?;
        }
        let session = self.waiting.pop();
        if let Some(session) = &session {
            self.at.after.clone_from(&session.key);
        }
        Ok(session)
    }

    async fn read_page(&mut self, cursor: Option<String>) -> Result<()> {
        let page = self.driver.list(HEAD_PREFIX, cursor.as_deref(), self.limit).await?;
        self.next = page.cursor.map(Some);
        let mut keys: Vec<&str> = page.keys.iter().filter_map(|key| key.strip_prefix(HEAD_PREFIX)).collect();
        if self.at.page == cursor && !self.at.after.is_empty() {
            // The page in which the walk stopped. If keys were added, the session may have moved to the next one.
            match keys.iter().position(|key| *key == self.at.after) {
                Some(at) => drop(keys.drain(..=at)),
                None => {
                    self.at.page = self.next.clone().flatten();
                    return if self.next.is_some() { Ok(()) } else { Err(wrong_cursor()) };
                }
            }
        }
        self.at.page = cursor;
        for keys in keys.chunks(MOST_AT_ONCE) {
            let needs_head = |key: &&&str| self.reads_heads || session_of_key(key).is_none();
            let heads: Vec<_> = keys.iter().filter(needs_head).map(|key| format!("{HEAD_PREFIX}{key}")).collect();
            let values = if heads.is_empty() { Vec::new() } else { self.driver.get_many(heads).await? };
            let mut values = values.into_iter();
            for key in keys {
                let id = session_of_key(key).unwrap_or_default();
                if !needs_head(&key) {
                    self.waiting.push(LoadedSession::of_id((*key).to_owned(), &id));
                    continue;
                }
                let Some(value) = values.next().flatten() else { continue };
                let entry = KvEntry { value, version: None };
                let session = match open_head(self.driver, key, &id, entry).await? {
                    Some(session) => session,
                    None => load_by_key(self.driver, (*key).to_owned(), &id).await?,
                };
                // Nobody knows the id of a damaged session whose key is a hash.
                if !session.head.id.is_empty() {
                    self.waiting.push(session);
                }
            }
        }
        self.waiting.reverse();
        Ok(())
    }
}

/// A page of sessions that is being filled.
pub(super) struct SessionPage {
    pub(super) limit: usize,
    items: Vec<SessionRow>,
    last: Option<String>,
    is_full: bool,
}

impl SessionPage {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit: if limit == 0 { PAGE } else { limit }, items: Vec::new(), last: None, is_full: false }
    }

    /// Adds the session that the walk returned last. Returns false if it has no place any more.
    pub(super) fn add(&mut self, row: SessionRow, walk: &SessionWalk<'_>) -> bool {
        self.is_full = self.items.len() >= self.limit;
        if !self.is_full {
            self.items.push(row);
            self.last = Some(walk.at.encode());
        }
        !self.is_full
    }

    pub(super) fn end(self) -> Page<SessionRow> {
        Page { items: self.items, cursor: self.last.filter(|_| self.is_full) }
    }
}

/// Returns a page of sessions.
pub(super) async fn list_sessions(
    driver: &dyn KvDriver,
    cursor: Option<&str>,
    limit: usize,
    channel: Option<&str>,
) -> Result<Page<SessionRow>> {
    let mut page = SessionPage::new(limit);
    let mut walk = SessionWalk::new(driver, SessionCursor::decode(cursor)?, page.limit);
    while let Some(session) = walk.next().await? {
        let is_wanted = channel.is_none_or(|channel| session.head.channel.as_deref() == Some(channel));
        if !session.head.is_live || !is_wanted {
            continue;
        }
        let head = StoredHead { revision: session.head.revision, value: session.value };
        if !page.add(SessionRow { id: session.head.id, head }, &walk) {
            break;
        }
    }
    Ok(page.end())
}

/// Returns a page of audit rows. Reads the rows of the query's session, or of all sessions up to the end of the page: a
/// key-value service has no index of them.
pub(super) async fn list_invocations(driver: &dyn KvDriver, query: &AuditQuery) -> Result<Page<(String, Record)>> {
    let (mut from, at) = decode_audit_cursor(query)?;
    let mut page = AuditPage::new(query);
    if let Some(id) = &query.session {
        let session = load_session(driver, id).await?;
        let rest = page.add_session(driver, &session, from).await?;
        return Ok(page.end(rest, &at));
    }
    // A head is read for each session, so no more are read at once than rows are wanted.
    let mut walk = SessionWalk::new(driver, at, page.limit.max(MIN_HEADS_AT_ONCE));
    loop {
        let before = walk.position();
        let Some(session) = walk.next().await? else { return Ok(page.end(None, &before)) };
        let before = walk.position_before(before);
        let rest = page.add_session(driver, &session, from).await?;
        if rest.is_some() {
            return Ok(page.end(rest, &before));
        }
        from = 0;
    }
}

/// A page of audit rows that is being filled.
pub(super) struct AuditPage<'q> {
    query: &'q AuditQuery,
    pub(super) limit: usize,
    items: Vec<(String, Record)>,
}

impl<'q> AuditPage<'q> {
    pub(super) fn new(query: &'q AuditQuery) -> Self {
        Self { query, limit: if query.limit == 0 { PAGE } else { query.limit }, items: Vec::new() }
    }

    /// Adds a row if the query selects it. Returns its key if it has no place any more.
    pub(super) fn add(&mut self, session: &str, row: Record) -> Option<u64> {
        if !row.index.as_ref().is_some_and(|index| self.query.matches(session, index)) {
            return None;
        }
        if self.items.len() >= self.limit {
            return Some(row.key);
        }
        self.items.push((session.to_owned(), row));
        None
    }

    /// Adds the rows of a session from a key on. Returns the key of the first row that has no place any more.
    async fn add_session(&mut self, driver: &dyn KvDriver, session: &LoadedSession, from: u64) -> Result<Option<u64>> {
        if !session.head.is_live {
            return Ok(None);
        }
        let keys = session.head.directory(Table::ToolInvocations).overlapping(from, MAX_KEY).map(|run| run.first);
        let keys: Vec<_> = keys.filter(|key| *key >= from).collect();
        for keys in keys.chunks(self.limit.clamp(8, MOST_AT_ONCE)) {
            // A row that was removed in between is not found; one that was replaced is the newer one.
            for row in get_records(driver, session, Table::ToolInvocations, keys).await?.found {
                if let rest @ Some(_) = self.add(&session.head.id, row) {
                    return Ok(rest);
                }
            }
        }
        Ok(None)
    }

    /// Ends the page. `rest` is the key of the row that goes on, `before` the position before its session.
    pub(super) fn end(self, rest: Option<u64>, before: &SessionCursor) -> Page<(String, Record)> {
        Page { items: self.items, cursor: rest.map(|key| format!("{key}:{}", before.encode())) }
    }
}
