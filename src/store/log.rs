//! [`SessionLog`]: the head and history of an open session. It prepares appends, and folds records that were read; the
//! reading is in `open.rs`, the writing in `append.rs`.

use super::additions::Additions;
use super::audit::{AuditRow, calls_with_later_results};
use super::branch_directory::BranchDirectory;
use super::branch_write::{BranchWrite, CarriedContent, ForkPlace};
use super::exclusive_run::ExclusiveRun;
use super::expected_run::ExpectedRun;
use super::id_collisions::replace_ids_in_use;
use super::journal::{JournalChange, ended_runs, write_journal};
use super::merge_queue::MergeQueue;
use super::numbering::assign_numbers;
use super::partial_read::{ReadFailure, ReadableRecords};
use super::read_mark::ReadMark;
use super::rebuild::LogSurvey;
use super::record::{RecordKind, is_of_newer_build, open_record, open_verified_record, seal_record};
use super::second_results::{
    complete_answered_calls, set_aside_results_of_erased_calls, set_aside_results_without_calls,
    set_aside_second_results,
};
use super::segment::{SplitRecords, split_segment};
use super::{Batch, QueueTurn, Record, Table};
use crate::clock::Ms;
use crate::error::{Error, ErrorCode, Result};
use crate::finding::{Action, Finding, FindingCode, Report};
use crate::history::{Alternatives, Annotation, History, HistoryEntry, LogRecord, StoredSummary, highest_source};
use crate::id::{IdMap, Seed};
use crate::session_head::{BranchState, HeadMark, SessionHead};
use bytes::Bytes;
use std::future::Future;
use std::pin::Pin;

/// A session as it was last read.
pub struct SessionLog {
    /// The head.
    pub head: SessionHead,
    /// The revision of the head; 0 for a session that is not stored yet.
    pub revision: u64,
    /// The revision in the store. It differs from `revision` only if the store lost the head, which was rebuilt.
    pub(super) stored_revision: u64,
    /// The [`LogStore::lineage`] that was read.
    pub(super) lineage: u64,
    /// The lowest revision that the next append may have.
    pub(super) min_revision: u64,
    pub(super) survey: LogSurvey,
    /// Records that wait to be merged into segments.
    pub(super) merge_queue: MergeQueue,
    /// Set while only the end of the log was read: the history then lacks what is older.
    pub(super) unread: Option<UnreadRecords>,
    /// Set while the store fails to read a part of the log: the history then lacks it.
    pub(super) read_failure: Option<ReadFailure>,
    /// The history that the log contains.
    pub history: History,
    /// Problems found while reading: records that do not decode or are missing (R7).
    pub findings: Report,
    /// Counts reloads. Whatever was derived from the history of an earlier generation is invalid.
    pub generation: u64,
    /// Names of the appends whose records this log has read or written.
    pub(super) operations: IdMap<()>,
    /// True if a newer build wrote a record of the log, so that audit rows may have fields that this build does not
    /// know.
    pub(super) has_newer_records: bool,
    /// Why the session cannot be written to.
    pub(super) read_only: Option<Error>,
    /// The branches of the session, as far as this log has read them.
    pub(super) directory: BranchDirectory,
    pub(super) alternatives: Alternatives,
    /// What the stored head has of another branch than this log's.
    pub(super) displaced: Option<BranchState>,
    /// The place of the fork, until the branch is born.
    pub(super) fork: Option<ForkPlace>,
    /// What the first record of a new branch repeats of the branch that it was forked from.
    pub(super) carried: CarriedContent,
    pub(super) additions: Additions,
    /// The `seq` of the first message of each record that has any, and its key.
    pub(super) message_keys: Vec<(u64, u64)>,
    pub(super) seed: Seed,
}

/// The older records of a log, which were not read yet.
pub(super) struct UnreadRecords {
    /// The key after the last of them.
    pub(super) end: u64,
    /// The records from there on, which were read.
    pub(super) tail: Vec<Record>,
}

/// The content of an append.
#[derive(Default)]
pub struct Change {
    /// The unique name of the append, by which a repeated attempt is recognized. It must be unique over all processes,
    /// so it must not come from an id source that may return an id twice.
    pub operation: String,
    /// The run that appends.
    pub run: Option<String>,
    /// True if the run continues after its append.
    pub run_continues: bool,
    /// The time of the append.
    pub at: Ms,
    /// New entries, not numbered yet.
    pub entries: Vec<HistoryEntry>,
    /// The change of an unfinished run's journal.
    pub journal: Option<JournalChange>,
    /// The name of the open store that holds the run's lease, if the journal's change gives it one.
    pub holder: Option<String>,
    /// The highest source number assigned by the run. It is above those in `entries` if sources were dropped (R9).
    pub sources: Option<u64>,
    /// Ids that must not be replaced: those of messages that the caller chose, and those to which a run's later appends
    /// refer. If history has one of these, the append fails; any other id in use is replaced.
    pub caller_ids: Vec<String>,
    /// The [`history_revision`](SessionHead::history_revision) that the session must have, or the append is a conflict.
    pub expected: Option<u64>,
    /// The runs that must be as they were, or the append is a conflict.
    pub expected_runs: Vec<ExpectedRun>,
    /// The run beside which no other may have a lease, or the append is `busy`.
    pub exclusive: Option<ExclusiveRun>,
    /// The run that begins if its turn has come, or the append is `busy`.
    pub turn: Option<QueueTurn>,
    /// The error of the append if the session was deleted before it was opened. Without it the session is created
    /// again.
    pub when_deleted: Option<Error>,
    /// Summaries to store. One of a reducer that does not apply any more is dropped; with a compaction that does not,
    /// the append is a conflict.
    pub summaries: Vec<StoredSummary>,
    /// Annotations of stored messages.
    pub annotations: Vec<Annotation>,
    /// A change of the head only.
    pub edit: Option<HeadEdit>,
    /// What a person has read.
    pub read: Option<ReadMark>,
    /// The number of calls of the journal's run that wait for an approval, unless it stays as it was.
    pub approvals: Option<u64>,
    /// True if the branch of the log is born with the change although it has no entry. The head stays with the branch
    /// that it has.
    pub is_fork: bool,
    /// True if the log was of a branch that was not stored yet when the change was made. If it is of another one when a
    /// run begins, the append is a conflict.
    pub begins_branch: bool,
    /// The number of a branch that is not shown and gets the change: the head stays with the branch that it has.
    pub unshown_branch: Option<u64>,
    /// True if the head gets the branch of the log although the change has no record of it.
    pub is_switch: bool,
    /// Makes the [notice](Batch::notice) of the append from the revision of the history after it.
    pub notice: Option<NoticeText>,
    /// Waits between attempts that conflict with other writers; without it the next attempt follows at once.
    pub pause: Option<ConflictPause>,
}

impl Change {
    /// Returns the log record of the change with this content. `mark` is that of the head after the change.
    fn record(&self, mark: HeadMark, entries: Vec<HistoryEntry>, summaries: Vec<StoredSummary>) -> LogRecord {
        LogRecord {
            operation: self.operation.clone(),
            run: self.run.clone(),
            run_continues: self.run_continues,
            at: self.at,
            mark,
            entries,
            summaries,
            annotations: self.annotations.clone(),
            added_to: 0,
        }
    }
}

/// A change of the head only. It is applied again after a conflict.
pub type HeadEdit = Box<dyn Fn(&mut SessionHead)>;

/// Makes the text of a notice.
pub type NoticeText = Box<dyn Fn(u64) -> Option<String>>;

/// Waits for a random time up to the given milliseconds, so that writers that conflicted do not conflict again.
pub type ConflictPause = Box<dyn Fn(Ms) -> Pin<Box<dyn Future<Output = ()>>>>;

/// An append that is ready to be written.
pub(super) struct Prepared {
    pub(super) expected: u64,
    pub(super) head: SessionHead,
    pub(super) branch: BranchWrite,
    pub(super) entries: Vec<HistoryEntry>,
    /// The number of results among them whose calls will never come.
    pub(super) orphans: usize,
    pub(super) summaries: Vec<StoredSummary>,
    pub(super) annotations: Vec<Annotation>,
    pub(super) batch: Batch,
}

impl SessionLog {
    pub(super) fn new(id: &str, seed: Seed, now: Ms, merge_queue: MergeQueue) -> Self {
        Self {
            head: SessionHead::new(id, now),
            revision: 0,
            stored_revision: 0,
            lineage: 0,
            min_revision: 0,
            survey: LogSurvey::default(),
            merge_queue,
            unread: None,
            read_failure: None,
            history: History::new(seed),
            findings: Report::new(),
            generation: 0,
            operations: IdMap::with_seed(seed),
            has_newer_records: false,
            read_only: None,
            directory: BranchDirectory::default(),
            alternatives: Alternatives::default(),
            displaced: None,
            fork: None,
            carried: CarriedContent::default(),
            additions: Additions::default(),
            message_keys: Vec::new(),
            seed,
        }
    }

    /// Drops everything that was read.
    pub(super) fn reset(&mut self) {
        let generation = self.generation + 1;
        let queue = self.merge_queue.emptied();
        *self = Self { generation, ..Self::new(&self.head.id, self.seed, self.head.created_at, queue) };
    }

    /// Drops everything that was read, and rejects writes from now on, for this reason.
    pub(super) fn reset_because(&mut self, reason: Error) {
        self.reset();
        self.read_only = Some(reason);
    }

    /// Drops everything that was read, and rejects writes from now on.
    pub fn release(&mut self) {
        self.reset_because(Error::new(ErrorCode::Closed, "the store of this session was closed; `open` again"));
    }

    /// Returns true if the history contains the whole log, not only its end.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.unread.is_none()
    }

    /// Checks that the session can be written to.
    ///
    /// # Errors
    /// `unsupported_version`, `not_found`, `evicted` or `closed`: the reason why it cannot.
    pub fn writable(&self) -> Result<()> {
        self.read_only.clone().map_or(Ok(()), Err)
    }

    /// Returns true if the session was deleted after it was opened, or the store lost it. The log stays empty; a new
    /// session of the same id has another log.
    #[must_use]
    pub fn is_deleted(&self) -> bool {
        self.read_only.as_ref().is_some_and(|error| matches!(error.code, ErrorCode::NotFound | ErrorCode::Evicted))
    }

    /// Checks that the session can be written to, and is as the change expects it.
    fn check_change(&self, change: &Change) -> Result<()> {
        self.writable()?;
        if let Some(expected) = change.expected {
            let actual = self.head.history_revision;
            // The store's revision is accepted too: edits of the head (title, state bag) raise it alone.
            if expected < actual || expected > self.revision {
                let sentence = "another writer appended to the session; read it again before appending";
                return Err(Error::new(ErrorCode::Conflict, sentence).with(|details| {
                    details.number("expected", expected).number("revision", actual);
                }));
            }
        }
        if change.expected_runs.iter().any(|run| run.has_moved(&self.head)) {
            let sentence = "an unfinished run that has the call ended or went on meanwhile; send the result again";
            return Err(Error::new(ErrorCode::Conflict, sentence));
        }
        QueueTurn::check_begin(change.turn.as_ref(), change.exclusive.as_ref(), (&self.head, change.at))?;
        self.check_branch(change).and_then(|()| self.check_annotations(change))
    }

    /// Builds the append from the known state.
    pub(super) fn prepare(&self, change: &Change) -> Result<Prepared> {
        self.check_change(change)?;
        let revision = (self.stored_revision + 1).max(self.min_revision);
        let mut head = self.head.clone();
        let mut batch = Batch { at_least: self.min_revision, ..Batch::default() };
        if head.born == 0 {
            head.born = revision;
            head.created_at = change.at;
            head.updated_at = change.at;
        }
        if let Some(edit) = &change.edit {
            edit(&mut head);
        }
        let mut branch = self.begin_branch_write(&mut head, change);
        let mut entries = change.entries.clone();
        set_aside_second_results(&self.history, &mut entries, change.at);
        complete_answered_calls(&self.history, &mut entries, change.at);
        let ended = ended_runs(&self.head, change.journal.as_ref());
        let mut orphans = set_aside_results_without_calls(&self.history, &ended, &mut entries, change.at);
        if head.erasures > 0 {
            orphans += set_aside_results_of_erased_calls(&self.history, &mut entries, change.at);
        }
        replace_ids_in_use(&self.history, &mut entries, &change.caller_ids)?;
        let mut entries = assign_numbers(&self.history, &mut head, entries);
        self.update_overview(&mut head, change, &entries);
        head.raise_highest_source(highest_source(&entries).max(change.sources));
        let mut summaries = self.summaries_to_store(change)?;
        if !branch.has_keys(&head) {
            summaries.clear();
        }
        let has_content = !entries.is_empty() || !summaries.is_empty() || !change.annotations.is_empty();
        branch.has_record = has_content || change.is_fork && !self.carried.is_empty();
        if branch.has_record {
            let key = head.next_record;
            head.next_record += 1;
            if !entries.is_empty() {
                head.history_revision = head.history_revision.max(head.born.saturating_sub(1)) + 1;
                head.updated_at = head.updated_at.max(change.at);
            }
            let mut record = change.record(head.mark(revision), entries, summaries);
            self.write_record(&mut head, &mut batch, key, &mut record);
            self.write_additions(&mut head, &mut batch, &record);
            (entries, summaries) = (record.entries, record.summaries);
        }
        self.add_terms(&mut head, &entries);
        if let Some(journal) = &change.journal {
            write_journal(&mut head, &mut batch, journal, (change.at, revision))?;
            head.set_holder(&journal.run, change.holder.as_deref());
            if let Some(count) = change.approvals {
                head.set_approvals(&journal.run, count);
            }
        }
        let stored = self.write_branches(&head, &mut branch, (change, &entries, &mut batch));
        batch.head = seal_record(RecordKind::Head, &*stored);
        drop(stored);
        batch.describe(&head);
        batch.notice = change.notice.as_ref().and_then(|notice| notice(head.history_revision));
        let (expected, annotations) = (self.stored_revision, change.annotations.clone());
        Ok(Prepared { expected, head, branch, entries, orphans, summaries, annotations, batch })
    }

    /// Returns the summaries of a change that apply to the history.
    ///
    /// # Errors
    /// `conflict` if a compaction does not apply.
    fn summaries_to_store(&self, change: &Change) -> Result<Vec<StoredSummary>> {
        let mut summaries = change.summaries.clone();
        summaries.retain(|summary| self.history.accepts_summary(summary));
        if change.summaries.iter().any(|summary| summary.reducer_hash.is_none() && !summaries.contains(summary)) {
            let sentence = "another writer compacted the session or changed what the summary covers; compact it again";
            return Err(Error::new(ErrorCode::Conflict, sentence));
        }
        Ok(summaries)
    }

    /// Adds a log record and the audit rows of its entries to the batch.
    fn write_record(&self, head: &mut SessionHead, batch: &mut Batch, key: u64, record: &mut LogRecord) {
        let value = self.carried.seal_before(record);
        head.log_bytes = head.log_bytes.saturating_add(value.len() as u64);
        batch.put.push(Record { table: Table::Log, key, last_key: None, index: None, value });
        let added = calls_with_later_results(&self.history, &record.entries);
        for entry in &record.entries {
            let call = |id: &str| self.history.invocation(id).or_else(|| added.get(id).copied());
            let Some(row) = AuditRow::of_entry(&call, entry, key) else { continue };
            // A result replaces the row of its call.
            let rows = if matches!(entry, HistoryEntry::Result(_)) { &mut batch.replace } else { &mut batch.put };
            rows.push(row.record());
        }
    }

    /// Applies a committed append to the log in memory.
    pub(super) fn applied(&mut self, revision: u64, operation: &str, prepared: Prepared) {
        // At a lower revision, a refresh has read it already.
        if revision > self.revision {
            self.note_branch_write(prepared.branch);
            self.note_additions(&prepared.head);
            if !prepared.entries.is_empty() || !prepared.summaries.is_empty() || !prepared.annotations.is_empty() {
                self.note_messages(&prepared.entries, prepared.head.next_record.saturating_sub(1));
                self.operations.insert(operation.to_owned(), ());
                let bytes = prepared.head.log_bytes.saturating_sub(self.head.log_bytes);
                self.merge_queue.add(prepared.head.next_record.saturating_sub(1), bytes);
            }
            for entry in prepared.entries {
                self.history.apply(entry);
            }
            for annotation in prepared.annotations {
                self.history.annotate(annotation);
            }
            for summary in prepared.summaries {
                self.history.apply_summary(summary);
            }
            self.survey.next_record = prepared.head.next_record;
            self.set_revision(revision);
            self.set_head(prepared.head);
        }
    }

    /// Notes which record has the first of these messages.
    fn note_messages(&mut self, entries: &[HistoryEntry], key: u64) {
        let first = entries.iter().find_map(|entry| match entry {
            HistoryEntry::Message(message) => Some(message.seq),
            _ => None,
        });
        self.message_keys.extend(first.map(|seq| (seq, key)));
    }

    /// Sets the revision of the head in the store.
    pub(super) fn set_revision(&mut self, revision: u64) {
        self.revision = revision;
        self.stored_revision = revision;
        self.min_revision = 0;
    }

    pub(super) fn set_head(&mut self, head: SessionHead) {
        self.history.raise_highest_source(u64::try_from(head.source_high_water).ok());
        self.history.set_chain_cut(head.chain_cut);
        self.history.set_own_from(head.branch.first_own_seq());
        self.head = head;
    }

    /// Returns true if the change is in history already: the reply of an earlier attempt was lost, and a refresh has
    /// read its record.
    pub(super) fn has_applied(&self, change: &Change) -> bool {
        let has_content = !change.entries.is_empty() || !change.summaries.is_empty() || !change.annotations.is_empty();
        has_content && self.operations.contains_key(&change.operation)
    }

    pub(super) fn warn(&mut self, sentence: String) {
        self.findings.push(Finding::warning(FindingCode::Malformed, sentence));
    }

    /// Reports records of the branch that are missing at its end.
    pub(super) fn check_end(&mut self, next: u64, end: u64) {
        let gone = self.head.branch.count_keys(next, end);
        if gone == 0 {
            return;
        }
        self.warn(format!("{gone} log records at the end of session \"{}\" are gone", self.head.id));
    }

    /// Folds log records and segments into the history. `next` is the key of the next expected record; records from
    /// `end` on belong to a later head.
    pub(super) fn add_records(&mut self, records: &[Record], next: &mut u64, end: u64) {
        for record in records {
            let Some(range_end) = self.head.branch.range_end(record.key) else { continue };
            let past = record.last_key.unwrap_or(record.key).saturating_add(1).min(end).min(range_end);
            match split_segment(record) {
                Ok(SplitRecords { records, is_verified }) => {
                    let is_segment = record.last_key.is_some();
                    for (key, value) in records {
                        // A segment may begin before the range that was read, and end after it.
                        if key >= *next && key < past {
                            self.add_gap(*next, key);
                            *next = key + 1;
                            self.add_record(key, (&value, is_verified), is_segment);
                        }
                    }
                    self.add_gap(*next, past);
                }
                Err(error) => {
                    let first = record.key.max(*next);
                    self.add_gap(*next, first);
                    self.add_unreadable((first, past), record.value.len() as u64, &error);
                }
            }
            if past == range_end {
                // The next record is another branch's, and no segment has both.
                self.merge_queue.add_boundary();
            }
            *next = past.max(*next);
            self.survey.next_record = self.survey.next_record.max(*next);
        }
    }

    /// Reports records that are missing.
    fn add_gap(&mut self, next: u64, key: u64) {
        let gone = self.head.branch.count_keys(next, key);
        if gone > 0 {
            self.warn(format!(
                "{gone} log records of session \"{}\" are gone; the history before and after them is readable",
                self.head.id
            ));
        }
    }

    /// Folds a log record. The checksum of a verified one is not checked.
    fn add_record(&mut self, key: u64, (value, is_verified): (&Bytes, bool), is_merged: bool) {
        let bytes = value.len() as u64;
        self.has_newer_records |= is_of_newer_build(value);
        let open = if is_verified { open_verified_record::<LogRecord> } else { open_record };
        match open(RecordKind::Log, value) {
            Ok(mut log) => {
                self.survey.bytes = self.survey.bytes.saturating_add(bytes);
                self.survey.read(&log);
                self.apply_additions_before(log.mark.revision);
                if let Some(until_seq) = self.head.branch.until_seq(key) {
                    cut_record(&mut log, until_seq);
                }
                self.note_messages(&log.entries, key);
                self.operations.insert(log.operation, ());
                for entry in log.entries {
                    self.history.apply(entry);
                }
                for annotation in log.annotations {
                    self.history.annotate(annotation);
                }
                for summary in log.summaries {
                    self.history.apply_summary(summary);
                }
                if is_merged {
                    self.merge_queue.add_boundary();
                } else {
                    self.merge_queue.add(key, bytes);
                }
            }
            Err(error) => self.add_unreadable((key, key.saturating_add(1)), bytes, &error),
        }
    }

    /// Reports records that do not decode, from a first key to before a second.
    fn add_unreadable(&mut self, (first, past): (u64, u64), bytes: u64, error: &Error) {
        let count = past.saturating_sub(first);
        if count == 0 {
            return;
        }
        self.merge_queue.add_boundary();
        self.survey.bytes = self.survey.bytes.saturating_add(bytes);
        self.survey.missed(u32::try_from(count).unwrap_or(u32::MAX), bytes);
        if error.code == ErrorCode::UnsupportedVersion {
            self.read_only = Some(error.clone());
        }
        let records =
            if count == 1 { format!("log record {first}") } else { format!("log records {first} to {}", past - 1) };
        let what = format!("{records} of session \"{}\" cannot be read: {}", self.head.id, error.message);
        self.findings.push(Finding::warning(FindingCode::Malformed, what).with_action(Action::Kept));
    }

    /// Returns what the store failed to read. The history then has what is readable, and is not
    /// [whole](Self::is_whole).
    #[must_use]
    pub fn read_failure(&self) -> Option<&ReadFailure> {
        self.read_failure.as_ref()
    }

    /// Folds what was readable of the records before `end`.
    ///
    /// # Errors
    /// The store's, if nothing was.
    pub(super) fn add_readable(&mut self, read: ReadableRecords, end: u64) -> Result<()> {
        let ReadableRecords { records, failure } = read;
        if let Some(failure) = failure.as_ref().filter(|_| records.is_empty()) {
            return Err(failure.error.clone());
        }
        let (mut next, mut left) = (0, records.as_slice());
        for (from, past) in failure.iter().flat_map(|failure| &failure.ranges) {
            let (before, after) = left.split_at(left.partition_point(|record| record.key < *from));
            self.add_records(before, &mut next, end);
            self.add_gap(next, *from);
            next = next.max(*past);
            left = after;
        }
        self.add_records(left, &mut next, end);
        self.check_end(next, end);
        self.read_failure = failure;
        Ok(())
    }

    /// Takes over what another log of the same session has read.
    pub(super) fn adopt_records(&mut self, read: Self) {
        self.survey = read.survey;
        self.merge_queue = read.merge_queue;
        self.message_keys = read.message_keys;
        self.additions = read.additions;
        self.history = read.history;
        self.history.raise_highest_source(u64::try_from(self.head.source_high_water).ok());
        self.history.set_chain_cut(self.head.chain_cut);
        self.history.set_own_from(self.head.branch.first_own_seq());
        self.findings = read.findings;
        self.operations = read.operations;
        self.has_newer_records = read.has_newer_records;
        if self.read_only.is_none() {
            self.read_only = read.read_only;
        }
    }

    /// Sets the revision after a merge, unless another append was read or written meanwhile.
    pub(super) fn on_merged(&mut self, expected: u64, revision: u64, merged_until: u64) {
        if self.stored_revision == expected {
            self.set_revision(revision);
            self.head.merged_until = merged_until;
        }
    }
}

/// Removes from a record what is after the messages that a branch shares. Returns true if there is any.
pub(super) fn cut_record(record: &mut LogRecord, until_seq: u64) -> bool {
    let is_past = |entry: &HistoryEntry| matches!(entry, HistoryEntry::Message(message) if message.seq >= until_seq);
    let Some(at) = record.entries.iter().position(is_past) else { return false };
    record.entries.truncate(at);
    record.summaries.clear();
    true
}
