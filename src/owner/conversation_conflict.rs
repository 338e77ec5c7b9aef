//! Conflicts: the service's answer names a conversation that the request did not name (R26).

use super::state_owner::StateOwner;
use crate::error::{Error, ErrorCode};

/// What happens if a service keeps the conversation although the session's history is kept here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnConflict {
    /// The run fails before anything of the answer is stored.
    #[default]
    Throw,
    /// A warning; requests contain the history, as before.
    Warn,
    /// The conversation becomes the owner: later requests contain only what is new. The history stays stored.
    Clear,
}

/// What follows from the conversation that an answer names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConversationCheck {
    /// Nothing: the answer is the owner's.
    Consistent,
    /// A warning with this text.
    Warn(String),
    /// The session gets this owner.
    ChangeOwner(StateOwner),
    /// The run fails.
    Fail(Error),
}

/// Compares the conversation that an answer names with the owner. A response id is no conflict.
#[must_use]
pub fn check_conversation(owner: &StateOwner, returned: Option<&str>, on_conflict: OnConflict) -> ConversationCheck {
    match (owner, returned) {
        (StateOwner::Conversation { id }, Some(returned)) if id == returned => ConversationCheck::Consistent,
        (StateOwner::Conversation { id }, returned) => ConversationCheck::Fail(mismatch(id, returned)),
        (StateOwner::BegunConversation { .. }, Some(_)) => ConversationCheck::Consistent,
        (StateOwner::BegunConversation { .. }, None) => ConversationCheck::Fail(not_kept()),
        (_, None) => ConversationCheck::Consistent,
        (StateOwner::Session | StateOwner::Caller | StateOwner::Response { .. }, Some(returned)) => match on_conflict {
            OnConflict::Throw => ConversationCheck::Fail(kept_twice(returned)),
            OnConflict::Warn => ConversationCheck::Warn(format!(
                "the service keeps the conversation \"{returned}\", which the session did not send, and the history is kept here too"
            )),
            OnConflict::Clear => ConversationCheck::ChangeOwner(StateOwner::Conversation { id: returned.to_owned() }),
        },
    }
}

/// Compares the conversation that an answer names with the one that its request continued.
#[must_use]
pub fn check_continued(asked: &str, returned: Option<&str>) -> Option<Error> {
    (returned != Some(asked)).then(|| mismatch(asked, returned))
}

fn not_kept() -> Error {
    let message = "the answer names no conversation, so the service did not keep it; use a service that begins conversations, or \
                   `owner: { kind: \"session\" }`";
    conflict(message.to_owned(), None)
}

fn mismatch(id: &str, returned: Option<&str>) -> Error {
    let message = match returned {
        Some(returned) => {
            format!(
                "the request belongs to the conversation \"{id}\", and the answer to \"{returned}\"; nothing of it is stored"
            )
        }
        None => format!(
            "the answer does not name the conversation \"{id}\", so the service did not keep it; use a service that has conversations, or \
             `owner: {{ kind: \"session\" }}`"
        ),
    };
    conflict(message, returned)
}

fn kept_twice(returned: &str) -> Error {
    let message = format!(
        "the service keeps the conversation \"{returned}\", which the session did not send, and the history is kept here too; pass \
         `owner: {{ kind: \"conversation\", conversationId }}`, or `onConflict: \"warn\"` or \"clear\""
    );
    conflict(message, Some(returned))
}

fn conflict(message: String, returned: Option<&str>) -> Error {
    Error::new(ErrorCode::ConversationConflict, message).with(|details| {
        details.text_or_null("conversationId", returned);
    })
}
