//! Reducers shorten a long history for one body. They run in the order of the policy; each has its own file (R36, R14).
//!
//! A reducer does not change stored history, does not split a round (calls and results are kept or dropped together),
//! and keeps the user's newest message. A reducer that needs the application stops the pass with a [`PendingQuestion`].
//! After the reply the pass runs again from the start; replies are kept, so nothing is borrowed while the application
//! works.

mod cache;
mod context;
mod custom;
mod groups;
mod handoff;
mod handoff_reply;
mod message_count;
mod nested_history;
mod question;
mod reducer;
mod shorten;
mod sliding_turns;
mod summarize;
mod token_budget;
mod token_counter;
mod tool_results;

pub use cache::ReducerCache;
pub use question::{PendingQuestion, QuestionKind, ReducerQuestion, ReducerReplies, ReducerReply};
pub use reducer::{Callback, Reducer};
pub use shorten::shortened;
pub use token_counter::estimated_tokens;

use super::input::ReplayInput;
use super::request_draft::RequestDraft;
use crate::finding::{Action, Finding, FindingCode, Report};
use context::ReducerContext;
use message_count::MessageCountLimit;
use summarize::Summarizer;
use token_budget::TokenBudget;

/// Shortens the draft of a run's choice further if the run has outgrown a token budget.
///
/// # Errors
/// The question that the application must answer first.
pub(super) fn fit_budgets<'h>(
    draft: &mut RequestDraft<'h>,
    input: &ReplayInput<'h, '_>,
    report: &mut Report,
) -> Result<(), Box<PendingQuestion<'h>>> {
    let own = input.policy.reducers().len();
    for (index, reducer) in input.policy.all_reducers().enumerate() {
        if index == own && !is_over_limit(draft, input) {
            break;
        }
        if let Reducer::TokenBudget { tokens, count } = reducer {
            let context = ReducerContext { reducer: index, input };
            TokenBudget { tokens: *tokens, counter: count.as_ref() }.fit_grown(draft, &context, report)?;
        }
    }
    Ok(())
}

/// Applies the run's handoffs to a draft, then the policy's reducers, then the fallback's if the draft is still too
/// large.
///
/// # Errors
/// The question that the application must answer first.
pub(super) fn reduce<'h>(
    draft: &mut RequestDraft<'h>,
    input: &ReplayInput<'h, '_>,
    report: &mut Report,
) -> Result<(), Box<PendingQuestion<'h>>> {
    handoff::apply_handoffs(draft, input, report)?;
    let own = input.policy.reducers().len();
    for (index, reducer) in input.policy.all_reducers().enumerate() {
        if index == own {
            if !is_over_limit(draft, input) {
                break;
            }
            let text = "the request is longer than `compaction.tokens`; the `fallback` shortens it";
            report.push(Finding::info(FindingCode::Reduced, text).with_action(Action::Kept));
        }
        apply(reducer, draft, &ReducerContext { reducer: index, input }, report)?;
    }
    Ok(())
}

/// Returns true if the fallback's reducers apply to a draft.
fn is_over_limit(draft: &RequestDraft<'_>, input: &ReplayInput<'_, '_>) -> bool {
    input.policy.fallback.as_ref().is_some_and(|fallback| estimated_tokens(draft) > fallback.tokens)
}

/// Applies a reducer to a draft.
///
/// # Errors
/// The question that the application must answer first.
fn apply<'h>(
    reducer: &Reducer,
    draft: &mut RequestDraft<'h>,
    context: &ReducerContext<'h, '_>,
    report: &mut Report,
) -> Result<(), Box<PendingQuestion<'h>>> {
    let failure = match reducer {
        Reducer::MessageCount { count, keep_tools, first_system_only } => {
            let limit =
                MessageCountLimit { count: *count, keep_tools: *keep_tools, first_system_only: *first_system_only };
            limit.reduce(draft, report);
            None
        }
        Reducer::TokenBudget { tokens, count } => {
            TokenBudget { tokens: *tokens, counter: count.as_ref() }.reduce(draft, context, report)?
        }
        Reducer::SlidingTurns { turns } => {
            sliding_turns::reduce(draft, *turns, report);
            None
        }
        Reducer::ToolResults { keep_newest_turns, max_bytes } => {
            tool_results::reduce(draft, *keep_newest_turns, *max_bytes, report);
            None
        }
        Reducer::Summarize { target, threshold, summarize } => {
            let summarizer = Summarizer { target: *target, threshold: *threshold, callback: summarize };
            summarizer.reduce(draft, context, report)?
        }
        Reducer::Custom { reduce } => custom::reduce(draft, reduce, context, report)?,
    };
    if let Some(reason) = failure {
        let text = format!("the callback of the reducer `{}` failed; it is skipped: {reason}", reducer.name());
        report.push(Finding::warning(FindingCode::CallbackFailed, text).with_action(Action::Kept));
    }
    Ok(())
}
