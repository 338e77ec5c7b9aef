//! Reads the arguments and results of audit rows from the log records that the rows refer to.
//!
//! One record may hold the calls of many pages, and is decoded once: the records of the last session of a page are kept for the next
//! page while the session's revision is unchanged.

use crate::error::Result;
use crate::history::{HistoryEntry, LogRecord};
use crate::id::{IdMap, Seed};
use crate::store::{AuditRow, LogStore, MAX_KEY, Query, Record, RecordKind, Table, open_record, split_segment};
use crate::tool::{ToolInvocation, ToolResult};
use std::collections::BTreeMap;

/// Records that were read, by session and key: none for a record that is lost or cannot be read.
#[derive(Default)]
pub struct AuditPayloads {
    records: BTreeMap<(String, u64), Option<RecordCalls>>,
    /// The session whose records are kept from page to page, and its revision when they were read.
    kept: Option<(String, u64)>,
}

/// The calls and results of one record, by invocation.
struct RecordCalls {
    calls: IdMap<ToolInvocation>,
    results: IdMap<Option<ToolResult>>,
}

impl RecordCalls {
    fn of(record: LogRecord, seed: Seed) -> Self {
        let mut own = Self { calls: IdMap::with_seed(seed), results: IdMap::with_seed(seed) };
        for entry in record.entries {
            match entry {
                HistoryEntry::Invocation(call) => _ = own.calls.insert(call.id.clone(), call),
                HistoryEntry::Result(entry) => _ = own.results.insert(entry.invocation, entry.result),
                HistoryEntry::Message(_) | HistoryEntry::SetAside(_) => {}
            }
        }
        own
    }
}

impl AuditPayloads {
    /// Reads the records of the rows, except those that are kept from an earlier page.
    pub async fn read(&mut self, store: &dyn LogStore, seed: Seed, rows: &[(&str, AuditRow)]) -> Result<()> {
        if let Some((session, revision)) = self.kept.take()
            && revision_of(store, &session).await? != Some(revision)
        {
            self.records.clear();
        }
        let last = rows.last().map(|(session, _)| *session);
        let revision = match last {
            // Read before the records: if one is written meanwhile, the next page reads them again.
            Some(session) => revision_of(store, session).await?,
            None => None,
        };
        let mut used = BTreeMap::new();
        let mut newest = None;
        for (session, row) in rows {
            for key in keys_of(row) {
                let place = ((*session).to_owned(), key);
                if used.contains_key(&place) {
                    continue;
                }
                let record = match self.records.remove(&place) {
                    Some(record) => record,
                    None => read_record(store, seed, &place, &mut newest).await?,
                };
                used.insert(place, record);
            }
        }
        self.records = used;
        self.kept = last.map(ToOwned::to_owned).zip(revision);
        Ok(())
    }

    /// Returns the invocation of a row.
    pub fn call(&self, session: &str, row: &AuditRow) -> Option<ToolInvocation> {
        let mut found: Option<ToolInvocation> = None;
        for key in keys_of(row) {
            let Some(Some(record)) = self.records.get(&(session.to_owned(), key)) else { continue };
            found = record.calls.get(&row.id).cloned().or(found);
            if let (Some(call), Some(result)) = (&mut found, record.results.get(&row.id)) {
                call.result.clone_from(result);
            }
        }
        found
    }

    /// Drops the records that the next page does not need.
    pub fn keep_for_next_page(&mut self) {
        let kept = self.kept.as_ref().map(|(session, _)| session.as_str());
        self.records.retain(|(session, _), _| Some(session.as_str()) == kept);
    }
}

/// Returns the keys of the records that hold a row's call and its result.
fn keys_of(row: &AuditRow) -> impl Iterator<Item = u64> {
    [Some(row.record), row.result_record].into_iter().flatten()
}

async fn revision_of(store: &dyn LogStore, session: &str) -> Result<Option<u64>> {
    Ok(store.head(session).await?.map(|head| head.revision))
}

/// A stored record and its session.
type SessionRecord = (String, Record);

/// Reads a log record. `newest` is the stored record that was read last: a segment has the log records of many rows.
async fn read_record(
    store: &dyn LogStore,
    seed: Seed,
    (session, key): &(String, u64),
    newest: &mut Option<SessionRecord>,
) -> Result<Option<RecordCalls>> {
    let spans = |(of, record): &SessionRecord| {
        of == session && (record.key..=record.last_key.unwrap_or(record.key)).contains(key)
    };
    if !newest.as_ref().is_some_and(spans) {
        let query = Query { from: *key, to: (*key).min(MAX_KEY), ..Query::all(Table::Log) };
        let found = store.read(session, query).await?.into_iter().next();
        *newest = found.map(|record| (session.clone(), record));
    }
    // What cannot be read is reported when the session is opened.
    let parts = newest.as_ref().and_then(|(_, record)| split_segment(record).ok()).unwrap_or_default();
    let part = parts.into_iter().find(|(at, _)| at == key);
    let record = part.and_then(|(_, value)| open_record::<LogRecord>(RecordKind::Log, &value).ok());
    Ok(record.map(|record| RecordCalls::of(record, seed)))
}
