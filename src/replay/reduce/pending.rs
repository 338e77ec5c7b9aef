//! Questions of reducers to the application, and their replies.

use super::counts::TokenCounts;
use super::summarize::Summary;
use crate::history::History;
use crate::id::Seed;
use crate::json::Json;
use crate::message::{Message, Role};
use crate::replay::draft::Draft;
use std::any::Any;
use std::cell::OnceCell;
use std::rc::Rc;

/// A function of the application. The core knows its number; only the binding can call it.
#[derive(Clone)]
pub struct Callback {
    /// The same function has the same number.
    pub id: u32,
    /// What the binding calls.
    pub hook: Rc<dyn Any>,
}

impl std::fmt::Debug for Callback {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_tuple("Callback").field(&self.id).finish()
    }
}

impl PartialEq for Callback {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

/// A question in the making: what is to be summed up is not a body yet.
#[derive(Debug)]
pub struct PendingQuestion<'h> {
    /// Everything but the body.
    pub ask: ReducerQuestion,
    /// What the body is to hold.
    pub covered: Option<Draft<'h>>,
}

/// A question to the application, which a render needs before it can continue.
#[derive(Clone, Debug)]
pub struct ReducerQuestion {
    /// The function to call.
    pub callback: Callback,
    /// The question.
    pub question: QuestionKind,
    /// The reducer's place in its pipeline.
    pub(super) place: usize,
    /// What the counts are of.
    pub(super) wanted: Vec<(String, u64)>,
    /// The last message that a summary covers.
    pub(super) last: String,
    /// Who says the summary, so that the roles go on alternating.
    pub(super) role: Role,
    pub(super) seed: Seed,
}

impl ReducerQuestion {
    pub(super) fn new(place: usize, callback: &Callback, question: QuestionKind, history: &History) -> Self {
        Self {
            callback: callback.clone(),
            question,
            place,
            wanted: Vec::new(),
            last: String::new(),
            role: Role::Assistant,
            seed: history.seed(),
        }
    }

    /// The function and its reducer's place.
    pub(super) fn asker(&self) -> (u32, usize) {
        (self.callback.id, self.place)
    }

    /// As a failure of the pass.
    pub(super) fn pending<'h>(self, covered: Option<Draft<'h>>) -> Box<PendingQuestion<'h>> {
        Box::new(PendingQuestion { ask: self, covered })
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

/// What is kept from one render to the next: token counts and summaries.
#[derive(Clone, Debug, Default)]
pub struct ReducerCache {
    pub(super) counts: Vec<(u32, TokenCounts)>,
    pub(super) summaries: Vec<Summary>,
}

/// How many functions' answers are kept: one that is made anew for each call must not fill the memory.
const KEPT: usize = 8;

/// What was told during one render.
#[derive(Clone, Debug, Default)]
pub struct ReducerReplies {
    told: Vec<(usize, RecordedReply)>,
}

/// What a reducer was told.
#[derive(Clone, Debug)]
pub(super) enum RecordedReply {
    /// It is in the memory.
    Kept,
    Failed(String),
    /// A choice, and the messages made by it.
    Chosen(Json, OnceCell<Vec<Message>>),
}

impl ReducerReplies {
    pub(super) fn told(&self, place: usize) -> Option<&RecordedReply> {
        self.told.iter().find(|(own, _)| *own == place).map(|(_, told)| told)
    }

    /// Why a reducer is skipped.
    pub(super) fn failure(&self, place: usize) -> Option<String> {
        match self.told(place) {
            Some(RecordedReply::Failed(why)) => Some(why.clone()),
            _ => None,
        }
    }
}

impl ReducerCache {
    /// Forgets: the history was replaced.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Takes an answer. Each reducer asks once a render: one that is answered wrongly is skipped.
    pub fn learn(&mut self, ask: ReducerQuestion, given: ReducerReply, progress: &mut ReducerReplies) {
        let told = match (&ask.question, given) {
            (_, ReducerReply::Failed(why)) => RecordedReply::Failed(why),
            (QuestionKind::Count(texts), ReducerReply::Counts(counts)) if counts.len() == texts.len() => {
                if !self.counts.iter().any(|(id, _)| *id == ask.callback.id) {
                    if self.counts.len() >= KEPT {
                        self.counts.remove(0);
                    }
                    self.counts.push((ask.callback.id, TokenCounts::new(ask.seed)));
                }
                if let Some((_, kept)) = self.counts.iter_mut().find(|(id, _)| *id == ask.callback.id) {
                    for ((key, signature), tokens) in ask.wanted.into_iter().zip(counts) {
                        kept.insert(key, signature, tokens);
                    }
                }
                RecordedReply::Kept
            }
            (QuestionKind::Summarize(_), ReducerReply::Summary(text)) if !text.trim().is_empty() => {
                self.summaries.retain(|summary| summary.by != ask.asker());
                if self.summaries.len() >= KEPT {
                    self.summaries.remove(0);
                }
                self.summaries.push(Summary::new(&ask, &text));
                RecordedReply::Kept
            }
            (QuestionKind::Reduce(_), ReducerReply::Messages(messages)) if super::custom::is_list(&messages) => {
                RecordedReply::Chosen(messages, OnceCell::new())
            }
            _ => RecordedReply::Failed("it gave something else than what it was asked for".into()),
        };
        progress.told.push((ask.place, told));
    }
}
