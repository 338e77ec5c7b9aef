//! The entries of the session log.

use crate::clock::Ms;
use crate::encoding::{TextSource, exact_list, is_default};
use crate::json::Json;
use crate::message::{Dialect, Message};
use crate::session_head::HeadMark;
use crate::tool::{InvocationStatus, ToolInvocation, ToolResult, Window};
use minicbor::{Decode, Encode};

/// The record of one append: in persistence mode `run`, a whole turn.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
#[cbor(map, context_bound = "TextSource")]
pub struct LogRecord {
    /// The id of the append. A writer whose reply was lost recognizes its append by it.
    #[n(0)]
    pub operation: String,
    /// The run that appended it, if any.
    #[n(1)]
    pub run: Option<String>,
    /// The time of the append.
    #[cbor(n(2), skip_if = "is_default")]
    pub at: Ms,
    /// The head's counters after the append.
    #[n(3)]
    pub mark: HeadMark,
    /// The entries, in order.
    #[cbor(n(4), skip_if = "is_default", decode_with = "exact_list")]
    pub entries: Vec<HistoryEntry>,
}

/// One entry of the log.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
#[allow(clippy::large_enum_variant)] // messages are most of them
#[cbor(flat, context_bound = "TextSource")]
pub enum HistoryEntry {
    /// A message.
    #[n(0)]
    Message(#[n(0)] Message),
    /// A call of the preceding message, with its result if that is known.
    #[n(1)]
    Invocation(#[n(0)] ToolInvocation),
    /// The result of a call in an earlier entry.
    #[n(2)]
    Result(#[n(0)] ResultEntry),
    /// An item without a place in the chat: stored and reported, but never sent.
    #[n(3)]
    SetAside(#[n(0)] SetAsideItem),
}

impl HistoryEntry {
    /// Returns the result in the entry.
    #[must_use]
    pub fn result(&self) -> Option<&ToolResult> {
        match self {
            Self::Invocation(call) => call.result.as_ref(),
            Self::Result(entry) => entry.result.as_ref(),
            Self::Message(_) | Self::SetAside(_) => None,
        }
    }
}

/// A result that was stored after its call.
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

/// An item that was set aside: an orphan result, a second result of one call, or an item that is no message.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
#[cbor(map, context_bound = "TextSource")]
pub struct SetAsideItem {
    /// The code of the finding that reported it.
    #[n(0)]
    pub reason: String,
    /// The dialect of `value`.
    #[n(1)]
    pub dialect: Option<Dialect>,
    /// The item, unchanged.
    #[n(2)]
    pub value: Json,
    /// The time of the append.
    #[cbor(n(3), skip_if = "is_default")]
    pub at: Ms,
}
