//! The description of a dialect.

use super::body_profile::BodyProfile;
use super::content_profile::ContentProfile;
use super::item_format::ItemFormat;
use super::message_codec::MessageCodec;
use super::model_table::ModelTable;
use super::parameter_codec::ParameterCodec;
use super::paused_turns::{Pause, PausedTurns};
use super::prompt_cache::PromptCache;
use super::provider_compaction::ProviderCompaction;
use super::reasoning_format::{ReasoningDropping, ReasoningFormat};
#[cfg(test)]
use super::recognition::Recognition;
use super::resumable_answers::ResumableAnswers;
use super::rule_set::RuleSet;
use super::service_state::ServiceState;
use super::system_member::SystemMember;
use super::tool_codec::ToolCodec;
use crate::finding::Report;
use crate::json::{Json, JsonRef};
use crate::message::{Dialect, Message, Part, PartBody};
use crate::provider::stream::AnswerReader;

/// Everything about a wire format: data, codecs and functions that every dialect has, and an `Option` for what only
/// some have.
pub(crate) struct DialectSpec {
    /// Names and values of a body's members.
    pub body: BodyProfile,
    /// What messages may contain.
    pub content: &'static ContentProfile,
    pub items: ItemFormat,
    pub messages: &'static dyn MessageCodec,
    pub tools: &'static dyn ToolCodec,
    pub parameters: &'static dyn ParameterCodec,
    pub reasoning: &'static dyn ReasoningFormat,
    pub models: ModelTable,
    pub rules: RuleSet,
    pub prompt_cache: PromptCache,
    /// Returns a reader for one response.
    pub answer_reader: fn() -> Box<dyn AnswerReader>,
    /// Where system messages are that are not in the list.
    pub system: Option<SystemMember>,
    /// Converts a request in the shape of the provider's SDK to the shape of its API; none if it has that shape
    /// already.
    pub sdk_request: Option<fn(JsonRef<'_>) -> Option<Json>>,
    /// How a request lets the service drop reasoning that is bound to another prefix.
    pub reasoning_dropping: Option<ReasoningDropping>,
    /// What the service keeps of conversations.
    pub service_state: Option<ServiceState>,
    /// How the provider compacts a conversation, if it does.
    pub provider_compaction: Option<ProviderCompaction>,
    /// Answers that the provider pauses.
    pub paused_turns: Option<PausedTurns>,
    /// How answers are picked up on which the service works in the background.
    pub resumable_answers: Option<ResumableAnswers>,
    /// How JavaScript recognizes the dialect.
    #[cfg(test)]
    pub recognition: Recognition,
}

impl DialectSpec {
    /// Returns the dialect.
    pub fn dialect(&self) -> Dialect {
        self.items.dialect
    }

    /// Returns true for a message of the dialect that begins with what its provider returned as a compaction.
    pub fn begins_with_compaction(&self, message: &Message) -> bool {
        let compaction = self.provider_compaction.as_ref().filter(|_| message.dialect == Some(self.dialect()));
        compaction.is_some_and(|compaction| compaction.begins(message))
    }

    /// Returns true for a message that has what a provider returned in place of earlier messages, wherever in it.
    pub fn has_compaction(&self, message: &Message) -> bool {
        let compaction = self.provider_compaction.as_ref();
        let is_one = |part: &Part| match &part.body {
            PartBody::Opaque(value) => compaction.is_some_and(|compaction| (compaction.repeats_earlier)(value.view())),
            _ => false,
        };
        message.parts.iter().any(is_one)
    }

    /// Returns true if a system message is encoded outside the list. `is_leading`: only system messages precede it.
    pub fn is_outside_list(&self, message: &Message, is_leading: bool) -> bool {
        self.system.as_ref().is_some_and(|system| (system.holds)(message, is_leading))
    }

    /// Returns the member of the body, beside the list, that holds the system messages which are
    /// [outside](Self::is_outside_list) it; none if there are none. Reports the parts that it cannot hold.
    pub fn system_member(&self, messages: &[&Message], report: &mut Report) -> Option<(&'static str, Json)> {
        let system = self.system.as_ref()?;
        Some((system.name, (system.encode)(messages, report)?))
    }

    /// Returns true if a body, or the parameters of one, let the service drop reasoning whose prefix has changed.
    pub fn is_dropping(&self, body: JsonRef<'_>) -> bool {
        self.reasoning_dropping.as_ref().is_some_and(|dropping| (dropping.is_asked_for)(body))
    }

    /// Returns true for a part of an answer that refers to what the provider keeps, and does not contain it.
    pub fn is_kept_by_service(&self, part: &Part) -> bool {
        self.service_state.as_ref().is_some_and(|service| (service.is_kept)(part))
    }

    /// Returns true if requests begin conversations at the service, which later ones continue at an address of
    /// their own.
    pub fn begins_conversations(&self) -> bool {
        self.service_state.as_ref().is_some_and(|service| service.begun_conversation.is_some())
    }

    /// Returns what the provider expects after an answer with this finish reason. `params` are those of the request.
    pub fn pause_after(&self, finish_reason: &str, params: JsonRef<'_>) -> Option<Pause> {
        self.paused_turns.as_ref().and_then(|paused| (paused.pause_after)(finish_reason, params))
    }
}
