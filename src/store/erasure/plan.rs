//! The append that erases messages: what it rewrites, what it removes, and the head after it.

use super::items::ErasedItems;
use super::scan::{PlacedMessage, SessionScan, is_history};
use crate::branch_path::{BranchPath, DIRECTORY};
use crate::clock::Ms;
use crate::error::{ErrorCode, Result};
use crate::session_head::{BranchState, Overview, Preview, SessionHead, UnfinishedErasure};
use crate::store::audit::AuditRow;
use crate::store::branch_directory::BranchRow;
use crate::store::record::{RecordKind, open_record, open_whole_record};
use crate::store::{Batch, Record, Table};
use crate::term_filter::TermFilter;
use std::collections::{BTreeMap, BTreeSet};

/// The append that erases messages.
pub(super) struct ErasurePlan {
    pub(super) items: ErasedItems,
    /// The batch, without its head.
    pub(super) batch: Batch,
    pub(super) head: SessionHead,
    /// The number of records that it rewrites or removes, by table.
    pub(super) counts: BTreeMap<Table, u64>,
    /// By how many bytes the tables become smaller.
    pub(super) bytes: u64,
    /// The number of rows of the directory that cannot be read, and stay as they are.
    pub(super) unreadable: u64,
}

/// Makes the append that erases `chosen`; `pending` are the messages that are erased after it. `head` is that of the
/// store, whose branch is the one that was written last.
///
/// # Errors
/// `corrupt_record`, `unsupported_version` for records that cannot be written again.
pub(super) fn plan_erasure(
    scan: &SessionScan,
    head: &SessionHead,
    (chosen, pending): (&[String], &[String]),
    keeps_copies: bool,
) -> Result<ErasurePlan> {
    let items = erased_items(scan, chosen);
    let batch = Batch { erases: true, ..Batch::default() };
    let (counts, head) = (BTreeMap::new(), head.clone());
    let mut plan = ErasurePlan { items, batch, head, counts, bytes: 0, unreadable: 0 };
    let mut shrunk = Vec::new();
    let seqs = scan.seqs();
    for record in scan.records.iter().filter(|record| is_history(record)) {
        if let Some(rewritten) = plan.items.rewrite(record, &seqs)? {
            shrunk.push((record.key, plan.replace(record, rewritten)));
        }
    }
    for record in &scan.records {
        let is_removed = match record.table {
            Table::Log => false,
            Table::ToolInvocations => plan.items.has_row(record),
            // What a run that the user stopped has left. It is kept until the next run begins, at most.
            Table::Runs => true,
        };
        if is_removed {
            plan.remove(record);
        }
    }
    let erased: Vec<&PlacedMessage> =
        scan.messages.iter().filter(|message| plan.items.messages.contains(&message.id)).collect();
    let kept: Vec<&PlacedMessage> =
        scan.messages.iter().filter(|message| !plan.items.messages.contains(&message.id)).collect();
    let later = pending.iter().map(String::as_str).collect();
    let change = BranchChange { erased: &erased, kept: &kept, pending: &later, shrunk: &shrunk };
    plan.write_rows(scan, &change)?;
    plan.write_head(&change, pending, keeps_copies);
    Ok(plan)
}

fn erased_items(scan: &SessionScan, chosen: &[String]) -> ErasedItems {
    let mut items = ErasedItems { first_seq: u64::MAX, ..ErasedItems::default() };
    items.messages.extend(chosen.iter().cloned());
    for message in scan.messages.iter().filter(|message| items.messages.contains(&message.id)) {
        items.first_seq = items.first_seq.min(message.seq);
    }
    let known: BTreeSet<&String> = scan.calls.values().flatten().collect();
    for id in chosen {
        items.first_seq = scan.conflict_messages.get(id).map_or(items.first_seq, |seq| items.first_seq.min(*seq));
        items.invocations.extend(scan.calls.get(id).into_iter().flatten().cloned());
        // A message of another side may have the same id. Its calls may be adopted, with another message.
        let on_sides = scan.conflict_calls.get(id).into_iter().flatten();
        items.invocations.extend(on_sides.filter(|call| !known.contains(call)).cloned());
    }
    items
}

/// What the erasure changes of branches.
struct BranchChange<'a> {
    erased: &'a [&'a PlacedMessage],
    kept: &'a [&'a PlacedMessage],
    /// The ids of those of `kept` that later appends erase.
    pending: &'a BTreeSet<&'a str>,
    /// By how many bytes stored records become smaller, with their keys.
    shrunk: &'a [(u64, u64)],
}

impl BranchChange<'_> {
    /// Changes what a head has of a branch. Returns true if an erased message was part of it.
    fn apply(&self, state: &mut BranchState) -> bool {
        let count = self.erased.iter().filter(|message| message.is_on(&state.path)).count() as u64;
        if !state.overview.describes(state.next_seq, state.erased) {
            state.overview = Overview { preview: self.newest_preview(&state.path), ..Overview::default() };
        }
        let is_on = |key: u64| state.path.range_end(key).is_some();
        let bytes: u64 = self.shrunk.iter().filter(|(key, _)| is_on(*key)).map(|(_, bytes)| bytes).sum();
        state.log_bytes = state.log_bytes.saturating_sub(bytes);
        state.erased = state.erased.saturating_add(count);
        if count > 0 {
            state.last_request = None;
            state.chain_cut = state.next_seq;
        }
        self.apply_to_overview(state);
        count > 0
    }

    fn apply_to_overview(&self, state: &mut BranchState) {
        let BranchState { path, overview, next_seq, erased, .. } = state;
        let is_gone = |id: &str| self.erased.iter().any(|message| message.id == id) || self.pending.contains(&id);
        let is_erased = |preview: &Preview| is_gone(&preview.message);
        if overview.preview.as_ref().is_some_and(is_erased) {
            overview.preview = self.newest_preview(path);
        }
        let is_unread = |message: &&&PlacedMessage| {
            let is_answer = message.preview.as_ref().is_some_and(|preview| preview.is_answer);
            is_answer && message.seq >= overview.unread_from && message.is_on(path)
        };
        let unread = self.erased.iter().filter(is_unread).count() as u64;
        overview.unread = overview.unread.saturating_sub(unread);
        overview.set_counters(*next_seq, *erased);
    }

    /// Returns the newest preview of a branch of what is neither erased nor to be erased by a later append.
    fn newest_preview(&self, path: &BranchPath) -> Option<Preview> {
        let is_left = |message: &&&PlacedMessage| message.is_on(path) && !self.pending.contains(&message.id.as_str());
        self.kept.iter().rev().filter(is_left).find_map(|message| message.preview.clone())
    }
}

impl ErasurePlan {
    fn replace(&mut self, stored: &Record, rewritten: Record) -> u64 {
        let saved = (stored.value.len() as u64).saturating_sub(rewritten.value.len() as u64);
        self.bytes = self.bytes.saturating_add(saved);
        *self.counts.entry(stored.table).or_default() += 1;
        self.batch.replace.push(rewritten);
        saved
    }

    fn remove(&mut self, record: &Record) {
        self.bytes = self.bytes.saturating_add(record.value.len() as u64);
        *self.counts.entry(record.table).or_default() += 1;
        self.batch.remove.push((record.table, record.key));
    }

    /// Rewrites the rows of the directory that name erased messages, or whose branches had some.
    fn write_rows(&mut self, scan: &SessionScan, change: &BranchChange<'_>) -> Result<()> {
        let mut rows = BTreeMap::new();
        for record in scan.records.iter().filter(|record| record.table == Table::Log && record.key >= DIRECTORY) {
            match open_whole_record::<BranchRow>(RecordKind::Branch, &record.value) {
                Ok(row) => _ = rows.insert(row.number(), (record, row)),
                Err(error) if error.code == ErrorCode::UnsupportedVersion => return Err(error),
                // Its messages are found by their keys.
                Err(_) => self.unreadable += 1,
            }
        }
        let mut paths: BTreeMap<u64, BranchPath> =
            rows.values().map(|(_, row)| (row.number(), row.state.path.clone())).collect();
        paths.insert(self.head.branch.number, self.head.branch.clone());
        for (record, row) in rows.into_values() {
            let mut changed = row.clone();
            change.apply(&mut changed.state);
            // Copies of rows lose it, too.
            changed.state.last_request = None;
            self.name_other_messages(&mut changed, change.kept, &paths);
            if changed != row {
                self.replace(record, changed.record());
            }
        }
        Ok(())
    }

    /// Gives a row the messages that are next to the erased ones.
    fn name_other_messages(&self, row: &mut BranchRow, kept: &[&PlacedMessage], paths: &BTreeMap<u64, BranchPath>) {
        let is_erased = |id: &Option<String>| id.as_ref().is_some_and(|id| self.items.messages.contains(id));
        let path = &row.state.path;
        let until_seq = path.first_own_seq();
        let id_of = |message: Option<&&PlacedMessage>| message.map(|message| message.id.clone());
        if is_erased(&row.forked_after) {
            let is_shared = |message: &&&PlacedMessage| message.is_on(path) && message.seq < until_seq;
            row.forked_after = id_of(kept.iter().rev().find(is_shared));
        }
        if is_erased(&row.beside) {
            let parent = paths.get(&path.parent().unwrap_or(0)).cloned().unwrap_or_default();
            row.beside = id_of(kept.iter().find(|message| message.is_on(&parent) && message.seq >= until_seq));
        }
        if is_erased(&row.first) {
            let first_key = path.first_own_key();
            row.first = id_of(kept.iter().find(|message| message.key >= first_key && message.is_on(path)));
        }
    }

    fn write_head(&mut self, change: &BranchChange<'_>, pending: &[String], keeps_copies: bool) {
        let head = &mut self.head;
        let mut state = head.branch_state();
        change.apply(&mut state);
        head.set_branch_state(state);
        head.runs.clear();
        // Nobody knows which of them are of what is erased.
        head.refused.clear();
        // Nor which terms; the next append makes the filter anew.
        head.term_filter = TermFilter::default();
        head.history_revision += 1;
        head.erasures += 1;
        let copies = if keeps_copies { self.items.clone() } else { ErasedItems::default() };
        // Another process may have been cut off, too.
        head.erasing.pending.retain(|id| !self.items.messages.contains(id));
        head.erasing.add(UnfinishedErasure {
            pending: pending.to_vec(),
            messages: copies.messages.into_iter().collect(),
            invocations: copies.invocations.into_iter().collect(),
            first_seq: copies.first_seq,
        });
    }

    /// Returns the number of records that the append writes or removes, and the bytes that it writes.
    pub(super) fn size(&self) -> (usize, usize) {
        let written = self.batch.replace.iter().map(|record| record.value.len()).sum();
        (self.batch.replace.len() + self.batch.remove.len(), written)
    }

    /// Sets the time of the append.
    pub(super) fn set_time(&mut self, at: Ms) {
        self.head.updated_at = self.head.updated_at.max(at);
    }
}

impl ErasedItems {
    /// Returns true for the audit row of an erased call. One that cannot be read has no payload, and stays.
    pub(super) fn has_row(&self, record: &Record) -> bool {
        open_record::<AuditRow>(RecordKind::Audit, &record.value)
            .is_ok_and(|row| self.invocations.contains(&row.id) || self.messages.contains(&row.message_id))
    }
}
