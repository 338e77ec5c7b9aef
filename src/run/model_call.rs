//! A model call under way, and what has come of its response.

use crate::provider::StreamAssembler;
use std::rc::Rc;

/// A model call.
pub(super) struct ModelCall {
    /// Which try, from 1.
    pub attempt: u32,
    /// The id that the answer will have.
    pub message_id: String,
    /// What was sent; sent again as it is.
    pub body: Rc<Vec<u8>>,
    pub asked_at: u64,
    /// How many bytes of the response came.
    pub received: u64,
    pub response: ModelResponse,
}

/// Its response, as far as it came.
pub(super) enum ModelResponse {
    None,
    Streaming(StreamAssembler),
    /// Its bytes are read whole: it is no stream, or no success.
    Whole {
        status: u16,
        headers: Vec<(String, String)>,
        body: Vec<u8>,
    },
}
