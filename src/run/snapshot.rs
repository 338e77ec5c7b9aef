//! The snapshot of an unfinished run: its journal, and what its requests need of history, in bytes from which any machine resumes it (R28).
//!
//! ```text
//! "rethread run\n"   the mark of a snapshot
//!                    a sealed record, see `store/record.rs`: versions, kind, checksum and the value
//! ```

use super::journal::{JournalEntry, RecoveredRun, recover};
use super::run_writes::{RunWriter, own_id};
use crate::encoding::encode_fields;
use crate::error::{Error, ErrorCode, Result};
use crate::history::{History, HistoryEntry};
use crate::id::Seed;
use crate::store::{Change, JournalChange, JournalStep, RecordKind, open_whole_record, seal_record};
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
}
encode_fields!(struct RunSnapshot {
    0 => session: required,
    1 => run: required,
    2 => journal: list,
    3 => base,
    4 => history: list,
    5 => highest_source,
});

impl RunSnapshot {
    /// Encodes the snapshot.
    #[must_use]
    pub fn seal(&self) -> Bytes {
        [MARK, &seal_record(RecordKind::Snapshot, self)].concat().into()
    }

    /// Decodes a snapshot of a session.
    ///
    /// # Errors
    /// `invalid_input` for bytes that are no snapshot, or one of another session; `unsupported_version` for one of a newer build;
    /// `corrupt_record` for one that is damaged.
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

    /// Recovers the run as of the snapshot.
    ///
    /// # Errors
    /// `corrupt_record` if the journal has no beginning or is another run's.
    pub fn recover(&self, seed: Seed) -> Result<RecoveredRun> {
        let records: Vec<Bytes> = self.journal.iter().map(JournalEntry::seal).collect();
        let recovered = recover(&records, seed)?;
        if recovered.began.run != self.run {
            return Err(Error::new(
                ErrorCode::CorruptRecord,
                "the snapshot has the journal of another run; it cannot be resumed",
            ));
        }
        Ok(recovered)
    }

    /// Returns the entries that a stored journal of the run lacks. A journal with entries that the snapshot lacks is newer: it lacks none.
    #[must_use]
    pub fn missing_entries(&self, stored: &[Bytes]) -> Vec<Bytes> {
        // Not by their bytes: an entry that waited for the reply of `persist` has more in the journal than in the snapshot.
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

    /// Returns the change that begins the run's journal in a session that does not have it. An empty session gets the snapshot's history in the
    /// same append. The history must not have changed since when the change is written.
    ///
    /// # Errors
    /// `conflict` if history has messages of the run, which has ended then, or lacks the message that it continues.
    pub fn begin(&self, history: &History, writer: &RunWriter<'_>) -> Result<Change> {
        if history.messages().iter().any(|message| message.run_id.as_ref() == Some(&self.run)) {
            let message = "the run of this snapshot has ended: history has its turn; nothing was run or stored";
            return Err(Error::new(ErrorCode::Conflict, message));
        }
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

/// Returns messages of history with their calls, as entries.
pub(super) fn messages_with_calls(history: &History, messages: impl Iterator<Item = usize>) -> Vec<HistoryEntry> {
    let mut entries = Vec::new();
    for message in messages.filter_map(|index| history.messages().get(index)) {
        entries.push(HistoryEntry::Message(message.clone()));
        entries.extend(history.calls_of(message).cloned().map(HistoryEntry::Invocation));
    }
    entries
}
