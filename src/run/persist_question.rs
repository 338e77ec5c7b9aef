//! Questions to a tool's `persist` function and their replies (R12).

use crate::json::Json;
use crate::replay::Callback;

/// A question to the application: what is stored of this call?
#[derive(Clone, Debug, PartialEq)]
pub struct PersistQuestion {
    /// The function to call.
    pub callback: Callback,
    /// The id of the invocation.
    pub invocation: String,
    /// The tool's name.
    pub name: String,
    /// The call's arguments; a JSON string if they are not JSON.
    pub arguments: Json,
    /// The call's result, if it has one.
    pub result: Option<Json>,
}

/// The application's reply: what is stored of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum PersistReply {
    /// Replacements; what has none is stored unchanged.
    Replaced {
        /// Replaces the arguments.
        arguments: Option<Json>,
        /// Replaces the result.
        result: Option<Json>,
    },
    /// Nothing except that the call happened.
    Nothing,
    /// The function threw or returned something else; nothing is stored except that the call happened.
    Failed(String),
}
