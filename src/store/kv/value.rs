//! The values: a sealed description, and bytes that the store does not interpret.
//!
//! ```text
//! bytes 0..4   length of the description, little-endian
//!              the description: a sealed [`KvHead`] or [`KvRecord`]
//!              the session's head, or the record's value; as much as fits, if there are parts
//! ```

use super::directory::KeyDirectory;
use crate::clock::Ms;
use crate::encoding::encode_fields;
use crate::error::{Error, ErrorCode, Result};
use crate::store::record::{RecordKind, StoredValue, open_record, seal_record};
use crate::store::{AuditIndex, Operations, Record, Table};
use bytes::Bytes;

/// What the store knows of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct KvHead {
    /// The session's id.
    pub(super) id: String,
    pub(super) revision: u64,
    /// False of a tombstone.
    pub(super) is_live: bool,
    pub(super) channel: Option<String>,
    operations: Vec<(String, u64)>,
    /// The records. A tombstone has those that are still to be removed.
    log: KeyDirectory,
    tool_invocations: KeyDirectory,
    runs: KeyDirectory,
    /// How many further parts the session's head has.
    pub(super) parts: u32,
}
encode_fields!(struct KvHead {
    0 => id: required,
    1 => revision,
    2 => is_live,
    3 => channel,
    4 => operations: list,
    5 => log,
    6 => tool_invocations,
    7 => runs,
    8 => parts,
});

/// The tables, in the order of [`Table`].
pub(super) const TABLES: [Table; 3] = [Table::Log, Table::ToolInvocations, Table::Runs];

impl KvHead {
    pub(super) fn new(id: &str) -> Self {
        Self { id: id.to_owned(), ..Self::default() }
    }

    pub(super) fn directory(&self, table: Table) -> &KeyDirectory {
        match table {
            Table::Log => &self.log,
            Table::ToolInvocations => &self.tool_invocations,
            Table::Runs => &self.runs,
        }
    }

    pub(super) fn directory_mut(&mut self, table: Table) -> &mut KeyDirectory {
        match table {
            Table::Log => &mut self.log,
            Table::ToolInvocations => &mut self.tool_invocations,
            Table::Runs => &mut self.runs,
        }
    }

    pub(super) fn has_records(&self) -> bool {
        TABLES.iter().any(|table| !self.directory(*table).is_empty())
    }

    pub(super) fn operations(&self) -> Operations {
        Operations(self.operations.clone())
    }

    pub(super) fn set_operations(&mut self, operations: Operations) {
        self.operations = operations.0;
    }
}

/// What the store knows of a record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct KvRecord {
    /// The revision at which it was written.
    pub(super) revision: u64,
    pub(super) last_key: Option<u64>,
    index: Option<KvAuditIndex>,
    /// How many further parts the value has.
    pub(super) parts: u32,
}
encode_fields!(struct KvRecord {
    0 => revision,
    1 => last_key,
    2 => index,
    3 => parts,
});

/// The fields that audit rows are queried by.
#[derive(Clone, Debug, PartialEq, Eq)]
struct KvAuditIndex {
    tool: String,
    status: String,
    channel: Option<String>,
    at: Ms,
}
encode_fields!(struct KvAuditIndex {
    0 => tool: required,
    1 => status: required,
    2 => channel,
    3 => at,
});

impl KvRecord {
    pub(super) fn new(record: &Record, revision: u64) -> Self {
        let index = record.index.clone();
        let index = index.map(|AuditIndex { tool, status, channel, at }| KvAuditIndex { tool, status, channel, at });
        Self { revision, last_key: record.last_key, index, parts: 0 }
    }

    /// Makes the record of a key.
    pub(super) fn record(self, table: Table, key: u64, value: Bytes) -> Record {
        let index =
            self.index.map(|KvAuditIndex { tool, status, channel, at }| AuditIndex { tool, status, channel, at });
        Record { table, key, last_key: self.last_key, index, value }
    }
}

/// A description that counts the further parts of its value.
pub(super) trait InParts: StoredValue + Clone {
    const KIND: RecordKind;
    fn set_parts(&mut self, parts: u32);
}

impl InParts for KvHead {
    const KIND: RecordKind = RecordKind::KvHead;
    fn set_parts(&mut self, parts: u32) {
        self.parts = parts;
    }
}

impl InParts for KvRecord {
    const KIND: RecordKind = RecordKind::KvRecord;
    fn set_parts(&mut self, parts: u32) {
        self.parts = parts;
    }
}

/// Encodes a description and the value that it describes, in values of at most `limit` bytes: the first, and further
/// parts.
///
/// # Errors
/// `too_large` if there is no room for the description.
pub(super) fn seal_value<T: InParts>(description: &mut T, value: &Bytes, limit: usize) -> Result<(Bytes, Vec<Bytes>)> {
    description.set_parts(0);
    let whole = frame(description, value);
    if whole.len() <= limit {
        return Ok((whole, Vec::new()));
    }
    description.set_parts(u32::MAX);
    let room = limit.saturating_sub(frame(description, &[]).len());
    if room == 0 {
        return Err(Error::new(
            ErrorCode::TooLarge,
            format!(
                "a name or an index is too long for this store, whose values have at most {limit} bytes; nothing was written"
            ),
        ));
    }
    let (first, rest) = (value.slice(..room.min(value.len())), value.slice(room.min(value.len())..));
    let mut parts = Vec::new();
    let mut at = 0_usize;
    while at < rest.len() {
        let end = at.saturating_add(limit).min(rest.len());
        parts.push(rest.slice(at..end));
        at = end;
    }
    description.set_parts(u32::try_from(parts.len()).unwrap_or(u32::MAX));
    Ok((frame(description, &first), parts))
}

fn frame<T: InParts>(description: &T, value: &[u8]) -> Bytes {
    let sealed = seal_record(T::KIND, description);
    let length = u32::try_from(sealed.len()).unwrap_or(u32::MAX); // proof: batches of 4 GB fit no memory
    [&length.to_le_bytes(), sealed.as_ref(), value].concat().into()
}

/// Splits a value of [`seal_value`] into its description and the bytes after it.
///
/// # Errors
/// `corrupt_record` if it is damaged, `unsupported_version` if a newer version wrote it.
pub(super) fn open_value<T: InParts>(value: &Bytes) -> Result<(T, Bytes)> {
    let split = || {
        let length = usize::try_from(u32::from_le_bytes(*value.first_chunk()?)).ok()?;
        let mut sealed = value.slice(4..);
        if length > sealed.len() {
            return None;
        }
        let rest = sealed.split_off(length);
        Some((sealed, rest))
    };
    let damaged = || Error::new(ErrorCode::CorruptRecord, "a value of the key-value store is damaged");
    let (sealed, rest) = split().ok_or_else(damaged)?;
    Ok((open_record(T::KIND, &sealed)?, rest))
}
