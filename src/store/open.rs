//! Opens sessions, and reads what other writers appended.

use super::additions::read_additions;
use super::branch_directory::{BranchDirectory, read_directory, read_first_rows, read_new_rows, read_row};
use super::log::{SessionLog, UnreadRecords};
use super::log_tail::{TAIL_BYTES, add_tail, extend_tail};
use super::merge_queue::MergeQueue;
use super::partial_read::{LOG_PAGE_BYTES, ReadFailure, ReadableRecords, read_pages, read_readable};
use super::rebuild::{Rebuilt, rebuild_head};
use super::record::{RecordKind, open_record};
use super::segment::split_segment;
use super::{Appended, Batch, LogStore, MAX_KEY, Query, Record, StoredHead, Table};
use crate::branch_path::BranchPath;
use crate::clock::Ms;
use crate::error::{Error, ErrorCode, Result};
use crate::finding::{Finding, FindingCode, Report};
use crate::history::LogRecord;
use crate::id::Seed;
use crate::session_head::{BranchState, SessionHead};
use std::cell::RefCell;

/// Size in bytes from which a log is opened by its end.
const LARGE_LOG_BYTES: u64 = 512 * 1024;

/// Size of a small stored message in bytes.
const SMALL_MESSAGE_BYTES: u64 = 64;

/// Opens a session. Reads the head and then the log in pages of [`LOG_PAGE_BYTES`]; an empty session costs one read
/// (R6). A damaged head is rebuilt.
///
/// If the store fails to read a part of the log, the history has the rest: see [`SessionLog::read_failure`].
///
/// # Errors
/// If the store can read nothing of the session. The result is never an empty history instead.
pub async fn open_session(store: &dyn LogStore, id: &str, seed: Seed, now: Ms) -> Result<SessionLog> {
    open_from(store, (id, now), seed, false).await
}

/// Opens a session as [`open_session`] does, but reads only the end of a large log. Then [`SessionLog::is_whole`] is
/// false: the history has the newest messages with their calls and results, until [`read_older`] has read the rest.
/// Appends and refreshes read it first.
///
/// Of a session with many branches only the row of the one that is shown is read. Then
/// [`SessionLog::has_unread_branches`] is true, until [`read_all_branches`](super::read_all_branches) has read the
/// rest. Forks, switches and appends that need other rows read them first; refreshes and other appends do not.
///
/// # Errors
/// As [`open_session`].
pub async fn open_session_tail(store: &dyn LogStore, id: &str, seed: Seed, now: Ms) -> Result<SessionLog> {
    open_from(store, (id, now), seed, true).await
}

async fn open_from(store: &dyn LogStore, (id, now): (&str, Ms), seed: Seed, tail: bool) -> Result<SessionLog> {
    let mut log = SessionLog::new(id, seed, now, MergeQueue::new(store));
    let select = move |head: &StoredHead| {
        let head = open_record::<SessionHead>(RecordKind::Head, &head.value).ok()?;
        first_query(&head, tail)
    };
    let (read, failed) = match store.head_and_records(id, Box::new(select)).await {
        Ok(read) => (read, false),
        // The head alone may be readable.
        Err(error) => {
            let head = store.head(id).await.map_err(|_| error)?;
            (head.map(|head| (head, Vec::new())), true)
        }
    };
    let Some((head, mut records)) = read else { return Ok(log) };
    log.lineage = store.lineage(id);
    match open_record::<SessionHead>(RecordKind::Head, &head.value) {
        Ok(session) => {
            log.set_revision(head.revision);
            log.head.branch = session.branch.clone();
            let additions = read_additions(store, id, (0, session.additions)).await?;
            log.queue_additions(&additions);
            let is_tail = tail && is_large(&session) && !failed && extend_tail(store, &session, &mut records).await;
            if is_tail {
                add_tail(&mut log, records, session.next_record);
            } else if failed || add_whole(store, &mut log, (&session, records)).await.is_err() {
                log.reset();
                log.head.branch = session.branch.clone();
                log.queue_additions(&additions);
                add_readable(store, &mut log, session.next_record).await?;
                log.set_revision(head.revision);
                log.lineage = store.lineage(id);
            }
            log.apply_last_additions(session.additions);
            if session.branch_count > 0 {
                let (directory, findings) = if tail {
                    read_first_rows(store, id, (session.branch_count, session.branch.number)).await?
                } else {
                    read_directory(store, id).await?
                };
                log.set_directory(directory);
                log.findings.extend(findings);
            }
            log.set_head(session);
        }
        // Everything else is encrypted as well.
        Err(error) if error.code == ErrorCode::WrongKey => return Err(error),
        Err(error) => {
            log.warn(unreadable_head(id, &error));
            rebuild(store, &mut log, head.revision).await?;
            if error.code == ErrorCode::UnsupportedVersion {
                log.read_only = Some(error);
            }
        }
    }
    Ok(log)
}

/// Folds a whole log, of which the first records were read.
async fn add_whole(
    store: &dyn LogStore,
    log: &mut SessionLog,
    (head, first): (&SessionHead, Vec<Record>),
) -> Result<()> {
    reserve_history(log, head);
    let mut next = 0;
    log.add_records(&first, &mut next, head.next_record);
    read_log(store, log, (next, head.next_record)).await
}

/// Folds what is readable of the records before `end`.
async fn add_readable(store: &dyn LogStore, log: &mut SessionLog, end: u64) -> Result<()> {
    let mut read = ReadableRecords::default();
    for range in log.head.branch.clone().ranges(end) {
        read.extend(read_readable(store, &log.head.id, range).await);
    }
    log.add_readable(read, end)?;
    if log.read_failure.is_some() {
        log.unread = Some(UnreadRecords { end, tail: Vec::new() });
    }
    Ok(())
}

fn is_large(head: &SessionHead) -> bool {
    head.log_bytes >= LARGE_LOG_BYTES
}

/// Returns the query of what is read together with a head: all of a small log, the end of a large one, or nothing.
fn first_query(head: &SessionHead, tail: bool) -> Option<Query> {
    let from = head.branch.first_own_key();
    let count = head.next_record.checked_sub(from).filter(|count| *count > 0)?;
    let query = Query {
        from,
        to: head.next_record - 1,
        limit_bytes: LOG_PAGE_BYTES,
        expected_records: count,
        ..Query::all(Table::Log)
    };
    let shares = !head.branch.shared.is_empty();
    match (is_large(head), tail) {
        // What it shares comes first.
        (false, _) if shares => None,
        (false, _) => Some(query),
        (true, false) => None,
        (true, true) => {
            // After the newest segment there may be fewer records than are wanted: then it is read, too.
            let after_segments = head.next_record.saturating_sub(head.merged_until).min(count);
            let records = if shares { head.next_seq.max(count) } else { count };
            let wanted = TAIL_BYTES / (head.log_bytes / records).max(1) + 1;
            let expected_records = wanted.min(after_segments + 1);
            Some(Query { reverse: true, limit_bytes: TAIL_BYTES, expected_records, ..query })
        }
    }
}

/// Reserves memory for the history of a log, limited by the log's size, because a damaged head may claim any count.
fn reserve_history(log: &mut SessionLog, head: &SessionHead) {
    let count = |claimed: u64| usize::try_from(claimed.min(head.log_bytes / SMALL_MESSAGE_BYTES)).unwrap_or(0);
    log.history.reserve(count(head.next_seq), count(head.next_invocation));
}

/// Reads the records that [`open_session_tail`] left out, or that could not be read. Without any it does nothing.
///
/// # Errors The store's own. The history then has what is readable ([`SessionLog::read_failure`]), and the next call
/// reads the rest.
pub async fn read_older(store: &dyn LogStore, cell: &RefCell<SessionLog>) -> Result<()> {
    let (id, seed, now, end) = {
        let log = cell.borrow();
        let Some(unread) = &log.unread else { return Ok(()) };
        (log.head.id.clone(), log.seed, log.head.created_at, unread.end)
    };
    retry_failed_ranges(store, cell).await?;
    let mut fresh = SessionLog::new(&id, seed, now, MergeQueue::new(store));
    let branch = cell.borrow().head.branch.clone();
    fresh.head.branch = branch.clone();
    let count = cell.borrow().head.additions;
    let additions = read_additions(store, &id, (0, count)).await?;
    fresh.queue_additions(&additions);
    reserve_history(&mut fresh, &cell.borrow().head);
    if read_log(store, &mut fresh, (0, end)).await.is_err() {
        fresh.reset();
        fresh.head.branch = branch;
        fresh.queue_additions(&additions);
        if let Err(error) = add_readable(store, &mut fresh, end).await {
            // Nothing but the end of the log.
            cell.borrow_mut().read_failure = Some(ReadFailure { error: error.clone(), ranges: vec![(0, end)] });
            return Err(error);
        }
    }
    // Records are missing: they are damaged, or the session was deleted while it was read.
    let is_replaced = !fresh.findings.is_empty() && is_another_session(store, cell).await?;
    let Some(unread) = cell.borrow_mut().unread.take() else { return Ok(()) };
    if is_replaced {
        let refreshed = refresh(store, cell).await;
        if refreshed.is_err() {
            cell.borrow_mut().unread = Some(unread);
        }
        return refreshed.map(drop);
    }
    let mut log = cell.borrow_mut();
    let (mut next, past) = (end, log.head.next_record);
    fresh.add_records(&unread.tail, &mut next, past);
    fresh.check_end(next, past);
    fresh.apply_last_additions(count);
    let failure = fresh.read_failure.take();
    if failure.is_some() {
        log.unread = Some(unread);
    }
    // Between messages that were there others appear, or are missing.
    if failure.is_some() || log.read_failure.is_some() {
        log.generation += 1;
    }
    log.read_failure = failure;
    log.adopt_records(fresh);
    log.read_failure.as_ref().map_or(Ok(()), |failure| Err(failure.error.clone()))
}

/// Reads what the store failed to read, to learn whether the log is worth being read again.
async fn retry_failed_ranges(store: &dyn LogStore, cell: &RefCell<SessionLog>) -> Result<()> {
    let Some(ReadFailure { ranges, .. }) = cell.borrow().read_failure.clone() else { return Ok(()) };
    let id = cell.borrow().head.id.clone();
    for range in ranges {
        if let (_, Some(error)) = read_pages(store, &id, range).await {
            return Err(error);
        }
    }
    Ok(())
}

/// Returns true if the session was deleted since it was opened, or another side of a fork is its history.
async fn is_another_session(store: &dyn LogStore, cell: &RefCell<SessionLog>) -> Result<bool> {
    let (id, born) = {
        let log = cell.borrow();
        (log.head.id.clone(), log.head.born)
    };
    let Some(head) = store.head(&id).await? else { return Ok(true) };
    if store.lineage(&id) != cell.borrow().lineage {
        return Ok(true);
    }
    let head = open_record::<SessionHead>(RecordKind::Head, &head.value);
    Ok(head.is_ok_and(|head| head.born != born))
}

/// Returns the message of a finding about a head that does not decode.
#[must_use]
pub fn unreadable_head(id: &str, error: &Error) -> String {
    format!(
        "the head of session \"{id}\" cannot be read, so it is rebuilt from log and journals, without metadata, state and which runs from snapshots have ended: {}",
        error.message
    )
}

/// Reads all tables of a session and rebuilds the head from them. The log is of the branch that was written last.
pub(super) async fn rebuild(store: &dyn LogStore, log: &mut SessionLog, revision: u64) -> Result<()> {
    let id = log.head.id.clone();
    let (directory, findings) = read_directory(store, &id).await?;
    log.findings.extend(findings);
    log.head.branch = newest_branch(store, &id, &directory).await?;
    log.set_directory(directory);
    let min_revision = rebuild_branch(store, log, revision).await?;
    log.head.branch_count = log.directory.highest();
    log.set_revision(revision);
    log.min_revision = min_revision;
    log.revision = revision.max(min_revision.saturating_sub(1)).max(log.head.history_revision);
    Ok(())
}

/// Reads the log of its branch and rebuilds the head with the counters of this branch. Returns the lowest revision that
/// the next append may have.
pub(super) async fn rebuild_branch(store: &dyn LogStore, log: &mut SessionLog, revision: u64) -> Result<u64> {
    let (id, branch) = (log.head.id.clone(), log.head.branch.clone());
    log.queue_additions(&read_additions(store, &id, (0, u64::MAX)).await?);
    read_log(store, log, (0, u64::MAX)).await?;
    log.apply_last_additions(0);
    let Rebuilt { mut head, min_revision, findings } =
        rebuild_head(store, &id, (&log.survey, &branch), &log.history, revision).await?;
    log.findings.extend(findings);
    if head.next_record < branch.first_own_key() {
        // A branch without a record of its own: the last shared one may have messages after the place of the fork.
        head.next_record = branch.first_own_key();
        head.next_seq = branch.first_own_seq();
        head.turns = log.history.position().turns;
    }
    head.branch = branch;
    head.additions = log.addition_count();
    log.set_head(head);
    Ok(min_revision)
}

/// Returns the path of the branch that was written last.
async fn newest_branch(store: &dyn LogStore, id: &str, directory: &BranchDirectory) -> Result<BranchPath> {
    let main = BranchPath::default();
    let mut newest = (0, main.clone());
    let forks = directory.rows().map(|row| &row.state.path).filter(|path| path.number != 0);
    for path in std::iter::once(&main).chain(forks) {
        let Some((from, past)) = path.ranges(u64::MAX).next_back() else { continue };
        let last = Query { from, to: past - 1, reverse: true, limit_bytes: 1, ..Query::all(Table::Log) };
        for record in store.read(id, last).await? {
            let records = split_segment(&record).map(|split| split.records).unwrap_or_default();
            let log = records.last().and_then(|(_, value)| open_record::<LogRecord>(RecordKind::Log, value).ok());
            let revision = log.map_or(0, |log| log.mark.revision);
            if revision > newest.0 {
                newest = (revision, path.clone());
            }
        }
    }
    Ok(newest.1)
}

/// Returns the head of a session, for lists and for the search for pending runs, and the problems found. A damaged head
/// is rebuilt.
///
/// # Errors
/// If the store cannot be read.
pub async fn read_head(store: &dyn LogStore, id: &str, head: &StoredHead, seed: Seed) -> Result<(SessionHead, Report)> {
    match open_record::<SessionHead>(RecordKind::Head, &head.value) {
        Ok(session) => Ok((session, Report::new())),
        Err(unread) => match open_session(store, id, seed, 0).await {
            Ok(log) => Ok((log.head, log.findings)),
            // A list of an encrypted store has it without bytes, beside heads that were decrypted.
            Err(error) if error.code == ErrorCode::WrongKey && head.value.is_empty() => {
                let what =
                    format!("the head of session \"{id}\" cannot be read: {} ({})", error.message, unread.message);
                Ok((SessionHead::new(id, 0), vec![Finding::warning(FindingCode::Malformed, what)]))
            }
            Err(error) => Err(error),
        },
    }
}

/// Reads and folds the records of the log's branch from `next` up to but not including `end`. Later ones belong to a
/// later head.
pub(super) async fn read_log(store: &dyn LogStore, log: &mut SessionLog, (mut next, end): (u64, u64)) -> Result<()> {
    let (id, branch) = (log.head.id.clone(), log.head.branch.clone());
    for (from, past) in branch.ranges(end) {
        let from = from.max(next);
        if from < past {
            let query = Query { from, to: (past - 1).min(MAX_KEY), ..Query::all(Table::Log) };
            store.read_parts(&id, query, &mut |records| log.add_records(&records, &mut next, end)).await?;
        }
    }
    if end != u64::MAX {
        log.check_end(next, end);
    }
    Ok(())
}

/// What a refresh has read, before the log is changed.
struct StoredChange {
    head: SessionHead,
    revision: u64,
    lineage: u64,
    /// The generation of the log that it was read for.
    generation: u64,
    /// The key of the first record that this log lacked.
    next: u64,
    /// The number of additions that this log had.
    additions: u64,
    is_another_session: bool,
    /// Messages were erased from what was read.
    is_erased: bool,
    /// The branches, if they were read.
    directory: Option<BranchDirectory>,
    findings: Report,
    /// What the stored head has of another branch.
    displaced: Option<BranchState>,
}

/// Reads what other writers appended. Returns true if something changed.
///
/// # Errors
/// If the store cannot be read.
pub async fn refresh(store: &dyn LogStore, cell: &RefCell<SessionLog>) -> Result<bool> {
    // No recursion: a replaced session has no unread records any more.
    Box::pin(read_older(store, cell)).await?;
    let (id, generation, next, additions) = {
        let log = cell.borrow();
        (log.head.id.clone(), log.generation, log.head.next_record, log.addition_count())
    };
    let Some(stored) = store.head(&id).await? else {
        if cell.borrow().revision == 0 {
            return Ok(false);
        }
        let why = why_gone(store, &id).await?;
        cell.borrow_mut().reset_because(why);
        return Ok(true);
    };
    let lineage = store.lineage(&id);
    let is_same = |log: &SessionLog| stored.revision == log.stored_revision && log.revision > 0;
    if is_same(&cell.borrow()) && cell.borrow().lineage == lineage {
        return Ok(false);
    }
    let Ok(head) = open_record::<SessionHead>(RecordKind::Head, &stored.value) else {
        reopen(store, cell).await?;
        return Ok(true);
    };
    let is_erased = cell.borrow().head.erasures != head.erasures;
    // A branch without a record of its own is forked again, at a place that may be another one now.
    let is_left = is_erased && cell.borrow().is_unborn();
    let is_another_session = is_left || is_replaced(&cell.borrow(), (&head, lineage));
    let mut change = StoredChange {
        head,
        revision: stored.revision,
        lineage,
        generation,
        next,
        additions,
        is_another_session,
        is_erased,
        directory: None,
        findings: Report::new(),
        displaced: None,
    };
    keep_to_branch(store, cell, &mut change).await?;
    add_what_is_new(store, cell, change).await
}

/// Returns true if what was read belongs to another session than this head: it was deleted and created again, or
/// another side of a fork is its history.
fn is_replaced(log: &SessionLog, (head, lineage): (&SessionHead, u64)) -> bool {
    log.lineage != lineage || log.head.born != 0 && head.born != log.head.born || log.read_only.is_some()
}

/// Gives a stored head the branch of the log, and reads which branches are new.
async fn keep_to_branch(store: &dyn LogStore, cell: &RefCell<SessionLog>, change: &mut StoredChange) -> Result<()> {
    let (own, known) = {
        let head = &cell.borrow().head;
        (head.branch.number, (head.branch_count, head.begun_forks))
    };
    let stored = &mut change.head;
    let is_another_branch = !change.is_another_session && own != stored.branch.number;
    let is_anew = change.is_another_session || change.is_erased;
    if !is_anew && !is_another_branch && known == (stored.branch_count, stored.begun_forks) {
        return Ok(());
    }
    let mut directory = if is_anew { BranchDirectory::default() } else { cell.borrow().directory.clone() };
    if directory.is_partial() && !is_another_branch {
        // Whether the branch has got its first message elsewhere. The other rows are left out still.
        if directory.row(own).is_some_and(|row| row.first.is_none()) {
            change.findings = read_row(store, &stored.id, &mut directory, own).await?;
        }
    } else if stored.branch_count > 0 {
        let own = Some(own).filter(|_| is_another_branch);
        change.findings = read_new_rows(store, &stored.id, &mut directory, (stored.branch_count, own)).await?;
    }
    if is_another_branch {
        change.displaced = Some(cell.borrow().keep_branch(stored, &directory));
    }
    change.directory = Some(directory);
    Ok(())
}

/// Reads the records that the log lacks, and adds them. Returns true if something changed that a listener waits for.
async fn add_what_is_new(store: &dyn LogStore, cell: &RefCell<SessionLog>, change: StoredChange) -> Result<bool> {
    let StoredChange { head, revision, next, .. } = change;
    let restarted = change.is_another_session || change.is_erased || head.next_record < next;
    let from = if restarted { 0 } else { next };
    // All records are read before the log is borrowed: no borrow is held across an await.
    let records = read_records(store, &head, from).await?;
    let first_addition = if restarted { 0 } else { change.additions };
    let additions = read_additions(store, &head.id, (first_addition, head.additions)).await?;
    let mut log = cell.borrow_mut();
    // Another branch is shown meanwhile, or what was read is known already.
    if log.generation != change.generation || log.stored_revision >= revision && !restarted {
        return Ok(true);
    }
    let known = restarted.then(|| log.directory.clone());
    if restarted {
        log.reset();
        log.head.branch = head.branch.clone();
    }
    log.findings.extend(change.findings);
    if let Some(mut directory) = change.directory.or(known) {
        if directory.is_partial() {
            directory.add_newer(&log.directory);
        }
        log.set_directory(directory);
    }
    log.displaced = change.displaced;
    let mut next = from;
    log.queue_additions(&additions);
    log.add_records(&records, &mut next, head.next_record);
    log.check_end(next, head.next_record);
    log.apply_last_additions(head.additions);
    // A renewed lease is nothing that a listener waits for.
    let changed = restarted || !records.is_empty() || log.head.without_leases() != head.without_leases();
    log.set_head(head);
    log.set_revision(revision);
    log.lineage = change.lineage;
    Ok(changed)
}

/// Reads the records of a head's branch from a key on.
async fn read_records(store: &dyn LogStore, head: &SessionHead, from: u64) -> Result<Vec<Record>> {
    let mut records = Vec::new();
    for (first, past) in head.branch.ranges(head.next_record) {
        let (read, error) = read_pages(store, &head.id, (first.max(from), past)).await;
        error.map_or(Ok(()), Err)?;
        records.extend(read);
    }
    Ok(records)
}

/// Returns the error of writing to a session whose head is gone. A deleted session has a tombstone; one that the store
/// lost has nothing.
async fn why_gone(store: &dyn LogStore, id: &str) -> Result<Error> {
    // Written nowhere: no session has this revision, so the store answers which one it has.
    let probe = store.append(id, MAX_KEY, Batch::default(), "is it deleted").await?;
    if probe == Appended::Conflict(0) {
        let message = "the store has lost the session: its data was removed, but not by `deleteSession`; open the session again to begin a \
                       new one, or restore a backup";
        return Ok(Error::new(ErrorCode::Evicted, message));
    }
    let message = "the session was deleted in the meantime; open it again to begin a new one";
    Ok(Error::new(ErrorCode::NotFound, message))
}

/// Reads the session again. Fields that only the earlier head has are kept.
async fn reopen(store: &dyn LogStore, cell: &RefCell<SessionLog>) -> Result<()> {
    let (id, seed, created_at) = {
        let log = cell.borrow();
        (log.head.id.clone(), log.seed, log.head.created_at)
    };
    let mut fresh = open_session(store, &id, seed, created_at).await?;
    let mut log = cell.borrow_mut();
    fresh.head.adopt(&log.head);
    fresh.generation = log.generation + 1;
    *log = fresh;
    Ok(())
}

/// Rebuilds a head that is older than its log. Fields other than counters are kept.
///
/// # Errors
/// `corrupt_record` if the rebuilt head has the same next record and run.
pub(super) async fn refresh_log(store: &dyn LogStore, cell: &RefCell<SessionLog>) -> Result<()> {
    let (id, seed, revision, next) = {
        let log = cell.borrow();
        let counters = (log.head.next_record, log.head.next_run, log.head.additions);
        (log.head.id.clone(), log.seed, log.stored_revision, counters)
    };
    let mut fresh = SessionLog::new(&id, seed, 0, MergeQueue::new(store));
    fresh.warn(format!("the head of session \"{id}\" is behind its log, so it is rebuilt from log and journals"));
    rebuild(store, &mut fresh, revision).await?;
    if (fresh.head.next_record, fresh.head.next_run, fresh.head.additions) == next {
        return Err(Error::new(
            ErrorCode::CorruptRecord,
            "the session's next record is there already and cannot be told apart; nothing was written over it",
        ));
    }
    let mut log = cell.borrow_mut();
    fresh.head.adopt(&log.head);
    fresh.generation = log.generation + 1;
    *log = fresh;
    Ok(())
}
