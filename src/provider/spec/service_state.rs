//! What a service keeps of conversations.

use crate::json::{Json, JsonRef};
use crate::message::Part;

/// The conversations and responses that a service keeps, and how requests name them.
pub(crate) struct ServiceState {
    /// The member of a body that holds the id of a conversation.
    pub conversation: &'static str,
    /// The member that holds the id of the response that the request continues.
    pub previous_response: &'static str,
    /// Returns true if an error response, by its status and code, says that another request holds the conversation, and
    /// that this one was not processed.
    pub is_conversation_locked: fn(u16, &str) -> bool,
    /// Returns true if an error response says that the provider no longer has the response that the request continues.
    pub is_previous_response_missing: fn(u16, &str) -> bool,
    /// Returns true for a part of an answer that refers to what the provider keeps, and does not contain it.
    pub is_kept: fn(&Part) -> bool,
    /// Returns the body of a request to a model that has the provider shorten its chain of responses up to the second
    /// id.
    pub compaction_request: fn(Option<&str>, &str) -> Vec<u8>,
    /// Returns the items that stand for a conversation, from the answer to a `compaction_request`; `None` if it is no
    /// such answer.
    pub compacted_items: fn(JsonRef<'_>) -> Option<Vec<Json>>,
}

impl ServiceState {
    /// Returns the members of a body that refer to messages which the provider stores.
    pub fn members(&self) -> [&'static str; 2] {
        [self.previous_response, self.conversation]
    }
}
