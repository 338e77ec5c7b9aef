//! Messages: data only. Neutral in what an application reads; the shape a provider gave it stays beside it.

use crate::clock::Ms;
use crate::encoding::{TextSource, exact_list, is_default};
use crate::json::{Json, JsonStr};
use minicbor::encode::Write;
use minicbor::{Decode, Decoder, Encode, Encoder, decode, encode};

/// Declares [`Dialect`]: each wire format with its number in stored records, its public name, how its results name their calls, and what
/// members of a message that this crate does not know may hold.
macro_rules! dialects {
    ($($(#[$doc:meta])* $number:literal => $variant:ident = $name:literal, $matching:ident, $members:ident;)*) => {
        /// The wire formats.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Encode, Decode)]
        #[cbor(index_only)]
        pub enum Dialect {
            $($(#[$doc])* #[n($number)] $variant,)*
        }

        impl Dialect {
            /// Every dialect.
            pub const ALL: [Self; [$(Self::$variant),*].len()] = [$(Self::$variant),*];

            /// Returns the name in the public types.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// Returns how a result names the call that it answers.
            #[must_use]
            pub const fn call_matching(self) -> CallMatching {
                match self {
                    $(Self::$variant => CallMatching::$matching,)*
                }
            }

            /// Returns what a message's unknown members may hold.
            #[must_use]
            pub const fn extra_members(self) -> ExtraMembers {
                match self {
                    $(Self::$variant => ExtraMembers::$members,)*
                }
            }
        }
    };
}

/// How a result names the call that it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallMatching {
    /// By the call's id, which every call has.
    ById,
    /// By the call's id if there is one, else by the tool's name and the order: ids are optional.
    ByName,
}

/// What the members of a message may hold that the neutral form has no place for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtraMembers {
    /// Content: an answer may consist of nothing else, such as `"audio":{…}` or `"reasoning_details":[…]`.
    Content,
    /// Details of a message whose content is elsewhere.
    Details,
}

dialects! {
    /// OpenAI Chat Completions and compatible servers.
    0 => OpenAiChat = "openai-chat", ById, Content;
    /// OpenAI Responses.
    1 => OpenAiResponses = "openai-responses", ById, Details;
    /// Anthropic Messages.
    2 => Anthropic = "anthropic", ById, Details;
    /// Google Gemini.
    3 => Gemini = "gemini", ByName, Details;
    /// Mistral's chat completions.
    4 => Mistral = "mistral", ById, Content;
}

impl Dialect {
    /// From the name in the public types.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| dialect.as_str() == name)
    }
}

/// Who speaks.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum MessageStatus {
    /// Whole.
    #[n(0)]
    Complete,
    /// The user stopped it.
    #[n(1)]
    Stopped,
    /// The provider cut it (length, filter) or the stream ended early.
    #[n(2)]
    Truncated,
    /// The run failed after it.
    #[n(3)]
    Failed,
}

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
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct Source {
    /// Its kind.
    #[cbor(n(0), skip_if = "is_default")]
    pub kind: SourceKind,
    /// Which provider of context or history.
    #[n(1)]
    pub id: Option<String>,
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[allow(missing_docs)]
#[cbor(map)]
pub struct Usage {
    #[cbor(n(0), skip_if = "is_default")]
    pub input: u64,
    #[cbor(n(1), skip_if = "is_default")]
    pub output: u64,
    #[n(2)]
    pub cached_input: Option<u64>,
    #[n(3)]
    pub cache_write: Option<u64>,
    #[n(4)]
    pub reasoning: Option<u64>,
}

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
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
#[cbor(map, context_bound = "TextSource")]
pub struct Message {
    /// Its id, unique over sessions.
    #[n(0)]
    pub id: String,
    /// Its place in the session, given when it is appended.
    #[cbor(n(1), skip_if = "is_default")]
    pub seq: u64,
    /// Its turn, from 0: a turn begins with the user's message.
    #[cbor(n(2), skip_if = "is_default")]
    pub turn: u32,
    /// Who speaks.
    #[n(3)]
    pub role: Role,
    /// In the model's own order.
    #[cbor(n(4), skip_if = "is_default", decode_with = "exact_list")]
    pub parts: Vec<Part>,
    /// When it was made.
    #[cbor(n(5), skip_if = "is_default")]
    pub created_at: Ms,
    /// Where it came from.
    #[cbor(n(6), skip_if = "is_default")]
    pub source: Source,
    /// The run that made it.
    #[n(7)]
    pub run_id: Option<String>,
    /// How it ended.
    #[n(8)]
    pub status: MessageStatus,
    /// The message it stands after, where that is not the one before it.
    #[n(9)]
    pub parent_id: Option<String>,
    /// The application's own.
    #[n(10)]
    pub metadata: Option<Json>,
    /// What the provider says of an answer.
    #[n(11)]
    pub answer: Option<Box<AnswerFacts>>,
    /// The dialect it came in; its shapes return when that dialect is rendered.
    #[n(12)]
    pub dialect: Option<Dialect>,
    /// The members of the wire message, where they are not the dialect's plain ones.
    #[n(13)]
    pub template: Option<WireTemplate>,
}

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
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
#[cbor(map)]
pub struct AnswerFacts {
    /// The model that answered, as it names itself.
    #[n(0)]
    pub model: Option<String>,
    /// What the call cost.
    #[n(1)]
    pub usage: Option<Usage>,
    /// The provider's own reason, as sent.
    #[n(2)]
    pub finish_reason: Option<String>,
    /// From request to last byte, in milliseconds.
    #[n(3)]
    pub duration_ms: Option<u64>,
    /// The provider's id of the response.
    #[n(4)]
    pub response_id: Option<String>,
    /// The container in which the provider ran code for it (Anthropic): the next request of the run names it.
    #[n(5)]
    pub container: Option<String>,
}

/// A piece of a message.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
#[cbor(map, context_bound = "TextSource")]
pub struct Part {
    /// What it is.
    #[n(0)]
    pub body: PartBody,
    /// The members of the wire block, where they are not the dialect's plain ones.
    #[n(1)]
    pub template: Option<WireTemplate>,
}

/// What a part is.
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
    /// An application's own: shown, never sent.
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
    /// The call is the invocation of that id.
    #[n(6)]
    ToolCall {
        #[n(0)]
        invocation: String,
        #[n(1)]
        round: u32,
        #[n(2)]
        place: u32,
    },
    /// A block of the message's dialect that has no neutral meaning; sent back to that dialect alone.
    #[n(7)]
    Opaque(#[n(0)] Json),
}

/// An image or a file: one of `url`, `data` (base64) and `file_id`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[allow(missing_docs)]
#[cbor(map, context_bound = "TextSource")]
pub struct Media {
    #[n(0)]
    pub url: Option<JsonStr>,
    #[n(1)]
    pub data: Option<JsonStr>,
    #[n(2)]
    pub file_id: Option<JsonStr>,
    #[n(3)]
    pub media_type: Option<String>,
    #[n(4)]
    pub name: Option<String>,
}

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

impl<Ctx: TextSource> Encode<Ctx> for WireTemplate {
    fn encode<W: Write>(&self, out: &mut Encoder<W>, context: &mut Ctx) -> Result<(), encode::Error<W::Error>> {
        self.0.encode(out, context)
    }
}

/// By hand, since templates may be nested: the depth is counted.
impl<'b, Ctx: TextSource> Decode<'b, Ctx> for WireTemplate {
    fn decode(from: &mut Decoder<'b>, context: &mut Ctx) -> Result<Self, decode::Error> {
        context.enter()?;
        let members = exact_list(from, context)?;
        context.leave();
        Ok(Self(members))
    }
}

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
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
#[cbor(flat, context_bound = "TextSource")]
pub enum TemplateSlot {
    /// Kept as it came.
    #[n(0)]
    Raw(#[n(0)] Json),
    /// The text of the message's part at that index. In a result, without a key and in front, where it came among others in
    /// one wire message: its place there, and then how many there were. In a message, without a key and behind, how many of its
    /// parts stood before each result.
    #[n(1)]
    Part(#[n(0)] u32),
    /// All parts that no other slot names, as the dialect's array of blocks.
    #[n(2)]
    Parts,
    /// As `Parts`, with the results of the calls before it first: they came in one wire message.
    #[n(3)]
    ResultsThenParts,
    /// The dialect's array of calls; the member goes when no call is left.
    #[n(4)]
    Calls,
    /// In a part: its own text, or a medium's address or data.
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
    /// An object inside.
    #[n(10)]
    Object(#[n(0)] WireTemplate),
}
