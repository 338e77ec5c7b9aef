//! A chain of responses that the service does not continue: the request is sent with the history, and begins another
//! one.

use crate::clock::Ms;
use crate::finding::{Finding, FindingCode};
use crate::provider::{StateRefusal, changed_head};
use crate::replay::ReducerReplies;
use crate::run::effect::SaveKind;
use crate::run::journal::JournalEntry;
use crate::run::next_state::{CallAttempt, EarlyStop, NextState, RenderPlan};
use crate::run::turn::RunData;

/// Sends a refused request again with the history, if the chain began here and may begin again. The refused one does
/// not count as a model call.
pub fn restart_refused_chain(turn: &mut RunData, refusal: StateRefusal, now: Ms) -> Option<NextState> {
    let text = refusal.restarted().filter(|_| turn.try_restart_chain())?;
    turn.uncount_model_call();
    turn.close_effects();
    // A resumed run does not ask for it again. Should this not be stored, it does.
    turn.save(SaveKind::Write(vec![JournalEntry::Healed { refused: Vec::new(), restarts_chain: true }]));
    turn.warn(Finding::warning(FindingCode::ChainRestarted, text));
    let plan = RenderPlan { replies: ReducerReplies::default(), at: now, attempt: CallAttempt::FIRST };
    Some(NextState::Render(plan))
}

/// Renders the body with the history, since the service keeps other instructions or tools with the chain. Fails the run
/// if the chain did not begin here, or may not begin again.
pub fn restart_changed_chain(turn: &mut RunData, plan: RenderPlan) -> NextState {
    let refusal = StateRefusal::HeadChanged;
    match refusal.restarted().filter(|_| turn.try_restart_chain()) {
        Some(text) => {
            turn.warn(Finding::warning(FindingCode::ChainRestarted, text));
            NextState::Render(plan)
        }
        None => EarlyStop::failed(changed_head(&turn.setup().owner)).into(),
    }
}
