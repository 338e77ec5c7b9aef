//! `Session.append`.

use super::provider_hooks::ProviderHooks;
use super::session::JsSession;
use crate::error::{ErrorCode, Result};
use crate::message::{Source, SourceKind};
use crate::options::{WindowOption, words};
use crate::session::AppendOrigin;
use crate::web::assembler::dialect;
use crate::web::conversion::convert::{body_json, to_json};
use crate::web::conversion::option_reader::read_optional;
use crate::web::conversion::results::{AppendResult, result_to_js};
use crate::web::conversion::untrusted_value::error_from_thrown;
use crate::web::promise::promise;
use js_sys::Promise;
use serde::Deserialize;
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
    pub branch: Option<String>,
}

/// `source`.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SourceOptions {
    r#type: Option<SourceKindOption>,
    id: Option<String>,
}

impl AppendOptions {
    fn read(options: &JsValue) -> Result<Self> {
        read_optional("the last argument, the options,", options)
    }
}

impl From<AppendOptions> for AppendOrigin {
    fn from(options: AppendOptions) -> Self {
        let AppendOptions { expected_revision: _, source, at, freshness, branch: _ } = options;
        let source = source.unwrap_or_default();
        let kind = source.r#type.map(|option| option.0).unwrap_or_default();
        Self { at, source: Source { kind, id: source.id }, freshness: freshness.map(|option| option.0) }
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
            let mut options = options?;
            let branch = options.branch.take();
            let expected = options.expected_revision;
            let origin = inner.origin(options.into());
            let given = match body {
                Some(body) => body?,
                None => to_json(&messages(given).await?)?,
            };
            let dialect = named.as_deref().map(dialect).transpose()?;
            let place = (&origin, expected);
            let (target, revision, content) = inner.append_to(branch.as_deref(), (&given, dialect), place).await?;
            drop(turn);
            target.give_to_providers(store.as_ref(), &content).await;
            let message_ids = content.message_ids;
            Ok(result_to_js(&AppendResult { revision, message_ids }))
        })
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
