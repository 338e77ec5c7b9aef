//! Messages: data types. What an application reads is neutral; the remaining members of the wire message are kept in a
//! template.

mod answer_maker;
mod dialect;
mod phase;

use crate::clock::Ms;
use crate::encoding::{TextSource, encode_fields, exact_list};
use crate::json::{Json, JsonStr};
pub use answer_maker::{AnswerMaker, HostGroup, host_name};
pub(crate) use dialect::dialects;
pub use dialect::{CallMatching, Dialect, ResultPlaces};
use minicbor::encode::Write;
use minicbor::{Decode, Decoder, Encode, Encoder, decode, encode};
pub use phase::Phase;

/// The role of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[allow(missing_docs)]
#[cbor(index_only)]
pub enum Role {
    #[n(0)]
    System,
    #[n(1)]
    Developer,
    #[n(2)]
    User,
    #[n(3)]
    Assistant,
}

impl Role {
    /// Returns the value of a name in the public types.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::System, Self::Developer, Self::User, Self::Assistant].into_iter().find(|role| role.as_str() == name)
    }

    /// Returns the name in the public types.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum MessageStatus {
    /// It is complete.
    #[n(0)]
    Complete,
    /// The user stopped it.
    #[n(1)]
    Stopped,
    /// The provider ended it early (length, filter), or the stream broke off.
    #[n(2)]
    Truncated,
    /// The run failed after it.
    #[n(3)]
    Failed,
}

impl MessageStatus {
    /// Returns the name in the public types.
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
    /// The kind of source.
    pub kind: SourceKind,
    /// The id of the provider of context or history.
    pub id: Option<String>,
}
encode_fields!(struct Source {
    0 => kind,
    1 => id,
});

impl Source {
    /// Returns true if a provider of context or history is the source. In a live turn a provider has added such a
    /// message to the request alone; in history it is one that was appended with this source, and is sent as any other.
    #[must_use]
    pub fn is_of_provider(&self) -> bool {
        self.kind != SourceKind::External
    }
}

/// The kinds of source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum SourceKind {
    /// The application or the user.
    #[default]
    #[n(0)]
    External,
    /// A provider of context.
    #[n(1)]
    Context,
    /// A provider of history.
    #[n(2)]
    History,
}

impl SourceKind {
    /// Returns the name in the public types.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::External => "external",
            Self::Context => "context",
            Self::History => "history",
        }
    }
}

/// Tokens that a model call used. `input` includes the cached ones, also for providers that report them apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Usage {
    pub input: u64,
    pub output: u64,
    pub cached_input: Option<u64>,
    pub cache_write: Option<u64>,
    pub reasoning: Option<u64>,
}
encode_fields!(struct Usage {
    0 => input,
    1 => output,
    2 => cached_input,
    3 => cache_write,
    4 => reasoning,
});

impl Usage {
    /// Returns the sum of two calls.
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

/// One message: an input, or one answer of the model. It does not contain its calls: a part refers to a
/// [`ToolInvocation`](crate::tool::ToolInvocation) by id.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// The id, unique over all sessions.
    pub id: String,
    /// The position in the session, assigned when it is appended.
    pub seq: u64,
    /// The turn, from 0. A turn begins with the user's message.
    pub turn: u32,
    /// The role of a message.
    pub role: Role,
    /// The content, in the order of the wire message.
    pub parts: Vec<Part>,
    /// When it was created.
    pub created_at: Ms,
    /// Where it came from.
    pub source: Source,
    /// The run that produced it.
    pub run_id: Option<String>,
    /// How it ended.
    pub status: MessageStatus,
    /// The message that it follows, if that is not the previous one.
    pub parent_id: Option<String>,
    /// Metadata of the application.
    pub metadata: Option<Json>,
    /// Metadata of an answer, from the provider.
    pub answer: Option<Box<AnswerMeta>>,
    /// The dialect that it was received in. Templates are used when that dialect is rendered.
    pub dialect: Option<Dialect>,
    /// The members of the wire message, if they differ from the dialect's standard ones.
    pub template: Option<WireTemplate>,
    /// The ids of the invocations whose late results are sent before this message (R75).
    pub late_results: Vec<String>,
}
encode_fields!(struct Message {
    0 => id: required,
    1 => seq,
    2 => turn,
    3 => role: required,
    4 => parts: list,
    5 => created_at,
    6 => source,
    7 => run_id,
    8 => status: required,
    9 => parent_id,
    10 => metadata,
    11 => answer,
    12 => dialect,
    13 => template,
    14 => late_results: list,
});

impl Message {
    /// Returns true for a system or developer message.
    #[must_use]
    pub fn is_system(&self) -> bool {
        matches!(self.role, Role::System | Role::Developer)
    }

    /// Returns true for a part of an answer that its provider continues by a token.
    #[must_use]
    pub fn is_unfinished(&self) -> bool {
        self.answer.as_ref().is_some_and(|answer| answer.continuation.is_some())
    }

    /// Creates a message for one body. It has no id and no position.
    #[must_use]
    pub fn from_text(role: Role, text: &str) -> Self {
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
            late_results: Vec::new(),
        }
    }
}

/// Metadata of an answer, from the provider.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AnswerMeta {
    /// The model, as named in the response.
    pub model: Option<String>,
    /// Tokens that the call used.
    pub usage: Option<Usage>,
    /// The provider's reason, as sent, such as `end_turn` or `length`.
    pub finish_reason: Option<String>,
    /// Time from request to last byte, in milliseconds.
    pub duration_ms: Option<u64>,
    /// The provider's id of the response.
    pub response_id: Option<String>,
    /// The container in which the provider ran code (Anthropic). The next request of the run names it.
    pub container: Option<String>,
    /// What the service that gave the answer has of the conversation, if it keeps it.
    pub service_mark: Option<Box<ServiceMark>>,
    /// The agent that gave the answer, if the run was handed off to one.
    pub agent: Option<String>,
    /// Who made the answer; the dialect is the message's. `None` for an answer of an older build.
    pub maker: Option<AnswerMaker>,
    /// What the request contained before an answer with reasoning, if the dialect's providers may bind reasoning to it.
    pub prefix: Option<PrefixMark>,
    /// If the answer begins with what stands for all before it: the hash of the results that its request knew
    /// ([`History::late_results_hash`](crate::history::History::late_results_hash)).
    pub known_results: u64,
    /// How the provider continues the answer, if this is a part of one that is not finished (Gemini's interactions).
    pub continuation: Option<Box<Continuation>>,
}
encode_fields!(struct AnswerMeta {
    0 => model,
    1 => usage,
    2 => finish_reason,
    3 => duration_ms,
    4 => response_id,
    5 => container,
    6 => service_mark,
    7 => agent,
    8 => maker,
    9 => prefix,
    10 => known_results,
    11 => continuation,
});

/// How a provider continues an answer. Only the next request of its run does that, while the part ends the turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Continuation {
    /// The token that the request has.
    pub token: String,
    /// What the service has of the conversation, if it keeps it. It is no `service_mark` of the answer: any other
    /// request would continue that, also one of an older build.
    pub mark: Option<Box<ServiceMark>>,
}
encode_fields!(struct Continuation {
    0 => token,
    1 => mark,
});

/// What a request contained before its answer, as hashes (R70). A provider that binds reasoning to what precedes it
/// accepts the reasoning of the answer only where these are the same again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrefixMark {
    /// The hash of the instructions.
    pub instructions: u64,
    /// The hash of the tools.
    pub tools: u64,
    /// The hash of the items in the list of messages.
    pub items: u64,
    /// True if a filter of the application changed the body.
    pub is_filtered: bool,
    /// True if history providers added messages.
    pub has_provided: bool,
}
encode_fields!(struct PrefixMark {
    0 => instructions,
    1 => tools,
    2 => items,
    3 => is_filtered,
    4 => has_provided,
});

/// What a service that keeps the conversation has acknowledged with an answer: the answer, the messages of its run
/// before it, and the stored messages before `until` with the results of their calls; except what is `pending`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceMark {
    /// The conversation; `None` for a chain of responses.
    pub conversation: Option<String>,
    /// The response that the application gave as the beginning of the chain.
    pub chain_start: Option<String>,
    /// The `seq` after the last stored message when the request was built.
    pub until: u64,
    /// Ids of the messages that the filter of the application held back; they are sent with the next request.
    pub pending: Vec<String>,
    /// What the service keeps of the request that began the chain besides its messages, if it keeps that.
    pub kept_head: Option<KeptHead>,
    /// True if the service should not continue the chain after the answer: the next request begins another one.
    pub ends_chain: bool,
}
encode_fields!(struct ServiceMark {
    0 => conversation,
    1 => chain_start,
    2 => until,
    3 => pending: list,
    4 => kept_head,
    5 => ends_chain,
});

impl ServiceMark {
    /// Returns true for the mark of a conversation that began with a request of the session. Of one that the
    /// application gave, the session does not know how it began.
    #[must_use]
    pub fn is_of_begun_conversation(&self) -> bool {
        self.conversation.is_some() && self.kept_head.is_some()
    }
}

/// The instructions, tools and parameters that a service keeps with a chain of responses or a conversation, as
/// hashes. Later requests do not contain them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeptHead {
    /// The hash of the instructions.
    pub instructions: u64,
    /// The hash of the tools.
    pub tools: u64,
    /// The hash of the parameters that the service keeps; 0 if it keeps none.
    pub parameters: u64,
}
encode_fields!(struct KeptHead {
    0 => instructions,
    1 => tools,
    2 => parameters,
});

/// A part of a message.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
#[cbor(map, context_bound = "TextSource")]
pub struct Part {
    /// The content.
    #[n(0)]
    pub body: PartBody,
    /// The members of the wire block, if they differ from the dialect's standard ones.
    #[n(1)]
    pub template: Option<WireTemplate>,
    /// What a text or a refusal is within its answer.
    #[n(2)]
    pub phase: Option<Phase>,
}

/// The content of a part.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
#[allow(missing_docs)]
#[cbor(flat, context_bound = "TextSource")]
pub enum PartBody {
    #[n(0)]
    Text(#[n(0)] JsonStr),
    #[n(1)]
    Image(#[n(0)] Media),
    #[n(2)]
    File(#[n(0)] Media),
    /// Data of the application. It is shown and never sent.
    #[n(3)]
    Data {
        #[n(0)]
        name: String,
        #[n(1)]
        value: Json,
    },
    #[n(4)]
    Reasoning(#[n(0)] JsonStr),
    #[n(5)]
    Refusal(#[n(0)] JsonStr),
    /// A call: the id of its invocation, its round in the turn, and its place in the round.
    #[n(6)]
    ToolCall {
        #[n(0)]
        invocation: String,
        #[n(1)]
        round: u32,
        #[n(2)]
        place: u32,
    },
    /// A block of the message's dialect without a neutral meaning. It is sent to that dialect only.
    #[n(7)]
    Opaque(#[n(0)] Json),
}

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
encode_fields!(struct Media {
    0 => url,
    1 => data,
    2 => file_id,
    3 => media_type,
    4 => name,
});

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
        Self { body, template: None, phase: None }
    }
}

/// The members of a wire object in their order, with slots for the neutral values. So nothing is stored twice, and a
/// call can be renamed, redacted or dropped in one place.
///
/// The template of a text part `{"type":"text","text":"Hi","cache_control":{…}}` has the members `type` and
/// `cache_control` as [`Raw`](TemplateSlot::Raw) values and `text` as [`Text`](TemplateSlot::Text).
#[derive(Clone, Debug, PartialEq)]
pub struct WireTemplate(pub Vec<(JsonStr, TemplateSlot)>);

impl<Ctx: TextSource> Encode<Ctx> for WireTemplate {
    fn encode<W: Write>(&self, out: &mut Encoder<W>, context: &mut Ctx) -> Result<(), encode::Error<W::Error>> {
        self.0.encode(out, context)
    }
}

/// Not derived, since templates may be nested: the depth is counted.
impl<'b, Ctx: TextSource> Decode<'b, Ctx> for WireTemplate {
    fn decode(from: &mut Decoder<'b>, context: &mut Ctx) -> Result<Self, decode::Error> {
        context.enter()?;
        let members = exact_list(from, context)?;
        context.leave();
        Ok(Self(members))
    }
}

impl WireTemplate {
    /// For a result that was received with others in one wire message, returns its index and their number.
    #[must_use]
    pub fn place_among_results(&self) -> Option<(u32, u32)> {
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

/// The value of a member.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
#[cbor(flat, context_bound = "TextSource")]
pub enum TemplateSlot {
    /// A value that is sent as it was received.
    #[n(0)]
    Raw(#[n(0)] Json),
    /// The text of the message's part at that index.
    ///
    /// Members with an empty key have another meaning. Two at the start of a result's template are the result's index
    /// in its wire message and the number of results there. Those at the end of a message's template are the numbers of
    /// parts before each result.
    #[n(1)]
    Part(#[n(0)] u32),
    /// All parts that no other slot names, as the dialect's array of blocks.
    #[n(2)]
    Parts,
    /// Like `Parts`, after the results of the calls before the message: they were received in one wire message.
    #[n(3)]
    ResultsThenParts,
    /// The dialect's array of calls. The member is dropped if no call is left.
    #[n(4)]
    Calls,
    /// In a part: its text, or the URL or data of its media.
    #[n(5)]
    Text,
    /// In a call or a result: the call's id.
    #[n(6)]
    Id,
    /// In a call or a result: the tool's name.
    #[n(7)]
    Name,
    /// In a call: the arguments.
    #[n(8)]
    Arguments,
    /// In a result: the content.
    #[n(9)]
    Content,
    /// A nested object.
    #[n(10)]
    Object(#[n(0)] WireTemplate),
}
