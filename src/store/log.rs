//! A session's log, opened: its head and history, read, refreshed and appended to over any [`LogStore`].
//!
//! An append is prepared from what is known, written if the head is still as expected, and otherwise
//! prepared again on what the other writer left: whole, behind it, never dropped and never interleaved (R15).

use super::audit::AuditRow;
use super::distinct::make_distinct;
use super::journal::{JournalChange, write_journal};
use super::numbering::number;
use super::rebuild::{LogSurvey, Rebuilt, rebuild_head};
use super::record::{RecordKind, open_record, seal_record};
use super::{Appended, Batch, LogStore, MAX_KEY, PAGE_BYTES, Query, Record, StoredHead, Table};
use crate::clock::Ms;
use crate::error::{Code, Error, Result};
use crate::finding::{Action, Finding, FindingCode, Report};
use crate::history::{History, HistoryEntry, LogRecord, highest_source};
use crate::id::{IdMap, Seed};
use crate::session_head::SessionHead;
use std::cell::RefCell;

/// So often another writer may come first before an append gives up.
const MAX_CONFLICTS: u32 = 200;

/// A session as it was last read.
pub struct SessionLog {
    /// The head.
    pub head: SessionHead,
    /// Its revision; 0 for a session that is not stored yet.
    pub revision: u64,
    /// The revision that the store has: another one only where it lost the head, which was rebuilt.
    stored_revision: u64,
    /// The least revision that the next append makes.
    floor: u64,
    survey: LogSurvey,
    /// What happened.
    pub history: History,
    /// What reading found: records that do not decode, or are gone (R7).
    pub findings: Report,
    /// Counts reloads: what was derived from an earlier history is void.
    pub generation: u64,
    /// Names of the appends whose records were read or written here.
    operations: IdMap<()>,
    read_only: Option<Error>,
    seed: Seed,
}

/// What an append is to write.
#[derive(Default)]
pub struct Change {
    /// The unique name of the append, by which a repeated attempt is recognized. It must be unique over all processes, so it must not
    /// come from an id source that may return an id twice.
    pub operation: String,
    /// The run that makes it.
    pub run: Option<String>,
    /// When.
    pub at: Ms,
    /// What happened, not numbered yet.
    pub entries: Vec<HistoryEntry>,
    /// The unfinished run's journal.
    pub journal: Option<JournalChange>,
    /// The highest source number that was given out for it: more than `entries` hold where some is left out (R9).
    pub sources: Option<u64>,
    /// Ids of messages that the caller chose. If history has one of these, the append fails; any other id in use is replaced.
    pub caller_ids: Vec<String>,
    /// Only if history is still as it was at this [`history_revision`](SessionHead::history_revision).
    pub expected: Option<u64>,
    /// Changes to the head alone.
    pub edit: Option<HeadEdit>,
}

/// A change to the head alone; done again on what another writer left.
pub type HeadEdit = Box<dyn Fn(&mut SessionHead)>;

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
            floor: 0,
            survey: LogSurvey::default(),
            history: History::new(seed),
            findings: Report::new(),
            generation: 0,
            operations: IdMap::with_seed(seed),
            read_only: None,
            seed,
        }
    }

    /// Forgets what was read.
    fn begin_anew(&mut self) {
        let generation = self.generation + 1;
        *self = Self { generation, ..Self::new(&self.head.id, self.seed, self.head.created_at) };
    }

    /// Forgets what was read, for good.
    pub fn release(&mut self) {
        self.begin_anew();
        self.read_only = Some(Error::new(Code::Closed, "the store of this session was closed; `open` again"));
    }

    /// Whether it can be written to; the reason where not.
    ///
    /// # Errors
    /// `unsupported_version` or `corrupt_record`, as reading found.
    pub fn writable(&self) -> Result<()> {
        self.read_only.clone().map_or(Ok(()), Err)
    }

    /// Whether the session was deleted after it was opened. It stays empty; a new session of the same id gets another log.
    #[must_use]
    pub fn is_deleted(&self) -> bool {
        self.read_only.as_ref().is_some_and(|error| error.code == Code::NotFound)
    }

    fn prepare(&self, change: &Change) -> Result<Prepared> {
        self.writable()?;
        if let Some(expected) = change.expected {
            let actual = self.head.history_revision;
            // A store revision is accepted, too: it also counts changes of the head (a title, the state bag), not of history.
            if expected < actual || expected > self.revision {
                let sentence = "another writer appended to the session; read it again before appending";
                return Err(Error::new(Code::Conflict, sentence).with(|details| {
                    details.number("expected", expected).number("revision", actual);
                }));
            }
        }
        let revision = (self.stored_revision + 1).max(self.floor);
        let mut head = self.head.clone();
        let mut batch = Batch { at_least: self.floor, ..Batch::default() };
        head.updated_at = head.updated_at.max(change.at);
        if head.born == 0 {
            head.born = revision;
            head.created_at = change.at;
            head.updated_at = change.at;
        }
        if let Some(edit) = &change.edit {
            edit(&mut head);
        }
        let mut entries = change.entries.clone();
        make_distinct(&self.history, &mut entries, &change.caller_ids)?;
        let mut entries = number(&self.history, &mut head, entries);
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

    /// Writes a log record with these entries into the batch, and their audit rows; gives the entries back.
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
            let Some(row) = AuditRow::of(&self.history, entry, key) else { continue };
            // A result changes the row of its call, which is there.
            let rows = if matches!(entry, HistoryEntry::Result(_)) { &mut batch.replace } else { &mut batch.put };
            rows.push(row.record());
        }
        record.entries
    }

    fn applied(&mut self, revision: u64, operation: &str, prepared: Prepared) {
        // Otherwise a refresh has read it already.
        if revision > self.revision {
            if !prepared.entries.is_empty() {
                self.operations.insert(operation.to_owned(), ());
            }
            for entry in prepared.entries {
                self.history.apply(entry);
            }
            self.survey.next_record = prepared.head.next_record;
            self.take_revision(revision);
            self.take_head(prepared.head);
        }
    }

    /// The revision of a head that the store has.
    fn take_revision(&mut self, revision: u64) {
        self.revision = revision;
        self.stored_revision = revision;
        self.floor = 0;
    }

    fn take_head(&mut self, head: SessionHead) {
        self.history.raise_highest_source(u64::try_from(head.source_high_water).ok());
        self.head = head;
    }

    /// Whether the change is in history already: the reply of an earlier attempt was lost, and a refresh has read its record.
    fn holds(&self, change: &Change) -> bool {
        !change.entries.is_empty() && self.operations.contains_key(&change.operation)
    }

    fn found(&mut self, what: String) {
        self.findings.push(Finding::warning(FindingCode::Malformed, what));
    }

    fn lost(&mut self, gone: u64) {
        self.found(format!("{gone} log records at the end of session \"{}\" are gone", self.head.id));
    }

    fn take_records(&mut self, records: &[Record], next: &mut u64) {
        for record in records {
            if record.key > *next {
                let gone = record.key - *next;
                self.found(format!(
                    "{gone} log records of session \"{}\" are gone; the history before and after them is readable",
                    self.head.id
                ));
            }
            *next = record.last_key.unwrap_or(record.key) + 1;
            self.survey.next_record = self.survey.next_record.max(*next);
            let bytes = record.value.len() as u64;
            self.survey.bytes = self.survey.bytes.saturating_add(bytes);
            match open_record::<LogRecord>(RecordKind::Log, &record.value) {
                Ok(log) => {
                    self.survey.read(&log.mark, log.at);
                    self.operations.insert(log.operation, ());
                    for entry in log.entries {
                        self.history.apply(entry);
                    }
                }
                Err(error) => self.unreadable(record.key, bytes, &error),
            }
        }
    }

    fn unreadable(&mut self, key: u64, bytes: u64, error: &Error) {
        self.survey.missed(bytes);
        if error.code == Code::UnsupportedVersion {
            self.read_only = Some(error.clone());
        }
        let what = format!("log record {key} of session \"{}\" cannot be read: {}", self.head.id, error.message);
        self.findings.push(Finding::warning(FindingCode::Malformed, what).with_action(Action::Kept));
    }
}

/// Opens a session: the head's read alone for an empty one, else one read a page (R6). A head that cannot be read is rebuilt.
///
/// # Errors
/// When the store cannot be read: never an empty history instead.
pub async fn open_session(store: &dyn LogStore, id: &str, seed: Seed, now: Ms) -> Result<SessionLog> {
    let mut log = SessionLog::new(id, seed, now);
    let Some(head) = store.head(id).await? else { return Ok(log) };
    match open_record::<SessionHead>(RecordKind::Head, &head.value) {
        Ok(session) => {
            log.take_revision(head.revision);
            let records = read_log(store, &mut log, id, 0, session.next_record).await;
            log.take_head(session);
            records?;
        }
        Err(error) => {
            log.found(unreadable_head(id, &error));
            rebuild(store, &mut log, head.revision).await?;
            if error.code == Code::UnsupportedVersion {
                log.read_only = Some(error);
            }
        }
    }
    Ok(log)
}

/// What is told of a head that does not decode.
#[must_use]
pub fn unreadable_head(id: &str, error: &Error) -> String {
    format!(
        "the head of session \"{id}\" cannot be read, so it is rebuilt from log and journals, without metadata and state: {}",
        error.message
    )
}

/// Reads everything that the session's tables hold, and makes a head of it.
async fn rebuild(store: &dyn LogStore, log: &mut SessionLog, revision: u64) -> Result<()> {
    let id = log.head.id.clone();
    read_log(store, log, &id, 0, u64::MAX).await?;
    let Rebuilt { head, floor, findings } = rebuild_head(store, &id, &log.survey, &log.history, revision).await?;
    log.findings.extend(findings);
    log.take_head(head);
    log.take_revision(revision);
    log.floor = floor;
    log.revision = revision.max(floor.saturating_sub(1)).max(log.head.history_revision);
    Ok(())
}

/// The head of a session as a list or a search for its runs needs it, and what reading it found.
///
/// # Errors
/// When the store cannot be read.
pub async fn read_head(store: &dyn LogStore, id: &str, head: &StoredHead, seed: Seed) -> Result<(SessionHead, Report)> {
    match open_record::<SessionHead>(RecordKind::Head, &head.value) {
        Ok(session) => Ok((session, Report::new())),
        Err(_) => {
            let log = open_session(store, id, seed, 0).await?;
            Ok((log.head, log.findings))
        }
    }
}

/// Reads records up to `end`, and none that came later: they belong to a later head.
async fn read_log(store: &dyn LogStore, log: &mut SessionLog, id: &str, from: u64, end: u64) -> Result<()> {
    let mut next = from;
    while next < end {
        let records = read_page(store, id, next, end).await?;
        if records.is_empty() {
            if end != u64::MAX {
                log.lost(end - next);
            }
            break;
        }
        log.take_records(&records, &mut next);
    }
    Ok(())
}

async fn read_page(store: &dyn LogStore, id: &str, from: u64, end: u64) -> Result<Vec<Record>> {
    let to = end.saturating_sub(1).min(MAX_KEY);
    store.read(id, Query { from, to, limit_bytes: PAGE_BYTES, ..Query::all(Table::Log) }).await
}

/// Reads what others appended; true when something changed.
///
/// # Errors
/// When the store cannot be read.
pub async fn refresh(store: &dyn LogStore, cell: &RefCell<SessionLog>) -> Result<bool> {
    let (id, revision, next, born) = {
        let log = cell.borrow();
        (log.head.id.clone(), log.stored_revision, log.head.next_record, log.head.born)
    };
    let Some(head) = store.head(&id).await? else {
        if cell.borrow().revision == 0 {
            return Ok(false);
        }
        // Deleted elsewhere: nothing of it is shown, and nothing may be written.
        let mut log = cell.borrow_mut();
        log.begin_anew();
        log.read_only = Some(Error::new(
            Code::NotFound,
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
    // Deleted and begun anew: what was read is another session's.
    let restarted =
        (born != 0 && session.born != born) || session.next_record < next || cell.borrow().read_only.is_some();
    let from = if restarted { 0 } else { next };
    // Read apart first: nothing of the open session is touched across an await.
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
        log.begin_anew();
    }
    let mut next = from;
    log.take_records(&records, &mut next);
    if next < session.next_record {
        log.lost(session.next_record - next);
    }
    log.take_head(session);
    log.take_revision(head.revision);
    Ok(true)
}

/// Opens the session again in the place of what was read; what only the earlier head holds stays.
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

/// The head is behind its log: it is rebuilt, and what it holds beside counters stays.
///
/// # Errors
/// `corrupt_record` when the rebuilt head would write to the same place again.
async fn catch_up(store: &dyn LogStore, cell: &RefCell<SessionLog>) -> Result<()> {
    let (id, seed, revision, next) = {
        let log = cell.borrow();
        (log.head.id.clone(), log.seed, log.stored_revision, (log.head.next_record, log.head.next_run))
    };
    let mut fresh = SessionLog::new(&id, seed, 0);
    fresh.found(format!("the head of session \"{id}\" is behind its log, so it is rebuilt from log and journals"));
    rebuild(store, &mut fresh, revision).await?;
    if (fresh.head.next_record, fresh.head.next_run) == next {
        return Err(Error::new(
            Code::CorruptRecord,
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
        if cell.borrow().holds(change) {
            return Ok(Committed { revision: cell.borrow().head.history_revision, message_ids: Vec::new() });
        }
        let mut prepared = cell.borrow().prepare(change)?;
        let id = prepared.head.id.clone();
        // An operation's outcome is kept by the store: each attempt is an operation of its own.
        let operation = format!("{}.{attempt}", change.operation);
        prepared.batch.check(&operation, store.capabilities().max_value_bytes)?;
        let batch = std::mem::take(&mut prepared.batch);
        match store.append(&id, prepared.expected, batch, &operation).await? {
            Appended::Revision(revision) => {
                let message_ids = message_ids(&prepared.entries);
                let history_revision = prepared.head.history_revision;
                cell.borrow_mut().applied(revision, &change.operation, prepared);
                return Ok(Committed { revision: history_revision, message_ids });
            }
            Appended::Occupied => catch_up(store, cell).await?,
            Appended::Conflict(actual) => {
                let fresh = prepared.expected == 0;
                refresh(store, cell).await?;
                let mut log = cell.borrow_mut();
                // A tombstone: who opened the session after the deletion begins it anew, who had it open before may not.
                if log.revision == 0 && fresh && log.read_only.is_none() {
                    log.take_revision(actual);
                } else if born != 0 && log.head.born != born {
                    return Err(Error::new(
                        Code::NotFound,
                        "the session was deleted in the meantime and begun anew; read it again before appending",
                    ));
                }
            }
        }
    }
    Err(Error::new(Code::Busy, "other writers keep coming first; try again in a moment"))
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
