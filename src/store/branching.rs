//! Forks and switches: the logs of a session's branches, and what is known of them.

use super::LogStore;
use super::additions::read_additions;
use super::branch_directory::{BranchDirectory, BranchRow, branch_name, branch_number, read_directory, read_new_rows};
use super::branch_write::{CarriedContent, ForkPlace};
use super::log::SessionLog;
use super::merge_queue::MergeQueue;
use super::open::{read_log, read_older, rebuild, rebuild_branch, unreadable_head};
use super::record::{RecordKind, open_record};
use crate::branch_path::BranchPath;
use crate::error::{Error, ErrorCode, Result};
use crate::history::{Alternatives, Annotation, History};
use crate::session_head::{BranchState, SessionHead};
use std::cell::RefCell;

/// The most branches without a record behind those that have one: a head that counts more is damaged or hostile.
const MAX_LOST_ROWS: u64 = 100;

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

    /// Returns true if the log is of a branch that is not stored yet, and no run of it is: nobody else knows of it.
    pub(super) fn is_unknown_branch(&self) -> bool {
        self.is_unborn() && !self.head.runs.iter().any(|run| run.branch == self.head.branch)
    }

    /// Returns the messages that stand at one place in several branches.
    #[must_use]
    pub fn alternatives(&self) -> &Alternatives {
        &self.alternatives
    }

    /// Returns the highest number of a branch, also of those whose records cannot be read.
    #[must_use]
    pub fn highest_branch(&self) -> u64 {
        let known = self.directory.highest();
        self.head.branch_count.min(known.saturating_add(MAX_LOST_ROWS)).max(known)
    }

    /// Returns the number of the branch with this name, also of one whose record cannot be read.
    #[must_use]
    pub fn branch_of_name(&self, name: &str) -> Option<u64> {
        let number = branch_number(name)?;
        (number <= self.highest_branch()).then_some(number)
    }

    /// Returns the number of the branch that has adopted the side of a conflict with this name.
    #[must_use]
    pub fn adopter_of(&self, side: &str) -> Option<u64> {
        self.directory.rows().find(|row| row.has_adopted(side)).map(BranchRow::number)
    }

    /// Replaces what is known of the branches.
    pub(super) fn set_directory(&mut self, directory: BranchDirectory) {
        self.directory = directory;
        self.alternatives = self.directory.alternatives();
        if let Some(ForkPlace { after, beside, .. }) = &self.fork {
            self.alternatives.add(after.as_deref(), beside.as_deref(), None);
        }
    }

    /// Returns the branches of the session as they were last read.
    #[must_use]
    pub fn directory(&self) -> &BranchDirectory {
        &self.directory
    }

    /// Returns true if the rows of other branches were left out when the session was opened. The log is then of the
    /// branch that the stored head has: of any other one, all rows were read.
    #[must_use]
    pub fn has_unread_branches(&self) -> bool {
        self.directory.is_partial()
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
        ForkPlace { after, beside, adopted: None }
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
    read_all_branches(store, cell).await?;
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
    fresh.carry_from(&log.history);
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

/// Takes over what was stored of the messages that a new branch shares since it was opened.
///
/// # Errors
/// If the store cannot be read.
pub(super) async fn carry_anew(store: &dyn LogStore, cell: &RefCell<SessionLog>) -> Result<()> {
    let Some(parent) = cell.borrow().head.branch.parent() else { return Ok(()) };
    let whole = read_branch(store, cell, parent).await?;
    let mut log = cell.borrow_mut();
    if log.is_unborn() && log.head.erasures == whole.head.erasures {
        let later = CarriedContent::of(&log.history, &whole.history);
        later.apply(&mut log.history);
        log.carried.extend(later);
    }
    Ok(())
}

/// Returns the log of another branch. If the head is damaged, it is rebuilt.
///
/// # Errors
/// `not_found` if there is none of this number; `corrupt_record` if its record in the directory cannot be read; if the
/// store cannot be read.
pub async fn read_branch(store: &dyn LogStore, cell: &RefCell<SessionLog>, number: u64) -> Result<SessionLog> {
    let id = cell.borrow().head.id.clone();
    let gone = || Error::new(ErrorCode::NotFound, "the session was deleted in the meantime; open it again");
    let stored = store.head(&id).await?.ok_or_else(gone)?;
    let mut fresh = cell.borrow().sibling(store);
    fresh.lineage = store.lineage(&id);
    let head = match open_record::<SessionHead>(RecordKind::Head, &stored.value) {
        Ok(head) => head,
        Err(error) if error.code == ErrorCode::WrongKey => return Err(error),
        Err(error) => {
            fresh.warn(unreadable_head(&id, &error));
            if error.code == ErrorCode::UnsupportedVersion {
                fresh.read_only = Some(error);
            }
            return rebuild_at(store, fresh, (number, stored.revision)).await;
        }
    };
    let mut directory = fresh.directory.clone();
    let other = Some(number).filter(|number| *number != head.branch.number);
    let findings = read_new_rows(store, &id, &mut directory, (head.branch_count, other)).await?;
    fresh.findings.extend(findings);
    fresh.set_directory(directory);
    read_at(store, &mut fresh, (head, number)).await?;
    fresh.set_revision(stored.revision);
    Ok(fresh)
}

/// Reads the log of a branch, of which the head is or another one.
async fn read_at(store: &dyn LogStore, log: &mut SessionLog, (mut head, number): (SessionHead, u64)) -> Result<()> {
    let mut has_counters = true;
    if head.branch.number != number {
        log.displaced = Some(head.branch_state());
        let known = log.directory.row(number).map(|row| row.state.clone());
        has_counters = known.is_some();
        let state = known.map_or_else(|| state_without_row(number, head.branch_count), Ok)?;
        head.set_branch_state(state);
    }
    log.head.branch = head.branch.clone();
    if has_counters {
        log.queue_additions(&read_additions(store, &head.id, (0, head.additions)).await?);
        read_log(store, log, (0, head.next_record)).await?;
        log.apply_last_additions(head.additions);
    } else {
        rebuild_branch(store, log, log.stored_revision).await?;
        head.set_branch_state(log.head.branch_state());
    }
    log.set_head(head);
    Ok(())
}

/// Rebuilds the head of a session at a branch.
async fn rebuild_at(store: &dyn LogStore, mut log: SessionLog, (number, revision): (u64, u64)) -> Result<SessionLog> {
    let known = log.head.clone();
    rebuild(store, &mut log, revision).await?;
    if log.head.branch.number != number {
        let mut other = log.sibling(store);
        // Rows may be older than the log, if the head had the branch.
        let row = log.directory.row(number).map(|row| row.state.path.clone());
        let path = row.map_or_else(|| state_without_row(number, log.head.branch_count).map(|state| state.path), Ok)?;
        other.head.branch = path;
        rebuild_branch(store, &mut other, revision).await?;
        let own = other.head.branch_state();
        other.displaced = Some(log.head.branch_state());
        other.head = log.head.clone();
        other.head.set_branch_state(own);
        other.findings.extend(std::mem::take(&mut log.findings));
        log = other;
    }
    log.head.adopt(&known);
    Ok(log)
}

/// Returns the state of a branch without a row, as far as it is known: the path of the main branch.
///
/// # Errors
/// `corrupt_record` if the session has that branch; `not_found`.
pub(super) fn state_without_row(number: u64, count: u64) -> Result<BranchState> {
    if number == 0 {
        return Ok(BranchState::default());
    }
    Err(if number <= count {
        let message = format!(
            "the record of branch \"{}\" cannot be read, so its messages cannot be found; restore a backup to get them \
             back",
            branch_name(number)
        );
        Error::new(ErrorCode::CorruptRecord, message)
    } else {
        let message = "the session has no branch of that name; `branches()` lists them";
        Error::new(ErrorCode::NotFound, message)
    })
}

/// Reads the rows of the directory that were left out when the session was opened. Without any it does nothing.
///
/// # Errors
/// If the store cannot be read. The next call reads again.
pub async fn read_all_branches(store: &dyn LogStore, cell: &RefCell<SessionLog>) -> Result<()> {
    while cell.borrow().has_unread_branches() {
        // Another value after the read: the session was read anew, perhaps another one of this id, or a branch was made
        // or got its first message, which the rows may lack.
        let state_of = |log: &SessionLog| (log.generation, log.head.branch_count, log.head.begun_forks);
        let (id, state) = {
            let log = cell.borrow();
            (log.head.id.clone(), state_of(&log))
        };
        let (mut directory, mut findings) = read_directory(store, &id).await?;
        let mut log = cell.borrow_mut();
        if state_of(&log) == state && log.has_unread_branches() {
            directory.add_newer(&log.directory);
            log.set_directory(directory);
            findings.retain(|finding| !log.findings.contains(finding));
            log.findings.extend(findings);
        }
    }
    Ok(())
}

/// Reads all rows of the directory again: those of branches that others went on with have other counters.
///
/// # Errors
/// If the store cannot be read.
pub async fn refresh_directory(store: &dyn LogStore, cell: &RefCell<SessionLog>) -> Result<()> {
    let (id, generation, count) = {
        let log = cell.borrow();
        (log.head.id.clone(), log.generation, log.head.branch_count)
    };
    if count == 0 {
        return Ok(());
    }
    let (directory, _) = read_directory(store, &id).await?;
    let mut log = cell.borrow_mut();
    // A branch that was born meanwhile is not lost.
    if log.generation == generation && log.head.branch_count == count {
        log.set_directory(directory);
    }
    Ok(())
}

/// Reads what a new branch shares, and sets its counters.
async fn read_shared(store: &dyn LogStore, log: &mut SessionLog) -> Result<()> {
    let (end, chain_cut) = (log.head.branch.first_own_key(), log.head.chain_cut);
    let additions = read_additions(store, &log.head.id, (0, log.head.additions)).await?;
    log.queue_additions(&additions);
    read_log(store, log, (0, end)).await?;
    log.apply_last_additions(log.head.additions);
    let state = BranchState {
        path: log.head.branch.clone(),
        next_seq: log.head.branch.first_own_seq(),
        next_record: end,
        turns: log.history.position().turns,
        log_bytes: log.survey.bytes,
        chain_cut: chain_cut.min(log.head.branch.first_own_seq()),
        erased: if log.head.erasures > 0 { log.count_missing_messages() } else { 0 },
        overview: log.head.overview.of_fork(log.history.messages()),
        ..BranchState::default()
    };
    log.head.set_branch_state(state);
    log.head.overview.set_counters(log.head.next_seq, log.head.erased);
    log.history.set_chain_cut(log.head.chain_cut);
    log.history.set_own_from(log.head.branch.first_own_seq());
    log.history.raise_highest_source(u64::try_from(log.head.source_high_water).ok());
    Ok(())
}

impl SessionLog {
    /// Returns the number of messages that a new branch would share if they had not been erased.
    fn count_missing_messages(&self) -> u64 {
        self.head.branch.first_own_seq().saturating_sub(self.history.messages().len() as u64)
    }

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

    /// Takes over what the history of the forked branch has of the shared messages: the conversation goes on from what
    /// is known.
    fn carry_from(&mut self, whole: &History) {
        self.carried = CarriedContent::of(&self.history, whole);
        self.carried.apply(&mut self.history);
    }

    /// Shows an annotation that was stored in the branch that this one will be forked from, and takes it over.
    pub fn carry_annotation(&mut self, annotation: Annotation) {
        if self.history.message(&annotation.message).is_some() {
            self.history.annotate(annotation.clone());
            if self.is_unborn() {
                self.carried.add(annotation);
            }
        }
    }
}
