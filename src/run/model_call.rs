//! A model call in progress.

use crate::provider::StreamAssembler;
use std::rc::Rc;

/// A model call in progress, and the part of its response that was received.
pub(super) struct ModelCall {
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// The id of the answer's message.
    pub message_id: String,
    /// The body of the request; a retry sends it unchanged.
    pub body: Rc<Vec<u8>>,
    /// When the call was offered.
    pub asked_at: u64,
    /// The number of bytes received.
    pub received: u64,
    pub response: ModelResponse,
}

/// What an answer's message takes from its model call.
#[derive(Clone, Copy)]
pub(super) struct AnsweredCall<'c> {
    /// The id of the message.
    pub message_id: &'c str,
    /// When the call was offered.
    pub asked_at: u64,
}

impl ModelCall {
    /// Returns what the answer's message takes from this call.
    pub fn answered(&self) -> AnsweredCall<'_> {
        AnsweredCall { message_id: &self.message_id, asked_at: self.asked_at }
    }
}

/// The received part of a response.
pub(super) enum ModelResponse {
    /// The response has not started.
    None,
    /// A stream that is read as it comes.
    Streaming(StreamAssembler),
    /// A response that is not a stream or not a success. Its body is read when it is complete.
    Whole { status: u16, headers: Vec<(String, String)>, body: Vec<u8> },
}
