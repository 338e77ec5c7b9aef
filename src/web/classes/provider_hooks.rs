//! History providers of the application (R33).
//!
//! The facade (`js/providers.js`) calls the providers one by one and applies their options; here it is two functions.

use crate::replay::Callback;
use crate::web::conversion::untrusted_value::member;
use crate::web::host::callbacks::hook;
use wasm_bindgen::{JsCast, JsValue};

/// The functions by which the facade calls the history providers.
#[derive(Default)]
pub struct ProviderHooks {
    /// Resolves to the provided messages.
    pub provide: Option<Callback>,
    /// Resolves to the sentences that say what failed.
    pub store: Option<Callback>,
}

impl ProviderHooks {
    /// Reads the facade's object.
    pub fn read(hooks: &JsValue) -> Self {
        let function = |name| member(hooks, name).dyn_into().ok().map(hook);
        Self { provide: function("provide"), store: function("store") }
    }
}
