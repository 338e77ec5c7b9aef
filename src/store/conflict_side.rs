//! Reads the other side of a conflict as a session of its own.

use super::additions::{is_addition, read_additions};
use super::branch_directory::{BranchDirectory, read_rows};
use super::log::{SessionLog, cut_record};
use super::merge_queue::MergeQueue;
use super::record::{RecordKind, open_record, open_whole_record};
use super::segment::split_segment;
use super::{LogStore, Query, Record, StoredBranch, Table};
use crate::branch_path::{BranchPath, DIRECTORY};
use crate::clock::Ms;
use crate::error::{Error, ErrorCode, Result};
use crate::history::{History, LogRecord};
use crate::id::Seed;
use crate::session_head::SessionHead;
use std::collections::{BTreeMap, BTreeSet};

/// The other side of a conflict: the branch that it was at, with what it shares with the session's history and what it
/// alone has.
pub(super) struct ConflictSide {
    /// The log of the branch. It cannot be appended to.
    pub(super) log: SessionLog,
    /// The head where the sides parted; none if they share nothing.
    pub(super) fork_head: Option<SessionHead>,
    /// The number of findings about records of the branch.
    damage: usize,
    /// The records of the branch that were written before the sides parted.
    shared: Vec<Record>,
    /// The additions that were stored before that.
    additions: Vec<Record>,
}

impl ConflictSide {
    /// Reads a side.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub(super) async fn read(
        store: &dyn LogStore,
        id: &str,
        side: &StoredBranch,
        (seed, now): (Seed, Ms),
    ) -> Result<Self> {
        let mut log = SessionLog::new(id, seed, now, MergeQueue::new(store));
        let read = |head| open_record::<SessionHead>(RecordKind::Head, head);
        let head = read(&side.head)?;
        let fork_head = side.fork_head.as_ref().map(read).transpose()?;
        log.head.branch = head.branch.clone();
        let count = fork_head.as_ref().map_or(0, |head| head.additions);
        let additions = read_additions(store, id, (0, count)).await?;
        log.queue_additions(&additions);
        log.queue_additions(&side.log.iter().filter(|record| is_addition(record)).cloned().collect::<Vec<_>>());
        let (mut shared, mut directory) = (Vec::new(), BranchDirectory::default());
        if let Some(fork_head) = &fork_head {
            shared = read_shared(store, id, (&head, fork_head)).await?;
            if fork_head.branch_count > 0 {
                let range = (DIRECTORY, DIRECTORY + fork_head.branch_count);
                log.findings.extend(read_rows(store, id, &mut directory, range).await?);
            }
        }
        log.findings.extend(directory.add(id, &side.log));
        log.set_directory(directory);
        // Where both sides have a record of one key, that of this side counts.
        let records = shared.iter().chain(&side.log).map(|record| (record.key, record.clone()));
        let records: Vec<_> = records.collect::<BTreeMap<_, _>>().into_values().collect();
        let (mut next, known) = (0, log.findings.len());
        log.add_records(&records, &mut next, head.next_record);
        log.check_end(next, head.next_record);
        let damage = log.findings.len() - known;
        log.apply_last_additions(head.additions);
        log.set_head(head);
        Ok(Self { log, fork_head, damage, shared, additions })
    }

    /// Returns the history that both sides share: that of the branch where they parted.
    ///
    /// # Errors
    /// `corrupt_record` if the side has lost records since then, or has some that cannot be read.
    pub(super) fn shared_history(&self, store: &dyn LogStore) -> Result<History> {
        let head = &self.log.head;
        let mut log = SessionLog::new(&head.id, self.log.history.seed(), head.created_at, MergeQueue::new(store));
        log.head.branch = head.branch.clone();
        log.queue_additions(&self.additions);
        let known = log.findings.len();
        log.add_records(&self.shared, &mut 0, head.next_record);
        if self.damage > log.findings.len() - known {
            let message = "the other side of the conflict has records that are gone or cannot be read, so it is not \
                           adopted; `messages({ branch })` reads the others";
            return Err(Error::new(ErrorCode::CorruptRecord, message));
        }
        log.apply_last_additions(0);
        Ok(log.history)
    }

    /// Returns the log records of the branch, in order, and then the additions of the side that repeat none of them.
    /// Those with the keys of records from before the sides parted are marked.
    ///
    /// # Errors
    /// `corrupt_record`, and `unsupported_version` for a record of a newer build, which cannot be written again without
    /// a loss.
    pub(super) fn records(&self, side: &StoredBranch) -> Result<Vec<(LogRecord, bool)>> {
        let shared = self.shared.iter().map(|record| (record.key, (record, true)));
        let mut all: BTreeMap<u64, (&Record, bool)> = shared.collect();
        for record in side.log.iter().filter(|record| record.key < DIRECTORY) {
            let is_shared = all.contains_key(&record.key);
            all.insert(record.key, (record, is_shared));
        }
        let (path, mut records, mut known) = (&self.log.head.branch, Vec::new(), BTreeSet::new());
        for (record, is_shared) in all.into_values() {
            let range_end = path.range_end(record.key).or_else(|| is_addition(record).then_some(DIRECTORY));
            let Some(range_end) = range_end else { continue };
            for (key, value) in split_segment(record)?.records.into_iter().filter(|(key, _)| *key < range_end) {
                let mut log = open_whole_record::<LogRecord>(RecordKind::Log, &value)?;
                if let Some(until_seq) = path.until_seq(key) {
                    cut_record(&mut log, until_seq);
                }
                if known.insert(log.operation.clone()) || !is_addition(record) {
                    records.push((log, is_shared));
                }
            }
        }
        Ok(records)
    }
}

/// Returns the log of a side: the branch that it was at, with what it shares with the session's history and what it
/// alone has. It cannot be appended to.
///
/// # Errors
/// If the store cannot be read.
pub async fn open_conflict_side(
    store: &dyn LogStore,
    id: &str,
    side: &StoredBranch,
    place: (Seed, Ms),
) -> Result<SessionLog> {
    Ok(ConflictSide::read(store, id, side, place).await?.log)
}

/// Reads the records of a side's branch that were written before the sides parted. Those that the session's history
/// has from later on are not of this side.
async fn read_shared(
    store: &dyn LogStore,
    id: &str,
    (head, fork_head): (&SessionHead, &SessionHead),
) -> Result<Vec<Record>> {
    let mut shared = Vec::new();
    for (from, past) in ranges_before(&head.branch, head.next_record, fork_head) {
        let records = store.read(id, Query { from, to: past - 1, ..Query::all(Table::Log) }).await?;
        shared.extend(records.into_iter().filter(|record| is_before(record, fork_head)));
    }
    Ok(shared)
}

/// Returns the ranges of keys of a branch before `end`. The counter of the head where the sides parted says where the
/// shared records of its branch end.
fn ranges_before(branch: &BranchPath, end: u64, fork_head: &SessionHead) -> Vec<(u64, u64)> {
    let parted = (fork_head.branch.first_own_key(), fork_head.next_record);
    let cut = |(from, past): (u64, u64)| if from == parted.0 { (from, past.min(parted.1)) } else { (from, past) };
    branch.ranges(end).map(cut).filter(|(from, past)| from < past).collect()
}

/// Returns true for a record that was written before the sides parted. One that cannot be read is reported as damaged.
fn is_before(record: &Record, fork_head: &SessionHead) -> bool {
    let log = open_record::<LogRecord>(RecordKind::Log, &record.value);
    log.map_or(true, |log| log.mark.history_revision <= fork_head.history_revision)
}
