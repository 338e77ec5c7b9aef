//! Effects: what the host must do, and the inputs by which it reports that it is done.

use super::approval::{ApprovalDecision, ApprovalReply};
use super::handoff::Handoff;
use super::journal::JournalEntry;
use super::persist_question::{PersistQuestion, PersistReply};
use crate::clock::Ms;
use crate::error::Error;
use crate::history::HistoryEntry;
use crate::json::Json;
use crate::message::Dialect;
use crate::render::{BodyFilterReply, LastRequest};
use crate::replay::ReducerReply;
use crate::session_head::StoredOwner;
use crate::tool::InvocationStatus;
use std::rc::Rc;

/// Something that the host must do now. It stays open until the host replies.
#[derive(Clone, Debug, PartialEq)]
pub struct Effect {
    /// The id that the reply refers to.
    pub id: String,
    /// What to do.
    pub kind: EffectKind,
}

/// The kinds of effects.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum EffectKind {
    /// Send this request, which has no body with the method GET. `repeatable`: it has no effect at the service, so it
    /// may be sent again. `not_before`: the time before which it must not be sent.
    CallModel {
        dialect: Dialect,
        method: Method,
        url: String,
        headers: Vec<(String, String)>,
        body: Rc<Vec<u8>>,
        stream: bool,
        repeatable: bool,
        not_before: Option<Ms>,
    },
    /// Execute this tool.
    RunTool { call_id: String, invocation: String, attempt: u32, name: String, arguments: Json, arguments_text: String },
    /// Wait this long, in milliseconds. A host that sleeps instead answers at once; the next effect then says until
    /// when.
    Wait { ms: Ms },
}

/// The method of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Calls the model.
    Post,
    /// Picks an answer up that the service has, or works on.
    Get,
}

impl Method {
    /// Returns its name in HTTP.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Post => "POST",
            Self::Get => "GET",
        }
    }
}

/// An input of the host or the binding.
#[derive(Clone, Debug, PartialEq)]
pub enum RunInput {
    /// A reply to an effect.
    Answer {
        /// The effect's id.
        effect: String,
        /// The reply.
        reply: EffectReply,
    },
    /// Bytes of a response, after its [`EffectReply::ResponseStarted`].
    Bytes {
        /// The effect's id.
        effect: String,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// A response was not read, because it has more bytes than the run allows.
    ResponseTooLarge {
        /// The effect's id.
        effect: String,
    },
    /// The user stops the run.
    Cancel,
    /// Another holder took the run over, or the session was deleted: this holder may not write any more.
    Lost(Error),
    /// Repeats the saves that failed.
    RetrySave,
    /// The store did not take the run's saves for too long: the run ends failed, with what is stored, and can be
    /// resumed.
    AbandonSaves(Error),
    /// The application's reply to a reducer's question.
    ReducerReply(ReducerReply),
    /// The reply of the application's filter to the question of
    /// [`Run::take_body_filter_question`](super::Run::take_body_filter_question), or its error.
    BodyFilterReply(Result<BodyFilterReply, Error>),
    /// The next model call is another agent's.
    HandOff(Box<Handoff>),
    /// A person's decision about a call that waits for it.
    Decide {
        /// The call's invocation id, or its call id if no other call of the run has that.
        id: String,
        /// The decision.
        decision: ApprovalDecision,
    },
    /// The application's reply to the question of [`Run::take_approval_question`](super::Run::take_approval_question),
    /// about the invocation of this id.
    ApprovalReply(String, ApprovalReply),
    /// The application's reply to the question of [`Run::take_replay_question`](super::Run::take_replay_question): true
    /// if the request may be sent again.
    ReplayReply(bool),
    /// The application's reply to the question of [`Run::take_persist_question`](super::Run::take_persist_question).
    PersistReply(PersistQuestion, PersistReply),
    /// The binding has done a [`Save`], or failed.
    Saved {
        /// The id of the save.
        save: u64,
        /// The session's revision, or the error.
        outcome: Result<u64, Error>,
    },
}

/// A reply to an effect.
#[derive(Clone, Debug, PartialEq)]
pub enum EffectReply {
    /// The status and the headers of a response; its bytes follow.
    ResponseStarted {
        /// HTTP status.
        status: u16,
        /// Names in lower case.
        headers: Vec<(String, String)>,
    },
    /// All bytes of the response were passed.
    ResponseEnd,
    /// A complete response.
    Response {
        /// HTTP status.
        status: u16,
        /// Names in lower case.
        headers: Vec<(String, String)>,
        /// The body.
        body: Vec<u8>,
    },
    /// The tool is about to be executed. From here on it may have run.
    Started,
    /// The tool has returned.
    ToolResult {
        /// The result, any JSON.
        content: Json,
        /// True if the tool failed.
        is_error: bool,
    },
    /// The tool is asynchronous and answers later: the run goes on without its result (R75).
    Pending,
    /// The time has passed.
    Waited,
    /// The effect failed.
    Failed {
        /// The host's code.
        code: Option<String>,
        /// The reason.
        message: String,
        /// Whether any byte of the request may have reached the service; `None` if the host does not know.
        sent: Option<bool>,
    },
}

/// Something that the binding must write.
#[derive(Clone, Debug, PartialEq)]
pub struct Save {
    /// The id that [`RunInput::Saved`] refers to.
    pub id: u64,
    /// What to write.
    pub kind: SaveKind,
    /// The highest source number in the results of the run's tools.
    pub sources: Option<u64>,
    /// The number of calls that wait for an approval after it.
    pub approvals: u64,
    /// The session's new owner, if the run changed it.
    pub owner: Option<StoredOwner>,
    /// The session's last request, if this save stores what it contained.
    pub last_request: Option<LastRequest>,
    /// True if this save tells the session that the run's requests let the service drop reasoning.
    pub has_dropped: bool,
    /// True if this save has the result of an asynchronous tool.
    pub has_async_result: bool,
}

impl Save {
    /// Returns true if the save must be in the store soon: it has a decision, the result of a call that other writers
    /// may answer, of which the first stored result counts, or the answer on which a service works in the background.
    #[must_use]
    pub fn is_urgent(&self) -> bool {
        self.has_decision() || self.has_async_result || self.has_background_answer()
    }

    /// Returns true if the save has an answer that another process may pick up.
    fn has_background_answer(&self) -> bool {
        self.kind.journal().iter().any(|entry| matches!(entry, JournalEntry::Background(Some(_))))
    }

    /// Returns true if the save has a person's decision: an approval, which must be in the store before its tool runs,
    /// or a rejection, after which nobody is asked again.
    fn has_decision(&self) -> bool {
        let is_decision = |entry: &JournalEntry| match entry {
            JournalEntry::Approved { .. } => true,
            // A rejected call that may have run is interrupted.
            JournalEntry::Finished(result) => {
                matches!(result.status, InvocationStatus::Rejected | InvocationStatus::Interrupted)
            }
            _ => false,
        };
        matches!(&self.kind, SaveKind::Write(entries) if entries.iter().any(is_decision))
    }
}

/// The kinds of saves.
#[derive(Clone, Debug, PartialEq)]
pub enum SaveKind {
    /// The first journal entries of the run.
    Begin(Vec<JournalEntry>),
    /// Further journal entries.
    Write(Vec<JournalEntry>),
    /// Journal entries, and what history gets while the run goes on, atomically.
    Store {
        /// The journal entries.
        journal: Vec<JournalEntry>,
        /// The entries of history.
        history: Vec<HistoryEntry>,
    },
    /// The last journal entry of a failed or stopped run, which can be resumed until it is discarded.
    Fail(Box<JournalEntry>),
    /// What history lacks of the turn is appended and the journal removed, atomically.
    Append(Vec<HistoryEntry>),
}

impl SaveKind {
    /// Returns the journal entries.
    pub(super) fn journal(&self) -> &[JournalEntry] {
        match self {
            Self::Begin(entries) | Self::Write(entries) | Self::Store { journal: entries, .. } => entries,
            Self::Fail(entry) => std::slice::from_ref(entry),
            Self::Append(_) => &[],
        }
    }
}
