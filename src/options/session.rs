//! The options of a session.

use super::compaction::CompactionOptions;
use super::option_types::OptionTypes;
use super::replay::ReplayOptions;
use super::values::MillisOption;
use super::words::words;
use crate::error::{Error, ErrorCode, Result};
use crate::owner::{OnConflict, OnLost, StateOwner};
use crate::run::{OnStop, Persistence};
use crate::session::SessionSettings;
use serde::Deserialize;

words!(
    /// `onStop`.
    OnStopOption: OnStop { "discard" => OnStop::Discard, "keep" => OnStop::Keep }
);
words!(
    /// `persistence`.
    PersistenceOption: Persistence {
        "run" => Persistence::Run,
        "call" => Persistence::Call,
        "result" => Persistence::Result,
    }
);
words!(
    /// `owner.kind`.
    OwnerKindOption: OwnerKind {
        "session" => OwnerKind::Session,
        "caller" => OwnerKind::Caller,
        "conversation" => OwnerKind::Conversation,
        "response" => OwnerKind::Response,
    }
);
words!(
    /// `onConflict`.
    OnConflictOption: OnConflict { "throw" => OnConflict::Throw, "warn" => OnConflict::Warn, "clear" => OnConflict::Clear }
);

words!(
    /// `owner.onLost`.
    OnLostOption: OnLost { "restart" => OnLost::Restart, "fail" => OnLost::Fail }
);

/// The options of `Rethread.session`.
#[derive(Deserialize)]
#[serde(bound = "", deny_unknown_fields, rename_all = "camelCase")]
pub struct SessionOptions<T: OptionTypes> {
    pub channel: Option<String>,
    pub title: Option<String>,
    pub owner: Option<OwnerOptions>,
    pub on_conflict: Option<OnConflictOption>,
    pub persistence: Option<PersistenceOption>,
    pub trim_trailing_results: Option<bool>,
    pub on_stop: Option<OnStopOption>,
    pub flush_ms: Option<MillisOption<0, 60_000>>,
    pub replay: Option<ReplayOptions<T>>,
    pub compaction: Option<CompactionOptions<T>>,
    /// Read by the facade.
    #[serde(rename = "providers")]
    _providers: Option<T::Value>,
    pub metadata: Option<T::Value>,
}

// Derived, it would ask for a default of the types of `T`.
impl<T: OptionTypes> Default for SessionOptions<T> {
    fn default() -> Self {
        Self {
            channel: None,
            title: None,
            owner: None,
            on_conflict: None,
            persistence: None,
            trim_trailing_results: None,
            on_stop: None,
            flush_ms: None,
            replay: None,
            compaction: None,
            _providers: None,
            metadata: None,
        }
    }
}

impl<T: OptionTypes> SessionOptions<T> {
    /// Converts the options.
    ///
    /// # Errors
    /// Those of `owner` and `metadata`.
    pub fn into_settings(self) -> Result<SessionSettings> {
        let metadata = self.metadata.map(|metadata| T::value_to_json(&metadata)).transpose()?;
        Ok(SessionSettings {
            title: self.title,
            channel: self.channel,
            metadata,
            owner: self.owner.map(OwnerOptions::into_owner).transpose()?,
            on_conflict: self.on_conflict.map(|option| option.0),
            persistence: self.persistence.map(|option| option.0),
            trim_trailing_results: self.trim_trailing_results,
            flush_ms: self.flush_ms.map(|option| option.0),
            replay: self.replay.map(Into::into),
            compaction: self.compaction.map(Into::into),
            on_stop: self.on_stop.map(|option| option.0),
        })
    }
}

/// The kinds of owners.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum OwnerKind {
    Session,
    Caller,
    Conversation,
    Response,
}

/// `owner`. JavaScript may pass members of several kinds, of which the conversion takes those of one.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct OwnerOptions {
    kind: OwnerKindOption,
    conversation_id: Option<String>,
    previous_response_id: Option<String>,
    auto: Option<bool>,
    on_lost: Option<OnLostOption>,
}

impl OwnerOptions {
    /// Converts the option.
    ///
    /// # Errors
    /// `state_owner_conflict` for a member of another kind, `config_invalid` for a missing one and for an `onLost` that
    /// the owner cannot have.
    pub fn into_owner(self) -> Result<StateOwner> {
        let kind = self.kind.0;
        let begins = self.auto == Some(true);
        let is_chain = self.previous_response_id.is_some() || begins && kind == OwnerKind::Response;
        let is_conversation = self.conversation_id.is_some() || begins && kind == OwnerKind::Conversation;
        let is_of_service = matches!(kind, OwnerKind::Conversation | OwnerKind::Response);
        if is_conversation && kind != OwnerKind::Conversation
            || is_chain && kind != OwnerKind::Response
            || begins && !is_of_service
            || begins && self.conversation_id.is_some()
        {
            return Err(Error::new(
                ErrorCode::StateOwnerConflict,
                "`owner` names a second owner: `conversationId`, or `auto` without it, belongs to the kind \"conversation\", `previousResponseId` and `auto` to \"response\"; pass those of one kind",
            ));
        }
        let on_lost = self.on_lost.map(|option| option.0);
        if on_lost.is_some() && (!is_of_service || self.conversation_id.is_some()) {
            return Err(Error::config(
                "`owner.onLost` belongs to the kind \"response\", and to a conversation that begins with the session (`auto: true`)",
            ));
        }
        if on_lost == Some(OnLost::Restart) && self.previous_response_id.is_some() {
            return Err(Error::config(
                "`owner.onLost` is \"restart\", and the session lacks what came before the `previousResponseId`; pass \"fail\", or \
                 `auto: true` without it",
            ));
        }
        let is_empty = |id: &Option<String>| id.as_deref() == Some("");
        if is_empty(&self.conversation_id) || is_empty(&self.previous_response_id) {
            return Err(Error::config("an id in `owner` is empty; pass the one that the service gave"));
        }
        match kind {
            OwnerKind::Session => Ok(StateOwner::Session),
            OwnerKind::Caller => Ok(StateOwner::Caller),
            OwnerKind::Conversation => match self.conversation_id {
                Some(id) => Ok(StateOwner::Conversation { id }),
                None if begins => Ok(StateOwner::BegunConversation { on_lost: on_lost.unwrap_or_default() }),
                None => Err(Error::config(
                    "`owner.conversationId` is missing; pass the id that the service gave the conversation, or `auto: true` to begin one",
                )),
            },
            OwnerKind::Response if is_chain => {
                Ok(StateOwner::Response { previous: self.previous_response_id, on_lost: on_lost.unwrap_or_default() })
            }
            OwnerKind::Response => {
                Err(Error::config("`owner` has neither `previousResponseId` nor `auto: true`; pass one of them"))
            }
        }
    }
}
