//! What a service keeps of conversations.

use crate::error::{Error, ErrorCode};
use crate::json::{Json, JsonRef};
use crate::message::Part;
use crate::owner::StateOwner;
use crate::provider::stream::WireError;

/// The conversations and responses that a service keeps, and how requests name them.
pub(crate) struct ServiceState {
    /// The member of a body that holds the id of a conversation; `None` if the service has none that are named.
    pub conversation: Option<&'static str>,
    pub chain: ChainForm,
    /// The header that requests need, a list, and the value in it.
    pub header: Option<(&'static str, &'static str)>,
    /// The parameter that requests need to be kept, and its value; `None` if the service keeps each request.
    pub parameter: Option<(&'static str, &'static str)>,
    /// Returns what an error response, by its status, code and sentence, says of what the service keeps. `None` if it
    /// says nothing of that.
    pub refusal: fn(u16, &str, &str) -> Option<StateRefusal>,
    /// Returns true if an answer with this finish reason is a link of its chain, which the next request continues.
    pub continues_after: fn(&str) -> bool,
    /// True if a chain should not be continued after an answer that the service refused.
    pub ends_when_refused: bool,
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
    /// Its value in a request that begins a chain; `None` if such a request does not have the member.
    pub begun: Option<&'static str>,
    /// The members that the service keeps of the request that began the chain: instructions and tools. A request that
    /// continues it has none of them.
    pub kept_members: &'static [&'static str],
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
    /// Another request holds the conversation, or continues the same response.
    Locked,
    /// The service no longer has the response that the request continues.
    ResponseMissing,
    /// The service does not continue the response, although it has it.
    NotContinued,
    /// Another request has continued the response, and only one can.
    ResponseContinued,
    /// What must stay the same in a chain differs from what the request has.
    HeadChanged,
    /// The service does not keep the conversation of a request like this one.
    Unsupported,
}

impl StateRefusal {
    /// Returns why the request is sent again with the history, as the beginning of another chain; `None` if that would
    /// be refused, too.
    pub fn restarted(self) -> Option<&'static str> {
        Some(match self {
            Self::ResponseMissing => {
                "the service does not have the response any more that the request continues; the request is sent again with the history"
            }
            Self::NotContinued => {
                "the service refuses to continue the response; the request is sent again with the history, as another chain"
            }
            Self::ResponseContinued => {
                "another request has continued the response, which only one can; the request is sent with the history, as a chain of its own"
            }
            Self::Locked => {
                "another request is still continuing the response, which only one can; the request is sent with the history, as a chain of its own"
            }
            Self::HeadChanged => {
                "the service keeps other instructions, tools or parameters with the chain; the request is sent with the history, as another chain"
            }
            Self::Unsupported => return None,
        })
    }

    /// Returns the error of a request that was refused so, and does not begin the chain again: it says what to do.
    pub fn explain(self, error: Error, owner: &StateOwner) -> Error {
        let is_lost = owner.fails_if_lost() && self.ends_chain();
        let advice = if is_lost && owner.began_here() { self.advice_of_lost() } else { self.advice() };
        let message = format!("{}; {advice}", error.message);
        let error = error.with_message(message);
        if is_lost { error.with_code(ErrorCode::ChainLost) } else { error }
    }

    /// Returns true if the service will not continue the chain with this request, whenever it is sent again.
    fn ends_chain(self) -> bool {
        matches!(self, Self::ResponseMissing | Self::NotContinued | Self::ResponseContinued | Self::HeadChanged)
    }

    /// Returns what to do if the application does not want the chain to begin again.
    fn advice_of_lost(self) -> &'static str {
        match self {
            Self::HeadChanged => {
                "resume the run with the instructions, tools and parameters that the chain began with; or, to send the history as another \
                 chain, open the session with `owner: { kind: \"response\", auto: true }` first"
            }
            _ => {
                "the owner's `onLost` is \"fail\", so the history was not sent again; to send it as another chain, open the session with \
                 `owner: { kind: \"response\", auto: true }` and resume the run"
            }
        }
    }

    /// Returns what to do if the chain cannot begin again.
    fn advice(self) -> &'static str {
        match self {
            Self::Locked => "another request holds the conversation; resume the run when that one has ended",
            Self::ResponseMissing | Self::NotContinued | Self::ResponseContinued => {
                "the session lacks what came before its `previousResponseId`, so it cannot begin the chain again; open it with the id of \
                 another response, or with `owner: { kind: \"session\" }`"
            }
            Self::HeadChanged => {
                "pass the instructions, tools and parameters that the chain began with, or open the session with `owner: { kind: \"session\" }`"
            }
            Self::Unsupported => {
                "the service keeps no conversation of a request like this one; change what it names, or open the session with \
                 `owner: { kind: \"session\" }`"
            }
        }
    }
}

/// Returns the error of a request whose instructions or tools are not those that the service keeps.
pub(crate) fn changed_head(owner: &StateOwner) -> Error {
    let text = "the service keeps the instructions and tools of the request that began the chain, and those of this request are others";
    StateRefusal::HeadChanged.explain(Error::config(text), owner)
}

impl ServiceState {
    /// Returns true if the service keeps instructions and tools with a chain.
    pub fn keeps_head(&self) -> bool {
        !self.chain.kept_members.is_empty()
    }

    /// Returns true for a body that continues a chain.
    fn continues(&self, body: JsonRef<'_>) -> bool {
        body.get(self.chain.member).is_some_and(|value| self.chain.begun != Some(value.as_raw()))
    }

    /// Returns the members that a body must not have: those that the service keeps, if it continues a chain.
    pub fn members_of_chain(&self, body: JsonRef<'_>) -> &'static [&'static str] {
        if self.continues(body) { self.chain.kept_members } else { &[] }
    }

    /// Returns what the refusal of a request says of what the service keeps. What a request does not name is
    /// neither missing nor refused: it may be the model that was not found.
    pub fn refusal_of(&self, body: &[u8], status: u16, error: &WireError) -> Option<StateRefusal> {
        let refusal = (self.refusal)(status, error.code.as_deref().unwrap_or_default(), &error.message)?;
        let text = std::str::from_utf8(body).unwrap_or_default();
        let names_response = || JsonRef::parse(text).is_ok_and(|body| self.continues(body));
        let is_of_response = matches!(refusal, StateRefusal::ResponseMissing | StateRefusal::NotContinued);
        (!is_of_response || names_response()).then_some(refusal)
    }

    /// Returns the members of a body that refer to messages which the provider stores.
    pub fn members(&self) -> impl Iterator<Item = &'static str> {
        [Some(self.chain.member), self.conversation].into_iter().flatten()
    }
}
