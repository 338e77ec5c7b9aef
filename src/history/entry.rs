//! What the log holds.

use crate::clock::Ms;
use crate::encoding::{TextSource, is_default};
use crate::json::Json;
use crate::message::{Dialect, Message};
use crate::session_head::HeadMark;
use crate::tool::{InvocationStatus, ToolInvocation, ToolResult, Window};
use minicbor::{Decode, Encode};

/// One append: a turn in mode run, a step in the others.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
#[cbor(map, context_bound = "TextSource")]
pub struct LogRecord {
    /// The append's own id: by it a writer knows its append again after a lost reply.
    #[n(0)]
    pub operation: String,
    /// The run that made it.
    #[n(1)]
    pub run: Option<String>,
    /// When.
    #[cbor(n(2), skip_if = "is_default")]
    pub at: Ms,
    /// The head's counters after it.
    #[n(3)]
    pub mark: HeadMark,
    /// What happened, in order.
    #[cbor(n(4), skip_if = "is_default")]
    pub entries: Vec<HistoryEntry>,
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
#[allow(clippy::large_enum_variant)] // messages are most of them
#[cbor(flat, context_bound = "TextSource")]
pub enum HistoryEntry {
    /// A message.
    #[n(0)]
    Message(#[n(0)] Message),
    /// A call that the message before it asked for, with its result if that is known.
    #[n(1)]
    Invocation(#[n(0)] ToolInvocation),
    /// The result of a call that an earlier entry holds.
    #[n(2)]
    Result(#[n(0)] ResultEntry),
    /// Something that belongs to nothing; kept, never sent.
    #[n(3)]
    SetAside(#[n(0)] SetAsideItem),
}

impl HistoryEntry {
    /// The result that it holds.
    #[must_use]
    pub fn result(&self) -> Option<&ToolResult> {
        match self {
            Self::Invocation(call) => call.result.as_ref(),
            Self::Result(entry) => entry.result.as_ref(),
            Self::Message(_) | Self::SetAside(_) => None,
        }
    }
}

/// A result that came after its call was stored.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
#[allow(missing_docs)]
#[cbor(map, context_bound = "TextSource")]
pub struct ResultEntry {
    #[n(0)]
    pub invocation: String,
    #[n(1)]
    pub status: InvocationStatus,
    #[n(2)]
    pub started_at: Option<Ms>,
    #[n(3)]
    pub finished_at: Option<Ms>,
    /// The freshness window of the append that added the result.
    #[n(4)]
    pub freshness: Option<Window>,
    #[n(5)]
    pub result: Option<ToolResult>,
}

/// An orphan result, a second result of one call, an item that is no message.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
#[cbor(map, context_bound = "TextSource")]
pub struct SetAsideItem {
    /// The finding's code.
    #[n(0)]
    pub reason: String,
    /// The dialect it came in.
    #[n(1)]
    pub dialect: Option<Dialect>,
    /// What came.
    #[n(2)]
    pub value: Json,
    /// When.
    #[cbor(n(3), skip_if = "is_default")]
    pub at: Ms,
}
