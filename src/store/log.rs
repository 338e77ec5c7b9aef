//! A session's log, opened: its head and history, read, refreshed and appended to over any [`LogStore`].
//!
//! An append is prepared from what is known, written if the head is still as expected, and otherwise
//! prepared again on what the other writer left: whole, behind it, never dropped and never interleaved (R15).

use super::audit::AuditRow;
use super::distinct::make_distinct;
use super::numbering::number;
use super::record::{Kind, open_record, seal_record};
use super::{Appended, Batch, LogStore, MAX_KEY, Query, Record, Table};
use crate::clock::Ms;
use crate::error::{Code, Error, Result};
use crate::finding::{Action, Finding, Report};
use crate::history::{Entry, History, LogRecord, highest_source};
use crate::id::{IdMap, Seed};
use crate::session::{RunEntry, Session};
use std::cell::RefCell;

/// So much is read at once.
const PAGE_BYTES: u64 = 1024 * 1024;

/// So often another writer may come first before an append gives up.
const MAX_CONFLICTS: u32 = 200;

/// Journal keys of one run: its number, then the entry's.
const RUN_BITS: u32 = 20;

/// A session as it was last read.
pub struct SessionLog {
    /// The head.
    pub head: Session,
    /// The store's revision of it; 0 for a session that is not stored yet.
    pub revision: u64,
    /// What happened.
    pub history: History,
    /// What reading found: records that do not decode, or are gone (R7).
    pub findings: Report,
    /// Counts reloads: what was derived from an earlier history is void.
    pub generation: u64,
    /// The operations of the records that were read or appended.
    operations: IdMap<()>,
    read_only: Option<Error>,
    seed: Seed,
}

/// What an append is to write.
#[derive(Default)]
pub struct Change {
    /// The append's own name. No two appends have the same one, in no process: it is how a repeated append is known, so it must
    /// not come from an id source that may repeat itself.
    pub operation: String,
    /// The run that makes it.
    pub run: Option<String>,
    /// When.
    pub at: Ms,
    /// What happened, not numbered yet.
    pub entries: Vec<Entry>,
    /// The unfinished run's journal.
    pub journal: Option<JournalChange>,
    /// The highest source number that was given out for it: more than `entries` hold where some is left out (R9).
    pub sources: Option<u64>,
    /// Ids of messages that the caller named: the append is refused where history has one of them. Others are renamed then.
    pub named: Vec<String>,
    /// Only if history is still as it was at this [`history_revision`](Session::history_revision).
    pub expected: Option<u64>,
    /// Changes to the head alone.
    pub edit: Option<HeadEdit>,
}

/// A change to the head alone; done again on what another writer left.
pub type HeadEdit = Box<dyn Fn(&mut Session)>;

/// What becomes of a run's journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalChange {
    /// The run.
    pub run: String,
    /// The owner that writes; 0 begins the run.
    pub epoch: u32,
    /// Until when the owner may be taken for alive.
    pub lease_until: Ms,
    /// What to do.
    pub step: JournalStep,
}

/// The steps of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JournalStep {
    /// The run begins: its first entries.
    Begin(Vec<Vec<u8>>),
    /// More entries.
    Write(Vec<Vec<u8>>),
    /// The run failed, and waits: more entries.
    Fail {
        /// The entries.
        entries: Vec<Vec<u8>>,
        /// The error's code and sentence, for who only reads the head.
        why: (String, String),
    },
    /// Another owner takes the run over, whose epoch is one more.
    Take,
    /// The run is over: the journal goes.
    End,
}

struct Prepared {
    expected: u64,
    head: Session,
    entries: Vec<Entry>,
    batch: Batch,
}

impl SessionLog {
    fn new(id: &str, seed: Seed, now: Ms) -> Self {
        Self {
            head: Session::new(id, now),
            revision: 0,
            history: History::new(seed),
            findings: Report::new(),
            generation: 0,
            operations: IdMap::with_hasher(seed),
            read_only: None,
            seed,
        }
    }

    /// Forgets what was read.
    fn begin_anew(&mut self) {
        let generation = self.generation + 1;
        *self = Self { generation, ..Self::new(&self.head.id, self.seed, self.head.created_at) };
    }

    /// Whether it can be written to; the reason where not.
    ///
    /// # Errors
    /// `unsupported_version` or `corrupt_record`, as reading found.
    pub fn writable(&self) -> Result<()> {
        self.read_only.clone().map_or(Ok(()), Err)
    }

    /// Whether the session was deleted after it was opened: it stays empty, and a new one of its id is opened apart.
    #[must_use]
    pub fn is_deleted(&self) -> bool {
        self.read_only.as_ref().is_some_and(|error| error.code == Code::NotFound)
    }

    fn prepare(&self, change: &Change) -> Result<Prepared> {
        self.writable()?;
        if let Some(expected) = change.expected {
            let actual = self.head.history_revision;
            // One that counts changes of the head as well (a title, the state bag) means the same history.
            if expected < actual || expected > self.revision {
                let sentence = "another writer appended to the session; read it again before appending";
                return Err(Error::new(Code::Conflict, sentence).with(|details| {
                    details.number("expected", expected).number("revision", actual);
                }));
            }
        }
        let mut head = self.head.clone();
        let mut batch = Batch::default();
        head.updated_at = head.updated_at.max(change.at);
        if head.born == 0 {
            head.born = self.revision + 1;
            head.created_at = change.at;
            head.updated_at = change.at;
        }
        if let Some(edit) = &change.edit {
            edit(&mut head);
        }
        let mut entries = change.entries.clone();
        make_distinct(&self.history, &mut entries, &change.named)?;
        let mut entries = number(&self.history, &mut head, entries);
        head.note_source(highest_source(&entries).max(change.sources));
        if !entries.is_empty() {
            let key = head.next_record;
            let (operation, run) = (change.operation.clone(), change.run.clone());
            let record = LogRecord { operation, run, at: change.at, entries };
            let value = seal_record(Kind::Log, &record);
            entries = record.entries;
            head.next_record += 1;
            head.log_bytes = head.log_bytes.saturating_add(value.len() as u64);
            head.history_revision = head.history_revision.max(head.born.saturating_sub(1)) + 1;
            batch.put.push(Record { table: Table::Log, key, last_key: None, index: None, value });
            for entry in &entries {
                if let Some(row) = AuditRow::of(&self.history, entry, key) {
                    batch.put.push(row.record());
                }
            }
        }
        if let Some(journal) = &change.journal {
            write_journal(&mut head, &mut batch, journal, change.at)?;
        }
        batch.head = seal_record(Kind::Head, &head);
        batch.channel = head.channel.clone();
        Ok(Prepared { expected: self.revision, head, entries, batch })
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
            self.revision = revision;
            self.take_head(prepared.head);
        }
    }

    fn take_head(&mut self, head: Session) {
        self.history.note_source(u64::try_from(head.source_high_water).ok());
        self.head = head;
    }

    /// Whether the change is in history already: its reply was lost, and a refresh has read it.
    fn holds(&self, change: &Change) -> bool {
        !change.entries.is_empty() && self.operations.contains_key(&change.operation)
    }

    fn lost(&mut self, gone: u64) {
        self.findings
            .push(Finding::warning("malformed", format!("{gone} log records at the end of the session are gone")));
    }

    fn take_records(&mut self, records: &[Record], next: &mut u64) {
        for record in records {
            if record.key > *next {
                let gone = record.key - *next;
                self.findings.push(Finding::warning(
                    "malformed",
                    format!("{gone} log records are gone; the history before and after them is readable"),
                ));
            }
            *next = record.last_key.unwrap_or(record.key) + 1;
            match open_record::<LogRecord>(Kind::Log, &record.value) {
                Ok(log) => {
                    self.operations.insert(log.operation, ());
                    for entry in log.entries {
                        self.history.apply(entry);
                    }
                }
                Err(error) => {
                    if error.code == Code::UnsupportedVersion {
                        self.read_only = Some(error.clone());
                    }
                    let finding = Finding::warning(
                        "malformed",
                        format!("log record {} of the session cannot be read: {}", record.key, error.message),
                    );
                    self.findings.push(finding.did(Action::Kept));
                }
            }
        }
    }
}

/// Key of a run's first journal entry.
fn first_journal_key(run: &RunEntry) -> u64 {
    run.number << RUN_BITS
}

fn write_journal(head: &mut Session, batch: &mut Batch, change: &JournalChange, now: Ms) -> Result<()> {
    if let JournalStep::Begin(_) = change.step {
        if head.run(&change.run).is_some() {
            return Err(Error::new(
                Code::Conflict,
                "another tab or process began a run of this id in the meantime; begin again",
            ));
        }
        drop_stopped_runs(head, batch);
        let number = head.next_run;
        head.next_run += 1;
        head.runs.push(RunEntry {
            id: change.run.clone(),
            number,
            entries: 0,
            epoch: change.epoch,
            lease_until: change.lease_until,
            started_at: now,
            failed: None,
        });
    }
    let Some(at) = head.runs.iter().position(|run| run.id == change.run) else {
        return Err(Error::new(Code::Conflict, "the run is over: it was finished or discarded elsewhere"));
    };
    let Some(run) = head.runs.get_mut(at) else { return Ok(()) };
    let taken = matches!(change.step, JournalStep::Take);
    if run.epoch != change.epoch {
        return Err(Error::new(
            Code::Conflict,
            "another owner took the run over; this one may not write to it any more",
        ));
    }
    run.epoch += u32::from(taken);
    run.lease_until = change.lease_until;
    match &change.step {
        JournalStep::Begin(values) | JournalStep::Write(values) | JournalStep::Fail { entries: values, .. } => {
            for value in values {
                let key = first_journal_key(run) + run.entries;
                run.entries += 1;
                batch.put.push(Record { table: Table::Runs, key, last_key: None, index: None, value: value.clone() });
            }
            run.failed = if let JournalStep::Fail { why, .. } = &change.step { Some(why.clone()) } else { None };
        }
        JournalStep::Take => run.failed = None,
        JournalStep::End => {
            remove_journal(run, batch);
            head.runs.remove(at);
        }
    }
    Ok(())
}

/// Drops the runs that were stopped: the next one takes their place.
fn drop_stopped_runs(head: &mut Session, batch: &mut Batch) {
    for run in head.runs.iter().filter(|run| run.is_stopped()) {
        remove_journal(run, batch);
    }
    head.runs.retain(|run| !run.is_stopped());
}

fn remove_journal(run: &RunEntry, batch: &mut Batch) {
    let first = first_journal_key(run);
    batch.remove.extend((first..first + run.entries).map(|key| (Table::Runs, key)));
}

/// Opens a session: the head's read alone for an empty one, else one read a page (R6).
///
/// # Errors
/// When the store cannot be read: never an empty history instead.
pub async fn open_session(store: &dyn LogStore, id: &str, seed: Seed, now: Ms) -> Result<SessionLog> {
    let mut log = SessionLog::new(id, seed, now);
    if let Some(head) = store.head(id).await? {
        log.revision = head.revision;
        match open_record::<Session>(Kind::Head, &head.value) {
            Ok(session) => {
                let records = read_log(store, &mut log, id, 0, session.next_record).await;
                log.take_head(session);
                records?;
            }
            Err(error) => {
                log.findings.push(Finding::warning(
                    "malformed",
                    format!("the session's head cannot be read, so it is opened read-only: {}", error.message),
                ));
                log.read_only = Some(error);
                let read = read_log(store, &mut log, id, 0, u64::MAX).await;
                read?;
            }
        }
    }
    Ok(log)
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
        (log.head.id.clone(), log.revision, log.head.next_record, log.head.born)
    };
    let Some(head) = store.head(&id).await? else {
        if revision == 0 {
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
    if head.revision == revision {
        return Ok(false);
    }
    let session = open_record::<Session>(Kind::Head, &head.value)?;
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
    if log.revision >= head.revision && !restarted {
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
    log.revision = head.revision;
    Ok(true)
}

/// What an append came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The revision of history after it.
    pub revision: u64,
    /// The ids of its messages as they are stored, in order; empty where an earlier try had stored it already.
    pub message_ids: Vec<String>,
}

/// Appends after whatever other writers appended in the meantime.
///
/// # Errors
/// `conflict` when the change expected a revision, or its run has another owner; `invalid_input` when it names a message's id that
/// another writer has stored; `unsupported_version`, `not_found` when the session cannot be written; and whatever the store says,
/// nothing being written then.
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
            Appended::Conflict(actual) => {
                let fresh = prepared.expected == 0;
                refresh(store, cell).await?;
                let mut log = cell.borrow_mut();
                // A tombstone: who opened the session after the deletion begins it anew, who had it open before may not.
                if log.revision == 0 && fresh && log.read_only.is_none() {
                    log.revision = actual;
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

fn message_ids(entries: &[Entry]) -> Vec<String> {
    let mut ids = Vec::new();
    for entry in entries {
        if let Entry::Message(message) = entry {
            ids.push(message.id.clone());
        }
    }
    ids
}

/// The entries of an unfinished run's journal, as bytes.
///
/// # Errors
/// When the store cannot be read.
pub async fn read_journal(store: &dyn LogStore, session: &str, run: &RunEntry) -> Result<Vec<Vec<u8>>> {
    read_journal_from(store, session, run, 0).await
}

/// The entries of an unfinished run's journal from the one of that number on, as bytes.
///
/// # Errors
/// When the store cannot be read.
pub async fn read_journal_from(
    store: &dyn LogStore,
    session: &str,
    run: &RunEntry,
    first: u64,
) -> Result<Vec<Vec<u8>>> {
    let from = first_journal_key(run) + first;
    let to = (first_journal_key(run) + run.entries.max(1) - 1).max(from);
    let mut values = Vec::new();
    let mut next = from;
    while next <= to {
        let records =
            store.read(session, Query { from: next, to, limit_bytes: PAGE_BYTES, ..Query::all(Table::Runs) }).await?;
        let Some(last) = records.last() else { break };
        next = last.key + 1;
        for record in records {
            values.push(record.value);
        }
    }
    // A `started` that is gone would let a tool run twice.
    if first + (values.len() as u64) < run.entries {
        return Err(Error::new(
            Code::CorruptRecord,
            "entries of the run's journal are gone, so nobody knows what ran; discard the run",
        ));
    }
    Ok(values)
}
