//! [`StateOwner`]: who owns the state of a conversation.

use crate::error::{Error, ErrorCode, Result};
use crate::history::ActiveSummary;
use crate::json::ObjectWriter;
use crate::message::{Message, ServiceMark};
use crate::session_head::{CONVERSATION, StoredOwner};

/// Who owns the state of a conversation. There is exactly one owner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StateOwner {
    /// The session: a request contains the history that is stored here.
    #[default]
    Session,
    /// The application: the input of each run contains the whole conversation.
    Caller,
    /// A conversation of the service; requests contain what is new.
    Conversation {
        /// The id that the service gave it.
        id: String,
    },
    /// A conversation of the service that begins with a request of the session; its answer has the id, and later
    /// requests name the conversation of the newest answer.
    BegunConversation {
        /// What happens if the service does not continue it.
        on_lost: OnLost,
    },
    /// A chain of the service's responses; requests name the newest one and contain what is new.
    Response {
        /// The response after which the chain begins; `None` for a chain that begins with the first request.
        previous: Option<String>,
        /// What happens if the service does not continue the chain.
        on_lost: OnLost,
    },
}

/// What happens if a service does not continue what a session began there, a chain of responses or a conversation: it
/// lost it, another request continued the response, or the service keeps other instructions, tools or parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnLost {
    /// What began here begins again: the request is sent with the history.
    #[default]
    Restart,
    /// The run fails with `chain_lost`, and nothing is sent again.
    Fail,
}

/// The numbers of the kinds in [`StoredOwner`].
const SESSION: u32 = 0;
const CALLER: u32 = 1;
const RESPONSE: u32 = 3;

impl StateOwner {
    /// Returns true if a service keeps the conversation: a request that is repeated may add to it twice.
    #[must_use]
    pub fn is_stateful(&self) -> bool {
        matches!(self, Self::Conversation { .. } | Self::BegunConversation { .. } | Self::Response { .. })
    }

    /// Returns true if the service adds the input of each request to one conversation, whether or not its answer
    /// arrives. A chain of responses is different: a response that did not arrive is no part of it.
    #[must_use]
    pub fn is_conversation(&self) -> bool {
        matches!(self, Self::Conversation { .. } | Self::BegunConversation { .. })
    }

    /// Returns true for a chain of responses or a conversation that began with a request of the session, which has all
    /// of it.
    #[must_use]
    pub fn began_here(&self) -> bool {
        matches!(self, Self::BegunConversation { .. } | Self::Response { previous: None, .. })
    }

    /// Creates a chain of responses that begins again if it is lost.
    #[must_use]
    pub fn response(previous: Option<String>) -> Self {
        Self::Response { previous, on_lost: OnLost::default() }
    }

    /// Returns true for an owner that gets the history again if the service does not continue what it has.
    #[must_use]
    pub fn restarts_if_lost(&self) -> bool {
        self.began_here() && !self.fails_if_lost()
    }

    /// Returns true for an owner whose loss is a failure with a code of its own.
    #[must_use]
    pub fn fails_if_lost(&self) -> bool {
        matches!(self, Self::Response { on_lost: OnLost::Fail, .. } | Self::BegunConversation { on_lost: OnLost::Fail })
    }

    /// Returns the value of `kind` in the public types.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Caller => "caller",
            Self::Conversation { .. } | Self::BegunConversation { .. } => "conversation",
            Self::Response { .. } => "response",
        }
    }

    /// Returns the id of the conversation that the application gave.
    #[must_use]
    pub fn conversation_id(&self) -> Option<&str> {
        match self {
            Self::Conversation { id } => Some(id),
            Self::Session | Self::Caller | Self::BegunConversation { .. } | Self::Response { .. } => None,
        }
    }

    /// Returns the mark of an answer that acknowledges everything, except the `seq` up to which history was sent.
    ///
    /// Returns `None` if the service keeps nothing, or if the answer has no id, so that no later request can name it
    /// (R25).
    #[must_use]
    pub fn mark(&self, response_id: Option<&str>) -> Option<ServiceMark> {
        match self {
            Self::Session | Self::Caller => None,
            Self::Conversation { id } => Some(ServiceMark { conversation: Some(id.clone()), ..ServiceMark::default() }),
            // Its service names the conversation of an answer, and no response.
            Self::BegunConversation { .. } => {
                response_id.map(|id| ServiceMark { conversation: Some(id.to_owned()), ..ServiceMark::default() })
            }
            Self::Response { previous, .. } => {
                response_id.map(|_| ServiceMark { chain_start: previous.clone(), ..ServiceMark::default() })
            }
        }
    }

    /// Returns true if an answer with this mark is part of the owner's conversation.
    #[must_use]
    pub fn owns(&self, mark: &ServiceMark, response_id: Option<&str>) -> bool {
        match self {
            Self::Session | Self::Caller => false,
            Self::Conversation { id } => mark.conversation.as_ref() == Some(id),
            Self::BegunConversation { .. } => mark.is_of_begun_conversation(),
            Self::Response { previous, .. } => {
                mark.conversation.is_none()
                    && response_id.is_some()
                    && (mark.chain_start == *previous || previous.as_deref() == response_id)
            }
        }
    }

    /// Returns the mark of an answer that is part of the owner's conversation.
    #[must_use]
    pub fn mark_of<'m>(&self, message: &'m Message) -> Option<&'m ServiceMark> {
        let answer = message.answer.as_ref()?;
        answer.service_mark.as_deref().filter(|mark| self.owns(mark, answer.response_id.as_deref()))
    }

    /// Returns the mark of a part of an answer that is not finished, which only the next request of its run continues.
    #[must_use]
    pub fn mark_of_part<'m>(&self, message: &'m Message) -> Option<&'m ServiceMark> {
        let answer = message.answer.as_ref()?;
        let mark = answer.continuation.as_ref()?.mark.as_deref();
        mark.filter(|mark| self.owns(mark, answer.response_id.as_deref()))
    }

    /// Returns true if the next request begins a chain of responses, or a conversation, with this compaction, although
    /// the service has one already: the compaction contains everything in it.
    #[must_use]
    pub fn replaces_chain(&self, compaction: &ActiveSummary) -> bool {
        match self {
            Self::BegunConversation { .. } => true,
            Self::Response { previous, .. } => previous.is_none() || compaction.stored.chain_start == *previous,
            _ => false,
        }
    }

    /// Returns the owner that is in effect if `requested` is passed for a session whose stored owner is `self`.
    ///
    /// # Errors `state_owner_conflict` for another conversation: what the session sent to the first one would be
    /// missing in the second.
    pub fn change_to(&self, requested: &Self) -> Result<()> {
        match (self, requested) {
            (Self::Conversation { id: stored }, Self::Conversation { id }) if stored != id => Err(Error::new(
                ErrorCode::StateOwnerConflict,
                format!(
                    "the session belongs to the conversation \"{stored}\", and `owner.conversationId` is \"{id}\"; pass the first id, or open \
                     the session with `owner: {{ kind: \"session\" }}` before it gets another conversation"
                ),
            )),
            _ => Ok(()),
        }
    }

    /// Returns the form in which a session's head contains the owner. `unknown` are the fields of the stored owner that
    /// a newer build wrote.
    #[must_use]
    pub fn to_stored(&self) -> StoredOwner {
        let (kind, id) = match self {
            Self::Session => (SESSION, None),
            Self::Caller => (CALLER, None),
            Self::Conversation { id } => (CONVERSATION, Some(id.clone())),
            Self::BegunConversation { .. } => (CONVERSATION, None),
            Self::Response { previous, .. } => (RESPONSE, previous.clone()),
        };
        let (auto, fails_if_lost) = (self.began_here(), self.fails_if_lost());
        StoredOwner { kind, id, auto, fails_if_lost, ..StoredOwner::default() }
    }

    /// Reads the owner in a session's head.
    ///
    /// # Errors `state_owner_conflict` if it names a second owner, which this library never writes;
    /// `unsupported_version` for an owner of a newer build.
    pub fn from_stored(stored: &StoredOwner) -> Result<Self> {
        let on_lost = if stored.fails_if_lost { OnLost::Fail } else { OnLost::Restart };
        match (stored.kind, &stored.id) {
            (SESSION | CALLER, Some(_)) => Err(second_owner()),
            (SESSION | CALLER, _) | (CONVERSATION, Some(_)) if stored.auto => Err(second_owner()),
            (SESSION, None) => Ok(Self::Session),
            (CALLER, None) => Ok(Self::Caller),
            (CONVERSATION, Some(id)) => Ok(Self::Conversation { id: id.clone() }),
            (CONVERSATION, None) if stored.auto => Ok(Self::BegunConversation { on_lost }),
            (RESPONSE, previous) => Ok(Self::Response { previous: previous.clone(), on_lost }),
            _ => Err(Error::new(
                ErrorCode::UnsupportedVersion,
                "a newer version of this library gave the session an owner that this version does not know; update it, or open the session \
                 with another `owner`",
            )),
        }
    }

    /// Writes the members of the public option `owner`.
    pub fn write(&self, out: &mut ObjectWriter<'_>) {
        out.text("kind", self.kind());
        match self {
            Self::Session | Self::Caller => {}
            Self::Conversation { id } => {
                out.text("conversationId", id);
            }
            Self::Response { previous: Some(previous), .. } => {
                out.text("previousResponseId", previous);
            }
            Self::BegunConversation { .. } | Self::Response { previous: None, .. } => {
                out.bool("auto", true);
            }
        }
        if self.fails_if_lost() {
            out.text("onLost", "fail");
        }
    }
}

fn second_owner() -> Error {
    let message = "the stored owner of the session names a second one; open the session with the option `owner`";
    Error::new(ErrorCode::StateOwnerConflict, message)
}
