//! [`SessionLog`]: the head and history of an open session, read, refreshed and appended to over any [`LogStore`].
//!
//! An append is prepared from the known state and written if the head still has the expected revision. Otherwise it is prepared again
//! after what the other writer appended: whole, never dropped and never interleaved (R15).

use super::audit::{AuditRow, keep_unknown_fields};
use super::id_collisions::replace_ids_in_use;
use super::journal::{JournalChange, JournalStep, write_journal};
use super::numbering::assign_numbers;
use super::rebuild::{LogSurvey, Rebuilt, rebuild_head};
use super::record::{RecordKind, is_of_newer_build, open_record, seal_record};
use super::second_results::set_aside_second_results;
use super::{Appended, Batch, LogStore, MAX_KEY, PAGE_BYTES, Query, Record, StoredHead, Table};
use crate::clock::Ms;
use crate::error::{Error, ErrorCode, Result};
use crate::finding::{Action, Finding, FindingCode, Report};
use crate::history::{History, HistoryEntry, LogRecord, highest_source};
use crate::id::{IdMap, Seed};
use crate::session_head::SessionHead;
use std::cell::RefCell;

/// Conflicts after which an append fails with `busy`.
const MAX_CONFLICTS: u32 = 200;

/// A session as it was last read.
pub struct SessionLog {
    /// The head.
    pub head: SessionHead,
    /// The revision of the head; 0 for a session that is not stored yet.
    pub revision: u64,
    /// The revision in the store. It differs from `revision` only if the store lost the head, which was rebuilt.
    stored_revision: u64,
    /// The lowest revision that the next append may have.
    min_revision: u64,
    survey: LogSurvey,
    /// The history that the log contains.
    pub history: History,
    /// Problems found while reading: records that do not decode or are missing (R7).
    pub findings: Report,
    /// Counts reloads. Whatever was derived from the history of an earlier generation is invalid.
    pub generation: u64,
    /// Names of the appends whose records this log has read or written.
    operations: IdMap<()>,
    /// True if a newer build wrote a record of the log, so that audit rows may have fields that this build does not know.
    has_newer_records: bool,
    /// Why the session cannot be written to.
    read_only: Option<Error>,
    seed: Seed,
}

/// The content of an append.
#[derive(Default)]
pub struct Change {
    /// The unique name of the append, by which a repeated attempt is recognized. It must be unique over all processes, so it must not
    /// come from an id source that may return an id twice.
    pub operation: String,
    /// The run that appends.
    pub run: Option<String>,
    /// The time of the append.
    pub at: Ms,
    /// New entries, not numbered yet.
    pub entries: Vec<HistoryEntry>,
    /// The change of an unfinished run's journal.
    pub journal: Option<JournalChange>,
    /// The highest source number assigned by the run. It is above those in `entries` if sources were dropped (R9).
    pub sources: Option<u64>,
    /// Ids of messages that the caller chose. If history has one of these, the append fails; any other id in use is replaced.
    pub caller_ids: Vec<String>,
    /// The [`history_revision`](SessionHead::history_revision) that the session must have, or the append is a conflict.
    pub expected: Option<u64>,
    /// A change of the head only.
    pub edit: Option<HeadEdit>,
}

impl Change {
    /// Returns true for the renewal of a run's lease: nothing else changes.
    fn renews_lease(&self) -> bool {
        self.journal.as_ref().is_some_and(|journal| journal.step == JournalStep::Renew)
    }
}

/// A change of the head only. It is applied again after a conflict.
pub type HeadEdit = Box<dyn Fn(&mut SessionHead)>;

/// An append that is ready to be written.
struct Prepared {
    expected: u64,
    head: SessionHead,
    entries: Vec<HistoryEntry>,
    batch: Batch,
}

impl SessionLog {
    fn new(id: &str, seed: Seed, now: Ms) -> Self {
        Self {
            head: SessionHead::new(id, now),
            revision: 0,
            stored_revision: 0,
            min_revision: 0,
            survey: LogSurvey::default(),
            history: History::new(seed),
            findings: Report::new(),
            generation: 0,
            operations: IdMap::with_seed(seed),
            has_newer_records: false,
            read_only: None,
            seed,
        }
    }

    /// Drops everything that was read.
    fn reset(&mut self) {
        let generation = self.generation + 1;
        *self = Self { generation, ..Self::new(&self.head.id, self.seed, self.head.created_at) };
    }

    /// Drops everything that was read, and rejects writes from now on.
    pub fn release(&mut self) {
        self.reset();
        self.read_only = Some(Error::new(ErrorCode::Closed, "the store of this session was closed; `open` again"));
    }

    /// Checks that the session can be written to.
    ///
    /// # Errors
    /// `unsupported_version`, `not_found` or `closed`: the reason why it cannot.
    pub fn writable(&self) -> Result<()> {
        self.read_only.clone().map_or(Ok(()), Err)
    }

    /// Returns true if the session was deleted after it was opened. The log stays empty; a new session of the same id has another log.
    #[must_use]
    pub fn is_deleted(&self) -> bool {
        self.read_only.as_ref().is_some_and(|error| error.code == ErrorCode::NotFound)
    }

    /// Builds the append from the known state.
    fn prepare(&self, change: &Change) -> Result<Prepared> {
        self.writable()?;
        if let Some(expected) = change.expected {
            let actual = self.head.history_revision;
            // The store's revision is accepted too. It is higher than the history revision: edits of the head (title, state bag) also raise it.
            if expected < actual || expected > self.revision {
                let sentence = "another writer appended to the session; read it again before appending";
                return Err(Error::new(ErrorCode::Conflict, sentence).with(|details| {
                    details.number("expected", expected).number("revision", actual);
                }));
            }
        }
        let revision = (self.stored_revision + 1).max(self.min_revision);
        let mut head = self.head.clone();
        let mut batch = Batch { at_least: self.min_revision, ..Batch::default() };
        if !change.renews_lease() {
            head.updated_at = head.updated_at.max(change.at);
        }
        if head.born == 0 {
            head.born = revision;
            head.created_at = change.at;
            head.updated_at = change.at;
        }
        if let Some(edit) = &change.edit {
            edit(&mut head);
        }
        let mut entries = change.entries.clone();
        set_aside_second_results(&self.history, &mut entries, change.at);
        replace_ids_in_use(&self.history, &mut entries, &change.caller_ids)?;
        let mut entries = assign_numbers(&self.history, &mut head, entries);
        head.raise_highest_source(highest_source(&entries).max(change.sources));
        if !entries.is_empty() {
            entries = self.write_record(&mut head, &mut batch, change, (entries, revision));
        }
        if let Some(journal) = &change.journal {
            write_journal(&mut head, &mut batch, journal, (change.at, revision))?;
        }
        batch.head = seal_record(RecordKind::Head, &head);
        batch.channel = head.channel.clone();
        Ok(Prepared { expected: self.stored_revision, head, entries, batch })
    }

    /// Adds a log record with the entries and their audit rows to the batch. Returns the entries.
    fn write_record(
        &self,
        head: &mut SessionHead,
        batch: &mut Batch,
        change: &Change,
        (entries, revision): (Vec<HistoryEntry>, u64),
    ) -> Vec<HistoryEntry> {
        let key = head.next_record;
        head.next_record += 1;
        head.history_revision = head.history_revision.max(head.born.saturating_sub(1)) + 1;
        let record = LogRecord {
            operation: change.operation.clone(),
            run: change.run.clone(),
            at: change.at,
            mark: head.mark(revision),
            entries,
        };
        let value = seal_record(RecordKind::Log, &record);
        head.log_bytes = head.log_bytes.saturating_add(value.len() as u64);
        batch.put.push(Record { table: Table::Log, key, last_key: None, index: None, value });
        for entry in &record.entries {
            let Some(row) = AuditRow::of_entry(&self.history, entry, key) else { continue };
            // A result replaces the row of its call.
            let rows = if matches!(entry, HistoryEntry::Result(_)) { &mut batch.replace } else { &mut batch.put };
            rows.push(row.record());
        }
        record.entries
    }

    /// Applies a committed append to the log in memory.
    fn applied(&mut self, revision: u64, operation: &str, prepared: Prepared) {
        // At a lower revision, a refresh has read it already.
        if revision > self.revision {
            if !prepared.entries.is_empty() {
                self.operations.insert(operation.to_owned(), ());
            }
            for entry in prepared.entries {
                self.history.apply(entry);
            }
            self.survey.next_record = prepared.head.next_record;
            self.set_revision(revision);
            self.set_head(prepared.head);
        }
    }

    /// Sets the revision of the head in the store.
    fn set_revision(&mut self, revision: u64) {
        self.revision = revision;
        self.stored_revision = revision;
        self.min_revision = 0;
    }

    fn set_head(&mut self, head: SessionHead) {
        self.history.raise_highest_source(u64::try_from(head.source_high_water).ok());
        self.head = head;
    }

    /// Returns true if the change is in history already: the reply of an earlier attempt was lost, and a refresh has read its record.
    fn has_applied(&self, change: &Change) -> bool {
        !change.entries.is_empty() && self.operations.contains_key(&change.operation)
    }

    fn warn(&mut self, sentence: String) {
        self.findings.push(Finding::warning(FindingCode::Malformed, sentence));
    }

    fn warn_missing_end(&mut self, gone: u64) {
        self.warn(format!("{gone} log records at the end of session \"{}\" are gone", self.head.id));
    }

    /// Folds log records into the history. `next` is the key of the next expected record.
    fn add_records(&mut self, records: &[Record], next: &mut u64) {
        for record in records {
            if record.key > *next {
                let gone = record.key - *next;
                self.warn(format!(
                    "{gone} log records of session \"{}\" are gone; the history before and after them is readable",
                    self.head.id
                ));
            }
            *next = record.last_key.unwrap_or(record.key) + 1;
            self.survey.next_record = self.survey.next_record.max(*next);
            let bytes = record.value.len() as u64;
            self.survey.bytes = self.survey.bytes.saturating_add(bytes);
            self.has_newer_records |= is_of_newer_build(&record.value);
            match open_record::<LogRecord>(RecordKind::Log, &record.value) {
                Ok(log) => {
                    self.survey.read(&log.mark, log.at);
                    self.operations.insert(log.operation, ());
                    for entry in log.entries {
                        self.history.apply(entry);
                    }
                }
                Err(error) => self.add_unreadable(record.key, bytes, &error),
            }
        }
    }

    /// Reports a record that does not decode.
    fn add_unreadable(&mut self, key: u64, bytes: u64, error: &Error) {
        self.survey.missed(bytes);
        if error.code == ErrorCode::UnsupportedVersion {
            self.read_only = Some(error.clone());
        }
        let what = format!("log record {key} of session \"{}\" cannot be read: {}", self.head.id, error.message);
        self.findings.push(Finding::warning(FindingCode::Malformed, what).with_action(Action::Kept));
    }
}

/// Opens a session. Reads the head and then the log in pages of [`PAGE_BYTES`]; an empty session costs one read (R6). A damaged head is
/// rebuilt.
///
/// # Errors
/// If the store cannot be read. The result is never an empty history instead.
pub async fn open_session(store: &dyn LogStore, id: &str, seed: Seed, now: Ms) -> Result<SessionLog> {
    let mut log = SessionLog::new(id, seed, now);
    let Some(head) = store.head(id).await? else { return Ok(log) };
    match open_record::<SessionHead>(RecordKind::Head, &head.value) {
        Ok(session) => {
            log.set_revision(head.revision);
            let records = read_log(store, &mut log, id, 0, session.next_record).await;
            log.set_head(session);
            records?;
        }
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

/// Returns the message of a finding about a head that does not decode.
#[must_use]
pub fn unreadable_head(id: &str, error: &Error) -> String {
    format!(
        "the head of session \"{id}\" cannot be read, so it is rebuilt from log and journals, without metadata and state: {}",
        error.message
    )
}

/// Reads all tables of the session and rebuilds the head from them.
async fn rebuild(store: &dyn LogStore, log: &mut SessionLog, revision: u64) -> Result<()> {
    let id = log.head.id.clone();
    read_log(store, log, &id, 0, u64::MAX).await?;
    let Rebuilt { head, min_revision, findings } =
        rebuild_head(store, &id, &log.survey, &log.history, revision).await?;
    log.findings.extend(findings);
    log.set_head(head);
    log.set_revision(revision);
    log.min_revision = min_revision;
    log.revision = revision.max(min_revision.saturating_sub(1)).max(log.head.history_revision);
    Ok(())
}

/// Returns the head of a session, for lists and for the search for pending runs, and the problems found. A damaged head is rebuilt.
///
/// # Errors
/// If the store cannot be read.
pub async fn read_head(store: &dyn LogStore, id: &str, head: &StoredHead, seed: Seed) -> Result<(SessionHead, Report)> {
    match open_record::<SessionHead>(RecordKind::Head, &head.value) {
        Ok(session) => Ok((session, Report::new())),
        Err(_) => {
            let log = open_session(store, id, seed, 0).await?;
            Ok((log.head, log.findings))
        }
    }
}

/// Reads the records from `from` up to but not including `end`. Later ones belong to a later head.
async fn read_log(store: &dyn LogStore, log: &mut SessionLog, id: &str, from: u64, end: u64) -> Result<()> {
    let mut next = from;
    while next < end {
        let records = read_page(store, id, next, end).await?;
        if records.is_empty() {
            if end != u64::MAX {
                log.warn_missing_end(end - next);
            }
            break;
        }
        log.add_records(&records, &mut next);
    }
    Ok(())
}

async fn read_page(store: &dyn LogStore, id: &str, from: u64, end: u64) -> Result<Vec<Record>> {
    let to = end.saturating_sub(1).min(MAX_KEY);
    store.read(id, Query { from, to, limit_bytes: PAGE_BYTES, ..Query::all(Table::Log) }).await
}

/// Reads what other writers appended. Returns true if something changed.
///
/// # Errors
/// If the store cannot be read.
pub async fn refresh(store: &dyn LogStore, cell: &RefCell<SessionLog>) -> Result<bool> {
    let (id, revision, next, born) = {
        let log = cell.borrow();
        (log.head.id.clone(), log.stored_revision, log.head.next_record, log.head.born)
    };
    let Some(head) = store.head(&id).await? else {
        if cell.borrow().revision == 0 {
            return Ok(false);
        }
        // Another tab or process deleted the session: it is empty, and may not be written to.
        let mut log = cell.borrow_mut();
        log.reset();
        log.read_only = Some(Error::new(
            ErrorCode::NotFound,
            "the session was deleted in the meantime; open it again to begin a new one",
        ));
        return Ok(true);
    };
    if head.revision == revision && cell.borrow().revision > 0 {
        return Ok(false);
    }
    let Ok(session) = open_record::<SessionHead>(RecordKind::Head, &head.value) else {
        reopen(store, cell).await?;
        return Ok(true);
    };
    // The session was deleted and created again: what was read belongs to another session.
    let restarted =
        (born != 0 && session.born != born) || session.next_record < next || cell.borrow().read_only.is_some();
    let from = if restarted { 0 } else { next };
    // All records are read before the log is borrowed: no borrow is held across an await.
    let mut records = Vec::new();
    let mut at = from;
    while at < session.next_record {
        let mut read = read_page(store, &id, at, session.next_record).await?;
        let Some(last) = read.last() else { break };
        at = last.last_key.unwrap_or(last.key) + 1;
        records.append(&mut read);
    }
    let mut log = cell.borrow_mut();
    if log.stored_revision >= head.revision && !restarted {
        return Ok(true);
    }
    if restarted {
        log.reset();
    }
    let mut next = from;
    log.add_records(&records, &mut next);
    if next < session.next_record {
        log.warn_missing_end(session.next_record - next);
    }
    // A renewed lease is nothing that a listener waits for.
    let changed = restarted || !records.is_empty() || log.head.without_leases() != session.without_leases();
    log.set_head(session);
    log.set_revision(head.revision);
    Ok(changed)
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
async fn refresh_log(store: &dyn LogStore, cell: &RefCell<SessionLog>) -> Result<()> {
    let (id, seed, revision, next) = {
        let log = cell.borrow();
        (log.head.id.clone(), log.seed, log.stored_revision, (log.head.next_record, log.head.next_run))
    };
    let mut fresh = SessionLog::new(&id, seed, 0);
    fresh.warn(format!("the head of session \"{id}\" is behind its log, so it is rebuilt from log and journals"));
    rebuild(store, &mut fresh, revision).await?;
    if (fresh.head.next_record, fresh.head.next_run) == next {
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

/// The outcome of an append.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The revision of history after it.
    pub revision: u64,
    /// The ids of its messages as stored, in order; empty if an earlier attempt had stored them.
    pub message_ids: Vec<String>,
}

/// Appends a change after what other writers have appended since the last refresh.
///
/// # Errors
/// `conflict` if history is not at the expected revision, or the run has another owner; `invalid_input` if another writer has stored a
/// message with one of the caller's ids; `unsupported_version`, `not_found` if the session cannot be written; and the errors of the
/// store. Nothing is written then.
pub async fn commit(store: &dyn LogStore, cell: &RefCell<SessionLog>, change: &Change) -> Result<Committed> {
    let born = cell.borrow().head.born;
    for attempt in 0..MAX_CONFLICTS {
        if cell.borrow().has_applied(change) {
            return Ok(Committed { revision: cell.borrow().head.history_revision, message_ids: Vec::new() });
        }
        let mut prepared = cell.borrow().prepare(change)?;
        let id = prepared.head.id.clone();
        // The store remembers the outcome of an operation, so each attempt has a name of its own.
        let operation = format!("{}.{attempt}", change.operation);
        prepared.batch.check(&operation, store.capabilities().max_value_bytes)?;
        let mut batch = std::mem::take(&mut prepared.batch);
        if cell.borrow().has_newer_records {
            keep_unknown_fields(store, &id, &mut batch.replace).await?;
        }
        match store.append(&id, prepared.expected, batch, &operation).await? {
            Appended::Revision(revision) => {
                let message_ids = message_ids(&prepared.entries);
                let history_revision = prepared.head.history_revision;
                cell.borrow_mut().applied(revision, &change.operation, prepared);
                return Ok(Committed { revision: history_revision, message_ids });
            }
            Appended::Occupied => refresh_log(store, cell).await?,
            Appended::Conflict(actual) => {
                let fresh = prepared.expected == 0;
                refresh(store, cell).await?;
                let mut log = cell.borrow_mut();
                // The head is a tombstone. A session that was opened after the deletion is created again; one opened before is not.
                if log.revision == 0 && fresh && log.read_only.is_none() {
                    log.set_revision(actual);
                } else if born != 0 && log.head.born != born {
                    return Err(Error::new(
                        ErrorCode::NotFound,
                        "the session was deleted in the meantime and begun anew; read it again before appending",
                    ));
                }
            }
        }
    }
    Err(Error::new(ErrorCode::Busy, "the append conflicted with other writers too often; try again in a moment"))
}

fn message_ids(entries: &[HistoryEntry]) -> Vec<String> {
    let mut ids = Vec::new();
    for entry in entries {
        if let HistoryEntry::Message(message) = entry {
            ids.push(message.id.clone());
        }
    }
    ids
}
