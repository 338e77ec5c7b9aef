//! `Session.answer`: the result of a call that comes later, from any tab or process (R75).

use super::append::{AppendOptions, SourceOptions};
use super::callbacks::call_persist;
use super::convert::to_json;
use super::journals::journal_of;
use super::option_reader::{BoundFunction, OptionEntries, read_optional};
use super::options::WindowOption;
use super::promise::promise;
use super::provider_hooks::ProviderHooks;
use super::provider_store::AppendedContent;
use super::results::{RevisionResult, result_to_js};
use super::session::JsSession;
use super::session_inner::SessionInner;
use crate::error::{Error, ErrorCode, Result};
use crate::finding::{Action, Finding, FindingCode};
use crate::history::{HistoryEntry, JoinedEntries, NewResult, Origin, find_unfinished_call, join_results};
use crate::json::{JsonRef, JsonStr};
use crate::replay::Callback;
use crate::run::{PersistQuestion, PersistReply};
use crate::tool::ToolInvocation;
use js_sys::Promise;
use serde::Deserialize;
use wasm_bindgen::prelude::*;

/// The options of `Session.answer`.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct AnswerOptions {
    expected_revision: Option<u64>,
    source: Option<SourceOptions>,
    at: Option<u64>,
    freshness: Option<WindowOption>,
    tools: Option<OptionEntries<PersistOptions>>,
}

/// What `Session.answer` reads of a tool.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct PersistOptions {
    persist: Option<BoundFunction>,
}

/// An answer that is checked and not stored yet.
struct Answer {
    result: NewResult,
    origin: Origin,
    expected: Option<u64>,
    /// `persist` of the tools that were passed.
    persist: Vec<(String, Callback)>,
}

impl Answer {
    fn new(result: NewResult, options: AnswerOptions, session: &SessionInner) -> Self {
        let AnswerOptions { expected_revision, source, at, freshness, tools } = options;
        let own = |(name, tool): (String, PersistOptions)| Some((name, tool.persist?.into()));
        let origin = session.origin(AppendOptions { expected_revision, source, at, freshness });
        let persist = tools.unwrap_or_default().0.into_iter().filter_map(own).collect();
        Self { result, origin, expected: expected_revision, persist }
    }
}

#[wasm_bindgen(js_class = Session)]
impl JsSession {
    /// Stores the result of a call that has none.
    pub fn answer(&self, call: String, answer: JsValue, options: JsValue, hooks: &JsValue) -> Promise {
        let inner = self.inner.clone();
        let ProviderHooks { store, .. } = ProviderHooks::read(hooks);
        // Read at the call: the caller may change them while this waits.
        let options = read_optional("the last argument, the options,", &options);
        let result = to_json(&answer).and_then(|answer| NewResult::read_answer(&call, answer.view()));
        let turn = inner.writes.enter();
        promise(async move {
            let turn = turn.start().await;
            let answer = Answer::new(result?, options?, &inner);
            let (revision, content) = inner.append_answer(answer).await?;
            drop(turn);
            inner.give_to_providers(store.as_ref(), &content).await;
            Ok(result_to_js(&RevisionResult { revision }))
        })
    }
}

impl SessionInner {
    async fn append_answer(&self, mut answer: Answer) -> Result<(u64, AppendedContent)> {
        self.read_older().await?;
        let mut call = self.answered_call(&answer).await;
        if call.is_err() && self.refresh().await? {
            call = self.answered_call(&answer).await;
        }
        let call = call?;
        let is_withheld = self.ask_persist(&call, &mut answer)?;
        answer.result.call.clone_from(&call.id);
        let join = || {
            let mut joined = self.join_answer(&call, &answer)?;
            if let Some(HistoryEntry::Result(entry)) = joined.entries.first_mut().filter(|_| is_withheld) {
                entry.result = None;
            }
            Ok(joined)
        };
        self.append_joined(&join, answer.expected).await
    }

    /// Returns the call that an answer is of. The calls of a run that is under way or unfinished are newer than those of history.
    async fn answered_call(&self, answer: &Answer) -> Result<ToolInvocation> {
        let name = &answer.result.call;
        if let Some(call) = self.unfinished_call(name).await? {
            return Ok(call);
        }
        let mut joined = JoinedEntries::default();
        let log = self.log.borrow();
        join_results(&log.history, &mut joined, vec![(answer.result.clone(), None)], &answer.origin)?;
        let call = joined.entries.iter().find_map(|entry| match entry {
            HistoryEntry::Result(result) => log.history.invocation(&result.invocation),
            _ => None,
        });
        call.cloned()
            .ok_or_else(|| Error::new(ErrorCode::Internal, "an answer found a call that history does not have"))
    }

    /// Returns the open call of this name that history does not have, since its run keeps its turn in the journal until it ends.
    async fn unfinished_call(&self, name: &str) -> Result<Option<ToolInvocation>> {
        let live = self.live_run();
        if let Some(run) = &live {
            let found = find_unfinished_call(run.machine().live(), &self.log.borrow().history, name)?.cloned();
            if let Some(call) = found {
                if run.machine().awaits_tool(&call) {
                    let sentence =
                        "the run waits for this tool and takes its result; answer its effect with `Run.answer`";
                    return Err(Error::new(ErrorCode::WrongState, sentence));
                }
                // The result would be lost with a call that only memory has.
                run.flush_before_read().await?;
                return Ok(Some(call));
            }
        }
        let runs = self.log.borrow().head.runs.clone();
        for entry in runs.iter().rev().filter(|entry| live.as_ref().is_none_or(|run| run.id() != entry.id)) {
            let recovered = match journal_of(&self.context, &self.id, entry).await {
                Ok(recovered) => recovered,
                // It ended meanwhile, or nobody can resume it.
                Err(error) if matches!(error.code, ErrorCode::CorruptRecord | ErrorCode::UnsupportedVersion) => {
                    continue;
                }
                Err(error) => return Err(error),
            };
            if let Some(call) = find_unfinished_call(&recovered.live, &self.log.borrow().history, name)? {
                return Ok(Some(call.clone()));
            }
        }
        Ok(None)
    }

    /// Joins an answer to its call in history; if history does not have the call yet, the answer waits there for it.
    fn join_answer(&self, call: &ToolInvocation, answer: &Answer) -> Result<JoinedEntries> {
        let mut joined = JoinedEntries::default();
        let log = self.log.borrow();
        if log.history.invocation(&call.id).is_some() {
            join_results(&log.history, &mut joined, vec![(answer.result.clone(), None)], &answer.origin)?;
        } else if log.history.early_result(&call.id).is_some() {
            let sentence = "the call has its result already: another tab or process has answered it";
            return Err(Error::new(ErrorCode::WrongState, sentence));
        } else {
            let entry = answer.result.clone().answer_to(call.id.clone(), &answer.origin);
            joined.entries.push(HistoryEntry::Result(entry));
        }
        Ok(joined)
    }

    /// Lets `persist` of the call's tool decide what is stored of a result (R12). Returns true if nothing of it is.
    ///
    /// # Errors
    /// `config_invalid` if the tool has `persist`, and this session does not know it.
    fn ask_persist(&self, call: &ToolInvocation, answer: &mut Answer) -> Result<bool> {
        let given = answer.persist.iter().find(|(name, _)| *name == call.name).map(|(_, callback)| callback.clone());
        let Some(callback) = given.or_else(|| self.persist_callbacks.borrow().get(&call.name).cloned()) else {
            if !call.has_persist {
                return Ok(false);
            }
            return Err(Error::config(format!(
                "the tool \"{}\" has `persist`, which decides what is stored of its results; pass it: `answer(call, result, {{ tools }})`",
                call.name
            )));
        };
        let text = call.arguments.text();
        let text = if text.trim().is_empty() { "{}" } else { &text };
        let question = PersistQuestion {
            callback,
            invocation: call.id.clone(),
            name: call.name.clone(),
            arguments: JsonRef::parse(text).map_or_else(|_| JsonStr::new(text).to_json(), JsonRef::to_owned),
            result: Some(answer.result.result.content.clone()),
        };
        match call_persist(&question) {
            PersistReply::Replaced { result, .. } => {
                if let Some(content) = result {
                    answer.result.result.content = content;
                }
                Ok(false)
            }
            PersistReply::Nothing => Ok(true),
            PersistReply::Failed(why) => {
                let text = format!("`persist` of the tool \"{}\" failed; the result is not stored: {why}", call.name);
                self.context.warn(&[Finding::warning(FindingCode::CallbackFailed, text).with_action(Action::Dropped)]);
                Ok(true)
            }
        }
    }
}
