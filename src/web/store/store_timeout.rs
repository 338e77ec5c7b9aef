//! The longest time that an operation of a store of the application may take.
//!
//! A driver may never answer: its connection is half open, or its code forgets a callback. Nothing that waits for the
//! store would settle then. A write that timed out may be made nevertheless, also later. So its error has the outcome
//! "unknown", as that of a lost reply, and is handled like one: an append is repeated under the name of its operation,
//! which a store writes once. A read has the outcome "none".

use crate::clock::Ms;
use crate::error::{Error, Result};
use crate::session::DEFAULT_STORE_TIMEOUT;
use crate::web::conversion::untrusted_value::member;
use crate::web::promise::{adopted, await_settled};
use crate::web::time_limit::settled_within;
use wasm_bindgen::JsValue;

/// What a method of the application returned or threw.
type CallResult = std::result::Result<JsValue, JsValue>;

/// What a method of a store does to what is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Reads,
    MayWrite,
}

/// How long an operation of a store may take, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreTimeout(pub Ms);

impl Default for StoreTimeout {
    fn default() -> Self {
        Self(DEFAULT_STORE_TIMEOUT)
    }
}

impl StoreTimeout {
    /// Awaits what a method returned, unless it threw. `what` names the operation, for the error.
    ///
    /// # Errors
    /// `store_error` with an outcome if it does not settle in time: "unknown" if it may write.
    pub async fn settled(self, what: &str, access: Access, called: CallResult) -> Result<CallResult> {
        let returned = match called {
            Ok(returned) => returned,
            Err(thrown) => return Ok(Err(thrown)),
        };
        // A value that is there needs no timer.
        if !member(&returned, "then").is_function() {
            return Ok(await_settled(returned).await);
        }
        let settled = settled_within(&adopted(&returned), self.0).await;
        settled.ok_or_else(|| {
            let may_write = access == Access::MayWrite;
            let written = if may_write { "; what it was to write may be written all the same" } else { "" };
            let message = format!("{what} did not answer within {} ms (`storeTimeoutMs`){written}", self.0);
            Error::unanswered(message, may_write)
        })
    }
}
