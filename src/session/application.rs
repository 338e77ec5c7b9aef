//! The functions of the application, which a binding calls in its language.

use crate::error::Result;
use crate::finding::Finding;
use crate::json::Json;
use crate::render::BodyFilterReply;
use crate::replay::{Callback, ReducerQuestion, ReducerReply};
use crate::run::{ApprovalQuestion, ApprovalReply, BodyFilterQuestion, PersistQuestion, PersistReply, ReplayQuestion};
use std::future::Future;
use std::pin::Pin;

/// A future that need not be `Send`.
pub type LocalFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// Calls the functions of the application. Nothing is borrowed while one is called, since it may call back.
///
/// A function may never answer: [`PendingCallbacks`](super::PendingCallbacks) ends the wait, and the future is dropped.
pub trait Application {
    /// Calls the function that a reducer's question is for.
    fn reduce<'q>(&'q self, question: &'q ReducerQuestion) -> LocalFuture<'q, ReducerReply>;

    /// Calls `inputFilter` of a run. `callback_failed` if it throws or returns a value that JSON cannot represent.
    fn filter_body<'q>(&'q self, question: &'q BodyFilterQuestion) -> LocalFuture<'q, Result<BodyFilterReply>>;

    /// Calls `needsApproval` of a tool.
    fn needs_approval<'q>(&'q self, question: &'q ApprovalQuestion) -> LocalFuture<'q, ApprovalReply>;

    /// Calls `approveUnsafeReplay`, which answers at once.
    ///
    /// # Errors
    /// `callback_failed` if it throws or returns no boolean.
    fn approves_replay(&self, question: &ReplayQuestion) -> Result<bool>;

    /// Calls `persist` of a tool, which answers at once.
    fn persist(&self, question: &PersistQuestion) -> PersistReply;

    /// Calls `summarize` of `compact` with a body and the mode. Resolves to its text, which is not empty, or to
    /// `callback_failed`.
    fn summarize<'q>(
        &'q self,
        callback: &'q Callback,
        body: &'q [u8],
        mode: &'q str,
    ) -> LocalFuture<'q, Result<String>>;

    /// Calls `titleSession` of a store with the first exchange of a session. Resolves to the title, if the function has
    /// one, or to `callback_failed`.
    fn title<'q>(&'q self, callback: &'q Callback, exchange: Json) -> LocalFuture<'q, Result<Option<String>>>;

    /// Asks the history providers for messages that precede an input: the input's messages as JSON. `callback_failed`
    /// names the provider.
    fn provide<'q>(&'q self, callback: &'q Callback, input: Json) -> LocalFuture<'q, Result<Json>>;

    /// Gives a turn to the history providers. Resolves to a warning for each of them that failed.
    fn give_to_providers<'q>(&'q self, callback: &'q Callback, turn: Json) -> LocalFuture<'q, Vec<Finding>>;
}
