//! Questions of reducers to the application, and its replies.

use super::reducer::Callback;
use crate::history::{Coverage, History};
use crate::id::Seed;
use crate::json::{Json, JsonKind, JsonRef};
use crate::message::{Message, Role};
use crate::replay::request_draft::RequestDraft;
use std::cell::OnceCell;
use std::rc::Rc;

/// What the filter of the first handoff has instead of the index of a reducer.
pub(super) const FIRST_HANDOFF: usize = usize::MAX / 2;

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
    /// The index of the reducer that asks, in the policy's list; of a handoff, [`FIRST_HANDOFF`] plus its index.
    pub(super) reducer: usize,
    /// Of a token count: the cache key and signature of each text.
    pub(super) counted: Vec<(String, u64)>,
    /// Of a summary: the id of the last message that it covers.
    pub(super) last: String,
    /// Of a summary: the hash of the settings of the reducer that asks.
    pub(super) settings: u64,
    /// Of a summary: the stored messages that it covers; `None` if the last of them is not stored, so that it cannot be stored either.
    pub(super) coverage: Option<Coverage>,
    /// Of a summary: true if it is stored with the session.
    pub(super) is_stored: bool,
    /// Of a summary: the role of its message, chosen so that user and assistant alternate.
    pub(super) role: Role,
    /// The seed of the history's hash maps.
    pub(super) seed: Seed,
}

impl ReducerQuestion {
    pub(super) fn new(reducer: usize, callback: &Callback, question: QuestionKind, history: &History) -> Self {
        Self {
            callback: callback.clone(),
            question,
            reducer,
            counted: Vec::new(),
            last: String::new(),
            settings: 0,
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
    /// By the index of the reducer.
    list: Vec<(usize, RecordedReply)>,
}

/// The reply to a reducer's question.
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
    /// Returns the reply to a reducer's question.
    pub(super) fn get(&self, reducer: usize) -> Option<&RecordedReply> {
        self.list.iter().find(|(asker, _)| *asker == reducer).map(|(_, reply)| reply)
    }

    /// Returns the reason why a reducer is skipped, if its callback failed.
    pub(super) fn failure(&self, reducer: usize) -> Option<String> {
        match self.get(reducer) {
            Some(RecordedReply::Failed(reason)) => Some(reason.clone()),
            _ => None,
        }
    }

    /// Returns the replies of the filters of handoffs, which later requests of the run need.
    #[must_use]
    pub fn of_handoffs(&self) -> Self {
        let list = self.list.iter().filter(|(asker, _)| *asker >= FIRST_HANDOFF);
        Self { list: list.cloned().collect() }
    }

    pub(super) fn push(&mut self, reducer: usize, reply: RecordedReply) {
        self.list.push((reducer, reply));
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
