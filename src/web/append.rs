//! `Session.append`: what an application brings.

use super::assembler::dialect;
use super::convert::{member, object_to_js, text, to_json, whole, wire_text};
use super::options::{unbuilt, word};
use super::session::{Session, SessionInner, new_operation};
use crate::error::Result;
use crate::history::{Joined, NewMessage, Origin, join, join_new};
use crate::json::Json;
use crate::message::{Dialect, Source, SourceKind};
use crate::provider::decode_body;
use crate::replay::{PolicyLayer, drop_uncited};
use crate::sorted::Sorted;
use crate::store::Change;
use wasm_bindgen::prelude::*;

#[wasm_bindgen]
impl Session {
    /// Appends messages in a dialect's own shape, or neutral ones.
    pub async fn append(
        &self,
        given: JsValue,
        dialect_or_options: JsValue,
        options: JsValue,
    ) -> std::result::Result<JsValue, JsValue> {
        let inner = self.inner.clone();
        let named = dialect_or_options.as_string();
        let options = if named.is_some() { options } else { dialect_or_options };
        if let Some(branch) = text(&options, "branch")?
            && branch != "main"
        {
            return Err(unbuilt("`branch`").into());
        }
        let source = member(&options, "source");
        let kinds =
            [("external", SourceKind::External), ("context", SourceKind::Context), ("history", SourceKind::History)];
        let origin = Origin {
            at: whole(&options, "at")?.unwrap_or_else(|| inner.engine.now()),
            source: Source { kind: word(&source, "type", &kinds)?.unwrap_or_default(), id: text(&source, "id")? },
            channel: inner.channel(),
            ..Origin::default()
        };
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
        let change = Change {
            operation: new_operation(&inner),
            at: inner.engine.now(),
            entries: joined.entries,
            sources,
            expected,
            ..Change::default()
        };
        let revision = inner.commit(change).await?;
        inner.engine.warn(&joined.report);
        inner.notify();
        Ok(object_to_js(|out| {
            out.number("revision", revision).array("messageIds", |ids| {
                for id in &joined.message_ids {
                    ids.text(id);
                }
            });
        }))
    }
}

impl SessionInner {
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
