//! What the agent that a run is handed off to sees of the conversation before it (R31). The application's filter selects messages once, before
//! the agent's first request; then the rest can be nested in one message. Later requests of the run show that part in the same way. Stored
//! history does not change.

use super::context::ReducerContext;
use super::custom::{SelectedBy, ask, select_messages};
use super::nested_history::nest;
use super::question::{FIRST_HANDOFF, PendingQuestion, RecordedReply};
use crate::finding::Report;
use crate::history::MessageFormat;
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
            let context = ReducerContext { reducer: FIRST_HANDOFF + index, input };
            let Some(reply) = input.replies.get(context.reducer) else {
                return Err(ask(draft, filter, &context, MessageFormat::WithCalls));
            };
            // A filter that failed has failed the run.
            if let RecordedReply::Selected(selected) = reply {
                select_messages(draft, selected, (input, SelectedBy::Handoff), report);
            }
        }
        if handoff.nests_history {
            nest(draft, &handoff.nested, report);
        }
        draft.messages.extend::<Vec<_>>(after);
    }
    Ok(())
}
