//! Forks and switches: logs of other branches of a session, and what an append writes of branches.

use super::branch_directory::{BranchDirectory, BranchRow, read_directory};
use super::branch_write::{BranchWrite, ForkPlace};
use super::log::{Change, SessionLog};
use super::merge_queue::MergeQueue;
use super::open::{read_log, read_older};
use super::record::{RecordKind, open_record};
use super::{Batch, LogStore};
use crate::branch_path::BranchPath;
use crate::error::{Error, ErrorCode, Result};
use crate::history::{Alternatives, History, HistoryEntry, ResultEntry};
use crate::session_head::{BranchState, RunEntry, SessionHead};
use std::borrow::Cow;
use std::cell::RefCell;

impl SessionLog {
    /// Returns the number of the branch that the log is of; for one that is not stored yet, that of the branch that the
    /// session is at in the store.
    #[must_use]
    pub fn branch_number(&self) -> u64 {
        match &self.displaced {
            Some(stored) if self.head.branch.is_unborn() => stored.path.number,
            _ => self.head.branch.number,
        }
    }

    /// Returns the branch that the session is at in the store, with its counters.
    #[must_use]
    pub fn stored_branch(&self) -> BranchState {
        self.displaced.clone().unwrap_or_else(|| self.head.branch_state())
    }

    /// Returns true if the log is of a branch that is not stored yet.
    #[must_use]
    pub fn is_unborn(&self) -> bool {
        self.head.branch.is_unborn()
    }

    /// Returns the messages that stand at one place in several branches.
    #[must_use]
    pub fn alternatives(&self) -> &Alternatives {
        &self.alternatives
    }

    /// Replaces what is known of the branches.
    pub(super) fn set_directory(&mut self, directory: BranchDirectory) {
        self.directory = directory;
        self.alternatives = self.directory.alternatives();
        if let Some(ForkPlace { after, beside }) = &self.fork {
            self.alternatives.add(after.as_deref(), beside.as_deref(), None);
        }
    }

    /// Returns the branches of the session as they were last read.
    #[must_use]
    pub fn directory(&self) -> &BranchDirectory {
        &self.directory
    }

    /// Returns the path of a branch that shares the messages before `until_seq`.
    fn path_until(&self, until_seq: u64) -> BranchPath {
        let at = self.message_keys.partition_point(|(seq, _)| *seq < until_seq);
        let last = at.checked_sub(1).and_then(|at| self.message_keys.get(at));
        last.map_or_else(|| BranchPath::unborn(Vec::new()), |(_, key)| self.head.branch.forked_after(*key, until_seq))
    }

    /// Returns the place of a fork before the message `until_seq`.
    fn fork_place(&self, path: &BranchPath, until_seq: u64) -> ForkPlace {
        let id_of = |seq: u64| {
            let messages = self.history.messages();
            let at = messages.partition_point(|message| message.seq < seq);
            messages.get(at).filter(|message| message.seq == seq).map(|message| message.id.clone())
        };
        let after = until_seq.checked_sub(1).and_then(id_of);
        // The fork is one of the branch that wrote the message before it, which may go on otherwise than this branch.
        let is_own = self.path_until(until_seq + 1).parent().unwrap_or(0) == path.parent().unwrap_or(0);
        let sibling = || self.directory.rows().find(|row| row.number() != 0 && row.forked_after == after);
        let beside = if is_own { id_of(until_seq) } else { sibling().and_then(|row| row.beside.clone()) };
        ForkPlace { after, beside }
    }

    /// Checks that a run's entries come into its branch: the log may show another one since it was read anew.
    ///
    /// # Errors
    /// `conflict`.
    pub(super) fn check_branch(&self, change: &Change) -> Result<()> {
        let run = change.run.as_deref().and_then(|id| self.head.run(id)).filter(|_| !change.entries.is_empty());
        let is_shown = |run: &RunEntry| {
            let shown = &self.head.branch;
            if run.branch.is_unborn() { run.branch == *shown } else { run.branch.number == shown.number }
        };
        if run.is_none_or(is_shown) {
            return Ok(());
        }
        let sentence = "the session shows another branch than the run's since it was read anew; resume the run";
        Err(Error::new(ErrorCode::Conflict, sentence))
    }

    /// Gives the branch of a change its number, if it is born with it.
    pub(super) fn begin_branch_write(&self, head: &mut SessionHead, change: &Change) -> BranchWrite {
        let is_birth = head.branch.is_unborn() && (change.is_fork || !change.entries.is_empty());
        if is_birth {
            head.branch_count += 1;
            head.branch.number = head.branch_count;
            head.next_record = head.branch.first_own_key();
            let born = head.branch.clone();
            // Of runs that replace the same message elsewhere, which make branches of their own, a lease tells.
            let holder = change.holder.as_deref().unwrap_or_default();
            let is_of_branch = |run: &&mut RunEntry| match &change.run {
                Some(id) => run.id == *id,
                None => run.branch == self.head.branch && (run.lease_until == 0 || run.is_held_by(holder)),
            };
            head.runs.iter_mut().filter(is_of_branch).for_each(|run| run.branch = born.clone());
        }
        BranchWrite { is_birth, ..BranchWrite::default() }
    }

    /// Adds the records of branches to a batch, and returns the head that is stored with it.
    pub(super) fn write_branches<'h>(
        &self,
        head: &'h SessionHead,
        write: &mut BranchWrite,
        (change, entries, batch): (&Change, &[HistoryEntry], &mut Batch),
    ) -> Cow<'h, SessionHead> {
        if write.is_birth {
            let place = self.fork.clone().unwrap_or_default();
            let first = first_message(entries).map(ToOwned::to_owned);
            let row = BranchRow {
                state: head.branch_state(),
                created_at: change.at,
                forked_after: place.after,
                beside: place.beside,
                first,
                operation: change.operation.clone(),
            };
            batch.put.push(row.record());
            write.row = Some(row);
        }
        if let Some(row) = self.row_with_first(head, entries).filter(|_| !write.is_birth) {
            batch.replace.push(row.record());
            write.row = Some(row);
        }
        write.stays = change.is_fork || head.branch.is_unborn() || !write.has_record && !change.is_switch;
        let Some(displaced) = &self.displaced else { return Cow::Borrowed(head) };
        if !write.stays {
            batch.replace.push(self.directory.row_with(displaced.clone()).record());
            return Cow::Borrowed(head);
        }
        let own = self.directory.row_with(head.branch_state());
        if !head.branch.is_unborn() && !write.is_birth && self.directory.row(own.number()) != Some(&own) {
            batch.replace.push(own.record());
        }
        let mut stored = head.clone();
        stored.set_branch_state(displaced.clone());
        Cow::Owned(stored)
    }

    /// Returns the row of a branch that was forked without a message, with its first one.
    fn row_with_first(&self, head: &SessionHead, entries: &[HistoryEntry]) -> Option<BranchRow> {
        let row = self.directory.row(head.branch.number).filter(|row| row.number() != 0 && row.first.is_none())?;
        let first = first_message(entries)?.to_owned();
        Some(BranchRow { state: head.branch_state(), first: Some(first), ..row.clone() })
    }

    /// Notes what an append has written of branches.
    pub(super) fn note_branch_write(&mut self, write: BranchWrite) {
        if write.row.is_none() && (write.stays || self.displaced.is_none()) {
            return;
        }
        let mut directory = std::mem::take(&mut self.directory);
        if let Some(row) = write.row {
            directory.insert(row);
            self.fork = None;
            self.carried.clear();
            self.merge_queue.add_boundary();
        }
        if !write.stays
            && let Some(displaced) = self.displaced.take()
        {
            let row = directory.row_with(displaced);
            directory.insert(row);
        }
        self.set_directory(directory);
    }

    /// Gives a stored head the branch of the log. Returns the state of the branch that the head has in the store.
    pub(super) fn keep_branch(&self, head: &mut SessionHead, directory: &BranchDirectory) -> BranchState {
        let own = &self.head.branch;
        let row = if own.is_unborn() { None } else { directory.row(own.number) };
        // A row that cannot be read is written again with the next append.
        let state = row.map_or_else(|| self.head.branch_state(), |row| row.state.clone());
        let stored = head.branch_state();
        head.set_branch_state(state);
        stored
    }
}

fn first_message(entries: &[HistoryEntry]) -> Option<&str> {
    entries.iter().find_map(|entry| match entry {
        HistoryEntry::Message(message) => Some(message.id.as_str()),
        _ => None,
    })
}

/// Shows the branch that a change made, if the reply of its append was lost. Returns true if there is one.
///
/// # Errors
/// If the store cannot be read.
pub(super) async fn adopt_born_branch(
    store: &dyn LogStore,
    cell: &RefCell<SessionLog>,
    operation: &str,
) -> Result<bool> {
    let number = {
        let log = cell.borrow();
        let born = || log.directory.rows().find(|row| row.operation == operation).map(BranchRow::number);
        if log.is_unborn() { born() } else { None }
    };
    let Some(number) = number else { return Ok(false) };
    let born = read_branch(store, cell, number).await?;
    *cell.borrow_mut() = born;
    Ok(true)
}

/// Returns the log of a branch that does not exist yet: it shares the messages before `until_seq`, and is born with the
/// first append of entries.
///
/// # Errors
/// If the store cannot be read.
pub async fn open_fork(store: &dyn LogStore, cell: &RefCell<SessionLog>, until_seq: u64) -> Result<SessionLog> {
    read_older(store, cell).await?;
    let mut fresh = {
        let log = cell.borrow();
        log.writable()?;
        let path = log.path_until(until_seq);
        let mut fresh = log.sibling(store);
        fresh.fork = Some(log.fork_place(&path, until_seq));
        fresh.set_directory(log.directory.clone());
        fresh.head.branch = path;
        fresh
    };
    read_shared(store, &mut fresh).await?;
    let log = cell.borrow();
    fresh.carry_results(&log.history);
    fresh.displaced = log.displaced.clone().or_else(|| Some(log.head.branch_state()));
    Ok(fresh)
}

/// Returns the log of a run's branch that was not born before the run was cut off.
///
/// # Errors
/// If the store cannot be read.
pub async fn reopen_fork(store: &dyn LogStore, cell: &RefCell<SessionLog>, path: &BranchPath) -> Result<SessionLog> {
    read_older(store, cell).await?;
    let parent = path.parent().unwrap_or(0);
    let whole = if cell.borrow().head.branch.number == parent {
        None
    } else {
        Some(RefCell::new(read_branch(store, cell, parent).await?))
    };
    open_fork(store, whole.as_ref().unwrap_or(cell), path.first_own_seq()).await
}

/// Returns the log of another branch.
///
/// # Errors
/// `not_found` if there is none of this number; if the store cannot be read.
pub async fn read_branch(store: &dyn LogStore, cell: &RefCell<SessionLog>, number: u64) -> Result<SessionLog> {
    let id = cell.borrow().head.id.clone();
    let gone = || Error::new(ErrorCode::NotFound, "the session was deleted in the meantime; open it again");
    let stored = store.head(&id).await?.ok_or_else(gone)?;
    let mut head: SessionHead = open_record(RecordKind::Head, &stored.value)?;
    let (directory, findings) = read_directory(store, &id).await?;
    let mut fresh = cell.borrow().sibling(store);
    fresh.findings.extend(findings);
    if head.branch.number != number {
        let row = directory.row(number).ok_or_else(|| {
            let message = "the session has no branch of that name; `branches()` lists them";
            Error::new(ErrorCode::NotFound, message)
        })?;
        fresh.displaced = Some(head.branch_state());
        head.set_branch_state(row.state.clone());
    }
    fresh.set_directory(directory);
    fresh.head.branch = head.branch.clone();
    read_log(store, &mut fresh, (0, head.next_record)).await?;
    fresh.set_revision(stored.revision);
    fresh.lineage = store.lineage(&id);
    fresh.set_head(head);
    Ok(fresh)
}

/// Reads what a new branch shares, and sets its counters.
async fn read_shared(store: &dyn LogStore, log: &mut SessionLog) -> Result<()> {
    let end = log.head.branch.first_own_key();
    read_log(store, log, (0, end)).await?;
    let state = BranchState {
        path: log.head.branch.clone(),
        next_seq: log.head.branch.first_own_seq(),
        next_record: end,
        turns: log.history.position().turns,
        log_bytes: log.survey.bytes,
        ..BranchState::default()
    };
    log.head.set_branch_state(state);
    log.history.raise_highest_source(u64::try_from(log.head.source_high_water).ok());
    Ok(())
}

impl SessionLog {
    /// Returns a log of the same session in which nothing was read.
    fn sibling(&self, store: &dyn LogStore) -> Self {
        let mut log = Self::new(&self.head.id, self.seed, self.head.created_at, MergeQueue::new(store));
        log.head = self.head.clone();
        log.revision = self.revision;
        log.stored_revision = self.stored_revision;
        log.min_revision = self.min_revision;
        log.lineage = self.lineage;
        log.read_only.clone_from(&self.read_only);
        log.set_directory(self.directory.clone());
        log.generation = self.generation + 1;
        log
    }

    /// Takes over results of shared calls that the forked branch stored after the place of the fork: the conversation
    /// goes on from what is known.
    fn carry_results(&mut self, whole: &History) {
        let known = |call: &str| {
            let call = whole.invocation(call)?;
            call.result.as_ref()?;
            Some(HistoryEntry::Result(ResultEntry {
                invocation: call.id.clone(),
                status: call.status,
                started_at: call.started_at,
                finished_at: call.finished_at,
                freshness: call.freshness,
                result: call.result.clone(),
                is_redacted: call.is_redacted(),
                ..ResultEntry::default()
            }))
        };
        self.carried = self.history.open_calls().filter_map(|call| known(&call.id)).collect();
        for entry in self.carried.clone() {
            self.history.apply(entry);
        }
    }
}
