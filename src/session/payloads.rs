//! Reads the arguments and results of audit rows from the log records that the rows refer to.
//!
//! One record may hold the calls of many pages, and is decoded once: the records of the last session of a page are kept
//! for the next page while the session's revision is unchanged.

use crate::error::Result;
use crate::history::{HistoryEntry, LogRecord};
use crate::id::{IdMap, Seed};
use crate::store::{AuditRow, LogKey, LogStore, Record, RecordKind, open_record, split_segment};
use crate::tool::{ToolInvocation, ToolResult};
use std::collections::BTreeMap;

/// Number of log records that are read at once, which limits the memory for those that are segments.
const RECORDS_AT_ONCE: usize = 64;

/// Records that were read, by key: none for a record that is lost or cannot be read.
#[derive(Default)]
pub struct AuditPayloads {
    records: BTreeMap<LogKey, Option<RecordCalls>>,
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
        // Read before the records: if one is written meanwhile, the next page reads them again.
        let newest = match rows.last() {
            Some((session, _)) => revision_of(store, session).await?,
            None => None,
        };
        if let Some(kept) = self.kept.take() {
            let current = match &newest {
                Some((session, revision)) if *session == kept.0 => Some(*revision),
                _ => revision_of(store, &kept.0).await?.map(|(_, revision)| revision),
            };
            if current != Some(kept.1) {
                self.records.clear();
            }
        }
        let mut used = BTreeMap::new();
        for (session, row) in rows {
            for key in record_keys(session, row) {
                let record = self.records.remove(&key).flatten();
                used.entry(key).or_insert(record);
            }
        }
        let absent: Vec<LogKey> =
            used.iter().filter(|(_, calls)| calls.is_none()).map(|(key, _)| key.clone()).collect();
        for keys in absent.chunks(RECORDS_AT_ONCE) {
            for (session, record) in store.log_records(keys).await? {
                read_calls(&mut used, seed, &session, &record);
            }
        }
        self.records = used;
        self.kept = newest;
        Ok(())
    }

    /// Returns the invocation of a row.
    pub fn call(&self, session: &str, row: &AuditRow) -> Option<ToolInvocation> {
        let mut found: Option<ToolInvocation> = None;
        for key in record_keys(session, row) {
            let Some(Some(record)) = self.records.get(&key) else { continue };
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
        self.records.retain(|key, _| Some(key.session.as_str()) == kept);
    }
}

/// Returns the keys of the records that hold a row's call and its result.
fn record_keys(session: &str, row: &AuditRow) -> impl Iterator<Item = LogKey> {
    let of_session = |key| LogKey { session: session.to_owned(), key };
    [Some(row.record), row.result_record].into_iter().flatten().map(of_session)
}

/// Returns the session with its revision.
async fn revision_of(store: &dyn LogStore, session: &str) -> Result<Option<(String, u64)>> {
    Ok(store.head(session).await?.map(|head| (session.to_owned(), head.revision)))
}

/// Decodes the wanted log records of a stored one. What cannot be read is reported when the session is opened.
fn read_calls(wanted: &mut BTreeMap<LogKey, Option<RecordCalls>>, seed: Seed, session: &str, record: &Record) {
    for (key, value) in split_segment(record).unwrap_or_default().records {
        let Some(calls) = wanted.get_mut(&LogKey { session: session.to_owned(), key }) else { continue };
        if let (None, Ok(record)) = (&calls, open_record::<LogRecord>(RecordKind::Log, &value)) {
            *calls = Some(RecordCalls::of(record, seed));
        }
    }
}
