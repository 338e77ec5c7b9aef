//! The copy of one branch of a session, up to a message: an archive that is restored as a session of its own.
//!
//! Records that are copied whole keep their bytes. Written again are those that the cut divides, and all of a fork: in
//! the copy it is the main branch, so that its records have other keys. Messages, calls and their results keep their
//! ids, numbers and times. What cannot be read is copied as it is, and stays unreadable.

use super::additions::{WaitingAdditions, is_addition};
use super::archive::SessionArchive;
use super::audit::AuditRow;
use super::branch_directory::BranchRow;
use super::branch_write::later_annotations;
use super::branching::state_without_row;
use super::log::cut_record;
use super::record::{RecordKind, is_of_newer_build, open_record, open_whole_record, seal_record};
use super::search::filter_of;
use super::segment::{seal_segment, split_segment};
use super::{Record, Table};
use crate::branch_path::{ADDITIONS, BranchPath, DIRECTORY};
use crate::clock::Ms;
use crate::error::{Error, ErrorCode, Result};
use crate::history::{History, HistoryEntry, LogRecord, ResultEntry};
use crate::id::Seed;
use crate::message::ServiceMark;
use crate::session_head::{BranchState, HeadMark, Overview, Preview, SessionHead, StoredOwner, UnfinishedErasure};
use crate::term_filter::TermFilter;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};

/// Which part of a session is copied, and when.
#[derive(Clone, Debug)]
pub struct SessionCopy {
    /// The number of the branch.
    pub branch: u64,
    /// The id of the last message that is copied; none for all of the branch.
    pub until: Option<String>,
    /// The name of the append of results that the original stored after the cut.
    pub operation: String,
    /// The time of the copy.
    pub at: Ms,
    /// The seed of the maps.
    pub seed: Seed,
}

/// A log record or segment, as far as it is copied.
struct CopiedRecord {
    /// As it is stored in the original.
    stored: Record,
    /// The log records in it; none if its index cannot be read.
    parts: Option<Vec<CopiedPart>>,
}

/// A log record that is copied.
struct CopiedPart {
    /// The key in the original.
    key: u64,
    value: Bytes,
    /// The content; none if it cannot be read.
    log: Option<LogRecord>,
    /// True if the content is not that of `value` any more.
    is_changed: bool,
}

/// The log of a branch.
struct BranchLog {
    path: BranchPath,
    records: Vec<CopiedRecord>,
    /// The results and annotations that were stored of messages that branches share.
    additions: Vec<LogRecord>,
    /// True if a record cannot be read.
    has_damage: bool,
}

impl SessionArchive {
    /// Returns an archive that has of this one a branch alone, up to and with a message and its calls. Results of these
    /// calls and annotations are copied whenever they were stored. Unfinished runs, other branches, and summaries that
    /// were stored after the cut are not copied, and the owner of the conversation is the session. Title, channel,
    /// metadata and state bag are those of the session now.
    ///
    /// # Errors
    /// `not_found` if the branch does not have the message; `corrupt_record` if the row of the branch cannot be read;
    /// `unsupported_version` for a record of a newer build that would have to be written again.
    pub fn copy_branch(&self, copy: &SessionCopy) -> Result<Self> {
        let state = self.branch_state(copy.branch)?;
        let mut log = self.branch_log(state.path.clone())?;
        let whole = log.fold(copy.seed);
        let cut = copy.until.as_ref().map(|id| past_message(&whole, id)).transpose()?;
        let cut = cut.filter(|past| whole.messages().last().is_some_and(|last| last.seq >= *past));
        if let Some(past) = cut {
            log.cut(past);
        }
        log.drop_results_without_calls(&whole);
        log.renumber();
        let history = log.fold(copy.seed);
        log.keep_additions(&history);
        let mut records = log.seal(cut.map(|past| (past, history.position().turns)))?;
        let mut head = self.copied_head(copy, (&state, &records), (&history, cut));
        head.term_filter =
            if log.has_damage { TermFilter::default() } else { filter_of(history.messages(), head.history_revision) };
        let later = later_record(copy, (&history, &whole), head.mark(self.revision));
        if let Some(record) = &later {
            let (key, value) = (head.next_record, seal_record(RecordKind::Log, record));
            head.next_record += 1;
            head.log_bytes = head.log_bytes.saturating_add(value.len() as u64);
            records.push(Record { table: Table::Log, key, last_key: None, index: None, value });
        }
        head.additions = log.additions.len() as u64;
        records.extend(log.additions().map(|(key, addition)| {
            let value = seal_record(RecordKind::Log, addition);
            Record { table: Table::Log, key, last_key: None, index: None, value }
        }));
        records.extend(self.audit_rows(&log, later.as_ref().map(|record| (head.next_record - 1, record)))?);
        Ok(Self { revision: self.revision, head, records })
    }

    /// Returns the state of a branch.
    fn branch_state(&self, number: u64) -> Result<BranchState> {
        if self.head.branch.number == number {
            return Ok(self.head.branch_state());
        }
        let is_row = |record: &&Record| record.table == Table::Log && record.key == DIRECTORY + number;
        let row = self.records.iter().find(is_row);
        let row = row.and_then(|record| open_record::<BranchRow>(RecordKind::Branch, &record.value).ok());
        row.map_or_else(|| state_without_row(number, self.head.branch_count), |row| Ok(row.state))
    }

    /// Reads the records of a branch.
    fn branch_log(&self, path: BranchPath) -> Result<BranchLog> {
        let mut log = BranchLog { path, records: Vec::new(), additions: self.additions()?, has_damage: false };
        let is_history = |record: &&Record| record.table == Table::Log && record.key < DIRECTORY;
        for record in self.records.iter().filter(is_history) {
            let Some(range_end) = log.path.range_end(record.key) else { continue };
            let parts = match split_segment(record) {
                Ok(split) => Some(log.read_parts(split.records, range_end)?),
                Err(error) if error.code == ErrorCode::UnsupportedVersion => return Err(error),
                Err(_) => {
                    log.has_damage = true;
                    None
                }
            };
            log.records.push(CopiedRecord { stored: record.clone(), parts });
        }
        Ok(log)
    }

    /// Reads the additions. One that is damaged is not copied: nobody knows whether it is of the branch.
    fn additions(&self) -> Result<Vec<LogRecord>> {
        let mut additions = Vec::new();
        for record in self.records.iter().filter(|record| is_addition(record)) {
            match open_whole_record::<LogRecord>(RecordKind::Log, &record.value) {
                Ok(addition) => additions.push(addition),
                Err(error) if error.code == ErrorCode::UnsupportedVersion => return Err(error),
                Err(_) => {}
            }
        }
        Ok(additions)
    }

    /// Returns the head of the copy. `history` is what it has up to the cut.
    fn copied_head(
        &self,
        copy: &SessionCopy,
        (state, records): (&BranchState, &[Record]),
        (history, cut): (&History, Option<u64>),
    ) -> SessionHead {
        let head = &self.head;
        let messages = history.messages();
        let next_seq = cut.unwrap_or_else(|| state.next_seq.max(messages.last().map_or(0, |last| last.seq + 1)));
        let turns = history.position().turns;
        let missing = if head.erasures > 0 { next_seq.saturating_sub(messages.len() as u64) } else { 0 };
        let erased = if cut.is_none() { state.erased } else { missing };
        let past_last = records.last().map_or(0, |last| last.last_key.unwrap_or(last.key) + 1);
        let known_end = if cut.is_none() { state.path.count_keys(0, state.next_record) } else { 0 };
        // A request of the original with the same owner, and with nothing that is not copied.
        let repeats_request = cut.is_none() && head.runs.is_empty() && head.owner == StoredOwner::default();
        let mut overview = if state.overview.describes(state.next_seq, state.erased) {
            state.overview.of_fork(messages)
        } else {
            Overview { preview: Preview::newest(messages), ..Overview::default() }
        };
        overview.set_counters(next_seq, erased);
        let segments = records.iter().filter_map(|record| record.last_key);
        let mut copied = SessionHead {
            created_at: copy.at,
            updated_at: copy.at,
            owner: StoredOwner::default(),
            runs: Vec::new(),
            branch_count: 0,
            begun_forks: 0,
            is_archived: false,
            erasing: unfinished_erasure(&head.erasing, history),
            ..head.clone()
        };
        copied.set_branch_state(BranchState {
            path: BranchPath::default(),
            next_seq,
            next_record: past_last.max(known_end),
            turns: if cut.is_none() { turns.max(state.turns) } else { turns },
            log_bytes: records.iter().map(log_bytes).sum(),
            merged_until: segments.max().map_or(0, |last| last + 1),
            has_deferred_compaction: cut.is_none() && state.has_deferred_compaction,
            last_request: if repeats_request { state.last_request.clone() } else { None },
            erased,
            chain_cut: if has_begun_conversation(history) { next_seq } else { state.chain_cut.min(next_seq) },
            overview,
        });
        copied
    }

    /// Returns the audit rows of the calls that are copied. `later` is the record of their later results, with its key.
    fn audit_rows(&self, log: &BranchLog, later: Option<(u64, &LogRecord)>) -> Result<Vec<Record>> {
        let mut rows: BTreeMap<u64, AuditRow> = BTreeMap::new();
        let mut history = History::new(Seed::default());
        let copied = log.readable().map(|(key, record)| (log.copied_key(key), record));
        for (key, record) in copied.chain(log.additions()).chain(later) {
            for entry in &record.entries {
                if let Some(row) = AuditRow::of_entry(&|id| history.invocation(id), entry, key) {
                    rows.insert(row.number, row);
                }
                history.apply(entry.clone());
            }
        }
        for stored in self.records.iter().filter(|record| record.table == Table::ToolInvocations) {
            match open_record::<AuditRow>(RecordKind::Audit, &stored.value) {
                Ok(original) => {
                    if let Some(row) = rows.get_mut(&stored.key) {
                        row.unknown = original.unknown;
                    } else if log.has_unreadable(original.record) {
                        let record = log.copied_key(original.record);
                        rows.insert(stored.key, AuditRow { record, ..original });
                    }
                }
                Err(error) if error.code == ErrorCode::UnsupportedVersion => return Err(error),
                // The log has all that it contains.
                Err(_) => {}
            }
        }
        Ok(rows.values().map(AuditRow::record).collect())
    }
}

/// Returns true if an answer is of a conversation that a session began at a service. The original goes on in it, and it
/// may have what the copy lacks, so the copy begins another one.
fn has_begun_conversation(history: &History) -> bool {
    let marks = history.messages().iter().filter_map(|message| message.answer.as_ref()?.service_mark.as_deref());
    marks.into_iter().any(ServiceMark::is_of_begun_conversation)
}

impl BranchLog {
    /// Reads those of these records that belong to the branch, whose range of keys ends at `range_end`.
    fn read_parts(&mut self, records: Vec<(u64, Bytes)>, range_end: u64) -> Result<Vec<CopiedPart>> {
        let mut parts = Vec::new();
        for (key, value) in records.into_iter().filter(|(key, _)| *key < range_end) {
            let mut part = CopiedPart { key, value, log: None, is_changed: false };
            match open_record::<LogRecord>(RecordKind::Log, &part.value) {
                Ok(log) => part.log = Some(log),
                Err(error) if error.code == ErrorCode::UnsupportedVersion => return Err(error),
                Err(_) => self.has_damage = true,
            }
            if let (Some(log), Some(until_seq)) = (&mut part.log, self.path.until_seq(key)) {
                part.is_changed = cut_record(log, until_seq);
            }
            parts.push(part);
        }
        Ok(parts)
    }

    /// Returns the key of a record in the copy. Records that are missing leave the same gap.
    fn copied_key(&self, key: u64) -> u64 {
        self.path.count_keys(0, key)
    }

    fn parts(&self) -> impl Iterator<Item = &CopiedPart> {
        self.records.iter().filter_map(|record| record.parts.as_ref()).flatten()
    }

    fn parts_mut(&mut self) -> impl Iterator<Item = &mut CopiedPart> {
        self.records.iter_mut().filter_map(|record| record.parts.as_mut()).flatten()
    }

    /// Iterates over the records that can be read, with their keys in the original.
    fn readable(&self) -> impl Iterator<Item = (u64, &LogRecord)> {
        self.parts().filter_map(|part| part.log.as_ref().map(|log| (part.key, log)))
    }

    /// Returns true if the record of this key is copied although it cannot be read.
    fn has_unreadable(&self, key: u64) -> bool {
        self.records.iter().any(|record| match &record.parts {
            Some(parts) => parts.iter().any(|part| part.key == key && part.log.is_none()),
            None => (record.stored.key..=record.stored.last_key.unwrap_or(record.stored.key)).contains(&key),
        })
    }

    fn fold(&self, seed: Seed) -> History {
        let mut history = History::new(seed);
        let mut additions = WaitingAdditions::default();
        self.additions.iter().for_each(|addition| additions.push(addition.clone()));
        for (_, log) in self.readable() {
            additions.apply_before(log.mark.revision, &mut history, &self.path);
            log.entries.iter().for_each(|entry| history.apply(entry.clone()));
            log.annotations.iter().for_each(|annotation| history.annotate(annotation.clone()));
            log.summaries.iter().for_each(|summary| history.apply_summary(summary.clone()));
        }
        additions.apply_rest(&mut history, &self.path);
        history
    }

    /// Removes the additions that are not of copied messages, and those that a copied record has. In the copy they are
    /// of the main branch.
    fn keep_additions(&mut self, copied: &History) {
        let is_whole = |part: &&CopiedPart| !part.is_changed;
        let known = self.parts().filter(is_whole).filter_map(|part| part.log.as_ref());
        let known: BTreeSet<String> = known.map(|log| log.operation.clone()).collect();
        let path = &self.path;
        self.additions.retain_mut(|addition| {
            *addition = addition.take_additions_to(copied, path);
            addition.added_to = 0;
            let is_empty = addition.entries.is_empty() && addition.annotations.is_empty();
            !is_empty && !known.contains(&addition.operation)
        });
    }

    /// Iterates over the additions that are copied, with their keys.
    fn additions(&self) -> impl Iterator<Item = (u64, &LogRecord)> {
        (ADDITIONS..).zip(&self.additions)
    }

    /// Removes the messages from `past` on, and what was stored after the first of them.
    fn cut(&mut self, past: u64) {
        let mut is_past = false;
        for parts in self.records.iter_mut().map(|record| record.parts.as_mut()) {
            let Some(parts) = parts else { continue };
            parts.retain_mut(|part| {
                let Some(log) = part.log.as_mut().filter(|_| !is_past) else { return !is_past };
                let is_next = |entry: &HistoryEntry| matches!(entry, HistoryEntry::Message(m) if m.seq >= past);
                if let Some(at) = log.entries.iter().position(is_next) {
                    // Summaries of what precedes the record stay with it.
                    log.entries.truncate(at);
                    part.is_changed = true;
                    is_past = true;
                    return at > 0;
                }
                true
            });
        }
        // What cannot be read after the last record that is copied may be of a later message.
        let last = self.readable().last().map(|(key, _)| key);
        let is_copied = |key: u64| last.is_some_and(|last| key <= last);
        for record in &mut self.records {
            record.parts.iter_mut().for_each(|parts| parts.retain(|part| is_copied(part.key)));
        }
        self.records.retain(|record| match &record.parts {
            Some(parts) => !parts.is_empty(),
            None => is_copied(record.stored.key),
        });
        self.has_damage =
            self.records.iter().any(|record| record.parts.is_none()) || self.parts().any(|part| part.log.is_none());
    }

    /// Removes results of calls that are not copied: those after the cut, and those of unfinished runs.
    fn drop_results_without_calls(&mut self, whole: &History) {
        let calls: BTreeSet<String> = self.readable().flat_map(|(_, log)| call_ids(log)).map(str::to_owned).collect();
        for part in self.parts_mut() {
            let Some(log) = &mut part.log else { continue };
            let count = log.entries.len();
            log.entries.retain(|entry| {
                let HistoryEntry::Result(result) = entry else { return true };
                let is_elsewhere = || whole.invocation(&result.invocation).is_some() || result.run.is_some();
                calls.contains(&result.invocation) || !is_elsewhere()
            });
            part.is_changed |= log.entries.len() != count;
        }
    }

    /// Gives the calls the keys that their records have in the copy.
    fn renumber(&mut self) {
        let path = self.path.clone();
        for part in self.parts_mut() {
            let key = path.count_keys(0, part.key);
            for entry in part.log.iter_mut().flat_map(|log| &mut log.entries) {
                if let HistoryEntry::Invocation(call) = entry
                    && call.record != key
                    && key != part.key
                {
                    call.record = key;
                    part.is_changed = true;
                }
            }
        }
    }

    /// Returns the records of the copy, in the order of their keys. `cut` are the counters of messages and turns of a
    /// record that was cut.
    fn seal(&self, cut: Option<(u64, u32)>) -> Result<Vec<Record>> {
        let mut sealed = Vec::new();
        for record in &self.records {
            let moved = self.copied_key(record.stored.key);
            let Some(parts) = &record.parts else {
                let last_key = record.stored.last_key.map(|last| last - record.stored.key + moved);
                sealed.push(Record { key: moved, last_key, ..record.stored.clone() });
                continue;
            };
            let records = parts.iter().map(|part| self.seal_part(part, cut)).collect::<Result<Vec<_>>>()?;
            let is_segment = record.stored.last_key.is_some();
            match seal_segment(&records).filter(|_| is_segment) {
                Some(segment) => sealed.push(segment),
                None => sealed.extend(records),
            }
        }
        Ok(sealed)
    }

    fn seal_part(&self, part: &CopiedPart, cut: Option<(u64, u32)>) -> Result<Record> {
        let key = self.copied_key(part.key);
        let mut value = part.value.clone();
        if let Some(log) = part.log.as_ref().filter(|_| part.is_changed) {
            if is_of_newer_build(&value) {
                open_whole_record::<LogRecord>(RecordKind::Log, &value)?;
            }
            let mut log = log.clone();
            if let Some((next_seq, turns)) = cut {
                log.mark.next_seq = log.mark.next_seq.min(next_seq);
                log.mark.turns = log.mark.turns.min(turns);
            }
            value = seal_record(RecordKind::Log, &log);
        }
        Ok(Record { table: Table::Log, key, last_key: None, index: None, value })
    }
}

/// Returns the `seq` after a message.
fn past_message(history: &History, id: &str) -> Result<u64> {
    history.message(id).map(|message| message.seq + 1).ok_or_else(|| {
        let message = format!(
            "the branch has no message \"{id}\" to copy the session up to; `switchTo` the branch that has it, or wait \
             until its run is over"
        );
        Error::new(ErrorCode::NotFound, message).with(|details| {
            details.text("message", id);
        })
    })
}

/// Returns what an erasure that was cut off has left of the messages that are copied. The copy has no earlier appends.
fn unfinished_erasure(left: &UnfinishedErasure, copied: &History) -> UnfinishedErasure {
    let mut pending = left.pending.clone();
    pending.retain(|id| copied.message(id).is_some());
    UnfinishedErasure { pending, ..UnfinishedErasure::default() }
}

fn call_ids(log: &LogRecord) -> impl Iterator<Item = &str> {
    log.entries.iter().filter_map(|entry| match entry {
        HistoryEntry::Invocation(call) => Some(call.id.as_str()),
        _ => None,
    })
}

/// Returns what the whole branch has of the results of copied calls that the copy lacks: those that were stored after
/// the cut.
fn later_results(copied: &History, whole: &History) -> Vec<HistoryEntry> {
    let mut later = Vec::new();
    for call in copied.invocations() {
        let Some(known) = whole.invocation(&call.id) else { continue };
        if (known.status, &known.result) == (call.status, &call.result) {
            continue;
        }
        later.push(HistoryEntry::Result(ResultEntry {
            invocation: call.id.clone(),
            status: known.status,
            started_at: known.started_at,
            finished_at: known.finished_at,
            freshness: known.append_freshness,
            result: known.result.clone(),
            is_replacement: !call.takes_result(),
            is_redacted: known.has_redacted_result,
            ..ResultEntry::default()
        }));
    }
    later
}

/// Returns the record of what was stored of the copied messages and calls after the cut; none if that is nothing.
fn later_record(copy: &SessionCopy, (copied, whole): (&History, &History), mark: HeadMark) -> Option<LogRecord> {
    let (entries, annotations) = (later_results(copied, whole), later_annotations(copied, whole));
    if entries.is_empty() && annotations.is_empty() {
        return None;
    }
    Some(LogRecord {
        operation: copy.operation.clone(),
        run: None,
        at: copy.at,
        mark,
        entries,
        run_continues: false,
        summaries: Vec::new(),
        annotations,
        added_to: 0,
    })
}

/// Returns the size of the log records in a record.
fn log_bytes(record: &Record) -> u64 {
    let size = |value: &Bytes| value.len() as u64;
    split_segment(record)
        .map_or_else(|_| size(&record.value), |split| split.records.iter().map(|(_, value)| size(value)).sum())
}
