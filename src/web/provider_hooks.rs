//! History providers of the application (R33), which are asked before the first request of a run. `provider_store.rs` gives them its turn.
//!
//! The facade (`js/providers.js`) calls the providers one by one and applies their options; here it is two functions.

use super::convert::{list_to_js, to_json};
use super::foreign::{member, reason_of};
use super::session_inner::SessionInner;
use crate::error::{Error, ErrorCode, Result};
use crate::history::{History, Incoming, JoinBase, MessageFormat, MessageWriter, Origin, ProvidedMessages, join};
use js_sys::Function;
use wasm_bindgen::{JsCast, JsValue};

/// The functions by which the facade calls the history providers.
#[derive(Default)]
pub struct ProviderHooks {
    /// Resolves to the provided messages.
    pub provide: Option<Function>,
    /// Resolves to the sentences that say what failed.
    pub store: Option<Function>,
}

impl ProviderHooks {
    /// Reads the facade's object.
    pub fn read(hooks: &JsValue) -> Self {
        let function = |name| member(hooks, name).dyn_into().ok();
        Self { provide: function("provide"), store: function("store") }
    }
}

impl SessionInner {
    /// Asks the providers for messages that precede this input.
    ///
    /// # Errors
    /// `callback_failed`, which names the provider; `closed` if the wait for it was ended.
    pub async fn ask_providers(&self, provide: Option<&Function>, input: &[Incoming]) -> Result<Vec<ProvidedMessages>> {
        let Some(provide) = provide else { return Ok(Vec::new()) };
        let failed = |thrown: JsValue| Error::new(ErrorCode::CallbackFailed, reason_of(&thrown));
        let called = provide.call1(&JsValue::NULL, &self.messages_of_input(input));
        let provided = to_json(&self.context.callbacks.settled(called).await?.map_err(failed)?)?;
        ProvidedMessages::read_all(provided.view())
    }

    fn messages_of_input(&self, input: &[Incoming]) -> JsValue {
        let now = self.context.now();
        self.context.ids.draw();
        let log = self.log.borrow();
        let mut live = History::new(self.context.seed);
        let origin = Origin { at: now, ..Origin::default() };
        let joined = join(JoinBase::live(&log.history, &live), input.to_vec(), &origin, &self.context.ids);
        joined.entries.into_iter().for_each(|entry| live.apply(entry));
        let writer = MessageWriter { history: &live, session: &self.id, format: MessageFormat::WithCalls };
        list_to_js(&|list| {
            for message in live.messages() {
                list.object(|out| writer.write(out, message, None));
            }
        })
    }
}
