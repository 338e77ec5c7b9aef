//! How a provider compacts a conversation itself.

use crate::json::{Json, JsonRef};

/// A provider's own compaction: a request with the conversation is answered by what stands for it.
pub(crate) struct OwnCompaction {
    /// Returns the parameters of the request, from those of an ordinary one.
    pub params: fn(JsonRef<'_>) -> Json,
    /// The members that the endpoint takes; `None` if it takes those of an ordinary request.
    pub members: Option<&'static [&'static str]>,
    /// The header that it needs, and each later request with what it was answered: a list, and the value in it.
    pub header: Option<(&'static str, &'static str)>,
    /// Reads the body of the answer.
    pub read: fn(JsonRef<'_>) -> OwnSummary,
}

/// The answer to a request for a provider's own compaction.
#[derive(Clone, Debug, PartialEq)]
pub enum OwnSummary {
    /// The blocks or items that stand for the conversation.
    Items(Vec<Json>),
    /// The provider could not summarize it, and says so.
    Nothing,
    /// The body is no such answer.
    Unknown,
}
