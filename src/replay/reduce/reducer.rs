//! The reducers that an application can choose, with their settings.

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
    /// Replaces all but the newest `target` messages by a summary, once there are more than `target + threshold` of them.
    Summarize { target: usize, threshold: usize, summarize: Callback },
    /// A function of the application that selects and changes messages.
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
