//! Pages over all sessions, in the order in which the service lists their keys.

use super::driver::KvDriver;
use super::key::{HEAD_PREFIX, session_key, session_of_key};
use super::load::{LoadedSession, MOST_AT_ONCE, get_records, load_by_key, load_session, open_head};
use crate::error::{Error, Result};
use crate::store::{AuditQuery, MAX_KEY, PAGE, Page, Record, SessionRow, StoredHead, Table};

/// Where a walk over all sessions stands. A page of a service may change between two reads, so the session itself is part of it.
struct SessionCursor {
    /// The service's cursor of the page of keys that has the session.
    page: Option<String>,
    /// The key of the last session that is done; empty before the first.
    after: String,
}

impl SessionCursor {
    fn encode(&self) -> String {
        format!("{}:{}", self.after, self.page.as_deref().unwrap_or_default())
    }

    fn decode(cursor: &str) -> Result<Self> {
        let (after, page) = cursor.split_once(':').ok_or_else(wrong_cursor)?;
        Ok(Self { page: Some(page.to_owned()).filter(|page| !page.is_empty()), after: after.to_owned() })
    }
}

fn wrong_cursor() -> Error {
    Error::invalid("this is no cursor that a page of this store gave; begin again without one")
}

/// Goes over all sessions, tombstones included.
struct SessionWalk<'d> {
    driver: &'d dyn KvDriver,
    at: SessionCursor,
    /// The cursor of the next page of keys; none after the last one.
    next: Option<Option<String>>,
    /// Read and not returned yet, the next one last.
    waiting: Vec<LoadedSession>,
    limit: usize,
}

impl<'d> SessionWalk<'d> {
    fn new(driver: &'d dyn KvDriver, at: SessionCursor, limit: usize) -> Self {
        let next = Some(at.page.clone());
        Self { driver, at, next, waiting: Vec::new(), limit: limit.clamp(1, MOST_AT_ONCE) }
    }

    /// Returns the next session; none after the last one.
    async fn next(&mut self) -> Result<Option<LoadedSession>> {
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
            let heads = keys.iter().map(|key| format!("{HEAD_PREFIX}{key}")).collect();
            for (key, entry) in keys.iter().zip(self.driver.get(heads).await?) {
                let Some(entry) = entry else { continue };
                let id = session_of_key(key).unwrap_or_default();
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

fn page_size(limit: usize) -> usize {
    if limit == 0 { PAGE } else { limit }
}

/// Returns a page of sessions.
pub(super) async fn list_sessions(
    driver: &dyn KvDriver,
    cursor: Option<&str>,
    limit: usize,
    channel: Option<&str>,
) -> Result<Page<SessionRow>> {
    let at = cursor.map_or(Ok(SessionCursor { page: None, after: String::new() }), SessionCursor::decode)?;
    let limit = page_size(limit);
    let mut walk = SessionWalk::new(driver, at, limit);
    let mut page = Page { items: Vec::new(), cursor: None };
    let mut last = None;
    while let Some(session) = walk.next().await? {
        let is_wanted = channel.is_none_or(|channel| session.head.channel.as_deref() == Some(channel));
        if !session.head.is_live || !is_wanted {
            continue;
        }
        if page.items.len() == limit {
            page.cursor = last;
            break;
        }
        let head = StoredHead { revision: session.head.revision, value: session.value };
        page.items.push(SessionRow { id: session.head.id, head });
        last = Some(walk.at.encode());
    }
    Ok(page)
}

/// Returns a page of audit rows. Reads the rows of the query's session, or of all sessions up to the end of the page: a key-value
/// service has no index of them.
pub(super) async fn list_invocations(driver: &dyn KvDriver, query: &AuditQuery) -> Result<Page<(String, Record)>> {
    let (mut from, at) = match query.cursor.as_deref() {
        None => (0, SessionCursor { page: None, after: String::new() }),
        Some(cursor) => {
            let (key, at) = cursor.split_once(':').ok_or_else(wrong_cursor)?;
            (key.parse().map_err(|_| wrong_cursor())?, SessionCursor::decode(at)?)
        }
    };
    let mut page = AuditPage { query, limit: page_size(query.limit), items: Vec::new() };
    if let Some(id) = &query.session {
        let session = load_session(driver, id).await?;
        let rest = page.add_session(driver, &session, from).await?;
        let place = SessionCursor { page: None, after: session_key(id) };
        return Ok(page.end(rest, &place));
    }
    let mut walk = SessionWalk::new(driver, at, MOST_AT_ONCE);
    // The cursor names the session before the one that goes on.
    loop {
        let before = SessionCursor { page: walk.at.page.clone(), after: walk.at.after.clone() };
        let Some(session) = walk.next().await? else { return Ok(page.end(None, &before)) };
        // The page of keys may have changed.
        let before = if walk.at.page == before.page {
            before
        } else {
            SessionCursor { page: walk.at.page.clone(), after: String::new() }
        };
        let rest = page.add_session(driver, &session, from).await?;
        if rest.is_some() {
            return Ok(page.end(rest, &before));
        }
        from = 0;
    }
}

/// A page of audit rows that is being filled.
struct AuditPage<'q> {
    query: &'q AuditQuery,
    limit: usize,
    items: Vec<(String, Record)>,
}

impl AuditPage<'_> {
    /// Adds the rows of a session from a key on. Returns the key of the first row that has no place any more.
    async fn add_session(&mut self, driver: &dyn KvDriver, session: &LoadedSession, from: u64) -> Result<Option<u64>> {
        if !session.head.is_live {
            return Ok(None);
        }
        let keys = session.head.directory(Table::ToolInvocations).overlapping(from, MAX_KEY).map(|run| run.first);
        let keys: Vec<_> = keys.filter(|key| *key >= from).collect();
        for keys in keys.chunks(self.limit.clamp(8, MOST_AT_ONCE)) {
            // A row that was removed in between is not found; one that was replaced is the newer one.
            for record in get_records(driver, session, Table::ToolInvocations, keys).await?.found {
                let id = &session.head.id;
                if !record.index.as_ref().is_some_and(|index| self.query.matches(id, index)) {
                    continue;
                }
                if self.items.len() == self.limit {
                    return Ok(Some(record.key));
                }
                self.items.push((id.clone(), record));
            }
        }
        Ok(None)
    }

    fn end(self, rest: Option<u64>, before: &SessionCursor) -> Page<(String, Record)> {
        Page { items: self.items, cursor: rest.map(|key| format!("{key}:{}", before.encode())) }
    }
}
