//! The store that forgets: for tests, servers that keep nothing, and the model that others are compared with.

use super::{
    Appended, AuditQuery, Batch, Capabilities, Head, LogStore, MAX_RECORD_BYTES, Operations, PAGE, Page, Query, Record,
    SessionRow, StoreFuture, Table, audit_cursor, open_audit_cursor,
};
use crate::sorted::Sorted;
use std::cell::RefCell;
use std::rc::Rc;

/// Keeps everything in memory. A clone is another handle on the same data.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    sessions: Rc<RefCell<Sorted<String, Kept>>>,
}

/// A session, or its tombstone.
#[derive(Debug, Default)]
struct Kept {
    revision: u64,
    /// None in a tombstone.
    head: Option<Vec<u8>>,
    channel: Option<String>,
    operations: Operations,
    records: Sorted<(Table, u64), Record>,
    /// How far a segment's last key was ever from its first: so far before a range one that reaches in may begin.
    widest: u64,
}

impl Kept {
    fn head(&self) -> Option<Head> {
        self.head.as_ref().map(|value| Head { revision: self.revision, value: value.clone() })
    }

    fn write(&mut self, batch: Batch, operation: &str) -> Appended {
        for place in &batch.remove {
            self.records.remove(place);
        }
        for record in batch.put {
            self.widest = self.widest.max(record.last_key.map_or(0, |last| last.saturating_sub(record.key)));
            self.records.insert((record.table, record.key), record);
        }
        self.revision = self.revision.saturating_add(1);
        self.head = Some(batch.head);
        self.channel = batch.channel;
        self.operations.note(operation, self.revision);
        Appended::Revision(self.revision)
    }

    fn read(&self, query: Query) -> Vec<Record> {
        if query.from > query.to {
            return Vec::new();
        }
        let (first, last) = ((query.table, query.from.saturating_sub(self.widest)), (query.table, query.to));
        let meeting = self
            .records
            .from(&first)
            .iter()
            .take_while(|(place, _)| *place <= last)
            .map(|(_, record)| record)
            .filter(|record| record.last_key.unwrap_or(record.key) >= query.from);
        if query.reverse {
            take(meeting.collect::<Vec<_>>().into_iter().rev(), query.limit_bytes)
        } else {
            take(meeting, query.limit_bytes)
        }
    }
}

/// Takes records until their values reach the limit.
fn take<'r>(records: impl Iterator<Item = &'r Record>, limit_bytes: u64) -> Vec<Record> {
    let mut bytes = 0_u64;
    let mut taken = Vec::new();
    for record in records {
        bytes = bytes.saturating_add(record.value.len() as u64);
        taken.push(record.clone());
        if bytes >= limit_bytes {
            break;
        }
    }
    taken
}

/// Cuts one item more than a page holds to a page, with a cursor if there was one more.
fn page<T>(mut items: Vec<T>, limit: usize, cursor: impl FnOnce(&T) -> String) -> Page<T> {
    let more = items.len() > limit;
    items.truncate(limit);
    let cursor = items.last().filter(|_| more).map(cursor);
    Page { items, cursor }
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

    fn head<'a>(&'a self, session: &'a str) -> StoreFuture<'a, Option<Head>> {
        Box::pin(async move { Ok(self.sessions.borrow().get(session).and_then(Kept::head)) })
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
            if let Some(kept) = sessions.get_mut(session) {
                let outcome = kept.operations.outcome(kept.revision, expected, operation);
                return Ok(outcome.unwrap_or_else(|| kept.write(batch, operation)));
            }
            if expected != 0 {
                return Ok(Appended::Conflict(0));
            }
            let mut kept = Kept::default();
            let appended = kept.write(batch, operation);
            sessions.insert(session.to_owned(), kept);
            Ok(appended)
        })
    }

    fn read<'a>(&'a self, session: &'a str, query: Query) -> StoreFuture<'a, Vec<Record>> {
        Box::pin(
            async move { Ok(self.sessions.borrow().get(session).map(|kept| kept.read(query)).unwrap_or_default()) },
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
            let rows = sessions
                .from(cursor.unwrap_or(""))
                .iter()
                .filter(|(id, _)| cursor.is_none_or(|cursor| id != cursor))
                .filter(|(_, kept)| channel.is_none() || kept.channel.as_deref() == channel)
                .filter_map(|(id, kept)| Some(SessionRow { id: id.clone(), head: kept.head()? }))
                .take(limit.saturating_add(1))
                .collect();
            Ok(page(rows, limit, |row| row.id.clone()))
        })
    }

    fn invocations<'a>(&'a self, query: &'a AuditQuery) -> StoreFuture<'a, Page<(String, Record)>> {
        Box::pin(async move {
            let limit = if query.limit == 0 { PAGE } else { query.limit };
            let after = query.cursor.as_deref().map(open_audit_cursor).transpose()?;
            let sessions = self.sessions.borrow();
            let rows = sessions
                .from(after.map_or("", |(session, _)| session))
                .iter()
                .flat_map(|(id, kept)| kept.records.values().map(move |record| (id, record)))
                .filter(|(_, record)| record.table == Table::ToolInvocations)
                .filter(|(id, record)| after.is_none_or(|(session, key)| session != id.as_str() || record.key > key))
                .filter(|(id, record)| record.index.as_ref().is_some_and(|index| query.matches(id, index)))
                .map(|(id, record)| (id.clone(), record.clone()))
                .take(limit.saturating_add(1))
                .collect();
            Ok(page(rows, limit, |(id, record): &(String, Record)| audit_cursor(id, record.key)))
        })
    }

    fn delete_session<'a>(&'a self, session: &'a str) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            if let Some(kept) = self.sessions.borrow_mut().get_mut(session).filter(|kept| kept.head.is_some()) {
                let operations = std::mem::take(&mut kept.operations);
                *kept = Kept { revision: kept.revision.saturating_add(1), operations, ..Kept::default() };
            }
            Ok(())
        })
    }
}
