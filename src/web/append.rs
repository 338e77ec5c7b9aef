//! `Session.append`: what an application brings.

use super::assembler::dialect;
use super::convert::{member, object_to_js, text, to_json, whole, wire_text};
use super::error::thrown;
use super::options::word;
use super::promise::promise;
use super::run_request::check_branch;
use super::session::{Session, SessionInner};
use crate::error::{Code, Result};
use crate::history::{Joined, NewMessage, Origin, join, join_new};
use crate::json::Json;
use crate::message::{Source, SourceKind};
use crate::provider::decode_body;
use crate::replay::{PolicyLayer, drop_uncited};
use crate::sorted::Sorted;
use crate::store::Change;
use js_sys::Promise;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

#[wasm_bindgen]
impl Session {
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
            inner.engine.ids.draw();
            let given = match body {
                Some(body) => body?,
                None => to_json(&messages(given).await?)?,
            };
            let mut joined = inner.join(&given, named.as_deref(), &origin)?;
            // Another tab may have appended the call.
            if named.is_some() && has_orphan(&joined) && inner.refresh().await? {
                joined = inner.join(&given, named.as_deref(), &origin)?;
            }
            let change = inner.joined_change(&mut joined, expected);
            let revision = inner.commit(change).await?;
            inner.engine.warn(&joined.report);
            inner.notify();
            Ok(object_to_js(&|out| {
                out.number("revision", revision).array("messageIds", |ids| {
                    for id in &joined.message_ids {
                        ids.text(id);
                    }
                });
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
            at: whole(options, "at")?.unwrap_or_else(|| self.engine.now()),
            source: Source { kind: kind.unwrap_or_default(), id: text(&source, "id")? },
            channel: self.channel(),
            ..Origin::default()
        })
    }

    /// Joins messages to what is there: a dialect's own, or neutral ones.
    fn join(&self, given: &Json, named: Option<&str>, origin: &Origin) -> Result<Joined> {
        let Some(name) = named else {
            let messages = NewMessage::read_all(given.view())?;
            return join_new(&self.log.borrow().history, messages, origin, &self.engine.ids);
        };
        let items = decode_body(dialect(name)?, given.view())?;
        Ok(join(None, &self.log.borrow().history, items, origin, &self.engine.ids))
    }

    fn joined_change(&self, joined: &mut Joined, expected: Option<u64>) -> Change {
        let policy = self.policy(PolicyLayer::default(), Sorted::new());
        let mut change = self.change();
        change.sources = drop_uncited(&mut joined.entries, &policy, &mut joined.report);
        change.entries = std::mem::take(&mut joined.entries);
        change.expected = expected;
        change
    }
}

/// Neutral messages: as they are, or what the facade's promise of them gives.
async fn messages(given: JsValue) -> Result<JsValue> {
    match given.dyn_into::<Promise>() {
        Ok(promise) => JsFuture::from(promise)
            .await
            .map_err(|error| thrown(Code::InvalidInput, "the messages cannot be read", &error)),
        Err(messages) => Ok(messages),
    }
}

fn has_orphan(joined: &Joined) -> bool {
    joined.report.iter().any(|finding| finding.code == "orphan_result")
}
