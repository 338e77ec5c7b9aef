//! The entries of the session log.

use super::annotation::Annotation;
use super::stored_summary::StoredSummary;
use crate::clock::Ms;
use crate::encoding::{TextSource, encode_fields};
use crate::finding::FindingCode;
use crate::json::Json;
use crate::message::{Dialect, Message};
use crate::session_head::HeadMark;
use crate::tool::{InvocationStatus, ToolInvocation, ToolResult, Window};
use minicbor::{Decode, Encode};

/// The record of one append: in persistence mode `run`, a whole turn.
#[derive(Clone, Debug, PartialEq)]
pub struct LogRecord {
    /// The id of the append. A writer whose reply was lost recognizes its append by it.
    pub operation: String,
    /// The run that appended it, if any.
    pub run: Option<String>,
    /// The time of the append.
    pub at: Ms,
    /// The head's counters after the append.
    pub mark: HeadMark,
    /// The entries, in order.
    pub entries: Vec<HistoryEntry>,
    /// True if the run continues: its journal stays.
    pub run_continues: bool,
    /// Summaries of what is in history before the record. A build that does not know them replays what they cover.
    pub summaries: Vec<StoredSummary>,
    /// Annotations of messages, also of those before the record. A build that does not know them shows the metadata
    /// that the messages were stored with.
    pub annotations: Vec<Annotation>,
    /// In an addition, the number of the branch that has the messages.
    pub added_to: u64,
}
encode_fields!(struct LogRecord {
    0 => operation: required,
    1 => run,
    2 => at,
    3 => mark: required,
    4 => entries: list,
    5 => run_continues,
    6 => summaries: list,
    7 => annotations: list,
    8 => added_to,
});

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
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub struct ResultEntry {
    pub invocation: String,
    pub status: InvocationStatus,
    pub started_at: Option<Ms>,
    pub finished_at: Option<Ms>,
    /// The freshness window of the append that added the result.
    pub freshness: Option<Window>,
    pub result: Option<ToolResult>,
    /// True if the conversation goes on without the result (R75): the entry has none.
    pub is_deferral: bool,
    /// True if it replaces the call's stored result. A build that does not know this keeps that one.
    pub is_replacement: bool,
    /// True if `persist` replaced or withheld the result.
    pub is_redacted: bool,
    /// The unfinished run whose journal alone had the call when the result was stored (R75).
    pub run: Option<String>,
}
encode_fields!(struct ResultEntry {
    0 => invocation: required,
    1 => status: required,
    2 => started_at,
    3 => finished_at,
    4 => freshness,
    5 => result,
    6 => is_deferral,
    7 => is_replacement,
    8 => is_redacted,
    9 => run,
});

impl ResultEntry {
    /// Returns the entry that says that a call has no result and that nobody waits for one. A later result takes its
    /// place.
    #[must_use]
    pub fn interrupted(invocation: String) -> Self {
        Self { invocation, status: InvocationStatus::Interrupted, ..Self::default() }
    }

    /// Returns the entry that replaces the result of a stored call.
    #[must_use]
    pub fn replacing(call: &ToolInvocation, result: ToolResult) -> Self {
        Self {
            invocation: call.id.clone(),
            status: call.status,
            started_at: call.started_at,
            finished_at: call.finished_at,
            result: Some(result),
            is_replacement: true,
            ..Self::default()
        }
    }
}

/// An item that was set aside: an orphan result, a second result of one call, or an item that is no message.
#[derive(Clone, Debug, PartialEq)]
pub struct SetAsideItem {
    /// The code of the finding that reported it.
    pub reason: String,
    /// The dialect of `value`.
    pub dialect: Option<Dialect>,
    /// The item, unchanged.
    pub value: Json,
    /// The time of the append.
    pub at: Ms,
    /// The call whose result the item is.
    pub invocation: Option<String>,
}
encode_fields!(struct SetAsideItem {
    0 => reason: required,
    1 => dialect,
    2 => value: required,
    3 => at,
    4 => invocation,
});

impl SetAsideItem {
    /// Sets aside the content of a result that is not its call's.
    #[must_use]
    pub fn result(reason: FindingCode, result: ToolResult, at: Ms) -> Self {
        let reason = reason.as_str().to_owned();
        Self { reason, dialect: result.dialect, value: result.content, at, invocation: None }
    }

    /// Returns true for the result of a call that never came into history: it waits no more. A second result of a call
    /// leaves the first one.
    #[must_use]
    pub fn is_early_result(&self) -> bool {
        self.reason == FindingCode::OrphanResult.as_str()
    }
}
