//! What a service keeps of conversations.

use crate::json::{Json, JsonRef};
use crate::message::Part;

/// The conversations and responses that a service keeps, and how requests name them.
pub(crate) struct ServiceState {
    /// The member of a body that holds the id of a conversation; `None` if the service has none that are named.
    pub conversation: Option<&'static str>,
    pub chain: ChainForm,
    /// Returns what an error response, by its status and code, says of what the service keeps. `None` if it says
    /// nothing of that.
    pub refusal: fn(u16, &str) -> Option<StateRefusal>,
    /// Returns true for a part of an answer that refers to what the provider keeps, and does not contain it.
    pub is_kept: fn(&Part) -> bool,
    /// How the provider shortens its chain of responses, if it does.
    pub compaction: Option<ChainCompaction>,
}

/// How requests continue a response.
pub(crate) struct ChainForm {
    /// The member of a body that names the response which the request continues.
    pub member: &'static str,
    /// Returns its value, from the id of the response.
    pub continued: fn(&str) -> Json,
}

/// How a provider shortens its chain of responses.
pub(crate) struct ChainCompaction {
    /// Returns the body of a request to a model that has the provider shorten its chain up to the second id.
    pub request: fn(Option<&str>, &str) -> Vec<u8>,
    /// Returns the items that stand for a conversation, from the answer to such a request; `None` if it is no such
    /// answer.
    pub items: fn(JsonRef<'_>) -> Option<Vec<Json>>,
}

/// Why a service refused a request, as far as what it keeps is the reason. It processed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StateRefusal {
    /// Another request holds the conversation.
    Locked,
    /// The service no longer has the response that the request continues.
    ResponseMissing,
}

impl ServiceState {
    /// Returns the members of a body that refer to messages which the provider stores.
    pub fn members(&self) -> impl Iterator<Item = &'static str> {
        [Some(self.chain.member), self.conversation].into_iter().flatten()
    }
}
