//! Which save tells the session that its requests let the service drop reasoning (R70).

use super::RunData;
use crate::run::effect::{Save, SaveKind};

impl RunData {
    /// Returns true if this save tells the session's head: the head does not say so yet, and the save is none that may
    /// be deferred (R21).
    pub(super) fn marks_drop(&mut self, save: &Save) -> bool {
        let is_due = match save.kind {
            SaveKind::Store { .. } | SaveKind::Append(_) | SaveKind::Fail(_) => {
                !self.setup.policy.has_dropped && self.setup.drops_unbound()
            }
            SaveKind::Begin(_) | SaveKind::Write(_) => false,
        };
        if is_due {
            self.drop_mark = Some(save.id);
        }
        is_due
    }

    /// Notes that a save was written.
    pub fn note_saved(&mut self, save: u64) {
        if self.drop_mark.take_if(|marking| *marking == save).is_some() {
            self.setup.policy.has_dropped = true;
        }
    }
}
