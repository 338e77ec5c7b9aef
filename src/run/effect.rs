//! What the host must do, and what it says when it has done it.

use super::journal::JournalEntry;
use super::redaction::{PersistQuestion, PersistReply};
use crate::clock::Ms;
use crate::error::Error;
use crate::history::HistoryEntry;
use crate::json::Json;
use crate::message::Dialect;
use crate::replay::ReducerReply;
use std::rc::Rc;

/// Something the host must do now. It stays open until it is answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Effect {
    /// Names it in the answer.
    pub id: String,
    /// What to do.
    pub kind: EffectKind,
}

/// The kinds.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum EffectKind {
    /// Send this request.
    CallModel { dialect: Dialect, url: String, headers: Vec<(String, String)>, body: Rc<Vec<u8>>, stream: bool },
    /// Execute this tool.
    RunTool { call_id: String, invocation: String, attempt: u32, name: String, arguments: Json, arguments_text: String },
    /// Let so much time pass, in milliseconds.
    Wait { ms: Ms },
}

/// What the host says.
#[derive(Clone, Debug, PartialEq)]
pub enum RunInput {
    /// About an effect.
    Answer {
        /// Which.
        effect: String,
        /// What.
        reply: EffectReply,
    },
    /// Bytes of a response, after its [`EffectReply::ResponseStarted`].
    Bytes {
        /// Which effect.
        effect: String,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// The host has not read a response, since it has more bytes than the run allows.
    ResponseTooLarge {
        /// Which effect.
        effect: String,
    },
    /// The user stops the run.
    Cancel,
    /// Try again to store what could not be stored.
    RetrySave,
    /// What the application said to the question of a reducer.
    ReducerReply(ReducerReply),
    /// What the application said to the question of [`Run::take_persist_question`](super::Run::take_persist_question).
    PersistReply(PersistQuestion, PersistReply),
    /// The binding has written a [`Save`], or could not.
    Saved {
        /// Which.
        save: u64,
        /// The session's revision, or why not.
        outcome: Result<u64, Error>,
    },
}

/// The answers to effects.
#[derive(Clone, Debug, PartialEq)]
pub enum EffectReply {
    /// The head of the response; its bytes follow.
    ResponseStarted {
        /// HTTP status.
        status: u16,
        /// Names in lower case.
        headers: Vec<(String, String)>,
    },
    /// All bytes were fed.
    ResponseEnd,
    /// A whole response.
    Response {
        /// HTTP status.
        status: u16,
        /// Names in lower case.
        headers: Vec<(String, String)>,
        /// The body.
        body: Vec<u8>,
    },
    /// The tool is about to be executed: from here on it may have run.
    Started,
    /// The tool has returned.
    ToolResult {
        /// Any JSON.
        content: Json,
        /// Whether it is a failure.
        is_error: bool,
    },
    /// The time has passed.
    Waited,
    /// It could not be done.
    Failed {
        /// The host's code.
        code: Option<String>,
        /// Why.
        message: String,
    },
}

/// Something the binding must write.
#[derive(Clone, Debug, PartialEq)]
pub struct Save {
    /// Names it in [`RunInput::Saved`].
    pub id: u64,
    /// What.
    pub kind: SaveKind,
    /// The highest source number that the run's tools have given out.
    pub sources: Option<u64>,
}

/// The kinds of write.
#[derive(Clone, Debug, PartialEq)]
pub enum SaveKind {
    /// The run begins.
    Begin(Vec<JournalEntry>),
    /// The run goes on.
    Write(Vec<JournalEntry>),
    /// The run failed, or was stopped, and can be resumed until it is discarded.
    Fail(Box<JournalEntry>),
    /// The turn is whole: it is appended, and the journal goes, at once.
    Append(Vec<HistoryEntry>),
}
