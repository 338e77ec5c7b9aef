//! Appends as values: one key for each, written once.
//!
//! Such a key names the writer, so two writers never write the same one. Each append names the one before it, so
//! appends form a tree.

use super::key::session_key;
use super::value::{InParts, KvRecord, TABLES, open_value, seal_value};
use crate::encoding::encode_fields;
use crate::error::{Error, ErrorCode, Result};
use crate::store::memory::StoredSession;
use crate::store::record::RecordKind;
use crate::store::{Batch, Record, Table};
use bytes::{Bytes, BytesMut};

/// What tells an append from every other one of its session.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct AppendId {
    pub(super) revision: u64,
    pub(super) writer: String,
}
encode_fields!(struct AppendId {
    0 => revision,
    1 => writer: required,
});

/// The beginning of the keys of a session's appends.
pub(super) fn append_prefix(session: &str) -> String {
    format!("append:{}:", session_key(session))
}

impl AppendId {
    pub(super) fn key(&self, session: &str) -> String {
        format!("{}{:014x}:{}", append_prefix(session), self.revision, self.writer)
    }

    /// Returns the name of the append in its session, which the side of a fork has that ends with it.
    pub(super) fn name(&self) -> String {
        format!("{:x}-{}", self.revision, self.writer)
    }

    /// Reads the id from a [name](Self::name).
    pub(super) fn of_name(name: &str) -> Option<Self> {
        let (revision, writer) = name.split_once('-')?;
        Some(Self { revision: u64::from_str_radix(revision, 16).ok()?, writer: writer.to_owned() })
    }

    /// Reads the id from a key of [`key`](Self::key).
    pub(super) fn of_key(key: &str) -> Option<Self> {
        let (rest, writer) = key.rsplit_once(':')?;
        let (_, revision) = rest.rsplit_once(':')?;
        Some(Self { revision: u64::from_str_radix(revision, 16).ok()?, writer: writer.to_owned() })
    }
}

/// The description of an append. Its head and the values of its records follow, one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct KvAppend {
    /// The session's id.
    session: String,
    parent: Option<AppendId>,
    /// The session was deleted.
    is_deletion: bool,
    channel: Option<String>,
    operation: String,
    head_length: u64,
    removed: Vec<(u8, u64)>,
    written: Vec<WrittenRecord>,
}
encode_fields!(struct KvAppend {
    0 => session: required,
    1 => parent,
    2 => is_deletion,
    3 => channel,
    4 => operation: required,
    5 => head_length,
    6 => removed: list,
    7 => written: list,
});

#[derive(Clone, Debug, PartialEq, Eq)]
struct WrittenRecord {
    table: u8,
    key: u64,
    length: u64,
    record: KvRecord,
}
encode_fields!(struct WrittenRecord {
    0 => table,
    1 => key,
    2 => length,
    3 => record: required,
});

impl InParts for KvAppend {
    const KIND: RecordKind = RecordKind::KvAppend;
    /// An append is one value: [`StoredAppend::seal`] refuses a larger one.
    fn set_parts(&mut self, _parts: u32) {}
}

/// An append as it was written or read.
#[derive(Clone, Debug, Default)]
pub(super) struct StoredAppend {
    pub(super) parent: Option<AppendId>,
    pub(super) is_deletion: bool,
    pub(super) operation: String,
    pub(super) batch: Batch,
    /// Its value cannot be read.
    pub(super) is_damaged: bool,
}

fn number_of(table: Table) -> u8 {
    match table {
        Table::Log => 0,
        Table::ToolInvocations => 1,
        Table::Runs => 2,
    }
}

fn damaged() -> Error {
    Error::new(ErrorCode::CorruptRecord, "an append in the key-value store is damaged")
}

fn table_of(number: u8) -> Result<Table> {
    TABLES.get(usize::from(number)).copied().ok_or_else(damaged)
}

impl StoredAppend {
    /// Encodes the append.
    ///
    /// # Errors
    /// `too_large` if the value would have more bytes than `limit`.
    pub(super) fn seal(&self, session: &str, limit: usize) -> Result<Bytes> {
        let mut description = KvAppend {
            session: session.to_owned(),
            parent: self.parent.clone(),
            is_deletion: self.is_deletion,
            channel: self.batch.channel.clone(),
            operation: self.operation.clone(),
            head_length: self.batch.head.len() as u64,
            removed: self.batch.remove.iter().map(|(table, key)| (number_of(*table), *key)).collect(),
            written: Vec::new(),
        };
        let mut values = BytesMut::from(self.batch.head.as_ref());
        for record in self.batch.put.iter().chain(&self.batch.replace) {
            let (table, key, length) = (number_of(record.table), record.key, record.value.len() as u64);
            description.written.push(WrittenRecord { table, key, length, record: KvRecord::new(record, 0) });
            values.extend_from_slice(&record.value);
        }
        let (value, rest) = seal_value(&mut description, &values.freeze(), limit)?;
        if rest.is_empty() {
            return Ok(value);
        }
        Err(Error::new(
            ErrorCode::TooLarge,
            format!("an append to this store has at most {limit} bytes, and this one has more; nothing was written"),
        ))
    }

    /// Decodes an append of `session` with this id.
    ///
    /// # Errors
    /// `unsupported_version`, `invalid_input` if it is another session's, whose key has the same hash.
    pub(super) fn open(session: &str, id: &AppendId, value: &Bytes) -> Result<Self> {
        match Self::read(id, value) {
            Ok((of, append)) if of == session => Ok(append),
            Ok(_) => {
                Err(Error::invalid("the session's id has the same hash as a long id that is stored; choose another id"))
            }
            Err(error) if error.code == ErrorCode::CorruptRecord => Ok(Self { is_damaged: true, ..Self::default() }),
            Err(error) => Err(error),
        }
    }

    fn read(id: &AppendId, value: &Bytes) -> Result<(String, Self)> {
        let (description, mut values) = open_value::<KvAppend>(value)?;
        let mut take = |length: u64| {
            let length = usize::try_from(length).ok().filter(|length| *length <= values.len());
            // Copied, since a slice would keep all of the pack that it was read from.
            length.map(|length| Bytes::copy_from_slice(&values.split_to(length))).ok_or_else(damaged)
        };
        let mut batch = Batch {
            head: take(description.head_length)?,
            channel: description.channel,
            at_least: id.revision,
            ..Batch::default()
        };
        for (table, key) in description.removed {
            batch.remove.push((table_of(table)?, key));
        }
        for WrittenRecord { table, key, length, record } in description.written {
            let record: Record = record.record(table_of(table)?, key, take(length)?);
            batch.replace.push(record);
        }
        let KvAppend { session, parent, is_deletion, operation, .. } = description;
        Ok((session, Self { parent, is_deletion, operation, batch, is_damaged: false }))
    }

    /// Applies the append to the session as of its parent.
    pub(super) fn apply(self, id: &AppendId, session: &mut StoredSession) {
        if self.is_damaged {
            session.set_revision(id.revision);
        } else if self.is_deletion {
            session.delete();
            session.set_revision(id.revision);
        } else {
            session.write(self.batch, &self.operation);
        }
    }
}
