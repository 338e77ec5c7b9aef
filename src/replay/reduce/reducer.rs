//! The reducers that an application can choose, with their settings.

use crate::id::hash_on;
use std::any::Any;
use std::rc::Rc;

/// A function of the application. The core knows its number; only the binding can call it.
#[derive(Clone)]
pub struct Callback {
    /// The same function has the same number.
    pub id: u32,
    /// What the binding calls.
    pub hook: Rc<dyn Any>,
}

impl std::fmt::Debug for Callback {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_tuple("Callback").field(&self.id).finish()
    }
}

impl PartialEq for Callback {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

/// A reducer and its settings.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Reducer {
    /// Keeps the newest messages. A round counts as one message; system messages are kept and not counted.
    MessageCount { count: usize, keep_tools: bool, first_system_only: bool },
    /// Shortens results, then drops the oldest turns, until the messages fit into so many tokens.
    TokenBudget { tokens: u64, count: Option<Callback> },
    /// Keeps the newest turns.
    SlidingTurns { turns: usize },
    /// Shortens the results of older turns to so many bytes.
    ToolResults { keep_newest_turns: usize, max_bytes: u32 },
    /// Replaces all but the newest `target` messages by a summary, once there are more than `target + threshold` of
    /// them.
    Summarize { target: usize, threshold: usize, summarize: Callback },
    /// A function of the application that selects and changes messages.
    Custom { reduce: Callback },
}

impl Reducer {
    /// Continues a hash with the kind and the settings. Of functions only that of `custom` counts: the others select no
    /// messages.
    pub(super) fn hash_on(&self, hash: u64) -> u64 {
        let settings = match self {
            Self::MessageCount { count, keep_tools, first_system_only } => {
                [*count as u64, u64::from(*keep_tools), u64::from(*first_system_only)]
            }
            Self::TokenBudget { tokens, .. } => [*tokens, 0, 0],
            Self::SlidingTurns { turns } => [*turns as u64, 0, 0],
            Self::ToolResults { keep_newest_turns, max_bytes } => [*keep_newest_turns as u64, u64::from(*max_bytes), 0],
            Self::Summarize { target, threshold, .. } => [*target as u64, *threshold as u64, 0],
            Self::Custom { reduce } => [u64::from(reduce.id), 0, 0],
        };
        settings.iter().fold(hash_on(hash, self.name().as_bytes()), |sum, number| hash_on(sum, &number.to_le_bytes()))
    }

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
