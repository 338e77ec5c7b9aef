//! `Session.append`: what an application brings.

use super::assembler::dialect;
use super::convert::{member, object_to_js, text, to_json, whole, wire_text};
use super::options::word;
use super::promise::promise;
use super::run_request::check_branch;
use super::session::{Session, SessionInner};
use crate::error::Result;
use crate::history::{Joined, NewMessage, Origin, join, join_new};
use crate::json::Json;
use crate::message::{Dialect, Source, SourceKind};
use crate::provider::decode_body;
use crate::replay::{PolicyLayer, drop_uncited};
use crate::sorted::Sorted;
use crate::store::Change;
use js_sys::Promise;
use wasm_bindgen::prelude::*;

#[wasm_bindgen]
impl Session {
    /// Appends messages in a dialect's own shape, or neutral ones.
    pub fn append(&self, given: JsValue, dialect_or_options: JsValue, options: JsValue) -> Promise {
        let inner = self.inner.clone();
        promise(Box::pin(async move {
            let named = dialect_or_options.as_string();
            let options = if named.is_some() { options } else { dialect_or_options };
            check_branch(&options)?;
            let origin = inner.origin(&options)?;
            let expected = whole(&options, "expectedRevision")?;
            inner.engine.ids.draw();
            let mut joined = match named {
                Some(name) => inner.join_wire(&wire_text(&given)?, dialect(&name)?, &origin).await?,
                None => {
                    let messages = NewMessage::read_all(to_json(&given)?.view())?;
                    join_new(&inner.log.borrow().history, messages, &origin, &inner.engine.ids)?
                }
            };
            let policy = inner.policy(PolicyLayer::default(), Sorted::new());
            let sources = drop_uncited(&mut joined.entries, &policy, &mut joined.report);
            let entries = std::mem::take(&mut joined.entries);
            let revision = inner.commit(Change { entries, sources, expected, ..inner.change() }).await?;
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

    /// Joins a dialect's own messages to what is there.
    async fn join_wire(&self, body: &Json, dialect: Dialect, origin: &Origin) -> Result<Joined> {
        let items = decode_body(dialect, body.view())?;
        let joined = join(None, &self.log.borrow().history, items.clone(), origin, &self.engine.ids);
        let orphan = joined.report.iter().any(|finding| finding.code == "orphan_result");
        if !orphan || !self.refresh().await? {
            return Ok(joined);
        }
        // Another tab may have appended the call.
        Ok(join(None, &self.log.borrow().history, items, origin, &self.engine.ids))
    }
}
