//! Reads all that a session has in its tables, and finds messages with their calls.

use super::items::MessageSeqs;
use crate::branch_path::{BranchPath, DIRECTORY};
use crate::error::{Error, ErrorCode, Result};
use crate::history::{HistoryEntry, LogRecord};
use crate::message::Message;
use crate::session_head::{Preview, SessionHead};
use crate::store::archive::{TABLES, read_table};
use crate::store::branch_directory::{AdoptedSide, BranchRow};
use crate::store::record::{RecordKind, open_record};
use crate::store::segment::split_segment;
use crate::store::{LogStore, Record, Table};
use std::collections::{BTreeMap, BTreeSet};

/// A stored message.
#[derive(Clone, Debug)]
pub(super) struct PlacedMessage {
    /// The key of its log record.
    pub(super) key: u64,
    pub(super) seq: u64,
    pub(super) id: String,
    pub(super) preview: Option<Preview>,
    /// True if it repeats the messages before it in a form of its provider.
    has_compaction: bool,
}

impl PlacedMessage {
    /// Returns true if the message is part of a branch.
    pub(super) fn is_on(&self, path: &BranchPath) -> bool {
        path.range_end(self.key).is_some() && path.until_seq(self.key).is_none_or(|until_seq| self.seq < until_seq)
    }
}

/// What the tables of a session contain.
#[derive(Default)]
pub(super) struct SessionScan {
    pub(super) records: Vec<Record>,
    /// In the order of the log.
    pub(super) messages: Vec<PlacedMessage>,
    /// The ids of the calls of each message.
    pub(super) calls: BTreeMap<String, Vec<String>>,
    /// The same of messages on other sides of conflicts.
    pub(super) conflict_calls: BTreeMap<String, Vec<String>>,
    /// The `seq` of each message that only the other side of a conflict has.
    pub(super) conflict_messages: MessageSeqs,
    /// The ids of those that repeat the messages before them in a form of their provider.
    conflict_compactions: BTreeSet<String>,
}

impl SessionScan {
    /// Reads a session.
    ///
    /// # Errors
    /// `corrupt_record` and `unsupported_version` if a log record cannot be read: nobody knows whether it has a
    /// message. The store's own.
    pub(super) async fn read(
        store: &dyn LogStore,
        session: &str,
        has_compaction: fn(&Message) -> bool,
    ) -> Result<Self> {
        let mut scan = Self::default();
        for table in TABLES {
            read_table(store, session, table, &mut scan.records).await?;
        }
        let log: Vec<_> = scan.records.iter().filter(|record| is_history(record)).cloned().collect();
        for record in &log {
            let damaged = |error: Error| unreadable(record, &error);
            for (key, value) in split_segment(record).map_err(damaged)?.records {
                let log: LogRecord = open_record(RecordKind::Log, &value).map_err(damaged)?;
                scan.add(key, log, (false, has_compaction));
            }
        }
        for side in store.branches(session).await? {
            // What of a side cannot be read is met again, and reported, among the copies of the store.
            for record in side.log.iter().filter(|record| is_history(record)) {
                for (key, value) in split_segment(record).map(|split| split.records).unwrap_or_default() {
                    if let Ok(log) = open_record(RecordKind::Log, &value) {
                        scan.add(key, log, (true, has_compaction));
                    }
                }
            }
        }
        Ok(scan)
    }

    fn add(&mut self, key: u64, log: LogRecord, (is_of_conflict, has_compaction): (bool, fn(&Message) -> bool)) {
        for entry in log.entries {
            match entry {
                HistoryEntry::Message(message) if is_of_conflict => {
                    if has_compaction(&message) {
                        self.conflict_compactions.insert(message.id.clone());
                    }
                    self.conflict_messages.insert(message.id, message.seq);
                }
                HistoryEntry::Message(message) => {
                    let (preview, has_compaction) = (Preview::of(&message), has_compaction(&message));
                    self.messages.push(PlacedMessage {
                        key,
                        seq: message.seq,
                        id: message.id,
                        preview,
                        has_compaction,
                    });
                }
                HistoryEntry::Invocation(call) if is_of_conflict => {
                    self.conflict_calls.entry(call.message_id).or_default().push(call.id);
                }
                HistoryEntry::Invocation(call) => self.calls.entry(call.message_id).or_default().push(call.id),
                HistoryEntry::Result(_) | HistoryEntry::SetAside(_) => {}
            }
        }
    }

    /// Returns the sides of conflicts that branches have adopted.
    pub(super) fn adopted(&self) -> Vec<AdoptedSide> {
        let rows = self.records.iter().filter(|record| record.table == Table::Log && record.key >= DIRECTORY);
        let rows = rows.filter_map(|record| open_record::<BranchRow>(RecordKind::Branch, &record.value).ok());
        rows.filter_map(|row| row.adopted).collect()
    }

    /// Returns the ids of the messages that may repeat those of these ids, and that are not among them: the compactions
    /// that came later, in a branch that has one of them, and those that repeat these in another branch. On the other
    /// side of a conflict all that came later.
    pub(super) fn compactions_of(&self, ids: &[String], head: &SessionHead) -> Vec<String> {
        let rows = self.records.iter().filter(|record| record.table == Table::Log && record.key >= DIRECTORY);
        let rows = rows.filter_map(|record| open_record::<BranchRow>(RecordKind::Branch, &record.value).ok());
        let paths: Vec<BranchPath> = rows.map(|row| row.state.path).chain([head.branch.clone()]).collect();
        let (mut known, mut found) = (ids.to_vec(), Vec::new());
        loop {
            let new = self.compactions_after(&known, &paths);
            if new.is_empty() {
                return found;
            }
            known.extend_from_slice(&new);
            found.extend(new);
        }
    }

    /// Returns the compactions that came after messages of these ids on one of the paths, or on the other side of a
    /// conflict, and that are not among them.
    fn compactions_after(&self, ids: &[String], paths: &[BranchPath]) -> Vec<String> {
        let ids: BTreeSet<&str> = ids.iter().map(String::as_str).collect();
        let mut compactions = BTreeSet::new();
        for path in paths {
            let on_path = || self.messages.iter().filter(|message| message.is_on(path));
            let erased = on_path().filter(|message| ids.contains(message.id.as_str()));
            let Some(first) = erased.map(|message| message.seq).min() else { continue };
            let later = on_path().filter(|message| message.has_compaction && message.seq > first);
            compactions.extend(later.map(|message| &message.id));
        }
        if !self.conflict_compactions.is_empty() {
            let stored: BTreeSet<&String> = self.messages.iter().map(|message| &message.id).collect();
            let seqs = self.messages.iter().map(|message| (&message.id, message.seq));
            let all = seqs.chain(self.conflict_messages.iter().map(|(id, seq)| (id, *seq)));
            let first = all.filter(|(id, _)| ids.contains(id.as_str())).map(|(_, seq)| seq).min();
            let is_later = |id: &&String| self.conflict_messages.get(*id).copied() > first && first.is_some();
            compactions.extend(self.conflict_compactions.iter().filter(is_later).filter(|id| !stored.contains(id)));
        }
        compactions.into_iter().filter(|id| !ids.contains(id.as_str())).cloned().collect()
    }

    /// Returns the `seq` of each message in history.
    pub(super) fn seqs(&self) -> MessageSeqs {
        self.messages.iter().map(|message| (message.id.clone(), message.seq)).collect()
    }

    /// Returns the ids that are those of stored messages, each once, and the first that is none.
    pub(super) fn find(&self, ids: &[String]) -> (Vec<String>, Option<String>) {
        let stored: BTreeSet<&str> = self.messages.iter().map(|message| message.id.as_str()).collect();
        let is_stored = |id: &str| stored.contains(id) || self.conflict_messages.contains_key(id);
        let (mut found, mut known, mut unknown) = (Vec::new(), BTreeSet::new(), None);
        for id in ids {
            if !is_stored(id) {
                unknown.get_or_insert_with(|| id.clone());
            } else if known.insert(id.as_str()) {
                found.push(id.clone());
            }
        }
        (found, unknown)
    }
}

/// Returns true for a record of the log that is no row of the directory of branches.
pub(super) fn is_history(record: &Record) -> bool {
    record.table == Table::Log && record.key < DIRECTORY
}

fn unreadable(record: &Record, error: &Error) -> Error {
    let (key, reason) = (record.key, &error.message);
    let code = match error.code {
        ErrorCode::UnsupportedVersion => ErrorCode::UnsupportedVersion,
        _ => ErrorCode::CorruptRecord,
    };
    let message = format!(
        "log record {key} cannot be read, so nobody knows what it has of the messages, and nothing was erased; export \
         what is readable and delete the session, or restore a backup: {reason}"
    );
    Error::new(code, message)
}
