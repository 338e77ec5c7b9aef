//! What all reducers share.

use super::question::QuestionSource;
use crate::finding::{Action, Finding, FindingCode};
use crate::replay::input::ReplayInput;
use crate::replay::request_draft::DraftMessage;

/// The inputs of a reducer besides the draft.
pub(super) struct ReducerContext<'h, 'p> {
    /// The index of the reducer in the policy's list.
    pub reducer: usize,
    pub input: &'p ReplayInput<'h, 'p>,
}

impl ReducerContext<'_, '_> {
    /// Returns the source of the reducer's questions.
    pub fn source(&self) -> QuestionSource {
        QuestionSource::Reducer(self.reducer)
    }
}

/// Returns the finding for a message that is not sent.
pub(super) fn dropped(item: &DraftMessage<'_>, reason: &'static str) -> Finding {
    Finding::info(FindingCode::Reduced, reason).of_message(&item.message.id).with_action(Action::Dropped)
}
