//! Which reasoning a body contains.

use crate::history::History;

/// Which reasoning a body contains.
#[derive(Clone, Copy)]
pub enum ReasoningChoice<'c> {
    /// All, since the body is not what is sent.
    All,
    /// What the provider accepts.
    Accepted(ReasoningContext<'c>),
    /// All, until the body was changed: by a filter, or since something was refused before. Then [`BodyLedger::settle`]
    /// leaves out what the provider does not accept.
    AfterChanges(ReasoningContext<'c>),
}

impl<'c> ReasoningChoice<'c> {
    /// Returns what is known of the draft besides its messages.
    pub fn context(self) -> ReasoningContext<'c> {
        match self {
            Self::All => ReasoningContext::default(),
            Self::Accepted(context) | Self::AfterChanges(context) => context,
        }
    }
}

/// What is known of a draft besides its messages.
#[derive(Clone, Copy, Default)]
pub struct ReasoningContext<'c> {
    /// The stored messages.
    pub history: Option<&'c History>,
    /// True if a service keeps what precedes the messages of the draft.
    pub is_kept_by_service: bool,
    /// The agent that the request is of, if the run was handed off to one.
    pub agent: Option<&'c str>,
}
