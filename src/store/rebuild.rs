//! Rebuilds a head that cannot be read, from the marks of the log, the audit table and the journals.
//!
//! This module writes nothing. The next append writes the rebuilt head; until then every reader rebuilds it again.

use super::audit::AuditRow;
use super::journal::{JournalMark, place_of};
use super::record::{RecordKind, open_record};
use super::{LogStore, MAX_KEY, PAGE_BYTES, Query, Table};
use crate::branch_path::BranchPath;
use crate::encoding::UnknownFields;
use crate::error::Result;
use crate::finding::{Finding, FindingCode, Report};
use crate::history::{History, LogRecord};
use crate::session_head::{FIRST_QUEUED, HeadMark, Preview, RunEntry, SessionHead};
use std::collections::BTreeSet;

/// Distance between the last revision that a mark has and that of a rebuilt head, if the store lost the revision too. A
/// tab that saw the lost head must not mistake a new revision for one that it has read.
pub(super) const REVISION_GAP: u64 = 1 << 20;

/// Lower limit of the size of a stored message, in bytes. It limits the number of messages in a record that cannot be
/// read.
const MIN_MESSAGE_BYTES: u64 = 16;

/// What the log says about the head.
#[derive(Default)]
pub(super) struct LogSurvey {
    /// The counters of the last readable record.
    pub(super) mark: Option<HeadMark>,
    /// The key after that of the last record.
    pub(super) next_record: u64,
    /// Size of all records, in bytes.
    pub(super) bytes: u64,
    /// Time of the last readable record that changed history.
    pub(super) at: u64,
    /// Number of records after the last readable one, and their size in bytes.
    pub(super) unreadable: (u32, u64),
    /// Runs whose last append is not the one that ends them.
    pub(super) open_runs: BTreeSet<String>,
}

impl LogSurvey {
    /// Adds a readable record.
    pub(super) fn read(&mut self, record: &LogRecord) {
        self.mark = Some(record.mark.clone());
        if !record.entries.is_empty() {
            self.at = record.at;
        }
        self.unreadable = (0, 0);
        let Some(run) = &record.run else { return };
        if record.run_continues {
            self.open_runs.insert(run.clone());
        } else {
            self.open_runs.remove(run);
        }
    }

    /// Adds records that cannot be read, and their size in bytes.
    pub(super) fn missed(&mut self, count: u32, bytes: u64) {
        self.unreadable = (self.unreadable.0.saturating_add(count), self.unreadable.1.saturating_add(bytes));
    }
}

/// A rebuilt head, the lowest revision that its next append may have, and the problems found.
pub(super) struct Rebuilt {
    pub(super) head: SessionHead,
    pub(super) min_revision: u64,
    pub(super) findings: Report,
}

/// Rebuilds the head of a session whose log was read. `revision` is that of the store, 0 if the store lost it.
pub(super) async fn rebuild_head(
    store: &dyn LogStore,
    id: &str,
    (survey, branch): (&LogSurvey, &BranchPath),
    history: &History,
    revision: u64,
) -> Result<Rebuilt> {
    let mut findings = Report::new();
    let journals = survey_journals(store, (id, branch), &mut findings).await?;
    let mark = [&survey.mark, &journals.mark].into_iter().flatten().max_by_key(|mark| mark.revision);
    let known = mark.map_or(0, |mark| mark.revision);
    let min_revision = if revision < known || revision == 0 { known + REVISION_GAP } else { 0 };
    let mut head = mark.map_or_else(|| SessionHead::new(id, 0), |mark| SessionHead::from_mark(id, mark.clone()));
    // A journal counts the messages of the branch of its run.
    let own = [&survey.mark, &journals.own_mark].into_iter().flatten().max_by_key(|mark| mark.revision);
    (head.next_seq, head.turns) = own.map_or((0, 0), |mark| (mark.next_seq, mark.turns));
    head.next_record = survey.next_record;
    head.next_run = head.next_run.max(journals.next_run);
    head.log_bytes = survey.bytes;
    head.updated_at = survey.at.max(head.created_at);
    let (missed, missed_bytes) = survey.unreadable;
    if missed > 0 {
        head.turns = head.turns.saturating_add(missed);
        head.next_seq = head.next_seq.saturating_add(missed_bytes / MIN_MESSAGE_BYTES + 1);
        head.history_revision = head.history_revision.saturating_add(u64::from(missed));
    }
    head.raise_highest_source(history.highest_source());
    head.overview.preview = Preview::newest(history.messages());
    head.overview.set_counters(head.next_seq, head.erased);
    survey_audit(store, id, &mut head).await?;
    head.runs = journals.runs;
    // A journal whose run is in the log already was not removed in time.
    let is_stored = |run: &RunEntry| history.messages().iter().any(|message| message.run_id.as_ref() == Some(&run.id));
    head.runs.retain(|run| survey.open_runs.contains(&run.id) || !is_stored(run));
    // Nor was that of a question whose run has begun. They are in the order of their numbers, and the run's is lower.
    let mut known = BTreeSet::new();
    head.runs.retain(|run| known.insert(run.id.clone()));
    Ok(Rebuilt { head, min_revision, findings })
}

/// Raises the counters to those of the audit rows: invocations of unreadable records keep their numbers.
async fn survey_audit(store: &dyn LogStore, id: &str, head: &mut SessionHead) -> Result<()> {
    let query = Query { reverse: true, limit_bytes: 1, ..Query::all(Table::ToolInvocations) };
    if let Some(last) = store.read(id, query).await?.first() {
        head.next_invocation = head.next_invocation.max(last.key + 1);
        if let Ok(row) = open_record::<AuditRow>(RecordKind::Audit, &last.value) {
            head.turns = head.turns.max(row.turn.saturating_add(1));
        }
    }
    Ok(())
}

/// What the journals say about the head.
#[derive(Default)]
struct JournalSurvey {
    runs: Vec<RunEntry>,
    next_run: u64,
    /// The newest mark.
    mark: Option<HeadMark>,
    /// The newest mark of a run of the branch.
    own_mark: Option<HeadMark>,
}

impl JournalSurvey {
    fn read(&mut self, (number, place): (u64, u64), mark: JournalMark, branch: &BranchPath) {
        let is_newer = |newest: &HeadMark| newest.revision <= mark.head.revision;
        if mark.branch == *branch && self.own_mark.as_ref().is_none_or(is_newer) {
            self.own_mark = Some(mark.head.clone());
        }
        let run = RunEntry {
            id: mark.run,
            number,
            entries: place + 1,
            epoch: mark.epoch,
            lease_until: mark.lease_until,
            started_at: mark.started_at,
            failed: mark.failed,
            holder: None,
            branch: mark.branch,
            approvals: 0,
            is_next: false,
            unknown: UnknownFields::default(),
        };
        match self.runs.last_mut().filter(|last| last.number == number) {
            Some(last) => *last = run,
            None => self.runs.push(run),
        }
        if self.mark.as_ref().is_none_or(|newest| newest.revision <= mark.head.revision) {
            self.mark = Some(mark.head);
        }
    }

    /// Adds an entry that cannot be read. It counts, since a missing entry may mean that a tool ran.
    fn missed(&mut self, (number, place): (u64, u64)) {
        if let Some(last) = self.runs.last_mut().filter(|last| last.number == number) {
            last.entries = place + 1;
        }
    }
}

async fn survey_journals(
    store: &dyn LogStore,
    (id, branch): (&str, &BranchPath),
    findings: &mut Report,
) -> Result<JournalSurvey> {
    let mut survey = JournalSurvey::default();
    let mut next = 0;
    while next <= MAX_KEY {
        let query = Query { from: next, limit_bytes: PAGE_BYTES, ..Query::all(Table::Runs) };
        let records = store.read(id, query).await?;
        let Some(last) = records.last() else { break };
        next = last.key + 1;
        for record in &records {
            let place = place_of(record.key);
            if place.0 < FIRST_QUEUED {
                survey.next_run = survey.next_run.max(place.0 + 1);
            }
            match JournalMark::open(&record.value) {
                Ok(mark) => survey.read(place, mark, branch),
                Err(error) => {
                    survey.missed(place);
                    let (number, entry) = place;
                    let what = format!(
                        "entry {entry} of the journal of run number {number} of session \"{id}\" cannot be read: {}",
                        error.message
                    );
                    findings.push(Finding::warning(FindingCode::Malformed, what));
                }
            }
        }
    }
    Ok(survey)
}
