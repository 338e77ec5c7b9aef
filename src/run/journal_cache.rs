//! Unfinished runs as far as their journals were read, so that the next look at them reads what is new (R63).

use super::stored_run::StoredRun;
use crate::error::Result;
use crate::history::History;
use crate::id::Seed;
use crate::session_head::RunEntry;
use bytes::Bytes;

/// The journals of a session's unfinished runs that were read.
#[derive(Debug, Default)]
pub struct JournalCache(Vec<ReadJournal>);

#[derive(Debug)]
struct ReadJournal {
    run: String,
    number: u64,
    /// The number of records that were read.
    read: u64,
    stored: StoredRun,
}

impl JournalCache {
    /// Returns the number of the first record that was not read of a run's journal.
    #[must_use]
    pub fn next_record(&self, entry: &RunEntry) -> u64 {
        self.find(entry).map_or(0, |journal| journal.read)
    }

    /// Adds the records from [`next_record`](Self::next_record) on, up to the last one of `entry`.
    ///
    /// # Errors
    /// Those of [`StoredRun::read`]; the journal is then read again from its beginning.
    pub fn add(&mut self, entry: &RunEntry, records: &[Bytes], seed: Seed) -> Result<()> {
        let known = self.0.iter().position(|journal| journal.is_of(entry)).map(|at| self.0.swap_remove(at));
        let mut stored = match known {
            Some(ReadJournal { mut stored, .. }) => {
                stored.extend(records)?;
                stored
            }
            None => StoredRun::read(records, seed)?,
        };
        // Only a resume needs them.
        stored.records = Vec::new();
        self.0.push(ReadJournal { run: entry.id.clone(), number: entry.number, read: entry.entries, stored });
        Ok(())
    }

    /// Returns the turn of a run.
    #[must_use]
    pub fn turn(&self, entry: &RunEntry) -> Option<&History> {
        self.find(entry).map(|journal| &journal.stored.live)
    }

    /// Keeps the journals of these runs only.
    pub fn retain(&mut self, runs: &[RunEntry]) {
        self.0.retain(|journal| runs.iter().any(|entry| journal.is_of(entry)));
    }

    fn find(&self, entry: &RunEntry) -> Option<&ReadJournal> {
        self.0.iter().find(|journal| journal.is_of(entry))
    }
}

impl ReadJournal {
    /// Returns true if this is the journal of the run. One that is shorter than what was read is another run's.
    fn is_of(&self, entry: &RunEntry) -> bool {
        self.run == entry.id && self.number == entry.number && self.read <= entry.entries
    }
}
