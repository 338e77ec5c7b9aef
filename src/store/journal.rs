//! Journals of unfinished runs: their records, and how a change of a journal changes the head.
//!
//! ```text
//! bytes 0..4   length of the mark, little-endian
//!              the mark: a sealed [`JournalMark`], by which a lost head is rebuilt
//!              the entry, as `run` sealed it; empty if the record is a change of holder
//! ```

use super::record::{RecordKind, open_record, seal_record};
use super::{Batch, LogStore, PAGE_BYTES, Query, Record, Table};
use crate::branch_path::BranchPath;
use crate::clock::Ms;
use crate::encoding::{UnknownFields, encode_fields};
use crate::error::{Error, ErrorCode, Result};
use crate::session_head::{FIRST_QUEUED, HeadMark, RunEntry, SessionHead};
use bytes::Bytes;

/// Bits of a journal key that are the entry's number; the run's number is above them.
const RUN_BITS: u32 = 20;

/// A change of a run's journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalChange {
    /// The id of the run.
    pub run: String,
    /// The epoch of the holder that writes. Each holder that takes the run over has the next one.
    pub epoch: u32,
    /// End of the lease: until then the holder is considered alive.
    pub lease_until: Ms,
    /// Set by a writer that does not own the run: the present lease must have ended by then, else the append fails with
    /// `busy`.
    pub lease_ended_by: Option<Ms>,
    /// What changes.
    pub step: JournalStep,
}

/// The kinds of change of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JournalStep {
    /// The run begins, with these entries.
    Begin(Vec<Bytes>),
    /// A question waits for the runs before it, with these entries.
    Queue(Vec<Bytes>),
    /// A queued question is the next to begin.
    Admit,
    /// A queued question is removed. `conflict` if it has begun.
    Dequeue,
    /// A queued question begins as a run, with these entries in the place of its own.
    BeginQueued(Vec<Bytes>),
    /// Adds entries.
    Write(Vec<Bytes>),
    /// Adds entries of a run that failed and waits to be resumed or discarded.
    Fail {
        /// The entries.
        entries: Vec<Bytes>,
        /// Code and message of the error, for readers of the head.
        why: (String, String),
    },
    /// Changes the lease only; no entry is written.
    Renew,
    /// Another holder takes the run over. Its epoch is one higher.
    Take,
    /// The run has ended: its journal is removed.
    End,
}

/// The state of the run and the head as of a journal record, from which a lost head is rebuilt.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct JournalMark {
    pub run: String,
    pub epoch: u32,
    pub lease_until: Ms,
    pub started_at: Ms,
    /// Why the run failed, as of this record.
    pub failed: Option<(String, String)>,
    /// The head's counters, as of this record.
    pub head: HeadMark,
    /// The branch that the run continues.
    pub branch: BranchPath,
}
encode_fields!(struct JournalMark {
    0 => run: required,
    1 => epoch,
    2 => lease_until,
    3 => started_at,
    4 => failed,
    5 => head: required,
    6 => branch,
});

impl JournalMark {
    fn of(run: &RunEntry, head: HeadMark) -> Self {
        Self {
            run: run.id.clone(),
            epoch: run.epoch,
            lease_until: run.lease_until,
            started_at: run.started_at,
            failed: run.failed.clone(),
            head,
            branch: run.branch.clone(),
        }
    }

    fn seal(&self, entry: &[u8]) -> Bytes {
        let mark = seal_record(RecordKind::JournalMark, self);
        let length = u32::try_from(mark.len()).unwrap_or(u32::MAX); // proof: a mark holds a few short texts
        [&length.to_le_bytes(), mark.as_ref(), entry].concat().into()
    }

    /// Decodes the mark of a record.
    pub(super) fn open(record: &Bytes) -> Result<Self> {
        let (mark, _) = split_record(record).ok_or_else(unreadable_entry)?;
        open_record(RecordKind::JournalMark, &mark)
    }
}

/// Splits a record into its mark and its entry, which is empty for a change of holder.
pub(super) fn split_record(record: &Bytes) -> Option<(Bytes, Bytes)> {
    let length = usize::try_from(u32::from_le_bytes(*record.first_chunk()?)).ok()?;
    let mut mark = record.slice(4..);
    if length > mark.len() {
        return None;
    }
    let entry = mark.split_off(length);
    Some((mark, entry))
}

fn unreadable_entry() -> Error {
    Error::new(
        ErrorCode::CorruptRecord,
        "an entry of the run's journal cannot be read, so nobody knows what ran; discard the run",
    )
}

/// Returns the key of a run's first journal entry.
fn first_key(run: &RunEntry) -> u64 {
    run.number << RUN_BITS
}

/// Returns the number of the run that a journal key belongs to, and the number of the entry.
pub(super) fn place_of(key: u64) -> (u64, u64) {
    (key >> RUN_BITS, key & ((1 << RUN_BITS) - 1))
}

/// Applies a change of a journal to the head and to the batch that will have `revision`.
pub(super) fn write_journal(
    head: &mut SessionHead,
    batch: &mut Batch,
    change: &JournalChange,
    (now, revision): (Ms, u64),
) -> Result<()> {
    add_new(head, batch, change, (now, revision))?;
    let mark = head.mark(revision);
    let Some(at) = head.runs.iter().position(|run| run.id == change.run) else {
        return Err(Error::new(ErrorCode::Conflict, "the run is over: it was finished or discarded elsewhere"));
    };
    let Some(run) = head.runs.get_mut(at) else { return Ok(()) };
    if run.epoch != change.epoch {
        return Err(Error::new(
            ErrorCode::Conflict,
            "another holder took the run over; this one may not write to it any more",
        ));
    }
    // Checked for each attempt of an append: the holder may have renewed its lease meanwhile.
    if let Some(ended_by) = change.lease_ended_by {
        check_lease(run, ended_by)?;
    }
    run.lease_until = change.lease_until;
    let mut put = |run: &mut RunEntry, entry: &[u8]| {
        let key = first_key(run) + run.entries;
        run.entries += 1;
        let value = JournalMark::of(run, mark.clone()).seal(entry);
        batch.put.push(Record { table: Table::Runs, key, last_key: None, index: None, value });
    };
    match &change.step {
        JournalStep::Begin(values)
        | JournalStep::BeginQueued(values)
        | JournalStep::Queue(values)
        | JournalStep::Write(values)
        | JournalStep::Fail { entries: values, .. } => {
            run.failed = if let JournalStep::Fail { why, .. } = &change.step { Some(why.clone()) } else { None };
            for value in values {
                put(run, value);
            }
        }
        JournalStep::Renew => {}
        JournalStep::Admit => run.is_next = true,
        JournalStep::Take => {
            run.epoch += 1;
            run.failed = None;
            run.is_next = false;
            put(run, &[]);
        }
        JournalStep::Dequeue if !run.is_queued() => {
            return Err(Error::new(ErrorCode::Conflict, "the question has begun as a run meanwhile"));
        }
        JournalStep::End | JournalStep::Dequeue => {
            remove_journal(run, batch);
            head.runs.remove(at);
        }
    }
    Ok(())
}

/// Checks that a run's lease has ended by that time, so that somebody else may own the run.
///
/// # Errors
/// `busy`.
pub fn check_lease(run: &RunEntry, ended_by: Ms) -> Result<()> {
    if run.lease_until <= ended_by {
        return Ok(());
    }
    let sentence = "the run's holder is alive, here or in another process; try again when its lease has run out";
    Err(Error::new(ErrorCode::Busy, sentence).with(|details| {
        details.number("leaseUntil", run.lease_until);
    }))
}

/// Returns the runs of the head that end with a change.
pub(super) fn ended_runs<'h>(head: &'h SessionHead, change: Option<&JournalChange>) -> Vec<&'h str> {
    let is_ended = |run: &&RunEntry| match change {
        Some(JournalChange { step: JournalStep::End | JournalStep::Dequeue, run: ended, .. }) => run.id == *ended,
        Some(JournalChange { step: JournalStep::Begin(_) | JournalStep::BeginQueued(_), .. }) => run.is_stopped(),
        _ => false,
    };
    head.runs.iter().filter(is_ended).map(|run| run.id.as_str()).collect()
}

fn begin(head: &mut SessionHead, batch: &mut Batch, change: &JournalChange, now: Ms) -> Result<()> {
    check_is_new(head, &change.run)?;
    drop_stopped_runs(head, batch);
    let number = head.next_run;
    head.next_run += 1;
    add_run(head, change, (number, now));
    Ok(())
}

/// Adds what a change begins: a run, or a question that waits.
fn add_new(
    head: &mut SessionHead,
    batch: &mut Batch,
    change: &JournalChange,
    (now, revision): (Ms, u64),
) -> Result<()> {
    match &change.step {
        JournalStep::Begin(_) => begin(head, batch, change, now),
        JournalStep::BeginQueued(_) => begin_queued(head, batch, change, now),
        JournalStep::Queue(_) => enqueue(head, change, (now, revision)),
        _ => Ok(()),
    }
}

/// Begins the run of a queued question: its entries are removed, so the question is stored once.
fn begin_queued(head: &mut SessionHead, batch: &mut Batch, change: &JournalChange, now: Ms) -> Result<()> {
    let is_it = |run: &RunEntry| run.id == change.run && run.is_queued() && run.epoch == change.epoch;
    let Some(at) = head.runs.iter().position(is_it) else {
        return Err(Error::new(
            ErrorCode::Conflict,
            "the question waits no more: it was discarded, or another tab or process took it over",
        ));
    };
    remove_journal(&head.runs.remove(at), batch);
    begin(head, batch, change, now)
}

/// Adds a question that waits. Its number is made of the revision, so a later one has a higher number.
fn enqueue(head: &mut SessionHead, change: &JournalChange, (now, revision): (Ms, u64)) -> Result<()> {
    check_is_new(head, &change.run)?;
    add_run(head, change, (queued_number(revision), now));
    Ok(())
}

/// Returns the number of the question that is queued with this revision of the store.
fn queued_number(revision: u64) -> u64 {
    FIRST_QUEUED + revision % FIRST_QUEUED
}

/// Returns the lowest number of a question that is queued after this revision of the store.
pub(super) fn first_queued_after(revision: u64) -> u64 {
    queued_number(revision + 1)
}

fn check_is_new(head: &SessionHead, run: &str) -> Result<()> {
    if head.run(run).is_none() {
        return Ok(());
    }
    Err(Error::new(ErrorCode::Conflict, "another tab or process started a run with this id; start the run again"))
}

fn add_run(head: &mut SessionHead, change: &JournalChange, (number, now): (u64, Ms)) {
    // A run that begins is before the questions that wait.
    let at = head.runs.iter().position(|run| run.number > number).unwrap_or(head.runs.len());
    let run = RunEntry {
        id: change.run.clone(),
        number,
        entries: 0,
        epoch: change.epoch,
        lease_until: change.lease_until,
        started_at: now,
        failed: None,
        holder: None,
        branch: head.branch.clone(),
        approvals: 0,
        is_next: false,
        unknown: UnknownFields::default(),
    };
    head.runs.insert(at, run);
}

/// Removes the runs that the user stopped.
fn drop_stopped_runs(head: &mut SessionHead, batch: &mut Batch) {
    for run in head.runs.iter().filter(|run| run.is_stopped()) {
        remove_journal(run, batch);
    }
    head.runs.retain(|run| !run.is_stopped());
}

fn remove_journal(run: &RunEntry, batch: &mut Batch) {
    let first = first_key(run);
    batch.remove.extend((first..first + run.entries).map(|key| (Table::Runs, key)));
}

/// Reads the entries of an unfinished run's journal, as bytes.
///
/// # Errors
/// The store's own; `corrupt_record` if an entry is missing.
pub async fn read_journal(store: &dyn LogStore, session: &str, run: &RunEntry) -> Result<Vec<Bytes>> {
    read_journal_from(store, session, run, 0).await
}

/// Reads the entries of an unfinished run's journal from record `first` on, as bytes. Changes of holder have no entry
/// and are skipped.
///
/// # Errors
/// Those of [`read_journal`].
pub async fn read_journal_from(store: &dyn LogStore, session: &str, run: &RunEntry, first: u64) -> Result<Vec<Bytes>> {
    let from = first_key(run) + first;
    let to = (first_key(run) + run.entries.max(1) - 1).max(from);
    let (mut values, mut read) = (Vec::new(), first);
    let mut next = from;
    while next <= to {
        let records =
            store.read(session, Query { from: next, to, limit_bytes: PAGE_BYTES, ..Query::all(Table::Runs) }).await?;
        let Some(last) = records.last() else { break };
        next = last.key + 1;
        for record in &records {
            read += 1;
            let (_, entry) = split_record(&record.value).ok_or_else(unreadable_entry)?;
            if !entry.is_empty() {
                values.push(entry);
            }
        }
    }
    // Without a lost `started` entry, a tool would run twice.
    if read < run.entries {
        return Err(Error::new(
            ErrorCode::CorruptRecord,
            "entries of the run's journal are gone, so nobody knows what ran; discard the run",
        ));
    }
    Ok(values)
}
