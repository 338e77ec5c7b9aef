//! Rows of the audit table: an invocation without its payload, and the keys of the log records that have the payload.

use super::record::{RecordKind, seal_record};
use super::{AuditIndex, Record, Table};
use crate::clock::Ms;
use crate::encoding::is_default;
use crate::history::{History, HistoryEntry};
use crate::tool::{InvocationStatus, ToolInvocation, ToolResult};
use minicbor::{Decode, Encode};

/// A row of the audit table. Sizes are in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
#[allow(missing_docs)]
#[cbor(map)]
pub struct AuditRow {
    #[n(0)]
    pub id: String,
    #[cbor(n(1), skip_if = "is_default")]
    pub number: u64,
    #[n(2)]
    pub message_id: String,
    #[cbor(n(3), skip_if = "is_default")]
    pub turn: u32,
    #[n(4)]
    pub call_id: String,
    #[n(5)]
    pub name: String,
    #[cbor(n(6), skip_if = "is_default")]
    pub round: u32,
    #[cbor(n(7), skip_if = "is_default")]
    pub place: u32,
    #[n(8)]
    pub status: InvocationStatus,
    #[n(9)]
    pub started_at: Option<Ms>,
    #[n(10)]
    pub finished_at: Option<Ms>,
    #[cbor(n(11), skip_if = "is_default")]
    pub stored_at: Ms,
    #[cbor(n(12), skip_if = "is_default")]
    pub redacted: bool,
    #[n(13)]
    pub channel: Option<String>,
    #[cbor(n(14), skip_if = "is_default")]
    pub arguments_bytes: u64,
    #[n(15)]
    pub result_bytes: Option<u64>,
    /// Key of the log record with the call and its arguments.
    #[cbor(n(16), skip_if = "is_default")]
    pub record: u64,
    /// Key of the log record with the result, if that is a later one.
    #[n(17)]
    pub result_record: Option<u64>,
}

impl AuditRow {
    /// Builds the row of an invocation.
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
            result_bytes: result_bytes(invocation.result.as_ref()),
            record: invocation.record,
            result_record,
        }
    }

    /// Builds the row that an appended entry writes: that of its invocation, or of the earlier one that it answers.
    pub(super) fn of_entry(history: &History, entry: &HistoryEntry, key: u64) -> Option<Self> {
        match entry {
            HistoryEntry::Invocation(invocation) => Some(Self::new(invocation, None)),
            HistoryEntry::Result(result) => {
                let mut row = Self::new(history.invocation(&result.invocation)?, Some(key));
                row.status = result.status;
                row.started_at = result.started_at.or(row.started_at);
                row.finished_at = result.finished_at;
                row.result_bytes = result_bytes(result.result.as_ref());
                Some(row)
            }
            HistoryEntry::Message(_) | HistoryEntry::SetAside(_) => None,
        }
    }

    /// Encodes the row as a record.
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

fn result_bytes(result: Option<&ToolResult>) -> Option<u64> {
    result.map(|result| result.content.as_str().len() as u64)
}
