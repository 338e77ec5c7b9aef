//! What is erased, and stored values without it.

use crate::error::{Error, ErrorCode, Result};
use crate::history::{HistoryEntry, LogRecord, StoredSummary};
use crate::store::record::{RecordKind, open_record, open_whole_record, seal_record};
use crate::store::segment::{seal_segment, split_segment};
use crate::store::{Record, Table};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};

/// The `seq` of each stored message, by its id.
pub(super) type MessageSeqs = BTreeMap<String, u64>;

/// What is erased: messages and their calls.
#[derive(Clone, Debug, Default)]
pub(super) struct ErasedItems {
    pub(super) messages: BTreeSet<String>,
    pub(super) invocations: BTreeSet<String>,
    /// The lowest `seq` of the messages, in any branch.
    pub(super) first_seq: u64,
}

impl ErasedItems {
    /// Returns a log record or segment without the items; none if it has none of them.
    ///
    /// # Errors
    /// `corrupt_record` and `unsupported_version` for a record that cannot be read, or written again without a loss.
    pub(super) fn rewrite(&self, record: &Record, seqs: &MessageSeqs) -> Result<Option<Record>> {
        if record.last_key.is_none() {
            let value = self.rewrite_value(&record.value, seqs)?;
            return Ok(value.map(|value| Record { value, ..record.clone() }));
        }
        let (mut records, mut is_changed) = (Vec::new(), false);
        for (key, stored) in split_segment(record)?.records {
            let value = self.rewrite_value(&stored, seqs)?;
            is_changed |= value.is_some();
            let value = value.unwrap_or(stored);
            records.push(Record { table: Table::Log, key, last_key: None, index: None, value });
        }
        if !is_changed {
            return Ok(None);
        }
        let segment =
            seal_segment(&records).filter(|segment| (segment.key, segment.last_key) == (record.key, record.last_key));
        segment.map(Some).ok_or_else(|| {
            Error::new(ErrorCode::CorruptRecord, "a segment of the log does not have the records that its key names")
        })
    }

    fn rewrite_value(&self, value: &Bytes, seqs: &MessageSeqs) -> Result<Option<Bytes>> {
        let mut log: LogRecord = open_record(RecordKind::Log, value)?;
        if !self.strip(&mut log, seqs) {
            return Ok(None);
        }
        open_whole_record::<LogRecord>(RecordKind::Log, value)?;
        Ok(Some(seal_record(RecordKind::Log, &log)))
    }

    /// Removes the items from a log record. Returns true if it had any.
    fn strip(&self, log: &mut LogRecord, seqs: &MessageSeqs) -> bool {
        let has_message = log.entries.iter().any(|entry| self.is_erased_message(entry));
        let (entries, summaries, annotations) = (log.entries.len(), log.summaries.len(), log.annotations.len());
        log.entries.retain(|entry| !self.has_entry(entry, has_message));
        log.summaries.retain(|summary| !self.is_covered(summary, seqs));
        log.annotations.retain(|annotation| !self.messages.contains(&annotation.message));
        let left = (log.entries.len(), log.summaries.len(), log.annotations.len());
        let mut is_changed = (entries, summaries, annotations) != left;
        for entry in &mut log.entries {
            let HistoryEntry::Message(message) = entry else { continue };
            let late = message.late_results.len();
            message.late_results.retain(|call| !self.invocations.contains(call));
            is_changed |= late != message.late_results.len();
            if message.parent_id.as_ref().is_some_and(|id| self.messages.contains(id)) {
                message.parent_id = None;
                is_changed = true;
            }
        }
        is_changed
    }

    fn is_erased_message(&self, entry: &HistoryEntry) -> bool {
        matches!(entry, HistoryEntry::Message(message) if self.messages.contains(&message.id))
    }

    /// Returns true for an entry that is erased. What was set aside beside an erased message may be a part of it:
    /// nobody knows of which message an item is that answers no call.
    fn has_entry(&self, entry: &HistoryEntry, is_beside_message: bool) -> bool {
        match entry {
            HistoryEntry::Message(message) => self.messages.contains(&message.id),
            HistoryEntry::Invocation(call) => {
                self.messages.contains(&call.message_id) || self.invocations.contains(&call.id)
            }
            HistoryEntry::Result(result) => self.invocations.contains(&result.invocation),
            HistoryEntry::SetAside(item) => match &item.invocation {
                Some(call) => self.invocations.contains(call),
                None => is_beside_message,
            },
        }
    }

    /// Returns true for a summary that may be made of an erased message: it covers one with the lowest `seq`, in its
    /// branch or another.
    fn is_covered(&self, summary: &StoredSummary, seqs: &MessageSeqs) -> bool {
        let last = &summary.coverage.last_message_id;
        self.messages.contains(last) || seqs.get(last).is_none_or(|seq| *seq >= self.first_seq)
    }
}
