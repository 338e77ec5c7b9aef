//! `Session.append`.

use super::assembler::dialect;
use super::convert::{body_json, to_json};
use super::foreign::error_from_thrown;
use super::option_reader::{read_optional, words};
use super::options::WindowOption;
use super::promise::promise;
use super::provider_hooks::ProviderHooks;
use super::provider_store::AppendedContent;
use super::results::{AppendResult, result_to_js};
use super::session::JsSession;
use super::session_inner::SessionInner;
use crate::error::{Error, ErrorCode, Result};
use crate::finding::FindingCode;
use crate::history::{HistoryEntry, JoinBase, JoinedEntries, NewItem, Origin, join, join_new};
use crate::json::Json;
use crate::message::{Source, SourceKind};
use crate::provider::decode_body;
use crate::replay::{CompletedTurns, PolicyLayer};
use crate::store::{Change, Committed, ExpectedRun};
use js_sys::Promise;
use serde::Deserialize;
use std::collections::BTreeMap;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

words!(
    /// `source.type`.
    SourceKindOption: SourceKind {
        "external" => SourceKind::External,
        "context" => SourceKind::Context,
        "history" => SourceKind::History,
    }
);

/// The options of `Session.append`.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct AppendOptions {
    pub expected_revision: Option<u64>,
    pub source: Option<SourceOptions>,
    pub at: Option<u64>,
    pub freshness: Option<WindowOption>,
}

/// `source`.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SourceOptions {
    r#type: Option<SourceKindOption>,
    id: Option<String>,
}

/// Number of attempts to join an append that answers calls while other writers append.
pub const MAX_JOIN_ATTEMPTS: u32 = 20;

impl AppendOptions {
    fn read(options: &JsValue) -> Result<Self> {
        read_optional("the last argument, the options,", options)
    }
}

#[wasm_bindgen(js_class = Session)]
impl JsSession {
    /// Appends messages of a dialect, or neutral messages.
    pub fn append(&self, given: JsValue, dialect_or_options: JsValue, options: JsValue, hooks: &JsValue) -> Promise {
        let inner = self.inner.clone();
        let ProviderHooks { store, .. } = ProviderHooks::read(hooks);
        let named = dialect_or_options.as_string();
        // Read at the call: the caller may change them while this waits. Neutral messages may be a promise.
        let body = if named.is_some() { Some(body_json(&given)) } else { None };
        let options = AppendOptions::read(if named.is_some() { &options } else { &dialect_or_options });
        let turn = inner.writes.enter();
        promise(async move {
            let turn = turn.start().await;
            let options = options?;
            let expected = options.expected_revision;
            let origin = inner.origin(options);
            let given = match body {
                Some(body) => body?,
                None => to_json(&messages(given).await?)?,
            };
            let join = || inner.join(&given, named.as_deref(), &origin).map_err(to_invalid_input);
            let (revision, content) = inner.append_joined(&join, expected, None).await?;
            drop(turn);
            inner.give_to_providers(store.as_ref(), &content).await;
            let message_ids = content.message_ids;
            Ok(result_to_js(&AppendResult { revision, message_ids }))
        })
    }
}

impl SessionInner {
    /// Returns the origin of appended messages.
    pub fn origin(&self, options: AppendOptions) -> Origin {
        let source = options.source.unwrap_or_default();
        Origin {
            at: options.at.unwrap_or_else(|| self.context.now()),
            source: Source { kind: source.r#type.map(|option| option.0).unwrap_or_default(), id: source.id },
            channel: self.channel(),
            freshness: options.freshness.map(|option| option.0),
            ..Origin::default()
        }
    }

    /// Appends the outcome of `join`. Calls `join` again after another writer has appended a missing call or has answered an open one, or if a run
    /// on which a result depends went on. `run`: the one that an answer depends on, if any.
    pub async fn append_joined(
        &self,
        join: &dyn Fn() -> Result<JoinedEntries>,
        expected: Option<u64>,
        run: Option<&ExpectedRun>,
    ) -> Result<(u64, AppendedContent)> {
        self.read_older().await?;
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
            let joined_at = self.log.borrow().head.history_revision;
            let runs = match run {
                Some(run) => vec![run.clone()],
                None => self.check_appended_results(&joined).await?,
            };
            let mut change = self.joined_change(&mut joined, expected.or(answers.then_some(joined_at)));
            change.expected_runs.clone_from(&runs);
            let content = AppendedContent::of(&change.entries);
            match self.append_change(change).await {
                // `expectedRevision` allows another try only if the store refused the change for a run.
                Err(error)
                    if error.code == ErrorCode::Conflict
                        && attempts < MAX_JOIN_ATTEMPTS
                        && (expected.is_none() || runs.iter().any(|run| self.has_moved(run))) => {}
                outcome => {
                    let Committed { revision, message_ids, .. } = outcome?;
                    self.context.warn(&joined.report);
                    self.notify();
                    return Ok((revision, AppendedContent { message_ids, ..content }));
                }
            }
        }
    }

    /// Joins messages, of the dialect `named` or neutral, to the history.
    fn join(&self, given: &Json, named: Option<&str>, origin: &Origin) -> Result<JoinedEntries> {
        // Appended messages follow the late results that are stored.
        let late_results = self.log.borrow().history.late_results().unplaced_ids();
        let origin = &Origin { late_results, ..origin.clone() };
        let Some(name) = named else {
            let messages = NewItem::read_all(given.view())?;
            let log = self.log.borrow();
            let mut joined = join_new(&log.history, messages, origin, &self.context.ids)?;
            for entry in &mut joined.entries {
                if let HistoryEntry::Message(message) = entry {
                    // A run of this session stores its messages itself.
                    message.run_id.take_if(|run| log.head.run(run).is_some());
                }
            }
            return Ok(joined);
        };
        let items = decode_body(dialect(name)?, given.view())?;
        Ok(join(JoinBase::history(&self.log.borrow().history), items, origin, &self.context.ids))
    }

    /// Returns the change that appends joined entries.
    pub fn joined_change(&self, joined: &mut JoinedEntries, expected: Option<u64>) -> Change {
        let policy = self.policy(PolicyLayer::default(), BTreeMap::new());
        let mut change = self.new_change();
        let log = self.log.borrow();
        // What `persist` has replaced stays as it returned it.
        let completed = CompletedTurns { known: &log.history, may_replace: &|call| !call.is_redacted() };
        change.sources = completed.drop_uncited_sources(&mut joined.entries, &policy, &mut joined.report);
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
            .map_err(|error| error_from_thrown(ErrorCode::InvalidInput, "the messages cannot be read", &error)),
        Err(messages) => Ok(messages),
    }
}

/// Reports a result without an open call as invalid input of an append.
fn to_invalid_input(mut error: Error) -> Error {
    if matches!(error.code, ErrorCode::NotFound | ErrorCode::WrongState) {
        error.code = ErrorCode::InvalidInput;
    }
    error
}

/// Returns true if a result may have found no call.
fn misses_call(joined: &Result<JoinedEntries>) -> bool {
    match joined {
        Ok(joined) => joined.report.iter().any(|finding| finding.code == FindingCode::OrphanResult),
        Err(error) => matches!(error.code, ErrorCode::NotFound | ErrorCode::InvalidInput),
    }
}
