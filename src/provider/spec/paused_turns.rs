//! Answers that a provider pauses.

use crate::json::{Json, JsonRef};

/// What a provider expects after an answer that it paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// The conversation with this answer: the provider continues it.
    Resumes,
    /// Nothing: the request asked for an answer that ends here, such as one with a limited number of server tool calls.
    Ends,
}

/// How a provider pauses answers, and what the next request needs.
pub(crate) struct PausedTurns {
    /// Returns what the provider expects after an answer with this finish reason. The parameters are those of the
    /// request.
    pub pause_after: fn(&str, JsonRef<'_>) -> Option<Pause>,
    /// Returns the parameters of a request that continues in the container of an earlier answer; `None` if they need no
    /// change.
    pub params_in_container: fn(JsonRef<'_>, &str) -> Option<Json>,
}
