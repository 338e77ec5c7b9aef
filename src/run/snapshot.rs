//! The snapshot of an unfinished run: its journal, and what its requests need of history, in bytes from which any
//! machine resumes it (R28).
//!
//! ```text
//! "rethread run\n"   the mark of a snapshot
//!                    a sealed record, see `store/record.rs`: versions, kind, checksum and the value
//! ```

use super::journal::JournalEntry;
use super::run_writes::{RunWriter, own_id};
use super::stored_run::StoredRun;
use crate::clock::Ms;
use crate::encoding::encode_fields;
use crate::error::{Error, ErrorCode, Result};
use crate::history::{History, HistoryEntry};
use crate::id::Seed;
use crate::session_head::SessionHead;
use crate::store::{Change, JournalChange, JournalStep, RecordKind, SessionLog, open_whole_record, seal_record};
use bytes::Bytes;
use std::collections::BTreeSet;

/// The first bytes of every snapshot.
const MARK: &[u8] = b"rethread run\n";

/// The snapshot of an unfinished run. Contains no credential, and of redacted calls what the journal has (R12).
#[derive(Clone, Debug, PartialEq)]
pub struct RunSnapshot {
    /// The id of the session.
    pub session: String,
    /// The id of the run.
    pub run: String,
    /// The entries of the run's journal, and those that were not written yet.
    pub journal: Vec<JournalEntry>,
    /// The id of the last message of history that is not the run's.
    pub base: Option<String>,
    /// The messages of history that the next request contains, with their calls, for a session that has no history.
    pub history: Vec<HistoryEntry>,
    /// The highest source number so far.
    pub highest_source: Option<u64>,
    /// The session that it was made in; none in one of an older build.
    pub origin: Option<SnapshotOrigin>,
}
encode_fields!(struct RunSnapshot {
    0 => session: required,
    1 => run: required,
    2 => journal: list,
    3 => base,
    4 => history: list,
    5 => highest_source,
    6 => origin,
});

/// The session that a snapshot was made in, by which this session recognizes a run that has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SnapshotOrigin {
    /// The session's [`born`](SessionHead::born).
    pub born: u64,
    /// The session's [`created_at`](SessionHead::created_at).
    pub created_at: Ms,
    /// The number of the session's next run.
    pub next_run: u64,
    /// The run's number in the session; none if the run was not written yet.
    pub number: Option<u64>,
}
encode_fields!(struct SnapshotOrigin {
    0 => born,
    1 => created_at,
    2 => next_run,
    3 => number,
});

impl SnapshotOrigin {
    /// Returns the origin of a snapshot that is made now, of the run with this number.
    #[must_use]
    pub fn new(head: &SessionHead, number: Option<u64>) -> Self {
        Self { born: head.born, created_at: head.created_at, next_run: head.next_run, number }
    }

    /// Returns true if it is this session, which was neither cleared nor deleted since.
    fn is_of(&self, head: &SessionHead) -> bool {
        head.born != 0 && self.born == head.born && self.created_at == head.created_at
    }

    /// Checks that the run, which is not in the head of its session, may still begin. Run numbers only rise.
    fn check_not_begun(&self, head: &SessionHead) -> Result<()> {
        match self.number {
            Some(number) if number < head.next_run => Err(ended("the session had it, and has it no more")),
            None if self.next_run < head.next_run => Err(ended(
                "or may have: other runs began here since the snapshot, which was made before the run was first stored",
            )),
            _ => Ok(()),
        }
    }
}

/// Returns the error of a snapshot whose run has ended, or may have, for this reason.
fn ended(why: &str) -> Error {
    let message = format!("the run of this snapshot has ended: {why}; nothing was run or stored");
    Error::new(ErrorCode::Conflict, message)
}

impl RunSnapshot {
    /// Encodes the snapshot.
    #[must_use]
    pub fn seal(&self) -> Bytes {
        [MARK, &seal_record(RecordKind::Snapshot, self)].concat().into()
    }

    /// Decodes a snapshot of a session.
    ///
    /// # Errors `invalid_input` for bytes that are no snapshot, or one of another session; `unsupported_version` for
    /// one of a newer build; `corrupt_record` for one that is damaged.
    pub fn open(bytes: &Bytes, session: &str) -> Result<Self> {
        if !bytes.starts_with(MARK) {
            return Err(Error::invalid(
                "the bytes are no snapshot of a run; pass what `run.snapshot()` returned, or a run's id",
            ));
        }
        let snapshot: Self = open_whole_record(RecordKind::Snapshot, &bytes.slice(MARK.len()..))?;
        if snapshot.session != session {
            let other = &snapshot.session;
            return Err(Error::invalid(format!(
                "the snapshot is of a run of the session \"{other}\", not of \"{session}\"; resume it in a session of that id"
            )));
        }
        Ok(snapshot)
    }

    /// Reads the run as of the snapshot.
    ///
    /// # Errors
    /// `corrupt_record` if the journal has no beginning or is another run's; `conflict` if the run was cancelled.
    pub fn read_run(&self, seed: Seed) -> Result<StoredRun> {
        let records: Vec<Bytes> = self.journal.iter().map(JournalEntry::seal).collect();
        let stored = StoredRun::read(&records, seed)?;
        if stored.began.run != self.run {
            return Err(Error::new(
                ErrorCode::CorruptRecord,
                "the snapshot has the journal of another run; it cannot be resumed",
            ));
        }
        stored.check_not_cancelled()?;
        Ok(stored)
    }

    /// Returns the entries that a stored journal of the run lacks. A journal with entries that the snapshot lacks is
    /// newer: it lacks none.
    #[must_use]
    pub fn missing_entries(&self, stored: &[Bytes]) -> Vec<Bytes> {
        // Not by their bytes: an entry that waited for the reply of `persist` has more in the journal than in the
        // snapshot.
        let identity = |record: &Bytes| {
            let entry = open_whole_record::<JournalEntry>(RecordKind::Journal, record);
            entry.map_or_else(|_| record.clone(), |entry| entry.identity())
        };
        let stored: BTreeSet<Bytes> = stored.iter().map(identity).collect();
        let known: BTreeSet<Bytes> = self.journal.iter().map(JournalEntry::identity).collect();
        if !stored.is_subset(&known) {
            return Vec::new();
        }
        self.journal.iter().filter(|entry| !stored.contains(&entry.identity())).map(JournalEntry::seal).collect()
    }

    /// Checks that the run, which the head does not have, has not ended in this session, as far as the session can
    /// know.
    ///
    /// # Errors `conflict` if the run has ended here. Also if the session was cleared or deleted in this store and the
    /// run began before or elsewhere: what ended before that is forgotten.
    fn check_not_ended(&self, log: &SessionLog) -> Result<()> {
        let SessionLog { head, history, .. } = log;
        if history.messages().iter().any(|message| message.run_id.as_ref() == Some(&self.run)) {
            return Err(ended("history has its turn"));
        }
        if head.was_resumed_here(&self.run) {
            return Err(ended("it was resumed here before"));
        }
        match &self.origin {
            Some(origin) if origin.is_of(head) => origin.check_not_begun(head),
            // A session without a head that has a revision was deleted.
            _ if head.born > 1 || (head.born == 0 && log.revision > 0) => Err(forgotten()),
            _ => Ok(()),
        }
    }

    /// Returns the change that begins the run's journal in a session that does not have it. An empty session gets the
    /// snapshot's history in the same append. The history must not have changed since when the change is written.
    ///
    /// # Errors `conflict` if the run has ended in this session, or if that cannot be known because the session was
    /// cleared or deleted, or if history lacks the message that the run continues.
    pub fn begin(&self, log: &SessionLog, writer: &RunWriter<'_>) -> Result<Change> {
        self.check_not_ended(log)?;
        let history = &log.history;
        let is_missing = self.base.as_ref().is_some_and(|base| history.message(base).is_none());
        if is_missing && !history.messages().is_empty() {
            let message = "the session has another history than the one that the run of this snapshot continues; resume it in the session that \
                           it began in, or in an empty one";
            return Err(Error::new(ErrorCode::Conflict, message));
        }
        let entries = if is_missing { self.history.clone() } else { Vec::new() };
        let entries_of_journal = self.journal.iter().map(JournalEntry::seal).collect();
        Ok(Change {
            operation: format!("{}.snapshot", writer.name),
            run: Some(self.run.clone()),
            run_continues: true,
            at: writer.now,
            caller_ids: entries.iter().filter_map(own_id).cloned().collect(),
            entries,
            sources: self.highest_source,
            edit: Some(Box::new({
                let run = self.run.clone();
                move |head| head.remember_resumed(&run)
            })),
            when_deleted: Some(forgotten()),
            journal: Some(JournalChange {
                run: self.run.clone(),
                epoch: writer.epoch,
                lease_until: writer.lease_until,
                lease_ended_by: None,
                step: JournalStep::Begin(entries_of_journal),
            }),
            ..Change::default()
        })
    }
}

/// Returns the error of a session that cannot know whether the run has ended in it.
fn forgotten() -> Error {
    ended(
        "or may have: the session was cleared or deleted in this store, which forgot its runs; send the input again, or resume the snapshot in \
         another store",
    )
}

/// Returns messages of history with their calls, as entries.
pub(super) fn messages_with_calls(history: &History, messages: impl Iterator<Item = usize>) -> Vec<HistoryEntry> {
    let mut entries = Vec::new();
    for message in messages.filter_map(|index| history.messages().get(index)) {
        entries.push(HistoryEntry::Message(message.clone()));
        entries.extend(history.calls_of(message).cloned().map(HistoryEntry::Invocation));
    }
    entries
}
