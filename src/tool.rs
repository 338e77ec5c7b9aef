//! Tool calls and their results: the records of the audit table. Data only.

use crate::clock::Ms;
use crate::encoding::{TextSource, is_default};
use crate::json::{Json, JsonRef, JsonStr};
use crate::message::{Dialect, WireTemplate};
use minicbor::{Decode, Encode};
use std::borrow::Cow;

/// One call and its result.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
#[cbor(map, context_bound = "TextSource")]
pub struct ToolInvocation {
    /// Its own id, unique over sessions: an idempotency key for the tool.
    #[n(0)]
    pub id: String,
    /// Its place in the audit table, given when it is appended.
    #[cbor(n(1), skip_if = "is_default")]
    pub number: u64,
    /// The key of the log record that holds it, given when it is appended.
    #[cbor(n(2), skip_if = "is_default")]
    pub record: u64,
    /// The assistant message that asked for it.
    #[n(3)]
    pub message_id: String,
    /// The turn of that message.
    #[cbor(n(4), skip_if = "is_default")]
    pub turn: u32,
    /// The call id as the provider gave it; may be empty or used before.
    #[n(5)]
    pub call_id: String,
    /// The id it goes out by, where `call_id` cannot serve: empty, or used by an earlier call (R5).
    #[n(6)]
    pub replay_id: Option<String>,
    /// The tool.
    #[n(7)]
    pub name: String,
    /// What it was asked.
    #[n(8)]
    pub arguments: Arguments,
    /// Which request of the turn asked for it, from 0. Parallel calls share it.
    #[cbor(n(9), skip_if = "is_default")]
    pub round: u32,
    /// Its place in that batch, from 0.
    #[cbor(n(10), skip_if = "is_default")]
    pub place: u32,
    /// How it stands.
    #[n(11)]
    pub status: InvocationStatus,
    /// When the host began.
    #[n(12)]
    pub started_at: Option<Ms>,
    /// When its result was there.
    #[n(13)]
    pub finished_at: Option<Ms>,
    /// When it was stored.
    #[cbor(n(14), skip_if = "is_default")]
    pub stored_at: Ms,
    /// Whether `persist` replaced or withheld something.
    #[cbor(n(15), skip_if = "is_default")]
    pub redacted: bool,
    /// The session's channel at the time.
    #[n(16)]
    pub channel: Option<String>,
    /// The tool's own window for its result, given with the run (R10).
    #[n(17)]
    pub freshness: Option<Window>,
    /// The freshness window of the append that added the call or its result. Overrides the tool's (R10).
    #[n(18)]
    pub append_freshness: Option<Window>,
    /// What came back.
    #[n(19)]
    pub result: Option<ToolResult>,
    /// The members of the wire call, where they are not the dialect's plain ones.
    #[n(20)]
    pub template: Option<WireTemplate>,
}

impl ToolInvocation {
    /// The id that goes out.
    #[must_use]
    pub fn wire_id(&self) -> &str {
        self.replay_id.as_deref().unwrap_or(&self.call_id)
    }

    /// Leaves nothing of it but that it was called (R12): no arguments, no result, no member of the provider's.
    pub fn withhold(&mut self) {
        self.redacted = true;
        self.arguments = Arguments::Text(JsonStr::new(""));
        self.result = None;
        self.template = None;
    }

    /// Whether nothing is stored of it but that it was called: then it is never sent. Arguments that the model left empty are
    /// stored as `{}` where something else of the call is redacted.
    #[must_use]
    pub fn is_withheld(&self) -> bool {
        self.redacted && matches!(&self.arguments, Arguments::Text(text) if text.is_empty())
    }

    /// Whether a result may still be stored: there is none, or only the placeholder of an interrupted call.
    #[must_use]
    pub fn takes_result(&self) -> bool {
        !self.is_withheld() && (self.result.is_none() || self.status == InvocationStatus::Interrupted)
    }

    /// What `since` and `until` of a query are about: finish, else start, else storing.
    #[must_use]
    pub fn at(&self) -> Ms {
        self.finished_at.or(self.started_at).unwrap_or(self.stored_at)
    }
}

/// Arguments as the model wrote them: JSON text inside a string (OpenAI, Mistral), or an object (Anthropic, Gemini).
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
#[cbor(flat, context_bound = "TextSource")]
pub enum Arguments {
    /// A string that holds JSON text, or what the model took for it.
    #[n(0)]
    Text(#[n(0)] JsonStr),
    /// The value itself.
    #[n(1)]
    Value(#[n(0)] Json),
}

impl Arguments {
    /// The JSON text as the model wrote it; not always JSON.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(token) => token.decode(),
            Self::Value(value) => Cow::Borrowed(value.as_str()),
        }
    }

    /// The object they are, `{}` where nothing was written; none where they are no JSON object.
    #[must_use]
    pub fn object(&self) -> Option<Json> {
        let text = self.text();
        if text.trim().is_empty() {
            return Some(Json::trusted("{}".into()));
        }
        JsonRef::parse(&text).ok().filter(|value| value.is_object()).map(JsonRef::to_owned)
    }
}

/// How an invocation stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum InvocationStatus {
    /// No result yet.
    #[n(0)]
    Pending,
    /// Answered.
    #[n(1)]
    Ok,
    /// Answered by a failure.
    #[n(2)]
    Error,
    /// The user said no.
    #[n(3)]
    Rejected,
    /// Cut off: nobody knows whether it ran.
    #[n(4)]
    Interrupted,
    /// The run was cancelled while it ran.
    #[n(5)]
    Aborted,
}

impl InvocationStatus {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Pending, Self::Ok, Self::Error, Self::Rejected, Self::Interrupted, Self::Aborted];

    /// The name in the public types.
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

/// What a tool gave back.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
#[cbor(map, context_bound = "TextSource")]
pub struct ToolResult {
    /// Any JSON value; a string where the tool gave text; an array of blocks where a dialect did.
    #[n(0)]
    pub content: Json,
    /// Whether it is a failure.
    #[cbor(n(1), skip_if = "is_default")]
    pub is_error: bool,
    /// The dialect it came in by `append`; none when a run made it.
    #[n(2)]
    pub dialect: Option<Dialect>,
    /// The members of the wire result, where they are not the dialect's plain ones.
    #[n(3)]
    pub template: Option<WireTemplate>,
}

impl ToolResult {
    /// A failure told in words.
    #[must_use]
    pub fn failure(text: &str) -> Self {
        Self { content: JsonStr::new(text).to_json(), is_error: true, dialect: None, template: None }
    }
}

/// How long a result stays replayable after it finished (R10).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(flat)]
pub enum Window {
    /// For so many milliseconds, inclusive; 0 never.
    #[n(0)]
    Millis(#[n(0)] u64),
    /// Always.
    #[n(1)]
    Always,
}
