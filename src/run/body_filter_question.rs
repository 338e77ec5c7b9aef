//! The question to the application's filter of requests (R24).

use crate::json::Json;
use crate::replay::Callback;

/// A question to the application: what is sent of this body?
#[derive(Clone, Debug, PartialEq)]
pub struct BodyFilterQuestion {
    /// The function to call.
    pub callback: Callback,
    /// The body, without credentials.
    pub body: Json,
}
