//! The options of reducers, as in `{ type: "sliding_turns", turns: 3 }`.

use super::option_types::OptionTypes;
use super::values::AtLeastOne;
use super::words::words;
use crate::replay::Reducer;
use serde::Deserialize;

words!(
    /// `systems` of the reducer `message_count`: true for `"first"`.
    FirstSystemOnly: bool { "all" => false, "first" => true }
);

/// An element of `reducers`.
#[derive(Deserialize)]
#[serde(bound = "", rename_all = "snake_case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum ReducerOptions<T: OptionTypes> {
    MessageCount { count: AtLeastOne, keep_tools: Option<bool>, systems: Option<FirstSystemOnly> },
    TokenBudget { tokens: AtLeastOne, count: Option<T::Function> },
    SlidingTurns { turns: AtLeastOne },
    ToolResults { keep_newest_turns: u64, max_bytes: u64 },
    Summarize { target: AtLeastOne, threshold: Option<u64>, summarize: T::Function },
    Custom { reduce: T::Function },
}

fn saturating_usize(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

impl<T: OptionTypes> From<ReducerOptions<T>> for Reducer {
    fn from(options: ReducerOptions<T>) -> Self {
        match options {
            ReducerOptions::MessageCount { count, keep_tools, systems } => Self::MessageCount {
                count: saturating_usize(count.0),
                keep_tools: keep_tools.unwrap_or(true),
                first_system_only: systems.is_some_and(|option| option.0),
            },
            ReducerOptions::TokenBudget { tokens, count } => {
                Self::TokenBudget { tokens: tokens.0, count: count.map(Into::into) }
            }
            ReducerOptions::SlidingTurns { turns } => Self::SlidingTurns { turns: saturating_usize(turns.0) },
            ReducerOptions::ToolResults { keep_newest_turns, max_bytes } => Self::ToolResults {
                keep_newest_turns: saturating_usize(keep_newest_turns),
                max_bytes: u32::try_from(max_bytes).unwrap_or(u32::MAX),
            },
            ReducerOptions::Summarize { target, threshold, summarize } => Self::Summarize {
                target: saturating_usize(target.0),
                threshold: saturating_usize(threshold.unwrap_or(0)),
                summarize: summarize.into(),
            },
            ReducerOptions::Custom { reduce } => Self::Custom { reduce: reduce.into() },
        }
    }
}
