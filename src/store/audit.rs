//! Rows of the audit table: an invocation without its payload, and where the payload is.

use super::record::{RecordKind, seal_record};
use super::{AuditIndex, Record, Table};
use crate::clock::Ms;
use crate::history::{History, HistoryEntry};
use crate::stored::stored;
use crate::tool::{InvocationStatus, ToolInvocation, ToolResult};

/// One row. Sizes are in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct AuditRow {
    pub id: String,
    pub number: u64,
    pub message_id: String,
    pub turn: u32,
    pub call_id: String,
    pub name: String,
    pub round: u32,
    pub place: u32,
    pub status: InvocationStatus,
    pub started_at: Option<Ms>,
    pub finished_at: Option<Ms>,
    pub stored_at: Ms,
    pub redacted: bool,
    pub channel: Option<String>,
    pub arguments_bytes: u64,
    pub result_bytes: Option<u64>,
    /// The log record that holds call and arguments.
    pub record: u64,
    /// The log record that holds the result, where it came later.
    pub result_record: Option<u64>,
}
stored!(struct AuditRow {
    id, number, message_id, turn, call_id, name, round, place, status, started_at, finished_at, stored_at, redacted,
    channel, arguments_bytes, result_bytes, record, result_record,
});

impl AuditRow {
    /// The row of an invocation.
    #[must_use]
    pub fn new(invocation: &ToolInvocation, result_record: Option<u64>) -> Self {
        Self {
            id: invocation.id.clone(),
            number: invocation.number,
            message_id: invocation.message_id.clone(),
            turn: invocation.turn,
            call_id: invocation.call_id.clone(),
            name: invocation.name.clone(),
            round: invocation.round,
            place: invocation.place,
            status: invocation.status,
            started_at: invocation.started_at,
            finished_at: invocation.finished_at,
            stored_at: invocation.stored_at,
            redacted: invocation.redacted,
            channel: invocation.channel.clone(),
            arguments_bytes: invocation.arguments.text().len() as u64,
            result_bytes: bytes_of(invocation.result.as_ref()),
            record: invocation.record,
            result_record,
        }
    }

    /// The row that an appended entry writes: of its invocation, or of an earlier one that it answers.
    pub(super) fn of(history: &History, entry: &HistoryEntry, key: u64) -> Option<Self> {
        match entry {
            HistoryEntry::Invocation(invocation) => Some(Self::new(invocation, None)),
            HistoryEntry::Result(result) => {
                let mut row = Self::new(history.invocation(&result.invocation)?, Some(key));
                row.status = result.status;
                row.started_at = result.started_at.or(row.started_at);
                row.finished_at = result.finished_at;
                row.result_bytes = bytes_of(result.result.as_ref());
                Some(row)
            }
            HistoryEntry::Message(_) | HistoryEntry::SetAside(_) => None,
        }
    }

    /// As a record of the table.
    #[must_use]
    pub fn record(&self) -> Record {
        let index = AuditIndex {
            tool: self.name.clone(),
            status: self.status.as_str().to_owned(),
            channel: self.channel.clone(),
            at: self.finished_at.or(self.started_at).unwrap_or(self.stored_at),
        };
        Record {
            table: Table::ToolInvocations,
            key: self.number,
            last_key: None,
            index: Some(index),
            value: seal_record(RecordKind::Audit, self),
        }
    }
}

fn bytes_of(result: Option<&ToolResult>) -> Option<u64> {
    result.map(|result| result.content.as_str().len() as u64)
}
