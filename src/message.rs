//! Messages: data only. Neutral in what an application reads; the shape a provider gave it stays beside it.

use crate::clock::Ms;
use crate::json::{Json, JsonStr};
use crate::stored::stored;

/// The wire formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Dialect {
    OpenAiChat,
    OpenAiResponses,
    Anthropic,
    Gemini,
    Mistral,
}
stored!(enum Dialect { 0 => OpenAiChat, 1 => OpenAiResponses, 2 => Anthropic, 3 => Gemini, 4 => Mistral });

impl Dialect {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::OpenAiChat, Self::OpenAiResponses, Self::Anthropic, Self::Gemini, Self::Mistral];

    /// The name in the public types.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenAiChat => "openai-chat",
            Self::OpenAiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Mistral => "mistral",
        }
    }

    /// From the name in the public types.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| dialect.as_str() == name)
    }
}

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Role {
    System,
    Developer,
    User,
    Assistant,
}
stored!(enum Role { 0 => System, 1 => Developer, 2 => User, 3 => Assistant });

impl Role {
    /// From the name in the public types.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::System, Self::Developer, Self::User, Self::Assistant].into_iter().find(|role| role.as_str() == name)
    }

    /// The name in the public types.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Developer => "developer",
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// How a message ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageStatus {
    /// Whole.
    Complete,
    /// The user stopped it.
    Stopped,
    /// The provider cut it (length, filter) or the stream ended early.
    Truncated,
    /// The run failed after it.
    Failed,
}
stored!(enum MessageStatus { 0 => Complete, 1 => Stopped, 2 => Truncated, 3 => Failed });

impl MessageStatus {
    /// The name in the public types.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Stopped => "stopped",
            Self::Truncated => "truncated",
            Self::Failed => "failed",
        }
    }
}

/// Where a message came from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// Its kind.
    pub kind: SourceKind,
    /// Which provider of context or history.
    pub id: Option<String>,
}
stored!(struct Source { kind, id });

/// The kinds of source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SourceKind {
    /// The application or the user.
    #[default]
    External,
    /// A provider of context.
    Context,
    /// A provider of history.
    History,
}
stored!(enum SourceKind { 0 => External, 1 => Context, 2 => History });

impl SourceKind {
    /// The name in the public types.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::External => "external",
            Self::Context => "context",
            Self::History => "history",
        }
    }
}

/// Tokens that a call cost. `input` includes the cached ones, whatever the provider says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Usage {
    pub input: u64,
    pub output: u64,
    pub cached_input: Option<u64>,
    pub cache_write: Option<u64>,
    pub reasoning: Option<u64>,
}
stored!(struct Usage { input, output, cached_input, cache_write, reasoning });

impl Usage {
    /// The sum of two calls.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let add = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (None, None) => None,
            (a, b) => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
        };
        Self {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            cached_input: add(self.cached_input, other.cached_input),
            cache_write: add(self.cache_write, other.cache_write),
            reasoning: add(self.reasoning, other.reasoning),
        }
    }
}

/// One message: an input, or one answer of the model. A call is not in it: it is a
/// [`ToolInvocation`](crate::tool::ToolInvocation) of its own, named by a part.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Its id, unique over sessions.
    pub id: String,
    /// Its place in the session, given when it is appended.
    pub seq: u64,
    /// Its turn, from 0: a turn begins with the user's message.
    pub turn: u32,
    /// Who speaks.
    pub role: Role,
    /// In the model's own order.
    pub parts: Vec<Part>,
    /// When it was made.
    pub created_at: Ms,
    /// Where it came from.
    pub source: Source,
    /// The run that made it.
    pub run_id: Option<String>,
    /// How it ended.
    pub status: MessageStatus,
    /// The message it stands after, where that is not the one before it.
    pub parent_id: Option<String>,
    /// The application's own.
    pub metadata: Option<Json>,
    /// What the provider says of an answer.
    pub answer: Option<Box<AnswerFacts>>,
    /// The dialect it came in; its shapes return when that dialect is rendered.
    pub dialect: Option<Dialect>,
    /// The members of the wire message, where they are not the dialect's plain ones.
    pub template: Option<WireTemplate>,
}
stored!(struct Message {
    id, seq, turn, role, parts, created_at, source, run_id, status, parent_id, metadata, answer, dialect, template,
});

impl Message {
    /// A message that is made for one body: it has no id and no place.
    #[must_use]
    pub fn made(role: Role, text: &str) -> Self {
        Self {
            id: String::new(),
            seq: 0,
            turn: 0,
            role,
            parts: vec![Part::from(PartBody::Text(JsonStr::new(text)))],
            created_at: 0,
            source: Source::default(),
            run_id: None,
            status: MessageStatus::Complete,
            parent_id: None,
            metadata: None,
            answer: None,
            dialect: None,
            template: None,
        }
    }
}

/// What a provider says of an answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AnswerFacts {
    /// The model that answered, as it names itself.
    pub model: Option<String>,
    /// What the call cost.
    pub usage: Option<Usage>,
    /// The provider's own reason, as sent.
    pub finish_reason: Option<String>,
    /// From request to last byte, in milliseconds.
    pub duration_ms: Option<u64>,
    /// The provider's id of the response.
    pub response_id: Option<String>,
    /// The container in which the provider ran code for it (Anthropic): the next request of the run names it.
    pub container: Option<String>,
}
stored!(struct AnswerFacts { model, usage, finish_reason, duration_ms, response_id, container });

/// A piece of a message.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// What it is.
    pub body: PartBody,
    /// The members of the wire block, where they are not the dialect's plain ones.
    pub template: Option<WireTemplate>,
}
stored!(struct Part { body, template });

/// What a part is.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum PartBody {
    Text(JsonStr),
    Image(Media),
    File(Media),
    /// An application's own: shown, never sent.
    Data {
        name: String,
        value: Json,
    },
    Reasoning(JsonStr),
    Refusal(JsonStr),
    /// The call is the invocation of that id.
    ToolCall {
        invocation: String,
        round: u32,
        place: u32,
    },
    /// A block of the message's dialect that has no neutral meaning; sent back to that dialect alone.
    Opaque(Json),
}
stored!(enum PartBody {
    0 => Text(value),
    1 => Image(value),
    2 => File(value),
    3 => Data { name, value },
    4 => Reasoning(value),
    5 => Refusal(value),
    6 => ToolCall { invocation, round, place },
    7 => Opaque(value),
});

/// An image or a file: one of `url`, `data` (base64) and `file_id`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Media {
    pub url: Option<JsonStr>,
    pub data: Option<JsonStr>,
    pub file_id: Option<JsonStr>,
    pub media_type: Option<String>,
    pub name: Option<String>,
}
stored!(struct Media { url, data, file_id, media_type, name });

impl Message {
    /// Appends a streamed part. Text or reasoning is appended to the last part if that is of the same kind.
    pub fn append(&mut self, more: &PartBody) {
        match (self.parts.last_mut().map(|part| &mut part.body), more) {
            (Some(PartBody::Text(own)), PartBody::Text(more))
            | (Some(PartBody::Reasoning(own)), PartBody::Reasoning(more)) => own.push(more),
            _ => self.parts.push(more.clone().into()),
        }
    }
}

impl From<PartBody> for Part {
    fn from(body: PartBody) -> Self {
        Self { body, template: None }
    }
}

/// The members of a wire object in their order, with holes where the neutral values go back in. So
/// nothing is stored twice, and what a call says can be renamed, redacted or left out in one place.
#[derive(Clone, Debug, PartialEq)]
pub struct WireTemplate(pub Vec<(JsonStr, TemplateSlot)>);
stored!(struct WireTemplate(Vec<(JsonStr, TemplateSlot)>));

impl WireTemplate {
    /// Of a result that came among others in one wire message: its place, from 0, and how many there were.
    #[must_use]
    pub fn came_among(&self) -> Option<(u32, u32)> {
        match self.0.as_slice() {
            [(first, TemplateSlot::Part(place)), (second, TemplateSlot::Part(all)), ..]
                if first.is_empty() && second.is_empty() =>
            {
                Some((*place, *all))
            }
            _ => None,
        }
    }
}

/// One member's value.
#[derive(Clone, Debug, PartialEq)]
pub enum TemplateSlot {
    /// Kept as it came.
    Raw(Json),
    /// The text of the message's part at that index. In a result, without a key and in front, where it came among others in
    /// one wire message: its place there, and then how many there were. In a message, without a key and behind, how many of its
    /// parts stood before each result.
    Part(u32),
    /// All parts that no other slot names, as the dialect's array of blocks.
    Parts,
    /// As `Parts`, with the results of the calls before it first: they came in one wire message.
    ResultsThenParts,
    /// The dialect's array of calls; the member goes when no call is left.
    Calls,
    /// In a part: its own text, or a medium's address or data.
    Text,
    /// In a call or a result: the call's id.
    Id,
    /// In a call or a result: the tool's name.
    Name,
    /// In a call: the arguments.
    Arguments,
    /// In a result: the content.
    Content,
    /// An object inside.
    Object(WireTemplate),
}
stored!(enum TemplateSlot {
    0 => Raw(value),
    1 => Part(value),
    2 => Parts,
    3 => ResultsThenParts,
    4 => Calls,
    5 => Text,
    6 => Id,
    7 => Name,
    8 => Arguments,
    9 => Content,
    10 => Object(value),
});
