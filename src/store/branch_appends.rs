//! What an append writes of its branch: the number that it gets, its row in the directory, and the row of the branch
//! that it displaces from the head.

use super::Batch;
use super::branch_directory::BranchRow;
use super::branch_write::{BranchWrite, CarriedContent};
use super::log::{Change, SessionLog};
use crate::error::{Error, ErrorCode, Result};
use crate::history::{Annotation, HistoryEntry};
use crate::session_head::{RunEntry, SessionHead};
use std::borrow::Cow;

impl SessionLog {
    /// Checks that a run's entries come into its branch: the log may show another one since it was read anew.
    ///
    /// # Errors
    /// `conflict`.
    pub(super) fn check_branch(&self, change: &Change) -> Result<()> {
        if change.unshown_branch.is_some_and(|branch| branch != self.head.branch.number) {
            let sentence =
                "the session was read anew, and shows another branch than the one that was named; append again";
            return Err(Error::new(ErrorCode::Conflict, sentence));
        }
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

    /// Checks that the branch has the message of an annotation.
    ///
    /// # Errors
    /// `not_found`.
    pub fn check_annotation(&self, annotation: &Annotation) -> Result<()> {
        if self.history.message(&annotation.message).is_some() {
            return Ok(());
        }
        let message = format!(
            "the branch that is shown has no stored message \"{}\"; a message of a run is stored with the run's turn, \
             and `switchTo` shows another branch",
            annotation.message
        );
        Err(Error::new(ErrorCode::NotFound, message))
    }

    /// Checks that the branch has the messages that a change annotates, and a place for the annotations.
    ///
    /// # Errors
    /// `not_found` if it has no such message; `conflict` if the branch has no number yet.
    pub(super) fn check_annotations(&self, change: &Change) -> Result<()> {
        change.annotations.iter().try_for_each(|annotation| self.check_annotation(annotation))?;
        if !change.annotations.is_empty() && self.is_unborn() && change.entries.is_empty() && !change.is_fork {
            let message = "a run has begun another branch, which is not stored yet; annotate again";
            return Err(Error::new(ErrorCode::Conflict, message));
        }
        Ok(())
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
            let has_adopted = self.fork.as_ref().is_some_and(|place| place.adopted.is_some());
            let is_of_branch = |run: &&mut RunEntry| match &change.run {
                Some(id) => run.id == *id,
                // A run that will begin a branch at this place is no run of the adopted one.
                None if has_adopted => false,
                None => run.branch == self.head.branch && (run.lease_until == 0 || run.is_held_by(holder)),
            };
            head.runs.iter_mut().filter(is_of_branch).for_each(|run| run.branch = born.clone());
        }
        if !is_birth && self.is_without_first(head) && first_message(&change.entries).is_some() {
            head.begun_forks += 1;
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
                adopted: place.adopted,
            };
            batch.put.push(row.record());
            write.row = Some(row);
        }
        if let Some(row) = self.row_with_first(head, entries).filter(|_| !write.is_birth) {
            batch.replace.push(row.record());
            write.row = Some(row);
        }
        let has_moved = write.has_record && change.unshown_branch.is_none() || change.is_switch;
        write.stays = change.is_fork || head.branch.is_unborn() || !has_moved;
        let Some(displaced) = &self.displaced else { return Cow::Borrowed(head) };
        if !write.stays {
            batch.replace.push(self.directory.row_with(displaced.clone()).record());
            return Cow::Borrowed(head);
        }
        let own = self.directory.row_with(head.branch_state());
        let is_written = write.row.is_some() || self.directory.row(own.number()) == Some(&own);
        if !head.branch.is_unborn() && !is_written {
            batch.replace.push(own.record());
        }
        let mut stored = head.clone();
        stored.set_branch_state(displaced.clone());
        Cow::Owned(stored)
    }

    /// Returns true if the branch of a head was forked without a message, and has none yet.
    fn is_without_first(&self, head: &SessionHead) -> bool {
        self.directory.row(head.branch.number).is_some_and(|row| row.number() != 0 && row.first.is_none())
    }

    /// Returns the row of a branch that was forked without a message, with its first one.
    fn row_with_first(&self, head: &SessionHead, entries: &[HistoryEntry]) -> Option<BranchRow> {
        let row = self.directory.row(head.branch.number).filter(|_| self.is_without_first(head))?;
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
            self.carried = CarriedContent::default();
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
}

fn first_message(entries: &[HistoryEntry]) -> Option<&str> {
    entries.iter().find_map(|entry| match entry {
        HistoryEntry::Message(message) => Some(message.id.as_str()),
        _ => None,
    })
}
