//! The entries that a branch is born with which adopts the other side of a conflict.

use super::branch_directory::RenamedId;
use crate::clock::Ms;
use crate::finding::FindingCode;
use crate::history::{History, HistoryEntry, LogRecord, ResultEntry, SetAsideItem, free_id};
use crate::message::PartBody;
use crate::tool::{InvocationStatus, ToolInvocation, ToolResult};
use std::collections::{BTreeMap, BTreeSet};

/// What is taken of a side.
pub(super) struct AdoptedEntries<'a> {
    /// The history of the side.
    pub(super) whole: &'a History,
    /// How many of its first messages the forked branch has.
    pub(super) common: usize,
    /// The history of the forked branch.
    pub(super) base: &'a History,
    /// What the side and the session's history had when they parted.
    pub(super) shared: &'a History,
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
                    HistoryEntry::Result(result) if !is_shared => self.add_result_of_known_call(result, &mut content),
                    HistoryEntry::SetAside(item) if !is_shared => self.add_set_aside(item, &mut content),
                    _ => {}
                }
            }
        }
        self.drop_known_results(&new, &mut content);
        content
    }

    /// Adds a result whose call is not new. It is set aside if its call never came.
    fn add_result_of_known_call(&self, mut result: ResultEntry, content: &mut SideContent) {
        let id = self.renamed.get(&result.invocation).unwrap_or(&result.invocation);
        let Some(call) = self.base.invocation(id) else {
            // The call was erased in the forked branch, or only the journal of a run of the side has it.
            let is_waiting = self.whole.early_result(&result.invocation).is_some();
            if let Some(known) = result.result.filter(|_| is_waiting) {
                let item = SetAsideItem::result(FindingCode::OrphanResult, known, self.at);
                self.add_set_aside(SetAsideItem { invocation: Some(result.invocation), ..item }, content);
            }
            return;
        };
        let before = self.shared.invocation(&result.invocation).and_then(|call| call.result.as_ref());
        if result.is_replacement && before != call.result.as_ref() {
            // The branch has another result than the one that it replaces: of two results the first one counts.
            result.is_replacement = false;
        }
        if !result.is_deferral {
            content.results.insert(result.invocation.clone(), content.entries.len());
        }
        content.entries.push(HistoryEntry::Result(result));
    }

    /// Drops results of calls that are not new if the forked branch has them.
    fn drop_known_results(&self, new: &BTreeSet<&str>, content: &mut SideContent) {
        content.entries.retain(|entry| {
            let HistoryEntry::Result(result) = entry else { return true };
            let is_of_new = |call: &ToolInvocation| new.contains(call.message_id.as_str());
            if self.whole.invocation(&result.invocation).is_some_and(is_of_new) {
                return true;
            }
            let id = self.renamed.get(&result.invocation).unwrap_or(&result.invocation);
            self.base.invocation(id).is_none_or(|call| !self.has_outcome(call, result))
        });
    }

    /// Returns true if the forked branch has what an entry says of a call: that it goes on without a result, that
    /// nobody waits for one, or this result, as that of the call or set aside.
    fn has_outcome(&self, call: &ToolInvocation, entry: &ResultEntry) -> bool {
        if entry.is_deferral {
            return call.is_deferred || !call.takes_result();
        }
        let is_answered = call.result.is_some() && call.status != InvocationStatus::Interrupted;
        let Some(result) = &entry.result else {
            return is_answered || call.status == entry.status;
        };
        let is_stored = |known: &ToolResult| known.content == result.content && known.is_error == result.is_error;
        if call.result.as_ref().is_some_and(is_stored) {
            return true;
        }
        let item = SetAsideItem::result(FindingCode::DuplicateResult, result.clone(), self.at);
        is_answered
            && !entry.is_replacement
            && self.has_set_aside(&SetAsideItem { invocation: Some(call.id.clone()), ..item })
    }

    /// Adds an item that was set aside, unless the forked branch has it already.
    fn add_set_aside(&self, item: SetAsideItem, content: &mut SideContent) {
        let invocation = item.invocation.as_ref().map(|id| self.renamed.get(id).unwrap_or(id).clone());
        if !self.has_set_aside(&SetAsideItem { invocation, ..item.clone() }) {
            content.entries.push(HistoryEntry::SetAside(item));
        }
    }

    /// Returns true if the forked branch has set the item aside, whenever that was.
    fn has_set_aside(&self, item: &SetAsideItem) -> bool {
        self.base.set_aside().iter().any(|known| SetAsideItem { at: known.at, ..item.clone() } == *known)
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

    /// Gives messages and calls whose ids are in use free ones. Returns all that have another id in the branch than on
    /// the side, the common ones as well.
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
        for original in used {
            let id = free_id(original.clone(), taken.len(), &|id| taken.contains(id));
            taken.insert(id.clone());
            self.renamed.insert(original, id);
        }
        if !self.renamed.is_empty() {
            self.replace_ids();
        }
        let renamed = self.renamed.iter();
        renamed.map(|(original, id)| RenamedId { original: original.clone(), id: id.clone() }).collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Seed;
    use crate::json::JsonStr;
    use crate::message::{Message, Role};
    use crate::session_head::HeadMark;
    use crate::tool::Arguments;

    fn result(content: &str, is_replacement: bool) -> HistoryEntry {
        let result = Some(ToolResult { is_error: false, ..ToolResult::failure(content) });
        let status = InvocationStatus::Ok;
        HistoryEntry::Result(ResultEntry {
            invocation: "c".into(),
            status,
            result,
            is_replacement,
            ..ResultEntry::default()
        })
    }

    fn open_call() -> ToolInvocation {
        ToolInvocation {
            id: "c".into(),
            number: 0,
            record: 0,
            message_id: "m".into(),
            turn: 0,
            call_id: "c".into(),
            replay_id: None,
            name: "get".into(),
            arguments: Arguments::Text(JsonStr::new("{}")),
            round: 0,
            place: 0,
            status: InvocationStatus::Pending,
            started_at: None,
            finished_at: None,
            stored_at: 0,
            redacted: false,
            channel: None,
            freshness: None,
            append_freshness: None,
            result: None,
            template: None,
            stored_during_run: false,
            is_deferred: false,
            has_persist: false,
            is_async: false,
            has_redacted_result: false,
        }
    }

    /// A history with an answer that has the call "c", and then these entries.
    fn asking(later: &[HistoryEntry]) -> History {
        let answer = Message { id: "m".into(), ..Message::from_text(Role::Assistant, "I look") };
        let call = open_call();
        let mut history = History::new(Seed::default());
        let entries = [HistoryEntry::Message(answer), HistoryEntry::Invocation(call)];
        entries.into_iter().chain(later.iter().cloned()).for_each(|entry| history.apply(entry));
        history
    }

    /// What a branch with `base` takes of what a side adds to `shared`.
    fn taken(base: &[HistoryEntry], shared: &[HistoryEntry], side: &[HistoryEntry]) -> Vec<HistoryEntry> {
        let whole = asking(&[shared, side].concat());
        let (base, shared) = (asking(base), asking(shared));
        let adopted =
            AdoptedEntries { whole: &whole, common: 1, base: &base, shared: &shared, renamed: BTreeMap::new(), at: 7 };
        let record = LogRecord {
            operation: "on the side".into(),
            run: None,
            at: 0,
            mark: HeadMark::default(),
            entries: side.to_vec(),
            run_continues: false,
            summaries: Vec::new(),
            annotations: Vec::new(),
            added_to: 0,
        };
        adopted.of_records(vec![(record, false)]).entries
    }

    #[test]
    fn r47_a_result_of_a_shared_call_is_taken_as_it_was_replaced_and_once() {
        let (first, second) = (result("one", false), result("two", true));
        let both = [first.clone(), second.clone()];
        assert_eq!(taken(&[], &[], &both), [result("two", false)]);
        // The first one was shared.
        assert_eq!(taken(&both[..1], &both[..1], &both[1..]), both[1..]);
        // The branch has what the side has.
        assert_eq!(taken(&[result("two", false)], &[], &both), []);
        assert_eq!(taken(&both, &both[..1], &both[1..]), []);
        // The branch has another one, beside which that of the side will be set aside, once.
        let other = result("other", false);
        assert_eq!(taken(std::slice::from_ref(&other), &[], &both), [result("two", false)]);
        assert_eq!(taken(&[first.clone(), result("other", true)], &both[..1], &both[1..]), [result("two", false)]);
        let HistoryEntry::Result(ResultEntry { result: Some(two), .. }) = second else { return };
        let item = SetAsideItem::result(FindingCode::DuplicateResult, two, 3);
        let item = HistoryEntry::SetAside(SetAsideItem { invocation: Some("c".into()), ..item });
        assert_eq!(taken(&[other.clone(), item.clone()], &[], &both), []);
        assert_eq!(taken(std::slice::from_ref(&item), &[], std::slice::from_ref(&item)), []);
        assert_eq!(taken(&[], &[], std::slice::from_ref(&item)), [item]);
    }
}
