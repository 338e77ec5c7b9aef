//! The decoded items of a body, in wire order: messages, calls and results that are not joined yet.

use crate::json::Json;
use crate::message::{Dialect, Part, Role, WireTemplate};
use crate::tool::Arguments;

/// One decoded item of a body.
#[derive(Clone, Debug, PartialEq)]
pub enum Incoming {
    /// A message with its calls.
    Message(IncomingMessage),
    /// The result of a call.
    Result(IncomingResult),
    /// The place of the late result of a stored call, by the id of its invocation (R75). No decoder returns it.
    LateResult(String),
    /// An item that is neither, as wire JSON.
    Unknown(Json),
}

/// A decoded message.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct IncomingMessage {
    pub role: Role,
    /// Content and calls, in the model's order.
    pub parts: Vec<IncomingPart>,
    pub dialect: Option<Dialect>,
    pub template: Option<WireTemplate>,
}

/// A part of a decoded message.
#[derive(Clone, Debug, PartialEq)]
pub enum IncomingPart {
    /// Any part but a call.
    Part(Part),
    /// A call.
    Call(IncomingCall),
}

/// A decoded call.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct IncomingCall {
    /// The id of its invocation where it was stored before.
    pub id: Option<String>,
    /// True if the conversation may go on before its result (R75).
    pub is_async: bool,
    pub call_id: String,
    pub name: String,
    pub arguments: Arguments,
    pub template: Option<WireTemplate>,
}

/// A decoded tool result.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct IncomingResult {
    pub call_id: String,
    /// The tool's name, if the result has it. A result without a call id is paired by it.
    pub name: Option<String>,
    pub content: Json,
    pub is_error: bool,
    pub dialect: Option<Dialect>,
    pub template: Option<WireTemplate>,
    /// The item's wire JSON, stored if the result has to be set aside.
    pub raw: Json,
    /// True if the provider may know a call that the body does not contain: without a call, the result is then sent by
    /// itself.
    pub stands_alone: bool,
}
