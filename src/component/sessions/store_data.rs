//! Converts what a store is asked and replies between the core and the WIT.

use super::wit;
use crate::error::{Error, ErrorCode};
use crate::store::{AuditIndex, AuditQuery, Batch, Query, Record, StoredHead, Table};

impl From<Table> for wit::Table {
    fn from(table: Table) -> Self {
        match table {
            Table::Log => Self::Log,
            Table::ToolInvocations => Self::ToolInvocations,
            Table::Runs => Self::Runs,
        }
    }
}

impl From<wit::Table> for Table {
    fn from(table: wit::Table) -> Self {
        match table {
            wit::Table::Log => Self::Log,
            wit::Table::ToolInvocations => Self::ToolInvocations,
            wit::Table::Runs => Self::Runs,
        }
    }
}

impl From<&Record> for wit::Row {
    fn from(record: &Record) -> Self {
        let index = |index: &AuditIndex| wit::AuditIndex {
            tool: index.tool.clone(),
            status: index.status.clone(),
            channel: index.channel.clone(),
            at: index.at,
        };
        Self {
            table: record.table.into(),
            key: record.key,
            last_key: record.last_key,
            index: record.index.as_ref().map(index),
            value: record.value.to_vec(),
        }
    }
}

impl From<wit::Row> for Record {
    fn from(row: wit::Row) -> Self {
        let index = |index: wit::AuditIndex| AuditIndex {
            tool: index.tool,
            status: index.status,
            channel: index.channel,
            at: index.at,
        };
        Self {
            table: row.table.into(),
            key: row.key,
            last_key: row.last_key,
            index: row.index.map(index),
            value: row.value.into(),
        }
    }
}

impl From<wit::StoredHead> for StoredHead {
    fn from(head: wit::StoredHead) -> Self {
        Self { revision: head.revision, value: head.value.into() }
    }
}

/// The operation of an append.
pub fn append_operation(session: &str, expected: u64, batch: &Batch, operation: &str) -> wit::StoreOperation {
    let rows = |records: &[Record]| records.iter().map(Into::into).collect();
    wit::StoreOperation::Append(wit::Batch {
        session: session.to_owned(),
        expected,
        operation: operation.to_owned(),
        head: batch.head.to_vec(),
        channel: batch.channel.clone(),
        at_least: batch.at_least,
        put: rows(&batch.put),
        replace: rows(&batch.replace),
        remove: batch.remove.iter().map(|(table, key)| ((*table).into(), *key)).collect(),
    })
}

/// The operation of reading rows.
pub fn read_operation(session: &str, query: &Query) -> wit::StoreOperation {
    wit::StoreOperation::Read(wit::RowQuery {
        session: session.to_owned(),
        table: query.table.into(),
        from: query.from,
        to: query.to,
        reverse: query.reverse,
        limit_bytes: query.limit_bytes,
    })
}

/// The operation of a page of the audit table.
pub fn audit_operation(query: &AuditQuery, limit: u32) -> wit::StoreOperation {
    wit::StoreOperation::Invocations(wit::AuditQuery {
        session: query.session.clone(),
        tool: query.tool.clone(),
        status: query.status.clone(),
        channel: query.channel.clone(),
        since: query.since,
        until: query.until,
        cursor: query.cursor.clone(),
        limit,
    })
}

/// Codes that an error of the store keeps.
const KEPT_CODES: [ErrorCode; 5] = [
    ErrorCode::Busy,
    ErrorCode::QuotaExceeded,
    ErrorCode::TooLarge,
    ErrorCode::CorruptRecord,
    ErrorCode::UnsupportedVersion,
];

impl From<wit::StoreFailure> for Error {
    fn from(failure: wit::StoreFailure) -> Self {
        let message = format!("the host's store failed: {}", failure.message);
        if failure.code == ErrorCode::Unavailable.as_str() {
            return Self::unavailable(message, failure.written);
        }
        let kept = KEPT_CODES.into_iter().find(|code| code.as_str() == failure.code);
        match kept {
            Some(code) => Self::new(code, message),
            // The reply was lost, or nothing is known of it.
            None if failure.written => Self::unanswered(message, true),
            None => Self::new(ErrorCode::StoreError, message),
        }
    }
}
