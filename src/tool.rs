//! Tool calls and their results: the records of the audit table. Data only.

use crate::clock::Ms;
use crate::json::{Json, JsonRef, JsonStr};
use crate::message::{Dialect, WireTemplate};
use crate::stored::stored;
use std::borrow::Cow;

/// One call and its result.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolInvocation {
    /// Its own id, unique over sessions: an idempotency key for the tool.
    pub id: String,
    /// Its place in the audit table, given when it is appended.
    pub number: u64,
    /// The key of the log record that holds it, given when it is appended.
    pub record: u64,
    /// The assistant message that asked for it.
    pub message_id: String,
    /// The turn of that message.
    pub turn: u32,
    /// The call id as the provider gave it; may be empty or used before.
    pub call_id: String,
    /// The id it goes out by, where `call_id` cannot serve: empty, or used by an earlier call (R5).
    pub replay_id: Option<String>,
    /// The tool.
    pub name: String,
    /// What it was asked.
    pub arguments: Arguments,
    /// Which request of the turn asked for it, from 0. Parallel calls share it.
    pub round: u32,
    /// Its place in that batch, from 0.
    pub place: u32,
    /// How it stands.
    pub status: InvocationStatus,
    /// When the host began.
    pub started_at: Option<Ms>,
    /// When its result was there.
    pub finished_at: Option<Ms>,
    /// When it was stored.
    pub stored_at: Ms,
    /// Whether `persist` replaced or withheld something.
    pub redacted: bool,
    /// The session's channel at the time.
    pub channel: Option<String>,
    /// The tool's own window for its result, given with the run (R10).
    pub freshness: Option<Window>,
    /// The freshness window of the append that added the call or its result. Overrides the tool's (R10).
    pub append_freshness: Option<Window>,
    /// What came back.
    pub result: Option<ToolResult>,
    /// The members of the wire call, where they are not the dialect's plain ones.
    pub template: Option<WireTemplate>,
}
stored!(struct ToolInvocation {
    id, number, record, message_id, turn, call_id, replay_id, name, arguments, round, place, status, started_at,
    finished_at, stored_at, redacted, channel, freshness, append_freshness, result, template,
});

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
#[derive(Clone, Debug, PartialEq)]
pub enum Arguments {
    /// A string that holds JSON text, or what the model took for it.
    Text(JsonStr),
    /// The value itself.
    Value(Json),
}
stored!(enum Arguments { 0 => Text(value), 1 => Value(value) });

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvocationStatus {
    /// No result yet.
    Pending,
    /// Answered.
    Ok,
    /// Answered by a failure.
    Error,
    /// The user said no.
    Rejected,
    /// Cut off: nobody knows whether it ran.
    Interrupted,
    /// The run was cancelled while it ran.
    Aborted,
}
stored!(enum InvocationStatus {
    0 => Pending,
    1 => Ok,
    2 => Error,
    3 => Rejected,
    4 => Interrupted,
    5 => Aborted,
});

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
#[derive(Clone, Debug, PartialEq)]
pub struct ToolResult {
    /// Any JSON value; a string where the tool gave text; an array of blocks where a dialect did.
    pub content: Json,
    /// Whether it is a failure.
    pub is_error: bool,
    /// The dialect it came in by `append`; none when a run made it.
    pub dialect: Option<Dialect>,
    /// The members of the wire result, where they are not the dialect's plain ones.
    pub template: Option<WireTemplate>,
}
stored!(struct ToolResult { content, is_error, dialect, template });

impl ToolResult {
    /// A failure told in words.
    #[must_use]
    pub fn failure(text: &str) -> Self {
        Self { content: JsonStr::new(text).to_json(), is_error: true, dialect: None, template: None }
    }
}

/// How long a result stays replayable after it finished (R10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// For so many milliseconds, inclusive; 0 never.
    Millis(u64),
    /// Always.
    Always,
}
stored!(enum Window { 0 => Millis(value), 1 => Always });
