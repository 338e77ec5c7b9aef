//! The types in which a binding gives what is not read with the options.

use crate::error::Result;
use crate::history::Incoming;
use crate::json::Json;
use crate::message::Dialect;
use crate::replay::Callback;
use serde::de::DeserializeOwned;

/// The types in which a binding gives what is not read with the options.
pub trait OptionTypes: Default {
    /// Data, such as a message's input.
    type Value: DeserializeOwned;
    /// An object, such as a JSON Schema.
    type Object: DeserializeOwned;
    /// A function, which may answer later.
    type Function: DeserializeOwned + Into<Callback>;
    /// A function that only JavaScript can pass: `execute`, `persist` and `approveUnsafeReplay`.
    type HostOnlyFunction: DeserializeOwned + Into<Callback>;
    /// A flag, or a function that returns one.
    type FlagOrFunction: DeserializeOwned + Into<FlagOrCallback>;

    /// Writes data as JSON.
    ///
    /// # Errors
    /// `invalid_input` for what JSON cannot represent, `too_large`.
    fn value_to_json(value: &Self::Value) -> Result<Json>;

    /// Writes an object as JSON.
    ///
    /// # Errors
    /// As [`value_to_json`](Self::value_to_json).
    fn object_to_json(object: &Self::Object) -> Result<Json>;

    /// Reads an input: a text, a list of parts, or a body of the dialect.
    ///
    /// # Errors
    /// `invalid_input`.
    fn input_items(input: Option<&Self::Value>, dialect: Dialect) -> Result<Vec<Incoming>>;
}

/// A flag, or a function that decides.
pub enum FlagOrCallback {
    Flag(bool),
    Callback(Callback),
}
