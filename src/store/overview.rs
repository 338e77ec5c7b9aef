//! Keeps what a list shows of a session in its head, with each append (R79).

use super::log::{Change, SessionLog};
use super::read_mark::ReadMark;
use crate::history::HistoryEntry;
use crate::session_head::{Overview, Preview, SessionHead};

impl SessionLog {
    /// Returns the mark of somebody who has read all that this log has; none if nothing is unread.
    #[must_use]
    pub fn read_mark(&self) -> Option<ReadMark> {
        let mark = ReadMark { born: self.head.born, branch: self.head.branch.number, until: self.head.next_seq };
        // A branch that is not stored yet has no count of its own.
        (self.head.overview.unread > 0 && !self.is_unborn()).then_some(mark)
    }

    /// Updates the overview of a head by a change with these entries, which have their numbers.
    pub(super) fn update_overview(&self, head: &mut SessionHead, change: &Change, entries: &[HistoryEntry]) {
        let overview = &mut head.overview;
        if self.head.known_overview().is_none() {
            *overview = Overview::default();
        }
        let is_of_this = |read: &ReadMark| (read.born, read.branch) == (self.head.born, self.head.branch.number);
        if let Some(read) = change.read.filter(is_of_this) {
            overview.mark_read(read.until, self.history.messages());
        }
        for entry in entries {
            if let HistoryEntry::Message(message) = entry {
                overview.add(message);
            }
        }
        // Of a head that was damaged, and of a branch that an older build wrote.
        if overview.preview.is_none() {
            overview.preview = Preview::newest(self.history.messages());
        }
        overview.set_counters(head.next_seq, head.erased);
    }
}
