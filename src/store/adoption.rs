//! Adopts the other side of a conflict: a branch is born with what the side has beyond the history, in one append.
//!
//! The branch is forked after the last message that both have. The append is named by the side, and the row of the
//! branch names it, too, so that a side is adopted once. Messages and calls keep their ids unless others of the session
//! have them. Results and annotations that the side has of shared messages are adopted. Its summaries are not, nor are
//! its unfinished runs, whose journals stay with the side: what such a run stored in history is adopted, and its open
//! calls take results.

use super::LogStore;
use super::adopted_entries::AdoptedEntries;
use super::append::commit;
use super::archive::read_table;
use super::branch_directory::{AdoptedSide, BranchRow};
use super::branching::{open_fork, read_all_branches, read_branch};
use super::conflict_side::ConflictSide;
use super::log::{Change, SessionLog};
use super::record::{RecordKind, open_record};
use super::segment::split_segment;
use super::{StoredBranch, Table};
use crate::branch_path::{ADDITIONS, BranchPath, DIRECTORY};
use crate::error::{Error, ErrorCode, Result};
use crate::history::{Annotation, History, HistoryEntry, LogRecord};
use crate::json::Json;
use crate::message::{Message, PartBody};
use crate::session_head::SessionHead;
use crate::tool::ToolInvocation;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// What the names of the appends begin with that adopt sides.
const ADOPTION: &str = "adopt ";

/// What the side has in common with a branch of the history.
struct CommonMessages {
    branch: RefCell<SessionLog>,
    /// How many messages.
    count: usize,
    /// The ids of those messages and calls that have another one in the branch, by those on the side.
    renamed: BTreeMap<String, String>,
}

/// Returns the log of the branch that has the content of a side, which is adopted first unless that was done before.
/// `change` has the time and the notice of the append; if it is a fork, the head stays with the branch that it has. Of a
/// side that has nothing beyond a branch, that branch is returned.
///
/// # Errors
/// `conflict` if the session was read anew meanwhile: try again; `corrupt_record` and `unsupported_version` if a record
/// of the side cannot be read; `wrong_state` if the session was cleared since; `too_large`; the store's own.
pub async fn adopt_conflict_side(
    store: &dyn LogStore,
    cell: &RefCell<SessionLog>,
    side: &StoredBranch,
    mut change: Change,
) -> Result<SessionLog> {
    let (id, seed) = (cell.borrow().head.id.clone(), cell.borrow().seed);
    cell.borrow().writable()?;
    let read = ConflictSide::read(store, &id, side, (seed, change.at)).await?;
    let is_of_another = |fork_head: &SessionHead| fork_head.born != cell.borrow().head.born;
    if read.fork_head.as_ref().is_some_and(is_of_another) {
        let message = "the session was cleared since the sides parted, and with it what the side begins with";
        return Err(Error::new(ErrorCode::WrongState, message));
    }
    let shared = read.shared_history(store)?;
    let common = find_common(store, cell, (&read, &shared)).await?;
    let records = read.records(side)?;
    let path = common.branch.borrow().head.branch.clone();
    let stored = StoredContent::read(store, &id, &path).await?;
    change.annotations = common.annotations((&read.log.history, &shared), &records, &stored);
    let mut content = {
        let (whole, base, shared) = (&read.log.history, &common.branch.borrow().history, &shared);
        let renamed = common.renamed.clone();
        AdoptedEntries { whole, common: common.count, base, shared, renamed, at: change.at }.of_records(records)
    };
    if content.entries.is_empty() && change.annotations.is_empty() {
        // There is nothing to adopt: another call in this process may have made the branch meanwhile.
        let adopter = common.branch.borrow().adopter_of(&side.id);
        return match adopter {
            Some(number) => read_branch(store, &common.branch, number).await,
            None => Ok(common.branch.into_inner()),
        };
    }
    let renamed = content.rename(&stored.ids);
    let last = common.count.checked_sub(1).and_then(|at| read.log.history.messages().get(at));
    let until_seq = last.map_or(0, |message| message.seq + 1);
    let forked = RefCell::new(open_fork(store, &common.branch, until_seq).await?);
    if let Some(place) = &mut forked.borrow_mut().fork {
        place.adopted = Some(AdoptedSide { side: side.id.clone(), renamed });
    }
    change.operation = format!("{ADOPTION}{}", side.id);
    // A branch that has only notes of what it shares is born without an entry of its own.
    change.is_fork |= content.entries.is_empty();
    change.entries = content.entries;
    commit(store, &forked, &change).await?;
    Ok(forked.into_inner())
}

/// Returns true if all that a side has was stored by an adoption that the history has as well: two writers adopted the
/// same side at once.
#[must_use]
pub fn is_repeated_adoption(log: &SessionLog, side: &StoredBranch) -> bool {
    let is_adoption =
        |operation: &str| log.directory().rows().any(|row| row.adopted.is_some() && row.operation == operation);
    let mut records = side.log.iter().filter(|record| record.key < ADDITIONS).peekable();
    records.peek().is_some()
        && records.all(|record| {
            let log = open_record::<LogRecord>(RecordKind::Log, &record.value);
            log.is_ok_and(|log| is_adoption(&log.operation))
        })
}

/// Finds the branch that has most of a side's first messages: the one from which the side parted, or one that was born
/// with an earlier form of the side.
async fn find_common(
    store: &dyn LogStore,
    cell: &RefCell<SessionLog>,
    (side, shared): (&ConflictSide, &History),
) -> Result<CommonMessages> {
    let last_shared = shared.messages().last().map_or(0, |last| last.seq);
    let mut numbers = vec![side.log.head.branch.branch_of(last_shared)];
    if shared.messages().is_empty() {
        numbers = vec![0];
    }
    read_all_branches(store, cell).await?;
    {
        let log = cell.borrow();
        let adopted = log.directory().rows().filter(|row| row.adopted.is_some()).map(BranchRow::number);
        numbers.extend(adopted);
    }
    let mut best: Option<CommonMessages> = None;
    for number in numbers {
        let branch = read_branch(store, cell, number).await?;
        let (count, renamed) = common_messages((&side.log.history, shared), &branch.history);
        if best.as_ref().is_none_or(|best| count > best.count) {
            best = Some(CommonMessages { branch: RefCell::new(branch), count, renamed });
        }
    }
    best.ok_or_else(|| Error::new(ErrorCode::NotFound, "the session has no branch"))
}

/// Counts the messages at the beginning of a side that a branch has, too. Those from before the sides parted are the
/// same ones; later ones are if they have the same content and time: both sides stored what one run had, or the branch
/// was born with an earlier form of the side.
fn common_messages((side, shared): (&History, &History), branch: &History) -> (usize, BTreeMap<String, String>) {
    let mut renamed = BTreeMap::new();
    let pairs = side.messages().iter().zip(branch.messages());
    let count = pairs
        .take_while(|(message, other)| {
            if message.id == other.id && shared.message(&message.id).is_some() {
                return true;
            }
            let is_same = is_same_message((message, &renamed), other)
                && side.calls_of(message).count() == branch.calls_of(other).count()
                && side.calls_of(message).zip(branch.calls_of(other)).all(|(call, other)| is_same_call(call, other));
            if is_same {
                let calls = side.calls_of(message).zip(branch.calls_of(other));
                let ids = calls.map(|(call, other)| (&call.id, &other.id));
                let ids = ids.chain([(&message.id, &other.id)]).filter(|(id, other)| id != other);
                renamed.extend(ids.map(|(id, other)| (id.clone(), other.clone())));
            }
            is_same
        })
        .count();
    (count, renamed)
}

/// Returns true if a message of a side, whose other messages have other ids in the branch, is this one of the branch.
fn is_same_message((one, renamed): (&Message, &BTreeMap<String, String>), other: &Message) -> bool {
    let content = |message: &Message| {
        let mut content = message.clone();
        (content.id, content.seq, content.metadata, content.late_results) = Default::default();
        for part in &mut content.parts {
            if let PartBody::ToolCall { invocation, .. } = &mut part.body {
                invocation.clear();
            }
        }
        content
    };
    let mut on_side = content(one);
    if let Some(parent) = on_side.parent_id.as_mut()
        && let Some(id) = renamed.get(parent.as_str())
    {
        parent.clone_from(id);
    }
    one.seq == other.seq && one.created_at == other.created_at && on_side == content(other)
}

/// Returns true if the calls are one, whose result only the side may have.
fn is_same_call(on_side: &ToolInvocation, in_branch: &ToolInvocation) -> bool {
    let is_same = |of: fn(&ToolInvocation) -> &str| of(on_side) == of(in_branch);
    is_same(|call| &call.call_id)
        && is_same(|call| &call.name)
        && on_side.arguments == in_branch.arguments
        && (in_branch.takes_result() || on_side.result == in_branch.result)
}

impl CommonMessages {
    /// Returns the annotations of common messages that the side has changed since the sides parted, or since it was
    /// adopted, unless the branch has changed them, too.
    fn annotations(
        &self,
        (side, shared): (&History, &History),
        records: &[(LogRecord, bool)],
        stored: &StoredContent,
    ) -> Vec<Annotation> {
        let branch = self.branch.borrow();
        let mut annotations = Vec::new();
        for message in side.messages().iter().take(self.count) {
            let id = self.renamed.get(&message.id).unwrap_or(&message.id);
            let Some(known) = branch.history.message(id).map(|message| &message.metadata) else { continue };
            let of_side = records.iter().flat_map(|(record, _)| &record.annotations);
            let of_side: Vec<_> =
                of_side.filter(|note| note.message == message.id).map(|note| &note.metadata).collect();
            let adopted = stored.adopted.get(id).into_iter().flatten().rfind(|note| of_side.contains(note));
            let before = shared.message(&message.id).map(|message| &message.metadata);
            let before = adopted.or(before).or_else(|| stored.first_notes.get(id));
            if before == Some(known) && known != &message.metadata {
                annotations.push(Annotation { message: id.clone(), metadata: message.metadata.clone() });
            }
        }
        annotations
    }
}

/// What the log of a session has.
#[derive(Default)]
struct StoredContent {
    /// The ids of all messages and calls, in any branch.
    ids: BTreeSet<String>,
    /// The metadata that the messages of one branch were stored with.
    first_notes: BTreeMap<String, Option<Json>>,
    /// The metadata that adoptions have given to messages, the oldest first.
    adopted: BTreeMap<String, Vec<Option<Json>>>,
}

impl StoredContent {
    async fn read(store: &dyn LogStore, session: &str, branch: &BranchPath) -> Result<Self> {
        let mut records = Vec::new();
        read_table(store, session, Table::Log, &mut records).await?;
        let mut content = Self::default();
        for record in records.iter().filter(|record| record.key < DIRECTORY) {
            // No branch shows a record that cannot be read, so its ids are free.
            for (key, value) in split_segment(record).map(|split| split.records).unwrap_or_default() {
                let is_of_branch = branch.range_end(key).is_some();
                if let Ok(log) = open_record::<LogRecord>(RecordKind::Log, &value) {
                    content.add(log, is_of_branch);
                }
            }
        }
        Ok(content)
    }

    fn add(&mut self, log: LogRecord, is_of_branch: bool) {
        if log.operation.starts_with(ADOPTION) {
            for Annotation { message, metadata } in log.annotations {
                self.adopted.entry(message).or_default().push(metadata);
            }
        }
        for entry in log.entries {
            match entry {
                HistoryEntry::Message(message) => {
                    self.ids.insert(message.id.clone());
                    if is_of_branch {
                        self.first_notes.insert(message.id, message.metadata);
                    }
                }
                HistoryEntry::Invocation(call) => _ = self.ids.insert(call.id),
                HistoryEntry::Result(_) | HistoryEntry::SetAside(_) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Role;

    #[test]
    fn r47_a_message_that_follows_a_renamed_one_is_the_same() {
        let following = |id: &str| Message { parent_id: Some(id.into()), ..Message::from_text(Role::User, "And?") };
        let renamed = BTreeMap::from([("m".to_owned(), "m-2".to_owned())]);
        assert!(is_same_message((&following("m"), &renamed), &following("m-2")));
        assert!(!is_same_message((&following("m"), &renamed), &following("m")));
    }
}
