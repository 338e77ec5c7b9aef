//! Questions of reducers to the application, and its replies.

use super::reducer::Callback;
use crate::history::{Coverage, History};
use crate::id::Seed;
use crate::json::{Json, JsonKind, JsonRef};
use crate::message::{Message, Role};
use crate::replay::request_draft::RequestDraft;
use std::cell::OnceCell;
use std::rc::Rc;

/// The reducer or the filter that a question is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QuestionSource {
    /// The reducer at this index in the policy's list.
    Reducer(usize),
    /// The handoff at this index in the run's list: its filter.
    Handoff(usize),
}

/// A question that replay returns. A question for a summary has no request body yet: the renderer builds it.
#[derive(Debug)]
pub struct PendingQuestion<'h> {
    /// The question, without the body.
    pub question: ReducerQuestion,
    /// The messages of the body, if the question is for a summary.
    pub covered: Option<RequestDraft<'h>>,
}

/// A question to the application, which a render needs before it can continue.
#[derive(Clone, Debug)]
pub struct ReducerQuestion {
    /// The function to call.
    pub callback: Callback,
    /// The question.
    pub question: QuestionKind,
    /// The reducer or the filter that needs the reply.
    pub(super) source: QuestionSource,
    /// Of a token count: the cache key and signature of each text.
    pub(super) counted: Vec<(String, u64)>,
    /// Of a summary: the id of the last message that it covers.
    pub(super) last_message_id: String,
    /// Of a summary: the hash of the reducer that asks, with its settings.
    pub(super) reducer_hash: u64,
    /// Of a summary: the stored messages that it covers; `None` if the last of them is not stored, so that it cannot be
    /// stored either.
    pub(super) coverage: Option<Coverage>,
    /// Of a summary: true if it is stored with the session.
    pub(super) is_stored: bool,
    /// Of a summary: the role of its message, chosen so that user and assistant alternate.
    pub(super) role: Role,
    /// The seed of the history's hash maps.
    pub(super) seed: Seed,
}

impl ReducerQuestion {
    pub(super) fn new(source: QuestionSource, callback: &Callback, question: QuestionKind, history: &History) -> Self {
        Self {
            callback: callback.clone(),
            question,
            source,
            counted: Vec::new(),
            last_message_id: String::new(),
            reducer_hash: 0,
            coverage: None,
            is_stored: false,
            role: Role::Assistant,
            seed: history.seed(),
        }
    }

    /// Returns the question as the error that stops the pass.
    pub(super) fn pending<'h>(self, covered: Option<RequestDraft<'h>>) -> Box<PendingQuestion<'h>> {
        Box::new(PendingQuestion { question: self, covered })
    }
}

/// The kinds of questions.
#[derive(Clone, Debug, PartialEq)]
pub enum QuestionKind {
    /// Count the tokens of each text.
    Count(Vec<String>),
    /// Summarize the conversation in this body.
    Summarize(Vec<u8>),
    /// Select which of these neutral messages are sent.
    Reduce(Json),
}

/// The reply to a question.
#[derive(Clone, Debug, PartialEq)]
pub enum ReducerReply {
    /// The number of tokens of each text.
    Counts(Vec<u64>),
    /// The summary.
    Summary(String),
    /// Neutral messages.
    Messages(Json),
    /// The function threw, or returned something else.
    Failed(String),
}

/// The replies to the questions of one render.
#[derive(Clone, Debug, Default)]
pub struct ReducerReplies {
    list: Vec<(QuestionSource, RecordedReply)>,
}

/// The reply to a question, as later passes read it.
#[derive(Clone, Debug)]
pub(super) enum RecordedReply {
    /// The counts or the summary are in the [`ReducerCache`](super::ReducerCache).
    Cached,
    /// The reason why the reducer is skipped.
    Failed(String),
    /// The messages that a custom reducer, or the filter of a handoff, selected.
    Selected(Rc<SelectedMessages>),
}

/// The messages that a function of the application selected.
#[derive(Debug)]
pub(super) struct SelectedMessages {
    /// An array of neutral messages.
    pub messages: Json,
    /// The same messages, decoded on first use.
    pub decoded: OnceCell<Vec<Message>>,
}

impl ReducerReplies {
    /// Returns the reply to a question.
    pub(super) fn get(&self, source: QuestionSource) -> Option<&RecordedReply> {
        self.list.iter().find(|(other, _)| *other == source).map(|(_, reply)| reply)
    }

    /// Returns the reason why a reducer is skipped, if its callback failed.
    pub(super) fn failure(&self, source: QuestionSource) -> Option<String> {
        match self.get(source) {
            Some(RecordedReply::Failed(reason)) => Some(reason.clone()),
            _ => None,
        }
    }

    /// Returns the replies of the filters of handoffs, which later requests of the run need.
    #[must_use]
    pub fn handoff_replies(&self) -> Self {
        let list = self.list.iter().filter(|(source, _)| matches!(source, QuestionSource::Handoff(_)));
        Self { list: list.cloned().collect() }
    }

    /// Returns true if a reducer or a filter got a reply.
    #[must_use]
    pub fn has_any(&self) -> bool {
        !self.list.is_empty()
    }

    pub(super) fn push(&mut self, source: QuestionSource, reply: RecordedReply) {
        self.list.push((source, reply));
    }
}

/// Returns true if the value is an array of neutral messages.
pub(super) fn is_message_list(messages: &Json) -> bool {
    let messages = messages.view();
    let is_message =
        |item| role_of(item).is_some() && item.get("parts").is_some_and(|parts| parts.kind() == JsonKind::Array);
    messages.kind() == JsonKind::Array && messages.items().all(is_message)
}

/// Returns the role of a neutral message.
pub(super) fn role_of(message: JsonRef<'_>) -> Option<Role> {
    Role::from_name(&message.text("role")?)
}
