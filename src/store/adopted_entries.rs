//! The entries that a branch is born with which adopts the other side of a conflict.

use super::branch_directory::RenamedId;
use crate::clock::Ms;
use crate::finding::FindingCode;
use crate::history::{History, HistoryEntry, LogRecord, ResultEntry, SetAsideItem, free_id};
use crate::message::PartBody;
use std::collections::{BTreeMap, BTreeSet};

/// What is taken of a side.
pub(super) struct AdoptedEntries<'a> {
    /// The history of the side.
    pub(super) whole: &'a History,
    /// How many of its first messages the forked branch has.
    pub(super) common: usize,
    /// The history of the forked branch.
    pub(super) base: &'a History,
    /// The ids of common messages and calls that have another one in the forked branch, by those on the side.
    pub(super) renamed: BTreeMap<String, String>,
    /// The time of the adoption.
    pub(super) at: Ms,
}

/// Entries in the order of the side.
pub(super) struct SideContent {
    pub(super) entries: Vec<HistoryEntry>,
    /// The new ids of messages and calls.
    renamed: BTreeMap<String, String>,
    /// The index of the entry that has the result of a call, by the new calls.
    results: BTreeMap<String, usize>,
}

impl AdoptedEntries<'_> {
    /// Returns the entries of these records that the forked branch lacks. Records from before the sides parted are
    /// marked: they have such entries only if messages before were erased on the side.
    pub(super) fn of_records(&self, records: Vec<(LogRecord, bool)>) -> SideContent {
        let new = self.whole.messages().iter().skip(self.common);
        let new: BTreeSet<&str> = new.map(|message| message.id.as_str()).collect();
        let renamed = self.renamed.clone();
        let mut content = SideContent { entries: Vec::new(), renamed, results: BTreeMap::new() };
        for (record, is_shared) in records {
            for entry in record.entries {
                match entry {
                    HistoryEntry::Message(mut message) if new.contains(message.id.as_str()) => {
                        // The newest annotation counts, not the one of the record.
                        let known = self.whole.message(&message.id).map(|known| known.metadata.clone());
                        message.metadata = known.unwrap_or(message.metadata);
                        content.entries.push(HistoryEntry::Message(message));
                    }
                    HistoryEntry::Invocation(call) if new.contains(call.message_id.as_str()) => {
                        content.results.insert(call.id.clone(), content.entries.len());
                        content.entries.push(HistoryEntry::Invocation(call));
                    }
                    HistoryEntry::Result(result) if content.results.contains_key(&result.invocation) => {
                        content.add_result(result);
                    }
                    HistoryEntry::Result(result) if !is_shared => {
                        content.entries.extend(self.result_of_known_call(result));
                    }
                    HistoryEntry::SetAside(item) if !is_shared => content.entries.push(HistoryEntry::SetAside(item)),
                    _ => {}
                }
            }
        }
        content
    }

    /// Returns what is taken of a result whose call is not new: nothing if the forked branch has it already, the result
    /// set aside if its call never came.
    fn result_of_known_call(&self, result: ResultEntry) -> Option<HistoryEntry> {
        let id = self.renamed.get(&result.invocation).unwrap_or(&result.invocation);
        if self.base.invocation(id).is_some() {
            return Some(HistoryEntry::Result(result));
        }
        // The call was erased in the forked branch, or only the journal of a run of the side has it.
        let is_waiting = self.whole.early_result(&result.invocation).is_some();
        let item = SetAsideItem::result(FindingCode::OrphanResult, result.result.filter(|_| is_waiting)?, self.at);
        Some(HistoryEntry::SetAside(SetAsideItem { invocation: Some(result.invocation), ..item }))
    }
}

impl SideContent {
    /// Adds the result of a call among the entries. One that replaces another is written over it: an append drops a
    /// replacement of a result that history does not have yet.
    fn add_result(&mut self, result: ResultEntry) {
        let Some(at) = self.results.get_mut(&result.invocation) else { return };
        if !result.is_replacement {
            if !result.is_deferral {
                *at = self.entries.len();
            }
            self.entries.push(HistoryEntry::Result(result));
            return;
        }
        match self.entries.get_mut(*at) {
            Some(HistoryEntry::Result(known)) => {
                known.is_redacted |= result.is_redacted;
                known.result = result.result;
            }
            Some(HistoryEntry::Invocation(call)) => {
                call.has_redacted_result |= result.is_redacted;
                call.result = result.result;
            }
            _ => {}
        }
    }

    /// Gives messages and calls whose ids are in use free ones. Returns which.
    pub(super) fn rename(&mut self, in_use: &BTreeSet<String>) -> Vec<RenamedId> {
        let own_id = |entry: &HistoryEntry| match entry {
            HistoryEntry::Message(message) => Some(message.id.clone()),
            HistoryEntry::Invocation(call) => Some(call.id.clone()),
            HistoryEntry::Result(_) | HistoryEntry::SetAside(_) => None,
        };
        let mut taken = in_use.clone();
        let own: Vec<String> = self.entries.iter().filter_map(own_id).collect();
        let (used, free): (Vec<_>, Vec<_>) = own.into_iter().partition(|id| in_use.contains(id));
        taken.extend(free);
        let mut renamed = Vec::new();
        for original in used {
            let id = free_id(original.clone(), taken.len(), &|id| taken.contains(id));
            taken.insert(id.clone());
            self.renamed.insert(original.clone(), id.clone());
            renamed.push(RenamedId { original, id });
        }
        if !self.renamed.is_empty() {
            self.replace_ids();
        }
        renamed
    }

    fn replace_ids(&mut self) {
        let renamed = &self.renamed;
        let rename = |id: &mut String| {
            if let Some(new) = renamed.get(id.as_str()) {
                id.clone_from(new);
            }
        };
        for entry in &mut self.entries {
            match entry {
                HistoryEntry::Message(message) => {
                    rename(&mut message.id);
                    message.parent_id.iter_mut().chain(&mut message.late_results).for_each(rename);
                    for part in &mut message.parts {
                        if let PartBody::ToolCall { invocation, .. } = &mut part.body {
                            rename(invocation);
                        }
                    }
                }
                HistoryEntry::Invocation(call) => {
                    rename(&mut call.id);
                    rename(&mut call.message_id);
                }
                HistoryEntry::Result(result) => rename(&mut result.invocation),
                HistoryEntry::SetAside(item) => item.invocation.iter_mut().for_each(rename),
            }
        }
    }
}
