//! `Session.append` and `Session.answer`: what an application brings.

use super::assembler::dialect;
use super::convert::{member, object_to_js, text, to_json, whole, wire_text};
use super::error::error_from_thrown;
use super::options::{window, word};
use super::promise::promise;
use super::run_request::check_branch;
use super::session::{JsSession, SessionInner};
use crate::error::{Code, Error, Result};
use crate::history::{HistoryEntry, JoinedEntries, NewItem, NewResult, Origin, join, join_new, join_results};
use crate::json::Json;
use crate::message::{Source, SourceKind};
use crate::provider::decode_body;
use crate::replay::{PolicyLayer, drop_uncited_sources};
use crate::sorted::Sorted;
use crate::store::{Change, Committed};
use js_sys::Promise;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

/// Number of attempts to join an append that answers calls while other writers append.
const MAX_JOIN_ATTEMPTS: u32 = 20;

#[wasm_bindgen(js_class = Session)]
impl JsSession {
    /// Appends messages in a dialect's own shape, or neutral ones.
    pub fn append(&self, given: JsValue, dialect_or_options: JsValue, options: JsValue) -> Promise {
        let inner = self.inner.clone();
        let named = dialect_or_options.as_string();
        // Read at the call: the caller may change it while this waits. Neutral messages may be a promise of them.
        let body = if named.is_some() { Some(wire_text(&given)) } else { None };
        let turn = inner.writes.enter();
        promise(Box::pin(async move {
            let _turn = turn.start().await;
            let options = if named.is_some() { options } else { dialect_or_options };
            check_branch(&options)?;
            let origin = inner.origin(&options)?;
            let expected = whole(&options, "expectedRevision")?;
            let given = match body {
                Some(body) => body?,
                None => to_json(&messages(given).await?)?,
            };
            let join = || inner.join(&given, named.as_deref(), &origin).map_err(as_invalid);
            let committed = inner.append_joined(&join, expected).await?;
            Ok(object_to_js(&|out| {
                out.number("revision", committed.revision).array("messageIds", |ids| {
                    for id in &committed.message_ids {
                        ids.text(id);
                    }
                });
            }))
        }))
    }

    /// Answers a call that history holds without a result.
    pub fn answer(&self, call: String, answer: JsValue, options: JsValue) -> Promise {
        let inner = self.inner.clone();
        // Read at the call: the caller may change it while this waits.
        let result = to_json(&answer).and_then(|answer| NewResult::read_answer(&call, answer.view()));
        let turn = inner.writes.enter();
        promise(Box::pin(async move {
            let _turn = turn.start().await;
            let result = result?;
            check_branch(&options)?;
            let origin = inner.origin(&options)?;
            let expected = whole(&options, "expectedRevision")?;
            let committed = inner.append_joined(&|| inner.join_answer(&result, &origin), expected).await?;
            Ok(object_to_js(&|out| {
                out.number("revision", committed.revision);
            }))
        }))
    }
}

impl SessionInner {
    /// Where what is appended comes from.
    fn origin(&self, options: &JsValue) -> Result<Origin> {
        let source = member(options, "source");
        let kinds = [SourceKind::External, SourceKind::Context, SourceKind::History];
        let kind = word(&source, "type", &["external", "context", "history"], &kinds)?;
        Ok(Origin {
            at: whole(options, "at")?.unwrap_or_else(|| self.context.now()),
            source: Source { kind: kind.unwrap_or_default(), id: text(&source, "id")? },
            channel: self.channel(),
            freshness: window(options, "freshness")?,
            ..Origin::default()
        })
    }

    /// Appends the outcome of `join`. Calls `join` again after another writer has appended a missing call or has answered an open one.
    async fn append_joined(
        &self,
        join: &dyn Fn() -> Result<JoinedEntries>,
        expected: Option<u64>,
    ) -> Result<Committed> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            self.context.ids.draw();
            let mut joined = match join() {
                outcome if misses_call(&outcome) && self.refresh().await? => join()?,
                outcome => outcome?,
            };
            // A result was paired with a call that was open at this revision.
            let answers = joined.entries.iter().any(|entry| matches!(entry, HistoryEntry::Result(_)));
            let joined_at = self.log.borrow().revision;
            let change = self.joined_change(&mut joined, expected.or(answers.then_some(joined_at)));
            match self.append_change(change).await {
                Err(error) if error.code == Code::Conflict && expected.is_none() && attempts < MAX_JOIN_ATTEMPTS => {}
                outcome => {
                    let committed = outcome?;
                    self.context.warn(&joined.report);
                    self.notify();
                    return Ok(committed);
                }
            }
        }
    }

    /// Joins messages to what is there: a dialect's own, or neutral ones.
    fn join(&self, given: &Json, named: Option<&str>, origin: &Origin) -> Result<JoinedEntries> {
        let Some(name) = named else {
            let messages = NewItem::read_all(given.view())?;
            return join_new(&self.log.borrow().history, messages, origin, &self.context.ids);
        };
        let items = decode_body(dialect(name)?, given.view())?;
        Ok(join(None, &self.log.borrow().history, items, origin, &self.context.ids))
    }

    /// Joins the result of a stored call to what is there.
    fn join_answer(&self, result: &NewResult, origin: &Origin) -> Result<JoinedEntries> {
        let mut joined = JoinedEntries::default();
        join_results(&self.log.borrow().history, &mut joined, vec![(result.clone(), None)], origin)?;
        Ok(joined)
    }

    fn joined_change(&self, joined: &mut JoinedEntries, expected: Option<u64>) -> Change {
        let policy = self.policy(PolicyLayer::default(), Sorted::new());
        let mut change = self.change();
        change.sources = drop_uncited_sources(&mut joined.entries, &policy, &mut joined.report);
        change.entries = std::mem::take(&mut joined.entries);
        change.caller_ids = std::mem::take(&mut joined.caller_ids);
        change.expected = expected;
        change
    }
}

/// Returns neutral messages; awaits them if the facade passed a promise.
async fn messages(given: JsValue) -> Result<JsValue> {
    match given.dyn_into::<Promise>() {
        Ok(promise) => JsFuture::from(promise)
            .await
            .map_err(|error| error_from_thrown(Code::InvalidInput, "the messages cannot be read", &error)),
        Err(messages) => Ok(messages),
    }
}

/// Reports a result without an open call as invalid input of an append.
fn as_invalid(mut error: Error) -> Error {
    if matches!(error.code, Code::NotFound | Code::WrongState) {
        error.code = Code::InvalidInput;
    }
    error
}

/// Whether a result may have found no call.
fn misses_call(joined: &Result<JoinedEntries>) -> bool {
    match joined {
        Ok(joined) => joined.report.iter().any(|finding| finding.code == "orphan_result"),
        Err(error) => matches!(error.code, Code::NotFound | Code::InvalidInput),
    }
}
