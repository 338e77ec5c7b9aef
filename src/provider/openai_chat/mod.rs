//! OpenAI Chat Completions, and the many servers that speak it.

mod decode;
mod encode;
pub(crate) mod rules;
pub(crate) mod stream;

pub use decode::{decode_block, decode_message};
pub use encode::{MAX_CALL_ID, encode};
