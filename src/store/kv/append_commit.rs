//! Builds the commit of an append and of a deletion.

use super::directory::KeyRun;
use super::driver::{KvCheck, KvWrite};
use super::key::{PartOwner, head_key, part_key, record_key};
use super::load::LoadedSession;
use super::value::{KvHead, KvRecord, TABLES, seal_value};
use crate::error::{Error, Result};
use crate::store::{Batch, MAX_KEY, Record, Table};
use bytes::Bytes;
use std::collections::BTreeMap;

/// The most keys that one commit removes: Deno KV takes a thousand writes.
const MOST_REMOVED: usize = 500;

/// A commit that is being built: what is to be written to a session whose head was loaded.
pub(super) struct SessionCommit<'a> {
    loaded: &'a LoadedSession,
    limit: usize,
    writes: BTreeMap<String, Option<Bytes>>,
    pub(super) head: KvHead,
}

impl<'a> SessionCommit<'a> {
    pub(super) fn new(loaded: &'a LoadedSession, limit: usize) -> Self {
        Self { loaded, limit, writes: BTreeMap::new(), head: loaded.head.clone() }
    }

    /// Whether a new record of the batch would overwrite another.
    pub(super) fn is_occupied(&self, batch: &Batch) -> bool {
        let taken = |record: &Record| {
            let place = (record.table, record.key);
            self.head.directory(record.table).contains(record.key) && !batch.remove.contains(&place)
        };
        batch.put.iter().any(taken)
    }

    /// Adds an append.
    ///
    /// # Errors
    /// `invalid_input` for a revision above [`MAX_KEY`], `too_large`.
    pub(super) fn append(&mut self, batch: &Batch, operation: &str) -> Result<u64> {
        let revision = self.head.revision.saturating_add(1).max(batch.at_least);
        if batch.at_least > MAX_KEY {
            return Err(Error::invalid(format!("a revision stays at or below {MAX_KEY}; {revision} is above it")));
        }
        for (table, key) in &batch.remove {
            self.remove(*table, *key);
        }
        for record in batch.written() {
            self.remove(record.table, record.key);
            self.write(record, revision)?;
        }
        let mut operations = self.head.operations();
        operations.note(operation, revision);
        self.head.set_operations(operations);
        self.head.channel.clone_from(&batch.channel);
        self.write_head(revision, true, &batch.head)?;
        Ok(revision)
    }

    fn write(&mut self, record: &Record, revision: u64) -> Result<()> {
        let mut description = KvRecord::new(record, revision);
        let (first, parts) = seal_value(&mut description, &record.value, self.limit)?;
        self.writes.insert(record_key(&self.loaded.key, record.table, record.key), Some(first));
        self.write_parts(PartOwner::Record(record.table, record.key), revision, &parts);
        let (segment_last, parts) = (record.last_key, description.parts);
        let revision = if parts > 0 { revision } else { 0 };
        let run = KeyRun { segment_last, parts, revision, ..KeyRun::single(record.key) };
        self.head.directory_mut(record.table).insert(run);
        Ok(())
    }

    fn write_parts(&mut self, owner: PartOwner, revision: u64, parts: &[Bytes]) {
        for (part, number) in parts.iter().zip(1..) {
            self.writes.insert(part_key(&self.loaded.key, owner, revision, number), Some(part.clone()));
        }
    }

    /// Removes a record, if there is one, and its parts.
    fn remove(&mut self, table: Table, key: u64) -> bool {
        let Some(run) = self.head.directory_mut(table).remove(key) else { return false };
        self.writes.insert(record_key(&self.loaded.key, table, key), None);
        self.remove_parts(PartOwner::Record(table, key), run.revision, run.parts);
        true
    }

    fn remove_parts(&mut self, owner: PartOwner, revision: u64, count: u32) {
        for part in 1..=count {
            self.writes.insert(part_key(&self.loaded.key, owner, revision, part), None);
        }
    }

    fn write_head(&mut self, revision: u64, is_live: bool, value: &Bytes) -> Result<()> {
        self.remove_parts(PartOwner::Head, self.loaded.head.revision, self.loaded.head.parts);
        self.head.revision = revision;
        self.head.is_live = is_live;
        let (first, parts) = seal_value(&mut self.head, value, self.limit)?;
        self.writes.insert(head_key(&self.loaded.key), Some(first));
        self.write_parts(PartOwner::Head, revision, &parts);
        Ok(())
    }

    /// Makes the session a tombstone, one revision on, or goes on removing the records of one. As many records are
    /// removed as one commit may; the tombstone has the others.
    ///
    /// # Errors
    /// `too_large`.
    pub(super) fn bury(&mut self) -> Result<()> {
        let revision = self.head.revision.saturating_add(u64::from(self.head.is_live));
        self.head.channel = None;
        let runs = TABLES.map(|table| (table, self.head.directory(table).clone()));
        let mut keys =
            runs.iter().flat_map(|(table, runs)| runs.overlapping(0, MAX_KEY).map(|run| (*table, run.first)));
        while self.writes.len() < MOST_REMOVED {
            let Some((table, key)) = keys.next() else { break };
            // A segment may be met more than once.
            self.remove(table, key);
        }
        self.write_head(revision, false, &Bytes::new())
    }

    /// Returns the checks and writes.
    pub(super) fn into_commit(self) -> (Vec<KvCheck>, Vec<KvWrite>) {
        let check = KvCheck { key: head_key(&self.loaded.key), version: self.loaded.version.clone() };
        let writes = self.writes.into_iter().map(|(key, value)| KvWrite { key, value });
        (vec![check], writes.collect())
    }
}
