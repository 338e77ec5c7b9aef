//! [`SessionArchive`]: a whole session as one value, to be restored in another store (R37).
//!
//! ```text
//! "rethread session\n"   the mark of an archive
//!                        a sealed record, see `store/record.rs`: versions, kind, checksum and the value
//! ```
//!
//! An archive has the stored records as they are: ids, times, signatures, journals of unfinished runs, and fields of
//! newer builds.

use super::branch_directory::BranchRow;
use super::log::NoticeText;
use super::open::read_head;
use super::record::{MAX_RECORD_BYTES, RecordKind, open_record, open_whole_record, seal_record};
use super::{Appended, AuditIndex, Batch, LogStore, MAX_KEY, PAGE_BYTES, Query, Record, StoredHead, Table};
use crate::branch_path::DIRECTORY;
use crate::clock::Ms;
use crate::encoding::encode_fields;
use crate::error::{Error, ErrorCode, Result};
use crate::finding::Report;
use crate::id::Seed;
use crate::session_head::SessionHead;
use bytes::Bytes;
use minicbor::bytes::ByteVec;
use std::collections::BTreeSet;

/// The first bytes of every archive: without it, any other file would be one of an unknown version.
const MAGIC: &[u8] = b"rethread session\n";

/// How often an archive is read again because a writer was faster.
const MAX_READS: u32 = 20;

/// All tables except the heads.
pub(super) const TABLES: [Table; 3] = [Table::Log, Table::ToolInvocations, Table::Runs];

/// A session with all its records.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionArchive {
    /// The store's revision when it was read.
    pub revision: u64,
    /// Its head, without leases: no owner of a run lives where it is restored.
    pub head: SessionHead,
    /// Its records, in the order of tables and keys.
    pub records: Vec<Record>,
}

impl SessionArchive {
    /// Reads a session, and returns the problems that were found: a damaged head is rebuilt without metadata and state
    /// bag. While others write to the session, it is read again.
    ///
    /// # Errors `not_found` for a session that is not stored; `busy` if it changes faster than it can be read;
    /// `unsupported_version` for a head of a newer build; the store's own.
    pub async fn read(store: &dyn LogStore, session: &str, seed: Seed) -> Result<(Self, Report)> {
        for _ in 0..MAX_READS {
            let stored = store.head(session).await?.ok_or_else(|| not_stored(session))?;
            if let Err(error) = open_record::<SessionHead>(RecordKind::Head, &stored.value)
                && error.code == ErrorCode::UnsupportedVersion
            {
                return Err(error);
            }
            let (head, findings) = read_head(store, session, &stored, seed).await?;
            let mut records = Vec::new();
            for table in TABLES {
                read_table(store, session, table, &mut records).await?;
            }
            let is_same = store.head(session).await?.is_some_and(|now| now.revision == stored.revision);
            if is_same {
                let archive = Self { revision: stored.revision, head: head.without_leases(), records };
                return Ok((archive, findings));
            }
        }
        Err(Error::new(ErrorCode::Busy, "other writers keep changing the session; try again in a moment"))
    }

    /// Encodes the archive as one value.
    #[must_use]
    pub fn seal(&self) -> Bytes {
        let records = self.records.iter().map(ArchivedRecord::new).collect();
        let stored = StoredArchive { revision: self.revision, head: self.head.clone(), records };
        [MAGIC, &seal_record(RecordKind::Archive, &stored)].concat().into()
    }

    /// Decodes what [`seal`](Self::seal) made.
    ///
    /// # Errors `unsupported_version` for an archive of a newer format; `invalid_input` for one that is damaged,
    /// incomplete, or no archive.
    pub fn open(bytes: &Bytes) -> Result<Self> {
        let not_an_archive = || {
            Error::invalid(
                "these bytes are not a serialized session, or are incomplete or modified; serialize the session again",
            )
        };
        if !bytes.starts_with(MAGIC) {
            return Err(not_an_archive());
        }
        let opened: Result<StoredArchive> = open_record(RecordKind::Archive, &bytes.slice(MAGIC.len()..));
        let StoredArchive { revision, head, records } = opened.map_err(|error| match error.code {
            ErrorCode::CorruptRecord => not_an_archive(),
            _ => error,
        })?;
        let records = records.into_iter().map(ArchivedRecord::record).collect::<Result<_>>()?;
        Ok(Self { revision, head, records })
    }

    /// Writes the archive as the session `id`, in one append. Its history then is as it was when the archive was read.
    /// `operation` is the unique name of the append; `notice` makes its [notice](Batch::notice). Returns the revision
    /// of the restored history.
    ///
    /// # Errors
    /// `conflict` if a session of this id exists; `too_large`; the store's own. Nothing is written then.
    pub async fn restore(
        mut self,
        store: &dyn LogStore,
        id: &str,
        (operation, notice): (&str, Option<NoticeText>),
    ) -> Result<u64> {
        if store.head(id).await?.is_some() {
            return Err(exists(id));
        }
        id.clone_into(&mut self.head.id);
        let mut expected = 0;
        // The first attempt may find the tombstone of a deleted session.
        for _ in 0..2 {
            let batch = self.batch_after(expected, notice.as_ref());
            batch.check(operation, store.capabilities().max_value_bytes)?;
            match store.append(id, expected, batch, &format!("{operation}.{expected}")).await? {
                Appended::Revision(_) => return Ok(self.head.history_revision),
                // The revision of a tombstone.
                Appended::Conflict(actual) if expected == 0 && store.head(id).await?.is_none() => expected = actual,
                Appended::Conflict(_) | Appended::Occupied => return Err(exists(id)),
            }
        }
        Err(exists(id))
    }

    /// Writes the archive in the place of the stored session of its id, in one append: nobody sees a part of both. For
    /// other writers the session is a new one, as after `clear_session`. Returns the revision of the restored history;
    /// none if another writer was faster, and nothing is written then.
    ///
    /// # Errors
    /// `too_large`; the store's own. Nothing is written then.
    pub async fn replace(
        mut self,
        store: &dyn LogStore,
        stored: &StoredHead,
        (operation, notice): (&str, Option<NoticeText>),
    ) -> Result<Option<u64>> {
        let id = self.head.id.clone();
        let mut present = Vec::new();
        for table in TABLES {
            read_table(store, &id, table, &mut present).await?;
        }
        let mut batch = self.batch_after(stored.revision, notice.as_ref());
        let kept: BTreeSet<_> = self.records.iter().map(|record| (record.table.as_str(), record.key)).collect();
        let is_gone = |record: &&Record| !kept.contains(&(record.table.as_str(), record.key));
        batch.remove = present.iter().filter(is_gone).map(|record| (record.table, record.key)).collect();
        batch.replace = std::mem::take(&mut batch.put);
        batch.check(operation, store.capabilities().max_value_bytes)?;
        match store.append(&id, stored.revision, batch, operation).await? {
            Appended::Revision(_) => Ok(Some(self.head.history_revision)),
            Appended::Conflict(_) | Appended::Occupied => Ok(None),
        }
    }

    /// Lets each branch begin another conversation at the service: the one that its answers are of may have what was
    /// said in it after the archive was read, in the session that it replaces or in the one that it is a copy of.
    fn leave_conversations(&mut self) {
        self.head.chain_cut = self.head.next_seq;
        for record in self.records.iter_mut().filter(|record| record.table == Table::Log && record.key >= DIRECTORY) {
            // A row that cannot be read is reported when its branch is opened.
            if let Ok(mut row) = open_whole_record::<BranchRow>(RecordKind::Branch, &record.value) {
                row.state.chain_cut = row.state.next_seq;
                record.value = seal_record(RecordKind::Branch, &row);
            }
        }
    }

    /// Makes the batch that writes the archive over a session, or a tombstone, of the revision `expected`; 0 if there is
    /// none.
    fn batch_after(&mut self, expected: u64, notice: Option<&NoticeText>) -> Batch {
        if self.head.owner.begins_conversations() {
            self.leave_conversations();
        }
        if expected > 0 {
            // Revisions continue from those that were there, whose readers must not mistake this session for theirs.
            let has_filter = self.head.term_filter.covers(self.head.history_revision);
            self.head.born = expected + 1;
            self.head.history_revision = self.head.history_revision.max(expected + 1);
            if has_filter {
                self.head.term_filter.set_revision(self.head.history_revision);
            }
        }
        let revision = self.head.history_revision;
        let mut batch = Batch {
            head: seal_record(RecordKind::Head, &self.head),
            at_least: self.revision.max(expected + 1).max(revision),
            put: self.records.clone(),
            erases: expected > 0,
            notice: notice.and_then(|notice| notice(revision)),
            ..Batch::default()
        };
        batch.describe(&self.head);
        batch
    }
}

fn not_stored(session: &str) -> Error {
    Error::new(
        ErrorCode::NotFound,
        format!("session \"{session}\" is not stored: it was deleted, or nothing was ever appended to it"),
    )
}

fn exists(id: &str) -> Error {
    Error::new(
        ErrorCode::Conflict,
        format!("a session \"{id}\" exists already; pass another `id`, or delete that session first"),
    )
}

/// Reads all records of a table.
pub(super) async fn read_table(
    store: &dyn LogStore,
    session: &str,
    table: Table,
    records: &mut Vec<Record>,
) -> Result<()> {
    let mut from = 0;
    while from <= MAX_KEY {
        let page = store.read(session, Query { from, limit_bytes: PAGE_BYTES, ..Query::all(table) }).await?;
        let Some(last) = page.last() else { break };
        from = last.last_key.unwrap_or(last.key) + 1;
        records.extend(page);
    }
    Ok(())
}

/// The encoded form of an archive.
#[derive(Clone, Debug, PartialEq)]
struct StoredArchive {
    revision: u64,
    head: SessionHead,
    records: Vec<ArchivedRecord>,
}
encode_fields!(struct StoredArchive {
    0 => revision,
    1 => head: required,
    2 => records: list,
});

/// A record in an archive.
#[derive(Clone, Debug, PartialEq)]
struct ArchivedRecord {
    /// The table's name.
    table: String,
    key: u64,
    last_key: Option<u64>,
    /// The index of an audit row.
    tool: Option<String>,
    status: Option<String>,
    channel: Option<String>,
    at: Ms,
    value: ByteVec,
}
encode_fields!(struct ArchivedRecord {
    0 => table: required,
    1 => key,
    2 => last_key,
    3 => tool,
    4 => status,
    5 => channel,
    6 => at,
    7 => value: required,
});

impl ArchivedRecord {
    fn new(record: &Record) -> Self {
        let index = record.index.as_ref();
        Self {
            table: record.table.as_str().to_owned(),
            key: record.key,
            last_key: record.last_key,
            tool: index.map(|index| index.tool.clone()),
            status: index.map(|index| index.status.clone()),
            channel: index.and_then(|index| index.channel.clone()),
            at: index.map_or(0, |index| index.at),
            value: record.value.to_vec().into(),
        }
    }

    fn record(self) -> Result<Record> {
        let Self { table, key, last_key, tool, status, channel, at, value } = self;
        let table = Table::from_name(&table).ok_or_else(|| {
            Error::new(
                ErrorCode::UnsupportedVersion,
                format!("the archive has a table \"{table}\", which this build does not know; update rethread"),
            )
        })?;
        let index = match (tool, status) {
            (Some(tool), Some(status)) => Some(AuditIndex { tool, status, channel, at }),
            _ => None,
        };
        let value = Vec::from(value);
        if value.len() > MAX_RECORD_BYTES {
            return Err(Error::invalid("a record of the archive is too large"));
        }
        Ok(Record { table, key, last_key, index, value: value.into() })
    }
}
