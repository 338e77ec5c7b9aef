//! What messages and calls that were stored before have beside their content (R57): how they ended, who made them,
//! their times, and the data of their dialect. An append takes it from what `messages` and a view return.

use super::dialect_data::{CallData, DataText, MessageData};
use super::fold::History;
use super::join::Origin;
use super::new_result::read_time;
use crate::clock::Ms;
use crate::error::{Error, Result};
use crate::id::IdMap;
use crate::json::JsonRef;
use crate::message::{AnswerMeta, Message, MessageStatus, Source, SourceKind, Usage};
use crate::tool::{InvocationStatus, ToolInvocation};
use std::borrow::Cow;

/// What a stored message has beside its content.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EarlierFields {
    status: Option<MessageStatus>,
    source: Option<Source>,
    run_id: Option<String>,
    answer: AnswerMeta,
    pub(super) data: MessageData,
}

impl EarlierFields {
    /// Reads the members of a message.
    ///
    /// # Errors
    /// `invalid_input`, which names the member.
    pub(super) fn read(message: JsonRef<'_>) -> Result<Self> {
        let text = |key: &str| message.text(key).map(Cow::into_owned);
        let data = DataText::of(message)?;
        Ok(Self {
            status: message.find("status").map(read_status).transpose()?,
            source: message.find("source").map(read_source).transpose()?,
            run_id: text("runId").filter(|run| !run.is_empty()),
            answer: AnswerMeta {
                model: text("model"),
                usage: message.find("usage").map(read_usage),
                finish_reason: text("finishReason"),
                duration_ms: message.find("durationMs").and_then(JsonRef::as_u64),
                agent: text("agent"),
                ..AnswerMeta::default()
            },
            data: data.map(|data| data.read_message()).transpose()?.unwrap_or_default(),
        })
    }

    /// Returns the fields of one of several answers that the message becomes: the data of the dialect is that of the
    /// whole, and how the whole ended and what it took is said once, by the last answer.
    pub(super) fn of_a_part(&self, is_last: bool) -> Self {
        let data = MessageData { dialect: self.data.dialect, ..MessageData::default() };
        let part = Self { data, ..self.clone() };
        if is_last {
            return part;
        }
        let answer = AnswerMeta { usage: None, duration_ms: None, finish_reason: None, ..part.answer };
        Self { status: None, answer, ..part }
    }

    /// Sets the fields of a new message. A source that the append names takes precedence.
    pub(super) fn apply(&self, message: &mut Message, origin: &Origin, late_results: &LateResultIds<'_>) {
        message.status = self.status.unwrap_or(message.status);
        if let Some(source) = self.source.as_ref().filter(|_| origin.source == Source::default()) {
            message.source = source.clone();
        }
        if origin.run_id.is_none() {
            message.run_id.clone_from(&self.run_id);
        }
        message.answer = self.data.complete_answer(self.answer.clone());
        message.late_results.extend(self.data.late_results.iter().filter_map(|id| late_results.current(id)));
    }
}

/// The ids of the invocations whose results may have come late: those of this append by the ids that they had, and
/// those of the history.
pub(super) struct LateResultIds<'h> {
    pub history: &'h History,
    pub appended: IdMap<String>,
}

impl LateResultIds<'_> {
    fn current(&self, id: &str) -> Option<String> {
        let appended = self.appended.get(id).cloned();
        appended.or_else(|| self.history.invocation(id).map(|call| call.id.clone()))
    }
}

/// What a stored call has beside its content.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EarlierCall {
    /// The id of the invocation.
    pub(super) id: Option<String>,
    status: Option<InvocationStatus>,
    started_at: Option<Ms>,
    redacted: bool,
    pub(super) data: CallData,
}

impl EarlierCall {
    /// Reads the members of a call, whose invocation has the id `id`; `part` has the data of the dialect.
    ///
    /// # Errors
    /// `invalid_input`, which names the member.
    pub(super) fn read(id: Option<String>, call: JsonRef<'_>, part: JsonRef<'_>) -> Result<Self> {
        let status = call.find("status").map(|value| {
            let status = InvocationStatus::ALL.into_iter().find(|status| value.is_text(status.as_str()));
            status.ok_or_else(|| Error::invalid("`status` of a call is not one of `ToolInvocation.status`"))
        });
        let data = DataText::of(part)?;
        Ok(Self {
            id: id.filter(|id| !id.is_empty()),
            status: status.transpose()?,
            started_at: read_time(call, "startedAt")?,
            redacted: call.find("redacted").and_then(JsonRef::as_bool).unwrap_or(false),
            data: data.map(|data| data.read_call()).transpose()?.unwrap_or_default(),
        })
    }

    /// Sets the fields of a new call. A freshness window that the append sets takes precedence.
    pub(super) fn apply(&self, call: &mut ToolInvocation, origin: &Origin) {
        let data = &self.data;
        call.started_at = self.started_at;
        // `redacted` says both; the data says which.
        call.redacted = self.redacted && (data.is_redacted || !data.has_redacted_result);
        call.freshness = data.freshness;
        call.append_freshness = origin.freshness.or(data.append_freshness);
        call.stored_during_run = data.stored_during_run;
        (call.has_persist, call.is_async) = (data.has_persist, data.is_async);
        call.has_redacted_result = data.has_redacted_result;
        call.stored_at = data.stored_at.unwrap_or(call.stored_at);
        call.status = match self.status {
            // Without a result, and with none that is withheld, the call is open.
            Some(InvocationStatus::Ok | InvocationStatus::Error) if !self.redacted => call.status,
            Some(status) => status,
            None => call.status,
        };
    }

    /// Returns the status of the call with its result.
    pub(super) fn status_with_result(&self, is_error: bool) -> InvocationStatus {
        match self.status {
            Some(InvocationStatus::Pending) | None if is_error => InvocationStatus::Error,
            Some(InvocationStatus::Pending) | None => InvocationStatus::Ok,
            Some(status) => status,
        }
    }
}

/// Reads how a message ended. An answer that a view shows as streaming has not ended.
fn read_status(value: JsonRef<'_>) -> Result<MessageStatus> {
    let known = [MessageStatus::Complete, MessageStatus::Stopped, MessageStatus::Truncated, MessageStatus::Failed];
    match known.into_iter().find(|status| value.is_text(status.as_str())) {
        Some(status) => Ok(status),
        None if value.is_text("streaming") => Ok(MessageStatus::Truncated),
        None => Err(Error::invalid("`status` is not one of `Message.status`; leave it out for a complete message")),
    }
}

fn read_source(value: JsonRef<'_>) -> Result<Source> {
    let kinds = [SourceKind::External, SourceKind::Context, SourceKind::History];
    let kind = kinds.into_iter().find(|kind| value.has_text("type", kind.as_str()));
    let kind = kind.ok_or_else(|| Error::invalid("`source.type` is \"external\", \"context\" or \"history\""))?;
    Ok(Source { kind, id: value.text("id").map(Cow::into_owned) })
}

fn read_usage(value: JsonRef<'_>) -> Usage {
    let tokens = |key: &str| value.find(key).and_then(JsonRef::as_u64);
    Usage {
        input: tokens("inputTokens").unwrap_or(0),
        output: tokens("outputTokens").unwrap_or(0),
        cached_input: tokens("cachedInputTokens"),
        cache_write: tokens("cacheWriteInputTokens"),
        reasoning: tokens("reasoningTokens"),
    }
}
