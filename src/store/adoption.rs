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
use super::branching::{open_fork, read_branch};
use super::conflict_side::ConflictSide;
use super::log::{Change, SessionLog};
use super::record::{RecordKind, open_record};
use super::segment::split_segment;
use super::{StoredBranch, Table};
use crate::branch_path::ADDITIONS;
use crate::error::{Error, ErrorCode, Result};
use crate::history::{Annotation, History, HistoryEntry, LogRecord};
use crate::message::{Message, PartBody};
use crate::session_head::SessionHead;
use crate::tool::ToolInvocation;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

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
    let adopted = cell.borrow().directory().rows().find(|row| row.has_adopted(&side.id)).map(BranchRow::number);
    if let Some(number) = adopted {
        return read_branch(store, cell, number).await;
    }
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
    let mut content = {
        let (whole, base) = (&read.log.history, &common.branch.borrow().history);
        let renamed = common.renamed.clone();
        AdoptedEntries { whole, common: common.count, base, renamed, at: change.at }.of_records(records)
    };
    change.annotations = common.annotations(&read.log.history, &shared);
    if content.entries.is_empty() && change.annotations.is_empty() {
        return Ok(common.branch.into_inner());
    }
    let ids = ids_in_use(store, &id).await?;
    let renamed = content.rename(&ids);
    let last = common.count.checked_sub(1).and_then(|at| read.log.history.messages().get(at));
    let until_seq = last.map_or(0, |message| message.seq + 1);
    let forked = RefCell::new(open_fork(store, &common.branch, until_seq).await?);
    if let Some(place) = &mut forked.borrow_mut().fork {
        place.adopted = Some(AdoptedSide { side: side.id.clone(), renamed });
    }
    change.operation = format!("adopt {}", side.id);
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
            let is_same = is_same_message(message, other)
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

fn is_same_message(one: &Message, other: &Message) -> bool {
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
    one.seq == other.seq && one.created_at == other.created_at && content(one) == content(other)
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
    /// Returns the annotations that the side alone has of messages from before the sides parted.
    fn annotations(&self, side: &History, shared: &History) -> Vec<Annotation> {
        let branch = self.branch.borrow();
        let mut annotations = Vec::new();
        for message in side.messages().iter().take(self.count) {
            let before = shared.message(&message.id).map(|message| &message.metadata);
            let known = branch.history.message(&message.id).map(|message| &message.metadata);
            if before.is_some() && before == known && before != Some(&message.metadata) {
                annotations.push(Annotation { message: message.id.clone(), metadata: message.metadata.clone() });
            }
        }
        annotations
    }
}

/// Returns the ids of all messages and calls of a session, in any branch.
async fn ids_in_use(store: &dyn LogStore, session: &str) -> Result<BTreeSet<String>> {
    let mut records = Vec::new();
    read_table(store, session, Table::Log, &mut records).await?;
    let mut ids = BTreeSet::new();
    for record in records.iter().filter(|record| record.key < ADDITIONS) {
        // No branch shows a record that cannot be read, so its ids are free.
        for (_, value) in split_segment(record).map(|split| split.records).unwrap_or_default() {
            let entries =
                open_record::<LogRecord>(RecordKind::Log, &value).map_or_else(|_| Vec::new(), |log| log.entries);
            ids.extend(entries.into_iter().filter_map(|entry| match entry {
                HistoryEntry::Message(message) => Some(message.id),
                HistoryEntry::Invocation(call) => Some(call.id),
                HistoryEntry::Result(_) | HistoryEntry::SetAside(_) => None,
            }));
        }
    }
    Ok(ids)
}
