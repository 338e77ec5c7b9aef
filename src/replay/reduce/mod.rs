//! Reducers make a long history shorter, for one body. They run in the given order; each has its file (R36, R14).
//!
//! None of them touches what is stored, splits a round (its calls and results go together), or takes the user's newest
//! message. One that needs the application stops the pass with a [`PendingQuestion`]; once it is answered the pass runs again from the
//! start, and what was answered is kept, so nothing is borrowed while the application thinks.

mod counts;
mod custom;
mod groups;
mod message_count;
mod pending;
mod sliding_turns;
mod summarize;
mod token_budget;
mod tool_results;

pub use pending::{
    Callback, PendingQuestion, QuestionKind, ReducerCache, ReducerQuestion, ReducerReplies, ReducerReply,
};
pub use tool_results::shortened;

use super::draft::{Draft, DraftMessage};
use super::policy::Policy;
use crate::finding::{Action, Finding, FindingCode, Report};
use crate::history::History;

/// The end of a shortened result.
pub const CUT_NOTE: &str = "\n[shortened]";

/// A reducer and its settings.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Reducer {
    /// The newest messages stay; a round counts as one, a system message as none.
    MessageCount { count: usize, keep_tools: bool, first_system_only: bool },
    /// Results shrink, then the oldest turns go, until so many tokens are left.
    TokenBudget { tokens: u64, count: Option<Callback> },
    /// The newest turns stay.
    SlidingTurns { turns: usize },
    /// Results of older turns are cut to so many bytes.
    ToolResults { keep_newest_turns: usize, max_bytes: u32 },
    /// What is older than the newest `target` messages is summed up, once it is more than `threshold` over that.
    Summarize { target: usize, threshold: usize, summarize: Callback },
    /// The application's own.
    Custom { reduce: Callback },
}

impl Reducer {
    /// Returns the name in the TypeScript types.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::MessageCount { .. } => "message_count",
            Self::TokenBudget { .. } => "token_budget",
            Self::SlidingTurns { .. } => "sliding_turns",
            Self::ToolResults { .. } => "tool_results",
            Self::Summarize { .. } => "summarize",
            Self::Custom { .. } => "custom",
        }
    }
}

/// What a reducer works with besides the draft.
struct ReducerContext<'h, 'p> {
    /// The reducer's index in the pipeline.
    place: usize,
    history: &'h History,
    policy: &'p Policy,
    memory: &'h ReducerCache,
    progress: &'h ReducerReplies,
}

/// Runs the policy's reducers over a draft.
///
/// # Errors
/// What the application must be asked first.
pub(super) fn reduce<'h>(
    draft: &mut Draft<'h>,
    history: &'h History,
    policy: &Policy,
    memory: &'h ReducerCache,
    progress: &'h ReducerReplies,
    report: &mut Report,
) -> Result<(), Box<PendingQuestion<'h>>> {
    for (place, reducer) in policy.reducers().iter().enumerate() {
        let context = ReducerContext { place, history, policy, memory, progress };
        let failed = match reducer {
            Reducer::MessageCount { count, keep_tools, first_system_only } => {
                message_count::reduce(draft, *count, *keep_tools, *first_system_only, report);
                None
            }
            Reducer::TokenBudget { tokens, count } => {
                token_budget::reduce(draft, *tokens, count.as_ref(), &context, report)?
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
                summarize::reduce(draft, *target, *threshold, summarize, &context, report)?
            }
            Reducer::Custom { reduce } => custom::reduce(draft, reduce, &context, report)?,
        };
        if let Some(why) = failed {
            let text = format!("the callback of the reducer `{}` failed; it is skipped: {why}", reducer.name());
            report.push(Finding::warning(FindingCode::CallbackFailed, text).with_action(Action::Kept));
        }
    }
    Ok(())
}

/// The finding of a message that is not shown.
fn dropped(item: &DraftMessage<'_>, why: &'static str) -> Finding {
    Finding::info(FindingCode::Reduced, why).of_message(&item.message.id).with_action(Action::Dropped)
}
