//! The class `ExternalLoop`: a loop that the application drives and checkpoints here (R19).

use super::provider_hooks::ProviderHooks;
use super::session::JsSession;
use crate::replay::Callback;
use crate::run::ExternalBody;
use crate::session::OpenLoop;
use crate::web::assembler::dialect;
use crate::web::conversion::convert::body_json;
use crate::web::conversion::option_reader::read_optional;
use crate::web::conversion::options::ExternalOptions;
use crate::web::promise::promise;
use js_sys::Promise;
use std::rc::Rc;
use wasm_bindgen::prelude::*;

/// A loop that the application drives.
#[wasm_bindgen(js_name = ExternalLoop, skip_typescript)]
pub struct JsExternalLoop {
    inner: Rc<OpenLoop>,
    /// Gives what it stores to the history providers.
    store: Option<Callback>,
}

#[wasm_bindgen(js_class = Session)]
impl JsSession {
    /// Begins a loop that the application drives.
    pub fn external(&self, options: &JsValue, hooks: &JsValue) -> std::result::Result<JsExternalLoop, JsValue> {
        self.inner.context.check_open()?;
        let options: ExternalOptions = read_optional("the options", options)?;
        let inner = OpenLoop::new(self.inner.clone(), options.persistence.map(|option| option.0));
        let ProviderHooks { store, .. } = ProviderHooks::read(hooks);
        Ok(JsExternalLoop { inner, store })
    }
}

#[wasm_bindgen(js_class = ExternalLoop)]
impl JsExternalLoop {
    /// Stores what the body adds to the session, or keeps it for `end` in mode `run`.
    pub fn checkpoint(&self, body: &JsValue, dialect_name: &str) -> Promise {
        let (inner, store) = (self.inner.clone(), self.store.clone());
        // Read at the call: the caller may change it while this waits.
        let body = dialect(dialect_name).and_then(|dialect| ExternalBody::decode(dialect, body_json(body)?.view()));
        let turn = inner.session.writes.enter();
        promise(async move {
            let turn = turn.start().await;
            let content = inner.checkpoint(body?).await?;
            drop(turn);
            inner.session.give_to_providers(store.as_ref(), &content).await;
            Ok(JsValue::UNDEFINED)
        })
    }

    /// Ends the loop, and in mode `run` stores its last checkpoint.
    pub fn end(&self) -> Promise {
        let (inner, store) = (self.inner.clone(), self.store.clone());
        let turn = inner.session.writes.enter();
        promise(async move {
            let turn = turn.start().await;
            let content = inner.end().await?;
            drop(turn);
            inner.session.give_to_providers(store.as_ref(), &content).await;
            Ok(JsValue::UNDEFINED)
        })
    }
}
