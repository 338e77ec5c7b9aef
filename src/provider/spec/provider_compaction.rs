//! How a provider compacts a conversation itself.

use crate::json::{Json, JsonRef};
use crate::message::{Message, PartBody};

/// A provider's own compaction: a request with the conversation is answered by what stands for it.
pub(crate) struct ProviderCompaction {
    /// Returns the parameters of the request, from those of an ordinary one.
    pub params: fn(JsonRef<'_>) -> Json,
    /// The members that the endpoint takes; `None` if it takes those of an ordinary request.
    pub members: Option<&'static [&'static str]>,
    /// The header that it needs, and each later request with what it was answered: a list, and the value in it.
    pub header: Option<(&'static str, &'static str)>,
    /// True if what stands for the conversation must begin a request's list of messages.
    pub begins_list: bool,
    /// Returns true for a block or an item that stands for all before it, wherever it came: in an answer, too.
    pub stands_for_earlier: fn(JsonRef<'_>) -> bool,
    /// Returns true for a block or an item that has the content of earlier messages, whether or not requests may begin
    /// with it.
    pub repeats_earlier: fn(JsonRef<'_>) -> bool,
    /// Reads the body of the answer.
    pub read: fn(JsonRef<'_>) -> ProviderSummary,
}

impl ProviderCompaction {
    /// Returns true for an answer that begins with what stands for all before it.
    pub(super) fn begins(&self, message: &Message) -> bool {
        match message.parts.first().map(|part| &part.body) {
            Some(PartBody::Opaque(value)) => (self.stands_for_earlier)(value.view()),
            _ => false,
        }
    }
}

/// The answer to a request for a provider's own compaction.
#[derive(Clone, Debug, PartialEq)]
pub enum ProviderSummary {
    /// The blocks or items that stand for the conversation.
    Items(Vec<Json>),
    /// The provider could not summarize it, and says so.
    Nothing,
    /// The body is no such answer.
    Unknown,
}
