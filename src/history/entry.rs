//! What the log holds.

use crate::clock::Ms;
use crate::json::Json;
use crate::message::{Dialect, Message};
use crate::session_head::HeadMark;
use crate::stored::stored;
use crate::tool::{InvocationStatus, ToolInvocation, ToolResult, Window};

/// One append: a turn in mode run, a step in the others.
#[derive(Clone, Debug, PartialEq)]
pub struct LogRecord {
    /// The append's own id: by it a writer knows its append again after a lost reply.
    pub operation: String,
    /// The run that made it.
    pub run: Option<String>,
    /// When.
    pub at: Ms,
    /// The head's counters after it.
    pub mark: HeadMark,
    /// What happened, in order.
    pub entries: Vec<HistoryEntry>,
}
stored!(struct LogRecord { operation, run, at, mark, entries });

/// One thing that happened.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant)] // messages are most of them
pub enum HistoryEntry {
    /// A message.
    Message(Message),
    /// A call that the message before it asked for, with its result if that is known.
    Invocation(ToolInvocation),
    /// The result of a call that an earlier entry holds.
    Result(ResultEntry),
    /// Something that belongs to nothing; kept, never sent.
    SetAside(SetAsideItem),
}
stored!(enum HistoryEntry { 0 => Message(value), 1 => Invocation(value), 2 => Result(value), 3 => SetAside(value) });

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
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct ResultEntry {
    pub invocation: String,
    pub status: InvocationStatus,
    pub started_at: Option<Ms>,
    pub finished_at: Option<Ms>,
    /// The freshness window of the append that added the result.
    pub freshness: Option<Window>,
    pub result: Option<ToolResult>,
}
stored!(struct ResultEntry { invocation, status, started_at, finished_at, freshness, result });

/// An orphan result, a second result of one call, an item that is no message.
#[derive(Clone, Debug, PartialEq)]
pub struct SetAsideItem {
    /// The finding's code.
    pub reason: String,
    /// The dialect it came in.
    pub dialect: Option<Dialect>,
    /// What came.
    pub value: Json,
    /// When.
    pub at: Ms,
}
stored!(struct SetAsideItem { reason, dialect, value, at });
