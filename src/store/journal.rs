//! Journals of unfinished runs: their records, and what a step of a run changes in the head.
//!
//! ```text
//! bytes 0..4   length of the mark, little-endian
//!              the mark: a sealed [`JournalMark`], by which a lost head is rebuilt
//!              the entry, as `run` sealed it; nothing where the step is a change of owner
//! ```

use super::record::{RecordKind, open_record, seal_record};
use super::{Batch, LogStore, PAGE_BYTES, Query, Record, Table};
use crate::clock::Ms;
use crate::encoding::{UnknownFields, is_default};
use crate::error::{Code, Error, Result};
use crate::session_head::{HeadMark, RunEntry, SessionHead};
use bytes::Bytes;
use minicbor::{Decode, Encode};

/// Journal keys of one run: its number, then the entry's.
const RUN_BITS: u32 = 20;

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
    Begin(Vec<Bytes>),
    /// More entries.
    Write(Vec<Bytes>),
    /// The run failed, and waits: more entries.
    Fail {
        /// The entries.
        entries: Vec<Bytes>,
        /// The error's code and sentence, for who only reads the head.
        why: (String, String),
    },
    /// Another owner takes the run over, whose epoch is one more.
    Take,
    /// The run is over: the journal goes.
    End,
}

/// What a journal record says of its run, whatever its entry says.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
#[allow(missing_docs)]
#[cbor(map)]
pub struct JournalMark {
    #[n(0)]
    pub run: String,
    #[cbor(n(1), skip_if = "is_default")]
    pub epoch: u32,
    #[cbor(n(2), skip_if = "is_default")]
    pub lease_until: Ms,
    #[cbor(n(3), skip_if = "is_default")]
    pub started_at: Ms,
    /// Why the run failed, as of this record.
    #[n(4)]
    pub failed: Option<(String, String)>,
    /// The head's counters, as of this record.
    #[n(5)]
    pub head: HeadMark,
}

impl JournalMark {
    fn of(run: &RunEntry, head: HeadMark) -> Self {
        Self {
            run: run.id.clone(),
            epoch: run.epoch,
            lease_until: run.lease_until,
            started_at: run.started_at,
            failed: run.failed.clone(),
            head,
        }
    }

    fn seal(&self, entry: &[u8]) -> Bytes {
        let mark = seal_record(RecordKind::JournalMark, self);
        let length = u32::try_from(mark.len()).unwrap_or(u32::MAX); // proof: a mark holds a few short texts
        [&length.to_le_bytes(), mark.as_ref(), entry].concat().into()
    }

    /// Reads the mark of a record.
    pub(super) fn open(record: &Bytes) -> Result<Self> {
        let (mark, _) = parts(record).ok_or_else(torn)?;
        open_record(RecordKind::JournalMark, &mark)
    }
}

/// A record's mark and its entry.
fn parts(record: &Bytes) -> Option<(Bytes, Bytes)> {
    let length = usize::try_from(u32::from_le_bytes(*record.first_chunk()?)).ok()?;
    let mut mark = record.slice(4..);
    if length > mark.len() {
        return None;
    }
    let entry = mark.split_off(length);
    Some((mark, entry))
}

fn torn() -> Error {
    Error::new(
        Code::CorruptRecord,
        "an entry of the run's journal cannot be read, so nobody knows what ran; discard the run",
    )
}

/// Key of a run's first journal entry.
fn first_key(run: &RunEntry) -> u64 {
    run.number << RUN_BITS
}

/// The number of the run that a journal's key belongs to, and the place of the entry in it.
pub(super) fn place_of(key: u64) -> (u64, u64) {
    (key >> RUN_BITS, key & ((1 << RUN_BITS) - 1))
}

/// Writes a journal's step into the head and the batch, which makes that revision.
pub(super) fn write_journal(
    head: &mut SessionHead,
    batch: &mut Batch,
    change: &JournalChange,
    (now, revision): (Ms, u64),
) -> Result<()> {
    if let JournalStep::Begin(_) = change.step {
        begin(head, batch, change, now)?;
    }
    let mark = head.mark(revision);
    let Some(at) = head.runs.iter().position(|run| run.id == change.run) else {
        return Err(Error::new(Code::Conflict, "the run is over: it was finished or discarded elsewhere"));
    };
    let Some(run) = head.runs.get_mut(at) else { return Ok(()) };
    if run.epoch != change.epoch {
        return Err(Error::new(
            Code::Conflict,
            "another owner took the run over; this one may not write to it any more",
        ));
    }
    run.lease_until = change.lease_until;
    let mut put = |run: &mut RunEntry, entry: &[u8]| {
        let key = first_key(run) + run.entries;
        run.entries += 1;
        let value = JournalMark::of(run, mark.clone()).seal(entry);
        batch.put.push(Record { table: Table::Runs, key, last_key: None, index: None, value });
    };
    match &change.step {
        JournalStep::Begin(values) | JournalStep::Write(values) | JournalStep::Fail { entries: values, .. } => {
            run.failed = if let JournalStep::Fail { why, .. } = &change.step { Some(why.clone()) } else { None };
            for value in values {
                put(run, value);
            }
        }
        JournalStep::Take => {
            run.epoch += 1;
            run.failed = None;
            put(run, &[]);
        }
        JournalStep::End => {
            remove_journal(run, batch);
            head.runs.remove(at);
        }
    }
    Ok(())
}

fn begin(head: &mut SessionHead, batch: &mut Batch, change: &JournalChange, now: Ms) -> Result<()> {
    if head.run(&change.run).is_some() {
        return Err(Error::new(
            Code::Conflict,
            "another tab or process started a run with this id; start the run again",
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
        unknown: UnknownFields::default(),
    });
    Ok(())
}

/// Removes the stopped runs: the next run replaces them.
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

/// The entries of an unfinished run's journal, as bytes.
///
/// # Errors
/// When the store cannot be read; `corrupt_record` when an entry is gone.
pub async fn read_journal(store: &dyn LogStore, session: &str, run: &RunEntry) -> Result<Vec<Bytes>> {
    read_journal_from(store, session, run, 0).await
}

/// The entries of an unfinished run's journal from that record on, as bytes. A change of owner is a record without an entry.
///
/// # Errors
/// As [`read_journal`].
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
            let (_, entry) = parts(&record.value).ok_or_else(torn)?;
            if !entry.is_empty() {
                values.push(entry);
            }
        }
    }
    // A `started` that is gone would let a tool run twice.
    if read < run.entries {
        return Err(Error::new(
            Code::CorruptRecord,
            "entries of the run's journal are gone, so nobody knows what ran; discard the run",
        ));
    }
    Ok(values)
}
