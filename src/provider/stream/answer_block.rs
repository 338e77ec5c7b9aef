//! The blocks of an answer while it is streamed, as an application sees them.

use crate::json::JsonStr;
use crate::message::{Part, PartBody, Phase};

/// A block of an answer that is coming in.
#[derive(Clone, Copy)]
pub struct AnswerBlock<'a> {
    /// Identifies the block in its answer. Blocks are in the order of their keys.
    pub key: u64,
    /// Changes when the block is replaced. As long as it is the same, a text only grows at its end.
    pub revision: u32,
    /// What a text or a refusal is within its answer.
    pub phase: Option<Phase>,
    /// The content.
    pub body: BlockBody<'a>,
}

/// The content of an [`AnswerBlock`]. Texts are the contents of JSON string tokens.
#[derive(Clone, Copy)]
#[allow(missing_docs)]
pub enum BlockBody<'a> {
    Text(&'a str),
    Reasoning(&'a str),
    Refusal(&'a str),
    /// Content that is complete, decoded when it is shown.
    Other(&'a dyn Fn() -> PartBody),
}

impl<'a> AnswerBlock<'a> {
    /// Creates a block that is never replaced.
    pub(crate) fn new(key: u64, body: BlockBody<'a>) -> Self {
        Self { key, revision: 0, phase: None, body }
    }

    /// Returns the content of the string token of a text.
    #[must_use]
    pub fn text(&self) -> Option<&'a str> {
        match self.body {
            BlockBody::Text(text) | BlockBody::Reasoning(text) | BlockBody::Refusal(text) => Some(text),
            BlockBody::Other(_) => None,
        }
    }

    /// Returns the part of a message that the block becomes.
    #[must_use]
    pub fn to_part(&self) -> Part {
        let body = match self.body {
            BlockBody::Text(text) => PartBody::Text(JsonStr::from_inside(text)),
            BlockBody::Reasoning(text) => PartBody::Reasoning(JsonStr::from_inside(text)),
            BlockBody::Refusal(text) => PartBody::Refusal(JsonStr::from_inside(text)),
            BlockBody::Other(decode) => decode(),
        };
        Part { body, template: None, phase: self.phase }
    }
}
