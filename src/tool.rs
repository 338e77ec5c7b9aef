//! Tool calls and their results: data types.

use crate::clock::Ms;
use crate::encoding::{TextSource, encode_fields};
use crate::json::{Json, JsonRef, JsonStr};
use crate::message::{Dialect, WireTemplate};
use minicbor::{Decode, Encode};
use std::borrow::Cow;

/// A tool call and its result.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolInvocation {
    /// The id, unique over all sessions. Tools use it as idempotency key.
    pub id: String,
    /// The number in the audit table, assigned when it is appended.
    pub number: u64,
    /// The key of the log record with the call, assigned when it is appended.
    pub record: u64,
    /// The assistant message with the call.
    pub message_id: String,
    /// The turn of that message.
    pub turn: u32,
    /// The call id as received. It may be empty or used before.
    pub call_id: String,
    /// The id that is sent instead of a `call_id` that is empty or used by an earlier call (R5).
    pub replay_id: Option<String>,
    /// The tool's name.
    pub name: String,
    /// The arguments.
    pub arguments: Arguments,
    /// The round of the turn, from 0: calls of one answer are of one round.
    pub round: u32,
    /// The place in the round, from 0.
    pub place: u32,
    /// The status.
    pub status: InvocationStatus,
    /// When the tool started.
    pub started_at: Option<Ms>,
    /// When the result was there.
    pub finished_at: Option<Ms>,
    /// When it was stored.
    pub stored_at: Ms,
    /// True if `persist` replaced or withheld something before the call ended.
    pub redacted: bool,
    /// The session's channel when the call was stored.
    pub channel: Option<String>,
    /// The tool's own window for its result, given with the run (R10).
    pub freshness: Option<Window>,
    /// The freshness window of the append that added the call or its result. Overrides the tool's (R10).
    pub append_freshness: Option<Window>,
    /// The result.
    pub result: Option<ToolResult>,
    /// The members of the wire call, if they differ from the dialect's standard ones.
    pub template: Option<WireTemplate>,
    /// True if the call was stored before its run ended. Its tool may have run although no start is stored.
    pub stored_during_run: bool,
    /// True if the conversation went on without the result (R75): it is sent in a place of its own, and the call keeps
    /// its place.
    pub is_deferred: bool,
    /// True if its tool has `persist`, which decides what is stored of a result that comes later, too (R12).
    pub has_persist: bool,
    /// True if its tool is asynchronous, so that the run that made the call may go on without the result (R75).
    pub is_async: bool,
    /// True if `persist` replaced or withheld a result that came later. Requests contain what is stored of it, from the
    /// first one on.
    pub has_redacted_result: bool,
}
encode_fields!(struct ToolInvocation {
    0 => id: required,
    1 => number,
    2 => record,
    3 => message_id: required,
    4 => turn,
    5 => call_id: required,
    6 => replay_id,
    7 => name: required,
    8 => arguments: required,
    9 => round,
    10 => place,
    11 => status: required,
    12 => started_at,
    13 => finished_at,
    14 => stored_at,
    15 => redacted,
    16 => channel,
    17 => freshness,
    18 => append_freshness,
    19 => result,
    20 => template,
    21 => stored_during_run,
    22 => is_deferred,
    23 => has_persist,
    24 => is_async,
    25 => has_redacted_result,
});

impl ToolInvocation {
    /// Returns the id that is sent.
    #[must_use]
    pub fn wire_id(&self) -> &str {
        self.replay_id.as_deref().unwrap_or(&self.call_id)
    }

    /// Removes arguments, result and template, so that only the fact of the call is stored (R12).
    pub fn withhold(&mut self) {
        self.redacted = true;
        self.arguments = Arguments::Text(JsonStr::new(""));
        self.result = None;
        self.template = None;
    }

    /// Returns true if `persist` replaced or withheld something of the call or of its result.
    #[must_use]
    pub fn is_redacted(&self) -> bool {
        self.redacted || self.has_redacted_result
    }

    /// Returns true if only the fact of the call is stored. Such a call is never sent. Empty arguments of a call that
    /// is otherwise redacted are stored as `{}`.
    #[must_use]
    pub fn is_withheld(&self) -> bool {
        self.redacted && matches!(&self.arguments, Arguments::Text(text) if text.is_empty())
    }

    /// Returns true if the call was answered, and the result is withheld from the store (R12).
    #[must_use]
    pub fn has_withheld_result(&self) -> bool {
        self.result.is_none()
            && matches!(self.status, InvocationStatus::Ok | InvocationStatus::Error | InvocationStatus::Rejected)
    }

    /// Returns true if a result may still be stored: there is none, or only the placeholder of an interrupted call.
    #[must_use]
    pub fn takes_result(&self) -> bool {
        let has_none = self.result.is_none() && !self.has_withheld_result();
        !self.is_withheld() && (has_none || self.status == InvocationStatus::Interrupted)
    }

    /// Returns true if the conversation went on without the result, which is still to come.
    #[must_use]
    pub fn awaits_result(&self) -> bool {
        self.is_deferred && self.result.is_none() && self.status == InvocationStatus::Pending
    }

    /// Returns true if only the run that made the call takes its result, while that run is under way.
    #[must_use]
    pub fn is_answered_by_its_run(&self) -> bool {
        !self.is_deferred && !self.is_async
    }

    /// Returns the time that `since` and `until` of a query refer to: when it finished, else started, else was stored.
    #[must_use]
    pub fn at(&self) -> Ms {
        self.finished_at.or(self.started_at).unwrap_or(self.stored_at)
    }
}

/// Arguments as the model wrote them: JSON text inside a string (OpenAI, Mistral), or an object (Anthropic, Gemini).
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
#[cbor(flat, context_bound = "TextSource")]
pub enum Arguments {
    /// A string with JSON text, which may be malformed.
    #[n(0)]
    Text(#[n(0)] JsonStr),
    /// The JSON value.
    #[n(1)]
    Value(#[n(0)] Json),
}

impl Arguments {
    /// Returns the text as the model wrote it. It may be malformed JSON.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(token) => token.decode(),
            Self::Value(value) => Cow::Borrowed(value.as_str()),
        }
    }

    /// Returns the arguments as an object; `{}` if they are empty, none if they are not a JSON object.
    #[must_use]
    pub fn object(&self) -> Option<Json> {
        let text = self.text();
        if text.trim().is_empty() {
            return Some(Json::trusted("{}".into()));
        }
        JsonRef::parse(&text).ok().filter(|value| value.is_object()).map(JsonRef::to_owned)
    }
}

/// The status of an invocation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum InvocationStatus {
    /// No result yet.
    #[default]
    #[n(0)]
    Pending,
    /// It has a result.
    #[n(1)]
    Ok,
    /// Its result is an error.
    #[n(2)]
    Error,
    /// A person rejected it, so the tool did not run.
    #[n(3)]
    Rejected,
    /// The run was interrupted; it is not known whether the tool ran.
    #[n(4)]
    Interrupted,
    /// The run was cancelled while the tool ran.
    #[n(5)]
    Aborted,
}

impl InvocationStatus {
    /// Every status.
    pub const ALL: [Self; 6] = [Self::Pending, Self::Ok, Self::Error, Self::Rejected, Self::Interrupted, Self::Aborted];

    /// Returns the name in the public types.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Ok => "ok",
            Self::Error => "error",
            Self::Rejected => "rejected",
            Self::Interrupted => "interrupted",
            Self::Aborted => "aborted",
        }
    }
}

/// The result of a tool call.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolResult {
    /// Any JSON value: a string for text, an array of the dialect's blocks if it was received so.
    pub content: Json,
    /// True if the tool failed.
    pub is_error: bool,
    /// The dialect that it was received in by `append`; none for a result of a run.
    pub dialect: Option<Dialect>,
    /// The members of the wire result, if they differ from the dialect's standard ones.
    pub template: Option<WireTemplate>,
}
encode_fields!(struct ToolResult {
    0 => content: required,
    1 => is_error,
    2 => dialect,
    3 => template,
});

impl ToolResult {
    /// Creates an error result with a text.
    #[must_use]
    pub fn failure(text: &str) -> Self {
        Self { content: JsonStr::new(text).to_json(), is_error: true, dialect: None, template: None }
    }
}

/// How long a result stays replayable after the tool finished (R10).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(flat)]
pub enum Window {
    /// For this number of milliseconds, inclusive; 0 for never.
    #[n(0)]
    Millis(#[n(0)] u64),
    /// Always.
    #[n(1)]
    Always,
}
