//! What the agent that a run is handed off to sees of the conversation before it (R31). The application's filter
//! selects messages once, before the agent's first request; then the rest can be nested in one message. Later requests
//! of the run show that part in the same way. Stored history does not change.

use super::custom::{select_messages, selection_question};
use super::nested_history::nest;
use super::question::{PendingQuestion, QuestionSource, RecordedReply};
use crate::finding::Report;
use crate::replay::input::ReplayInput;
use crate::replay::request_draft::RequestDraft;

/// Applies the handoffs of a run to a draft, in their order.
///
/// # Errors
/// A question if the application has not selected the messages yet.
pub(super) fn apply_handoffs<'h>(
    draft: &mut RequestDraft<'h>,
    input: &ReplayInput<'h, '_>,
    report: &mut Report,
) -> Result<(), Box<PendingQuestion<'h>>> {
    for (index, handoff) in input.handoffs.iter().enumerate() {
        let messages = std::mem::take(&mut draft.messages);
        let (before, after) = messages.into_iter().partition(|item| handoff.covers(item));
        draft.messages = before;
        if let Some(filter) = &handoff.filter {
            let source = QuestionSource::Handoff(index);
            let Some(reply) = input.replies.get(source) else {
                return Err(selection_question(draft, filter, source, input));
            };
            // A filter that failed has failed the run.
            if let RecordedReply::Selected(selected) = reply {
                select_messages(draft, selected, source, input, report);
            }
        }
        if handoff.nests_history {
            nest(draft, &handoff.nested, report);
        }
        draft.messages.extend::<Vec<_>>(after);
    }
    Ok(())
}
