//! Erases messages from the values of earlier appends, which a store keeps that writes each value once.

use super::items::{ErasedItems, MessageSeqs};
use super::scan::is_history;
use super::side_items::ItemsOfSides;
use crate::branch_path::DIRECTORY;
use crate::error::Result;
use crate::session_head::{FIRST_QUEUED, Overview, Preview, SessionHead};
use crate::store::branch_directory::BranchRow;
use crate::store::journal::{first_queued_after, place_of};
use crate::store::record::{RecordKind, open_record, open_whole_record, seal_record};
use crate::store::{LogStore, Record, RetainedAppend, Table};
use crate::term_filter::TermFilter;
use bytes::Bytes;
use std::collections::BTreeSet;

/// What was erased from the copies of a store.
#[derive(Clone, Copy, Default)]
pub(super) struct ErasedCopies {
    /// The number of values that were rewritten.
    pub(super) count: u64,
    /// By how many bytes they became smaller.
    pub(super) bytes: u64,
    /// The number of values that cannot be read, and stay as they are.
    pub(super) unreadable: u64,
}

/// What is erased from copies.
pub(super) struct CopyEraser {
    items: ErasedItems,
    /// What is erased from appends of other sides of conflicts, where what a branch has adopted has other ids.
    items_of_sides: ItemsOfSides,
    seqs: MessageSeqs,
    /// The numbers of the runs that are not over.
    runs: BTreeSet<u64>,
    /// The number of the first run that began later.
    next_run: u64,
    /// The number of the first question that was queued later.
    next_queued: u64,
    /// What heads after the erasure count.
    erasures: u64,
    erased: ErasedCopies,
}

impl CopyEraser {
    pub(super) fn new(
        (items, items_of_sides): (ErasedItems, ItemsOfSides),
        seqs: MessageSeqs,
        (head, revision): (&SessionHead, u64),
    ) -> Self {
        let runs = head.runs.iter().map(|run| run.number).collect();
        let (next_run, erasures) = (head.next_run, head.erasures);
        let next_queued = first_queued_after(revision);
        Self { items, items_of_sides, seqs, runs, next_run, next_queued, erasures, erased: ErasedCopies::default() }
    }

    /// Rewrites the copies of a session.
    ///
    /// # Errors
    /// The store's own. The next attempt continues.
    pub(super) async fn run(mut self, store: &dyn LogStore, session: &str) -> Result<ErasedCopies> {
        let mut cursor = None;
        loop {
            let page = store.retained(session, cursor.as_deref()).await?;
            let mut changed = Vec::new();
            for append in page.items {
                if append.is_damaged {
                    self.erased.unreadable += 1;
                } else {
                    changed.extend(self.rewrite(append));
                }
            }
            store.rewrite_retained(session, changed).await?;
            cursor = page.cursor;
            if cursor.is_none() {
                return Ok(self.erased);
            }
        }
    }

    /// Returns what is erased from an append: of the session's history, or the one of this name of another side.
    fn items_of(&self, side: Option<&str>) -> &ErasedItems {
        side.and_then(|append| self.items_of_sides.get(append)).unwrap_or(&self.items)
    }

    /// Returns an append without what is erased; none if it has nothing of it.
    fn rewrite(&mut self, append: RetainedAppend) -> Option<RetainedAppend> {
        let size = |append: &RetainedAppend| -> usize {
            append.head.len() + append.records.iter().map(|record| record.value.len()).sum::<usize>()
        };
        let before = size(&append);
        let side = append.is_of_conflict.then_some(append.id.as_str());
        let head = self.rewrite_head(&append.head, side);
        let (mut is_changed, mut records) = (head.is_some(), Vec::new());
        for record in &append.records {
            let kept = self.rewrite_record(record.clone(), side);
            is_changed |= kept.as_ref() != Some(record);
            records.extend(kept);
        }
        if !is_changed {
            return None;
        }
        let head = head.unwrap_or_else(|| append.head.clone());
        let append = RetainedAppend { head, records, ..append };
        self.erased.count += 1;
        self.erased.bytes += before.saturating_sub(size(&append)) as u64;
        Some(append)
    }

    /// Returns a record without what is erased; none if nothing of it stays.
    fn rewrite_record(&mut self, record: Record, side: Option<&str>) -> Option<Record> {
        match record.table {
            Table::Log if is_history(&record) => match self.items_of(side).rewrite(&record, &self.seqs) {
                Ok(rewritten) => Some(rewritten.unwrap_or(record)),
                Err(_) => {
                    self.erased.unreadable += 1;
                    Some(record)
                }
            },
            Table::Log => Some(self.rewrite_row(record, side)),
            Table::ToolInvocations => (!self.items_of(side).has_row(&record)).then_some(record),
            Table::Runs => self.keeps_journal(&record, side).then_some(record),
        }
    }

    /// Returns a head without what a request contained, what a provider said of it and the terms of texts, if it was
    /// written before, and without an erased preview; none if it has none of these.
    fn rewrite_head(&mut self, value: &Bytes, side: Option<&str>) -> Option<Bytes> {
        let Ok(mut head) = open_record::<SessionHead>(RecordKind::Head, value) else {
            self.erased.unreadable += 1;
            return None;
        };
        let has_preview = self.drop_preview(&mut head.overview, side);
        // The other side of a conflict counts its own erasures.
        let is_older = side.is_some() || head.erasures < self.erasures;
        let has_failed = head.runs.iter().any(|run| run.failed.as_ref().is_some_and(|(_, text)| !text.is_empty()));
        let has_content = head.last_request.is_some() || has_failed || head.term_filter != TermFilter::default();
        if !(has_preview || is_older && has_content) {
            return None;
        }
        if is_older {
            head.last_request = None;
            head.term_filter = TermFilter::default();
            head.runs.iter_mut().filter_map(|run| run.failed.as_mut()).for_each(|(_, text)| text.clear());
        }
        Some(seal_record(RecordKind::Head, &head))
    }

    /// Returns a row of the directory without what a request contained, and without an erased preview.
    fn rewrite_row(&mut self, record: Record, side: Option<&str>) -> Record {
        debug_assert!(record.key >= DIRECTORY);
        let Ok(mut row) = open_whole_record::<BranchRow>(RecordKind::Branch, &record.value) else {
            self.erased.unreadable += 1;
            return record;
        };
        let had_request = row.state.last_request.take().is_some();
        if self.drop_preview(&mut row.state.overview, side) || had_request { row.record() } else { record }
    }

    /// Drops a preview of an erased message. Returns true if it was one.
    fn drop_preview(&self, overview: &mut Overview, side: Option<&str>) -> bool {
        let is_erased = |preview: &mut Preview| self.items_of(side).messages.contains(&preview.message);
        overview.preview.take_if(is_erased).is_some()
    }

    /// Returns true for a record of a journal that may be read again: of a run that is not over, also on the other side
    /// of a conflict, if it does not name what is erased.
    fn keeps_journal(&self, record: &Record, side: Option<&str>) -> bool {
        let (run, _) = place_of(record.key);
        if side.is_some() {
            let has = |id: &String| contains(&record.value, id.as_bytes());
            let items = self.items_of(side);
            return !items.messages.iter().chain(&items.invocations).any(has);
        }
        let is_later = if run < FIRST_QUEUED { run >= self.next_run } else { run >= self.next_queued };
        is_later || self.runs.contains(&run)
    }
}

fn contains(value: &[u8], part: &[u8]) -> bool {
    !part.is_empty() && value.windows(part.len()).any(|window| window == part)
}
