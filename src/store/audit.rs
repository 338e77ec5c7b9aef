//! Rows of the audit table: an invocation without its payload, and the keys of the log records that have the payload.

use super::record::{RecordKind, open_record, seal_record};
use super::{AuditIndex, LogStore, Query, Record, Table};
use crate::clock::Ms;
use crate::encoding::{UnknownFields, encode_with_unknown_fields};
use crate::error::{ErrorCode, Result};
use crate::history::{History, HistoryEntry};
use crate::tool::{InvocationStatus, ToolInvocation, ToolResult};
use std::collections::BTreeMap;

/// A row of the audit table. Sizes are in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
    /// Key of the log record with the call and its arguments.
    pub record: u64,
    /// Key of the log record with the result, if that is a later one.
    pub result_record: Option<u64>,
    /// Fields that a newer build wrote.
    pub unknown: UnknownFields,
}
encode_with_unknown_fields!(struct AuditRow {
    0 => id,
    1 => number,
    2 => message_id,
    3 => turn,
    4 => call_id,
    5 => name,
    6 => round,
    7 => place,
    8 => status,
    9 => started_at,
    10 => finished_at,
    11 => stored_at,
    12 => redacted,
    13 => channel,
    14 => arguments_bytes,
    15 => result_bytes,
    16 => record,
    17 => result_record,
});

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
            redacted: invocation.is_redacted(),
            channel: invocation.channel.clone(),
            arguments_bytes: invocation.arguments.text().len() as u64,
            result_bytes: result_bytes(invocation.result.as_ref()),
            record: invocation.record,
            result_record,
            unknown: UnknownFields::default(),
        }
    }

    /// Builds the row that an appended entry writes: that of its invocation, or of the earlier one that it answers,
    /// which `call` finds.
    pub(super) fn of_entry<'c>(
        call: &dyn Fn(&str) -> Option<&'c ToolInvocation>,
        entry: &HistoryEntry,
        key: u64,
    ) -> Option<Self> {
        match entry {
            HistoryEntry::Invocation(invocation) => Some(Self::new(invocation, None)),
            HistoryEntry::Result(result) => {
                let call = call(&result.invocation)?;
                // The result was stored before the word that it comes later: the row has it.
                if result.is_deferral && !call.takes_result() {
                    return None;
                }
                let mut row = Self::new(call, Some(key));
                row.status = result.status;
                row.started_at = result.started_at.or(row.started_at);
                row.finished_at = result.finished_at;
                row.redacted |= result.is_redacted;
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

/// Adds to rows that replace stored ones the fields that a newer build wrote there.
///
/// # Errors
/// If the store cannot be read; `unsupported_version` if a stored row has a variant of a newer build.
pub(super) async fn keep_unknown_fields(store: &dyn LogStore, session: &str, rows: &mut [Record]) -> Result<()> {
    for row in rows {
        let query = Query { from: row.key, to: row.key, ..Query::all(Table::ToolInvocations) };
        let Some(stored) = store.read(session, query).await?.into_iter().next() else { continue };
        match open_record::<AuditRow>(RecordKind::Audit, &stored.value) {
            Ok(AuditRow { unknown, .. }) if unknown.count() > 0 => {
                let written: AuditRow = open_record(RecordKind::Audit, &row.value)?;
                row.value = seal_record(RecordKind::Audit, &AuditRow { unknown, ..written });
            }
            Err(error) if error.code == ErrorCode::UnsupportedVersion => return Err(error),
            // A row without such fields, or a damaged one, is replaced as a whole: the log has all that it contains.
            _ => {}
        }
    }
    Ok(())
}

/// Returns the new calls among entries of which one has a result that follows its call: in the record of a branch that
/// adopts another side of a conflict.
pub(super) fn calls_with_later_results<'e>(
    history: &History,
    entries: &'e [HistoryEntry],
) -> BTreeMap<&'e str, &'e ToolInvocation> {
    let is_unknown = |entry: &HistoryEntry| match entry {
        HistoryEntry::Result(result) => history.invocation(&result.invocation).is_none(),
        _ => false,
    };
    if !entries.iter().any(is_unknown) {
        return BTreeMap::new();
    }
    let calls = entries.iter().filter_map(|entry| match entry {
        HistoryEntry::Invocation(call) => Some((call.id.as_str(), call)),
        _ => None,
    });
    calls.collect()
}

fn result_bytes(result: Option<&ToolResult>) -> Option<u64> {
    result.map(|result| result.content.as_str().len() as u64)
}
