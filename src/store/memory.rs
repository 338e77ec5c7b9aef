//! The memory store: for tests, for servers that keep nothing, and as the model that other stores are compared with.

use super::newest::NewestRows;
use super::{
    Appended, AuditQuery, Batch, Capabilities, ChangedHead, HeadChanges, ListedBy, LogStore, MAX_RECORD_BYTES,
    Operations, PAGE, Page, Query, RecencyQuery, RecentSessions, Record, SessionRow, StoreFuture, StoredHead, Table,
    audit_cursor, open_audit_cursor,
};
use crate::clock::Ms;
use bytes::Bytes;
use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::rc::Rc;

/// A store in memory. A clone is another handle of the same data.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    sessions: Rc<RefCell<BTreeMap<String, Box<StoredSession>>>>,
    /// The audit rows of all sessions by time: time, session and key.
    rows: Rc<RefCell<BTreeSet<RowPlace>>>,
    /// Number of changes of heads so far.
    changes: Rc<Cell<u64>>,
}

/// Of an audit row: its time, its session and its key.
type RowPlace = (Ms, Rc<str>, u64);

/// A session, or its tombstone.
#[derive(Debug, Default)]
pub(super) struct StoredSession {
    revision: u64,
    /// None in a tombstone.
    head: Option<Bytes>,
    channel: Option<String>,
    listed_by: ListedBy,
    operations: Operations,
    records: BTreeMap<(Table, u64), Box<Record>>,
    /// The times and keys of the audit rows.
    row_times: BTreeSet<(Ms, u64)>,
    /// The largest distance between the first and last key of a segment so far. A segment that overlaps a range begins
    /// at most this far before it.
    widest: u64,
    /// The number of the last change of the head.
    change: u64,
}

impl StoredSession {
    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    pub(super) fn set_revision(&mut self, revision: u64) {
        self.revision = revision;
    }

    pub(super) fn channel(&self) -> Option<&str> {
        self.channel.as_deref()
    }

    pub(super) fn operations(&self) -> &Operations {
        &self.operations
    }

    /// Makes the session a tombstone, one revision on.
    pub(super) fn delete(&mut self) {
        let operations = std::mem::take(&mut self.operations);
        *self = Self { revision: self.revision.saturating_add(1), operations, change: self.change, ..Self::default() };
    }

    /// Returns the head. It has no bytes if it was lost and records are left.
    pub(super) fn head(&self) -> Option<StoredHead> {
        let lost = || (!self.records.is_empty()).then(Bytes::new);
        Some(StoredHead { revision: self.revision, value: self.head.clone().or_else(lost)? })
    }

    /// Returns true if a new record would overwrite another.
    pub(super) fn is_occupied(&self, batch: &Batch) -> bool {
        let taken = |record: &Record| {
            let place = (record.table, record.key);
            self.records.contains_key(&place) && !batch.remove.contains(&place)
        };
        batch.put.iter().any(taken)
    }

    /// Drops the value of a record, which somebody else can read again.
    pub(super) fn drop_value(&mut self, place: (Table, u64)) {
        if let Some(record) = self.records.get_mut(&place) {
            record.value = Bytes::new();
        }
    }

    /// The bytes of all values.
    #[cfg(any(test, feature = "conformance"))]
    pub(super) fn held_bytes(&self) -> usize {
        self.records.values().map(|record| record.value.len()).sum()
    }

    pub(super) fn write(&mut self, batch: Batch, operation: &str) -> Appended {
        for place in &batch.remove {
            self.remove(place);
        }
        for record in batch.put.into_iter().chain(batch.replace) {
            self.widest = self.widest.max(record.last_key.map_or(0, |last| last.saturating_sub(record.key)));
            let place = (record.table, record.key);
            self.remove(&place);
            self.row_times.extend(row_time(&record));
            self.records.insert(place, Box::new(record));
        }
        self.revision = self.revision.saturating_add(1).max(batch.at_least);
        self.head = Some(batch.head);
        self.channel = batch.channel;
        self.listed_by = batch.listed_by;
        self.operations.note(operation, self.revision);
        Appended::Revision(self.revision)
    }

    fn remove(&mut self, place: &(Table, u64)) {
        if let Some(time) = self.records.remove(place).and_then(|removed| row_time(&removed)) {
            self.row_times.remove(&time);
        }
    }

    /// Returns the rows of this session that may be on the page, the newest first.
    fn newest_rows(&self, id: &str, query: &AuditQuery, page: &NewestRows) -> Vec<(String, Record)> {
        let mut before = Bound::Included((query.until.unwrap_or(Ms::MAX), u64::MAX));
        if let Some(after) = page.after.as_ref().filter(|after| query.until.is_none_or(|until| after.at <= until)) {
            before = match id.cmp(after.session.as_str()) {
                Ordering::Less => Bound::Included((after.at, u64::MAX)),
                Ordering::Equal => Bound::Excluded((after.at, after.key)),
                Ordering::Greater => Bound::Excluded((after.at, 0)),
            };
        }
        let times = self.row_times.range((Bound::Unbounded, before)).rev();
        let recent = times.take_while(|(at, _)| query.since.is_none_or(|since| *at >= since));
        let rows = recent.filter_map(|(_, key)| self.records.get(&(Table::ToolInvocations, *key)));
        let selected = rows.filter(|row| row.index.as_ref().is_some_and(|index| query.matches(id, index)));
        selected.take(page.limit.saturating_add(1)).map(|row| (id.to_owned(), Record::clone(row))).collect()
    }

    pub(super) fn read(&self, query: Query) -> Vec<Record> {
        self.read_sized(query, &|record| record.value.len() as u64)
    }

    /// Reads a range of records, whose sizes are given: some of them have no value in memory.
    pub(super) fn read_sized(&self, query: Query, size: &dyn Fn(&Record) -> u64) -> Vec<Record> {
        if query.from > query.to {
            return Vec::new();
        }
        let first = (query.table, query.from.saturating_sub(self.widest));
        let mut reached = self.records.range(first..=(query.table, query.to));
        let mut bytes = 0_u64;
        let mut taken = Vec::new();
        while let Some((_, record)) = if query.reverse { reached.next_back() } else { reached.next() } {
            if record.last_key.unwrap_or(record.key) < query.from {
                continue;
            }
            bytes = bytes.saturating_add(size(record));
            taken.push(Record::clone(record));
            if bytes >= query.limit_bytes {
                break;
            }
        }
        taken
    }
}

/// The entry of an audit row in `row_times`.
fn row_time(record: &Record) -> Option<(Ms, u64)> {
    let index = record.index.as_ref().filter(|_| record.table == Table::ToolInvocations)?;
    Some((index.at, record.key))
}

impl MemoryStore {
    fn next_change(&self) -> u64 {
        self.changes.set(self.changes.get().saturating_add(1));
        self.changes.get()
    }

    /// Updates the times of all rows before a session gets the batch.
    fn index_rows(&self, session: &str, stored: &StoredSession, batch: &Batch) {
        let mut rows = self.rows.borrow_mut();
        let id: Rc<str> = session.into();
        let written = || batch.put.iter().chain(&batch.replace);
        let replaced = written().map(|record| (record.table, record.key)).chain(batch.remove.iter().copied());
        for (at, key) in replaced.filter_map(|place| row_time(stored.records.get(&place)?)) {
            rows.remove(&(at, id.clone(), key));
        }
        rows.extend(written().filter_map(row_time).map(|(at, key)| (at, id.clone(), key)));
    }

    /// Returns the rows of all sessions that may be on the page, the newest first.
    fn newest_rows(
        &self,
        sessions: &BTreeMap<String, Box<StoredSession>>,
        query: &AuditQuery,
        page: &NewestRows,
    ) -> Vec<(String, Record)> {
        let before = match &page.after {
            Some(after) => Bound::Excluded((after.at, after.session.as_str().into(), after.key)),
            None => Bound::Unbounded,
        };
        let rows = self.rows.borrow();
        let recent = rows.range((Bound::Unbounded, before)).rev();
        let selected = recent.take_while(|(at, ..)| query.since.is_none_or(|since| *at >= since));
        let selected = selected.filter_map(|(_, id, key)| {
            let record = sessions.get(&**id)?.records.get(&(Table::ToolInvocations, *key))?;
            let is_selected = record.index.as_ref().is_some_and(|index| query.matches(id, index));
            is_selected.then(|| (id.to_string(), Record::clone(record)))
        });
        selected.take(page.limit.saturating_add(1)).collect()
    }
}

#[cfg(any(test, feature = "conformance"))]
impl MemoryStore {
    /// Removes a session's head and keeps its records, as if its row was deleted from outside.
    pub fn lose_head(&self, session: &str) {
        if let Some(stored) = self.sessions.borrow_mut().get_mut(session) {
            (stored.head, stored.channel, stored.revision) = (None, None, 0);
            stored.listed_by = ListedBy::default();
            stored.operations = Operations::default();
        }
    }
}

impl LogStore for MemoryStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            compare_and_append: true,
            atomic_batch: true,
            read_your_writes: true,
            max_value_bytes: MAX_RECORD_BYTES as u64,
            durable: false,
        }
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        drop((self.sessions.take(), self.rows.take()));
        Box::pin(async { Ok(()) })
    }

    fn head<'a>(&'a self, session: &'a str) -> StoreFuture<'a, Option<StoredHead>> {
        Box::pin(async move { Ok(self.sessions.borrow().get(session).and_then(|stored| stored.head())) })
    }

    fn append<'a>(
        &'a self,
        session: &'a str,
        expected: u64,
        batch: Batch,
        operation: &'a str,
    ) -> StoreFuture<'a, Appended> {
        Box::pin(async move {
            batch.check(operation, self.capabilities().max_value_bytes)?;
            let mut sessions = self.sessions.borrow_mut();
            if let Some(stored) = sessions.get_mut(session) {
                if let Some(outcome) = stored.operations.outcome(stored.revision, expected, operation) {
                    return Ok(outcome);
                }
                if stored.is_occupied(&batch) {
                    return Ok(Appended::Occupied);
                }
                self.index_rows(session, stored, &batch);
                stored.change = self.next_change();
                return Ok(stored.write(batch, operation));
            }
            if expected != 0 {
                return Ok(Appended::Conflict(0));
            }
            let mut stored = Box::new(StoredSession::default());
            self.index_rows(session, &stored, &batch);
            stored.change = self.next_change();
            let appended = stored.write(batch, operation);
            sessions.insert(session.to_owned(), stored);
            Ok(appended)
        })
    }

    fn read<'a>(&'a self, session: &'a str, query: Query) -> StoreFuture<'a, Vec<Record>> {
        Box::pin(
            async move { Ok(self.sessions.borrow().get(session).map(|stored| stored.read(query)).unwrap_or_default()) },
        )
    }

    fn sessions<'a>(
        &'a self,
        cursor: Option<&'a str>,
        limit: usize,
        channel: Option<&'a str>,
    ) -> StoreFuture<'a, Page<SessionRow>> {
        Box::pin(async move {
            let limit = if limit == 0 { PAGE } else { limit };
            let sessions = self.sessions.borrow();
            let mut page = Page { items: Vec::new(), cursor: None };
            for (id, stored) in sessions.range::<str, _>((Bound::Included(cursor.unwrap_or("")), Bound::Unbounded)) {
                if cursor == Some(id) || channel.is_some() && stored.channel.as_deref() != channel {
                    continue;
                }
                let Some(head) = stored.head() else { continue };
                if page.items.len() == limit {
                    page.cursor = page.items.last().map(|last: &SessionRow| last.id.clone());
                    break;
                }
                page.items.push(SessionRow { id: id.clone(), head });
            }
            Ok(page)
        })
    }

    fn head_changes(&self, since: Option<u64>) -> Option<StoreFuture<'_, HeadChanges>> {
        Some(Box::pin(async move {
            let sessions = self.sessions.borrow();
            let changed = since.map(|since| {
                let changed = sessions.iter().filter(|(_, stored)| stored.change > since);
                changed.map(|(id, stored)| ChangedHead { id: id.clone(), head: stored.head() }).collect()
            });
            Ok(HeadChanges::limited(self.changes.get(), changed))
        }))
    }

    fn recent_sessions<'a>(&'a self, query: &'a RecencyQuery) -> Option<StoreFuture<'a, Page<SessionRow>>> {
        Some(Box::pin(async move {
            let mut recent = RecentSessions::new(query)?;
            for (id, stored) in &*self.sessions.borrow() {
                let ListedBy { updated_at, is_archived } = stored.listed_by;
                let is_wanted = query.channel.as_ref().is_none_or(|channel| stored.channel.as_ref() == Some(channel))
                    && query.archived.is_none_or(|archived| archived == is_archived);
                if let Some(head) = stored.head().filter(|_| is_wanted) {
                    recent.add(updated_at, SessionRow { id: id.clone(), head });
                }
            }
            Ok(recent.page())
        }))
    }

    fn invocations<'a>(&'a self, query: &'a AuditQuery) -> StoreFuture<'a, Page<(String, Record)>> {
        Box::pin(async move {
            let limit = if query.limit == 0 { PAGE } else { query.limit };
            let after = query.cursor.as_deref().map(open_audit_cursor).transpose()?;
            let sessions = self.sessions.borrow();
            let mut page = Page { items: Vec::new(), cursor: None };
            for (id, stored) in
                sessions.range::<str, _>((Bound::Included(after.map_or("", |(session, _)| session)), Bound::Unbounded))
            {
                let from = after.filter(|(session, _)| session == id).map_or(0, |(_, last)| last.saturating_add(1));
                let rows = stored.records.range((Table::ToolInvocations, from)..=(Table::ToolInvocations, u64::MAX));
                for (_, record) in rows {
                    if !record.index.as_ref().is_some_and(|index| query.matches(id, index)) {
                        continue;
                    }
                    if page.items.len() == limit {
                        page.cursor = page.items.last().map(|(id, last): &(String, Record)| audit_cursor(id, last.key));
                        return Ok(page);
                    }
                    page.items.push((id.clone(), Record::clone(record)));
                }
            }
            Ok(page)
        })
    }

    fn newest_invocations<'a>(&'a self, query: &'a AuditQuery) -> Option<StoreFuture<'a, Page<(String, Record)>>> {
        Some(Box::pin(async move {
            let mut newest = NewestRows::new(query)?;
            let sessions = self.sessions.borrow();
            match query.session.as_deref() {
                Some(id) => {
                    if let Some(stored) = sessions.get(id) {
                        newest.add(stored.newest_rows(id, query, &newest));
                    }
                }
                None => newest.add(self.newest_rows(&sessions, query, &newest)),
            }
            Ok(newest.page())
        }))
    }

    fn delete_session<'a>(&'a self, session: &'a str) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            if let Some(stored) = self.sessions.borrow_mut().get_mut(session).filter(|stored| stored.head().is_some()) {
                let mut rows = self.rows.borrow_mut();
                let id: Rc<str> = session.into();
                for (at, key) in &stored.row_times {
                    rows.remove(&(*at, id.clone(), *key));
                }
                stored.delete();
                stored.change = self.next_change();
            }
            Ok(())
        })
    }
}
