//! The journal writes of a run that were not made yet.

use super::write_queue::WriteQueue;
use crate::store::{Change, JournalStep};
use std::cell::{Cell, RefCell};

/// The journal writes of a run that were not made yet.
#[derive(Default)]
pub struct DeferredSaves {
    /// The batch that is being written, or was not acknowledged. It is repeated unchanged, since it may have been
    /// written.
    pub attempted: RefCell<Option<Change>>,
    /// What came after it.
    gathered: RefCell<Option<Change>>,
    /// Orders the batches of the run.
    pub order: WriteQueue,
    pub has_timer: Cell<bool>,
}

impl DeferredSaves {
    /// Returns true if nothing waits to be written.
    pub fn is_empty(&self) -> bool {
        self.attempted.borrow().is_none() && self.gathered.borrow().is_none()
    }

    /// Adds a change that [`is_deferrable`].
    pub fn push(&self, next: Change) {
        let mut gathered = self.gathered.borrow_mut();
        match &mut *gathered {
            None => *gathered = Some(next),
            Some(first) => append_entries(first, next),
        }
    }

    /// Drops entries of a journal that the next batch removes.
    pub fn drop_entries(&self) {
        for waiting in [&self.attempted, &self.gathered] {
            waiting.borrow_mut().take_if(|change| matches!(step_of(change), Some(JournalStep::Write(_))));
        }
    }

    /// Returns a copy of the next batch to write.
    pub fn next_batch(&self) -> Option<Change> {
        let mut attempted = self.attempted.borrow_mut();
        if attempted.is_none() {
            *attempted = self.gathered.take();
        }
        let change = attempted.as_ref()?;
        let (operation, run, journal) = (change.operation.clone(), change.run.clone(), change.journal.clone());
        let Change { at, sources, approvals, .. } = *change;
        Some(Change { operation, run, journal, at, sources, approvals, ..Change::default() })
    }
}

/// Returns what a change does to a journal.
pub fn step_of(change: &Change) -> Option<&JournalStep> {
    change.journal.as_ref().map(|journal| &journal.step)
}

/// Returns true for a change that only adds entries to the journal, and depends on no other run.
pub fn is_deferrable(change: &Change) -> bool {
    change.entries.is_empty()
        && change.edit.is_none()
        && change.exclusive.is_none()
        && change.turn.is_none()
        && matches!(step_of(change), Some(JournalStep::Begin(_) | JournalStep::Write(_)))
}

fn append_entries(first: &mut Change, next: Change) {
    first.at = next.at;
    first.sources = first.sources.max(next.sources);
    first.approvals = next.approvals;
    if let (Some(journal), Some(added)) = (&mut first.journal, next.journal) {
        journal.lease_until = added.lease_until;
        if let (JournalStep::Begin(entries) | JournalStep::Write(entries), JournalStep::Write(more)) =
            (&mut journal.step, added.step)
        {
            entries.extend(more);
        }
    }
}
