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
    /// How a request continues a paused answer by the token that it ended with, in place of the answer. `None` if the
    /// conversation with the answer is enough.
    pub tokens: Option<AnswerTokens>,
}

/// The tokens by which a provider continues the answers that it paused.
pub(crate) struct AnswerTokens {
    /// Returns the body of the request that continues an answer; `None` if the provider does not continue it so.
    pub continued: fn(&ContinuedAnswer<'_>) -> Option<Json>,
    /// Returns true for an error response, by its status and sentence, that refuses the token: no later request
    /// continues the answer by it.
    pub is_refused: fn(u16, &str) -> bool,
}

/// An answer that is continued by its token.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ContinuedAnswer<'a> {
    /// The body of the request that got the answer, or the same as it is composed now.
    pub body: JsonRef<'a>,
    pub token: &'a str,
    /// The answer's id.
    pub response: Option<&'a str>,
}
