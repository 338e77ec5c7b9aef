//! What a decoder makes of a body: messages, calls and results in the order in which they came, not joined yet.

use crate::json::Json;
use crate::message::{Dialect, Part, Role, WireTemplate};
use crate::tool::Arguments;

/// One item of a body.
#[derive(Clone, Debug, PartialEq)]
pub enum Incoming {
    /// A message, with the calls in it.
    Message(IncomingMessage),
    /// The result of a call.
    Result(IncomingResult),
    /// Something that is neither.
    Unknown(Json),
}

/// A message.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct IncomingMessage {
    pub role: Role,
    /// In the model's own order.
    pub parts: Vec<IncomingPart>,
    pub dialect: Option<Dialect>,
    pub template: Option<WireTemplate>,
}

/// A piece of it.
#[derive(Clone, Debug, PartialEq)]
pub enum IncomingPart {
    /// Anything but a call.
    Part(Part),
    /// A call.
    Call(IncomingCall),
}

/// A call.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct IncomingCall {
    pub call_id: String,
    pub name: String,
    pub arguments: Arguments,
    pub template: Option<WireTemplate>,
}

/// A result.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct IncomingResult {
    pub call_id: String,
    /// The tool's name, where the dialect says it: without an id it is what pairs.
    pub name: Option<String>,
    pub content: Json,
    pub is_error: bool,
    pub dialect: Option<Dialect>,
    pub template: Option<WireTemplate>,
    /// The item as it came, for when it belongs to nothing.
    pub raw: Json,
    /// Its call may be where only the provider sees it: without one here it goes out by itself.
    pub apart: bool,
}
