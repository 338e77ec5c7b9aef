//! [`ReplaySelection`]: what a run sends of history, chosen once and repeated in each of its requests (R71).
//!
//! A draft is stored as ranges of messages. A range has the ids of its first and its last message and what became of
//! the calls in it, so an old history whose calls are stale and a new one whose calls are sent are two ranges, however
//! long they are.

use crate::encoding::encode_fields;
use crate::finding::{Action, Finding, FindingCode, Report};
use crate::history::History;
use crate::message::Message;

/// What a run sends of history: all later requests of the run repeat it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReplaySelection {
    /// The messages, in the order in which they are sent.
    pub ranges: Vec<SelectedRange>,
    /// The number of messages of the live turn that it was chosen from. Later ones are sent as they are.
    pub live_end: u64,
    /// The number of handoffs with a view of their own that it was chosen after.
    pub handoffs: u64,
    /// True if something was left out or changed.
    pub is_reduced: bool,
    /// The hash of the results that history had ([`History::late_results_hash`]).
    pub known_results: u64,
}
encode_fields!(struct ReplaySelection {
    0 => ranges: list,
    1 => live_end,
    2 => handoffs,
    3 => is_reduced,
    4 => known_results,
});

/// Consecutive messages of history or of the live turn, or one message that is stored nowhere else.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SelectedRange {
    /// The id of the first message.
    pub first: String,
    /// The id of the last message.
    pub last: String,
    /// What became of each call of these messages.
    pub outcome: CallOutcome,
    /// What became of the calls of a single message, if they differ. A call that is not among them is not sent.
    pub calls: Vec<SelectedCall>,
    /// A message that a reducer or a handoff created or changed, or a summary.
    pub message: Option<Message>,
    /// True if `message` replaces older messages.
    pub is_replacement: bool,
}
encode_fields!(struct SelectedRange {
    0 => first,
    1 => last,
    2 => outcome,
    3 => calls: list,
    4 => message,
    5 => is_replacement,
});

/// What became of one call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SelectedCall {
    /// The id of the invocation.
    pub invocation: String,
    /// What became of it.
    pub outcome: CallOutcome,
}
encode_fields!(struct SelectedCall {
    0 => invocation,
    1 => outcome,
});

/// What is sent of a call, as a number: the bits 0 to 2 are the kind, bit 3 says that uncited sources are left out of
/// the result, and the rest is the length in bytes of a shortened result.
pub type CallOutcome = u64;

/// A selection, and why its messages and calls are left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReplayChoice {
    /// What is sent.
    pub selection: ReplaySelection,
    /// The findings about what is not. A resumed run does not have them.
    pub report: Report,
}

impl ReplayChoice {
    /// Returns the choice of a resumed run.
    #[must_use]
    pub fn resumed(selection: ReplaySelection) -> Self {
        let mut report = Report::new();
        if selection.is_reduced {
            let text = "what the run left out of history when it began is left out until it ends";
            report.push(Finding::info(FindingCode::Reduced, text).with_action(Action::Dropped));
        }
        Self { selection, report }
    }
}

impl ReplaySelection {
    /// Returns the indices of the stored messages that the selection contains; `None` if it has a message that replaces
    /// others.
    #[must_use]
    pub fn stored_messages(&self, history: &History) -> Option<Vec<usize>> {
        let mut indices = Vec::new();
        for range in &self.ranges {
            if range.is_replacement {
                return None;
            }
            let (first, last) = match &range.message {
                Some(message) => (&message.id, &message.id),
                None => (&range.first, &range.last),
            };
            if let (Some(first), Some(last)) = (history.message_index(first), history.message_index(last)) {
                indices.extend(first..=last);
            }
        }
        indices.sort_unstable();
        indices.dedup();
        Some(indices)
    }

    /// Returns true if it begins with what a provider returned as a compaction.
    #[must_use]
    pub fn has_provider_compaction(&self) -> bool {
        let is_of_provider = |message: &Message| message.dialect.is_some();
        self.ranges.iter().any(|range| range.is_replacement && range.message.as_ref().is_some_and(is_of_provider))
    }

    /// Returns true if it has messages that are stored nowhere else.
    #[must_use]
    pub fn has_own_messages(&self) -> bool {
        self.ranges.iter().any(|range| range.message.is_some())
    }
}
