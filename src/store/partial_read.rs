//! Reads what is readable of a log if the store fails to read a part of it (R7).

use super::{LogStore, MAX_KEY, Query, Record, Table};
use crate::error::{Error, ErrorCode};
use crate::finding::{Finding, FindingCode};

/// Size of the pages in which records are read, in bytes.
pub(super) const LOG_PAGE_BYTES: u64 = 4 * 1024 * 1024;

/// Number of failed reads after which ranges are not divided further.
const MAX_FAILED_READS: usize = 64;

/// Number of times that a range is divided although nothing in it was readable so far.
const MAX_FRUITLESS_DIVISIONS: usize = 3;

/// What the store failed to read of a log.
#[derive(Clone, Debug)]
pub struct ReadFailure {
    /// The first error.
    pub error: Error,
    /// The keys of the records, each range from its first key to before the second.
    pub(super) ranges: Vec<(u64, u64)>,
}

impl ReadFailure {
    /// Returns the finding about it.
    #[must_use]
    pub fn finding(&self, session: &str) -> Finding {
        let count: u64 = self.ranges.iter().map(|(from, past)| past - from).sum();
        Finding::warning(
            FindingCode::ReadFailed,
            format!(
                "the store failed to read {count} log records of session \"{session}\". The rest of its history is shown; writes are rejected \
                 until they can be read, and the next call tries again: {}",
                self.error.message
            ),
        )
    }
}

/// The outcome of [`read_readable`].
#[derive(Default)]
pub(super) struct ReadableRecords {
    /// In key order.
    pub(super) records: Vec<Record>,
    pub(super) failure: Option<ReadFailure>,
}

impl ReadableRecords {
    /// Adds what was read of a later range.
    pub(super) fn extend(&mut self, later: Self) {
        self.records.extend(later.records);
        match (&mut self.failure, later.failure) {
            (Some(failure), Some(more)) => failure.ranges.extend(more.ranges),
            (None, more) => self.failure = more,
            (Some(_), None) => {}
        }
    }

    fn fail(&mut self, range: (u64, u64), error: &Error) {
        let failure = self.failure.get_or_insert_with(|| ReadFailure { error: error.clone(), ranges: Vec::new() });
        failure.ranges.push(range);
    }
}

/// Returns false for an error that another read would meet as well: the store as a whole cannot be read, or does not
/// answer.
fn may_read_around(error: &Error) -> bool {
    !error.is_unanswered()
        && matches!(error.code, ErrorCode::StoreError | ErrorCode::CorruptRecord | ErrorCode::TooLarge)
}

/// Reads the records from a key to before another. A range that fails is halved, so that a record that cannot be read
/// costs that record alone.
pub(super) async fn read_readable(store: &dyn LogStore, id: &str, range: (u64, u64)) -> ReadableRecords {
    let (mut read, mut level, mut failed_reads) = (ReadableRecords::default(), vec![range], 0);
    for depth in 0_usize.. {
        let mut halves = Vec::new();
        for (from, past) in std::mem::take(&mut level) {
            let (mut records, error) = read_pages(store, id, (from, past)).await;
            let next = records.last().map_or(from, |last| last.last_key.unwrap_or(last.key) + 1);
            read.records.append(&mut records);
            let Some(error) = error else { continue };
            failed_reads += 1;
            let is_fruitless = read.records.is_empty() && depth >= MAX_FRUITLESS_DIVISIONS;
            if past - next == 1 || failed_reads >= MAX_FAILED_READS || is_fruitless || !may_read_around(&error) {
                read.fail((next, past), &error);
            } else {
                let middle = next + (past - next) / 2;
                halves.extend([(next, middle), (middle, past)]);
            }
        }
        level = halves;
        if level.is_empty() {
            break;
        }
    }
    read.records.sort_by_key(|record| record.key);
    // A segment is found in each range that it reaches.
    read.records.dedup_by_key(|record| record.key);
    if let Some(failure) = &mut read.failure {
        failure.ranges.sort_unstable();
    }
    read
}

/// Reads the records from a key to before another, until the store fails.
pub(super) async fn read_pages(
    store: &dyn LogStore,
    id: &str,
    (from, past): (u64, u64),
) -> (Vec<Record>, Option<Error>) {
    let (mut records, mut next) = (Vec::new(), from);
    while next < past {
        let to = past.saturating_sub(1).min(MAX_KEY);
        let query = Query { from: next, to, limit_bytes: LOG_PAGE_BYTES, ..Query::all(Table::Log) };
        match store.read(id, query).await {
            Ok(mut page) => {
                let Some(last) = page.last() else { break };
                next = last.last_key.unwrap_or(last.key) + 1;
                records.append(&mut page);
            }
            Err(error) => return (records, Some(error)),
        }
    }
    (records, None)
}
