//! `Session.answer`: the result of a call that comes later, from any tab or process (R75).

use super::append::{AppendOptions, SourceOptions};
use super::provider_hooks::ProviderHooks;
use super::session::JsSession;
use crate::history::NewResult;
use crate::options::{OptionEntries, WindowOption};
use crate::session::{Answer, OpenSession};
use crate::web::conversion::convert::{settled_content, to_json};
use crate::web::conversion::option_reader::{BoundFunction, read_optional};
use crate::web::conversion::results::{RevisionResult, result_to_js};
use crate::web::promise::promise;
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

#[wasm_bindgen(js_class = Session)]
impl JsSession {
    /// Stores the result of a call that has none.
    pub fn answer(&self, call: String, answer: JsValue, options: JsValue, hooks: &JsValue) -> Promise {
        let inner = self.inner.clone();
        let ProviderHooks { store, .. } = ProviderHooks::read(hooks);
        // Read at the call: the caller may change them while this waits.
        let options = read_optional("the last argument, the options,", &options);
        let result = settled_content(&answer)
            .and_then(|()| to_json(&answer))
            .and_then(|answer| NewResult::read_answer(&call, answer.view()));
        let turn = inner.writes.enter();
        promise(async move {
            let turn = turn.start().await;
            let answer = answer_of(result?, options?, &inner);
            let (revision, content) = inner.append_answer(answer).await?;
            drop(turn);
            inner.give_to_providers(store.as_ref(), &content).await;
            Ok(result_to_js(&RevisionResult { revision }))
        })
    }
}

fn answer_of(result: NewResult, options: AnswerOptions, session: &OpenSession) -> Answer {
    let AnswerOptions { expected_revision, source, at, freshness, tools } = options;
    let own = |(name, tool): (String, PersistOptions)| Some((name, tool.persist?.into()));
    let origin = session.origin(AppendOptions { expected_revision, source, at, freshness, branch: None }.into());
    let persist = tools.unwrap_or_default().0.into_iter().filter_map(own).collect();
    Answer { result, origin, expected: expected_revision, persist }
}
